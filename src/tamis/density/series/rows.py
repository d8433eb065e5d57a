"""Scores of rows from sums of the kernel over each class, and their change with each column."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._namespace import namespace
from tamis.density.parzen import PosteriorScore
from tamis.density.series.table import (
    Alteration,
    KernelStrip,
    ScaledColumns,
    StripPass,
    coefficients,
    in_memory,
)


def class_changes(
    table: ScaledColumns,
    change: Alteration,
    bounds: NDArray[np.intp],
    score: PosteriorScore,
    *,
    others: bool = False,
) -> tuple[float, Array]:
    """Return a score summed over rows, and its changes when a column is removed or added.

    The score is computed from the sums of the kernel over each class.

    Parameters
    ----------
    bounds : array of int
        Class k has the rows from bounds[k] to bounds[k + 1].
    others : bool
        Whether a row is left out of its own sums.
    """
    (base,), changes = in_memory(lambda: _ClassPass(table, change, bounds, score, others).run())
    return float(base), changes


class _Sums(NamedTuple):
    """Kernel matrix between a strip of rows and the rows of a class, and its row sums.

    Each row of the matrix is divided by its greatest value. ``total`` contains the row sums of the
    divided matrix, and ``log`` the logarithms of the row sums of the original matrix.
    """

    block: slice
    kernel: Any
    total: Any
    log: Any


class _ClassPass(StripPass):
    """Single pass over strips of rows. A strip is compared with all rows, class by class."""

    def __init__(
        self,
        table: ScaledColumns,
        change: Alteration,
        bounds: NDArray[np.intp],
        score: PosteriorScore,
        others: bool,
    ):
        super().__init__(table, change)
        self.score, self.others = score, others
        self.classes = [slice(int(a), int(b)) for a, b in pairwise(bounds)]

    def strip(self, rows: slice) -> Any:
        """Return the score of a strip of rows, and its change by each column of ``order``."""
        xp, Z = namespace(self.table.Z), self.table.Z
        strip = self.exponents.strip(rows, slice(0, Z.shape[0]))
        exponents = self._of_others(strip, strip.exponents())
        sums = [self._sums(exponents, block) for block in self.classes]
        logs = xp.stack([s.log for s in sums], axis=1)
        base = self.score.of_base(rows, logs)
        parts = [xp.reshape(base, (1,))]
        parts += [
            self.score.of_ratios(rows, logs, self._ratios(rows, sums, index))
            for index in range(len(self.batches))
        ]
        parts += [
            xp.reshape(self.score.of_base(rows, self._steep(strip, exponents, j)) - base, (1,))
            for j in self.altered[self.steep]
        ]
        return xp.concat(parts)

    def _of_others(self, strip: KernelStrip, exponents: Any) -> Any:
        """Set the exponent of each row with itself to minus infinity, if ``others`` is True."""
        if not self.others:
            return exponents
        xp, block = namespace(exponents), strip.rows
        own = exponents[:, block]
        exponents[:, block] = xp.where(strip.same(), xp.full_like(own, -np.inf), own)
        return exponents

    def _sums(self, exponents: Any, block: slice) -> _Sums:
        xp = namespace(exponents)
        part = exponents[:, block]
        greatest = xp.max(part, axis=1, keepdims=True)
        kernel = xp.exp(part - greatest)
        total = xp.sum(kernel, axis=1, keepdims=True)
        return _Sums(block, kernel, total, (xp.log(total) + greatest)[:, 0])

    def _ratios(self, rows: slice, sums: list[_Sums], index: int) -> list[Any]:
        """Return the relative changes of the kernel sums by the columns of a batch, for each class.

        With the kernel M and its row sums s, they are (v s + (1 + v) Mv + Σ_k c_k w_k M w_k) / s.
        """
        batch, T = self.batches[index], self.stacks.both(index)[0]
        count = len(batch.columns)
        own = T[rows, :]
        v = own[:, :count]
        factors = coefficients(batch.rank, self.way)
        found = []
        for part in sums:
            product = part.kernel @ T[part.block, :]
            change = v * part.total + (v + 1) * product[:, :count]
            product *= own
            for k in range(1, batch.rank):
                change += float(factors[k]) * product[:, k * count : (k + 1) * count]
            change /= part.total
            found.append(change)
        return found

    def _steep(self, strip: KernelStrip, exponents: Any, column: Any) -> Any:
        """Return the logarithms of the kernel sums after a single column is altered.

        The result has the shape (rows, classes).
        """
        xp = namespace(exponents)
        apart = self.exponents.apart(int(column), strip.rows, strip.columns)
        if self.way > 0 and self.exponents.is_far[column]:
            changed = self._of_others(strip, strip.without(apart))
        else:
            changed = exponents + self.way * apart  # an exponent of minus infinity stays the same
        return xp.stack([self._sums(changed, block).log for block in self.classes], axis=1)
