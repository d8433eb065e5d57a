"""Prices and losses of lists of columns: which list is best at each price."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis._arrays import EMPTY, Array, Subset
from tamis.contract.costs import Limit, Prices

#: Price limits that are compared, as shares of the full price.
SHARES = (0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)


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
    order: Subset,
    prices: Prices,
    *,
    scores: Array | None = None,
    fixed: Subset = EMPTY,
    shares: Sequence[float] = SHARES,
) -> list[Subset]:
    """Return, for each price limit, the units of an order that fit.

    A unit that does not fit is skipped.

    Parameters
    ----------
    order : array of int
        Units, best first.
    prices : Prices
        The prices of all units.
    scores : array of float or None, default=None
        The score of each unit in ``order``. If given, units are bought by score per price.
    fixed : array of int
        Units that every list contains.
    shares : sequence of float
        The limits, as shares of the full price.

    Examples
    --------
    >>> import numpy as np
    >>> prices = Prices((4.0, 1.0, 5.0), full=10.0)
    >>> [units.tolist() for units in affordable_lists(np.arange(3), prices, shares=(0.1, 0.5, 1))]
    [[1], [0, 1], [0, 1, 2]]
    """
    order = order[~np.isin(order, fixed)]
    found = []
    for share in shares:
        limit = Limit(prices, share * prices.full, per_price=scores is not None)
        ahead = order
        if scores is not None:
            rates = limit.rates(np.asarray(scores, dtype=float), fixed, order)
            ahead = order[np.argsort(-rates, kind="stable")]
        found.append(np.sort(np.concatenate([fixed, limit.fitting(ahead, fixed)])))
    return found


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


def cheapest(lists: Sequence[PricedList], n_errors: float = 1.0) -> int:
    """Return the position of the cheapest list whose loss is close enough to the lowest.

    Parameters
    ----------
    lists : sequence of PricedList
    n_errors : float, default=1.0
        Number of standard errors of the lowest loss by which a loss may exceed it.

    Examples
    --------
    >>> cheapest([PricedList(1, 0.3, 0.02), PricedList(5, 0.21, 0.02), PricedList(9, 0.2, 0.02)])
    1
    """
    best = min(lists, key=lambda each: (each.loss, each.price))
    most = best.loss + n_errors * (best.error if best.error == best.error else 0.0)
    close = [index for index, one in enumerate(lists) if one.loss <= most]
    return min(close, key=lambda index: (lists[index].price, lists[index].loss))
