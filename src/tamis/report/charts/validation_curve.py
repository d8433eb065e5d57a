"""Errors against C."""

from typing import Any

import numpy as np

from tamis._format import format_number
from tamis.report.charts.scales import PLAIN_POWERS, ticks
from tamis.report.charts.style import (
    Layer,
    Palette,
    axis,
    field,
    layered,
    palette,
    to_altair,
    y_channel,
)
from tamis.report.tuned_svm import TuningResult


def tuning(search: Any, *, theme: str = "light", width: int = 640, height: int = 190) -> Any:
    """Draw the exact validation curve over C, the chosen C, and the interval it was taken from.

    Parameters
    ----------
    search : SVCPathCV or SVRPathCV
        Fitted.
    theme : {"light", "page"}, default="light"
        "page" has the variables of the style sheet of a report for colours.
    width, height : int
        Of the plot itself, in pixels.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> from sklearn.preprocessing import scale
    >>> from tamis.datasets import load
    >>> from tamis.plot import tuning
    >>> from tamis.svm import SVCPathCV
    >>> wine = load("wine")
    >>> search = SVCPathCV("linear", cv=3).fit(scale(wine.X[:130]), wine.y[:130])  # two classes
    >>> type(tuning(search)).__name__
    'LayerChart'
    """
    return to_altair(draw_tuning(TuningResult(search), palette(theme), width, height))


def draw_tuning(tuned: TuningResult, colours: Palette, width: int, height: int) -> dict[str, Any]:
    """Draw a curve over C."""
    ends, values = tuned.curve.breakpoints, tuned.shown
    left, right = float(ends[0]), float(ends[-1])
    powers = [t for t in ticks(left, right, True) if np.log10(t) == round(np.log10(t))]
    x: dict[str, Any] = {
        "scale": {"type": "log", "domain": [left, right], "nice": False},
        "title": "C (log scale)",
        "axis": axis(colours, labelExpr=PLAIN_POWERS, values=powers),
    }
    least = float(np.nanmin(values))
    bottom = min(0.98 * least if tuned.measure.greater_is_better else 0.0, least)
    top = float(np.nanmax(values)) * 1.05 or 1.0

    def y(name: str) -> Any:
        title = f"cross-validated {tuned.measure.title}"
        return y_channel(name, title, {"domain": [bottom, top], "nice": False}, colours)

    places = np.repeat(ends, 2)[1:-1].tolist()  # each piece has two ends
    corners = [{"C": C, "value": v} for C, v in zip(places, values.tolist(), strict=True)]
    best_C, interval = float(tuned.search.best_C_), tuned.search.best_interval_
    chosen = {"C": best_C, "value": tuned.at_best, "top": top, "bottom": bottom}
    chosen |= {"low": max(float(interval.low), left), "high": min(float(interval.high), right)}
    label = {"label": f"chosen: C = {format_number(best_C)}"}
    at = Layer([chosen | label], "chosen")
    style = {"color": colours.mark, "fontWeight": 600, "baseline": "top", "fontSize": 11.5, "dy": 3}
    shade = at.mark("rect", color=colours.mark, opacity=0.16)
    line = Layer(corners, "curve").mark("line", color=colours.accent, strokeWidth=1.6)
    dot = at.mark("point", filled=True, size=70, opacity=1, color=colours.mark)
    layers = [
        shade.encode(x=field("low", **x), x2={"field": "high"}, y=y("bottom"), y2={"field": "top"}),
        line.encode(x=field("C", **x), y=y("value")),
        dot.encode(x=field("C", **x), y=y("value"), stroke={"value": colours.ground}),
        at.text("label", colours, **style).encode(x=field("C", **x), y=y("top")),
    ]
    return layered(layers, width, height)
