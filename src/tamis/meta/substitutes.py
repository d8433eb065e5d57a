"""Which columns that were left out could stand in the place of one that was kept."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tamis._arrays import Array, improves
from tamis._checks import NONE, check_values, integer, number
from tamis._frame import frame_of
from tamis._seeds import draw_seed
from tamis.contract import Selection
from tamis.contract.choice import counted
from tamis.exceptions import InvalidParameter
from tamis.meta.swap_losses import judged_swaps
from tamis.meta.swaps import cut_down, score_changes

NOTE = "Judged on rows that the selection has seen: compare the swaps, do not quote them."
#: Rows of a table that are shown.
SHOWN = 25


class Substitute(NamedTuple):
    """A column that was left out, in the place of one that was kept; units where there are groups.

    Attributes
    ----------
    column, substitute : str or int
        Names where the table had some, else indices.
    correlation : float
        Absolute; of a category or a group the greatest that a sum of its columns can have.
    score_change : float
        What the criterion gives the substitute beside the other columns kept, less what it gives
        the column there; nan of a criterion that scores no additions.
    loss_change : float
        Mean rise of the squared loss on rows left out, below 0 where the swap predicts better; nan
        without a target of classes or numbers.
    standard_error : float
        Of ``loss_change``, from the differences of the folds.
    stands_in : bool or None
        Whether the rise is within what is allowed; None where nothing was predicted.
    """

    column: Any
    substitute: Any
    correlation: float
    score_change: float
    loss_change: float
    standard_error: float
    stands_in: bool | None


@dataclass(frozen=True, repr=False)
class Substitutes:
    """Swaps of a column that was kept for one that was left out, see :class:`Substitute`.

    The rows took part in the selection: compare the swaps, do not quote them.

    Attributes
    ----------
    swaps : tuple of Substitute
        By kept column, in the order of the table, the most alike first.
    loss : float
        Mean squared loss of the kept columns on rows left out (Brier's score for classes).
    max_loss : float
        The rise of it within which a column stands in.
    n_kept : int
        Kept columns, or units, whose substitutes were looked for.
    """

    swaps: tuple[Substitute, ...]
    loss: float
    max_loss: float
    n_kept: int

    def __iter__(self) -> Iterator[Substitute]:
        return iter(self.swaps)

    def __len__(self) -> int:
        return len(self.swaps)

    def of(self, column: Any) -> list[Any]:
        """The columns that stand in for one that was kept.

        Parameters
        ----------
        column : str or int
        """
        return [swap.substitute for swap in self if swap.column == column and swap.stands_in]

    def to_frame(self) -> Any:
        """One row per swap, as polars or pandas frame."""
        return frame_of(self.swaps, Substitute._fields)

    def __repr__(self) -> str:
        n_with = len({swap.column for swap in self if swap.stands_in})
        said = f"<Substitutes for {n_with} of {counted(self.n_kept, 'kept column')}"
        if not np.isnan(self.loss):
            said += f": squared loss {self.loss:.4g}, which may rise by {self.max_loss:.2g}"
        lines = [f"{said}>"]
        lines += _aligned([_told(swap) for swap in self.swaps[:SHOWN]])
        if len(self) > SHOWN:
            lines.append(f"... and {len(self) - SHOWN} more: to_frame() has all")
        return "\n".join([*lines, NOTE] if len(self) else lines)


def _told(swap: Substitute) -> tuple[str, ...]:
    """A swap as the cells of a line."""
    cells = [str(swap.column), str(swap.substitute), f"|r| {swap.correlation:.2f}"]
    if not np.isnan(swap.score_change):
        cells.append(f"score {swap.score_change:+.3g}")
    if swap.stands_in is not None:
        cells.append(f"loss {swap.loss_change:+.2g} ± {swap.standard_error:.2g}")
        cells.append("stands in" if swap.stands_in else "loses")
    return tuple(cells)


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def substitutes(
    selection: Selection,
    X: Any,
    y: Any,
    *,
    estimator: Any,
    max_loss: float | None,
    min_correlation: float,
    n_candidates: int,
    n_folds: int,
    random_state: Any,
    n_jobs: int | None,
    sample_weight: Any,
) -> Substitutes:
    """Work of :meth:`tamis.contract.Selection.substitutes`, where the parameters are described."""
    asked = {
        "max_loss": number() | NONE,
        "min_correlation": number(least=0, most=1),
        "n_candidates": integer(1),
        "n_folds": integer(2),
    }
    given = {"max_loss": max_loss, "min_correlation": min_correlation}
    check_values("substitutes", asked, **given, n_candidates=n_candidates, n_folds=n_folds)
    read, seed = selection._reread(X, y), draw_seed(random_state)
    read, weights = _weighed(read, sample_weight)
    swaps, units = cut_down(read, weights, min_correlation, n_candidates)
    scores = score_changes(swaps, seed)
    judged = judged_swaps(swaps, estimator, n_folds, seed, n_jobs)
    limit = judged.loss_error if max_loss is None else float(max_loss)
    found = []
    for i, (old, new, alike) in enumerate(swaps.pairs):
        names = (read.labels[int(units[old])], read.labels[int(units[new])])
        rise, error = float(judged.rises[i]), float(judged.errors[i])
        stands = None if np.isnan(rise) else not improves(rise, limit)
        found.append(Substitute(*names, alike, float(scores[i]), rise, error, stands))
    n_free = len(np.setdiff1d(swaps.kept, swaps.grouping.fixed_units))
    return Substitutes(tuple(found), judged.loss, limit, n_free)


def _weighed(read: Any, sample_weight: Any) -> tuple[Any, Array | None]:
    """The rows that have a weight, and their weights; a weight of 0 is as if a row were not there.

    Without weights all rows, and None.
    """
    if sample_weight is None:
        return read, None
    n_rows = read.X.shape[0]
    try:
        weights = np.asarray(sample_weight, dtype=float)
    except (TypeError, ValueError):
        weights = np.array([np.nan])
    good = weights.shape == (n_rows,) and np.isfinite(weights).all() and (weights >= 0).all()
    if not good or not weights.any():
        raise InvalidParameter(
            f"substitutes needs a sample_weight for each of {n_rows} rows, numbers of at least 0 "
            "that are not all 0: those of the fit."
        )
    rows = np.flatnonzero(weights)
    target = None if read.y is None else read.y[rows]
    return read._replace(X=read.X[rows], y=target), weights[rows]
