"""Kinds of columns and alerts, each against a table made to have them."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tamis
from tamis.blocks.dispatch import RowDraw, on_rows_drawn
from tamis.datasets import make_genes, make_mixed
from tamis.exceptions import InvalidTable, InvalidTarget
from tamis.table import add_calendar, inspect
from tamis.table.kinds import all_numbers, columns_of, date_format, read_columns
from tamis.table.leaks import CODED_ROWS, LEAKS, Foresight, is_code
from tamis.table.target import plain_numbers

N = 40
RNG = np.random.default_rng(0)
WORDS = ["a", "b", "c", "d"]

COLUMNS = {
    "number": [
        RNG.normal(size=N).tolist(),
        [None, *RNG.normal(size=N - 1).tolist()],
        RNG.integers(0, 5, N).tolist(),
        (1000 * RNG.permutation(N) + 7).tolist(),  # all different, but no order and no name
        [float(j) / 3 for j in range(N)],
    ],
    "category": [
        [WORDS[j % 4] for j in range(N)],
        [None if j % 7 == 0 else WORDS[j % 4] for j in range(N)],
        pl.Series([f"level{j}" for j in range(N)], dtype=pl.Categorical),
        ["yes", "no"] * (N // 2),
    ],
    "boolean": [[True, False] * (N // 2), [True, None] * (N // 2), [True, False, None, True] * 10],
    "date": [
        [dt.date(2020, 1, 1) + dt.timedelta(days=3 * j) for j in range(N)],
        [dt.datetime(2020, 1, 1, 12) + dt.timedelta(hours=3 * j) for j in range(N)],
        [f"2020-0{1 + j % 9}-1{j % 10}" for j in range(N)],
        [f"1{j % 10}.0{1 + j % 9}.2020" for j in range(N)],
        [f"2020-01-0{1 + j % 9} 12:00:0{j % 10}" for j in range(N)],
        [dt.timedelta(days=j) for j in range(N)],
    ],
    "text": [
        [f"once upon a time {j}" for j in range(N)],
        [f"w{j // 2 + (j % 3) * 50}" for j in range(N - 1)] + ["w0"],
        [[j] for j in range(N)],
    ],
    "identifier": [
        [f"P{j}" for j in range(N)],
        list(range(N)),
        list(range(5, 5 + 3 * N, 3)),
        pl.Series([f"{j:08x}" for j in range(N)]),
    ],
    "constant": [[1.5] * N, ["a"] * N, [None] * N, pl.Series([None] * N, dtype=pl.Float64)],
}  # fmt: skip
CASES = [(kind, values) for kind, cases in COLUMNS.items() for values in cases]


@pytest.mark.parametrize(("kind", "values"), CASES)
def test_each_column_has_the_expected_kind(kind, values):
    frame = pl.DataFrame({"x": values})
    assert columns_of(read_columns(frame)[0]).kind.tolist() == [kind]


@pytest.mark.parametrize(
    "name", ["id", "patient_id", "PassengerId", "SampleID", "uuid", "row.names"]
)
def test_a_name_makes_different_numbers_an_identifier(name):
    numbers = (17 * np.random.default_rng(0).permutation(N)).tolist()
    assert columns_of(pl.DataFrame({name: numbers})).kind.tolist() == ["identifier"]
    assert columns_of(pl.DataFrame({"valid": numbers})).kind.tolist() == ["number"]


@pytest.mark.parametrize("far", [np.inf, 1.7e308])
def test_huge_values_raise_no_warning(tmp_path, far):
    values = np.where(np.arange(40) % 3 == 0, far, -far)
    with np.errstate(all="raise"):
        assert columns_of(pl.DataFrame({"x": values})).kind.tolist() == ["number"]
    pl.DataFrame({"x": values, "y": 0.5}).write_csv(tmp_path / "t.csv")
    with np.errstate(all="raise"):
        assert tamis.read(tmp_path / "t.csv").kinds["x"] == "number"


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([dt.timedelta(hours=j) for j in range(60)]),
        pl.Series([dt.time(j // 4, j % 4) for j in range(60)]),
        pl.Series(range(60)).cast(pl.Int128),
        pl.Series(range(60)).cast(pl.Decimal(10, 2)),
    ],
)
def test_columns_of_all_types_that_are_a_code_of_the_target(column):
    table = inspect(pl.DataFrame({"a": column, "y": np.arange(60.0) ** 2}), "y")
    assert "a" in table.aside
    if column.dtype.is_numeric():
        target = inspect(pl.DataFrame({"y": column, "a": np.arange(60) % 7}), "y")
        assert target.task == "regression"


def test_a_line_of_units_is_named_if_it_leaves_no_columns(tmp_path):
    rows = [f"{x},{j % 2}" for j, x in enumerate(np.random.default_rng(0).normal(size=40))]
    (tmp_path / "t.csv").write_text("\n".join(["a,y", "kg,1", *rows]))
    with pytest.raises(InvalidTable, match=r"'a' left out\. 'a' mixes numbers and text, .*'kg'"):
        tamis.read(tmp_path / "t.csv", "y").labelled()


def test_targets_of_exact_decimals_and_bytes():
    x = np.arange(60) / 8 + 0.125
    frame = pl.DataFrame({"a": x[::-1], "y": pl.Series(x).cast(pl.Decimal(10, 3))})
    table = inspect(frame, "y")
    assert table.task == "regression"
    np.testing.assert_array_equal(table.y, x)
    with pytest.raises(InvalidTarget, match="target 'y' holds bytes"):
        inspect(pl.DataFrame({"a": x, "y": [b"\xff", b"\x00"] * 30}), "y")


def test_a_short_table_has_no_identifiers_of_numbers():
    assert columns_of(pl.DataFrame({"id": [1, 2, 3]})).kind.tolist() == ["number"]


def test_all_dates_have_one_format():
    assert date_format(pl.Series(["01/02/2020", "13/02/2020"])) == "%d/%m/%Y"
    assert date_format(pl.Series(["01/02/2020", "02/13/2020"])) == "%m/%d/%Y"
    assert date_format(pl.Series(["2020-01-02", "never"])) is None
    assert date_format(pl.Series(["12", "13"])) is None


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        (["2020-02-01T10:00:00Z", "2020-03-01T10:00:00.5Z"], "2020-02-01 10:00"),
        (["2020-02-01 10:00:00+02:00", "2020-03-01 10:00:00+01:00"], "2020-02-01 08:00"),
        (["01.02.2020 09:30", "13.02.2020 10:00"], "2020-02-01 09:30"),
        (["02/13/2020 09:30:05", "02/14/2020 10:00:00"], "2020-02-13 09:30"),
        (["01.02.20", "13.02.99"], "2020-02-01 00:00"),
        (["2/13/20", "2/14/20"], "2020-02-13 00:00"),
        (["13-02-2020", "14-02-2020"], "2020-02-13 00:00"),
        (["02-13-2020", "02-14-2020"], "2020-02-13 00:00"),
        (["13-Feb-20", "4-Mar-20"], "2020-02-13 00:00"),
        (["13 February 2020", "4 March 2020"], "2020-02-13 00:00"),
        (["Feb 13, 2020", "Mar 4, 2020"], "2020-02-13 00:00"),
        (["February 13, 2020", "March 4, 2020"], "2020-02-13 00:00"),
        (["2/13/2020 1:05 PM", "2/14/2020 12:00 AM"], "2020-02-13 13:05"),
    ],
)
def test_dates_may_have_offsets_times_and_short_years(texts, first):
    dates = read_columns(pl.DataFrame({"x": texts}))[0]["x"]
    assert dates.dtype.is_temporal()
    assert f"{dates.cast(pl.Datetime)[0]:%Y-%m-%d %H:%M}" == first


@pytest.mark.parametrize(
    "texts",
    [
        ["1.2.3", "1.10.4"],
        ["1.2.30", "1.10.41"],
        ["1/2", "3/4"],
        ["01-02-03", "04-05-06"],
        ["13-Feb-202", "14-Feb-203"],
    ],
)
def test_versions_and_fractions_are_not_dates(texts):
    assert date_format(pl.Series(texts)) is None


def sorts(table):
    return {alert.sort: alert.columns for alert in table.alerts}


def hard():
    made = make_genes(80, random_state=0, n_genes=60, n_gaps=9)
    return made.to_frame().with_columns(pl.Series("kind", made.y))


def test_the_hard_table_has_all_expected_alerts():
    table = inspect(hard(), target="kind")
    found = sorts(table)
    assert table.aside == {"sample": "identifier", "code": "code"}
    assert found["copies"] == ("g3_copy", "g3_again")
    assert sorted(found["gaps"]) == sorted(f"g{j}" for j in range(51, 60))
    assert table.kinds["taken"] == "date"
    assert table.kinds["site"] == "category"
    assert "code" not in table.X.columns
    assert "kind" not in table.X.columns


def test_columns_that_are_left_out_can_be_kept():
    table = inspect(hard(), target="kind", keep=["code", "sample"])
    assert table.aside == {}
    assert sorts(table)["leak"] == ("code",)
    assert {"code", "sample"} <= set(table.X.columns)
    with pytest.raises(InvalidTable, match=r"no column 'cod'\. Did you mean code"):
        inspect(hard(), target="kind", keep=["cod"])


def test_strong_columns_are_reported_and_used():
    frame = hard().with_columns(
        pl.when(pl.int_range(80) == 3).then(20).otherwise(pl.col("code")).alias("nearly")
    )
    table = inspect(frame, target="kind")
    assert "nearly" in sorts(table)["leak"]
    assert "nearly" in table.X.columns


def test_an_identifier_that_predicts_the_target_is_reported():
    frame = pl.DataFrame(
        {"row": range(100), "x": RNG.normal(size=100), "y": ["a"] * 40 + ["b"] * 60}
    )
    alert = inspect(frame, target="y").alerts[0]
    assert alert.sort == "identifier"
    assert "'row' even predicts the target" in alert.sentence


def test_a_number_that_is_the_real_target_in_other_units():
    x = np.random.default_rng(0).normal(size=50)
    frame = pl.DataFrame({"cm": 100 * x, "fall": -(x**3), "noise": x + RNG.normal(size=50), "m": x})
    assert inspect(frame, target="m").aside == {"cm": "code", "fall": "code"}


def test_rare_classes_and_unnamed_columns_are_reported(tmp_path):
    lines = [",b,y", *(f"{j},{j % 3},u" for j in range(6)), "5,one,v", "4,2,v"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    table = tamis.read(tmp_path / "t.csv", target="y")
    found = sorts(table)
    assert found["mixed"] == ("b",)
    assert found["unnamed"] == ("unnamed_1",)
    assert "'v' (2)" in next(a.sentence for a in table.alerts if a.sort == "rare classes")


def far(y):
    """The alert about rows whose numeric target is far from the others."""
    frame = pl.DataFrame({"a": np.random.default_rng(1).normal(size=len(y)), "y": y})
    table = inspect(frame, target="y", task="regression")
    return [alert.sentence for alert in table.alerts if alert.sort == "far rows"]


@pytest.mark.parametrize("size", [1e12, -1e12, 1e308])
def test_a_row_that_dominates_the_variance_is_reported(size):
    y = np.random.default_rng(0).normal(size=60)
    assert far(y) == []
    y[16] = size
    (sentence,) = far(y)
    assert sentence.startswith(f"The target is {size:.3g} in row 17, but its median is ")
    assert "1 of 60 rows makes up 100 % of its variance" in sentence


def test_several_far_rows_are_counted_and_ordinary_tails_are_not():
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    y[[3, 5]] = 1e9, -1e9
    assert "2 of 400 rows make up 100 % of its variance" in far(y)[0]
    for draw in (rng.exponential, rng.standard_normal, rng.lognormal):
        assert far(draw(size=100)) == []
    assert far(np.full(30, 2.0) + np.arange(30) % 2) == []
    assert far(np.r_[np.zeros(10), 1e12]) == []  # of few rows one may be anything


def test_of_far_rows_only_what_can_be_done_is_advised():
    y = np.random.default_rng(0).lognormal(size=60)
    y[16] = 1e12
    assert far(y)[0].endswith("correct it or leave it out; if not, take logarithms.")
    assert "logarithm" not in far(-y)[0]
    events = np.where(np.arange(2000) % 500 == 7, 1e3, 0.0)  # rare, and none of them wrong
    assert far(events)[0].endswith("If they are wrong, correct them or leave them out.")


def test_rows_of_a_draw_have_no_number_of_the_table():
    y = np.random.default_rng(0).normal(size=60)
    y[16] = 1e12
    with on_rows_drawn(RowDraw(60, 6000, 0)):
        assert far(y)[0].startswith("The target is 1e+12 in one of the rows drawn, but ")


def test_a_column_without_a_name_that_counts_rows_is_left_out(tmp_path):
    (tmp_path / "t.csv").write_text(",a,y\n0,1,u\n1,5,v\n2,3,u\n")
    assert tamis.read(tmp_path / "t.csv", target="y").aside == {"unnamed_1": "identifier"}


@pytest.mark.parametrize("like", ["passengers", "incomes", "houses", "visits"])
def test_libraries_agree(like):
    made = make_mixed(120, random_state=0, like=like)
    polars = made.to_frame().with_columns(pl.Series("y", made.y))
    expected = inspect(polars, target="y")
    for frame in (
        polars.to_pandas(),
        polars.to_arrow(),
        pd.DataFrame(made.columns).assign(y=made.y),
    ):
        found = inspect(frame, target="y")
        assert found.kinds == expected.kinds
        assert [str(a) for a in found.alerts] == [str(a) for a in expected.alerts]
    assert isinstance(polars.to_arrow(), pa.Table)


def best_alone(x, y):
    """A tree of one column, cross-validated: what the quick statistic stands for."""
    from sklearn.model_selection import cross_val_predict
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_leaf_nodes=len(np.unique(y)), random_state=0)
    right = (cross_val_predict(tree, x[:, None], y, cv=5) == y).mean()
    base = np.unique(y, return_counts=True)[1].max() / len(y)
    return 1 - (1 - right) / (1 - base)


def test_foresight_agrees_with_a_tree_of_one_column():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 12)) + y[:, None] * np.linspace(0, 8, 12)
    quick = Foresight(y, "classification", 12).of_numbers(X).avoided
    slow = np.array([best_alone(x, y) for x in X.T])
    np.testing.assert_allclose(quick, slow, atol=0.15)
    assert ((quick >= LEAKS) == (slow >= LEAKS)).mean() > 0.8


def test_no_column_predicts_noise():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    for target, task in ((y, "classification"), (rng.normal(size=60), "regression")):
        found = Foresight(target, task, 9).of_numbers(rng.normal(size=(60, 3000)))
        assert found.avoided.max() < LEAKS
        assert abs(found.alone.mean()) < 0.1


def test_missing_values_may_be_the_leak():
    y = np.array(["a", "b"] * 30)
    x = [
        None if label == "a" else value for label, value in zip(y, RNG.normal(size=60), strict=True)
    ]
    assert sorts(inspect(pl.DataFrame({"x": x, "y": y}), target="y"))["leak"] == ("x",)


def test_codes_need_enough_rows():
    y = np.array(["u", "v"] * CODED_ROWS)
    code = pl.Series([3, 8] * CODED_ROWS)
    assert is_code(code, y, "classification")
    assert not is_code(code.head(10), y[:10], "classification")
    assert not is_code(pl.Series([3, 8, 9, 8] * (CODED_ROWS // 2)), y, "classification")


def test_the_table_is_described_as_text():
    words = repr(inspect(hard(), target="kind"))
    assert words.splitlines()[0] == "80 rows, 66 columns, target kind (3 classes)"
    assert "and 60 more of kind number (g0, g1, g2, ...), 9 of them with missing values" in words
    assert "! 'code' is left out: each value stands for one value of the target" in words
    narrow = repr(inspect(hard().select("site", "g1", "kind"), target="kind"))
    assert "No alerts." in narrow
    assert max(map(len, words.splitlines())) <= 100


def test_a_table_may_have_no_target():
    table = inspect(hard())
    assert table.y is None
    assert "no target" in repr(table)


def test_a_name_that_looks_like_a_pattern_is_a_name():
    rng = np.random.default_rng(0)
    names = ["^a.*$", "ab", "ac", "^.*$"]
    frame = pl.DataFrame(rng.normal(size=(40, 4)), schema=names)
    frame = frame.with_columns(pl.Series("^y|ab$", rng.integers(0, 2, 40)))
    table = inspect(frame, target="^y|ab$", drop=["^a.*$"])
    assert table.X.columns == ["ab", "ac", "^.*$"]
    assert table.X.to_series(2).equals(frame.to_series(3))
    assert table.labelled().names == ["ab", "ac", "^.*$"]
    fitted = tamis.select(frame, target="^y|ab$", method="fisher-score", n_features_to_select=4)
    assert fitted.columns == names


@pytest.mark.parametrize(
    "kinds",
    [
        [pl.Float64],
        [pl.Int64],
        [pl.Int64, pl.Float32, pl.UInt64],
        [pl.Decimal(10, 2), pl.Float64],
        [pl.Boolean],
        [pl.Boolean, pl.Int8, pl.Float64],
        [pl.Int128],
    ],
)
@pytest.mark.parametrize("gap", [False, True])
def test_columns_of_many_types_become_numbers_at_once(kinds, gap):
    held = [0, 1, None if gap else 1, 0]
    frame = pl.DataFrame([pl.Series(str(j), held).cast(kind) for j, kind in enumerate(kinds)])
    X = all_numbers(frame)
    assert X.dtype == np.float64
    assert X.flags.f_contiguous
    assert X.flags.writeable
    expected = np.array([[0.0, 1.0, np.nan if gap else 1.0, 0.0]] * len(kinds)).T
    np.testing.assert_array_equal(X, expected)


def test_plain_columns_lie_in_one_array():
    columns = [pl.Series("a", [1, 2, 3]), pl.Series("b", [0.5, 1.5, 2.5]), pl.Series("c", [1] * 3)]
    frame = plain_numbers(columns)
    assert frame.columns == ["a", "b", "c"]
    assert frame.to_numpy(allow_copy=False).tolist() == [[1, 0.5, 1], [2, 1.5, 1], [3, 2.5, 1]]


def test_duplicate_rows_are_reported():
    rng = np.random.default_rng(0)
    told = {"a": rng.normal(size=40), "b": rng.choice(["u", "v"], 40), "y": rng.normal(size=40)}
    frame = pl.DataFrame(told)
    copied = pl.concat([frame, frame[:10]]).with_columns(number=pl.int_range(pl.len()).cast(str))

    def alerts(table):
        return [a.sentence for a in inspect(table, "y").alerts if a.sort == "repeated rows"]

    (sentence,) = alerts(copied)
    assert sentence.startswith("10 of 50 rows repeat an earlier one, including the target.")
    assert alerts(frame) == []
    levels = frame.select(pl.col("a") > 0, "b", pl.col("y").round(0))  # alike, as few levels are
    assert alerts(levels) == []


def test_classes_that_are_all_rare_are_reported():
    days = pl.DataFrame({"a": range(9), "y": [f"2020-01-0{day}" for day in range(1, 10)]})
    (alert,) = [a for a in inspect(days, "y").alerts if a.sort == "rare classes"]
    assert alert.sentence.startswith("All 9 classes have fewer than 5 rows: '2020-01-01' (1), ")
    assert alert.sentence.endswith("If they are dates or quantities, give them as numbers.")


def note(frame, sort, target=None):
    """The sentence of one sort of alert, or None."""
    found = [alert for alert in inspect(frame, target).alerts if alert.sort == sort]
    assert all(not alert.grave for alert in found)
    return found[0].sentence if found else None


def days(n, n_values=None):
    start = np.datetime64("2021-03-01")
    return pl.Series((start + RNG.integers(0, n_values or 900, n)).astype("datetime64[us]"))


def test_the_alert_on_dates_explains_their_use():
    frame = pl.DataFrame({"x": RNG.normal(size=300), "sold on": days(300)})
    sentence = note(frame, "dates")
    assert sentence == (
        "'sold on' is used as its position in time; write --calendar for month, weekday and hour "
        "as columns. If rows depend on time, errors on random folds are optimistic: write --cv "
        'time:"sold on" for folds in time order.'
    )
    assert "--calendar" not in note(add_calendar(frame), "dates")
    texts = frame.with_columns(pl.col("sold on").dt.strftime("%d.%m.%Y"))
    assert note(texts, "dates") == sentence
    two = note(frame.with_columns(back=days(300)), "dates")
    assert two.startswith("'sold on', 'back' are used as their positions in time")


@pytest.mark.parametrize(
    "column",
    [
        days(300, n_values=4),
        pl.Series([dt.timedelta(hours=j) for j in range(300)]),
        pl.Series([dt.time(j % 24, j // 24) for j in range(300)]),
        pl.Series(["2021-01-05"] * 300),
    ],
    ids=["few occasions", "spans", "times of day", "constant"],
)
def test_dates_with_few_values_cause_no_alert(column):
    assert note(pl.DataFrame({"x": RNG.normal(size=300), "when": column}), "dates") is None


DRAWN = np.random.default_rng(5).integers(0, 300, 1500)
SHARED = {
    "integers": ("customer_id", DRAWN + 70_000),
    "with gaps": ("PatientID", np.where(DRAWN > 3, DRAWN, np.nan)),
    "codes": ("buyer", [f"C-{k:05}" for k in DRAWN]),
    "words": ("user_id", [f"{k:x}" for k in DRAWN]),
}
NOT_SHARED = {
    "counts": ("visits", DRAWN),
    "few levels": ("shop_id", DRAWN % 12),
    "towns": ("town", [f"town {k}" for k in DRAWN % 100]),
    "years of models": ("model", [f"{'abc'[k % 3] * (1 + k % 4)}{1900 + k % 90}" for k in DRAWN]),
    "post codes": ("postcode", [f"{k:05}" for k in DRAWN]),
    "reals": ("weight_id", DRAWN / 7),
    "unique": ("customer_id", np.random.default_rng(0).permutation(1500)),
}


@pytest.mark.parametrize("kind", SHARED)
def test_identifiers_that_rows_share_are_reported(kind):
    name, values = SHARED[kind]
    sentence = note(pl.DataFrame({"x": RNG.normal(size=1500), name: values}), "repeated ids")
    assert sentence.startswith(f"{name!r} looks like an identifier that rows share: ")
    assert sentence.endswith(f"should stay in the same fold: write --groups {name}.")


@pytest.mark.parametrize("kind", NOT_SHARED)
def test_ordinary_columns_are_not_taken_for_shared_identifiers(kind):
    name, values = NOT_SHARED[kind]
    frame = pl.DataFrame({"x": RNG.normal(size=1500), name: values})
    assert note(frame, "repeated ids") is None
