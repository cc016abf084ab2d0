"""Parse one instruction or one declaration of PTX.

An instruction has an opcode, modifiers in the written order, and operands with their kinds. A declaration has a state
space, a type, an alignment, sizes and initial values.

Registers are recognised by the names that compilers use: `%q` and `%rq` have 128 bits, `%rd` 64, `%r` 32, `%h` and
`%rs` 16; `%p` are predicates, and `%f` and `%fd` floating point. A name without `%` is a symbol; its state space comes
from `symbols`.
"""

from __future__ import annotations

import ast
import operator
import re
import string
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cute_py.argument_checks import NamedEnum, expect
from cute_py.errors import ParseError, given, shortened
from cute_py.notation.argument_lists import split_operands

STATE_SPACES = ("global", "shared", "shared::cta", "shared::cluster", "param", "const", "local")
SPACES: Final = ("global", "shared", "const", "local", "param")
TYPE_BITS: Final = {
    **{f"{letter}{bits}": bits for letter in "bus" for bits in (8, 16, 32, 64)},
    "b128": 128, "f16": 16, "f16x2": 32, "bf16": 16, "bf16x2": 32, "f32": 32, "f64": 64, "pred": 1,
}  # fmt: skip
"""Type of a register or variable -> its bits."""
MAX_VARIABLE_BYTES: Final = 1 << 30
"""Maximum number of bytes of a variable."""
_SYMBOLIC = re.compile(r"(?:(generic)\s*+\(\s*+)?([A-Za-z_$%][\w$]*)\s*+\)?\s*+(?:\+\s*(\d{1,18}))?")


class OperandKind(NamedEnum):
    """The kind of an operand, by its written form."""

    ADDRESS = "address"
    TENSOR = "address with coordinates"
    VECTOR = "vector"
    REGISTER = "register"
    IMMEDIATE = "immediate"
    SINK = "sink"
    PAIR = "register and predicate"
    NEGATED = "negated predicate"


@dataclass(frozen=True, slots=True)
class WrittenOperand:
    """One operand as written. base: its register, symbol or number; offset: `+n` inside the brackets; elements: the
    elements of a vector, or the coordinates. `value` is the value of an immediate, and `added` the value of the
    offset."""

    text: str
    kind: OperandKind
    base: str = ""
    offset: bool = False
    elements: tuple[str, ...] = ()
    value: int | None = None
    added: int = 0


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable or a parameter. count: the number of elements, 0 for an array without a size; initial: the initial
    values of its declaration, each a number, the text of a constant, or (symbol, added bytes, whether it is the
    symbol's generic address)."""

    name: str
    space: str
    kind: str
    align: int
    count: int
    line: int
    linkage: str = ""
    initial: tuple[int | str | tuple[str, int, bool], ...] = ()

    @property
    def element_bytes(self) -> int:
        """Number of bytes per element."""
        return max(TYPE_BITS[self.kind] // 8, 1)

    @property
    def nbytes(self) -> int:
        """Number of bytes of all elements."""
        return self.element_bytes * self.count


@dataclass(frozen=True, slots=True)
class Instruction:
    """A parsed instruction: its predicate ('' if it has none), its opcode and modifiers as one dotted name, and its
    operands.

    >>> found = parse_instruction("@%p1 cp.async.bulk.wait_group.read 0;")
    >>> found.predicate, found.parts, found.operands[0].value
    ('@%p1', ('cp', 'async', 'bulk', 'wait_group', 'read'), 0)
    """

    text: str
    predicate: str
    parts: tuple[str, ...]
    operands: tuple[WrittenOperand, ...]


MAX_CHARACTERS = 1 << 14
"""Maximum number of characters of an instruction: eight times the longest vector of registers."""

_REGISTER_BITS = {"rd": 64, "rs": 16, "rq": 128, "q": 128, "r": 32, "h": 16, "fd": -64, "f": -32, "p": 1}
_REGISTER = re.compile(rf"%({'|'.join(_REGISTER_BITS)})(?:[0-9]+|_[\w$]+)", re.ASCII)
_OCTAL = re.compile(r"[-+]?0[0-7]{1,40}U?")
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]{1,40}|0[bB][01]{1,80}|0|[1-9][0-9]{0,40})U?")
_NAME = r"[A-Za-z][\w$]*|[_$%][\w$]+"
"""Matches an identifier of the ISA; `_` alone is the sink."""
_ADDRESS = re.compile(
    rf"({_NAME}|[-+]?[0-9]\w*) ?(\+(?: ?(?:0[xX][0-9a-fA-F]++U?|[0-9]++U?|[-+*/%()~<>&|^!]))++)?", re.ASCII
)
"""Matches a register, symbol or number, and `+` with a constant expression; ptxas does not accept `-` here, but accepts
`+-4`."""
_BARE = re.compile(rf"((?:{_NAME})(?:\.\w+)?)(\s*[-+]\s*\w+)?", re.ASCII)
"""Matches a register, including special registers (`%tid.x`), or a symbol, with an offset."""
_HEAD = re.compile(rf"(?:@ ?(!? ?)((?:{_NAME})) )?([A-Za-z_][\w:]*(?: ?\.[\w:]+)*)(?=[ \[{{(%]|$)", re.ASCII)
"""Matches a predicate, and a name with its modifiers, which blanks may separate."""
_LETTERS: Final = string.ascii_letters + string.digits + "_$"
_SIZE = re.compile(r"\[([^\[\]]*+)\]\s*+")
_EXPRESSION = re.compile(r"[-+~( ]{0,40}+(?:[0-9]\w{0,20}+[-+*/()~<>&|^ ]{0,40}+){1,20}+", re.ASCII)
_OPERATORS: Final[dict[type[ast.AST], Callable[..., int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    ast.LShift: lambda a, b: a << b % 64,
    ast.RShift: lambda a, b: a >> b % 64,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
"""Operators of constant expressions; Python gives each the precedence of C."""


def register_bits(name: str) -> int | None:
    """Return the width of a register from its name: 128, 64, 32 or 16 bits; 1 for a predicate; negative for floating
    point.

    The result is None if the name is not a register.

    >>> register_bits("%rd1"), register_bits("%q1"), register_bits("%f1"), register_bits("tile")
    (64, 128, -32, None)
    """
    found = _REGISTER.fullmatch(name)
    return None if found is None else _REGISTER_BITS[found[1]]


def immediate(text: str) -> int | None:
    """Return the integer that `text` denotes (decimal, octal, hexadecimal, binary, or an expression of these), or None.

    The result is also None for a number that does not fit in 64 bits.

    >>> immediate("0x10"), immediate("16*(1 + 2)"), immediate("017"), immediate("09"), immediate("%r1")
    (16, 48, 15, None, None)
    """
    cleaned = text.strip()
    number = _literal(cleaned)
    if number is None and _EXPRESSION.fullmatch(cleaned):
        try:
            written = re.sub(r"\w+", lambda found: str(_literal(found[0])), cleaned)
            number = _evaluated(ast.parse(written, mode="eval").body)
        except (SyntaxError, KeyError, ZeroDivisionError):
            return None
    return number if number is not None and abs(number) < 1 << 64 else None


def _literal(text: str) -> int | None:
    if _OCTAL.fullmatch(text):
        return int(text.rstrip("U"), 8)
    return int(text.rstrip("U"), 0) if _INTEGER.fullmatch(text) else None


def _evaluated(node: ast.AST) -> int:
    """Evaluate a constant expression. Raises KeyError if it contains anything other than integers and `_OPERATORS`."""
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_evaluated(node.left), _evaluated(node.right))
    if isinstance(node, ast.UnaryOp):
        return _OPERATORS[type(node.op)](_evaluated(node.operand))
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    raise KeyError(type(node))


def float_immediate(text: str) -> float | None:
    """Return the value of a floating-point constant (`1.0`, or its bits: `0f3f800000` or `0d3ff0...`), or None.

    >>> float_immediate("0f3f800000"), float_immediate("1"), float_immediate("-2.5e3")
    (1.0, None, -2500.0)
    """
    if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", text):
        return float(struct.unpack(">f", bytes.fromhex(text[2:]))[0])
    if re.fullmatch(r"0[dD][0-9a-fA-F]{16}", text):
        return float(struct.unpack(">d", bytes.fromhex(text[2:]))[0])
    plain = re.fullmatch(r"[-+]?[0-9]{1,400}\.[0-9]{0,400}(?:[eE][-+]?[0-9]{1,4})?", text)
    return None if plain is None else float(text)


def declared_name(text: str) -> tuple[str, str, list[str]]:
    """Split a declaration into the text before its name, the name (empty if it has none), and the sizes.

    >>> declared_name(".global .align 4 .b8 table[16][2]")
    ('.global .align 4 .b8 ', 'table', ['16', '2'])
    """
    head, bracket, rest = text.partition("[")
    head = head.rstrip()
    begin = len(head.rstrip(_LETTERS))
    name = head[begin - head[:begin].endswith("%") :].lstrip(string.digits)
    if _SIZE.sub("", bracket + rest):
        name = ""
    return head.removesuffix(name), name, _SIZE.findall(bracket + rest)


def split_head(text: str) -> tuple[str, str, str]:
    """Split an instruction with single spaces into predicate, dotted name and operands; the name is empty if there is
    none.

    >>> split_head("@ !%p1 prefetch .L1 [%rd1]")
    ('@!%p1', 'prefetch.L1', '[%rd1]')
    """
    found = _HEAD.match(text)
    if found is None:
        return "", "", text
    predicate = f"@{found[1].strip()}{found[2]}" if found[2] else ""
    return predicate, found[3].replace(" ", ""), text[found.end() :].strip()


def _operand(text: str, body: str) -> WrittenOperand:
    if text.startswith("[") and text.endswith("]"):
        inner, no_address = split_operands(text[1:-1]), f"operand {given(text)} is not an address"
        found = _ADDRESS.fullmatch(inner[0])
        if found is None or (found[1].lstrip("+-")[0].isdigit() and immediate(found[1]) is None):
            raise ParseError(no_address, {"instruction": body}, position=body.find(text))
        base, offset = found[1], bool(found[2])
        added = immediate(found[2][1:]) or 0 if offset else 0
        if len(inner) == 1:
            return WrittenOperand(text, OperandKind.ADDRESS, base, offset, added=added)
        if len(inner) == 2 and inner[1].startswith("{") and inner[1].endswith("}"):
            names = tuple(split_operands(inner[1][1:-1]))
            return WrittenOperand(text, OperandKind.TENSOR, base, offset, names, added=added)
        if len(inner) == 2:
            return WrittenOperand(text, OperandKind.TENSOR, base, offset, (), added=added)
        raise ParseError(no_address, {"instruction": body}, position=body.find(text))
    if text.startswith("{") and text.endswith("}"):
        return WrittenOperand(text, OperandKind.VECTOR, elements=tuple(split_operands(text[1:-1])))
    if text == "_":
        return WrittenOperand(text, OperandKind.SINK)
    if "|" in text:
        return WrittenOperand(text, OperandKind.PAIR, elements=tuple(part.strip() for part in text.split("|")))
    if text.startswith("!") and register_bits(text[1:]) == 1:
        return WrittenOperand(text, OperandKind.NEGATED, text[1:])
    number = immediate(text)
    if number is not None or float_immediate(text) is not None:
        return WrittenOperand(text, OperandKind.IMMEDIATE, value=number)
    found = _BARE.fullmatch(text)
    if found is not None:
        return WrittenOperand(text, OperandKind.REGISTER, found[1], bool(found[2]))
    raise ParseError(f"operand {given(text)} can't be read", {"instruction": body}, position=max(0, body.find(text)))


def read_operand(text: str) -> WrittenOperand:
    """Parse one operand of an instruction with single spaces.

    Raises:
        ParseError: the operand can't be parsed.

    >>> read_operand("[%rd1+16]").added, read_operand("{%r1, %r2}").elements
    (16, ('%r1', '%r2'))
    """
    return _operand(text, text)


def parse_instruction(text: str) -> Instruction:
    """Parse one instruction; the semicolon may be omitted.

    Raises:
        ParseError: the text is not an instruction (for example, an operand can't be parsed, or brackets are
            unbalanced).
    """
    if len(expect(text, str, "the text of an instruction")) > MAX_CHARACTERS:
        raise ParseError(f"the instruction has {len(text)} characters; must have at most {MAX_CHARACTERS}")
    body = re.sub(r"//[^\n]*|/\*.*?(?:\*/|\Z)", " ", text, flags=re.DOTALL)
    body = " ".join(body.split()).rstrip(";").strip()
    predicate, name, tail = split_head(body)
    if not name:
        raise ParseError(f"{given(body.partition(' ')[0])} is not an instruction name", {"instruction": text})
    body = f"{name} {tail}"
    for opening, closing in ("[]", "{}", "()"):
        if tail.count(opening) != tail.count(closing):
            raise ParseError(f"unbalanced {opening}{closing}", {"instruction": text}, position=len(name))
    operands = tuple(_operand(part, body) for part in split_operands(tail)) if tail.strip() else ()
    return Instruction(text, predicate, tuple(name.split(".")), operands)


def read_variable(text: str, line: int, value: str | None = None) -> Variable:
    """Read a declaration such as `.global .align 4 .b8 table[16]`."""
    before, name, sizes = declared_name(text)
    words = before.split()
    kind, space, align, vector, linkage = "", "", 0, 1, ""
    skip = False
    for place, word in enumerate(words):
        plain = word[1:]
        if skip:
            skip = False
        elif word == ".align":
            if words[:place].count(".ptr") == 0:  # after .ptr: alignment of the pointee
                align = immediate(words[place + 1]) or 0 if place + 1 < len(words) else 0
            skip = True
        elif plain in TYPE_BITS and not kind:
            kind = plain
        elif plain in ("v2", "v4"):
            vector = int(plain[1])
        elif plain in ("extern", "visible", "weak", "common"):
            linkage = plain
        elif plain in (*SPACES, "reg") and not space:
            space = plain
    if not name or not kind or not space:
        raise ParseError(f"line {line}: {given(shortened(text, 80))} is not a known declaration of a variable")
    count = vector
    for size in sizes:
        number = immediate(size) if size.strip() else 0
        if number is None or number < 0:
            raise ParseError(f"line {line}: {given(size)} is not the size of an array")
        count *= number
    if count * max(TYPE_BITS[kind] // 8, 1) > MAX_VARIABLE_BYTES:
        raise ParseError(
            f"line {line}: the variable has {count} elements; must have at most {MAX_VARIABLE_BYTES} bytes"
        )
    natural = max(TYPE_BITS[kind] // 8, 1) * vector
    if align and (align & align - 1 or align > 1 << 20):
        raise ParseError(f"line {line}: the alignment is {align}; must be a power of 2")
    initial = () if value is None else _initial(value, line)
    if initial and count == 0:
        count = len(initial)
    return Variable(name, space, kind, align or natural, count, line, linkage, initial)


def _initial(text: str, line: int) -> tuple[int | str | tuple[str, int, bool], ...]:
    """Return the elements of an initialiser; nested braces are flattened."""
    made: list[int | str | tuple[str, int, bool]] = []
    for part in text.replace("{", " ").replace("}", " ").split(","):
        word = part.strip()
        if not word:
            continue
        number = immediate(word)
        if number is not None:
            made.append(number)
        elif word[0].isdigit() or word[0] in "+-":
            made.append(word)
        else:
            symbol = _SYMBOLIC.fullmatch(word)
            if symbol is None:
                raise ParseError(f"line {line}: the initial value {given(shortened(word, 60))} is unknown")
            made.append((symbol[2], int(symbol[3] or 0), bool(symbol[1])))
    return tuple(made)
