"""Tables larger than memory, as sources of row blocks.

A search accepts a source in place of ``X`` if its criterion can learn from row blocks. It also
accepts everything that :func:`as_blocks` turns into a source: the path of a Parquet file or folder
with ``target="name"``, ``.npy`` files, and Dask collections. The result does not depend on how the
rows are divided into blocks.
"""

from tamis.blocks.dask_cluster import ClusterBlocks
from tamis.blocks.dispatch import as_blocks, sample
from tamis.blocks.local import KeptHere, LocalBlocks
from tamis.blocks.memory_map import BlockIterator, MemoryMap
from tamis.blocks.parquet import Parquet

__all__ = [
    "BlockIterator",
    "ClusterBlocks",
    "KeptHere",
    "LocalBlocks",
    "MemoryMap",
    "Parquet",
    "as_blocks",
    "sample",
]
