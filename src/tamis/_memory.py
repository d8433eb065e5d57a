"""Check whether a computation fits into the free memory."""

import os
from collections.abc import Callable
from pathlib import Path

from tamis._format import format_bytes
from tamis.exceptions import InvalidTable, NotEnoughMemory

#: Name of a recipe that error messages suggest. It works for any task, and reads a table of any
#: size in a single pass.
QUICK = "correlation"
_GIB = 2**30
#: Number of bytes that a number takes in memory, because all arrays are converted to float64.
NUMBER = 8
#: Expression that error messages suggest, which first reduces the number of columns. The braces are
#: replaced with the number of columns that would fit into memory.
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
    """Refuse a computation that needs more memory than is free.

    Parameters
    ----------
    name : str
        Name of the method, for the message.
    cost : callable
        Function that returns the memory in bytes for a number of rows and columns, or None if
        unknown.
    n_samples, n_features : int
        Number of rows and columns.
    fewer : str
        An expression to suggest, which first selects fewer columns. Its braces are replaced with
        the number of columns.
    quick : str
        The name of a fast recipe to suggest.
    free : float or None, default=None
        Memory in bytes that may be used. None means the result of :func:`free_memory`.
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
    """Return a sentence that suggests a number of columns or rows that fits into memory."""
    columns = _largest(lambda d: (cost(n_samples, d) or 0.0) <= free, n_features)
    rows = _largest(lambda n: (cost(n, n_features) or 0.0) <= free, n_samples)
    if columns:
        return (
            f"About {columns} columns would fit: drop the others first with "
            f"{fewer.format(columns)}, or use the recipe {quick!r}."
        )
    if rows:
        return f"About {rows} of the rows would fit: use fewer, or the recipe {quick!r}."
    return f"Use the recipe {quick!r}."


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """Return the largest number below ``most`` that fits, or 0 if none fits.

    The number is rounded down to two significant digits.
    """
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    digits: int = max(0, len(str(low)) - 2)
    unit: int = 10**digits
    return low // unit * unit


def free_memory() -> float | None:
    """Return the free memory in bytes, or None if unknown. Limits of control groups are included.

    >>> free_memory() is None or free_memory() > 0
    True
    """
    known = [_of_machine(Path("/proc/meminfo")), _of_group(Path("/sys/fs/cgroup"))]
    found = [number for number in known if number is not None]
    return min(found) if found else _of_hardware()


def _of_hardware() -> float | None:
    """Return the total memory in bytes, for systems that do not report the free memory."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return None


def _of_machine(file: Path) -> float | None:
    """Return the memory in bytes that the kernel can provide without swapping."""
    for line in _lines(file):
        if line.startswith("MemAvailable:"):
            return 1024.0 * int(line.split()[1])
    return None


def _of_group(folder: Path) -> float | None:
    """Return the memory in bytes that the control group may still use, including cached files."""
    limit, used = _lines(folder / "memory.max"), _lines(folder / "memory.current")
    if not limit or not used or limit[0] == "max":
        return None
    stat = dict(line.split() for line in _lines(folder / "memory.stat"))
    return max(0.0, float(limit[0]) - float(used[0]) + float(stat.get("inactive_file", 0)))


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def check_fits(where: str, n_bytes: int) -> None:
    """Raise an error if a table needs more memory than is free."""
    free = free_memory()
    if free is not None and n_bytes > free:
        raise InvalidTable(
            f"{where} holds {format_bytes(n_bytes)} of numbers, more than the "
            f"{format_bytes(free)} of memory that this machine has free. Leave out rows or columns."
        )
