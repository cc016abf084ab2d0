"""Atoms: which thread holds which element, as CuTe C++ has it. Read `mma_atom`, `tiled_mma`, `tiled_copy` first."""

from __future__ import annotations

from cute_py.atom.copy_atom import CopyAtom, CopyTraits
from cute_py.atom.copy_atoms import COPY_ATOMS, copy_atom
from cute_py.atom.copy_tiled import copy_registers, copy_tiled
from cute_py.atom.fragments import (
    make_fragment_A,
    make_fragment_B,
    make_fragment_C,
    make_fragment_like,
    make_tensor_like,
    recast_ptr,
)
from cute_py.atom.gemm import compress, expand, gemm
from cute_py.atom.make_tiled_copy import (
    make_cotiled_copy,
    make_tiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_C_atom,
    make_tiled_copy_D,
    make_tiled_copy_S,
    make_tmem_copy,
)
from cute_py.atom.mma_atom import FragmentType, MmaAtom
from cute_py.atom.mma_atoms import MMA_ATOMS, find_mma_atoms, mma_atom
from cute_py.atom.smem_descriptor import DescriptorKind, Major, SmemDescriptor, SmemSwizzle
from cute_py.atom.smem_layouts import (
    SmemOperand,
    find_smem_operand,
    gmma_layout,
    make_gmma_desc,
    make_umma_desc,
    rs_smem_selector,
    sm100_smem_selector,
    ss_smem_selector,
    umma_layout,
)
from cute_py.atom.tiled_copy import ThrCopy, TiledCopy
from cute_py.atom.tiled_mma import ThrMma, TiledMma, make_tiled_mma

__all__ = [
    "COPY_ATOMS",
    "MMA_ATOMS",
    "CopyAtom",
    "CopyTraits",
    "DescriptorKind",
    "FragmentType",
    "Major",
    "MmaAtom",
    "SmemDescriptor",
    "SmemOperand",
    "SmemSwizzle",
    "ThrCopy",
    "ThrMma",
    "TiledCopy",
    "TiledMma",
    "compress",
    "copy_atom",
    "copy_registers",
    "copy_tiled",
    "expand",
    "find_mma_atoms",
    "find_smem_operand",
    "gemm",
    "gmma_layout",
    "make_cotiled_copy",
    "make_fragment_A",
    "make_fragment_B",
    "make_fragment_C",
    "make_fragment_like",
    "make_gmma_desc",
    "make_tensor_like",
    "make_tiled_copy",
    "make_tiled_copy_A",
    "make_tiled_copy_B",
    "make_tiled_copy_C",
    "make_tiled_copy_C_atom",
    "make_tiled_copy_D",
    "make_tiled_copy_S",
    "make_tiled_mma",
    "make_tmem_copy",
    "make_umma_desc",
    "mma_atom",
    "recast_ptr",
    "rs_smem_selector",
    "sm100_smem_selector",
    "ss_smem_selector",
    "umma_layout",
]
