"""A table in blocks of rows at the door: what is known of it before, and after, the first pass."""

from collections.abc import Sequence
from hashlib import sha256
from importlib import import_module
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask, column_means
from tamis.contract.inputs import check_target_rows
from tamis.contract.parts import Parts, RowBlock, RowStatistic, Together
from tamis.exceptions import InvalidParameter, InvalidTable, InvalidTarget

#: Distinct values of a target that are told apart; a target of more is a real one. Classes are
#: counted column by column for each of them, which nobody does for more.
MOST_LABELS = 10_000
#: First rows whose mean all blocks are shifted by before they are squared: enough that what is left
#: of a large mean is a fraction of the spread.
HEAD = 1000
#: How far weighted sums of ranges may be apart by rounding, where values are large beside them, in
#: units of what they may be apart in any case (1e-10): far above the precision of numbers.
ROUNDING = 1e-5
#: Rows that are turned into double precision at a time: of a hundred columns three megabytes, which
#: stay in the cache until they are summed.
IN_CACHE = 4096
#: Rows of a sample that is offered where a criterion cannot learn from blocks: what most criteria
#: deal with in minutes, and more than scores need to settle in two digits.
SAMPLE = 20_000


class Labels(NamedTuple):
    """What is known of a target.

    Attributes
    ----------
    values : array
        Its distinct values, rising; of a target of more than ``MOST_LABELS`` some of them.
    counts : array of int
        How often each stands there.
    n_rows : int
    """

    values: NDArray[Any]
    counts: NDArray[np.int64]
    n_rows: int

    def codes(self, y: NDArray[Any]) -> NDArray[np.intp]:
        """Position of each of some labels among the values."""
        found = np.searchsorted(self.values, y).astype(np.intp)
        new = self.values[np.minimum(found, len(self.values) - 1)] != y
        if np.any(new):
            raise InvalidTarget(
                f"The target has the label {y[int(np.argmax(new))]!r}, which it had not when it "
                "was first read. Give the same rows in every pass."
            )
        return found


class TargetLabels(RowStatistic):
    """Distinct values of the target, and how often each is there.

    Parameters
    ----------
    name : str
        Who asks, for sentences.
    """

    def __init__(self, name: str):
        self.name = name

    def empty(self) -> Any:
        return Labels(np.empty(0), np.empty(0, dtype=np.int64), 0)

    def learn_part(self, state: Any, block: RowBlock) -> Any:
        y = block.y
        if y is None:
            raise InvalidTarget(f"{self.name} needs a target, but {block.where} has none.")
        if not len(y):
            return state
        try:
            check_target_rows(self.name, y)
            if y.dtype.kind == "f" and np.isinf(y).any():
                raise InvalidTarget(
                    f"{self.name} needs a number for each row, but the target has infinity in row "
                    f"{block.start + int(np.isinf(y).argmax())} of the table. Leave the row out."
                )
            values, counts = np.unique(y, return_counts=True)
        except InvalidTarget as error:
            raise InvalidTarget(f"In {block.where}: {error}") from error
        except TypeError as error:
            raise InvalidTarget(
                f"{self.name} needs labels of one type, but the target mixes several in "
                f"{block.where} ({error}). Convert it."
            ) from error
        return self.merge(state, Labels(*_fewer(values, counts), len(y)))

    def merge(self, state: Any, other: Any) -> Any:
        if not state.n_rows or not other.n_rows:
            return state if state.n_rows else other
        if (state.values.dtype.kind in "biuf") != (other.values.dtype.kind in "biuf"):
            raise InvalidTarget(
                f"{self.name} needs labels of one type, but the target is numbers such as "
                f"{state.values[0]!r} in some blocks and {other.values[0]!r} in others. Convert it."
            )
        both = np.concatenate([state.values, other.values])
        values, where = np.unique(both, return_inverse=True)
        counts = np.zeros(len(values), dtype=np.int64)
        np.add.at(counts, where, np.concatenate([state.counts, other.counts]))
        return Labels(*_fewer(values, counts), state.n_rows + other.n_rows)


def _fewer(values: NDArray[Any], counts: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The lowest values, and one that is no whole number where there is one."""
    counts = counts.astype(np.int64)
    if len(values) <= MOST_LABELS + 2:
        return values, counts
    keep = np.arange(len(values)) <= MOST_LABELS
    if values.dtype.kind == "f":
        keep[np.flatnonzero(values != np.rint(values))[:1]] = True
    return values[keep], counts[keep]


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

    def learn_part(self, state: Any, block: RowBlock) -> Any:
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

    def learn_part(self, state: Any, block: RowBlock) -> Any:
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


class TableInParts:
    """A table in blocks of rows as criteria get it: its source, and what is known of its target.

    Parameters
    ----------
    source : Parts
    labels : Labels
        What is known of the target.
    name : str
        Who reads it, for sentences.
    standardize : bool, default=False
        Whether columns are to be taken with mean 0 and standard deviation 1.
    """

    def __init__(self, source: Parts, labels: Labels, name: str, *, standardize: bool = False):
        self.source, self.labels, self.name = source, labels, name
        self.standardize = standardize
        self.shape = labels.n_rows, source.n_columns
        self._survey: Surveyed | None = None

    @property
    def names(self) -> list[str] | None:
        """Names of the columns."""
        return self.source.names

    def scaled(self, name: str, standardize: bool) -> "TableInParts":
        """The same table, to be taken as it is or standardised, for another reader."""
        return TableInParts(self.source, self.labels, name, standardize=standardize)

    def fingerprint(self) -> str:
        """Short name of the data."""
        told = (self.shape, self.names, self.labels.values.tolist(), self.labels.counts.tolist())
        return sha256(f"{self.source.identity()} {told}".encode()).hexdigest()[:16]

    def reduce(self, statistic: RowStatistic, *, takes_missing: bool = False) -> Any:
        """The statistic of all rows; the first pass looks through the columns as well."""
        if self._survey is not None:
            return self.source.reduce(statistic)
        look = Survey(self.name, self.names, self.shape[1], takes_missing)
        survey, found = self.source.reduce(Together([look, statistic]))
        if survey.n_rows != self.shape[0]:
            raise InvalidTable(
                f"{self.name} found {self.shape[0]} rows in {self.source} when its target was "
                f"read, and now {survey.n_rows}. Give the same rows in every pass."
            )
        self._survey = survey
        return found

    @property
    def survey(self) -> Surveyed:
        """What the first pass found of the columns."""
        assert self._survey is not None
        return self._survey

    def shift(self) -> Array:
        """A value near the mean of each column, the same for every block.

        Squares of what is left after it is taken away lose no digits to a large mean.
        """
        means = column_means(self.source.first_rows(HEAD).astype(float))
        return np.nan_to_num(means, nan=0.0, posinf=0.0, neginf=0.0)

    def idle(self) -> Mask:
        """Columns that are constant or copy one before them, as in a table held at once."""
        told, n_rows = self.survey, self.shape[0]
        idle = told.constant(self.standardize)
        sums, size, low, width = told.sums, told.size, np.zeros(len(idle)), np.ones(len(idle))
        if self.standardize:  # columns equal once standardised are so once their ranges are equal
            low, width = told.low, np.where(told.width > 0, told.width, 1.0)  # 1: one value, gaps
            with np.errstate(over="ignore", invalid="ignore"):
                sums = sums / width - low / width * told.weights
                size = 1 + ROUNDING * size / width
        varying = np.flatnonzero(~idle & np.isfinite(sums) & np.isfinite(width))
        order = varying[np.argsort(sums[varying], kind="stable")]
        alike = np.diff(sums[order]) <= 1e-10 * n_rows * size[order[1:]]
        turns = np.flatnonzero(np.diff(alike, prepend=False, append=False)).reshape(-1, 2)
        runs = [np.sort(order[first : last + 1]) for first, last in turns]
        pairs = np.array(
            [(i, j) for run in runs for b, j in enumerate(run) for i in run[:b]], dtype=np.intp
        ).reshape(-1, 2)
        if len(pairs):
            away = self.source.reduce(Apart(pairs[:, 0], pairs[:, 1], low, width))
            most = 1.0 if self.standardize else told.size[pairs[:, 1]]
            idle[pairs[away <= 1e-12 * most, 1]] = True
        return idle


def in_parts(X: Any) -> bool:
    """Whether a table is a path, a source of blocks, or a collection of Dask.

    >>> in_parts("table.parquet"), in_parts([[1.0]])
    (True, False)
    """
    return isinstance(X, str | PathLike | Parts | TableInParts) or hasattr(X, "__dask_graph__")


def read_parts(name: str, X: Any, y: Any, target: str | None) -> TableInParts:
    """A table in blocks of rows, with what its target holds.

    Parameters
    ----------
    name : str
        Who reads it, for sentences.
    X : str, Path, Parts or Dask collection
    y : Dask collection, or path of a memory map
        Its target, where that is not a column of it.
    target : str or None
        The column that is the target.
    """
    # sources are known to what stands above the contract
    source: Parts = import_module("tamis.table.parts").as_parts(X, y, target)
    labels: Labels = source.reduce(TargetLabels(name), target_only=True)
    if labels.n_rows < 2:
        raise InvalidTable(f"{name} needs at least 2 rows, but {source} has {labels.n_rows}.")
    return TableInParts(source, labels, name)


def check_held(name: str, X: Any) -> None:
    """Refuse blocks of rows where a table is needed that is held at once; Dask's can become one."""
    if isinstance(X, str | PathLike | Parts):
        raise InvalidParameter(
            f"{name} needs a table that is held at once, not a path or a source of row blocks. "
            "Read the columns that are kept and give these, or some rows of the table, "
            "tamis.table.parts.sample(source)."
        )


def refuse_parts(name: str) -> None:
    """Say that something cannot learn from blocks of rows, and what to write instead."""
    raise InvalidParameter(
        f"{name} needs the whole table at once and cannot learn from blocks of rows. Give it a "
        f"sample, tamis.table.parts.sample(source, n_rows={SAMPLE}), or use a criterion that adds "
        "up over rows: FisherScore, Correlation, PValue, Scatter, MutualInformation, MRMR, CMIM, "
        "JMI, ..."
    )
