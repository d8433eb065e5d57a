"""The one place that knows joblib."""

from collections.abc import Callable, Iterable
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs


def parallel_map(
    function: Callable[..., Any], items: Iterable[tuple[Any, ...]], n_jobs: int | None = None
) -> list[Any]:
    """``[function(*item) for item in items]``, on ``n_jobs`` processes or the active backend.

    ``None`` means one process unless a joblib context says otherwise, as in scikit-learn. Workers
    hold BLAS to their share of the cores (joblib's default).
    """
    items = list(items)
    if len(items) < 2 or effective_n_jobs(n_jobs) == 1:
        return [function(*item) for item in items]
    return Parallel(n_jobs=n_jobs)(delayed(function)(*item) for item in items)
