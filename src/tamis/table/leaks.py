"""Cross-validated prediction of the target by single columns; duplicate columns and rows."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tamis._arrays import Array, class_codes
from tamis.table.kinds import FEW_ROWS, OF_NUMPY, TableProfile, blocks, holds_numbers, numbers

#: A column that avoids at least this share of the baseline's errors on its own is reported as a
#: possible leak. The best columns of published tables avoid less: at most 0.94 (iris).
LEAKS = 0.95
#: A strong column may be a leak, and is reported. The strength of a column is the share of the
#: baseline's errors that it avoids, or the square of its rank-based measure if that is greater. A
#: column is reported if its strength is at least STRONG, and at least AHEAD times the strength of
#: any other column. Many tables have several strong columns that are not leaks.
STRONG, AHEAD = 0.5, 2.0
#: Limits for the numbers of rows and cells that are used. They are large enough to distinguish a
#: share of 0.95 from 0.9, and small enough to examine 10^5 columns in seconds.
MOST_ROWS, FEWEST_ROWS, MOST_CELLS = 2000, 300, 30_000_000
N_FOLDS = 5
#: Number of bins for a numeric column. Bin edges at the quantiles of the class sizes are added.
N_BINS = 10
#: Maximum number of levels that have their own bin, and maximum number of classes for which
#: prediction is measured.
MOST_LEVELS, MOST_CLASSES = 60, 60
#: Minimum number of rows for which a one-to-one code of the target is reported. With this number, a
#: column of two values agrees with two classes by chance only once in 2^29 columns.
CODED_ROWS = 30
#: Duplicate rows are reported if their share of all rows is at least FEW, and if at least the share
#: SAME of the rows with equal features also have equal targets. Copied rows always have them.
FEW, SAME = 0.05, 0.95
#: Duplicate rows are first looked for in this number of columns, and recoded columns in this number
#: of rows. More columns or rows are compared only if the first ones agree.
FIRST = 50


class Strength(NamedTuple):
    """Cross-validated strength of single columns.

    Attributes
    ----------
    avoided : array of float
        Share of the baseline's errors that the column avoids. For a numeric target, the share of
        the variance of its ranks.
    alone : array of float
        Rank-based measure: 0 is chance and 1 is perfect. For classes, it is ``2 AUC - 1``, averaged
        over each class against the others. It does not depend on the sizes of the classes. For a
        numeric target, it is the correlation of the prediction with the ranks of the target.
    """

    avoided: Array
    alone: Array


class Foresight:
    """Cross-validated prediction of a target from a single binned column at a time."""

    def __init__(self, y: NDArray[Any], task: str, n_columns: int):
        generator = np.random.default_rng(0)
        n_rows = min(len(y), MOST_ROWS, max(FEWEST_ROWS, MOST_CELLS // max(n_columns, 1)))
        self.rows = np.sort(generator.permutation(len(y))[:n_rows])
        self.folds = generator.permutation(np.arange(n_rows) % N_FOLDS)
        self.classes = task == "classification"
        codes = class_codes(y)[1]
        self.codes = codes[self.rows]
        self.n_classes = int(codes.max()) + 1
        # ranks, so that extreme values of y have no influence
        self.order = np.argsort(np.argsort(self.codes, kind="stable")) / n_rows
        levels = {i / N_BINS for i in range(1, N_BINS)}
        if self.classes and self.n_classes <= N_BINS:
            shares = np.bincount(self.codes, minlength=self.n_classes) / n_rows
            levels |= {*shares.tolist(), *(1 - shares).tolist()}
        self.quantiles = np.array(sorted(q for q in levels if 0 < q < 1))

    @property
    def looks(self) -> bool:
        """Whether columns are tested: only for a numeric target, or one with few classes."""
        return not self.classes or 2 <= self.n_classes <= MOST_CLASSES

    def of_numbers(self, X: Array) -> Strength:
        """Return the strength of each numeric column."""
        X = X[self.rows]
        missing = np.isnan(X)
        rising = np.sort(np.where(missing, np.inf, X), axis=0)
        edges = rising[(self.quantiles * len(X)).astype(int) - 1]
        cells = np.zeros(X.shape, dtype=np.int64)
        with np.errstate(invalid="ignore"):
            for edge in edges:
                cells += edge < X
        cells[missing] = len(edges) + 1
        return self._skill(cells, len(edges) + 2)

    def of_codes(self, codes: NDArray[np.int64]) -> Strength:
        """Return the strength of columns of category codes. The rarest categories are pooled."""
        cells = np.minimum(codes[self.rows], MOST_LEVELS)
        return self._skill(cells, int(cells.max()) + 1)

    def _skill(self, cells: NDArray[np.int64], n_cells: int) -> Strength:
        d = cells.shape[1]
        where = (self.folds[:, None] * d + np.arange(d)) * n_cells + cells
        if not self.classes:
            return self._order_explained(where.ravel(), d, n_cells)
        shape = (self.n_classes, N_FOLDS, d, n_cells)
        index = where + self.codes[:, None] * (N_FOLDS * d * n_cells)
        held_out = np.bincount(index.ravel(), minlength=int(np.prod(shape))).reshape(shape)
        # in ties, and in cells without training rows, the most frequent class is predicted
        prior = np.bincount(self.codes, minlength=self.n_classes)
        best, right = np.full(shape[1:], -1.0), np.zeros(shape[1:], dtype=np.int64)
        for own, edge in zip(held_out, prior / (2 * prior.sum()), strict=True):
            votes = own.sum(axis=0) - own + edge
            ahead = votes > best
            best[ahead], right[ahead] = votes[ahead], own[ahead]
        errors = len(self.codes) - right.sum(axis=(0, 2))
        avoided = 1 - errors / max(len(self.codes) - prior.max(), 1)
        return Strength(avoided, 2 * _held_out_auc(held_out, prior / prior.sum()) - 1)

    def _order_explained(self, where: NDArray[np.int64], d: int, n_cells: int) -> Strength:
        """Return the strength of each column as a predictor of y's ranks by its cell means."""
        shape = (N_FOLDS, d, n_cells)
        y = np.repeat(self.order - self.order.mean(), d)
        size = int(np.prod(shape))
        count, total, squares = (
            np.bincount(where, weights=w, minlength=size).reshape(shape)
            for w in (np.ones(len(y)), y, y * y)
        )
        n_train, sum_train = count.sum(axis=0) - count, total.sum(axis=0) - total
        mean = np.divide(sum_train, n_train, where=n_train > 0, out=np.zeros(shape))
        left = squares - 2 * mean * total + mean**2 * count
        variance = max(squares[:, 0].sum(), 1e-300)
        predicted = (mean**2 * count).sum(axis=(0, 2))
        covariance = (mean * total).sum(axis=(0, 2))
        alone = covariance / np.sqrt(np.maximum(predicted * variance, 1e-300))
        return Strength(1 - left.sum(axis=(0, 2)) / variance, alone)


def _held_out_auc(held_out: NDArray[np.int64], prior: Array) -> Array:
    """Return the held-out AUC of each column, averaged over classes.

    ``held_out`` counts rows by class, fold, column and cell. A cell is scored by the share of the
    class among its training rows. Only rows of the same fold are compared.
    """
    count = held_out.sum(axis=0)
    n_train = count.sum(axis=0) - count + 1
    found = []
    for own, edge in zip(held_out, prior, strict=True):
        score, others = (own.sum(axis=0) - own + edge) / n_train, count - own
        wins = np.zeros(count.shape[1])
        for way in (1, -1):  # tied cells are counted once in either order
            order = np.argsort(score[..., ::way], axis=-1, kind="stable")
            inside, outside = (
                np.take_along_axis(each[..., ::way], order, axis=-1) for each in (own, others)
            )
            wins += (inside * (outside.cumsum(axis=-1) - outside / 2)).sum(axis=(0, 2)) / 2
        pairs = (own.sum(axis=-1) * others.sum(axis=-1)).sum(axis=0)
        found.append(np.divide(wins, pairs, where=pairs > 0, out=np.full(len(wins), 0.5)))
    return np.asarray(np.mean(found, axis=0))


def foresights(frame: pl.DataFrame, seen: TableProfile, y: NDArray[Any], task: str) -> Array:
    """Return the strength of each column in two rows; see :class:`Strength`.

    Columns that are not measured have NaN.
    """
    power = np.full((2, frame.width), np.nan)
    target = Foresight(y, task, frame.width)
    if not target.looks:
        return power
    for block in blocks(frame.height, _numeric(frame, seen)):
        power[:, block] = target.of_numbers(numbers(frame, block))
    n_counts = N_FOLDS * MOST_LEVELS * (target.n_classes if target.classes else 1)
    for block in blocks(max(frame.height, n_counts), seen.of_kind("category", "boolean")):
        codes = np.column_stack([level_codes(frame.to_series(j)) for j in block])
        power[:, block] = target.of_codes(codes)
    for j in seen.of_kind("date"):
        dates = frame.to_series(j).to_physical()
        power[:, [j]] = target.of_numbers(numbers(dates.to_frame(), [0]))
    return power


def level_codes(column: pl.Series) -> NDArray[np.int64]:
    """Number the levels from 0, with the most frequent first. Missing values form a level."""
    if len(column) <= FEW_ROWS:
        texts = column.cast(pl.String).to_list()
        n_rows = Counter(texts)
        levels = sorted(n_rows, key=lambda text: (-n_rows[text], text is not None, text or ""))
        code_of = {text: code for code, text in enumerate(levels)}
        return np.array([code_of[text] for text in texts], dtype=np.int64)
    ranks = column.cast(pl.String).rank("dense").fill_null(0).to_numpy().astype(np.int64)
    counts = np.bincount(ranks)
    return np.argsort(np.argsort(-counts, kind="stable"))[ranks]


def is_code(column: pl.Series, y: NDArray[Any], task: str) -> bool:
    """Return whether a column is an exact one-to-one code of the target.

    For classes, each value corresponds to a single class. For a numeric target, the order of the
    rows is the same or reversed.
    """
    if column.null_count() or len(y) < CODED_ROWS:
        return False
    codes, classes = (class_codes(values)[1] for values in (_plain(column), y))
    n_values, n_classes = int(codes.max()) + 1, int(classes.max()) + 1
    if n_values != n_classes:
        return False
    if task == "classification":
        return len(np.unique(codes * n_classes + classes)) == n_classes
    return n_classes > 2 and bool(
        (codes == classes).all() or (codes == n_values - 1 - classes).all()
    )


def _plain(column: pl.Series) -> NDArray[Any]:
    if column.dtype.is_temporal():
        column = column.to_physical()
    elif column.dtype.is_numeric() and column.dtype not in OF_NUMPY:
        column = column.cast(pl.Float64)
    return (column if column.dtype.is_numeric() else column.cast(pl.String)).to_numpy()


def _numeric(frame: pl.DataFrame, seen: TableProfile) -> list[int]:
    """Return the indices of numeric columns, including those that look like an identifier."""
    asked = np.isin(seen.kind, ("number", "identifier")) & holds_numbers(frame)
    return np.flatnonzero(asked).tolist()


def copies(frame: pl.DataFrame, seen: TableProfile) -> dict[int, int]:
    """Return, for each duplicate column, the index of the first column that equals it.

    Categories are also duplicates of columns that are a one-to-one code of them.
    """
    alike: dict[object, list[int]] = {}
    for block in blocks(frame.height, _numeric(frame, seen)):
        X = numbers(frame, block) + 0.0  # -0.0 becomes 0.0
        X[np.isnan(X)] = np.nan  # all NaN get the same bits
        for j, column in zip(block, X.T, strict=True):
            alike.setdefault(hash(column.tobytes()), []).append(j)
    for j in seen.of_kind("category", "boolean", "date", "text"):
        column = frame.to_series(j)
        if not column.dtype.is_nested() and column.dtype != pl.Object:
            few = len(column) <= FEW_ROWS and not column.dtype.is_temporal()
            values = hash(tuple(column.to_list())) if few else int(column.hash().sum() or 0)
            key = (str(column.dtype), seen.n_levels[j], values)
            alike.setdefault(key, []).append(j)
    found: dict[int, int] = {}
    for group in alike.values():
        for j in group[1:]:
            if _equal(frame.to_series(group[0]), frame.to_series(j)):
                found[j] = group[0]
    return _recodings(frame, seen) | found


def _recodings(frame: pl.DataFrame, seen: TableProfile) -> dict[int, int]:
    """Return categories and their one-to-one recodings, with the first column of each group."""
    least = 2 if frame.height >= CODED_ROWS else 3  # in a short table, two values agree by chance
    words = [j for j in seen.of_kind("category") if least <= seen.n_levels[j] <= frame.height // 2]
    codes = {j: level_codes(frame.to_series(j)) for j in words}
    starts, head = set[bytes](), frame[:FIRST]
    for block in blocks(FIRST, words):
        starts.update(_first_rows(np.column_stack([codes[j][:FIRST] for j in block])))
    sizes = {int(own.max()) + 1 for own in codes.values()}
    for block in blocks(FIRST, seen.of_kind("number") if words else []):
        for j, start in zip(block, _first_rows(numbers(head, block)), strict=True):
            if start in starts and frame.to_series(j).n_unique() in sizes:
                codes[j] = level_codes(frame.to_series(j))
    alike: dict[bytes, list[int]] = {}
    for j in sorted(codes):
        first = np.unique(codes[j], return_index=True)[1]
        alike.setdefault(first[codes[j]].tobytes(), []).append(j)
    asked = set(words)
    return {j: g[0] for g in alike.values() if not asked.isdisjoint(g) for j in g[1:]}


def _first_rows(X: NDArray[Any]) -> list[bytes]:
    """Return a key for each column that depends only on which of its rows are equal."""
    same = (X[:, None] == X) | ((X[:, None] != X[:, None]) & (X != X))
    return [key.tobytes() for key in same.argmax(axis=1).T]


def repeated_rows(frame: pl.DataFrame, seen: TableProfile, y: NDArray[Any]) -> int:
    """Return the number of rows that repeat an earlier row, including its target.

    The result is 0 if repeats may be due to chance. In a table with few levels, for example, rows
    often have equal features but different targets.
    """
    columns = seen.of_kind("number", "category", "boolean", "date")
    if _n_repeated(_row_codes(frame, columns[:FIRST])) < FEW * len(y):
        return 0
    rows = _row_codes(frame, columns)
    alike = _n_repeated(rows)
    _, codes = np.unique(rows, return_inverse=True)
    targets = class_codes(y)[1]
    both = _n_repeated(codes.astype(np.int64) * (int(targets.max()) + 1) + targets)
    return both if both >= max(FEW * len(y), SAME * alike) else 0


def _row_codes(frame: pl.DataFrame, columns: list[int]) -> NDArray[Any]:
    """Return a number per row, equal for rows with equal values.

    Without columns, all numbers are different.
    """
    dtypes = frame.dtypes
    flat = [j for j in columns if not dtypes[j].is_nested() and dtypes[j] != pl.Object]
    return frame[:, flat].hash_rows().to_numpy() if flat else np.arange(frame.height)


def _n_repeated(values: NDArray[Any]) -> int:
    return len(values) - len(np.unique(values))


def _equal(a: pl.Series, b: pl.Series) -> bool:
    if a.dtype.is_numeric():
        a, b = a.cast(pl.Float64), b.cast(pl.Float64)
    return a.equals(b, check_names=False)
