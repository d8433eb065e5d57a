"""The orders of Auto, against searches and loops over their definitions."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_breast_cancer, load_diabetes

from tamis.auto.candidate_choice import STEEP, neighbours_of, smooth
from tamis.auto.floating import floating_subsets
from tamis.auto.lists import similar_units
from tamis.auto.orders import Order, distinct_order, floating_order, has_interaction
from tamis.contract.units import Grouping
from tamis.criteria import Scatter
from tamis.search import FloatingForward


def explained(X, y, columns):
    """Return R² of a least-squares fit."""
    Z = X[:, columns] - X[:, columns].mean(axis=0)
    residual = y - y.mean() - Z @ np.linalg.lstsq(Z, y - y.mean(), rcond=None)[0]
    return 1 - (residual**2).sum() / ((y - y.mean()) ** 2).sum()


def test_for_two_classes_the_floating_order_is_that_of_the_search_by_scatter():
    X, y = load_breast_cancer(return_X_y=True)
    order = floating_order(X, y, "classification", Grouping(30), 8)
    search = FloatingForward(Scatter("J3"), n_features_to_select=8).fit(X, y)
    for size in range(1, 9):
        steps = [step for step in search.trace_ if len(step.subset) == size]
        best = max(steps, key=lambda step: step.value).subset
        assert_array_equal(order.first(size), best)
    assert sorted(order.ranking) == list(range(30))


def test_floating_subsets_of_numbers_explain_at_least_as_much_as_forward_selection():
    X, y = load_diabetes(return_X_y=True)
    _, subsets = floating_subsets(X, y[:, None], Grouping(10), 8, 500)
    forward = []
    for size in range(1, 9):
        rest = [column for column in range(10) if column not in forward]
        forward.append(max(rest, key=lambda column: explained(X, y, [*forward, column])))
        assert len(subsets[size]) == size
        assert explained(X, y, subsets[size]) >= explained(X, y, forward) - 1e-6


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-6])
def test_groups_and_fixed_units_in_the_floating_search(scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 8)) * scale
    y = (X[:, 1] - X[:, 5] + X[:, 6]) / scale + 0.1 * rng.normal(size=200)
    units = Grouping(8, (("pair", (1, 5)),), fixed=(0,))
    ranking, subsets = floating_subsets(X, y[:, None], units, 5, 500)
    assert_array_equal(subsets[2], [0, 1])  # the pair is unit 1
    assert_array_equal(subsets[3], [0, 1, 5])
    assert sorted(ranking) == list(range(7))
    _, few = floating_subsets(X, y[:, None], units, 5, 3)  # three units are searched
    assert_array_equal(few[3], subsets[3])


def test_a_duplicate_adds_nothing_to_the_floating_search():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4))
    X[:, 3] = 2 * X[:, 0]
    y = X[:, 0] + 0.5 * X[:, 1] + 0.1 * rng.normal(size=100)
    _, subsets = floating_subsets(X, y[:, None], Grouping(4), 4, 500)
    assert_array_equal(subsets[2], [0, 1])
    assert 4 not in subsets  # the search ends without the duplicate
    order = floating_order(X, y, "regression", Grouping(4), 4)
    assert_array_equal(np.sort(order.first(4)), range(4))


def test_near_duplicates_are_moved_to_the_end():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 12))
    X[:, 4] = X[:, 9] + 0.1 * rng.normal(size=80)
    X[:, 2] = -X[:, 9] + 0.1 * rng.normal(size=80)
    X[:, 7] = 3.0  # constant, so its correlation is unknown
    ranking = rng.permutation(12)
    stays, moved = [], []
    for unit in ranking:
        r = [
            abs(np.corrcoef(X[:, unit], X[:, other])[0, 1]) for other in stays if unit != 7 != other
        ]
        (moved if max(r, default=0) > 0.9 else stays).append(unit)
    assert len(moved) == 2
    assert_array_equal(distinct_order(Order(ranking), X, Grouping(12)).ranking, stays + moved)
    grouped = Grouping(12, (("g", (3, 4)), ("h", (7, 9))))
    found = distinct_order(Order(np.arange(10)), X, grouped).ranking
    assert found[-1] == 6  # the group of column 9, a near-duplicate of column 2, and a constant
    assert found[-2] == 9  # column 11, because only one column of "g" is a near-duplicate


def test_selected_columns_stand_for_the_columns_that_are_closest_to_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 6))
    X[:, 1] = X[:, 0] + 0.2 * rng.normal(size=100)
    X[:, 5] = X[:, 0] + 0.1 * rng.normal(size=100)
    X[:, 2] = X[:, 3]
    units = Grouping(6)
    assert similar_units(X, units, np.array([0, 3])) == {0: [5, 1], 3: [2]}
    assert similar_units(X, units, np.arange(6)) == similar_units(X, units, np.array([4])) == {}


@pytest.mark.parametrize("kind", ["product", "sum", "noise"])
def test_only_an_interaction_without_main_effects_is_an_order(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20))
    signal = {"product": X[:, 3] * X[:, 8], "sum": X[:, 3] + X[:, 8], "noise": rng.normal(size=300)}
    found = has_interaction(X, (signal[kind] > 0).astype(int), "classification", 0)
    assert found is (kind == "product")


def test_losses_are_smoothed_along_their_curve():
    rng = np.random.default_rng(0)
    curves = ["a", "b", "a", "a", "b"]
    sizes = np.array([5, 1, 1, 2, 7])
    losses, errors = rng.random((6, 5)), rng.uniform(0.1, 0.3, size=(5, 5))
    found = smooth(losses, errors, neighbours_of(curves, sizes))
    for i in range(5):
        mine = sorted((size, j) for j, size in enumerate(sizes) if curves[j] == curves[i])
        position = [j for _, j in mine].index(i)
        expected = losses[:, i].copy()
        for near in (position - 1, position + 1):
            if 0 <= near < len(mine):
                j = mine[near][1]
                gap = losses[:, j] - losses[:, i]
                expected += np.where(abs(gap) <= STEEP * errors[i, j], gap / 4, 0)
        np.testing.assert_allclose(found[:, i], expected)


def test_units_with_the_same_missing_rows_do_not_stand_for_each_other():
    rng = np.random.default_rng(0)
    values, missing = rng.normal(size=(200, 2)), (np.arange(200) % 10 == 0).astype(float)
    near = values[:, 0] + 0.01 * rng.normal(size=200)
    X = np.column_stack([values[:, 0], missing, values[:, 1], missing, near, np.ones(200)])
    units = Grouping(6, (("a", (0, 1)), ("b", (2, 3)), ("c", (4, 5))))
    assert similar_units(X, units, np.array([0])) == {0: [2]}
    assert similar_units(X, units, np.array([2])) == {}
    assert_array_equal(distinct_order(Order(np.arange(3)), X, units).ranking, [0, 1, 2])
