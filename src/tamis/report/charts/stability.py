"""Share of the resamples that keep each column."""

from typing import Any

import numpy as np

from tamis._arrays import Array
from tamis._format import format_name
from tamis.evaluation import Results
from tamis.exceptions import InvalidParameter
from tamis.report.charts.scales import ROW, row_channel, row_names
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
from tamis.report.units import ChosenUnits, chosen_units

#: Share of the resamples from which a column that is not kept counts as a rival.
RIVAL = 0.3


def stability(
    results: Results,
    selection: Any,
    *,
    method: str | None = None,
    data: str | None = None,
    n: int = 40,
    theme: str = "light",
    width: int = 420,
) -> Any:
    """Draw the share of the resamples that keep each kept column, and hollow, its rivals.

    Parameters
    ----------
    results : Results
        Of :func:`tamis.evaluation.evaluate`, with the selection's method among its own.
    selection : fitted selection
    method, data : str, optional
        Which of several in the results; by default the first method.
    n : int, default=40
        Largest number of columns that are shown.
    theme : {"light", "page"}, default="light"
        "page" has the variables of the style sheet of a report for colours.
    width : int
        Of the plot itself, in pixels.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> import tamis
    >>> from sklearn.svm import SVC
    >>> from tamis.datasets import load
    >>> from tamis.evaluation import Realizations, evaluate
    >>> from tamis.plot import stability
    >>> wine, method = load("wine"), tamis.recipe("fisher-score", n_features_to_select=3)
    >>> results = evaluate(method, wine, Realizations(4), estimators=SVC(), sizes=[3])
    >>> chart = stability(results, method.fit(wine.X, wine.y))
    >>> [row["share"] for row in chart.to_dict()["data"]["values"]][:3]
    [100.0, 100.0, 100.0]
    """
    units = chosen_units(selection)
    share = shares_of(results, units, method, data)
    return to_altair(draw_stability(units, share, n, palette(theme), width))


def shares_of(
    results: Results, units: ChosenUnits, method: str | None = None, data: str | None = None
) -> Array:
    """Return the share of the realizations that hold each unit, at the number that is kept."""
    method = results.methods[0] if method is None else method
    masks = results.supports(method, data, units.n_columns_kept or None)
    if masks.shape[1] != units.units.n_columns:
        raise InvalidParameter(
            f"The results are of {masks.shape[1]} columns, the selection of "
            f"{units.units.n_columns}. Give results on the same table."
        )
    share = np.zeros(len(units.names))
    np.maximum.at(share, units.units.unit_of, masks.mean(axis=0))
    return share


def draw_stability(
    units: ChosenUnits, share: Array, n: int, colours: Palette, width: int
) -> dict[str, Any]:
    """Draw the shares of the kept units as dots on stems, then those of rivals, hollow."""
    kept = units.best_kept[:n]
    rivals = np.flatnonzero(~units.kept & (share >= RIVAL))
    rivals = rivals[np.argsort(-share[rivals], kind="stable")][: max(n - len(kept), 0)]
    rows = [
        {
            "place": place,
            "name": format_name(units.names[unit], LETTERS),
            "share": round(100 * float(share[unit]), 1),
            "rival": not units.kept[unit],
            "hint": f"{format_name(units.names[unit])}: {100 * share[unit]:.0f} %",
        }
        for place, unit in enumerate([*kept.tolist(), *rivals.tolist()])
    ]
    marks = axis(colours, lines=True, title="share of resamples that keep it, %")
    marks["values"] = [0, 25, 50, 75, 100]
    x = field("share", scale={"domain": [0, 100], "nice": False}, axis=marks)
    chart = Layer(rows, "shares").encode(y=row_channel(len(rows)))
    stems = chart.mark("rule", color=colours.quiet, strokeWidth=1).encode(x=x, x2={"datum": 0})

    def by_rival(kept: str, rival: str) -> dict[str, Any]:
        scale = {"domain": [False, True], "range": [kept, rival]}
        return field("rival", "nominal", scale=scale, legend=None)

    dots = chart.mark("point", size=60, opacity=1, strokeWidth=1.6, filled=False).encode(
        x=x,
        fill=by_rival(colours.accent, colours.ground),
        stroke=by_rival(colours.accent, colours.mark),
    )
    return layered([stems, dots.with_hints(), row_names(chart, colours)], width, ROW * len(rows))
