"""The whole path: from the largest lambda to the smallest, with checkpoints and repairs."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tamis.svm._homotopy import REPAIR, Homotopy
from tamis.svm._stance import Array, Line, Stretch, Stuck

SPACING = 16.0  # of the checkpoints
WANTED = 1e-8  # violation relative to lambda; above it the walk is tried again
ACCEPTED = 1e-6  # above it the path is not vouched for


@dataclass(frozen=True)
class Checkpoint:
    """What was found on recomputing everything at one lambda."""

    lam: float
    violation: float  # of the optimality conditions, relative to lambda, after repair
    gap: float  # duality gap of the programme scaled by lambda**2, relative to lambda


@dataclass(frozen=True)
class Walk:
    """The path of one programme: stretches of lambda, affine between their rows."""

    sign: Array
    point: NDArray[np.int64]
    upper: Array
    stretches: list[Stretch] = field(repr=False)
    checkpoints: list[Checkpoint] = field(repr=False)
    n_repairs: int
    reached: float  # the smallest lambda that was reached
    ridge: float  # added to the diagonal of the kernel

    @property
    def violation(self) -> float:
        """Largest violation of the optimality conditions relative to lambda, at checkpoints."""
        return max((c.violation for c in self.checkpoints), default=np.inf)

    def _place(self, lam: float) -> tuple[Stretch, int]:
        """The stretch that holds ``lam`` and the row at its lower end."""
        ends = np.array([s.lam[-1] for s in self.stretches])
        part = self.stretches[min(int(np.searchsorted(-ends, -lam)), len(ends) - 1)]
        return part, int(np.clip(np.searchsorted(-part.lam, -lam), 1, len(part.lam) - 1))

    def weights(self, lam: float) -> tuple[Array, float]:
        """``s x`` summed over the variables of each point, and the intercept, times lambda both."""
        part, row = self._place(lam)
        top, bottom = part.lam[row - 1], part.lam[row]
        t = 0.0 if top == bottom else float(np.clip((top - lam) / (top - bottom), 0.0, 1.0))
        x = part.start.copy()
        x[part.variables] = (1 - t) * part.x[row - 1] + t * part.x[row]
        x = np.clip(x, 0.0, self.upper)
        b = (1 - t) * part.b[row - 1] + t * part.b[row]
        return _per_point(self.point, self.sign * x), float(b)

    def slopes(self, lam: float) -> tuple[Array, float]:
        """Derivatives of :meth:`weights` by lambda (from below, on a breakpoint)."""
        part, row = self._place(lam)
        drop = part.lam[row] - part.lam[row - 1]
        if drop == 0:
            return np.zeros(int(self.point.max()) + 1), 0.0
        dx = np.zeros_like(part.start)
        dx[part.variables] = (part.x[row] - part.x[row - 1]) / drop
        db = (part.b[row] - part.b[row - 1]) / drop
        return _per_point(self.point, self.sign * dx), float(db)

    def outputs(self, K: Array) -> list[tuple[Array, Array]]:
        """For every stretch its lambdas and h = lambda f (rows x points) for kernel rows ``K``."""
        blocks = []
        for part in self.stretches:
            first = np.bincount(self.point, self.sign * part.start, K.shape[1])
            h = K @ first
            s = self.sign[part.variables]
            change = (part.x - part.x[0]) * s
            block = change @ K[:, self.point[part.variables]].T
            block += h
            block += part.b[:, None]
            blocks.append((part.lam, block))
        return blocks


def _per_point(point: NDArray[np.int64], weight: Array) -> Array:
    return np.bincount(point, weight).astype(np.float64)


def walk(
    K: Array,
    point: NDArray[np.int64],
    sign: Array,
    upper: Array,
    cost: Array,
    first: Array,
    lambda_range: tuple[float, float],
    bracketed: bool = False,
) -> Walk:
    """Trace ``g = lambda cost`` over a range (smallest, largest) from a feasible ``first``.

    A walk that ends early or inexact is walked again with a ridge on the kernel, small enough to
    be within what is promised; the ridge is counted as a violation. Only a ``bracketed`` walk can
    say how far its outputs may be from the truth.
    """
    kappa = float(np.abs(np.diagonal(K)).max())
    best: Walk | None = None
    for ridge in (0.0, 1e-12, 1e-11, 1e-10, 1e-9):
        size = ridge * kappa
        matrix = K if ridge == 0 else K + size * np.eye(len(K))
        with np.errstate(over="ignore", invalid="ignore"):  # an indefinite kernel may explode
            machine = Homotopy(matrix, point, sign, upper, cost)
            machine.bracketed = bracketed
            found = _walk(machine, first, lambda_range, size)
        if best is None or _merit(found) < _merit(best):
            best = found
        if best.reached <= lambda_range[0] and best.violation <= WANTED:
            break
    assert best is not None
    return best


def _merit(found: Walk) -> tuple[float, float]:
    return found.reached, found.violation


def _walk(machine: Homotopy, first: Array, lambda_range: tuple[float, float], ridge: float) -> Walk:
    smallest, largest = lambda_range
    cost = machine.cost
    scale = float(np.abs(cost).max())
    stretches: list[Stretch] = []
    checkpoints: list[Checkpoint] = []
    lam = largest
    try:
        machine.start(lam, first)
        while True:
            checkpoints.append(_check(machine, lam, scale, ridge))
            if lam <= smallest:
                break
            below = max(lam / SPACING, smallest)
            below = smallest if below < smallest * SPACING**0.5 else below
            machine.tau = lam
            line = Line(np.zeros_like(cost), cost, 0.0, below * scale, record=stretches)
            machine.trace(line, below)
            lam = below
    except Stuck:
        lam = stretches[-1].lam[-1] if stretches else np.inf
    return Walk(
        machine.sign,
        machine.point,
        machine.upper,
        stretches,
        checkpoints,
        machine.n_repairs,
        float(lam),
        ridge,
    )


def _check(machine: Homotopy, lam: float, scale: float, ridge: float) -> Checkpoint:
    machine.refresh()
    g = lam * machine.cost
    if machine.violation(g) > REPAIR * lam * scale:
        machine.repair(lam)
    r = machine.sign * machine.h[machine.point] - g
    x, rest = machine.x, machine.upper - machine.x
    gap = float(x @ np.maximum(r, 0) + rest @ np.maximum(-r, 0)) + ridge * float(x @ x)
    violation = machine.violation(g) + ridge * float(machine.upper.max())
    return Checkpoint(lam, violation / (lam * scale), gap / lam)
