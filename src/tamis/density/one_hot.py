"""Contingency tables on a GPU or other device, computed as products of level indicators.

An indicator is 1 if a row has a level, otherwise 0. Products are in single precision, in which
counts below 2^24 are exact. More rows are counted in chunks, whose counts are added as integers.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._namespace import host, move, namespace, note, placed, spare_memory
from tamis.density.chance import Chance

#: Limit below which counts in single precision are exact.
EXACT = 1 << 24
#: Memory up to which indicators are kept from one pivot to the next, as a share of the device's
#: free memory, and in bytes if the device has no memory of its own. Larger indicators are computed
#: again for each pivot, which takes ten times as long.
KEPT_SHARE, KEPT = 0.5, 8 << 30
#: All columns are padded to the largest number of levels, if the total number of levels grows by at
#: most this factor. Sums over levels are then row sums of a matrix, computed on the device. The
#: added levels are empty and contribute 0.
EVEN = 2
#: Number of indicators that are computed at a time (2 GB). Smaller blocks are slower on large GPUs.
BLOCK = 1 << 29


class OneHotLevels:
    """Level indicators of coded columns on the current device.

    Parameters
    ----------
    codes : array of shape (n_columns, n_samples)
        Levels, of any integer type.
    n_levels : array of shape (n_columns,)
        Number of levels of each column.
    table : array
        Value that each count of a contingency table contributes to a sum; entry 0 is for count 0.
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
        """Return, for each column, the sum of the table's values at its joint counts with a pivot.

        ``chance`` replaces the table by different values for each level of the pivot.
        """
        # int32 halves the transfer, which takes longer than counting
        return self._sums(placed(pivot.astype(np.int32)), n_pivot, chance)

    def sums_with(self, j: int) -> Array:
        """Return the same as :meth:`sums`, with column j as the pivot.

        Its levels are already on the device.
        """
        return self._sums(self._codes[j, :], int(self._n_levels[j]))

    def _sums(self, pivot: Any, n_pivot: int, chance: Chance | None = None) -> Array:
        xp = namespace(self._like)
        values, start = self._values, 0
        if chance is not None:
            values = move(chance.values, self._like)
            start = move(chance.start[:, None], self._like, exact=True)
        counts = self._counts(pivot, n_pivot)
        sums = xp.concat([xp.sum(look_up(values, block + start), axis=0) for block in counts])
        if self._even:
            return host(xp.sum(xp.reshape(sums, (len(self._n_levels), -1)), axis=1))
        return np.asarray(np.add.reduceat(host(sums), self.starts))

    def _counts(self, pivot: Any, n_pivot: int) -> Iterator[Any]:
        """Iterate over blocks of counts, of shape (levels of the pivot, levels of the columns)."""
        xp = namespace(self._like)
        levels = placed(np.arange(n_pivot, dtype=np.int32)[:, None])
        own = xp.astype(pivot[None, :] == levels, xp.float32)
        note("scores", self._like)
        for block in self._kept or self._blocks():
            yield count(own, block.T)

    def _blocks(self) -> Iterator[Any]:
        """Iterate over indicators of shape (levels, samples), for a block of levels at a time."""
        size = max(1, BLOCK // max(1, self.n_samples))
        for first in range(0, self.levels, size):
            yield self._indicators(slice(first, first + size))

    def _indicators(self, some: slice) -> Any:
        xp = namespace(self._like)
        columns = move(self._columns[some], self._like, exact=True)
        level = placed(self._level[some].astype(np.int32))
        return xp.astype(xp.take(self._codes, columns, axis=0) == level[:, None], xp.float32)

    def pair_sums(
        self, rows: slice, columns: slice, classes: list[slice], chance: Chance | None = None
    ) -> list[Array]:
        """Return one or two sums of the table's values for each pair of columns from two slices.

        A sum adds the values at the joint counts in each class, and subtracts the values at the
        counts in all classes together. ``chance`` replaces the subtracted values by expected ones.
        There are then two results: the first is given the levels of the second column, and the
        second is given the levels of the first column.
        """
        note("scores", self._like)
        values = self._values
        one, other = (self._indicators(self._levels_of(some)) for some in (rows, columns))
        total, sums = 0, 0.0
        for members in classes:
            counts = count(one[:, members], other[:, members].T)
            total, sums = total + counts, sums + look_up(values, counts)
        without = [look_up(values, total)]
        if chance is not None:
            expected = move(chance.values, self._like)
            own, others = (self._offsets(chance, some) for some in (rows, columns))
            cells = total + others[None, :], total + own[:, None]
            without = [look_up(expected, indices) for indices in cells]
        first, second = (self._membership(some) for some in (rows, columns))
        return [host(first.T @ (sums - other) @ second) for other in without]

    def _offsets(self, chance: Chance, some: slice) -> Any:
        """Return the index of each level's first value in ``chance``, or 0 for added levels."""
        levels = self._levels_of(some)
        columns, level = self._columns[levels], self._level[levels]
        exists = level < self._own_levels[columns]
        first = (np.cumsum(self._own_levels) - self._own_levels)[columns]
        offsets = np.where(exists, chance.start[np.where(exists, first + level, 0)], 0)
        return move(offsets, self._like, exact=True)

    def _levels_of(self, some: slice) -> slice:
        ends = np.append(self.starts, self.levels)
        return slice(int(ends[some.start]), int(ends[some.stop]))

    def _membership(self, some: slice) -> Any:
        """Return a matrix of 0 and 1, of shape (levels, columns), that marks each column's levels.

        A product with it sums over the levels of each column.
        """
        own = self._columns[self._levels_of(some)][:, None] == np.arange(some.start, some.stop)
        return move(own.astype(float), self._like)


def count(left: Any, right: Any) -> Any:
    """Return the product of two matrices of indicators, as exact integer counts."""
    xp, total = namespace(left), 0
    for first in range(0, left.shape[1], EXACT - 1):
        rows = slice(first, min(first + EXACT - 1, left.shape[1]))
        total = total + xp.astype(left[:, rows] @ right[rows, :], xp.int64)
    return total


def look_up(values: Any, counts: Any) -> Any:
    """Return ``values[counts]`` for an array of counts of any shape."""
    xp = namespace(values)
    return xp.reshape(xp.take(values, xp.reshape(counts, (-1,))), counts.shape)
