"""Discretisation of columns in row blocks: the cuts between levels, and levels as bit planes.

The columns of a group are combined into a single variable.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask, Subset
from tamis.blocks.labels import Labels
from tamis.blocks.quantiles import (
    DistinctValues,
    KeyCounts,
    columns_of,
    order_statistics,
    target_of,
)
from tamis.blocks.source import RowBlock, RowStatistic, Together
from tamis.blocks.table import BlockTable
from tamis.density.discrete import MISSING, distinct_cuts, width_cuts
from tamis.exceptions import InvalidParameter

#: Largest number of combinations of levels in a group, about three columns of ten levels. A
#: contingency table of two groups and the target then has a few million cells, which fit into
#: memory.
MOST_COMBINATIONS = 1024


class Cuts(NamedTuple):
    """Cuts of columns into levels.

    Attributes
    ----------
    cuts : array of shape (n_columns, n_cuts)
        Smallest value of each level but the first, in ascending order, padded with infinity.
    n_levels : array of int
        Number of levels of each column.
    has_missing : array of bool
        Whether each column has missing values, which are then its last level.
    """

    cuts: Array
    n_levels: NDArray[np.int64]
    has_missing: Mask

    @property
    def first_plane(self) -> NDArray[np.int64]:
        """Index of the first bit plane of each column, followed by the total number of planes."""
        n_planes = np.ceil(np.log2(np.maximum(self.n_levels, 1))).astype(np.int64)
        return np.concatenate([[0], np.cumsum(n_planes)])

    @classmethod
    def of(cls, rows: list[Array], has_missing: Mask) -> Self:
        """Combine the cuts of all columns, given an array of cuts for each column."""
        cuts = np.full((len(rows), max(1, max(map(len, rows), default=0))), np.inf)
        for j, own in enumerate(rows):
            cuts[j, : len(own)] = own
        return cls(cuts, np.array([len(own) + 1 for own in rows]), has_missing)

    def with_column(self, cuts: Array) -> "Cuts":
        """Return the cuts of these columns and of one more column, whose cuts are given."""
        width = max(self.cuts.shape[1], len(cuts))
        found = np.full((len(self.cuts) + 1, width), np.inf)
        found[:-1, : self.cuts.shape[1]] = self.cuts
        found[-1, : len(cuts)] = cuts
        levels = np.append(self.n_levels, len(cuts) + 1)
        return Cuts(found, levels, np.append(self.has_missing, False))


def cuts_of_blocks(table: BlockTable, n_bins: int, binning: str, categories: Mask | None) -> Cuts:
    """Return the cuts that :class:`tamis.density.discrete.Coded` makes in the whole table."""
    n_rows, n_columns = table.shape
    codes = np.full(n_columns, binning == "codes")
    if categories is not None:
        codes |= categories
    look = DistinctValues(columns_of, n_columns, n_bins, codes, table.names, table.name)
    count = KeyCounts(columns_of, n_columns)
    values, counts = table.reduce(Together([look, count]), takes_missing=True)
    survey = table.survey
    for constant in np.flatnonzero(survey.alike(table.standardize)):
        values[constant] = survey.low[[constant]]
    n_known = n_rows - survey.gaps
    many = np.array([found is None for found in values])
    cut: Any = np.full((n_columns, n_bins - 1), np.inf)
    if binning == "frequency":
        ranks = np.where(many[:, None], np.arange(1, n_bins) * n_known[:, None] // n_bins, -1)
        cut = order_statistics(table.reduce, columns_of, counts, ranks) if many.any() else cut
        cut[many] = distinct_cuts(cut[many], survey.low[many])
    else:
        cut[many] = width_cuts(survey.low[many], survey.high[many], n_bins)
    rows = []
    for j, own in enumerate(values):
        cuts = cut[j][np.isfinite(cut[j])] if own is None else own[1:]
        # missing values are the last level
        rows.append(np.append(cuts, MISSING) if survey.gaps[j] and n_known[j] else cuts)
    return Cuts.of(rows, survey.gaps > 0)


def target_cuts(table: BlockTable, n_bins: int, binning: str) -> Array:
    """Return the cuts of a numeric target, which is cut like a column."""
    values = table.labels.values.astype(float)
    if binning == "codes":
        raise InvalidParameter(
            f"{table.name} needs binning='frequency' or 'width' for a numeric target in row "
            "blocks, got 'codes'."
        )
    if len(values) <= n_bins:
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
    """Function that packs a row block into bit planes, first of its columns, then of its target.

    Parameters
    ----------
    cuts : Cuts
        Cuts of all columns and the target.
    labels : Labels or None
        The classes, or None for a numeric target, which is cut like a column.
    """

    def __init__(self, cuts: Cuts, labels: Labels | None):
        self.cuts, self.labels = cuts, labels
        self.first_plane = cuts.first_plane

    def __call__(self, block: RowBlock) -> NDArray[np.uint64]:
        """Return an array of the number of rows, followed by the bit planes."""
        n_rows, n_planes = len(block.y), int(self.first_plane[-1])
        packed = np.empty(1 + n_planes * -(-n_rows // 64), dtype=np.uint64)
        packed[0] = n_rows
        codes = target_of(block) if self.labels is None else self.labels.codes(block.y)[None]
        self._write_columns(block, packed)
        self._write(codes.astype(float), slice(len(self.cuts.cuts) - 1, None), packed)
        return packed

    def _write_columns(self, block: RowBlock, packed: NDArray[np.uint64]) -> None:
        self._write(np.ascontiguousarray(block.X.T), slice(0, -1), packed)

    def _write(self, rows: NDArray[Any], some: slice, packed: NDArray[np.uint64]) -> None:
        from tamis._parallel import in_threads
        from tamis.compiled.planes import pack_planes

        cuts, n_levels, has_missing = (values[some] for values in self.cuts)
        start, n_planes = some.start, int(self.first_plane[-1])

        def pack(these: slice) -> None:
            planes = self.first_plane[start + these.start : start + these.stop + 1]
            levels = cuts[these], n_levels[these], has_missing[these]
            pack_planes(rows[these], *levels, planes, n_planes, packed)

        in_threads(pack, len(rows), rows.size)


class Groups:
    """Combination of the levels of a group's columns into one key per row.

    Parameters
    ----------
    cuts : Cuts
        Cuts of the columns.
    units : sequence of array of int
        Columns of each unit (a column, or a group of columns that is selected as one).
    by_pairs : bool
        Whether a group is missing if one of its columns is missing. Otherwise a missing value is a
        level of its column.
    """

    def __init__(self, cuts: Cuts, units: tuple[Subset, ...], by_pairs: bool):
        self.cuts, self.units, self.by_pairs = cuts, units, by_pairs
        #: Indices of the units that have several columns.
        self.several = [u for u, columns in enumerate(units) if len(columns) > 1]

    def keys(self, block: RowBlock, unit: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the key of each row's combination of levels, and a mask of rows that are known.

        A row is not known if its group is missing.
        """
        columns = self.units[unit]
        levels = np.array([self._levels(block, int(j)) for j in columns])
        n_levels = self.cuts.n_levels[columns]
        known = np.ones(len(block.X), dtype=bool)
        if self.by_pairs:
            missing = self.cuts.has_missing[columns][:, None] & (levels == n_levels[:, None] - 1)
            known = ~missing.any(axis=0)
        if np.log2(n_levels.astype(float)).sum() < 62:
            weights = np.concatenate([[1], np.cumprod(n_levels[:0:-1])])[::-1]
            return weights @ levels, known
        # there are too many combinations for an integer, so the bytes of the levels are the key
        rows = np.ascontiguousarray(levels.T, dtype=np.uint32)
        return rows.view(np.dtype((np.void, rows.shape[1] * 4)))[:, 0], known

    def _levels(self, block: RowBlock, j: int) -> NDArray[np.int64]:
        values = block.X[:, j].astype(float)
        cuts = self.cuts.cuts[j, : self.cuts.n_levels[j] - 1]
        return np.searchsorted(cuts, np.where(np.isnan(values), MISSING, values), side="right")


@dataclass(eq=False, repr=False)
class Combinations(RowStatistic):
    """Statistic that collects the combinations of levels that occur in each group.

    Parameters
    ----------
    name : str
        Name of the criterion, for messages.
    groups : Groups
        The groups.
    """

    name: str
    groups: Groups

    def empty(self) -> Any:
        return {unit: set() for unit in self.groups.several}

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        for unit in self.groups.several:
            keys, known = self.groups.keys(block, unit)
            state[unit] |= set(np.unique(keys[known]).tolist())
        return self._check_size(state)

    def merge(self, state: Any, other: Any) -> Any:
        return self._check_size({unit: state[unit] | other[unit] for unit in state})

    def _check_size(self, state: Any) -> Any:
        for unit, found in state.items():
            if len(found) > MOST_COMBINATIONS:
                raise InvalidParameter(
                    f"{self.name} needs groups of up to {MOST_COMBINATIONS} combinations of levels "
                    f"in row blocks, but a group of {len(self.groups.units[unit])} columns has "
                    "more. Write a lower n_bins, make smaller feature_groups, or use Scatter or "
                    "PValue."
                )
        return state

    def finish(self, state: Any) -> Any:
        # sorted, so that levels do not depend on the order of the blocks
        return {unit: sorted(found) for unit, found in state.items()}


class JoinedPacking(Packing):
    """Function that packs a row block into bit planes, first of its units, then of its target.

    Parameters
    ----------
    cuts : Cuts
        Cuts of all units and the target.
    labels : Labels or None
        The classes, or None for a numeric target, which is cut like a column.
    groups : Groups
        The groups.
    found : dict of int to list
        Keys of the combinations that occur in each group, by index of the unit.
    """

    def __init__(self, cuts: Cuts, labels: Labels | None, groups: Groups, found: dict[int, Any]):
        super().__init__(cuts, labels)
        self.groups = groups
        self.numbers = {unit: {k: i for i, k in enumerate(keys)} for unit, keys in found.items()}

    def _write_columns(self, block: RowBlock, packed: NDArray[np.uint64]) -> None:
        for unit, columns in enumerate(self.groups.units):
            if unit in self.numbers:
                values = self._codes(block, unit)[None]
            else:
                values = np.ascontiguousarray(block.X[:, columns].T)
            self._write(values, slice(unit, unit + 1), packed)

    def _codes(self, block: RowBlock, unit: int) -> NDArray[np.float64]:
        """Return the number of each row's combination, or NaN if the group is missing."""
        keys, known = self.groups.keys(block, unit)
        values, where = np.unique(keys, return_inverse=True)
        numbers = self.numbers[unit]
        # a combination that occurs only in rows with a missing value has no number
        found = np.array([numbers.get(key, -1) for key in values.tolist()], dtype=float)
        return np.where(known, found[where], np.nan)


def joined_cuts(
    table: BlockTable, cuts: Cuts, units: tuple[Subset, ...], by_pairs: bool
) -> tuple[Cuts, Groups, dict[int, Any]]:
    """Return the cuts of the units, the groups, and the combinations that occur in each group."""
    groups = Groups(cuts, units, by_pairs)
    found = table.reduce(Combinations(table.name, groups))
    rows, with_missing = [], []
    for unit, columns in enumerate(units):
        missing = bool(cuts.has_missing[columns].any())
        if unit not in found:
            j = int(columns[0])
            rows.append(cuts.cuts[j, : cuts.n_levels[j] - 1])
        else:
            missing = missing and by_pairs
            own = np.arange(1.0, len(found[unit]))
            rows.append(np.append(own, MISSING) if missing and found[unit] else own)
        with_missing.append(missing)
    return Cuts.of(rows, np.array(with_missing)), groups, found
