"""Nodes of an ensemble in the order that the compiled walks read them in."""

from dataclasses import dataclass

import numpy as np

from tamis._arrays import Array
from tamis.compiled import tree_cells
from tamis.response.trees.cells import Cells
from tamis.response.trees.forest import Integers, Trees

#: What a node's word and a job have room for; beyond it the slower walk of groups is used.
MOST_COLUMNS, MOST_CELLS, MOST_NODES = 1 << 16, 1 << 16, 1 << 22


@dataclass
class Layout:
    """Nodes breadth first, tree after tree."""

    starts: Integers
    column: Integers  # of codes
    cut: Integers
    child: Integers  # the left one, counted from the root; 0 at a leaf
    values: Array
    outputs: Integers
    #: The used column that a node's parent tests (0 at a root), and its cells that lead here.
    parent: Integers
    low: Integers
    high: Integers
    words: Integers | None
    depth: int


def layout_of(trees: Trees, cells: Cells, column: Integers, cut: Integers) -> Layout:
    """The layout of trees whose nodes test columns of codes against cuts."""
    n = len(column)
    order, above, child, low, high, level = np.empty((6, n), dtype=np.int32)
    n_cells = np.r_[cells.n_cells, np.full(len(cells.used) - cells.n_thresholds, 2)]
    starts = trees.starts.astype(np.int64)
    tree_cells.lay_out(
        starts, trees.left, trees.right, column, cut, cells.owner, n_cells.astype(np.int32),
        order, above, child, low, high, level,
    )  # fmt: skip
    roots = np.repeat(starts[:-1], np.diff(starts))
    old = roots + order
    column, cut, values = column[old], cut[old], np.ascontiguousarray(trees.values[old])
    parent = cells.owner[column[roots + above]] if len(cells.owner) else np.zeros_like(column)
    words = None
    sizes = np.diff(starts)
    fits = len(cells.owner) <= MOST_COLUMNS and sizes.max(initial=0) <= MOST_NODES
    if fits and n_cells.max(initial=0) <= MOST_CELLS:
        words = np.empty(n, dtype=np.uint64)
        tree_cells.pack(starts, column, cut, child, words)
    return Layout(
        starts, column, cut, child, values, trees.outputs.astype(np.int64), parent, low, high,
        words, int(level.max(initial=0)),
    )  # fmt: skip
