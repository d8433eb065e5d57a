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
