"""Swizzles on bytes: their two functions, tiles that keep the flag, and the bytes that the emulated engine leaves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import ComposedLayout, Int, Layout, Swizzle, smem_ptr_flag
from cute_py.dtypes import as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, LayoutError, StaticAssertError
from cute_py.machine.tensor_memory.memory import decompress
from tests.refusals import Refusal, assert_refused, refusals

ROWS = cute.static(Layout((8, 64), (64, 1)))
FLAGGED = ComposedLayout(Swizzle(3, 4, 3), smem_ptr_flag(16), ROWS)
ELEMENTS = ComposedLayout(Swizzle(3, 3, 3), Int(0), ROWS)
SPANS = st.sampled_from(("none", "32B", "64B", "128B"))
MAJORS = st.sampled_from(("K", "MN"))
TYPES = ("uint8", "float8_e4m3fn", "float16", "bfloat16", "uint16", "float32", "int64", "float64")


def test_a_call_is_that_of_cpp_and_an_access_that_of_memory() -> None:
    assert FLAGGED(1, 0) == 64
    assert cute.offsets(FLAGGED, of="call")[1, 0] == 64
    assert cute.offsets(FLAGGED)[1, 0] == 72
    assert np.array_equal(cute.offsets(FLAGGED), cute.offsets(ELEMENTS))
    assert np.array_equal(cute.offsets(FLAGGED, (np.arange(8), 3)), cute.offsets(ELEMENTS, (np.arange(8), 3)))
    assert "| 72 |" in cute.format_layout(FLAGGED).replace("  ", " ")
    assert "72" in cute.draw.draw(FLAGGED).text
    assert "Sw<3,3,3> o _0 o" in cute.explain(FLAGGED)


def test_layouts_without_a_flag_have_one_function() -> None:
    for layout in (ROWS, ELEMENTS, ComposedLayout(Swizzle(3, 4, 3), Int(0), ROWS)):
        assert np.array_equal(cute.offsets(layout), cute.offsets(layout, of="call"))
        assert cute.as_position_independent_swizzle_layout(layout) is layout
    assert (
        cute.as_position_independent_swizzle_layout(ComposedLayout(Swizzle(0, 4, 3), smem_ptr_flag(16), ROWS)) == ROWS
    )


def test_coordinates_undo_either_function() -> None:
    for of in ("memory", "call"):
        table = cute.offsets(FLAGGED, of=of)
        rows, columns = np.moveaxis(cute.coordinates(FLAGGED, table, of=of), -1, 0)
        assert np.array_equal(rows, np.arange(8)[:, None] + 0 * columns)
        assert np.array_equal(columns, np.arange(64) + 0 * rows)


def test_bank_conflicts_and_the_picture_agree() -> None:
    core = cute.parse("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_8):(_64,_1)")
    assert cute.bank_conflicts(core, "float16").wavefronts == (1,)
    assert cute.bank_conflicts(cute.local_tile(core, (Int(8), Int(8)), (0, 0)), "float16").wavefronts == (1,)
    assert cute.footprint(FLAGGED) == cute.footprint(ELEMENTS)
    assert cute.coalescing(core, "float16") == cute.coalescing(
        cute.as_position_independent_swizzle_layout(core), "float16"
    )


def test_a_tensor_over_an_array_reads_the_elements_of_memory() -> None:
    memory = np.arange(512, dtype=np.float16)
    tensor = cute.make_tensor(memory, FLAGGED)
    assert str(tensor.layout) == "Sw<3,3,3> o _0 o (_8,_64):(_64,_1)"
    assert all(tensor[i, j] == memory[cute.offsets(FLAGGED)[i, j]] for i in range(8) for j in range(64))
    with pytest.raises(InvalidValueError, match="Expected a 16-bit pointer type"):
        cute.make_tensor(np.arange(512, dtype=np.float32), FLAGGED)


def test_a_swizzled_pointer_has_the_same_elements() -> None:
    tensor = cute.make_tensor(cute.make_smem_ptr(2048, "float16"), FLAGGED)
    assert np.array_equal(cute.offsets(tensor), cute.offsets(ELEMENTS))
    assert np.array_equal(cute.offsets(tensor, of="call"), cute.offsets(ROWS))
    with pytest.raises(LayoutError, match="must be a multiple of 1024 bytes"):
        cute.offsets(cute.make_tensor(cute.make_smem_ptr(2048 + 128, "float16"), FLAGGED))


@given(st.sampled_from(TYPES), SPANS, st.data())
def test_tiles_keep_the_flag_and_their_place_in_the_pattern(dtype: str, span: str, data: st.DataObject) -> None:
    smem = cute.tma.make_smem_layout("K", span, dtype, (32, 128))
    tile = (data.draw(st.sampled_from((4, 8, 16))), data.draw(st.sampled_from((16, 32, 64))))
    at = (data.draw(st.integers(0, 32 // tile[0] - 1)), data.draw(st.integers(0, 128 // tile[1] - 1)))
    part = cute.local_tile(smem, cute.static(tile), at)
    assert isinstance(part.offset, cute.SmemPtrFlag)
    assert part.offset.bits == smem.offset.bits
    begin = (at[0] * tile[0], at[1] * tile[1])
    whole = cute.offsets(smem)[begin[0] : begin[0] + tile[0], begin[1] : begin[1] + tile[1]]
    moved = (whole - cute.offsets(part).reshape(tile)).ravel()
    assert (moved == moved[0]).all()  # whole patterns are dropped, as slicing drops an offset
    assert cute.parse(str(part)) == part
    assert eval(repr(part), dict(vars(cute))) == part


def test_slices_keep_the_swizzle_as_in_cpp() -> None:
    assert str(FLAGGED(None, Int(0))) == "Sw<3,4,3> o smem_ptr[16b](unset) o (_8):(_64)"
    assert str(FLAGGED(Int(2), None)) == "Sw<3,4,3> o _128 o (_64):(_1)"
    assert str(FLAGGED(3, None)) == "Sw<3,4,3> o 192 o (_64):(_1)"
    kept, offset = cute.slice_and_offset((Int(5), None), FLAGGED)
    assert offset == 0
    assert [kept(j) for j in range(64)] == [FLAGGED(5, j) for j in range(64)]
    assert str(cute.slice_((Int(0), Int(0)), FLAGGED)) == "Sw<3,4,3> o smem_ptr[16b](unset) o ():()"


def test_what_is_kept_whole_is_the_layout_itself() -> None:
    assert FLAGGED(None, None) is FLAGGED
    kept, offset = cute.slice_and_offset((None, None), FLAGGED)
    assert kept is FLAGGED
    assert offset == 0


@given(st.integers(0, 4), st.integers(0, 8), st.integers(-6, 6), st.sampled_from((4, 8, 16, 32, 64, 128)))
def test_bytes_and_elements_are_one_swizzle(bits: int, base: int, shift: int, width: int) -> None:
    if abs(shift) < bits:
        return
    on_bytes = Swizzle(bits, base, shift)
    try:
        on_elements = cute.element_swizzle(on_bytes, width)
    except LayoutError:
        assert width > 8
        assert (1 << base) * 8 < width
        return
    for element in range(0, 4096, 7):
        start = element * width // 8
        if element * width % 8 == 0:
            assert on_elements(element) * width // 8 == on_bytes(start)
    if bits and (1 << base) * 8 >= width:
        assert cute.byte_swizzle(on_elements, width) == on_bytes


@given(st.sampled_from(TYPES), SPANS, MAJORS, st.data())
def test_an_emulated_tile_is_indexed_by_its_layout(dtype: str, span: str, major: str, data: st.DataObject) -> None:
    row = as_dtype(dtype)
    unit = max(1, {"none": 16, "32B": 32, "64B": 64, "128B": 128}[span] * 8 // row.bits)
    sizes = [8 * data.draw(st.integers(1, 4)), unit * data.draw(st.integers(1, 2))]
    tile = tuple(sizes if major == "K" else sizes[::-1])
    smem = cute.tma.make_smem_layout(major, span, dtype, tile)
    shape = (tile[0] * 2, tile[1] * 2)
    values = np.random.default_rng(data.draw(st.integers(0, 1 << 20))).integers(
        0, 255, math.prod(shape) * row.bits // 8
    )
    source = values.astype(np.uint8).view(row.numpy).reshape(shape, order="C" if major == "K" else "F")
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", source, smem)
    octets = cute.tma.execute(atom, source, (1, 0)).smem
    image = octets.view(row.numpy)
    table = cute.offsets(smem)
    want = source[tile[0] :, : tile[1]]
    assert image[table].tobytes() == np.ascontiguousarray(want).tobytes()


@pytest.mark.parametrize("span", ["none", "32B", "64B", "128B"])
def test_four_bit_elements_are_indexed_in_the_unpacked_tile(span: str) -> None:
    columns = {"none": 16, "32B": 32, "64B": 64, "128B": 128}[span]
    packed = np.random.default_rng(4).integers(0, 256, (32, columns), dtype=np.uint8)
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", packed, cute.tma.make_smem_layout("K", span, "uint8", (16, columns)))
    octets = cute.tma.execute(atom, packed, (1, 0)).smem
    image = np.stack([octets & 15, octets >> 4], axis=-1).reshape(-1)
    elements = np.stack([packed & 15, packed >> 4], axis=-1).reshape(32, -1)
    smem = cute.tma.make_smem_layout("K", span, "uint4", (16, columns * 2))
    assert np.array_equal(image[cute.offsets(smem)], elements[16:])


@pytest.mark.parametrize("span", ["none", "32B", "64B", "128B"])
@pytest.mark.parametrize("form", ["b4x16_p64", "b6x16_p32"])
def test_padded_elements_are_indexed_as_the_bytes_that_they_fill(span: str, form: str) -> None:
    """16 elements of 4 or 6 bits fill 16 bytes with their padding: the swizzle moves them as it moves bytes."""
    columns = {"none": 16, "32B": 32, "64B": 64, "128B": 128}[span]
    rows = np.random.default_rng(6).integers(0, 256, (32, columns), dtype=np.uint8)
    smem = cute.tma.make_smem_layout("K", span, "uint8", (16, columns))
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", rows, smem)
    octets = cute.tma.execute(atom, rows, (1, 0)).smem
    image = decompress(octets.reshape(-1, 16), form).reshape(-1)
    elements = decompress(rows.reshape(32, -1, 16), form).reshape(32, -1)
    assert np.array_equal(image[cute.offsets(smem)], elements[16:])


ROWS_REFUSED: list[Refusal] = [
    ("unknown function", lambda: cute.offsets(FLAGGED, of="bytes"), InvalidValueError, "of = 'bytes'"),
    ("function of a number", lambda: cute.offsets(FLAGGED, of=1), InvalidTypeError, "of = 1"),  # type: ignore[arg-type]
    ("six bits", lambda: cute.element_swizzle(Swizzle(3, 4, 3), 6), StaticAssertError, "power of two"),
    ("within an element", lambda: cute.element_swizzle(Swizzle(1, 0, 3), 16), LayoutError, "within an element"),
    ("within a byte", lambda: cute.byte_swizzle(Swizzle(1, 0, 3), 4), LayoutError, "within a byte"),
    ("no swizzle", lambda: cute.element_swizzle(3, 16), InvalidTypeError, "must be a Swizzle"),  # type: ignore[arg-type]
    ("flag moved by a symbol", lambda: smem_ptr_flag(16, None), InvalidTypeError, "an integer"),  # type: ignore[arg-type]
    ("flag recast by zero", lambda: smem_ptr_flag(16).downcast(0), InvalidValueError, "at least 1"),
]


@refusals(ROWS_REFUSED)
def test_refused(call: Any, kind: Any, words: str) -> None:
    assert_refused(call, kind, words)
