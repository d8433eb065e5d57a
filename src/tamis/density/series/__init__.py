"""Gaussian kernels as columns leave or enter: all columns at once, by matrix products.

Altering a column x multiplies the kernel by exp(±γ (x - x')²). In units z = √(2γ) x, centred on
the middle of the column's range, and with s = 1 where the column leaves and -1 where it enters,

    exp(s (z - z')² / 2) - 1 = v + v' + v v' + Σ_k (-s)^k / k! w_k w_k',   k = 1, 2, ...,
    v = expm1(s z² / 2),  w_k = (1 + v) z^k,

is a short sum where the column's range is small beside the width of the kernel, and every term is
as small as what is asked, so that differences keep their digits. Columns that are too steep for it
go elementwise, one at a time.

Arrays are those of any library that keeps the array API; a kernel matrix is never held, only a
strip of its rows.
"""

from tamis.density.series.outputs import OutputChange, output_changes
from tamis.density.series.pairs import PairChanges, pair_changes
from tamis.density.series.rows import ClassChanges, SumScore, class_changes
from tamis.density.series.table import ScaledColumns, in_memory, ranks

__all__ = [
    "ClassChanges",
    "OutputChange",
    "PairChanges",
    "ScaledColumns",
    "SumScore",
    "class_changes",
    "in_memory",
    "output_changes",
    "pair_changes",
    "ranks",
]
