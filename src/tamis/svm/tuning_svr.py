"""The C with the least cross-validated error of support vector regression."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.svm import SVR
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from tamis._arrays import Array
from tamis.exceptions import InvalidParameter, InvalidTarget
from tamis.folds.rows import Fold
from tamis.svm.curves.certificate import (
    Certificate,
    FoldTrials,
    PathAudit,
    TriedGamma,
    doubts,
    gather,
)
from tamis.svm.curves.curve import ValidationCurve
from tamis.svm.curves.errors import ABSOLUTE, SQUARED, ErrorPieces, mean_curve
from tamis.svm.kernels import resolve_kernel
from tamis.svm.limits import check_weights
from tamis.svm.machine import most_steps
from tamis.svm.path.base import RANGE, as_target, check_refit, lambdas_of
from tamis.svm.path.binary import check_size
from tamis.svm.searching import FoldFound, PathSearch, TuningRows, fold_rows, splits_of
from tamis.svm.svr import check_tube
from tamis.svm.tube import tube_path

CLOSED = 1e-3  # width of a bracket, relative to the value, that counts as closed
LARGEST_TARGET = 1e150  # its square is a number, and so is the sum of some
EXACT = 1e-8  # of the range of the target: an error that is known to this is known
#: The error behind each scoring, and what its values are called.
ERRORS = {
    None: SQUARED,
    "neg_mean_squared_error": SQUARED,
    SQUARED: SQUARED,
    "r2": SQUARED,
    "neg_mean_absolute_error": ABSOLUTE,
    ABSOLUTE: ABSOLUTE,
}
MEASURES = {
    scoring: "R squared" if scoring == "r2" else f"mean {kind} error"
    for scoring, error in ERRORS.items()
    for kind in ["squared" if error == SQUARED else "absolute"]
}


class SVRPathCV(PathSearch, RegressorMixin, BaseEstimator):
    """Support vector regression with the C that minimises the cross-validated error, exactly.

    It stands where ``GridSearchCV(SVR(), {"C": ..., "gamma": ...})`` stood.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"}, default="rbf"
        The kernel, as in SVR.
    gamma : float, "scale", "auto" or a sequence of these, default="scale"
        A sequence is a grid, with the exact best C for each of its members; of equals the first.
    C_range : tuple of two floats, optional
        Smallest and largest C; by default from 2**-9 to 2**8.
    cv : int, splitter or iterable, default=5
        Folds as of ``GridSearchCV``; with ``groups`` a number makes folds of whole groups.
    scoring : str or None, default=None
        "neg_mean_squared_error" (None, "mse"), "neg_mean_absolute_error" ("mae") or "r2".
    pool : {"folds", "samples"}, default="folds"
        Mean of the folds' errors, or the error of all predictions together.
    preprocessor : transformer or None, default=None
        Learned anew from the training part of every fold; ``best_estimator_`` is a Pipeline then.
    n_jobs : int or None, default=None
        Processes over folds and gammas; the result is the same for any number.
    epsilon : float, default=0.1
        Half-width of the tube within which errors cost nothing.
    lambda_range : tuple of two floats, default=(2**-8, 2**9)
        The range as 1 / C, in place of ``C_range``.
    degree : int, default=3
        Degree of the kernel "poly".
    coef0 : float, default=0.0
        Constant of the kernel "poly".
    refit : bool, default=True
        Whether to train ``best_estimator_`` on all samples.

    Attributes
    ----------
    best_C_, best_gamma_, best_params_, best_score_, best_interval_, best_index_, cv_results_
        As in :class:`SVCPathCV`: ``best_score_`` is greater for better, so errors are negative.
    curve_, curves_, certificate_, n_splits_
        As in :class:`SVCPathCV`. The curve is of the error, or of R squared, and continuous: its
        certificate is closed when the bracket is no wider than a thousandth of the error.
    best_estimator_ : SVR
        Trained on all samples; a Pipeline where there is a preprocessor.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = SVRPathCV("linear", epsilon=5.0, cv=3).fit(X[:60], y[:60])
    >>> round(search.best_score_)
    -4343
    """

    best_estimator_: SVR  # declared, so that criteria know it for a search over hyper-parameters

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        gamma: Any = "scale",
        C_range: tuple[float, float] | None = None,
        cv: Any = 5,
        scoring: str | None = None,
        pool: str = "folds",
        preprocessor: Any = None,
        n_jobs: int | None = None,
        epsilon: float = 0.1,
        lambda_range: tuple[float, float] = RANGE,
        degree: int = 3,
        coef0: float = 0.0,
        refit: bool = True,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.C_range = C_range
        self.cv = cv
        self.scoring = scoring
        self.pool = pool
        self.preprocessor = preprocessor
        self.n_jobs = n_jobs
        self.epsilon = epsilon
        self.lambda_range = lambda_range
        self.degree = degree
        self.coef0 = coef0
        self.refit = refit

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Find the best C and train with it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers, or what the preprocessor makes numbers of.
        y : array-like of shape (n_samples,)
            Numbers.
        sample_weight : array-like of shape (n_samples,), optional
            Weights that multiply C, and count in the error of the test parts, as in
            ``GridSearchCV``. ``gamma="scale"`` does not see them, as in SVR.
        groups : array-like of shape (n_samples,), optional
            Rows of a group stay on one side of every fold.
        """
        X, y = self._checked(X, y)
        y = as_target(self, y)
        self._check(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        check_weights(type(self).__name__, weight)
        rows = TuningRows(X, y, y, weight)
        splits = splits_of(self, rows, groups, classifier=False)
        check_size(type(self).__name__, 2 * max(len(train) for train, _ in splits))
        if self.refit:
            check_refit(self, self._prepared(X, y))
        if self.scoring == "r2":
            check_spread(type(self).__name__, rows, splits, self.pool)
        self._search(rows, splits)
        if self.refit:
            self.best_estimator_ = self._train(self._best_machine(len(y)), X, y, sample_weight)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Predictions of the machine with the best C.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                f"{type(self).__name__} with refit=False has no best_estimator_. "
                "Fit it with refit=True to predict."
            )
        found: Array = self.best_estimator_.predict(self._rows(X))
        return found

    def _check(self, y: Array) -> None:
        name = type(self).__name__
        lambdas_of(self)
        error = error_of(name, self.scoring)
        if error == SQUARED and np.abs(y).max() > LARGEST_TARGET:
            raise InvalidTarget(
                f"{name} needs a target whose squared errors are numbers, up to "
                f"{LARGEST_TARGET:.0e}; y reaches {np.abs(y).max():.3g}. Scale it, or write "
                'scoring="neg_mean_absolute_error".'
            )
        if self.pool not in ("folds", "samples"):
            raise InvalidParameter(f'{name} needs pool="folds" or "samples"; got {self.pool!r}.')

    def _best_machine(self, n_rows: int) -> Any:
        """An untrained machine with the best C."""
        machine = SVR(
            C=self.best_C_,
            kernel=self.kernel,
            gamma=self.best_gamma_,
            degree=self.degree,
            coef0=self.coef0,
            epsilon=self.epsilon,
            cache_size=500,
            max_iter=most_steps(n_rows),
        )
        return self._machine_of(machine)

    def _explore(self, gamma: Any, rows: TuningRows, split: Fold) -> FoldFound:
        name, (train, test) = type(self).__name__, split
        parts = fold_rows(self, rows.X, rows.y, split)
        bounds = check_tube(name, self, parts.train, rows.weight[train])
        kernel = resolve_kernel(name, self.kernel, gamma, self.degree, self.coef0, parts.train)
        y, lambdas = rows.y, lambdas_of(self)
        tube = tube_path(kernel, parts.train, y[train], bounds, self.epsilon, lambdas, True)
        error, weight = error_of(name, self.scoring), rows.weight[test] / rows.weight[test].max()
        errors = tube.errors(parts.test, y[test], error, parts.own, weight)
        return FoldFound(errors, [PathAudit.of(tube.solution)])

    def _tried(
        self, gamma: Any, found: list[FoldFound], splits: list[Fold], rows: TuningRows
    ) -> TriedGamma:
        errors: list[ErrorPieces] = [one.values for one in found]
        audits = [audit for one in found for audit in one.audits]
        tests = [WeightedTarget(rows.y[test], rows.weight[test]) for _, test in splits]
        units = _units(tests, self.scoring, self.pool)
        curve, slack = mean_curve(errors, units)
        curve, slack = scaled(curve, units.sum()), slack * units.sum()
        # the middle of the point is the point
        interval = curve.argmin[0]
        floor = EXACT * float(np.ptp(rows.y))
        floor = floor**2 if error_of("", self.scoring) == SQUARED else floor
        proof = _certificate(
            curve, slack, interval.middle, audits, lambdas_of(self)[0], floor * units.sum()
        )
        if self.scoring == "r2":
            curve, proof = explained(curve), proved_explained(proof)
        proof = replace(proof, measure=MEASURES[self.scoring])
        trials = self._trials(interval.middle, errors, tests, curve)
        return TriedGamma(gamma, curve, interval, interval.middle, proof, trials)

    def _trials(
        self,
        C: float,
        errors: list[ErrorPieces],
        tests: list["WeightedTarget"],
        curve: ValidationCurve,
    ) -> FoldTrials:
        """What the points of a grid are worth."""
        points = self._trial_points(C)
        scores = -np.array([mean_curve([one], np.ones(1))[0](points) for one in errors]).T
        if self.scoring == "r2":
            spread = np.array([test.variance for test in tests])
            # scikit-learn says 0 of a part that does not vary
            scores = np.divide(scores, spread, out=-np.ones_like(scores), where=spread > 0) + 1
        if self.pool == "folds":
            return FoldTrials(points, scores, np.average(scores, axis=1))
        return FoldTrials(points, scores, curve(points) * (1 if curve.greater_is_better else -1))


class WeightedTarget(NamedTuple):
    """Target of a test part, and the weights of its samples."""

    y: Array
    weight: Array

    @property
    def variance(self) -> float:
        """Weighted variance."""
        away = self.y - np.average(self.y, weights=self.weight)
        return float(np.average(away**2, weights=self.weight))


def _units(tests: list[WeightedTarget], scoring: str | None, pool: str) -> Array:
    """What the mean error of each fold is multiplied by; r2 counts in variances."""
    if pool == "folds":
        spread = [test.variance if scoring == "r2" else 1.0 for test in tests]
        return 1.0 / (np.array(spread) * len(tests))
    sizes = np.array([test.weight.sum() for test in tests])
    whole = WeightedTarget(*(np.concatenate(part) for part in zip(*tests, strict=True)))
    return sizes / sizes.sum() / (whole.variance if scoring == "r2" else 1.0)


def scaled(curve: ValidationCurve, unit: float) -> ValidationCurve:
    """The curve times a number."""
    return ValidationCurve(
        curve.breakpoints, curve.coefficients * unit, curve.at_breakpoints * unit
    )


def explained(curve: ValidationCurve) -> ValidationCurve:
    """R squared, from the error in units of the variance."""
    return ValidationCurve(
        curve.breakpoints, 1 - curve.coefficients, 1 - curve.at_breakpoints, True
    )


def proved_explained(proof: Certificate) -> Certificate:
    """What is proved of R squared, from what is of the error in units of the variance."""
    return replace(
        proof,
        value=1 - proof.value,
        lower=1 - proof.lower,
        upper=1 - proof.upper,
        optimistic=explained(proof.optimistic),
        pessimistic=explained(proof.pessimistic),
    )


def _certificate(
    curve: ValidationCurve,
    slack: Array,
    C: float,
    audits: Sequence[PathAudit],
    smallest: float,
    floor: float,
) -> Certificate:
    at = np.maximum(np.append(slack, 0.0), np.append(0.0, slack))
    low, high = (
        ValidationCurve(
            curve.breakpoints,
            curve.coefficients + way * slack[:, None],
            curve.at_breakpoints + way * at,
        )
        for way in (-1.0, 1.0)
    )
    reason = doubts(audits, smallest)
    if not reason and not float(high(C)) - low.best <= CLOSED * abs(curve.best) + floor:
        reason = f"the least error is known only to lie in [{low.best:.8g}, {float(high(C)):.8g}]"
    return gather(curve, C, low, high, audits, reason, "error")


def error_of(name: str, scoring: object) -> str:
    """The error that a scoring is made of."""
    if scoring is not None and not isinstance(scoring, str):
        scoring = repr(scoring)
    if scoring not in ERRORS:
        raise InvalidParameter(
            f"{name} follows errors that are parabolas or lines in C: scoring= "
            '"neg_mean_squared_error" ("mse"), "neg_mean_absolute_error" ("mae") or "r2"; got '
            f"{scoring!r}. For another look around best_C_ with GridSearchCV(SVR(), ...)."
        )
    return ERRORS[scoring]


def check_spread(name: str, rows: TuningRows, splits: Sequence[Fold], pool: str) -> None:
    """Refuse R squared of test parts whose target does not vary."""
    for k, (_, test) in enumerate(splits):
        if pool == "folds" and not WeightedTarget(rows.y[test], rows.weight[test]).variance > 0:
            raise InvalidTarget(
                f'{name} needs a target that varies in every test part for scoring="r2"; that of '
                f'fold {k} does not. Use fewer folds, pool="samples" or "neg_mean_squared_error".'
            )
    if not WeightedTarget(rows.y, rows.weight).variance > 0:
        raise InvalidTarget(f'{name} needs a target that varies for scoring="r2"; y does not.')
