"""Every recorded tensormap.replace: the same bytes after it."""

from __future__ import annotations

from cute_py.tma.descriptor.replace import REPLACE_FIELDS, replace
from tests.oracle.records import rows, tally


def test_every_replacement_agrees() -> None:
    recorded = rows("device_tensormap_replace")
    held = 0
    for row in recorded:
        before = bytes.fromhex(row["before"])
        assert replace(before, row["field"], row["value"], row["ord"]).hex() == row["after"], row
        assert replace(before[:64], row["field"], row["value"], row["ord"]).hex() == row["after"][:128], row
        held += 1
    tally("device_tensormap_replace", held, len(recorded))
    assert held == len(recorded) > 900


def test_the_recording_has_every_field() -> None:
    assert {row["field"] for row in rows("device_tensormap_replace")} == {row.name for row in REPLACE_FIELDS}
