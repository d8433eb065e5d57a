"""Outputs of models before and after a perturbation, compared by engines or by altered copies."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from tamis._arrays import Array, Subset
from tamis._namespace import Place, host, is_elsewhere
from tamis._parallel import parallel_map
from tamis.response.device import DeviceEngine, report_processor
from tamis.response.distances import Statistic
from tamis.response.engines.base import Engine, FoldModel, GenericEngine, scaling_of
from tamis.response.engines.registry import open_engine, rows_at_once
from tamis.response.perturbations import (
    Centres,
    Draw,
    Permutation,
    Points,
    Replacement,
    Shuffle,
    Units,
)

#: Bytes of engines that are kept between two passes: what an ordinary machine can spare.
KEPT = 1_000_000_000
#: Shuffles before a rank can be clear: fewer have no standard error worth the name.
FEWEST_SHUFFLES = 3
#: Blocks that the columns are dealt out in, for each process: enough to even out unequal ones.
BLOCKS_PER_JOB = 4


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
            report_processor(f"What {_name(models[0])} as columns change is computed")
        if not self.on_device:
            self.parts, self.X = list(split_rows(models)), host(X)
            # what any draw may put in the place of a value: another one, or 0
            self.bounds = np.minimum(self.X.min(axis=0), 0.0), np.maximum(self.X.max(axis=0), 0.0)
        each = range(len(self.parts))
        outputs = [self.parts[k].model.link(self._engine(k).outputs()) for k in each]
        self.statistic = statistic(merge_rows(self.parts, outputs, X.shape[0]))
        self.makes_copies = isinstance(self._engine(0), GenericEngine)

    def _engine(self, index: int) -> Engine | DeviceEngine:
        if index in self.kept:
            return self.kept[index]
        model, rows = self.parts[index]
        engine = open_engine(model, self.X[rows], *self.bounds, self.n_jobs)
        if sum(e.n_bytes for e in self.kept.values()) + engine.n_bytes <= KEPT:
            self.kept[index] = engine
        return engine

    def scores(self, units: Subset, draw: Draw) -> Array:
        """Scores of units (units, size) of one draw."""
        if self.on_device and (units.shape[1] > 1 or isinstance(draw, Centres)):
            report_processor("What changes by groups of columns, or in centres too, is computed")
            self.on_processor = self.on_processor or EngineComparison(
                self.models, host(self.table), self.make, self.n_jobs
            )
            return self.on_processor.scores(units, draw)
        return self._scores(units, draw, self.statistic)

    def _scores(self, units: Subset, draw: Draw, statistic: Statistic) -> Array:
        sums = np.zeros((statistic.n_sums, len(units)))
        for k, part in enumerate(self.parts):
            sums += self._engine(k).sums(units, draw, part, statistic)
        second = statistic.next_pass(sums)
        return statistic.scores(sums) if second is None else self._scores(units, draw, second)


def _name(part: FoldModel) -> str:
    """Whose outputs the processor compares, for a sentence."""
    if part.model.method == "left-out":
        return "machines without one row each answer"
    return f"{type(scaling_of(part.model.fitted)[1]).__name__} answers"


def split_rows(models: list[FoldModel]) -> Iterator[FoldModel]:
    """Yield models with as many rows as an engine may have."""
    for model, rows in models:
        size = rows_at_once(model, len(rows))
        for first in range(0, len(rows), size):
            yield FoldModel(model, rows[first : first + size])


def outputs_of(models: list[FoldModel], X: Array) -> Array:
    """Compute the outputs of all rows, each by its own model."""
    return merge_rows(models, [model.outputs(X[rows]) for model, rows in models], len(X))


def merge_rows(models: list[FoldModel], outputs: list[Array], n_rows: int) -> Array:
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

    def scores(self, units: Subset, draw: Draw) -> Array:
        altered = [self._alter(columns, unit, draw) for unit, columns in enumerate(units)]
        return self.base - np.array(altered)

    def _alter(self, columns: Subset, unit: int, draw: Draw) -> float:
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


def replacement_losses(
    comparison: AnyComparison, way: Replacement, units: Units, X: Any, seed: int, n_jobs: int | None
) -> Array:
    """Scores of all draws of a replacement, of shape (repeats, units)."""
    sizes = units.by_size()
    found = np.full((way.n_draws, len(units.sizes)), np.nan)
    draws = zip(*(way.draws(X, columns, seed) for _, columns in sizes), strict=True)
    for repeat, of_size in enumerate(draws):
        wanted = np.ones(len(units.sizes), dtype=bool)
        if isinstance(way, Permutation) and way.stop_when_sure and repeat >= FEWEST_SHUFFLES:
            wanted = unclear(found[:repeat])
            if not wanted.any():
                break
        # points of a unit stand at its index: of these all units are wanted
        for (which, columns), draw in zip(sizes, of_size, strict=True):
            some = wanted[which]
            found[repeat, which[some]] = _scores(comparison, columns[some], draw, n_jobs)
    return found


def _scores(comparison: AnyComparison, units: Subset, draw: Draw, n_jobs: int | None) -> Array:
    """Scores of one draw; processes share the units if copies of the rows are made."""
    n_processes = effective_n_jobs(n_jobs) if comparison.makes_copies else 1
    if n_processes == 1:
        return comparison.scores(units, draw)
    items = []
    for block in np.array_split(np.arange(len(units)), BLOCKS_PER_JOB * n_processes):
        if len(block):
            own = draw
            if isinstance(draw, Points):
                own = Points(draw.values[block], draw.weights[block])
            items.append((units[block], own))
    return np.concatenate(parallel_map(comparison.scores, items, n_jobs))


def unclear(scores: Array) -> NDArray[np.bool_]:
    """Units whose rank is open: two scores within two standard errors of both.

    >>> unclear(np.array([[0.0, 1.0, 1.1], [0.1, 1.2, 1.0], [0.0, 1.1, 1.2]]))
    array([False,  True,  True])
    """
    means, errors = mean_and_error(scores)
    order = np.argsort(means)
    gaps = np.diff(means[order]) <= 2 * np.hypot(errors[order][1:], errors[order][:-1])
    found = np.zeros(len(means), dtype=bool)
    found[order[1:]] |= gaps
    found[order[:-1]] |= gaps
    return found


def mean_and_error(scores: Array) -> tuple[Array, Array]:
    """Means over two repeats or more and their standard errors; nan where a repeat was spared."""
    counts = np.isfinite(scores).sum(axis=0)
    errors = np.nanstd(scores, axis=0, ddof=1) / np.sqrt(counts)
    return np.asarray(np.nanmean(scores, axis=0)), np.asarray(errors)
