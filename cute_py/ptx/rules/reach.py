"""The threads of a CTA that reach an instruction, if the conditions of the branches around it depend only on the thread
index and on constants, or are the same in the whole CTA."""

from __future__ import annotations

import itertools
import math
from typing import Final, TypeAlias

from cute_py.ptx.flow import MAX_BLOCK, Flow, dimensions
from cute_py.ptx.values import Event, Key, Value
from cute_py.targets import WARP

_THREAD_REGISTERS: Final = ("%tid", "%laneid", "%warpid")
_OTHER_INDICES: Final = ("%tid.y", "%tid.z")

Threads: TypeAlias = frozenset[int]
_Sides: TypeAlias = dict[int, Threads | None]
"""The first block of each side of a branch -> the threads that take it; None if the condition is not known."""


class Reach:
    """The threads of a CTA that reach an instruction of a kernel.

    Attributes:
        everyone: the threads that a CTA may have. exact: whether each CTA has all of them.

    If a kernel declares no exact block, only a maximum of one row or none, and does not read %tid.y or %tid.z, its
    threads are taken as one row.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        exact, most = (dimensions(flow.function, name) for name in (".reqntid", ".maxntid"))
        self.exact = exact is not None
        x, y, z = (*(exact or ()), 1, 1, 1)[:3]
        count = x * y * z if exact else min(math.prod(most) if most else MAX_BLOCK, MAX_BLOCK)
        self.everyone = frozenset(range(count if 0 < count <= MAX_BLOCK else 0))
        threads = range(len(self.everyone))
        self._specials: dict[str, list[int]] = {"%tid.x": [*threads], "%laneid": [thread % WARP for thread in threads]}
        if exact:
            self._specials |= {
                "%tid.x": [thread % x for thread in threads],
                "%tid.y": [thread // x % y for thread in threads],
                "%tid.z": [thread // (x * y) for thread in threads],
            }
            sizes = {"%ntid.x": x, "%ntid.y": y, "%ntid.z": z}
            self._specials |= {name: [size] * len(threads) for name, size in sizes.items()}
        elif _has_rows(flow) or (most and math.prod(most[1:]) > 1):
            del self._specials["%tid.x"]
        self._held: dict[Value, Threads | None] = {}
        self._paths: dict[tuple[int, int], frozenset[int]] = {}
        self._around: dict[int, frozenset[int]] = {}
        self._branches: list[tuple[Event, _Sides]] = []
        blocks = flow.function.blocks
        for one in flow.values.events:
            block = blocks[one.block]
            if one.statement.opcode.startswith("bra") and len(block.after) == 2 and one.guard is not None:
                holds = self._where(one.guard, one.statement.predicate)
                taken, other = block.after
                if holds is None or (holds and holds != self.everyone):
                    self._branches.append(
                        (one, {taken: holds, other: None if holds is None else self.everyone - holds})
                    )
            elif one.statement.opcode.startswith("brx") and len(block.after) > 1:
                self._branches.append((one, dict.fromkeys(block.after)))

    def threads(self, one: Event) -> tuple[Threads | None, Event | None]:
        """Return the threads that reach an instruction, None if they are not known, and the branch that separates them
        from other threads."""
        found, cause = self.everyone, None
        if one.statement.predicate:
            own = None if one.guard is None else self._where(one.guard, one.statement.predicate)
            if own is None:
                return None, None
            found, cause = (own, one) if own and own != self.everyone else (found, None)
        for branch, sides in self._branches:
            passing = [side for side in sides if one.block not in self._path(branch.block, side)]
            if not passing or len(passing) == len(sides):
                continue
            if not any(self._flow.ends(block) for side in passing for block in self._path(branch.block, side)):
                continue  # these threads trap, which ends the kernel
            for side in passing:
                threads = sides[side]
                if threads is None:
                    return None, None
                if found & threads:
                    found, cause = found - threads, branch
        return found, cause

    def most(self, one: Event) -> Threads:
        """Return the threads that may reach an instruction. Conditions that are not known exclude no thread."""
        found = self.everyone
        if one.statement.predicate and one.guard is not None:
            own = self._where(one.guard, one.statement.predicate)
            found = own or found
        for branch, sides in self._branches:
            if one.block != branch.block and one.block not in self._avoiding(branch.block):
                for side, threads in sides.items():
                    if threads and one.block not in self._path(branch.block, side):
                        found -= threads
        return found

    def divided_warps(self, threads: Threads) -> int:
        """Return the number of warps that have some of these threads, and also others."""
        others = self.everyone - threads
        return len({thread // WARP for thread in threads} & {thread // WARP for thread in others})

    def numbers(self, value: Value | None) -> list[int] | None:
        """Return the number that a value is in each thread; None if the text does not determine it."""
        return None if value is None else self._flow.values.numbers(value, self._specials, len(self.everyone))

    def text(self, threads: Threads) -> str:
        """Text such as 'threads 0 to 15'; a CTA whose size is not known may have more threads."""
        listed = sorted(threads)
        if not listed:
            return "no threads"
        if len(listed) != listed[-1] - listed[0] + 1:
            known = f" of {len(self.everyone)}" if self.exact else ""
            return f"some threads (the first is {listed[0]})" if not known else f"{len(listed)}{known} threads"
        if len(listed) == 1:
            return f"thread {listed[0]}"
        if not self.exact and listed[-1] == len(self.everyone) - 1:
            return f"threads {listed[0]} and higher"
        return f"threads {listed[0]} to {listed[-1]}"

    def _path(self, branch: int, side: int) -> frozenset[int]:
        """Return the blocks that a side of a branch reaches, itself included, until it reaches the branch again."""
        if (branch, side) not in self._paths:
            beyond = self._flow.function.reached(side, branch) if side != branch else frozenset()
            self._paths[branch, side] = beyond | {side}
        return self._paths[branch, side]

    def _avoiding(self, branch: int) -> frozenset[int]:
        """Return the blocks that paths from the start of the kernel reach without passing through a block."""
        if branch not in self._around:
            self._around[branch] = (self._flow.function.reached(0, branch) | {0}) if branch else frozenset()
        return self._around[branch]

    def _where(self, guard: Value, predicate: str) -> Threads | None:
        """Return the threads whose predicate holds, and None for an unknown condition. A condition that is the same in
        the whole CTA gives all threads or no thread."""
        if guard not in self._held:
            self._held[guard] = self._computed(guard)
        found = self._held[guard]
        return found if found is None or not predicate.startswith("@!") else self.everyone - found

    def _computed(self, guard: Value) -> Threads | None:
        values = self._flow.values
        roots, specials = values.roots(guard), values.specials(guard)
        own = {name for name in specials if name.startswith(_THREAD_REGISTERS)}
        if not own and all(_is_uniform(key) for key in roots):
            return self.everyone
        numbers = None if roots else self.numbers(guard)
        return None if numbers is None else frozenset(itertools.compress(range(len(numbers)), numbers))


def _has_rows(flow: Flow) -> bool:
    """Whether a kernel reads an index of threads other than %tid.x, so that several threads may have one %tid.x."""
    return any(operand.startswith(_OTHER_INDICES) for one in flow.function.statements() for operand in one.operands)


def _is_uniform(key: Key) -> bool:
    """Whether a source of a value is the same for all threads of a CTA."""
    return key[0] == "symbol" or str(key[0]).startswith(("ld.param", "ld.const"))
