"""Scales that several charts share: numbers of columns, powers of ten, rows with names."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Subset
from tamis.report.charts.style import Layer, Palette, axis, field

#: Number of columns from which on their scale is logarithmic: below, the first few are still apart
#: on a linear one.
LOGARITHMIC = 60
#: How powers of ten are written on an axis.
PLAIN_POWERS = (
    "datum.value >= 0.00001 && datum.value < 1000000 ? format(datum.value, '.6~f') : "
    "format(datum.value, '.1~e')"
)
#: Points of a line at most: more could not be told apart, and would make a page of megabytes.
POINTS = 80
#: Pixels of a row with a name.
ROW = 19


def size_channel(sizes: Sequence[int], title: str, colours: Palette, **options: Any) -> Any:
    """Return numbers of columns from left to right, on a logarithmic scale if there are many."""
    low, high = max(min(sizes), 1), max(max(sizes), 2)
    many = high >= LOGARITHMIC
    scale = {**({"type": "log"} if many else {}), "domain": [low, high], "nice": False, **options}
    marks = axis(colours, format="d", labelOverlap=True, values=ticks(low, high, many))
    return field("size", scale=scale, axis=marks, title=title + (" (log scale)" if many else ""))


def ticks(low: float, high: float, many: bool) -> list[float]:
    """Return a few round numbers: 1, 2, 5, 10, ... on a logarithmic scale, else at most eight."""
    if many:
        decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
        factors = (1, 2, 5) if high / low < 100 or low >= 1 else (1,)
        marks = [factor * 10.0**decade for decade in decades for factor in factors]
        return [float(tick) for tick in marks if low <= tick <= high]
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100) if (high - low) / s <= 8)
    inner = [float(k) for k in range(int(low), int(high) + 1) if k % step == 0]
    # the ends are named; what would touch them is not
    return [float(low), *(k for k in inner if low + step / 2 < k < high - step / 2), float(high)]


def thin(sizes: NDArray[Any], *also: int) -> Subset:
    """Return positions of at most 80 sizes, evenly apart on their scale, and of some others.

    >>> thin(np.array([1, 2, 3])).tolist()
    [0, 1, 2]
    >>> len(thin(np.arange(1, 5000), 777)) <= 80
    True
    """
    if len(sizes) <= POINTS:
        return np.arange(len(sizes))
    shown = np.log(sizes) if sizes.max() >= LOGARITHMIC else sizes
    ends = np.linspace(shown.min(), shown.max(), POINTS - len(also))
    order = np.argsort(shown, kind="stable")
    near = order[np.clip(np.searchsorted(shown[order], ends), 0, len(order) - 1)]
    return np.unique(np.concatenate([near, np.flatnonzero(np.isin(sizes, also))])).astype(np.intp)


def row_channel(n: int) -> dict[str, Any]:
    """Return rows from top to bottom."""
    return field("place", "ordinal", axis=None, scale={"domain": list(range(n))})


def row_names(chart: Layer, colours: Palette) -> Layer:
    """Return names at the left of their rows: as marks, since two columns may have the same."""
    return chart.text("name", colours, align="right", dx=-6, fontSize=11.5).encode(x={"value": 0})


def finite(value: float | None) -> float | None:
    """Return a number that JSON knows, or None."""
    return None if value is None or not np.isfinite(value) else float(value)
