"""TMA copies: boxes, atoms and tensor maps from layouts, and the instructions that they issue.

`descriptor` encodes tensor maps and checks the driver's rules. `atom` computes a tensor map from layouts. `dialect` has
the operations of the TMA reference pages, `emulator` runs copies without a GPU, `exports` writes copies as code for
other programs, and `gemm` generates GEMM kernels. The public names of `simulate` are deprecated; the next minor version
removes them.

Each public name is imported from its subpackage when it is first used. Type checkers read the imports below.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

from cute_py.deprecations import no_such_name, renamed

if TYPE_CHECKING:
    from cute_py.copies import *
    from cute_py.errors import EmissionError as EmissionError
    from cute_py.errors import GBasisError as GBasisError
    from cute_py.errors import RaceError as RaceError
    from cute_py.errors import TmaBuildError as TmaBuildError
    from cute_py.errors import TmaError as TmaError
    from cute_py.errors import TmaLimitError as TmaLimitError
    from cute_py.errors import TmaTrap as TmaTrap
    from cute_py.errors import TmaVerifyError as TmaVerifyError
    from cute_py.errors import UnknownFactError as UnknownFactError
    from cute_py.errors import WouldHangError as WouldHangError
    from cute_py.gpu import *
    from cute_py.ptx import *
    from cute_py.targets import NEWEST_VERSION as NEWEST_VERSION
    from cute_py.targets import Targets as Targets
    from cute_py.tma.atom import *
    from cute_py.tma.descriptor import *
    from cute_py.tma.dialect import *
    from cute_py.tma.emulator import *
    from cute_py.tma.emulator.bulk import Cluster as Cluster
    from cute_py.tma.emulator.bulk import bulk_load as bulk_load
    from cute_py.tma.emulator.bulk import bulk_store as bulk_store
    from cute_py.tma.emulator.bulk import bulk_to_cta as bulk_to_cta
    from cute_py.tma.emulator.tensormap_proxy import Agent as Agent
    from cute_py.tma.emulator.tensormap_proxy import TensormapProxy as TensormapProxy
    from cute_py.tma.emulator.trace import Trace as Trace
    from cute_py.tma.exports import *
    from cute_py.tma.gemm import *

_TABLE: Final = {
    "cute_py.copies": """
        CopyReport CopyResult PreparedCopy TileComparison TileResult compare_tile copy copy_array execute
        first_difference kernel_texts measure_copy prepare_copy run_on_machine tuned_copy
    """,
    "cute_py.errors": """
        EmissionError GBasisError RaceError TmaBuildError TmaError TmaLimitError TmaTrap TmaVerifyError
        UnknownFactError WouldHangError
    """,
    "cute_py.gpu": "Device device_available driver_encode open_device",
    "cute_py.ptx": """
        CAPABILITIES ENTRY_POINTS FORMS VARIANTS Capability EntryPoint InlineAsm ParsedInstruction ProgramReport Variant
        Verdict capability ch_opnum check_program check_target entry_point examine form inline_asm mcast_opnum ptx
        verdict why_not
    """,
    "cute_py.targets": "NEWEST_VERSION Targets",
    "cute_py.tma.atom": """
        FORMAT_OF OPS SWIZZLE_MODES BrokenCondition Coverage ExecutableCopy Fix GBasis GBasisTrace Im2colAtom
        Im2colPlan Im2colWindow Instructions Op OpRow SmemChoice SwizzleRow TmaAtom TmaPlan as_op
        check_smem_address coalesce_256 construct_tma_gbasis coverage create_tma_multicast_mask explain_atom
        find_fixes instructions make_cta_v_map make_im2col_tma_copy make_smem_layout make_tma_atom
        make_tma_copy make_tma_copy_tiled movable_type plan_tiled smem_atom smem_choices split_basis swizzle_row
        tensor_map_format tma_partition tma_tensor why_not_swizzle
    """,
    "cute_py.tma.descriptor": """
        ADDITIONS ARCHITECTURES FIELDS FORMATS HAZARDS QUIRKS REPLACE_FIELDS RULES SLOTS Addition Architecture
        BitField Diagnostic FieldDifference FieldValue FormatRow Hazard Im2ColWideMode Interleave L2Promotion
        LogicalSlot MapDifference OobFill Quirk RebindStep ReplaceField Residue Rule TensorMap TensorMapDataType
        TensorMapIm2col TensorMapIm2colWide TensorMapSwizzle TensorMapTiled Violation Warned architecture decode
        describe diff encode encode_many field_table format_of format_row from_json hazards logical_slots
        note_box_bytes payload read_map rebind rebind_steps repaired replace request_of_array request_of_npy
        seed_fields to_json transaction_bytes update_tma_descriptor violations
    """,
    "cute_py.tma.dialect": """
        ATOM_FAMILY CACHE_MODES DIALECTS FLAG_ROWS REDUCTION_TYPES STEPS BulkTensorCopy CacheMode
        ExecTmaAtom ExpectTx KernelFunction KernelOperation L2Policy Lowering NonExecTmaAtom PartitionWalk PhaseTrace
        PrefetchDescriptor RebindSequence TmaDescriptorIm2col TmaDescriptorTiled TmaFlags TmaLoadMode
        TmaOperation TmaPartitionResult TmaReduceKind TmaStoreMode TmaTensorType TmaUpdate TmaUpdateKind
        TransactionBarrier apply_update as_cache_mode as_load_mode as_reduce_kind as_store_mode
        build_tma_descriptor build_tma_descriptor_im2col init_sequence
        legacy_ptx lower lower_tma_load lower_tma_store make_exec_tma mutator non_exec_tiled_tma_load
        non_exec_tiled_tma_reduce non_exec_tiled_tma_store partition prefetch_tma_desc rebind_ptx
        rebind_sequence run_phases tma_descriptor_im2col tma_descriptor_tiled tma_load tma_reduce tma_store
        type_text verify_partition why_not_reduction
    """,
    "cute_py.tma.emulator.bulk": "Cluster bulk_load bulk_store bulk_to_cta",
    "cute_py.tma.emulator.tensormap_proxy": "Agent TensormapProxy",
    "cute_py.tma.emulator.trace": "Trace",
    "cute_py.tma.emulator": "Emulator GlobalMemory Mbarrier SharedMemory init_barrier",
    "cute_py.tma.exports": """
        cuda_kernel cute_cpp encode_call export single_tile_ptx triton write_export
    """,
    "cute_py.tma.gemm": "GemmKernel GemmPlan PreparedGemm check_gemm gemm_kernel",
}
"""Package or module -> the names that `cute_py.tma` re-exports from it."""

_PACKAGES: Final = ("atom", "descriptor", "dialect", "emulator", "exports", "gemm", "simulate")

_HOME: Final = {name: package for package, names in _TABLE.items() for name in names.split()}

__all__ = sorted(_HOME)

_RUNS: Final = (
    "use cute_py.run_ptx(kernel).explain(), or cute_py.explain(text) for some instructions of barriers and copies"
)
_RINGS: Final = "use cute_py.run_ptx(kernel).timeline(), where the kernel has a ring"
_ENDED: Final = {
    "Outcome": ("cute_py.tma.simulate.diagnosis.Outcome", _RUNS),
    "Run": ("cute_py.tma.simulate.diagnosis.Run", _RUNS),
    "diagnose": ("cute_py.tma.simulate.diagnosis.diagnose", _RUNS),
    "Ring": ("cute_py.tma.simulate.pipeline.Ring", _RINGS),
    "RingLoad": ("cute_py.tma.simulate.pipeline.RingLoad", _RINGS),
    "RingStore": ("cute_py.tma.simulate.pipeline.RingStore", _RINGS),
}
"""Deprecated name -> (the path that still holds it, the calls that replace it). The next minor version removes it."""

if not TYPE_CHECKING:  # type checkers read the imports above, so that they report a misspelled name
    _find_ended = renamed("cute_py.tma", {}, _ENDED, stacklevel=3)

    def __getattr__(name):
        """Import a name when it is first used.

        Raises:
            AttributeError: the package has no such name; the message lists the nearest names.
        """
        if name in _HOME:
            value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
            return value
        if name in _PACKAGES:
            return importlib.import_module(f"cute_py.tma.{name}")
        if name in _ENDED:
            return _find_ended(name)
        raise no_such_name("cute_py.tma", name, __all__, "cute_py", importlib.import_module("cute_py").__all__)


def __dir__() -> list[str]:
    return sorted(__all__)
