"""Differences, slots, the eleven fields, the table of bits, and requests as plain data."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, TmaLimitError
from cute_py.tma.descriptor.data_types import Interleave, TensorMapDataType, TensorMapSwizzle
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.describe import SLOTS, describe, logical_slots, seed_fields
from cute_py.tma.descriptor.diff import diff, field_table
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.plain_data import from_json, to_json
from cute_py.tma.descriptor.replace import replace as rewritten
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2colWide, as_member
from tests.tma.descriptor.requests import IM2COL, TILED, WIDE, near_legal, wild

MAP = encode(TILED)
ANY_MAP = st.binary(min_size=128, max_size=128)


@given(ANY_MAP, ANY_MAP)
def test_a_difference_has_every_bit(a: bytes, b: bytes) -> None:
    got = diff(a, b)
    changed = int.from_bytes(a, "little") ^ int.from_bytes(b, "little")
    assert sum(1 << (64 * word + bit) for word, bit in got.bits) == changed
    assert bool(got) is (a != b)
    assert not got or got.fields, "each differing bit is in some row"
    assert str(got)


@given(ANY_MAP, st.integers(0, 1023))
def test_one_bit_is_one_row(raw: bytes, position: int) -> None:
    other = (int.from_bytes(raw, "little") ^ 1 << position).to_bytes(128, "little")
    got = diff(raw, other)
    assert got.bits == ((position // 64, position % 64),)
    assert got.same_copies is (position >= 512)


def test_differences_of_requests_and_payloads() -> None:
    other = replace(TILED, data_type=9, global_dim=(512, 1000))
    got = diff(TILED, other)
    assert [str(field) for field in got.fields] == [
        "format w1[7:10]: 6 -> 10 (FLOAT16 -> BFLOAT16)",
        "global_dim[1] w4[32:63]: 1024 -> 1000 elements",
    ]
    assert not diff(MAP, MAP) and str(diff(MAP, MAP)) == "equal in all 128 bytes"
    assert diff(MAP[:64], TILED).compared == 64
    stale = MAP[:64] + bytes(64)
    assert diff(MAP, stale).same_copies
    assert str(diff(MAP, stale)).endswith("the hardware reads none of these bits")
    with pytest.raises(TmaLimitError):
        diff(TILED, replace(TILED, box_dim=(65, 1)))


def test_tiled_against_im2col() -> None:
    got = {field.label: (field.first, field.second) for field in diff(TILED, IM2COL).fields}
    assert got["load_mode"] == (0, 1)
    assert got["box_dim[1]"] == (128, None)
    assert got["pixels_per_column"] == (None, 128)


@given(ANY_MAP)
def test_the_table_of_bits_is_complete(raw: bytes) -> None:
    rebuilt = 0
    for row in field_table(raw):
        rebuilt |= row.raw << (64 * row.word + row.shift)
    assert rebuilt == int.from_bytes(raw, "little")


@given(ANY_MAP)
def test_any_map_can_be_looked_at(raw: bytes) -> None:
    for view in ("summary", "fields", "seed001", "slots"):
        assert describe(raw, view)  # type: ignore[arg-type]
        assert describe(raw[:64], view)  # type: ignore[arg-type]


@given(st.one_of(near_legal, wild()))
def test_any_request_can_be_summed_up(request: TensorMap) -> None:
    assert describe(request).startswith(request.KIND.replace("_", "-"))


def test_an_unknown_view_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="unknown view 'hex'"):
        describe(TILED, "hex")  # type: ignore[arg-type]


def test_the_eight_slots() -> None:
    slots = logical_slots(MAP)
    assert [(slot.name, slot.offset) for slot in slots] == [
        ("tensor_base_ptr", 0),
        ("fmt_dim_stride_packed", 8),
        ("box_size_packed", 16),
        ("elem_stride_packed", 24),
        ("load_mode_packed", 32),
        ("interleave_fill", 40),
        ("l2_sector_promo", 48),
        ("reserved_future", 56),
    ]
    assert [slot.device_mutable for slot in slots] == [True, True, False, True, False, False, False, False]
    assert all(slot.template.startswith("tensormap.replace.tile.") for slot in slots if slot.device_mutable)
    assert dict(slots[1].lanes) == {"format": 6, "dim[0]": 512, "dim[1]": 1024}
    assert dict(slots[3].lanes) == {"stride[1]": 1024}
    assert all(row.measured for row in SLOTS)


def test_the_operation_carries_the_rank() -> None:
    assert len(logical_slots(encode(IM2COL))[1].lanes) == 5
    assert len(logical_slots(encode(IM2COL), rank=3)[1].lanes) == 4
    for rank in (0, 5, 6):
        with pytest.raises(InvalidValueError, match=f"the operation has rank {rank}; must be 1 to 4"):
            logical_slots(encode(IM2COL), rank=rank)


def test_a_slot_write_lands_in_its_lane() -> None:
    for field, value, ordinal, slot, lane in (
        ("global_address", 0x40, 0, 0, "address"),
        ("global_dim", 77, 1, 1, "dim[1]"),
        ("global_stride", 4096, 0, 3, "stride[1]"),
    ):
        after = logical_slots(rewritten(MAP, field, value, ordinal))
        assert dict(after[slot].lanes)[lane] == value
        assert [a.lanes for i, a in enumerate(after) if i != slot] == [
            b.lanes for i, b in enumerate(logical_slots(MAP)) if i != slot
        ]


def test_the_eleven_fields() -> None:
    rows = seed_fields(MAP)
    assert len(rows) == 11
    assert [row.name for row in rows if row.mutable] == [
        "global base address",
        "per-axis dimension sizes",
        "per-axis strides",
    ]
    assert {row.name: row.value for row in seed_fields(encode(IM2COL))}["format"] == "im2col"


@given(st.one_of(near_legal, wild()))
def test_json_and_back(request: TensorMap) -> None:
    assert from_json(json.loads(json.dumps(to_json(request)))) == request


@given(ANY_MAP)
def test_a_map_survives_json(raw: bytes) -> None:
    request = from_json(json.loads(json.dumps(to_json(decode(raw)))))
    assert request == decode(raw)
    assert encode(request) == raw


def test_an_edited_json_obeys_the_rules() -> None:
    data = to_json(decode(bytes([1]) + MAP[1:]))
    assert "map" in data
    data["global_dim"] = [512, 1000]
    with pytest.raises(TmaLimitError, match="globalAddress = 0x1001"):
        encode(from_json(data))


def test_json_takes_names_in_any_case() -> None:
    data = {**to_json(TILED), "data_type": "bfloat16", "swizzle": "128B", "interleave": "none"}
    del data["kind"]
    assert from_json(data) == replace(TILED, data_type=9)
    assert from_json({**to_json(WIDE), "mode": "w128"}) == replace(WIDE, mode=1)
    wide = {key: value for key, value in to_json(WIDE).items() if key != "kind"}
    assert isinstance(from_json(wide), TensorMapIm2colWide)
    assert as_member(TensorMapDataType, "16u4_align8b", "data_type") == 13
    assert as_member(TensorMapSwizzle, "B128_ATOM_32B", "swizzle") == 4
    assert as_member(Interleave, "16B", "interleave") is Interleave.B16


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ([], InvalidTypeError, "a tensor map request must be a mapping, got list"),
        ({"kind": "round"}, InvalidValueError, "unknown kind 'round'"),
        ({}, InvalidValueError, "keys of a request of kind 'tiled' do not match"),
        ({**to_json(TILED), "box": [1]}, InvalidValueError, "do not match"),
        ({**to_json(TILED), "swizzle": "256B"}, InvalidValueError, "swizzle = '256B' is not a known name"),
        ({**to_json(TILED), "swizzle": 1.5}, InvalidTypeError, "swizzle must be an integer, got float 1.5"),
        ({**to_json(TILED), "map": "00"}, CuteError, "words|bytes"),
    ],
)
def test_json_that_is_refused(data: Any, error: type[CuteError], message: str) -> None:
    with pytest.raises(error, match=message):
        from_json(data)
