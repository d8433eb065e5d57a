"""Former home of :mod:`tamis.blocks`, whose names are also available here."""

from tamis.blocks import (
    BlockIterator,
    ClusterBlocks,
    KeptHere,
    LocalBlocks,
    MemoryMap,
    Parquet,
    as_blocks,
    sample,
)

as_parts, ClusterParts, LocalParts = as_blocks, ClusterBlocks, LocalBlocks

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
