"""One function of a PTX module: its judged instructions, the paths between them, and notes. Rules about several
instructions read it."""

from __future__ import annotations

import bisect
import collections
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from cute_py.diagnostics import Diagnostic
from cute_py.errors import counted, shortened, unless_refused
from cute_py.notation.source_lines import line_text
from cute_py.ptx.check import ParsedInstruction
from cute_py.ptx.program import Function, Statement
from cute_py.ptx.values import Event, Value, Values, registers_written
from cute_py.targets import Version
from cute_py.tma.descriptor.request import TensorMap
from cute_py.tma.descriptor.transfer import transaction_bytes

LOADS: Final = ("load", "bulk.load")
STORES: Final = ("store", "reduce", "bulk.store", "bulk.reduce")
PEER: Final = ("bulk.peer", "bulk.reduce.peer")
EXPECTS: Final = ("mbarrier.expect_tx", "mbarrier.arrive.expect_tx", "mbarrier.arrive_drop.expect_tx")
EDITS: Final = "edits"
"""Name of the fact with the edits of a finding: line -> (the last operand of that line, its replacement).
`check_program` tries these edits."""
ISA: Final = "PTX ISA 9.0, "
_MEASURED_MODES: Final = ("tile", "im2col")
"""Modes whose loads deliver the `transaction_bytes` of their map."""
MAX_BLOCK: Final = 1024
"""Maximum number of threads of a CTA."""
_MOST_LINES: Final = 8
"""Maximum number of line numbers in a note."""

Place: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Known:
    """An event (an instruction with the values of its operands), and its row of the table."""

    event: Event
    row: str
    chosen: Mapping[str, str]
    names: Mapping[str, int]

    @property
    def place(self) -> Place:
        """The index of the block, and the position in the block."""
        return self.event.block, self.event.index

    @property
    def line(self) -> int:
        """The line number in the text."""
        return self.event.statement.line

    def value(self, name: str) -> Value | None:
        """Return the value of the operand of that name; None if it is unknown or does not exist."""
        return self.event.values[self.names[name]] if name in self.names else None

    def constant(self, name: str) -> int | None:
        """Return the value of an operand if it is a constant, otherwise None."""
        value = self.value(name)
        return value.offset if value is not None and not value.base else None


def operand_names(examined: ParsedInstruction, statement: Statement) -> dict[str, int]:
    """Return the position of each operand by its name; empty if the form is wrong, which a wrong number is not. If
    operands are missing, the first optional operands count as omitted."""
    if examined.form is None or not examined.fits:
        return {}
    expected = examined.form.expected(dict(examined.chosen))
    missing = len(expected) - len(statement.operands)
    optional = [i for i, one in enumerate(expected) if one.optional]
    left_out = set(optional[: max(missing, 0)])
    names = [one.name for i, one in enumerate(expected) if i not in left_out]
    return {name: place for place, name in enumerate(names) if place < len(statement.operands)}


def lines_text(lines: Iterable[int], sources: Mapping[int, str] | None = None) -> str:
    """Return text with line numbers in order, each once, with the lines of the source; a long list is shortened.

    >>> lines_text([188, 120, 120]), lines_text([7]), lines_text(range(1, 12))
    ('lines 120, 188', 'line 7', 'lines 1, 2, 3, 4, 5, 6, 7, 8 and 3 more')
    >>> lines_text([40, 45], {40: "shift.cu:4", 45: "shift.cu:5"})
    'lines 40 (shift.cu:4), 45 (shift.cu:5)'
    """
    found = sorted(set(lines))
    rest = f" and {len(found) - _MOST_LINES} more" if len(found) > _MOST_LINES else ""
    shown = [line_text(line, (sources or {}).get(line, "")).removeprefix("line ") for line in found[:_MOST_LINES]]
    return f"line{'' if len(found) == 1 else 's'} {', '.join(shown)}{rest}"


def places_text(ones: Iterable[Known]) -> str:
    """Return the lines of instructions as text, in the form of `lines_text`."""
    sources = {one.line: one.event.statement.source for one in ones}
    return lines_text(sources, sources)


def also_at(ones: Sequence[Known]) -> str:
    """Return the end of a message about the first of several instructions: the lines of the other instructions."""
    return f" (also at {places_text(ones[1:])})" if len(ones) > 1 else ""


def line_facts(ones: Sequence[Known]) -> dict[str, object]:
    """Return the fact that lists the lines of a finding about several instructions."""
    return {"lines": sorted({one.line for one in ones})} if len(ones) > 1 else {}


class Tally:
    """Counts of the objects that the rules judged and did not judge in all functions of a module, by kind and reason.

    Args:
        sources: mapping from lines of the text to lines of the source.
    """

    def __init__(self, sources: Mapping[int, str]) -> None:
        self.sources = sources
        self._judged: collections.Counter[tuple[str, str]] = collections.Counter()
        self._count: collections.Counter[tuple[str, str]] = collections.Counter()
        self._lines: dict[tuple[str, str], list[int]] = collections.defaultdict(list)

    def judge(self, noun: str, what: str, count: int = 1) -> None:
        """Count judged objects. noun: their kind, in the singular; what: the judged property."""
        self._judged[noun, what] += count

    @property
    def judged(self) -> tuple[str, ...]:
        """Return a description for each kind of judged objects, in alphabetical order."""
        return tuple([f"{counted(n, noun)} ({what})" for (noun, what), n in sorted(self._judged.items()) if n])

    def leave(self, noun: str, reason: str, lines: Iterable[int], count: int | None = None) -> None:
        """Record that something was not judged.

        Args:
            noun: its kind, in the singular ('barrier'). reason: the reason; `{lines}` is replaced by the line numbers.
                lines: the lines where it is used. count: the number of objects; by default, one per line.
        """
        listed = list(lines)
        self._count[noun, reason] += len(listed) if count is None else count
        self._lines[noun, reason] += listed

    def not_judged(self, nouns: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return a description for each kind and reason, in alphabetical order; with `nouns`, only for these kinds."""
        listed = []
        for (noun, reason), count in sorted(self._count.items()):
            if count and (nouns is None or noun in nouns):
                where = lines_text(self._lines[noun, reason], self.sources)
                said = reason.replace("{lines}", where) if "{lines}" in reason else f"{reason}; {where}"
                listed.append(f"{counted(count, noun)}: {said}")
        return tuple(listed)


@dataclass(slots=True)
class Flow:
    """One function: its judged instructions, the paths between them, and the counts of the rules.

    maps: the tensor map that is passed to each parameter, by the parameter's index. target: the architecture, or '' if
    it is unknown. waits: whether an instruction of the function waits on an mbarrier.
    """

    function: Function
    values: Values
    maps: Mapping[int, TensorMap]
    target: str
    version: Version
    tally: Tally
    waits: bool
    known: list[Known] = field(default_factory=list)
    calls: bool = False
    _reached: dict[int, frozenset[int]] = field(default_factory=dict)
    _writes: dict[int, dict[str, list[int]]] = field(default_factory=dict)

    def of(self, *rows: str) -> list[Known]:
        """Return the instructions that match these rows, in the order of the text."""
        return [one for one in self.known if one.row in rows]

    def leave(self, noun: str, reason: str, ones: Iterable[Known], count: int | None = None) -> None:
        """Record that a rule did not judge these instructions."""
        self.tally.leave(noun, reason, [one.line for one in ones], count)

    def reached(self, block: int) -> frozenset[int]:
        """Return the blocks that paths from the end of a block reach."""
        if block not in self._reached:
            self._reached[block] = self.function.reached(block)
        return self._reached[block]

    def comes_to(self, first: Place, second: Place) -> bool:
        """Whether there is a path from the first instruction to the second."""
        return (first[0] == second[0] and first[1] < second[1]) or second[0] in self.reached(first[0])

    def writes_before(self, place: Place, predicate: str) -> int:
        """Return the number of writes to a predicate's register ('@!%p1') before an instruction in its block."""
        number, index = place
        if number not in self._writes:
            made: dict[str, list[int]] = collections.defaultdict(list)
            for i, statement in enumerate(self.function.blocks[number].statements):
                for name in registers_written(statement):
                    made[name].append(i)
            self._writes[number] = made
        return bisect.bisect_left(self._writes[number].get(predicate.lstrip("@! "), []), index)

    def ends(self, block: int) -> bool:
        """Whether the function may end with this block without a trap."""
        statements = self.function.blocks[block].statements
        opcode = statements[-1].opcode.partition(".")[0] if statements else ""
        return opcode in ("ret", "exit") or (not self.function.blocks[block].after and opcode != "trap")

    def broken(
        self,
        rule: str,
        one: Known,
        text: str,
        source: str,
        *,
        fix: str = "",
        warning: bool = False,
        facts: Mapping[str, object] | None = None,
    ) -> Diagnostic:
        """Make the finding that an instruction breaks a rule."""
        at = one.event.statement
        name = self.function.name
        return Diagnostic(
            rule,
            text=f"{at.where}, {'kernel' if self.function.entry else 'function'} {shortened(name, 60)}: {text}",
            source=ISA + source,
            severity="warning" if warning else "error",
            facts={"line": at.line, "function": name, "instruction": at.text, **(facts or {})},
            fixes=(fix,) if fix else (),
        )

    def map_of(self, one: Known) -> tuple[TensorMap | None, str]:
        """Return the tensor map that a copy uses, or None and the reason why it is unknown."""
        tensor = one.value("tensor")
        names = frozenset() if tensor is None else self.values.symbols(tensor)
        places = [i for i, name in enumerate(self.function.parameters) if name in names]
        if len(names) != 1 or not places:
            return None, "the address of the tensor map is known only at run time"
        if places[0] not in self.maps:
            return None, (
                f"the byte count is in the tensor map of parameter {places[0]}, which was not passed (--map "
                f"{places[0]}=FILE, maps={{{places[0]}: ...}})"
            )
        return self.maps[places[0]], ""

    def bytes_of(self, one: Known) -> tuple[int | None, str]:
        """Return the number of bytes that one load delivers, or None and the reason why it is unknown."""
        if not one.names:
            return None, "their form is wrong"
        if one.row == "bulk.load":
            size = one.constant("size")
            return size, "" if size is not None else "the number of bytes is known only at run time"
        passed, why = self.map_of(one)
        if passed is None:
            return None, why
        mode = one.chosen.get("mode") or "tile"
        size = unless_refused(transaction_bytes, passed) if mode in _MEASURED_MODES else None
        return size, "" if size is not None else (
            "the bytes that a load in this mode, or with this map, delivers have not been measured"
        )


def dimensions(function: Function, directive: str) -> tuple[int, ...] | None:
    """Return the numbers that a directive of a kernel gives, such as `.reqntid`; None without this directive."""
    parts = function.directives.replace(",", " ").split()
    if directive not in parts:
        return None
    rest = parts[parts.index(directive) + 1 :]
    return tuple(
        [int(part) for part in itertools.takewhile(lambda one: one.isascii() and one.isdigit() and len(one) < 10, rest)]
    )


def opposite(predicate: str) -> str:
    """Return the predicate that holds exactly if another one does not; '' for no predicate.

    >>> opposite("@%p1"), opposite("@!%p1"), opposite("")
    ('@!%p1', '@%p1', '')
    """
    name = predicate.removeprefix("@")
    return name and f"@{name[1:] if name.startswith('!') else f'!{name}'}"


def barrier_count(ones: Iterable[Known]) -> int:
    """Return the number of different addresses of barriers. An instruction of a wrong form adds none."""
    return max(len({one.value("barrier") for one in ones} - {None}), 1)


def shared_roots(flow: Flow, value: Value | None) -> frozenset[str]:
    """Return the symbols in shared memory that an address is computed from."""
    names = frozenset() if value is None else flow.values.symbols(value)
    return frozenset(name for name in names if flow.function.symbols.get(name) == "shared")
