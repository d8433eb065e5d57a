"""Evaluation on rows that are sampled from a table in row blocks."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.feature_selection import SelectKBest
from sklearn.naive_bayes import GaussianNB

from tamis.blocks import BlockIterator, MemoryMap
from tamis.evaluation import Drawn, Realizations, evaluate
from tamis.exceptions import InvalidParameter


def made(n=900):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    return np.column_stack([np.arange(n), rng.normal(size=(n, 5)) + 2 * y[:, None]]), y


def test_draws_are_rows_of_the_table_and_do_not_depend_on_the_blocks():
    X, y = made()
    one, other = (Drawn(MemoryMap(X, y, block_rows=b), 200, name="t") for b in (900, 7))
    for realization in range(3):
        drawn = one.at(realization, 5)
        rows = drawn.X[:, 0].astype(int)
        assert len(np.unique(rows)) == 200
        assert_array_equal(drawn.X, X[rows])
        assert_array_equal(drawn.y, y[rows])
        assert_array_equal(other.at(realization, 5).X, drawn.X)
    assert set(one.at(0, 5).X[:, 0]) != set(one.at(1, 5).X[:, 0])
    assert one.at(0, 5).X.shape == (200, 6)
    assert Drawn(MemoryMap(X, y), 5000).at(0, 0).X.shape == (900, 6)


def test_a_draw_is_shared_by_all_methods_and_pickled_without_its_rows():
    X, y = made()
    passes = []

    def blocks():
        passes.append(1)
        yield X[:300], y[:300]
        yield X[300:], y[300:]

    data = Drawn(BlockIterator(blocks), 200)
    before = len(passes)
    methods = {"two": SelectKBest(k=2), "three": SelectKBest(k=3)}
    plan = Realizations(3, train=80)
    found = evaluate(methods, data, plan, estimators=GaussianNB(), sizes="own")
    assert len(passes) - before == 3 + 1  # and the first block is read for the fingerprint
    assert all(cell.mean < 0.2 for cell in found.means())
    drawn = Drawn(MemoryMap(X, y), 200)
    small = len(pickle.dumps(drawn))
    drawn.at(0, 0)
    assert len(pickle.dumps(drawn)) == small


def test_invalid_draws_are_refused(tmp_path):
    X, y = made()
    with pytest.raises(InvalidParameter, match=r"evaluate needs a number of rows.*Drawn\("):
        evaluate(SelectKBest(), MemoryMap(X, y), estimators=GaussianNB())
    with pytest.raises(InvalidParameter, match="n_samples to be an int of at least 2"):
        Drawn(MemoryMap(X, y), 1.5)
