"""Atoms: operations, swizzle modes, the numbers of a tensor map, TMA tensors, partitions and multicast."""

from cute_py.tma.atom.cache_mode import CACHE_MODES, CacheMode, L2Policy, as_cache_mode
from cute_py.tma.atom.descriptor_builder import build_tma_descriptor, build_tma_descriptor_im2col
from cute_py.tma.atom.dialect_descriptor import (
    TmaDescriptorIm2col,
    TmaDescriptorTiled,
    TmaUpdate,
    TmaUpdateKind,
    apply_update,
)
from cute_py.tma.atom.exec_atom import (
    BulkTensorCopy,
    ExecTmaAtom,
    ExpectTx,
    PrefetchDescriptor,
    TransactionBarrier,
    lower_tma_load,
    lower_tma_store,
    make_exec_tma,
)
from cute_py.tma.atom.family import (
    ATOM_FAMILY,
    TmaOperation,
    non_exec_tiled_tma_load,
    non_exec_tiled_tma_reduce,
    non_exec_tiled_tma_store,
    prefetch_tma_desc,
    tma_descriptor_im2col,
    tma_descriptor_tiled,
    tma_load,
    tma_reduce,
    tma_store,
)
from cute_py.tma.atom.flags import FLAG_ROWS, TmaFlags
from cute_py.tma.atom.im2col import Im2colPlan, Im2colWindow
from cute_py.tma.atom.mlir_text import type_text
from cute_py.tma.atom.modes import TmaLoadMode, TmaReduceKind, TmaStoreMode, as_load_mode, as_reduce_kind, as_store_mode
from cute_py.tma.atom.multicast import create_tma_multicast_mask
from cute_py.tma.atom.non_exec_atom import NonExecTmaAtom, TmaTensorType
from cute_py.tma.atom.op import OPS, Op, OpRow, as_op
from cute_py.tma.atom.partition import tma_partition
from cute_py.tma.atom.plan import BrokenCondition, TmaPlan, plan_tiled
from cute_py.tma.atom.record import TmaPartitionResult
from cute_py.tma.atom.reductions import REDUCTION_TYPES, why_not_reduction
from cute_py.tma.atom.smem_layout import SmemChoice, make_smem_layout, smem_atom, smem_choices
from cute_py.tma.atom.swizzle_mode import SWIZZLE_MODES, SwizzleRow, swizzle_row, why_not_swizzle
from cute_py.tma.atom.tiled_copy import TmaTiledCopy, make_tiled_copy
from cute_py.tma.atom.tma_tensor import tma_tensor
from cute_py.tma.atom.verifier import PartitionWalk, partition, verify_partition
from cute_py.tma.atom.verifier_dialects import DIALECTS
from cute_py.tma.atom.verifier_steps import STEPS

__all__ = [
    "ATOM_FAMILY",
    "BrokenCondition",
    "BulkTensorCopy",
    "CACHE_MODES",
    "CacheMode",
    "DIALECTS",
    "ExecTmaAtom",
    "ExpectTx",
    "FLAG_ROWS",
    "Im2colPlan",
    "Im2colWindow",
    "L2Policy",
    "NonExecTmaAtom",
    "OPS",
    "Op",
    "OpRow",
    "PartitionWalk",
    "PrefetchDescriptor",
    "REDUCTION_TYPES",
    "STEPS",
    "SWIZZLE_MODES",
    "SmemChoice",
    "SwizzleRow",
    "TmaDescriptorIm2col",
    "TmaDescriptorTiled",
    "TmaFlags",
    "TmaLoadMode",
    "TmaOperation",
    "TmaPartitionResult",
    "TmaPlan",
    "TmaReduceKind",
    "TmaStoreMode",
    "TmaTensorType",
    "TmaTiledCopy",
    "TmaUpdate",
    "TmaUpdateKind",
    "TransactionBarrier",
    "apply_update",
    "as_cache_mode",
    "as_load_mode",
    "as_op",
    "as_reduce_kind",
    "as_store_mode",
    "build_tma_descriptor",
    "build_tma_descriptor_im2col",
    "create_tma_multicast_mask",
    "lower_tma_load",
    "lower_tma_store",
    "make_exec_tma",
    "make_smem_layout",
    "make_tiled_copy",
    "non_exec_tiled_tma_load",
    "non_exec_tiled_tma_reduce",
    "non_exec_tiled_tma_store",
    "partition",
    "plan_tiled",
    "prefetch_tma_desc",
    "smem_atom",
    "smem_choices",
    "swizzle_row",
    "tma_descriptor_im2col",
    "tma_descriptor_tiled",
    "tma_load",
    "tma_partition",
    "tma_reduce",
    "tma_store",
    "tma_tensor",
    "type_text",
    "verify_partition",
    "why_not_reduction",
    "why_not_swizzle",
]
