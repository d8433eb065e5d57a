"""The path of support vector regression compared with SVR, and exact errors with dense grids."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold
from sklearn.preprocessing import scale
from sklearn.svm import SVR
from sklearn.utils.estimator_checks import check_estimator

from tamis.exceptions import InvalidParameter, PathTooLarge
from tamis.svm import SVRPath, SVRPathCV

from .problems import published, single

GRID = 2 ** np.linspace(-9, 8, 1_702)[1:-1]


def regression(n=90, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(16 * rng.normal(size=(n, d))) / 16
    y = np.round(64 * (np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=n))) / 64
    return X, y


@pytest.mark.parametrize("epsilon", [0.0, 0.125, 0.5])
def test_predictions_agree_with_svr(epsilon):
    X, y = regression()
    K = single(rbf_kernel(X, gamma=0.25))
    path = SVRPath("precomputed", epsilon=epsilon).fit(K[:60, :60], y[:60])
    for C in 2 ** np.random.default_rng(0).uniform(-9, 6, 25):
        svr = SVR(C=C, kernel="precomputed", epsilon=epsilon, tol=1e-10).fit(K[:60, :60], y[:60])
        if (np.abs(svr.dual_coef_) < C).any():  # otherwise the intercept is not unique
            np.testing.assert_allclose(
                path.predict(K[60:, :60], C), svr.predict(K[60:, :60]), atol=1e-7
            )
    assert path.violation_ <= 1e-8


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_optimality_conditions_hold_anywhere(kernel):
    X, y = regression(seed=1)
    path = SVRPath(kernel, gamma=0.3, degree=2, coef0=1.0, epsilon=0.1).fit(X, y)
    for C in 2 ** np.random.default_rng(1).uniform(-9, 8, 25):
        beta = path.dual_coef(C)
        e = y - path.predict(X, C)
        assert abs(beta.sum()) <= 1e-9 * C * len(y)
        assert np.abs(beta).max() <= C * (1 + 1e-12)
        assert np.abs(e[beta == 0]).max(initial=0) <= 0.1 + 1e-7
        bound = np.abs(beta) >= C * (1 - 1e-12)
        assert (np.sign(beta) * e)[bound].min(initial=1) >= 0.1 - 1e-7
        free = (np.abs(beta) > 1e-9 * C) & ~bound
        np.testing.assert_allclose((np.sign(beta) * e)[free], 0.1, atol=1e-7)


@pytest.mark.parametrize("scoring", ["mse", "mae"])
def test_errors_are_exact_and_their_minimum_is_below_any_grid(scoring):
    X, y = regression(seed=2)
    path = SVRPath("rbf", gamma=0.3).fit(X[:60], y[:60])
    curve = path.curve(X[60:], y[60:], scoring)
    e = np.array([path.predict(X[60:], C) - y[60:] for C in GRID])
    brute = (e**2).mean(axis=1) if scoring == "mse" else np.abs(e).mean(axis=1)
    np.testing.assert_allclose(curve(GRID), brute, atol=1e-10)
    assert curve.best <= brute.min() + 1e-12
    assert curve.best > brute.min() - 1e-4
    (best,) = curve.argmin
    assert curve(best.low) == pytest.approx(curve.best)


@pytest.mark.parametrize("pool", ["folds", "samples"])
def test_the_curve_over_folds_agrees_with_the_paths_of_the_folds(pool):
    X, y = regression(n=50, seed=3)
    cv = list(KFold(4).split(X))
    search = SVRPathCV("rbf", gamma=0.3, cv=cv, pool=pool).fit(X, y)
    paths = [SVRPath("rbf", gamma=0.3).fit(X[a], y[a]) for a, _ in cv]
    grid = GRID[::20]
    errors = np.array(
        [
            [((p.predict(X[b], C) - y[b]) ** 2).mean() for C in grid]
            for p, (_, b) in zip(paths, cv, strict=True)
        ]
    )
    weights = None if pool == "folds" else [len(b) for _, b in cv]
    brute = np.average(errors, axis=0, weights=weights)
    np.testing.assert_allclose(search.curve_(grid), brute, atol=1e-10)
    assert -search.best_score_ <= brute.min() + 1e-12
    assert search.certificate_.closed
    assert search.certificate_.lower <= -search.best_score_ <= search.certificate_.upper
    assert isinstance(search.best_estimator_, SVR)


def test_weights_multiply_the_bounds():
    X, y = regression(n=50)
    weight = np.random.default_rng(0).integers(0, 4, 50).astype(float)
    path = SVRPath("linear").fit(X, y, weight)
    svr = SVR(C=0.2, kernel="linear", tol=1e-10).fit(X, y, weight)
    np.testing.assert_allclose(path.predict(X, 0.2), svr.predict(X), atol=1e-7)


def test_the_best_gamma_of_a_list_is_used():
    X, y = regression(n=60)
    search = SVRPathCV("rbf", gamma=[0.001, 0.3], cv=3).fit(X, y)
    alone = [SVRPathCV("rbf", gamma=g, cv=3).fit(X, y).best_score_ for g in (0.001, 0.3)]
    assert search.best_score_ == max(alone)
    assert search.best_gamma_ == [0.001, 0.3][int(np.argmax(alone))]


@pytest.mark.parametrize("name", ["pyrim", "auto_mpg", "boston"])
def test_the_best_C_of_published_data_beats_a_grid(name):
    X, y = published(name)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = scale(X[order][:, X.std(axis=0) > 0]), scale(y[order])
    n = 2 * len(y) // 3
    for kernel in ("linear", "rbf"):
        path = SVRPath(kernel).fit(X[:n], y[:n])
        curve = path.curve(X[n:], y[n:])
        brute = min(((path.predict(X[n:], C) - y[n:]) ** 2).mean() for C in GRID[::4])
        assert curve.best <= brute * (1 + 1e-8)
        assert curve.best >= brute * (1 - 5e-3)


def test_a_constant_target_gives_a_constant():
    path = SVRPath().fit([[0.0], [1.0], [2.0]], [3.0, 3.0, 3.0])
    np.testing.assert_allclose(path.predict([[5.0]], 2.0), [3.0])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"epsilon": -1.0}, "epsilon to be a number of at least 0"),
        ({"kernel": "cosine"}, "kernel to be 'linear'"),
        ({"lambda_range": (2, 1)}, "a pair of increasing numbers"),
    ],
)
def test_bad_parameters_are_refused(options, sentence):
    X, y = regression(n=10)
    with pytest.raises(InvalidParameter, match=sentence):
        SVRPath(**options).fit(X, y)


def test_bad_requests_are_refused():
    X, y = regression(n=10)
    with pytest.raises(InvalidParameter, match="mse"):
        SVRPathCV(scoring="max_error").fit(X, y)
    with pytest.raises(InvalidParameter, match="pool"):
        SVRPathCV(pool="all").fit(X, y)
    with pytest.raises(InvalidParameter, match="at least 2 samples"):
        SVRPath().fit([[1.0]], [1.0])
    with pytest.raises(InvalidParameter, match="weights that are not negative"):
        SVRPath().fit(X, y, -np.ones(10))
    with pytest.raises(PathTooLarge, match="GridC"):
        SVRPath().fit(np.zeros((7000, 1)), np.zeros(7000))


def test_scikit_learn_conventions():
    # gamma="scale" does not use weights, as in SVR
    check_estimator(SVRPath(gamma="auto"), on_skip=None)
    why = "LIBSVM stops at a tolerance, and folds are split by samples, not by weight"
    check_estimator(
        SVRPathCV(cv=2, C_range=(0.1, 10)),
        expected_failed_checks={"check_sample_weight_equivalence_on_dense_data": why},
        on_skip=None,
    )
