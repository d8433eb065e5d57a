"""Methods beside each other: which differ by more than chance, and which order columns alike."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from tamis._arrays import Array
from tamis.evaluation import Ranks, Results
from tamis.exceptions import InvalidParameter
from tamis.plot.columns import draw_squares
from tamis.plot.reading import chosen_units
from tamis.plot.style import (
    Layer,
    Palette,
    charted,
    field,
    figure,
    harmless,
    layered,
    palette,
    short,
    text,
)

#: Pixels from the top: the ruler, the axis; and between two bars, and two names.
RULER, AXIS, BAR, LINE = 16, 56, 9, 18


def comparison(ranks: Ranks, *, theme: str = "light", width: int = 420) -> Any:
    """Average ranks of methods, with bars that join those which cannot be told apart.

    Parameters
    ----------
    ranks : Ranks
        Of :func:`tamis.evaluation.rank` or :func:`tamis.evaluation.friedman`.
    theme : {"light", "page"}, default="light"
        "page" has the variables of the style sheet of a report for colours.
    width : int
        Of the plot itself, in pixels.

    Returns
    -------
    altair.LayerChart

    References
    ----------
    Demsar (2006), Statistical comparisons of classifiers over multiple data sets.

    Examples
    --------
    >>> from tamis.evaluation import friedman
    >>> from tamis.plot import comparison
    >>> ranks = friedman([[0.1, 0.2, 0.3], [0.1, 0.3, 0.2], [0.2, 0.3, 0.4]], ["a", "b", "c"])
    >>> type(comparison(ranks)).__name__
    'LayerChart'
    """
    if not isinstance(ranks, Ranks):
        raise InvalidParameter(
            "comparison needs the Ranks of tamis.evaluation.rank(results) or friedman(table), not "
            f"{type(ranks).__name__}."
        )
    return charted(draw_comparison(ranks, palette(theme), width))


def draw_comparison(ranks: Ranks, colours: Palette, width: int) -> dict[str, Any]:
    """The diagram of critical differences."""
    order = np.argsort(ranks.ranks, kind="stable")
    first = AXIS + 14 + BAR * len(ranks.groups) + LINE / 2
    half = (len(order) + 1) // 2
    height = first + LINE * half
    dots = [_placed(ranks, int(k), place, half, len(order), first) for place, k in enumerate(order)]
    x = {"scale": {"domain": [1, len(order)], "nice": False}, "axis": None}
    down = {"scale": {"domain": [0, height], "range": [0, height]}, "axis": None}
    layers = [
        *_ruler(ranks, len(order), colours, x, down),
        *_stems(dots, colours, x, down),
        *_bars(ranks, colours, x, down),
    ]
    return layered(layers, width, height)


def _placed(ranks: Ranks, k: int, place: int, half: int, n: int, first: float) -> dict[str, Any]:
    """A method: its dot on the axis and its name at the left or the right."""
    left = place < half
    line = place if left else n - 1 - place
    rank = float(ranks.ranks[k])
    return {
        "rank": rank,
        "name": f"{short(ranks.methods[k])} {rank:.2f}",
        "axis": AXIS,
        "y": first + LINE * line,
        "end": 1 if left else n,
        "left": left,
        "hint": f"{harmless(ranks.methods[k])}: average rank {rank:.2f}",
    }


def _stems(dots: list[Any], colours: Palette, x: Any, down: Any) -> list[Layer]:
    chart = Layer(dots, "methods")
    thin = {"color": colours.quiet, "strokeWidth": 1}
    hint = field("hint", "nominal")
    layers = [
        chart.mark("rule", **thin).encode(
            x=field("rank", **x), y=field("axis", **down), y2={"field": "y"}
        ),
        chart.mark("rule", **thin).encode(
            x=field("rank", **x), x2={"field": "end"}, y=field("y", **down)
        ),
        chart.mark("point", filled=True, size=50, opacity=1, color=colours.accent).encode(
            x=field("rank", **x), y=field("axis", **down), tooltip=hint, description=hint
        ),
    ]
    for left, align in ((True, "left"), (False, "right")):
        names = Layer([dot for dot in dots if dot["left"] == left], f"names {align}")
        styled = text(colours, align=align, dy=-7, fontSize=11.5)
        layers.append(
            names.mark("text", **styled).encode(
                x=field("end", **x), y=field("y", **down), text=field("name", "nominal")
            )
        )
    return layers


def _ruler(ranks: Ranks, n: int, colours: Palette, x: Any, down: Any) -> list[Layer]:
    """The axis of ranks, and above it the critical difference."""
    gap = ranks.critical_difference
    said = f"critical difference {figure(gap)} (Nemenyi, {ranks.n_rows} rows)"
    ruler = Layer([{"low": 1, "high": min(1 + gap, n), "y": RULER, "label": said}], "ruler")
    line = Layer([{"low": 1, "high": n, "y": AXIS}], "axis")
    numbers = Layer([{"rank": k, "y": AXIS, "label": str(k)} for k in range(1, n + 1)], "ticks")
    title = Layer([{"rank": (n + 1) / 2, "y": AXIS, "label": "average rank (1 is best)"}], "title")
    soft = {"fontSize": 11, "color": colours.soft}
    where = {"x": field("rank", **x), "y": field("y", **down), "text": field("label", "nominal")}
    span = {"x": field("low", **x), "x2": {"field": "high"}, "y": field("y", **down)}
    loud = text(colours, align="left", dy=-8, fontSize=11, color=colours.mark)
    return [
        ruler.mark("rule", color=colours.mark, strokeWidth=2).encode(**span),
        ruler.mark("text", **loud).encode(**{**where, "x": field("low", **x)}),
        line.mark("rule", color=colours.quiet).encode(**span),
        numbers.mark("text", **text(colours, dy=-11, **soft)).encode(**where),
        title.mark("text", **text(colours, dy=-26, **soft)).encode(**where),
    ]


def _bars(ranks: Ranks, colours: Palette, x: Any, down: Any) -> list[Layer]:
    """One thick bar for each set of methods that cannot be told apart."""
    if not ranks.groups:
        return []
    of = dict(zip(ranks.methods, ranks.ranks.tolist(), strict=True))
    rows = []
    for place, group in enumerate(ranks.groups):
        values = [of[name] for name in group]
        rows.append({"low": min(values), "high": max(values), "y": AXIS + 10 + BAR * place})
    bar = Layer(rows, "groups").mark("rule", color=colours.ink, strokeWidth=4)
    return [bar.encode(x=field("low", **x), x2={"field": "high"}, y=field("y", **down))]


def rank_agreement(selections: Any, *, theme: str = "light", square: int = 34) -> Any:
    """How far methods order the columns alike: Kendall's tau of every pair, in hundredths.

    Parameters
    ----------
    selections : dict of str to fitted selection, or Results
        On the same columns. Of :class:`tamis.evaluation.Results` the mean over the realizations is
        shown.
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
    >>> from tamis.plot import rank_agreement
    >>> wine = load("wine")
    >>> fitted = {name: tamis.select(wine.X, wine.y, name) for name in ("fisher-score", "mrmr")}
    >>> [row["label"] for row in rank_agreement(fitted).to_dict()["layer"][0]["data"]["values"]]
    ['59']
    """
    if isinstance(selections, Results):
        names, orders = selections.methods, [selections.orders(m) for m in selections.methods]
    elif isinstance(selections, Mapping):
        names = [str(name) for name in selections]
        orders = [[tuple(chosen_units(each).order.tolist())] for each in selections.values()]
    else:
        raise InvalidParameter(
            "rank_agreement needs a dict of fitted selections, or the Results of evaluate, not "
            f"{type(selections).__name__}."
        )
    sizes = {len(order) for several in orders for order in several}
    if len(names) < 2 or len(sizes) != 1:
        raise InvalidParameter(
            "rank_agreement needs at least two methods that order the same columns; got "
            f"{len(names)} of {' and '.join(map(str, sorted(sizes))) or 'no'} columns."
        )
    return charted(draw_squares(agreements(orders), names, palette(theme), square, least=-1.0))


def agreements(orders: list[list[tuple[int, ...]]]) -> Array:
    """Mean of Kendall's tau over realizations, for every pair of methods."""
    places = [[np.argsort(order) for order in several] for several in orders]
    tau = np.eye(len(places))
    for i in range(len(places)):
        for j in range(i):
            pairs = zip(places[i], places[j], strict=False)
            tau[i, j] = tau[j, i] = np.mean([kendalltau(a, b).statistic for a, b in pairs])
    return tau
