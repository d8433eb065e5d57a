"""The parametric quadratic programme, lines of linear terms, and segments of its solution."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array


class Stuck(Exception):
    """The path cannot go on: cycling, or a matrix that cannot be inverted."""


@dataclass(frozen=True)
class QuadraticProgramme:
    """``min x'Qx / 2 - g'x`` with ``s'x = e`` and ``0 <= x <= u``, Q from the kernel of points."""

    K: Array  # of the points
    point: NDArray[np.int64]  # of each variable
    sign: Array
    upper: Array
    cost: Array  # the linear term of the path is lambda times this

    @cached_property
    def kappa(self) -> float:
        """Size of the kernel: what its values are exact relative to."""
        return max(float(np.abs(np.diagonal(self.K)).max()), 1e-300)

    @cached_property
    def scale(self) -> float:
        """Largest entry of the linear term, what violations are relative to, times lambda."""
        return float(np.abs(self.cost).max())

    def outputs(self, x: Array) -> Array:
        """``K (s x)`` at all points, by one product: gathering rows would cost more."""
        return self.K @ np.bincount(self.point, self.sign * x, len(self.K))


class Segment(NamedTuple):
    """A part of the path: affine in lambda between the rows."""

    lam: Array
    b: Array
    variables: NDArray[np.int64]  # those that move
    x: Array  # rows x variables
    start: Array  # all variables at row 0
    violation: Array  # of the optimality conditions, up to each row
    gap: Array  # bound on the duality gap off the margin set, up to each row
    error_w: Array  # of the weights (norm) and of the intercept by residuals on the margin set
    error_b: Array


@dataclass
class Line:
    """Linear term ``g = offset + noise + tau slope`` and constraint ``s'x = tau excess``."""

    offset: Array
    slope: Array
    excess: float = 0.0
    scale: float = 1.0  # what a violation is relative to
    noise: float | Array = 0.0
    record: list[Segment] | None = field(default=None, repr=False)

    def term(self, tau: float) -> Array:
        """The linear term at ``tau``."""
        return self.offset + self.noise + tau * self.slope
