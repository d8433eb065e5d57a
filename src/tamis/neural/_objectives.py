"""Networks with one hidden layer, and the objective of gates on their inputs.

Networks of the same shape form a stack, whose arrays have the network as their first axis. A single
matrix product then computes all networks. Rows that a network must not learn from have weight 0, so
that all cross-validation folds share the same table.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from tamis._arrays import Array, Mask
from tamis._seeds import stream
from tamis.neural.gates import GATES, SPARSITY, Sparsity
from tamis.neural.redundancy import Dependence, GateUnits, Redundancy, group_dependences
from tamis.neural.solver import GateSolver, Runs

Rows = NDArray[np.intp]

#: Activation functions and their derivatives. The argument of a derivative is the value h of the
#: activation function.
ACTIVATIONS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "tanh": (np.tanh, lambda h: 1 - h**2),
    "sigmoid": (expit, lambda h: h * (1 - h)),
    "relu": (lambda z: np.maximum(z, 0), lambda h: (h > 0).astype(h.dtype)),
}


class Stack(NamedTuple):
    """Weights of K networks with F inputs, H hidden units and C outputs.

    Attributes
    ----------
    inner : array of shape (K, F, H)
    inner_bias : array of shape (K, H)
    outer : array of shape (K, H, C)
    outer_bias : array of shape (K, C)
    """

    inner: Array
    inner_bias: Array
    outer: Array
    outer_bias: Array

    @classmethod
    def drawn(
        cls, seed: int, n: int, n_inputs: int, hidden: int, n_classes: int, *, first: int = 0
    ) -> Self:
        """Draw small random weights (Glorot and Bengio 2010) for ``n`` networks.

        The networks have the numbers ``first``, ``first + 1`` and so on. The seed of a network
        depends on its number.
        """
        inner, outer = np.empty((n, n_inputs, hidden)), np.empty((n, hidden, n_classes))
        for k in range(n):
            draws = stream(seed, "weights", first + k)
            inner[k] = draws.normal(size=inner.shape[1:]) * np.sqrt(2 / (n_inputs + hidden))
            outer[k] = draws.normal(size=outer.shape[1:]) * np.sqrt(2 / (hidden + n_classes))
        return cls(inner, np.zeros((n, hidden)), outer, np.zeros((n, n_classes)))

    @classmethod
    def unpacked(cls, flat: Array, n_inputs: int, hidden: int, n_classes: int) -> Self:
        """Make a stack from an array with one row of weights for each network."""
        shapes = [(n_inputs, hidden), (hidden,), (hidden, n_classes), (n_classes,)]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        parts = np.split(flat, ends[:-1], axis=1)
        return cls(*(part.reshape(len(flat), *s) for part, s in zip(parts, shapes, strict=True)))

    def packed(self) -> Array:
        """Return an array in which each row contains all weights of one network."""
        return np.concatenate([part.reshape(len(part), -1) for part in self], axis=1)

    def pick(self, which: NDArray[np.intp]) -> "Stack":
        """Return a stack of the networks with the given indices."""
        return Stack(*(part[which] for part in self))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of inputs, hidden units and classes."""
        return (*self.inner.shape[1:], self.outer.shape[2])

    def probabilities(
        self, X: Array, activation: str, inner: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the class probabilities, of shape (K, rows, C), and the hidden activations.

        ``inner`` is used instead of the inner weights, for example the weights times the gates.
        """
        inner = self.inner if inner is None else inner
        hidden = ACTIVATIONS[activation][0](X @ inner + self.inner_bias[:, None])
        p = hidden @ self.outer + self.outer_bias[:, None]
        p -= p.max(axis=2, keepdims=True)
        np.exp(p, out=p)
        p /= p.sum(axis=2, keepdims=True)
        return p, hidden

    def slopes(self, X: Array, hidden: Array, slope: Array, activation: str) -> "Stack":
        """Return the derivatives of the loss with respect to all weights (backpropagation).

        ``slope`` is the derivative of the loss with respect to the outputs before the softmax. If
        the inputs are gated, the derivatives in ``inner`` are with respect to weights times gates.
        """
        at_hidden = slope @ self.outer.swapaxes(1, 2)
        at_hidden *= ACTIVATIONS[activation][1](hidden)
        by_outer = hidden.swapaxes(1, 2) @ slope
        return Stack(X.T @ at_hidden, at_hidden.sum(axis=1), by_outer, slope.sum(axis=1))

    def decay(self, decay: float, slopes: "Stack") -> Array:
        """Return the weight decay term of each network. Its derivative is added to ``slopes``."""
        squares = np.zeros(len(self.inner))
        for weights, by_weights in ((self.inner, slopes.inner), (self.outer, slopes.outer)):
            by_weights += decay * weights
            flat = weights.reshape(len(weights), -1)
            squares += np.einsum("kp,kp->k", flat, flat)
        return decay / 2 * squares


def log_loss(p: Array, codes: NDArray[np.intp], weights: Array) -> tuple[Array, Array]:
    """Return the weighted cross-entropy of each network, and its derivative.

    The derivative is with respect to the outputs before the softmax.
    """
    rows = np.arange(len(codes))
    values = -np.einsum("kn,kn->k", weights, np.log(np.maximum(p[:, rows, codes], 1e-300)))
    slope = p * weights[:, :, None]
    slope[:, rows, codes] -= weights
    return values, slope


def squared_loss(p: Array, codes: NDArray[np.intp], weights: Array) -> tuple[Array, Array]:
    """Return the weighted squared error of the probabilities, and its derivative.

    The derivative is with respect to the outputs before the softmax.
    """
    miss = p.copy()
    miss[:, np.arange(len(codes)), codes] -= 1
    values = np.einsum("kn,knc,knc->k", weights, miss, miss)
    pull = miss - np.einsum("knc,knc->kn", p, miss)[:, :, None]
    return values, 2 * weights[:, :, None] * p * pull


LOSSES = {"log": log_loss, "squared": squared_loss}


def one_vs_rest(p: Array, c: int, inside: Mask, weights: Array) -> tuple[Array, Array]:
    """Return the weighted binary cross-entropy of class c, and its derivative.

    The derivative is with respect to all outputs before the softmax. The loss of a row of class c
    is -log p_c. The loss of any other row is -log(1 - p_c), whose derivative is p_c for output c
    and -p_c p_k / (1 - p_c) for any other output k.
    """
    mine = np.clip(p[:, :, c], 1e-300, None)
    other = np.clip(1 - p[:, :, c], 1e-15, None)
    values = -np.einsum("kn,kn->k", weights, np.where(inside, np.log(mine), np.log(other)))
    slope = np.where(inside[:, None], p, -(mine / other)[:, :, None] * p)
    slope[:, :, c] = np.where(inside, mine - 1, mine)
    return values, weights[:, :, None] * slope


@dataclass
class NetworkLoss:
    """Loss of networks on weighted rows, plus weight decay.

    ``network`` is a NetworkClassifier. ``masks``, of shape (K, F), is 1 for the inputs that a
    network uses and 0 for the others. After a call, ``outputs`` contains the class probabilities of
    all rows, which are used to score held-out rows.
    """

    network: Any
    X: Array
    codes: NDArray[np.intp]
    weights: Array
    masks: Array | None = None

    def __post_init__(self) -> None:
        self.shape = self.X.shape[1], self.network.hidden, int(self.codes.max()) + 1

    def __call__(self, points: Array, runs: Runs, rows: Rows | None = None) -> tuple[Array, Array]:
        X, codes, weights = self.X, self.codes, self.weights[runs]
        if rows is not None:  # rescale the weights so that they sum to 1 for each network
            X, codes, weights = X[rows], codes[rows], weights[:, rows]
            total = weights.sum(axis=1, keepdims=True)
            weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
        activation, stack = self.network.activation, Stack.unpacked(points, *self.shape)
        self.outputs, hidden = stack.probabilities(X, activation)
        values, slope = LOSSES[self.network.loss](self.outputs, codes, weights)
        gradient = stack.slopes(X, hidden, slope, activation)
        if self.masks is not None:
            gradient.inner[:] *= self.masks[runs, :, None]
        values += stack.decay(self.network.decay_of(*self.X.shape), gradient)
        return values, gradient.packed()


@dataclass(frozen=True)
class GateSettings:
    """Parameters of a ``GateSelector``, after names and None have been replaced by objects.

    ``network`` is a NetworkClassifier whose ``random_state`` is an integer. ``scope`` defines which
    rows of the table a row of gates multiplies (see :class:`GateLoss`). ``units`` maps columns to
    gates. A unit is a column, or a group of columns that share a gate and are selected together.
    """

    gate: str
    scope: str
    sparsity: Sparsity
    redundancy: Redundancy
    solver: GateSolver
    joint: bool
    network: Any
    seed: int
    units: GateUnits

    def n_rows(self, n_classes: int) -> int:
        """Return the number of rows of gates: 1 for scope "global", else the number of classes."""
        return 1 if self.scope == "global" else n_classes

    def dependences(self, X: Array, codes: NDArray[np.intp], n_classes: int) -> list[Dependence]:
        """Return the dependence matrices of the units.

        The list contains one matrix for all rows of gates, or one matrix for each row of gates.
        """
        between = self.redundancy.between(X, codes, n_classes, self.scope)
        return group_dependences(between, self.units)


@dataclass(frozen=True)
class GateFolds:
    """Training data of all folds: rows, trained networks and redundancy.

    Attributes
    ----------
    X : array of shape (n_samples, n_features)
        Rows of all folds, sorted by class.
    codes : array of shape (n_samples,)
        Class numbers.
    used : array of bool, of shape (n_folds, n_samples)
        Mask of the training rows of each fold.
    stack : Stack
        The networks of the first fold, followed by the networks of the second fold, and so on.
    redundancy : sequence of sequence of Dependence
        For each fold, one dependence matrix for all rows of gates, or one matrix for each row of
        gates.
    """

    X: Array
    codes: NDArray[np.intp]
    used: Mask
    stack: Stack
    redundancy: Sequence[Sequence[Dependence]]

    @property
    def n_networks(self) -> int:
        """Number of networks in each fold."""
        return len(self.stack.inner) // len(self.used)

    @property
    def mean_redundancy(self) -> float:
        """Mean dependence over all pairs of units, in all dependence matrices of all folds."""
        return float(np.mean([phi.mean for fold in self.redundancy for phi in fold]))


@dataclass(eq=False, repr=False)
class GateLoss:
    """Objective of gates: loss of the gated networks, sparsity and redundancy.

    A run is one training of gates. It has G rows of F gates. Its parameters are the G x F gate
    parameters, followed by the weights of its network if these are learned jointly. Run r is
    trained on the rows ``folds.used[fold[r]]``. The sparsity weight of row g of its gates is
    ``mu[r, g]``, and the redundancy weight is ``lam[r, g]``. If networks are frozen, the loss of a
    run is the mean loss over the networks of its fold.

    Scope "global" has one row of gates for all rows of X. Scope "class" applies row c of the gates
    to the rows of class c. Scope "one-vs-rest" applies row c to all rows, and its loss is the
    binary cross-entropy of output c.

    Attributes
    ----------
    terms : tuple of three arrays
        Loss, sparsity and redundancy of each run at the last call.
    pull : array
        Minus the derivative of the loss with respect to each gate, at the last call.
    """

    settings: GateSettings
    folds: GateFolds
    fold: Runs
    mu: Array
    lam: Array
    width: float = 1.0

    def __post_init__(self) -> None:
        self.gate = GATES[self.settings.gate]
        self.n_classes = self.folds.stack.shape[2]
        self.n_rows = self.settings.n_rows(self.n_classes)
        self.n_gates = self.n_rows * len(self.settings.units.sizes)

    def __call__(self, points: Array, runs: Runs, rows: Rows | None = None) -> tuple[Array, Array]:
        units = self.settings.units
        b = points[:, : self.n_gates].reshape(len(points), self.n_rows, -1)
        gate, opening = self.gate(b)
        gradient = np.zeros_like(points)
        weights, by_weights = points[:, self.n_gates :], gradient[:, self.n_gates :]
        loss, by_column = self._loss(units.spread(gate), weights, runs, rows, by_weights)
        by_gate = units.sum(by_column)
        sparsity, by_sparsity = self._sparsity(gate, runs)
        redundancy, by_redundancy = self._redundancy(gate, runs)
        self.terms, self.pull = (loss, sparsity, redundancy), -by_gate
        by_b = (by_gate + by_sparsity + by_redundancy) * opening
        gradient[:, : self.n_gates] = by_b.reshape(len(points), -1)
        return loss + sparsity + redundancy, gradient

    def _sparsity(self, gate: Array, runs: Runs) -> tuple[Array, Array]:
        """Return the weighted mean sparsity penalty of the gates, and its derivative."""
        cost = self.mu[runs] / gate[0].size
        values, slopes = SPARSITY[self.settings.sparsity.kind](gate, self.width)
        return np.einsum("rg,rgf->r", cost, values), cost[:, :, None] * slopes

    def _redundancy(self, gate: Array, runs: Runs) -> tuple[Array, Array]:
        """Return the redundancy term, lam / (F (F - 1)) s' phi s, and its derivative.

        The vector s contains the shares of the gates. The term is averaged over the rows of gates.
        The derivative of the symmetric double sum has a factor 2, which is missing in equations
        (3.7) to (3.9) of Varshney (2019).
        """
        share, by_gate = self.gate.share(gate)
        n_rows, n_inputs = gate.shape[1:]
        cost = self.lam[runs] / (n_rows * max(n_inputs * (n_inputs - 1), 1))
        met = np.empty_like(share)  # redundancy of each gate with all others
        fold = self.fold[runs]
        for k in np.unique(fold):
            between = self.folds.redundancy[k]
            for g in range(n_rows):
                phi = between[g if len(between) > 1 else 0]
                met[fold == k, g] = phi.times(share[fold == k, g])
        values = np.einsum("rg,rgf,rgf->r", cost, share, met)
        return values, 2 * cost[:, :, None] * met * by_gate

    def _loss(
        self, gate: Array, weights: Array, runs: Runs, rows: Rows | None, by_weights: Array
    ) -> tuple[Array, Array]:
        """Return the loss of each run, and its derivative with respect to the gates.

        The derivative with respect to jointly learned weights is added to ``by_weights``.
        """
        n_runs, fold, network = len(gate), self.fold[runs], self.settings.network
        joint, networks = self.settings.joint, self.folds.stack
        if joint:
            each, stack = 1, Stack.unpacked(weights, *networks.shape)
        else:  # each run uses all networks of its fold
            each = self.folds.n_networks
            stack = networks.pick((fold[:, None] * each + np.arange(each)).ravel())
        values, by_gate = np.zeros(n_runs), np.zeros_like(gate)
        total = Stack.unpacked(by_weights, *networks.shape) if joint else None
        for g, X, target, shares in self._views(rows):
            opened = np.repeat(gate[:, g], each, axis=0)[:, :, None]
            p, hidden = stack.probabilities(X, network.activation, opened * stack.inner)
            shares = np.repeat(shares[fold], each, axis=0)
            if self.settings.scope == "one-vs-rest":
                lost, slope = one_vs_rest(p, g, target == g, shares)
            else:
                lost, slope = LOSSES[network.loss](p, target, shares)
            slopes = stack.slopes(X, hidden, slope, network.activation)
            values += lost.reshape(n_runs, each).mean(axis=1)
            pull = np.einsum("kfh,kfh->kf", slopes.inner, stack.inner)
            by_gate[:, g] += pull.reshape(n_runs, each, -1).mean(axis=1)
            if total is not None:
                slopes.inner[:] *= opened
                for part, more in zip(total, slopes, strict=True):
                    part += more
        if total is not None:
            values += stack.decay(network.decay_of(*self.folds.X.shape), total)
        return values, by_gate

    def _views(self, rows: Rows | None) -> Iterator[tuple[int, Array, NDArray[np.intp], Array]]:
        """Yield each row of gates with the rows of X that it applies to.

        Each item contains the index of the row of gates, the rows of X, their class numbers, and
        their weights in each fold.
        """
        X, codes, used = self.folds.X, self.folds.codes, self.folds.used
        if rows is not None:
            X, codes, used = X[rows], codes[rows], used[:, rows]
        if self.settings.scope == "global":
            yield 0, X, codes, _shared(used)
            return
        edges = np.searchsorted(codes, np.arange(self.n_classes + 1))
        for c, (first, end) in enumerate(pairwise(edges)):
            if self.settings.scope == "class":
                own = slice(first, end)
                yield c, X[own], codes[own], _shared(used[:, own]) / self.n_classes
            else:
                inside = codes == c
                shares = _shared(used & inside) + _shared(used & ~inside)
                yield c, X, codes, shares / (2 * self.n_classes)


def _shared(used: Mask) -> Array:
    """Return the weights of the rows in each fold.

    Used rows of a fold have equal weights, which sum to 1. All other rows have weight 0.
    """
    return used / np.maximum(used.sum(axis=1, keepdims=True), 1)
