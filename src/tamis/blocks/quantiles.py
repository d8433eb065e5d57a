"""Exact order statistics and distinct values of columns in blocks of rows.

A number has a key of 64 bits in the order of the numbers. Counts of the beginnings of keys add up
exactly, in any order, and say in which cell a rank lies; a further pass counts the next bits of the
keys in these cells alone, until so few are left that they are listed. What comes out is the value
that sorting the column would give.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis._parallel import in_threads
from tamis.blocks.source import RowBlock, RowStatistic
from tamis.exceptions import InvalidTable

#: Bits of a key that are counted first: sign, exponent and four bits of the mantissa.
FIRST_BITS = 16
#: Cells that are counted at a time, 128 megabytes of them; with more columns, or ranks, fewer bits.
CELLS = 1 << 24
#: Cells of a further count, 16 megabytes: entries fall into them at random, which takes ten times
#: as long where they do not fit into the outer cache.
REFINED = 1 << 21
#: Bits that a pass tells apart at least, however many columns there are: with fewer the passes over
#: the table would be many.
FEWEST_BITS = 6
#: Numbers that are listed rather than counted once more: sorting these takes a quarter of a second,
#: a pass over a table of which they are a thousandth more.
LISTED = 1 << 20
#: Levels of a column of codes: what two bytes tell apart.
MOST_LEVELS = 1 << 16

Numbers = Callable[[RowBlock], NDArray[Any]]


def columns_of(block: RowBlock) -> NDArray[Any]:
    """The columns of a block, one row a column."""
    return block.X.T


def target_of(block: RowBlock) -> NDArray[Any]:
    """The target of a block, as a column of numbers."""
    assert block.y is not None
    return block.y.astype(float)[None, :]


class ColumnStatistic(RowStatistic):
    """A statistic of each column alone, some of them at a time in each thread.

    Parameters
    ----------
    numbers : callable
        What it is of: :func:`columns_of` or :func:`target_of`.
    """

    def __init__(self, numbers: Numbers):
        self.numbers = numbers

    def by_columns(self, block: RowBlock, work: Callable[[Array, slice], Any]) -> list[Any]:
        """What some work makes of the rows of numbers of some columns."""
        rows = self.numbers(block)

        def part(some: slice) -> Any:
            return work(np.ascontiguousarray(rows[some], dtype=np.float64), some)

        return in_threads(part, len(rows), rows.size)


class KeyCounts(ColumnStatistic):
    """How many entries of each column have each beginning of their key.

    Parameters
    ----------
    numbers : callable
    n_columns : int
    n_states : int, default=1
        How many of them are held together, as for each class.
    """

    def __init__(self, numbers: Numbers, n_columns: int, n_states: int = 1):
        super().__init__(numbers)
        self.n_columns = n_columns
        fitting = int(np.log2(CELLS / max(n_columns * n_states, 1)))
        self.n_bits = min(FIRST_BITS, max(FEWEST_BITS, fitting))

    def empty(self) -> Any:
        return np.zeros((self.n_columns, 1 << self.n_bits), dtype=np.int64)

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        from tamis.compiled.planes import key_counts

        self.by_columns(block, lambda rows, some: key_counts(rows, self.n_bits, state[some]))
        return state


class KeyCells(NamedTuple):
    """KeyCells of keys that hold the ranks looked for: those of column j begin at ``start[j]``."""

    start: NDArray[np.intp]
    beginnings: NDArray[np.uint64]
    known: int

    @property
    def bounds(self) -> Array:
        """The number at which each cell begins, and that at which the next one does.

        What is no number stands for -infinity below and, as it is reached by none, for more than
        all above.
        """
        left = np.uint64(64 - self.known)
        last = self.beginnings == np.uint64((1 << self.known) - 1)
        following = np.where(last, self.beginnings, self.beginnings + np.uint64(1))
        low = _values(self.beginnings << left)
        high = np.where(last, np.nan, _values(following << left))
        return np.column_stack([np.where(np.isnan(low), -np.inf, low), high])


class KeysWithin(ColumnStatistic):
    """How many keys in each of some cells have each continuation.

    Parameters
    ----------
    numbers : callable
    cells : KeyCells
    n_bits : int
        Bits that are told apart.
    """

    def __init__(self, numbers: Numbers, cells: KeyCells, n_bits: int):
        super().__init__(numbers)
        self.cells, self.n_bits = cells, n_bits

    def empty(self) -> Any:
        return np.zeros((len(self.cells.beginnings), 1 << self.n_bits), dtype=np.int64)

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        from tamis.compiled.planes import keys_within

        start, beginnings, known = self.cells
        bounds = self.cells.bounds
        self.by_columns(
            block,
            lambda rows, some: keys_within(
                rows,
                start[some.start : some.stop + 1],
                beginnings,
                bounds,
                known,
                self.n_bits,
                state,
            ),
        )
        return state


class KeysListed(ColumnStatistic):
    """The keys in each of some cells, rising.

    Parameters
    ----------
    numbers : callable
    cells : KeyCells
    """

    def __init__(self, numbers: Numbers, cells: KeyCells):
        super().__init__(numbers)
        self.cells = cells

    def empty(self) -> Any:
        return []

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        from tamis.compiled.planes import keys_listed

        start, beginnings, known = self.cells
        bounds = self.cells.bounds
        return state + self.by_columns(
            block,
            lambda rows, some: keys_listed(
                rows, start[some.start : some.stop + 1], beginnings, bounds, known
            ),
        )

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
    """The entries of given ranks in each column, as sorting it would give.

    Parameters
    ----------
    reduce : callable
        Gives a statistic of all rows.
    numbers : callable
        :func:`columns_of` or :func:`target_of`.
    counts : array of shape (n_columns, n_cells)
        What :class:`KeyCounts` found.
    ranks : array of shape (n_columns, n_ranks)
        From 0; negative where a column is not asked for.
    """
    known = int(np.log2(counts.shape[1]))
    asked = ranks >= 0
    columns = np.nonzero(asked)[0]
    left = ranks[asked]
    # (column, rank) is in the cell whose end is the first beyond the rank
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
    """Each cell once, where each rank's is among them, and how many entries are in all."""
    order = np.lexsort((cell, columns))
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = np.diff(columns[order]).astype(bool) | np.diff(cell[order]).astype(bool)
    slot = np.empty(len(order), dtype=np.intp)
    slot[order] = np.cumsum(fresh) - 1
    start = np.searchsorted(columns[order][fresh], np.arange(n_columns + 1))
    return KeyCells(start, cell[order][fresh], known), slot, int(held[order][fresh].sum())


def _values(keys: NDArray[np.uint64]) -> Array:
    """The numbers that have the keys."""
    top = np.uint64(1 << 63)
    return np.where(keys & top, keys ^ top, ~keys).astype(np.uint64).view(np.float64)


class DistinctValues(ColumnStatistic):
    """The distinct values of each column, up to a number of them.

    Parameters
    ----------
    numbers : callable
    n_columns : int
    most : int
        How many are told apart in a column.
    codes : array of bool
        Columns of codes, of which all are told apart.
    names : sequence or None
        Names of the columns, for sentences.
    """

    def __init__(
        self, numbers: Numbers, n_columns: int, most: int, codes: Mask, names: Any, name: str
    ):
        super().__init__(numbers)
        self.n_columns, self.most, self.codes = n_columns, most, codes
        self.names, self.name = names, name

    def empty(self) -> Any:
        return [np.empty(0) for _ in range(self.n_columns)]

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        rows = self.numbers(block)
        open_columns = [j for j, values in enumerate(state) if values is not None]

        def part(some: slice) -> None:
            for j in open_columns[some]:
                state[j] = self._joined(j, state[j], self._distinct(j, rows[j]))

        in_threads(part, len(open_columns), rows.size)
        return state

    def _distinct(self, j: int, row: NDArray[Any]) -> Array | None:
        """The values of a column, None where they are too many."""
        row = np.ascontiguousarray(row, dtype=np.float64)
        if self.codes[j]:
            values = np.unique(row + 0.0)
            return values[~np.isnan(values)]
        from tamis.compiled.counts import few_levels

        if np.isnan(row.min(initial=0.0)):
            row = row[~np.isnan(row)]
        levels, count = few_levels(row[None], self.most)
        return levels[0, : count[0]] + 0.0 if count[0] <= self.most else None

    def _joined(self, j: int, one: Array | None, other: Array | None) -> Array | None:
        if one is None or other is None:
            return None
        both = np.union1d(one, other)
        if self.codes[j] and len(both) > MOST_LEVELS - 1:
            column = str(j) if self.names is None else repr(self.names[j])
            raise InvalidTable(
                f"{self.name} takes every value of column {column} as a level, and it has more "
                f"than {MOST_LEVELS - 1} of them. Write binning='frequency', leave it out of "
                "categories, or leave the column out."
            )
        return both if self.codes[j] or len(both) <= self.most else None

    def merge(self, state: Any, other: Any) -> Any:
        pairs = enumerate(zip(state, other, strict=True))
        return [self._joined(j, one, two) for j, (one, two) in pairs]
