"""Benchmarks of tamis against other libraries, interleaved in one run."""

from collections.abc import Callable
from statistics import median
from time import process_time

from threadpoolctl import threadpool_limits


def medians(*functions: Callable[[], object], repeats: int = 3) -> list[float]:
    """Return median processor seconds of each function, interleaved after a warm-up."""
    with threadpool_limits(1):
        for function in functions[1:]:  # the first is a slow baseline without compilation
            function()
        rounds = [[_seconds(function) for function in functions] for _ in range(repeats)]
    return [median(times) for times in zip(*rounds, strict=True)]


def _seconds(function: Callable[[], object]) -> float:
    start = process_time()
    function()
    return process_time() - start
