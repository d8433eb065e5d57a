"""How often columns are kept in resamples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis._arrays import Array, Mask, Subset
from tamis.evaluation import Results
from tamis.exceptions import InvalidParameter
from tamis.plot.columns import ROW, names_beside, places
from tamis.plot.reading import ChosenUnits, chosen_units
from tamis.plot.style import Layer, Palette, axis, charted, field, harmless, layered, palette, short

#: Share of the resamples from which a column that is not kept counts as a rival.
RIVAL = 0.3


@dataclass(frozen=True, repr=False)
class KeptShare:
    """How often units are kept in resamples.

    Attributes
    ----------
    units : array of int
        Those that are kept, best first, then the rivals that resamples prefer.
    share : array of float
    rival : array of bool
    """

    units: Subset
    share: Array
    rival: Mask


def kept_shares(units: ChosenUnits, share: Array, n: int) -> KeptShare:
    """The kept units and, hollow, those that at least 30 % of the resamples keep."""
    kept = units.best_kept[:n]
    rivals = np.flatnonzero(~units.kept & (share >= RIVAL))
    rivals = rivals[np.argsort(-share[rivals], kind="stable")][: max(n - len(kept), 0)]
    shown = np.concatenate([kept, rivals]).astype(np.intp)
    return KeptShare(shown, share[shown], ~units.kept[shown])


def shares_of(
    results: Results, units: ChosenUnits, method: str | None = None, data: str | None = None
) -> Array:
    """Share of the realizations in which the first columns, as many as are kept, hold each unit."""
    method = results.methods[0] if method is None else method
    size = int(units.units.mask(units.kept).sum())
    masks = results.supports(method, data, size if size else None)
    if masks.shape[1] != units.units.n_columns:
        raise InvalidParameter(
            f"The results are of {masks.shape[1]} columns, the selection of "
            f"{units.units.n_columns}. Give results on the same table."
        )
    of_columns = masks.mean(axis=0)
    share = np.zeros(len(units.names))
    np.maximum.at(share, units.units.unit_of, of_columns)
    return share


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
    """How often each kept column is kept in resamples; hollow, the rivals that resamples prefer.

    Parameters
    ----------
    results : Results
        Of :func:`tamis.evaluation.evaluate`, with the selection's method among its own.
    selection : fitted selection
    method, data : str, optional
        Which of several in the results; by default the first method.
    n : int, default=40
        How many columns are shown at most.
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
    shares = kept_shares(units, shares_of(results, units, method, data), n)
    return charted(draw_stability(shares, units.names, palette(theme), width))


def draw_stability(shares: KeptShare, names: Sequence[str], colours: Palette, width: int) -> Any:
    """The chart of shares: dots on stems."""
    rows = [
        {
            "place": place,
            "name": short(names[unit]),
            "share": round(100 * float(share), 1),
            "rival": bool(rival),
            "hint": f"{harmless(names[unit])}: {100 * share:.0f} %",
        }
        for place, (unit, share, rival) in enumerate(
            zip(shares.units.tolist(), shares.share, shares.rival, strict=True)
        )
    ]
    marks = axis(colours, lines=True, title="share of resamples that keep it, %")
    marks["values"] = [0, 25, 50, 75, 100]
    x = field("share", scale={"domain": [0, 100], "nice": False}, axis=marks)
    chart = Layer(rows, "shares").encode(y=places(len(rows)))
    stems = chart.mark("rule", color=colours.quiet, strokeWidth=1).encode(x=x, x2={"datum": 0})
    hint = field("hint", "nominal")
    fill = {"domain": [False, True], "range": [colours.accent, colours.ground]}
    line = {"domain": [False, True], "range": [colours.accent, colours.mark]}
    dots = chart.mark("point", size=60, opacity=1, strokeWidth=1.6, filled=False).encode(
        x=x,
        fill=field("rival", "nominal", scale=fill, legend=None),
        stroke=field("rival", "nominal", scale=line, legend=None),
        tooltip=hint,
        description=hint,
    )
    return layered([stems, dots, names_beside(chart, colours)], width, ROW * len(rows))
