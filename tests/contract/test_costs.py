"""Prices of columns: the price of a subset, invalid prices, files of prices."""

from itertools import combinations

import numpy as np
import pytest

from tamis import FeatureCosts
from tamis.contract import Record
from tamis.contract.costs import Limit, Prices
from tamis.contract.units import Grouping, resolve_units
from tamis.criteria import Scatter
from tamis.exceptions import InvalidParameter, InvalidTable, NothingToAdd, RecordMismatch
from tamis.search import Forward, Ranking, Then
from tamis.testing.problem import make_table

NAMES = ["a", "b", "c", "d", "e"]
COSTS = FeatureCosts(
    {"a": 1, "b": 7.27, "c": 5.20, "d": 3, "e": 0.5}, shared={"blood": (2.10, ["b", "c"])}
)


def draw_prices(seed):
    """Return random prices of up to 8 units, over twelve orders of magnitude, with some zeros."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    own = rng.lognormal(0, 4, d) * 10.0 ** rng.integers(-6, 7) * (rng.random(d) < 0.8)
    fees = [
        (float(rng.lognormal(0, 3)), tuple(np.flatnonzero(rng.random(d) < 0.5).tolist()))
        for _ in range(rng.integers(0, 4))
    ]
    return Prices(tuple(own.tolist()), tuple(fee for fee in fees if fee[1])), d, rng


@pytest.mark.parametrize("seed", range(30))
def test_the_price_is_monotone_and_has_no_order(seed):
    prices, d, rng = draw_prices(seed)
    for _ in range(20):
        subset = np.flatnonzero(rng.random(d) < 0.5)
        price = prices.of(subset)
        paid = [fee for fee, units in prices.fees if set(units) & set(subset.tolist())]
        assert price == pytest.approx(sum(prices.own[j] for j in subset) + sum(paid), rel=1e-11)
        assert price == prices.of(rng.permutation(subset)) == prices.of([*subset, *subset])
        left = np.setdiff1d(np.arange(d), subset)
        larger = [prices.of([*subset, j]) for j in left]
        assert all(more >= price for more in larger)
        assert price + prices.added(subset, left) == pytest.approx(larger, rel=1e-9)
        assert prices.shares(subset).sum() == pytest.approx(price, rel=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_prices_of_fewer_units_are_the_same_prices(seed):
    prices, d, rng = draw_prices(seed)
    units = rng.permutation(d)[: max(1, d - 2)]
    fewer = prices.restricted(units)
    assert fewer.full == prices.full
    for n in range(len(units) + 1):
        for some in combinations(range(len(units)), n):
            assert fewer.of(some) == prices.of(units[list(some)])
    assert Prices.from_dict(prices.to_dict()) == prices


@pytest.mark.parametrize("seed", range(10))
def test_an_order_is_bought_from_the_front_and_skips_what_does_not_fit(seed):
    prices, d, rng = draw_prices(seed)
    order, amount = rng.permutation(d), prices.of(range(d)) * rng.random()
    kept = []
    for unit in order.tolist():
        if prices.of([*kept, unit]) <= amount * (1 + 1e-9):
            kept.append(unit)
    assert Limit(prices, amount).fitting(order, np.empty(0, dtype=int)).tolist() == kept


def test_a_fee_is_paid_once():
    assert COSTS.of("b") == COSTS.of(["b"]) == 7.27
    assert COSTS.of(["b", "c"]) == COSTS.of(["c", "b", "b"]) == 10.37
    assert COSTS.of([]) == 0
    assert FeatureCosts({"a": 2}, default=0.5).of(["a", "z"]) == 2.5


def test_the_groups_with_the_greatest_gain_per_price_are_tried():
    """Group i has the units 2 i and 2 i + 1, and costs i + 1 + 2."""
    prices = Prices((1.0,) * 40, tuple((i + 1.0, (2 * i, 2 * i + 1)) for i in range(20)))
    limit = Limit(prices, 100.0, per_price=True)
    candidates, gains = np.arange(40), np.ones(40)
    found = limit.groups(candidates, gains)
    assert [group.tolist() for group in found] == [[2 * i, 2 * i + 1] for i in range(10)]
    gains[30:] = 100.0
    found = limit.groups(candidates, gains, unpaid=np.array([39]))
    assert [group[0] for group in found] == [0, 2, 4, 6, 8, 10, 30, 32, 34, 36]
    found = limit.groups(candidates[1:], gains[1:], unpaid=np.array([39]))
    assert [group[0] for group in found] == [2, 4, 6, 8, 10, 12, 30, 32, 34, 36]


def test_rounding_does_not_exceed_a_limit():
    limit = Limit(Prices((0.1, 0.2, 1e-3)), 0.3)
    assert limit.affords([0, 1])
    with pytest.raises(NothingToAdd):
        limit.affordable(np.array([0, 1]), np.array([2]))


def test_units_have_the_price_of_all_their_columns():
    grouping = resolve_units("Forward", {"pair": ["b", "d"]}, "a", 5, NAMES, COSTS)
    assert [grouping.prices.of([unit]) for unit in range(4)] == [1, 10.27, 5.2, 0.5]
    assert grouping.prices.of([1, 2]) == pytest.approx(13.37)
    assert grouping.prices.full == pytest.approx(14.87)
    assert Grouping.from_dict(5, grouping.to_dict()) == grouping
    assert resolve_units("Forward", None, None, 5, NAMES, COSTS) != Grouping(5)


@pytest.mark.parametrize(
    ("costs", "sentence"),
    [
        ({"a": 1}, "needs feature_costs as FeatureCosts, not {'a': 1}"),
        (FeatureCosts("costs.csv"), r"needs a dictionary .* or FeatureCosts.read\('costs.csv'\)"),
        (FeatureCosts({"q": 1}, default=1), "names the column 'q', which does not exist"),
        (FeatureCosts({9: 1}, default=1), "indices from 0 to 4, not 9"),
        (FeatureCosts({"a": 1, 0: 2}, default=1), "has two prices for 'a'"),
        (FeatureCosts({"a": 1, "b": 1}), "no price for c, d, e. Add .* default=1.0"),
        (FeatureCosts({"a": -1}, default=1), "the price of 'a' to be .* from 0 to .*, got -1"),
        (FeatureCosts({"a": float("nan")}, default=1), "the price of 'a' .* got nan"),
        (FeatureCosts({"a": float("inf")}, default=1), "the price of 'a' .* got inf"),
        (FeatureCosts({"a": True}, default=1), "the price of 'a' .* got True"),
        (FeatureCosts({"a": "7"}, default=1), "the price of 'a' .* got '7'"),
        (FeatureCosts({}, default=-2), "default to be .* got -2"),
        (FeatureCosts({}, default=1, shared=["a"]), "needs shared as a dictionary"),
        (
            FeatureCosts({}, default=1, shared={"g": ["a", "b"]}),
            r"list of columns in shared\['g'\]",
        ),
        (FeatureCosts({}, default=1, shared={"g": (1, "ab")}), r"list of columns in shared\['g'\]"),
        (FeatureCosts({}, default=1, shared={"g": (-1, ["a"])}), "the fee of 'g' .* got -1"),
        (FeatureCosts({}, default=1, shared={"g": (1, ["q"])}), r"shared\['g'\], names .* 'q'"),
        (FeatureCosts({}, default=1, shared={"g": (3, ["a"])}), "price of a is less than its fees"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_prices_are_refused(costs, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        resolve_units("Forward", None, None, 5, NAMES, costs)


HOSTILE = [
    *("a,b", 'say "x"', "<script>", "=1+1", "naïve\u202e", " spaced"),
    *("two\nlines", "\u2028\x0b\x1c\x85;"),
]


def test_prices_are_read_from_a_file(tmp_path):
    path = tmp_path / "costs.csv"
    path.write_text("Name;cost;group;fee;note\na;1;;;x\nb;7.27;blood;2.10;\nc;5.2;blood;2.1;\n")
    costs = FeatureCosts.read(path, default=1)
    assert costs.prices == {"a": 1, "b": 7.27, "c": 5.2}
    assert costs.shared == {"blood": (2.1, ["b", "c"])}
    assert costs.of(["b", "c", "z"]) == 11.37
    path.write_text("name,cost,group,later\nb,102.9,test,16.6\nc,87.3,test,1\nd,90,test,\n")
    assert FeatureCosts.read(path).shared == {"test": (86.3, ["b", "c", "d"])}
    quoted = ['"' + name.replace('"', '""') + '"' for name in HOSTILE]
    path.write_text("name,cost\n" + "\n".join(f"{name},2" for name in quoted), encoding="utf-8")
    assert list(FeatureCosts.read(path).prices) == HOSTILE
    path.write_text("\nname\tcost\t\n a \t 1 \n\t\t\nb\t2\t\n\n")
    assert FeatureCosts.read(path).prices == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "needs the columns name and cost"),
        ("column,price\na,1\n", "needs the columns name and cost.* it has column, price"),
        ("name,cost\na,1\na,2\n", "line 3: 'a' has two prices"),
        ("name,cost\na,many\n", "line 2: a price needs a number such as 7.27, not 'many'"),
        ("name,cost\na\n", "line 2: a price needs a number"),
        ("name,cost,group\na,1,g\n", "the group 'g' has no fee"),
        (
            "name,cost\na,1,000\n",
            "line 2: there are 3 values for 2 columns. Write prices as 1000.50",
        ),
        ("name;cost\na;1,5\n", "line 2: a price needs a number such as 7.27, not '1,5'"),
        ("name,cost,cost\na,1,2\n", "each once; it has name, cost, cost"),
        ("name,cost\na,1\n" + "x" * 200_000 + ",1\n", "line 3, cannot be read: field larger"),
        ("name,cost,group,fee\na,3,g,1\nb,3,g,2\n", "the group 'g' has the fees 1.0, 2.0"),
    ],
    ids=repr,
)
def test_damaged_files_of_prices_are_refused(text, sentence, tmp_path):
    path = tmp_path / "costs.csv"
    path.write_text(text)
    with pytest.raises(InvalidTable, match=sentence):
        FeatureCosts.read(path)


def test_a_missing_file_of_prices_is_refused(tmp_path):
    with pytest.raises(InvalidTable, match="cannot be read"):
        FeatureCosts.read(tmp_path / "none.csv")


PRICED = FeatureCosts({j: j + 1.0 for j in range(7)}, shared={"g": (0.5, [2, 3])})


def test_a_record_has_the_prices_and_refuses_others():
    X, y = make_table()
    search = Forward(Scatter("J3"), n_features_to_select=3, feature_costs=PRICED).fit(X, y)
    stored = Record.from_dict(search.record_.to_dict())
    assert stored.grouping == search.units_
    assert stored.grouping.prices.of(stored.kept) == search.cost_ == PRICED.of(search.columns)
    again = Forward(Scatter("J3"), n_features_to_select=4, feature_costs=PRICED)
    assert again.resume(X, y, record=stored).cost_ == PRICED.of(again.columns)
    for others in (None, FeatureCosts({}, default=1.0)):
        with pytest.raises(RecordMismatch, match="fixed_features and feature_costs"):
            Forward(Scatter("J3"), feature_costs=others).resume(X, y, record=stored)


@pytest.mark.parametrize(
    "change",
    [
        lambda prices: prices.pop("own"),
        lambda prices: prices["own"].pop(),
        lambda prices: prices["own"].__setitem__(0, -1.0),
        lambda prices: prices["own"].__setitem__(0, "1"),
        lambda prices: prices["fees"].append([1.0, [9]]),
        lambda prices: prices.__setitem__("fees", None),
        lambda prices: prices.__setitem__("full", None),
    ],
)
def test_damaged_prices_in_a_record_are_refused(change):
    search = Forward(Scatter("J3"), n_features_to_select=3, feature_costs=PRICED)
    plain = search.fit(*make_table()).record_.to_dict()
    del plain["checksum"]
    change(plain["units"]["prices"])
    with pytest.raises(InvalidTable, match="units"):
        Record.from_dict(plain)


def test_a_composition_has_the_prices_for_both_parts():
    X, y = make_table()
    parts = Ranking(Scatter("J3"), n_features_to_select=5), Forward(Scatter("J3"))
    search = Then(*parts, feature_costs=PRICED).fit(X, y)
    assert search.cost_ == PRICED.of(search.columns)
    assert search.first_.cost_ == PRICED.of(search.first_.record_.kept.tolist())
    assert search.second_.cost_ == search.cost_
    wrong = Then(parts[0], Forward(Scatter("J3"), feature_costs=PRICED))
    with pytest.raises(InvalidParameter, match="needs feature_costs for both searches"):
        wrong.fit(X, y)
