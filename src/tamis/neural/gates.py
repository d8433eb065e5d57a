"""Gate functions for the inputs of a network, and their sparsity penalties."""

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator

from tamis._arrays import Array
from tamis._checks import Constraints, number, one_of, several

#: The absolute value of a gate is smoothed below this scale, so that the penalty has a derivative
#: at 0.
ROUNDING = 1e-3
#: Number of widths of an annealed penalty. From 1 to 0.1, each width is a little more than half of
#: the previous width. These changes are small enough for the gates to follow their minimum.
N_WIDTHS = 5


class Gate(ABC):
    """Gate function of a parameter b. A gate is a factor that multiplies a column."""

    #: Initial value of b, at which the gate is open.
    start: ClassVar[float]
    #: Largest change of b in one step of L-BFGS. A long step could close a gate permanently,
    #: because a closed gate has no gradient.
    longest: ClassVar[float] = np.inf
    #: Lower bound of b for L-BFGS.
    lowest: ClassVar[float] = -np.inf
    #: Gates above this value are treated as fully open. Their values are not used to rank columns.
    wide: ClassVar[float] = np.inf

    @abstractmethod
    def __call__(self, b: Array) -> tuple[Array, Array]:
        """Return the value of the gate, and its derivative with respect to b."""

    def awake(self, b: Array) -> Array:
        """Return starting values of b for the next training.

        Fully open gates are closed a little, because they have no gradient.
        """
        return b

    def spread_open(self, gates: Array, pull: Array) -> Array:
        """Return the absolute values of gates, with fully open gates ranked by their effect.

        ``pull`` is minus the derivative of the loss with respect to each gate. Fully open gates are
        spread over the range from ``wide`` to 1, in proportion to ``pull``. The last two axes of
        both arrays are the gates of a run.
        """
        gates = np.abs(gates)
        wide = gates >= self.wide
        held = np.where(wide, np.fmax(pull, 0), 0)
        share = held / np.maximum(held.max(axis=(-2, -1), keepdims=True), np.finfo(float).tiny)
        return np.where(wide, self.wide + (1 - self.wide) * share, gates) if wide.any() else gates

    @abstractmethod
    def share(self, gate: Array) -> tuple[Array, Array]:
        """Return the share of the gate in the redundancy term, and the derivative of the share."""


class LinearGate(Gate):
    """Gate that equals its parameter b. The redundancy term uses the square of the gate."""

    start = 1.0

    def __call__(self, b: Array) -> tuple[Array, Array]:
        return b, np.ones_like(b)

    def share(self, gate: Array) -> tuple[Array, Array]:
        return gate**2, 2 * gate


class BoundedGate(Gate):
    """Gate between 0 (closed) and 1 (open). The redundancy term uses its value.

    A gate ends at 1 unless the objective pushes it to close, even if its column is only weakly
    relevant. In a table with 500 columns, a hundred gates may end at 1.
    """

    wide = 0.99

    def share(self, gate: Array) -> tuple[Array, Array]:
        return gate, np.ones_like(gate)


class BellGate(BoundedGate):
    """Gate exp(-b^2), open at b = 0. For large b it is closed and its gradient vanishes."""

    start = 0.1
    longest = 0.2
    #: The gate is symmetric in b. Without this bound, a step that opens the most relevant gates
    #: would go beyond b = 0, and the next steps would close them at negative b.
    lowest = 0.01

    def __call__(self, b: Array) -> tuple[Array, Array]:
        gate = np.exp(-(b**2))
        return gate, -2 * b * gate

    def awake(self, b: Array) -> Array:
        return np.where(np.abs(b) < self.start, self.start, b)


class SigmoidGate(BoundedGate):
    """Gate 1 / (1 + exp(-b)), whose initial value is 0.9."""

    start = 2.2
    longest = 1.0

    def __call__(self, b: Array) -> tuple[Array, Array]:
        gate = expit(b)
        return gate, gate * (1 - gate)

    def awake(self, b: Array) -> Array:
        return np.minimum(b, self.start)


GATES: dict[str, Gate] = {"linear": LinearGate(), "bell": BellGate(), "sigmoid": SigmoidGate()}


def smooth_l0(gate: Array, width: float) -> tuple[Array, Array]:
    """Return 1 - exp(-g^2 / (2 a^2)) for a gate g, and its derivative.

    This is a smooth indicator of non-zero gates. It becomes exact as the ``width`` a goes to 0.
    """
    closed = np.exp(-(gate**2) / (2 * width**2))
    return 1 - closed, gate / width**2 * closed


def smooth_l1(gate: Array, width: float) -> tuple[Array, Array]:
    """Return the absolute value of a gate, smoothed at 0, and its derivative."""
    length = np.sqrt(gate**2 + ROUNDING**2)
    return length - ROUNDING, gate / length


def undecided(gate: Array, width: float) -> tuple[Array, Array]:
    """Return g (1 - g) for a gate g, and its derivative. It pushes the gate to 0 or 1."""
    return gate * (1 - gate), 1 - 2 * gate


#: Sparsity penalties of a gate by name. Each function returns the penalty and its derivative.
SPARSITY = {"l0": smooth_l0, "l1": smooth_l1, "bell": undecided}


@dataclass(eq=False, repr=False)
class Sparsity(BaseEstimator):
    """Penalty on open gates in a :class:`GateSelector`.

    Parameters
    ----------
    kind : {"l0", "l1", "bell"}, default="l0"
        Penalty of a gate g. "l0" is 1 - exp(-g^2 / (2 width^2)); its sum approximately counts the
        gates that are not 0. "l1" is the absolute value of g. "bell" is g (1 - g), which drives a
        gate to 0 or 1.
    width : float or pair of float, default=0.35
        Width of the "l0" penalty. A pair anneals the width from the first to the second value.

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

    kind: str = "l0"
    _: KW_ONLY
    width: float | tuple[float, float] = 0.35

    @property
    def widths(self) -> Array:
        """Widths of the penalty, in the order of use. A single width unless ``width`` is a pair."""
        first, last = np.broadcast_to(self.width, 2)
        return np.geomspace(first, last, N_WIDTHS if first != last else 1)
