"""What is minimised: the loss of networks, and the loss, sparsity and redundancy of gates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis.neural._optimise import Runs
from tamis.neural._sharing import Sharing
from tamis.neural._stack import (
    LOSSES,
    Stack,
    back_propagate,
    hidden_units,
    probabilities,
)
from tamis.neural.gates import SPARSITY, Gate
from tamis.neural.redundancy import Dependence

Rows = NDArray[np.intp]


@dataclass
class NetworkLoss:
    """Loss of networks on their weighted rows, with weight decay.

    ``masks``, of shape (K, F), says which inputs each network has. After a call ``outputs`` holds
    the probabilities of all rows, from which held-out rows are scored at no further cost.
    """

    X: Array
    codes: NDArray[np.intp]
    weights: Array
    shape: tuple[int, int, int]
    activation: str
    loss: str
    decay: float
    masks: Array | None = None

    def __call__(self, points: Array, runs: Runs, rows: Rows | None = None) -> tuple[Array, Array]:
        X, codes, weights = self.X, self.codes, self.weights[runs]
        if rows is not None:
            X, codes, weights = X[rows], codes[rows], _rescaled(weights, rows)
        stack = Stack.unpacked(points, *self.shape)
        hidden = hidden_units(X, stack.inner, stack.inner_bias, self.activation)
        self.outputs = probabilities(stack, hidden)
        values, slope = LOSSES[self.loss](self.outputs, codes, weights)
        slopes = back_propagate(stack, hidden, slope, self.activation)
        inner = X.T @ slopes.at_hidden
        if self.masks is not None:
            inner *= self.masks[runs, :, None]
        inner += self.decay * stack.inner
        outer = slopes.outer + self.decay * stack.outer
        values += self.decay / 2 * (_squares(stack.inner) + _squares(stack.outer))
        gradient = Stack(inner, slopes.inner_bias, outer, slopes.outer_bias)
        return values, gradient.packed()


@dataclass
class GateLoss:
    """Equations (3.4) to (3.6): the loss of gated networks, and what open gates cost.

    A point of a run holds its G x F gate parameters and, where the weights are learned jointly,
    those of its network behind them. The rows of X are sorted by class. Run r learns from the rows
    that ``used[fold[r]]`` marks and pays ``mu[r, g]`` for the sparsity and ``lam[r, g]`` for the
    redundancy of row g of its gates.

    Attributes
    ----------
    used : array of bool, of shape (n_folds, n_samples)
    fold : array of int, of shape (n_runs,)
    stack : Stack
        Networks in front of which the gates stand, the same number for every fold, one fold after
        the other. Frozen, the loss of a run is the mean over those of its fold; learned jointly,
        only their shape matters.
    scope : {"global", "class", "one-vs-rest"}
        One row of gates for all rows of X; row c for the rows of class c; or row c for all rows,
        measured by how well output c tells class c from the others.
    redundancy : for each fold one dependence for all rows of gates, or one for each
    sharing : Sharing or None
        Which columns share a gate; F is then the number of units.
    """

    X: Array
    codes: NDArray[np.intp]
    used: Mask
    fold: Runs
    stack: Stack
    activation: str
    loss: str
    gate: Gate
    scope: str
    sparsity: str
    width: float
    redundancy: Sequence[Sequence[Dependence]]
    mu: Array
    lam: Array
    joint: bool
    decay: float
    sharing: Sharing | None = None

    def __post_init__(self) -> None:
        self.n_classes = self.stack.shape[2]
        self.n_rows = 1 if self.scope == "global" else self.n_classes
        n_units = self.X.shape[1] if self.sharing is None else len(self.sharing.sizes)
        self.n_gates = self.n_rows * n_units
        #: loss, sparsity and redundancy of each run at the last call
        self.terms: tuple[Array, Array, Array] = (np.empty(0),) * 3
        #: rise of the loss for each unit that a gate closes, at the last call
        self.pull: Array = np.empty(0)

    def __call__(self, points: Array, runs: Runs, rows: Rows | None = None) -> tuple[Array, Array]:
        b = points[:, : self.n_gates].reshape(len(points), self.n_rows, -1)
        gate, opening = self.gate(b)
        gradient = np.zeros_like(points)
        weights, by_weights = points[:, self.n_gates :], gradient[:, self.n_gates :]
        opened = gate if self.sharing is None else self.sharing.spread(gate)
        loss, by_gate = self._loss(opened, weights, runs, rows, by_weights)
        if self.sharing is not None:
            by_gate = self.sharing.summed(by_gate)
        sparsity, by_sparsity = self._sparsity(gate, runs)
        redundancy, by_redundancy = self._redundancy(gate, runs)
        self.terms, self.pull = (loss, sparsity, redundancy), -by_gate
        by_b = (by_gate + by_sparsity + by_redundancy) * opening
        gradient[:, : self.n_gates] = by_b.reshape(len(points), -1)
        return loss + sparsity + redundancy, gradient

    def _sparsity(self, gate: Array, runs: Runs) -> tuple[Array, Array]:
        """mu / F times the sum over the gates, mean over their rows, and the derivative."""
        cost = self.mu[runs] / gate[0].size
        values, slopes = SPARSITY[self.sparsity](gate, self.width)
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
            for g in range(n_rows):
                phi = self.redundancy[k][g if len(self.redundancy[k]) > 1 else 0]
                met[fold == k, g] = phi.times(share[fold == k, g])
        values = np.einsum("rg,rgf,rgf->r", cost, share, met)
        return values, 2 * cost[:, :, None] * met * by_gate

    def _loss(
        self, gate: Array, weights: Array, runs: Runs, rows: Rows | None, by_weights: Array
    ) -> tuple[Array, Array]:
        """Loss of each run and its derivative by the gates; that by learned weights is added."""
        n_runs, fold = len(gate), self.fold[runs]
        if self.joint:
            each, stack = 1, Stack.unpacked(weights, *self.stack.shape)
        else:  # every run meets every network of its fold
            each = len(self.stack.inner) // len(self.used)
            stack = self.stack.pick((fold[:, None] * each + np.arange(each)).ravel())
        values, by_gate = np.zeros(n_runs), np.zeros_like(gate)
        total = Stack.unpacked(by_weights, *self.stack.shape) if self.joint else None
        for g, X, target, shares in self._views(rows):
            opened = np.repeat(gate[:, g], each, axis=0)[:, :, None]
            hidden = hidden_units(X, opened * stack.inner, stack.inner_bias, self.activation)
            p = probabilities(stack, hidden)
            shares = np.repeat(shares[fold], each, axis=0)
            if self.scope == "one-vs-rest":
                lost, slope = one_vs_rest(p, g, target, shares)
            else:
                lost, slope = LOSSES[self.loss](p, target, shares)
            slopes = back_propagate(stack, hidden, slope, self.activation)
            by_inner = X.T @ slopes.at_hidden
            values += lost.reshape(n_runs, each).mean(axis=1)
            pull = np.einsum("kfh,kfh->kf", by_inner, stack.inner)
            by_gate[:, g] += pull.reshape(n_runs, each, -1).mean(axis=1)
            if total is not None:
                by_inner *= opened
                for part, more in zip(total, (by_inner, *slopes[1:]), strict=True):
                    part += more
        if total is not None:
            values += self.decay / 2 * (_squares(stack.inner) + _squares(stack.outer))
            for part, weight in ((total.inner, stack.inner), (total.outer, stack.outer)):
                part += self.decay * weight
        return values, by_gate

    def _views(self, rows: Rows | None) -> Iterator[tuple[int, Array, NDArray[np.intp], Array]]:
        """For each row of gates the rows of X that pass it, their targets, their shares by fold."""
        X, codes, used = self.X, self.codes, self.used
        if rows is not None:
            X, codes, used = X[rows], codes[rows], used[:, rows]
        if self.scope == "global":
            yield 0, X, codes, _shared(used)
            return
        edges = np.searchsorted(codes, np.arange(self.n_classes + 1))
        for c, (first, end) in enumerate(pairwise(edges)):
            if self.scope == "class":
                own = slice(first, end)
                yield c, X[own], codes[own], _shared(used[:, own]) / self.n_classes
            else:
                inside = codes == c
                shares = _shared(used & inside) + _shared(used & ~inside)
                yield c, X, inside.astype(np.intp), shares / (2 * self.n_classes)


def _shared(used: Mask) -> Array:
    """Equal shares of the rows used in each fold, together 1, or 0 where there are none."""
    return used / np.maximum(used.sum(axis=1, keepdims=True), 1)


def one_vs_rest(p: Array, c: int, own: NDArray[np.intp], weights: Array) -> tuple[Array, Array]:
    """Weighted binary cross-entropy of output c, and its derivative by all outputs.

    For a row of class c the loss is -log p_c, else -log(1 - p_c) with derivative p_c by output c
    and -p_c p_k / (1 - p_c) by the others.
    """
    inside = own.astype(bool)
    mine = np.clip(p[:, :, c], 1e-300, None)
    other = np.clip(1 - p[:, :, c], 1e-15, None)
    values = -np.einsum("kn,kn->k", weights, np.where(inside, np.log(mine), np.log(other)))
    slope = np.where(inside[:, None], p, -(mine / other)[:, :, None] * p)
    slope[:, :, c] = np.where(inside, mine - 1, mine)
    return values, weights[:, :, None] * slope


def _rescaled(weights: Array, rows: Rows) -> Array:
    """Weights of some of the rows, summing to 1 for each network as those of all rows do."""
    part = weights[:, rows]
    total = part.sum(axis=1, keepdims=True)
    return np.divide(part, total, out=np.zeros_like(part), where=total > 0)


def _squares(weights: Array) -> Array:
    flat = weights.reshape(len(weights), -1)
    return np.einsum("kp,kp->k", flat, flat)
