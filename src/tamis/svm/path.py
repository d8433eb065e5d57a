"""The regularization path of the support vector classifier."""

from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from tamis.exceptions import InvalidParameter, InvalidTarget
from tamis.svm._base import RANGE, RegularizationPath, check_range
from tamis.svm._binary import binary_path, check_size
from tamis.svm._steps import Blocks, Steps, Vote, curve_of, label_steps, order_steps, vote_steps
from tamis.svm.certificate import shifted, uncertainty
from tamis.svm.curve import ValidationCurve
from tamis.svm.kernels import Array, Gram, resolve_kernel
from tamis.svm.scores import check_scoring, scorer


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
    elbow_sizes_ : list of ndarray
        For each pair of classes the number of samples on the margin in each stretch of its path.
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
        X, y = validate_data(self, X, y, dtype=np.float64)
        owner = type(self).__name__
        check_range(owner, self.lambda_range)
        check_size(owner, len(X))
        self.classes_, target = encode(owner, y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        bounds = box(owner, self, X, y, target, sample_weight)
        kernel = resolve_kernel(
            owner, self.kernel, self.gamma, self.degree, self.coef0, X, sample_weight
        )
        self._fit(kernel, X, target, bounds)
        return self

    def _fit(
        self,
        kernel: Any,
        X: Array,
        target: NDArray[np.int64],
        bounds: Array,
        bracketed: bool = False,
    ) -> None:
        self.pairs_: list[tuple[int, int]] = []
        self._members, self._grams, self._paths = [], [], []
        for i, j in combinations(range(int(target.max()) + 1), 2):
            member = np.flatnonzero(((target == i) | (target == j)) & (bounds > 0))
            part = X[np.ix_(member, member)] if kernel.name == "precomputed" else X[member]
            gram = Gram(kernel, part)
            sign = np.where(target[member] == j, 1.0, -1.0)
            self._paths.append(
                binary_path(gram, sign, bounds[member], self.lambda_range, bracketed)
            )
            self.pairs_.append((i, j))
            self._members.append(member)
            self._grams.append(gram)
        self._n_samples = len(X)
        self._summarise()

    def _summarise(self) -> None:
        walks = [p.walk for p in self._paths]
        lams = [s.lam for w in walks for s in w.stretches]
        self.breakpoints_ = 1.0 / np.unique(np.concatenate(lams))[::-1]
        self.elbow_sizes_ = [
            np.concatenate(
                [((s.x > 0) & (s.x < w.upper[s.variables])).sum(axis=1)[1:] for s in w.stretches]
            )
            for w in walks
        ]
        self._vouch(walks)

    def _pair_rows(self, k: int, X: Array) -> Array:
        return self._grams[k].rows(X[:, self._members[k]] if self.kernel == "precomputed" else X)

    def _outputs(self, X: Array, lam: float) -> Array:
        """h = lambda f of every pair."""
        columns = []
        for k, path in enumerate(self._paths):
            w, b = path.weights(lam)
            h = self._pair_rows(k, X) @ w + b
            columns.append(np.where(np.abs(h) <= path.band, 0.0, h))
        return np.column_stack(columns)

    def decision_function(self, X: ArrayLike, C: float = 1.0) -> Array:
        """Decision values at ``C``: one column per class, or one value for two classes."""
        X = self._rows(X)
        lam = self._lambda(C)
        f = self._outputs(X, lam) / lam
        return f[:, 0] if len(self.classes_) == 2 else votes(f, self.pairs_, len(self.classes_))

    def predict(self, X: ArrayLike, C: float = 1.0) -> NDArray[Any]:
        """Classes at ``C``."""
        X = self._rows(X)
        h = self._outputs(X, self._lambda(C))
        if len(self.classes_) == 2:
            return self.classes_[(h[:, 0] >= 0).astype(int)]
        count = np.zeros((len(X), len(self.classes_)))
        for k, (i, j) in enumerate(self.pairs_):
            count[np.arange(len(X)), np.where(h[:, k] >= 0, j, i)] += 1
        return self.classes_[count.argmax(axis=1)]

    def dual_coef(self, C: float = 1.0) -> Array:
        """Coefficients ``y alpha`` of all samples at ``C``: one row per pair of classes."""
        check_is_fitted(self)
        lam = self._lambda(C)
        coef = np.zeros((len(self.pairs_), self._n_samples))
        for k, path in enumerate(self._paths):
            coef[k, self._members[k]] = path.weights(lam)[0] / lam
        return coef[0] if len(self.classes_) == 2 else coef

    def intercept(self, C: float = 1.0) -> float | Array:
        """Intercept at ``C``, to go with :meth:`dual_coef` and the kernel as it is."""
        check_is_fitted(self)
        lam = self._lambda(C)
        b = []
        for gram, path in zip(self._grams, self._paths, strict=True):
            w, own = path.weights(lam)
            shift = gram.means @ w
            if gram.kernel.name == "linear":  # its rows are taken from the mean of the samples
                shift += gram.origin @ (w @ gram.X)
            b.append((own - shift) / lam)
        return b[0] if len(self.classes_) == 2 else np.array(b)

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
        return curve_of(self._steps(X, target, scoring), *scorer(scoring), "folds")[0]

    def _steps(
        self,
        X: Array,
        target: NDArray[np.int64],
        scoring: object,
        ways: tuple[int, ...] = (0,),
        own: Any = None,
    ) -> list[Steps]:
        """Correct predictions along the path: as they are (0), at best (1) and at worst (-1).

        ``own`` is the kernel of the points with themselves, where it is precomputed.
        """
        rows = [self._pair_rows(k, X) for k in range(len(self._paths))]
        blocks: list[Blocks] = [p.outputs(r) for p, r in zip(self._paths, rows, strict=True)]
        bounds: list[Any] = [None] * len(blocks)
        if any(ways):
            for k, path in enumerate(self._paths):
                part = X[:, self._members[k]] if self.kernel == "precomputed" else X
                bounds[k] = uncertainty(path, self._grams[k].norms(part, rows[k], own))
        return [self._judge(blocks, bounds, target, scoring, way) for way in ways]

    def _judge(
        self,
        blocks: list[Blocks],
        bounds: list[Any],
        target: NDArray[np.int64],
        scoring: object,
        way: int,
    ) -> Steps:
        if len(self.pairs_) > 1:
            ballots = [
                Vote(i, j, b, p.band, e)
                for (i, j), b, p, e in zip(self.pairs_, blocks, self._paths, bounds, strict=True)
            ]
            return vote_steps(ballots, target, len(self.classes_), way)
        sign = np.where(target == 1, 1.0, -1.0)
        moved = shifted(blocks[0], bounds[0], sign, way) if way else blocks[0]
        band = self._paths[0].band
        if scoring == "roc_auc":
            return order_steps(moved, target, 1e-2 * band)
        return label_steps(moved, target, band)


def votes(f: Array, pairs: list[tuple[int, int]], n_classes: int) -> Array:
    """One value per class: its votes, and its bounded confidence to separate ties, as in SVC."""
    count = np.zeros((len(f), n_classes))
    confidence = np.zeros((len(f), n_classes))
    for k, (i, j) in enumerate(pairs):
        count[np.arange(len(f)), np.where(f[:, k] >= 0, j, i)] += 1
        confidence[:, j] += f[:, k]
        confidence[:, i] -= f[:, k]
    return count + confidence / (3 * (np.abs(confidence) + 1))


def encode(owner: str, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Classes and class numbers; one class alone cannot be separated from anything."""
    check_classification_targets(y)
    classes, target = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InvalidTarget(
            f"{owner} needs samples of at least two classes; y has 1 class, {classes[0]!r}."
        )
    return classes, target


def box(
    owner: str,
    estimator: Any,
    X: Array,
    y: NDArray[Any],
    target: NDArray[np.int64],
    sample_weight: ArrayLike | None,
) -> Array:
    """Upper bounds of x: sample weight times class weight."""
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if (weight < 0).any():
        raise InvalidParameter(f"{owner} needs sample weights that are not negative.")
    classes = np.unique(y)
    per_class = compute_class_weight(estimator.class_weight, classes=classes, y=y)
    bounds = weight * per_class[target]
    present = np.bincount(target, bounds)
    if (present <= 0).any():
        raise InvalidTarget(
            f"{owner} needs samples of positive weight in every class; class "
            f"{classes[int(present.argmin())]!r} has none."
        )
    return bounds
