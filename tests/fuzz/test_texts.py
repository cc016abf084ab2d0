"""Whatever a text says, the calls that read pastes answer, or end in a typed error, soon."""

from __future__ import annotations

import pytest

from tests.fuzz import texts


@pytest.mark.parametrize("count", [15, pytest.param(90, marks=pytest.mark.slow)])
def test_mutated_texts_are_read_or_refused(count: int) -> None:
    read, found = texts.findings(count, "sample")
    assert min(read.values()) == count // 3
    assert not found, [(one["door"], one["said"], one["text"][:300]) for one in found]


def test_foreign_exceptions_are_found() -> None:
    def broken(text: str) -> None:
        raise KeyError(text)

    found = texts.finding(broken, "(4,8):(8,1)")
    assert found is not None
    assert "KeyError" in found["said"]


def test_slow_answers_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "SECONDS", -1.0)
    found = texts.finding(len, "(4,8):(8,1)")
    assert found is not None
    assert found["said"].endswith(" s")
