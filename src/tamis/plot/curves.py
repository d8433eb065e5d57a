"""Lines: errors against the number of columns, the walk of a search, errors against C."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis._arrays import Array
from tamis.evaluation import Results
from tamis.exceptions import InvalidParameter
from tamis.plot.reading import ErrorCurve, Measure, Walk, chosen_units, error_curves, walk_of
from tamis.plot.style import (
    SHAPES,
    Palette,
    altair,
    axis,
    data,
    field,
    figure,
    finished,
    harmless,
    palette,
    short,
    text,
    upright,
)

#: From so many columns on their number is on a logarithmic scale: below, the first few are still
#: apart on a linear one.
LOGARITHMIC = 60
#: How powers of ten are written on an axis.
PLAIN_POWERS = (
    "datum.value >= 0.00001 && datum.value < 1000000 ? format(datum.value, '.6~f') : "
    "format(datum.value, '.1~e')"
)
#: Scores of a search over C.
TUNED = {
    "error": Measure("errors", "%", percent=True),
    "balanced_error": Measure("balanced errors", "%", percent=True),
    "weighted_error": Measure("weighted errors", "%", percent=True),
    "accuracy": Measure("right answers", "%", greater_is_better=True, percent=True),
    "mse": Measure("root mean squared error", "", rooted=True),
    "mae": Measure("mean absolute error", ""),
}
#: Makes the channel of y for a field.
Channel = Callable[[str], Any]
#: Pixels between two names at the ends of lines.
APART = 14


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
    return draw_curve(lines, _size_of(chosen), palette(theme), width, height)


def _size_of(chosen: Any) -> int | None:
    if chosen is None or isinstance(chosen, int | np.integer):
        return None if chosen is None else int(chosen)
    return int(chosen_units(chosen).units.mask(chosen_units(chosen).kept).sum())


def draw_curve(
    lines: Sequence[ErrorCurve], chosen: int | None, colours: Palette, width: int, height: int
) -> Any:
    """The chart of some curves."""
    measure = lines[0].measure
    domain = _span(lines, measure)
    title = f"{measure.words} on unseen rows" + (f", {measure.unit}" if measure.unit else "")
    scale = {"domain": domain, "nice": False}

    def y(name: str) -> Any:
        return field(name, scale=scale, title=title, axis=upright(colours))

    x = sizes_channel([k for line in lines for k in line.size.tolist()], "columns kept", colours)
    points = data([row for line in lines for row in _points(line, measure)], "points")
    layers = _lines(points, lines, colours, y)
    if len(lines) == 1:
        layers += _whole(lines[0], colours, y)
    else:
        layers += _ends(lines, domain, colours, height, y)
    if chosen is not None:
        layers += _marked(lines[0], chosen, domain, colours, y)
    layers = [layer.encode(x=x) for layer in layers]
    return finished(altair().layer(*layers), width, height)


def _span(lines: Sequence[ErrorCurve], measure: Measure) -> list[float]:
    """From 0 for errors, from a little below the least for scores, to a little above the most."""
    spread = [np.nan_to_num(line.error) for line in lines]
    high = max(float(np.nanmax(c.mean + e)) for c, e in zip(lines, spread, strict=True))
    low = min(float(np.nanmin(c.mean - e)) for c, e in zip(lines, spread, strict=True))
    if not measure.greater_is_better:
        return [min(0.0, low), high * 1.05 if high > 0 else 1.0]
    edge = (high - low) * 0.08 or 0.1
    return [low - edge, high + edge]


def _points(line: ErrorCurve, measure: Measure) -> list[dict[str, Any]]:
    return [
        {
            "method": harmless(line.method),
            "size": int(size),
            "value": _plain(mean),
            "low": _plain(mean - error),
            "high": _plain(mean + error),
            "hint": f"{size} columns: {_spoken(mean, error, measure.unit)}",
        }
        for size, mean, error in zip(line.size, line.mean, line.error, strict=True)
    ]


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _spoken(mean: float, error: float, unit: str) -> str:
    spread = f" ± {figure(error, 2)}" if np.isfinite(error) and error > 0 else ""
    return f"{figure(mean)}{spread}" + (f" {unit}" if unit else "")


def sizes_channel(sizes: Sequence[int], title: str, colours: Palette, **options: Any) -> Any:
    """Numbers of columns from left to right, on a logarithmic scale where there are many."""
    low, high = max(min(sizes), 1), max(max(sizes), 2)
    many = high >= LOGARITHMIC
    scale = {"type": "log"} if many else {}
    scale |= {"domain": [low, high], "nice": False, **options}
    marks = axis(colours, format="d", labelOverlap=True)
    marks.values = ticks(low, high, many)
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


def _hues(lines: Sequence[ErrorCurve], colours: Palette, channel: str) -> dict[str, Any]:
    """Colour by method; one method alone has the accent."""
    if len(lines) == 1:
        return {channel: {"value": colours.accent}}
    names = [harmless(line.method) for line in lines]
    hues = [colours.groups[i % len(colours.groups)] for i in range(len(names))]
    scale = {"domain": names, "range": hues}
    return {channel: field("method", "nominal", scale=scale, legend=None)}


def _lines(points: Any, lines: Sequence[ErrorCurve], colours: Palette, y: Channel) -> list[Any]:
    """Bands, lines and points of all methods."""
    chart = altair().Chart(points)
    opacity = 0.16 if len(lines) == 1 else 0.1
    band = chart.mark_area(opacity=opacity).encode(y=y("low"), y2={"field": "high"})
    line = chart.mark_line(strokeWidth=1.8).encode(y=y("value"))
    point = chart.mark_point(filled=True, size=26 if len(lines) == 1 else 34, opacity=1)
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


def _whole(line: ErrorCurve, colours: Palette, y: Channel) -> list[Any]:
    """A dashed line at the error with all columns."""
    if not np.isfinite(line.whole):
        return []
    end = {"size": int(line.size.max()), "value": line.whole}
    end["label"] = f"all {line.n_features}: {figure(line.whole)}"
    end["label"] += f" {line.measure.unit}" if line.measure.unit else ""
    ends = [{**end, "size": int(max(line.size.min(), 1))}, end]
    chart = altair().Chart(data(ends, "all"))
    rule = chart.mark_line(strokeDash=[4, 3], strokeWidth=1, color=colours.quiet)
    label = altair().Chart(data([end], "all columns"))
    styled = text(colours, align="right", dy=-9, fontSize=11, color=colours.soft)
    label = label.mark_text(**styled).encode(text=field("label", "nominal"))
    return [rule.encode(y=y("value")), label.encode(y=y("value"))]


def _marked(
    line: ErrorCurve, chosen: int, domain: list[float], colours: Palette, y: Channel
) -> list[Any]:
    """The number that was chosen: a rule, a dot, and its name."""
    low, high = domain
    row = {"size": chosen, "low": low, "high": high - 0.04 * (high - low)}
    row |= {"value": _plain(line.at(chosen)[0]), "label": f"chosen: {chosen}"}
    chart = altair().Chart(data([row], "chosen"))
    rule = chart.mark_rule(color=colours.mark, strokeWidth=1.5)
    # the name stands on the side that has room
    right = (
        chosen
        <= (line.size.max() if line.size.max() < LOGARITHMIC else line.size.max() ** 0.5) * 0.7
    )
    styled = text(colours, align="left" if right else "right", dx=6 if right else -6)
    styled |= {"color": colours.mark, "fontWeight": 600, "baseline": "top", "fontSize": 11.5}
    dot = chart.mark_point(
        filled=True, size=70, opacity=1, color=colours.mark, stroke=colours.ground
    )
    layers = [
        rule.encode(y=y("low"), y2={"field": "high"}),
        chart.mark_text(**styled).encode(y=y("high"), text=field("label", "nominal")),
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
    names = altair().Chart(data(rows, "names")).mark_text(**styled)
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


def path(selection: Any, *, theme: str = "light", width: int = 640, height: int = 220) -> Any:
    """What each step of a search was worth, against the number of columns.

    Parameters
    ----------
    selection : fitted selection
        A search with steps: an elimination shows what the leaving columns were worth, a search
        that adds what the entering ones were.
    theme : {"light", "page"}, default="light"
        "page" has the variables of the style sheet of a report for colours.
    width, height : int
        Of the plot itself, in pixels.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> import tamis
    >>> from tamis.datasets import load
    >>> from tamis.plot import path
    >>> wine = load("wine")
    >>> chart = path(tamis.select(wine.X, wine.y, "ridge-rfe", n_features_to_select=10))
    >>> [row["size"] for row in chart.to_dict()["data"]["values"]]
    [13, 12, 11]
    """
    walk = walk_of(selection)
    if walk is None:
        raise InvalidParameter(
            f"path needs a search with steps that score columns, not {type(selection).__name__}, "
            "which has none. Draw ranking(selection)."
        )
    return draw_path(walk, chosen_units(selection).names, palette(theme), width, height)


def draw_path(walk: Walk, names: Sequence[str], colours: Palette, width: int, height: int) -> Any:
    """The chart of a walk."""
    rows = [
        {"size": int(size), "worth": float(worth), "hint": _moved(moved, names, walk, worth)}
        for size, worth, moved in zip(walk.size, walk.worth, walk.moved, strict=True)
    ]
    log = bool((walk.worth > 0).all() and walk.worth.max() > 50 * walk.worth.min())
    what = "leaving" if walk.leaving else "entering"
    title = f"worth of the {what} column" + (" (log scale)" if log else "")
    scale = {"type": "log", "nice": False} if log else {"zero": False}
    marks = upright(colours)
    if log:
        marks.values = ticks(walk.worth.min(), walk.worth.max(), True)
        marks.labelExpr = PLAIN_POWERS
    elif np.abs(walk.worth).max() < 1e-3:
        marks.format = ".1~e"
    x = "columns in the machine when one leaves" if walk.leaving else "columns held"
    chart = (
        altair()
        .Chart(data(rows, "steps"))
        .encode(
            x=sizes_channel(walk.size.tolist(), x, colours, reverse=walk.leaving),
            y=field("worth", scale=scale, title=title, axis=marks),
        )
    )
    hint = field("hint", "nominal")
    line = chart.mark_line(color=colours.accent, strokeWidth=1.8)
    point = chart.mark_point(color=colours.accent, filled=True, size=26, opacity=1)
    point = point.encode(tooltip=hint, description=hint)
    return finished(altair().layer(line, point), width, height)


def _moved(moved: Sequence[int], names: Sequence[str], walk: Walk, worth: float) -> str:
    some = ", ".join(short(names[unit]) for unit in moved[:3])
    some += f" and {len(moved) - 3} more" if len(moved) > 3 else ""
    return f"{some} {'left' if walk.leaving else 'entered'}: {figure(worth)}"


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
    >>> heart = load("wine")
    >>> search = SVCPathCV("linear", cv=3).fit(scale(heart.X), heart.y)
    >>> type(tuning(search)).__name__
    'LayerChart'
    """
    return draw_tuning(tuned_curve(search), palette(theme), width, height)


@dataclass(frozen=True, repr=False)
class TunedCurve:
    """A measure at every C, and the C that was chosen.

    Attributes
    ----------
    C, value : array of float
        Corners of the curve, from left to right.
    measure : Measure
    best_C, low, high, at_best : float
        The chosen C, its interval, and the value there.
    n_segments : int
    certified : bool
    """

    C: Array
    value: Array
    measure: Measure
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
    measure = TUNED.get(scoring if isinstance(scoring, str) else scoring[0])
    measure = measure or Measure(str(scoring), "", exact.greater_is_better)
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
        float(measure.shown(np.array(float(search.best_score_)))),
        len(exact.coefficients),
        bool(search.certificate_.closed),
    )


def draw_tuning(tuned: TunedCurve, colours: Palette, width: int, height: int) -> Any:
    """The chart of a curve over C."""
    domain = [float(tuned.C[0]), float(tuned.C[-1])]
    marks = axis(colours, labelExpr=PLAIN_POWERS)
    marks.values = [t for t in ticks(*domain, True) if np.log10(t) == round(np.log10(t))]
    x = {"scale": {"type": "log", "domain": domain, "nice": False}, "title": "C (log scale)"}
    high = float(np.nanmax(tuned.value)) * 1.05 or 1.0
    low = 0.0 if not tuned.measure.greater_is_better else float(np.nanmin(tuned.value)) * 0.98
    unit = f", {tuned.measure.unit}" if tuned.measure.unit else ""
    title = f"cross-validated {tuned.measure.words}{unit}"
    scale = {"domain": [min(low, float(np.nanmin(tuned.value))), high], "nice": False}

    def at(name: str) -> Any:
        return field(name, axis=marks, **x)

    def y(name: str) -> Any:
        return field(name, scale=scale, title=title, axis=upright(colours))

    corners = [
        {"C": float(C), "value": float(v)} for C, v in zip(tuned.C, tuned.value, strict=True)
    ]
    chosen = {"C": tuned.best_C, "value": tuned.at_best, "low": max(tuned.low, domain[0])}
    chosen |= {"high": min(tuned.high, domain[1]), "top": high, "bottom": scale["domain"][0]}
    chosen["label"] = f"chosen: C = {figure(tuned.best_C)}"
    chart, line = altair().Chart(data([chosen], "chosen")), altair().Chart(data(corners, "curve"))
    styled = text(colours, color=colours.mark, fontWeight=600, baseline="top", fontSize=11.5, dy=3)
    layers = [
        chart.mark_rect(color=colours.mark, opacity=0.16).encode(
            x=at("low"), x2={"field": "high"}, y=y("bottom"), y2={"field": "top"}
        ),
        line.mark_line(color=colours.accent, strokeWidth=1.6).encode(x=at("C"), y=y("value")),
        chart.mark_point(filled=True, size=70, opacity=1, color=colours.mark).encode(
            x=at("C"), y=y("value"), stroke={"value": colours.ground}
        ),
        chart.mark_text(**styled).encode(x=at("C"), y=y("top"), text=field("label", "nominal")),
    ]
    return finished(altair().layer(*layers), width, height)
