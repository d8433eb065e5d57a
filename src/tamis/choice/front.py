"""Lists of columns with their prices and losses, and the best list at each price."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tamis._arrays import EMPTY, Subset
from tamis.choice.cost import best_within
from tamis.contract.costs import Limit

#: Number of units at the start of an order that are considered under a limit with ``per_price``.
DEEPEST = 40


class PricedList(NamedTuple):
    """A list of columns, its price and its held-out loss.

    Attributes
    ----------
    price : float
        Price of the columns.
    loss : float
        Loss on held-out rows.
    error : float
        Standard error of the loss, or NaN if unknown.
    columns : tuple of str or int
        The columns.
    blind_loss : float
        Loss of the columns that a search without prices selects within the same limit, or NaN.

    Examples
    --------
    >>> from tamis.choice.front import PricedList
    >>> PricedList(12.5, 0.23, 0.01, ("age", "sex")).price
    12.5
    """

    price: float
    loss: float
    error: float = float("nan")
    columns: tuple[str | int, ...] = ()
    blind_loss: float = float("nan")


def affordable_lists(
    order: Subset, limits: Sequence[Limit], *, fixed: Subset = EMPTY, most: int | None = None
) -> list[Subset]:
    """Return, for each price limit, the units of an order that are bought.

    A unit is a column, or a group of columns. Units that do not fit are skipped. If a limit has
    ``per_price=True``, units are bought as by :class:`tamis.choice.CostLimit`. The unit at rank r
    then has the worth 1/r, and only the first 40 units of the order are considered.

    Parameters
    ----------
    order : array of int
        Units, best first.
    limits : sequence of Limit
        The price limits.
    fixed : array of int
        Units that every list contains.
    most : int or None, default=None
        Maximum number of units of a list.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.contract.costs import Prices
    >>> prices = Prices((5.0, 1.0, 1.0, 1.0))
    >>> limits = [Limit(prices, 5.0), Limit(prices, 5.0, per_price=True), Limit(prices, 8.0)]
    >>> [units.tolist() for units in affordable_lists(np.arange(4), limits)]
    [[0], [1, 2, 3], [0, 1, 2, 3]]
    """
    order = order[~np.isin(order, fixed)]
    room = len(order) if most is None else max(0, most - len(fixed))
    buy = {False: Limit.fitting, True: _bought}
    found = [buy[limit.per_price](limit, order, fixed)[:room] for limit in limits]
    return [np.sort(np.concatenate([fixed, units])) for units in found]


def _bought(limit: Limit, order: Subset, held: Subset) -> Subset:
    """Return the first units of an order that have the greatest total worth within a limit."""
    units = np.concatenate([held, order[:DEEPEST]])
    limit = replace(limit, prices=limit.prices.restricted(units))  # unit i is now units[i]
    worth = 1 / np.arange(1.0, len(units) + 1)
    bought = best_within(limit, worth, fixed=np.arange(len(held)))
    return units[bought[bought >= len(held)]]


def undominated(lists: Sequence[PricedList]) -> list[PricedList]:
    """Return the lists that are better than all cheaper ones, in order of price.

    Of several lists with the same price, the best one is returned.

    Examples
    --------
    >>> lists = [PricedList(5, 0.2), PricedList(1, 0.3), PricedList(9, 0.25), PricedList(5, 0.22)]
    >>> [(one.price, one.loss) for one in undominated(lists)]
    [(1, 0.3), (5, 0.2)]
    """
    front: list[PricedList] = []
    for one in sorted(lists, key=lambda each: (each.price, each.loss)):
        if not front or one.loss < front[-1].loss:
            front.append(one)
    return front
