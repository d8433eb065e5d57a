"""Column subset selection compared with least squares."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_wine

from tamis._arrays import EMPTY, idle_columns
from tamis.criteria import ColumnSubset
from tamis.search import (
    Backward,
    Bidirectional,
    BranchAndBound,
    Exhaustive,
    FloatingBackward,
    FloatingForward,
    Forward,
    Genetic,
    PlusLMinusR,
    Ranking,
    RecursiveElimination,
)


def error(X, subset):
    """Return the squared error of all columns after least squares."""
    if not len(subset):
        return float((X**2).sum())
    chosen = X[:, subset]
    return float(((X - chosen @ np.linalg.lstsq(chosen, X, rcond=None)[0]) ** 2).sum())


def plain(n_samples=50, n_features=9, seed=0):
    """Return correlated columns of different scales."""
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(n_samples, n_features)) @ rng.normal(size=(n_features, n_features))
    return mixed * rng.uniform(0.2, 5, n_features) + rng.normal(size=n_features)


def wide():
    return plain(8, 20)


def degenerate():
    """Return columns with a duplicate, a multiple, a sum, a constant and a column of zeros."""
    X = plain(40, 5)
    constant, zero = np.full(len(X), 2.0), np.zeros(len(X))
    return np.column_stack(
        [X[:, 0], zero, X[:, :3], X[:, 0] - X[:, 1], constant, -3 * X[:, 3], X[:, 3:]]
    )


TABLES = {"plain": plain, "wide": wide, "degenerate": degenerate}


@pytest.fixture(params=TABLES)
def X(request):
    return TABLES[request.param]()


def some_subsets(d, seed=0):
    rng = np.random.default_rng(seed)
    sizes = [1, 2, d // 2, d - 1, d]
    return [np.sort(rng.choice(d, size, replace=False)) for size in sizes for _ in range(4)]


def outside(d, subset):
    return np.setdiff1d(np.arange(d), subset)


def test_the_value_is_minus_the_least_squares_error(X):
    criterion, scale = ColumnSubset().fit(X), error(X, EMPTY)
    assert criterion.value(EMPTY) == pytest.approx(-scale, rel=1e-13)
    for subset in some_subsets(X.shape[1]):
        assert_allclose(criterion.value(subset), -error(X, subset), rtol=1e-9, atol=1e-10 * scale)
    assert_allclose(criterion.value(np.arange(X.shape[1])), 0, atol=1e-10 * scale)


def test_many_values_are_computed_at_once(X):
    """There are enough subsets for batches, including dependent ones."""
    criterion, scale = ColumnSubset().fit(X), error(X, EMPTY)
    pairs = [np.array(pair) for pair in combinations(range(X.shape[1]), 2)]
    asked = [*pairs, EMPTY, *some_subsets(X.shape[1])]
    expected = [-error(X, subset) for subset in asked]
    assert_allclose(criterion.values(asked), expected, rtol=1e-9, atol=1e-10 * scale)


def test_gains_and_losses_are_differences(X):
    criterion, scale = ColumnSubset().fit(X), error(X, EMPTY)
    for subset in [EMPTY, *some_subsets(X.shape[1])]:
        base, others = error(X, subset), outside(X.shape[1], subset)
        gains = [base - error(X, np.append(subset, j)) for j in others]
        losses = [error(X, subset[subset != j]) - base for j in subset]
        assert_allclose(criterion.gain(subset, others), gains, rtol=1e-8, atol=1e-10 * scale)
        assert_allclose(criterion.loss(subset), losses, rtol=1e-8, atol=1e-10 * scale)


def test_dependent_columns_have_a_gain_of_exactly_0():
    X = degenerate()
    criterion = ColumnSubset().fit(X)
    # 0 and 2 are duplicates, 1 is zero, 5 = 2 - 3, 6 is constant, 7 is a multiple of 8
    assert_array_equal(criterion.gain(np.array([0, 3]), np.array([1, 2, 5])), 0)
    assert_array_equal(criterion.gain(np.array([7]), np.array([8, 1])), 0)
    losses = criterion.loss(np.array([0, 1, 2, 4, 7, 8]))
    assert_array_equal(losses[[0, 1, 2, 4, 5]], 0)
    assert losses[3] > 0
    assert_array_equal(ColumnSubset().fit(wide()).loss(np.arange(20)), 0)
    full = ColumnSubset().fit(wide())
    assert_array_equal(full.gain(np.arange(8), np.arange(8, 20)), 0)


@pytest.mark.parametrize("make", TABLES.values())
def test_updates_do_not_drift(make):
    """Hundreds of additions and removals give the scores of a new criterion."""
    X = make()
    d = X.shape[1]
    walked, draw = ColumnSubset().fit(X), np.random.default_rng(0)
    mask = draw.random(d) < 0.3
    for _ in range(300):
        mask[draw.integers(d, size=draw.integers(1, 4))] ^= True
        subset, others = np.flatnonzero(mask), np.flatnonzero(~mask)
        gains, losses = walked.gain(subset, others), walked.loss(subset)
    fresh, scale = ColumnSubset().fit(X), error(X, EMPTY)
    assert_allclose(gains, fresh.gain(subset, others), rtol=1e-8, atol=1e-10 * scale)
    assert_allclose(losses, fresh.loss(subset), rtol=1e-8, atol=1e-10 * scale)


@pytest.mark.parametrize("make", TABLES.values())
def test_a_forward_search_agrees_with_brute_force(make):
    X = make()
    X = X - X.mean(axis=0)
    search = Forward(ColumnSubset(), n_features_to_select=6, standardize=False).fit(X)
    chosen, idle = [], idle_columns(X)
    for step in search.trace_:
        left = sorted((j for j in range(X.shape[1]) if j not in chosen), key=idle.__getitem__)
        errors = np.round([error(X, [*chosen, j]) for j in left], 8)
        chosen.append(left[int(np.argmin(errors))])
        assert_array_equal(step.subset, np.sort(chosen))
        assert_allclose(-step.value, error(X, chosen), rtol=1e-8, atol=1e-9)


def test_exact_searches_agree_with_enumeration():
    X = load_wine(return_X_y=True)[0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    best = min(combinations(range(13), 4), key=lambda subset: error(X, list(subset)))
    for search in (Exhaustive, BranchAndBound):
        found = search(ColumnSubset(), n_features_to_select=4).fit(X)
        assert_array_equal(found.get_support(indices=True), best)


@pytest.mark.parametrize(
    "search",
    [
        Ranking, Forward, Backward, RecursiveElimination, Bidirectional, PlusLMinusR,
        FloatingForward, FloatingBackward, Exhaustive, BranchAndBound, Genetic,
    ],
)  # fmt: skip
@pytest.mark.parametrize("make", TABLES.values())
def test_every_search_can_use_it_without_a_target(search, make):
    X = make()[:, :10]
    if search is Genetic:
        found = Genetic(ColumnSubset(), n_features_to_select=3, n_generations=3, random_state=0)
    else:
        found = search(ColumnSubset(), n_features_to_select=3)
    found.fit(X)
    assert found.n_features_ == 3
    Z = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    kept = [s for s in found.trace_ if len(s.subset) == 3][-1]
    if not np.isnan(kept.value):
        assert_allclose(-kept.value, error(Z, kept.subset), rtol=1e-8, atol=1e-9)


def test_a_target_is_ignored():
    X, y = load_wine(return_X_y=True)
    asked = Forward(ColumnSubset(), n_features_to_select=5)
    assert_array_equal(asked.fit(X, y).order_, asked.fit(X).order_)
    assert_array_equal(asked.fit(X, np.zeros(len(y))).order_, asked.fit(X).order_)
    assert_array_equal(asked.fit(X, y + 0.5).order_, asked.fit(X).order_)


def test_one_column_of_each_duplicate_pair_is_selected():
    X = load_breast_cancer(return_X_y=True)[0][:, :8]
    doubled = np.column_stack([X, X])
    for search in (Forward, Backward, FloatingForward):
        kept = search(ColumnSubset(), n_features_to_select=8).fit(doubled)
        assert_array_equal(kept.get_support(indices=True), np.arange(8))
