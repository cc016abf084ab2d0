"""Every recorded call of the driver: the same 128 bytes, or refused with a reason."""

from __future__ import annotations

import pytest

from cute_py.errors import TmaLimitError
from cute_py.tma.descriptor.batch import encode_many
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.encode import encode, payload
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapIm2colWide
from cute_py.tma.descriptor.violations import violations
from tests.oracle.records import rows, tally
from tests.tma.descriptor.recorded import request_of

FILES = ("driver_encode_tiled", "driver_encode_im2col", "driver_encode_im2col_wide")
EVERY = [(name, 5) for name in FILES] + [pytest.param(name, 1, marks=pytest.mark.slow) for name in FILES]
"""A file of calls, and which of them: each fifth by default, each with the slow tests."""


def as_asked(raw: bytes, asked: TensorMap) -> TensorMap:
    found = decode(raw)
    if isinstance(asked, TensorMapIm2colWide):
        assert isinstance(found, TensorMapIm2col)
        return found.as_wide(asked.mode)
    return found


@pytest.mark.parametrize(("name", "every"), EVERY)
def test_every_call_agrees(name: str, every: int) -> None:
    held, calls = 0, rows(name)[::every]
    for row in calls:
        request = request_of(row)
        found = violations(request)
        if row["result"] == "CUDA_SUCCESS":
            raw = bytes.fromhex(row["bytes"])
            assert not found, (row, [str(violation) for violation in found])
            assert encode(request).hex() == row["bytes"], row
            assert payload(request) == raw[:64]
        else:
            assert row["result"] == "CUDA_ERROR_INVALID_VALUE"
            assert found, row
            with pytest.raises(TmaLimitError) as caught:
                encode(request)
            assert list(caught.value.violations) == found
        held += 1
    tally(name, held, len(calls))
    assert held == len(calls) > 1000 // every


@pytest.mark.parametrize(("name", "every"), EVERY)
def test_every_map_decodes_to_what_was_asked(name: str, every: int) -> None:
    accepted = [row for row in rows(name)[::every] if row["result"] == "CUDA_SUCCESS"]
    assert accepted
    for row in accepted:
        raw = bytes.fromhex(row["bytes"])
        asked = request_of(row)
        assert as_asked(raw, asked) == asked, row
        assert as_asked(raw[:64], asked) == asked, row
        assert encode(decode(raw)) == raw
        assert encode(decode(raw[:64])) == raw


@pytest.mark.parametrize("name", FILES)
def test_batches_agree_with_the_driver(name: str) -> None:
    accepted = [row for row in rows(name) if row["result"] == "CUDA_SUCCESS"]
    for rank in range(1, 6):
        group = [row for row in accepted if row["rank"] == rank]
        if group:
            got = encode_many([request_of(row) for row in group])
            assert [bytes(one).hex() for one in got] == [row["bytes"] for row in group]
