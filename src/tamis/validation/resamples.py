"""Resamples of rows: disjoint sets of rows, stratified by class, and shuffled folds."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import EMPTY, Array, Subset, target_kind
from tamis.exceptions import InvalidParameter
from tamis.validation.splits import deal_folds, reword_warnings

Pairs = tuple[tuple[Subset, Subset], ...]


def rows_of(part: int | float, n_rows: int) -> int:
    """Return a number of rows, given as an int or as a share of all rows."""
    return round(part * n_rows) if isinstance(part, float) else int(part)


def groups_of(y: NDArray[Any], stratify: bool | None) -> NDArray[np.intp]:
    """Return the class of each row as a number from 0, for stratification.

    Without stratification, it is 0 for all rows. If ``stratify`` is None, rows are stratified if
    the target has classes.
    """
    wanted = target_kind(y) == "classification" if stratify is None else stratify
    if not wanted:
        return np.zeros(len(y), dtype=np.intp)
    return np.unique(y, return_inverse=True)[1].astype(np.intp)


def plain_groups_of(y: NDArray[Any] | None, n_rows: int) -> NDArray[np.intp]:
    """Return the class of each row as a number from 0, or 0 for all rows if there are no classes.

    There are no classes if there is no target, if it has several columns, or if it is censored.
    """
    plain = y is not None and y.ndim == 1 and y.dtype.names is None
    return groups_of(np.zeros(n_rows) if y is None else y, None if plain else False)


def parts_of(
    groups: NDArray[np.intp], sizes: tuple[int, ...], rng: np.random.Generator
) -> list[Subset]:
    """Draw disjoint sets of rows of the given sizes, stratified by group. Each set is sorted."""
    order = rng.permutation(len(groups))
    waiting = [order[groups[order] == group] for group in range(groups.max() + 1)]
    parts = []
    for size in sizes:
        counts = _shares(np.array([len(rows) for rows in waiting]), size, rng)
        drawn = [rows[:count] for rows, count in zip(waiting, counts, strict=True)]
        waiting = [rows[count:] for rows, count in zip(waiting, counts, strict=True)]
        parts.append(np.sort(np.concatenate(drawn)) if size else EMPTY)
    return parts


def _shares(counts: NDArray[np.intp], size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Divide ``size`` rows in proportion to the counts. The largest remainders are rounded up."""
    exact = counts * size / max(counts.sum(), 1)
    shares = np.floor(exact + 1e-9).astype(np.intp)
    remainders = exact - shares
    tie = rng.random(len(counts))
    up = np.lexsort((tie, -np.round(remainders, 9)))[: size - shares.sum()]
    shares[up] += 1
    return shares


def error_of_mean(values: Array, test_ratio: float, single: float = float("nan")) -> float:
    """Return the standard error of a mean over resamples whose training rows overlap.

    ``test_ratio`` is the number of test rows divided by the number of training rows (Nadeau and
    Bengio 2003). ``single`` is returned if there is only one value.
    """
    if len(values) < 2:
        return single
    return float(values.std(ddof=1)) * float(np.sqrt(1 / len(values) + test_ratio))


def folds_of(
    y: NDArray[Any],
    rows: Subset,
    n_folds: int,
    seed: int,
    task: str | None = None,
    groups: Subset | None = None,
) -> Pairs:
    """Return (training rows, test rows) of shuffled folds, stratified for classification.

    If ``task`` is None, the target decides between classification and regression. Rows of the same
    group are in the same fold. ``groups`` holds a number for each row of ``y``.
    """
    of_classes = (task or target_kind(y)) == "classification"
    # codes, because scikit-learn would treat some numeric labels as a regression target
    labels = np.unique(y[rows], return_inverse=True)[1] if of_classes else None
    try:
        with reword_warnings():
            folds = deal_folds(
                n_folds, len(rows), labels, None if groups is None else groups[rows], seed
            )
    except ValueError as error:
        raise InvalidParameter(
            f"{n_folds} folds cannot be made of {len(rows)} rows: {str(error).rstrip('.')}. Use "
            "fewer folds."
        ) from error
    return tuple((rows[fit], rows[check]) for fit, check in folds)
