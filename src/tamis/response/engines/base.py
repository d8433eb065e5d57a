"""The interface of engines: outputs of a trained model as some columns of its rows are replaced.

An engine belongs to a model and some rows. It makes *batches* of units, which are columns that
change together. A batch finds the outputs of all its units at once, in arrays of shape (units,
rows, points, outputs). An engine that finds all columns in one pass over the model makes one batch.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from tamis._arrays import Array, Mask, Subset
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

    def sums(
        self,
        units: Subset,
        draw: Draw,
        part: FoldModel,
        statistic: Statistic,
        scales: Array | None,
        wanted: Mask,
    ) -> Array:
        """Sums of a statistic over the rows of the engine and over points, (n_sums, units).

        ``part`` is the model with the rows of the engine among the statistic's. Units that are not
        wanted may be left out.
        """
        total = np.zeros((statistic.n_sums, len(units)))
        own = self.condense(units, draw) if isinstance(draw, Points) else draw
        if isinstance(draw, Centres) and not self.has_centres:
            raise IncompatibleCriterion(
                f"Zero(centres=True) needs a kernel machine (SVC, SVR) with an RBF, polynomial or "
                f"linear kernel, not {type(part.model.fitted).__name__}. Use by='zero', which "
                "alters the rows alone."
            )
        for batch in self.batches(units):
            if wanted[batch.units].any():
                for some, rows, outputs, weights in altered_outputs(batch, part, units, own):
                    change = outputs - statistic.before[rows][:, None, :]
                    known = None if scales is None else scales[some]
                    total[:, some] += statistic.sums(rows, change, weights, known)
        return total

    def mean_outputs(self, units: Subset, points: Points, part: FoldModel) -> Array:
        """Mean outputs over the rows at points of the units, of shape (units, points, outputs)."""
        n_outputs = part.model.link(self.outputs()).shape[1]
        total = np.zeros((*points.weights.shape, n_outputs))
        for batch in self.batches(units):
            for some, _, outputs, _ in altered_outputs(batch, part, units, points):
                total[some] += outputs.sum(axis=1)
        return total / len(part.rows)

    def condense(self, units: Subset, points: Points) -> Points:
        """Merge points that the model cannot tell apart."""
        return points


class AlteredOutputs(NamedTuple):
    """Compared outputs of some rows as some units are altered."""

    units: Subset
    rows: Rows
    outputs: Array  # (units, rows, points, outputs)
    weights: Array  # (units, points)


def altered_outputs(
    batch: Batch, part: FoldModel, units: Subset, draw: Draw
) -> Iterator[AlteredOutputs]:
    """Yield the outputs of a batch after a draw, in blocks that fit a cache."""
    (model, rows), some = part, batch.units
    if not isinstance(draw, Points):
        if isinstance(draw, Shuffle):
            raw = batch.paired(host(draw.table)[:, units[some]][draw.donors[rows]])
        else:
            raw = batch.without()
        yield AlteredOutputs(some, rows, model.link(raw), np.ones((len(some), 1)))
        return
    values, weights = draw.values[some], draw.weights[some]
    n_points = values.shape[1]
    n_units, n_rows = max(1, BLOCK // (len(rows) * n_points)), max(16, BLOCK // n_points)
    for first in range(0, len(some), n_units):
        these = slice(first, first + n_units)
        for start in range(0, len(rows), n_rows):
            block = slice(start, start + n_rows)
            outputs = model.link(batch.at(these, block, values[these]))
            yield AlteredOutputs(some[these], rows[block], outputs, weights[these])


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
