"""Losses of the test rows of a task, in few letters."""

from base64 import b64decode, b64encode
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from tamis._arrays import Array
from tamis.validation.held_out import missed, squared_losses

#: Kinds of losses, and how their numbers are kept: misses as bits, squares in all their digits.
KINDS = ("error", "squared")


class PackedLosses(NamedTuple):
    """Losses of one estimator at one number of columns, in the order of the test rows.

    ``estimator``, ``size`` and ``rule`` are those of a :class:`~tamis.evaluation.Score`, ``kind``
    is "error" (0 or 1) or "squared", and ``packed`` the numbers as text.
    """

    estimator: str
    size: int
    rule: str
    kind: str
    packed: str

    def values(self, n_rows: int) -> Array:
        """The losses as numbers."""
        data = b64decode(self.packed)
        if self.kind == "error":
            bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=n_rows)
            return bits.astype(float)
        return np.frombuffer(data, dtype="<f8").astype(float)


class RowLosses(NamedTuple):
    """Losses of some rows.

    Attributes
    ----------
    rows : array of int
        Positions in the data.
    values : array of float
    """

    rows: NDArray[np.intp]
    values: Array


def packed_losses(
    fitted: Any, X: Array, y: NDArray[Any], estimator: str, size: int, rule: str
) -> list[PackedLosses]:
    """Losses of a fitted estimator on rows that it has not seen."""
    squares = squared_losses(fitted, X, y).astype("<f8").tobytes()
    found = [PackedLosses(estimator, size, rule, "squared", _text(squares))]
    if is_classifier(fitted):
        bits = np.packbits(missed(fitted, X, y).astype(bool)).tobytes()
        found.insert(0, PackedLosses(estimator, size, rule, "error", _text(bits)))
    return found


def packed_rows(rows: NDArray[np.intp]) -> str:
    """Positions of rows as text.

    >>> rows_of(packed_rows(np.array([3, 70000, 5])))
    array([    3, 70000,     5])
    """
    return _text(rows.astype("<i4").tobytes())


def rows_of(text: str) -> NDArray[np.intp]:
    """Positions that :func:`packed_rows` wrote."""
    return np.frombuffer(b64decode(text), dtype="<i4").astype(np.intp)


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")
