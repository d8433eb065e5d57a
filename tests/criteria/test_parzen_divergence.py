"""Divergence of classes that are not Gaussian, compared with a double loop and an integral."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tamis.criteria import Divergence
from tamis.exceptions import InvalidParameter
from tamis.search import Forward


def by_loops(X, y, subset, sigma):
    """Return the divergence from windows summed one by one, without the sample itself."""
    Z, classes = X[:, subset], np.unique(y)
    priors = np.array([(y == k).mean() for k in classes])

    def log_density(i, k):
        others = [j for j in np.flatnonzero(y == k) if j != i]
        return np.log(
            np.mean([np.exp(-((Z[i] - Z[j]) ** 2).sum() / (2 * sigma**2)) for j in others])
        )

    total = 0.0
    for i in range(len(y)):
        own = log_density(i, y[i])
        for k, prior in zip(classes, priors, strict=True):
            total += prior * (own - log_density(i, k))
    return 2 * total / len(y)


def test_values_agree_with_a_double_loop():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 40)
    X = rng.normal(size=(40, 4)) + 0.5 * y[:, None]
    criterion = Divergence("parzen", sigma=0.8).fit(X, y)
    for subset in ([0], [1, 3], [0, 1, 2, 3]):
        assert_allclose(criterion.value(np.array(subset)), by_loops(X, y, subset, 0.8), rtol=1e-10)


def test_the_estimate_approaches_the_divergence_of_two_normal_classes():
    rng = np.random.default_rng(0)
    y = np.arange(4000) % 2
    X = (rng.normal(size=4000) + 1.5 * y)[:, None]
    # P_k P_l d_kl over both ordered pairs, d = (distance / deviation)^2
    assert_allclose(Divergence("parzen", sigma=0.3).fit(X, y).value(np.array([0])), 1.125, rtol=0.1)


def test_clusters_with_equal_means_and_covariances_are_separated():
    """Class 0 is one cluster and class 1 two, with equal means and variances in each column."""
    rng = np.random.default_rng(1)
    y = np.arange(300) % 2
    X = rng.normal(size=(300, 6))
    sides = np.where(rng.random(300) < 0.5, 0.95, -0.95) + rng.normal(size=300) * np.sqrt(
        1 - 0.9025
    )
    X[:, 4] = np.where(y, sides, X[:, 4])
    X[:, 4] = np.where(y, (X[:, 4] - X[y == 1, 4].mean()) / X[y == 1, 4].std(), X[:, 4])
    X[:, 4] = np.where(y, X[:, 4], (X[:, 4] - X[y == 0, 4].mean()) / X[y == 0, 4].std())
    chosen = {
        density: Forward(Divergence(density), n_features_to_select=1).fit(X, y).get_support(True)[0]
        for density in ("gaussian", "parzen")
    }
    assert chosen["parzen"] == 4
    assert chosen["gaussian"] != 4


def test_an_unknown_density_is_refused():
    with pytest.raises(InvalidParameter, match="density to be 'gaussian' or 'parzen', got 'flat'"):
        Divergence("flat").fit(np.eye(4), [0, 1, 0, 1])
