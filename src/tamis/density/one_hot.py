"""Contingency counts on a device: products of indicators of levels.

Indicators are single precision, of which sums of ones are exact below 2^24; more rows are counted
in parts, whose counts are added up as whole numbers.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._namespace import host, move, namespace, note, placed, spare_memory
from tamis.density.chance import Chance

#: Rows up to which single precision counts exactly.
EXACT = 1 << 24
#: Share of a device's free memory up to which indicators are kept from one pivot to the next, and
#: bytes where it has none of its own; more are made anew for each, which takes ten times as long.
KEPT_SHARE, KEPT = 0.5, 8 << 30
#: Columns are given as many levels as the largest where that makes no more than so many times as
#: many: sums over levels are then rows of a matrix, made on the device. A level without samples
#: adds nothing to them.
EVEN = 2
#: Indicators that are made at a time, two gigabytes: of a million rows blocks of a quarter of that
#: took more than twice as long as one product (9.2 and 3.9 ms on an H200).
BLOCK = 1 << 29


class OneHotLevels:
    """Coded columns on the device that is asked for, as indicators of their levels.

    Parameters
    ----------
    codes : array of shape (n_columns, n_samples)
        Levels, of any type of whole numbers.
    n_levels : array of shape (n_columns,)
    table : array
        A value for each count from 0 on, of which sums are asked for.
    """

    def __init__(self, codes: NDArray[Any], n_levels: NDArray[Any], table: Array):
        self.n_samples = codes.shape[1]
        self._own_levels = n_levels
        widest = int(n_levels.max(initial=1))
        self._even = widest * len(n_levels) <= EVEN * int(n_levels.sum())
        self._n_levels = np.full(len(n_levels), widest) if self._even else n_levels
        self.starts = np.cumsum(self._n_levels) - self._n_levels
        self.levels = int(self._n_levels.sum())
        self._codes = placed(codes.astype(np.int32))
        self._like = placed(np.zeros(1))
        self._values = move(table, self._like)
        self._columns = np.repeat(np.arange(len(n_levels)), self._n_levels)
        self._level = np.arange(self.levels) - np.repeat(self.starts, self._n_levels)

    @cached_property
    def _kept(self) -> list[Any] | None:
        spare = spare_memory()
        room = KEPT if spare is None else KEPT_SHARE * spare
        return list(self._blocks()) if 4 * self.levels * self.n_samples <= room else None

    def sums(self, pivot: NDArray[np.intp], n_pivot: int, chance: Chance | None = None) -> Array:
        """Sum of the table's values at the counts of each column and a pivot, on the host.

        Values of its own may be given for each level of the pivot.
        """
        # half the bytes on their way: a pivot of a million rows takes longer to send than to count
        return self._sums(placed(pivot.astype(np.int32)), n_pivot, chance)

    def sums_with(self, j: int) -> Array:
        """The same with one of the columns as the pivot, which is there already."""
        return self._sums(self._codes[j, :], int(self._n_levels[j]))

    def _sums(self, pivot: Any, n_pivot: int, chance: Chance | None = None) -> Array:
        xp = namespace(self._like)
        values, start = self._values, 0
        if chance is not None:
            values = move(chance.values, self._like)
            start = move(chance.start[:, None], self._like, exact=True)
        parts = [
            xp.sum(looked_up(values, counts if chance is None else counts + start), axis=0)
            for counts in self._counts(pivot, n_pivot)
        ]
        found = xp.concat(parts)
        if self._even:
            return host(xp.sum(xp.reshape(found, (len(self._n_levels), -1)), axis=1))
        return np.asarray(np.add.reduceat(host(found), self.starts))

    def _counts(self, pivot: Any, n_pivot: int) -> Iterator[Any]:
        """Samples of each level of the pivot and, those of a column after another, each level."""
        xp = namespace(self._like)
        levels = placed(np.arange(n_pivot, dtype=np.int32)[:, None])
        own = xp.astype(pivot[None, :] == levels, xp.float32)
        note("scores", self._like)
        for block in self._kept or self._blocks():
            yield counted(own, block.T)

    def _blocks(self) -> Iterator[Any]:
        """Indicators of some levels at a time, of shape (levels, samples)."""
        size = max(1, BLOCK // max(1, self.n_samples))
        for first in range(0, self.levels, size):
            yield self._indicators(slice(first, first + size))

    def _indicators(self, some: slice) -> Any:
        xp = namespace(self._like)
        columns = move(self._columns[some], self._like, exact=True)
        level = placed(self._level[some].astype(np.int32))
        return xp.astype(xp.take(self._codes, columns, axis=0) == level[:, None], xp.float32)

    def beside(
        self, rows: slice, columns: slice, classes: list[slice], chance: Chance | None = None
    ) -> list[Array]:
        """For pairs of columns, sums of the table's values at counts of classes, less of all.

        Or less the values for the levels of the second columns, and for those of the first.
        """
        note("scores", self._like)
        values = self._values
        one, other = (self._indicators(self._levels_of(part)) for part in (rows, columns))
        total, sums = 0, 0.0
        for members in classes:
            found = counted(one[:, members], other[:, members].T)
            total, sums = total + found, sums + looked_up(values, found)
        without = [looked_up(values, total)]
        if chance is not None:
            expected = move(chance.values, self._like)
            own, others = (self._offsets(chance, part) for part in (rows, columns))
            places = total + others[None, :], total + own[:, None]
            without = [looked_up(expected, place) for place in places]
        first, second = (self._membership(part) for part in (rows, columns))
        return [host(first.T @ (sums - other) @ second) for other in without]

    def _offsets(self, chance: Chance, part: slice) -> Any:
        """Where the values for each level begin; a level that only makes columns even has none."""
        some = self._levels_of(part)
        columns, level = self._columns[some], self._level[some]
        there = level < self._own_levels[columns]
        first = (np.cumsum(self._own_levels) - self._own_levels)[columns]
        offsets = np.where(there, chance.start[np.where(there, first + level, 0)], 0)
        return move(offsets, self._like, exact=True)

    def _levels_of(self, part: slice) -> slice:
        ends = np.append(self.starts, self.levels)
        return slice(int(ends[part.start]), int(ends[part.stop]))

    def _membership(self, part: slice) -> Any:
        """1 where a level is one of a column: products with it are sums over the levels."""
        own = self._columns[self._levels_of(part)][:, None] == np.arange(part.start, part.stop)
        return move(own.astype(float), self._like)


def counted(left: Any, right: Any) -> Any:
    """Product of indicators as whole numbers."""
    xp, found = namespace(left), None
    for first in range(0, left.shape[1], EXACT - 1):
        rows = slice(first, min(first + EXACT - 1, left.shape[1]))
        part = xp.astype(left[:, rows] @ right[rows, :], xp.int64)
        found = part if found is None else found + part
    return found


def looked_up(values: Any, counts: Any) -> Any:
    """A table's values at some counts."""
    xp = namespace(values)
    return xp.reshape(xp.take(values, xp.reshape(counts, (-1,))), counts.shape)
