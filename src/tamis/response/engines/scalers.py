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
from tamis.response.engines.base import Batch, Engine


class ColumnScaling(NamedTuple):
    """x -> (x - shift) * factor + offset for each column, in the order that keeps digits."""

    shift: Any
    factor: Any
    offset: Any

    def __call__(self, values: Array, columns: Any = slice(None)) -> Array:
        """Values of shape (..., columns), scaled."""
        shift, factor, offset = (part[columns] for part in self)
        return (values - shift) * factor + offset


def scaling_of(fitted: Any) -> tuple[list[ColumnScaling], Any]:
    """Scalings of a fitted pipeline and what comes after them; itself where there are none."""
    if isinstance(fitted, OneVsRestClassifier):
        return _common(fitted)
    if not isinstance(fitted, Pipeline):
        return [], fitted
    found: list[ColumnScaling] = []
    for _, step in fitted.steps[:-1]:
        if step is None or step == "passthrough":
            continue
        scaling = _of_step(step)
        if scaling is None:
            return [], fitted
        found.append(scaling)
    inner, last = scaling_of(fitted.steps[-1][1])
    return found + inner, last


def _of_step(step: Any) -> ColumnScaling | None:
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
        return ColumnScaling(step.data_min_, step.scale_, lowest)
    else:
        return None
    zeros, ones = np.zeros(step.n_features_in_), np.ones(step.n_features_in_)
    return ColumnScaling(
        zeros if shift is None else shift, ones if scale is None else 1 / scale, zeros
    )


def _common(fitted: Any) -> tuple[list[ColumnScaling], Any]:
    """Machines one against the rest, each in a pipeline, where all scale alike."""
    parts = [scaling_of(one) for one in fitted.estimators_]
    first = parts[0][0]
    if not first or not all(np.array_equal(first, scalings) for scalings, _ in parts):
        return [], fitted
    inner = copy(fitted)
    inner.estimators_ = [last for _, last in parts]
    return first, inner


class ScaledEngine(Engine):
    """The engine of a last step, asked in the units that the pipeline is asked in."""

    def __init__(self, engine: Engine, scalings: list[ColumnScaling]):
        self.engine, self.scalings = engine, scalings
        self.n_bytes = engine.n_bytes

    def outputs(self) -> Array:
        return self.engine.outputs()

    def batches(self, units: Subset) -> "Iterator[ScaledBatch]":
        for batch in self.engine.batches(units):
            yield ScaledBatch(self, batch, units[batch.units])

    def scaled(self, values: Array, columns: Subset) -> Array:
        """Values of shape (..., units, size) as the last step sees them."""
        for scaling in self.scalings:
            values = scaling(values, columns)
        return values


class ScaledBatch(Batch):
    """Some units of it."""

    def __init__(self, engine: ScaledEngine, batch: Batch, columns: Subset):
        self.engine, self.batch, self.columns = engine, batch, columns
        self.units = batch.units

    def at(self, some: slice, rows: slice, points: Array) -> Array:
        scaled = self.engine.scaled(points.swapaxes(0, 1), self.columns[some])
        return self.batch.at(some, rows, scaled.swapaxes(0, 1))

    def paired(self, values: Array) -> Array:
        return self.batch.paired(self.engine.scaled(values, self.columns))
