"""The grid of weights that "auto" looks at, walked on rows of which some are held out."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tamis._arrays import Array, Mask
from tamis.neural._gating import GateFolds, GateSettings, learn_gates, strength
from tamis.neural._stack import Stack
from tamis.neural._state import State, packed, packed_all, unpacked, unpacked_all
from tamis.neural._training import deal, train
from tamis.neural.network import NetworkClassifier

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
        """The path in what JSON can say."""
        return packed_all(vars(self))

    @classmethod
    def restored(cls, state: State) -> "GatePath":
        """The path that :meth:`state` told of."""
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
class GridWalk:
    """The walk over a grid of weights, on standardised columns whose rows are sorted by class.

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
        """The whole walk."""
        (last,) = deque(self.stages({}), maxlen=1)
        return GatePath.restored(last["path"])

    def stages(self, state: State) -> Iterator[State]:
        """The state after the networks of the folds, after each ``lam``, and at the end.

        Goes on from a state that it gave; the last holds the ``path`` and nothing else.
        """
        held_out = deal(self.codes, self.n_folds, self.settings.seed) == self._numbers()[:, None]
        if "networks" not in state:
            runs = np.repeat(held_out, self.settings.network.restarts, axis=0)
            # they end where they end, not where they are best on the rows that score
            trained = train(self.settings.network, self.Z, self.codes, runs, early_stopping=False)
            state = {"networks": packed(trained.stack.packed()), "chosen": []}
            yield state
        folds = self._folds(held_out, unpacked(state["networks"]))
        mu = np.array(MUS) if self.mu is None else self.mu
        lams = rising(mu, self.lam, folds.mean_redundancy)
        for level in lams[len(state["chosen"]) :]:
            state = self._moved(state, folds, mu, level)
            yield state
        chosen = np.array([unpacked(masks) for masks in state["chosen"]])
        yield {"path": self._scored(held_out, mu, lams, chosen).state()}

    def _numbers(self) -> NDArray[np.intp]:
        return np.arange(self.n_folds)

    def _folds(self, held_out: Mask, weights: Array) -> GateFolds:
        n_classes, network = int(self.codes.max()) + 1, self.settings.network
        stack = Stack.unpacked(weights, self.Z.shape[1], network.hidden, n_classes)
        between, scope = self.settings.redundancy.between, self.settings.scope
        phi = [between(self.Z[~out], self.codes[~out], n_classes, scope) for out in held_out]
        return GateFolds(self.Z, self.codes, ~held_out, stack, phi)

    def _moved(self, state: State, folds: GateFolds, mu: Array, level: Array) -> State:
        """One ``lam`` further, for every fold and ``mu``."""
        fold, which = (part.ravel() for part in np.indices((self.n_folds, len(mu))))
        n_rows = self.settings.n_rows(int(self.codes.max()) + 1)
        mus, lams = (np.repeat(w[which, None], n_rows, axis=1) for w in (mu, level))
        start = unpacked(state["points"]) if "points" in state else None
        gated = learn_gates(self.settings, folds, fold, mus, lams, start=start)
        rows = [self.Z[used] for used in folds.used]
        chosen = [
            self.choose(strength(gates, rows[k]))
            for gates, k in zip(gated.gates, fold, strict=True)
        ]
        masks = [*state["chosen"], packed(np.array(chosen))]
        return {**state, "points": packed(gated.points), "chosen": masks}

    def _scored(self, held_out: Mask, mu: Array, lams: Array, chosen: Mask) -> GatePath:
        """What networks trained on the chosen columns are worth on the rows held out."""
        # (n_lam, n_folds, n_mu, F) -> (n_mu, n_lam, n_folds, F)
        by_point = chosen.reshape(len(lams), self.n_folds, len(mu), -1).transpose(2, 0, 1, 3)
        support = by_point.reshape(-1, *by_point.shape[2:])
        accuracy, loss = scored(self.settings.network, self.Z, self.codes, held_out, support)
        return GatePath(
            mu=np.repeat(mu, len(lams)),
            lam=lams.T.ravel(),
            accuracy=accuracy,
            error=np.sqrt(accuracy * (1 - accuracy) / len(self.codes)),
            loss=loss,
            size=support.sum(axis=2).mean(axis=1),
            support=support,
        )


def scored(
    network: NetworkClassifier, Z: Array, codes: NDArray[np.intp], held_out: Mask, support: Mask
) -> tuple[Array, Array]:
    """Accuracy and loss on held-out rows of networks trained on the chosen columns, all at once."""
    n_points, n_folds, _ = support.shape
    anywhere = support.any(axis=(0, 1))
    masks = support.reshape(n_points * n_folds, -1)[:, anywhere].astype(float)
    runs = np.tile(held_out, (n_points, 1))
    settings = clone(network).set_params(**SCORING)
    trained = train(settings, Z[:, anywhere], codes, runs, masks=masks, early_stopping=False)
    rows = held_out.sum(axis=1) / held_out.size * n_folds  # folds may differ by a row
    accuracy, loss = (a.reshape(n_points, n_folds) @ rows for a in (trained.accuracy, trained.loss))
    return accuracy.round(12), loss  # equal accuracies are equal, and none is above 1
