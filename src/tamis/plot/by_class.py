"""What each class says of each column."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tamis._arrays import Array, class_codes
from tamis.exceptions import InvalidParameter, InvalidTarget
from tamis.plot.correlating import numbers_of
from tamis.plot.reading import ChosenUnits, chosen_units
from tamis.plot.style import (
    FONT,
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
)

#: Pixels between two columns, and between two classes.
WIDE, TALL = 62, 46


def classes(
    selection: Any, X: ArrayLike, y: ArrayLike, *, n: int = 12, theme: str = "light"
) -> Any:
    """What each class says of each kept column.

    Circles of class by column: the hue says whether the class is above or below the mean, the
    number how far, in standard deviations. Of a :class:`tamis.neural.GateSelector` with gates for
    each class the area is the gate, else how far the class is from the mean.

    Parameters
    ----------
    selection : fitted selection
    X : array or frame of shape (n_samples, n_features)
        The table it was fitted to.
    y : array of shape (n_samples,)
        The classes.
    n : int, default=12
        How many of the kept columns are shown.
    theme : {"light", "page"}, default="light"
        "page" has the variables of the style sheet of a report for colours.

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
        raise InvalidTarget("classes needs a target of classes, and y has real numbers.")
    units = chosen_units(selection)
    shown = units.best_kept[:n]
    if not len(shown):
        raise InvalidParameter("classes needs at least one kept column, and none is kept.")
    means = class_means(X, units, shown, codes, len(labels))
    gates = class_gates(selection, units, shown, len(labels))
    names = [units.names[unit] for unit in shown]
    return charted(draw_classes(means, gates, labels, names, palette(theme)))


def class_means(
    X: Any, units: ChosenUnits, shown: Any, codes: NDArray[Any], n_classes: int
) -> Array:
    """Mean of each class in standard deviations from the mean of all, of shape (classes, units)."""
    columns = [int(units.units.columns(np.array([unit]))[0]) for unit in shown]
    numbers = numbers_of(X, np.array(columns))
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = (numbers - np.nanmean(numbers, axis=0)) / np.nanstd(numbers, axis=0)
    return np.array([np.nanmean(scaled[codes == c], axis=0) for c in range(n_classes)])


def class_gates(selection: Any, units: ChosenUnits, shown: Any, n_classes: int) -> Array | None:
    """Gates of each class, None where the selection has none."""
    gates = getattr(selection, "class_gates_", None)
    if gates is None or len(gates) != n_classes:
        return None
    by_column = np.abs(np.asarray(gates, dtype=float))
    firsts = [int(units.units.columns(np.array([unit]))[0]) for unit in shown]
    return np.asarray(by_column[:, firsts])


def draw_classes(
    means: Array, gates: Array | None, labels: Any, names: list[str], colours: Palette
) -> dict[str, Any]:
    """The chart of circles."""
    size, what = (np.abs(means), "deviations") if gates is None else (gates, "gate")
    rows = [
        {
            "row": i,
            "column": j,
            "class": short(labels[i], 20),
            "name": short(names[j]),
            "size": float(np.nan_to_num(size[i, j])),
            "side": "above the mean" if means[i, j] >= 0 else "below the mean",
            "label": f"{means[i, j]:+.1f}".replace("-", "−"),
            "hint": f"{harmless(names[j])} in {harmless(labels[i])}: "
            f"{figure(float(means[i, j]), 2)} deviations, {what} {figure(float(size[i, j]), 2)}",
        }
        for i in range(len(labels))
        for j in range(len(names))
    ]
    x = _named(
        "column", [short(name) for name in names], colours, labelAngle=-35, labelAlign="right"
    )
    y = _named("row", [short(label, 20) for label in labels], colours)
    chart = Layer(rows, "classes").encode(x=x, y=y)
    sides = {"domain": ["above the mean", "below the mean"]}
    sides["range"] = [colours.groups[1], colours.groups[0]]
    quiet = {"labelColor": colours.soft, "labelFont": FONT, "titleColor": colours.soft}
    legend = {"orient": "top", "title": None, **quiet}
    sizes: dict[str, Any] = {
        "orient": "right",
        "title": what,
        "titleFontWeight": "normal",
        "titleFont": FONT,
        **quiet,
    }
    sizes |= {"tickCount": 3, "symbolFillColor": colours.quiet, "symbolStrokeWidth": 0}
    hint = field("hint", "nominal")
    dots = chart.mark("point", filled=True, opacity=1, shape="circle").encode(
        size=field("size", scale={"range": [0, 700], "domainMin": 0}, legend=sizes),
        color=field("side", "nominal", scale=sides, legend=legend),
        tooltip=hint,
        description=hint,
    )
    styled = {"font": FONT, "fontSize": 10, "color": colours.soft, "dy": 21}
    numbers = chart.mark("text", **styled).encode(text=field("label", "nominal"))
    return layered([dots, numbers], WIDE * len(names), TALL * len(labels))


def _named(place: str, names: list[str], colours: Palette, **options: Any) -> dict[str, Any]:
    """Names along an axis by their positions, since two may be the same."""
    marks = axis(colours, lines=True, title=None, grid=False, labelColor=colours.ink, **options)
    # an expression of Vega: each sign is written by its number, so that no name can end it
    marks["labelExpr"] = f"{_quoted(names)}[datum.value]"
    scale = {"domain": list(range(len(names)))}
    return field(place, "ordinal", axis=marks, scale=scale)


def _quoted(names: list[str]) -> str:
    """A list of strings in which every sign that is no letter or digit is written by its number."""
    escaped = ("".join(c if c.isalnum() and c.isascii() else _number(c) for c in s) for s in names)
    return "[" + ",".join(f"'{name}'" for name in escaped) + "]"


def _number(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[k]:02x}{units[k + 1]:02x}" for k in range(0, len(units), 2))
