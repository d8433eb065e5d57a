"""Proofs: bounds on the distance of the recorded solution from the optimum.

For a given margin set E, the optimum is one Newton step away from any point. The step [db; dx] is
the solution of ``A_E [db; dx] = -[e; r]``, where r are the residuals on E and e is the violation of
the constraint. The weights change by dw with ``||dw||^2 = e db - r'dx``. The end of the step is
affine in lambda. It is the optimum of the whole programme under two conditions: dx keeps the
members of E within their bounds, and dw and db do not change the sign of any other residual
(:func:`tamis.compiled.proofs.proved_parts`).

The effect of rounding errors in the residuals is bounded with B, the inverse of A_E. If r are the
rounding errors, the square of the change of w is ``r'Br``. Its mean is ``sum rounding^2 diag(B)``
if the signs of the errors are random. The change of x satisfies ``|dx_i| <= sqrt(B_ii) ||dw||``,
and db is the first row of B times r.
"""

from typing import NamedTuple

import numpy as np

from tamis._arrays import Array
from tamis.compiled.events import EpochLog
from tamis.compiled.margin_set import FREE, LOW, EpochState
from tamis.compiled.proofs import (
    CLOSE_LOOKS,
    MarginInverse,
    ResidualErrors,
    StepErrors,
    noise_effects,
    proved_parts,
)
from tamis.compiled.thresholds import in_calls
from tamis.svm.kernels import EPS
from tamis.svm.path.programme import Proof
from tamis.svm.path.state import Indices, SolverState

# Steps are multiplied by this factor, because the inverse is exact only to a thousandth.
INEXACT = 1.01
# The effect of rounding errors, whose signs are random, is bounded by this number of standard
# deviations.
LIKELY = 4.0
# A constraint counts as satisfied if its violation is below this share of the bounds. The reason is
# that the sums of balanced class weights are equal only up to rounding.
BALANCED = 1e-12


class Walked(NamedTuple):
    """The log of one epoch of the path, with the outputs at each row and the final state."""

    log: EpochLog
    moving: Indices  # the variable of each slot of the log
    h: Array  # outputs, (rows of the log, points)
    moved: EpochState | None  # state after the epoch, None if the margin set is empty


def prove(state: SolverState, walked: Walked) -> Proof:
    """Return the proof for the intervals of a log, which is empty unless proofs are requested."""
    if not state.programme.bracketed:
        n_intervals = len(walked.log.tau) - 1
        return Proof.none(n_intervals)._replace(loose=np.zeros(n_intervals))
    return _LogProof(state, walked).find()


class _LogProof:
    """Computation of the proof for a log that begins at ``state``."""

    def __init__(self, state: SolverState, walked: Walked):
        self.state, self.programme = state, state.programme
        self.log, self.moving, self.h, self.moved = walked
        self.drop = self.log.tau[:-1] - self.log.tau[1:]  # length of each interval
        self.points, sign = self.programme.point[self.moving], self.programme.sign[self.moving]
        self.change = self.log.x - self.log.x[0]
        self.excess = state.excess + self.change @ sign  # violation of the constraint
        self.mass = state.x.sum() + self.change.sum(axis=1)  # sum of x
        cost = self.programme.cost[self.moving]
        self.r = sign * self.h[:, self.points] - self.log.tau[:, None] * cost

    def find(self) -> Proof:
        """Return the proof for all intervals."""
        programme, loose = self.programme, self._loose()
        if self.moved is None and abs(self.state.excess) > BALANCED * self.mass.max():
            return Proof.none(len(self.drop))._replace(loose=loose)
        own, inverse = self._rounding(), self._inverse()
        errors = self._errors(own, inverse)
        begin, end, gap, wrong = self._parts(own, inverse, errors)
        # a duality gap bounds the distance of the weights and of the intercept from the optimum
        more = np.sqrt(2 * gap)
        error_w = errors.weights + more
        error_b = errors.intercept + more * programme.norms.max() + wrong
        costs = programme.cost @ self.state.x + self.change @ programme.cost[self.moving]
        doubt = self._doubt(errors, costs)
        # on a short interval, the change of the optimum is a better bound than the duality gap
        short = more > np.sqrt(self.drop * (np.abs(np.diff(costs)) + doubt))
        short &= more > self.drop * programme.scale
        unsure = short & (gap > 0) | (self.log.n_terms[:-1] < 0) | ~np.isfinite(error_w)
        begin[~(begin < end) | unsure] = np.nan
        first, last = (costs[:-1] + share * np.diff(costs) for share in (begin, end))
        return Proof(begin, end, error_w, error_b, first, last, doubt, loose)

    def _loose(self) -> Array:
        """Return the possible change of the intercept in each interval, due to rounding of bounds.

        With balanced class weights, the upper bounds of both classes have the same sum up to
        rounding. Then all variables may be on their bounds, or one of them is off its bound by a
        rounding error. In the second case, the intercept is at an end of the allowed interval.
        LIBSVM adds the bounds in a different order, and may use the other end.
        """
        programme, log = self.programme, self.log
        found, upper = np.zeros(len(self.drop)), programme.upper[self.moving]
        if programme.even:
            return found
        room = np.minimum(log.x, upper - log.x).max(axis=1, initial=0.0)
        bound = (room <= BALANCED * self.mass) & (self.mass > 0)
        for k in np.flatnonzero(bound[1:] & bound[:-1]):
            ends = slice(k, k + 2)
            r = programme.sign * self.h[ends, programme.point]
            r = np.abs(r - log.tau[ends, None] * programme.cost).max(axis=0)
            low = self.state.side == LOW
            low[self.moving] = log.x[k] < upper / 2
            below = (programme.sign > 0) == low
            found[k] = max(r[below].min(initial=np.inf), r[~below].min(initial=np.inf))
        return found

    def _rounding(self) -> ResidualErrors:
        """Bound the errors of the residuals due to the kernel, to sums and to drift."""
        programme, log, state = self.programme, self.log, self.state
        noise = programme.doubt + 2 * EPS * programme.norms**2  # errors of entries and their sums
        own = noise[programme.point]
        blurred = own @ state.x + self.change @ own[self.moving]
        rho = blurred + 4 * EPS * (np.abs(log.b) + log.tau * programme.scale)
        rho += log.tau * programme.tilt
        return ResidualErrors(_largest(rho), _largest(self.mass), noise, state.drift)

    def _inverse(self) -> MarginInverse:
        n_terms = np.maximum(self.log.n_terms[:-1], 0)
        if self.moved is None:
            none = np.zeros((0, 1))
            return MarginInverse(np.zeros((1, 1)), none, none[:, 0], np.zeros_like(n_terms))
        return MarginInverse(self.moved.base, self.moved.terms, self.moved.scale, n_terms)

    def _errors(self, own: ResidualErrors, inverse: MarginInverse) -> StepErrors:
        """Return Newton steps from both ends of each interval, with bounds on their rounding."""
        free = self.log.side[:-1] == FREE
        rounding = own.all[:, None] + np.multiply.outer(own.mass, own.noise[self.points])
        rounding = (rounding + own.drift[self.points]) * free
        dx, error_w, error_b = noise_effects(inverse, rounding, LIKELY)
        # the residuals at the start of each interval, followed by those at the end
        n = len(free)
        rhs = np.empty((2 * n, free.shape[1] + 1))
        rhs[:n, 0], rhs[n:, 0] = self.excess[:-1], self.excess[1:]
        np.multiply(self.r[:-1], free, out=rhs[:n, 1:])
        np.multiply(self.r[1:], free, out=rhs[n:, 1:])
        step = _solve(inverse, rhs)
        forms = np.abs(np.einsum("ij,ij->i", rhs, step))
        sizes = np.maximum(np.abs(step[:n]), np.abs(step[n:])) * INEXACT
        error_w += INEXACT * np.sqrt(np.maximum(forms[:n], forms[n:]))
        bounds = dx + sizes[:, 1:], error_w, error_b + sizes[:, 0]
        return StepErrors(step[:n], step[n:], rounding, *bounds, LIKELY)

    def _parts(self, own: ResidualErrors, inverse: MarginInverse, errors: StepErrors) -> Array:
        programme, state = self.programme, self.state
        slot_of = np.full(len(state.x), -1)
        slot_of[self.moving] = np.arange(len(self.moving))
        kernel = programme.K, programme.sign, programme.point
        fixed = kernel, programme.upper, programme.cost, programme.norms, state.side
        found = np.empty((len(self.drop), 4))
        terms = CLOSE_LOOKS * float(len(self.moving)) ** 2 + len(state.x)
        walked = self.moving, slot_of, self.h, self.log
        for part in in_calls(len(found), terms):
            proved_parts(*fixed, *walked, inverse, errors, own, found[part], part.start)
        return found.T.copy()

    def _doubt(self, errors: StepErrors, costs: Array) -> Array:
        """Bound the error of cost'x on each interval.

        A residual r changes cost'x by cost'A^-1 r, and cost'A^-1 is the direction of the path.
        """
        speed = np.abs(np.diff(self.log.x, axis=0)) * (errors.rounding > 0)
        found = np.einsum("ij,ij->i", _largest(np.abs(self.r)) + errors.rounding, speed)
        found += _largest(np.abs(self.excess)) * np.abs(np.diff(self.log.b))
        rounding = EPS * len(self.state.x) * np.abs(costs).max()
        return np.asarray(found / np.maximum(self.drop, 1e-300) + rounding)


def _largest(rows: Array) -> Array:
    """Return the larger of the values at both ends of each interval."""
    return np.maximum(rows[1:], rows[:-1])


def _solve(inverse: MarginInverse, rhs: Array) -> Array:
    """Multiply each row of ``rhs`` by the inverse of the margin set of its interval.

    There are two rows for each interval k. The inverse is the base plus the first ``n_terms[k]``
    rank-one terms.
    """
    m, n_terms = min(len(inverse.base), rhs.shape[1]), np.tile(inverse.n_terms, 2)
    step = np.zeros_like(rhs)
    step[:, :m] = rhs[:, :m] @ inverse.base[:m, :m]
    terms = inverse.terms[: int(n_terms.max(initial=0)), : rhs.shape[1]]
    weight = (rhs @ terms.T) * inverse.scale[: len(terms)]
    weight[np.arange(len(terms)) >= n_terms[:, None]] = 0.0
    return step + weight @ terms
