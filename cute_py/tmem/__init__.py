"""Shared memory to tensor memory: layouts, matrix descriptors, planned tcgen05.cp copies, and an emulator.

No Blackwell GPU was available: everything here is planned, emulated and assembled, and was never run on one.
"""

from cute_py.atom.smem_descriptor import (
    DescriptorKind,
    Major,
    SmemSwizzle,
    encode_matrix_descriptor,
    replace_start_address,
    smem_desc_add_16B_offset,
)
from cute_py.moved import renamed
from cute_py.ptx.check import examine, why_not_instruction
from cute_py.ptx.forms_tcgen05 import TCGEN05_FORMS as FORMS_TABLE
from cute_py.ptx.instruction import InstructionForm
from cute_py.ptx.render import mnemonic
from cute_py.tmem.axes import (
    MEMORY_AXES,
    THREAD_AXES,
    Axis,
    AxisSum,
    AxisTerm,
    Bank,
    F,
    P,
    TCol,
    TLane,
    bx,
    by,
    bz,
    cbx,
    cby,
    cbz,
    laneid,
    m,
    tid_in_wg,
    tx,
    warpid,
    wgid,
    wid_in_wg,
)
from cute_py.tmem.convert import from_cute, from_cute_tmem, to_cute
from cute_py.tmem.copy_plan import CopyPlan, MiddleLoop, Refusal, Tile, alloc_columns, check_columns, why_not_columns
from cute_py.tmem.copy_request import (
    DISPATCHES,
    Buffer,
    BufferRegion,
    CopyAsync,
    CopyRequest,
    Dispatch,
    TmemAllocation,
    check_copy,
    copy_async,
    why_not,
)
from cute_py.tmem.cp_forms import COLUMNS, FORMS, LANES, CpForm, cp_form
from cute_py.tmem.demonstration import Demonstration, demonstrate, demonstration_copy, dynamic_shared_bytes, emit_kernel
from cute_py.tmem.emit import device_functions, emit_cuda, emit_tirx, ptx_line
from cute_py.tmem.execute import S2TDescriptorView, expected_tmem, get_copy_s2t_smem_desc, read_back, run, run_pair
from cute_py.tmem.iters import Iter
from cute_py.tmem.memory_picture import picture
from cute_py.tmem.planner import COMPATS, Side, plan_form
from cute_py.tmem.swizzled_layout import (
    DATAPATHS,
    ComposeLayout,
    mma_atom_layout,
    mma_shared_layout,
    tmem_datapath_layout,
)
from cute_py.tmem.tensor_memory import TensorMemory, decompress, image, source_addresses
from cute_py.tmem.tile_layout import R, S, TileLayout

__getattr__ = renamed(
    __name__,
    {
        "CanonicalOperand": "cute_py.atom.SmemOperand",
        "MatrixDescriptor": "cute_py.atom.SmemDescriptor",
        "canonical_operand": "cute_py.atom.find_smem_operand",
        "promised": "expected_tmem",
    },
)

__all__ = [
    "COLUMNS",
    "COMPATS",
    "DATAPATHS",
    "DISPATCHES",
    "FORMS",
    "FORMS_TABLE",
    "LANES",
    "MEMORY_AXES",
    "THREAD_AXES",
    "Axis",
    "AxisSum",
    "AxisTerm",
    "Bank",
    "Buffer",
    "BufferRegion",
    "ComposeLayout",
    "CopyAsync",
    "CopyPlan",
    "CopyRequest",
    "CpForm",
    "Demonstration",
    "DescriptorKind",
    "Dispatch",
    "F",
    "InstructionForm",
    "Iter",
    "Major",
    "MiddleLoop",
    "P",
    "R",
    "Refusal",
    "S",
    "S2TDescriptorView",
    "Side",
    "SmemSwizzle",
    "TCol",
    "TLane",
    "TensorMemory",
    "Tile",
    "TileLayout",
    "TmemAllocation",
    "alloc_columns",
    "bx",
    "by",
    "bz",
    "cbx",
    "cby",
    "cbz",
    "check_columns",
    "check_copy",
    "copy_async",
    "cp_form",
    "decompress",
    "demonstrate",
    "demonstration_copy",
    "device_functions",
    "dynamic_shared_bytes",
    "emit_cuda",
    "emit_kernel",
    "emit_tirx",
    "encode_matrix_descriptor",
    "expected_tmem",
    "examine",
    "from_cute",
    "from_cute_tmem",
    "get_copy_s2t_smem_desc",
    "image",
    "laneid",
    "m",
    "mma_atom_layout",
    "mma_shared_layout",
    "mnemonic",
    "picture",
    "plan_form",
    "ptx_line",
    "read_back",
    "replace_start_address",
    "run",
    "run_pair",
    "smem_desc_add_16B_offset",
    "source_addresses",
    "tid_in_wg",
    "tmem_datapath_layout",
    "to_cute",
    "tx",
    "warpid",
    "wgid",
    "why_not",
    "why_not_columns",
    "why_not_instruction",
    "wid_in_wg",
]
