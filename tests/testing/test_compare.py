"""cute_py.testing: strategies give what they say, comparisons tell the place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py import testing as helpers


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
    with pytest.raises(AssertionError, match="2047 bytes, expected 2048"):
        helpers.assert_same_bytes(wrong[:-1], tile.smem)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError):
        _ = helpers.nothing
    assert "layouts" in dir(helpers)
