"""Parse printed objects: `parse(text)` returns the object whose str() is the text.

    text    :=  part (' o ' part)*                     two parts: engine o layout; three: outer o offset o inner
    part    :=  tree | tree ':' tree | swizzle | engine
    tree    :=  '(' part, ... ')' | number | basis (('+' | '-') basis)* | '_'
    basis   :=  number '@' mode '@' mode ... | number '*' E<mode, ...>
    swizzle :=  Sw<3,4,3> | S<3,4,3> | SW_3_4_3 | Swizzle<3,4,3>
    engine  :=  gmem_ptr[16b](0x1000) | ptr<f16, gmem, align<16>> | counting_iter(3) | ArithTuple(0,_0) | ...

Source code of C++ is read too: Int<4>{}, Layout<Shape<_4,_8>,Stride<_1,_4>>, make_layout(...), E<0,1>{}; and layouts of
numbers in Python: Layout((4, 8), stride=(8, 1)). A number is

    _4, Int<4>{}, C<4>{}, _4{}  Int        4  run-time int        _1/_2  ratio        M, 2*K + 1  symbolic

with ASCII digits. Pointers of the CuTe DSL, `ptr<f16, smem, align<128>, S<3,4,3>>`, have no address in the text. The
DSL's integer types do not show signedness: int8 and uint8 are both `i8` (CuTe DSL 4.8).
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from cute_py.argument_checks import MAX_INTEGER, wrong_type
from cute_py.arith_tuple.arith_tuple import ArithTuple, E, ScaledBasis
from cute_py.arith_tuple.iterators import ArithTupleIterator, CountingIterator, counting_iterator, make_inttuple_iter
from cute_py.arith_tuple.ratio import Ratio, ratio
from cute_py.dtypes import DTYPES, DType, DTypeLike, as_dtype
from cute_py.errors import CuteError, InvalidValueError, ParseError, given, shortened
from cute_py.layout.arguments import Underscore, Value, underscore
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout, LayoutLeft, LayoutRight, Major, make_layout
from cute_py.layout.leaf import MAX_DEPTH, Int
from cute_py.layout.recast import SmemPtrFlag, smem_ptr_flag
from cute_py.layout.swizzle import Swizzle
from cute_py.notation.expressions import MAX_TERMS, Symbols, checked_symbols, read_expression
from cute_py.tensor.pointers import Pointer, TmemPointer, make_gmem_ptr, make_ptr, make_smem_ptr, make_tmem_ptr
from cute_py.tensor.tensor import Tensor

Made = TypeVar("Made")

_MOST_DIGITS: Final = len(str(MAX_INTEGER))
MOST_TEXT: Final = 1 << 16
"""Maximum number of characters that `parse` and `explain` accept, so that they answer within 2 seconds."""
_SHOWN: Final = 40
"""Maximum number of characters of the text that an error repeats; the excerpt below it shows the surroundings."""

_OPERATION = re.compile(r"\s*(?:Tiled ?MMA|Tiled ?Copy|ThrMMA|ThrCopy|MMA[_ ]Atom|Copy[_ ]Atom)\s*\n")
_TRITON = re.compile(
    r"\s*(?:- \w+(?:=[0-9]+ ->| is a size 1)|#(?:ttg|ttng|triton_gpu|triton_nvidia_gpu|gluon)\.|\(empty layout|"
    r"(?:\w{1,40}\.){0,3}(?:(?:Distributed|Shared)Linear|Blocked|NVMMADistributed|DotOperand|Slice|SwizzledShared"
    r"|NVMMAShared|PaddedShared|TensorMemory|TensorMemoryScales)Layout\()"
)
_ALIAS = re.compile(r"\s*#\w{1,80}\s*=\s*(?=#)")
"""An MLIR alias, such as `#blocked =`, before its attribute."""
_STATIC = re.compile(r"_(-?[0-9]+)(?:\{\})?\Z")
_CONSTANT = re.compile(r"(?:Int|C)(?:<\s*(-?[0-9]+(?:\s*\*\s*[0-9]+){0,7})\s*>(?:\{\}|\(\))?|\(\s*(-?[0-9]+)\s*\))\Z")
_PLAIN = re.compile(r"-?[0-9]+\Z")
_RATIO = re.compile(r"_(-?[0-9]+)/_([0-9]+)\Z")
_RATIO_TYPE = re.compile(r"R<\s*(-?[0-9]+)\s*,\s*([0-9]+)\s*>(?:\{\})?\Z")
_FLOAT = re.compile(r"[-+]?[0-9]*\.[0-9]")
_BLANKS = re.compile(r"\s+")


def check_length(text: str) -> None:
    """Refuse a string that is too long.

    Raises:
        InvalidValueError: it has more than `MOST_TEXT` characters.

    >>> check_length("4:1," * 20_000)
    Traceback (most recent call last):
    cute_py.errors.InvalidValueError: the text has 80000 characters; must have at most 65536
    """
    if len(text) > MOST_TEXT:
        raise InvalidValueError(f"the text has {len(text)} characters; must have at most {MOST_TEXT}")


def failure(text: str, position: int, expected: str, cause: CuteError | None = None) -> ParseError:
    """Make the error for a position in the text. It shows the expected form, a mark below the position, and the facts
    of the error that caused it."""
    begin, end = max(0, position - 30), position + 30
    before, after = "..." if begin else "", "..." if end < len(text) else ""
    window = f"{before}{text[begin:end]}{after}".replace("\n", " ")
    facts = {"text": window, "here": " " * (len(before) + position - begin) + "^", **(cause.facts if cause else {})}
    return ParseError(f"at position {position}: {expected}", facts, position=position)


def surplus_bracket(text: str) -> int | None:
    """Return the position of the first `)` that closes no `(`, or None.

    >>> surplus_bracket("((2,2),3):(24,2),8)"), surplus_bracket("(4,8):(8,1)")
    (18, None)
    """
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth < 0:
            return i
    return None


def read_integer(text: str, position: int, digits: str) -> int:
    """Read an integer from its digits.

    Raises:
        ParseError: the integer is beyond 2**128 in magnitude; the error shows its first and last digits.
    """
    significant = digits.lstrip("-0")
    if len(significant) <= _MOST_DIGITS and int(significant or "0") <= MAX_INTEGER:
        return -int(significant or "0") if digits.startswith("-") else int(significant or "0")
    shown = shortened(digits, _SHOWN)
    if shown != digits:
        shown += f" ({len(digits)} characters)"
    raise failure(text, position, f"the integer is {shown}; must be at most 2**128 in magnitude")


def leaf_end(text: str, begin: int) -> int:
    """Return the index where a leaf ends: at a comma, colon, @, closing bracket, ` o `, or the end of the text."""
    depth = 0
    i = begin
    while i < len(text):
        c = text[i]
        if c in "([{<":
            depth += 1
        elif c in ")]}>":
            if depth == 0:
                break
            depth -= 1
        elif depth == 0:
            if c in ",:@":
                break
            if blanks := _BLANKS.match(text, i):  # all delimiters in one search
                after = blanks.end()
                if text.startswith("o", after) and text[after + 1 : after + 2].isspace():
                    break
                i = after
                continue
        i += 1
    return i


def read_number(text: str, begin: int, end: int, symbols: Symbols) -> Value | Ratio:
    """Read the number of a leaf: Int, int, ratio or symbolic.

    Raises:
        ParseError: the text is a `?` (an unknown number of the DSL), a float, an integer beyond 2**128, or not a
            number.
    """
    token = text[begin:end].strip()
    shown = shortened(token, _SHOWN)
    if not token:
        mark = repr(text[end]) if end < len(text) else "the end of the text"
        raise failure(text, begin, f"expected a number, found {mark}")
    if _PLAIN.match(token):
        return read_integer(text, begin, token)
    if found := _STATIC.match(token) or _CONSTANT.match(token):
        factors = next(g for g in found.groups() if g is not None).split("*")
        return Int(math.prod([read_integer(text, begin, factor.strip()) for factor in factors]))
    if found := _RATIO.match(token) or _RATIO_TYPE.match(token):
        numerator, denominator = (read_integer(text, begin, part) for part in found.groups())
        if denominator == 0:
            raise failure(text, begin, f"the ratio {shown} has denominator 0")
        return ratio(numerator, denominator)
    if token.startswith("?"):
        raise failure(
            text,
            begin,
            f"{shown} is a number that is known only at run time; replace it with the number or with a symbol",
        )
    if _FLOAT.match(token):
        raise failure(text, begin, f"{shown} is not an integer")
    try:
        return read_expression(token, symbols)
    except CuteError as error:
        raise failure(text, begin, error.headline) from None


DSL_POINTER: Final = re.compile(
    r"ptr<\s*(?P<type>\w+)\s*,\s*(?P<space>gmem|smem|tmem|rmem|generic)(?:\s*,\s*align<[0-9]+>)?"
    r"(?:\s*,\s*S<\s*(?P<bits>[0-9]+)\s*,\s*(?P<base>[0-9]+)\s*,\s*(?P<shift>-?[0-9]+)\s*>)?\s*>"
)

_INTEGER: Final = re.compile(r"i([0-9]+)")
_SMALL_FLOAT: Final = re.compile(r"f([0-9]+)(E[0-9]++M[0-9]++\w*+)")


def dsl_type(name: str) -> DType:
    """Return the element type with this MLIR name.

    Raises:
        InvalidValueError: the name is unknown.

    >>> dsl_type("f8E4M3FN"), dsl_type("bf16"), dsl_type("i1")
    (DType('float8_e4m3fn'), DType('bfloat16'), DType('bool'))
    """
    if name == "i1":
        return as_dtype("bool")
    if found := _INTEGER.fullmatch(name):
        return as_dtype(f"int{found[1]}")
    if found := _SMALL_FLOAT.fullmatch(name):
        return as_dtype(f"float{found[1]}_{found[2].lower()}")
    return as_dtype(name)


def dsl_pointer(found: re.Match[str], dtype: DType | None = None) -> Pointer | TmemPointer:
    """Make a pointer at address 0 from a match of `DSL_POINTER`; `dtype` replaces the type in the text."""
    kind = dsl_type(found["type"]) if dtype is None else dtype
    if found["space"] == "smem":
        numbers = [read_integer(found.string, found.start(n), found[n]) for n in ("bits", "base", "shift") if found[n]]
        swizzle = Swizzle(*numbers) if numbers else None
        return make_smem_ptr(0, kind, swizzle)
    if found["space"] == "tmem":
        return make_tmem_ptr(0, kind)
    return (make_gmem_ptr if found["space"] == "gmem" else make_ptr)(0, kind)


_SWIZZLE = re.compile(
    r"(?:Sw|S|Swizzle)<\s*([0-9]+)\s*,\s*([0-9]+)\s*,\s*(-?[0-9]+)\s*>(?:\{\})?|SW_([0-9]+)_([0-9]+)_(-?[0-9]+)"
)
_AFTER_SWIZZLE = re.compile(r"_(gmem_|smem_)?(sub)?ptr\[")
_POINTER = re.compile(
    r"_?(?P<space>gmem_|smem_|)(?P<sub>sub)?ptr"
    r"(?:\[(?P<bits>[0-9]+)b\]|(?:_S<(?P<swizzle>[0-9]+,[0-9]+,-?[0-9]+)>)?_(?P<old>[0-9]+)b)"
    r"\((?P<address>[^()]*|\(nil\)[^()]*)\)"
)
"""A pointer; CUTLASS 3.0 to 3.2 print smem_ptr_16b(0x400), and smem_ptr_S<3,4,3>_16b(0x400) if it has a swizzle."""
_NAME = r"(?:[GST]MEM_)?ADDR\w*(?: ?\+ ?\w{1,60}){0,4}"
_ADDRESS = re.compile(rf"(?:(?P<nil>\(nil\)|{_NAME})|(?:0x)?(?P<byte>[0-9a-fA-F]+))(?:\.(?P<bit>[0-9]))?")
_TMEM = re.compile(rf"tmem_\[([0-9]+)b\]\((?:0x([0-9a-fA-F]+)\.([0-9a-fA-F]+)|{_NAME})\)")
_NAMED_ADDRESS = re.compile(rf"\[[0-9]+b\]\(({_NAME})\)")
"""A pointer whose address is a name, or its sum with offsets, as in the comments of CUTLASS's examples. Its address
becomes 0."""
_FLAG_OFFSET = re.compile(r"\+([0-9]+)")
_COUNTING = re.compile(r"counting_iter\((-?[0-9]+)(\.[0-9]+)?\)")
_E = re.compile(r"E<\s*((?:[0-9]+\s*(?:,\s*[0-9]+\s*)*)?)>(?:\{\})?")
_MODE = re.compile(r"[0-9]+")
_TUPLE_WORD = re.compile(
    r"(?:make_(?:tuple|shape|stride|coord|tile|step|arithmetic_tuple))\(|(?:Shape|Stride|Coord|Tile|Step|tuple|ArithmeticTuple)<"
)
_LAYOUT_WORD = re.compile(r"(?:cute(?:_py)?(?:\.|::))?(?:make_layout\(|Layout[<(])")
_KEYWORD = re.compile(r"(shape|stride)\s*=\s*")
_ORDER_WORD = re.compile(r"(?:Gen(?:Col|Row)Major|Layout(?:Left|Right))(?:\{\})?")
_SIGN = re.compile(r"\s*([+-])\s*")
_E_AND_SIGN = re.compile(_E.pattern + r"(?=\s*[+-])")
_OPERATOR = re.compile(r"\s*[-*/+%]")
_COMPOSE = re.compile(r"\s+o\s+")
_ANY_BLANKS = re.compile(r"\s*")


Parsed: TypeAlias = (
    Layout
    | ComposedLayout
    | Swizzle
    | Tensor
    | Pointer
    | TmemPointer
    | ArithTupleIterator
    | CountingIterator
    | ScaledBasis
    | ArithTuple
    | Ratio
    | Underscore
    | int
    | tuple["Parsed", ...]
)
"""An object that `parse` returns."""


def parse(text: str, *, dtype: DTypeLike | None = None, symbols: Symbols | None = None) -> Parsed:
    """Parse a printed layout, composed layout, swizzle, basis, tuple, pointer, tensor, atom or tiled operation.

    Args:
        text: the str() of such an object, its spelling in C++ or CuTe DSL, or a linear layout or encoding of Triton.
        dtype: the element type of a pointer, of A of an MMA, or of a copy's values. Printed types show only their
            width; the default is the unsigned integer of this width, or the first MMA of CuTe with the printed layouts.
        symbols: a mapping of names to sympy symbols or integers; other names become positive integer symbols.
    Raises:
        ParseError: the text has another form; `position` is the first character that was not read. A `?` is refused,
            because it stands for a number that is not in the text. Also refused are integers beyond 2**128, modes of a
            basis beyond 4095 (a tuple has an entry for every lower mode), and more than 64 levels of nesting. The time
            is proportional to the length of the text.
        InvalidTypeError, InvalidValueError: an argument has another type, the text has more than 65,536 characters, or
            the value of a symbol is not an integer.

    >>> parse("((_2,_2),_3):((_24,_2),_8)")
    Layout(((Int(2), Int(2)), Int(3)), ((Int(24), Int(2)), Int(8)))
    >>> print(parse("Sw<3,4,3> o _0 o (8,64):(64,_1)"), parse("ArithTuple(0,_0) o (4,5):(_1@0,_1@1)"))
    Sw<3,4,3> o _0 o (8,64):(64,_1) ArithTuple(0,_0) o (4,5):(_1@0,_1@1)
    >>> print(parse("2*2@1@0 + 3*1@1 + 4*5@1 + 7*1@0@0"))
    ((7,4),23)
    """
    if not isinstance(text, str):
        raise wrong_type("parse takes a text", text)
    check_length(text)
    known = {} if symbols is None else checked_symbols(symbols)
    kind = None if dtype is None else as_dtype(dtype)
    if alias := _ALIAS.match(text):
        text = text[alias.end() :]
    reader = _Reader(text, kind, known)
    if _TRITON.match(text):
        from cute_py.notation.triton_texts import parse_any

        return parse_any(text)  # type: ignore[return-value]
    if _OPERATION.match(text):  # import the tables of atoms only if the text has an atom
        from cute_py.notation.tiled_operations import parse_operation

        return parse_operation(text, kind, parse, dsl_type, lambda bits: reader.type_of(bits, 0))  # type: ignore[return-value]
    reader.blanks()
    try:
        result = reader.expression()
    except ParseError as error:
        surplus = surplus_bracket(text)
        if error.__cause__ is None or surplus is None:
            raise
        raise failure(text, surplus, _SURPLUS) from None  # the text before the bracket parses, but its parts do not fit
    reader.blanks()
    if reader.at < len(text):
        raise failure(
            text, reader.at, _SURPLUS if reader.at == surplus_bracket(text) else "expected the end of the text"
        )
    return result


_SURPLUS: Final = "this ')' closes no '('"


def address_notes(text: str) -> list[str]:
    """Return a note about the name in place of an address, if the text of a tensor has one.

    >>> address_notes("gmem_ptr[16b](GMEM_ADDR_A) o (4,8):(8,1)")
    ['  the text has the name GMEM_ADDR_A instead of an address; 0 stands for it']
    """
    found = _NAMED_ADDRESS.search(text)
    return [f"  the text has the name {found[1]} instead of an address; 0 stands for it"] if found else []


class _Reader:
    """A reader of the text, and its current position."""

    def __init__(self, text: str, dtype: DType | None, symbols: Symbols) -> None:
        self.text = text
        self.at = 0
        self.dtype = dtype
        self.symbols = symbols
        self.depth = 0

    def blanks(self) -> None:
        self.found(_ANY_BLANKS)

    def found(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def taken(self, word: str) -> bool:
        if self.text.startswith(word, self.at):
            self.at += len(word)
            return True
        return False

    def need(self, word: str) -> None:
        self.blanks()
        if not self.taken(word):
            raise failure(self.text, self.at, f"expected {word!r}")

    def number(self, found: re.Match[str], group: int | str) -> int:
        """Return the integer in one group of a match."""
        return read_integer(self.text, found.start(group), found[group])

    def deeper(self) -> None:
        """Enter a nested level of brackets or compositions; refuse a level that is too deep."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise failure(self.text, self.at, f"brackets are nested deeper than {MAX_DEPTH} levels")

    def expression(self) -> Parsed:
        """Read a composition: part (' o ' part)*."""
        begin, depth = self.at, self.depth
        if self.taken("tensor<"):
            self.deeper()
            inner = self.expression()
            self.need(">")
            self.depth = depth
            return inner
        parts = [self.part()]
        while self.found(_COMPOSE):
            self.deeper()
            parts.append(self.part())
        self.depth = depth
        return self.built(lambda: _joined(parts, self), begin)

    def part(self) -> Parsed:
        """Read one part of a composition: a swizzle, an engine, or a tree with its `:stride` if it has one."""
        self.blanks()
        begin = self.at
        head = self.engine_or_swizzle()
        if head is not None:
            return head
        if word := self.found(_LAYOUT_WORD):
            return self.layout_call(word[0], begin)
        shape = self.tree()
        mark = self.at
        self.blanks()
        if not self.taken(":"):
            self.at = mark
            return shape  # type: ignore[return-value]
        self.blanks()
        stride = self.tree()
        return self.built(lambda: Layout(shape, stride), begin)  # type: ignore[arg-type]

    def built(self, make: Callable[[], Made], begin: int) -> Made:
        """Return `make()`; convert an error that it raises to a parse error at position `begin`."""
        try:
            return make()
        except ParseError:
            raise
        except CuteError as error:
            raise failure(self.text, begin, shortened(error.headline, 160), error) from error

    def layout_call(self, word: str, begin: int) -> Layout:
        """Read make_layout(...), Layout(...) or Layout<...>, after the opening bracket."""
        keywords: list[str] = []
        parts = self.items({"(": ")", "<": ">"}[word[-1]], keywords if word[-1] == "(" else None)
        self.taken("{}")
        make: Callable[..., Layout] = Layout if word.endswith("Layout(") or any(keywords) else make_layout
        if any(keywords):
            names = ["shape", "stride"][: len(keywords) - len([*filter(None, keywords)])]
            names += [*filter(None, keywords)]
            if sorted(names) != ["shape", "stride"][: len(names)] or len(names) != len(parts) or keywords[-1] == "":
                raise failure(self.text, begin, "a layout takes shape and stride, each once")
            parts = [part for _, part in sorted(zip(names, parts, strict=True), key=operator.itemgetter(0))]
        if make is Layout and not 1 <= len(parts) <= 2:
            raise failure(self.text, begin, f"Layout takes a shape and a stride, and has {len(parts)} arguments")
        return self.built(lambda: make(*parts), begin)

    def items(self, closing: str, keywords: list[str] | None = None) -> list[Parsed]:
        """Read part, part, ... up to the closing bracket.

        keywords: a list that gets the keyword of each part, or ''; None if `shape=` and `stride=` may not precede one.
        """
        self.deeper()
        out: list[Parsed] = []
        self.blanks()
        while not self.taken(closing):
            if out:
                if not self.taken(","):
                    raise failure(self.text, self.at, f"expected ',' or {closing!r}")
                self.blanks()
                if self.taken(closing):  # Python's (4,)
                    break
            if self.at >= len(self.text):
                raise failure(self.text, self.at, f"expected {closing!r}")
            if keywords is not None:
                keyword = self.found(_KEYWORD)
                keywords.append(keyword[1] if keyword else "")
            out.append(self.expression())
            self.blanks()
        self.depth -= 1
        return out

    def tree(self) -> Parsed | Major:
        """Read a tuple or a leaf."""
        begin = self.at
        if self.taken("("):
            items = self.items(")")
            if not (len(items) == 1 and _OPERATOR.match(self.text, self.at)):
                return tuple(items)
            self.at = begin  # the bracket of a symbolic expression
        elif word := self.found(_TUPLE_WORD):
            items = self.items({"(": ")", "<": ">"}[word[0][-1]])
            self.taken("{}")
            return tuple(items)
        elif word := self.found(_ORDER_WORD):
            return LayoutRight if "R" in word[0][3:7] or "Right" in word[0] else LayoutLeft
        return self.leaf()

    def leaf(self) -> Parsed:
        """Read a leaf: a number, a basis element, a linear combination of basis elements, or `_`."""
        begin = self.at
        total = self.term()
        terms = 1
        while isinstance(total, (ScaledBasis, ArithTuple)) and (sign := self.found(_SIGN)):
            terms += 1
            if terms > MAX_TERMS:
                raise failure(self.text, sign.start(), f"the linear combination has more than {MAX_TERMS} terms")
            at = self.at
            term = self.term()
            if not isinstance(term, ScaledBasis):
                raise failure(self.text, at, "expected a basis element such as 2@1")
            combined = operator.add if sign[1] == "+" else operator.sub
            total = self.built(functools.partial(combined, total, term), begin)
        return total

    def term(self) -> Parsed:
        """Read a number, a basis element, or `_`."""
        begin = self.at
        if found := self.found(_E):
            modes = self.modes(found)
            return self.built(lambda: E(*modes), begin)
        end = leaf_end(self.text, self.at)
        if more := _E_AND_SIGN.search(self.text, begin, end):
            end = more.end()
        word = self.text[begin:end].strip()
        if word in ("_", "None", "_{}", "Underscore{}"):
            self.at = begin + self.text[begin:end].index(word) + len(word)
            return underscore
        stop = begin + len(self.text[begin:end].rstrip())
        product = _E.fullmatch(self.text, max(self.text.rfind("E<", begin, stop), begin), stop)
        before = self.text[begin : product.start()].rstrip() if product else ""
        if product and before.endswith("*"):
            value = read_number(self.text, begin, begin + len(before) - 1, self.symbols)
            modes = self.modes(product)
            self.at = end
        else:
            value = read_number(self.text, begin, end, self.symbols)
            self.at = stop
            modes = []
            while self.taken("@"):
                digits = self.found(_MODE)
                if digits is None:
                    raise failure(self.text, self.at, "expected the index of a mode after @")
                modes.append(self.number(digits, 0))
            modes.reverse()
        return self.built(lambda: ScaledBasis(value, *modes), begin) if modes else value

    def modes(self, found: re.Match[str]) -> list[int]:
        """Read the modes between E< and >, outermost first."""
        return [read_integer(self.text, mode.start(), mode[0]) for mode in _MODE.finditer(self.text, *found.span(1))]

    def engine_or_swizzle(self) -> Parsed | None:
        begin = self.at
        swizzle = None
        if found := self.found(_SWIZZLE):
            match = found
            bits, base, shift = (self.number(match, group) for group in ((1, 2, 3) if match[1] else (4, 5, 6)))
            swizzle = self.built(lambda: Swizzle(bits, base, shift), begin)
            if not _AFTER_SWIZZLE.match(self.text, self.at):
                return swizzle
        if found := self.found(_POINTER):
            return self.pointer(found, swizzle, begin)
        if found := self.found(DSL_POINTER):
            dsl = found
            return self.built(lambda: dsl_pointer(dsl, self.dtype), begin)
        if found := self.found(_TMEM):
            lane, column = int(found[2] or "0", 16), int(found[3] or "0", 16)
            if column >= 1 << 16:
                raise failure(self.text, begin, "the column of tensor memory does not fit into 16 bits")
            kind = self.dtype or self.type_of(self.number(found, 1), begin)
            return self.built(lambda: make_tmem_ptr(lane << 16 | column, kind), begin)
        if found := self.found(_COUNTING):
            start = self.number(found, 1)
            if found[2]:  # print() writes a float like a double.
                real = float(found[1] + found[2])
                return self.built(lambda: counting_iterator(real, self.dtype or "float32"), begin)
            return counting_iterator(start)
        if self.taken("ArithTuple"):
            coord = self.tree()
            return self.built(lambda: make_inttuple_iter(coord), begin)
        return None

    def type_of(self, bits: int, begin: int) -> DType:
        """Return the unsigned integer type of this width; if there is none, the first type of this width."""
        rows = sorted([d for d in DTYPES if d.bits == bits], key=lambda d: d.kind != "uint")
        if not rows:
            raise failure(self.text, begin, f"there is no element type of {bits} bits")
        return rows[0]

    def pointer(self, found: re.Match[str], swizzle: Swizzle | None, begin: int) -> Pointer | SmemPtrFlag:
        bits, inside = self.number(found, "bits" if found["bits"] else "old"), found["address"]
        if found["swizzle"]:
            parts = [read_integer(self.text, found.start("swizzle"), part) for part in found["swizzle"].split(",")]
            swizzle = self.built(lambda: Swizzle(*parts), begin)
        if swizzle is not None and (found["space"] != "smem_" or inside == "unset"):
            raise failure(self.text, begin, "expected an address of shared memory after the swizzle")
        if inside == "unset":
            match = self.found(_FLAG_OFFSET)
            moved = self.number(match, 1) if match else 0
            return self.built(lambda: smem_ptr_flag(bits, moved), begin)
        # one bit in a whole byte is a bool
        dtype = self.dtype or (as_dtype("bool") if bits == 1 and not found["sub"] else self.type_of(bits, begin))
        place = _ADDRESS.fullmatch(inside)
        if place is None:
            raise failure(self.text, begin, f"expected an address, found {given(inside)}")
        address, bit = 0 if place["nil"] else int(place["byte"], 16), int(place["bit"] or 0)
        if found["space"] == "smem_":
            made = self.built(lambda: make_smem_ptr(address, dtype, swizzle), begin)
        elif found["space"] == "gmem_":
            made = self.built(lambda: make_gmem_ptr(address, dtype), begin)
        else:
            made = self.built(lambda: make_ptr(address, dtype), begin)
        return self.built(lambda: dataclasses.replace(made, bit=bit), begin) if bit else made


def _is_engine(part: Parsed) -> bool:
    return hasattr(part, "__getitem__") and hasattr(part, "element_type")


def _joined(parts: list[Parsed], reader: _Reader) -> Parsed:
    """Combine parts: engine o layout, outer o offset o inner (from right to left), or a single part."""
    if len(parts) == 1:
        return parts[0]
    if _is_engine(parts[0]) or (len(parts) % 2 == 0 and isinstance(parts[0], (tuple, int))):
        engine: Any = parts[0]
        inner: Any = _joined(parts[1:], reader)
        return Tensor(engine if _is_engine(engine) else make_inttuple_iter(engine), inner)
    if len(parts) % 2 == 0:
        raise failure(reader.text, reader.at, "expected a composed layout with three parts: outer o offset o inner")
    offset: Any = parts[1]
    if isinstance(offset, tuple):
        offset = make_inttuple_iter(offset).coord
    elif not isinstance(offset, (int, Int)) and not hasattr(offset, "free_symbols"):
        raise failure(
            reader.text, reader.at, f"the offset between two functions must be an integer, got {given(offset)}"
        )
    return ComposedLayout(parts[0], offset, _joined(parts[2:], reader))  # type: ignore[arg-type]
