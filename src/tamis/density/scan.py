"""What all pairs of columns tell of the target, from matrix products of indicators of levels."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._namespace import device_asked
from tamis._parallel import in_order, threads_for
from tamis.density.discrete import Coded, n_log_n
from tamis.density.one_hot import OneHotLevels

#: Levels of the columns of a block: tables of counts of two blocks then fill 4 MB, which stay in
#: the cache while their logarithms are looked up, and a product is large enough to run at full
#: speed.
LEVELS = 1024
#: The same on a device, whose tables of counts then fill 128 MB.
LEVELS_THERE = 4096
#: Indicators held at a time for a block, 64 MB: more rows are counted part by part.
CELLS = 1 << 24
#: Rows from which single precision no longer counts exactly.
EXACT = 1 << 24


class PairBlock(NamedTuple):
    """Some columns beside some others: H(x_i, x_j) - H(x_i, x_j, y) of each pair, in nats."""

    rows: slice
    columns: slice
    told: Array


def pair_blocks(coded: Coded, target: NDArray[np.intp]) -> Iterator[PairBlock]:
    """Blocks that cover every pair once, those on the diagonal whole.

    With an entropy written as log N - (sum of n log n) / N, the difference is that of the sums over
    the tables of counts with and without the target. The counts of all pairs of levels are
    products of indicators, class by class.
    """
    by_class = np.argsort(target, kind="stable")
    ends = np.cumsum(np.bincount(target))
    classes = [by_class[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    table = n_log_n(coded.n_samples)
    if device_asked() is not None:
        yield from _there(coded, by_class, [slice(a, b) for a, b in pairwise([0, *ends])], table)
        return
    blocks = _column_blocks(coded.n_levels)
    size = coded.codes.size * len(blocks)  # and made, once, before threads ask for them
    pairs = _each_once(blocks)

    def block(pair: tuple[slice, slice]) -> PairBlock:
        return PairBlock(*pair, _told(coded, classes, table, *pair))

    yield from in_order(block, pairs, threads_for(size), blas=True)


def _there(
    coded: Coded, by_class: NDArray[np.intp], classes: list[slice], table: Array
) -> Iterator[PairBlock]:
    """The same where a device is asked for, which larger blocks keep busy."""
    one_hot = OneHotLevels(coded.codes[:, by_class], coded.n_levels)
    for rows, columns in _each_once(_column_blocks(coded.n_levels, LEVELS_THERE)):
        found = one_hot.beside(rows, columns, classes, table)
        yield PairBlock(rows, columns, found / coded.n_samples)


def _each_once(blocks: list[slice]) -> list[tuple[slice, slice]]:
    return [(rows, columns) for place, rows in enumerate(blocks) for columns in blocks[place:]]


def _told(
    coded: Coded, classes: list[NDArray[np.intp]], table: Array, rows: slice, columns: slice
) -> Array:
    starts = [_starts(coded.n_levels[part]) for part in (rows, columns)]
    total: Array | float = 0.0
    sums: Array | float = 0.0
    for members in classes:
        counts = _counts(coded, members, rows, columns)
        total = total + counts
        sums = sums + _over_levels(table[counts.astype(np.intp)], *starts)
    sums = sums - _over_levels(table[np.asarray(total).astype(np.intp)], *starts)
    return np.asarray(sums / coded.n_samples)


def _counts(coded: Coded, members: NDArray[np.intp], rows: slice, columns: slice) -> Array:
    """Members that have each level of the first columns and each of the others."""
    widest = max(coded.n_levels[part].sum() for part in (rows, columns))
    step = max(1, CELLS // int(widest))
    counts: Array | float = 0.0
    for start in range(0, len(members), step):
        some = members[start : start + step]
        one = _indicators(coded, some, rows)
        other = one if rows == columns else _indicators(coded, some, columns)
        counts = counts + one @ other.T
    return np.asarray(counts)


def _indicators(coded: Coded, members: NDArray[np.intp], part: slice) -> Array:
    """One row a level of a column: 1 where a member has it."""
    starts, codes = _starts(coded.n_levels[part]), coded.codes[part][:, members]
    kind = np.float32 if coded.n_samples < EXACT else np.float64
    flat = np.zeros((int(coded.n_levels[part].sum()), len(members)), dtype=kind)
    flat[starts[:, None] + codes, np.arange(len(members))] = 1
    return flat


def _over_levels(values: Array, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Array:
    """Sums over the levels of each pair of columns."""
    return np.asarray(np.add.reduceat(np.add.reduceat(values, columns, axis=1), rows, axis=0))


def _starts(n_levels: NDArray[np.int64]) -> NDArray[np.intp]:
    return np.concatenate([[0], np.cumsum(n_levels)[:-1]]).astype(np.intp)


def _column_blocks(n_levels: NDArray[np.int64], most: int | None = None) -> list[slice]:
    """Neighbouring columns of together about so many levels, at least one column each."""
    most = LEVELS if most is None else most
    blocks, start, held = [], 0, 0
    for j, n in enumerate(n_levels):
        if j > start and held + n > most:
            blocks.append(slice(start, j))
            start, held = j, 0
        held += int(n)
    return [*blocks, slice(start, len(n_levels))]
