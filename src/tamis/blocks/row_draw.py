"""Rows that were drawn from a table before a selection saw it, so that it can say so."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class RowDraw(NamedTuple):
    """How many rows of how many were drawn, and the seed.

    >>> str(RowDraw(20_000, 30_000_000, 0))
    '20000 of 30000000 rows, drawn at random with seed 0'
    """

    n_rows: int
    n_table: int
    seed: int

    def __str__(self) -> str:
        return f"{self.n_rows} of {self.n_table} rows, drawn at random with seed {self.seed}"


_DRAWN: ContextVar[RowDraw | None] = ContextVar("drawn", default=None)


@contextmanager
def on_rows_drawn(drawn: RowDraw | None) -> Iterator[None]:
    """Let selections made inside know that their table is a draw from a larger one."""
    before = _DRAWN.set(drawn)
    try:
        yield
    finally:
        _DRAWN.reset(before)


def rows_drawn() -> RowDraw | None:
    """What the table of a selection was drawn from; None where it is the whole."""
    return _DRAWN.get()
