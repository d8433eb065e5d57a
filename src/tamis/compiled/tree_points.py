"""Every row of a table at every point of every column of a tree ensemble, compiled.

Points of a column are *slots* in a row. At a test of the column that is altered a job goes down
both sides, as far as they hold a point; the leaf it comes to is what the row has over a run of
slots. Few runs of a row meet, so its outputs at all points are few segments.
"""

from typing import Any

import numpy as np
from numba import njit

from tamis.compiled.bits import lowest_bit
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
#: A run of slots: the first 32 | the one behind the last 32.
FIRST, BEHIND = U(32), U(0xFFFFFFFF)


@njit(cache=True, nogil=True)
def _longer(array: Any, needed: Any) -> Any:
    """The array, or a copy with room for at least so many."""
    if needed <= U(len(array)):
        return array
    found = np.empty(np.int64(TWO * needed), array.dtype)
    found[: len(array)] = array
    return found


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
    rows: Any, slots: Any, ends: Any, weights: Any, sums: Any,
) -> Any:  # fmt: skip
    """Runs of slots with weight over which the altered sums of a row are constant, not its own.

    Each column has its slots side by side, ``stops`` says where they stop; ``before`` is the weight
    of the column's slots in front of one. A last slot belongs to no column: runs to the end of
    theirs stop there. Writes rows, slots where runs begin and end, weights, and sums; returns the
    number of runs, less than twice the notes and one for each row.
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
