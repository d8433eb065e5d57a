"""Levels of columns in blocks of rows, kept as bit planes, and the entropies of pairs of them."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask, Subset
from tamis.blocks.source import Reducible, RowStatistic
from tamis.blocks.table import BlockTable
from tamis.compiled import thresholds
from tamis.density.chance import chance_within
from tamis.density.column_groups import JoinedPacking, joined_cuts
from tamis.density.discrete import (
    category_mask,
    number_of_bins,
    rounded,
    settled,
)
from tamis.density.levels import Cuts, Packing, cuts_of_blocks, target_cuts
from tamis.density.scan import PairBlock

#: Cells of tables that are counted in a pass, 64 megabytes of them: with more levels the columns
#: come in several.
TABLES = 1 << 23

Variable: TypeAlias = tuple[int, ...]


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

    def learn_block(self, state: Any, block: Any) -> Any:
        from tamis.compiled.planes import level_sizes

        level_sizes(block, self.first_plane, self.n_levels, state)
        return state


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

    def learn_block(self, state: Any, block: Any) -> Any:
        from tamis.compiled.planes import counts_by_histogram, counts_by_planes

        known = block, self.first_plane, self.n_levels, self.pivot, self.some.start
        if self.by_planes:
            counts_by_planes(*known, *state)
        else:
            counts_by_histogram(*known, state[0])
        return state

    def merge(self, state: Any, other: Any) -> Any:
        return [one + two for one, two in zip(state, other, strict=True)]


class BlockLevels:
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

    def joint_with(self, j: int) -> Array:
        """Entropy of the pair (column, column j) for each column, in nats."""
        return self.joint_entropy(self.column(j))

    def chance_entropy(self, variable: Variable, given: Variable | None = None) -> Array:
        """As :meth:`tamis.density.discrete.Coded.chance_entropy`."""
        if given is None:
            values = chance_within(self._sizes[variable[0]][None]).values
            return self._from_sums(values[self._sizes[:-1]].sum(axis=1))
        pivot = given + variable
        levels = self._levels[list(pivot)]
        joint, expected, chance = [], [], None
        for some in self._parts(int(np.prod(levels)), 0):
            tables = self._tables(pivot, some)
            joint.append(self._entropies(tables.reshape(len(tables), -1)))
            tables = tables.reshape(len(tables), *levels, -1)
            if chance is None:
                chance = chance_within(tables[0].sum(axis=2))
            cells = chance.start[:, None] + tables.sum(axis=2)
            expected.append(self._from_sums(chance.values[cells].sum(axis=(1, 2))))
        self._kept = pivot, np.concatenate(joint)  # which is asked for next
        return np.concatenate(expected)

    def information(self, variable: Variable, *, adjusted: bool = False) -> Array:
        """Mutual information of each column with a variable, in nats."""
        if adjusted:
            return rounded(self.chance_entropy(variable) - self.joint_entropy(variable))
        found = self.entropy + self.entropy_of(variable) - self.joint_entropy(variable)
        return np.asarray(settled(found))

    def pair_blocks(self, *, adjusted: bool = False) -> Iterator[PairBlock]:
        """All pairs of columns, each once, those of a column with the later ones from one pass."""
        if adjusted:
            yield from self._adjusted_blocks()
            return
        for i in range(len(self.n_levels)):
            alone = slice(i, i + 1)
            yield PairBlock(alone, alone, self._target_told[alone, None])
            if i + 1 < len(self.n_levels):
                joint, without = self._joint((i, *self.target), i + 1)
                assert without is not None
                yield PairBlock(alone, slice(i + 1, len(self.n_levels)), (without - joint)[None])

    def _adjusted_blocks(self) -> Iterator[PairBlock]:
        n_columns, n_target = len(self.n_levels), int(self._levels[self.target[0]])
        margins = np.zeros((n_columns, int(self.n_levels.max()), n_target), dtype=np.int64)
        for some in self._parts(n_target, 0):
            tables = self._tables(self.target, some)
            margins[some, : tables.shape[2]] = tables.transpose(0, 2, 1)
        values, start = chance_within(margins.reshape(-1, n_target))
        start = start.reshape(n_columns, -1)
        for i in range(n_columns):
            alone, n_levels = slice(i, i + 1), int(self.n_levels[i])
            yield PairBlock(alone, alone, np.zeros((1, 1)), np.zeros((1, 1)))
            for some in self._parts(n_levels * n_target, i + 1):
                tables = self._tables((i, *self.target), some)
                tables = tables.reshape(len(tables), n_levels, n_target, -1)
                found = (tables * np.log(np.maximum(tables, 1))).sum(axis=(1, 2, 3))
                cells = tables.sum(axis=2)
                given = start[some, None, : cells.shape[2]], start[i, :n_levels, None]
                told, turned = (
                    (found - values[cells + own].sum(axis=(1, 2))) / self.n_samples for own in given
                )
                yield PairBlock(alone, some, told[None], turned[None])

    @property
    def _target_told(self) -> Array:
        """H(x_j) - H(x_j, y): what a pair of a column with itself tells."""
        return np.asarray(self.entropy - self._target_joint)

    def available_tables(
        self, target: Variable, pick: int | None = None
    ) -> Iterator[NDArray[np.int64]]:
        """As :meth:`tamis.density.discrete.Coded.available_tables`."""
        pivot = target if pick is None else (pick, *target)
        n_pick = 1 if pick is None else int(self._levels[pick])
        n_target = int(self._levels[target[0]])
        for some in self._parts(n_pick * n_target, 0):
            tables = self._tables(pivot, some)
            tables = tables.reshape(len(tables), n_pick, n_target, -1)
            for j in np.flatnonzero(self.gaps[some]):
                tables[j, ..., self.n_levels[some][j] - 1] = 0
            if pick is not None and self.gaps[pick]:
                tables[:, -1] = 0
            yield tables

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
        return self._from_sums((counts * np.log(np.maximum(counts, 1))).sum(axis=1))

    def _from_sums(self, sums: Array) -> Array:
        """Entropies from sums of n log n, or of what is expected of them."""
        return np.asarray(settled(np.log(self.n_samples) - sums / self.n_samples))


def coded_blocks(
    table: BlockTable,
    task: str,
    n_bins: int | None,
    binning: str,
    categories: Mask | None,
    units: tuple[Subset, ...] | None = None,
    *,
    by_pairs: bool = False,
) -> BlockLevels:
    """Columns, or groups of them, and target cut as parameters say, kept as bit planes."""
    n_rows = table.shape[0]
    rule = number_of_bins(n_rows, n_bins)
    cuts = cuts_of_blocks(table, rule, binning, categories)
    joined: Any = ()
    if units is not None:
        cuts, *joined = joined_cuts(table, cuts, units, by_pairs)
    labels = table.labels if task == "classification" else None
    if labels is not None:
        cuts = cuts.with_codes(len(labels.values))
    else:
        cuts = cuts.with_column(target_cuts(table, rule, binning))
    packing = JoinedPacking(cuts, labels, *joined) if joined else Packing(cuts, labels)
    planes = table.source.kept(packing, n_rows / 8.0 * int(cuts.first_plane[-1]))
    return BlockLevels(planes, cuts, n_rows)


def levels_of_blocks(criterion: Any, table: BlockTable) -> BlockLevels:
    """The levels that a criterion of the information family asks for."""
    name = type(criterion).__name__
    missing = getattr(criterion, "missing", "level")
    kinds = category_mask(name, criterion.categories, table.shape[1])
    rule = criterion.n_bins, criterion.binning, kinds, criterion._unit_columns
    return coded_blocks(table, criterion.task_, *rule, by_pairs=missing == "pairs")
