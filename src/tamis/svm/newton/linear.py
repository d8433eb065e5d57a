"""Linear machines by the weights of their columns."""

from typing import Any

import numpy as np

from tamis._namespace import host, move, namespace
from tamis.svm.kernels import EPS
from tamis.svm.newton.losses import SquaredLoss
from tamis.svm.newton.spaces import FeatureSpace, MachinePoint, filled, too_large

#: Times that weights are put right by what rounding left: beside a column 1e10 times as large the
#: first brings a small one from 1e-5 to 1e-10, and the second says that it did.
CORRECTIONS = 2
#: Distance of outputs from their targets, beside targets of the size of 1, below which multipliers
#: are not told by it, but by the weights that they sum to: both then have 8 digits.
REACHED = 1e-8


class LinearSpace(FeatureSpace):
    """All linear functions, by the weights of the columns: for those that kernels lose digits of.

    In a kernel matrix columns are squared, and multipliers of the size of C must cancel in sums
    that are the weights; here neither happens, for a decomposition in each step. Of landmarks it
    is the functions whose weights are a sum of these rows.
    """

    def __init__(self, X: Any, own: Any = None):
        xp = namespace(X)
        with np.errstate(over="ignore"):
            squares = xp.sum(X * X, axis=0)
        if not bool(xp.all(xp.isfinite(squares))):
            raise too_large("linear")
        #: Directions of the landmarks, which features are along, and what makes these of them.
        self.basis = self.made_of = None
        if own is not None:
            U, sizes, V = xp.linalg.svd(own, full_matrices=False)
            there = _above_rounding(sizes, max(own.shape))
            self.basis = V.T * xp.astype(there, X.dtype)
            self.made_of = xp.where(there, U, xp.zeros_like(U)) / xp.where(
                there, sizes, xp.ones_like(sizes)
            )
            X = X @ self.basis
        super().__init__(X.T)

    def columns(self, w: Any) -> Any:
        """The weight of each column."""
        return w if self.basis is None else self.basis @ w

    def coefficients(self, w: Any) -> Any:
        """The weight of each landmark."""
        return self.made_of @ w

    def _weights(self, A: Any, target: Any) -> Any:
        xp = namespace(A)
        U, sizes, V = xp.linalg.svd(A, full_matrices=False)
        # directions that active rows do not have, but for rounding: w is a sum of rows
        there = _above_rounding(sizes, max(A.shape))
        sizes, nothing = xp.where(there, sizes, xp.ones_like(sizes)), xp.zeros_like(sizes)
        w = U @ xp.where(there, (V @ target) / (sizes + 1 / sizes), nothing)
        for _ in range(CORRECTIONS):
            left = U.T @ (A @ (target - w @ A) - w)
            self.off = U @ xp.where(there, left / sizes / (sizes + 1 / sizes), nothing)
            w = w + self.off
        return w

    def multipliers(
        self, ridge: Any, loss: SquaredLoss, sides: Any, found: MachinePoint, intercept: bool
    ) -> Any:
        """Those of the rows, of which the weights are a sum."""
        xp, active = namespace(ridge), np.flatnonzero(host(sides))
        off = loss.targets(sides) - found.outputs
        off = xp.where(sides != 0, off, xp.zeros_like(off))
        reached = float(xp.max(xp.abs(off))) < REACHED
        if not reached or not 0 < len(active) <= self.F.shape[0] + intercept:
            return off / ridge
        own = self._summing(active, found.beta, intercept)
        return off / ridge if own is None else filled(own, active, ridge)

    def _summing(self, active: Any, w: Any, intercept: bool) -> Any:
        """The multipliers of active rows whose sum is w; None where more than one set has it."""
        xp = namespace(w)
        A = xp.take(self.F, move(active, w, exact=True), axis=1)
        if intercept:  # they sum to 0 too
            A = xp.concat([A, xp.zeros_like(A[:1, :]) + xp.max(xp.abs(A))])
            w = xp.concat([w, xp.zeros_like(w[:1])])
        U, sizes, V = xp.linalg.svd(A, full_matrices=False)
        if not bool(_above_rounding(sizes, max(A.shape))[-1]):
            return None
        return V.T @ ((U.T @ w) / sizes)


def _above_rounding(sizes: Any, n: int) -> Any:
    """Which singular values are not what rounding makes of 0, in sums of n numbers."""
    return sizes > n * EPS * sizes[0]
