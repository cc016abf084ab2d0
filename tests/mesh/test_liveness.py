"""Who is found to be lost, when, and what all learn of it; with a clock that sleeping moves on."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from cute_py.errors import DeviceError, RankError
from cute_py.mesh import liveness
from cute_py.mesh.liveness import Watch
from cute_py.mesh.transport import Transport

SECONDS = 16.0
LIMIT, EVERY = 12.0, 1.0
"""Of these seconds: after 3/4 a rank is lost, and each 16th somebody looks."""


class Clock:
    """Stands for the module time: nobody waits for it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def give_way(self) -> None:
        self.now += 2.0**-12


class Rank(Transport):
    """Rank 1 of 3 with a store of its own. `beats`: what the others have written by a time since the beginning."""

    def __init__(self, clock: Clock, beats: Mapping[int, Callable[[float], str | None]] | None = None) -> None:
        self.rank, self.ranks, self.aborted = 1, 3, 0
        self.clock, self.began, self.beats = clock, clock.now, beats or {}
        self.store: dict[str, str] = {}
        self.puts: list[tuple[str, str]] = []
        self.fails: Exception | None = None

    def put(self, key: str, value: str) -> None:
        self.puts.append((key, value))
        self.store[key] = value

    def get(self, key: str) -> str | None:
        if self.fails is not None:
            raise self.fails
        name, _, rank = key.rpartition("/")
        if name.endswith("beat") and int(rank) in self.beats:
            return self.beats[int(rank)](self.clock.now - self.began)
        return self.store.get(key)

    def start(self, sends: Mapping[int, Any], receives: Mapping[int, Any]) -> Callable[[], bool]:
        raise AssertionError("a message")

    def abort(self) -> None:
        self.aborted += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    made = Clock()
    monkeypatch.setattr(liveness, "time", made)
    monkeypatch.setattr(liveness, "_give_way", made.give_way)
    yield made


def beating(step: Callable[[float], int], how: str = "works", until: float = 1e9) -> Callable[[float], str]:
    """A beat in each half second, with a step."""
    return lambda at: f"{int(2 * min(at, until))} {step(min(at, until))} {how}"


def lost(transport: Rank, ranks: list[int], done: Callable[[], bool] = lambda: False) -> tuple[RankError, float]:
    """The error of a wait, and the seconds that it took."""
    watch, began = Watch(transport, SECONDS), transport.clock.now
    with pytest.raises(RankError) as caught:
        watch.until(done, lambda: ranks)
    return caught.value, transport.clock.now - began


def test_a_rank_without_a_beat_is_lost(clock: Clock) -> None:
    transport = Rank(clock)
    error, seconds = lost(transport, [2])
    assert LIMIT < seconds < LIMIT + 2 * EVERY
    assert error.rank == 2
    assert error.headline == f"rank 2 sent no heartbeat for {seconds:.1f} s"
    assert error.facts == {"found by": "rank 1", "destinations": "the destinations are unchanged"}
    assert error.hint == "make a new communicator without this rank"
    said = [json.loads(value) for key, value in transport.puts if key == "0/lost"]
    assert said == [[2, f"sent no heartbeat for {seconds:.1f} s"]]


def test_a_rank_whose_beats_end_is_lost_after_the_last(clock: Clock) -> None:
    error, seconds = lost(Rank(clock, {2: beating(int, until=5.0)}), [2])
    assert 5.0 + LIMIT < seconds < 5.0 + LIMIT + 3 * EVERY
    assert "sent no heartbeat for 12." in error.headline or "sent no heartbeat for 13." in error.headline


def test_a_rank_that_works_must_make_steps(clock: Clock) -> None:
    error, seconds = lost(Rank(clock, {2: beating(lambda at: int(min(at, 20.0)))}), [2])
    assert 20.0 + LIMIT < seconds < 20.0 + LIMIT + 3 * EVERY
    assert error.rank == 2
    assert error.headline.startswith("rank 2 is alive, but made no progress for 1")
    assert 12.0 <= float(error.headline.split()[-2]) < 14.0


def test_a_rank_that_waits_need_not_make_steps_but_must_send(clock: Clock) -> None:
    error, seconds = lost(Rank(clock, {2: beating(lambda at: 3, "waits"), 0: beating(lambda at: 0, "waits")}), [2, 0])
    assert 4 * SECONDS < seconds < 4 * SECONDS + 2 * EVERY
    assert (error.rank, error.headline) == (2, "rank 2 is alive, but sent nothing for 64 s")


def test_a_rank_that_waited_and_works_again_has_its_time_from_then_on(clock: Clock) -> None:
    def beat(at: float) -> str:
        return f"{int(2 * at)} 3 {'waits' if at < 30 else 'works'}"

    error, seconds = lost(Rank(clock, {2: beat}), [2])
    assert 30 + LIMIT - EVERY < seconds < 30 + LIMIT + 3 * EVERY
    assert "made no progress" in error.headline


def test_the_first_of_several_that_is_lost_is_named(clock: Clock) -> None:
    error, _ = lost(Rank(clock, {0: beating(int)}), [0, 2])
    assert error.rank == 2


def test_ranks_that_nobody_waits_for_are_not_looked_at(clock: Clock) -> None:
    watch, end = Watch(Rank(clock), SECONDS), clock.now + 100
    watch.until(lambda: clock.now > end, list)
    assert clock.now > end


def test_a_rank_that_goes_on_is_waited_for(clock: Clock) -> None:
    watch, end = Watch(Rank(clock, {2: beating(int)}), SECONDS), clock.now + 60
    watch.until(lambda: clock.now > end, lambda: [2])
    assert clock.now > end


def test_what_another_rank_found_is_learned_within_a_look(clock: Clock) -> None:
    transport = Rank(clock, {2: beating(int)})
    transport.store["0/lost"] = json.dumps([0, "made no step for 3 s"])
    error, seconds = lost(transport, [2])
    assert EVERY <= seconds < 2 * EVERY
    assert (error.rank, error.headline) == (0, "rank 0 made no step for 3 s")
    assert not [key for key, _ in transport.puts if key == "0/lost"]


def test_what_is_done_at_once_is_not_waited_for(clock: Clock) -> None:
    before = clock.now
    Watch(Rank(clock), SECONDS).until(lambda: True, lambda: [2])
    assert clock.now == before and clock.slept == []


def test_pauses_grow_with_the_time_that_is_waited(clock: Clock) -> None:
    watch, end = Watch(Rank(clock, {2: beating(int)}), SECONDS), clock.now + 1
    watch.until(lambda: clock.now > end, lambda: [2])
    assert 0.002 / 16 <= clock.slept[0] < 0.003 / 16
    assert max(clock.slept) == clock.slept[-1] == 0.005
    growing = [a for a in clock.slept if a < 0.005]
    assert growing == sorted(growing)
    clock.slept.clear()
    quick = Watch(Rank(clock, {2: lambda at: f"{int(at * 1e4)} 0 waits"}), 0.032)
    with pytest.raises(RankError, match=r"sent nothing for 0\.128 s"):
        quick.until(lambda: False, lambda: [2])
    assert max(clock.slept) == 0.002


def test_a_transport_that_fails_shows_who_is_lost(clock: Clock) -> None:
    def broken() -> bool:
        raise OSError("connection reset")

    error, seconds = lost(Rank(clock, {2: beating(int)}), [2], broken)
    assert SECONDS <= seconds < SECONDS + 2 * EVERY
    assert (error.rank, error.headline) == (2, "rank 2 can't be reached: connection reset")
    error, seconds = lost(Rank(clock), [2], broken)
    assert LIMIT < seconds < LIMIT + 2 * EVERY
    assert "sent no heartbeat" in error.headline
    error, _ = lost(Rank(clock), [], broken)
    assert error.rank == 0


def test_an_error_of_the_library_ends_a_wait_at_once(clock: Clock) -> None:
    def broken() -> bool:
        raise DeviceError("the device is lost")

    before = clock.now
    with pytest.raises(DeviceError, match="the device is lost"):
        Watch(Rank(clock), SECONDS).until(broken, lambda: [2])
    assert clock.now == before


def beats_of(transport: Rank) -> list[list[str]]:
    return [value.split() for key, value in transport.puts if key == "0/beat/1"]


def test_beats_say_the_step_and_whether_a_rank_waits(clock: Clock) -> None:
    transport = Rank(clock, {2: beating(int)})
    watch = Watch(transport, SECONDS)
    end = clock.now + 5.5
    watch.until(lambda: clock.now > end, lambda: [2])
    assert beats_of(transport) == []  # only in a launch
    with watch.together():
        watch.step()
        watch.step()
        watch._put("x", "")
        end = clock.now + 5.5
        watch.until(lambda: clock.now > end, lambda: [2])
        watch._put("x", "")
        clock.now += 2
        watch._put("x", "")
    count = len(beats_of(transport))
    clock.now += 10
    watch._put("x", "")
    assert len(beats_of(transport)) == count
    numbers, steps, how = zip(*beats_of(transport), strict=True)
    assert numbers == tuple(str(n + 1) for n in range(count))
    assert 6 <= count <= 9
    assert set(steps[:-1]) == {"3"} and steps[-1] == "4"  # a wait that ended is a step
    assert how == ("works", *["waits"] * (count - 2), "works")


def test_watches_have_one_number_after_another(clock: Clock) -> None:
    transport = Rank(clock)
    for number in range(3):
        Watch(transport, SECONDS)._put("x", str(number))
    assert [key for key, _ in transport.puts if key.endswith("/x")] == ["0/x", "1/x", "2/x"]
    assert transport.store["redistributions/1"] == "3"


def test_a_failure_in_a_launch_is_told_once_and_ends_the_communicator(clock: Clock) -> None:
    transport = Rank(clock)
    watch = Watch(transport, SECONDS)
    before = clock.now
    with pytest.raises(ZeroDivisionError), watch.together():
        raise ZeroDivisionError("no\nway")
    assert clock.now == before + 2 * EVERY  # others read it before this process ends
    assert transport.aborted == 1
    assert json.loads(transport.store["0/lost"]) == [1, "raised ZeroDivisionError: no"]
    with pytest.raises(RankError) as again, watch.together():
        raise AssertionError("the block is not entered")
    assert (again.value.headline, again.value.rank) == ("the communicator was aborted", 1)
    assert again.value.facts == {"before": "rank 1 raised ZeroDivisionError: no"}
    assert transport.aborted == 1


def test_a_lost_rank_is_not_told_twice(clock: Clock) -> None:
    transport = Rank(clock)
    watch = Watch(transport, SECONDS)
    with pytest.raises(RankError), watch.together():
        watch.until(lambda: False, lambda: [2])
    assert len([key for key, _ in transport.puts if key == "0/lost"]) == 1
    assert watch._lost is not None and watch._lost.rank == 2
    assert transport.aborted == 1


def test_the_state_of_the_destinations_is_in_the_error(clock: Clock) -> None:
    watch = Watch(Rank(clock), SECONDS)
    watch.outcome = "half of them"
    with pytest.raises(RankError) as caught:
        watch.until(lambda: False, lambda: [0])
    assert caught.value.facts == {"found by": "rank 1", "destinations": "half of them"}


def test_a_store_that_fails_is_lost_with_rank_0(clock: Clock) -> None:
    transport = Rank(clock)
    watch = Watch(transport, SECONDS)
    transport.fails = OSError("broken pipe\nby peer")
    with pytest.raises(RankError) as caught:
        watch.gather()
    assert caught.value.headline == "rank 0, which holds the store, can't be reached"
    assert caught.value.hint == "make a new communicator"
    facts = {"found by": "rank 1", "store": "broken pipe", "destinations": "the destinations are unchanged"}
    assert caught.value.facts == facts


def test_a_store_that_does_not_answer_is_lost() -> None:
    transport, stuck = Rank(Clock()), threading.Event()
    watch = Watch(transport, 0.2)
    transport.put = lambda key, value: stuck.wait(20)  # type: ignore[method-assign,assignment,return-value]
    began = time.monotonic()
    with pytest.raises(RankError) as caught:
        watch.gather()
    assert time.monotonic() - began >= 0.15
    stuck.set()
    assert caught.value.facts["store"] == "no answer"


def test_texts_of_all_ranks_are_gathered_again_and_again(clock: Clock) -> None:
    """Rank 1 gives its own, and takes what rank 0 gives of this round, not of another."""
    transport = Rank(clock, {0: beating(int)})
    watch = Watch(transport, SECONDS)
    transport.store["0/gather/all"] = '0 ["a b", "c", "d"]'
    assert watch.gather("c") == ["a b", "c", "d"]
    assert transport.store["0/gather/1"] == "0 c"
    with pytest.raises(RankError):  # the text of the first round does not count for the second
        watch.gather("e")
    assert transport.store["0/gather/1"] == "1 e"


def test_rank_0_waits_for_those_that_are_missing(clock: Clock) -> None:
    transport = Rank(clock, {1: beating(int)})
    transport.rank = 0
    watch = Watch(transport, SECONDS)
    transport.store |= {"0/gather/1": "0 one", "0/gather/2": "0 two words"}
    assert watch.gather("zero") == ["zero", "one", "two words"]
    assert transport.store["0/gather/all"] == '0 ["zero", "one", "two words"]'
    transport.store["0/gather/1"] = "1 again"
    with pytest.raises(RankError) as caught:
        watch.gather("zero")
    assert caught.value.rank == 2
