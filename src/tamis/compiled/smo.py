"""A first point: sequential minimal optimisation to moderate accuracy, on the kernel in double."""

# mypy: disable-error-code="no-untyped-def"

import numpy as np
from numba import njit

from tamis.compiled.margin_set import accumulate


@njit(cache=True)
def smo(K, point, sign, upper, g, x, tolerance, max_steps):
    """Improve ``x`` in place by pairs (Fan, Chen and Lin 2005) and return a feasible intercept.

    The path starts from the exact optimum of a nearby programme, so nothing depends on how far this
    comes; a good point only saves events.
    """
    h = np.zeros(K.shape[0])
    accumulate(K, point, sign * x, x.shape[0], h)
    high = low = 0.0
    for _ in range(max_steps):
        i, high, low = _first(point, sign, upper, g, x, h)
        if i < 0 or high - low <= tolerance:
            break
        j = _second(K, point, sign, upper, g, x, h, i, high)
        if j < 0:
            break
        _step(K, point, sign, upper, g, x, h, i, j)
    return 0.5 * (high + low)


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
            value = slack * slack / max(own + K[p, p] - 2 * row[p], 1e-12)
            if value > gain:
                best, gain = j, value
    return best


@njit(cache=True)
def _step(K, point, sign, upper, g, x, h, i, j):
    p, q = point[i], point[j]
    curvature = max(K[p, p] + K[q, q] - 2 * K[p, q], 1e-12)
    t = ((sign[i] * g[i] - h[p]) - (sign[j] * g[j] - h[q])) / curvature
    room_i = upper[i] - x[i] if sign[i] > 0 else x[i]
    room_j = x[j] if sign[j] > 0 else upper[j] - x[j]
    t = min(t, room_i, room_j)
    # the one that reaches its bound is put on it exactly
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
