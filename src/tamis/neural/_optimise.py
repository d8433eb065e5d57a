"""Minimisers of many functions at one time: each call evaluates one point of every run.

An objective is called as ``objective(points, runs)`` with one row of ``points`` for each of the
``runs`` and answers their values and gradients; small problems are dominated by the cost of a
call, so that twenty-five runs in one call are far cheaper than one after the other.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array

Runs = NDArray[np.intp]
#: Told of every point that runs have come to: their places in the last call, the runs, the points.
Watch = Callable[[Runs, Runs, Array], None]

#: Least fall of the value that a step must bring, as a share of what the slope promises, and the
#: share of the slope that may be left (Armijo and Wolfe).
SUFFICIENT_FALL, SLOPE_LEFT = 1e-4, 0.9
MOST_TRIALS = 25


class Objective(Protocol):
    """Values and gradients of the runs at their points; on some rows of the data, if given."""

    def __call__(
        self, points: Array, runs: Runs, rows: NDArray[np.intp] | None = None
    ) -> tuple[Array, Array]: ...


def _ignore(evaluated: Runs, runs: Runs, points: Array) -> None:
    """Watch of one who does not want to know."""


def lbfgs(
    objective: Objective,
    start: Array,
    *,
    max_iter: int = 200,
    memory: int = 6,
    tol: float = 1e-6,
    longest: float = np.inf,
    watch: Watch = _ignore,
) -> tuple[Array, Array]:
    """Limited-memory BFGS in lock-step: every run has its own line search and its own end.

    A run ends when its value falls by less than ``tol``, relatively, in five steps together, or
    when no step along its direction lowers it. A value that is not finite counts as too long a
    step; no parameter moves by more than ``longest`` in one step.

    Returns
    -------
    points, values : arrays of shape (n_runs, n_parameters) and (n_runs,)
    """
    points = start.copy()
    n_runs, n_parameters = points.shape
    everyone = np.arange(n_runs)
    values, gradients = objective(points, everyone)
    watch(everyone, everyone, points)
    history = _History(n_runs, memory, n_parameters, points.dtype)
    directions = -gradients
    steps = np.minimum(1 / np.maximum(1.0, _norm(gradients)), longest / _largest(directions))
    low, high, trials = np.zeros(n_runs), np.full(n_runs, np.inf), np.zeros(n_runs, dtype=int)
    iterations, five_ago = np.zeros(n_runs, dtype=int), values.copy()
    finite = np.isfinite(values) & np.isfinite(gradients).all(axis=1)
    active = np.flatnonzero(finite & (gradients != 0).any(axis=1))
    while len(active):
        tried = points[active] + steps[active, None] * directions[active]
        new_values, new_gradients = objective(tried, active)
        slope = _dot(gradients[active], directions[active])
        fallen = new_values <= values[active] + SUFFICIENT_FALL * steps[active] * slope
        fallen &= np.isfinite(new_values)
        flat = _dot(new_gradients, directions[active]) >= SLOPE_LEFT * slope
        # too long where the value has not fallen, too short where it still falls steeply
        high[active[~fallen]] = steps[active[~fallen]]
        low[active[fallen & ~flat]] = steps[active[fallen & ~flat]]
        trials[active] += 1
        far = steps[active] >= longest / _largest(directions[active])
        accepted = fallen & (flat | far | (trials[active] >= MOST_TRIALS))
        stuck = ~accepted & (trials[active] >= MOST_TRIALS)
        longer = np.minimum(2 * steps[active], longest / _largest(directions[active]))
        between = (low[active] + high[active]) / 2
        steps[active] = np.where(np.isinf(high[active]), longer, between)
        done = active[accepted]
        if len(done):
            watch(np.flatnonzero(accepted), done, tried[accepted])
            history.add(
                done, tried[accepted] - points[done], new_gradients[accepted] - gradients[done]
            )
            points[done], gradients[done] = tried[accepted], new_gradients[accepted]
            values[done] = new_values[accepted]
            directions[done] = -history.times(done, gradients[done])
            low[done], high[done], trials[done] = 0.0, np.inf, 0
            steps[done] = np.minimum(1.0, longest / _largest(directions[done]))
            iterations[done] += 1
        rested = done[iterations[done] % 5 == 0]
        ended = rested[
            five_ago[rested] - values[rested] <= tol * np.maximum(np.abs(values[rested]), 1e-12)
        ]
        five_ago[rested] = values[rested]
        ended = np.concatenate([active[stuck], ended, done[iterations[done] >= max_iter]])
        active = np.setdiff1d(active, ended)
    return points, values


class _History:
    """Last steps of each run and the changes of the gradient over them, in rings."""

    def __init__(self, n_runs: int, memory: int, n_parameters: int, dtype: Any):
        self._steps = np.zeros((n_runs, memory, n_parameters), dtype)
        self._changes = np.zeros_like(self._steps)
        self._curvature = np.zeros((n_runs, memory))  # 0 marks an empty place
        self._scale = np.ones(n_runs)
        self._next = np.zeros(n_runs, dtype=np.intp)

    def add(self, runs: Runs, steps: Array, changes: Array) -> None:
        """Remember a step of each run, if the gradient grew along it."""
        curvature, size = _dot(steps, changes), _dot(changes, changes)
        useful = curvature > 1e-10 * size
        runs, curvature, size = runs[useful], curvature[useful], size[useful]
        place = self._next[runs]
        self._steps[runs, place], self._changes[runs, place] = steps[useful], changes[useful]
        self._curvature[runs, place] = curvature
        self._scale[runs] = curvature / size
        self._next[runs] = (place + 1) % self._steps.shape[1]

    def times(self, runs: Runs, gradients: Array) -> Array:
        """The approximate inverse Hessian times each gradient, by the two-loop recursion."""
        memory = self._steps.shape[1]
        result, shares = gradients.copy(), []
        for back in range(1, memory + 1):
            place = (self._next[runs] - back) % memory
            curvature = self._curvature[runs, place]
            known = np.where(curvature > 0, curvature, np.inf)
            share = _dot(self._steps[runs, place], result) / known
            result -= share[:, None] * self._changes[runs, place]
            shares.append((place, known, share))
        result *= self._scale[runs, None]
        for place, known, share in reversed(shares):
            correction = share - _dot(self._changes[runs, place], result) / known
            # an empty place has zero steps
            result += correction[:, None] * self._steps[runs, place]
        return result


def adam(
    objective: Objective,
    start: Array,
    *,
    max_iter: int = 1000,
    learning_rate: float = 0.02,
    tol: float = 1e-5,
    patience: int = 50,
    batches: Callable[[int], Iterable[NDArray[np.intp]]] | None = None,
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
