"""Basic functions: kinds of target, scaling, ties and fingerprints."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tamis._arrays import (
    best,
    best_first,
    fingerprint,
    improves,
    is_real,
    snapped,
    standardised,
    target_kind,
)


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (None, "none"),
        (np.array(["a", "b"]), "classification"),
        (np.array([True, False]), "classification"),
        (np.array([0, 1, 2]), "classification"),
        (np.array([0.0, 1.0, 2.0]), "classification"),
        (np.array([0.0, 1.5]), "regression"),
        (np.arange(21), "regression"),
        (np.arange(20), "classification"),
    ],
)
def test_the_kind_of_a_target_is_found(y, kind):
    assert target_kind(y) == kind


def test_standardised_columns_have_mean_0_and_deviation_1():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(50, 4)) * [1, 1e-8, 1e8, 3] + [0, 1e-6, -1e9, 5]
    scaled = standardised(X)
    assert_allclose(scaled.mean(axis=0), 0, atol=1e-6)
    assert_allclose(scaled.std(axis=0), 1, rtol=1e-6)
    assert scaled.flags.f_contiguous
    assert scaled is not X


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e6 + 0.1, -1e-12])
def test_a_constant_column_becomes_zero(constant):
    assert_array_equal(standardised(np.full((30, 1), constant)), 0)


def test_ties_go_to_the_lowest_index():
    prices = np.array([0.3, 0.7, 0.7 - 1e-16, 0.1, 0.1 + 1e-17])
    assert best(prices) == 1
    assert_array_equal(best_first(prices), [1, 2, 0, 3, 4])
    assert best(np.array([-np.inf, -np.inf])) == 0


def test_snapping_keeps_differences_that_are_not_rounding():
    prices = np.array([1.0, 1.0 + 1e-9, -5.0, np.inf, -np.inf])
    assert_array_equal(np.argsort(snapped(prices)), np.argsort(prices))
    assert_array_equal(snapped(np.zeros(3)), 0)


def test_an_improvement_must_exceed_rounding():
    assert improves(1.0 + 1e-9, 1.0)
    assert not improves(1.0 + 1e-14, 1.0)
    assert improves(-1.0, -np.inf)
    assert not improves(-np.inf, -np.inf)
    assert improves(1e-200, 0.0)


def test_a_fingerprint_depends_on_the_numbers():
    X, y = np.arange(12.0).reshape(4, 3), np.array([0, 1, 0, 1])
    same = fingerprint(X, y)
    assert fingerprint(np.asfortranarray(X), y.astype(float)) == same
    others = [
        fingerprint(X.T, y[:3]),
        fingerprint(X + 1e-12, y),
        fingerprint(X, 1 - y),
        fingerprint(X, None),
        fingerprint(X, np.array(["a", "b", "a", "b"])),
    ]
    assert len({same, *others}) == 6


def test_scores_of_any_size_are_snapped_without_a_warning():
    prices = np.array([1e308, -1e308, 0.5, 3e-17])
    assert_array_equal(snapped(prices, noise=1e-13), [1e308, -1e308, 0.5, 0.0])


def test_an_integer_above_the_largest_float_is_not_a_finite_number():
    assert is_real(10**308)
    assert not is_real(10**400)
