"""Regularization paths of support vector classification and regression: every C at once."""

from typing import Any, ClassVar, Self
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import Array, is_real
from tamis._checks import Constraints, check_values, number, one_of
from tamis.exceptions import InvalidParameter, InvalidTarget, NotCertified
from tamis.svm.curves.curve import ValidationCurve
from tamis.svm.curves.errors import ABSOLUTE, SQUARED, mean_curve
from tamis.svm.curves.scores import check_scoring, scorer
from tamis.svm.curves.steps import curve_of
from tamis.svm.inputs import (
    FARTHEST_OUTPUT,
    RANGE,
    RISING,
    check_new_rows,
    check_numbers,
    check_rows,
    check_size,
    encode_classes,
    weigh_classes,
    weigh_samples,
    within,
)
from tamis.svm.kernels import KernelEstimator
from tamis.svm.machine import class_pairs, vote_counts, vote_values
from tamis.svm.path.follow import ACCEPTED, SolutionPath
from tamis.svm.path.problems import PathFold, pairwise_paths, tube_path


class RegularizationPath(KernelEstimator):
    """Solutions for all C of a range."""

    lambda_range: tuple[float, float]

    _constraints: ClassVar[Constraints] = {"lambda_range": RISING}

    def _lambda(self, C: float) -> float:
        low, high = self.lambda_range
        if not (is_real(C) and C > 0 and low * (1 - 1e-9) <= 1 / C <= high * (1 + 1e-9)):
            raise InvalidParameter(
                f"{type(self).__name__} knows C from {1 / high:.6g} to {1 / low:.6g}; got {C!r}. "
                "Fit with another lambda_range (lambda = 1 / C)."
            )
        return 1.0 / C

    def _keep(self, paths: list[SolutionPath], definite: bool) -> None:
        """Set what is known of the paths, and warn if it is not what is promised."""
        lams = [segment.lam * path.lam_unit for path in paths for segment in path.segments]
        self.breakpoints_ = 1.0 / np.unique(np.concatenate(lams))[::-1]
        self.violation_ = max(p.violation for p in paths)
        self.n_repairs_ = sum(p.n_repairs for p in paths)
        reached, doubt = max(p.reached for p in paths), ""
        if not self.violation_ <= ACCEPTED or reached > self.lambda_range[0]:  # nor if it is NaN
            doubt = (
                f"reached lambda = {reached:.4g} with a violation of the optimality conditions of "
                f"{self.violation_:.1e} lambda; the path below is not vouched for. Scale the "
                "columns, or use GridC."
            )
        elif not definite:
            doubt = (
                "has a kernel with negative eigenvalues: the path satisfies the optimality "
                "conditions, which others may do better. Use a positive definite kernel, such as "
                "poly with coef0 >= 0."
            )
        if doubt:
            warn(f"{type(self).__name__} {doubt}", NotCertified, stacklevel=3)


class SVCPath(ClassifierMixin, RegularizationPath):
    """The support vector classifier for every C at once.

    With ``lambda = 1 / C`` and ``x = lambda alpha`` the solution is piecewise affine in lambda
    (Hastie et al. 2004). The path is followed from event to event, so that the classifier of any C
    of the range is exact, not interpolated between fits. Several classes are treated one against
    one, as in :class:`sklearn.svm.SVC`, with a common C.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"}, default="rbf"
    gamma : float, "scale" or "auto", default="scale"
    degree : int, default=3
    coef0 : float, default=0.0
    lambda_range : tuple of two floats, default=(2**-8, 2**9)
        Smallest and largest lambda; C goes from ``1 / lambda_range[1]`` to ``1 / lambda_range[0]``.
    class_weight : dict, "balanced" or None, default=None

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    breakpoints_ : ndarray
        Increasing values of C at which the solution changes its course, all pairs of classes.
    margin_set_sizes_ : list of ndarray
        For each pair of classes the number of samples on the margin between its breakpoints.
    violation_ : float
        Largest violation of the optimality conditions, relative to lambda, at the checkpoints.
    n_repairs_ : int
        How often a checkpoint had to correct the path.

    Notes
    -----
    Where no sample is on the margin the intercept is not unique; it is put in the middle of what is
    allowed, as LIBSVM does. Samples of one class that coincide share their coefficient. Duplicates
    with opposite labels, linear dependence and ties are handled; a constant kernel gives a constant
    classifier.

    References
    ----------
    T. Hastie, S. Rosset, R. Tibshirani and J. Zhu, "The entire regularization path for the support
    vector machine", JMLR 5 (2004). C.-J. Ong, S.-Y. Shao and J.-B. Yang, "An improved algorithm for
    the solution of the regularization path of support vector machine", IEEE TNN 21 (2010).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = SVCPath("linear").fit(scale(X[:100]), y[:100])
    >>> (path.predict(scale(X[:100]), C=0.1) == y[:100]).mean().round(2)
    np.float64(0.97)
    """

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        lambda_range: tuple[float, float] = RANGE,
        class_weight: dict[Any, float] | str | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.lambda_range = lambda_range
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Follow the path of every pair of classes; sample weights multiply C."""
        X, y = check_rows(self, X, y)
        name = type(self).__name__
        check_size(name, len(X))
        self.classes_, target = encode_classes(name, y)
        weight = weigh_samples(name, sample_weight, X)
        bounds = weigh_classes(name, self.class_weight, y, weight)
        self._machines = pairwise_paths(self._resolve(X), X, target, bounds, self.lambda_range)
        self.pairs_ = class_pairs(len(self.classes_))
        solutions = [path.solution for path in self._machines.paths]
        self.margin_set_sizes_ = [solution.margin_set_sizes for solution in solutions]
        self._keep(solutions, all(gram.definite for gram in self._machines.grams))
        return self

    def decision_function(self, X: ArrayLike, C: float = 1.0) -> Array:
        """Decision values at ``C``: one column per class, or one value for two classes."""
        X = check_new_rows(self, X)
        lam = self._lambda(C)
        with np.errstate(over="ignore"):
            f = within(self._machines.outputs(X, lam) / lam, FARTHEST_OUTPUT)
        return f[:, 0] if len(self.classes_) == 2 else vote_values(f, len(self.classes_))

    def predict(self, X: ArrayLike, C: float = 1.0) -> NDArray[Any]:
        """Classes at ``C``."""
        X = check_new_rows(self, X)
        h = self._machines.outputs(X, self._lambda(C))
        return self.classes_[vote_counts(h >= 0, len(self.classes_)).argmax(axis=1)]

    def dual_coef(self, C: float = 1.0) -> Array:
        """Coefficients ``y alpha`` of all samples at ``C``: one row per pair of classes."""
        check_is_fitted(self)
        coef = self._machines.dual_coef(self._lambda(C))
        return coef[0] if len(self.classes_) == 2 else coef

    def intercept(self, C: float = 1.0) -> float | Array:
        """Intercept at ``C``, to go with :meth:`dual_coef` and the kernel as it is."""
        check_is_fitted(self)
        b = self._machines.intercepts(self._lambda(C))
        return float(b[0]) if len(self.classes_) == 2 else b

    def curve(
        self, X: ArrayLike, y: ArrayLike, scoring: str | tuple[str, float] = "error"
    ) -> ValidationCurve:
        """The exact validation curve over C on a validation set."""
        X = check_new_rows(self, X)
        check_scoring(type(self).__name__, scoring, len(self.classes_))
        target = np.searchsorted(self.classes_, y)
        target = np.minimum(target, len(self.classes_) - 1)
        if not np.array_equal(self.classes_[target], y):
            raise InvalidTarget(
                f"{type(self).__name__}.curve needs the classes it was fitted with, "
                f"{self.classes_.tolist()}; y has others."
            )
        return curve_of(
            PathFold(self._machines, X, target).steps(scoring), *scorer(scoring), "folds"
        )[0]


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

    _constraints: ClassVar[Constraints] = {"epsilon": number(least=0)}

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
        X, y = check_rows(self, X, y)
        name = type(self).__name__
        y = check_numbers(name, y)
        check_size(name, 2 * len(X))
        weight = weigh_samples(name, sample_weight, X)
        if len(X) < 2:
            raise InvalidParameter(f"{name} needs at least 2 samples; got {len(X)} sample.")
        path = tube_path(self._resolve(X), X, y, weight, self.epsilon, self.lambda_range)
        self._tube = path
        self._keep([path.solution], path.gram.definite)
        return self

    def predict(self, X: ArrayLike, C: float = 1.0) -> Array:
        """Predictions at ``C``."""
        X = check_new_rows(self, X)
        return self._tube.predict(X, self._lambda(C))

    def dual_coef(self, C: float = 1.0) -> Array:
        """Coefficients of all samples at ``C``."""
        check_is_fitted(self)
        return self._tube.dual_coef(self._lambda(C))

    def curve(self, X: ArrayLike, y: ArrayLike, scoring: str = SQUARED) -> ValidationCurve:
        """The exact mean squared ("mse") or absolute ("mae") error over C on a validation set."""
        X = check_new_rows(self, X)
        errors = {"scoring": one_of(SQUARED, ABSOLUTE)}
        check_values(f"{type(self).__name__}.curve", errors, scoring=scoring)
        return mean_curve([self._tube.errors(X, np.asarray(y, float), scoring)], np.ones(1))[0]
