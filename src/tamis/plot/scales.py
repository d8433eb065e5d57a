"""Scales that several pictures share: numbers of columns, and powers of ten."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tamis._arrays import Subset
from tamis.plot.style import Palette, axis, field

#: From so many columns on their number is on a logarithmic scale: below, the first few are still
#: apart on a linear one.
LOGARITHMIC = 60
#: How powers of ten are written on an axis.
PLAIN_POWERS = (
    "datum.value >= 0.00001 && datum.value < 1000000 ? format(datum.value, '.6~f') : "
    "format(datum.value, '.1~e')"
)
#: Points of a line at most: more could not be told apart, and would make a page of megabytes.
POINTS = 80


def sizes_channel(sizes: Sequence[int], title: str, colours: Palette, **options: Any) -> Any:
    """Numbers of columns from left to right, on a logarithmic scale where there are many."""
    low, high = max(min(sizes), 1), max(max(sizes), 2)
    many = high >= LOGARITHMIC
    scale: dict[str, Any] = {"type": "log"} if many else {}
    scale |= {"domain": [low, high], "nice": False, **options}
    marks = axis(colours, format="d", labelOverlap=True)
    marks["values"] = ticks(low, high, many)
    return field("size", scale=scale, axis=marks, title=title + (" (log scale)" if many else ""))


def ticks(low: float, high: float, many: bool) -> list[float]:
    """A few round numbers: 1, 2, 5, 10, ... on a logarithmic scale, else at most eight."""
    if many:
        decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
        factors = (1, 2, 5) if high / low < 100 or low >= 1 else (1,)
        all_of_them = [factor * 10.0**decade for decade in decades for factor in factors]
        return [float(tick) for tick in all_of_them if low <= tick <= high]
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100) if (high - low) / s <= 8)
    inner = [float(k) for k in range(int(low), int(high) + 1) if k % step == 0]
    # the ends are named; what would touch them is not
    return [float(low), *(k for k in inner if low + step / 2 < k < high - step / 2), float(high)]


def thinned(sizes: Sequence[int], *also: int) -> Subset:
    """Positions of at most 80 sizes, evenly apart on the scale they are drawn on, and of some.

    >>> thinned([1, 2, 3]).tolist()
    [0, 1, 2]
    >>> len(thinned(range(1, 5000), 777)) <= 80
    True
    """
    given = np.asarray(sizes, dtype=float)
    if len(given) <= POINTS:
        return np.arange(len(given))
    shown = np.log(given) if given.max() >= LOGARITHMIC else given
    ends = np.linspace(shown.min(), shown.max(), POINTS - len(also))
    order = np.argsort(shown, kind="stable")
    near = order[np.clip(np.searchsorted(shown[order], ends), 0, len(order) - 1)]
    asked = np.flatnonzero(np.isin(given, also))
    return np.unique(np.concatenate([near, asked])).astype(np.intp)
