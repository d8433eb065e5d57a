"""One epoch of a path.

It follows a subset of the variables over several events, and checks all variables afterwards.
"""

import numpy as np

from tamis._arrays import Array
from tamis.compiled import margin_set as loops
from tamis.compiled.events import EpochLog, advance, audit
from tamis.compiled.margin_set import FREE
from tamis.svm.path.programme import Line, Segment, Stuck
from tamis.svm.path.proofs import Walked, prove
from tamis.svm.path.state import EPOCH, RESIDUAL, Indices, MarginSet, SolverState

# An epoch is cut at the first row whose violation exceeds this share of lambda. The path is
# repaired before it continues.
CUT = 1e-8
# If the error of the inverse exceeds this, the proof is withdrawn, because a step to the optimum is
# no longer exact to a thousandth.
UNSOUND = 1e-3
# If the error of the inverse exceeds this, the inverse is computed from scratch. One epoch raises
# the error by at most a few powers of ten, so the error stays below UNSOUND.
STALE = 1e-8


def run_epoch(state: SolverState, line: Line, end: float) -> int:
    """Follow the path for one epoch, or until ``end``. Return a code for why it stopped."""
    state.slip()
    _polish(state, line)
    watch = state.watched(line)
    problem, moved = state.restricted(line, watch)
    m, n_rows = len(moved.slots), state.length + 2
    log = EpochLog(
        np.empty(n_rows),
        np.empty(n_rows),
        np.empty((n_rows, m)),
        np.full((n_rows, m), -1, np.int8),
        np.empty(n_rows, np.int64),
    )
    code, n_rows = advance(problem, moved, log, end)
    slots = moved.slots[: moved.now.n_slots]
    moving = watch[slots]
    log = _trim(state, log, n_rows, moving)
    walked = Walked(log, moving, _outputs(state, moving, log), moved)
    if not np.isfinite(walked.h[-1]).all():
        raise Stuck
    last, drifted = record(state, line, walked, watch, code)
    if drifted:
        code = loops.INEXACT
    elif last < n_rows - 1:
        code = loops.FULL
        state.width = min(int((1.5 if last else 3.0) * state.width) + 1, len(state.x))
    else:
        state.width = max(int(0.97 * state.width), 32)
    _move_to(state, line, walked, last)
    state.zeros = int(moved.now.n_zeros)
    free, n_terms = log.side[last] == FREE, int(log.n_terms[last])
    state.margin = MarginSet.collected(moved, moving, free, n_terms)
    if state.programme.bracketed and line.record:
        _check_inverse(state, line.record[-1])
    return _settle(state, code, last)


def _check_inverse(state: SolverState, segment: Segment) -> None:
    """Withdraw the proof if the inverse is inaccurate, and recompute the inverse if it is stale."""
    error = state.margin.error(state.programme)
    if not error < UNSOUND:
        segment.proof.void()
        state.refactor()
    elif error > STALE:
        state.renew()


def _polish(state: SolverState, line: Line) -> None:
    """Make a Newton step on the margin set, which removes the errors that have accumulated."""
    programme, i = state.programme, state.margin.members
    s, p = programme.sign[i], programme.point[i]
    r = state.residuals(line.term(state.tau))[i]
    excess = state.excess - state.tau * line.excess
    good = 1e-13 * line.scale
    if np.abs(r).max() <= good and abs(excess) <= 1e-13 * float(state.x.sum()):
        return
    step = -state.margin.inverse @ np.concatenate([[excess], r])
    x = state.x[i] + step[1:]
    if (x < 0).any() or (x > programme.upper[i]).any():
        return
    h = state.h + (s * step[1:]) @ programme.K[p] + step[0]
    if np.abs(s * (h - state.h)[p] + r).max() < max(0.1 * np.abs(r).max(), good):
        state.x[i], state.h, state.b = x, h, state.b + float(step[0])


def _trim(state: SolverState, log: EpochLog, n_rows: int, moving: Indices) -> EpochLog:
    """Return the written rows of the log, for the variables ``moving``.

    Until its first event, a variable keeps the value and the side from ``state``.
    """
    x, side = log.x[:n_rows, : len(moving)], log.side[:n_rows, : len(moving)]
    x = np.where(side < 0, state.x[moving], x)
    side = np.where(side < 0, state.side[moving], side)
    return EpochLog(log.tau[:n_rows], log.b[:n_rows], x, side, log.n_terms[:n_rows])


def _outputs(state: SolverState, moving: Indices, log: EpochLog) -> Array:
    """Return the outputs h at all points for each row of the log, in a single matrix product."""
    programme, m = state.programme, len(moving)
    change = (log.x - log.x[0]) * programme.sign[moving]
    if len(state.rows) < m:
        state.rows = np.empty((m + EPOCH, len(programme.K)))
    # with "clip", numpy writes the rows to ``out`` without a buffer
    rows = np.take(programme.K, programme.point[moving], 0, out=state.rows[:m], mode="clip")
    h = change @ rows
    h += state.h
    h += (log.b - log.b[0])[:, None]
    return h


def record(
    state: SolverState, line: Line, walked: Walked, watch: Indices, code: int
) -> tuple[int, bool]:
    """Check all rows of a log, and record those that are valid as a segment of the path.

    Return the last valid row, and whether the next row was rejected because of its violation.
    """
    programme, (log, moving, h, _) = state.programme, walked
    slot_of = np.full(len(state.x), -1)
    slot_of[moving] = np.arange(len(moving))
    noise = float(np.abs(line.noise).max())
    tolerance = 1e-11 * line.scale + 2 * noise + 1e-15 * float(np.abs(h[0]).max())
    followed = np.zeros(len(state.x), np.bool_)
    followed[watch] = True
    fixed = programme.sign, programme.point, line.slope
    violation, bad = audit(*fixed, state.side, slot_of, followed, h, log, line.offset, tolerance)
    last = len(log.tau) - 1
    if bad <= last:
        last = max(bad - 1, 0)
        while log.n_terms[last] < 0:
            last -= 1
    if line.record is None:
        return last, False
    wrong = np.flatnonzero(violation[1 : last + 1] > CUT * line.scale)
    good = np.flatnonzero(log.n_terms[: wrong[0] + 1] >= 0)[-1] if len(wrong) else 0
    last = int(good) if good > 0 else last
    # the last row of an inexact epoch is not recorded yet: it is first repaired at the same lambda
    sound = last - 1 if code == loops.INEXACT and last == len(log.tau) - 1 else last
    if sound > 0:
        keep = slice(0, sound + 1)
        log = EpochLog._make(part[keep].copy() for part in log)
        proof = prove(state, Walked(log, moving, h[keep], walked.moved))
        seen = log.x, state.x.copy(), violation[keep], proof
        line.record.append(Segment(log.tau, log.b, moving, *seen))
    return last, bool(good > 0)


def _move_to(state: SolverState, line: Line, walked: Walked, last: int) -> None:
    """Set the state to the row ``last`` of the log."""
    programme, (log, moving, h, _) = state.programme, walked
    state.x[moving], state.side[moving] = log.x[last], log.side[last]
    state.b, state.tau, state.h = float(log.b[last]), float(log.tau[last]), h[last].copy()
    state.snap()
    drop = log.tau[:last] - state.tau
    earlier = np.flatnonzero(drop > 1e-9 * abs(state.tau))
    state.speed = None
    if len(earlier):
        dh = (state.h - h[earlier[-1]]) / drop[earlier[-1]]
        state.speed = programme.sign * dh[programme.point] + line.slope


def _settle(state: SolverState, code: int, last: int) -> int:
    """Recompute the inverse if the code requests it, and return the code for the next epoch.

    If the inverse cannot be made more accurate, larger residuals are tolerated.
    """
    if code == loops.REFACTOR:
        if last == 0:
            state.residual *= 100
        if state.residual > 1e-5:
            state.residual = 1e-8
            state.build(state.margin.members.copy())
            return loops.INEXACT
        return state.refactor()
    if code == loops.DONE:
        state.residual = RESIDUAL
    return code
