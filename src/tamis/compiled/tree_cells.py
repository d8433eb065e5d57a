"""Cells of columns and the layout of nodes: what trees become before rows walk through them."""

from typing import Any

import numpy as np
from numba import njit

from tamis.compiled.trees import CHILD, COLUMN, LEAF, ONE, ZERO, U

#: Rows of one column that are coded at a time.
STRIP = 256
#: Up to so many cuts are compared one by one, which vectorises; more by halving. With 32-bit
#: values a comparison costs 0.04 ns and halving 8 ns a value; with 64 bits the first doubles.
COUNTED_SINGLE, COUNTED_DOUBLE = 200, 100


@njit(cache=True, nogil=True)
def lay_out(
    starts: Any, left: Any, right: Any, column: Any, cut: Any, owner: Any, n_cells: Any,
    order: Any, parent: Any, child: Any, low: Any, high: Any, level: Any,
) -> None:  # fmt: skip
    """Nodes breadth first, and for each the cells of its parent's column that lead to it.

    ``order`` tells which node of the input stands at each position of its tree. ``low`` to
    ``high`` (empty where low > high) is what all tests of the parent's column above a node leave
    open; columns with one owner are one column here.
    """
    for tree in range(len(starts) - 1):
        root = starts[tree]
        order[root] = parent[root] = level[root] = 0
        low[root], high[root] = 0, -1
        node, end = -1, 1
        while node + 1 < end:
            node += 1
            old = root + order[root + node]
            child[root + node] = 0
            if left[old] < 0:
                continue
            child[root + node] = end
            j = owner[column[old]]
            above = node
            while above != 0 and owner[column[root + order[root + parent[root + above]]]] != j:
                above = parent[root + above]
            first, last = 0, n_cells[j] - 1
            if above != 0:
                first, last = low[root + above], high[root + above]
            for side in range(2):
                new = root + end + side
                order[new] = left[old] if side == 0 else right[old]
                parent[new], level[new] = node, level[root + node] + 1
                low[new] = first if side == 0 else max(first, cut[old] + 1)
                high[new] = min(last, cut[old]) if side == 0 else last
            end += 2
        for unreached in range(root + end, starts[tree + 1]):
            order[unreached] = parent[unreached] = child[unreached] = level[unreached] = 0
            low[unreached], high[unreached] = 0, -1


@njit(cache=True, nogil=True)
def pack(starts: Any, column: Any, cut: Any, child: Any, words: Any) -> None:
    """Words of the nodes, from arrays in breadth-first order; 0 for a leaf."""
    for tree in range(len(starts) - 1):
        root = starts[tree]
        for node in range(root, starts[tree + 1]):
            below = child[node]
            if below == 0:
                words[node] = ZERO
                continue
            leaves = ZERO
            if child[root + below] == 0:
                leaves |= ONE
            if child[root + below + 1] == 0:
                leaves |= U(2)
            words[node] = (
                (leaves << LEAF) | (U(below) << CHILD) | (U(column[node]) << COLUMN) | U(cut[node])
            )


@njit(cache=True, nogil=True)
def encode(X: Any, columns: Any, cuts: Any, bounds: Any, out: Any) -> None:
    """Codes of some columns of the rows: how many cuts of the column are below the value.

    Values are cast to the type of the cuts. Nothing is below NaN, whose code is 0.
    """
    values, counts = np.zeros(STRIP, cuts.dtype), np.zeros(STRIP, np.int32)
    counted = COUNTED_SINGLE if cuts.itemsize == 4 else COUNTED_DOUBLE
    for start in range(0, len(X), STRIP):
        stop = min(len(X), start + STRIP)
        for u in range(len(columns)):
            j, first, last = columns[u], bounds[u], bounds[u + 1]
            for row in range(start, stop):
                values[row - start] = X[row, j]
            if last - first <= counted:
                counts[:] = 0
                for q in range(first, last):
                    border = cuts[q]
                    for i in range(STRIP):
                        counts[i] += np.int32(values[i] > border)
                for row in range(start, stop):
                    out[row, u] = counts[row - start]
            else:
                for row in range(start, stop):
                    out[row, u] = _below(values[row - start], cuts, first, last) - first


@njit(cache=True, nogil=True)
def _below(value: Any, cuts: Any, first: int, last: int) -> int:
    """Where the first cut that is not below the value stands; no branch on the value."""
    length = last - first
    while length > 1:
        half = length >> 1
        first = first + half if value > cuts[first + half - 1] else first
        length -= half
    return first + 1 if value > cuts[first] else first


@njit(cache=True, nogil=True)
def count_cells(codes: Any, offsets: Any, counts: Any) -> None:
    """How many rows have each cell of each column; cells of column u begin at offsets[u]."""
    for row in range(codes.shape[0]):
        for u in range(len(offsets) - 1):
            counts[offsets[u] + codes[row, u]] += 1
