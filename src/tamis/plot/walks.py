"""How a search walked, and what its criterion said on the way."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tamis.exceptions import InvalidParameter
from tamis.plot.reading import CriterionCurve, Walk, chosen_units, walk_of
from tamis.plot.scales import PLAIN_POWERS, sizes_channel, thinned, ticks
from tamis.plot.style import (
    Layer,
    Palette,
    charted,
    field,
    figure,
    layered,
    palette,
    short,
    upright,
)


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
    return charted(draw_path(walk, chosen_units(selection).names, palette(theme), width, height))


def draw_path(walk: Walk, names: Sequence[str], colours: Palette, width: int, height: int) -> Any:
    """The chart of a walk."""
    rows = [
        {"size": int(size), "worth": float(worth), "hint": _moved(moved, names, walk, worth)}
        for size, worth, moved in _shown(walk)
    ]
    log = bool((walk.worth > 0).all() and walk.worth.max() > 50 * walk.worth.min())
    what = "leaving" if walk.leaving else "entering"
    title = f"worth of the {what} column" + (" (log scale)" if log else "")
    scale = {"type": "log", "nice": False} if log else {"zero": False}
    marks = upright(colours)
    if log:
        marks["values"] = ticks(walk.worth.min(), walk.worth.max(), True)
        marks["labelExpr"] = PLAIN_POWERS
    elif np.abs(walk.worth).max() < 1e-3:
        marks["format"] = ".1~e"
    x = "columns in the machine when one leaves" if walk.leaving else "columns held"
    chart = Layer(rows, "steps").encode(
        x=sizes_channel(walk.size.tolist(), x, colours, reverse=walk.leaving),
        y=field("worth", scale=scale, title=title, axis=marks),
    )
    hint = field("hint", "nominal")
    line = chart.mark("line", color=colours.accent, strokeWidth=1.8)
    point = chart.mark("point", color=colours.accent, filled=True, size=26, opacity=1)
    point = point.encode(tooltip=hint, description=hint)
    return layered([line, point], width, height)


def _shown(walk: Walk) -> list[tuple[int, float, tuple[int, ...]]]:
    steps = thinned(walk.size.tolist()).tolist()
    return [(int(walk.size[k]), float(walk.worth[k]), walk.moved[k]) for k in steps]


def _moved(moved: Sequence[int], names: Sequence[str], walk: Walk, worth: float) -> str:
    some = ", ".join(short(names[unit]) for unit in moved[:3])
    some += f" and {len(moved) - 3} more" if len(moved) > 3 else ""
    return f"{some} {'left' if walk.leaving else 'entered'}: {figure(worth)}"


def draw_values(
    curve: CriterionCurve, chosen: int, colours: Palette, width: int, height: int
) -> dict[str, Any]:
    """Values of the criterion against the number of columns, on the rows that chose them."""
    what = "score of the next column" if curve.alone else "value of the criterion"
    shown = thinned(curve.size.tolist(), chosen)
    rows = [
        {"size": int(k), "value": float(v), "hint": f"{k} columns: {figure(float(v))}"}
        for k, v in zip(curve.size[shown], curve.value[shown], strict=True)
    ]
    y = field("value", scale={"zero": False}, title=what, axis=upright(colours))
    x = sizes_channel(curve.size.tolist(), "columns kept", colours)
    chart = Layer(rows, "values").encode(x=x, y=y)
    point = chart.mark("point", filled=True, size=26, opacity=1, color=colours.accent)
    layers = [
        chart.mark("line", color=colours.accent, strokeWidth=1.8),
        point.encode(description=field("hint", "nominal")),
    ]
    if at := [row for row in rows if row["size"] == chosen]:
        marked = Layer(at, "chosen").encode(x=x, y=y)
        layers.append(marked.mark("point", filled=True, size=70, opacity=1, color=colours.mark))
    return layered(layers, width, height)
