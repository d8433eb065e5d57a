"""Training of many networks at one time, each kept where it did best on its held-out rows."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis._seeds import stream
from tamis.exceptions import NotConverged
from tamis.neural._objectives import NetworkLoss, Stack
from tamis.neural.solver import GateSolver, Runs

#: Numbers of an array that holds something for each network: 128 MB, which a machine reads in some
#: tenths of a second, so that an interrupt is soon answered.
MOST_NUMBERS = 1 << 24
#: Relative change of the loss at which each minimiser stops.
TOLERANCE = {"lbfgs": 1e-6, "adam": 1e-5}


class Trained(NamedTuple):
    """Networks, their accuracy and loss on held-out rows, and how they came there.

    ``history`` has an array of shape (n_epochs, n_networks) for each of ``validation_accuracy`` and
    ``validation_loss``, in the end nan for networks that ended early; it is empty where no rows
    were held out.
    """

    stack: Stack
    accuracy: Array
    loss: Array
    n_iter: int
    history: dict[str, Array]

    @property
    def best(self) -> int:
        """The network of greatest accuracy; of ties the one of least loss."""
        return int(np.lexsort((self.loss, -self.accuracy))[0])


def train(
    settings: Any,
    X: Array,
    codes: NDArray[np.intp],
    held_out: Mask,
    *,
    masks: Array | None = None,
    early_stopping: bool = True,
) -> Trained:
    """Train one network for each row of ``held_out``, which marks what it must not learn from.

    Parameters
    ----------
    settings : NetworkClassifier
        With ``random_state`` as a number.
    masks : array of shape (n_networks, n_features)
        1 for the inputs that a network has, 0 for others.
    early_stopping : bool
        Whether a network is kept where it was best on its held-out rows; else where it ended.
    """
    shape, found, diverged = (settings.hidden, int(codes.max()) + 1), [], False
    for group in groups(len(held_out), X.shape[1], *shape, len(X)):
        learns = ~held_out[group]
        weights = learns / learns.sum(axis=1, keepdims=True)
        objective = NetworkLoss(
            settings, X, codes, weights, masks if masks is None else masks[group]
        )
        stack = Stack.drawn(settings.random_state, len(learns), *objective.shape, first=group.start)
        if objective.masks is not None:
            stack = stack._replace(inner=stack.inner * objective.masks[:, :, None])
        watch = _Watch(objective, held_out[group], stack.packed(), early_stopping)
        found.append(_train(settings, watch, stack.packed()))
        diverged |= watch.diverged
    if diverged:
        warn(
            "The training of a network diverged; its best weights before that are kept. Use a "
            "smaller learning_rate.",
            NotConverged,
            stacklevel=2,
        )
    stacks, accuracies, losses, n_iters, histories = zip(*found, strict=True)
    return Trained(
        Stack(*(np.concatenate(weights) for weights in zip(*stacks, strict=True))),
        np.concatenate(accuracies),
        np.concatenate(losses),
        max(n_iters),
        {name: _side_by_side([part[name] for part in histories]) for name in histories[0]},
    )


def groups(
    n_networks: int, n_inputs: int, hidden: int, n_classes: int, n_samples: int
) -> Iterator[slice]:
    """Networks that are trained together: as many as there is room for, at least one."""
    numbers = n_samples * (hidden + n_classes) + (n_inputs + n_classes + 1) * hidden + n_classes
    size = min(max(MOST_NUMBERS // numbers, 1), n_networks)
    return (slice(k, min(k + size, n_networks)) for k in range(0, n_networks, size))


def _train(settings: Any, watch: "_Watch", start: Array) -> Trained:
    """Train the networks of one group."""
    objective, shape = watch.objective, watch.objective.shape
    solver = GateSolver(
        settings.solver,
        max_iter=settings.max_iter,
        tol=TOLERANCE[settings.solver],
        learning_rate=settings.learning_rate,
        batch_size=settings.batch_size,
    )
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is never kept
        points, values = solver.minimise(
            objective, start, len(objective.X), settings.random_state, watch=watch.see
        )
    if not watch.held_out.any():
        unknown = np.full(len(points), np.nan)
        return Trained(Stack.unpacked(points, *shape), unknown, values, watch.n_iter, {})
    stack = Stack.unpacked(watch.points, *shape)
    return Trained(stack, watch.accuracy, watch.loss, watch.n_iter, watch.history)


class _Watch:
    """Keeps the point of each network that did best on its held-out rows, or the last."""

    def __init__(self, objective: NetworkLoss, held_out: Mask, start: Array, early_stopping: bool):
        self.objective, self.held_out = objective, held_out
        self.points, self._early_stopping = start, early_stopping
        self._shares = held_out / np.maximum(held_out.sum(axis=1, keepdims=True), 1)
        self.accuracy = np.full(len(held_out), -np.inf)
        self.loss = np.full(len(held_out), np.inf)
        self.diverged = False
        self._seen: list[tuple[Runs, Array]] = []

    def see(self, evaluated: Runs, runs: Runs, points: Array) -> None:
        """Score the ``runs``, which were the ``evaluated`` ones of the last call."""
        p, shares = self.objective.outputs[evaluated], self._shares[runs]
        codes = self.objective.codes
        accuracy = np.einsum("kn,kn->k", shares, p.argmax(axis=2) == codes)
        truth = np.maximum(p[:, np.arange(len(codes)), codes], 1e-300)
        loss = -np.einsum("kn,kn->k", shares, np.log(truth))
        same = accuracy == self.accuracy[runs]
        better = (accuracy > self.accuracy[runs]) | (same & (loss < self.loss[runs]))
        better = np.isfinite(p).all(axis=(1, 2)) & (better | (not self._early_stopping))
        self.diverged |= not np.isfinite(p).all()
        which = runs[better]
        self.accuracy[which], self.loss[which] = accuracy[better], loss[better]
        self.points[which] = points[better]
        self._seen.append((runs, np.array([accuracy, loss])))

    @property
    def n_iter(self) -> int:
        """Number of points, the start not counted, that the longest training came to."""
        return int(max(np.bincount(np.concatenate([runs for runs, _ in self._seen]))) - 1)

    @property
    def history(self) -> dict[str, Array]:
        """Accuracy and loss of every network at the points it came to, one after the other."""
        names = ("validation_accuracy", "validation_loss")
        return histories(names, self._seen, len(self.loss))


def _side_by_side(tables: list[Array]) -> Array:
    """Join tables of different lengths side by side, shorter ones filled up with nan."""
    longest = max(len(table) for table in tables)
    missing = [np.full((longest - len(table), table.shape[1]), np.nan) for table in tables]
    return np.hstack([np.vstack(pair) for pair in zip(tables, missing, strict=True)])


def histories(
    names: tuple[str, ...], seen: list[tuple[Runs, Array]], n_runs: int
) -> dict[str, Array]:
    """Tables of shape (n_epochs, n_runs) by name: what was seen of each run in turn, then nan.

    Each of ``seen`` holds some runs, and one row of their values for each name.
    """
    counts = np.zeros(n_runs, dtype=np.intp)
    tables = np.full((len(names), len(seen), n_runs), np.nan)
    for runs, values in seen:
        tables[:, counts[runs], runs] = values
        counts[runs] += 1
    return dict(zip(names, tables[:, : counts.max(initial=0)], strict=True))


def deal(codes: NDArray[np.intp], n_folds: int, seed: int) -> NDArray[np.intp]:
    """Return the fold of each row, the rows of every class shared out evenly, however few.

    The folds that get one row more follow on from class to class, so that folds differ by one row
    at the most.
    """
    folds, given = np.empty(len(codes), dtype=np.intp), 0
    for c in range(codes.max() + 1):
        rows = stream(seed, "folds", c).permutation(np.flatnonzero(codes == c))
        folds[rows] = (given + np.arange(len(rows))) % n_folds
        given += len(rows)
    return folds


def held_out_rows(
    codes: NDArray[np.intp], validation: int | float | None, restarts: int, seed: int
) -> Mask:
    """Return one row for each network: the rows that it leaves out."""
    if validation is None:
        return np.zeros((restarts, len(codes)), dtype=bool)
    if validation >= 1:
        n_folds = min(int(validation), len(codes))
        folds = deal(codes, n_folds, seed)
        return np.repeat(folds == np.arange(n_folds)[:, None], restarts, axis=0)
    # a share of the rows, at least one and not all, of every class as evenly as can be
    draws = stream(seed, "part").uniform(size=len(codes))
    share = np.clip(validation, 1 / len(codes), 1 - 1 / len(codes))
    passed = np.floor(np.arange(len(codes) + 1) * share + 1e-9)
    chosen = np.zeros(len(codes), dtype=bool)
    chosen[np.lexsort((draws, codes))] = np.diff(passed) > 0
    return np.tile(chosen, (restarts, 1))
