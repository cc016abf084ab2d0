"""Atoms: operations, swizzle modes, the numbers of a tensor map, TMA tensors, partitions and multicast."""

from __future__ import annotations

from cute_py.moved import forward
from cute_py.tma.atom.atom import TmaAtom, explain_atom
from cute_py.tma.atom.gbasis import GBasis, GBasisTrace, coalesce_256, construct_tma_gbasis, make_cta_v_map, split_basis
from cute_py.tma.atom.im2col import Im2colAtom, Im2colPlan, Im2colWindow, make_im2col_tma_copy
from cute_py.tma.atom.make import Fix, find_fixes, make_tma_atom, make_tma_copy
from cute_py.tma.atom.op import (
    FORMAT_OF,
    OPS,
    SWIZZLE_MODES,
    Op,
    SwizzleRow,
    as_op,
    movable_type,
    swizzle_row,
    tensor_map_format,
    why_not_swizzle,
)
from cute_py.tma.atom.partition import (
    create_tma_multicast_mask,
    make_tma_copy_tiled,
    tma_partition,
    tma_tensor,
)
from cute_py.tma.atom.smem_layout import SmemChoice, make_smem_layout, smem_atom, smem_choices
from cute_py.tma.atom.tile_atom import BrokenCondition, ExecutableCopy, TmaPlan, plan_tiled
from cute_py.tma.atom.tiles import Coverage, Instructions, check_smem_address, coverage, instructions
from cute_py.tma.descriptor.request import OpRow

__getattr__ = forward(__name__, "cute_py.tma")

__all__ = [
    "BrokenCondition",
    "Coverage",
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
    "as_op",
    "check_smem_address",
    "coalesce_256",
    "construct_tma_gbasis",
    "coverage",
    "create_tma_multicast_mask",
    "explain_atom",
    "find_fixes",
    "instructions",
    "make_cta_v_map",
    "make_im2col_tma_copy",
    "make_smem_layout",
    "make_tma_copy_tiled",
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
