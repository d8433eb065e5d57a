"""Whether work fits into the memory that is free."""

import os
from collections.abc import Callable
from pathlib import Path

from tamis.exceptions import NotEnoughMemory

#: A recipe that takes a pass over the table, whatever its size and task.
QUICK = "correlation"
_GIB = 2**30


#: What leaves fewer columns.
FEWER = "Then(Ranking(Correlation(), n_features_to_select={}), ...)"


def check_cost(
    name: str,
    cost: Callable[[int, int], float | None],
    n_samples: int,
    n_features: int,
    *,
    fewer: str = FEWER,
    quick: str = QUICK,
    free: float | None = None,
) -> None:
    """Refuse work that needs more memory than is free.

    Parameters
    ----------
    name : str
        Who will do the work.
    cost : callable
        Bytes that a table of these numbers of rows and columns takes, None if they are not known.
    fewer : str
        An expression that leaves so many columns as are written between its braces.
    quick : str
        A recipe that takes seconds.
    free : float or None, default=None
        Bytes that may be used; None is what :func:`free_memory` finds.
    """
    held = cost(n_samples, n_features) or 0.0
    free = free_memory() if free is None else free
    if free is not None and held > free:
        table = f"{n_samples} rows and {n_features} columns"
        raise NotEnoughMemory(
            f"{name} needs about {held / _GIB:.3g} GiB of memory for {table}, but "
            f"{free / _GIB:.3g} GiB are free. "
            + _way_out(cost, n_samples, n_features, fewer, quick, free)
        )


def _way_out(
    cost: Callable[[int, int], float | None],
    n_samples: int,
    n_features: int,
    fewer: str,
    quick: str,
    free: float,
) -> str:
    """What would fit."""
    columns = _largest(lambda d: (cost(n_samples, d) or 0.0) <= free, n_features)
    rows = _largest(lambda n: (cost(n, n_features) or 0.0) <= free, n_samples)
    if columns:
        return (
            f"About {columns} columns would fit: leave the others out first with "
            f"{fewer.format(columns)}, or use the recipe {quick!r}."
        )
    if rows:
        return f"About {rows} of the rows would fit: use fewer, or the recipe {quick!r}."
    return f"Use the recipe {quick!r}."


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """The greatest number up to ``most`` that fits, to two digits; 0 where not even one does."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    digits: int = max(0, len(str(low)) - 2)
    unit: int = 10**digits
    return low // unit * unit


def free_memory() -> float | None:
    """Bytes that a process may still take, by machine and control group; None where nobody knows.

    >>> free_memory() is None or free_memory() > 0
    True
    """
    known = [_of_machine(Path("/proc/meminfo")), _of_group(Path("/sys/fs/cgroup"))]
    found = [number for number in known if number is not None]
    return min(found) if found else _of_hardware()


def _of_hardware() -> float | None:
    """All that the machine has, for systems that say no more."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return None


def _of_machine(file: Path) -> float | None:
    """What the kernel takes for available without swapping."""
    for line in _lines(file):
        if line.startswith("MemAvailable:"):
            return 1024.0 * int(line.split()[1])
    return None


def _of_group(folder: Path) -> float | None:
    """What the limit of the control group leaves; files in cache make room when it is needed."""
    limit, used = _lines(folder / "memory.max"), _lines(folder / "memory.current")
    if not limit or not used or limit[0] == "max":
        return None
    stat = dict(line.split() for line in _lines(folder / "memory.stat"))
    return max(0.0, float(limit[0]) - float(used[0]) + float(stat.get("inactive_file", 0)))


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
