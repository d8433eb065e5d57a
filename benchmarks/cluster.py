"""mRMR on a cluster: two workers compared with one, and the overhead of a step.

    python -m benchmarks.cluster
    python -m benchmarks.cluster 8000000 100

Arguments are rows and columns. Workers are processes with one thread on this machine. A pick is one
step of mRMR. Two clusters, with one and with two workers, run at the same time and pick
alternately, so that other load affects both equally. The overhead is the time of a pick with few
rows, minus the time of counting.

Goals: two workers pick at least 1.5 times as fast as one. The overhead of a pick is at most 40 ms,
with 64 and with 256 blocks.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from dask.distributed import Client, LocalCluster

from benchmarks import parts
from benchmarks.parts import LEVELS, Size, seconds, write
from tamis.blocks import ClusterBlocks, Parquet
from tamis.blocks.labels import TargetLabels
from tamis.blocks.table import BlockTable
from tamis.criteria import MRMR

FASTER_GOAL, OVERHEAD_GOAL = 1.5, 0.040
SMALL = Size(4_000_000, 100, 12)
FEW_ROWS = 200


@contextmanager
def workers(n_workers: int) -> Iterator[Any]:
    """Return a client of a cluster with this number of processes."""
    options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(n_workers=n_workers, **options) as machines:
        client = Client(machines, set_as_default=False)
        with client:
            yield client


class Picking:
    """A fitted criterion whose coded columns are stored on the workers."""

    def __init__(self, path: Path, client: Any):
        source: Any = Parquet(path, target="y")
        if client is not None:  # otherwise in this process
            source = ClusterBlocks(source, client)
        labels = source.reduce(TargetLabels("cluster"), target_only=True)
        self.criterion = MRMR(n_bins=LEVELS).fit(BlockTable(source, labels, "cluster"))
        self.chosen = np.array([int(self.criterion.relevance_.argmax())])
        self.seconds: list[float] = []

    def pick(self) -> None:
        """Select one more column."""
        left = np.setdiff1d(np.arange(len(self.criterion.relevance_)), self.chosen)
        gains: list[Any] = []
        self.seconds.append(seconds(lambda: gains.append(self.criterion.gain(self.chosen, left))))
        self.chosen = np.sort(np.append(self.chosen, left[gains[0].argmax()]))


def in_turns(path: Path, clients: list[Any], n_picks: int) -> list[list[float]]:
    """Return the seconds of each step, for each client."""
    ready = [Picking(path, client) for client in clients]
    for _ in range(n_picks):
        for one in ready:
            one.pick()
    return [one.seconds for one in ready]


def overhead(folder: Path, client: Any, n_blocks: int) -> float:
    """Return the overhead of a step with two workers, in seconds."""
    path, before = folder / f"{n_blocks}.parquet", parts.ROW_GROUP
    try:
        parts.ROW_GROUP = FEW_ROWS
        write(path, Size(n_blocks * FEW_ROWS, 100, 0))
    finally:
        parts.ROW_GROUP = before
    there, here = map(np.median, in_turns(path, [client, None], 30))
    return float(there - here / 2)


def main(size: Size = SMALL) -> None:
    """Print the comparison; exit with an error if a goal is missed."""
    with TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        path = folder / "table.parquet"
        write(path, size)
        one, two = (stack.enter_context(workers(n)) for n in (1, 2))
        alone, together = map(np.array, in_turns(path, [one, two], size.n_picks))
        extra = {n: overhead(folder, two, n) for n in (64, 256)}
    faster, best = float(np.median(alone / together)), alone.min() / together.min()
    print(f"  {size.n_rows} x {size.n_columns}, a pick {np.median(alone):.3f} s on one worker:")
    print(f"    two workers {faster:.2f} times as fast, best {best:.2f} (goal {FASTER_GOAL})")
    for n_blocks, spent in extra.items():
        print(f"    overhead with {n_blocks} blocks {1000 * spent:.0f} ms", end=" ")
        print(f"(goal {1000 * OVERHEAD_GOAL:.0f})")
    if max(faster, best) < FASTER_GOAL or max(extra.values()) > OVERHEAD_GOAL:
        raise SystemExit("a cluster misses a goal")


if __name__ == "__main__":
    main(*([Size(*map(int, sys.argv[1:3]), SMALL.n_picks)] if len(sys.argv) == 3 else []))
