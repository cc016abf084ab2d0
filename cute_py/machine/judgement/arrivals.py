"""Arrivals that a waiting thread may reach after its wait, and the mbarriers that they arrive at.

From the registers of the thread, a walk over the instructions after the wait computes the address of each arrival. It
goes back to the beginning of a loop once. Where two paths meet, it keeps only the values that are equal on both. A
result that it can't compute, such as a loaded value, is unknown.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

from cute_py.machine.kinds import KINDS
from cute_py.machine.memory import RANK_SHIFT, SHARED_WINDOW, SHARED_WINDOW_BYTES
from cute_py.machine.threads import U16, U32, U64, Host
from cute_py.ptx.parse import OperandKind, immediate
from cute_py.ptx.values import Value, folded_constant

if TYPE_CHECKING:
    from cute_py.ptx.parse import WrittenOperand
    from cute_py.ptx.source import SourceInstruction

Known = dict[str, "int | None"]
"""Register of the thread's function -> its value after the wait, or None if the value is unknown. A register that is
not in the dictionary has the value that it has during the wait."""

MAX_STEPS: Final = 1 << 14
"""Maximum number of instructions of a walk; the mbarriers of later arrivals are unknown."""

ARRIVALS: Final = ("mbarrier.arrive", "tcgen05.commit")
_ENDS: Final = ("bra", "brx", "ret", "exit", "trap")
_SAME: Final = ("mov", "cvt", "cvta")
_ROWS: Final = {16: U16, 32: U32, 64: U64}


def is_arrival(one: SourceInstruction) -> bool:
    """Whether an instruction arrives at an mbarrier."""
    return any(name in one.opcode for name in ARRIVALS)


class ArrivalWalk:
    """A walk over the instructions that a thread may execute after a wait.

    places: for the index of each arrival, the offset of its mbarrier in the shared memory of the CTAs of the cluster,
    or None if the offset is unknown. steps: number of instructions of the walk.

    Args:
        thread: the waiting thread. start: index of the instruction where it waits.
    """

    def __init__(self, m: Host, thread: int, start: int) -> None:
        self.m, self.thread = m, thread
        self.function = m.code.function_of[start]
        self.places: dict[int, int | None] = {}
        self._base: int = m.code.entry_of[self.function]
        self._cta = thread // m.cta_threads
        self._window = int(m.shared_base) + (self._cta % m.cluster_size << RANK_SHIFT)
        self.steps = 0
        self._held: dict[tuple[int, int], Known] = {}
        self._left: list[tuple[int, int]] = []
        self._seen: set[int] = {start}
        self._reach((0, start + 1), {})
        while self._left and self.steps < MAX_STEPS:
            self.steps += 1
            step = heapq.heappop(self._left)
            self._run(step, self._held.pop(step))

    def _reach(self, step: tuple[int, int], known: Known) -> None:
        """Continue at an instruction, in a round of the loops: (number of jumps back, index of the instruction)."""
        code = self.m.code
        _, at = step
        if at in self._seen or at >= len(code.instructions) or code.function_of[at] != self.function:
            return
        old = self._held.get(step)
        if old is None:
            self._held[step] = known
            heapq.heappush(self._left, step)
            return
        for name in {*old, *known}:
            if self._value(name, old) != self._value(name, known):
                old[name] = None

    def _run(self, step: tuple[int, int], known: Known) -> None:
        """Execute one instruction, and continue at the instructions that may follow it."""
        jumps, at = step
        self._seen.add(at)
        one = self.m.code.instructions[at]
        root = one.opcode.split(".")[0]
        if is_arrival(one):
            self.places[at] = self._place(one, known)
        if one.operands and one.operands[0].kind is not OperandKind.ADDRESS:
            target = one.operands[0]
            made = self._result(one, known) if one.predicate is None else None
            for name in (target.base, *(text.strip() for text in target.elements)):
                known[name] = made
        for target_index in one.targets:
            to = self._base + target_index
            self._reach((jumps + (to <= at), to), dict(known))
        if root not in _ENDS or (one.predicate is not None and root != "brx"):
            self._reach((jumps, at + 1), known)

    def _place(self, one: SourceInstruction, known: Known) -> int | None:
        """The offset of the mbarrier of an arrival in the shared memory of the cluster; None if it is unknown."""
        m = self.m
        operand = next((held for held in one.operands if held.kind is OperandKind.ADDRESS), None)
        base = None if operand is None else self._value(operand.base, known)
        if operand is None or base is None:
            return None
        address = base + operand.added
        if SHARED_WINDOW <= address < SHARED_WINDOW + SHARED_WINDOW_BYTES:
            address -= SHARED_WINDOW
        rank, inside = divmod(address, 1 << RANK_SHIFT)
        if not 0 <= rank < m.cluster_size:
            return None
        return rank * m.shared_stride + inside - m.shared_base

    def _value(self, name: str, known: Known) -> int | None:
        """The value of a register or the address of a shared variable; None if it is unknown."""
        if name in known:
            return known[name]
        m = self.m
        kind = m.code.register(self.function, name)
        if kind is None:
            offset = m.code.shared_offsets.get(f"{self.function}:{name}", m.code.shared_offsets.get(name))
            return None if offset is None else self._window + offset
        row = _ROWS.get(KINDS[kind].bits) if kind != "pred" else None
        return None if row is None else int(m.registers.typed[row][m.code.slot(self.function, name), self.thread])

    def _read(self, operand: WrittenOperand, known: Known) -> int | None:
        if operand.value is not None:
            return operand.value
        if operand.kind is not OperandKind.REGISTER:
            return None
        name, plus, added = operand.text.partition("+")
        base, number = self._value(name.strip(), known), immediate(added) if plus else 0
        return None if base is None or number is None else base + number

    def _result(self, one: SourceInstruction, known: Known) -> int | None:
        """The result of an instruction on integers; None if it is unknown."""
        name, _, rest = one.opcode.partition(".")
        held = [self._read(operand, known) for operand in one.operands[1:]]
        given = [value for value in held if value is not None]
        if not given or len(given) != len(held):
            return None
        if name in _SAME and len(given) == 1:
            return given[0]
        if name in ("add", "sub") and len(given) == 2:
            return given[0] + (given[1] if name == "add" else -given[1])
        return folded_constant(name, rest.rpartition(".")[2], [Value(0, value) for value in given])
