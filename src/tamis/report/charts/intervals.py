"""Numbers with their intervals, one below the other: errors, stabilities, times."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tamis._format import format_name
from tamis.report.charts.scales import PLAIN_POWERS, ROW, finite, row_channel, row_names, ticks
from tamis.report.charts.style import Layer, Palette, axis, field, layered


class SpannedNumber(NamedTuple):
    """A number, the interval in which it may be, and another that it is compared with.

    ``low`` and ``high`` are NaN if they are not known; ``other`` is drawn as a hollow diamond; a
    baseline is grey.
    """

    name: str
    value: float
    low: float = float("nan")
    high: float = float("nan")
    other: float | None = None
    hint: str = ""
    baseline: bool = False


def draw_intervals(
    rows: Sequence[SpannedNumber],
    title: str,
    colours: Palette,
    width: int,
    *,
    domain: tuple[float, float] | None = None,
    powers: bool = False,
) -> dict[str, Any]:
    """Draw dots on their intervals, names at the left; ``powers`` is for a logarithmic scale."""
    data = [
        {
            "place": place,
            "name": format_name(row.name, 26),
            "beside": row.baseline,
            "hint": f"{format_name(row.name)}: {row.hint}",
            **{key: finite(getattr(row, key)) for key in ("value", "low", "high", "other")},
        }
        for place, row in enumerate(rows)
    ]
    x = _scale(rows, title, colours, domain, powers)
    chart = Layer(data, "intervals").encode(y=row_channel(len(data)))
    hue = {"condition": {"test": "datum.beside", "value": colours.quiet}, "value": colours.accent}
    rule = chart.mark("rule", strokeWidth=2, opacity=0.55)
    point = chart.mark("point", filled=True, size=60, opacity=1)
    layers = [
        rule.encode(x=field("low", **x), x2={"field": "high"}, color=hue),
        point.encode(x=field("value", **x), color=hue).with_hints(),
    ]
    if any(row.other is not None for row in rows):
        diamond = {"shape": "diamond", "filled": False, "size": 70, "strokeWidth": 1.6}
        mark = chart.mark("point", **diamond, opacity=1, color=colours.mark)
        layers.append(mark.encode(x=field("other", **x)).with_hints())
    return layered([*layers, row_names(chart, colours)], width, ROW * len(data))


def _scale(
    rows: Sequence[SpannedNumber],
    title: str,
    colours: Palette,
    domain: tuple[float, float] | None,
    powers: bool,
) -> dict[str, Any]:
    """Return the scale from left to right: all that is shown, with a little room."""
    shown = [finite(v) for r in rows for v in (r.value, r.low, r.high, r.other)]
    known = [v for v in shown if v is not None] or [0.0, 1.0]
    low, high = min(known), max(known)
    marks = axis(colours, lines=True, title=title, tickCount=5)
    scale: dict[str, Any] = {"nice": False}
    if powers:
        low, high = low / 1.5, high * 1.5
        scale["type"] = "log"
        marks |= {"labelExpr": PLAIN_POWERS, "labelOverlap": True, "values": ticks(low, high, True)}
    elif domain is not None:
        low, high = min(low, domain[0]), max(high, domain[1])
    else:
        room = 0.05 * (high - low) or 0.5 * abs(high) or 1.0
        low, high = low - room if low < 0 or low > 2 * room else 0.0, high + room
    return {"scale": {**scale, "domain": [low, high]}, "axis": marks}
