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
from cute_py.arith_tuple.iterators import counting_iterator, make_inttuple_iter
from cute_py.arith_tuple.pointers import make_gmem_ptr, make_ptr, make_smem_ptr, make_tmem_ptr
from cute_py.arith_tuple.scaled_basis import E, ScaledBasis
from cute_py.arith_tuple.scan import failure, leaf_end, read_number
from cute_py.dtypes import DTYPES, as_dtype
from cute_py.errors import CuteError, InvalidTypeError, ParseError, given
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout, LayoutLeft, LayoutRight, make_layout
from cute_py.layout.leaf import MAX_DEPTH, Int, underscore
from cute_py.layout.pointer_flagged import smem_ptr_flag
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.tensor import Tensor

_SWIZZLE = re.compile(r"(?:Sw|S|Swizzle)<\s*(\d+)\s*,\s*(\d+)\s*,\s*(-?\d+)\s*>(?:\{\})?|SW_(\d+)_(\d+)_(-?\d+)")
_POINTER = re.compile(
    r"_?(?P<space>gmem_|smem_|)(?P<sub>sub)?ptr\[(?P<bits>\d+)b\]\((?P<address>[^()]*|\(nil\)[^()]*)\)"
)
_TMEM = re.compile(r"tmem_\[(\d+)b\]\(0x([0-9a-fA-F]+)\.([0-9a-fA-F]+)\)")
_FLAG_OFFSET = re.compile(r"\+([0-9]{1,39})")
_COUNTING = re.compile(r"counting_iter\((-?\d+)(\.\d+)?\)")
_E = re.compile(r"E<\s*(\d*(?:\s*,\s*\d+)*)\s*>(?:\{\})?")
_TUPLE_WORD = re.compile(
    r"(?:make_(?:tuple|shape|stride|coord|tile|step|arithmetic_tuple))\(|(?:Shape|Stride|Coord|Tile|Step|tuple|ArithmeticTuple)<"
)
_LAYOUT_WORD = re.compile(r"make_layout\(|Layout<")
_COMPOSE = re.compile(r"\s+o\s+")


def parse(text: str, *, dtype: Any = None, symbols: Mapping[str, Any] | None = None) -> Any:
    """The layout, composed layout, swizzle, basis, tuple, pointer or tensor that a text shows.

    Args:
        text: what str() of any of them prints, or the C++ or DSL spelling.
        dtype: element type of pointers; default the unsigned integer of the printed width (a text says only the
            width).
        symbols: name -> sympy symbol; other names become positive integer symbols.
    Raises:
        ParseError: `position` is where the text could not be read on. A `?` is refused: its number is not in the text.

    >>> parse("((_2,_2),_3):((_24,_2),_8)")
    Layout(((Int(2), Int(2)), Int(3)), ((Int(24), Int(2)), Int(8)))
    >>> print(parse("Sw<3,4,3> o _0 o (8,64):(64,_1)"), parse("ArithTuple(0,_0) o (4,5):(_1@0,_1@1)"))
    Sw<3,4,3> o _0 o (8,64):(64,_1) ArithTuple(0,_0) o (4,5):(_1@0,_1@1)
    """
    if not isinstance(text, str):
        raise InvalidTypeError(f"parse takes a text, got {type(text).__name__} {given(text)}")
    reader = _Reader(text, dtype, symbols or {})
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
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

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

    def expression(self) -> Any:
        """part (' o ' part)*"""
        begin = self.at
        if self.taken("tensor<"):
            inner = self.expression()
            self.need(">")
            return inner
        parts = [self.part()]
        while self.found(_COMPOSE):
            parts.append(self.part())
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
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise failure(self.text, self.at, f"nested deeper than {MAX_DEPTH} brackets")
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
            after = re.match(r"\s*(\*|/|\+|-|%)", self.text[self.at :])
            if not (after and len(items) == 1):
                return tuple(items)
            self.at = begin  # the bracket of a symbolic expression
        elif word := self.found(_TUPLE_WORD):
            items = self.items({"(": ")", "<": ">"}[word[0][-1]])
            self.taken("{}")
            return tuple(items)
        elif word := re.compile(r"(?:Gen(?:Col|Row)Major|Layout(?:Left|Right))(?:\{\})?").match(self.text, self.at):
            self.at = word.end()
            return LayoutRight if "R" in word[0][3:7] or "Right" in word[0] else LayoutLeft
        return self.leaf()

    def leaf(self) -> Any:
        """A number, a basis element, or `_`."""
        begin = self.at
        if found := self.found(_E):
            return E(*[int(i) for i in found[1].split(",") if i.strip()])
        end = leaf_end(self.text, self.at)
        word = self.text[begin:end].strip()
        if word in ("_", "None", "_{}", "Underscore{}"):
            self.at = begin + self.text[begin:end].index(word) + len(word)
            return underscore
        if product := re.match(r"(.+?)\s*\*\s*E<([\d,\s]+)>(?:\{\})?\Z", word):
            self.at = end
            value = read_number(product[1], 0, len(product[1]), self.symbols)
            return ScaledBasis(value, *[int(i) for i in product[2].split(",")])
        value = read_number(self.text, begin, end, self.symbols)
        self.at = begin + len(self.text[begin:end].rstrip())
        modes: list[int] = []
        while self.taken("@"):
            digits = self.found(re.compile(r"\d+"))
            if digits is None:
                raise failure(self.text, self.at, "expected the number of a mode after @")
            modes.append(int(digits[0]))
        return ScaledBasis(value, *reversed(modes)) if modes else value

    def engine_or_swizzle(self) -> Any:
        begin = self.at
        swizzle = None
        if found := self.found(_SWIZZLE):
            bits, base, shift = (int(g) for g in (found.groups()[:3] if found[1] else found.groups()[3:]))
            swizzle = self.built(lambda: Swizzle(bits, base, shift), begin)
            if not re.match(r"_(gmem_|smem_)?(sub)?ptr\[", self.text[self.at :]):
                return swizzle
        if found := self.found(_POINTER):
            return self.pointer(found, swizzle, begin)
        if found := self.found(DSL_POINTER):
            dsl = found
            return self.built(lambda: dsl_pointer(dsl, self.dtype), begin)
        if found := self.found(_TMEM):
            address = int(found[2], 16) << 16 | int(found[3], 16)
            return self.built(lambda: make_tmem_ptr(address, self.dtype or self.type_of(int(found[1]), begin)), begin)
        if found := self.found(_COUNTING):
            if found[2]:  # print() writes a float and a double alike.
                return counting_iterator(float(found[1] + found[2]), self.dtype or "float32")
            return counting_iterator(int(found[1]))
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
        bits, inside = int(found["bits"]), found["address"]
        if inside == "unset":
            moved = self.found(_FLAG_OFFSET)
            return self.built(lambda: smem_ptr_flag(bits, int(moved[1]) if moved else 0), begin)
        # whole-byte text of one bit is a bool's
        dtype = self.dtype or (as_dtype("bool") if bits == 1 and not found["sub"] else self.type_of(bits, begin))
        word, _, index = inside.partition(".")
        try:
            address = 0 if word == "(nil)" else int(word, 16)
            sub = int(index) if index else 0
        except ValueError:
            raise failure(self.text, begin, f"{inside!r} is no address") from None
        if found["space"] == "smem_":
            made = self.built(lambda: make_smem_ptr(address, dtype, swizzle), begin)
        elif found["space"] == "gmem_":
            made = self.built(lambda: make_gmem_ptr(address, dtype), begin)
        else:
            made = self.built(lambda: make_ptr(address, dtype), begin)
        if sub:
            made = dataclasses.replace(made, bit=sub)
        return made


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
        raise failure(reader.text, reader.at, f"the offset between two functions is an integer, got {offset}")
    return ComposedLayout(parts[0], offset, _joined(parts[2:], reader))
