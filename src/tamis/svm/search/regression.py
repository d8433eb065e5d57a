"""Search for the C of support vector regression with the least cross-validated error."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from tamis._arrays import Array
from tamis._checks import Constraints, number
from tamis.exceptions import InvalidParameter, InvalidTarget
from tamis.svm.curves.certificate import FoldTrials, PathAudit, TriedGamma, certify
from tamis.svm.curves.curve import ValidationCurve
from tamis.svm.curves.errors import ABSOLUTE, SQUARED, ErrorPieces, mean_curve
from tamis.svm.inputs import check_numbers, check_size
from tamis.svm.path.problems import tube_path
from tamis.svm.search.base import FoldFound, PathSearch, TunedSVM, TuningRows
from tamis.validation.splits import Fold

CLOSED = 1e-3  # relative accuracy of the least error with which a certificate is closed
LARGEST_TARGET = 1e150  # with targets up to this size, a sum of squares does not overflow
EXACT = 1e-8  # errors up to this share of the range of the target are treated as exact
#: The error from which each scoring is computed.
ERRORS: dict[object, str] = {
    None: SQUARED,
    "neg_mean_squared_error": SQUARED,
    SQUARED: SQUARED,
    "r2": SQUARED,
    "neg_mean_absolute_error": ABSOLUTE,
    ABSOLUTE: ABSOLUTE,
}
#: Names of the errors in messages.
MEASURES = {SQUARED: "mean squared error", ABSOLUTE: "mean absolute error"}


@dataclass(eq=False, repr=False, kw_only=True)
class SVRPathCV(PathSearch, RegressorMixin, TunedSVM):
    """Support vector regression with the C that exactly minimises the cross-validated error.

    The error is computed at every C from the regularization paths of the folds. Use this class in
    place of ``GridSearchCV(SVR(), {"C": ..., "gamma": ...})``.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"}, default="rbf"
        The kernel, as in SVR.
    gamma : float, "scale", "auto" or a sequence of these, default="scale"
        Width of the kernels "rbf" and "poly". If a sequence is given, the best C is found for each
        gamma, and the gamma with the best value is used. Ties go to the first gamma.
    C_range : tuple of two floats, optional
        Smallest and largest C. The default is 2**-9 to 2**8.
    cv : int, splitter or iterable, default=5
        Folds, as in ``GridSearchCV``. If ``fit`` gets ``groups``, an int makes folds that keep each
        group together.
    scoring : str or None, default=None
        Score or error: "neg_mean_squared_error" (or "mse"), "neg_mean_absolute_error" (or "mae"),
        or "r2". None means "neg_mean_squared_error".
    pool : {"folds", "samples"}, default="folds"
        "folds" averages the errors of the folds. "samples" computes a single error from the
        predictions of all folds together.
    preprocessor : transformer or None, default=None
        Transformer that is fitted to the training rows of every fold. If given,
        ``best_estimator_`` is a Pipeline.
    n_jobs : int or None, default=None
        Number of processes that work on folds and gammas. The result does not depend on it.
    epsilon : float, default=0.1
        Half-width of the tube. Errors inside the tube have no loss.
    lambda_range : tuple of two floats, default=(2**-8, 2**9)
        Smallest and largest lambda = 1 / C, an alternative to ``C_range``.
    degree : int, default=3
        Degree of the kernel "poly".
    coef0 : float, default=0.0
        Constant of the kernel "poly".
    refit : bool, default=True
        Whether to train ``best_estimator_`` on all samples.

    Attributes
    ----------
    best_C_, best_gamma_, best_params_, best_score_, best_interval_, best_index_, cv_results_
        As in :class:`SVCPathCV`. A greater ``best_score_`` is better, so errors are negative.
    curve_, curves_, certificate_, n_splits_
        As in :class:`SVCPathCV`. The curve of the error, or of R squared, is continuous. The
        certificate is closed if the least error is known with a relative accuracy of 0.001.
    best_estimator_ : SVR
        SVR with the best C and gamma, trained on all samples. It is a Pipeline if there is a
        preprocessor.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = SVRPathCV("linear", epsilon=5.0, cv=3).fit(X[:60], y[:60])
    >>> round(search.best_score_)
    -4343
    """

    _constraints: ClassVar[Constraints] = {"epsilon": number(least=0)}

    epsilon: float = 0.1

    def _begin(self, X: Any, y: Any, sample_weight: Any) -> TuningRows:
        rows = super()._begin(X, y, sample_weight)
        name = type(self).__name__
        y = check_numbers(name, rows.y)
        if error_of(name, self.scoring) == SQUARED and np.abs(y).max() > LARGEST_TARGET:
            raise InvalidTarget(
                f"{name} needs a target of at most {LARGEST_TARGET:.0e}, so that squared errors do "
                f"not overflow; y reaches {np.abs(y).max():.3g}. Scale it, or write "
                'scoring="neg_mean_absolute_error".'
            )
        return rows._replace(y=y, target=y)

    def _splits(self, rows: TuningRows, groups: Any = None) -> list[Fold]:
        splits = super()._splits(rows, groups)
        name = type(self).__name__
        check_size(name, 2 * max(len(train) for train, _ in splits))
        if (fewest := min(len(train) for train, _ in splits)) < 2:
            raise InvalidParameter(f"{name} needs at least 2 samples; got {fewest} sample.")
        if self.scoring != "r2":
            return splits
        for k, (_, test) in enumerate(splits):
            if self.pool == "folds" and not _variance(rows, test) > 0:
                raise InvalidTarget(
                    f'{name} needs a target that varies in every test fold for scoring="r2"; it '
                    f'is constant in fold {k}. Use fewer folds, pool="samples" or '
                    '"neg_mean_squared_error".'
                )
        if not _variance(rows) > 0:
            raise InvalidTarget(f'{name} needs a target that varies for scoring="r2"; y does not.')
        return splits

    def _explore(self, gamma: Any, rows: TuningRows, split: Fold) -> FoldFound:
        (train, test), (inner, outer, own) = split, self._fold_rows(rows, split)
        known = inner, rows.y[train], rows.weight[train], self.epsilon
        tube = tube_path(self._resolve(inner, gamma), *known, self._lambdas, bracketed=True)
        weight = rows.weight[test] / rows.weight[test].max()
        errors = tube.errors(outer, rows.y[test], ERRORS[self.scoring], own, weight)
        return FoldFound(errors, [PathAudit.of(tube.solution)])

    def _tried(
        self, gamma: Any, found: list[FoldFound], splits: list[Fold], rows: TuningRows
    ) -> TriedGamma:
        errors: list[ErrorPieces] = [one.values for one in found]
        tests = [test for _, test in splits]
        error, units = ERRORS[self.scoring], self._units(rows, tests)
        curve, slack = mean_curve(errors, units)
        curve, slack = curve.affine(units.sum()), slack * units.sum()
        interval = curve.argmin[0]  # a single point
        at = np.maximum(np.append(slack, 0.0), np.append(0.0, slack))
        low, high = (
            ValidationCurve(
                curve.breakpoints,
                curve.coefficients + way * slack[:, None],
                curve.at_breakpoints + way * at,
            )
            for way in (-1.0, 1.0)
        )
        floor = (EXACT * float(np.ptp(rows.y))) ** (2 if error == SQUARED else 1)
        audits = [audit for one in found for audit in one.audits]
        proof = certify(
            curve, C := interval.middle, low, high, audits, self._lambdas[0], MEASURES[error],
            CLOSED * abs(curve.best) + floor * units.sum(),
        )  # fmt: skip
        if self.scoring == "r2":
            curve, optimistic, pessimistic = (one.affine(-1, 1) for one in (curve, low, high))
            proof = replace(
                proof, value=1 - proof.value, lower=1 - proof.lower, upper=1 - proof.upper,
                optimistic=optimistic, pessimistic=pessimistic, measure="R squared",
            )  # fmt: skip
        points = self._trial_points(C)
        scores = -np.array([mean_curve([one], np.ones(1))[0](points) for one in errors]).T
        if self.scoring == "r2":
            spread = np.array([_variance(rows, test) for test in tests])
            # scikit-learn returns 0 for a constant target
            scores = np.divide(scores, spread, out=-np.ones_like(scores), where=spread > 0) + 1
        means = np.average(scores, axis=1)
        if self.pool == "samples":
            means = curve(points) * (1 if curve.greater_is_better else -1)
        return TriedGamma(gamma, curve, interval, C, proof, FoldTrials(points, scores, means))

    def _units(self, rows: TuningRows, tests: list[Any]) -> Array:
        """Return the weight of the mean error of each fold in the mean over the folds.

        For R², the weights are divided by the variance of the target.
        """
        explained = self.scoring == "r2"
        if self.pool == "folds":
            spread = [_variance(rows, test) if explained else 1.0 for test in tests]
            return 1.0 / (np.array(spread) * len(tests))
        sizes = np.array([rows.weight[test].sum() for test in tests])
        return sizes / sizes.sum() / (_variance(rows, np.concatenate(tests)) if explained else 1.0)


def _variance(rows: TuningRows, part: Any = slice(None)) -> float:
    """Return the weighted variance of the target over the rows ``part``."""
    y, weight = rows.y[part], rows.weight[part]
    return float(np.average((y - np.average(y, weights=weight)) ** 2, weights=weight))


def error_of(name: str, scoring: object) -> str:
    """Return the name of the error from which a scoring is computed."""
    if not isinstance(scoring, str | None) or scoring not in ERRORS:
        raise InvalidParameter(
            f"{name} needs a scoring based on squared or absolute errors: "
            '"neg_mean_squared_error" ("mse"), "neg_mean_absolute_error" ("mae") or "r2"; got '
            f"{scoring!r}. For other scores, search around best_C_ with GridSearchCV(SVR(), ...)."
        )
    return ERRORS[scoring]
