"""Walks of many rows through many trees, with one column of the rows altered, compiled.

Values are *codes*: cell numbers among the sorted thresholds of their column, so that a node goes
left where ``code <= cut``. A node is one word of 64 bits::

    right child is a leaf 1 | left child is a leaf 1 | left child 30 | column 16 | cut 16

with the right child beside the left one and nodes counted from the root of their tree. Rows, and
the altered rows that leave their path (*jobs*), go down a tree level by level: the steps of one
level do not wait for each other, and lists are kept dense without a branch (``k += fires``).

All numbers of a word stay ``uint64``: signed indices would pay a test for negative ones, and numba
makes a float of ``uint64`` with a literal.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

U = np.uint64
ZERO, ONE, TWO = U(0), U(1), U(2)
#: Where the parts of a node's word begin.
COLUMN, CHILD, LEAF = U(16), U(32), U(62)
LOW, CHILDREN = U(0xFFFF), U(0x3FFFFFFF)
#: A job: node 22 | row 10 | column 16 | cell 16.
JOB_COLUMN, JOB_ROW, JOB_NODE = U(16), U(32), U(42)
ROWS, ALTERED = U(0x3FF), U((1 << 42) - 1)
#: A row on its way: node | row 10.
ROW_BITS = U(10)
#: A run of slots: the first 32 | the one behind the last 32.
FIRST, BEHIND = U(32), U(0xFFFFFFFF)
#: Rows of one column that are coded at a time.
STRIP = 256
#: Up to so many cuts are compared one by one, which vectorises; more by halving. With 32-bit
#: values a comparison costs 0.04 ns and halving 8 ns a value; with 64 bits the first doubles.
COUNTED_SINGLE, COUNTED_DOUBLE = 200, 100


@intrinsic
def _lowest_bit(typing: Any, word: Any) -> Any:
    """Position of the lowest set bit."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@njit(cache=True, nogil=True)
def _longer(array: Any, needed: Any) -> Any:
    """The array, or a copy with room for at least so many."""
    if needed <= U(len(array)):
        return array
    found = np.empty(np.int64(TWO * needed), array.dtype)
    found[: len(array)] = array
    return found


# ---------------------------------------------------------------------------------------- layout


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
                leaves |= TWO
            words[node] = (
                (leaves << LEAF) | (U(below) << CHILD) | (U(column[node]) << COLUMN) | U(cut[node])
            )


# ----------------------------------------------------------------------------------------- codes


@njit(cache=True, nogil=True)
def encode(X: Any, columns: Any, cuts: Any, bounds: Any, out: Any) -> None:
    """Codes of some columns of the rows: how many cuts of the column are below the value.

    Values are cast to the type of the cuts. Nothing is below NaN, whose code is 0.
    """
    values, counts = np.zeros(STRIP, cuts.dtype), np.zeros(STRIP, np.int32)
    counted = COUNTED_SINGLE if cuts.itemsize == 4 else COUNTED_DOUBLE
    for start in range(0, len(X), STRIP):
        stop = min(len(X), start + STRIP)
        for place in range(len(columns)):
            j, first, last = columns[place], bounds[place], bounds[place + 1]
            for row in range(start, stop):
                values[row - start] = X[row, j]
            if last - first <= counted:
                counts[:] = 0
                for q in range(first, last):
                    border = cuts[q]
                    for i in range(STRIP):
                        counts[i] += np.int32(values[i] > border)
                for row in range(start, stop):
                    out[row, place] = counts[row - start]
            else:
                for row in range(start, stop):
                    out[row, place] = _below(values[row - start], cuts, first, last) - first


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


# ----------------------------------------------------------------------------- rows as they are


@njit(cache=True, nogil=True)
def _arrive(word: Any, codes: Any, active: Any, landed: Any) -> None:
    """Where each row leaves a tree."""
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
def add_leaves(
    words: Any, starts: Any, values: Any, outputs: Any, codes: Any, sums: Any
) -> None:
    """Add the leaves of up to 1,023 rows to their sums, of shape (rows, outputs), tree by tree."""
    active, landed = np.empty(len(codes), np.uint64), np.zeros(len(codes), np.uint64)
    for tree in range(len(starts) - 1):
        root, first = U(starts[tree]), outputs[tree]
        landed[:] = ZERO
        if starts[tree + 1] - starts[tree] > 1:
            _arrive(words[starts[tree] : starts[tree + 1]], codes, active, landed)
        for row in range(len(codes)):
            for c in range(values.shape[1]):
                sums[row, first + c] += values[root + landed[row], c]


# ------------------------------------------------------------------ each row with another value


@njit(cache=True, nogil=True)
def _leave_with_values(
    word: Any, span: Any, codes: Any, others: Any, active: Any, landed: Any, jobs: Any, done: Any
) -> Any:
    """Rows down a tree; a job for each path node where the row's other value leaves the path."""
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
def _follow(word: Any, codes: Any, jobs: Any, n: Any, done: Any, m: Any) -> Any:
    """Jobs down to their leaves."""
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
def add_changes(
    words: Any, spans: Any, starts: Any, depth: int, values: Any, outputs: Any,
    codes: Any, others: Any, changes: Any,
) -> None:  # fmt: skip
    """What another value of each column alone does to the sums of up to 1,023 rows.

    A span (first cell 16 | number of cells 16, from the high end) is what leads to a node, empty
    for columns that are none of the answer. ``changes`` has the shape (outputs, columns, rows).
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


# -------------------------------------------------------------------- every row with every point


@njit(cache=True, nogil=True)
def _leave_with_points(
    word: Any, span: Any, codes: Any, active: Any, landed: Any,
    jobs: Any, origins: Any, done: Any, ends: Any,
) -> Any:  # fmt: skip
    """Rows down a tree; a job for each path node whose other side holds a point."""
    n, k, m = U(len(codes)), ZERO, ZERO
    for row in range(n):
        active[row] = row
    while n > ZERO:
        left = ZERO
        for a in range(n):
            row = active[a] & ROWS
            w = word[active[a] >> ROW_BITS]
            j = (w >> COLUMN) & LOW
            right = U(U(codes[row, j]) > (w & LOW))
            taken = ((w >> CHILD) & CHILDREN) + right
            other = ((w >> CHILD) & CHILDREN) + (right ^ ONE)
            fires = U(span[other] != ZERO)
            leaf = (w >> (LEAF + (right ^ ONE))) & ONE
            job = (other << JOB_NODE) | (row << JOB_ROW) | (j << JOB_COLUMN)
            jobs[k], origins[k] = job, other
            k += fires & (leaf ^ ONE)
            done[m], ends[m] = job, other
            m += fires & leaf
            landed[row] = taken
            active[left] = (taken << ROW_BITS) | row
            left += ((w >> (LEAF + right)) & ONE) ^ ONE
        n = left
    return k, m


@njit(cache=True, nogil=True)
def _spread(
    word: Any, span: Any, owner: Any, codes: Any, jobs: Any, origins: Any, n: Any,
    more: Any, sources: Any, done: Any, ends: Any, m: Any,
) -> Any:  # fmt: skip
    """One level: a test of the job's own column opens both sides, where they hold a point."""
    left = ZERO
    for a in range(n):
        job, origin = jobs[a], origins[a]
        w = word[job >> JOB_NODE]
        j, below = (w >> COLUMN) & LOW, (w >> CHILD) & CHILDREN
        rest = job & ALTERED
        if owner[j] == owner[(job >> JOB_COLUMN) & LOW]:
            for side in range(TWO):
                held = U(span[below + side] != ZERO)
                leaf = (w >> (LEAF + side)) & ONE
                job = ((below + side) << JOB_NODE) | rest
                more[left], sources[left] = job, below + side
                left += held & (leaf ^ ONE)
                done[m], ends[m] = job, below + side
                m += held & leaf
        else:
            right = U(U(codes[(job >> JOB_ROW) & ROWS, j]) > (w & LOW))
            leaf = (w >> (LEAF + right)) & ONE
            job = ((below + right) << JOB_NODE) | rest
            more[left], sources[left] = job, origin
            left += leaf ^ ONE
            done[m], ends[m] = job, origin
            m += leaf
    return left, m


@njit(cache=True, nogil=True)
def _note(
    span: Any, values: Any, root: Any, first: Any, landed: Any, done: Any, ends: Any, m: Any,
    notes: Any, deltas: Any, counts: Any,
) -> Any:  # fmt: skip
    """Write down over which slots each finished job changes the sums of its row, and how far."""
    most = U(counts.max())
    if most + m > U(notes.shape[1]):
        notes, deltas = _wider(notes, deltas, most + m)
    for a in range(m):
        job = done[a]
        row = (job >> JOB_ROW) & ROWS
        e = counts[row]
        counts[row] += ONE
        notes[row, e] = span[ends[a]] + first
        for c in range(values.shape[1]):
            before = values[root + landed[row], c]
            deltas[row, e, c] = values[root + (job >> JOB_NODE), c] - before
    return notes, deltas


@njit(cache=True, nogil=True)
def _wider(notes: Any, deltas: Any, needed: Any) -> Any:
    """The same with room for at least so many notes of each row."""
    n_rows, width = notes.shape
    found = np.empty((n_rows, np.int64(TWO * needed)), notes.dtype)
    found[:, :width] = notes
    values = np.empty((n_rows, np.int64(TWO * needed), deltas.shape[2]))
    values[:, :width] = deltas
    return found, values


@njit(cache=True, nogil=True)
def note_changes(
    words: Any, spans: Any, starts: Any, depth: int, owner: Any, values: Any, outputs: Any,
    codes: Any, notes: Any, deltas: Any,
) -> Any:  # fmt: skip
    """What each point of each column alone does to the sums of up to 1,023 rows.

    A span is the run of slots of the points that lead to a node, 0 where there are none. Answers
    runs of slots for each row, with the change of the sums there, and the number of runs; they are
    written to ``notes`` and ``deltas``, or to larger arrays where these are too small.
    """
    n_rows = len(codes)
    active, landed = np.empty(n_rows, np.uint64), np.zeros(n_rows, np.uint64)
    room = n_rows * (depth + 1) + 1
    jobs, origins = np.empty(room, np.uint64), np.empty(room, np.uint32)
    more, sources = np.empty(room, np.uint64), np.empty(room, np.uint32)
    done, ends = np.empty(room, np.uint64), np.empty(room, np.uint32)
    counts = np.zeros(n_rows, np.uint64)
    for tree in range(len(starts) - 1):
        if starts[tree + 1] - starts[tree] == 1:
            continue
        root, first = U(starts[tree]), U(outputs[tree]) << FIRST | U(outputs[tree])
        word = words[starts[tree] : starts[tree + 1]]
        span = spans[starts[tree] : starts[tree + 1]]
        n, m = _leave_with_points(
            word, span, codes, active, landed, jobs, origins, done, ends
        )
        while n > ZERO:
            more, sources = _longer(more, TWO * n), _longer(sources, TWO * n)
            done, ends = _longer(done, m + TWO * n), _longer(ends, m + TWO * n)
            n, m = _spread(
                word, span, owner, codes, jobs, origins, n, more, sources, done, ends, m
            )
            jobs, more = more, jobs
            origins, sources = sources, origins
        notes, deltas = _note(
            span, values, root, first, landed, done, ends, m, notes, deltas, counts
        )
        if len(jobs) < room:  # the shorter of the two lists has come round
            jobs, more = more, jobs
            origins, sources = sources, origins
    return notes, deltas, counts


@njit(cache=True, nogil=True)
def _scatter(notes: Any, deltas: Any, steps: Any, marks: Any, n_outputs: Any) -> None:
    """Add the notes of one row to its steps, and mark the slots that have one."""
    for a in range(len(notes)):
        first, behind = notes[a] >> FIRST, notes[a] & BEHIND
        for c in range(U(deltas.shape[1])):
            steps[first + c] += deltas[a, c]
            steps[behind + c] -= deltas[a, c]
        if n_outputs != ONE:
            first, behind = first // n_outputs, behind // n_outputs
        marks[first >> U(6)] |= ONE << (first & U(63))
        marks[behind >> U(6)] |= ONE << (behind & U(63))


@njit(cache=True, nogil=True)
def segments(
    notes: Any, deltas: Any, counts: Any, stops: Any, before: Any, base: Any,
    rows: Any, slots: Any, weights: Any, sums: Any,
) -> int:  # fmt: skip
    """Runs of slots with weight over which the altered sums of a row are constant, not its own.

    Each column has its slots side by side, ``stops`` says where they stop; ``before`` is the weight
    of the column's slots in front of one. A last slot belongs to no column: runs to the end of
    theirs stop there. Writes rows, slots where runs begin, weights, and sums; answers how many. There
    are fewer than twice as many as notes, and one for each row.
    """
    n_outputs, n_slots = U(base.shape[1]), U(len(stops) - 1)
    steps = np.zeros(len(stops) * base.shape[1])
    marks = np.zeros(len(stops) // 64 + 1, np.uint64)
    now = np.zeros(base.shape[1])
    k = ZERO
    for row in range(len(base)):
        count = counts[row]
        _scatter(notes[row, :count], deltas[row, :count], steps, marks, n_outputs)
        marks[n_slots >> U(6)] |= ONE << (n_slots & U(63))
        begun, stop = ZERO, ZERO
        for place in range(U(len(marks))):
            word = marks[place]
            marks[place] = ZERO
            while word != ZERO:
                slot = (place << U(6)) + _lowest_bit(word)
                word &= word - ONE
                weight = before[min(slot, stop)] - before[begun]
                moved = False
                for c in range(n_outputs):
                    moved |= now[c] != 0.0
                    sums[k, c] = base[row, c] + now[c]
                    now[c] = (now[c] if slot < stop else 0.0) + steps[slot * n_outputs + c]
                    steps[slot * n_outputs + c] = 0.0
                rows[k], slots[k], weights[k] = row, begun, weight
                k += U(moved & (weight > 0.0))
                begun, stop = slot, U(stops[slot])
        now[:] = 0.0
    return np.int64(k)


# -------------------------------------------------------------------- several columns together


@njit(cache=True, nogil=True)
def _fall(
    child: Any, column: Any, cut: Any, node: int, group: Any, own: int, row: Any, other: Any
) -> int:
    """The leaf below a node of a row whose columns of one group are another row's."""
    while child[node] != 0:
        j = column[node]
        x = other[j] if group[j] == own else row[j]
        node = child[node] + (1 if x > cut[node] else 0)
    return node


@njit(cache=True, nogil=True)
def add_group_changes(
    starts: Any, child: Any, column: Any, cut: Any, values: Any, outputs: Any, group: Any,
    ends: Any, paired: bool, codes: Any, others: Any, sums: Any, changes: Any,
) -> None:  # fmt: skip
    """What other values of the columns of each group do to the sums of the rows.

    Group g has the alternatives ends[g] to ends[g + 1], each a row of ``others``; paired, it has
    one, which is row r of ``others`` for row r. A row leaves its path at the first test of a
    column of the group that its alternative answers otherwise. Adds the rows' own leaves to
    ``sums`` (rows, outputs), and to ``changes`` (rows, alternatives, outputs).
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


@njit(cache=True, nogil=True)
def fill_runs(
    out: Any, units: Any, rows: Any, firsts: Any, counts: Any, values: Any
) -> None:
    """Write values over runs of points; ``out`` has the shape (units, rows, points, outputs)."""
    for i in range(len(units)):
        for q in range(firsts[i], firsts[i] + counts[i]):
            for c in range(values.shape[1]):
                out[units[i], rows[i], q, c] = values[i, c]


@njit(cache=True, nogil=True)
def add_absolute(
    rows: Any, units: Any, weights: Any, outputs: Any, before: Any, found: Any
) -> None:
    """Add the weighted absolute changes of outputs to those of the units."""
    for i in range(len(rows)):
        change = 0.0
        for c in range(outputs.shape[1]):
            change += abs(outputs[i, c] - before[rows[i], c])
        found[units[i]] += weights[i] * change
