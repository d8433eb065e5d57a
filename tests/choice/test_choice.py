"""Choices of a step of a trace."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats
from sklearn.svm import SVC

from tamis.contract import Step, Trace
from tamis.criteria import Correlation, FisherScore, Importances, Penalised, PValue, Scatter
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, NothingSelected
from tamis.search import (
    Backward,
    Best,
    Exhaustive,
    FalseDiscovery,
    FloatingForward,
    Forward,
    Fraction,
    Ranking,
    RecursiveElimination,
    Size,
    Threshold,
)
from tamis.testing.problem import make_table as table


@pytest.mark.parametrize(
    ("asked", "kept"), [(1, 1), (7, 7), (0.5, 3), (0.01, 1), (1.0, 7), (np.int64(4), 4)]
)
def test_sizes_may_be_numbers_or_fractions(asked, kept):
    assert Forward(Scatter(), n_features_to_select=asked).fit(*table()).n_features_ == kept


@pytest.mark.parametrize("asked", [0, 8, -1, 0.0, 1.5, True, "most", None, [3], np.nan])
def test_an_impossible_size_is_refused(asked):
    with pytest.raises(InvalidParameter, match="n_features_to_select"):
        Forward(Scatter(), n_features_to_select=asked).fit(*table())


def test_best_is_the_greatest_value_and_ties_go_to_the_smallest():
    X, y = table()
    search = Forward(Penalised(Scatter(), per_feature=1.2), n_features_to_select="best").fit(X, y)
    assert search.trace_[search.record_.chosen].value == search.trace_.values.max()
    assert 1 <= search.n_features_ < 7

    class Flat(Scatter):
        def gain(self, subset, candidates):
            return np.zeros(len(candidates))

    assert Forward(Flat(), n_features_to_select="best").fit(X, y).n_features_ == 1


def test_best_needs_values():
    with pytest.raises(IncompatibleCriterion, match="only ranks"):
        RecursiveElimination(Importances(SVC(kernel="linear")), n_features_to_select="best").fit(
            *table()
        )
    with pytest.raises(IncompatibleCriterion, match="Forward"):
        Ranking(Scatter(), n_features_to_select="best").fit(*table())


def test_threshold_cuts_a_ranking():
    X, y = table()
    scores = FisherScore().fit(X, y).scores_
    cut = np.sort(scores)[3]
    search = Ranking(FisherScore(), n_features_to_select=Threshold(cut)).fit(X, y)
    assert_array_equal(search.support_, scores >= cut)


def test_threshold_ends_a_forward_search_at_the_first_small_gain():
    X, y = table()
    search = Forward(Scatter(), n_features_to_select=Threshold(1.1)).fit(X, y)
    gains = search.trace_.moves().score
    assert search.n_features_ == np.flatnonzero(gains < 1.1)[0]


def test_threshold_removes_while_the_loss_is_small():
    X, y = table()
    search = Backward(Scatter(), n_features_to_select=Threshold(1.2)).fit(X, y)
    losses = search.trace_.moves().score
    assert 7 - search.n_features_ == np.flatnonzero(losses >= 1.2)[0]


def test_a_choice_that_no_column_passes_raises_an_error():
    with pytest.raises(NothingSelected, match="Lower the threshold"):
        Ranking(Correlation(), n_features_to_select=Threshold(2.0)).fit(*table())
    X = np.random.default_rng(0).normal(size=(40, 5))
    with pytest.raises(NothingSelected, match="smallest p-value"):
        Ranking(PValue(), n_features_to_select=FalseDiscovery(1e-6)).fit(X, [0, 1] * 20)


def test_threshold_needs_single_moves():
    with pytest.raises(IncompatibleCriterion, match="both adds and removes features"):
        FloatingForward(Scatter(), n_features_to_select=Threshold(1.0)).fit(*table())


@pytest.mark.parametrize("q", [0.001, 0.05, 0.3])
def test_false_discovery_agrees_with_scipy(q):
    draw = np.random.default_rng(3)
    X, y = draw.normal(size=(60, 30)), np.repeat([0, 1], 30)
    X[:, :8] += np.outer(y, np.linspace(0.4, 1.6, 8))
    search = Ranking(PValue(), n_features_to_select=FalseDiscovery(q)).fit(X, y)
    adjusted = stats.false_discovery_control(stats.ttest_ind(X[y == 0], X[y == 1]).pvalue)
    assert_array_equal(search.support_, adjusted <= q)


def test_false_discovery_needs_p_values():
    with pytest.raises(IncompatibleCriterion, match="p-value"):
        Ranking(FisherScore(), n_features_to_select=FalseDiscovery(0.1)).fit(*table())
    with pytest.raises(IncompatibleCriterion, match="p-value"):
        Forward(PValue(), n_features_to_select=FalseDiscovery(0.1)).fit(*table())
    with pytest.raises(InvalidParameter, match=r"\(0, 1\)"):
        Ranking(PValue(), n_features_to_select=FalseDiscovery(1.5)).fit(*table())


def test_ties_go_to_the_smallest_then_the_lexicographically_first_subset():
    trace = Trace(5)
    for subset, value in (([0, 1, 2], 1.0), ([2, 3], 1.0), ([1, 4], 1.0 + 1e-15), ([0, 3, 4], 1.0)):
        trace.append(Step(np.array(subset), value))
    assert Best().pick(trace).step == 2
    assert Size(2).pick(trace).step == 2
    assert Size(3).pick(trace).step == 0


def test_a_fraction_is_not_cut_by_rounding():
    assert Fraction(0.29).size(100, "Forward") == 29


@pytest.mark.parametrize("choice", [Size("a"), Size(2.5), Fraction("x"), Threshold(None)])
def test_choices_that_are_not_numbers_are_refused(choice):
    with pytest.raises(InvalidParameter, match="needs"):
        Forward(Scatter(), n_features_to_select=choice).fit(*table())


def test_a_full_path_ends_when_nothing_can_be_added():
    """Duplicates and constants cannot be added with J3, and were not requested."""
    X, y = table()
    X = np.column_stack([X, X[:, 0], np.ones(len(X))])
    dear = Penalised(Scatter(), per_feature=1.2)
    expected = Exhaustive(dear, n_features_to_select="best").fit(X, y).support_
    for cls in (Forward, FloatingForward):
        assert_array_equal(cls(dear, n_features_to_select="best").fit(X, y).support_, expected)
    assert Forward(Scatter(), n_features_to_select=Threshold(1.05)).fit(X, y).n_features_ < 7


def test_a_threshold_can_be_lowered_without_a_new_search():
    X, y = table()
    search = Ranking(Correlation(), n_features_to_select=Threshold(2.0))
    with pytest.raises(NothingSelected):
        search.fit(X, y)
    assert len(search.record_.trace) == 7
