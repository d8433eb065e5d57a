"""Kernel machines of squared losses, exactly: Newton's method on the set of active samples.

With the active samples A known, the optimum of ‖w‖²/2 + Σ Cᵢ lossᵢ² is one linear system,

    (K_AA + diag(1 / 2C)) β + b = target_A,   1'β = 0,

and the samples active at its outputs are the next A; when A repeats, the optimum is found. A step
that would raise the objective ends where this is least. Arrays are those of any library.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from tamis._namespace import cholesky_solve, diagonal, host, move, namespace, with_diagonal
from tamis.exceptions import InvalidTable
from tamis.svm.kernels import Kernel

#: Distance from the edge of the active set below which a sample may be on either side: rounding.
ON_EDGE = 1e-12
#: Halvings of where a step ends; more make no difference in double precision.
HALVINGS = 50
#: Share of the slope's promise that a step must keep; of a whole step to the optimum it is a half.
DESCENT = 0.1


class SquaredLoss(Protocol):
    """A loss that is the square of how far an output is on the wrong side of an edge."""

    def sides(self, outputs: Any) -> Any:
        """For each sample 0 where it loses nothing, else the side that it is on."""

    def targets(self, sides: Any) -> Any:
        """What active samples are drawn to."""

    def beyond(self, outputs: Any) -> Any:
        """How far each output is beyond its edge; negative where nothing is lost."""

    def pull(self, outputs: Any) -> Any:
        """The same with the sign of where the output should go; 0 where nothing is lost."""


class Hinge(NamedTuple):
    """max(0, 1 - y f), y = ±1."""

    y: Any

    def sides(self, outputs: Any) -> Any:
        xp = namespace(self.y)
        return xp.where(self.y * outputs < 1, self.y, xp.zeros_like(self.y))

    def targets(self, sides: Any) -> Any:
        return self.y

    def beyond(self, outputs: Any) -> Any:
        return 1 - self.y * outputs

    def pull(self, outputs: Any) -> Any:
        return self.y * _positive(self.beyond(outputs))


class Tube(NamedTuple):
    """max(0, |y - f| - epsilon); with an epsilon of 0 every sample is active."""

    y: Any
    epsilon: float

    def sides(self, outputs: Any) -> Any:
        xp, off = namespace(self.y), self.y - outputs
        if self.epsilon == 0:
            return xp.ones_like(off)
        return xp.where(xp.abs(off) > self.epsilon, xp.sign(off), xp.zeros_like(off))

    def targets(self, sides: Any) -> Any:
        return self.y - self.epsilon * sides

    def beyond(self, outputs: Any) -> Any:
        return namespace(self.y).abs(self.y - outputs) - self.epsilon

    def pull(self, outputs: Any) -> Any:
        return namespace(self.y).sign(self.y - outputs) * _positive(self.beyond(outputs))


def _positive(x: Any) -> Any:
    xp = namespace(x)
    return xp.where(x > 0, x, xp.zeros_like(x))


class Optimum(NamedTuple):
    """A machine on its training rows: outputs are K beta + intercept."""

    beta: Any
    intercept: float
    outputs: Any
    sides: Any
    n_steps: int
    converged: bool


def kernel_matrix(kernel: Kernel, X: Any, Y: Any) -> Any:
    """Kernel between the rows of two arrays of any library."""
    xp = namespace(X, Y)
    with np.errstate(over="ignore", invalid="ignore"):
        K = _kernel_values(kernel, X, Y)
        finite = bool(xp.all(xp.isfinite(xp.sum(K, axis=0))))  # as every number of it then is
    if not finite:
        raise InvalidTable(
            f"The {kernel.name} kernel of these columns is too large for a number. Scale the "
            "columns, for example by StandardScaler()."
        )
    return K


def _kernel_values(kernel: Kernel, X: Any, Y: Any) -> Any:
    xp = namespace(X, Y)
    if kernel.name == "linear" or not Y.shape[0]:
        return X @ Y.T
    if kernel.name == "poly":
        return (X @ Y.T * kernel.gamma + kernel.coef0) ** kernel.degree
    # distances do not see where the origin is, and lose fewer digits where it is near
    origin = xp.mean(Y, axis=0)
    own = Y - origin
    X, Y = own if X is Y else X - origin, own
    G = X @ Y.T
    G *= 2
    G -= xp.sum(X * X, axis=1)[:, None]
    G -= xp.sum(Y * Y, axis=1)[None, :]
    G = xp.minimum(G, xp.zeros_like(G[:1, :1]))
    G *= kernel.gamma
    return xp.exp(G)


def newton(
    K: Any, ridge: Any, loss: SquaredLoss, *, intercept: bool, sides: Any = None, most_steps: int
) -> Optimum:
    """The optimum of a machine with this kernel matrix.

    Parameters
    ----------
    K : array of shape (n, n)
    ridge : array
        1 / 2C of each sample.
    loss : SquaredLoss
    intercept : bool
        Whether there is an intercept, which nothing draws to 0.
    sides : array or None
        The active samples to begin with, as an optimum of similar columns has them.
    most_steps : int
    """
    nothing = namespace(K).zeros_like(ridge)
    now = Optimum(nothing, 0.0, nothing, None, 0, False)
    begun, sides = sides is not None, loss.sides(nothing) if sides is None else sides
    for n_steps in range(1, most_steps + 1):
        beta, b = _solved(K, ridge, loss, sides, intercept, now.intercept)
        step = Optimum(beta, b, K @ beta + b, sides, n_steps, False)
        # sides that were given belong to no point yet: the first step has nothing to be less than
        free = begun and n_steps == 1
        now, whole = (step, True) if free else _descended(now, step, ridge, loss)
        after = loss.sides(now.outputs)
        if whole and not _differ(loss, now.outputs, sides, after):
            return now._replace(sides=sides, converged=True)
        sides = after
    return now._replace(sides=sides)


def _solved(
    K: Any, ridge: Any, loss: SquaredLoss, sides: Any, intercept: bool, b: float
) -> tuple[Any, float]:
    """The solution for given active samples, on all samples; b stays where nobody is active."""
    xp = namespace(K)
    active = np.flatnonzero(host(sides))
    if not len(active):
        return xp.zeros_like(ridge), b
    target = loss.targets(sides)
    if len(active) == K.shape[0]:
        return _system(xp.asarray(K, copy=True), ridge, target, intercept)
    index = move(active, K, exact=True)
    own = xp.take(xp.take(K, index, axis=0), index, axis=1)
    found, b = _system(own, xp.take(ridge, index), xp.take(target, index), intercept)
    # the standard has no assignment by indices: each sample takes its place among the active
    place = np.full(K.shape[0], len(active))
    place[active] = np.arange(len(active))
    filled = xp.concat([found, xp.zeros_like(found[:1])])
    return xp.take(filled, move(place, K, exact=True)), b


def _system(matrix: Any, ridge: Any, target: Any, intercept: bool) -> tuple[Any, float]:
    """β and b of (matrix + ridge) β + b = target, 1'β = 0; the matrix is overwritten."""
    xp = namespace(matrix)
    matrix = with_diagonal(matrix, ridge)
    if not intercept:
        return cholesky_solve(matrix, target[:, None])[:, 0], 0.0
    both = cholesky_solve(matrix, xp.stack([target, xp.ones_like(target)], axis=1))
    b = float(xp.sum(both[:, 0]) / xp.sum(both[:, 1]))
    return both[:, 0] - b * both[:, 1], b


def _descended(now: Optimum, step: Optimum, ridge: Any, loss: SquaredLoss) -> tuple[Optimum, bool]:
    """The whole step, or the least objective on the way to it; and whether it is whole.

    The objective must be less by a share of what the slope promises: without it two sets of active
    samples on either side of the optimum could take turns for ever. On the way its derivative
    rises, so that the least is found by halves; where C is large, a step that only stops before
    the objective rises makes one sample active at a time.
    """
    before = _objective(now, ridge, loss)
    promised = DESCENT * _slope(now, step, ridge, loss)
    # what rounding adds to a sum is no rise
    if _objective(step, ridge, loss) <= before * (1 + ON_EDGE) + promised:
        return step, True
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        length = (low + high) / 2
        falls = _slope(_between(now, step, length), step, ridge, loss) < 0
        low, high = (length, high) if falls else (low, length)
    return _between(now, step, low), False


def _between(now: Optimum, step: Optimum, length: float) -> Optimum:
    parts = ((a, b) for a, b in zip(now[:3], step[:3], strict=True))
    beta, b, outputs = (a + length * (c - a) for a, c in parts)
    return step._replace(beta=beta, intercept=b, outputs=outputs)


def _objective(point: Optimum, ridge: Any, loss: SquaredLoss) -> float:
    """‖w‖²/2 + Σ C lossᵢ²."""
    xp = namespace(ridge)
    over = loss.pull(point.outputs)
    norm2 = xp.sum(point.beta * (point.outputs - point.intercept))
    return float(norm2 / 2 + xp.sum(over * over / (2 * ridge)))


def _slope(now: Optimum, step: Optimum, ridge: Any, loss: SquaredLoss) -> float:
    """Derivative of the objective from here towards the step, which is the less the better."""
    xp, moved = namespace(ridge), step.outputs - now.outputs
    along = now.beta * (moved - (step.intercept - now.intercept))
    return float(xp.sum(along - loss.pull(now.outputs) / ridge * moved))


def _differ(loss: SquaredLoss, outputs: Any, sides: Any, after: Any) -> bool:
    """Whether a sample changed its side by more than rounding."""
    xp = namespace(outputs)
    size = 1 + float(xp.max(xp.abs(outputs)))
    moved = (sides != after) & (xp.abs(loss.beyond(outputs)) > ON_EDGE * size)
    return bool(xp.any(moved))


def residual(ridge: Any, loss: SquaredLoss, found: Optimum) -> float:
    """What active outputs are off by, from those that the multipliers stand for."""
    xp = namespace(ridge)
    off = loss.targets(found.sides) - found.outputs - ridge * found.beta
    return float(xp.max(xp.where(found.beta != 0, xp.abs(off), xp.zeros_like(off))))


class LeftOut(NamedTuple):
    """Machines of least squares trained without one sample each, told from the one with all."""

    outputs: Any  # of each sample by the machine without it
    weights: Any  # (sample left out, sample): the multipliers of that machine
    offsets: Any


def left_out(K: Any, ridge: Any, y: Any, *, intercept: bool = True) -> LeftOut:
    """Every leave-one-out machine of least squares, for the price of one inverse.

    With P the inverse of [[K + ridge, 1], [1', 0]] without its border η, sample i has the
    multipliers β - P_i βᵢ / P_ii, the offset b - ηᵢ βᵢ / P_ii and the output yᵢ - βᵢ / P_ii.
    """
    xp, n = namespace(K), K.shape[0]
    matrix = with_diagonal(xp.asarray(K, copy=True), ridge)
    unit = xp.eye(n, dtype=K.dtype, device=K.device)
    P = cholesky_solve(matrix, unit)
    eta, b = xp.zeros_like(y), 0.0
    if intercept:
        sums = xp.sum(P, axis=1)
        total = xp.sum(sums)
        eta = sums / total
        P = P - sums[:, None] * eta[None, :]
    beta = P @ y
    b = float(xp.sum(eta * y))
    step = beta / diagonal(P)
    return LeftOut(y - step, beta[None, :] - P * step[:, None], b - eta * step)
