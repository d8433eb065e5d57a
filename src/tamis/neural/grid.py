"""The grid of weights that "auto" tries, scored on held-out rows."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tamis._arrays import Array, Mask
from tamis._checks import number, one_of, several
from tamis.neural._gate_runs import close_constant, learn_gates
from tamis.neural._networks import deal, train
from tamis.neural._objectives import GateFolds, GateSettings, Stack
from tamis.neural._state import State, packed, packed_all, unpacked, unpacked_all

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
        (last,) = deque(self.stages({}), maxlen=1)
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
