"""Greedy searches: number of evaluations, comparison with definitions, and their ends."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.feature_selection import RFE
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier

from tamis.criteria import (
    Correlation,
    CrossValidated,
    FisherScore,
    Importances,
    Penalised,
    Scatter,
    Scored,
)
from tamis.datasets import make_xor
from tamis.exceptions import InvalidParameter
from tamis.search import (
    Backward,
    Bidirectional,
    Forward,
    PlusLMinusR,
    Ranking,
    RecursiveElimination,
)
from tamis.testing.problem import make_table as table
from tamis.testing.search_laws import Stop


@pytest.mark.parametrize(("m", "k"), [(7, 1), (7, 3), (7, 7), (12, 5)])
def test_evaluation_counts_agree_with_the_formulas(m, k):
    X, y = table(n_features=m)
    forward = Forward(Scatter(), n_features_to_select=k).fit(X, y)
    backward = Backward(Scatter(), n_features_to_select=k).fit(X, y)
    assert forward.n_evaluations_ == k * m - k * (k - 1) // 2
    assert backward.n_evaluations_ == 1 + ((m + 1) * m - k * (k + 1)) // 2
    assert Ranking(Scatter(), n_features_to_select=k).fit(X, y).n_evaluations_ == m


def explicit_greedy(value, m, k, *, forward):
    """Return the result of a greedy selection, from its definition."""
    subset = [] if forward else list(range(m))
    while len(subset) != k:
        if forward:
            options = [sorted([*subset, j]) for j in range(m) if j not in subset]
        else:
            options = [[i for i in subset if i != j] for j in subset]
        subset = max(options, key=lambda s: value(np.array(s, dtype=int)))
    return subset


@pytest.mark.parametrize("seed", range(10))
def test_forward_and_backward_are_greedy(seed):
    X, y = table(n_features=9, seed=seed)
    value = Scatter("J2").fit(X, y).value
    for cls in (Forward, Backward):
        search = cls(Scatter("J2"), n_features_to_select=4).fit(X, y)
        expected = explicit_greedy(value, 9, 4, forward=cls is Forward)
        assert_array_equal(np.flatnonzero(search.support_), expected)


def test_ranking_by_removal_uses_the_loss_from_the_full_set():
    X, y = table()
    search = Ranking(Scatter(), n_features_to_select=2, by="removal").fit(X, y)
    loss = Scatter().fit(X, y).loss(np.arange(7))
    assert_array_equal(search.order_, np.argsort(-loss))
    np.testing.assert_allclose(search.scores_, loss)


def test_ranking_returns_the_values_of_additive_subsets():
    X, y = table()
    search = Ranking(Correlation(), n_features_to_select="best").fit(X, y)
    assert search.n_features_ == 7
    np.testing.assert_allclose(search.trace_.values, np.cumsum(np.sort(search.scores_)[::-1]))


def sides(k, d):
    """Return both sides after each step: that of the trace, and the other one from the moves."""
    X, y = table(n_features=d)
    search = Bidirectional(Scatter(), n_features_to_select=k)
    found = []

    class Watch(Stop):
        def on_fit_task_end(self, estimator, context):
            if context.task_name == "step":
                trace = estimator.trace_
                other = set() if trace.start.all() else set(range(d))
                found.append((set(trace[-1].subset), other ^ set(trace.state["other"])))

    assert search.set_callbacks(Watch(99)).fit(X, y).n_features_ == k
    return found


@pytest.mark.parametrize("d", [6, 7])
@pytest.mark.parametrize("k", range(1, 7))
def test_bidirectional_sides_never_undo_each_other(k, d):
    for one, other in sides(k, d):
        assert one <= other or other <= one
        assert len(one) + len(other) == d


def test_bidirectional_meets_in_the_middle():
    one, other = sides(3, 6)[-1]
    assert one == other


@pytest.mark.parametrize(
    ("l", "r", "sizes"),
    [
        (2, 1, [1, 2, 1, 2, 3, 2, 3, 4, 3]),
        (3, 1, [1, 2, 3, 2, 3, 4, 5, 4]),
        (1, 2, [7, 6, 5, 6, 5, 4, 5, 4, 3, 4, 3, 2, 3]),
        (3, 0, [1, 2, 3]),
        (0, 2, [7, 6, 5, 4, 3]),
    ],
)
def test_plus_l_minus_r_adds_l_and_removes_r(l, r, sizes):  # noqa: E741
    X, y = table()
    search = PlusLMinusR(Scatter(), n_features_to_select=3, l=l, r=r).fit(X, y)
    assert_array_equal(search.trace_.sizes, sizes)


@pytest.mark.parametrize("l", [1, 2, 5, 9])
@pytest.mark.parametrize("r", [0, 3, 4, 8])
@pytest.mark.parametrize("k", [1, 4, 7])
def test_plus_l_minus_r_ends_with_the_requested_size(l, r, k):  # noqa: E741
    X, y = table()
    search = PlusLMinusR(FisherScore(), n_features_to_select=k, l=l, r=r).fit(X, y)
    assert search.n_features_ == k


def test_plus_l_minus_r_needs_two_different_numbers():
    with pytest.raises(InvalidParameter, match="l=2, r=1"):
        PlusLMinusR(Scatter(), l=2, r=2).fit(*table())


def test_an_unsupervised_criterion_needs_no_target():
    X, _ = table()
    widest = Scored(lambda X, y: float(X.max()))
    assert Forward(widest, n_features_to_select=2, standardize=False).fit(X).n_features_ == 2


def test_forward_skips_duplicates_and_constants():
    X, y = table()
    X = np.column_stack([X, X[:, :3], np.ones(len(X))])
    search = Forward(Scatter(), n_features_to_select=7).fit(X, y)
    assert_array_equal(np.flatnonzero(search.support_), np.arange(7))


@pytest.mark.parametrize("by", ["alone", "removal"])
def test_a_ranking_selects_the_best_columns_by_gain_and_by_removal(by):
    X, y = table()
    scores = FisherScore().fit(X, y).scores_
    cut = float(np.median(scores))
    dear = Penalised(FisherScore(), per_feature=cut)
    search = Ranking(dear, by=by, n_features_to_select="best").fit(X, y)
    assert_array_equal(search.support_, scores > cut)


@pytest.mark.parametrize(("l", "r"), [(2.5, 1), ("2", 1), (2, -1), (True, 0)])
def test_plus_l_minus_r_needs_ints(l, r):  # noqa: E741
    with pytest.raises(InvalidParameter, match="different ints"):
        PlusLMinusR(Scatter(), l=l, r=r).fit(*table())


def test_small_differences_decide_next_to_a_huge_loss():
    """The reference is scikit-learn's RFE, with coefficients of very different sizes."""
    draw = np.random.default_rng(0)
    Z = draw.normal(size=(100, 6))
    y = Z @ [3, 1, 2, 0.5, 2, 3.0] + 0.1 * draw.normal(size=100)
    X = Z * [1e-2, 1e5, 2e5, 5e4, 1, 4e5]
    ridge = Ridge(alpha=1e-8, solver="cholesky")
    ours = RecursiveElimination(Importances(ridge), n_features_to_select=1, standardize=False)
    assert_array_equal(
        ours.fit(X, y).ranking_, RFE(ridge, n_features_to_select=1).fit(X, y).ranking_
    )


def test_in_a_forward_search_the_first_k_columns_are_the_subset_of_size_k():
    """Gains may rise from step to step. The order is that of the steps."""
    X, y = make_xor(200, n_features=4, random_state=0)[:2]
    search = Forward(CrossValidated(KNeighborsClassifier()), n_features_to_select=4).fit(X, y)
    assert np.diff(search.trace_.moves().score).max() > 0
    for step in search.trace_:
        assert_array_equal(np.sort(search.order_[: len(step.subset)]), step.subset)


def test_columns_held_by_the_other_side_stay_even_if_idle():
    """Both sides of a bidirectional search agree, even if columns are constant or duplicates."""
    X, y = table()
    X = np.column_stack([np.ones(len(y)), X[:, 0], X[:, 0], np.ones(len(y)), X[:, 1:4]])
    search = Bidirectional(Scatter(ridge=1e-3), n_features_to_select=4).fit(X, y)
    assert search.n_features_ == 4
    assert not search.support_[[0, 2, 3]].any()
