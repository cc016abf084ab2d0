"""PTX: the instruction table, verdicts on instructions, rendering, parsing, and the assembler."""

from cute_py.deprecations import export_public
from cute_py.ptx.catalog import FORMS as FORMS
from cute_py.ptx.catalog import form as form
from cute_py.ptx.check import *
from cute_py.ptx.entry_points import ENTRY_POINTS as ENTRY_POINTS
from cute_py.ptx.entry_points import EntryPoint as EntryPoint
from cute_py.ptx.entry_points import entry_point as entry_point
from cute_py.ptx.inline_asm import *
from cute_py.ptx.order import ProgramReport as ProgramReport
from cute_py.ptx.order import check_program as check_program
from cute_py.ptx.reasons import *
from cute_py.ptx.render import ptx as ptx

export_public(__name__)
