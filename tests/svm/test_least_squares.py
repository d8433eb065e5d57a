"""The least-squares SVM at every C, compared with retraining, grids and dense samples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.estimator_checks import check_estimator

from tamis.exceptions import InvalidParameter, InvalidTable, InvalidTarget
from tamis.svm import LSSVCPathCV, NewtonSVR
from tamis.svm.path.least_squares import Doubts, LeastSquaresPath, RationalOutputs


def problem(n=70, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] * X[:, 1] + 0.7 * rng.normal(size=n) > 0, 1, -1)


def folds_error(X, y, C, gamma, splits):
    """Return the mean error over the folds of SVMs trained at one C."""
    errors = []
    for train, test in splits:
        machine = NewtonSVR(C, epsilon=0.0, gamma=gamma).fit(X[train], y[train])
        errors.append(np.mean((machine.predict(X[test]) > 0) != (y[test] > 0)))
    return np.mean(errors)


def test_outputs_at_every_C_agree_with_trained_svms():
    X, y = problem()
    rows, new = X[:50], X[50:]
    path = LeastSquaresPath(rbf_kernel(rows, gamma=0.4), y[:50].astype(float))
    outputs = path.outputs(rbf_kernel(new, rows, gamma=0.4))
    for C in (1e-3, 0.5, 40.0):
        machine = NewtonSVR(C, epsilon=0.0, gamma=0.4).fit(rows, y[:50])
        assert_allclose(outputs(1 / (2 * C)), machine.predict(new), atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_every_sign_change_is_found(seed):
    rng = np.random.default_rng(seed)
    poles = np.exp(rng.uniform(-8, 5, 40))
    A = rng.normal(size=(30, 40)) * poles
    outputs = RationalOutputs(A, np.ones(40), poles, 0.3, Doubts(1e-14, np.full(30, 1e-14), 1e-14))
    first, changes = outputs.sign_changes(1e-4, 1e3)
    places = np.geomspace(1e-4, 1e3, 4001)
    dense = np.array([outputs(lam) > 0 for lam in places]).T
    assert (first == dense[:, 0]).all()
    for row in range(30):
        own = [one for one in changes if one.row == row]
        sign, before = first[row], 0.0
        for one in own:
            assert one.low > before
            assert one.below == sign
            assert np.log(one.high / one.low) < 1e-6
            sign, before = one.above, one.high
        middles = np.array([np.sqrt(one.low * one.high) for one in own])
        told = (np.searchsorted(middles, places) % 2 == 1) != first[row]
        assert (told == dense[row]).mean() > 0.999  # except two roots between two grid points
        assert len(own) >= np.count_nonzero(np.diff(dense[row].astype(int)))


@pytest.mark.parametrize("gamma", [0.3, [0.05, 1.0]])
def test_no_C_of_a_grid_is_better(gamma):
    X, y = problem()
    splits = list(StratifiedKFold(4).split(X, y))
    search = LSSVCPathCV(gamma=gamma, cv=splits, C_range=(1e-3, 1e3)).fit(X, y)
    proof = search.certificate_
    assert proof.closed
    assert proof.lower == proof.upper == pytest.approx(1 - search.best_score_)
    own = folds_error(X, y, search.best_C_, search.best_gamma_, splits)
    assert own == pytest.approx(proof.value, abs=1e-12)
    for one in np.atleast_1d(gamma):
        grid = [folds_error(X, y, C, one, splits) for C in np.geomspace(1.1e-3, 900, 25)]
        assert min(grid) >= proof.lower - 1e-12
        if one == search.best_gamma_:
            assert_allclose(search.curve_(np.geomspace(1.1e-3, 900, 25)), grid, atol=1e-12)
    assert "no C in [0.001, 1000]" in repr(proof)


def test_an_undecidable_certificate_stays_open():
    """Duplicate rows have opposite labels, so outputs are 0 up to rounding at every C."""
    X = np.repeat(np.random.default_rng(0).normal(size=(12, 2)), 2, axis=0)
    y = np.tile([0, 1], 12)
    splits = [(np.arange(16), np.arange(16, 24)), (np.arange(8, 24), np.arange(8))]
    proof = LSSVCPathCV(cv=splits).fit(X, y).certificate_
    assert not proof.closed
    assert proof.lower == 0 < proof.upper
    assert "a value of 0 cannot be excluded" in repr(proof)


def test_scikit_learn_checks():
    check_estimator(LSSVCPathCV(cv=2), on_skip=None)


def test_invalid_parameters_are_refused():
    X, y = problem(20)
    with pytest.raises(InvalidParameter, match="kernel to be 'rbf'"):
        LSSVCPathCV("sigmoid").fit(X, y)
    with pytest.raises(InvalidParameter, match="a pair of increasing numbers"):
        LSSVCPathCV(C_range=(1.0, 0.5)).fit(X, y)
    with pytest.raises(InvalidTarget, match="OneVsRestClassifier"):
        LSSVCPathCV().fit(X, np.arange(20) % 3)
    with pytest.raises(InvalidTarget, match="every class in every training fold"):
        LSSVCPathCV(cv=[(np.flatnonzero(y > 0), np.flatnonzero(y < 0))]).fit(X, y)


@pytest.mark.parametrize("seed", range(6))
def test_outputs_that_are_0_up_to_rounding_leave_the_certificate_open(seed):
    rng = np.random.default_rng(seed)
    # so far apart that new rows have a kernel of 0
    X = rng.permutation(np.arange(12.0))[:, None]
    y = rng.permutation(12) % 2
    search = LSSVCPathCV(gamma=1e6, cv=StratifiedKFold(3)).fit(X, y)
    assert not search.certificate_.closed
    assert search.certificate_.lower == 0


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("shift", [2.0**20, -(2.0**24)])
def test_the_path_does_not_depend_on_the_origin(kernel, shift):
    X, y = problem(40)
    X = np.round(X * 256) / 256  # so that the shift causes no rounding
    X[:, 2] *= 2.0**4
    options = {"gamma": 2.0**-8, "C_range": (1e-3, 1e4), "cv": 3}
    here = LSSVCPathCV(kernel, **options).fit(X, y)
    there = LSSVCPathCV(kernel, **options).fit(X + shift, y)
    assert here.certificate_.closed
    assert there.certificate_.closed
    assert here.best_score_ == there.best_score_
    places = np.geomspace(2e-3, 9e3, 500)
    assert np.mean([here.curve_(C) != there.curve_(C) for C in places]) < 0.01


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"kernel": "poly", "degree": 2, "coef0": -1.0}, "coef0 of at least 0"),
        ({"kernel": np.eye(2)}, "needs kernel to be 'rbf'"),
        ({"gamma": []}, "needs gamma to be a number above 0"),
        (
            {"C_range": (1e-300, 1e300)},
            "needs C_range to be a pair of increasing numbers from 1e-100",
        ),
        ({"cv": []}, "at least one fold"),
        ({"cv": [(np.arange(40), np.arange(0))]}, "needs training and test rows"),
    ],
)
def test_unsupported_options_are_refused(options, match):
    X, y = problem(40)
    with pytest.raises(InvalidParameter, match=match):
        LSSVCPathCV(**options).fit(X, y)


def test_columns_that_overflow_are_refused():
    X, y = problem(40)
    with pytest.raises(InvalidTable, match="too large for a number"):
        LSSVCPathCV("linear").fit(X * 1e200, y)
