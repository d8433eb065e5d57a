"""The target of a table, and conversion of tables to numbers."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tamis._arrays import Array, target_kind
from tamis._format import did_you_mean, format_count, format_names
from tamis.blocks.inputs import SparseColumns
from tamis.blocks.survival import SURVIVAL
from tamis.exceptions import InvalidTable, InvalidTarget
from tamis.table.kinds import CELLS, OF_NUMPY, all_numbers, days_of


class LabelledTable(NamedTuple):
    """Checked features and target of a file."""

    X: pl.DataFrame | SparseColumns
    y: NDArray[Any]
    target: str
    task: str

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return self.X.names if isinstance(self.X, SparseColumns) else self.X.columns

    def __str__(self) -> str:
        size = f"{format_count(len(self.y), 'row')}, {format_count(len(self.names), 'column')}"
        return f"{size}, target {self.target} ({describe_task(self.y, self.task)})"


def describe_task(y: NDArray[Any], task: str) -> str:
    """Describe a target as text: ``numbers``, or its number of classes or events."""
    if task == SURVIVAL:
        return f"{int(y['event'].sum())} events"
    return "numbers" if task == "regression" else f"{len(np.unique(y))} classes"


def check_column(name: str, columns: Sequence[str], hint: str = "") -> None:
    """Raise an error if there is no column with this name. ``hint`` is the end of the message."""
    if name not in columns:
        raise InvalidTable(
            f"There is no column {name!r}.{did_you_mean(name, columns)} The columns are "
            f"{format_names(columns)}.{hint}"
        )


def target_of(column: pl.Series, task: str) -> tuple[NDArray[Any], str]:
    """Return the target as classes or numbers, and its task. ``task`` may be "auto"."""
    check_complete(column)
    if column.dtype.is_nested():
        raise InvalidTarget(
            f"The target {column.name!r} holds {column.dtype} values. Give one class or number per "
            "row."
        )
    if column.dtype == pl.Binary:
        raise InvalidTarget(
            f"The target {column.name!r} holds bytes. Convert them to text or numbers."
        )
    if column.dtype.is_numeric() and column.dtype not in OF_NUMPY:
        column = column.cast(pl.Float64)
    days = days_of(column) if column.dtype.is_temporal() and task != "classification" else None
    if days is not None and (task == "regression" or target_kind(days) == "regression"):
        return _varying(column.name, days), "regression"
    text = not (column.dtype.is_numeric() or column.dtype == pl.Boolean)
    if task == "regression" and text:
        raise InvalidTarget(
            f"Regression needs a numeric target, but {column.name!r} holds values such as "
            f"{str(column[0])!r}. Write --task classification, or convert the column."
        )
    if text or column.dtype == pl.Boolean:
        y: NDArray[Any] = np.array(column.cast(pl.String).to_list())
    else:
        y = column.to_numpy()
    return _varying(column.name, y), target_kind(y) if task == "auto" else task


def _varying(name: str, y: NDArray[Any]) -> NDArray[Any]:
    """Return the target unchanged. Raise an error if it is constant."""
    if len(values := np.unique(y)) < 2:
        raise InvalidTarget(
            f"The target {name!r} has the same value, {values[0]}, in every row, so there is "
            "nothing to predict. Check the column, or the rows that were kept."
        )
    return y


def check_complete(column: pl.Series) -> None:
    """Raise an error if a column has missing or infinite values, and report their number."""
    name, missing = column.name, column.null_count()
    if column.dtype.is_float():
        missing += int(column.is_nan().sum())
    if missing:
        raise InvalidTable(
            f"The column {name!r} has {format_count(missing, 'missing value')} in {len(column)} "
            f"rows. Fill them in, or remove those rows."
        )
    if column.dtype.is_float() and (n_infinite := int(column.is_infinite().sum())):
        raise InvalidTable(
            f"The column {name!r} has {format_count(n_infinite, 'infinite value')}. Correct them."
        )


def plain_numbers(columns: list[pl.Series]) -> pl.DataFrame:
    """Return columns without missing values as a frame backed by a single array.

    numpy can view this array without a copy. The list ``columns`` is emptied block by block, so
    that their memory is freed.
    """
    names = [column.name for column in columns]
    n_rows = len(columns[0])
    width = max(1, CELLS // n_rows)
    X: Array = np.empty((n_rows, len(columns)), order="F")
    while columns:
        block = columns[-width:]
        del columns[-width:]
        X[:, len(columns) : len(columns) + len(block)] = all_numbers(pl.DataFrame(block))
    # slices of a long column, so that polars need not check the names and types of 10^5 columns
    frame = pl.DataFrame({"": X.ravel(order="K")}).unstack(step=n_rows, how="vertical")
    frame.columns = names
    return frame
