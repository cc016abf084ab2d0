"""cute_py.testing: strategies give what they say, comparisons tell the place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py import testing as helpers
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError
from tests.refusals import Refusal, assert_refused, nested, refusals

N = sympy.Symbol("N", integer=True, positive=True)


@given(helpers.layouts(), helpers.swizzles())
def test_strategies_give_layouts_and_swizzles(layout: Any, swizzle: Any) -> None:
    assert isinstance(layout, Layout)
    assert isinstance(swizzle, cute.Swizzle)
    helpers.assert_same_function(layout, layout)
    helpers.assert_same_function(cute.coalesce(layout), layout)


@given(helpers.injective_layouts())
def test_injective_layouts_are(layout: Any) -> None:
    assert cute.is_injective(layout)


def test_coordinates_are_compared_whole() -> None:
    helpers.assert_same_function(cute.make_identity_layout((2, 3)), cute.make_identity_layout((2, 3)))
    with pytest.raises(AssertionError, match="index 1: "):
        helpers.assert_same_function(Layout((2, 3), (cute.E(0), cute.E(1))), Layout((2, 3), (cute.E(1), cute.E(0))))


def test_sizes_that_differ() -> None:
    with pytest.raises(AssertionError, match="4:_1 has 4 elements, 5:_1 has 5"):
        helpers.assert_same_function(Layout(4), Layout(5))


def test_the_first_wrong_byte_is_named() -> None:
    array = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    base = 1 << 40
    x = cute.make_tensor(cute.make_gmem_ptr(base, "uint16"), Layout((64, 64), (64, Int(1))))
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, Layout((Int(32), Int(32)), LayoutRight))
    tile = cute.tma.execute(atom, array, (1, 1))
    helpers.assert_same_bytes(tile.smem, tile.smem, atom.descriptor, tile.coords)
    wrong = tile.smem.copy()
    wrong[70] ^= 1
    with pytest.raises(AssertionError, match=r"byte 70: .* TMA \(35, 33\)"):
        helpers.assert_same_bytes(wrong, tile.smem, atom.descriptor, tile.coords)
    with pytest.raises(AssertionError, match=r"byte 70: .*1 differ"):
        helpers.assert_same_bytes(wrong, tile.smem)
    with pytest.raises(AssertionError, match="found has 2047 bytes, but expected has 2048"):
        helpers.assert_same_bytes(wrong[:-1], tile.smem)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError):
        _ = helpers.nothing
    assert "layouts" in dir(helpers)


REFUSED: list[Refusal] = [
    ("no layout", lambda: helpers.assert_same_function(3, Layout(3)), InvalidTypeError, "must be a layout or a tensor"),
    ("class", lambda: helpers.assert_same_function(Layout, Layout), InvalidTypeError, "must be a layout or a tensor"),
    ("symbol", lambda: helpers.assert_same_function(Layout(N), Layout(N)), InvalidTypeError, "the elements of N:_1"),
    ("billions", lambda: helpers.assert_same_function(Layout(10**9), Layout(10**9)), InvalidValueError, "67108864"),
    ("bytes of floats", lambda: helpers.assert_same_bytes([1.5], [1]), InvalidTypeError, "found must be integers"),
    ("no bytes", lambda: helpers.assert_same_bytes([1], [256]), InvalidValueError, "expected holds 256 to 256"),
    ("ragged", lambda: helpers.assert_same_bytes([[1], [1, 2]], [1]), InvalidTypeError, "found must be integers"),
    ("sizes", lambda: helpers.shapes(3), InvalidTypeError, "sizes must be a sequence of integers"),
    ("no sizes", lambda: helpers.shapes(()), InvalidValueError, "must have at least one size"),
    ("large sizes", lambda: helpers.layouts(sizes=(2**40,)), InvalidValueError, "sizes[0] = 1099511627776; must be 0"),
    ("rank", lambda: helpers.injective_layouts(max_rank=0), InvalidValueError, "max_rank = 0; must be 1 to 8"),
    ("depth", lambda: helpers.shapes(depth=None), InvalidTypeError, "depth must be an integer"),
    ("scalar", lambda: helpers.shapes(scalar=1), InvalidTypeError, "scalar must be a bool"),
    ("kinds", lambda: helpers.layouts(kinds="wild"), InvalidTypeError, "kinds must be a tuple of kinds of strides"),
    ("kind", lambda: helpers.layouts(kinds=("tidy",)), InvalidValueError, "kinds[0] = 'tidy'; must be one of"),
    ("static", lambda: helpers.swizzled_layouts(3), InvalidTypeError, "static must be a bool"),
    ("bits", lambda: helpers.swizzles(5), InvalidValueError, "max_bits = 5; must be 0 to 4"),
    ("shape", lambda: helpers.coordinates_of((4, "x")), InvalidTypeError, "item 1 of the sizes of the shape must be"),
    ("long shape", lambda: helpers.coordinates_of((1,) * 100), InvalidValueError, "a shape of 100 sizes; must have"),
    ("deep shape", lambda: helpers.slices_of(nested(2000)), InvalidValueError, "nested deeper than 64"),
    ("no modes", lambda: helpers.slices_of(4), InvalidTypeError, "takes a shape with modes"),
    ("kind of strides", lambda: helpers.strides_for((4, 2), 3), InvalidTypeError, "the kind of strides is 3"),
]  # fmt: skip


@refusals(REFUSED)
def test_refused(call: Callable[[], Any], kind: type[CuteError], words: str) -> None:
    assert_refused(call, kind, words)


def test_nothing_is_the_same() -> None:
    helpers.assert_same_function(Layout(0), Layout((0, 3)))
    helpers.assert_same_bytes(b"", [])
    helpers.assert_same_bytes(b"ab", np.array([97, 98], np.int64))


@given(helpers.slices_of((4, (2, 3))), helpers.strides_for((4, (2, 3)), "gaps"))
def test_strategies_of_a_shape(part: Any, strides: Any) -> None:
    assert Layout((4, (2, 3)), strides)(part).shape
