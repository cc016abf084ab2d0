"""Single texts of compilers, logs and argument lists: types, template arguments, brackets, prefixes and lines."""

from __future__ import annotations

import pytest

from cute_py.notation.argument_lists import matching_bracket, split_operands
from cute_py.notation.compiler_types import bindings, spelled_type, type_end
from cute_py.notation.log_lines import as_printed, unwrapped
from cute_py.notation.source_lines import Locations, line_text, location_text, source_file


@pytest.mark.parametrize(
    ("spelled", "shown"),
    [
        ("", "?"),
        ("*", "?"),
        ("_4", "_4"),
        ("cute::_4", "_4"),
        ("_4x", "_4x"),
        ("int", "?"),
        ("const int", "?"),
        ("unsigned int", "?"),
        ("unsigned long", "?"),
        ("long unsigned int", "?"),
        ("long long", "?"),
        ("long long int", "?"),
        ("unsigned long long", "?"),
        ("signed char", "?"),
        ("std::size_t", "?"),
        ("float", "float"),
        ("typename T::x", "x"),
        ("C<8>", "_8"),
        ("cute::C<-8>", "_-8"),
        ("cute::C<(int)8>", "_8"),
        ("C<8UL>", "_8"),
        ("C<x>", "?"),
        ("C<>", "C"),
        ("Int<4>", "_4"),
        ("std::integral_constant<unsigned int, 4u>", "_4"),
        ("tuple<>", "()"),
        ("tuple<C<4>,int>", "(_4,?)"),
        ("cute::tuple<cute::C<4>, long long, float>", "(_4,?,float)"),
        ("Layout<_4>", "_4"),
        ("Layout<_4,_1>", "_4:_1"),
        ("Layout<_4,_1,_3>", "Layout<_4,_1,_3>"),
        ("Layout", "Layout"),
        ("Swizzle<3>", "Swizzle<3>"),
        ("Swizzle<3,4>", "Sw<3,4,3>"),
        ("Swizzle<3,4,-2>", "Sw<3,4,-2>"),
        ("Swizzle<3,4,2,5>", "Sw<3,4,2>"),
        ("ScaledBasis<_1,0>", "1@0"),
        ("ScaledBasis<C<2>,0,1>", "2@1@0"),
        ("ScaledBasis<int,0>", "?@0"),
        ("ComposedLayout<Swizzle<3,4,3>,C<0>,Layout<_4,_1>>", "Sw<3,4,3> o _0 o _4:_1"),
        ("ComposedLayout<A,B>", "ComposedLayout<A,B>"),
        ("smem_ptr_flag_bits<16>", "smem_ptr[16b](unset)"),
        ("ViewEngine<gmem_ptr<float*>>", "gmem_ptr[float]"),
        ("ConstViewEngine<smem_ptr<cutlass::half_t *>>", "smem_ptr[half_t]"),
        ("Tensor<ViewEngine<gmem_ptr<float*>>,Layout<_4,_1>>", "gmem_ptr[float] o _4:_1"),
        ("Tensor<A>", "Tensor<A>"),
        ("ViewEngine", "ViewEngine"),
        ("Underscore", "_"),
        ("GenColMajor", "LayoutLeft"),
        ("cute::LayoutRight", "LayoutRight"),
        ("Foo<Bar<_1>,int>", "Foo<Bar<_1>,?>"),
        ("<_4, _8>", "_4,_8"),
        (" < _4>", "_4"),
        ("tuple<_4 x,_5>", "(_4,_5)"),
        ("tuple<C<4>, C<8>", "(_4,_8)"),
        ("tuple<C<4>,", "(_4)"),
        ("tuple<" * 48 + "int" + ">" * 48, "(" * 48 + "?" + ")" * 48),
        ("tuple<" * 49 + "int" + ">" * 49, "(" * 48 + "()" + ")" * 48),
        ("a" * 5000, "a" * 4000),
    ],
)
def test_types(spelled: str, shown: str) -> None:
    assert spelled_type(spelled) == shown


def test_template_arguments() -> None:
    for text, found in {
        "": {},
        "[with T = int]": {"T": "int"},
        "f() [with T = int; U = A<B, C>]": {"T": "int", "U": "A<B, C>"},
        "[with T=int, U=float]": {"T": "int", "U": "float"},
        "[with T = A<int, float>; U = x] more; V = 3": {"T": "A<int, float>", "U": "x"},
        "[with A = int[4]; B = 3]": {"A": "int[4]", "B": "3"},
        "[with A = x[1], B = y[2]]": {"A": "x[1]", "B": "y[2]"},
        "[with A = (a, b), B = {c, d}]": {"A": "(a, b)", "B": "{c, d}"},
        "[with T = f() -> int; U = 4]": {"T": "f() -> int", "U": "4"},
        "[with T = int": {"T": "int"},
        "[with typename T = int]": {"T": "int"},
        "[with T]": {},
        "[with T; U = 3]": {"U": "3"},
        "[with = 3]": {},
        "[with T = ]": {"T": ""},
        "[with T = 1, T = 2]": {"T": "1"},
        "[with (x) = 3; U = 4]": {"U": "4"},
        "[with T = a] [with U = b]": {"T": "a"},
        "[with int N = 4; A<B> = 3]": {"N": "4", "A<B>": "3"},
        "[with A = b) ; C = d]": {"A": "b) ; C = d"},
        "[with A = b>; C = d]": {"A": "b>; C = d"},
    }.items():
        assert bindings(text) == found, text
    assert bindings("[with T = " + "a" * 5000 + "; U = 3]") == {"T": "a" * 3996}
    assert bindings("[with T = " + "a" * 3980 + "; U = 3]") == {"T": "a" * 3980, "U": "3"}


def test_the_end_of_template_arguments() -> None:
    for text, begin, end in (
        ("int>", 0, 4),
        ("A<int>>x", 0, 7),
        ("a>b>", 2, 4),
        ("A<int>, B->c>", 0, 13),
        ("<<>>>", 0, 5),
        ("A<f()->x>>", 0, 10),
        ("int", 0, None),
        ("", 0, None),
        ("a" * 3999 + ">", 0, 4000),
        ("a" * 4000 + ">", 0, None),
        ("x" * 10 + "a" * 3999 + ">", 10, 4010),
    ):
        assert type_end(text, begin) == end


def test_operands_between_commas() -> None:
    for text, parts in {
        "": [""],
        "a": ["a"],
        " a , b ": ["a", "b"],
        "a,b,": ["a", "b", ""],
        "[a,b],c": ["[a,b]", "c"],
        "{a,{b,c}}, d": ["{a,{b,c}}", "d"],
        "f(a, b), c ": ["f(a, b)", "c"],
        "[a],": ["[a]", ""],
        "a,[b": ["a", "[b"],
        ",(,),": ["", "(,)", ""],
        "]a,b": ["]a", "b"],
    }.items():
        assert split_operands(text) == parts


def test_the_bracket_that_closes() -> None:
    for text, begin, end in (
        ("f(a)", 2, 3),
        ("f(a", 2, 3),
        ('f("a)",b)', 2, 8),
        ('("', 1, 2),
        ("f({<>}) x", 2, 6),
        ("f(a->b)", 2, 6),
        ("f(a=>b)", 2, 6),
        ("f<a>b", 2, 3),
        ("f(a[1], (2)) + 1", 2, 11),
    ):
        assert matching_bracket(text, begin) == end
    assert matching_bracket("f(abc)", 2, 3) == 5
    assert matching_bracket("f(abcdef)", 2, 3) == 5
    assert matching_bracket("f(abcdef)", 2, 99) == 8


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("  ", "  "),
        ("a\r\nb", "a\nb"),
        ("a\\nb\\tc", "a\nb\tc"),
        ("a\\nb\nc", "a\\nb\nc"),
        ("\na\\nb\n", "\na\nb\n"),
        ("C:\\new\\nb", "C:\\new\\nb"),
        ("see D:\\table\\nb", "see D:\\table\\nb"),
        ("xC:\\nb", "xC:\nb"),
        ("a\\'b\\\"c", "a\\'b\\\"c"),
        ("a\\'b\\nc\\\"d", "a'b\nc\"d"),
        ("a\\tb", "a\\tb"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("^[[1mx", "x"),
        ("[31mred[0m", "red"),
        ("\\033[1;3mx", "x"),
        ("\x1b]0;t\x07x", "x"),
        ("\ufeffa\u200bb", "ab"),
        ("a\u00a0b\x00c", "a b c"),
        ("\u201ca\u201d b\u2019s \u2018", '"a" b\'s \u2018'),
        ("`a`", "a"),
        ("```\na\nb\n```", "a\nb\n"),
        (' "a" ', "a"),
        ("'a'", "a"),
        ("'a'b'", "'a'b'"),
        ("'a\"", "'a\""),
        ("a &lt; b &amp;&nbsp;c", "a < b & c"),
        ("a &copy; b", "a &copy; b"),
        ("&copy; &lt;", "\u00a9 <"),
        ("> a\n> b", "a\nb"),
        ("> > a\n> > b", "a\nb"),
        ("> a\nb", "> a\nb"),
        ("a\n> b", "a\nb"),
        ("> a", "a"),
        ("\n> a\n\n> b", "\na\n\nb"),
        ("[rank0]: a\n[rank0]: b", "a\nb"),
        ("[1,0]<stdout>: x\n[1,0]<stdout>: y", "x\ny"),
        ("(EngineCore_0 pid=12) a\n(EngineCore_0 pid=12) b", "a\nb"),
        ("INFO 08-12 10:11:12.000 [a.py:12] x", "x"),
        ("I0812 10:11:12.123456 123 a.cc:12] x", "x"),
        ("2024-01-02 10:11:12,123 - INFO - x\n2024-01-02 10:11:12,123 - INFO - y", "x\ny"),
        ("[2024-01-02T10:11:12Z] x", "x"),
        ("2024-01-02 10:11:12 | INFO | a - x", "x"),
        ("web-1  | a\nweb-1  | b", "a\nb"),
        ("E       a", "a"),
        ("[rank0]: > E   a\n[rank0]: > E   b", "a\nb"),
    ],
)
def test_marks_around_a_text(text: str, shown: str) -> None:
    assert as_printed(text) == shown


def test_lines_that_a_terminal_broke() -> None:
    for text, shown in {
        "": "",
        "a": "a",
        "aaa\nb": "aaa\nb",
        "a" * 59 + "\nb": "a" * 59 + "\nb",
        "a" * 60 + "\nb": "a" * 60 + "b",
        "a" * 61 + "\nb": "a" * 61 + "b",
        "a" * 60 + "\n" + "b" * 60 + "\nc": "a" * 60 + "b" * 60 + "c",
        "a" * 60 + "\n" + "b" * 59 + "\nc\nd": "a" * 60 + "b" * 59 + "\nc\nd",
        "a" * 60 + "\nb\n": "a" * 60 + "b\n",
        "a" * 60: "a" * 60,
    }.items():
        assert unwrapped(text) == shown


def test_locations_of_inlined_functions() -> None:
    locations = Locations()
    for rest, found in (
        (" 1 21", (1, 21)),
        ("1 21 5", (1, 21)),
        ("x", None),
        ("1", None),
        ("1 3 76, inlined_at 1 18 16", (1, 3, 1, 18)),
        ("2 151 3, inlined_at 1 3 76", (2, 151, 1, 18)),
        ("2 9 9, inlined_at 7 0 1", (2, 9)),
        ("3 1 1, inlined_at 2 9 9", (3, 1, 2, 9)),
        ("2 9 9", (2, 9)),
        ("3 1 1, inlined_at 2 9 9", (3, 1, 2, 9)),
        ("4 1 1, inlined_at 4 1 1", (4, 1, 4, 1)),
        ("8 1 1, inlined_at 9 9", (8, 1)),
        ("1 3 76", (1, 3)),
        ("2 151 3, inlined_at 1 3 76", (2, 151, 1, 3)),
    ):
        assert locations.read(rest) == found, rest
    nested = Locations()
    deep = [nested.read(f"1 {i + 2} 0, inlined_at 1 {i + 1} 0") for i in range(40)]
    assert deep[31] == (1, 33, 1, 1)
    assert deep[32] == (1, 34, 1, 1)
    assert deep[33] == (1, 35, 1, 2)


def test_texts_of_locations() -> None:
    files = {1: "/home/ring.cu", 2: "b.h"}
    for location, text in (
        (None, ""),
        ((), ""),
        ((1, 0), ""),
        ((1, 21), "ring.cu:21"),
        ((3, 2), "file 3:2"),
        ((2, 151, 1, 21), "b.h:151, inlined at ring.cu:21"),
        ((2, 0, 1, 21), "ring.cu:21"),
        ((2, 5, 1, 0), "b.h:5"),
        ((1, 5, 1, 5), "ring.cu:5"),
    ):
        assert location_text(location, files) == text
    assert (source_file(1, files), source_file(7, files)) == ("ring.cu", "file 7")
    assert (line_text(3, "a.cu:1"), line_text(3, "")) == ("line 3 (a.cu:1)", "line 3")
