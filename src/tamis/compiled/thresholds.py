"""Problem sizes from which compiled loops replace numpy, and the amount of work in a single call.

Loading numba and its first loop from the cache takes about 0.4 s of CPU time. The very first
compilation takes seconds. A loop is not used if it saves less time in a search than loading takes.
"""

from collections.abc import Callable, Iterator
from typing import Any

from tamis._parallel import in_order, threads_for

#: With at least this many table entries, compiled loops encode the columns and count their levels.
#: At this size, a pass with numpy takes 0.5 ms, and a compiled pass takes 0.05 ms. A search makes
#: hundreds of passes. On smaller tables the gain does not cover the loading time.
COUNTED_ENTRIES = 200_000

#: A contingency table with up to this many cells is counted with bit sets. For larger tables a
#: histogram is faster. For 128 samples, bit sets take 0.67 ns per cell. A histogram takes 1 ns per
#: sample, for any number of cells.
CELLS_BY_BITS = 240

#: The same limit for row blocks that are stored as bit planes. Bit sets are then computed from the
#: planes. For 450 samples, bit planes take 1 ns per cell. A histogram takes 0.67 ns per sample, or
#: twice that if most samples are in the same cell.
CELLS_BY_PLANES = 300

#: With at least this many exponentials per step, kernel sums use compiled loops. Including the
#: distances, numpy takes 4 ns for each exponential and a compiled loop takes 0.6 ns. At this
#: number, an elimination with dozens of steps saves as much time as loading numba takes.
KERNEL_TERMS = 4_000_000

#: Compiled loops find the nearest neighbours for all candidates at once if a table has at least
#: this many columns and at most this many rows. With fewer columns, scikit-learn finishes before
#: the loops are loaded. With more rows, scikit-learn's search trees are faster for small subsets.
NEIGHBOUR_COLUMNS = 16
NEIGHBOUR_ROWS = 10_000

#: Compiled loops compare pairs of rows if the number of pairs times the number of columns is at
#: least this. numpy takes 5 ns per difference, and a compiled loop takes 0.2 ns. At this number,
#: one comparison of all pairs saves about half the loading time. Resamples and folds repeat the
#: comparison.
COMPARED_PAIRS = 50_000_000

#: Compiled loops compute the mean outputs of a tree ensemble if it would have to predict at least
#: this many altered rows. A forest of 100 trees takes half a second for this number. Loading the
#: loops takes one second, and compiling them takes several.
ALTERED_ROWS = 100_000

#: Maximum number of terms (multiplications, exponentials, comparisons) in a call of a compiled
#: loop. A call cannot be interrupted, so it must be short. At 1 ns for each term, a call takes at
#: most a fifth of a second.
ONE_CALL = 200_000_000


#: Number of parts into which work is split for threads. There are enough parts to keep all threads
#: busy. The number of parts does not depend on the number of threads, so that sums are always added
#: in the same order.
SHARED_PARTS = 32


def in_calls(n: int, terms: float, *, shared: bool = False) -> Iterator[slice]:
    """Yield slices of ``n`` items, one slice for each call of a compiled loop.

    Each item has ``terms`` terms. A slice has at most ``ONE_CALL`` terms, unless it consists of a
    single item. If ``shared``, slices are smaller, so that threads can share the work.

    >>> list(in_calls(5, ONE_CALL / 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, int(ONE_CALL / max(terms, 1.0)))
    if shared:
        size = min(size, -(-n // SHARED_PARTS))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def shared_calls(function: Callable[[slice], Any], n: int, terms: float) -> list[Any]:
    """Apply a function to slices of ``n`` items, and return the list of its results.

    Each item has ``terms`` terms. Threads share the slices unless there is too little work. The
    result of an item must not depend on its slice.
    """
    n_threads = threads_for(n * terms)
    return list(in_order(function, list(in_calls(n, terms, shared=n_threads > 1)), n_threads))
