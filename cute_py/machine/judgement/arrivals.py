"""Arrivals that a waiting thread may reach after its wait, and the mbarriers that they arrive at.

From the registers of the thread, a walk over the instructions after the wait computes the address of each arrival. It
repeats a loop with arrivals until their addresses repeat. It passes a loop without arrivals once; a register that such
a loop changes is unknown. Where two paths meet, the walk keeps only the values that are equal on both. A result that it
can't compute, such as a loaded value, is unknown.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cute_py.machine.kinds import KINDS
from cute_py.machine.memory import RANK_SHIFT, SHARED_WINDOW, SHARED_WINDOW_BYTES, in_peer
from cute_py.machine.threads import U16, U32, U64, Host
from cute_py.ptx.parse import OperandKind, immediate
from cute_py.ptx.values import INTEGER_COMPARISONS, WHOLE, Value, folded_constant, reinterpreted

if TYPE_CHECKING:
    from cute_py.machine.code import Code
    from cute_py.machine.kinds import Kind
    from cute_py.ptx.parse import WrittenOperand
    from cute_py.ptx.source import SourceInstruction

Known = dict[str, "int | None"]
"""Register of the thread's function -> its value after the wait, or None if the value is unknown. A register that is
not in the dictionary has the value that it has during the wait."""

ArrivalPlaces = Mapping[int, "set[int | None]"]
"""Index of an arrival -> the offsets of the mbarriers that it may arrive at, in the shared memory of the CTAs of the
cluster. None among them means that an offset is unknown."""

MAX_STEPS: Final = 1 << 14
"""Maximum number of instructions of a walk; the mbarriers of later arrivals are unknown."""

MAX_ROUNDS: Final = 48
"""Maximum number of jumps back to the beginning of a loop with arrivals."""

ARRIVALS: Final = ("mbarrier.arrive", "tcgen05.commit")
_ENDS: Final = ("bra", "brx", "ret", "exit", "trap")
_SAME: Final = ("mov", "cvt", "cvta")
_ROWS: Final = {16: U16, 32: U32, 64: U64}


def is_arrival(one: SourceInstruction) -> bool:
    """Whether an instruction arrives at an mbarrier."""
    return any(name in one.opcode for name in ARRIVALS)


def _targets(one: SourceInstruction) -> tuple[str, ...]:
    """The names of the registers that an instruction writes; other names don't matter."""
    if not one.operands or one.operands[0].kind is OperandKind.ADDRESS:
        return ()
    target = one.operands[0]
    return (target.base, *(text.strip() for text in target.elements))


def _sized(value: int, kind: Kind) -> int:
    """The value that the lowest bits of a number have in an integer type."""
    return reinterpreted(value, kind.bits, signed=kind.letter == "s")


@dataclass(frozen=True, slots=True)
class Loop:
    """The instructions between the target of a jump back and the jump.

    arrivals: indices of its arrivals. written: the registers that it writes.
    """

    arrivals: tuple[int, ...]
    written: frozenset[str]


class Jumps:
    """The jumps and the arrivals of a function.

    base, end: the indices of its instructions. arrivals: indices of its arrivals. targets: indices of the instructions
    that a jump goes to. loops: (index of the jump, index of its target) of each jump back -> its `Loop`. changed: index
    of the first instruction of each loop without arrivals -> the registers that the loop writes.
    """

    def __init__(self, code: Code, function: str) -> None:
        base = code.entry_of[function]
        end = base
        while end < len(code.instructions) and code.function_of[end] == function:
            end += 1
        self.base, self.end = base, end
        self.arrivals = tuple(at for at in range(base, end) if is_arrival(code.instructions[at]))
        self.targets: set[int] = set()
        self.loops: dict[tuple[int, int], Loop] = {}
        self.changed: dict[int, frozenset[str]] = {}
        for at in range(base, end):
            for to in {base + target for target in code.instructions[at].targets}:
                self.targets.add(to)
                if to <= at:
                    inside = code.instructions[to : at + 1]
                    written = frozenset(name for one in inside for name in _targets(one))
                    loop = Loop(tuple(one for one in self.arrivals if to <= one <= at), written)
                    self.loops[at, to] = loop
                    if not loop.arrivals:
                        self.changed[to] = self.changed.get(to, frozenset()) | written


class ArrivalWalk:
    """A walk over the instructions that a thread may execute after a wait.

    places: the mbarriers of each arrival that the walk reached. steps: number of instructions of the walk.

    Args:
        thread: the waiting thread. start: index of the instruction where it waits. flow: the jumps of the function of
            this instruction.
    """

    def __init__(self, m: Host, thread: int, start: int, flow: Jumps) -> None:
        self.m, self.thread, self.flow = m, thread, flow
        self.function = m.code.function_of[start]
        self.places: dict[int, set[int | None]] = {}
        self._cta = thread // m.cta_threads
        self._window = int(m.shared_base) + (self._cta % m.cluster_size << RANK_SHIFT)
        self.steps = 0
        self._held: dict[tuple[int, int], Known] = {}
        self._left: list[tuple[int, int]] = []
        self._ran: set[tuple[int, int]] = set()
        self._passes: dict[tuple[int, int], tuple[int, int, int]] = {}
        """Jump back -> (number of passes, the last pass that brought a new mbarrier, number of mbarriers)."""
        self._reach((0, start + 1), {})
        while self._left and self.steps < MAX_STEPS:
            step = heapq.heappop(self._left)
            self._run(step, self._held.pop(step))
        if self._left:
            self._forget(flow.arrivals)

    def _forget(self, arrivals: tuple[int, ...]) -> None:
        """Record that arrivals may have further mbarriers, which are unknown."""
        for at in arrivals:
            self.places.setdefault(at, set()).add(None)

    def _reach(self, step: tuple[int, int], known: Known) -> bool:
        """Continue at an instruction, in a round of the loops: (number of jumps back, index of the instruction).

        Returns:
            whether the walk continues there: it has not executed this step before.
        """
        if step in self._ran or not self.flow.base <= step[1] < self.flow.end:
            return False
        old = self._held.get(step)
        if old is None:
            self._held[step] = known
            heapq.heappush(self._left, step)
            return True
        for name in {*old, *known}:
            if self._value(name, old) != self._value(name, known):
                old[name] = None
        return True

    def _run(self, step: tuple[int, int], known: Known) -> None:
        """Execute instructions until the next one is the target of a jump, and continue at the instructions that may
        follow them.
        """
        self._ran.add(step)
        jumps, at = step
        known |= dict.fromkeys(self.flow.changed.get(at, ()))
        while at < self.flow.end:
            self.steps += 1
            one = self.m.code.instructions[at]
            root = one.opcode.partition(".")[0]
            if is_arrival(one):
                self.places.setdefault(at, set()).add(self._place(one, known))
            taken = self._taken(one, known)
            if taken is not False:
                self._write(one, known, taken is True)
            looped = False
            for to in (self.flow.base + target for target in one.targets):
                if to > at:
                    self._reach((jumps, to), dict(known))
                elif taken is not False:
                    looped = self._repeat(jumps, at, to, known)
                    if taken and not looped:
                        known |= dict.fromkeys(self.flow.loops[at, to].written)
            if root in _ENDS and (one.predicate is None or root == "brx" or (taken and looped)):
                return
            at += 1
            if at in self.flow.targets:
                self._reach((jumps, at), known)
                return

    def _repeat(self, jumps: int, at: int, to: int, known: Known) -> bool:
        """Jump back to the beginning of a loop; whether the walk repeats the loop.

        The walk repeats a loop with arrivals until the last half of the passes brought no new mbarrier.
        """
        loop = self.flow.loops[at, to]
        if not loop.arrivals:
            return self._reach((jumps, to), dict(known))
        count = sum(len(self.places.get(one, ())) for one in loop.arrivals)
        passes, fresh, before = self._passes.get((at, to), (0, 0, -1))
        passes, fresh = passes + 1, passes + 1 if count != before else fresh
        self._passes[at, to] = passes, fresh, count
        if passes > 2 * fresh:
            return False
        if jumps >= MAX_ROUNDS or self.steps > MAX_STEPS // 2:
            self._forget(loop.arrivals)
            return False
        return self._reach((jumps + 1, to), dict(known))

    def _taken(self, one: SourceInstruction, known: Known) -> bool | None:
        """Whether the thread executes an instruction with this predicate; None if it is unknown."""
        if one.predicate is None:
            return True
        name, negated = one.predicate
        value = known.get(name)
        return None if value is None else bool(value) is not negated

    def _write(self, one: SourceInstruction, known: Known, certain: bool) -> None:
        """Record the result of an instruction; certain: whether the thread executes it."""
        names = _targets(one)
        made = self._result(one, known) if names and certain else None
        is_pair = bool(names) and one.operands[0].kind is OperandKind.PAIR
        for name in names:
            kind = self.m.code.register(self.function, name)
            known[name] = None if made is None or kind is None or is_pair else made & (1 << KINDS[kind].bits) - 1

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
        parts = rest.split(".")
        kinds = [KINDS[part] for part in parts if part in KINDS]
        if not kinds or any(kind.letter not in "usb" for kind in kinds):
            return None
        kind, held = kinds[-1], [self._read(operand, known) for operand in one.operands[1:]]
        if name == "selp" and len(held) == 3:
            return None if held[2] is None else held[0 if held[2] else 1]
        given = [value for value in held if value is not None]
        if not given or len(given) != len(held):
            return None
        if name in _SAME and len(given) == 1:
            return _sized(_sized(given[0], kind), kinds[0]) if name == "cvt" else given[0]
        narrow = 2 if "wide" in parts else len(given)
        given = [*(_sized(value, kind) for value in given[:narrow]), *given[narrow:]]
        if name == "setp" and len(given) == 2:
            compare = INTEGER_COMPARISONS.get(parts[0])
            return None if compare is None else int(compare(*given))
        if name in WHOLE and len(given) == 2:
            return WHOLE[name](*given)
        if name == "mapa":
            window = 0 if "shared::cluster" in parts else SHARED_WINDOW
            return in_peer(given[0] - window, given[1]) + window if given[1] < self.m.cluster_size else None
        return folded_constant(name, rest, [Value(0, value) for value in given])
