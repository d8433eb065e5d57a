"""Tables larger than memory, as sources of row blocks.

A search takes a source in place of ``X`` where its criterion takes parts, and so it takes what
:func:`as_parts` makes one of: the path of a Parquet file or folder with ``target="name"``, ``.npy``
files, collections of Dask. The answer is the one of the whole table, however it is cut into blocks.
"""

from tamis.table.parts.arrays import BlockIterator, MemoryMap
from tamis.table.parts.cluster import ClusterParts
from tamis.table.parts.local import KeptHere, LocalParts
from tamis.table.parts.parquet import Parquet
from tamis.table.parts.sources import as_parts, sample

__all__ = [
    "BlockIterator",
    "ClusterParts",
    "KeptHere",
    "LocalParts",
    "MemoryMap",
    "Parquet",
    "as_parts",
    "sample",
]
