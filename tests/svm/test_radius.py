"""The smallest sphere compared with brute force in input space, and its certificate."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import OneClassSVM

from tamis.density.simplex import smallest_sphere
from tamis.svm.geometry import sphere_around


def brute_radius2(points):
    """Return the smallest sphere through two to d + 1 of the points that contains all points."""
    best, d = np.inf, points.shape[1]
    for size in range(2, d + 2):
        for chosen in combinations(range(len(points)), size):
            corner, *others = points[list(chosen)]
            edges = np.array(others) - corner
            # the centre is in the plane of the points, equally far from all
            share = np.linalg.lstsq(2 * edges @ edges.T, (edges**2).sum(axis=1), rcond=None)[0]
            centre = corner + share @ edges
            distances = ((points - centre) ** 2).sum(axis=1)
            if distances.max() <= distances[chosen[0]] + 1e-9:
                best = min(best, distances.max())
    return best


def certificate(K, sphere):
    """Return how far the farthest point is outside the sphere, from the weights alone."""
    g = sphere.weights
    assert g.min() >= 0
    assert g.sum() == pytest.approx(1)
    return (K.diagonal() - 2 * K @ g + g @ K @ g).max() - sphere.radius2


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("n", "d"), [(14, 2), (9, 3)])
def test_a_linear_kernel_gives_the_sphere_in_input_space(n, d, seed):
    points = np.random.default_rng(seed).normal(size=(n, d)) * [1, 3, 0.5][:d] + 5
    K = points @ points.T
    found = sphere_around(K)
    assert found.radius2 == pytest.approx(brute_radius2(points), rel=1e-9)
    centre = found.weights @ points
    assert ((points - centre) ** 2).sum(axis=1).max() == pytest.approx(found.radius2, rel=1e-9)


@pytest.mark.parametrize(
    ("n", "d", "gamma"), [(60, 3, 0.3), (400, 2, 1.0), (400, 10, 0.1), (300, 50, 1.0)]
)
def test_the_sphere_agrees_with_the_full_programme(n, d, gamma):
    K = rbf_kernel(np.random.default_rng(0).normal(size=(n, d)), gamma=gamma)
    found = sphere_around(K)
    assert abs(certificate(K, found)) < 1e-9
    assert found.radius2 == pytest.approx(smallest_sphere(K)[0], abs=1e-10)


def test_the_sphere_agrees_with_a_one_class_svm():
    X = np.random.default_rng(1).normal(size=(80, 4))
    K = rbf_kernel(X, gamma=0.2)
    model = OneClassSVM(gamma=0.2, nu=1 / 80, tol=1e-10).fit(X)
    g = model.dual_coef_[0] / model.dual_coef_.sum()
    expected = 1 - g @ rbf_kernel(model.support_vectors_, gamma=0.2) @ g
    assert sphere_around(K).radius2 == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_a_start_does_not_change_the_result(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 6))
    K, other = rbf_kernel(X, gamma=0.1), rbf_kernel(X[:, 1:], gamma=0.1)
    start = np.zeros(150)
    start[rng.choice(150, size=int(rng.integers(1, 90)), replace=False)] = 1
    cold = sphere_around(other)
    for weights in (sphere_around(K).weights, start / start.sum()):
        warm = sphere_around(other, weights)
        assert warm.radius2 == pytest.approx(cold.radius2, rel=1e-10)
        assert_allclose(warm.weights, cold.weights, atol=1e-7)


def test_duplicate_rows_do_not_change_the_sphere():
    X = np.random.default_rng(2).normal(size=(40, 3))
    twice = np.vstack([X, X[:25], X[:3]])
    for matrix in (lambda A: A @ A.T, lambda A: rbf_kernel(A, gamma=0.4)):
        found = sphere_around(matrix(twice))
        assert found.radius2 == pytest.approx(sphere_around(matrix(X)).radius2, rel=1e-9)
        assert abs(certificate(matrix(twice), found)) < 1e-9


@pytest.mark.parametrize("n", [1, 5, 120])
def test_identical_points_have_radius_0(n):
    found = sphere_around(np.ones((n, n)))
    assert found.radius2 == pytest.approx(0, abs=1e-12)
    assert found.weights.sum() == pytest.approx(1)


def test_far_points_of_a_polynomial_kernel():
    X = np.random.default_rng(3).normal(size=(200, 3)) * 5
    K = (X @ X.T + 1) ** 3
    assert abs(certificate(K, sphere_around(K))) < 1e-9 * K.max()


def test_rounding_does_not_cause_a_cycle():
    """The points are nearly dependent and far from the origin, so the centre has few digits."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(6, 60)), int(rng.integers(1, 4))
        X = rng.normal(size=(n, d)) * 10 ** rng.uniform(-3, 0)
        K = (X @ X.T + 1) / 4
        start = np.zeros(n)
        start[rng.choice(n, size=4, replace=False)] = 0.25
        for found in (sphere_around(K), sphere_around(K, start)):
            assert abs(certificate(K, found)) < 1e-6 * found.radius2
