"""Numbers of C as people write them: short, and inside the interval that they are to stand for."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from math import inf, nextafter

from tamis.svm.curves.curve import IntervalOfC

#: Digits beyond which two neighbouring floats are the same number on paper.
MOST_DIGITS = 17


def rounded_ends(interval: IntervalOfC) -> tuple[float, float]:
    """The ends with three digits, or as many as it takes, rounded into the interval.

    >>> rounded_ends(IntervalOfC(1.23456, 3.45678, False, True))
    (1.24, 3.45)
    >>> rounded_ends(IntervalOfC(1.23456, 1.23459, False, False))
    (1.23457, 1.23458)
    """
    first, last = _inside(interval)
    for digits in range(3, MOST_DIGITS):
        low, high = _rounded(first, digits, ROUND_CEILING), _rounded(last, digits, ROUND_FLOOR)
        # rounding may take two thirds of the interval, not more
        if first <= low <= high <= last and high - low >= (last - first) / 3:
            return low, high
    return first, last


def round_number(interval: IntervalOfC) -> float:
    """The number of fewest digits inside the interval, nearest to its middle.

    >>> round_number(IntervalOfC(1.23456, 3.45678, False, False))
    2.0
    >>> round_number(IntervalOfC(1.23456, 1.23459, False, False))
    1.23457
    """
    (first, last), middle = _inside(interval), interval.middle
    for digits in range(1, MOST_DIGITS):
        near = [_rounded(middle, digits, way) for way in (ROUND_FLOOR, ROUND_CEILING)]
        if inside := [number for number in near if first <= number <= last]:
            return min(inside, key=lambda number: abs(number - middle))
    return middle


def _inside(interval: IntervalOfC) -> tuple[float, float]:
    """The smallest and the largest number that belong to the interval."""
    low = interval.low if interval.low_closed else nextafter(interval.low, inf)
    high = interval.high if interval.high_closed else nextafter(interval.high, 0.0)
    return low, high


def _rounded(number: float, digits: int, way: str) -> float:
    return float(Context(prec=digits, rounding=way).create_decimal_from_float(number))
