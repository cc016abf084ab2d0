"""The bound that tests have in place of seconds holds for what is short, and can fail."""

from __future__ import annotations

import pytest

from tests import pace


def test_a_block_of_a_few_loops_is_within_its_bound() -> None:
    with pace.within(200):
        pace._loop()


def test_a_block_that_takes_longer_fails() -> None:
    with pytest.raises(AssertionError, match="the bound is 2 paces"), pace.within(2):
        for _ in range(40):
            pace._loop()


def test_a_machine_that_has_become_slower_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "_first", lambda: 0.01)
    monkeypatch.setattr(pace, "_loop", lambda: 0.05)
    assert not pace.took_more(4.0, 100)
    assert pace.took_more(6.0, 100)
