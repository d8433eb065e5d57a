"""One view of fitted kernel machines: their outputs as functions, their multipliers on the rows."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, SVR, NuSVC, NuSVR

from tamis._arrays import Array, Mask
from tamis.exceptions import InvalidParameter
from tamis.svm.kernels import Kernel
from tamis.svm.votes import class_pairs

KERNELS = ("rbf", "linear", "poly")

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

    @property
    def function(self) -> Kernel:
        """The kernel as a function of rows."""
        return Kernel(self.kernel, self.gamma, self.degree, self.coef0)

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
    regression : bool
        Whether it is a support vector regression.
    """

    rows: NDArray[np.intp]
    beta: Array
    box: Array
    regression: bool

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
        return Multipliers(self.rows[held], self.beta[held], self.box[held], self.regression)


def kernel_machine(fitted: Any) -> KernelMachine | None:
    """View on a fitted SVM, on one against the rest of several, or None."""
    if isinstance(fitted, OneVsRestClassifier):
        parts = [kernel_machine(one) for one in fitted.estimators_]
        return _stacked([p for p in parts if p]) if parts and all(parts) else None
    if not isinstance(fitted, SVC | NuSVC | SVR | NuSVR) or fitted.kernel not in KERNELS:
        return None
    gamma = float(fitted._gamma)  # the number that "scale" and "auto" became
    centres = np.asarray(fitted.support_vectors_, dtype=np.float64)
    numbers = fitted.kernel, gamma, fitted.degree, fitted.coef0
    return KernelMachine(*numbers, centres, _weights(fitted), fitted.intercept_)


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
    if hasattr(fitted, "classes_") and len(lost := np.setdiff1d(y, y[trained])):
        raise InvalidParameter(
            f"{type(fitted).__name__} needs samples of positive weight in every class; class "
            f"{str(lost[0])!r} has none. Drop its rows, or give them weight."
        )
    weights = _weights(fitted)
    beta = np.zeros((weights.shape[1], len(y)))
    beta[:, trained[fitted.support_]] = weights.T
    if not hasattr(fitted, "classes_"):
        return [Multipliers(trained, beta[0, trained], fitted.C * weight[trained], True)]
    codes = np.searchsorted(fitted.classes_, y)
    box = fitted.C * weight * np.asarray(fitted.class_weight_)[codes]
    found = []
    for index, pair in enumerate(class_pairs(len(fitted.classes_))):
        rows = trained[np.isin(codes[trained], pair)]
        found.append(Multipliers(rows, beta[index, rows], box[rows], False))
    return found


def _weights(fitted: Any) -> Array:
    """Weights of the support vectors in each output, one column for each pair of classes.

    In LIBSVM's layout the weight of a vector of class a against class b is in row b - 1, that of
    one of b against a in row a.
    """
    stored = np.asarray(fitted.dual_coef_)
    if len(getattr(fitted, "classes_", ())) <= 2:
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
