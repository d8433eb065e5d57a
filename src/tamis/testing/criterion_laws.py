"""Laws that every criterion obeys.

Each law takes a criterion and raises AssertionError if it is broken.
"""

import pickle
from itertools import combinations
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_array, csr_array
from sklearn.base import clone

from tamis._arrays import EMPTY, Array, Subset
from tamis.blocks import MemoryMap
from tamis.blocks.labels import TargetLabels
from tamis.blocks.table import BlockTable
from tamis.contract import BackwardCriterion, ForwardCriterion, SubsetCriterion
from tamis.testing.problem import make_table, table_for

SUBSETS = [np.array(s, dtype=np.intp) for s in ([], [2], [1, 4], [0, 2, 5, 6], range(6))]
TOLERANCE: dict[str, Any] = {"rtol": 1e-8, "atol": 1e-9}


def fitted(criterion: Any) -> Any:
    return clone(criterion).fit(*table_for(criterion))


def without(subset: Subset, n_units: int = 7) -> Subset:
    return np.setdiff1d(np.arange(n_units), subset)


def union(subset: Subset, unit: int) -> Subset:
    return np.union1d(subset, [unit]).astype(np.intp)


def scores_of(criterion: Any, subset: Subset) -> Array:
    """Return all gains, losses and values that a criterion computes for a subset."""
    scores = [np.empty(0)]
    if isinstance(criterion, ForwardCriterion):
        scores.append(criterion.gain(subset, without(subset)))
    if isinstance(criterion, BackwardCriterion) and len(subset):
        scores.append(criterion.loss(subset))
    if isinstance(criterion, SubsetCriterion):
        scores.append(np.array([criterion.value(subset)]))
    return np.concatenate(scores)


def assert_same_scores(one: Any, other: Any, subsets: Any = SUBSETS, **tolerance: float) -> None:
    """Check that two fitted criteria give the same scores."""
    for subset in subsets:
        assert_allclose(
            scores_of(one, subset), scores_of(other, subset), **(tolerance or TOLERANCE)
        )


def gain_is_a_difference_of_values(criterion: Any) -> None:
    judge = fitted(criterion)
    for subset in SUBSETS:
        expected = [judge.value(union(subset, j)) - judge.value(subset) for j in without(subset)]
        assert_allclose(judge.gain(subset, without(subset)), expected, **TOLERANCE)


def loss_is_a_difference_of_values(criterion: Any) -> None:
    judge = fitted(criterion)
    for subset in SUBSETS[1:]:
        expected = [judge.value(subset) - judge.value(subset[subset != j]) for j in subset]
        assert_allclose(judge.loss(subset), expected, **TOLERANCE)


def values_are_the_values(criterion: Any) -> None:
    judge = fitted(criterion)
    mixed = [*SUBSETS, *SUBSETS[::-1]]
    assert_allclose(judge.values(mixed), [judge.value(s) for s in mixed], **TOLERANCE)


def the_empty_subset_has_a_value(criterion: Any) -> None:
    assert np.isfinite(fitted(criterion).value(EMPTY))


def a_bound_is_never_passed(criterion: Any) -> None:
    judge = fitted(criterion)
    for subset in SUBSETS[2:]:
        sizes = range(1, len(subset) + 1)
        for size in sizes if judge.monotone else [len(subset)]:
            inside = [np.array(s) for s in combinations(subset, size)]
            best = judge.values(inside).max()
            bound = judge.bound(subset, size)
            assert bound >= best - 1e-9 * abs(best)
            assert_allclose(judge.bounds([subset, subset], size), bound, **TOLERANCE)
        assert_allclose(judge.bound(subset, len(subset)), judge.value(subset), **TOLERANCE)


def monotone_means_that_more_is_worth_more(criterion: Any) -> None:
    judge = fitted(criterion)
    for subset in SUBSETS:
        grown = judge.values([union(subset, j) for j in without(subset)])
        assert (grown >= judge.value(subset) - 1e-9).all()


def an_opinion_is_of_the_subset_that_results(criterion: Any) -> None:
    """A tie-breaking score depends only on the subset that results from the move."""
    judge = fitted(criterion)
    for subset in SUBSETS[1:]:
        grown = judge.second_opinion(subset, without(subset))
        assert np.isfinite(grown).all()
        assert_allclose(judge.second_opinion(subset, without(subset)[::-1])[::-1], grown, atol=1e-8)
        for unit, opinion in zip(without(subset), grown, strict=True):
            larger = union(subset, unit)
            for other in np.setdiff1d(larger, [unit]):
                smaller = np.setdiff1d(larger, [other])
                again = judge.second_opinion(smaller, np.array([other]))
                assert_allclose(again, opinion, atol=1e-8)
            for more in without(larger)[:2]:
                left = judge.second_opinion(union(larger, more), np.array([more]))
                assert_allclose(left, opinion, atol=1e-8)


def additive_means_a_sum(criterion: Any) -> None:
    judge = fitted(criterion)
    alone = judge.values([np.array([j]) for j in range(7)])
    for subset in SUBSETS:
        assert_allclose(judge.value(subset), alone[subset].sum(), **TOLERANCE)


def a_score_depends_on_the_subset_alone(criterion: Any) -> None:
    """A score does not depend on earlier calls or their order."""
    judge = fitted(criterion)
    fresh = [(subset, scores_of(fitted(criterion), subset)) for subset in SUBSETS]
    for subset, expected in [*fresh, *fresh[::-1]]:
        assert_allclose(scores_of(judge, subset), expected, **TOLERANCE)


def columns_may_come_in_any_order(criterion: Any) -> None:
    X, y = table_for(criterion)
    order = np.array([3, 0, 6, 1, 5, 2, 4])
    place = np.argsort(order)
    judge, moved = clone(criterion).fit(X, y), clone(criterion).fit(X[:, order], y)
    for subset in SUBSETS:
        there = np.sort(place[subset])
        names, names_there = without(subset), order[without(there)]
        if isinstance(criterion, ForwardCriterion):
            gains = dict(zip(names_there, moved.gain(there, without(there)), strict=True))
            assert_allclose(judge.gain(subset, names), [gains[j] for j in names], **TOLERANCE)
        if isinstance(criterion, BackwardCriterion) and len(subset):
            losses = dict(zip(order[there], moved.loss(there), strict=True))
            assert_allclose(judge.loss(subset), [losses[j] for j in subset], **TOLERANCE)


def rows_may_come_in_any_order(criterion: Any) -> None:
    X, y = table_for(criterion)
    order = np.random.default_rng(1).permutation(len(y))
    judge, moved = clone(criterion).fit(X, y), clone(criterion).fit(X[order], y[order])
    assert_same_scores(judge, moved)


def a_weight_of_two_is_a_copied_row(criterion: Any) -> None:
    X, y = table_for(criterion)
    heavy = np.arange(0, len(y), 4)
    weights = np.ones(len(y))
    weights[heavy] = 2
    weighted = clone(criterion).fit(X, y, sample_weight=weights)
    copied = clone(criterion).fit(np.vstack([X, X[heavy]]), np.r_[y, y[heavy]])
    assert_same_scores(weighted, copied, rtol=1e-6, atol=1e-8)


def a_constant_column_changes_no_score(criterion: Any) -> None:
    """The scores stay the same if a column of zeros is inserted in the middle of the table.

    A constant column is all zeros after standardisation.
    """
    X, y = table_for(criterion)
    plain, more = clone(criterion).fit(X, y), clone(criterion).fit(np.insert(X, 3, 0.0, axis=1), y)
    for subset in SUBSETS:
        there = subset + (subset >= 3)
        if isinstance(criterion, ForwardCriterion):
            others = without(subset)
            gains = more.gain(there, others + (others >= 3))
            assert_allclose(gains, plain.gain(subset, others), **TOLERANCE)
        if isinstance(criterion, BackwardCriterion) and len(subset):
            losses = more.loss(np.sort(np.r_[there, 3]))
            position = np.searchsorted(there, 3)
            assert_allclose(np.delete(losses, position), plain.loss(subset), **TOLERANCE)
            assert abs(losses[position]) <= 1e-9


def candidates_may_be_some_and_in_any_order(criterion: Any) -> None:
    judge = fitted(criterion)
    subset, all_others = np.array([1, 4]), np.array([0, 2, 3, 5, 6])
    gains = judge.gain(subset, all_others)
    assert_allclose(judge.gain(subset, all_others[[3, 0]]), gains[[3, 0]], **TOLERANCE)


def the_input_stays_as_it_is(criterion: Any) -> None:
    X, y = table_for(criterion)
    before = X.copy(), y.copy()
    X.flags.writeable = y.flags.writeable = False
    judge = clone(criterion).fit(X, y)
    subset = np.array([1, 4])
    subset.flags.writeable = False
    scores_of(judge, subset)
    assert_array_equal(X, before[0])
    assert_array_equal(y, before[1])
    assert repr(clone(criterion)) == repr(criterion)


def a_fitted_criterion_can_be_stored(criterion: Any) -> None:
    judge = fitted(criterion)
    assert_same_scores(pickle.loads(pickle.dumps(judge)), judge, [SUBSETS[2]])


def string_labels_are_classes(criterion: Any) -> None:
    X, y = make_table()
    judge = clone(criterion).fit(X, y)
    named = clone(criterion).fit(X, np.array(["ash", "beech", "cedar"])[y])
    assert_same_scores(named, judge, SUBSETS[1:])


def no_nan_on_constant_and_copied_columns(criterion: Any) -> None:
    X, y = table_for(criterion)
    X = np.column_stack([X, np.full(len(X), 3.0), X[:, 0]])
    judge = clone(criterion).fit(X, y)
    if isinstance(criterion, ForwardCriterion):
        assert not np.isnan(judge.gain(np.array([0, 1]), np.arange(2, 9))).any()
        assert not np.isnan(judge.gain(EMPTY, np.arange(9))).any()
    if isinstance(criterion, BackwardCriterion):
        assert not np.isnan(judge.loss(np.array([0, 1, 2]))).any()


def nan_is_accepted(criterion: Any) -> None:
    """No score is NaN for a table with missing values, and columns may come in any order."""
    X, y = table_for(criterion)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    order = np.random.default_rng(1).permutation(7)
    plain, moved = clone(criterion).fit(X, y), clone(criterion).fit(X[:, order], y)
    for subset in SUBSETS:
        assert not np.isnan(scores_of(plain, subset)).any()
    if isinstance(plain, ForwardCriterion):
        assert_allclose(moved.gain(EMPTY, np.arange(7)), plain.gain(EMPTY, order), **TOLERANCE)


def codes_have_no_order(criterion: Any) -> None:
    """Different codes for the same levels of a category change no score."""
    X, y = table_for(criterion)
    rng = np.random.default_rng(0)
    X[:, 2] = rng.integers(0, 12, len(X))
    other = X.copy()
    other[:, 2] = rng.permutation(12)[X[:, 2].astype(int)]
    first, second = (clone(criterion).set_params(categories=[2]).fit(Z, y) for Z in (X, other))
    assert_same_scores(first, second)


def sparse_is_dense(criterion: Any) -> None:
    """A sparse table gives the same scores as the dense table, and is not modified."""
    X, y = table_for(criterion)
    X[np.abs(X) < 0.8] = 0.0
    X[:, :4] = np.round(2 * X[:, :4])  # some columns with few levels, others with many
    dense = clone(criterion).fit(X, y)
    for form in (csc_array, csr_array):
        given = form(X)
        before = given.data.copy(), given.indices.copy(), given.indptr.copy()
        sparse = clone(criterion).fit(given, y)
        assert_same_scores(sparse, dense, rtol=1e-5, atol=1e-7)
        assert_array_equal(sparse.idle_, dense.idle_)
        for was, now in zip(before, (given.data, given.indices, given.indptr), strict=True):
            assert_array_equal(was, now)


def blocks_are_the_table(criterion: Any) -> None:
    """A table in row blocks gives the same scores as the table in memory."""
    X, y = table_for(criterion)
    X[:, :4] = np.round(2 * X[:, :4])  # some columns with few levels, others with many
    X[:, 6] = X[:, 1]
    held = clone(criterion).fit(X, y)
    source = MemoryMap(X, y, block_rows=7)
    labels = source.reduce(TargetLabels("law"), target_only=True)
    found = clone(criterion).fit(BlockTable(source, labels, "law"))
    assert_same_scores(found, held, SUBSETS[:-2])
    assert_array_equal(found.idle_, held.idle_)


def targets_may_be_several(criterion: Any) -> None:
    """If each target is scored separately, two copies of a target give the scores of one target."""
    X, y = table_for(criterion)
    once, twice = clone(criterion).fit(X, y), clone(criterion).fit(X, np.column_stack([y, y]))
    assert_same_scores(twice, once)


FOR_ALL = (
    a_score_depends_on_the_subset_alone,
    columns_may_come_in_any_order,
    the_input_stays_as_it_is,
    a_fitted_criterion_can_be_stored,
    no_nan_on_constant_and_copied_columns,
)
FOR_SUBSET_CRITERIA = (
    gain_is_a_difference_of_values,
    loss_is_a_difference_of_values,
    values_are_the_values,
    the_empty_subset_has_a_value,
    a_bound_is_never_passed,
)
