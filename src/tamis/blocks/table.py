"""A table in row blocks as criteria receive it, and checks for methods that need a full table."""

from hashlib import sha256
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask, Subset, column_means
from tamis._memory import free_memory
from tamis.blocks.column_summary import Apart, Survey, Surveyed
from tamis.blocks.labels import Labels
from tamis.blocks.source import BlockSource, RowStatistic, SampledRows, Together
from tamis.exceptions import InvalidParameter, InvalidTable, NotEnoughMemory

#: Number of rows at the start of the table whose mean is subtracted from all blocks before they are
#: squared. With this number, the mean that remains is a fraction of the standard deviation.
HEAD = 1000
#: Duplicate columns are found by weighted sums, with a tolerance of 1e-10 per row. After scaling,
#: the tolerance is increased by this number times the ratio of the largest value to the range. This
#: is far above the rounding error of such sums.
ROUNDING = 1e-5
#: Number of rows of a sample for criteria that cannot learn from row blocks. With this number, most
#: criteria take minutes, and their scores are stable to two digits.
SAMPLE = 20_000
#: Approximate number of copies of the columns in a method that needs all rows (as read, as a single
#: table, and standardised), and the share of the free memory that these copies may use.
HELD_COPIES, HELD_SHARE = 3, 0.5


class BlockTable:
    """A table in row blocks as criteria receive it: its source, and the labels of its target.

    Parameters
    ----------
    source : BlockSource
        The table.
    labels : Labels
        Distinct values of the target.
    name : str
        Name of the caller, for error messages.
    standardize : bool, default=False
        Whether columns are standardised to mean 0 and standard deviation 1.
    """

    def __init__(
        self, source: BlockSource, labels: Labels, name: str, *, standardize: bool = False
    ):
        self.source, self.labels, self.name = source, labels, name
        self.standardize = standardize
        self.shape = labels.n_rows, source.n_columns
        self._survey: Surveyed | None = None

    @property
    def names(self) -> list[str] | None:
        """Names of the columns."""
        return self.source.names

    def scaled(self, name: str, standardize: bool) -> "BlockTable":
        """Return the same table for another caller, with or without standardisation."""
        return BlockTable(self.source, self.labels, name, standardize=standardize)

    def narrowed(self, columns: Subset) -> "BlockTable":
        """Return a table with the same rows and only the given columns."""
        return BlockTable(self.source.narrowed(columns), self.labels, self.name)

    def held(self, name: str) -> tuple[Array, NDArray[Any]]:
        """Return all rows and their target as arrays. Refuse a table that does not fit."""
        n_rows, n_columns = self.shape
        free, needed = free_memory(), HELD_COPIES * 8.0 * n_rows * n_columns
        if free is not None and needed > HELD_SHARE * free:
            fit = int(HELD_SHARE * free / (HELD_COPIES * 8 * n_columns))
            raise NotEnoughMemory(
                f"{name} needs its {n_columns} columns of all {n_rows} rows in memory, about "
                f"{needed / 2**30:.3g} GiB, but {free / 2**30:.3g} GiB are free. Select fewer "
                "columns first, use a criterion that learns from row blocks, or give a "
                f"sample, tamis.blocks.sample(source, n_rows={min(fit, SAMPLE)})."
            )
        X, y = self.source.reduce(SampledRows(np.arange(n_rows)))
        return np.asfortranarray(X), y

    def fingerprint(self) -> str:
        """Return a short hash of the data."""
        facts = (self.shape, self.names, self.labels.values.tolist(), self.labels.counts.tolist())
        return sha256(f"{self.source.identity()} {facts}".encode()).hexdigest()[:16]

    def reduce(self, statistic: RowStatistic, *, takes_missing: bool = False) -> Any:
        """Compute a statistic of all rows. The first pass also computes the column summary."""
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
        """Summary of the columns from the first pass."""
        assert self._survey is not None
        return self._survey

    def shift(self) -> Array:
        """Return a value near the mean of each column, the same for every block.

        It is subtracted before columns are squared, so that a large mean does not reduce the
        precision.
        """
        means = column_means(self.source.first_rows(HEAD).astype(float))
        return np.nan_to_num(means, nan=0.0, posinf=0.0, neginf=0.0)

    def idle(self) -> Mask:
        """Return a mask of the columns that are constant or duplicates of earlier columns."""
        facts, n_rows = self.survey, self.shape[0]
        idle = facts.constant(self.standardize)
        sums, size, low, width = facts.sums, facts.size, np.zeros(len(idle)), np.ones(len(idle))
        # equal after scaling to the same range means equal after standardising
        if self.standardize:
            low, width = facts.low, np.where(facts.width > 0, facts.width, 1.0)
            with np.errstate(over="ignore", invalid="ignore"):
                sums = sums / width - low / width * facts.weights
                size = 1 + ROUNDING * size / width
        varying = np.flatnonzero(~idle & np.isfinite(sums) & np.isfinite(width))
        order = varying[np.argsort(sums[varying], kind="stable")]
        alike = np.diff(sums[order]) <= 1e-10 * n_rows * size[order[1:]]
        turns = np.flatnonzero(np.diff(alike, prepend=False, append=False)).reshape(-1, 2)
        runs = [np.sort(order[first : last + 1]) for first, last in turns]
        # further passes are needed only for columns with equal sums that are not duplicates
        while runs:
            first = np.concatenate([np.full(len(run) - 1, run[0]) for run in runs])
            second = np.concatenate([run[1:] for run in runs])
            away = self.source.reduce(Apart(first, second, low, width))
            most = 1.0 if self.standardize else facts.size[second]
            idle[second[away <= 1e-12 * most]] = True
            left = [run[1:][~idle[run[1:]]] for run in runs]
            runs = [run for run in left if len(run) > 1]
        return idle


def is_in_blocks(X: Any) -> bool:
    """Return whether a table is a path, a source of row blocks, or a Dask collection.

    >>> is_in_blocks("table.parquet"), is_in_blocks([[1.0]])
    (True, False)
    """
    return isinstance(X, str | PathLike | BlockSource | BlockTable) or hasattr(X, "__dask_graph__")


def check_held(name: str, X: Any) -> None:
    """Refuse a path or a source if a table in memory is needed.

    Dask collections are accepted, because they can be converted to a table.
    """
    if isinstance(X, str | PathLike | BlockSource):
        raise InvalidParameter(
            f"{name} needs a table in memory, not a path or a source of row blocks. Read the "
            "selected columns and pass them, or pass some rows of the table, "
            "tamis.blocks.sample(source)."
        )


def refuse_metadata(name: str, params: dict[str, Any]) -> None:
    """Refuse per-row metadata, which row blocks do not support. Remove entries that are None."""
    if given := sorted(key for key, value in params.items() if value is not None):
        raise InvalidParameter(
            f"{name} takes no {', '.join(given)} with row blocks. Leave it out, or pass a table in "
            "memory."
        )
    params.clear()


def refuse_blocks(name: str) -> None:
    """Raise the error for a method that cannot learn from row blocks."""
    raise InvalidParameter(
        f"{name} needs the full table in memory and cannot learn from row blocks. Give it a "
        f"sample, tamis.blocks.sample(source, n_rows={SAMPLE}), or use a criterion that adds "
        "up over rows: FisherScore, Correlation, PValue, Scatter, MutualInformation, MRMR, CMIM, "
        "JMI, CrossValidated(LinearDiscriminantAnalysis()), ..."
    )
