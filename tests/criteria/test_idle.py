"""Constant and duplicate columns are idle: they are selected last, removed first, and reported."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from tamis._arrays import idle_columns
from tamis.criteria import (
    HSIC,
    MRMR,
    FisherScore,
    KwakInformation,
    ParzenInformation,
    ReducedParzenInformation,
    Remembered,
    Scatter,
)
from tamis.exceptions import DegenerateData
from tamis.recipes import recipe
from tamis.search import Backward, Forward, Ranking
from tamis.testing.problem import make_table as table
from tests.laws.catalogue import name

IDLE = [0, 9, 10]
RECIPES = [
    *("mrmr", "mifs", "mifs-u", "nmifs", "cmim", "jmi", "disr", "sfs-lda", "sfs-knn", "sffs-knn"),
    *("mi-rsde", "mi-pw", "kwak", "hsic-forward", "hsic-rfe", "sfs-j3", "sbs-j3", "sffs-j3"),
    *("sfbs-j3", "bidirectional-j3", "plus-l-minus-r-j3", "divergence-sffs"),
]


def problem(n_samples=80):
    """Return a table with three relevant columns, noise, two constants and a duplicate."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 8))
    y = X[:, [1, 3, 5]].sum(axis=1) > 0
    constants = np.full(n_samples, 3.0), np.full(n_samples, -0.1)
    return np.column_stack([constants[0], X, 3 * X[:, 1] - 7, constants[1]]), y


@pytest.mark.parametrize("method", RECIPES)
def test_no_recipe_selects_idle_columns_while_others_are_left(method):
    X, y = problem()
    for size in (3, 6, 8):
        chosen = recipe(method, n_features_to_select=size).fit(X, y).get_support(indices=True)
        assert not np.isin(chosen, IDLE).any()
        if size == 3:
            assert_array_equal(chosen, [2, 4, 6])


def test_selected_idle_columns_are_reported():
    X, y = problem()
    with pytest.warns(DegenerateData, match=r"Forward selects 2 column\(s\) .* \(0, 10\)"):
        chosen = Forward(MRMR(), n_features_to_select=10).fit(X, y).get_support(indices=True)
    assert 9 not in chosen  # of these, the duplicate is the most redundant
    with pytest.warns(DegenerateData, match=r"Ranking selects 1 column\(s\) .* \(9\)"):
        Ranking(FisherScore(), n_features_to_select=4).fit(X, y)


def test_wrappers_and_binned_criteria_find_idle_columns_too():
    X, y = problem()
    assert_array_equal(np.flatnonzero(Remembered(Scatter()).fit(X, y).idle_), [0, 10])
    rare = X.copy()
    rare[:, 1] = np.maximum(np.arange(len(X)) - 77, 0)  # the median is the smallest value
    known = MRMR(n_bins=2).fit(rare, y)
    assert known._coded.entropy[1] == 0
    assert known.idle_[1]


def test_backward_removes_idle_columns_first():
    X, y = problem()
    search = Backward(Scatter("J3", ridge=1e-3), n_features_to_select=8).fit(X, y)
    assert sorted(int(step.moved[0]) for step in search.trace_[1:]) == IDLE


@pytest.mark.parametrize(
    "criterion",
    [
        HSIC(),
        HSIC(gamma="median", unbiased=False),
        ParzenInformation(),
        KwakInformation(leave_one_out=True),
        ReducedParzenInformation(by="marginal"),
        ReducedParzenInformation(by="removal"),
    ],
    ids=name,
)
def test_a_constant_column_does_not_change_the_scores(criterion):
    X, y = table()
    plain = clone(criterion).fit(X, y)
    more = clone(criterion).fit(np.column_stack([X, np.full(len(X), 2.0)]), y)
    with_constant = np.array([0, 2, 5, 7])
    assert_allclose(more.loss(with_constant)[:3], plain.loss(np.array([0, 2, 5])), rtol=1e-10)
    assert more.loss(with_constant)[3] == 0
    if hasattr(criterion, "gain"):
        assert more.gain(np.array([0, 2]), np.array([7])) == 0
        assert_allclose(more.value(with_constant), plain.value(np.array([0, 2, 5])), rtol=1e-12)


class TestIdleColumns:
    def test_ordinary_tables_have_no_idle_columns(self):
        assert not idle_columns(table()[0]).any()
        assert not idle_columns(np.random.default_rng(0).integers(0, 2, (30, 500)) * 1.0).any()

    def test_every_duplicate_except_the_first_is_idle(self):
        rng = np.random.default_rng(1)
        X = rng.normal(size=(50, 40)) * 10.0 ** rng.integers(-8, 8, 40)
        order = rng.permutation(np.repeat(np.arange(40), 3))
        expected = np.ones(120, dtype=bool)
        expected[np.unique(order, return_index=True)[1]] = False
        assert_array_equal(idle_columns(X[:, order]), expected)

    def test_huge_numbers_are_compared(self):
        X = np.clip(table()[0], -1, 1) * 1.7e308
        huge = np.column_stack([X, np.zeros(60), np.full(60, 1e308), X[:, 0]])
        assert_array_equal(np.flatnonzero(idle_columns(huge)), [7, 8, 9])
