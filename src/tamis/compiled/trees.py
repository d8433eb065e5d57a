"""Evaluation of trees for many rows with altered columns.

Values are encoded as *codes*. The code of a value is the number of thresholds of the column that
are below the value. So a row goes left if ``code <= cut``. A node is packed into a word of 64 bits.
The numbers are the sizes of its parts in bits::

    right child is a leaf 1 | left child is a leaf 1 | left child 30 | column 16 | cut 16

The right child follows the left one. Nodes are counted from the root of their tree. A *job* is an
altered row that has left the path of the unchanged row. Rows and jobs go down a tree level by
level, so that the steps of a level are independent of each other. Lists are filled without branches
(``k += fires``).

All parts of a word stay ``uint64``. Signed indices would need a test for negative values, and numba
turns ``uint64`` combined with an integer literal into a float.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from tamis.compiled import njit

U = np.uint64
ZERO, ONE = U(0), U(1)
#: Position of the first bit of each part of a node's word.
COLUMN, CHILD, LEAF = U(16), U(32), U(62)
LOW, CHILDREN = U(0xFFFF), U(0x3FFFFFFF)
#: Parts of a job's word, with their bits: node 22 | row 10 | column 16 | cell 16.
JOB_COLUMN, JOB_ROW, JOB_NODE = U(16), U(32), U(42)
ROWS, ALTERED = U(0x3FF), U((1 << 42) - 1)
#: Parts of the word of an active row, with their bits: node 54 | row 10.
ROW_BITS = U(10)


@njit(cache=True, nogil=True)
def _arrive(word, codes, active, landed):
    """Write the leaf that each row reaches in a tree to ``landed``."""
    n = U(len(codes))
    for row in range(n):
        active[row] = row
    while n > ZERO:
        left = ZERO
        for a in range(n):
            row = active[a] & ROWS
            w = word[active[a] >> ROW_BITS]
            right = U(U(codes[row, (w >> COLUMN) & LOW]) > (w & LOW))
            taken = ((w >> CHILD) & CHILDREN) + right
            landed[row] = taken
            active[left] = (taken << ROW_BITS) | row
            left += ((w >> (LEAF + right)) & ONE) ^ ONE
        n = left


@njit(cache=True, nogil=True)
def add_leaves(words, starts, values, outputs, codes, sums):
    """Add the leaf values of each row to ``sums``, of shape (rows, outputs).

    There may be at most 1,023 rows.
    """
    active, landed = np.empty(len(codes), np.uint64), np.zeros(len(codes), np.uint64)
    for tree in range(len(starts) - 1):
        root, first = U(starts[tree]), outputs[tree]
        landed[:] = ZERO
        if starts[tree + 1] - starts[tree] > 1:
            _arrive(words[starts[tree] : starts[tree + 1]], codes, active, landed)
        for row in range(len(codes)):
            for c in range(values.shape[1]):
                sums[row, first + c] += values[root + landed[row], c]


@njit(cache=True, nogil=True)
def _leave_with_values(word, span, codes, others, active, landed, jobs, done):
    """Send unchanged rows down a tree, and start a job at each test that a new value changes."""
    n, k, m = U(len(codes)), ZERO, ZERO
    for row in range(n):
        active[row] = row
    while n > ZERO:
        left = ZERO
        for a in range(n):
            row = active[a] & ROWS
            w = word[active[a] >> ROW_BITS]
            j = (w >> COLUMN) & LOW
            z = U(others[row, j])
            right = U(U(codes[row, j]) > (w & LOW))
            taken = ((w >> CHILD) & CHILDREN) + right
            other = ((w >> CHILD) & CHILDREN) + (right ^ ONE)
            open_ = U(span[other])
            fires = U((z - (open_ & LOW)) < (open_ >> COLUMN))
            leaf = (w >> (LEAF + (right ^ ONE))) & ONE
            job = (other << JOB_NODE) | (row << JOB_ROW) | (j << JOB_COLUMN) | z
            jobs[k] = job
            k += fires & (leaf ^ ONE)
            done[m] = job
            m += fires & leaf
            landed[row] = taken
            active[left] = (taken << ROW_BITS) | row
            left += ((w >> (LEAF + right)) & ONE) ^ ONE
        n = left
    return k, m


@njit(cache=True, nogil=True)
def _follow(word, codes, jobs, n, done, m):
    """Send jobs down to their leaves, and add them to ``done``. Return the new size of ``done``."""
    while n > ZERO:
        left = ZERO
        for a in range(n):
            job = jobs[a]
            w = word[job >> JOB_NODE]
            j = (w >> COLUMN) & LOW
            x = U(codes[(job >> JOB_ROW) & ROWS, j])
            x = job & LOW if j == ((job >> JOB_COLUMN) & LOW) else x
            right = U(x > (w & LOW))
            leaf = (w >> (LEAF + right)) & ONE
            job = ((((w >> CHILD) & CHILDREN) + right) << JOB_NODE) | (job & ALTERED)
            jobs[left] = job
            left += leaf ^ ONE
            done[m] = job
            m += leaf
        n = left
    return m


@njit(cache=True, nogil=True)
def add_changes(words, spans, starts, depth, values, outputs, codes, others, changes):
    """Add the changes of the sums of leaf values if one column at a time takes new values.

    There may be at most 1,023 rows. The span of a node describes the cells that lead to the node:
    16 bits for the number of cells and 16 bits for the first cell. The span is empty for columns
    that are not altered. ``changes`` has the shape (outputs, columns, rows).
    """
    n_rows = len(codes)
    active, landed = np.empty(n_rows, np.uint64), np.zeros(n_rows, np.uint64)
    jobs = np.empty(n_rows * (depth + 1) + 1, np.uint64)
    done = np.empty_like(jobs)
    for tree in range(len(starts) - 1):
        if starts[tree + 1] - starts[tree] == 1:
            continue
        root, first = U(starts[tree]), outputs[tree]
        word = words[starts[tree] : starts[tree + 1]]
        span = spans[starts[tree] : starts[tree + 1]]
        k, m = _leave_with_values(word, span, codes, others, active, landed, jobs, done)
        m = _follow(word, codes, jobs, k, done, m)
        for c in range(values.shape[1]):
            change = changes[first + c]
            for a in range(m):
                job = done[a]
                row = (job >> JOB_ROW) & ROWS
                before, after = values[root + landed[row], c], values[root + (job >> JOB_NODE), c]
                change[(job >> JOB_COLUMN) & LOW, row] += after - before


@njit(cache=True, nogil=True)
def _fall(child, column, cut, node, group, own, row, other):
    """Return the leaf that a row reaches from a node.

    The row has its own values, except in the columns of group ``own``, which have the values of
    ``other``.
    """
    while child[node] != 0:
        j = column[node]
        x = other[j] if group[j] == own else row[j]
        node = child[node] + (1 if x > cut[node] else 0)
    return node


@njit(cache=True, nogil=True)
def add_group_changes(
    starts, child, column, cut, values, outputs, group, ends, paired, codes, others, sums, changes
):
    """Add the changes of the sums of leaf values when the columns of a group take new values.

    Each row of ``others`` is an alternative, that is, a set of new values. Group g has the
    alternatives ends[g] to ends[g + 1] - 1. If alternatives are ``paired``, each group has a single
    alternative, which is row r of ``others`` for row r. A row leaves its path at the first test of
    a column of the group whose result differs for the new value. The leaf values of the unchanged
    row are added to ``sums``, of shape (rows, outputs). Changes are added to ``changes``, of shape
    (rows, alternatives, outputs).
    """
    n_alternatives = ends[-1]
    left_in = np.full(n_alternatives, -1, np.int64)
    fired, landed = np.empty(n_alternatives, np.int64), np.empty(n_alternatives, np.int64)
    for row in range(len(codes)):
        left_in[:] = -1
        for tree in range(len(starts) - 1):
            nodes = slice(starts[tree], starts[tree + 1])
            below, tested, border, value = child[nodes], column[nodes], cut[nodes], values[nodes]
            node, n = 0, 0
            while below[node] != 0:
                j = tested[node]
                right = codes[row, j] > border[node]
                if group[j] >= 0:
                    for a in range(ends[group[j]], ends[group[j] + 1]):
                        other = others[row if paired else a]
                        if left_in[a] != tree and (other[j] > border[node]) != right:
                            left_in[a] = tree
                            aside = below[node] + (0 if right else 1)
                            fired[n] = a
                            landed[n] = _fall(
                                below, tested, border, aside, group, group[j], codes[row], other
                            )
                            n += 1
                node = below[node] + (1 if right else 0)
            for c in range(values.shape[1]):
                k = outputs[tree] + c
                sums[row, k] += value[node, c]
                for i in range(n):
                    changes[row, fired[i], k] += value[landed[i], c] - value[node, c]
