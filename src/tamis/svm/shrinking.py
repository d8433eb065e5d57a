"""Linear SVMs of a table whose columns are removed. Each SVM is solved from the previous one.

Removing a column x subtracts xx' from the Gram matrix, and the optimum changes little. The role of
a row is whether its multiplier is 0, on its bound, or free (between the two). Most rows keep their
roles. If all rows keep their roles, the new multipliers are the solution of a linear system whose
inverse changes by a matrix of rank one. Otherwise, the roles are changed one row at a time. If this
does not converge, pairs of multipliers are optimised as in LIBSVM. In each case the result is the
optimum up to rounding, so it does not depend on the start. The exception is a table whose columns
differ by many powers of ten. For such a table, the result of optimising pairs is final.
"""

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset
from tamis.compiled import shrinking as loops
from tamis.compiled.smo import smo
from tamis.svm.machine import Multipliers

# The Gram matrix is computed from scratch when its trace falls below the share _LEFT of its old
# value, or when _SUBTRACTED columns have been subtracted. Until then, subtraction loses at most two
# bits, and rounding a few more.
_LEFT, _SUBTRACTED = 0.25, 500
# If more columns than this are removed at once, the Gram matrix is computed from scratch.
_FEW = 8
# Tolerances for optimising pairs, which are tried in this order until the roles are right. The last
# number is the largest number of steps in total.
_TOLERANCES, _MOST_STEPS = (1e-3, 1e-6, 1e-9, 1e-11), 200_000


class ShrinkingMachine:
    """A linear SVM that is trained again at low cost after columns are removed.

    Parameters
    ----------
    start : Multipliers
        Rows, bounds and targets of the SVM, and the multipliers to start from.
    X : array of shape (n_rows_of_the_table, n_columns)
    """

    beta: Array  # multiplier of each row
    state: NDArray[np.int8]  # role of each row: free, zero or on its bound
    side: Array  # sign of each multiplier
    R: Array  # inverse of the linear system of the free rows

    def __init__(self, start: Multipliers, X: Array):
        self.machine, self.X = start, X
        self.regression, self.tube = start.regression, start.tube or 0.0
        self._take(start.beta.copy())
        self._outputs = np.empty_like(self.beta)
        self.columns: Subset = np.empty(0, dtype=np.intp)

    def squared_weights(self, columns: Subset) -> Array:
        """Train the SVM on the given sorted columns, and return their squared weights."""
        sound = self._follow(columns) or self._invert()
        if not (sound and self._settle()):
            self._optimise_pairs()
        found: Array = loops.squared_weights(self.stored, self.place_of, columns, self.beta)
        return found

    def _settle(self) -> bool:
        beta = np.empty_like(self.beta)
        box, target = self.machine.box, self.machine.target
        roles = (self.state, self.side, box, target, self.tube, self.regression)
        found: bool = loops.settle(self.K, self.R, *roles, beta, self._outputs)
        if found:
            self.beta = beta
        return found

    def _invert(self) -> bool:
        """Compute the inverse from scratch. Return whether any row is free."""
        self.R = np.empty((len(self.beta) + 1,) * 2)
        box, roles = self.machine.box, (self.state, self.side)
        return bool(loops.invert(self.K, self.R, *roles, box, self.beta))

    # -- columns ---------------------------------------------------------------------------------

    def _follow(self, columns: Subset) -> bool:
        """Update the matrices to the given columns. Return whether the inverse stays accurate."""
        if not len(self.columns):
            self._open(columns)
            return False
        inside = self.stored, self.column_at, self.place_of, self.columns
        n_gone, share, sound = loops.without_columns(
            self.K, self.R, self.state, *inside, columns, _FEW
        )
        if n_gone < 0:
            self._open(columns)
            return False
        self.columns = columns
        self.trace -= share
        self.n_subtracted += n_gone
        if self.n_subtracted > _SUBTRACTED or self.trace < _LEFT * self.whole:
            self._sum()
        return bool(sound)

    def _open(self, columns: Subset) -> None:
        """Copy the given columns, with contiguous rows, and compute the Gram matrix."""
        self.columns = columns
        self.stored = np.ascontiguousarray(self.X[np.ix_(self.machine.rows, columns)])
        self.column_at, self.place_of = columns.copy(), np.full(self.X.shape[1], -1)
        self.place_of[columns] = np.arange(len(columns))
        self._sum()

    def _sum(self) -> None:
        """Compute the Gram matrix from scratch."""
        part = self.stored[:, : len(self.columns)]
        self.K = part @ part.T
        self.trace = self.whole = float(np.trace(self.K))
        self.n_subtracted = 0

    # -- pairs of multipliers ----------------------------------------------------------------------

    def _optimise_pairs(self) -> None:
        """Optimise pairs of multipliers until each row has the role that it has at the optimum.

        Rounding may hide the roles if columns have very different scales or rows are linearly
        dependent. In this case, the result of optimising pairs is final.
        """
        box, target = self.machine.box, self.machine.target
        n = len(box)
        if self.regression:
            signs, points = np.repeat([1.0, -1.0], n), np.tile(np.arange(n), 2)
            wanted = np.concatenate([target - self.tube, -target - self.tube])
            x = np.concatenate([np.maximum(self.beta, 0), np.maximum(-self.beta, 0)])
        else:
            signs, points, wanted = target, np.arange(n), np.ones(n)
            x = np.abs(self.beta)
        upper = box[points]
        h, n_steps = self.K @ self.beta, 0
        for tolerance in _TOLERANCES:
            task = (self.K, points, signs, upper, wanted, x, h)
            n_steps += smo(*task, tolerance, _MOST_STEPS - n_steps)[1]
            self._take((signs * x).reshape(-1, n).sum(axis=0))
            if (self._invert() and self._settle()) or n_steps >= _MOST_STEPS:
                return

    def _take(self, beta: Array) -> None:
        """Set the multipliers, and from them the role (zero, free, bound) and sign of each row."""
        self.beta, size = beta, np.abs(beta)
        self.side = np.sign(beta) if self.regression else self.machine.target.copy()
        self.state = np.full(len(beta), loops.FREE, dtype=np.int8)
        self.state[size == 0] = loops.ZERO
        self.state[size >= self.machine.box] = loops.BOUND
