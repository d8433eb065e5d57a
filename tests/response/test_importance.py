"""Importance of the columns of a fitted model, against explicitly altered copies."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, make_classification
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer, make_scorer, roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from tamis._seeds import stream
from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.response import GenericEngine, Marginal, effects, importance
from tamis.response.comparison import CopyComparison

MODELS = [
    SVC(gamma=0.3),
    SVC(kernel="poly", gamma=0.2, coef0=1.0),
    make_pipeline(StandardScaler(), SVC(gamma=0.2)),
    MLPClassifier((4,), activation="tanh", solver="lbfgs", alpha=1.0, max_iter=500, random_state=0),
    LogisticRegression(),
    RandomForestClassifier(6, random_state=0),
    GridSearchCV(SVC(), {"C": [0.1, 10.0]}, cv=3),
]


def table(n_classes=3):
    X, y = make_classification(
        70, 4, n_informative=3, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1,
        random_state=0,
    )  # fmt: skip
    return X, np.array(["a", "b", "c"])[y]


def replaced(X, j, values):
    altered = X.copy()
    altered[:, j] = values
    return altered


def marginal(score, X):
    """Mean fall of a score as each column is held at each of its values."""
    falls = [[score(X) - score(replaced(X, j, v)) for v in X[:, j]] for j in range(X.shape[1])]
    return np.mean(falls, axis=1)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_fall_of_a_score(model, n_classes):
    X, y = table(n_classes)
    model = clone(model).fit(X[:50], y[:50])
    found = importance(model, X, y)
    assert_allclose(found.importances_mean, marginal(lambda Z: model.score(Z, y), X), atol=1e-12)
    assert found.importances.shape == (4, 1)
    assert_allclose(found.importances_std, 0.0)
    shuffled = importance(model, X, y, by="permutation", n_repeats=3, random_state=0)
    orders = [stream(0, "shuffle", 4, repeat).permutation(70) for repeat in range(3)]
    expected = np.array([
        [model.score(X, y) - model.score(replaced(X, j, X[o, j]), y) for o in orders]
        for j in range(4)
    ])  # fmt: skip
    assert_allclose(shuffled.importances, expected, atol=1e-12)
    assert_allclose(shuffled.importances_mean, expected.mean(axis=1), atol=1e-12)
    assert_allclose(shuffled.importances_std, expected.std(axis=1), atol=1e-12)


@pytest.mark.parametrize("scoring", [None, "neg_log_loss", "roc_auc_ovr"])
def test_shuffles_agree_with_scikit_learn(scoring):
    X, y = table()
    model = LogisticRegression().fit(X, y)
    options = {"scoring": scoring, "n_repeats": 30, "random_state": 0}
    ours, theirs = (
        importance(model, X, y, by="permutation", **options),
        permutation_importance(model, X, y, **options),
    )
    assert set(ours) == set(theirs)
    assert ours.importances.shape == theirs.importances.shape
    gap = np.hypot(ours.importances_std, theirs.importances_std) / np.sqrt(30)
    assert (np.abs(ours.importances_mean - theirs.importances_mean) <= 4 * gap + 1e-12).all()


@pytest.mark.parametrize("scoring", [None, "neg_mean_squared_error", "neg_mean_absolute_error"])
@pytest.mark.parametrize("model", [SVR(C=10), Ridge()], ids=str)
def test_importances_of_regressions_agree_with_scikit_learn(model, scoring):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:60, :4] * 21, y[:60]
    model = clone(model).fit(X[:40], y[:40])
    score = get_scorer(scoring or "r2")
    expected = marginal(lambda Z: score(model, Z, y), X)
    assert_allclose(importance(model, X, y, scoring=scoring).importances_mean, expected, rtol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_a_target_outputs_are_compared(n_classes):
    X, y = table(n_classes)

    def moved(outputs, half):
        return marginal(lambda Z: -np.abs(outputs(Z) - outputs(X)).sum(axis=1).mean() / half, X)

    model = LogisticRegression().fit(X, y)
    assert_allclose(importance(model, X).importances_mean, moved(model.predict_proba, 2))
    machine = SVC().fit(X, y)
    changed = marginal(lambda Z: -(machine.predict(Z) != machine.predict(X)).mean(), X)
    assert_allclose(importance(machine, X).importances_mean, changed)
    regression = Ridge().fit(X, X[:, 0] + X[:, 1] ** 2)
    assert_allclose(
        importance(regression, X).importances_mean,
        moved(lambda Z: regression.predict(Z)[:, None], 1),
    )
    mixture = GaussianMixture(2, random_state=0).fit(X)
    found = importance(mixture, X, by=Marginal(8))
    assert found.importances_mean.shape == (4,)
    assert (found.importances_mean > 0).all()


def test_rows_may_lack_classes_or_have_new_ones():
    X, y = table(3)
    for model in (SVC(), LogisticRegression(), RandomForestClassifier(5, random_state=0)):
        model.fit(X[y != "c"], y[y != "c"])
        expected = marginal(lambda Z, model=model: model.score(Z, y), X)
        found = importance(model, X, y, by="marginal").importances_mean
        assert_allclose(found, expected, atol=1e-12)
        model.fit(X, y)
        Z, z = X[y != "b"], y[y != "b"]
        expected = marginal(lambda Q, model=model, z=z: model.score(Q, z), Z)
        assert_allclose(importance(model, Z, z).importances_mean, expected, atol=1e-12)


CLASS_SCORES = [
    "accuracy", "roc_auc", "average_precision", "neg_log_loss", "f1", "balanced_accuracy",
    "matthews_corrcoef", "neg_brier_score",
]  # fmt: skip
SEVERAL_CLASS_SCORES = ["accuracy", "roc_auc_ovr", "neg_log_loss", "f1_macro"]
NUMBER_SCORES = [
    "r2", "neg_mean_squared_error", "neg_mean_absolute_error", "neg_root_mean_squared_error",
    "neg_max_error", "explained_variance",
]  # fmt: skip
FOLLOWED = [
    LogisticRegression(),
    SVC(gamma=0.3),
    make_pipeline(StandardScaler(), LogisticRegression()),
    MLPClassifier((4,), solver="lbfgs", alpha=1.0, max_iter=500, random_state=0),
    RandomForestClassifier(6, random_state=0),
    GradientBoostingClassifier(n_estimators=5, random_state=0),
    HistGradientBoostingClassifier(max_iter=5),
]


def shuffled_falls(score, X, n_repeats):
    """Falls of a score for the shuffles of ``random_state=0``, on altered copies."""
    n, d = X.shape
    orders = [stream(0, "shuffle", d, repeat).permutation(n) for repeat in range(n_repeats)]
    return np.array([[score(X) - score(replaced(X, j, X[o, j])) for o in orders] for j in range(d)])


def without_copies(monkeypatch):
    def refuse(*_):
        raise AssertionError("altered copies are made")

    monkeypatch.setattr(GenericEngine, "batches", refuse)
    monkeypatch.setattr(CopyComparison, "_alter", refuse)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", FOLLOWED, ids=str)
def test_engines_compute_every_score_of_classes(model, n_classes, monkeypatch):
    X, y = make_classification(
        70, 4, n_informative=3, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1,
        random_state=0,
    )  # fmt: skip
    X = X.round(1)  # ties
    model = clone(model).fit(X[:50], y[:50])
    without_copies(monkeypatch)
    for scoring in CLASS_SCORES if n_classes == 2 else SEVERAL_CLASS_SCORES:
        if not hasattr(model, "predict_proba") and scoring in (
            "neg_log_loss", "neg_brier_score", "roc_auc_ovr",
        ):  # fmt: skip
            continue
        scorer = get_scorer(scoring)
        found = importance(
            model, X, y, scoring=scoring, by="permutation", n_repeats=2, random_state=0
        )
        expected = shuffled_falls(lambda Z, scorer=scorer: scorer(model, Z, y), X, 2)
        assert_allclose(found.importances, expected, atol=1e-9, err_msg=scoring)


@pytest.mark.parametrize("scoring", NUMBER_SCORES)
@pytest.mark.parametrize("model", [SVR(C=10), Ridge(), HistGradientBoostingRegressor()], ids=str)
def test_engines_compute_every_score_of_numbers(model, scoring, monkeypatch):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:90, :4] * 21, y[:90]
    model, scorer = clone(model).fit(X, y), get_scorer(scoring)
    without_copies(monkeypatch)
    options = {"scoring": scoring, "by": "permutation", "n_repeats": 2, "random_state": 0}
    expected = shuffled_falls(lambda Z: scorer(model, Z, y), X, 2)
    assert_allclose(importance(model, X, y, **options).importances, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_mean_absolute_error"])
@pytest.mark.parametrize("trees", [False, True])
def test_log_loss_and_absolute_error_have_exact_expectations(scoring, trees):
    X, y = make_classification(60, 4, random_state=0)
    if scoring == "neg_log_loss":
        model = RandomForestClassifier(6, random_state=0) if trees else LogisticRegression()
    else:
        model, y = HistGradientBoostingRegressor() if trees else Ridge(), X[:, 0] + X[:, 1] ** 2
    model, scorer = model.fit(X[:40], y[:40]), get_scorer(scoring)
    found = importance(model, X, y, scoring=scoring)
    assert found.importances.shape == (4, 1)
    assert_allclose(found.importances_mean, marginal(lambda Z: scorer(model, Z, y), X), atol=1e-10)


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), (1, 2), ("no", "yes")])
def test_ranks_give_the_area_and_the_precision_of_scikit_learn(labels):
    X, codes = make_classification(70, 4, random_state=1)
    X, y = X.round(1), np.array(labels)[codes]
    model = LogisticRegression().fit(X, y)
    for scoring in ("roc_auc", "average_precision"):
        scorer = get_scorer(scoring)
        options = {"scoring": scoring, "n_repeats": 3, "random_state": 0}
        if scoring == "average_precision" and labels == ("no", "yes"):
            with pytest.raises(ValueError, match="pos_label"):
                importance(model, X, y, **options)
            continue
        expected = shuffled_falls(lambda Z, scorer=scorer: scorer(model, Z, y), X, 3)
        assert_allclose(importance(model, X, y, **options).importances, expected, atol=1e-12)
    negative = make_scorer(roc_auc_score, greater_is_better=False, response_method="predict_proba")
    expected = shuffled_falls(lambda Z: negative(model, Z, y), X, 2)
    options = {"scoring": negative, "n_repeats": 2, "random_state": 0}
    assert_allclose(importance(model, X, y, **options).importances, expected, atol=1e-12)


def test_weighted_rows_are_scored_with_their_weights():
    X, y = make_classification(70, 4, random_state=0)
    weights = np.random.default_rng(0).random(70)
    for model in (LogisticRegression().fit(X, y), GaussianNB().fit(X, y)):
        for scoring in ("accuracy", "roc_auc"):
            scorer = get_scorer(scoring)
            options = {"scoring": scoring, "n_repeats": 2, "random_state": 0}
            found = importance(model, X, y, sample_weight=weights, **options).importances

            def score(Z, scorer=scorer, model=model):
                return scorer(model, Z, y, sample_weight=weights)

            assert_allclose(found, shuffled_falls(score, X, 2), atol=1e-12)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision", "neg_log_loss", "f1", None])
def test_every_score_of_a_model_of_frames(make, scoring):
    columns, numbers = mixed()
    frame, y = make(columns), (numbers > np.median(numbers)).astype(int)
    encoder = make_column_transformer((OneHotEncoder(), ["kind", "flag"]), remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression()).fit(frame, y)
    found = importance(model, frame, y, scoring=scoring, n_repeats=2, random_state=0).importances
    scorer, expected = get_scorer(scoring or "accuracy"), []
    orders = [stream(0, "shuffle", 3, repeat).permutation(len(y)) for repeat in range(2)]
    for name, values in columns.items():
        copies = [make(columns | {name: values[order]}) for order in orders]
        expected.append([scorer(model, frame, y) - scorer(model, copy, y) for copy in copies])
    assert_allclose(found, expected, atol=1e-12)


def test_shuffles_of_a_frame_keep_its_types_and_its_index():
    seen = []

    def score(model, X, y):
        seen.append((dict(X.dtypes), list(X.index)))
        return 0.0

    columns, y = mixed(30)
    frame = pd.DataFrame(columns).astype({"kind": "category"})
    frame["count"] = np.arange(30, dtype=np.int8)
    frame.index = [f"row{i}" for i in range(30)]
    importance(DummyRegressor().fit(frame, y), frame, y, scoring=score)
    assert all(each == seen[0] for each in seen)
    assert seen[0] == (dict(frame.dtypes), list(frame.index))


@pytest.mark.parametrize("scoring", [None, "roc_auc", "f1", "own"])
def test_a_model_without_engine_predicts_as_often_as_for_scikit_learn(scoring):
    X, y = make_classification(300, 6, random_state=0)

    class Counting(GaussianNB):
        n_rows = 0

        def predict(self, X):
            type(self).n_rows += len(X)
            return super().predict(X)

        def predict_proba(self, X):
            type(self).n_rows += len(X)
            return super().predict_proba(X)

    scoring = (lambda model, X, y: model.predict(X)[0]) if scoring == "own" else scoring
    model, counts = Counting().fit(X, y), []
    for function in (importance, permutation_importance):
        Counting.n_rows = 0
        function(model, X, y, scoring=scoring, n_repeats=5)
        counts.append(Counting.n_rows)
    assert counts[0] <= counts[1] + len(X)  # the model predicts the table once, as a check


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_score_of_stored_outputs_is_computed_as_often_as_for_scikit_learn():
    found = []
    scoring = make_scorer(lambda y, predicted: found.append(len(y)) or np.mean(y == predicted))
    X, y = make_classification(80, 4, random_state=0)
    model = SVC().fit(X, y)
    permutation_importance(model, X, y, scoring=scoring, n_repeats=3)
    n_theirs, found[:] = len(found), []
    importance(model, X, y, scoring=scoring, n_repeats=3)
    assert len(found) == n_theirs == 13


def test_all_values_of_a_long_table_are_used_only_if_that_is_fast():
    X, y = make_classification(1000, 4, n_redundant=0, random_state=0)
    for model in (
        LogisticRegression(),
        MLPClassifier((8,), solver="lbfgs", max_iter=2000, random_state=0),
    ):
        assert importance(model.fit(X, y), X, y).importances.shape == (4, 5)
        few = X.round()  # few different values
        assert importance(LogisticRegression().fit(few, y), few, y).importances.shape == (4, 1)
    for model in (SVC(C=0.01), HistGradientBoostingClassifier(max_iter=5)):
        assert importance(model.fit(X, y), X, y).importances.shape == (4, 1)


def test_the_model_is_left_as_it_was():
    X, y = table()
    model = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    before = model.decision_function(X)
    importance(model, X, y)
    assert model[-1].decision_function_shape == "ovr"
    assert_allclose(model.decision_function(X), before)


def test_no_copies_are_made_where_an_engine_knows_the_model(monkeypatch):
    X, y = table()

    def refuse(*_):
        raise AssertionError("altered copies are made")

    monkeypatch.setattr(GenericEngine, "batches", refuse)
    monkeypatch.setattr(CopyComparison, "_alter", refuse)
    names = pd.DataFrame(X, columns=list("pqrs"))
    for model in (SVC(), LogisticRegression()):
        importance(model.fit(X, y), X)
    importance(SVC().fit(X, y), X, y)
    importance(SVC().fit(names, y), names, y)
    with pytest.raises(AssertionError, match="copies"):
        importance(GaussianNB().fit(X, y), X, y)


def mixed(n_samples=80):
    draw = np.random.default_rng(0)
    frame = {
        "size": draw.normal(size=n_samples),
        "kind": draw.choice(["red", "green", "blue"], n_samples),
        "flag": draw.random(n_samples) < 0.5,
    }
    y = frame["size"] + 2.0 * (frame["kind"] == "red") + 0.1 * draw.normal(size=n_samples)
    return frame, y


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_importance_accepts_frames_of_any_columns(make):
    columns, y = mixed()
    frame = make(columns)
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["kind", "flag"]), remainder="passthrough"),
        Ridge(),
    ).fit(frame, y)
    found = importance(model, frame, y, by="marginal").importances_mean
    expected = []
    for name, values in columns.items():
        falls = []
        for value in values:
            held = make(columns | {name: np.full(len(y), value)})
            falls.append(model.score(frame, y) - model.score(held, y))
        expected.append(np.mean(falls))
    assert_allclose(found, expected, atol=1e-12)
    shuffled = importance(model, frame, y, by="permutation", random_state=1, n_repeats=2)
    assert shuffled.importances.shape == (3, 2)
    with pytest.raises(InvalidParameter, match="needs numeric columns"):
        importance(model, frame, y, by="zero")


def test_categories_keep_their_type():
    columns, y = mixed()
    frame = pd.DataFrame(columns).astype({"kind": "category"})
    model = HistGradientBoostingRegressor(max_iter=20).fit(frame, y)
    found = importance(model, frame, y, by="permutation").importances_mean
    assert found[1] > 10 * abs(found[2])
    frame.loc[:5, "size"] = np.nan
    assert np.isfinite(importance(model, frame, y, by=Marginal(8)).importances_mean).all()


def test_processes_change_nothing():
    X, y = table()
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    for scoring in (None, "neg_log_loss"):
        options = {"scoring": scoring, "by": "permutation", "random_state": 0, "n_repeats": 2}
        alone = importance(model, X, y, **options)
        together = importance(model, X, y, n_jobs=2, **options)
        assert_allclose(together.importances, alone.importances, rtol=0)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"by": "removal"}, InvalidParameter, "which trains other models"),
        ({"by": "nothing"}, InvalidParameter, "importance needs by to be"),
        ({"n_repeats": 0}, InvalidParameter, "n_repeats to be an int"),
        ({"scoring": ["accuracy"]}, InvalidParameter, "importance needs one score"),
        ({"y": None, "scoring": "accuracy"}, InvalidParameter, "needs y for scoring='accuracy'"),
        ({"X": [["a", "b", "c", "d"]] * 70}, InvalidTable, "array of numbers"),
        ({"X": np.zeros(70)}, InvalidTable, "rows and columns"),
        ({"X": np.zeros((70, 3))}, ValueError, "3 features"),
        ({"X": np.full((70, 4), np.nan)}, ValueError, "NaN"),
        ({"y": None, "sample_weight": np.ones(70)}, InvalidParameter, "needs y for sample_weight"),
        ({"sample_weight": np.ones(3)}, ValueError, "inconsistent numbers of samples"),
        ({"y": np.zeros(3)}, ValueError, "inconsistent numbers of samples"),
        ({"model": SVC()}, NotFittedError, "not fitted"),
    ],
)
def test_bad_input_is_named(options, error, sentence):
    X, y = table()
    asked = {"model": SVC().fit(X, y), "X": X, "y": y} | options
    with pytest.raises(error, match=sentence):
        importance(asked.pop("model"), asked.pop("X"), asked.pop("y"), **asked)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(5, random_state=0),
        HistGradientBoostingClassifier(max_iter=5),
        SVC(),
        make_pipeline(StandardScaler(), SVC()),
        KNeighborsClassifier(),
    ],
    ids=repr,
)
def test_a_model_trained_on_a_frame_is_asked_without_a_warning(model):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
    y = (frame["a"] > 0).to_numpy().astype(int)
    fitted = clone(model).fit(frame, y)  # warnings are errors here
    plain = clone(model).fit(frame.to_numpy(), y)
    for target in (y, None):
        named = importance(fitted, frame, target, random_state=0).importances_mean
        unnamed = importance(plain, frame.to_numpy(), target, random_state=0).importances_mean
        np.testing.assert_allclose(named, unnamed)
    assert [e.means.shape for e in effects(fitted, frame)] == [
        e.means.shape for e in effects(plain, frame.to_numpy())
    ]
