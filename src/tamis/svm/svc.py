"""The regularization path of the support vector classifier."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from tamis._arrays import Array
from tamis.exceptions import InvalidTarget
from tamis.folds.rows import MANY_CLASSES
from tamis.svm.curves.curve import ValidationCurve
from tamis.svm.curves.scores import check_scoring, scorer
from tamis.svm.curves.steps import curve_of
from tamis.svm.kernels import resolve_kernel
from tamis.svm.limits import FARTHEST_OUTPUT, check_weights, within
from tamis.svm.pairs import pairwise_paths
from tamis.svm.path.base import RANGE, RegularizationPath, check_range, checked
from tamis.svm.path.binary import check_size
from tamis.svm.path.follow import breakpoints
from tamis.svm.votes import class_pairs, vote_counts, vote_values


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
        X, y = checked(self, X, y)
        name = type(self).__name__
        check_range(name, self.lambda_range)
        check_size(name, len(X))
        self.classes_, target = encode(name, y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        bounds = box(name, self.class_weight, y, target, weight)
        kernel = resolve_kernel(name, self.kernel, self.gamma, self.degree, self.coef0, X)
        self._machines = pairwise_paths(kernel, X, target, bounds, self.lambda_range)
        self.pairs_ = class_pairs(len(self.classes_))
        solutions = [path.solution for path in self._machines.paths]
        self.breakpoints_ = breakpoints(solutions)
        self.margin_set_sizes_ = [solution.margin_set_sizes for solution in solutions]
        self._vouch(solutions, all(gram.definite for gram in self._machines.grams))
        return self

    def decision_function(self, X: ArrayLike, C: float = 1.0) -> Array:
        """Decision values at ``C``: one column per class, or one value for two classes."""
        X = self._rows(X)
        lam = self._lambda(C)
        with np.errstate(over="ignore"):
            f = within(self._machines.outputs(X, lam) / lam, FARTHEST_OUTPUT)
        return f[:, 0] if len(self.classes_) == 2 else vote_values(f, len(self.classes_))

    def predict(self, X: ArrayLike, C: float = 1.0) -> NDArray[Any]:
        """Classes at ``C``."""
        X = self._rows(X)
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
        X = self._rows(X)
        check_scoring(type(self).__name__, scoring, len(self.classes_))
        target = np.searchsorted(self.classes_, y)
        target = np.minimum(target, len(self.classes_) - 1)
        if not np.array_equal(self.classes_[target], y):
            raise InvalidTarget(
                f"{type(self).__name__}.curve needs the classes it was fitted with, "
                f"{self.classes_.tolist()}; y has others."
            )
        return curve_of(self._machines.steps(X, target, scoring), *scorer(scoring), "folds")[0]


def encode(name: str, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Classes and class numbers; one class alone cannot be separated from anything."""
    # whether large numbers are whole is looked at by a cast
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.filterwarnings("ignore", MANY_CLASSES, UserWarning)
        check_classification_targets(y)
    classes, target = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InvalidTarget(
            f"{name} needs samples of at least two classes; y has 1 class, {classes[0]!r}."
        )
    return classes, target


def box(
    name: str,
    class_weight: dict[Any, float] | str | None,
    y: NDArray[Any],
    target: NDArray[np.int64],
    weight: Array,
) -> Array:
    """Upper bounds of x: sample weight times class weight."""
    check_weights(name, weight)
    classes = np.unique(y)
    per_class = compute_class_weight(class_weight, classes=classes, y=y)
    with np.errstate(over="ignore"):
        bounds = weight * per_class[target]
    check_weights(name, bounds)
    present = np.bincount(target, bounds)
    if (present <= 0).any():
        raise InvalidTarget(
            f"{name} needs samples of positive weight in every class; class "
            f"{classes[int(present.argmin())]!r} has none."
        )
    return bounds
