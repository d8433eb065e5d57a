"""How far the recorded solution can be from the optimum, on the parts of it that can be proved.

On a margin set E the optimum is one Newton step away from any point: ``A_E [db; dx] = -[e; r]``,
with r the residuals on E and e by how much the constraint is missed; ``||dw||^2 = e db - r'dx``. It
is affine in lambda, and the optimum of the programme wherever dx keeps the members of E within
their bounds and dw and db leave the residuals of all others their signs
(:func:`tamis.compiled.proofs.proved_parts`). What rounding can have done to the residuals is added
to them before the step, with signs that have nothing to do with the problem.
"""

from typing import NamedTuple

import numpy as np

from tamis._arrays import Array
from tamis._random import stream
from tamis.compiled.events import EpochLog
from tamis.compiled.margin_set import FREE, EpochState
from tamis.compiled.proofs import proved_parts
from tamis.svm.kernels import EPS
from tamis.svm.path.programme import Proof
from tamis.svm.path.state import Indices, SolverState

# The step is taken by an inverse that is good to a thousandth, for one pattern of signs of the
# rounding: four times its size stands for all of them.
SAFETY = 4.0
# A constraint that is missed by this share of the bounds is kept: weights of classes that were made
# to balance do so to rounding.
BALANCED = 1e-12


def proof_of(
    state: SolverState, moving: Indices, log: EpochLog, h: Array, moved: EpochState | None
) -> Proof:
    """What is proved between the rows of a log; nothing where it was not asked for."""
    n_intervals = len(log.tau) - 1
    if not state.bracketed:
        return Proof.none(n_intervals)
    programme = state.programme
    change = log.x - log.x[0]
    excess = state.excess + change @ programme.sign[moving]
    mass = state.x.sum() + change.sum(axis=1)
    rho = _rounding(state, moving, log, mass)
    if moved is None:
        if abs(state.excess) > BALANCED * mass.max():
            return Proof.none(n_intervals)
        found = NewtonSteps(np.zeros((n_intervals, 0)), *np.zeros((3, n_intervals)))
    else:
        found = _steps(state, moving, log, h, moved, excess, rho)
    begin, end, gap, wrong = _parts(state, moving, log, h, found, rho)
    # a gap bounds the way to the optimum, and the intercept follows what bounds it
    more = np.sqrt(2 * gap)
    error_w = found.error_w + more
    error_b = found.error_b + more * programme.norms.max() + wrong
    costs = programme.cost @ state.x + change @ programme.cost[moving]
    # on a short interval the optimum can move less than such a gap would let it
    drop = log.tau[:-1] - log.tau[1:]
    short = more > np.sqrt(drop * (np.abs(np.diff(costs)) + found.doubt)) + drop * programme.scale
    unsure = short & (gap > 0) | (log.n_terms[:-1] < 0) | ~np.isfinite(error_w)
    begin[(begin > end) | unsure] = np.nan
    first, last = (costs[:-1] + share * np.diff(costs) for share in (begin, end))
    return Proof(begin, end, error_w, error_b, first, last, found.doubt)


class Roundings(NamedTuple):
    """How far a residual may be wrong: ``all + mass noise + drift``."""

    all: Array  # of every interval
    mass: Array
    noise: Array  # of every point
    drift: Array

    def at(self, points: Indices) -> Array:
        """Of variables at these points, intervals x variables."""
        return (
            self.all[:, None]
            + np.multiply.outer(self.mass, self.noise[points])
            + self.drift[points]
        )


class NewtonSteps(NamedTuple):
    """Sizes of the steps to the optimum on the margin set, for every interval."""

    dx: Array  # intervals x moving variables
    error_w: Array
    error_b: Array
    doubt: Array  # of cost'x


def _rounding(state: SolverState, moving: Indices, log: EpochLog, mass: Array) -> Roundings:
    """What the kernel, sums and drift can have done to residuals."""
    programme = state.programme
    noise = programme.noise + 2 * EPS * programme.norms**2  # of the entries, and of their sums
    own = noise[programme.point]
    blurred = own @ state.x + (log.x - log.x[0]) @ own[moving]
    rho = blurred + 4 * EPS * (np.abs(log.b) + log.tau * programme.scale)
    of_all, of_mass = (np.maximum(part[1:], part[:-1]) for part in (rho, mass))
    return Roundings(of_all, of_mass, noise, state.drift)


def _parts(
    state: SolverState,
    moving: Indices,
    log: EpochLog,
    h: Array,
    steps: NewtonSteps,
    rho: Roundings,
) -> Array:
    programme = state.programme
    slot_of = np.full(len(state.x), -1)
    slot_of[moving] = np.arange(len(moving))
    fixed = programme.sign, programme.point, programme.upper, programme.cost
    parts = proved_parts(*fixed, state.side, slot_of, h, log, programme.norms, *steps[:3], *rho)
    return parts.T.copy()


def _steps(
    state: SolverState,
    moving: Indices,
    log: EpochLog,
    h: Array,
    moved: EpochState,
    excess: Array,
    rho: Roundings,
) -> NewtonSteps:
    """Newton steps from both ends of every interval."""
    programme = state.programme
    s, cost = programme.sign[moving], programme.cost[moving]
    r = s * h[:, programme.point[moving]] - log.tau[:, None] * cost
    free = log.side[:-1] == FREE
    signs = stream(0, "rounding", len(moving)).choice([-1.0, 1.0], len(moving))
    rounding = rho.at(programme.point[moving])
    drop = np.maximum(log.tau[:-1] - log.tau[1:], 1e-300)
    speed = np.abs(np.diff(log.x, axis=0)) / drop[:, None]
    found = NewtonSteps(np.zeros(free.shape), *np.zeros((3, len(free))))
    for end in (slice(None, -1), slice(1, None)):
        rhs = np.empty((len(free), len(moving) + 1))
        rhs[:, 0] = excess[end]
        rhs[:, 1:] = (r[end] + rounding * signs) * free
        step = _solved(moved, rhs, np.maximum(log.n_terms[:-1], 0))
        step[:, 1:] *= free
        # cost'A^-1 is the direction of the path, so cost'dx is the residuals times that
        doubt = np.einsum("ij,ij->i", np.abs(r[end]) + rounding, speed * free)
        doubt += np.abs(excess[end] * np.diff(log.b)) / drop
        new = NewtonSteps(
            SAFETY * np.abs(step[:, 1:]),
            SAFETY * np.sqrt(np.abs(np.einsum("ij,ij->i", rhs, step))),
            SAFETY * np.abs(step[:, 0]),
            doubt + EPS * len(state.x) * (np.abs(cost) @ np.abs(log.x[end]).T),
        )
        found = NewtonSteps(*map(np.maximum, found, new))
    return found


def _solved(moved: EpochState, rhs: Array, n_terms: Indices) -> Array:
    """Each row times the inverse as it was then: the base and the first of the terms."""
    m = len(moved.base)
    step = np.zeros_like(rhs)
    step[:, :m] = rhs[:, :m] @ moved.base
    terms = moved.terms[: int(n_terms.max(initial=0)), : rhs.shape[1]]
    weight = (rhs @ terms.T) * moved.scale[: len(terms)]
    weight[np.arange(len(terms)) >= n_terms[:, None]] = 0.0
    return step + weight @ terms
