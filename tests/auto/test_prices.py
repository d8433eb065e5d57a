"""The automatic selection with prices and a price limit."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

import tamis
from tamis import FeatureCosts
from tamis._format import format_count
from tamis.auto import Auto
from tamis.auto.held_out import HeldOut
from tamis.auto.orders import PER_PRICE, Order
from tamis.auto.price_limits import PriceLimits
from tamis.auto.sentences import describe_front
from tamis.choice.front import PricedList, undominated
from tamis.contract import Record
from tamis.contract.units import resolve_units
from tamis.exceptions import InvalidParameter, NothingFound, RecordMismatch

#: Columns 2 to 5 need the same test. Together they predict better than column 6 for its price.
COSTS = FeatureCosts(
    {0: 1.0, 1: 1.0, 2: 31.0, 3: 31.0, 4: 31.0, 5: 31.0, 6: 36.0},
    shared={"test": (30.0, [2, 3, 4, 5])},
)
PRICED = Auto(budget=0.5, random_state=0, feature_costs=COSTS, size="best")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 7))
    y = 0.5 * X[:, 0] + X[:, 2:6].sum(axis=1) + 1.2 * X[:, 6] + rng.normal(size=300)
    return X, y


@pytest.fixture(scope="module")
def fitted(table):
    return clone(PRICED).set_params(cost_limit=38).fit(*table)


def test_a_limit_buys_a_group_that_predicts_better_than_one_column(fitted):
    assert {0, 2, 3, 4, 5} <= set(fitted.columns)
    assert fitted.cost_ == COSTS.of(fitted.columns) <= 38
    assert fitted.path_.endswith(PER_PRICE)
    assert "within the limit of 38 (order: " in fitted.choice_.reason
    assert f"price: {fitted.cost_:g}; all columns: 72" in fitted.summary()


def test_prices_without_a_limit_change_nothing(table):
    plain = Auto(budget=0.5, random_state=0).fit(*table)
    priced = Auto(budget=0.5, random_state=0, feature_costs=COSTS).fit(*table)
    assert priced.columns == plain.columns
    assert priced.curve_ == plain.curve_
    assert priced.error_ == plain.error_
    assert priced.front_ == plain.front_ == []
    assert priced.cost_ == COSTS.of(priced.columns)


def test_the_front_has_the_price_of_each_list(fitted, table):
    front = fitted.front_
    assert len(front) >= 3
    assert front == undominated(front)
    for one in front:
        assert one.price == COSTS.of(one.columns)
    assert any(one.blind_loss > one.loss for one in front)
    chosen = next(one for one in front if one.columns == tuple(fitted.columns))
    # both are corrected, but for the selection among different numbers of limits
    assert chosen.loss == pytest.approx(fitted.error_.rmse, rel=0.02)
    lines = fitted.summary().splitlines()
    assert "error within each price:" in lines
    assert sum(line.startswith("  ") for line in lines) == len(front)


def test_a_line_of_the_front_names_the_columns_that_are_dropped():
    front = [PricedList(2, 1.0, 0.1, ("a", "b")), PricedList(9, 0.5, 0.1, ("b", "c"))]
    facts = SimpleNamespace(front_=front, error_guess_=HeldOut(2.0, 0.1), _counted=format_count)
    _, first, second = describe_front(facts)
    assert first.endswith("2 columns, adds a, b")
    assert second.endswith("2 columns, adds c, drops a")


def test_the_curve_has_the_limit_of_each_list(fitted):
    limits = sorted({point.limit for point in fitted.curve_})
    shares = [72 * share for share in (0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)]
    assert limits == pytest.approx(sorted([*shares, 38]))
    mine = [point for point in fitted.curve_ if point.path == fitted.path_]
    assert {point.size for point in mine} == set(fitted.lists_) == set(fitted.fold_lists_)
    for size, units in fitted.lists_.items():
        assert len(units) == size


def test_the_lists_of_the_folds_are_those_of_the_candidates(fitted):
    """Each list fits within a limit, and is the one whose predictions were compared."""
    for size, lists in fitted.fold_lists_.items():
        point = min((p for p in fitted.curve_ if (p.path, p.size) == (fitted.path_, size)),
                    key=lambda p: p.loss)  # fmt: skip
        for units in (fitted.lists_[size], *lists):
            assert COSTS.of(units.tolist()) <= point.limit * (1 + 1e-9)


def test_the_rule_prefers_the_lowest_limit(table):
    best = clone(PRICED).set_params(cost_limit="100%").fit(*table)
    short = clone(PRICED).set_params(cost_limit="100%", size="short").fit(*table)
    assert short.cost_ <= best.cost_
    assert short.error_.loss >= best.error_.loss


def test_a_record_resumes_and_refuses_another_limit(fitted, table):
    stored = Record.from_dict(json.loads(json.dumps(fitted.record_.to_dict())))
    again = clone(PRICED).set_params(cost_limit=38).resume(*table, record=stored)
    assert again.columns == fitted.columns
    assert again.front_ == fitted.front_
    assert again.curve_ == fitted.curve_
    assert again.stability_.nogueira == fitted.stability_.nogueira
    with pytest.raises(RecordMismatch):
        clone(PRICED).set_params(cost_limit=20).resume(*table, record=stored)


def test_processes_change_nothing(fitted, table):
    again = clone(PRICED).set_params(cost_limit=38, n_jobs=2).fit(*table)
    assert again.curve_ == fitted.curve_


def test_classes_names_and_encoded_columns(table):
    pl = pytest.importorskip("polars")
    X, y = table
    frame = pl.DataFrame(X, schema=list("abcdefg"))
    town = np.where(X[:, 4] > 0, "x", np.where(X[:, 0] > 0, "y", "z"))
    frame = frame.with_columns(pl.Series("e", town), pl.Series("y", y > 0))
    costs = FeatureCosts({"e": 31.0, "f": 31.0, "g": 40.0}, shared={"test": (30.0, ["e", "f"])},
                         default=1.0)  # fmt: skip
    found = tamis.select(frame, target="y", feature_costs=costs, cost_limit="50%", random_state=0)
    assert {"e", "f"} <= set(found.columns)
    assert found.cost_ == costs.of(found.columns) <= 0.5 * 76
    for one in found.search_.front_:
        assert one.price == costs.of(one.columns)
        assert 0 < one.loss < 0.5
    assert "% error, " in found.summary()


def test_fixed_features_and_groups_are_paid(table):
    groups = {"pair": [0, 1]}
    found = clone(PRICED).set_params(
        cost_limit=38, feature_groups=groups, fixed_features=[3], size="balanced"
    )
    found.fit(*table)
    assert 3 in found.columns
    assert found.cost_ == COSTS.of(found.columns) <= 38
    assert (0 in found.columns) == (1 in found.columns)
    for one in found.front_:
        assert 3 in one.columns
    with pytest.raises(InvalidParameter, match="a limit of at least 31, the price of the fixed"):
        found.set_params(cost_limit=10).fit(*table)


def test_a_limit_below_every_price_selects_nothing(table):
    with pytest.warns(NothingFound, match=r"within the limit of 0\.5; the cheapest costs 1\."):
        found = clone(PRICED).set_params(cost_limit=0.5).fit(*table)
    assert (found.columns, found.cost_, found.front_) == ([], 0, [])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"cost_limit": -1}, "CostLimit needs limit to be a number of at least 0"),
        ({"cost_limit": "ten"}, "CostLimit needs limit to be"),
        ({"cost_limit": 5, "n_features_to_select": 2}, "needs either n_features_to_select or"),
        ({"cost_limit": 5, "feature_costs": None}, "CostLimit needs the prices of the columns"),
        ({"feature_costs": {"a": 1}}, "Auto needs feature_costs as FeatureCosts"),
    ],
    ids=str,
)
def test_limits_that_cannot_work_are_refused(options, sentence, table):
    with pytest.raises(InvalidParameter, match=sentence):
        clone(PRICED).set_params(**options).fit(*table)


def test_lists_hold_at_most_40_of_many_columns():
    units = resolve_units("Auto", None, None, 3000, None, FeatureCosts({}, default=1.0))
    priced = PriceLimits.of("10%", units)
    order = np.random.default_rng(0).permutation(3000)
    for per_price in (False, True):
        found = priced.order(Order(order), units, per_price)
        assert_array_equal(found.first(len(priced.limits)), np.sort(order[:40]))
        assert len(found.first(len(priced.limits) + 1)) == 3000
    assert [limit.amount for limit in priced.limits[: priced.most]] == pytest.approx([75, 150, 300])
