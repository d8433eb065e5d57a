"""Gates on the inputs of a network, and what an open one costs."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator

from tamis._arrays import Array
from tamis._checks import Constraints, number, one_of, several

#: Below this an absolute value is rounded off, so that it has a slope everywhere.
ROUNDING = 1e-3
#: Widths of one that is annealed: from 1 to a tenth, each is a good half of the one before, near
#: enough for gates to follow their minimum.
N_WIDTHS = 5


class Gate(ABC):
    """Function of a free parameter b that multiplies a column."""

    #: Where b starts, with the gate open.
    start: ClassVar[float]
    #: How far b may move in one step of a minimiser that can see far: a gate that is shut by one
    #: long step has no slope left to open by.
    longest: ClassVar[float] = np.inf
    #: The least b that such a minimiser may go to.
    lowest: ClassVar[float] = -np.inf
    #: From here on a gate is wide open, and its width says nothing more of its column.
    wide: ClassVar[float] = np.inf

    @abstractmethod
    def __call__(self, b: Array) -> tuple[Array, Array]:
        """Value of the gate, and its derivative by b."""

    def awake(self, b: Array) -> Array:
        """Where to go on from another minimum: wide open gates have no slope to close by."""
        return b

    def spread_open(self, gates: Array, pull: Array) -> Array:
        """Return gates in absolute value, those wide open in the order of what keeps them open.

        ``pull`` is the rise of the loss for each unit that a gate closes; the last axes of both are
        the gates of a run. Wide open gates are spread over the range from ``wide`` to 1.
        """
        gates = np.abs(gates)
        wide = gates >= self.wide
        held = np.where(wide, np.fmax(pull, 0), 0)
        share = held / np.maximum(held.max(axis=(-2, -1), keepdims=True), np.finfo(float).tiny)
        return np.where(wide, self.wide + (1 - self.wide) * share, gates) if wide.any() else gates

    @abstractmethod
    def share(self, gate: Array) -> tuple[Array, Array]:
        """What the gate counts for in the redundancy, and its derivative by the gate."""


class LinearGate(Gate):
    """The parameter itself, counted by its square (3.4), (3.5)."""

    start = 1.0

    def __call__(self, b: Array) -> tuple[Array, Array]:
        return b, np.ones_like(b)

    def share(self, gate: Array) -> tuple[Array, Array]:
        return gate**2, 2 * gate


class BoundedGate(Gate):
    """A gate between 0 (closed) and 1 (open), counted as it is (2.4), (3.6).

    A gate that nothing bids to close comes to 1, whatever its column is worth: of 500 columns a
    hundred may be there.
    """

    wide = 0.99

    def share(self, gate: Array) -> tuple[Array, Array]:
        return gate, np.ones_like(gate)


class BellGate(BoundedGate):
    """exp(-b^2): b = 0 is open; far out the gate is closed and hardly moves any more."""

    start = 0.1
    longest = 0.2
    #: The gate is the same on both sides of 0: a step that opens the gates which matter most passes
    #: through 0, and further steps of its kind would close them on the other side.
    lowest = 0.01

    def __call__(self, b: Array) -> tuple[Array, Array]:
        gate = np.exp(-(b**2))
        return gate, -2 * b * gate

    def awake(self, b: Array) -> Array:
        return np.where(np.abs(b) < self.start, self.start, b)


class SigmoidGate(BoundedGate):
    """1 / (1 + exp(-b)), from a gate that is nine tenths open."""

    start = 2.2
    longest = 1.0

    def __call__(self, b: Array) -> tuple[Array, Array]:
        gate = expit(b)
        return gate, gate * (1 - gate)

    def awake(self, b: Array) -> Array:
        return np.minimum(b, self.start)


GATES: dict[str, Gate] = {"linear": LinearGate(), "bell": BellGate(), "sigmoid": SigmoidGate()}


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


class Sparsity(BaseEstimator):
    """What an open gate g costs a :class:`GateSelector`.

    Parameters
    ----------
    kind : {"l0", "l1", "bell"}, default="l0"
        1 - exp(-g^2 / 2 width^2), which counts the gates that are not 0; the size of the gate; or
        g (1 - g), which drives a gate to 0 or 1.
    width : float or pair of float, default=0.35
        Of "l0"; a pair is annealed from the first to the second.

    Examples
    --------
    >>> from tamis.neural import GateSelector, Sparsity
    >>> GateSelector(sparsity=Sparsity("l0", width=(1.0, 0.1))).get_params()["sparsity__width"]
    (1.0, 0.1)
    """

    _constraints: ClassVar[Constraints] = {
        "kind": one_of(*SPARSITY),
        "width": number(above=0) | several(number(above=0), "a pair of them", 2),
    }

    def __init__(self, kind: str = "l0", *, width: Any = 0.35):
        self.kind = kind
        self.width = width

    @property
    def widths(self) -> Array:
        """One width, or those from the first to the last of a pair."""
        first, last = self.width if np.ndim(self.width) else (self.width, self.width)
        return np.geomspace(first, last, N_WIDTHS if first != last else 1)
