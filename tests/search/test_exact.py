"""Exact searches: the optimum, the number of evaluations, and the bound if stopped."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tamis.criteria import Divergence, FisherScore, Penalised, Scatter
from tamis.exceptions import (
    IncompatibleCriterion,
    InvalidParameter,
    NothingSelected,
    NotProvenOptimal,
)
from tamis.search import BranchAndBound, Exhaustive, branches
from tamis.testing.problem import make_table as table


def test_exhaustive_agrees_with_brute_force():
    X, y = table()
    judge = Scatter("J1").fit(X, y)
    expected = max(combinations(range(7), 3), key=lambda s: judge.value(np.array(s)))
    search = Exhaustive(Scatter("J1"), n_features_to_select=3).fit(X, y)
    assert tuple(np.flatnonzero(search.support_)) == expected
    assert search.n_evaluations_ == comb(7, 3)


def test_exhaustive_search_covers_all_sizes():
    X, y = table()
    judge = Penalised(Scatter(), per_feature=1.2)
    search = Exhaustive(judge, n_features_to_select="best").fit(X, y)
    assert search.n_evaluations_ == 2**7 - 1
    fitted = judge.fit(X, y)
    everything = [s for k in range(1, 8) for s in combinations(range(7), k)]
    expected = max(everything, key=lambda s: fitted.value(np.array(s)))
    assert tuple(np.flatnonzero(search.support_)) == expected
    assert 1 < search.n_features_ < 7


@pytest.mark.parametrize("seed", range(200))
def test_branch_and_bound_finds_the_optimum(seed):
    draw = np.random.default_rng(seed)
    d = int(draw.integers(2, 11))
    X, y = table(60, max(d, 5), seed=seed)
    X, k = X[:, :d], int(draw.integers(1, d + 1))
    found = BranchAndBound(Scatter("J3"), n_features_to_select=k).fit(X, y)
    assert_array_equal(
        found.support_, Exhaustive(Scatter("J3"), n_features_to_select=k).fit(X, y).support_
    )
    assert found.gap_ == 0


@pytest.mark.parametrize("criterion", [Scatter("J2"), Divergence(), FisherScore()])
def test_branch_and_bound_finds_the_optimum_of_other_criteria(criterion):
    for seed in range(10):
        X, y = table(100, 8, seed=seed)
        found = BranchAndBound(criterion, n_features_to_select=4).fit(X, y)
        expected = Exhaustive(criterion, n_features_to_select=4).fit(X, y)
        assert_array_equal(found.support_, expected.support_)


def test_branch_and_bound_visits_few_subsets():
    visited = total = 0
    for seed in range(4):
        for d in (14, 15, 16):
            X, y = table(150, d, seed=seed)
            search = BranchAndBound(Scatter("J3"), n_features_to_select=d // 2).fit(X, y)
            visited += search.n_evaluations_
            total += comb(d, d // 2)
    assert visited < total / 10


def test_tied_optima_go_to_the_lexicographically_first():
    X, y = table()
    X = np.column_stack([X[:, :3], X[:, :3]])
    found = BranchAndBound(Scatter(ridge=1e-3), n_features_to_select=2).fit(X, y)
    expected = Exhaustive(Scatter(ridge=1e-3), n_features_to_select=2).fit(X, y)
    assert_array_equal(found.support_, expected.support_)
    assert found.support_[:3].sum() == 2


def test_a_budget_gives_a_subset_and_a_valid_gap():
    X, y = table(150, 14, seed=1)
    optimum = BranchAndBound(Scatter(), n_features_to_select=7).fit(X, y)
    best = optimum.trace_[-1].value
    for budget in (1, 20, 40):
        search = BranchAndBound(Scatter(), n_features_to_select=7, max_evaluations=budget)
        with pytest.warns(NotProvenOptimal, match="up to"):
            search.fit(X, y)
        found = search.trace_[-1].value
        assert search.n_features_ == 7
        assert search.gap_ > 0
        assert found <= best <= found + search.gap_ + 1e-9
    with pytest.warns(NotProvenOptimal):
        BranchAndBound(Scatter(), n_features_to_select=7, max_seconds=1e-9).fit(X, y)
    generous = BranchAndBound(Scatter(), n_features_to_select=7, max_evaluations=10**6).fit(X, y)
    assert generous.gap_ == 0


class Slow(FisherScore):
    """Criterion for which every score takes a second of its own clock."""

    now = 0.0

    def bounds(self, subsets, size):
        Slow.now += len(subsets)
        return super().bounds(subsets, size)


def test_the_budget_is_checked_inside_an_expansion():
    X, y = table(40, 600, seed=3)
    for budget in (5, 50, 599):
        search = BranchAndBound(FisherScore(), n_features_to_select=3, max_evaluations=budget)
        with pytest.warns(NotProvenOptimal):
            search.fit(X, y)
        # a fallback leaf needs two scores per column, its value and the bound of the root
        assert budget <= search.n_evaluations_ <= budget + 2 * 600 + 12
        assert search.n_features_ == 3
        assert np.isfinite(search.gap_)


def test_the_time_is_checked_inside_an_expansion(monkeypatch):
    X, y = table(40, 600, seed=3)
    Slow.now = 0.0
    monkeypatch.setattr(branches, "perf_counter", lambda: Slow.now)
    with pytest.warns(NotProvenOptimal):
        BranchAndBound(Slow(), n_features_to_select=3, max_seconds=20).fit(X, y)
    # six subsets of 599 columns are scored at a time
    assert 20 - 6 <= Slow.now <= 20


def test_without_a_leaf_the_features_with_the_greatest_loss_are_selected():
    X, y = table(60, 50, seed=2)
    search = BranchAndBound(FisherScore(), n_features_to_select=3, max_evaluations=1)
    with pytest.warns(NotProvenOptimal):
        search.fit(X, y)
    best = FisherScore().fit(X, y).scores_.argsort()[-3:]
    assert_array_equal(np.flatnonzero(search.support_), np.sort(best))


def test_a_budget_spent_inside_an_expansion_can_be_continued():
    X, y = table(150, 14, seed=1)
    search = BranchAndBound(Scatter(), n_features_to_select=7, max_evaluations=20)
    with pytest.warns(NotProvenOptimal):
        search.fit(X, y)
    whole = BranchAndBound(Scatter(), n_features_to_select=7).fit(X, y)
    search.set_params(max_evaluations=None).resume(X, y, record=search.record_)
    assert_array_equal(search.support_, whole.support_)
    assert search.gap_ == 0


def test_branch_and_bound_refuses_criteria_that_are_not_monotone():
    X, y = table()
    with pytest.raises(IncompatibleCriterion, match=r"monotone.*Exhaustive"):
        BranchAndBound(Scatter("J1")).fit(X, y)
    with pytest.raises(IncompatibleCriterion, match="number of features"):
        BranchAndBound(Scatter("J3"), n_features_to_select="best").fit(X, y)
    with pytest.raises(InvalidParameter, match="max_evaluations to be a number above 0 or None"):
        BranchAndBound(Scatter("J3"), max_evaluations=0).fit(X, y)


def test_an_error_is_raised_if_no_subset_has_a_value():
    X, y = table()
    with pytest.raises(NothingSelected, match="constant or depend"):
        Exhaustive(Scatter(), n_features_to_select=2).fit(np.column_stack([X[:, 0]] * 3), y)
