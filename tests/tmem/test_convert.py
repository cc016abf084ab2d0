"""CuTe layouts and tile layouts are the same functions."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import InvalidTypeError, TmemError
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.int_tuple import product_each
from cute_py.layout.layout import Layout
from cute_py.layout.recast import smem_ptr_flag
from cute_py.layout.swizzle import Swizzle
from cute_py.tmem import (
    R,
    S,
    TCol,
    TileLayout,
    TLane,
    from_cute,
    from_cute_tmem,
    mma_shared_layout,
    tmem_datapath_layout,
    to_cute,
)
from tests.each import each_of
from tests.tmem.layouts import rows, shapes_of


@st.composite
def cute_layouts(draw: Any) -> Layout:
    """Rank 1 to 3, modes of depth 1 or 2."""
    leaf = st.tuples(st.integers(1, 6), st.integers(0, 40))
    modes = draw(st.lists(st.lists(leaf, min_size=1, max_size=2), min_size=1, max_size=3))
    pick = [(m[0][0], m[0][1]) if len(m) == 1 else (tuple(e for e, _ in m), tuple(s for _, s in m)) for m in modes]
    return Layout(tuple(shape for shape, _ in pick), tuple(stride for _, stride in pick))


def coordinates(shape: tuple[int, ...]) -> Any:
    return itertools.product(*(range(extent) for extent in shape))


@given(cute_layouts())
def test_from_cute_is_the_same_function(layout: Layout) -> None:
    tile = from_cute(layout)
    shape = tuple(map(int, product_each(layout.shape)))
    for coord in coordinates(shape):
        assert tile.apply(coord, shape)["m"] == int(layout(*coord))


@given(cute_layouts())
def test_and_back(layout: Layout) -> None:
    shape = tuple(map(int, product_each(layout.shape)))
    back = to_cute(from_cute(layout), shape)
    for coord in coordinates(shape):
        assert int(back(*coord)) == int(layout(*coord))


@given(st.data())
def test_to_cute_is_the_same_function(data: st.DataObject) -> None:
    tile = TileLayout(data.draw(rows(("m",), limit=96)), (), data.draw(st.sampled_from([None, {"m": 5}])))
    shape = data.draw(shapes_of(tile.size()))
    try:
        layout = to_cute(tile, shape)
    except ValueError:
        return
    for coord in coordinates(shape):
        assert int(layout(*coord)) == tile.apply(coord, shape)["m"]


@pytest.mark.parametrize("swizzle", [1, 2, 3])
def test_swizzles_go_both_ways(swizzle: int) -> None:
    tile = mma_shared_layout("bfloat16", swizzle, (16, 128))
    layout = to_cute(tile, (16, 128))
    assert isinstance(layout, ComposedLayout)
    assert layout.outer == Swizzle(swizzle, 3, 3)
    again = from_cute(layout)
    assert (again.positions("m") == tile.positions("m")).all()
    cut = tile.slice((16, 128), [(8, 16), (64, 128)])
    assert cut is not None
    moved = to_cute(cut, (8, 64))
    for coord in coordinates((8, 64)):
        assert int(moved(*coord)) == cut.apply(coord, (8, 64))["m"]


def test_tensor_memory_counts_lanes_as_cutlass_does() -> None:
    tile = tmem_datapath_layout("D", 128, 256)
    layout = to_cute(tile, dtype="float32")
    assert str(layout) == "(128,256):(65536,1)"
    half = to_cute(tile, dtype="bfloat16")
    assert str(half) == "(128,256):(131072,1)"
    assert isinstance(layout, Layout)
    assert isinstance(half, Layout)
    assert from_cute_tmem(layout, "float32") == tile
    assert from_cute_tmem(half, "bfloat16") == tile


def test_what_has_no_other_form() -> None:
    with pytest.raises(TmemError, match="one location for each element"):
        to_cute(S[8:1] + R[2:8])
    with pytest.raises(TmemError, match="have no axis TLane"):
        to_cute(S[(8, 4) : (1 @ TLane, 1 @ TCol)])
    with pytest.raises(TmemError, match="supports only a swizzle as the outer function"):
        from_cute(ComposedLayout(Layout(8, 2), 0, Layout(4)))
    with pytest.raises(TmemError, match="negative shift"):
        from_cute(ComposedLayout(Swizzle(2, 4, -3), 0, Layout(4)))
    with pytest.raises(InvalidTypeError):
        from_cute("(4,8):(1,4)")  # type: ignore[arg-type]
    with pytest.raises(TmemError, match="moves both lanes and columns"):
        from_cute_tmem(Layout(4, 65537), "float32")


@each_of("bits", [4, 8, 16, 32])
@each_of("swizzle", [Swizzle(1, 4, 3), Swizzle(3, 4, 3), Swizzle(2, 5, 2)])
def test_a_swizzle_on_bytes(bits: int, swizzle: Swizzle) -> None:
    """With a pointer flag the swizzle moves the bytes that the elements lie in."""
    width = 1024 // bits
    layout = ComposedLayout(swizzle, smem_ptr_flag(bits), Layout((8, width), (width, 1)))
    tile = from_cute(layout)
    for coord in ((0, 0), (1, 0), (3, width - 1), (7, 5), (6, width // 2)):
        linear = coord[0] * width + coord[1]
        moved, inside = int(swizzle(linear * bits // 8)) * 8, linear * bits % 8
        assert tile.apply(coord, (8, width))["m"] * bits == moved + inside


def test_a_swizzle_on_bytes_moves_whole_elements() -> None:
    with pytest.raises(TmemError, match="splits elements of 32 bits"):
        from_cute(ComposedLayout(Swizzle(1, 0, 3), smem_ptr_flag(32), Layout(64)))
