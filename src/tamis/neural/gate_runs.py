"""Training of gates: batches of runs, the grid of weights for "auto", and resumable stages.

A run is one training of gates. Training can be stopped after each stage and resumed from the state
that the stage yielded.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tamis._arrays import Array, Mask, class_codes, standardised
from tamis._checks import number, one_of, several
from tamis.exceptions import InvalidParameter
from tamis.neural._objectives import GateFolds, GateLoss, GateSettings, Stack
from tamis.neural._state import State, packed, packed_all, unpacked, unpacked_all
from tamis.neural.network import deal, histories, train
from tamis.neural.redundancy import GateUnits
from tamis.neural.solver import Runs

#: Constraints on the sparsity weight ``mu`` and the redundancy weight ``lam``.
WEIGHT = number(least=0)
WEIGHTS = WEIGHT | several(WEIGHT, "one such number for each class") | one_of("auto")
#: Sparsity weights that "auto" tries. Each weight is four or five times the previous weight. The
#: first weight closes hardly any gates, and the last one leaves only a few gates open.
MUS = (0.05, 0.25, 1.0, 4.0)
#: Redundancy weights that "auto" tries, as multiples of mu / (2 mean phi). Here, mean phi is the
#: mean dependence over all pairs of columns. With the sparsity penalty "bell", fully open bounded
#: gates start to close above the multiple 1. Below it, the penalty keeps them open.
MULTIPLES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
#: Parameters of the networks that score the selected columns. These networks are trained for half
#: as many iterations as a network for prediction, because each grid point and fold needs its own.
SCORING = {"solver": "lbfgs", "max_iter": 100, "decay": 1e-3}
#: Number of cross-validation folds of "auto". With three folds, few networks are needed, and two
#: thirds of the rows are left for training.
N_FOLDS = 3

#: Function that gets gates and returns a mask of the selected columns.
Choose: TypeAlias = Callable[[Array], Mask]


@dataclass(frozen=True, repr=False)
class GatePath:
    """Held-out accuracy for each pair of weights, as returned by :func:`gate_path`.

    Attributes
    ----------
    mu, lam : arrays of shape (n_points,)
        Weights of sparsity and redundancy. Points with the same ``mu`` are in increasing order of
        ``lam``.
    accuracy : array of shape (n_points,)
        Mean held-out accuracy, over the folds, of networks trained on the selected columns.
    error : array of shape (n_points,)
        Standard error of the accuracy, computed from the accuracy and the number of rows.
    loss : array of shape (n_points,)
        Mean held-out loss over the folds.
    size : array of shape (n_points,)
        Mean number of selected columns over the folds.
    support : array of bool, of shape (n_points, n_folds, n_features)
        Mask of the selected columns.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.neural import GatePath
    >>> one, two = np.ones(2), np.array([0.0, 5.0])
    >>> path = GatePath(mu=one, lam=two, accuracy=np.array([0.9, 0.95]), error=0.02 * one, loss=one,
    ...                 size=3 * one, support=np.ones((2, 5, 4), dtype=bool))
    >>> path.best, float(path.lam[path.best])
    (1, 5.0)
    """

    mu: Array
    lam: Array
    accuracy: Array
    error: Array
    loss: Array
    size: Array
    support: Mask

    @property
    def best(self) -> int:
        """Index of the grid point with the highest accuracy. Ties go to the lowest loss."""
        return int(np.lexsort((self.loss, -self.accuracy))[0])

    def state(self) -> State:
        """Return the path as JSON types."""
        return packed_all(vars(self))

    @classmethod
    def restored(cls, state: State) -> "GatePath":
        """Rebuild the path from a state that :meth:`state` returned."""
        return cls(**unpacked_all(state, [field.name for field in fields(cls)]))

    def __len__(self) -> int:
        return len(self.mu)

    def __repr__(self) -> str:
        lines = ["      mu       lam   columns   accuracy"]
        for point in zip(self.mu, self.lam, self.size, self.accuracy, strict=True):
            lines.append("{:8.3g} {:9.4g} {:9.1f} {:10.3f}".format(*point))
        return "\n".join(lines)


class GateRuns(NamedTuple):
    """Trained gates of R runs.

    Attributes
    ----------
    points : array of shape (R, n_parameters)
        Final gate parameters, followed by the network weights if these are learned jointly.
    gates : array of shape (R, G, F)
        Absolute values of the gates. Fully open gates are ranked by how much the loss would rise if
        they closed.
    values : array of shape (R,)
        Final values of the objective.
    history : dict of str to array of shape (n_epochs, R)
        Terms ``loss``, ``sparsity`` and ``redundancy`` of the objective after each epoch. If a run
        ended early, its last entries are nan.
    diverged : array of bool, of shape (R,)
        Whether the objective of a run was not finite at some point. Such points are discarded.
    """

    points: Array
    gates: Array
    values: Array
    history: dict[str, Array]
    diverged: Mask


def learn_gates(
    objective: GateLoss, *, start: Array | None = None, first: Runs | None = None
) -> GateRuns:
    """Learn the gates of all runs of an objective.

    Parameters
    ----------
    objective : GateLoss
        The objective of R runs.
    start : array of shape (R, n_parameters), optional
        Starting points: the ``points`` of an earlier call. By default, all gates start open, and
        jointly learned weights start at the weights of one network of the fold.
    first : array of int, of shape (R,), optional
        For each run, the index of the network of its fold that provides the initial weights. The
        default is 0.
    """
    settings, folds, fold = objective.settings, objective.folds, objective.fold
    gate, n_gates = objective.gate, objective.n_gates
    seen: list[tuple[Runs, Array]] = []
    diverged = np.zeros(len(fold), dtype=bool)

    def note_terms(evaluated: Runs, runs: Runs, points: Array) -> None:
        """Store the terms of ``runs``, which were at positions ``evaluated`` of the last call."""
        terms = np.array([term[evaluated] for term in objective.terms])
        finite = np.isfinite(terms).all(axis=0)
        diverged[runs[~finite]] = True
        seen.append((runs[finite], terms[:, finite]))

    if start is None:
        points = np.full((len(fold), n_gates), gate.start)
        if settings.joint:
            each = fold * folds.n_networks + (0 if first is None else first)
            points = np.concatenate([points, folds.stack.pick(each).packed()], axis=1)
    else:
        b, weights = np.split(start, [n_gates], axis=1)
        points = np.concatenate([gate.awake(b), weights], axis=1)
    lowest = np.full(points.shape[1], -np.inf)
    lowest[:n_gates] = gate.lowest
    size = len(folds.X), settings.seed
    options: dict[str, Any] = dict(longest=gate.longest, lowest=lowest, watch=note_terms)
    with np.errstate(over="ignore", invalid="ignore"):  # non-finite values are handled below
        for width in settings.sparsity.widths:
            objective.width = width
            points, values = settings.solver.minimise(objective, points, *size, **options)
        if not np.isfinite(values).all():
            raise InvalidParameter(
                "GateSelector needs a finite objective with all gates open. Lower mu (up to "
                f"{objective.mu.max():.3g}) or lam (up to {objective.lam.max():.3g})."
            )
        objective(points, np.arange(len(points)))  # sets objective.pull at the final points
    b = points[:, :n_gates].reshape(len(points), objective.n_rows, -1)
    gates = gate.spread_open(gate(b)[0], objective.pull)
    names = ("loss", "sparsity", "redundancy")
    return GateRuns(points, gates, values, histories(names, seen, len(fold)), diverged)


def close_constant(gates: Array, Z: Array, units: GateUnits) -> Array:
    """Set the gates of units whose columns are all constant in ``Z`` to 0."""
    return gates * (units.sum((np.ptp(Z, axis=0) > 0) * 1.0) > 0)


def rising(mu: Array, lam: Array | None, mean_redundancy: float) -> Array:
    """Return increasing redundancy weights for each ``mu``, of shape (n_lam, n_mu)."""
    if lam is not None:
        return np.repeat(lam[:, None], len(mu), axis=1)
    closing = np.where(mu > 0, mu, 1.0) / (2 * max(mean_redundancy, 1e-3))
    return np.multiply.outer(MULTIPLES, closing)


@dataclass(frozen=True)
class GateGrid:
    """Cross-validation of a grid of weights; see :func:`tamis.neural.gate_path`.

    ``Z`` contains the standardised columns, with rows sorted by class. ``mu`` and ``lam`` are
    increasing weights, or None for the default grid. ``choose`` selects columns, given their gates.
    """

    settings: GateSettings
    choose: Choose
    Z: Array
    codes: NDArray[np.intp]
    mu: Array | None
    lam: Array | None
    n_folds: int

    def path(self) -> GatePath:
        """Evaluate the whole grid and return the results."""
        *_, last = self.stages({})
        return GatePath.restored(last["path"])

    def stages(self, state: State) -> Iterator[State]:
        """Yield the state after training the networks, after each ``lam``, and at the end.

        Training resumes from ``state``, which is a state yielded by an earlier call, or empty. The
        last state contains only the ``path``.
        """
        network, n_classes = self.settings.network, int(self.codes.max()) + 1
        fold_of = deal(self.codes, self.n_folds, self.settings.seed)
        held_out = fold_of == np.arange(self.n_folds)[:, None]
        if "networks" not in state:
            runs = np.repeat(held_out, network.restarts, axis=0)
            # no early stopping, because it would use the rows that score the grid points
            trained = train(network, self.Z, self.codes, runs, early_stopping=False)
            state = {"networks": packed(trained.stack.packed()), "chosen": []}
            yield state
        weights = unpacked(state["networks"])
        stack = Stack.unpacked(weights, self.Z.shape[1], network.hidden, n_classes)
        between = self.settings.dependences
        phi = [between(self.Z[~out], self.codes[~out], n_classes) for out in held_out]
        folds = GateFolds(self.Z, self.codes, ~held_out, stack, phi)
        mu = np.array(MUS) if self.mu is None else self.mu
        lams = rising(mu, self.lam, folds.mean_redundancy)
        for level in lams[len(state["chosen"]) :]:
            state = self._advance(state, folds, mu, level)
            yield state
        chosen = np.array([unpacked(masks) for masks in state["chosen"]])
        yield {"path": self._score(held_out, mu, lams, chosen).state()}

    def _advance(self, state: State, folds: GateFolds, mu: Array, level: Array) -> State:
        """Learn gates with the next ``lam``, for all folds and all ``mu``. Return the new state."""
        fold, which = (part.ravel() for part in np.indices((self.n_folds, len(mu))))
        n_rows = self.settings.n_rows(int(self.codes.max()) + 1)
        mus, lams = (np.repeat(w[which, None], n_rows, axis=1) for w in (mu, level))
        start = unpacked(state["points"]) if "points" in state else None
        runs = learn_gates(GateLoss(self.settings, folds, fold, mus, lams), start=start)
        rows = [self.Z[used] for used in folds.used]
        chosen = [
            self.choose(close_constant(gates, rows[k], self.settings.units))
            for gates, k in zip(runs.gates, fold, strict=True)
        ]
        masks = [*state["chosen"], packed(np.array(chosen))]
        return {**state, "points": packed(runs.points), "chosen": masks}

    def _score(self, held_out: Mask, mu: Array, lams: Array, chosen: Mask) -> GatePath:
        """Train networks on the selected columns of each grid point, and score held-out rows."""
        # (n_lam, n_folds, n_mu, F) -> (n_mu, n_lam, n_folds, F)
        by_point = chosen.reshape(len(lams), self.n_folds, len(mu), -1).transpose(2, 0, 1, 3)
        support = by_point.reshape(-1, *by_point.shape[2:])
        n_points, anywhere = len(support), support.any(axis=(0, 1))
        masks = support.reshape(n_points * self.n_folds, -1)[:, anywhere].astype(float)
        trained = train(
            clone(self.settings.network).set_params(**SCORING),
            self.Z[:, anywhere],
            self.codes,
            np.tile(held_out, (n_points, 1)),
            masks=masks,
            early_stopping=False,
        )
        rows = held_out.sum(axis=1) / held_out.size * self.n_folds  # share of the rows in each fold
        accuracy, loss = (
            found.reshape(n_points, self.n_folds) @ rows
            for found in (trained.accuracy, trained.loss)
        )
        accuracy = accuracy.round(12)  # so that ties are exact, and no accuracy exceeds 1
        return GatePath(
            mu=np.repeat(mu, len(lams)),
            lam=lams.T.ravel(),
            accuracy=accuracy,
            error=np.sqrt(accuracy * (1 - accuracy) / len(self.codes)),
            loss=loss,
            size=support.sum(axis=2).mean(axis=1),
            support=support,
        )


def read_weights(mu: Any, lam: Any, scope: str, n_rows: int) -> dict[str, Array | None]:
    """Return ``mu`` and ``lam`` as arrays with one value per row of gates, or None for "auto"."""
    weights = {"mu": mu, "lam": lam}
    auto = any(isinstance(given, str) for given in weights.values())
    for name, given in weights.items():
        if isinstance(given, str):
            weights[name] = None
            continue
        if np.ndim(given) and len(given) != n_rows:
            raise InvalidParameter(
                f"GateSelector(scope={scope!r}) needs {n_rows} value(s) of {name}, got "
                f"{len(given)}. Pass that many values, or one number for all."
            )
        weights[name] = each = np.full(n_rows, given, dtype=float)
        if auto and np.ptp(each) > 0:
            raise InvalidParameter(
                f"GateSelector needs {name} as one number if the other weight is 'auto', but got "
                f"one for each class ({each.tolist()!r}). Give numbers for both."
            )
    return weights


@dataclass(eq=False, repr=False)
class GateTraining:
    """Training of a ``GateSelector`` on a table, in stages.

    ``mu`` and ``lam`` are the weights that :func:`read_weights` returns. The state after a stage
    contains only JSON types. Stages add these keys, in this order:

    * ``network``, the state of the trained network;
    * ``walk``, only if a weight is "auto": the state of the grid, replaced by ``path`` at the end;
    * ``points``, the current parameters, and ``levels``, the number of finished values of lam;
    * at the end ``gates``, ``history``, ``mu``, ``lam`` and ``diverged``.
    """

    settings: GateSettings
    choose: Choose
    X: Array
    y: NDArray[Any]
    mu: Array | None
    lam: Array | None

    def __post_init__(self) -> None:
        self.classes, codes = class_codes(self.y)
        by_class = np.argsort(codes, kind="stable")
        self.Z, self.codes = standardised(self.X)[by_class], codes[by_class]
        self._phi = self.settings.dependences(self.Z, self.codes, len(self.classes))

    def stages(self, state: State) -> Iterator[State]:
        """Yield the state after each remaining stage."""
        if "gates" in state:
            return
        if "network" not in state:
            network = clone(self.settings.network).fit(self.X, self.y)
            state = {**state, "network": network.state()}
            yield state
        if (self.mu is None or self.lam is None) and "path" not in state:
            mu, lam = (None if given is None else given[:1] for given in (self.mu, self.lam))
            grid = GateGrid(self.settings, self.choose, self.Z, self.codes, mu, lam, N_FOLDS)
            for found in grid.stages(state.get("walk", {})):
                rest = _without(state, "walk")
                state = {**rest, **found} if "path" in found else {**rest, "walk": found}
                yield state
        yield from self._learn(state)

    def _learn(self, state: State) -> Iterator[State]:
        """Learn gates with the given weights. For "auto", lam increases to the best grid point."""
        used = np.ones((1, len(self.Z)), dtype=bool)
        network = clone(self.settings.network).restore(state["network"], self.classes)
        folds = GateFolds(self.Z, self.codes, used, network.networks(), [self._phi])
        mu, levels = self._levels(state, folds)
        n_runs = folds.n_networks if self.settings.joint else 1
        every, first = np.zeros(n_runs, dtype=np.intp), np.arange(n_runs)
        done = state.get("levels", 0)
        for reached, level in enumerate(levels[done:], done + 1):
            mus, lams = (np.tile(w, (n_runs, 1)) for w in (mu, level))
            start = unpacked(state["points"]) if "points" in state else None
            objective = GateLoss(self.settings, folds, every, mus, lams)
            runs = learn_gates(objective, start=start, first=first)
            state = {**state, "levels": reached, "points": packed(runs.points)}
            if reached < len(levels):
                yield state
        best = int(np.argmin(runs.values))
        epochs = ~np.isnan(runs.history["loss"][:, best])
        gates = close_constant(runs.gates[best], self.Z, self.settings.units)
        yield {
            **_without(state, "levels", "points"),
            "gates": packed(gates),
            "history": packed_all({n: term[epochs, best] for n, term in runs.history.items()}),
            "mu": packed(mu),
            "lam": packed(levels[-1]),
            "diverged": bool(runs.diverged[best]),
        }

    def _levels(self, state: State, folds: GateFolds) -> tuple[Array, list[Array]]:
        """Return the sparsity weight, and all redundancy weights up to the final one."""
        if self.mu is not None and self.lam is not None:
            return self.mu, [self.lam]
        path, n_rows = GatePath.restored(state["path"]), self.settings.n_rows(len(self.classes))
        lam = None if self.lam is None else self.lam[:1]
        along = rising(path.mu[[path.best]], lam, folds.mean_redundancy)[:, 0]
        levels = [np.full(n_rows, level) for level in along[: path.best % len(along) + 1]]
        return np.full(n_rows, path.mu[path.best]), levels


def _without(state: State, *names: str) -> State:
    return {name: found for name, found in state.items() if name not in names}
