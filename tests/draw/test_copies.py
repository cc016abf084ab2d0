"""Pictures of TMA copies: boxes, the tile in shared memory against the emulator's bytes, slices, descriptors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py.draw import draw, draw_boxes, draw_descriptor, draw_multicast, draw_smem
from cute_py.errors import InvalidTypeError, InvalidValueError, TmaLimitError
from cute_py.tma.atom.make import make_tma_copy
from cute_py.tma.atom.tiles import instructions
from cute_py.tma.descriptor.fields import field, live_fields
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapTiled
from cute_py.tma.emulator.emulator import Emulator
from tests.draw.structure import cells, words

SWIZZLED = "Sw<3,4,3> o smem_ptr[16b](unset) o (_32,_64):(_64,_1)"


def atom(gmem: str, smem: str, tile: str | None = None, count: int = 1, dtype: str = "float16", **options: Any) -> Any:
    op = options.pop("op", "SM90_TMA_LOAD_MULTICAST" if count > 1 else "SM90_TMA_LOAD")
    tensor = cute.make_tensor(cute.make_gmem_ptr(4096, dtype), cute.parse(gmem))
    return make_tma_copy(op, tensor, cute.parse(smem), cute.parse(tile) if tile else None, count, **options)


def test_every_box_has_its_coordinate_and_what_is_outside_is_hatched() -> None:
    made = atom("(100,200):(200,_1)", SWIZZLED)
    picture = draw(made)
    drawn = cells(picture)
    assert len(drawn) == instructions(made).tiles == 16
    assert sorted(c.text for c in drawn) == sorted(f"({x},{y})" for x in (0, 64, 128, 192) for y in (0, 32, 64, 96))
    assert {c.text: c.hatches for c in drawn} == {
        f"({x},{y})": (x == 192) + (y == 96) for x in (0, 64, 128, 192) for y in (0, 32, 64, 96)
    }
    corner = next(c for c in picture.tables[0].cells if c.text == "(192,96)")
    assert corner.inside == (8 / 64, 4 / 32)
    assert corner.title == (
        "tile (3,3), instruction 0 -> tensor (96,192) -> "
        "box at TMA (192,96), 64 x 32 elements, 98% of it outside the tensor: filled, not read -> "
        f"global byte 0x{4096 + 2 * (96 * 200 + 192):x} -> shared byte 0 of the tile"
    )
    assert "(192,96)/" in picture.text
    assert "mode 0: 200 = 3 x 64 + 8; mode 1: 100 = 3 x 32 + 4" in picture.notes[-1]


def test_boxes_of_a_huge_tensor_keep_the_last_ones() -> None:
    picture = draw_boxes(atom("(1000000,4096):(4096,_1)", "(_128,_64):(_64,_1)"))
    table = picture.tables[0]
    assert table.notes == ("summarised: 7813 x 64 boxes; 15 x 15 are drawn",)
    assert (table.row_labels[0], table.row_labels[-1], table.column_labels[-1]) == ("0", "999936", "4032")
    assert picture.count == 15 * 15
    assert table.rows[-1][-1] is not None
    assert table.rows[-1][-1].inside == (1.0, 0.5)
    assert len(picture.svg) < 300_000


def test_boxes_of_other_ranks() -> None:
    one = draw_boxes(atom("(1000):(_1)", "(_128):(_1)"))
    assert [c.text for c in cells(one)] == [f"({n})" for n in range(0, 1000, 128)]
    three = draw_boxes(atom("(100,200,7):(200,_1,20000)", "(_32,_64,_2):(_64,_1,_2048)"))
    assert "one box is drawn along each other TMA mode: mode 2 at 0" in three.notes
    assert cells(three)[0].text == "(0,0,0)"


def test_several_instructions_a_tile_are_several_boxes() -> None:
    smem = "Sw<3,4,3> o smem_ptr[16b](unset) o ((_8,_16),(_64,_2)):((_64,_512),(_1,_8192))"
    made = atom("(256,256):(256,_1)", smem, "(_128,_128)")
    drawn = cells(draw_boxes(made))
    assert [c.tone for c in drawn] == ["tone0", "tone0", "tone7", "tone7", "tone7", "tone7", "tone0", "tone0"]
    assert drawn[5].title == (
        "tile (1,0), instruction 1 -> tensor (128,64) -> box at TMA (64,128), 64 x 128 elements -> "
        f"global byte 0x{4096 + 2 * (128 * 256 + 64):x} -> shared byte 16384 of the tile"
    )
    assert "a tile is 2 boxes, one instruction each" in draw_boxes(made).notes
    brackets = draw_smem(made).tables[0].row_brackets
    assert [(b.name, [(c.start, c.text) for c in b.brackets]) for b in brackets] == [("instr", [(0, "0"), (61, "1")])]
    assert [c.text for c in drawn] == [f"({x},{y})" for y in (0, 128) for x in (0, 64, 128, 192)]


LAYOUTS = [
    ("(100,200):(200,_1)", SWIZZLED, "float16"),
    ("(100,200):(200,_1)", "Sw<2,4,3> o smem_ptr[16b](unset) o (_32,_32):(_32,_1)", "float16"),
    ("(100,200):(200,_1)", "Sw<1,4,3> o smem_ptr[16b](unset) o (_32,_16):(_16,_1)", "float16"),
    ("(100,200):(200,_1)", "(_32,_64):(_64,_1)", "float16"),
    ("(256,100):(_1,256)", "Sw<3,4,3> o smem_ptr[16b](unset) o (_64,_32):(_1,_64)", "float16"),
    ("(100,200):(200,_1)", "Sw<3,4,3> o smem_ptr[32b](unset) o (_16,_32):(_32,_1)", "float32"),
    ("(100,256):(256,_1)", "(_32,_16):(_16,_1)", "uint8"),
    ("(64,128):(128,_1)", "Sw<3,4,3> o smem_ptr[16b](unset) o ((_8,_4),(_64,_2)):((_64,_512),(_1,_2048))", "float16"),
]


@pytest.mark.parametrize(("gmem", "smem", "dtype"), LAYOUTS)
@pytest.mark.parametrize("last", [False, True])
def test_every_unit_holds_what_the_emulator_puts_there(gmem: str, smem: str, dtype: str, last: bool) -> None:
    made = atom(gmem, smem, dtype=dtype)
    work, size = instructions(made), made.dtype.bits // 8
    tile = work.tiles - 1 if last else 0
    memory = np.zeros(made.plan.dims[0] * made.plan.dims[1] * size, np.uint8)
    numbers = memory.view(f"u{size}")
    numbers[:] = 1 + np.arange(len(numbers)) % 250
    shared = np.zeros(work.smem_bytes, np.uint8)
    for i in range(work.per_tile):
        coords = work.coords[tile * work.per_tile + i]
        offset = int(work.smem_offsets[i])
        Emulator().load(made.descriptor, memory, coords, shared, smem_offset=offset, gmem_base=4096)
    drawn = cells(draw_smem(made, tile))
    assert len(drawn) == len(shared) // 16
    for place, cell in enumerate(drawn):
        held = int(shared[16 * place : 16 * place + size].view(f"u{size}")[0])
        x, y = (int(n) for n in re.findall(r"\d+", cell.text))
        inside = x < made.plan.dims[0] and y < made.plan.dims[1]
        assert held == (int(numbers[y * made.plan.dims[0] + x]) if inside else 0)
        assert cell.hatches == (not inside)


def test_a_unit_tells_the_whole_way() -> None:
    drawn = cells(draw_smem(atom("(100,200):(200,_1)", SWIZZLED), (3, 3)))
    assert drawn[9].title == (
        "tensor (97,192) -> TMA (192,97) -> global byte 0xa910 -> instruction 0 at (192,96) -> "
        "shared byte 144 -> bank 4"
    )
    assert drawn[8].title == (
        "tensor (97,200) -> TMA (200,97) -> outside the tensor: filled, not read -> instruction 0 at (192,96) -> "
        "shared byte 128 -> bank 0"
    )


def test_a_unit_that_hangs_over_the_end_is_hatched_in_part() -> None:
    picture = draw_smem(atom("(100,256):(_1,104)", "(_32,_8):(_1,_32)"), (3, 31))
    first = next(c for c in picture.tables[0].cells if c.text == "(96,248)")
    assert first.inside == (0.5, 1.0)
    assert first.title.endswith("4 of the unit's 8 elements are outside the tensor: filled, not read")
    assert {c.inside for c in picture.tables[0].cells} == {(0.5, 1.0), (0.0, 1.0)}


@pytest.mark.parametrize(
    ("op", "fate"),
    [
        ("SM90_TMA_LOAD", "outside the tensor: filled, not read"),
        ("SM90_TMA_STORE", "outside the tensor: not written"),
        ("SM90_TMA_REDUCE_ADD", "outside the tensor: not written"),
        ("SM90_TMA_PREFETCH", "outside the tensor: not fetched"),
    ],
)
def test_what_happens_outside_depends_on_the_operation(op: str, fate: str) -> None:
    made = atom("(20,72):(72,_1)", "(_8,_16):(_16,_1)", op=op)
    for picture in (draw_boxes(made), draw_smem(made, (2, 4))):
        assert fate in words(picture)
        assert f"/ {fate}" in picture.text
        assert ("filled" in picture.text) == ("filled" in fate)
        assert ("filled" in " ".join(c.title for c in cells(picture))) == ("filled" in fate)


def test_a_store_writes_the_rest_of_its_last_piece() -> None:
    """The row has 200 bytes, twelve pieces of 16 and a half: the emulator writes all of the thirteenth."""
    made = atom("(100,256):(_1,104)", "(_32,_8):(_1,_32)", op="SM90_TMA_STORE")
    unit = next(c for c in cells(draw_smem(made, (3, 31))) if "TMA (96,248)" in c.title)
    assert "4 of the unit's 8 elements are past the end of the row, but written" in unit.title
    assert (
        "rows of 200 bytes: a store writes up to the next multiple of 16 bytes, past the end" in draw_boxes(made).notes
    )
    memory = np.zeros(104 * 256 * 2, np.uint8)
    shared = np.full(8 * 32 * 2, 7, np.uint8)
    Emulator().store(made.descriptor, memory, (96, 248), shared, gmem_base=4096)
    start = 2 * 104 * 248
    assert memory[start + 192 : start + 208].tolist() == [7] * 16


def test_the_way_of_a_store_begins_at_the_bank() -> None:
    made = atom("(20,72):(72,_1)", "(_8,_16):(_16,_1)", op="SM90_TMA_STORE")
    assert cells(draw_smem(made, (1, 2)))[3].title == (
        f"bank 12 -> shared byte 48 -> instruction 0 at (32,8) -> tensor (9,40) -> TMA (40,9) -> "
        f"global byte 0x{4096 + 2 * (9 * 72 + 40):x}"
    )


def test_sixteen_issuers_share_eight_colours() -> None:
    picture = draw_multicast(atom("(256,256):(256,_1)", "(_128,_64):(_64,_1)", count=16))
    assert {"CTA 0, 8", "CTA 7, 15"} <= words(picture)
    assert len(cells(picture)) == 256


def test_tile_coordinates_and_indices_name_the_same_tile() -> None:
    made = atom("(100,200):(200,_1)", SWIZZLED)
    assert draw_smem(made, (1, 2)).tables == draw_smem(made, 9).tables
    for bad in (16, -1, (4, 0), (1, 2, 3), "x", True, None, 1.5):
        with pytest.raises(InvalidValueError, match="tile_coord = "):
            draw_smem(made, bad)


def test_tiles_along_one_mode_start_where_they_are() -> None:
    """The step from tile to tile is a single basis element there."""
    picture = draw_smem(atom("(_1000,_40):(_48,_1)", "(_8,_64):(_64,_1)", dtype="uint8"), 1)
    assert cells(picture)[0].text == "(0,8)"


def test_a_large_tile_is_summarised() -> None:
    smem = "Sw<3,4,3> o smem_ptr[16b](unset) o ((_8,_16),(_64,_2)):((_64,_512),(_1,_8192))"
    picture = draw_smem(atom("(256,256):(256,_1)", smem, "(_128,_128)"))
    assert "summarised: 256 x 8 cells; 63 x 8 are drawn" in picture.text
    assert picture.count == 63 * 8


def test_gather_is_drawn_with_four_rows() -> None:
    made = atom("(30,512):(512,_1)", "(_8,_64):(_64,_1)", op="SM100_TMA_LOAD_2D_GATHER4", arch="sm_100a")
    picture = draw_smem(made)
    assert [c.text for c in cells(picture)[::8]] == [f"(0,{n})" for n in range(8)]
    assert any("four rows at run time" in note for note in picture.notes)


@pytest.mark.parametrize(
    ("gmem", "smem"),
    [("(100,200,7):(200,_1,20000)", "(_32,_64,_2):(_64,_1,_2048)"), ("(128,96):(_1,128)", "(_64,_32):(_1,_64)")],
)
def test_a_box_names_its_tile_as_the_divided_tensor_does(gmem: str, smem: str) -> None:
    made = atom(gmem, smem)
    tiled = cute.zipped_divide(made.get_tma_tensor(), made.cta_tiler)
    for cell in cells(draw_boxes(made)):
        match = re.search(r"tile (\S+), instruction 0 -> .*box at TMA (\S+),", cell.title)
        assert match is not None
        assert str(tiled(0, cute.parse(match[1]))).replace("_", "") == match[2] == cell.text


def test_packed_types_are_drawn_from_the_request() -> None:
    made = atom("(64,128):(128,_1)", "(_8,_64):(_64,_1)", dtype="float4_e2m1fn", arch="sm_100a")
    picture = draw_smem(made)
    assert [c.text for c in cells(picture)][:4] == ["(0,0)", "(32,0)", "(0,1)", "(32,1)"]
    assert "packed or interleaved rows: a unit may hold less than 16 bytes of the tensor" in picture.notes


def test_slices_of_a_multicast() -> None:
    made = atom("(100,200):(200,_1)", "(_32,_64):(_64,_1)", count=4)
    picture = draw_multicast(made)
    drawn = cells(picture)
    assert len(drawn) == 16
    assert [c.text for c in drawn[::4]] == ["CTA 0\n(0,0)", "CTA 1\n(0,8)", "CTA 2\n(0,16)", "CTA 3\n(0,24)"]
    assert drawn[7].title == (
        "tensor (8,0) -> box at TMA (0,8) -> instruction 0 of CTA 1 -> "
        "bytes 1024 to 2047 of the tile in the shared memory of CTA 3"
    )
    assert "mask of each load where they are the CTAs 0 to 3 of the cluster: 0xf" in picture.notes
    assert {"CTA 0", "CTA 1", "CTA 2", "CTA 3"} <= words(picture)
    assert "every barrier expects 4096 bytes" in picture.notes


@pytest.mark.parametrize("drawing", [draw_boxes, draw_smem, draw_multicast])
def test_only_atoms_have_boxes(drawing: Any) -> None:
    with pytest.raises(InvalidTypeError, match="atom must be a TmaAtom, got Layout"):
        drawing(cute.Layout(4))


def test_an_atom_that_the_driver_refuses_has_boxes_and_no_bytes() -> None:
    made = atom("(128,250):(250,_1)", "(_32,_64):(_64,_1)", check=False)
    assert draw_boxes(made).count == 16
    with pytest.raises(TmaLimitError, match="must be a multiple of 16"):
        draw_smem(made)


REQUEST = TensorMapTiled(6, 4096, (512, 1024, 7), (1024, 1 << 21), (64, 128, 1), swizzle=3)


def test_the_bits_of_a_descriptor_are_its_bytes() -> None:
    raw = cute.tma.encode(REQUEST)
    bits = [c for c in cells(draw_descriptor(raw)) if c.title.startswith("word ")]
    assert len(bits) == 10 * 64
    for word in range(10):
        shown = "".join(c.text for c in bits[64 * word : 64 * word + 64])
        assert int(shown, 2) == int.from_bytes(raw[8 * word : 8 * word + 8], "little")
    assert draw_descriptor(raw).svg == draw_descriptor(REQUEST).svg == draw(REQUEST).svg == draw(raw).svg


def test_every_field_is_named_once_over_its_bits() -> None:
    picture = draw_descriptor(REQUEST)
    fields = live_fields(False, 3)
    names = [c for c in picture.tables[0].cells if " = " in c.title]
    ones = [c for c in picture.tables[0].cells if c.text == "1" and c.span == 1]
    assert all(c.tone is not None and not c.hatched for c in ones)
    assert {c.title.split(" = ")[0] for c in names} == {row.label for row in fields}
    assert len(names) == len(fields) == len(picture.tables[0].notes)
    assert [sum(c.span for c in row if c is not None) for row in picture.tables[0].rows] == [64] * 20
    by_name = {c.title.split(" = ")[0]: c for c in names}
    assert by_name["box_dim[1]"].span == field("box_dim", 1).width
    for meaning in (
        "global_dim[0] = 511  size - 1, elements, so 512",
        "rank = 2  rank - 1, so 3",
        "format = 6  code of the element format (not the driver's number): FLOAT16",
        "global_stride_low[2] = 131072  bits 0-31 of (bytes >> 4), x 16 bytes, so 2097152 bytes",
        "word 6 = 0x3f00000000000000",
    ):
        assert meaning in picture.text
    assert "n: global_dim[0] = 511" in words(picture)


def test_bits_without_a_field_are_told() -> None:
    picture = draw_descriptor(b"\xff" * 64)
    assert picture.title == "tensor map, im2col, rank 8, 64 bytes"
    assert any(note.startswith("word 1: 0x") for note in picture.notes)
    assert not any("words 8 and 9" in note for note in picture.notes)
    known = sum(row.width for row in live_fields(True, 5) if row.word < 8)
    assert sum(1 for c in cells(picture) if c.hatches) == 64 * 8 - known
    assert "a 1 outside the known fields" in words(picture)
    assert "word 7 = 0xffffffffffffffff" in picture.text


def test_the_corners_of_an_im2col_map_are_signed() -> None:
    request = TensorMapIm2col(0, 4096, (16, 14, 12, 2), (16, 224, 2688), (-1, -2), (3, -1), 16, 64)
    text = draw_descriptor(request).text
    assert "elements: (-1, -2), W first" in text
    assert "elements: (3, -1), W first" in text


def test_a_descriptor_of_the_wrong_length() -> None:
    with pytest.raises(InvalidValueError, match="the tensor map has 3 bytes; must have 64 or 128"):
        draw(b"123")
