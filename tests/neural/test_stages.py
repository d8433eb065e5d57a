"""Training that is stopped after any stage and resumed gives the same result."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine

from tamis.choice import Threshold
from tamis.contract import Record
from tamis.contract.units import Grouping
from tamis.exceptions import DegenerateData, InvalidTable, RecordMismatch
from tamis.neural import (
    GateSelector,
    GateSolver,
    NetworkClassifier,
    PerClass,
    Redundancy,
    Sparsity,
    UFeSCoR,
)
from tamis.neural._state import packed, unpacked
from tamis.testing.search_laws import Stop, outcome

pytestmark = pytest.mark.filterwarnings("ignore::tamis.exceptions.DegenerateData")

X, y = load_iris(return_X_y=True)
X, y = np.asfortranarray(X[::3]), y[::3]

SMALL = NetworkClassifier(2, decay=0.01, combine="mean", validation=3)
FEW = GateSolver(max_iter=15)
SELECTORS = {
    "weights given": GateSelector(network=SMALL, mu=1, lam=5, solver=FEW),
    "weights found": GateSelector(network=SMALL, solver=FEW),
    "one weight found": GateSelector(network=SMALL, lam=2, solver=FEW),
    "bounded, by class, jointly": GateSelector(
        n_features_to_select=Threshold(0.2),
        network=clone(SMALL).set_params(restarts=2),
        gate="bell",
        sparsity="bell",
        scope="class",
        joint=True,
        solver=FEW,
    ),
    "the best of each class, in batches": GateSelector(
        n_features_to_select=PerClass(1),
        network=NetworkClassifier(2, solver="adam", batch_size=20, max_iter=20, random_state=5),
        scope="one-vs-rest",
        sparsity=Sparsity(width=(1.0, 0.1)),
        redundancy=Redundancy("squared", level="global"),
        mu=0.5,
        lam=1,
        solver=GateSolver("adam", batch_size=20, max_iter=10),
    ),
    "without held-out rows": GateSelector(
        network=NetworkClassifier(2, validation=None), mu=1, lam=1, solver=FEW
    ),
    "distances": UFeSCoR(restarts=3),
    "distances, a heavier weight": UFeSCoR(n_features_to_select=1, alpha=1e-4, restarts=2),
    "distances, any number": UFeSCoR(n_features_to_select=Threshold(0.5), restarts=2, max_rows=20),
}


def prepared(selector, X=X):
    """Return a selector with the units of a table, as the run loop sets them before the stages."""
    selector = clone(selector)
    selector._units = Grouping(X.shape[1])
    return selector


def states(selector, state, seed=3):
    """Return the states after each stage, as read from a file."""
    found = prepared(selector)._stages(X, y, seed, state)
    return [json.loads(json.dumps(state, allow_nan=False)) for state in found]


def same(one, other):
    """Return whether two attributes, arrays or objects with arrays are equal."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype == float)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "__dict__"):
        return type(one) is type(other) and same(vars(one), vars(other))
    return one == other or (one != one and other != other)


@pytest.fixture(scope="module")
def undisturbed():
    """Return a fit of each selector, and the states of its stages."""
    return {
        name: (clone(selector).set_params(random_state=3).fit(X, y), states(selector, {}))
        for name, selector in SELECTORS.items()
    }


def spread(n, most=4):
    """Return some of n stages: the first, the last, and equidistant ones between them."""
    return np.unique(np.linspace(0, n - 1, most).round().astype(int)).tolist()


@pytest.mark.parametrize("name", SELECTORS)
def test_training_can_be_resumed_after_any_stage(name, undisturbed):
    selector, (fitted, whole) = SELECTORS[name], undisturbed[name]
    for k in spread(len(whole)):
        state = whole[k]
        rest = states(selector, state)
        assert rest == whole[k + 1 :]
        resumed = prepared(selector).set_params(random_state=3)
        resumed._restore(X, y, [state, *rest][-1])
        for attribute, value in vars(resumed).items():
            assert same(value, getattr(fitted, attribute)), attribute


@pytest.mark.parametrize("name", SELECTORS)
def test_a_fit_can_be_stopped_and_resumed_anywhere(name, undisturbed):
    """Callbacks stop the fit, the record is stored as JSON, and the fit is resumed.

    Each later stop is in a fit that was stopped and resumed before. From some stops, and from the
    last one, the fit is continued to the end.
    """
    fitted, whole = undisturbed[name]
    make = lambda: clone(SELECTORS[name]).set_params(random_state=3)  # noqa: E731
    record = make().set_callbacks(Stop(1)).fit(X, y).record_
    stored = []
    while not record.finished:
        stored.append(Record.from_dict(json.loads(json.dumps(record.to_dict()))))
        record = make().set_callbacks(Stop(1)).resume(X, y, record=stored[-1]).record_
    assert len(stored) > len(whole)  # stages, and the steps after them
    for k in spread(len(stored)):
        resumed = make().resume(X, y, record=stored[k])
        assert outcome(resumed) == outcome(fitted)
        for attribute in ("gates_", "history_", "network_", "mu_", "lam_", "alpha_"):
            if hasattr(fitted, attribute):
                assert same(getattr(resumed, attribute), getattr(fitted, attribute)), attribute


def test_the_number_of_columns_is_part_of_the_training():
    record = UFeSCoR(n_features_to_select=1, random_state=3, restarts=1).fit(X, y).record_
    with pytest.raises(RecordMismatch, match="depend on the number of features"):
        UFeSCoR(n_features_to_select=2, random_state=3, restarts=1).resume(X, y, record=record)


def test_stages_follow_the_parts_of_the_training(undisturbed):
    n_stages = {name: len(whole) for name, (_, whole) in undisturbed.items()}
    assert n_stages["weights given"] == 2  # the network, the gates
    found = undisturbed["weights found"][0]
    n_levels = len(found.path_.lam) // 4
    walked = found.path_.best % n_levels + 1
    # network, networks of the folds, each lam, scores, and gates up to the best lam
    assert n_stages["weights found"] == 1 + 1 + n_levels + 1 + walked
    assert n_stages["distances"] == 3 + 1
    heavier = undisturbed["distances, a heavier weight"][0]
    raised = round(np.log10(heavier.alpha_ / 1e-4))
    assert raised > 0
    assert n_stages["distances, a heavier weight"] == 2 + raised + 1


@pytest.mark.parametrize("name", SELECTORS)
def test_a_finished_state_trains_nothing(name, undisturbed, monkeypatch):
    fitted, whole = undisturbed[name]

    def never(*args, **options):
        raise AssertionError("this is training")

    for module, function in (
        ("network", "train"),
        ("gate_runs", "train"),
        ("gate_runs", "learn_gates"),
        ("sammon", "minimize"),
    ):
        monkeypatch.setattr(f"tamis.neural.{module}.{function}", never)
    again = prepared(SELECTORS[name])
    assert list(again._stages(X, y, 3, whole[-1])) == []
    again._restore(X, y, whole[-1])
    assert_array_equal(again.gates_, fitted.gates_)
    if isinstance(again, GateSelector):
        assert_array_equal(again.network_.predict_proba(X), fitted.network_.predict_proba(X))


def test_earlier_states_are_not_changed():
    kept = []
    for state in prepared(SELECTORS["weights found"])._stages(X, y, 3, {}):
        kept.append((state, json.dumps(state)))
    assert all(json.dumps(state) == text for state, text in kept)


def test_all_columns_are_constant():
    flat = np.ones((10, 3))
    with pytest.warns(DegenerateData, match="all columns are constant"):
        (last,) = prepared(UFeSCoR(), flat)._stages(flat, None, 0, {})
    assert list(prepared(UFeSCoR(), flat)._stages(flat, None, 0, last)) == []


def test_training_on_a_wide_table_can_be_resumed():
    wide = np.random.default_rng(0).normal(size=(20, 1200))
    classes = np.arange(20) % 2
    selector = GateSelector(network=SMALL, redundancy="squared", mu=1, lam=1, solver=FEW)
    selector = prepared(selector, wide)
    first, last = selector._stages(wide, classes, 0, {})
    (again,) = selector._stages(wide, classes, 0, json.loads(json.dumps(first)))
    assert again == last


@pytest.mark.parametrize("array", [np.array([[0.1, np.nan], [np.inf, -0.0]]), np.arange(3) > 1])
def test_arrays_can_be_packed_and_unpacked(array):
    found = unpacked(json.loads(json.dumps(packed(array))))
    assert found.dtype == array.dtype
    assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        {},
        {"kind": "<f8", "shape": [3], "numbers": "AAAA"},
        {"kind": "<f8", "shape": [1], "numbers": "no base 64!"},
        {"kind": "|O8", "shape": [1], "numbers": "AAAAAAAAAAA="},
        {"kind": "<f8", "shape": [10**15], "numbers": ""},
        {"kind": "<f8", "shape": "ab", "numbers": ""},
        {"kind": "<f8", "shape": [-1], "numbers": "AAAAAAAAAAA="},
    ],
)
def test_damaged_arrays_are_refused(damaged):
    with pytest.raises(InvalidTable, match="a damaged array"):
        unpacked(damaged)


def test_training_on_wine_can_be_resumed():
    """The table has an ordinary size, and training stops in the middle of the grid."""
    X, y = load_wine(return_X_y=True)
    selector = GateSelector(n_features_to_select=4, network=SMALL, solver=FEW, random_state=0)
    whole = selector.fit(X, y)
    table = np.asfortranarray(X)
    first = prepared(selector, table)._stages(table, y, 0, {})
    stopped = [next(first) for _ in range(4)][-1]
    *_, last = prepared(selector, table)._stages(table, y, 0, json.loads(json.dumps(stopped)))
    again = prepared(selector, table)
    again._restore(table, y, last)
    assert_array_equal(again.gates_, whole.gates_)
    assert_array_equal(again.path_.accuracy, whole.path_.accuracy)
