"""The quadratic programme over the simplex, compared with scipy.optimize."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from tamis.density.simplex import minimise_on_simplex, project, smallest_sphere
from tamis.exceptions import InvalidParameter


def objective(a, Q, p):
    return a @ Q @ a / 2 - a @ p


def by_scipy(Q, p):
    """Return the optimum by sequential least squares."""
    n = len(p)
    found = minimize(
        objective,
        np.full(n, 1 / n),
        args=(Q, p),
        jac=lambda a, Q, p: Q @ a - p,
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1, "jac": lambda a: np.ones(n)},
        method="SLSQP",
        options={"ftol": 1e-18, "maxiter": 3000},
    )
    return found.x


def kernel_matrix(X, width):
    return np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / width)


def assert_optimal(a, Q, p, atol):
    """Check that weights are on the simplex, and that the gradient is equal on their support."""
    assert a.min() >= 0
    assert a.sum() == pytest.approx(1, abs=1e-12)
    gradient = Q @ a - p
    assert gradient.min() >= a @ gradient - atol
    assert_allclose(gradient[a > 0], a @ gradient, atol=atol)


@pytest.mark.parametrize("seed", range(25))
def test_the_optimum_agrees_with_scipy(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 20))
    A = rng.normal(size=(n, 3 * n))
    Q, p = A @ A.T / n, rng.normal(size=n)
    found, expected = minimise_on_simplex(Q, p), by_scipy(Q, p)
    assert objective(found, Q, p) == pytest.approx(objective(expected, Q, p), abs=1e-8)
    assert objective(found, Q, p) <= objective(expected, Q, p) + 1e-12
    assert_allclose(found, expected, atol=1e-6)
    assert_optimal(found, Q, p, 1e-10)


@pytest.mark.parametrize("seed", range(15))
def test_the_optimum_agrees_with_scipy_for_nearly_singular_kernels(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 2))
    X[11] = X[3]  # a duplicate: the optimum is not unique, but its value is
    Q = kernel_matrix(X, [0.5, 4, 40][seed % 3])
    p = Q.mean(axis=1) * rng.uniform(0.5, 2)
    found = minimise_on_simplex(Q, p)
    assert objective(found, Q, p) <= objective(by_scipy(Q, p), Q, p) + 1e-8
    assert_optimal(found, Q, p, 1e-9)


@pytest.mark.parametrize(("n", "d", "width"), [(400, 2, 0.5), (400, 5, 2.0), (300, 36, 4.0)])
def test_large_programs_are_solved_to_optimality(n, d, width):
    X = np.random.default_rng(0).normal(size=(n, d))
    Q = kernel_matrix(X, 2 * width)
    p = kernel_matrix(X, width).mean(axis=1)
    assert_optimal(minimise_on_simplex(Q, p), Q, p, 1e-10)


def test_scale_of_the_program_does_not_matter():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(12, 30))
    Q, p = A @ A.T, rng.normal(size=12)
    for factor in (1e-30, 1e30):
        scaled = minimise_on_simplex(factor * Q, factor * (p + 1e3))
        assert_allclose(scaled, minimise_on_simplex(Q, p), atol=1e-9)


def test_linear_and_trivial_programs_are_solved():
    assert_allclose(minimise_on_simplex(np.zeros((3, 3)), np.array([1.0, 5.0, 2.0])), [0, 1, 0])
    assert_allclose(minimise_on_simplex(np.zeros((3, 3)), np.zeros(3)), np.full(3, 1 / 3))
    assert_allclose(minimise_on_simplex(np.ones((4, 4)), np.zeros(4)).sum(), 1)
    assert_allclose(minimise_on_simplex(np.ones((1, 1)), np.ones(1)), [1])


def test_shapes_must_agree():
    with pytest.raises(InvalidParameter, match="needs a square Q"):
        minimise_on_simplex(np.eye(3), np.ones(2))


def test_projection_is_the_nearest_point():
    rng = np.random.default_rng(0)
    for _ in range(20):
        point = rng.normal(size=5) * 2
        expected = minimise_on_simplex(np.eye(5), point)
        assert_allclose(project(point), expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_smallest_sphere_touches_and_contains_its_points(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3)) + np.array([50.0, 0, 0])  # a general diagonal
    squared, weights = smallest_sphere(X @ X.T)
    distances = ((X - weights @ X) ** 2).sum(axis=1)
    assert distances.max() == pytest.approx(squared, rel=1e-9)
    assert_allclose(distances[weights > 0], squared, rtol=1e-9)
    # centre and squared radius by scipy, from a separate programme
    other = minimize(
        lambda v: v[-1],
        np.append(X.mean(axis=0), 100.0),
        constraints={"type": "ineq", "fun": lambda v: v[-1] - ((X - v[:-1]) ** 2).sum(axis=1)},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    assert squared == pytest.approx(other.x[-1], abs=1e-8)


def test_the_sphere_of_a_gaussian_kernel_has_a_radius_below_one():
    X = np.random.default_rng(0).normal(size=(40, 2))
    K = kernel_matrix(X, 1.0)
    squared, weights = smallest_sphere(K)
    assert squared == pytest.approx(1 - weights @ K @ weights)
    assert 0 < squared < 1


def test_the_sphere_of_identical_points_has_radius_0():
    assert smallest_sphere(np.full((3, 3), 4.0))[0] == 0
