"""Information of all pairs of columns about the target, computed by matrix products."""

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._namespace import device_asked
from tamis._parallel import in_order, threads_for
from tamis.density.chance import Chance, chance_within
from tamis.density.discrete import Coded, n_log_n
from tamis.density.one_hot import OneHotLevels

#: Total number of levels of the columns in a block. The counts of two blocks then take 4 MB and
#: stay in the cache while n log n is looked up. Matrix products are large enough for full speed.
LEVELS = 1024
#: Total number of levels in a block on a GPU or other device. The counts then take 128 MB.
LEVELS_THERE = 4096
#: Number of indicators of a block in memory at a time (64 MB). More rows are counted in chunks.
CELLS = 1 << 24
#: Number of rows from which counts in single precision are no longer exact.
EXACT = 1 << 24


class PairBlock(NamedTuple):
    """Information, in nats, of each pair of a column i in ``rows`` and a column j in ``columns``.

    ``information`` is H(x_i, x_j) - H(x_i, x_j, y), and ``transposed`` is None. If corrected for
    chance, ``information`` is I(x_i; y | x_j) and ``transposed`` is I(x_j; y | x_i). Their
    expectations are over rows shuffled within the levels of x_j and of x_i.
    """

    rows: slice
    columns: slice
    information: Array
    transposed: Array | None = None


def level_chances(coded: Coded, target: NDArray[np.intp]) -> Chance:
    """Return expected values of n log n for the levels of all columns, one column after another."""
    n_classes = int(target.max()) + 1
    margins = [
        np.bincount(coded.column(j) * n_classes + target, minlength=n_levels * n_classes)
        for j, n_levels in enumerate(coded.n_levels)
    ]
    return chance_within(np.concatenate(margins).reshape(-1, n_classes))


def pair_blocks(
    coded: Coded, target: NDArray[np.intp], *, adjusted: bool = False
) -> Iterator[PairBlock]:
    """Iterate over blocks that cover every pair of columns.

    Every pair is in a single block. Blocks on the diagonal contain both (i, j) and (j, i).

    Entropies are log N - (sum of n log n) / N. The result is therefore the difference between the
    sums over the counts with and without the target, divided by N. The counts of all pairs of
    levels in a class are a product of indicator matrices.
    """
    counting, classes = PairCounts(coded), _classes(target)
    chance = level_chances(coded, target) if adjusted else None
    if device_asked() is not None:
        yield from _device_blocks(coded, classes, counting.table, chance)
        return
    blocks = _column_blocks(coded.n_levels, LEVELS)
    size = coded.codes.size * len(blocks)  # computes the cached codes before threads use them

    def block(pair: tuple[slice, slice]) -> PairBlock:
        total: Array | float = 0.0
        sums: Array | float = 0.0
        for members in classes:
            counts = counting.counts(members, *pair)
            total, sums = total + counts, sums + counting.sums(counts, counting.table, *pair)
        without = counting.without(np.asarray(total), chance, *pair)
        return PairBlock(*pair, *(np.asarray(sums - one) / coded.n_samples for one in without))

    yield from in_order(block, _block_pairs(blocks), threads_for(size), blas=True)


def _device_blocks(
    coded: Coded, classes: list[NDArray[np.intp]], table: Array, chance: Chance | None
) -> Iterator[PairBlock]:
    """Iterate over blocks computed on a GPU or other device. They are larger than on a CPU."""
    codes = coded.codes[:, np.concatenate(classes)]
    one_hot = OneHotLevels(codes, coded.n_levels, table)
    ends = np.cumsum([0, *(len(members) for members in classes)])
    slices = [slice(a, b) for a, b in pairwise(ends)]
    for rows, columns in _block_pairs(_column_blocks(coded.n_levels, LEVELS_THERE)):
        found = one_hot.pair_sums(rows, columns, slices, chance)
        yield PairBlock(rows, columns, *(sums / coded.n_samples for sums in found))


def permuted_blocks(
    coded: Coded, targets: Sequence[NDArray[np.intp]], *, adjusted: bool = False
) -> Iterator[tuple[int, PairBlock]]:
    """Yield, for each block of pairs of columns and each target, the target's index and the block.

    Counts that do not depend on the target are computed once per block. The counts of the largest
    class are computed by subtraction. With two classes each target takes about half the work of
    :func:`pair_blocks`.
    """
    counting = PairCounts(coded)
    by_target = [sorted(_classes(target), key=len) for target in targets]
    chances = [level_chances(coded, target) if adjusted else None for target in targets]
    for pair in _block_pairs(_column_blocks(coded.n_levels, LEVELS)):
        total = counting.counts(np.arange(coded.n_samples), *pair)
        plain = None if adjusted else counting.without(total, None, *pair)
        for index, (*classes, _) in enumerate(by_target):
            without = plain or counting.without(total, chances[index], *pair)
            left, found = total, [-other for other in without]
            for members in classes:
                counts = counting.counts(members, *pair)
                left = left - counts
                own = counting.sums(counts, counting.table, *pair)
                found = [sums + own for sums in found]
            own = counting.sums(left, counting.table, *pair)
            found = [(sums + own) / coded.n_samples for sums in found]
            yield index, PairBlock(*pair, *found)


def _classes(target: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the rows of each class."""
    by_class = np.argsort(target, kind="stable")
    ends = np.cumsum(np.bincount(target))
    return [by_class[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _block_pairs(blocks: list[slice]) -> list[tuple[slice, slice]]:
    return list(combinations_with_replacement(blocks, 2))


class PairCounts:
    """Joint counts of the levels of two slices of columns, and sums over the levels."""

    def __init__(self, coded: Coded):
        self.coded, self.table = coded, n_log_n(coded.n_samples)

    def counts(self, members: NDArray[np.intp], rows: slice, columns: slice) -> Array:
        """Count the given rows for each pair of levels."""
        widest = max(self.coded.n_levels[some].sum() for some in (rows, columns))
        step = max(1, CELLS // int(widest))
        counts: Array | float = 0.0
        for start in range(0, len(members), step):
            some = members[start : start + step]
            one = self._indicators(some, rows)
            other = one if rows == columns else self._indicators(some, columns)
            counts = counts + one @ other.T
        return np.asarray(counts)

    def _indicators(self, members: NDArray[np.intp], some: slice) -> Array:
        """Return an array of shape (levels, members) that is 1 if a row has a level, else 0."""
        n_levels, codes = self.coded.n_levels[some], self.coded.codes[some][:, members]
        kind = np.float32 if self.coded.n_samples < EXACT else np.float64
        flat = np.zeros((int(n_levels.sum()), len(members)), dtype=kind)
        flat[_starts(n_levels)[:, None] + codes, np.arange(len(members))] = 1
        return flat

    def sums(
        self, counts: Array, table: Array, rows: slice, columns: slice, offset: Any = 0
    ) -> Array:
        """Sum a table's values at the joint counts, over the levels of each pair of columns."""
        first, second = (_starts(self.coded.n_levels[some]) for some in (rows, columns))
        values = table[counts.astype(np.intp) + offset]
        return np.asarray(np.add.reduceat(np.add.reduceat(values, second, axis=1), first, axis=0))

    def without(
        self, total: Array, chance: Chance | None, rows: slice, columns: slice
    ) -> list[Array]:
        """Return, for each pair, the sum of n log n over its counts in all classes together.

        If ``chance`` is given, return two expected sums over the counts in single classes instead.
        The first is given the levels of the second column, the second is given the levels of the
        first.
        """
        if chance is None:
            return [self.sums(total, self.table, rows, columns)]
        ends = np.append(_starts(self.coded.n_levels), self.coded.n_levels.sum())
        first, second = (chance.start[ends[s.start] : ends[s.stop]] for s in (rows, columns))
        given = second, first[:, None]
        return [self.sums(total, chance.values, rows, columns, own) for own in given]


def _starts(n_levels: NDArray[np.int64]) -> NDArray[np.intp]:
    return np.concatenate([[0], np.cumsum(n_levels)[:-1]]).astype(np.intp)


def _column_blocks(n_levels: NDArray[np.int64], most: int) -> list[slice]:
    """Split the columns into slices with at most ``most`` levels in total.

    A column with more levels gets its own slice.
    """
    blocks, start, total = [], 0, 0
    for j, n in enumerate(n_levels):
        if j > start and total + n > most:
            blocks.append(slice(start, j))
            start, total = j, 0
        total += int(n)
    return [*blocks, slice(start, len(n_levels))]
