"""Rows that are drawn from a table in parts, for what must hold its table at once."""

from os import fspath
from typing import Any, NamedTuple

from numpy.typing import NDArray

from tamis.contract.drawn import RowDraw
from tamis.contract.parted import SAMPLE
from tamis.contract.target_labels import TargetLabels
from tamis.exceptions import InvalidTable
from tamis.table.parts.cluster import ClusterParts
from tamis.table.parts.opening import as_parts, numbers_drawn, sample
from tamis.table.parts.parquet import Parquet, is_path

#: Numbers of a draw at most, 1 gigabyte of float64: of very many columns there are fewer rows, but
#: not so few that nothing could be learnt from them.
DRAWN_NUMBERS, FEWEST_DRAWN = 1 << 27, 500


class DrawnRows(NamedTuple):
    """Rows of a table in parts, and what they were drawn from: None where they are all."""

    X: Any
    y: NDArray[Any] | None
    target: str | None
    drawn: RowDraw | None


def draw_rows(X: Any, y: Any = None, target: str | None = None, *, seed: int = 0) -> DrawnRows:
    """Rows for what must hold its table at once; of Parquet as the files have them.

    Parameters
    ----------
    X, y, target
        As of :func:`as_parts`; the columns of Parquet may be text and dates too, and its target
        stands among them.
    seed : int, default=0
        Seed of the draw, which does not depend on the blocks.
    """
    source: Any = X.source if isinstance(X, ClusterParts) else X
    if is_path(source) and not fspath(source).endswith(".npy") and y is None:
        source = Parquet(source)
    if not isinstance(source, Parquet):
        parts = as_parts(X, y, target)
        total = parts.reduce(TargetLabels("select"), target_only=True).n_rows
        size = _fitting(total, parts.n_columns)
        table, answers = sample(parts, n_rows=size, random_state=seed)
        return DrawnRows(table, answers, None, _told(size, total, seed))
    size = _fitting(source.n_rows, source.n_columns)
    rows = source.rows(numbers_drawn(source.n_rows, size, seed))
    told = _told(size, source.n_rows, seed)
    return DrawnRows(rows, None, source.target if target is None else target, told)


def _fitting(n_rows: int, n_columns: int) -> int:
    """Rows of a draw that fits into memory."""
    if n_rows < 2:
        raise InvalidTable(f"A selection needs at least 2 rows, and the files have {n_rows}.")
    return min(n_rows, SAMPLE, max(FEWEST_DRAWN, DRAWN_NUMBERS // n_columns))


def _told(size: int, total: int, seed: int) -> RowDraw | None:
    return RowDraw(size, total, seed) if size < total else None
