"""Kernel machines: polynomial and linear ones by powers, several columns at once by what is left.

Of RBF machines single columns are found in :mod:`tamis.response.radial`.
"""

from collections.abc import Iterator
from functools import cached_property
from math import comb

import numpy as np

from tamis._arrays import Array, Subset
from tamis.response.engine import Batch, Engine, Model
from tamis.response.radial import Nodes, RadialBatch
from tamis.svm.machine import KernelMachine, kernel_machine

#: Numbers of a batch that are held at a time (32 MB): large matrix products, little memory.
BATCH_SIZE = 4_000_000
#: Kernel values that an engine may hold (256 MB); rows are taken in blocks beyond it.
MOST_VALUES = 32_000_000


class KernelEngine(Engine):
    """A kernel machine on some rows; new values lie between ``low`` and ``high``."""

    has_centres = True

    def __init__(self, machine: KernelMachine, X: Array, low: Array, high: Array):
        self.machine, self.X = _with_centres(machine, X.shape[1]), X
        self.low, self.high = low, high
        self.n_bytes = 2 * 8 * len(X) * len(machine.centres)

    @classmethod
    def knows(cls, model: Model) -> bool:
        plain = model.method in ("decision_function", "predict")
        return plain and kernel_machine(model.fitted) is not None

    @classmethod
    def opened(cls, model: Model, X: Array, low: Array, high: Array) -> "KernelEngine | None":
        machine = kernel_machine(model.fitted)
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
        """What the kernel is a function of; made for those batches alone that need it."""
        return self.machine.grams(self.X)

    def weighted(self, values: Array, rows: slice = slice(None)) -> Array:
        """Kernel values of some rows times weights that are the rows' own, where there are any."""
        return values

    def outputs(self) -> Array:
        return self.K @ self.machine.weights + self.machine.offsets

    def batches(self, units: Subset) -> Iterator[Batch]:
        if units.shape[1] > 1:
            for index, columns in enumerate(units):
                yield JointBatch(self, index, columns)
        elif self.machine.kernel == "rbf":
            yield from self._radial(units[:, 0])
        else:
            terms = 1 + (1 if self.machine.kernel == "linear" else self.machine.degree)
            for some in self._split(np.arange(len(units)), terms):
                yield PolynomialBatch(self, some, units[some, 0])

    def _radial(self, columns: Subset) -> Iterator[RadialBatch]:
        nodes = Nodes.of(self.machine, columns, self.low[columns], self.high[columns])
        # columns of like need together, so that one wide column costs no other
        order = np.argsort(nodes.counts, kind="stable")
        for count in np.unique(nodes.counts):
            alike = order[nodes.counts[order] == count]
            for some in self._split(alike, max(1, abs(int(count)))):
                yield RadialBatch(self, some, columns[some], nodes)

    def _split(self, units: Subset, terms: int) -> Iterator[Subset]:
        each = (len(self.X) + len(self.machine.centres)) * terms * self.machine.weights.shape[1]
        at_once = int(np.clip(BATCH_SIZE // max(1, each), 1, 4096))
        for start in range(0, len(units), at_once):
            yield units[start : start + at_once]


class PolynomialBatch(Batch):
    """Columns of a linear or polynomial machine: outputs are polynomials of the new value.

    (G + g s (x' - x))^D = sum_i C(D, i) G^(D-i) (g s)^i (x' - x)^i
    """

    def __init__(self, engine: KernelEngine, units: Subset, columns: Subset):
        machine = engine.machine
        self.units, self.offsets = units, machine.offsets
        self.degree, gamma = _power(machine)
        self.slopes = gamma * machine.centres[:, columns]  # g s
        self.engine, self.x = engine, engine.X[:, columns]
        self.terms = np.stack([self._term(power) for power in range(self.degree + 1)])

    def _term(self, power: int) -> Array:
        """Coefficient of (x' - x)^power, of shape (units, rows, outputs)."""
        G, weights = self.engine.grams, self.engine.machine.weights
        left = self.engine.weighted(comb(self.degree, power) * G ** (self.degree - power))
        raised = self.slopes.T[:, :, None] ** power * weights
        return np.stack([left @ right for right in raised])

    def at(self, some: slice, rows: slice, points: Array) -> Array:
        change = points[:, None, :, 0] - self.x[rows, some].T[:, :, None]
        return self._horner(some, rows, change)

    def paired(self, values: Array) -> Array:
        return self._horner(slice(None), slice(None), (values[..., 0] - self.x).T[:, :, None])

    def _horner(self, some: slice, rows: slice, change: Array) -> Array:
        found = np.zeros((*change.shape, len(self.offsets)))
        for term in self.terms[::-1]:
            found *= change[..., None]
            found += term[some, rows, None, :]
        return found + self.offsets

    def without(self) -> Array:
        """Both the row and the centres at 0: (G - g x s)^D."""
        weights, found = self.engine.machine.weights, []
        for slopes, x in zip(self.slopes.T, self.x.T, strict=True):
            kernel = (self.engine.grams - x[:, None] * slopes) ** self.degree
            found.append(self.engine.weighted(kernel) @ weights)
        return np.stack(found)[:, :, None, :] + self.offsets


class JointBatch(Batch):
    """Columns of a machine that change together: the kernel without them, and their own.

    exp(-g d²) is the product of both, and (g <x, s> + c)^D a power of their sum.
    """

    def __init__(self, engine: KernelEngine, index: int, columns: Subset):
        self.engine, self.machine, self.units = engine, engine.machine, np.array([index])
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
        own, rest = self._own(points[0]), self.rest[rows]
        if self.radial:
            rest, bells = self.engine.weighted(rest, rows), np.exp(-self.gamma * own).T
            parts = [(rest * beta) @ bells for beta in self.machine.weights.T]
        else:
            parts = [self._powers(rest, rows, own, beta) for beta in self.machine.weights.T]
        return np.stack(parts, axis=-1)[None] + self.machine.offsets

    def _powers(self, rest: Array, rows: slice, own: Array, beta: Array) -> Array:
        """sum_q beta_q (rest_rq + own_pq)^D for every row and point, by the binomial theorem."""
        found = np.zeros((len(rest), len(own)))
        for power in range(self.degree + 1):
            left = comb(self.degree, power) * rest ** (self.degree - power)
            left = self.engine.weighted(left, rows)
            found += left @ (own**power * beta).T
        return found

    def paired(self, values: Array) -> Array:
        own = self._own(values[:, 0])
        kernel = (
            self.rest * np.exp(-self.gamma * own)
            if self.radial
            else (self.rest + own) ** self.degree
        )
        outputs = self.engine.weighted(kernel) @ self.machine.weights + self.machine.offsets
        return outputs[None, :, None, :]

    def without(self) -> Array:
        kernel = self.engine.weighted(self.rest if self.radial else self.rest**self.degree)
        return (kernel @ self.machine.weights + self.machine.offsets)[None, :, None, :]


def _with_centres(machine: KernelMachine, n_columns: int) -> KernelMachine:
    """The machine; one without centres, which answers a constant, with one that weighs nothing."""
    if len(machine.centres):
        return machine
    weights = np.zeros((1, len(machine.offsets)))
    return machine._replace(centres=np.zeros((1, n_columns)), weights=weights)


def _power(machine: KernelMachine) -> tuple[int, float]:
    """Degree and factor of a kernel; a linear one is a power of 1."""
    return (1, 1.0) if machine.kernel == "linear" else (machine.degree, machine.gamma)
