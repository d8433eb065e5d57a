"""The path compared with SVC at high accuracy, and its optimality conditions."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from tamis.exceptions import InvalidParameter, InvalidTarget, NotCertified, PathTooLarge
from tamis.svm import SVCPath

from .problems import classification, degenerate, single

LOW, HIGH = 2.0**-9, 2.0**8


def kernels():
    X, y = classification()
    yield "linear", X @ X.T, y
    yield "rbf", single(rbf_kernel(X, gamma=1 / 6)), y
    Z = np.clip(np.round(2 * X), -3, 3)
    yield "poly", (Z @ Z.T / 4 + 1) ** 2, y


@pytest.mark.parametrize(("name", "K", "y"), list(kernels()), ids=["linear", "rbf", "poly"])
def test_decision_values_agree_with_svc(name, K, y):
    train, test = np.arange(80), np.arange(80, 120)
    path = SVCPath("precomputed").fit(K[np.ix_(train, train)], y[train])
    rng = np.random.default_rng(0)
    # LIBSVM does not converge for larger C on a linear kernel
    for C in 2 ** rng.uniform(-9, 8 if name == "rbf" else 3, 100):
        svc = SVC(C=C, kernel="precomputed", tol=1e-10).fit(K[np.ix_(train, train)], y[train])
        expected = svc.decision_function(K[np.ix_(test, train)])
        if len(svc.support_) and (np.abs(svc.dual_coef_) < C).any():
            np.testing.assert_allclose(
                path.decision_function(K[np.ix_(test, train)], C), expected, atol=1e-7
            )


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_optimality_conditions_hold_anywhere(kernel):
    X, y = classification(seed=1, weights=[0.8])
    path = SVCPath(kernel, gamma=0.2, degree=2, coef0=1.0).fit(X, y)
    s = np.where(y == 1, 1.0, -1.0)
    for C in 2 ** np.random.default_rng(1).uniform(-9, 8, 25):
        alpha = s * path.dual_coef(C)
        slack = 1 - s * path.decision_function(X, C)
        assert abs(s @ alpha) <= 1e-9 * C * len(y)
        assert alpha.min() >= 0
        assert alpha.max() <= C * (1 + 1e-12)
        assert slack[alpha <= 0].max(initial=0) <= 1e-8
        assert slack[alpha >= C].min(initial=0) >= -1e-8
        free = (alpha > 1e-9 * C) & (alpha < C * (1 - 1e-9))
        assert np.abs(slack[free]).max(initial=0) <= 1e-8
    assert path.violation_ <= 1e-8


def test_decision_values_follow_from_the_dual_coefficients():
    X, y = classification()
    path = SVCPath("linear").fit(X, y)
    w = path.dual_coef(0.3) @ X
    np.testing.assert_allclose(X @ w + path.intercept(0.3), path.decision_function(X, 0.3))
    path = SVCPath("rbf", gamma=0.1).fit(X, y)
    K = rbf_kernel(X, gamma=0.1)
    np.testing.assert_allclose(
        K @ path.dual_coef(5.0) + path.intercept(5.0), path.decision_function(X, 5.0)
    )


def test_the_intercept_is_in_the_middle_if_no_sample_is_on_the_margin():
    X, y = classification(n=60)
    y = np.tile([0, 1], 30)  # balanced: for small C every alpha is at its bound
    path = SVCPath("rbf", gamma=0.1).fit(X, y)
    svc = SVC(C=0.002, gamma=0.1, tol=1e-10).fit(X, y)
    assert len(svc.support_) == 60
    np.testing.assert_allclose(
        path.decision_function(X, 0.002), svc.decision_function(X), atol=1e-7
    )


def test_several_classes_vote_as_in_svc():
    X, y = load_iris(return_X_y=True)
    path = SVCPath("rbf", gamma=0.5).fit(X[::2], y[::2])
    for C in (0.01, 0.3, 1.0, 20.0):
        svc = SVC(C=C, gamma=0.5, tol=1e-8).fit(X[::2], y[::2])
        np.testing.assert_array_equal(path.predict(X[1::2], C), svc.predict(X[1::2]))
        np.testing.assert_allclose(
            path.decision_function(X[1::2], C), svc.decision_function(X[1::2]), atol=1e-4
        )
    assert path.dual_coef(1.0).shape == (3, 75)


def test_weights_multiply_the_bounds():
    X, y = classification()
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    path = SVCPath("linear", class_weight={0: 1.0, 1: 2.5}).fit(X, y, weight)
    svc = SVC(C=0.2, kernel="linear", class_weight={0: 1.0, 1: 2.5}, tol=1e-10)
    svc.fit(X, y, weight)
    np.testing.assert_allclose(path.decision_function(X, 0.2), svc.decision_function(X), atol=1e-7)


def test_a_weight_of_2_is_equivalent_to_a_duplicate_sample():
    X, y = classification(n=50)
    weighted = SVCPath("rbf", gamma=0.2).fit(X, y, np.where(np.arange(50) < 20, 2.0, 1.0))
    doubled = SVCPath("rbf", gamma=0.2).fit(np.vstack([X, X[:20]]), np.append(y, y[:20]))
    np.testing.assert_allclose(
        weighted.decision_function(X, 3.0), doubled.decision_function(X, 3.0), atol=1e-8
    )


@pytest.mark.parametrize("gamma", [1e-9, 1e-7, 1e-4])
def test_a_nearly_constant_kernel_is_handled(gamma):
    X, y = classification()
    assert SVCPath("rbf", gamma=gamma, lambda_range=(1e-4, 1e4)).fit(X, y).violation_ <= 1e-6


def test_a_large_offset_of_the_columns_is_handled():
    X, y = classification()
    near, far = SVCPath("linear").fit(X, y), SVCPath("linear").fit(X + 1024.0, y)
    np.testing.assert_allclose(
        near.decision_function(X, 2.0), far.decision_function(X + 1024.0, 2.0), atol=1e-6
    )


def sweep(seeds):
    """Return the largest violation, and the seeds that were not certified."""
    worst, flagged = [], []
    for seed in seeds:
        X, y, kernel, gamma = degenerate(seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            path = SVCPath(kernel, gamma=gamma).fit(X, y)
        worst.append(path.violation_)
        if any(w.category is NotCertified for w in caught):
            flagged.append(seed)
    return np.array(worst), flagged


@pytest.mark.parametrize(
    "part", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
def test_degenerate_problems_are_solved_or_flagged(part):
    worst, flagged = sweep(range(100 * part, 100 * (part + 1)))
    assert len(flagged) <= 1
    assert set(np.flatnonzero(worst > 1e-6) + 100 * part) <= set(flagged)
    assert np.median(worst) <= 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_degenerate_problems_are_solved_or_flagged(part):
    worst, flagged = sweep(range(1000 * part, 1000 * (part + 1)))
    # the violation includes the effect of merging near duplicates
    assert (worst <= 1e-6).mean() >= 0.998
    assert set(np.flatnonzero(worst > 1e-6) + 1000 * part) <= set(flagged)


def test_two_points():
    path = SVCPath("linear").fit([[0.0], [2.0]], [0, 1])
    # alpha = C until the margin is reached at alpha = 2 / ||x1 - x0||^2 = 1/2
    np.testing.assert_allclose(path.dual_coef(0.1), [-0.1, 0.1])
    np.testing.assert_allclose(path.dual_coef(64.0), [-0.5, 0.5])
    np.testing.assert_allclose(path.decision_function([[0.0], [1.0], [2.0]], 64.0), [-1, 0, 1])


def test_identical_points_with_opposite_labels_give_a_constant():
    path = SVCPath("rbf", gamma=1.0).fit([[1.0], [1.0]], [0, 1])
    np.testing.assert_allclose(path.decision_function([[0.0], [1.0]], 4.0), [0, 0], atol=1e-12)
    np.testing.assert_allclose(np.abs(path.dual_coef(4.0)), [4.0, 4.0])


def test_a_constant_kernel_predicts_the_larger_class():
    y = np.array([0, 0, 0, 1, 1])
    path = SVCPath("precomputed").fit(np.ones((5, 5)), y)
    assert (path.predict(np.ones((2, 5)), 1.0) == 0).all()


@pytest.mark.parametrize(
    ("X", "y", "options", "error", "sentence"),
    [
        ([[0.0], [1.0]], [1, 1], {}, InvalidTarget, "at least two classes"),
        ([[0.0]], [1], {}, InvalidTarget, "at least two classes"),
        ([[0.0], [np.nan]], [0, 1], {}, ValueError, "NaN"),
        ([[0.0], [1.0]], [0, 1], {"kernel": "cosine"}, InvalidParameter, "kernel to be 'linear'"),
        ([[0.0], [1.0]], [0, 1], {"gamma": -1.0}, InvalidParameter, "gamma to be a number above 0"),
        ([[0.0], [1.0]], [0, 1], {"kernel": "precomputed"}, InvalidParameter, "square"),
        (
            [[0.0], [1.0]],
            [0, 1],
            {"lambda_range": (1, 1)},
            InvalidParameter,
            "a pair of increasing numbers",
        ),
        (
            [[0.0], [1.0]],
            [0, 1],
            {"lambda_range": 3},
            InvalidParameter,
            "a pair of increasing numbers",
        ),
        ([[0.0], [1.0]], [0.5, 1.5], {}, ValueError, "continuous"),
    ],
)
def test_invalid_input_is_refused(X, y, options, error, sentence):
    with pytest.raises(error, match=sentence):
        SVCPath(**options).fit(X, y)


def test_weights_that_empty_a_class_are_refused():
    with pytest.raises(InvalidTarget, match="positive weight in every class"):
        SVCPath().fit([[0.0], [1.0]], [0, 1], sample_weight=[1.0, 0.0])
    with pytest.raises(InvalidParameter, match="not negative"):
        SVCPath().fit([[0.0], [1.0]], [0, 1], sample_weight=[1.0, -1.0])


def test_a_C_outside_the_range_is_refused():
    path = SVCPath().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(InvalidParameter, match="needs C from"):
        path.predict([[0.0]], C=1e6)


def test_too_many_samples_are_refused_with_a_remedy():
    X = np.zeros((12_001, 1))
    with pytest.raises(PathTooLarge, match="GridC"):
        SVCPath().fit(X, np.arange(len(X)) % 2)


def test_a_margin_set_that_is_too_large_is_refused_with_a_remedy(monkeypatch):
    monkeypatch.setattr("tamis.svm.path.homotopy.MAX_MARGIN", 100)
    X, y = classification()
    with pytest.raises(PathTooLarge, match=r"on the margin at once.*GridC"):
        SVCPath(gamma=1.0).fit(X, y)


def test_following_few_variables_gives_the_same_path(monkeypatch):
    X, y = classification(n=700, d=8)
    few = SVCPath("rbf", gamma=0.1).fit(X[:600], y[:600])
    monkeypatch.setattr("tamis.svm.path.state.SMALL", 10**6)
    monkeypatch.setattr("tamis.svm.path.state.EPOCH", 16)
    everything = SVCPath("rbf", gamma=0.1).fit(X[:600], y[:600])
    for C in (0.01, 0.7, 9.0, 200.0):
        np.testing.assert_allclose(
            few.decision_function(X[600:], C), everything.decision_function(X[600:], C), atol=1e-8
        )


def test_an_indefinite_kernel_is_flagged():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(30, 30))
    with pytest.warns(NotCertified):
        SVCPath("precomputed").fit(K + K.T, np.arange(30) % 2)


def test_scikit_learn_conventions():
    # gamma="scale" does not use weights, as in SVC
    check_estimator(SVCPath(gamma="auto"), on_skip=None)
