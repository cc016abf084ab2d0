"""The coordinate tensor of an im2col copy: what is static stays static. Expected texts as CuTe C++ prints them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout
from cute_py.errors import CuteError, GBasisError, InvalidTypeError, InvalidValueError
from tests.oracle import gbasis_rows

WINDOW = ("lower_corner", "upper_corner", "lower_padding", "upper_padding", "stride")
NAMES = (*(f"{name}_whd" for name in WINDOW), "lower_srt", "stride_srt")


def atom(dtype: str, gmem: str, smem: str, tile: str, window: str, multicast: int = 1) -> Any:
    op = "SM90_TMA_LOAD_IM2COL_MULTICAST" if multicast > 1 else "SM90_TMA_LOAD_IM2COL"
    tensor = cute.make_tensor(cute.make_gmem_ptr(4096, dtype), gbasis_rows.layout(gmem))
    values = {name: gbasis_rows.tree(text) for name, text in zip(NAMES, window.split(), strict=True)}
    shared, tiler = gbasis_rows.layout(smem), gbasis_rows.tiler(tile)
    return cute.tma.make_im2col_tma_copy(op, tensor, shared, tiler, multicast, **values, check=False)


# element type, global tensor, shared layout, tile, window, CTAs; then offset, strides, linear shape of the coordinates
CASES: list[Any] = [
    (
        ("bfloat16_t", "((17,8,2),128):((128,2176,17408),_1)", "(_128,_64):(_64,_1)", "(_128,_64)"),
        ("(_0,_-1) (_-4,_-3) (_0,_-1) (_3,_0) (_2,_3) (_0,_0) (_1,_2)", 1),
        "(_0,(_0,_-1),_0,(_0,_0))",
        "((_2@0@1,_3@1@1,_1@2),(_1@0,_1@0@3,_2@1@3))",
        "(28,(128,_8,_2)):(_1@0,(_1@0@1,_1@1@1,_1@2@1))",
    ),
    (
        ("bfloat16_t", "(32,(17,16,_1)):(_1,(32,544,8704))", "(_16,_32):(_1,_16)", "(_16,_32)"),
        ("(_-1,_-3) (_-1,_-1) (_-1,_-1) (_1,_1) (_3,_3) (_2,_4) (_-1,_-2)", 1),
        "(_0,(_-1,_-3),_0,(_2,_4))",
        "((_1@0,_-1@0@3,_-2@1@3),(_3@0@1,_3@1@1,_1@2))",
        "((32,_1,_2),36):((_1@0@0,_1@1@0,_1@2@0),_1@1)",
    ),
    (
        ("float", "(48,(13,12,16,1)):(_1,(_48,624,7488,_119808))", "(_32,_32):(_1,_32)", "(_32,_32)"),
        ("(_-2,_-2,-2) (0,_0,_2) (2,_2,2) (2,_2,2) (_2,3,_2) (0,0,0) (_1,_1,1)", 1),
        "(_0,(_-2,_-2,-2),_0,(0,0,0))",
        "((_1@0,_1@0@3,_1@1@3,1@2@3),(_2@0@1,3@1@1,_2@2@1,_1@2))",
        "((48,3,_3,1),400):((_1@0@0,_1@1@0,_1@2@0,_1@3@0),_1@1)",
    ),
    (
        ("int8_t", "(128,(17,_16,1)):(_1,(128,2176,34816))", "(_16,_128):(_1,_16)", "(_16,_128)"),
        ("(-2,-2) (-2,-2) (2,2) (2,2) (1,1) (0,0) (1,2)", 2),
        "(_0,(-2,-2),_0,(0,0))",
        "((_1@0,1@0@3,2@1@3),(1@0@1,1@1@1,_1@2))",
        "((128,5,3),272):((_1@0@0,_1@1@0,_1@2@0),_1@1)",
    ),
    (
        ("half_t", "((7,1),64):((64,448),_1)", "(_32,_64):(_64,_1)", "(_32,_64)"),
        ("(_0) (_0) (_0) (_0) (_2) (_0) (_2)", 1),
        "(_0,(_0),_0,(_0))",
        "((_2@0@1,_1@2),(_1@0,_2@0@3))",
        "(4,(64,_1)):(_1@0,(_1@0@1,_1@1@1))",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0][1])
def test_coordinates_keep_what_is_static(case: Any) -> None:
    operands, (window, multicast), offset, strides, linear = case
    tensor = atom(*[*operands, window, multicast]).get_tma_tensor()
    assert cute.text(tensor.engine.coord).replace("ArithTuple", "") == offset
    assert cute.text(tensor.layout.outer.layout.stride) == strides
    assert str(tensor.layout.inner) == linear


def test_a_coordinate_along_a_static_mode_of_one_pixel_is_static() -> None:
    (operands, (window, _), *_) = CASES[1]
    tensor = atom(*[*operands, window]).get_tma_tensor()
    assert cute.text(tensor(37, 17)).replace("ArithTuple", "") == "(5,(14,3),0,(_2,2))"


def test_the_defaults_are_static() -> None:
    tensor = cute.make_tensor(
        cute.make_gmem_ptr(4096, "half_t"), gbasis_rows.layout("((16,16,2),64):((64,1024,16384),_1)")
    )
    shared = Layout((Int(64), Int(32)), cute.LayoutRight)
    plain = cute.tma.make_im2col_tma_copy("SM90_TMA_LOAD_IM2COL", tensor, shared)
    assert str(plain.get_tma_tensor().layout.inner) == "(512,(64,_1,_1)):(_1@0,(_1@0@1,_1@1@1,_1@2@1))"
    assert plain.request.element_strides == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"stride_whd": (0, 1)}, InvalidValueError, "stride = (0, 1); must be at least 1"),
        ({"stride_srt": (1, 0)}, InvalidValueError, "stride_srt = (1, 0); must not be 0"),
        ({"stride_whd": (1,)}, InvalidValueError, "stride has 1 numbers; must have one for each of 2 modes"),
        ({"lower_srt": (0, 1.5)}, InvalidTypeError, "a number of lower_srt must be an integer, got float 1.5"),
        ({"lower_srt": (0, True)}, InvalidTypeError, "a number of lower_srt must be an integer, got bool True"),
        ({"upper_corner_whd": (-40, 0)}, CuteError, "pixels of spatial mode 0 = -24; must not be negative"),
        (
            {"upper_corner_whd": (1, 3)},
            InvalidValueError,
            "filter positions of spatial mode 1 = -2; must not be negative",
        ),
        ({"num_multicast": 3}, CuteError, "num_multicast"),
        (
            {"smem_layout": Layout((Int(64), Int(32)), (Int(64), Int(2)))},
            GBasisError,
            "IM2COL expects at least 2 modes",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_refused(change: dict[str, Any], error: type[Exception], words: str) -> None:
    tensor = cute.make_tensor(
        cute.make_gmem_ptr(4096, "half_t"), gbasis_rows.layout("((16,16,2),64):((64,1024,16384),_1)")
    )
    arguments: dict[str, Any] = {"smem_layout": Layout((Int(64), Int(32)), cute.LayoutRight), **change}
    with pytest.raises(error) as refusal:
        cute.tma.make_im2col_tma_copy("SM90_TMA_LOAD_IM2COL_MULTICAST", tensor, **arguments)
    assert words in str(refusal.value)


def test_a_window_holds_static_numbers_and_plain_ones() -> None:
    made = cute.tma.Im2colWindow((np.int8(-1), Int(0)), *[(0, 0)] * 3, (1, 1), (0, 0), (1, 1))
    assert repr(made.lower_corner) == "(-1, Int(0))"
    with pytest.raises(InvalidTypeError, match=r"stride\[1\] must be an integer, got float 1.0"):
        cute.tma.Im2colWindow(*[(0, 0)] * 4, (1, 1.0), (0, 0), (1, 1))  # type: ignore[arg-type]
