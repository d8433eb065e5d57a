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
    noise: Array  # how far K may be from the truth: an entry by the sum of its points'
    unit: float = 1.0  # of K
    tilt: float = 0.0  # how far the cost is from the truth
    ridge: float = 0.0  # what was added to the diagonal of K
    blur: float = 0.0  # how far entries of K were changed on purpose
    even: bool = True  # whether all samples have the same bound, so that sums of bounds are exact
    bracketed: bool = False  # whether to prove how far outputs may be from the truth

    @cached_property
    def kappa(self) -> float:
        """Size of the kernel: what its values are exact relative to."""
        return max(float(np.abs(np.diagonal(self.K)).max()), 1e-300)

    @cached_property
    def scale(self) -> float:
        """Largest entry of the linear term, what violations are relative to, times lambda."""
        return float(np.abs(self.cost).max())

    @cached_property
    def norms(self) -> Array:
        """Length of every point in the space of the kernel."""
        return np.sqrt(np.maximum(np.diagonal(self.K), 0.0))

    @cached_property
    def doubt(self) -> Array:
        """How far K may be from the truth, as ``noise``, with the ridge as if it were everywhere.

        What it does is not random, as rounding is: proofs count it for more than it can be.
        """
        return self.noise + self.ridge / 2

    def per_point(self, x: Array) -> Array:
        """``s x`` summed over the variables of each point."""
        return np.bincount(self.point, self.sign * x, len(self.K)).astype(np.float64)

    def outputs(self, x: Array) -> Array:
        """``K (s x)`` at all points, by one product: gathering rows would cost more."""
        return self.K @ self.per_point(x)


class Proof(NamedTuple):
    """On which part of each interval between rows the optimum is known, and how well.

    There the margin set is that of the optimum, which is affine: the errors hold all over it.
    """

    begin: Array  # share of the interval; nan where nothing is proved
    end: Array
    error_w: Array  # of the weights, by their norm
    error_b: Array  # of the intercept
    first: Array  # cost'x at the begin
    last: Array  # cost'x at the end
    doubt: Array  # error of these
    loose: Array  # how far the intercept can move where rounding alone fixes it

    @classmethod
    def none(cls, n_intervals: int) -> "Proof":
        """Nothing is proved."""
        return cls(*(np.full(n_intervals, np.nan) for _ in cls._fields))

    def void(self) -> None:
        """Take everything back."""
        self.begin.fill(np.nan)


class Segment(NamedTuple):
    """A part of the path: affine in lambda between the rows."""

    lam: Array
    b: Array
    variables: NDArray[np.int64]  # those that move
    x: Array  # rows x variables
    start: Array  # all variables at row 0
    violation: Array  # of the optimality conditions, up to each row
    proof: Proof

    @property
    def mass(self) -> Array:
        """Sum of x, for every row."""
        return self.total(np.ones(len(self.start)))

    def total(self, weight: Array) -> Array:
        """``weight'x``, for every row."""
        still = np.ones(len(self.start), bool)
        still[self.variables] = False
        with np.errstate(invalid="ignore"):  # of rows too far for a number, which is no bound
            return weight[still] @ self.start[still] + self.x @ weight[self.variables]


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
