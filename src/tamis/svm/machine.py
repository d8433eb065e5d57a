"""Fitted SVMs in a common form: outputs as kernel sums, and multipliers of the training rows."""

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, SVR, NuSVC, NuSVR

from tamis._arrays import Array, Mask
from tamis._namespace import host
from tamis.exceptions import InvalidParameter
from tamis.svm.kernels import Kernel

KERNELS = ("rbf", "linear", "poly")
#: Largest number of steps of LIBSVM, in total and per row. The larger limit applies. LIBSVM usually
#: needs 10 to 100 steps per row, and several thousand with a large C. The limit built into LIBSVM
#: is ten times as high and takes a second for an SVM of 20 rows.
MOST_STEPS, STEPS_A_ROW = 1_000_000, 1_000

# A multiplier counts as on its bound if it differs from the bound by at most this share of it.
# LIBSVM sets such a multiplier exactly to its bound, but the bound computed here is a rounded
# product of C and the weights.
_ON_BOUND = 1e-9


class KernelMachine(NamedTuple):
    """SVM with the outputs ``K(X, centres) @ weights + offsets``.

    There is one output for each pair of classes, one for each class, or a single output.
    """

    kernel: Kernel  # as returned by :func:`function_of`
    centres: Array  # (n_support, n_columns): support vectors
    weights: Array  # (n_support, n_outputs): weight of each support vector in each output
    offsets: Array  # (n_outputs,): intercept of each output

    def grams(self, X: Array) -> Array:
        """Return the squared distances to all centres (RBF), or ``gamma <x, centre> + coef0``."""
        if self.kernel.name == "rbf":
            # distances are computed as differences of squares, which lose digits far from 0
            middle = self.centres.mean(axis=0)
            return euclidean_distances(X - middle, self.centres - middle, squared=True)
        return self.kernel.gamma * (X @ self.centres.T) + self.kernel.coef0

    def values(self, grams: Array) -> Array:
        """Return the kernel values for the results of :meth:`grams`, which may be overwritten."""
        if self.kernel.name == "rbf":
            grams *= -self.kernel.gamma
            return np.exp(grams, out=grams)
        return grams**self.kernel.degree


@dataclass(frozen=True)
class Multipliers:
    """One output of an SVM as a sum over its training rows, f(x) = Σ βᵢ k(xᵢ, x) + b.

    Attributes
    ----------
    rows : array of int
        Numbers of the training rows.
    beta : array
        The signed multiplier of each row: αᵢyᵢ, or αᵢ - αᵢ* in regression.
    box : array
        The upper bound of each multiplier.
    target : array
        The target of each row: y in regression, or the label 1 or -1 in classification. The label
        is also the sign of the multiplier.
    tube : float or None
        Half-width of the tube in regression, None for classification.
    coef : array or None
        Column weights of a linear SVM with squared losses. They equal Σ βᵢ xᵢ, but this sum is
        inaccurate if C is large, or if columns are large or far from 0.
    C : float
        The upper bound for a row of weight 1.
    """

    rows: NDArray[np.intp]
    beta: Array
    box: Array
    target: Array
    tube: float | None = None
    coef: Array | None = None
    C: float = 1.0

    @property
    def regression(self) -> bool:
        """Whether the SVM is a regressor."""
        return self.tube is not None

    @property
    def sizes(self) -> Array:
        """The multipliers α without sign. In regression, this is α + α*, and α or α* is 0."""
        return np.abs(self.beta)

    @property
    def free(self) -> Mask:
        """Mask of the margin set: the rows whose multiplier is strictly between 0 and its bound."""
        return (self.beta != 0) & (self.sizes < (1 - _ON_BOUND) * self.box)

    def on_support(self) -> "Multipliers":
        """Return the same SVM with only the support vectors as rows."""
        support = self.beta != 0
        parts = {name: getattr(self, name)[support] for name in ("rows", "beta", "box", "target")}
        return replace(self, **parts)

    def dual(self, norm2: float) -> float:
        """Return the value of the dual objective, given the squared norm ‖w‖² of the SVM.

        At the optimum it equals the primal objective ‖w‖²/2 + Σ boxᵢ ξᵢ. For other multipliers it
        is smaller.
        """
        wide = 0.0 if self.tube is None else self.tube * float(self.sizes.sum())
        return float(self.beta @ self.target) - wide - norm2 / 2

    def slack(self, outputs: Array) -> float:
        """Return the sum of losses Σ boxᵢ ξᵢ at the intercept that minimises it.

        ``outputs`` are the outputs of the rows without an intercept.
        """
        low = high = self.target - outputs
        if self.tube is not None:
            low, high = low - self.tube, high + self.tube
            raised = lowered = np.ones(len(low), dtype=bool)
        else:
            raised = self.target > 0
            lowered = ~raised
        # an intercept below low or above high has a loss: the distance times the bound of the row
        ends = np.concatenate([low[raised], high[lowered]])
        weights = np.concatenate([self.box[raised], self.box[lowered]])
        rising = np.argsort(ends, kind="stable")
        slopes = np.cumsum(weights[rising]) - self.box[raised].sum()
        b = ends[rising[min(int(np.searchsorted(slopes, 0.0)), len(ends) - 1)]]
        short, over = np.maximum(low - b, 0), np.maximum(b - high, 0)
        return float(self.box[raised] @ short[raised] + self.box[lowered] @ over[lowered])


def most_steps(n_rows: int) -> int:
    """Return the largest number of steps to allow LIBSVM.

    Without a limit, scikit-learn runs LIBSVM until it converges. This may never happen if weights
    or kernel values differ by many orders of magnitude.
    """
    return max(MOST_STEPS, STEPS_A_ROW * n_rows)


def kernel_machine(fitted: Any) -> KernelMachine | None:
    """Return a fitted SVM, or several one-vs-rest SVMs, as a :class:`KernelMachine`.

    Return None for other estimators.
    """
    if isinstance(fitted, OneVsRestClassifier):
        parts = [kernel_machine(one) for one in fitted.estimators_]
        return _stacked([p for p in parts if p]) if parts and all(parts) else None
    known = isinstance(fitted, SVC | NuSVC | SVR | NuSVR) or is_newton(fitted)
    if not known or fitted.kernel not in KERNELS:
        return None
    kernel = function_of(fitted)
    if is_newton(fitted) and fitted.kernel == "linear":
        # the output is a sum over columns, because a sum over rows loses digits far from 0
        weights = fitted.coef_.T
        return KernelMachine(kernel, np.eye(len(weights)), weights, fitted.intercept_)
    centres = host(fitted.support_vectors_).astype(np.float64, copy=False)
    return KernelMachine(kernel, centres, _weights(fitted), fitted.intercept_)


def function_of(fitted: Any) -> Kernel:
    """Return the kernel of a fitted SVM, with a numeric gamma.

    A linear kernel is returned with a gamma and a degree of 1, and without coef0.
    """
    if fitted.kernel == "linear":
        return Kernel("linear", 1.0, 1, 0.0)
    gamma = fitted._kernel.gamma if is_newton(fitted) else float(fitted._gamma)
    return Kernel(fitted.kernel, gamma, fitted.degree, fitted.coef0)


def is_newton(estimator: Any) -> bool:
    """Return whether an estimator is an SVM with squared losses (NewtonSVC or NewtonSVR)."""
    from tamis.svm.newton import NewtonMachine  # imports this module

    return isinstance(estimator, NewtonMachine)


def _one_for_each_output(fitted: Any, y: NDArray[Any], weight: Array) -> list[Multipliers]:
    """Return the multipliers of each output of an SVM with squared losses.

    They have no upper bounds.
    """
    rows, betas = np.flatnonzero(weight > 0), host(fitted.dual_coef_)
    if hasattr(fitted, "classes_"):
        several = fitted.classes_ if len(fitted.classes_) > 2 else fitted.classes_[1:]
        targets = [np.where(y == label, 1.0, -1.0) for label in several]
        tube = None
    else:
        targets, tube = [np.asarray(y, dtype=float)], float(fitted.epsilon)
    found = []
    coefs = fitted.coef_ if fitted.kernel == "linear" else [None] * len(betas)
    for own, target, coef in zip(betas, targets, coefs, strict=True):
        beta, box = np.zeros(len(y)), np.full(len(rows), np.inf)
        beta[fitted.support_] = own
        found.append(Multipliers(rows, beta[rows], box, target[rows], tube, coef))
    return found


def multipliers(fitted: Any, y: NDArray[Any], weight: Array | None = None) -> list[Multipliers]:
    """Return the multipliers of each output of a fitted SVM.

    An SVC has an output for each pair of classes, and an SVR has a single output.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> X, y = np.array([[0.0], [1.0], [2.0], [5.0]]), np.array([0, 0, 1, 2])
    >>> [machine.rows.tolist() for machine in multipliers(SVC(kernel="linear").fit(X, y), y)]
    [[0, 1, 2], [0, 1, 3], [2, 3]]
    """
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    # LIBSVM drops rows without weight and renumbers the others
    trained = np.flatnonzero(weight > 0)
    if hasattr(fitted, "classes_"):
        check_weighted(type(fitted).__name__, y, weight)
    if is_newton(fitted):
        return _one_for_each_output(fitted, y, weight)
    weights = _weights(fitted)
    beta = np.zeros((weights.shape[1], len(y)))
    beta[:, trained[fitted.support_]] = weights.T
    if not hasattr(fitted, "classes_"):
        box, target = fitted.C * weight[trained], np.asarray(y, dtype=float)[trained]
        tube = float(fitted.epsilon)
        return [Multipliers(trained, beta[0, trained], box, target, tube, C=fitted.C)]
    codes = np.searchsorted(fitted.classes_, y)
    box = fitted.C * weight * np.asarray(fitted.class_weight_)[codes]
    found = []
    pairs = class_pairs(len(fitted.classes_))
    for index, pair in enumerate(pairs):
        rows = trained[np.isin(codes[trained], pair)]
        # for two classes, scikit-learn reverses the signs of LIBSVM
        positive = pair[1] if len(pairs) == 1 else pair[0]
        target = np.where(codes[rows] == positive, 1.0, -1.0)
        found.append(Multipliers(rows, beta[index, rows], box[rows], target, C=fitted.C))
    return found


def check_weighted(name: str, y: NDArray[Any], weight: Array) -> None:
    """Refuse a class whose rows all have weight 0. LIBSVM would drop it and print a message."""
    if len(lost := np.setdiff1d(y, y[weight > 0])):
        raise InvalidParameter(
            f"{name} needs samples of positive weight in every class; class "
            f"{str(lost[0])!r} has none. Drop its rows, or give them weight."
        )


def _weights(fitted: Any) -> Array:
    """Return the weights of the support vectors, with a column for each output.

    For more than two classes, an output belongs to a pair of classes a < b. LIBSVM stores the
    weight of a vector of class a in row b - 1, and of a vector of class b in row a.
    """
    stored = host(fitted.dual_coef_)
    if is_newton(fitted) or len(getattr(fitted, "classes_", ())) <= 2:
        return stored.T
    ends = np.cumsum(fitted.n_support_)
    parts = [slice(end - count, end) for end, count in zip(ends, fitted.n_support_, strict=True)]
    pairs = class_pairs(len(parts))
    weights = np.zeros((ends[-1], len(pairs)))
    for index, (a, b) in enumerate(pairs):
        weights[parts[a], index] = stored[b - 1, parts[a]]
        weights[parts[b], index] = stored[a, parts[b]]
    return weights


def _stacked(machines: list[KernelMachine]) -> KernelMachine | None:
    """Combine several SVMs with the same kernel into one with several outputs.

    Return None if the kernels differ. Centres that several SVMs share are merged.
    """
    first = machines[0]
    if any(m.kernel != first.kernel for m in machines):
        return None
    everything = np.concatenate([m.centres for m in machines])
    centres, index = np.unique(everything, axis=0, return_inverse=True)
    weights = np.zeros((len(centres), len(machines)))
    start = 0
    for output, machine in enumerate(machines):
        stop = start + len(machine.centres)
        np.add.at(weights[:, output], index.ravel()[start:stop], machine.weights[:, 0])
        start = stop
    offsets = np.concatenate([m.offsets for m in machines])
    return first._replace(centres=centres, weights=weights, offsets=offsets)


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """Return all pairs of class numbers in the order of LIBSVM.

    >>> class_pairs(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return list(combinations(range(n_classes), 2))


def vote_counts(second: Mask, n_classes: int) -> Array:
    """Return the number of votes for each class in a one-vs-one vote.

    ``second`` states whether each pair of classes votes for its second class. Pairs are along the
    last axis of ``second``, and classes along the last axis of the result. The winner is the
    ``argmax``. Ties go to the lowest class, as in LIBSVM. Decision values of ``SVC`` are positive
    for the *first* class of a pair. For them, ``second`` is ``~(decisions > 0)``.

    >>> vote_counts(np.array([[True, True, False]]), 3)
    array([[0., 2., 1.]])
    """
    votes = np.zeros((*second.shape[:-1], n_classes))
    for index, (a, b) in enumerate(class_pairs(n_classes)):
        votes[..., a] += ~second[..., index]
        votes[..., b] += second[..., index]
    return votes


def vote_values(f: Array, n_classes: int) -> Array:
    """Return a decision value for each class, as in SVC.

    It is the number of votes plus a confidence between -1/3 and 1/3, which breaks ties. ``f`` has a
    column for each pair of classes, with positive values for the second class.
    """
    confidence = np.zeros((len(f), n_classes))
    for index, (a, b) in enumerate(class_pairs(n_classes)):
        confidence[:, b] += f[:, index]
        confidence[:, a] -= f[:, index]
    return vote_counts(f >= 0, n_classes) + confidence / (3 * (np.abs(confidence) + 1))
