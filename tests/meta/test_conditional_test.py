"""The conditional test: its values, p-values, draws and messages."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.covariance import LedoitWolf, empirical_covariance, shrunk_covariance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from tamis.contract import Record
from tamis.contract.units import Grouping
from tamis.criteria import Correlation, CoxScore, FisherScore
from tamis.exceptions import DegenerateData, InvalidParameter, InvalidScore, InvalidTarget
from tamis.meta import ConditionalTest, HonestSize
from tamis.meta.conditional_test import (
    conditional_residuals,
    nearest_units,
    one_sided_tests,
)
from tamis.search import Forward, Ranking
from tamis.validation.resamples import folds_of

#: More draws than rows in a fold, so that each row takes the residuals of all others.
ALL = 1000
TOP = Ranking(Correlation(), n_features_to_select=4)


def decoyed(n=120, d=8, seed=0):
    """Return a table with two relevant columns (2, 5) and a decoy (3) of the first."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 3] = 0.85 * X[:, 2] + 0.5 * rng.normal(size=n)
    return X, X[:, 2] - X[:, 5] + rng.normal(size=n)


def drawn_by_hand(known, new, block):
    """Return the conditional mean and the residuals of a block of columns, from the covariance.

    The covariance is shrunk by the Ledoit-Wolf amount, or by 3 % of it if that is better.
    """
    rest = np.setdiff1d(np.arange(known.shape[1]), block)
    amount = LedoitWolf(assume_centered=True).fit(known).shrinkage_
    found = []
    for shrinkage in (amount, 0.03 * amount):
        C = shrunk_covariance(empirical_covariance(known, assume_centered=True), shrinkage)
        mean = new[:, rest] @ np.linalg.solve(C[np.ix_(rest, rest)], C[np.ix_(rest, block)])
        found.append((mean, new[:, block] - mean))
    return min(found, key=lambda one: (one[1] ** 2).sum())


def loops_by_hand(X, target, folds, selected, units, predict):
    """Return R of each unit for all rows, with loops over units, rows and donors.

    ``predict`` trains a model and predicts rows: (training rows, their target, rows) -> outputs.
    """
    values = np.zeros((len(units), len(X)))
    for (train, test), chosen in zip(folds, selected, strict=True):
        scaler = StandardScaler().fit(X[train])
        known, new = scaler.transform(X[train]), scaler.transform(X[test])
        columns = np.sort(np.concatenate([units[u] for u in chosen]))
        for u in chosen:
            block = np.array(units[u])
            mean, residual = drawn_by_hand(known, new, block)
            rest = np.setdiff1d(columns, block)
            h = predict(known[:, rest], train, new[:, rest])
            f = predict(known[:, columns], train, new[:, columns])
            drawn = np.zeros_like(f)
            for shift in range(1, len(test)):
                altered = new.copy()
                altered[:, block] = mean + np.roll(residual, shift, axis=0)
                drawn += predict(known[:, columns], train, altered[:, columns])
            change = f - drawn / (len(test) - 1)
            values[u, test] = ((target[test] - h) * change).sum(axis=1)
    return values


def by_hand(found, X, y, predict, target=None, task="regression", seed=0, groups=None):
    target = y[:, None] if target is None else target
    folds = folds_of(y, np.arange(len(y)), found.n_folds, seed, task, groups)
    units = [found.units_.columns(np.array([u])) for u in range(found.units_.n_units)]
    rounds = found.record_.trace.state["rounds"]
    selected = [rounds[str(k)][1] for k in range(found.n_folds)]
    for k, (_, test) in enumerate(folds):
        assert_array_equal(test, rounds[str(k)][0])
    return loops_by_hand(X, target, folds, selected, units, predict)


def trained_on(model, target):
    def predict(known, train, rows):
        wanted = target[train] if target.shape[1] > 1 else target[train, 0]
        return model.fit(known, wanted).predict(rows).reshape(len(rows), -1)

    return predict


def p_by_hand(values):
    t = values.mean(axis=1) / (values.std(axis=1, ddof=1) / np.sqrt(values.shape[1]))
    return np.where(np.isnan(t), 1.0, stats.t.sf(t, values.shape[1] - 1))


@pytest.mark.parametrize("model", [None, Ridge(), SVR(C=2.0)], ids=["default", "ridge", "svm"])
def test_the_values_are_those_of_loops_over_rows_and_draws(model):
    X, y = decoyed()
    test = ConditionalTest(TOP, model, n_draws=ALL, sampler="linear", n_folds=3, random_state=0)
    found = test.fit(X, y)
    with np.errstate(invalid="ignore"):
        values = by_hand(found, X, y, trained_on(model or Ridge(), y[:, None]))
        assert_allclose(found.effects_, values.mean(axis=1), atol=1e-10)
        assert_allclose(found.p_values_, p_by_hand(values), rtol=1e-6)
    assert_array_equal(found.get_support(indices=True), [2, 5])


def test_three_classes_sum_over_their_indicators():
    X, y = decoyed()
    labels = np.digitize(y, [-0.8, 0.8])
    found = ConditionalTest(TOP, n_draws=ALL, sampler="linear", random_state=0).fit(X, labels)
    target = np.eye(3)[labels]
    with np.errstate(invalid="ignore"):
        values = by_hand(
            found, X, labels, trained_on(Ridge(), target), target, task="classification"
        )
        assert_allclose(found.p_values_, p_by_hand(values), rtol=1e-6)


def test_a_classifier_is_compared_by_its_probabilities():
    X, y = decoyed()
    labels = np.where(y > 0, "yes", "no")
    test = ConditionalTest(TOP, LogisticRegression(), n_draws=ALL, sampler="linear", random_state=0)
    found = test.fit(X, labels)

    def predict(known, train, rows):
        return LogisticRegression().fit(known, labels[train]).predict_proba(rows)[:, 1:]

    target = (labels == "yes")[:, None].astype(float)
    with np.errstate(invalid="ignore"):
        values = by_hand(found, X, labels, predict, target, task="classification")
        assert_allclose(found.p_values_, p_by_hand(values), rtol=1e-6)


def test_a_group_of_columns_is_tested_as_one():
    X, y = decoyed()
    groups = {"pair": [2, 3], "other": [0, 6]}
    search = Ranking(FisherScore(), n_features_to_select=3, feature_groups=groups)
    labels = (y > 0).astype(int)
    test = ConditionalTest(search, n_draws=ALL, sampler="linear", random_state=0, neighbours=0)
    found = test.fit(X, labels)
    target = labels[:, None].astype(float)
    with np.errstate(invalid="ignore"):
        values = by_hand(
            found, X, labels, trained_on(Ridge(), target), target, task="classification"
        )
        assert_allclose(found.p_values_, p_by_hand(values), rtol=1e-6)
    assert len(found.p_values_) == 6
    assert found.support_[[2, 3]].all()  # together they are informative


def test_rows_of_a_group_are_in_one_fold_and_are_tested_together():
    X, y = decoyed()
    groups = np.repeat(np.arange(30), 4)[np.random.default_rng(0).permutation(120)]
    test = ConditionalTest(TOP, n_draws=ALL, sampler="linear", random_state=0)
    found = test.fit(X, y, groups=groups)
    predict = trained_on(Ridge(), y[:, None])
    values = by_hand(found, X, y, predict, groups=groups)
    sums = np.array([[line[groups == g].sum() for g in range(30)] for line in values])
    varies = values.any(axis=1)
    expected = stats.ttest_1samp(sums[varies], 0, axis=1, alternative="greater").pvalue
    assert_allclose(found.p_values_[varies], expected, rtol=1e-6)
    assert_allclose(found.effects_, values.mean(axis=1), atol=1e-10)
    for rows, _, _ in found.record_.trace.state["rounds"].values():
        inside = np.isin(np.arange(120), rows)
        assert not set(groups[inside]) & set(groups[~inside])


def test_q_values_correct_over_all_columns_not_over_the_selected_ones():
    X, y = decoyed()
    found = ConditionalTest(TOP, random_state=0).fit(X, y)
    p = found.p_values_
    assert (p[found.found_in_ == 0] == 1).all()
    order = np.argsort(p)
    q = np.minimum.accumulate((p[order] * len(p) / np.arange(1, len(p) + 1))[::-1])[::-1]
    assert_allclose(found.q_values_[order], np.minimum(q, 1))
    assert_array_equal(found.unit_support_, found.q_values_ <= found.fdr)


def test_residuals_agree_with_the_covariance_for_more_columns_than_rows():
    rng = np.random.default_rng(1)
    for n, d in ((60, 12), (25, 60)):
        known = StandardScaler().fit_transform(rng.normal(size=(n, d)) @ rng.normal(size=(d, d)))
        new = rng.normal(size=(7, d))
        blocks = [np.array([3]), np.array([0, 5]), np.array([11])]
        found = conditional_residuals(known, new, blocks, "linear")
        for block, residual in zip(blocks, found, strict=True):
            assert_allclose(residual, drawn_by_hand(known, new, block)[1], atol=1e-8)


def test_squares_are_used_only_where_they_predict_the_column_better():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 5))
    X[:, 1] = X[:, 0] ** 2 + 0.3 * rng.normal(size=300)
    Z = StandardScaler().fit_transform(X)
    blocks = [np.array([j]) for j in range(5)]
    plain = conditional_residuals(Z[:200], Z[200:], blocks, "linear")
    better = conditional_residuals(Z[:200], Z[200:], blocks, "auto")
    assert better[1].var() < 0.3 * plain[1].var()
    for a, b in zip(better, plain, strict=True):
        assert (a**2).sum() <= (b**2).sum()


def test_a_regressor_may_describe_a_column_given_the_others():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 4))
    X[:, 1] = np.sin(3 * X[:, 0]) + 0.2 * rng.normal(size=300)
    Z, blocks = StandardScaler().fit_transform(X), [np.array([1])]
    (plain,) = conditional_residuals(Z[:200], Z[200:], blocks, "auto")
    (better,) = conditional_residuals(Z[:200], Z[200:], blocks, SVR(C=10))
    assert better.var() < 0.6 * plain.var()
    rest = [0, 2, 3]
    predicted = SVR(C=10).fit(Z[:200, rest], Z[:200, 1]).predict(Z[200:, rest])
    assert_allclose(better[:, 0], Z[200:, 1] - predicted, atol=1e-10)


def test_the_nearest_units_are_the_most_correlated_ones():
    X, _ = decoyed()
    Z = StandardScaler().fit_transform(X)
    first = nearest_units(Z, [np.array([2])], Grouping(8), 1)[0]
    assert_array_equal(first, [3])
    grouping = Grouping(8, (("pair", (0, 3)),))
    assert_array_equal(nearest_units(Z, [np.array([2])], grouping, 1)[0], [0])  # the unit of 3


def test_a_column_without_variation_has_p_1():
    log_p, mean, error = one_sided_tests(np.zeros((2, 5)), None)
    assert_array_equal(np.exp(log_p), [1, 1])
    assert not mean.any()
    assert not error.any()


def test_a_decoy_is_not_found_and_its_relevant_column_is():
    X, y = decoyed(n=400)
    found = ConditionalTest(TOP, random_state=0).fit(X, y)
    assert found.q_values_[2] < 0.001
    assert found.p_values_[3] > 0.05
    assert "given all other columns" in found.choice_.reason


@pytest.mark.parametrize("unit", [1e100, 1e-100])
def test_the_p_values_do_not_depend_on_the_unit_of_the_target(unit):
    X, y = decoyed()
    found = ConditionalTest(TOP, random_state=0).fit(X, y)
    other = ConditionalTest(TOP, random_state=0).fit(X, y * unit)
    assert_allclose(other.p_values_, found.p_values_, rtol=1e-9)
    assert_allclose(other.effects_, found.effects_ * unit**2, rtol=1e-9)


def test_values_that_are_too_large_are_refused_without_other_warnings():
    X, y = decoyed()
    with pytest.raises(InvalidScore, match="target in other units"):
        ConditionalTest(TOP, random_state=0).fit(X, y * 1e200)


@pytest.mark.parametrize(
    "search",
    [
        Forward(Correlation(), n_features_to_select=3),
        HonestSize(Ranking(Correlation()), n_folds=3),
        Ranking(Correlation(), n_features_to_select=1),
    ],
    ids=lambda search: type(search).__name__,
)
def test_any_search_may_be_inside(search):
    X, y = decoyed(n=300)
    found = ConditionalTest(search, random_state=0).fit(X, y)
    assert found.support_.any()
    assert not found.support_[3]


def test_repeats_average_the_values_of_several_splits():
    X, y = decoyed()
    once = ConditionalTest(TOP, random_state=0).fit(X, y)
    twice = ConditionalTest(TOP, n_repeats=2, random_state=0).fit(X, y)
    assert twice.found_in_[2] == 10
    rounds = once.record_.trace.state["rounds"]
    assert rounds == {k: v for k, v in twice.record_.trace.state["rounds"].items() if k in rounds}
    assert twice.record_.trace.state["rounds"]["5"][0] != rounds["0"][0]


def test_the_result_does_not_depend_on_the_order_of_columns():
    X, y = decoyed()
    order = np.random.default_rng(0).permutation(8)
    a = ConditionalTest(TOP, SVR(), random_state=0).fit(X, y)
    b = ConditionalTest(TOP, SVR(), random_state=0).fit(X[:, order], y)
    assert_allclose(b.p_values_, a.p_values_[order], rtol=1e-6)


def test_the_record_keeps_the_tests():
    X, y = decoyed()
    found = ConditionalTest(TOP, random_state=0).fit(X, y)
    saved = Record.from_dict(found.record_.to_dict())
    again = ConditionalTest(TOP, random_state=0).resume(X, y, record=saved)
    assert_array_equal(again.q_values_, found.q_values_)


def test_few_rows_per_column_are_warned_about():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 20))
    with pytest.warns(DegenerateData, match="fewer than 3 per column"):
        ConditionalTest(TOP, random_state=0).fit(X, X[:, 0] + 0.1 * rng.normal(size=40))


def test_a_class_with_few_rows_is_warned_about():
    X, y = decoyed()
    labels = np.where(np.arange(120) < 6, "rare", np.where(y > 0, "yes", "no"))
    with pytest.warns(DegenerateData, match="class 'rare' has 6 rows, fewer than 10"):
        ConditionalTest(TOP, random_state=0).fit(X, labels)


def test_unsupported_tests_are_refused():
    X, y = decoyed()
    censored = np.array([(True, t) for t in np.abs(y)], dtype=[("event", bool), ("time", float)])
    cases = [
        (ConditionalTest(TOP, SVC()), (y > 0).astype(int), InvalidParameter, "predict_proba"),
        (ConditionalTest(TOP, n_folds=1), y, InvalidParameter, "n_folds"),
        (ConditionalTest(TOP, neighbours=-1), y, InvalidParameter, "neighbours"),
    ]
    for test, target, error, words in cases:
        with pytest.raises(error, match=words):
            test.fit(X, target)
    with pytest.raises(InvalidTarget, match="censored"):
        ConditionalTest(Ranking(CoxScore())).fit(X, censored)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        ConditionalTest(TOP).fit(X, np.c_[y, y])
    with pytest.raises(InvalidParameter, match="cannot use sample_weight"):
        ConditionalTest(TOP).fit(X, y, sample_weight=np.ones(120))
    with pytest.raises(InvalidParameter, match="one label for each of the 120 rows"):
        ConditionalTest(TOP).fit(X, y, groups=np.ones(7))


@pytest.mark.experiment
def test_the_level_holds_on_simulated_tables():
    from benchmarks.conditional_tests import SETTINGS, measure, tamis_test

    for name, most_any, least_power in (("linear", 1.0, 0.5), ("noise", 0.12, 0.0)):
        rows = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for index in range(200):
                table = SETTINGS[name].make(np.random.default_rng([7, index]))
                rows.append(measure(table, tamis_test(SETTINGS[name], table, index)))
        level, _, fdr, some, power = np.nanmean(rows, axis=0)
        assert level <= 0.08
        assert some <= most_any
        if name == "linear":
            assert fdr <= 0.1
            assert power >= least_power
