"""The regularization path of support vector regression."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from tamis._arrays import Array
from tamis.exceptions import InvalidParameter
from tamis.svm.curves.curve import ValidationCurve
from tamis.svm.curves.errors import ABSOLUTE, SQUARED, mean_curve
from tamis.svm.kernels import resolve_kernel
from tamis.svm.limits import check_weights
from tamis.svm.path.base import RANGE, RegularizationPath, check_range, checked_numbers
from tamis.svm.path.binary import check_size
from tamis.svm.path.follow import breakpoints
from tamis.svm.tube import tube_path


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
        kernel = resolve_kernel(name, self.kernel, self.gamma, self.degree, self.coef0, X)
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
