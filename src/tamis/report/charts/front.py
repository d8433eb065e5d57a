"""Chart of held-out losses against prices."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tamis._format import format_name, format_number
from tamis.choice.front import PricedList, undominated
from tamis.contract.costs import format_price
from tamis.exceptions import InvalidParameter
from tamis.report.charts.scales import PLAIN_POWERS, finite
from tamis.report.charts.style import (
    LETTERS,
    Layer,
    Palette,
    axis,
    field,
    layered,
    palette,
    to_altair,
    y_channel,
)

if TYPE_CHECKING:
    import altair

#: Number of names of new columns that a label lists.
NAMES = 2


def front(
    lists: Sequence[PricedList],
    *,
    title: str = "loss on held-out rows",
    theme: str = "light",
    width: int = 640,
    height: int = 230,
) -> "altair.LayerChart":
    """Draw the held-out loss of the best list at each price, as steps with their standard errors.

    Lists that are not better than a cheaper list are left out. Each step is labelled with the
    columns that it adds. Circles are the losses of lists that were selected without regard to
    prices, if they are known.

    Parameters
    ----------
    lists : sequence of PricedList
        Lists of columns with their prices and losses; see :class:`tamis.choice.front.PricedList`.
    title : str
        Title of the loss.
    theme : {"light", "page"}, default="light"
        "page" uses the CSS variables of a report as colours.
    width, height : int
        Size of the plot, in pixels.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> from tamis.choice.front import PricedList
    >>> from tamis.plot import front
    >>> cheap, good = PricedList(1, 0.3, 0.02, ("age",)), PricedList(50, 0.2, 0.02, ("age", "ca"))
    >>> [(row["price"], row["label"]) for row in front([good, cheap]).to_dict()["data"]["values"]]
    [(1, 'age'), (50, 'ca')]
    """
    given: Any = lists
    if not isinstance(given, Sequence) or not given:
        what = "none" if isinstance(given, Sequence) else type(given).__name__
        raise InvalidParameter(
            f"front needs at least one PricedList, got {what}. Fit Auto with a cost_limit, and "
            "write front(auto.front_)."
        )
    shown = undominated(lists)
    return to_altair(draw_front(shown, title, palette(theme), width, height))


def draw_front(
    lists: Sequence[PricedList], title: str, colours: Palette, width: int, height: int
) -> dict[str, Any]:
    """Draw the steps of a front, from cheap to expensive."""
    rows = [_row(one, label) for one, label in zip(lists, _labels(lists), strict=True)]
    chart = Layer(rows, "front")
    prices = [one.price for one in lists]
    # a logarithmic axis has no place for a price of 0
    scale = {"type": "log" if min(prices) > 0 else "symlog", "nice": False}
    marks = axis(colours, labelExpr=PLAIN_POWERS, labelOverlap=True)
    x = field("price", scale=scale, axis=marks, title="price (log scale)")

    def y(name: str) -> Any:
        return y_channel(name, title, {"zero": False}, colours)

    steps = {"interpolate": "step-after"}
    band = chart.mark("area", opacity=0.16, color=colours.accent, **steps)
    line = chart.mark("line", strokeWidth=1.8, color=colours.accent, **steps)
    point = chart.mark("point", filled=True, size=34, opacity=1, color=colours.accent)
    name = chart.text("label", colours, align="left", dx=5, dy=-9, fontSize=11, limit=170)
    layers = [
        band.encode(y=y("low"), y2={"field": "high"}),
        line.encode(y=y("loss")),
        point.encode(y=y("loss")).with_hints(),
        name.encode(y=y("loss")),
    ]
    if blind := [row for row in rows if row["blind"] is not None]:
        ring = Layer(blind, "blind").mark("point", size=34, color=colours.soft)
        layers.append(ring.encode(y=y("blind")).with_hints())
    return layered([layer.encode(x=x) for layer in layers], width, height)


def _row(one: PricedList, label: str) -> dict[str, Any]:
    error = finite(one.error) or 0.0
    spread = f" ± {format_number(error, 2)}" if error else ""
    names = ", ".join(format_name(str(column), LETTERS) for column in one.columns[:8])
    names += f" and {len(one.columns) - 8} more" if len(one.columns) > 8 else ""
    hint = f"{format_price(one.price)}: {format_number(one.loss)}{spread}"
    hint += f" with {names}" if names else ""
    blind = finite(one.blind_loss)
    if blind is not None:
        hint += f"; selected without prices: {format_number(blind)}"
    return {
        "price": one.price,
        "loss": finite(one.loss),
        "low": finite(one.loss - error),
        "high": finite(one.loss + error),
        "blind": blind,
        "label": label,
        "hint": hint,
    }


def _labels(lists: Sequence[PricedList]) -> list[str]:
    """Return, for each list, the names of the columns that are not in the next cheaper list."""
    found = []
    for before, after in pairwise([PricedList(0, 0), *lists]):
        new = [format_name(str(c), LETTERS) for c in after.columns if c not in before.columns]
        more = f" +{len(new) - NAMES}" if len(new) > NAMES else ""
        found.append(", ".join(new[:NAMES]) + more)
    return found
