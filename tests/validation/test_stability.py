"""Stability compared with its definitions."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tamis.evaluation import stability
from tamis.exceptions import InvalidParameter

rng = np.random.default_rng(3)


def nogueira_by_loops(Z):
    """Return definition 4 of Nogueira et al., with unbiased variances of each column."""
    m, d = Z.shape
    total = 0.0
    for f in range(d):
        p = sum(Z[i, f] for i in range(m)) / m
        total += m / (m - 1) * p * (1 - p)
    k = Z.sum() / m
    return 1 - (total / d) / ((k / d) * (1 - k / d))


def error_by_loops(Z):
    """Return the standard error by theorem 7 of Nogueira et al."""
    m, d = Z.shape
    value, k_mean = nogueira_by_loops(Z), Z.sum() / m
    p = Z.mean(axis=0)
    phi = []
    for i in range(m):
        k = Z[i].sum()
        inside = sum(Z[i, f] * p[f] for f in range(d)) / d - k * k_mean / d**2
        inside += value / 2 * (2 * k_mean * k / d**2 - k / d - k_mean / d + 1)
        phi.append(inside / ((k_mean / d) * (1 - k_mean / d)))
    return np.sqrt(4 / m**2 * sum((x - np.mean(phi)) ** 2 for x in phi))


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_nogueira_agrees_with_its_definition(share):
    Z = rng.random((8, 15)) < share
    found = stability(Z)
    assert_allclose(found.nogueira, nogueira_by_loops(Z))
    half = 1.959963984540054 * error_by_loops(Z)
    assert_allclose([found.low, found.high], [found.nogueira - half, found.nogueira + half])


def test_kuncheva_and_jaccard_agree_with_their_definitions():
    sets = [set(rng.choice(12, 4, replace=False).tolist()) for _ in range(6)]
    found = stability([sorted(s) for s in sets], n_features=12)
    pairs = list(combinations(sets, 2))
    kuncheva = np.mean([(len(a & b) - 16 / 12) / (4 - 16 / 12) for a, b in pairs])
    assert_allclose(found.kuncheva, kuncheva)
    assert_allclose(found.jaccard, np.mean([len(a & b) / len(a | b) for a, b in pairs]))
    # both corrected measures agree if all sets have the same size
    assert_allclose(found.nogueira, found.kuncheva)


def test_equal_selections_are_stable_and_random_ones_are_not():
    assert stability([[0, 3]] * 5, n_features=10).nogueira == 1
    values = []
    for trial in range(200):
        draw = np.random.default_rng(trial)
        values.append(stability([draw.choice(20, 5, replace=False) for _ in range(5)], 20).nogueira)
    error = np.std(values) / np.sqrt(200)
    assert abs(np.mean(values)) < 3 * error


def test_sizes_may_differ():
    found = stability([[0, 1], [0, 1, 2]], n_features=6)
    assert np.isnan(found.kuncheva)
    assert_allclose(found.frequency, [1, 1, 0.5, 0, 0, 0])
    assert found.to_frame()["column"].to_list()[:3] == [0, 1, 2]


@pytest.mark.parametrize(
    ("selections", "n_features", "sentence"),
    [
        ([[0, 1]], 5, "two selections"),
        ([[0, 1], [2]], None, "n_features"),
        ([[0, 9], [2]], 5, "n_features"),
        ([[], []], 5, "have no columns"),
        ([[0, 1], [0, 1]], 2, "all columns"),
        ([np.ones(3, bool), np.ones(4, bool)], None, "one length"),
    ],
)
def test_invalid_input_is_refused(selections, n_features, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        stability(selections, n_features)
