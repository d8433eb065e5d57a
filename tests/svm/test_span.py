"""Spans compared with least squares, and with SVMs trained without one row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from tamis.svm.geometry import feet, margin_system, squared_spans
from tamis.svm.machine import multipliers
from tests.explicit_machines import squared_distance


def spans(K, free):
    return squared_spans(K, margin_system(K, free))


def some(n, size, seed=0):
    free = np.zeros(n, dtype=bool)
    free[np.random.default_rng(seed).choice(n, size=size, replace=False)] = True
    return free


@pytest.mark.parametrize("size", [1, 2, 5, 20])
@pytest.mark.parametrize("gamma", [0.05, 0.5, 20.0])
def test_distances_agree_with_least_squares(size, gamma):
    K = rbf_kernel(np.random.default_rng(size).normal(size=(25, 5)), gamma=gamma)
    free = some(25, size)
    places = np.flatnonzero(free)
    expected = [squared_distance(K, p, places[places != p]) for p in range(25)]
    assert_allclose(spans(K, free), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("size", [0, 1, 2, 8])
def test_feet_give_the_squared_distances(size):
    K = rbf_kernel(np.random.default_rng(0).normal(size=(15, 3)), gamma=0.5)
    free = some(15, size)
    system = margin_system(K, free)
    e = feet(K, system)
    assert_allclose(np.einsum("ij,ij->j", e, K @ e), squared_spans(K, system), atol=1e-10)
    assert_allclose(e.diagonal(), 1)
    others = ~free if size == 1 else np.ones(15, dtype=bool)
    if size:
        assert_allclose(e[:, others].sum(axis=0), 0, atol=1e-10)


def test_a_duplicate_of_a_free_vector_has_a_span_of_0():
    X = np.random.default_rng(1).normal(size=(12, 4))
    X[7] = X[2]
    K, free = rbf_kernel(X, gamma=0.3), some(12, 12)
    found = spans(K, free)
    assert_allclose(found[[2, 7]], 0, atol=1e-9)
    # the others have the same distance as without the duplicate
    rest = np.arange(12) != 7
    assert_allclose(found[rest][[0, 1, 3, 4]], spans(K[rest][:, rest], free[rest])[[0, 1, 3, 4]])


def test_dependent_vectors_have_a_span_of_zero():
    X = np.random.default_rng(2).normal(size=(20, 3))
    K = X @ X.T
    # any point of a space of three dimensions is spanned by more than three others
    assert_allclose(spans(K, some(20, 9)), 0, atol=1e-8)


def test_without_free_vectors_distances_are_taken_from_the_origin():
    X = np.random.default_rng(3).normal(size=(6, 2))
    K = X @ X.T
    assert_allclose(spans(K, np.zeros(6, dtype=bool)), K.diagonal())
    assert_allclose(feet(K, margin_system(K, np.zeros(6, dtype=bool))), np.eye(6))


def test_with_one_free_vector_distances_are_taken_from_it():
    X = np.random.default_rng(4).normal(size=(6, 2))
    found = spans(X @ X.T, np.arange(6) == 2)
    expected = ((X - X[2]) ** 2).sum(axis=1)
    expected[2] = X[2] @ X[2]
    assert_allclose(found, expected, atol=1e-12)


def left_out(model, X, y, p):
    rest = np.arange(len(y)) != p
    return model.fit(X[rest], y[rest]), rest


def clouds(seed, n=30, apart=2.0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < n // 2, 1, -1)
    return rng.normal(size=(n, 2)) + apart * y[:, None] / 2, y


def test_with_a_hard_margin_the_span_is_the_decrease_of_the_held_out_output():
    """alpha_p S_p^2 = y_p (f - f^p)(x_p), if the other rows keep their roles."""
    checked = 0
    for seed in range(12):
        X, y = clouds(seed)
        make = SVC(C=1e9, gamma=0.5, tol=1e-10)
        whole = make.fit(X, y)
        (machine,) = multipliers(whole, y)
        outputs = whole.decision_function(X)
        K = rbf_kernel(X, gamma=0.5)
        assert (machine.free == (machine.beta != 0)).all()
        falls = machine.sizes * spans(K, machine.free)
        for p in np.flatnonzero(machine.beta):
            model, rest = left_out(SVC(C=1e9, gamma=0.5, tol=1e-10), X, y, p)
            roles = np.zeros(len(y), dtype=bool)
            roles[np.flatnonzero(rest)[model.support_]] = True
            roles[p] = True
            if (roles == machine.free).all():
                fall = y[p] * (outputs[p] - model.decision_function(X[[p]])[0])
                assert falls[p] == pytest.approx(fall, rel=2e-3)
                checked += 1
    assert checked >= 20


def leave_one_out_errors(X, y, **params):
    wrong = 0
    for p in range(len(y)):
        model, _ = left_out(SVC(**params), X, y, p)
        wrong += model.predict(X[[p]])[0] != y[p]
    return wrong


def bound_and_bounded(X, y, **params):
    (machine,) = multipliers(SVC(**params).fit(X, y), y)
    K = rbf_kernel(X, gamma=params["gamma"])
    bounded = ((machine.beta != 0) & ~machine.free).sum()
    return machine.sizes @ spans(K, machine.free), bounded


def test_with_a_hard_margin_the_sum_bounds_the_errors():
    for seed in range(8):
        X, y = clouds(seed)
        params = {"C": 1e9, "gamma": 0.5, "tol": 1e-6}
        assert leave_one_out_errors(X, y, **params) <= bound_and_bounded(X, y, **params)[0] + 1e-6


def test_with_a_soft_margin_the_bound_needs_the_bounded_vectors():
    failed = 0
    for seed in range(12):
        X, y = clouds(seed, apart=0.7)
        params = {"C": 0.3, "gamma": 0.2, "tol": 1e-6}
        errors, (bound, bounded) = (
            leave_one_out_errors(X, y, **params),
            bound_and_bounded(X, y, **params),
        )
        assert errors <= bound + bounded
        failed += errors > bound
    assert failed >= 6
