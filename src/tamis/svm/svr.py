"""The regularization path of support vector regression and the C with the least error on it."""

from typing import Any, Self
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import check_cv
from sklearn.svm import SVR
from sklearn.utils import Tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from tamis._arrays import Array
from tamis.exceptions import InvalidParameter, InvalidTarget, NotCertified
from tamis.folds.rows import retold
from tamis.svm.curves.certificate import Certificate, TriedGamma, against, doubts, gather
from tamis.svm.curves.curve import ValidationCurve
from tamis.svm.curves.errors import ABSOLUTE, SQUARED, mean_curve
from tamis.svm.kernels import resolve_kernel
from tamis.svm.limits import check_weights
from tamis.svm.machine import most_steps
from tamis.svm.path.base import (
    RANGE,
    RegularizationPath,
    check_range,
    check_refit,
    checked_numbers,
    checked_rows,
    gammas_of,
)
from tamis.svm.path.binary import check_size
from tamis.svm.path.follow import SolutionPath, breakpoints
from tamis.svm.tube import tube_path

CLOSED = 1e-3  # width of a bracket, relative to the value, that counts as closed
LARGEST_TARGET = 1e150  # its square is a number, and so is the sum of some
EXACT = 1e-8  # of the range of the target: an error that is known to this is known


class SVRPath(RegressorMixin, RegularizationPath):
    """Support vector regression for every C at once.

    Two variables per sample, above and below the tube, make the regression the same parametric
    programme as the classification, with the linear term ``lambda (+-y - epsilon)``.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"}, default="rbf"
    gamma, degree, coef0, lambda_range
        As in :class:`SVCPath`.
    epsilon : float, default=0.1
        Half-width of the tube within which errors cost nothing.

    Attributes
    ----------
    breakpoints_ : ndarray
        Increasing values of C at which the solution changes its course.
    violation_ : float
        Largest violation of the optimality conditions, relative to lambda and the range of y.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> path = SVRPath("linear", epsilon=5.0).fit(X[:60], y[:60])
    >>> path.predict(X[:2], C=100.0).round(1)
    array([145.6, 116.3])
    """

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        epsilon: float = 0.1,
        lambda_range: tuple[float, float] = RANGE,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.epsilon = epsilon
        self.lambda_range = lambda_range

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Follow the path; sample weights multiply C."""
        X, y = checked_numbers(self, X, y)
        name = type(self).__name__
        bounds = check_tube(name, self, X, sample_weight)
        kernel = resolve_kernel(name, self.kernel, self.gamma, self.degree, self.coef0, X, bounds)
        self._tube = tube_path(kernel, X, y, bounds, self.epsilon, self.lambda_range)
        self.breakpoints_ = breakpoints([self._tube.solution])
        self._vouch([self._tube.solution], self._tube.gram.definite)
        return self

    def predict(self, X: ArrayLike, C: float = 1.0) -> Array:
        """Predictions at ``C``."""
        X = self._rows(X)
        return self._tube.predict(X, self._lambda(C))

    def dual_coef(self, C: float = 1.0) -> Array:
        """Coefficients of all samples at ``C``."""
        check_is_fitted(self)
        return self._tube.dual_coef(self._lambda(C))

    def curve(self, X: ArrayLike, y: ArrayLike, scoring: str = SQUARED) -> ValidationCurve:
        """The exact mean squared ("mse") or absolute ("mae") error over C on a validation set."""
        X = self._rows(X)
        check_error(type(self).__name__, scoring)
        return mean_curve([self._tube.errors(X, np.asarray(y, float), scoring)], np.ones(1))[0]


class SVRPathCV(RegressorMixin, BaseEstimator):
    """Support vector regression with the C that minimises the cross-validated error, exactly.

    Parameters
    ----------
    kernel, gamma, degree, coef0, epsilon, lambda_range
        As in :class:`SVRPath`; ``gamma`` may be a sequence.
    cv : int, splitter or iterable, default=5
    scoring : {"mse", "mae"}, default="mse"
    pool : {"folds", "samples"}, default="folds"
        Mean of the folds' errors, or the error of all predictions together.
    refit : bool, default=True

    Attributes
    ----------
    best_C_, best_gamma_, best_score_, best_interval_, curve_, curves_, certificate_
        As in :class:`SVCPathCV`. The curve is continuous: its certificate is closed when the
        bracket is no wider than a thousandth of the value.
    best_estimator_ : SVR

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = SVRPathCV("linear", epsilon=5.0, cv=3).fit(X[:60], y[:60])
    >>> round(search.best_score_)
    4343
    """

    curve_: ValidationCurve
    certificate_: Certificate
    best_C_: float
    best_gamma_: Any

    best_estimator_: SVR  # declared, so that criteria know it for a search over hyper-parameters

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        gamma: Any = "scale",
        cv: Any = 5,
        scoring: str = SQUARED,
        pool: str = "folds",
        epsilon: float = 0.1,
        lambda_range: tuple[float, float] = RANGE,
        degree: int = 3,
        coef0: float = 0.0,
        refit: bool = True,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.cv = cv
        self.scoring = scoring
        self.pool = pool
        self.epsilon = epsilon
        self.lambda_range = lambda_range
        self.degree = degree
        self.coef0 = coef0
        self.refit = refit

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the best C and train with it."""
        X, y = checked_numbers(self, X, y)
        name = type(self).__name__
        check_error(name, self.scoring)
        if self.scoring == SQUARED and np.abs(y).max() > LARGEST_TARGET:
            raise InvalidTarget(
                f"{name} needs a target whose squared errors are numbers, up to "
                f"{LARGEST_TARGET:.0e}; y reaches {np.abs(y).max():.3g}. Scale it, or write "
                'scoring="mae".'
            )
        if self.pool not in ("folds", "samples"):
            raise InvalidParameter(
                f'{type(self).__name__} needs pool="folds" or "samples"; got {self.pool!r}.'
            )
        if self.refit:
            check_refit(self, X)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        splits = list(check_cv(self.cv).split(X, y))
        tried = [self._try(gamma, X, y, weight, splits) for gamma in gammas_of(self.gamma)]
        best = tried[0]
        for other in tried[1:]:
            best = other if other.curve.best < best.curve.best else best
        self.curves_ = [one.curve for one in tried]
        self.curve_, self.best_gamma_, self.best_interval_ = best.curve, best.gamma, best.interval
        self.best_C_ = best.interval.middle
        self.best_score_ = float(best.curve(self.best_C_))
        rivals = [one.certificate for one in tried if one is not best]
        self.certificate_ = against(best.certificate, rivals, greater=False)
        if not self.certificate_.closed:
            warn(
                f"{type(self).__name__} could not certify its best C: {self.certificate_.reason}. "
                "See certificate_; the curve stands as computed.",
                NotCertified,
                stacklevel=2,
            )
        if self.refit:
            self._refit(X, y, sample_weight)
        return self

    def _refit(self, X: Array, y: Array, sample_weight: Any) -> None:
        machine = SVR(
            C=self.best_C_,
            kernel=self.kernel,
            gamma=self.best_gamma_,
            degree=self.degree,
            coef0=self.coef0,
            epsilon=self.epsilon,
            cache_size=500,
            max_iter=most_steps(len(X)),
        )
        with retold():
            self.best_estimator_ = machine.fit(X, y, sample_weight)

    def _try(self, gamma: Any, X: Array, y: Array, weight: Array, splits: list[Any]) -> TriedGamma:
        """The exact curve for one gamma, and what is proved about its optimum."""
        name, pairwise = type(self).__name__, self.kernel == "precomputed"
        errors, paths = [], []
        for train, test in splits:
            inner = X[np.ix_(train, train)] if pairwise else X[train]
            outer = X[np.ix_(test, train)] if pairwise else X[test]
            bounds = check_tube(name, self, inner, weight[train])
            kernel = resolve_kernel(
                name, self.kernel, gamma, self.degree, self.coef0, inner, bounds
            )
            tube = tube_path(
                kernel, inner, y[train], bounds, self.epsilon, self.lambda_range, bracketed=True
            )
            own = np.diagonal(X)[test] if pairwise else None
            errors.append(tube.errors(outer, y[test], self.scoring, own))
            paths.append(tube.solution)
        sizes = [1.0 if self.pool == "folds" else float(len(test)) for _, test in splits]
        curve, slack = mean_curve(errors, np.array(sizes))
        interval = curve.argmin[0]
        smallest, floor = self.lambda_range[0], EXACT * float(np.ptp(y))
        floor = floor**2 if self.scoring == SQUARED else floor
        proof = _certificate(curve, slack, interval.middle, paths, smallest, floor)
        return TriedGamma(gamma, curve, interval, proof)

    def predict(self, X: ArrayLike) -> Array:
        """Predictions of the machine with the best C."""
        check_is_fitted(self)
        return self.best_estimator_.predict(checked_rows(self, X))


def _certificate(
    curve: ValidationCurve,
    slack: Array,
    C: float,
    paths: list[SolutionPath],
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
    reason = doubts(paths, smallest)
    if not reason and not float(high(C)) - low.best <= CLOSED * abs(curve.best) + floor:
        reason = f"the least error is known only to lie in [{low.best:.8g}, {float(high(C)):.8g}]"
    return gather(curve, C, low, high, paths, reason)


def check_tube(name: str, estimator: Any, X: Array, sample_weight: Any) -> Array:
    """Check what paths of regression ask for; returns the bounds of the samples."""
    check_range(name, estimator.lambda_range)
    check_size(name, 2 * len(X))
    if not (isinstance(estimator.epsilon, int | float) and estimator.epsilon >= 0):
        raise InvalidParameter(
            f"{name} needs an epsilon that is not negative; got {estimator.epsilon!r}."
        )
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    check_weights(name, weight)
    if len(X) < 2:
        raise InvalidParameter(f"{name} needs at least 2 samples; got {len(X)} sample.")
    return weight


def check_error(name: str, scoring: object) -> None:
    """Refuse an error function that is not known."""
    if scoring not in (SQUARED, ABSOLUTE):
        raise InvalidParameter(
            f'{name} needs scoring="mse" (mean squared error) or "mae" (mean absolute error); '
            f"got {scoring!r}."
        )
