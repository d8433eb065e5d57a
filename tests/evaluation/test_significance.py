"""Tests of paired scores, compared with scipy, hand calculations and published examples."""

from math import comb

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from tamis.evaluation import (
    bootstrap_interval,
    corrected_t,
    critical_difference,
    friedman,
    hit_interval,
    holm,
    mark,
    paired_t,
    same_rate,
    wilcoxon,
)
from tamis.exceptions import InvalidParameter

rng = np.random.default_rng(0)
A, B = rng.normal(size=(2, 30))

# Demšar (2006), table 6: AUC of C4.5, C4.5+m, C4.5+cf, C4.5+m+cf on fourteen data sets. Two values
# of "voting" are printed alike but ranked 2 and 3, so the last digit is ours.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def test_paired_t_agrees_with_scipy():
    ours, theirs = paired_t(A, B), stats.ttest_rel(A, B)
    assert_allclose([ours.statistic, ours.p_value], [theirs.statistic, theirs.pvalue])
    assert_allclose(ours.difference, A.mean() - B.mean())


def test_corrected_t_agrees_with_a_hand_calculation():
    # differences -.1 -.2 0 -.2: mean -.125, variance .0275/3; times 1/4 + 1/3 the root is .0731247
    found = corrected_t([0.1, 0.3, 0.2, 0.4], [0.2, 0.5, 0.2, 0.6], test_ratio=1 / 3)
    assert_allclose(found.statistic, -0.125 / np.sqrt(0.0275 / 3 * (1 / 4 + 1 / 3)))
    assert_allclose(found.statistic, -1.709409, rtol=1e-5)
    assert_allclose(found.p_value, 2 * stats.t.cdf(-1.709409, 3), rtol=1e-5)


def test_corrected_t_has_the_published_factor_for_repeated_folds():
    # Bouckaert and Frank (2004): for 10 x 10 folds the factor is 1/100 + 1/9
    a, b = rng.normal(size=(2, 100))
    plain, corrected = paired_t(a, b), corrected_t(a, b, 1 / 9)
    ratio = np.sqrt((1 / 100) / (1 / 100 + 1 / 9))
    assert_allclose(corrected.statistic, plain.statistic * ratio)
    assert corrected.p_value > plain.p_value


def test_only_the_corrected_test_keeps_its_level_if_splits_overlap():
    """Two equally bad predictors on random splits of a small sample.

    Each significant result is false.
    """
    alarms = {"plain": 0, "corrected": 0}
    for trial in range(200):
        draw = np.random.default_rng(trial)
        wrong = draw.random((2, 60)) < 0.4  # errors of two methods on sixty rows
        tests = [draw.permutation(60)[:20] for _ in range(30)]
        first, second = (np.array([row[t].mean() for t in tests]) for row in wrong)
        alarms["plain"] += paired_t(first, second).p_value < 0.05
        alarms["corrected"] += corrected_t(first, second, 20 / 40).p_value < 0.05
    assert alarms["plain"] > 80
    assert alarms["corrected"] < 30


def test_wilcoxon_agrees_with_scipy():
    ours, theirs = wilcoxon(A, B), stats.wilcoxon(A, B)
    assert_allclose([ours.statistic, ours.p_value], [theirs.statistic, theirs.pvalue])


@pytest.mark.parametrize("test", [paired_t, wilcoxon, lambda a, b: corrected_t(a, b, 0.5)])
def test_equal_scores_do_not_differ(test):
    assert test(A, A).p_value == 1
    assert test(A, A).difference == 0


@pytest.mark.parametrize("test", [paired_t, lambda a, b: corrected_t(a, b, 0.5)])
@pytest.mark.parametrize("n", [2, 3, 10])
def test_a_constant_difference_is_tested_by_its_signs(test, n):
    # 0.3 - 0.2 and 0.2 - 0.1 are equal up to rounding
    a = np.arange(1, n + 1) / 10
    assert test(a, a + 0.1).p_value == 0.5 ** (n - 1)
    assert test(a, a + 0.1).statistic == -np.inf


def test_rounding_is_not_a_difference():
    a = np.full(30, 0.1)
    assert paired_t(a, a * (1 + 1e-16)).p_value == 1


def test_differences_that_cancel_are_not_a_difference():
    first, second = np.array([0.08, 0.04, 0.12, 0.0]), np.array([0.04, 0.0, 0.04, 0.16])
    assert (first - second).mean() != 0  # because of rounding
    assert corrected_t(first, second, 0.3).difference == 0
    assert corrected_t(first, second, 0.3).p_value == 1


def test_holm_agrees_with_its_definition():
    p = rng.random(7) * 0.1
    order = np.argsort(p)
    expected = np.empty(7)
    for place, i in enumerate(order):
        expected[i] = min(1, max((7 - j) * p[order[j]] for j in range(place + 1)))
    assert_allclose(holm(p), expected)


def test_holm_agrees_with_a_published_example():
    # Demšar (2006), sec. 3.2.2: p-values .016, .607, .769 against alpha/(k - i)
    assert_allclose(holm([0.016, 0.607, 0.769]), [0.048, 1.0, 1.0])


@pytest.mark.parametrize(
    ("first", "second", "greater", "expected"),
    [
        ([1, 2, 1, 2], [5, 7, 6, 6], False, "+"),
        ([1, 2, 1, 2], [5, 7, 6, 6], True, "-"),
        ([5, 7, 6, 6], [1, 2, 1, 2], False, "-"),
        ([5, 7, 6, 6], [1, 2, 1, 2], True, "+"),
        ([1, 2, 1, 2], [2, 1, 2, 1.5], False, ""),
    ],
)
def test_the_sign_is_that_of_the_first_method(first, second, greater, expected):
    assert mark(paired_t(first, second), greater_is_better=greater) == expected


def test_friedman_agrees_with_scipy_for_ties():
    scores = rng.integers(0, 5, size=(12, 4))
    theirs = stats.friedmanchisquare(*scores.T)
    ours = friedman(scores)
    assert_allclose([ours.statistic, ours.p_value], [theirs.statistic, theirs.pvalue])


def test_friedman_agrees_with_demsars_example():
    found = friedman(DEMSAR, greater_is_better=True)
    assert_allclose(found.ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    assert_allclose(found.critical_difference, 1.25, atol=0.005)
    # he computes chi-squared from the average ranks, without correcting for ties
    plain = 12 * 14 / (4 * 5) * ((found.ranks**2).sum() - 4 * 25 / 4)
    assert_allclose(plain, 9.28, atol=0.005)
    assert_allclose(13 * plain / (14 * 3 - plain), 3.69, atol=0.005)
    # corrected for ties, it is multiplied by n k (k^2 - 1) / (the same minus the tied ranks)
    tied = 60 + 3 * 6
    assert_allclose(found.statistic, plain / (1 - tied / (14 * 60)))
    assert_allclose(found.f_statistic, 13 * found.statistic / (42 - found.statistic))


def test_demsars_groups():
    # at level 0.10 the critical difference is 2.291 * sqrt(4 * 5 / (6 * 14)) = 1.12, and C4.5
    # (3.143) differs from C4.5+m (2.000) and C4.5+m+cf (1.964)
    found = friedman(DEMSAR, ["a", "am", "acf", "amcf"], greater_is_better=True, level=0.10)
    assert_allclose(found.critical_difference, 1.12, atol=0.005)
    assert found.groups == (("amcf", "am", "acf"), ("acf", "a"))


@pytest.mark.parametrize(
    ("k", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (7, 2.949), (10, 3.164)]
)
def test_critical_values_are_the_published_ones(k, q):
    # Demšar (2006), table 5(a)
    assert_allclose(critical_difference(k, 30), q * np.sqrt(k * (k + 1) / 180), atol=5e-4)


def test_all_ties_are_not_a_difference():
    found = friedman(np.ones((5, 3)))
    assert found.statistic == 0
    assert found.p_value == 1
    assert found.groups == (("method 0", "method 1", "method 2"),)


@pytest.mark.parametrize("n_hits", [0, 1, 15, 27, 30])
def test_the_interval_of_hits_agrees_with_wilsons_formula(n_hits):
    n, z = 30, 1.959963984540054
    p = n_hits / n
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    found = hit_interval(n_hits, n)
    assert_allclose([found.low, found.high], [centre - half, centre + half], atol=1e-12)
    assert found.estimate == p


def test_the_bootstrap_interval_agrees_with_scipy_and_is_reproducible():
    found = bootstrap_interval(A)
    theirs = stats.bootstrap((A,), np.mean, n_resamples=2000, rng=np.random.default_rng(0))
    assert_allclose([found.low, found.high], theirs.confidence_interval)
    assert found == bootstrap_interval(A)
    assert found.low < A.mean() < found.high


def test_bootstrap_interval_of_equal_values_is_a_point():
    found = bootstrap_interval([2.0, 2.0, 2.0])
    assert (found.low, found.high) == (2.0, 2.0)


def test_same_rate_agrees_with_fishers_exact_test():
    assert_allclose(same_rate((27, 30), (19, 30)), stats.fisher_exact([[27, 3], [19, 11]]).pvalue)


@pytest.mark.parametrize(("hits", "others"), [(27, 19), (30, 25), (30, 30), (0, 6)])
def test_the_mid_p_value_counts_half_of_the_observed_table(hits, others):
    both = hits + others
    ways = [comb(30, k) * comb(30, both - k) for k in range(max(0, both - 30), min(30, both) + 1)]
    seen = comb(30, hits) * comb(30, others)
    expected = (sum(way for way in ways if way <= seen) - seen / 2) / sum(ways)
    assert_allclose(same_rate((hits, 30), (others, 30), mid_p=True), expected)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: paired_t([1], [2]), "at least two paired scores"),
        (lambda: paired_t([1, 2], [1, 2, 3]), r"shapes \(2,\) and \(3,\)"),
        (lambda: paired_t([1, np.nan], [1, 2]), "finite scores"),
        (lambda: corrected_t([1, 2], [2, 1], 0), "test rows per training row"),
        (lambda: holm([0.5, 1.5]), "between 0 and 1"),
        (lambda: friedman([[1, 2]]), "two rows"),
        (lambda: friedman([[1, 2], [2, 1]], ["a"]), "2 names"),
        (lambda: hit_interval(31, 30), "31 of 30"),
        (lambda: critical_difference(1, 10), "two methods"),
        (lambda: bootstrap_interval([1.0]), "two finite values"),
    ],
)
def test_invalid_input_is_refused(call, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        call()
