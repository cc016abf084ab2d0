"""The table of bits: no two fields share one, and each argument moves its own field only."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import InvalidValueError
from cute_py.tma.descriptor import fields as f
from cute_py.tma.descriptor.data_types import CODE_TO_FORMAT, FORMATS, TensorMapDataType, format_row
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col
from tests.each import each_of
from tests.tma.descriptor.requests import IM2COL, TILED


def changed(a: TensorMap, b: TensorMap) -> set[str]:
    """Labels of the fields whose bits differ, 'none' for bits without one."""
    bits = int.from_bytes(encode(a), "little") ^ int.from_bytes(encode(b), "little")
    found = {row.label for row in f.live_fields(a.KIND != "tiled", a.rank) if row.mask & bits}
    rest = bits & ~f.field_mask(a.KIND != "tiled", a.rank)
    return found | ({"none"} if rest else set())


@each_of("im2col", [False, True])
@each_of("rank", [1, 2, 3, 4, 5])
def test_no_two_fields_share_a_bit(im2col: bool, rank: int) -> None:
    union = 0
    for row in f.live_fields(im2col, rank):
        assert not row.mask & union, row.label
        assert row.position % 64 + row.width <= 64, "a field stays within its word"
        union |= row.mask
    assert union & f.field_mask(im2col, rank) == f.field_mask(im2col, rank)
    assert f.RESERVED[im2col][rank] & f.field_mask(im2col, rank) == 0


@each_of(
    ("change", "labels"),
    [
        ({"global_address": 0x2000}, {"global_address"}),
        ({"global_dim": (511, 1024)}, {"global_dim[0]"}),
        ({"global_dim": (512, 1 << 32)}, {"global_dim[1]"}),
        ({"global_strides": (2048,)}, {"global_stride_low[1]"}),
        ({"global_strides": (1024 + (1 << 36),)}, {"global_stride_high[1]"}),
        ({"box_dim": (32, 128)}, {"box_dim[0]", "note_box_bytes"}),
        ({"box_dim": (64, 127)}, {"box_dim[1]", "note_box_bytes"}),
        ({"element_strides": (1, 2)}, {"element_strides[1]", "note_box_bytes"}),
        ({"data_type": 9}, {"format"}),
        ({"oob_fill": 1}, {"oob_fill"}),
        ({"swizzle": 0}, {"swizzle", "note_smem_alignment"}),
        ({"l2_promotion": 3}, {"l2_promotion"}),
    ],
)
def test_an_argument_moves_its_own_field(change: dict[str, object], labels: set[str]) -> None:
    assert changed(TILED, replace(TILED, **change)) == labels  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "labels"),
    [
        ({"pixel_box_lower_corner": (-2, -1)}, {"pixel_box_lower_corner"}),
        ({"pixel_box_upper_corner": (-1, 3)}, {"pixel_box_upper_corner"}),
        ({"channels_per_pixel": 32}, {"channels_per_pixel", "note_box_bytes"}),
        ({"pixels_per_column": 127}, {"pixels_per_column", "note_box_bytes"}),
    ],
)
def test_an_im2col_argument_moves_its_own_field(change: dict[str, object], labels: set[str]) -> None:
    assert changed(IM2COL, replace(IM2COL, **change)) == labels  # type: ignore[arg-type]


def test_tf32_is_float32_with_one_more_bit() -> None:
    box = replace(TILED, data_type=7, box_dim=(32, 128))
    assert changed(box, replace(box, data_type=11)) == {"tf32_round"}
    assert changed(box, replace(box, data_type=10)) == {"format"}


def test_codes_are_not_the_drivers_numbers() -> None:
    codes = {row.data_type.name: row.code for row in FORMATS}
    assert [codes[name] for name in ("FLOAT64", "BFLOAT16", "FLOAT32_FTZ", "TFLOAT32", "TFLOAT32_FTZ")] == [
        9,
        10,
        8,
        7,
        8,
    ]
    assert [row.data_type for row in FORMATS] == list(TensorMapDataType)
    assert len(CODE_TO_FORMAT) == 13
    with pytest.raises(InvalidValueError, match="data_type = 16; must be 0 to 15"):
        format_row(16)


def test_a_field_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="no field 'rank' for mode 1"):
        f.field("rank", 1)


@given(st.binary(min_size=128, max_size=128))
def test_decode_reads_what_the_table_says(raw: bytes) -> None:
    bits = int.from_bytes(raw, "little")
    request = decode(raw)
    im2col = isinstance(request, TensorMapIm2col)

    def read(name: str, first: int = 0, count: int = request.rank) -> tuple[int, ...]:
        return tuple(f.field(name, mode).read(bits) for mode in range(first, count))

    assert f.field("load_mode").read(bits) == im2col
    assert request.rank == min(f.field("rank").read(bits) + 1, 5)
    assert request.global_address == f.field("global_address").read(bits)
    assert request.global_dim == tuple(raw + 1 for raw in read("global_dim"))
    assert request.element_strides == tuple(raw + 1 for raw in read("element_strides"))
    low, high = read("global_stride_low", 1), read("global_stride_high", 1)
    assert request.global_strides == tuple((a | b << 32) << 4 for a, b in zip(low, high, strict=True))
    for name in ("interleave", "swizzle", "oob_fill", "l2_promotion"):
        assert getattr(request, name) == f.field(name).read(bits)
    if isinstance(request, TensorMapIm2col):
        assert request.channels_per_pixel == f.field("channels_per_pixel").read(bits) + 1
        assert request.pixels_per_column == f.field("pixels_per_column").read(bits) + 1
        width = f.CORNER_WIDTH.get(request.rank, 0)
        for name in ("pixel_box_lower_corner", "pixel_box_upper_corner"):
            corners = getattr(request, name)
            packed = sum((corner & ((1 << width) - 1)) << (width * i) for i, corner in enumerate(corners))
            assert packed == f.field(name).read(bits) & ((1 << width * len(corners)) - 1)
    else:
        assert request.box_dim == tuple(raw + 1 for raw in read("box_dim"))


def test_every_field_says_what_it_holds() -> None:
    assert [row.label for row in f.FIELDS if not row.value] == []


def test_a_field_is_packed_where_the_table_has_it() -> None:
    """One map and many are packed by the rows of FIELDS: moved in the table, a field moves in both."""
    from cute_py.tma.descriptor.encode import packer
    from cute_py.tma.descriptor.expressions import RequestForm

    moved = tuple([replace(row, position=row.position + 1) if row.label == "rank" else row for row in f.FIELDS])
    kept, form = f.FIELDS, RequestForm.of(TILED)
    packed = packer.__wrapped__
    try:
        f.FIELDS = moved  # type: ignore[misc]
        for strict in (True, False):
            numbers, positions, _widths = packed(form, strict=strict)
            assert numbers(TILED, 6)[positions.index(64)] & 0x70 == (TILED.rank - 1) << 5
    finally:
        f.FIELDS = kept  # type: ignore[misc]
