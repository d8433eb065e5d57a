"""Kernels without a column, or with a scaled one, compared with explicit kernels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tamis.svm.columns import ColumnKernel
from tamis.svm.kernels import Kernel

KERNELS = [
    Kernel("rbf", 0.01),
    Kernel("rbf", 0.4),
    Kernel("rbf", 5.0),  # too narrow for the series
    Kernel("linear"),
    Kernel("poly", 0.3, 3, 1.0),
    Kernel("poly", 0.5, 2, 0.0),
    Kernel("poly", 0.5, 1, 0.5),
]


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 9))
    X[:, 3] *= 4
    X[5, 7] = 9.0  # an outlier: its column needs a longer series, or exponentials
    X[:, 8] = 2.0
    return X


@pytest.fixture(scope="module")
def beta():
    beta = np.random.default_rng(1).normal(size=70)
    beta[::3] = 0
    return beta


def explicit(kernel, X, j):
    rest = np.delete(X, j, axis=1)
    return kernel(rest, rest)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
class TestRemoval:
    def test_the_kernel_matrix_without_a_column_agrees_with_an_explicit_one(self, kernel, X):
        columns = ColumnKernel(kernel, X)
        assert_allclose(columns.K, kernel(X, X), atol=1e-12)
        for j in range(9):
            assert_allclose(columns.without(j), explicit(kernel, X, j), rtol=1e-9, atol=1e-12)

    def test_quadratic_forms_agree_with_explicit_matrices(self, kernel, X, beta):
        expected = [beta @ explicit(kernel, X, j) @ beta for j in range(9)]
        columns = ColumnKernel(kernel, X)
        held = beta @ columns.K @ beta
        assert_allclose(held - columns.lost(beta), expected, rtol=1e-10)

    def test_restriction_to_some_rows_agrees_with_a_smaller_table(self, kernel, X, beta):
        rows = np.array([2, 3, 11, 40])
        whole = ColumnKernel(kernel, X)
        assert whole.K.shape == (70, 70)
        part = whole.restricted(rows)
        assert_allclose(part.K, kernel(X[rows], X[rows]), atol=1e-12)
        assert_allclose(part.without(2), explicit(kernel, X[rows], 2), atol=1e-12)
        assert_allclose(
            part.lost(beta[rows]),
            ColumnKernel(kernel, X[rows]).lost(beta[rows]),
            rtol=1e-9,
            atol=1e-12,
        )

    def test_weights_of_0_lose_nothing(self, kernel, X):
        assert (ColumnKernel(kernel, X).lost(np.zeros(70)) == 0).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
class TestScaling:
    step = 1e-5

    def moved(self, kernel, X, j):
        """Return the difference of kernel matrices with column j a little larger and smaller."""
        matrices = []
        for scale in (1 + self.step, 1 - self.step):
            scaled = X.copy()
            scaled[:, j] *= scale
            matrices.append(kernel(scaled, scaled))
        return (matrices[0] - matrices[1]) / (2 * self.step)

    def test_sums_of_slopes_agree_with_explicit_derivatives(self, kernel, X):
        weights = np.random.default_rng(2).normal(size=(70, 70))
        weights += weights.T
        expected = [(weights * self.moved(kernel, X, j)).sum() for j in range(9)]
        found = ColumnKernel(kernel, X).slopes(weights)
        assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())

    def test_products_with_slopes_agree_with_explicit_derivatives(self, kernel, X, beta):
        expected = np.column_stack([self.moved(kernel, X, j) @ beta for j in range(9)])
        found = ColumnKernel(kernel, X).slope_times(beta)
        assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def test_the_kernel_without_a_column_may_have_a_different_width():
    X = np.random.default_rng(3).normal(size=(10, 4))
    found = ColumnKernel(Kernel("rbf", 0.25), X).without(1, Kernel("rbf", 1 / 3))
    assert_allclose(found, explicit(Kernel("rbf", 1 / 3), X, 1), rtol=1e-12)


def lost(kernel, X, beta, j):
    """Return the difference of the forms without loss of digits."""
    moved = np.expm1(kernel.gamma * np.subtract.outer(X[:, j], X[:, j]) ** 2)
    return -beta @ (kernel(X, X) * moved) @ beta


@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_many_columns_may_be_far_from_the_origin(shift):
    rng = np.random.default_rng(4)
    X, beta = rng.normal(size=(90, 300)), rng.normal(size=90)
    kernel = Kernel("rbf", 1 / 300)
    found = ColumnKernel(kernel, X + shift).lost(beta)
    expected = [lost(kernel, X, beta, j) for j in range(300)]
    assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


def test_small_differences_keep_their_digits():
    """Each of 3000 columns changes the form by about a 3000th, and no digits are lost."""
    rng = np.random.default_rng(6)
    X, beta = rng.normal(size=(30, 3000)), rng.normal(size=30)
    kernel = Kernel("rbf", 1e-3 / 3000)
    found = ColumnKernel(kernel, X).lost(beta)[:40]
    expected = np.array([lost(kernel, X, beta, j) for j in range(40)])
    assert np.abs(expected).max() < 1e-4 * (beta @ kernel(X, X) @ beta)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-13 * np.abs(expected).max())


def test_large_numbers_do_not_overflow_with_a_wide_kernel():
    """Powers of the columns would overflow if columns were not scaled by gamma."""
    rng = np.random.default_rng(5)
    X, beta = 1e8 * rng.normal(size=(40, 5)), rng.normal(size=40)
    kernel = Kernel("rbf", 0.1e-16)
    expected = [lost(kernel, X, beta, j) for j in range(5)]
    assert_allclose(ColumnKernel(kernel, X).lost(beta), expected, rtol=1e-9)
