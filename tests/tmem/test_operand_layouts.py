"""Operand tiles and accumulators: every element has a place of its own, and the bounds hold."""

from __future__ import annotations

import pytest

from cute_py.errors import LayoutError
from cute_py.tmem import DATAPATHS, S, TLane, mma_shared_layout, tmem_datapath_layout
from tests.each import each_of


@each_of("swizzle", [0, 1, 2, 3])
@each_of("shape", [(8, 128), (32, 256), (2, 64, 128)])
def test_shared_tiles_fill_memory_once(swizzle: int, shape: tuple[int, ...]) -> None:
    layout = mma_shared_layout("uint8", swizzle, shape)
    assert sorted(layout.positions("m").tolist()) == list(range(layout.size()))


@pytest.mark.parametrize("name", list(DATAPATHS))
def test_data_paths_give_each_element_a_cell(name: str) -> None:
    rows = DATAPATHS[name][0]
    layout = tmem_datapath_layout(name, rows, 32)
    cells = {tuple(place) for place in layout.places(("TLane", "TCol"))[:, 0].tolist()}
    assert len(cells) == rows * 32
    assert max(lane for lane, _ in cells) < 128


def test_the_upper_half_of_a_slab() -> None:
    assert tmem_datapath_layout("F", 64, 32, 1) == tmem_datapath_layout("F", 64, 32) + 16 @ TLane


@each_of(
    ("call", "words"),
    [
        (lambda: mma_shared_layout("uint8", 3, (64, 64)), "columns = 64; must be a multiple of 128"),
        (lambda: mma_shared_layout("bfloat16", 1, (12, 16)), "rows = 12; must be a multiple of 8"),
        (lambda: mma_shared_layout("bfloat16", 0, (64,)), r"must be \(..., rows, columns\)"),
        (lambda: mma_shared_layout("bfloat16", 4, (8, 64)), "swizzle mode is 4"),
        (lambda: mma_shared_layout("float6_e2m3fn", 0, (8, 64)), "6 bits"),
        (lambda: tmem_datapath_layout("H", 128, 16), "unknown data path 'H'"),
        (lambda: tmem_datapath_layout("D", 64, 16), "rows = 64; must be 128"),
        (lambda: tmem_datapath_layout("A", 128, 16, 1), "sub_slab = 1; must be 0"),
        (lambda: tmem_datapath_layout("F", 64, 16, 2), "sub_slab = 2; must be 0 or 1"),
        (lambda: tmem_datapath_layout("B", 64, 15), "cols = 15; must be a multiple of 2"),
        (lambda: tmem_datapath_layout("G", 32, 30), "cols = 30; must be a multiple of 4"),
        (lambda: tmem_datapath_layout("F", 64, 0), "cols = 0"),
    ],
)
def test_edges(call: object, words: str) -> None:
    with pytest.raises(LayoutError, match=words):
        call()  # type: ignore[operator]


def test_unswizzled_tiles_need_no_eight_rows() -> None:
    assert mma_shared_layout("bfloat16", 0, (12, 64)) == S[(12, 8, 8) : (8, 96, 1)]
