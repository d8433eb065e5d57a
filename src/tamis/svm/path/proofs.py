"""How far the recorded solution can be from the optimum, on the parts of it that can be proved.

On a margin set E the optimum is one Newton step away from any point: ``A_E [db; dx] = -[e; r]``,
with r the residuals on E and e by how much the constraint is missed; ``||dw||^2 = e db - r'dx``. It
is affine in lambda, and the optimum of the programme wherever dx keeps the members of E within
their bounds and dw and db leave the residuals of all others their signs
(:func:`tamis.compiled.proofs.proved_parts`). What rounding can have done to the residuals goes
through the same inverse B: the square of the change of w is ``r'Br``, for rounding of random signs
on average ``sum rounding^2 diag(B)``; ``|dx_i| <= sqrt(B_ii) ||dw||``, and db is B's first row
times r.
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
    proved_parts,
)
from tamis.compiled.thresholds import in_calls
from tamis.svm.kernels import EPS
from tamis.svm.path.programme import Proof
from tamis.svm.path.state import Indices, SolverState

# The step is taken by an inverse that is good to a thousandth.
INEXACT = 1.01
# Standard deviations of what rounding does, whose signs have nothing to do with the problem.
LIKELY = 4.0
# A constraint that is missed by this share of the bounds is kept: weights of classes that were made
# to balance do so to rounding.
BALANCED = 1e-12


class Walked(NamedTuple):
    """The log of an epoch, and what was computed from it."""

    log: EpochLog
    moving: Indices  # variables of its slots
    h: Array  # outputs at all points, for every row
    moved: EpochState | None  # None where the margin set is empty


def prove(state: SolverState, walked: Walked) -> Proof:
    """What is proved between the rows of a log; nothing where it was not asked for."""
    if not state.programme.bracketed:
        n_intervals = len(walked.log.tau) - 1
        return Proof.none(n_intervals)._replace(loose=np.zeros(n_intervals))
    return _LogProof(state, walked).find()


class _LogProof:
    """What can be proved of one log that begins where a state is."""

    def __init__(self, state: SolverState, walked: Walked):
        self.state, self.programme = state, state.programme
        self.log, self.moving, self.h, self.moved = walked
        self.drop = self.log.tau[:-1] - self.log.tau[1:]  # length of every interval
        self.points, sign = self.programme.point[self.moving], self.programme.sign[self.moving]
        self.change = self.log.x - self.log.x[0]
        self.excess = state.excess + self.change @ sign  # by how much the constraint is missed
        self.mass = state.x.sum() + self.change.sum(axis=1)  # sum of x
        cost = self.programme.cost[self.moving]
        self.r = sign * self.h[:, self.points] - self.log.tau[:, None] * cost

    def find(self) -> Proof:
        """What is proved on every interval."""
        programme, loose = self.programme, self._loose()
        if self.moved is None and abs(self.state.excess) > BALANCED * self.mass.max():
            return Proof.none(len(self.drop))._replace(loose=loose)
        own, inverse = self._rounding(), self._inverse()
        errors = self._errors(own, inverse)
        begin, end, gap, wrong = self._parts(own, inverse, errors)
        # a gap bounds the way to the optimum, and the intercept follows what bounds it
        more = np.sqrt(2 * gap)
        error_w = errors.weights + more
        error_b = errors.intercept + more * programme.norms.max() + wrong
        costs = programme.cost @ self.state.x + self.change @ programme.cost[self.moving]
        doubt = self._doubt(errors, costs)
        # on a short interval the optimum can move less than such a gap would let it
        short = more > np.sqrt(self.drop * (np.abs(np.diff(costs)) + doubt))
        short &= more > self.drop * programme.scale
        unsure = short & (gap > 0) | (self.log.n_terms[:-1] < 0) | ~np.isfinite(error_w)
        begin[~(begin < end) | unsure] = np.nan
        first, last = (costs[:-1] + share * np.diff(costs) for share in (begin, end))
        return Proof(begin, end, error_w, error_b, first, last, doubt, loose)

    def _loose(self) -> Array:
        """How far the intercept can move where rounding of the bounds alone fixes it.

        Bounds of both classes may have equal sums but for rounding, as with balanced class weights.
        Then all variables are on their bounds, or one of them is off by a rounding and fixes the
        intercept at either end of what is allowed. LIBSVM rounds other sums, and may take another
        end.
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
        """What the kernel, sums and drift can have done to residuals."""
        programme, log, state = self.programme, self.log, self.state
        noise = programme.doubt + 2 * EPS * programme.norms**2  # of the entries, and of their sums
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
        """Newton steps from both ends of every interval, and what rounding adds to them."""
        free = self.log.side[:-1] == FREE
        rounding = own.all[:, None] + np.multiply.outer(own.mass, own.noise[self.points])
        rounding = (rounding + own.drift[self.points]) * free
        dx, error_w, error_b = _noise(inverse, rounding)
        steps, forms = [], []
        for end in (slice(None, -1), slice(1, None)):
            r, excess = self.r[end] * free, self.excess[end]
            step = _solve(inverse, np.column_stack([excess, r]))
            step[:, 1:] *= free
            steps.append(step)
            forms.append(np.abs(np.einsum("ij,ij->i", r, step[:, 1:]) + excess * step[:, 0]))
        sizes = np.abs(np.array(steps)).max(axis=0) * INEXACT
        error_w += INEXACT * np.sqrt(np.maximum(*forms))
        bounds = dx + sizes[:, 1:], error_w, error_b + sizes[:, 0]
        return StepErrors(steps[0], steps[1], rounding, *bounds, LIKELY)

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
        """Error of cost'x: cost'A^-1 is the direction of the path."""
        speed = np.abs(np.diff(self.log.x, axis=0)) * (errors.rounding > 0)
        found = np.einsum("ij,ij->i", _largest(np.abs(self.r)) + errors.rounding, speed)
        found += _largest(np.abs(self.excess)) * np.abs(np.diff(self.log.b))
        rounding = EPS * len(self.state.x) * np.abs(costs).max()
        return np.asarray(found / np.maximum(self.drop, 1e-300) + rounding)


def _largest(rows: Array) -> Array:
    """Of both ends of every interval."""
    return np.maximum(rows[1:], rows[:-1])


def _noise(inverse: MarginInverse, rounding: Array) -> tuple[Array, Array, Array]:
    """What rounding of the residuals does to x, to the weights and to the intercept."""
    m, width = len(inverse.base), rounding.shape[1] + 1
    terms = inverse.terms[: int(inverse.n_terms.max(initial=0)), :width]
    scale = inverse.scale[: len(terms), None]
    diagonal, first = np.zeros((2, len(terms) + 1, max(width, m)))
    diagonal[0, :m], first[0, :m] = np.diagonal(inverse.base), inverse.base[0]
    diagonal[1:, :width], first[1:, :width] = scale * terms**2, scale * terms[:, :1] * terms
    rows = [np.cumsum(part, axis=0)[inverse.n_terms, 1:width] for part in (diagonal, first)]
    diagonal = np.maximum(rows[0], 0.0)
    error_w = LIKELY * np.sqrt(np.einsum("ij,ij->i", rounding**2, diagonal))
    error_b = LIKELY * np.sqrt(np.einsum("ij,ij->i", rounding**2, rows[1] ** 2))
    return np.sqrt(diagonal) * error_w[:, None] * (rounding > 0), error_w, error_b


def _solve(inverse: MarginInverse, rhs: Array) -> Array:
    """Each row times the inverse as it was then: the base and the first of the terms."""
    m, n_terms = min(len(inverse.base), rhs.shape[1]), inverse.n_terms
    step = np.zeros_like(rhs)
    step[:, :m] = rhs[:, :m] @ inverse.base[:m, :m]
    terms = inverse.terms[: int(n_terms.max(initial=0)), : rhs.shape[1]]
    weight = (rhs @ terms.T) * inverse.scale[: len(terms)]
    weight[np.arange(len(terms)) >= n_terms[:, None]] = 0.0
    return step + weight @ terms
