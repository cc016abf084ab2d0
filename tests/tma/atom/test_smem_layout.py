"""Canonical shared layouts: CUTLASS' atoms, the boxes that they promise, and bank conflicts counted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py.dtypes import as_dtype
from cute_py.errors import CuteError, InvalidValueError, StaticAssertError
from cute_py.tma.atom.smem_layout import SPANS, bank_conflict_passes, smem_atom, smem_choices, span_row
from tests.each import each_of
from tests.shares import one_in


@pytest.mark.parametrize(
    ("major", "swizzle", "dtype", "text"),
    [
        ("K", "128B", "float16", "Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)"),
        ("K", "64B", "float16", "Sw<2,4,3> o smem_ptr[16b](unset) o (_8,_32):(_32,_1)"),
        ("K", "32B", "float16", "Sw<1,4,3> o smem_ptr[16b](unset) o (_8,_16):(_16,_1)"),
        ("K", "none", "float16", "Sw<0,4,3> o smem_ptr[16b](unset) o (_8,_8):(_8,_1)"),
        ("MN", "128B", "float16", "Sw<3,4,3> o smem_ptr[16b](unset) o (_64,_8):(_1,_64)"),
        ("K", "128B", "float8_e4m3fn", "Sw<3,4,3> o smem_ptr[8b](unset) o (_8,_128):(_128,_1)"),
        ("K", "128B", "float32", "Sw<3,4,3> o smem_ptr[32b](unset) o (_8,_32):(_32,_1)"),
        ("K", "128B", "float4_e2m1fn", "Sw<3,4,3> o smem_ptr[4b](unset) o (_8,_256):(_256,_1)"),
    ],
)
def test_atoms_are_cutlass_atoms(major: str, swizzle: str, dtype: str, text: str) -> None:
    assert str(smem_atom(major, swizzle, dtype)) == text


def test_spans_are_found_by_name_bits_and_swizzle() -> None:
    for row in SPANS:
        assert span_row(row.name) is span_row(row.bits) is span_row(cute.Swizzle(row.bits, 4, 3)) is row
    for wrong in ("256B", 4, cute.Swizzle(3, 3, 3), None):
        with pytest.raises(InvalidValueError, match="must be one of 128B, 64B, 32B, none"):
            span_row(wrong)


@given(
    major=st.sampled_from(["K", "MN"]),
    dtype=st.sampled_from(["int8", "float16", "float32", "float64"]),
    rows=st.sampled_from([8, 16, 64, 128]),
    columns=st.sampled_from([8, 16, 64, 96, 128]),
)
def test_a_choice_has_the_box_that_it_promises(major: str, dtype: str, rows: int, columns: int) -> None:
    tile = (rows, columns)
    try:
        choices = smem_choices(major, dtype, tile)
    except InvalidValueError:
        return
    bits = as_dtype(dtype).bits
    layout = Layout((1024, 1024), (1024, Int(1)) if major == "K" else (Int(1), 1024))
    x = cute.make_tensor(cute.make_gmem_ptr(0x7F0000000000, dtype), layout)
    for choice in choices:
        atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, choice.layout)
        assert atom.plan.box[0] * bits // 8 == choice.box_bytes
        assert atom.plan.box[1] == choice.box_rows
        assert atom.swizzle_row.bits == {"none": 0, "32B": 1, "64B": 2, "128B": 3}[choice.swizzle]
        assert atom.transaction_bytes == rows * columns * bits // 8
        assert choice.alignment % 128 == 0
        assert choice.passes == 1


def test_choices_are_best_first_and_say_why_there_is_none() -> None:
    assert [c.swizzle for c in smem_choices("K", "float16", (128, 64))] == ["128B", "64B", "32B", "none"]
    assert [c.swizzle for c in smem_choices("MN", "float16", (32, 64))] == ["64B", "32B", "none"]
    with pytest.raises(InvalidValueError, match="no canonical K-major layout divides a tile"):
        smem_choices("K", "float16", (12, 64))


def test_rows_of_128_bytes_without_a_swizzle_take_eight_passes() -> None:
    plain = Layout((Int(64), Int(64)), LayoutRight)
    assert bank_conflict_passes(plain, 16, "K") == 8
    padded = Layout((Int(64), Int(64)), (Int(72), Int(1)))
    assert bank_conflict_passes(padded, 16, "K") == 1
    swizzled = cute.ComposedLayout(cute.Swizzle(2, 4, 3), cute.smem_ptr_flag(16), plain)
    assert bank_conflict_passes(swizzled, 16, "K") == 2


@pytest.mark.parametrize("major", ["K", "MN"])
@pytest.mark.parametrize("swizzle", ["none", "32B", "64B", "128B"])
def test_what_the_engine_writes_is_what_the_layout_reads(major: str, swizzle: str) -> None:
    """Through the emulator: element (i, j) of a tile lies at the canonical layout's byte."""
    array: Any = np.arange(128 * 128, dtype=np.uint16).reshape(128, 128)
    array = array if major == "K" else np.asfortranarray(array)
    smem = cute.tma.make_smem_layout(major, swizzle, "uint16", (64, 64))
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", array, smem)
    there = cute.tma.execute(atom, array, (1, 1), poison=0xCD).smem.view(np.uint16)
    plain = cute.offsets(atom.tile).reshape(64, 64) * 2
    bits = span_row(swizzle).bits
    address = plain ^ ((plain >> 3) & (((1 << bits) - 1) << 4))
    assert np.array_equal(there[address // 2], array[64:, 64:])


def test_bad_arguments_are_typed_errors() -> None:
    for arguments in (("X", "128B", "float16"), ("K", "7B", "float16"), ("K", "128B", "float17")):
        with pytest.raises(CuteError):
            smem_atom(*arguments)
    with pytest.raises(CuteError):
        cute.tma.make_smem_layout("K", "128B", "float16", (128, 60))


@each_of(
    ("major", "swizzle", "tile", "larger"),
    [
        ("K", "128B", (100, 64), (104, 64)),
        ("K", "64B", "100x64", (104, 64)),
        ("MN", "128B", (100, 60), (128, 64)),
        ("K", "128B", ((10, 10), 64, 3), (104, 64, 3)),
    ],
)
def test_the_hint_has_the_next_larger_tile_if_no_swizzle_fits(
    major: str, swizzle: str, tile: Any, larger: tuple[int, ...]
) -> None:
    with pytest.raises(StaticAssertError, match="block shape does not divide the target shape") as caught:
        cute.tma.make_smem_layout(major, swizzle, "float16", tile)
    call = f"make_smem_layout({major!r}, {swizzle!r}, 'float16', {larger})"
    assert caught.value.hint == f"{call} has the next larger tile that the atom divides"
    assert cute.size(cute.tma.make_smem_layout(major, swizzle, "float16", larger)) == math.prod(larger)


def test_a_tile_of_fewer_modes_than_the_atom_has_no_larger_tile() -> None:
    with pytest.raises(StaticAssertError) as caught:
        cute.tma.make_smem_layout("K", "128B", "float16", (100,))
    assert caught.value.hint is None


@pytest.mark.parametrize("tile", [(0, 64), (64, 0), (-8, 64), "0x64", ((8, 0), 64)])
def test_a_layout_of_an_empty_tile_is_refused(tile: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"a size of the tile is .* elements; must be at least 1"):
        cute.tma.make_smem_layout("K", "128B", "float16", tile)


def passes(layout: Any, bits: int, major: str) -> int:
    """The most 16-byte units that 8 rows at one column have in one group of 4 banks, over all rows and columns."""
    rows, columns = [int(cute.size(layout, i)) for i in range(2)]
    if major == "MN":
        rows, columns = columns, rows
    plain = layout.inner if isinstance(layout, cute.ComposedLayout) else layout
    swizzle = layout.outer if isinstance(layout, cute.ComposedLayout) else cute.Swizzle(0, 4, 3)
    worst = 1
    for column in range(0, columns, max(1, 128 // bits)):
        for first in range(0, rows, 8):
            group = []
            for row in range(first, min(first + 8, rows)):
                offset = int(plain(row, column) if major == "K" else plain(column, row))
                group.append(int(swizzle(offset * bits // 8)) // 16 % 8)
            worst = max(worst, *(group.count(unit) for unit in group))
    return worst


@pytest.mark.parametrize("major", ["K", "MN"])
@pytest.mark.parametrize("bits", one_in(4, [16, 8, 32, 64]))
@pytest.mark.parametrize("swizzle", [0, 1, 2, 3])
def test_passes_are_the_most_units_of_one_bank_group(major: str, bits: int, swizzle: int) -> None:
    """Eight columns of 16 bytes and 32 rows show what all of a tile do."""
    for rows, columns in ((1, 64), (4, 128), (8, 64), (9, 512), (16, 32), (40, 16), (64, 256)):
        line = max(columns, 8 * 128 // bits)  # swizzles are of lines of 128 bytes
        for pitch in (line, 2 * line) if swizzle else (columns, columns + 128 // bits, 2 * columns):
            tile, strides = ((rows, columns), (pitch, 1)) if major == "K" else ((columns, rows), (1, pitch))
            plain = Layout(tile, strides)
            layout = (
                cute.ComposedLayout(cute.Swizzle(swizzle, 4, 3), cute.smem_ptr_flag(bits), plain) if swizzle else plain
            )
            assert bank_conflict_passes(layout, bits, major) == passes(layout, bits, major), (layout, bits)


@pytest.mark.parametrize("tile", ((0, 64), (64, 0)))
def test_an_empty_tile_has_no_choices(tile: tuple[int, int]) -> None:
    with pytest.raises(InvalidValueError, match="a size of the tile is 0 elements; must be at least 1"):
        smem_choices("K", "float16", tile)
