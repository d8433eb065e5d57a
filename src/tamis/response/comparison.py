"""Comparison of model outputs before and after a perturbation."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from tamis._arrays import Array, Subset
from tamis._namespace import Place, host, is_elsewhere
from tamis._parallel import parallel_map
from tamis.exceptions import IncompatibleCriterion
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

#: Engines are kept from one pass to the next if they need at most this memory in bytes.
KEPT = 1_000_000_000
#: Maximum number of altered outputs of all rows in memory at a time (128 MB).
STORED = 16_000_000
#: A rank can be treated as clear only after this many shuffles. With fewer shuffles, the standard
#: error is too uncertain.
FEWEST_SHUFFLES = 3
#: Number of column blocks per process, enough to balance blocks that take different times.
BLOCKS_PER_JOB = 4


class EngineComparison:
    """Comparison that uses engines to compute a statistic of the change of the outputs.

    ``makes_copies`` is True if the engine predicts altered copies of the rows. In this case,
    several processes can share the columns.

    Parameters
    ----------
    models : list of FoldModel
        Models that together predict each row once.
    X : array of shape (n_samples, n_features)
        Table, on the CPU or on another device.
    statistic : callable
        Function that takes the original outputs and returns a Statistic.
    n_jobs : int or None, default=None
        Number of threads of an engine.
    place : Place or None, default=None
        GPU or other device on which kernels are computed.
    precision : {"double", "single"}, default="double"
        Precision of the kernels on that device.
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
            report_processor(f"The sensitivity of {_name(models[0])} is computed")
        if not self.on_device:
            self.parts, self.X = list(split_rows(models)), host(X)
            # range of the new values, which are values of the column in other rows, or 0
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

    def replaces_quickly(self) -> bool:
        """Return whether trying all values of each column takes about as long as a few shuffles."""
        engines = [self._engine(k) for k in range(len(self.parts))]
        n_values = max(len(np.unique(column)) for column in self.X.T)
        return all(isinstance(e, Engine) and e.replaces_quickly(n_values) for e in engines)

    def scores(self, units: Subset, draw: Draw) -> Array:
        """Return the score of each unit for one draw. ``units`` has the shape (units, size)."""
        if self.on_device and (units.shape[1] > 1 or isinstance(draw, Centres)):
            report_processor("The sensitivity to groups of columns, or to centres, is computed")
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

    def altered(self, units: Subset, draw: Draw) -> Iterator[tuple[Array, Array]]:
        """Yield the outputs of all rows for each unit, of shape (rows, points, outputs).

        Each item also contains the weights of the points.
        """
        n_points = draw.weights.shape[1] if isinstance(draw, Points) else 1
        shape = self.statistic.before.shape
        step = max(1, STORED // max(1, shape[0] * n_points * shape[1]))
        for first in range(0, len(units), step):
            block = np.arange(first, min(first + step, len(units)))
            some, own = units[block], _draw_of(draw, block)
            outputs = np.empty((len(some), shape[0], n_points, shape[1]))
            weights = np.ones((len(some), n_points))
            for k, part in enumerate(self.parts):
                engine = self._engine(k)
                assert isinstance(engine, Engine)  # such scores are computed on the CPU
                for which, rows, found, shares in engine.altered(some, own, part):
                    outputs[which[:, None], rows], weights[which] = found, shares
            yield from zip(outputs, weights, strict=True)


def _draw_of(draw: Draw, units: Subset) -> Draw:
    """Return the draw of some of the units."""
    if not isinstance(draw, Points):
        return draw
    return Points(draw.values[units], draw.weights[units])


def _name(part: FoldModel) -> str:
    """Return the name of a model for a message."""
    if part.model.method == "left-out":
        return "leave-one-out models"
    return type(scaling_of(part.model.fitted)[1]).__name__


def split_rows(models: list[FoldModel]) -> Iterator[FoldModel]:
    """Split the rows of each model into blocks that fit into the memory of an engine."""
    for model, rows in models:
        size = rows_at_once(model, len(rows))
        for first in range(0, len(rows), size):
            yield FoldModel(model, rows[first : first + size])


def outputs_of(models: list[FoldModel], X: Array) -> Array:
    """Return the outputs of all rows, each computed by the model that predicts the row."""
    return merge_rows(models, [model.outputs(X[rows]) for model, rows in models], len(X))


def merge_rows(models: list[FoldModel], outputs: list[Array], n_rows: int) -> Array:
    """Return the outputs of several models in the row order of the table."""
    found = np.empty((n_rows, outputs[0].shape[1]))
    for (_, rows), block in zip(models, outputs, strict=True):
        found[rows] = block
    return found


@dataclass
class ScoreComparison:
    """Comparison of a score that depends on the outputs of all rows together, such as the AUC.

    Engines compute the outputs, and ``score`` is a function of them.
    """

    engines: EngineComparison
    score: Callable[[Array], float]
    makes_copies: ClassVar[bool] = False

    @cached_property
    def base(self) -> float:
        """Score of the unchanged table."""
        return self.score(self.engines.statistic.before)

    def scores(self, units: Subset, draw: Draw) -> Array:
        """Return the decrease of the score for each unit, averaged over the points of a draw."""
        found = [
            sum(w * self.score(outputs[:, p]) for p, w in enumerate(weights) if w > 0)
            for outputs, weights in self.engines.altered(units, draw)
        ]
        return self.base - np.array(found)


class CopyComparison:
    """Comparison of any score, which is computed on altered copies of the rows.

    If ``X`` contains the codes of a data frame, ``frame`` decodes them, and the score is a function
    of data frames.
    """

    makes_copies = True

    def __init__(self, score: Callable[[Any], float], X: Array, frame: Any = None):
        self.score, self.X, self.frame = score, X, frame
        self.base = score(X if frame is None else frame.frame)

    def scores(self, units: Subset, draw: Draw) -> Array:
        """Return the decrease of the score for each unit, averaged over the points of a draw."""
        if isinstance(draw, Centres):
            raise IncompatibleCriterion(
                "Zero(centres=True) needs a score and an SVM that engines support, and this score "
                "is computed on altered copies of the rows. Use by='zero'."
            )
        altered = self.X.copy()
        found = [self._alter(altered, columns, unit, draw) for unit, columns in enumerate(units)]
        return self.base - np.array(found)

    def _alter(self, altered: Array, columns: Subset, unit: int, draw: Points | Shuffle) -> float:
        """Return the score of the table with one unit replaced, averaged over its points.

        ``altered`` is a copy of the table, and is restored. One copy serves all units, because
        copying a wide table takes longer than many models need for their predictions.
        """
        if isinstance(draw, Shuffle):
            if self.frame is not None:
                return self.score(self.frame.shuffle(columns, draw.donors))
            altered[:, columns] = self.X[draw.donors[:, None], columns]
            total = self.score(altered)
        else:
            total = 0.0
            for values, weight in zip(draw.values[unit], draw.weights[unit], strict=True):
                if weight > 0:
                    altered[:, columns] = values
                    table = altered if self.frame is None else self.frame.decode(altered)
                    total += weight * self.score(table)
        altered[:, columns] = self.X[:, columns]
        return total


AnyComparison: TypeAlias = EngineComparison | ScoreComparison | CopyComparison


def replacement_losses(
    comparison: AnyComparison, way: Replacement, units: Units, X: Any, seed: int, n_jobs: int | None
) -> Array:
    """Return the scores of all draws of a replacement, of shape (repeats, units)."""
    sizes = units.by_size()
    found = np.full((way.n_draws, len(units.sizes)), np.nan)
    draws = zip(*(way.draws(X, columns, seed) for _, columns in sizes), strict=True)
    for repeat, of_size in enumerate(draws):
        wanted = np.ones(len(units.sizes), dtype=bool)
        if isinstance(way, Permutation) and way.stop_when_sure and repeat >= FEWEST_SHUFFLES:
            wanted = unclear(found[:repeat])
            if not wanted.any():
                break
        for (which, columns), draw in zip(sizes, of_size, strict=True):
            some = wanted[which]
            found[repeat, which[some]] = _scores(comparison, columns[some], draw, n_jobs)
    return found


def _scores(comparison: AnyComparison, units: Subset, draw: Draw, n_jobs: int | None) -> Array:
    """Return the score of each unit for one draw. Altered copies are predicted in processes."""
    n_processes = effective_n_jobs(n_jobs) if comparison.makes_copies else 1
    if n_processes == 1:
        return comparison.scores(units, draw)
    items = []
    for block in np.array_split(np.arange(len(units)), BLOCKS_PER_JOB * n_processes):
        if len(block):
            items.append((units[block], _draw_of(draw, block)))
    return np.concatenate(parallel_map(comparison.scores, items, n_jobs))


def unclear(scores: Array) -> NDArray[np.bool_]:
    """Return a mask of the units whose score is too close to the next higher or lower score.

    Too close means that the scores differ by at most two standard errors of the difference.

    >>> unclear(np.array([[0.0, 1.0, 1.1], [0.1, 1.2, 1.0], [0.0, 1.1, 1.2]]))
    array([False,  True,  True])
    """
    means, errors = mean_and_error(scores)
    order = np.argsort(means)
    close = np.diff(means[order]) <= 2 * np.hypot(errors[order][1:], errors[order][:-1])
    found = np.zeros(len(means), dtype=bool)
    found[order[1:]] |= close
    found[order[:-1]] |= close
    return found


def mean_and_error(scores: Array) -> tuple[Array, Array]:
    """Return each unit's mean score over the repeats, and its standard error. Ignore nan."""
    counts = np.isfinite(scores).sum(axis=0)
    errors = np.nanstd(scores, axis=0, ddof=1) / np.sqrt(counts)
    return np.asarray(np.nanmean(scores, axis=0)), np.asarray(errors)
