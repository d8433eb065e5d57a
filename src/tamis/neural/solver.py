"""Minimisers of many functions at one time: each call evaluates one point of every run.

An objective is called as ``objective(points, runs)`` with one row of ``points`` for each of the
``runs`` and returns their values and gradients. Small problems are dominated by the cost of a
call, so twenty-five runs in one call are far cheaper than one after the other.
"""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from tamis._arrays import Array, Mask
from tamis._checks import NONE, Constraints, integer, number, one_of
from tamis._seeds import stream

SOLVERS = ("lbfgs", "adam")

Runs = NDArray[np.intp]
#: Called with every point that runs have come to: their indices in the last call, the runs, the
#: points.
Watch = Callable[[Runs, Runs, Array], None]
Batches = Callable[[int], Iterator[NDArray[np.intp]]]

#: Least fall of the value that a step must bring, as a share of what the slope promises, and the
#: share of the slope that may be left (Armijo and Wolfe).
SUFFICIENT_FALL, SLOPE_LEFT = 1e-4, 0.9
MOST_TRIALS = 25
#: From this number of parameters on past steps are remembered in single precision: reading them is
#: most of the work, and they only shape the direction.
SINGLE_FROM = 10_000


class BatchObjective(Protocol):
    """Values and gradients of the runs at their points; on some rows of the data, if given."""

    def __call__(
        self, points: Array, runs: Runs, rows: NDArray[np.intp] | None = None
    ) -> tuple[Array, Array]: ...


class GateSolver(BaseEstimator):
    """Minimiser of a :class:`GateSelector`.

    Before the same network both kinds end at the same linear gates; bounded ones, which stay open
    or closed, may be decided differently.

    Parameters
    ----------
    kind : {"lbfgs", "adam"}, default="lbfgs"
    max_iter : int, default=1000
        Iterations of L-BFGS, or epochs of Adam, at the most.
    tol : float, default=1e-5
        Relative change of the objective below which gates are at rest.
    learning_rate : float, default=0.02
        Of Adam.
    batch_size : int or None, default=None
        Rows of each step of Adam; None for all.

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

    def __init__(
        self,
        kind: str = "lbfgs",
        *,
        max_iter: int = 1000,
        tol: float = 1e-5,
        learning_rate: float = 0.02,
        batch_size: int | None = None,
    ):
        self.kind = kind
        self.max_iter = max_iter
        self.tol = tol
        self.learning_rate = learning_rate
        self.batch_size = batch_size

    def minimise(
        self, objective: BatchObjective, start: Array, n_samples: int, seed: int, **options: Any
    ) -> tuple[Array, Array]:
        """Return where every run ends, and its value there.

        ``options`` are those of :func:`lbfgs` and :func:`adam`; ranges and lengths of steps, which
        Adam does not know, are left out there.
        """
        options |= {"max_iter": self.max_iter, "tol": self.tol}
        if self.kind == "lbfgs":
            return lbfgs(objective, start, **options)
        options = {name: options[name] for name in ("max_iter", "tol", "watch")}
        rows = batches(n_samples, self.batch_size, seed)
        return adam(objective, start, learning_rate=self.learning_rate, batches=rows, **options)


def batches(n_samples: int, size: int | None, seed: int) -> Batches | None:
    """Rows of each step of an epoch, sorted, in an order drawn by its number; None for all."""
    if size is None or size >= n_samples:
        return None

    def draw(epoch: int) -> Iterator[NDArray[np.intp]]:
        rows = stream(seed, "batches", epoch).permutation(n_samples)
        return (np.sort(rows[first : first + size]) for first in range(0, n_samples, size))

    return draw


def _ignore(evaluated: Runs, runs: Runs, points: Array) -> None:
    """Watch nothing."""


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
    """Limited-memory BFGS in lock-step: every run has its own line search and its own end.

    A run ends when its value falls by less than ``tol``, relatively, in five steps together, or
    when no step along its direction lowers it. A value that is not finite counts as too long a
    step; no parameter moves by more than ``longest`` in one step, nor below its ``lowest``.

    Returns
    -------
    points, values : arrays of shape (n_runs, n_parameters) and (n_runs,)
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
    """Line searches: the next step of each run, between one too short and one too long."""

    def __init__(self, n_runs: int, longest: float):
        self._longest = longest
        self.length, self._furthest, self._slope = np.empty((3, n_runs))
        self._low, self._high = np.empty((2, n_runs))
        self._trials = np.zeros(n_runs, dtype=int)

    def begin(
        self, runs: Runs, gradients: Array, directions: Array, first: Array | float = 1.0
    ) -> None:
        """New directions, and the step that is tried first."""
        self._slope[runs] = _dot(gradients, directions)
        self._furthest[runs] = self._longest / _largest(directions)
        self.length[runs] = np.minimum(first, self._furthest[runs])
        self._low[runs], self._high[runs], self._trials[runs] = 0.0, np.inf, 0

    def weigh(self, runs: Runs, change: Array, slope_left: Array) -> tuple[Mask, Mask]:
        """Which steps are taken, by what they changed; which runs are stuck. Others try again."""
        step, slope = self.length[runs], self._slope[runs]
        fallen = np.isfinite(change) & (change <= SUFFICIENT_FALL * step * slope)
        flat = slope_left >= SLOPE_LEFT * slope
        # too long where the value has not fallen, too short where it still falls steeply
        self._high[runs[~fallen]] = step[~fallen]
        self._low[runs[fallen & ~flat]] = step[fallen & ~flat]
        self._trials[runs] += 1
        weary = self._trials[runs] >= MOST_TRIALS
        longer = np.minimum(2 * step, self._furthest[runs])
        between = (self._low[runs] + self._high[runs]) / 2
        self.length[runs] = np.where(np.isinf(self._high[runs]), longer, between)
        accepted = fallen & (flat | weary | (step >= self._furthest[runs]))
        return accepted, weary & ~accepted


class _History:
    """Last steps of each run and the changes of the gradient over them, in rings.

    The approximate inverse Hessian is used in its compact form (Byrd, Nocedal and Schnabel 1994,
    theorem 2.2): it reads what is remembered three times for a direction, one run after the other,
    where the usual recursion would go through it pair by pair.
    """

    def __init__(self, n_runs: int, memory: int, n_parameters: int):
        dtype = np.float32 if n_parameters >= SINGLE_FROM else np.float64
        self._memory = memory
        self._pairs = np.zeros((n_runs, 2 * memory, n_parameters), dtype)  # steps, then changes
        # steps and changes times changes; an empty slot has a curvature of 1 and steps of 0
        self._products = np.zeros((n_runs, 2 * memory, memory))
        self._products[:, :memory] = np.eye(memory)
        self._scale = np.ones(n_runs)
        self._next = np.zeros(n_runs, dtype=np.intp)

    def add(self, run: int, step: Array, change: Array) -> None:
        """Remember a step of a run, if the gradient grew along it."""
        curvature, size = step @ change, change @ change
        if not curvature > 1e-10 * size:
            return
        slot, memory, pairs = self._next[run], self._memory, self._pairs[run]
        pairs[slot], pairs[memory + slot] = step, change
        products = pairs @ pairs[memory + slot]
        self._products[run, memory + slot] = products[memory:]
        self._products[run, :, slot] = products
        self._products[run, slot, slot] = curvature  # rounding could make it negative
        self._scale[run] = curvature / size
        self._next[run] = (slot + 1) % memory

    def downhill(
        self, runs: Runs, gradients: Array, points: Array, lowest: Array | float = -np.inf
    ) -> Array:
        """Directions in which the values fall, and no parameter leaves its range."""
        directions = _inside(-self.times(runs, gradients), points, lowest)
        uphill = _dot(gradients, directions) >= 0  # by rounding, or by what may not move
        directions[uphill] = _inside(-gradients[uphill], points[uphill], lowest)
        return directions

    def times(self, runs: Runs, gradients: Array) -> Array:
        """The approximate inverse Hessian times each gradient."""
        memory, scale = self._memory, self._scale[runs, None]
        pairs = [self._pairs[run] for run in runs]
        single = gradients.astype(self._pairs.dtype, copy=False)
        along = np.array([pair @ g for pair, g in zip(pairs, single, strict=True)], dtype=float)
        age = (self._next[runs, None] + np.arange(memory)) % memory  # the oldest first
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
        for moved, share, pair in zip(result, shares.astype(single.dtype), pairs, strict=True):
            moved += share @ pair
        return result


def _solve(matrices: Array, rows: Array) -> Array:
    """Solution of each system of equations."""
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
    """Adam (Kingma and Ba 2015), for every run until its value rests or ``max_iter`` epochs.

    A run ends when its value changes by less than ``tol``, relatively, over ``patience`` epochs, or
    is no longer finite; then the best point it came to is given back. ``batches`` gives the rows of
    each step of an epoch, by default all rows in one step.
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
    """Directions without what leads a parameter below its least value."""
    return np.where((points <= lowest) & (directions < 0), 0.0, directions)


def _norm(rows: Array) -> Array:
    """Length of each row, infinite where it is too long to be squared."""
    with np.errstate(over="ignore"):
        return np.sqrt(_dot(rows, rows))


def _largest(rows: Array) -> Array:
    """Largest absolute value of each row, never 0."""
    return np.maximum(np.abs(rows).max(axis=1), np.finfo(float).tiny)


def _dot(left: Array, right: Array) -> Array:
    """Scalar product of each pair of rows."""
    return np.einsum("rp,rp->r", left, right)
