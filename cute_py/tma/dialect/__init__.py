"""The surface of the TMA reference pages: operations, verifier, record, stages."""

from __future__ import annotations

from cute_py.tma.dialect.cache_mode import CACHE_MODES, CacheMode, L2Policy, as_cache_mode
from cute_py.tma.dialect.copy_shape import CopyShape, Witness, choose_witness, copy_shape, copy_shape_of
from cute_py.tma.dialect.descriptor_builder import build_tma_descriptor, build_tma_descriptor_im2col
from cute_py.tma.dialect.descriptors import (
    TmaDescriptorIm2col,
    TmaDescriptorTiled,
    TmaUpdate,
    TmaUpdateKind,
    apply_update,
)
from cute_py.tma.dialect.exec_atom import (
    REDUCTION_TYPES,
    BulkTensorCopy,
    ExecTmaAtom,
    ExpectTx,
    PrefetchDescriptor,
    TransactionBarrier,
    lower_tma_load,
    lower_tma_store,
    make_exec_tma,
    why_not_reduction,
)
from cute_py.tma.dialect.family import (
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
from cute_py.tma.dialect.legacy_copy import legacy_ptx
from cute_py.tma.dialect.lowering import Lowering, lower
from cute_py.tma.dialect.mlir_text import type_text
from cute_py.tma.dialect.modes import (
    TmaLoadMode,
    TmaReduceKind,
    TmaStoreMode,
    as_load_mode,
    as_reduce_kind,
    as_store_mode,
)
from cute_py.tma.dialect.non_exec_atom import NonExecTmaAtom, TmaTensorType
from cute_py.tma.dialect.phases import KernelFunction, PhaseTrace, run_phases
from cute_py.tma.dialect.record import FLAG_ROWS, TmaFlags, TmaPartitionResult
from cute_py.tma.dialect.verifier import DIALECTS, PartitionWalk, partition, verify_partition
from cute_py.tma.dialect.verifier_steps import STEPS

__all__ = [
    "ATOM_FAMILY",
    "BulkTensorCopy",
    "CACHE_MODES",
    "CacheMode",
    "CopyShape",
    "DIALECTS",
    "ExecTmaAtom",
    "ExpectTx",
    "FLAG_ROWS",
    "KernelFunction",
    "L2Policy",
    "Lowering",
    "NonExecTmaAtom",
    "PartitionWalk",
    "PhaseTrace",
    "PrefetchDescriptor",
    "REDUCTION_TYPES",
    "STEPS",
    "TmaDescriptorIm2col",
    "TmaDescriptorTiled",
    "TmaFlags",
    "TmaLoadMode",
    "TmaOperation",
    "TmaPartitionResult",
    "TmaReduceKind",
    "TmaStoreMode",
    "TmaTensorType",
    "TmaUpdate",
    "TmaUpdateKind",
    "TransactionBarrier",
    "Witness",
    "apply_update",
    "as_cache_mode",
    "as_load_mode",
    "as_reduce_kind",
    "as_store_mode",
    "build_tma_descriptor",
    "build_tma_descriptor_im2col",
    "choose_witness",
    "copy_shape",
    "copy_shape_of",
    "legacy_ptx",
    "lower",
    "lower_tma_load",
    "lower_tma_store",
    "make_exec_tma",
    "non_exec_tiled_tma_load",
    "non_exec_tiled_tma_reduce",
    "non_exec_tiled_tma_store",
    "partition",
    "prefetch_tma_desc",
    "run_phases",
    "tma_descriptor_im2col",
    "tma_descriptor_tiled",
    "tma_load",
    "tma_reduce",
    "tma_store",
    "type_text",
    "verify_partition",
    "why_not_reduction",
]
