"""Grid of the points to which columns are set: one point for each cell that contains a value.

The cells of a column with thresholds are numbered as consecutive *slots*, followed by one extra
slot. The cells that lead to a node form a run of slots. Three kinds of values have no slots: groups
of columns, categories, and missing values that nodes send in different directions. They use
*alternatives* instead, which are rows of codes.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tamis._arrays import Array, Mask
from tamis.response.trees.cells import Cells, Layout
from tamis.response.trees.forest import Integers


@dataclass
class Alternatives:
    """Rows of codes that replace the columns of a unit in another row."""

    #: Group of each column of codes, or -1 if the column is in no group.
    group: Integers
    #: The alternatives of group g are numbered from ends[g] to ends[g + 1] - 1.
    ends: Integers
    #: For each alternative, its row in the table, its unit and its weight.
    rows: Integers
    unit: Integers
    weight: Array
    #: For each group, the alternative of each row of the table, or -1 if the row has a slot.
    which: list[Integers]

    def add(
        self, cells: Cells, members: Integers, codes: Integers, rows: Integers, share: Array,
        unit: int,
    ) -> None:  # fmt: skip
        """Add a group for a unit: the distinct codes of the given rows in the unit's columns."""
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
    """Points of all units. The weights of the points of a unit sum to 1."""

    cells: Cells
    #: Codes and weights of the table whose values are the points, and the unit of each used column.
    codes: Integers
    weights: Array | None
    units: Integers
    #: For each slot its unit, the end of its column's slots, and the total weight of the column's
    #: points before the slot. The last slot belongs to no column.
    unit: Integers
    stops: Integers
    before: Array
    #: Run of slots that leads to each node: 32 bits for the first slot, and 32 for the slot after
    #: the last; 0 if the run has no points. A run that reaches the end of its column extends to
    #: the last slot of the grid.
    spans: Integers
    alternatives: Alternatives

    @property
    def n_slots(self) -> int:
        """Number of slots, including one slot per alternative. Alternatives come last."""
        return len(self.unit) + len(self.alternatives.rows)

    def at_points(self, steps: Array, n_units: int) -> Array:
        """Return the sum of all steps up to the slot of each point.

        ``steps`` has the shape (slots, outputs), and the result has (units, points, outputs).
        """
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
        """For each slot, a row of the table with a value in this slot or in the next non-empty one.

        A run of slots with positive weight contains a value, so the row found for its first slot
        lies inside the run.
        """
        n, offsets = self.cells.n_thresholds, slot_offsets(self.cells)
        found = np.full(len(self.unit), -1, dtype=np.int64)
        for u in range(n):
            rows = np.flatnonzero(~missing_rows(self.cells, self.codes, u))
            if self.weights is not None and self.units[u] >= 0:
                rows = rows[self.weights[rows, self.units[u]] > 0]
            found[offsets[u] + self.codes[rows, u]] = rows
        filled = np.where(found >= 0, np.arange(len(found)), len(found) - 1)
        slots = found[np.minimum.accumulate(filled[::-1])[::-1]]
        return np.r_[slots, self.alternatives.rows]


def slot_offsets(cells: Cells) -> Integers:
    """Return the first slot of each used column with thresholds, then the number of slots."""
    return np.r_[0, np.cumsum(cells.n_cells + 1)].astype(np.int64)


def missing_rows(cells: Cells, codes: Integers, u: int) -> Mask:
    """Return a mask of the rows in which used column ``u`` is missing.

    The mask is all False unless nodes send the missing values of the column in different
    directions.
    """
    (twins,) = np.nonzero(cells.owner[cells.n_thresholds :] == u)
    if not len(twins):
        return np.zeros(len(codes), dtype=bool)
    # the two columns of codes differ only at missing values, which are above all cuts in one of
    # them and below all cuts in the other
    return np.asarray(codes[:, u] != codes[:, cells.n_thresholds + twins[0]])


def grid_of(
    cells: Cells, layout: Layout, units: Integers, codes: Integers, weights: Array | None = None
) -> Grid:
    """Return the grid whose points are the values of a table, given by its codes.

    ``units`` contains the unit of each used column, or -1 if the column is in no unit. ``weights``,
    of shape (rows, units), are the weights of the table's rows. By default all rows have the same
    weight.
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
        # at the extra slot of a column, ``before`` is the weight of all its points
        np.r_[np.repeat(offsets[1:] - 1, sizes), offsets[-1]].astype(np.int32),
        total - np.r_[np.repeat(total[offsets[:-1]], sizes), total[-1]],
        _spans(layout, by_slots, np.r_[0, np.cumsum(weight > 0)], offsets),
        _alternatives(cells, units, by_slots, codes, weights),
    )  # fmt: skip


def altered_alone(units: Integers) -> Mask:
    """Return a mask of the used columns that form a unit by themselves."""
    counts = np.bincount(units[units >= 0], minlength=1)
    return (units >= 0) & (counts[np.maximum(units, 0)] == 1)


def _slot_weights(cells: Cells, units: Integers, codes: Integers, weights: Array | None) -> Array:
    """Return the weight of the points in each slot, except for missing values with alternatives."""
    offsets = slot_offsets(cells)
    found = np.zeros(offsets[-1])
    for u in range(cells.n_thresholds):
        known = ~missing_rows(cells, codes, u)
        mine, share = slice(offsets[u], offsets[u + 1]), _shares(codes, weights, units[u])
        found[mine] = np.bincount(codes[known, u], share[known], mine.stop - mine.start)
    return found


def _shares(codes: Integers, weights: Array | None, unit: int) -> Array:
    """Return the weight of the point that each row of the table provides for a unit."""
    return np.full(len(codes), 1 / len(codes)) if weights is None else weights[:, unit]


def _spans(layout: Layout, by_slots: Mask, held: Integers, offsets: Integers) -> Integers:
    """Return the run of slots that leads to each node, packed into 64 bits.

    ``held`` is the number of slots with points before each slot.
    """
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
    """Return alternatives for the units that have values without a slot."""
    has_slots = np.zeros(len(units), dtype=bool)
    has_slots[: len(by_slots)] = by_slots
    nothing = np.empty(0, dtype=np.int64)
    found = Alternatives(
        np.full(len(cells.owner), -1, dtype=np.int32), np.zeros(1, dtype=np.int64),
        nothing, nothing, np.empty(0), [],
    )  # fmt: skip
    for unit in np.unique(units[(units >= 0) & ~(has_slots & ~cells.special)]):
        (members,) = np.nonzero(units == unit)
        rows = np.arange(len(codes))
        if has_slots[members[0]]:  # only missing values have no slot
            rows = np.flatnonzero(missing_rows(cells, codes, int(members[0])))
        if len(rows):
            found.add(cells, members, codes, rows, _shares(codes, weights, unit), unit)
    return found
