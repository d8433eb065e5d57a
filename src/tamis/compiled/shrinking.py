"""Updates of the optimum of a linear SVM when columns are removed.

A row is free if its multiplier lies strictly between its bounds. K is the kernel matrix. R is the
inverse of the matrix [[K_FF, 1], [1', 0]], where F are the free rows. R is stored with a row and
column for every row of the table, which are 0 for rows that are not free. Removing a column,
freeing a row and fixing a row are rank-one changes of R.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from tamis.compiled import njit

# Role of a row: its multiplier is 0, is between its bounds, or is at its upper bound.
ZERO, FREE, BOUND = 0, 1, 2

# OUTSIDE is the tolerance for multipliers outside their bounds, relative to the largest multiplier.
# WRONG is the tolerance for outputs on the wrong side of the margin, relative to the margin. In
# regression, WRONG is relative to the largest target.
OUTSIDE, WRONG = 1e-12, 1e-9
# Largest accepted residual of the linear system, relative to its right-hand side. After one
# refinement step the residual is smaller than this, unless the inverse is inaccurate.
UNSOLVED = 1e-9
# Smallest accepted pivot (the divisor of a rank-one change), as a share of its value without the
# change. If a pivot is smaller, the inverse is recomputed.
SHARE = 1e-8
# Maximum number of role changes. If the optimum is not reached by then, SMO is used instead.
# Removing a column changes only a few roles. The limit also ends cycles.
EXCHANGES = 50


@njit(cache=True)
def _spread(R, v, factor):
    """Add the rank-one matrix ``factor v v'`` to R."""
    for i in range(len(v)):
        if v[i] != 0:
            c = factor * v[i]
            for j in range(len(v)):
                R[i, j] += c * v[j]


@njit(cache=True)
def _times(R, v, out):
    """Multiply a symmetric matrix by a vector that may have many zeros."""
    n = len(out)
    out[:] = 0.0
    for i in range(n):
        c = v[i]
        if c != 0:
            for j in range(n):
                out[j] += c * R[i, j]


@njit(cache=True)
def without_column(K, R, state, x):
    """Remove a column from K and R, and return whether the inverse R is still accurate."""
    n = len(x)
    held = np.zeros(n + 1)
    for i in range(n):
        c = x[i]
        for j in range(n):
            K[i, j] -= c * x[j]
        if state[i] == FREE:
            held[i] = c
    moved = np.empty(n + 1)
    _times(R, held, moved)
    left = 1.0 - np.dot(held, moved)
    if not left > SHARE:
        return False
    _spread(R, moved, 1.0 / left)
    return True


@njit(cache=True)
def _measure_apart(K, R, state, p, weights):
    """Return the squared distance of row p from the span of the free rows.

    Also returns whether there are no free rows. The projection of row p onto the span is a weighted
    sum of free rows. These weights are written to ``weights``.
    """
    n = len(state)
    towards, alone = np.zeros(n + 1), True
    towards[n] = 1.0
    for i in range(n):
        if state[i] == FREE:
            towards[i], alone = K[p, i], False
    if alone:
        weights[:] = 0.0
        return K[p, p], alone
    _times(R, towards, weights)
    return K[p, p] - np.dot(towards, weights), alone


@njit(cache=True)
def _free(K, R, state, p, weights, left, alone):
    """Free a row whose squared distance from the span of the free rows is ``left``."""
    n = len(state)
    state[p] = FREE
    if alone:  # the inverse of [[K_pp, 1], [1, 0]]
        R[:] = 0.0
        R[p, n] = R[n, p] = 1.0
        R[n, n] = -K[p, p]
    else:
        weights[p] = -1.0
        _spread(R, weights, 1.0 / left)


@njit(cache=True)
def _hold(R, state, p, role):
    """Fix a free row in its new role. Return whether any other row is still free."""
    state[p] = role
    own = R[p, p]
    if not own > 0:
        R[:] = 0.0
        return False
    column = R[p].copy()
    _spread(R, column, -1.0 / own)
    R[p] = 0.0
    R[:, p] = 0.0
    return True


@njit(cache=True)
def _exchange(K, R, state, side, box, beta, p, way, weights):
    """Exchange row p, which depends linearly on the free rows, for one of the free rows.

    The multiplier of row p changes until a multiplier reaches a bound. The multipliers of the free
    rows compensate for the change, so that the outputs stay the same. Returns whether the exchange
    succeeded.
    """
    n = len(state)
    grows = way if state[p] == ZERO else -way
    most, leaves, role = box[p], p, BOUND if state[p] == ZERO else ZERO
    for i in range(n):
        if state[i] != FREE or weights[i] == 0:
            continue
        size, change = side[i] * beta[i], -side[i] * grows * weights[i]
        room = size / -change if change < 0 else (box[i] - size) / change
        if room < most:
            most, leaves, role = room, i, ZERO if change < 0 else BOUND
    if leaves == p:
        state[p], side[p] = role, way
        return True
    if not _hold(R, state, leaves, role):
        return False
    left, alone = _measure_apart(K, R, state, p, weights)
    if alone or not left > SHARE * K[p, p]:
        return False
    side[p] = way
    _free(K, R, state, p, weights, left, alone)
    return True


@njit(cache=True)
def invert(K, R, state, side, box, beta):
    """Compute the inverse R by freeing one row after the other.

    A row that depends linearly on the rows that are already free is not freed. Its multiplier is
    set to the nearer bound. Returns whether any row is free.
    """
    asked = state == FREE
    R[:] = 0.0
    weights, some = np.empty(len(state) + 1), False
    for i in range(len(state)):
        if asked[i]:
            state[i] = ZERO if side[i] * beta[i] < box[i] / 2 else BOUND
    for p in range(len(state)):
        if asked[p]:
            left, alone = _measure_apart(K, R, state, p, weights)
            if left > SHARE * K[p, p]:
                _free(K, R, state, p, weights, left, alone)
                some = True
    return some


@njit(cache=True)
def _solve(K, R, state, side, box, target, tube, beta, f):
    """Compute the multipliers and outputs from the roles of the rows.

    The results are written to ``beta`` and ``f``. Returns the intercept, and whether the solution
    is accurate.
    """
    n = len(state)
    fixed, rhs = np.zeros(n), np.zeros(n + 1)
    for i in range(n):
        if state[i] == BOUND:
            fixed[i] = side[i] * box[i]
            rhs[n] -= fixed[i]
    _times(K, fixed, f)
    size = abs(rhs[n])
    for i in range(n):
        if state[i] == FREE:
            rhs[i] = target[i] - tube * side[i] - f[i]
            size = max(size, abs(rhs[i]))
    z, rest, step, own = np.empty(n + 1), rhs.copy(), np.empty(n + 1), np.empty(n)
    _times(R, rest, z)
    unsolved = 0.0
    for k in range(3):  # usually one step of refinement suffices, rarely two are needed
        _times(K, z[:n], own)
        unsolved = 0.0
        rest[n] = rhs[n]
        for i in range(n):
            if state[i] == FREE:
                rest[i] = rhs[i] - own[i] - z[n]
                rest[n] -= z[i]
                unsolved = max(unsolved, abs(rest[i]))
        unsolved = max(unsolved, abs(rest[n]))
        if k == 2 or unsolved <= 1e-15 * size:
            break
        _times(R, rest, step)
        z += step
    for i in range(n):
        beta[i] = z[i] if state[i] == FREE else fixed[i]
    f += own
    return z[n], unsolved <= UNSOLVED * max(size, 1e-300)


@njit(cache=True)
def _worst_multiplier(state, side, box, beta):
    """Return the free row whose multiplier is farthest outside its bounds, or -1."""
    largest = np.abs(beta).max()
    worst, most = -1, OUTSIDE * largest
    for i in range(len(state)):
        if state[i] == FREE:
            size = side[i] * beta[i]
            outside = max(-size, size - box[i])
            if outside > most:
                worst, most = i, outside
    return worst


@njit(cache=True)
def _worst_output(state, side, target, tube, regression, f, b, tolerance):
    """Return the fixed row whose output violates the condition of its role most, or -1.

    Also returns the sign that the multiplier of this row will have when the row is freed.
    """
    worst, most, way = -1, tolerance, 0.0
    for i in range(len(state)):
        if state[i] == FREE:
            continue
        short = target[i] - f[i] - b
        if state[i] == BOUND:
            wrong, towards = tube - side[i] * short, side[i]
        elif regression:
            wrong, towards = abs(short) - tube, np.sign(short)
        else:
            wrong, towards = target[i] * short, target[i]
        if wrong > most:
            worst, most, way = i, wrong, towards
    return worst, way


@njit(cache=True)
def settle(K, R, state, side, box, target, tube, regression, beta, f):
    """Change the roles of rows, one at a time, until the optimality conditions hold.

    Returns whether the conditions are satisfied up to rounding. In this case, ``beta`` is the
    optimum.
    """
    tolerance = WRONG * (np.abs(target).max() if regression else 1.0)
    weights = np.empty(len(state) + 1)
    for _ in range(EXCHANGES):
        b, good = _solve(K, R, state, side, box, target, tube, beta, f)
        if not good:
            return False
        p = _worst_multiplier(state, side, box, beta)
        if p >= 0:
            role = ZERO if side[p] * beta[p] < 0 else BOUND
            if not _hold(R, state, p, role):
                return False
            continue
        p, way = _worst_output(state, side, target, tube, regression, f, b, tolerance)
        if p < 0:
            return True
        left, alone = _measure_apart(K, R, state, p, weights)
        if left > SHARE * K[p, p]:
            side[p] = way
            _free(K, R, state, p, weights, left, alone)
        elif not _exchange(K, R, state, side, box, beta, p, way, weights):
            return False
    return False


@njit(cache=True)
def find_gone(held, kept, most):
    """Return the columns of ``held`` that are not in ``kept``, and the number of these columns.

    The number is -1 if it would exceed ``most``, or if ``kept`` has columns that are not in
    ``held``.
    """
    found, k, place = np.empty(most, dtype=held.dtype), 0, 0
    for column in held:
        if place < len(kept) and kept[place] == column:
            place += 1
        elif k == most:
            return found, -1
        else:
            found[k] = column
            k += 1
    return found, k if place == len(kept) else -1


@njit(cache=True)
def unstore(stored, column_at, place_of, n_stored, column):
    """Remove a column from the stored columns and return it. The last column takes its position."""
    place, last = place_of[column], n_stored - 1
    x = stored[:, place].copy()
    if place != last:
        for i in range(len(stored)):
            stored[i, place] = stored[i, last]
        column_at[place] = column_at[last]
        place_of[column_at[last]] = place
    return x


@njit(cache=True)
def squared_weights(stored, place_of, columns, beta):
    """Return the squared weights (β'X)² of these columns, summed in the order of the rows."""
    n_stored, rows = len(columns), beta.nonzero()[0]
    out, found = np.zeros(n_stored), np.empty(n_stored)
    paired = len(rows) - len(rows) % 4
    for k in range(0, paired, 4):  # add four rows each time the sums are read and written
        i0, i1, i2, i3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        c0, c1, c2, c3 = beta[i0], beta[i1], beta[i2], beta[i3]
        for j in range(n_stored):
            total = out[j] + c0 * stored[i0, j]
            total += c1 * stored[i1, j]
            total += c2 * stored[i2, j]
            total += c3 * stored[i3, j]
            out[j] = total
    for i in rows[paired:]:
        for j in range(n_stored):
            out[j] += beta[i] * stored[i, j]
    for j in range(n_stored):
        found[j] = out[place_of[columns[j]]] ** 2
    return found


@njit(cache=True)
def without_columns(K, R, state, stored, column_at, place_of, held, kept, most):
    """Remove the columns of ``held`` that are not in ``kept``.

    Returns the number of removed columns, the sum of their squared entries, and whether R is still
    accurate. If more than ``most`` columns would be removed, or if ``kept`` has columns that are
    not in ``held``, nothing is removed and the number is -1.
    """
    left, n_gone = find_gone(held, kept, most)
    share, good = 0.0, True
    for k in range(n_gone):
        x = unstore(stored, column_at, place_of, len(held) - k, left[k])
        share += np.dot(x, x)
        good = without_column(K, R, state, x) and good
    return n_gone, share, good
