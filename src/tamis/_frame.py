"""Columns of plain values as the data frame that is at hand."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tamis.exceptions import MissingExtra


def frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Frame of polars if it is installed, else of pandas."""
    for library in ("polars", "pandas"):
        if find_spec(library) is not None:
            return import_module(library).DataFrame(dict(columns))
    raise MissingExtra(
        "to_frame needs polars or pandas, and neither is installed. Write "
        "pip install 'tamis[app]', or read the rows themselves."
    )


def collected(X: Any) -> Any:
    """The frame that a lazy frame of polars stands for; anything else as it is."""
    lazy = type(X).__name__ == "LazyFrame" and type(X).__module__.startswith("polars.")
    return X.collect() if lazy else X


def frame_of(rows: Sequence[Any], fields: Sequence[str]) -> Any:
    """Frame with one column per field of the rows."""
    return frame({name: [getattr(row, name) for row in rows] for name in fields})
