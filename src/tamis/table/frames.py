"""Frames of pandas, polars and pyarrow: into polars, and their own columns back."""

import os
import sys
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from threading import Event, Thread
from typing import Any

from sklearn.utils.validation import validate_data

from tamis._arrays import Subset
from tamis.exceptions import InvalidTable, MissingExtra

#: The process that imported this module: another one was forked from it.
FIRST_PROCESS = os.getpid()
#: Seconds that the threads of polars have for a tiny sum before they count as gone.
PATIENCE = 5.0


def library_of(X: Any) -> str | None:
    """``"pandas"``, ``"polars"`` or ``"pyarrow"``; None for what is no frame of theirs."""
    for library, kind in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")):
        # an object of a library that was never imported cannot exist
        module = sys.modules.get(library)
        if module is not None and isinstance(X, getattr(module, kind, ())):
            return library
    return None


def need_polars() -> None:
    """Say what to install where polars is missing."""
    if find_spec("polars") is None:
        raise MissingExtra(
            "Tables of other kinds than numbers are read by polars, which is not installed. Write "
            "pip install 'tamis[app]'."
        )


def need_threads() -> None:
    """Refuse a forked process that lacks the threads of polars, in which polars would hang."""
    if os.getpid() != FIRST_PROCESS and not _has_threads(os.getpid()):
        raise InvalidTable(
            "This process was forked after polars had started its threads, which a fork does not "
            "copy, so polars cannot read a table here. Start processes by "
            "multiprocessing.get_context('spawn') or by joblib, or give an array of numbers."
        )


@cache
def _has_threads(process: int) -> bool:
    """Whether polars computes a sum in this process, asked in a thread that may never end."""
    import polars as pl

    done = Event()

    def compute() -> None:
        pl.DataFrame({"a": [1], "b": [2]}).select(pl.all().sum())
        done.set()

    Thread(target=compute, daemon=True).start()
    return done.wait(PATIENCE)


def check_names(estimator: Any, X: Any, *, reset: bool) -> None:
    """Keep the names of the columns, or hold them to those that were kept."""
    named = as_polars(X) if library_of(X) == "pyarrow" else X
    validate_data(estimator, named, reset=reset, skip_check_array=True)


def is_frame(X: Any) -> bool:
    """Whether X is a frame of pandas, polars or pyarrow."""
    return library_of(X) is not None


def as_polars(X: Any) -> Any:
    """The frame as one of polars; columns that polars has no type for become texts."""
    need_polars()
    import polars as pl

    library = library_of(X)
    if library == "polars":
        return X
    # frames of numbers are converted without threads
    if library == "pyarrow" or any(dtype.kind not in "biuf" for dtype in X.dtypes):
        need_threads()
    if library == "pyarrow":
        return pl.from_arrow(X)
    names = _names(X)
    X = _without_odd_types(X)
    try:
        frame = pl.from_pandas(X.set_axis(names, axis=1), include_index=False)
    except Exception:  # a column of mixed objects, each library's errors being its own
        frame = pl.DataFrame([_as_series(X.iloc[:, j], name) for j, name in enumerate(names)])
    return frame


def _names(X: Any) -> list[str]:
    names = [str(name) for name in X.columns]
    twice = (
        sorted({name for name in names if names.count(name) > 1})
        if len(set(names)) < len(names)
        else []
    )
    if twice:
        raise InvalidTable(
            f"The frame has more than one column called {twice[0]!r}. Give every column a name of "
            "its own."
        )
    return names


def _without_odd_types(X: Any) -> Any:
    """The frame with periods and intervals, which no other library has, as texts."""
    import pandas as pd

    odd = (pd.PeriodDtype, pd.IntervalDtype)
    held = [getattr(dtype, "categories", None) for dtype in X.dtypes]
    texts = [
        j
        for j, (dtype, levels) in enumerate(zip(X.dtypes, held, strict=True))
        if isinstance(dtype if levels is None else levels.dtype, odd)
    ]
    if not texts:
        return X
    X = X.copy(deep=False)
    for j in texts:
        column = X.iloc[:, j]
        X.isetitem(j, column.astype(object).map(str, na_action="ignore"))
    return X


def _as_series(column: Any, name: str) -> Any:
    """A column of pandas; what polars cannot hold is written as text."""
    import polars as pl

    try:
        return pl.from_pandas(column.rename(name))
    except Exception:  # see above
        return pl.Series(
            name,
            [None if gap else str(value) for value, gap in zip(column, column.isna(), strict=True)],
        )


def take(X: Any, columns: Subset) -> Any:
    """Some columns of a frame, in its own library and with its own types."""
    positions = columns.tolist()
    library = library_of(X)
    if library == "pandas":
        return X.iloc[:, positions]
    if library == "pyarrow":
        return X.select(positions)
    return X[:, positions]


def take_rows(X: Any, rows: Subset) -> Any:
    """Return some rows of a frame, in its own library."""
    if library_of(X) == "pandas":
        return X.iloc[rows]
    return X.take(rows) if library_of(X) == "pyarrow" else X[rows.tolist()]


def without(frame: Any, names: Iterable[str]) -> Any:
    """A frame of polars without some columns.

    By name alone: in polars' own ``drop`` and ``select`` a name such as ``^x$`` is a pattern.
    """
    gone = set(names)
    return frame[:, [name for name in frame.columns if name not in gone]] if gone else frame


def as_library(X: Any, library: str) -> Any:
    """The frame as one of another library."""
    if library_of(X) == library:
        return X
    frame = as_polars(X)
    return frame if library == "polars" else frame.to_pandas()
