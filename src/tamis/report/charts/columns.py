"""Charts of columns: scores, redundancy and interactions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import Array, Subset
from tamis._checks import check_values, integer
from tamis._format import format_name, format_number
from tamis.contract.record import Interaction
from tamis.exceptions import InvalidParameter
from tamis.report.charts.scales import ROW, finite, row_channel, row_names
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
from tamis.report.columns import correlations
from tamis.report.units import chosen_units, own_agreement, strongest_pairs

if TYPE_CHECKING:
    import altair

#: Size in pixels of a square in the correlation map.
SQUARE = 26


def ranking(
    selection: BaseEstimator,
    n: int = 20,
    *,
    probe: float | None = None,
    theme: str = "light",
    width: int = 360,
) -> "altair.LayerChart":
    """Draw a bar for the score of each column, best first. Columns that are not selected are grey.

    An automatic selection has no scores. Its bars are the shares of the folds that select a column.

    Parameters
    ----------
    selection : fitted selection
        A selection of tamis or of scikit-learn.
    n : int, default=20
        Number of columns to show.
    probe : float, optional
        Score of the best irrelevant column, drawn as a line. For a fitted
        :class:`tamis.meta.Probes`, the default is the lowest score at which columns are selected.
    theme : {"light", "page"}, default="light"
        "page" uses the CSS variables of a report as colours.
    width : int
        Width of the bars, in pixels.

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
    check_values("ranking", {"n": integer(1)}, n=n)
    colours, units = palette(theme), chosen_units(selection)
    probe = _probe_score(selection) if probe is None else probe
    scores, title = units.scores, "score by the criterion"
    agreement = None if units.is_scored else own_agreement(selection, units)
    if agreement is not None:
        scores, title = agreement.share, "share of folds that select it"
    rows = [
        {
            "place": place,
            "name": format_name(units.names[unit], LETTERS),
            "score": (score := finite(scores[unit])),
            "kept": bool(units.kept[unit]),
            "label": "no score" if score is None else "",
            "hint": f"{format_name(units.names[unit])}: {format_number(scores[unit])}",
        }
        for place, unit in enumerate(units.order[:n].tolist())
    ]
    drawn = [row["score"] for row in rows if row["score"] is not None] or [1.0]
    far = [*drawn, 0.0, *([probe] if probe is not None else [])]
    x: dict[str, Any] = {
        "scale": {"domain": [min(far), max(far) or 1.0], "nice": True},
        "axis": axis(colours, lines=True, title=title, tickCount=4),
    }
    chart = Layer(rows, "ranking").encode(y=row_channel(len(rows)))
    hues = {"domain": [True, False], "range": [colours.accent, colours.quiet]}
    bars = chart.mark("bar", height=ROW / 2).encode(
        x=field("score", **x), color=field("kept", "nominal", scale=hues, legend=None)
    )
    layers = [bars.with_hints(), row_names(chart, colours)]
    if any(row["label"] for row in rows):
        note = chart.text("label", colours, align="left", dx=4, fontSize=11, color=colours.soft)
        layers.append(note.encode(x={"value": 0}))
    if probe is not None:
        line = Layer([{"score": probe, "label": "probe"}], "probe").encode(x=field("score", **x))
        style = {"color": colours.mark, "fontWeight": 600, "fontSize": 11, "dy": -8}
        layers.append(line.mark("rule", color=colours.mark, strokeDash=[4, 3], strokeWidth=1.5))
        layers.append(line.text("label", colours, **style).encode(y={"value": 0}))
    return to_altair(layered(layers, width, ROW * len(rows)))


def _probe_score(selection: Any) -> float | None:
    """Return the lowest score at which Probes selects a column: the score of the p-value E / d.

    E is the expected number of false selections, and d is the number of columns.
    """
    p_values = getattr(selection, "p_values_", None)
    rate = getattr(selection, "expected_false", None)
    if p_values is None or rate is None or selection.fdr is not None:
        return None
    return float(np.log(len(p_values) / rate))


def redundancy(
    selection: BaseEstimator,
    X: ArrayLike,
    *,
    n: int = 40,
    theme: str = "light",
    square: int = SQUARE,
) -> "altair.LayerChart":
    """Draw the correlations \\|r\\| between selected columns, with similar ones next to each other.

    Parameters
    ----------
    selection : fitted selection
        A selection with at least two selected columns.
    X : array or frame of shape (n_samples, n_features)
        The table that the selection was fitted to. Text and categories have no correlation.
    n : int, default=40
        Largest number of columns. If there are more, those with the highest correlations are shown.
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
            f"redundancy needs at least two kept columns, but this selection keeps {len(kept)}."
        )
    r = correlations(X, units.units, kept)[:, kept]
    shown = closest(r, n)
    names = [units.names[unit] for unit in kept[shown]]
    chart = draw_squares(r[np.ix_(shown, shown)], names, palette(theme), square, least=0.5)
    return to_altair(chart)


def closest(r: Array, n: int) -> Subset:
    """Return the n columns with the highest correlations, with similar ones next to each other."""
    shown = np.arange(len(r))
    if len(r) > n:
        others = np.where(np.eye(len(r), dtype=bool), 0.0, np.nan_to_num(r))
        shown = np.sort(np.argsort(-others.max(axis=1), kind="stable")[:n])
    if len(shown) < 3:
        return shown
    # imported lazily, because most reports show few columns
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

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
    """Draw the lower triangle of a matrix. Values of at least ``least`` are printed, times 100.

    A value of ``top`` fills its square, and NaN leaves it empty.
    """
    n = len(names)
    rows = [
        {
            "row": i,
            "column": j,
            "r": round(finite(value) or 0.0, 4),
            "label": f"{100 * value:.0f}".replace("-", "−") if value >= least else "",
            "hint": f"{format_name(names[i])} and {format_name(names[j])}: "
            f"{format_number(value, 2)}",
        }
        for i in range(n)
        for j, value in enumerate(r[i, :i].tolist())
    ]
    labels = [
        {"row": i, "column": i, "name": format_name(name, LETTERS)} for i, name in enumerate(names)
    ]
    place = {"axis": None, "scale": {"domain": list(range(n)), "paddingInner": 0.06}}
    x, y = field("column", "ordinal", **place), field("row", "ordinal", **place)
    chart = Layer(rows, "pairs").encode(x=x, y=y)
    scale = {"domain": [0, top], "range": [0.04, 1], "clamp": True}
    squares = chart.mark("rect", color=colours.accent, stroke=None).encode(
        opacity=field("r", scale=scale, legend=None)
    )
    # full squares are dark, so their numbers have the background colour
    full = {"test": f"datum.r >= {0.8 * top}", "value": colours.ground}
    numbers = chart.text("label", colours, fontSize=10)
    numbers = numbers.encode(color={"condition": full, "value": colours.ink})
    style = {"align": "left", "fontSize": 11.5, "dx": 2 - square / 2}
    written = Layer(labels, "names").text("name", colours, **style).encode(x=x, y=y)
    return layered([squares.with_hints(), numbers, written], square * n, square * n)


def interactions(
    selection: BaseEstimator, n: int = 20, *, theme: str = "light", square: int = SQUARE
) -> "altair.LayerChart":
    """Draw the strongest interactions: information of two columns together, beyond both alone.

    Numbers are hundredths of a nat. The best of many pairs has a high value even by chance.

    Parameters
    ----------
    selection : fitted selection
        A selection with a criterion that scores pairs, such as
        :class:`tamis.criteria.PairInformation`.
    n : int, default=20
        Number of pairs to show.
    theme : {"light", "page"}, default="light"
        "page" uses the CSS variables of a report as colours.
    square : int
        Size of a square, in pixels.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> import numpy as np
    >>> import tamis
    >>> from tamis.plot import interactions
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(300, 5))
    >>> y = (X[:, 1] - 0.5) * (X[:, 4] - 0.5) > 0
    >>> chosen = tamis.select(X, y, "pair-scan", n_features_to_select=2)
    >>> chart = interactions(chosen, n=1).to_dict()
    >>> [row["label"] for row in chart["layer"][0]["data"]["values"]]
    ['56']
    """
    check_is_fitted(selection)
    check_values("interactions", {"n": integer(1)}, n=n)
    pairs = strongest_pairs(selection, n)
    if not pairs:
        raise InvalidParameter(
            f"interactions needs a criterion that scores pairs, but {type(selection).__name__} has "
            'no pairs. Write tamis.select(X, y, "pair-scan").'
        )
    names = chosen_units(selection).names
    return to_altair(draw_interactions(pairs, names, palette(theme), square))


def draw_interactions(
    pairs: Sequence[Interaction], names: Sequence[str], colours: Palette, square: int
) -> dict[str, Any]:
    """Draw the given pairs of columns in a lower triangle. Other pairs are empty."""
    units = sorted({unit for pair in pairs for unit in pair[:2]})
    information = np.full((len(units), len(units)), np.nan)
    for pair in pairs:
        i, j = units.index(pair.first), units.index(pair.second)
        information[i, j] = information[j, i] = pair.information
    top = float(np.nanmax(information))
    # the columns of a pair are placed next to each other
    shown = closest(np.nan_to_num(information) / top, len(units))
    labels = [names[units[k]] for k in shown]
    part = information[np.ix_(shown, shown)]
    return draw_squares(part, labels, colours, square, least=0.0, top=top)
