"""From columns to numbers and a target, or to a sentence that says what is in the way."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tamis._arrays import target_kind
from tamis.cli.files import FileTable
from tamis.exceptions import InvalidTable, InvalidTarget
from tamis.spec import did_you_mean

#: How many columns a sentence names.
NAMED = 5
#: Columns that are copied at a time: enough that polars has more to do than Python, few enough that
#: little of a long table is held twice.
BLOCK = 256


class LabelledTable(NamedTuple):
    """Features and target of a file, checked."""

    X: pl.DataFrame
    y: NDArray[Any]
    target: str
    task: str

    def __str__(self) -> str:
        n, d = self.X.shape
        what = "real" if self.task == "regression" else f"{len(np.unique(self.y))} classes"
        return f"{n} rows, {d} columns, target {self.target} ({what})"


def labelled(
    content: FileTable, target: str | None, drop: Sequence[str], task: str = "auto"
) -> LabelledTable:
    """Features as numbers, and the target as classes or real numbers.

    ``task`` is "auto", "classification" or "regression". The frame of ``content`` is used up, so
    that a large table is not held twice.
    """
    target = _target_name(content, target)
    for name in (target, *drop):
        _check_column(name, content.frame.columns)
    if target in drop:
        raise InvalidTable(f"The target {target!r} cannot be dropped. Leave it out of --drop.")
    frame = content.take()
    y, task = _target(frame.get_column(target), task)
    for name in (target, *dict.fromkeys(drop)):
        frame.drop_in_place(name)
    if not frame.width:
        raise InvalidTable(
            f"No column is left beside the target {target!r}. Give a table with features."
        )
    _check_named(frame, content.unnamed)
    _check_numeric(frame)
    names, columns = frame.columns, frame.get_columns()
    del frame
    # columns of one array: read again as an array, they cost no second copy of the table
    return LabelledTable(pl.DataFrame(_numbers(columns), schema=names), y, target, task)


def _target_name(content: FileTable, asked: str | None) -> str:
    if content.target is not None:
        if asked not in (None, content.target):
            raise InvalidTable(
                f"A LIBSVM file has its target at the start of each line, not in a column "
                f"{asked!r}. Leave --target out."
            )
        return content.target
    if asked is None:
        raise InvalidTable(
            "Which column is the target? Write --target with one of "
            f"{_listed(content.frame.columns[::-1])}."
        )
    return asked


def _check_column(name: str, columns: Sequence[str]) -> None:
    if name not in columns:
        raise InvalidTable(
            f"There is no column {name!r}.{did_you_mean(name, columns)} The columns are "
            f"{_listed(columns)}."
        )


def _target(column: pl.Series, task: str) -> tuple[NDArray[Any], str]:
    _check_complete(column, "")
    if column.dtype.is_nested():
        raise InvalidTarget(
            f"The target {column.name!r} holds {column.dtype} values. Give one class or number per "
            "row."
        )
    text = not _is_numeric(column.dtype)
    if task == "regression" and text:
        raise InvalidTarget(
            f"Regression needs a numeric target, but {column.name!r} holds values such as "
            f"{str(column[0])!r}. Write --task classification, or convert the column."
        )
    if text or column.dtype == pl.Boolean:
        y: NDArray[Any] = np.array(column.cast(pl.String).to_list())
    else:
        y = column.to_numpy()
    if len(values := np.unique(y)) < 2:
        raise InvalidTarget(
            f"The target {column.name!r} has the same value, {values[0]}, in every row: there is "
            "nothing to tell apart. Check the column, or the rows that were kept."
        )
    return y, target_kind(y) if task == "auto" else task


def _check_named(features: pl.DataFrame, unnamed: Mapping[str, int]) -> None:
    """Refuse a column without a name that nobody dropped."""
    left = [name for name in unnamed if name in features.columns]
    if left:
        raise InvalidTable(
            f"Column {unnamed[left[0]]} has no name: a row number, perhaps, which would betray the "
            f"order of the rows. Write {_drops(left)}, or name it in the file."
        )


def _check_numeric(frame: pl.DataFrame) -> None:
    """Refuse columns that hold no numbers."""
    text = [name for name, dtype in frame.schema.items() if not _is_numeric(dtype)]
    if text:
        raise InvalidTable(
            f"{_listed(text)} {'hold' if len(text) > 1 else 'holds'} no numbers"
            f"{_example(frame[text[0]])}. Leave {'them' if len(text) > 1 else 'it'} out with "
            f"{_drops(text)}, or encode as numbers."
        )


def _numbers(columns: list[pl.Series]) -> NDArray[np.float64]:
    """All columns as one array; they are given up, block by block, as soon as they are in there."""
    X = np.empty((len(columns[0]), len(columns)), order="F")
    bad: list[pl.Series] = []
    while columns:
        block = columns[-BLOCK:]
        del columns[-BLOCK:]
        part = X[:, len(columns) : len(columns) + len(block)]
        frame = pl.DataFrame(block)
        part[:] = frame.cast(pl.Float64).to_numpy(order="fortran")
        finite = np.isfinite(part).all(axis=0)
        bad = [frame.to_series(j) for j in np.flatnonzero(~finite).tolist()] or bad
    for column in bad:
        _check_complete(column, f", or write --drop {_quoted(column.name)}")
    return X


def _is_numeric(dtype: pl.DataType) -> bool:
    return dtype.is_numeric() or dtype == pl.Boolean


def _example(column: pl.Series) -> str:
    """The first text that is no number."""
    if column.dtype != pl.String:
        return ""
    odd = column.filter(column.cast(pl.Float64, strict=False).is_null() & column.is_not_null())
    return f", such as {odd[0]!r} in {column.name!r}" if len(odd) else ""


def _check_complete(column: pl.Series, way_out: str) -> None:
    name, missing = column.name, column.null_count()
    infinite = 0
    if column.dtype.is_float():
        missing += int(column.is_nan().sum())
        infinite = int(column.is_infinite().sum())
    if missing:
        raise InvalidTable(
            f"The column {name!r} has {missing} missing value{'s' * (missing > 1)} in "
            f"{len(column)} rows. Fill them in, or remove those rows{way_out}."
        )
    if infinite:
        raise InvalidTable(
            f"The column {name!r} has {infinite} infinite value{'s' * (infinite > 1)}. Correct "
            f"them{way_out}."
        )


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    shown = ", ".join(map(repr, names[:NAMED]))
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"


def _drops(names: Sequence[str]) -> str:
    return " ".join(f"--drop {_quoted(name)}" for name in names[:NAMED])


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f'"{name}"'
