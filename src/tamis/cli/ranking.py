"""The columns of a fitted selection, best first: as arrays, made once."""

from collections.abc import Sequence
from typing import NamedTuple

from tamis._arrays import Array, Mask
from tamis.contract import Selection
from tamis.plot.reading import without_places


class RankedColumns(NamedTuple):
    """All columns of a table, or groups of them, best first.

    Attributes
    ----------
    names : list of str
        Of columns, and of groups that are taken or left as one.
    scores : array of float
        The score at which a column last entered or left; for one that never moved, the score it
        was last given; nan where it was given none.
    kept : array of bool
    tried : array of bool
        Whether a column is kept, or entered or left at some step.
    word : str
        What they are called, one by one.
    """

    names: list[str]
    scores: Array
    kept: Mask
    tried: Mask
    word: str = "column"

    def __len__(self) -> int:
        return len(self.names)


def ranked_columns(selection: Selection, names: Sequence[str]) -> RankedColumns:
    """The columns as a fitted selection orders them."""
    order, tried = selection.order_, selection.unit_support_.copy()
    tried[selection.trace_.moves().unit] = True
    names = selection.units_.unit_names(names)
    return RankedColumns(
        [names[j] for j in order],
        without_places(selection.scores_, order)[order],
        selection.unit_support_[order],
        tried[order],
        selection.units_.word,
    )
