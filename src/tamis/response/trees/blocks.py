"""Rows in blocks, on as many threads as are asked for.

Blocks do not depend on the number of threads, and answers come back in the order of the rows, so
that a result does not either. The compiled loops let go of the interpreter's lock.
"""

from collections.abc import Callable, Iterator
from typing import Any

from joblib import effective_n_jobs

from tamis._parallel import in_order


def over_rows(
    n_rows: int, size: int, function: Callable[[slice], Any], n_jobs: int | None
) -> Iterator[Any]:
    """``function`` of each block of rows, in their order."""
    blocks = [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
    yield from in_order(function, blocks, effective_n_jobs(n_jobs))
