"""Information corrected for chance, compared with exact expectations and permuted targets."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import hypergeom
from sklearn.metrics import mutual_info_score
from sklearn.metrics.cluster import expected_mutual_information

from tamis.density import chance
from tamis.density.chance import chance_of, expected_n_log_n
from tamis.density.discrete import Coded, entropy_of
from tamis.density.joint import CompletePair


def by_distribution(n, a, b):
    h = np.arange(max(0, a + b - n), min(a, b) + 1)
    return (hypergeom(n, a, b).pmf(h) * h * np.log(np.maximum(h, 1))).sum()


def test_expected_n_log_n_equals_the_sum_over_the_distribution():
    rng = np.random.default_rng(0)
    n = rng.integers(1, 2000, 300)
    a, b = (rng.integers(0, n + 1) for _ in range(2))
    expected = [by_distribution(*margins) for margins in zip(n, a, b, strict=True)]
    assert (a * b / n > chance.SERIES_FROM).sum() > 50
    assert_allclose(expected_n_log_n(n, a, b), expected, rtol=1e-9, atol=1e-9)


def test_degenerate_margins_are_exact():
    n = np.array([1, 7, 150, 10_000])
    assert_array_equal(expected_n_log_n(n, 0, n // 2), 0)
    assert_array_equal(expected_n_log_n(n, 1, n // 2), 0)
    whole = n // 2 * np.log(np.maximum(n // 2, 1))
    assert_allclose(expected_n_log_n(n, n, n // 2), whole, rtol=1e-15)
    assert_allclose(expected_n_log_n(n, n // 2, n), whole, rtol=1e-15)


@pytest.mark.parametrize("sizes", [[5000, 5000], [9000, 900, 90, 9, 1], list(range(10, 150))])
def test_tables_with_a_spline_are_within_a_billionth(sizes):
    sizes = np.array(sizes)
    found = chance_of(np.zeros(len(sizes), dtype=int), sizes).values
    counts = np.unique(np.geomspace(1, len(found) - 1, 300).astype(int))
    wanted = expected_n_log_n(sizes.sum(), counts[:, None], sizes).sum(axis=1)
    assert len(found) == sizes.sum() + 1
    assert np.abs((found[counts] - wanted) / counts).max() < 1e-9


def test_levels_of_the_pivot_with_the_same_sizes_share_a_table():
    found = chance_of(np.array([0, 0, 1, 2, 2, 4]), np.array([2, 3, 5, 3, 2, 5]), 5)
    assert found.start[0] == found.start[2] != found.start[1] == found.start[4]
    assert len(found.values) == 12
    assert_array_equal(found.values[found.start], 0)  # level 3 has no rows


@pytest.mark.parametrize("levels", [2, 7, 90])
def test_corrected_information_agrees_with_scikit_learn(levels):
    rng = np.random.default_rng(levels)
    X = rng.integers(0, levels, (120, 5)).astype(float)
    y = rng.integers(0, 3, 120)
    found = Coded(X, levels).information(y, adjusted=True)
    for j in range(5):
        table = np.histogram2d(X[:, j], y, bins=[np.arange(levels + 1) - 0.5, np.arange(4) - 0.5])
        cells = table[0][table[0].any(axis=1)]
        wanted = mutual_info_score(X[:, j], y) - expected_mutual_information(
            cells.astype(np.int64), 120
        )
        assert found[j] == pytest.approx(wanted, abs=1e-10)


def test_terms_are_zero_on_average_over_permutations():
    rng = np.random.default_rng(0)
    y, pick = rng.integers(0, 2, 150), rng.integers(0, 4, 150)
    X = np.column_stack([pick, pick + 4 * y, rng.integers(0, 60, 150), np.arange(150)])
    X = X.astype(float)
    terms = {"relevance": [], "shared": [], "conditional": []}
    for _ in range(150):
        # the target is shuffled in all rows, then within levels of the pick; then the pick is
        coded = Coded(X, 200)
        shuffled = rng.permutation(y)
        terms["relevance"].append(coded.information(shuffled, adjusted=True))
        within = y.copy()
        for level in range(4):
            within[pick == level] = rng.permutation(y[pick == level])
        pair = CompletePair(coded, within, 0, np.zeros(4), adjusted=True)
        terms["conditional"].append(pair.conditional)
        moved = Coded(np.column_stack([rng.permutation(pick), X[:, 1:]]), 200)
        terms["shared"].append(CompletePair(moved, y, 0, np.zeros(4), adjusted=True).shared[1:])
    for values in map(np.array, terms.values()):
        doubt = values.std(axis=0) / np.sqrt(len(values))
        assert (np.abs(values.mean(axis=0)) <= 4 * doubt + 1e-12).all()
        assert doubt.max() > 1e-4  # so that a bias of 0.01 would be detected


def test_the_plain_information_of_many_levels_is_all_chance():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 9, (1500, 4)) @ 9 ** np.arange(4)
    y = (rng.random(1500) < 0.35).astype(int)
    coded = Coded(group[:, None].astype(float), 1500)
    plain, adjusted = (coded.information(y, adjusted=way)[0] for way in (False, True))
    assert plain > 0.9 * entropy_of(y)
    assert abs(adjusted) < 0.03
