"""From which size on a compiled loop is used in place of numpy, up to which in one call, and why.

Loading numba and its first loop from the cache costs about 0.4 s of processor time; compiling them
for the first time on a machine takes seconds. A search that a loop shortens by less is left to
numpy.
"""

from collections.abc import Callable, Iterator
from typing import Any

from tamis._parallel import in_order, is_shared, threads_for

#: Entries of a table from which its columns are coded and counted by compiled loops. A pass of
#: numpy over so many takes half a millisecond, a compiled one a tenth of that, and a search makes
#: hundreds of passes: below, what is gained does not pay for the loading.
COUNTED_ENTRIES = 200_000

#: Pairs of levels (of a column and of a pivot) up to which counts are popcounts of bit sets. A pair
#: costs a bit set two thirds of a nanosecond for 128 samples, the histogram a nanosecond a sample
#: whatever the number of levels: beyond this the histogram is faster.
CELLS_BY_BITS = 240

#: The same for bit planes of row blocks, whose level sets are made anew: a pair of levels costs
#: them a nanosecond for 450 samples, the histogram two thirds of one a sample, with the levels
#: unpacked; twice that where most rows share a cell.
CELLS_BY_PLANES = 300

#: Exponentials of one step from which kernel sums are compiled. numpy makes one in 4 nanoseconds,
#: distances included, a loop in 0.6: the dozens of steps of an elimination with so many take numpy
#: as long as the loading.
KERNEL_TERMS = 4_000_000

#: Columns from which, and rows up to which, nearest neighbours are found for all candidates at
#: once. With fewer columns scikit-learn is done before the loops are loaded; with more rows its
#: trees, which look at few of them, win while the subset is small.
NEIGHBOUR_COLUMNS = 16
NEIGHBOUR_ROWS = 10_000

#: Pairs of rows, times columns, from which weighted differences are compiled. numpy makes one in 4
#: nanoseconds, a loop in a third of one: so many take numpy as long as the loading.
COMPARED_PAIRS = 100_000_000

#: Terms (multiplications, exponentials, comparisons) of one call of a compiled loop, which cannot
#: be interrupted: of the slowest, at a nanosecond each, a fifth of a second's work.
ONE_CALL = 200_000_000


#: Parts into which calls that threads share are cut, so that all are busy to the end; their number
#: does not depend on that of the threads, nor does the order in which their sums are added up.
SHARED_PARTS = 32


def in_calls(n: int, terms: float, *, shared: bool = False) -> Iterator[slice]:
    """Parts of ``n`` items of so many terms each, one for every call, which threads may share.

    >>> list(in_calls(5, ONE_CALL / 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, int(ONE_CALL / max(terms, 1.0)))
    if shared:
        size = min(size, -(-n // SHARED_PARTS))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def shared_calls(function: Callable[[slice], Any], n: int, terms: float) -> list[Any]:
    """What a compiled loop makes of parts of ``n`` items of so many terms each, in their order.

    Threads share the parts unless there is too little work; how these are cut does not depend on
    the number of threads.
    """
    parts = list(in_calls(n, terms, shared=is_shared(n * terms)))
    return list(in_order(function, parts, threads_for(n * terms)))
