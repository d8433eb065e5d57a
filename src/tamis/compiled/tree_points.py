"""Outputs of a tree ensemble for each row at each point of each column.

The points are the new values to which a column is set. The cells of a column are numbered as
consecutive *slots*. A *job* sends a row with an altered column down a tree. At a test of the
altered column, the job continues on each side that has points. The leaf that it reaches contains
the value of the row for a run of consecutive slots. A *note* stores such a run. Few runs of a row
overlap. So the outputs of the row at all points are described by few *segments*, in which the
outputs are constant.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from tamis.compiled import njit
from tamis.compiled.counts import lowest_bit
from tamis.compiled.trees import (
    ALTERED,
    CHILD,
    CHILDREN,
    COLUMN,
    JOB_COLUMN,
    JOB_NODE,
    JOB_ROW,
    LEAF,
    LOW,
    ONE,
    ROW_BITS,
    ROWS,
    ZERO,
    U,
)  # fmt: skip

TWO = U(2)
#: Layout of a packed run of slots: bit position of the first slot, and mask of the slot after the
#: last slot of the run.
FIRST, BEHIND = U(32), U(0xFFFFFFFF)


@njit(cache=True, nogil=True)
def _longer(array, needed):
    """Return the array if it has at least ``needed`` entries, or else a larger copy."""
    if needed <= U(len(array)):
        return array
    found = np.empty(np.int64(TWO * needed), array.dtype)
    for i in range(len(array)):  # assigning a slice takes seconds to compile
        found[i] = array[i]
    return found


@njit(cache=True, nogil=True)
def _leave_with_points(word, span, codes, active, landed, jobs, origins, done, ends):
    """Send unchanged rows down a tree, and start jobs for altered values.

    At each test, if the side that the row does not take has points, a job starts on this side.
    """
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
def _spread(word, span, owner, codes, jobs, origins, n, more, sources, done, ends, m):
    """Move jobs down one level of the tree.

    At a test of the altered column, a job continues on each side that has points.
    """
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
def _note(span, values, root, first, landed, done, ends, m, notes, deltas, counts):
    """Write a note for each finished job: the run of slots, and the change of the row's sums."""
    most = ZERO
    for row in range(len(counts)):
        most = max(most, counts[row])
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
def _wider(notes, deltas, needed):
    """Return larger copies of both arrays, with room for at least ``needed`` notes per row."""
    n_rows, width = notes.shape
    found = np.empty((n_rows, np.int64(TWO * needed)), notes.dtype)
    values = np.empty((n_rows, np.int64(TWO * needed), deltas.shape[2]))
    for row in range(n_rows):
        for e in range(width):
            found[row, e] = notes[row, e]
            for c in range(deltas.shape[2]):
                values[row, e, c] = deltas[row, e, c]
    return found, values


@njit(cache=True, nogil=True)
def note_changes(words, spans, starts, depth, owner, values, outputs, codes, notes, deltas):
    """Find how the sums of leaf values change at each point of each column.

    There may be at most 1,023 rows. The span of a node is the run of slots whose points lead to the
    node, or 0 if there are none. Returns the runs of slots of each row, the change of the sums in
    each run, and the number of runs of each row. The first two results are written to ``notes`` and
    ``deltas``, or to larger arrays if these are too small.
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
        n, m = _leave_with_points(word, span, codes, active, landed, jobs, origins, done, ends)
        while n > ZERO:
            more, sources = _longer(more, TWO * n), _longer(sources, TWO * n)
            done, ends = _longer(done, m + TWO * n), _longer(ends, m + TWO * n)
            n, m = _spread(word, span, owner, codes, jobs, origins, n, more, sources, done, ends, m)
            jobs, more = more, jobs
            origins, sources = sources, origins
        notes, deltas = _note(
            span, values, root, first, landed, done, ends, m, notes, deltas, counts
        )
        if len(jobs) < room:  # swap, since ``jobs`` must have at least ``room`` entries
            jobs, more = more, jobs
            origins, sources = sources, origins
    return notes, deltas, counts


@njit(cache=True, nogil=True)
def _scatter(notes, deltas, steps, marks, n_outputs):
    """Add the notes of a row to ``steps``, and mark the slots that have a step.

    A step is the change of the sums from the previous slot to this one.
    """
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
def segments(notes, deltas, counts, stops, before, base, rows, slots, ends, weights, sums):
    """Find the segments of each row.

    A segment is a run of slots with positive weight in which the altered sums of the row are
    constant and differ from the unchanged sums. For each slot, ``stops`` is the end of the slots of
    its column, and ``before`` is the total weight of the slots of the column before this slot. The
    last slot does not belong to a column. If the run of a note reaches the end of a column, the
    note ends at the last slot. Writes the row, first slot, end, weight and sums of each segment.
    Returns the number of segments, which is less than twice the number of notes plus the number of
    rows.
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
        for i in range(U(len(marks))):
            word = marks[i]
            marks[i] = ZERO
            while word != ZERO:
                slot = (i << U(6)) + lowest_bit(word)
                word &= word - ONE
                end = min(slot, stop)
                weight = before[end] - before[begun]
                moved = False
                for c in range(n_outputs):
                    moved |= now[c] != 0.0
                    sums[k, c] = base[row, c] + now[c]
                    now[c] = (now[c] if slot < stop else 0.0) + steps[slot * n_outputs + c]
                    steps[slot * n_outputs + c] = 0.0
                rows[k], slots[k], ends[k], weights[k] = row, begun, end, weight
                k += U(moved & (weight > 0.0))
                begun, stop = slot, U(stops[slot])
        now[:] = 0.0
    return k
