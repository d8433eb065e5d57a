"""Selections from frames of any kinds, in terms of their own columns."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import tamis
from tamis._arrays import target_kind
from tamis.contract import Record
from tamis.criteria import (
    MRMR,
    CrossValidated,
    FisherScore,
    Importances,
    MutualInformation,
    Scatter,
)
from tamis.datasets import make_genes, make_mixed
from tamis.exceptions import (
    IncompatibleCriterion,
    InvalidParameter,
    InvalidTable,
    InvalidTarget,
    MissingExtra,
    TableAlert,
)
from tamis.search import Backward, Forward, Ranking, RecursiveElimination, Then
from tamis.spec import parse, write
from tamis.table import TableEncoder, TableSelector, add_calendar

pytestmark = pytest.mark.filterwarnings("ignore::tamis.exceptions.TableAlert")

LIKE = ["passengers", "incomes", "houses", "visits"]
RIDGE = RecursiveElimination(Importances(Ridge()), n_features_to_select=3)
LIBRARIES = {
    "polars": lambda frame: frame,
    "pandas": lambda frame: frame.to_pandas(),
    "pyarrow": lambda frame: frame.to_arrow(),
}


def search_for(y, n=3):
    """A quick method for a target."""
    of_classes = target_kind(np.asarray(y)) == "classification"
    name = "ridge-rfe" if of_classes else "ridge-regression-rfe"
    return tamis.recipes.recipe(name, n_features_to_select=n)


@pytest.mark.parametrize("estimator", [TableSelector(Ranking(FisherScore())), TableEncoder()])
def test_scikit_learn_accepts_them(estimator):
    check_estimator(estimator, on_skip=None)


@pytest.mark.parametrize("like", LIKE)
def test_what_the_target_was_made_of_is_found(like):
    made = make_mixed(400, random_state=0, like=like)
    frame, relevant = made.to_frame(), sorted(made.relevant)
    if like == "visits":  # they depend on the weekday
        frame, relevant = add_calendar(frame), ["pressure", "smoker", "start_weekday"]
    found = tamis.select(frame, made.y, search_for(made.y, len(relevant)))
    assert isinstance(found, TableSelector)
    assert sorted(found.columns) == relevant


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("like", LIKE)
def test_frames_of_every_library_give_the_same_columns(like, library):
    made = make_mixed(150, random_state=1, like=like)
    frame = made.to_frame()
    expected = TableSelector(search_for(made.y)).fit(frame, made.y)
    given = LIBRARIES[library](frame)
    found = TableSelector(search_for(made.y)).fit(given, made.y)
    np.testing.assert_array_equal(found.order_, expected.order_)
    np.testing.assert_array_equal(found.scores_, expected.scores_)
    assert found.record_.data == expected.record_.data
    back = found.transform(given)
    assert type(back) is type(given)
    wanted = given.select(found.columns) if library != "pandas" else given[found.columns]
    assert back.equals(wanted)


@pytest.mark.parametrize("like", LIKE)
def test_a_pipeline_is_the_same_in_pandas_and_polars(like):
    made = make_mixed(160, random_state=2, like=like)
    model = Ridge() if like == "houses" else LogisticRegression(max_iter=2000)
    pipeline = make_pipeline(
        TableSelector(search_for(made.y)), TableEncoder(), StandardScaler(), model
    )
    scores = [
        cross_validate(pipeline, frame, made.y, cv=3, error_score="raise")["test_score"]
        for frame in (made.to_frame(), made.to_frame().to_pandas())
    ]
    np.testing.assert_array_equal(*scores)
    chance = 0 if like == "houses" else np.unique(made.y, return_counts=True)[1].max() / 160
    assert scores[0].mean() > chance


def test_nothing_is_learnt_from_rows_that_are_held_out():
    """Levels, medians and kinds are those of the training rows."""
    made = make_mixed(100, random_state=0, like="incomes")
    frame, extra = made.to_frame(), make_mixed(100, random_state=9, like="incomes").to_frame()
    first = TableSelector(search_for(made.y)).fit(frame, made.y)
    first.transform(extra)
    again = TableSelector(search_for(made.y)).fit(frame, made.y)
    np.testing.assert_array_equal(first.scores_, again.scores_)
    assert first.encoder_.output_to_input_ == again.encoder_.output_to_input_


@pytest.mark.parametrize(
    "search",
    [
        Ranking(FisherScore()),
        Forward(Scatter("J3")),
        Backward(CrossValidated(LinearDiscriminantAnalysis(), cv=3)),
        Then(Ranking(FisherScore(), n_features_to_select=4), Forward(Scatter("J3"))),
        RecursiveElimination(Importances(LogisticRegression())),
    ],
)
def test_plain_numbers_go_the_plain_way(search):
    X, y = sklearn.datasets.load_wine(return_X_y=True, as_frame=True)
    X = X.iloc[:, :6]
    plain = sklearn.base.clone(search).fit(X, y)
    table = TableSelector(search).fit(X, y)
    for name in ("support_", "order_", "ranking_", "scores_"):
        np.testing.assert_array_equal(getattr(table, name), getattr(plain, name))
    for ours, theirs in zip(table.trace_, plain.trace_, strict=True):
        np.testing.assert_equal(ours.value, theirs.value)
    assert type(tamis.select(X, y, search)) is type(search)
    assert type(tamis.select(X.assign(y=y), target="y", method=search)) is type(search)


def test_a_category_is_taken_or_left_as_one():
    """The value of a subset is that of all columns of its categories, by brute force."""
    rng = np.random.default_rng(0)
    site = np.array(["a", "b", "c"])[rng.integers(0, 3, 90)]
    frame = pd.DataFrame({"u": rng.normal(size=90), "site": site, "v": rng.normal(size=90)})
    y = (site == "b") ^ (rng.random(90) < 0.1)
    model = LinearDiscriminantAnalysis()
    found = TableSelector(
        Forward(CrossValidated(model, cv=4), n_features_to_select=2, standardize=False)
    ).fit(frame, y)
    assert "site" in found.columns
    one_hot = {
        "site": pd.get_dummies(frame["site"]).to_numpy(float),
        **{name: frame[[name]].to_numpy() for name in "uv"},
    }
    alone = {
        name: cross_val_score(model, values, y, cv=found.search_.criterion.cv).mean()
        for name, values in one_hot.items()
    }
    first = found.trace_[1] if not len(found.trace_[0].moved) else found.trace_[0]
    assert frame.columns[first.moved[0]] == max(alone, key=alone.get) == "site"
    assert first.value == pytest.approx(alone["site"])


def test_groups_and_fixed_features_refer_to_columns_of_the_frame():
    made = make_mixed(200, random_state=0, like="passengers")
    frame = made.to_frame()
    search = search_for(made.y, 2).set_params(
        feature_groups={"person": ["Sex", "Age"]}, fixed_features="Embarked"
    )
    found = TableSelector(search).fit(frame, made.y)
    assert "Embarked" in found.columns
    assert ("Sex" in found.columns) == ("Age" in found.columns)
    assert found.units_.n_units == frame.width - 1
    fixed = search_for(made.y, 2).set_params(fixed_features="PassengerId")
    assert "PassengerId" in TableSelector(fixed).fit(frame, made.y).columns
    with pytest.raises(InvalidParameter, match="fixed_features names 'Name', which is left out"):
        TableSelector(search_for(made.y, 2).set_params(fixed_features="Name")).fit(
            frame.with_columns(pl.lit("x").alias("Name")), made.y
        )


def test_identifiers_and_codes_are_left_out_unless_kept():
    made = make_genes(80, random_state=0, n_genes=40, n_gaps=5)
    frame = made.to_frame()
    with pytest.warns(TableAlert, match="'code' is left out") as caught:
        found = tamis.select(frame, made.y, n_features_to_select=5)
    assert any("'sample' is left out" in str(one.message) for one in caught)
    assert caught[0].filename == __file__ or "request" in caught[0].filename
    assert found.aside_ == {"sample": "identifier", "code": "code"}
    assert found.explain("code") == (
        "'code' was left out before the search: each of its values stands for one value of the "
        "target."
    )
    assert "rank" in found.explain("g0")
    kept = tamis.select(frame, made.y, "fisher-score", n_features_to_select=1, keep=["code"])
    assert kept.columns == ["code"]


def test_the_same_columns_are_left_out_without_alerts():
    made = make_genes(80, random_state=0, n_genes=40, n_gaps=5)
    words = pl.Series("words", [f"about {min(i, 60)} words" for i in range(80)])
    frame = made.to_frame().with_columns(words, pl.lit(1.0).alias("one"))
    search = search_for(made.y, 3)
    with pytest.warns(TableAlert):
        found = TableSelector(search).fit(frame, made.y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TableAlert)
        quiet = TableSelector(search, alerts=False).fit(frame, made.y)
    assert set(quiet.aside_.values()) == {"identifier", "code", "constant", "text"}
    assert quiet.aside_ == found.aside_
    assert quiet.columns == found.columns
    assert quiet.alerts_ == ()
    with pytest.raises(InvalidParameter, match="TableSelector needs alerts to be True or False"):
        TableSelector(search, alerts="no").fit(frame, made.y)


def test_a_numeric_identifier_is_set_aside_where_the_target_is_named():
    X, y = sklearn.datasets.load_wine(return_X_y=True, as_frame=True)
    frame = X.iloc[:, :4].assign(row=range(len(X)), kind=y)
    with pytest.warns(TableAlert, match="'row' is left out"):
        found = tamis.select(frame, target="kind", n_features_to_select=2)
    assert "row" not in found.get_feature_names_out()
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    assert tamis.select(arrow, target="kind", n_features_to_select=2).columns == found.columns


def test_set_output_and_names():
    made = make_mixed(80, random_state=0, like="incomes")
    frame = made.to_frame()
    selector = TableSelector(search_for(made.y)).set_output(transform="pandas")
    back = selector.fit_transform(frame, made.y)
    assert isinstance(back, pd.DataFrame)
    assert back.columns.tolist() == selector.get_feature_names_out().tolist() == selector.columns
    selector.set_output(transform="polars")
    assert isinstance(selector.transform(frame.to_pandas()), pl.DataFrame)
    with pytest.raises(ValueError, match="feature names"):
        selector.transform(frame.rename({"age": "years"}))


def test_records_are_saved_and_gone_on_from(tmp_path):
    made = make_mixed(120, random_state=0, like="passengers")
    frame = made.to_frame()
    found = TableSelector(search_for(made.y, 2)).fit(frame, made.y)
    found.record_.save(tmp_path / "r.json")
    again = TableSelector(search_for(made.y, 2)).resume(
        frame.to_pandas(), made.y, record=tmp_path / "r.json"
    )
    np.testing.assert_array_equal(again.order_, found.order_)
    assert Record.load(tmp_path / "r.json").expression.startswith("TableSelector(")
    same = parse(found.record_.expression)
    assert write(same) == found.record_.expression


def test_a_stopped_search_can_be_continued():
    made = make_mixed(120, random_state=0, like="incomes")
    frame = made.to_frame()
    forward = Forward(Scatter("J3", ridge=0.01), n_features_to_select=4)
    whole = TableSelector(forward).fit(frame, made.y)
    part = TableSelector(forward.set_params(n_features_to_select=2)).fit(frame, made.y)
    longer = TableSelector(sklearn.base.clone(forward).set_params(n_features_to_select=4)).resume(
        frame, made.y, record=part.record_
    )
    np.testing.assert_array_equal(longer.order_, whole.order_)
    assert len(longer.trace_) == len(whole.trace_)


def test_arrays_may_have_missing_values():
    X, y = sklearn.datasets.load_wine(return_X_y=True)
    X = X[:, :5].copy()
    X[::7, 2] = np.nan
    found = TableSelector(search_for(y, 2)).fit(X, y)
    assert found.transform(X).shape == (178, 2)
    assert found.encoder_.output_to_input_["x2_missing"] == "x2"


COLUMN_TRANSFORMER = ColumnTransformer(
    [
        ("n", SimpleImputer(), ["Age", "Fare"]),
        ("c", OneHotEncoder(sparse_output=False), ["Sex", "Embarked"]),
        ("t", CountVectorizer(), "Name"),
    ]
)


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_users_own_encoder_can_be_used(library):
    made = make_mixed(100, random_state=0, like="passengers")
    frame = LIBRARIES[library](made.to_frame())
    found = TableSelector(search_for(made.y, 2), COLUMN_TRANSFORMER).fit(frame, made.y)
    assert "Sex" in found.columns
    assert found.aside_["Pclass"] == "unused"
    assert "Name" not in found.aside_
    members = found.search_.units_.names.values()
    assert {"Sex", "Embarked", "Name"} <= set(members)


def test_an_encoder_without_the_origin_of_its_outputs_is_refused():
    from sklearn.decomposition import PCA

    X, y = sklearn.datasets.load_wine(return_X_y=True, as_frame=True)
    with pytest.raises(InvalidParameter, match="which column the output 'pca0' of PCA came from"):
        TableSelector(Ranking(FisherScore()), PCA()).fit(X, y)


@pytest.mark.parametrize("like", LIKE)
@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_skrub_is_a_guest(like, library):
    skrub = pytest.importorskip("skrub")
    made = make_mixed(100, random_state=0, like=like)
    frame = LIBRARIES[library](made.to_frame())
    vectorizer = skrub.TableVectorizer(high_cardinality=skrub.MinHashEncoder(n_components=5))
    found = TableSelector(search_for(made.y), vectorizer).fit(frame, made.y)
    assert len(found.columns) == 3
    assert "text" not in found.aside_.values()


def broken(kind):
    made = make_mixed(60, random_state=0, like="incomes")
    frame, y = made.to_frame(), made.y.astype(object)
    if kind == "gap in y":
        y[[3, 5]] = None
    elif kind == "infinite":
        frame = frame.with_columns(
            pl.lit(np.inf).alias("hours"), pl.Series("x", [1.0, np.inf] * 30)
        )
    elif kind == "nothing":
        frame = pl.DataFrame({"id": [f"p{j}" for j in range(60)], "c": [1] * 60})
    return frame, y


@pytest.mark.parametrize(
    ("kind", "error", "sentence"),
    [
        ("gap in y", InvalidTarget, r"y is missing \(NaN\) in 2 row\(s\): 3, 5"),
        (
            "infinite",
            InvalidTable,
            r"The column 'x' has 30 infinite values\. Correct them, or write drop",
        ),
        ("nothing", InvalidTable, r"no column to select from: 'id', 'c' are left out"),
    ],
)
@pytest.mark.parametrize("library", LIBRARIES)
def test_errors_name_the_cause(kind, error, sentence, library):
    frame, y = broken(kind)
    with pytest.raises(error, match=sentence):
        TableSelector(search_for(np.array(["u", "v"]))).fit(LIBRARIES[library](frame), y)


def test_wrong_parameters_of_the_selector_are_refused():
    X, y = sklearn.datasets.load_wine(return_X_y=True)
    with pytest.raises(
        IncompatibleCriterion, match="TableSelector needs a search, not FisherScore"
    ):
        TableSelector(FisherScore()).fit(X, y)
    with pytest.raises(InvalidParameter, match="needs encoder='auto' or a transformer, not 'none'"):
        TableSelector(Ranking(FisherScore()), "none").fit(X, y)
    with pytest.raises(InvalidParameter, match=r"Write keep=\['id'\]"):
        TableSelector(Ranking(FisherScore()), keep="id").fit(X, y)


def test_without_polars_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr("tamis.table.frames.find_spec", lambda name: None)
    X, y = sklearn.datasets.load_wine(return_X_y=True)
    with pytest.raises(MissingExtra, match=r"pip install 'tamis\[app\]'"):
        TableSelector(Ranking(FisherScore())).fit(X, y)


def test_odd_columns_of_pandas_are_read():
    frame = pd.DataFrame(
        {
            "mixed": [1, "a", None, 2.5] * 10,
            "object": [{"a": 1}] * 40,
            "when": pd.to_datetime(["2020-01-01", None, "2021-05-05", "2022-01-03"] * 10),
            "kind": pd.Categorical(["u", "v", None, "u"] * 10),
            "whole": pd.array([1, None, 3, 4] * 10, dtype="Int64"),
            7: np.arange(40.0) ** 2,
        }
    )
    frame.columns = frame.columns.astype(str)
    y = np.arange(40) % 2
    found = TableSelector(Ranking(MutualInformation(), n_features_to_select=2)).fit(frame, y)
    assert found.kinds_["mixed"] == "category"
    assert found.kinds_["when"] == "date"
    assert found.kinds_["whole"] == "number"
    assert found.kinds_["object"] == "text"


def test_metadata_reach_the_criterion():
    made = make_mixed(90, random_state=0, like="incomes")
    weights = np.where(made.y == made.y[0], 5.0, 0.1)
    plain = TableSelector(search_for(made.y)).fit(made.to_frame(), made.y)
    weighed = TableSelector(search_for(made.y)).fit(made.to_frame(), made.y, sample_weight=weights)
    assert not np.array_equal(plain.scores_, weighed.scores_)


def test_an_expression_may_name_the_encoder():
    selector = TableSelector(Ranking(FisherScore()), TableEncoder(max_levels=5), keep=["id"])
    assert write(parse(write(selector))) == write(selector)


WHO = np.arange(40) % 2
ODD = {
    "periods": pd.DataFrame({"t": pd.period_range("2020", periods=40, freq="D")}),
    "intervals": pd.DataFrame({"t": pd.cut(np.arange(40.0), 3)}),
    "zones": pd.DataFrame({"t": pd.date_range("2020", periods=40, tz="Europe/Paris")}),
    "spans": pl.DataFrame({"t": pl.Series(np.arange(40) ** 2).cast(pl.Duration("ms"))}),
    "objects": pl.DataFrame({"t": pl.Series([object()] * 40, dtype=pl.Object)}),
    "structures": pl.DataFrame({"t": [{"a": j} for j in range(40)]}),
    "bytes": pl.DataFrame({"t": [b"%d" % j for j in range(40)]}),
    "nothing": pl.DataFrame({"t": [None] * 40}),
}


@pytest.mark.parametrize("name", ODD)
def test_types_that_only_one_library_has(name):
    x = WHO + np.random.default_rng(0).normal(size=40)
    frame = ODD[name]
    frame = frame.assign(x=x) if isinstance(frame, pd.DataFrame) else frame.with_columns(x=x)
    found = TableSelector(Ranking(FisherScore(), n_features_to_select=1)).fit(frame, WHO)
    assert found.columns == ["x"]
    assert list(found.transform(frame).columns) == ["x"]


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (pd.concat([ODD["zones"]] * 2, axis=1), "more than one column called 't'"),
        (pd.DataFrame(index=range(40)), "needs a table with columns"),
        ([["a", 1]] * 40, "needs a frame if there are text columns"),
        (ODD["zones"].head(1), "at least 2 rows"),
    ],
)
def test_invalid_tables_are_refused(X, sentence):
    with pytest.raises(InvalidTable, match=sentence):
        TableSelector(Ranking(FisherScore())).fit(X, WHO[: len(X)])


def test_a_date_does_not_name_the_rows_to_the_information_family():
    rng = np.random.default_rng(0)
    when = pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 3, 20), eager=True)
    y = rng.integers(0, 2, len(when))
    frame = pl.DataFrame({"when": when, "gene": y + 0.3 * rng.normal(size=len(when))})
    search = TableSelector(Forward(MRMR(), n_features_to_select=1)).fit(frame, y)
    assert search.columns == ["gene"]


def test_a_noise_date_and_a_noise_category_do_not_come_first():
    rng = np.random.default_rng(0)
    n = 1500
    a, b = rng.normal(size=(2, n))
    y = (0.8 * a + 0.6 * b + rng.logistic(size=n) > 0).astype(int)
    hours = rng.integers(0, 24 * 700, n).astype("timedelta64[h]")
    frame = pl.DataFrame(
        {
            "when": np.datetime64("2021-01-01T00", "us") + hours,
            "city": rng.choice([f"city {k}" for k in range(20)], n),
            "a": a,
            "b": b,
        }
    )
    forest = ExtraTreesClassifier(60, random_state=0)
    search = RecursiveElimination(Importances(forest), n_features_to_select=2)
    assert TableSelector(search).fit(frame, y).columns == ["a", "b"]
