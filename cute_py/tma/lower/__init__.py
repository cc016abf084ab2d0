"""From a copy to instructions: the PTX table and its verdicts, the stages of a lowering, rebinding, exports."""

from cute_py.tma.lower.architectures import ARCHITECTURES, NEWEST_VERSION, Architecture, Targets, architecture
from cute_py.tma.lower.atom_shape import copy_shape_of
from cute_py.tma.lower.capabilities import CAPABILITIES, VARIANTS, Capability, Variant, capability
from cute_py.tma.lower.catalog import FORMS, form
from cute_py.tma.lower.check import Examination, Verdict, examine, verdict
from cute_py.tma.lower.copy_shape import CopyShape, copy_shape
from cute_py.tma.lower.entry_points import ENTRY_POINTS, EntryPoint, entry_point
from cute_py.tma.lower.export import export, write_export
from cute_py.tma.lower.export_cuda import cuda_kernel, encode_call
from cute_py.tma.lower.export_frameworks import cute_cpp, triton
from cute_py.tma.lower.inline_asm import InlineAsm, ch_opnum, inline_asm, mcast_opnum
from cute_py.tma.lower.legacy_copy import legacy_ptx
from cute_py.tma.lower.lowering import Lowering, lower
from cute_py.tma.lower.package_call import make_callable
from cute_py.tma.lower.phases import KernelFunction, PhaseTrace, run_phases
from cute_py.tma.lower.reasons import why_not
from cute_py.tma.lower.rebind import RebindSequence, birth_sequence, rebind_ptx, rebind_sequence
from cute_py.tma.lower.render import ptx
from cute_py.tma.lower.single_tile import single_tile_ptx
from cute_py.tma.lower.witness import Witness, choose_witness

__all__ = [
    "ARCHITECTURES",
    "CAPABILITIES",
    "ENTRY_POINTS",
    "FORMS",
    "NEWEST_VERSION",
    "VARIANTS",
    "Architecture",
    "Capability",
    "CopyShape",
    "EntryPoint",
    "Examination",
    "InlineAsm",
    "KernelFunction",
    "Lowering",
    "PhaseTrace",
    "RebindSequence",
    "Targets",
    "Variant",
    "Verdict",
    "Witness",
    "architecture",
    "birth_sequence",
    "capability",
    "ch_opnum",
    "choose_witness",
    "copy_shape",
    "copy_shape_of",
    "cuda_kernel",
    "cute_cpp",
    "encode_call",
    "entry_point",
    "examine",
    "export",
    "form",
    "inline_asm",
    "legacy_ptx",
    "lower",
    "mcast_opnum",
    "ptx",
    "rebind_ptx",
    "rebind_sequence",
    "run_phases",
    "single_tile_ptx",
    "triton",
    "verdict",
    "why_not",
    "write_export",
]

make_callable(__name__)
