"""Outputs of a trained model as one column of its rows is replaced, and who computes them fast.

An engine belongs to a model and some rows. It hands out *batches* of columns; a batch answers for
all its columns together, in arrays of shape (columns, rows, points, outputs).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from tamis._arrays import Array, Subset
from tamis.exceptions import IncompatibleCriterion

Outputs: TypeAlias = Callable[[Array], Array]


@dataclass(frozen=True)
class Model:
    """A trained estimator: its raw outputs, and the way from there to what is compared.

    ``method`` names the raw outputs ("decision_function", "predict_proba", "predict" or "codes"),
    which have the shape (rows, outputs); ``link`` acts on the last axis.
    """

    fitted: Any
    method: str
    raw: Outputs
    link: Outputs

    def outputs(self, X: Array) -> Array:
        """What is compared, for the rows of ``X``."""
        return self.link(self.raw(X))


class Batch(Protocol):
    """Some columns of an engine."""

    columns: Subset

    def at(self, some: slice, rows: slice, points: Array) -> Array:
        """Raw outputs of rows that meet the points (columns, points) of some of the columns."""

    def paired(self, values: Array) -> Array:
        """Raw outputs of rows with one value each; values of shape (rows, columns)."""

    def without(self) -> Array:
        """Raw outputs with the column 0 in rows and centres, where there are centres."""


class Engine(Protocol):
    """A model on some rows."""

    #: What it holds, so that few engines at a time are kept.
    n_bytes: int

    def outputs(self) -> Array:
        """Raw outputs of the rows as they are."""

    def batches(self) -> Iterator[Batch]:
        """All columns, some at a time."""


#: Rows that the generic engine builds at a time.
ROWS_AT_ONCE = 20_000


class GenericEngine:
    """Any model: explicitly altered copies of the rows."""

    def __init__(self, model: Model, X: Array):
        self.model, self.X, self.n_bytes = model, X, X.nbytes

    def outputs(self) -> Array:
        return self.model.raw(self.X)

    def batches(self) -> "Iterator[GenericBatch]":
        for column in range(self.X.shape[1]):
            yield GenericBatch(self.model, self.X, column)


class GenericBatch:
    """One column, replaced in copies of the rows."""

    def __init__(self, model: Model, X: Array, column: int):
        self.model, self.X, self.columns = model, X, np.array([column])

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
        altered[:, self.columns[0]] = np.tile(points, len(rows))
        return self.model.raw(altered).reshape(len(rows), len(points), -1)

    def paired(self, values: Array) -> Array:
        altered = self.X.copy()
        altered[:, self.columns] = values
        return self.model.raw(altered)[None, :, None, :]

    def without(self) -> Array:
        raise no_centres(self.model.fitted)


def no_centres(fitted: Any) -> IncompatibleCriterion:
    """The error for a model without kernel centres."""
    return IncompatibleCriterion(
        f"Zero(centres=True) needs a kernel machine (SVC, SVR) with an RBF, polynomial or linear "
        f"kernel, not {type(fitted).__name__}. Use by='zero', which alters the rows alone."
    )
