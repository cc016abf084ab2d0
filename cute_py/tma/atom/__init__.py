"""Atoms: operations, swizzle modes, the numbers of a tensor map, TMA tensors, partitions and multicast."""

from __future__ import annotations

from cute_py.moved import forward
from cute_py.tma.atom.atom import TmaAtom, explain_atom
from cute_py.tma.atom.fixes import Fix, find_fixes
from cute_py.tma.atom.formats import FORMAT_OF, movable_type, tensor_map_format
from cute_py.tma.atom.gbasis import GBasis, GBasisTrace, coalesce_256, construct_tma_gbasis, make_cta_v_map, split_basis
from cute_py.tma.atom.im2col import Im2colPlan, Im2colWindow
from cute_py.tma.atom.im2col_atom import Im2colAtom, make_im2col_tma_copy
from cute_py.tma.atom.make import make_tma_atom, make_tma_copy
from cute_py.tma.atom.multicast import create_tma_multicast_mask
from cute_py.tma.atom.op import OPS, Op, as_op
from cute_py.tma.atom.partition import tma_partition
from cute_py.tma.atom.plan import BrokenCondition, TmaPlan, plan_tiled
from cute_py.tma.atom.smem_layout import SmemChoice, make_smem_layout, smem_atom, smem_choices
from cute_py.tma.atom.swizzle_mode import SWIZZLE_MODES, SwizzleRow, swizzle_row, why_not_swizzle
from cute_py.tma.atom.tile_atom import ExecutableCopy
from cute_py.tma.atom.tiled_copy import TmaTiledCopy, make_tiled_copy
from cute_py.tma.atom.tiles import Instructions, instructions
from cute_py.tma.atom.tma_tensor import tma_tensor
from cute_py.tma.descriptor.request import OpRow

__getattr__ = forward(__name__, "cute_py.tma")

__all__ = [
    "BrokenCondition",
    "ExecutableCopy",
    "FORMAT_OF",
    "Fix",
    "GBasis",
    "GBasisTrace",
    "Im2colAtom",
    "Im2colPlan",
    "Im2colWindow",
    "Instructions",
    "OPS",
    "Op",
    "OpRow",
    "SWIZZLE_MODES",
    "SmemChoice",
    "SwizzleRow",
    "TmaAtom",
    "TmaPlan",
    "TmaTiledCopy",
    "as_op",
    "coalesce_256",
    "construct_tma_gbasis",
    "create_tma_multicast_mask",
    "explain_atom",
    "find_fixes",
    "instructions",
    "make_cta_v_map",
    "make_im2col_tma_copy",
    "make_smem_layout",
    "make_tiled_copy",
    "make_tma_atom",
    "make_tma_copy",
    "movable_type",
    "plan_tiled",
    "smem_atom",
    "smem_choices",
    "split_basis",
    "swizzle_row",
    "tensor_map_format",
    "tma_partition",
    "tma_tensor",
    "why_not_swizzle",
]
