"""Swizzled tile layouts: the same function as CuTe's swizzle, and a permutation of memory."""

from __future__ import annotations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import InvalidTypeError, LayoutError
from cute_py.layout.swizzle import Swizzle
from cute_py.tmem import ComposeLayout, S, TCol, mma_shared_layout
from tests.each import each_of


@given(st.integers(0, 5), st.integers(0, 3), st.booleans())
def test_the_swizzle_permutes(per_element: int, swizzle_len: int, inner: bool) -> None:
    layout = ComposeLayout(per_element, swizzle_len, 3, S[4096:1], inner)
    assert sorted(layout.positions().tolist()) == list(range(4096))
    assert (layout.swizzle(layout.positions()) == numpy.arange(4096)).all()


@given(st.integers(0, 5), st.integers(0, 3), st.integers(0, 4095))
def test_it_is_cutes_swizzle(per_element: int, swizzle_len: int, place: int) -> None:
    layout = ComposeLayout(per_element, swizzle_len, 3, S[4096:1])
    assert layout.apply(place) == {"m": Swizzle(swizzle_len, per_element, 3)(place)}


@each_of("dtype", ["float4_e2m1fn", "uint8", "bfloat16", "float32"])
@each_of("swizzle", [1, 2, 3])
def test_in_bytes_it_is_always_the_same(dtype: str, swizzle: int) -> None:
    bits = {"float4_e2m1fn": 4, "uint8": 8, "bfloat16": 16, "float32": 32}[dtype]
    layout = mma_shared_layout(dtype, swizzle, (8, [0, 256, 512, 1024][swizzle] // bits))
    assert isinstance(layout, ComposeLayout)
    places = layout.positions() * bits // 8
    linear = layout.tile.positions("m") * bits // 8
    assert (places == linear ^ ((linear >> 3) & (((1 << swizzle) - 1) << 4))).all()


def test_a_slice_keeps_the_swizzle() -> None:
    layout = mma_shared_layout("bfloat16", 3, (64, 128))
    part = layout.slice((64, 128), [(8, 40), (16, 64)])
    assert part is not None
    assert (part.positions("m") == layout.positions("m").reshape(64, 128)[8:40, 16:64].reshape(-1)).all()


def test_what_is_no_swizzle() -> None:
    with pytest.raises(LayoutError, match="atom_len = 2"):
        ComposeLayout(3, 3, 2, S[64:1])
    with pytest.raises(LayoutError, match="only on the axis m"):
        ComposeLayout(3, 3, 3, S[64 : 1 @ TCol])
    with pytest.raises(InvalidTypeError):
        ComposeLayout(3, 3, 3, "S[64:1]")  # type: ignore[arg-type]
    with pytest.raises(LayoutError, match="swizzle_len = -1"):
        ComposeLayout(3, -1, 3, S[64:1])
