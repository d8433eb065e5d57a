"""Several targets and censored targets, compared with single targets and with formulas."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import KFold, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from tamis.criteria import (
    HSIC,
    Correlation,
    CoxScore,
    CrossValidated,
    FisherScore,
    Importances,
    MutualInformation,
    Scatter,
    Variance,
)
from tamis.exceptions import InvalidSpec, InvalidTable, InvalidTarget
from tamis.search import FalseDiscovery, Forward, Ranking, RecursiveElimination, Then
from tamis.spec import did_you_mean, parse, vocabulary, write

SUBSETS = [np.array([2]), np.array([0, 3]), np.arange(4)]


def tables(n=80):
    """Return columns, numeric targets and class targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    Y = np.column_stack([X[:, 0] + 0.3 * rng.normal(size=n), X[:, 2] ** 2])
    return X, Y, (np.column_stack([X[:, 0], X[:, 1], X[:, 0] + X[:, 3]]) > 0).astype(int)


# -- several targets -------------------------------------------------------------------------------

ONE_BY_ONE = [
    Correlation(), MutualInformation(), MutualInformation(categories=[1]), HSIC(),
    HSIC(gamma="median", unbiased=False), HSIC(target_kernel="linear"),
]  # fmt: skip


@pytest.mark.parametrize("criterion", ONE_BY_ONE, ids=str)
@pytest.mark.parametrize("labels", [False, True])
def test_scores_of_several_targets_are_averaged(criterion, labels):
    X, real, classes = tables()
    Y = classes if labels else real
    whole = criterion.fit(X, Y)
    assert whole.task_ == ("classification" if labels else "regression")
    found = np.array([whole.value(s) for s in SUBSETS])
    gains = whole.gain(SUBSETS[0], np.array([0, 1, 3]))
    parts, steps = [], []
    for y in Y.T:
        one = type(criterion)(**criterion.get_params()).fit(X, y)
        parts.append([one.value(s) for s in SUBSETS])
        steps.append(one.gain(SUBSETS[0], np.array([0, 1, 3])))
    assert_allclose(found, np.mean(parts, axis=0))
    assert_allclose(gains, np.mean(steps, axis=0), atol=1e-12)


@pytest.mark.parametrize("size", [40, 600])
def test_one_column_is_one_target(size):
    X, Y, _ = tables(size)
    with pytest.warns(UserWarning, match="column-vector"):
        single = Correlation().fit(X, Y[:, :1])
    assert_array_equal(single.scores_, Correlation().fit(X, Y[:, 0]).scores_)


def test_cross_validation_of_several_targets():
    X, real, classes = tables()
    cv = KFold(4)
    for model, Y in [
        (LinearRegression(), real), (KNeighborsClassifier(), classes),
        (MultiOutputClassifier(LogisticRegression()), classes),
    ]:  # fmt: skip
        criterion = CrossValidated(model, cv=cv).fit(X, Y)
        expected = [cross_val_score(model, X[:, s], Y, cv=cv).mean() for s in SUBSETS]
        assert_allclose(criterion.values(SUBSETS), expected)
        assert criterion.value(np.array([], dtype=int)) < max(expected)


def test_importances_are_summed_over_several_targets():
    X, real, classes = tables()
    found = Importances(Ridge()).fit(X, real).loss(np.arange(4))
    assert_allclose(found, (Ridge().fit(X, real).coef_ ** 2).sum(axis=0))
    forest = RandomForestClassifier(8, random_state=0)
    found = Importances(forest).fit(X, classes).loss(np.arange(4))
    assert_allclose(found, forest.fit(X, classes).feature_importances_)


def test_searches_accept_several_targets():
    X, real, classes = tables()
    kept = Forward(HSIC(), n_features_to_select=2).fit(X, real).get_support(indices=True)
    assert_array_equal(kept, [0, 2])
    frame = pd.DataFrame(classes, columns=list("abc"))
    assert Ranking(MutualInformation(), n_features_to_select=2).fit(X, frame).n_features_ == 2
    both = Then(Ranking(Correlation()), Ranking(MutualInformation()))
    assert both.fit(X, classes).n_features_ == 1


def test_criteria_for_one_target_refuse_several():
    X, real, classes = tables()
    for selection in (Scatter(), Ranking(FisherScore()), Forward(CrossValidated(SVC()))):
        with pytest.raises(InvalidTarget, match=r"takes one target.* 3 columns.*Correlation"):
            selection.fit(X, classes)
    real[4, 1] = np.nan
    with pytest.raises(InvalidTarget, match=r"missing \(NaN\) in 1 row\(s\): 4"):
        Correlation().fit(X, real)


# -- censored targets ------------------------------------------------------------------------------


def lives(n=70, seed=0, *, ties=True):
    """Return columns and censored times that depend on the second and third column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 2] = X[:, 2] > 0
    time = rng.exponential(np.exp(-X[:, 1] - X[:, 2]))
    end = rng.exponential(2.0, n)
    event = time < end
    time = np.minimum(time, end)
    if ties:
        time = np.ceil(4 * time)
    return X, np.array(list(zip(event, time, strict=True)), dtype=[("dead", bool), ("t", float)])


def partial_likelihood(beta, x, y):
    """Return Breslow's log partial likelihood, row by row."""
    total = 0.0
    for i in np.flatnonzero(y["dead"]):
        at_risk = y["t"] >= y["t"][i]
        total += beta * x[i] - np.log(np.exp(beta * x[at_risk]).sum())
    return total


@pytest.mark.parametrize("ties", [False, True])
def test_cox_score_agrees_with_slope_and_curvature_of_the_likelihood(ties):
    X, y = lives(ties=ties)
    found = CoxScore().fit(X, y).scores_
    h = 1e-3
    for j, x in enumerate(X.T):
        low, middle, high = (partial_likelihood(b, x, y) for b in (-h, 0, h))
        slope, curvature = (high - low) / (2 * h), (2 * middle - low - high) / h**2
        assert_allclose(found[j], -chi2.logsf(slope**2 / curvature, 1), rtol=1e-4)


def test_cox_score_of_two_values_is_the_log_rank_test():
    compare = pytest.importorskip("sksurv.compare")
    X, y = lives(ties=False)
    statistic, _ = compare.compare_survival(y, X[:, 2])
    assert_allclose(CoxScore().fit(X, y).scores_[2], -chi2.logsf(statistic, 1))


def test_two_columns_are_time_and_event():
    X, y = lives()
    columns = np.column_stack([y["t"], y["dead"]])
    for given in (columns, pd.DataFrame(columns, columns=["days", "died"])):
        assert_array_equal(CoxScore().fit(X, given).scores_, CoxScore().fit(X, y).scores_)
    search = Ranking(CoxScore(), n_features_to_select=2).fit(X, columns)
    assert_array_equal(search.get_support(indices=True), [1, 2])
    kept = Ranking(CoxScore(), n_features_to_select=FalseDiscovery(0.1)).fit(X, y)
    assert kept.support_[1]
    again = Ranking(CoxScore(), n_features_to_select=2).resume(X, columns, record=search.record_)
    assert_array_equal(again.order_, search.order_)


def test_cox_score_of_extreme_and_constant_columns():
    X, y = lives(400)
    X[:, 0] = 1e8 + 0.1
    X[:, 3] = -y["t"]
    with np.errstate(over="raise"):
        scores = CoxScore().fit(X, y).scores_
    assert scores[0] == 0
    assert np.isfinite(scores).all()
    assert scores.argmax() == 3
    assert_allclose(CoxScore().fit(X * 2.0**600, y).scores_[1:], scores[1:])


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (np.zeros(70), r"a time and an event.*column_stack"),
        (np.column_stack([np.ones(70), np.arange(70)]), "first is the time and the second"),
        (np.column_stack([np.ones(70), np.zeros(70)]), "all 70 are censored"),
        (np.zeros(70, dtype=[("a", bool), ("b", float), ("c", float)]), "two fields"),
        (np.array([(True, np.nan)] * 70, dtype=[("a", bool), ("b", float)]), "missing or infinite"),
        (None, "requires y"),
    ],
)
def test_invalid_censored_targets_are_refused(target, said):
    for selection in (CoxScore(), Ranking(CoxScore())):
        with pytest.raises(ValueError, match=said):
            selection.fit(lives()[0], target)


def test_criteria_for_classes_refuse_a_censored_target():
    X, y = lives()
    for criterion in (FisherScore(), CrossValidated(SVC()), MutualInformation()):
        with pytest.raises(InvalidTarget, match=r"censored target.*CoxScore.*scikit-survival"):
            Ranking(criterion).fit(X, y)


def test_cross_validation_uses_the_concordance_index():
    linear = pytest.importorskip("sksurv.linear_model")
    X, y = lives()
    columns = np.column_stack([y["t"], y["dead"]])
    for model in (
        linear.CoxPHSurvivalAnalysis(alpha=0.1),
        make_pipeline(StandardScaler(), linear.CoxPHSurvivalAnalysis(alpha=0.1)),
    ):
        criterion = CrossValidated(model, cv=3).fit(X, y)
        expected = cross_val_score(model, X[:, :3], y, cv=3).mean()
        assert_allclose(criterion.value(np.arange(3)), expected)
        assert criterion.value(np.array([], dtype=int)) == 0.5
        search = Forward(CrossValidated(model, cv=3), n_features_to_select=2).fit(X, columns)
        assert search.support_[1]
    losses = Importances(linear.CoxPHSurvivalAnalysis(alpha=0.1)).fit(X, y).loss(np.arange(5))
    assert_allclose(losses, linear.CoxPHSurvivalAnalysis(alpha=0.1).fit(X, y).coef_ ** 2)
    path = RecursiveElimination(Importances(linear.CoxPHSurvivalAnalysis(alpha=0.1)))
    assert path.fit(X, y).support_[1]


# -- the variance ----------------------------------------------------------------------------------


def test_variance_is_computed_on_the_original_scale():
    X = np.random.default_rng(0).normal(size=(30, 4)) * [1, 5, 2, 3]
    assert_allclose(Variance().fit(X).scores_, X.var(axis=0))
    order = Ranking(Variance(), n_features_to_select=2).fit(X).order_
    assert_array_equal(order[:2], [1, 3])
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    X[:, 2] = np.nan
    expected = np.nan_to_num(np.nanvar(X[:, [0, 1, 3]], axis=0))
    assert_allclose(Variance().fit(X).scores_[[0, 1, 3]], expected)
    assert Variance().fit(X).scores_[2] == 0
    assert Ranking(Variance()).fit(X[:, :2], lives(30)[1]).n_features_ == 1
    with pytest.raises(InvalidTable, match="too large"):
        Variance().fit(np.full((3, 1), 1e300) * [[1], [2], [3]])


# -- expressions -----------------------------------------------------------------------------------


def test_expressions_may_contain_survival_models(monkeypatch):
    if vocabulary.find("CoxPHSurvivalAnalysis") is not None:
        text = "Forward(CrossValidated(CoxPHSurvivalAnalysis(alpha=0.1)))"
        assert write(parse(text)) == text
        assert "RandomSurvivalForest" in did_you_mean("RandomSurvivlForest", vocabulary.all_names())
    assert write(parse("Ranking(CoxScore())")) == "Ranking(CoxScore())"
    monkeypatch.setattr(vocabulary, "find_spec", lambda name: None)
    vocabulary._guest.cache_clear()
    with pytest.raises(InvalidSpec, match="needs scikit-survival, which is not installed"):
        parse("CoxPHSurvivalAnalysis()")
    assert "Survival" not in did_you_mean("RandomSurvivlForest", vocabulary.all_names())
    vocabulary._guest.cache_clear()
