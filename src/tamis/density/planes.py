"""Levels of columns in blocks of rows, kept as bit planes, and the entropies of pairs of them."""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis.compiled import thresholds
from tamis.contract import Reducible, RowBlock, RowStatistic, TableInParts, Together
from tamis.contract.target_labels import Labels
from tamis.density.discrete import (
    MISSING,
    category_mask,
    check_missing,
    distinct_cuts,
    number_of_bins,
    settled,
    width_cuts,
)
from tamis.density.keys import (
    DistinctValues,
    KeyCounts,
    columns_of,
    order_statistics,
    target_of,
)
from tamis.density.scan import PairBlock
from tamis.exceptions import InvalidParameter

#: Cells of tables that are counted in a pass, 64 megabytes of them: with more levels the columns
#: come in several.
TABLES = 1 << 23

Variable: TypeAlias = tuple[int, ...]


class Cuts(NamedTuple):
    """Where columns are cut into levels.

    Attributes
    ----------
    cuts : array of shape (n_columns, n_cuts)
        Values at which a new level begins, rising, padded with infinity.
    n_levels : array of int
    gaps : array of bool
        Columns with missing entries, whose last level these are.
    """

    cuts: Array
    n_levels: NDArray[np.int64]
    gaps: Mask

    @property
    def first_plane(self) -> NDArray[np.int64]:
        """Where the bit planes of each column begin, and how many there are."""
        n_planes = np.ceil(np.log2(np.maximum(self.n_levels, 1))).astype(np.int64)
        return np.concatenate([[0], np.cumsum(n_planes)])

    def with_codes(self, n_levels: int) -> "Cuts":
        """One more column, which holds the levels themselves."""
        return self.with_column(np.arange(1.0, n_levels))

    def with_column(self, cuts: Array) -> "Cuts":
        """One more column."""
        width = max(self.cuts.shape[1], len(cuts))
        found = np.full((len(self.cuts) + 1, width), np.inf)
        found[:-1, : self.cuts.shape[1]] = self.cuts
        found[-1, : len(cuts)] = cuts
        levels = np.append(self.n_levels, len(cuts) + 1)
        return Cuts(found, levels, np.append(self.gaps, False))


def cuts_in_parts(table: TableInParts, n_bins: int, binning: str, categories: Mask | None) -> Cuts:
    """Where :class:`tamis.density.discrete.Coded` would cut the columns of the whole table."""
    n_rows, n_columns = table.shape
    codes = np.full(n_columns, binning == "codes")
    if categories is not None:
        codes |= categories
    look = DistinctValues(columns_of, n_columns, n_bins, codes, table.names, table.name)
    count = KeyCounts(columns_of, n_columns)
    values, counts = table.reduce(Together([look, count]), takes_missing=True)
    told = table.survey
    for j in np.flatnonzero(told.alike(table.standardize)):
        values[j] = told.low[j : j + 1]
    there = n_rows - told.gaps
    many = np.array([found is None for found in values])
    cut: Any = np.full((n_columns, n_bins - 1), np.inf)
    if binning == "frequency":
        ranks = np.where(many[:, None], np.arange(1, n_bins) * there[:, None] // n_bins, -1)
        cut = order_statistics(table.reduce, columns_of, counts, ranks) if many.any() else cut
        cut[many] = distinct_cuts(cut[many], told.low[many])
    else:
        cut[many] = width_cuts(told.low[many], told.high[many], n_bins)
    found = [
        cut[j][np.isfinite(cut[j])] if own is None else own[1:] for j, own in enumerate(values)
    ]
    return _with_gaps(found, told.gaps, there)


def _with_gaps(found: list[Array], gaps: NDArray[np.int64], there: NDArray[np.int64]) -> Cuts:
    """Cuts as one table; what is missing is a level behind those of what is there."""
    rows = [
        np.append(own, MISSING) if gap and left else own
        for own, gap, left in zip(found, gaps, there, strict=True)
    ]
    cuts = np.full((len(rows), max(1, *map(len, rows)) if rows else 1), np.inf)
    for j, own in enumerate(rows):
        cuts[j, : len(own)] = own
    return Cuts(cuts, np.array([len(own) + 1 for own in rows]), gaps > 0)


def target_cuts(table: TableInParts, n_bins: int, binning: str) -> Array:
    """Where a real target is cut, like a column."""
    values = table.labels.values.astype(float)
    most = n_bins
    if binning == "codes":
        raise InvalidParameter(
            f"{table.name} cannot take every value of a real target as a level where rows come in "
            "blocks. Write binning='frequency' or 'width'."
        )
    if len(values) <= most:
        return values[1:]
    reduce = partial(table.source.reduce, target_only=True)
    counts = reduce(KeyCounts(target_of, 1))
    n_rows = table.shape[0]
    if binning == "frequency":
        ranks = np.arange(1, n_bins) * n_rows // n_bins
        found = distinct_cuts(order_statistics(reduce, target_of, counts, ranks[None]), values[:1])
    else:
        ends = order_statistics(reduce, target_of, counts, np.array([[0, n_rows - 1]]))
        found = width_cuts(ends[:, 0], ends[:, 1], n_bins)
    return found[0][np.isfinite(found[0])]


class Packing:
    """Makes bit planes of a block: those of its columns, and behind them those of its target.

    Parameters
    ----------
    cuts : Cuts
        Of all columns and the target.
    labels : Labels or None
        The classes; None where the target is cut like a column.
    """

    def __init__(self, cuts: Cuts, labels: Labels | None):
        self.cuts, self.labels = cuts, labels
        self.first_plane = cuts.first_plane

    def __call__(self, block: RowBlock) -> NDArray[np.uint64]:
        """The planes, behind the number of rows."""
        assert block.y is not None
        n_rows, n_planes = len(block.y), int(self.first_plane[-1])
        packed = np.empty(1 + n_planes * -(-n_rows // 64), dtype=np.uint64)
        packed[0] = n_rows
        codes = target_of(block) if self.labels is None else self.labels.codes(block.y)[None]
        self._write(np.ascontiguousarray(block.X.T), slice(0, -1), packed)
        self._write(codes.astype(float), slice(len(self.cuts.cuts) - 1, None), packed)
        return packed

    def _write(self, rows: NDArray[Any], some: slice, packed: NDArray[np.uint64]) -> None:
        from tamis._parallel import in_threads
        from tamis.compiled.planes import pack_planes

        cuts, n_levels, gaps = (part[some] for part in self.cuts)
        start, n_planes = some.start, int(self.first_plane[-1])

        def part(these: slice) -> None:
            places = self.first_plane[start + these.start : start + these.stop + 1]
            levels = cuts[these], n_levels[these], gaps[these]
            pack_planes(rows[these], *levels, places, n_planes, packed)

        in_threads(part, len(rows), rows.size)


class LevelSizes(RowStatistic):
    """Rows at each level of each column but the first.

    Parameters
    ----------
    first_plane, n_levels : array of int
    """

    def __init__(self, first_plane: NDArray[np.int64], n_levels: NDArray[np.int64]):
        self.first_plane, self.n_levels = first_plane, n_levels

    def empty(self) -> Any:
        return np.zeros((len(self.n_levels), int(self.n_levels.max())), dtype=np.int64)

    def learn_part(self, state: Any, block: Any) -> Any:
        from tamis.compiled.planes import level_sizes

        level_sizes(block, self.first_plane, self.n_levels, state)
        return state

    def merge(self, state: Any, other: Any) -> Any:
        return state + other


class PivotCounts(RowStatistic):
    """Counts of the levels of some columns with those of a pivot: one column, or two together.

    Parameters
    ----------
    first_plane, n_levels : array of int
        Of all columns, the target last.
    pivot : tuple of int
    some : slice
        The columns beside it.
    """

    def __init__(
        self,
        first_plane: NDArray[np.int64],
        n_levels: NDArray[np.int64],
        pivot: Variable,
        some: slice,
    ):
        self.first_plane, self.n_levels = first_plane, n_levels
        self.pivot, self.some = np.array(pivot, dtype=np.int64), some
        self.n_pivot = int(np.prod(n_levels[self.pivot]))
        n_pairs = (self.n_pivot - 1) * (float(n_levels[some].mean()) - 1)
        #: Whether cells of levels 0 are left to the margins.
        self.by_planes = n_pairs <= thresholds.CELLS_BY_PLANES

    def empty(self) -> Any:
        width = int(self.n_levels[self.some].max())
        tables = np.zeros((self.some.stop - self.some.start, self.n_pivot, width), dtype=np.int64)
        return [tables, np.zeros(self.n_pivot, dtype=np.int64)]

    def learn_part(self, state: Any, block: Any) -> Any:
        from tamis.compiled.planes import counts_by_histogram, counts_by_planes

        known = block, self.first_plane, self.n_levels, self.pivot, self.some.start
        if self.by_planes:
            counts_by_planes(*known, *state)
        else:
            counts_by_histogram(*known, state[0])
        return state

    def merge(self, state: Any, other: Any) -> Any:
        return [one + two for one, two in zip(state, other, strict=True)]


class PartsCoded:
    """Columns in blocks of rows cut into levels, as :class:`tamis.density.discrete.Coded` has them.

    A variable is named by its columns: one, the target (the last), or two that are crossed.

    Parameters
    ----------
    planes : Reducible
        What :class:`Packing` makes of the blocks.
    cuts : Cuts
        Of all columns and the target.
    n_samples : int
    """

    def __init__(self, planes: Reducible, cuts: Cuts, n_samples: int):
        self._planes, self.n_samples = planes, n_samples
        self._levels, self._first_plane = cuts.n_levels, cuts.first_plane
        self.n_levels, self.gaps = cuts.n_levels[:-1], cuts.gaps[:-1]
        self.target: Variable = (len(self.n_levels),)
        sizes = planes.reduce(LevelSizes(self._first_plane, self._levels))
        sizes[:, 0] = n_samples - sizes[:, 1:].sum(axis=1)
        self._sizes = sizes
        self._every = self._entropies(sizes)
        self.entropy = self._every[:-1]
        self._kept: tuple[Variable, Array] | None = None
        self._target_joint = self._joint(self.target)[0]

    def column(self, j: int) -> Variable:
        """One column."""
        return (j,)

    def crossed(self, one: Variable, other: Variable) -> Variable:
        """A pair of variables as one."""
        return one + other

    def entropy_of(self, variable: Variable) -> float:
        """Entropy of a variable, in nats; of a pair that has the target in it."""
        if len(variable) == 1:
            return float(self._every[variable[0]])
        return float(self._target_joint[variable[0]])

    def joint_entropy(self, pivot: Variable) -> Array:
        """Entropy of the pair (column, pivot) for each column, in nats."""
        if pivot == self.target:
            return self._target_joint
        if self._kept is not None and self._kept[0] == pivot:
            return self._kept[1]
        joint, without = self._joint(pivot)
        if without is not None:  # those of the first column of a pair alone
            self._kept = pivot[:1], without
        return joint

    def information(self, variable: Variable) -> Array:
        """Mutual information of each column with a variable, in nats."""
        found = self.entropy + self.entropy_of(variable) - self.joint_entropy(variable)
        return np.asarray(settled(found))

    def pair_blocks(self) -> Iterator[PairBlock]:
        """All pairs of columns, each once, those of a column with the later ones from one pass."""
        for i in range(len(self.n_levels)):
            alone = slice(i, i + 1)
            yield PairBlock(alone, alone, self._target_told[alone, None])
            if i + 1 < len(self.n_levels):
                joint, without = self._joint((i, *self.target), i + 1)
                assert without is not None
                yield PairBlock(alone, slice(i + 1, len(self.n_levels)), (without - joint)[None])

    @property
    def _target_told(self) -> Array:
        """H(x_j) - H(x_j, y): what a pair of a column with itself tells."""
        return np.asarray(self.entropy - self._target_joint)

    def _joint(self, pivot: Variable, start: int = 0) -> tuple[Array, Array | None]:
        """Joint entropies with a pivot and, of a pair, with its first column, from one pass."""
        joint, first = [], []
        for some in self._parts(int(np.prod(self._levels[list(pivot)])), start):
            tables = self._tables(pivot, some)
            joint.append(self._entropies(tables.reshape(len(tables), -1)))
            if len(pivot) == 2:
                levels = self._levels[list(pivot)]
                alone = tables.reshape(len(tables), *levels, -1).sum(axis=2)
                first.append(self._entropies(alone.reshape(len(tables), -1)))
        return np.concatenate(joint), np.concatenate(first) if first else None

    def _tables(self, pivot: Variable, some: slice) -> NDArray[np.int64]:
        """Counts (columns, levels of the pivot, levels), all cells filled."""
        counting = PivotCounts(self._first_plane, self._levels, pivot, some)
        tables, sizes = self._planes.reduce(counting)
        if not counting.by_planes:
            return np.asarray(tables)
        sizes[0] = self.n_samples - sizes[1:].sum()
        tables[:, 0] = self._sizes[some, : tables.shape[2]] - tables[:, 1:].sum(axis=1)
        tables[:, :, 0] = sizes - tables[:, :, 1:].sum(axis=2)
        return np.asarray(tables)

    def _parts(self, n_pivot: int, start: int) -> Iterator[slice]:
        """Columns from one on whose tables can be held at once."""
        step = max(1, TABLES // (n_pivot * int(self.n_levels.max())))
        for first in range(start, len(self.n_levels), step):
            yield slice(first, min(first + step, len(self.n_levels)))

    def _entropies(self, counts: NDArray[np.int64]) -> Array:
        """Entropy of each row of counts, in nats."""
        sums = (counts * np.log(np.maximum(counts, 1))).sum(axis=1)
        return np.asarray(settled(np.log(self.n_samples) - sums / self.n_samples))


def coded_in_parts(
    table: TableInParts, task: str, n_bins: int | None, binning: str, categories: Mask | None
) -> PartsCoded:
    """Columns and target cut as a criterion's parameters say, kept as bit planes."""
    n_rows = table.shape[0]
    rule = number_of_bins(table.name, n_rows, n_bins, binning)
    cuts = cuts_in_parts(table, rule, binning, categories)
    labels = table.labels if task == "classification" else None
    if labels is not None:
        cuts = cuts.with_codes(len(labels.values))
    else:
        cuts = cuts.with_column(target_cuts(table, rule, binning))
    planes = table.source.kept(Packing(cuts, labels), n_rows / 8.0 * int(cuts.first_plane[-1]))
    return PartsCoded(planes, cuts, n_rows)


def learnt_in_parts(criterion: Any, table: TableInParts) -> PartsCoded:
    """The levels that a criterion of the information family asks for."""
    name = type(criterion).__name__
    missing = getattr(criterion, "missing", "level")
    check_missing(name, missing)
    if criterion._unit_columns is not None:
        raise InvalidParameter(
            f"{name} reads a group of columns as one variable, whose levels are not known before "
            "all rows are, and takes no groups where rows come in blocks. Leave feature_groups "
            "out, or use Scatter or PValue, which take them."
        )
    kinds = category_mask(name, criterion.categories, table.shape[1])
    coded = coded_in_parts(table, criterion.task_, criterion.n_bins, criterion.binning, kinds)
    if missing == "pairs" and coded.gaps.any():
        raise InvalidParameter(
            f"{name}(missing='pairs') needs the whole table at once, where rows come in blocks and "
            "some entries are missing. Write missing='level'."
        )
    return coded
