"""Summaries of the columns of a table in row blocks: ranges, missing values, duplicates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis.blocks.source import RowBlock, RowStatistic
from tamis.exceptions import InvalidTable

#: Number of rows that are converted to double precision at a time. With a hundred columns these are
#: three megabytes, which stay in the CPU cache until they are summed.
IN_CACHE = 4096


class Surveyed(NamedTuple):
    """Summary of each column from the first pass, as arrays with one entry per column."""

    low: Array  # smallest value
    high: Array  # largest value
    gaps: NDArray[np.int64]  # number of missing values
    sums: Array  # weighted sums with random row weights, equal for duplicate columns
    weights: Array  # sums of the weights of the rows in which the column is not missing
    n_rows: int

    @property
    def size(self) -> Array:
        """Largest absolute value of each column."""
        return np.maximum(self.high, -self.low)

    def constant(self, standardize: bool) -> Mask:
        """Return a mask of the columns with the same value in every row, or without any value."""
        same = self.alike(standardize)
        return np.asarray(same & (self.gaps == 0) | (self.gaps == self.n_rows))

    def alike(self, standardize: bool) -> Mask:
        """Return a mask of the columns whose values are all the same, apart from missing values.

        With ``standardize``, values that differ only by the rounding error of a large mean are
        treated as the same.
        """
        same = self.high == self.low
        if standardize:
            # the standard deviation is at most half of the range
            same |= self.width <= 20 * np.finfo(float).eps * self.size
        return np.asarray(same)

    @property
    def width(self) -> Array:
        """Largest minus smallest value of each column, or infinity if this overflows."""
        with np.errstate(over="ignore"):
            return np.asarray(self.high - self.low)


@dataclass(eq=False, repr=False)
class Survey(RowStatistic):
    """Statistic that computes the summary :class:`Surveyed` of all columns.

    Parameters
    ----------
    name : str
        Name of the caller, for error messages.
    names : list of str or None
        Names of the columns.
    n_columns : int
        Number of columns.
    takes_missing : bool
        Whether missing values are allowed.
    """

    is_small = True

    name: str
    names: Sequence[str] | None
    n_columns: int
    takes_missing: bool

    def empty(self) -> Any:
        d = self.n_columns
        return Surveyed(
            np.full(d, np.inf),
            np.full(d, -np.inf),
            np.zeros(d, dtype=np.int64),
            np.zeros(d),
            np.zeros(d),
            0,
        )

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        X = block.X
        if not len(X):
            return state
        low, high = X.min(axis=0).astype(float), X.max(axis=0).astype(float)
        gaps = np.zeros(self.n_columns, dtype=np.int64)
        # the weight of a row does not depend on how the rows are divided into blocks
        draws = np.random.PCG64(0).advance(int(block.start))
        weights = np.random.Generator(draws).uniform(1, 2, len(X))
        there = np.full(self.n_columns, weights.sum())
        if not (np.isfinite(low) & np.isfinite(high)).all():
            X, gaps = self._check(block)
            there = weights @ ~np.isnan(X)
            low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
            X = np.nan_to_num(X)
            low, high = np.nan_to_num(low, nan=np.inf), np.nan_to_num(high, nan=-np.inf)
        # always in double precision: sums of duplicates must not differ by rounding
        sums = np.zeros(self.n_columns)
        with np.errstate(over="ignore", invalid="ignore"):
            for first in range(0, len(X), IN_CACHE):
                rows = slice(first, first + IN_CACHE)
                sums += weights[rows] @ X[rows].astype(np.float64, copy=False)
        return self.merge(state, Surveyed(low, high, gaps, sums, there, len(X)))

    def _check(self, block: RowBlock) -> tuple[Array, NDArray[np.int64]]:
        """Return the block as floats, and the number of missing values in each column.

        Refuse infinity, and missing values if they are not allowed.
        """
        X = block.X.astype(np.float64)
        missing = np.isnan(X)
        wrong, found, advice = np.isinf(X), "infinity", "Replace it, or leave the column out."
        if missing.any() and not self.takes_missing:
            wrong, found = missing, "missing values (NaN)"
            advice = "Impute them, leave the column out, or use a criterion that takes NaN: MRMR."
        if wrong.any():
            j = int(np.flatnonzero(wrong.any(axis=0))[0])
            column = repr(self.names[j]) if self.names is not None else str(j)
            raise InvalidTable(
                f"{self.name} needs a number in every entry, but column {column} has {found} in "
                f"{block.where}, first in row {block.start + int(wrong[:, j].argmax())} of the "
                f"table. {advice}"
            )
        return X, missing.sum(axis=0)

    def merge(self, state: Any, other: Any) -> Any:
        return Surveyed(
            np.minimum(state.low, other.low),
            np.maximum(state.high, other.high),
            state.gaps + other.gaps,
            state.sums + other.sums,
            state.weights + other.weights,
            state.n_rows + other.n_rows,
        )


@dataclass(eq=False, repr=False)
class Apart(RowStatistic):
    """Largest difference between the two columns of each pair. It is about 0 for duplicates.

    Parameters
    ----------
    first, second : array of int
        The columns of each pair.
    low, width : array of float
        Shift and scale of each column. Before the comparison the shift is subtracted from the
        column, and the difference is divided by the scale.
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    low: Array
    width: Array

    def empty(self) -> Any:
        return np.zeros(len(self.first))

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        if not len(block.X):
            return state
        away = [
            _farthest(self._scaled(block, i), self._scaled(block, j))
            for i, j in zip(self.first, self.second, strict=True)
        ]
        return np.maximum(state, away)

    def _scaled(self, block: RowBlock, j: int) -> Array:
        return np.asarray((block.X[:, j].astype(float) - self.low[j]) / self.width[j])

    def merge(self, state: Any, other: Any) -> Any:
        return np.maximum(state, other)


def _farthest(one: Array, other: Array) -> float:
    """Return the largest difference between two columns.

    It is infinity if a value is missing in only one of them.
    """
    away = np.abs(one - other)
    differ = np.isnan(one) != np.isnan(other)
    return float("inf") if differ.any() else float(np.fmax.reduce(away, initial=0.0))
