"""Bounds and refusals at their edges: what the encodings of Triton take, and the last number that a text may have."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import cute_py as cute
from cute_py import (
    BlockedEncoding,
    DotOperandEncoding,
    Layout,
    NvidiaMmaEncoding,
    SwizzledSharedEncoding,
    TritonLayout,
    parse_triton,
    parse_triton_encoding,
    static,
    to_triton,
)
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, ParseError
from cute_py.layout import LayoutLeft, LayoutRight
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
