"""Sparse files: the same answer as with all zeros, in the memory of the entries."""

import json
import tracemalloc
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csc_array, random_array
from sklearn.datasets import dump_svmlight_file

import tamis as tamis_package
from tamis import _memory
from tamis.blocks.inputs import SparseColumns
from tamis.criteria import MRMR, Correlation
from tamis.exceptions import InvalidTable
from tamis.search import Forward, Ranking
from tamis.table.files import FileTable
from tamis.table.sparse import profiled_sparse
from tamis.table.table import table_of

METHODS = ["mrmr", "correlation", "fisher-score", "ridge-rfe", "svm-rfe"]


def made(n=120, d=30, density=0.15, seed=0):
    """Small counts, of which the first three columns have to do with two classes."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < density, rng.integers(1, 5, (n, d)), 0.0)
    y = rng.integers(0, 2, n)
    for j, share in enumerate((0.5, 0.4, 0.3)):
        X[(rng.random(n) < share) & (y == 1), j] = 3
    return X, y


def written(X, y, name="t.svm"):
    dump_svmlight_file(X, y, name, zero_based=False)
    frame = pl.DataFrame(X, schema=[f"x{j + 1}" for j in range(X.shape[1])])
    frame.with_columns(pl.Series("target", y)).write_csv("t.csv")


def selected(tamis, *args):
    result = tamis("select", *args, "-o", "r.json")
    assert result.exit_code == 0, result.output
    with open("r.json") as stream:
        return json.load(stream)


@pytest.mark.parametrize("method", METHODS)
def test_the_names_of_the_dense_way(tamis, method):
    written(*made())
    found, dense = (
        selected(tamis, *file, method, "-k", 4)["selected"]
        for file in (["t.svm"], ["t.csv", "-t", "target"])
    )
    assert found == dense
    assert len(found) == 4


def test_wide_tables_are_never_made_dense(tamis):
    rng = np.random.default_rng(0)
    n, d = 200, 50_000
    X = random_array((n, d), density=0.01, rng=rng, format="csr")
    y = rng.integers(0, 2, n)
    dump_svmlight_file(X, y, "wide.svm", zero_based=False)
    tracemalloc.start()
    try:
        result = tamis("select", "wide.svm", "mrmr", "-k", 10, "-o", "r.csv")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.exit_code == 0, result.output
    held = np.diff(X.tocsc().indptr) > 0  # columns of zeros are left out
    assert pl.read_csv("r.csv").height == held.sum()
    assert peak < 8 * n * d / 2


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_sparse_and_dense_tables_have_the_same_kinds_and_alerts(task):
    X, y = made()
    if task == "regression":
        y = np.random.default_rng(1).normal(size=len(y))
    X[:, 4] = X[:, 7]
    X[:, 5] = 0
    X[:, 6] = 2
    X[:, 8] = np.arange(len(y))
    X[:, 9] = 3 * y + 1
    X[:, 10] = np.where(np.arange(len(y)) % 40 == 0, 1 - y, y)
    X[3, 11] = np.nan
    names = [f"x{j}" for j in range(X.shape[1])]
    sparse = SparseColumns(csc_array(X), names)
    frame = pl.DataFrame(X, schema=names).with_columns(pl.Series("y", y))
    dense = table_of(FileTable(frame), "y", task=task)
    found = profiled_sparse(sparse, y, task)
    assert found.kinds == dense.kinds
    assert found.aside == dense.aside
    assert list(map(str, found.alerts)) == list(map(str, dense.alerts))
    assert {"identifier", "code", "constant"} <= set(dense.aside.values())
    kept = profiled_sparse(sparse, y, task, keep=["x8", "x9"])
    assert set(kept.aside.values()) == {"constant"}


def test_a_leak_of_a_rare_class_is_found():
    X, _ = made(n=400)
    y = (np.arange(400) % 20 == 0).astype(int)
    X[:, 3] = np.where(y, 2, 0)
    X[0, 3] = 0
    table = SparseColumns(csc_array(X), [f"x{j}" for j in range(X.shape[1])])
    (alert,) = [a for a in profiled_sparse(table, y, "classification").alerts if a.sort == "leak"]
    assert alert.columns == ("x3",)


def test_what_does_not_fit_is_refused_where_zeros_are_needed(tamis, refused, monkeypatch):
    written(*made())
    monkeypatch.setattr(_memory, "free_memory", lambda: 8.0 * 120 * 30 - 1)
    assert "made dense" in refused("select", "t.svm", "svm-rfe")
    assert tamis("select", "t.svm", "mrmr").exit_code == 0


def test_a_large_index_is_one_column(tamis):
    Path("huge.svm").write_text("1 2000000000:1\n0 1:2\n1 3:1\n")
    shown = tamis("select", "huge.svm", "--dry-run").stdout
    assert "3 rows, 3 columns" in shown
    assert "x2000000000" in shown


def test_a_table_with_only_a_target_is_refused(refused):
    written(*made(d=3))
    left_out = ["--drop", "x1", "--drop", "x2", "--drop", "x3"]
    assert "No column is left besides the target" in refused("select", "t.svm", *left_out)


def test_columns_by_name(tamis, refused):
    written(*made())
    options = ["--drop", "x1", "--fixed", "x20", "--group", "pair=x2,x3", "-k", 3]
    found = selected(tamis, "t.svm", "mrmr", *options)["selected"]
    assert "x1" not in found
    assert "x20" in found
    assert ("x2" in found) == ("x3" in found)
    assert "There is no column 'x99'" in refused("select", "t.svm", "mrmr", "--drop", "x99")
    shown = tamis("select", "t.svm", "--dry-run")
    assert "120 rows, 30 columns" in shown.stdout
    assert "0 to 4" in shown.stdout


def test_a_record_can_be_continued(tamis):
    written(*made())
    whole = selected(tamis, "t.svm", "mrmr", "-k", 5)
    selected(tamis, "t.svm", "mrmr", "-k", 3, "--save-record", "part.json")
    more = selected(tamis, "t.svm", "mrmr", "-k", 5, "--resume", "part.json")
    assert more["selected"] == whole["selected"]
    assert more["record"]["feature_names"] == [f"x{j + 1}" for j in range(30)]


def test_missing_values_are_accepted_and_infinity_is_refused(tamis, refused):
    X, y = made()
    X[3, 2] = 77
    written(X, y)
    text = Path("t.svm").read_text()
    Path("t.svm").write_text(text.replace("3:77", "3:nan"))
    assert len(selected(tamis, "t.svm", "mrmr", "-k", 2)["selected"]) == 2
    Path("t.svm").write_text(text.replace("3:77", "3:inf"))
    assert "The column 'x3' has 1 infinite value" in refused("select", "t.svm", "mrmr")


def test_a_sparse_file_can_be_read_in_python(tamis):
    X, y = made()
    written(X, y)
    table = tamis_package.read("t.svm")
    assert table.X.shape == (120, 30)
    search = Forward(MRMR(), n_features_to_select=3).fit(table.sparse, table.y)
    plain = Forward(MRMR(), n_features_to_select=3).fit(X, y)
    assert search.columns == [f"x{j + 1}" for j in plain.columns]
    taken = search.transform(table.sparse)
    assert taken.names == search.columns
    np.testing.assert_array_equal(taken.X.toarray(), X[:, plain.columns])
    with pytest.raises(InvalidTable, match="the same columns in the same order"):
        search.transform(taken)
    ranking = tamis_package.select(table.sparse, table.y, Ranking(Correlation()))
    assert ranking.get_feature_names_out()[0].startswith("x")
