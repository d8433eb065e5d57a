"""Sparse tables: mRMR on 88 119 columns with 1 % of entries, against the same dense table.

python -m benchmarks.sparse

Whole searches are timed, including validation and coding. Memory is the increase of the peak during
the search.
"""

from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csc_array, random_array

from benchmarks import medians
from tamis.criteria import MRMR
from tamis.search import Forward

#: Size of the table, share of non-zero entries, number of steps, and number of columns compared.
N_SAMPLES, N_FEATURES, FILLING, PICKS, PART = 800, 88_119, 0.01, 50, 2000
#: Largest accepted memory beyond the table, in megabytes, and smallest accepted ratio of times.
MEMORY_GOAL, RATIO_GOAL = 300, 2


def counts(n_features: int = N_FEATURES) -> tuple[Any, np.ndarray]:
    """Return small counts, mostly 0. The first 100 columns are nonzero more often in one class."""
    draw = np.random.default_rng(0)
    X = random_array((N_SAMPLES, n_features), density=FILLING, rng=draw, format="lil")
    y = draw.integers(2, size=N_SAMPLES)
    for j in range(100):
        X[np.flatnonzero((y == 1) & (draw.random(N_SAMPLES) < 0.02 + j / 500)), j] = 0.5
    X = csc_array(X)
    X.data = np.ceil(3 * X.data)
    return X, y


def search() -> Forward:
    """Return a search that selects 50 columns by mRMR."""
    return Forward(MRMR(), n_features_to_select=PICKS)


def _held() -> float:
    """Return the peak memory in MB. ``getrusage`` would include the parent process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024


def _needed(X: Any, y: np.ndarray, written_out: bool, pipe: Any) -> None:
    search().fit(X[:, :500], y)  # imports and compilation are not measured
    X = X.toarray(order="F") if written_out else X
    before = _held()
    search().fit(X, y)
    pipe.send(_held() - before)


def megabytes(X: Any, y: np.ndarray, *, written_out: bool) -> float:
    """Return the memory in MB that a search needs in addition to its table."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_needed, args=(X, y, written_out, theirs))
    process.start()
    found = ours.recv()
    process.join()
    return float(found)


def main() -> None:
    """Print the comparison; exit with an error if a goal is missed."""
    X, y = counts()
    part = X[:, :PART]
    same = np.array_equal(
        search().fit(part, y).order_[:PICKS], search().fit(part.toarray(), y).order_[:PICKS]
    )
    tables = [X.toarray(order="F")]
    dense, sparse = medians(lambda: search().fit(tables[0], y), lambda: search().fit(X, y))
    tables.clear()
    needed, written = (megabytes(X, y, written_out=way) for way in (False, True))
    print(f"  mRMR, {PICKS} of {N_FEATURES}, {N_SAMPLES} samples, {FILLING:.0%} of entries:")
    print(f"    sparse {sparse:.2f} s and {needed:.0f} MB above the table (goal {MEMORY_GOAL})")
    print(f"    written out {dense:.2f} s and {written:.0f} MB, ratio {dense / sparse:.1f}")
    print(f"    {'the same' if same else 'another'} order on {PART} columns")
    if not same or needed > MEMORY_GOAL or dense / sparse < RATIO_GOAL:
        raise SystemExit("sparse mRMR misses a goal")


if __name__ == "__main__":
    main()
