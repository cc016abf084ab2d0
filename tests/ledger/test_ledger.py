"""No test of before the move is lost, and no group of tests has become smaller."""

from __future__ import annotations

import collections

import pytest

from tests.conftest import DESELECTED
from tests.ledger import before, counted, missing, moved, room_of


@pytest.fixture
def now(request: pytest.FixtureRequest) -> dict[str, int]:
    left_out = request.config.stash.get(DESELECTED, [])
    found = counted([*(item.nodeid for item in request.session.items), *left_out])
    if len({room_of(name) for name in found}) < len({room_of(name) for name in before()}):
        pytest.skip("only a part of the tests was collected")
    return found


def test_nothing_is_lost(now: dict[str, int]) -> None:
    assert missing(now, before(), moved()) == []


def test_no_group_is_smaller(now: dict[str, int]) -> None:
    def cases(entries: dict[str, int]) -> collections.Counter[str]:
        total: collections.Counter[str] = collections.Counter()
        for name, count in entries.items():
            total[room_of(name)] += count
        return total

    new_names = {old: new for old, new in moved().items() if not new.startswith("deleted: ")}
    earlier = cases({new_names.get(name, name): count for name, count in before().items() if name not in deleted()})
    assert {name for name, count in earlier.items() if cases(now)[name] < count} == set()


def deleted() -> set[str]:
    return {old for old, new in moved().items() if new.startswith("deleted: ")}


def test_the_ledger_can_fail() -> None:
    earlier = {"tests/a.py::test_x": 3, "tests/a.py::test_y": 1}
    assert missing(earlier, earlier, {}) == []
    assert missing({"tests/a.py::test_x": 2}, earlier, {"tests/a.py::test_y": "deleted: a twin"}) == [
        "tests/a.py::test_x: 2 of 3 cases"
    ]
    assert missing(earlier, earlier, {"tests/b.py::test_z": "tests/a.py::test_x"}) == [
        "tests/b.py::test_z: no such entry before"
    ]
