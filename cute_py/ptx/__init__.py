"""PTX: the instruction table with its verdicts, rendering, parsing, and the assembler."""

from cute_py.moved import export_public, renamed
from cute_py.ptx.catalog import FORMS as FORMS
from cute_py.ptx.catalog import form as form
from cute_py.ptx.check import ParsedInstruction as ParsedInstruction
from cute_py.ptx.check import Verdict as Verdict
from cute_py.ptx.check import examine as examine
from cute_py.ptx.check import verdict as verdict
from cute_py.ptx.entry_points import ENTRY_POINTS as ENTRY_POINTS
from cute_py.ptx.entry_points import EntryPoint as EntryPoint
from cute_py.ptx.entry_points import entry_point as entry_point
from cute_py.ptx.inline_asm import InlineAsm as InlineAsm
from cute_py.ptx.inline_asm import ch_opnum as ch_opnum
from cute_py.ptx.inline_asm import inline_asm as inline_asm
from cute_py.ptx.inline_asm import mcast_opnum as mcast_opnum
from cute_py.ptx.reasons import CAPABILITIES as CAPABILITIES
from cute_py.ptx.reasons import VARIANTS as VARIANTS
from cute_py.ptx.reasons import Capability as Capability
from cute_py.ptx.reasons import Variant as Variant
from cute_py.ptx.reasons import capability as capability
from cute_py.ptx.reasons import check_target as check_target
from cute_py.ptx.reasons import why_not as why_not
from cute_py.ptx.render import ptx as ptx

export_public(__name__)

__getattr__ = renamed(__name__, {"Examination": "ParsedInstruction"})
