"""Following a path from the largest lambda to the smallest, with checkpoints and repairs."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.exceptions import InvalidParameter, PathLost
from tamis.svm.inputs import FARTHEST_OUTPUT, within
from tamis.svm.kernels import EPS
from tamis.svm.path.homotopy import REPAIR, keep_to, repair, start, trace
from tamis.svm.path.programme import Line, Proof, QuadraticProgramme, Segment, Stuck
from tamis.svm.path.state import SolverState

SPACING = 16.0  # ratio of lambda between two checkpoints
# if the violation, relative to lambda, is larger, the path is followed again with a ridge
WANTED = 1e-8
ACCEPTED = 1e-6  # if the violation, relative to lambda, is larger, the path is not certified
# Decision values f = h / lambda up to this size are treated as 0. They have about this precision
# for a margin of 1. If an exact value is 0, as in a symmetric problem, the computed sign would be
# noise.
ZERO = 1e-10
# An output is a sum. Outputs up to this share of the sum of the sizes of their terms are also
# treated as 0, which allows for several dozen rounding errors.
ROUNDED = 64 * EPS
# Smallest and largest lambda, in units of kernel and cost. In this range, squares do not overflow.
SMALLEST, LARGEST = 1e-100, 1e100
# Ridges, relative to the size of the kernel, that are tried if a path fails.
RIDGES = (0.0, 1e-12, 1e-11, 1e-10, 1e-9)
#: Bytes of an array that is allocated and freed before a path, so that the C library keeps freed
#: memory for the next array: glibc keeps up to twice the size of the largest freed array (at most
#: 32 MiB). Returning the memory to the system takes a tenth of the time of a path.
RETAINED = 30 << 20
# A ridge that would violate the optimality conditions by more than this, relative to lambda, is not
# tried, because the path would be useless.
USELESS = 1e-3


class OptimalityCheck(NamedTuple):
    """A checkpoint: the accuracy of the path at one lambda, computed from scratch."""

    lam: float
    violation: float  # violation of the optimality conditions after the repair, relative to lambda
    gap: float  # duality gap of the programme, relative to lambda and cost


class PathOutputs(NamedTuple):
    """Outputs h = lambda f of new points along a path, and the sizes up to which they count as 0.

    There is a row for each breakpoint. The outputs are affine in lambda between the rows.
    """

    lam: Array  # decreasing
    h: Array  # (rows, points)
    rounding: Array  # (rows, points): outputs up to this size may be rounding errors
    zero: Array  # (rows,): outputs up to this size are below the precision of the path

    @property
    def band(self) -> Array:
        """Size up to which each output is treated as 0. The label of 0 is +."""
        return self.rounding + self.zero[:, None]


@dataclass(frozen=True)
class SolutionPath:
    """The solutions of a quadratic programme for every lambda in a range.

    The solutions are stored as segments, which are affine in lambda between their rows. Segments
    use the units of the programme. Arguments and results of methods use the units of the kernel and
    the cost.
    """

    programme: QuadraticProgramme = field(repr=False)
    segments: list[Segment] = field(repr=False)
    checks: list[OptimalityCheck] = field(repr=False)
    n_repairs: int
    reached: float  # the smallest lambda that was reached
    lam_unit: float = 1.0  # unit in which the segments store lambda

    @cached_property
    def violation(self) -> float:
        """Largest violation of the optimality conditions, relative to lambda.

        It includes the effect of rounding errors of the kernel.
        """
        noise, found = self.programme.noise[self.programme.point], [0.0]
        with np.errstate(over="ignore", invalid="ignore"):
            for part in self.segments:
                # the bound on the rounding errors is usually ten times the actual errors
                rounding = noise[part.variables].max(initial=0.0) * part.mass + part.total(noise)
                found.append((rounding / part.lam).max())
            return self.missed + 0.1 * _worst(found) / self.programme.scale

    @cached_property
    def missed(self) -> float:
        """Largest violation of the optimality conditions, without rounding errors of the kernel."""
        found = [c.violation for c in self.checks] or [np.inf]
        upper, reach = self.programme.upper, float(self.programme.norms.max()) ** 2
        with np.errstate(over="ignore", invalid="ignore"):
            for part in self.segments:
                # values outside their bounds are clipped; ``clipped`` is a bound on the change of
                # outputs
                still = np.delete(np.maximum(-part.start, part.start - upper), part.variables)
                beyond = np.maximum(-part.x, part.x - upper[part.variables])
                clipped = np.maximum(beyond, 0.0).sum(axis=1) + np.maximum(still, 0.0).sum()
                clipped *= reach
                wrong = part.violation + self.programme.blur * part.mass + clipped
                found.append((wrong / part.lam).max() / self.programme.scale)
                # if the kernel is far smaller than lambda, a violation of the constraint does not
                # appear in the residuals
                found.append(np.abs(part.total(self.programme.sign)).max() / upper.sum())
        return _worst(found) + self.programme.tilt / self.programme.scale

    def _row(self, lam: float) -> tuple[Segment, int, float]:
        """Return the segment that contains ``lam``, the row below it, and the position of ``lam``.

        The position of ``lam`` is 0 at the row above and 1 at the row below. The solution is affine
        between these rows.
        """
        lam = lam / self.lam_unit
        ends = np.array([s.lam[-1] for s in self.segments])
        part = self.segments[min(int(np.searchsorted(-ends, -lam)), len(ends) - 1)]
        row = int(np.clip(np.searchsorted(-part.lam, -lam), 1, len(part.lam) - 1))
        top, bottom = part.lam[row - 1], part.lam[row]
        t = 0.0 if top == bottom else float(np.clip((top - lam) / (top - bottom), 0.0, 1.0))
        return part, row, t

    def weights(self, lam: float) -> tuple[Array, float]:
        """Return the weights of the points and the intercept at ``lam``, both multiplied by lambda.

        The weight of a point is the sum of ``s x`` over the variables of the point.
        """
        part, row, t = self._row(lam)
        x = part.start.copy()
        x[part.variables] = (1 - t) * part.x[row - 1] + t * part.x[row]
        x = np.clip(x, 0.0, self.programme.upper)
        b = (1 - t) * part.b[row - 1] + t * part.b[row]
        return self.programme.per_point(x), float(b) * self.programme.unit

    def slopes(self, lam: float) -> tuple[Array, float]:
        """Return the derivatives of :meth:`weights` with respect to lambda.

        At a breakpoint, they are the derivatives on the side of larger lambda.
        """
        part, row, _ = self._row(lam)
        dx = np.zeros_like(part.start)
        drop = (part.lam[row] - part.lam[row - 1]) * self.lam_unit
        if drop == 0:
            return self.programme.per_point(dx), 0.0
        dx[part.variables] = (part.x[row] - part.x[row - 1]) / drop
        db = (part.b[row] - part.b[row - 1]) * self.programme.unit / drop
        return self.programme.per_point(dx), float(db)

    def band(self, lam: float, sizes: Array) -> Array:
        """Return the size up to which the outputs of new points are treated as 0 at ``lam``.

        ``sizes`` are the largest kernel values of each point.
        """
        part, row, t = self._row(lam)
        ends = [a[row - 1 : row + 1] for a in self._doubtful(part, sizes)]
        above, below = ends[0] + ends[1][:, None]
        return (1 - t) * above + t * below

    def _doubtful(self, part: Segment, sizes: Array) -> tuple[Array, Array]:
        """Return the output sizes below which signs are uncertain, at each row of a segment.

        They are the arrays ``rounding`` and ``zero`` of :class:`PathOutputs`.
        """
        terms = np.multiply.outer(part.mass, sizes)
        terms += np.abs(part.b[:, None]) * self.programme.unit
        zero = ZERO * self.lam_unit if len(part.variables) else 0.0
        return ROUNDED * terms, zero * part.lam

    @np.errstate(over="ignore", invalid="ignore")  # distant rows
    def outputs(self, K: Array) -> PathOutputs:
        """Return the outputs of new points along the whole path, from their kernel rows ``K``."""
        point, sign, sizes = self.programme.point, self.programme.sign, np.abs(K).max(axis=1)
        lam = np.concatenate([part.lam for part in self.segments]) * self.lam_unit
        columns, zero = np.ascontiguousarray(K.T), np.empty(len(lam))
        h, rounding = np.empty((2, len(lam), len(K)))
        row = 0
        for part in self.segments:
            rows = slice(row, row := row + len(part.lam))
            change = (part.x - part.x[0]) * sign[part.variables]
            np.matmul(change, columns[point[part.variables]], out=h[rows])
            h[rows] += K @ self.programme.per_point(part.start)
            h[rows] += part.b[:, None] * self.programme.unit
            rounding[rows], zero[rows] = self._doubtful(part, sizes)
        near = within(h, FARTHEST_OUTPUT)
        if near is not h:
            rounding[~(np.abs(h) < FARTHEST_OUTPUT)] = FARTHEST_OUTPUT
        return PathOutputs(lam, near, within(rounding, FARTHEST_OUTPUT), zero)

    @property
    def margin_set_sizes(self) -> NDArray[np.intp]:
        """Number of variables strictly between their bounds, after each breakpoint."""
        upper = self.programme.upper
        return np.concatenate(
            [((s.x > 0) & (s.x < upper[s.variables])).sum(axis=1)[1:] for s in self.segments]
        )


def _worst(violations: Sequence[float]) -> float:
    """Return the largest violation. NaN is treated as infinity."""
    worst = float(np.max(violations))
    return np.inf if np.isnan(worst) else worst


def follow(
    programme: QuadraticProgramme, first: Array, lambda_range: tuple[float, float]
) -> SolutionPath:
    """Follow the optimum for the linear term ``g = lambda cost`` over a range of lambda.

    ``first`` is a feasible point to start from. If the path ends early or is inaccurate, it is
    followed again with a small ridge added to the kernel. The violation includes the effect of the
    ridge.
    """
    np.empty(RETAINED, np.int8)
    # the cost is scaled to about 1, which changes the unit of lambda
    target, exponent = programme.scale, int(np.frexp(programme.scale)[1]) - 1
    cost, tilt = np.ldexp(programme.cost, -exponent), float(np.ldexp(programme.tilt, -exponent))
    programme = replace(programme, cost=cost, tilt=tilt)
    if target == 0:  # the linear term is 0, so x = 0 for every lambda
        return _still(programme, lambda_range)
    with np.errstate(over="ignore"):  # an overflow raises an error below
        lam_unit = float(np.ldexp(programme.unit, -exponent))
    low, high = (end / lam_unit if lam_unit > 0 else np.inf for end in lambda_range)
    if not SMALLEST <= low < high <= LARGEST:
        raise InvalidParameter(
            f"A regularization path needs lambda = 1 / C of about the size of the kernel: "
            f"{lambda_range[0]:.3g} to {lambda_range[1]:.3g} is too far from kernel values of "
            f"{programme.unit:.3g} and a target of {target:.3g}. Scale the columns and the target, "
            "or give another lambda_range."
        )
    best: SolutionPath | None = None
    for ridge in RIDGES:
        size = ridge * programme.kappa
        K = programme.K + size * np.eye(len(programme.K)) if ridge else programme.K
        tried = replace(programme, K=K, noise=programme.noise + programme.blur / 2, ridge=size)
        with np.errstate(over="ignore", invalid="ignore"):  # an indefinite kernel may diverge
            found = _follow_once(SolverState(tried), first, (low, high), lam_unit)
        if best is None or (found.reached, found.violation) < (best.reached, best.violation):
            best = found
        arrived = best.reached <= lambda_range[0] * (1 + 1e-12)
        cost_of_next = _cost_of(programme, ridge, low)
        if (arrived and best.missed <= max(WANTED, cost_of_next)) or cost_of_next > USELESS:
            break
    assert best is not None
    begun = best.segments and best.reached < lambda_range[1] * (1 - 1e-12)
    if not begun:  # there is no segment, or lambda has not decreased
        raise PathLost(
            "A regularization path could not be started: the kernel has too few accurate digits "
            "or negative eigenvalues. Scale the columns, or use GridC."
        )
    return best


def _still(programme: QuadraticProgramme, lambda_range: tuple[float, float]) -> SolutionPath:
    """Return the path of a programme without a linear term: x = 0 and an intercept of 0."""
    lam = np.array(lambda_range[::-1])
    zeros, none = np.zeros(2), np.zeros((2, 0))
    proof = Proof(np.zeros(1), np.ones(1), *(np.zeros(1) for _ in range(6)))
    x = np.zeros(len(programme.sign))
    segment = Segment(lam, zeros, np.empty(0, np.int64), none, x, zeros, proof)
    check = OptimalityCheck(lambda_range[0], 0.0, 0.0)
    programme = replace(programme, cost=np.full_like(programme.cost, np.finfo(float).tiny))
    return SolutionPath(programme, [segment], [check], 0, lambda_range[0])


def _cost_of(programme: QuadraticProgramme, ridge: float, low: float) -> float:
    """Return the least violation, relative to lambda, that the next larger ridge would cause."""
    following = next((other for other in RIDGES if other > ridge), np.inf)
    return following * programme.kappa * float(programme.upper.max()) / (low * programme.scale)


def _follow_once(
    state: SolverState, first: Array, lambda_range: tuple[float, float], lam_unit: float
) -> SolutionPath:
    smallest, lam = lambda_range
    programme = state.programme
    segments: list[Segment] = []
    checks: list[OptimalityCheck] = []
    try:
        start(state, lam, first)
        while True:
            checks.append(_check(state, lam, segments, lam_unit))
            if lam <= smallest:
                break
            below = max(lam / SPACING, smallest)
            below = smallest if below < smallest * SPACING**0.5 else below
            state.tau, cost = lam, programme.cost
            line = Line(np.zeros_like(cost), cost, 0.0, below * programme.scale, record=segments)
            trace(state, line, below)
            lam = below
    except Stuck:
        lam = segments[-1].lam[-1] if segments else np.inf
    reached = float(lam) * lam_unit
    return SolutionPath(programme, segments, checks, state.n_repairs, reached, lam_unit)


def _check(
    state: SolverState, lam: float, record: list[Segment], lam_unit: float
) -> OptimalityCheck:
    programme, ridge = state.programme, state.programme.ridge
    g, scale = lam * programme.cost, lam * programme.scale
    state.refresh(record)
    if state.violation(g) > REPAIR * scale:
        keep_to(state, repair(state, lam), lam)
    r = state.residuals(g)
    x, rest = state.x, programme.upper - state.x
    gap = float(x @ np.maximum(r, 0) + rest @ np.maximum(-r, 0)) + ridge * float(x @ x)
    violation = state.violation(g) + ridge * float(programme.upper.max())
    return OptimalityCheck(lam * lam_unit, _worst([violation / scale]), _worst([gap / scale]))
