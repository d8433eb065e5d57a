"""Where between two events the optimality conditions hold for certain."""

# mypy: disable-error-code="no-untyped-def"

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tamis.compiled.margin_set import FREE, LOW, apply_inverse, dot

# Variables of an interval whose error is worked out; each costs a product with the inverse. An
# event has one or two of them, copies of members come in dozens and are fine with a coarse bound.
CLOSE_LOOKS = 20


class MarginInverse(NamedTuple):
    """The inverse of the matrix of the margin set as it was on every interval."""

    base: NDArray[np.float64]
    terms: NDArray[np.float64]
    scale: NDArray[np.float64]
    n_terms: NDArray[np.int64]  # of every interval


class StepErrors(NamedTuple):
    """What is known of the optimum on the margin set, for every interval."""

    first: NDArray[np.float64]  # Newton's step at the begin, intervals x (intercept, slots)
    last: NDArray[np.float64]  # and at the end
    rounding: NDArray[np.float64]  # of the residuals on the margin set, intervals x slots
    dx: NDArray[np.float64]  # bounds on the step, rounding included: intervals x slots
    weights: NDArray[np.float64]  # by their norm
    intercept: NDArray[np.float64]
    likely: float  # standard deviations of rounding that are counted


class ResidualErrors(NamedTuple):
    """How far a residual itself may be wrong: ``all + mass noise + drift``."""

    all: NDArray[np.float64]  # of every interval
    mass: NDArray[np.float64]
    noise: NDArray[np.float64]  # of every point
    drift: NDArray[np.float64]


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
def _step_of(programme, inverse, errors, log, moving, i, k):
    """How far the step to the optimum can move the residual of a variable off the margin set."""
    K, sign, point = programme
    size = moving.shape[0] + 1
    row = K[point[i]]
    u = np.zeros(size)
    u[0] = sign[i]
    for slot in range(size - 1):
        if log.side[k, slot] == FREE:
            j = moving[slot]
            u[slot + 1] = sign[i] * sign[j] * row[point[j]]
    systematic = max(abs(dot(u, errors.first[k])), abs(dot(u, errors.last[k])))
    v = np.empty(size)
    apply_inverse(inverse, inverse.n_terms[k], u, size, v)
    squares = 0.0
    for slot in range(size - 1):
        squares += (v[slot + 1] * errors.rounding[k, slot]) ** 2
    return 1.01 * systematic + errors.likely * np.sqrt(squares)


@njit(cache=True)
def proved_parts(
    programme, upper, slope, norm, side, moving, slot_of, h, log, inverse, errors, own, found, begin
):
    """The part of intervals between rows on which their margin set is that of the optimum.

    The optimum on a margin set is affine in tau and no further from the log than ``errors``; it is
    *the* optimum wherever its members are within their bounds and the residuals of all others,
    known as well as ``own`` says, have the right sign. A residual that is all the time no larger
    than its error (of a copy of a member, say) does not cut the part: what its sign can matter is
    added to a duality gap.

    Writes for each interval from ``begin`` on, as many as there is room for in ``found``: begin and
    end as shares of it (begin > end where nothing is proved), the gap, and the largest residual
    behind it.
    """
    _, sign, point = programme
    for row in range(found.shape[0]):
        k = begin + row
        part = found[row]
        part[:] = 0.0
        part[1] = 1.0
        looks = 0
        if not log.tau[k + 1] < log.tau[k]:
            part[0], part[1] = 1.0, 0.0
            continue
        for i in range(side.shape[0]):
            slot, p = slot_of[i], point[i]
            here = log.side[k, slot] if slot >= 0 else side[i]
            if here == FREE:
                a, c, e = log.x[k, slot], log.x[k + 1, slot], errors.dx[k, slot]
                _cut(part, a - e, c - e)
                _cut(part, upper[i] - a - e, upper[i] - c - e)
            else:
                way = 1.0 if here == LOW else -1.0
                a = way * (sign[i] * h[k, p] - log.tau[k] * slope[i])
                c = way * (sign[i] * h[k + 1, p] - log.tau[k + 1] * slope[i])
                error = own.all[k] + own.mass[k] * own.noise[p] + own.drift[p]
                coarse = errors.weights[k] * norm[p] + errors.intercept[k]
                if min(a, c) < error + coarse and looks < CLOSE_LOOKS and coarse > 0.0:
                    looks += 1
                    step = _step_of(programme, inverse, errors, log, moving, i, k)
                    coarse = min(coarse, step)
                error += coarse
                if max(abs(a), abs(c)) <= 2.0 * error:
                    wrong = error - min(a, c)
                    if wrong > 0.0:
                        part[2] += upper[i] * wrong
                        part[3] = max(part[3], wrong)
                else:
                    _cut(part, a - error, c - error)
            if part[0] > part[1]:
                break
