"""Tree ensembles of every library against explicitly altered copies of the rows."""

from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.response.tree_models import (
    D,
    N,
    absolute,
    asked,
    at,
    copies_at,
    copies_shuffled,
    effects_of,
    every_shuffled,
    made,
    opened,
    singles,
    table,
    target,
    tolerance,
)

NAMES = [
    "DecisionTree", "ExtraTree", "RandomForest", "ExtraTrees", "GradientBoosting",
    "HistGradientBoosting", "LGBM", "XGB", "XGBRF", "CatBoost",
]  # fmt: skip
TAKE_MISSING = [
    "DecisionTree", "RandomForest", "ExtraTrees", "HistGradientBoosting", "LGBM", "XGB", "CatBoost",
]  # fmt: skip
TASKS = ["2", "3", "regression"]
GROUPS = [np.array([0]), np.array([1, 3]), np.array([2, 4, 5])]


def check(engine, model, method, X, atol):
    """Shuffles, points and groups, and what is made of them."""
    raw, donors = asked(model, method), np.random.default_rng(1).permutation(N)
    largest = np.abs(raw(X)).max()
    assert_allclose(engine.outputs(), raw(X), atol=atol * largest)
    for units in (singles(), GROUPS):
        expected = copies_shuffled(raw, X, donors, units)
        found = every_shuffled(engine, X, donors, units)
        assert_allclose(found, expected, atol=atol * largest)
        whole = copies_at(raw, X, X, units)
        assert_allclose(at(engine, X, units), whole, atol=atol * largest)
        assert_allclose(effects_of(engine, X, units), whole.mean(axis=1), atol=atol * largest)
        moved = np.abs(whole - raw(X)[:, None]).sum(axis=(1, 2, 3)) / N
        assert_allclose(absolute(engine, X, None, units), moved, atol=atol * largest * N)


@pytest.mark.parametrize("kind", ["continuous", "tied"])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", NAMES)
def test_trees_of_every_library_are_exact(name, task, kind):
    X = table(kind)
    model = made(name, task).fit(X, target(X, task))
    for method in ["predict"] if task == "regression" else ["predict_proba", "codes"]:
        check(opened(model, method, X), model, method, X, tolerance(name))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", TAKE_MISSING)
def test_trees_are_exact_for_missing_values(name, task):
    X = table("missing")
    model = made(name, task).fit(X, target(X, task))
    for method in ["predict"] if task == "regression" else ["predict_proba", "codes"]:
        check(opened(model, method, X), model, method, X, tolerance(name))


def with_categories(name, task, X):
    y, named = target(X, task), [1, 4]
    if name == "HistGradientBoosting":
        return made(name, task, categorical_features=named).fit(X, y)
    if name == "LGBM":
        small = {"min_data_per_group": 2, "max_cat_to_onehot": 1, "cat_smooth": 1.0}
        return made(name, task, **small).fit(X, y, categorical_feature=named)
    types = ["c" if j in named else "q" for j in range(D)]
    return made(name, task, feature_types=types, enable_categorical=True, max_cat_to_onehot=2).fit(
        X, y
    )


@pytest.mark.parametrize("kind", ["categories", "both"])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ["HistGradientBoosting", "LGBM", "XGB"])
def test_trees_are_exact_for_categories(name, task, kind):
    X = table(kind)
    model = with_categories(name, task, X)
    for method in ["predict"] if task == "regression" else ["predict_proba", "codes"]:
        engine = opened(model, method, X)
        assert engine.ensemble.cells.tests  # else nothing is shown
        check(engine, model, method, X, tolerance(name))


@pytest.mark.parametrize("name", ["HistGradientBoosting", "LGBM", "XGB"])
def test_categories_that_training_has_not_seen(name):
    X = table("categories")
    X[X[:, 1] == 5, 1] = 0
    model = with_categories(name, "regression", X)
    Z = X.copy()
    Z[:20, 1] = 5
    Z[20:30, 1] = 40
    engine, raw = opened(model, "predict", Z), asked(model, "predict")
    donors = np.random.default_rng(2).permutation(N)
    found = every_shuffled(engine, Z, donors, singles())
    assert_allclose(found, copies_shuffled(raw, Z, donors, singles()), atol=tolerance(name) * 10)


@pytest.mark.parametrize(
    "settings", [{"zero_as_missing": True}, {"use_missing": False}], ids=["zero", "none"]
)
@pytest.mark.parametrize("kind", ["tied", "missing"])
def test_what_lightgbm_takes_for_missing(settings, kind):
    X = table(kind)
    X[:, 0] = np.round(X[:, 0])  # with zeros
    model = made("LGBM", "regression", **settings).fit(X, target(X, "regression"))
    check(opened(model, "predict", X), model, "predict", X, 1e-12)


@pytest.mark.parametrize("mode", ["Max", "Min"])
def test_missing_values_of_catboost_go_where_it_sends_them(mode):
    X = table("missing")
    model = made("CatBoost", "regression", nan_mode=mode).fit(X, target(X, "regression"))
    check(opened(model, "predict", X), model, "predict", X, 1e-12)


MODES = {
    "dart of LightGBM": ("LGBM", {"boosting_type": "dart", "drop_rate": 0.5}, "3"),
    "forest of LightGBM": (
        "LGBM", {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}, "2",
    ),
    "one class against the rest": ("LGBM", {"objective": "multiclassova"}, "3"),
    "a steeper sigmoid": ("LGBM", {"sigmoid": 2.0}, "2"),
    "dart of XGBoost": ("XGB", {"booster": "dart", "rate_drop": 0.5}, "2"),
    "forests of XGBoost": ("XGB", {"num_parallel_tree": 3, "subsample": 0.7}, "3"),
    "branches of CatBoost": ("CatBoost", {"grow_policy": "Lossguide"}, "2"),
    "levels of CatBoost": ("CatBoost", {"grow_policy": "Depthwise"}, "3"),
    "all classes of CatBoost": ("CatBoost", {"loss_function": "MultiClassOneVsAll"}, "3"),
    "exponential loss": ("GradientBoosting", {"loss": "exponential"}, "2"),
    "a start at 0": ("GradientBoosting", {"init": "zero"}, "2"),
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_trees_are_exact_for_every_mode(mode):
    name, settings, task = MODES[mode]
    X = table("continuous")
    model = made(name, task, **settings).fit(X, target(X, task))
    for method in ["predict_proba", "codes"]:
        check(opened(model, method, X), model, method, X, tolerance(name))


LOSSES = {
    "huber": ("GradientBoosting", {"loss": "huber"}),
    "poisson of histograms": ("HistGradientBoosting", {"loss": "poisson"}),
    "gamma of histograms": ("HistGradientBoosting", {"loss": "gamma"}),
    "poisson of LightGBM": ("LGBM", {"objective": "poisson"}),
    "square root": ("LGBM", {"reg_sqrt": True}),
    "poisson of XGBoost": ("XGB", {"objective": "count:poisson"}),
    "gamma of XGBoost": ("XGB", {"objective": "reg:gamma"}),
    "poisson of CatBoost": ("CatBoost", {"loss_function": "Poisson"}),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_trees_are_exact_for_every_loss(loss):
    name, settings = LOSSES[loss]
    X = table("continuous")
    model = made(name, "regression", **settings).fit(X, np.exp(target(X, "regression") / 2))
    check(opened(model, "predict", X), model, "predict", X, tolerance(name))


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
@pytest.mark.parametrize("name", ["HistGradientBoosting", "LGBM", "XGB", "CatBoost"])
def test_trees_are_exact_after_early_stopping(name):
    X, draw = table("continuous"), np.random.default_rng(0)
    y = draw.permutation(target(X, "2"))  # nothing to learn: the best iteration is an early one
    held = slice(60, None)
    if name == "HistGradientBoosting":
        model = made(name, "2", max_iter=50, early_stopping=True, n_iter_no_change=3).fit(X, y)
    elif name == "LGBM":
        model = made(name, "2", n_estimators=50)
        stop = import_module("lightgbm").early_stopping(3, verbose=False)
        model.fit(X[:60], y[:60], eval_set=[(X[held], y[held])], callbacks=[stop])
    elif name == "XGB":
        model = made(name, "2", n_estimators=50, early_stopping_rounds=3)
        model.fit(X[:60], y[:60], eval_set=[(X[held], y[held])], verbose=False)
    else:
        model = made(name, "2", iterations=50, early_stopping_rounds=3)
        model.fit(X[:60], y[:60], eval_set=(X[held], y[held]))
    engine = opened(model, "predict_proba", X)
    assert len(engine.ensemble.trees.outputs) < 50
    check(engine, model, "predict_proba", X, tolerance(name))


@pytest.mark.parametrize("method", ["predict_proba", "codes", "decision_function"])
def test_trees_are_exact_for_decision_values(method):
    X = table("tied")
    for name in ("GradientBoosting", "HistGradientBoosting"):
        for task in ("2", "3"):
            model = made(name, task).fit(X, target(X, task))
            check(opened(model, method, X), model, method, X, 1e-12)


def test_decisions_at_ties_are_the_model_s_own():
    """Leaves of thirds: sums that are equal on paper differ by their rounding."""
    draw = np.random.default_rng(0)
    X = draw.integers(0, 3, size=(300, 4)).astype(float)
    y = draw.integers(0, 2, 300)
    model = made("RandomForest", "2", n_estimators=10, max_depth=2).fit(X, y)
    flat = made("RandomForest", "3", n_estimators=6, max_depth=1).fit(X, draw.integers(0, 3, 300))
    for fitted in (model, flat):
        raw, donors = asked(fitted, "codes"), draw.permutation(300)
        engine = opened(fitted, "codes", X)
        units = list(np.arange(4)[:, None])
        expected = copies_shuffled(raw, X, donors, units)
        assert_array_equal(every_shuffled(engine, X, donors, units), expected)
        assert_array_equal(at(engine, X[:20]), copies_at(raw, X, X[:20], units))
