"""Ranks that map each other's memory: how they agree, meet, and miss one. The driver and its memory are made up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cute_py.dtypes import DType
from cute_py.errors import CuteError, RankError
from cute_py.mesh import peer, ranks
from cute_py.mesh.transport import Transport
from tests.mesh.conftest import Driver
from tests.mesh.rank_jobs import plan_of

BOUND = 1.0


class OnGpu:
    """An array of the made-up device 1."""

    def __init__(self, content: np.ndarray) -> None:
        self.content = content
        self.__cuda_array_interface__ = dict(content.__array_interface__, version=3)


class Elements(peer.GpuElements):
    def flat(self, array: Any) -> Any:
        return array.content.reshape(-1)


class Threads(Transport):
    """Ranks that are threads, with one store; they send no messages."""

    def __init__(self, store: dict[str, str], rank: int, ranks: int) -> None:
        self.store, self.rank, self.ranks, self.aborted = store, rank, ranks, False

    def put(self, key: str, value: str) -> None:
        self.store[key] = value

    def get(self, key: str) -> str | None:
        return self.store.get(key)

    def start(self, sends: Mapping[int, Any], receives: Mapping[int, Any]) -> Callable[[], bool]:
        raise AssertionError("a message")

    def abort(self) -> None:
        self.aborted = True

    def elements(self, dtype: DType) -> Any:
        return Elements(SimpleNamespace(dtype=dtype))  # type: ignore[arg-type]


def together(count: int, launches: Callable[[int], int]) -> list[Any]:
    """What each rank ends with: how its data go and how often each has come, or its error."""
    store: dict[str, str] = {}
    ended: list[Any] = [None] * count
    plan, _ = plan_of(count)

    def run(rank: int) -> None:
        parts = [OnGpu(np.zeros(side.local_shape(rank), np.int32)) for side in (plan.source, plan.destination)]
        transport = Threads(store, rank, count)
        try:
            made: Any = plan.prepare({rank: parts[0]}, {rank: parts[1]}, backend=transport, seconds=BOUND)
            for _ in range(launches(rank)):
                made.launch()
            ended[rank] = made.report(), list(made._mapped._place._counts) if made._mapped else []
        except (CuteError, AssertionError) as problem:
            ended[rank] = problem

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    return ended


@pytest.mark.parametrize("count", [2, 4])
def test_all_meet_before_and_behind_each_launch(api: Driver, count: int) -> None:
    for rank, (report, counts) in enumerate(together(count, lambda rank: 3)):
        assert counts == [6] * count
        assert [line.partition(":")[0] for line in report.split("\n")] == [f"{rank} -> {to}" for to in range(count)]


def test_a_rank_that_does_not_come_is_found(api: Driver) -> None:
    ended = together(3, lambda rank: 2 if rank != 1 else 1)
    for rank in (0, 2):
        assert isinstance(ended[rank], RankError), ended
        assert ended[rank].rank == 1
        assert "the destinations are unchanged" in str(ended[rank])


def test_if_one_can_not_all_use_messages(api: Driver) -> None:
    api.refuses = 3
    reports = {str(one) if isinstance(one, BaseException) else one[0] for one in together(3, lambda rank: 0)}
    assert len(reports) == 1
    assert "opening another rank's memory: CUDA_ERROR_MAP_FAILED)" in reports.pop()


def test_memory_without_a_handle_goes_in_messages(api: Driver) -> None:
    api.has_handles = False
    reports = {one[0] for one in together(2, lambda rank: 0)}
    assert reports == {
        "messages (rank 0: its memory has no IPC handle, because it comes from expandable segments, symmetric memory "
        "or a pool)"
    }


@pytest.mark.parametrize(
    ("name", "instead", "why"),
    [
        ("memfd_create", None, "rank 0: making memory for all ranks"),
        ("pread", lambda file, size, at: bytes(size), "opening the memory of rank 0: it belongs to another process"),
    ],
)
def test_without_memory_in_common_all_use_messages(
    api: Driver, monkeypatch: pytest.MonkeyPatch, name: str, instead: Any, why: str
) -> None:
    if instead is None:
        monkeypatch.delattr(ranks.os, name)
    else:
        monkeypatch.setattr(ranks.os, name, instead)
    reports = {one[0] for one in together(2, lambda rank: 0)}
    assert len(reports) == 1
    assert why in reports.pop()
