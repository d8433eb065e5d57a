"""Learning the gates of many runs at one time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis.exceptions import InvalidParameter
from tamis.neural._objectives import GateLoss
from tamis.neural._optimise import Runs
from tamis.neural._sharing import Sharing, grouped
from tamis.neural._stack import Stack
from tamis.neural._training import in_columns
from tamis.neural.gates import GATES, Sparsity
from tamis.neural.network import NetworkClassifier
from tamis.neural.redundancy import Dependence, Redundancy
from tamis.neural.solver import GateSolver


@dataclass(frozen=True)
class GateSettings:
    """What gates are learned by: the parameters of a ``GateSelector``, words and None resolved.

    ``network`` and ``seed`` have their seeds as numbers; ``scope`` says which rows of the table
    each row of gates multiplies, see :class:`GateLoss`; ``sharing`` says which columns share a
    gate, None where each has its own.
    """

    gate: str
    scope: str
    sparsity: Sparsity
    redundancy: Redundancy
    solver: GateSolver
    joint: bool
    network: NetworkClassifier
    seed: int
    sharing: Sharing | None = None

    def n_rows(self, n_classes: int) -> int:
        """Number of rows of gates."""
        return 1 if self.scope == "global" else n_classes

    def dependences(self, X: Array, codes: NDArray[np.intp], n_classes: int) -> list[Dependence]:
        """Dependence of what gates stand before: one for all rows of gates, or one for each."""
        return grouped(self.redundancy.between(X, codes, n_classes, self.scope), self.sharing)


@dataclass(frozen=True)
class GateFolds:
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
    redundancy: Sequence[Sequence[Dependence]]

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
) -> Gated:
    """Gates for each row of ``mu`` and ``lam``, learned on the fold of that run.

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
    gate, network = GATES[settings.gate], settings.network
    objective = GateLoss(
        X=folds.X,
        codes=folds.codes,
        used=folds.used,
        fold=fold,
        stack=folds.stack,
        activation=network.activation,
        loss=network.loss,
        gate=gate,
        scope=settings.scope,
        sparsity=settings.sparsity.kind,
        width=1.0,
        redundancy=folds.redundancy,
        mu=mu,
        lam=lam,
        joint=settings.joint,
        decay=network.decay_of(*folds.X.shape),
        sharing=settings.sharing,
    )
    if start is None:
        start = _open(objective, gate.start, np.zeros_like(fold) if first is None else first)
    else:
        b, weights = np.split(start, [objective.n_gates], axis=1)
        start = np.concatenate([gate.awake(b), weights], axis=1)
    points, log = start, _GateLog(objective)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is seen by its value
        for width in settings.sparsity.widths:
            objective.width = width
            points, values = settings.solver.minimised(
                objective,
                points,
                n_samples=len(folds.X),
                seed=settings.seed,
                longest=gate.longest,
                lowest=_lowest(objective, gate.lowest),
                watch=log.see,
            )
    if not np.isfinite(values).all():
        raise InvalidParameter(
            "GateSelector cannot begin: what it minimises is not finite with all gates open. mu "
            f"(up to {mu.max():.3g}) or lam (up to {lam.max():.3g}) is too large."
        )
    return Gated(points, _widths(objective, points), values, log.history, log.diverged)


def _widths(objective: GateLoss, points: Array) -> Array:
    """How wide the gates of each run are, at the end."""
    b = points[:, : objective.n_gates].reshape(len(points), objective.n_rows, -1)
    with np.errstate(over="ignore", invalid="ignore"):
        objective(points, np.arange(len(points)))
    return objective.gate.told_apart(objective.gate(b)[0], objective.pull)


def strength(gates: Array, Z: Array, sharing: Sharing | None = None) -> Array:
    """Gates; closed for columns that do not vary in the rows of ``Z``."""
    varies = np.ptp(Z, axis=0) > 0
    return gates * (varies if sharing is None else sharing.summed(varies * 1.0) > 0)


def _lowest(objective: GateLoss, b: float) -> Array:
    """Least values of the parameters: of gates, and none of the weights behind them."""
    n_weights = objective.stack.packed().shape[1] if objective.joint else 0
    return np.concatenate([np.full(objective.n_gates, b), np.full(n_weights, -np.inf)])


def _open(objective: GateLoss, b: float, first: Runs) -> Array:
    """Parameters of open gates, and behind them the weights that are learned with them."""
    start = np.full((len(objective.fold), objective.n_gates), b)
    if not objective.joint:
        return start
    each = len(objective.stack.inner) // len(objective.used)
    own = objective.stack.pick(objective.fold * each + first)
    return np.concatenate([start, own.packed()], axis=1)


class _GateLog:
    """Terms of the objective at every point that each run came to."""

    def __init__(self, objective: GateLoss):
        self._objective = objective
        self._seen: list[tuple[Runs, Array]] = []
        self.diverged = np.zeros(len(objective.fold), dtype=bool)

    def see(self, evaluated: Runs, runs: Runs, points: Array) -> None:
        """Note the terms of the runs that were the ``evaluated`` ones of the last call."""
        terms = np.array([term[evaluated] for term in self._objective.terms])
        finite = np.isfinite(terms).all(axis=0)
        self.diverged[runs[~finite]] = True
        self._seen.append((runs[finite], terms[:, finite]))

    @property
    def history(self) -> dict[str, Array]:
        """Each term by epoch and run."""
        n_runs = len(self._objective.fold)
        return {
            name: in_columns([(runs, terms[k]) for runs, terms in self._seen], n_runs)
            for k, name in enumerate(("loss", "sparsity", "redundancy"))
        }
