"""The matrix descriptor: bits in, bits out, and the examples that TVM and CUTLASS write."""

from __future__ import annotations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.atom import DescriptorKind, SmemDescriptor, SmemSwizzle
from cute_py.atom.smem_descriptor import BIT_FIELDS, SWIZZLE_CODES
from cute_py.errors import InvalidTypeError, InvalidValueError, TmemError
from cute_py.tmem import encode_matrix_descriptor, replace_start_address, smem_desc_add_16B_offset

fields = st.integers(0, 0x3FFF)


@given(st.integers(0, (1 << 64) - 1), st.sampled_from(list(DescriptorKind)))
def test_decode_then_encode_gives_the_bits_back(value: int, kind: DescriptorKind) -> None:
    low, width = (61, 3) if kind is DescriptorKind.TCGEN05 else (62, 2)
    if value >> low & ((1 << width) - 1) not in SWIZZLE_CODES[kind].values():
        with pytest.raises(TmemError, match="swizzle code"):
            SmemDescriptor.decode(value, kind)
        return
    assert SmemDescriptor.decode(value, kind).encode() == value


@given(fields, fields, fields, st.sampled_from(list(DescriptorKind)), st.integers(0, 7), st.integers(0, 4))
def test_encode_then_decode_gives_the_fields_back(
    start: int, leading: int, stride: int, kind: DescriptorKind, base_offset: int, swizzle: int
) -> None:
    if swizzle == 4 and kind is DescriptorKind.WGMMA:
        swizzle = 0
    made = SmemDescriptor(start, leading, stride, SmemSwizzle(swizzle), kind, base_offset)
    assert SmemDescriptor.decode(made.encode(), kind) == made


@pytest.mark.parametrize(
    ("ldo", "sdo", "swizzle", "value"),
    [
        (16, 8, 0, 0x0000400800100000),
        (0, 8, 0, 0x0000400800000000),
        (0, 16, 1, 0xC000401000000000),
        (0, 32, 2, 0x8000402000000000),
        (0, 64, 3, 0x4000404000000000),
        (8, 16, 0, 0x0000401000080000),
        (1, 32, 2, 0x8000402000010000),
    ],
)
def test_examples(ldo: int, sdo: int, swizzle: int, value: int) -> None:
    assert encode_matrix_descriptor(0, ldo, sdo, swizzle) == value


def test_the_fields_do_not_overlap() -> None:
    for kind, table in BIT_FIELDS.items():
        total = sum(field.mask for field in table)
        merged = 0
        for field in table:
            merged |= field.mask
        assert total == merged, kind


def test_wgmma_has_no_version_and_two_bits_of_swizzle() -> None:
    value = SmemDescriptor(1, 2, 3, SmemSwizzle.B128, DescriptorKind.WGMMA).encode()
    assert value == 1 | 2 << 16 | 3 << 32 | 1 << 62


@given(st.integers(0, (1 << 64) - 1), st.integers(0, 1 << 34))
def test_the_offset_wraps_in_the_low_half(descriptor: int, offset: int) -> None:
    moved = smem_desc_add_16B_offset(descriptor, offset)
    assert moved >> 32 == descriptor >> 32
    assert moved & 0xFFFFFFFF == (descriptor + offset) & 0xFFFFFFFF


def test_the_two_ways_to_move_agree_below_256_kib() -> None:
    base = encode_matrix_descriptor(1024, 16, 8, 0)
    for units in (0, 1, 511, 16319):
        assert smem_desc_add_16B_offset(base, units) == replace_start_address(base, 1024 + 16 * units)
    assert smem_desc_add_16B_offset(base, 16320) != replace_start_address(base, 1024 + 16 * 16320)


def test_what_does_not_fit() -> None:
    with pytest.raises(TmemError) as caught:
        SmemDescriptor(1 << 14, -1, 0, base_offset=8)
    assert "start = 16384" in caught.value.headline
    assert len(caught.value.facts) == 2
    with pytest.raises(TmemError, match="a wgmma descriptor has no code for the swizzle B128_ATOM32"):
        SmemDescriptor(0, 0, 0, SmemSwizzle.B128_ATOM32, DescriptorKind.WGMMA)
    with pytest.raises(TmemError, match="swizzle = 5; must be 0"):
        encode_matrix_descriptor(0, 0, 0, 5)
    with pytest.raises(TmemError, match="multiple of 16 bytes"):
        encode_matrix_descriptor(8, 0, 0, 0)
    with pytest.raises(InvalidTypeError, match="a matrix descriptor must be an integer, got bytes"):
        SmemDescriptor.decode(b"0")  # type: ignore[arg-type]
    with pytest.raises(TmemError, match="64 bits"):
        SmemDescriptor.decode(1 << 64)


def test_text_in_hexadecimal_is_read() -> None:
    value = 0x4000004000010042
    for text in (hex(value), f" 0X{value:X}\n", str(SmemDescriptor.decode(value))):
        assert SmemDescriptor.decode(text) == SmemDescriptor.decode(value)
    assert SmemDescriptor.decode(value).diff(hex(value)) == []
    for text in ("", "0x", "4000004000010042", "0xfg", "-0x1", "0x1 0x2", "0x" + "0" * 33):
        with pytest.raises(InvalidValueError, match="must be a number in hexadecimal") as caught:
            SmemDescriptor.decode(text)
        assert caught.value.hint == "an integer, or a text in hexadecimal such as '0x4000004000010002'"
    with pytest.raises(TmemError, match="64 bits"):
        SmemDescriptor.decode("0x1" + "0" * 16)


def test_restrictions_are_told_apart_from_what_fits() -> None:
    odd = SmemDescriptor(0, 0, 0, version=2, leading_is_address=True, residue=1 << 14)
    assert len(odd.restrictions("sm_100a")) == 4
    good = SmemDescriptor(0, 5, 8, SmemSwizzle.B128, leading_is_address=True)
    assert good.restrictions("sm_103a") == []
    assert SmemDescriptor(0, 1, 8).restrictions() == []


def test_swizzles_are_involutions() -> None:
    for swizzle in SmemSwizzle:
        assert all(swizzle.of(swizzle.of(a)) == a for a in range(0, 4096, 16))
        moved = {swizzle.of(a) for a in range(0, swizzle.period, 16)}
        assert moved == set(range(0, swizzle.period, 16))


@pytest.mark.parametrize("value", [1.5, "16", None, True])
def test_fields_are_whole_numbers(value: object) -> None:
    with pytest.raises(InvalidTypeError, match="leading must be an integer"):
        SmemDescriptor(0, value, 8)  # type: ignore[arg-type]


def test_integers_of_numpy_and_kinds_by_name() -> None:
    made = SmemDescriptor(numpy.int64(4), 16, 8, kind="wgmma")  # type: ignore[arg-type]
    assert type(made.start) is int and made.kind is DescriptorKind.WGMMA
    assert SmemDescriptor.decode(numpy.uint64(made.encode()), "wgmma") == made  # type: ignore[arg-type]
    with pytest.raises(
        InvalidTypeError, match="kind must be a DescriptorKind or its value, 'tcgen05' or 'wgmma', got 'mma'"
    ):
        SmemDescriptor.decode(0, "mma")  # type: ignore[arg-type]


def test_the_fields_by_the_names_that_cute_gives_them() -> None:
    made = SmemDescriptor(4, 1, 64, SmemSwizzle.B128, "umma")
    assert (made.start_address, made.leading_byte_offset, made.stride_byte_offset) == (4, 1, 64)
    assert (made.layout_type, made.version, made.lbo_mode, made.base_offset) == (2, 1, 0, 0)
    assert SmemDescriptor(0, 0, 0, SmemSwizzle.B128, "gmma").layout_type == 1
    assert str(made) == f"{int(made):#018x}"
