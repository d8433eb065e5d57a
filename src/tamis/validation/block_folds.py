"""Folds of a table in row blocks. They are the same as scikit-learn's folds of the full table.

The fold of a row depends on its row number and its class, not on its block. Without shuffling, the
rows of a class that are in the same fold form a run of consecutive rows of that class. So it
suffices to find the end of each run.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

from tamis._arrays import is_int
from tamis.blocks.labels import Labels
from tamis.blocks.moments import FoldRule
from tamis.blocks.source import RowBlock, RowStatistic
from tamis.blocks.table import BlockTable
from tamis.exceptions import DegenerateData, InvalidParameter, InvalidTarget
from tamis.validation import Rows


class Runs(NamedTuple):
    """Folds that consist of consecutive rows of each class, as without shuffling.

    ``ends[k, f]`` is the first row of class k in fold f + 1.
    """

    ends: NDArray[np.int64]  # (classes, folds - 1)

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.ends.shape[1]) + 1

    def of(self, start: int, codes: Rows) -> Rows:
        """Return the folds of the rows from row ``start`` on. ``codes`` holds their classes."""
        rows = np.arange(start, start + len(codes))
        found = np.zeros(len(codes), dtype=np.intp)
        for ends in self.ends.T:
            found += rows >= ends[codes]
        return found


class FoldNumbers(NamedTuple):
    """Folds that are given as a fold number for each row."""

    folds: NDArray[np.integer[Any]]
    n_folds: int

    def of(self, start: int, codes: Rows) -> Rows:
        """Return the folds of the rows from row ``start`` on, as many as ``codes`` has."""
        return self.folds[start : start + len(codes)].astype(np.intp)


def folds_of_blocks(name: str, table: BlockTable, cv: Any) -> FoldRule:
    """Return the folds that ``check_cv(cv, y, classifier=True)`` makes of the full table.

    Parameters
    ----------
    name : str
        Name of the caller, for error messages.
    table : BlockTable
    cv : int, KFold, StratifiedKFold, or iterable of (train, test)
        Splitters must not shuffle. In an iterable, each row must be in exactly one test fold, and
        in the training rows of all other folds.
    """
    cv = StratifiedKFold(cv) if is_int(cv) and cv >= 2 else cv
    if type(cv) is StratifiedKFold and not cv.shuffle:
        return _stratified(name, table, cv.n_splits)
    if type(cv) is KFold and not cv.shuffle:
        sizes = [len(test) for _, test in cv.split(np.empty(table.shape[0]))]
        return Runs(np.tile(np.cumsum(sizes)[:-1], (len(table.labels.values), 1)))
    if isinstance(cv, Iterable) and not isinstance(cv, str):
        return _number_folds(name, table.shape[0], list(cv))
    raise InvalidParameter(
        f"{name} needs folds without shuffling for row blocks: cv= an int from 2, KFold or "
        f"StratifiedKFold without shuffle, or a list of (train, test), not {cv!r}."
    )


@dataclass(eq=False, repr=False)
class ClassRuns(RowStatistic):
    """Number of rows of each class in each block, and the first row of each class in the block.

    Parameters
    ----------
    labels : Labels
    """

    labels: Labels

    def empty(self) -> Any:
        return {}

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        codes, n_classes = self.labels.codes(block.y), len(self.labels.values)
        if len(codes):
            there, first = np.unique(codes, return_index=True)
            seen = np.full(n_classes, np.iinfo(np.int64).max)
            seen[there] = block.start + first
            state[block.start] = np.bincount(codes, minlength=n_classes), seen
        return state


@dataclass(eq=False, repr=False)
class NthOfClass(RowStatistic):
    """Row numbers of the n-th row of a class, for several classes and values of n.

    Parameters
    ----------
    labels : Labels
    wanted : dict of int to list of (class, rank in the block, key of the result)
        The rows to find in each block. The key is the number of the first row of the block.
    """

    labels: Labels
    wanted: dict[int, list[tuple[int, int, tuple[int, int]]]]

    def empty(self) -> Any:
        return {}

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        if wanted := self.wanted.get(block.start) if len(block.y) else None:
            codes = self.labels.codes(block.y)
            for k, rank, where in wanted:
                state[where] = block.start + int(np.flatnonzero(codes == k)[rank])
        return state


def _stratified(name: str, table: BlockTable, n_folds: int) -> Runs:
    """Return the folds of ``StratifiedKFold(n_folds)``, from two passes over the target."""
    labels = table.labels
    _check_members(name, labels.counts, n_folds)
    runs = table.source.reduce(ClassRuns(labels), target_only=True)
    starts = np.sort(np.fromiter(runs, dtype=np.int64))
    counts = np.array([runs[start][0] for start in starts])
    first = np.min([runs[start][1] for start in starts], axis=0)
    ranks = np.cumsum(_allocation(labels.counts, first, n_folds), axis=0)[:-1].T
    # number of rows of each class before each block. A rank beyond the last row is in no block.
    before = np.cumsum(counts, axis=0) - counts
    wanted: dict[int, list[tuple[int, int, tuple[int, int]]]] = {}
    for (k, fold), rank in np.ndenumerate(ranks):
        if rank < labels.counts[k]:
            block = int(np.searchsorted(before[:, k] + counts[:, k], rank, side="right"))
            sought = k, int(rank - before[block, k]), (k, fold)
            wanted.setdefault(int(starts[block]), []).append(sought)
    found = table.source.reduce(NthOfClass(labels, wanted), target_only=True)
    ends = np.full(ranks.shape, labels.n_rows, dtype=np.int64)
    for where, row in found.items():
        ends[where] = row
    return Runs(ends)


def _check_members(name: str, counts: NDArray[np.int64], n_folds: int) -> None:
    if counts.max() < n_folds:
        raise InvalidTarget(
            f"{name} makes {n_folds} folds, but no class has more than {counts.max()} rows. Write "
            f"cv={max(2, int(counts.max()))}, or less."
        )
    if counts.min() < n_folds:
        warn(
            f"Some folds are without a class. The least populated class in y has only "
            f"{counts.min()} members, which is less than n_splits={n_folds}.",
            DegenerateData,
            stacklevel=3,
        )


def _allocation(
    counts: NDArray[np.int64], first: NDArray[np.int64], n_folds: int
) -> NDArray[np.int64]:
    """Return the number of rows of each class in each fold, of shape (folds, classes).

    If the rows are sorted by class, row i is in fold i modulo ``n_folds``. Classes are sorted by
    their first row, as in scikit-learn.
    """
    order = np.argsort(first)
    stop = np.cumsum(counts[order])
    fold = np.arange(n_folds)[:, None]
    # number of rows i before the end of each class with i modulo n_folds equal to the fold
    below = (stop - fold + n_folds - 1) // n_folds
    found = np.empty_like(below)
    found[:, order] = np.diff(below, axis=1, prepend=0)
    return found


def _number_folds(name: str, n_rows: int, splits: list[Any]) -> FoldNumbers:
    """Return the fold number of each row, from a list of (train, test)."""
    folds, rows = np.full(n_rows, -1, dtype=np.int16), np.arange(n_rows)
    for fold, (train, test) in enumerate(splits):
        train, test = np.asarray(train), np.asarray(test)
        whole = all(part.dtype.kind in "iu" for part in (train, test)) and np.array_equal(
            np.sort(np.concatenate([train, test])), rows
        )
        if not whole or (folds[test] != -1).any():
            raise InvalidParameter(
                f"{name} needs each of the {n_rows} rows in one test fold and in the training rows "
                f"of all other folds, but fold {fold} of cv= differs. Give such folds, or an int."
            )
        folds[test] = fold
    if not splits or (folds < 0).any():
        raise InvalidParameter(
            f"{name} needs each of the {n_rows} rows in a test fold, but row "
            f"{int((folds < 0).argmax())} is in no test fold of cv=. Give such folds, or an int."
        )
    return FoldNumbers(folds, len(splits))
