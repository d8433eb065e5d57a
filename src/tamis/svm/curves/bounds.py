"""Bounds on the errors of the outputs of a path at new points.

The path is computed with rounding errors, so it differs from the optimum. On most of the interval
between two events, the path is proved to have the same margin set as the optimum
(:mod:`tamis.svm.path.proofs`). On such a proved part, the weights of the path and of the optimum
differ by at most ``||dw||``, and the intercepts by at most ``|db|``. At a new point, let ``h`` be
the output of the path, ``h*`` the output of the optimum, and ``rho`` the distance of the point from
the mean of the training points in feature space. Then ``|h - h*| <= ||dw|| rho + |db|``.

Between two proved parts, from lambda_a down to lambda_b, the optimum cannot change much. Let c be
the cost and x the variables of the programme. The optima at two values of lambda satisfy
``||w1 - w2||^2 <= (lambda_1 - lambda_2) c'(x1 - x2)``. So ``c'x`` only decreases, and the decrease
of ``c'x`` from lambda_a to lambda_b bounds the change of w. The intercept is a weighted median of
lines, one per sample, so it changes at most as much as these lines. The bound is wide if large
parts of the path are not proved.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis.compiled.proofs import bound_outputs
from tamis.svm.inputs import FARTHEST_DOUBT, FARTHEST_OUTPUT, within
from tamis.svm.kernels import EPS, Gram
from tamis.svm.path.follow import PathOutputs, SolutionPath
from tamis.svm.path.programme import Proof


class ErrorBounds(NamedTuple):
    """Outputs of new points along a whole path, of shape (rows, points), with error bounds.

    Each row belongs to a lambda. An interval between two rows may have a known part, on which the
    margin set is proved. A zone is a stretch of the path without a known part: between two known
    parts, before the first or after the last. Each known part and each zone has its own error
    bounds.
    """

    lam: Array
    h: Array
    band: Array  # outputs up to this size are treated as 0
    known: NDArray[np.intp]  # for each known part, the row at which its interval begins
    begin: Array  # where each known part begins, as a share of its interval
    end: Array  # where each known part ends, as a share of its interval
    bound: Array  # error bounds on the known parts, (known parts, points)
    zone: Array  # error bounds in the zones, (known parts + 1, points)

    @property
    def zone_of(self) -> NDArray[np.intp]:
        """Index of the zone that contains each row."""
        return np.searchsorted(self.known, np.arange(len(self.lam)))

    def unsure(self) -> Mask:
        """Return a mask of the zones in which the sign of at least one output is not certain."""
        rows = (np.abs(self.h) <= self.zone[self.zone_of]).any(axis=1)
        found = np.zeros(len(self.zone), bool)
        found[self.zone_of[rows]] = True
        return found

    def bracketed(self, wide: Mask) -> "Bracketed":
        """Return the outputs with extra rows at the edges of the zones in the mask ``wide``.

        The error bounds are affine between the rows. In zones that are not in the mask, the rows
        have the bounds of the neighbouring known parts.
        """
        bound = np.vstack([self.bound, np.zeros((1, self.bound.shape[1]))])
        adjacent = np.maximum(bound, np.roll(bound, 1, axis=0))  # bounds of neighbouring parts
        above, below = np.flatnonzero(wide[1:]), np.flatnonzero(wide[:-1])
        ends, begins = self.known[above], self.known[below]
        rows = np.arange(len(self.lam))
        # an edge has two rows: one for the known part and one for the zone, in path order
        parts = [ends, ends, rows, begins, begins]
        end, begin = self.end[above], self.begin[below]
        index = np.concatenate(parts)
        share = np.concatenate([end, end, np.zeros(len(rows)), begin, begin])
        kind = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        order = np.lexsort((kind, index + share))
        of_rows = np.where(wide[:, None], self.zone, adjacent)[self.zone_of]
        errors = [self.bound[above], self.zone[above + 1], of_rows]
        errors += [self.zone[below], self.bound[below]]
        error = np.concatenate(errors)[order]
        index, share = index[order], share[order]
        inside = np.flatnonzero(share)
        weight, following = share[inside], np.minimum(index[inside] + 1, len(rows) - 1)

        def between(part: Array) -> Array:
            found, w = part[index], weight if part.ndim == 1 else weight[:, None]
            found[inside] = (1 - w) * found[inside] + w * part[following]
            return found

        return Bracketed(between(self.lam), between(self.h), between(self.band), error)


class Bracketed(NamedTuple):
    """Outputs along a path and bounds on their errors, both affine between rows."""

    lam: Array  # decreasing
    h: Array  # outputs, (rows, points)
    band: Array  # outputs up to this size are treated as 0
    error: Array  # bounds on the errors of the outputs


@np.errstate(over="ignore", invalid="ignore")  # the bound of distant points may be infinite
def bound_errors(
    solution: SolutionPath,
    outputs: PathOutputs,
    gram: Gram,
    X: Array,
    rows: Array,
    own: Array | None = None,
) -> ErrorBounds:
    """Bound the errors of the ``outputs`` of new points ``X``.

    ``rows`` are the kernel rows of the points. ``own`` is the kernel value of each point with
    itself, which a precomputed kernel needs.
    """
    unit = solution.programme.unit
    # nothing is proved between two segments
    proofs = [part for segment in solution.segments for part in (segment.proof, Proof.none(1))]
    proof = Proof(*(np.concatenate(column) for column in zip(*proofs[:-1], strict=True)))
    lam, h, rounding, _ = outputs
    known = np.flatnonzero(~np.isnan(proof.begin)) if gram.definite else np.empty(0, np.intp)
    begin, end = proof.begin[known], proof.end[known]
    norms = gram.norms(X, rows, own) / np.sqrt(unit)
    loose = np.nan_to_num(proof.loose, nan=0.0) * unit
    noise = solution.programme.doubt[solution.programme.point]
    total = unit * np.concatenate([s.total(noise) for s in solution.segments])
    mass = np.concatenate([s.mass for s in solution.segments])
    computed = total, mass, gram.rounding(X, rows), rounding, FARTHEST_OUTPUT, FARTHEST_DOUBT
    parts = known, begin, end, proof.error_w[known], proof.error_b[known], loose[known]
    zones = *_zones(solution, proof, known), _loosest(loose, known)
    error, zone = bound_outputs(h, unit, norms, computed, parts, zones)
    error, zone = (within(part, FARTHEST_DOUBT) for part in (error, zone))
    return ErrorBounds(lam, h, outputs.band, known, begin, end, error, zone)


def _loosest(loose: Array, known: NDArray[np.intp]) -> Array:
    """Return the maximum of ``loose`` over the intervals of each zone and those next to it.

    ``loose`` is, for each interval, the possible change of an intercept that only rounding
    determines (see :class:`Proof`).
    """
    found = np.zeros(len(known) + 1)
    zone = np.searchsorted(known, np.arange(len(loose)))
    np.maximum.at(found, zone, loose)
    np.maximum.at(found, zone[known] + 1, loose[known])
    return found


def _zones(solution: SolutionPath, proof: Proof, known: NDArray[np.intp]) -> tuple[Array, Array]:
    """Bound the changes of the optimal weights and of the intercept in each zone."""
    programme = solution.programme
    lam = np.concatenate([s.lam for s in solution.segments])
    drop = lam[known] - lam[known + 1]
    tops = np.append(lam[0], lam[known] - proof.end[known] * drop)
    bottoms = np.append(lam[known] - proof.begin[known] * drop, lam[-1])
    most, least = _ends(solution)
    doubt = np.append(0.0, proof.doubt[known]) + np.append(proof.doubt[known], 0.0)
    fall = np.append(most, proof.last[known]) - np.append(proof.first[known], least) + doubt
    way = np.maximum(tops - bottoms, 0.0)
    error_w = np.sqrt(way * np.maximum(fall, 0.0))
    return error_w, error_w * float(programme.norms.max(initial=0.0)) + way * programme.scale


def _ends(solution: SolutionPath) -> tuple[float, float]:
    """Bound c'x at the optimum, from above at the first row and from below at the last row.

    c is the cost. The duality gap G of a point x bounds its distance from the optimum x*:
    ``lambda |c'x - c'x*| <= ||w|| sqrt(2 G) + 2 G``.
    """
    programme, found = solution.programme, []
    for end, way in ((0, 1), (-1, -1)):
        segment, check = solution.segments[end], solution.checks[end]
        lam, total = segment.lam[end], float(segment.total(programme.cost)[end])
        rounding = float((programme.doubt + 8 * EPS).max()) * float(segment.mass[end])
        gap = max(check.gap, 0.0) * lam * programme.scale + rounding * float(programme.upper.sum())
        reach = np.sqrt(max(lam * total, 0.0) * 2 * gap)
        found.append(total + way * (reach + 2 * gap) / lam)
    return found[0], found[1]
