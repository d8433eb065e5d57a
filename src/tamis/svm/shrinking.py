"""Linear support vector machines of a table whose columns leave, each solved from the one before.

A column x that leaves takes xx' from the Gram matrix, and the optimum moves a little: most rows
keep their roles (free, on the bound, without weight), so that the new multipliers follow from one
linear system, whose inverse changes by a matrix of rank one. Where roles change, rows exchange them
one by one; where that does not end, pairs of multipliers are optimised as LIBSVM does it. Whatever
the way, the answer is the optimum to rounding, so that it does not depend on where it began; only
where columns differ by many powers of ten does the solution of the pairs stand as it is.
"""

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset
from tamis.compiled import shrinking as loops
from tamis.compiled.smo import smo
from tamis.svm.machine import Multipliers

# Share of the trace that must be left, and columns that may leave, before the Gram matrix is
# computed anew: subtraction loses two bits at most, and rounding adds up to a few more.
_LEFT, _SUBTRACTED = 0.25, 500
# Columns that leave at once and are taken out one by one.
_FEW = 8
# Gaps to which pairs are optimised before the roles are tried, and the steps that may take.
_GAPS, _MOST_STEPS = (1e-3, 1e-6, 1e-9, 1e-11), 200_000


class ShrinkingMachine:
    """One linear machine of rows whose columns leave.

    Parameters
    ----------
    machine : Multipliers
        Where it begins: the rows, bounds and targets, and multipliers for some columns.
    X : array of shape (n_rows_of_the_table, n_columns)
    """

    #: Multipliers, what each row does and on which side, and the inverse of the free ones.
    beta: Array
    state: NDArray[np.int8]
    side: Array
    R: Array

    def __init__(self, machine: Multipliers, X: Array):
        self.machine, self.X = machine, X
        self.regression, self.tube = machine.regression, machine.tube or 0.0
        self._take(machine.beta.copy())
        self._outputs = np.empty_like(self.beta)
        self.columns: Subset = np.empty(0, dtype=np.intp)

    def squared_weights(self, columns: Subset) -> Array:
        """Squared weights of sorted columns at the optimum."""
        sound = self._follow(columns) or self._invert()
        if not (sound and self._settle()):
            self._anew()
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
        """Compute the inverse anew; whether any row is free."""
        self.R = np.empty((len(self.beta) + 1,) * 2)
        box, roles = self.machine.box, (self.state, self.side)
        return bool(loops.invert(self.K, self.R, *roles, box, self.beta))

    # -- columns ---------------------------------------------------------------------------------

    def _follow(self, columns: Subset) -> bool:
        """Bring the matrices to these columns; whether the inverse kept its digits."""
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
        """Store columns row by row, so that a row of them is read at once."""
        self.columns = columns
        self.stored = np.ascontiguousarray(self.X[np.ix_(self.machine.rows, columns)])
        self.column_at, self.place_of = columns.copy(), np.full(self.X.shape[1], -1)
        self.place_of[columns] = np.arange(len(columns))
        self._sum()

    def _sum(self) -> None:
        """The Gram matrix from the columns themselves."""
        part = self.stored[:, : len(self.columns)]
        self.K = part @ part.T
        self.trace = self.whole = float(np.trace(self.K))
        self.n_subtracted = 0

    # -- from pairs --------------------------------------------------------------------------------

    def _anew(self) -> None:
        """Optimise pairs until the roles that they leave are those of the optimum.

        Where columns are so far apart that these are lost in rounding, or rows depend on each
        other, the pairs themselves are the answer.
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
        for gap in _GAPS:
            task = (self.K, points, signs, upper, wanted, x, h)
            _, taken = smo(*task, gap, _MOST_STEPS - n_steps)
            n_steps += taken
            self._take((signs * x).reshape(-1, n).sum(axis=0))
            if (self._invert() and self._settle()) or n_steps >= _MOST_STEPS:
                return

    def _take(self, beta: Array) -> None:
        """Multipliers of all rows, and the roles that they have."""
        self.beta, size = beta, np.abs(beta)
        self.side = np.sign(beta) if self.regression else self.machine.target.copy()
        self.state = np.full(len(beta), loops.FREE, dtype=np.int8)
        self.state[size == 0] = loops.ZERO
        self.state[size >= self.machine.box] = loops.BOUND
