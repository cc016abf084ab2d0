"""Tensors that are distributed over devices: the part of each device, and the copies between two distributions."""

from cute_py.deprecations import export_public
from cute_py.mesh.frameworks import from_dtensor as from_dtensor
from cute_py.mesh.frameworks import from_partition_spec as from_partition_spec
from cute_py.mesh.placements import BlockCyclic as BlockCyclic
from cute_py.mesh.placements import Partial as Partial
from cute_py.mesh.placements import Placement as Placement
from cute_py.mesh.placements import Replicate as Replicate
from cute_py.mesh.placements import SectionedShard as SectionedShard
from cute_py.mesh.placements import Shard as Shard
from cute_py.mesh.placements import StridedShard as StridedShard
from cute_py.mesh.placements import Zigzag as Zigzag
from cute_py.mesh.redistribution import Redistribution as Redistribution
from cute_py.mesh.redistribution import redistribute as redistribute
from cute_py.mesh.scaled_shards import ScaledSharding as ScaledSharding
from cute_py.mesh.sharded_layout import ShardedLayout as ShardedLayout
from cute_py.mesh.sharded_layout import distribute as distribute
from cute_py.mesh.transfer import Transfer as Transfer

export_public(__name__)
