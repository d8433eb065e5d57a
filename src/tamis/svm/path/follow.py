"""The whole path: from the largest lambda to the smallest, with checkpoints and repairs."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.svm.path.homotopy import REPAIR, repair, start, trace
from tamis.svm.path.programme import Line, QuadraticProgramme, Segment, Stuck
from tamis.svm.path.state import SolverState

SPACING = 16.0  # of the checkpoints
WANTED = 1e-8  # violation relative to lambda; above it the walk is tried again
ACCEPTED = 1e-6  # above it the path is not vouched for
# Ridges that a walk which fails is tried with, relative to the kernel: the largest moves the
# optimality conditions by less than is accepted.
RIDGES = (0.0, 1e-12, 1e-11, 1e-10, 1e-9)


@dataclass(frozen=True)
class OptimalityCheck:
    """What was found on recomputing everything at one lambda."""

    lam: float
    violation: float  # of the optimality conditions, relative to lambda, after repair
    gap: float  # duality gap of the programme scaled by lambda**2, relative to lambda


@dataclass(frozen=True)
class SolutionPath:
    """The solutions of one programme: segments of lambda, affine between their rows."""

    sign: Array
    point: NDArray[np.int64]
    upper: Array
    segments: list[Segment] = field(repr=False)
    checks: list[OptimalityCheck] = field(repr=False)
    n_repairs: int
    reached: float  # the smallest lambda that was reached
    ridge: float  # added to the diagonal of the kernel

    @property
    def violation(self) -> float:
        """Largest violation of the optimality conditions relative to lambda, at checkpoints."""
        return max((c.violation for c in self.checks), default=np.inf)

    def _row(self, lam: float) -> tuple[Segment, int]:
        """The segment that holds ``lam`` and the row at its lower end."""
        ends = np.array([s.lam[-1] for s in self.segments])
        part = self.segments[min(int(np.searchsorted(-ends, -lam)), len(ends) - 1)]
        return part, int(np.clip(np.searchsorted(-part.lam, -lam), 1, len(part.lam) - 1))

    def weights(self, lam: float) -> tuple[Array, float]:
        """``s x`` summed over the variables of each point, and the intercept, times lambda both."""
        part, row = self._row(lam)
        top, bottom = part.lam[row - 1], part.lam[row]
        t = 0.0 if top == bottom else float(np.clip((top - lam) / (top - bottom), 0.0, 1.0))
        x = part.start.copy()
        x[part.variables] = (1 - t) * part.x[row - 1] + t * part.x[row]
        x = np.clip(x, 0.0, self.upper)
        b = (1 - t) * part.b[row - 1] + t * part.b[row]
        return _per_point(self.point, self.sign * x), float(b)

    def slopes(self, lam: float) -> tuple[Array, float]:
        """Derivatives of :meth:`weights` by lambda (from below, on a breakpoint)."""
        part, row = self._row(lam)
        drop = part.lam[row] - part.lam[row - 1]
        if drop == 0:
            return np.zeros(int(self.point.max()) + 1), 0.0
        dx = np.zeros_like(part.start)
        dx[part.variables] = (part.x[row] - part.x[row - 1]) / drop
        db = (part.b[row] - part.b[row - 1]) / drop
        return _per_point(self.point, self.sign * dx), float(db)

    def outputs(self, K: Array) -> list[tuple[Array, Array]]:
        """For every segment its lambdas and h = lambda f (rows x points) for kernel rows ``K``."""
        blocks = []
        for part in self.segments:
            first = np.bincount(self.point, self.sign * part.start, K.shape[1])
            h = K @ first
            s = self.sign[part.variables]
            change = (part.x - part.x[0]) * s
            block = change @ K[:, self.point[part.variables]].T
            block += h
            block += part.b[:, None]
            blocks.append((part.lam, block))
        return blocks

    @property
    def margin_set_sizes(self) -> NDArray[np.intp]:
        """How many variables are strictly inside their bounds, after each breakpoint."""
        return np.concatenate(
            [((s.x > 0) & (s.x < self.upper[s.variables])).sum(axis=1)[1:] for s in self.segments]
        )


def breakpoints(paths: Sequence[SolutionPath]) -> Array:
    """Increasing values of C at which a path changes its course."""
    lams = [segment.lam for path in paths for segment in path.segments]
    return 1.0 / np.unique(np.concatenate(lams))[::-1]


def _per_point(point: NDArray[np.int64], weight: Array) -> Array:
    return np.bincount(point, weight).astype(np.float64)


def follow(
    programme: QuadraticProgramme,
    first: Array,
    lambda_range: tuple[float, float],
    bracketed: bool = False,
) -> SolutionPath:
    """Trace ``g = lambda cost`` over a range (smallest, largest) from a feasible ``first``.

    A walk that ends early or inexact is walked again with a ridge on the kernel, small enough to
    be within what is promised; the ridge is counted as a violation. Only a ``bracketed`` path can
    say how far its outputs may be from the truth.
    """
    K = programme.K
    kappa = float(np.abs(np.diagonal(K)).max())
    best: SolutionPath | None = None
    for ridge in RIDGES:
        size = ridge * kappa
        tried = programme if ridge == 0 else replace(programme, K=K + size * np.eye(len(K)))
        with np.errstate(over="ignore", invalid="ignore"):  # an indefinite kernel may explode
            found = _walk(SolverState(tried, bracketed), first, lambda_range, size)
        if best is None or _merit(found) < _merit(best):
            best = found
        if best.reached <= lambda_range[0] and best.violation <= WANTED:
            break
    assert best is not None
    return best


def _merit(found: SolutionPath) -> tuple[float, float]:
    return found.reached, found.violation


def _walk(
    state: SolverState, first: Array, lambda_range: tuple[float, float], ridge: float
) -> SolutionPath:
    smallest, largest = lambda_range
    programme = state.programme
    cost = programme.cost
    segments: list[Segment] = []
    checks: list[OptimalityCheck] = []
    lam = largest
    try:
        start(state, lam, first)
        while True:
            checks.append(_check(state, lam, ridge))
            if lam <= smallest:
                break
            below = max(lam / SPACING, smallest)
            below = smallest if below < smallest * SPACING**0.5 else below
            state.tau = lam
            line = Line(np.zeros_like(cost), cost, 0.0, below * programme.scale, record=segments)
            trace(state, line, below)
            lam = below
    except Stuck:
        lam = segments[-1].lam[-1] if segments else np.inf
    return SolutionPath(
        programme.sign,
        programme.point,
        programme.upper,
        segments,
        checks,
        state.n_repairs,
        float(lam),
        ridge,
    )


def _check(state: SolverState, lam: float, ridge: float) -> OptimalityCheck:
    programme = state.programme
    g, scale = lam * programme.cost, lam * programme.scale
    state.refresh()
    if state.violation(g) > REPAIR * scale:
        repair(state, lam)
    r = state.residuals(g)
    x, rest = state.x, programme.upper - state.x
    gap = float(x @ np.maximum(r, 0) + rest @ np.maximum(-r, 0)) + ridge * float(x @ x)
    violation = state.violation(g) + ridge * float(programme.upper.max())
    return OptimalityCheck(lam, violation / scale, gap / lam)
