"""Networks of one hidden layer, and what is minimised: their loss, and the cost of open gates.

Many networks of one shape form a stack, whose arrays have the network as their first axis: a
product over a stack is one call for all of its networks. Rows that a network must not learn from
have weight 0, so that the folds of a cross-validation share one table.
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

#: Activations: the value of the hidden units, and the derivative as a function of that value.
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
        """Small random weights, by the number of each network (Glorot and Bengio 2010)."""
        inner, outer = np.empty((n, n_inputs, hidden)), np.empty((n, hidden, n_classes))
        for k in range(n):
            draws = stream(seed, "weights", first + k)
            inner[k] = draws.normal(size=inner.shape[1:]) * np.sqrt(2 / (n_inputs + hidden))
            outer[k] = draws.normal(size=outer.shape[1:]) * np.sqrt(2 / (hidden + n_classes))
        return cls(inner, np.zeros((n, hidden)), outer, np.zeros((n, n_classes)))

    @classmethod
    def unpacked(cls, flat: Array, n_inputs: int, hidden: int, n_classes: int) -> Self:
        """Return the stack whose weights stand one after the other in each row."""
        shapes = [(n_inputs, hidden), (hidden,), (hidden, n_classes), (n_classes,)]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        parts = np.split(flat, ends[:-1], axis=1)
        return cls(*(part.reshape(len(flat), *s) for part, s in zip(parts, shapes, strict=True)))

    def packed(self) -> Array:
        """All weights of each network in one row."""
        return np.concatenate([part.reshape(len(part), -1) for part in self], axis=1)

    def pick(self, which: NDArray[np.intp]) -> "Stack":
        """Return some of the networks."""
        return Stack(*(part[which] for part in self))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of inputs, hidden units and classes."""
        return (*self.inner.shape[1:], self.outer.shape[2])

    def probabilities(
        self, X: Array, activation: str, inner: Array | None = None
    ) -> tuple[Array, Array]:
        """Softmax of the outputs, of shape (K, n, C), and the values of the hidden units.

        ``inner`` replaces the inner weights, as gates times weights do.
        """
        inner = self.inner if inner is None else inner
        hidden = ACTIVATIONS[activation][0](X @ inner + self.inner_bias[:, None])
        p = hidden @ self.outer + self.outer_bias[:, None]
        p -= p.max(axis=2, keepdims=True)
        np.exp(p, out=p)
        p /= p.sum(axis=2, keepdims=True)
        return p, hidden

    def slopes(self, X: Array, hidden: Array, slope: Array, activation: str) -> "Stack":
        """Derivatives by all weights, from those by the outputs.

        Those by the inner weights are by whatever multiplied the inputs: weights times gates.
        """
        at_hidden = slope @ self.outer.swapaxes(1, 2)
        at_hidden *= ACTIVATIONS[activation][1](hidden)
        by_outer = hidden.swapaxes(1, 2) @ slope
        return Stack(X.T @ at_hidden, at_hidden.sum(axis=1), by_outer, slope.sum(axis=1))

    def decay(self, decay: float, slopes: "Stack") -> Array:
        """Weight decay of each network; its derivative is added to ``slopes``."""
        squares = np.zeros(len(self.inner))
        for weights, by_weights in ((self.inner, slopes.inner), (self.outer, slopes.outer)):
            by_weights += decay * weights
            flat = weights.reshape(len(weights), -1)
            squares += np.einsum("kp,kp->k", flat, flat)
        return decay / 2 * squares


def log_loss(p: Array, codes: NDArray[np.intp], weights: Array) -> tuple[Array, Array]:
    """Weighted cross-entropy of each network, and its derivative by the outputs."""
    rows = np.arange(len(codes))
    values = -np.einsum("kn,kn->k", weights, np.log(np.maximum(p[:, rows, codes], 1e-300)))
    slope = p * weights[:, :, None]
    slope[:, rows, codes] -= weights
    return values, slope


def squared_loss(p: Array, codes: NDArray[np.intp], weights: Array) -> tuple[Array, Array]:
    """Weighted squared distance of the probabilities to the target vectors, as in (2.4)."""
    miss = p.copy()
    miss[:, np.arange(len(codes)), codes] -= 1
    values = np.einsum("kn,knc,knc->k", weights, miss, miss)
    pull = miss - np.einsum("knc,knc->kn", p, miss)[:, :, None]
    return values, 2 * weights[:, :, None] * p * pull


LOSSES = {"log": log_loss, "squared": squared_loss}


def one_vs_rest(p: Array, c: int, inside: Mask, weights: Array) -> tuple[Array, Array]:
    """Weighted binary cross-entropy of output c, and its derivative by all outputs.

    For a row of class c the loss is -log p_c, else -log(1 - p_c) with derivative p_c by output c
    and -p_c p_k / (1 - p_c) by the others.
    """
    mine = np.clip(p[:, :, c], 1e-300, None)
    other = np.clip(1 - p[:, :, c], 1e-15, None)
    values = -np.einsum("kn,kn->k", weights, np.where(inside, np.log(mine), np.log(other)))
    slope = np.where(inside[:, None], p, -(mine / other)[:, :, None] * p)
    slope[:, :, c] = np.where(inside, mine - 1, mine)
    return values, weights[:, :, None] * slope


@dataclass
class NetworkLoss:
    """Loss of networks on their weighted rows, with weight decay.

    ``network`` is a NetworkClassifier. ``masks``, of shape (K, F), has the inputs of each network.
    After a call ``outputs`` holds the probabilities of all rows, by which held-out rows are scored.
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
        if rows is not None:  # their weights sum to 1 for each network, as those of all rows do
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
    """What gates are learned by: the parameters of a ``GateSelector``, words and None resolved.

    ``network``, a NetworkClassifier, and ``seed`` have their seeds as numbers. ``scope`` says which
    rows of the table each row of gates multiplies, see :class:`GateLoss`; ``units`` which columns
    share a gate.
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
        """Number of rows of gates."""
        return 1 if self.scope == "global" else n_classes

    def dependences(self, X: Array, codes: NDArray[np.intp], n_classes: int) -> list[Dependence]:
        """Dependence of the units: one for all rows of gates, or one for each."""
        between = self.redundancy.between(X, codes, n_classes, self.scope)
        return group_dependences(between, self.units)


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
    def n_networks(self) -> int:
        """Number of networks of each fold."""
        return len(self.stack.inner) // len(self.used)

    @property
    def mean_redundancy(self) -> float:
        """Mean dependence of two columns, over folds and rows of gates."""
        return float(np.mean([phi.mean for fold in self.redundancy for phi in fold]))


class GateLoss:
    """Equations (3.4) to (3.6): the loss of gated networks, and what open gates cost.

    A point of a run holds its G x F gate parameters and, where the weights are learned jointly,
    those of its network behind them. Run r learns from the rows that ``folds.used[fold[r]]`` marks
    and pays ``mu[r, g]`` for the sparsity and ``lam[r, g]`` for the redundancy of row g of its
    gates. Frozen, the loss of a run is the mean over the networks of its fold; learned jointly,
    only their shape matters.

    Scope "global" is one row of gates for all rows of X; "class" is row c for the rows of class c;
    "one-vs-rest" is row c for all rows, measured by how well output c tells class c from the
    others.

    Attributes
    ----------
    terms : tuple of three arrays
        Loss, sparsity and redundancy of each run at the last call.
    pull : array
        Rise of the loss for each unit that a gate closes, at the last call.
    """

    terms: tuple[Array, Array, Array]
    pull: Array

    def __init__(
        self,
        settings: GateSettings,
        folds: GateFolds,
        fold: Runs,
        mu: Array,
        lam: Array,
        width: float = 1.0,
    ):
        self.settings, self.folds, self.fold = settings, folds, fold
        self.mu, self.lam, self.width = mu, lam, width
        self.gate = GATES[settings.gate]
        self.n_classes = folds.stack.shape[2]
        self.n_rows = settings.n_rows(self.n_classes)
        self.n_gates = self.n_rows * len(settings.units.sizes)

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
        """mu / F times the sum over the gates, mean over their rows, and the derivative."""
        cost = self.mu[runs] / gate[0].size
        values, slopes = SPARSITY[self.settings.sparsity.kind](gate, self.width)
        return np.einsum("rg,rgf->r", cost, values), cost[:, :, None] * slopes

    def _redundancy(self, gate: Array, runs: Runs) -> tuple[Array, Array]:
        """lam / F(F-1) s' phi s, mean over the rows of gates, and its derivative by the gates.

        The symmetric double sum gives the derivative the factor 2 that the printed (3.7)-(3.9)
        have lost.
        """
        share, by_gate = self.gate.share(gate)
        n_rows, n_inputs = gate.shape[1:]
        cost = self.lam[runs] / (n_rows * max(n_inputs * (n_inputs - 1), 1))
        met = np.empty_like(share)  # how much redundancy each gate meets
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
        """Loss of each run and its derivative by the gates; that by learned weights is added."""
        n_runs, fold, network = len(gate), self.fold[runs], self.settings.network
        joint, networks = self.settings.joint, self.folds.stack
        if joint:
            each, stack = 1, Stack.unpacked(weights, *networks.shape)
        else:  # every run meets every network of its fold
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
        """For each row of gates the rows of X that pass it, their targets, their shares by fold."""
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
    """Equal shares of the rows used in each fold, together 1, or 0 where there are none."""
    return used / np.maximum(used.sum(axis=1, keepdims=True), 1)
