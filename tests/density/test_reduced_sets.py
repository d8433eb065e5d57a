"""Reduced-set densities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from tamis.density.simplex import minimise_on_simplex, reduced_set
from tests.densities import density


def test_weights_solve_the_program_with_true_constants():
    X = np.random.default_rng(0).normal(size=(40, 2))
    sigma = 0.4
    Q = np.array([multivariate_normal(x, 2 * sigma**2 * np.eye(2)).pdf(X) for x in X])
    p = np.array([multivariate_normal(x, sigma**2 * np.eye(2)).pdf(X) for x in X]).mean(axis=0)
    expected = minimise_on_simplex(Q, p)
    places, weights = reduced_set(X, sigma)
    found = np.zeros(40)
    found[places] = weights
    assert_allclose(found, expected, atol=1e-8)


def test_few_weighted_windows_are_closer_to_the_true_density():
    X = np.random.default_rng(1).normal(size=(300, 2))
    places, weights = reduced_set(X, 0.7)
    assert len(places) < 30
    points = np.random.default_rng(2).normal(size=(200, 2))
    true = multivariate_normal(np.zeros(2)).pdf(points)
    reduced = density(points, X[places], 0.7, weights)
    full = density(points, X, 0.7)
    assert np.mean((reduced - true) ** 2) < np.mean((full - true) ** 2)


@pytest.mark.parametrize("d", [1, 50, 3000])
def test_reduced_sets_exist_for_any_number_of_columns(d):
    X = np.random.default_rng(0).normal(size=(30, d))
    places, weights = reduced_set(X, 1.0)
    assert weights.sum() == pytest.approx(1)
    assert len(places) >= 1


def test_identical_samples_and_a_single_sample_have_weights():
    assert reduced_set(np.zeros((5, 2)), 1.0)[1].sum() == pytest.approx(1)
    assert_allclose(reduced_set(np.zeros((1, 2)), 1.0)[1], [1])
