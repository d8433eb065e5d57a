"""Fronts of prices and losses, and lists of columns for given limits."""

import numpy as np
import pytest

from tamis.choice.front import PricedList, affordable_lists, undominated
from tamis.contract.costs import Limit, Prices
from tests.contract.test_costs import draw_prices


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


def test_units_that_do_not_fit_a_price_limit_are_skipped():
    prices = Prices((4.0, 1.0, 5.0, 0.5), ((2.0, (0, 2)),))
    limits = [Limit(prices, amount) for amount in (0.625, 6.25, 12.5)]
    order = np.array([2, 0, 1, 3])
    found = affordable_lists(order, limits)
    assert [units.tolist() for units in found] == [[3], [0], [0, 1, 2, 3]]
    fixed = affordable_lists(order, limits[1:], fixed=np.array([1]))
    assert [units.tolist() for units in fixed] == [[1, 3], [0, 1, 2, 3]]
    short = affordable_lists(order, limits, fixed=np.array([1]), most=2)
    assert [units.tolist() for units in short] == [[1], [1, 3], [1, 2]]


def test_a_fee_is_paid_for_a_group_whose_units_are_worth_it_together():
    """Alone, each unit of the group has less worth per price than the first unit."""
    prices = Prices((8.0, 0.5, 0.5, 0.5, 0.4), ((5.0, (1, 2, 3)),))
    order = np.arange(5)
    (per_price,) = affordable_lists(order, [Limit(prices, 8.4, per_price=True)])
    assert per_price.tolist() == [1, 2, 3, 4]
    (blind,) = affordable_lists(order, [Limit(prices, 8.4)])
    assert blind.tolist() == [0, 4]


@pytest.mark.parametrize("seed", range(20))
def test_lists_fit_contain_fixed_units_and_use_up_the_limit(seed):
    prices, d, rng = draw_prices(seed)
    order, fixed = rng.permutation(d), np.flatnonzero(rng.random(d) < 0.2)
    amount = prices.of(fixed) + rng.random() * prices.of(range(d))
    for per_price in (False, True):
        limit = Limit(prices, amount, per_price=per_price)
        (units,) = affordable_lists(order, [limit], fixed=fixed)
        assert np.isin(fixed, units).all()
        assert limit.affords(units)
        left = np.setdiff1d(np.arange(d), units)
        assert not any(limit.affords([*units, unit]) for unit in left)
