"""Selections that hold across environments: slopes, tests of equality, and errors."""

import json
import warnings
from datetime import date
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.preprocessing import StandardScaler

from tamis.contract import Record
from tamis.contract.units import Grouping
from tamis.criteria import Correlation
from tamis.exceptions import DegenerateData, InvalidParameter, InvalidTarget
from tamis.meta import HonestSize, InvariantSelection
from tamis.meta.invariant_selection import SlopeTests, chow_test, equal_slopes, robust_slopes
from tamis.search import Ranking

SITES = np.repeat(["a", "b", "c"], 100)


def flipped(seed=0, d=8):
    """Return a table in which column 1 is stable and the relation to column 5 flips at site c."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, d))
    return X, X[:, 1] + 2 * np.where(SITES == "c", -1, 1) * X[:, 5] + rng.normal(size=300)


def top(n):
    return Ranking(Correlation(), n_features_to_select=n)


def test_slopes_and_robust_errors_are_those_of_least_squares_by_hand():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(60, 3))
    y = Z @ [1.0, 0.0, -2.0] + rng.normal(size=60) * (1 + np.abs(Z[:, 0]))
    slopes, covariance = robust_slopes(Z, y, logistic=False)
    model = LinearRegression().fit(Z, y)
    assert_allclose(slopes, model.coef_)
    A = np.column_stack([np.ones(60), Z])
    inverse = np.linalg.inv(A.T @ A)
    hat = np.diag(A @ inverse @ A.T)
    e = (y - model.predict(Z)) / (1 - hat)  # HC3
    assert_allclose(covariance, (inverse @ A.T @ np.diag(e**2) @ A @ inverse)[1:, 1:])


def test_the_slope_of_the_log_odds_does_not_depend_on_the_share_of_a_class():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40_000, 1))
    labels = rng.random(40_000) < 1 / (1 + np.exp(-0.8 * Z[:, 0]))
    fewer = labels & (rng.random(40_000) < 0.2) | ~labels & (rng.random(40_000) < 0.9)
    for rows in (slice(None), fewer):
        slope, covariance = robust_slopes(Z[rows], labels[rows].astype(float), logistic=True)
        assert abs(slope[0] - 0.8) < 4 * np.sqrt(covariance[0, 0])


def test_a_column_that_separates_the_classes_has_finite_slopes():
    Z = np.linspace(-1, 1, 40)[:, None]
    slope, covariance = robust_slopes(Z, (Z[:, 0] > 0).astype(float), logistic=True)
    assert np.isfinite(slope).all()
    assert np.isfinite(covariance).all()


def test_cochrans_q_is_the_weighted_sum_of_squares_around_the_pooled_slope():
    b, variance = np.array([1.0, 1.4, 0.2]), np.array([0.1, 0.2, 0.05])
    pooled = (b / variance).sum() / (1 / variance).sum()
    expected = stats.chi2.sf(((b - pooled) ** 2 / variance).sum(), 2)
    assert_allclose(equal_slopes(b[:, None], variance[:, None, None]), expected)


def test_an_environment_without_information_is_left_out_of_the_test():
    b, variance = np.array([1.0, 0.0, 1.2]), np.array([0.1, 0.0, 0.05])
    expected = equal_slopes(b[[0, 2], None], variance[[0, 2], None, None])
    assert_allclose(equal_slopes(b[:, None], variance[:, None, None]), expected)
    assert equal_slopes(np.zeros((2, 1)), np.zeros((2, 1, 1))) == 1.0


def test_an_environment_with_a_single_class_is_left_out_of_the_test():
    X, y = flipped(seed=1)
    labels = np.where(SITES == "a", "no", np.where(X[:, 1] + y > 0, "yes", "no"))
    whole = InvariantSelection(top(2), random_state=0).fit(X, labels, environments=SITES)
    assert np.isnan(whole.slopes_[0]).all()
    assert np.isfinite(whole.slopes_[1:, 1]).all()
    assert whole.support_[1]


def test_indicators_of_all_levels_are_tested_as_without_one_of_them():
    rng = np.random.default_rng(3)
    level = rng.integers(4, size=300)
    y = level * np.where(SITES == "c", -1, 1) + rng.normal(size=300)
    level[SITES == "a"] = np.minimum(level[SITES == "a"], 2)  # site a has no level 3
    X, codes = np.eye(4)[level], np.repeat([0, 1, 2], 100)
    for target in (y, 1e-2 * y + 1):
        p = []
        for wide in (X, X[:, 1:]):
            units = Grouping(wide.shape[1], (("level", tuple(range(wide.shape[1]))),))
            tests = SlopeTests(wide, target[:, None], codes, "regression", units)
            p.append(tests.test(np.array([0]), 0).p)
        assert_allclose(np.log(p[0]), np.log(p[1]), rtol=1e-6)


def test_the_level_holds_for_a_category_with_a_level_that_some_environments_lack():
    rejected, units = 0, Grouping(4, (("level", (0, 1, 2, 3)),))
    for seed in range(200):
        rng = np.random.default_rng(seed)
        level = rng.integers(4, size=300)
        level[:100] = np.minimum(level[:100], 2)
        y = 10 + level + rng.normal(size=300)
        tests = SlopeTests(
            np.eye(4)[level], y[:, None], np.repeat([0, 1, 2], 100), "regression", units
        )
        rejected += tests.test(np.array([0]), 0).p < 0.05
    assert rejected <= 20


def test_the_level_holds_for_rare_classes():
    rejected = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(450, 1))
        y = rng.random(450) < 1 / (1 + np.exp(4 - x[:, 0]))  # about four rows in an environment
        tests = SlopeTests(
            x, y[:, None].astype(float), np.repeat([0, 1, 2], 150), "classification", Grouping(1)
        )
        rejected += tests.test(np.array([0]), 0).p < 0.05
    assert rejected <= 20


def test_chows_test_compares_pooled_and_separate_regressions():
    X, y = flipped()
    table = np.column_stack([np.ones(300), X, y])
    parts = [np.flatnonzero(site == SITES) for site in "abc"]
    grams = [table[rows].T @ table[rows] for rows in parts]
    at = np.array([0, 2, 4])

    def squares(rows):
        model = LinearRegression().fit(X[np.ix_(rows, at[1:] - 1)], y[rows])
        return ((y[rows] - model.predict(X[np.ix_(rows, at[1:] - 1)])) ** 2).sum()

    pooled, apart = squares(np.arange(300)), sum(map(squares, parts))
    F = (pooled - apart) / 6 / (apart / (300 - 9))
    p, rss, rank = chow_test(grams, at, 300)
    assert_allclose([p, rss], [stats.f.sf(F, 6, 291), pooled])
    assert rank == 3


def test_a_set_with_as_many_columns_as_rows_is_not_accepted():
    rng = np.random.default_rng(0)
    table = np.column_stack([np.ones(12), rng.normal(size=(12, 6))])
    grams = [rows.T @ rows for rows in (table[:6], table[6:])]
    assert chow_test(grams, np.arange(6), 12)[0] == 0.0
    assert chow_test(grams, np.arange(4), 12)[0] > 0.0


def test_a_column_whose_relation_flips_is_dropped():
    X, y = flipped()
    found = InvariantSelection(top(2), random_state=0).fit(X, y, environments=SITES)
    assert_array_equal(found.get_support(indices=True), [1])
    assert found.p_equal_[5] < 1e-6
    assert np.isnan(found.p_equal_[0])
    assert found.slopes_.shape == (3, 8)
    Z = StandardScaler().fit_transform(X)
    expected = LinearRegression().fit(Z[SITES == "c", 5:6], y[SITES == "c"]).coef_[0]
    assert_allclose(found.slopes_[2, 5], expected)
    assert "3 environments" in found.choice_.reason


def test_classes_are_compared_by_log_odds():
    X, y = flipped()
    found = InvariantSelection(top(2), random_state=0).fit(X, y > 0, environments=SITES)
    assert_array_equal(found.get_support(indices=True), [1])
    three = np.digitize(y, [-1, 1]).astype(str)
    found = InvariantSelection(top(2), random_state=0).fit(X, three, environments=SITES)
    assert not found.support_[5]


def test_the_subset_is_the_best_of_all_subsets_that_are_not_rejected():
    X, y = flipped()
    found = InvariantSelection(top(5), how="subset", max_columns=3, random_state=0)
    found.fit(X, y, environments=SITES)
    candidates = Ranking(Correlation(), n_features_to_select=5).fit(X, y).get_support(indices=True)
    parts = [np.flatnonzero(site == SITES) for site in "abc"]
    best = (np.inf, None)
    for size in range(4):
        for subset in combinations(candidates, size):
            A = np.column_stack([np.ones(300), X[:, list(subset)]])
            rss = [
                np.sum((y[r] - A[r] @ np.linalg.lstsq(A[r], y[r], rcond=None)[0]) ** 2)
                for r in (np.arange(300), *parts)
            ]
            k = size + 1
            F = (rss[0] - sum(rss[1:])) / (2 * k) / (sum(rss[1:]) / (300 - 3 * k))
            n_subsets = len(list(combinations(range(8), size)))
            ebic = 300 * np.log(rss[0] / 300) + size * np.log(300) + 2 * np.log(n_subsets)
            if stats.f.sf(F, 2 * k, 300 - 3 * k) >= 0.05:
                best = min(best, (ebic, subset))
    assert_array_equal(found.get_support(indices=True), sorted(best[1]))


def test_a_group_of_columns_is_kept_or_dropped_as_one():
    X, y = flipped()
    search = Ranking(Correlation(), n_features_to_select=3, feature_groups={"pair": [1, 2]})
    search = search.set_params(n_features_to_select=1.0)
    found = InvariantSelection(search, random_state=0).fit(X, y, environments=SITES)
    assert found.support_[[1, 2]].all()
    assert not found.support_[5]
    assert len(found.p_equal_) == 7


def test_the_record_keeps_slopes_and_environments():
    X, y = flipped()
    found = InvariantSelection(top(2), random_state=0).fit(X, y, environments=SITES)
    saved = Record.from_dict(json.loads(json.dumps(found.record_.to_dict())))
    again = InvariantSelection(top(2), random_state=0)
    again.resume(X, y, record=saved, environments=SITES)
    assert_array_equal(again.p_equal_, found.p_equal_)
    assert_array_equal(again.slopes_, found.slopes_)
    assert again.environments_.tolist() == ["a", "b", "c"]


def test_honest_size_reports_the_loss_in_environments_it_was_not_trained_on():
    X, y = flipped()
    plain = HonestSize(top(1), random_state=0).fit(X, y)
    found = HonestSize(top(1), random_state=0).fit(X, y, environments=SITES)
    assert_array_equal(found.losses_, plain.losses_)
    assert_array_equal(found.support_, plain.support_)
    assert found.environments_.tolist() == ["a", "b", "c"]
    inside = SITES == "c"
    chosen = Ranking(Correlation(), n_features_to_select=2).fit(X[~inside], y[~inside]).support_
    scaler = StandardScaler().fit(X[~inside][:, chosen])
    model = Ridge().fit(scaler.transform(X[~inside][:, chosen]), y[~inside])
    predicted = model.predict(scaler.transform(X[inside][:, chosen]))
    size = found.sizes_.tolist().index(2)
    assert_allclose(found.environment_losses_[2, size], np.mean((predicted - y[inside]) ** 2))
    assert "(in c)" in found.choice_.reason


def test_honest_size_keeps_groups_of_rows_together():
    X, y = flipped()
    groups = np.random.default_rng(0).integers(30, size=300)
    found = HonestSize(top(1), random_state=0).fit(X, y, groups=groups)
    for rows, *_ in found.record_.trace.state["rounds"].values():
        inside = np.isin(np.arange(300), rows)
        assert not set(groups[inside]) & set(groups[~inside])


def test_many_small_environments_are_warned_about():
    X, y = flipped()
    many = np.arange(300) % 12
    with pytest.warns(DegenerateData, match="half of the 12 environments have fewer than 30 rows"):
        InvariantSelection(top(3), random_state=0).fit(X, y, environments=many)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        InvariantSelection(top(3), random_state=0).fit(X, y, environments=many % 5)
        InvariantSelection(top(3), random_state=0).fit(X, y > 0, environments=many)
        InvariantSelection(top(3), how="subset", random_state=0).fit(X, y, environments=many)


@pytest.mark.parametrize("how", ["columns", "subset"])
@pytest.mark.parametrize("unit", [1e160, 1e-160])
def test_the_tests_do_not_depend_on_the_unit_of_the_target(unit, how):
    X, y = flipped()
    search = InvariantSelection(top(3), how=how, random_state=0)
    found = clone(search).fit(X, y, environments=SITES)
    other = clone(search).fit(X, y * unit, environments=SITES)
    assert other.columns == found.columns != []
    assert_allclose(other.p_equal_, found.p_equal_, rtol=1e-6)
    assert_allclose(other.slopes_, found.slopes_ * unit, rtol=1e-9)
    assert_allclose(other.slope_errors_, found.slope_errors_ * unit, rtol=1e-9)


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        (["a", "b", "c"], ["a", "b", "c"]),
        ([True, False, False], [False, True]),
        ([2, 10, 3], [2, 3, 10]),
        ([b"a", b"b", b"c"], ["b'a'", "b'b'", "b'c'"]),
        (np.array(["2020", "2021", "2022"], "M8[ns]"), ["2020-01-01", "2021-01-01", "2022-01-01"]),
        ([date(2020, 1, 1), date(2021, 5, 2), date(2022, 1, 1)], None),
        ([Fraction(1, 3), Fraction(1, 2), Fraction(2, 3)], ["1/3", "1/2", "2/3"]),
    ],
    ids=str,
)
def test_labels_of_any_type_are_stored_in_a_record(labels, named):
    X, y = flipped()
    sites = np.repeat(np.array(labels, dtype=getattr(labels, "dtype", object)), 100)
    for search in (
        InvariantSelection(top(2), random_state=0),
        HonestSize(top(2), n_folds=2, random_state=0),
    ):
        found = search.fit(X, y, environments=sites)
        assert found.environments_.tolist() == (named or [str(label) for label in labels])
        saved = Record.from_dict(json.loads(json.dumps(found.record_.to_dict())))
        again = clone(search).resume(X, y, record=saved, environments=sites)
        assert_array_equal(again.environments_, found.environments_)
        assert again.columns == found.columns


def test_missing_and_small_environments_are_refused():
    X, y = flipped()
    search = InvariantSelection(top(2))
    with pytest.raises(InvalidParameter, match="needs environments, one label per row"):
        search.fit(X, y)
    with pytest.raises(InvalidParameter, match="got 1 environment"):
        search.fit(X, y, environments=np.zeros(300))
    with pytest.raises(InvalidParameter, match="3 rows in environment 'x'"):
        search.fit(X, y, environments=np.r_[["x"] * 3, SITES[3:]])
    with pytest.raises(InvalidParameter, match="one label for each of the 300 rows"):
        HonestSize(top(2)).fit(X, y, environments=SITES[:7])
    with pytest.raises(InvalidParameter, match="a label for each row, but 100 labels are missing"):
        search.fit(X, y, environments=np.where(SITES == "a", np.nan, 1.0))
    pd = pytest.importorskip("pandas")
    for missing in (None, np.nan, pd.NA, pd.NaT):
        some = np.where(SITES == "a", missing, SITES.astype(object))
        with pytest.raises(InvalidParameter, match="but 100 labels are missing"):
            search.fit(X, y, environments=some)
    days = np.array(["NaT"] + ["2020-01-01"] * 299, dtype="datetime64[D]")
    with pytest.raises(InvalidParameter, match="but 1 label is missing"):
        search.fit(X, y, environments=days)
    with pytest.raises(InvalidTarget, match="target varies in only 1 of 3"):
        search.fit(X, (SITES == "a") & (y > 0), environments=SITES)
    with pytest.raises(InvalidParameter, match="768212 sets of at most 6 of 30 columns"):
        InvariantSelection(top(2), how="subset", max_columns=6, n_candidates=30).fit(
            np.random.default_rng(0).normal(size=(300, 30)), y, environments=SITES
        )
    with pytest.raises(InvalidTarget, match="how='columns'"):
        InvariantSelection(top(2), how="subset").fit(X, y > 0, environments=SITES)
