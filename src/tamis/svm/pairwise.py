"""The machines inside a fitted SVC or SVR: one for each pair of classes, or the regression."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis.svm.kernels import Kernel, resolve_kernel

# A multiplier this near to its bound, as a share of it, is on it.
_ON_BOUND = 1e-9


@dataclass(frozen=True)
class Machine:
    """One machine: f(x) = Σ βᵢ k(xᵢ, x) + b over the rows that it was trained on.

    Attributes
    ----------
    rows : array of int
        Its rows of the training table.
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
    def multipliers(self) -> Array:
        """α, or α + α*, of which one is 0."""
        return np.abs(self.beta)

    @property
    def free(self) -> Mask:
        """Which multipliers are strictly between 0 and their bound: the elbow."""
        return (self.beta != 0) & (self.multipliers < (1 - _ON_BOUND) * self.box)

    def on_support(self) -> "Machine":
        """The same machine as one of its support vectors alone."""
        held = self.beta != 0
        return Machine(self.rows[held], self.beta[held], self.box[held], self.regression)


def machines(model: Any, y: NDArray[Any], weight: Array | None = None) -> list[Machine]:
    """The machines of a fitted SVC (by pairs of classes, in LIBSVM's order) or SVR.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> X, y = np.array([[0.0], [1.0], [2.0], [5.0]]), np.array([0, 0, 1, 2])
    >>> [machine.rows.tolist() for machine in machines(SVC(kernel="linear").fit(X, y), y)]
    [[0, 1, 2], [0, 1, 3], [2, 3]]
    """
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    # LIBSVM leaves out rows without weight, and counts without them
    trained = np.flatnonzero(weight > 0)
    beta = np.zeros((model.dual_coef_.shape[0], len(y)))
    beta[:, trained[model.support_]] = model.dual_coef_
    if not hasattr(model, "classes_"):
        return [Machine(trained, beta[0, trained], model.C * weight[trained], True)]
    codes = np.searchsorted(model.classes_, y)
    box = model.C * weight * np.asarray(model.class_weight_)[codes]
    found = []
    for a, b in combinations(range(len(model.classes_)), 2):
        rows = trained[np.isin(codes[trained], (a, b))]
        # the multiplier of class a against class b is in row b - 1, that of b against a in row a
        place = np.where(codes[rows] == a, b - 1, a)
        found.append(Machine(rows, beta[place, rows], box[rows], False))
    return found


def kernel_of_model(owner: str, model: Any, X: Array) -> Kernel:
    """The kernel of a model that was fitted on X, its numbers resolved."""
    return resolve_kernel(owner, model.kernel, model.gamma, model.degree, model.coef0, X)
