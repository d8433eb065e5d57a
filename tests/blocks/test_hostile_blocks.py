"""Folders of files written by other programs, with different types or files that are not tables."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import tamis
from tamis.blocks import MemoryMap, Parquet, dispatch, local
from tamis.blocks.column_summary import Apart, Survey
from tamis.blocks.labels import Labels
from tamis.blocks.moments import SMALL, ShiftedSums
from tamis.blocks.source import OfChangedBlocks
from tamis.criteria import MRMR, CrossValidated, FisherScore, Scatter
from tamis.exceptions import InvalidTable, InvalidTarget
from tamis.search import Forward, Ranking, Then

# warnings about the table are tested in other files
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def written(where, **changed):
    """Write a file with three columns and a target of 60 rows. Columns can be replaced."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    table = {"a": X[:, 0], "b": X[:, 1], "y": (X[:, 1] > 0).astype(int)}
    where.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(table | changed), where)
    return where.parent


def texts(*values):
    return pa.array(list(values) * (60 // len(values)))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (texts(True, False), texts(5, 6), [1, 0, 5, 6]),
        (texts(5, 6), texts(True, None), [5, 6, 1, None]),
        (texts("u", "v").dictionary_encode(), texts("u", "w"), ["u", "v", "u", "w"]),
        (pa.nulls(60), texts(True, False), [None, None, True, False]),
        (texts("u", "v"), pa.nulls(60), ["u", "v", None, None]),
    ],
)
def test_files_may_store_a_column_with_different_types(tmp_path, first, second, expected):
    written(tmp_path / "0.parquet", z=first)
    folder = written(tmp_path / "1.parquet", z=second)
    assert Parquet(folder).rows(np.array([0, 1, 60, 61]))["z"].to_pylist() == expected
    assert tamis.select(folder, target="y", random_state=0).columns == ["b"]


def test_a_column_without_values_in_one_file_is_missing_there(tmp_path):
    numbers = np.random.default_rng(1).normal(size=60)
    for name, nothing in (("untyped", pa.nulls(60)), ("numbers", pa.nulls(60, pa.float64()))):
        written(tmp_path / name / "0.parquet", z=nothing)
        written(tmp_path / name / "1.parquet", z=numbers)
    scores = [
        Ranking(MRMR(n_bins=4)).fit(tmp_path / name, target="y").scores_
        for name in ("untyped", "numbers")
    ]
    assert_array_equal(*scores)


@pytest.mark.parametrize("address", ["{}", "file://{}"])
def test_a_folder_may_be_named_like_a_file(tmp_path, address):
    folder = written(tmp_path / "all [1]" / "visits.parquet" / "part-0.parquet")
    for where in (folder, folder.parent):
        assert len(Parquet(address.format(where))._files) == 1
    (tmp_path / "none").mkdir()
    with pytest.raises(InvalidTable, match=r"none is a folder without \*\.parquet files"):
        Parquet(address.format(tmp_path / "none"))


def test_targets_of_other_types_are_classes_or_refused(tmp_path):
    above = (np.random.default_rng(0).normal(size=(60, 2))[:, 1] > 0).astype(int)
    for y in (pa.array([Decimal(int(k)) for k in above]), above.astype("datetime64[D]")):
        folder = written(tmp_path / "0.parquet", y=y)
        assert tamis.select(folder, target="y", random_state=0).columns == ["b"]
        search = Ranking(FisherScore(), n_features_to_select=1)
        assert search.fit(folder, target="y").columns == ["b"]
    for y, said in ((texts("u", None), "missing"), (texts([1], [2]), "one class or number")):
        folder = written(tmp_path / "0.parquet", y=y)
        with pytest.raises(InvalidTarget, match=said):
            tamis.select(folder, target="y")
        with pytest.raises(InvalidTarget, match=said):
            Ranking(FisherScore()).fit(folder, target="y")


def test_columns_of_bytes_that_are_not_text_are_ignored(tmp_path):
    folder = written(tmp_path / "0.parquet", z=texts(b"\xff", b"u"))
    assert tamis.select(folder, target="y", random_state=0).columns == ["b"]


def test_an_error_in_a_sample_names_the_column(tmp_path):
    folder = written(tmp_path / "0.parquet", z=np.r_[np.inf, np.arange(59.0)])
    with pytest.raises(InvalidTable, match=r"infinity .* column\(s\) 'z'\. "):
        tamis.select(folder, target="y")


def test_a_table_with_one_row_is_refused():
    with pytest.raises(InvalidTable, match="at least 2 rows, but the files have 1"):
        dispatch.draw_rows(MemoryMap(np.ones((1, 2)), np.ones(1)))


# -- states of threads -------------------------------------------------------------------------


def test_threads_do_not_each_hold_a_large_state():
    labels = Labels(np.arange(3), np.ones(3, dtype=np.int64), 3)
    narrow, wide = np.zeros(100), np.zeros(1300)
    assert ShiftedSums(narrow, labels, 3).is_small
    assert not ShiftedSums(wide, labels, 3).is_small
    assert ShiftedSums(wide, labels, 1).is_small == (SMALL >= 1300**2)
    assert OfChangedBlocks(Survey("", None, 2, False), lambda block: block).is_small


@pytest.mark.parametrize("n_threads", [1, 3])
def test_folds_do_not_depend_on_the_number_of_threads(monkeypatch, n_threads):
    monkeypatch.setattr(local, "own_threads", lambda: n_threads)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 6)), rng.integers(0, 3, 300)
    X[:, 2] += y
    search = Forward(CrossValidated(LinearDiscriminantAnalysis(), cv=4), n_features_to_select=3)
    blocks = MemoryMap(X, y, block_rows=17)
    assert_array_equal(search.fit(blocks).order_, search.fit(X, y).order_)
    then = Then(Ranking(FisherScore(), n_features_to_select=4), Forward(Scatter("J3")))
    assert_array_equal(then.fit(blocks).get_support(), then.fit(X, y).get_support())


def test_each_duplicate_is_compared_with_one_column(monkeypatch):
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 50, 1))
    X = np.hstack([one, other, *[one] * 30, *[other] * 20, 2 * one])
    y, compared = (one[:, 0] > 0).astype(int), []
    made = Apart.__init__

    def counted(self, first, *told):
        compared.append(len(first))
        made(self, first, *told)

    monkeypatch.setattr(Apart, "__init__", counted)
    for criterion in (FisherScore(), Scatter("J3")):
        found = Ranking(criterion, n_features_to_select=3)
        blocks = found.fit(MemoryMap(X, y, block_rows=20)).order_
        assert_array_equal(blocks, found.fit(X, y).order_)
    assert compared
    assert max(compared) <= 51
