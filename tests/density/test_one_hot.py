"""Counts by products of indicators on a device are the same as on the CPU."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tamis import select
from tamis._namespace import computing_on, spare_memory
from tamis.criteria import CMIM, DISR, JMI, MIFS, MRMR, NMIFS, PairInformation, PairMRMR
from tamis.density import one_hot
from tamis.density.discrete import Coded
from tamis.density.one_hot import OneHotLevels, count

torch = pytest.importorskip("torch", reason="torch is not installed")


def problem(n=150, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 3], X[:, 4] = rng.integers(0, 2, n), 1.0
    X[rng.random(n) < 0.1, 5] = np.nan
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
    return X, y + (X[:, 6] > 1)


def sums_of_tables(coded, pivot, table):
    """Return the sum over the contingency table of each column and a pivot, cell by cell."""
    return np.array(
        [
            sum(
                table[np.sum((codes == level) & (pivot == own))]
                for level in range(n)
                for own in range(9)
            )
            for codes, n in zip(coded.codes, coded.n_levels, strict=True)
        ]
    )


@pytest.mark.parametrize("kept", [0, 1 << 31])
@pytest.mark.parametrize("block", [1 << 27, 1000])
@pytest.mark.parametrize("exact", [1 << 24, 32])
@pytest.mark.parametrize("even", [0, 1, 5])
def test_sums_agree_with_contingency_tables(kept, block, exact, even, monkeypatch):
    for name, value in (("KEPT", kept), ("BLOCK", block), ("EXACT", exact), ("EVEN", even)):
        monkeypatch.setattr(one_hot, name, value)
    X, y = problem()
    coded = Coded(X, 6)
    assert len(set(coded.n_levels)) > 2
    table = np.arange(len(X) + 1.0) ** 2  # sums of whole numbers are exact in any order
    with computing_on("cpu"):
        found = OneHotLevels(coded.codes, coded.n_levels, table)
        for _ in range(2):
            assert_array_equal(found.sums(y, 3), sums_of_tables(coded, y, table))
            for j in (0, 3, 4):
                expected = sums_of_tables(coded, coded.column(j), table)
                assert_array_equal(found.sums_with(j), expected)


def test_more_rows_than_single_precision_can_count(monkeypatch):
    n = (1 << 24) + 5
    ones = torch.ones((1, n), dtype=torch.float32)
    assert int(count(ones, ones.T)[0, 0]) == n


@pytest.mark.parametrize(
    "criterion",
    [MIFS(), MRMR(), NMIFS(), CMIM(), JMI(n_bins=5), DISR(), MRMR(missing="pairs"),
     MRMR(adjusted=True), JMI(adjusted=True)],
    ids=str,
)  # fmt: skip
def test_scores_are_identical(criterion):
    X, y = problem()
    chosen, rest = np.array([0, 2]), np.setdiff1d(np.arange(12), [0, 2])
    here = criterion.fit(X, y).gain(chosen, rest)
    with computing_on("cpu"):
        there = criterion.fit(X, y).gain(chosen, rest)
    assert_array_equal(here, there)


@pytest.mark.parametrize(
    "criterion", [PairInformation(), PairMRMR(), PairInformation(adjusted=True)], ids=str
)
@pytest.mark.parametrize("levels", [8, 4096])
def test_pairs_are_identical(criterion, levels, monkeypatch):
    from tamis.density import scan

    monkeypatch.setattr(scan, "LEVELS_THERE", levels)
    X, y = problem()
    here = criterion.fit(X, y)
    before = here.interactions_
    with computing_on("cpu"):
        there = criterion.fit(X, y)
    assert [pair[:2] for pair in there.interactions_] == [pair[:2] for pair in before]
    if hasattr(there, "scores_"):
        assert_array_equal(there.scores_, criterion.fit(X, y).scores_)


@pytest.mark.filterwarnings("error::tamis.exceptions.DeviceWarning")
@pytest.mark.parametrize("method", ["mrmr", "jmi", "pair-scan"])
def test_selections_are_the_same(method):
    X, y = problem()
    X = np.nan_to_num(X)
    found = [select(X, y, method, n_features_to_select=4, device=on) for on in (None, "cpu")]
    assert_array_equal(*(one.get_support(indices=True) for one in found))


@pytest.mark.parametrize(
    "method", ["mrmr", "pair-scan", "Ranking(MutualInformation())", "Forward(PairMRMR())"]
)
def test_the_record_names_the_device_of_the_counts(method):
    X, y = problem()
    found = select(np.nan_to_num(X), y, method, n_features_to_select=2, device="cpu")
    assert "cpu (torch)" in found.record_.ran_on["scores"]


def test_indicators_are_cached_if_they_fit_into_memory(monkeypatch):
    X, y = problem()
    coded = Coded(X, 6)
    for spare, kept in ((1 << 30, True), (1 << 10, False), (None, True)):
        monkeypatch.setattr(one_hot, "spare_memory", lambda spare=spare: spare)
        with computing_on("cpu"):
            found = OneHotLevels(coded.codes, coded.n_levels, np.arange(len(X) + 1.0))
            assert_array_equal(found.sums(y, 3), found.sums(y, 3))
            assert (found._kept is not None) == kept


def test_a_cpu_has_no_device_memory():
    assert spare_memory() is None
    with computing_on("cpu"):
        assert spare_memory() is None
