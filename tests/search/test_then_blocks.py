"""Composed searches on row blocks, compared with the table in memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import KNeighborsClassifier

from tamis.blocks import MemoryMap, Parquet
from tamis.criteria import HSIC, MRMR, CrossValidated, FisherScore, Scatter
from tamis.exceptions import InvalidParameter, InvalidTable, NotEnoughMemory
from tamis.search import FloatingForward, Forward, Ranking, Then


def made(n=240, d=9):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    X[:, [2, 5, 7]] += 2 * y[:, None]
    return X, y


FIRST = Ranking(FisherScore(), n_features_to_select=5)
SECONDS = [
    FloatingForward(Scatter("J3"), n_features_to_select=2),
    Forward(MRMR(n_bins=4), n_features_to_select=2),
    Forward(HSIC(), n_features_to_select=2),
    Forward(CrossValidated(KNeighborsClassifier()), n_features_to_select=2),
    Then(Ranking(HSIC(), n_features_to_select=3), Forward(Scatter(), n_features_to_select=1)),
]


@pytest.mark.parametrize("second", SECONDS, ids=str)
def test_the_second_search_gets_the_columns_that_the_first_selected(second):
    X, y = made()
    search = Then(FIRST, second)
    held = search.fit(X, y)
    order, scores, inside = held.order_, held.scores_, held.second_.order_
    found = search.fit(MemoryMap(X, y, block_rows=17))
    assert_array_equal(found.order_, order)
    assert_array_equal(found.second_.order_, inside)
    # the second search scores standardised columns
    assert_allclose(found.scores_, scores, rtol=1e-9, atol=1e-12)
    assert found.takes_blocks


def test_groups_are_supported_and_a_search_can_be_resumed():
    X, y = made()
    groups = {"a": [0, 2], "b": [5, 6]}
    search = Then(FIRST, Forward(Scatter(), n_features_to_select=2), feature_groups=groups)
    order = search.fit(X, y).order_
    found = search.fit(MemoryMap(X, y, block_rows=50))
    assert_array_equal(found.order_, order)
    record = found.record_
    longer = search.set_params(second__n_features_to_select=4)
    whole = longer.fit(X, y).order_
    again = longer.resume(MemoryMap(X, y, block_rows=50), record=record)
    assert_array_equal(again.order_, whole)


def test_only_selected_columns_are_read(tmp_path, monkeypatch):
    polars = pytest.importorskip("polars")
    X, y = made()
    names = list("abcdefghi")
    table = polars.DataFrame(X, names).with_columns(t=polars.Series(y))
    table.write_parquet(tmp_path / "t.parquet", row_group_size=60)
    read = []
    batches = Parquet._batches

    def noted(self, group, columns):
        read.append(len(columns))
        return batches(self, group, columns)

    monkeypatch.setattr(Parquet, "_batches", noted)
    search = Then(FIRST, FloatingForward(Scatter("J3"), n_features_to_select=2))
    found = search.fit(str(tmp_path / "t.parquet"), target="t").columns
    assert found == [names[j] for j in search.fit(X, y).columns]
    assert (read[-1], max(read)) == (6, 10)


def test_columns_that_do_not_fit_into_memory_are_refused(monkeypatch):
    X, y = made()
    source = MemoryMap(X, y, block_rows=50)
    monkeypatch.setattr("tamis.blocks.table.free_memory", lambda: 50_000.0)
    with pytest.raises(
        NotEnoughMemory, match=r"Forward needs its 5 columns of all 240 rows.*sample"
    ):
        Then(FIRST, Forward(HSIC(), n_features_to_select=2)).fit(source)
    Then(FIRST, Forward(Scatter(), n_features_to_select=2)).fit(source)  # which reads blocks


def test_the_first_search_must_learn_from_blocks():
    X, y = made()
    with pytest.raises(InvalidParameter, match=r"HSIC.*cannot learn from row blocks"):
        Then(Ranking(HSIC()), Forward(Scatter())).fit(MemoryMap(X, y))


def test_the_second_search_reports_missing_values():
    X, y = made()
    X[30, 5] = np.nan
    search = Then(
        Ranking(MRMR(n_bins=3), n_features_to_select=5), Forward(Scatter(), n_features_to_select=2)
    )
    with pytest.raises(InvalidTable, match=r"Scatter needs a number.*missing.*row 30"):
        search.fit(MemoryMap(X, y, block_rows=20))
