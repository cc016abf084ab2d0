"""A test of all rows runs each, fails when one does, and names those that fail."""

from __future__ import annotations

import inspect

import pytest

from tests.each import each_of
from tests.shares import one_in


def test_every_row_runs_and_those_that_fail_are_named() -> None:
    seen = []

    @each_of(("a", "b"), [(1, 1), (2, 3), (4, 4), (5, 0)], ids=["one", "two", "four", "five"])
    def check(a: int, b: int) -> None:
        seen.append(a)
        assert a == b
        assert a // b

    with pytest.raises(pytest.fail.Exception) as failed:
        check()
    assert seen == [1, 2, 4, 5]
    said = str(failed.value)
    assert said.startswith("2 of 4 rows failed\n\n[two]\n")
    assert "assert 2 == 3" in said
    assert "[five]" in said and "[one]" not in said and "[four]" not in said
    assert f"{__file__}:" in said and "assert a == b" in said


def test_a_part_of_the_rows_runs_by_default_and_all_of_them_are_slow() -> None:
    seen = []

    @each_of("x", range(5), every=2)
    def check(x: int) -> None:
        seen.append(x)
        assert x < 2

    (mark,) = check.pytestmark  # type: ignore[attr-defined]
    part, whole = mark.args[1]
    assert part == 2 and whole.values == (1,) and [one.name for one in whole.marks] == ["slow"]
    assert list(inspect.signature(check).parameters) == ["every"]
    with pytest.raises(pytest.fail.Exception, match="2 of 3 rows failed"):
        check(every=part)
    with pytest.raises(pytest.fail.Exception, match="3 of 5 rows failed"):
        check(every=1)
    assert seen == [0, 2, 4, 0, 1, 2, 3, 4]


def test_errors_and_failures_count() -> None:
    @each_of("x", ["fail", "raise", "pass"])
    def check(x: str) -> None:
        if x == "fail":
            pytest.fail("told")
        assert x != "raise" or {}[x]

    with pytest.raises(
        pytest.fail.Exception, match=r"(?s)2 of 3 rows .*\['fail'\].*told.*\['raise'\].*KeyError: 'raise'"
    ):
        check()


def test_rows_that_hold_pass_and_several_tables_are_all_pairs() -> None:
    seen = []

    @each_of("a", "xy")
    @each_of("b", [1, 2])
    def check(a: str, b: int, tmp_path: str) -> None:
        seen.append((a, b, tmp_path))

    assert list(inspect.signature(check).parameters) == ["tmp_path"]
    check(tmp_path="here")
    assert seen == [("x", 1, "here"), ("x", 2, "here"), ("y", 1, "here"), ("y", 2, "here")]


def test_a_row_of_one_name_may_be_a_tuple() -> None:
    @each_of("pair", [(1, 2)])
    def check(pair: tuple[int, int]) -> None:
        assert pair == (1, 2)

    check()


def test_a_share_of_a_sweep_leaves_the_rest_to_slow() -> None:
    slow = [value for value in one_in(3, [(n, -n) for n in range(7)]) if hasattr(value, "marks")]
    assert [value.values for value in slow] == [(1, -1), (2, -2), (4, -4), (5, -5)]
    assert {mark.name for value in slow for mark in value.marks} == {"slow"}
