"""Charts of stability across resamples, of conditional tests, and of slopes in environments."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from tamis._arrays import Array
from tamis._format import format_name, format_p_value
from tamis.evaluation import Results
from tamis.exceptions import InvalidParameter
from tamis.report.charts.methods import SpannedNumber, draw_intervals
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
from tamis.report.units import ChosenUnits, chosen_units, inner_selection, unit_values

if TYPE_CHECKING:
    import altair

#: A column that is not selected is shown as a rival if at least this share of resamples selects it.
RIVAL = 0.3


def stability(
    results: Results,
    selection: BaseEstimator,
    *,
    method: str | None = None,
    data: str | None = None,
    n: int = 40,
    theme: str = "light",
    width: int = 420,
) -> "altair.LayerChart":
    """Draw the share of resamples in which each selected column is selected.

    Hollow dots are columns that are not in the selection, but that many resamples select.

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
    """Draw the shares of resamples that select each unit, as dots on stems.

    Hollow dots are rivals: units that were not selected, but that many resamples select.
    """
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


def conditional_tests(
    selection: BaseEstimator, n: int = 20, *, theme: str = "light", width: int = 360
) -> "altair.LayerChart":
    """Draw the effect of each column given all others, with its interval and its q-value.

    The effect is the mean of R, see :class:`tamis.meta.ConditionalTest`. The bars are two standard
    errors long on each side. Columns that no fold selected are left out.

    Parameters
    ----------
    selection : fitted selection
        A fitted :class:`tamis.meta.ConditionalTest`, or an automatic selection with
        ``confirm=True``.
    n : int, default=20
        Largest number of columns to show, those with the smallest p-values first.
    theme : {"light", "page"}, default="light"
        "page" uses the CSS variables of a report as colours.
    width : int
        Width of the plot, in pixels.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> from tamis.criteria import Correlation
    >>> from tamis.datasets import load
    >>> from tamis.meta import ConditionalTest
    >>> from tamis.plot import conditional_tests
    >>> from tamis.search import Ranking
    >>> wine = load("wine")
    >>> test = ConditionalTest(Ranking(Correlation(), n_features_to_select=5), random_state=0)
    >>> chart = conditional_tests(test.fit(wine.X, wine.y), n=3)
    >>> len(chart.to_dict()["data"]["values"])
    3
    """
    names = ("p_values_", "effects_", "effect_errors_", "found_in_")
    p, effects, errors, found_in = (unit_values(selection, name) for name in names)
    units = chosen_units(selection)
    q = units.q_values
    if p is None or q is None or effects is None or errors is None or found_in is None:
        raise InvalidParameter(
            "conditional_tests needs a fitted ConditionalTest or Auto(confirm=True), got "
            f"{type(selection).__name__} without tests."
        )
    shown = [unit for unit in np.argsort(p, kind="stable") if found_in[unit] > 0][:n]
    rows = [
        _spanned(
            units.names[unit], effects[unit], errors[unit], bool(units.kept[unit]),
            f"q {format_p_value(float(q[unit]))}",
        )
        for unit in shown
    ]  # fmt: skip
    title = "effect given all other columns"
    return to_altair(draw_intervals(rows, title, palette(theme), width, around=0.0))


def environments(
    selection: BaseEstimator, n: int = 10, *, theme: str = "light", width: int = 360
) -> "altair.LayerChart":
    """Draw the slope of each column in each environment, with its interval.

    Columns whose slopes differ are grey. The bars are two standard errors long on each side.

    Parameters
    ----------
    selection : fitted selection
        A fitted :class:`tamis.meta.InvariantSelection`.
    n : int, default=10
        Largest number of columns to show. Selected columns come first.
    theme : {"light", "page"}, default="light"
        "page" uses the CSS variables of a report as colours.
    width : int
        Width of the plot, in pixels.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> from tamis.criteria import Correlation
    >>> from tamis.datasets import load
    >>> from tamis.meta import InvariantSelection
    >>> from tamis.plot import environments
    >>> from tamis.search import Ranking
    >>> wine = load("wine")
    >>> site = np.arange(len(wine.y)) % 2
    >>> search = InvariantSelection(Ranking(Correlation(), n_features_to_select=2), random_state=0)
    >>> chart = environments(search.fit(wine.X, wine.y, environments=site))
    >>> len(chart.to_dict()["data"]["values"])  # two columns in two environments
    4
    """
    inner = inner_selection(selection)
    if not hasattr(inner, "slopes_"):
        raise InvalidParameter(
            "environments needs a fitted InvariantSelection, got "
            f"{type(selection).__name__}. Write InvariantSelection(...) around the search."
        )
    return to_altair(draw_environments(selection, n, palette(theme), width))


def draw_environments(selection: Any, n: int, colours: Palette, width: int) -> dict[str, Any]:
    """Draw the slopes of an InvariantSelection, one row for each column and environment."""
    inner, outer = inner_selection(selection), chosen_units(selection)
    outside = np.arange(len(outer.names)) if inner is selection else selection._outside
    rows = []
    for unit in [u for u in inner.order_ if np.isfinite(inner.p_equal_[u])][:n]:
        columns, name = inner.units_.columns(np.array([unit])), outer.names[outside[unit]]
        for k, column in enumerate(columns):
            part = name if len(columns) == 1 else f"{name} ({k + 1})"
            for place, label in enumerate(inner.environments_):
                numbers = inner.slopes_[place, column], inner.slope_errors_[place, column]
                first = place == 0 and k == 0
                p = f"p {format_p_value(float(inner.p_equal_[unit]))}" if first else ""
                kept = bool(inner.unit_support_[unit])
                rows.append(_spanned(f"{part}, {label}", *numbers, kept, p))
    title = "slope per standard deviation of the column"
    return draw_intervals(rows, title, colours, width, around=0.0)


def _spanned(name: str, value: float, error: float, kept: bool, label: str = "") -> SpannedNumber:
    """Return a value with two standard errors on each side."""
    hint = f"{value:.3g} ± {error:.2g}" if np.isfinite(value) else "unknown"
    ends = value - 2 * error, value + 2 * error
    return SpannedNumber(name, value, *ends, hint=hint, quiet=not kept, label=label)
