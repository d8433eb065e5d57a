"""A table in blocks of rows at the door: what is known of it before, and after, the first pass."""

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

#: First rows whose mean all blocks are shifted by before they are squared: enough that what is left
#: of a large mean is a fraction of the spread.
HEAD = 1000
#: How far weighted sums of ranges may be apart by rounding, where values are large beside them, in
#: units of what they may be apart in any case (1e-10): far above the precision of numbers.
ROUNDING = 1e-5
#: Rows of a sample that is offered where a criterion cannot learn from blocks: what most criteria
#: deal with in minutes, and more than scores need to settle in two digits.
SAMPLE = 20_000
#: Copies of the columns that whoever needs them at once holds, about: as read, as one table, and
#: standardised; and the share of the free memory that they may take.
HELD_COPIES, HELD_SHARE = 3, 0.5


class BlockTable:
    """A table in blocks of rows as criteria get it: its source, and what is known of its target.

    Parameters
    ----------
    source : BlockSource
    labels : Labels
        What is known of the target.
    name : str
        Who reads it, for sentences.
    standardize : bool, default=False
        Whether columns are to be taken with mean 0 and standard deviation 1.
    """

    def __init__(
        self,
        source: BlockSource,
        labels: Labels,
        name: str,
        *,
        standardize: bool = False,
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
        """The same table, to be taken as it is or standardised, for another reader."""
        return BlockTable(self.source, self.labels, name, standardize=standardize)

    def narrowed(self, columns: Subset) -> "BlockTable":
        """The same rows with some of the columns."""
        return BlockTable(self.source.narrowed(columns), self.labels, self.name)

    def held(self, name: str) -> tuple[Array, NDArray[Any]]:
        """All rows at once, with their target, for somebody who needs them so."""
        n_rows, n_columns = self.shape
        free, needed = free_memory(), HELD_COPIES * 8.0 * n_rows * n_columns
        if free is not None and needed > HELD_SHARE * free:
            fit = int(HELD_SHARE * free / (HELD_COPIES * 8 * n_columns))
            raise NotEnoughMemory(
                f"{name} needs its {n_columns} columns of all {n_rows} rows at once, about "
                f"{needed / 2**30:.3g} GiB, but {free / 2**30:.3g} GiB are free. Keep fewer "
                "columns first, use a criterion that learns from blocks of rows, or give a "
                f"sample, tamis.blocks.sample(source, n_rows={min(fit, SAMPLE)})."
            )
        X, y = self.source.reduce(SampledRows(np.arange(n_rows)))
        return np.asfortranarray(X), y

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
        while runs:  # one pass, but for columns of equal sums that are no copies
            first = np.concatenate([np.full(len(run) - 1, run[0]) for run in runs])
            second = np.concatenate([run[1:] for run in runs])
            away = self.source.reduce(Apart(first, second, low, width))
            most = 1.0 if self.standardize else told.size[second]
            idle[second[away <= 1e-12 * most]] = True
            left = [run[1:][~idle[run[1:]]] for run in runs]
            runs = [run for run in left if len(run) > 1]
        return idle


def is_in_blocks(X: Any) -> bool:
    """Whether a table is a path, a source of blocks, or a collection of Dask.

    >>> is_in_blocks("table.parquet"), is_in_blocks([[1.0]])
    (True, False)
    """
    return isinstance(X, str | PathLike | BlockSource | BlockTable) or hasattr(X, "__dask_graph__")


def check_held(name: str, X: Any) -> None:
    """Refuse blocks of rows where a table is needed that is held at once; Dask's can become one."""
    if isinstance(X, str | PathLike | BlockSource):
        raise InvalidParameter(
            f"{name} needs a table that is held at once, not a path or a source of row blocks. "
            "Read the columns that are kept and give these, or some rows of the table, "
            "tamis.blocks.sample(source)."
        )


def refuse_metadata(name: str, params: dict[str, Any]) -> None:
    """Refuse what stands beside the rows, of which blocks hold none; what is None is dropped."""
    if given := sorted(key for key, value in params.items() if value is not None):
        raise InvalidParameter(
            f"{name} takes no {', '.join(given)} where rows come in blocks. Leave it out, or give "
            "a table that is held at once."
        )
    params.clear()


def refuse_blocks(name: str) -> None:
    """Say that something cannot learn from blocks of rows, and what to write instead."""
    raise InvalidParameter(
        f"{name} needs the whole table at once and cannot learn from blocks of rows. Give it a "
        f"sample, tamis.blocks.sample(source, n_rows={SAMPLE}), or use a criterion that adds "
        "up over rows: FisherScore, Correlation, PValue, Scatter, MutualInformation, MRMR, CMIM, "
        "JMI, CrossValidated(LinearDiscriminantAnalysis()), ..."
    )
