"""The exact searches in place of GridSearchCV: the same scores, names and conventions."""

import pickle

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from tamis.exceptions import InvalidParameter, InvalidTarget
from tamis.svm import SVCPathCV, SVRPathCV
from tamis.svm.curves.curve import IntervalOfC
from tamis.svm.curves.scores import SCORES
from tamis.table import TableEncoder

from .problems import classification
from .test_regression import regression

RANGE = (2.0**-4, 2.0**4)
FOLDS = StratifiedKFold(4, shuffle=True, random_state=0)
PARTS = KFold(4, shuffle=True, random_state=0)


def peer(search, machine, X, y, cv, scoring=None, **fitting):
    """Return GridSearchCV with the values of C in the results of a search."""
    grid = {f"{name}": [value] for name, value in search.best_params_.items()}
    powers = [2.0**k for k in range(-4, 5)]
    grid["C"] = sorted({*powers, *search.cv_results_["param_C"].tolist()})
    return GridSearchCV(machine, grid, cv=cv, scoring=scoring).fit(X, y, **fitting)


def at(results, C, key="mean_test_score"):
    return results[key][list(results["param_C"]).index(C)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("scoring", [None, *SCORES, "roc_auc"])
def test_scores_agree_with_grid_search(scoring):
    X, y = classification(n=90, weights=[0.65])
    search = SVCPathCV(gamma=0.2, C_range=RANGE, cv=FOLDS, scoring=scoring, refit=False).fit(X, y)
    grid = peer(search, SVC(tol=1e-9), X, y, FOLDS, scoring)
    for C in search.cv_results_["param_C"]:
        for key in ("mean_test_score", "std_test_score", "split0_test_score"):
            ours, theirs = at(search.cv_results_, C, key), at(grid.cv_results_, C, key)
            assert ours == pytest.approx(theirs, abs=1e-12)
    assert search.best_score_ == pytest.approx(at(grid.cv_results_, search.best_C_), abs=1e-12)
    assert search.best_score_ >= grid.best_score_ - 1e-12
    if scoring in (None, "accuracy", "balanced_accuracy", "f1"):
        assert search.best_score_ == at(grid.cv_results_, search.best_C_)
    assert search.best_params_ == search.cv_results_["params"][search.best_index_]
    assert search.cv_results_["rank_test_score"][search.best_index_] == 1


@pytest.mark.parametrize("scoring", ["neg_mean_squared_error", "neg_mean_absolute_error", "r2"])
@pytest.mark.parametrize("pool", ["folds", "samples"])
def test_regression_scores_agree_with_grid_search(scoring, pool):
    X, y = regression(n=60)
    options = {"gamma": 0.2, "C_range": RANGE, "cv": PARTS, "pool": pool, "refit": False}
    search = SVRPathCV(scoring=scoring, **options).fit(X, y)
    grid = peer(search, SVR(tol=1e-10), X, y, PARTS, scoring)
    for C in search.cv_results_["param_C"]:
        for key in ("mean_test_score", "split3_test_score")[pool == "samples" :]:
            ours, theirs = at(search.cv_results_, C, key), at(grid.cv_results_, C, key)
            assert ours == pytest.approx(theirs, rel=1e-5)
    if pool == "folds":
        assert search.best_score_ >= grid.best_score_ - 1e-6
    value = search.curve_(search.best_C_)
    assert value == pytest.approx(search.best_score_ if scoring == "r2" else -search.best_score_)
    assert search.certificate_.closed
    assert search.certificate_.value == pytest.approx(value)


def test_pooled_r2_is_computed_from_all_predictions():
    X, y = regression(n=60)
    cv = list(PARTS.split(X))
    options = {"gamma": 0.2, "C_range": RANGE, "cv": cv, "pool": "samples"}
    search = SVRPathCV(scoring="r2", **options).fit(X, y)
    predicted = np.empty(60)
    for train, test in cv:
        machine = SVR(C=search.best_C_, gamma=0.2, tol=1e-10).fit(X[train], y[train])
        predicted[test] = machine.predict(X[test])
    expected = 1 - ((predicted - y) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert search.best_score_ == pytest.approx(expected, rel=1e-6)


def test_losses_are_negative_scores():
    X, y = classification(n=60)
    options = {"gamma": 0.2, "cv": 3, "refit": False}
    plain = SVCPathCV(**options).fit(X, y)
    loss = SVCPathCV(scoring="error", **options).fit(X, y)
    assert loss.best_score_ == pytest.approx(plain.best_score_ - 1)
    assert loss.best_C_ == plain.best_C_
    score = SVCPathCV(scoring="accuracy", **options).fit(X, y)
    assert (score.best_score_, score.best_C_) == (plain.best_score_, plain.best_C_)
    assert score.curve_.best == pytest.approx(1 - plain.curve_.best)


@pytest.mark.parametrize("search", [SVCPathCV, SVRPathCV])
def test_every_other_scorer_is_refused(search):
    X, y = classification(n=30)
    done = {*SCORES, "roc_auc"} if search is SVCPathCV else {
        "r2", "neg_mean_squared_error", "neg_mean_absolute_error"
    }  # fmt: skip
    for name in set(get_scorer_names()) - done:
        with pytest.raises(InvalidParameter, match="GridSearchCV"):
            search(scoring=name).fit(X, y)
    with pytest.raises(InvalidParameter, match="scoring"):
        search(scoring=len).fit(X, y)


def test_the_range_may_be_given_by_C_or_lambda():
    X, y = classification(n=60)
    by_C = SVCPathCV("linear", C_range=(0.125, 4.0), cv=3).fit(X, y)
    by_lambda = SVCPathCV("linear", lambda_range=(0.25, 8.0), cv=3).fit(X, y)
    assert by_C.best_interval_ == by_lambda.best_interval_
    np.testing.assert_allclose(by_C.curve_.breakpoints[[0, -1]], [0.125, 4.0])
    assert "no C in [0.125, 4] is better" in repr(by_C.certificate_)
    powers = sorted({*by_C.cv_results_["param_C"].tolist()} - {by_C.best_C_})
    assert powers == [0.125, 0.25, 0.5, 1, 2, 4]
    for wrong in ((4.0, 0.125), (0, 1), 3.0, "all", (1e-320, 1.0)):
        with pytest.raises(InvalidParameter, match="C_range to be a pair of increasing numbers"):
            SVCPathCV(C_range=wrong).fit(X, y)
    with pytest.raises(InvalidParameter, match="not both"):
        SVRPathCV(C_range=(1, 2), lambda_range=(1, 2)).fit(X, y)


@pytest.mark.parametrize("search", [SVCPathCV, SVRPathCV])
def test_gammas_are_searched_together_on_any_number_of_processes(search):
    X, y = classification(n=50)
    options = {"gamma": [0.01, "scale", 0.5], "C_range": RANGE, "cv": 3}
    alone, shared = (search(n_jobs=n, **options).fit(X, y) for n in (None, 2))
    assert alone.best_params_ == shared.best_params_
    np.testing.assert_equal(alone.cv_results_, shared.cv_results_)
    assert repr(alone.certificate_) == repr(shared.certificate_)
    assert "with any of the 3 gammas" in repr(alone.certificate_)
    assert alone.cv_results_["param_gamma"].tolist().count("scale") >= 9
    assert alone.best_params_["gamma"] == alone.best_gamma_ == alone.best_estimator_.gamma


def test_groups_are_never_split_by_a_fold():
    X, y = classification(n=60)
    groups = np.arange(60) // 3
    number = SVCPathCV("linear", cv=3, refit=False).fit(X, y, groups=groups)
    splitter = SVCPathCV("linear", cv=StratifiedGroupKFold(3), refit=False)
    given = list(StratifiedGroupKFold(3).split(X, y, groups))
    listed = SVCPathCV("linear", cv=given, refit=False).fit(X, y)
    assert number.best_params_ == splitter.fit(X, y, groups=groups).best_params_
    assert number.best_params_ == listed.best_params_
    assert number.best_params_ == SVCPathCV("linear", cv=iter(given), refit=False).fit(
        X, y
    ).best_params_  # fmt: skip
    numbers = SVRPathCV("linear", cv=3, refit=False).fit(X, X[:, 0], groups=groups)
    by_hand = SVRPathCV("linear", cv=GroupKFold(3), refit=False).fit(X, X[:, 0], groups=groups)
    assert numbers.best_params_ == by_hand.best_params_


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_preprocessor_is_fitted_inside_the_folds(kernel):
    X, y = classification(n=60)
    X = X * 10.0 ** np.arange(X.shape[1]) + 1e3
    scaler = StandardScaler()
    search = SVCPathCV(kernel, C_range=RANGE, cv=FOLDS, preprocessor=scaler).fit(X, y)
    grid = GridSearchCV(
        Pipeline([("a", StandardScaler()), ("b", SVC(kernel=kernel, tol=1e-9))]),
        {"b__C": search.cv_results_["param_C"].tolist()},
        cv=FOLDS,
    ).fit(X, y)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"]
    )
    assert not hasattr(scaler, "mean_")
    assert isinstance(search.best_estimator_, Pipeline)
    whole = make_pipeline(StandardScaler(), SVC(C=search.best_C_, kernel=kernel)).fit(X, y)
    np.testing.assert_allclose(search.decision_function(X), whole.decision_function(X), atol=1e-6)


@pytest.mark.filterwarnings("ignore::tamis.exceptions.NotCertified")
def test_a_table_may_have_text_and_missing_values():
    X, y = classification(n=80)
    frame = pl.DataFrame({"a": X[:, 0], "b": [None, *X[1:, 1].tolist()], "c": ["u", "v"] * 40})
    prepare = make_pipeline(TableEncoder(), StandardScaler())
    search = SVCPathCV("linear", cv=3, preprocessor=prepare, probability=True).fit(frame, y)
    assert search.n_features_in_ == 3
    assert search.predict_proba(frame).shape == (80, 2)
    assert search.score(frame, y) > 0.6
    numbers = SVRPathCV("linear", cv=3, preprocessor=prepare).fit(frame, X[:, 0])
    assert numbers.score(frame, X[:, 0]) > 0.9
    with pytest.raises(InvalidParameter, match="no columns to preprocess"):
        SVCPathCV("precomputed", preprocessor=prepare).fit(frame, y)


def test_probabilities_are_available_on_request():
    X, y = classification(n=80)
    labels = np.array(["no", "yes"])[y]
    search = SVCPathCV("linear", cv=4, probability=True).fit(X, labels)
    chances = search.predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    order = np.argsort(search.decision_function(X))
    assert (np.diff(chances[order, 1]) >= 0).all()
    assert abs(chances[:, 1].mean() - y.mean()) < 0.05
    assert not hasattr(SVCPathCV(), "predict_proba")
    shuffled = ShuffleSplit(3, random_state=0)
    loose = SVCPathCV("linear", cv=shuffled, probability=True).fit(X, np.arange(80) % 3)
    assert loose.predict_proba(X).shape == (80, 3)


def test_it_works_in_pipelines_and_cross_validation():
    X, y = classification(n=80)
    chain = make_pipeline(StandardScaler(), SVCPathCV("linear", cv=3))
    assert cross_val_score(chain, X, y, cv=3).mean() > 0.6
    search = SVCPathCV("linear", cv=3, scoring="roc_auc")
    honest = cross_val_score(search, X, y, cv=3)
    judged = cross_val_score(search, X, y, cv=3, scoring="roc_auc")
    np.testing.assert_array_equal(honest, judged)
    fitted = clone(search).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert repr(again.certificate_) == repr(fitted.certificate_)
    assert clone(fitted).get_params() == search.get_params()
    numbers = SVRPathCV("linear", cv=3, scoring="neg_mean_absolute_error").fit(X, X[:, 0])
    assert numbers.score(X, X[:, 0]) == -np.abs(numbers.predict(X) - X[:, 0]).mean()


def test_repeated_folds_are_accepted():
    X, y = classification(n=60)
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    search = SVCPathCV("linear", cv=cv).fit(X, y)
    assert search.n_splits_ == 6
    assert "split5_test_score" in search.cv_results_


class Watch:
    """Callback that counts the tasks of a fit."""

    def __init__(self):
        self.ended = 0
        self.expected = None

    def setup(self, estimator, context):
        self.expected = context.max_subtasks

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.ended += context.parent is not None

    def teardown(self, estimator, context):
        pass


@pytest.mark.parametrize("search", [SVCPathCV, SVRPathCV])
def test_progress_counts_folds_and_gammas(search):
    X, y = classification(n=40)
    watch = Watch()
    search(gamma=[0.1, 0.5], cv=3, n_jobs=2).set_callbacks(watch).fit(X, y)
    assert (watch.ended, watch.expected) == (6, 6)


def test_without_refit_there_is_no_estimator():
    X, y = regression(n=30)
    with pytest.raises(AttributeError, match="refit=True"):
        SVRPathCV(refit=False).fit(X, y).predict(X)


def test_a_constant_target_has_no_r2():
    X, y = regression(n=30)
    y[:10] = 1.0
    with pytest.raises(InvalidTarget, match="varies in every test fold"):
        SVRPathCV(scoring="r2", cv=KFold(3)).fit(X, y)
    assert np.isfinite(SVRPathCV(scoring="r2", cv=KFold(3), pool="samples").fit(X, y).best_score_)


def test_the_certificate_prints_as_a_sentence():
    X, y = classification(n=60)
    search = SVCPathCV("linear", cv=3).fit(X, y)
    words = repr(search.certificate_)
    assert words.startswith(f"error {search.curve_.best:.4g} for every C in [")
    assert words.endswith("; no C in [0.001953, 256] is better: proved")
    from dataclasses import replace

    doubtful = replace(search.certificate_, closed=False, reason="a path ended early")
    assert repr(doubtful).endswith(
        "; not proved that no C in [0.001953, 256] is better: a path ended early"
    )
    numbers = SVRPathCV("linear", cv=3).fit(X, X[:, 0] + 0.1 * X[:, 1])
    assert repr(numbers.certificate_).startswith("mean squared error ")
    assert repr(numbers.certificate_).endswith(": proved")


@pytest.mark.parametrize("seed", range(50))
def test_printed_ends_lie_inside_the_interval(seed):
    rng = np.random.default_rng(seed)
    low = 10.0 ** rng.uniform(-12, 12)
    interval = IntervalOfC(low, low * (1 + 10.0 ** rng.uniform(-13, 2)), False, False)
    first, last = interval.rounded_ends
    assert interval.low <= first <= last <= interval.high
    assert interval.low < interval.round_number < interval.high
    # no number with fewer digits exists
    digits = len(f"{interval.round_number:.17g}".replace(".", "").strip("0").split("e")[0])
    if 1 < digits < 12:
        fewer = [float(f"{interval.middle * s:.{digits - 2}e}") for s in np.linspace(0.5, 2, 301)]
        assert not any(interval.low < number < interval.high for number in fewer)


class Interrupt(Watch):
    """Callback that interrupts after a number of paths."""

    def __init__(self, after):
        super().__init__()
        self.after = after

    def on_fit_task_end(self, estimator, context):
        super().on_fit_task_end(estimator, context)
        if self.ended == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize(("after", "known"), [(1, (0.1, 1)), (3, (0.1, 3)), (5, (0.1, 3))])
def test_finished_paths_are_kept_after_an_interrupt(after, known):
    X, y = classification(n=40)
    search = SVCPathCV(gamma=[0.1, 0.5], cv=3).set_callbacks(Interrupt(after))
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    assert (search.best_gamma_, search.n_splits_) == known
    if known[1] == 3:
        whole = SVCPathCV(gamma=0.1, cv=3).fit(X, y)
        assert search.best_params_ == whole.best_params_
        assert repr(search.certificate_) == repr(whole.certificate_)
