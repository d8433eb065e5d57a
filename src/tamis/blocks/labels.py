"""The target of a table in blocks of rows: its distinct values, counted."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.blocks.inputs import check_target_rows
from tamis.blocks.source import RowBlock, RowStatistic
from tamis.exceptions import InvalidTarget

#: Distinct values of a target that are told apart; a target of more is a real one. Classes are
#: counted column by column for each of them, which nobody does for more.
MOST_LABELS = 10_000


class Labels(NamedTuple):
    """What is known of a target.

    Attributes
    ----------
    values : array
        Its distinct values, rising; of a target of more than ``MOST_LABELS`` some of them.
    counts : array of int
        How often each stands there.
    n_rows : int
    """

    values: NDArray[Any]
    counts: NDArray[np.int64]
    n_rows: int

    def codes(self, y: NDArray[Any]) -> NDArray[np.intp]:
        """Position of each of some labels among the values."""
        found = np.searchsorted(self.values, y).astype(np.intp)
        new = self.values[np.minimum(found, len(self.values) - 1)] != y
        if np.any(new):
            raise InvalidTarget(
                f"The target has the label {y[int(np.argmax(new))]!r}, which it had not when it "
                "was first read. Give the same rows in every pass."
            )
        return found


class TargetLabels(RowStatistic):
    """Distinct values of the target, and how often each is there.

    Parameters
    ----------
    name : str
        Who asks, for sentences.
    """

    def __init__(self, name: str):
        self.name = name

    def empty(self) -> Any:
        return Labels(np.empty(0), np.empty(0, dtype=np.int64), 0)

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        y = block.y
        if y is None:
            raise InvalidTarget(f"{self.name} needs a target, but {block.where} has none.")
        if not len(y):
            return state
        try:
            check_target_rows(self.name, y)
            if y.dtype.kind == "f" and np.isinf(y).any():
                raise InvalidTarget(
                    f"{self.name} needs a number for each row, but the target has infinity in row "
                    f"{block.start + int(np.isinf(y).argmax())} of the table. Leave the row out."
                )
            values, counts = np.unique(y, return_counts=True)
        except InvalidTarget as error:
            raise InvalidTarget(f"In {block.where}: {error}") from error
        except TypeError as error:
            raise InvalidTarget(
                f"{self.name} needs labels of one type, but the target mixes several in "
                f"{block.where} ({error}). Convert it."
            ) from error
        return self.merge(state, Labels(*_fewer(values, counts), len(y)))

    def merge(self, state: Any, other: Any) -> Any:
        if not state.n_rows or not other.n_rows:
            return state if state.n_rows else other
        if (state.values.dtype.kind in "biuf") != (other.values.dtype.kind in "biuf"):
            raise InvalidTarget(
                f"{self.name} needs labels of one type, but the target is numbers such as "
                f"{state.values[0]!r} in some blocks and {other.values[0]!r} in others. Convert it."
            )
        both = np.concatenate([state.values, other.values])
        values, where = np.unique(both, return_inverse=True)
        counts = np.zeros(len(values), dtype=np.int64)
        np.add.at(counts, where, np.concatenate([state.counts, other.counts]))
        return Labels(*_fewer(values, counts), state.n_rows + other.n_rows)


def _fewer(values: NDArray[Any], counts: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The lowest values, and one that is no whole number where there is one."""
    counts = counts.astype(np.int64)
    if len(values) <= MOST_LABELS + 2:
        return values, counts
    keep = np.arange(len(values)) <= MOST_LABELS
    if values.dtype.kind == "f":
        keep[np.flatnonzero(values != np.rint(values))[:1]] = True
    return values[keep], counts[keep]
