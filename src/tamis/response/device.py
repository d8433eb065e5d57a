"""Sensitivities of Gaussian kernel machines on a device: outputs and statistics where the rows are.

All columns are found together by :mod:`tamis._column_series`; what cannot be is compared on the
processor, by the engines there, and is said once.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tamis._arrays import Array, Mask, Subset
from tamis._column_series import in_memory, output_changes
from tamis._column_series.table import strips
from tamis._namespace import (
    Place,
    host,
    is_elsewhere,
    move,
    namespace,
    note,
    rows_taken,
    say_processor,
)
from tamis.folds.rows import Rows
from tamis.response.comparison import DrawComparison, EngineComparison, gathered
from tamis.response.differences import Difference, in_differences, knows_link, linked
from tamis.response.distances import Statistic
from tamis.response.engine import Model
from tamis.response.perturbations import Draw, Points, Shuffle
from tamis.response.scaled import ColumnScaling, scaling_of
from tamis.response.training import FoldModel
from tamis.svm.kernels import Kernel
from tamis.svm.machine import is_newton, kernel_machine
from tamis.svm.newton.spaces import kernel_matrix

#: What is said where the processor compares.
INSTEAD = (
    "Machines with kernel='rbf' are followed there, column by column, by='marginal', 'permutation' "
    "and 'zero', with on='training' and 'held-out'."
)


class RadialMachine(NamedTuple):
    """Outputs Σ_q β_q exp(-γ |x - s_q|²) + b, where the centres are."""

    gamma: float
    centres: Any
    weights: Any  # (centres, outputs)
    offsets: Array

    @classmethod
    def of(cls, fitted: Any, like: Any) -> "RadialMachine | None":
        """View on a fitted machine on the device of an array; None where its kernel is another."""
        if is_newton(fitted):
            if fitted.kernel != "rbf":
                return None
            gamma, offsets = fitted._kernel.gamma, fitted.intercept_
            parts = fitted.support_vectors_, fitted.dual_coef_.T
        else:
            machine = kernel_machine(fitted)
            if machine is None or machine.kernel != "rbf":
                return None
            gamma, offsets = machine.gamma, machine.offsets
            parts = machine.centres, machine.weights
        centres, weights = (x if is_elsewhere(x) else move(x, like) for x in parts)
        if not centres.shape[0]:  # it answers a constant: one centre that weighs nothing
            centres, weights = like[:1, :], move(np.zeros((1, len(offsets))), like)
        return cls(gamma, centres, weights, offsets)

    def outputs(self, X: Any) -> Any:
        """Raw outputs of rows, of shape (rows, outputs)."""
        kernel, offsets = Kernel("rbf", self.gamma), move(self.offsets, X)[None, :]
        parts = [
            kernel_matrix(kernel, X[rows, :], self.centres) @ self.weights + offsets
            for rows in strips(X)
        ]
        return namespace(X).concat(parts, axis=0)


class DevicePart(NamedTuple):
    """A machine and the rows that it answers for, in the units that it sees."""

    machine: RadialMachine
    link: Any
    rows: Rows
    scalings: list[ColumnScaling]
    X: Any  # all rows of the table, scaled
    f: Any  # raw outputs of its rows

    @property
    def own(self) -> Any:
        """The rows that it answers for."""
        return rows_taken(self.X, self.rows)

    @classmethod
    def of(cls, part: FoldModel, X: Any) -> "DevicePart | None":
        """None where the processor must answer."""
        model, rows = part
        scalings, last = scaling_of(model.fitted)
        plain = model.method in ("decision_function", "predict") and knows_link(model.link)
        machine = RadialMachine.of(last, X) if plain else None
        if machine is None:
            return None
        for scaling in scalings:
            shift, factor, offset = (move(values, X)[None, :] for values in scaling)
            X = (X - shift) * factor + offset
        return cls(machine, model.link, rows, scalings, X, machine.outputs(rows_taken(X, rows)))

    def scaled(self, points: Array) -> Any:
        """New values, of shape (points, columns), as the machine sees them."""
        for scaling in self.scalings:
            points = scaling(points)
        return move(points, self.X)


def comparison_of(
    models: list[FoldModel],
    X: Any,
    statistic: Callable[[Array], Statistic],
    n_jobs: int | None = None,
    place: Place | None = None,
    precision: str = "double",
) -> DrawComparison:
    """Who follows the draws of a perturbation: on the device of the table, or asked for, if any."""
    if place is None and not is_elsewhere(X):
        return EngineComparison(models, X, statistic, n_jobs)
    on_processor = lambda: EngineComparison(models, host(X), statistic, n_jobs)  # noqa: E731
    there = X if is_elsewhere(X) or place is None else place.put(X)
    parts = [DevicePart.of(part, there) for part in models]
    known = [part for part in parts if part is not None]
    if len(known) == len(parts):
        f = [model.link(host(part.f)) for (model, _), part in zip(models, known, strict=True)]
        found = statistic(gathered(models, f, X.shape[0]))
        difference = in_differences(found, known[0].f.shape[1])
        if difference is not None:
            return DeviceComparison(known, difference, on_processor, precision)
    say_processor(f"What {_who(models[0].model)} as columns change is computed", INSTEAD)
    note("scores")
    return on_processor()


def _who(model: Model) -> str:
    """Whose answers the processor compares, for a sentence."""
    if model.method == "left-out":
        return "machines without one row each answer"
    return f"{type(scaling_of(model.fitted)[1]).__name__} answers"


class DeviceComparison:
    """By series of all columns, on the device of the rows."""

    def __init__(
        self,
        parts: list[DevicePart],
        difference: Difference,
        on_processor: Callable[[], DrawComparison],
        precision: str = "double",
    ):
        self.parts, self.difference = parts, difference
        self.on_processor, self.is_single = on_processor, precision == "single"
        self.instead: DrawComparison | None = None

    def scores(self, units: Subset, draw: Draw, wanted: Mask) -> Array:
        if units.shape[1] > 1 or not isinstance(draw, Points | Shuffle):
            return self._elsewhere(units, draw, wanted)
        scales: Array | None = None
        for _ in range(self.difference.n_passes):
            sums = in_memory(partial(self._sums, units[:, 0], draw, scales))
            scales = self.difference.scores(sums, scales)
        assert scales is not None
        note("scores", self.parts[0].X)
        return scales

    def _elsewhere(self, units: Subset, draw: Draw, wanted: Mask) -> Array:
        """Groups of columns, and centres without a column, by the engines of the processor."""
        say_processor("What changes by groups of columns, or in centres too, is computed", INSTEAD)
        note("scores")
        if self.instead is None:
            self.instead = self.on_processor()
        return self.instead.scores(units, draw, wanted)

    def _sums(self, columns: Subset, draw: Points | Shuffle, scales: Array | None) -> Array:
        """Sums over all rows, of shape (n_sums, units)."""
        n_columns = self.parts[0].X.shape[1]
        unit = np.full(n_columns, -1)
        unit[columns] = np.arange(len(columns))
        found: Any = 0.0
        for part in self.parts:
            for altered, sums in self._of_part(part, columns, unit, draw, scales):
                if isinstance(found, float):
                    found = np.zeros((sums.shape[0], len(columns)))
                kept = unit[altered] >= 0
                found[:, unit[altered][kept]] += host(sums)[:, kept]
        return np.asarray(found)

    def _of_part(
        self,
        part: DevicePart,
        columns: Subset,
        unit: Subset,
        draw: Points | Shuffle,
        scales: Array | None,
    ) -> Iterator[tuple[Subset, Any]]:
        """Sums of some columns, over some rows and points of a machine."""
        paired, n_columns = isinstance(draw, Shuffle), len(unit)
        if isinstance(draw, Shuffle):
            points, shares = rows_taken(part.X, draw.donors[part.rows]), np.ones((n_columns, 1))
        else:
            values, shares = np.zeros((draw.values.shape[1], n_columns)), draw.weights
            values[:, columns] = draw.values[..., 0].T
            points, shares = part.scaled(values), shares[unit]
        machine, xp = part.machine, namespace(part.f)
        own_rows, centres, beta = part.own, machine.centres, machine.weights
        if self.is_single:  # kernels and their products; what is made of outputs stays double
            own_rows, centres, beta, points = (
                xp.astype(x, xp.float32) for x in (own_rows, centres, beta, points)
            )
        given = own_rows, centres, beta, machine.gamma, points
        for rows, altered, some, change in output_changes(*given, paired=paired):
            f, weights = part.f[rows, :], move(shares[altered, some], part.f)
            own = None if scales is None else scales[unit[altered]]
            moved = linked(part.link, f, xp.astype(change, f.dtype, copy=False))
            yield altered, self.difference.sums(part.rows[rows], f, moved, weights, own)
