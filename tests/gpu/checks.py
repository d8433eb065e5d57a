"""Checks of a device, each a function of its name. They need only numpy, torch and tamis."""

import warnings
from collections.abc import Callable
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.svm import SVC, SVR

from tamis import select
from tamis._namespace import computing_on, host
from tamis.criteria import (
    HSIC,
    DensitySensitivity,
    KwakInformation,
    ParzenInformation,
    PosteriorSensitivity,
    WeightNorm,
)
from tamis.density.series.outputs import output_changes
from tamis.density.series.pairs import pair_changes
from tamis.density.series.table import Alteration, ScaledColumns
from tamis.exceptions import DeviceWarning, NotEnoughMemory
from tamis.search import RecursiveElimination
from tamis.svm import NewtonSVC, NewtonSVR

N_ROWS, N_COLUMNS = 300, 24
#: Largest difference from the CPU, as a share of the largest score.
AGREEMENT = 1e-10


def problem(n_rows: int = N_ROWS, n_columns: int = N_COLUMNS, seed: int = 0) -> tuple[Any, Any]:
    """Return normal columns, one of them wide and one constant, and a numeric target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    X[:, 3] *= 8
    X[:, 4] = 2.0
    return X, X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=n_rows)


def agree(found: Any, expected: Any, limit: float = AGREEMENT) -> None:
    """Check that numbers agree."""
    off = float(np.abs(host(found) - expected).max())
    assert off <= limit * float(np.abs(expected).max()), f"off by {off:.1e}"


def tensor(values: Any, device: str) -> Any:
    """Return numbers as a tensor on the device."""
    import torch

    return torch.asarray(np.ascontiguousarray(values), device=device)


def name_of(device: str) -> str:
    """Return the name of the device in records."""
    with computing_on(device) as place:
        assert place is not None
        return place.name


def check_sums_of_pairs(device: str) -> None:
    """Weighted kernel sums without each column agree with explicit kernels."""
    X, _ = problem()
    W = np.random.default_rng(1).normal(size=(N_ROWS, N_ROWS))
    W += W.T
    np.fill_diagonal(W, 0)
    everything, there = np.arange(N_COLUMNS), tensor(W, device)
    found = pair_changes(
        ScaledColumns(tensor(X, device), 0.05), Alteration(everything, everything, -1),
        lambda rows, columns: there[rows, columns] + 0,
    )  # fmt: skip
    squares = np.stack([np.subtract.outer(x, x) ** 2 for x in X.T])
    whole = squares.sum(axis=0)
    expected = [
        (W * np.exp(-0.05 * (whole - own)) * -np.expm1(-0.05 * own)).sum() for own in squares
    ]
    agree(found.changes, np.array(expected))


def check_changes_of_outputs(device: str) -> None:
    """Outputs of an SVM with altered columns agree with explicit kernels."""
    X, _ = problem()
    rng = np.random.default_rng(2)
    weights, points = rng.normal(size=(N_ROWS, 2)), X[rng.integers(0, N_ROWS, 5)]
    given = [tensor(part, device) for part in (X, X, weights)]
    squares = np.stack([np.subtract.outer(x, x) ** 2 for x in X.T])
    whole = squares.sum(axis=0)
    found = np.full((2, N_ROWS, N_COLUMNS, 5), np.nan)
    for rows, columns, some, change in output_changes(*given, tensor(points, device), gamma=0.05):
        found[:, rows, columns, some] = host(change)
    expected = np.empty_like(found)
    for j, own in enumerate(squares):
        rest = np.exp(-0.05 * (whole - own))
        for q, x in enumerate(points[:, j]):
            new = np.exp(-0.05 * (x - X[:, j]) ** 2)
            expected[:, :, j, q] = ((rest * (new - np.exp(-0.05 * own))) @ weights).T
    agree(found, expected)


CLASS_CRITERIA = (
    HSIC(),
    ParzenInformation(sigma=4.0),
    ParzenInformation(sigma=2.0, leave_one_out=True),
    KwakInformation(sigma=3.0),
    WeightNorm(NewtonSVC()),
    WeightNorm(SVC()),
    PosteriorSensitivity(NewtonSVC(), n_values=16),
    PosteriorSensitivity(NewtonSVC(), n_values=16, on="held-out"),
    PosteriorSensitivity(SVC(), by="permutation", random_state=0),
    PosteriorSensitivity(NewtonSVC(gamma=0.02), output="decision", n_values=16),
)
REAL_CRITERIA = (
    HSIC(task="regression"),
    WeightNorm(NewtonSVR()),
    DensitySensitivity(NewtonSVR(), n_values=16),
    DensitySensitivity(NewtonSVR(epsilon=0.0), noise="gaussian", by="zero"),
    DensitySensitivity(SVR(), symmetric=True, n_values=16),
)


def check_scores(device: str) -> None:
    """Losses of every column by each criterion agree with the CPU."""
    X, f = problem()
    classes = [(one, f > 0) for one in CLASS_CRITERIA] + [
        (PosteriorSensitivity(NewtonSVC(), n_values=8), np.digitize(f, [-0.7, 0.7]))
    ]
    for criterion, y in classes + [(one, f) for one in REAL_CRITERIA]:
        everything = np.arange(N_COLUMNS)
        expected = criterion.fit(X, y).loss(everything)
        with computing_on(device) as place:
            found = criterion.fit(X, y).loss(everything)
            assert place is not None
            assert place.parts["scores"] == [place.name], f"{criterion} ran on {place.parts}"
        try:
            agree(found, expected)
        except AssertionError as error:
            raise AssertionError(f"{criterion}: {error}") from None


ELIMINATIONS = (
    "RecursiveElimination(HSIC())",
    "RecursiveElimination(ParzenInformation(sigma=2.0, leave_one_out=True))",
    "RecursiveElimination(WeightNorm(NewtonSVC()))",
    "RecursiveElimination(PosteriorSensitivity(NewtonSVC(), n_values=16, calibration=3))",
    "RecursiveElimination(DensitySensitivity(NewtonSVR(), n_values=16))",
)


def check_orders_of_five_tables(device: str) -> None:
    """Elimination orders agree between CPU and device."""
    for method in ELIMINATIONS:
        for seed in range(5):
            X, f = problem(120, 10, seed)
            y = f if "SVR" in method else f > 0
            here = select(X, y, method, n_features_to_select=1)
            there = select(X, y, method, n_features_to_select=1, device=device)
            steps = zip(here.trace_, there.trace_, strict=True)
            same = all(np.array_equal(a.subset, b.subset) for a, b in steps)
            assert same, f"{method}, table {seed}: another order"
            assert set().union(*there.record_.ran_on.values()) == {name_of(device)}


def check_machines(device: str) -> None:
    """At the optimum with squared hinge loss, multipliers are 2C times the slack and sum to 0."""
    X, f = problem()
    machine = NewtonSVC(3.0).fit(tensor(X, device), f > 0)
    outputs = host(machine.decision_function(tensor(X, device)))
    agree(outputs, NewtonSVC(3.0).fit(X, f > 0).decision_function(X))
    y, beta = np.where(f > 0, 1.0, -1.0), np.zeros(N_ROWS)
    beta[machine.support_] = host(machine.dual_coef_)[0]
    slack = np.maximum(0, 1 - y * outputs)
    assert np.abs(beta * y - 2 * 3.0 * slack).max() <= 1e-8
    assert abs(beta.sum()) <= 1e-8


def check_tensors_into_searches(device: str) -> None:
    """Tensors of any type are accepted, also with a target on the CPU.

    Results stay on the device.
    """
    import torch

    X, f = problem()
    there = tensor(X, device)
    strided = tensor(np.repeat(X, 2, axis=1), device)[:, ::2]
    types = there.half(), there.to(torch.bfloat16), (100 * there).int()
    for table in (there, *types, there.T.clone().T, there.clone().requires_grad_(), strided):
        walk = RecursiveElimination(HSIC(), n_features_to_select=3).fit(table, torch.asarray(f > 0))
        plain = host(table).astype(float)
        known = RecursiveElimination(HSIC(), n_features_to_select=3).fit(plain, f > 0)
        assert np.array_equal(walk.get_support(), known.get_support()), table.dtype
        kept = walk.transform(table)
        assert kept.device == table.device
        assert kept.dtype == table.dtype
        if device != "cpu":
            assert walk.record_.ran_on == {"scores": [name_of(device)]}


def check_cupy(device: str) -> None:
    """CuPy arrays are accepted, if CuPy is installed."""
    if device == "cpu" or find_spec("cupy") is None:
        return
    import cupy

    X, f = problem()
    there = cupy.asarray(X)
    for criterion in (HSIC(), PosteriorSensitivity(NewtonSVC(), n_values=8, calibration=3)):
        walk = RecursiveElimination(criterion, n_features_to_select=3)
        known = walk.fit(X, f > 0).get_support()
        assert np.array_equal(walk.fit(there, f > 0).get_support(), known)
        assert isinstance(walk.transform(there), cupy.ndarray)
        assert "processor" not in walk.record_.places


def check_nothing_stays_behind(device: str) -> None:
    """The memory of the device is free again after a search is deleted."""
    import gc

    import torch

    if device == "cpu":
        return
    X, f = problem()
    before = torch.cuda.memory_allocated()
    for method in ELIMINATIONS[:4]:
        select(X, f > 0, method, n_features_to_select=10, device=device)
    gc.collect()
    assert torch.cuda.memory_allocated() - before < X.nbytes


@contextmanager
def little_memory(share: float) -> Any:
    """Limit the share of the device's memory."""
    import torch

    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(share)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()


def check_a_full_device(device: str) -> None:
    """A kernel that does not fit causes a clear error, and leaves a record."""
    if device == "cpu":
        return
    X, f = problem(20_000, 10)
    walk = RecursiveElimination(WeightNorm(NewtonSVC()), n_features_to_select=2)
    told = ""
    with little_memory(0.01), computing_on(device):
        try:
            walk.fit(X, f > 0)
        except NotEnoughMemory as error:
            told = str(error)
    assert "ran out of memory on" in told, "a kernel of 3 GB went into 1.4 GB"
    assert not walk.record_.finished


CHECKS: tuple[Callable[[str], None], ...] = (
    check_sums_of_pairs,
    check_changes_of_outputs,
    check_scores,
    check_orders_of_five_tables,
    check_machines,
    check_tensors_into_searches,
    check_cupy,
    check_nothing_stays_behind,
    check_a_full_device,
)


def run_check(check: Callable[[str], None], device: str) -> None:
    """Run a check. No part may warn that it runs on the CPU."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeviceWarning)
        check(device)
