"""Whole copies through random atoms: every element arrives once, and lies in shared memory where the layout says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import Int, Layout, LayoutLeft, LayoutRight
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError

DTYPES = ["uint8", "float16", "float32", "float64"]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, tuple[int, ...], int, str]:
    """(array, tile, swizzle bits, order): row lengths that TMA takes, tiles that fit the swizzle."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    unit = max(1, 16 // dtype.itemsize)
    rank = draw(st.integers(1, 4))
    order = draw(st.sampled_from(["row", "col"]))
    bits = draw(st.sampled_from([0, 1, 2, 3]))
    inner_tile = unit * draw(st.integers(1, (1 << bits) if bits else 6))
    inner_size = unit * draw(st.integers(1, 5))
    outer = [draw(st.integers(1, 9)) for _ in range(rank - 1)]
    tiles = [draw(st.integers(1, 5)) for _ in range(rank - 1)]
    shape, tile = (*outer, inner_size), (*tiles, inner_tile)
    if order == "col":
        shape, tile = tuple(reversed(shape)), tuple(reversed(tile))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    array = rng.integers(0, 256, (math.prod(shape) * dtype.itemsize,), dtype=np.uint8).view(f"u{dtype.itemsize}")
    return array.reshape(shape, order="F" if order == "col" else "C"), tile, bits, order


def make(array: Any, tile: tuple[int, ...], bits: int, order: str) -> Any:
    major = LayoutRight if order == "row" else LayoutLeft
    plain = Layout(tuple(Int(n) for n in tile), major)
    width = array.itemsize * 8
    smem = cute.ComposedLayout(cute.Swizzle(bits, 4, 3), cute.smem_ptr_flag(width), plain) if bits else plain
    strides = tuple(s // array.itemsize for s in array.strides)
    fast = len(strides) - 1 if order == "row" else 0
    strides = tuple(Int(1) if i == fast else s for i, s in enumerate(strides))
    gmem = cute.make_tensor(cute.make_gmem_ptr(1 << 20, f"uint{width}"), Layout(array.shape, strides))
    return cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, smem, tile)


@given(cases())
def test_every_element_arrives(case: Any) -> None:
    array, tile, bits, order = case
    try:
        atom = make(array, tile, bits, order)
        result = cute.tma.copy(atom, array)
    except InvalidValueError as error:
        assume("must be a multiple of 128" not in str(error))
        raise
    assert result.equal, result.difference
    assert result.tiles == math.prod(-(-n // t) for n, t in zip(array.shape, tile, strict=True))
    assert result.transaction_bytes == math.prod(tile) * array.itemsize


@given(cases(), st.integers(0, 10**6))
def test_a_tile_lies_where_its_layout_says(case: Any, pick: int) -> None:
    """Byte by byte: element (i, ...) of the tile at swizzle(layout(i, ...)), zeros where the tensor ends."""
    array, tile, bits, order = case
    atom = make(array, tile, bits, order)
    counts = tuple(-(-n // t) for n, t in zip(array.shape, tile, strict=True))
    number = pick % math.prod(counts)
    where = cute.idx2crd(number, counts) if len(counts) > 1 else (number,)
    try:
        image = cute.tma.execute(atom, array, number, poison=0xCD).smem
    except InvalidValueError as error:
        assume("must be a multiple of 128" not in str(error))
        raise
    inner = tile[-1 if order == "row" else 0] * array.itemsize
    assume(bits == 0 or inner == 16 << bits)  # narrower rows of a swizzled box lie one span apart
    swizzle = cute.Swizzle(bits, 4, 3)
    layout = Layout(tile, LayoutRight if order == "row" else LayoutLeft)
    size = array.itemsize
    for coord in np.ndindex(*tile):
        source = tuple(w * t + c for w, t, c in zip(where, tile, coord, strict=True))
        inside = all(s < n for s, n in zip(source, array.shape, strict=True))
        want = int(array[source]) if inside else 0
        start = int(layout(tuple(coord) if len(coord) > 1 else coord[0])) * size
        got = bytes(int(image[swizzle(start + k)]) for k in range(size))
        assert int.from_bytes(got, "little") == want, (coord, source)


def test_split_oversize_makes_several_instructions() -> None:
    array = np.arange(64 * 1024, dtype=np.uint16).reshape(64, 1024)
    smem = Layout((Int(32), Int(512)), LayoutRight)
    gmem = cute.make_tensor(cute.make_gmem_ptr(1 << 20, "uint16"), Layout(array.shape, (1024, Int(1))))
    with pytest.raises(CuteError):
        cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, smem)
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, smem, split_oversize=True)
    assert str(atom.gbasis) == "(_256,_1):(_1@1,_1@0)"
    assert (atom.instructions, atom.transaction_bytes) == (64, 32 * 512 * 2)
    assert cute.tma.copy(atom, array).equal


def test_multicast_parts_cover_the_tile() -> None:
    array = np.arange(256 * 128, dtype=np.uint16).reshape(256, 128)
    gmem = cute.make_tensor(cute.make_gmem_ptr(1 << 20, "uint16"), Layout(array.shape, (128, Int(1))))
    smem = Layout((Int(64), Int(64)), LayoutRight)
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD_MULTICAST", gmem, smem, num_multicast=4)
    assert atom.plan.box == (64, 16)
    assert atom.transaction_bytes == 64 * 64 * 2
    assert cute.tma.copy(atom, array).equal


def test_a_tile_of_integers_of_numpy() -> None:
    gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), Layout((256, 128), (128, Int(1))))
    smem = Layout((Int(64), Int(64)), LayoutRight)
    tile = (np.int64(64), np.int32(64))
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, smem, tile)
    assert atom == cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, smem, (64, 64))
    assert cute.tma.partition(smem, gmem, tile)[0].rank == 2


def test_the_example_of_the_load_walkthrough() -> None:
    """128x128 bf16 under a 128-byte swizzle: two boxes of 64 columns, 32768 bytes in all."""
    gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "bfloat16"), Layout((1024, 1024), (1024, Int(1))))
    tile = cute.tile_to_shape(Layout((Int(8), Int(64)), LayoutRight), (Int(128), Int(128)))
    smem = cute.ComposedLayout(cute.Swizzle(3, 4, 3), cute.smem_ptr_flag(16), tile)
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, smem, (128, 128))
    assert atom.plan.box == (64, 128)
    assert (atom.instructions, atom.transaction_bytes) == (2, 32768)


def test_arrays_that_are_not_the_atoms_tensor() -> None:
    array = np.zeros((64, 64), np.float16)
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", array, Layout((Int(32), Int(32)), LayoutRight))
    with pytest.raises(CuteError, match="source is not the tensor of this atom"):
        cute.tma.copy(atom, np.zeros((64, 32), np.float16))
    with pytest.raises(CuteError, match="overlap"):
        cute.tma.copy(atom, array, array)
    with pytest.raises(CuteError, match="elements of 32 bits"):
        cute.tma.copy(atom, np.zeros((64, 64), np.float32))
    with pytest.raises(CuteError, match="backend = 'tpu'; must be 'emulator', 'cuda' or 'both'"):
        cute.tma.copy(atom, array, backend="tpu")
    with pytest.raises(CuteError, match="the tensor has 4 tiles"):
        cute.tma.execute(atom, array, 4)


def test_a_tile_of_a_part_of_an_element_has_no_instructions() -> None:
    """Two int16 are half of the uint64 that TMA counts in: the second tile would start between two elements."""
    gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "int16"), cute.parse("64:_1"))
    atom = cute.tma.make_tma_atom("SM90_TMA_LOAD", gmem, cute.parse("_2:_1"), internal_dtype="uint64", check=False)
    with pytest.raises(InvalidValueError, match="must be a whole number of elements"):
        cute.tma.instructions(atom)


@pytest.mark.parametrize("run", [cute.tma.copy, cute.tma.execute])
def test_an_array_is_no_atom(run: Any) -> None:
    x = np.zeros((8, 16), np.uint8)
    with pytest.raises(InvalidTypeError, match="a TMA atom"):
        run(x, x)


def test_a_load_without_multicast_brings_each_cta_its_slice() -> None:
    """CuTe C++ takes such an atom; its barrier would wait for ever if it expected the whole tile."""
    gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    tile = cute.parse("(_128,_64):(_64,_1)")
    alone = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, tile, num_multicast=4)
    shared = cute.tma.make_tma_copy("SM90_TMA_LOAD_MULTICAST", gmem, tile, num_multicast=4)
    assert (alone.bytes_per_instruction, alone.transaction_bytes) == (4096, 4096)
    assert (shared.bytes_per_instruction, shared.transaction_bytes) == (4096, 16384)
    assert alone.why_not() == (
        "SM90_TMA_LOAD does not multicast, so each of the 4 CTAs receives only its slice of the tile"
    )
    assert shared.why_not() is None
    assert cute.tma.make_tma_copy("SM90_TMA_STORE", gmem, tile, num_multicast=4).why_not() is None
