"""Numbers of any size: the same answer, or a sentence, and never a warning of numpy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from tamis._arrays import check_range, in_range
from tamis.criteria import (
    HSIC,
    ColumnSubset,
    Correlation,
    CrossValidated,
    DiscriminantRatio,
    Divergence,
    FisherScore,
    KolmogorovSmirnov,
    KwakInformation,
    MutualInformation,
    ParzenInformation,
    Penalised,
    PValue,
    ReducedParzenInformation,
    Remembered,
    Scatter,
)
from tamis.exceptions import InvalidTable, SingularScatter
from tamis.search import Backward, Forward, RecursiveElimination
from tests.laws.catalogue import name, table

SCALE_FREE = [
    FisherScore(),
    DiscriminantRatio(),
    Correlation(),
    Correlation(task="regression"),
    PValue(),
    KolmogorovSmirnov(),
    MutualInformation(),
    Scatter("J1"),
    Scatter("J2"),
    Scatter("J3"),
    Scatter("J3", ridge=1e-3),
    Divergence(),
    Divergence(ridge=1e-3),
    HSIC(gamma="median"),
    CrossValidated(LinearDiscriminantAnalysis()),
]


@pytest.mark.parametrize("exponent", [1020, 600, -600, -1000])
@pytest.mark.parametrize("criterion", SCALE_FREE, ids=name)
def test_what_does_not_depend_on_the_scale_is_the_same_at_any(criterion, exponent):
    X, y = table()
    far = clone(criterion).fit(np.ldexp(X, exponent), y)
    near = clone(criterion).fit(X, y)
    subset, others = np.array([1, 4]), np.array([0, 2, 3])
    assert_allclose(far.gain(subset, others), near.gain(subset, others), rtol=1e-12)
    assert_allclose(far.loss(subset), near.loss(subset), rtol=1e-12)


@pytest.mark.parametrize("target", [Correlation(), PValue(), MutualInformation(), HSIC()], ids=name)
def test_targets_of_any_size(target):
    X, _ = table()
    y = X @ np.arange(7)
    subset, others = np.array([1]), np.arange(2, 7)
    expected = clone(target).fit(X, y).gain(subset, others)
    for exponent in (1010, -1000):
        far = clone(target).fit(X, np.ldexp(y, exponent))
        assert_allclose(far.gain(subset, others), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "search",
    [
        Backward(ParzenInformation(), standardize=False),
        Forward(KwakInformation(leave_one_out=True), standardize=False),
        RecursiveElimination(ReducedParzenInformation(), standardize=False),
        Backward(HSIC(), standardize=False),
        Forward(ColumnSubset(), standardize=False),
    ],
    ids=name,
)
@pytest.mark.parametrize("size", [1e200, 1.7e308])
def test_columns_too_large_to_be_squared_are_a_sentence(search, size):
    X, y = table()
    with pytest.raises(InvalidTable, match=r"column 0 reaches .* Scale it"):
        search.fit(np.clip(X, -1, 1) * size, y)


def test_columns_too_small_to_be_squared_are_a_sentence():
    with pytest.raises(InvalidTable, match="too small to be squared"):
        Forward(ColumnSubset(), standardize=False).fit(table()[0] * 1e-200)
    assert ColumnSubset().fit(np.zeros((4, 3))).value(np.array([1])) == 0


def test_the_largest_numbers_are_standardised():
    X, y = table()
    wide = np.clip(X, -1, 1)
    for criterion in (ColumnSubset(), ParzenInformation(), FisherScore()):
        far = Forward(criterion, n_features_to_select=3).fit(wide * 1.7e308, y)
        assert_array_equal(
            far.support_, Forward(criterion, n_features_to_select=3).fit(wide, y).support_
        )


@pytest.mark.parametrize("criterion", [FisherScore(), PValue(), DiscriminantRatio()], ids=name)
@pytest.mark.parametrize("search", [Backward, RecursiveElimination, Forward])
def test_infinity_less_infinity_is_looked_up_without_a_warning(search, criterion):
    X, y = table(n_classes=2)
    X = np.column_stack([X, y, 2.0 * y])
    for wrapped in (criterion, Remembered(criterion), Penalised(criterion)):
        assert search(wrapped, n_features_to_select=2).fit(X, y).support_[7]


def test_a_ratio_of_determinants_beyond_numbers_is_a_sentence():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(20), 30)
    X = rng.normal(size=(600, 19)) + 1e9 * rng.normal(size=(20, 19))[y]
    with pytest.raises(SingularScatter, match=r"Use Scatter\(\"J3\"\)"):
        Scatter("J2").fit(X, y).value(np.arange(19))


def test_in_range_touches_nothing_that_is():
    X, _ = table()
    assert in_range(X) is X
    check_range("it", X)
    X = np.column_stack([X, np.zeros(len(X)), np.full(len(X), 1e300)])
    scaled = in_range(X)
    assert_array_equal(scaled[:, :8], X[:, :8])
    assert 0.25 <= scaled[0, 8] <= 1
    together = in_range(X, together=True)
    assert np.unique(together[:, 0] / X[:, 0]).size == 1
