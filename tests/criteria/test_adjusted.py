"""Criteria corrected for chance: the information of noise with many levels is subtracted."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

import tamis
from tamis.compiled import thresholds
from tamis.criteria import (
    CIFE,
    CMIM,
    DISR,
    JMI,
    MIFS,
    MIFSU,
    MRMR,
    NMIFS,
    MutualInformation,
    PairInformation,
    PairMRMR,
)
from tamis.search import Forward, Ranking

EVERY = [MIFS, MIFSU, MRMR, NMIFS, CMIM, CIFE, JMI, DISR]
ALONE = [MutualInformation, PairInformation]


def noisy(n=1500, seed=0):
    """Return a table with two relevant columns and four columns of noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=n) > 0).astype(int)


@pytest.mark.parametrize("kind", [*EVERY, *ALONE, PairMRMR])
def test_a_group_of_noise_ranks_below_two_true_columns(kind):
    X, y = noisy()
    walk = Ranking if kind in ALONE else Forward
    groups = {"noise": [2, 3, 4, 5]}

    def order(**how):
        search = walk(kind(n_bins=7, **how), n_features_to_select=1, feature_groups=groups)
        return search.fit(X, y).order_

    assert order()[-1] == 2
    assert order(adjusted=False)[0] == 2


@pytest.mark.parametrize("kind", [MRMR, JMI, CMIM, MutualInformation])
def test_a_category_of_noise_ranks_below_two_true_columns(kind):
    X, y = noisy(600)
    X[:, 2] = np.random.default_rng(1).integers(0, 300, len(X))
    walk = Ranking if kind in ALONE else Forward

    def order(**how):
        search = walk(kind(categories=[2], **how), n_features_to_select=1)
        return search.fit(X[:, :3], y).order_

    assert order()[-1] == 2
    assert order(adjusted=False)[0] == 2


def test_rare_flags_do_not_outrank_relevant_columns():
    rng = np.random.default_rng(0)
    n = 3000
    numbers = rng.normal(size=(n, 4))
    signal = numbers @ [1.0, -1.0, 0.8, 0.8] + rng.logistic(size=n)
    frame = pd.DataFrame(numbers, columns=list("abcd"))
    frame["region"] = rng.choice(["north", "south", "east", "west"], n)
    for k in range(25):
        frame[f"flag{k}"] = (rng.random(n) < 0.01).astype(int)
    frame["late"] = (signal > np.quantile(signal, 0.95)).astype(int)
    found = tamis.select(frame, method="mrmr", target="late", n_features_to_select=6)
    assert {"a", "b", "c", "d"} <= set(found.columns)
    plain = "Forward(MRMR(adjusted=False))"
    found = tamis.select(frame, method=plain, target="late", n_features_to_select=6)
    assert len({"a", "b", "c", "d"} & set(found.columns)) < 4


@pytest.mark.parametrize("kind", EVERY)
def test_auto_is_plain_for_columns_and_corrected_for_groups(kind):
    X, y = noisy(200)
    rest = np.arange(2, 6)

    def gains(adjusted, units=None):
        fitted = kind(adjusted=adjusted).grouped(units).fit(X, y)
        others = rest if units is None else np.array([1, 2])
        return np.r_[fitted.relevance_, fitted.gain(np.array([0]), others)]

    assert_array_equal(gains("auto"), gains(False))
    assert (gains("auto") != gains(True)).any()
    single = [[j] for j in range(6)]
    assert_array_equal(gains("auto", single), gains(False, single))
    units = [[0], [1], [2, 3, 4, 5]]
    assert_array_equal(gains("auto", units), gains(True, units))


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("levels", [3, 40], ids=["bit sets", "histograms"])
def test_compiled_counts_give_identical_results(monkeypatch, kind, levels):
    rng = np.random.default_rng(0)
    X = rng.integers(0, levels, (300, 8)).astype(float)
    X[:, 7] = rng.integers(0, 2, 300)
    y = (X[:, 0] + X[:, 1] + rng.integers(0, levels, 300) > 1.5 * levels).astype(int)
    found = []
    for entries in (0, 10**12):
        monkeypatch.setattr(thresholds, "COUNTED_ENTRIES", entries)
        fitted = kind(adjusted=True, binning="codes").fit(X, y)
        found.append(fitted.gain(np.array([0, 4]), np.array([1, 2, 3, 5, 6, 7])))
    assert_array_equal(*found)


@pytest.mark.parametrize("kind", [MRMR, JMI, PairMRMR])
@pytest.mark.parametrize("even", [0, 9], ids=["levels as they are", "evened out"])
def test_products_of_indicators_give_identical_results(monkeypatch, kind, even):
    X, y = noisy(150)
    X[:, 3], X[:, 4] = np.random.default_rng(1).integers(0, 2, 150), 1.0
    fitted = kind(adjusted=True)
    wanted = fitted.fit(X, y).gain(np.array([0, 2]), np.array([1, 3, 4, 5]))
    monkeypatch.setattr("tamis.density.one_hot.EVEN", even)
    for module in ("discrete", "scan"):  # as on a device, but with numpy arrays
        monkeypatch.setattr(f"tamis.density.{module}.device_asked", lambda: "cpu")
    found = fitted.fit(X, y).gain(np.array([0, 2]), np.array([1, 3, 4, 5]))
    assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", EVERY)
def test_constant_columns_have_no_information_and_duplicates_tie(kind):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (80, 5)).astype(float)
    X[:, 1], X[:, 3] = 2.0, 8 - X[:, 2]  # a constant, and a duplicate with other codes
    y = (X[:, 0] + X[:, 2] > 8).astype(int)
    fitted = kind(adjusted=True, binning="codes").fit(X, y)
    assert fitted.relevance_[1] == 0
    assert_array_equal(fitted.idle_, [False, True, False, False, False])
    one, other = fitted.gain(np.array([0, 4]), np.array([2, 3]))
    assert one == other
    beside = fitted.gain(np.array([1]), np.array([0, 2]))
    assert_array_equal(np.argsort(beside), np.argsort(fitted.relevance_[[0, 2]]))


def test_the_correction_is_a_parameter_and_not_monotone():
    assert clone(JMI(adjusted=True)).get_params()["adjusted"] is True
    assert MutualInformation().monotone
    assert not MutualInformation(adjusted=True).monotone
    assert not PairInformation(categories=[0]).monotone
