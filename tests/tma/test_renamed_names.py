"""A former name works, and its warning names the new one at the line that used it."""

from __future__ import annotations

import pytest

import cute_py as cute


def test_a_former_name_warns_where_it_is_used() -> None:
    with pytest.warns(DeprecationWarning, match="driver_encode was renamed to .*encode_with_driver") as got:
        former = cute.tma.driver_encode  # type: ignore[attr-defined]
    assert former is cute.tma.encode_with_driver
    assert got[0].filename == __file__
    assert "driver_encode" not in dir(cute.tma)
