"""parse: everything that str() prints, the spellings of C++ and of the DSL, and what is no text of either."""

from __future__ import annotations

from typing import Any

import pytest
import sympy

import cute_py as cute
from cute_py import ArithTuple, ComposedLayout, E, Int, Layout, Ratio, ScaledBasis, Swizzle
from cute_py.errors import InvalidTypeError, ParseError
from tests.each import each_of

M = sympy.Symbol("M", integer=True, positive=True)

PRINTED: list[Any] = [
    Layout((Int(4), 8), (Int(8), 1)),
    Layout(()),
    Layout((Int(4),), (Int(-1),)),
    Layout((M, Int(8)), (Int(1), M)),
    Layout((2 * M + 1, Int(8)), (Int(1), M * (M + 1))),
    Layout((4, 8), (ScaledBasis(Ratio(1, 2), 0), E(1, 0))),
    Swizzle(2, 1, -3),
    cute.composition(Swizzle(3, 4, 3), Layout((8, 64), (64, 1))),
    ComposedLayout(Layout((4, 8)), 3, Layout(8)),
    ComposedLayout(Swizzle(1, 0, 1), 3, ComposedLayout(Swizzle(2, 0, 2), Int(0), Layout(8))),
    ComposedLayout(Swizzle(3, 4, 3), cute.smem_ptr_flag(16), Layout((8, 64))),
    E(0, 1),
    8 * E(1),
    Int(3) * E(1, 2, 3),
    Ratio(1, 2),
    Int(-4),
    7,
    cute.make_identity_tensor((4, (2, 3))),
    cute.make_tensor(cute.counting_iterator(42), Layout((4, 5))),
    cute.make_tensor(cute.make_gmem_ptr(0x1000, "uint16"), Layout((4, 5))),
    cute.make_tensor(cute.make_smem_ptr(0, "uint16", Swizzle(3, 4, 3)), Layout((4, 5))),
    cute.make_gmem_ptr(0x1000, "uint4") + 3,
    cute.make_gmem_ptr(0x1000, "bool"),
    cute.make_tmem_ptr(0x100020, "uint32"),
    cute.make_inttuple_iter(5),
    cute.make_inttuple_iter(0, (Int(1), 2)),
]

TUPLES = {
    "(_128,_64)": (Int(128), Int(64)),
    "(1,(2,_3))": (1, (2, Int(3))),
    "()": (),
    "(Int(2), Int(3))": (Int(2), Int(3)),
    "(_4)": (Int(4),),
    "(_,3)": (None, 3),
    "((_2,_32):(_32,_1),_32:_1)": (Layout((Int(2), Int(32)), (Int(32), Int(1))), Layout(Int(32))),
    "(_2:_99,Sw<1,0,1> o _0 o _64:_1)": (
        Layout(Int(2), Int(99)),
        ComposedLayout(Swizzle(1, 0, 1), Int(0), Layout(Int(64))),
    ),
}

SPELLINGS = {
    "S<3,4,3>": "Sw<3,4,3>",
    "SW_3_4_3": "Sw<3,4,3>",
    "Swizzle<3,4,3>{}": "Sw<3,4,3>",
    "S<0,4,3> o 0 o ((4,2)):((-1,4))": "Sw<0,4,3> o 0 o ((4,2)):((-1,4))",
    "(2, 3) : (3, 1)": "(2,3):(3,1)",
    " ( 4 , 8 ):( 8 , 1 ) ": "(4,8):(8,1)",
    "(4,):(1,)": "(4):(1)",
    "make_layout(make_shape(Int<4>{},8),make_stride(_8{},Int<1>{}))": "(_4,8):(_8,_1)",
    "make_layout(make_shape(_4{},_8{}), LayoutRight{})": "(_4,_8):(_8,_1)",
    "Layout<Shape<_4,_8>,Stride<_1,_4>>{}": "(_4,_8):(_1,_4)",
    "Layout<Shape<_4,Shape<_2,_3>>>": "(_4,(_2,_3)):(_1,(_4,_8))",
    "tensor<(0,0) o (4,5):(1@0,1@1)>": "ArithTuple(0,0) o (4,5):(1@0,1@1)",
    "E<0,1>{}": "_1@1@0",
    "E<>{}": "_1",
    "3*E<1>{}": "3@1",
    "C<4>{}": "_4",
    "R<1,2>{}": "_1/_2",
    "((M + 1)*2,8):(1,8)": "(2*M + 2,8):(1,8)",
}

REFUSED: dict[str, tuple[int, str]] = {
    "": (0, "found the end of the text"),
    "(4,8):(1,?)": (9, "is a number that is known only at run time;"),
    "?{div=4}": (0, "known only at run time"),
    "(4,8": (4, "expected ',' or ')'"),
    "4:": (2, "found the end of the text"),
    "(4,8):(1)": (0, "congruent"),
    "(4,-8):(1,2)": (0, "the shape has the size"),
    "1.5": (0, "is not an integer"),
    "1/0": (0, "division by zero"),
    "_1/_0": (0, "denominator 0"),
    "(4,8):(8,1) x": (12, "expected the end"),
    "Sw<3,4>": (0, "is not a number"),
    "Sw<3,4,1>": (0, "abs(SShift)"),
    "4@": (2, "expected the index of a mode after @"),
    "4:1 o 3": (7, "three parts"),
    "a.b": (0, "is not a number"),
    "f(1)": (0, "is not a number"),
    '__import__("os")': (0, "is not a number"),
    "M**M": (0, "the exponent is not an integer"),
    "2**99999999": (0, "the power exceeds 2**128"),
    "9" * 5000: (0, "5000 characters"),
    "ptr[16b](zz)": (0, "expected an address"),
    "gmem_ptr[13b](0x0)": (0, "there is no element type of 13 bits"),
    "(" * 500: (65, "nested deeper than 64"),
}


@each_of("value", PRINTED, ids=str)
def test_what_is_printed_is_read(value: Any) -> None:
    again = cute.parse(str(value))
    assert again == value
    assert str(again) == str(value)


@pytest.mark.parametrize("text", TUPLES)
def test_tuples(text: str) -> None:
    assert cute.parse(text) == TUPLES[text]


@each_of("text", SPELLINGS)
def test_spellings(text: str) -> None:
    assert str(cute.parse(text)) == SPELLINGS[text]


@each_of("text", REFUSED, ids=lambda t: t[:40])
def test_refusals_say_where_and_why(text: str) -> None:
    position, words = REFUSED[text]
    with pytest.raises(ParseError) as caught:
        cute.parse(text)
    assert caught.value.position == position
    assert words in caught.value.headline


def test_element_types_and_symbols_can_be_given() -> None:
    assert cute.parse("gmem_ptr[16b](0x1000)", dtype="bfloat16") == cute.make_gmem_ptr(0x1000, "bfloat16")
    own = sympy.Symbol("M")
    assert cute.parse("(M,8):(8,1)", symbols={"M": own}).shape[0] is own
    with pytest.raises(InvalidTypeError):
        cute.parse(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["counting_iter(5.000000)", "counting_iter(-0.500000)"])
def test_a_counting_iterator_of_floats(text: str) -> None:
    found = cute.parse(text)
    assert str(found) == text
    assert found.dtype.name == "float32"
    assert cute.parse(text, dtype="float64").dtype.name == "float64"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("ptr<f16, gmem, align<16>>", "gmem_ptr[16b]((nil))"),
        ("ptr<f4E2M1FN, generic, align<1>>", "subptr[4b]((nil).0)"),
        ("tensor<ptr<bf16, gmem, align<16>> o (4,8):(8,1)>", "gmem_ptr[16b]((nil)) o (4,8):(8,1)"),
        ("tensor<ptr<i8, smem, align<128>, S<3,4,3>> o (4,8):(8,1)>", "Sw<3,4,3>_smem_ptr[8b]((nil)) o (4,8):(8,1)"),
        ("tensor<ptr<f32, tmem, align<16>> o (128,64):(65536,1)>", "tmem_[32b](0x0000.0000) o (128,64):(65536,1)"),
        ("ptr<f8E4M3FN, rmem>", "ptr[8b]((nil))"),
    ],
)
def test_pointers_of_the_dsl(text: str, printed: str) -> None:
    """As CuTe DSL 4.8 prints them; it tells no address."""
    assert str(cute.parse(text)) == printed


def test_types_of_the_dsl() -> None:
    names = ("i1", "i4", "i8", "i64", "tf32", "f64", "f8E8M0FNU", "f8E4M3B11FNUZ", "f6E3M2FN")
    found = [cute.parse(f"ptr<{name}, gmem>").element_type.name for name in names]
    assert found[:6] == ["bool", "int4", "int8", "int64", "tfloat32", "float64"]
    assert found[6:] == ["float8_e8m0fnu", "float8_e4m3b11fnuz", "float6_e3m2fn"]
    assert cute.parse("ptr<i8, gmem>", dtype="uint8").element_type.name == "uint8"
    with pytest.raises(ParseError, match="unknown element type 'f7'"):
        cute.parse("ptr<f7, gmem>")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2*2@1@0 + 3*1@1 + 4*5@1 + 7*1@0@0", ArithTuple((7, 4), 23)),
        ("3*E<0>{} + 4*E<1>{}", ArithTuple(3, 4)),
        ("_1@0 - _2@1", ArithTuple(Int(1), Int(-2))),
        ("E<0,1> + 5@1", ArithTuple((Int(0), Int(1)), 5)),
        ("2@0 - -3@1", ArithTuple(2, 3)),
    ],
)
def test_linear_combinations(text: str, value: ArithTuple) -> None:
    found = cute.parse(text)
    assert isinstance(found, ArithTuple) and repr(found) == repr(value)
    assert cute.parse(f"(4,5):({text},_1@0)").stride[0] == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1@0 + 3", "at position 6: expected a basis element"),
        ("1@0 +", "expected a number, found the end of the text"),
        ("1@0 + 1@0@0", "the coordinates have different profiles"),
        ("1@0" + " + 1@1" * 64, "more than 64 terms"),
    ],
)
def test_what_is_no_linear_combination(text: str, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        cute.parse(text)
