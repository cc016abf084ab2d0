"""The 24-byte record, its flags word, and its handles."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.tma.dialect.record import (
    FLAG_ROWS,
    RECORD_BYTES,
    RESERVED_BITS,
    SWIZZLE_MODE_OF,
    InternTable,
    TmaFlags,
    TmaPartitionResult,
    interned_objects,
)
from tests.tma.dialect.partition_operands import SWIZZLED, Operands

U64 = st.integers(0, 2**64 - 1)
RECORDS = st.builds(
    TmaPartitionResult,
    U64,
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**14 - 1).map(TmaFlags),
    st.sampled_from((0, 2, 3)),
    st.integers(1, 5),
    U64,
)


@given(RECORDS)
def test_round_trip(record: TmaPartitionResult) -> None:
    data = record.pack()
    assert len(data) == RECORD_BYTES == 24
    assert TmaPartitionResult.unpack(data) == record
    assert TmaPartitionResult.unpack(memoryview(data)).pack() == data


FIELDS = [
    ("tma_tensor_type", 0x00, "<Q", 0x1122334455667788),
    ("tile_element_count", 0x08, "<I", 0x01020304),
    ("flags", 0x0C, "<H", TmaFlags(0x2A55)),
    ("swizzle_mode", 0x0E, "<B", 3),
    ("rank", 0x0F, "<B", 5),
    ("non_exec_atom_body", 0x10, "<Q", 0x8877665544332211),
]


@pytest.mark.parametrize(("name", "offset", "form", "value"), FIELDS)
def test_offsets_are_little_endian(name: str, offset: int, form: str, value: int) -> None:
    base: dict[str, Any] = dict.fromkeys((f[0] for f in FIELDS), 0) | {"rank": 1}
    data = TmaPartitionResult(**(base | {name: value})).pack()
    blank = TmaPartitionResult(**base).pack()
    width = struct.calcsize(form)
    assert struct.unpack_from(form, data, offset) == (int(value),)
    assert data[:offset] + data[offset + width :] == blank[:offset] + blank[offset + width :]


BAD = [
    ({"rank": 0}, "rank = 0; must be 1 to 5"),
    ({"rank": 6}, "rank = 6; must be 1 to 5"),
    ({"swizzle_mode": 1}, "swizzle_mode = 1; must be 0 (none), 2 (128 bytes) or 3 (32 or 64 bytes)"),
    ({"flags": 1 << 14}, "flags = 0x4000; bits 14 and 15 are reserved and must be 0"),
    ({"flags": 1 << 15}, "flags = 0x8000; bits 14 and 15 are reserved and must be 0"),
    ({"flags": 1 << 16}, "flags = 65536; must be 0 to 65535"),
    ({"tile_element_count": 2**32}, "tile_element_count = 4294967296; must be 0 to 4294967295"),
    ({"tma_tensor_type": -1}, "tma_tensor_type = -1; must be 0 to 18446744073709551615"),
    ({"non_exec_atom_body": 2**64}, "non_exec_atom_body = 18446744073709551616; must be 0 to 18446744073709551615"),
]


@pytest.mark.parametrize(("change", "text"), BAD)
def test_fields_out_of_range(change: dict[str, int], text: str) -> None:
    good: dict[str, Any] = {
        "tma_tensor_type": 8,
        "tile_element_count": 1,
        "flags": TmaFlags(0),
        "swizzle_mode": 0,
        "rank": 1,
        "non_exec_atom_body": 8,
    }
    with pytest.raises(InvalidValueError) as refusal:
        TmaPartitionResult(**(good | change))
    assert str(refusal.value) == text


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_fields_are_integers(value: Any) -> None:
    with pytest.raises(InvalidTypeError):
        TmaPartitionResult(value, 1, TmaFlags(0), 0, 1, 8)


def test_other_lengths() -> None:
    for length in (0, 23, 25, 48):
        with pytest.raises(InvalidValueError, match=f"the record has {length} bytes; must have 24"):
            TmaPartitionResult.unpack(bytes(length))
    with pytest.raises(InvalidTypeError, match="a record must be 24 bytes, got list"):
        TmaPartitionResult.unpack([0] * 24)


def test_handles_resolve_to_objects_after_a_round_trip() -> None:
    [record] = Operands(smem=SWIZZLED).partition()
    again = TmaPartitionResult.unpack(record.pack())
    assert again.tensor_type is record.tensor_type
    assert again.body is record.body
    assert again.body.tensor_type == again.tensor_type
    assert (again.cu_swizzle, again.swizzle_mode, again.rank) == (3, 2, again.body.rank)
    assert record.tma_tensor_type % 8 == record.non_exec_atom_body % 8 == 0


def test_a_foreign_handle() -> None:
    record = TmaPartitionResult(1, 1, TmaFlags(0), 0, 1, 3)
    for ask in (lambda: record.body, lambda: record.tensor_type, lambda: record.cu_swizzle):
        with pytest.raises(InvalidValueError, match="no object has the handle"):
            ask()
    with pytest.raises(InvalidTypeError):
        interned_objects().resolve("8")  # type: ignore[arg-type]


class SameText:
    """Objects whose texts are equal and that are not."""

    def __repr__(self) -> str:
        return "same"


def test_equal_texts_of_unequal_objects_get_two_handles() -> None:
    table, first, second = InternTable(), SameText(), SameText()
    a, b = table.intern(first), table.intern(second)
    assert a != b
    assert table.intern(first) == a
    assert table.resolve(a) is first
    assert table.resolve(b) is second


def test_swizzle_codes_and_modes() -> None:
    assert SWIZZLE_MODE_OF == {0: 0, 1: 3, 2: 3, 3: 2, 4: 2, 6: 2}


def test_flag_rows_are_the_bits() -> None:
    assert [row.bit for row in FLAG_ROWS] == list(range(14))
    assert [row.name for row in FLAG_ROWS] == [TmaFlags(1 << i).name.lower() for i in range(14)]  # type: ignore[union-attr]
    assert sum(int(flag) for flag in TmaFlags) == (1 << 16) - 1 - RESERVED_BITS


@given(st.integers(0, 2**14 - 1))
def test_describe_has_a_line_per_bit(value: int) -> None:
    text = TmaFlags(value).describe()
    lines = text.splitlines()
    if value == 0:
        assert text == "no flag is set"
        return
    assert [int(line[4:6]) for line in lines] == [i for i in range(14) if value >> i & 1]
