"""Pictures of im2col windows, of a ring of stages over time, and of tensor memory; and what draw() takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py.draw import draw, draw_im2col, draw_smem, draw_tmem
from cute_py.draw.picture import Picture
from cute_py.draw.timeline import draw_pipeline
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.memory import GlobalMemory, SharedMemory
from cute_py.tma.simulate.pipeline import Ring, RingLoad, RingStore, Timeline
from cute_py.tmem.demonstration import demonstrate, demonstration_copy
from tests.draw.structure import cells

IMAGE = TensorMapIm2col(0, 4096, (16, 14, 12, 2), (16, 16 * 14, 16 * 14 * 12), (-1, -1), (-1, -1), 16, 64)


def test_the_pixels_of_an_im2col_load_are_numbered_in_order() -> None:
    picture = draw_im2col(IMAGE, (0, 3, 2, 0), (2, 1))
    visited = {int(c.text): c for c in cells(picture) if c.text != "."}
    assert sorted(visited) == list(range(64))
    x, y = 3, 2
    for number in range(64):
        assert f"TMA (0,{x + 2},{y + 1},0) -> " in visited[number].title
        assert visited[number].hatches == (x + 2 > 13)
        x += 1
        if x > 14 - 1 - 1:
            x, y = -1, y + 1
    assert "4 pixels are outside the image: filled, and counted in the bytes" in picture.notes


def test_pixels_of_the_next_picture_are_told() -> None:
    picture = draw_im2col(IMAGE, (0, 3, 10, 0))
    assert any(note.endswith("of the pixels are in other planes than (0)") for note in picture.notes)


def test_an_im2col_load_of_a_line() -> None:
    line = TensorMapIm2col(0, 4096, (16, 20, 2), (16, 320), (0,), (0,), 16, 8)
    assert [c.text for c in cells(draw_im2col(line, (0, 5, 0)))][5:13] == [str(n) for n in range(8)]


@pytest.mark.parametrize("swizzle", [0, 1])
def test_a_tile_of_an_im2col_load_lies_where_the_emulator_puts_it(swizzle: int) -> None:
    request = TensorMapIm2col(6, 4096, (16, 14, 12, 2), (32, 448, 5376), (-1, -1), (-1, -1), 16, 64, swizzle=swizzle)
    memory = (1 + np.arange(16 * 14 * 12 * 2, dtype=np.uint16)).view(np.uint8)
    shared = np.zeros(64 * 32, np.uint8)
    raw = cute.tma.encode(request)
    Emulator().load(raw, memory, (0, 3, 2, 0), shared, im2col_offsets=(2, 1), gmem_base=4096)
    picture = draw_smem(request, (0, 3, 2, 0), (2, 1))
    drawn = cells(picture)
    assert len(drawn) == len(shared) // 16
    for place, cell in enumerate(drawn):
        c, w, h, n = (int(number) for number in cell.text.strip("()").split(","))
        held = int(shared[16 * place : 16 * place + 2].view(np.uint16)[0])
        inside = w < 14
        assert held == (1 + ((n * 12 + h) * 14 + w) * 16 + c if inside else 0)
        assert cell.hatches == (not inside)
    assert picture.title == "im2col, pixels from (0,3,2,0) in shared memory"
    assert "a row of 32 bytes for each pixel" in picture.notes[0]


def test_a_large_image_shows_the_pixels_that_are_visited() -> None:
    large = TensorMapIm2col(0, 4096, (64, 224, 224, 2), (128, 28672, 6422528), (-3, -3), (-3, -3), 64, 128)
    picture = draw_im2col(large, (0, 100, 50, 0), (3, 3))
    table = picture.tables[0]
    assert table.notes == ("summarised: 227 x 227 pixels; 12 x 60 are drawn",)
    visited = {int(c.text): c for c in cells(picture) if c.text != "."}
    assert {0, 127} <= set(visited)
    assert "TMA (0,103,53,0) -> " in visited[0].title
    assert "TMA (0,6,54,0) -> " in visited[127].title
    names = [int(label) for label in table.column_labels if label != "…"]
    assert (names[0], names[-1], names == sorted(set(names))) == (-3, 223, True)


@pytest.mark.parametrize(("mode", "count"), [(0, 64 + 2), (1, 4 * (32 + 2))])
def test_a_wide_load_goes_along_w_with_its_halo(mode: int, count: int) -> None:
    wide = TensorMapIm2colWide(6, 4096, (16, 40, 12, 5), (32, 1280, 15360), -1, -1, 16, 64, swizzle=1, mode=mode)
    picture = draw_im2col(wide, (0, -1, 3, 1), (2, 1))
    assert f": {count} pixels of 16 channels" in picture.title
    visited = {int(c.text): c for c in cells(picture) if c.text != "."}
    assert all("TMA (0," in c.title and ",3,1) -> " in c.title for c in visited.values())
    assert "TMA (0,0,3,1) -> " in visited[0].title
    assert "base pixels run along W from -1 to 38; the offset is added, halo pixels follow" in picture.notes


def test_an_im2col_atom_starts_at_its_first_base_pixel() -> None:
    assert cells(draw_im2col(IMAGE))[0].text == "0"


@pytest.mark.parametrize(("coords", "offsets"), [((0, 0, 0), ()), ((0, 0, 0, 0), (1,)), ((0,) * 5, (0, 0))])
def test_im2col_wants_the_right_number_of_coordinates(coords: tuple[int, ...], offsets: tuple[int, ...]) -> None:
    with pytest.raises(InvalidValueError, match="the map needs 4 and 2"):
        draw_im2col(IMAGE, coords, offsets)


def test_a_tiled_map_has_no_window() -> None:
    with pytest.raises(InvalidTypeError, match="draw_im2col takes an im2col atom or request, got TensorMapTiled"):
        draw_im2col(TensorMapTiled(6, 4096, (64,), (), (8,)))


def ring(depth: int, iterations: int = 6, store: bool = False, **options: Any) -> Timeline:
    memory = GlobalMemory()
    memory.add("A", np.arange(4096, dtype=np.uint32).view(np.uint8), 4096)
    tile = TensorMapTiled(2, 4096, (4096,), (), (16,))
    coords = [(16 * i,) for i in range(iterations)]
    stored = RingStore(tile, coords) if store else None
    smem = SharedMemory(1 << 16)
    return Ring(Emulator(), memory, smem, [RingLoad(tile, coords)], depth=depth, store=stored, **options).simulate()


@pytest.mark.parametrize("store", [False, True])
def test_every_tick_of_every_stage_is_a_cell(store: bool) -> None:
    timeline = ring(3, store=store)
    picture = draw(timeline)
    drawn = cells(picture)
    assert "".join(c.text[0] for c in drawn) == "".join(timeline.states)
    busy = {c.text for c in drawn if c.text != "."}
    assert {text.split("\n")[1] for text in busy} == {str(i) for i in range(6)}
    for i, cell in enumerate(drawn):
        stage, tick = divmod(i, timeline.ticks)
        assert cell.title.startswith(f"tick {tick}, stage {stage}")
        if "\n" in cell.text:
            iteration = int(cell.text.split("\n")[1])
            assert iteration % 3 == stage
            parity = iteration // 3 & 1
            wanted = {
                "L": f"empty[{stage}] with parity {1 - parity}",
                "F": f"full[{stage}] has completed phase {iteration // 3}",
                "C": f"full[{stage}] with parity {parity}",
                "S": f"arrives at empty[{stage}]",
            }
            assert wanted[cell.text[0]] in cell.title
    letters = ". empty, L loading, F full, waits for the consumer, C consumed" + ", S stored" * store
    assert f"{letters}; the number is the iteration" in picture.text


def test_a_ring_that_hangs_says_why() -> None:
    picture = draw_pipeline(ring(2, expect_bytes=1000))
    assert "would hang: full[0] never completes phase 0" in picture.title
    assert any("1000 bytes" in note for note in picture.notes)


def test_a_long_run_is_summarised() -> None:
    picture = draw_pipeline(ring(2, iterations=120))
    assert picture.count == 2 * 255
    assert "summarised: 2 stages over" in picture.text
    assert len(picture.tables) == 6
    assert [label for table in picture.tables for label in table.column_labels][:4] == ["0", "1", "2", "3"]


def test_a_long_run_is_broken_into_parts_that_fit() -> None:
    timeline = ring(24, iterations=48)
    picture = draw(timeline)
    assert len(cells(picture)) == 24 * timeline.ticks
    assert [len(table.column_labels) for table in picture.tables] == [34, 34, 33]
    assert max(len(line) for line in picture.text.splitlines()) <= 118
    by_tick = [c.title.split(",")[0] for table in picture.tables for c in table.rows[0] if c is not None]
    assert by_tick == [f"tick {tick}" for tick in range(timeline.ticks)]


def test_only_timelines_are_drawn_over_time() -> None:
    with pytest.raises(InvalidTypeError, match=r"timeline must be a Timeline, got str"):
        draw_pipeline("LLCC")


def test_tensor_memory_shows_the_shared_bytes_of_each_lane() -> None:
    for thing in (demonstration_copy(), demonstrate()):
        picture = draw(thing)
        table = picture.tables[0]
        by_place = {
            (lane, column): cell
            for lane, row in zip(table.row_labels, table.rows, strict=True)
            for column, cell in zip(table.column_labels, row, strict=True)
            if cell is not None
        }
        assert by_place["1", "2"].text == by_place["33", "2"].text == by_place["97", "2"].text == "24-27"
        assert by_place["31", "3"].title == (
            "shared bytes 508-511 (bank 31 of a buffer that is aligned to 128 bytes) -> warp 0, lane 31, column 3"
        )
        assert [b.text for b in table.row_brackets[0].brackets] == ["0", "1", "2", "3"]
        assert len(cells(picture)) == picture.count == 4 * 8 * 4
        assert "32-127 | as lanes 0-31" in picture.text


def test_many_columns_are_cut_and_the_text_has_the_same_ones() -> None:
    sources = np.arange(128 * 512 * 4).reshape(128, 512, 4)
    picture = draw_tmem(sources)
    labels = [label for label in picture.tables[0].column_labels if label != "…"]
    assert labels == [*map(str, range(12)), "509", "510", "511"]
    heads = [line.split("|")[1].split() for line in picture.text.splitlines() if line.strip().startswith("lane |")]
    assert [column for head in heads for column in head] == labels
    assert "summarised: 512 columns; 15 are drawn" in picture.text
    assert max(map(len, picture.text.splitlines())) <= 118
    assert cells(picture)[0].title.endswith("-> warp 0, lane 0, column 0")


def test_empty_tensor_memory_and_what_is_none() -> None:
    assert {c.text for c in cells(draw_tmem(np.full((128, 512, 4), -1)))} == {"."}
    with pytest.raises(InvalidTypeError, match="draw_tmem takes a copy, a demonstration or sources, got int"):
        draw_tmem(3)


def test_draw_gives_a_picture_back() -> None:
    picture = draw(cute.Layout(4))
    assert draw(picture) is picture
    assert isinstance(draw([cute.Layout(4), cute.Layout(8)]), Picture)
    assert len(draw((cute.Layout(4), cute.Layout(8))).tables) == 2
    assert draw(cute.Layout((4, 4)), color="thread").count == 16


@pytest.mark.parametrize("thing", [None, 3, "x", [], [1], {}, 1.5, object()])
def test_there_is_no_picture_of_other_things(thing: Any) -> None:
    with pytest.raises(InvalidTypeError, match=f"there is no picture of {type(thing).__name__}"):
        draw(thing)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(InvalidTypeError, match="unexpected keyword argument 'colour'"):
        draw(cute.Layout(4), colour="bank")
