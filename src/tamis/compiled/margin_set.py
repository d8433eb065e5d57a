"""The margin set of a parametric quadratic programme: its members, and the inverse of its matrix.

One parametric quadratic programme covers classification, regression and every repair of both::

    min_x  x'Qx / 2 - g'x    subject to  s'x = tau e,  0 <= x <= u,    g = g_a + tau g_b

with ``Q_ij = s_i s_j K[p_i, p_j]`` and ``tau`` decreasing. With ``h = K (s x) + b`` the residual
``r = s h - g`` is zero on the margin set E (0 < x < u), >= 0 where x = 0 and <= 0 where x = u.
Between two events everything is affine in tau, and the direction solves
``A_E [db; dx] = [-e; -g_b]`` with ``A_E = [[0, s_E'], [s_E, Q_EE]]`` (Hastie et al. 2004; Ong, Shao
and Yang 2010).

The inverse of ``A_E`` is a matrix fixed during a call plus one symmetric rank-one term per change
of E: an index that leaves costs O(m) per term, one that enters one product with the matrix.
"""

# mypy: disable-error-code="no-untyped-def"

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

LOW, HIGH, FREE = 0, 1, 2  # x = 0, x = upper, in the margin set

# Why a call returned.
FULL, DONE, EMPTY, REFACTOR, CYCLE, INEXACT = 0, 1, 2, 3, 4, 5

DEPENDENT = 1e-9  # a null direction moves h by less than this, relative to the kernel
SINGULAR = 1e-12  # a Schur complement below this, relative to the kernel, cannot be divided by
INEXACT_MOVE = 1e-11  # a null move that changes h by more than this (relative to g) is repaired


@njit(cache=True, fastmath={"contract"})
def accumulate(rows, index, weight, count, out):
    """Add ``sum_k weight[k] * rows[index[k]]`` to ``out``, four rows at a time."""
    n = out.shape[0]
    k = 0
    while k + 4 <= count:
        a, b, c, d = rows[index[k]], rows[index[k + 1]], rows[index[k + 2]], rows[index[k + 3]]
        wa, wb, wc, wd = weight[k], weight[k + 1], weight[k + 2], weight[k + 3]
        for i in range(n):
            out[i] += (wa * a[i] + wb * b[i]) + (wc * c[i] + wd * d[i])
        k += 4
    while k < count:
        a, wa = rows[index[k]], weight[k]
        for i in range(n):
            out[i] += wa * a[i]
        k += 1


@njit(cache=True, fastmath={"contract", "reassoc"})
def dot(a, b):
    """Inner product, summed in an order that can be vectorised."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@njit(cache=True)
def gather(matrix, rows, columns):
    """``matrix[np.ix_(rows, columns)]``, several times faster."""
    out = np.empty((rows.shape[0], columns.shape[0]))
    for i in range(rows.shape[0]):
        source, target = matrix[rows[i]], out[i]
        for j in range(columns.shape[0]):
            target[j] = source[columns[j]]
    return out


class EpochProgramme(NamedTuple):
    """What stays fixed during a call: the programme, or its restriction to some variables."""

    K: NDArray[np.float64]  # over all points
    ahead: NDArray[np.float64]  # rows of K of the points in play x those that may enter
    origin: NDArray[np.int64]  # of each point in play among all points
    point: NDArray[np.int64]  # of each variable, among the points in play
    sign: NDArray[np.float64]
    upper: NDArray[np.float64]
    slope: NDArray[np.float64]  # g_b


#: Numbers that move: how many slots, terms, free variables and steps of length zero there are; tau,
#: b, the size of the kernel, the residual that is accepted, the size of g, e, and the error of the
#: constraint along the direction.
_COUNTS = ("n_slots", "n_terms", "n_free", "n_zeros")
_REALS = ("tau", "b", "kappa", "residual", "scale", "excess", "missed")
NUMBERS = np.dtype([(name, "i8") for name in _COUNTS] + [(name, "f8") for name in _REALS])


class EpochState(NamedTuple):
    """What moves. Slots hold the members of the margin set; one that is left stays empty."""

    x: NDArray[np.float64]
    r: NDArray[np.float64]
    side: NDArray[np.int8]
    slots: NDArray[np.int64]
    slot_of: NDArray[np.int64]
    base: NDArray[np.float64]  # inverse of A_E on arrival
    terms: NDArray[np.float64]  # its rank-one changes since
    scale: NDArray[np.float64]
    d: NDArray[np.float64]  # direction: db, then dx of every slot
    now: Any  # a record of :data:`NUMBERS`


@njit(cache=True)
def apply_inverse(inverse, n_terms, rhs, size, out):
    """``out = A_E^-1 rhs`` after some terms; the matrix is symmetric, so rows serve as columns."""
    m = inverse.base.shape[0]
    index = np.empty(m, np.int64)
    weight = np.empty(m)
    count = 0
    for k in range(m):
        if rhs[k] != 0.0:
            index[count] = k
            weight[count] = rhs[k]
            count += 1
    out[:size] = 0.0
    accumulate(inverse.base, index, weight, count, out[:m])
    for t in range(n_terms):
        term = inverse.terms[t, :size]
        w = inverse.scale[t] * dot(term, rhs[:size])
        for i in range(size):
            out[i] += w * term[i]


@njit(cache=True)
def response(problem, state, d, out):
    """``dh = K (s dx) + db`` at the points ahead."""
    m = state.now.n_slots
    index = np.empty(m, np.int64)
    weight = np.empty(m)
    count = 0
    for k in range(m):
        if d[k + 1] != 0.0:
            i = state.slots[k]
            index[count] = problem.point[i]
            weight[count] = problem.sign[i] * d[k + 1]
            count += 1
    out[:] = d[0]
    accumulate(problem.ahead, index, weight, count, out)


@njit(cache=True)
def _push(state, term, scale):
    t = state.now.n_terms
    state.terms[t, :] = 0.0
    state.terms[t, : term.shape[0]] = term
    state.scale[t] = scale
    state.now.n_terms = t + 1


@njit(cache=True)
def leave(problem, state, k, up):
    """Take slot ``k`` off the margin set: a rank-one term, and the new direction in O(m)."""
    i = state.slots[k]
    state.side[i] = HIGH if up else LOW
    state.x[i] = problem.upper[i] if up else 0.0
    state.r[i] = 0.0
    state.now.n_free -= 1
    size = state.now.n_slots + 1
    unit, column = np.zeros(size), np.empty(size)
    unit[k + 1] = 1.0
    apply_inverse(state, state.now.n_terms, unit, size, column)
    pivot = column[k + 1]
    if state.now.n_free == 0 or pivot <= 0.0:
        return False
    w = state.d[k + 1] / pivot
    for i in range(size):
        state.d[i] -= w * column[i]
    state.d[k + 1] = 0.0
    _push(state, column, -1.0 / pivot)
    return True


@njit(cache=True)
def _schur(problem, state, j, u, v):
    """``v = A_E^-1 u_j``, the Schur complement of ``j`` and the size of ``(-v, 1)``."""
    m = state.now.n_slots
    here = problem.origin[problem.point[j]]
    row = problem.K[here]
    u[0] = problem.sign[j]
    for k in range(m):
        i = state.slots[k]
        free = i != j and state.side[i] == FREE
        there = problem.origin[problem.point[i]]
        u[k + 1] = problem.sign[i] * problem.sign[j] * row[there] if free else 0.0
    apply_inverse(state, state.now.n_terms, u, m + 1, v)
    S = row[here] - u[0] * v[0]
    size = 1.0
    for k in range(m):
        i = state.slots[k]
        if i == j or state.side[i] != FREE:
            v[k + 1] = 0.0
        S -= u[k + 1] * v[k + 1]
        size += abs(v[k + 1])
    return S, size


@njit(cache=True)
def _new_slot(state, j):
    k = state.now.n_slots
    state.slots[k] = j
    state.slot_of[j] = k
    state.now.n_slots = k + 1
    state.d[k + 1] = 0.0
    return k


@njit(cache=True)
def _append(problem, state, j, u, v, S):
    """Put ``j`` on the margin set; its own dx makes its residual stand still."""
    k = state.slot_of[j]
    m = state.now.n_slots
    speed = problem.slope[j] + u[0] * state.d[0]
    for i in range(m):
        speed += u[i + 1] * state.d[i + 1]
    if k < 0:
        k = _new_slot(state, j)
    size = state.now.n_slots + 1
    term = -v[:size]
    term[k + 1] = 1.0
    for i in range(size):
        state.d[i] -= speed / S * term[i]
    _push(state, term, 1.0 / S)
    state.side[j] = FREE
    state.r[j] = 0.0
    state.now.n_free += 1


@njit(cache=True)
def _null_limit(problem, state, j, way, v):
    """First bound met along the null direction; slot ``-1`` when it is the one of ``j``."""
    step = problem.upper[j] - state.x[j] if way > 0 else state.x[j]
    slot = -1
    pivot = 0.0
    for k in range(state.now.n_slots):
        dx = -v[k + 1] * way
        if abs(dx) < 1e-11:
            continue
        i = state.slots[k]
        limit = (problem.upper[i] - state.x[i]) / dx if dx > 0 else state.x[i] / -dx
        limit = max(limit, 0.0)
        if limit < step - 1e-13 or (limit <= step + 1e-13 and abs(dx) > pivot):
            step = min(step, limit)
            slot = k
            pivot = abs(dx)
    return step, slot


@njit(cache=True)
def enter(problem, state, j):
    """Let ``j`` enter; where ``A_E`` would become singular, exchange along the null space.

    Returns the exit code (FULL when all is well) and whether x was moved.
    """
    m = state.now.n_slots
    u = np.zeros(m + 2)
    v = np.zeros(m + 2)
    S, size = _schur(problem, state, j, u, v)
    kappa = state.now.kappa
    if DEPENDENT * kappa * size < S:
        _append(problem, state, j, u, v, S)
        return FULL, False
    # z = (-v, 1): what it does to h decides, the Schur complement is all cancellation
    n_ahead = problem.ahead.shape[1]
    dh = np.empty(n_ahead)
    response(problem, state, -v, dh)
    dh += problem.sign[j] * problem.ahead[problem.point[j]]
    largest = np.max(np.abs(dh))
    if largest > DEPENDENT * kappa * size and SINGULAR * kappa * size < S:
        _append(problem, state, j, u, v, S)
        return FULL, False
    way = -1.0 if state.side[j] == HIGH else 1.0
    step, slot = _null_limit(problem, state, j, way, v)
    for k in range(m):
        if v[k + 1] != 0.0:
            state.x[state.slots[k]] -= step * way * v[k + 1]
    state.x[j] += step * way
    state.now.b -= step * way * v[0]
    for i in range(state.r.shape[0]):
        if problem.point[i] < n_ahead:
            state.r[i] += step * way * problem.sign[i] * dh[problem.point[i]]
    code = INEXACT if step * largest > INEXACT_MOVE * state.now.scale else FULL
    if slot < 0:
        state.side[j] = HIGH if way > 0 else LOW
        state.x[j] = problem.upper[j] if way > 0 else 0.0
        if state.slot_of[j] < 0:
            _new_slot(state, j)  # only slots are logged
        return code, True
    if not leave(problem, state, slot, v[slot + 1] * way < 0):
        state.side[j] = FREE  # j is the only member: its inverse is made anew
        return REFACTOR, True
    S, size = _schur(problem, state, j, u, v)
    _append(problem, state, j, u, v, max(S, 1e-14 * kappa))
    return code, True


@njit(cache=True)
def enter_all(problem, state, candidates, first):
    """Enter candidates from ``first`` on while there is room; returns the next one."""
    while first < candidates.shape[0] and state.now.n_terms + 2 < state.terms.shape[0]:
        code, _ = enter(problem, state, candidates[first])
        first += 1
        if code == REFACTOR:
            break
    return first
