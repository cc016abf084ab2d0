"""parse(text): the object whose str() is the text.

    text    :=  part (' o ' part)*                     two parts: engine o layout; three: outer o offset o inner
    part    :=  tree | tree ':' tree | swizzle | engine
    tree    :=  '(' part, ... ')' | number | number '@' mode '@' mode ... | '_'
    swizzle :=  Sw<3,4,3> | S<3,4,3> | SW_3_4_3 | Swizzle<3,4,3>
    engine  :=  gmem_ptr[16b](0x1000) | ptr<f16, gmem, align<16>> | counting_iter(3) | ArithTuple(0,_0) | ...

C++ source spellings are read too: Int<4>{}, Layout<Shape<_4,_8>,Stride<_1,_4>>, make_layout(...), E<0,1>{}.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from cute_py.arith_tuple.dsl_pointers import DSL_POINTER, dsl_pointer
from cute_py.arith_tuple.expressions import checked_symbols
from cute_py.arith_tuple.iterators import counting_iterator, make_inttuple_iter
from cute_py.arith_tuple.pointers import make_gmem_ptr, make_ptr, make_smem_ptr, make_tmem_ptr
from cute_py.arith_tuple.scaled_basis import E, ScaledBasis
from cute_py.arith_tuple.scan import failure, leaf_end, read_integer, read_number
from cute_py.dtypes import DTYPES, as_dtype
from cute_py.errors import CuteError, InvalidTypeError, ParseError, given
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout, LayoutLeft, LayoutRight, make_layout
from cute_py.layout.leaf import MAX_DEPTH, Int, underscore
from cute_py.layout.pointer_flagged import smem_ptr_flag
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.tensor import Tensor

_SWIZZLE = re.compile(
    r"(?:Sw|S|Swizzle)<\s*([0-9]+)\s*,\s*([0-9]+)\s*,\s*(-?[0-9]+)\s*>(?:\{\})?|SW_([0-9]+)_([0-9]+)_(-?[0-9]+)"
)
_AFTER_SWIZZLE = re.compile(r"_(gmem_|smem_)?(sub)?ptr\[")
_POINTER = re.compile(
    r"_?(?P<space>gmem_|smem_|)(?P<sub>sub)?ptr\[(?P<bits>[0-9]+)b\]\((?P<address>[^()]*|\(nil\)[^()]*)\)"
)
_ADDRESS = re.compile(r"(?:(?P<nil>\(nil\))|(?:0x)?(?P<byte>[0-9a-fA-F]+))(?:\.(?P<bit>[0-9]))?")
_TMEM = re.compile(r"tmem_\[([0-9]+)b\]\(0x([0-9a-fA-F]+)\.([0-9a-fA-F]+)\)")
_FLAG_OFFSET = re.compile(r"\+([0-9]+)")
_COUNTING = re.compile(r"counting_iter\((-?[0-9]+)(\.[0-9]+)?\)")
_E = re.compile(r"E<\s*((?:[0-9]+\s*(?:,\s*[0-9]+\s*)*)?)>(?:\{\})?")
_MODE = re.compile(r"[0-9]+")
_TUPLE_WORD = re.compile(
    r"(?:make_(?:tuple|shape|stride|coord|tile|step|arithmetic_tuple))\(|(?:Shape|Stride|Coord|Tile|Step|tuple|ArithmeticTuple)<"
)
_LAYOUT_WORD = re.compile(r"make_layout\(|Layout<")
_ORDER_WORD = re.compile(r"(?:Gen(?:Col|Row)Major|Layout(?:Left|Right))(?:\{\})?")
_OPERATOR = re.compile(r"\s*[-*/+%]")
_COMPOSE = re.compile(r"\s+o\s+")
_BLANKS = re.compile(r"\s*")


def parse(text: str, *, dtype: Any = None, symbols: Mapping[str, Any] | None = None) -> Any:
    """The layout, composed layout, swizzle, basis, tuple, pointer or tensor that a text shows.

    Args:
        text: what str() of any of them prints, or the C++ or DSL spelling.
        dtype: element type of pointers; default the unsigned integer of the printed width (a text says only the
            width).
        symbols: name -> sympy symbol or integer; other names become positive integer symbols.
    Raises:
        ParseError: `position` is where the text could not be read on. A `?` is refused: its number is not in the text.
            So are integers beyond 2**128, a mode of a basis beyond 4095 (as a tuple it has an entry for every mode up
            to that one), and what is nested deeper than 64 levels. The time grows with the length of the text only.
        InvalidTypeError, InvalidValueError: no text, no element type, or symbols that stand for no integers.

    >>> parse("((_2,_2),_3):((_24,_2),_8)")
    Layout(((Int(2), Int(2)), Int(3)), ((Int(24), Int(2)), Int(8)))
    >>> print(parse("Sw<3,4,3> o _0 o (8,64):(64,_1)"), parse("ArithTuple(0,_0) o (4,5):(_1@0,_1@1)"))
    Sw<3,4,3> o _0 o (8,64):(64,_1) ArithTuple(0,_0) o (4,5):(_1@0,_1@1)
    """
    if not isinstance(text, str):
        raise InvalidTypeError(f"parse takes a text, got {type(text).__name__} {given(text)}")
    known = {} if symbols is None else checked_symbols(symbols)
    reader = _Reader(text, None if dtype is None else as_dtype(dtype), known)
    reader.blanks()
    result = reader.expression()
    reader.blanks()
    if reader.at < len(text):
        raise failure(text, reader.at, "expected the end of the text")
    return result


class _Reader:
    """A text and the place in it that is read next."""

    def __init__(self, text: str, dtype: Any, symbols: Mapping[str, Any]) -> None:
        self.text = text
        self.at = 0
        self.dtype = dtype
        self.symbols = symbols
        self.depth = 0

    def blanks(self) -> None:
        self.found(_BLANKS)

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
        """The integer that a group of a match has."""
        return read_integer(self.text, found.start(group), found[group])

    def deeper(self) -> None:
        """One level more, of brackets or of compositions."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise failure(self.text, self.at, f"nested deeper than {MAX_DEPTH} levels")

    def expression(self) -> Any:
        """part (' o ' part)*"""
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
        try:
            return _joined(parts, self)
        except ParseError:
            raise
        except CuteError as error:
            raise failure(self.text, begin, error.headline) from error

    def part(self) -> Any:
        """One part, with its `:stride` if it has one."""
        self.blanks()
        begin = self.at
        head = self.engine_or_swizzle()
        if head is not None:
            return head
        if word := self.found(_LAYOUT_WORD):
            return self.layout_call(word[0][-1], begin)
        shape = self.tree()
        mark = self.at
        self.blanks()
        if not self.taken(":"):
            self.at = mark
            return shape
        self.blanks()
        stride = self.tree()
        return self.built(lambda: Layout(shape, stride), begin)

    def built(self, make: Any, begin: int) -> Any:
        """What `make()` gives; its refusal becomes a parse error at `begin`."""
        try:
            return make()
        except ParseError:
            raise
        except CuteError as error:
            raise failure(self.text, begin, error.headline) from error

    def layout_call(self, opening: str, begin: int) -> Any:
        """make_layout(...) or Layout<...>, after the opening bracket."""
        parts = self.items({"(": ")", "<": ">"}[opening])
        self.taken("{}")
        return self.built(lambda: make_layout(*parts), begin)

    def items(self, closing: str) -> list[Any]:
        """part, part, ... up to the closing bracket."""
        self.deeper()
        out: list[Any] = []
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
            out.append(self.expression())
            self.blanks()
        self.depth -= 1
        return out

    def tree(self) -> Any:
        """A tuple, or a leaf."""
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

    def leaf(self) -> Any:
        """A number, a basis element, or `_`."""
        begin = self.at
        if found := self.found(_E):
            modes = self.modes(found)
            return self.built(lambda: E(*modes), begin)
        end = leaf_end(self.text, self.at)
        word = self.text[begin:end].strip()
        if word in ("_", "None", "_{}", "Underscore{}"):
            self.at = begin + self.text[begin:end].index(word) + len(word)
            return underscore
        product = _E.fullmatch(word, max(word.rfind("E<"), 0))
        before = word[: product.start()].rstrip() if product else ""
        if product and before.endswith("*"):
            value = read_number(self.text, begin, begin + len(before) - 1, self.symbols)
            modes = self.modes(product)
            self.at = end
        else:
            value = read_number(self.text, begin, end, self.symbols)
            self.at = begin + len(self.text[begin:end].rstrip())
            modes = []
            while self.taken("@"):
                digits = self.found(_MODE)
                if digits is None:
                    raise failure(self.text, self.at, "expected the number of a mode after @")
                modes.append(self.number(digits, 0))
            modes.reverse()
        return self.built(lambda: ScaledBasis(value, *modes), begin) if modes else value

    def modes(self, found: re.Match[str]) -> list[int]:
        """The modes between E< and >, outermost first."""
        return [read_integer(self.text, self.at, digits) for digits in _MODE.findall(found[1])]

    def engine_or_swizzle(self) -> Any:
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
            lane, column = int(found[2], 16), int(found[3], 16)
            if column >= 1 << 16:
                raise failure(self.text, begin, "a column of tensor memory is beyond 16 bits")
            kind = self.dtype or self.type_of(self.number(found, 1), begin)
            return self.built(lambda: make_tmem_ptr(lane << 16 | column, kind), begin)
        if found := self.found(_COUNTING):
            start = self.number(found, 1)
            if found[2]:  # print() writes a float and a double alike.
                real = float(found[1] + found[2])
                return self.built(lambda: counting_iterator(real, self.dtype or "float32"), begin)
            return counting_iterator(start)
        if self.taken("ArithTuple"):
            coord = self.tree()
            return self.built(lambda: make_inttuple_iter(coord), begin)
        return None

    def type_of(self, bits: int, begin: int) -> Any:
        """The unsigned integer of a width, or the first type that has it."""
        rows = sorted([d for d in DTYPES if d.bits == bits], key=lambda d: d.kind != "uint")
        if not rows:
            raise failure(self.text, begin, f"no element type has {bits} bits")
        return rows[0]

    def pointer(self, found: re.Match[str], swizzle: Swizzle | None, begin: int) -> Any:
        bits, inside = self.number(found, "bits"), found["address"]
        if inside == "unset":
            match = self.found(_FLAG_OFFSET)
            moved = self.number(match, 1) if match else 0
            return self.built(lambda: smem_ptr_flag(bits, moved), begin)
        # whole-byte text of one bit is a bool's
        dtype = self.dtype or (as_dtype("bool") if bits == 1 and not found["sub"] else self.type_of(bits, begin))
        place = _ADDRESS.fullmatch(inside)
        if place is None:
            raise failure(self.text, begin, f"{given(inside)} is no address")
        address, bit = 0 if place["nil"] else int(place["byte"], 16), int(place["bit"] or 0)
        if found["space"] == "smem_":
            made = self.built(lambda: make_smem_ptr(address, dtype, swizzle), begin)
        elif found["space"] == "gmem_":
            made = self.built(lambda: make_gmem_ptr(address, dtype), begin)
        else:
            made = self.built(lambda: make_ptr(address, dtype), begin)
        return self.built(lambda: dataclasses.replace(made, bit=bit), begin) if bit else made


def _is_engine(part: Any) -> bool:
    return hasattr(part, "__getitem__") and hasattr(part, "element_type")


def _joined(parts: list[Any], reader: _Reader) -> Any:
    """engine o layout, outer o offset o inner (right to left), or one part."""
    if len(parts) == 1:
        return parts[0]
    if _is_engine(parts[0]) or (len(parts) % 2 == 0 and isinstance(parts[0], (tuple, int))):
        engine = parts[0] if _is_engine(parts[0]) else make_inttuple_iter(parts[0])
        return Tensor(engine, _joined(parts[1:], reader))
    if len(parts) % 2 == 0:
        raise failure(reader.text, reader.at, "a composed layout has three parts: outer o offset o inner")
    offset = parts[1]
    if isinstance(offset, tuple):
        offset = make_inttuple_iter(offset).coord
    elif not isinstance(offset, (int, Int)) and not hasattr(offset, "free_symbols"):
        raise failure(reader.text, reader.at, f"the offset between two functions is an integer, got {given(offset)}")
    return ComposedLayout(parts[0], offset, _joined(parts[2:], reader))
