"""Exact validation curves: what they are worth at every C, and where they are best."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tamis._arrays import Array
from tamis.exceptions import MissingExtra


class IntervalOfC(NamedTuple):
    """An interval of C with its ends: closed ones belong to it."""

    low: float
    high: float
    low_closed: bool
    high_closed: bool

    @property
    def middle(self) -> float:
        """The middle on a logarithmic scale: a point inside, whatever the ends."""
        product = self.low * self.high
        if not 0 < product < np.inf:  # of numbers out of all proportion
            return float(np.sqrt(self.low) * np.sqrt(self.high))
        return float(np.sqrt(product))

    @property
    def width(self) -> float:
        """Width in log2."""
        return float(np.log2(self.high / self.low))


@dataclass(frozen=True, repr=False)
class ValidationCurve:
    """A validation function of C, exact at every C of its range.

    Between two breakpoints the function is a polynomial in C: a constant for functions of predicted
    labels or of their order, a parabola for the squared and a line for the absolute error.

    Attributes
    ----------
    breakpoints : ndarray of shape (n_pieces + 1,)
        Increasing values of C; the first and the last are the ends of the range.
    coefficients : ndarray of shape (n_pieces, degree + 1)
        Bernstein coefficients of each piece over its interval of C; with degree 0 its value.
    at_breakpoints : ndarray of shape (n_pieces + 1,)
        Values on the breakpoints themselves, where a decision value is exactly zero.
    greater_is_better : bool

    Examples
    --------
    >>> curve = ValidationCurve.steps([1.0, 2.0, 8.0], [0.3, 0.1], [0.3, 0.1, 0.1])
    >>> curve.best, curve.argmin
    (0.1, [IntervalOfC(low=2.0, high=8.0, low_closed=True, high_closed=True)])
    >>> curve([1.0, 1.9, 4.0])
    array([0.3, 0.3, 0.1])
    """

    breakpoints: Array
    coefficients: Array
    at_breakpoints: Array
    greater_is_better: bool = False

    @classmethod
    def steps(
        cls,
        breakpoints: ArrayLike,
        values: ArrayLike,
        at_breakpoints: ArrayLike,
        greater_is_better: bool = False,
    ) -> "ValidationCurve":
        """A piecewise constant curve."""
        arrays = [np.asarray(a, dtype=float) for a in (breakpoints, values, at_breakpoints)]
        return cls(arrays[0], arrays[1][:, None], arrays[2], greater_is_better)

    def __repr__(self) -> str:
        low, high = self.breakpoints[[0, -1]]
        return (
            f"ValidationCurve({len(self.coefficients)} pieces over C in [{low:.4g}, {high:.4g}], "
            f"best {self.best:.6g})"
        )

    def __call__(self, C: ArrayLike) -> Array:
        """Value at each C; outside the range that of the nearest end."""
        at = np.clip(np.asarray(C, dtype=float), self.breakpoints[0], self.breakpoints[-1])
        piece = np.clip(
            np.searchsorted(self.breakpoints, at, side="right") - 1, 0, len(self.coefficients) - 1
        )
        value = self._within(piece, at)
        near = np.searchsorted(self.breakpoints, at)
        exact = self.breakpoints[np.minimum(near, len(self.breakpoints) - 1)] == at
        return np.where(exact, self.at_breakpoints[near], value)

    def _within(self, piece: NDArray[np.intp], C: Array) -> Array:
        low, high = self.breakpoints[piece], self.breakpoints[piece + 1]
        t = (C - low) / np.where(high > low, high - low, 1.0)
        c = self.coefficients[piece]
        while c.shape[-1] > 1:  # de Casteljau: stable at every t in [0, 1]
            c = c[..., :-1] * (1 - t)[..., None] + c[..., 1:] * t[..., None]
        return c[..., 0]

    @property
    def values(self) -> Array:
        """Best value of each piece (for steps: the value)."""
        return self._extremes[0]

    @cached_property
    def _extremes(self) -> tuple[Array, Array]:
        """Best value of each piece and the t in [0, 1] where it is taken."""
        sign = -1.0 if self.greater_is_better else 1.0
        c = sign * self.coefficients
        t = np.where(c[:, 0] <= c[:, -1], 0.0, 1.0)
        if c.shape[1] == 3:
            curvature = c[:, 0] - 2 * c[:, 1] + c[:, 2]
            inside = np.divide(c[:, 0] - c[:, 1], curvature, out=t.copy(), where=curvature > 0)
            t = np.where(curvature > 0, np.clip(inside, 0.0, 1.0), t)
        low, high = self.breakpoints[:-1], self.breakpoints[1:]
        return self._within(np.arange(len(c)), low + t * (high - low)), t

    @property
    def best(self) -> float:
        """The optimum over the whole range, of values taken on more than a single point."""
        return float(self.values.max() if self.greater_is_better else self.values.min())

    @property
    def argmin(self) -> list[IntervalOfC]:
        """Where a curve of losses is smallest, in increasing C; for scores where it is largest."""
        return self.within(self.best)

    def within(self, level: float) -> list[IntervalOfC]:
        """Intervals on which the curve is no worse than ``level`` (points, for curved pieces).

        A breakpoint on its own has no width and is not reported.
        """
        sign = -1.0 if self.greater_is_better else 1.0
        slack = 1e-12 * max(abs(level), 1e-300)
        inside = sign * (self.values - level) <= slack
        at = sign * (self.at_breakpoints - level) <= slack
        if self.coefficients.shape[1] > 1:
            return self._points(inside)
        found = []
        k, n = 0, len(inside)
        while k < n:
            if not inside[k]:
                k += 1
                continue
            first = k
            while k + 1 < n and inside[k + 1] and at[k + 1]:
                k += 1
            low, high = self.breakpoints[first], self.breakpoints[k + 1]
            found.append(IntervalOfC(float(low), float(high), bool(at[first]), bool(at[k + 1])))
            k += 1
        return found

    def _points(self, inside: NDArray[np.bool_]) -> list[IntervalOfC]:
        low, high = self.breakpoints[:-1], self.breakpoints[1:]
        C = np.unique((low + self._extremes[1] * (high - low))[inside])
        return [IntervalOfC(float(c), float(c), True, True) for c in C]

    def to_frame(self) -> Any:
        """The pieces as a pandas DataFrame: ends, value at the ends, best value."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra(
                "ValidationCurve.to_frame needs pandas, which is not installed: pip install pandas."
            ) from None
        return pd.DataFrame(
            {
                "C_low": self.breakpoints[:-1],
                "C_high": self.breakpoints[1:],
                "value": self.values,
                "at_C_low": self.at_breakpoints[:-1],
                "at_C_high": self.at_breakpoints[1:],
            }
        )
