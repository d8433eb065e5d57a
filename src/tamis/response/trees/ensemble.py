"""Tree ensemble that computes sums of leaf values for all altered columns in a single pass.

A new value matters only in trees that test its column on the path of the row. In these trees the
row leaves its path at the first test with a different result.
"""

from collections.abc import Callable, Iterator
from threading import local
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs

from tamis._arrays import Array, Mask, Subset
from tamis._parallel import in_order
from tamis.compiled import tree_points
from tamis.compiled import trees as tree_loops
from tamis.exceptions import InvalidParameter
from tamis.response.trees.cells import cells_of, layout_of
from tamis.response.trees.forest import Integers, Trees
from tamis.response.trees.grid import Alternatives, Grid, altered_alone, grid_of

#: CACHED is the number of changes in a row block (500 kB, which fit into a CPU cache). A row block
#: has at least FEWEST rows, and at most MOST, because the index of a row has 10 bits.
CACHED, FEWEST, MOST = 62_500, 32, 1023
#: Initial size of the buffers for notes (per row) and segments. Both describe runs of slots; see
#: :mod:`tamis.compiled.tree_points`.
ROOM = 1024
#: Number of rows that are encoded at a time, which takes a few milliseconds.
CODED = 8192
#: Maximum number of changes, over rows and alternatives, in memory at a time (64 MB).
HELD = 8_000_000


class Segments(NamedTuple):
    """Runs of slots in which an altered row has constant outputs.

    These outputs differ from the outputs of the unchanged row.
    """

    rows: Integers
    units: Integers
    sums: Array  # (segments, outputs)
    weights: Array
    #: First slot of each run, and the slot after its last one.
    slots: Integers
    behind: Integers


class Workspace:
    """Buffers that are reused from one row block to the next."""

    def __init__(self, n_rows: int, trees: Trees):
        self.notes = np.empty((n_rows, ROOM), dtype=np.uint64)
        self.deltas = np.empty((n_rows, ROOM, trees.values.shape[1]))
        self.n_outputs = trees.n_outputs
        self.rows = np.empty(0, dtype=np.int32)
        self.make_room(ROOM)

    def make_room(self, n: int) -> None:
        """Enlarge the buffers so that they can hold at least n segments."""
        if n > len(self.rows):
            self.rows, self.slots, self.behind = np.empty((3, 2 * n), dtype=np.int32)
            self.weights, self.sums = np.empty(2 * n), np.empty((2 * n, self.n_outputs))


class TreeEnsemble:
    """Trees with their cells and the layout of their nodes.

    Sums of leaf values include the bias. Divided by ``Trees.divisor``, they are the raw outputs.
    """

    #: Number of threads that share the rows. Results do not depend on this number.
    n_jobs: int | None = None

    def __init__(self, trees: Trees, may_miss: Mask | None = None):
        if may_miss is None:
            may_miss = np.zeros(trees.n_columns, dtype=bool)
        self.trees, self.may_miss = trees, may_miss
        self.cells, column, cut = cells_of(trees, may_miss)
        self.layout = layout_of(trees, self.cells, column, cut)

    @property
    def used(self) -> Subset:
        """Indices of the columns that the trees use."""
        return self.cells.used

    def _over_rows(self, n_rows: int, size: int, function: Callable[[slice], Any]) -> Iterator[Any]:
        """Apply a function to row blocks, in threads, and yield its results in row order."""
        blocks = [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
        yield from in_order(function, blocks, effective_n_jobs(self.n_jobs))

    def encode(self, X: Array) -> Integers:
        """Return the codes of a table."""
        found = list(self._over_rows(len(X), CODED, lambda block: self.cells.encode(X[block])))
        return found[0] if len(found) == 1 else np.concatenate([self.cells.encode(X[:0]), *found])

    def sums(self, codes: Integers) -> Array:
        """Return the sums of the leaf values of rows, of shape (rows, outputs)."""
        lay = self.layout
        if lay.words is None:
            nothing = self._one_each(np.full(len(self.used), -1))
            parts = self._by_alternatives(nothing, codes, codes, lambda _, sums, changes: sums)
            return np.concatenate([np.empty((0, self.trees.n_outputs)), *parts])
        found = np.tile(self.trees.bias, (len(codes), 1))

        def add(block: slice) -> None:
            tree_loops.add_leaves(
                lay.words, lay.starts, lay.values, lay.outputs, codes[block], found[block]
            )

        list(self._over_rows(len(codes), MOST, add))
        return found

    def units_of(self, units: list[Subset]) -> Integers:
        """Return the unit of each used column, or -1 if the column is in no unit."""
        found = np.full(self.trees.n_columns, -1, dtype=np.intp)
        if units:
            columns = np.concatenate(units)
            found[columns] = np.repeat(np.arange(len(units)), [*map(len, units)])
            if (found >= 0).sum() < len(columns):
                raise InvalidParameter("Units need to be disjoint, but a column is in two of them.")
        return found[self.used]

    def changes(
        self, codes: Integers, others: Integers, units: list[Subset]
    ) -> tuple[Subset, Array]:
        """Return how the sums change when the columns of each unit come from other rows.

        Row r takes the codes of row r of ``others``. Returns the indices of the units that have a
        used column, and the changes, of shape (these units, rows, outputs).
        """
        own = self.units_of(units)
        known, which = np.unique(own[own >= 0], return_inverse=True)
        within = np.full(len(own), -1, dtype=np.int64)
        within[own >= 0] = which
        found = np.zeros((len(known), len(codes), self.trees.n_outputs))
        fast = altered_alone(within) & ~self.cells.special & (self.layout.words is not None)
        if fast.any():
            self._add_fast(found, within, fast, codes, others)
        slow = np.where(fast, -1, within)
        if (slow >= 0).any():
            one_each = self._one_each(slow)

            def take(block: slice, sums: Array, changes: Array) -> None:
                found[one_each.unit, block] = changes.transpose(1, 0, 2)

            list(self._by_alternatives(one_each, codes, others, take))
        return known, found

    def _add_fast(
        self, found: Array, units: Integers, fast: Mask, codes: Integers, others: Integers
    ) -> None:
        """Add the changes for units of a single column to ``found``, using the packed nodes."""
        lay, n_outputs, n = self.layout, self.trees.n_outputs, self.cells.n_thresholds
        width = np.where(fast[lay.parent], np.maximum(lay.high - lay.low + 1, 0), 0)
        spans = np.where(width > 0, lay.low, 0).astype(np.uint32) | (width.astype(np.uint32) << 16)
        to, mine = units[:n][fast[:n]], np.flatnonzero(fast[:n])
        size = int(np.clip(CACHED // max(1, n * n_outputs), FEWEST, MOST))
        held = local()  # each thread has its own buffer

        def add(block: slice) -> None:
            if not hasattr(held, "changes"):
                held.changes = np.empty(n_outputs * n * size)
            shape = (n_outputs, n, block.stop - block.start)
            changes = held.changes[: np.prod(shape)].reshape(shape)
            changes[...] = 0
            tree_loops.add_changes(
                lay.words, spans, lay.starts, lay.depth, lay.values, lay.outputs,
                codes[block], others[block], changes,
            )  # fmt: skip
            for c in range(n_outputs):
                found[to, block, c] = changes[c, mine]

        list(self._over_rows(len(codes), size, add))

    def _one_each(self, units: Integers) -> Alternatives:
        """Return one alternative per unit, which pairs each row with a row of another table."""
        known, group = np.unique(units[units >= 0], return_inverse=True)
        within = np.full(len(units), -1, dtype=np.int32)
        within[units >= 0] = group
        n = len(known)
        return Alternatives(
            within[self.cells.owner], np.arange(n + 1), np.arange(n), known, np.ones(n), []
        )

    def _by_alternatives(
        self, alternatives: Alternatives, codes: Integers, others: Integers,
        take: Callable[[slice, Array, Array], Any],
    ) -> Iterator[Any]:  # fmt: skip
        """Call ``take`` for each row block and yield its results.

        Its arguments are the row block, the sums of its rows, and their changes, of shape (rows,
        alternatives, outputs). Alternatives are rows of ``others``. If they are paired, the
        alternative of row r is row r of ``others``.
        """
        lay, n_outputs = self.layout, self.trees.n_outputs
        n_alternatives, paired = int(alternatives.ends[-1]), not len(alternatives.which)

        def add_changes(block: slice) -> Any:
            n = block.stop - block.start
            sums = np.tile(self.trees.bias, (n, 1))
            changes = np.zeros((n, n_alternatives, n_outputs))
            tree_loops.add_group_changes(
                lay.starts, lay.child, lay.column, lay.cut, lay.values, lay.outputs,
                alternatives.group, alternatives.ends, paired, codes[block],
                others[block] if paired else others, sums, changes,
            )  # fmt: skip
            return take(block, sums, changes)

        size = int(np.clip(HELD // max(1, n_alternatives * n_outputs), 1, MOST))
        yield from self._over_rows(len(codes), size, add_changes)

    def grid(self, codes: Integers, units: list[Subset], weights: Array | None = None) -> Grid:
        """Return a grid whose points are the values of a table, given by its codes."""
        return grid_of(self.cells, self.layout, self.units_of(units), codes, weights)

    def over_segments(
        self, codes: Integers, base: Array, grid: Grid, function: Callable[[Segments], Any]
    ) -> Iterator[Any]:
        """Apply a function to the segments of each row block, at the points of a grid.

        ``base`` contains the sums of the unchanged rows. Results are yielded in the order of the
        rows. Blocks are small, to save memory.
        """
        lay, n_outputs = self.layout, np.uint64(self.trees.n_outputs)
        # the outputs of a slot are adjacent in memory
        first, behind = grid.spans >> tree_points.FIRST, grid.spans & tree_points.BEHIND
        spans = (first * n_outputs << tree_points.FIRST) | (behind * n_outputs)
        # few rows, so that their notes stay in a CPU cache; more rows if the trees are large
        n_nodes = len(lay.child) // max(1, len(lay.starts) - 1)
        n_rows = int(np.clip(n_nodes // 4, 128, 512))
        mine = local()  # each thread reuses its buffers; new memory would double the time

        def follow(block: slice) -> Any:
            if not hasattr(mine, "workspace"):
                mine.workspace = Workspace(n_rows, self.trees)
            space = mine.workspace
            space.notes, space.deltas, counts = tree_points.note_changes(
                lay.words, spans, lay.starts, lay.depth, self.cells.owner, lay.values, lay.outputs,
                codes[block], space.notes, space.deltas,
            )  # fmt: skip
            space.make_room(2 * int(counts.sum()) + block.stop - block.start)
            k = tree_points.segments(
                space.notes, space.deltas, counts, grid.stops, grid.before, base[block],
                space.rows, space.slots, space.behind, space.weights, space.sums,
            )  # fmt: skip
            rows, slots = space.rows[:k] + block.start, space.slots[:k]
            found = rows, grid.unit[slots], space.sums[:k], space.weights[:k], slots
            return function(Segments(*found, space.behind[:k]))

        def take(block: slice, sums: Array, changes: Array) -> Any:
            """Apply the function to alternatives that change a row, each as a run of one slot."""
            rows, which = np.nonzero((changes != 0).any(axis=-1))
            after = base[block][rows] + changes[rows, which]
            unit, weight = (part[which] for part in (options.unit, options.weight))
            slots = len(grid.unit) + which
            return function(Segments(rows + block.start, unit, after, weight, slots, slots + 1))

        if spans.any():
            yield from self._over_rows(len(codes), n_rows, follow)
        options = grid.alternatives
        if len(options.rows):
            others = grid.codes[options.rows]
            yield from self._by_alternatives(options, codes, others, take)
