"""What an engine promises: outputs of a trained model as some columns of its rows are replaced.

An engine belongs to a model and some rows. It hands out *batches* of units, which are columns that
change together; a batch answers for all its units at once, in arrays of shape (units, rows, points,
outputs). An engine that finds all columns in one pass over the model hands out one batch.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from tamis._arrays import Array, Subset
from tamis.exceptions import IncompatibleCriterion
from tamis.folds.rows import Rows
from tamis.response.distances import Statistic
from tamis.response.perturbations import Draw, Points

Outputs: TypeAlias = Callable[[Array], Array]


def asked(answer: Callable[[Array], Any], X: Array) -> Any:
    """What a model answers for rows without names: those of its frame were seen to before."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return answer(X)


@dataclass(frozen=True)
class Model:
    """A trained estimator: its raw outputs, and the way from there to what is compared.

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


class Batch(ABC):
    """Some units of an engine, all of one size."""

    #: Which of the units that the engine was asked for.
    units: Subset

    @abstractmethod
    def at(self, some: slice, rows: slice, points: Array) -> Array:
        """Raw outputs of rows that meet points (units, points, size) of some of the units."""

    @abstractmethod
    def paired(self, values: Array) -> Array:
        """Raw outputs of rows with values of their own, of shape (rows, units, size)."""

    def without(self) -> Array:
        """Raw outputs with the unit 0 in rows and centres, where the engine has centres."""
        raise NotImplementedError


class Engine(ABC):
    """A model on some rows.

    An engine of a kind of models is found by :func:`tamis.response.open_engine` through its class
    methods: it says which models it knows, and how many rows it may have.
    """

    #: Whether its batches know the outputs without a unit in the centres of a kernel.
    has_centres: ClassVar[bool] = False
    #: What it holds, so that few engines at a time are kept.
    n_bytes: int
    #: Threads that it may use, where it deals rows out to several; no answer depends on it.
    n_jobs: int | None = None

    @classmethod
    def knows(cls, model: Model) -> bool:
        """Whether the engine can follow the raw outputs of a model."""
        return False

    @classmethod
    def opened(cls, model: Model, X: Array, low: Array, high: Array) -> "Engine | None":
        """The engine of a model on the rows of ``X``, for new values between two bounds.

        None where the model turns out to be another one after all.
        """
        return None

    @classmethod
    def rows_at_once(cls, model: Model, n_rows: int) -> int:
        """How many of the rows one engine may have, so that they fit the memory."""
        return n_rows

    @abstractmethod
    def outputs(self) -> Array:
        """Raw outputs of the rows as they are."""

    @abstractmethod
    def batches(self, units: Subset) -> Iterator[Batch]:
        """Batches of all units, an array (units, size) of columns; some units at a time."""

    def excess_of(
        self, units: Subset, draw: Draw, rows: Rows, statistic: Statistic, scales: Array | None
    ) -> Array | None:
        """Sums of a statistic's terms beyond those of the rows as they are, (units, n_sums).

        ``rows`` are those of the engine among the statistic's. None where batches must be asked.
        """
        return None

    def mean_outputs(self, units: Subset, points: Points) -> Array | None:
        """Mean outputs over the rows at points of the units, of shape (units, points, outputs).

        None where batches must be asked.
        """
        return None

    def condense(self, units: Subset, points: Points) -> Points:
        """Fewer points of the same effect, where the model cannot tell some of them apart."""
        return points


#: Rows that the generic engine builds at a time: few enough to stay small, enough for a model to
#: spend its time on rows and not on being called.
ROWS_AT_ONCE = 20_000


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
        chosen = self.X[rows]
        at_once = max(1, ROWS_AT_ONCE // max(1, len(chosen)))
        parts = [
            self._tiled(chosen, points[0, start : start + at_once])
            for start in range(0, points.shape[1], at_once)
        ]
        return np.concatenate(parts, axis=1)[None]

    def _tiled(self, rows: Array, points: Array) -> Array:
        """Outputs of every row with every point, of shape (rows, points, outputs)."""
        altered = np.repeat(rows, len(points), axis=0)
        altered[:, self.columns] = np.tile(points, (len(rows), 1))
        return self.model.raw(altered).reshape(len(rows), len(points), -1)

    def paired(self, values: Array) -> Array:
        altered = self.X.copy()
        altered[:, self.columns] = values[:, 0]
        return self.model.raw(altered)[None, :, None, :]


def no_centres(fitted: Any) -> IncompatibleCriterion:
    """The error for a model without kernel centres."""
    return IncompatibleCriterion(
        f"Zero(centres=True) needs a kernel machine (SVC, SVR) with an RBF, polynomial or linear "
        f"kernel, not {type(fitted).__name__}. Use by='zero', which alters the rows alone."
    )
