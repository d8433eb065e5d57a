"""Former home of :mod:`tamis.blocks`, whose names are also available here."""

from tamis import blocks
from tamis.blocks import *  # noqa: F403

as_parts = blocks.as_blocks
ClusterParts = blocks.ClusterBlocks
LocalParts = blocks.LocalBlocks
