"""Tensors over many devices: who holds what, and the copies that lead from one distribution to another."""

from __future__ import annotations

from cute_py.mesh.frameworks import from_dtensor, from_partition_spec
from cute_py.mesh.placements import (
    BlockCyclic,
    Partial,
    Replicate,
    SectionedShard,
    Shard,
    StridedShard,
    Zigzag,
)
from cute_py.mesh.placements import (
    Placement as Placement,
)
from cute_py.mesh.redistribution import Redistribution, redistribute
from cute_py.mesh.sharded_layout import ShardedLayout, distribute
from cute_py.mesh.transfer import Transfer

__all__ = [
    "BlockCyclic",
    "Partial",
    "Redistribution",
    "Replicate",
    "SectionedShard",
    "Shard",
    "ShardedLayout",
    "StridedShard",
    "Transfer",
    "Zigzag",
    "distribute",
    "from_dtensor",
    "from_partition_spec",
    "redistribute",
]
