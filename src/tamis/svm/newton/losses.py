"""Losses that are squares: hinge, tube, and least squares as a tube of no width."""

from typing import Any, NamedTuple, Protocol

from tamis._namespace import namespace


class SquaredLoss(Protocol):
    """A loss that is the square of how far an output is on the wrong side of an edge."""

    @property
    def takes_all(self) -> bool:
        """Whether every sample is active, whatever its output."""

    def sides(self, outputs: Any) -> Any:
        """For each sample 0 where it loses nothing, else the side that it is on."""

    def targets(self, sides: Any) -> Any:
        """What active samples are drawn to."""

    def beyond(self, outputs: Any) -> Any:
        """How far each output is beyond its edge; negative where nothing is lost."""

    def pull(self, outputs: Any) -> Any:
        """The same with the sign of where the output should go; 0 where nothing is lost."""


class Hinge(NamedTuple):
    """max(0, 1 - y f), y = ±1."""

    y: Any

    @property
    def takes_all(self) -> bool:
        return False

    def sides(self, outputs: Any) -> Any:
        xp = namespace(self.y)
        return xp.where(self.y * outputs < 1, self.y, xp.zeros_like(self.y))

    def targets(self, sides: Any) -> Any:
        return self.y

    def beyond(self, outputs: Any) -> Any:
        return 1 - self.y * outputs

    def pull(self, outputs: Any) -> Any:
        return self.y * _positive(self.beyond(outputs))


class Tube(NamedTuple):
    """max(0, |y - f| - epsilon); with an epsilon of 0 every sample is active."""

    y: Any
    epsilon: float

    @property
    def takes_all(self) -> bool:
        return self.epsilon == 0

    def sides(self, outputs: Any) -> Any:
        xp, off = namespace(self.y), self.y - outputs
        if self.takes_all:
            return xp.ones_like(off)
        return xp.where(xp.abs(off) > self.epsilon, xp.sign(off), xp.zeros_like(off))

    def targets(self, sides: Any) -> Any:
        return self.y - self.epsilon * sides

    def beyond(self, outputs: Any) -> Any:
        return namespace(self.y).abs(self.y - outputs) - self.epsilon

    def pull(self, outputs: Any) -> Any:
        return namespace(self.y).sign(self.y - outputs) * _positive(self.beyond(outputs))


def _positive(x: Any) -> Any:
    xp = namespace(x)
    return xp.where(x > 0, x, xp.zeros_like(x))
