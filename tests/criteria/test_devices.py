"""Kernel criteria on a torch device: scores and order are the same as on the CPU."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tamis import _namespace, select
from tamis.criteria import HSIC, KwakInformation, ParzenInformation, WeightNorm
from tamis.exceptions import DeviceWarning, InvalidParameter, MissingExtra
from tamis.svm import NewtonSVC

pytest.importorskip("torch", reason="torch is not installed")

METHODS = [
    "RecursiveElimination(HSIC())",
    "RecursiveElimination(HSIC(task='regression', unbiased=False))",
    "Forward(ParzenInformation(sigma=4.0))",
    "RecursiveElimination(ParzenInformation(sigma=1.0, leave_one_out=True))",
    "RecursiveElimination(KwakInformation(sigma=3.0))",
    "RecursiveElimination(WeightNorm(NewtonSVC()))",
]


def problem(n=80, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 4] = 3.0
    f = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=n)
    return X, f


@pytest.mark.parametrize("method", METHODS)
def test_the_selection_is_the_same_on_a_device(method):
    X, f = problem()
    y = f if "regression" in method else (f > 0).astype(int)
    found = [select(X, y, method, n_features_to_select=2, device=on) for on in (None, "cpu")]
    assert_array_equal(found[0].get_support(), found[1].get_support())
    for here, there in zip(found[0].trace_, found[1].trace_, strict=True):
        assert_array_equal(here.subset, there.subset)


@pytest.mark.parametrize(
    "criterion",
    [HSIC(), HSIC(gamma=0.5), ParzenInformation(sigma=2.0), KwakInformation(sigma=2.0),
     ParzenInformation(sigma=2.0, leave_one_out=True), WeightNorm(NewtonSVC())],
    ids=str,
)  # fmt: skip
def test_scores_are_the_same_on_a_device(criterion):
    X, f = problem()
    y, subset = f > 0, np.array([0, 1, 2, 4, 7, 9])
    here = criterion.fit(X, y).loss(subset)
    with _namespace.computing_on("cpu"):
        there = criterion.fit(X, y).loss(subset)
        value = criterion.value(subset) if hasattr(criterion, "value") else None
    assert_allclose(there, here, rtol=0, atol=1e-10 * np.abs(here).max())
    if value is not None:
        assert value == pytest.approx(criterion.fit(X, y).value(subset), abs=1e-12)


def test_svms_are_trained_on_the_device():
    X, f = problem()
    here = NewtonSVC(3.0).fit(X, f > 0)
    with _namespace.computing_on("cpu"):
        there = NewtonSVC(3.0).fit(X, f > 0)
    assert not isinstance(there.support_vectors_, np.ndarray)
    found = there.decision_function(X)
    assert isinstance(found, np.ndarray)
    assert_allclose(found, here.decision_function(X), atol=1e-10)
    assert_array_equal(there.predict(X), here.predict(X))


def test_a_method_that_cannot_use_a_device_warns():
    X, f = problem()
    with pytest.warns(DeviceWarning, match=r"Ranking runs on device='cpu'"):
        found = select(X, f > 0, "fisher-score", n_features_to_select=2, device="cpu")
    assert found.get_support().sum() == 2


def test_an_unknown_device_is_refused():
    X, f = problem()
    with pytest.raises(InvalidParameter, match=r"device='quantum' cannot be used"):
        select(X, f > 0, "RecursiveElimination(HSIC())", device="quantum")
    assert _namespace.device_asked() is None


def test_a_missing_torch_is_reported(monkeypatch):
    X, f = problem()
    monkeypatch.setattr(_namespace, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"tamis\[gpu\]"):
        select(X, f > 0, "RecursiveElimination(HSIC())", device="cuda")


def test_a_device_without_data_is_refused():
    X, f = problem()
    with pytest.raises(InvalidParameter, match=r"device='meta' cannot be used"):
        select(X, f > 0, "RecursiveElimination(HSIC())", device="meta")


@pytest.mark.filterwarnings("error::tamis.exceptions.DeviceWarning")
def test_an_svm_trained_on_the_device_causes_no_warning():
    X, f = problem(40, 5)
    method = "Forward(CrossValidated(NewtonSVC()), n_features_to_select=1)"
    assert select(X, f > 0, method, device="cpu").get_support().sum() == 1
