"""Registers of tcgen05.ld that are read before wait::ld, and the reasons of what ends a run on tensor memory.

The ISA forbids such a read. Compilers track the registers, so that kernels run all the same, as CUTLASS's tutorials do:
it is a warning, one for all loads of a kernel. The text is followed from each load to its wait, up to a branch that is
always taken.
Source: PTX ISA 9.0, tcgen05.ld, tcgen05.wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from cute_py.diagnostics import Diagnostic, reason_table
from cute_py.errors import counted, shortened
from cute_py.machine.faults import finding, place_text
from cute_py.machine.judgement.observer import Observer
from cute_py.ptx.parse import OperandKind

if TYPE_CHECKING:
    from cute_py.machine.code import Code
    from cute_py.ptx.parse import WrittenOperand
    from cute_py.ptx.source import SourceInstruction

TENSOR_RULES: Final = reason_table(
    """
tensor memory | Columns are reserved by tcgen05.alloc, and a warp reaches the 32 lanes of its rank in the warpgroup.
  -> Allocate the columns first, use the lanes of the warp, and give every allocation back before the kernel ends
  <- tensor memory allocation; tcgen05.ld, access restrictions
tensor memory race | Products and copies are complete when a commit that follows them has arrived, and loads and
  stores at wait::ld and wait::st.
  -> Execute tcgen05.commit and wait for its mbarrier, or execute tcgen05.wait, before the access
  <- tcgen05 memory consistency model
missing tcgen05 fence | Threads that hand tensor memory on need a fence on each side of their synchronisation.
  -> Execute tcgen05.fence::before_thread_sync before the arrival, and tcgen05.fence::after_thread_sync behind the wait
  <- tcgen05.fence; tcgen05 memory consistency model
instruction descriptor | The 32 bits say types, extents and majors; each kind takes some of them.
  -> Make the descriptor for the kind, the cta_group and the extents of the instruction
  <- tcgen05, instruction descriptor
tcgen05.mma operand | The matrix descriptors and addresses give the places of A, B, D and the scales.
  -> Compare the descriptors with the layouts of the buffers
  <- tcgen05, matrix descriptor; data path layouts
cta_group | A pair of CTAs is two CTAs of a cluster whose ranks differ in the last bit.
  -> Launch clusters of an even number of CTAs
  <- tcgen05, CTA pair
tensor memory never written | Columns have no value when they are allocated.
  -> Let the first product not add to D (its enable operand is false), or store first
  <- tensor memory allocation; tcgen05.mma, enable-input-d
loaded registers read early | tcgen05.ld writes its registers asynchronously.
  -> Execute tcgen05.wait::ld.sync.aligned before they are read
  <- tcgen05.ld, tcgen05.wait
"""
)
"""Rule -> reason."""
_READS_FIRST: Final = ("st", "red", "tcgen05", "setp", "bra", "call", "stmatrix")
"""Instructions whose first operand may be read."""
MAX_AHEAD: Final = 1000
"""Instructions behind a load that are looked at."""


class LoadWaits(Observer):
    """Looks for early reads in the text of a kernel, once."""

    def __init__(self, code: Code) -> None:
        self.code = code

    def findings(self) -> list[Diagnostic]:
        """One warning for all loads, at the first."""
        early = early_reads(self.code)
        if not early:
            return []
        load, reader = early[0]
        code = self.code
        one, other = code.instructions[load], code.instructions[reader]
        more = f"; so are those of {counted(len(early) - 1, 'other load')}" if len(early) > 1 else ""
        text = (
            f"the registers of this load are read at {place_text(other, code.files)} before "
            f"tcgen05.wait::ld{more}. Compilers track the registers; the ISA does not say so"
        )
        facts = {"other": shortened(other.text, 160), "other_line": other.line, "loads": len(early)}
        rule = "loaded registers read early"
        return [finding(rule, text, one, files=code.files, source="tcgen05.ld", severity="warning", facts=facts)]


def early_reads(code: Code) -> list[tuple[int, int]]:
    """(load, reader) of each load of tensor memory whose registers are read before a wait."""
    found = []
    for number, one in enumerate(code.instructions):
        if one.opcode.startswith("tcgen05.ld."):
            reader = _reader(code, number, _names(one.operands[:1]))
            if reader is not None:
                found.append((number, reader))
    return found


def _reader(code: Code, number: int, names: frozenset[str]) -> int | None:
    function = code.function_of[number]
    for later in range(number + 1, min(number + MAX_AHEAD, len(code.instructions))):
        one = code.instructions[later]
        if code.function_of[later] != function or one.opcode.startswith("tcgen05.wait::ld"):
            return None
        if _read_by(one) & names:
            return later
        if one.predicate is None and one.opcode.split(".")[0] in ("bra", "ret", "exit", "brx"):
            return None
    return None


def _read_by(one: SourceInstruction) -> frozenset[str]:
    name = one.opcode.split(".")[0]
    if one.opcode.startswith("tcgen05.ld"):
        return frozenset()
    return _names(one.operands if name in _READS_FIRST else one.operands[1:])


def _names(operands: Iterable[WrittenOperand]) -> frozenset[str]:
    """The registers that operands name."""
    found: set[str] = set()
    for one in operands:
        if one.kind in (OperandKind.VECTOR, OperandKind.REGISTER, OperandKind.ADDRESS, OperandKind.PAIR):
            names = one.elements or (one.base,)
            found.update(name.strip() for name in names if name.strip().startswith("%"))
    return frozenset(found)
