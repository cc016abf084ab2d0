"""Canonical operand tiles: the descriptor's own walk reaches every element of the tile, or there is a reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import cute_py as cute
from cute_py.atom import DescriptorKind, Major, SmemOperand, SmemSwizzle, find_smem_operand
from cute_py.errors import TmemError
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.tiling import tile_to_shape
from cute_py.tma.atom.smem_layout import make_smem_layout
from tests.each import each_of

UNITS_PER_INSTRUCTION = 2

BITS = {"uint8": 8, "bfloat16": 16, "float32": 32}
MODES = [SmemSwizzle.NONE, SmemSwizzle.B32, SmemSwizzle.B64, SmemSwizzle.B128, SmemSwizzle.B128_ATOM32]


def atom(major: Major, swizzle: SmemSwizzle, bits: int) -> Any:
    """The atom of CUTLASS: 8 rows (4 for 32-byte atoms) of 16, 32, 64 or 128 bytes, in elements."""
    width = swizzle.row_bytes * 8 // bits
    rows = 4 if swizzle is SmemSwizzle.B128_ATOM32 else 8
    b, base, shift = swizzle.cute
    elements = Swizzle(b, base - (bits // 8).bit_length() + 1, shift)
    r, w, one = Int(rows), Int(width), Int(1)
    plain = Layout((r, w), (w, one)) if major is Major.K else Layout((w, r), (one, w))
    return ComposedLayout(elements, Int(0), plain)


def tile(major: Major, swizzle: SmemSwizzle, bits: int, shape: tuple[int, int]) -> Any:
    return tile_to_shape(atom(major, swizzle, bits), (Int(shape[0]), Int(shape[1])))


def walk(operand: SmemOperand, mn: int, block: int, bits: int) -> Iterator[tuple[int, int, Any]]:
    """Every unit that one instruction reads: (row or k, unit index, byte address), from the descriptor alone."""
    per_unit = 128 // bits
    start = operand.starts[block] * 16
    leading, stride = operand.leading * 16, operand.stride * 16
    swizzle = operand.swizzle
    if operand.major is Major.K:
        for row in range(mn):
            for unit in range(UNITS_PER_INSTRUCTION):
                linear = start + row // 8 * stride + row % 8 * swizzle.row_bytes + unit * leading
                yield row, unit, swizzle.of(linear)
        return
    width = swizzle.row_bytes // 16
    rows = 4 if swizzle is SmemSwizzle.B128_ATOM32 else 8
    across, along = (stride, leading) if swizzle is SmemSwizzle.NONE else (leading, stride)
    for k in range(UNITS_PER_INSTRUCTION * per_unit):
        for unit in range(mn // per_unit):
            linear = start + unit // width * across + unit % width * 16
            yield k, unit, swizzle.of(linear + k // rows * along + k % rows * swizzle.row_bytes)


def walked(operand: SmemOperand, mn: int, bits: int) -> dict[tuple[int, int], int]:
    """(mn, k) of each first element of a unit -> byte address, from the descriptors alone."""
    per = 128 // bits
    out = {}
    for block in range(len(operand.starts)):
        for first, unit, address in walk(operand, mn, block, bits):
            k0 = block * UNITS_PER_INSTRUCTION * per
            key = (first, k0 + unit * per) if operand.major is Major.K else (unit * per, k0 + first)
            out[key] = address
    return out


@each_of("kind", list(DescriptorKind))
@each_of("dtype", list(BITS))
@each_of("swizzle", MODES)
@each_of("major", list(Major))
def test_atoms_tiled_to_a_shape_are_canonical(
    major: Major, swizzle: SmemSwizzle, dtype: str, kind: DescriptorKind
) -> None:
    bits = BITS[dtype]
    wide = max(swizzle.row_bytes, 64) * 8 // bits
    shape = (64, wide) if major is Major.K else (2 * wide, 64)
    wanted = (major, swizzle)
    if swizzle is SmemSwizzle.B128_ATOM32 and (major is Major.K or kind is DescriptorKind.WGMMA):
        with pytest.raises(TmemError):
            find_smem_operand(tile(*wanted, bits, shape), dtype, kind=kind)
        return
    layout = tile(*wanted, bits, shape)
    found = find_smem_operand(layout, dtype, kind=kind)
    assert (found.major, found.swizzle) == wanted
    addresses = cute.offsets(layout) * (bits // 8)
    for (mn, k), address in walked(found, shape[0], bits).items():
        assert addresses[mn, k] == address
    per = 128 // bits
    assert len(walked(found, shape[0], bits)) == shape[0] * shape[1] // per


def test_the_numbers_of_cutlass() -> None:
    """K-major 128-byte swizzle of 16-bit elements: 64 units between 8 rows, 2 units from k-block to k-block."""
    found = find_smem_operand(tile(Major.K, SmemSwizzle.B128, 16, (128, 128)), "bfloat16")
    assert (found.stride, found.leading) == (64, 1)
    assert found.starts == (0, 2, 4, 6, 1024, 1026, 1028, 1030)
    assert found.descriptor(2048, 1).start == 130
    assert hex(found.descriptor().encode()) == "0x4000404000010000"
    plain = find_smem_operand(tile(Major.K, SmemSwizzle.NONE, 32, (64, 16)), "float32")
    assert (plain.leading, plain.stride) == (64, 8)
    with pytest.raises(TmemError, match="multiple of 1024"):
        found.descriptor(512)


STRIDE = "Not a canonical UMMA_K Layout: Expected stride failure."


@pytest.mark.parametrize(
    ("layout", "dtype", "words"),
    [
        (Layout((64, 64), (64, 1)), "bfloat16", STRIDE),
        (Layout((60, 64), (64, 1)), "bfloat16", "Not a canonical UMMA_K Layout: Expected MN-size multiple of 8."),
        (Layout((64, 8), (8, 1)), "bfloat16", "64 x 8 elements; K must be a multiple of 16 (32 bytes)"),
        (Layout((64, 16), (32, 2)), "bfloat16", "the elements of a 16-byte unit are not contiguous"),
        (Layout((64, 16), (20, 1)), "bfloat16", "Divisibility condition"),
    ],
)
def test_reasons(layout: Layout, dtype: str, words: str) -> None:
    with pytest.raises(TmemError, match="no canonical layout") as caught:
        find_smem_operand(layout, dtype, major=Major.K)
    assert words in str(caught.value)


def test_every_form_that_was_tried_is_told() -> None:
    with pytest.raises(TmemError) as caught:
        find_smem_operand(Layout((64, 64), (65, 1)), "bfloat16")
    assert list(caught.value.facts) == ["K-major", "MN-major"]
    with pytest.raises(TmemError, match="two modes"):
        find_smem_operand(Layout((64, 64, 2)), "bfloat16")
    swizzled = tile(Major.K, SmemSwizzle.B64, 16, (64, 64))
    with pytest.raises(TmemError, match="the swizzle of the layout is B64; must be B32"):
        find_smem_operand(swizzled, "bfloat16", major="K", swizzle="B32")


@each_of("dtype", ["float4_e2m1fn", "uint8", "bfloat16", "float32"])
@each_of(("name", "swizzle"), [("none", 0), ("32B", 1), ("64B", 2), ("128B", 3)])
@each_of("major", ["K", "MN"])
def test_the_layouts_that_this_library_makes(major: str, name: str, swizzle: int, dtype: str) -> None:
    layout = make_smem_layout(major, name, dtype, (256, 256))
    found = find_smem_operand(layout, dtype)
    assert (found.major.value, int(found.swizzle)) == (major, swizzle)


def test_the_layout_names_the_width_of_its_elements() -> None:
    with pytest.raises(TmemError, match="float32 has 32 bits, but the layout has 16-bit elements"):
        find_smem_operand(make_smem_layout("K", "128B", "float16", (64, 64)), "float32")
