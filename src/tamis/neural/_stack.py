"""Networks of one hidden layer, many of one shape in one stack, and their gradients.

All arrays have the network as their first axis: a product over a stack is one call for all of its
networks. Rows that a network must not learn from have weight 0, so that the folds of a
cross-validation share one table.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from tamis._arrays import Array
from tamis._random import stream

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
        """The stack whose weights stand one after the other in each row."""
        shapes = [(n_inputs, hidden), (hidden,), (hidden, n_classes), (n_classes,)]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        parts = np.split(flat, ends[:-1], axis=1)
        return cls(*(part.reshape(len(flat), *s) for part, s in zip(parts, shapes, strict=True)))

    def packed(self) -> Array:
        """All weights of each network in one row."""
        return np.concatenate([part.reshape(len(part), -1) for part in self], axis=1)

    @classmethod
    def joined(cls, parts: "Sequence[Stack]") -> Self:
        """The networks of several stacks, one after the other."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def pick(self, which: NDArray[np.intp]) -> "Stack":
        """Some of the networks."""
        return Stack(*(part[which] for part in self))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of inputs, hidden units and classes."""
        return (*self.inner.shape[1:], self.outer.shape[2])


def hidden_units(X: Array, inner: Array, bias: Array, activation: str) -> Array:
    """Values of the hidden units, of shape (K, n, H); ``inner`` may hold gates times weights."""
    return ACTIVATIONS[activation][0](X @ inner + bias[:, None])


def probabilities(stack: Stack, hidden: Array) -> Array:
    """Softmax of the outputs, of shape (K, n, C)."""
    scores = hidden @ stack.outer + stack.outer_bias[:, None]
    scores -= scores.max(axis=2, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=2, keepdims=True)
    return scores


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


class NetworkSlopes(NamedTuple):
    """Derivatives of the loss of each network of a stack.

    ``at_hidden``, of shape (K, n, H), is the derivative by the input of the hidden units, from
    which those of inner weights and gates follow.
    """

    at_hidden: Array
    inner_bias: Array
    outer: Array
    outer_bias: Array


def back_propagate(stack: Stack, hidden: Array, slope: Array, activation: str) -> NetworkSlopes:
    """Derivatives by all weights but the inner ones, from those by the outputs."""
    at_hidden = slope @ stack.outer.swapaxes(1, 2)
    at_hidden *= ACTIVATIONS[activation][1](hidden)
    return NetworkSlopes(
        at_hidden, at_hidden.sum(axis=1), hidden.swapaxes(1, 2) @ slope, slope.sum(axis=1)
    )
