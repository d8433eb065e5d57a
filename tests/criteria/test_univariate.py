"""The filters compared with scipy and scikit-learn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats
from scipy.special import betaln
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.feature_selection import f_classif, f_regression, r_regression
from sklearn.metrics import mutual_info_score

from tamis.criteria import (
    Correlation,
    DiscriminantRatio,
    FisherScore,
    KolmogorovSmirnov,
    MutualInformation,
    PValue,
)
from tamis.density.discrete import Coded
from tamis.exceptions import InvalidParameter, InvalidTarget

CLASSES = [load_iris, load_wine, load_breast_cancer]


def discretised(X, n_bins):
    """Return columns as codes."""
    return Coded(X, n_bins).codes.T


@pytest.mark.parametrize("load", CLASSES)
def test_fisher_score_agrees_with_anova(load):
    X, y = load(return_X_y=True)
    c, n = len(np.unique(y)), len(y)
    assert_allclose(FisherScore().fit(X, y).scores_, f_classif(X, y)[0] * (c - 1) / (n - c))


@pytest.mark.parametrize("load", CLASSES)
def test_discriminant_ratio_agrees_with_its_formula(load):
    X, y = load(return_X_y=True)
    expected = np.zeros(X.shape[1])
    for k in np.unique(y):
        for other in np.unique(y):
            if k < other:
                a, b = X[y == k], X[y == other]
                expected += (a.mean(0) - b.mean(0)) ** 2 / (a.var(0) + b.var(0))
    assert_allclose(DiscriminantRatio().fit(X, y).scores_, expected)


def test_correlation_agrees_with_pearson():
    X, y = load_diabetes(return_X_y=True)
    assert_allclose(Correlation().fit(X, y).scores_, np.abs(r_regression(X, y)))
    X, y = load_breast_cancer(return_X_y=True)
    assert_allclose(Correlation().fit(X, y).scores_, np.abs(r_regression(X, y)))


def test_several_classes_are_scored_by_the_correlation_ratio():
    X, y = load_wine(return_X_y=True)
    f = f_classif(X, y)[0]
    share = 2 * f / (2 * f + len(y) - 3)
    assert_allclose(Correlation().fit(X, y).scores_, np.sqrt(share))


@pytest.mark.parametrize("load", CLASSES)
def test_kolmogorov_smirnov_agrees_with_scipy(load):
    X, y = load(return_X_y=True)
    expected = [
        max(stats.ks_2samp(column[y == k], column[y != k]).statistic for k in np.unique(y))
        for column in X.T
    ]
    assert_allclose(KolmogorovSmirnov().fit(X, y).scores_, expected)


@pytest.mark.parametrize("load", CLASSES)
def test_p_values_agree_with_the_f_test(load):
    X, y = load(return_X_y=True)
    p = np.exp(-PValue().fit(X, y).scores_)
    assert_allclose(p, f_classif(X, y)[1], rtol=1e-6)


def test_p_values_of_a_regression_agree_with_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    assert_allclose(np.exp(-PValue().fit(X, y).scores_), f_regression(X, y)[1], rtol=1e-8)


def test_p_values_of_two_classes_agree_with_students_t_test():
    X, y = load_breast_cancer(return_X_y=True)
    expected = stats.ttest_ind(X[y == 0], X[y == 1]).pvalue
    assert_allclose(np.exp(-PValue().fit(X, y).scores_), expected, rtol=1e-6)


def test_p_values_do_not_underflow():
    """The more significant of two columns wins, although both p-values underflow to 0."""
    noise = np.random.default_rng(0).normal(size=(2000, 2))
    y = np.repeat([0, 1], 1000)
    X = noise + np.outer(y, [20, 30])
    scores = PValue().fit(X, y).scores_
    assert np.isfinite(scores).all()
    assert scores[1] > scores[0] > 700  # exp(-700) is near the smallest float
    # the incomplete beta integral with its vanishing factor x^a taken out
    a, b = 999.0, 0.5
    for score, share in zip(scores, Correlation().fit(X, y).scores_ ** 2, strict=True):
        x = 1 - share
        rest = integrate.quad(
            lambda v, x=x: np.exp(-v) * (1 - x * np.exp(-v / a)) ** (b - 1), 0, 60
        )
        expected = -(a * np.log(x) + np.log(rest[0]) - np.log(a) - betaln(a, b))
        assert_allclose(score, expected, rtol=1e-8)


def test_too_few_degrees_of_freedom_are_refused():
    with pytest.raises(InvalidParameter, match="degrees of freedom"):
        PValue().fit(np.eye(3), [0, 1, 2])


@pytest.mark.parametrize("load", CLASSES)
@pytest.mark.parametrize("n_bins", [2, 5, None])
def test_mutual_information_agrees_with_scikit_learn(load, n_bins):
    X, y = load(return_X_y=True)
    codes = discretised(X, n_bins or int(np.ceil(np.cbrt(len(X)))))
    expected = [mutual_info_score(y, column) for column in codes.T]
    assert_allclose(MutualInformation(n_bins=n_bins).fit(X, y).scores_, expected, atol=1e-12)


def test_mutual_information_accepts_a_numeric_target():
    X, y = load_diabetes(return_X_y=True)
    codes, target = discretised(X, 6), discretised(y[:, None], 6)[:, 0]
    expected = [mutual_info_score(target, column) for column in codes.T]
    assert_allclose(MutualInformation(n_bins=6).fit(X, y).scores_, expected, atol=1e-12)
    with pytest.raises(InvalidParameter, match="n_bins to be an int of at least 2 or None"):
        MutualInformation(n_bins=1).fit(X, y)


def test_bins_have_equal_frequency_and_equal_values_share_a_bin():
    column = np.random.default_rng(0).permutation(100).astype(float)
    assert_array_equal(np.bincount(discretised(column[:, None], 5)[:, 0]), [20] * 5)
    tied = np.repeat([3.0, 1.0, 2.0, 9.0], [70, 10, 10, 10])
    codes = discretised(tied[:, None], 3)[:, 0]
    for value in np.unique(tied):
        assert len(np.unique(codes[tied == value])) == 1
    few = np.array([5.0, 5.0, -1.0, 2.0])
    assert_array_equal(discretised(few[:, None], 3)[:, 0], [2, 2, 0, 1])


@pytest.mark.parametrize(
    "criterion", [FisherScore(), DiscriminantRatio(), Correlation(), KolmogorovSmirnov(), PValue()]
)
@pytest.mark.parametrize("constant", [0.0, 1e6 + 0.1, -3e-9])
def test_a_constant_column_scores_0(criterion, constant):
    X, y = load_iris(return_X_y=True)
    scores = criterion.fit(np.column_stack([X, np.full(150, constant)]), y).scores_
    assert scores[-1] == 0
    assert (scores[:-1] > 0).all()


def test_a_column_that_is_constant_in_each_class_scores_infinity():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, y])
    for criterion in (FisherScore(), DiscriminantRatio(), PValue()):
        assert criterion.fit(X, y).scores_[-1] == np.inf
    assert Correlation().fit(X, y).scores_[-1] == 1


def test_how_the_target_is_read():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.arange(60) % 3
    assert Correlation().fit(X, y).task_ == "classification"
    assert Correlation(task="regression").fit(X, y).task_ == "regression"
    assert Correlation().fit(X, np.arange(60)).task_ == "regression"
    assert PValue(task="classification").fit(X, np.arange(60) // 2).task_ == "classification"
    with pytest.raises(InvalidParameter, match="task='auto'"):
        Correlation(task="number").fit(X, y)
    with pytest.raises(InvalidTarget, match="numeric target"):
        Correlation(task="regression").fit(X, np.array(["a", "b", "c"])[y])
