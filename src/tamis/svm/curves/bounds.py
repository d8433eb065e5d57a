"""How far the outputs of a path at new points can be from those of the optimum.

Between two events the margin set is proved to be that of the optimum, up to a little at both ends,
and the optimum to be within ``||dw||`` and ``|db|`` of the path (:mod:`tamis.svm.path.proofs`). For
any point, with ``rho`` its distance in the feature space from the mean of the training points, that
makes ``|h - h*| <= ||dw|| rho + |db|``. Between two proved parts, from lambda_a down to lambda_b,
the optimum cannot go far: of any two, ``||w1 - w2||^2 <= (lambda_1 - lambda_2) c'(x1 - x2)``,
so ``c'x`` only falls, and what it falls by from a to b bounds the way of w; the intercept is a
weighted median of the samples' lines, and moves no more than they do. Where much is unproved, this
bound is wide.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis.svm.inputs import FARTHEST_DOUBT, FARTHEST_OUTPUT, within
from tamis.svm.kernels import EPS, Gram
from tamis.svm.path.follow import PathOutputs, SolutionPath
from tamis.svm.path.programme import Proof


class ErrorBounds(NamedTuple):
    """Outputs along a whole path, rows x points, with bounds on their errors.

    The bound of a known part of the path holds between its two rows, that of a zone between known
    parts on the whole of it.
    """

    lam: Array
    h: Array
    band: Array  # what counts as 0
    known: NDArray[np.intp]  # rows above the intervals with a known part
    begin: Array  # of the known parts, as shares of their intervals
    end: Array
    bound: Array  # known parts x points
    zone: Array  # zones x points: above the first known part, between, below the last

    @property
    def zone_of(self) -> NDArray[np.intp]:
        """The zone of every row."""
        return np.searchsorted(self.known, np.arange(len(self.lam)))

    def unsure(self) -> Mask:
        """The zones in which the sign of some value is not certain."""
        rows = (np.abs(self.h) <= self.zone[self.zone_of]).any(axis=1)
        found = np.zeros(len(self.zone), bool)
        found[self.zone_of[rows]] = True
        return found

    def bracketed(self, wide: Mask) -> "Bracketed":
        """Rows with the edges of these zones among them, and what holds between the rows.

        Where a zone is left out, its rows speak for the known parts beside it.
        """
        bound = np.vstack([self.bound, np.zeros((1, self.bound.shape[1]))])
        beside = np.maximum(bound, np.roll(bound, 1, axis=0))  # of zones, by the parts around
        above, below = np.flatnonzero(wide[1:]), np.flatnonzero(wide[:-1])
        ends, begins = self.known[above], self.known[below]
        rows = np.arange(len(self.lam))
        # an edge is two rows, of the known part and of the zone, in the order of the path
        parts = [ends, ends, rows, begins, begins]
        end, begin = self.end[above], self.begin[below]
        index = np.concatenate(parts)
        share = np.concatenate([end, end, np.zeros(len(rows)), begin, begin])
        kind = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        order = np.lexsort((kind, index + share))
        of_rows = np.where(wide[:, None], self.zone, beside)[self.zone_of]
        errors = [self.bound[above], self.zone[above + 1], of_rows]
        errors += [self.zone[below], self.bound[below]]
        error = np.concatenate(errors)[order]
        index, share = index[order], share[order]
        following = np.minimum(index + 1, len(rows) - 1)

        def between(part: Array) -> Array:
            weight = share if part.ndim == 1 else share[:, None]
            return np.asarray((1 - weight) * part[index] + weight * part[following])

        return Bracketed(between(self.lam), between(self.h), between(self.band), error)


class Bracketed(NamedTuple):
    """Outputs that are affine between rows, and bounds on their errors that are so too."""

    lam: Array
    h: Array
    band: Array
    error: Array


@np.errstate(over="ignore", invalid="ignore")  # nothing is known of points far off
def bound_errors(
    solution: SolutionPath,
    outputs: PathOutputs,
    gram: Gram,
    X: Array,
    rows: Array,
    own: Array | None = None,
) -> ErrorBounds:
    """Bound the errors of h at new points ``X``, of which ``outputs`` are the outputs.

    ``rows`` are the kernel rows of the points, ``own`` is their kernel with themselves, where it is
    precomputed.
    """
    unit = solution.programme.unit
    # nothing is proved between two segments
    proofs = [part for segment in solution.segments for part in (segment.proof, Proof.none(1))]
    proof = Proof(*(np.concatenate(column) for column in zip(*proofs[:-1], strict=True)))
    lam, h, rounding, _ = outputs
    known = np.flatnonzero(~np.isnan(proof.begin)) if gram.definite else np.empty(0, np.intp)
    begin, end = proof.begin[known], proof.end[known]
    norms = gram.norms(X, rows, own) / np.sqrt(unit)
    error = np.multiply.outer(proof.error_w[known], norms) + proof.error_b[known, None]
    zone = _zones(solution, proof, known, norms)
    moved = np.abs(np.diff(h, axis=0)) / unit
    zone[1:] += (1 - end)[:, None] * moved[known]
    zone[:-1] += begin[:, None] * moved[known]
    edges = np.concatenate([[-1], known, [len(moved)]])
    for between in np.flatnonzero(np.diff(edges) > 1):
        zone[between] += moved[edges[between] + 1 : edges[between + 1]].sum(axis=0)
    none = np.zeros((1, len(norms)))
    zone += np.maximum(np.vstack([none, error]), np.vstack([error, none]))
    computed = _rounding(solution, gram, X, rows)
    computed += np.where(rounding < FARTHEST_OUTPUT, 0.1 * rounding, FARTHEST_DOUBT)
    error = error * unit + np.maximum(computed[known], computed[known + 1])
    zone *= unit
    loose = np.nan_to_num(proof.loose, nan=0.0) * unit
    error += loose[known, None]
    zone += _loosest(loose, known)[:, None]
    np.add.at(zone, np.searchsorted(known, np.arange(len(lam))), computed)
    error, zone = (within(part, FARTHEST_DOUBT) for part in (error, zone))
    return ErrorBounds(lam, h, outputs.band, known, begin, end, error, zone)


def _loosest(loose: Array, known: NDArray[np.intp]) -> Array:
    """The most that the intercept can move in each zone, with the known parts beside it."""
    found = np.zeros(len(known) + 1)
    zone = np.searchsorted(known, np.arange(len(loose)))
    np.maximum.at(found, zone, loose)
    np.maximum.at(found, zone[known] + 1, loose[known])
    return found


def _rounding(solution: SolutionPath, gram: Gram, X: Array, rows: Array) -> Array:
    """What the rounding of the kernel does to outputs, rows x points."""
    noise = solution.programme.doubt[solution.programme.point]
    total = np.concatenate([s.total(noise) for s in solution.segments])
    mass = np.concatenate([s.mass for s in solution.segments])
    return solution.programme.unit * total[:, None] + np.multiply.outer(
        mass, gram.rounding(X, rows)
    )


def _zones(solution: SolutionPath, proof: Proof, known: NDArray[np.intp], norms: Array) -> Array:
    """How far the optimum can move between known parts, above the first and below the last."""
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
    error_b = error_w * float(programme.norms.max(initial=0.0)) + way * programme.scale
    return np.asarray(np.multiply.outer(error_w, norms) + error_b[:, None])


def _ends(solution: SolutionPath) -> tuple[float, float]:
    """The most that cost'x of the optimum can be at the first row, the least at the last.

    A duality gap G bounds it: ``lambda |c'x - c'x*| <= ||w|| sqrt(2 G) + 2 G``.
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
