"""Which models are evaluated as trees, and the warning for those that are not."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression

from tamis.exceptions import LoopInstead
from tamis.response.trees import TreeEngine, is_tree_model, open_trees
from tamis.response.trees.ensemble import TreeEnsemble
from tamis.response.trees.importers import scikit_learn
from tamis.response.trees.models import GUARDS, READERS, guard_rows, warn_of_copies
from tests.response.tree_models import N, asked, made, opened, singles, table, target


def refused(model, method, X, reason):
    """One warning with the reason, and no trees."""
    raw = asked(model, method)
    warn_of_copies.cache_clear()
    with pytest.warns(LoopInstead, match=reason) as said:
        assert open_trees(model, method, raw, X) is None
    assert len(said) == 1
    assert type(model).__name__ in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_trees(model, method, raw, X) is None


def test_models_of_no_trees_are_none_in_silence():
    X = table("continuous")
    y = target(X, "2")
    for model in (LogisticRegression(), BaggingClassifier(n_estimators=2)):
        fitted = model.fit(X, y)
        assert not is_tree_model(fitted)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert open_trees(fitted, "predict_proba", asked(fitted, "predict_proba"), X) is None


def test_outputs_of_unknown_kinds_are_not_supported():
    X = table("continuous")
    model = made("RandomForest", "2").fit(X, target(X, "2"))
    assert open_trees(model, "probabilities", model.predict_proba, X) is None


def test_a_subclass_may_differ():
    class Mine(RandomForestClassifier):
        def predict_proba(self, X):
            return super().predict_proba(X)[:, ::-1]

    X = table("continuous")
    model = Mine(4, random_state=0).fit(X, target(X, "2"))
    assert is_tree_model(model)
    refused(model, "predict_proba", X, "its class is a subclass")


def test_a_model_whose_outputs_differ_from_its_trees_is_refused():
    X = table("continuous")
    model = made("RandomForest", "2").fit(X, target(X, "2"))
    own = model.predict_proba
    model.predict_proba = lambda rows: np.clip(own(rows) + 1e-6, 0, 1)
    refused(model, "predict_proba", X, "differ from its predictions by 1e-06")


@pytest.mark.parametrize("name", ["RandomForest", "HistGradientBoosting"])
@pytest.mark.parametrize("field", ["threshold", "values", "column", "missing_left"])
def test_wrongly_read_trees_are_noticed(name, field, monkeypatch):
    """The guard's rows meet thresholds themselves, and missing values where there are some."""
    reader = READERS["sklearn", f"{name}Classifier"]

    def wrong(fitted):
        trees = reader(fitted)
        inner = trees.left >= 0
        if field == "threshold":  # by the smallest difference between 32-bit values
            last = np.nextafter(trees.threshold.astype(np.float32), np.float32(np.inf))
            trees.threshold = np.where(inner, last.astype(float), trees.threshold)
        elif field == "values":
            trees.values = trees.values * (1 + 1e-7)
        elif field == "column":
            trees.column = np.where(inner, (trees.column + 1) % trees.n_columns, trees.column)
        else:
            trees.missing_left = ~trees.missing_left
        return trees

    X = table("missing")
    model = made(name, "2").fit(X, target(X, "2"))
    monkeypatch.setitem(READERS, ("sklearn", f"{name}Classifier"), wrong)
    refused(model, "predict_proba", X, "differ from its predictions")
    refused(model, "codes", X, "differ from its predictions")


def test_corrupted_models_are_not_read():
    X = table("continuous")
    model = made("HistGradientBoosting", "2").fit(X, target(X, "2"))
    raw = asked(model, "predict_proba")
    predictors = model._predictors
    model._predictors = [[object()]]
    warn_of_copies.cache_clear()
    with pytest.warns(LoopInstead, match="cannot be read .AttributeError"):
        assert open_trees(model, "predict_proba", raw, X) is None
    model._predictors = predictors
    assert open_trees(model, "predict_proba", raw, X) is not None


def test_several_targets_are_not_supported():
    X = table("continuous")
    Y = np.stack([target(X, "regression"), X[:, 0]], axis=1)
    model = made("RandomForest", "regression").fit(X, Y)
    refused(model, "predict", X, "it predicts 2 targets at once")


def test_a_start_that_is_a_model():
    X = table("continuous")
    start = made("DecisionTree", "regression")
    model = made("GradientBoosting", "regression", init=start).fit(X, target(X, "regression"))
    refused(model, "predict", X, "it starts from another model, DecisionTreeRegressor")


def test_a_model_of_another_number_of_columns_is_not_supported():
    X = table("continuous")
    model = made("RandomForest", "regression").fit(X, target(X, "regression"))
    warn_of_copies.cache_clear()
    with pytest.warns(LoopInstead, match="it has 6 columns, but X has 4"):
        assert open_trees(model, "predict", asked(model, "predict"), X[:, :4]) is None


def test_missing_values_that_the_model_refuses():
    X = table("continuous")
    model = made("GradientBoosting", "regression").fit(X, target(X, "regression"))
    refused(model, "predict", table("missing"), "it does not accept missing values")


def test_text_categories_are_refused():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X = table("continuous")
    words = pandas.Series(np.array(["a", "b", "c"])[np.arange(N) % 3], dtype="category")
    frame = pandas.DataFrame({"number": X[:, 0], "word": words})
    model = HistGradientBoostingRegressor(max_iter=3).fit(frame, X[:, 0] + (words == "a"))
    with pytest.raises(Exception, match="its categories are not numeric"):
        scikit_learn.read_histogram_boosting(model)


GUESTS = {
    "linear leaves": ("LGBM", {"linear_tree": True}, "its leaves are linear models"),
    "a function of one's own": (
        "LGBM", {"objective": lambda y, f: (f - y, np.ones_like(f))}, "its objective is custom",
    ),
    "a linear booster": ("XGB", {"booster": "gblinear", "max_depth": None}, "booster is gblinear"),
    "another mark for missing": ("XGB", {"missing": -1.0}, "it treats -1.0 as missing"),
    "an unknown objective": (
        "XGB", {"objective": "survival:cox"}, "its objective is survival:cox",
    ),
    "two numbers a row": (
        "CatBoost", {"loss_function": "RMSEWithUncertainty"}, "its loss is RMSEWithUncertainty",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", GUESTS)
def test_guests_that_are_asked_by_copies(case):
    name, settings, reason = GUESTS[case]
    X = table("continuous")
    y = np.exp(target(X, "regression"))
    model = made(name, "regression", **settings).fit(X, y)
    refused(model, "predict", X, reason)


def test_vector_leaves():
    X = table("continuous")
    model = made("XGB", "3", multi_strategy="multi_output_tree", tree_method="hist")
    Y = np.stack([target(X, "2"), X[:, 0] > 0], axis=1)
    model.fit(X, Y)
    warn_of_copies.cache_clear()
    with pytest.warns(LoopInstead, match="its leaves are vectors"):
        assert open_trees(model, "predict_proba", model.predict_proba, X) is None


def test_counters_of_catboost_are_not_supported():
    X = table("categories")
    frame = X.astype(object)
    frame[:, 1] = X[:, 1].astype(int).astype(str)
    model = made("CatBoost", "2", cat_features=[1]).fit(frame, target(X, "2"))
    raw = asked(model, "predict_proba")
    warn_of_copies.cache_clear()
    with pytest.warns(LoopInstead, match="it has categorical columns"):
        assert open_trees(model, "predict_proba", raw, X) is None


def test_the_guard_asks_few_rows_once():
    X = np.random.default_rng(0).normal(size=(2000, 4))
    model = made("RandomForest", "regression").fit(X, X[:, 0])
    seen = []

    def raw(rows):
        seen.append(len(rows))
        return model.predict(rows)[:, None]

    assert open_trees(model, "predict", raw, X) is not None
    assert seen == [2 * GUARDS]


def test_half_of_the_guard_s_rows_have_one_value_altered():
    X = table("tied")
    model = made("RandomForest", "2").fit(X, target(X, "2"))
    ensemble = opened(model, "predict_proba", X).ensemble
    rows = guard_rows(ensemble, X)
    assert_array_equal(rows[:N], X)
    assert ((rows[N:] != X).sum(axis=1) <= 1).all()
    assert np.isin(rows[N:, 0], ensemble.cells.cuts).any()


def test_no_library_is_imported():
    code = (
        "import sys, tamis.response.trees as t; from sklearn.linear_model import Ridge;"
        "t.is_tree_model(Ridge());"
        "assert not {'lightgbm', 'xgboost', 'catboost'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_ensemble_returns_raw_outputs():
    X = table("continuous")
    model = made("GradientBoosting", "2").fit(X, target(X, "2"))
    ensemble = TreeEnsemble(scikit_learn.read_boosting(model))
    found = ensemble.sums(ensemble.encode(X)) / ensemble.trees.divisor
    np.testing.assert_allclose(found[:, 0], model.decision_function(X), atol=1e-14)


def test_an_unannounced_missing_value_is_refused():
    X = table("missing")
    model = made("HistGradientBoosting", "2").fit(X, target(X, "2"))
    raw = asked(model, "predict_proba")
    whole = np.nan_to_num(X)
    ensemble = open_trees(model, "predict_proba", raw, whole)
    engine = TreeEngine(ensemble, "predict_proba", raw, whole)
    with pytest.raises(ValueError, match="needs column 0 without missing values"):
        engine.shuffled(X, np.arange(N), singles())
    announced = open_trees(model, "predict_proba", raw, whole, may_miss=np.ones(6, dtype=bool))
    TreeEngine(announced, "predict_proba", raw, whole).shuffled(X, np.arange(N), singles())
