"""Inner loop that follows the SVM path from event to event, and a check of the result."""

# mypy: disable-error-code="no-untyped-def"

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.compiled import njit
from tamis.compiled.margin_set import (
    CYCLE,
    DONE,
    EMPTY,
    FREE,
    FULL,
    LOW,
    REFACTOR,
    apply_inverse,
    enter,
    leave,
    response,
)

TIE = 1e-12  # events closer than this, relative to tau, are treated as simultaneous

LOST = 1e-2  # largest error, relative to the slope, of a direction that is used


class EpochLog(NamedTuple):
    """Points of the path, one per row. Row 0 is the starting point."""

    tau: NDArray[np.float64]
    b: NDArray[np.float64]
    x: NDArray[np.float64]  # x of the variable in each slot
    side: NDArray[np.int8]
    n_terms: NDArray[np.int64]  # number of terms of the inverse; -1 in the middle of an exchange


@njit(cache=True)
def _next_event(problem, state, dr, longest, tolerance, found):
    """Return the length of the step to the next event, and the variable that causes the event.

    The variable is -1 if there is no event within the step ``longest``.
    """
    best = longest
    tie = TIE * state.now.tau
    n_found = 0
    for k in range(state.now.n_slots):
        dx = state.d[k + 1]
        i = state.slots[k]
        if state.side[i] != FREE or abs(dx) * state.now.kappa <= tolerance:
            continue
        room = problem.upper[i] - state.x[i] if dx > 0 else state.x[i]
        step = max(room, 0.0) / abs(dx)
        if step <= best + tie:
            best = min(best, step)
            found[n_found] = i
            n_found += 1
    for i in range(dr.shape[0]):
        side = state.side[i]
        if side == FREE:
            continue
        speed = -dr[i] if side == LOW else dr[i]
        if speed <= tolerance:
            continue
        room = state.r[i] if side == LOW else -state.r[i]
        if room <= (best + tie) * speed:
            best = min(best, max(room, 0.0) / speed)
            found[n_found] = i
            n_found += 1
    winner = -1
    pivot = 0.0
    for f in range(n_found):
        i = found[f]
        if state.side[i] == FREE:
            dx = state.d[state.slot_of[i] + 1]
            room = problem.upper[i] - state.x[i] if dx > 0 else state.x[i]
            size, step = abs(dx) * state.now.kappa, room / abs(dx)
        else:
            size, step = abs(dr[i]), abs(state.r[i]) / abs(dr[i])
            if (state.r[i] < 0) == (state.side[i] == LOW):
                step = 0.0
        if step <= best + tie and size > pivot:
            winner, pivot = i, size
    return best, winner


@njit(cache=True)
def _dh_at(problem, state, p):
    """Return the derivative ``dh`` of the output h along the direction, at a single point."""
    row = problem.K[problem.origin[p]]
    dh = state.d[0]
    for k in range(state.now.n_slots):
        i = state.slots[k]
        dh += problem.sign[i] * state.d[k + 1] * row[problem.origin[problem.point[i]]]
    return dh


@njit(cache=True)
def _speeds(problem, state, dh, dr):
    """Write the derivatives ``dr`` of the residuals along the direction.

    Returns the error of the direction, and a tolerance. Along an exact direction, the residuals on
    the margin set do not change, and the equality constraint is satisfied. The error is the larger
    violation of these two conditions. Members of the margin set are checked only if their outputs
    are needed for other purposes. Derivatives below the tolerance are rounding errors.
    """
    n_ahead = problem.ahead.shape[1]
    response(problem, state, state.d, dh[:n_ahead])
    for k in range(state.now.n_slots):
        i = state.slots[k]
        if problem.point[i] >= n_ahead and state.side[i] != FREE:
            dh[problem.point[i]] = _dh_at(problem, state, problem.point[i])
    error = 0.0
    for i in range(dr.shape[0]):
        p = problem.point[i]
        free = state.side[i] == FREE
        dr[i] = 0.0
        if not free or p < n_ahead:
            dr[i] = problem.sign[i] * dh[p] + problem.slope[i]
            error = max(error, abs(dr[i])) if free else error
    size = abs(state.d[0])
    missed = state.now.excess
    for k in range(state.now.n_slots):
        size += abs(state.d[k + 1]) * state.now.kappa
        missed += problem.sign[state.slots[k]] * state.d[k + 1]
    state.now.missed = missed
    # the tolerance ignores the error of the constraint, which does not affect the residuals and is
    # corrected by refinement
    tolerance = max(20.0 * error, 4e-15 * size)
    return max(error, abs(missed) * state.now.kappa), tolerance


@njit(cache=True)
def _refine(problem, state):
    """Refine the direction by one step, so that residuals on the margin set stay constant."""
    size = state.now.n_slots + 1
    rhs = np.zeros(size)
    rhs[0] = state.now.missed
    for k in range(size - 1):
        i = state.slots[k]
        if state.side[i] == FREE:
            dh = _dh_at(problem, state, problem.point[i])
            rhs[k + 1] = problem.sign[i] * dh + problem.slope[i]
    change = np.empty(size)
    apply_inverse(state, state.now.n_terms, rhs, size, change)
    for k in range(size):
        if k == 0 or state.side[state.slots[k - 1]] == FREE:
            state.d[k] -= change[k]


@njit(cache=True)
def _move(problem, state, dr, step):
    state.now.tau -= step
    state.now.b += step * state.d[0]
    for k in range(state.now.n_slots):
        state.x[state.slots[k]] += step * state.d[k + 1]
    for i in range(dr.shape[0]):
        if state.side[i] != FREE:
            state.r[i] += step * dr[i]


@njit(cache=True)
def _stands_on_bound(problem, state):
    """Return whether the only free variable is at a bound.

    A single free variable cannot change, because of the equality constraint.
    """
    for k in range(state.now.n_slots):
        i = state.slots[k]
        if state.side[i] == FREE:
            room = min(state.x[i], problem.upper[i] - state.x[i])
            return room <= TIE * problem.upper[i]
    return False


@njit(cache=True)
def _write(state, log, row, complete):
    log.tau[row] = state.now.tau
    log.b[row] = state.now.b
    log.n_terms[row] = state.now.n_terms if complete else -1
    for k in range(state.now.n_slots):
        log.x[row, k] = state.x[state.slots[k]]
        log.side[row, k] = state.side[state.slots[k]]


@njit(cache=True)
def advance(problem, state, log, end):
    """Follow the path until tau reaches ``end`` or the log is full.

    Returns the exit code and the number of rows written to the log. An exchange takes two rows.
    """
    dh = np.empty(problem.origin.shape[0])
    dr = np.empty(problem.sign.shape[0])
    found = np.empty(2 * dr.shape[0] + 1, np.int64)
    scale = max(np.max(np.abs(problem.slope)), 1e-300)
    row = 0
    _write(state, log, row, True)
    n_terms = state.terms.shape[0] - 2
    while row + 2 < log.tau.shape[0] and state.now.n_terms < n_terms:
        error, tolerance = _speeds(problem, state, dh, dr)
        # refine only if the error exceeds rounding; 0.05 times the tolerance is the larger of two
        # errors: the current error of the residuals, and the rounding error
        if error > state.now.residual * scale and error >= 0.05 * tolerance:
            _refine(problem, state)
            error, tolerance = _speeds(problem, state, dh, dr)
            if error > state.now.residual * scale and error >= 0.05 * tolerance:
                return REFACTOR, row + 1
        if tolerance > LOST * scale:
            return REFACTOR, row + 1
        step, j = _next_event(problem, state, dr, state.now.tau - end, tolerance, found)
        _move(problem, state, dr, step)
        row += 1
        if j < 0:
            state.now.tau = end
            _write(state, log, row, True)
            return DONE, row + 1
        state.now.n_zeros = state.now.n_zeros + 1 if step <= TIE * state.now.tau else 0
        code = FULL
        if state.side[j] == FREE:
            k = state.slot_of[j]
            if not leave(problem, state, k, state.d[k + 1] > 0):
                code = EMPTY if state.now.n_free == 0 else REFACTOR
            elif state.now.n_free == 1 and _stands_on_bound(problem, state):
                code = EMPTY
        else:
            _write(state, log, row, False)
            code, moved = enter(problem, state, j)
            if moved:
                row += 1
        _write(state, log, row, True)
        if code != FULL:
            return code, row + 1
        if state.now.n_zeros > 3 * dr.shape[0] + 50:
            return CYCLE, row + 1
    return FULL, row + 1


@njit(cache=True)
def audit(sign, point, slope, side, slot_of, followed, h, log, offset, tolerance):
    """Check each row of a log, given the recomputed outputs ``h`` of all points.

    Returns the largest violation of the optimality conditions in each row. Also returns the first
    row in which a variable that is not ``followed`` violates the conditions by more than the
    tolerance.
    """
    n_rows = log.tau.shape[0]
    violation = np.zeros(n_rows)
    bad = n_rows
    for row in range(n_rows):
        tau = log.tau[row]
        for i in range(side.shape[0]):
            r = sign[i] * h[row, point[i]] - offset[i] - tau * slope[i]
            k = slot_of[i]
            if k >= 0:
                here = log.side[row, k]
                before = log.side[max(row - 1, 0), k]
            else:
                here = before = side[i]
            free = here == FREE or before == FREE
            wrong = abs(r) if free else max(-r if here == LOW else r, 0.0)
            if wrong > 0.0:
                violation[row] = max(violation[row], wrong)
                if wrong > tolerance and row < bad and not followed[i]:
                    bad = row
    return violation, bad


@njit(cache=True)
def swaps(lam, h, tie, positive, negative, weight, state, out_lam, out_change):
    """Find each lambda at which the order of two outputs changes, for pairs of opposite classes.

    The ``state`` of a pair is 1 if the output of the positive point is higher, 0 if it is lower,
    and 1/2 in a tie. Changes of the state are multiplied by the weight of the pair. Returns the
    number of changes, which may exceed the length of the output arrays.
    """
    count = 0
    for row in range(h.shape[0]):
        for a in range(positive.shape[0]):
            top = h[row, positive[a]]
            for b in range(negative.shape[0]):
                d = top - h[row, negative[b]]
                band = tie[row, positive[a]] + tie[row, negative[b]]
                new = 1.0 if d > band else (0.0 if d < -band else 0.5)
                old = state[a, b]
                if new == old:
                    continue
                state[a, b] = new
                if count < out_lam.shape[0]:
                    where = lam[row]
                    if row > 0:
                        # a tie begins or ends where the outputs differ by ``band``
                        edge = new + old - 1.0 if new == 0.5 or old == 0.5 else 0.0
                        side = 1.0 if edge > 0 else (-1.0 if edge < 0 else 0.0)
                        last = tie[row - 1, positive[a]] + tie[row - 1, negative[b]]
                        before = h[row - 1, positive[a]] - h[row - 1, negative[b]] - side * last
                        share = before / (before - d + side * band)
                        where = lam[row - 1] + (lam[row] - lam[row - 1]) * share
                    out_lam[count] = where
                    out_change[count] = (new - old) * weight[a, b]
                count += 1
    return count
