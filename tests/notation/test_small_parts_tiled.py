"""Lines of atoms and tiled operations: what each may hold, and the place of an error in texts of C++ and the DSL."""

from __future__ import annotations

from typing import Any

import pytest

import cute_py as cute
from cute_py import Int, Layout, parse, static, to_dsl
from cute_py.atom.copy_atoms import COPY_ATOMS
from cute_py.errors import ParseError
from cute_py.notation.parse import dsl_type
from cute_py.notation.tiled_operations import HEADS, as_cpp, parse_operation, same_layouts

MMA = cute.make_tiled_mma(cute.mma_atom("SM80_16x8x16_F32BF16BF16F32_TN"), static(Layout((2, 1, 1))))
COPY = cute.make_tiled_copy(cute.copy_atom("DefaultCopy", "uint16"), static(Layout((4, 8))), static(Layout((2, 2))))
OF_MMA, OF_COPY = str(MMA), str(COPY)
THREAD, COPIER = str(MMA.get_slice(35)), str(COPY.get_slice(3))
UNKNOWN = "? is a number that is known only at run time; replace it with the number or with a symbol"
NO_THREAD = "expected a thread of the tiled operation"
NO_ATOM = "CuTe has no MMA atom with these layouts"
FOUR = "expected a layout of (ThrV,ThrM,ThrN,ThrK)"
NO_TUPLE = "expected a tuple in brackets"
NO_TILER = "expected a tiler whose extents are positive numbers"


def with_value(text: str, name: str, value: str) -> str:
    lines = text.split("\n")
    return "\n".join([f"  {name}: {value}" if line.strip().startswith(name) else line for line in lines])


def without_line(text: str, name: str) -> str:
    return "\n".join([line for line in text.split("\n") if not line.strip().startswith(name)])


def refusal(text: str) -> tuple[int, str]:
    with pytest.raises(ParseError) as caught:
        parse(text)
    place, _, expected = caught.value.headline.partition(": ")
    assert place == f"at position {caught.value.position}"
    return caught.value.position, expected


@pytest.mark.parametrize(
    ("text", "name", "value", "offset", "expected"),
    [
        (OF_MMA, "ThrLayoutVMNK", "(_32,_2,_1):(_1,_32,_0)", 0, FOUR),
        (OF_MMA, "ThrLayoutVMNK", "(_32,_2,_1,_1,_1):(_1,_32,_0,_0,_0)", 0, FOUR),
        (OF_MMA, "ThrLayoutVMNK", "_32:_1", 0, FOUR),
        (OF_MMA, "ThrLayoutVMNK", "(_32,_2,_1,_1)", 0, FOUR),
        (OF_MMA, "ThrLayoutVMNK", "(_32,_2,_1,x*):(1)", 11, "'x*' is not a number"),
        (OF_MMA, "ThrLayoutVMNK", "(_32,_2", 7, "expected ',' or ')'"),
        (OF_MMA, "PermutationMNK", "(_,_)", 0, "expected three permutations"),
        (OF_MMA, "PermutationMNK", "(_,_,_,_)", 0, "expected three permutations"),
        (OF_MMA, "PermutationMNK", "(_,x*,_)", 3, "'x*' is not a number"),
        (OF_MMA, "PermutationMNK", "((_2,_4):(_4,_1),_,?)", 19, UNKNOWN),
        (OF_MMA, "PermutationMNK", "_", 0, NO_TUPLE),
        (OF_MMA, "PermutationMNK", "(_,_,_", 0, NO_TUPLE),
        (OF_MMA, "PermutationMNK", "(_,_,_)x", 0, NO_TUPLE),
        (OF_MMA, "ThrID", "_32:_2", 0, NO_ATOM),
        (OF_COPY, "Tiler_MN", "(0,_16)", 0, NO_TILER),
        (OF_COPY, "Tiler_MN", "(-8,16)", 0, NO_TILER),
        (OF_COPY, "Tiler_MN", "(M,_16)", 0, NO_TILER),
        (OF_COPY, "Tiler_MN", "(_8,_0)", 0, NO_TILER),
        (OF_COPY, "Tiler_MN", "(_8,M:_1)", 0, NO_TILER),
        (OF_COPY, "Tiler_MN", "_", 0, NO_TILER),
        (OF_COPY, "Tiler_MN", "0", 0, NO_TILER),
        (OF_COPY, "Tiler_MN", "()", 1, "expected a number, found the end of the text"),
        (OF_COPY, "Tiler_MN", "(_8,_16,)", 8, "expected a number, found the end of the text"),
        (OF_COPY, "Tiler_MN", "(_8,,_16)", 4, "expected a number, found the end of the text"),
        (OF_COPY, "Tiler_MN", "(_8,x*)", 4, "'x*' is not a number"),
        (OF_COPY, "Tiler_MN", "x*", 0, "'x*' is not a number"),
        (OF_COPY, "Tiler_MN", "_8,_16", 2, "expected the end of the text"),
        (OF_COPY, "Tiler_MN", "(_8,_16", 0, NO_TUPLE),
        (OF_COPY, "Tiler_MN", "(_8,_16):(_1,_8)", 0, NO_TUPLE),
        (OF_COPY, "TiledLayout_TV", "4", 0, "expected a layout of numbers"),
        (OF_COPY, "TiledLayout_TV", "(M,4):(1,2)", 0, "expected a layout of numbers"),
        (OF_COPY, "TiledLayout_TV", "(_32,_4):(M,1)", 0, "expected a layout of numbers"),
        (OF_COPY, "TiledLayout_TV", "(_32,_4", 7, "expected ',' or ')'"),
        (
            OF_COPY,
            "TiledLayout_TV",
            "_128:_1",
            0,
            "layout_TV must be a layout of (thread, value), got Layout(Int(128), Int(1))",
        ),
        (OF_COPY, "ThrID", "_2:_1", 0, "CuTe has no copy atom with these layouts of 16-bit values"),
        (OF_COPY, "ValLayoutRef", "_2:_1", -64, "CuTe has no copy atom with these layouts of 16-bit values"),
        (OF_COPY, "ValueType", "xb", 0, "expected a width such as 16b"),
        (OF_COPY, "ValueType", "b", 0, "expected a width such as 16b"),
        (OF_COPY, "ValueType", "16bb", 0, "expected a width such as 16b"),
        (OF_COPY, "ValueType", "\u00b2b", 0, "expected a width such as 16b"),
        (OF_COPY, "ValueType", "9" * 5000 + "b", 0, "expected a width such as 16b"),
        (OF_COPY, "ValueType", "7b", 0, "there is no element type of 7 bits"),
        (THREAD, "Thr VMNK", "3", 0, NO_THREAD),
        (THREAD, "Thr VMNK", "(32,0,0,0)", 0, NO_THREAD),
        (THREAD, "Thr VMNK", "(3,2,0,0)", 0, NO_THREAD),
        (THREAD, "Thr VMNK", "(3,0,0)", 0, NO_THREAD),
        (THREAD, "Thr VMNK", "x", 0, NO_THREAD),
        (THREAD, "Thr VMNK", "(?,0,0,0)", 1, UNKNOWN),
        (COPIER, "ThrIdx", "32", 0, NO_THREAD),
        (COPIER, "ThrIdx", "-1", 0, NO_THREAD),
        (COPIER, "ThrIdx", "(1,2)", 0, NO_THREAD),
        (COPIER, "ThrIdx", "x", 0, NO_THREAD),
        (COPIER, "ThrIdx", "", 0, "expected a number, found the end of the text"),
        (to_dsl(MMA), "Thr Layout VMNK", "(32,2,1,1):?", 0, UNKNOWN),
        (to_dsl(MMA), "Permutation MNK", "(_,_)", 0, "expected three permutations"),
        (to_dsl(MMA), "ThrID", "32:2", 0, NO_ATOM),
    ],
)
def test_a_value_that_is_wrong(text: str, name: str, value: str, offset: int, expected: str) -> None:
    changed = with_value(text, name, value)
    place, found = refusal(changed)
    assert found == expected
    if name != "ValLayoutRef":  # the atom is marked at its first line
        assert place == changed.index(f"{name}: ") + len(f"{name}: ") + offset
    else:
        assert place == changed.index("_1:_0")


def test_a_line_that_is_missing() -> None:
    for text, names in (
        (OF_MMA, ["ThrLayoutVMNK", "PermutationMNK", "ThrID", "Shape_MNK", "LayoutA_TV", "LayoutB_TV", "LayoutC_TV"]),
        (OF_COPY, ["Tiler_MN", "TiledLayout_TV", "ThrID", "ValLayoutSrc", "ValLayoutDst", "ValueType"]),
        (to_dsl(MMA), ["Thr Layout VMNK", "Permutation MNK", "ThrID", "Shape MNK", "TV Layout A", "TV Layout C"]),
        (to_dsl(MMA.atom), ["ThrID", "Shape MNK", "TV Layout B"]),
    ):
        for name in names:
            changed = without_line(text, name)
            assert refusal(changed) == (len(changed), f"expected a line {name}:")
    one = cute.make_tiled_copy(cute.copy_atom("DefaultCopy", "float16"), Layout(Int(4)), Layout(Int(2)))
    copy = to_dsl(one)
    assert parse(copy) == one
    for name in ("Tiler MN", "TV Layout tiled", "ThrID", "TV Layout Src", "TV Layout Dst", "Value type"):
        changed = without_line(copy, name)
        assert refusal(changed) == (len(changed), f"expected a line {name}:")
    assert refusal(without_line(THREAD, "Thr VMNK")) == (6, "expected a line Thr VMNK:")
    assert refusal(without_line(COPIER, "ThrIdx")) == (7, "expected a line ThrIdx:")
    assert refusal("ThrMMA\n  Thr VMNK: (0,0,0,0)") == (28, "expected a line TiledMMA")
    assert refusal("ThrCopy\n  ThrIdx: 0") == (19, "expected a line TiledCopy")
    assert refusal("ThrMMA\n  Thr VMNK: 3\n" + OF_COPY) == (19, NO_THREAD)
    assert refusal("ThrCopy\n  ThrIdx: 3\n" + OF_MMA) == (18, NO_THREAD)


def test_the_reference_layout_may_be_missing() -> None:
    assert parse(without_line(OF_COPY, "ValLayoutRef")) == COPY
    assert parse(with_value(OF_COPY, "ValueType", "16")) == COPY


def test_texts_read_back() -> None:
    for text in (OF_COPY, COPIER, OF_MMA, THREAD, str(MMA.atom), str(COPY.atom)):
        found: Any = parse(text)
        again = str(found)
        assert again.replace("_", "") == text.replace("_", "")
    for name, value in (
        ("PermutationMNK", "(_32,_,_)"),
        ("PermutationMNK", "(_,(_2,_4):(_4,_1),_)"),
        ("PermutationMNK", "(_,_,_16)"),
    ):
        assert value in str(parse(with_value(OF_MMA, name, value)))
    for value, tiler in (
        ("8", (8,)),
        ("_128:_1", (Layout(Int(128), Int(1)),)),
        ("(_128)", (128,)),
        ("(_128,)", (128,)),
        ("(_4:_1,_16)", (Layout(Int(4), Int(1)), 16)),
        ("((_2,_4):(_4,_1),_16)", (Layout((Int(2), Int(4)), (Int(4), Int(1))), 16)),
    ):
        found = parse(with_value(OF_COPY, "Tiler_MN", value))
        assert found.tiler_mn == tiler
    narrow: Any = parse(with_value(OF_COPY, "ValueType", "32b"))
    assert narrow.atom.dtype.name == "uint32"
    of_type: Any = parse(OF_COPY, dtype="int8")
    assert of_type.atom.dtype.name == "int8"
    assert of_type.tiler_mn == COPY.tiler_mn
    thread: Any = parse(THREAD, dtype="bfloat16")
    assert thread.thr_vmnk == (3, 1, 0, 0)
    static_thread: Any = parse(with_value(COPIER, "ThrIdx", "_3"))
    assert str(static_thread).split("\n")[1] == "  ThrIdx: _3"


def test_a_text_of_the_dsl_becomes_one_of_c() -> None:
    for text, cpp in {
        "Thr Layout VMNK: (4:1,8:1):(1,4)": "  ThrLayoutVMNK: (_4:_1,_8:_1):(_1,_4)",
        "Tiler MN: (4:1,8:1)": "  Tiler_MN: (_4,_8)",
        "Tiler MN: ((2,4):(4,1),8:2)": "  Tiler_MN: ((_2,_4):(_4,_1),_8:_2)",
        "Permutation MNK: (4:1,_,_)": "  PermutationMNK: (_4,_,_)",
        "TV Layout A: (4:1)": "  LayoutA_TV: (_4:_1)",
        "Shape MNK: (16,8,?)": "  Shape_MNK: (_16,_8,?)",
        "Foo: (4:1)": "  Foo: (_4:_1)",
        "Tiled MMA": "TiledMMA",
        " Copy Atom ": "Copy_Atom",
        "": "",
    }.items():
        assert as_cpp(text, None, dsl_type) == (cpp, None)
    half, word = dsl_type("f16"), dsl_type("i32")
    assert as_cpp("Value type: f16", None, dsl_type) == ("  ValueType: 16b", half)
    assert as_cpp("Value type: f16", word, dsl_type) == ("  ValueType: 32b", word)
    text = "a\n  Value type:  q16"
    with pytest.raises(ParseError) as caught:
        as_cpp(text, None, dsl_type)
    assert (caught.value.position, caught.value.facts) == (text.index("q16"), {"text": text})
    assert caught.value.headline == f"at position {text.index('q16')}: unknown element type 'q16'"


def test_a_text_without_a_head() -> None:
    read: Any = parse
    with pytest.raises(ParseError) as caught:
        parse_operation("Foo\n  ThrID: _1:_0", None, read, dsl_type, lambda bits: dsl_type(f"i{bits}"))
    assert caught.value.headline == f"at position 0: expected one of {', '.join(HEADS)}"
    assert (caught.value.position, caught.value.facts) == (0, {"text": "Foo\n  ThrID: _1:_0"})


def test_operations_with_the_same_layouts() -> None:
    assert same_layouts(cute.copy_atom("DefaultCopy", "float16")) == [
        *("DefaultCopy", "AutoVectorizingCopyWithAssumedAlignment<128>")
    ]
    for name in ("UniversalCopy<uint64_t>", "SM75_U32x1_LDSM_N"):
        names = same_layouts(cute.copy_atom(name, "float16"))
        assert name in names
        assert len(set(names)) == len(names)
    assert COPY_ATOMS["DefaultCopy"].name == "DefaultCopy"
