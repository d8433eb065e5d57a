"""The columns of a table in blocks of rows: their ranges, what is missing, which are copies."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis.blocks.source import RowBlock, RowStatistic
from tamis.exceptions import InvalidTable

#: Rows that are turned into double precision at a time: of a hundred columns three megabytes, which
#: stay in the cache until they are summed.
IN_CACHE = 4096


class Surveyed(NamedTuple):
    """What the first pass finds of each column.

    Attributes
    ----------
    low, high : array of float
        Least and greatest value.
    gaps : array of int
        Missing entries.
    sums : array of float
        Sums with weights that follow the number of the row: those of copies are equal.
    weights : array of float
        Sums of the weights of what is there.
    n_rows : int
    """

    low: Array
    high: Array
    gaps: NDArray[np.int64]
    sums: Array
    weights: Array
    n_rows: int

    @property
    def size(self) -> Array:
        """The greatest absolute value of each column."""
        return np.maximum(self.high, -self.low)

    def constant(self, standardize: bool) -> Mask:
        """Columns of one value in every row, or none in any."""
        same = self.alike(standardize)
        return np.asarray(same & (self.gaps == 0) | (self.gaps == self.n_rows))

    def alike(self, standardize: bool) -> Mask:
        """Columns of one value where there is one; rounding of a large mean is no other.

        That is so for columns that are to be standardised.
        """
        same = self.high == self.low
        if standardize:
            # no deviation is more than half of the range
            same |= self.width <= 20 * np.finfo(float).eps * self.size
        return np.asarray(same)

    @property
    def width(self) -> Array:
        """From the least to the greatest value of each column; infinity where that overflows."""
        with np.errstate(over="ignore"):
            return np.asarray(self.high - self.low)


class Survey(RowStatistic):
    """Looks through the columns: their range, what is missing, and which may be copies.

    Parameters
    ----------
    name : str
        Who asks, for sentences.
    names : list of str or None
        Names of the columns.
    n_columns : int
    takes_missing : bool
        Whether NaN may be there.
    """

    is_small = True

    def __init__(self, name: str, names: Sequence[str] | None, n_columns: int, takes_missing: bool):
        self.name, self.names, self.n_columns = name, names, n_columns
        self.takes_missing = takes_missing

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
        # the weights of these rows among those of all, whatever the blocks before were
        draws = np.random.PCG64(0).advance(int(block.start))
        weights = np.random.Generator(draws).uniform(1, 2, len(X))
        there = np.full(self.n_columns, weights.sum())
        if not (np.isfinite(low) & np.isfinite(high)).all():
            X, gaps = self._checked(block)
            there = weights @ ~np.isnan(X)
            low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
            X = np.nan_to_num(X)
            low, high = np.nan_to_num(low, nan=np.inf), np.nan_to_num(high, nan=-np.inf)
        # in double precision whatever the columns have: sums of copies may not differ by rounding
        sums = np.zeros(self.n_columns)
        with np.errstate(over="ignore", invalid="ignore"):  # no sum, no copy
            for first in range(0, len(X), IN_CACHE):
                rows = slice(first, first + IN_CACHE)
                sums += weights[rows] @ X[rows].astype(np.float64, copy=False)
        return self.merge(state, Surveyed(low, high, gaps, sums, there, len(X)))

    def _checked(self, block: RowBlock) -> tuple[Array, NDArray[np.int64]]:
        """The block as floats and how many entries are missing; infinity is refused."""
        X = block.X.astype(np.float64)
        for wrong, said, advice in (
            (
                np.isnan(X),
                "missing values (NaN)",
                "Fill them in, leave the column out, or use a criterion that takes NaN, such as "
                "MRMR.",
            ),
            (np.isinf(X), "infinity", "Put numbers there, or leave the column out."),
        ):
            if wrong.any() and not (self.takes_missing and said != "infinity"):
                j = int(np.flatnonzero(wrong.any(axis=0))[0])
                column = repr(self.names[j]) if self.names is not None else str(j)
                raise InvalidTable(
                    f"{self.name} needs a number in every entry, but column {column} has {said} in "
                    f"{block.where}, first in row {block.start + int(wrong[:, j].argmax())} of the "
                    f"table. {advice}"
                )
        return X, np.isnan(X).sum(axis=0)

    def merge(self, state: Any, other: Any) -> Any:
        return Surveyed(
            np.minimum(state.low, other.low),
            np.maximum(state.high, other.high),
            state.gaps + other.gaps,
            state.sums + other.sums,
            state.weights + other.weights,
            state.n_rows + other.n_rows,
        )


class Apart(RowStatistic):
    """How far columns are from others at most: nothing, but for rounding, for a copy.

    Parameters
    ----------
    first, second : array of int
        The columns of each pair.
    low, width : array of float
        What is taken away from each column, and what it is divided by, before they are compared.
    """

    def __init__(self, first: NDArray[np.intp], second: NDArray[np.intp], low: Array, width: Array):
        self.first, self.second = first, second
        self.low, self.width = low, width

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
    """The greatest distance; what is missing in one of two is infinitely far from a value."""
    away = np.abs(one - other)
    gaps = np.isnan(one) != np.isnan(other)
    return float("inf") if gaps.any() else float(np.fmax.reduce(away, initial=0.0))
