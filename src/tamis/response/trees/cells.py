"""Integer codes of a table for tree ensembles, and the layout of tree nodes for compiled loops.

The thresholds of all trees cut a column into *cells*: no tree distinguishes two values in the same
cell. The code of a value is the number of its cell, so that the test of a node compares two codes.

A column with thresholds usually has one column of codes. It has two if some nodes send its missing
values left and others send them right. Missing values are below all cuts in one of the two, and
above all cuts in the other. Each test of categories has its own column of codes: 0 for values that
go left, and 1 for all others.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask, Subset
from tamis.compiled import tree_cells
from tamis.compiled.thresholds import in_calls
from tamis.response.trees.forest import NOTHING, Categories, Integers, NotFollowed, Trees


@dataclass
class Cells:
    """Encoder from the values of a table to codes."""

    #: Indices of the columns that the trees use. Columns with thresholds come first, followed by
    #: categorical columns.
    used: Subset
    #: For each column of codes, the index in ``used`` of the column that it encodes.
    owner: Integers
    #: Sorted cuts of all columns with thresholds. Column u has cuts[bounds[u] : bounds[u + 1]].
    cuts: NDArray[np.floating]
    bounds: Integers
    #: Columns of codes whose values may be missing: index among the columns of codes, index in
    #: ``used``, and whether missing values go left.
    missing: list[tuple[int, int, bool]]
    #: Tests of categories: index of the column in ``used``, and a mask of its categories that go
    #: left.
    tests: list[tuple[int, Mask]]
    trees: Trees

    @property
    def n_thresholds(self) -> int:
        """Number of used columns with thresholds.

        The first columns of codes belong to these columns, in the same order.
        """
        return len(self.bounds) - 1

    @property
    def n_cells(self) -> Integers:
        """Number of cells of each used column with thresholds."""
        return np.diff(self.bounds) + 1

    @property
    def special(self) -> Mask:
        """Mask of the used columns that are categorical or have more than one column of codes."""
        found = np.arange(len(self.used)) >= self.n_thresholds
        found[self.owner[self.n_thresholds :]] = True
        return found

    @property
    def dtype(self) -> type:
        """Smallest unsigned integer type that can hold all codes."""
        most = int(self.n_cells.max(initial=2))
        return np.uint8 if most <= 256 else np.uint16 if most <= 65_536 else np.uint32

    def encode(self, X: Array) -> Integers:
        """Return the codes of the rows of a table, of shape (rows, columns of codes)."""
        codes: Integers = np.empty((len(X), len(self.owner)), dtype=self.dtype)
        columns = self.used[: self.n_thresholds]
        zeros = self.trees.nan_is_zero
        if zeros is not None and zeros[columns].any():
            X = np.where(np.isnan(X) & zeros, 0.0, X)
        # encoding a value takes about 16 comparisons
        for part in in_calls(len(X), 16.0 * len(columns)):
            tree_cells.encode(X[part], columns, self.cuts, self.bounds, codes[part])
        for at, u, goes_left in self.missing:
            values = X[:, self.used[u]]
            is_missing = np.isnan(values)
            if self.trees.zero_is_missing is not None and self.trees.zero_is_missing[self.used[u]]:
                is_missing |= np.abs(values) <= NOTHING
            top = self.bounds[u + 1] - self.bounds[u]
            codes[:, at] = np.where(is_missing, 0 if goes_left else top, codes[:, u])
        known: dict[int, Integers] = {}
        for at, (u, members) in enumerate(self.tests, start=len(self.owner) - len(self.tests)):
            if u not in known:
                column = int(self.used[u])
                known[u] = category_codes(X[:, column], self.trees.categories[column])
            codes[:, at] = ~members[known[u]]
        return codes


def category_codes(values: Array, categories: Categories) -> Integers:
    """Return the index of each value among the n categories.

    The index of any other value is n, and the index of NaN is n + 1.
    """
    known = categories.values
    wanted = np.trunc(values) if categories.truncated else values
    index = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    found = np.where(known[index] == wanted, index, len(known))
    return np.where(np.isnan(values), len(known) + 1, found)


def cells_of(trees: Trees, may_miss: Mask) -> tuple[Cells, Integers, Integers]:
    """Return the cells of an ensemble, and for each node its column of codes and its cut.

    ``may_miss`` is a mask of the columns of the table that can have missing values.
    """
    inner = trees.left >= 0
    by_set = np.zeros(len(inner), dtype=bool) if trees.sets is None else inner & (trees.sets >= 0)
    numeric, named = np.flatnonzero(inner & ~by_set), np.flatnonzero(by_set)
    used, which, cuts, bounds, cut_at = _thresholds(trees, numeric)
    column, cut = np.zeros((2, len(inner)), dtype=np.int32)
    column[numeric], cut[numeric] = which, cut_at
    owner, missing = _missing(trees, numeric, which, len(used), may_miss[used], column)
    used_sets, tests, of_test = _tests(trees, named, len(used), len(owner))
    if np.isin(used_sets, used).any():
        raise NotFollowed("a column has both thresholds and categories")
    column[named] = of_test
    owner = np.r_[owner, [u for u, _ in tests]].astype(np.int32)
    everything = np.r_[used, used_sets].astype(np.intp)
    return Cells(everything, owner, cuts, bounds, missing, tests, trees), column, cut


def _thresholds(
    trees: Trees, nodes: Integers
) -> tuple[Integers, Integers, NDArray[np.floating], Integers, Integers]:
    """Find the distinct thresholds of each column.

    Returns the used columns, the index of each node's column among them, all cuts, the bounds of
    each column's cuts, and the index of each node's cut in its column.
    """
    columns = trees.column[nodes]
    thresholds: NDArray[Any] = trees.threshold[nodes] + 0.0  # -0.0 becomes 0.0
    if trees.single:
        thresholds = _round_down(thresholds)
        ranks = _in_order(thresholds)
    else:
        ranks = np.unique(thresholds, return_inverse=True)[1]
    keys = (columns.astype(np.int64) << 32) | ranks
    _, first, at = np.unique(keys, return_index=True, return_inverse=True)
    used, start, which = np.unique(columns[first], return_index=True, return_inverse=True)
    bounds = np.r_[start, len(first)]
    at_column = which[at]
    return used, at_column, thresholds[first], bounds, at - bounds[at_column]


def _round_down(values: NDArray[Any]) -> NDArray[np.float32]:
    """Round thresholds down to 32 bits, so that comparisons with 32-bit numbers do not change."""
    with np.errstate(over="ignore"):
        near = values.astype(np.float32)
        return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near)


def _in_order(values: NDArray[np.float32]) -> Integers:
    """Return an integer from 0 to 2**32 for each value; the integers sort like the values."""
    bits = values.view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits + 2**31), bits) + 2**31


def _missing(
    trees: Trees, nodes: Integers, which: Integers, n_used: int, may_miss: Mask, column: Integers
) -> tuple[Integers, list[tuple[int, int, bool]]]:
    """Return the owner of each column of codes, and the directions of missing values.

    If nodes of a column send missing values in different directions, the column gets a second
    column of codes. Nodes that use it are changed in ``column``.
    """
    owner, missing = list(range(n_used)), list[tuple[int, int, bool]]()
    if trees.missing_left is None:
        return np.array(owner, dtype=np.int32), missing
    goes_left = trees.missing_left[nodes]
    for u in np.flatnonzero(may_miss):
        mine = which == u
        left = goes_left[mine]
        if left.all() or not left.any():
            missing.append((int(u), int(u), bool(left[0])))
            continue
        missing += [(len(owner), int(u), True), (int(u), int(u), False)]
        column[nodes[mine & goes_left]] = len(owner)
        owner.append(int(u))
    return np.array(owner, dtype=np.int32), missing


def _tests(
    trees: Trees, nodes: Integers, n_before: int, n_codes: int
) -> tuple[Integers, list[tuple[int, Mask]], Integers]:
    """Return the columns with categories, their distinct tests, and each node's column of codes."""
    used = np.unique(trees.column[nodes])
    known: dict[tuple[int, bytes], int] = {}
    tests: list[tuple[int, Mask]] = []
    of_node = np.empty(len(nodes), dtype=np.int32)
    for i, node in enumerate(nodes):
        assert trees.sets is not None
        members = trees.members[trees.sets[node]]
        u = n_before + int(np.searchsorted(used, trees.column[node]))
        key = (u, members.tobytes())
        if key not in known:
            known[key] = len(tests)
            tests.append((u, members))
        of_node[i] = n_codes + known[key]
    return used, tests, of_node


#: Largest numbers of columns of codes, cells per column and nodes per tree that fit into packed
#: 64-bit nodes. Larger ensembles use the slower loop for groups of columns.
MOST_COLUMNS, MOST_CELLS, MOST_NODES = 1 << 16, 1 << 16, 1 << 22


@dataclass
class Layout:
    """Nodes in breadth-first order, tree after tree."""

    starts: Integers
    column: Integers  # column of codes that each node tests
    cut: Integers
    child: Integers  # left child, counted from the root of its tree; 0 at a leaf
    values: Array
    outputs: Integers
    #: Used column that a node's parent tests (0 at a root). The cells ``low`` to ``high`` of this
    #: column lead to the node.
    parent: Integers
    low: Integers
    high: Integers
    words: Integers | None
    depth: int


def layout_of(trees: Trees, cells: Cells, column: Integers, cut: Integers) -> Layout:
    """Return the nodes of an ensemble in the layout that the compiled loops need.

    For each node, ``column`` contains the column of codes that it tests, and ``cut`` the cut with
    which the code is compared.
    """
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
