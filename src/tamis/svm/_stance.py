"""Where a walk stands: the point, its elbow with the inverse of its matrix, and what to follow."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.svm import _elbow as elbow
from tamis.svm._elbow import FREE, HIGH, LOW, Programme, State, enter_all, gather

Array = NDArray[np.float64]

EPOCH = 64  # events per epoch; twice as many in small problems
SMALL = 256  # variables; fewer are all followed
SOUND = 1e-5  # error of an inverse that can still be refined


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


class Stance:
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
            slots = state.slots[: state.tally[elbow.SLOTS]]
            self._collect(state, slots, self.side[slots] == FREE, int(state.tally[elbow.TERMS]))
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
            tally=np.array([m, 0, m, self.zeros]),
            real=np.array([self.tau, self.b, self.kappa, self.residual, line.scale]),
        )
        return problem, state

    @property
    def _length(self) -> int:
        return EPOCH if len(self.x) > SMALL else 2 * EPOCH

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
