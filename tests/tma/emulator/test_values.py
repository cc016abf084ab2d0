"""Values at their edges: rounding, fills, reductions, the 16-byte rule of stores, transaction bytes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_py.tma.descriptor.data_types import TensorMapDataType
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapTiled
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.geometry import geometry
from cute_py.tma.emulator.values import reduced, round_to_tf32
from tests.each import each_of

T = TensorMapDataType


@each_of(
    ("word", "rounded"),
    [
        (0x3F800000, 0x3F800000),
        (0x3F800FFF, 0x3F800000),
        (0x3F801000, 0x3F800000),  # ties: to even
        (0x3F803000, 0x3F804000),
        (0xBF801000, 0xBF800000),
        (0xBF803000, 0xBF804000),
        (0x3F801001, 0x3F802000),
        (0x3FFFFFFF, 0x40000000),
        (0x7F7FFFFF, 0x7F800000),  # past the largest: infinity
        (0x7F800000, 0x7F800000),
        (0xFF800000, 0xFF800000),
        (0x7F800001, 0x7FFFE000),
        (0xFFC00000, 0x7FFFE000),
        (0x00001000, 0x00000000),
        (0x00001001, 0x00002000),  # denormals are kept
        (0x80000000, 0x80000000),
    ],
)
def test_tf32(word: int, rounded: int) -> None:
    words = np.array([word], np.uint32)
    round_to_tf32(words.view(np.uint8))
    assert hex(words[0]) == hex(rounded)


@each_of("data_type", [T.FLOAT16, T.BFLOAT16, T.FLOAT32, T.FLOAT32_FTZ, T.FLOAT64, T.TFLOAT32])
@each_of("fill", [0, 1])
def test_fill_outside_the_tensor(data_type: T, fill: int) -> None:
    width = geometry(TensorMapTiled(data_type, 0, (8,), (), (16,))).bits // 8
    tile = TensorMapTiled(data_type, 0, (16 // width,), (), (32 // width,), oob_fill=fill)
    smem = np.zeros(128, np.uint8)
    Emulator().load(encode(tile), np.full(16, 0x3C, np.uint8), (0,), smem)
    assert smem[16:32].view(np.uint16).tolist() == [0x7FF7 if fill else 0] * 8
    assert smem[32:].max() == 0


def test_ftz_formats_keep_denormals() -> None:
    tile = TensorMapTiled(T.FLOAT32_FTZ, 0, (4,), (), (4,))
    denormal, smem = np.array([1, 2, 0x80000001, 3], np.uint32), np.zeros(128, np.uint8)
    Emulator().load(encode(tile), denormal.view(np.uint8), (0,), smem)
    assert np.array_equal(smem[:16].view(np.uint32), denormal)


U32, MAX = np.uint32, 0xFFFFFFFF


@each_of(
    ("op", "old", "new", "left"),
    [
        ("add", MAX, 1, 0),
        ("inc", 4, 5, 5),
        ("inc", 5, 5, 0),
        ("inc", 6, 5, 0),
        ("inc", MAX, MAX, 0),
        ("dec", 0, 5, 5),
        ("dec", 1, 5, 0),
        ("dec", 5, 5, 4),
        ("dec", 6, 5, 5),
        ("and", 0b1100, 0b1010, 0b1000),
        ("or", 0b1100, 0b1010, 0b1110),
        ("xor", 0b1100, 0b1010, 0b0110),
        ("min", 1, MAX, 1),
        ("max", 1, MAX, MAX),
    ],
)
def test_integer_reductions(op: str, old: int, new: int, left: int) -> None:
    out = reduced(np.array([[old]], U32).view(np.uint8), np.array([[new]], U32).view(np.uint8), op, T.UINT32)
    assert int(out.view(U32)[0, 0]) == left


def test_signed_order() -> None:
    old, new = np.array([[-1, 5]], np.int64).view(np.uint8), np.array([[1, -7]], np.int64).view(np.uint8)
    assert reduced(old, new, "min", T.INT64).view(np.int64).tolist() == [[-1, -7]]
    assert reduced(old, new, "max", T.INT64).view(np.int64).tolist() == [[1, 5]]


NAN, QUIET = float("nan"), 0x7FFF


@pytest.mark.parametrize(("data_type", "kind"), [(T.FLOAT16, np.float16), (T.BFLOAT16, ml_dtypes.bfloat16)])
def test_small_floats(data_type: T, kind: Any) -> None:
    def run(op: str, old: list[float], new: list[float]) -> list[int]:
        a, b = (np.array([x], np.float32).astype(kind).view(np.uint8) for x in (old, new))
        return [int(x) for x in reduced(a, b, op, data_type).view(np.uint16)[0]]

    def bits(values: list[float]) -> list[int]:
        return [int(x) for x in np.array(values, np.float32).astype(kind).view(np.uint16)]

    inf = float("inf")
    assert run("min", [NAN, 1.0, -0.0, 0.0, -2.0], [1.0, NAN, 0.0, -0.0, inf]) == bits([1.0, 1.0, -0.0, -0.0, -2.0])
    assert run("max", [NAN, 1.0, -0.0, 0.0, -2.0], [1.0, NAN, 0.0, -0.0, inf]) == bits([1.0, 1.0, 0.0, 0.0, inf])
    assert run("min", [NAN], [NAN]) == run("max", [NAN], [NAN]) == [QUIET]
    assert run("add", [NAN, inf, 1.0, inf], [1.0, -inf, 2.0, 1.0]) == [QUIET, QUIET, *bits([3.0, inf])]


def test_sums_round_to_nearest_even_in_their_format() -> None:
    one, half_ulp = np.array([[1.0, 1.0]], np.float16), np.array([[2**-11, 3 * 2**-11]], np.float16)
    out = reduced(one.view(np.uint8), half_ulp.view(np.uint8), "add", T.FLOAT16)
    assert out.view(np.float16).tolist() == [[1.0, 1.0 + 2**-9]]
    big = np.array([[3e38]], np.float32)
    assert np.isposinf(reduced(big.view(np.uint8), big.view(np.uint8), "add", T.FLOAT32).view(np.float32)).all()


@each_of(
    ("old", "new", "kept", "flushed"),
    [
        (0x00000001, 0x00000001, 0x00000002, 0x00000000),
        (0x00500000, 0x00500000, 0x00A00000, 0x00000000),
        (0x00900000, 0x00400000, 0x00D00000, 0x00900000),
        (0x00400000, 0x00900000, 0x00D00000, 0x00900000),
        (0x00900000, 0x80880000, 0x00080000, 0x00000000),
        (0x00880000, 0x80900000, 0x80080000, 0x80000000),
        (0x80400000, 0x00000000, 0x80400000, 0x00000000),
        (0x80400000, 0x80000000, 0x80400000, 0x80000000),
        (0x00400000, 0x3F800000, 0x3F800000, 0x3F800000),
        (0x00000000, 0x3F800001, 0x3F800001, 0x3F800001),  # sums of tf32 keep all bits of float32
    ],
)
def test_denormals_in_float32_sums(old: int, new: int, kept: int, flushed: int) -> None:
    """As an H200 gave them."""
    a, b = (np.array([[x]], np.uint32).view(np.uint8) for x in (old, new))
    for data_type, want in ((T.FLOAT32, kept), (T.TFLOAT32, kept), (T.FLOAT32_FTZ, flushed), (T.TFLOAT32_FTZ, flushed)):
        assert hex(reduced(a, b, "add", data_type).view(np.uint32)[0, 0]) == hex(want)


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        (0x7FF10000000000A1, 0x3FF0000000000000, 0x7FF10000000000A1),  # a signalling NaN stays one
        (0x3FF0000000000000, 0xFFF10000000000B6, 0xFFF10000000000B6),
        (0x7FFA0000000000A8, 0x7FF90000000000B8, 0x7FF90000000000B8),  # of two, that in shared memory
        (0x7FF80000000000AA, 0x7FF10000000000BA, 0x7FF10000000000BA),
        (0x7FF0000000000000, 0xFFF0000000000000, 0xFFF8000000000000),
        (0xFFF0000000000000, 0x7FF0000000000000, 0xFFF8000000000000),
        (0x7FF0000000000000, 0x7FF90000000000BC, 0x7FF90000000000BC),
        (1, 1, 2),
        (1 << 63, 1 << 63, 1 << 63),
    ],
)
def test_float64_sums(old: int, new: int, left: int) -> None:
    """As an H200 gave them."""
    a, b = (np.array([[x]], np.uint64).view(np.uint8) for x in (old, new))
    assert hex(reduced(a, b, "add", T.FLOAT64).view(np.uint64)[0, 0]) == hex(left)


def test_a_sum_that_is_no_number() -> None:
    infinity = np.array([[np.inf]], np.float32)
    out = reduced(infinity.view(np.uint8), (-infinity).view(np.uint8), "add", T.TFLOAT32)
    assert out.view(np.uint32).tolist() == [[0x7FFFFFFF]]


@pytest.mark.parametrize(
    ("columns", "start", "written"),
    [
        (64, 0, 32),
        (32, 0, 32),
        (31, 0, 32),
        (17, 0, 32),
        (16, 0, 16),
        (15, 0, 16),
        (1, 0, 16),
        (47, 32, 16),
        (33, 48, 0),
    ],
)
def test_the_sixteen_byte_rule(columns: int, start: int, written: int) -> None:
    """Box of 32 bytes; `written` bytes of a row that has `columns` bytes."""
    tile = TensorMapTiled(0, 0, (columns, 2), (80,), (32, 2))
    memory = np.zeros(160, np.uint8)
    Emulator().store(encode(tile), memory, (start, 0), np.full(128, 1, np.uint8))
    assert memory.reshape(2, 80).sum(axis=1).tolist() == [written, written]
    assert memory[start : start + written].all()


@each_of(
    ("request_", "mode", "nbytes"),
    [
        (TensorMapTiled(9, 0, (512, 512), (1024,), (64, 128), swizzle=3), "tile", 16384),
        (TensorMapTiled(9, 0, (512, 512), (1024,), (64, 127), (1, 2)), "tile", 64 * 2 * 64),  # rounded up
        (TensorMapTiled(9, 0, (512, 512), (1024,), (64, 128), (3, 1)), "tile", 16384),  # mode 0: no effect
        (TensorMapTiled(0, 0, (48,), (), (48,), swizzle=2), "tile", 48),  # the gap of a row is not counted
        (TensorMapTiled(9, 0, (9, 9, 4), (144, 1296), (8, 8, 4), (3, 1, 1), 1), "tile", 16 * 3 * 4),  # mode R-2 is one
        (TensorMapTiled(9, 0, (9, 9, 4, 2), (288, 2592, 10368), (8, 8, 4, 2), (1, 3, 1, 2), 2, 1), "tile", 32 * 8 * 3),
        (TensorMapIm2col(9, 0, (64, 9, 9, 2), (128, 1152, 10368), (0, 0), (0, 0), 32, 7), "im2col", 32 * 2 * 7),
        (TensorMapIm2col(9, 0, (9, 4, 2), (144, 576), (0,), (0,), 256, 7, (1, 1, 1), 1), "im2col", 16 * 7),
        (TensorMapIm2col(9, 0, (64, 9, 2), (128, 1152), (0,), (0,), 32, 7, swizzle=2), "im2col::w::128", 64 * 128),
        (TensorMapTiled(9, 0, (512, 512), (1024,), (64, 1)), "tile::gather4", 512),
    ],
)
def test_transaction_bytes(request_: Any, mode: str, nbytes: int) -> None:
    assert geometry(request_, mode).transaction_bytes == nbytes
