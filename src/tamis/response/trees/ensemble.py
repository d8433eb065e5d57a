"""An ensemble of trees that answers for rows whose columns are altered, all columns in one pass.

Replacing a value moves a row only in trees that test its column on the row's own path, and there
only at the first test that the new value answers otherwise.
"""

from collections import deque
from collections.abc import Callable, Iterator
from threading import local
from typing import Any, NamedTuple

import numpy as np

from tamis._arrays import Array, Mask, Subset
from tamis.compiled import tree_points
from tamis.compiled import trees as walks
from tamis.exceptions import InvalidParameter
from tamis.response.trees.blocks import over_rows
from tamis.response.trees.cells import cells_of
from tamis.response.trees.forest import Integers, Trees
from tamis.response.trees.grid import Alternatives, Grid, grid_of
from tamis.response.trees.layout import layout_of

#: Changes of a block of rows that stay in a processor's cache (500 kB); a job has 10 bits for rows.
CACHED, FEWEST, MOST = 62_500, 32, 1023
#: Notes of a row, and segments, that there is room for at first.
ROOM = 1024
#: Changes of rows by alternatives that are held at a time (64 MB).
HELD = 8_000_000


class Segments(NamedTuple):
    """Runs of points over which an altered row has the same outputs, where they are not its own."""

    rows: Integers
    units: Integers
    sums: Array  # (segments, outputs)
    weights: Array
    #: Where each begins among the slots of the grid, or which of its alternatives it is.
    where: Integers
    by_slot: bool


class Workspace:
    """Memory that blocks of rows are followed in, one after the other."""

    def __init__(self, n_rows: int, trees: Trees):
        self.notes = np.empty((n_rows, ROOM), dtype=np.uint64)
        self.deltas = np.empty((n_rows, ROOM, trees.values.shape[1]))
        self.n_outputs = trees.n_outputs
        self.rows = np.empty(0, dtype=np.int32)
        self.make_room(ROOM)

    def make_room(self, n: int) -> None:
        """Room for so many segments."""
        if n > len(self.rows):
            self.rows, self.slots = np.empty((2, 2 * n), dtype=np.int32)
            self.weights, self.sums = np.empty(2 * n), np.empty((2 * n, self.n_outputs))


class TreeEnsemble:
    """Trees, their cells and their layout; sums are raw outputs before the division."""

    def __init__(self, trees: Trees, may_miss: Mask | None = None):
        if may_miss is None:
            may_miss = np.zeros(trees.n_columns, dtype=bool)
        self.trees, self.may_miss = trees, may_miss
        self.cells, column, cut = cells_of(trees, may_miss)
        self.layout = layout_of(trees, self.cells, column, cut)

    @property
    def used(self) -> Subset:
        """Columns that some tree tests."""
        return self.cells.used

    def encode(self, X: Array) -> Integers:
        """Codes of the rows of a table."""
        return self.cells.encode(X)

    def raw(self, X: Array) -> Array:
        """Raw outputs of the rows of a table."""
        return self.sums(self.encode(X)) / self.trees.divisor

    def sums(self, codes: Integers, n_jobs: int | None = None) -> Array:
        """Sums of rows, of shape (rows, outputs)."""
        found = np.tile(self.trees.bias, (len(codes), 1))
        lay = self.layout
        if lay.words is None:

            def take(block: slice, sums: Array, changes: Array) -> None:
                found[block] = sums

            nothing = self._one_each(np.full(len(self.used), -1))
            deque(self._by_alternatives(nothing, codes, codes, True, take, n_jobs), maxlen=0)
            return found

        def add(block: slice) -> None:
            walks.add_leaves(
                lay.words, lay.starts, lay.values, lay.outputs, codes[block], found[block]
            )

        deque(over_rows(len(codes), MOST, add, n_jobs), maxlen=0)
        return found

    def units_of(self, units: list[Subset] | None) -> Integers:
        """For each used column the unit that alters it: by default its own index in the table."""
        if units is None:
            return self.used.copy()
        where = np.full(self.trees.n_columns, -1, dtype=np.intp)
        if units:
            columns = np.concatenate(units)
            where[columns] = np.repeat(np.arange(len(units)), [*map(len, units)])
            if (where >= 0).sum() < len(columns):
                raise InvalidParameter("Units of columns that are altered together need to differ.")
        return where[self.used]

    def changes(
        self, codes: Integers, others: Integers, units: list[Subset] | None = None,
        n_jobs: int | None = None,
    ) -> tuple[Subset, Array]:  # fmt: skip
        """How far the sums of rows move when the columns of a unit are those of other rows.

        Row r takes them from row r of ``others``. Answers the units that have a used column, and
        changes of shape (those units, rows, outputs); all others change nothing.
        """
        where = self.units_of(units)
        known, which = np.unique(where[where >= 0], return_inverse=True)
        within = np.full(len(where), -1, dtype=np.int64)
        within[where >= 0] = which
        found = np.zeros((len(known), len(codes), self.trees.n_outputs))
        fast = self._fast(within)
        if fast.any():
            self._add_fast(found, within, fast, codes, others, n_jobs)
        slow = within.copy()
        slow[fast] = -1
        if (slow >= 0).any():
            self._add_slow(found, slow, codes, others, n_jobs)
        return known, found

    def _fast(self, units: Integers) -> Mask:
        """Used columns that the walk of single columns follows."""
        counts = np.bincount(units[units >= 0], minlength=1)
        found = (units >= 0) & (counts[np.maximum(units, 0)] == 1) & ~self.cells.special
        return found & (self.layout.words is not None)

    def _add_fast(
        self, found: Array, units: Integers, fast: Mask, codes: Integers, others: Integers,
        n_jobs: int | None,
    ) -> None:  # fmt: skip
        lay, n_outputs, n = self.layout, self.trees.n_outputs, self.cells.n_thresholds
        width = np.where(fast[lay.parent], np.maximum(lay.high - lay.low + 1, 0), 0)
        spans = np.where(width > 0, lay.low, 0).astype(np.uint32) | (width.astype(np.uint32) << 16)
        to, mine = units[:n][fast[:n]], np.flatnonzero(fast[:n])
        size = int(np.clip(CACHED // max(1, n * n_outputs), FEWEST, MOST))
        held = local()  # of each thread

        def add(block: slice) -> None:
            if not hasattr(held, "changes"):
                held.changes = np.empty(n_outputs * n * size)
            shape = (n_outputs, n, block.stop - block.start)
            changes = held.changes[: np.prod(shape)].reshape(shape)
            changes[...] = 0
            walks.add_changes(
                lay.words, spans, lay.starts, lay.depth, lay.values, lay.outputs,
                codes[block], others[block], changes,
            )  # fmt: skip
            for c in range(n_outputs):
                found[to, block, c] = changes[c, mine]

        deque(over_rows(len(codes), size, add, n_jobs), maxlen=0)

    def _add_slow(
        self, found: Array, units: Integers, codes: Integers, others: Integers, n_jobs: int | None
    ) -> None:
        one_each = self._one_each(units)

        def take(block: slice, sums: Array, changes: Array) -> None:
            found[one_each.unit, block] = changes.transpose(1, 0, 2)

        deque(self._by_alternatives(one_each, codes, others, True, take, n_jobs), maxlen=0)

    def _one_each(self, units: Integers) -> Alternatives:
        """One alternative for each unit of the used columns: another row for each row."""
        known, group = np.unique(units[units >= 0], return_inverse=True)
        within = np.full(len(units), -1, dtype=np.int32)
        within[units >= 0] = group
        n = len(known)
        return Alternatives(
            within[self.cells.owner], np.arange(n + 1), np.arange(n), known, np.ones(n), []
        )

    def _by_alternatives(
        self, alternatives: Alternatives, codes: Integers, others: Integers, paired: bool,
        take: Callable[[slice, Array, Array], Any], n_jobs: int | None,
    ) -> Iterator[Any]:  # fmt: skip
        """``take`` of rows, their sums, and changes of shape (rows, alternatives, outputs)."""
        lay, n_outputs = self.layout, self.trees.n_outputs
        n_alternatives = int(alternatives.ends[-1])

        def walk(block: slice) -> Any:
            n = block.stop - block.start
            sums = np.tile(self.trees.bias, (n, 1))
            changes = np.zeros((n, n_alternatives, n_outputs))
            walks.add_group_changes(
                lay.starts, lay.child, lay.column, lay.cut, lay.values, lay.outputs,
                alternatives.group, alternatives.ends, paired, codes[block],
                others[block] if paired else others, sums, changes,
            )  # fmt: skip
            return take(block, sums, changes)

        size = int(np.clip(HELD // max(1, n_alternatives * n_outputs), 1, MOST))
        yield from over_rows(len(codes), size, walk, n_jobs)

    def grid(
        self, codes: Integers, weights: Array | None = None, units: list[Subset] | None = None
    ) -> Grid:
        """The values of a table, by its codes, as points of the units."""
        return grid_of(self.cells, self.layout, self.units_of(units), codes, weights)

    def over_segments(
        self, codes: Integers, base: Array, grid: Grid, function: Callable[[Segments], Any],
        n_jobs: int | None = None,
    ) -> Iterator[Any]:  # fmt: skip
        """``function`` of what rows with the sums ``base`` become at the points of a grid.

        Few rows at a time, in their order: segments of all would not fit a memory.
        """
        lay, spans = self.layout, self._spans(grid)
        mine = local()  # of each thread: fresh memory would cost as much as the walk

        def follow(block: slice) -> Any:
            n = block.stop - block.start
            if not hasattr(mine, "workspace"):
                mine.workspace = Workspace(self.rows_at_once, self.trees)
            space = mine.workspace
            space.notes, space.deltas, counts = tree_points.note_changes(
                lay.words, spans, lay.starts, lay.depth, self.cells.owner, lay.values, lay.outputs,
                codes[block], space.notes, space.deltas,
            )  # fmt: skip
            space.make_room(2 * int(counts.sum()) + n)
            k = tree_points.segments(
                space.notes, space.deltas, counts, grid.stops, grid.before, base[block],
                space.rows, space.slots, space.weights, space.sums,
            )  # fmt: skip
            rows, slots = space.rows[:k] + block.start, space.slots[:k]
            return function(
                Segments(rows, grid.unit[slots], space.sums[:k], space.weights[:k], slots, True)
            )

        if spans.any():
            yield from over_rows(len(codes), self.rows_at_once, follow, n_jobs)
        if len(grid.alternatives.rows):

            def take(block: slice, sums: Array, changes: Array) -> Any:
                return function(_moved(block, changes, base, grid.alternatives))

            others = grid.codes[grid.alternatives.rows]
            yield from self._by_alternatives(grid.alternatives, codes, others, False, take, n_jobs)

    def _spans(self, grid: Grid) -> Integers:
        """Slots of all outputs side by side."""
        n_outputs = np.uint64(self.trees.n_outputs)
        first, behind = grid.spans >> tree_points.FIRST, grid.spans & tree_points.BEHIND
        return (first * n_outputs << tree_points.FIRST) | (behind * n_outputs)

    @property
    def rows_at_once(self) -> int:
        """Rows of a block whose notes stay in a cache, more where trees are large."""
        nodes = len(self.layout.child) // max(1, len(self.layout.starts) - 1)
        return int(np.clip(nodes // 4, 128, 512))


def _moved(block: slice, changes: Array, base: Array, alternatives: Alternatives) -> Segments:
    """Alternatives that change the sums of a row, as segments of one point."""
    rows, which = np.nonzero((changes != 0).any(axis=-1))
    outputs = base[block][rows] + changes[rows, which]
    rows = rows + block.start
    unit, weight = alternatives.unit[which], alternatives.weight[which]
    return Segments(rows, unit, outputs, weight, which, False)
