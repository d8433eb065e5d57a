"""Exact validation curves over C, and intervals of C."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import cached_property
from math import inf, nextafter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tamis._arrays import Array
from tamis.exceptions import MissingExtra

#: Number of decimal digits that suffices to distinguish any two floats.
MOST_DIGITS = 17


class IntervalOfC(NamedTuple):
    """An interval of C, with a closed or open end on each side."""

    low: float
    high: float
    low_closed: bool
    high_closed: bool

    @property
    def middle(self) -> float:
        """The middle of the interval on a logarithmic scale."""
        product = self.low * self.high
        if not 0 < product < np.inf:  # overflow or underflow
            return float(np.sqrt(self.low) * np.sqrt(self.high))
        return float(np.sqrt(product))

    @property
    def width(self) -> float:
        """Width on a logarithmic scale, as the number of doublings of C."""
        return float(np.log2(self.high / self.low))

    @property
    def inside(self) -> tuple[float, float]:
        """The smallest and the largest float in the interval."""
        low = self.low if self.low_closed else nextafter(self.low, inf)
        high = self.high if self.high_closed else nextafter(self.high, 0.0)
        return low, high

    @property
    def rounded_ends(self) -> tuple[float, float]:
        """The ends, rounded inwards to three digits, or to more if the interval is narrow.

        >>> IntervalOfC(1.23456, 3.45678, False, True).rounded_ends
        (1.24, 3.45)
        >>> IntervalOfC(1.23456, 1.23459, False, False).rounded_ends
        (1.23457, 1.23458)
        """
        first, last = self.inside
        for digits in range(3, MOST_DIGITS):
            low, high = _round(first, digits, ROUND_CEILING), _round(last, digits, ROUND_FLOOR)
            # rounding may remove at most two thirds of the interval
            if first <= low <= high <= last and high - low >= (last - first) / 3:
                return low, high
        return first, last

    @property
    def round_number(self) -> float:
        """The number in the interval with the fewest digits. Ties go to the one nearest the middle.

        >>> IntervalOfC(1.23456, 3.45678, False, False).round_number
        2.0
        >>> IntervalOfC(1.23456, 1.23459, False, False).round_number
        1.23457
        """
        (first, last), middle = self.inside, self.middle
        for digits in range(1, MOST_DIGITS):
            near = [_round(middle, digits, way) for way in (ROUND_FLOOR, ROUND_CEILING)]
            if inside := [number for number in near if first <= number <= last]:
                return min(inside, key=lambda number: abs(number - middle))
        return middle


def _round(number: float, digits: int, way: str) -> float:
    return float(Context(prec=digits, rounding=way).create_decimal_from_float(number))


@dataclass(frozen=True, repr=False)
class ValidationCurve:
    """A validation function of C, exact at every C in its range.

    Between two breakpoints the function is a polynomial in C. It is a constant for scores of
    predicted labels and for the area under the ROC curve, a parabola for the squared error, and a
    line for the absolute error.

    Attributes
    ----------
    breakpoints : ndarray of shape (n_pieces + 1,)
        Increasing values of C. The first and the last are the ends of the range.
    coefficients : ndarray of shape (n_pieces, degree + 1)
        Bernstein coefficients of each piece over its interval of C. A constant piece has a single
        coefficient, which is its value.
    at_breakpoints : ndarray of shape (n_pieces + 1,)
        Values at the breakpoints themselves, where a decision value is exactly zero.
    greater_is_better : bool
        Whether the function is a score. Otherwise it is an error or a loss.

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
        """Return a piecewise constant curve with the given values."""
        arrays = [np.asarray(a, dtype=float) for a in (breakpoints, values, at_breakpoints)]
        return cls(arrays[0], arrays[1][:, None], arrays[2], greater_is_better)

    def __repr__(self) -> str:
        low, high = self.breakpoints[[0, -1]]
        return (
            f"ValidationCurve({len(self.coefficients)} pieces over C in [{low:.4g}, {high:.4g}], "
            f"best {self.best:.6g})"
        )

    def __call__(self, C: ArrayLike) -> Array:
        """Return the value at each C. Outside the range, it is the value at the nearest end."""
        at = np.clip(np.asarray(C, dtype=float), self.breakpoints[0], self.breakpoints[-1])
        near = np.searchsorted(self.breakpoints, at)
        value = self._within(np.maximum(near - 1, 0), at)
        return np.where(self.breakpoints[near] == at, self.at_breakpoints[near], value)

    def _within(self, piece: NDArray[np.intp], C: Array) -> Array:
        low, high = self.breakpoints[piece], self.breakpoints[piece + 1]
        t = (C - low) / np.where(high > low, high - low, 1.0)
        c = self.coefficients[piece]
        while c.shape[-1] > 1:  # de Casteljau: stable at every t in [0, 1]
            c = c[..., :-1] * (1 - t)[..., None] + c[..., 1:] * t[..., None]
        return c[..., 0]

    def affine(self, factor: float, offset: float = 0.0) -> "ValidationCurve":
        """Return the curve times a factor plus an offset.

        A negative factor turns a loss into a score, and a score into a loss.
        """
        return ValidationCurve(
            self.breakpoints,
            offset + factor * self.coefficients,
            offset + factor * self.at_breakpoints,
            self.greater_is_better != (factor < 0),
        )

    @property
    def continuous(self) -> bool:
        """Whether the pieces are lines or parabolas, not steps."""
        return self.coefficients.shape[1] > 1

    @property
    def values(self) -> Array:
        """Best value of the curve on each piece. On a constant piece, this is its value."""
        return self._extremes[0]

    @cached_property
    def _extremes(self) -> tuple[Array, Array]:
        """Best value of each piece, and its position from 0 (lower end) to 1 (upper end)."""
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
        """The best value over the range, without the values at single breakpoints."""
        return float(self.values.max() if self.greater_is_better else self.values.min())

    @property
    def argmin(self) -> list[IntervalOfC]:
        """Intervals of C with the smallest loss, or with the greatest score, in order of C."""
        return self.within(self.best)

    def within(self, level: float) -> list[IntervalOfC]:
        """Return the intervals of C on which the curve is at least as good as ``level``.

        For an absolute or squared error, each interval is a single point: the best C of a piece. A
        breakpoint is left out if only its own value reaches the level, and the pieces next to it do
        not.
        """
        sign = -1.0 if self.greater_is_better else 1.0
        slack = 1e-12 * max(abs(level), 1e-300)
        inside = sign * (self.values - level) <= slack
        at = sign * (self.at_breakpoints - level) <= slack
        if self.continuous:
            return self._points(inside)
        joined = inside[1:] & inside[:-1] & at[1:-1]
        first = np.flatnonzero(inside & ~np.append(False, joined))
        last = np.flatnonzero(inside & ~np.append(joined, False)) + 1
        ends = self.breakpoints
        return [
            IntervalOfC(float(ends[a]), float(ends[b]), bool(at[a]), bool(at[b]))
            for a, b in zip(first, last, strict=True)
        ]

    def _points(self, inside: NDArray[np.bool_]) -> list[IntervalOfC]:
        low, high = self.breakpoints[:-1], self.breakpoints[1:]
        C = np.unique((low + self._extremes[1] * (high - low))[inside])
        return [IntervalOfC(float(c), float(c), True, True) for c in C]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the ends, end values and best value of each piece."""
        ends, at = self.breakpoints, self.at_breakpoints
        return pandas_frame(
            "ValidationCurve",
            {
                "C_low": ends[:-1],
                "C_high": ends[1:],
                "value": self.values,
                "at_C_low": at[:-1],
                "at_C_high": at[1:],
            },
        )


def pandas_frame(owner: str, columns: dict[str, Array]) -> Any:
    """Return a pandas DataFrame with the given columns."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra(
            f"{owner}.to_frame needs pandas, which is not installed: pip install pandas."
        ) from None
    return pd.DataFrame(columns)
