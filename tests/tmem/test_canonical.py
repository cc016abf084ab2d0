"""Canonical operand tiles: the descriptor's own walk reaches every element of the tile, or there is a reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest

from cute_py.errors import TmemError
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.tiling import tile_to_shape
from cute_py.tma.atom.smem_layout import make_smem_layout
from cute_py.tmem import CanonicalOperand, DescriptorKind, Major, SmemSwizzle, canonical_operand
from cute_py.tmem.canonical import UNITS_PER_INSTRUCTION, canonical_form, element_bits

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


def walk(operand: CanonicalOperand, mn: int, block: int, bits: int) -> Iterator[tuple[int, int, Any]]:
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


def walked(operand: CanonicalOperand, mn: int, bits: int) -> dict[tuple[int, int], int]:
    """(mn, k) of each first element of a unit -> byte address, from the descriptors alone."""
    per = 128 // bits
    out = {}
    for block in range(len(operand.starts)):
        for first, unit, address in walk(operand, mn, block, bits):
            k0 = block * UNITS_PER_INSTRUCTION * per
            key = (first, k0 + unit * per) if operand.major is Major.K else (unit * per, k0 + first)
            out[key] = address
    return out


@pytest.mark.parametrize("kind", list(DescriptorKind))
@pytest.mark.parametrize("dtype", list(BITS))
@pytest.mark.parametrize("swizzle", MODES)
@pytest.mark.parametrize("major", list(Major))
def test_atoms_tiled_to_a_shape_are_canonical(
    major: Major, swizzle: SmemSwizzle, dtype: str, kind: DescriptorKind
) -> None:
    bits = BITS[dtype]
    wide = max(swizzle.row_bytes, 64) * 8 // bits
    shape = (64, wide) if major is Major.K else (2 * wide, 64)
    wanted = (major, swizzle)
    if swizzle is SmemSwizzle.B128_ATOM32 and (major is Major.K or kind is DescriptorKind.WGMMA):
        with pytest.raises(TmemError):
            canonical_form(numpy.zeros((8, 8), numpy.int64), bits, *wanted, kind)
        return
    layout = tile(*wanted, bits, shape)
    found = canonical_operand(layout, dtype, kind=kind)
    assert (found.major, found.swizzle) == wanted
    addresses = element_bits(layout, dtype)
    for (mn, k), address in walked(found, shape[0], bits).items():
        assert addresses[mn, k] == 8 * address
    per = 128 // bits
    assert len(walked(found, shape[0], bits)) == shape[0] * shape[1] // per


def test_the_numbers_of_cutlass() -> None:
    """K-major 128-byte swizzle of 16-bit elements: 64 units between 8 rows, 2 units from k-block to k-block."""
    found = canonical_operand(tile(Major.K, SmemSwizzle.B128, 16, (128, 128)), "bfloat16")
    assert (found.stride, found.leading) == (64, 1)
    assert found.starts == (0, 2, 4, 6, 1024, 1026, 1028, 1030)
    assert found.descriptor(2048, 1).start == 130
    assert hex(found.descriptor().encode()) == "0x4000404000010000"
    plain = canonical_operand(tile(Major.K, SmemSwizzle.NONE, 32, (64, 16)), "float32")
    assert (plain.leading, plain.stride) == (64, 8)
    with pytest.raises(TmemError, match="multiple of 1024"):
        found.descriptor(512)


@pytest.mark.parametrize(
    ("layout", "dtype", "words"),
    [
        (Layout((64, 64), (64, 1)), "bfloat16", "row 1, unit along K 0: at byte 128"),
        (Layout((60, 64), (64, 1)), "bfloat16", "60 rows; must be a multiple of 8"),
        (Layout((64, 8), (8, 1)), "bfloat16", "16 bytes along K; must be a multiple of 32"),
        (Layout((64, 4), (4, 1)), "bfloat16", "4 elements along the contiguous dimension"),
        (Layout((64, 16), (32, 2)), "bfloat16", "not a neighbour"),
        (Layout((64, 16), (20, 1)), "bfloat16", "must be a multiple of 16"),
    ],
)
def test_reasons(layout: Layout, dtype: str, words: str) -> None:
    with pytest.raises(TmemError, match="no canonical layout") as caught:
        canonical_operand(layout, dtype, major=Major.K, swizzle=SmemSwizzle.NONE)
    assert words in str(caught.value)


def test_every_form_that_was_tried_is_told() -> None:
    with pytest.raises(TmemError) as caught:
        canonical_operand(Layout((64, 64), (65, 1)), "bfloat16")
    assert len(caught.value.facts) == 10
    with pytest.raises(TmemError, match="two modes"):
        canonical_operand(Layout((64, 64, 2)), "bfloat16")


def test_one_wrong_element_is_seen() -> None:
    addresses = element_bits(tile(Major.K, SmemSwizzle.B64, 16, (64, 32)), "bfloat16").copy()
    good = canonical_form(addresses, 16, Major.K, SmemSwizzle.B64, DescriptorKind.TCGEN05)
    assert isinstance(good, CanonicalOperand)
    addresses[63, 31] += 16
    with pytest.raises(TmemError):
        canonical_form(addresses, 16, Major.K, SmemSwizzle.B64, DescriptorKind.TCGEN05)


@pytest.mark.parametrize("dtype", ["float4_e2m1fn", "uint8", "bfloat16", "float32"])
@pytest.mark.parametrize(("name", "swizzle"), [("none", 0), ("32B", 1), ("64B", 2), ("128B", 3)])
@pytest.mark.parametrize("major", ["K", "MN"])
def test_the_layouts_that_this_library_makes(major: str, name: str, swizzle: int, dtype: str) -> None:
    layout = make_smem_layout(major, name, dtype, (256, 256))
    found = canonical_operand(layout, dtype)
    assert (found.major.value, int(found.swizzle)) == (major, swizzle)


def test_the_layout_names_the_width_of_its_elements() -> None:
    with pytest.raises(TmemError, match="float32 has 32 bits; the layout is one of 16-bit elements"):
        canonical_operand(make_smem_layout("K", "128B", "float16", (64, 64)), "float32")
