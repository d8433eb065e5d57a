"""Former name of :mod:`tamis.blocks`, kept so that old imports still work."""

from tamis import blocks
from tamis.blocks import *  # noqa: F403

as_parts = blocks.as_blocks
ClusterParts = blocks.ClusterBlocks
LocalParts = blocks.LocalBlocks
