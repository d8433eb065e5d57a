"""Outputs of models before and after a perturbation, compared by engines or by altered copies."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from tamis._arrays import Array, Mask, Subset
from tamis._namespace import Place, host, is_elsewhere, note, say_processor
from tamis.response.device import INSTEAD, DeviceEngine
from tamis.response.distances import Statistic
from tamis.response.engines.base import Engine, FoldModel, GenericEngine
from tamis.response.engines.registry import open_engine, rows_at_once
from tamis.response.engines.scalers import scaling_of
from tamis.response.perturbations import Centres, Draw, Points, Shuffle

#: Bytes of engines that are kept between two passes: what an ordinary machine can spare.
KEPT = 1_000_000_000


class EngineComparison:
    """Comparison by engines: outputs before, and a statistic of how far they move from there.

    ``makes_copies`` says whether altered copies of the rows are made, which processes can share.

    Parameters
    ----------
    models : list of FoldModel
        Together they predict for all rows, each once.
    X : array of shape (n_samples, n_features)
        On any device.
    statistic : callable
        From the outputs before to the statistic.
    n_jobs : int or None, default=None
        Threads that engines may use.
    place : Place or None, default=None
        The device where kernels are to be computed.
    precision : {"double", "single"}, default="double"
        Of the kernels there.
    """

    def __init__(
        self,
        models: list[FoldModel],
        X: Any,
        statistic: Callable[[Array], Statistic],
        n_jobs: int | None = None,
        place: Place | None = None,
        precision: str = "double",
    ):
        self.models, self.table, self.make, self.n_jobs = models, X, statistic, n_jobs
        self.on_processor: EngineComparison | None = None
        self.kept: dict[int, Any] = {}
        engines = []
        if place is not None or is_elsewhere(X):
            there = place.put(X) if place is not None and not is_elsewhere(X) else X
            engines = [DeviceEngine.of(part, there, precision) for part in models]
        self.on_device = bool(engines) and None not in engines
        if self.on_device:
            self.parts, self.kept = models, dict(enumerate(engines))
        elif engines:
            say_processor(f"What {_name(models[0])} as columns change is computed", INSTEAD)
            note("scores")
        if not self.on_device:
            self.parts, self.X = list(in_blocks(models)), host(X)
            # what any draw may put in the place of a value: another one, or 0
            self.bounds = np.minimum(self.X.min(axis=0), 0.0), np.maximum(self.X.max(axis=0), 0.0)
        each = range(len(self.parts))
        outputs = [self.parts[k].model.link(self._engine(k).outputs()) for k in each]
        self.statistic = statistic(in_order_of_rows(self.parts, outputs, X.shape[0]))
        self.makes_copies = isinstance(self._engine(0), GenericEngine)

    def _engine(self, index: int) -> Engine | DeviceEngine:
        if index in self.kept:
            return self.kept[index]
        model, rows = self.parts[index]
        engine = open_engine(model, self.X[rows], *self.bounds, self.n_jobs)
        if sum(e.n_bytes for e in self.kept.values()) + engine.n_bytes <= KEPT:
            self.kept[index] = engine
        return engine

    def scores(self, units: Subset, draw: Draw, wanted: Mask) -> Array:
        """Scores of units (units, size) of one draw; those not wanted may be left out."""
        if self.on_device and (units.shape[1] > 1 or isinstance(draw, Centres)):
            what = "What changes by groups of columns, or in centres too, is computed"
            say_processor(what, INSTEAD)
            note("scores")
            self.on_processor = self.on_processor or EngineComparison(
                self.models, host(self.table), self.make, self.n_jobs
            )
            return self.on_processor.scores(units, draw, wanted)
        scales: Array | None = None
        for _ in range(self.statistic.n_passes):
            sums = np.zeros((self.statistic.n_sums, len(units)))
            for k, part in enumerate(self.parts):
                sums += self._engine(k).sums(units, draw, part, self.statistic, scales, wanted)
            scales = self.statistic.scores(sums, scales)
        assert scales is not None
        return scales


def _name(part: FoldModel) -> str:
    """Whose outputs the processor compares, for a sentence."""
    if part.model.method == "left-out":
        return "machines without one row each answer"
    return f"{type(scaling_of(part.model.fitted)[1]).__name__} answers"


def in_blocks(models: list[FoldModel]) -> Iterator[FoldModel]:
    """Yield models with as many rows as an engine may have."""
    for model, rows in models:
        size = rows_at_once(model, len(rows))
        for first in range(0, len(rows), size):
            yield FoldModel(model, rows[first : first + size])


def outputs_of(models: list[FoldModel], X: Array) -> Array:
    """Compute the outputs of all rows, each by its own model."""
    return in_order_of_rows(models, [model.outputs(X[rows]) for model, rows in models], len(X))


def in_order_of_rows(models: list[FoldModel], outputs: list[Array], n_rows: int) -> Array:
    """Bring the outputs of each model's rows into the order of the table."""
    found = np.empty((n_rows, outputs[0].shape[1]))
    for (_, rows), block in zip(models, outputs, strict=True):
        found[rows] = block
    return found


class CopyComparison:
    """Comparison of any score, by explicitly altered copies of the rows."""

    makes_copies = True

    def __init__(self, score: Callable[[Array], float], X: Array):
        self.score, self.X, self.base = score, X, score(X)

    def scores(self, units: Subset, draw: Draw, wanted: Mask) -> Array:
        found = np.zeros(len(units))
        for unit in np.flatnonzero(wanted):
            found[unit] = self.base - self._altered(units[unit], int(unit), draw)
        return found

    def _altered(self, columns: Subset, unit: int, draw: Draw) -> float:
        """Score with one unit replaced."""
        altered = self.X.copy()
        if isinstance(draw, Shuffle):
            altered[:, columns] = self.X[draw.donors[:, None], columns]
            return self.score(altered)
        assert isinstance(draw, Points)
        total = 0.0
        for values, weight in zip(draw.values[unit], draw.weights[unit], strict=True):
            if weight > 0:
                altered[:, columns] = values
                total += weight * self.score(altered)
        return total


AnyComparison: TypeAlias = EngineComparison | CopyComparison
