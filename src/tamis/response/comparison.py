"""Outputs of models before and after a perturbation, compared in blocks that fit a cache."""

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from tamis._arrays import Array, Mask, Subset
from tamis.response.distances import DistanceBlock, Statistic
from tamis.response.engine import Batch, Engine, no_centres
from tamis.response.opening import open_engine, rows_at_once
from tamis.response.perturbations import Centres, Draw, Points, Shuffle
from tamis.response.training import FoldModel

#: Numbers in a block of altered outputs (2 MB): small enough for a processor's cache.
BLOCK = 250_000
#: Bytes of engines that are kept between two passes: what an ordinary machine can spare.
KEPT = 1_000_000_000


class DrawComparison(Protocol):
    """How far models are moved by the draws of a perturbation."""

    def scores(self, units: Subset, draw: Draw, wanted: Mask) -> Array:
        """Scores of units (units, size) of one draw; those not wanted may be left out."""


class EngineComparison:
    """By engines: outputs before, and a statistic of how far they move from there."""

    def __init__(
        self,
        models: list[FoldModel],
        X: Array,
        statistic: Callable[[Array], Statistic],
        n_jobs: int | None = None,
    ):
        self.X, self.n_jobs = X, n_jobs
        self.parts = list(in_blocks(models))
        # what any draw may put in the place of a value: another one, or 0
        self.bounds = np.minimum(X.min(axis=0), 0.0), np.maximum(X.max(axis=0), 0.0)
        self.kept: dict[int, Engine] = {}
        self.statistic = statistic(self._before())

    def _engine(self, index: int) -> Engine:
        if index in self.kept:
            return self.kept[index]
        model, rows = self.parts[index]
        engine = open_engine(model, self.X[rows], *self.bounds, self.n_jobs)
        if sum(e.n_bytes for e in self.kept.values()) + engine.n_bytes <= KEPT:
            self.kept[index] = engine
        return engine

    def _before(self) -> Array:
        """Outputs of the rows as they are, in the order of the table."""
        outputs = [
            part.model.link(self._engine(index).outputs()) for index, part in enumerate(self.parts)
        ]
        return gathered(self.parts, outputs, len(self.X))

    def scores(self, units: Subset, draw: Draw, wanted: Mask) -> Array:
        scales: Array | None = None
        for _ in range(self.statistic.n_passes):
            sums = self._in_one_pass(units, draw, scales)
            if sums is None:
                sums = np.zeros((len(units), self.statistic.n_sums))
                for some, block in self._blocks(units, draw, wanted):
                    known = None if scales is None else scales[some]
                    sums[some] += self.statistic.sums(block, known)
            scales = self.statistic.scores(sums, scales)
        assert scales is not None
        return scales

    def _in_one_pass(self, units: Subset, draw: Draw, scales: Array | None) -> Array | None:
        """Sums where all engines add them up themselves: those before, and what exceeds them."""
        total: Array | None = None
        for index, part in enumerate(self.parts):
            engine = self._engine(index)
            excess = engine.excess_of(units, draw, part.rows, self.statistic, scales)
            if excess is None:
                return None
            total = excess if total is None else total + excess
        assert total is not None
        return self.statistic.start() + total

    def _blocks(
        self, units: Subset, draw: Draw, wanted: Mask
    ) -> Iterator[tuple[Subset, DistanceBlock]]:
        for index, part in enumerate(self.parts):
            engine = self._engine(index)
            if isinstance(draw, Centres) and not engine.has_centres:
                raise no_centres(part.model.fitted)
            own = engine.condense(units, draw) if isinstance(draw, Points) else draw
            for batch in engine.batches(units):
                if wanted[batch.units].any():
                    yield from self._of_batch(batch, units, part, own)

    def _of_batch(
        self, batch: Batch, units: Subset, part: FoldModel, draw: Draw
    ) -> Iterator[tuple[Subset, DistanceBlock]]:
        if isinstance(draw, Points):
            yield from blocks_at(batch, part, draw)
            return
        model, rows = part
        if isinstance(draw, Shuffle):
            raw = batch.paired(self.X[:, units[batch.units]][draw.donors[rows]])
        else:
            raw = batch.without()
        yield batch.units, DistanceBlock(rows, model.link(raw), np.ones((len(batch.units), 1)))


def blocks_at(
    batch: Batch, part: FoldModel, draw: Points
) -> Iterator[tuple[Subset, DistanceBlock]]:
    """Altered outputs of the units of a batch at given values."""
    model, rows = part
    values, weights = draw.values[batch.units], draw.weights[batch.units]
    n_points = values.shape[1]
    units_at_once = max(1, BLOCK // (len(rows) * n_points))
    rows_at_a_time = max(16, BLOCK // n_points)
    for first in range(0, len(values), units_at_once):
        some = slice(first, first + units_at_once)
        for start in range(0, len(rows), rows_at_a_time):
            chosen = slice(start, start + rows_at_a_time)
            outputs = model.link(batch.at(some, chosen, values[some]))
            yield batch.units[some], DistanceBlock(rows[chosen], outputs, weights[some])


def in_blocks(models: list[FoldModel]) -> Iterator[FoldModel]:
    """Models with as many rows as an engine may have."""
    for model, rows in models:
        size = rows_at_once(model, len(rows))
        for first in range(0, len(rows), size):
            yield FoldModel(model, rows[first : first + size])


def outputs_of(models: list[FoldModel], X: Array) -> Array:
    """Outputs of all rows, each by the model that answers for it."""
    return gathered(models, [model.outputs(X[rows]) for model, rows in models], len(X))


def gathered(models: list[FoldModel], outputs: list[Array], n_rows: int) -> Array:
    """Outputs of the rows of each model, in the order of the table."""
    found = np.empty((n_rows, outputs[0].shape[1]))
    for (_, rows), part in zip(models, outputs, strict=True):
        found[rows] = part
    return found


def moved(statistic: Statistic, outputs: Array) -> float:
    """Score of other outputs of all rows."""
    block = DistanceBlock(slice(None), outputs[None, :, None, :], np.ones((1, 1)))
    scales: Array | None = None
    for _ in range(statistic.n_passes):
        scales = statistic.scores(statistic.sums(block, scales), scales)
    assert scales is not None
    return float(scales[0])
