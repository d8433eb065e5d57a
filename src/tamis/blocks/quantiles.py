"""Exact order statistics and distinct values of columns in row blocks.

Every number has a key of 64 bits. Keys are in the same order as the numbers. A cell is the set of
keys with the same first bits. The first pass counts the keys in each cell, which shows the cell in
which each requested rank lies. Further passes divide only these cells, by the next bits of the
keys. When few keys are left, they are listed. The result is exactly the value that sorting the
column would give.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis._parallel import in_threads
from tamis.blocks.source import RowBlock, RowStatistic
from tamis.exceptions import InvalidTable

#: Number of first bits by which the first pass counts keys: sign, exponent and four bits of the
#: mantissa.
FIRST_BITS = 16
#: Maximum number of cells in the first pass (128 megabytes). With more columns, fewer bits are
#: used.
CELLS = 1 << 24
#: Maximum number of cells in a further pass (16 megabytes). Access is random, and takes ten times
#: as long if the cells do not fit into the outer CPU cache.
REFINED = 1 << 21
#: Minimum number of bits per pass, however many columns there are. With fewer bits there would be
#: too many passes.
FEWEST_BITS = 6
#: Maximum number of keys that are listed instead of counted. Sorting them takes a quarter of a
#: second, less than another pass.
LISTED = 1 << 20
#: Maximum number of levels of a column of codes, because a code has two bytes.
MOST_LEVELS = 1 << 16

Numbers = Callable[[RowBlock], NDArray[Any]]


def columns_of(block: RowBlock) -> NDArray[Any]:
    """Return the columns of a block as the rows of an array."""
    return block.X.T


def target_of(block: RowBlock) -> NDArray[Any]:
    """Return the numeric target of a block as the only row of an array."""
    return np.asarray(block.y, dtype=float)[None, :]


@dataclass(eq=False, repr=False)
class ColumnStatistic(RowStatistic):
    """Statistic that is computed for each column separately, in threads.

    Parameters
    ----------
    numbers : callable
        Function that returns the numbers of a block: :func:`columns_of` or :func:`target_of`.
    """

    numbers: Numbers

    def by_columns(self, block: RowBlock, work: Callable[[Array, slice], Any]) -> list[Any]:
        """Apply a function to groups of columns in threads, and return the results."""
        rows = self.numbers(block)

        def part(some: slice) -> Any:
            return work(np.ascontiguousarray(rows[some], dtype=np.float64), some)

        return in_threads(part, len(rows), rows.size)


@dataclass(eq=False, repr=False)
class KeyCounts(ColumnStatistic):
    """Number of entries in each cell of each column, by the first bits of their keys.

    Parameters
    ----------
    numbers : callable
    n_columns : int
    n_states : int, default=1
        Number of states in memory at once, for example one for each class.
    """

    n_columns: int
    n_states: int = 1

    @property
    def n_bits(self) -> int:
        """Number of bits by which keys are counted."""
        fitting = int(np.log2(CELLS / max(self.n_columns * self.n_states, 1)))
        return min(FIRST_BITS, max(FEWEST_BITS, fitting))

    def empty(self) -> Any:
        return np.zeros((self.n_columns, 1 << self.n_bits), dtype=np.int64)

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        from tamis.compiled.planes import key_counts

        self.by_columns(block, lambda rows, some: key_counts(rows, self.n_bits, state[some]))
        return state


class KeyCells(NamedTuple):
    """Cells of keys that contain the ranks to find. The cells of column j begin at ``start[j]``."""

    start: NDArray[np.intp]
    beginnings: NDArray[np.uint64]
    known: int

    @property
    def bounds(self) -> Array:
        """First number of each cell, and first number of the next cell.

        A lower bound of NaN is replaced by minus infinity. An upper bound may stay NaN, because no
        number reaches it.
        """
        left = np.uint64(64 - self.known)
        last = self.beginnings == np.uint64((1 << self.known) - 1)
        following = np.where(last, self.beginnings, self.beginnings + np.uint64(1))
        low = _values(self.beginnings << left)
        high = np.where(last, np.nan, _values(following << left))
        return np.column_stack([np.where(np.isnan(low), -np.inf, low), high])


@dataclass(eq=False, repr=False)
class KeysWithin(ColumnStatistic):
    """Number of keys in each part of the given cells, by the next bits of the keys.

    Parameters
    ----------
    numbers : callable
    cells : KeyCells
    n_bits : int
        Number of bits by which keys are counted.
    """

    cells: KeyCells
    n_bits: int

    def empty(self) -> Any:
        return np.zeros((len(self.cells.beginnings), 1 << self.n_bits), dtype=np.int64)

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        from tamis.compiled.planes import keys_within

        (start, beginnings, known), bounds = self.cells, self.cells.bounds

        def count(rows: Array, some: slice) -> None:
            own = start[some.start : some.stop + 1]
            keys_within(rows, own, beginnings, bounds, known, self.n_bits, state)

        self.by_columns(block, count)
        return state


@dataclass(eq=False, repr=False)
class KeysListed(ColumnStatistic):
    """The keys in each of the given cells, in increasing order.

    Parameters
    ----------
    numbers : callable
    cells : KeyCells
    """

    cells: KeyCells

    def empty(self) -> Any:
        return []

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        from tamis.compiled.planes import keys_listed

        (start, beginnings, known), bounds = self.cells, self.cells.bounds

        def find(rows: Array, some: slice) -> Any:
            return keys_listed(rows, start[some.start : some.stop + 1], beginnings, bounds, known)

        return state + self.by_columns(block, find)

    def finish(self, state: Any) -> Any:
        nothing = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
        slots, keys = (np.concatenate(part) for part in zip(nothing, *state, strict=True))
        order = np.lexsort((keys, slots))
        ends = np.cumsum(np.bincount(slots, minlength=len(self.cells.beginnings)))
        return np.split(keys[order], ends[:-1])


def order_statistics(
    reduce: Callable[[RowStatistic], Any],
    numbers: Numbers,
    counts: NDArray[np.int64],
    ranks: NDArray[np.int64],
) -> Array:
    """Return the entries with given ranks in each sorted column.

    Parameters
    ----------
    reduce : callable
        Function that computes a statistic of all rows.
    numbers : callable
        :func:`columns_of` or :func:`target_of`.
    counts : array of shape (n_columns, n_cells)
        Result of :class:`KeyCounts`.
    ranks : array of shape (n_columns, n_ranks)
        Ranks, counted from 0. Negative ranks are ignored.
    """
    known = int(np.log2(counts.shape[1]))
    asked = ranks >= 0
    columns = np.nonzero(asked)[0]
    left = ranks[asked]
    # a rank lies in the first cell whose cumulative count exceeds it
    below = np.cumsum(counts, axis=1)
    pairs = zip(columns, left, strict=True)
    at = np.array([np.searchsorted(below[j], rank, side="right") for j, rank in pairs], np.intp)
    held = counts[columns, at]
    left = left - (below[columns, at] - held)
    cell = at.astype(np.uint64)
    while True:
        cells, slot, n_held = _cells(columns, cell, held, len(ranks), known)
        if known == 64 or n_held <= LISTED:
            break
        n_bits = max(FEWEST_BITS, int(np.log2(REFINED / len(cells.beginnings))))
        n_bits = min(64 - known, n_bits)
        finer = reduce(KeysWithin(numbers, cells, n_bits))[slot]
        below = np.cumsum(finer, axis=1)
        step = (below <= left[:, None]).sum(axis=1)
        at = np.arange(len(slot))
        held, known = finer[at, step], known + n_bits
        left = left - (below[at, step] - held)
        cell = (cell << np.uint64(n_bits)) | step.astype(np.uint64)
    keys = cell
    if known < 64:
        listed = reduce(KeysListed(numbers, cells))
        keys = np.array([listed[s][r] for s, r in zip(slot, left, strict=True)], dtype=np.uint64)
    found = np.full(ranks.shape, np.inf)
    found[asked] = _values(keys)
    return found


def _cells(
    columns: NDArray[np.intp],
    cell: NDArray[np.uint64],
    held: NDArray[np.int64],
    n_columns: int,
    known: int,
) -> tuple[KeyCells, NDArray[np.intp], int]:
    """Return the distinct cells, the cell of each rank among them, and the number of entries."""
    order = np.lexsort((cell, columns))
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = np.diff(columns[order]).astype(bool) | np.diff(cell[order]).astype(bool)
    slot = np.empty(len(order), dtype=np.intp)
    slot[order] = np.cumsum(fresh) - 1
    start = np.searchsorted(columns[order][fresh], np.arange(n_columns + 1))
    return KeyCells(start, cell[order][fresh], known), slot, int(held[order][fresh].sum())


def _values(keys: NDArray[np.uint64]) -> Array:
    """Return the numbers with the given keys."""
    top = np.uint64(1 << 63)
    return np.where(keys & top, keys ^ top, ~keys).astype(np.uint64).view(np.float64)


@dataclass(eq=False, repr=False)
class DistinctValues(ColumnStatistic):
    """The distinct values of each column, or None if there are more than a limit.

    Parameters
    ----------
    numbers : callable
    n_columns : int
    most : int
        Maximum number of distinct values of a column.
    codes : array of bool
        Mask of the columns of codes, to which ``most`` does not apply.
    names : sequence or None
        Names of the columns, for error messages.
    name : str
        Name of the caller, for error messages.
    """

    n_columns: int
    most: int
    codes: Mask
    names: Any
    name: str

    def empty(self) -> Any:
        return [np.empty(0) for _ in range(self.n_columns)]

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        rows = self.numbers(block)
        open_columns = [j for j, values in enumerate(state) if values is not None]

        def part(some: slice) -> None:
            for j in open_columns[some]:
                state[j] = self._join(j, state[j], self._distinct(j, rows[j]))

        in_threads(part, len(open_columns), rows.size)
        return state

    def _distinct(self, j: int, row: NDArray[Any]) -> Array | None:
        """Return the distinct values of a column, or None if there are too many."""
        row = np.ascontiguousarray(row, dtype=np.float64)
        if self.codes[j]:
            values = np.unique(row + 0.0)
            return values[~np.isnan(values)]
        from tamis.compiled.counts import few_levels

        if np.isnan(row.min(initial=0.0)):
            row = row[~np.isnan(row)]
        levels, count = few_levels(row[None], self.most)
        return levels[0, : count[0]] + 0.0 if count[0] <= self.most else None

    def _join(self, j: int, one: Array | None, other: Array | None) -> Array | None:
        if one is None or other is None:
            return None
        both = np.union1d(one, other)
        if self.codes[j] and len(both) > MOST_LEVELS - 1:
            column = str(j) if self.names is None else repr(self.names[j])
            raise InvalidTable(
                f"{self.name} uses each value of a category as a level, but column {column} has "
                f"more than {MOST_LEVELS - 1} values. Write binning='frequency', remove the column "
                "from categories, or drop it from the table."
            )
        return both if self.codes[j] or len(both) <= self.most else None

    def merge(self, state: Any, other: Any) -> Any:
        pairs = enumerate(zip(state, other, strict=True))
        return [self._join(j, one, two) for j, (one, two) in pairs]
