"""PTX: the instruction table with its verdicts, rendering, parsing, and the assembler."""

from __future__ import annotations

from cute_py.moved import renamed
from cute_py.ptx.catalog import FORMS, form
from cute_py.ptx.check import ParsedInstruction, Verdict, examine, verdict
from cute_py.ptx.entry_points import ENTRY_POINTS, EntryPoint, entry_point
from cute_py.ptx.inline_asm import InlineAsm, ch_opnum, inline_asm, mcast_opnum
from cute_py.ptx.order import ProgramReport, check_program
from cute_py.ptx.reasons import CAPABILITIES, VARIANTS, Capability, Variant, capability, check_target, why_not
from cute_py.ptx.render import ptx

__all__ = [
    "CAPABILITIES",
    "Capability",
    "ENTRY_POINTS",
    "EntryPoint",
    "FORMS",
    "InlineAsm",
    "ParsedInstruction",
    "ProgramReport",
    "VARIANTS",
    "Variant",
    "Verdict",
    "capability",
    "ch_opnum",
    "check_program",
    "check_target",
    "entry_point",
    "examine",
    "form",
    "inline_asm",
    "mcast_opnum",
    "ptx",
    "verdict",
    "why_not",
]

__getattr__ = renamed(__name__, {"Examination": "ParsedInstruction"})
