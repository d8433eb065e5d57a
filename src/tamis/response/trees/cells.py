"""Cells of the columns, values that no tree tells apart, and nodes as compiled loops read them.

A value becomes the number of its cell, and every test of every library a comparison of such codes.
A column that is compared with thresholds has one column of codes. If some nodes send missing
values left and others right it has two, one with missing values below all cuts and one above; a
test of categories is a column of codes by itself, 0 for what goes left and 1 for the rest.
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
    """How the values of a table become codes."""

    #: Columns of the table that are tested: those with thresholds, then those with categories.
    used: Subset
    #: Which of them each column of codes belongs to.
    owner: Integers
    #: Cuts of the columns with thresholds; those of the u-th stand at bounds[u] to bounds[u + 1].
    cuts: NDArray[np.floating]
    bounds: Integers
    #: For each column of codes of a missing direction: the used column, and whether that is left.
    missing: list[tuple[int, int, bool]]
    #: For each column of codes of a test of categories: who goes left.
    tests: list[tuple[int, Mask]]
    trees: Trees

    @property
    def n_thresholds(self) -> int:
        """Used columns with thresholds; each one's first column of codes has the same index."""
        return len(self.bounds) - 1

    @property
    def n_cells(self) -> Integers:
        """Cells of the used columns with thresholds."""
        return np.diff(self.bounds) + 1

    @property
    def special(self) -> Mask:
        """Which used columns have several columns of codes, or sets."""
        found = np.arange(len(self.used)) >= self.n_thresholds
        found[self.owner[self.n_thresholds :]] = True
        return found

    @property
    def dtype(self) -> type:
        """The smallest type that holds the codes."""
        most = int(self.n_cells.max(initial=2))
        return np.uint8 if most <= 256 else np.uint16 if most <= 65_536 else np.uint32

    def encode(self, X: Array) -> Integers:
        """Codes of the rows, of shape (rows, columns of codes)."""
        codes: Integers = np.empty((len(X), len(self.owner)), dtype=self.dtype)
        columns = self.used[: self.n_thresholds]
        zeros = self.trees.nan_is_zero
        if zeros is not None and zeros[columns].any():
            X = np.where(np.isnan(X) & zeros, 0.0, X)
        # a cut is found by halving, or a few of them counted: some dozen comparisons
        for part in in_calls(len(X), 16.0 * len(columns)):
            tree_cells.encode(X[part], columns, self.cuts, self.bounds, codes[part])
        for at, u, goes_left in self.missing:
            gone = self.is_missing(X[:, self.used[u]], int(self.used[u]))
            top = self.bounds[u + 1] - self.bounds[u]
            codes[:, at] = np.where(gone, 0 if goes_left else top, codes[:, u])
        self._encode_categories(X, codes)
        return codes

    def _encode_categories(self, X: Array, codes: Integers) -> None:
        first = len(self.owner) - len(self.tests)
        known: dict[int, Integers] = {}
        for at, (u, members) in enumerate(self.tests, start=first):
            column = int(self.used[u])
            if u not in known:
                known[u] = category_codes(X[:, column], self.trees.categories[column])
            codes[:, at] = ~members[known[u]]

    def is_missing(self, values: Array, column: int) -> Mask:
        """Which values of a column are missing to the trees."""
        gone = np.isnan(values)
        if self.trees.zero_is_missing is not None and self.trees.zero_is_missing[column]:
            gone |= np.abs(values) <= NOTHING
        return gone


def category_codes(values: Array, categories: Categories) -> Integers:
    """Indices of values among categories: one more for any other value, the last for NaN."""
    known = categories.values
    gone = np.isnan(values)
    whole = np.trunc(values) if categories.truncated else values
    found = np.searchsorted(known, whole)
    within = np.minimum(found, len(known) - 1)
    found = np.where(known[within] == whole, within, len(known))
    return np.where(gone, len(known) + 1, found)


def cells_of(trees: Trees, may_miss: Mask) -> tuple[Cells, Integers, Integers]:
    """Cells of an ensemble; for each node its column of codes, and its cut.

    ``may_miss`` says which columns of the table can hold missing values.
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
    """Sorted cuts of all columns at once."""
    columns = trees.column[nodes]
    thresholds: NDArray[Any] = trees.threshold[nodes] + 0.0  # no -0.0
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
    """The greatest 32-bit numbers that are not above: x <= value iff x <= them, for such x."""
    with np.errstate(over="ignore"):
        near = values.astype(np.float32)
        return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near)


def _in_order(values: NDArray[np.float32]) -> Integers:
    """Whole numbers from 0 to 2**32 in the order of the values."""
    bits = values.view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits + 2**31), bits) + 2**31


def _missing(
    trees: Trees, nodes: Integers, which: Integers, n_used: int, may_miss: Mask, column: Integers
) -> tuple[Integers, list[tuple[int, int, bool]]]:
    """Directions of missing values: a second column of codes where nodes of a column differ."""
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
    """Distinct tests of categories, and which one each node makes."""
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
