"""The columns of a trace, and their way to JSON and back."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset

#: Columns of a trace: one entry a step, a moved unit, a scored candidate.
PER_STEP = {
    "value": float,
    "n_moved": np.intp,
    "n_scored": np.intp,
    "n_equal": np.intp,
    "n_evaluations": np.int64,
    "seconds": float,
}
PER_MOVE = {"moved": np.intp, "score": float, "error": float}
PER_CANDIDATE = {"candidate": np.intp, "candidate_score": float}
COLUMNS = PER_STEP | PER_MOVE | PER_CANDIDATE
#: For each column which of the three counts is its length.
COUNTED_BY = {
    name: count for count, names in enumerate((PER_STEP, PER_MOVE, PER_CANDIDATE)) for name in names
}


def occurrences(units: Subset) -> Subset:
    """For each entry how many equal ones stand before it."""
    if len(units) and np.bincount(units).max() == 1:
        return np.zeros(len(units), dtype=np.intp)
    order = np.argsort(units, kind="stable")
    rising = units[order]
    fresh = np.append(True, rising[1:] != rising[:-1]) if len(units) else np.empty(0, dtype=bool)
    first = np.flatnonzero(fresh)
    counts = np.arange(len(units)) - np.repeat(first, np.diff(np.append(first, len(units))))
    out = np.empty(len(units), dtype=np.intp)
    out[order] = counts
    return out


def plain_numbers(values: NDArray[Any]) -> list[Any]:
    """Numbers as JSON knows them: nan is None, infinities are words."""
    listed: list[Any] = values.tolist()
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        words = {np.inf: "inf", -np.inf: "-inf"}
        return [None if v != v else words.get(v, v) for v in listed]
    return listed


def numbers_of(listed: list[Any]) -> Array:
    """The array that :func:`plain_numbers` wrote."""
    return np.array([np.nan if v is None else v for v in listed], dtype=float)
