"""Where between two events the optimality conditions hold for certain."""

# mypy: disable-error-code="no-untyped-def"

import numpy as np
from numba import njit

from tamis.compiled.margin_set import FREE, LOW


@njit(cache=True)
def _cut(part, first, last):
    """Cut ``part`` of [0, 1] to where a line from ``first`` to ``last`` is not negative."""
    if first >= 0.0 and last >= 0.0:
        return
    if first < 0.0 and last < 0.0:
        part[0], part[1] = 1.0, 0.0
    elif first < 0.0:
        part[0] = max(part[0], first / (first - last))
    else:
        part[1] = min(part[1], first / (first - last))


@njit(cache=True)
def proved_parts(
    sign,
    point,
    upper,
    slope,
    side,
    slot_of,
    h,
    log,
    norm,
    dx,
    error_w,
    error_b,
    rho,
    mass,
    noise,
    drift,
):
    """The part of every interval between rows on which its margin set is that of the optimum.

    The optimum on a margin set is affine in tau and no further from the log than ``dx`` in its
    members, ``error_w`` in the norm of its weights and ``error_b`` in its intercept; residuals are
    known to ``rho + mass noise + drift``. It is *the* optimum wherever its members are within their
    bounds and the residuals of all others have the right sign. A residual that is all the time no
    larger than its error (of a copy of a member, say) does not cut the part: what its sign can
    matter is added to a duality gap.

    Returns begin and end as shares of the interval (begin > end where nothing is proved), the gap,
    and the largest residual behind it.
    """
    n_parts = log.tau.shape[0] - 1
    found = np.zeros((n_parts, 4))
    for k in range(n_parts):
        part = found[k]
        part[1] = 1.0
        if not log.tau[k + 1] < log.tau[k]:
            part[0], part[1] = 1.0, 0.0
            continue
        for i in range(side.shape[0]):
            slot, p = slot_of[i], point[i]
            here = log.side[k, slot] if slot >= 0 else side[i]
            if here == FREE:
                a, c, e = log.x[k, slot], log.x[k + 1, slot], dx[k, slot]
                _cut(part, a - e, c - e)
                _cut(part, upper[i] - a - e, upper[i] - c - e)
            else:
                error = error_w[k] * norm[p] + error_b[k]
                error += rho[k] + mass[k] * noise[p] + drift[p]
                way = 1.0 if here == LOW else -1.0
                a = way * (sign[i] * h[k, p] - log.tau[k] * slope[i])
                c = way * (sign[i] * h[k + 1, p] - log.tau[k + 1] * slope[i])
                if max(abs(a), abs(c)) <= 2.0 * error:
                    wrong = error - min(a, c)
                    if wrong > 0.0:
                        part[2] += upper[i] * wrong
                        part[3] = max(part[3], wrong)
                else:
                    _cut(part, a - error, c - error)
            if part[0] > part[1]:
                break
    return found
