"""From a table to gates: gates of many runs, the grid of weights that "auto" tries, and stages.

Training can be stopped after each stage, and goes on from the state that the stage yielded.
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

#: What weights of sparsity and redundancy may be.
WEIGHT = number(least=0)
WEIGHTS = WEIGHT | several(WEIGHT, "one such number for each class") | one_of("auto")
#: Weights of the sparsity that "auto" tries: from one that hardly closes a gate to one that leaves
#: few open, each four or five times the one before.
MUS = (0.05, 0.25, 1.0, 4.0)
#: Weights of the redundancy that "auto" tries, in multiples of mu / (2 mean phi), at which the
#: redundancy of gates that are all open outweighs what holds bounded ones open.
MULTIPLES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
#: Networks that score the chosen columns: trained as one that is to predict, though for half as
#: long, since there is one for each point and fold.
SCORING = {"solver": "lbfgs", "max_iter": 100, "decay": 1e-3}
#: Folds by which "auto" scores: each network learns from two thirds of the rows, and the fewest
#: networks are trained that say anything of held-out rows.
N_FOLDS = 3

#: The columns that a selector would keep, from the gates.
Choose: TypeAlias = Callable[[Array], Mask]


@dataclass(frozen=True, repr=False)
class GatePath:
    """What every pair of weights came to, on rows that were held out.

    Attributes
    ----------
    mu, lam : arrays of shape (n_points,)
        Weights of sparsity and redundancy, ``lam`` rising for each ``mu``.
    accuracy : array of shape (n_points,)
        Accuracy of networks trained on the chosen columns, mean over the folds.
    error : array of shape (n_points,)
        Standard error of the accuracy, from the number of rows.
    loss : array of shape (n_points,)
        Mean loss on the same rows.
    size : array of shape (n_points,)
        Number of columns chosen, mean over the folds.
    support : array of bool, of shape (n_points, n_folds, n_features)
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
        """Position of the greatest accuracy; of equals that of the least loss."""
        return int(np.lexsort((self.loss, -self.accuracy))[0])

    def state(self) -> State:
        """Return the path for JSON."""
        return packed_all(vars(self))

    @classmethod
    def restored(cls, state: State) -> "GatePath":
        """Return the path that :meth:`state` wrote."""
        return cls(**unpacked_all(state, [field.name for field in fields(cls)]))

    def __len__(self) -> int:
        return len(self.mu)

    def __repr__(self) -> str:
        lines = ["      mu       lam   columns   accuracy"]
        for point in zip(self.mu, self.lam, self.size, self.accuracy, strict=True):
            lines.append("{:8.3g} {:9.4g} {:9.1f} {:10.3f}".format(*point))
        return "\n".join(lines)


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
    gate, n_gates = objective.gate, objective.n_gates
    seen: list[tuple[Runs, Array]] = []
    diverged = np.zeros(len(fold), dtype=bool)

    def note_terms(evaluated: Runs, runs: Runs, points: Array) -> None:
        """Note the terms of the runs that were the ``evaluated`` ones of the last call."""
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
                watch=note_terms,
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
    return GateRuns(points, gates, values, histories(names, seen, len(fold)), diverged)


def close_constant(gates: Array, Z: Array, units: GateUnits) -> Array:
    """Close the gates of columns that do not vary in the rows of ``Z``."""
    return gates * (units.sum((np.ptp(Z, axis=0) > 0) * 1.0) > 0)


def rising(mu: Array, lam: Array | None, mean_redundancy: float) -> Array:
    """For each step of the path the weight of the redundancy that goes with each ``mu``."""
    if lam is not None:
        return np.repeat(lam[:, None], len(mu), axis=1)
    closing = np.where(mu > 0, mu, 1.0) / (2 * max(mean_redundancy, 1e-3))
    return np.multiply.outer(MULTIPLES, closing)


@dataclass(frozen=True)
class GateGrid:
    """A grid of weights, tried on standardised columns whose rows are sorted by class.

    ``mu`` and ``lam`` are rising numbers, None for those of "auto". In every fold networks are
    trained, gates learned for each ``mu`` along rising ``lam``, each from where the one before
    ended, and new networks trained on the columns that ``choose`` keeps.
    """

    settings: GateSettings
    choose: Choose
    Z: Array
    codes: NDArray[np.intp]
    mu: Array | None
    lam: Array | None
    n_folds: int

    def path(self) -> GatePath:
        """Try the whole grid."""
        *_, last = self.stages({})
        return GatePath.restored(last["path"])

    def stages(self, state: State) -> Iterator[State]:
        """Yield the state after the networks of the folds, after each ``lam``, and at the end.

        Goes on from a state that it gave; the last holds the ``path`` and nothing else.
        """
        network, n_classes = self.settings.network, int(self.codes.max()) + 1
        fold_of = deal(self.codes, self.n_folds, self.settings.seed)
        held_out = fold_of == np.arange(self.n_folds)[:, None]
        if "networks" not in state:
            runs = np.repeat(held_out, network.restarts, axis=0)
            # they end where they end, not where they are best on the rows that score
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
        """Go on to the next ``lam``, for every fold and ``mu``."""
        fold, which = (part.ravel() for part in np.indices((self.n_folds, len(mu))))
        n_rows = self.settings.n_rows(int(self.codes.max()) + 1)
        mus, lams = (np.repeat(w[which, None], n_rows, axis=1) for w in (mu, level))
        start = unpacked(state["points"]) if "points" in state else None
        runs = learn_gates(self.settings, folds, fold, mus, lams, start=start)
        rows = [self.Z[used] for used in folds.used]
        chosen = [
            self.choose(close_constant(gates, rows[k], self.settings.units))
            for gates, k in zip(runs.gates, fold, strict=True)
        ]
        masks = [*state["chosen"], packed(np.array(chosen))]
        return {**state, "points": packed(runs.points), "chosen": masks}

    def _score(self, held_out: Mask, mu: Array, lams: Array, chosen: Mask) -> GatePath:
        """Score networks trained on the chosen columns, all at once, on the held-out rows."""
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
        rows = held_out.sum(axis=1) / held_out.size * self.n_folds  # folds may differ by a row
        accuracy, loss = (
            found.reshape(n_points, self.n_folds) @ rows
            for found in (trained.accuracy, trained.loss)
        )
        accuracy = accuracy.round(12)  # equal accuracies are equal, and none is above 1
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
    """Weights of sparsity and redundancy for each row of gates, None where "auto" finds them."""
    weights = {"mu": mu, "lam": lam}
    auto = any(isinstance(given, str) for given in weights.values())
    for name, given in weights.items():
        if isinstance(given, str):
            weights[name] = None
            continue
        if np.ndim(given) and len(given) != n_rows:
            raise InvalidParameter(
                f"GateSelector needs one {name} for each row of gates, which with scope="
                f"{scope!r} are {n_rows}, but got {len(given)}."
            )
        weights[name] = each = np.full(n_rows, given, dtype=float)
        if auto and np.ptp(each) > 0:
            raise InvalidParameter(
                f"GateSelector needs {name} as one number where the other weight is 'auto', "
                f"not one for each class ({each.tolist()!r}). Give numbers for both."
            )
    return weights


class GateTraining:
    """What a selector learns from one table.

    ``mu`` and ``lam`` are those of :func:`read_weights`. The state after a stage holds what was
    found so far and goes through JSON unchanged: ``network`` first; then, where a weight is "auto",
    the ``walk`` over the grid until there is a ``path``; then ``points`` after each of the
    ``levels`` of lam up to the one that is wanted; in the end ``gates``, their ``history``, ``mu``,
    ``lam`` and whether they ``diverged``.
    """

    def __init__(
        self,
        settings: GateSettings,
        choose: Choose,
        X: Array,
        y: NDArray[Any],
        *,
        mu: Array | None,
        lam: Array | None,
    ):
        self.settings, self.choose, self.mu, self.lam = settings, choose, mu, lam
        self.X, self.y = X, y
        self.classes, codes = class_codes(y)
        by_class = np.argsort(codes, kind="stable")
        self.Z, self.codes = standardised(X)[by_class], codes[by_class]
        self._phi = settings.dependences(self.Z, self.codes, len(self.classes))

    def stages(self, state: State) -> Iterator[State]:
        """Yield the state after each stage that is still to be done."""
        if "gates" in state:
            return
        if "network" not in state:
            network = clone(self.settings.network).fit(self.X, self.y)
            state = {**state, "network": network.state()}
            yield state
        if (self.mu is None or self.lam is None) and "path" not in state:
            mu, lam = (None if given is None else given[:1] for given in (self.mu, self.lam))
            grid = GateGrid(self.settings, self.choose, self.Z, self.codes, mu, lam, N_FOLDS)
            for walk in grid.stages(state.get("walk", {})):
                rest = _without(state, "walk")
                state = {**rest, **walk} if "path" in walk else {**rest, "walk": walk}
                yield state
        yield from self._learn(state)

    def _learn(self, state: State) -> Iterator[State]:
        """Learn gates under the weights given, or along the path up to the best of it."""
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
            runs = learn_gates(self.settings, folds, every, mus, lams, start=start, first=first)
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
        """The weight of sparsity, and those of redundancy up to the one that is wanted."""
        if self.mu is not None and self.lam is not None:
            return self.mu, [self.lam]
        path, n_rows = GatePath.restored(state["path"]), self.settings.n_rows(len(self.classes))
        lam = None if self.lam is None else self.lam[:1]
        along = rising(path.mu[[path.best]], lam, folds.mean_redundancy)[:, 0]
        levels = [np.full(n_rows, level) for level in along[: path.best % len(along) + 1]]
        return np.full(n_rows, path.mu[path.best]), levels


def _without(state: State, *names: str) -> State:
    return {name: found for name, found in state.items() if name not in names}
