"""The columns of a fitted selection, best first: as arrays, made once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

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
    """

    names: list[str]
    scores: Array
    kept: Mask

    def __len__(self) -> int:
        return len(self.names)

    @property
    def tried(self) -> Mask:
        """The columns that are kept or were given a score."""
        return self.kept | ~np.isnan(self.scores)


def ranked_columns(selection: Selection, names: Sequence[str]) -> RankedColumns:
    """The columns as a fitted selection orders them."""
    order = selection.order_
    return RankedColumns(
        [names[j] for j in order], selection.scores_[order], selection.support_[order]
    )
