"""The grid search and the gradient descent, which are never better than the exact optimum."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from tamis.exceptions import InvalidParameter, InvalidTarget
from tamis.svm import GradientC, GridC, SVCPath, SVCPathCV
from tamis.svm.geometry import sphere_around
from tamis.svm.path.problems import PathFold
from tamis_book.objectives import RadiusMarginObjective, SmoothError, SpanObjective
from tests.svm.problems import classification

RANGE = (2.0**-4, 2.0**6)


def test_the_grid_search_agrees_with_scikit_learn():
    X, y = classification()
    grid = GridC("rbf", gamma=0.2, lambda_range=RANGE).fit(X, y)
    peer = GridSearchCV(SVC(gamma=0.2), {"C": list(grid.C_)}, cv=5).fit(X, y)
    np.testing.assert_allclose(grid.scores_, peer.cv_results_["mean_test_score"])
    assert grid.best_C_ == peer.best_params_["C"]
    assert grid.best_score_ == pytest.approx(peer.best_score_)
    assert len(grid.C_) == 11


@pytest.mark.parametrize("scoring", ["error", "roc_auc", "f1"])
def test_the_exact_optimum_is_never_worse_than_the_grid(scoring):
    X, y = classification(n=90, seed=6)
    options = {"gamma": 0.2, "lambda_range": RANGE, "scoring": scoring}
    exact = SVCPathCV(**options).fit(X, y)
    for other in (GridC(**options), GridC(step=0.5, refine=2, **options), GradientC(**options)):
        other.fit(X, y)
        # SVC has a tolerance of 1e-3, so its area may differ by one or two pairs
        assert other.best_score_ <= exact.best_score_ + 2e-3
        assert other.predict(X).shape == y.shape


@pytest.mark.parametrize("pool", ["folds", "samples"])
def test_the_grid_computed_from_paths_agrees_with_training(pool):
    X, y = classification()
    options = {"kernel": "linear", "lambda_range": RANGE, "pool": pool}
    trained, read = (GridC(solver=s, **options).fit(X, y) for s in ("libsvm", "path"))
    np.testing.assert_allclose(read.scores_, trained.scores_)
    assert read.best_C_ == trained.best_C_
    fine = GridC(solver="path", step=0.01, **options).fit(X, y)
    assert len(fine.C_) == 1001
    assert SVCPathCV(**options).fit(X, y).best_score_ >= fine.best_score_ >= read.best_score_


def test_refinement_tries_the_neighbours_of_the_best():
    X, y = classification(n=60)
    plain = GridC(lambda_range=RANGE, cv=3).fit(X, y)
    fine = GridC(lambda_range=RANGE, cv=3, refine=3).fit(X, y)
    assert fine.best_score_ >= plain.best_score_
    assert len(plain.C_) < len(fine.C_) <= len(plain.C_) + 6


def fold(seed=0):
    X, y = classification(seed=seed)
    path = SVCPath("rbf", gamma=0.2).fit(X[:80], y[:80])
    return path, PathFold(path._machines, X[80:], y[80:], None)


@pytest.mark.parametrize("lam", [0.03, 0.4, 3.0, 20.0])
def test_the_gradient_of_the_smoothed_error_is_right(lam):
    function = SmoothError([fold(0)[1], fold(1)[1]])
    t = np.array([np.log(lam)])
    value, slope = function.in_log_lambda(t)
    numeric = approx_fprime(t, lambda u: function.in_log_lambda(u)[0], 1e-7)
    np.testing.assert_allclose(slope, numeric, rtol=1e-3, atol=1e-7)
    assert 0 < value < 1


@pytest.mark.parametrize("lam", [0.03, 0.4, 3.0, 20.0])
def test_the_gradient_of_the_radius_margin_bound(lam):
    function = RadiusMarginObjective(fold()[0]._machines)
    t = np.array([np.log(lam)])
    numeric = approx_fprime(t, lambda u: function.in_log_lambda(u)[0], 1e-6)
    np.testing.assert_allclose(function.in_log_lambda(t)[1], numeric, rtol=1e-3)


def test_the_bound_is_the_product_of_radius_and_objective():
    X, y = classification()
    path = SVCPath("linear").fit(X, y)
    w = path.dual_coef(0.5) @ X
    slack = np.maximum(1 - np.where(y == 1, 1, -1) * path.decision_function(X, 0.5), 0).sum()
    function = RadiusMarginObjective(path._machines)
    expected = (function.radius2 + 2.0) * (w @ w + 2 * 0.5 * slack)
    assert function.value(2.0)[0] == pytest.approx(expected)


def test_the_smallest_enclosing_sphere_touches_the_corners():
    square = np.array([[0.0, 0], [0, 2], [2, 0], [2, 2], [1, 1.5]]) - 1
    assert sphere_around(square @ square.T).radius2 == pytest.approx(2)


def test_the_span_estimate_is_near_the_leave_one_out_error():
    X, y = classification(n=60, seed=2)
    path = SVCPath("rbf", gamma=0.2).fit(X, y)
    C = 2.0
    keep = lambda i: np.arange(60) != i  # noqa: E731
    left = [SVC(C=C, gamma=0.2).fit(X[keep(i)], y[keep(i)]).predict(X[[i]])[0] for i in range(60)]
    function = SpanObjective(path._machines, path.lambda_range)
    estimate = (function.falls(1 / C) > 0).mean()
    assert estimate == pytest.approx((np.array(left) != y).mean(), abs=0.05)


@pytest.mark.parametrize("objective", ["error", "radius-margin", "span"])
def test_descent_never_ends_above_its_start(objective):
    X, y = classification()
    search = GradientC("rbf", gamma=0.2, objective=objective, start=4.0).fit(X, y)
    stay = GradientC("rbf", gamma=0.2, objective=objective, start=4.0, lambda_range=RANGE)
    assert search.objective_value_ <= stay.fit(X, y).objective_value_ + 1e-3
    assert 2.0**-9 <= search.best_C_ <= 2.0**8
    assert search.n_evaluations_ >= 1


def test_bad_requests_are_refused():
    X, y = classification(n=40)
    with pytest.raises(InvalidParameter, match="step to be a number above 0"):
        GridC(step=0).fit(X, y)
    with pytest.raises(InvalidParameter, match="solver to be 'libsvm' or 'path', got 'smo'"):
        GridC(solver="smo").fit(X, y)
    with pytest.raises(InvalidParameter, match="objective to be 'error'"):
        GradientC(objective="hinge").fit(X, y)
    with pytest.raises(InvalidParameter, match="start to be a number above 0"):
        GradientC(start=-1.0).fit(X, y)
    with pytest.raises(InvalidTarget, match="two classes"):
        GradientC().fit(X, np.arange(40) % 3)


def test_scikit_learn_conventions():
    why = "LIBSVM stops at a tolerance, and folds are split by samples, not by weight"
    expected = {"check_sample_weight_equivalence_on_dense_data": why}
    for search in (GridC(cv=3, step=4.0), GradientC(cv=3)):
        check_estimator(search, expected_failed_checks=expected, on_skip=None)
