"""Columns: their scores, and what says the same."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from tamis._arrays import Array, Subset
from tamis.exceptions import InvalidParameter
from tamis.plot.correlating import correlations
from tamis.plot.reading import ChosenUnits, chosen_units
from tamis.plot.style import (
    Layer,
    Palette,
    axis,
    charted,
    field,
    figure,
    harmless,
    layered,
    palette,
    short,
    text,
)

#: Pixels of a row with a name.
ROW = 19
#: Pixels of a square of the map of what says the same.
SQUARE = 26


def ranking(
    selection: Any,
    n: int = 20,
    *,
    probe: float | None = None,
    theme: str = "light",
    width: int = 360,
) -> Any:
    """Bars of scores, best column first; those not kept are grey.

    Parameters
    ----------
    selection : fitted selection
        Of tamis, or any of scikit-learn's.
    n : int, default=20
        How many columns are shown.
    probe : float, optional
        Score of the best column that is known to say nothing, drawn as a line. Of a fitted
        :class:`tamis.choice.Probes` it is where its promise ends.
    theme : {"light", "page"}, default="light"
        "page" has the variables of the style sheet of a report for colours.
    width : int
        Of the bars, in pixels.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> import tamis
    >>> from tamis.datasets import load
    >>> from tamis.plot import ranking
    >>> wine = load("wine")
    >>> chart = ranking(tamis.select(wine.X, wine.y, "fisher-score"), n=3)
    >>> [row["kept"] for row in chart.to_dict()["data"]["values"]]
    [True, True, True]
    """
    if not (isinstance(n, int | np.integer) and n >= 1):
        raise InvalidParameter(f"ranking needs n, the number of columns to show, not {n!r}.")
    if probe is None:
        probe = _probe_of(selection)
    return charted(draw_ranking(chosen_units(selection), n, probe, palette(theme), width))


def _probe_of(selection: Any) -> float | None:
    """Where the promise of probes ends: the score of p = E / d."""
    p_values = getattr(selection, "p_values_", None)
    rate = getattr(selection, "expected_false", None)
    if p_values is None or rate is None or selection.fdr is not None:
        return None
    return float(np.log(len(p_values) / rate))


def draw_ranking(
    units: ChosenUnits, n: int, probe: float | None, colours: Palette, width: int
) -> Any:
    """The chart of the first units."""
    shown = units.order[:n]
    rows = [
        {
            "place": place,
            "name": short(units.names[unit]),
            "score": float(score) if np.isfinite(score := units.scores[unit]) else None,
            "kept": bool(units.kept[unit]),
            "label": "" if np.isfinite(score) else "no score",
            "hint": f"{harmless(units.names[unit])}: {figure(float(score))}",
        }
        for place, unit in enumerate(shown.tolist())
    ]
    scores = [row["score"] for row in rows if row["score"] is not None] or [1.0]
    far = [*scores, 0.0, *([probe] if probe is not None else [])]
    x: dict[str, Any] = {"scale": {"domain": [min(far), max(far) or 1.0], "nice": True}}
    x["axis"] = axis(colours, lines=True, title="score by the criterion", tickCount=4)
    chart = Layer(rows, "ranking").encode(y=places(len(rows)))
    hues = {"domain": [True, False], "range": [colours.accent, colours.quiet]}
    bars = chart.mark("bar", height=ROW / 2).encode(
        x=field("score", **x),
        color=field("kept", "nominal", scale=hues, legend=None),
        tooltip=field("hint", "nominal"),
        description=field("hint", "nominal"),
    )
    layers = [bars, names_beside(chart, colours)]
    if any(row["label"] for row in rows):
        without = text(colours, align="left", dx=4, fontSize=11, color=colours.soft)
        mark = chart.mark("text", **without).encode(x={"value": 0}, text=field("label", "nominal"))
        layers.append(mark)
    if probe is not None:
        layers += _probe_line(probe, x, colours)
    return layered(layers, width, ROW * len(rows))


def places(n: int) -> dict[str, Any]:
    """Rows from top to bottom."""
    return field("place", "ordinal", axis=None, scale={"domain": list(range(n))})


def names_beside(chart: Any, colours: Palette) -> Any:
    """Names at the left of their rows: as marks, since two columns may have the same."""
    mark = chart.mark("text", **text(colours, align="right", dx=-6, fontSize=11.5))
    return mark.encode(x={"value": 0}, text=field("name", "nominal"))


def _probe_line(probe: float, x: dict[str, Any], colours: Palette) -> list[Any]:
    row = {"score": probe, "label": "probe"}
    chart = Layer([row], "probe")
    styled = text(colours, color=colours.mark, fontWeight=600, fontSize=11, dy=-8)
    return [
        chart.mark("rule", color=colours.mark, strokeDash=[4, 3], strokeWidth=1.5).encode(
            x=field("score", **x)
        ),
        chart.mark("text", **styled).encode(
            x=field("score", **x), y={"value": 0}, text=field("label", "nominal")
        ),
    ]


def redundancy(
    selection: Any, X: ArrayLike, *, n: int = 40, theme: str = "light", square: int = SQUARE
) -> Any:
    """Which of the kept columns say the same: the lower triangle of \\|r\\|, similar ones adjacent.

    Parameters
    ----------
    selection : fitted selection
        At least two of its columns are kept.
    X : array or frame of shape (n_samples, n_features)
        The table it was fitted to. Text and categories have no correlation.
    n : int, default=40
        Of more columns those closest to another are shown.
    theme : {"light", "page"}, default="light"
        "page" has the variables of the style sheet of a report for colours.
    square : int
        Pixels of a square.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> import tamis
    >>> from tamis.datasets import load
    >>> from tamis.plot import redundancy
    >>> wine = load("wine")
    >>> chosen = tamis.select(wine.X, wine.y, "fisher-score", n_features_to_select=4)
    >>> len(redundancy(chosen, wine.X).to_dict()["layer"][0]["data"]["values"])  # 4 * 3 / 2
    6
    """
    units = chosen_units(selection)
    kept = units.best_kept
    if len(kept) < 2:
        raise InvalidParameter(
            f"redundancy needs at least two kept columns, and this selection keeps {len(kept)}."
        )
    r = correlations(X, units.units, kept)[:, kept]
    shown = closest(r, n)
    names = [units.names[unit] for unit in kept[shown]]
    return charted(draw_squares(r[np.ix_(shown, shown)], names, palette(theme), square, least=0.5))


def closest(r: Array, n: int) -> Subset:
    """The n columns that are closest to another, in an order that puts similar ones together."""
    shown = np.arange(len(r))
    if len(r) > n:
        others = np.where(np.eye(len(r), dtype=bool), 0.0, np.nan_to_num(r))
        shown = np.sort(np.argsort(-others.max(axis=1), kind="stable")[:n])
    if len(shown) < 3:
        return shown
    apart = 1 - np.clip(np.nan_to_num(r[np.ix_(shown, shown)]), 0, 1)
    apart = (apart + apart.T) / 2
    np.fill_diagonal(apart, 0)
    tree = linkage(squareform(apart, checks=False), "average", optimal_ordering=len(shown) <= 60)
    return shown[leaves_list(tree)]


def draw_squares(
    r: Array,
    names: Sequence[str],
    colours: Palette,
    square: int,
    *,
    least: float,
    top: float = 1.0,
) -> dict[str, Any]:
    """The lower triangle of a matrix; numbers from ``least`` on are written, in hundredths.

    A square that has ``top`` is full; NaN has none.
    """
    n = len(names)
    rows = [
        {
            "row": i,
            "column": j,
            "r": round(float(value), 4) if np.isfinite(value := r[i, j]) else 0.0,
            "label": f"{100 * value:.0f}".replace("-", "−") if value >= least else "",
            "hint": f"{harmless(names[i])} and {harmless(names[j])}: {figure(float(value), 2)}",
        }
        for i in range(n)
        for j in range(i)
    ]
    labels = [{"row": i, "column": i, "name": short(name)} for i, name in enumerate(names)]
    place = {"axis": None, "scale": {"domain": list(range(n)), "paddingInner": 0.06}}
    x, y = field("column", "ordinal", **place), field("row", "ordinal", **place)
    chart = Layer(rows, "pairs").encode(x=x, y=y)
    hint = field("hint", "nominal")
    scale = {"domain": [0, top], "range": [0.04, 1], "clamp": True}
    squares = chart.mark("rect", color=colours.accent, stroke=None).encode(
        opacity=field("r", scale=scale, legend=None), tooltip=hint, description=hint
    )
    # white on what is full, ink on what is not: the ground of the page is the one or the other
    hue = {
        "condition": {"test": f"datum.r >= {0.8 * top}", "value": colours.ground},
        "value": colours.ink,
    }
    numbers = chart.mark("text", **text(colours, fontSize=10)).encode(
        text=field("label", "nominal"), color=hue
    )
    styled = text(colours, align="left", fontSize=11.5, dx=2 - square / 2)
    written = Layer(labels, "names").mark("text", **styled)
    written = written.encode(x=x, y=y, text=field("name", "nominal"))
    return layered([squares, numbers, written], square * n, square * n)
