"""Searches on tensors give the same result, and record the device of each part."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from tamis import _namespace, select
from tamis.contract import Record
from tamis.criteria import (
    HSIC,
    FisherScore,
    ParzenInformation,
    PosteriorSensitivity,
    WeightNorm,
)
from tamis.density.series.table import Exponents
from tamis.exceptions import DeviceWarning, InvalidTable, NotEnoughMemory
from tamis.search import Ranking, RecursiveElimination
from tamis.svm import NewtonSVC

torch = pytest.importorskip("torch", reason="torch is not installed")

ELIMINATIONS = {
    "fspp2": "RecursiveElimination(PosteriorSensitivity(NewtonSVC(), n_values=8, calibration=3))",
    "sd": "RecursiveElimination(DensitySensitivity(NewtonSVR(), n_values=8))",
    "delta-w2": "RecursiveElimination(WeightNorm(NewtonSVC()))",
}


def problem(n=40, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=n)
    return X, f


def search(n=2):
    return RecursiveElimination(HSIC(), n_features_to_select=n)


@pytest.fixture
def dispatch(monkeypatch):
    """Let tensors keep their library, as with ``array_api_dispatch`` of scikit-learn."""
    monkeypatch.setattr("tamis.blocks.device_arrays.on_host", lambda x: False)


@pytest.mark.parametrize("name", ELIMINATIONS)
@pytest.mark.parametrize("seed", range(5))
def test_columns_are_eliminated_in_the_same_order_on_a_device(name, seed):
    X, f = problem(seed=seed)
    y = f if name == "sd" else (f > 0).astype(int)
    here = select(X, y, ELIMINATIONS[name], n_features_to_select=1)
    there = select(X, y, ELIMINATIONS[name], n_features_to_select=1, device="cpu")
    for one, other in zip(here.trace_, there.trace_, strict=True):
        assert_array_equal(one.subset, other.subset)
    assert there.record_.ran_on == {"training": ["cpu (torch)"], "scores": ["cpu (torch)"]}
    assert there.record_.places == "Training and scores ran on cpu (torch)."
    assert not here.record_.ran_on
    assert here.record_.places == ""


def test_a_table_is_copied_to_the_device_once(monkeypatch):
    X, f = problem()
    sizes, put = [], _namespace.Place.put
    monkeypatch.setattr(
        _namespace.Place, "put", lambda self, x: sizes.append(np.size(x)) or put(self, x)
    )
    select(X, f > 0, ELIMINATIONS["delta-w2"], n_features_to_select=2, device="cpu")
    assert [size for size in sizes if size > len(X)] == [X.size]


TYPES = {
    "double": lambda X: torch.asarray(X),
    "single": lambda X: torch.asarray(X).to(torch.float32),
    "half": lambda X: torch.asarray(X).to(torch.float16),
    "bfloat16": lambda X: torch.asarray(X).to(torch.bfloat16),
    "int": lambda X: torch.asarray(X * 100).to(torch.int32),
    "grad": lambda X: torch.asarray(X).requires_grad_(),
    "strided": lambda X: torch.asarray(np.repeat(X, 2, axis=1))[:, ::2],
    "transposed": lambda X: torch.asarray(np.ascontiguousarray(X.T)).T,
}


@pytest.mark.parametrize("kind", TYPES)
def test_tensors_of_any_type_are_accepted(kind, dispatch):
    X, f = problem()
    tensor, y = TYPES[kind](X), torch.asarray(f > 0)
    plain = _namespace.host(tensor).astype(float)
    found, known = search().fit(tensor, y), search().fit(plain, f > 0)
    assert_array_equal(found.get_support(), known.get_support())
    assert found.record_.data == known.record_.data
    assert found.record_.ran_on == {"scores": ["cpu (torch)"]}
    assert isinstance(found.scores_, np.ndarray)
    kept = found.transform(tensor)
    assert type(kept) is torch.Tensor
    assert kept.dtype == tensor.dtype
    assert kept.device == tensor.device
    assert_array_equal(_namespace.host(kept), _namespace.host(tensor)[:, found.get_support()])


def test_without_dispatch_a_cpu_tensor_is_an_ordinary_table():
    X, f = problem()
    found = search().fit(torch.asarray(X), torch.asarray(f > 0))
    assert_array_equal(found.get_support(), search().fit(X, f > 0).get_support())
    assert not found.record_.ran_on
    assert isinstance(found.transform(torch.asarray(X)), torch.Tensor)


def test_arrays_of_other_libraries_are_accepted(dispatch):
    strict = pytest.importorskip("array_api_strict", reason="array_api_strict is not installed")
    X, f = problem()
    there = strict.asarray(X)
    found = search().fit(there, f > 0)
    assert_array_equal(found.get_support(), search().fit(X, f > 0).get_support())
    assert type(found.transform(there)) is type(there)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda X: torch.asarray(X).to_sparse(), r"RecursiveElimination|search"),
        (lambda X: torch.asarray(X).to(torch.complex128), "real numbers, not torch.complex128"),
        (lambda X: torch.zeros(X.shape, device="meta"), "device='meta' holds none"),
        (lambda X: torch.asarray(X)[None], "Found array with dim 3|Expected 2D|dim"),
        (lambda X: torch.asarray(X).log(), "missing value"),
    ],
)
def test_tensors_that_are_not_tables_are_refused(wrong, sentence):
    X, f = problem()
    with pytest.raises((InvalidTable, ValueError), match=sentence):
        search().fit(wrong(X), f > 0)


def test_a_different_number_of_columns_is_refused():
    X, f = problem()
    with pytest.raises(InvalidTable, match="is expecting 6 features"):
        search().fit(X, f > 0).transform(torch.asarray(X[:, :4]))


def test_a_method_that_cannot_use_the_device_warns_once(dispatch):
    X, f = problem()
    with pytest.warns(DeviceWarning, match=r"Ranking .* cannot use cpu \(torch\)") as caught:
        found = Ranking(FisherScore(), n_features_to_select=2).fit(torch.asarray(X), f > 0)
    assert len(caught) == 1
    assert found.record_.ran_on == {"scores": ["processor"]}
    assert found.record_.places == "Scores ran on the CPU."


@pytest.mark.parametrize(
    "criterion",
    [HSIC(gamma="median"), WeightNorm(SVC(kernel="linear")), WeightNorm(SVC(), order=1)],
    ids=str,
)
def test_criteria_that_cannot_use_the_device_warn(criterion):
    X, f = problem()
    assert not criterion.runs_on_device
    with pytest.warns(DeviceWarning, match="RecursiveElimination .* cannot use"):
        select(X, f > 0, RecursiveElimination(criterion, n_features_to_select=3), device="cpu")


@pytest.mark.filterwarnings("error::tamis.exceptions.DeviceWarning")
def test_svms_are_trained_on_the_cpu_and_scored_on_the_device():
    X, f = problem()
    for criterion in (WeightNorm(SVC()), PosteriorSensitivity(SVC(), n_values=4)):
        method = RecursiveElimination(criterion, n_features_to_select=3)
        found = select(X, f > 0, method, device="cpu")
        said = "Training ran on the CPU, scores ran on cpu (torch)."
        assert found.record_.places == said
        assert said in found.summary()


def test_criteria_accept_tensors(dispatch):
    X, f = problem()
    subset = np.array([0, 2, 3])
    for criterion in (HSIC(), WeightNorm(NewtonSVC()), PosteriorSensitivity(NewtonSVC())):
        known = criterion.fit(X, f > 0).loss(subset)
        found = criterion.fit(torch.asarray(X), torch.asarray(f > 0)).loss(subset)
        assert_allclose(found, known, rtol=0, atol=1e-10 * known.max())


def test_pipelines_stay_on_the_device():
    X, f = problem()
    both = make_pipeline(search(), NewtonSVC()).fit(torch.asarray(X), torch.asarray(f > 0))
    found = both.decision_function(torch.asarray(X))
    assert isinstance(found, torch.Tensor)
    known = make_pipeline(search(), NewtonSVC()).fit(X, f > 0).decision_function(X)
    assert_allclose(found.numpy(), known, atol=1e-9)


def test_the_report_names_the_device_of_each_part(tmp_path):
    X, f = problem()
    select(X, f > 0, search(3), device="cpu").report(X, f > 0).save(tmp_path / "page.html")
    assert "Scores ran on cpu (torch)." in (tmp_path / "page.html").read_text()


def test_records_store_the_device_of_each_part(tmp_path):
    X, f = problem()
    found = select(X, f > 0, search(3), device="cpu")
    found.record_.save(tmp_path / "record.json")
    known = Record.load(tmp_path / "record.json")
    assert known.ran_on == {"scores": ["cpu (torch)"]}
    longer = search(1).resume(X, f > 0, record=known)
    assert longer.record_.ran_on == {"scores": ["cpu (torch)", "processor"]}
    assert longer.record_.places == "Scores ran on cpu (torch) and the CPU."
    plain = known.to_dict()
    plain["ran_on"] = {"scores": "cpu"}
    with pytest.raises(InvalidTable, match="ran_on"):
        Record.from_dict(plain)


class Small:
    """A device that can hold kernels of a limited number of rows."""

    def __init__(self, function, most_rows):
        self.function, self.most_rows, self.sizes = function, most_rows, []

    def __call__(self, exponents, rows, columns):
        self.sizes.append(rows.stop - rows.start)
        if self.sizes[-1] > self.most_rows:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return self.function(exponents, rows, columns)


@pytest.mark.parametrize(
    "criterion",
    [HSIC(), ParzenInformation(sigma=3.0), PosteriorSensitivity(NewtonSVC(), n_values=4)],
    ids=str,
)
def test_strips_are_reduced_on_a_device_with_little_memory(criterion, monkeypatch):
    X, f = problem(60)
    with _namespace.computing_on("cpu"):
        known = criterion.fit(X, f > 0).loss(np.arange(6))
        small = Small(Exponents.strip, 10)
        monkeypatch.setattr(Exponents, "strip", lambda *given: small(*given))
        found = criterion.fit(X, f > 0).loss(np.arange(6))
    assert max(small.sizes) > 10 >= small.sizes[-1]
    assert_allclose(found, known, rtol=0, atol=1e-12 * known.max())


def test_svms_start_from_the_previous_solution():
    """The optimum is identical, and is reached in fewer steps."""
    X, f = problem(80)
    criteria = (WeightNorm(NewtonSVC(10.0)), PosteriorSensitivity(NewtonSVC(10.0), n_values=4))
    for criterion in criteria:
        later = criterion.fit(X, f > 0)
        later.loss(np.arange(6))
        again = later.loss(np.arange(5))
        assert_array_equal(again, criterion.fit(X, f > 0).loss(np.arange(5)))


class Full:
    """A function that runs out of memory after a number of calls."""

    def __init__(self, function, n_calls):
        self.function, self.left = function, n_calls

    def __call__(self, *given, **options):
        self.left -= 1
        if self.left < 0:
            raise torch.OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 3.20 GiB. GPU 0 has a total capacity of "
                "139.81 GiB of which 1.10 GiB is free."
            )
        return self.function(*given, **options)


def test_a_device_that_runs_out_of_memory_is_reported(monkeypatch):
    from tamis.density import pairs

    X, f = problem()
    monkeypatch.setattr(pairs, "pair_changes", Full(pairs.pair_changes, 3))
    walk = search(1)
    said = r"memory on cpu \(torch\): it needed 3.20 GiB"
    with _namespace.computing_on("cpu"), pytest.raises(NotEnoughMemory, match=said) as told:
        walk.fit(X, f > 0)
    assert "1.10 GiB were free" in str(told.value)
    assert "steps made so far are in record_" in str(told.value)
    assert "precision='single'" in str(told.value)
    assert 0 < len(walk.record_.trace) < 6
    assert not walk.record_.finished
    monkeypatch.undo()
    resumed = search(1).resume(X, f > 0, record=walk.record_)
    assert_array_equal(resumed.get_support(), search(1).fit(X, f > 0).get_support())
    assert resumed.record_.ran_on == {"scores": ["cpu (torch)", "processor"]}


def test_other_errors_are_not_changed(monkeypatch):
    from tamis.density import pairs

    def fails(*given, **options):
        raise RuntimeError("something else")

    X, f = problem()
    monkeypatch.setattr(pairs, "pair_changes", fails)
    with _namespace.computing_on("cpu"), pytest.raises(RuntimeError, match="something else"):
        search(1).fit(X, f > 0)


UNDER_DISPATCH = """
import numpy as np, torch, sklearn
from tamis.criteria import HSIC, PosteriorSensitivity
from tamis.search import RecursiveElimination
from tamis.svm import NewtonSVC

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 6))
y = np.where(X[:, 0] * X[:, 1] + X[:, 2] > 0, "yes", "no")
for criterion in (HSIC(), PosteriorSensitivity(NewtonSVC(), n_values=4)):
    walk = RecursiveElimination(criterion, n_features_to_select=2)
    known = walk.fit(X, y).get_support()
    with sklearn.config_context(array_api_dispatch=True):
        tensor = torch.asarray(X)
        walk.fit(tensor, y)
        assert walk.record_.ran_on["scores"] == ["cpu (torch)"], walk.record_.ran_on
        assert (walk.get_support() == known).all()
        assert isinstance(walk.transform(tensor), torch.Tensor)
        assert isinstance(walk.fit_transform(tensor, y), torch.Tensor)
print("the same")
"""


def test_results_are_the_same_with_array_api_dispatch():
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", UNDER_DISPATCH],
        env={**os.environ, "SCIPY_ARRAY_API": "1"}, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.stdout.strip() == "the same", done.stderr
