"""Single precision gives the order of double precision, and the same lowest tenth of columns."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from tamis import _namespace
from tamis._namespace import host
from tamis.criteria import (
    HSIC,
    DensitySensitivity,
    KwakInformation,
    ParzenInformation,
    PosteriorSensitivity,
)
from tamis.density.series.outputs import output_changes
from tamis.exceptions import InvalidParameter
from tamis.svm import NewtonSVC, NewtonSVR

#: Documented agreement of ranks.
SPEARMAN = 0.99999


def problem(n=500, d=100, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 3] *= 3
    X[:, 5] = X[:, 5] > 0
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=n) > 0
    X[y, 7:30] += 0.2 * rng.normal(size=23)
    return X, y


def alike(exact, single):
    k = len(exact) // 10
    lowest = (set(np.argsort(scores)[:k]) for scores in (exact, single))
    assert spearmanr(exact, single)[0] >= SPEARMAN
    assert set.intersection(*lowest) == set(np.argsort(exact)[:k])
    assert np.abs(single - exact).max() <= 2e-5 * np.abs(exact).max()


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize(
    "criterion",
    [HSIC(), HSIC(gamma=0.3), ParzenInformation(sigma=8.0),
     ParzenInformation(sigma=8.0, leave_one_out=True),
     ParzenInformation(sigma=3.0, leave_one_out=True),
     KwakInformation(sigma=8.0, leave_one_out=True)],
    ids=str,
)  # fmt: skip
def test_losses_agree_with_double_precision(criterion, device):
    if device:
        pytest.importorskip("torch", reason="torch is not installed")
    X, y = problem()
    found = []
    with _namespace.computing_on(device):
        for precision in ("double", "single"):
            criterion.set_params(precision=precision)
            found.append(criterion.fit(X, y).loss(np.arange(X.shape[1])))
    assert not np.array_equal(*found)
    alike(*found)


@pytest.mark.parametrize("scale", [1.0, 5.0])  # at the larger most probabilities are near 0 or 1
def test_posteriors_of_an_svm_agree_with_double_precision(scale):
    X, y = problem(300)
    gamma, machine = 1 / X.shape[1], NewtonSVC(gamma=1 / X.shape[1]).fit(X, y)
    A = -2.0 * scale
    p = 1 / (1 + np.exp(A * machine.decision_function(X)))
    quantiles = np.quantile(X, (np.arange(16) + 0.5) / 16, axis=0)
    found = []
    for kind in (np.float64, np.float32):
        parts = X, machine.support_vectors_, machine.dual_coef_.T, quantiles
        rows, centres, weights, points = (part.astype(kind) for part in parts)
        total = np.zeros(X.shape[1])
        for part in output_changes(rows, centres, weights, points, gamma=gamma):
            # p(f + df) - p(f) as a product, without cancellation
            t = np.expm1(kind(-A) * host(part.change)[0])
            own, slope = ((v[part.rows].astype(kind))[:, None, None] for v in (p, p * (1 - p)))
            moved = np.abs(slope * t / (1 + own * t))
            total[part.columns] += moved.astype(float).sum(axis=(0, 2))
        found.append(total / (len(X) * 16))
    alike(*found)


@pytest.mark.parametrize(
    "criterion",
    [PosteriorSensitivity(NewtonSVC(), n_values=16, calibration=0.25, random_state=0),
     PosteriorSensitivity(NewtonSVC(), by="permutation", calibration=0.25, random_state=0),
     DensitySensitivity(NewtonSVR(), n_values=16)],
    ids=str,
)  # fmt: skip
def test_sensitivities_on_a_device_agree_with_double_precision(criterion):
    pytest.importorskip("torch", reason="torch is not installed")
    X, y = problem(300)
    target = X[:, 0] + X[:, 1] * X[:, 2] if isinstance(criterion, DensitySensitivity) else y
    with _namespace.computing_on("cpu"):
        found = [
            criterion.set_params(precision=precision).fit(X, target).loss(np.arange(X.shape[1]))
            for precision in ("double", "single")
        ]
    assert not np.array_equal(*found)
    alike(*found)


def test_an_unknown_precision_is_refused():
    X, y = problem(50)
    with pytest.raises(InvalidParameter, match="precision to be 'double' or 'single', got 'half'"):
        PosteriorSensitivity(NewtonSVC(), precision="half").fit(X, y)
