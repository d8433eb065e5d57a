"""A target of dates or durations is converted to a number of days, for any kind of input."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis._arrays import target_kind, times_as_days
from tamis.criteria import MRMR, Correlation, FisherScore
from tamis.exceptions import InvalidTable, InvalidTarget
from tamis.search import Forward, Ranking
from tamis.table import TableSelector

X = np.random.default_rng(0).normal(size=(60, 4))
NOISE = np.random.default_rng(1).normal(size=60)
HOURS = np.datetime64("2020-01-01T00") + (1000 * X[:, 1] + 400 * NOISE).astype("timedelta64[h]")
STAMPS = pd.Series(HOURS.astype("datetime64[ns]"))
TARGETS = {
    "hours": HOURS,
    "nanoseconds": HOURS.astype("datetime64[ns]"),
    "durations": HOURS - HOURS[0],
    "pandas": STAMPS,
    "pandas with a time zone": STAMPS.dt.tz_localize("Europe/Berlin", ambiguous=True),
    "polars": pl.Series(HOURS.astype("datetime64[us]")),
    "polars durations": pl.Series((HOURS - HOURS[0]).astype("timedelta64[us]")),
    "moments of Python": HOURS.astype("datetime64[us]").astype(object),
    "days of Python": list(HOURS.astype("datetime64[D]").astype(object)),
}


@pytest.mark.parametrize("y", TARGETS.values(), ids=TARGETS)
def test_a_date_target_is_a_regression_target(y):
    found = tamis.select(X, y, "mrmr", n_features_to_select=1)
    assert found.columns == [1]
    assert Forward(MRMR(), n_features_to_select=1).fit(X, y).columns == [1]
    assert Correlation().fit(X, y).task_ == "regression"
    frame = pl.DataFrame(X, schema=list("abcd"))
    search = TableSelector(Ranking(Correlation(), n_features_to_select=1))
    assert search.fit(frame, y).columns == ["b"]


def test_scores_are_computed_from_days():
    days = (HOURS - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
    np.testing.assert_array_equal(times_as_days(HOURS), days)
    np.testing.assert_allclose(
        Correlation().fit(X, STAMPS).scores_, Correlation().fit(X, days).scores_
    )


def test_few_distinct_days_are_classes():
    two = np.where(X[:, 1] > 0, np.datetime64("2020-01-01"), np.datetime64("2021-01-01"))
    assert target_kind(times_as_days(two)) == "classification"
    assert Ranking(FisherScore(), n_features_to_select=1).fit(X, two).columns == [1]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_date_target_may_be_a_column_of_a_frame(library):
    frame = pl.DataFrame(X, schema=list("abcd")).with_columns(when=TARGETS["polars"])
    given = {"pandas": frame.to_pandas, "polars": frame.clone, "pyarrow": frame.to_arrow}[library]()
    found = tamis.select(given, target="when", method="mrmr", n_features_to_select=1)
    assert found.columns == ["b"]
    assert tamis.inspect(given, target="when").task == "regression"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("written", ["moments", "days"])
def test_a_date_target_may_be_a_column_of_a_file(tmp_path, suffix, written):
    when = TARGETS["polars"] if written == "moments" else TARGETS["polars"].dt.date()
    frame = pl.DataFrame(X, schema=list("abcd")).with_columns(when=when)
    path = tmp_path / f"visits.{suffix}"
    getattr(frame, f"write_{suffix}")(path)
    table = tamis.read(path, "when")
    assert table.task == "regression"
    assert table.y.dtype.kind == "f"
    assert tamis.read(path, "when", task="classification").y.dtype.kind == "U"


def test_a_date_target_may_come_in_row_blocks(tmp_path):
    columns = {name: X[:, j] for j, name in enumerate("abcd")}
    pq.write_table(
        pa.table({**columns, "when": HOURS.astype("datetime64[us]")}), tmp_path / "0.parquet"
    )
    search = Ranking(Correlation(), n_features_to_select=1).fit(tmp_path, target="when")
    assert search.columns == ["b"]
    held = Ranking(Correlation()).fit(X, HOURS)
    np.testing.assert_allclose(search.scores_, held.scores_)


def test_the_row_of_a_missing_date_is_reported():
    y = HOURS.astype("datetime64[us]").copy()
    y[3] = np.datetime64("NaT", "us")
    held = y.astype(object)
    for given in (y, pd.Series(y), pl.Series(y), held):
        with pytest.raises((InvalidTarget, InvalidTable), match=r"missing .* in 1 row\(s\): 3"):
            Ranking(Correlation()).fit(X, given)
        with pytest.raises((InvalidTarget, InvalidTable), match=r"missing .* in 1 row\(s\): 3"):
            tamis.select(X, given, "correlation")


def test_other_labels_are_not_converted():
    for y in (np.array(["a", "b"]), [1, 2], np.array([dt.date(2020, 1, 1), "x"], dtype=object)):
        assert times_as_days(y) is y
