"""A column with a huge range: removing it gives the same result as a table without it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tamis.compiled import thresholds
from tamis.criteria import HSIC, KwakInformation, ParzenInformation

CRITERIA = [
    HSIC(),
    HSIC(gamma=0.1, unbiased=False),
    ParzenInformation(sigma=2.0),
    ParzenInformation(sigma=2.0, leave_one_out=True),
    KwakInformation(sigma=2.0),
]


@pytest.mark.parametrize("criterion", CRITERIA, ids=str)
@pytest.mark.parametrize("far", [1e6, 1e9])
@pytest.mark.parametrize("terms", [0, 1e9], ids=["large", "small"])
def test_removing_a_far_column_keeps_the_digits_of_the_others(criterion, far, terms, monkeypatch):
    monkeypatch.setattr(thresholds, "KERNEL_TERMS", terms)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 6)), np.arange(40) % 2
    X[:, 0] *= far
    fitted, everything = criterion.fit(X, y), np.arange(6)
    found = fitted.loss(everything)[0]
    alone = fitted.value(everything) - criterion.fit(X[:, 1:], y).value(np.arange(5))
    assert_allclose(found, alone, rtol=1e-9)
