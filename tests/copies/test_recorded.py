"""Plans and texts of many copies are those that were recorded: a change of a choice is seen, and reviewed."""

from __future__ import annotations

import pytest

from tests.copies.recorded import FAMILIES, found, recorded


@pytest.mark.parametrize("family", FAMILIES)
def test_choices_are_those_that_were_recorded(family: str) -> None:
    """Where this fails after a change that was meant: `python -m tests.copies.recorded --record`."""
    known, rows = recorded()[family], found(family)
    assert rows.keys() == known.keys()
    for name, row in rows.items():
        assert row == known[name], name
