"""From which size on a compiled loop is used in place of numpy, and why from there.

Loading numba and its first loop from the cache costs about 0.4 s of processor time; compiling them
for the first time on a machine takes seconds. A search that a loop shortens by less is left to
numpy.
"""

#: Entries of a table from which its columns are coded and counted by compiled loops. A pass of
#: numpy over so many takes half a millisecond, a compiled one a tenth of that, and a search makes
#: hundreds of passes: below, what is gained does not pay for the loading.
COUNTED_ENTRIES = 200_000

#: Pairs of levels (of a column and of a pivot) up to which counts are popcounts of bit sets. A pair
#: costs a bit set two thirds of a nanosecond for 128 samples, the histogram a nanosecond a sample
#: whatever the number of levels: beyond this the histogram is faster.
CELLS_BY_BITS = 240

#: Exponentials of one step from which kernel sums are compiled. numpy makes one in 4 nanoseconds,
#: distances included, a loop in 0.6: the dozens of steps of an elimination with so many take numpy
#: as long as the loading.
KERNEL_TERMS = 4_000_000

#: Columns from which, and rows up to which, nearest neighbours are found for all candidates at
#: once. With fewer columns scikit-learn is done before the loops are loaded; with more rows its
#: trees, which look at few of them, win while the subset is small.
NEIGHBOUR_COLUMNS = 16
NEIGHBOUR_ROWS = 10_000
