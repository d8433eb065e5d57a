"""Benchmarks of tamis against other libraries, interleaved in one run."""

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from time import process_time
from typing import NamedTuple

from threadpoolctl import threadpool_limits


class Ratio(NamedTuple):
    """Time of another program divided by the time of tamis, and the smallest accepted ratio."""

    task: str
    peer: str
    ratio: float
    goal: float


#: Ratios measured in this process.
MEASURED: list[Ratio] = []


def compare(
    task: str, peer: str, theirs: float, ours: float, goal: float, same: bool = True
) -> list[str]:
    """Print and store a ratio of seconds. Return a sentence for each missed goal.

    There are two goals: a ratio of at least ``goal``, and the same results.

    ``peer`` is the name of an installed package, whose version is added, or a description.
    """
    measured = Ratio(task, _with_version(peer), theirs / ours, goal)
    MEASURED.append(measured)
    print(
        f"{task}: {measured.peer} {theirs:.3g} s, tamis {ours:.3g} s, "
        f"ratio {measured.ratio:.3g} (goal {goal:g}){'' if same else ', other results'}",
        flush=True,
    )
    missed = [] if measured.ratio >= goal else [f"{task}: {measured.ratio:.3g} times {peer}"]
    return missed if same else [*missed, f"{task}: the results differ from those of {peer}"]


def medians(*functions: Callable[[], object], repeats: int = 5) -> list[float]:
    """Return the median processor seconds of functions that run alternately after a warm-up."""
    with threadpool_limits(1):
        for function in functions[1:]:  # the first is a slow baseline without compilation
            function()
        rounds = [[_seconds(function) for function in functions] for _ in range(repeats)]
    return [median(times) for times in zip(*rounds, strict=True)]


def _seconds(function: Callable[[], object]) -> float:
    start = process_time()
    function()
    return process_time() - start


def _with_version(peer: str) -> str:
    try:
        return f"{peer} {version(peer)}"
    except (PackageNotFoundError, ValueError):
        return peer
