"""Frames of pandas, polars and pyarrow: conversion, and selection of rows and columns."""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from threading import Event, Thread
from typing import Any

from sklearn.utils.validation import validate_data

from tamis._arrays import Subset
from tamis.exceptions import InvalidTable, MissingExtra

#: Id of the process that imported this module. A process with a different id was forked from it.
FIRST_PROCESS = os.getpid()
#: If a tiny sum in polars takes more than this number of seconds, polars is treated as hanging.
PATIENCE = 5.0


def library_of(X: Any) -> str | None:
    """Return ``"pandas"``, ``"polars"`` or ``"pyarrow"``, or None if X is not a frame."""
    for library, kind in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")):
        # X cannot belong to a library that was never imported
        module = sys.modules.get(library)
        if module is not None and isinstance(X, getattr(module, kind, ())):
            return library
    return None


def need_polars() -> None:
    """Raise an error if polars is not installed."""
    if find_spec("polars") is None:
        raise MissingExtra(
            "Data frames need polars, which is not installed. Run pip install 'tamis[app]'."
        )


def need_threads() -> None:
    """Raise an error in a forked process that lacks polars' threads, where polars would hang."""
    if os.getpid() != FIRST_PROCESS and not _has_threads(os.getpid()):
        raise InvalidTable(
            "This process was forked after polars had started its threads, which a fork does not "
            "copy, so polars cannot read a table here. Start processes with "
            "multiprocessing.get_context('spawn') or joblib, or give an array of numbers."
        )


@cache
def _has_threads(process: int) -> bool:
    """Return whether polars can compute a sum in this process.

    A sum may hang, so it is computed in a thread of its own.
    """
    import polars as pl

    done = Event()

    def compute() -> None:
        pl.DataFrame({"a": [1], "b": [2]}).select(pl.all().sum())
        done.set()

    Thread(target=compute, daemon=True).start()
    return done.wait(PATIENCE)


def check_names(estimator: Any, X: Any, *, reset: bool) -> None:
    """Store the column names of X if ``reset``, otherwise compare them with the stored names."""
    named = as_polars(X) if library_of(X) == "pyarrow" else X
    validate_data(estimator, named, reset=reset, skip_check_array=True)


def is_frame(X: Any) -> bool:
    """Return whether X is a frame of pandas, polars or pyarrow."""
    return library_of(X) is not None


def as_polars(X: Any) -> Any:
    """Convert a frame to polars. Columns of types that polars does not have become text."""
    need_polars()
    import polars as pl

    library = library_of(X)
    if library == "polars":
        return X
    # polars converts numeric frames without threads
    if library == "pyarrow" or any(dtype.kind not in "biuf" for dtype in X.dtypes):
        need_threads()
    if library == "pyarrow":
        return pl.from_arrow(X)
    names = [str(name) for name in X.columns]
    check_unique(names, "The frame")
    if not any(map(_is_foreign, X.dtypes)):
        with suppress(Exception):  # a column of mixed objects; each library raises its own errors
            return pl.from_pandas(X.set_axis(names, axis=1), include_index=False)
    return pl.DataFrame([_as_series(X.iloc[:, j], name) for j, name in enumerate(names)])


def check_unique(names: Sequence[str], where: object) -> None:
    """Raise an error if several columns have the same name."""
    if len(set(names)) < len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        raise InvalidTable(
            f"{where} has more than one column called {' and '.join(map(repr, twice[:5]))}. Give "
            "every column a name of its own."
        )


def _is_foreign(dtype: Any) -> bool:
    """Return whether a type, or the type of its categories, exists only in pandas."""
    import pandas as pd

    levels = getattr(dtype, "categories", None)
    dtype = dtype if levels is None else levels.dtype
    return isinstance(dtype, pd.PeriodDtype | pd.IntervalDtype)


def _as_series(column: Any, name: str) -> Any:
    """Convert a pandas column to polars. If polars cannot hold its values, they become text."""
    import polars as pl

    if not _is_foreign(column.dtype):
        with suppress(Exception):  # as above
            return pl.from_pandas(column.rename(name))
    cells = zip(column, column.isna(), strict=True)
    return pl.Series(name, [None if na else str(value) for value, na in cells], dtype=pl.String)


def take(X: Any, columns: Subset) -> Any:
    """Return the given columns of a frame, in its own library and with its own types."""
    positions = columns.tolist()
    if library_of(X) == "pyarrow":
        return X.select(positions)
    return X.iloc[:, positions] if library_of(X) == "pandas" else X[:, positions]


def take_rows(X: Any, rows: Subset) -> Any:
    """Return the given rows of a frame, in its own library."""
    if library_of(X) == "pyarrow":
        return X.take(rows)
    return X.iloc[rows] if library_of(X) == "pandas" else X[rows.tolist()]


def column_names(X: Any) -> list[Any]:
    """Return the column names of a frame."""
    return list(X.column_names if library_of(X) == "pyarrow" else X.columns)


def drop_columns(frame: Any, names: Iterable[str]) -> Any:
    """Return a polars frame without the named columns.

    Names are literal. In polars' own ``drop`` and ``select``, a name such as ``^x$`` is a pattern.
    """
    gone = set(names)
    return frame[:, [name for name in frame.columns if name not in gone]] if gone else frame


def as_library(X: Any, library: str) -> Any:
    """Convert a frame to pandas or polars."""
    if library_of(X) == library:
        return X
    frame = as_polars(X)
    return frame if library == "polars" else frame.to_pandas()
