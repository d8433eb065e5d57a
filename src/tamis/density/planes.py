"""Levels of columns in row blocks, stored as bit planes, and joint entropies of column pairs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.blocks.source import Reducible, RowStatistic
from tamis.compiled import thresholds
from tamis.density.chance import chance_within
from tamis.density.discrete import rounded, settled
from tamis.density.levels import Cuts
from tamis.density.scan import PairBlock

#: Largest number of cells of contingency tables that are counted in a single pass (64 MB). Columns
#: with more cells need several passes.
TABLES = 1 << 23

Variable: TypeAlias = tuple[int, ...]


@dataclass(eq=False, repr=False)
class LevelSizes(RowStatistic):
    """Number of rows at each level of each column, except the first level."""

    first_plane: NDArray[np.int64]
    n_levels: NDArray[np.int64]

    def empty(self) -> Any:
        return np.zeros((len(self.n_levels), int(self.n_levels.max())), dtype=np.int64)

    def learn_block(self, state: Any, block: Any) -> Any:
        from tamis.compiled.planes import level_sizes

        level_sizes(block, self.first_plane, self.n_levels, state)
        return state


class PivotCounts(RowStatistic):
    """Contingency tables of a slice of columns with a pivot, which is a column or a pair.

    Parameters
    ----------
    cuts : Cuts
        Cuts of all columns and the target.
    pivot : tuple of int
        Columns of the pivot.
    some : slice
        Columns to count with the pivot.
    """

    def __init__(self, cuts: Cuts, pivot: Variable, some: slice):
        self.first_plane, self.n_levels = cuts.first_plane, cuts.n_levels
        self.pivot, self.some = np.array(pivot, dtype=np.int64), some
        self.n_pivot = int(np.prod(self.n_levels[self.pivot]))
        n_pairs = (self.n_pivot - 1) * (float(self.n_levels[some].mean()) - 1)
        #: Whether bit planes are counted. The cells of level 0 are then computed from the margins.
        self.by_planes = n_pairs <= thresholds.CELLS_BY_PLANES

    def empty(self) -> Any:
        width = int(self.n_levels[self.some].max())
        tables = np.zeros((self.some.stop - self.some.start, self.n_pivot, width), dtype=np.int64)
        return [tables, np.zeros(self.n_pivot, dtype=np.int64)]

    def learn_block(self, state: Any, block: Any) -> Any:
        from tamis.compiled.planes import counts_by_histogram, counts_by_planes

        columns = block, self.first_plane, self.n_levels, self.pivot, self.some.start
        if self.by_planes:
            counts_by_planes(*columns, *state)
        else:
            counts_by_histogram(*columns, state[0])
        return state

    def merge(self, state: Any, other: Any) -> Any:
        return [one + two for one, two in zip(state, other, strict=True)]


class BlockLevels:
    """Columns in row blocks cut into levels, with the interface of ``Coded``.

    A variable is a tuple of column indices: a column, the target (the last index), or a pair.

    Parameters
    ----------
    planes : Reducible
        Row blocks packed by :class:`Packing`.
    cuts : Cuts
        Cuts of all columns and the target.
    n_samples : int
        Number of rows.
    """

    def __init__(self, planes: Reducible, cuts: Cuts, n_samples: int):
        self._planes, self.n_samples = planes, n_samples
        self._cuts, self._levels = cuts, cuts.n_levels
        self.n_levels, self.has_missing = cuts.n_levels[:-1], cuts.has_missing[:-1]
        self.target: Variable = (len(self.n_levels),)
        sizes = planes.reduce(LevelSizes(cuts.first_plane, cuts.n_levels))
        sizes[:, 0] = n_samples - sizes[:, 1:].sum(axis=1)
        self._sizes = sizes
        self._all_entropies = self._entropies(sizes)
        self.entropy = self._all_entropies[:-1]
        self._cache: tuple[Variable, Array] | None = None
        self._target_joint = self._joint(self.target)[0]

    def column(self, j: int) -> Variable:
        """Return a single column as a variable, a tuple of column indices."""
        return (j,)

    def crossed(self, one: Variable, other: Variable) -> Variable:
        """Combine two variables into one."""
        return one + other

    def entropy_of(self, variable: Variable) -> float:
        """Return the entropy, in nats, of a column or of a pair of a column and the target."""
        if len(variable) == 1:
            return float(self._all_entropies[variable[0]])
        return float(self._target_joint[variable[0]])

    def joint_entropy(self, pivot: Variable) -> Array:
        """Return the entropy of the pair (column, pivot) for each column, in nats."""
        if pivot == self.target:
            return self._target_joint
        if self._cache is not None and self._cache[0] == pivot:
            return self._cache[1]
        joint, with_first = self._joint(pivot)
        if with_first is not None:
            self._cache = pivot[:1], with_first
        return joint

    def joint_with(self, j: int) -> Array:
        """Return the entropy of the pair (column, column j) for each column, in nats."""
        return self.joint_entropy(self.column(j))

    def chance_entropy(self, variable: Variable, given: Variable | None = None) -> Array:
        """Return the same as :meth:`tamis.density.discrete.Coded.chance_entropy`."""
        if given is None:
            values = chance_within(self._sizes[variable[0]][None]).values
            return self._from_sums(values[self._sizes[:-1]].sum(axis=1))
        pivot = given + variable
        levels = self._levels[list(pivot)]
        joint, expected, chance = [], [], None
        for some in self._column_slices(int(np.prod(levels))):
            tables = self._tables(pivot, some)
            joint.append(self._entropies(tables.reshape(len(tables), -1)))
            tables = tables.reshape(len(tables), *levels, -1)
            if chance is None:
                chance = chance_within(tables[0].sum(axis=2))
            cells = chance.start[:, None] + tables.sum(axis=2)
            expected.append(self._from_sums(chance.values[cells].sum(axis=(1, 2))))
        # cached, because the caller needs these entropies next
        self._cache = pivot, np.concatenate(joint)
        return np.concatenate(expected)

    def information(self, variable: Variable, *, adjusted: bool = False) -> Array:
        """Return the mutual information of each column with a variable, in nats."""
        joint = self.joint_entropy(variable)
        if adjusted:
            return rounded(self.chance_entropy(variable) - joint)
        return np.asarray(settled(self.entropy + self.entropy_of(variable) - joint))

    def pair_blocks(self, *, adjusted: bool = False) -> Iterator[PairBlock]:
        """Iterate over blocks of all pairs of columns.

        The pairs (i, j > i) of a column i take a single pass over the rows.
        """
        if adjusted:
            yield from self._adjusted_blocks()
            return
        with_itself = (self.entropy - self._target_joint)[:, None]
        for i in range(len(self.n_levels)):
            one = slice(i, i + 1)
            yield PairBlock(one, one, with_itself[one])
            if i + 1 < len(self.n_levels):
                joint, with_first = self._joint((i, *self.target), i + 1)
                assert with_first is not None
                yield PairBlock(one, slice(i + 1, len(self.n_levels)), (with_first - joint)[None])

    def _adjusted_blocks(self) -> Iterator[PairBlock]:
        n_columns, n_target = len(self.n_levels), int(self._levels[self.target[0]])
        margins = np.zeros((n_columns, int(self.n_levels.max()), n_target), dtype=np.int64)
        for some in self._column_slices(n_target):
            tables = self._tables(self.target, some)
            margins[some, : tables.shape[2]] = tables.transpose(0, 2, 1)
        values, start = chance_within(margins.reshape(-1, n_target))
        start = start.reshape(n_columns, -1)
        for i in range(n_columns):
            one, n_levels = slice(i, i + 1), int(self.n_levels[i])
            yield PairBlock(one, one, np.zeros((1, 1)), np.zeros((1, 1)))
            for some in self._column_slices(n_levels * n_target, i + 1):
                tables = self._tables((i, *self.target), some)
                tables = tables.reshape(len(tables), n_levels, n_target, -1)
                sums = (tables * np.log(np.maximum(tables, 1))).sum(axis=(1, 2, 3))
                cells = tables.sum(axis=2)
                given = start[some, None, : cells.shape[2]], start[i, :n_levels, None]
                information, transposed = (
                    (sums - values[cells + own].sum(axis=(1, 2))) / self.n_samples for own in given
                )
                yield PairBlock(one, some, information[None], transposed[None])

    def available_tables(
        self, target: Variable, pick: int | None = None
    ) -> Iterator[NDArray[np.int64]]:
        """Iterate over the tables of :meth:`tamis.density.discrete.Coded.available_tables`."""
        pivot = target if pick is None else (pick, *target)
        n_pick = 1 if pick is None else int(self._levels[pick])
        n_target = int(self._levels[target[0]])
        for some in self._column_slices(n_pick * n_target):
            tables = self._tables(pivot, some)
            tables = tables.reshape(len(tables), n_pick, n_target, -1)
            for j in np.flatnonzero(self.has_missing[some]):
                tables[j, ..., self.n_levels[some][j] - 1] = 0
            if pick is not None and self.has_missing[pick]:
                tables[:, -1] = 0
            yield tables

    def _joint(self, pivot: Variable, start: int = 0) -> tuple[Array, Array | None]:
        """Return the joint entropy of each column with a pivot.

        If the pivot is a pair, the second result is the joint entropy with its first column.
        """
        joint, first, levels = [], [], self._levels[list(pivot)]
        for some in self._column_slices(int(np.prod(levels)), start):
            tables = self._tables(pivot, some)
            joint.append(self._entropies(tables.reshape(len(tables), -1)))
            if len(pivot) == 2:
                with_first = tables.reshape(len(tables), *levels, -1).sum(axis=2)
                first.append(self._entropies(with_first.reshape(len(tables), -1)))
        return np.concatenate(joint), np.concatenate(first) if first else None

    def _tables(self, pivot: Variable, some: slice) -> NDArray[np.int64]:
        """Return the contingency tables of columns with a pivot.

        The counts have the shape (columns, levels of the pivot, levels of the column).
        """
        counting = PivotCounts(self._cuts, pivot, some)
        tables, sizes = self._planes.reduce(counting)
        if not counting.by_planes:
            return np.asarray(tables)
        sizes[0] = self.n_samples - sizes[1:].sum()
        tables[:, 0] = self._sizes[some, : tables.shape[2]] - tables[:, 1:].sum(axis=1)
        tables[:, :, 0] = sizes - tables[:, :, 1:].sum(axis=2)
        return np.asarray(tables)

    def _column_slices(self, n_pivot: int, start: int = 0) -> Iterator[slice]:
        """Iterate over slices of columns whose contingency tables fit into memory together."""
        step = max(1, TABLES // (n_pivot * int(self.n_levels.max())))
        for first in range(start, len(self.n_levels), step):
            yield slice(first, min(first + step, len(self.n_levels)))

    def _entropies(self, counts: NDArray[np.int64]) -> Array:
        """Return the entropy of each row of counts, in nats."""
        return self._from_sums((counts * np.log(np.maximum(counts, 1))).sum(axis=1))

    def _from_sums(self, sums: Array) -> Array:
        """Return entropies, given sums of n log n or their expectations."""
        return np.asarray(settled(np.log(self.n_samples) - sums / self.n_samples))
