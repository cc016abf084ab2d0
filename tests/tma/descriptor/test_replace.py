"""tensormap.replace and the rebind of a kernel, on bytes."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, TmaBuildError, UnknownFactError
from cute_py.tma.descriptor.data_types import TensorMapDataType
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.replace import (
    ELEMTYPES,
    REPLACE_FIELDS,
    RebindStep,
    rebind,
    rebind_steps,
    repaired,
    replace,
    update_tma_descriptor,
)
from cute_py.tma.descriptor.request import TensorMapTiled
from tests.each import each_of
from tests.tma.descriptor.requests import IM2COL, TILED

MAP = encode(TILED)


def replacements() -> st.SearchStrategy[tuple[Any, int, int]]:
    """A field, a value that fits its register or is one of its immediates, and one of its ordinals."""
    rows = st.sampled_from(REPLACE_FIELDS)
    return rows.flatmap(
        lambda row: st.tuples(
            st.just(row),
            st.integers(0, row.values - 1 if row.values else (1 << row.value_bits) - 1),
            st.integers(0, max(row.ordinals - 1, 0)),
        )
    )


@given(replacements(), st.binary(min_size=128, max_size=128))
def test_a_replacement_touches_its_field_only(replacement: tuple[Any, int, int], raw: bytes) -> None:
    from cute_py.tma.descriptor import fields as f

    row, value, ordinal = replacement
    after = replace(raw, row.name, value, ordinal)
    allowed = sum(
        field.mask
        for field in f.FIELDS
        if field.name in (row.target, row.target.replace("low", "high"), "tf32_round" if row.name == "elemtype" else "")
        and field.mode in (None, ordinal, ordinal + 1)
    )
    moved = int.from_bytes(raw, "little") ^ int.from_bytes(after, "little")
    assert moved & ~allowed == 0
    assert after[64:] == raw[64:]
    assert replace(after, row.name, value, ordinal) == after, "twice is once"


@each_of(
    ("field", "value", "ordinal", "change"),
    [
        ("global_address", 0x2000, 0, {"global_address": 0x2000}),
        ("global_dim", 7, 1, {"global_dim": (512, 7)}),
        ("global_dim", 0, 1, {"global_dim": (512, 1 << 32)}),
        ("global_stride", 1 << 39, 0, {"global_strides": (1 << 39,)}),
        ("box_dim", 32, 0, {"box_dim": (32, 128)}),
        ("box_dim", 256, 1, {"box_dim": (64, 256)}),
        ("element_stride", 8, 1, {"element_strides": (1, 8)}),
        ("element_stride", 0, 1, {"element_strides": (1, 8)}),
        ("elemtype", 10, 0, {"data_type": TensorMapDataType.BFLOAT16}),
        ("interleave_layout", 1, 0, {"interleave": 1}),
        ("swizzle_mode", 1, 0, {"swizzle": 1}),
        ("fill_mode", 1, 0, {"oob_fill": 1}),
    ],
)
def test_a_replacement_as_a_request(field: str, value: int, ordinal: int, change: dict[str, Any]) -> None:
    after = decode(replace(MAP[:64], field, value, ordinal))
    assert changed(after, residue=None) == changed(TILED, **change)


def test_rank_is_rank_minus_one() -> None:
    assert decode(replace(MAP, "rank", 3)).rank == 4


def test_elemtype_leaves_the_tf32_bit() -> None:
    tf32 = encode(changed(TILED, data_type=11, box_dim=(32, 128)))
    after = decode(replace(tf32, "elemtype", 7))
    assert after.data_type is TensorMapDataType.TFLOAT32, "float32 asked, tf32 got"
    fresh = encode(changed(TILED, data_type=7, box_dim=(32, 128)))
    assert decode(replace(fresh, "elemtype", 11)).data_type is TensorMapDataType.TFLOAT32
    assert [name for name, *_ in ELEMTYPES][7:11] == ["f32", "f32.ftz", "f64", "bf16"]


def test_im2col_maps_can_be_rewritten_too() -> None:
    after = decode(replace(encode(IM2COL), "global_address", 0x4000))
    assert changed(after, residue=None) == changed(IM2COL, global_address=0x4000)


@each_of(
    ("field", "value", "ordinal", "error", "message"),
    [
        ("shape", 1, 0, InvalidValueError, "tensormap.replace has no field 'shape'"),
        ("global_dim", 1, 5, InvalidValueError, "ordinal of global_dim = 5; must be 0 to 4"),
        ("global_stride", 16, 4, InvalidValueError, "ordinal of global_stride = 4; must be 0 to 3"),
        ("rank", 1, 1, InvalidValueError, "rank has no ordinals"),
        ("global_dim", -1, 0, InvalidValueError, "global_dim = -1; must be 0 to 4294967295"),
        ("global_dim", 1 << 32, 0, InvalidValueError, "must be 0 to 4294967295"),
        ("global_address", 1 << 64, 0, InvalidValueError, "must be 0 to 18446744073709551615"),
        ("global_dim", 1.5, 0, InvalidTypeError, "global_dim must be an integer, got float 1.5"),
        ("global_dim", True, 0, InvalidTypeError, "global_dim must be an integer, got bool True"),
        ("global_dim", 1, -1, InvalidValueError, "ordinal of global_dim = -1; must be 0 to 4"),
        ("interleave_layout", 3, 0, InvalidValueError, "interleave_layout = 3; must be 0 to 2"),
        ("fill_mode", 2, 0, InvalidValueError, "fill_mode = 2; must be 0 to 1"),
        ("elemtype", 16, 0, InvalidValueError, "elemtype = 16; must be 0 to 12"),
        ("elemtype", 13, 0, UnknownFactError, "the bits of a tensor map that encode 16U4_ALIGN8B are unknown"),
        ("elemtype", 15, 0, UnknownFactError, "the bits of a tensor map that encode 16U6_ALIGN16B are unknown"),
        ("swizzle_mode", 4, 0, UnknownFactError, "the bits of a tensor map that encode 96B are unknown"),
        ("swizzle_mode", 5, 0, InvalidValueError, "swizzle_mode = 5; must be 0 to 3"),
        (
            "swizzle_atomicity",
            1,
            0,
            UnknownFactError,
            "the bits of a tensor map that encode swizzle_atomicity are unknown",
        ),
    ],
)
def test_what_replace_refuses(field: str, value: Any, ordinal: int, error: type[CuteError], message: str) -> None:
    with pytest.raises(error, match=message):
        replace(MAP, field, value, ordinal)


FIELDS_OF_PTX = [
    # field, ordinals, largest value: of a register, or the last immediate that was measured
    ("global_address", 0, (1 << 64) - 1),
    ("rank", 0, (1 << 32) - 1),
    ("box_dim", 5, (1 << 32) - 1),
    ("global_dim", 5, (1 << 32) - 1),
    ("global_stride", 4, (1 << 64) - 1),
    ("element_stride", 5, (1 << 32) - 1),
    ("elemtype", 0, 12),
    ("interleave_layout", 0, 2),
    ("swizzle_mode", 0, 3),
    ("fill_mode", 0, 1),
]


@each_of(("field", "ordinals", "largest"), FIELDS_OF_PTX)
def test_a_field_takes_its_ordinals_and_values_and_no_more(field: str, ordinals: int, largest: int) -> None:
    row = next(row for row in REPLACE_FIELDS if row.name == field)
    assert (row.ordinals, row.values) == (ordinals, largest + 1 if row.value_bits == 0 else 0)
    last = max(ordinals - 1, 0)
    for value in (0, largest):
        replace(MAP, field, value, last)
    with pytest.raises(CuteError):
        replace(MAP, field, largest + 1, last)
    beyond = f"must be 0 to {last}" if ordinals else f"{field} has no ordinals"
    with pytest.raises(InvalidValueError, match=beyond):
        replace(MAP, field, 0, last + 1)


def test_every_field_is_tried_at_its_ends() -> None:
    assert [field for field, _, _ in FIELDS_OF_PTX] == [row.name for row in REPLACE_FIELDS]


def test_rebind_is_address_sizes_strides() -> None:
    assert rebind_steps(0x2000, (64, 32, 2), (128, 4096)) == [
        RebindStep("global_address", 0x2000, 0),
        RebindStep("global_dim", 64, 0),
        RebindStep("global_dim", 32, 1),
        RebindStep("global_dim", 2, 2),
        RebindStep("global_stride", 128, 0),
        RebindStep("global_stride", 4096, 1),
    ]
    bound = changed(TILED, global_address=0x2000, global_dim=(64, 32), global_strides=(128,))
    assert rebind(MAP, 0x2000, (64, 32), (128,)) == encode(bound)
    assert rebind(MAP[:64], 0x2000, (64, 32), (128,)) == encode(bound)[:64]


@pytest.mark.parametrize(
    ("extents", "strides", "message"),
    [
        ((), (), "the rank of extents is 0; must be 1 to 5"),
        ((1,) * 6, (16,) * 5, "the rank of extents is 6; must be 1 to 5"),
        ((64, 32), (), "strides has 0 entries for rank 2; must have 1"),
        ((64, 32, 2), (128, 4096), "rebind got 3 extents for a map of rank 2, but it can't change the rank"),
    ],
)
def test_what_rebind_refuses(extents: tuple[int, ...], strides: tuple[int, ...], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        rebind(MAP, 0, extents, strides)


def test_the_three_updates() -> None:
    assert update_tma_descriptor(MAP, "UPDATE_BASE_POINTER", 0, 64) == replace(MAP, "global_address", 64)
    assert update_tma_descriptor(MAP, "UPDATE_DIM", 1, 9) == replace(MAP, "global_dim", 9, 1)
    assert update_tma_descriptor(MAP, "UPDATE_STRIDE", 1, 48) == replace(MAP, "global_stride", 48, 0)
    with pytest.raises(TmaBuildError, match="not device-mutable"):
        update_tma_descriptor(MAP, "UPDATE_STRIDE", 0, 48)
    for kind in ("UPDATE_DIM", "UPDATE_STRIDE"):  # of a mode that the map lacks
        for axis in (2, 4, 5, 9):
            with pytest.raises(InvalidValueError, match=f"axis = {axis}; must be 0 to 1, the modes of the map"):
                update_tma_descriptor(MAP, kind, axis, 48)


@pytest.mark.parametrize("kind", ["box_dim", "swizzle_mode", "rank", "elemtype", "", None, 3])
def test_other_updates_are_refused_in_the_pages_words(kind: Any) -> None:
    with pytest.raises(TmaBuildError) as caught:
        update_tma_descriptor(MAP, kind, 0, 1)
    assert caught.value.headline == "TMA descriptor field is not device-mutable"


def test_bit_85_is_cleared_for_small_tensors_and_old_drivers() -> None:
    small = changed(TILED, global_dim=(512, 64))
    large = changed(TILED, global_dim=(512, 128))  # 131,072 bytes
    for request, driver, cleared in (
        (small, 13000, True),
        (small, 13030, True),
        (small, 13040, False),
        (large, 13000, False),
    ):
        good = encode(request)
        bad = good[:10] + bytes([good[10] | 0x20]) + good[11:]
        assert repaired(bad, driver) == (good if cleared else bad)
        assert encode(decode(bad), driver=driver) == (good if cleared else bad)
        assert encode(decode(bad)) == bad
    assert encode(TILED, driver=12080) == encode(TILED)
    for driver in ("13", 13.0, True):
        with pytest.raises(InvalidTypeError, match="driver, a version such as 13000, must be an integer"):
            encode(TILED, driver=driver)  # type: ignore[arg-type]


def test_a_map_of_one_row_has_its_own_extent() -> None:
    from cute_py.tma.descriptor.encode import QUIRKS, clear_mask, extent_bytes

    assert extent_bytes(TensorMapTiled(0, 0, (16,), (), (16,))) == 16
    assert extent_bytes(TILED) == 1023 * 1024 + 1024
    assert clear_mask(TILED, 13000) == 0
    assert all(row.source and row.effect and row.condition for row in QUIRKS)
