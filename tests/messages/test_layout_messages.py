"""The texts of the layout package's errors: headline, facts, hint."""

from __future__ import annotations

from typing import Any

import pytest
import sympy

import cute_py as cute
from cute_py.errors import CuteError
from tests.each import each_of

M = sympy.Symbol("M", integer=True, positive=True)
DEEP: Any = 4
for _ in range(100):
    DEEP = (DEEP,)

NAMES = {name: getattr(cute, name) for name in cute.__all__} | {"I": cute.Int, "M": M, "DEEP": DEEP}
NAMES["A"] = cute.Layout((cute.Int(4), cute.Int(8)), (cute.Int(8), cute.Int(1)))

TEXTS = {
    "Layout((True,4))": """\
InvalidTypeError: a size, stride or coordinate must be an integer, not the bool True""",
    "Layout((4,8.0))": """\
InvalidTypeError: expected an integer, got float 8.0""",
    "Layout((4,-8))": """\
InvalidValueError: the shape has the size -8; must be at least 0
  shape : (4,-8)""",
    "Layout((4,8),(1,(2,3)))": """\
LayoutError: shape and stride must be congruent
  shape  : (4,8)
  stride : (1,(2,3))""",
    "A(1,2,3)": """\
CoordinateError: Mismatched Ranks
  coordinate : (1,2,3)
  shape      : (_4,_8)""",
    "A(1.5)": """\
InvalidTypeError: expected an integer, got float 1.5""",
    "A[2]": """\
InvalidValueError: layout[2]: (_4,_8):(_8,_1) has 2 modes""",
    "composition(Layout((I(4),I(3)),(I(1),I(7))),Layout(I(5)))": """\
StaticAssertError: Shape Divisibility Condition
  size  : _5 remaining of the right layout
  takes : _4 of mode 0 of the left layout (_4,_3):(_1,_7)""",
    "composition(A,Layout(I(2),I(6)))": """\
StaticAssertError: Stride Divisibility Condition
  stride : _6 of the right layout
  mode   : _4 of mode 0 of the left layout (_4,_8):(_8,_1)""",
    "composition(Layout((I(4),I(6),I(8)),(I(2),I(3),I(5))),Layout(I(6),I(3)),strict=True)": """\
CompositionMismatchError: composition is not A(B(i)): R(2) = 3, A(B(2)) = 7
  A                      : (_4,_6,_8):(_2,_3,_5)
  B                      : _6:_3
  R (as C++ computes it) : (_2,_3):(_6,_3)""",
    "complement(Layout((I(2),I(2)),(I(1),I(1))),I(24))": """\
StaticAssertError: Non-injective Layout detected in complement.
  layout : (_2,_2):(_1,_1)
  stride : _1 is below _2, the end of the modes with smaller strides""",
    "complement(Layout((4,8)),64)": """\
StaticAssertError: Dynamic-stride complement only for rank-1 layouts
  layout : (4,8):(_1,4)
  hint   : plain ints are run-time; with cute.static(layout), the complement is _2:_32""",
    "left_inverse(Layout((I(3),I(2)),(I(5),I(2))))": """\
StaticAssertError: Left inverse divisibility condition
  layout : (_3,_2):(_5,_2)
  stride : _5 (mode 0) is not a multiple of 2, the extent of the modes with smaller strides""",
    "left_inverse(Layout(4,2))": """\
StaticAssertError: Left inverse requires static strides.
  layout : 4:2
  hint   : plain ints are run-time; with cute.static(layout), the left inverse is (_2,_4):(_0,_1)""",
    "logical_divide(A,(I(2),I(2),I(2)))": """\
StaticAssertError: logical_divide: Too many modes in tiler.
  tiler  : (_2,_2,_2)
  layout : (_4,_8):(_8,_1)""",
    "tile_to_shape(A,(I(6),I(8)))": """\
StaticAssertError: tile_to_shape: block shape does not divide the target shape.
  mode   : 0
  block  : _4
  target : _6""",
    "tile_to_shape(Layout((4,8)),(I(8),I(8)))": """\
StaticAssertError: tile_to_shape: block shape does not divide the target shape.
  mode   : 0
  block  : 4, known only at run time
  target : _8
  hint   : plain ints are run-time; with cute.static(block), the result is ((_4,_2),(_8,_1)):((_1,_32),(_4,_0))""",
    "upcast(Layout((I(4),I(3)),(I(1),I(4))),3)": """\
StaticAssertError: Divisibility condition
  stride : _4
  N      : 3
  size   : _3""",
    "downcast(Layout(I(4),I(2)),2)": """\
StaticAssertError: Downcast requires adjacent elements
  layout : _4:_2""",
    "shape_div(I(12),I(5))": """\
StaticAssertError: Divisibility Condition
  dividend : _12
  divisor  : _5""",
    "Swizzle(3,4,1)": """\
StaticAssertError: abs(SShift) must be more than BBits.
  swizzle     : Sw<3,4,1>
  abs(SShift) : 1
  BBits       : 3
  must be     : abs(SShift) >= BBits""",
    "composition(Swizzle(2,3,3),Swizzle(2,0,2))": """\
StaticAssertError: Can only merge swizzles of the same shift.
  left  : Sw<2,3,3>
  right : Sw<2,0,2>""",
    "composition(Swizzle(2,3,3),A).stride": """\
LayoutError: a composed layout has no stride
  layout : Sw<2,3,3> o _0 o (_4,_8):(_8,_1)
  hint   : use layout.inner.stride""",
    "offsets(Layout((2**40,2**40)))": """\
InvalidValueError: the layout has 1208925819614629174706176 elements; offsets() evaluates at most 268435456 at once
  layout : (1099511627776,1099511627776):(_1,1099511627776)
  hint   : pass the coordinates you need: offsets(layout, coords)""",
    "offsets(Layout(129),dtype='int8')": """\
InvalidValueError: the offset 128 does not fit into int8
  layout : 129:_1
  hint   : use dtype=object for exact integers""",
    "coordinates(Layout((4,8),(1,5)),[4])": """\
LayoutError: no coordinate of the layout has the offset 4
  layout : (4,8):(1,5)""",
    "linear(Layout((3,4)))": """\
LayoutError: this function has no F2 view, because the size 3 is not a power of 2
  layout : (3,4):(_1,3)""",
    "bank_conflicts(Layout((32,4),(8,2)),'float32')": """\
LayoutError: the elements of one access are not contiguous
  layout : (32,4):(8,2)
  access : 128 bits""",
    "parse('(4,8):(1,?)')": """\
ParseError: at position 9: ? is a number that is known only at run time; replace it with the number \
or with a symbol
  text : (4,8):(1,?)
  here :          ^""",
    "parse('(4,8')": """\
ParseError: at position 4: expected ',' or ')'
  text : (4,8
  here :     ^""",
    "size(A,7)": """\
CoordinateError: mode 7 does not exist
  rank : 2""",
    "take(A,1,1)": """\
StaticAssertError: take: empty range error
  range : [1,1)""",
    "Layout(DEEP)": """\
InvalidValueError: a tuple is nested deeper than 64 levels""",
    "evenly_divides((M,),(4,))": """\
LayoutError: the answer depends on the values of the symbols: Eq(M, 4*floor(M/4 + 3/4))
  hint : use .subs({...}) to replace the symbols with numbers""",
    "composition(Layout((M,I(8)),(I(1),M)),Layout(4,2)).subs({M:5})": """\
LayoutError: these values break an assumption of the layout
  assumptions : (2 < M) | Eq(Mod(2, M), 0), Eq(Mod(4, Min(4, floor(M/2 + 1/2))), 0)
  values      : {M: 5}""",
}


@each_of("expression", TEXTS)
def test_text(expression: str) -> None:
    with pytest.raises(CuteError) as caught:
        eval(expression, dict(NAMES))
    assert f"{type(caught.value).__name__}: {caught.value}" == TEXTS[expression]
