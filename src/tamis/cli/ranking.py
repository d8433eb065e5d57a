"""The columns of a fitted selection, best first: as arrays, made once."""

from collections.abc import Sequence
from typing import NamedTuple

from tamis._arrays import Array, Mask
from tamis.contract import Selection


class RankedColumns(NamedTuple):
    """All columns of a table, best first.

    Attributes
    ----------
    names : list of str
    scores : array of float
        The score at which a column last entered or left; for one that never moved, the score it
        was last given; nan where it was given none.
    kept : array of bool
    tried : array of bool
        Whether a column is kept, or entered or left at some step.
    """

    names: list[str]
    scores: Array
    kept: Mask
    tried: Mask

    def __len__(self) -> int:
        return len(self.names)


def ranked_columns(selection: Selection, names: Sequence[str]) -> RankedColumns:
    """The columns as a fitted selection orders them."""
    order, tried = selection.order_, selection.support_.copy()
    tried[selection.trace_.moves().unit] = True
    return RankedColumns(
        [names[j] for j in order],
        selection.scores_[order],
        selection.support_[order],
        tried[order],
    )
