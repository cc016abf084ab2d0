"""Evaluate integer expressions of C, C++ and Python source with the types of C.

    65536 * 65536               overflows int
    65536LL * 65536             4294967296, a number of 64 bits
    (uint64_t)65536 * 65536     4294967296, unsigned
    sizeof(half) * 1024         2048, unsigned

An operand narrower than int becomes int. The operands of an operation take the wider of their types, and of two types
of equal width the unsigned one. A result that does not fit its type is refused, even if C defines it for an unsigned
type, because no size is meant to wrap around. In Python, numbers have no width.

Source: ISO C17, 6.3.1.8 (usual arithmetic conversions), 6.4.4.1 (types of constants) and 6.5 (overflow).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Final, NamedTuple

from cute_py.errors import InvalidValueError


class IntegerType(NamedTuple):
    """An integer type: its width in bits, and whether it is signed. A width of 0 is Python's, which has no limit."""

    bits: int
    signed: bool = True

    @property
    def name(self) -> str:
        """The name of the type in C."""
        if self.bits == 32:
            return "int" if self.signed else "unsigned int"
        return f"{'int' if self.signed else 'uint'}{self.bits}_t"

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest number of the type."""
        return (-1 << self.bits - 1, (1 << self.bits - 1) - 1) if self.signed else (0, (1 << self.bits) - 1)

    def fits(self, value: int) -> bool:
        """Whether the type has this number.

        >>> [IntegerType(32, signed).fits(2**31) for signed in (True, False)], IntegerType(0).fits(2**70)
        ([False, True], True)
        """
        low, high = self.bounds if self.bits else (value, value)
        return low <= value <= high


INT: Final = IntegerType(32)
SIZE: Final = IntegerType(64, signed=False)
UNLIMITED: Final = IntegerType(0)


class TypedInteger(NamedTuple):
    """An integer and its type. `str` gives an operand of source code; a type narrower than int becomes int."""

    value: int
    kind: IntegerType

    def __str__(self) -> str:
        unsigned = "U" if not self.kind.signed and self.kind.bits >= INT.bits else ""
        text = f"{self.value}{unsigned}{'LL' if self.kind.bits == SIZE.bits else ''}"
        return f"({text})" if self.value < 0 else text


OVERFLOW: Final = "integer_overflow"
"""The id of the rule that a result must fit its type."""
MOST_NESTED: Final = 40
"""Maximum depth of brackets and signs."""
MOST_SHIFTED: Final = 64
"""Bits that no shift exceeds."""
LONGEST_DIGITS: Final = 40
"""Maximum number of characters of a constant."""
_TOKEN: Final = re.compile(
    r"\s*+(?:(?P<number>0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)(?P<suffix>[uUlLzZ]{0,3})(?![\w.])"
    r"|(?P<name>[A-Za-z_]\w*(?:::\w+)*)|(?P<sign><<|>>|//|[-+*/%&|^~(){}<>,]))"
)
_TYPE_WORD: Final = (
    r"(?:(?:std::)?(?:size_t|ssize_t|ptrdiff_t|u?int(?:8|16|32|64)?_t|u?intptr_t)|cuuint(?:32|64)_t|u?int(?:8|16|32|64)?"
    r"|unsigned|signed|long|short|char|bool|CU\w{1,80})"
)
_TYPE: Final = re.compile(rf"(?:const\s{{1,9}})?{_TYPE_WORD}(?:\s{{1,9}}(?:{_TYPE_WORD}|const)){{0,3}}\s{{0,9}}")
_DECLARED: Final = re.compile(rf"\b{_TYPE_WORD}\b(?:\s{{1,9}}{_TYPE_WORD}\b){{0,3}}(?!\s{{0,9}}[*(:])")
_CAST: Final = re.compile(rf"\s*+\((?P<type>{_TYPE.pattern}|(?:const )?\w{{1,80}} ?(?P<pointer>\*))\s*\)")
_STATIC_CAST: Final = re.compile(rf"\s*+static_cast\s?<\s?(?P<type>{_TYPE.pattern})>(?=\s?\()")
_FUNCTIONAL: Final = re.compile(rf"\s*+(?:\w{{1,40}}\.){{0,3}}(?:c_)?(?P<type>(?!CU){_TYPE_WORD})\s?(?=[({{])")
"""A type that makes a number: `uint64_t(8)`, and in Python `cuda.cuuint64_t(8)` and `ctypes.c_uint64(8)`."""
_SIZEOF: Final = re.compile(
    r"\s*+(?:sizeof\s?\(\s?(?P<bytes>[\w:]{1,80}(?: [\w:]{1,80}){0,2})\s?\)"
    r"|(?:cute::|cutlass::)?sizeof_bits(?:<\s?(?P<bits>[\w:]{1,80})\s?>::value|_v<\s?(?P<variable>[\w:]{1,80})\s?>))"
)
_PRECEDENCE: Final = {"|": 0, "^": 1, "&": 2, "<<": 3, ">>": 3, "+": 4, "-": 4, "*": 5, "/": 5, "%": 5, "//": 5}
_OPERATORS: Final[dict[str, Callable[[int, int], int]]] = {
    "|": operator.or_,
    "^": operator.xor,
    "&": operator.and_,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_FUNCTIONS: Final = ("max", "min", "ceil_div", "cdiv", "round_up")
"""Functions of two integers that are evaluated, with any namespace."""


def integer_type(declared: str) -> IntegerType | None:
    """The integer type that a text declares or casts to; None if it has none.

    >>> integer_type("static constexpr unsigned long long "), integer_type("const int "), integer_type("auto ")
    (IntegerType(bits=64, signed=False), IntegerType(bits=32, signed=True), None)
    """
    found = _DECLARED.search(declared)
    if found is None:
        return None
    names = found[0].replace("std::", "").split()
    is_unsigned = any(name.startswith(("u", "cuuint", "CU")) or name in ("size_t", "bool") for name in names)
    bits = next((bits for bits, parts in _WIDTHS if any(part in found[0] for part in parts)), INT.bits)
    return IntegerType(bits, not is_unsigned)


_WIDTHS: Final = ((64, ("64", "long", "ptr", "size_t", "CU")), (16, ("16", "short")), (8, ("int8", "char", "bool")))
"""Widths in bits, and parts of the names of the types that have them."""


def typed_integer(text: str, bits_of: Callable[[str], int], of_python: bool = False) -> TypedInteger:
    """Evaluate an expression of integer constants.

    Args:
        bits_of: the bits of a type that `sizeof` names; 0 if it is unknown. of_python: whether numbers have no width.
    Raises:
        InvalidValueError: the text is not such an expression, or a result does not fit its type; then the error has the
            rule `OVERFLOW`.

    >>> typed_integer("(1000 + 24) * sizeof(half)", {"half": 16}.__getitem__)
    TypedInteger(value=2048, kind=IntegerType(bits=64, signed=False))
    >>> typed_integer("65536 * 65536", {}.get)
    Traceback (most recent call last):
    cute_py.errors.InvalidValueError: 65536 * 65536 = 4294967296 overflows int, which holds -2147483648 to 2147483647
    """
    reader = _Reader(text, bits_of, of_python)
    number = reader.binary()
    reader.end()
    return number


def _unread(text: str) -> InvalidValueError:
    return InvalidValueError(f"{text[:80]!r} is not an expression of integer constants")


class _Reader:
    """Reads an expression by recursive descent."""

    def __init__(self, text: str, bits_of: Callable[[str], int], of_python: bool) -> None:
        self._text = text
        self._bits_of = bits_of
        self._of_python = of_python
        self._at = 0
        self._depth = 0

    def end(self) -> None:
        """Refuse an expression that does not end here."""
        if self._text[self._at :].strip():
            raise _unread(self._text)

    def binary(self, lowest: int = 0) -> TypedInteger:
        """Read operations whose precedence is `lowest` or higher."""
        left = self._unary()
        while (sign := self._sign()) is not None and _PRECEDENCE.get(sign[0], -1) >= lowest:
            self._at = sign[1]
            right = self.binary(_PRECEDENCE[sign[0]] + 1)
            left = self._applied(sign[0], left, right)
        return left

    def _sign(self) -> tuple[str, int] | None:
        found = _TOKEN.match(self._text, self._at)
        return None if found is None or not found["sign"] else (found["sign"], found.end())

    def _expect(self, sign: str) -> None:
        found = self._sign()
        if found is None or found[0] != sign:
            raise _unread(self._text)
        self._at = found[1]

    def _unary(self) -> TypedInteger:
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise _unread(self._text)
        try:
            return self._operand()
        finally:
            self._depth -= 1

    def _operand(self) -> TypedInteger:
        if (cast := _CAST.match(self._text, self._at)) is not None:
            self._at = cast.end()
            return self._converted(self._unary(), SIZE if cast["pointer"] else integer_type(cast["type"]))
        if (cast := _STATIC_CAST.match(self._text, self._at) or _FUNCTIONAL.match(self._text, self._at)) is not None:
            self._at = cast.end()
            return self._converted(self._bracket(), integer_type(cast["type"]))
        if (sized := _SIZEOF.match(self._text, self._at)) is not None:
            self._at = sized.end()
            bits = self._bits_of(sized["bytes"] or sized["bits"] or sized["variable"])
            if not bits or (sized["bytes"] and bits % 8):
                raise _unread(self._text)
            return TypedInteger(bits // 8, SIZE) if sized["bytes"] else TypedInteger(bits, INT)
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            raise _unread(self._text)
        if found["number"]:
            self._at = found.end()
            return self._constant(found["number"], found["suffix"])
        if found["name"]:
            self._at = found.end()
            return self._function(found["name"].rpartition("::")[2])
        if found["sign"] == "(":
            return self._bracket()
        if found["sign"] in ("-", "+", "~"):
            self._at = found.end()
            inner = self._promoted(self._unary())
            value = {"-": -inner.value, "+": inner.value, "~": ~inner.value}[found["sign"]]
            if found["sign"] == "~" and not inner.kind.signed:
                value &= inner.kind.bounds[1]
            return self._fitting(value, inner.kind, f"{found['sign']}{inner.value}")
        raise _unread(self._text)

    def _bracket(self) -> TypedInteger:
        """Read an expression in parentheses or braces."""
        opening = self._sign()
        if opening is None or opening[0] not in "({":
            raise _unread(self._text)
        self._at = opening[1]
        number = self.binary()
        self._expect(")" if opening[0] == "(" else "}")
        return number

    def _function(self, name: str) -> TypedInteger:
        """Read the two operands of a function."""
        if name not in _FUNCTIONS:
            raise _unread(self._text)
        self._expect("(")
        one = self.binary()
        self._expect(",")
        other = self.binary()
        self._expect(")")
        kind = self._common(one, other)
        a, b = one.value, other.value
        if name in ("max", "min"):
            return TypedInteger(max(a, b) if name == "max" else min(a, b), kind)
        if a < 0 or b < 1:
            raise _unread(self._text)
        whole = -(-a // b)
        return self._fitting(whole * b if name == "round_up" else whole, kind, f"{name}({a}, {b})")

    def _constant(self, digits: str, suffix: str) -> TypedInteger:
        digits, suffix = digits.replace("'", ""), suffix.lower()
        decimal = not digits.startswith("0") or digits == "0"
        octal = not decimal and digits.isdecimal()
        if len(digits) > LONGEST_DIGITS or (octal and (self._of_python or set(digits) & set("89"))):
            raise _unread(self._text)
        value = int(digits, 8 if octal else 0)
        if self._of_python:
            return TypedInteger(value, UNLIMITED)
        for kind in (INT, IntegerType(32, signed=False), IntegerType(64), SIZE):
            wide_enough = kind.bits == 64 or not set(suffix) & set("lz")
            may_be = not kind.signed if "u" in suffix else kind.signed or not decimal
            if wide_enough and may_be and kind.fits(value):
                return TypedInteger(value, kind)
        raise _unread(self._text)

    def _promoted(self, number: TypedInteger) -> TypedInteger:
        return number if number.kind.bits not in (8, 16) else TypedInteger(number.value, INT)

    def _converted(self, number: TypedInteger, kind: IntegerType | None) -> TypedInteger:
        """The number in another type, as a cast makes it."""
        if kind is None:
            raise _unread(self._text)
        if self._of_python:
            return number
        value = number.value & ((1 << kind.bits) - 1)
        return TypedInteger(value - (1 << kind.bits) if kind.signed and value >> (kind.bits - 1) else value, kind)

    def _common(self, one: TypedInteger, other: TypedInteger) -> IntegerType:
        """The type that the operands of an operation take."""
        kinds = [self._promoted(number).kind for number in (one, other)]
        return max(kinds, key=lambda kind: (kind.bits, not kind.signed))

    def _applied(self, sign: str, left: TypedInteger, right: TypedInteger) -> TypedInteger:
        shown = f"{left.value} {sign} {right.value}"
        if sign in ("<<", ">>"):
            kind = self._promoted(left).kind
            if kind.bits and right.value >= kind.bits:
                raise self._overflow(f"{shown} shifts by {right.value} bits, but {kind.name} has only {kind.bits}")
            if not 0 <= right.value < MOST_SHIFTED:
                raise _unread(self._text)
            a, b = left.value, right.value
        else:
            kind = self._common(left, right)
            a, b = (self._converted(number, kind).value for number in (left, right))
        if sign in ("/", "//", "%"):
            return self._fitting(self._divided(sign, a, b), kind, shown)
        return self._fitting(_OPERATORS[sign](a, b), kind, shown)

    def _divided(self, sign: str, a: int, b: int) -> int:
        """The quotient or remainder, which C rounds towards zero and Python downwards. `/` of Python must be exact."""
        if b == 0 or (sign == "//" and not self._of_python) or (self._of_python and sign == "/" and a % b):
            raise _unread(self._text)
        quotient = a // b if self._of_python else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return a - b * quotient if sign == "%" else quotient

    def _fitting(self, value: int, kind: IntegerType, shown: str) -> TypedInteger:
        if not kind.fits(value):
            low, high = kind.bounds
            raise self._overflow(f"{shown} = {value} overflows {kind.name}, which holds {low} to {high}")
        return TypedInteger(value, kind)

    def _overflow(self, text: str) -> InvalidValueError:
        return InvalidValueError(text).of_rule(OVERFLOW)
