"""Distinct values of the target of a table in row blocks, with their counts."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.blocks.inputs import check_target_rows
from tamis.blocks.source import RowBlock, RowStatistic
from tamis.exceptions import InvalidTarget

#: Maximum number of distinct target values that are counted. A target with more is numeric.
MOST_LABELS = 10_000


class Labels(NamedTuple):
    """Distinct values of a target.

    Attributes
    ----------
    values : array
        The distinct values in increasing order. If there are more than ``MOST_LABELS``, not all of
        them are included.
    counts : array of int
        Number of rows with each value.
    n_rows : int
        Total number of rows.
    """

    values: NDArray[Any]
    counts: NDArray[np.int64]
    n_rows: int

    def codes(self, y: NDArray[Any]) -> NDArray[np.intp]:
        """Return the position of each label of ``y`` among the distinct values."""
        found = np.searchsorted(self.values, y).astype(np.intp)
        new = self.values[np.minimum(found, len(self.values) - 1)] != y
        if np.any(new):
            raise InvalidTarget(
                f"The target has the label {y[int(np.argmax(new))]!r}, which did not occur in the "
                "first pass. Give the same rows in every pass."
            )
        return found


@dataclass(eq=False, repr=False)
class TargetLabels(RowStatistic):
    """Statistic that collects the distinct values of the target and their counts.

    Parameters
    ----------
    name : str
        Name of the caller, for error messages.
    """

    name: str

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
    """Limit the number of distinct values.

    Keep the lowest values, and a value that is not an integer if there is one.
    """
    counts = counts.astype(np.int64)
    if len(values) <= MOST_LABELS + 2:
        return values, counts
    keep = np.arange(len(values)) <= MOST_LABELS
    if values.dtype.kind == "f":
        keep[np.flatnonzero(values != np.rint(values))[:1]] = True
    return values[keep], counts[keep]
