"""The price limits that Auto compares, and the lists of columns within each of them."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tamis.auto.orders import PER_PRICE, Order
from tamis.auto.plan import FEW_SIZES, SIZES, AutoPlan
from tamis.choice import CostLimit
from tamis.choice.front import affordable_lists
from tamis.contract.costs import Limit
from tamis.contract.units import Grouping

#: Price limits that are compared, as shares of the price of all columns.
SHARES = (0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)


class PriceLimits(NamedTuple):
    """The price limits of a fit.

    With price limits, the size of a candidate is the position of its limit, counted from 1, instead
    of its number of columns. The position after the last limit stands for all columns.

    Attributes
    ----------
    limits : tuple of Limit
        In ascending order.
    asked : Limit
        The limit of the user.
    """

    limits: tuple[Limit, ...]
    asked: Limit

    @classmethod
    def of(cls, cost_limit: float | str, units: Grouping) -> "PriceLimits":
        """Return the limits for a table. Limits below the cheapest price are left out."""
        prices = units.prices
        assert prices is not None
        asked, least = CostLimit(cost_limit).of(prices), cheapest_price(units)
        amounts = {share * prices.full for share in SHARES} | {min(asked.amount, prices.full)}
        limits = [Limit(prices, amount) for amount in sorted(amounts)]
        return cls(tuple(limit for limit in limits if limit.allows(least)), asked)

    @property
    def most(self) -> int:
        """Position of the highest limit that the user's limit allows."""
        amounts = [limit.amount for limit in self.limits]
        prices = self.asked.prices
        amounts.append(prices.of(range(len(prices.own))))  # all columns
        return sum(bool(self.asked.allows(amount)) for amount in amounts)

    def planned(self, plan: AutoPlan) -> AutoPlan:
        """Return a plan in which the sizes of candidates number the price limits, from 1 on.

        A model that the plan trains at few numbers of columns is trained at every second limit.
        """
        numbers = tuple(range(1, len(self.limits) + 1))
        few = [model for model in FEW_SIZES if len(plan.sizes_of.get(model, SIZES)) < len(SIZES)]
        sizes_of = {
            model: numbers[::-2][::-1] if model in few else numbers for model in plan.sizes_of
        }
        paths = (*plan.paths, *(path + PER_PRICE for path in plan.paths))
        return plan._replace(paths=paths, sizes_of=sizes_of, wide=(), n_units=len(numbers) + 1)

    def order(self, order: Order, units: Grouping, per_price: bool) -> Order:
        """Return an order with the units that are selected within each limit."""
        limits = [replace(limit, per_price=per_price) for limit in self.limits]
        lists = affordable_lists(order.ranking, limits, fixed=units.fixed_units, most=SIZES[-1])
        subsets = dict(enumerate([*lists, np.arange(units.n_units)], 1))
        return Order(order.ranking, subsets)


def cheapest_price(units: Grouping) -> float:
    """Return the price of the fixed units or, without fixed units, of the cheapest unit."""
    assert units.prices is not None
    if units.fixed:
        return units.prices.of(units.fixed)
    return float(units.prices.added(units.fixed_units, np.arange(units.n_units)).min())
