"""A date as one number, and its calendar parts as columns of their own where they are asked for."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tamis
from tamis.criteria import FisherScore
from tamis.exceptions import InvalidTable
from tamis.search import Ranking
from tamis.table import TableEncoder, TableSelector, add_calendar

RNG = np.random.default_rng(0)


def visits(n=200):
    hours = RNG.integers(0, 24 * 700, n).astype("timedelta64[h]")
    when = np.datetime64("2021-01-01T00", "us") + hours
    return pl.DataFrame({"age": RNG.normal(size=n), "when": when})


@pytest.mark.parametrize("levels", ["columns", "codes"])
def test_a_date_is_its_position_in_time(levels):
    frame = visits().with_columns(pl.when(pl.int_range(200) > 3).then("when").name.keep())
    encoder = TableEncoder(levels=levels).fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["age", "when", "when_missing"]
    days = frame["when"].dt.epoch("s").to_numpy() / 86_400
    Z = encoder.transform(frame)
    np.testing.assert_allclose(Z[4:, 1], days[4:])
    assert Z[0, 1] == pytest.approx(np.median(days[4:]))
    assert Z[:, 2].tolist() == [1.0] * 4 + [0.0] * 196


def test_calendar_parts_that_vary_are_added():
    when = pl.col("when")
    frame = visits().with_columns(day=when.dt.date(), text=pl.lit("2020-05-01"))
    frame = frame.with_columns(span=when - when.min(), clock=when.dt.time())
    added = add_calendar(frame)
    assert added.columns[: frame.width] == frame.columns
    assert added.columns[frame.width :] == [
        *(f"when_{part}" for part in ("month", "day", "weekday", "hour")),
        *(f"day_{part}" for part in ("month", "day", "weekday")),
        "clock_hour",
    ]
    assert added["when_hour"].to_list() == frame["when"].dt.hour().to_list()
    only = add_calendar(frame, ["day"])
    assert only.columns[frame.width :] == ["day_month", "day_day", "day_weekday"]


def test_calendar_parts_have_the_library_of_the_frame():
    frame = visits(5).with_columns(pl.when(pl.int_range(5) > 0).then("when").name.keep())
    months = frame["when"].dt.month().to_list()
    pandas = frame.to_pandas().set_index(pd.Index(list("abcde")))
    added = add_calendar(pandas)
    assert added.index.tolist() == list("abcde")
    np.testing.assert_array_equal(added["when_month"], np.array(months, dtype=float))
    assert "when_month" not in pandas
    arrow = add_calendar(frame.to_arrow())
    assert isinstance(arrow, pa.Table)
    assert arrow["when_month"].to_pylist() == months


def test_texts_that_are_dates_have_a_calendar():
    frame = pl.DataFrame({"sold": [f"{day:02}.03.2021" for day in range(1, 29)]})
    assert add_calendar(frame).columns == ["sold", "sold_day", "sold_weekday"]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (["then"], "no column 'then'"),
        (["age"], "add_calendar needs columns of dates, but 'age' is of kind number"),
        ("when", r"Write columns=\['when'\]"),
    ],
)
def test_what_has_no_calendar(columns, sentence):
    with pytest.raises((InvalidTable, tamis.exceptions.InvalidParameter), match=sentence):
        add_calendar(visits(), columns)


def test_a_name_that_is_taken():
    frame = visits().with_columns(when_month=pl.lit(3))
    with pytest.raises(InvalidTable, match="'when_month', which the table already has"):
        add_calendar(frame)


def test_parts_are_selected_by_themselves():
    frame = visits()
    y = (frame["when"].dt.weekday().to_numpy() + RNG.normal(size=200) > 5).astype(int)
    search = TableSelector(Ranking(FisherScore(), n_features_to_select=1))
    assert search.fit(add_calendar(frame), y).columns == ["when_weekday"]


def test_the_command_line_adds_them(folder, tamis):
    frame = visits(120)
    late = frame["when"].dt.hour().to_numpy() + 4 * RNG.normal(size=120) > 11
    frame = frame.with_columns(y=pl.Series(late).cast(pl.String))
    frame.write_csv(folder / "v.csv")
    lines = tamis("select", "v.csv", "-t", "y", "correlation", "-k", 1, "--calendar").stdout
    assert "when_hour" in lines
    shown = tamis("select", "v.csv", "-t", "y", "--dry-run", "--calendar", "--drop", "when").stdout
    assert "when_weekday" in shown
    assert "when " not in shown
    compared = tamis("compare", "v.csv", "-t", "y", "correlation", "-r", 2, "--calendar")
    assert compared.exit_code == 0


def test_the_target_has_no_calendar(folder, tamis):
    visits(120).write_csv(folder / "v.csv")
    shown = tamis("select", "v.csv", "-t", "when", "--dry-run", "--calendar")
    assert "when_" not in shown.stdout
