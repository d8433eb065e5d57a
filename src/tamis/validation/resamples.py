"""Dealing rows out: parts in proportion, folds."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import EMPTY, Subset, target_kind
from tamis.exceptions import InvalidParameter
from tamis.validation.splits import deal_folds, retold

Pairs = tuple[tuple[Subset, Subset], ...]


def rows_of(part: int | float, n_rows: int) -> int:
    """Number of rows of a part that is given by number or by share."""
    return round(part * n_rows) if isinstance(part, float) else int(part)


def groups_of(y: NDArray[Any], stratify: bool | None) -> NDArray[np.intp]:
    """For each row its class, or 0 for all where classes play no part."""
    wanted = target_kind(y) == "classification" if stratify is None else stratify
    if not wanted:
        return np.zeros(len(y), dtype=np.intp)
    return np.unique(y, return_inverse=True)[1].astype(np.intp)


def plain_groups_of(y: NDArray[Any] | None, n_rows: int) -> NDArray[np.intp]:
    """For each row its class; 0 for all without a target, or one that has no classes to share out.

    That is one of several columns, or of times that are not all known.
    """
    plain = y is not None and y.ndim == 1 and y.dtype.names is None
    return groups_of(np.zeros(n_rows) if y is None else y, None if plain else False)


def parts_of(
    groups: NDArray[np.intp], sizes: tuple[int, ...], rng: np.random.Generator
) -> list[Subset]:
    """Disjoint parts of these sizes, each with the groups in proportion, rows ascending."""
    order = rng.permutation(len(groups))
    waiting = [order[groups[order] == group] for group in range(groups.max() + 1)]
    parts = []
    for size in sizes:
        counts = _shares(np.array([len(rows) for rows in waiting]), size, rng)
        taken = [rows[:count] for rows, count in zip(waiting, counts, strict=True)]
        waiting = [rows[count:] for rows, count in zip(waiting, counts, strict=True)]
        parts.append(np.sort(np.concatenate(taken)) if size else EMPTY)
    return parts


def _shares(counts: NDArray[np.intp], size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """``size`` rows shared out in proportion to the counts; the largest remainders round up."""
    exact = counts * size / max(counts.sum(), 1)
    shares = np.floor(exact + 1e-9).astype(np.intp)
    remainders = exact - shares
    tie = rng.random(len(counts))
    up = np.lexsort((tie, -np.round(remainders, 9)))[: size - shares.sum()]
    shares[up] += 1
    return shares


def folds_of(
    y: NDArray[Any], rows: Subset, n_folds: int, seed: int, task: str | None = None
) -> Pairs:
    """Pairs (the others, one fold) of the rows; classes in proportion, where the task has some.

    Without a ``task`` it is the one that the target looks like.
    """
    of_classes = (task or target_kind(y)) == "classification"
    # labels may be numbers of any kind, which scikit-learn would read for itself
    labels = np.unique(y[rows], return_inverse=True)[1] if of_classes else None
    try:
        with retold():
            folds = deal_folds(n_folds, len(rows), labels, seed=seed)
    except ValueError as error:
        raise InvalidParameter(
            f"{n_folds} folds cannot be made of {len(rows)} rows: {str(error).rstrip('.')}. Ask "
            "for fewer folds."
        ) from error
    return tuple((rows[fit], rows[check]) for fit, check in folds)
