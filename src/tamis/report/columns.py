"""Columns of any kind of table as arrays, and their correlations."""

from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from tamis._arrays import Array, Subset, column_blocks
from tamis._linalg import column_correlations
from tamis.blocks.inputs import SparseColumns
from tamis.contract.units import Grouping
from tamis.exceptions import InvalidTable


def numbers_of(X: Any, columns: Subset) -> Array:
    """Return the given columns as numbers. Columns that are not numeric become NaN."""
    if isinstance(X, SparseColumns):
        X = X.X
    if sparse.issparse(X):
        return np.asarray(X.tocsc()[:, columns].toarray(), dtype=float)
    if not _has_names(X):
        return np.asarray(np.asarray(X)[:, columns], dtype=float)
    out = np.full((len(X), len(columns)), np.nan)
    for k, j in enumerate(columns.tolist()):
        values = values_of(X, j)
        if values.dtype.kind in "biuf":
            out[:, k] = values
    return out


def values_of(X: Any, column: int) -> Any:
    """Return a column as an array. Missing values are NaN in numeric columns and None in others."""
    if isinstance(X, SparseColumns) or not _has_names(X):
        return numbers_of(X, np.array([column]))[:, 0]
    # by position, because pandas allows two columns with the same name
    series = X.iloc[:, column] if hasattr(X, "iloc") else X[:, column]
    # np.asarray would give every row of a polars column the width of its longest text
    values = series.to_numpy() if hasattr(series, "to_numpy") else np.asarray(series)
    if values.dtype.kind != "O":
        return values
    values = values.copy()
    if hasattr(series, "isna"):  # pandas has several kinds of missing values
        values[np.asarray(series.isna())] = None
    first = next((value for value in values if value is not None), None)
    if not isinstance(first, Real):
        return values
    try:
        return np.array([np.nan if value is None else float(value) for value in values])
    except (TypeError, ValueError):
        return values


def _has_names(X: Any) -> bool:
    # the class is checked, because polars lists all names whenever the attribute of a frame is read
    return hasattr(type(X), "columns")


def shape_of(X: Any) -> tuple[int, int]:
    """Return the number of rows and columns of a table."""
    X = X.X if isinstance(X, SparseColumns) else X
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2:
        raise InvalidTable(f"A table needs rows and columns, got the shape {X.shape}.")
    return int(X.shape[0]), int(X.shape[1])


def correlations(X: Any, units: Grouping, kept: Subset) -> Array:
    """Return \\|r\\| between the units ``kept`` and all units.

    A unit is a single column, or a group of columns that are selected together. The value of a
    group is the largest value of its columns. Columns that are constant or not numeric have NaN.
    """
    n, d = shape_of(X)
    if d != units.n_columns:
        raise InvalidTable(
            f"The table has {d} columns, but the selection was fitted to {units.n_columns}. Give "
            "the table it was fitted to."
        )
    columns = units.columns(np.sort(kept))
    own = _finite(numbers_of(X, columns))
    by_column = np.empty((len(columns), d))
    for block in column_blocks(n, d):
        some = np.arange(d)[block]
        by_column[:, some] = column_correlations(own, _finite(numbers_of(X, some)))
    if units.plain:
        return by_column[np.searchsorted(columns, kept)]
    by_unit = np.full((len(columns), units.n_units), np.nan)
    np.fmax.at(by_unit.T, units.unit_of, by_column.T)
    out = np.full((len(kept), units.n_units), np.nan)
    line = np.empty(units.n_units, dtype=np.intp)
    line[kept] = np.arange(len(kept))
    np.fmax.at(out, line[units.unit_of[columns]], by_unit)
    return out


def _finite(numbers: Array) -> Array:
    return np.where(np.isfinite(numbers), numbers, np.nan)
