"""Memory estimates of fits, and interrupts."""

import signal
import tracemalloc

import numpy as np
import pytest

from tamis import _memory as costs
from tamis.exceptions import InvalidParameter, NotEnoughMemory
from tamis.neural import GateSelector, GateSolver, NetworkClassifier, UFeSCoR

pytestmark = pytest.mark.filterwarnings("ignore::tamis.exceptions.DegenerateData")

GIVEN = {"mu": 1, "lam": 1, "random_state": 0}
#: Few iterations suffice, because memory is allocated early, and tracing is slow.
FEW = {
    "network": NetworkClassifier(decay=0.01, combine="mean", max_iter=8),
    "solver": GateSolver(max_iter=8),
    "random_state": 0,
}
SHORT = GIVEN | FEW


def table(n_samples, n_features, n_classes=2):
    """Return classes that depend on the first three columns."""
    y = np.arange(n_samples) % n_classes
    X = np.random.default_rng(0).normal(size=(n_samples, n_features))
    X[:, :3] += y[:, None]
    return X, y


def peak(selector, X, y):
    """Return the peak memory of a fit in bytes, without the table itself."""
    tracemalloc.start()
    try:
        selector.fit(X, y)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("selector", "shape"),
    [
        (GateSelector(**GIVEN), (150, 4)),
        (GateSelector(**FEW), (150, 4)),
        (GateSelector(**SHORT), (2000, 50)),
        (GateSelector(**SHORT), (10_000, 5)),
        (GateSelector(**SHORT), (50, 1200)),
        (GateSelector(scope="class", **SHORT), (1000, 20)),
        (GateSelector(redundancy="information", **SHORT), (50, 500)),
        (GateSelector(redundancy="squared", **SHORT), (20, 3000)),
        (GateSelector(joint=True, **SHORT), (60, 300)),
        (GateSelector(**FEW), (60, 300)),
        (UFeSCoR(random_state=0, restarts=2), (150, 4)),
        (UFeSCoR(random_state=0, restarts=2), (5000, 20)),
        (UFeSCoR(random_state=0, restarts=1), (50, 2000)),
        (UFeSCoR(random_state=0, restarts=1, redundancy="pearson"), (50, 1200)),
        (UFeSCoR(random_state=0, restarts=1, redundancy="information"), (100, 400)),
    ],
)
def test_memory_estimates_agree_with_measurements(selector, shape):
    """The estimate is right within a factor of three for tables that are not tiny."""
    needed = selector.cost(*shape)
    measured = peak(selector, *table(*shape))
    assert measured / 3 < needed < 3 * measured


@pytest.mark.parametrize("selector", [GateSelector(), GateSelector(scope="class"), UFeSCoR()])
def test_more_rows_and_columns_need_more_memory(selector):
    sizes = ((50, 20), (500, 20), (50, 200))
    few, rows, columns = (selector.cost(*shape) for shape in sizes)
    assert min(rows, columns) > few


def test_choosing_a_weight_automatically_needs_more_memory():
    found, given = (GateSelector(**how).cost(1000, 50) for how in ({}, GIVEN))
    assert found > given
    assert GateSelector().cost(1000, 50, n_classes=9) > found


@pytest.mark.parametrize("selector", [GateSelector(**GIVEN), UFeSCoR()])
def test_a_table_that_does_not_fit_is_refused_with_a_size_that_does(selector, monkeypatch):
    X, y = table(100, 50)
    monkeypatch.setattr(costs, "free_memory", lambda: selector.cost(100, 20))
    with pytest.raises(NotEnoughMemory, match=r"100 rows and 50 columns.* 20 columns would.*Then"):
        selector.fit(X, y)
    monkeypatch.setattr(costs, "free_memory", lambda: 100.0)
    with pytest.raises(NotEnoughMemory, match="Use the recipe"):
        selector.fit(X, y)
    assert not hasattr(selector, "gates_")


@pytest.mark.parametrize("selector", [GateSelector(), UFeSCoR(redundancy="pearson")])
def test_too_many_columns_for_all_pairs_are_refused_before_any_work(selector):
    X, y = table(4, 100_000)
    with pytest.raises(InvalidParameter, match=r"redundancy='squared', or .* with Then\("):
        selector.fit(X, y)


def test_free_memory_is_known():
    assert costs.free_memory() > 1e6


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs an alarm clock")
@pytest.mark.parametrize(
    ("selector", "shape"),
    [
        (GateSelector(network=NetworkClassifier(30)), (10_000, 50)),
        (UFeSCoR(restarts=1000), (500, 1000)),
    ],
)
def test_training_can_be_interrupted(selector, shape):
    """The training would take minutes without the interrupt."""
    X, y = table(*shape)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    try:
        with pytest.raises(KeyboardInterrupt):
            selector.fit(X, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not hasattr(selector, "support_")
