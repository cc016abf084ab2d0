"""Calls of the layout algebra in C++'s and Python's spelling, and statements that define their operands."""

from __future__ import annotations

from typing import Any

import pytest

import cute_py as cute
from cute_py import Layout
from cute_py.cli.main import main
from cute_py.errors import CuteError
from tests.each import each_of

NESTED = "Layout<Shape<_4,Shape<_2,_4>>,Stride<_8,Stride<_4,_1>>>{}"
LAYOUT = cute.parse("(_4,(_2,_4)):(_8,(_4,_1))")

CALLS: dict[str, Any] = {
    f"size<1>({NESTED})": cute.size(LAYOUT, 1),
    f"size<1,0>({NESTED})": cute.size(LAYOUT, 1, 0),
    f"cute::rank<1>({NESTED})": cute.rank(LAYOUT, 1),
    f"depth({NESTED})": cute.depth(LAYOUT),
    f"shape<1>({NESTED})": cute.shape(LAYOUT, 1),
    f"stride<0>({NESTED})": cute.stride(LAYOUT, 0),
    f"layout<1>({NESTED})": LAYOUT[1],
    f"get<1,0>({NESTED})": LAYOUT[1][0],
    f"select<1,0>({NESTED})": cute.select(LAYOUT, 1, 0),
    f"take<1,2>({NESTED})": cute.take(LAYOUT, 1, 2),
    f"group<0,2>({NESTED})": cute.group(LAYOUT, 0, 2),
    f"append<3>({NESTED})": cute.append(LAYOUT, None, 3),
    f"prepend<4>({NESTED}, Layout<_1,_0>{{}})": cute.prepend(LAYOUT, cute.parse("_1:_0"), 4),
    f"recast_layout<half_t, float>({NESTED})": cute.recast_layout(LAYOUT, "float16", "float32"),
    f"upcast<2>({NESTED})": cute.upcast(LAYOUT, 2),
    f"flatten(layout<1>({NESTED}))": cute.flatten(LAYOUT[1]),
    "with_shape(make_layout(32), make_shape(4, 8))": cute.with_shape(Layout(32), 4, 8),
    "cute.size((4,8):(8,1), mode=[0])": 4,
    "cute.group_modes((2,3,4):(1,2,6), 0, 2)": cute.group_modes(cute.parse("(2,3,4):(1,2,6)"), 0, 2),
    "crd2idx((1,2), (4,8), (8,1))": 10,
    "slice((_,2), (4,8):(8,1))": cute.parse("(4):(8)"),
}


@each_of(("text", "value"), list(CALLS.items()))
def test_calls_are_evaluated(text: str, value: Any) -> None:
    from cute_py.arith_tuple.cells import text as printed

    assert f"result: {printed(value)}" in str(cute.explain(text)).splitlines()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("take<0,9>((4,8):(8,1))", "range out of bounds"),
        ("layout<3>((4,8):(8,1))", "is refused"),
        ("recast_layout<half_t>((4,8):(8,1))", "is refused"),
        ("group<0,1,2,3>((4,8):(8,1))", "is refused"),
    ],
)
def test_a_refused_call_says_why(text: str, said: str) -> None:
    head, *rest = str(cute.explain(text)).splitlines()
    assert head.startswith(text.split("(")[0])
    assert said in "\n".join(rest)


STATEMENTS = {
    "auto L = make_layout(make_shape(4, 8), make_stride(8, 1)); print(L(_, 2));": [
        "L = (4,8):(8,1)",
        "  slice: (4):(8)",
    ],
    "using L = Layout<Shape<_4,_8>>; cosize(L{})": ["L = (_4,_8):(_1,_4)", "result: _32"],
    "L = cute.make_layout((4, 8), stride=(8, 1))  # rows\nprint(cute.size(L, mode=[1]))": [
        "L = (4,8):(8,1)",
        "result: 8",
    ],
    "L = Layout((4, 8), (8, 1))\nL(2, 3)": ["L = (4,8):(8,1)", "  offset: 2 * 8 + 3 * 1 = 19"],
    "A = (4,8):(8,1); B = 4:2; composition(A, B)": ["A = (4,8):(8,1)", "B = 4:2", "judged: R(i) = A(B(i)) for every i"],
    "Layout a = make_layout(make_shape(Int<2>{}, 4), make_stride(12, Int<1>{}));\nLayout x = coalesce(a);": [
        "a = (_2,4):(12,_1)",
        "result: (_2,4):(12,_1) coalesces to (_2,4):(12,_1)",
    ],
    "auto a = Layout<Shape <_2,Shape <_1,_6>>, Stride<_1,Stride<_6,_2>>>{};\nauto r = coalesce(a);  // _12:_1": [
        "a = (_2,(_1,_6)):(_1,(_6,_2))",
        "result: (_2,(_1,_6)):(_1,(_6,_2)) coalesces to _12:_1",
    ],
    "a = Layout((6, 2), (8, 2))\nb = Layout((4, 3), (3, 1))\nr = composition(a, b)\nprint(r)": [
        "a = (6,2):(8,2)",
        "b = (4,3):(3,1)",
        "judged: R(i) = A(B(i)) for every i",
    ],
    "Layout v = make_layout(16); auto t = zipped_divide(v, Shape<_4>{}); auto f = t(_, 2);": [
        "v = 16:_1",
        "  offset: 8",
    ],
    "auto L = make_layout(make_shape(4, 8));\nif (thread0()) {\n  print_layout(L);\n}": [
        "L = (4,8):(_1,4)",
        "A layout: it turns a coordinate into an offset, the sum of index times stride.",
    ],
    "auto L = make_layout(12); if (cute::thread(3, 0)) print(logical_divide(L, Layout<_3>{}));": ["L = 12:_1"],
    "L = (4,8):(8,1); L[0]": ["L = (4,8):(8,1)", "result: 4:8"],
    "L = (4,(2,4)):(8,(4,1)); size(L[1])": ["result: 8"],
    "L = (4,8):(8,1); L.shape": ["result: (4,8)"],
    "auto L = Layout<Shape<_4,_8>>{}; L.size()": ["result: _32"],
    "constexpr int M = 128; auto L = make_layout(make_shape(Int<M>{}, _64{})); size(L)": ["M = 128", "result: _8192"],
    "using A = decltype(composition(Swizzle<2,3,3>{}, Layout<Shape<_8,_32>,Stride<_32,_1>>{})); cosize(A{})": [
        "result: _256"
    ],
    "auto layout = make_ordered_layout(make_shape(4, 8), Step<_1,_0>{}); layout(2, 3)": [
        "layout = (4,8):(8,_1)",
        "  offset: 2 * 8 + 3 * _1 = 19",
    ],
    "auto t = make_identity_layout(make_shape(4, 8)); t(1, 2)": ["t = (4,8):(_1@0,_1@1)"],
    "using A = decltype(composition(Swizzle<3,3,3>{}, Layout<Shape<_8,_64>,Stride<_64,_1>>{}));\n"
    "using B = decltype(tile_to_shape(A{}, Shape<_128,_64>{}));\nprint(B{});": [
        "A = Sw<3,3,3> o _0 o (_8,_64):(_64,_1)",
        "result: Sw<3,3,3> o _0 o ((_8,_16),(_64,_1)):((_64,_512),(_1,_0))",
    ],
    "const auto a = make_layout(12); auto t = Layout<_3>{}; auto r = logical_divide(a, t);": ["a = 12:_1", "t = _3:_1"],
    "auto r = coalesce((_2,(_1,_6)):(_1,(_6,_2)));": ["result: (_2,(_1,_6)):(_1,(_6,_2)) coalesces to _12:_1"],
}


@each_of(("text", "lines"), list(STATEMENTS.items()))
def test_definitions_are_put_into_the_last_statement(
    text: str, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    answer = str(cute.explain(text)).splitlines()
    assert [line for line in lines if line not in answer] == []
    assert main(["explain", text]) == 0
    assert "Not recognised" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    ["x = 4", "L = unknown(4, 8); L(2)", "L = (4,8):(8,1); M(2)", "L = (4,8):(8,1); L ==", "= (4,8):(8,1); f(1)"],
)
def test_statements_that_are_not_understood_as_a_whole_are_not_evaluated(text: str) -> None:
    from cute_py.explanation.compositions import spelled_statements

    assert spelled_statements(text) is None


def test_many_definitions_end() -> None:
    from cute_py.explanation.compositions import spelled_statements

    text = "".join(f"a{i} = (4,8):(8,1)\n" for i in range(100)) + "size(a99)"
    assert (spelled_statements(text) or "").endswith("result: 32")
    with pytest.raises(CuteError):
        cute.explain("a = " + "(" * 3000)
