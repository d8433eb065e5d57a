"""Kernel machines: polynomial and linear ones by powers, several columns at once by what is left.

Single columns of RBF machines are found in :mod:`tamis.response.engines.radial`.
"""

from collections.abc import Iterator
from functools import cached_property
from math import comb

import numpy as np

from tamis._arrays import Array, Subset
from tamis.response.engines.base import Batch, Engine, Model
from tamis.response.engines.radial import Nodes, RadialBatch
from tamis.svm.machine import KernelMachine, kernel_machine
from tamis.svm.newton.left_out import LeftOutMachines

#: Numbers of a batch that are held at a time (32 MB): large matrix products, little memory.
BATCH_SIZE = 4_000_000
#: Kernel values that an engine may hold (256 MB); rows are taken in blocks beyond it.
MOST_VALUES = 32_000_000


class KernelEngine(Engine):
    """A kernel machine on some rows; new values lie between ``low`` and ``high``.

    Machines without one row each have weights and offsets of their own for each row.
    """

    has_centres = True

    def __init__(self, machine: KernelMachine | LeftOutMachines, X: Array, low: Array, high: Array):
        self.row_weights: Array | None = None
        offsets = machine.offsets
        if isinstance(machine, LeftOutMachines):
            machine, self.row_weights = machine.machine, machine.weights
        elif not len(machine.centres):  # a constant: one centre that weighs nothing
            centres, weights = np.zeros((1, X.shape[1])), np.zeros((1, len(offsets)))
            machine = machine._replace(centres=centres, weights=weights)
        self.machine, self.X, self.low, self.high = machine, X, low, high
        self.n_outputs = offsets.shape[-1]
        self.offsets = np.broadcast_to(offsets, (len(X), self.n_outputs))
        n_tables = 2 if self.row_weights is None else 2 + self.n_outputs
        self.n_bytes = n_tables * 8 * len(X) * len(machine.centres)

    @classmethod
    def knows(cls, model: Model) -> bool:
        plain = model.method in ("decision_function", "predict")
        left_out = isinstance(model.fitted, LeftOutMachines)
        return left_out or (plain and kernel_machine(model.fitted) is not None)

    @classmethod
    def opened(cls, model: Model, X: Array, low: Array, high: Array) -> "KernelEngine | None":
        left_out = isinstance(model.fitted, LeftOutMachines)
        machine = model.fitted if left_out else kernel_machine(model.fitted)
        return cls(machine, X, low, high) if machine else None

    @classmethod
    def rows_at_once(cls, model: Model, n_rows: int) -> int:
        machine = kernel_machine(model.fitted)
        n_centres = len(machine.centres) if machine else 0
        return min(n_rows, max(1, MOST_VALUES // max(1, n_centres)))

    @cached_property
    def K(self) -> Array:
        """Kernel between the rows and the centres."""
        return self.machine.values(self.machine.grams(self.X))

    @cached_property
    def grams(self) -> Array:
        """What the kernel is a function of; made only for batches that need it."""
        return self.machine.grams(self.X)

    def combine(self, kernel: Array) -> Array:
        """Outputs (rows, outputs) of a kernel (rows, centres)."""
        if self.row_weights is None:
            return kernel @ self.machine.weights + self.offsets
        return self.weigh(kernel).sum(axis=-1).T + self.offsets

    def weigh(self, kernel: Array, rows: slice = slice(None)) -> Array:
        """Kernel of some rows times the weights, of shape (outputs, rows, centres)."""
        if self.row_weights is None:
            return kernel * self.machine.weights.T[:, None]
        return kernel * self.row_weights[:, rows]

    def product(self, kernel: Array, right: Array, rows: slice = slice(None)) -> Array:
        """Kernel of some rows, weighted, times (centres, terms): (outputs, rows, terms)."""
        if self.row_weights is not None:
            return self.weigh(kernel, rows) @ right
        return np.stack([kernel @ (right * beta[:, None]) for beta in self.machine.weights.T])

    def outputs(self) -> Array:
        return self.combine(self.K)

    def batches(self, units: Subset) -> Iterator[Batch]:
        machine = self.machine
        if units.shape[1] > 1:
            for index, columns in enumerate(units):
                yield JointBatch(self, index, columns)
            return
        columns, each = units[:, 0], np.arange(len(units))
        if machine.kernel != "rbf":
            for some in self._split(each, 1 + _power(machine)[0]):
                yield PolynomialBatch(self, some, columns[some])
            return
        nodes = Nodes.of(machine, columns, self.low[columns], self.high[columns])
        # columns of like need together, so that one wide column costs no other
        for count in np.unique(nodes.counts):
            for some in self._split(each[nodes.counts == count], max(1, abs(int(count)))):
                yield RadialBatch(self, some, columns[some], nodes)

    def _split(self, units: Subset, n_terms: int) -> Iterator[Subset]:
        each = (len(self.X) + len(self.machine.centres)) * n_terms * self.n_outputs
        n_at_once = int(np.clip(BATCH_SIZE // max(1, each), 1, 4096))
        for start in range(0, len(units), n_at_once):
            yield units[start : start + n_at_once]


class PolynomialBatch(Batch):
    """Columns of a linear or polynomial machine: outputs are polynomials of the new value.

    (G + g s (x' - x))^D = sum_i C(D, i) G^(D-i) (g s)^i (x' - x)^i
    """

    def __init__(self, engine: KernelEngine, units: Subset, columns: Subset):
        machine = engine.machine
        self.units = units
        self.degree, gamma = _power(machine)
        self.slopes = gamma * machine.centres[:, columns]  # g s
        self.engine, self.x = engine, engine.X[:, columns]
        self.terms = np.stack([self._term(power) for power in range(self.degree + 1)])

    def _term(self, power: int) -> Array:
        """Coefficient of (x' - x)^power, of shape (units, rows, outputs)."""
        left = comb(self.degree, power) * self.engine.grams ** (self.degree - power)
        return self.engine.product(left, self.slopes**power).transpose(2, 1, 0)

    def at(self, some: slice, rows: slice, points: Array) -> Array:
        change = points[:, None, :, 0] - self.x[rows, some].T[:, :, None]
        return self._horner(some, rows, change)

    def paired(self, values: Array) -> Array:
        return self._horner(slice(None), slice(None), (values[..., 0] - self.x).T[:, :, None])

    def _horner(self, some: slice, rows: slice, change: Array) -> Array:
        found = np.zeros((*change.shape, self.engine.n_outputs))
        for term in self.terms[::-1]:
            found *= change[..., None]
            found += term[some, rows, None, :]
        return found + self.engine.offsets[rows, None, :]

    def without(self) -> Array:
        """Both the row and the centres at 0: (G - g x s)^D."""
        found = [
            self.engine.combine((self.engine.grams - x[:, None] * slopes) ** self.degree)
            for slopes, x in zip(self.slopes.T, self.x.T, strict=True)
        ]
        return np.stack(found)[:, :, None, :]


class JointBatch(Batch):
    """Columns of a machine that change together: the kernel without them, and their own.

    exp(-g d²) is the product of both, and (g <x, s> + c)^D a power of their sum.
    """

    def __init__(self, engine: KernelEngine, index: int, columns: Subset):
        self.engine, self.units = engine, np.array([index])
        self.centres = engine.machine.centres[:, columns]
        self.radial = engine.machine.kernel == "rbf"
        self.degree, self.gamma = _power(engine.machine)
        rest = engine.grams - self._own(engine.X[:, columns])
        self.rest = np.exp(-self.gamma * np.maximum(rest, 0)) if self.radial else rest

    def _own(self, values: Array) -> Array:
        """Squared distances to the centres, or products with them, of these columns alone."""
        if not self.radial:
            return self.gamma * values @ self.centres.T
        found = np.zeros((len(values), len(self.centres)))
        for value, centre in zip(values.T, self.centres.T, strict=True):
            found += (value[:, None] - centre) ** 2
        return found

    def at(self, some: slice, rows: slice, points: Array) -> Array:
        own, rest, product = self._own(points[0]).T, self.rest[rows], self.engine.product
        if self.radial:
            found = product(rest, np.exp(-self.gamma * own), rows)
        else:  # sum_q beta_q (rest_rq + own_qp)^D by the binomial theorem
            terms = [
                product(comb(self.degree, k) * rest ** (self.degree - k), own**k, rows)
                for k in range(self.degree + 1)
            ]
            found = np.sum(terms, axis=0)
        return np.moveaxis(found, 0, -1)[None] + self.engine.offsets[rows, None, :]

    def paired(self, values: Array) -> Array:
        own = self._own(values[:, 0])
        if self.radial:
            return self._combined(self.rest * np.exp(-self.gamma * own))
        return self._combined((self.rest + own) ** self.degree)

    def without(self) -> Array:
        return self._combined(self.rest if self.radial else self.rest**self.degree)

    def _combined(self, kernel: Array) -> Array:
        return self.engine.combine(kernel)[None, :, None, :]


def _power(machine: KernelMachine) -> tuple[int, float]:
    """Degree and factor of a kernel; a linear one is a power of 1."""
    return (1, 1.0) if machine.kernel == "linear" else (machine.degree, machine.gamma)
