"""Interface of engines, which compute the outputs of a trained model for replaced columns.

An engine belongs to a model and the rows of a table. A unit is a column, or a group of columns that
is selected as one and replaced together. The engine splits the units into *batches*. A batch
computes the outputs for all its units at once, in arrays of shape (units, rows, points, outputs).

A pipeline of column-wise scalers uses the engine of its last step, on scaled columns.
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
#: Number of changed outputs in a block (2 MB), which fits into a CPU cache.
BLOCK = 250_000
#: Number of altered rows that the generic engine builds at a time. The rows take little memory, but
#: are enough to make the overhead of a call to the model negligible.
ROWS_AT_ONCE = 20_000


def ask(method: Callable[[Array], Any], X: Array) -> Any:
    """Call a method of a model, without scikit-learn's warning about missing column names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return method(X)


@dataclass(frozen=True)
class Model:
    """Trained estimator as a function from rows to outputs.

    Engines compute its raw outputs. A link function turns these into the outputs that are compared.

    Attributes
    ----------
    fitted : estimator
        Trained estimator.
    method : str
        Kind of raw outputs: "decision_function", "predict_proba", "predict" or "codes".
    raw : callable
        Function from rows to raw outputs, of shape (rows, outputs).
    link : callable
        Function from raw outputs to compared outputs, applied along the last axis.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from tamis.response.predictions import predictions_of
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]])
    >>> predictions_of(Ridge().fit(X, X @ [1.0, 2.0])).outputs(X).shape
    (3, 1)
    """

    fitted: Any
    method: str
    raw: Outputs
    link: Outputs

    def outputs(self, X: Array) -> Array:
        """Return the compared outputs of the rows of ``X``."""
        return self.link(self.raw(X))


class FoldModel(NamedTuple):
    """Model and the rows that it predicts."""

    model: Model
    rows: Rows


class Batch(ABC):
    """Units of an engine that are computed together. All have the same number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.response import Batch
    >>> class LinearBatch(Batch):  # for the model X @ w, with a single column in each unit
    ...     def __init__(self, X, w):
    ...         self.X, self.w, self.units = X, w, np.arange(len(w))
    ...     def at(self, some, rows, points):
    ...         X, w = self.X[rows], self.w[some, None, None, None]
    ...         change = w * (points[:, None] - X.T[some, :, None, None])
    ...         return (X @ self.w)[:, None, None] + change
    ...     def paired(self, values):
    ...         change = self.w[:, None] * (values[:, :, 0] - self.X).T
    ...         return (self.X @ self.w + change)[:, :, None, None]
    >>> batch = LinearBatch(np.eye(2), np.array([1.0, 3.0]))
    >>> batch.at(slice(0, 1), slice(0, 2), np.array([[[5.0]]])).ravel()  # column 0 is set to 5
    array([5., 8.])
    """

    #: Indices of the batch's units among all units that were passed to the engine.
    units: Subset

    @abstractmethod
    def at(self, some: slice, rows: slice, points: Array) -> Array:
        """Return the raw outputs of a slice of rows when each unit is set to each of its points.

        ``some`` is a slice of the batch's units. ``points`` has the shape (units, points, size).
        """

    @abstractmethod
    def paired(self, values: Array) -> Array:
        """Return the raw outputs when each unit is replaced by a different value in each row.

        ``values`` has the shape (rows, units, size).
        """

    def without(self) -> Array:
        """Return the raw outputs when each unit is 0 in the rows and in the kernel centres.

        Only engines with centres implement this method.
        """
        raise NotImplementedError


class Engine(ABC):
    """Base class of engines, which compute a model's outputs for rows with replaced columns.

    An engine is faster than predicting an altered copy of the table for every column.
    :func:`tamis.response.open_engine` uses the class methods to find the engine for a model.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from tamis.response import Engine
    >>> from tamis.response.engines.base import GenericBatch
    >>> class LinearEngine(Engine):  # for the model X @ w
    ...     def __init__(self, X, w):
    ...         self.model, self.X, self.n_bytes = SimpleNamespace(raw=lambda X: X @ w), X, X.nbytes
    ...     def outputs(self):
    ...         return self.model.raw(self.X)
    ...     def batches(self, units):
    ...         return (GenericBatch(self, i, columns) for i, columns in enumerate(units))
    >>> engine = LinearEngine(np.eye(2), np.array([[1.0], [3.0]]))
    >>> first = next(engine.batches(np.array([[0], [1]])))
    >>> first.at(slice(0, 1), slice(0, 2), np.array([[[5.0]]])).ravel()  # column 0 is set to 5
    array([5., 8.])
    """

    #: Whether the model has kernel centres. If so, batches implement :meth:`Batch.without`.
    has_centres: ClassVar[bool] = False
    #: Smallest number of altered rows for which the engine is used. For fewer rows, predicting with
    #: the model itself is faster than loading the engine.
    min_altered: ClassVar[int] = 0
    #: Memory of the engine, in bytes.
    n_bytes: int
    #: Number of threads. Results do not depend on this number.
    n_jobs: int | None = None

    @classmethod
    def knows(cls, model: Model) -> bool:
        """Return whether the engine supports the raw outputs of a model."""
        return False

    @classmethod
    def opened(cls, model: Model, X: Array, low: Array, high: Array) -> "Engine | None":
        """Return the engine of a model on the rows of ``X``, or None if the model is not supported.

        ``low`` and ``high`` are bounds of the new values of each column.
        """
        return None

    @classmethod
    def rows_at_once(cls, model: Model, n_rows: int) -> int:
        """Return the largest number of rows for which an engine fits into memory."""
        return n_rows

    def replaces_quickly(self, n_values: int) -> bool:
        """Return whether trying all values of a column is about as fast as a few shuffles.

        ``n_values`` is the number of different values.
        """
        return True

    @abstractmethod
    def outputs(self) -> Array:
        """Return the raw outputs of the unchanged rows."""

    @abstractmethod
    def batches(self, units: Subset) -> Iterator[Batch]:
        """Split units, an array of columns of shape (units, size), into batches."""

    def sums(self, units: Subset, draw: Draw, part: FoldModel, statistic: Statistic) -> Array:
        """Return the sums of a statistic over rows and points, of shape (n_sums, units).

        ``part`` contains the model and the indices of the engine's rows.
        """
        total = np.zeros((statistic.n_sums, len(units)))
        for some, rows, outputs, weights in self.altered(units, draw, part):
            change = outputs - statistic.before[rows][:, None, :]
            total[:, some] += statistic.sums(rows, change, weights, some)
        return total

    def altered(
        self, units: Subset, draw: Draw, part: FoldModel
    ) -> Iterator[tuple[Subset, Rows, Array, Array]]:
        """Yield the compared outputs for altered units in blocks; see :func:`altered_outputs`."""
        if isinstance(draw, Centres) and not self.has_centres:
            raise IncompatibleCriterion(
                "Zero(centres=True) needs an SVM (SVC, SVR) with an RBF, polynomial or linear "
                f"kernel, got {type(part.model.fitted).__name__}. Use by='zero'."
            )
        for batch in self.batches(units):
            yield from altered_outputs(batch, part, units, draw)

    def mean_outputs(self, units: Subset, points: Points, part: FoldModel) -> Array:
        """Return the mean outputs over all rows with a unit set to each of its points.

        The result has the shape (units, points, outputs).
        """
        n_outputs = part.model.link(self.outputs()).shape[1]
        total = np.zeros((*points.weights.shape, n_outputs))
        for some, _, outputs, _ in self.altered(units, points, part):
            total[some] += outputs.sum(axis=1)
        return total / len(part.rows)


def altered_outputs(
    batch: Batch, part: FoldModel, units: Subset, draw: Draw
) -> Iterator[tuple[Subset, Rows, Array, Array]]:
    """Yield the compared outputs for altered units, in blocks that fit into a CPU cache.

    Each block is a tuple of the units, the rows, the outputs, of shape (units, rows, points,
    outputs), and the weights of the points, of shape (units, points).
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
    """Engine for any model, which predicts altered copies of the rows.

    Parameters
    ----------
    model : Model
        Trained model.
    X : array of shape (n_samples, n_features)
        Rows whose columns are altered.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> from tamis.response.predictions import predictions_of
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]])
    >>> model = predictions_of(KNeighborsRegressor(1).fit(X, X @ [1.0, 2.0]))
    >>> GenericEngine(model, X).outputs()[:, 0]
    array([1., 2., 6.])
    """

    def __init__(self, model: Model, X: Array):
        self.model, self.X, self.n_bytes = model, X, X.nbytes

    def replaces_quickly(self, n_values: int) -> bool:
        return False

    def outputs(self) -> Array:
        return self.model.raw(self.X)

    def batches(self, units: Subset) -> "Iterator[GenericBatch]":
        for index, columns in enumerate(units):
            yield GenericBatch(self, index, columns)


class GenericBatch(Batch):
    """Batch of a single unit, which is replaced in copies of the rows."""

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
    """Scaling of each column by (x - shift) * factor + offset.

    This order of operations avoids cancellation.
    """

    shift: Any
    factor: Any
    offset: Any

    def __call__(self, values: Array, columns: Any = slice(None)) -> Array:
        """Scale values of shape (..., columns)."""
        shift, factor, offset = (part[columns] for part in self)
        return (values - shift) * factor + offset


def scaling_of(fitted: Any) -> tuple[list[ColumnScaling], Any]:
    """Return the scalings of a fitted pipeline, and the model that follows them.

    If a step is not a column-wise scaling, the list is empty and the estimator is unchanged.
    """
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
    """Return the scaling of a fitted scaler, or None if the step is not column-wise."""
    # exact classes only: a subclass may transform differently
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
    """Return the scalings that all pipelines of a one-vs-rest model share, and the inner model.

    If the scalings differ, the list is empty and the model itself is returned.
    """
    parts = [scaling_of(one) for one in fitted.estimators_]
    first = parts[0][0]
    if not first or not all(np.array_equal(first, scalings) for scalings, _ in parts):
        return [], fitted
    inner = copy(fitted)
    inner.estimators_ = [last for _, last in parts]
    return first, inner


class ScaledEngine(Engine):
    """Engine of a pipeline. It scales new values and passes them to the engine of the last step."""

    def __init__(self, engine: Engine, scalings: list[ColumnScaling]):
        self.engine, self.scalings = engine, scalings
        self.n_bytes = engine.n_bytes

    def replaces_quickly(self, n_values: int) -> bool:
        return self.engine.replaces_quickly(n_values)

    def outputs(self) -> Array:
        return self.engine.outputs()

    def batches(self, units: Subset) -> "Iterator[ScaledBatch]":
        for batch in self.engine.batches(units):
            yield ScaledBatch(self, batch, units[batch.units])

    def scaled(self, values: Array, columns: Subset) -> Array:
        """Scale values of shape (..., units, size)."""
        for scaling in self.scalings:
            values = scaling(values, columns)
        return values


class ScaledBatch(Batch):
    """Batch of a :class:`ScaledEngine`."""

    def __init__(self, engine: ScaledEngine, batch: Batch, columns: Subset):
        self.engine, self.batch, self.columns = engine, batch, columns
        self.units = batch.units

    def at(self, some: slice, rows: slice, points: Array) -> Array:
        scaled = self.engine.scaled(points.swapaxes(0, 1), self.columns[some])
        return self.batch.at(some, rows, scaled.swapaxes(0, 1))

    def paired(self, values: Array) -> Array:
        return self.batch.paired(self.engine.scaled(values, self.columns))
