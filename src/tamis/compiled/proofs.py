"""Proof of optimality on parts of the SVM path.

An interval is the piece of the path between two rows of the log.
"""

# mypy: disable-error-code="no-untyped-def"

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.compiled import njit
from tamis.compiled.margin_set import FREE, LOW, apply_inverse, dot

# Maximum number of variables per interval that get a sharp error bound. A sharp bound costs a
# product with the inverse. The event that ends an interval needs one or two sharp bounds. For
# duplicates of members of the margin set, a coarse bound suffices.
CLOSE_LOOKS = 20


class MarginInverse(NamedTuple):
    """Inverse of the margin set's matrix on each interval: a base plus rank-one terms."""

    base: NDArray[np.float64]
    terms: NDArray[np.float64]
    scale: NDArray[np.float64]
    n_terms: NDArray[np.int64]  # number of terms that apply on each interval


class StepErrors(NamedTuple):
    """Bounds on the distance between the logged solution and the optimum, for each interval."""

    first: NDArray[np.float64]  # Newton step at the start, of shape (intervals, 1 + slots)
    last: NDArray[np.float64]  # Newton step at the end; entry 0 of both belongs to the intercept
    rounding: NDArray[np.float64]  # rounding errors of the residuals, of shape (intervals, slots)
    dx: NDArray[np.float64]  # bounds on the step of x, including rounding; (intervals, slots)
    weights: NDArray[np.float64]  # bound on the norm of the change of the weights
    intercept: NDArray[np.float64]  # bound on the change of the intercept
    likely: float  # rounding errors are assumed to lie within this many standard deviations


class ResidualErrors(NamedTuple):
    """Parts of the error bound of a residual, which is ``all + mass * noise + drift``."""

    all: NDArray[np.float64]  # ``all`` and ``mass`` have one value for each interval
    mass: NDArray[np.float64]
    noise: NDArray[np.float64]  # ``noise`` and ``drift`` have one value for each point
    drift: NDArray[np.float64]


@njit(cache=True)
def _cut(part, first, last):
    """Restrict a part of [0, 1] to the numbers at which a linear function is not negative.

    The function has the value ``first`` at 0 and ``last`` at 1.
    """
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
    """Return a bound on the change of a residual when the solution moves to the optimum.

    The residual belongs to variable ``i``, which is outside the margin set, on interval ``k``.
    """
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
    """Find the part of each interval on which its margin set is proved to be optimal.

    The exact solution for a margin set is affine in tau. ``errors`` bounds its distance from the
    logged solution. The exact solution is optimal if all members are within their bounds, and if
    the residuals of all other variables, with the error bounds ``own``, have the right sign. A
    residual below its error bound does not restrict the part. This happens for duplicates of
    members, for example. The possible effect of the residual is added to the duality-gap bound.

    Writes one row of ``found`` for each interval from ``begin`` on, with four entries:

    * the beginning of the part, as a fraction of the interval;
    * the end of the part (below the beginning if nothing is proved);
    * the bound on the duality gap;
    * the largest residual that may have the wrong sign.
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
