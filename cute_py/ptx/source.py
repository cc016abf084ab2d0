"""Read a PTX module in one pass: its variables, its functions, and its instructions with their lines.

    module = read_module(text)
    module.functions["k"].instructions[0].opcode        'ld.param.u64'
    module.functions["k"].instructions[0].loc           (1, 46): file 1, line 46, of the last `.loc`

Names that are declared inside a pair of braces hide outer names. This module gives such a register, variable or label a
unique name (`done` in the third pair becomes `done$3`), so that a name has one meaning in a whole function. The
argument `naming` replaces this rule (`program.py` names registers after their types). Operands are parsed on first use.
`read_module` parses all of them, and rejects a module with an invalid operand. A tolerant reader skips unknown
declarations, and leaves the check of each instruction to its caller.

The scan reads each character a constant number of times, because a text may come from an untrusted source.

Source: PTX ISA 9.0, chapters 4 (syntax), 5 (state spaces, types, and variables), 7 (abstracting the ABI) and 11
(directives).
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from cute_py.argument_checks import expect
from cute_py.errors import ParseError, given, shortened
from cute_py.notation.argument_lists import split_operands
from cute_py.notation.source_lines import Location, Locations
from cute_py.ptx.parse import (
    SPACES,
    TYPE_BITS,
    OperandKind,
    Variable,
    WrittenOperand,
    declared_name,
    immediate,
    read_operand,
    read_variable,
    split_head,
)
from cute_py.targets import Version, version_of

MAX_BYTES: Final = 64 << 20
"""Maximum number of bytes of a module, ten times the largest example of CUTLASS."""

MAX_REGISTERS: Final = 1 << 20
"""Maximum number of registers in one declaration."""

MAX_DEPTH: Final = 256
"""Maximum nesting of braces."""

_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_BLANK = re.compile(r"\s*")
_MARGIN = re.compile(r"\.(loc|file|version|target|address_size)\b([^\n]*)")
_SECTION = re.compile(r"\.section\b[^{;]*")
_BRACES = re.compile(r"[{}]")
_LABEL = re.compile(r"([A-Za-z_$%][\w$]*)\s*:(?!:)")
_STATEMENT = re.compile(r'[^;"]*(?:"[^"]*"[^;"]*)*;')
_INSTRUCTION = re.compile(r'[^;{}"]*(?:(?:"[^"]*"|\{[^;{}"]*\})[^;{}"]*)*;')
_LINE_OF = {name: re.compile(rf"^[^\S\n]*\.{name}\b", re.MULTILINE) for name in ("version", "target")}
_FUNCTION = re.compile(r"(?:\.(?:visible|weak|extern|common)\s+|\.attribute\s*\([^)]*\)\s*)*\.(entry|func)\b")
_HEADER = re.compile(r'[^;{"]*(?:"[^"]*"[^;{"]*)*')
_PRAGMA = re.compile(r'\.pragma\s+"[^"]*"\s*\Z')
_NAMED = re.compile(r"\s*+(?:\(([^)]*)\))?\s*+([A-Za-z_$%][\w$]*)\s*+(?:\(([^)]*)\))?\s*", re.DOTALL)
_DIRECTIVE = re.compile(r'\.(\w+)\s*("[^"]*"|[^."]*)')
_WORD = re.compile(r"[A-Za-z_$%][\w$]*+")
_RANGE = re.compile(r"([A-Za-z_$%][\w$]*?)<(\w{1,24})>")
_NAME = re.compile(r"(?<![\w.$%:])[%A-Za-z_$][\w$]*")
_COMPONENT = re.compile(r"(?<![\w.$%:])([%A-Za-z_$][\w$]*)(?:\.([xyzwrgba]))?(?![\w$.:])")
COMPONENTS: Final = "xyzw"
"""Names of the registers of a vector, in their order; the ISA has `rgba` for them too."""
_JUMPS: Final = ("bra", "brx")

Naming: TypeAlias = Callable[[str, str, int, bool], str]
"""A rule for names: (name, type of a register or '' for a variable, number of its pair of braces (0: the body of the
function), whether the name is a prefix that numbers follow) -> the new name."""


def scoped_name(name: str, kind: str, scope: int, prefix: bool) -> str:
    """Return a name that is unique to a pair of braces.

    >>> scoped_name("done", "pred", 3, False), scoped_name("t", "b32", 3, True), scoped_name("done", "pred", 0, False)
    ('done$3', 't$3$', 'done')
    """
    del kind
    return f"{name}${scope}{'$' if prefix else ''}" if scope else name


@dataclass(frozen=True)
class SourceInstruction:
    """One instruction of a function.

    Attributes:
        line: the line in the text, from 1. loc: the `Location` of the preceding `.loc`, or None.
        predicate: (register, whether it is negated), or None.
        opcode: the opcode with its modifiers. tail: the text of its operands, with unique names.
        targets: indices of the instructions that a branch may go to; label_lines: the lines of their labels.
        text: the instruction as written, in one line.
    """

    line: int
    loc: Location | None
    predicate: tuple[str, bool] | None
    opcode: str
    tail: str
    targets: tuple[int, ...]
    text: str
    label_lines: tuple[int, ...] = ()

    @functools.cached_property
    def operands(self) -> tuple[WrittenOperand, ...]:
        """The operands as written, with unique names.

        Raises:
            ParseError: an operand can't be parsed.
        """
        try:
            return _operands(self.tail)
        except ParseError as error:
            facts = {"instruction": shortened(self.text, 120)}
            raise ParseError(f"line {self.line}: {error.headline}", facts) from None


@dataclass(frozen=True, slots=True)
class SourceFunction:
    """An entry or a function. registers: name -> type; ranges: prefix -> (type, count); labels: name -> index of the
    instruction after the label; defined: whether it has a body."""

    name: str
    line: int
    entry: bool
    linkage: str
    results: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    directives: Mapping[str, str] = field(hash=False)
    registers: Mapping[str, str] = field(default_factory=dict, hash=False)
    ranges: Mapping[str, tuple[str, int]] = field(default_factory=dict, hash=False)
    variables: tuple[Variable, ...] = ()
    instructions: tuple[SourceInstruction, ...] = ()
    labels: Mapping[str, int] = field(default_factory=dict, hash=False)
    defined: bool = False

    def register_type(self, name: str) -> str | None:
        """Return the declared type of a register, or None if it is not declared.

        >>> text = ".version 9.0\\n.target sm_90\\n.entry k() { .reg .b32 %r<2>; .reg .pred p; ret; }"
        >>> kernel = read_module(text).functions["k"]
        >>> kernel.register_type("%r1"), kernel.register_type("p"), kernel.register_type("%r2")
        ('b32', 'pred', None)
        """
        found = self.registers.get(name)
        if found is None:
            prefix = _prefix(name, self.ranges)
            number = name[len(prefix) :]
            if prefix and len(number) < 9 and int(number) < self.ranges[prefix][1]:
                return self.ranges[prefix][0]
        return found

    def triple(self, directive: str) -> tuple[int, int, int] | None:
        """Return up to three numbers of a directive such as `.reqntid`, or None if the directive is missing."""
        if directive not in self.directives:
            return None
        numbers = [immediate(part) or 0 for part in self.directives[directive].split(",")]
        x, y, z = (*numbers, 1, 1)[:3]
        return x, y, z


@dataclass(frozen=True, slots=True)
class Module:
    """A module: its version and target, variables and functions by name, and the names of its source files."""

    version: Version
    target: str
    address_size: int
    variables: Mapping[str, Variable] = field(hash=False)
    functions: Mapping[str, SourceFunction] = field(hash=False)
    files: Mapping[int, str] = field(hash=False)

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of the kernels, in the order of the text."""
        return tuple(name for name, one in self.functions.items() if one.entry)


def read_module(text: str) -> Module:
    """Read a PTX module.

    Raises:
        ParseError: the text is not PTX; the message contains the line and the error.

    >>> module = read_module('''.version 8.7
    ... .target sm_90a
    ... .visible .entry k(.param .u64 p) { .reg .pred %p1; L: @!%p1 bra L; ret; }''')
    >>> module.entries, module.functions["k"].instructions[0].targets
    (('k',), (0,))
    """
    module = read_tolerantly(text, scoped_name, tolerant=False)
    for one in module.functions.values():
        for step in one.instructions:
            _ = step.operands  # refused here if one can't be read
    return module


def read_tolerantly(text: str, naming: Naming, *, tolerant: bool = True) -> Module:
    """Read a PTX module; operands are parsed on first use.

    Args:
        naming: a function that returns the unique names of registers and variables.
        tolerant: skip unknown declarations, and keep instructions without a name.
    Raises:
        ParseError: the errors of `read_module`, except those that a tolerant reader skips.
    """
    if len(expect(text, str, "the text of a PTX module")) > MAX_BYTES:
        raise ParseError(f"the PTX module has {len(text)} characters; must have at most {MAX_BYTES}")
    return _Reader(text, naming, tolerant=tolerant).read()


def read_body(text: str) -> SourceFunction:
    """Read instructions and declarations outside a function, as in inline assembly, as the body of a function.

    Raises:
        ParseError: the text is not PTX.
    """
    if len(expect(text, str, "PTX")) > MAX_BYTES:
        raise ParseError(f"the PTX has {len(text)} characters; must have at most {MAX_BYTES}")
    reader = _Reader(text + "\n;}")
    reader.body = _Body(SourceFunction("", 1, True, "", (), (), {}), scoped_name)
    reader.scan()
    body = reader.functions[""]
    for step in body.instructions:
        _ = step.operands  # refused here if one can't be read
    return body


class _Body:
    """A function that is being read."""

    def __init__(self, head: SourceFunction, naming: Naming) -> None:
        self.head = head
        self.naming = naming
        self.scopes = [0]
        self.count = 0
        self.hidden: list[dict[str, str]] = [{}]
        self.ranges: list[dict[str, tuple[str, int]]] = [{}]
        """For each open brace: prefix -> (its new name, number of registers); other numbers are of outer braces."""
        self.vectors: list[dict[str, int]] = [{}]
        """For each open brace: vector -> number of its registers, which are named `v$x`, `v$y`, ..."""
        self.registers: dict[str, str] = {}
        self.counted: dict[str, tuple[str, int]] = {}
        self.variables: list[Variable] = []
        self.steps: list[tuple[int, Location | None, str, tuple[int, ...]]] = []
        self.texts: list[str] = []
        self.labels: dict[tuple[int, str], tuple[int, int]] = {}
        self.tables: dict[tuple[int, str], list[str]] = {}

    def open(self) -> None:
        self.count += 1
        self.scopes.append(self.count)
        self.hidden.append({})
        self.ranges.append({})
        self.vectors.append({})

    def close(self) -> None:
        self.scopes.pop()
        self.hidden.pop()
        self.ranges.pop()
        self.vectors.pop()

    def named(self, name: str, kind: str = "", count: int | None = None) -> str:
        """Return the name for a declaration in the innermost braces. count: number of registers of a prefix."""
        made = self.naming(name, kind, self.scopes[-1], count is not None)
        if made == name:
            return made
        if count is None:
            self.hidden[-1][name] = made
        else:
            self.ranges[-1][name] = made, count
        return made

    def rename(self, text: str) -> str:
        if any(self.vectors):
            text = _COMPONENT.sub(self.component, text)
        if not any(self.hidden) and not any(self.ranges):
            return text
        return _NAME.sub(lambda found: self.new_name(found[0]), text)

    def component(self, found: re.Match[str]) -> str:
        """The register of a component of a vector, or all its registers in braces."""
        name, part = found[1], found[2]
        count = next((one[name] for one in reversed(self.vectors) if name in one), 0)
        if not count:
            return found[0]
        if part is None:
            return f"{{{', '.join(f'{name}${one}' for one in COMPONENTS[:count])}}}"
        return f"{name}${COMPONENTS['xyzwrgba'.index(part) % 4]}"

    def new_name(self, name: str) -> str:
        for plain, counted in zip(reversed(self.hidden), reversed(self.ranges), strict=True):
            if name in plain:
                return plain[name]
            if counted and (prefix := _prefix(name, counted)):
                made, count = counted[prefix]
                number = name[len(prefix) :]
                if len(number) < 9 and int(number) < count:
                    return made + number
        return name

    def declare(self, kind: str, names: str, line: int, vector: int = 0) -> None:
        for written in names.split(","):
            name = written.strip()
            many = _RANGE.fullmatch(name)
            if vector and _WORD.fullmatch(name):
                self.vectors[-1][name] = vector
                self.declare(kind, ",".join(f"{name}${one}" for one in COMPONENTS[:vector]), line)
                continue
            if many is None:
                if _WORD.fullmatch(name) is None:
                    raise ParseError(f"line {line}: {given(name)} is not the name of a register")
                self.registers[self.named(name, kind)] = kind
                continue
            count = immediate(many[2])
            if count is None or not 0 <= count <= MAX_REGISTERS:
                raise ParseError(f"line {line}: {many[2]} registers are declared; must be 0 to {MAX_REGISTERS}")
            self.counted[self.named(many[1], kind, count)] = (kind, count)

    def find(self, name: str, scopes: tuple[int, ...], line: int) -> tuple[int, int]:
        for scope in reversed(scopes):
            if (scope, name) in self.labels:
                return self.labels[scope, name]
        raise ParseError(f"line {line}: the branch goes to {given(name)}, but the function has no such label")

    def finished(self, *, tolerant: bool) -> SourceFunction:
        made = []
        for (line, loc, text, scopes), written in zip(self.steps, self.texts, strict=True):
            made.append(self.instruction(line, loc, text, written, scopes, tolerant=tolerant))
        one, labels = self.head, dict[str, int]()
        for (scope, name), (at, _) in self.labels.items():
            labels[name if name not in labels else f"{name}${scope}"] = at
        return SourceFunction(
            one.name, one.line, one.entry, one.linkage, one.results, one.parameters, one.directives,
            self.registers, self.counted, tuple(self.variables), tuple(made), labels, True,
        )  # fmt: skip

    def instruction(
        self,
        line: int,
        loc: Location | None,
        text: str,
        written: str,
        scopes: tuple[int, ...],
        *,
        tolerant: bool,
    ) -> SourceInstruction:
        mark, opcode, tail = split_head(text)
        if not opcode:
            if not tolerant:
                raise ParseError(f"line {line}: {given(shortened(text, 80))} is not an instruction")
            opcode, _, tail = text.partition(" ")
        predicate = (mark[2:], True) if mark[1:2] == "!" else (mark[1:], False) if mark else None
        found: list[tuple[int, int]] = []
        if opcode.startswith(_JUMPS) and opcode.split(".")[0] in _JUMPS and tail:
            name = split_operands(tail)[-1]
            names = next((self.tables[s, name] for s in reversed(scopes) if (s, name) in self.tables), [name])
            found = [self.find(one, scopes, line) for one in names]
        targets, lines = tuple([at for at, _ in found]), tuple([line for _, line in found])
        return SourceInstruction(line, loc, predicate, opcode, tail, targets, written, lines)


def _prefix(name: str, prefixes: Mapping[str, object]) -> str:
    """Return the declared prefix of `name`, if only digits without a leading zero follow it; '' if there is none.

    >>> _prefix("%r12", {"%r": 0}), _prefix("t12", {"t1": 0}), _prefix("t1", {"t1": 0}), _prefix("t02", {"t": 0})
    ('%r', 't1', '', '')
    """
    end = len(name)
    while end and name[end - 1] in "0123456789":
        end -= 1
        if name[:end] in prefixes and (name[end] != "0" or end == len(name) - 1):
            return name[:end]
    return ""


@functools.lru_cache(maxsize=4096)
def _operands(tail: str) -> tuple[WrittenOperand, ...]:
    return tuple([operand_of(part) for part in split_operands(tail)]) if tail else ()


@functools.lru_cache(maxsize=16384)
def operand_of(text: str) -> WrittenOperand:
    """Parse one operand of an instruction in a module, including `!p` for any name and the parameter list of a call.

    Raises:
        ParseError: the operand can't be parsed.
    """
    if text.startswith("(") and text.endswith(")"):
        names = tuple(split_operands(text[1:-1])) if text[1:-1].strip() else ()
        return WrittenOperand(text, OperandKind.VECTOR, elements=names)
    if text.startswith("!") and _WORD.fullmatch(text[1:].strip()):
        return WrittenOperand(text, OperandKind.NEGATED, text[1:].strip())
    return read_operand(text)


class _Reader:
    """One pass over the text."""

    def __init__(self, text: str, naming: Naming = scoped_name, *, tolerant: bool = False) -> None:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ParseError(f"character {error.start} of the PTX module is half of a surrogate pair") from None
        self.naming = naming
        self.tolerant = tolerant
        self.text = _COMMENT.sub(_blanked, text)
        self.newlines = [found.start() for found in re.finditer("\n", self.text)]
        self.version: Version | None = None
        self.target = ""
        self.address_size = 64
        self.files: dict[int, str] = {}
        self.variables: dict[str, Variable] = {}
        self.functions: dict[str, SourceFunction] = {}
        self.loc: Location | None = None
        self.locations = Locations()
        self.body: _Body | None = None
        self.at = 0

    def line(self, position: int) -> int:
        return bisect.bisect_left(self.newlines, position) + 1

    def error(self, position: int, text: str) -> ParseError:
        return ParseError(f"line {self.line(position)}: {text}")

    def doubt(self, position: int, text: str) -> None:
        """Raise an error for a construct that a tolerant reader skips."""
        if not self.tolerant:
            raise self.error(position, text)

    def read(self) -> Module:
        missing = next((name for name, line in _LINE_OF.items() if line.search(self.text) is None), None)
        if missing is not None:
            raise self.lacks(f".{missing}")
        self.scan()
        if self.body is not None:
            raise ParseError(f"line {self.body.head.line}: the brace that opens this function is never closed")
        if self.version is None or not self.target:
            raise self.lacks(".version" if self.version is None else ".target")
        return Module(self.version, self.target, self.address_size, self.variables, self.functions, self.files)

    def lacks(self, line: str) -> ParseError:
        facts = {"begins": given(self.text.strip()[:60])}
        return ParseError(f"not a PTX module: the {line} line is missing", facts)

    def scan(self) -> None:
        text, end = self.text, len(self.text)
        while True:
            blank = _BLANK.match(text, self.at)
            start = self.at = blank.end() if blank is not None else self.at
            if start >= end:
                return
            letter = text[start]
            if letter == ".":
                self.directive(start)
            elif letter == "{":
                self.opened(start)
            elif letter == "}":
                self.closed(start)
            elif letter == ";":
                self.at += 1
            else:
                self.instruction(start)

    def opened(self, start: int) -> None:
        if self.body is None:
            raise self.error(start, "found a brace outside a function")
        if len(self.body.scopes) > MAX_DEPTH:
            raise self.error(start, f"braces nest deeper than {MAX_DEPTH}")
        self.body.open()
        self.at = start + 1

    def closed(self, start: int) -> None:
        if self.body is None:
            raise self.error(start, "found a closing brace without an opening one")
        if len(self.body.scopes) > 1:
            self.body.close()
        else:
            made = self.body.finished(tolerant=self.tolerant)
            self.functions[made.name] = made
            self.body = None
        self.at = start + 1

    def instruction(self, start: int) -> None:
        body = self.body
        if body is None:
            raise self.error(start, f"{given(self.text[start : start + 40])} is not a directive")
        label = _LABEL.match(self.text, start)
        if label is not None:
            body.labels[body.scopes[-1], label[1]] = len(body.steps), self.line(start)
            self.at = label.end()
            return
        written = " ".join(self.statement(start, _INSTRUCTION).split())
        body.steps.append((self.line(start), self.loc, body.rename(written), tuple(body.scopes)))
        body.texts.append(written)

    def statement(self, start: int, form: re.Pattern[str] = _STATEMENT) -> str:
        found = form.match(self.text, start)
        if found is None:
            written = self.text[start : start + 60].partition("}")[0].strip()
            raise self.error(start, f"{given(shortened(written, 60))} has no semicolon")
        self.at = found.end()
        return found[0][:-1].strip()

    def directive(self, start: int) -> None:
        margin = _MARGIN.match(self.text, start)
        if margin is not None:
            self.margin(margin[1], margin[2], start)
            self.at = margin.end()
            return
        if self.text.startswith(".section", start):
            self.section(start)
            return
        head = _FUNCTION.match(self.text, start)
        if head is not None:
            self.function(start, head)
            return
        said = self.statement(start)
        word = re.match(r"\.\w+", said)
        name = "" if word is None else word[0][1:]
        if name == "reg":
            self.registers(said, start)
        elif name == "branchtargets" and self.body is not None:
            body = self.body
            last = next((n for (s, n), (at, _) in reversed(body.labels.items()) if at == len(body.steps)), "")
            body.tables[body.scopes[-1], last] = _NAME.findall(said.partition(" ")[2])
        elif name in ("pragma", "callprototype", "calltargets", "alias", "b8", "b16", "b32", "b64"):
            return
        elif name in SPACES or name in ("extern", "visible", "weak", "common"):
            self.variable(said, start)
        else:
            self.doubt(start, f"the directive .{name} is unknown")

    def margin(self, name: str, rest: str, start: int) -> None:
        said = rest.strip().rstrip(";").strip()
        if name == "loc":
            self.loc = self.locations.read(rest) or self.loc
        elif name == "file":
            number, _, path = said.partition(" ")
            if number.isascii() and number.isdigit() and len(number) < 9:
                self.files[int(number)] = path.split('"')[1] if path.count('"') > 1 else path
        elif name == "version":
            found = re.fullmatch(r"([0-9]{1,4}\.[0-9]{1,4})(.*)", said)
            if found is None or found[2]:
                self.doubt(start, f"{given(said)} is not a .version")
            self.version = version_of(found[1]) if found is not None else self.version
        elif name == "target":
            self.target = said.split(",")[0].strip()
        else:
            self.address_size = 32 if said == "32" else 64

    def section(self, start: int) -> None:
        """Skip a debug section with its braces."""
        found = _SECTION.match(self.text, start)
        self.at = len(self.text) if found is None else found.end()
        depth = 0
        for brace in _BRACES.finditer(self.text, self.at):
            depth += 1 if brace[0] == "{" else -1
            self.at = brace.end()
            if depth <= 0:
                return
        raise self.error(start, "the section has no braces")

    def registers(self, said: str, start: int) -> None:
        parts = re.match(r"\.reg\s+(?:\.align\s+\d+\s+)?(?:\.v([24])\s+)?\.(\w+)\s+(.*)", said, re.DOTALL)
        if parts is None or parts[2] not in TYPE_BITS or self.body is None:
            self.doubt(start, f"{given(shortened(said, 60))} is not a known declaration of registers")
        if parts is not None and self.body is not None:
            try:
                self.body.declare(parts[2], parts[3], self.line(start), int(parts[1] or 0))
            except ParseError:
                if not self.tolerant:
                    raise

    def function(self, start: int, head: re.Match[str]) -> None:
        if self.body is not None:
            raise self.error(start, "found a function inside a function")
        header = _HEADER.match(self.text, head.end())
        end = head.end() if header is None else header.end()
        while _PRAGMA.search(self.text, head.end(), end) and self.text[end : end + 1] == ";":
            header = _HEADER.match(self.text, end + 1)  # the semicolon of a `.pragma` is not that of the function
            last, end = end, end + 1 if header is None else header.end()
            if _PRAGMA.search(self.text, last, end) is None:
                break
        named = _NAMED.match(self.text, head.end(), end)
        if named is None:
            raise self.error(start, f"{given(shortened(self.text[start : start + 60], 60))} has no name")
        line = self.line(start)
        results, parameters = (self.parameters(part, line) for part in (named[1], named[3]))
        said = {found[1]: found[2].strip() for found in _DIRECTIVE.finditer(self.text, named.end(), end)}
        linkage = next((word for word in ("extern", "visible", "weak") if f".{word}" in head[0]), "")
        made = SourceFunction(named[2], line, head[1] == "entry", linkage, results, parameters, said)
        if end < len(self.text) and self.text[end] == "{":
            self.body = _Body(made, self.naming)
        elif named[2] not in self.functions:
            self.functions[named[2]] = made
        self.at = end + 1

    def parameters(self, text: str | None, line: int) -> tuple[Variable, ...]:
        if text is None or not text.strip():
            return ()
        made = []
        for part in split_operands(" ".join(text.split())):
            try:
                made.append(read_variable(part, line))
            except ParseError:
                if not self.tolerant:
                    raise
                made.append(Variable(declared_name(part)[1], "param", "b8", 1, 0, line))
        return tuple(made)

    def variable(self, said: str, start: int) -> None:
        line = self.line(start)
        before, declared = "", []
        for piece in split_operands(" ".join(said.split())):
            head, equals, value = piece.partition("=")
            try:
                declared.append(read_variable(before + head, line, value if equals else None))
            except ParseError:
                if self.tolerant:
                    return
                raise
            before = before or declared_name(head)[0]
        for made in declared:
            if self.body is None:
                self.variables[made.name] = made
            else:
                name = self.body.named(made.name)
                self.body.variables.append(
                    Variable(name, made.space, made.kind, made.align, made.count, line, made.linkage, made.initial)
                )


def _blanked(found: re.Match[str]) -> str:
    return found[0] if found[0][0] == '"' else " " + "\n" * found[0].count("\n")
