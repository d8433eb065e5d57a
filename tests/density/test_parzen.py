"""Parzen densities and the choice of their width."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from tamis._seeds import stream
from tamis.density.parzen import WIDTHS, best_width, held_out_likelihood, log_density


def test_density_is_a_mixture_of_gaussians():
    rng = np.random.default_rng(0)
    centres, points = rng.normal(size=(20, 3)), rng.normal(size=(7, 3))
    weights = rng.dirichlet(np.ones(20))
    for given, used in ((None, np.full(20, 1 / 20)), (weights, weights)):
        expected = sum(
            a * multivariate_normal(c, 0.49 * np.eye(3)).pdf(points)
            for a, c in zip(used, centres, strict=True)
        )
        assert_allclose(log_density(points, centres, 0.7, given), np.log(expected))


def test_density_far_from_every_centre_has_a_logarithm():
    far = log_density(np.array([[1e3]]), np.array([[0.0]]), 0.1)
    assert far[0] == pytest.approx(-0.5e8 + np.log(10) - 0.5 * np.log(2 * np.pi))


def test_the_likelihood_is_computed_on_held_out_samples():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(23, 2))
    folds = np.empty(23, dtype=int)
    folds[np.argsort((X**2).sum(axis=1))] = stream(4, "folds").permutation(23) % 5
    for widths in (WIDTHS, np.array([0.3, 1.0, 1.1])):  # with and without squaring
        expected = np.zeros(len(widths))
        for fold in range(5):
            held = folds == fold
            expected += [log_density(X[held], X[~held], s).sum() for s in widths]
        assert_allclose(held_out_likelihood(X, widths, seed=4), expected / 23, rtol=1e-11)


def test_order_of_samples_and_columns_does_not_matter():
    X = np.random.default_rng(3).normal(size=(40, 3))
    rows = np.random.default_rng(4).permutation(40)
    assert_allclose(held_out_likelihood(X[rows][:, [2, 0, 1]]), held_out_likelihood(X))


def test_width_of_a_gaussian_sample_is_neither_end():
    X = np.random.default_rng(0).normal(size=(200, 2))
    assert 0.25 < best_width(X) < 1


def test_width_grows_with_the_number_of_columns():
    X = np.random.default_rng(0).normal(size=(200, 20))
    assert best_width(X[:, :2]) < best_width(X)


def test_identical_rows_get_the_narrowest_width():
    assert best_width(np.zeros((10, 2))) == WIDTHS[0]


def test_distant_samples_do_not_cause_underflow():
    X = np.vstack([np.random.default_rng(0).normal(size=(50, 2)), [[1e3, 0]]])
    assert np.isfinite(held_out_likelihood(X)).all()
