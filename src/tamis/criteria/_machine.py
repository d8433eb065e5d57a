"""A view on fitted kernel machines: centres, weights, offsets and the kernel with its numbers."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, SVR, NuSVC, NuSVR

from tamis._arrays import Array


class KernelMachine(NamedTuple):
    """Outputs ``K(X, centres) @ weights + offsets``."""

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


def _squared_distances(A: Array, B: Array) -> Array:
    found = A @ (-2 * B.T)
    found += np.einsum("ij,ij->i", A, A)[:, None]
    found += np.einsum("ij,ij->i", B, B)
    return np.maximum(found, 0, out=found)


KERNELS = ("rbf", "linear", "poly")


def kernel_machine(fitted: Any) -> KernelMachine | None:
    """View on a fitted SVM, on one against the rest of several, or None."""
    if isinstance(fitted, OneVsRestClassifier):
        parts = [kernel_machine(one) for one in fitted.estimators_]
        return _stacked([p for p in parts if p]) if parts and all(parts) else None
    if not isinstance(fitted, SVC | NuSVC | SVR | NuSVR) or fitted.kernel not in KERNELS:
        return None
    if isinstance(fitted, SVR | NuSVR) or len(fitted.classes_) == 2:
        weights = np.asarray(fitted.dual_coef_).T
    else:
        weights = _pairwise(fitted)
    gamma = float(fitted._gamma)  # the number that "scale" and "auto" became
    centres = np.asarray(fitted.support_vectors_, dtype=np.float64)
    return KernelMachine(
        fitted.kernel, gamma, fitted.degree, fitted.coef0, centres, weights, fitted.intercept_
    )


def _pairwise(fitted: Any) -> Array:
    """Weights of the centres in the decision between each pair of classes (LIBSVM's layout)."""
    ends = np.cumsum(fitted.n_support_)
    parts = [slice(end - count, end) for end, count in zip(ends, fitted.n_support_, strict=True)]
    pairs = [(a, b) for a in range(len(parts)) for b in range(a + 1, len(parts))]
    weights = np.zeros((ends[-1], len(pairs)))
    for place, (a, b) in enumerate(pairs):
        weights[parts[a], place] = fitted.dual_coef_[b - 1, parts[a]]
        weights[parts[b], place] = fitted.dual_coef_[a, parts[b]]
    return weights


def _stacked(machines: list[KernelMachine]) -> KernelMachine | None:
    """Machines of equal kernels as one with several outputs; shared centres are merged."""
    first = machines[0]
    if any(m[:4] != first[:4] for m in machines):
        return None
    everything = np.concatenate([m.centres for m in machines])
    centres, places = np.unique(everything, axis=0, return_inverse=True)
    weights = np.zeros((len(centres), len(machines)))
    start = 0
    for output, machine in enumerate(machines):
        stop = start + len(machine.centres)
        np.add.at(weights[:, output], places.ravel()[start:stop], machine.weights[:, 0])
        start = stop
    offsets = np.concatenate([m.offsets for m in machines])
    return first._replace(centres=centres, weights=weights, offsets=offsets)
