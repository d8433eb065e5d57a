"""Scales that several charts share: numbers of columns, powers of ten, and rows with names."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Subset
from tamis.report.charts.style import Layer, Palette, axis, field

#: With at least this number of columns, the scale is logarithmic. With fewer, it is linear.
LOGARITHMIC = 60
#: Vega expression that formats powers of ten on an axis.
PLAIN_POWERS = (
    "datum.value >= 0.00001 && datum.value < 1000000 ? format(datum.value, '.6~f') : "
    "format(datum.value, '.1~e')"
)
#: Largest number of points in a line. More could not be distinguished, and would take megabytes.
POINTS = 80
#: Height in pixels of a row with a name.
ROW = 19


def size_channel(sizes: Sequence[int], title: str, colours: Palette, **options: Any) -> Any:
    """Return the x channel for numbers of columns, logarithmic if there are many."""
    low, high = max(min(sizes), 1), max(max(sizes), 2)
    many = high >= LOGARITHMIC
    scale = {**({"type": "log"} if many else {}), "domain": [low, high], "nice": False, **options}
    marks = axis(colours, format="d", labelOverlap=True, values=ticks(low, high, many))
    return field("size", scale=scale, axis=marks, title=title + (" (log scale)" if many else ""))


def ticks(low: float, high: float, many: bool) -> list[float]:
    """Return round tick values: at most eight, or 1, 2, 5, 10, ... on a logarithmic scale."""
    if many:
        decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
        factors = (1, 2, 5) if high / low < 100 or low >= 1 else (1,)
        marks = [factor * 10.0**decade for decade in decades for factor in factors]
        return [float(tick) for tick in marks if low <= tick <= high]
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100) if (high - low) / s <= 8)
    inner = [float(k) for k in range(int(low), int(high) + 1) if k % step == 0]
    # both ends are labelled, and numbers that would touch them are left out
    return [float(low), *(k for k in inner if low + step / 2 < k < high - step / 2), float(high)]


def thin(sizes: NDArray[Any], *also: int) -> Subset:
    """Return positions of at most 80 sizes: evenly spaced sizes, and the sizes in ``also``.

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
    """Return the y channel for rows, from top to bottom."""
    return field("place", "ordinal", axis=None, scale={"domain": list(range(n))})


def row_names(chart: Layer, colours: Palette) -> Layer:
    """Return the names at the left of their rows. They are text marks, because two may be equal."""
    return chart.text("name", colours, align="right", dx=-6, fontSize=11.5).encode(x={"value": 0})


def finite(value: float | None) -> float | None:
    """Return the value if it is a finite number, otherwise None."""
    return None if value is None or not np.isfinite(value) else float(value)
