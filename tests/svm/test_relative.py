"""Machines in the units of their data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tamis.svm.relative import RelativeSVR


@pytest.mark.parametrize("exponent", [-40, -10, 60])
def test_a_target_in_other_units(exponent):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = 0.3 * (X[:, 0] + X[:, 1] ** 2)
    plain = RelativeSVR(4.0).fit(X, y).predict(X)
    other = RelativeSVR(4.0).fit(X, np.ldexp(y, exponent)).predict(X)
    assert_allclose(np.ldexp(other, -exponent), plain, atol=2e-3 * y.std())
    assert np.abs(plain - y).mean() < 0.2 * y.std()
