"""Bounds and refusals at their edges: what the encodings of Triton take, and the last number that a text may have."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import cute_py as cute
from cute_py import (
    BlockedEncoding,
    DotOperandEncoding,
    E,
    Layout,
    NvidiaMmaEncoding,
    ScaledBasis,
    SliceEncoding,
    SwizzledSharedEncoding,
    TritonLayout,
    parse_triton,
    parse_triton_encoding,
    static,
    to_triton,
)
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, ParseError
from cute_py.layout import LayoutLeft, LayoutRight
from cute_py.notation.argument_lists import matching_bracket
from cute_py.notation.compiler_types import bindings, spelled_type
from cute_py.notation.expressions import read_expression
from cute_py.notation.log_lines import as_printed
from tests.each import each_of

MMA = NvidiaMmaEncoding(2, 0, (1, 1), (16, 8))
SHARED = to_triton(static(Layout((2, 4), (4, 1))))


@each_of(
    ("made", "error"),
    [
        (lambda: BlockedEncoding((1, 4), (4, 8), (2, 1), "10"), InvalidTypeError),  # type: ignore[arg-type]
        (lambda: BlockedEncoding((1, 4), (4, 8), (2,), (1, 0)), InvalidValueError),
        (lambda: NvidiaMmaEncoding(2, 0, (1, 1, 1), (16, 8)), InvalidValueError),
        (lambda: NvidiaMmaEncoding(2, 0, (3, 1), (16, 8)), InvalidValueError),
        (lambda: NvidiaMmaEncoding(2, 0, (1, 1), (12, 8)), InvalidValueError),
        (lambda: NvidiaMmaEncoding("2", 0, (1, 1), (16, 8)), InvalidTypeError),  # type: ignore[arg-type]
        (lambda: SwizzledSharedEncoding(8, 1, 8, (1, 0, 2), ((0, 1),)), InvalidValueError),
        (lambda: NvidiaMmaEncoding(2, 0, (1, 1), (16, 8), ((0, 1, 0),)), InvalidValueError),
        (lambda: NvidiaMmaEncoding(3, 0, (4, 1, 1), (16, 8, 16)), InvalidValueError),
        (lambda: BlockedEncoding((1 << 31,), (1,), (1,), (0,)), InvalidValueError),
        (lambda: BlockedEncoding((1,), (32,), (1,), (0,), ((-1,),)), InvalidValueError),
        (lambda: BlockedEncoding((1,), (32,), (1,), (0,), ((3,),)), InvalidValueError),
        (lambda: BlockedEncoding((1,), (32,), (1,), (0,), ((16,),)), InvalidValueError),
        (lambda: SwizzledSharedEncoding("8", 1, 8, (1, 0)), InvalidTypeError),  # type: ignore[arg-type]
        (lambda: SwizzledSharedEncoding(8, 1, 8, (0, 0)), InvalidValueError),
        (lambda: TritonLayout((("lane", ((1,),)),), (("dim0", 0),)), InvalidValueError),
        (lambda: TritonLayout((("lane", ((1,),)),), (("dim0", 1 << 33),)), InvalidValueError),
        (lambda: parse_triton("#ttg.linear<{block = []}>"), ParseError),
        (lambda: parse_triton_encoding("#ttg.swizzled_shared<{vec = 8, colour = 1}>"), ParseError),
        (lambda: parse_triton_encoding("#ttg.swizzled_shared<{vec = 8, vec = 8}>"), ParseError),
        (lambda: parse_triton_encoding("#ttg.swizzled_shared<{vec = 8, = 8}>"), ParseError),
        (lambda: DotOperandEncoding(1, MMA, 128).linear((64, 64)), CuteError),
        (lambda: TritonLayout((("lane", "ab"),), (("dim0", 2),)), InvalidTypeError),  # type: ignore[arg-type]
        (lambda: to_triton(static(Layout((4, 2))), (4, 2), lanes=0), InvalidValueError),
        (lambda: to_triton(static(Layout((4, 2))), (4, 2), lanes=2048), InvalidValueError),
        (lambda: SHARED.attribute(0), InvalidValueError),
        (lambda: SHARED.attribute((1 << 20) + 1), InvalidValueError),
    ],
)
def test_encodings_are_refused(made: Callable[[], object], error: type[CuteError]) -> None:
    with pytest.raises(error):
        made()


def test_the_least_and_the_largest_alignment_are_taken() -> None:
    assert SHARED.attribute(1).replace("= 1>", "= 1048576>") == SHARED.attribute(1 << 20)


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ("LayoutRight", LayoutRight),
        ("LayoutLeft", LayoutLeft),
        ("GenRowMajor", LayoutRight),
        ("GenColMajor", LayoutLeft),
    ],
)
def test_the_orders_of_strides_are_read(text: str, major: object) -> None:
    shape = (4, 8)
    assert str(cute.parse(f"(4,8):{text}{{}}")) == str(Layout(shape, major))  # type: ignore[arg-type]


def test_one_threads_part_of_a_tiled_operation_is_read() -> None:
    mma = cute.make_tiled_mma("SM70_8x8x4_F16F16F16F16_NN", (2, 1, 2))
    copy = cute.make_tiled_copy(cute.copy_atom("UniversalCopy<uint16_t>", "uint16"), cute.Layout((8, 4)))
    for whole in (mma, copy):
        for thread in (0, 13, 31):
            part = whole.get_slice(thread)
            assert isinstance(cute.parse(str(part)), type(part)) and str(cute.parse(str(part))) == str(part)
    with pytest.raises(ParseError, match="at position 18: expected a thread of the tiled operation"):
        cute.parse(f"ThrCopy\n  ThrIdx: 99\n{copy}")
    with pytest.raises(ParseError, match="at position 6: expected a line Thr VMNK:"):
        cute.parse(f"ThrMMA\n{mma}")
    with pytest.raises(ParseError, match="expected a line TiledMMA"):
        cute.parse("ThrMMA\n  Thr VMNK: (0,0,0,0)\n")


def test_warps_lie_side_by_side_beyond_the_columns_of_one_instruction() -> None:
    """The registers of wgmma cover its N before the next warps begin."""
    made = dict(NvidiaMmaEncoding(3, 0, (4, 2), (16, 64, 16)).linear((64, 128)).bases)
    assert made["warp"] == ((16, 0), (32, 0), (0, 64))
    assert made["register"] == ((0, 1), (8, 0), (0, 8), (0, 16), (0, 32))


def test_a_small_tile_is_held_several_times() -> None:
    """Bases beyond the tile are 0; every element is held, and none outside."""
    for encoding in (BlockedEncoding((1, 4), (8, 4), (4, 1), (1, 0)), NvidiaMmaEncoding(2, 0, (2, 2), (16, 8))):
        made = encoding.linear((16, 8))
        assert made.out_dims == (("dim0", 16), ("dim1", 8))
        found = {point for _, own in made.bases for point in own}
        assert found == {(0, 0), *((1 << i, 0) for i in range(4)), *((0, 1 << i) for i in range(3))}


def test_texts_of_encodings() -> None:
    blocked = BlockedEncoding((1, 4), (8, 4), (4, 1), (1, 0), ((1, 0), (0, 1)))
    assert str(blocked).endswith("CGALayout = [[1, 0], [0, 1]]}>")
    assert "along K" not in " ".join(DotOperandEncoding(0, BlockedEncoding((1, 4), (8, 4), (4, 1), (1, 0))).facts())
    assert "2 elements along K" in " ".join(DotOperandEncoding(0, MMA, 2).facts())


def test_parents_of_one_dimension_are_refused() -> None:
    flat = BlockedEncoding((4,), (32,), (4,), (0,))
    with pytest.raises(InvalidValueError, match="the parent of a dot operand must have at least two dimensions"):
        DotOperandEncoding(0, flat)
    with pytest.raises(InvalidValueError, match="must be a dimension of the parent, which must have at least two"):
        SliceEncoding(0, flat)


def test_the_bits_of_a_dimension_are_bounded() -> None:
    made = TritonLayout((("register", ((0,),) * 32),), (("dim0", 1),))
    assert len(dict(made.bases)["register"]) == 32
    with pytest.raises(InvalidValueError, match="register has 33 bits"):
        TritonLayout((("register", ((0,),) * 33),), (("dim0", 1),))


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("cute::Swizzle<3, 4>", "Sw<3,4,3>"),
        ("cute::Swizzle<3>", "Swizzle<3>"),
        ("cute::ScaledBasis<cute::C<1>, 0, 1>", "1@1@0"),
        ("cute::ScaledBasis<>", "ScaledBasis"),
        ("cute::gmem_ptr<float*>", "gmem_ptr[float]"),
        ("cute::smem_ptr_flag_bits<16>", "smem_ptr[16b](unset)"),
        ("cute::Tensor<cute::ViewEngine<cute::smem_ptr<float*>>, cute::Layout<cute::C<8>>>", "smem_ptr[float] o _8"),
    ],
)
def test_types_are_shown_as_cute_prints_their_values(written: str, shown: str) -> None:
    assert spelled_type(written) == shown


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("make_layout((2,3),(3,1))", Layout((2, 3), (3, 1))),
        ("make_layout(2:1,3:2)", Layout((2, 3), (1, 2))),
        ("Layout<_8,_1>{}", static(Layout(8, 1))),
        ("(2)*4:1", Layout(8, 1)),
    ],
)
def test_calls_that_make_layouts(text: str, made: Layout) -> None:
    assert cute.parse(text) == made


@pytest.mark.parametrize(
    ("text", "position", "said"),
    [
        ("(2,3", 4, r"expected ',' or '\)'"),
        ("(2,", 3, r"expected '\)'"),
        ("make_shape(2,", 13, r"expected '\)'"),
        ("(2,3)*4:1", 5, "expected the end of the text"),
        ("((2,3)*4,1):1", 6, r"expected ',' or '\)'"),
        ("make_layout((2,3),(1,2,3))", 0, "shape and stride must be congruent"),
        (
            "TiledCopy\n  Tiler_MN: (_0,_8)\n  TiledLayout_TV: _8:_1\n",
            22,
            "expected a tiler whose extents are positive numbers",
        ),
        (
            "TiledCopy\n  Tiler_MN: (n,_8)\n  TiledLayout_TV: _8:_1\n",
            22,
            "expected a tiler whose extents are positive numbers",
        ),
    ],
)
def test_places_of_refusals(text: str, position: int, said: str) -> None:
    with pytest.raises(ParseError, match=said) as caught:
        cute.parse(text)
    assert caught.value.position == position


@pytest.mark.parametrize("text", ["1/2", "3/2 + 1", "(2*n + 1)/(4*n + 2)", "sqrt(2)"])
def test_expressions_that_are_no_integers(text: str) -> None:
    with pytest.raises(InvalidValueError, match="is not"):
        read_expression(text, {})


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("-3", -3),
        ("(4,2):(-1,4)", Layout((4, 2), (-1, 4))),
        ("3*E<1>", ScaledBasis(3, 1)),
        ("E<0>-E<1>", E(0) - E(1)),
        ("2*E<0,1>+3*E<1>", 2 * E(0, 1) + 3 * E(1)),
        ("(_,3)", (cute._, 3)),
        ("counting_iter(-2)", cute.counting_iterator(-2)),
        ("counting_iter(1.500000)", cute.counting_iterator(1.5, "float32")),
    ],
)
def test_what_prints_is_read(text: str, made: object) -> None:
    found = cute.parse(text)
    assert found == made
    assert str(found) == str(made)


@pytest.mark.parametrize(
    ("read", "error", "said"),
    [
        (lambda: cute.parse("3 E<1>"), ParseError, "'3 E<1>' is not a number"),
        (lambda: cute.parse("_3/_0"), ParseError, "the ratio _3/_0 has denominator 0"),
        (lambda: cute.parse(str(2**128 + 1)), ParseError, f"the integer is {2**128 + 1}; must be at most"),
        (lambda: cute.parse("9" * 200), ParseError, "the integer is 9{17} ... 9{17} \\(200 characters\\); must be"),
        (lambda: read_expression("foo(2)", {}), InvalidValueError, r"^'foo\(2\)' is not a number$"),
        (lambda: read_expression("1" + " " * 2000, {}), InvalidValueError, "2001 characters; must have at most 2000"),
        (lambda: parse_triton_encoding("FooLayout(a=1)"), ParseError, "expected one of Blocked, .* got 'Foo'"),
        (lambda: parse_triton_encoding("#ttg.slice<{dim=0, parent=" * 40), ParseError, "at most 8 nested encodings"),
        (
            lambda: parse_triton("#ttg.linear<{register = [[0,1],[1]], lane = [], warp = [], block = []}>"),
            ParseError,
            "expected bases of one rank",
        ),
        (
            lambda: parse_triton("#ttg.linear<{register = [], lane = [], warp = [], block = []}>"),
            ParseError,
            "no basis defines the rank of the tile",
        ),
        (lambda: DotOperandEncoding(1, MMA, 128), InvalidValueError, "^kWidth = 128; must be at most 64"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusals_in_words(read: Callable[[], object], error: type[CuteError], said: str) -> None:
    with pytest.raises(error, match=said):
        read()


def test_an_integer_as_large_as_it_may_be() -> None:
    assert cute.parse(str(2**128)) == 2**128
    assert cute.parse(f"-{2**128}") == -(2**128)
    assert read_expression("1" + " " * 1999, {}) == 1


def test_a_bracket_that_does_not_close_ends_with_the_text_or_the_bound() -> None:
    assert matching_bracket("f(a", 2) == 3
    assert matching_bracket("(" + "a" * 10, 1, 4) == 5
    assert matching_bracket('f(")")', 2) == 5


def test_facts_of_encodings_in_words() -> None:
    lanes = ((1,), (0,), (0,))
    two, one = (TritonLayout((("lane", lanes[:n]),), (("dim0", 2),)).facts()[2] for n in (3, 2))
    assert two.startswith("lane bit 1 (value 2) and lane bit 2 (value 4) move no dimension")
    assert one.startswith("lane bit 1 (value 2) moves no dimension")
    assert SwizzledSharedEncoding(8, 1, 1, (1, 0)).facts() == ["max phase 1: no swizzle, dimension 1 is contiguous"]


def test_texts_of_pages_and_of_windows_are_read_as_printed() -> None:
    assert as_printed("a &lt;b&gt;\r\nc&amp;d") == "a <b>\nc&d"


def test_the_values_of_template_parameters() -> None:
    assert bindings("f() [with T = int, 5! = y; auto U = float]") == {"T": "int", "U": "float"}
