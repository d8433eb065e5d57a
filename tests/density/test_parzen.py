"""Parzen densities and the choice of their width."""

import numpy as np
from numpy.testing import assert_allclose

from tamis._seeds import stream
from tamis.density.parzen import WIDTHS, best_width, held_out_likelihood
from tests.densities import density


def test_the_likelihood_is_computed_on_held_out_samples():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(23, 2))
    folds = np.empty(23, dtype=int)
    folds[np.argsort((X**2).sum(axis=1))] = stream(4, "folds").permutation(23) % 5
    expected = np.zeros(len(WIDTHS))
    for fold in range(5):
        held = folds == fold
        expected += [np.log(density(X[held], X[~held], s)).sum() for s in WIDTHS]
    assert_allclose(held_out_likelihood(X, seed=4), expected / 23, rtol=1e-11)


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
