"""Numbers with their intervals, one below the other: errors, stabilities, times."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.plot.columns import ROW, names_beside, places
from tamis.plot.scales import PLAIN_POWERS, ticks
from tamis.plot.style import Layer, Palette, axis, field, harmless, layered, short


class SpannedNumber(NamedTuple):
    """A number, from where to where it may be, and another that it is set against.

    ``low`` and ``high`` are NaN where nobody knows; ``other`` is drawn as a hollow diamond; what is
    ``beside`` the others, as guessing, is grey.
    """

    name: str
    value: float
    low: float = float("nan")
    high: float = float("nan")
    other: float | None = None
    said: str = ""
    beside: bool = False


def draw_intervals(
    rows: Sequence[SpannedNumber],
    title: str,
    colours: Palette,
    width: int,
    *,
    domain: tuple[float, float] | None = None,
    powers: bool = False,
) -> dict[str, Any]:
    """Dots on their intervals, names at the left; ``powers`` is for a logarithmic scale."""
    data = [_row(place, row) for place, row in enumerate(rows)]
    x = _scale(rows, title, colours, domain, powers)
    chart = Layer(data, "intervals").encode(y=places(len(data)))
    hint = field("hint", "nominal")
    hue = {"condition": {"test": "datum.beside", "value": colours.quiet}, "value": colours.accent}
    layers = [
        chart.mark("rule", strokeWidth=2, opacity=0.55).encode(
            x=field("low", **x), x2={"field": "high"}, color=hue
        ),
        chart.mark("point", filled=True, size=60, opacity=1).encode(
            x=field("value", **x), color=hue, tooltip=hint, description=hint
        ),
    ]
    if any(row.other is not None for row in rows):
        diamond = {"shape": "diamond", "filled": False, "size": 70, "strokeWidth": 1.6}
        mark = chart.mark("point", **diamond, opacity=1, color=colours.mark)
        layers.append(mark.encode(x=field("other", **x), tooltip=hint, description=hint))
    return layered([*layers, names_beside(chart, colours)], width, ROW * len(data))


def _row(place: int, row: SpannedNumber) -> dict[str, Any]:
    known = {"value": row.value, "low": row.low, "high": row.high, "other": row.other}
    plain = {key: _plain(value) for key, value in known.items()}
    return {
        "place": place,
        "name": short(row.name, 26),
        "beside": row.beside,
        "hint": f"{harmless(row.name)}: {row.said}",
        **plain,
    }


def _plain(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def _scale(
    rows: Sequence[SpannedNumber],
    title: str,
    colours: Palette,
    domain: tuple[float, float] | None,
    powers: bool,
) -> dict[str, Any]:
    """The scale from left to right: all that is shown, with a little room."""
    shown = [v for r in rows for v in (r.value, r.low, r.high, r.other)]
    known = [float(v) for v in shown if v is not None and np.isfinite(v)] or [0.0, 1.0]
    low, high = min(known), max(known)
    marks = axis(colours, lines=True, title=title, tickCount=5)
    if powers:
        low, high = low / 1.5, high * 1.5
        scale: dict[str, Any] = {"type": "log", "domain": [low, high], "nice": False}
        marks |= {"labelExpr": PLAIN_POWERS, "labelOverlap": True, "values": ticks(low, high, True)}
        return {"scale": scale, "axis": marks}
    if domain is not None:
        low, high = min(low, domain[0]), max(high, domain[1])
    else:
        room = 0.05 * (high - low) or 0.5 * abs(high) or 1.0
        low, high = low - room if low < 0 or low > 2 * room else 0.0, high + room
    return {"scale": {"domain": [low, high], "nice": False}, "axis": marks}
