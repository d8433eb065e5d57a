"""Certificates of the path searches compared with GridSearchCV with the same arguments."""

import numpy as np
import pytest
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
from sklearn.svm import SVC, SVR

from tamis.exceptions import InvalidParameter, NotCertified
from tamis.svm import GridC, LSSVCPathCV, SVCPath, SVCPathCV, SVRPath, SVRPathCV
from tamis.svm.curves.steps import exact_weights

from .problems import classification
from .searches import explained, look, look_at_grid, trial

SEARCHES = [SVCPathCV, SVRPathCV, LSSVCPathCV]


def clouds(n=60, seed=11):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + rng.normal(size=n) > 0.8).astype(int), rng


@pytest.mark.parametrize("first", range(0, 24, 6))
def test_random_searches_agree_with_grid_search(first):
    found = [(seed, *look(seed)[1:]) for seed in range(first, first + 6)]
    assert [(seed, complaints) for seed, _, complaints in found] == [
        (seed, []) for seed, _, _ in found
    ]
    assert sum(ended == "closed" for _, ended, _ in found) >= 3


def test_a_wrong_score_is_detected():
    seed = next(s for s in range(50) if isinstance(trial(s).search, SVCPathCV))
    made, ended, complaints = look(seed)
    assert (ended, complaints) == ("closed", [])
    made.search.best_score_ -= 0.01
    C = made.search.best_C_
    wrong = look_at_grid(made, np.array([C]))
    assert len(wrong) == 1 or explained(made, C, made.search.best_gamma_)


def test_outputs_just_below_zero_are_negative():
    X = np.array([[-1.0], [1.0], [-2.0], [2.0], [-9e-11], [-8e-11], [-7e-11], [1.5]])
    y = np.array([0, 1, 0, 1, 0, 0, 0, 1])
    cv = [(np.arange(4), np.arange(4, 8))]
    search = SVCPathCV("linear", cv=cv, refit=False, C_range=(1, 100)).fit(X, y)
    assert search.best_score_ == 1.0
    assert search.certificate_.closed
    auc = SVCPathCV("linear", cv=cv, refit=False, C_range=(1, 100), scoring="roc_auc").fit(
        X, [0, 1, 0, 1, 1, 0, 1, 1]
    )
    # rows 4, 6 and 7 are positive: one of the three pairs with row 5 is in the wrong order
    assert auc.best_score_ == pytest.approx(2 / 3)
    assert auc.certificate_.closed


def test_outputs_that_are_zero_up_to_rounding_are_uncertain():
    rng = np.random.default_rng(0)
    A = np.round(rng.normal(size=(12, 2)), 3)
    X = np.vstack([A, -A, [[0.0, 0.0]] * 3])  # symmetric: 0 is on the boundary for every C
    y = np.r_[np.repeat([0, 1], 12), 0, 1, 0]
    cv = [(np.arange(24), np.arange(24, 27))]
    with pytest.warns(NotCertified):
        proof = SVCPathCV("linear", cv=cv, refit=False).fit(X + 1 / 3, y).certificate_
    assert proof.lower < proof.upper


def test_equal_rows_of_two_classes_are_tied():
    X, y = classification(n=40)
    X[30:35] = X[20:25]
    y[20:40] = np.arange(20) % 2
    cv = [(np.arange(20), np.arange(20, 40))]
    search = SVCPathCV("linear", cv=cv, scoring="roc_auc", refit=False).fit(X, y)
    grid = GridSearchCV(SVC(kernel="linear", tol=1e-9), {"C": [search.best_C_]}, cv=cv)
    grid.set_params(scoring="roc_auc").fit(X, y)
    assert search.best_score_ == pytest.approx(grid.best_score_)
    assert search.certificate_.closed


def test_gamma_does_not_depend_on_sample_weights():
    X, _, _ = clouds()
    X[:30] *= 0.05
    weight = np.where(np.arange(60) < 30, 100.0, 0.01)
    z, cv = X @ [1.0, 2.0, 3.0], KFold(3)
    search = SVRPathCV(cv=cv, C_range=(1, 100)).fit(X, z, sample_weight=weight)
    grid = GridSearchCV(SVR(tol=1e-9), {"C": [search.best_C_]}, cv=cv)
    grid.set_params(scoring="neg_mean_squared_error").fit(X, z, sample_weight=weight)
    assert search.best_score_ == pytest.approx(grid.best_score_, rel=1e-6)
    for path, machine, y in (
        (SVRPath(), SVR(tol=1e-9), z),
        (SVCPath(), SVC(tol=1e-9), (X[:, 0] > 0).astype(int)),
    ):
        fitted = machine.fit(X, y, sample_weight=weight)
        values = getattr(fitted, "decision_function", fitted.predict)(X)
        ours = path.fit(X, y, weight)
        own = getattr(ours, "decision_function", ours.predict)(X, 1.0)
        np.testing.assert_allclose(own, values, atol=2e-3)


def test_balanced_weights_are_computed_from_the_training_rows():
    X, y, rng = clouds()
    cv = list(GroupKFold(4).split(X, y, rng.integers(0, 6, 60)))
    search = SVCPathCV(class_weight="balanced", cv=cv, C_range=(0.3, 256)).fit(X, y)
    C = np.append(np.geomspace(0.3, 256, 20), search.best_C_)
    grid = GridSearchCV(SVC(class_weight="balanced", tol=1e-9), {"C": C}, cv=cv).fit(X, y)
    assert search.certificate_.closed
    assert search.best_score_ == pytest.approx(grid.cv_results_["mean_test_score"][-1])
    assert search.best_score_ >= grid.best_score_ - 1e-12
    for solver in ("libsvm", "path"):
        found = GridC(class_weight="balanced", cv=cv, C_range=(0.3, 256), solver=solver).fit(X, y)
        values = SVC(class_weight="balanced", tol=1e-9)
        peer = GridSearchCV(values, {"C": found.C_}, cv=cv).fit(X, y)
        np.testing.assert_allclose(found.scores_, peer.cv_results_["mean_test_score"])


def test_an_intercept_that_depends_on_rounding_is_uncertain():
    """With balanced weights and a small C, LIBSVM has one of three intercepts."""
    X, y, rng = clouds()
    cv = list(GroupKFold(4).split(X, y, rng.integers(0, 6, 60)))
    with pytest.warns(NotCertified, match="rounding decides the intercept: start C_range above"):
        search = SVCPathCV(class_weight="balanced", cv=cv, C_range=(0.002, 0.05)).fit(X, y)
    low, high = (
        curve(0.01) for curve in (search.certificate_.optimistic, search.certificate_.pessimistic)
    )
    grid = GridSearchCV(SVC(class_weight="balanced"), {"C": [0.01]}, cv=cv).fit(X, y)
    assert low <= 1 - grid.best_score_ <= high
    assert not np.isclose(search.curve_(0.01), 1 - grid.best_score_)


@pytest.mark.parametrize("scoring", [None, "balanced_accuracy", "f1", "roc_auc"])
def test_the_score_uses_the_sample_weights(scoring):
    X, y, rng = clouds()
    weight = rng.uniform(0.1, 3, 60)
    cv = StratifiedKFold(3)
    search = SVCPathCV(cv=cv, scoring=scoring, refit=False).fit(X, y, weight)
    C = search.cv_results_["param_C"].tolist()
    grid = GridSearchCV(SVC(tol=1e-9), {"C": C}, cv=cv, scoring=scoring)
    theirs = grid.fit(X, y, sample_weight=weight).cv_results_["mean_test_score"]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], theirs, atol=1e-9)
    assert search.certificate_.closed
    equal = SVCPathCV(cv=cv, scoring=scoring, refit=False, C_range=(0.5, 8)).fit(X, y, np.ones(60))
    plain = SVCPathCV(cv=cv, scoring=scoring, refit=False, C_range=(0.5, 8)).fit(X, y)
    assert equal.best_score_ == plain.best_score_


@pytest.mark.parametrize("scoring", ["neg_mean_squared_error", "neg_mean_absolute_error", "r2"])
def test_the_error_of_a_regression_uses_the_sample_weights(scoring):
    X, _, rng = clouds()
    z, weight, cv = X[:, 0] + 0.1 * rng.normal(size=60), rng.uniform(0.1, 3, 60), KFold(3)
    search = SVRPathCV(cv=cv, scoring=scoring, refit=False, C_range=(0.1, 10)).fit(X, z, weight)
    C = search.cv_results_["param_C"].tolist()
    grid = GridSearchCV(SVR(tol=1e-10), {"C": C}, cv=cv, scoring=scoring)
    theirs = grid.fit(X, z, sample_weight=weight).cv_results_["mean_test_score"]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], theirs, rtol=1e-5)


def test_pooled_scores_use_the_sample_weights():
    X, y, rng = clouds()
    weight, cv = rng.uniform(0.1, 3, 60), KFold(4)
    options = {"gamma": 0.3, "cv": cv, "pool": "samples", "refit": False, "C_range": (0.5, 8)}
    labels, numbers = np.empty(60), np.empty(60)
    found = SVCPathCV(**options).fit(X, y, weight)
    tubes = SVRPathCV(scoring="r2", **options).fit(X, X[:, 0], weight)
    for train, test in cv.split(X):
        machine = SVC(C=found.best_C_, gamma=0.3, tol=1e-9).fit(X[train], y[train], weight[train])
        labels[test] = machine.predict(X[test])
        tube = SVR(C=tubes.best_C_, gamma=0.3, tol=1e-9).fit(X[train], X[train, 0], weight[train])
        numbers[test] = tube.predict(X[test])
    assert found.best_score_ == pytest.approx(np.average(labels == y, weights=weight))
    expected = r2_score(X[:, 0], numbers, sample_weight=weight)
    assert tubes.best_score_ == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("search", SEARCHES)
def test_folds_may_be_masks(search):
    X, y, _ = clouds()
    rows = np.arange(60)
    by_rows = search(cv=[(rows[20:], rows[:20])], C_range=(0.5, 8)).fit(X, y)
    by_mask = search(cv=[(rows >= 20, rows < 20)], C_range=(0.5, 8)).fit(X, y)
    assert repr(by_mask.certificate_) == repr(by_rows.certificate_)
    assert by_mask.best_score_ == by_rows.best_score_


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize(
    ("cv", "match"),
    [
        (1, "needs cv as an int from 2 to the 60 rows"),
        ([], "needs at least one fold in cv"),
        ([(np.arange(60), [])], "fold 0 has no such test rows"),
        ([([], np.arange(60))], "fold 0 has no such training rows"),
        ([(np.arange(60), np.arange(61))], "needs folds of row numbers below 60"),
        ([(np.ones(60, bool), np.ones(59, bool))], "masks with 60 entries"),
        ([(np.arange(60), np.linspace(0, 1, 5))], "type float64"),
    ],
)
def test_folds_without_a_score_are_refused(search, cv, match):
    X, y, _ = clouds()
    with pytest.raises(InvalidParameter, match=match):
        search(cv=cv).fit(X, y)
    with pytest.raises(InvalidParameter, match="needs gamma to be a number above 0"):
        search(gamma=[]).fit(X, y)


@pytest.mark.parametrize("search", [SVCPathCV, SVRPathCV])
def test_a_test_fold_without_weight_is_refused(search):
    X, y, _ = clouds()
    rows = np.arange(60)
    with pytest.raises(InvalidParameter, match="training and test rows of positive weight"):
        search(cv=[(rows[20:], rows[:20])]).fit(X, y, (rows >= 20).astype(float))


def test_the_largest_lambda_is_at_the_end_of_the_best_interval():
    X, y, _ = clouds()
    found = {
        rule: SVCPathCV("linear", cv=4, refit=False, rule=rule).fit(X, y)
        for rule in ("first", "largest-lambda")
    }
    interval = found["first"].best_interval_
    assert found["largest-lambda"].best_interval_ == interval
    assert found["first"].best_C_ == interval.middle
    edge = found["largest-lambda"]
    assert interval.low <= edge.best_C_ <= interval.low * (1 + 1e-6) < interval.middle
    assert edge.certificate_.closed
    assert edge.best_score_ == found["first"].best_score_


def test_a_certificate_states_its_problem():
    X, y, _ = clouds()
    search = SVCPathCV(class_weight="balanced", cv=3, C_range=(0.5, 8), refit=False)
    assert search.fit(X, y, np.full(60, 2.0)).certificate_.problem == (
        "kernel='rbf', gamma='scale'; class weights balanced on each training fold; sample weights "
        "in training and score; 3 folds; error averaged over the folds"
    )
    numbers = SVRPathCV("linear", cv=3, pool="samples", C_range=(0.5, 8), refit=False).fit(
        X, X[:, 0]
    )
    assert numbers.certificate_.problem == (
        "kernel='linear', epsilon=0.1; no sample weights; 3 folds; mean squared error of all test "
        "rows together"
    )
    squares = LSSVCPathCV("poly", cv=3).fit(X, y).certificate_.problem
    assert squares.startswith("kernel='poly', gamma='scale', degree=3, coef0=0.0; no sample")


def test_sums_of_exact_weights_do_not_depend_on_their_order():
    given = np.random.default_rng(0).uniform(0, 1, 1000)
    up, down = (np.cumsum(exact_weights(given)[::way])[-1] for way in (1, -1))
    assert up == down
    assert up == pytest.approx(given.sum(), rel=1e-12)
    np.testing.assert_array_equal(exact_weights(np.ones(7)), np.ones(7))
    assert exact_weights(np.array([1e-320, 3e-320])).sum() > 0
