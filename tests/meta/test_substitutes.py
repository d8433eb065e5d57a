"""Substitutes of selected columns, compared with brute force over all swaps."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csc_array
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from tamis._linalg import column_correlations
from tamis.contract.units import Grouping
from tamis.criteria import (
    JMI,
    MRMR,
    ColumnSubset,
    Correlation,
    CoxScore,
    CrossValidated,
    FisherScore,
    Importances,
    Scatter,
    Variance,
)
from tamis.datasets import make_mixed
from tamis.exceptions import InvalidParameter, InvalidTable, InvalidTarget
from tamis.meta import Fusion, Probes
from tamis.meta.swaps import similarities
from tamis.search import Backward, Forward, Ranking, RecursiveElimination, Then
from tamis.table import TableSelector
from tamis.validation.resamples import folds_of

EVERY = {"min_correlation": 0.0, "n_candidates": 99, "random_state": 0}


def doubled(n=90, seed=0):
    """Return two relevant columns, a noisy copy of each, and two columns of noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    X[:, 2] = X[:, 0] + 0.1 * rng.normal(size=n)
    X[:, 3] = X[:, 1] + 0.9 * rng.normal(size=n)
    return X, X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n)


def scaled(train, test):
    return (train - train.mean(0)) / train.std(0), (test - train.mean(0)) / train.std(0)


def fold_losses(X, truth, y, n_folds=5, seed=0, weights=None):
    """Return the squared losses of a ridge regression, computed directly."""
    found = []
    for train, test in folds_of(y, np.arange(len(y)), n_folds, seed):
        known, asked = scaled(X[train], X[test])
        own = None if weights is None else weights[train]
        fitted = Ridge().fit(known, truth[train], sample_weight=own)
        answers = fitted.predict(asked).reshape(len(test), -1)
        found.append(((answers - truth[test].reshape(len(test), -1)) ** 2).sum(axis=1))
    return found


def expected(criterion, kept, X, truth, y):
    """Return correlation, change of the score, rise of the loss and its error for each swap."""
    base = fold_losses(X[:, kept], truth, y)
    fitted = criterion.fit((X - X.mean(0)) / X.std(0), y)
    found = {}
    for old in kept:
        for new in np.setdiff1d(np.arange(X.shape[1]), kept):
            swap = np.sort([*(j for j in kept if j != old), new])
            rises = [
                new_fold.mean() - fold.mean()
                for new_fold, fold in zip(fold_losses(X[:, swap], truth, y), base, strict=True)
            ]
            error = np.std(rises, ddof=1) * np.sqrt(1 / 5 + 1 / 4)
            change = fitted.value(swap) - fitted.value(np.array(kept))
            r = abs(np.corrcoef(X[:, old], X[:, new])[0, 1])
            found[int(old), int(new)] = (r, change, np.mean(rises), error)
    rows = np.concatenate(base)
    return found, rows.mean(), rows.std(ddof=1) / np.sqrt(len(rows))


@pytest.mark.parametrize("classes", [False, True])
def test_swaps_agree_with_a_direct_computation(classes):
    X, y = doubled()
    criterion, truth = Correlation(), y
    if classes:
        y = np.digitize(y, [-1, 1])
        criterion, truth = Scatter("J3"), np.eye(3)[y]
    search = Forward(criterion, n_features_to_select=2).fit(X, y)
    found = search.substitutes(X, y, **EVERY)
    want, loss, error = expected(criterion, search.columns, X, truth, y)
    assert len(found) == len(want) == 8
    assert_allclose(found.loss, loss)
    assert_allclose(found.max_loss, error)
    for swap in found:
        assert_allclose(swap[2:6], want[swap.column, swap.substitute], rtol=1e-6, atol=1e-12)
        assert swap.stands_in == (swap.loss_change <= found.max_loss)


def test_substitutes_are_within_the_stated_loss():
    X, y = doubled()
    search = Forward(CrossValidated(LinearRegression()), n_features_to_select=2).fit(X, y)
    assert search.columns == [1, 2]
    found = search.substitutes(X, y, random_state=0)
    assert [(swap.column, swap.substitute) for swap in found] == [(1, 3), (2, 0)]
    assert found.of(2) == [0]
    assert found.of(1) == []
    generous = search.substitutes(X, y, max_loss=10.0, random_state=0)
    assert generous.of(1) == [3]
    assert generous.max_loss == 10.0
    assert "for 1 of 2 selected columns" in repr(found)
    assert "use them only to compare" in repr(found)
    assert list(found.to_frame().columns) == list(found.swaps[0]._fields)


def test_the_number_of_candidates_is_limited_and_the_most_similar_come_first():
    X, y = doubled()
    search = Forward(Correlation(), n_features_to_select=1).fit(X, y)
    found = search.substitutes(X, y, min_correlation=0.0, n_candidates=2, random_state=0)
    assert len(found) == 2
    r = [swap.correlation for swap in found]
    assert r == sorted(r, reverse=True)


def test_any_estimator_can_be_used_and_results_are_reproducible():
    X, y = doubled()
    labels = np.where(y > 0, "high", "low")
    search = Forward(Scatter("J3"), n_features_to_select=2).fit(X, labels)
    near = search.substitutes(X, labels, estimator=KNeighborsClassifier(), random_state=3)
    assert near == search.substitutes(X, labels, estimator=KNeighborsClassifier(), random_state=3)
    assert near.loss != search.substitutes(X, labels, random_state=3).loss


@pytest.mark.parametrize(
    "selection",
    [
        RecursiveElimination(Importances(RidgeClassifier()), n_features_to_select=2),
        Then(Ranking(FisherScore(), n_features_to_select=4), Forward(Scatter("J3"))),
        Probes(Ranking(FisherScore()), expected_false=0.5, n_rounds=5, random_state=0),
        Fusion([Ranking(FisherScore()), Forward(JMI())], n_features_to_select=2, random_state=0),
    ],
    ids=lambda one: type(one).__name__,
)
def test_every_selection_has_substitutes(selection):
    X, y = doubled()
    labels = (y > 0).astype(int)
    found = selection.fit(X, labels).substitutes(X, labels, **EVERY)
    assert len(found) == selection.n_features_ * (6 - selection.n_features_)
    scored = not isinstance(selection, RecursiveElimination | Fusion)
    assert np.isfinite([swap.score_change for swap in found]).all() == scored
    assert np.isfinite([swap.loss_change for swap in found]).all()


def test_additions_are_scored_given_the_other_selected_columns():
    X, y = doubled()
    labels = (y > 0).astype(int)
    search = Forward(JMI(), n_features_to_select=3).fit(X, labels)
    criterion = JMI().fit((X - X.mean(0)) / X.std(0), labels)
    for swap in search.substitutes(X, labels, **EVERY):
        rest = np.array([j for j in search.columns if j != swap.column])
        pair = np.sort([swap.column, swap.substitute])
        gains = dict(zip(pair, criterion.gain(rest, pair), strict=True))
        assert_allclose(swap.score_change, gains[swap.substitute] - gains[swap.column], atol=1e-12)


def test_without_a_target_nothing_is_predicted():
    X, _ = doubled()
    search = Forward(ColumnSubset(), n_features_to_select=2).fit(X)
    found = search.substitutes(X, **EVERY)
    assert np.isnan(found.loss)
    assert {swap.stands_in for swap in found} == {None}
    assert np.isfinite([swap.score_change for swap in found]).all()
    times = np.array([(True, 1 + j) for j in range(len(X))], dtype=[("e", bool), ("t", float)])
    censored = Ranking(CoxScore(), n_features_to_select=2).fit(X, times)
    assert np.isnan(censored.substitutes(X, times, **EVERY).loss)


def test_groups_are_swapped_as_a_whole_and_fixed_columns_are_not_swapped():
    X, y = doubled()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    search = Backward(
        Correlation(task="regression"),
        n_features_to_select=2,
        feature_groups={"copies": ["c", "d"]},
        fixed_features=["b"],
    )
    search.fit(frame, y)
    assert search.columns == ["b", "c", "d"] or search.columns == ["a", "b"]
    found = search.substitutes(frame, y, **EVERY)
    assert {swap.column for swap in found} <= {"a", "copies"}
    assert found.n_kept == 1
    (pair,) = (s for s in found if {s.column, s.substitute} == {"a", "copies"})
    model = np.linalg.lstsq(np.c_[np.ones(len(X)), X[:, 2:4]], X[:, 0], rcond=None)[0]
    best = np.c_[np.ones(len(X)), X[:, 2:4]] @ model
    assert_allclose(pair.correlation, abs(np.corrcoef(best, X[:, 0])[0, 1]))


def test_correlations_ignore_missing_values():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 5)) < 0.2, np.nan, rng.normal(size=(50, 5)) + 3)
    want = pd.DataFrame(X).corr().abs().to_numpy()
    assert_allclose(column_correlations(X[:, :2], X), want[:2], rtol=1e-10)
    X[:, 4], X[2:, 3] = 7.0, np.nan
    assert np.isnan(column_correlations(X[:, :1], X)[0, 3:]).all()


def test_correlations_of_sparse_and_dense_tables_agree():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 7)) < 0.3, rng.normal(size=(60, 7)), 0.0)
    X[:, 6] = 2.0
    want = column_correlations(X[:, :3], X)
    assert_allclose(column_correlations(csc_array(X)[:, [0, 1, 2]], csc_array(X)), want, atol=1e-12)
    assert np.isnan(want[:, 6]).all()


def test_the_similarity_of_a_category_is_computed_from_its_levels():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 80).astype(float)
    number = np.array([5.0, -1.0, 5.5])[codes.astype(int)] + 0.1 * rng.normal(size=80)
    X = np.column_stack([codes, number, rng.normal(size=80)])
    found = similarities(X, np.array([1]), Grouping(3), np.array([True, False, False]))
    means = np.array([number[codes == level].mean() for level in range(3)])[codes.astype(int)]
    assert_allclose(found[0, 0], means.std() / number.std())  # the correlation ratio
    assert_allclose(found[0, 1], 1)


def test_columns_with_the_same_missing_rows_are_not_similar():
    rng = np.random.default_rng(0)
    values, missing = rng.normal(size=(200, 2)), (np.arange(200) % 10 == 0).astype(float)
    X = np.column_stack([values[:, 0], missing, values[:, 1], missing])
    found = similarities(X, np.array([0]), Grouping(4, (("a", (0, 1)), ("b", (2, 3)))), None)
    assert found[0, 1] < 0.3
    assert_allclose(found[0, 0], 1)


def test_sparse_and_dense_tables_give_the_same_result():
    X, y = doubled()
    X[np.abs(X) < 0.3] = 0
    dense = Ranking(Correlation(), n_features_to_select=2).fit(X, y).substitutes(X, y, **EVERY)
    table = csc_array(X)
    sparse = Ranking(Correlation(), n_features_to_select=2).fit(table, y)
    found = sparse.substitutes(table, y, **EVERY)
    for swap, same in zip(found, dense, strict=True):
        assert swap[:2] == same[:2]
        assert_allclose(swap[2:6], same[2:6], atol=1e-9)


@pytest.mark.parametrize("search", [Forward(JMI()), Forward(Scatter("J3", ridge=1e-3))], ids=str)
def test_mixed_frames_have_substitutes(search):
    table = make_mixed(200, random_state=0, like="incomes")
    frame = table.to_frame()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = TableSelector(search.set_params(n_features_to_select=3)).fit(frame, table.y)
    swaps = found.substitutes(frame, table.y, **EVERY)
    assert {swap.column for swap in swaps} == set(found.columns)
    left = set(frame.columns) - set(found.columns) - set(found.aside_)
    assert {swap.substitute for swap in swaps} == left
    assert all(np.isfinite(swap[2:6]).all() for swap in swaps)


def test_an_empty_selection_has_no_substitutes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), rng.normal(size=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        empty = Probes(Ranking(Correlation()), expected_false=0.05, random_state=0).fit(X, y)
    found = empty.substitutes(X, y, random_state=0)
    assert len(found) == 0
    assert repr(found) == "<Substitutes for 0 of 0 selected columns>"


def test_a_different_table_is_refused():
    X, y = doubled()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    search = Forward(Correlation(), n_features_to_select=2).fit(frame, y)
    with pytest.raises(InvalidTable, match="fitted to, with 6 columns; this one has 5"):
        search.substitutes(frame.drop(columns="f"), y)
    with pytest.raises(InvalidTable, match="same order"):
        search.substitutes(frame[list("bacdef")], y)
    assert search.columns == ["a", "c"]
    table = TableSelector(search).fit(frame, y)
    with pytest.raises(InvalidTable, match="same order"):
        table.substitutes(frame[list("bacdef")], y)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"max_loss": "small"}, "max_loss"),
        ({"min_correlation": 1.5}, r"min_correlation to be a number in \[0, 1\]"),
        ({"n_candidates": 0}, "n_candidates to be an int of at least 1"),
        ({"n_folds": 1}, "n_folds to be an int of at least 2"),
        ({"n_folds": 999}, "fewer folds"),
    ],
)
def test_invalid_parameters_are_refused(params, match):
    X, y = doubled()
    search = Ranking(Variance(), n_features_to_select=2).fit(X, y)
    with pytest.raises(InvalidParameter, match=match):
        search.substitutes(X, y, **params)


def test_swaps_can_be_computed_in_parallel():
    X, y = doubled()
    found = Forward(Scatter("J3"), n_features_to_select=2).fit(X, y > 0)
    one, two = (found.substitutes(X, y > 0, n_jobs=n_jobs, **EVERY) for n_jobs in (None, 2))
    assert len(one) > 2
    assert one.swaps == two.swaps


# ------------------------------------------------------------------------------------------ weights


@pytest.mark.parametrize("classes", [False, True])
def test_weighted_swaps_agree_with_a_direct_computation(classes):
    X, y = doubled()
    truth, weights = y, np.random.default_rng(1).uniform(0.2, 3, size=len(y))
    if classes:
        y = (y > 0).astype(int)
        truth = np.eye(2)[y]
    search = Ranking(Correlation(), n_features_to_select=2).fit(X, y)
    found = search.substitutes(X, y, sample_weight=weights, **EVERY)
    folds = [test for _, test in folds_of(y, np.arange(len(y)), 5, 0)]
    kept = fold_losses(X[:, search.columns], truth, y, weights=weights)
    mean = sum(w @ rows for w, rows in zip(map(weights.take, folds), kept, strict=True))
    assert_allclose(found.loss, mean / weights.sum())
    for swap in found:
        columns = np.sort([*(j for j in search.columns if j != swap.column), swap.substitute])
        others = fold_losses(X[:, columns], truth, y, weights=weights)
        rises = [
            np.average(new - old, weights=weights[test])
            for new, old, test in zip(others, kept, folds, strict=True)
        ]
        assert_allclose(swap.loss_change, np.mean(rises))
        assert_allclose(swap.standard_error, np.std(rises, ddof=1) * np.sqrt(1 / 5 + 1 / 4))
    plain = search.substitutes(X, y, **EVERY)
    equal = search.substitutes(X, y, sample_weight=np.ones(len(y)), **EVERY)
    assert_allclose(equal.max_loss, plain.max_loss)
    assert plain.swaps[0].loss_change != found.swaps[0].loss_change


def test_the_criterion_is_trained_with_the_weights():
    X, y = doubled()
    weights = np.where(np.arange(len(y)) % 2, 5.0, 1.0)
    criterion = CrossValidated(LinearRegression(), cv=3)
    search = Forward(criterion, n_features_to_select=2).fit(X, y, sample_weight=weights)
    found = search.substitutes(X, y, sample_weight=weights, **EVERY)
    fitted = criterion.fit((X - X.mean(0)) / X.std(0), y, sample_weight=weights)
    for swap in found:
        columns = np.sort([*(j for j in search.columns if j != swap.column), swap.substitute])
        change = fitted.value(columns) - fitted.value(np.array(search.columns))
        assert_allclose(swap.score_change, change, atol=1e-10)


def test_rows_with_weight_0_are_ignored():
    X, y = doubled()
    there = np.arange(len(y)) % 4 > 0
    piped = make_pipeline(StandardScaler(), Ridge())
    search = Forward(CrossValidated(piped, cv=3), n_features_to_select=2).fit(X[there], y[there])
    one = search.substitutes(X, y, sample_weight=1.0 * there, estimator=piped, **EVERY)
    two = search.substitutes(X[there], y[there], estimator=piped, **EVERY)
    assert_allclose([swap[2:6] for swap in one], [swap[2:6] for swap in two])


@pytest.mark.parametrize(
    "weights", [np.ones(5), -np.ones(90), np.zeros(90), np.full(90, np.nan), "heavy", [[1]] * 90]
)
def test_invalid_weights_are_refused(weights):
    X, y = doubled()
    search = Ranking(Correlation(), n_features_to_select=2).fit(X, y)
    with pytest.raises(InvalidParameter, match="sample_weight as 90 finite numbers"):
        search.substitutes(X, y, sample_weight=weights)


def test_an_estimator_without_weights_is_refused():
    X, y = doubled()
    search = Ranking(Correlation(), n_features_to_select=2).fit(X, y > 0)
    model = KNeighborsClassifier()
    with pytest.raises(InvalidParameter, match=r"KNeighborsClassifier\.fit does not take it"):
        search.substitutes(X, y > 0, sample_weight=np.ones(90), estimator=model)


@pytest.mark.parametrize(
    ("model", "error", "match"),
    [
        (KNeighborsClassifier(), InvalidTarget, "is a classifier"),
        ("ridge", InvalidParameter, "estimator that predicts"),
        (Ridge, InvalidParameter, "estimator that predicts"),
        (StandardScaler(), InvalidParameter, "estimator that predicts"),
    ],
    ids=str,
)
def test_a_model_that_cannot_predict_the_target_is_refused(model, error, match):
    X, y = doubled()
    search = Ranking(Correlation(), n_features_to_select=2).fit(X, y)
    with pytest.raises(error, match=f"substitutes .*{match}"):
        search.substitutes(X, y, estimator=model)


def test_a_regressor_with_a_single_output_works_for_classes():
    X, y = doubled()
    labels = np.digitize(y, [-1, 1])
    search = Ranking(FisherScore(), n_features_to_select=2).fit(X, labels)
    assert search.substitutes(X, labels, estimator=SVR(), **EVERY).loss < 0.6


def test_fixed_columns_have_no_substitutes_beside_categories():
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(60, 3)), rng.integers(0, 3, 60)]
    y = X[:, 0] > 0
    search = Forward(MRMR(categories=[3]), n_features_to_select=1, fixed_features=[0])
    assert not list(search.fit(X, y).substitutes(X, y))
