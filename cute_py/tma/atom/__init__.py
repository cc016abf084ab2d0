"""Atoms: operations, swizzle modes, the numbers of a tensor map, TMA tensors, partitions and multicast."""

from cute_py.tma.atom.im2col import Im2colPlan, Im2colWindow
from cute_py.tma.atom.multicast import create_tma_multicast_mask
from cute_py.tma.atom.op import OPS, Op, OpRow, as_op
from cute_py.tma.atom.partition import tma_partition
from cute_py.tma.atom.plan import BrokenCondition, TmaPlan, plan_tiled
from cute_py.tma.atom.smem_layout import SmemChoice, make_smem_layout, smem_atom, smem_choices
from cute_py.tma.atom.swizzle_mode import SWIZZLE_MODES, SwizzleRow, swizzle_row, why_not_swizzle
from cute_py.tma.atom.tiled_copy import TmaTiledCopy, make_tiled_copy
from cute_py.tma.atom.tma_tensor import tma_tensor

__all__ = [
    "BrokenCondition",
    "Im2colPlan",
    "Im2colWindow",
    "OPS",
    "Op",
    "OpRow",
    "SWIZZLE_MODES",
    "SmemChoice",
    "SwizzleRow",
    "TmaPlan",
    "TmaTiledCopy",
    "as_op",
    "create_tma_multicast_mask",
    "make_smem_layout",
    "make_tiled_copy",
    "plan_tiled",
    "smem_atom",
    "smem_choices",
    "swizzle_row",
    "tma_partition",
    "tma_tensor",
    "why_not_swizzle",
]
