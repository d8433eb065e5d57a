"""Following the optimum of a quadratic programme while its linear term moves.

One routine, :meth:`Homotopy.trace`, serves the start, the path in lambda and every repair: any
point that satisfies the bounds is the exact optimum for *some* linear term, and from there one
walks to the linear term that is wanted.

The walk goes in epochs. In each, only the variables that may have an event soon are followed; after
it, the residuals of all variables at all its events come from one matrix product, and the epoch is
cut where a variable that was not followed had come into play.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._random import stream
from tamis.exceptions import PathTooLarge
from tamis.svm import _elbow as elbow
from tamis.svm._elbow import FREE, HIGH, LOW, Programme, State, enter_all, gather
from tamis.svm._events import Log, advance, audit
from tamis.svm._intercept import kinks, meeting, middle, opens
from tamis.svm._smo import smo

Array = NDArray[np.float64]

EPOCH = 64  # events per epoch; twice as many while the elbow is small
MAX_ELBOW = 5e7  # variables x elbow: beyond, an event costs more than a fit
SMALL = 256  # variables; fewer are all followed
REPAIR = 1e-10  # violation, relative to lambda, that is repaired at a checkpoint
DRIFT = 1e-9  # the same between checkpoints
SOUND = 1e-5  # error of an inverse that can still be refined
MANY = 4  # repairs and perturbations tried before giving up


class Stuck(Exception):
    """The walk cannot go on: cycling, or a matrix that cannot be inverted."""


class Stretch(NamedTuple):
    """A part of the path: affine in lambda between the rows."""

    lam: Array
    b: Array
    variables: NDArray[np.int64]  # those that move
    x: Array  # rows x variables
    start: Array  # all variables at row 0
    violation: Array  # of the optimality conditions, up to each row
    gap: Array  # bound on the duality gap off the elbow, up to each row
    error_w: Array  # of the weights (norm) and of the intercept by residuals on the elbow
    error_b: Array


@dataclass
class Line:
    """Linear term ``g = offset + noise + tau slope`` and constraint ``s'x = tau excess``."""

    offset: Array
    slope: Array
    excess: float = 0.0
    scale: float = 1.0  # what a violation is relative to
    noise: float | Array = 0.0
    record: list[Stretch] | None = field(default=None, repr=False)


class Homotopy:
    """State of the walk: x, sides, the elbow with the inverse of its matrix, h at all points."""

    def __init__(
        self, K: Array, point: NDArray[np.int64], sign: Array, upper: Array, cost: Array
    ) -> None:
        self.K, self.point, self.sign, self.upper, self.cost = K, point, sign, upper, cost
        self.kappa = max(float(np.abs(np.diagonal(K)).max()), 1e-300)
        n = len(sign)
        self.x = np.zeros(n)
        self.side = np.full(n, LOW, np.int8)
        self.elbow = np.empty(0, np.int64)
        self.inverse = np.zeros((1, 1))
        self.b = 0.0
        self.h = np.zeros(len(K))
        self.tau = 1.0
        self.zeros = 0
        self.residual = 1e-10
        self.width = max(64, n // 8)
        self.speed: Array | None = None
        self.n_repairs = 0
        self.bracketed = False  # whether to measure what residuals on the elbow do
        self.budget = 500 + 4 * n  # epochs; a sound path needs a tenth of it

    # ---------------------------------------------------------------- residuals and consistency

    def refresh(self) -> None:
        """Recompute h from x."""
        weight = np.bincount(self.point, self.sign * self.x, len(self.K))
        self.h = self.K @ weight + self.b  # one product: gathering rows would cost more

    def violation(self, g: Array) -> float:
        """Largest violation of the optimality conditions for the linear term ``g``."""
        r = self.sign * self.h[self.point] - g
        wrong = np.where(self.side == LOW, -r, np.where(self.side == HIGH, r, np.abs(r)))
        return max(float(wrong.max()), abs(float(self.sign @ self.x)) * self.kappa, 0.0)

    def consistent(self, g: Array) -> Array:
        """The linear term nearest to ``g`` for which the present point is optimal."""
        sh = self.sign * self.h[self.point]
        wrong = np.where(self.side == LOW, sh < g, (self.side == FREE) | (sh > g))
        return np.where(wrong, sh, g)

    # ---------------------------------------------------------------- start and repair

    def start(self, lam: float, x: Array, tolerance: float = 1e-3) -> None:
        """Optimum at ``lam`` from a feasible ``x``."""
        self.x = x.copy()
        size = lam * float(np.abs(self.cost).max())
        programme = self.K, self.point, self.sign, self.upper, lam * self.cost
        self.b = smo(*programme, self.x, tolerance * size, 20 * len(x) + 1000)
        self.side = np.where(self.x <= 0, LOW, np.where(self.x >= self.upper, HIGH, FREE))
        self.side = self.side.astype(np.int8)
        self.build(np.flatnonzero(self.side == FREE))
        self.refresh()
        self.repair(lam)

    def repair(self, lam: float) -> float:
        """Walk from the nearest consistent linear term to ``lam`` cost; returns the violation."""
        target = lam * self.cost
        tau = self.tau
        violation = self.violation(target)
        for _ in range(MANY):
            if violation <= 1e-13 * lam:
                break
            slope = self.consistent(target) - target
            excess = float(self.sign @ self.x)
            line = Line(target, slope, excess, lam * float(np.abs(self.cost).max()))
            self.tau = 1.0
            self.speed = None
            self.trace(line, 0.0)
            self.refresh()
            self.n_repairs += 1
            violation = self.violation(target)
            if violation <= REPAIR * line.scale:
                break
        self.tau = tau
        self.speed = None
        return violation

    def build(self, candidates: NDArray[np.int64]) -> None:
        """Make an elbow of the candidates; dependent ones are moved to a bound."""
        self.elbow = np.empty(0, np.int64)
        line = Line(np.zeros_like(self.sign), np.zeros_like(self.sign))
        everything = np.arange(len(self.sign))
        done = 0
        while done < len(candidates):
            if not len(self.elbow):
                self._single(int(candidates[done]))
                done += 1
                continue
            problem, state = self._call(line, everything)
            done = enter_all(problem, state, candidates, done)
            self.x, self.side, self.b = state.x, state.side, float(state.real[elbow.B])
            slots = state.slots[: state.count[elbow.SLOTS]]
            self._collect(state, slots, self.side[slots] == FREE, int(state.count[elbow.TERMS]))
            if not len(self.elbow):  # an exchange of the only one for another
                self._single(int(candidates[done - 1]))

    def _single(self, i: int) -> None:
        self.elbow = np.array([i])
        self.side[i] = FREE
        own = self.K[self.point[i], self.point[i]]
        self.inverse = np.array([[-own, self.sign[i]], [self.sign[i], 0.0]])

    def refactor(self) -> int:
        """Invert the matrix of the elbow anew; an elbow that is not independent is rebuilt."""
        if len(self.elbow) < 2:
            if len(self.elbow):
                self._single(int(self.elbow[0]))
            return elbow.FULL
        s, p = self.sign[self.elbow], self.point[self.elbow]
        A = np.zeros((len(s) + 1, len(s) + 1))
        A[0, 1:] = A[1:, 0] = s
        A[1:, 1:] = s[:, None] * s * self.K[np.ix_(p, p)]
        try:
            inverse = np.linalg.inv(A)
            sound = np.abs(A @ inverse - np.eye(len(A))).max() < SOUND
        except np.linalg.LinAlgError:
            sound = False
        if sound:
            self.inverse = (inverse + inverse.T) / 2
            return elbow.FULL
        self.build(self.elbow.copy())
        return elbow.INEXACT

    # ---------------------------------------------------------------- the walk

    def trace(self, line: Line, end: float) -> None:
        """Follow the optimum along ``line`` from ``self.tau`` down to ``end``."""
        perturbed = 0
        stalled = 0
        while self.tau > end:
            before = self.tau
            code = self._step(line, end)
            if code == elbow.CYCLE or stalled > 2 * len(self.x) // EPOCH + 20:
                perturbed += 1
                if perturbed > MANY:
                    raise Stuck
                self._perturb(line, 10.0 ** (perturbed - 11))
                stalled = 0
            elif line.record and (code == elbow.INEXACT or self._drifted(line)):
                self.refresh()
                self.repair(self.tau)
            stalled = stalled + 1 if self.tau >= before * (1 - 1e-12) else 0

    def _drifted(self, line: Line) -> bool:
        """Whether the last epoch ended further from the optimum than can be left to a checkpoint."""
        assert line.record is not None
        return bool(line.record[-1].violation[-1] > DRIFT * line.scale)

    def _perturb(self, line: Line, size: float) -> None:
        """Leave a cycle: a random change of the linear term separates the ties."""
        self.refresh()
        draw = stream(0, "perturbation", len(self.x), size).uniform(-1, 1, len(self.x))
        noise = size * line.scale * draw
        target = line.offset + self.tau * line.slope + noise
        tau = self.tau
        self.tau, self.zeros = 1.0, 0
        excess = float(self.sign @ self.x)
        detour = Line(target, self.consistent(target) - target, excess, line.scale)
        while self.tau > 0.0:
            code = self._step(detour, 0.0)
            if code == elbow.CYCLE:
                raise Stuck
        line.noise = noise
        self.tau, self.zeros = tau, 0
        self.speed = None

    def _bounds(self, line: Line) -> tuple[Array, Array, NDArray[np.bool_]]:
        """The lines that bound the intercept, and which of them do so from below."""
        a = self.sign * (line.offset + line.noise) - (self.h - self.b)[self.point]
        return a, self.sign * line.slope, (self.sign > 0) == (self.side == LOW)

    def _leave_last(self, line: Line) -> None:
        """The last free variable stands on a bound: it leaves if the intercept becomes free."""
        i = self.elbow[0]
        side = HIGH if self.x[i] > 0.5 * self.upper[i] else LOW
        self.side[i] = side
        tolerance = 1e-11 * line.scale + 1e-14 * float(np.abs(self.h).max())
        if opens(*self._bounds(line), self.tau, tolerance):
            self.x[i] = self.upper[i] if side == HIGH else 0.0
            self.elbow = self.elbow[:0]
        else:
            self.side[i] = FREE

    def _empty(self, line: Line, end: float) -> int:
        """No elbow: x stands still, the intercept is the middle of what is allowed."""
        a, c, below = self._bounds(line)
        tau, j = meeting(a, c, below, self.tau, end)
        rows = np.array(kinks(a, c, below, self.tau, tau))
        b = np.array([middle(a, c, below, t) for t in rows])
        if line.record is not None:
            everything = np.arange(len(self.x))
            none = np.empty((len(rows), 0))
            log = Log(rows, b, none, none.astype(np.int8), np.zeros(len(rows), np.int64))
            h = (self.h - self.b) + b[:, None]
            self._record(line, np.empty(0, np.int64), everything, log, h, elbow.DONE, None)
        self.h += b[-1] - self.b
        self.b, self.tau, self.speed = float(b[-1]), tau, None
        if j >= 0:
            self._single(j)
        return elbow.DONE

    def _watch(self, line: Line) -> NDArray[np.int64]:
        """The variables to follow: the elbow and those that could reach it first."""
        n, m = len(self.x), len(self.elbow)
        size = self.width + m
        if self.speed is None or n < SMALL or self.width > 0.6 * (n - m):
            return np.arange(n)
        r = self.sign * self.h[self.point] - line.offset - line.noise - self.tau * line.slope
        closing = np.where(self.side == LOW, -self.speed, self.speed)
        score = np.abs(r) / np.maximum(closing, 0.3 * np.abs(self.speed).mean() + 1e-300)
        score[self.elbow] = -1.0
        return np.sort(np.argpartition(score, size)[:size])

    def _call(self, line: Line, watch: NDArray[np.int64]) -> tuple[Programme, State]:
        """The restriction of the programme to ``watch``, with all else standing still."""
        sign, slope = self.sign[watch], line.slope[watch]
        place, point, ahead = np.arange(len(self.K)), self.point[watch], self.K
        if len(watch) < len(self.x) or len(self.elbow) > max(SMALL, len(watch) / 4):
            place, point, n_ahead = self._in_play(watch)
            ahead = gather(self.K, place, place[:n_ahead])
        problem = Programme(self.K, ahead, place, point, sign, self.upper[watch], slope)
        m, n = len(self.elbow), len(watch)
        length = self._length
        slots = np.zeros(m + length + 4, np.int64)
        slots[:m] = np.searchsorted(watch, self.elbow)
        slot_of = np.full(n, -1)
        slot_of[slots[:m]] = np.arange(m)
        d = np.zeros(len(slots) + 1)
        d[: m + 1] = self.inverse @ np.concatenate([[-line.excess], -line.slope[self.elbow]])
        g = (line.offset + line.noise + self.tau * line.slope)[watch]
        state = State(
            x=self.x[watch],
            r=sign * self.h[self.point[watch]] - g,
            side=self.side[watch],
            slots=slots,
            slot_of=slot_of,
            base=np.ascontiguousarray(self.inverse),
            terms=np.empty((length + 4, len(d))),
            scale=np.zeros(length + 4),
            d=d,
            count=np.array([m, 0, m, self.zeros]),
            real=np.array([self.tau, self.b, self.kappa, self.residual, line.scale]),
        )
        return problem, state

    @property
    def _length(self) -> int:
        return EPOCH if len(self.elbow) > 100 else 2 * EPOCH

    def _in_play(self, watch: NDArray[np.int64]) -> tuple[NDArray[np.int64], Any, int]:
        """Points of the watched variables, first those that also have one off the elbow."""
        off = self.side[watch] != FREE
        ahead, rest = self.point[watch[off]], self.point[watch[~off]]
        if len(self.x) > len(self.K):  # several variables per point
            ahead = np.unique(ahead)
            rest = np.setdiff1d(rest, ahead)
        place = np.concatenate([ahead, rest])
        number = np.empty(len(self.K), np.int64)
        number[place] = np.arange(len(place))
        return place, number[self.point[watch]], len(ahead)

    def _polish(self, line: Line) -> None:
        """Newton's step on the elbow, against the drift of many short steps."""
        i, s = self.elbow, self.sign[self.elbow]
        r = s * self.h[self.point[i]] - (line.offset + line.noise + self.tau * line.slope)[i]
        if np.abs(r).max() <= 1e-13 * line.scale:
            return
        excess = float(self.sign @ self.x) - self.tau * line.excess
        step = -self.inverse @ np.concatenate([[excess], r])
        x = self.x[i] + step[1:]
        if (x < 0).any() or (x > self.upper[i]).any():
            return
        h = self.h + (s * step[1:]) @ self.K[self.point[i]] + step[0]
        if np.abs(s * (h - self.h)[self.point[i]] + r).max() < 0.1 * np.abs(r).max():
            self.x[i], self.h, self.b = x, h, self.b + float(step[0])

    def _step(self, line: Line, end: float) -> int:
        self.budget -= 1
        if self.budget < 0:
            raise Stuck
        if len(self.elbow) * len(self.x) > MAX_ELBOW:
            raise PathTooLarge(
                f"The path has {len(self.elbow)} of {len(self.x)} variables on the margin at once, "
                f"more than is sensible to follow (a product of {MAX_ELBOW:.0e}). Use a smaller "
                "gamma, or GridC(step=1.0, refine=3), a grid over C with refinement around its "
                "best point."
            )
        return self._epoch(line, end) if len(self.elbow) else self._empty(line, end)

    def _epoch(self, line: Line, end: float) -> int:
        self._polish(line)
        watch = self._watch(line)
        problem, state = self._call(line, watch)
        m, n_rows = len(state.slots), self._length + 2
        log = Log(
            np.empty(n_rows),
            np.empty(n_rows),
            np.empty((n_rows, m)),
            np.full((n_rows, m), -1, np.int8),
            np.empty(n_rows, np.int64),
        )
        code, n_rows = advance(problem, state, log, end)
        slots = state.slots[: state.count[elbow.SLOTS]]
        moving = watch[slots]
        log = self._trim(log, n_rows, moving)
        h = self._outputs(moving, log)
        if not np.isfinite(h[-1]).all():
            raise Stuck
        last = self._record(line, moving, watch, log, h, code, state)
        if last < n_rows - 1:
            code = elbow.FULL
            self.width = min(int((1.5 if last else 3.0) * self.width) + 1, len(self.x))
        else:
            self.width = max(int(0.97 * self.width), 32)
        self._move_to(line, state, moving, log, h, last)
        if code == elbow.EMPTY and len(self.elbow) == 1:
            self._leave_last(line)
        return self._settle(code, last)

    def _trim(self, log: Log, n_rows: int, moving: NDArray[np.int64]) -> Log:
        """The rows written; before its first event a variable was where it had been."""
        x, side = log.x[:n_rows, : len(moving)], log.side[:n_rows, : len(moving)]
        x = np.where(side < 0, self.x[moving], x)
        side = np.where(side < 0, self.side[moving], side)
        return Log(log.tau[:n_rows], log.b[:n_rows], x, side, log.n_terms[:n_rows])

    def _outputs(self, moving: NDArray[np.int64], log: Log) -> Array:
        """h at all points for every row of the log, by one product."""
        change = (log.x - log.x[0]) * self.sign[moving]
        h = change @ self.K[self.point[moving]]
        h += self.h
        h += (log.b - log.b[0])[:, None]
        return h

    def _record(
        self,
        line: Line,
        moving: NDArray[np.int64],
        watch: NDArray[np.int64],
        log: Log,
        h: Array,
        code: int,
        state: State | None,
    ) -> int:
        """Audit a log, keep what is sound, and return its last sound row."""
        slot_of = np.full(len(self.x), -1)
        slot_of[moving] = np.arange(len(moving))
        noise = float(np.abs(line.noise).max())
        tolerance = 1e-11 * line.scale + 2 * noise + 1e-15 * float(np.abs(h[0]).max())
        followed = np.zeros(len(self.x), np.bool_)
        followed[watch] = True
        programme = self.sign, self.point, self.upper, line.slope
        violation, gap, bad = audit(
            *programme, self.side, slot_of, followed, h, log, line.offset, tolerance
        )
        last = len(log.tau) - 1
        if bad <= last:
            last = max(bad - 1, 0)
            while log.n_terms[last] < 0:
                last -= 1
        # what follows an inexact null move is repaired at the same lambda before it counts
        sound = last - 1 if code == elbow.INEXACT and last == len(log.tau) - 1 else last
        if line.record is not None and sound > 0:
            keep = slice(0, sound + 1)
            error_w, error_b = self._elbow_errors(line, moving, log, h, state)
            line.record.append(
                Stretch(
                    log.tau[keep].copy(),
                    log.b[keep].copy(),
                    moving,
                    log.x[keep].copy(),
                    self.x.copy(),
                    violation[keep],
                    gap[keep],
                    error_w[keep],
                    error_b[keep],
                )
            )
        return last

    def _elbow_errors(
        self, line: Line, moving: NDArray[np.int64], log: Log, h: Array, state: State | None
    ) -> tuple[Array, Array]:
        """What the residuals on the elbow do to the weights and to the intercept, up to each row.

        With the right elbow the optimum is one Newton step away: ``A_E [db; dx] = -[e; r]``, and
        ``||dw||^2 = |r'dx|`` since the step keeps the constraint.
        """
        unknown = 0.0 if self.bracketed else np.inf
        error_w, error_b = np.full(len(log.tau), unknown), np.full(len(log.tau), unknown)
        if state is None or not self.bracketed:
            return error_w, error_b
        s = self.sign[moving]
        r = (
            s * h[:, self.point[moving]]
            - line.offset[moving]
            - log.tau[:, None] * line.slope[moving]
        )
        excess = float(self.sign @ self.x) + (log.x - log.x[0]) @ s
        floor = 1e-16 * float(np.abs(h[-1]).max() + self.kappa)
        free = log.side[:-1] == FREE  # on the stretch that follows each row but the last
        rhs = np.empty((len(r) - 1, r.shape[1] + 1))
        rhs[:, 0] = excess[1:]
        np.multiply(r[1:], free, out=rhs[:, 1:])
        step = self._solve_rows(state, rhs, log.n_terms[:-1])
        size = (np.abs(rhs[:, 1:]) + floor) * np.abs(step[:, 1:])
        error_w[1:] = np.sqrt(np.einsum("ij,ij->i", size, free))
        error_b[1:] = np.abs(step[:, 0])
        return error_w, error_b

    @staticmethod
    def _solve_rows(state: State, rhs: Array, n_terms: NDArray[np.int64]) -> Array:
        """Each row times the inverse as it was then: the base and the first of the terms."""
        m = len(state.base)
        step = np.zeros_like(rhs)
        step[:, :m] = rhs[:, :m] @ state.base
        terms = state.terms[: max(int(n_terms.max(initial=0)), 0), : rhs.shape[1]]
        weight = (rhs @ terms.T) * state.scale[: len(terms)]
        weight[np.arange(len(terms)) >= n_terms[:, None]] = 0.0
        return step + weight @ terms

    def _move_to(
        self,
        line: Line,
        state: State,
        moving: NDArray[np.int64],
        log: Log,
        h: Array,
        last: int,
    ) -> None:
        """Stand on row ``last``."""
        self.x[moving], self.side[moving] = log.x[last], log.side[last]
        self.b, self.tau, self.h = float(log.b[last]), float(log.tau[last]), h[last].copy()
        self.zeros = int(state.count[elbow.ZEROS])
        self._collect(state, moving, log.side[last] == FREE, int(log.n_terms[last]))
        drop = log.tau[:last] - self.tau
        earlier = np.flatnonzero(drop > 1e-9 * abs(self.tau))
        self.speed = None
        if len(earlier):
            dh = (self.h - h[earlier[-1]]) / drop[earlier[-1]]
            self.speed = self.sign * dh[self.point] + line.slope

    def _collect(
        self, state: State, variables: NDArray[np.int64], free: NDArray[np.bool_], n_terms: int
    ) -> None:
        """Add the rank-one terms to the inverse and keep the slots that are free."""
        keep = np.concatenate([[0], np.flatnonzero(free) + 1])
        old = keep[keep < len(state.base)]
        terms = state.terms[:n_terms, keep]
        self.inverse = (terms * state.scale[:n_terms, None]).T @ terms
        self.inverse[: len(old), : len(old)] += gather(state.base, old, old)
        self.elbow = variables[free]

    def _settle(self, code: int, last: int) -> int:
        """Make the inverse anew where the walk asked for it, and accept what cannot be bettered."""
        if code == elbow.REFACTOR:
            if last == 0:
                self.residual *= 100
            if self.residual > 1e-5:
                self.residual = 1e-8
                self.build(self.elbow.copy())
                return elbow.INEXACT
            return self.refactor()
        if code == elbow.DONE:
            self.residual = 1e-10
        return code
