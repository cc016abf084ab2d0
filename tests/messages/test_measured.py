"""Errors about one number: the number, its unit and the requirement are data, and make the text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import cute_py as cute
from cute_py.diagnostics import diagnostics_of
from cute_py.errors import CuteError, InvalidValueError, Measured
from cute_py.tma.descriptor.replace import replace, update_tma_descriptor

MAP = cute.tma.encode(cute.tma.TensorMapTiled(6, 4096, (64, 8), (128,), (64, 8)))
MODES = "the modes of the map"
CALLS: list[tuple[Callable[[], object], Measured]] = [
    (
        lambda: update_tma_descriptor(MAP, "global_dim", 3, 8),
        Measured("axis", 3, "", "be 0 to 1, the modes of the map"),
    ),
    (lambda: replace(MAP, "interleave_layout", 3), Measured("interleave_layout", 3, "", "be 0 to 2")),
]


@pytest.mark.parametrize(("call", "measured"), CALLS, ids=[one.argument for _, one in CALLS])
def test_the_number_is_data(call: Callable[[], object], measured: Measured) -> None:
    with pytest.raises(CuteError) as caught:
        call()
    assert caught.value.measured == measured
    [one] = diagnostics_of(caught.value)
    assert (one.argument, one.value, one.unit, one.requirement) == measured
    assert one.message == caught.value.headline


def test_a_value_that_is_no_integer_is_text_alone() -> None:
    assert str(InvalidValueError.of_value("seconds", 0.5, "be above 1")) == "seconds = 0.5; must be above 1"
    assert InvalidValueError.of_value("seconds", 0.5, "be above 1").measured is None
    assert InvalidValueError.of_value("flag", True, "be a number").measured is None


def test_a_huge_number_is_shortened_in_the_text_alone() -> None:
    error = InvalidValueError.of_value("size", 1 << 20000, "be at most 5", "bytes", {"mode": 1}, "use 5")
    assert str(error).startswith(
        "size = 0x1000000000... (20001 bits) bytes; must be at most 5\n  mode : 1\n  hint : use 5"
    )
    assert error.measured is not None and error.measured.value == 1 << 20000
