"""Absolute correlations of kept columns with all others, whatever the table is made of."""

from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from tamis._arrays import Array, Subset, column_blocks, standardised
from tamis.contract import Grouping, SparseColumns
from tamis.exceptions import InvalidTable


def numbers_of(X: Any, columns: Subset) -> Array:
    """Some columns as numbers, NaN where a column holds none."""
    if isinstance(X, SparseColumns):
        X = X.X
    if sparse.issparse(X):
        return np.asarray(X.tocsc()[:, columns].toarray(), dtype=float)
    if not hasattr(X, "columns"):
        return np.asarray(np.asarray(X)[:, columns], dtype=float)
    out = np.full((len(X), len(columns)), np.nan)
    names = list(X.columns)
    for k, j in enumerate(columns.tolist()):
        values = values_of(X, names[j])
        if values.dtype.kind in "biuf":
            out[:, k] = values
    return out


def values_of(frame: Any, name: Any) -> Any:
    """One column of a frame as an array: numbers with gaps as NaN, other things with None."""
    column = frame[name]
    if getattr(column, "ndim", 1) == 2:  # pandas, where two columns have the name
        column = column.iloc[:, 0]
    values = np.asarray(column)
    if values.dtype.kind != "O":
        return values
    values = values.copy()
    if hasattr(column, "isna"):  # pandas has several ways to say that nothing is there
        values[np.asarray(column.isna())] = None
    first = next((value for value in values if value is not None), None)
    if not isinstance(first, Real):
        return values
    try:
        return np.array([np.nan if value is None else float(value) for value in values])
    except (TypeError, ValueError):
        return values


def shape_of(X: Any) -> tuple[int, int]:
    """Rows and columns of a table of any kind."""
    X = X.X if isinstance(X, SparseColumns) else X
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2:
        raise InvalidTable(f"A table has rows and columns; this one has the shape {X.shape}.")
    return int(X.shape[0]), int(X.shape[1])


def correlations(X: Any, units: Grouping, kept: Subset) -> Array:
    """\\|r\\| of some units with all units; of groups the largest of their columns'.

    A gap counts as the mean of its column. A column that is constant, or no number, has NaN.
    """
    n, d = shape_of(X)
    if d != units.n_columns:
        raise InvalidTable(
            f"The table has {d} columns, the selection was fitted to {units.n_columns}. Give the "
            "table it was fitted to."
        )
    columns = units.columns(np.sort(kept))
    own = _scaled(numbers_of(X, columns))
    by_column = np.empty((len(columns), d))
    for block in column_blocks(n, d):
        part = np.arange(d)[block]
        by_column[:, part] = np.abs(own.T @ _scaled(numbers_of(X, part))) / n
    return _by_unit(by_column, columns, units, kept)


def _scaled(numbers: Array) -> Array:
    """Columns with mean 0 and deviation 1, gaps 0; NaN all through where that cannot be."""
    empty = np.isnan(numbers).all(axis=0)
    numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    numbers[:, empty] = 0
    scaled = np.nan_to_num(standardised(numbers))
    still = ~np.abs(scaled).any(axis=0)
    deviation = np.sqrt((scaled**2).mean(axis=0), out=np.ones(scaled.shape[1]), where=~still)
    scaled /= deviation  # gaps made it smaller
    scaled[:, still | empty] = np.nan
    return scaled


def _by_unit(by_column: Array, columns: Subset, units: Grouping, kept: Subset) -> Array:
    """The largest over the columns of both units."""
    with np.errstate(invalid="ignore"):
        by_column = np.minimum(by_column, 1.0)
    if units.plain:
        return by_column[np.searchsorted(columns, kept)]
    known = np.nan_to_num(by_column, nan=-1.0)
    wide = np.full((len(columns), units.n_units), -1.0)
    np.maximum.at(wide.T, units.unit_of, known.T)
    out = np.full((len(kept), units.n_units), -1.0)
    position = {int(unit): k for k, unit in enumerate(kept)}
    np.maximum.at(out, [position[int(unit)] for unit in units.unit_of[columns]], wide)
    return np.where(out < 0, np.nan, out)
