"""Engine of kernel machines whose weights are those of each row: machines without one row each.

All of them come from one inverse (:mod:`tamis.svm.newton.left_out`); what a row's machine answers
when its columns change is found as for one machine.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from tamis._arrays import Array, Subset
from tamis.response.engine import Batch, Engine, Model
from tamis.response.kernel import KernelEngine
from tamis.svm.machine import KernelMachine
from tamis.svm.newton.left_out import LeftOutMachines


class LeftOutEngine(Engine):
    """Such machines on their rows: one engine for each output."""

    has_centres = True

    def __init__(self, machines: LeftOutMachines, X: Array, low: Array, high: Array):
        self.offsets = machines.offsets
        one = machines.machine._replace(
            weights=np.ones((len(machines.machine.centres), 1)), offsets=np.zeros(1)
        )
        self.engines = [_OwnWeights(one, own, X, low, high) for own in machines.weights]
        self.n_bytes = sum(engine.n_bytes for engine in self.engines)

    @classmethod
    def knows(cls, model: Model) -> bool:
        return isinstance(model.fitted, LeftOutMachines)

    @classmethod
    def opened(cls, model: Model, X: Array, low: Array, high: Array) -> "LeftOutEngine":
        return cls(model.fitted, X, low, high)

    def outputs(self) -> Array:
        return np.concatenate([one.outputs() for one in self.engines], axis=1) + self.offsets

    def batches(self, units: Subset) -> Iterator[Batch]:
        each = (engine.batches(units) for engine in self.engines)
        for parts in zip(*each, strict=True):
            yield _LeftOutBatch(list(parts), self.offsets)


class _OwnWeights(KernelEngine):
    """A kernel machine of one output, whose weights are those of each row."""

    def __init__(self, machine: KernelMachine, weights: Array, X: Array, low: Array, high: Array):
        super().__init__(machine, X, low, high)
        self.weights, self.n_bytes = weights, self.n_bytes + weights.nbytes

    @cached_property
    def K(self) -> Array:
        return self.weighted(self.machine.values(self.machine.grams(self.X)))

    def weighted(self, values: Array, rows: slice = slice(None)) -> Array:
        return np.asarray(values * self.weights[rows])


class _LeftOutBatch(Batch):
    """Batches of the outputs, which are of the same units, side by side."""

    def __init__(self, parts: list[Batch], offsets: Array):
        self.parts, self.offsets, self.units = parts, offsets, parts[0].units

    def at(self, some: slice, rows: slice, points: Array) -> Array:
        return self._joined([part.at(some, rows, points) for part in self.parts], rows)

    def paired(self, values: Array) -> Array:
        return self._joined([part.paired(values) for part in self.parts], slice(None))

    def without(self) -> Array:
        return self._joined([part.without() for part in self.parts], slice(None))

    def _joined(self, outputs: list[Array], rows: slice) -> Array:
        return np.concatenate(outputs, axis=-1) + self.offsets[rows][None, :, None, :]
