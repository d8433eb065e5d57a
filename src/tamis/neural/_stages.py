"""From a table to gates, in stages after each of which training can be stopped."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tamis._arrays import Array, class_codes, standardised
from tamis.exceptions import InvalidParameter
from tamis.neural._gate_runs import close_constant, learn_gates
from tamis.neural._objectives import GateFolds, GateSettings
from tamis.neural._state import State, packed, packed_all, unpacked
from tamis.neural.grid import Choose, GateGrid, GatePath, rising

#: Folds by which "auto" scores: each network learns from two thirds of the rows, and the fewest
#: networks are trained that say anything of held-out rows.
N_FOLDS = 3


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
        for number, level in enumerate(levels[done:], done + 1):
            mus, lams = (np.tile(w, (n_runs, 1)) for w in (mu, level))
            start = unpacked(state["points"]) if "points" in state else None
            runs = learn_gates(self.settings, folds, every, mus, lams, start=start, first=first)
            state = {**state, "levels": number, "points": packed(runs.points)}
            if number < len(levels):
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
