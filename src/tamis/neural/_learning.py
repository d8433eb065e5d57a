"""From a table to gates, stage after stage, after each of which one may stop."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tamis._arrays import Array, class_codes, standardised
from tamis.exceptions import InvalidParameter
from tamis.neural._checks import as_numbers
from tamis.neural._gating import GateFolds, GateSettings, learn_gates, strength
from tamis.neural._state import State, packed, packed_all, unpacked
from tamis.neural.grid import Choose, GatePath, GridWalk, rising
from tamis.neural.network import NetworkClassifier

#: Folds by which "auto" scores: each network learns from two thirds of the rows, and the fewest
#: networks are trained that say anything of rows they have not seen.
N_FOLDS = 3


@dataclass(frozen=True)
class GateWeights:
    """Weights of sparsity and redundancy for each row of gates, None where "auto" finds them."""

    mu: Array | None
    lam: Array | None

    @classmethod
    def read(cls, mu: Any, lam: Any, scope: str, n_classes: int) -> "GateWeights":
        """The weights that a selector holds, which only now can be held against the classes."""
        n_rows = 1 if scope == "global" else n_classes
        weights = cls(_weight("mu", mu, scope, n_rows), _weight("lam", lam, scope, n_rows))
        for name, given in vars(weights).items():
            if weights.auto and given is not None and np.ptp(given) > 0:
                raise InvalidParameter(
                    f"GateSelector needs {name} as one number where the other weight is 'auto', "
                    f"not one for each class ({given.tolist()!r}). Give numbers for both."
                )
        return weights

    @property
    def auto(self) -> bool:
        """Whether a weight is left to the data."""
        return self.mu is None or self.lam is None

    def grid(self, name: str) -> Array | None:
        """The numbers of the grid: the weight that is given, None for those of "auto"."""
        given: Array | None = getattr(self, name)
        return None if given is None else given[:1]


def _weight(name: str, given: Any, scope: str, n_rows: int) -> Array | None:
    if isinstance(given, str) and given == "auto":
        return None
    values = as_numbers(given)
    if values.ndim > 1 or not np.isfinite(values).all() or (values < 0).any():
        raise InvalidParameter(
            f"GateSelector needs {name} as a number of at least 0, one such number for each "
            f"class, or 'auto', not {given!r}."
        )
    if values.ndim == 1 and len(values) != n_rows:
        raise InvalidParameter(
            f"GateSelector needs one {name} for each row of gates, which with scope="
            f"{scope!r} are {n_rows}, but got {len(values)}."
        )
    return np.full(n_rows, values)


class GateTraining:
    """What a selector learns from one table.

    The state after a stage holds what was found so far and goes through JSON unchanged: ``network``
    first; then, where a weight is "auto", the ``walk`` over the grid until there is a ``path``;
    then ``points`` after each of the ``levels`` of lam on the way to the one that is wanted; in the
    end ``gates``, their ``history``, ``mu``, ``lam`` and whether they ``diverged``.
    """

    def __init__(
        self,
        settings: GateSettings,
        weights: GateWeights,
        choose: Choose,
        X: Array,
        y: NDArray[Any],
    ):
        self.settings, self.weights, self.choose = settings, weights, choose
        self.X, self.y = X, y
        self.classes, codes = class_codes(y)
        by_class = np.argsort(codes, kind="stable")
        self.Z, self.codes = standardised(X)[by_class], codes[by_class]
        self._phi = settings.redundancy.between(
            self.Z, self.codes, len(self.classes), settings.scope
        )

    def stages(self, state: State) -> Iterator[State]:
        """The state after each stage that is still to be done."""
        if "gates" in state:
            return
        if "network" not in state:
            network = clone(self.settings.network).fit(self.X, self.y)
            state = {**state, "network": network.state()}
            yield state
        if self.weights.auto and "path" not in state:
            for walk in self._walk().stages(state.get("walk", {})):
                rest = _without(state, "walk")
                state = {**rest, **walk} if "path" in walk else {**rest, "walk": walk}
                yield state
        yield from self._followed(state)

    def network(self, state: State) -> NetworkClassifier:
        """The network of a state."""
        return clone(self.settings.network).restore(state["network"], self.classes)

    def _walk(self) -> GridWalk:
        mu, lam = self.weights.grid("mu"), self.weights.grid("lam")
        return GridWalk(self.settings, self.choose, self.Z, self.codes, mu, lam, N_FOLDS)

    def _followed(self, state: State) -> Iterator[State]:
        """Gates under the weights given, or under the best of the path, walked up to there."""
        used = np.ones((1, len(self.Z)), dtype=bool)
        stack = self.network(state).networks()
        folds = GateFolds(self.Z, self.codes, used, stack, [self._phi])
        mu, levels = self._levels(state, folds)
        n_runs = len(stack.inner) if self.settings.joint else 1
        every, first = np.zeros(n_runs, dtype=np.intp), np.arange(n_runs)
        done = state.get("levels", 0)
        for number, level in enumerate(levels[done:], done + 1):
            mus, lams = (np.tile(w, (n_runs, 1)) for w in (mu, level))
            start = unpacked(state["points"]) if "points" in state else None
            gated = learn_gates(self.settings, folds, every, mus, lams, start=start, first=first)
            state = {**state, "levels": number, "points": packed(gated.points)}
            if number < len(levels):
                yield state
        best = int(np.argmin(gated.values))
        epochs = ~np.isnan(gated.history["loss"][:, best])
        yield {
            **_without(state, "levels", "points"),
            "gates": packed(strength(gated.gates[best], self.Z)),
            "history": packed_all({n: term[epochs, best] for n, term in gated.history.items()}),
            "mu": packed(mu),
            "lam": packed(levels[-1]),
            "diverged": bool(gated.diverged[best]),
        }

    def _levels(self, state: State, folds: GateFolds) -> tuple[Array, list[Array]]:
        """The weight of sparsity, and those of redundancy up to the one that is wanted."""
        if self.weights.mu is not None and self.weights.lam is not None:
            return self.weights.mu, [self.weights.lam]
        path, n_rows = GatePath.restored(state["path"]), self.settings.n_rows(len(self.classes))
        along = rising(path.mu[[path.best]], self.weights.grid("lam"), folds.mean_redundancy)[:, 0]
        levels = [np.full(n_rows, level) for level in along[: path.best % len(along) + 1]]
        return np.full(n_rows, path.mu[path.best]), levels


def _without(state: State, *names: str) -> State:
    return {name: found for name, found in state.items() if name not in names}
