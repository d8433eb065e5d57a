"""The quadratic programme of a path, its linear terms, and the segments of its solution."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._seeds import stream


class Stuck(Exception):
    """The path cannot continue, because of a cycle or a singular matrix."""


@dataclass(frozen=True)
class QuadraticProgramme:
    """Minimise ``x'Qx / 2 - g'x`` subject to ``s'x = e`` and ``0 <= x <= u``.

    Each variable belongs to a point. If i belongs to p and j to q, then ``Q_ij = s_i s_j K_pq``.
    """

    K: Array  # kernel matrix of the points
    point: NDArray[np.int64]  # point of each variable
    sign: Array  # s
    upper: Array  # u
    cost: Array  # the linear term g on the path, divided by lambda
    noise: Array  # for each point; the error of K_pq is at most noise[p] + noise[q]
    unit: float = 1.0  # number by which the kernel was divided to get K
    tilt: float = 0.0  # bound on the error of the cost
    ridge: float = 0.0  # number that was added to the diagonal of K
    blur: float = 0.0  # largest change of an entry of K by merging points
    even: bool = True  # whether all samples have the same bound, so that sums of bounds are exact
    bracketed: bool = False  # whether to prove bounds on the errors of the outputs

    @cached_property
    def kappa(self) -> float:
        """Largest diagonal entry of K. The precision of all entries is relative to it."""
        return max(float(np.abs(np.diagonal(self.K)).max()), 1e-300)

    @cached_property
    def scale(self) -> float:
        """Largest absolute cost. Violations are relative to this number times lambda."""
        return float(np.abs(self.cost).max())

    @cached_property
    def norms(self) -> Array:
        """Norm of each point in feature space."""
        return np.sqrt(np.maximum(np.diagonal(self.K), 0.0))

    @cached_property
    def doubt(self) -> Array:
        """Upper bounds on the errors of K, including the ridge, in the same form as ``noise``.

        Unlike rounding errors, the effect of the ridge is not random. Half of the ridge is added to
        every bound, which overestimates the effect.
        """
        return self.noise + self.ridge / 2

    @cached_property
    def probes(self) -> Array:
        """Two columns of random signs, used to estimate the error of an inverse."""
        return stream(0, "probe", len(self.sign)).choice([-1.0, 1.0], (len(self.sign) + 1, 2))

    def per_point(self, x: Array) -> Array:
        """Return ``s x`` summed over the variables of each point."""
        return np.bincount(self.point, self.sign * x, len(self.K)).astype(np.float64)

    def outputs(self, x: Array) -> Array:
        """Return ``K (s x)`` at all points, in a single product, which is faster than indexing."""
        return self.K @ self.per_point(x)


class Proof(NamedTuple):
    """The proved part of each interval between two rows, with error bounds.

    On the proved part, the path has the same margin set as the optimum. So the optimum is affine,
    and the bounds are valid on the whole part.
    """

    # beginning of the proved part, as a share of the interval; nan if nothing is proved
    begin: Array
    end: Array  # end of the proved part
    error_w: Array  # bound on the norm of the error of the weights
    error_b: Array  # bound on the error of the intercept
    first: Array  # cost'x at the beginning of the proved part
    last: Array  # cost'x at the end of the proved part
    doubt: Array  # bound on the errors of ``first`` and ``last``
    loose: Array  # possible change of the intercept if only rounding determines it

    @classmethod
    def none(cls, n_intervals: int) -> "Proof":
        """Return a proof in which no part of any interval is proved."""
        return cls(*(np.full(n_intervals, np.nan) for _ in cls._fields))

    def void(self) -> None:
        """Withdraw the proof of all intervals."""
        self.begin.fill(np.nan)


class Segment(NamedTuple):
    """A segment of the path, affine in lambda between its rows."""

    lam: Array  # lambda of each row, decreasing
    b: Array  # intercept of each row
    variables: NDArray[np.int64]  # variables that change in the segment
    x: Array  # their values, (rows, variables)
    start: Array  # values of all variables at row 0
    violation: Array  # violation of the optimality conditions at each row
    proof: Proof

    @property
    def mass(self) -> Array:
        """Sum of x over all variables, for each row."""
        return self.total(np.ones(len(self.start)))

    def total(self, weight: Array) -> Array:
        """Return ``weight'x`` for each row."""
        still = np.ones(len(self.start), bool)
        still[self.variables] = False
        with np.errstate(
            invalid="ignore"
        ):  # NaN, from rows too distant for floats, counts as unbounded
            return weight[still] @ self.start[still] + self.x @ weight[self.variables]


@dataclass
class Line:
    """A line along which the programme changes with a parameter tau.

    The linear term is ``g = offset + noise + tau slope``, and the constraint ``s'x = tau excess``.
    """

    offset: Array
    slope: Array
    excess: float = 0.0
    scale: float = 1.0  # violations are relative to this number
    noise: float | Array = 0.0  # random numbers that break ties
    record: list[Segment] | None = field(default=None, repr=False)  # segments found so far

    def term(self, tau: float) -> Array:
        """Return the linear term at ``tau``."""
        return self.offset + self.noise + tau * self.slope
