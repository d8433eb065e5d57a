"""Sequential minimal optimisation (SMO) in double precision."""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from tamis.compiled import njit

# Lower bound of the curvature along the direction that changes a pair of variables, relative to the
# sum of the two diagonal entries of the kernel. LIBSVM has a similar bound. For duplicate points,
# the curvature is 0. The bound makes the step finite, and the step ends at a box constraint.
FLAT = 1e-12


@njit(cache=True)
def _curvature(first, second, between):
    return max(first + second - 2 * between, FLAT * (first + second), 1e-300)


@njit(cache=True)
def smo(K, point, sign, upper, g, x, h, tolerance, max_steps):
    """Improve ``x`` and the outputs ``h = K (s x)`` in place, until convergence.

    Each step changes a pair of variables (Fan, Chen and Lin 2005). Returns a feasible intercept and
    the number of steps, which is ``max_steps`` if the optimisation has not converged.
    """
    high = low = 0.0
    for step in range(max_steps):
        i, high, low = _first(point, sign, upper, g, x, h)
        if i < 0 or high - low <= tolerance:
            return 0.5 * (high + low), step
        j = _second(K, point, sign, upper, g, x, h, i, high)
        if j < 0:
            return 0.5 * (high + low), step
        _step(K, point, sign, upper, g, x, h, i, j)
    return 0.5 * (high + low), max_steps


@njit(cache=True)
def _first(point, sign, upper, g, x, h):
    best, high, low = -1, -np.inf, np.inf
    for i in range(x.shape[0]):
        f = sign[i] * g[i] - h[point[i]]
        can_rise = x[i] < upper[i] if sign[i] > 0 else x[i] > 0
        can_fall = x[i] > 0 if sign[i] > 0 else x[i] < upper[i]
        if can_rise and f > high:
            best, high = i, f
        if can_fall and f < low:
            low = f
    return best, high, low


@njit(cache=True)
def _second(K, point, sign, upper, g, x, h, i, high):
    row = K[point[i]]
    own = row[point[i]]
    best, gain = -1, 0.0
    for j in range(x.shape[0]):
        can_fall = x[j] > 0 if sign[j] > 0 else x[j] < upper[j]
        if not can_fall:
            continue
        p = point[j]
        slack = high - (sign[j] * g[j] - h[p])
        if slack > 0:
            value = slack * slack / _curvature(own, K[p, p], row[p])
            if value > gain:
                best, gain = j, value
    return best


@njit(cache=True)
def _step(K, point, sign, upper, g, x, h, i, j):
    p, q = point[i], point[j]
    t = (sign[i] * g[i] - h[p]) - (sign[j] * g[j] - h[q])
    t /= _curvature(K[p, p], K[q, q], K[p, q])
    room_i = upper[i] - x[i] if sign[i] > 0 else x[i]
    room_j = x[j] if sign[j] > 0 else upper[j] - x[j]
    t = min(t, room_i, room_j)
    # a variable that reaches a bound is set exactly to the bound
    if t == room_i:
        x[i] = upper[i] if sign[i] > 0 else 0.0
    else:
        x[i] += sign[i] * t
    if t == room_j:
        x[j] = 0.0 if sign[j] > 0 else upper[j]
    else:
        x[j] -= sign[j] * t
    row_i, row_j = K[p], K[q]
    for k in range(h.shape[0]):
        h[k] += t * (row_i[k] - row_j[k])
