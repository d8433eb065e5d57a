"""What learning gates costs: operations and bytes, from the sizes of the table alone.

Numbers of evaluations are those seen on tables of 50 to 5000 rows; what a table needs is known when
it has been done.
"""

from dataclasses import dataclass

from tamis.contract import Cost
from tamis.neural._gating import GateSettings
from tamis.neural._optimise import SINGLE_FROM as SHORT_FROM
from tamis.neural._sizes import AT_ONCE
from tamis.neural._training import groups
from tamis.neural.grid import MULTIPLES, MUS
from tamis.neural.redundancy import SINGLE_FROM, through_columns

#: Evaluations of a network until it rests, of at most 200 iterations.
OF_A_NETWORK = 100
#: Evaluations of gates until they rest: by L-BFGS, by L-BFGS together with weights, by Adam.
OF_GATES, OF_JOINT, OF_ADAM = 60, 300, 600
#: Operations of an activation, and of a probability with its loss and slope, for each row.
OF_A_UNIT = 30
#: Past steps and changes that L-BFGS remembers, and vectors that a step is made of.
REMEMBERED, OF_A_STEP = 12, 8
#: Arrays that a layer of hidden units, and one of outputs, makes on the way there and back.
OF_HIDDEN, OF_OUTPUTS = 3, 5
#: Copies of the table: as given, standardised, sorted by class, as the network has it.
COPIES = 5
#: Evaluations of one descent to gates that keep distances, and how often its first is made again.
OF_A_DESCENT, N_WEIGHED = 80, 2
#: Operations of a distance in an evaluation, and in the value of a step for each column.
OF_A_PAIR, OF_A_VALUE = 40, 15
#: Copies of the table for gates that keep distances: as given, standardised, without constants.
COPIES_OF_DISTANCES = 3


@dataclass(frozen=True)
class TableSize:
    """Rows, columns and classes."""

    n_samples: int
    n_features: int
    n_classes: int


@dataclass(frozen=True)
class GateCost:
    """What a ``GateSelector`` costs on a table of some size."""

    settings: GateSettings
    size: TableSize
    n_networks: int
    auto: bool
    n_folds: int

    @property
    def n_weights(self) -> int:
        """Weights of one network."""
        hidden, n_classes = self.settings.network.hidden, self.size.n_classes
        return (self.size.n_features + 1) * hidden + (hidden + 1) * n_classes

    def of_a_network(self) -> float:
        """Operations of one evaluation of one network, and of the step that follows."""
        n, d, c = self.size.n_samples, self.size.n_features, self.size.n_classes
        hidden = self.settings.network.hidden
        products = 4 * n * d * hidden + 6 * n * hidden * c
        return products + OF_A_UNIT * n * (hidden + c) + 4 * REMEMBERED * self.n_weights

    def operations(self) -> float:
        """Operations of all stages."""
        joint, adam = self.settings.joint, self.settings.solver.kind == "adam"
        evaluations = OF_ADAM if adam else OF_JOINT if joint else OF_GATES
        evaluations = min(evaluations, 2 * self.settings.solver.max_iter)
        n_rows = self.settings.n_rows(self.size.n_classes)
        passes = n_rows if self.settings.scope == "one-vs-rest" else 1
        before = 1 if joint else self.n_networks
        of_shares, of_pairs = self.of_dependence()
        of_gates = before * passes * self.of_a_network() + n_rows * of_shares
        total = self.n_networks * OF_A_NETWORK * self.of_a_network() + of_pairs
        total += (self.n_networks if joint else 1) * evaluations * of_gates
        if self.auto:
            n_points, restarts = len(MUS) * len(MULTIPLES), self.settings.network.restarts
            each = (1 if joint else restarts) * passes * self.of_a_network()
            runs = n_points * self.n_folds
            total += (runs + self.n_folds * restarts) * OF_A_NETWORK * self.of_a_network()
            total += runs * evaluations * (each + n_rows * of_shares) + self.n_folds * of_pairs
        return total

    def of_dependence(self) -> tuple[float, float]:
        """Operations of the redundancy: each time it is asked for, and once for all."""
        kind = self.settings.redundancy.kind
        return of_dependence(kind, self.size.n_samples, self.size.n_features)

    def bytes(self) -> float:
        """Bytes at the peak: the table, what is held throughout, and the largest stage."""
        n, d = self.size.n_samples, self.size.n_features
        n_runs = len(MUS) * self.n_folds
        stages = [self.networks_in(self.n_networks), self.gates_in(self.n_networks, 1)]
        held = self.dependence_in()
        if self.settings.joint:
            stages.append(self.gates_in(1, self.n_networks))
        if self.auto:
            restarts = 1 if self.settings.joint else self.settings.network.restarts
            held += self.n_folds * self.dependence_in()
            stages.append(self.networks_in(n_runs * len(MULTIPLES)))
            stages.append(self.gates_in(restarts, n_runs))
        making = making_in(self.settings.redundancy.kind, n, d)
        return 8 * COPIES * n * d + held + making + max(stages)

    def layers_in(self, n_networks: int) -> float:
        """Bytes of the layers of networks that are evaluated together."""
        c, hidden = self.size.n_classes, self.settings.network.hidden
        return 8 * n_networks * self.size.n_samples * (OF_HIDDEN * hidden + OF_OUTPUTS * c)

    def networks_in(self, n_networks: int) -> float:
        """Bytes of networks that are trained together."""
        n, d, c = self.size.n_samples, self.size.n_features, self.size.n_classes
        together = next(groups(n_networks, d, self.settings.network.hidden, c, n)).stop
        return self.layers_in(together) + _points_in(together, self.n_weights)

    def gates_in(self, n_networks: int, n_runs: int) -> float:
        """Bytes of runs of gates, each before some networks, that are learned together."""
        n_gates = self.settings.n_rows(self.size.n_classes) * self.size.n_features
        learned = n_gates + (self.n_weights if self.settings.joint else 0)
        weights = 3 * 8 * n_networks * n_runs * self.n_weights
        return self.layers_in(n_networks * n_runs) + weights + _points_in(n_runs, learned)

    def dependence_in(self) -> float:
        """Bytes of the redundancy of one fold."""
        n, d, redundancy = self.size.n_samples, self.size.n_features, self.settings.redundancy
        inside = redundancy.inside_classes(self.settings.scope)
        parts = self.size.n_classes if inside else 1
        return parts * held_in(redundancy.kind, n // parts, d)


def of_dependence(kind: str, n: int, d: int) -> tuple[float, float]:
    """Operations of a redundancy: each time it is asked for, and once for all."""
    if through_columns(kind, n, d):
        return 4.0 * n**2 * d, 0.0
    return 2.0 * d**2, (9 if kind == "information" else 1) * 2.0 * n * d**2


def held_in(kind: str, n: int, d: int) -> float:
    """Bytes of a redundancy, and of what it makes while it is asked."""
    if through_columns(kind, n, d):
        return 8.0 * (2 * n * d + 2 * n**2)
    return d**2 * (4.0 if d >= SINGLE_FROM else 8.0)


def making_in(kind: str, n: int, d: int) -> float:
    """Bytes that come and go while a redundancy is made."""
    if through_columns(kind, n, d):
        return 8.0 * n * d
    if kind == "information":
        return 8.0 * (4 * d**2 + 5 * n * d)
    return held_in(kind, n, d) + 8.0 * n * d


def _points_in(n_runs: int, n_parameters: int) -> float:
    """Bytes of what L-BFGS keeps of each run."""
    remembered = REMEMBERED * (4 if n_parameters >= SHORT_FROM else 8)
    return n_runs * n_parameters * (remembered + 8 * OF_A_STEP)


def cost_of_distances(
    kind: str, restarts: int, n_rows: int, n_samples: int, n_features: int
) -> Cost:
    """Operations and bytes of gates that keep the distances between ``n_rows`` of the rows."""
    each, once = of_dependence(kind, n_samples, n_features)
    pairs = n_rows**2
    of_a_step = 4 * pairs * n_features + OF_A_PAIR * pairs + each
    values = OF_A_VALUE * pairs * n_features
    operations = (restarts + N_WEIGHED) * OF_A_DESCENT * of_a_step + values + once
    table = 8 * COPIES_OF_DISTANCES * n_samples * n_features + 8 * 6 * n_rows * n_features
    held = held_in(kind, n_samples, n_features) + making_in(kind, n_samples, n_features)
    return Cost(operations / AT_ONCE, table + held + 8 * 8 * pairs)
