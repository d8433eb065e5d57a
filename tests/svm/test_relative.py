"""SVMs with parameters relative to their data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.svm import SVC

from tamis.response.tuners import least_squares
from tamis.svm.relative import RelativeSVC, RelativeSVR


@pytest.mark.parametrize("exponent", [-40, -10, 60])
def test_the_unit_of_the_target_does_not_matter(exponent):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = 0.3 * (X[:, 0] + X[:, 1] ** 2)
    plain = RelativeSVR(4.0).fit(X, y).predict(X)
    other = RelativeSVR(4.0).fit(X, np.ldexp(y, exponent)).predict(X)
    assert_allclose(np.ldexp(other, -exponent), plain, atol=2e-3 * y.std())
    assert np.abs(plain - y).mean() < 0.2 * y.std()


def test_constant_columns_are_not_counted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] + X[:, 1] ** 2
    more = np.insert(X, 1, 5.0, axis=1)
    for machine, target in ((RelativeSVC(scale=2.0), y > 0), (RelativeSVR(scale=2.0), y)):
        plain = machine.fit(X, target).predict(X)
        for table in (more, csr_array(more)):
            assert machine.fit(table, target).gamma == 2 / 3
        assert_allclose(machine.fit(more, target).predict(more), plain)
    assert least_squares(more, y) == least_squares(X, y)
    # as scikit-learn counts them
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    theirs = SVC().fit(np.insert(scaled, 1, 0.0, axis=1), y > 0)
    assert_allclose(RelativeSVC().fit(more, y > 0).gamma, theirs._gamma)
