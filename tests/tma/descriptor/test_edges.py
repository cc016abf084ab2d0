"""Edges of requests and maps: the last legal value in hazards, repairs and batches; bits without a field; texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cute_py.errors import InvalidValueError, TmaLimitError
from cute_py.tma.descriptor.batch import encode_many
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.describe import describe
from cute_py.tma.descriptor.diff import field_table
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.fields import RESERVED
from cute_py.tma.descriptor.fixes import find_changes
from cute_py.tma.descriptor.hazards import hazards
from cute_py.tma.descriptor.plain_data import from_json, to_json
from cute_py.tma.descriptor.read import read_map
from cute_py.tma.descriptor.request import TensorMap, TensorMapTiled
from cute_py.tma.descriptor.violations import violations
from tests.tma.descriptor.requests import IM2COL, TILED, WIDE

SLICED = TensorMapTiled(6, 0x1000, (16, 8, 4), (512, 4096), (16, 1, 1), interleave=2, swizzle=1)


def with_bit(request: TensorMap, bit: int) -> bytes:
    return (int.from_bytes(encode(request), "little") ^ 1 << bit).to_bytes(128, "little")


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("ragged rows", SLICED),
        ("overlap", TensorMapTiled(6, 0x1000, (512, 1), (16,), (64, 1))),
        ("channel slice", replace(IM2COL, interleave=1, swizzle=0, channels_per_pixel=8)),
        ("wide swizzle", replace(WIDE, swizzle=2, channels_per_pixel=32)),
        ("unknown bits", decode(with_bit(TILED, 64 * 8 + 3))),
    ],
)
def test_the_last_that_is_harmless(name: str, request_: TensorMap) -> None:
    assert name not in [found.rule for found in hazards(request_)]


CHANGES: dict[str, tuple[TensorMap, str]] = {
    "up to the span": (replace(TILED, box_dim=(60, 128)), "boxDim (60, 128) -> (64, 128): rows of 128 bytes"),
    "down to the span": (
        TensorMapTiled(6, 0x1000, (512, 1024), (1024,), (20, 8), swizzle=1),
        "boxDim (20, 8) -> (16, 8): rows of 32 bytes",
    ),
    "two parts of a row": (
        TensorMapTiled(6, 0x1000, (512, 1024), (1024,), (28, 8), swizzle=1),
        "boxDim (28, 8) -> (24, 8): rows of 48 bytes; boxDim (24, 8) -> (16, 8): rows of 32 bytes, "
        "2 instructions side by side",
    ),
    "half of an outer mode": (
        TensorMapTiled(7, 0x1000, (512, 1024), (2048,), (256, 256)),
        "boxDim (256, 256) -> (256, 128)",
    ),
    "32 bytes with interleave": (
        replace(SLICED, global_address=0x1010),
        "globalAddress 0x1010 -> 0x1000: start 16 bytes earlier, at a multiple of 32",
    ),
    "a stride below another": (
        TensorMapTiled(6, 0x1000, (64, 8, 4, 8), (8192, 100, 90000), (64, 1, 1, 1)),
        "globalStrides (8192, 100, 90000) -> (8192, 112, 90000) bytes: round the stride of dimension 2 up "
        "to 56 elements",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_breaks_no_rule(name: str) -> None:
    request, text = CHANGES[name]
    (found, changed), *_ = find_changes(request)
    assert found == text
    assert violations(request) and not violations(changed)


SIX = TensorMapTiled(
    6, 0x1000, (64, 2, 3, 4, 5, 6), (128, 512, 1536, 6144, 65536), (64, 2, 1, 1, 1, 1), (1, 1, 1, 2, 3, 1)
)


def test_two_of_six_modes_become_one() -> None:
    """The first two that continue each other and whose outer one has a box of 1; what belongs to that one goes."""
    ((text, changed),) = find_changes(SIX)
    assert text == "merge the contiguous modes 2 and 3: globalDim (64, 2, 12, 5, 6)"
    assert changed == TensorMapTiled(
        6, 0x1000, (64, 2, 12, 5, 6), (128, 512, 6144, 65536), (64, 2, 1, 1, 1), (1, 1, 1, 3, 1)
    )
    assert find_changes(replace(SIX, box_dim=(64, 2, 1, 2, 1, 1)))[0][0].startswith(
        "merge the contiguous modes 3 and 4"
    )
    assert find_changes(replace(SIX, box_dim=(64, 1, 1, 2, 2, 1))) == []
    outer = replace(SIX, global_strides=(128, 512, 2048, 10240, 51200))
    assert find_changes(outer)[0][0].startswith("merge the contiguous modes 4 and 5")


def test_lengths_of_corners() -> None:
    for name, argument in (("lower", "pixelBoxLowerCorner"), ("upper", "pixelBoxUpperCorner")):
        short: dict[str, Any] = {f"pixel_box_{name}_corner": (-1,)}
        found = violations(replace(IM2COL, **short))
        assert [d.argument for d in found] == [f"len({argument})"]


@pytest.mark.parametrize("swizzle", range(7))
def test_swizzles_of_packed_6_bit_elements(swizzle: int) -> None:
    request = TensorMapTiled(15, 0x1000, (128, 1024), (96,), (128, 64), swizzle=swizzle)
    rules = [d.rule for d in violations(request, arch="sm_100a")]
    assert ("packed_swizzle" in rules) is (swizzle not in (0, 3, 4, 6))


def test_a_batch_takes_a_box_of_the_only_place() -> None:
    """The corners leave one pixel; one less is refused, alone and in a batch."""
    one = replace(IM2COL, global_dim=(64, 4, 4, 2), pixel_box_lower_corner=(-1, -1), pixel_box_upper_corner=(-4, -4))
    assert [row.tobytes() for row in encode_many([one, one])] == [encode(one)] * 2
    none = replace(one, pixel_box_upper_corner=(-5, -4))
    with pytest.raises(TmaLimitError):
        encode(none)
    with pytest.raises(TmaLimitError):
        encode_many([one, none])


def test_a_batch_of_addresses_beyond_64_bits_signed() -> None:
    arrays = {
        "data_type": 6, "global_dim": [[512, 1024]], "global_strides": [[1024]], "box_dim": [[64, 128]], "swizzle": 3,
    }  # fmt: skip
    with pytest.raises(TmaLimitError) as caught:
        encode_many({**arrays, "global_address": np.array([1 << 63], np.uint64)})
    assert hex(1 << 63) in caught.value.headline


def test_a_bit_without_a_field() -> None:
    """It is kept while fields change, has a row of 64 bits, and says where it lies; tf32 of a float16 is one."""
    free = [
        bit for bit in range(512) if RESERVED[0][2] >> bit & 1 and not RESERVED[1][4] >> bit & 1 and bit >= 128
    ]  # of tiled maps alone
    raw = with_bit(TILED, free[0])
    read = decode(raw)
    assert isinstance(read, TensorMapTiled)
    changed = encode(replace(read, box_dim=(64, 64)))
    assert int.from_bytes(changed, "little") >> free[0] & 1
    (row,) = [row for row in field_table(raw) if row.label == "unknown"]
    assert (row.word, row.shift, row.width) == (free[0] // 64, 0, 64)
    assert f"word {free[0] // 64}" in describe(raw)
    assert "differs; no field, or no known value" in describe(raw)
    mixed = decode(with_bit(TILED, 64 + 16))
    assert mixed.data_type == TILED.data_type
    assert encode(mixed) == with_bit(TILED, 64 + 16)


def test_keys_of_a_kind() -> None:
    data = to_json(WIDE)
    del data["kind"]
    assert from_json(data) == WIDE
    for name in ("lower", "upper"):
        with pytest.raises(InvalidValueError) as caught:
            from_json({k: v for k, v in data.items() if k != f"pixel_box_{name}_corner_width"})
        assert "of kind 'im2col_wide' do not match" in caught.value.headline
        assert "unknown : none" in str(caught.value)
    with pytest.raises(InvalidValueError, match="missing : none"):
        from_json({**to_json(TILED), "colour": 1})


def test_numbers_of_one_digit_and_of_33_bits() -> None:
    assert read_map(" ".join("0" * 128)) == bytes(128)
    words = [int.from_bytes(encode(TILED)[i : i + 8], "little") for i in range(0, 128, 8)]
    few = [word & 0x1_FFFF_FFFF for word in words]
    few[0] |= 1 << 32
    assert read_map("{" + ", ".join(map(str, few)) + "}") == b"".join(word.to_bytes(8, "little") for word in few)


def test_a_repair_of_one_byte_is_in_the_singular() -> None:
    (text, _), *_ = find_changes(replace(TILED, global_address=0x1001))
    assert text == "globalAddress 0x1001 -> 0x1000: start 1 byte earlier, at a multiple of 16"
