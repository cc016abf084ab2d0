"""Bytes and rows of one instruction, against what the hardware delivered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cute_py.errors import UnknownFactError
from cute_py.tma.descriptor.encode import note_box_bytes
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapTiled
from cute_py.tma.descriptor.transfer import (
    element_bytes,
    is_sound,
    row_pitch,
    shared_row_bytes,
    transaction_bytes,
    visited,
)
from tests.oracle.records import rows
from tests.tma.descriptor.requests import IM2COL, TILED, WIDE


def request_of(row: dict[str, Any]) -> TensorMap:
    """The request of a recorded load; `address` is an offset, so a base that any offset fits is added."""
    start = (row["data_type"], row["address"], row["dims"], row["strides"])
    end = (row["element_strides"], row["interleave"], row["swizzle"], row["l2_promotion"], row["oob_fill"])
    if "box" in row:
        return TensorMapTiled(*start, row["box"], *end)
    corners = (row["lower_corner"], row["upper_corner"])
    return TensorMapIm2col(*start, *corners, row["channels_per_pixel"], row["pixels_per_column"], *end)


@pytest.mark.parametrize("name", ["h200_load_tile", "h200_load_im2col", "h200_load_interleaved"])
def test_bytes_are_those_that_the_barrier_saw(name: str) -> None:
    """A load completes if its barrier expects these bytes; one that expected more did not complete."""
    completed = 0
    for row in rows(name):
        delivered = transaction_bytes(request_of(row))
        if row["completed"]:
            assert delivered == row["tx"], row
            completed += 1
        else:
            assert delivered < row["tx"], row
    assert completed > 100


@pytest.mark.parametrize(
    ("change", "delivered", "note"),
    [
        ({}, 64 * 128 * 2, 64 * 128 * 2),
        ({"element_strides": (1, 3)}, 64 * 43 * 2, 64 * 42 * 2),
        ({"element_strides": (8, 1)}, 64 * 128 * 2, 8 * 128 * 2),
        ({"data_type": 8, "box_dim": (16, 5)}, 16 * 5 * 8, 16 * 5 * 8),
    ],
)
def test_the_drivers_note_is_another_number(change: dict[str, Any], delivered: int, note: int) -> None:
    request = replace(TILED, **change)
    assert transaction_bytes(request) == delivered
    assert note_box_bytes(request) == note


def test_rows_and_pitch() -> None:
    assert (shared_row_bytes(TILED), row_pitch(TILED)) == (128, 128)
    narrow = replace(TILED, box_dim=(16, 8))
    assert (shared_row_bytes(narrow), row_pitch(narrow)) == (32, 128)
    assert row_pitch(replace(narrow, swizzle=0)) == 32
    sliced = TensorMapTiled(6, 0, (16, 8, 4), (256, 2048), (16, 4, 1), interleave=2, swizzle=1)
    assert (shared_row_bytes(sliced), row_pitch(sliced), visited(sliced)) == (32, 32, (16, 1, 1))
    assert (shared_row_bytes(IM2COL), transaction_bytes(IM2COL)) == (128, 64 * 128 * 2)


def test_what_is_unknown_is_said() -> None:
    with pytest.raises(UnknownFactError, match="the transaction bytes of im2col-wide loads have not been measured"):
        transaction_bytes(WIDE)
    for number in (None, 13, 99):
        with pytest.raises(UnknownFactError, match=f"an element of format {number}"):
            element_bytes(replace(TILED, data_type=number))
        assert note_box_bytes(replace(TILED, data_type=number)) == 0


def test_soundness() -> None:
    assert is_sound(TILED) and is_sound(IM2COL)
    assert not is_sound(replace(TILED, box_dim=(64,)))
    assert not is_sound(replace(TILED, element_strides=(1, 0)))
