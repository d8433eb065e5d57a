"""Errors against C."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis._arrays import Array
from tamis.exceptions import InvalidParameter
from tamis.plot.reading import MetricFormat
from tamis.plot.scales import PLAIN_POWERS, ticks
from tamis.plot.style import (
    Layer,
    Palette,
    axis,
    charted,
    field,
    figure,
    layered,
    palette,
    text,
    upright,
)

#: Scores of a search over C.
TUNED = {
    None: MetricFormat("errors", "%", percent=True),
    "error": MetricFormat("errors", "%", percent=True),
    "balanced_error": MetricFormat("balanced errors", "%", percent=True),
    "weighted_error": MetricFormat("weighted errors", "%", percent=True),
    "accuracy": MetricFormat("right answers", "%", greater_is_better=True, percent=True),
    "mse": MetricFormat("root mean squared error", "", rooted=True),
    "neg_mean_squared_error": MetricFormat("root mean squared error", "", rooted=True),
    "mae": MetricFormat("mean absolute error", ""),
    "neg_mean_absolute_error": MetricFormat("mean absolute error", ""),
}


def tuning(search: Any, *, theme: str = "light", width: int = 640, height: int = 190) -> Any:
    """The exact validation curve over C, the chosen C, and the interval it was taken from.

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
    return charted(draw_tuning(tuned_curve(search), palette(theme), width, height))


@dataclass(frozen=True, repr=False)
class TunedCurve:
    """A measure at every C, and the C that was chosen.

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
    if scoring is None and exact.coefficients.shape[1] > 1:  # of a regression
        scoring = "mse"
    measure = TUNED.get(scoring if isinstance(scoring, str | None) else scoring[0])
    measure = measure or MetricFormat(str(scoring), "", exact.greater_is_better)
    C = np.repeat(exact.breakpoints, 2)[1:-1]
    value = np.column_stack([exact.coefficients[:, 0], exact.coefficients[:, -1]]).ravel()
    interval = search.best_interval_
    return TunedCurve(
        C,
        measure.shown(value),
        measure,
        float(search.best_C_),
        float(interval.low),
        float(interval.high),
        float(measure.shown(exact(search.best_C_))),
        len(exact.coefficients),
        bool(search.certificate_.closed),
    )


def draw_tuning(tuned: TunedCurve, colours: Palette, width: int, height: int) -> Any:
    """The chart of a curve over C."""
    domain = [float(tuned.C[0]), float(tuned.C[-1])]
    marks = axis(colours, labelExpr=PLAIN_POWERS)
    marks["values"] = [
        t for t in ticks(domain[0], domain[1], True) if np.log10(t) == round(np.log10(t))
    ]
    x: dict[str, Any] = {
        "scale": {"type": "log", "domain": domain, "nice": False},
        "title": "C (log scale)",
    }
    high = float(np.nanmax(tuned.value)) * 1.05 or 1.0
    low = 0.0 if not tuned.measure.greater_is_better else float(np.nanmin(tuned.value)) * 0.98
    unit = f", {tuned.measure.unit}" if tuned.measure.unit else ""
    title = f"cross-validated {tuned.measure.words}{unit}"
    scale: dict[str, Any] = {
        "domain": [min(low, float(np.nanmin(tuned.value))), high],
        "nice": False,
    }

    def at(name: str) -> Any:
        return field(name, axis=marks, **x)

    def y(name: str) -> Any:
        return field(name, scale=scale, title=title, axis=upright(colours))

    corners = [
        {"C": float(C), "value": float(v)} for C, v in zip(tuned.C, tuned.value, strict=True)
    ]
    chosen: dict[str, Any] = {
        "C": tuned.best_C,
        "value": tuned.at_best,
        "low": max(tuned.low, domain[0]),
    }
    chosen |= {"high": min(tuned.high, domain[1]), "top": high, "bottom": scale["domain"][0]}
    chosen["label"] = f"chosen: C = {figure(tuned.best_C)}"
    chart, line = Layer([chosen], "chosen"), Layer(corners, "curve")
    styled = text(colours, color=colours.mark, fontWeight=600, baseline="top", fontSize=11.5, dy=3)
    layers = [
        chart.mark("rect", color=colours.mark, opacity=0.16).encode(
            x=at("low"), x2={"field": "high"}, y=y("bottom"), y2={"field": "top"}
        ),
        line.mark("line", color=colours.accent, strokeWidth=1.6).encode(x=at("C"), y=y("value")),
        chart.mark("point", filled=True, size=70, opacity=1, color=colours.mark).encode(
            x=at("C"), y=y("value"), stroke={"value": colours.ground}
        ),
        chart.mark("text", **styled).encode(x=at("C"), y=y("top"), text=field("label", "nominal")),
    ]
    return layered(layers, width, height)
