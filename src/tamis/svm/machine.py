"""One view of fitted kernel machines: their outputs as functions, their multipliers on the rows."""

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, SVR, NuSVC, NuSVR

from tamis._arrays import Array, Mask
from tamis._namespace import host
from tamis.exceptions import InvalidParameter
from tamis.svm.kernels import Kernel

KERNELS = ("rbf", "linear", "poly")
#: Steps of LIBSVM: ten to a hundred a row are usual, and some thousand with a large C. By itself
#: it stops after ten times as many, which takes a second for a machine of 20 rows.
MOST_STEPS, STEPS_A_ROW = 1_000_000, 1_000

# A multiplier this near to its bound, as a share of it, is on it: LIBSVM puts it there exactly, and
# the product of C and the weights rounds in the last digits.
_ON_BOUND = 1e-9


class KernelMachine(NamedTuple):
    """Outputs ``K(X, centres) @ weights + offsets``; of several classes one for each pair."""

    kernel: str
    gamma: float
    degree: int
    coef0: float
    centres: Array  # (m, d)
    weights: Array  # (m, k)
    offsets: Array  # (k,)

    def grams(self, X: Array) -> Array:
        """Squared distances (RBF) or ``gamma <x, s> + coef0`` to all centres."""
        if self.kernel == "rbf":
            # distances are found by differences of squares, which an offset would spoil
            middle = self.centres.mean(axis=0)
            return _squared_distances(X - middle, self.centres - middle)
        gamma, coef0 = (1.0, 0.0) if self.kernel == "linear" else (self.gamma, self.coef0)
        return gamma * (X @ self.centres.T) + coef0

    def values(self, grams: Array) -> Array:
        """Kernel that belongs to them; distances are overwritten."""
        if self.kernel == "rbf":
            grams *= -self.gamma
            return np.exp(grams, out=grams)
        return grams if self.kernel == "linear" else grams**self.degree


@dataclass(frozen=True)
class Multipliers:
    """One output of a machine by its training rows: f(x) = Σ βᵢ k(xᵢ, x) + b.

    Attributes
    ----------
    rows : array of int
        The rows of the training table that it was trained on.
    beta : array
        The signed multiplier of each of these rows: αᵢyᵢ, or αᵢ - αᵢ* in regression.
    box : array
        The upper bound of each multiplier.
    target : array
        What each output should be: 1 or -1 (the sign that its multiplier can have), or y.
    tube : float or None
        The half width of the tube of a support vector regression, None for classes.
    coef : array or None
        The weights of the columns of a linear machine of squared losses. They are Σ βᵢ xᵢ, but
        with a large C, or columns that are large or far from 0, such sums have no digits left.
    C : float
        The bound of a row of weight 1.
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
        """Whether it is a support vector regression."""
        return self.tube is not None

    @property
    def sizes(self) -> Array:
        """α, or α + α*, of which one is 0."""
        return np.abs(self.beta)

    @property
    def free(self) -> Mask:
        """Which multipliers are strictly between 0 and their bound: the margin set."""
        return (self.beta != 0) & (self.sizes < (1 - _ON_BOUND) * self.box)

    def on_support(self) -> "Multipliers":
        """The same machine as one of its support vectors alone."""
        held = self.beta != 0
        parts = {name: getattr(self, name)[held] for name in ("rows", "beta", "box", "target")}
        return replace(self, **parts)

    def dual(self, norm2: float) -> float:
        """Value of the dual programme, where the machine has this norm.

        With the multipliers of the optimum it is ‖w‖²/2 + Σ boxᵢ ξᵢ, with others less.
        """
        wide = 0.0 if self.tube is None else self.tube * float(self.sizes.sum())
        return float(self.beta @ self.target) - wide - norm2 / 2

    def slack(self, outputs: Array) -> float:
        """Least Σ boxᵢ ξᵢ of these outputs over all intercepts."""
        low = high = self.target - outputs
        if self.tube is not None:
            low, high = low - self.tube, high + self.tube
            raised = lowered = np.ones(len(low), dtype=bool)
        else:
            raised = self.target > 0
            lowered = ~raised
        # each unit of the intercept below low, or above high, costs the bound of the row
        ends = np.concatenate([low[raised], high[lowered]])
        weights = np.concatenate([self.box[raised], self.box[lowered]])
        rising = np.argsort(ends, kind="stable")
        slopes = np.cumsum(weights[rising]) - self.box[raised].sum()
        b = ends[rising[min(int(np.searchsorted(slopes, 0.0)), len(ends) - 1)]]
        short, over = np.maximum(low - b, 0), np.maximum(b - high, 0)
        return float(self.box[raised] @ short[raised] + self.box[lowered] @ over[lowered])


def most_steps(n_rows: int) -> int:
    """Steps after which LIBSVM is stopped, where weights or kernel values differ by many orders.

    By itself scikit-learn lets it run until it converges, which may be never.
    """
    return max(MOST_STEPS, STEPS_A_ROW * n_rows)


def kernel_machine(fitted: Any) -> KernelMachine | None:
    """View on a fitted SVM, on one against the rest of several, or None."""
    if isinstance(fitted, OneVsRestClassifier):
        parts = [kernel_machine(one) for one in fitted.estimators_]
        return _stacked([p for p in parts if p]) if parts and all(parts) else None
    known = isinstance(fitted, SVC | NuSVC | SVR | NuSVR) or is_newton(fitted)
    if not known or fitted.kernel not in KERNELS:
        return None
    function = function_of(fitted)
    numbers = function.name, function.gamma, function.degree, function.coef0
    if is_newton(fitted) and fitted.kernel == "linear":
        # a sum of columns: in one of rows the digits that matter would be lost far from 0
        weights = fitted.coef_.T
        return KernelMachine(*numbers, np.eye(len(weights)), weights, fitted.intercept_)
    centres = host(fitted.support_vectors_).astype(np.float64, copy=False)
    return KernelMachine(*numbers, centres, _weights(fitted), fitted.intercept_)


def function_of(fitted: Any) -> Kernel:
    """The kernel of a fitted machine, with the number that "scale" and "auto" became."""
    gamma = fitted._kernel.gamma if is_newton(fitted) else float(fitted._gamma)
    return Kernel(fitted.kernel, gamma, fitted.degree, fitted.coef0)


def is_newton(estimator: Any) -> bool:
    """Whether it is a machine of squared losses, one output for each class if there are several."""
    from tamis.svm.newton import NewtonMachine  # which is made of this module's parts

    return isinstance(estimator, NewtonMachine)


def _one_for_each_output(fitted: Any, y: NDArray[Any], weight: Array) -> list[Multipliers]:
    """The multipliers of machines of squared losses, which have no upper bounds."""
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
    """The multipliers of a fitted SVC (by pairs of classes, in LIBSVM's order) or SVR.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> X, y = np.array([[0.0], [1.0], [2.0], [5.0]]), np.array([0, 0, 1, 2])
    >>> [machine.rows.tolist() for machine in multipliers(SVC(kernel="linear").fit(X, y), y)]
    [[0, 1, 2], [0, 1, 3], [2, 3]]
    """
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    # LIBSVM leaves out rows without weight, and counts without them
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
        # of two classes scikit-learn turns the signs of LIBSVM round
        positive = pair[1] if len(pairs) == 1 else pair[0]
        target = np.where(codes[rows] == positive, 1.0, -1.0)
        found.append(Multipliers(rows, beta[index, rows], box[rows], target, C=fitted.C))
    return found


def check_weighted(name: str, y: NDArray[Any], weight: Array) -> None:
    """Refuse a class without any weight: LIBSVM does not see it, and prints that it does not."""
    if len(lost := np.setdiff1d(y, y[weight > 0])):
        raise InvalidParameter(
            f"{name} needs samples of positive weight in every class; class "
            f"{str(lost[0])!r} has none. Drop its rows, or give them weight."
        )


def _weights(fitted: Any) -> Array:
    """Weights of the support vectors in each output, one column for each pair of classes.

    In LIBSVM's layout the weight of a vector of class a against class b is in row b - 1, that of
    one of b against a in row a.
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


def _squared_distances(A: Array, B: Array) -> Array:
    found = A @ (-2 * B.T)
    found += np.einsum("ij,ij->i", A, A)[:, None]
    found += np.einsum("ij,ij->i", B, B)
    return np.maximum(found, 0, out=found)


def _stacked(machines: list[KernelMachine]) -> KernelMachine | None:
    """Machines of equal kernels as one with several outputs; shared centres are merged."""
    first = machines[0]
    if any(m[:4] != first[:4] for m in machines):
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
    """Pairs of classes in the order of LIBSVM's machines.

    >>> class_pairs(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return list(combinations(range(n_classes), 2))


def vote_counts(second: Mask, n_classes: int) -> Array:
    """Votes of each class, where ``second`` says whether a machine prefers the second of its pair.

    Machines are along the last axis, classes along the last of the answer; the winner is the
    ``argmax``, of equals the lowest class, as in LIBSVM. Decision values of an ``SVC`` are positive
    for the *first* class of a pair: there ``second`` is ``~(decisions > 0)``.

    >>> vote_counts(np.array([[True, True, False]]), 3)
    array([[0., 2., 1.]])
    """
    votes = np.zeros((*second.shape[:-1], n_classes))
    for index, (a, b) in enumerate(class_pairs(n_classes)):
        votes[..., a] += ~second[..., index]
        votes[..., b] += second[..., index]
    return votes


def vote_values(f: Array, n_classes: int) -> Array:
    """One value per class: its votes, and its bounded confidence to separate ties, as in SVC.

    Decision values ``f`` are positive for the second class of a pair, one column for each pair.
    """
    confidence = np.zeros((len(f), n_classes))
    for index, (a, b) in enumerate(class_pairs(n_classes)):
        confidence[:, b] += f[:, index]
        confidence[:, a] -= f[:, index]
    return vote_counts(f >= 0, n_classes) + confidence / (3 * (np.abs(confidence) + 1))
