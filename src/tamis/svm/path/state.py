"""State of the solver: the current point, its margin set, and its outputs."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis.compiled import margin_set as loops
from tamis.compiled.margin_set import FREE, HIGH, LOW, NUMBERS, EpochProgramme, EpochState
from tamis.compiled.thresholds import ONE_CALL
from tamis.svm.kernels import EPS
from tamis.svm.path.programme import Line, QuadraticProgramme, Segment

Indices = NDArray[np.int64]

# Number of events per epoch, doubled in small problems. With more events, the matrix product that
# recomputes all outputs after an epoch is needed less often. With fewer events, the inverse has
# fewer rank-one terms, which are then cheaper to apply than the inverse itself.
EPOCH = 64
# Least number of events in an epoch.
FEWEST = 4
# If there are fewer variables than this, all of them are followed, because selecting a subset would
# take more time than it saves.
SMALL = 256
# Largest error of an inverse that is used to refine a solution. Each refinement multiplies the
# error of the solution by about the error of the inverse.
SOUND = 1e-5
# If the residual of a direction, relative to the linear term, exceeds this, the inverse is
# recomputed.
RESIDUAL = 1e-10


class MarginSet(NamedTuple):
    """The variables strictly between their bounds, with the inverse of ``[[0, s'], [s, Q]]``."""

    members: Indices
    inverse: Array

    @classmethod
    def empty(cls) -> "MarginSet":
        """Return a margin set without variables."""
        return cls(np.empty(0, np.int64), np.zeros((1, 1)))

    @classmethod
    def inverted(cls, programme: QuadraticProgramme, members: Indices) -> "MarginSet | None":
        """Return the margin set with these members, or None if their matrix is nearly singular."""
        s, p = programme.sign[members], programme.point[members]
        A = np.zeros((len(s) + 1, len(s) + 1))
        A[0, 1:] = A[1:, 0] = s
        A[1:, 1:] = s[:, None] * s * programme.K[np.ix_(p, p)]
        try:
            inverse = np.linalg.inv(A)
        except np.linalg.LinAlgError:
            return None
        if not np.abs(A @ inverse - np.eye(len(A))).max() < SOUND:
            return None
        return cls(members, (inverse + inverse.T) / 2)

    def error(self, programme: QuadraticProgramme) -> float:
        """Estimate the error of the inverse from its products with random vectors of signs."""
        if len(self.members) < 2:
            return 0.0
        s, p = programme.sign[self.members], programme.point[self.members]
        signs = programme.probes[: len(s) + 1]
        v = self.inverse @ signs
        back = loops.restricted_product(programme.K, p, s[:, None] * v[1:])
        back = s[:, None] * (back + v[0])
        wrong = np.vstack([s @ v[1:], back]) - signs
        return float(np.abs(wrong).max())

    @classmethod
    def collected(
        cls, moved: EpochState, variables: Indices, free: Mask, n_terms: int
    ) -> "MarginSet":
        """Return the margin set as the compiled loop has left it.

        Its members are the variables of the ``free`` slots, and its inverse includes the rank-one
        terms.
        """
        keep = np.concatenate([[0], np.flatnonzero(free) + 1])
        old = keep[keep < len(moved.base)]
        terms = moved.terms[:n_terms, keep]
        inverse = (terms * moved.scale[:n_terms, None]).T @ terms
        inverse[: len(old), : len(old)] += loops.gather(moved.base, old, old)
        return cls(variables[free], inverse)


@dataclass
class SolverState:
    """The current point x of the solver, with its sides, margin set, intercept and outputs.

    The side of a variable is LOW or HIGH if it is on its lower or upper bound, or FREE. The point
    is the optimum of the programme for the linear term at ``tau`` on a line. See
    :mod:`tamis.svm.path.homotopy` for how it changes.
    """

    programme: QuadraticProgramme
    margin: MarginSet = field(default_factory=MarginSet.empty)
    b: float = 0.0  # intercept
    tau: float = 1.0  # parameter of the linear term g(tau) that is followed
    zeros: int = 0  # number of steps of length zero since the last longer step
    residual: float = RESIDUAL  # residual of a direction above which the inverse is recomputed
    speed: Array | None = None  # change of the residuals if tau decreases by 1; None if unknown
    n_repairs: int = 0
    since: int = 0  # number of segments at the last recomputation of the outputs
    x: Array = field(init=False)
    side: NDArray[np.int8] = field(init=False)
    h: Array = field(init=False)  # outputs at all points
    drift: Array = field(init=False)  # bound on the difference between h and the outputs of x
    width: int = field(init=False)  # number of followed variables that are not in the margin set
    rows: Array = field(init=False, repr=False)  # memory for kernel rows, used by each epoch
    budget: int = field(init=False)  # number of epochs left; a usual path needs a tenth of them

    def __post_init__(self) -> None:
        n = len(self.programme.sign)
        self.x = np.zeros(n)
        self.side = np.full(n, LOW, np.int8)
        self.h = self.drift = np.zeros(len(self.programme.K))
        self.rows = np.empty((0, len(self.programme.K)))
        self.width = max(64, n // 8)
        self.budget = 500 + n

    @property
    def length(self) -> int:
        """Number of events in an epoch. If events are slow, it is smaller, to allow interrupts."""
        n, m = len(self.x), len(self.margin.members)
        # an operation in these loops takes a tenth of the usual time
        most = int(10 * ONE_CALL / (m * (n + m) + 1))
        return min(EPOCH if n > SMALL else 2 * EPOCH, max(FEWEST, most))

    @property
    def excess(self) -> float:
        """``s'x``, the violation of the constraint ``s'x = 0``."""
        return float(self.programme.sign @ self.x)

    def stand(self, x: Array, b: float) -> None:
        """Set the current point. Variables strictly between their bounds form the margin set."""
        self.x, self.b = x, b
        self.side = np.where(x <= 0, LOW, np.where(x >= self.programme.upper, HIGH, FREE))
        self.side = self.side.astype(np.int8)
        self.build(np.flatnonzero(self.side == FREE))
        self.refresh()

    def refresh(self, record: list[Segment] | None = None) -> None:
        """Recompute the outputs from x.

        If they have drifted too far, withdraw the proofs of all segments since the last call.
        """
        h = self.programme.outputs(self.x) + self.b
        if record is not None:
            if (np.abs(h - self.h) > self.drift).any():
                for segment in record[self.since :]:
                    segment.proof.void()
            self.since = len(record)
        self.h, self.drift = h, np.zeros(len(h))
        self.slip()

    def snap(self) -> None:
        """Set the variables off the margin set exactly to their bounds.

        Because lambda is rounded, events are slightly late, and variables slightly outside their
        bounds. This matters if the kernel is far larger than lambda.
        """
        programme = self.programme
        bound = np.where(self.side == HIGH, programme.upper, 0.0)
        off = np.flatnonzero((self.side != FREE) & (self.x != bound))
        if len(off):
            move = programme.sign[off] * (bound - self.x)[off]
            self.h = self.h + move @ programme.K[programme.point[off]]
            self.x[off] = bound[off]

    def slip(self) -> None:
        """Add the rounding error of one update of the outputs to the bound on their drift."""
        norms = self.programme.norms
        terms = norms * (norms[self.programme.point] @ self.x)
        self.drift = self.drift + 4 * EPS * (np.abs(self.h) + terms)

    def residuals(self, g: Array) -> Array:
        """Return the residual ``s h - g`` of each variable, for the linear term ``g``."""
        return self.programme.sign * self.h[self.programme.point] - g

    def violation(self, g: Array) -> float:
        """Return the largest violation of the optimality conditions for the linear term ``g``."""
        r = self.residuals(g)
        wrong = np.where(self.side == LOW, -r, np.where(self.side == HIGH, r, np.abs(r)))
        return max(float(wrong.max()), abs(self.excess) * self.programme.kappa, 0.0)

    def consistent(self, g: Array) -> Array:
        """Return the linear term nearest to ``g`` for which the current point is optimal."""
        sh = self.programme.sign * self.h[self.programme.point]
        wrong = np.where(self.side == LOW, sh < g, (self.side == FREE) | (sh > g))
        return np.where(wrong, sh, g)

    def hold(self, i: int) -> None:
        """Make ``i`` the only member of the margin set."""
        p, s = self.programme.point[i], self.programme.sign[i]
        self.side[i] = FREE
        self.margin = MarginSet(np.array([i]), np.array([[-self.programme.K[p, p], s], [s, 0.0]]))

    def build(self, candidates: Indices) -> None:
        """Build a margin set from the candidates. Move linearly dependent candidates to a bound."""
        self.margin = MarginSet.empty()
        still = np.zeros_like(self.programme.sign)
        line, everything = Line(still, still), np.arange(len(still))
        done = 0
        while done < len(candidates):
            if not len(self.margin.members):
                self.hold(int(candidates[done]))
                done += 1
                continue
            problem, moved = self.restricted(line, everything)
            done = loops.enter_all(problem, moved, candidates, done)
            self.x, self.side, self.b = moved.x, moved.side, float(moved.now.b)
            slots = moved.slots[: moved.now.n_slots]
            n_terms = int(moved.now.n_terms)
            self.margin = MarginSet.collected(moved, slots, self.side[slots] == FREE, n_terms)
            if not len(self.margin.members):  # the only member has left
                self.hold(int(candidates[done - 1]))

    def refactor(self) -> int:
        """Invert the matrix of the margin set from scratch. Return a code for the next epoch.

        If the matrix is singular, linearly dependent members leave the set.
        """
        if not len(self.margin.members) or self.renew():
            return loops.FULL
        self.build(self.margin.members.copy())
        return loops.INEXACT

    def renew(self) -> bool:
        """Invert the matrix of the margin set from scratch. Return whether that was possible."""
        margin = MarginSet.inverted(self.programme, self.margin.members)
        if margin is not None:
            self.margin = margin
        return margin is not None

    def watched(self, line: Line) -> Indices:
        """Return the variables to follow: the margin set, and those that may enter it soonest."""
        n, m = len(self.x), len(self.margin.members)
        size = self.width + m
        if self.speed is None or n < SMALL or self.width > 0.6 * (n - m):
            return np.arange(n)
        r = self.residuals(line.term(self.tau))
        closing = np.where(self.side == LOW, -self.speed, self.speed)
        score = np.abs(r) / np.maximum(closing, 0.3 * np.abs(self.speed).mean() + 1e-300)
        score[self.margin.members] = -1.0
        return np.sort(np.argpartition(score, size)[:size])

    def restricted(self, line: Line, watch: Indices) -> tuple[EpochProgramme, EpochState]:
        """Return the programme of the variables ``watch``, and its state. All others are fixed."""
        whole, members = self.programme, self.margin.members
        sign, slope = whole.sign[watch], line.slope[watch]
        index, point, ahead = np.arange(len(whole.K)), whole.point[watch], whole.K
        if len(watch) < len(self.x) or len(members) > max(SMALL, len(watch) / 4):
            index, point, n_ahead = self._in_play(watch)
            ahead = loops.gather(whole.K, index, index[:n_ahead])
        problem = EpochProgramme(whole.K, ahead, index, point, sign, whole.upper[watch], slope)
        m, n = len(members), len(watch)
        length = self.length
        slots = np.zeros(m + length + 4, np.int64)
        slots[:m] = np.searchsorted(watch, members)
        slot_of = np.full(n, -1)
        slot_of[slots[:m]] = np.arange(m)
        d = np.zeros(len(slots) + 1)
        d[: m + 1] = self._direction(line)
        accuracy = whole.kappa, self.residual, line.scale
        numbers = self.tau, self.b, *accuracy, line.excess, 0.0
        moved = EpochState(
            x=self.x[watch],
            r=sign * self.h[whole.point[watch]] - line.term(self.tau)[watch],
            side=self.side[watch],
            slots=slots,
            slot_of=slot_of,
            base=np.ascontiguousarray(self.margin.inverse),
            terms=np.empty((length + 4, len(d))),
            scale=np.zeros(length + 4),
            d=d,
            now=np.array([(m, 0, m, self.zeros, *numbers)], dtype=NUMBERS)[0],
        )
        return problem, moved

    def _direction(self, line: Line) -> Array:
        """Return the direction ``A_E^-1 [-e; -slope]`` of the intercept and the margin set.

        If the slope is a multiple of the signs s, only the intercept changes. In this case, the
        multiple is subtracted from the slope first, so that rounding errors do not change x.
        """
        s, slope = self.programme.sign[self.margin.members], line.slope[self.margin.members]
        lines = s * slope
        shift = lines[0] if len(lines) and (lines == lines[0]).all() else 0.0
        found = self.margin.inverse @ np.concatenate([[-line.excess], shift * s - slope])
        found[0] -= shift
        return found

    def _in_play(self, watch: Indices) -> tuple[Indices, Any, int]:
        """Return the points of the watched variables, the position of each variable's point, and n.

        The first n points have a variable off the margin set.
        """
        point, n_points = self.programme.point, len(self.programme.K)
        off = self.side[watch] != FREE
        ahead, rest = point[watch[off]], point[watch[~off]]
        if len(self.x) > n_points:  # several variables per point
            ahead = np.unique(ahead)
            rest = np.setdiff1d(rest, ahead)
        index = np.concatenate([ahead, rest])
        number = np.empty(n_points, np.int64)
        number[index] = np.arange(len(index))
        return index, number[point[watch]], len(ahead)
