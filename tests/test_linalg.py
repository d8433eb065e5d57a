"""Regressions and stacks of sub-matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tamis import _linalg
from tamis._linalg import Residuals, stacked
from tamis.criteria import Scatter
from tamis.search import Bidirectional


def gram(d=8, seed=0):
    X = np.random.default_rng(seed).normal(size=(30, d))
    return X.T @ X


@pytest.mark.parametrize("products", [False, True])
def test_residuals_agree_with_a_regression(products):
    W, draw = gram(), np.random.default_rng(1)
    sweep = Residuals(W, products=products)
    for _ in range(60):
        subset = np.flatnonzero(draw.random(8) < 0.5)
        sweep.move_to(subset)
        S = sweep.members
        assert_array_equal(np.sort(S), subset)
        coefs = np.linalg.solve(W[np.ix_(S, S)], W[S]) if len(S) else W[S]
        left = W - W[:, S] @ coefs
        assert_allclose(sweep.coefs, coefs, atol=1e-10)
        assert_allclose(sweep.left, left.diagonal(), atol=1e-10)
        if products:
            assert_allclose(sweep.products, left, atol=1e-10)


def test_stacks_cover_every_subset_once(monkeypatch):
    subsets = [np.arange(n) for n in (3, 0, 5, 3, 5, 5, 1)]
    for batch in (1, 30, 10**6):
        monkeypatch.setattr(_linalg, "BATCH", batch)
        found = stacked(subsets)
        assert sorted(np.concatenate([indices for indices, _ in found])) == [0, 2, 3, 4, 5, 6]
        for indices, stack in found:
            assert len(indices) == len(stack) > 0
            assert all(
                np.array_equal(subsets[i], row) for i, row in zip(indices, stack, strict=True)
            )


def test_a_subset_may_be_larger_than_a_batch():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 1500)), np.repeat([0, 1], 15)
    criterion = Scatter("J3", ridge=1e-3).fit(X, y)
    everything = np.arange(1500)
    assert np.isfinite(criterion.values([everything, everything[:-1]])).all()
    assert criterion.bounds([everything], 1499)[0] <= criterion.value(everything)


@pytest.mark.slow
def test_a_bidirectional_search_on_1500_columns():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 1500)), np.repeat([0, 1], 20)
    X[:, 7] += 4 * y
    search = Bidirectional(Scatter("J3", ridge=1e-3), n_features_to_select=2).fit(X, y)
    assert search.support_[7]
