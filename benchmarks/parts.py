"""Tables larger than memory: mRMR and J3 from a Parquet file, against reading and counting alone.

    python -m benchmarks.parts
    python -m benchmarks.parts 30000000 100 50

Arguments are rows, columns and picks (steps of mRMR). mRMR and J3 run in processes of their own. In
the same run, they are compared with reading the cached file once, with the products of J3 alone,
and with ``np.bincount`` of pairs on one core. Memory is the increase of the peak of the mRMR
process. The number of threads is the number of cores, or OMP_NUM_THREADS.

Goals:

* A pick counts at least 5 times as fast as ``np.bincount`` on all cores, at 10 levels.
* The last picks take at most 1.1 times as long as the first.
* J3 takes at most 1.5 times as long as reading and products.
* The memory is at most the size of the bit planes plus 1 GiB.
"""

import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from joblib import cpu_count
from scipy.linalg.blas import dsyrk

from tamis.blocks import Parquet
from tamis.blocks.labels import TargetLabels
from tamis.blocks.table import BlockTable
from tamis.criteria import MRMR, Scatter
from tamis.search import FloatingForward

LEVELS = 10
PICK_GOAL, LAST_GOAL, SCATTER_GOAL, MEMORY_GOAL = 5.0, 1.1, 1.5, 1.0
ROW_GROUP = 1 << 17
#: Number of first and of last steps whose medians are compared, because single steps are noisy.
ENDS = 4


class Size(NamedTuple):
    """Size of the table, and number of columns to select."""

    n_rows: int
    n_columns: int
    n_picks: int


#: Default size.
SMALL = Size(500_000, 100, 10)


def write(path: Path, size: Size) -> None:
    """Write weakly correlated float32 columns and two classes, one row group at a time."""
    draw = np.random.default_rng(0)
    names = [f"x{j}" for j in range(size.n_columns)]
    schema = pa.schema([*((name, pa.float32()) for name in names), ("y", pa.int8())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, size.n_rows, ROW_GROUP):
            n = min(ROW_GROUP, size.n_rows - start)
            X = draw.standard_normal((size.n_columns, n), dtype=np.float32)
            X[1:] += 0.3 * X[:-1]
            y = (X[::7].sum(axis=0) + draw.normal(size=n) > 0).astype(np.int8)
            writer.write_table(pa.table([*X, y], schema=schema), row_group_size=n)


def table_of(path: str) -> BlockTable:
    """Return the file in the form that criteria receive."""
    source = Parquet(path, target="y")
    return BlockTable(source, source.reduce(TargetLabels("parts"), target_only=True), "parts")


def seconds(work: Callable[[], Any]) -> float:
    """Return the seconds of a call."""
    start = perf_counter()
    work()
    return perf_counter() - start


def reading(path: str) -> float:
    """Return the seconds to read every block once, with the file in the cache."""
    source = Parquet(path, target="y")
    for _ in range(2):
        found = seconds(lambda: sum(len(block.y) for block in source.blocks()))
    return found


def products(size: Size) -> float:
    """Return the seconds to compute the products of all pairs of columns of a table in memory."""
    rows, total = np.zeros((4096, size.n_columns), order="F"), None
    total = np.zeros((size.n_columns, size.n_columns), order="F")
    once = min(
        seconds(lambda: dsyrk(1.0, rows, 1.0, total, trans=1, overwrite_c=1)) for _ in range(20)
    )
    return once * size.n_rows / 4096


def bincount_rate() -> float:
    """Return the number of pairs of levels that ``np.bincount`` counts per second and core."""
    one, other = np.random.default_rng(0).integers(0, LEVELS, size=(2, 1_000_000))
    return 1e6 / min(seconds(lambda: np.bincount(one * LEVELS + other)) for _ in range(5))


def _held() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 2**20


def mrmr(path: str, size: Size, pipe: Any) -> None:
    """Send seconds of preparation, seconds and CPU seconds of each step, and peak memory in GiB."""
    small = Size(5000, size.n_columns, 3)
    with TemporaryDirectory() as folder:  # compilation is not counted
        write(Path(folder) / "small.parquet", small)
        MRMR(n_bins=LEVELS).fit(table_of(f"{folder}/small.parquet")).gain(
            np.array([0]), np.array([1])
        )
    before = _held()
    table, criterion = table_of(path), MRMR(n_bins=LEVELS)
    prepared, everything = seconds(lambda: criterion.fit(table)), np.arange(size.n_columns)
    chosen = np.array([int(criterion.relevance_.argmax())])
    picks, spent = [], []
    for _ in range(1, size.n_picks):
        start, begun = perf_counter(), process_time()
        left = np.setdiff1d(everything, chosen)
        gains = criterion.gain(chosen, left)
        picks.append(perf_counter() - start)
        spent.append(process_time() - begun)
        chosen = np.sort(np.append(chosen, left[gains.argmax()]))
    pipe.send((prepared, picks, float(np.median(spent)), _held() - before))


def floating(path: str, size: Size, pipe: Any) -> None:
    """Send the seconds of a floating search by J3 on the file."""
    search = FloatingForward(Scatter("J3"), n_features_to_select=min(10, size.n_columns))
    pipe.send(seconds(lambda: search.fit(path, target="y")))


def apart(work: Callable[..., None], *args: Any) -> Any:
    """Run a function in its own process, and return its result."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(*args, theirs))
    process.start()
    found = ours.recv()
    process.join()
    return found


def main(size: Size = SMALL) -> None:
    """Print the comparison; exit with an error if a goal is missed."""
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "table.parquet")
        write(Path(path), size)
        read, multiplied = reading(path), products(size)
        prepared, picks, spent, held = apart(mrmr, path, size)
        walked = apart(floating, path, size)
    rate = size.n_rows * size.n_columns / float(np.median(picks))
    counted = bincount_rate()
    faster = rate / counted / cpu_count()
    alone = size.n_rows * size.n_columns / spent / counted
    planes = size.n_rows * size.n_columns / 2 / 2**30
    last = np.median(picks[-ENDS:]) / np.median(picks[:ENDS])
    ratio = walked / (read + multiplied)
    print(f"  {size.n_rows} x {size.n_columns} float32 in Parquet, {cpu_count()} cores:")
    print(f"    reading {read:.2f} s, mRMR prepared in {prepared:.2f} s ({prepared / read:.1f}x)")
    print(f"    a pick {np.median(picks):.3f} s, {rate / 1e9:.2f} G counts/s,", end=" ")
    print(f"{faster:.1f} times bincount on all cores (goal {PICK_GOAL}); last / first {last:.2f}")
    print(f"      by CPU time {alone:.1f} times, independent of other load")
    print(f"    {held:.2f} GiB held, planes have {planes:.2f} (goal {planes + MEMORY_GOAL:.2f})")
    print(f"    J3 {walked:.2f} s, {ratio:.2f} times reading and products (goal {SCATTER_GOAL})")
    if (
        faster < PICK_GOAL
        or last > LAST_GOAL
        or held > planes + MEMORY_GOAL
        or ratio > SCATTER_GOAL
    ):
        raise SystemExit("tables in parts miss a goal")


if __name__ == "__main__":
    main(*([Size(*map(int, sys.argv[1:4]))] if len(sys.argv) == 4 else []))
