"""The columns of a trace, and their conversion to JSON and back."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset

#: Columns of a trace with one entry per step, and their types. The next two dictionaries list the
#: columns with one entry per moved unit and per scored candidate.
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
#: For each column, what its length counts: 0 means steps, 1 means moved units, and 2 means scored
#: candidates.
COUNTED_BY = {
    name: count for count, names in enumerate((PER_STEP, PER_MOVE, PER_CANDIDATE)) for name in names
}


def occurrences(units: Subset) -> Subset:
    """Count, for each entry, how many earlier entries are equal to it."""
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
    """Convert an array to a list for JSON, with None for NaN and text for infinities."""
    listed: list[Any] = values.tolist()
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        texts = {np.inf: "inf", -np.inf: "-inf"}
        return [None if v != v else texts.get(v, v) for v in listed]
    return listed


def numbers_of(listed: list[Any]) -> Array:
    """Convert a list from :func:`plain_numbers` back to an array."""
    return np.array([np.nan if v is None else v for v in listed], dtype=float)
