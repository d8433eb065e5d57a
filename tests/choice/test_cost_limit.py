"""A price limit: the optimum by brute force, the quality of greedy searches, and odd prices."""

import warnings
from itertools import chain, combinations

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

import tamis
from tamis import FeatureCosts
from tamis.choice import CostLimit, HonestSize
from tamis.contract import SubsetCriterion
from tamis.criteria import JMI, FisherScore, Importances, MutualInformation, Scatter
from tamis.exceptions import (
    IncompatibleCriterion,
    InvalidParameter,
    NothingFound,
    NotProvenOptimal,
    RecordMismatch,
)
from tamis.meta import Fusion
from tamis.search import (
    Backward,
    Bidirectional,
    BranchAndBound,
    Exhaustive,
    FloatingForward,
    Forward,
    Genetic,
    Ranking,
    RecursiveElimination,
    Then,
)
from tamis.spec import parse, write
from tamis.testing.problem import make_table

EMPTY = np.empty(0, dtype=int)


class LinearFit(SubsetCriterion):
    """R² of a linear fit, which is monotone."""

    targets = frozenset({"regression"})
    monotone = True

    def _learn(self, X, y, **params):
        Z = np.column_stack([X - X.mean(axis=0), y - y.mean()])
        self._gram = Z.T @ Z

    def value(self, subset):
        if not len(subset):
            return 0.0
        right, gram = self._gram[subset, -1], self._gram[np.ix_(subset, subset)]
        return float(right @ np.linalg.solve(gram, right) / self._gram[-1, -1])


def draw_problem(seed, most=15):
    """Return a table of correlated columns with lognormal prices and three shared fees."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(8, most + 1))
    factors = rng.normal(size=(120, 4)) @ rng.normal(size=(4, d)) * rng.uniform(0, 1.2)
    X = factors + rng.normal(size=(120, d))
    y = X @ (rng.normal(size=d) * (rng.random(d) < 0.5)) + 2 * rng.normal(size=120)
    price, shared = rng.lognormal(1, 1, d), {}
    for group, start in enumerate(range(0, d - 1, 4)):
        members = rng.permutation(d)[:4] if seed % 2 else np.arange(start, min(start + 4, d))
        fee = float(rng.lognormal(2, 1))
        price[members] += fee
        shared[f"group {group}"] = (fee, members.tolist())
    return X, y, FeatureCosts(dict(enumerate(price.tolist())), shared=shared)


def fit(cls, limit, X, y, costs, criterion=None, **options):
    """Fit a search with a price limit."""
    search = cls(
        criterion or LinearFit(),
        n_features_to_select=CostLimit(limit),
        feature_costs=costs,
        **options,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingFound)
        return search.fit(X, y)


def value_of(search):
    return search.trace_.values[search.choice_.step]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("cls", [Exhaustive, BranchAndBound])
def test_exact_searches_agree_with_brute_force(cls, seed):
    X, y, costs = draw_problem(seed, most=9)
    d, share = X.shape[1], (0.1, 0.3, 0.6)[seed % 3]
    amount, judge = share * costs.of(range(d)), LinearFit().fit(X, y)
    subsets = chain.from_iterable(combinations(range(d), k) for k in range(d + 1))
    within = [np.array(s, dtype=int) for s in subsets if costs.of(s) <= amount]
    best = max(within, key=judge.value)
    search = fit(cls, f"{share:.0%}", X, y, costs)
    assert value_of(search) == pytest.approx(judge.value(best), rel=1e-9)
    assert search.get_support(indices=True).tolist() == best.tolist()
    assert search.cost_ == costs.of(best)
    assert cls is Exhaustive or (search.gap_ == 0 and search.n_evaluations_ < 2**d)
    if cls is BranchAndBound and len(best):
        assert search.choice_.reason.endswith("has a greater value (proven).")


def test_greedy_searches_come_close_to_the_optimum():
    """The value is at least 0.97 of the optimum, and never below that of the price-blind order."""
    shares, blind_shares = [], []
    for seed in range(100):
        X, y, costs = draw_problem(seed)
        limit = ("10%", "25%", "50%")[seed % 3]
        best = value_of(fit(BranchAndBound, limit, X, y, costs))
        found = fit(Forward, limit, X, y, costs)
        if best == 0:
            assert not found.n_features_
            continue
        order = Forward(LinearFit(), n_features_to_select=1.0).fit(X, y).order_
        blind = CostLimit(limit).of(found.units_.prices).fitting(order, EMPTY)
        judge = LinearFit().fit(X, y)
        shares.append(value_of(found) / best)
        blind_shares.append(judge.value(np.sort(blind)) / best)
    assert len(shares) > 80
    assert min(shares) >= 0.97
    assert np.mean(blind_shares) < 0.97
    assert (np.array(shares) >= np.array(blind_shares) - 1e-9).all()


def test_prices_may_have_any_unit():
    X, y, costs = draw_problem(3)
    prices, (fee, members) = costs.prices, next(iter(costs.shared.values()))
    expected = None
    for factor in (1, 1e6, 1e-9):
        scaled = FeatureCosts(
            {j: factor * p for j, p in prices.items()}, shared={"g": (factor * fee, members)}
        )
        found = [
            fit(cls, "30%", X, y, scaled).columns for cls in (Forward, Backward, BranchAndBound)
        ]
        expected = expected or found
        assert found == expected


def informative_table(n_noise=30):
    """Return a table whose two informative columns are last."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, n_noise + 2))
    return X, X[:, -1] + X[:, -2] + 0.5 * rng.normal(size=200)


@pytest.mark.parametrize("cls", [Forward, FloatingForward, Backward])
def test_cheap_noise_does_not_displace_an_expensive_column(cls):
    X, y = informative_table()
    costs = FeatureCosts({30: 1000.0, 31: 1000.0}, default=1.0)
    found = fit(cls, 1000, X, y, costs)
    assert {30, 31} & set(found.columns)


def test_columns_without_a_price_come_first():
    X, y = informative_table(6)
    costs = FeatureCosts({6: 10.0, 7: 10.0}, default=0.0)
    assert fit(Forward, 0, X, y, costs).columns == [0, 1, 2, 3, 4, 5]
    assert fit(Forward, 10, X, y, costs).n_features_ == 7
    free = fit(Forward, 0, X, y, FeatureCosts({}, default=0.0))
    assert (free.n_features_, free.cost_) == (8, 0)


@pytest.mark.parametrize(
    "search",
    [
        *(Forward(Scatter("J3")), Backward(Scatter("J3")), BranchAndBound(Scatter("J3"))),
        *(Forward(JMI()), Ranking(FisherScore()), Exhaustive(Scatter("J3"))),
        RecursiveElimination(Importances(RidgeClassifier())),
        Fusion([Ranking(FisherScore()), Forward(JMI())]),
    ],
    ids=lambda search: write(search, strict=False),
)
def test_a_limit_below_every_price_selects_nothing_and_warns(search):
    X, y = make_table()
    search.set_params(
        feature_costs=FeatureCosts({}, default=2.0), n_features_to_select=CostLimit(1)
    )
    with pytest.warns(NothingFound, match="No column fits within the limit of 1; the cheapest"):
        search.fit(X, y)
    assert (search.n_features_, search.cost_, search.columns) == (0, 0, [])
    assert search.record_.finished


@pytest.mark.parametrize(
    "search",
    [
        *(Forward(JMI()), Forward(MutualInformation()), Ranking(FisherScore())),
        *(
            Ranking(Importances(RidgeClassifier())),
            Fusion([Ranking(FisherScore()), Forward(JMI())]),
        ),
        RecursiveElimination(Importances(RidgeClassifier())),
        RecursiveElimination(Importances(RidgeClassifier()), step=3),
    ],
    ids=lambda search: write(search, strict=False),
)
@pytest.mark.parametrize("limit", [3, "40%", 1000])
def test_criteria_that_value_no_subset_fill_the_limit(search, limit):
    X, y = make_table()
    costs = FeatureCosts({j: 1.0 + j for j in range(7)}, shared={"visit": (1.0, [0, 1])})
    search.set_params(feature_costs=costs, n_features_to_select=CostLimit(limit)).fit(X, y)
    amount = 0.4 * costs.of(range(7)) if limit == "40%" else limit
    assert 0 < search.cost_ == costs.of(search.columns) <= amount
    left = set(range(7)) - set(search.columns)
    assert all(costs.of([*search.columns, j]) > amount for j in left)
    assert search.choice_.reason.endswith(".")
    again = type(search)(**search.get_params(deep=False))
    assert again.resume(X, y, record=search.record_).columns == search.columns


def test_fixed_features_are_paid_too():
    X, y = make_table()
    costs = FeatureCosts({j: 1.0 + j for j in range(7)})
    for cls in (Forward, Backward, BranchAndBound, Exhaustive):
        found = fit(cls, 10, X, y, costs, Scatter("J3"), fixed_features=[5])
        assert 5 in found.columns
        assert found.cost_ == costs.of(found.columns) <= 10
    with pytest.raises(InvalidParameter, match="a limit of at least 6, the price of the fixed_fea"):
        fit(Forward, 5, X, y, costs, Scatter("J3"), fixed_features=[5])


def test_the_encoded_columns_of_a_category_share_one_price():
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    town = rng.choice(["a", "b", "c", "d"], 200)
    frame = pl.DataFrame({"town": town, "x": rng.normal(size=200), "when": rng.normal(size=200)})
    y = np.where(rng.random(200) < 0.7, (town == "a") | (town == "b"), rng.random(200) < 0.5)
    costs = FeatureCosts({"town": 5, "x": 1, "when": 9})
    search = tamis.table.TableSelector(
        Forward(Scatter("J3", ridge=1e-3), feature_costs=costs, n_features_to_select=CostLimit(6))
    )
    assert search.fit(frame, y).columns == ["town", "x"]
    assert search.cost_ == search.search_.cost_ == 6
    assert search.units_.prices.full == search.search_.units_.prices.full == 15


def test_a_share_is_of_the_full_price_in_both_parts_of_a_composition():
    X, y = make_table()
    search = Then(
        Ranking(FisherScore(), n_features_to_select=4),
        Forward(Scatter("J3"), n_features_to_select=CostLimit("30%")),
        feature_costs=FeatureCosts({}, default=1.0),
    )
    assert search.fit(X, y).cost_ == 2
    assert "the limit of 2.1 (30% of the full price)" in search.choice_.reason


@pytest.mark.parametrize(
    ("selector", "error", "sentence"),
    [
        (
            Forward(JMI(), n_features_to_select=CostLimit(5)),
            InvalidParameter,
            "needs the prices of",
        ),
        (
            Then(Ranking(JMI()), Forward(JMI(), n_features_to_select=CostLimit(5))),
            InvalidParameter,
            "CostLimit needs the prices of the columns. Write feature_costs=",
        ),
        (
            Bidirectional(Scatter(), n_features_to_select=CostLimit(5)),
            IncompatibleCriterion,
            "adds or removes one column at a time, and Bidirectional does not",
        ),
        (
            Genetic(Scatter(), n_features_to_select=CostLimit(5)),
            IncompatibleCriterion,
            "and Genetic does not",
        ),
        (
            HonestSize(Forward(JMI(), n_features_to_select=CostLimit(5))),
            IncompatibleCriterion,
            "HonestSize chooses the number of columns itself, so its search cannot have CostLimit",
        ),
        *(
            (
                Forward(JMI(), n_features_to_select=CostLimit(limit)),
                InvalidParameter,
                "CostLimit needs",
            )
            for limit in (-1, float("nan"), True, None, "ten", "-5%", "120%", "10")
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_limits_that_cannot_work_are_refused(selector, error, sentence):
    with pytest.raises(error, match=sentence):
        selector.fit(*make_table())


def test_a_record_under_a_limit_is_not_extended():
    X, y = make_table()
    costs = FeatureCosts({}, default=1.0)
    limited = fit(Forward, 3, X, y, costs, Scatter("J3")).record_
    plain = Forward(Scatter("J3"), feature_costs=costs, n_features_to_select=3).fit(X, y).record_
    for record, asked in ((limited, 5), (limited, CostLimit(4)), (plain, CostLimit(4))):
        search = Forward(Scatter("J3"), feature_costs=costs, n_features_to_select=asked)
        with pytest.raises(RecordMismatch, match="depend on the number of features asked for"):
            search.resume(X, y, record=record)


def test_a_spent_budget_leaves_a_list_within_the_limit_and_a_bound():
    X, y, costs = draw_problem(8)
    whole = fit(BranchAndBound, "50%", X, y, costs)
    with pytest.warns(NotProvenOptimal):
        short = fit(BranchAndBound, "50%", X, y, costs, max_evaluations=1)
    assert short.cost_ <= 0.5 * costs.of(range(X.shape[1]))
    assert value_of(short) + short.gap_ >= value_of(whole) - 1e-12
    assert f"is at most {short.gap_:.4g} higher." in short.choice_.reason
    resumed = BranchAndBound(
        LinearFit(), n_features_to_select=CostLimit("50%"), feature_costs=costs
    ).resume(X, y, record=short.record_)
    assert resumed.columns == whole.columns


def test_meta_selectors_report_the_price():
    X, y = informative_table(10)
    costs = FeatureCosts({}, default=2.5)
    search = HonestSize(Ranking(LinearFit(), by="alone", feature_costs=costs), random_state=0)
    plain = HonestSize(Ranking(LinearFit(), by="alone"), random_state=0).fit(X, y)
    assert search.fit(X, y).columns == plain.columns == [10, 11]
    assert search.cost_ == 5
    assert "price: 5; all columns: 30" in search.summary()


def test_select_takes_prices_and_a_limit():
    pytest.importorskip("polars")
    pd = pytest.importorskip("pandas")
    X, y = make_table()
    frame = pd.DataFrame(X, columns=list("abcdefg")).assign(y=y)
    costs = FeatureCosts({"a": 3}, default=1.0)
    search = tamis.select(
        frame, method="jmi", target="y", feature_costs=costs, cost_limit=2, random_state=0
    )
    assert search.cost_ == 2
    built = parse(write(search, strict=True))
    assert built.feature_costs.of(["a", "b"]) == 4
    assert built.n_features_to_select.limit == 2
    with pytest.raises(InvalidParameter, match="needs either n_features_to_select"):
        tamis.select(X, y, "jmi", feature_costs=costs, cost_limit=2, n_features_to_select=3)
