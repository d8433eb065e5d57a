"""The optimum of a linear support vector machine, followed as columns leave its table.

The inverse R of the system [[K_FF, 1], [1', 0]] of the free rows F is kept as a matrix of all rows,
0 where a row is not free: a column that leaves, a row that becomes free and one that ceases to be
change it by a matrix of rank one each.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np
from numba import njit

# What a row does: its multiplier is 0, free, or on its bound.
ZERO, FREE, BOUND = 0, 1, 2

# A multiplier is outside its bounds, and an output on the wrong side, by more than this: the former
# as a share of the largest, the latter of the margin or, in regression, of the largest target.
OUTSIDE, WRONG = 1e-12, 1e-9
# What rounding may leave of the system, as a share of its right side: one step of refinement leaves
# less unless the inverse has gone bad.
UNSOLVED = 1e-9
# Least share of a diagonal entry that a new row, or a column less, may leave: with fewer digits the
# inverse is computed anew.
SHARE = 1e-8
# Rows that change their roles one by one before pairs are optimised instead: a column that leaves
# moves a few, and going round in circles ends here.
EXCHANGES = 50


@njit(cache=True)
def _spread(R, v, factor):
    """Add ``factor v v'``."""
    for i in range(len(v)):
        if v[i] != 0:
            c = factor * v[i]
            for j in range(len(v)):
                R[i, j] += c * v[j]


@njit(cache=True)
def _times(R, v, out):
    """A symmetric matrix times a vector of which many entries may be 0."""
    n = len(out)
    out[:] = 0.0
    for i in range(n):
        c = v[i]
        if c != 0:
            for j in range(n):
                out[j] += c * R[i, j]


@njit(cache=True)
def without_column(K, R, state, x):
    """Take a column out of both matrices; whether the inverse kept its digits."""
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
    """How far a row is from what the free ones span, squared, and their weights next to it."""
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
    """Let a row be free that is so far from the others."""
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
    """Let a free row be free no more; whether another is."""
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
    """Let a row that depends on the free ones take the place of one; whether that can be.

    No output changes as its multiplier grows and theirs make up for it, so that it grows until one
    of them, or its own, is on a bound.
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
    """The inverse of the system of the free rows, one after the other.

    One that depends on those before it is put on the nearer bound; whether any is left.
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
    """Multipliers and outputs of these roles; the intercept, and whether the system is solved."""
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
    for k in range(3):  # the inverse as it is, then one step of refinement, rarely two
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
    """The free row whose multiplier is farthest outside its bounds; -1 where none is."""
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
    """The row whose output is farthest on the wrong side for its role, and the side it is on."""
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
    """Exchange roles, one row at a time, until the conditions of optimality hold.

    Returns whether they do, to rounding; ``beta`` is the optimum then.
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
    """Which of sorted columns are not kept, at most so many; the number is -1 where that fails."""
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
    """Take a column out of those that are stored, the last in its place."""
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
    """Squares of β'X for these columns, each summed in the order of the rows."""
    n_stored, rows = len(columns), beta.nonzero()[0]
    out, found = np.zeros(n_stored), np.empty(n_stored)
    paired = len(rows) - len(rows) % 4
    for k in range(0, paired, 4):  # four rows for each time that the sums are read and written
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
    """Take columns out that are not kept: how many, their share of the trace, whether R is good.

    Nothing is done, and the number is -1, where they are more than ``most`` or others came in.
    """
    left, n_gone = find_gone(held, kept, most)
    share, good = 0.0, True
    for k in range(n_gone):
        x = unstore(stored, column_at, place_of, len(held) - k, left[k])
        share += np.dot(x, x)
        good = without_column(K, R, state, x) and good
    return n_gone, share, good
