"""Following the optimum of a quadratic programme while its linear term moves.

One routine, :meth:`Homotopy.trace`, serves the start, the path in lambda and every repair: any
point that satisfies the bounds is the exact optimum for *some* linear term, and from there one
walks to the linear term that is wanted.

The walk goes in epochs. In each, only the variables that may have an event soon are followed; after
it, the residuals of all variables at all its events come from one matrix product, and the epoch is
cut where a variable that was not followed had come into play.
"""

import numpy as np
from numpy.typing import NDArray

from tamis._random import stream
from tamis.exceptions import PathTooLarge
from tamis.svm import _elbow as elbow
from tamis.svm._elbow import FREE, HIGH, LOW
from tamis.svm._epoch import Epochs
from tamis.svm._events import Log
from tamis.svm._intercept import kinks, meeting, middle, opens
from tamis.svm._smo import smo
from tamis.svm._stance import EPOCH, Array, Line, Stuck

MAX_ELBOW = 5e7  # variables x elbow: beyond, an event costs more than a fit
REPAIR = 1e-10  # violation, relative to lambda, that is repaired at a checkpoint
DRIFT = 1e-9  # the same between checkpoints
MANY = 4  # repairs and perturbations tried before giving up


class Homotopy(Epochs):
    """A walk along any line of linear terms, with a start, repairs and ways out of cycles."""

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
        if not len(self.elbow):
            return self._empty(line, end)
        code = self._epoch(line, end)
        if code == elbow.EMPTY and len(self.elbow) == 1:
            self._leave_last(line)
        return code

    def _drifted(self, line: Line) -> bool:
        """Whether the last epoch ended further from the optimum than can wait."""
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
