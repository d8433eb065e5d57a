"""Estimates of the peak memory in bytes that learning gates and networks needs."""

from tamis.neural._objectives import GateSettings
from tamis.neural.gate_runs import MULTIPLES, MUS
from tamis.neural.network import groups
from tamis.neural.redundancy import SINGLE_FROM, through_columns
from tamis.neural.solver import SINGLE_FROM as SHORT_FROM

#: Number of vectors that L-BFGS stores for each run (6 steps and 6 changes of the gradient), and
#: number of temporary vectors in a step.
REMEMBERED, OF_A_STEP = 12, 8
#: Number of arrays with the size of the hidden layer, and with the size of the output layer, in a
#: forward and backward pass.
OF_HIDDEN, OF_OUTPUTS = 3, 5
#: Number of copies of the table in memory: the input, the standardised table, the table sorted by
#: class, and copies inside the network.
COPIES = 5
#: Number of copies of the table in UFeSCoR: the input, the standardised table, and the table
#: without constant columns.
COPIES_OF_DISTANCES = 3


def gate_bytes(
    settings: GateSettings, n: int, d: int, n_classes: int, n_networks: int, n_folds: int
) -> float:
    """Return the peak memory in bytes that a ``GateSelector`` needs for n rows and d columns.

    ``n_folds`` is the number of cross-validation folds. It is 0 if no weight is "auto".
    """
    network, redundancy = settings.network, settings.redundancy
    hidden, joint = network.hidden, settings.joint
    n_weights = (d + 1) * hidden + (hidden + 1) * n_classes
    n_learned = settings.n_rows(n_classes) * d + (n_weights if joint else 0)

    def layers(k: int) -> float:
        return 8 * k * n * (OF_HIDDEN * hidden + OF_OUTPUTS * n_classes)

    def training(k: int) -> float:
        together = next(groups(k, d, hidden, n_classes, n)).stop
        return layers(together) + _points(together, n_weights)

    def gates(n_before: int, n_runs: int) -> float:
        k = n_before * n_runs
        return layers(k) + 24 * k * n_weights + _points(n_runs, n_learned)

    stages = [training(n_networks), gates(n_networks, 1)]
    if joint:
        stages.append(gates(1, n_networks))
    if n_folds:
        n_runs = len(MUS) * n_folds
        stages.append(training(n_runs * len(MULTIPLES)))
        stages.append(gates(1 if joint else network.restarts, n_runs))
    parts = n_classes if redundancy.inside_classes(settings.scope) else 1
    held = (1 + n_folds) * parts * _held(redundancy.kind, n // parts, d)
    return 8 * COPIES * n * d + held + _made(redundancy.kind, n, d) + max(stages)


def distance_bytes(kind: str, n_rows: int, n: int, d: int) -> float:
    """Return the peak memory in bytes that ``UFeSCoR`` needs for n rows and d columns.

    ``kind`` is the redundancy measure. Distances are computed only between ``n_rows`` of the n
    rows.
    """
    table = 8 * COPIES_OF_DISTANCES * n * d + 8 * 6 * n_rows * d
    return table + _held(kind, n, d) + _made(kind, n, d) + 8 * 8 * n_rows**2


def _held(kind: str, n: int, d: int) -> float:
    """Return the memory in bytes that a dependence matrix and products with it need."""
    if through_columns(kind, n, d):
        return 8.0 * (2 * n * d + 2 * n**2)
    return d**2 * (4.0 if d >= SINGLE_FROM else 8.0)


def _made(kind: str, n: int, d: int) -> float:
    """Return the memory in bytes of temporary arrays while a dependence matrix is computed."""
    if through_columns(kind, n, d):
        return 8.0 * n * d
    if kind == "information":
        return 8.0 * (4 * d**2 + 5 * n * d)
    return _held(kind, n, d) + 8.0 * n * d


def _points(n_runs: int, n_parameters: int) -> float:
    """Return the memory in bytes that the state of L-BFGS needs for all runs."""
    remembered = REMEMBERED * (4 if n_parameters >= SHORT_FROM else 8)
    return n_runs * n_parameters * (remembered + 8 * OF_A_STEP)
