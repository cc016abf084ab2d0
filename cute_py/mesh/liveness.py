"""Failure detection, so that no rank waits forever for a lost rank.

    every rank        sends a heartbeat from a thread every `seconds / 16`: a count, its step, and whether it waits
    a waiting rank    reads the heartbeats of the ranks that it waits for, and checks whether a rank was reported lost
    a lost rank       sends no heartbeat, or makes no step while it works, for 3/4 of `seconds`; the rank that detects
                      this writes the lost rank's number to the store

A rank that waits is not lost, but the rank that it waits for may be, and the waiting rank detects this. Therefore each
rank reads only the heartbeats of the ranks that it waits for, and learns about other lost ranks from the store.

Over torch.distributed, the store is PyTorch's own (`Transport.put`, `Transport.get`). Three features of PyTorch can't
replace this module. They were tried with PyTorch 2.13 over gloo, with one of three ranks killed or stopped:

    monitored_barrier    names the lost rank only on rank 0; the others print "check rank 0 logs". It only works with
                         gloo, and checks a barrier, not the messages and kernels between two barriers
    timeouts             a message to or from a stopped rank ends after the timeout of the whole process group, and its
                         error names no rank; a kernel that waits for a peer's memory has no timeout
    elastic restart      torchrun ends the remaining ranks and restarts all ranks; with this module, each remaining rank
                         raises a `RankError` with the number of the lost rank, and keeps its destinations

A custom transport over MPI or sockets has none of the three.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, TypeVarTuple, Unpack

from cute_py.errors import CuteError, RankError, shortened
from cute_py.mesh.transport import Transport

_give_way: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))
"""A call that lets other threads and processes run. `time.sleep(0)` takes 60 us, so it is used only without
sched_yield."""

SILENT = 4
"""A connection between two waiting ranks counts as lost after this multiple of `seconds`."""

AT_ONCE = 0.002
"""A wait polls for this many seconds before it pauses: the shortest pause of the system is 60 us."""

PAUSE = 1 / 16
"""Pause between two polls, as a fraction of the time waited so far."""

LONGEST_PAUSE = 0.005
"""Seconds between two polls for a message."""

Answer = TypeVar("Answer")
Arguments = TypeVarTuple("Arguments")
Request = tuple["queue.SimpleQueue[tuple[Any, Exception | None]]", Callable[..., Any], tuple[Any, ...]]


@dataclass(slots=True)
class _State:
    """The contents of this rank's heartbeats, and their key in the store."""

    key: str = ""
    beats: bool = False
    step: int = 0
    waits: bool = False


class Watch:
    """The failure detector of one rank, for one redistribution.

    All ranks must create their `Watch` objects in the same order.

    Args:
        seconds: the maximum time to detect a rank that ended or stalled.
    """

    def __init__(self, transport: Transport, seconds: float) -> None:
        self.transport = transport
        self.seconds = seconds
        self.outcome = "the destinations are unchanged"
        """State of the destinations, for error messages."""
        self._every = seconds / 16
        self._gathered = 0
        self._lost: RankError | None = None
        self._state = _State()
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        arguments = (self._requests, self._state, transport, self._every)
        threading.Thread(target=_serve, args=arguments, daemon=True).start()
        weakref.finalize(self, self._requests.put, None)
        self._name = self._call(_next_name, transport)
        self._call(setattr, self._state, "key", f"{self._name}/beat/{transport.rank}")

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Send this rank's heartbeats during the block. An exception in the block aborts the communicator on all ranks.

        Raises:
            RankError: a rank is lost, or was lost earlier; DeviceError: this rank failed earlier.
        """
        if self._lost is not None:
            facts = {"before": self._lost.headline}
            raise RankError("the communicator was aborted", facts, "make a new one", self._lost.rank)
        self._state.beats = True
        try:
            yield
        except BaseException as problem:
            rank = self.transport.rank
            why = f"raised {type(problem).__name__}: {shortened(str(problem).partition(chr(10))[0])}"
            found = problem if isinstance(problem, RankError) else RankError(f"rank {rank} {why}", rank=rank)
            self._lost = found
            self.transport.abort()
            if found is not problem:
                with contextlib.suppress(RankError):
                    self._put("lost", json.dumps([rank, why]))
            # Give others time to read it: this process may hold the store, and ends now.
            time.sleep(2 * self._every)
            raise
        finally:
            self._state.beats = False

    def step(self) -> None:
        """Record that this rank has made progress."""
        self._state.step += 1

    def gather(self, value: str = "") -> list[str]:
        """Gather one string from each rank on all ranks; no rank returns before all ranks have called this method."""
        rank, ranks, count = self.transport.rank, self.transport.ranks, self._gathered
        self._gathered += 1
        self._put(f"gather/{rank}", f"{count} {value}")
        if rank == 0:
            found = {0: value}

            def all_came() -> bool:
                for other in missing():
                    text = self._get(f"gather/{other}", count)
                    if text is not None:
                        found[other] = text
                return len(found) == ranks

            def missing() -> list[int]:
                return [other for other in range(ranks) if other not in found]

            self.until(all_came, missing)
            self._put("gather/all", f"{count} {json.dumps([found[other] for other in range(ranks)])}")
            return [found[other] for other in range(ranks)]
        verdict: list[str] = []

        def came() -> bool:
            text = self._get("gather/all", count)
            verdict.extend([] if text is None else json.loads(text))
            return text is not None

        self.until(came, lambda: [0])
        return verdict

    def until(self, done: Callable[[], bool], ranks: Callable[[], Collection[int]]) -> None:
        """Wait until `done` returns True; the condition depends on the ranks that `ranks` returns.

        Raises:
            RankError: one of these ranks is lost, or a rank has reported a lost rank.
        """
        began = time.monotonic()
        next_look, seen = began + self._every, dict[int, _Seen]()
        self._state.waits = True
        try:
            while not self._is_done(done, ranks, began, seen):
                now = time.monotonic()
                if now >= next_look:
                    self._look(ranks(), began, seen)
                    next_look = time.monotonic() + self._every
                waited = now - began
                if waited > AT_ONCE:
                    time.sleep(min(waited * PAUSE, LONGEST_PAUSE, self._every))
                else:
                    _give_way()
        finally:
            self._state.waits = False
            self._state.step += 1

    def _is_done(
        self, done: Callable[[], bool], ranks: Callable[[], Collection[int]], began: float, seen: dict[int, _Seen]
    ) -> bool:
        try:
            return done()
        except CuteError:
            raise
        except Exception as problem:  # a transport may raise anything; the beats show the lost rank
            end = time.monotonic() + self.seconds
            while time.monotonic() < end:
                self._look(ranks(), began, seen)
                time.sleep(self._every)
            self._raise_lost(next(iter(ranks()), 0), f"can't be reached: {shortened(str(problem))}")

    def _look(self, ranks: Collection[int], began: float, seen: dict[int, _Seen]) -> None:
        found = self._call(self.transport.get, f"{self._name}/lost")
        if found is not None:
            rank, why = json.loads(found)
            self._raise_lost(rank, why, known=True)
        limit = 0.75 * self.seconds
        for rank in ranks:
            text = self._call(self.transport.get, f"{self._name}/beat/{rank}")
            now = time.monotonic()
            last = seen.setdefault(rank, _Seen(text, began, began))
            if text != last.text:
                before, after = (last.text or "").split()[1:], (text or "").split()[1:]
                moved = now if before != after or after[-1:] == ["waits"] else last.moved
                seen[rank] = last = _Seen(text, now, moved)
            if now - last.alive > limit:
                self._raise_lost(rank, f"sent no heartbeat for {now - last.alive:.1f} s")
            if now - last.moved > limit:
                self._raise_lost(rank, f"is alive, but made no progress for {now - last.moved:.1f} s")
        if time.monotonic() - began > SILENT * self.seconds and ranks:
            self._raise_lost(next(iter(ranks)), f"is alive, but sent nothing for {SILENT * self.seconds:g} s")

    def _raise_lost(self, rank: int, why: str, known: bool = False) -> NoReturn:
        if not known:
            self._put("lost", json.dumps([rank, why]))
        facts = {"found by": f"rank {self.transport.rank}", "destinations": self.outcome}
        raise RankError(f"rank {rank} {why}", facts, "make a new communicator without this rank", rank)

    def _put(self, key: str, value: str) -> None:
        self._call(self.transport.put, f"{self._name}/{key}", value)

    def _get(self, key: str, count: int) -> str | None:
        """Return the value of a key if it was written with this count, otherwise None."""
        text = self._call(self.transport.get, f"{self._name}/{key}")
        before, _, value = (text or "").partition(" ")
        return str(value) if before == str(count) else None

    def _call(self, function: Callable[[Unpack[Arguments]], Answer], *arguments: *Arguments) -> Answer:
        """Call a function of the store on the store's thread. If there is no answer, rank 0, which holds the store,
        counts as lost."""
        answer: queue.SimpleQueue[tuple[Any, Exception | None]] = queue.SimpleQueue()
        self._requests.put((answer, function, arguments))
        problem: Exception | None = None
        value: Answer
        with contextlib.suppress(queue.Empty):
            value, problem = answer.get(timeout=0.75 * self.seconds)
            if problem is None:
                return value
        why = "no answer" if problem is None else shortened(str(problem).partition("\n")[0])
        facts = {"found by": f"rank {self.transport.rank}", "store": why, "destinations": self.outcome}
        raise RankError("rank 0, which holds the store, can't be reached", facts, "make a new communicator")


def _next_name(transport: Transport) -> str:
    """Return the number of this rank's next redistribution; only this rank writes its key."""
    key = f"redistributions/{transport.rank}"
    number = int(transport.get(key) or 0)
    transport.put(key, str(number + 1))
    return str(number)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A rank's last heartbeat, and the times when its heartbeat and its step last changed."""

    text: str | None
    alive: float
    moved: float


def _serve(requests: queue.SimpleQueue[Request | None], state: _State, transport: Transport, every: float) -> None:
    """Execute calls to the store, and send heartbeats between them."""
    count, due = 0, 0.0
    while True:
        try:
            request = requests.get(timeout=max(0.0, due - time.monotonic()) if state.beats else None)
        except queue.Empty:
            request = (queue.SimpleQueue(), lambda: None, ())
        if request is None:
            return
        if state.beats and time.monotonic() >= due:
            count, due = count + 1, time.monotonic() + every
            with contextlib.suppress(Exception):  # the next call reports a lost store
                transport.put(state.key, f"{count} {state.step} {'waits' if state.waits else 'works'}")
        answer, function, arguments = request
        try:
            answer.put((function(*arguments), None))
        except Exception as problem:
            answer.put((None, problem))
