"""Dependence of columns compared with numpy and scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from tamis.exceptions import InvalidParameter
from tamis.neural import redundancy as module
from tamis.neural.redundancy import (
    KINDS,
    MeanDependence,
    PairMatrix,
    SquaredCorrelation,
    dependences,
)

DRAWS = np.random.default_rng(0)
MIXED = DRAWS.normal(size=(40, 6)) @ DRAWS.normal(size=(6, 6))
X = np.column_stack([MIXED, np.full(40, 3.7), -2 * MIXED[:, 0]])
CODES = np.arange(40) % 3


def dense(phi, n_columns=8):
    return phi.times(np.eye(n_columns))


def expected(kind, X):
    d = X.shape[1]
    phi = np.zeros((d, d))
    for i in range(d):
        for j in range(d):
            if i == j or X[:, i].std() < 1e-12 or X[:, j].std() < 1e-12:
                continue
            if kind == "information":
                a, b = (
                    np.digitize((X[:, c] - X[:, c].mean()) / X[:, c].std(), [-0.5, 0.5])
                    for c in (i, j)
                )
                own = [mutual_info_score(c, c) for c in (a, b)]
                phi[i, j] = mutual_info_score(a, b) / np.sqrt(own[0] * own[1])
            else:
                r = np.corrcoef(X[:, i], X[:, j])[0, 1]
                phi[i, j] = abs(r) if kind == "pearson" else r**2
    return phi


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("held", [True, False])
def test_dependence_is_computed_over_all_rows(kind, held, monkeypatch):
    if not held and kind == "squared":
        monkeypatch.setattr(module, "MOST_COLUMNS", 7)
    (phi,) = dependences(kind, X)
    assert isinstance(phi, PairMatrix) is (held or kind != "squared")
    want = expected(kind, X)
    np.testing.assert_allclose(dense(phi), want, atol=1e-10)
    np.testing.assert_allclose(phi.mean, want.sum() / (8 * 7), atol=1e-10)
    shares = DRAWS.normal(size=(3, 8))
    np.testing.assert_allclose(phi.times(shares), shares @ want, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_dependence_is_computed_inside_classes(kind):
    parts = dependences(kind, X, CODES, 3)
    want = [expected(kind, X[c == CODES]) for c in range(3)]
    for phi, part in zip(parts, want, strict=True):
        np.testing.assert_allclose(dense(phi), part, atol=1e-10)
    both = MeanDependence(parts)
    np.testing.assert_allclose(dense(both), np.mean(want, axis=0), atol=1e-10)
    np.testing.assert_allclose(both.mean, np.mean(want) * 8 / 7, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_duplicates_have_redundancy_1_and_constants_0(kind):
    phi = dense(dependences(kind, X)[0])
    assert phi[0, 7] == pytest.approx(1)
    assert np.all(phi[6] == 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_with_at_most_one_row_has_no_redundancy(kind):
    parts = dependences(kind, X, np.array([0] * 39 + [2]), 4)
    assert len(parts) == 4
    for empty in parts[1:]:
        assert np.all(dense(empty) == 0)
        assert empty.mean == 0
    np.testing.assert_allclose(dense(parts[0]), expected(kind, X[:39]), atol=1e-10)


def test_squared_correlations_are_computed_from_the_columns_if_that_is_faster():
    wide = DRAWS.normal(size=(5, 60))
    (little,), (much,) = dependences("squared", wide), dependences("squared", wide[:, :40])
    assert isinstance(little, SquaredCorrelation)
    assert isinstance(much, PairMatrix)


def test_wide_tables_are_stored_in_single_precision(monkeypatch):
    monkeypatch.setattr(module, "SINGLE_FROM", 8)
    (phi,) = dependences("pearson", X)
    assert phi.phi.dtype == np.float32
    np.testing.assert_allclose(dense(phi), expected("pearson", X), atol=1e-6)


def test_too_many_columns_are_refused_with_a_remedy(monkeypatch):
    monkeypatch.setattr(module, "MOST_COLUMNS", 7)
    with pytest.raises(InvalidParameter, match=r"redundancy='squared'"):
        dependences("pearson", X)
    dependences("squared", X)
