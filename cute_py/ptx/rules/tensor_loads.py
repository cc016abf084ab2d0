"""The rule about the registers of tcgen05.ld: a thread must execute tcgen05.wait::ld before it uses them.

The rule follows the registers on all paths, and lists a use if no path to it has the wait. The use is not a finding,
because the tutorials 01 to 05 of CUTLASS 7107b055 have no wait::ld, and NVIDIA documents them as examples. Copies
(mov) are not uses, because compilers insert them beside inline assembly; the rule follows the copied registers too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from cute_py.diagnostics import Diagnostic
from cute_py.ptx.flow import Flow
from cute_py.ptx.program import Statement
from cute_py.ptx.values import registers_written

TENSOR_LOAD: Final = "tcgen05.ld."
_WAIT: Final = "tcgen05.wait::ld"
TENSOR_LOAD_USE: Final = "tcgen05.ld use"
UNWAITED_USE: Final = (
    "registers: PTX requires a tcgen05.wait::ld before the use, and no path to it has one; CUTLASS's Blackwell "
    "tutorials omit it too, and it is not known which kernels run without it"
)
_REGISTER: Final = re.compile(r"%[\w$]+")


def check_tensor_loads(flow: Flow) -> Iterator[Diagnostic]:
    """List the uses of registers that a tcgen05.ld writes, if no tcgen05.wait::ld precedes them."""
    function = flow.function
    loads = [one for one in function.statements() if one.opcode.startswith(TENSOR_LOAD)]
    if not loads:
        return
    everything = _followed(list(function.statements()), loads)
    entering = [everything if block.before else frozenset[str]() for block in function.blocks]
    entering[0] = frozenset()

    def leaving(number: int, held: frozenset[str]) -> frozenset[str]:
        for one in function.blocks[number].statements:
            held = _updated(one, held)
        return held

    settled = function.settled(entering, leaving, frozenset.__and__)
    uses: list[int] = []
    for number, held in enumerate(settled):
        for one in function.blocks[number].statements:
            if held and _used(one) & held and not one.opcode.startswith("mov."):
                uses.append(one.line)
                held = held - _used(one)
            held = _updated(one, held)
    flow.tally.judge("tcgen05.ld", "registers", len(loads) if not uses else 0)
    flow.tally.leave(TENSOR_LOAD_USE, UNWAITED_USE, uses)
    yield from ()


def _followed(statements: list[Statement], loads: list[Statement]) -> frozenset[str]:
    """Return the registers that loads and copies of their registers write."""
    found = {name for one in loads for name in registers_written(one)}
    copies = [one for one in statements if one.opcode.startswith("mov.")]
    size = -1
    while size < len(found):
        size = len(found)
        for one in copies:
            if _used(one) & found:
                found.update(registers_written(one))
    return frozenset(found)


def _used(one: Statement) -> frozenset[str]:
    """Return the registers that an instruction reads."""
    read = one.operands[1:] if registers_written(one) else one.operands
    return frozenset(_REGISTER.findall(" ".join((one.predicate, *read))))


def _updated(one: Statement, held: frozenset[str]) -> frozenset[str]:
    """Return the registers of loads without a wait after an instruction, from those before it."""
    if one.opcode.startswith(_WAIT):
        return frozenset()
    written = frozenset(registers_written(one)) if held or one.opcode.startswith(TENSOR_LOAD) else held
    if one.opcode.startswith(TENSOR_LOAD) or (written and one.opcode.startswith("mov.") and _used(one) & held):
        return held | written
    return held - written if written and not one.predicate else held
