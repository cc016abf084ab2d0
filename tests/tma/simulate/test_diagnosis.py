"""Hangs, traps and races, each from a program that has one; and programs that have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cute_py.errors import RaceError, WouldHangError
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.memory import GlobalMemory, SharedMemory
from cute_py.tma.emulator.tensormap_proxy import TensormapProxy
from cute_py.tma.simulate.diagnosis import Outcome, Run, diagnose
from tests.each import each_of

TILE = encode(TensorMapTiled(0, 4096, (64, 8), (64,), (32, 4)))  # 128 bytes
BYTES = 128


def memories() -> tuple[GlobalMemory, SharedMemory]:
    memory = GlobalMemory()
    memory.add("A", np.arange(512, dtype=np.uint32).astype(np.uint8), 4096)
    return memory, SharedMemory(2048)


def run(program: Callable[[Run], Any]) -> Outcome:
    return diagnose(program, Emulator(), *memories())


def good(r: Run) -> None:
    bar = r.barrier(1024)
    bar.arrive_expect_tx(2 * BYTES)
    r.load(TILE, (0, 0), 0, bar)
    r.load(TILE, (32, 4), 128, bar)
    r.wait(bar, 0)
    data = r.read(0, 256)
    r.write(0, data + 1)
    r.fence_proxy_async()
    r.store(TILE, (0, 4), 0)
    r.commit_group()
    r.wait_group_read()
    r.write(0, data)
    r.wait_group()


def test_a_program_without_fault() -> None:
    outcome = run(good)
    assert (outcome.status, outcome.races, outcome.summary) == ("completed", (), "completed")


@pytest.mark.parametrize("expected", [0, BYTES - 16, BYTES + 16, 2 * BYTES])
def test_the_wrong_number_of_bytes_hangs(expected: int) -> None:
    def program(r: Run) -> None:
        bar = r.barrier(1024, name="full[0]")
        bar.expect_tx(expected)
        r.load(TILE, (32, 4), 0, bar)
        bar.arrive()
        r.wait(bar, 0)

    outcome = run(program)
    assert outcome.status == "would hang"
    assert (outcome.barrier, outcome.phase, outcome.expected, outcome.arrived) == ("full[0]", 0, expected, BYTES)
    assert [c.source for c in outcome.contributions] == ["load 0 at (32, 4)"]


def test_no_arrival_hangs() -> None:
    outcome = run(lambda r: r.wait(r.barrier(1024, 2), 0))
    assert (outcome.status, outcome.pending) == ("would hang", 2)
    gmem, smem = memories()
    program = Run(Emulator(), gmem, smem)
    with pytest.raises(WouldHangError, match="never completes phase 0"):
        program.wait(program.barrier(1024), 0)


def test_a_trap_ends_the_program() -> None:
    outcome = run(lambda r: r.load(TILE, (3, 0), 0, r.barrier(1024)))
    assert outcome.summary == (
        "trap: CUDA_ERROR_ILLEGAL_INSTRUCTION: inner coordinate = 3 bytes; must be a multiple of 16"
    )


def loaded(r: Run) -> Any:
    bar = r.barrier(1024)
    bar.arrive_expect_tx(BYTES)
    r.load(TILE, (0, 0), 0, bar)
    return bar


def early_read(r: Run) -> None:
    bar = loaded(r)
    r.read(127, 1)
    r.wait(bar, 0)


def overwritten_while_read(r: Run) -> None:
    bar = loaded(r)
    r.wait(bar, 0)
    with r.reading(0, BYTES, "wgmma"):
        bar.arrive_expect_tx(BYTES)
        r.load(TILE, (32, 0), 0, bar)
    r.wait(bar, 1)


def overlapping_loads(r: Run) -> None:
    bar = loaded(r)
    bar.expect_tx(0)
    other = r.barrier(1032)
    other.arrive_expect_tx(BYTES)
    r.load(TILE, (32, 0), 0, other)
    r.wait(bar, 0)
    r.wait(other, 0)


def source_changed(r: Run) -> None:
    r.store(TILE, (0, 0), 0)
    r.commit_group()
    r.write(100, np.zeros(4, np.uint8))
    r.wait_group()


def source_loaded_over(r: Run) -> None:
    r.store(TILE, (0, 0), 0)
    r.commit_group()
    bar = loaded(r)
    r.wait(bar, 0)
    r.wait_group()


def no_proxy_fence(r: Run) -> None:
    r.write(64, np.zeros(4, np.uint8))
    r.store(TILE, (0, 0), 0)
    r.commit_group()
    r.wait_group()


def store_too_early(r: Run) -> None:
    bar = loaded(r)
    r.store(TILE, (0, 4), 0)
    r.commit_group()
    r.wait(bar, 0)
    r.wait_group()


def written_in_flight(r: Run) -> None:
    bar = loaded(r)
    r.write(0, np.zeros(4, np.uint8))
    r.wait(bar, 0)


def exit_unread(r: Run) -> None:
    r.store(TILE, (0, 0), 0)
    r.commit_group()


def exit_in_flight(r: Run) -> None:
    loaded(r)


def exit_said(r: Run) -> None:
    exit_unread(r)
    r.exit()


@each_of(
    ("program", "rule", "start", "stop"),
    [
        (early_read, "read before its barrier completed", 127, 128),
        (overwritten_while_read, "overwrites a stage that is still being read", 0, 128),
        (overlapping_loads, "two loads into the same bytes", 0, 128),
        (source_changed, "changes the source of a store before its group was read", 100, 104),
        (source_loaded_over, "overwrites the source of a store before its group was read", 0, 128),
        (no_proxy_fence, "store without fence.proxy.async after ordinary writes", 64, 68),
        (store_too_early, "store before the load of its source was waited for", 0, 128),
        (written_in_flight, "written while a load is in flight", 0, 4),
        (exit_unread, "exit before the group was read", 0, 128),
        (exit_in_flight, "exit before the load was waited for", 0, 128),
        (exit_said, "exit before the group was read", 0, 128),
    ],
)
def test_races(program: Callable[[Run], None], rule: str, start: int, stop: int) -> None:
    outcome = run(program)
    assert outcome.status == "completed"
    assert [(r.rule, r.start, r.stop) for r in outcome.races] == [(rule, start, stop)]


def test_a_map_that_the_device_wrote_needs_its_fences() -> None:
    def program(run: Run, fenced: bool) -> None:
        maps = run.maps
        assert maps is not None
        maps.replace(0x8000, "global_address", 4096 + 64)
        if fenced:
            maps.release("cta")
            maps.acquire(0x8000, "cta")
        bar = run.barrier(1024)
        bar.arrive_expect_tx(BYTES)
        run.load(0x8000, (0, 0), 0, bar)
        run.wait(bar, 0)

    for fenced in (True, False):
        gmem, smem = memories()
        maps = TensormapProxy()
        maps.place(0x8000, TILE)
        outcome = diagnose(lambda run, f=fenced: program(run, f), Emulator(), gmem, smem, maps=maps)  # type: ignore[misc]
        assert smem.array[0] == (64 if fenced else 0)
        assert [str(race) for race in outcome.races] == (
            []
            if fenced
            else [
                "tensor map is unordered: no release fence after the last write: "
                "load 0 at (0, 0) meets the write of the map at 0x8000"
            ]
        )


def test_strict_raises_at_the_first_race() -> None:
    gmem, smem = memories()
    with pytest.raises(RaceError, match="store without fence"):
        no_proxy_fence(Run(Emulator(), gmem, smem, strict=True))


def test_neighbouring_bytes_do_not_race() -> None:
    def program(r: Run) -> None:
        bar = loaded(r)
        r.write(128, np.zeros(4, np.uint8))
        r.read(128, 64)
        r.wait(bar, 0)
        r.store(TILE, (0, 4), 0)
        r.commit_group()
        r.write(132, np.zeros(4, np.uint8))
        r.wait_group()

    assert run(program).races == ()


def test_an_outcome_says_what_it_judged() -> None:
    landing = "order of landing: bytes landed in the order of the program; no other order was tried"
    threads = "threads: one order of the calls was run; other orders, and other CTAs, were not"

    def left_open(r: Run) -> None:
        r.wait(loaded(r), 0)
        r.barrier(1032, name="next").arrive_expect_tx(BYTES)

    outcome = run(left_open)
    assert (outcome.status, outcome.scope.judged) == ("completed", ("1 load", "1 wait"))
    opened = "1 barrier: no thread waited for the current phase: next"
    assert outcome.scope.not_judged == (opened, landing, threads)
    assert str(outcome).split("\n")[:3] == ["completed", "judged: 1 load, 1 wait", f"not judged: {opened}"]
    trap = run(lambda r: r.load(TILE, (3, 0), 0, r.barrier(1024)))
    assert trap.scope.not_judged[0] == "the rest of the program, which the trap ended"
    hang = run(lambda r: r.wait(r.barrier(1024, 2), 0))
    assert hang.scope.not_judged == ("the rest of the program, because the wait never ends", threads)
    assert "pending  : 2 of 2 arrivals" in hang.summary
    assert run(good).scope.complete is False
