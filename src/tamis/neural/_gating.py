"""Learning the gates of many runs at one time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis.exceptions import InvalidParameter
from tamis.neural._objectives import GateLoss
from tamis.neural._optimise import Runs, adam, lbfgs
from tamis.neural._stack import Stack
from tamis.neural._training import batches
from tamis.neural.gates import GATES
from tamis.neural.redundancy import Redundancy

#: Steps of a width that is annealed.
STAGES = 5


@dataclass(frozen=True)
class Folds:
    """What the runs of each fold learn from: rows, trained networks, redundancy.

    Attributes
    ----------
    X, codes : the rows of all folds, sorted by class
    used : array of bool, of shape (n_folds, n_samples)
    stack : Stack
        The networks of the first fold, then those of the second, ...
    redundancy : for each fold one dependence for all rows of gates, or one for each
    """

    X: Array
    codes: NDArray[np.intp]
    used: Mask
    stack: Stack
    redundancy: Sequence[Sequence[Redundancy]]

    @property
    def mean_redundancy(self) -> float:
        """Mean dependence of two columns, over folds and rows of gates."""
        return float(np.mean([phi.mean for fold in self.redundancy for phi in fold]))


class Gated(NamedTuple):
    """Gates of R runs and how they came about.

    Attributes
    ----------
    points : array of shape (R, n_parameters)
        Where each run ended: gate parameters and, if learned jointly, weights.
    gates : array of shape (R, G, F)
    values : array of shape (R,)
        What was minimised, at the end.
    history : dict of str to array of shape (n_epochs, R)
        ``loss``, ``sparsity`` and ``redundancy``; nan once a run has ended.
    diverged : array of bool, of shape (R,)
        Whether a run came to where the objective is not finite, and was taken back.
    """

    points: Array
    gates: Array
    values: Array
    history: dict[str, Array]
    diverged: Mask


def learn_gates(
    settings: Any, folds: Folds, fold: Runs, mu: Array, lam: Array, start: Array | None = None
) -> Gated:
    """Gates for each row of ``mu`` and ``lam``, learned on the fold of that run.

    Parameters
    ----------
    settings : GateSelector
        With ``random_state`` as a number.
    fold : array of int, of shape (R,)
    mu, lam : arrays of shape (R, 1 or number of classes)
    start : array of shape (R, n_parameters), optional
        ``points`` of an earlier call; by default open gates and, if learned jointly, the weights
        of the networks of the fold, in turn.
    """
    gate, n_runs = GATES[settings.gate], len(mu)
    objective = GateLoss(
        X=folds.X,
        codes=folds.codes,
        used=folds.used,
        fold=fold,
        stack=folds.stack,
        activation=settings.activation,
        loss=settings.loss,
        gate=gate,
        scope=settings.rows_of_gates,
        sparsity=settings.sparsity,
        width=1.0,
        redundancy=folds.redundancy,
        mu=mu,
        lam=lam,
        joint=settings.joint,
        decay=settings.network().decay_of(*folds.X.shape),
    )
    if start is None:
        start = _open(objective, gate.start)
    points, log = start, _Log(objective)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is seen by its value
        for width in _widths(settings.width):
            objective.width = width
            points, values = _minimised(settings, objective, points, log)
    if not np.isfinite(values).all():
        raise InvalidParameter(
            "GateSelector cannot begin: what it minimises is not finite with all gates open. mu "
            f"(up to {mu.max():.3g}) or lam (up to {lam.max():.3g}) is too large."
        )
    b = points[:, : objective.n_gates].reshape(n_runs, objective.n_rows, -1)
    return Gated(points, gate(b)[0], values, log.history, log.diverged)


def _minimised(
    settings: Any, objective: GateLoss, start: Array, log: "_Log"
) -> tuple[Array, Array]:
    if settings.solver == "lbfgs":
        return lbfgs(
            objective,
            start,
            max_iter=settings.max_iter,
            tol=settings.tol,
            longest=objective.gate.longest,
            watch=log.see,
        )
    return adam(
        objective,
        start,
        max_iter=settings.max_iter,
        learning_rate=settings.learning_rate,
        tol=settings.tol,
        batches=batches(len(objective.X), settings.batch_size, settings.random_state),
        watch=log.see,
    )


def _open(objective: GateLoss, b: float) -> Array:
    """Parameters of open gates, and behind them the weights that are learned with them."""
    start = np.full((len(objective.fold), objective.n_gates), b)
    if not objective.joint:
        return start
    each = len(objective.stack.inner) // len(objective.used)
    turn = np.array([np.sum(objective.fold[:r] == k) for r, k in enumerate(objective.fold)])
    own = objective.stack.pick(objective.fold * each + turn % each)
    return np.concatenate([start, own.packed()], axis=1)


def _widths(width: Any) -> Array:
    """One width, or those from the first to the last of a pair."""
    first, last = width if np.ndim(width) else (width, width)
    return np.geomspace(first, last, STAGES if first != last else 1)


class _Log:
    """Terms of the objective at every point that each run came to."""

    def __init__(self, objective: GateLoss):
        self._objective = objective
        self._seen: list[tuple[Runs, Array]] = []
        self.diverged = np.zeros(len(objective.fold), dtype=bool)

    def see(self, evaluated: Runs, runs: Runs, points: Array) -> None:
        """Note the terms of the runs at the places ``evaluated`` of the last call."""
        terms = np.array([term[evaluated] for term in self._objective.terms])
        finite = np.isfinite(terms).all(axis=0)
        self.diverged[runs[~finite]] = True
        self._seen.append((runs[finite], terms[:, finite]))

    @property
    def history(self) -> dict[str, Array]:
        """Each term by epoch and run."""
        terms = np.full((3, len(self._seen), len(self._objective.fold)), np.nan)
        for epoch, (runs, seen) in enumerate(self._seen):
            terms[:, epoch, runs] = seen
        return dict(zip(("loss", "sparsity", "redundancy"), terms, strict=True))
