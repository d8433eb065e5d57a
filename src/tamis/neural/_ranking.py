"""From gates to an order of the columns."""

from collections.abc import Iterator

import numpy as np

from tamis._arrays import EMPTY, Array, best_first
from tamis.trace import Step


def widest(strength: Array) -> Array:
    """For each column the widest of its gates."""
    return np.max(strength, axis=0)


def steps(strength: Array, per_class: bool) -> Iterator[Step]:
    """Columns added one by one, the widest gate first; or per class, the next of every class.

    ``strength`` has one row for each row of gates.
    """
    price = widest(strength)
    if not per_class:
        order = best_first(price)
        for k, j in enumerate(order):
            yield Step(order[: k + 1], moved=order[k : k + 1], prices=price[[j]])
        return
    orders = np.array([best_first(row) for row in strength])
    held = EMPTY
    for next_of_each in orders.T:
        fresh = np.setdiff1d(next_of_each, held)
        held = np.union1d(held, fresh)
        yield Step(held, moved=fresh, prices=price[fresh])
        if len(held) == strength.shape[1]:
            return
