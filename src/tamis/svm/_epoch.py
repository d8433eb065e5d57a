"""One epoch of a walk: many events on few variables, then an audit of all of them."""

import numpy as np
from numpy.typing import NDArray

from tamis.svm import _elbow as elbow
from tamis.svm._elbow import FREE, State
from tamis.svm._events import Log, advance, audit
from tamis.svm._stance import Array, Line, Stance, Stretch, Stuck


class Epochs(Stance):
    """A stance that can advance."""

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
        slots = state.slots[: state.tally[elbow.SLOTS]]
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
        self.zeros = int(state.tally[elbow.ZEROS])
        self._collect(state, moving, log.side[last] == FREE, int(log.n_terms[last]))
        drop = log.tau[:last] - self.tau
        earlier = np.flatnonzero(drop > 1e-9 * abs(self.tau))
        self.speed = None
        if len(earlier):
            dh = (self.h - h[earlier[-1]]) / drop[earlier[-1]]
            self.speed = self.sign * dh[self.point] + line.slope

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
