"""Gates on the inputs of a network, and what an open one costs."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from scipy.special import expit

from tamis._arrays import Array

#: Below this an absolute value is rounded off, so that it has a slope everywhere.
ROUNDING = 1e-3


class Gate(ABC):
    """Function of a free parameter b that multiplies a column."""

    #: Where b starts, with the gate open.
    start: ClassVar[float]
    #: How far b may move in one step of a minimiser that can see far: a gate that is shut by one
    #: long step has no slope left to open by.
    longest: ClassVar[float] = np.inf

    @abstractmethod
    def __call__(self, b: Array) -> tuple[Array, Array]:
        """Value of the gate, and its derivative by b."""

    def awake(self, b: Array) -> Array:
        """Where to go on from another minimum: wide open gates have no slope to close by."""
        return b

    @abstractmethod
    def share(self, gate: Array) -> tuple[Array, Array]:
        """What the gate counts for in the redundancy, and its derivative by the gate."""


class Linear(Gate):
    """The parameter itself, counted by its square (3.4), (3.5)."""

    start = 1.0

    def __call__(self, b: Array) -> tuple[Array, Array]:
        return b, np.ones_like(b)

    def share(self, gate: Array) -> tuple[Array, Array]:
        return gate**2, 2 * gate


class Bounded(Gate):
    """A gate between 0 (closed) and 1 (open), counted as it is (2.4), (3.6)."""

    def share(self, gate: Array) -> tuple[Array, Array]:
        return gate, np.ones_like(gate)


class Bell(Bounded):
    """exp(-b^2): b = 0 is open; far out the gate is closed and hardly moves any more."""

    start = 0.1
    longest = 0.2

    def __call__(self, b: Array) -> tuple[Array, Array]:
        gate = np.exp(-(b**2))
        return gate, -2 * b * gate

    def awake(self, b: Array) -> Array:
        return np.where(np.abs(b) < self.start, self.start, b)


class Sigmoid(Bounded):
    """1 / (1 + exp(-b)), from a gate that is nine tenths open."""

    start = 2.2
    longest = 1.0

    def __call__(self, b: Array) -> tuple[Array, Array]:
        gate = expit(b)
        return gate, gate * (1 - gate)

    def awake(self, b: Array) -> Array:
        return np.minimum(b, self.start)


GATES: dict[str, Gate] = {"linear": Linear(), "bell": Bell(), "sigmoid": Sigmoid()}


def smooth_l0(gate: Array, width: float) -> tuple[Array, Array]:
    """1 - exp(-g^2 / 2a^2), the number of gates that are not 0 as ``width`` a goes to 0 (3.2)."""
    closed = np.exp(-(gate**2) / (2 * width**2))
    return 1 - closed, gate / width**2 * closed


def smooth_l1(gate: Array, width: float) -> tuple[Array, Array]:
    """|g|, rounded off at 0 (2.1)."""
    length = np.sqrt(gate**2 + ROUNDING**2)
    return length - ROUNDING, gate / length


def undecided(gate: Array, width: float) -> tuple[Array, Array]:
    """g (1 - g), which pushes a gate to either end (3.6)."""
    return gate * (1 - gate), 1 - 2 * gate


#: Penalties of one gate: the value and its derivative.
SPARSITY = {"l0": smooth_l0, "l1": smooth_l1, "bell": undecided}
