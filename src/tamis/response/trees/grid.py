"""Points that the columns of an ensemble are set to: one for each cell that holds a value.

Cells of a column with thresholds are *slots* in a row, with one more behind the last: the cells
that lead to a node are a run of slots. Missing values where nodes differ, categories, and columns
that are altered together have *alternatives* instead, each a row of codes by itself.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tamis._arrays import Array, Mask
from tamis.compiled import tree_cells
from tamis.response.trees.cells import Cells, Layout
from tamis.response.trees.forest import Integers


@dataclass
class Alternatives:
    """Rows of codes that take the place of some columns of codes of a row."""

    #: In which group each column of codes is altered, -1 for none.
    group: Integers
    #: Alternatives of each group: ends[g] to ends[g + 1].
    ends: Integers
    #: For each alternative a row of the table that is it, its unit, and its weight.
    rows: Integers
    unit: Integers
    weight: Array
    #: For each group the alternative that each row of the table is, -1 where slots stand for it.
    which: list[Integers]

    def add(
        self, cells: Cells, members: Integers, codes: Integers, rows: Integers, share: Array,
        unit: int,
    ) -> None:  # fmt: skip
        """A group more: the distinct ones among some rows, in the columns of a unit."""
        (mine,) = np.nonzero(np.isin(cells.owner, members))
        _, first, which = np.unique(
            codes[np.ix_(rows, mine)], axis=0, return_index=True, return_inverse=True
        )
        self.group[mine] = len(self.which)
        of_rows = np.full(len(codes), -1)
        of_rows[rows] = which.ravel() + self.ends[-1]
        self.which.append(of_rows)
        self.ends = np.r_[self.ends, self.ends[-1] + len(first)]
        self.rows = np.r_[self.rows, rows[first]]
        self.unit = np.r_[self.unit, np.full(len(first), unit)]
        self.weight = np.r_[self.weight, np.bincount(which.ravel(), share[rows])]


@dataclass
class Grid:
    """Points of the units of columns that are altered; weights of a unit have the sum 1."""

    cells: Cells
    #: The table whose values the points are, and its weights; the unit of each used column.
    codes: Integers
    weights: Array | None
    units: Integers
    #: For each slot its unit, where the slots of its column stop, and the weight of the points of
    #: the column before it. A last slot is of none.
    unit: Integers
    stops: Integers
    before: Array
    #: For each node the slots that lead to it, the first 32 | behind the last 32; 0 where none
    #: holds a point, and up to the last of all where they go on to the end of their column.
    spans: Integers
    alternatives: Alternatives

    @property
    def n_slots(self) -> int:
        """Number of slots, of which each alternative is one behind those of cells."""
        return len(self.unit) + len(self.alternatives.rows)

    def at_points(self, steps: Array, n_units: int) -> Array:
        """Sums of steps up to the slot of each point of each unit, (units, points, outputs)."""
        offsets, options = slot_offsets(self.cells), self.alternatives
        found = np.zeros((n_units, len(self.codes), steps.shape[1]))
        for u, unit in enumerate(self.units[: self.cells.n_thresholds]):
            if unit >= 0:
                sums = np.cumsum(steps[offsets[u] : offsets[u + 1]], axis=0)
                found[unit] += sums[self.codes[:, u]]
        sums = np.cumsum(steps[len(self.unit) :], axis=0)
        for group, which in enumerate(options.which):
            known = which >= 0
            found[options.unit[options.ends[group]], known] = sums[which[known]]
        return found

    @cached_property
    def rows(self) -> Integers:
        """For each slot a row of the table whose value is there, or at the next slot that has one.

        A run of slots with weight holds a value, so the first at or after its beginning is in it.
        """
        n, offsets = self.cells.n_thresholds, slot_offsets(self.cells)
        found = np.full(len(self.unit), -1, dtype=np.int64)
        for u in range(n):
            rows = np.flatnonzero(~missing_rows(self.cells, self.codes, u))
            if self.weights is not None and self.units[u] >= 0:
                rows = rows[self.weights[rows, self.units[u]] > 0]
            found[offsets[u] + self.codes[rows, u]] = rows
        held = np.where(found >= 0, np.arange(len(found)), len(found) - 1)
        slots = found[np.minimum.accumulate(held[::-1])[::-1]]
        return np.r_[slots, self.alternatives.rows]


def slot_offsets(cells: Cells) -> Integers:
    """The first slot of each used column with thresholds, and the end."""
    return np.r_[0, np.cumsum(cells.n_cells + 1)].astype(np.int64)


def missing_rows(cells: Cells, codes: Integers, u: int) -> Mask:
    """Rows whose value of a used column is missing, where nodes differ about it."""
    (twins,) = np.nonzero(cells.owner[cells.n_thresholds :] == u)
    if not len(twins):
        return np.zeros(len(codes), dtype=bool)
    # above all cuts in the one column of codes, below all in the other
    return np.asarray(codes[:, u] != codes[:, cells.n_thresholds + twins[0]])


def grid_of(
    cells: Cells, layout: Layout, units: Integers, codes: Integers, weights: Array | None = None
) -> Grid:
    """The values of a table, by its codes, as points.

    ``units`` says for each used column in which unit it is altered, -1 for none. ``weights`` of
    shape (rows, units) are those of the rows of the table, by default one share for each row.
    """
    n, offsets = cells.n_thresholds, slot_offsets(cells)
    by_slots = altered_alone(units)[:n] & (layout.words is not None)
    weight = _slot_weights(cells, units, codes, weights)
    sizes = np.diff(offsets)
    weight[np.repeat(~by_slots, sizes)] = 0.0
    total = np.r_[0.0, np.cumsum(weight)]
    return Grid(
        cells, codes, weights, units,
        np.r_[np.repeat(units[:n], sizes), -1].astype(np.int32),
        # the slot behind the last cell is there for its weight before
        np.r_[np.repeat(offsets[1:] - 1, sizes), offsets[-1]].astype(np.int32),
        total - np.r_[np.repeat(total[offsets[:-1]], sizes), total[-1]],
        _spans(layout, by_slots, np.r_[0, np.cumsum(weight > 0)], offsets),
        _alternatives(cells, units, by_slots, codes, weights),
    )  # fmt: skip


def altered_alone(units: Integers) -> Mask:
    """Used columns that are altered by themselves."""
    counts = np.bincount(units[units >= 0], minlength=1)
    return (units >= 0) & (counts[np.maximum(units, 0)] == 1)


def _slot_weights(cells: Cells, units: Integers, codes: Integers, weights: Array | None) -> Array:
    """Weight of each slot; missing values where nodes differ have none."""
    n, offsets = cells.n_thresholds, slot_offsets(cells)
    found = np.zeros(offsets[-1])
    if weights is None:
        tree_cells.count_cells(codes, offsets, found)
        found /= len(codes)
    else:
        slots = codes[:, :n] + offsets[:-1]
        np.add.at(found, slots.ravel(), weights[:, np.maximum(units[:n], 0)].ravel())
    for u in np.flatnonzero(cells.special[:n]):
        gone = missing_rows(cells, codes, int(u))
        mine = slice(offsets[u], offsets[u + 1])
        share = _shares(codes, weights, units[u])[~gone]
        found[mine] = np.bincount(codes[~gone, u], share, minlength=mine.stop - mine.start)
    return found


def _shares(codes: Integers, weights: Array | None, unit: int) -> Array:
    """Weights of the rows of the table as points of a unit."""
    return np.full(len(codes), 1 / len(codes)) if weights is None else weights[:, unit]


def _spans(layout: Layout, by_slots: Mask, held: Integers, offsets: Integers) -> Integers:
    """Slots that lead to each node, where they hold a point; ``held`` counts points before."""
    if not by_slots.any():
        return np.zeros(len(layout.parent), dtype=np.uint64)
    known = (layout.parent < len(by_slots)) & (layout.low <= layout.high)
    known &= by_slots[np.where(known, layout.parent, 0)]
    u = np.where(known, layout.parent, 0)
    first = offsets[u] + np.where(known, layout.low, 0)
    behind = offsets[u] + np.where(known, layout.high + 1, 0)
    known &= held[behind] > held[first]
    behind[behind == offsets[u + 1] - 1] = offsets[-1]
    return np.where(known, (first << 32) | behind, 0).astype(np.uint64)


def _alternatives(
    cells: Cells, units: Integers, by_slots: Mask, codes: Integers, weights: Array | None
) -> Alternatives:
    """Distinct rows of codes of each unit that slots do not stand for, or not all of."""
    whole = np.zeros(len(units), dtype=bool)
    whole[: len(by_slots)] = by_slots
    nothing = np.empty(0, dtype=np.int64)
    found = Alternatives(
        np.full(len(cells.owner), -1, dtype=np.int32), np.zeros(1, dtype=np.int64),
        nothing, nothing, np.empty(0), [],
    )  # fmt: skip
    for unit in np.unique(units[(units >= 0) & ~(whole & ~cells.special)]):
        (members,) = np.nonzero(units == unit)
        rows = np.arange(len(codes))
        if whole[members[0]]:  # slots stand for all but missing values
            rows = np.flatnonzero(missing_rows(cells, codes, int(members[0])))
        if len(rows):
            found.add(cells, members, codes, rows, _shares(codes, weights, unit), unit)
    return found
