"""What all pairs of columns tell of the target, from matrix products of indicators of levels."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._namespace import device_asked
from tamis._parallel import in_order, threads_for
from tamis.density.chance import Chance, chance_within
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
    """Some columns beside some others: H(x_i, x_j) - H(x_i, x_j, y) of each pair, in nats.

    Corrected for chance these are I(x_i; y | x_j) and, turned, I(x_j; y | x_i), which are compared
    with rows shuffled within the levels of x_j and of x_i.
    """

    rows: slice
    columns: slice
    told: Array
    turned: Array | None = None


def level_chances(coded: Coded, target: NDArray[np.intp]) -> Chance:
    """Expected values for the levels of all columns, one column after another."""
    n_classes = int(target.max()) + 1
    margins = [
        np.bincount(coded.column(j) * n_classes + target, minlength=n_levels * n_classes)
        for j, n_levels in enumerate(coded.n_levels)
    ]
    return chance_within(np.concatenate(margins).reshape(-1, n_classes))


def pair_blocks(
    coded: Coded, target: NDArray[np.intp], *, adjusted: bool = False
) -> Iterator[PairBlock]:
    """Blocks that cover every pair once, those on the diagonal whole.

    With an entropy written as log N - (sum of n log n) / N, the difference is that of the sums over
    the tables of counts with and without the target. The counts of all pairs of levels are
    products of indicators, class by class.
    """
    classes, table = _classes(target), n_log_n(coded.n_samples)
    chance = level_chances(coded, target) if adjusted else None
    if device_asked() is not None:
        yield from _there(coded, classes, table, chance)
        return
    blocks = _column_blocks(coded.n_levels)
    size = coded.codes.size * len(blocks)  # and made, once, before threads ask for them

    def block(pair: tuple[slice, slice]) -> PairBlock:
        return PairBlock(*pair, *_told(coded, classes, table, chance, *pair))

    yield from in_order(block, _each_once(blocks), threads_for(size), blas=True)


def _there(
    coded: Coded, classes: list[NDArray[np.intp]], table: Array, chance: Chance | None
) -> Iterator[PairBlock]:
    """The same where a device is asked for, which larger blocks keep busy."""
    codes = coded.codes[:, np.concatenate(classes)]
    one_hot = OneHotLevels(codes, coded.n_levels, table)
    ends = np.cumsum([0, *(len(members) for members in classes)])
    parts = [slice(a, b) for a, b in pairwise(ends)]
    for rows, columns in _each_once(_column_blocks(coded.n_levels, LEVELS_THERE)):
        found = one_hot.beside(rows, columns, parts, chance)
        yield PairBlock(rows, columns, *(sums / coded.n_samples for sums in found))


def permuted_blocks(
    coded: Coded, targets: Sequence[NDArray[np.intp]], *, adjusted: bool = False
) -> Iterator[tuple[int, PairBlock]]:
    """The blocks of each of several targets, with its index.

    What does not depend on the target is counted once a block, and the largest class is what the
    others leave: with two classes about half of the work of :func:`pair_blocks` for each target.
    """
    by_target = [sorted(_classes(target), key=len) for target in targets]
    table = n_log_n(coded.n_samples)
    chances = [level_chances(coded, target) if adjusted else None for target in targets]
    for rows, columns in _each_once(_column_blocks(coded.n_levels)):
        total = _counts(coded, np.arange(coded.n_samples), rows, columns)
        plain = None if adjusted else _without(coded, total, table, None, rows, columns)
        for index, (*classes, _) in enumerate(by_target):
            without = plain or _without(coded, total, table, chances[index], rows, columns)
            left, found = total, [-other for other in without]
            for members in classes:
                counts = _counts(coded, members, rows, columns)
                left = left - counts
                part = _summed(coded, counts, table, rows, columns)
                found = [sums + part for sums in found]
            part = _summed(coded, left, table, rows, columns)
            found = [(sums + part) / coded.n_samples for sums in found]
            yield index, PairBlock(rows, columns, *found)


def _classes(target: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """The rows of each class."""
    by_class = np.argsort(target, kind="stable")
    ends = np.cumsum(np.bincount(target))
    return [by_class[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _each_once(blocks: list[slice]) -> list[tuple[slice, slice]]:
    """Every two blocks of columns."""
    return [(rows, columns) for place, rows in enumerate(blocks) for columns in blocks[place:]]


def _told(
    coded: Coded,
    classes: list[NDArray[np.intp]],
    table: Array,
    chance: Chance | None,
    rows: slice,
    columns: slice,
) -> list[Array]:
    total: Array | float = 0.0
    sums: Array | float = 0.0
    for members in classes:
        counts = _counts(coded, members, rows, columns)
        total = total + counts
        sums = sums + _summed(coded, counts, table, rows, columns)
    without = _without(coded, np.asarray(total), table, chance, rows, columns)
    return [np.asarray((sums - other) / coded.n_samples) for other in without]


def _without(
    coded: Coded, total: Array, table: Array, chance: Chance | None, rows: slice, columns: slice
) -> list[Array]:
    """Sums over the counts of all classes, or what is expected of those with the classes.

    The latter given the levels of the second columns, then of the first.
    """
    if chance is None:
        return [_summed(coded, total, table, rows, columns)]
    ends = np.append(_starts(coded.n_levels), coded.n_levels.sum())
    first, second = (chance.start[ends[part.start] : ends[part.stop]] for part in (rows, columns))
    given = second, first[:, None]
    return [_summed(coded, total, chance.values, rows, columns, own) for own in given]


def _summed(
    coded: Coded, counts: Array, table: Array, rows: slice, columns: slice, offset: Any = None
) -> Array:
    """Sums of n log n over the levels of each pair of columns."""
    starts = (_starts(coded.n_levels[part]) for part in (rows, columns))
    places = counts.astype(np.intp)
    return _over_levels(table[places if offset is None else places + offset], *starts)


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
