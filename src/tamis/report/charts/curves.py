"""Charts of errors against the number of columns, and of scores against C."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis._arrays import Array
from tamis._format import format_name, format_number
from tamis.evaluation import Results
from tamis.report.charts.scales import LOGARITHMIC, PLAIN_POWERS, finite, size_channel, thin, ticks
from tamis.report.charts.style import (
    SHAPES,
    Layer,
    Palette,
    axis,
    field,
    layered,
    palette,
    to_altair,
    y_channel,
)
from tamis.report.error_curve import ErrorCurve, error_curves
from tamis.report.tuned_svm import TuningResult
from tamis.report.units import chosen_units

if TYPE_CHECKING:
    import altair

    from tamis.svm.search.base import PathSearch

#: Function that returns the y channel for the name of a field.
Channel = Callable[[str], Any]
#: Smallest distance in pixels between two names at the ends of lines.
APART = 14
#: Share of the plot's height that a name below a line needs.
LEAST_ROOM = 0.12


def curve(
    results: Results,
    chosen: Any = None,
    *,
    metric: str | None = None,
    estimator: str | None = None,
    data: str | None = None,
    theme: str = "light",
    width: int = 640,
    height: int = 230,
) -> "altair.LayerChart":
    """Draw the error on held-out rows against the number of columns.

    The band is one standard error, corrected for the overlap of the resamples. A dashed line marks
    the error with all columns. Several methods have different markers, and names at the ends of
    their lines.

    Parameters
    ----------
    results : Results
        Result of :func:`tamis.evaluation.evaluate` with ``sizes``.
    chosen : int or fitted selection, optional
        The number of columns to mark.
    metric, estimator, data : str, optional
        Metric, estimator and table to draw, if the results contain several.
    theme : {"light", "page"}, default="light"
        "page" uses the CSS variables of a report as colours.
    width, height : int
        Size of the plot, in pixels.

    Returns
    -------
    altair.LayerChart
        ``save("curve.svg")`` writes it as SVG, PNG or PDF.

    Examples
    --------
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sklearn.svm import SVC
    >>> from tamis.datasets import load
    >>> from tamis.evaluation import Realizations, evaluate
    >>> from tamis.plot import curve
    >>> results = evaluate(SelectKBest(k=4), load("wine"), Realizations(3), estimators=SVC(),
    ...                    sizes=[1, 2, 4, 13])
    >>> [row["size"] for row in curve(results, chosen=4).to_dict()["layer"][0]["data"]["values"]]
    [1, 2, 4, 13]
    """
    lines = error_curves(results, metric=metric, estimator=estimator, data=data)
    if not isinstance(chosen, int | np.integer | None):
        chosen = chosen_units(chosen).n_columns_kept
    return to_altair(draw_curve(lines, chosen, palette(theme), width, height))


def draw_curve(
    lines: Sequence[ErrorCurve],
    chosen: int | None,
    colours: Palette,
    width: int,
    height: int,
    *,
    published: Sequence[ErrorCurve] = (),
    title: str | None = None,
    across: str = "columns kept",
) -> dict[str, Any]:
    """Draw one curve per method. Published curves of these methods have hollow markers."""
    measure = lines[0].measure
    low, high = _span([*lines, *published])
    if title is None:
        title = f"{measure.words} on held-out rows" + (f", {measure.unit}" if measure.unit else "")

    def y(name: str) -> Any:
        return y_channel(name, title, {"domain": [low, high], "nice": False}, colours)

    layers = _lines(lines, chosen, colours, y)
    if published:
        layers += _hollow(published, lines, colours, y)
    if len(lines) == 1:
        layers += _whole(lines[0], (low, high), colours, y)
    else:
        layers += _end_names(lines, APART * (high - low) / height, colours, y)
    if chosen is not None:
        layers += _marked(lines[0], int(chosen), (low, high), colours, y)
    x = size_channel([k for line in lines for k in line.size.tolist()], across, colours)
    return layered([layer.encode(x=x) for layer in layers], width, height)


def _span(lines: Sequence[ErrorCurve]) -> tuple[float, float]:
    """Return the range of the y axis. Errors start at 0, and scores slightly below the smallest."""
    errors = [np.nan_to_num(line.error) for line in lines]
    high = max(float(np.nanmax(c.mean + e)) for c, e in zip(lines, errors, strict=True))
    low = min(float(np.nanmin(c.mean - e)) for c, e in zip(lines, errors, strict=True))
    if not lines[0].measure.greater_is_better:
        return min(0.0, low), high * 1.05 if high > 0 else 1.0
    edge = (high - low) * 0.08 or 0.1
    return low - edge, high + edge


def _points(line: ErrorCurve, chosen: int | None = None, before: str = "") -> list[dict[str, Any]]:
    rows = []
    for k in thin(line.size, *([] if chosen is None else [chosen])).tolist():
        mean, error = float(line.mean[k]), float(line.error[k])
        spread = f" ± {format_number(error, 2)}" if error > 0 and np.isfinite(error) else ""
        unit = f" {line.measure.unit}" if line.measure.unit else ""
        rows.append(
            {
                "method": format_name(line.method),
                "size": int(line.size[k]),
                "value": finite(mean),
                "low": finite(mean - error),
                "high": finite(mean + error),
                "hint": f"{before}{line.size[k]} columns: {format_number(mean)}{spread}{unit}",
            }
        )
    return rows


def _by_method(lines: Sequence[ErrorCurve], values: Sequence[str]) -> dict[str, Any]:
    """Return an encoding that assigns one of ``values`` to each method."""
    names = [format_name(line.method) for line in lines]
    scale = {"domain": names, "range": [values[i % len(values)] for i in range(len(names))]}
    return field("method", "nominal", scale=scale, legend=None)


def _hue(lines: Sequence[ErrorCurve], colours: Palette) -> dict[str, Any]:
    """Return an encoding of the methods' colours. A single method has the accent colour."""
    return {"value": colours.accent} if len(lines) == 1 else _by_method(lines, colours.groups)


def _lines(
    lines: Sequence[ErrorCurve], chosen: int | None, colours: Palette, y: Channel
) -> list[Layer]:
    """Return the bands, lines and points of all methods."""
    alone, hue = len(lines) == 1, _hue(lines, colours)
    chart = Layer([row for line in lines for row in _points(line, chosen)], "points")
    band = chart.mark("area", opacity=0.16 if alone else 0.1)
    band = band.encode(y=y("low"), y2={"field": "high"}, fill=hue)
    line = chart.mark("line", strokeWidth=1.8).encode(y=y("value"), stroke=hue)
    point = chart.mark("point", filled=True, size=26 if alone else 34, opacity=1)
    point = point.encode(y=y("value"), fill=hue).with_hints()
    if not alone:
        point = point.encode(shape=_by_method(lines, SHAPES))
        band, line = (layer.encode(detail=field("method", "nominal")) for layer in (band, line))
    return [band, line, point]


def _hollow(
    published: Sequence[ErrorCurve], lines: Sequence[ErrorCurve], colours: Palette, y: Channel
) -> list[Layer]:
    """Return dashed lines with hollow markers for published numbers, in the method's colour."""
    rows = [
        row
        for line in published
        for row in _points(line, before=f"{format_name(line.method)}, published, ")
    ]
    chart = Layer(rows, "printed").encode(y=y("value"), stroke=_hue(lines, colours))
    dashed = chart.mark("line", strokeDash=[3, 3], strokeWidth=1, opacity=0.8)
    style = {"shape": "diamond", "filled": False, "size": 44, "opacity": 1}
    diamond = chart.mark("point", fill=colours.ground, **style)
    return [dashed.encode(detail=field("method", "nominal")), diamond.with_hints()]


def _whole(
    line: ErrorCurve, domain: tuple[float, float], colours: Palette, y: Channel
) -> list[Layer]:
    """Return a dashed line at the error with all columns, with a label."""
    if not np.isfinite(line.whole):
        return []
    end: dict[str, Any] = {"size": int(line.size.max()), "value": line.whole}
    end["label"] = f"all {line.n_features}: {line.measure.format(line.whole)}"
    ends = Layer([{**end, "size": int(max(line.size.min(), 1))}, end], "all")
    rule = ends.mark("line", strokeDash=[4, 3], strokeWidth=1, color=colours.quiet)
    room = line.whole - domain[0] > LEAST_ROOM * (domain[1] - domain[0])
    below = room and not line.measure.greater_is_better  # the curve of errors lies above the line
    style = {"align": "right", "dy": 12 if below else -9, "fontSize": 11, "color": colours.soft}
    label = Layer([end], "all columns").text("label", colours, **style)
    return [rule.encode(y=y("value")), label.encode(y=y("value"))]


def _marked(
    line: ErrorCurve, chosen: int, domain: tuple[float, float], colours: Palette, y: Channel
) -> list[Layer]:
    """Return the marks for the chosen number of columns: a vertical rule, a dot and a label."""
    low, high = domain
    value = finite(line.at(chosen).value)
    row = {"size": chosen, "low": low, "high": high - 0.04 * (high - low), "value": value}
    chart = Layer([{**row, "label": f"chosen: {chosen}"}], "chosen")
    # the label is on the side with more room
    widest = line.size.max()
    right = chosen <= 0.7 * (widest if widest < LOGARITHMIC else widest**0.5)
    style: dict[str, Any] = {
        "align": "left" if right else "right",
        "dx": 6 if right else -6,
        "color": colours.mark,
    }
    style |= {"fontWeight": 600, "baseline": "top", "fontSize": 11.5}
    rule = chart.mark("rule", color=colours.mark, strokeWidth=1.5)
    layers = [
        rule.encode(y=y("low"), y2={"field": "high"}),
        chart.text("label", colours, **style).encode(y=y("high")),
    ]
    if value is not None:
        dot = {"filled": True, "size": 70, "opacity": 1, "color": colours.mark}
        layers.append(chart.mark("point", stroke=colours.ground, **dot).encode(y=y("value")))
    return layers


def _end_names(
    lines: Sequence[ErrorCurve], distance: float, colours: Palette, y: Channel
) -> list[Layer]:
    """Return the names of the methods at the ends of their lines, moved apart if they overlap."""
    values = np.array([line.mean[np.isfinite(line.mean)][-1] for line in lines])
    end = int(max(line.size.max() for line in lines))
    rows = [
        {
            "method": format_name(line.method),
            "name": format_name(line.method, 22),
            "value": value,
            "size": end,
        }
        for line, value in zip(lines, push_apart(values, distance).tolist(), strict=True)
    ]
    style = {"align": "left", "dx": 9, "fontWeight": 600, "fontSize": 11.5}
    names = Layer(rows, "names").text("name", colours, **style)
    del names.spec["mark"]["color"]  # it would override the method's colour
    return [names.encode(y=y("value"), fill=_hue(lines, colours))]


def push_apart(values: Array, distance: float) -> Array:
    """Move values as little as possible, so that any two are at least ``distance`` apart.

    >>> push_apart(np.array([1.0, 1.1, 5.0]), 1.0).tolist()
    [0.55, 1.55, 5.0]
    """
    order = np.argsort(values, kind="stable")
    blocks: list[list[float]] = []  # position of the first member, and number of members
    for value in values[order].tolist():
        blocks.append([value, 1])
        while len(blocks) > 1 and blocks[-2][0] + blocks[-2][1] * distance > blocks[-1][0]:
            (first, n), (second, m) = blocks[-2:]
            blocks[-2:] = [[(n * first + m * (second - n * distance)) / (n + m), n + m]]
    moved = np.empty(len(values))
    moved[order] = [first + k * distance for first, n in blocks for k in range(int(n))]
    return moved


def tuning(
    search: "PathSearch", *, theme: str = "light", width: int = 640, height: int = 190
) -> "altair.LayerChart":
    """Draw the exact validation curve over C, the chosen C, and the interval of equally good C.

    Parameters
    ----------
    search : SVCPathCV or SVRPathCV
        The fitted search for C.
    theme : {"light", "page"}, default="light"
        "page" uses the CSS variables of a report as colours.
    width, height : int
        Size of the plot, in pixels.

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
    >>> chart = tuning(search)
    >>> chart.save("tuning.html")  # doctest: +SKIP
    """
    return to_altair(draw_tuning(TuningResult(search), palette(theme), width, height))


def draw_tuning(tuned: TuningResult, colours: Palette, width: int, height: int) -> dict[str, Any]:
    """Draw the validation curve of a tuned SVM over C."""
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

    positions = np.repeat(ends, 2)[1:-1].tolist()  # each segment has two ends
    corners = [{"C": C, "value": v} for C, v in zip(positions, values.tolist(), strict=True)]
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
