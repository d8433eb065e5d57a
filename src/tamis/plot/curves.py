"""Errors against the number of columns."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tamis._arrays import Array
from tamis.evaluation import Results
from tamis.plot.reading import ErrorCurve, MetricFormat, chosen_units, error_curves
from tamis.plot.scales import LOGARITHMIC, sizes_channel, thinned
from tamis.plot.style import (
    SHAPES,
    Layer,
    Palette,
    charted,
    field,
    figure,
    harmless,
    layered,
    palette,
    short,
    text,
    upright,
)

#: Makes the channel of y for a field.
Channel = Callable[[str], Any]
#: Pixels between two names at the ends of lines.
APART = 14
#: Share of the height below a line that a name needs there.
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
) -> Any:
    """Errors on unseen rows against the number of columns.

    A line with points and a band of one standard error, corrected for the overlap of the
    resamples; dashed the error with all columns. Several methods have shapes of their own and are
    named at their ends.

    Parameters
    ----------
    results : Results
        Of :func:`tamis.evaluation.evaluate` with ``sizes``.
    chosen : int or fitted selection, optional
        The number of columns to mark.
    metric, estimator, data : str, optional
        Which of several.
    theme : {"light", "page"}, default="light"
        "page" has the variables of the style sheet of a report for colours.
    width, height : int
        Of the plot itself, in pixels.

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
    return charted(draw_curve(lines, _size_of(chosen), palette(theme), width, height))


def _size_of(chosen: Any) -> int | None:
    if chosen is None or isinstance(chosen, int | np.integer):
        return None if chosen is None else int(chosen)
    return int(chosen_units(chosen).units.mask(chosen_units(chosen).kept).sum())


def draw_curve(
    lines: Sequence[ErrorCurve],
    chosen: int | None,
    colours: Palette,
    width: int,
    height: int,
    *,
    printed: Sequence[ErrorCurve] = (),
    title: str | None = None,
    across: str = "columns kept",
) -> Any:
    """The chart of some curves; those that were ``printed`` of the same methods are hollow."""
    measure = lines[0].measure
    domain = _span([*lines, *printed], measure)
    if title is None:
        title = f"{measure.words} on unseen rows" + (f", {measure.unit}" if measure.unit else "")
    scale = {"domain": domain, "nice": False}

    def y(name: str) -> Any:
        return field(name, scale=scale, title=title, axis=upright(colours))

    x = sizes_channel([k for line in lines for k in line.size.tolist()], across, colours)
    points = Layer([row for line in lines for row in _points(line, measure, chosen)], "points")
    layers = _lines(points, lines, colours, y)
    if printed:
        layers += _hollow(printed, lines, colours, y)
    if len(lines) == 1:
        layers += _whole(lines[0], domain, colours, y)
    else:
        layers += _ends(lines, domain, colours, height, y)
    if chosen is not None:
        layers += _marked(lines[0], chosen, domain, colours, y)
    layers = [layer.encode(x=x) for layer in layers]
    return layered(layers, width, height)


def _span(lines: Sequence[ErrorCurve], measure: MetricFormat) -> list[float]:
    """From 0 for errors, from a little below the least for scores, to a little above the most."""
    spread = [np.nan_to_num(line.error) for line in lines]
    high = max(float(np.nanmax(c.mean + e)) for c, e in zip(lines, spread, strict=True))
    low = min(float(np.nanmin(c.mean - e)) for c, e in zip(lines, spread, strict=True))
    if not measure.greater_is_better:
        return [min(0.0, low), high * 1.05 if high > 0 else 1.0]
    edge = (high - low) * 0.08 or 0.1
    return [low - edge, high + edge]


def _points(line: ErrorCurve, measure: MetricFormat, chosen: int | None) -> list[dict[str, Any]]:
    return [
        {
            "method": harmless(line.method),
            "size": int(size),
            "value": _plain(mean),
            "low": _plain(mean - error),
            "high": _plain(mean + error),
            "hint": f"{size} columns: {_spoken(mean, error, measure.unit)}",
        }
        for size, mean, error in _shown(line, chosen)
    ]


def _shown(line: ErrorCurve, chosen: int | None) -> Iterator[tuple[int, float, float]]:
    for k in thinned(line.size.tolist(), *([] if chosen is None else [chosen])).tolist():
        yield int(line.size[k]), float(line.mean[k]), float(line.error[k])


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _spoken(mean: float, error: float, unit: str) -> str:
    spread = f" ± {figure(error, 2)}" if np.isfinite(error) and error > 0 else ""
    return f"{figure(mean)}{spread}" + (f" {unit}" if unit else "")


def _hues(lines: Sequence[ErrorCurve], colours: Palette, channel: str) -> dict[str, Any]:
    """Colour by method; one method alone has the accent."""
    if len(lines) == 1:
        return {channel: {"value": colours.accent}}
    names = [harmless(line.method) for line in lines]
    hues = [colours.groups[i % len(colours.groups)] for i in range(len(names))]
    scale = {"domain": names, "range": hues}
    return {channel: field("method", "nominal", scale=scale, legend=None)}


def _lines(chart: Layer, lines: Sequence[ErrorCurve], colours: Palette, y: Channel) -> list[Layer]:
    """Bands, lines and points of all methods."""
    opacity = 0.16 if len(lines) == 1 else 0.1
    band = chart.mark("area", opacity=opacity).encode(y=y("low"), y2={"field": "high"})
    line = chart.mark("line", strokeWidth=1.8).encode(y=y("value"))
    point = chart.mark("point", filled=True, size=26 if len(lines) == 1 else 34, opacity=1)
    point = point.encode(y=y("value"), description=field("hint", "nominal"))
    if len(lines) > 1:
        names = [harmless(each.method) for each in lines]
        shapes = {"domain": names, "range": [SHAPES[i % len(SHAPES)] for i in range(len(names))]}
        point = point.encode(shape=field("method", "nominal", scale=shapes, legend=None))
    band, line, point = (
        layer.encode(**_hues(lines, colours, channel))
        for layer, channel in ((band, "fill"), (line, "stroke"), (point, "fill"))
    )
    if len(lines) > 1:
        band, line = (layer.encode(detail=field("method", "nominal")) for layer in (band, line))
    return [band, line, point.encode(tooltip=field("hint", "nominal"))]


def _hollow(
    printed: Sequence[ErrorCurve], lines: Sequence[ErrorCurve], colours: Palette, y: Channel
) -> list[Layer]:
    """What others found, dashed and hollow in the colours of the same methods."""
    rows = [row for line in printed for row in _points(line, line.measure, None)]
    for row in rows:
        row["hint"] = f"{row['method']}, published, {row['hint']}"
    hue = {**_hues(lines, colours, "stroke"), "y": y("value")}
    chart = Layer(rows, "printed")
    dashed = chart.mark("line", strokeDash=[3, 3], strokeWidth=1, opacity=0.8)
    diamond = chart.mark(
        "point", shape="diamond", filled=False, size=44, opacity=1, fill=colours.ground
    )
    hint = field("hint", "nominal")
    return [
        dashed.encode(**hue, detail=field("method", "nominal")),
        diamond.encode(**hue, tooltip=hint, description=hint),
    ]


def _whole(line: ErrorCurve, domain: list[float], colours: Palette, y: Channel) -> list[Any]:
    """A dashed line at the error with all columns; its name stands where the curve is not."""
    if not np.isfinite(line.whole):
        return []
    end: dict[str, Any] = {"size": int(line.size.max()), "value": line.whole}
    end["label"] = f"all {line.n_features}: {line.measure.written(line.whole)}"
    ends = [{**end, "size": int(max(line.size.min(), 1))}, end]
    chart = Layer(ends, "all")
    rule = chart.mark("line", strokeDash=[4, 3], strokeWidth=1, color=colours.quiet)
    label = Layer([end], "all columns")
    room = line.whole - domain[0] > LEAST_ROOM * (domain[1] - domain[0])
    below = room and not line.measure.greater_is_better  # errors come down to it from above
    styled = text(colours, align="right", dy=12 if below else -9, fontSize=11, color=colours.soft)
    label = label.mark("text", **styled).encode(text=field("label", "nominal"))
    return [rule.encode(y=y("value")), label.encode(y=y("value"))]


def _marked(
    line: ErrorCurve, chosen: int, domain: list[float], colours: Palette, y: Channel
) -> list[Any]:
    """The number that was chosen: a rule, a dot, and its name."""
    low, high = domain
    row: dict[str, Any] = {"size": chosen, "low": low, "high": high - 0.04 * (high - low)}
    row |= {"value": _plain(line.at(chosen)[0]), "label": f"chosen: {chosen}"}
    chart = Layer([row], "chosen")
    rule = chart.mark("rule", color=colours.mark, strokeWidth=1.5)
    # the name stands on the side that has room
    right = (
        chosen
        <= (line.size.max() if line.size.max() < LOGARITHMIC else line.size.max() ** 0.5) * 0.7
    )
    styled = text(colours, align="left" if right else "right", dx=6 if right else -6)
    styled |= {"color": colours.mark, "fontWeight": 600, "baseline": "top", "fontSize": 11.5}
    dot = chart.mark(
        "point", filled=True, size=70, opacity=1, color=colours.mark, stroke=colours.ground
    )
    layers = [
        rule.encode(y=y("low"), y2={"field": "high"}),
        chart.mark("text", **styled).encode(y=y("high"), text=field("label", "nominal")),
    ]
    return [*layers, dot.encode(y=y("value"))] if row["value"] is not None else layers


def _ends(
    lines: Sequence[ErrorCurve], domain: list[float], colours: Palette, height: int, y: Channel
) -> list[Any]:
    """Names of the methods where their lines end, pushed apart where they would overlap."""
    values = np.array([line.mean[np.isfinite(line.mean)][-1] for line in lines])
    end = int(max(line.size.max() for line in lines))
    gap = APART * (domain[1] - domain[0]) / height
    rows = [
        {"method": harmless(line.method), "name": short(line.method, 22), "value": v, "size": end}
        for line, v in zip(lines, apart(values, gap).tolist(), strict=True)
    ]
    styled = text(colours, align="left", dx=9, fontWeight=600, fontSize=11.5)
    styled.pop("color")
    names = Layer(rows, "names").mark("text", **styled)
    names = names.encode(y=y("value"), text=field("name", "nominal"))
    return [names.encode(**_hues(lines, colours, "fill"))]


def apart(values: Array, gap: float) -> Array:
    """The values, moved as little as needed so that no two are closer than a gap.

    >>> apart(np.array([1.0, 1.1, 5.0]), 1.0).tolist()
    [0.55, 1.55, 5.0]
    """
    order = np.argsort(values, kind="stable")
    blocks: list[list[float]] = []  # sum of what each member wants of the first, and how many
    for value in values[order].tolist():
        blocks.append([value, 1])
        while len(blocks) > 1 and _first(blocks[-2]) + blocks[-2][1] * gap > _first(blocks[-1]):
            total, count = blocks.pop()
            blocks[-1][0] += total - count * blocks[-1][1] * gap
            blocks[-1][1] += count
    placed = [_first(block) + k * gap for block in blocks for k in range(int(block[1]))]
    moved = np.empty(len(values))
    moved[order] = placed
    return moved


def _first(block: list[float]) -> float:
    return block[0] / block[1]
