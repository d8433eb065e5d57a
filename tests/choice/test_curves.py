"""Choices by curves, errors and information, against brute force and statsmodels."""

import json
from dataclasses import replace
from math import comb

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from tamis.choice import Information, Knee, OneStandardError, Patience, Threshold
from tamis.choice.information import _model
from tamis.contract import Choice, Context, Record, Step, Trace
from tamis.criteria import (
    MRMR,
    Correlation,
    CrossValidated,
    DensitySensitivity,
    FisherScore,
    Importances,
    MutualInformation,
    Remembered,
    Scatter,
    ScoreSensitivity,
)
from tamis.exceptions import (
    IncompatibleCriterion,
    InvalidParameter,
    InvalidStep,
    InvalidTable,
    InvalidTarget,
    NothingSelected,
)
from tamis.search import Backward, Forward, Ranking, RecursiveElimination, Then
from tamis.testing.problem import make_table as table


def walk(values, *, growing=True):
    """Return the trace of a nested search with given values."""
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
def test_patience_selects_the_best_step_before_the_value_falls(values, steps, kept):
    assert Patience(steps).pick(walk(values)).step == kept


def test_backward_ties_go_to_the_smaller_subset():
    trace = walk([3.0, 3.0, 3.0, 2.0, 2.0, 9.0], growing=False)
    assert trace.sizes[Patience(2).pick(trace).step] == 4


@pytest.mark.parametrize("search", [Forward, Backward])
def test_patience_ends_a_search_and_a_resumed_search(search):
    X, y = load_breast_cancer(return_X_y=True)
    choice = Patience(2)
    whole = search(CrossValidated(LinearDiscriminantAnalysis()), n_features_to_select=choice)
    whole.fit(X[:, :12], y)
    assert len(whole.trace_) < 12
    assert whole.record_.finished
    assert "optimistic" in whole.choice_.reason
    saved = Record.from_dict(json.loads(json.dumps(whole.record_.to_dict())))
    for n_steps in (1, 3, len(saved.trace)):
        stopped = replace(saved, trace=saved.trace.head(n_steps), finished=False, chosen=0)
        again = search(CrossValidated(LinearDiscriminantAnalysis()), n_features_to_select=choice)
        again.resume(X[:, :12], y, record=stopped)
        assert_array_equal(again.support_, whole.support_)
        assert again.choice_ == whole.choice_
        assert len(again.trace_) == len(whole.trace_)


def test_a_choice_of_the_second_search_stops_that_search():
    X, y = load_breast_cancer(return_X_y=True)
    second = Forward(CrossValidated(KNeighborsClassifier()), n_features_to_select=Patience(1))
    search = Then(Ranking(FisherScore(), n_features_to_select=8), second).fit(X, y)
    assert len(search.trace_) < 8
    assert search.choice_.reason == search.second_.choice_.reason


@pytest.mark.parametrize(
    "steps", [pytest.param(1, marks=pytest.mark.slow), 2, pytest.param(4, marks=pytest.mark.slow)]
)
def test_patience_adds_up_losses_of_a_score(steps):
    """With ``by="removal"``, the sum of the losses is the decrease of the held-out score."""
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(np.column_stack([X[:60], np.random.default_rng(0).normal(size=(60, 6))])), y[:60]
    criterion = ScoreSensitivity(Ridge(), by="removal", on="held-out", random_state=0)
    whole = RecursiveElimination(criterion, n_features_to_select=1).fit(X, y)
    folds = clone(criterion).fit(X, y)._training.parts

    def held_out(columns):
        models = [Ridge().fit(X[train][:, columns], y[train]) for train, _ in folds]
        rest = [(X[test][:, columns], y[test]) for _, test in folds]
        return np.mean([model.score(*rows) for model, rows in zip(models, rest, strict=True)])

    subsets = [step.subset for step in whole.trace_]
    best, waited = subsets[0], 0
    for subset in subsets[1:]:
        better = held_out(subset) >= held_out(best)
        best, waited = (subset, 0) if better else (best, waited + 1)
        if waited == steps:
            break
    search = RecursiveElimination(criterion, n_features_to_select=Patience(steps)).fit(X, y)
    assert_array_equal(search.get_support(indices=True), best)
    assert 1 < search.n_features_ < 16
    rise = held_out(best) - held_out(subsets[0])
    assert f"of value {rise:.4g}: {steps} more step(s)" in search.choice_.reason


@pytest.mark.parametrize("criterion", [DensitySensitivity(Ridge()), Importances(Ridge())])
def test_patience_refuses_losses_that_are_never_negative(criterion):
    with pytest.raises(IncompatibleCriterion, match="value of each subset"):
        RecursiveElimination(criterion, n_features_to_select=Patience()).fit(*unit_table())


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
    assert "not a test" in search.choice_.reason


def trace_of(scores):
    trace = Trace(len(scores))
    for k in range(len(scores)):
        trace.append(Step(np.arange(k + 1), 0.0))
    trace._columns["score"][: len(scores)] = scores
    return trace


@pytest.mark.parametrize(
    ("scores", "size"),
    [
        ([np.inf, 10.0, 9.0, 0.1, 0.1, 0.1], 3),
        ([np.inf, np.inf, 1.0, 1.0, 1.0], 2),
        ([3.0, 2.9, 0.1, -np.inf], 2),
        ([np.nan] * 4, 1),
    ],
)
def test_infinite_gains_are_the_greatest(scores, size):
    trace = trace_of(scores)
    assert trace.sizes[Knee().pick(trace).step] == size


def test_rising_gains_are_reported_as_rising():
    assert "rise (gains should fall) from 1 to 9" in Knee().pick(trace_of([1.0, 2.0, 9.0])).reason


def test_one_column_is_selected_if_all_gains_are_equal():
    trace = Trace(4)
    for k in range(4):
        trace.append(Step(np.arange(k + 1), 0.0))
    trace._columns["score"][:] = 1.0
    assert trace.sizes[Knee().pick(trace).step] == 1


def test_the_knee_is_refused_if_scores_are_not_gains():
    with pytest.raises(IncompatibleCriterion, match="not marginal gain"):
        Forward(MRMR(), n_features_to_select=Knee()).fit(*table())
    with pytest.raises(IncompatibleCriterion, match="not marginal gain"):
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


def test_one_standard_error_works_if_no_fold_has_an_error():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.repeat([0, 1], 30)
    X[:, 2] += 20 * y
    search = Forward(
        CrossValidated(KNeighborsClassifier()), n_features_to_select=OneStandardError()
    ).fit(X, y)
    assert_array_equal(search.get_support(indices=True), [2])


@pytest.mark.parametrize("estimator", [LinearDiscriminantAnalysis(), KNeighborsClassifier()])
@pytest.mark.parametrize("kind", [Forward, Backward])
def test_one_standard_error_works_if_a_wrapper_is_right_in_every_fold(kind, estimator):
    rng = np.random.default_rng(0)
    y = np.tile([0, 0, 1, 1], 15)
    X = 0.3 * rng.normal(size=(60, 18))  # enough columns for all candidates to be scored together
    X[:, 3] += np.where(y, 4.0, 0.0) * (np.arange(60) % 5 > 0)  # wrong for a fifth of one class
    X[:, 11] += np.where(y, 4.0, 0.0) * (np.arange(60) % 5 == 0)
    search = kind(CrossValidated(estimator), n_features_to_select=OneStandardError()).fit(X, y)
    assert search.trace_.values.max() == 1.0
    assert_array_equal(search.get_support(indices=True), [3, 11])
    assert "2 columns reach the best cross-validated score, 1;" in search.choice_.reason
    wider = kind(CrossValidated(estimator), n_features_to_select=OneStandardError(n_errors=1e9))
    assert wider.fit(X, y).n_features_ == 1


def test_cached_folds_have_standard_errors_too():
    X, y = load_iris(return_X_y=True)
    plain = Forward(CrossValidated(SVC()), n_features_to_select=OneStandardError()).fit(X, y)
    kept = Forward(Remembered(CrossValidated(SVC())), n_features_to_select=OneStandardError())
    assert_array_equal(kept.fit(X, y).support_, plain.support_)
    assert kept.choice_.reason == plain.choice_.reason
    with pytest.raises(IncompatibleCriterion, match="cross-validates"):
        Forward(Remembered(Scatter()), n_features_to_select=OneStandardError()).fit(X, y)


def test_one_standard_error_needs_folds():
    with pytest.raises(IncompatibleCriterion, match="cross-validates"):
        Forward(Scatter(), n_features_to_select=OneStandardError()).fit(*table())


@pytest.mark.parametrize("n_errors", ["one", -1, None, np.nan])
def test_a_number_of_standard_errors_is_needed(n_errors):
    search = Forward(CrossValidated(SVC()), n_features_to_select=OneStandardError(n_errors))
    with pytest.raises(InvalidParameter, match="n_errors to be a number of at least 0"):
        search.fit(*table())


def test_the_reason_mentions_no_smaller_subset_if_one_column_is_best():
    X = np.c_[np.repeat([0.0, 1.0], 20), np.zeros(40)]
    search = Forward(
        CrossValidated(KNeighborsClassifier(1)), n_features_to_select=OneStandardError()
    )
    reason = search.fit(X, np.repeat([0, 1], 20)).choice_.reason
    assert "no fewer were tried" in reason


def test_fold_scores_average_to_the_value():
    X, y = load_iris(return_X_y=True)
    for estimator in (LinearDiscriminantAnalysis(), KNeighborsClassifier(), SVC()):
        criterion = CrossValidated(estimator).fit(X, y)
        for subset in ([], [0], [1, 3]):
            subset = np.array(subset, dtype=int)
            assert_allclose(criterion.fold_scores(subset).mean(), criterion.value(subset))


def test_linear_criteria_agree_with_statsmodels():
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    X, y = load_diabetes(return_X_y=True)
    order = np.array([2, 8, 3, 0])
    for size in (0, 1, 3, 4):
        design = np.column_stack([np.ones(len(y)), X[:, order[:size]]])
        fitted = sm.OLS(y, design).fit()
        for kind in ("aic", "bic"):
            model = _model(kind, X - X.mean(axis=0), y, order, "regression")
            assert_allclose(model.criterion(size, size), getattr(fitted, kind), rtol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_criteria_agree_with_statsmodels(n_classes):
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
            assert_allclose(model.criterion(size, size), getattr(fitted, kind), rtol=1e-6)


def test_the_extended_criterion_selects_linear_effects_and_no_noise():
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
def test_scaling_of_target_and_table_changes_nothing(factor):
    X, y = load_diabetes(return_X_y=True)
    search = Ranking(Correlation(), n_features_to_select=Information("bic"))
    assert search.fit(factor * X, factor * y).n_features_ == search.fit(X, y).n_features_


def test_the_curve_ends_where_columns_are_dependent():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 90))
    X[:, 1] = X[:, 0]
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    search = Forward(Correlation(), n_features_to_select=Information("bic")).fit(X, y)
    assert search.support_[0]
    assert len(search.trace_) <= 29
    labels = np.where(y > 0, "a", "b")  # separated completely
    assert (
        Ranking(FisherScore(), n_features_to_select=Information("bic")).fit(X, labels).n_features_
    )


@pytest.mark.parametrize("kind", ["aic", "bic", "srm"])
def test_dependent_columns_are_not_penalised_in_a_model_of_classes(kind):
    """Constants, duplicates and sums cause no warning of the solver and have no parameter."""
    X, y = load_iris(return_X_y=True)
    wide = np.c_[X[:, 2], np.ones(150), X[:, 2] * 2 + 1, X[:, 3], X[:, 2] - X[:, 3]]
    scaled = (wide - wide.mean(0)) / np.where(wide.std(0), wide.std(0), 1)
    held = _model(kind, scaled, y, np.arange(5), "classification")
    alone = _model(kind, scaled, y, np.array([0, 3]), "classification")
    found = [held.criterion(size, size) for size in range(6)]
    one, two = alone.criterion(1, 1), alone.criterion(2, 2)
    assert_allclose(found, [found[0], one, one, one, two, two], rtol=1e-6)


def test_a_backward_path_is_read_from_its_end():
    X, y = load_diabetes(return_X_y=True)
    down = Backward(CrossValidated(Ridge()), n_features_to_select=Information("bic")).fit(X, y)
    chain = [step.subset for step in down.trace_ if len(step.subset)]
    context = Context(None, X, y)
    sizes = [len(subset) for subset in chain]
    found = []
    for subset in chain:
        model = _model("bic", X - X.mean(axis=0), y, subset, "regression")
        found.append(model.criterion(len(subset), len(subset)))
    assert down.n_features_ == sizes[int(np.argmin(found))]
    assert Information("bic").pick(down.trace_, context).step == down.choice_.step


def test_information_refuses_an_unknown_kind_or_an_unsuitable_target():
    with pytest.raises(InvalidTarget, match="real numbers"):
        Ranking(Correlation(), n_features_to_select=Information("srm")).fit(
            *load_diabetes(return_X_y=True)
        )
    with pytest.raises(InvalidParameter, match="kind"):
        Ranking(Correlation(), n_features_to_select=Information("dic")).fit(*table())


@pytest.mark.parametrize(
    "choice", [2, 0.5, "best", Threshold(0.0), Knee(), Information("aic"), Patience()], ids=str
)
def test_every_choice_has_a_reason(choice):
    search = Forward(Scatter(), n_features_to_select=choice).fit(*table())
    assert search.choice_.reason.endswith(".")
    assert str(search.n_features_) in search.choice_.reason
    assert search.choice_.step == search.record_.chosen


def test_mutual_information_has_a_knee_in_a_ranking():
    X, y = load_iris(return_X_y=True)
    search = Ranking(MutualInformation(), n_features_to_select=Knee()).fit(X, y)
    assert 1 <= search.n_features_ < 4


GROUPS = {"g": [0, 1], "h": [2, 5, 6]}


@pytest.mark.parametrize("fixed", [None, [3], [3, 0]], ids=str)
@pytest.mark.parametrize("groups", [None, GROUPS], ids=["columns", "groups"])
@pytest.mark.parametrize("kind", ["aic", "bic", "ebic"])
def test_information_of_units_agrees_with_models_of_their_columns(kind, groups, fixed):
    X, y = unit_table()
    for search in (Ranking(Correlation()), Backward(CrossValidated(LinearRegression()))):
        search.set_params(
            n_features_to_select=Information(kind), feature_groups=groups, fixed_features=fixed
        )
        search.fit(X, y)
        held = search.units_.columns(search.units_.fixed_units)
        values = []
        for step in search.trace_:
            columns = search.units_.columns(step.subset)
            model = LinearRegression().fit(X[:, columns], y)
            rss = float(((y - model.predict(X[:, columns])) ** 2).sum())
            log_likelihood = -len(y) / 2 * (np.log(2 * np.pi * rss / len(y)) + 1)
            charge = {"aic": 2, "bic": np.log(len(y)), "ebic": np.log(len(y))}[kind]
            values.append(-2 * log_likelihood + charge * (len(columns) + 1))
            if kind == "ebic":
                n_fixed = len(search.units_.fixed)
                found, among = len(step.subset) - n_fixed, search.units_.n_units - n_fixed
                values[-1] += 2 * np.log(comb(among, found))
        assert search.choice_.step == int(np.argmin(values))
        assert search.support_[held].all()
        assert f"{min(values):.4g} against" in search.choice_.reason


@pytest.mark.parametrize("fixed", [[3], [3, 0]], ids=str)
@pytest.mark.parametrize("groups", [None, GROUPS], ids=["columns", "groups"])
def test_the_knee_ignores_fixed_columns(groups, fixed):
    X, y = unit_table()
    params = {"n_features_to_select": Knee(), "feature_groups": groups}
    free = Ranking(Correlation(), **params).fit(X, y)
    search = Ranking(Correlation(), **params, fixed_features=fixed).fit(X, y)
    assert search.support_[[1, *fixed]].all()
    # the knee of two decreasing gains is after the first one
    assert search.support_[4] == (groups is None or 0 in fixed)
    assert "This does not apply to the fixed features." in search.choice_.reason
    assert "fixed" not in free.choice_.reason


def test_the_knee_of_a_backward_path_counts_the_remaining_columns():
    X, y = unit_table()
    for search in (Backward, Forward):
        found = search(CrossValidated(LinearRegression()), n_features_to_select=Knee()).fit(X, y)
        assert found.get_support(indices=True).tolist() == [1, 4]
    everything = Ranking(Correlation(), n_features_to_select=Knee(), fixed_features=range(7))
    assert everything.fit(X, y).support_.all()
    assert everything.set_params(n_features_to_select=Threshold(0.1)).fit(X, y).support_.all()
    assert everything.set_params(n_features_to_select=Information()).fit(X, y).support_.all()
    with pytest.raises(InvalidTable, match="6 rows are too few for the 7 columns"):
        everything.fit(X[:6], y[:6])


def test_information_refuses_data_that_no_linear_model_accepts():
    X, y = unit_table()
    search = Ranking(MutualInformation(), n_features_to_select=Information("bic"))
    gaps = np.where(X > 2, np.nan, X)
    with pytest.raises(InvalidTable, match=r"Information fits .* a number in every entry"):
        search.fit(gaps, y)
    with pytest.raises(InvalidTable, match=r"Information fits .* not sparse"):
        search.fit(csc_array(np.where(X > 0, X, 0)), y)
    with pytest.raises(InvalidTable, match=r"Information fits .* one target"):
        search.fit(X, np.c_[y, X[:, 0]])


def test_reasons_count_units_if_columns_are_grouped():
    X, y = unit_table()
    for choice in (2, 0.5, Threshold(0.2), Knee(), Information("bic"), Patience(1)):
        search = Forward(CrossValidated(LinearRegression()), n_features_to_select=choice)
        search.set_params(feature_groups=GROUPS).fit(X, y)
        assert " units" in search.choice_.reason
        assert " column" not in search.choice_.reason.replace("without columns", "").replace(
            "their columns", ""
        )


def test_a_choice_without_a_reason_is_refused():
    class Last(Choice):
        def pick(self, trace, context=None):
            return len(trace) - 1

    with pytest.raises(InvalidStep, match=r"return Chosen\(step"):
        Ranking(Correlation(), n_features_to_select=Last()).fit(*unit_table())


def unit_table():
    """Return a table with two relevant columns, one of them in a group."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 7))
    return X, 2 * X[:, 1] + X[:, 4] + 0.5 * rng.normal(size=80)
