"""What one task leaves: its scores, the columns it chose, and the losses of its test rows."""

import json
from base64 import b64decode, b64encode
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from tamis._arrays import Array
from tamis.validation.held_out import missed, squared_losses


class Score(NamedTuple):
    """One number: a metric at a number of columns.

    Attributes
    ----------
    estimator : str
        Empty for a measure of the columns.
    size : int
        The number of columns.
    rule : str
        How that number came about: "given", "own" (what the method kept), "best" (the best on the
        inner rows of the plan) or "step 3" (what it held after its third step).
    metric : str
    value : float
    """

    estimator: str
    size: int
    rule: str
    metric: str
    value: float


class PackedLosses(NamedTuple):
    """Losses of one estimator at one number of columns, in the order of the test rows.

    ``estimator``, ``size`` and ``rule`` are those of a :class:`~tamis.evaluation.Score`, ``kind``
    is "error" (0 or 1) or "squared", and ``packed`` the numbers as text: misses as bits, squares in
    all their digits.
    """

    estimator: str
    size: int
    rule: str
    kind: str
    packed: str


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


class Outcome(NamedTuple):
    """What a task leaves.

    Attributes
    ----------
    scores : tuple of Score
    order, support : tuple of int or None
        Columns best first, and those kept; None where the method chooses none.
    n_train, n_test, n_features : int
    seconds : float
        Time of the method's ``fit``.
    losses : tuple of PackedLosses
        Of every test row, where they were asked for.
    test_rows : str
        Which rows these are, as text.
    """

    scores: tuple[Score, ...]
    order: tuple[int, ...] | None
    support: tuple[int, ...] | None
    n_train: int
    n_test: int
    n_features: int
    seconds: float
    losses: tuple[PackedLosses, ...] = ()
    test_rows: str = ""

    def row_losses(self, item: PackedLosses) -> RowLosses:
        """Unpack one of the losses."""
        rows = np.frombuffer(b64decode(self.test_rows), dtype="<i4").astype(np.intp)
        data = b64decode(item.packed)
        if item.kind == "squared":
            return RowLosses(rows, np.frombuffer(data, dtype="<f8").astype(float))
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=len(rows))
        return RowLosses(rows, bits.astype(float))

    def to_text(self) -> str:
        """Write all but the time, which has a column of its own in a store.

        Losses of rows are left out where there are none, so that other texts stay as they were.
        """
        plain = self._asdict()
        del plain["seconds"]
        if not self.losses:
            del plain["losses"], plain["test_rows"]
        return json.dumps(plain)

    @classmethod
    def from_text(cls, text: str, seconds: float) -> "Outcome | None":
        """Read what :meth:`to_text` wrote; None where the text is something else."""
        try:
            plain = json.loads(text)
            for name in ("order", "support"):
                plain[name] = None if plain[name] is None else tuple(plain[name])
            plain["scores"] = tuple(Score(*score) for score in plain["scores"])
            plain["losses"] = tuple(PackedLosses(*item) for item in plain.get("losses", ()))
            return cls(**plain, seconds=float(seconds))
        # whatever it holds instead, be it null or ten thousand brackets
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return None


def pack_losses(
    fitted: Any, X: Array, y: NDArray[Any], estimator: str, size: int, rule: str
) -> list[PackedLosses]:
    """Losses of a fitted estimator on held-out rows."""
    packed = {"squared": pack(squared_losses(fitted, X, y).astype("<f8"))}
    if is_classifier(fitted):
        packed = {"error": pack(np.packbits(missed(fitted, X, y).astype(bool))), **packed}
    return [PackedLosses(estimator, size, rule, *item) for item in packed.items()]


def pack(numbers: NDArray[Any]) -> str:
    """The bytes of an array as text."""
    return b64encode(numbers.tobytes()).decode("ascii")
