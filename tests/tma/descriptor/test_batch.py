"""encode_many is encode, map by map, and refuses what encode refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, TmaLimitError, UnknownFactError
from cute_py.tma.descriptor import batch
from cute_py.tma.descriptor.batch import CHUNK, FEW, broken_rows, columns_of, encode_many
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.limits import architecture
from cute_py.tma.descriptor.request import TensorMap
from cute_py.tma.descriptor.violations import violations
from tests.each import each_of
from tests.tma.descriptor.requests import IM2COL, TILED, WIDE, legal, near_legal, wild


@given(st.lists(legal, min_size=1, max_size=6))
def test_requests_of_any_kind(requests: list[TensorMap]) -> None:
    got = encode_many(requests)
    assert got.shape == (len(requests), 128) and got.dtype == numpy.uint8
    assert [bytes(row) for row in got] == [encode(request) for request in requests]


@given(st.one_of(near_legal, wild()), st.sampled_from(["sm_90a", "sm_100a", "sm_120a"]))
def test_broken_rows_are_those_with_violations(request: TensorMap, arch: str) -> None:
    table = columns_of((request, request))
    if table is None:
        return
    unknown = request.swizzle in (4, 5, 6) or request.data_type in (13, 14, 15)
    expected = bool(violations(request, arch=arch)) or unknown
    assert broken_rows(table, architecture(arch)).tolist() == [expected] * 2


@given(near_legal)
def test_a_batch_of_one_field(request: TensorMap) -> None:
    if request.KIND != "tiled":
        return
    fields = {name: getattr(request, name) for name in request.FIELDS}
    addresses = [request.global_address, request.global_address]
    if violations(request):
        with pytest.raises(TmaLimitError) as caught:
            encode_many({**fields, "global_address": addresses})
        assert caught.value.violations[: len(violations(request))] == tuple(violations(request))
    else:
        got = encode_many({**fields, "global_address": addresses})
        assert [bytes(row) for row in got] == [encode(request)] * 2


def test_arrays_vary_where_they_have_rows() -> None:
    count = CHUNK + 7
    generator = numpy.random.default_rng(3)
    arrays: dict[str, Any] = {
        "data_type": 6,
        "global_address": generator.integers(0, 1 << 50, count) * 16,
        "global_dim": generator.integers(1, 1 << 32, (count, 3), endpoint=True),
        "global_strides": generator.integers(0, 1 << 36, (count, 2)) * 16,
        "box_dim": (64, 8, 2),
        "element_strides": generator.integers(1, 8, (count, 3), endpoint=True),
        "swizzle": 3,
        "l2_promotion": generator.integers(0, 4, count),
    }
    got = encode_many(arrays)
    for index in (0, 1, CHUNK - 1, CHUNK, count - 1):
        one = replace(
            TILED,
            global_address=int(arrays["global_address"][index]),
            global_dim=arrays["global_dim"][index],
            global_strides=arrays["global_strides"][index],
            box_dim=(64, 8, 2),
            element_strides=arrays["element_strides"][index],
            l2_promotion=arrays["l2_promotion"][index],
        )
        assert bytes(got[index]) == encode(one)


@pytest.mark.parametrize("request_", [TILED, IM2COL, WIDE], ids=lambda request: request.KIND)
def test_each_kind_is_known_by_its_fields(request_: TensorMap) -> None:
    fields = {name: getattr(request_, name) for name in request_.FIELDS}
    assert bytes(encode_many(fields)[0]) == encode(request_)
    assert bytes(encode_many({**fields, "kind": request_.KIND})[0]) == encode(request_)


def test_optional_fields_may_be_left_out() -> None:
    minimal = {"data_type": 0, "global_address": 64, "global_dim": [16], "global_strides": [], "box_dim": [16]}
    assert encode_many(minimal).shape == (1, 128)


def test_no_maps() -> None:
    assert encode_many([]).shape == (0, 128)
    empty = {**_tiled(), "global_address": numpy.zeros(0, numpy.int64)}
    assert encode_many(empty).shape == (0, 128)


def _tiled() -> dict[str, Any]:
    return {name: getattr(TILED, name) for name in TILED.FIELDS}


def test_unsigned_and_large_numbers() -> None:
    high = numpy.array([1 << 56, (1 << 57) - 16], numpy.uint64)
    assert [bytes(row[:8]) for row in encode_many({**_tiled(), "global_address": high})] == [
        int(address).to_bytes(8, "little") for address in high
    ]
    for address in (numpy.array([1 << 63], numpy.uint64), [1 << 64], [1 << 100, 16], [-16]):
        with pytest.raises(TmaLimitError):
            encode_many({**_tiled(), "global_address": address})


def test_the_error_says_which_maps() -> None:
    addresses = numpy.arange(100) * 16
    addresses[[3, 50]] += 8
    with pytest.raises(TmaLimitError) as caught:
        encode_many({**_tiled(), "global_address": addresses})
    assert str(caught.value) == (
        "2 of 100 maps break rules of sm_90a\n"
        "  map 3  : globalAddress = 0x38; must be a multiple of 16\n"
        "  map 50 : globalAddress = 0x328; must be a multiple of 16"
    )
    assert [violation.rule for violation in caught.value.violations] == ["address_alignment"] * 2
    with pytest.raises(TmaLimitError, match="100 of 100 maps") as caught:
        encode_many({**_tiled(), "global_address": numpy.arange(100) * 16 + 1})
    assert caught.value.facts["more"] == "92 maps"


@each_of(
    ("change", "error", "message"),
    [
        ({"global_address": [1.5]}, InvalidTypeError, "global_address has elements of type float64"),
        ({"global_address": "16"}, InvalidTypeError, "must be integers"),
        ({"global_address": [True]}, InvalidTypeError, "elements of type bool"),
        ({"global_address": [[16]]}, InvalidValueError, "global_address has 2 axes; must have 0 or 1"),
        ({"global_dim": 16}, InvalidValueError, "global_dim has 0 axes; must have 1 or 2"),
        ({"global_dim": [[1, 2], [3]]}, InvalidValueError, "rows of different lengths"),
        ({"global_address": [16, 32], "l2_promotion": [0, 1, 2]}, InvalidValueError, "different numbers of maps"),
        ({"box": (64, 8)}, InvalidValueError, "names of fields of kind 'tiled' do not match"),
        ({"kind": "round"}, InvalidValueError, "unknown kind 'round'"),
        ({"global_dim": [512, 64, 2]}, TmaLimitError, "1 of 1 maps break rules"),
    ],
)
def test_what_is_refused(change: dict[str, Any], error: type[CuteError], message: str) -> None:
    with pytest.raises(error, match=message):
        encode_many({**_tiled(), **change})


def test_neither_fields_nor_requests() -> None:
    for wrong in (3, None):
        with pytest.raises(InvalidTypeError, match="must be a mapping"):
            encode_many(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="expected a tensor map request, got int"):
        encode_many([3])  # type: ignore[list-item]


def test_unknown_bits_stay_unknown() -> None:
    with pytest.raises(UnknownFactError, match="the bits of a tensor map that encode 128B_ATOM_32B are unknown"):
        encode_many({**_tiled(), "swizzle": 4}, arch="sm_100a")


@given(st.lists(near_legal, min_size=1, max_size=3), st.sampled_from([1, 2, FEW, FEW + 1]))
def test_few_in_arrays_are_as_many(requests: list[TensorMap], count: int) -> None:
    """Maps one by one, and in columns, have the same bytes and the same refusals."""
    first = requests[0]
    alike = [one for one in requests if type(one) is type(first) and one.rank == first.rank]
    listed = [alike[index % len(alike)] for index in range(count)]
    fields = {name: numpy.array([getattr(one, name) for one in listed]) for name in first.FIELDS}
    fields |= {name: fields[name].reshape(count, -1) for name in first.TUPLES}
    outcomes = []
    for most in (0, FEW):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(batch, "FEW", most)
            try:
                outcomes.append(encode_many(fields).tolist())
            except CuteError as refusal:
                outcomes.append(str(refusal))
    assert outcomes[0] == outcomes[1]
