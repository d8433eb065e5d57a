"""Groups of columns in blocks of rows as one variable each: the combinations that occur."""

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

#: Combinations that a group may have: three columns of ten levels. The counts of two groups and a
#: target of some classes are then a few million, which a pass can hold.
MOST_COMBINATIONS = 1024


class Groups:
    """How the levels of columns become one key for each group and row.

    Parameters
    ----------
    cuts : Cuts
        Of the columns.
    units : sequence of array of int
        The columns of each unit.
    by_pairs : bool
        Whether a group is missing where one of its columns is; else that is a level of the column.
    """

    def __init__(self, cuts: Cuts, units: tuple[Subset, ...], by_pairs: bool):
        self.cuts, self.units, self.by_pairs = cuts, units, by_pairs
        #: Units of several columns.
        self.several = [u for u, columns in enumerate(units) if len(columns) > 1]

    def keys(self, block: RowBlock, unit: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """A key for each row, the same for the same combination; and where there is one."""
        columns = self.units[unit]
        levels = np.array([self._levels(block, int(j)) for j in columns])
        n_levels = self.cuts.n_levels[columns]
        there = np.ones(len(block.X), dtype=bool)
        if self.by_pairs:
            gone = self.cuts.gaps[columns][:, None] & (levels == n_levels[:, None] - 1)
            there = ~gone.any(axis=0)
        if np.log2(n_levels.astype(float)).sum() < 62:
            weights = np.concatenate([[1], np.cumprod(n_levels[:0:-1])])[::-1]
            return weights @ levels, there
        # too many for a number: the levels themselves, as bytes
        rows = np.ascontiguousarray(levels.T, dtype=np.uint32)
        return rows.view(np.dtype((np.void, rows.shape[1] * 4)))[:, 0], there

    def _levels(self, block: RowBlock, j: int) -> NDArray[np.int64]:
        values = block.X[:, j].astype(float)
        cuts = self.cuts.cuts[j, : self.cuts.n_levels[j] - 1]
        return np.searchsorted(cuts, np.where(np.isnan(values), MISSING, values), side="right")


class Combinations(RowStatistic):
    """The combinations of each group that occur.

    Parameters
    ----------
    name : str
        Who asks, for sentences.
    groups : Groups
    """

    def __init__(self, name: str, groups: Groups):
        self.name, self.groups = name, groups

    def empty(self) -> Any:
        return {unit: set() for unit in self.groups.several}

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        for unit in self.groups.several:
            keys, there = self.groups.keys(block, unit)
            state[unit] |= set(np.unique(keys[there]).tolist())
        return self._checked(state)

    def merge(self, state: Any, other: Any) -> Any:
        return self._checked({unit: state[unit] | other[unit] for unit in state})

    def _checked(self, state: Any) -> Any:
        for unit, found in state.items():
            if len(found) > MOST_COMBINATIONS:
                raise InvalidParameter(
                    f"{self.name} reads a group of columns as one variable, and where rows come in "
                    f"blocks it takes groups of up to {MOST_COMBINATIONS} combinations of levels, "
                    f"but a group of {len(self.groups.units[unit])} columns has more. Write a "
                    "lower n_bins, make smaller feature_groups, or use Scatter or PValue."
                )
        return state

    def finish(self, state: Any) -> Any:
        # rising, so that levels do not depend on the order of the blocks
        return {unit: sorted(found) for unit, found in state.items()}


class JoinedPacking(Packing):
    """Makes bit planes of a block: those of its units, and behind them those of its target.

    Parameters
    ----------
    cuts : Cuts
        Of all units and the target.
    labels : Labels or None
    groups : Groups
    found : dict of int to list
        Keys of the combinations of each group.
    """

    def __init__(self, cuts: Cuts, labels: Labels | None, groups: Groups, found: dict[int, Any]):
        super().__init__(cuts, labels)
        self.groups = groups
        self.numbers = {unit: {k: i for i, k in enumerate(keys)} for unit, keys in found.items()}

    def _write_columns(self, block: RowBlock, packed: NDArray[np.uint64]) -> None:
        for unit, columns in enumerate(self.groups.units):
            place = slice(unit, unit + 1)
            if unit in self.numbers:
                self._write(self._codes(block, unit)[None], place, packed)
            else:
                self._write(np.ascontiguousarray(block.X[:, columns].T), place, packed)

    def _codes(self, block: RowBlock, unit: int) -> NDArray[np.float64]:
        """The number of the combination in each row, NaN where there is none."""
        keys, there = self.groups.keys(block, unit)
        values, where = np.unique(keys, return_inverse=True)
        numbers = self.numbers[unit]
        # a combination that only rows with a gap have has no number
        found = np.array([numbers.get(key, -1) for key in values.tolist()], dtype=float)
        return np.where(there, found[where], np.nan)


def joined_cuts(
    table: BlockTable, cuts: Cuts, units: tuple[Subset, ...], by_pairs: bool
) -> tuple[Cuts, Groups, dict[int, Any]]:
    """The levels of units, how they follow from those of columns, and the combinations found."""
    groups = Groups(cuts, units, by_pairs)
    found = table.reduce(Combinations(table.name, groups))
    rows, gaps = [], []
    for unit, columns in enumerate(units):
        if unit not in found:
            j = int(columns[0])
            rows.append(cuts.cuts[j, : cuts.n_levels[j] - 1])
            gaps.append(bool(cuts.gaps[j]))
            continue
        own = np.arange(1.0, len(found[unit]))
        gap = by_pairs and bool(cuts.gaps[columns].any())
        rows.append(np.append(own, MISSING) if gap and found[unit] else own)
        gaps.append(gap)
    return Cuts.of(rows, np.array(gaps)), groups, found
