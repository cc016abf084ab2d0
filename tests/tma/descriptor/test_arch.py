"""What later GPUs add: known rows, and bits that nobody has told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cute_py.errors import TmaLimitError, UnknownFactError
from cute_py.tma.descriptor.data_types import TensorMapDataType, TensorMapSwizzle
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.limits import ADDITIONS, ARCHITECTURES, architecture, unknown_addition
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.descriptor.violations import violations
from tests.tma.descriptor.requests import TILED

PACKED = TensorMapTiled(13, 0x1000, (256, 8), (128,), (128, 8))


@pytest.mark.parametrize("name", ["sm_90", "sm_90a", "sm_100a", "sm_100f", "sm_103a", "sm_120", "sm_121f"])
def test_suffixes_make_no_difference(name: str) -> None:
    assert architecture(name).name == name.rstrip("af")


@pytest.mark.parametrize("swizzle", [4, 5, 6])
def test_atom_swizzles_are_refused_in_two_ways(swizzle: int) -> None:
    request = replace(TILED, swizzle=swizzle)
    with pytest.raises(TmaLimitError, match="be 0 to 3 on sm_90; 4 to 6 need sm_100 or later"):
        encode(request)
    assert violations(request, arch="sm_100a") == []
    name = TensorMapSwizzle(swizzle).name.replace("B128_", "128B_")
    with pytest.raises(UnknownFactError, match=f"the bits of a tensor map that encode {name} are unknown"):
        encode(request, arch="sm_100a")


@pytest.mark.parametrize("number", [13, 14, 15])
def test_packed_formats_are_refused_in_two_ways(number: int) -> None:
    request = replace(PACKED, data_type=number)
    with pytest.raises(TmaLimitError, match="13 to 15 need sm_100 or later"):
        encode(request)
    assert violations(request, arch="sm_120a") == []
    with pytest.raises(UnknownFactError) as caught:
        encode(request, arch="sm_120a")
    row = unknown_addition(request)
    assert row is not None and f"PACKED_{row.name}" == TensorMapDataType(number).name
    assert caught.value.facts["known"] == row.known


def test_each_new_number_has_a_row() -> None:
    told = {(row.field, number) for row in ADDITIONS for number in row.numbers}
    for gpu in ARCHITECTURES:
        assert {("data_type", number) for number in gpu.data_types} <= told
        assert {("swizzle", number) for number in gpu.swizzles} <= told
        assert gpu.source
    assert all(row.known and row.source and row.architectures for row in ADDITIONS)
    assert unknown_addition(TILED) is None
