"""Bytes that learning gates and networks takes at its peak, from the sizes of the table alone."""

from tamis.neural._objectives import GateSettings
from tamis.neural.gate_runs import MULTIPLES, MUS
from tamis.neural.network import groups
from tamis.neural.redundancy import SINGLE_FROM, through_columns
from tamis.neural.solver import SINGLE_FROM as SHORT_FROM

#: Past steps and changes that L-BFGS remembers, and vectors that a step is made of.
REMEMBERED, OF_A_STEP = 12, 8
#: Arrays that a layer of hidden units, and one of outputs, makes on the way there and back.
OF_HIDDEN, OF_OUTPUTS = 3, 5
#: Copies of the table: as given, standardised, sorted by class, as the network has it.
COPIES = 5
#: Copies of the table for gates that keep distances: as given, standardised, without constants.
COPIES_OF_DISTANCES = 3


def gate_bytes(
    settings: GateSettings, n: int, d: int, n_classes: int, n_networks: int, n_folds: int
) -> float:
    """Bytes of a ``GateSelector``; ``n_folds`` is 0 unless a weight is "auto"."""
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
    """Bytes of gates that keep the distances between ``n_rows`` of the rows."""
    table = 8 * COPIES_OF_DISTANCES * n * d + 8 * 6 * n_rows * d
    return table + _held(kind, n, d) + _made(kind, n, d) + 8 * 8 * n_rows**2


def _held(kind: str, n: int, d: int) -> float:
    """Bytes of a redundancy, and of what it makes while it is asked."""
    if through_columns(kind, n, d):
        return 8.0 * (2 * n * d + 2 * n**2)
    return d**2 * (4.0 if d >= SINGLE_FROM else 8.0)


def _made(kind: str, n: int, d: int) -> float:
    """Bytes that come and go while a redundancy is made."""
    if through_columns(kind, n, d):
        return 8.0 * n * d
    if kind == "information":
        return 8.0 * (4 * d**2 + 5 * n * d)
    return _held(kind, n, d) + 8.0 * n * d


def _points(n_runs: int, n_parameters: int) -> float:
    """Bytes of what L-BFGS keeps of each run."""
    remembered = REMEMBERED * (4 if n_parameters >= SHORT_FROM else 8)
    return n_runs * n_parameters * (remembered + 8 * OF_A_STEP)
