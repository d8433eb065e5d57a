"""What a fit costs: refused where memory is short, announced where it takes long."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tamis.exceptions import InvalidTable

log = logging.getLogger("tamis")

#: Operations of a second on one core of an ordinary machine, small arrays and large ones together.
SPEED = 5e9
#: Seconds from which on a fit is announced.
LONG = 60
GIB = 2**30


class Cost(NamedTuple):
    """What a fit to a table of some size takes, about.

    Attributes
    ----------
    operations : float
    bytes : float
        Beyond the table itself.
    """

    operations: float
    bytes: float


def check_affordable(
    name: str,
    cost: Callable[[int, int], Cost],
    n_samples: int,
    n_features: int,
    *,
    fewer: str,
    quick: str,
) -> None:
    """Refuse a table for which memory is short; say beforehand where a fit takes over a minute.

    ``cost`` gives operations and bytes for numbers of rows and columns, ``fewer`` is the expression
    that leaves fewer columns, and ``quick`` the recipe that would be done soon.
    """
    operations, needed = cost(n_samples, n_features)
    free = free_bytes()
    table = f"{n_samples} rows and {n_features} columns"
    if needed > free:
        fits = _most_columns(cost, n_samples, n_features, free)
        way = (
            f"{fits} columns would fit: leave the others out first, as by {fewer.format(fits)}."
            if fits
            else "So many rows do not fit with any number of columns: use a sample of them."
        )
        raise InvalidTable(
            f"{name} needs about {needed / GIB:.1f} GiB for {table}, and {free / GIB:.1f} GiB are "
            f"free. {way}"
        )
    if operations > LONG * SPEED:
        log.warning(
            "%s takes about %s for %s; the recipe %s takes seconds.",
            name,
            _spoken(operations / SPEED),
            table,
            quick,
        )


def _most_columns(
    cost: Callable[[int, int], Cost], n_samples: int, n_features: int, free: float
) -> int:
    """The greatest number of columns that memory is enough for, to two digits; 0 for none."""
    low, high = 0, n_features
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost(n_samples, middle)[1] <= free else (low, middle)
    unit: int = 10 ** max(len(str(low)) - 2, 0)
    return low // unit * unit


def _spoken(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 60:.0f} minutes"


def free_bytes() -> float:
    """Memory that is free, infinite where the machine does not tell."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, AttributeError):
        return float("inf")
