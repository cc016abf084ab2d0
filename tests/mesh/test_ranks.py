"""One process for each device: data arrive, all ranks refuse together, and a rank that is lost is found in time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mesh import rank_jobs
from tests.mesh.rank_jobs import BOUND
from tests.mesh.shared_memory import run_ranks


def test_data_arrive(tmp_path: Path) -> None:
    assert run_ranks(rank_jobs.data_arrive, tmp_path, 4, range(40)) == [[], [], [], []]


def test_sums_are_those_of_one_process_bit_for_bit(tmp_path: Path) -> None:
    assert run_ranks(rank_jobs.sums_are_those_of_one_process, tmp_path, 4) == [True] * 4


def test_an_empty_part_may_be_left_out(tmp_path: Path) -> None:
    assert run_ranks(rank_jobs.an_empty_part_is_left_out, tmp_path, 2) == [[[0, 1, 2, 3]], []]


@pytest.mark.parametrize(
    ("how", "when", "lost", "into", "why"),
    [
        ("killed", 2, 1, False, "sent no heartbeat for"),
        ("killed", 3, 0, True, "sent no heartbeat for"),
        ("stopped", 3, 2, False, "sent no heartbeat for"),
        ("stopped", -1, 1, False, "sent no heartbeat for"),
        ("busy", 2, 0, True, "is alive, but made no progress for"),
    ],
)
def test_a_lost_rank_is_found(tmp_path: Path, how: str, when: int, lost: int, into: bool, why: str) -> None:
    seen = run_ranks(rank_jobs.failing, tmp_path, 3, how, when, lost, into)
    for rank, one in enumerate(seen):
        if rank == lost and how != "busy":
            assert one is None
            continue
        assert (one["type"], one["rank"], one["aborted"]) == ("RankError", lost, True), one
        assert f"rank {lost} " in one["text"]
        assert rank == lost or one["seconds"] < 2 * BOUND
        assert one["again"] == "the communicator was aborted"
        undefined = "the contents of the destinations are undefined" in one["text"]
        assert undefined is (when >= 0 and not into)
        assert one["kept"] is True or undefined
        assert why in one["text"]


def test_a_rank_that_fails_says_so(tmp_path: Path) -> None:
    seen = run_ranks(rank_jobs.failing, tmp_path, 3, "failed", 1, 1, True)
    assert [one["type"] for one in seen] == ["RankError", "MemoryError", "RankError"]
    assert "rank 1 raised MemoryError: no room" in seen[0]["text"]
    assert all(one["kept"] and one["again"] == "the communicator was aborted" for one in seen)


@pytest.mark.parametrize(
    ("what", "rules", "text"),
    [
        ("shape", ["mesh-size"], "rank 1: sources[1] = 3 elements; must be 96"),
        ("plan", ["mesh-plan"], "rank 1 has a different redistribution from rank 0's"),
        ("rank", ["mesh-device", "mesh-device"], "this process is rank 1, and must pass only its own array"),
        ("world", ["mesh-ranks"] * 3, "rank 2: ranks = 3 processes; must be 4"),
        ("type", None, "rank 1: sources[1] must be a numpy array, got list"),
    ],
)
def test_all_ranks_refuse_together(tmp_path: Path, what: str, rules: list[str] | None, text: str) -> None:
    first, *others = run_ranks(rank_jobs.disagreeing, tmp_path, 3, what)
    assert others == [first, first]
    assert first[0] == "InvalidValueError"
    assert text in first[1]
    assert rules is None or first[2][: len(rules)] == rules


def test_a_rank_that_never_comes_is_found(tmp_path: Path) -> None:
    assert run_ranks(rank_jobs.late, tmp_path, 3) == ["2: rank 2 sent no heartbeat"] * 2 + ["absent"]


def test_ranks_meet_in_memory_that_they_share(tmp_path: Path) -> None:
    seen = run_ranks(rank_jobs.meeting, tmp_path, 3, 500, None)
    assert [counts for counts, _, _ in seen] == [[500] * 3] * 3


@pytest.mark.parametrize("lost", [0, 2])
def test_a_rank_that_does_not_come_to_a_meeting_is_found(tmp_path: Path, lost: int) -> None:
    seen = run_ranks(rank_jobs.meeting, tmp_path, 3, 5, lost)
    assert seen[lost] is None
    for rank in {0, 1, 2} - {lost}:
        counts, missing, seconds = seen[rank]
        assert counts == [4 + (r != lost) for r in range(3)]
        assert missing == lost
        assert seconds < 2 * BOUND
