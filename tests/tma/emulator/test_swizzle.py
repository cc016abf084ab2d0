"""Swizzles: the printed tables of the PTX ISA, and that nothing leaves its span."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import InvalidValueError
from cute_py.tma.emulator.geometry import SWIZZLES, swizzle_pattern, swizzled_address
from tests.tma.emulator.slow_model import physical


@given(st.integers(0, 6), st.integers(0, 2**17))
def test_the_printed_tables(swizzle: int, address: int) -> None:
    assert swizzled_address(np.array([address]), swizzle)[0] == physical(address, swizzle)


@pytest.mark.parametrize("row", SWIZZLES[1:], ids=lambda row: row.kind.name)
def test_a_swizzle_permutes_each_span_and_is_its_own_inverse(row) -> None:  # type: ignore[no-untyped-def]
    address = np.arange(4096)
    out = swizzled_address(address, row.kind)
    assert sorted(out.tolist()) == address.tolist()
    assert np.array_equal(out // row.span, address // row.span)
    assert np.array_equal(swizzled_address(out, row.kind), address)
    assert np.array_equal(swizzled_address(address + row.repeat, row.kind), out + row.repeat)


@pytest.mark.parametrize(("swizzle", "repeat"), [(0, 1), (1, 256), (2, 512), (3, 1024), (4, 512), (6, 256)])
def test_repeat(swizzle: int, repeat: int) -> None:
    assert swizzle_pattern(swizzle).repeat == repeat


@pytest.mark.parametrize("swizzle", [-1, 7])
def test_numbers_out_of_range(swizzle: int) -> None:
    with pytest.raises(InvalidValueError, match="must be 0 to 6"):
        swizzle_pattern(swizzle)
