"""Chart of the class means in each selected column."""

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from tamis._arrays import Array, class_codes
from tamis._format import format_name, format_number
from tamis.exceptions import InvalidParameter, InvalidTarget
from tamis.report.charts.style import (
    FONT,
    LETTERS,
    Layer,
    Palette,
    axis,
    field,
    layered,
    palette,
    to_altair,
)
from tamis.report.columns import numbers_of
from tamis.report.units import chosen_units

if TYPE_CHECKING:
    import altair

#: Distance in pixels between two columns of circles, and between two classes.
WIDE, TALL = 62, 46


def classes(
    selection: BaseEstimator, X: ArrayLike, y: ArrayLike, *, n: int = 12, theme: str = "light"
) -> "altair.LayerChart":
    """Draw the deviation of each class from the overall mean, in each selected column.

    There is a circle for each class and column. Its colour shows whether the class is above or
    below the mean, and its number is the deviation in standard deviations. Its area shows the
    absolute deviation, or the gate if a :class:`tamis.neural.GateSelector` has gates for each
    class.

    Parameters
    ----------
    selection : fitted selection
    X : array or frame of shape (n_samples, n_features)
        The table that the selection was fitted to.
    y : array of shape (n_samples,)
        The classes.
    n : int, default=12
        Number of selected columns to show.
    theme : {"light", "page"}, default="light"
        "page" uses the CSS variables of a report as colours.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> import tamis
    >>> from tamis.datasets import load
    >>> from tamis.plot import classes
    >>> wine = load("wine")
    >>> chosen = tamis.select(wine.X, wine.y, "fisher-score", n_features_to_select=2)
    >>> len(classes(chosen, wine.X, wine.y).to_dict()["data"]["values"])  # 3 classes, 2 columns
    6
    """
    labels, codes = class_codes(np.asarray(y))
    if np.asarray(y).dtype.kind == "f" and len(labels) > 20:
        raise InvalidTarget("classes needs a target of classes, but y has real numbers.")
    units = chosen_units(selection)
    shown = units.best_kept[:n]
    if not len(shown):
        raise InvalidParameter("classes needs at least one kept column, but none is kept.")
    columns = np.array([units.units.columns(np.array([unit]))[0] for unit in shown])
    means = _class_means(numbers_of(X, columns), codes, len(labels))
    gates = getattr(selection, "class_gates_", None)  # a GateSelector has gates for each class
    if gates is not None and len(gates) == len(labels):
        gates = np.abs(np.asarray(gates, dtype=float))[:, columns]
    else:
        gates = None
    names = [units.names[unit] for unit in shown]
    return to_altair(_draw(means, gates, labels.tolist(), names, palette(theme)))


def _class_means(numbers: Array, codes: NDArray[Any], n_classes: int) -> Array:
    """Return the class means of each column, in standard deviations from the overall mean."""
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = (numbers - np.nanmean(numbers, axis=0)) / np.nanstd(numbers, axis=0)
    return np.array([np.nanmean(scaled[codes == c], axis=0) for c in range(n_classes)])


def _draw(
    means: Array, gates: Array | None, labels: list[Any], names: list[str], colours: Palette
) -> dict[str, Any]:
    size, what = (np.abs(means), "deviations") if gates is None else (gates, "gate")
    rows = [
        {
            "row": i,
            "column": j,
            "class": format_name(label, 20),
            "name": format_name(name, LETTERS),
            "size": float(np.nan_to_num(size[i, j])),
            "side": "above the mean" if means[i, j] >= 0 else "below the mean",
            "label": f"{means[i, j]:+.1f}".replace("-", "−"),
            "hint": f"{format_name(name)} in {format_name(label)}: "
            f"{format_number(means[i, j], 2)} deviations, {what} {format_number(size[i, j], 2)}",
        }
        for i, label in enumerate(labels)
        for j, name in enumerate(names)
    ]
    turned = {"labelAngle": -35, "labelAlign": "right"}
    x = _name_axis("column", [format_name(name, LETTERS) for name in names], colours, **turned)
    y = _name_axis("row", [format_name(label, 20) for label in labels], colours)
    chart = Layer(rows, "classes").encode(x=x, y=y)
    sides = {"domain": ["above the mean", "below the mean"]}
    sides["range"] = [colours.groups[1], colours.groups[0]]
    quiet = {"labelColor": colours.soft, "labelFont": FONT, "titleColor": colours.soft}
    sizes: dict[str, Any] = {
        "orient": "right",
        "title": what,
        "titleFontWeight": "normal",
        "titleFont": FONT,
    }
    sizes |= {"tickCount": 3, "symbolFillColor": colours.quiet, "symbolStrokeWidth": 0, **quiet}
    dots = chart.mark("point", filled=True, opacity=1, shape="circle").encode(
        size=field("size", scale={"range": [0, 700], "domainMin": 0}, legend=sizes),
        color=field(
            "side", "nominal", scale=sides, legend={"orient": "top", "title": None, **quiet}
        ),
    )
    style = {"font": FONT, "fontSize": 10, "color": colours.soft, "dy": 21}
    numbers = chart.mark("text", **style).encode(text=field("label", "nominal"))
    return layered([dots.with_hints(), numbers], WIDE * len(names), TALL * len(labels))


def _name_axis(key: str, names: list[str], colours: Palette, **options: Any) -> dict[str, Any]:
    """Return an axis of names. Names are placed by position, because two may be equal."""
    marks = axis(colours, lines=True, title=None, grid=False, labelColor=colours.ink, **options)
    # a Vega expression, in which JSON escapes quotes
    marks["labelExpr"] = f"{json.dumps(names)}[datum.value]"
    return field(key, "ordinal", axis=marks, scale={"domain": list(range(len(names)))})
