"""Overhead of the command line: ratios of processor seconds, and peak memory.

    python -m benchmarks.load

Each command runs in its own process, whose processor time and memory are measured. The start-up
time (the same command on a small table) is subtracted. The rest is compared with reading the file
with polars and computing the scores in one process.

Goals:

* ``tamis --help`` takes at most half a second.
* A filter on 60 x 20 000 and 60 x 100 000 numbers takes at most 3 times reading and scoring.
* On 50 000 x 2 000 numbers (a file of 439 MB), the peak is at most 2.5 times the float64 table.
* ``Ranking`` of 100 000 columns takes at most 3 times the computation of its scores.
* ``svm-rfe``, one column per step, on 80 x 1 500 is at least 30 times as fast as scikit-learn's
  ``RFE``, and has the same order.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import NamedTuple

import numpy as np
import polars as pl
from sklearn.feature_selection import RFE
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from tamis.criteria import FisherScore, WeightNorm
from tamis.search import Ranking, RecursiveElimination

HELP_GOAL, RATIO_GOAL, PEAK_GOAL, RANKING_GOAL = 0.5, 3.0, 2.5, 3.0
#: This goal is a minimum. The goals above are maxima.
ELIMINATION_GOAL = 30.0
REPEATS = 3


class Usage(NamedTuple):
    """Processor seconds and peak memory (bytes) of a process."""

    seconds: float
    peak: int


def usage(*args: object) -> Usage:
    """Return the usage of the command ``tamis`` with these arguments."""
    command = [sys.executable, "-m", "tamis.cli", *map(str, args)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(running.pid, 0)
    running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return Usage(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def seconds(*args: object) -> float:
    """Return the processor seconds of the command, as the median of a few runs."""
    return median(usage(*args).seconds for _ in range(REPEATS))


def timed(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the processor seconds of a function, as the median of a few runs."""
    taken = []
    for _ in range(repeats):
        start = process_time()
        work()
        taken.append(process_time() - start)
    return median(taken)


def write_wide(path: Path, n_rows: int, n_columns: int) -> None:
    """Write a table like gene expression: few rows, long names, numbers with all digits."""
    draw = np.random.default_rng(0)
    y = np.arange(n_rows) % 2
    X = draw.normal(size=(n_rows, n_columns)) + 0.5 * y[:, None]
    names = [f"ENSG{j:011d}" for j in range(n_columns)]
    frame = pl.DataFrame(X, schema=names)
    frame.with_columns(pl.Series("y", np.array(["case", "control"])[y])).write_csv(path)


def write_long(path: Path, n_rows: int, n_columns: int) -> None:
    """Write a table like measurements: many rows of integers with up to three digits."""
    draw = np.random.default_rng(0)
    names = [f"x{j}" for j in range(n_columns)]
    with path.open("wb") as stream:
        for start in range(0, n_rows, 5000):
            X = draw.integers(-999, 1000, size=(5000, n_columns))
            y = pl.Series("y", np.array(["a", "b"])[draw.integers(2, size=5000)])
            frame = pl.DataFrame(X, schema=names).with_columns(y)
            frame.write_csv(stream, include_header=start == 0)


def selection(path: Path) -> list[object]:
    """Return the command-line arguments for a filter on a file."""
    return ["select", path, "--target", "y", "fisher-score", "--features", 10]


def report_goal(what: str, value: float, unit: str, goal: float) -> str | None:
    """Print one line, and return the goal if it was missed."""
    print(f"{what}: {value:.2f} {unit} (goal {goal:g})")
    return f"{what} {value:.2f}" if value > goal else None


def wide(folder: Path, n_columns: int, start_up: float) -> str | None:
    """Compare the time of a filter on 60 rows with reading and scoring alone."""
    path = folder / f"wide-{n_columns}.csv"
    write_wide(path, 60, n_columns)

    def needed() -> None:
        frame = pl.read_csv(path)
        y = frame.drop_in_place("y").to_numpy()
        FisherScore().fit(frame.to_numpy(order="fortran"), y)

    ratio = (seconds(*selection(path)) - start_up) / timed(needed)
    path.unlink()
    return report_goal(f"filter on 60 x {n_columns}", ratio, "times reading and scores", RATIO_GOAL)


def long(folder: Path, n_rows: int = 50_000, n_columns: int = 2_000) -> str | None:
    """Measure the peak memory of a filter on a large file."""
    path = folder / "long.csv"
    write_long(path, n_rows, n_columns)
    ratio = usage(*selection(path)).peak / (8 * n_rows * n_columns)
    size = path.stat().st_size / 1e6
    path.unlink()
    what = f"filter on {n_rows} x {n_columns} ({size:.0f} MB)"
    return report_goal(what, ratio, "times the float64 table at its peak", PEAK_GOAL)


def ranking(n_columns: int = 100_000) -> str | None:
    """Compare the time of ``Ranking`` with the time of computing its scores."""
    draw = np.random.default_rng(0)
    X, y = np.asfortranarray(draw.normal(size=(60, n_columns))), np.arange(60) % 2
    alone = timed(lambda: FisherScore().fit(X, y))
    whole = timed(lambda: Ranking(FisherScore(), standardize=False).fit(X, y))
    return report_goal(
        f"Ranking of {n_columns} columns", whole / alone, "times the scores", RANKING_GOAL
    )


def elimination(n_rows: int = 80, n_columns: int = 1500) -> str | None:
    """Compare ``svm-rfe``, one column per step, with scikit-learn's RFE at a tolerance of 1e-9."""
    draw = np.random.default_rng(0)
    y = np.arange(n_rows) % 2
    X = scale(draw.normal(size=(n_rows, n_columns)) + 0.8 * np.outer(y, np.arange(n_columns) < 10))
    machine = SVC(kernel="linear", tol=1e-9)
    theirs = RFE(machine, n_features_to_select=1)
    ours = RecursiveElimination(WeightNorm(machine), n_features_to_select=1, standardize=False)
    ours.fit(X, y)  # compile, or load compiled code
    taken = [(timed(lambda: theirs.fit(X, y), 1), timed(lambda: ours.fit(X, y), 1)) for _ in "123"]
    slow, fast = (median(column) for column in zip(*taken, strict=True))
    same = bool((theirs.ranking_ == ours.ranking_).all())
    what = f"svm-rfe on {n_rows} x {n_columns}"
    order = "the same order" if same else "ANOTHER ORDER"
    print(
        f"{what}: RFE {slow:.2f} s, tamis {fast:.3f} s, ratio {slow / fast:.0f} (goal "
        f"{ELIMINATION_GOAL:g}), {order}"
    )
    return None if same and slow / fast >= ELIMINATION_GOAL else f"{what} {slow / fast:.0f}"


def main() -> None:
    """Print one line per goal."""
    missed = [report_goal("tamis --help", seconds("--help"), "s", HELP_GOAL)]
    missed.append(ranking())
    missed.append(elimination())
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_wide(folder / "small.csv", 60, 10)
        start_up = seconds(*selection(folder / "small.csv"))
        missed += [wide(folder, n_columns, start_up) for n_columns in (20_000, 100_000)]
        missed.append(long(folder))
    if short := [what for what in missed if what is not None]:
        raise SystemExit(f"more than promised: {', '.join(short)}")


if __name__ == "__main__":
    main()
