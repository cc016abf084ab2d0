"""A PTX module as functions, straight-line blocks and the edges between them.

A block ends at a branch and begins at a label, so that a thread that runs its first instruction runs all of them.
Inline assembly declares registers of its own in braces (`.reg .pred P1;`); they are renamed after their type, to
`%p_P1_7` in scope 7, so that a register's width can be read from its name as everywhere in this package.
"""

from __future__ import annotations

import bisect
import collections
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from cute_py.argument_checks import expect, record
from cute_py.errors import ParseError, given
from cute_py.notation.argument_lists import split_operands
from cute_py.ptx.parse import register_bits, split_head
from cute_py.targets import Version, version_of

MAX_BYTES: Final = 64 << 20
"""Largest number of bytes of a module's text: the largest of CUTLASS's examples is a tenth of it."""

_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_MARK = re.compile(r'"[^"\n]*"|[;{}]')
_LABEL = re.compile(r"\s*([A-Za-z_$%][\w$]*)\s*:(?!:)")
_LINE = re.compile(r"\s*\.(?:loc|file|version|target|address_size)\b[^\n]*(?:\n|$)")
_ENTRY = re.compile(r"\.(entry|func)\b")
_PARAMETER = re.compile(r"\.param\b[^,()]{0,400}?([\w$%]{1,400})(?:\[\d{0,20}\])?\s{0,20}(?=[,)])")
_VARIABLE = re.compile(
    r"\.(global|shared|const|local|param)\b.{0,400}?\.\w{1,80}\s{1,80}+([\w$%]{1,400}+)\s{0,80}(?:\[|=|<|,|$)",
    re.DOTALL,
)
_REGISTERS = re.compile(r"\.reg\s+(?:\.v[24]\s+)?\.(\w+)\s+(.*)", re.DOTALL)
_NAME = re.compile(r"(?<![\w.$%:])[%A-Za-z_$][\w$]*")
_WORD = re.compile(r"[\w$]+")
_CLASSES: Final = {"pred": "p", "f32": "f", "f64": "fd", "b128": "rq"}
_BY_WIDTH: Final = {"8": "rs", "16": "rs", "32": "r", "64": "rd"}
_BRANCHES: Final = ("bra", "brx", "ret", "exit", "trap")

Held = TypeVar("Held")


@dataclass(frozen=True, slots=True)
class Statement:
    """One instruction: `line` of the text (from 1), predicate ('' or '@%p1'), opcode with modifiers, operands."""

    line: int
    predicate: str
    opcode: str
    operands: tuple[str, ...]

    @property
    def text(self) -> str:
        """The instruction as one line."""
        return " ".join(part for part in (self.predicate, self.opcode, ", ".join(self.operands)) if part) + ";"


@dataclass(slots=True)
class Block:
    """Statements that run together; `after` and `before` are numbers of blocks."""

    statements: list[Statement] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)


@record
class Function:
    """An entry or a function. parameters: its symbols. directives: the text between them and the body."""

    name: str
    line: int
    entry: bool
    parameters: tuple[str, ...]
    directives: str
    blocks: tuple[Block, ...] = field(hash=False)

    def statements(self) -> Iterator[Statement]:
        """All instructions, in the order of the text."""
        for block in self.blocks:
            yield from block.statements

    def settled(
        self, entering: list[Held], leaving: Callable[[int, Held], Held], joined: Callable[[Held, Held], Held]
    ) -> list[Held]:
        """`entering`, what holds at the beginning of each block, joined with what leaves the blocks before it, until
        nothing changes."""
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
    """A module: `.version`, `.target`, the state space of each symbol, its functions, and the bytes that declarations
    align symbols to."""

    version: Version
    target: str
    symbols: Mapping[str, str] = field(hash=False)
    functions: tuple[Function, ...] = ()
    alignments: Mapping[str, int] = field(default_factory=dict, hash=False)


class _Body:
    """A function while it is read: scopes of registers and labels, statements, the labels before each."""

    def __init__(self) -> None:
        self.scopes: list[int] = [0]
        self.renamed: list[dict[str, str]] = [{}]
        self.counted: list[dict[str, str]] = [{}]
        self.count = 0
        self.statements: list[tuple[Statement, tuple[int, ...]]] = []
        self.labels: dict[tuple[int, str], int] = {}
        self.tables: dict[tuple[int, str], list[str]] = {}

    def open(self) -> None:
        self.count += 1
        self.scopes.append(self.count)
        self.renamed.append({})
        self.counted.append({})

    def close(self) -> None:
        self.scopes.pop()
        self.renamed.pop()
        self.counted.pop()

    def label(self, name: str) -> None:
        self.labels[self.scopes[-1], name] = len(self.statements)

    def declare(self, kind: str, names: str) -> None:
        prefix = _CLASSES.get(kind) or _BY_WIDTH.get(kind.lstrip("bufsx"), "r")
        for name in names.split(","):
            plain, many, _ = name.strip().partition("<")
            if register_bits(f"{plain}1" if many else plain) != register_bits(f"%{prefix}1"):
                new = f"%{prefix}_{plain.lstrip('%')}_{self.scopes[-1]}"
                (self.counted if many else self.renamed)[-1][plain] = new

    def rename(self, text: str) -> str:
        if not any(self.renamed) and not any(self.counted):
            return text

        return _NAME.sub(lambda found: self.new_name(found[0]), text)

    def new_name(self, name: str) -> str:
        """The name of a register after its type: of `t<3>` in braces, `t1` becomes `%r_t_7_1`."""
        for plain, counted in zip(reversed(self.renamed), reversed(self.counted), strict=True):
            if name in plain:
                return plain[name]
            for begin, new in counted.items():
                if name.startswith(begin) and name[len(begin) :].isdigit():
                    return f"{new}_{name[len(begin) :]}"
        return name

    def add(self, line: int, text: str) -> None:
        predicate, opcode, tail = split_head(text)
        if not opcode:
            opcode, _, tail = text.partition(" ")
        predicate = self.rename(predicate)
        operands = tuple(split_operands(self.rename(tail))) if tail.strip() else ()
        self.statements.append((Statement(line, predicate, opcode, operands), tuple(self.scopes)))

    def find(self, name: str, scopes: tuple[int, ...], line: int) -> int:
        for scope in reversed(scopes):
            if (scope, name) in self.labels:
                return self.labels[scope, name]
        raise ParseError(f"line {line}: branch to {given(name)}; no label of this function has that name")

    def targets(self, statement: Statement, scopes: tuple[int, ...]) -> list[int]:
        """Targets of a branch, as numbers of statements; an indexed branch goes to every label of its table."""
        names = [statement.operands[-1]] if statement.operands else []
        if statement.opcode.startswith("brx") and names:
            table = next((self.tables[s, names[0]] for s in reversed(scopes) if (s, names[0]) in self.tables), None)
            names = names if table is None else table
        return [self.find(name, scopes, statement.line) for name in names]

    def blocks(self) -> tuple[Block, ...]:
        jumps = {
            i: self.targets(s, scopes)
            for i, (s, scopes) in enumerate(self.statements)
            if s.opcode.split(".")[0] in ("bra", "brx")
        }
        starts = {0, *self.labels.values(), *(t for found in jumps.values() for t in found)}
        for i, (statement, _) in enumerate(self.statements):
            if statement.opcode.split(".")[0] in _BRANCHES:
                starts.add(i + 1)
        order = sorted(start for start in starts if start < len(self.statements))
        number = {start: n for n, start in enumerate(order)}
        blocks = tuple(Block() for _ in order)
        for n, start in enumerate(order):
            end = order[n + 1] if n + 1 < len(order) else len(self.statements)
            block, last = blocks[n], self.statements[end - 1][0]
            block.statements = [statement for statement, _ in self.statements[start:end]]
            opcode = last.opcode.split(".")[0]
            goes = [number[t] for t in jumps.get(end - 1, ()) if t in number]
            falls = bool(last.predicate) or opcode not in _BRANCHES
            if falls and n + 1 < len(order):
                goes.append(n + 1)
            block.after = list(dict.fromkeys(goes))
            for other in block.after:
                blocks[other].before.append(n)
        return blocks


def _declared(head: str, symbols: dict[str, str], alignments: dict[str, int]) -> None:
    """The symbol of a variable's declaration, and the bytes that it is aligned to where the declaration says them."""
    found = _VARIABLE.search(f"{head} ")
    if found is not None:
        symbols[found[2]] = found[1]
        tokens = head.split()
        after = tokens[tokens.index(".align") + 1 : tokens.index(".align") + 2] if ".align" in tokens else []
        numbers = [int(n) for n in after if n.isascii() and n.isdigit() and len(n) < 9]
        # Functions may declare different variables of one name: what holds for each is the smallest.
        alignments[found[2]] = min(alignments.get(found[2], MAX_BYTES), *numbers, *(() if numbers else (1,)))


def parse_program(text: str) -> Program:
    """Read a PTX module.

    Raises:
        ParseError: not PTX (no `.version` and `.target`), unbalanced braces, a branch without its label, or longer
            than `MAX_BYTES`.

    >>> program = parse_program('''.version 9.0
    ... .target sm_90a
    ... .entry k(.param .u64 p) { .reg .pred %p<2>; @%p1 bra L; membar.gl; L: ret; }''')
    >>> program.target, [len(block.statements) for block in program.functions[0].blocks]
    ('sm_90a', [1, 1, 1])
    """
    if len(expect(text, str, "the text of a PTX module")) > MAX_BYTES:
        raise ParseError(f"a PTX module of {len(text)} characters; must be at most {MAX_BYTES}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ParseError(
            f"character {error.start} of a PTX module is one half of a surrogate pair; must be text"
        ) from None

    def blank(found: re.Match[str]) -> str:
        return found[0] if found[0][0] == '"' else " " + "\n" * found[0].count("\n")

    text = _COMMENT.sub(blank, text)
    version, target = (
        re.search(r"^[^\S\n]{0,400}+\.version\s{1,80}(\d{1,4}\.\d{1,4})", text, re.M),
        _TARGET.search(text),
    )
    if version is None or target is None:
        missing = ".version" if version is None else ".target"
        raise ParseError(f"not a PTX module: no {missing} line", {"begins": given(text.strip()[:60])})
    reader = _Reader(text)
    reader.read()
    return Program(version_of(version[1]), target[1], reader.symbols, tuple(reader.functions), reader.alignments)


_TARGET = re.compile(r"^\s*\.target\s+(sm_\w+)", re.M)


class _Reader:
    """One pass over semicolons and braces."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.symbols: dict[str, str] = {}
        self.alignments: dict[str, int] = {}
        self.functions: list[Function] = []
        self.body: _Body | None = None
        self.header = ""
        self.header_line = 0
        self.start = 0
        self.vector = 0
        self.newlines = [found.start() for found in re.finditer("\n", text)]

    def line(self, position: int) -> int:
        return bisect.bisect_left(self.newlines, position) + 1

    def read(self) -> None:
        for mark in _MARK.finditer(self.text):
            if mark[0] == "{":
                self._opened(mark)
            elif mark[0] == "}":
                self._closed(mark)
            elif mark[0] == ";" and not self.vector:
                self._statement(mark)
        if self.body is not None or self.vector:
            raise ParseError(f"line {self.header_line}: the brace that opens here is never closed")

    def _opened(self, mark: re.Match[str]) -> None:
        head = self._head(mark)
        if self.vector or (head and not (self.body is None and _ENTRY.search(head))):
            self.vector += 1
            return
        if self.body is not None:
            self.body.open()
        elif head:
            self.body, self.header, self.header_line = _Body(), head, self.line(self._first(mark))
        else:
            raise ParseError(f"line {self.line(mark.start())}: a brace without a function")
        self.start = mark.end()

    def _closed(self, mark: re.Match[str]) -> None:
        if self.vector:
            self.vector -= 1
            return
        head = self._head(mark)
        if self.body is None or head:
            what = f"{given(head[:60])} without a semicolon" if head else "a brace that nothing opened"
            raise ParseError(f"line {self.line(mark.start())}: {what}")
        if len(self.body.scopes) > 1:
            self.body.close()
        else:
            self.functions.append(self._function(self.body))
            self.body = None
        self.start = mark.end()

    def _first(self, mark: re.Match[str]) -> int:
        """Start of the text that ends at a mark, without blanks."""
        head = self.text[self.start : mark.start()]
        return self.start + len(head) - len(head.lstrip())

    def _head(self, mark: re.Match[str]) -> str:
        """The text since the last mark; labels in front of it are entered, lines of the debugger left out."""
        while not self.vector:
            if (found := _LINE.match(self.text, self.start, mark.start())) is not None:
                self.start = found.end()
            elif self.body is not None and (found := _LABEL.match(self.text, self.start, mark.start())) is not None:
                self.body.label(found[1])
                self.start = found.end()
            else:
                break
        return self.text[self.start : mark.start()].strip()

    def _statement(self, mark: re.Match[str]) -> None:
        head = self._head(mark)
        if head.startswith("."):
            self._directive(head)
        elif head and self.body is not None:
            self.body.add(self.line(self._first(mark)), " ".join(head.split()))
        self.start = mark.end()

    def _directive(self, head: str) -> None:
        registers = _REGISTERS.match(head)
        if registers is not None and self.body is not None:
            self.body.declare(registers[1], registers[2])
        elif head.startswith(".branchtargets") and self.body is not None:
            name = next((n for (s, n), at in self.body.labels.items() if at == len(self.body.statements)), "")
            self.body.tables[self.body.scopes[-1], name] = _WORD.findall(head.partition(" ")[2])
        elif registers is None and not _ENTRY.search(head):
            _declared(head, self.symbols, self.alignments)

    def _function(self, body: _Body) -> Function:
        kind = _ENTRY.search(self.header)
        after = self.header[kind.end() :] if kind is not None else ""
        result, name = re.match(r"\s*(\([^)]*\))?\s*([\w$%]+)", after), ""
        if result is not None:
            name, after = result[2], after[result.end() :]
        parameters, _, directives = after.partition(")")
        names = tuple(_PARAMETER.findall(f"{parameters})"))
        self.symbols.update(dict.fromkeys(names, "param"))
        entry = kind is not None and kind[1] == "entry"
        return Function(name, self.header_line, entry, names, " ".join(directives.split()), body.blocks())
