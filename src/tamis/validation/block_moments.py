"""Moments of training folds, added up over blocks of rows."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from tamis._arrays import Array, Mask
from tamis.blocks.block_moments import AT_ONCE, SMALL, mirrored, summed
from tamis.blocks.labels import Labels
from tamis.blocks.source import RowBlock, RowStatistic
from tamis.blocks.table import BlockTable
from tamis.validation.block_folds import FoldRule

#: A spread inside classes below this share of the largest value is rounding, as in
#: :class:`tamis.validation.lda.LDAFolds`.
FLAT = 1e-7


class FoldState(NamedTuple):
    """What blocks of rows add up to, by the fold that leaves them out."""

    counts: NDArray[np.int64]  # (folds, classes)
    sums: Array  # (folds, classes, columns)
    products: Array  # (folds, columns, columns), the upper halves


class FoldSums(RowStatistic):
    """Counts and sums of shifted columns by fold and class, products by fold.

    Parameters
    ----------
    shift : array of shape (n_columns,)
    labels : Labels
        The classes.
    rule : FoldRule
    """

    def __init__(self, shift: Array, labels: Labels, rule: FoldRule):
        self.shift, self.labels, self.rule = shift, labels, rule
        self.is_small = rule.n_folds * len(shift) ** 2 <= SMALL

    def empty(self) -> Any:
        f, c, d = self.rule.n_folds, len(self.labels.values), len(self.shift)
        # each matrix column-major, as it is added to in place
        products = np.zeros((f, d, d)).transpose(0, 2, 1)
        return FoldState(np.zeros((f, c), dtype=np.int64), np.zeros((f, c, d)), products)

    def learn_part(self, state: Any, block: RowBlock) -> Any:
        assert block.y is not None
        codes = self.labels.codes(block.y)
        for fold, rows in rows_by_fold(self.rule.of(block.start, codes)):
            state.counts[fold] += np.bincount(codes[rows], minlength=state.counts.shape[1])
            for start in range(0, len(rows), AT_ONCE):
                some = rows[start : start + AT_ONCE]
                with np.errstate(over="ignore", invalid="ignore"):  # refused once ranges are known
                    self._add(state, fold, block.X[_span(some)], codes[some])
        return state

    def _add(self, state: Any, fold: int, X: NDArray[Any], codes: NDArray[np.intp]) -> None:
        Z = np.subtract(X, self.shift, order="F", dtype=float)
        member = (np.arange(state.counts.shape[1])[:, None] == codes).astype(float)
        state.sums[fold] += member @ Z
        dsyrk(1.0, Z, 1.0, state.products[fold], trans=1, overwrite_c=1)

    def merge(self, state: Any, other: Any) -> Any:
        return FoldState(*(one + two for one, two in zip(state, other, strict=True)))


def rows_by_fold(folds: NDArray[np.intp]) -> list[tuple[int, NDArray[np.intp]]]:
    """The rows of each fold that is there, rising."""
    return [(int(fold), np.flatnonzero(folds == fold)) for fold in np.unique(folds)]


def _span(rows: NDArray[np.intp]) -> Any:
    """The rows as a slice where they follow each other, which copies nothing."""
    first, last = int(rows[0]), int(rows[-1]) + 1
    return slice(first, last) if last - first == len(rows) else rows


class SummedFolds:
    """Means, and covariances within classes, of every training fold of a table in blocks.

    Attributes
    ----------
    sizes : array of int
        Rows that each fold leaves out.
    counts : array of shape (n_folds, n_classes)
        Rows of each class that each fold leaves out.
    trained : array of shape (n_folds, n_classes)
        Rows of each class that it trains on.
    means : array of shape (n_folds, n_classes, n_columns)
        Of the training rows, shifted; 0 where a class is missing.
    within : array of shape (n_folds, n_columns, n_columns)
    constant, flat : array of bool
        Columns that never vary, (n_columns,), and that do not inside the classes of a fold,
        (n_folds, n_columns).
    shift, exponent : array
        How the columns were taken.
    size : array of float
        The largest absolute value of each column as it was taken.
    """

    def __init__(self, table: BlockTable, rule: FoldRule):
        make = partial(FoldSums, labels=table.labels, rule=rule)
        (counts, sums, products), self.shift, told, self.exponent = summed(
            table, make, each_alone=True
        )
        self.counts = counts
        self.sizes = counts.sum(axis=1)
        self.trained: NDArray[np.int64] = counts.sum(axis=0) - counts
        n_train = self.trained.sum(axis=1)
        total = sums.sum(axis=0) - sums
        self.means: Array = total / np.maximum(self.trained, 1)[..., None]
        everything = products.sum(axis=0)
        self.within: Array = np.empty(products.shape)
        for fold, (own, m, n) in enumerate(zip(products, self.means, n_train, strict=True)):
            shares = self.trained[fold] / n
            self.within[fold] = mirrored(everything - own) / n - (m.T * shares) @ m
        self.constant: Mask = told.constant(table.standardize)
        self.size = np.maximum(told.high - self.shift, self.shift - told.low)
        spread = np.sqrt(np.maximum(np.diagonal(self.within, axis1=1, axis2=2), 0.0))
        self.flat: Mask = spread <= FLAT * self.size
