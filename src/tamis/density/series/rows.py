"""Kernel sums of every row over classes of rows, as columns leave or enter."""

from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset
from tamis._namespace import host, namespace, note
from tamis.density.series.table import (
    Exponents,
    KernelStrip,
    ScaledColumns,
    Stacks,
    added_up,
    coefficients,
    in_memory,
)


class SumScore(Protocol):
    """What is made of the kernel sums of some rows over each class, summed over the rows.

    Of altered columns it is the score with the column altered less the score before.
    """

    def of_base(self, rows: slice, logs: Any) -> Any:
        """The score before, from the logarithms (rows, classes) of the sums."""
        ...

    def of_ratios(self, rows: slice, logs: Any, ratios: list[Any]) -> Any:
        """From the logarithms (rows, classes) before, and changes over sums (rows, columns)."""
        ...

    def of_logs(self, rows: slice, before: Any, after: Any) -> Any:
        """From the logarithms (rows, classes) before and after, for one column."""
        ...


class ClassChanges(NamedTuple):
    """A score summed over all rows, and what each altered column adds to it."""

    base: float
    changes: Array


def class_changes(
    table: ScaledColumns,
    bounds: NDArray[np.intp],
    members: Subset,
    altered: Subset,
    way: int,
    score: SumScore,
    *,
    others: bool = False,
) -> ClassChanges:
    """Sums over rows of a score, and what each column that leaves (1) or enters (-1) changes.

    Parameters
    ----------
    bounds : array of int
        Class k has the rows from bounds[k] to bounds[k + 1].
    others : bool
        Whether a row has no part in its own sums.
    """
    note("scores", table.Z)

    def found() -> ClassChanges:
        work = _ClassWork(table, bounds, members, altered, way, score, others)
        sums = host(added_up(work.strip, table.Z))
        changes = np.zeros(len(altered))
        changes[work.order] = sums[1:]
        return ClassChanges(float(sums[0]), changes)

    return in_memory(found)


class _Sums(NamedTuple):
    """Kernel of a strip with one class in units of its greatest value, and its row sums."""

    block: slice
    kernel: Any
    total: Any
    log: Any


class _ClassWork:
    """One pass over strips of rows, each against all rows of one class after the other."""

    def __init__(
        self,
        table: ScaledColumns,
        bounds: NDArray[np.intp],
        members: Subset,
        altered: Subset,
        way: int,
        score: SumScore,
        others: bool,
    ):
        self.table, self.altered, self.way, self.score = table, altered, way, score
        self.exponents, self.others = Exponents(table, members), others
        self.classes = [slice(int(a), int(b)) for a, b in pairwise(bounds)]
        self.batches, self.steep = table.plan(altered)
        self.stacks = Stacks(table, altered, self.batches, way)
        self.order = np.concatenate([*(b.columns for b in self.batches), self.steep])

    def strip(self, rows: slice) -> Any:
        """The score, then what each altered column changes, in the order of the work."""
        xp, Z = namespace(self.table.Z), self.table.Z
        strip = self.exponents.strip(rows, slice(0, Z.shape[0]))
        exponents = self._of_others(strip, strip.exponents())
        sums = [self._sums(exponents, block) for block in self.classes]
        logs = xp.stack([s.log for s in sums], axis=1)
        parts = [xp.reshape(self.score.of_base(rows, logs), (1,))]
        parts += [
            self.score.of_ratios(rows, logs, self._ratios(rows, sums, index))
            for index in range(len(self.batches))
        ]
        parts += [
            xp.reshape(self.score.of_logs(rows, logs, self._steep(strip, exponents, j)), (1,))
            for j in self.altered[self.steep]
        ]
        return xp.concat(parts)

    def _of_others(self, strip: KernelStrip, exponents: Any) -> Any:
        """Minus infinity where a row meets itself and has no part in its sums."""
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
        """(v s + (1 + v) Mv + Σ_k c_k w_k M w_k) / s of each class."""
        batch, T = self.batches[index], self.stacks.of(index)
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
        """Logarithms of the sums with one column altered, of shape (rows, classes)."""
        xp = namespace(exponents)
        apart = self.exponents.apart(int(column), strip.rows, strip.columns)
        if self.way > 0 and self.exponents.is_far[column]:
            moved = self._of_others(strip, strip.without(apart))
        else:
            moved = exponents + self.way * apart  # minus infinity stays
        return xp.stack([self._sums(moved, block).log for block in self.classes], axis=1)
