"""Fronts of prices and losses, and lists of columns for given limits."""

import numpy as np
import pytest

from tamis.choice.front import PricedList, affordable_lists, cheapest, undominated
from tamis.contract.costs import Prices


def draw_lists(seed):
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, 8, size=(rng.integers(1, 12), 2)).astype(float)
    return [PricedList(price, loss, 1.0) for price, loss in pairs]


@pytest.mark.parametrize("seed", range(20))
def test_a_front_has_every_list_that_no_cheaper_one_matches(seed):
    lists = draw_lists(seed)
    front = undominated(lists)

    def dominated(one):
        return any(
            other.price <= one.price
            and other.loss <= one.loss
            and (other.price, other.loss) != (one.price, one.loss)
            for other in lists
        )

    expected = sorted({(one.price, one.loss) for one in lists if not dominated(one)})
    assert [(one.price, one.loss) for one in front] == expected
    assert undominated(lists[::-1]) == front == undominated(front)


@pytest.mark.parametrize("seed", range(10))
def test_the_cheapest_list_is_close_to_the_best(seed):
    lists = draw_lists(seed)
    found = lists[cheapest(lists)]
    lowest = min(one.loss for one in lists)
    assert found.loss <= lowest + 1
    assert found.price == min(one.price for one in lists if one.loss <= lowest + 1)
    assert lists[cheapest(lists, 0)].loss == lowest


def test_an_unknown_error_counts_as_none():
    assert cheapest([PricedList(1, 0.3), PricedList(2, 0.2)]) == 1


def test_lists_fit_and_contain_fixed_units():
    prices = Prices((4.0, 1.0, 5.0, 0.5), ((2.0, (0, 2)),), full=12.5)
    order, scores = np.array([2, 0, 1, 3]), np.array([3.0, 2.5, 1.0, 0.1])
    shares = (0.05, 0.5, 1.0)
    plain = affordable_lists(order, prices, shares=shares)
    assert [units.tolist() for units in plain] == [[3], [0], [0, 1, 2, 3]]
    by_price = affordable_lists(order, prices, scores=scores, shares=shares)
    assert [units.tolist() for units in by_price] == [[3], [1, 3], [0, 1, 2, 3]]
    fixed = affordable_lists(order, prices, fixed=np.array([1]), shares=shares[1:])
    assert [units.tolist() for units in fixed] == [[1, 3], [0, 1, 2, 3]]
