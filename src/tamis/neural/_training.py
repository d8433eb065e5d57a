"""Training of many networks at one time, each kept where it did best on its held-out rows."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis._random import stream
from tamis.exceptions import NotConverged
from tamis.neural._objectives import NetworkLoss
from tamis.neural._optimise import Runs, adam, lbfgs
from tamis.neural._stack import Stack

#: Numbers of an array that holds something for each network: 128 MB, which a machine reads in some
#: tenths of a second, so that an interrupt is soon answered.
MOST_NUMBERS = 1 << 24


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
        """The network of greatest accuracy, of equals the one of least loss."""
        return int(np.lexsort((self.loss, -self.accuracy))[0])

    @classmethod
    def joined(cls, parts: "list[Trained]") -> "Trained":
        """Networks that were trained in groups."""
        if len(parts) == 1:
            return parts[0]
        names = parts[0].history
        return cls(
            stack=Stack.joined([part.stack for part in parts]),
            accuracy=np.concatenate([part.accuracy for part in parts]),
            loss=np.concatenate([part.loss for part in parts]),
            n_iter=max(part.n_iter for part in parts),
            history={n: side_by_side([part.history[n] for part in parts]) for n in names},
        )


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
    n_networks, shape = len(held_out), (X.shape[1], settings.hidden, int(codes.max()) + 1)
    found, diverged = [], False
    for group in groups(n_networks, *shape, len(X)):
        watch = _Watch(held_out[group], early_stopping)
        part = None if masks is None else masks[group]
        found.append(_train(settings, X, codes, shape, group.start, part, watch))
        diverged |= watch.diverged
    if diverged:
        warn(
            "The training of a network diverged; its best weights before that are kept. Use a "
            "smaller learning_rate.",
            NotConverged,
            stacklevel=2,
        )
    return Trained.joined(found)


def groups(
    n_networks: int, n_inputs: int, hidden: int, n_classes: int, n_samples: int
) -> Iterator[slice]:
    """Networks that are trained together: as many as there is room for, at least one."""
    numbers = n_samples * (hidden + n_classes) + (n_inputs + n_classes + 1) * hidden + n_classes
    size = min(max(MOST_NUMBERS // numbers, 1), n_networks)
    return (slice(k, min(k + size, n_networks)) for k in range(0, n_networks, size))


def _train(
    settings: Any,
    X: Array,
    codes: NDArray[np.intp],
    shape: tuple[int, int, int],
    first: int,
    masks: Array | None,
    watch: "_Watch",
) -> Trained:
    """Networks of one group, the first of which has the number ``first``."""
    stack = Stack.drawn(settings.random_state, len(watch.held_out), *shape, first=first)
    if masks is not None:
        stack = stack._replace(inner=stack.inner * masks[:, :, None])
    learns = ~watch.held_out
    objective = NetworkLoss(
        X=X,
        codes=codes,
        weights=learns / learns.sum(axis=1, keepdims=True),
        shape=shape,
        activation=settings.activation,
        loss=settings.loss,
        decay=settings.decay_of(*X.shape),
        masks=masks,
    )
    watch.begin(objective, stack.packed())
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is never kept
        points, values = _minimised(settings, objective, stack.packed(), watch)
    if not watch.held_out.any():
        unknown = np.full(len(points), np.nan)
        return Trained(Stack.unpacked(points, *shape), unknown, values, watch.n_iter, {})
    stack = Stack.unpacked(watch.points, *shape)
    return Trained(stack, watch.accuracy, watch.loss, watch.n_iter, watch.history)


def _minimised(
    settings: Any, objective: NetworkLoss, start: Array, watch: "_Watch"
) -> tuple[Array, Array]:
    if settings.solver == "lbfgs":
        return lbfgs(objective, start, max_iter=settings.max_iter, watch=watch.see)
    return adam(
        objective,
        start,
        max_iter=settings.max_iter,
        learning_rate=settings.learning_rate,
        batches=batches(len(objective.X), settings.batch_size, settings.random_state),
        watch=watch.see,
    )


class _Watch:
    """Keeps the point of each network that did best on its held-out rows, or the last."""

    def __init__(self, held_out: Mask, best: bool):
        self.held_out = held_out
        self._best = best
        self._shares = held_out / np.maximum(held_out.sum(axis=1, keepdims=True), 1)
        self.accuracy = np.full(len(held_out), -np.inf)
        self.loss = np.full(len(held_out), np.inf)
        self.diverged = False
        self._seen: list[tuple[Runs, Array, Array]] = []

    def begin(self, objective: NetworkLoss, start: Array) -> None:
        """What is watched, and from where it starts."""
        self._objective, self.points = objective, start

    def see(self, evaluated: Runs, runs: Runs, points: Array) -> None:
        """Score the ``runs``, which were the ``evaluated`` ones of the last call."""
        p, shares = self._objective.outputs[evaluated], self._shares[runs]
        codes = self._objective.codes
        accuracy = np.einsum("kn,kn->k", shares, p.argmax(axis=2) == codes)
        truth = np.maximum(p[:, np.arange(len(codes)), codes], 1e-300)
        loss = -np.einsum("kn,kn->k", shares, np.log(truth))
        same = accuracy == self.accuracy[runs]
        better = (accuracy > self.accuracy[runs]) | (same & (loss < self.loss[runs]))
        better = np.isfinite(p).all(axis=(1, 2)) & (better | (not self._best))
        self.diverged |= not np.isfinite(p).all()
        which = runs[better]
        self.accuracy[which], self.loss[which] = accuracy[better], loss[better]
        self.points[which] = points[better]
        self._seen.append((runs, accuracy, loss))

    @property
    def n_iter(self) -> int:
        """Number of points, the start not counted, that the longest training came to."""
        return int(max(np.bincount(np.concatenate([runs for runs, *_ in self._seen]))) - 1)

    @property
    def history(self) -> dict[str, Array]:
        """Accuracy and loss of every network at the points it came to, one after the other."""
        accuracy, loss = (
            in_columns([(runs, terms[k]) for runs, *terms in self._seen], len(self.loss))
            for k in (0, 1)
        )
        return {"validation_accuracy": accuracy, "validation_loss": loss}


def side_by_side(tables: list[Array]) -> Array:
    """Tables of different lengths beside each other, shorter ones filled up with nan."""
    longest = max(len(table) for table in tables)
    missing = [np.full((longest - len(table), table.shape[1]), np.nan) for table in tables]
    return np.hstack([np.vstack(pair) for pair in zip(tables, missing, strict=True)])


def in_columns(seen: list[tuple[Runs, Array]], n_runs: int) -> Array:
    """What was seen of each run, one after the other in its column, then nan."""
    counts = np.zeros(n_runs, dtype=np.intp)
    table = np.full((len(seen), n_runs), np.nan)
    for runs, values in seen:
        table[counts[runs], runs] = values
        counts[runs] += 1
    return table[: counts.max(initial=0)]


def batches(
    n_samples: int, size: int | None, seed: int
) -> Callable[[int], Iterator[NDArray[np.intp]]] | None:
    """Rows of each step of an epoch, sorted, in an order drawn by its number; None for all."""
    if size is None or size >= n_samples:
        return None

    def draw(epoch: int) -> Iterator[NDArray[np.intp]]:
        rows = stream(seed, "batches", epoch).permutation(n_samples)
        return (np.sort(rows[first : first + size]) for first in range(0, n_samples, size))

    return draw


def deal(codes: NDArray[np.intp], n_folds: int, seed: int) -> NDArray[np.intp]:
    """Fold of each row, the rows of every class shared out evenly, however few they are.

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
    """One row for each network: the rows that it leaves out."""
    if validation is None:
        return np.zeros((restarts, len(codes)), dtype=bool)
    if validation >= 1:
        n_folds = min(int(validation), len(codes))
        folds = deal(codes, n_folds, seed)
        return np.repeat(folds == np.arange(n_folds)[:, None], restarts, axis=0)
    return np.tile(_share(codes, validation, seed), (restarts, 1))


def _share(codes: NDArray[np.intp], share: float, seed: int) -> Mask:
    """A share of the rows, at least one and not all, of every class as evenly as can be."""
    draws = stream(seed, "part").uniform(size=len(codes))
    order, wanted = np.lexsort((draws, codes)), np.clip(share, 1 / len(codes), 1 - 1 / len(codes))
    passed = np.floor(np.arange(len(codes) + 1) * wanted + 1e-9)
    chosen = np.zeros(len(codes), dtype=bool)
    chosen[order] = np.diff(passed) > 0
    return chosen
