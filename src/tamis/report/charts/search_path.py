"""Charts of the search path: scores of its steps, and values of the criterion.

A unit is a single column, or a group of columns that are selected together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from tamis._arrays import Array, Subset
from tamis._format import format_name, format_number
from tamis.exceptions import InvalidParameter
from tamis.report.charts.scales import PLAIN_POWERS, size_channel, thin, ticks
from tamis.report.charts.style import (
    LETTERS,
    Layer,
    Palette,
    layered,
    palette,
    to_altair,
    y_channel,
)
from tamis.report.units import chosen_units, scores_alone, scores_without_ranks

if TYPE_CHECKING:
    import altair


def path(
    selection: BaseEstimator, *, theme: str = "light", width: int = 640, height: int = 220
) -> "altair.LayerChart":
    """Draw the score of the column added or removed at each step, against the number of columns.

    Parameters
    ----------
    selection : fitted selection
        A selection whose search has steps.
    theme : {"light", "page"}, default="light"
        "page" uses the CSS variables of a report as colours.
    width, height : int
        Size of the plot, in pixels.

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
    walk = search_path(selection)
    if walk is None:
        raise InvalidParameter(
            f"path needs a search with steps that score columns, but {type(selection).__name__} "
            "has none. Write ranking(selection)."
        )
    names = chosen_units(selection).names
    return to_altair(draw_path(walk, names, palette(theme), width, height))


@dataclass(frozen=True, repr=False)
class SearchPath:
    """The steps of a search.

    Attributes
    ----------
    leaving : bool
        True if the search starts from all columns and removes them.
    size : array of int
        Number of units before each removal, or after each addition.
    score : array of float
        Mean score of the units moved in each step.
    moved : tuple of tuple of int
        Units that each step added or removed.
    """

    leaving: bool
    size: Subset
    score: Array
    moved: tuple[tuple[int, ...], ...]


def search_path(selection: Any) -> SearchPath | None:
    """Return the steps of a selection, or None if there are fewer than two to show.

    A ranking scores each column alone, so its steps are not shown. If a search both adds and
    removes columns, only steps in its main direction are shown, and for each size only the first.
    """
    trace = getattr(selection, "trace_", None)
    if trace is None or len(trace) < 2 or scores_alone(selection):
        return None
    leaving = not trace.growing
    moves = trace.moves()
    right = np.flatnonzero((moves.entered != leaving) & np.isfinite(moves.score))
    steps = np.unique(moves.step[right])
    sizes = np.r_[trace.start.sum(), trace.sizes]
    size = sizes[steps] if leaving else sizes[steps + 1]
    shown = np.sort(np.unique(size, return_index=True)[1])
    if len(shown) < 2:
        return None
    groups = [right[moves.step[right] == step] for step in steps[shown]]
    return SearchPath(
        leaving,
        size[shown],
        np.array([moves.score[group].mean() for group in groups]),
        tuple(tuple(moves.unit[group].tolist()) for group in groups),
    )


def draw_path(
    walk: SearchPath, names: Sequence[str], colours: Palette, width: int, height: int
) -> dict[str, Any]:
    """Draw the score of each step of a search."""

    def hint(k: int) -> str:
        moved = walk.moved[k]
        some = ", ".join(format_name(names[unit], LETTERS) for unit in moved[:3])
        some += f" and {len(moved) - 3} more" if len(moved) > 3 else ""
        verb = "removed" if walk.leaving else "added"
        return f"{some} {verb}: {format_number(walk.score[k])}"

    rows = [
        {"size": int(walk.size[k]), "worth": float(walk.score[k]), "hint": hint(k)}
        for k in thin(walk.size).tolist()
    ]
    low, high = walk.score.min(), walk.score.max()
    log = bool(low > 0 and high > 50 * low)
    what = "removed" if walk.leaving else "added"
    title = f"score of the {what} column" + (" (log scale)" if log else "")
    scale = {"type": "log", "nice": False} if log else {"zero": False}
    marks: dict[str, Any] = {}
    if log:
        marks = {"values": ticks(low, high, True), "labelExpr": PLAIN_POWERS}
    elif np.abs(walk.score).max() < 1e-3:
        marks = {"format": ".1~e"}
    x = "columns before the step" if walk.leaving else "columns after the step"
    chart = Layer(rows, "steps").encode(
        x=size_channel(walk.size.tolist(), x, colours, reverse=walk.leaving),
        y=y_channel("worth", title, scale, colours, **marks),
    )
    return layered(_line_and_points(chart, colours), width, height)


def _line_and_points(chart: Layer, colours: Palette) -> list[Layer]:
    points = chart.mark("point", color=colours.accent, filled=True, size=26, opacity=1)
    return [chart.mark("line", color=colours.accent, strokeWidth=1.8), points.with_hints()]


class CriterionCurve(NamedTuple):
    """Values of the criterion at each number of units, on the training rows.

    If ``alone``, units are scored individually, and the values are their scores, best first.
    """

    size: Subset
    value: Array
    alone: bool


def criterion_curve(selection: Any) -> CriterionCurve | None:
    """Return the best value at each number of units, or None if the criterion has no values."""
    trace = getattr(selection, "trace_", None)
    if trace is None or not len(trace):
        return None
    if scores_alone(selection):
        value = scores_without_ranks(selection.scores_, selection.order_)[selection.order_]
        known = np.flatnonzero(np.isfinite(value))
        curve = CriterionCurve(known + 1, value[known], True)
    else:
        finite = np.isfinite(trace.values) & (trace.sizes > 0)
        value = np.full(trace.n_units + 1, -np.inf)
        np.maximum.at(value, trace.sizes[finite], trace.values[finite])
        known = np.flatnonzero(np.isfinite(value))
        curve = CriterionCurve(known, value[known], False)
    return curve if len(known) > 1 else None


def draw_values(
    curve: CriterionCurve, chosen: int, colours: Palette, width: int, height: int
) -> dict[str, Any]:
    """Draw the values of the criterion against the number of columns."""
    title = "score of the next column" if curve.alone else "value of the criterion"
    rows = [
        {"size": int(k), "value": float(v), "hint": f"{k} columns: {format_number(v)}"}
        for k, v in zip(*(a[thin(curve.size, chosen)] for a in curve[:2]), strict=True)
    ]
    x = size_channel(curve.size.tolist(), "columns kept", colours)
    y = y_channel("value", title, {"zero": False}, colours)
    layers = _line_and_points(Layer(rows, "values").encode(x=x, y=y), colours)
    if at := [row for row in rows if row["size"] == chosen]:
        marked = Layer(at, "chosen").encode(x=x, y=y)
        layers.append(marked.mark("point", filled=True, size=70, opacity=1, color=colours.mark))
    return layered(layers, width, height)
