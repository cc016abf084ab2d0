"""Single texts that parse reads or refuses: values, places of errors and marks, and the alternatives of each part."""

from __future__ import annotations

from typing import Any

import pytest
import sympy

import cute_py as cute
from cute_py import ArithTuple, E, Int, Layout, Swizzle, parse
from cute_py.arith_tuple.arith_tuple import ScaledBasis
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, ParseError
from cute_py.notation.parse import dsl_type, failure, leaf_end, read_integer, surplus_bracket

M, N = sympy.symbols("M N", integer=True, positive=True)
UNKNOWN = "? is a number that is known only at run time; replace it with the number or with a symbol"
BEYOND = "; must be at most 2**128 in magnitude"
LARGE = "9" * 41
LARGE_SHOWN = f"the integer is {'9' * 17} ... {'9' * 17} (41 characters){BEYOND}"
THREE_PARTS = "expected a composed layout with three parts: outer o offset o inner"


def refusal(text: str, **arguments: Any) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse(text, **arguments)
    return caught.value


def test_an_error_shows_the_surroundings_and_marks_the_place() -> None:
    for length, position, shown, mark in (
        (3, 1, "aaa", 1),
        (60, 30, "a" * 60, 30),
        (61, 30, "a" * 60 + "...", 30),
        (61, 31, "..." + "a" * 60, 33),
        (100, 50, "..." + "a" * 60 + "...", 33),
        (100, 100, "..." + "a" * 30, 33),
        (0, 0, "", 0),
    ):
        error = failure("a" * length, position, "expected b")
        assert error.headline == f"at position {position}: expected b"
        assert error.position == position
        assert error.facts == {"text": shown, "here": " " * mark + "^"}
    assert failure("a\nb", 2, "c").facts == {"text": "a b", "here": "  ^"}
    cause = InvalidValueError("no", {"shape": 4})
    assert failure("ab", 1, "c", cause).facts == {"text": "ab", "here": " ^", "shape": 4}


def test_the_first_bracket_that_closes_nothing() -> None:
    assert [surplus_bracket(text) for text in ("", ")", "(4))", "((4)", "(4))(", ")(", "((2,2),3):(24,2),8)")] == [
        *(None, 0, 3, None, 3, 0, 18)
    ]


def test_leaves_end_at_delimiters_outside_brackets() -> None:
    for text, end in {
        "a": 1,
        "a,b": 1,
        "a:b": 1,
        "a@1": 1,
        "a)b": 1,
        "a]b": 1,
        "a}b": 1,
        "a>b": 1,
        "a o b": 1,
        "a  o\nb": 1,
        "a\to b": 1,
        "a ob": 4,
        "a oo b": 6,
        "a o": 3,
        "a b,c": 3,
        "a b c": 5,
        "f(a,b),c": 6,
        "[a,b]:c": 5,
        "{a@b}:c": 5,
        "<a:b>,c": 5,
        "((a,b)),c": 7,
        "f(a))b": 4,
        "f(a)b,c": 5,
        "f(a o b),c": 8,
        "(a": 2,
    }.items():
        assert leaf_end(text, 0) == end, text
    assert leaf_end("((a)),b", 1) == 4
    assert leaf_end("a,b,c", 2) == 3
    assert leaf_end("a,", 2) == 2


def test_integers_are_bounded_by_their_value_and_not_by_their_digits() -> None:
    bound = 1 << 128
    for digits, value in {
        "0": 0,
        "-0": 0,
        "7": 7,
        "-7": -7,
        "0" * 60 + "7": 7,
        "-" + "0" * 60 + "7": -7,
        "0" * 60: 0,
        f"{bound}": bound,
        f"-{bound}": -bound,
    }.items():
        assert read_integer(digits, 0, digits) == value
        assert parse(digits) == value
    for digits in (f"{bound + 1}", f"-{bound + 1}", "9" * 39, "9" * 40):
        assert refusal(digits).headline == f"at position 0: the integer is {digits}{BEYOND}"
    assert refusal(LARGE).headline == f"at position 0: {LARGE_SHOWN}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("(4,", ")"),
        ("_", ""),
        ("1@", ""),
        ("1@2@", ""),
        ("E<", ">"),
        ("E<1,", ">"),
        ("(4,E< 1 , ", ">)"),
        ("2*E<1,", ">"),
        ("(4, 2*E<1,", ">)"),
        ("E<0> + 2*E<1,", ",3>{}"),
        ("Sw<", ",4,3>"),
        ("Sw<3,", ",3>"),
        ("SW_3_4_", ""),
        ("ptr<f16, smem, S<3,4,", ">>"),
        ("counting_iter(", ")"),
        ("counting_iter(", ".5)"),
        ("smem_ptr[", "b](unset)"),
        ("smem_ptr[16b](unset)+", ""),
        ("tmem_[", "b](0x0.0)"),
    ],
)
def test_an_integer_that_is_too_large_is_marked(before: str, after: str) -> None:
    error = refusal(before + LARGE + after)
    place = 0 if before == "_" else len(before)
    assert error.headline == f"at position {place}: {LARGE_SHOWN}"
    assert error.position == place


def test_numbers() -> None:
    for text, value in {
        "_4": Int(4),
        "_-4": Int(-4),
        "_4{}": Int(4),
        "Int<4>{}": Int(4),
        "Int<4>": Int(4),
        "C< -4 >()": Int(-4),
        "Int(4)": Int(4),
        "C( 4 )": Int(4),
        "4": 4,
        " 4 ": 4,
        "-4": -4,
        "(4)*2": 8,
        "(4+M)*2": 2 * M + 8,
        "M": M,
        "_3/_4": cute.parse("R<3,4>"),
        "_-3/_4": cute.parse("R< -3 , 4 >{}"),
    }.items():
        found = parse(text)
        assert found == value, text
        assert type(found) is type(value), text
    assert [str(parse(text)) for text in ("_6/_4", "R<-3,4>", "_4/_2")] == ["_3/_2", "_-3/_4", "_2"]


@pytest.mark.parametrize(
    ("text", "position", "headline"),
    [
        ("", 0, "expected a number, found the end of the text"),
        ("  ", 2, "expected a number, found the end of the text"),
        ("4:", 2, "expected a number, found the end of the text"),
        ("Sw<1,4,3> o ", 12, "expected a number, found the end of the text"),
        ("ArithTuple", 10, "expected a number, found the end of the text"),
        ("tensor<", 7, "expected a number, found the end of the text"),
        ("(4,,5)", 3, "expected a number, found ','"),
        ("(,4)", 1, "expected a number, found ','"),
        ("(4,:5)", 3, "expected a number, found ':'"),
        ("*E<1>", 0, "expected a number, found '*'"),
        ("3.5", 0, "3.5 is not an integer"),
        ("+3.5", 0, "+3.5 is not an integer"),
        (".5", 0, ".5 is not an integer"),
        ("(4,-1.5)", 3, "-1.5 is not an integer"),
        ("Sw<3,4,3> o 1.5 o (8):(1)", 12, "1.5 is not an integer"),
        ("_3/_0", 0, "the ratio _3/_0 has denominator 0"),
        ("(4,R<3,0>)", 3, "the ratio R<3,0> has denominator 0"),
        ("(4,?)", 3, UNKNOWN),
        ("4:?", 2, UNKNOWN),
        ("?{i32}", 0, UNKNOWN.replace("?", "?{i32}", 1)),
        ("4 ob", 0, "'4 ob' is not a number"),
        ("(M o)", 1, "'M o' is not a number"),
        ("4 o", 0, "'4 o' is not a number"),
        ("_M", 0, "'_M' is not a number"),
        ("-E<0>", 0, "'-E<0>' is not a number"),
        ("2 E<0>", 0, "'2 E<0>' is not a number"),
        ("2+E<0>", 0, "'2+E<0>' is not a number"),
        ("E<0>*2", 4, "expected the end of the text"),
        ("1@", 2, "expected the index of a mode after @"),
        ("(1@x)", 3, "expected the index of a mode after @"),
        ("1@0+2", 4, "expected a basis element such as 2@1"),
        ("1@0 + M", 6, "expected a basis element such as 2@1"),
        ("(1@0 - 2@1 + 3,4)", 13, "expected a basis element such as 2@1"),
        ("1@0 + (1,2)", 6, "'(1, 2)' is not a number"),
        ("1@5000", 0, "item 0 of the basis element's modes is 5000; must be 0 to 4095"),
        ("(4,E<5000>)", 3, "item 0 of the basis element's modes is 5000; must be 0 to 4095"),
        ("(4", 2, "expected ',' or ')'"),
        ("(", 1, "expected ')'"),
        ("(4,", 3, "expected ')'"),
        ("(4, ", 4, "expected ')'"),
        ("4:(", 3, "expected ')'"),
        ("make_layout(4", 13, "expected ',' or ')'"),
        ("Layout<_4,", 10, "expected '>'"),
        ("Layout<_4,_8", 12, "expected ',' or '>'"),
        ("make_layout()", 0, "make_layout takes a shape, a shape and a stride, or layouts"),
        ("Layout<_4>:3", 10, "expected the end of the text"),
        ("tensor<(4):(1)", 14, "expected '>'"),
        ("tensor<4:1)", 10, "expected '>'"),
        ("4:1:2", 3, "expected the end of the text"),
        ("4,8", 1, "expected the end of the text"),
        ("Sw<3,4,3>_x", 9, "expected the end of the text"),
        ("Sw<1,4,3>o 0 o 8:1", 9, "expected the end of the text"),
        ("(4,8))", 5, "this ')' closes no '('"),
        ("(4,8):(1,4,2))", 13, "this ')' closes no '('"),
        ("(4,8):(1,4,2)", 0, "shape and stride must be congruent"),
        ("4 o 5", 0, "Tensor takes an engine and a layout, got 5"),
        ("(8):(1) o (8):(1)", 17, THREE_PARTS),
        ("Sw<1,4,3> o (8):(1)", 19, THREE_PARTS),
        ("M o (4):(1)", 11, THREE_PARTS),
        ("_ o (4):(1)", 11, THREE_PARTS),
        ("1@0 o (4):(1)", 13, THREE_PARTS),
        ("Sw<1,4,3> o _ o (8):(1)", 23, "the offset between two functions must be an integer, got _"),
        (
            "Sw<1,4,3> o Sw<1,4,3> o (8):(1)",
            31,
            "the offset between two functions must be an integer, got Swizzle(1, 4, 3)",
        ),
        (
            "(1,2) o 0 o (4):(1)",
            0,
            "ComposedLayout takes (outer, offset, inner); outer and inner must be functions of an offset",
        ),
        (
            "Sw<3,4,3> o (1,2) o 5",
            0,
            "ComposedLayout takes (outer, offset, inner); outer and inner must be functions of an offset",
        ),
    ],
)
def test_what_is_refused_and_where(text: str, position: int, headline: str) -> None:
    error = refusal(text)
    assert (error.headline, error.position) == (f"at position {position}: {headline}", position)
    begin = max(0, position - 30)
    assert error.facts["here"] == " " * (position - begin + (3 if begin else 0)) + "^"


def test_underscores() -> None:
    for text in ("_", "None", "_{}", "Underscore{}", " _ "):
        assert str(parse(text)) == "_"
    assert str(parse("(_, None ,4)")) == "(_, _, 4)"


def test_basis_elements() -> None:
    for text, value in {
        "E<0>": E(0),
        "E<0,1>{}": E(0, 1),
        "E< 0 , 1 >": E(0, 1),
        "1@0": ScaledBasis(1, 0),
        "2@1@0": ScaledBasis(2, 0, 1),
        "_2@1@0": ScaledBasis(Int(2), 0, 1),
        "M@0": ScaledBasis(M, 0),
        "-1@0": ScaledBasis(-1, 0),
        "1@4095": ScaledBasis(1, 4095),
        "2*E<1>": ScaledBasis(2, 1),
        "2 * E<0,1>{} ": ScaledBasis(2, 0, 1),
        "M*E<1>": ScaledBasis(M, 1),
        "_2*E<1>": ScaledBasis(Int(2), 1),
    }.items():
        assert parse(text) == value, text
        assert str(parse(f"({text})")) == f"({value!r},)", text
    assert parse("E<>") == Int(1)
    for text, total in {
        "E<0>+E<1>": "(_1,_1)",
        "2*E<0>+3*E<1>": "(2,3)",
        "2*E<1> + E<0>": "(_1,2)",
        "E<1> + 2*E<0>": "(2,_1)",
        "1@0-2@1": "(1,-2)",
        "2*E<1> - E<0>": "(_-1,2)",
        "1@0 - 1@0": "(0)",
        "2*2@1@0 + 3*1@1 + 4*5@1 + 7*1@0@0": "((7,4),23)",
    }.items():
        found = parse(text)
        assert isinstance(found, ArithTuple), text
        assert str(found) == total
    assert str(parse("(2*E<1> , 3)")) == "(ScaledBasis(2, 1), 3)"
    assert str(parse("ArithTuple 2*E<1>")) == "ArithTuple(_0,2)"


def test_brackets_and_compositions_have_64_levels() -> None:
    assert str(parse("(" * 64 + "4" + ")" * 64)).count("(") == 64
    error = refusal("(" * 65 + "4" + ")" * 65)
    assert error.headline == "at position 65: brackets are nested deeper than 64 levels"
    part = "Sw<1,4,3> o 0 o "
    assert str(parse(part * 32 + "8:1")) == part * 32 + "8:1"
    error = refusal(part * 33 + "8:1")
    assert error.headline == f"at position {len(part) * 32 + 12}: brackets are nested deeper than 64 levels"
    assert parse("(" + ",".join(["(4)"] * 100) + ")") == ((4,),) * 100
    assert str(parse("(" + ",".join([part + "8:1"] * 40) + ")")).count("Swizzle") == 40
    assert str(parse("tensor<" * 64 + "4:1" + ">" * 64)) == "4:1"
    assert "brackets are nested deeper than 64 levels" in refusal("tensor<" * 65 + "4:1" + ">" * 65).headline
    assert parse("(" + ",".join(["tensor<4:1>"] * 70) + ")") == (Layout(4, 1),) * 70


def test_layouts_of_source_code() -> None:
    for text, shown in {
        "make_layout(4,8)": "4:8",
        "make_layout((4,8),(8,1))": "(4,8):(8,1)",
        "make_layout(make_shape(4,8),make_stride(8,1))": "(4,8):(8,1)",
        "make_layout(4:1, 8:4)": "(4,8):(1,4)",
        "Layout<Shape<_4,_8>,Stride<_1,_4>>{}": "(_4,_8):(_1,_4)",
        "Layout<_4>": "_4:_1",
        "make_layout((4,8),GenRowMajor{})": "(4,8):(8,_1)",
        "make_layout((4,8),LayoutRight{})": "(4,8):(8,_1)",
        "make_layout((4,8),GenColMajor{})": "(4,8):(_1,4)",
        "make_layout((4,8),LayoutLeft)": "(4,8):(_1,4)",
        "4:LayoutLeft": "4:_1",
        "4 : 1": "4:1",
        "():()": "():()",
        "(4,8):(E<1>{},E<0>{})": "(4,8):(_1@1,_1@0)",
    }.items():
        found = parse(text)
        assert isinstance(found, Layout)
        assert str(found) == shown
    for text, value in {
        "()": (),
        "(4,)": (4,),
        "(4, )": (4,),
        "Tile<_4,_8>": (Int(4), Int(8)),
        "Step<_1>{}": (Int(1),),
        "ArithmeticTuple<_4,5>": (Int(4), 5),
        "make_coord(1,(2,3))": (1, (2, 3)),
    }.items():
        assert parse(text) == value


def test_composed_layouts_and_tensors() -> None:
    for text in (
        "Sw<3,4,3> o _0 o (8,64):(64,_1)",
        "(4):(1) o (1,2) o (4):(1)",
        "(4):(1) o M o (4):(1)",
        "(4):(1@0) o (1,2) o (4):(1)",
    ):
        found = parse(text)
        assert isinstance(found, cute.ComposedLayout)
        assert str(found) == text
    moved: Any = parse("(4):(1) o (1,2) o (4):(1)")
    assert isinstance(moved.offset, ArithTuple)
    for text, shown in {
        "(1,2) o (3,4):(1@0,1@1)": "ArithTuple(1,2) o (3,4):(1@0,1@1)",
        "4 o (4):(1)": "ArithTuple4 o (4):(1)",
        "counting_iter(3.5) o (4):(1)": "counting_iter(3.500000) o (4):(1)",
        "gmem_ptr[16b](0x0) o Sw<3,4,3> o 0 o (8,8):(8,1)": "gmem_ptr[16b]((nil)) o Sw<3,4,3> o 0 o (8,8):(8,1)",
    }.items():
        found = parse(text)
        assert isinstance(found, cute.Tensor)
        assert str(found) == shown


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("i1", "bool"),
        ("i8", "int8"),
        ("i32", "int32"),
        ("f16", "float16"),
        ("bf16", "bfloat16"),
        ("tf32", "tfloat32"),
        ("f8E4M3FN", "float8_e4m3fn"),
        ("f8E5M2", "float8_e5m2"),
        ("f8E8M0FNU", "float8_e8m0fnu"),
        ("f6E3M2FN", "float6_e3m2fn"),
        ("f4E2M1FN", "float4_e2m1fn"),
    ],
)
def test_types_of_the_dsl(name: str, dtype: str) -> None:
    assert dsl_type(name).name == dtype
    assert str(parse(f"ptr<{name}, gmem>")).startswith(("gmem_ptr[", "gmem_subptr["))
    assert repr(parse(f"ptr<{name}, gmem>")) == f"make_gmem_ptr(0x0, {dtype!r})"


def test_a_type_of_the_dsl_that_does_not_exist() -> None:
    for name, full in (("i7", "int7"), ("i128", "int128"), ("x", "x"), ("f8E4M9", "float8_e4m9")):
        with pytest.raises(InvalidValueError) as caught:
            dsl_type(name)
        assert caught.value.headline == f"unknown element type {full!r}"
    error = refusal("(4,ptr<q7, gmem>)")
    assert (error.headline, error.facts["here"]) == ("at position 3: unknown element type 'q7'", "   ^")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ptr<f16, gmem>", "make_gmem_ptr(0x0, 'float16')"),
        ("ptr<f16, smem>", "make_smem_ptr(0x0, 'float16')"),
        ("ptr<f16,smem,align<16>,S<3,4,3>>", "make_smem_ptr(0x0, 'float16', Swizzle(3, 4, 3))"),
        ("ptr< f16 , smem , S< 2 , 4 , -3 > >", "make_smem_ptr(0x0, 'float16', Swizzle(2, 4, -3))"),
        ("ptr<f32, tmem, align<16>>", "make_tmem_ptr(0x0, 'float32')"),
        ("ptr<f32, rmem>", "make_ptr(0x0, 'float32')"),
        ("ptr<i1, generic>", "make_ptr(0x0, 'bool')"),
        ("tmem_[32b](0x0010.0004)", "make_tmem_ptr(0x100004, 'uint32')"),
        ("tmem_[16b](0x0001.ffff)", "make_tmem_ptr(0x1ffff, 'uint16')"),
        ("counting_iter(-3)", "counting_iterator(-3)"),
        ("counting_iter(-3.5)", "counting_iterator(-3.5, 'float32')"),
        ("ptr[1b](0x10)", "make_ptr(0x10, 'bool')"),
        ("subptr[1b](0x10)", "make_ptr(0x10, 'uint1')"),
        ("gmem_subptr[1b](0x10.3)", "Pointer('gmem', 0x10, 'uint1', bit=3)"),
        ("smem_subptr[4b]((nil).4)", "Pointer('smem', 0x0, 'uint4', bit=4)"),
        ("ptr[16b](1000)", "make_ptr(0x1000, 'uint16')"),
        ("ptr[128b]((nil))", "make_ptr(0x0, 'uint128')"),
        ("ptr[6b](0x0)", "make_ptr(0x0, 'float6_e2m3fn')"),
        ("_smem_ptr[16b](0x10)", "make_smem_ptr(0x10, 'uint16')"),
        ("Sw<3,4,3>_smem_ptr[16b](0x0)", "make_smem_ptr(0x0, 'uint16', Swizzle(3, 4, 3))"),
        ("smem_ptr[16b](unset)", "smem_ptr_flag(16)"),
        ("smem_ptr[16b](unset)+64", "smem_ptr_flag(16, 64)"),
        ("SW_3_4_3", "Swizzle(3, 4, 3)"),
        ("SW_2_1_-3", "Swizzle(2, 1, -3)"),
        ("S< 2 , 1 , -3 >{}", "Swizzle(2, 1, -3)"),
        ("Swizzle<2,1,3>{}", "Swizzle(2, 1, 3)"),
        ("ArithTuple(0,_0)", "make_inttuple_iter((0, Int(0)))"),
        ("ArithTuple_0", "make_inttuple_iter(Int(0))"),
    ],
)
def test_pointers_and_iterators(text: str, shown: str) -> None:
    assert repr(parse(text)) == shown


@pytest.mark.parametrize(
    ("text", "dtype", "shown"),
    [
        ("ptr<f16, smem>", "bfloat16", "make_smem_ptr(0x0, 'bfloat16')"),
        ("ptr<q7, gmem>", "float32", "make_gmem_ptr(0x0, 'float32')"),
        ("ptr<f32, tmem>", "int32", "make_tmem_ptr(0x0, 'int32')"),
        ("tmem_[32b](0x0010.0004)", "float32", "make_tmem_ptr(0x100004, 'float32')"),
        ("counting_iter(3.5)", "float64", "counting_iterator(3.5, 'float64')"),
        ("gmem_ptr[16b](0x10)", "float16", "make_gmem_ptr(0x10, 'float16')"),
        ("gmem_ptr[7b](0x10)", "float16", "make_gmem_ptr(0x10, 'float16')"),
    ],
)
def test_the_type_of_the_caller_replaces_that_of_the_text(text: str, dtype: str, shown: str) -> None:
    assert repr(parse(text, dtype=dtype)) == shown


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        ("tmem_[32b](0x0.10000)", "the column of tensor memory does not fit into 16 bits"),
        ("tmem_[32b](0x0.20000)", "the column of tensor memory does not fit into 16 bits"),
        ("tmem_[32b](0x10000.0)", "a tensor-memory address is 4294967296; must be 0 to 4294967295"),
        ("tmem_[7b](0x0.1)", "there is no element type of 7 bits"),
        ("gmem_ptr[7b](0x0)", "there is no element type of 7 bits"),
        ("gmem_ptr[16b](zz)", "expected an address, found 'zz'"),
        ("gmem_ptr[4b](0x10.9)", "the bit in a byte of a pointer to uint4 is 9; must be 0 to 7"),
        ("Sw<3,4,3>_gmem_ptr[16b](0x0)", "expected an address of shared memory after the swizzle"),
        ("Sw<3,4,3>_ptr[16b](0x0)", "expected an address of shared memory after the swizzle"),
        ("Sw<3,4,3>_smem_ptr[16b](unset)", "expected an address of shared memory after the swizzle"),
        ("ptr<f16, smem, S<300,4,3>>", "Swizzle bits = 300 bits; must be -128 to 128"),
        ("Sw<300,4,3>", "Swizzle bits = 300 bits; must be -128 to 128"),
        ("counting_iter(3", "'counting_iter(3' is not a number"),
    ],
)
def test_pointers_that_are_refused(text: str, headline: str) -> None:
    for before, after in (("", ""), ("(4,", ")")):
        if after and text == "counting_iter(3":
            continue
        error = refusal(before + text + after)
        assert (error.headline, error.position) == (f"at position {len(before)}: {headline}", len(before))


def test_arguments_of_parse() -> None:
    wrong: Any
    for wrong, shown in ((5, "int 5"), (None, "NoneType None"), (b"4", "bytes b'4'")):
        with pytest.raises(InvalidTypeError) as caught:
            parse(wrong)
        assert caught.value.headline == f"parse takes a text, got {shown}"
    assert parse("4" + " " * 65535) == 4
    with pytest.raises(InvalidValueError) as long:
        parse("4" + " " * 65536)
    assert long.value.headline == "the text has 65537 characters; must have at most 65536"
    assert parse("M:N", symbols={"M": 4}) == Layout(4, N)
    own = sympy.Symbol("M", integer=True)
    assert parse("M", symbols={"M": own}) is own
    assert parse("M", symbols={}) == M
    symbols: Any
    for symbols, headline in (
        ([1], "symbols must be a Mapping, got list [1]"),
        ({1: 1}, "the name of a symbol must be a str, got int 1"),
        ({"M": 1.5}, "symbols['M'] must be an integer, got float 1.5"),
    ):
        with pytest.raises(CuteError) as refused:
            parse("M", symbols=symbols)
        assert refused.value.headline == headline


def test_swizzles_are_equal_to_what_they_print() -> None:
    for swizzle in (Swizzle(3, 4, 3), Swizzle(1, 0, -2), Swizzle(0, 4, 3)):
        assert parse(str(swizzle)) == swizzle


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("Layout((4, 8), (8, 1))", Layout((4, 8), (8, 1))),
        ("Layout((Int(4), (8, 2)), (Int(1), (4, 32)))", Layout((Int(4), (8, 2)), (Int(1), (4, 32)))),
        ("Layout(4, 2)", Layout(4, 2)),
        ("cute.make_layout((4, 8), stride=(8, 1))", Layout((4, 8), (8, 1))),
        ("Layout(shape=(4, 8), stride=(8, 1))", Layout((4, 8), (8, 1))),
        ("Layout(stride=(8, 1), shape=(4, 8))", Layout((4, 8), (8, 1))),
        ("cute_py.Layout((M, 8), (1, M))", Layout((M, 8), (1, M))),
    ],
)
def test_a_layout_as_python_writes_it(text: str, layout: Layout) -> None:
    assert parse(text) == layout
    assert parse(repr(layout)) == layout


def test_a_layout_of_python_that_is_refused() -> None:
    assert (
        refusal("Layout(4, 2, 1)").headline == "at position 0: Layout takes a shape and a stride, and has 3 arguments"
    )
    assert refusal("Layout((4, 8), (8, 1, 2))").headline == "at position 0: shape and stride must be congruent"
    for text in ("Layout(4, shape=3)", "Layout(shape=4, shape=3)", "Layout(stride=2)", "make_layout(shape=3, 4)"):
        assert refusal(text).headline == "at position 0: a layout takes shape and stride, each once"
