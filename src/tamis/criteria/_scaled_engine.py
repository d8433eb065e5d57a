"""Pipelines that scale each column by itself: the engine of their last step, on scaled columns.

With x -> a x + b column by column, replacing a value before or after the scaling is the same.
"""

from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from tamis._arrays import Array, Subset
from tamis.criteria._engines import Batch, Engine, no_centres


class Scaling(NamedTuple):
    """x -> (x - shift) * factor + offset for each column, in the order that keeps digits."""

    shift: Any
    factor: Any
    offset: Any

    def __call__(self, values: Array, columns: Any = slice(None)) -> Array:
        """Values of shape (..., columns), scaled."""
        shift, factor, offset = (part[columns] for part in self)
        return (values - shift) * factor + offset


def scaling_of(fitted: Any) -> tuple[list[Scaling], Any]:
    """Scalings of a fitted pipeline and what comes after them; itself where there are none."""
    if isinstance(fitted, OneVsRestClassifier):
        return _common(fitted)
    if not isinstance(fitted, Pipeline):
        return [], fitted
    found: list[Scaling] = []
    for _, step in fitted.steps[:-1]:
        if step is None or step == "passthrough":
            continue
        scaling = _of_step(step)
        if scaling is None:
            return [], fitted
        found.append(scaling)
    inner, last = scaling_of(fitted.steps[-1][1])
    return found + inner, last


def _of_step(step: Any) -> Scaling | None:
    """The map of a fitted scaler, None if it is another one."""
    # the class itself: a subclass may transform in its own way
    if type(step) is StandardScaler:
        shift = step.mean_ if step.with_mean else None
        scale = step.scale_ if step.with_std else None
    elif type(step) is RobustScaler:
        shift = step.center_ if step.with_centering else None
        scale = step.scale_ if step.with_scaling else None
    elif type(step) is MaxAbsScaler and not getattr(step, "clip", False):
        shift, scale = None, step.scale_
    elif type(step) is MinMaxScaler and not step.clip:
        lowest = np.full_like(step.scale_, step.feature_range[0])
        return Scaling(step.data_min_, step.scale_, lowest)
    else:
        return None
    zeros, ones = np.zeros(step.n_features_in_), np.ones(step.n_features_in_)
    return Scaling(zeros if shift is None else shift, ones if scale is None else 1 / scale, zeros)


def _common(fitted: Any) -> tuple[list[Scaling], Any]:
    """Machines one against the rest, each in a pipeline, where all scale alike."""
    parts = [scaling_of(one) for one in fitted.estimators_]
    first = parts[0][0]
    if not first or not all(np.array_equal(first, scalings) for scalings, _ in parts):
        return [], fitted
    inner = copy(fitted)
    inner.estimators_ = [last for _, last in parts]
    return first, inner


class ScaledEngine:
    """The engine of a last step, asked in the units that the pipeline is asked in."""

    def __init__(self, engine: Engine, scalings: list[Scaling], fitted: Any):
        self.engine, self.scalings, self.fitted = engine, scalings, fitted
        self.n_bytes = engine.n_bytes

    def outputs(self) -> Array:
        return self.engine.outputs()

    def batches(self) -> "Iterator[ScaledBatch]":
        for batch in self.engine.batches():
            yield ScaledBatch(self, batch)


class ScaledBatch:
    """Some columns of it."""

    def __init__(self, engine: ScaledEngine, batch: Batch):
        self.engine, self.batch, self.columns = engine, batch, batch.columns

    def at(self, some: slice, rows: slice, points: Array) -> Array:
        return self.batch.at(some, rows, self._scaled(points.T, self.columns[some]).T)

    def paired(self, values: Array) -> Array:
        return self.batch.paired(self._scaled(values, self.columns))

    def _scaled(self, values: Array, columns: Subset) -> Array:
        for scaling in self.engine.scalings:
            values = scaling(values, columns)
        return values

    def without(self) -> Array:
        raise no_centres(self.engine.fitted)
