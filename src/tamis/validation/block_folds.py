"""Folds of a table in blocks of rows: those that scikit-learn makes of the whole table.

The fold of a row follows from its number and its class, never from the block that it came in.
Without a shuffle the rows of a class fall into the folds one run after the other, so that all there
is to know is where each run ends.
"""

from collections.abc import Iterable
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
    """Folds that are runs of rows of each class: ``ends[k, f]`` is where fold f + 1 begins."""

    ends: NDArray[np.int64]  # (classes, folds - 1)

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.ends.shape[1]) + 1

    def of(self, start: int, codes: Rows) -> Rows:
        """The folds of rows that follow each other."""
        rows = np.arange(start, start + len(codes))
        found = np.zeros(len(codes), dtype=np.intp)
        for ends in self.ends.T:
            found += rows >= ends[codes]
        return found


class Listed(NamedTuple):
    """Folds that are given, row by row."""

    folds: NDArray[np.integer[Any]]
    n_folds: int

    def of(self, start: int, codes: Rows) -> Rows:
        """The folds of rows that follow each other."""
        return self.folds[start : start + len(codes)].astype(np.intp)


def folds_of_blocks(name: str, table: BlockTable, cv: Any) -> FoldRule:
    """The folds that ``check_cv(cv, y, classifier=True)`` makes of the whole table.

    Parameters
    ----------
    name : str
        Who asks, for sentences.
    table : BlockTable
    cv : int, KFold, StratifiedKFold, or iterable of (train, test)
        Without a shuffle; of given folds each row is to be left out once, and to train otherwise.
    """
    cv = StratifiedKFold(cv) if is_int(cv) and cv >= 2 else cv
    if type(cv) is StratifiedKFold and not cv.shuffle:
        return _stratified(name, table, cv.n_splits)
    if type(cv) is KFold and not cv.shuffle:
        sizes = [len(test) for _, test in cv.split(np.empty(table.shape[0]))]
        return Runs(np.tile(np.cumsum(sizes)[:-1], (len(table.labels.values), 1)))
    if isinstance(cv, Iterable) and not isinstance(cv, str):
        return _given(name, table.shape[0], list(cv))
    raise InvalidParameter(
        f"{name} learns from blocks of rows with folds that a row's number and class tell: cv= an "
        "int from 2, KFold or StratifiedKFold without shuffle, or a list of (train, test), not "
        f"{cv!r}."
    )


class ClassRuns(RowStatistic):
    """How often each class stands in each block, and where first.

    Parameters
    ----------
    labels : Labels
    """

    def __init__(self, labels: Labels):
        self.labels = labels

    def empty(self) -> Any:
        return {}

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        assert block.y is not None
        codes, n_classes = self.labels.codes(block.y), len(self.labels.values)
        if len(codes):
            there, first = np.unique(codes, return_index=True)
            seen = np.full(n_classes, np.iinfo(np.int64).max)
            seen[there] = block.start + first
            state[block.start] = np.bincount(codes, minlength=n_classes), seen
        return state

    def merge(self, state: Any, other: Any) -> Any:
        return state | other


class NthOfClass(RowStatistic):
    """Numbers of the rows at which a class is there for the so-manieth time.

    Parameters
    ----------
    labels : Labels
    wanted : dict of int to list of (class, rank in the block, where)
        By first row of the block, what is looked for in it.
    """

    def __init__(self, labels: Labels, wanted: dict[int, list[tuple[int, int, tuple[int, int]]]]):
        self.labels, self.wanted = labels, wanted

    def empty(self) -> Any:
        return {}

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        assert block.y is not None
        if asked := self.wanted.get(block.start) if len(block.y) else None:
            codes = self.labels.codes(block.y)
            for k, rank, where in asked:
                state[where] = block.start + int(np.flatnonzero(codes == k)[rank])
        return state

    def merge(self, state: Any, other: Any) -> Any:
        return state | other


def _stratified(name: str, table: BlockTable, n_folds: int) -> Runs:
    """Folds of ``StratifiedKFold(n_folds)``, from two passes over the target."""
    labels = table.labels
    _check_members(name, labels.counts, n_folds)
    told = table.source.reduce(ClassRuns(labels), target_only=True)
    starts = np.sort(np.fromiter(told, dtype=np.int64))
    counts = np.array([told[start][0] for start in starts])
    first = np.min([told[start][1] for start in starts], axis=0)
    ranks = np.cumsum(_allocation(labels.counts, first, n_folds), axis=0)[:-1].T
    # rows of each class before each block; a rank past the last row is in none
    before = np.cumsum(counts, axis=0) - counts
    wanted: dict[int, list[tuple[int, int, tuple[int, int]]]] = {}
    for (k, fold), rank in np.ndenumerate(ranks):
        if rank < labels.counts[k]:
            block = int(np.searchsorted(before[:, k] + counts[:, k], rank, side="right"))
            place = k, int(rank - before[block, k]), (k, fold)
            wanted.setdefault(int(starts[block]), []).append(place)
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
    """Rows of each class in each fold, (folds, classes): dealt out round after round.

    Classes come in the order of their first rows, as in scikit-learn.
    """
    order = np.argsort(first)
    stop = np.cumsum(counts[order])
    fold = np.arange(n_folds)[:, None]
    # the numbers below a limit that leave the remainder f
    dealt = (stop - fold + n_folds - 1) // n_folds
    found = np.empty_like(dealt)
    found[:, order] = np.diff(dealt, axis=1, prepend=0)
    return found


def _given(name: str, n_rows: int, splits: list[Any]) -> Listed:
    """Folds that are given; each row is in one of the tests, and trains in all other folds."""
    folds = np.full(n_rows, -1, dtype=np.int16)
    for fold, (train, test) in enumerate(splits):
        train, test = np.asarray(train), np.asarray(test)
        inside = all(
            part.dtype.kind in "iu" and part.min(initial=0) >= 0 and part.max(initial=0) < n_rows
            for part in (train, test)
        )
        once = inside and (folds[test] == -1).all() and len(np.unique(test)) == len(test)
        if once:
            folds[test] = fold
        rest = np.ones(n_rows, dtype=bool)
        rest[test if once else []] = False
        if once:
            rest[train] = ~rest[train]  # those that train are the rest, so that none is left
        if not once or len(np.unique(train)) != len(train) or rest.any():
            raise InvalidParameter(
                f"{name} learns from blocks of rows with folds in which each of the {n_rows} rows "
                f"is left out once and trains in all others, which fold {fold} of cv= is not. Give "
                "such folds, or an int."
            )
    if not splits or (folds < 0).any():
        raise InvalidParameter(
            f"{name} learns from blocks of rows with folds that leave each of the {n_rows} rows "
            f"out, but row {int((folds < 0).argmax())} is in no test part of cv=. Give such folds, "
            "or an int."
        )
    return Listed(folds, len(splits))
