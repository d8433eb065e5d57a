"""Proof of optimality on parts of the SVM path.

An interval is the part of the path between two rows of the log.
"""

# mypy: disable-error-code="no-untyped-def"

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.compiled import njit
from tamis.compiled.margin_set import FREE, LOW, apply_inverse, dot

# Maximum number of variables per interval for which a sharp error bound is computed. A sharp bound
# takes a product with the inverse. The event that ends an interval needs one or two sharp bounds.
# For duplicates of members of the margin set, a coarse bound suffices.
CLOSE_LOOKS = 20


class MarginInverse(NamedTuple):
    """Inverse of the matrix of the margin set on each interval: a base plus rank-one terms."""

    base: NDArray[np.float64]
    terms: NDArray[np.float64]
    scale: NDArray[np.float64]
    n_terms: NDArray[np.int64]  # number of terms that apply on each interval


class StepErrors(NamedTuple):
    """Bounds on the distance between the logged solution and the optimum, for each interval."""

    first: NDArray[np.float64]  # Newton step at the start, of shape (intervals, 1 + slots)
    last: NDArray[np.float64]  # Newton step at the end; column 0 of both is for the intercept
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

    The value of the function is ``first`` at 0 and ``last`` at 1.
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
def noise_effects(inverse, rounding, likely):
    """Bound the effect of rounding errors in the residuals on x, the weights and the intercept.

    ``rounding`` has a row for each interval and a column for each slot.
    """
    n, width = rounding.shape
    dx, error_w, error_b = np.empty((n, width)), np.empty(n), np.empty(n)
    diagonal, first = np.zeros((2, width + 1))
    added = -1
    for k in range(n):
        if added < 0 or inverse.n_terms[k] < added:
            diagonal[:], first[:], added = 0.0, 0.0, 0
            for i in range(min(width + 1, inverse.base.shape[0])):
                diagonal[i], first[i] = inverse.base[i, i], inverse.base[0, i]
        while added < inverse.n_terms[k]:
            term, scale = inverse.terms[added], inverse.scale[added]
            for i in range(width + 1):
                diagonal[i] += scale * term[i] ** 2
                first[i] += scale * term[0] * term[i]
            added += 1
        weights = intercept = 0.0
        for i in range(width):
            square = rounding[k, i] ** 2
            weights += square * max(diagonal[i + 1], 0.0)
            intercept += square * first[i + 1] ** 2
        error_w[k], error_b[k] = likely * np.sqrt(weights), likely * np.sqrt(intercept)
        for i in range(width):
            size = np.sqrt(max(diagonal[i + 1], 0.0)) * error_w[k]
            dx[k, i] = size if rounding[k, i] > 0.0 else 0.0
    return dx, error_w, error_b


@njit(cache=True)
def _term_of(log, slot, k):
    """Return the term of the inverse that the variable in a slot added at an end of interval ``k``.

    The variable is outside the margin set on the interval. It enters the set at the end of the
    interval, or it left the set at the beginning. Return -1 if neither is the case, or if there is
    no single term.
    """
    if slot >= 0 and log.side[k + 1, slot] == FREE and log.n_terms[k + 1] == log.n_terms[k] + 1:
        return log.n_terms[k]
    if slot >= 0 and k > 0 and log.side[k - 1, slot] == FREE:
        return log.n_terms[k - 1] if log.n_terms[k] == log.n_terms[k - 1] + 1 else -1
    return -1


@njit(cache=True)
def _step_of(programme, inverse, errors, log, moving, i, slot, k):
    """Return a bound on the change of a residual when the solution moves to the optimum.

    The residual belongs to variable ``i``, which is outside the margin set on interval ``k``.
    ``slot`` is the slot of the variable, or -1.
    """
    K, sign, point = programme
    size = moving.shape[0] + 1
    row = K[point[i]]
    u = np.zeros(size)
    u[0] = sign[i]
    for other in range(size - 1):
        if log.side[k, other] == FREE:
            j = moving[other]
            u[other + 1] = sign[i] * sign[j] * row[point[j]]
    systematic = max(abs(dot(u, errors.first[k])), abs(dot(u, errors.last[k])))
    v, t = np.empty(size), _term_of(log, slot, k)
    if t >= 0:  # the term is a multiple of (-v, 1), with 1 in the slot of the variable
        v[:] = inverse.terms[t, :size] / inverse.terms[t, slot + 1]
    else:
        apply_inverse(inverse, inverse.n_terms[k], u, size, v)
    squares = 0.0
    for j in range(size - 1):
        squares += (v[j + 1] * errors.rounding[k, j]) ** 2
    return 1.01 * systematic + errors.likely * np.sqrt(squares)


@njit(cache=True)
def proved_parts(
    programme, upper, slope, norm, side, moving, slot_of, h, log, inverse, errors, own, found, begin
):
    """Find the part of each interval on which its margin set is proved to be optimal.

    The exact solution for a margin set is affine in tau. ``errors`` bounds its distance from the
    logged solution. The exact solution is optimal if all members are within their bounds, and if
    the residuals of all other variables, with the error bounds ``own``, have the correct sign. A
    residual below its error bound does not restrict the part. For example, duplicates of members
    have such residuals. Their possible effect is added to the bound on the duality gap.

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
                if min(a, c) >= error + coarse:  # the usual case: the sign is certain
                    continue
                if looks < CLOSE_LOOKS and coarse > 0.0:
                    looks += 1
                    step = _step_of(programme, inverse, errors, log, moving, i, slot, k)
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


@njit(cache=True)
def _rounded(computed, row, out):
    """Add to ``out`` the bounds on the rounding errors of the outputs in a row."""
    total, mass, blur, rounding, far, unknown = computed
    for j in range(out.shape[0]):
        share = 0.1 * rounding[row, j] if rounding[row, j] < far else unknown
        out[j] += total[row] + mass[row] * blur[j] + share


@njit(cache=True)
def _largest(a, b):
    """Return the larger number, or NaN if one of them is NaN."""
    return a if a >= b or a != a else b


@njit(cache=True)
def bound_outputs(h, unit, norms, computed, parts, zones):
    """Bound the errors of outputs ``h`` on the known parts of a path and in the zones between.

    The bounds on the weights and the intercept, ``error_w`` and ``error_b``, are in units of the
    kernel. ``norms`` are the distances of the points from the mean of the training points. In a
    zone, the outputs change from one known part to the next, so the bound includes this change.
    """
    known, begin, end, error_w, error_b, loose = parts
    zone_w, zone_b, zone_loose = zones
    n_known, last_row, n_points = known.shape[0], h.shape[0] - 1, h.shape[1]
    error, zone = np.empty((n_known, n_points)), np.empty((n_known + 1, n_points))
    above, below = np.empty((2, n_points))
    for k in range(n_known):
        above[:] = 0.0
        below[:] = 0.0
        _rounded(computed, known[k], above)
        _rounded(computed, known[k] + 1, below)
        for j in range(n_points):
            own = (error_w[k] * norms[j] + error_b[k]) * unit
            error[k, j] = own + _largest(above[j], below[j]) + loose[k]
    for z in range(n_known + 1):
        first = known[z - 1] if z > 0 else -1
        last = known[z] if z < n_known else last_row
        for j in range(n_points):
            before = error_w[z - 1] * norms[j] + error_b[z - 1] if z > 0 else 0.0
            after = error_w[z] * norms[j] + error_b[z] if z < n_known else 0.0
            zone[z, j] = zone_w[z] * norms[j] + zone_b[z] + _largest(before, after)
            zone[z, j] = zone[z, j] * unit + zone_loose[z]
        for row in range(max(first, 0), min(last + 1, last_row)):
            share = 1.0
            if row == first:
                share = 1.0 - end[z - 1]
            elif row == last:
                share = begin[z]
            for j in range(n_points):
                zone[z, j] += share * abs(h[row + 1, j] - h[row, j])
        for row in range(first + 1, last + 1):
            _rounded(computed, row, zone[z])
    return error, zone
