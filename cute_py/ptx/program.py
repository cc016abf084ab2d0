"""A PTX module as functions that consist of straight-line blocks with edges between them.

A block ends at a branch and begins at a label, so a thread that runs its first instruction runs all of them. Inline
assembly declares its own registers in braces (`.reg .pred P1;`). They are renamed after their type, for example to
`%p_P1_7` in scope 7, so that the name of every register shows its width.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from cute_py.argument_checks import record
from cute_py.notation.argument_lists import split_operands
from cute_py.notation.source_lines import line_text, location_text
from cute_py.ptx.parse import Variable, register_bits
from cute_py.ptx.source import Module, SourceFunction, SourceInstruction, read_tolerantly
from cute_py.targets import Version

_CLASSES: Final = {"pred": "p", "f32": "f", "f64": "fd", "b128": "rq"}
_BY_WIDTH: Final = {"8": "rs", "16": "rs", "32": "r", "64": "rd"}
_BRANCHES: Final = ("bra", "brx", "ret", "exit", "trap")

Held = TypeVar("Held")


@dataclass(frozen=True, slots=True)
class Statement:
    """One instruction: its line in the text (from 1), its predicate ('' or '@%p1'), its opcode with modifiers, its
    operands, and its line in the source, as `location_text` returns it."""

    line: int
    predicate: str
    opcode: str
    operands: tuple[str, ...]
    source: str = ""

    @property
    def where(self) -> str:
        """Text with the line in the text and the line in the source."""
        return line_text(self.line, self.source)

    @property
    def text(self) -> str:
        """The instruction as one line."""
        return " ".join(part for part in (self.predicate, self.opcode, ", ".join(self.operands)) if part) + ";"


@dataclass(slots=True)
class Block:
    """Statements that run together; `after` and `before` are the indices of succeeding and preceding blocks."""

    statements: list[Statement] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)


@record
class Function:
    """An entry or a function. parameters: the names of its parameters. directives: the text between the parameters and
    the body. The other fields describe the symbols that it may use. symbols: the state space of each symbol.
    alignments: the alignment of each variable in bytes. sizes: the size of each variable in bytes, without variables
    whose size the text does not determine."""

    name: str
    line: int
    entry: bool
    parameters: tuple[str, ...]
    directives: str
    blocks: tuple[Block, ...] = field(hash=False)
    symbols: Mapping[str, str] = field(default_factory=dict, hash=False)
    alignments: Mapping[str, int] = field(default_factory=dict, hash=False)
    sizes: Mapping[str, int] = field(default_factory=dict, hash=False)

    def statements(self) -> Iterator[Statement]:
        """All instructions, in the order of the text."""
        for block in self.blocks:
            yield from block.statements

    def reached(self, block: int, until: int | None = None) -> frozenset[int]:
        """Return the blocks that paths from the end of a block reach. Paths stop at the block `until`."""
        seen: set[int] = set()
        todo = list(self.blocks[block].after)
        while todo:
            number = todo.pop()
            if number not in seen:
                seen.add(number)
                todo += self.blocks[number].after if number != until else ()
        return frozenset(seen)

    def settled(
        self, entering: list[Held], leaving: Callable[[int, Held], Held], joined: Callable[[Held, Held], Held]
    ) -> list[Held]:
        """Compute the state at the beginning of each block: starting from `entering`, join the states at the end of
        preceding blocks until nothing changes."""
        todo = collections.deque(range(len(self.blocks)))
        queued = set(todo)
        while todo:
            number = todo.popleft()
            queued.discard(number)
            left = leaving(number, entering[number])
            for after in self.blocks[number].after:
                held = joined(entering[after], left)
                if held != entering[after]:
                    entering[after] = held
                    if after not in queued:
                        todo.append(after)
                        queued.add(after)
        return entering


@record
class Program:
    """A module: its `.version`, its `.target`, and its functions."""

    version: Version
    target: str
    functions: tuple[Function, ...] = ()

    @property
    def sources(self) -> dict[int, str]:
        """Mapping from each line of the text to its line of the source, if a `.loc` gives it."""
        return {one.line: one.source for each in self.functions for one in each.statements() if one.source}


def typed_name(name: str, kind: str, scope: int, prefix: bool) -> str:
    """Return the name of a register if it shows the width of its type, otherwise a new name that shows the width. A
    variable keeps its name.

    >>> typed_name("P1", "pred", 7, False), typed_name("t", "b32", 7, True), typed_name("%rd4", "b64", 7, False)
    ('%p_P1_7', '%r_t_7_', '%rd4')
    """
    letter = (_CLASSES.get(kind) or _BY_WIDTH.get(kind.lstrip("bufsx"), "r")) if kind else ""
    if not kind or register_bits(f"{name}1" if prefix else name) == register_bits(f"%{letter}1"):
        return name
    return f"%{letter}_{name.lstrip('%')}_{scope}{'_' if prefix else ''}"


def parse_program(text: str) -> Program:
    """Read a PTX module.

    Raises:
        ParseError: the text is not PTX (no `.version` and `.target`), braces are unbalanced, a branch lacks its label,
            or the text is longer than `source.MAX_BYTES`.

    >>> program = parse_program('''.version 9.0
    ... .target sm_90a
    ... .entry k(.param .u64 p) { .reg .pred %p<2>; @%p1 bra L; membar.gl; L: ret; }''')
    >>> program.target, [len(block.statements) for block in program.functions[0].blocks]
    ('sm_90a', [1, 1, 1])
    """
    module = read_tolerantly(text, typed_name)
    read = sorted((one for one in module.functions.values() if one.defined), key=lambda one: one.line)
    functions = tuple([_function(one, module) for one in read])
    return Program(module.version, module.target, functions)


def _function(one: SourceFunction, module: Module) -> Function:
    """Describe a function. A variable of the function hides variables of the module that have the same name."""
    own = {each.name for each in one.variables}
    declared = [*(each for each in module.variables.values() if each.name not in own), *one.variables]
    symbols = {each.name: each.space for each in declared} | {each.name: "param" for each in one.parameters}
    directives = " ".join(f".{name} {value}".rstrip() for name, value in one.directives.items())
    parameters, blocks = tuple([each.name for each in one.parameters]), _blocks(one, module.files)
    return Function(
        one.name, one.line, one.entry, parameters, directives, blocks, symbols, _alignments(declared), _sizes(declared)
    )


def _alignments(declared: list[Variable]) -> dict[str, int]:
    """Return the alignment of each variable in bytes. If the braces of a function declare different variables with the
    same name, it is the smallest of their alignments."""
    found: dict[str, int] = {}
    for one in declared:
        found[one.name] = min(found.get(one.name, one.align), one.align)
    return found


def _sizes(declared: list[Variable]) -> dict[str, int]:
    """Return the size of each symbol in bytes, without arrays whose size a launch or another module determines, and
    without names that are declared with several sizes."""
    found: dict[str, set[int]] = collections.defaultdict(set)
    for one in declared:
        found[one.name].add(0 if one.linkage == "extern" else one.nbytes)
    return {name: max(sizes) for name, sizes in found.items() if len(sizes) == 1 and 0 not in sizes}


def _statement(one: SourceInstruction, files: Mapping[int, str]) -> Statement:
    mark = "" if one.predicate is None else f"@{'!' if one.predicate[1] else ''}{one.predicate[0]}"
    operands = tuple(split_operands(one.tail)) if one.tail else ()
    return Statement(one.line, mark, one.opcode, operands, location_text(one.loc, files))


def _blocks(one: SourceFunction, files: Mapping[int, str]) -> tuple[Block, ...]:
    steps = one.instructions
    if not steps:
        return ()
    opcodes = [step.opcode.partition(".")[0] for step in steps]
    starts = {0, *one.labels.values(), *(t for step in steps for t in step.targets)}
    starts.update(i + 1 for i, opcode in enumerate(opcodes) if opcode in _BRANCHES)
    order = sorted(start for start in starts if start < len(steps))
    number = {start: n for n, start in enumerate(order)}
    blocks = tuple(Block() for _ in order)
    for n, (start, end) in enumerate(zip(order, [*order[1:], len(steps)], strict=True)):
        block, last = blocks[n], steps[end - 1]
        block.statements = [_statement(step, files) for step in steps[start:end]]
        goes = [number[t] for t in last.targets if t in number]
        falls = last.predicate is not None or opcodes[end - 1] not in _BRANCHES
        if falls and n + 1 < len(order):
            goes.append(n + 1)
        block.after = list(dict.fromkeys(goes))
        for other in block.after:
            blocks[other].before.append(n)
    return blocks
