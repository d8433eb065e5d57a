"""The interface of engines: outputs of a trained model as some columns of its rows are replaced.

An engine belongs to a model and some rows. It makes *batches* of units, which are columns that
change together. A batch finds the outputs of all its units at once, in arrays of shape (units,
rows, points, outputs). An engine that finds all columns in one pass over the model makes one batch.

Pipelines that scale each column by itself have the engine of their last step, on scaled columns.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from tamis._arrays import Array, Subset
from tamis._namespace import host
from tamis.exceptions import IncompatibleCriterion
from tamis.response.distances import Statistic
from tamis.response.perturbations import Centres, Draw, Points, Shuffle
from tamis.validation.splits import Rows

Outputs: TypeAlias = Callable[[Array], Array]
#: Numbers in a block of altered outputs (2 MB): small enough for a processor's cache.
BLOCK = 250_000
#: Rows that the generic engine builds at a time: few enough to stay small, enough for a model to
#: spend its time on rows and not on being called.
ROWS_AT_ONCE = 20_000


def ask(method: Callable[[Array], Any], X: Array) -> Any:
    """Call a method of a model that may have been trained on named columns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return method(X)


@dataclass(frozen=True)
class Model:
    """A trained estimator: its raw outputs, and the link from there to what is compared.

    Attributes
    ----------
    fitted : estimator
    method : str
        What the raw outputs are: "decision_function", "predict_proba", "predict" or "codes".
    raw : callable
        From rows to outputs of shape (rows, outputs).
    link : callable
        From raw outputs to what is compared, along the last axis.
    """

    fitted: Any
    method: str
    raw: Outputs
    link: Outputs

    def outputs(self, X: Array) -> Array:
        """What is compared, for the rows of ``X``."""
        return self.link(self.raw(X))


class FoldModel(NamedTuple):
    """A model and the rows whose outputs come from it."""

    model: Model
    rows: Rows


class Batch(ABC):
    """Some units of an engine, all of one size."""

    #: Which of the units that the engine was asked for.
    units: Subset

    @abstractmethod
    def at(self, some: slice, rows: slice, points: Array) -> Array:
        """Raw outputs of rows at points (units, points, size) of some of the units."""

    @abstractmethod
    def paired(self, values: Array) -> Array:
        """Raw outputs of rows with values of their own, of shape (rows, units, size)."""

    def without(self) -> Array:
        """Raw outputs with the unit 0 in rows and centres, for engines with centres."""
        raise NotImplementedError


class Engine(ABC):
    """A model on some rows.

    :func:`tamis.response.open_engine` finds the engine of a model through its class methods: they
    tell which models the engine knows, and how many rows it may have.
    """

    #: Whether its batches know the outputs without a unit in the centres of a kernel.
    has_centres: ClassVar[bool] = False
    #: Memory that it holds, so that few engines are kept at a time.
    n_bytes: int
    #: Threads that it may use; no output depends on their number.
    n_jobs: int | None = None

    @classmethod
    def knows(cls, model: Model) -> bool:
        """Whether the engine can follow the raw outputs of a model."""
        return False

    @classmethod
    def opened(cls, model: Model, X: Array, low: Array, high: Array) -> "Engine | None":
        """Make the engine of a model on the rows of ``X``, for new values between two bounds.

        None if the model turns out to be a different one after all.
        """
        return None

    @classmethod
    def rows_at_once(cls, model: Model, n_rows: int) -> int:
        """Number of the rows that one engine may have, so that it fits the memory."""
        return n_rows

    @abstractmethod
    def outputs(self) -> Array:
        """Raw outputs of the rows as they are."""

    @abstractmethod
    def batches(self, units: Subset) -> Iterator[Batch]:
        """Batches of all units, an array (units, size) of columns; some units at a time."""

    def sums(self, units: Subset, draw: Draw, part: FoldModel, statistic: Statistic) -> Array:
        """Sums of a statistic over the rows of the engine and over points, (n_sums, units).

        ``part`` is the model with the rows of the engine among the statistic's.
        """
        total = np.zeros((statistic.n_sums, len(units)))
        if isinstance(draw, Centres) and not self.has_centres:
            raise IncompatibleCriterion(
                f"Zero(centres=True) needs a kernel machine (SVC, SVR) with an RBF, polynomial or "
                f"linear kernel, not {type(part.model.fitted).__name__}. Use by='zero', which "
                "alters the rows alone."
            )
        for batch in self.batches(units):
            for some, rows, outputs, weights in altered_outputs(batch, part, units, draw):
                change = outputs - statistic.before[rows][:, None, :]
                total[:, some] += statistic.sums(rows, change, weights, some)
        return total

    def mean_outputs(self, units: Subset, points: Points, part: FoldModel) -> Array:
        """Mean outputs over the rows at points of the units, of shape (units, points, outputs)."""
        n_outputs = part.model.link(self.outputs()).shape[1]
        total = np.zeros((*points.weights.shape, n_outputs))
        for batch in self.batches(units):
            for some, _, outputs, _ in altered_outputs(batch, part, units, points):
                total[some] += outputs.sum(axis=1)
        return total / len(part.rows)


def altered_outputs(
    batch: Batch, part: FoldModel, units: Subset, draw: Draw
) -> Iterator[tuple[Subset, Rows, Array, Array]]:
    """Yield compared outputs of some rows as some units are altered, in blocks that fit a cache.

    A block has its units, its rows, outputs (units, rows, points, outputs) and weights (units,
    points).
    """
    (model, rows), some = part, batch.units
    if not isinstance(draw, Points):
        if isinstance(draw, Shuffle):
            raw = batch.paired(host(draw.table)[:, units[some]][draw.donors[rows]])
        else:
            raw = batch.without()
        yield some, rows, model.link(raw), np.ones((len(some), 1))
        return
    values, weights = draw.values[some], draw.weights[some]
    n_points = values.shape[1]
    n_units, n_rows = max(1, BLOCK // (len(rows) * n_points)), max(16, BLOCK // n_points)
    for first in range(0, len(some), n_units):
        these = slice(first, first + n_units)
        for start in range(0, len(rows), n_rows):
            block = slice(start, start + n_rows)
            outputs = model.link(batch.at(these, block, values[these]))
            yield some[these], rows[block], outputs, weights[these]


class GenericEngine(Engine):
    """Any model: explicitly altered copies of the rows.

    Parameters
    ----------
    model : Model
    X : array of shape (n_samples, n_features)
        The rows whose columns are altered.
    """

    def __init__(self, model: Model, X: Array):
        self.model, self.X, self.n_bytes = model, X, X.nbytes

    def outputs(self) -> Array:
        return self.model.raw(self.X)

    def batches(self, units: Subset) -> "Iterator[GenericBatch]":
        for index, columns in enumerate(units):
            yield GenericBatch(self, index, columns)


class GenericBatch(Batch):
    """One unit, replaced in copies of the rows."""

    def __init__(self, engine: GenericEngine, index: int, columns: Subset):
        self.model, self.X = engine.model, engine.X
        self.units, self.columns = np.array([index]), columns

    def at(self, some: slice, rows: slice, points: Array) -> Array:
        X = self.X[rows]
        n_at_once = max(1, ROWS_AT_ONCE // max(1, len(X)))
        found = []
        for start in range(0, points.shape[1], n_at_once):
            block = points[0, start : start + n_at_once]
            altered = np.repeat(X, len(block), axis=0)
            altered[:, self.columns] = np.tile(block, (len(X), 1))
            found.append(self.model.raw(altered).reshape(len(X), len(block), -1))
        return np.concatenate(found, axis=1)[None]

    def paired(self, values: Array) -> Array:
        altered = self.X.copy()
        altered[:, self.columns] = values[:, 0]
        return self.model.raw(altered)[None, :, None, :]


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
