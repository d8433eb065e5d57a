"""Choices by curves, errors and information, against brute force and statsmodels."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from tamis.choice import Information, Knee, OneStandardError, Patience, Threshold
from tamis.choice.information import _model
from tamis.contract import Context, Record, Step, Trace
from tamis.criteria import (
    MRMR,
    Correlation,
    CrossValidated,
    FisherScore,
    Importances,
    MutualInformation,
    Scatter,
)
from tamis.exceptions import (
    IncompatibleCriterion,
    InvalidParameter,
    InvalidTarget,
    NothingSelected,
)
from tamis.search import Backward, Forward, Ranking, RecursiveElimination, Then
from tests.laws.catalogue import table


def walk(values, *, growing=True):
    """The trace of a nested walk with given values."""
    n = len(values)
    trace = Trace(n + 1)
    if not growing:
        trace.append(Step(np.arange(n + 1), np.nan))
    for k, value in enumerate(values):
        subset = np.arange(k + 1) if growing else np.arange(n - k)
        trace.append(Step(subset, value))
    return trace


@pytest.mark.parametrize(
    ("values", "steps", "kept"),
    [
        ([1, 2, 3, 2, 2, 2, 9], 3, 2),
        ([1, 2, 3, 2, 2, 4, 9], 3, 6),
        ([1, 1, 1, 1, 1], 2, 0),
        ([5, 4, 3], 1, 0),
        ([1, 2, 3], 1, 2),
    ],
)
def test_patience_keeps_the_best_before_it_is_lost(values, steps, kept):
    assert Patience(steps).pick(walk(values)).step == kept


def test_a_walk_down_prefers_the_smaller_of_equals():
    trace = walk([3.0, 3.0, 3.0, 2.0, 2.0, 9.0], growing=False)
    assert trace.sizes[Patience(2).pick(trace).step] == 4


@pytest.mark.parametrize("search", [Forward, Backward])
def test_patience_ends_the_walk_and_a_resumed_one_ends_the_same(search):
    X, y = load_breast_cancer(return_X_y=True)
    choice = Patience(2)
    whole = search(CrossValidated(LinearDiscriminantAnalysis()), n_features_to_select=choice)
    whole.fit(X[:, :12], y)
    assert len(whole.trace_) < 12
    assert whole.record_.finished
    assert "flatters" in whole.choice_.reason
    saved = Record.from_dict(json.loads(json.dumps(whole.record_.to_dict())))
    for n_steps in (1, 3, len(saved.trace)):
        stopped = replace(saved, trace=saved.trace.head(n_steps), finished=False, chosen=0)
        again = search(CrossValidated(LinearDiscriminantAnalysis()), n_features_to_select=choice)
        again.resume(X[:, :12], y, record=stopped)
        assert_array_equal(again.support_, whole.support_)
        assert again.choice_ == whole.choice_
        assert len(again.trace_) == len(whole.trace_)


def test_a_choice_in_the_second_search_stops_that_one():
    X, y = load_breast_cancer(return_X_y=True)
    second = Forward(CrossValidated(KNeighborsClassifier()), n_features_to_select=Patience(1))
    search = Then(Ranking(FisherScore(), n_features_to_select=8), second).fit(X, y)
    assert len(search.trace_) < 8
    assert search.choice_.reason == search.second_.choice_.reason


def test_patience_needs_values():
    with pytest.raises(IncompatibleCriterion, match="value of each subset"):
        Forward(MRMR(), n_features_to_select=Patience()).fit(*table())
    with pytest.raises(InvalidParameter, match="at least 1"):
        Forward(Scatter(), n_features_to_select=Patience(0)).fit(*table())


def test_the_knee_is_the_gain_furthest_below_the_line():
    class Given(Correlation):
        def _learn(self, X, y, **params):
            super()._learn(X, y, **params)
            self.scores_ = np.array([10.0, 9.0, 8.5, 1.0, 0.9, 0.5, 0.1])[: X.shape[1]]

    X, y = table()
    search = Ranking(Given(), n_features_to_select=Knee()).fit(X, y)
    assert_array_equal(search.get_support(indices=True), [0, 1, 2])
    assert "no test" in search.choice_.reason


def test_a_knee_where_all_gains_are_equal_keeps_one():
    trace = Trace(4)
    for k in range(4):
        trace.append(Step(np.arange(k + 1), 0.0))
    trace._columns["score"].array[:] = 1.0
    assert trace.sizes[Knee().pick(trace).step] == 1


def test_the_knee_is_refused_where_a_score_is_no_gain():
    with pytest.raises(IncompatibleCriterion, match="no marginal gain"):
        Forward(MRMR(), n_features_to_select=Knee()).fit(*table())
    with pytest.raises(IncompatibleCriterion, match="no marginal gain"):
        RecursiveElimination(Importances(SVC(kernel="linear")), n_features_to_select=Knee()).fit(
            *table()
        )


def test_one_standard_error_compares_fold_by_fold():
    X, y = load_diabetes(return_X_y=True)
    search = Forward(CrossValidated(Ridge(), cv=5), n_features_to_select=OneStandardError())
    search.fit(X, y)
    folds = {}
    for step in search.trace_:
        chosen = (X[:, step.subset] - X.mean(0)[step.subset]) / X.std(0)[step.subset]
        folds[len(step.subset)] = cross_val_score(Ridge(), chosen, y, cv=5)
    top = max(folds, key=lambda size: folds[size].mean())
    expected = top
    for size in sorted(folds):
        lost = folds[top] - folds[size]
        if lost.mean() <= lost.std(ddof=1) * np.sqrt(1 / 5 + 1 / 4) + 1e-12:
            expected = size
            break
    assert search.n_features_ == expected < top


def test_one_standard_error_where_no_fold_has_an_error():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.repeat([0, 1], 30)
    X[:, 2] += 20 * y
    search = Forward(
        CrossValidated(KNeighborsClassifier()), n_features_to_select=OneStandardError()
    ).fit(X, y)
    assert_array_equal(search.get_support(indices=True), [2])


def test_one_standard_error_needs_folds():
    with pytest.raises(IncompatibleCriterion, match="cross-validates"):
        Forward(Scatter(), n_features_to_select=OneStandardError()).fit(*table())


def test_fold_scores_average_to_the_value():
    X, y = load_iris(return_X_y=True)
    for estimator in (LinearDiscriminantAnalysis(), KNeighborsClassifier(), SVC()):
        criterion = CrossValidated(estimator).fit(X, y)
        for subset in ([], [0], [1, 3]):
            subset = np.array(subset, dtype=int)
            assert_allclose(criterion.fold_scores(subset).mean(), criterion.value(subset))


def test_linear_criteria_equal_statsmodels():
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    X, y = load_diabetes(return_X_y=True)
    order = np.array([2, 8, 3, 0])
    for size in (0, 1, 3, 4):
        design = np.column_stack([np.ones(len(y)), X[:, order[:size]]])
        fitted = sm.OLS(y, design).fit()
        for kind in ("aic", "bic"):
            model = _model(kind, X - X.mean(axis=0), y, order, "regression")
            assert_allclose(model.criterion(size), getattr(fitted, kind), rtol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_criteria_equal_statsmodels(n_classes):
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 200)
    X = rng.normal(size=(200, 4)) + 0.4 * y[:, None]
    order = np.array([1, 3, 0])
    for size in (1, 2, 3):
        design = np.column_stack([np.ones(len(y)), X[:, order[:size]]])
        fitted = sm.MNLogit(y, design).fit(disp=0)
        for kind in ("aic", "bic"):
            model = _model(kind, X, y, order, "classification")
            assert_allclose(model.criterion(size), getattr(fitted, kind), rtol=1e-6)


def test_the_extended_criterion_keeps_what_is_linear_and_nothing_of_noise():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 40))
    y = X[:, 3] - X[:, 7] + 0.5 * rng.normal(size=200)
    search = Ranking(Correlation(), n_features_to_select=Information()).fit(X, y)
    assert_array_equal(search.get_support(indices=True), [3, 7])
    with pytest.raises(NothingSelected, match="without columns"):
        Ranking(Correlation(), n_features_to_select=Information()).fit(X, rng.normal(size=200))
    labels = np.where(y > 0, "a", "b")
    search = Ranking(Correlation(), n_features_to_select=Information("srm"))
    assert search.fit(X[:, [3, 7, 1]], labels).n_features_ >= 1


@pytest.mark.parametrize("factor", [1e-9, 1.0, 1e9])
def test_a_scaled_target_and_table_change_nothing(factor):
    X, y = load_diabetes(return_X_y=True)
    search = Ranking(Correlation(), n_features_to_select=Information("bic"))
    assert search.fit(factor * X, factor * y).n_features_ == search.fit(X, y).n_features_


def test_more_columns_than_rows_and_copies():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 90))
    X[:, 1] = X[:, 0]
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    search = Forward(Correlation(), n_features_to_select=Information("bic")).fit(X, y)
    assert search.support_[0]
    assert len(search.trace_) <= 29
    labels = np.where(y > 0, "a", "b")  # told apart wholly
    assert (
        Ranking(FisherScore(), n_features_to_select=Information("bic")).fit(X, labels).n_features_
    )


def test_a_walk_down_is_read_from_its_end():
    X, y = load_diabetes(return_X_y=True)
    down = Backward(CrossValidated(Ridge()), n_features_to_select=Information("bic")).fit(X, y)
    chain = [step.subset for step in down.trace_ if len(step.subset)]
    context = Context(None, X, y)
    sizes = [len(subset) for subset in chain]
    found = []
    for subset in chain:
        model = _model("bic", X - X.mean(axis=0), y, subset, "regression")
        found.append(model.criterion(len(subset)))
    assert down.n_features_ == sizes[int(np.argmin(found))]
    assert Information("bic").pick(down.trace_, context).step == down.choice_.step


def test_information_refuses_what_it_cannot_read():
    with pytest.raises(InvalidTarget, match="real numbers"):
        Ranking(Correlation(), n_features_to_select=Information("srm")).fit(
            *load_diabetes(return_X_y=True)
        )
    with pytest.raises(InvalidParameter, match="kind"):
        Ranking(Correlation(), n_features_to_select=Information("dic")).fit(*table())


@pytest.mark.parametrize(
    "choice", [2, 0.5, "best", Threshold(0.0), Knee(), Information("aic"), Patience()], ids=str
)
def test_every_choice_says_why(choice):
    search = Forward(Scatter(), n_features_to_select=choice).fit(*table())
    assert search.choice_.reason.endswith(".")
    assert str(search.n_features_) in search.choice_.reason
    assert search.choice_.step == search.record_.chosen


def test_mutual_information_has_a_knee_in_a_ranking():
    X, y = load_iris(return_X_y=True)
    search = Ranking(MutualInformation(), n_features_to_select=Knee()).fit(X, y)
    assert 1 <= search.n_features_ < 4
