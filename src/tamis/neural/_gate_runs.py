"""Gates of many runs, learned at one time."""

from typing import NamedTuple

import numpy as np

from tamis._arrays import Array, Mask
from tamis.exceptions import InvalidParameter
from tamis.neural._networks import histories
from tamis.neural._objectives import GateFolds, GateLoss, GateSettings
from tamis.neural.redundancy import GateUnits
from tamis.neural.solver import Runs


class GateRuns(NamedTuple):
    """Gates of R runs and how they came about.

    Attributes
    ----------
    points : array of shape (R, n_parameters)
        Where each run ended: gate parameters and, if learned jointly, weights.
    gates : array of shape (R, G, F)
        In absolute value; those wide open differ by what the loss would rise if they closed.
    values : array of shape (R,)
        What was minimised, at the end.
    history : dict of str to array of shape (n_epochs, R)
        ``loss``, ``sparsity`` and ``redundancy``, in the end nan for runs that ended early.
    diverged : array of bool, of shape (R,)
        Whether a run came to where the objective is not finite, and was taken back.
    """

    points: Array
    gates: Array
    values: Array
    history: dict[str, Array]
    diverged: Mask


def learn_gates(
    settings: GateSettings,
    folds: GateFolds,
    fold: Runs,
    mu: Array,
    lam: Array,
    *,
    start: Array | None = None,
    first: Runs | None = None,
) -> GateRuns:
    """Learn gates for each row of ``mu`` and ``lam``, on the fold of that run.

    Parameters
    ----------
    settings : GateSettings
    fold : array of int, of shape (R,)
    mu, lam : arrays of shape (R, 1 or number of classes)
    start : array of shape (R, n_parameters), optional
        ``points`` of an earlier call; by default open gates and, if learned jointly, the weights
        of one of the networks of the fold.
    first : array of int, of shape (R,), optional
        Which of them; by default the first.
    """
    objective = GateLoss(settings, folds, fold, mu, lam)
    gate, n_gates, log = objective.gate, objective.n_gates, _GateLog(objective)
    if start is None:
        points = _open(objective, np.zeros_like(fold) if first is None else first)
    else:
        b, weights = np.split(start, [n_gates], axis=1)
        points = np.concatenate([gate.awake(b), weights], axis=1)
    lowest = np.full(points.shape[1], -np.inf)
    lowest[:n_gates] = gate.lowest
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is seen by its value
        for width in settings.sparsity.widths:
            objective.width = width
            points, values = settings.solver.minimise(
                objective,
                points,
                len(folds.X),
                settings.seed,
                longest=gate.longest,
                lowest=lowest,
                watch=log.see,
            )
        if not np.isfinite(values).all():
            raise InvalidParameter(
                "GateSelector cannot begin: what it minimises is not finite with all gates open. "
                f"mu (up to {mu.max():.3g}) or lam (up to {lam.max():.3g}) is too large."
            )
        objective(points, np.arange(len(points)))  # for the pull at the end
    b = points[:, :n_gates].reshape(len(points), objective.n_rows, -1)
    gates = gate.spread_open(gate(b)[0], objective.pull)
    names = ("loss", "sparsity", "redundancy")
    return GateRuns(points, gates, values, histories(names, log.seen, len(fold)), log.diverged)


def close_constant(gates: Array, Z: Array, units: GateUnits) -> Array:
    """Close the gates of columns that do not vary in the rows of ``Z``."""
    return gates * (units.sum((np.ptp(Z, axis=0) > 0) * 1.0) > 0)


def _open(objective: GateLoss, first: Runs) -> Array:
    """Parameters of open gates, and behind them the weights that are learned with them."""
    start = np.full((len(objective.fold), objective.n_gates), objective.gate.start)
    if not objective.settings.joint:
        return start
    folds = objective.folds
    own = folds.stack.pick(objective.fold * folds.n_networks + first)
    return np.concatenate([start, own.packed()], axis=1)


class _GateLog:
    """Terms of the objective at every point that each run came to."""

    def __init__(self, objective: GateLoss):
        self._objective = objective
        self.seen: list[tuple[Runs, Array]] = []
        self.diverged = np.zeros(len(objective.fold), dtype=bool)

    def see(self, evaluated: Runs, runs: Runs, points: Array) -> None:
        """Note the terms of the runs that were the ``evaluated`` ones of the last call."""
        terms = np.array([term[evaluated] for term in self._objective.terms])
        finite = np.isfinite(terms).all(axis=0)
        self.diverged[runs[~finite]] = True
        self.seen.append((runs[finite], terms[:, finite]))
