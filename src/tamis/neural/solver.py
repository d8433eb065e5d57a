"""Optimisers (L-BFGS, Adam) that minimise many functions in one batch.

An objective is called as ``objective(points, runs)``, where row i of ``points`` belongs to the run
with the index ``runs[i]``. It returns the value and gradient of each run. For small problems the
overhead of a call dominates, so a single call for many runs is much cheaper than one call per run.
"""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from tamis._arrays import Array, Mask
from tamis._checks import NONE, Constraints, integer, number, one_of
from tamis._seeds import stream

SOLVERS = ("lbfgs", "adam")

Runs = NDArray[np.intp]
#: Callback for accepted points. Its arguments are the positions of the runs in the last call of the
#: objective, the indices of the runs, and their points.
Watch = Callable[[Runs, Runs, Array], None]
Batches = Callable[[int], Iterator[NDArray[np.intp]]]

#: Constants of the Armijo condition (sufficient decrease) and of the Wolfe condition (curvature).
SUFFICIENT_FALL, SLOPE_LEFT = 1e-4, 0.9
#: Maximum number of step lengths that a line search tries.
MOST_TRIALS = 25
#: With at least this many parameters, past steps are stored in single precision. Reading past steps
#: takes most of the time, and rounding them only affects the search direction.
SINGLE_FROM = 10_000


class BatchObjective(Protocol):
    """Function that returns the values and gradients of runs, on all rows or only on ``rows``."""

    def __call__(
        self, points: Array, runs: Runs, rows: NDArray[np.intp] | None = None
    ) -> tuple[Array, Array]: ...


@dataclass(eq=False, repr=False)
class GateSolver(BaseEstimator):
    """Optimiser of a :class:`GateSelector`.

    For the same network, both algorithms find the same linear gates. For bounded gates, they may
    find different local minima.

    Parameters
    ----------
    kind : {"lbfgs", "adam"}, default="lbfgs"
        Algorithm.
    max_iter : int, default=1000
        Maximum number of iterations of L-BFGS, or of epochs of Adam.
    tol : float, default=1e-5
        Relative change of the objective below which the optimiser stops.
    learning_rate : float, default=0.02
        Learning rate of Adam.
    batch_size : int or None, default=None
        Number of rows per step of Adam. None uses all rows.

    Examples
    --------
    >>> from tamis.neural import GateSelector, GateSolver
    >>> GateSelector(solver=GateSolver("adam", max_iter=200)).get_params()["solver__max_iter"]
    200
    """

    _constraints: ClassVar[Constraints] = {
        "kind": one_of(*SOLVERS),
        "max_iter": integer(1),
        "tol": number(least=0),
        "learning_rate": number(above=0),
        "batch_size": integer(1) | NONE,
    }

    kind: str = "lbfgs"
    _: KW_ONLY
    max_iter: int = 1000
    tol: float = 1e-5
    learning_rate: float = 0.02
    batch_size: int | None = None

    def minimise(
        self, objective: BatchObjective, start: Array, n_samples: int, seed: int, **options: Any
    ) -> tuple[Array, Array]:
        """Return the final point and value of each run.

        ``options`` are the options of :func:`lbfgs`. Adam ignores bounds and step lengths.
        """
        options |= {"max_iter": self.max_iter, "tol": self.tol}
        if self.kind == "lbfgs":
            return lbfgs(objective, start, **options)
        options = {name: options[name] for name in ("max_iter", "tol", "watch")}
        rows = batches(n_samples, self.batch_size, seed)
        return adam(objective, start, learning_rate=self.learning_rate, batches=rows, **options)


def batches(n_samples: int, size: int | None, seed: int) -> Batches | None:
    """Return a function that draws the mini-batches of an epoch, or None for full batches."""
    if size is None or size >= n_samples:
        return None

    def draw(epoch: int) -> Iterator[NDArray[np.intp]]:
        rows = stream(seed, "batches", epoch).permutation(n_samples)
        return (np.sort(rows[first : first + size]) for first in range(0, n_samples, size))

    return draw


def _ignore(evaluated: Runs, runs: Runs, points: Array) -> None:
    """Do nothing. This is the default callback."""


def lbfgs(
    objective: BatchObjective,
    start: Array,
    *,
    max_iter: int = 200,
    memory: int = 6,
    tol: float = 1e-6,
    longest: float = np.inf,
    lowest: Array | float = -np.inf,
    watch: Watch = _ignore,
) -> tuple[Array, Array]:
    """Minimise by limited-memory BFGS, with a line search and a stopping rule for each run.

    A run ends when the relative decrease of its value over five steps is below ``tol``, or when no
    step in the search direction decreases the value. A step to a non-finite value is treated as too
    long. No parameter changes by more than ``longest`` in one step, or falls below ``lowest``.

    Returns
    -------
    points, values : arrays of shape (n_runs, n_parameters) and (n_runs,)
        Final point and value of each run.
    """
    points = start.copy()
    everyone = np.arange(len(points))
    values, gradients = objective(points, everyone)
    watch(everyone, everyone, points)
    history = _History(len(points), memory, points.shape[1])
    directions = _inside(-gradients, points, lowest)
    steps = _LineSearches(len(points), longest)
    steps.begin(everyone, gradients, directions, 1 / np.maximum(1.0, _norm(gradients)))
    iterations, five_ago = np.zeros(len(points), dtype=int), values.copy()
    finite = np.isfinite(values) & np.isfinite(gradients).all(axis=1)
    active = np.flatnonzero(finite & (gradients != 0).any(axis=1))
    while len(active):
        tried = points[active] + steps.length[active, None] * directions[active]
        np.maximum(tried, lowest, out=tried)
        new_values, new_gradients = objective(tried, active)
        slope_left = _dot(new_gradients, directions[active])
        accepted, stuck = steps.weigh(active, new_values - values[active], slope_left)
        done, indices = active[accepted], np.flatnonzero(accepted)
        if len(done):
            watch(indices, done, tried[accepted])
            for k, run in zip(indices, done, strict=True):
                history.add(run, tried[k] - points[run], new_gradients[k] - gradients[run])
                points[run], gradients[run] = tried[k], new_gradients[k]
            values[done] = new_values[accepted]
            directions[done] = history.downhill(done, gradients[done], points[done], lowest)
            steps.begin(done, gradients[done], directions[done])
            iterations[done] += 1
        rested = done[iterations[done] % 5 == 0]
        fall = five_ago[rested] - values[rested]
        at_rest = rested[fall <= tol * np.maximum(np.abs(values[rested]), 1e-12)]
        five_ago[rested] = values[rested]
        ended = np.concatenate([active[stuck], at_rest, done[iterations[done] >= max_iter]])
        active = np.setdiff1d(active, ended)
    return points, values


class _LineSearches:
    """Line searches of all runs, by bisection between a step too short and a step too long."""

    def __init__(self, n_runs: int, longest: float):
        self._longest = longest
        self.length, self._furthest, self._slope = np.empty((3, n_runs))
        self._low, self._high = np.empty((2, n_runs))
        self._trials = np.zeros(n_runs, dtype=int)

    def begin(
        self, runs: Runs, gradients: Array, directions: Array, first: Array | float = 1.0
    ) -> None:
        """Set new directions and the first step length to try."""
        self._slope[runs] = _dot(gradients, directions)
        self._furthest[runs] = self._longest / _largest(directions)
        self.length[runs] = np.minimum(first, self._furthest[runs])
        self._low[runs], self._high[runs], self._trials[runs] = 0.0, np.inf, 0

    def weigh(self, runs: Runs, change: Array, slope_left: Array) -> tuple[Mask, Mask]:
        """Return masks of the accepted steps and of the runs that are stuck.

        All other runs try a different step length.
        """
        step, slope = self.length[runs], self._slope[runs]
        fallen = np.isfinite(change) & (change <= SUFFICIENT_FALL * step * slope)
        flat = slope_left >= SLOPE_LEFT * slope
        # a step is too long if the value has not fallen enough, too short if it still falls steeply
        self._high[runs[~fallen]] = step[~fallen]
        self._low[runs[fallen & ~flat]] = step[fallen & ~flat]
        self._trials[runs] += 1
        last_trial = self._trials[runs] >= MOST_TRIALS
        longer = np.minimum(2 * step, self._furthest[runs])
        between = (self._low[runs] + self._high[runs]) / 2
        self.length[runs] = np.where(np.isinf(self._high[runs]), longer, between)
        accepted = fallen & (flat | last_trial | (step >= self._furthest[runs]))
        return accepted, last_trial & ~accepted


class _History:
    """Ring buffer of the last steps of each run, and of the change of the gradient in each step.

    The approximate inverse Hessian is used in its compact form (Byrd, Nocedal and Schnabel 1994,
    theorem 2.2). A direction then needs three passes over the buffer instead of a recursion over
    the stored pairs.
    """

    def __init__(self, n_runs: int, memory: int, n_parameters: int):
        dtype = np.float32 if n_parameters >= SINGLE_FROM else np.float64
        self._memory = memory
        self._pairs = np.zeros((n_runs, 2 * memory, n_parameters), dtype)  # steps, then changes
        # inner products of all steps and changes with the changes; an empty position has curvature
        # 1
        self._products = np.zeros((n_runs, 2 * memory, memory))
        self._products[:, :memory] = np.eye(memory)
        self._scale = np.ones(n_runs)
        self._next = np.zeros(n_runs, dtype=np.intp)

    def add(self, run: int, step: Array, change: Array) -> None:
        """Store a step of a run and the change of its gradient, if the curvature is positive."""
        curvature, size = step @ change, change @ change
        if not curvature > 1e-10 * size:
            return
        slot, memory, pairs = self._next[run], self._memory, self._pairs[run]
        pairs[slot], pairs[memory + slot] = step, change
        products = pairs @ pairs[memory + slot]
        self._products[run, memory + slot] = products[memory:]
        self._products[run, :, slot] = products
        self._products[run, slot, slot] = curvature  # exact; the rounded product may be negative
        self._scale[run] = curvature / size
        self._next[run] = (slot + 1) % memory

    def downhill(
        self, runs: Runs, gradients: Array, points: Array, lowest: Array | float = -np.inf
    ) -> Array:
        """Return descent directions that do not move parameters below their lower bound."""
        directions = _inside(-self.times(runs, gradients), points, lowest)
        # such directions are due to rounding, or to parameters at a bound
        uphill = _dot(gradients, directions) >= 0
        directions[uphill] = _inside(-gradients[uphill], points[uphill], lowest)
        return directions

    def times(self, runs: Runs, gradients: Array) -> Array:
        """Multiply the approximate inverse Hessian of each run by its gradient."""
        memory, scale = self._memory, self._scale[runs, None]
        pairs = [self._pairs[run] for run in runs]
        single = gradients.astype(self._pairs.dtype, copy=False)
        along = np.array([pair @ g for pair, g in zip(pairs, single, strict=True)], dtype=float)
        age = (self._next[runs, None] + np.arange(memory)) % memory  # oldest position first
        row = np.arange(len(runs))[:, None]
        products = self._products[runs]
        R = np.triu(products[row[:, None], age[:, :, None], age[:, None]])
        changes = products[row[:, None], memory + age[:, :, None], age[:, None]]
        u = _solve(R, along[row, age])
        w = np.einsum("rkk,rk->rk", R, u)
        w += scale * (np.einsum("rkl,rl->rk", changes, u) - along[row, memory + age])
        shares = np.empty_like(along)
        shares[row, age] = _solve(R.swapaxes(1, 2), w)
        shares[row, memory + age] = -scale * u
        result = scale * gradients
        for product, share, pair in zip(result, shares.astype(single.dtype), pairs, strict=True):
            product += share @ pair
        return result


def _solve(matrices: Array, rows: Array) -> Array:
    """Solve one system of linear equations for each matrix and row."""
    return np.linalg.solve(matrices, rows[:, :, None])[:, :, 0].astype(float, copy=False)


def adam(
    objective: BatchObjective,
    start: Array,
    *,
    max_iter: int = 1000,
    learning_rate: float = 0.02,
    tol: float = 1e-5,
    patience: int = 50,
    batches: Batches | None = None,
    watch: Watch = _ignore,
) -> tuple[Array, Array]:
    """Minimise by Adam (Kingma and Ba 2015). Return the best point and value of each run.

    A run ends after ``max_iter`` epochs, when the relative change of its value over ``patience``
    epochs is below ``tol``, or when the value is no longer finite. ``batches`` is a function that
    returns the mini-batches of an epoch. By default all rows form a single batch.
    """
    points = start.copy()
    mean, square = np.zeros_like(points), np.zeros_like(points)
    best, lowest = points.copy(), np.full(len(points), np.inf)
    before = np.full(len(points), np.inf)
    active, taken = np.arange(len(points)), 0
    for epoch in range(max_iter + 1):
        values, gradients = objective(points[active], active)
        watch(np.arange(len(active)), active, points[active])
        better = values < lowest[active]
        lowest[active[better]], best[active[better]] = values[better], points[active[better]]
        going = np.isfinite(values)
        if epoch % patience == 0:
            going &= np.abs(before[active] - values) > tol * np.maximum(np.abs(values), 1e-12)
            before[active] = values
        if epoch == max_iter or not going.any():
            break
        active, gradients = active[going], gradients[going]
        for rows in [None] if batches is None else batches(epoch):
            if rows is not None:
                gradients = objective(points[active], active, rows)[1]
            taken += 1
            mean[active] += 0.1 * (gradients - mean[active])
            square[active] += 0.001 * (gradients**2 - square[active])
            rate = learning_rate * np.sqrt(1 - 0.999**taken) / (1 - 0.9**taken)
            points[active] -= rate * mean[active] / (np.sqrt(square[active]) + 1e-8)
    return best, lowest


def _inside(directions: Array, points: Array, lowest: Array | float) -> Array:
    """Return directions without the components that would move a parameter below its bound."""
    return np.where((points <= lowest) & (directions < 0), 0.0, directions)


def _norm(rows: Array) -> Array:
    """Return the norm of each row, or infinity if the square of the norm overflows."""
    with np.errstate(over="ignore"):
        return np.sqrt(_dot(rows, rows))


def _largest(rows: Array) -> Array:
    """Return the largest absolute value of each row, or a tiny number instead of 0."""
    return np.maximum(np.abs(rows).max(axis=1), np.finfo(float).tiny)


def _dot(left: Array, right: Array) -> Array:
    """Return the scalar product of each pair of rows."""
    return np.einsum("rp,rp->r", left, right)
