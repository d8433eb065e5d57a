"""Groups of columns in row blocks, each combined into a single variable."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Subset
from tamis.blocks.labels import Labels
from tamis.blocks.source import RowBlock, RowStatistic
from tamis.blocks.table import BlockTable
from tamis.density.discrete import MISSING
from tamis.density.levels import Cuts, Packing
from tamis.exceptions import InvalidParameter

#: Largest number of combinations of levels in a group, about three columns of ten levels. A
#: contingency table of two groups and the target then has a few million cells, which fit into
#: memory.
MOST_COMBINATIONS = 1024


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
        The classes, or None for a real target, which is cut like a column.
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
