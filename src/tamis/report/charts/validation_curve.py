"""Errors against C."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis._arrays import Array
from tamis._format import format_number
from tamis.exceptions import InvalidParameter
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
from tamis.report.error_curve import MetricFormat, metric_format

#: Metrics of the scorings of a search over C that are called otherwise.
METRIC_OF_SCORING = {
    "balanced_error": "ber",
    "neg_mean_squared_error": "mse",
    "neg_mean_absolute_error": "mae",
}


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
    return to_altair(draw_tuning(tuned_curve(search), palette(theme), width, height))


@dataclass(frozen=True, repr=False)
class TunedCurve:
    """A metric at every C, and the C that was chosen.

    Attributes
    ----------
    C, value : array of float
        Corners of the curve, from left to right.
    measure : MetricFormat
    best_C, low, high, at_best : float
        The chosen C, its interval, and the value there.
    n_segments : int
    certified : bool
    """

    C: Array
    value: Array
    measure: MetricFormat
    best_C: float
    low: float
    high: float
    at_best: float
    n_segments: int
    certified: bool

    @property
    def best(self) -> float:
        """The best value at any C."""
        return float(np.max(self.value) if self.measure.greater_is_better else np.min(self.value))

    @property
    def flat(self) -> bool:
        """Whether every C is as good as every other."""
        return bool(np.ptp(self.value) <= 1e-12 * np.abs(self.value).max())


def tuned_curve(search: Any) -> TunedCurve:
    """Read the curve of a fitted search over C."""
    if not (hasattr(search, "curve_") and hasattr(search, "best_C_")):
        raise InvalidParameter(
            f"tuning needs a fitted SVCPathCV or SVRPathCV, not {type(search).__name__}."
        )
    exact, scoring = search.curve_, search.scoring
    if scoring is None:
        scoring = "mse" if exact.coefficients.shape[1] > 1 else "error"  # of a regression
    name = scoring if isinstance(scoring, str) else scoring[0]
    measure = metric_format(METRIC_OF_SCORING.get(name, name), exact.greater_is_better)
    ends = exact.coefficients[:, [0, -1]]
    interval = search.best_interval_
    return TunedCurve(
        np.repeat(exact.breakpoints, 2)[1:-1],
        measure.shown(ends.ravel()),
        measure,
        float(search.best_C_),
        float(interval.low),
        float(interval.high),
        float(measure.shown(exact(search.best_C_))),
        len(exact.coefficients),
        bool(search.certificate_.closed),
    )


def draw_tuning(tuned: TunedCurve, colours: Palette, width: int, height: int) -> dict[str, Any]:
    """Draw a curve over C."""
    left, right = float(tuned.C[0]), float(tuned.C[-1])
    powers = [t for t in ticks(left, right, True) if np.log10(t) == round(np.log10(t))]
    x: dict[str, Any] = {
        "scale": {"type": "log", "domain": [left, right], "nice": False},
        "title": "C (log scale)",
        "axis": axis(colours, labelExpr=PLAIN_POWERS, values=powers),
    }
    least = float(np.nanmin(tuned.value))
    bottom = min(0.98 * least if tuned.measure.greater_is_better else 0.0, least)
    top = float(np.nanmax(tuned.value)) * 1.05 or 1.0

    def y(name: str) -> Any:
        title = f"cross-validated {tuned.measure.title}"
        return y_channel(name, title, {"domain": [bottom, top], "nice": False}, colours)

    ends = zip(tuned.C.tolist(), tuned.value.tolist(), strict=True)
    corners = [{"C": C, "value": value} for C, value in ends]
    chosen = {"C": tuned.best_C, "value": tuned.at_best, "top": top, "bottom": bottom}
    chosen |= {"low": max(tuned.low, left), "high": min(tuned.high, right)}
    label = {"label": f"chosen: C = {format_number(tuned.best_C)}"}
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
