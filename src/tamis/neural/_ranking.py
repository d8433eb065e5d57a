"""From gates to an order of the columns."""

from collections.abc import Iterator

import numpy as np

from tamis._arrays import Array, Subset, best_first
from tamis.trace import Step


def widest(strength: Array) -> Array:
    """For each column the widest of its gates."""
    return np.max(strength, axis=0)


def by_width(strength: Array) -> Iterator[Step]:
    """Columns added one by one, the widest gate first."""
    price = widest(strength)
    return _one_by_one(best_first(price), price)


def by_place(strength: Array) -> Iterator[Step]:
    """Columns added one by one, the first of every class, then the second of every class, ...

    Linear gates are scales of their own for each class, so that only their order compares.
    """
    price, place = widest(strength), _places(strength).min(axis=0)
    wide = best_first(price)
    return _one_by_one(wide[np.argsort(place[wide], kind="stable")], price)


def by_class(strength: Array) -> Iterator[Step]:
    """The next column of every class at each step, together."""
    price, place = widest(strength), _places(strength).min(axis=0)
    for last in range(place.max() + 1):
        fresh = np.flatnonzero(place == last)
        yield Step(np.flatnonzero(place <= last), moved=fresh, prices=price[fresh])


def _places(strength: Array) -> Subset:
    """Place of each column in each row of gates, from 0 for the widest."""
    return np.array([np.argsort(best_first(row)) for row in strength])


def _one_by_one(order: Subset, price: Array) -> Iterator[Step]:
    for k in range(len(order)):
        yield Step(order[: k + 1], moved=order[[k]], prices=price[order[[k]]])
