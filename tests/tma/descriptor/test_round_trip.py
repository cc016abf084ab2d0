"""encode and decode are inverse, for legal requests and for any bytes."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, TmaLimitError
from cute_py.tma.descriptor import fields as f
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.encode import encode, payload
from cute_py.tma.descriptor.request import Residue, TensorMap, TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled
from cute_py.tma.descriptor.violations import violations
from tests.tma.descriptor.requests import IM2COL, TILED, WIDE, legal, wild


@given(legal)
def test_a_legal_request_comes_back(request: TensorMap) -> None:
    raw = encode(request)
    assert len(raw) == f.MAP_BYTES
    found: TensorMap = decode(raw)
    if isinstance(request, TensorMapIm2colWide):
        assert isinstance(found, TensorMapIm2col)
        found = found.as_wide(request.mode)
        assert encode(request.as_im2col()) == raw
    assert found == request
    assert payload(request) == raw[: f.PAYLOAD_BYTES]
    assert payload(decode(raw[: f.PAYLOAD_BYTES])) == raw[: f.PAYLOAD_BYTES]


@given(st.binary(min_size=128, max_size=128))
def test_any_map_comes_back(raw: bytes) -> None:
    assert encode(decode(raw)) == raw


@given(st.binary(min_size=64, max_size=64))
def test_any_payload_comes_back(raw: bytes) -> None:
    assert payload(decode(raw)) == raw


@given(st.binary(min_size=128, max_size=128))
def test_the_residue_is_what_the_fields_do_not_say(raw: bytes) -> None:
    request = decode(raw)
    residue = request.residue.bits if request.residue else 0
    again = decode((int.from_bytes(raw, "little") ^ residue).to_bytes(128, "little"))
    if request.data_type is None:  # its code is in the residue; without it the code is 0
        assert again.data_type == 0
    assert again.field_values()[1:] == request.field_values()[1:]
    assert again.residue is None or again.residue.bits % (1 << 512) == 0


@given(wild())
def test_an_illegal_request_is_refused_with_all_reasons(request: TensorMap) -> None:
    found = violations(request)
    if found:
        with pytest.raises(TmaLimitError) as caught:
            encode(request)
        assert list(caught.value.violations) == found
    else:
        assert len(encode(request)) == 128


@given(wild())
def test_repr_evaluates_back(request: TensorMap) -> None:
    import cute_py.tma.descriptor as names

    assert eval(repr(request), vars(names).copy()) == request  # the library's own text


def fuzz(count: int, seed: int) -> None:
    """Random maps of both sizes, dense and sparse, and some of other sizes: only the library's errors."""
    generator = random.Random(seed)
    for _ in range(count):
        size = generator.choice((64, 128, 128, 64, generator.randint(0, 200)))
        raw = generator.randbytes(size)
        if generator.random() < 0.5:
            mask = generator.randbytes(size)
            raw = bytes(a & b for a, b in zip(raw, mask, strict=True))
        try:
            request = decode(raw)
        except CuteError:
            assert size not in (64, 128)
        else:
            assert encode(request)[:size] == raw


def test_random_bytes_raise_nothing_else() -> None:
    """A sample; `DESCRIPTOR_FUZZ=1000000 pytest -k random_bytes` runs the million."""
    fuzz(int(os.environ.get("DESCRIPTOR_FUZZ", "4000")), seed=11)


@pytest.mark.parametrize("size", [0, 1, 63, 65, 127, 129, 256])
def test_other_sizes_are_refused(size: int) -> None:
    with pytest.raises(InvalidValueError, match=f"the tensor map has {size} bytes; must have 64 or 128"):
        decode(bytes(size))


@pytest.mark.parametrize("value", [None, 7, 1.5, object()])
def test_what_is_no_map_is_refused(value: object) -> None:
    with pytest.raises(InvalidTypeError):
        decode(value)


def test_all_ones() -> None:
    request = decode(b"\xff" * 128)
    assert isinstance(request, TensorMapIm2col)
    assert request.rank == 5 and request.data_type is None
    assert {v.rule for v in violations(request)} >= {"unknown_rank", "unknown_format", "interleave"}
    assert encode(request) == b"\xff" * 128


@pytest.mark.parametrize("code", [5, 6, 7])
def test_ranks_above_five_are_told(code: int) -> None:
    raw = bytearray(encode(TILED))
    raw[8] = raw[8] & 0x8F | code << 4
    request = decode(bytes(raw))
    assert request.rank == 5
    assert [v.message for v in violations(request) if v.rule == "unknown_rank"] == [
        f"rank field = {code}; must be 0 to 4 (rank - 1)"
    ]
    assert encode(request) == bytes(raw)


def test_unknown_bits_are_kept_when_a_field_changes() -> None:
    raw = bytearray(encode(TILED))
    raw[10] |= 0x20  # bit 21 of word 1, which some drivers set
    request = decode(bytes(raw))
    assert isinstance(request, TensorMapTiled)
    assert request.residue is not None
    assert request.residue.unknown_words == {1: 1 << 21}
    moved = replace(request, global_address=0x2000)
    expected = bytearray(encode(replace(TILED, global_address=0x2000)))
    expected[10] |= 0x20
    assert encode(moved) == bytes(expected)


def test_a_changed_request_obeys_the_rules_again() -> None:
    raw = bytes([1]) + encode(TILED)[1:]  # an unaligned address
    request = decode(raw)
    assert encode(request) == raw
    with pytest.raises(TmaLimitError, match="globalAddress = 0x1001"):
        encode(replace(request, global_dim=(512, 1000)))


def test_stale_notes_go_when_a_field_changes() -> None:
    raw = encode(TILED)[:64] + bytes(64)
    request = decode(raw)
    assert request.residue is not None and encode(request) == raw
    assert encode(replace(request, global_address=0x2000)) == encode(replace(TILED, global_address=0x2000))


def test_a_wide_map_decodes_as_im2col() -> None:
    found = decode(encode(WIDE))
    assert isinstance(found, TensorMapIm2col)
    assert found.pixel_box_lower_corner == (-1, 0)
    assert found.as_wide(0) == WIDE
    assert found.as_wide(1) == replace(WIDE, mode=1)
    with pytest.raises(InvalidValueError, match="an im2col-wide map can only have corners along W"):
        IM2COL.as_wide()


def test_a_residue_must_be_one() -> None:
    with pytest.raises(InvalidTypeError, match="must be a Residue"):
        replace(TILED, residue=3)
    assert Residue(0, ()).unknown_words == {}


@pytest.mark.parametrize(
    "wrong",
    [{"global_dim": (-5, 8)}, {"global_dim": (1,) * 7}, {"swizzle": 9}, {"data_type": 99}, {"global_strides": ()}],
)
def test_a_residue_made_by_hand_holds_no_values_that_no_map_has(wrong: dict[str, Any]) -> None:
    request = replace(TILED, **wrong)
    with pytest.raises(TmaLimitError):
        encode(replace(request, residue=Residue(0, request.field_values())))
