"""PTX: the instruction table with its verdicts, rendering, parsing, and the assembler."""

from __future__ import annotations

from cute_py.ptx.catalog import FORMS, form
from cute_py.ptx.check import Examination, Verdict, examine, verdict
from cute_py.ptx.entry_points import ENTRY_POINTS, EntryPoint, entry_point
from cute_py.ptx.inline_asm import InlineAsm, ch_opnum, inline_asm, mcast_opnum
from cute_py.ptx.reasons import CAPABILITIES, VARIANTS, Capability, Variant, capability, why_not
from cute_py.ptx.render import ptx

__all__ = [
    "CAPABILITIES",
    "Capability",
    "ENTRY_POINTS",
    "EntryPoint",
    "Examination",
    "FORMS",
    "InlineAsm",
    "VARIANTS",
    "Variant",
    "Verdict",
    "capability",
    "ch_opnum",
    "entry_point",
    "examine",
    "form",
    "inline_asm",
    "mcast_opnum",
    "ptx",
    "verdict",
    "why_not",
]
