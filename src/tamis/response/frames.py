"""Frames as arrays of numbers, and models that were trained on frames as functions of these.

Columns of numbers are themselves; a column of anything else is stood for by numbers of rows, each
by the first row that has its value. Perturbations move values between rows, so that numbers of rows
are as good as the values.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, get_tags

from tamis._arrays import Array
from tamis._frame import collected
from tamis.exceptions import InvalidTable

#: What a model may be asked; all of them take a table first.
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "score")


class FrameCodes:
    """A table, its numbers, and the way back."""

    def __init__(self, X: Any):
        X = collected(X)
        self.is_frame = hasattr(X, "columns")
        self.frame = X
        if not self.is_frame:
            self.codes = _numbers(X)
            return
        self.names = list(X.columns)
        self.coded = [not _is_numeric(X[name]) for name in self.names]
        columns = [
            _first_rows(np.asarray(X[name])) if coded else np.asarray(X[name], dtype=np.float64)
            for name, coded in zip(self.names, self.coded, strict=True)
        ]
        self.codes = np.column_stack(columns)

    @property
    def all_numbers(self) -> bool:
        """Whether the numbers are those of the table."""
        return not self.is_frame or not any(self.coded)

    def decoded(self, codes: Array) -> Any:
        """A table of the kind that was given."""
        if not self.is_frame:
            return codes
        columns = {
            name: self._taken(name, codes[:, j]) if self.coded[j] else codes[:, j]
            for j, name in enumerate(self.names)
        }
        return type(self.frame)(columns)

    def _taken(self, name: Any, rows: Array) -> Any:
        """Values of a column of the frame, of the type that they have there."""
        column = self.frame[name]
        if hasattr(column, "gather"):  # polars
            return column.gather(rows.astype(np.intp))
        return column.take(rows.astype(np.intp)).reset_index(drop=True)

    def values(self, column: int, codes: Array) -> NDArray[Any]:
        """What some numbers of a column stand for."""
        if self.is_frame and self.coded[column]:
            return np.asarray(self.frame[self.names[column]])[codes.astype(np.intp)]
        return codes


class OnFrames(BaseEstimator):
    """A fitted model as a function of the numbers of its frames."""

    def __init__(self, model: Any, table: FrameCodes):
        self.model = model
        self.table = table

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("model", "table"):
            raise AttributeError(name)
        found = getattr(self.model, name)
        if name not in METHODS:
            return found
        return lambda codes, *others, **params: found(self.table.decoded(codes), *others, **params)

    def __sklearn_tags__(self) -> Tags:
        return get_tags(self.model)


def _numbers(X: Any) -> Array:
    try:
        found = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidTable(
            f"An array of numbers is needed, and this one holds something else ({error}). Give a "
            "frame with named columns, as the model was trained on."
        ) from error
    if found.ndim != 2:
        raise InvalidTable(f"A table of rows and columns is needed, not {found.ndim} dimension(s).")
    return found


def _is_numeric(column: Any) -> bool:
    # truth values and categories keep their type, by which an encoder may know them
    return np.asarray(column).dtype.kind in "fiu" and str(column.dtype) != "category"


def _first_rows(values: NDArray[Any]) -> Array:
    """For each row the first one that has its value; what is missing is one value."""
    known: dict[Any, int] = {}
    missing = [value is None or value != value for value in values.tolist()]
    found = [
        known.setdefault(None if gone else value, row)
        for row, (value, gone) in enumerate(zip(values.tolist(), missing, strict=True))
    ]
    return np.array(found, dtype=np.float64)
