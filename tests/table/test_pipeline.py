"""Fitted pipelines of a selection, which encode, select and predict."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_iris, make_classification
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import OneHotEncoder

import tamis
from tamis.auto import Auto
from tamis.criteria import Scatter
from tamis.datasets import make_mixed
from tamis.exceptions import InvalidParameter, NothingFound
from tamis.search import Forward
from tamis.table import TableSelector

#: Tables with an identifier warn that it is left out.
pytestmark = pytest.mark.filterwarnings("ignore::tamis.exceptions.TableAlert")
AUTO = {"method": Auto(budget=0.5, random_state=0)}


def outputs(model, X):
    decide = getattr(model, "decision_function", getattr(model, "predict_proba", model.predict))
    return np.asarray(decide(X))


def by_hand(selector, X, y):
    """Model of the report on the encoded, selected columns, and these columns."""
    Z = selector.encoder_.transform(X)[:, selector.search_.support_]
    return clone(selector.search_.estimator_).fit(Z, y), Z


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize("like", ["passengers", "houses"])
def test_the_pipeline_predicts_raw_frames_as_the_model_of_the_report(like, library):
    table = make_mixed(200, random_state=0, like=like)
    frame = table.to_frame()
    frame = library.DataFrame({name: list(frame[name]) for name in frame.columns})
    selector = tamis.select(frame, table.y, **AUTO)
    assert isinstance(selector, TableSelector)
    pipeline = selector.to_pipeline()
    assert [name for name, _ in pipeline.steps] == ["columns", "model"]
    model, Z = by_hand(selector, frame, table.y)
    assert_allclose(outputs(pipeline, frame), outputs(model, Z), rtol=1e-9, atol=1e-9)
    loaded = pickle.loads(pickle.dumps(pipeline))
    assert_array_equal(loaded.predict(frame), pipeline.predict(frame))


def test_only_the_selected_columns_are_needed_in_any_order():
    table = make_mixed(200, random_state=0)
    frame = pd.DataFrame({name: list(table.to_frame()[name]) for name in table.to_frame().columns})
    selector = tamis.select(frame, table.y, **AUTO)
    pipeline = selector.to_pipeline()
    some = frame[selector.columns[::-1]].assign(extra=1)
    assert_array_equal(pipeline.predict(some), pipeline.predict(frame))


def test_unseen_categories_and_missing_values_are_predicted():
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"size": draw.normal(size=150), "kind": draw.choice(list("abc"), 150)})
    y = frame["size"] + 3 * (frame["kind"] == "a")
    frame.loc[::10, "size"] = np.nan
    pipeline = tamis.select(frame, y, **AUTO).to_pipeline()
    new = pd.DataFrame({"size": [0.0, np.nan, 1.0], "kind": ["new", "a", None]})
    assert np.isfinite(pipeline.predict(new)).all()


def test_groups_of_columns():
    X, y = load_iris(return_X_y=True, as_frame=True)
    groups = {"sepal": list(X.columns[:2]), "petal": list(X.columns[2:])}
    selector = tamis.select(X, y, feature_groups=groups, **AUTO)
    pipeline = selector.to_pipeline()
    model = clone(selector.estimator_).fit(X[selector.columns].to_numpy(), y)
    assert_array_equal(pipeline.predict(X), model.predict(X[selector.columns].to_numpy()))
    mixed = X.assign(colour=np.where(y == 0, "red", "blue"))
    found = tamis.select(mixed, y == 1, feature_groups=groups, **AUTO)
    assert found.to_pipeline().score(mixed, y == 1) > 0.9


def test_the_pipeline_of_an_array_predicts_like_the_model():
    X, y = load_diabetes(return_X_y=True)
    auto = Auto(budget=0.5, random_state=0).fit(X, y)
    model = clone(auto.estimator_).fit(auto.transform(X), y)
    assert_allclose(auto.to_pipeline().predict(X), model.predict(auto.transform(X)))


def test_weights_of_rows_and_classes_train_the_model():
    X, y = make_classification(120, 5, weights=[0.8], random_state=0)
    weights = np.r_[np.zeros(20), np.ones(100)]
    auto = Auto(budget=0.5, random_state=0, class_weight="balanced", n_features_to_select=2)
    auto.fit(X, y, sample_weight=weights)
    pipeline = auto.to_pipeline()
    by_class = 100 / (2 * np.bincount(y[20:]))
    model, name = clone(auto.estimator_), "sample_weight"
    if hasattr(model, "steps"):
        name = f"{model.steps[-1][0]}__sample_weight"
    scaled = by_class[y[20:]] * 120 / 100  # the mean weight of all rows is 1
    model.fit(auto.transform(X)[20:], y[20:], **{name: scaled})
    assert_allclose(outputs(pipeline, X), outputs(model, auto.transform(X)), atol=5e-3)


@pytest.mark.parametrize("method", [None, "mrmr"])
def test_a_selection_from_a_file_can_become_a_pipeline(method, tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    path = tmp_path / "iris.parquet"
    X.columns = ["a", "b", "c", "d"]
    X.assign(kind=y).to_parquet(path)
    selector = tamis.select(str(path), target="kind", method=method, random_state=0)
    if method is None:
        assert selector.to_pipeline().score(X, y) > 0.8
        return
    with pytest.raises(InvalidParameter, match="needs a model, but Forward only selects columns"):
        selector.to_pipeline()
    with pytest.raises(InvalidParameter, match="fitted to row blocks"):
        selector.to_pipeline(estimator=LogisticRegression())
    pipeline = selector.to_pipeline(X, y, estimator=LogisticRegression())
    assert pipeline.score(X, y) > 0.9


def test_a_named_method_trains_the_given_model():
    table = make_mixed(200, random_state=0, like="incomes")
    frame = table.to_frame()
    selector = tamis.select(frame, table.y, "mrmr", n_features_to_select=3)
    pipeline = selector.to_pipeline(estimator=LogisticRegression())
    assert pipeline.score(frame, table.y) > 0.6
    encoder = make_column_transformer(
        (OneHotEncoder(drop="if_binary"), ["married"]), remainder="drop"
    )
    own = TableSelector(Forward(Scatter(), n_features_to_select=1), encoder).fit(frame, table.y)
    assert own.to_pipeline(estimator=LogisticRegression()).score(frame, table.y) > 0.5


def test_a_censored_target_gives_risks():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(120, 5))
    y = np.zeros(120, dtype=[("event", bool), ("time", float)])
    y["time"], y["event"] = draw.exponential(np.exp(-2 * X[:, 0])), draw.random(120) < 0.8
    risks = tamis.select(X, y, **AUTO).to_pipeline().predict(X)
    assert np.corrcoef(risks, X[:, 0])[0, 1] > 0.8


def test_a_loaded_selector_needs_the_table():
    X, y = load_iris(return_X_y=True)
    auto = Auto(budget=0.5, random_state=0).fit(X, y)
    loaded = pickle.loads(pickle.dumps(auto))
    with pytest.raises(InvalidParameter, match=r"needs the table.*Write to_pipeline\(X, y\)"):
        loaded.to_pipeline()
    assert_array_equal(loaded.to_pipeline(X, y).predict(X), auto.to_pipeline().predict(X))


def test_impossible_pipelines_are_refused():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(100, 4))
    without = tamis.select(X, method="column-subset", n_features_to_select=2)
    with pytest.raises(InvalidParameter, match="needs a model, but"):
        without.to_pipeline()
    assert without.to_pipeline(estimator=KMeans(2, n_init=1)).predict(X).shape == (100,)
    with pytest.warns(NothingFound):
        nothing = Auto(budget=0.5, random_state=0).fit(X, draw.normal(size=100))
    assert not nothing.columns
    with pytest.raises(InvalidParameter, match="needs selected columns, but Auto selected none"):
        nothing.to_pipeline(estimator=Ridge())


@pytest.mark.parametrize("by_name", [True, False])
def test_amounts_dates_and_codes_are_read_as_in_the_selection(by_name):
    draw = np.random.default_rng(0)
    values = draw.normal(size=(200, 3))
    y = np.where(values.sum(axis=1) > 0, "yes", "no")
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta((500 * values[:, 2]).round(), unit="D")
    frame = pd.DataFrame({
        "price": [f"€ {1000 + 300 * v:.2f}".replace(".", ",") for v in values[:, 0]],
        "share": [f"{50 + 9 * v:.3f}".replace(".", ",") + " %" for v in values[:, 1]],
        "when": days.strftime("%d.%m.%Y"),
    })  # fmt: skip
    frame.loc[::40, "price"] = "n/a"
    given = (frame.assign(y=y),) if by_name else (frame, y)
    target = {"target": "y"} if by_name else {}
    pipeline = tamis.select(*given, **target, **AUTO).to_pipeline()
    assert pipeline.score(frame, y) > 0.9
    assert pickle.loads(pickle.dumps(pipeline)).score(frame[::3], y[::3]) > 0.9
    assert clone(pipeline).fit(frame[:100], y[:100]).score(frame[100:], y[100:]) > 0.85


def test_a_forest_is_a_model():
    X, y = load_iris(return_X_y=True)
    auto = Auto(budget=0.5, random_state=0).fit(X, y)
    auto.estimator_ = ExtraTreesClassifier(10, random_state=0)  # has no length before it is fitted
    assert auto.to_pipeline().score(X, y) > 0.9
