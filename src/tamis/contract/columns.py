"""What a trace is made of: arrays that grow, and their way to JSON and back."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tamis._arrays import Array, Subset

# Values that wait in a list before they are written: their objects take four times the memory of
# an array, and writing a thousand takes no longer for each than writing a million.
_PUSHED = 1000


class Growing:
    """An array that grows at its end in constant time."""

    def __init__(self, dtype: Any, values: ArrayLike = ()):
        self._held: NDArray[Any] = np.array(values, dtype=dtype)
        self._n = len(self._held)
        self._pushed: list[Any] = []  # single values, which a list takes faster

    def __len__(self) -> int:
        return self._n + len(self._pushed)

    def extend(self, values: ArrayLike) -> None:
        """Add values behind the last."""
        values = np.asarray(values)
        if len(values) == 1:
            self.push(values[0])
        else:
            self._settle()
            self._add(values)

    def push(self, value: float) -> None:
        """Add one value."""
        self._pushed.append(value)
        if len(self._pushed) == _PUSHED:
            self._settle()

    def _settle(self) -> None:
        if self._pushed:
            pushed, self._pushed = self._pushed, []
            self._add(np.array(pushed, dtype=self._held.dtype))

    def _add(self, values: NDArray[Any]) -> None:
        end = self._n + len(values)
        if end > len(self._held):
            larger = np.empty(max(end, 2 * self._n), dtype=self._held.dtype)
            larger[: self._n] = self._held[: self._n]
            self._held = larger
        self._held[self._n : end] = values
        self._n = end

    @property
    def array(self) -> NDArray[Any]:
        """What has been added so far."""
        self._settle()
        return self._held[: self._n]


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
