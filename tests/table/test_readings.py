"""Values that are not stored as they are meant: amounts, percentages, codes for missing values."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OneHotEncoder

import tamis
from tamis.criteria import FisherScore
from tamis.exceptions import InvalidParameter, InvalidTable, TableAlert
from tamis.report import report
from tamis.search import Ranking
from tamis.table import TableEncoder, TableSelector
from tamis.table.kinds import Reading, missing_codes, read_columns
from tamis.table.leaks import Foresight

N = 120
RNG = np.random.default_rng(0)
Y = np.tile(["no", "yes"], N // 2)


def read_text(values):
    frame, readings = read_columns(pl.DataFrame({"x": values}))
    return frame["x"].to_list(), readings.get("x")


def alerts_of(table, sort):
    return [alert for alert in table.alerts if alert.sort == sort]


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["12,5 %", "3 %"], [12.5, 3]),
        (["€ 1.234,50", "€ 3"], [1234.5, 3]),
        (["1.234,50 €", "-3 €"], [1234.5, -3]),
        (["$1,234", "$950"], [1234, 950]),
        (["(1,234)", "5.5"], [-1234, 5.5]),
        (["-$5", "$-6", "($7)", "− 8"], [-5, -6, -7, -8]),
        (["1 234,5", "1\u202f234\u202f567"], [1234.5, 1234567]),
        (["1'234.50", "2’000"], [1234.5, 2000]),
        (["US$ 1,234.00", "US$ 0.50"], [1234, 0.5]),
        (["1.234", "1.234.567"], [1234, 1234567]),
        (["1,234", "0,5"], [1.234, 0.5]),
        (["1.234", "2.345"], [1.234, 2.345]),
        (["1.234 €", "2.345 €"], [1.234, 2.345]),
        (["1.234 €", "950 €"], [1234, 950]),
        (["1e-5", "2.5E3", "."], [1e-5, 2500, None]),
        (["12", "?", "n/a", "", "NA", "-"], [12, None, None, None, None, None]),
        ([" 7 % ", None], [7, None]),
        (["1,636e+02", "2,5e3"], [163.6, 2500]),
        (["kr. 1.234,50", "kr. 3"], [1234.5, 3]),
        (["3 Euro", "0,5 Euro"], [3, 0.5]),
        (["12 500 Ft", "90 Ft"], [12500, 90]),
        (["7 %", "-999", "8 %"], [7, -999, 8]),
    ],
)
def test_text_is_read_as_numbers(texts, numbers):
    assert read_text(texts)[0] == pytest.approx(numbers)


@pytest.mark.parametrize(
    "texts",
    [
        ["$5", "€4"],
        ["12 %", "13"],
        ["(5", "6)"],
        ["12", "13"],
        ["007", "0815"],
        ["1.2.3.4", "1.2.4.5"],
        ["030 123", "+49 30"],
        ["12345-678", "5"],
        ["5 kg", "6 kg"],
        ["%", "€"],
        ["1,23,456", "1,234"],
        ["1.234٣", "½ %"],
    ],
)
def test_other_text_stays_text(texts):
    assert read_text(texts) == (texts, None)


@pytest.mark.parametrize("n", range(20))
def test_amounts_in_all_formats_are_read(n):
    rng = np.random.default_rng(n)
    values = np.round(rng.normal(0, 10.0 ** rng.integers(1, 7), 50), 2)
    group, decimal = [(",", "."), (".", ","), (" ", ","), ("'", "."), ("", ",")][n % 5]
    before, after = [("", ""), ("€ ", ""), ("", " %"), ("", " kr")][n % 4]
    shown = [f"{abs(v):,.2f}".translate(str.maketrans(",.", "_;")) for v in values]
    shown = [text.replace("_", group).replace(";", decimal) for text in shown]
    signs = ["-" if v < 0 else "" for v in values]
    texts = [sign + before + text + after for sign, text in zip(signs, shown, strict=True)]
    assert read_text(texts)[0] == pytest.approx(values)


def test_other_columns_show_what_a_separator_means():
    frame = pl.DataFrame({"a": ["1,234 €", "2,345 €"], "b": ["0,5 %", "1,5 %"]})
    read, readings = read_columns(frame)
    assert read["a"].to_list() == [1.234, 2.345]
    assert not readings["a"].numbers.doubtful
    read, readings = read_columns(frame.select("a"))
    assert read["a"].to_list() == [1234, 2345]
    assert readings["a"].numbers.doubtful
    assert read_columns(frame.select("a"), decimal=",")[0]["a"].to_list() == [1.234, 2.345]


@pytest.mark.parametrize("decimals", [True, False])
def test_points_of_thousands_in_a_file_are_no_decimal_points(tmp_path, decimals):
    values = np.random.default_rng(1).integers(1, 9999, N)
    texts = [f"{v:,}".replace(",", ".") for v in values]
    other = [f"{v % 7},5" for v in values] if decimals else values % 7
    frame = pl.DataFrame({"n": texts, "other": other, "y": Y})
    frame.write_csv(tmp_path / "t.csv", separator=";")
    table = tamis.read(tmp_path / "t.csv", "y")
    assert table.frame["n"].to_list() == values.tolist()
    (alert,) = alerts_of(table, "numbers")
    assert f"as {values[values > 999][0]} in 'n'" in alert.sentence


@pytest.mark.parametrize(
    ("texts", "other"),
    [
        ([f"{v / 1000:.3f}" for v in range(1001, 1001 + N)], [1] * N),  # all with a point
        ([f"{v / 1000:g}" for v in range(1000, 9000, 8000 // N)][:N], [1] * N),  # 1.04
        ([f"{v:,}".replace(",", ".") for v in range(950, 950 + N)], [0.5] * N),  # decimal points
    ],
)
def test_decimal_points_in_a_file_stay_decimal_points(tmp_path, texts, other):
    pl.DataFrame({"n": texts, "other": other, "y": Y}).write_csv(tmp_path / "t.csv")
    table = tamis.read(tmp_path / "t.csv", "y")
    assert table.frame["n"].to_list() == list(map(float, texts))
    assert not alerts_of(table, "numbers")


def test_numbers_in_text_are_announced():
    price = [f"€ {v:.2f}".replace(".", ",") for v in RNG.uniform(1, 900, N)]
    frame = pl.DataFrame({"price": price, "rate": ["1,234 €", "2,345 €"] * (N // 2), "y": Y})
    table = tamis.inspect(frame.drop("rate"), "y")
    assert table.kinds == {"price": "number"}
    (alert,) = alerts_of(table, "numbers")
    assert not alert.grave
    assert "Text read as numbers: '€ " in alert.sentence
    assert "keep=['price'] (--keep price)" in alert.sentence
    (alert,) = alerts_of(tamis.inspect(frame.drop("price"), "y"), "numbers")
    assert alert.grave
    assert "'1,234 €' as 1234 in 'rate'. No value shows whether" in alert.sentence
    kept = tamis.inspect(frame, "y", keep=["price", "rate"])
    assert not alerts_of(kept, "numbers")
    assert kept.frame["price"].to_list() == price


@pytest.mark.parametrize(
    ("others", "code", "n", "found"),
    [
        (range(40, 60), -999, 1, True),
        (range(40, 60), 9999, 2, True),
        (range(1990, 2020), 9999, 1, True),
        ([1, 2, 3, 4, 5] * 5, 99, 2, True),
        ([1, 2, 3, 4, 5] * 5, 99, 1, False),  # may be an outlier
        (range(5000), -999, 2, True),  # the only negative value
        (range(5000), -999, 1, False),
        (range(-5000, 5000), -999, 2, False),
        (range(950, 1050), 999, 3, False),
        (range(0, 1200, 7), 999, 3, False),
        (range(9900, 10100), 9999, 1, False),
        (range(40, 44), -999, 2, False),  # too few other values
        (range(9960, 9999), 9999, 1, False),
    ],
)
def test_codes_for_missing_values_lie_outside_the_range(others, code, n, found):
    x = np.array([*others, *[code] * n, np.nan], dtype=float)
    assert missing_codes(x) == ({float(code): n} if found else {})
    assert missing_codes(np.full(30, float(code))) == {}
    assert missing_codes(np.r_[np.full(30, 5.0), float(code)]) == {}


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "xlsx"])
def test_codes_in_all_formats_are_missing_values_and_announced(tmp_path, kind):
    age = RNG.integers(20, 60, N)
    age[:5] = -999
    dose = [f"{v:.1f}" for v in RNG.uniform(0, 9, N)]
    dose[5:8] = ["n/a", "?", "NA"]
    frame = pl.DataFrame({"age": age, "dose": dose, "site": ["a", "b", "?"] * (N // 3), "y": Y})
    path = tmp_path / f"t.{kind}"
    if kind == "xlsx":
        pytest.importorskip("fastexcel")
        pytest.importorskip("xlsxwriter")
        frame.write_excel(path)
    else:
        getattr(frame, f"write_{kind}" if kind != "arrow" else "write_ipc")(path)
    table = tamis.read(path, target="y")
    assert table.kinds == {"age": "number", "dose": "number", "site": "category"}
    assert table.profile.n_missing.tolist() == [5, 3, N // 3]
    (alert,) = alerts_of(table, "missing codes")
    assert alert.grave
    assert "-999 (5 rows) in 'age'" in alert.sentence
    if kind in ("parquet", "arrow"):
        assert "'?' (40 rows) in 'site'" in alert.sentence
    assert tamis.read(path, target="y", keep=["age"]).frame["age"].min() == -999


def test_codes_among_percentages_and_categories_are_missing_values():
    rate = [f"{v:.1f} %" for v in RNG.uniform(0, 30, N)]
    rate[:4] = ["-999"] * 4
    site = pl.Series(["a", "b", "?"] * (N // 3), dtype=pl.Categorical)
    frame = pl.DataFrame({"rate": rate, "site": site, "y": Y})
    table = tamis.inspect(frame, "y")
    assert table.profile.n_missing.tolist() == [4, N // 3]
    assert table.kinds == {"rate": "number", "site": "category"}
    (alert,) = alerts_of(table, "missing codes")
    assert "-999 (4 rows) in 'rate'; '?' (40 rows) in 'site'" in alert.sentence
    assert tamis.inspect(frame, "y", keep=["site"]).profile.n_missing.tolist() == [4, 0]


def test_a_numeric_target_is_not_changed():
    y = RNG.normal(50, 3, N)
    y[:3] = -999
    table = tamis.inspect(pl.DataFrame({"x": RNG.normal(size=N), "y": y}), "y")
    assert table.y.min() == -999
    (alert,) = alerts_of(table, "missing codes")
    assert alert.sentence.startswith("The target is -999 (3 rows), far from its other values")
    text = [f"{v:.1f} %" for v in RNG.uniform(0, 9, N)]
    table = tamis.inspect(pl.DataFrame({"x": RNG.normal(size=N), "y": text}), "y")
    assert table.task == "regression"
    assert alerts_of(table, "numbers")[0].columns == ("y",)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_new_rows_are_read_as_in_fit(library):
    texts = [f"{v:.1f} %".replace(".", ",") for v in RNG.uniform(0, 9, N)]
    age = np.where(np.arange(N) < 5, -999, RNG.integers(20, 60, N))
    encoder = TableEncoder().fit(library({"share": texts, "age": age}))
    Z = encoder.transform(library({"share": ["1,5 %", "n/a", "3 $$"], "age": [-999, 30, 40]}))
    shares = [float(text[:-2].replace(",", ".")) for text in texts]
    assert Z[:, 0].tolist() == pytest.approx([1.5, np.median(shares), np.median(shares)])
    assert Z[:, 1:].tolist() == [[np.median(age[5:]), 1], [30, 0], [40, 0]]


def test_select_uses_amounts_and_codes_and_returns_the_columns_as_they_were():
    strong = (Y == "yes") + RNG.normal(0, 0.1, N)
    age = np.where(np.arange(N) % 9 == 0, -999, RNG.integers(20, 60, N))
    frame = pl.DataFrame({"cost": [f"$ {v:,.2f}" for v in 5e3 * strong], "age": age, "y": Y})
    with pytest.warns(TableAlert, match="-999"), pytest.warns(TableAlert, match="'cost' alone"):
        fitted = tamis.select(frame, target="y", method="fisher-score", n_features_to_select=1)
    assert fitted.columns == ["cost"]
    assert fitted.transform(frame.drop("y")).equals(frame.select("cost"))


def test_an_encoder_of_the_user_receives_the_columns_unchanged():
    share = np.tile(["5 %", "6 %", "7 %"], N // 3)
    encoder = ColumnTransformer([("levels", OneHotEncoder(), ["share"])])
    search = TableSelector(Ranking(FisherScore(), n_features_to_select=1), encoder)
    fitted = search.fit(pl.DataFrame({"share": share, "x": RNG.normal(size=N)}), Y)
    assert fitted.search_.n_features_in_ == 3
    assert not [alert for alert in fitted.alerts_ if alert.sort == "numbers"]


def test_a_name_that_looks_like_a_pattern_is_a_name(tmp_path):
    shares = [f"{v:.1f} %" for v in RNG.uniform(0, 9, N)]
    frame = pl.DataFrame({"^x.*$": shares, "^n$": ["a", "b", "c"] * (N // 3), "y": Y})
    frame.write_csv(tmp_path / "t.csv")
    for table in (tamis.inspect(frame, "y"), tamis.read(tmp_path / "t.csv", "y")):
        assert table.kinds == {"^x.*$": "number", "^n$": "category"}
        assert "3: " in repr(table)


def test_frames_without_rows_or_columns_have_no_readings():
    assert read_columns(pl.DataFrame({"x": pl.Series([], dtype=pl.String)}))[1] == {}
    assert read_columns(pl.DataFrame())[1] == {}
    assert read_text(["n/a", ""])[0] == [None, None]
    assert Reading().read(pl.Series([1])).to_list() == [1]


def test_dates_are_listed_from_the_first_to_the_last(tmp_path):
    days = [dt.date(2019, 1, 1) + dt.timedelta(days=7 * j) for j in range(N)]
    texts = [day.strftime("%d.%m.%Y") for day in days]
    pl.DataFrame({"when": texts, "y": Y}).write_csv(tmp_path / "t.csv")
    assert f"{days[0]} to {days[-1]}" in repr(tamis.read(tmp_path / "t.csv", "y"))


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([dt.datetime(2019, 1, 1, 10) + dt.timedelta(days=j) for j in range(N)],
         "2019-01-01 to 2019-04-30"),
        ([dt.datetime(2019, 1, 1, 10) + dt.timedelta(minutes=j) for j in range(N)],
         "2019-01-01 10:00 to 2019-…"),
        ([dt.timedelta(days=j) for j in range(N)], "0 to 119 days"),
        ([dt.time(j // 10, 5) for j in range(N)], "00:05:00 to 11:05:00"),
        ([10_000 + 7 * j * j for j in range(N)], "10000 to 109127"),
        ([0.5 + j * j for j in range(N)], "0.5 to 1.416e+04"),
    ],
)  # fmt: skip
def test_ranges_are_shown_to_their_end(values, shown):
    assert shown in repr(tamis.inspect(pl.DataFrame({"x": values, "y": Y}), "y"))


def test_dates_that_python_does_not_have():
    far = pl.Series([-(2**62), 2**62] * (N // 2)).cast(pl.Datetime("us"))
    assert "to +148108-" in repr(tamis.inspect(pl.DataFrame({"x": far, "y": Y}), "y"))


def test_a_single_missing_value_is_not_shown_as_0_percent():
    frame = pl.DataFrame({"x": [None, *RNG.normal(size=2 * N - 1)], "y": [*Y, *Y]})
    assert "< 1 %" in repr(tamis.inspect(frame, "y"))


def test_folds_in_time_order_of_dates_in_text():
    days = [dt.date(2019, 1, 1) + dt.timedelta(days=9 * j) for j in range(N)]
    rows = RNG.permutation(N)
    frame = pl.DataFrame({"when": [day.strftime("%d.%m.%Y") for day in days], "x": range(N)})
    frame = frame.with_columns(y=pl.Series(Y))[rows]
    from tamis.recipes.request import _in_time_order

    X, _, _ = _in_time_order(frame, None, "time:when", {})
    assert X["x"].to_list() == list(range(N))


@pytest.mark.parametrize("text", [False, True])
def test_dates_are_described_as_dates_on_the_page(text):
    days = np.datetime64("2020-01-01") + np.arange(0, 3 * N, 3).astype("m8[D]")
    late = np.where(Y == "yes", days + np.timedelta64(400, "D"), days)
    when = [str(day) for day in late] if text else late
    frame = pl.DataFrame({"when": when, "x": RNG.normal(size=N)})
    with pytest.warns(TableAlert, match="'when' alone predicts the target"):
        fitted = tamis.select(frame, Y, "fisher-score", n_features_to_select=1)
    page = report(fitted, frame, Y)
    (strip,) = page.strips.values()
    medians = [np.sort(late[label == Y].astype("M8[s]").astype(float)) for label in ("yes", "no")]
    yes, no = (np.datetime64(int(np.median(m)), "s").astype("M8[D]") for m in medians)
    assert strip.words == f"late in yes: median {yes}, no {no}"
    assert strip.kind == "density"
    assert f"yes: median {yes}, middle half 20" in page.html()


def test_durations_are_described_in_days():
    from tamis.report.strips import row_groups, strip_of

    strip = strip_of(np.arange(9).astype("m8[D]"), row_groups(None, "none", 9))
    assert strip.words == "median 4, middle half 2 to 6"


def leaky(share, n=1000, seed=0):
    """A table in which one of ten columns avoids this share of the baseline's errors."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    wrong = rng.random(n) < (1 - share) / 2
    frame = pl.DataFrame(rng.normal(size=(n, 9)), schema=[f"x{j}" for j in range(9)])
    return frame.with_columns(after=np.where(wrong, 1 - y, y) + rng.normal(0, 0.01, n), y=y)


def test_a_column_that_avoids_most_errors_is_mentioned():
    for seed in range(5):
        (alert,) = alerts_of(tamis.inspect(leaky(0.65, seed=seed), "y"), "strong")
        assert alert.columns == ("after",)
        assert "drop=['after'] (--drop after)" in alert.sentence
        assert not alerts_of(tamis.inspect(leaky(0.3, seed=seed), "y"), "strong")


def test_several_strong_columns_are_not_mentioned_but_duplicates_of_a_leak_are():
    y = RNG.integers(0, 2, N)
    X = RNG.normal(0, 0.3, size=(N, 6))
    X[:, :2] += y[:, None]
    table = tamis.inspect(pl.DataFrame(X).with_columns(y=y), "y")
    assert not alerts_of(table, "strong")
    twice = leaky(0.65).with_columns(again="after")
    assert alerts_of(tamis.inspect(twice, "y"), "strong")[0].columns == ("after",)
    assert not alerts_of(tamis.inspect(twice.select("after", "y"), "y"), "strong")


@pytest.mark.parametrize("share", [0.5, 0.03])
def test_alone_is_the_held_out_area_under_the_curve(share):
    rng = np.random.default_rng(1)
    y = (rng.random(2000) < share).astype(int)
    X = rng.normal(size=(2000, 4)) + y[:, None] * np.array([0, 0.5, 1, 3])
    alone = Foresight(y, "classification", 4).of_numbers(X).alone
    exact = [2 * roc_auc_score(y, x) - 1 for x in X.T]
    np.testing.assert_allclose(alone, exact, atol=0.12)
    assert alone[2] > 0.3


def test_alone_counts_ties_as_half():
    rng = np.random.default_rng(2)
    y, x = rng.integers(0, 3, 500), rng.integers(0, 4, 500)
    target = Foresight(y, "classification", 1)
    folds, codes, expected = target.folds, target.codes, []
    cells = x[target.rows]
    for label in range(3):
        wins = pairs = 0.0
        for fold in range(5):
            train, test = folds != fold, folds == fold
            prior = (codes == label).mean()
            score = np.array(
                [
                    ((codes == label)[train & (cells == c)].sum() + prior)
                    / ((train & (cells == c)).sum() + 1)
                    for c in range(4)
                ]
            )[cells[test]]
            inside = codes[test] == label
            away = score[inside][:, None] - score[~inside]
            wins, pairs = wins + ((away > 0) + 0.5 * (away == 0)).sum(), pairs + away.size
        expected.append(wins / pairs)
    assert target.of_codes(x[:, None]).alone[0] == pytest.approx(2 * np.mean(expected) - 1)


def test_a_number_of_a_category_is_a_duplicate():
    rng = np.random.default_rng(0)
    branch = rng.integers(0, 5, 300)
    names = np.array(["Ulm", "Bonn", "Graz", "Bern", "Rome"])
    frame = pl.DataFrame(
        {
            "branch": names[branch],
            "branch_code": np.array([70, 10, 90, 20, 40])[branch],
            "almost": np.where(np.arange(300) == 299, 9, branch),
            "coarse": branch // 2,
            "far": np.array(["no", "yes"])[branch % 2],
            "far_code": 2 - branch % 2,
            "twin": branch + 0.5,
            "other": rng.integers(0, 5, 300),
            "y": rng.integers(0, 2, 300),
        }
    )
    (alert,) = alerts_of(tamis.inspect(frame, "y"), "copies")
    assert alert.columns == ("branch_code", "twin", "far_code")
    assert "'branch_code' of 'branch'" in alert.sentence
    assert "'far_code' of 'far'" in alert.sentence
    gaps = pl.when(pl.col("branch") == "Ulm").then(None).otherwise("branch_code")
    missing = frame.with_columns(branch_code=gaps)
    (alert,) = alerts_of(tamis.inspect(missing, "y"), "copies")
    assert alert.columns == ("branch_code", "twin", "far_code")


def written_sheets(path):
    pytest.importorskip("fastexcel")
    xlsxwriter = pytest.importorskip("xlsxwriter")
    with xlsxwriter.Workbook(str(path)) as book:
        pl.DataFrame({"a": [1, 2, 3], "y": [0, 1, 0]}).write_excel(book, "first")
        pl.DataFrame({" b ": [4, 5, 6], "y": [0, 1, 0]}).write_excel(book, "it's 2")
        book.add_worksheet("empty")


def test_sheets_are_read_by_name_and_number(tmp_path):
    written_sheets(path := tmp_path / "t.xlsx")
    table = tamis.read(path, target="y")
    assert table.frame.columns == ["a", "y"]
    (alert,) = alerts_of(table, "sheets")
    assert "'first' is read" in alert.sentence
    assert "it's 2" in alert.sentence
    for sheet in ("it's 2", 2, "2"):
        table = tamis.inspect(path, target="y", sheet=sheet)
        assert table.frame.columns == [" b ", "y"]
        assert not alerts_of(table, "sheets")
    for sheet in ("firsst", 0, 4, "-1", ""):
        with pytest.raises(InvalidTable, match=r"has no sheet .* a number from 1 to 3"):
            tamis.read(path, sheet=sheet)
    with pytest.raises(InvalidTable, match=r"sheet 'empty' holds a table.*another one: 'first', "):
        tamis.read(path, sheet="empty")


def test_a_column_that_is_in_another_sheet_is_looked_for_there(tmp_path):
    written_sheets(path := tmp_path / "t.xlsx")
    with pytest.raises(InvalidTable, match=r"no column ' b '.* The sheet 'first' is read.*it's 2"):
        tamis.read(path, target=" b ")


def test_other_sheets_are_mentioned_if_the_first_has_no_rows(tmp_path):
    pytest.importorskip("fastexcel")
    xlsxwriter = pytest.importorskip("xlsxwriter")
    with xlsxwriter.Workbook(str(tmp_path / "t.xlsx")) as book:
        book.add_worksheet("cover").write(0, 0, "Report")
        pl.DataFrame({"a": [1, 2], "y": [0, 1]}).write_excel(book, "data")
    with pytest.raises(InvalidTable, match=r"no rows.*The sheet 'cover' is read.*--sheet data"):
        tamis.read(tmp_path / "t.xlsx")


def test_sheets_and_encodings_need_their_formats(tmp_path):
    frame = pl.DataFrame({"a": [1, 2], "y": [0, 1]})
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InvalidTable, match="--sheet is for excel files"):
        tamis.read(tmp_path / "t.csv", sheet=1)
    with pytest.raises(InvalidTable, match="--encoding is for arff, csv, tsv files"):
        tamis.read(tmp_path / "t.parquet", encoding="cp1252")
    with pytest.raises(InvalidParameter, match="inspect needs a file for sheet"):
        tamis.inspect(frame, sheet=1)


CITIES = "Größe,prix,naïve,y\n1,5 €,Århus,0\n2,6 €,Köln,1\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_latin_1_is_detected_and_announced(tmp_path, end):
    path = tmp_path / "t.csv"
    path.write_bytes(CITIES.replace("\n", end).encode("cp1252"))
    table = tamis.read(path, target="y")
    assert table.frame.columns == ["Größe", "prix", "naïve", "y"]
    assert table.frame["naïve"].to_list() == ["Århus", "Köln"]
    assert "is read as cp1252" in alerts_of(table, "encoding")[0].sentence
    path.write_text(CITIES, encoding="utf-8")
    assert not alerts_of(tamis.read(path, target="y"), "encoding")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("größe", "cp850"),
        ("größe", "mac-roman"),
        ("łódź", "cp1250"),
        ("Москва", "cp1251"),
        ("Αθήνα", "cp1253"),
        ("東京", "shift-jis"),
        ("şehir", "cp1254"),
        ("größe", "utf-16-le"),
    ],
)
def test_other_encodings_are_named(tmp_path, text, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes(f"{text},y\n1,0\n2,1\n".encode(encoding))
    with pytest.raises(InvalidTable, match="--encoding"):
        tamis.read(path)
    table = tamis.read(path, encoding=encoding)
    assert table.frame.columns == [text, "y"]
    assert not alerts_of(table, "encoding")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_byte_order_marks_show_the_encoding(tmp_path, encoding):
    (tmp_path / "t.csv").write_bytes(CITIES.encode(encoding))
    table = tamis.read(tmp_path / "t.csv", target="y")
    assert table.frame.columns == ["Größe", "prix", "naïve", "y"]
    assert not alerts_of(table, "encoding")


@pytest.mark.parametrize(
    "encoding", ["", "latin-99", "rot13", "base64", "undefined", "a\0b", "../x"]
)
def test_encodings_that_do_not_exist(tmp_path, encoding):
    (tmp_path / "t.csv").write_bytes("größe,y\n1,0\n2,1\n".encode("cp850"))
    with pytest.raises(InvalidTable, match="Write --encoding with its encoding"):
        tamis.read(tmp_path / "t.csv", encoding=encoding)


def test_a_late_byte_in_another_encoding_is_read(tmp_path):
    rows = [f"{j},a{j % 3},{j % 2}" for j in range(300_000)]
    rows[-1] = "5,Köln,1"
    path = tmp_path / "t.csv"
    path.write_bytes("\n".join(["x,site,y", *rows]).encode("latin1"))
    assert tamis.read(path, target="y").frame["site"][-1] == "Köln"
