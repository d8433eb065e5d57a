"""Data frames of polars or pandas, whichever is installed."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tamis.exceptions import MissingExtra


def frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Return a polars frame if polars is installed, else a pandas frame."""
    for library in ("polars", "pandas"):
        if find_spec(library) is not None:
            return import_module(library).DataFrame(dict(columns))
    raise MissingExtra(
        "to_frame needs polars or pandas, and neither is installed. Write "
        "pip install 'tamis[app]', or read the rows directly."
    )


def collected(X: Any) -> Any:
    """Collect a polars LazyFrame. Return any other object unchanged."""
    lazy = type(X).__name__ == "LazyFrame" and type(X).__module__.startswith("polars.")
    return X.collect() if lazy else X


def frame_of(rows: Sequence[Any], fields: Sequence[str]) -> Any:
    """Return a data frame with a column for each of the given fields of the rows."""
    return frame({name: [getattr(row, name) for row in rows] for name in fields})
