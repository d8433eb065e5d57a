"""Margin set of a parametric quadratic programme, with the inverse of its matrix.

The same quadratic programme covers SVM classification, SVM regression, and the repair of inexact
solutions of both::

    min_x  x'Qx / 2 - g'x    subject to  s'x = tau e,  0 <= x <= u,    g = g_a + tau g_b

with ``Q_ij = s_i s_j K[p_i, p_j]`` and decreasing ``tau``. The outputs are ``h = K (s x) + b``, and
the residuals are ``r = s h - g``. At the optimum, r = 0 on the margin set E (0 < x < u), r >= 0 if
x = 0, and r <= 0 if x = u.

An event is a change of E. Between two events x, b, h and r are affine in tau. Their direction
solves ``A_E [db; dx] = [-e; -g_b]`` with ``A_E = [[0, s_E'], [s_E, Q_EE]]`` (Hastie et al. 2004;
Ong, Shao and Yang 2010).

The inverse of ``A_E`` is stored as a base matrix plus one symmetric rank-one term per change of E.
The base matrix is fixed during a call. Let m be the size of E. Removing an index from E takes O(m)
operations per term. Adding an index takes a product of the base matrix with a vector.
"""

# mypy: disable-error-code="no-untyped-def"

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.compiled import njit

LOW, HIGH, FREE = 0, 1, 2  # sides of a variable: x = 0, x = upper, in the margin set

# Exit codes.
FULL, DONE, EMPTY, REFACTOR, CYCLE, INEXACT = 0, 1, 2, 3, 4, 5

DEPENDENT = 1e-9  # largest change of h, relative to the kernel, along a null direction
SINGULAR = 1e-12  # size, relative to the kernel, below which a Schur complement is treated as 0
INEXACT_MOVE = 1e-11  # change of h in a null step, relative to g, above which the path is repaired


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
    """Return the inner product of two vectors, summed in an order that can be vectorised."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@njit(cache=True)
def gather(matrix, rows, columns):
    """Return ``matrix[np.ix_(rows, columns)]``, but several times faster."""
    out = np.empty((rows.shape[0], columns.shape[0]))
    for i in range(rows.shape[0]):
        source, target = matrix[rows[i]], out[i]
        for j in range(columns.shape[0]):
            target[j] = source[columns[j]]
    return out


@njit(cache=True)
def restricted_product(matrix, index, columns):
    """Return ``matrix[np.ix_(index, index)] @ columns`` for two columns, without the submatrix."""
    out = np.empty(columns.shape)
    for i in range(index.shape[0]):
        row = matrix[index[i]]
        first = second = 0.0
        for j in range(index.shape[0]):
            first += row[index[j]] * columns[j, 0]
            second += row[index[j]] * columns[j, 1]
        out[i, 0], out[i, 1] = first, second
    return out


class EpochProgramme(NamedTuple):
    """Quadratic programme, or its restriction to a subset of the variables.

    It does not change during a call of the compiled loop. The points to which its variables belong
    are called the points in play.
    """

    K: NDArray[np.float64]  # kernel matrix of all points
    # kernel matrix of the points in play and of the points that may enter E
    ahead: NDArray[np.float64]
    origin: NDArray[np.int64]  # index of each point in play among all points
    point: NDArray[np.int64]  # point of each variable, among the points in play
    sign: NDArray[np.float64]
    upper: NDArray[np.float64]
    slope: NDArray[np.float64]  # g_b, the derivative of g with respect to tau


#: Scalars that change during a call. The counts are the numbers of slots, terms, free variables and
#: steps of length zero. The other scalars are tau, b, the scale of the kernel (kappa), the largest
#: accepted residual, the scale of g, e (excess), and the error of the equality constraint along the
#: direction (missed).
_COUNTS = ("n_slots", "n_terms", "n_free", "n_zeros")
_REALS = ("tau", "b", "kappa", "residual", "scale", "excess", "missed")
_FIELDS = np.dtype([(name, "i8") for name in _COUNTS] + [(name, "f8") for name in _REALS])
NUMBERS = np.dtype((np.record, _FIELDS))


class EpochState(NamedTuple):
    """Data that changes during a call.

    A slot is a position in the arrays. Each member of the margin set has a slot. A member keeps its
    slot after it is removed from the set.
    """

    x: NDArray[np.float64]
    r: NDArray[np.float64]
    side: NDArray[np.int8]
    slots: NDArray[np.int64]
    slot_of: NDArray[np.int64]
    base: NDArray[np.float64]  # inverse of A_E at the start of the call
    terms: NDArray[np.float64]  # vectors of the rank-one terms that were added since then
    scale: NDArray[np.float64]
    d: NDArray[np.float64]  # direction: db, followed by dx of every slot
    now: Any  # scalars, as a record of type :data:`NUMBERS`


@njit(cache=True)
def apply_inverse(inverse, n_terms, rhs, size, out):
    """Compute ``out = A_E^-1 rhs`` from the base matrix and the first ``n_terms`` terms."""
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
    """Compute the change ``dh = K (s dx) + db`` of the outputs at all points that may enter E."""
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
    """Remove the variable in slot ``k`` from the margin set.

    The inverse and the direction are updated. Returns False if the inverse cannot be updated.
    """
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
    """Write the column ``u`` that variable ``j`` would add to ``A_E``, and ``v = A_E^-1 u``.

    Returns the Schur complement of ``j`` in the enlarged matrix, and the norm of (-v, 1).
    """
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
    """Add variable ``j`` to the margin set. The new dx of ``j`` keeps its residual constant."""
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
    """Return the longest step along the null direction, and the slot that limits the step.

    The step ends when a variable reaches a bound. The slot is -1 if this variable is j itself.
    """
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
    """Add variable ``j`` to the margin set.

    If ``A_E`` would become singular, x_j changes until j or a member reaches a bound. If a member
    reaches a bound, it is exchanged for j. Returns the exit code (FULL on success) and whether x
    changed.
    """
    m = state.now.n_slots
    u = np.zeros(m + 2)
    v = np.zeros(m + 2)
    S, size = _schur(problem, state, j, u, v)
    kappa = state.now.kappa
    if DEPENDENT * kappa * size < S:
        _append(problem, state, j, u, v, S)
        return FULL, False
    # the Schur complement loses digits by cancellation, so singularity is determined from the
    # effect of the direction (-v, 1) on h
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
            _new_slot(state, j)  # the log stores only variables that have a slot
        return code, True
    if not leave(problem, state, slot, v[slot + 1] * way < 0):
        state.side[j] = FREE  # j is the only member, so the inverse must be recomputed
        return REFACTOR, True
    S, size = _schur(problem, state, j, u, v)
    _append(problem, state, j, u, v, max(S, 1e-14 * kappa))
    return code, True


@njit(cache=True)
def enter_all(problem, state, candidates, first):
    """Add candidates to the margin set, starting at index ``first``, while there is room.

    Returns the index of the first candidate that was not added.
    """
    while first < candidates.shape[0] and state.now.n_terms + 2 < state.terms.shape[0]:
        code, _ = enter(problem, state, candidates[first])
        first += 1
        if code == REFACTOR:
            break
    return first
