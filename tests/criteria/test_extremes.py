"""Numbers of any size give the same result or a clear error, and never a warning of numpy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from tamis._arrays import check_range, column_means, in_range
from tamis.criteria import (
    CMIM,
    HSIC,
    MIFS,
    ColumnSubset,
    Correlation,
    CrossValidated,
    DensitySensitivity,
    DiscriminantRatio,
    Divergence,
    FisherScore,
    Importances,
    KolmogorovSmirnov,
    KwakInformation,
    MutualInformation,
    ParzenInformation,
    Penalised,
    PValue,
    ReducedParzenInformation,
    RelativeSVC,
    RelativeSVR,
    Remembered,
    Scatter,
    ScoreSensitivity,
    WeightNorm,
)
from tamis.exceptions import (
    DegenerateData,
    InvalidParameter,
    InvalidTable,
    InvalidTarget,
    NotConverged,
    SingularScatter,
)
from tamis.response import fold_models
from tamis.search import Backward, Forward, RecursiveElimination
from tamis.testing.problem import make_table as table
from tests.laws.catalogue import name

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
def test_scale_invariant_criteria_work_at_any_scale(criterion, exponent):
    X, y = table()
    far = clone(criterion).fit(np.ldexp(X, exponent), y)
    near = clone(criterion).fit(X, y)
    subset, others = np.array([1, 4]), np.array([0, 2, 3])
    assert_allclose(far.gain(subset, others), near.gain(subset, others), rtol=1e-12)
    assert_allclose(far.loss(subset), near.loss(subset), rtol=1e-12)


@pytest.mark.parametrize("target", [Correlation(), PValue(), MutualInformation(), HSIC()], ids=name)
def test_targets_of_any_scale(target):
    X, _ = table()
    y = X @ np.arange(7)
    subset, others = np.array([1]), np.arange(2, 7)
    expected = clone(target).fit(X, y).gain(subset, others)
    for exponent in (1010, -1000):
        far = clone(target).fit(X, np.ldexp(y, exponent))
        assert_allclose(far.gain(subset, others), expected, rtol=1e-12)


@pytest.mark.parametrize("binning", ["frequency", "width", "codes"])
@pytest.mark.parametrize("criterion", [CMIM, MIFS, MutualInformation])
def test_levels_are_separated_at_both_ends_of_the_float_range(criterion, binning):
    X, y = table()
    ends = np.sign(X)
    far = criterion(binning=binning).fit(1.7e308 * ends, y)
    near = criterion(binning=binning).fit(ends, y)
    assert_array_equal(
        far.gain(np.array([1]), np.array([0, 2, 3])), near.gain(np.array([1]), np.array([0, 2, 3]))
    )


def test_distribution_functions_at_both_ends_of_the_float_range():
    X, y = table()
    far, near = (KolmogorovSmirnov().fit(size * np.sign(X), y) for size in (1.7e308, 1.0))
    assert_array_equal(far.scores_, near.scores_)


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
def test_columns_too_large_to_be_squared_are_refused(search, size):
    X, y = table()
    with pytest.raises(InvalidTable, match=r"column 0 reaches .* Scale it"):
        search.fit(np.clip(X, -1, 1) * size, y)


@pytest.mark.parametrize(
    "criterion",
    [
        DensitySensitivity(Ridge(), n_values=4),
        DensitySensitivity(Ridge(), noise="gaussian", n_values=4),
        ScoreSensitivity(Ridge(), n_values=4),
        ScoreSensitivity(Ridge(), scoring="neg_mean_squared_error", n_values=4),
        HSIC(target_kernel="linear"),
        Importances(Ridge()),
    ],
    ids=name,
)
def test_targets_too_large_to_be_squared_are_refused(criterion):
    X, _ = table()
    with pytest.raises(InvalidTarget, match=r"squares the (target|coefficients).*Scale"):
        Backward(criterion).fit(X, X @ np.arange(7) * 1e200)


@pytest.mark.parametrize(
    "criterion",
    [
        DensitySensitivity(Ridge(), n_values=4),
        CrossValidated(Ridge(), cv=2),
        Importances(Ridge()),
    ],
    ids=name,
)
def test_a_model_that_overflows_is_reported(criterion):
    X, _ = table()
    far = X * np.where(np.arange(7) == 2, 1e200, 1)
    with pytest.raises(InvalidTable, match=r"Ridge cannot be trained .*e\+200.* Scale"):
        Backward(criterion, standardize=False).fit(far, X[:, 0])
    assert Backward(criterion).fit(far, X[:, 0]).support_[0]


def test_the_failure_of_a_model_is_explained():
    _, y = table()
    with pytest.raises(InvalidTable, match=r"LinearDiscriminantAnalysis cannot be trained on"):
        Importances(LinearDiscriminantAnalysis()).fit(np.ones((len(y), 3)), y).loss(np.arange(3))


def test_warnings_of_a_model_become_warnings_of_tamis():
    X = np.repeat(np.eye(4), 2, axis=0)[:, :1].repeat(20, axis=1)
    with pytest.warns(DegenerateData, match="A model warned about its rows: Singular matrix"):
        Importances(Ridge(alpha=0)).fit(X, np.arange(8.0)).loss(np.arange(20))


def test_an_ill_conditioned_matrix_causes_a_warning_of_tamis():
    X, _ = table()
    X[0, 1] = 1e150
    with pytest.warns(DegenerateData, match="A model warned about its rows: .*ll-conditioned"):
        Importances(Ridge()).fit(X, X[:, 0]).loss(np.arange(7))


def test_the_mean_of_the_largest_numbers():
    X = np.array([[1.7e308, 1.0], [1.7e308, 2.0], [1.7e308, 4.0]])
    assert_allclose(column_means(X), [1.7e308, 7 / 3], rtol=1e-15)
    assert_array_equal(column_means(table()[0]), table()[0].mean(axis=0))


def test_columns_too_small_to_be_squared_are_refused():
    with pytest.raises(InvalidTable, match=r"squares the columns.*too small"):
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
def test_infinity_minus_infinity_causes_no_warning(search, criterion):
    X, y = table(n_classes=2)
    X = np.column_stack([X, y, 2.0 * y])
    for wrapped in (criterion, Remembered(criterion), Penalised(criterion)):
        assert search(wrapped, n_features_to_select=2).fit(X, y).support_[7]


def test_a_ratio_of_determinants_that_overflows_is_refused():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(20), 30)
    X = rng.normal(size=(600, 19)) + 1e9 * rng.normal(size=(20, 19))[y]
    with pytest.raises(SingularScatter, match=r"Use Scatter\(\"J3\"\)"):
        Scatter("J2").fit(X, y).value(np.arange(19))


def test_in_range_returns_numbers_in_range_unchanged():
    X, _ = table()
    assert in_range(X) is X
    check_range("it", X)
    X = np.column_stack([X, np.zeros(len(X)), np.full(len(X), 1e300)])
    scaled = in_range(X)
    assert_array_equal(scaled[:, :8], X[:, :8])
    assert 0.25 <= scaled[0, 8] <= 1
    together = in_range(X, together=True)
    assert np.unique(together[:, 0] / X[:, 0]).size == 1


def test_huge_weights_are_refused():
    X, y = table()
    weights = np.where(np.arange(len(y)) % 3, 1.0, 1e200)
    with pytest.raises(InvalidParameter, match=r"at most 1e\+09, got 1e\+200.*Divide them"):
        Backward(Importances(Ridge())).fit(X, X[:, 0], sample_weight=weights)


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.r_[1.0, 1.0, -2.0, np.ones(57)], r"at least 0 for each row.*-2\.0 in row 2\. Leave"),
        (np.r_[np.nan, np.ones(59)], "nan in row 0"),
        (np.r_[np.ones(59), np.inf], "inf in row 59"),
        (np.zeros(60), "and one above 0, but got only 0"),
        (["heavy"] * 60, "heavy in row 0"),
        (np.ones((60, 2)), r"\[1\. 1\.\] in row 0"),
        (3.0, r"one sample_weight per row: 60, not 3\.0"),
    ],
)
@pytest.mark.parametrize(
    "criterion",
    [Importances(Ridge()), WeightNorm(SVR()), DensitySensitivity(Ridge()), CrossValidated(Ridge())],
    ids=lambda criterion: type(criterion).__name__,
)
def test_invalid_weights_are_refused(criterion, weights, sentence):
    X, _ = table()
    with pytest.raises(InvalidParameter, match=sentence):
        criterion.fit(X, X[:, 0], sample_weight=weights)


@pytest.mark.parametrize("machine", [SVC(C=1e3), make_pipeline(StandardScaler(), SVC(C=1e3))])
def test_an_svm_that_does_not_converge_ends_with_a_warning(machine, monkeypatch):
    monkeypatch.setattr(fold_models, "most_steps", lambda n_rows: 20)
    X, y = table()
    with pytest.warns(NotConverged, match="did not converge"):
        CrossValidated(machine, cv=2).fit(X, y).value(np.array([1, 2]))


def test_a_given_limit_of_iterations_is_not_changed():
    X, y = table()
    assert fold_models.fit_clone(SVC(max_iter=7_000), X, y, {}).max_iter == 7_000
    for machine in (SVC(), RelativeSVC(), RelativeSVR()):
        assert fold_models.fit_clone(machine, X, y, {}).max_iter == 1_000_000
