"""Copies from shared to tensor memory: layouts, matrix descriptors, planned tcgen05.cp copies, and their emulation.

No Blackwell GPU was available: the copies were planned, emulated and assembled, but never run on a GPU.
"""

from cute_py.atom.smem_descriptor import DescriptorKind as DescriptorKind
from cute_py.atom.smem_descriptor import Major as Major
from cute_py.atom.smem_descriptor import SmemDescriptor as _SmemDescriptor
from cute_py.atom.smem_descriptor import SmemSwizzle as SmemSwizzle
from cute_py.atom.smem_descriptor import encode_matrix_descriptor as encode_matrix_descriptor
from cute_py.atom.smem_descriptor import replace_start_address as replace_start_address
from cute_py.atom.smem_descriptor import smem_desc_add_16B_offset as smem_desc_add_16B_offset
from cute_py.deprecations import export_public
from cute_py.machine.tensor_memory.memory import *
from cute_py.ptx.check import examine as examine
from cute_py.ptx.check import why_not_instruction as why_not_instruction
from cute_py.ptx.forms_tcgen05 import TCGEN05_FORMS as _TCGEN05_FORMS
from cute_py.ptx.instruction import InstructionForm as InstructionForm
from cute_py.ptx.render import mnemonic as mnemonic
from cute_py.tmem.axes import MEMORY_AXES as MEMORY_AXES
from cute_py.tmem.axes import THREAD_AXES as THREAD_AXES
from cute_py.tmem.axes import Axis as Axis
from cute_py.tmem.axes import AxisSum as AxisSum
from cute_py.tmem.axes import AxisTerm as AxisTerm
from cute_py.tmem.axes import Bank as Bank
from cute_py.tmem.axes import F as F
from cute_py.tmem.axes import P as P
from cute_py.tmem.axes import TCol as TCol
from cute_py.tmem.axes import TLane as TLane
from cute_py.tmem.axes import bx as bx
from cute_py.tmem.axes import by as by
from cute_py.tmem.axes import bz as bz
from cute_py.tmem.axes import cbx as cbx
from cute_py.tmem.axes import cby as cby
from cute_py.tmem.axes import cbz as cbz
from cute_py.tmem.axes import laneid as laneid
from cute_py.tmem.axes import m as m
from cute_py.tmem.axes import tid_in_wg as tid_in_wg
from cute_py.tmem.axes import tx as tx
from cute_py.tmem.axes import warpid as warpid
from cute_py.tmem.axes import wgid as wgid
from cute_py.tmem.axes import wid_in_wg as wid_in_wg
from cute_py.tmem.convert import from_cute as from_cute
from cute_py.tmem.convert import from_cute_tmem as from_cute_tmem
from cute_py.tmem.convert import to_cute as to_cute
from cute_py.tmem.copy_request import DISPATCHES as DISPATCHES
from cute_py.tmem.copy_request import Buffer as Buffer
from cute_py.tmem.copy_request import BufferRegion as BufferRegion
from cute_py.tmem.copy_request import CopyAsync as CopyAsync
from cute_py.tmem.copy_request import CopyRequest as CopyRequest
from cute_py.tmem.copy_request import Dispatch as Dispatch
from cute_py.tmem.copy_request import TmemAllocation as TmemAllocation
from cute_py.tmem.copy_request import check_copy as check_copy
from cute_py.tmem.copy_request import copy_async as copy_async
from cute_py.tmem.copy_request import why_not as why_not
from cute_py.tmem.cp_forms import *
from cute_py.tmem.cp_plan import *
from cute_py.tmem.demonstration import *
from cute_py.tmem.emit import *
from cute_py.tmem.execute import *
from cute_py.tmem.iters import Iter as Iter
from cute_py.tmem.memory_picture import picture as picture
from cute_py.tmem.planner import COMPATS as COMPATS
from cute_py.tmem.planner import Side as Side
from cute_py.tmem.planner import plan_form as plan_form
from cute_py.tmem.swizzled_layout import *
from cute_py.tmem.tile_layout import R as R
from cute_py.tmem.tile_layout import S as S
from cute_py.tmem.tile_layout import TileLayout as TileLayout

FORMS_TABLE = _TCGEN05_FORMS

export_public(__name__)

MatrixDescriptor = _SmemDescriptor
"""Alias, not listed in `__all__`."""
