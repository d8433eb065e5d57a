"""The outcome of a task: scores, selected columns, and losses on the test rows."""

import json
from base64 import b64decode, b64encode
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from tamis._arrays import Array
from tamis.validation.held_out import missed, squared_losses


class Score(NamedTuple):
    """The value of a metric at a number of columns.

    Attributes
    ----------
    estimator : str
        Name of the estimator. Empty for a metric of the columns.
    size : int
        Number of columns.
    rule : str
        How the number was determined: "given", "own" (by the method), "best" (the best in the inner
        folds of the plan) or "step 3" (the subset after the third step).
    metric : str
        Name of the metric.
    value : float
        Value of the metric.

    Examples
    --------
    >>> Score("svm", 5, "given", "error", 0.1).value
    0.1
    """

    estimator: str
    size: int
    rule: str
    metric: str
    value: float


class PackedLosses(NamedTuple):
    """Losses of an estimator at a number of columns, in the order of the test rows.

    ``estimator``, ``size`` and ``rule`` have the same meaning as in
    :class:`~tamis.evaluation.Score`. ``kind`` is "error" (0 or 1) or "squared". ``packed`` is
    base64 text, with errors stored as bits and squared losses as doubles.
    """

    estimator: str
    size: int
    rule: str
    kind: str
    packed: str


class RowLosses(NamedTuple):
    """Losses on a set of rows.

    Attributes
    ----------
    rows : array of int
        Positions of the rows in the data.
    values : array of float
        Loss on each row.

    Examples
    --------
    >>> float(RowLosses(np.array([4, 7]), np.array([0.0, 1.0])).values.mean())
    0.5
    """

    rows: NDArray[np.intp]
    values: Array


class Outcome(NamedTuple):
    """The outcome of a task.

    Attributes
    ----------
    scores : tuple of Score
        All scores on the test rows.
    order, support : tuple of int or None
        All columns, best first, and the selected columns. None if the method does not select.
    n_train, n_test, n_features : int
        Numbers of training rows, test rows and columns.
    seconds : float
        Time of the method's ``fit``, in seconds.
    losses : tuple of PackedLosses
        Losses on the test rows, if they were requested.
    test_rows : str
        Positions of the test rows, packed as base64 text.

    Examples
    --------
    >>> from tamis.evaluation import Outcome, Score
    >>> scores = (Score("svm", 2, "given", "error", 0.1),)
    >>> outcome = Outcome(scores, (2, 0, 1), (0, 2), n_train=80, n_test=20, n_features=3, seconds=1)
    >>> Outcome.from_text(outcome.to_text(), seconds=1) == outcome
    True
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
        """Unpack the losses of an item, together with the positions of their rows."""
        rows = np.frombuffer(b64decode(self.test_rows), dtype="<i4").astype(np.intp)
        data = b64decode(item.packed)
        if item.kind == "squared":
            return RowLosses(rows, np.frombuffer(data, dtype="<f8").astype(float))
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=len(rows))
        return RowLosses(rows, bits.astype(float))

    def to_text(self) -> str:
        """Return the outcome as JSON.

        The time is not included, because a store keeps it in a separate column. If there are no
        losses, their entry is omitted, so that the texts are the same as in older versions.
        """
        plain = self._asdict()
        del plain["seconds"]
        if not self.losses:
            del plain["losses"], plain["test_rows"]
        return json.dumps(plain)

    @classmethod
    def from_text(cls, text: str, seconds: float) -> "Outcome | None":
        """Return the outcome from the text of :meth:`to_text`, or None if the text is invalid."""
        try:
            plain = json.loads(text)
            for name in ("order", "support"):
                plain[name] = None if plain[name] is None else tuple(plain[name])
            plain["scores"] = tuple(Score(*score) for score in plain["scores"])
            plain["losses"] = tuple(PackedLosses(*item) for item in plain.get("losses", ()))
            return cls(**plain, seconds=float(seconds))
        # a damaged text may be any JSON, even thousands of nested brackets
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return None


def pack_losses(
    fitted: Any, X: Array, y: NDArray[Any], estimator: str, size: int, rule: str
) -> list[PackedLosses]:
    """Return the losses of a fitted estimator on held-out rows, packed as text for the store."""
    packed = {"squared": pack(squared_losses(fitted, X, y).astype("<f8"))}
    if is_classifier(fitted):
        packed = {"error": pack(np.packbits(missed(fitted, X, y).astype(bool))), **packed}
    return [PackedLosses(estimator, size, rule, *item) for item in packed.items()]


def pack(numbers: NDArray[Any]) -> str:
    """Return the raw bytes of an array as base64 text."""
    return b64encode(numbers.tobytes()).decode("ascii")
