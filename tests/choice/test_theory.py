"""Bounds from learning theory, compared with brute force and hand calculations."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from tamis.choice import theory
from tamis.exceptions import InvalidParameter


def separable(X, signs):
    """Return whether a hyperplane with an intercept can produce these labels."""
    A = -signs[:, None] * np.column_stack([X, np.ones(len(X))])
    return linprog(np.zeros(A.shape[1]), A_ub=A, b_ub=-np.ones(len(X)), bounds=(None, None)).success


@pytest.mark.parametrize(("n_samples", "n_features"), [(3, 2), (4, 2), (5, 2), (5, 3), (4, 1)])
def test_labellings_match_a_linear_programme(n_samples, n_features):
    X = np.random.default_rng(0).normal(size=(n_samples, n_features))
    signs = [np.array(s) for s in product((-1.0, 1.0), repeat=n_samples)]
    found = sum(separable(X, s) for s in signs)
    assert theory.shatter_coefficient(n_samples, n_features) == found


def test_the_vc_dimension_is_the_largest_shattered_set():
    for n_features in (1, 2, 5):
        vc = theory.vc_of_perceptron(n_features)
        assert theory.shatter_coefficient(vc, n_features) == 2**vc
        assert theory.shatter_coefficient(vc + 1, n_features) < 2 ** (vc + 1)


@pytest.mark.parametrize("n_samples", [2, 5, 20])
@pytest.mark.parametrize("n_features", [1, 3, 7])
def test_bounds_exceed_the_quantities_they_bound(n_samples, n_features):
    vc = theory.vc_of_perceptron(n_features)
    exact = theory.shatter_coefficient(n_samples, n_features)
    tight = theory.shatter_bound(n_samples, vc, tight=True)
    assert exact <= tight <= theory.shatter_bound(n_samples, vc)


def test_values_agree_with_hand_calculations():
    # V = 10, N = 1000: 10 (ln 200 + 1) + ln 80 = 62.983 + 4.382 = 67.365
    assert theory.vc_confidence(1000, 10, 0.05) == pytest.approx(np.sqrt(0.067365), rel=1e-5)
    # 512 * 3 / 0.01 * ln(76800) = 153600 * 11.24896
    assert theory.sample_complexity(3, 0.1, 0.05) == pytest.approx(153600 * 11.24896, rel=1e-6)
    # if V is small compared with 1 / rho, the second term is larger, 256 / 0.25 * ln(8e30)
    assert theory.sample_complexity(1, 0.5, 1e-30) == np.ceil(1024 * np.log(8e30)) == 72865
    assert theory.vc_of_mlp(10, 5, n_nodes=6, n_weights=61) == (
        40,
        np.floor(122 * (np.log2(6) + np.log2(np.e))),
    )
    assert theory.vc_of_margin(3.0, 2.0, 100) == 19
    assert theory.vc_of_margin(3.0, 2.0, 5) == 6
    log_bound = np.log(8 * (10_000**2 + 1)) - 10_000 * 0.4**2 / 32
    assert theory.deviation_bound(10_000, 2, 0.4) == pytest.approx(np.exp(log_bound))
    assert theory.deviation_bound(40_000, 2, 0.4, of="excess") == pytest.approx(
        8 * (40_000**2 + 1) * np.exp(-40_000 * 0.16 / 128)
    )


def test_enough_rows_make_the_excess_unlikely():
    n_samples = theory.sample_complexity(2, 0.3, 0.1)
    assert theory.deviation_bound(n_samples, 2, 0.3, of="excess") <= 0.1


def test_the_structural_risk_trades_errors_for_columns():
    risk = theory.structural_risk([0.4, 0.1, 0.09], [2, 3, 200], 2000)
    assert risk.argmin() == 1
    assert np.isinf(theory.structural_risk([0.0], [40], 20)[0])


def test_the_structural_risk_accepts_every_bound_on_a_dimension():
    networks = [theory.vc_of_mlp(10, k, n_nodes=k + 1, n_weights=12 * k + 1) for k in (2, 4)]
    bounds = [networks[0].upper, networks[1].upper, theory.vc_of_margin(2.0, 1.5, 10)]
    risk = theory.structural_risk([0.2, 0.1, 0.3], [*bounds], 5000)
    expected = [
        error + np.sqrt((v * (np.log(10_000 / v) + 1) + np.log(80)) / 5000)
        for error, v in zip([0.2, 0.1, 0.3], bounds, strict=True)
    ]
    np.testing.assert_allclose(risk, expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.shatter_coefficient(0, 2),
        lambda: theory.shatter_bound(5, 1.5),
        lambda: theory.vc_confidence(10, 2, rho=1.0),
        lambda: theory.deviation_bound(10, 2, 0.0),
        lambda: theory.deviation_bound(10, 2, 0.1, of="all"),
        lambda: theory.sample_complexity(2, float("nan"), 0.1),
        lambda: theory.vc_of_margin(-1.0, 2.0, 3),
        lambda: theory.most_columns("ten"),
        lambda: theory.sample_complexity(2, 1e-200, 0.1),
        lambda: theory.structural_risk([0.1, 0.2], [3], 100),
        lambda: theory.structural_risk(0.1, 3, 100),
        lambda: theory.structural_risk([0.1], [2.7], 100),
        lambda: theory.aic("-10", 3),
        lambda: theory.aic(-10.0, -1),
        lambda: theory.bic(-10.0, 3, 0),
        lambda: theory.ebic(-10.0, 3, 100, 7, 5),
        lambda: theory.ebic(-10.0, 3, 0, 2, 5),
    ],
)
def test_an_impossible_number_is_refused(call):
    with pytest.raises(InvalidParameter, match="needs"):
        call()


def test_numpy_integers_do_not_overflow():
    n, vc = np.int64(1000), np.int64(50)
    assert theory.shatter_bound(n, vc) == 1000**50 + 1
    assert theory.shatter_bound(np.int64(70), np.int64(80)) == 2**70
    assert theory.shatter_bound(n, vc, tight=True) == theory.shatter_bound(1000, 50, tight=True)
    assert theory.deviation_bound(n, vc, 0.1) == 1.0
    assert theory.vc_of_margin(1e200, 1.0, 5) == 6
