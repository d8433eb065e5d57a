"""Charts of methods: ranks with critical differences, agreement of rankings, and intervals."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import kendalltau
from sklearn.base import BaseEstimator

from tamis._arrays import Array
from tamis._format import format_name, format_number
from tamis.evaluation import Ranks, Results
from tamis.exceptions import InvalidParameter
from tamis.report.charts.columns import draw_squares
from tamis.report.charts.scales import PLAIN_POWERS, ROW, finite, row_channel, row_names, ticks
from tamis.report.charts.style import (
    LETTERS,
    Layer,
    Palette,
    axis,
    field,
    layered,
    palette,
    to_altair,
)
from tamis.report.units import chosen_units

if TYPE_CHECKING:
    import altair

#: Distances in pixels: top to ruler, top to axis, between two bars, and between two names.
RULER, AXIS, BAR, LINE = 16, 56, 9, 18


def comparison(ranks: Ranks, *, theme: str = "light", width: int = 420) -> "altair.LayerChart":
    """Draw the average ranks of methods. Bars join methods that do not differ significantly.

    Parameters
    ----------
    ranks : Ranks
        Result of :func:`tamis.evaluation.rank` or :func:`tamis.evaluation.friedman`.
    theme : {"light", "page"}, default="light"
        "page" uses the CSS variables of a report as colours.
    width : int
        Width of the plot, in pixels.

    Returns
    -------
    altair.LayerChart

    References
    ----------
    Demsar (2006), Statistical comparisons of classifiers over multiple data sets.

    Examples
    --------
    >>> from tamis.evaluation import friedman
    >>> from tamis.plot import comparison
    >>> ranks = friedman([[0.1, 0.2, 0.3], [0.1, 0.3, 0.2], [0.2, 0.3, 0.4]], ["a", "b", "c"])
    >>> chart = comparison(ranks)
    >>> chart.save("comparison.html")  # doctest: +SKIP
    """
    if not isinstance(ranks, Ranks):
        raise InvalidParameter(
            "comparison needs the Ranks of tamis.evaluation.rank(results) or friedman(table), not "
            f"{type(ranks).__name__}."
        )
    return to_altair(draw_comparison(ranks, palette(theme), width))


def draw_comparison(ranks: Ranks, colours: Palette, width: int) -> dict[str, Any]:
    """Draw a critical-difference diagram."""
    n, half = len(ranks.ranks), (len(ranks.ranks) + 1) // 2
    first = AXIS + 14 + BAR * len(ranks.groups) + LINE / 2
    height = first + LINE * half
    dots = [
        {
            "rank": (rank := float(ranks.ranks[k])),
            "name": f"{format_name(ranks.methods[k], LETTERS)} {rank:.2f}",
            "axis": AXIS,
            "y": first + LINE * (place if place < half else n - 1 - place),
            "end": 1 if place < half else n,
            "left": place < half,
            "hint": f"{format_name(ranks.methods[k])}: average rank {rank:.2f}",
        }
        for place, k in enumerate(np.argsort(ranks.ranks, kind="stable").tolist())
    ]
    across: dict[str, Any] = {"scale": {"domain": [1, n], "nice": False}, "axis": None}
    down: dict[str, Any] = {"scale": {"domain": [0, height], "range": [0, height]}, "axis": None}

    def at(x: str, y: str = "y", **ends: str) -> dict[str, Any]:
        """Return channels that position a mark by fields. ``x2`` and ``y2`` end a line."""
        channels = {"x": field(x, **across), "y": field(y, **down)}
        return channels | {channel: {"field": name} for channel, name in ends.items()}

    chart = Layer(dots, "methods")
    thin = chart.mark("rule", color=colours.quiet, strokeWidth=1)
    dot = chart.mark("point", filled=True, size=50, opacity=1, color=colours.accent)
    layers = [
        *_ruler(ranks, n, colours, at),
        thin.encode(**at("rank", "axis", y2="y")),
        thin.encode(**at("rank", x2="end")),
        dot.encode(**at("rank", "axis")).with_hints(),
    ]
    for align in ("left", "right"):
        side = Layer([dot for dot in dots if dot["left"] == (align == "left")], f"names {align}")
        names = side.text("name", colours, align=align, dy=-7, fontSize=11.5)
        layers.append(names.encode(**at("end")))
    if ranks.groups:  # one thick bar for each set of methods that do not differ significantly
        of = dict(zip(ranks.methods, ranks.ranks.tolist(), strict=True))
        bars = [
            {"low": min(of[name] for name in group), "high": max(of[name] for name in group)}
            | {"y": AXIS + 10 + BAR * place}
            for place, group in enumerate(ranks.groups)
        ]
        bar = Layer(bars, "groups").mark("rule", color=colours.ink, strokeWidth=4)
        layers.append(bar.encode(**at("low", x2="high")))
    return layered(layers, width, height)


def _ruler(ranks: Ranks, n: int, colours: Palette, at: Any) -> list[Layer]:
    """Return the axis of ranks, with the critical difference above it."""
    gap = ranks.critical_difference
    label = f"critical difference {format_number(gap)} (Nemenyi, {ranks.n_rows} rows)"
    ruler = Layer([{"low": 1, "high": min(1 + gap, n), "y": RULER, "label": label}], "ruler")
    line = Layer([{"low": 1, "high": n, "y": AXIS}], "axis").encode(**at("low", x2="high"))
    numbers = Layer([{"rank": k, "y": AXIS, "label": str(k)} for k in range(1, n + 1)], "ticks")
    title = Layer([{"rank": (n + 1) / 2, "y": AXIS, "label": "average rank (1 is best)"}], "title")
    soft = {"fontSize": 11, "color": colours.soft}
    loud = {"align": "left", "dy": -8, "fontSize": 11, "color": colours.mark}
    rule = ruler.mark("rule", color=colours.mark, strokeWidth=2)
    return [
        rule.encode(**at("low", x2="high")),
        ruler.text("label", colours, **loud).encode(**at("low")),
        line.mark("rule", color=colours.quiet),
        numbers.text("label", colours, dy=-11, **soft).encode(**at("rank")),
        title.text("label", colours, dy=-26, **soft).encode(**at("rank")),
    ]


def rank_agreement(
    selections: Mapping[str, BaseEstimator] | Results, *, theme: str = "light", square: int = 34
) -> "altair.LayerChart":
    """Draw the agreement between rankings: Kendall's tau for every pair of methods, times 100.

    Parameters
    ----------
    selections : dict of str to fitted selection, or Results
        Selections from the same columns. For :class:`tamis.evaluation.Results`, the mean over the
        resamples is shown.
    theme : {"light", "page"}, default="light"
        "page" uses the CSS variables of a report as colours.
    square : int
        Size of a square, in pixels.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> import tamis
    >>> from tamis.datasets import load
    >>> from tamis.plot import rank_agreement
    >>> wine = load("wine")
    >>> fitted = {name: tamis.select(wine.X, wine.y, name) for name in ("fisher-score", "mrmr")}
    >>> [row["label"] for row in rank_agreement(fitted).to_dict()["layer"][0]["data"]["values"]]
    ['59']
    """
    if isinstance(selections, Results):
        names, orders = selections.methods, [selections.orders(m) for m in selections.methods]
    elif isinstance(selections, Mapping):
        names = [str(name) for name in selections]
        orders = [[tuple(chosen_units(each).order.tolist())] for each in selections.values()]
    else:
        raise InvalidParameter(
            "rank_agreement needs a dict of fitted selections, or the Results of evaluate, not "
            f"{type(selections).__name__}."
        )
    sizes = {len(order) for several in orders for order in several}
    if len(names) < 2 or len(sizes) != 1:
        raise InvalidParameter(
            "rank_agreement needs at least two methods that order the same columns; got "
            f"{len(names)} of {' and '.join(map(str, sorted(sizes))) or 'no'} columns."
        )
    return to_altair(draw_squares(_agreements(orders), names, palette(theme), square, least=-1.0))


def _agreements(orders: list[list[tuple[int, ...]]]) -> Array:
    """Return Kendall's tau for every pair of methods, averaged over the resamples."""
    ranks = [[np.argsort(order) for order in several] for several in orders]
    tau = np.eye(len(ranks))
    for i in range(len(ranks)):
        for j in range(i):
            pairs = zip(ranks[i], ranks[j], strict=False)
            tau[i, j] = tau[j, i] = np.mean([kendalltau(a, b).statistic for a, b in pairs])
    return tau


class SpannedNumber(NamedTuple):
    """A number with its interval, and a second number to compare it with.

    ``low`` and ``high`` are NaN if the interval is unknown. The second number, ``other``, is drawn
    as a hollow diamond. ``label`` is text at the right end of the row. A ``quiet`` number is grey.
    """

    name: str
    value: float
    low: float = float("nan")
    high: float = float("nan")
    other: float | None = None
    hint: str = ""
    quiet: bool = False
    label: str = ""


def draw_intervals(
    rows: Sequence[SpannedNumber],
    title: str,
    colours: Palette,
    width: int,
    *,
    domain: tuple[float, float] | None = None,
    powers: bool = False,
    around: float | None = None,
) -> dict[str, Any]:
    """Draw dots on their intervals, with names at the left.

    ``powers`` sets a logarithmic scale. A dashed line marks the value ``around``, if it is given.
    """
    data = [
        {
            "place": place,
            "name": format_name(row.name, LETTERS),
            "quiet": row.quiet,
            "label": row.label,
            "hint": f"{format_name(row.name)}: {row.hint}",
            **{key: finite(getattr(row, key)) for key in ("value", "low", "high", "other")},
        }
        for place, row in enumerate(rows)
    ]
    domain = domain if around is None else (around, around)
    x = _scale(rows, title, colours, domain, powers)
    chart = Layer(data, "intervals").encode(y=row_channel(len(data)))
    hue = {"condition": {"test": "datum.quiet", "value": colours.quiet}, "value": colours.accent}
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
    if around is not None:
        line = chart.mark("rule", color=colours.soft, strokeDash=[3, 3])
        layers.insert(0, line.encode(x={"datum": around}))
    if any(row.label for row in rows):
        style = {"align": "left", "dx": 6, "fontSize": 11, "color": colours.soft}
        layers.append(chart.text("label", colours, **style).encode(x={"value": width}))
    return layered([*layers, row_names(chart, colours)], width, ROW * max(len(data), 1))


def _scale(
    rows: Sequence[SpannedNumber],
    title: str,
    colours: Palette,
    domain: tuple[float, float] | None,
    powers: bool,
) -> dict[str, Any]:
    """Return the x scale, which covers all numbers and a small margin."""
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
