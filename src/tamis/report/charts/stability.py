"""Chart of the share of resamples in which each column is selected."""

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

#: A column that is not selected is shown as a rival if at least this share of resamples selects it.
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
    """Draw the share of resamples in which each selected column is selected.

    Columns that are not selected, but often selected in the resamples, are hollow.

    Parameters
    ----------
    results : Results
        Result of :func:`tamis.evaluation.evaluate` for the method of the selection.
    selection : fitted selection
    method, data : str, optional
        Which of the results to use. The default is the first method.
    n : int, default=40
        Largest number of columns to show.
    theme : {"light", "page"}, default="light"
        "page" uses the CSS variables of a report as colours.
    width : int
        Width of the plot, in pixels.

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
    """Return the share of resamples that select each unit, at the selected number of columns."""
    method = results.methods[0] if method is None else method
    masks = results.supports(method, data, units.n_columns_kept or None)
    if masks.shape[1] != units.units.n_columns:
        raise InvalidParameter(
            f"The results have {masks.shape[1]} columns, but the selection has "
            f"{units.units.n_columns}. Give results on the same table."
        )
    share = np.zeros(len(units.names))
    np.maximum.at(share, units.units.unit_of, masks.mean(axis=0))
    return share


def draw_stability(
    units: ChosenUnits, share: Array, n: int, colours: Palette, width: int
) -> dict[str, Any]:
    """Draw the shares of the selected units as dots on stems, and rivals as hollow dots."""
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
    marks = axis(colours, lines=True, title="share of resamples that keep the column, %")
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
