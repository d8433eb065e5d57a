"""Regularization paths of support vector classification and regression."""

from dataclasses import dataclass
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


@dataclass(eq=False, repr=False, kw_only=True)
class RegularizationPath(KernelEstimator):
    """Base class of SVMs that are solved for every C in a range."""

    _constraints: ClassVar[Constraints] = {"lambda_range": RISING}

    lambda_range: tuple[float, float] = RANGE

    def _lambda(self, C: float) -> float:
        low, high = self.lambda_range
        if not (is_real(C) and C > 0 and low * (1 - 1e-9) <= 1 / C <= high * (1 + 1e-9)):
            raise InvalidParameter(
                f"{type(self).__name__} needs C from {1 / high:.6g} to {1 / low:.6g}; got {C!r}. "
                "Fit with another lambda_range (lambda = 1 / C)."
            )
        return 1.0 / C

    def _set_facts(self, paths: list[SolutionPath], definite: bool) -> None:
        """Set the fitted attributes that describe the paths, and warn if they are not certified."""
        lams = [segment.lam * path.lam_unit for path in paths for segment in path.segments]
        self.breakpoints_ = 1.0 / np.unique(np.concatenate(lams))[::-1]
        self.violation_ = max(p.violation for p in paths)
        self.n_repairs_ = sum(p.n_repairs for p in paths)
        reached, doubt = max(p.reached for p in paths), ""
        if not self.violation_ <= ACCEPTED or reached > self.lambda_range[0]:  # also true for NaN
            doubt = (
                f"reached lambda = {reached:.4g} with a violation of the optimality conditions of "
                f"{self.violation_:.1e} lambda; smaller values of lambda are not "
                "certified. Scale the columns, or use GridC."
            )
        elif not definite:
            doubt = (
                "has a kernel with negative eigenvalues: the path satisfies the optimality "
                "conditions, but better solutions may exist. Use a positive definite kernel, such "
                "as poly with coef0 >= 0."
            )
        if doubt:
            warn(f"{type(self).__name__} {doubt}", NotCertified, stacklevel=3)


@dataclass(eq=False, repr=False, kw_only=True)
class SVCPath(ClassifierMixin, RegularizationPath):
    """Support vector classifiers for every C in a range.

    Let ``lambda = 1 / C``, and ``x = lambda alpha`` with the multipliers ``alpha``. The solution
    ``x`` is piecewise affine in lambda (Hastie et al. 2004). The path is followed from one
    breakpoint to the next. So the classifier at any C in the range is exact, not interpolated
    between fits. With more than two classes, each pair of classes has its own classifier, as in
    :class:`sklearn.svm.SVC`. All pairs use the same C.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"}, default="rbf"
        The kernel, as in SVC.
    gamma : float, "scale" or "auto", default="scale"
        Width of the kernels "rbf" and "poly", as in SVC.
    degree : int, default=3
        Degree of the kernel "poly".
    coef0 : float, default=0.0
        Constant of the kernel "poly".
    lambda_range : tuple of two floats, default=(2**-8, 2**9)
        Smallest and largest lambda. C goes from ``1 / lambda_range[1]`` to ``1 / lambda_range[0]``.
    class_weight : dict, "balanced" or None, default=None
        Weights that multiply C for each class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    breakpoints_ : ndarray
        Increasing values of C at which the slope of the solution changes for any pair of classes.
    margin_set_sizes_ : list of ndarray
        For each pair of classes, the number of samples on the margin after each breakpoint.
    violation_ : float
        Largest violation of the optimality conditions, relative to lambda, at the checkpoints.
    n_repairs_ : int
        Number of repairs. A repair moves the path back to the optimum.

    Notes
    -----
    If no sample is on the margin, the intercept is not unique. The middle of the allowed interval
    is used, as in LIBSVM. Duplicate samples of the same class are merged. Their common coefficient
    is divided among them in proportion to their weights. Duplicates with opposite labels, linear
    dependence and ties are handled. A constant kernel yields a constant classifier.

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

    class_weight: dict[Any, float] | str | None = None

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Follow the path of every pair of classes. Sample weights multiply C."""
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
        self._set_facts(solutions, all(gram.definite for gram in self._machines.grams))
        return self

    def decision_function(self, X: ArrayLike, C: float = 1.0) -> Array:
        """Return the decision values at ``C``.

        With two classes, there is a single value per row. Otherwise, there is a column for each
        class.
        """
        X = check_new_rows(self, X)
        lam = self._lambda(C)
        with np.errstate(over="ignore"):
            f = within(self._machines.outputs(X, lam) / lam, FARTHEST_OUTPUT)
        return f[:, 0] if len(self.classes_) == 2 else vote_values(f, len(self.classes_))

    def predict(self, X: ArrayLike, C: float = 1.0) -> NDArray[Any]:
        """Predict the class of each row at ``C``."""
        X = check_new_rows(self, X)
        h = self._machines.outputs(X, self._lambda(C))
        return self.classes_[vote_counts(h >= 0, len(self.classes_)).argmax(axis=1)]

    def dual_coef(self, C: float = 1.0) -> Array:
        """Return the coefficients ``y alpha`` of all samples at ``C``, for each pair of classes."""
        check_is_fitted(self)
        coef = self._machines.dual_coef(self._lambda(C))
        return coef[0] if len(self.classes_) == 2 else coef

    def intercept(self, C: float = 1.0) -> float | Array:
        """Return the intercept at ``C``, to be used with :meth:`dual_coef` and the kernel."""
        check_is_fitted(self)
        b = self._machines.intercepts(self._lambda(C))
        return float(b[0]) if len(self.classes_) == 2 else b

    def curve(
        self, X: ArrayLike, y: ArrayLike, scoring: str | tuple[str, float] = "error"
    ) -> ValidationCurve:
        """Return the exact validation curve over C for a validation set ``X``, ``y``."""
        X = check_new_rows(self, X)
        check_scoring(type(self).__name__, scoring, len(self.classes_))
        target = np.searchsorted(self.classes_, y)
        target = np.minimum(target, len(self.classes_) - 1)
        if not np.array_equal(self.classes_[target], y):
            raise InvalidTarget(
                f"{type(self).__name__}.curve needs the classes it was fitted with, "
                f"{self.classes_.tolist()}; y has other values."
            )
        return curve_of(
            PathFold(self._machines, X, target).steps(scoring), *scorer(scoring), "folds"
        )[0]


@dataclass(eq=False, repr=False, kw_only=True)
class SVRPath(RegressorMixin, RegularizationPath):
    """Support vector regression for every C in a range.

    Each sample has two variables, one for errors above the tube and one for errors below it. With
    these variables, regression is the same parametric programme as classification, with the linear
    term ``lambda (+-y - epsilon)``.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"}, default="rbf"
        The kernel, as in SVR.
    gamma, degree, coef0, lambda_range
        As in :class:`SVCPath`.
    epsilon : float, default=0.1
        Half-width of the tube. Errors inside the tube have no loss.

    Attributes
    ----------
    breakpoints_ : ndarray
        Increasing values of C at which the slope of the solution changes.
    violation_ : float
        Largest violation of the optimality conditions, relative to lambda and the spread of y.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> path = SVRPath("linear", epsilon=5.0).fit(X[:60], y[:60])
    >>> path.predict(X[:2], C=100.0).round(1)
    array([145.6, 116.3])
    """

    _constraints: ClassVar[Constraints] = {"epsilon": number(least=0)}

    epsilon: float = 0.1

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Follow the path. Sample weights multiply C."""
        X, y = check_rows(self, X, y)
        name = type(self).__name__
        y = check_numbers(name, y)
        check_size(name, 2 * len(X))
        weight = weigh_samples(name, sample_weight, X)
        if len(X) < 2:
            raise InvalidParameter(f"{name} needs at least 2 samples; got {len(X)} sample.")
        path = tube_path(self._resolve(X), X, y, weight, self.epsilon, self.lambda_range)
        self._tube = path
        self._set_facts([path.solution], path.gram.definite)
        return self

    def predict(self, X: ArrayLike, C: float = 1.0) -> Array:
        """Predict the target of each row at ``C``."""
        X = check_new_rows(self, X)
        return self._tube.predict(X, self._lambda(C))

    def dual_coef(self, C: float = 1.0) -> Array:
        """Return the dual coefficient of each sample at ``C``."""
        check_is_fitted(self)
        return self._tube.dual_coef(self._lambda(C))

    def curve(self, X: ArrayLike, y: ArrayLike, scoring: str = SQUARED) -> ValidationCurve:
        """Return the exact validation curve over C for a validation set ``X``, ``y``.

        ``scoring`` is "mse" for the mean squared error, or "mae" for the mean absolute error.
        """
        X = check_new_rows(self, X)
        errors = {"scoring": one_of(SQUARED, ABSOLUTE)}
        check_values(f"{type(self).__name__}.curve", errors, scoring=scoring)
        return mean_curve([self._tube.errors(X, np.asarray(y, float), scoring)], np.ones(1))[0]
