"""Simulate a producer and a consumer that share a ring of stages, tick by tick.

The next minor version removes `Ring`, `RingLoad` and `RingStore`; use `cute_py.run_ptx`, which runs a kernel with its
ring.

The producer waits until a stage is empty, expects the bytes of the loads, and issues the loads of iteration i into
stage i mod D. The bytes arrive `load_ticks` later. The consumer waits for the full barrier, works on the stage, stores
it if the ring has a store, and arrives at the empty barrier. The consumer waits with parity (i / D) & 1. The producer
waits with the opposite parity, so that the first pass finds every stage empty.

    stage 0  LLLLCC.LLLLCC.    . empty   L loading   F full
    stage 1  .LLLLFCC.LLLLC    C consumed   S stored
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cute_py.argument_checks import (
    expect,
    expect_function,
    expect_having,
    expect_integer,
    expect_integer_array,
    expect_integers,
    record_text,
)
from cute_py.errors import InvalidTypeError, InvalidValueError, TmaTrap, counted, given
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.geometry import Descriptor, bytes_or_map, row_image
from cute_py.tma.emulator.mbarrier import MAX_COUNT, Mbarrier
from cute_py.tma.emulator.memory import SHARED_LIMIT, Bytes, GlobalMemory, SharedMemory
from cute_py.tma.emulator.operands import require_box
from cute_py.tma.simulate.diagnosis import Flight, Outcome, Run, completed, trapped, would_hang

if TYPE_CHECKING:
    import numpy as np
else:
    from cute_py.optional_packages import numpy as np

BARRIER_BYTES = 8

MAX_TICKS = 10_000
"""Largest number of ticks of one step. A timeline has a character for each tick."""

EMPTY, LOADING, FULL, CONSUMING, STORING = ".", "L", "F", "C", "S"
"""States of a stage, as the timeline prints them."""


@dataclass(frozen=True, slots=True)
class RingLoad:
    """One operand that every iteration loads: descriptor, coordinates per iteration, and offset in the stage.

    Raises:
        InvalidTypeError: the descriptor is neither bytes nor a decoded tensor map, or the coordinates are not rows of
            integers.
        InvalidValueError: the offset is beyond shared memory.

    >>> from cute_py.tma.descriptor.request import TensorMapTiled
    >>> RingLoad(TensorMapTiled("int32", 4096, (4096,), (), (128,)), [(0,), (128,)]).coords
    ((0,), (128,))
    """

    descriptor: Descriptor
    coords: Sequence[Sequence[int]]
    offset: int = 0
    mode: str | None = None
    im2col_offsets: Sequence[int] = ()

    __repr__ = record_text

    def __post_init__(self) -> None:
        _require_rows(self, "a load")


@dataclass(frozen=True, slots=True)
class RingStore:
    """The store that every iteration makes from its stage. It raises the errors of `RingLoad`.

    >>> from cute_py.tma.descriptor.request import TensorMapTiled
    >>> RingStore(TensorMapTiled("int32", 4096, (4096,), (), (128,)), [(0,), (128,)]).coords
    ((0,), (128,))
    """

    descriptor: Descriptor
    coords: Sequence[Sequence[int]]
    offset: int = 0

    __repr__ = record_text

    def __post_init__(self) -> None:
        _require_rows(self, "a store")


def _require_rows(copy: RingLoad | RingStore, what: str) -> None:
    bytes_or_map(copy.descriptor)  # raises an error if it is neither
    rows = expect_integer_array(copy.coords, f"coords of {what}")
    if rows.ndim != 2 and (rows.size or not rows.ndim):
        got = given(copy.coords)
        raise InvalidTypeError(f"coords of {what} must be one row of coordinates per iteration, got {got}")
    offset = expect_integer(copy.offset, f"offset, of {what} in its stage,", 0, SHARED_LIMIT - 1, "bytes")
    object.__setattr__(copy, "offset", offset)
    object.__setattr__(copy, "coords", tuple(map(tuple, rows.tolist())))
    if isinstance(copy, RingLoad):
        object.__setattr__(copy, "im2col_offsets", expect_integers(copy.im2col_offsets, "im2col_offsets"))


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One event of a stage, at one tick."""

    tick: int
    stage: int
    iteration: int
    what: str

    def __str__(self) -> str:
        return f"{self.tick:>5}  stage {self.stage}  iteration {self.iteration:>3}  {self.what}"


@dataclass(frozen=True, slots=True)
class Timeline:
    """The result of a simulation: the events, the state of every stage at every tick, and how the run ended."""

    depth: int
    events: tuple[TimelineEvent, ...]
    states: tuple[str, ...]
    """One string for each stage, one character for each tick."""
    outcome: Outcome

    @property
    def ticks(self) -> int:
        """Number of ticks of the simulation."""
        return len(self.states[0]) if self.states else 0

    def __repr__(self) -> str:
        return f"<{counted(self.depth, 'stage')} over {counted(self.ticks, 'tick')}: {self.outcome.status}>"

    def __str__(self) -> str:
        lines = [f"stage {i:<2} {state}" for i, state in enumerate(self.states)]
        return "\n".join([*lines, str(self.outcome)])


@dataclass(slots=True)
class _Stage:
    full: Mbarrier
    empty: Mbarrier
    start: int
    state: str = EMPTY
    history: str = ""


class Ring:
    """A ring of `depth` stages of shared memory.

    Args:
        engine: the TMA engine.
        gmem, smem: global and shared memory. Stages start at byte 0 of shared memory, and the barriers follow the last
            stage.
        loads: the loads of every iteration; the full barrier expects the bytes of all of them.
        depth: number of stages.
        store: the store of every iteration; None if there is none.
        stage_bytes: bytes from one stage to the next. None: as many as the loads need, rounded up to a multiple of
            1024.
        expect_bytes: bytes that the producer announces. None: the correct number.
        consume: a function that is called with the bytes of the stage and the index of the iteration. If it changes the
            bytes, a proxy fence follows.
    Raises:
        InvalidValueError: there is no stage or no load, the lists of coordinates differ in length, or shared memory is
            too small.

    >>> from cute_py.tma.descriptor.request import TensorMapTiled
    >>> from cute_py.tma.emulator.emulator import Emulator
    >>> gmem = GlobalMemory()
    >>> _ = gmem.add("A", np.arange(4096, dtype=np.uint32).view(np.uint8), 4096)
    >>> tile = TensorMapTiled(2, 4096, (4096,), (), (128,))
    >>> loads = [RingLoad(tile, [(128 * i,) for i in range(6)])]
    >>> print(Ring(Emulator(), gmem, SharedMemory(4096), loads, depth=2).simulate())
    stage 0  LLLLCC.LLLLCC.LLLLCC...
    stage 1  .LLLLFCC.LLLLCC.LLLLCC.
    completed
    judged: 6 loads, 6 waits
    not judged: order of landing: bytes landed in the order of the program; no other order was tried
    not judged: threads: one order of the calls was run; other orders, and other CTAs, were not
    """

    def __init__(
        self,
        engine: Emulator,
        gmem: GlobalMemory,
        smem: SharedMemory,
        loads: Sequence[RingLoad],
        *,
        depth: int,
        store: RingStore | None = None,
        stage_bytes: int | None = None,
        expect_bytes: int | None = None,
        consume: Callable[[Bytes, int], object] | None = None,
    ) -> None:
        depth = expect_integer(depth, "depth")
        if consume is not None:
            expect_function(consume, "consume, called with bytes and iteration,")
        store = None if store is None else expect(store, RingStore, "store")
        if not isinstance(loads, (tuple, list)):
            raise InvalidTypeError(f"loads of a ring must be RingLoads in a list, got {given(loads)}")
        loads = [expect(load, RingLoad, "a load of a ring") for load in loads]
        expect_having(engine, ("geometry", "load_many"), "an emulator")
        if depth < 1 or not loads:
            raise InvalidValueError(f"the ring has {depth} stages and {len(loads)} loads; must have at least 1 of each")
        counts = {len(load.coords) for load in loads} | ({len(store.coords)} if store else set())
        if len(counts) != 1:
            raise InvalidValueError(f"loads and store have {sorted(counts)} iterations; must have the same number")
        self.iterations = counts.pop()
        self.loads, self.store, self.depth, self.consume = tuple(loads), store, depth, consume
        self.run = Run(engine, gmem, smem)
        ends, right = [], 0
        for load in loads:
            shape = engine.geometry(load.descriptor, load.mode)
            rows = shape.row_count(load.im2col_offsets)
            require_box(shape, rows)
            ends.append(load.offset + row_image(shape, rows, smem.base + load.offset).extent)
            right += rows * shape.row_bytes
        least = -(-max(ends) // 1024) * 1024
        self.stage_bytes = least if stage_bytes is None else expect_integer(stage_bytes, "stage_bytes", 1, unit="bytes")
        self.expect_bytes = expect_integer(
            right if expect_bytes is None else expect_bytes, "expect_bytes", 0, MAX_COUNT, "bytes"
        )
        first = -(-depth * self.stage_bytes // BARRIER_BYTES) * BARRIER_BYTES
        need = first + 2 * depth * BARRIER_BYTES
        if need > len(smem):
            raise InvalidValueError(f"{depth} stages need {need} bytes of shared memory; there are {len(smem)}")
        self._stages = [
            _Stage(
                self.run.barrier(first + 2 * s * BARRIER_BYTES, name=f"full[{s}]"),
                self.run.barrier(first + (2 * s + 1) * BARRIER_BYTES, name=f"empty[{s}]"),
                s * self.stage_bytes,
            )
            for s in range(depth)
        ]

    def __repr__(self) -> str:
        return f"<ring of {counted(self.depth, 'stage')}, {counted(self.iterations, 'iteration')}>"

    def simulate(self, *, load_ticks: int = 4, consume_ticks: int = 2, store_ticks: int = 2) -> Timeline:
        """Simulate all iterations.

        Args:
            load_ticks, consume_ticks, store_ticks: the ticks that a load, the consumer's work and a store take, 1 to
                10,000.
        Returns:
            the timeline. The ring hangs if neither producer nor consumer can proceed and no load is in flight.
        """
        ticks = {"load_ticks": load_ticks, "consume_ticks": consume_ticks, "store_ticks": store_ticks}
        return _Simulation(self, *[expect_integer(n, name, 1, MAX_TICKS, "ticks") for name, n in ticks.items()]).run()


class _Simulation:
    """The state of a simulation: producer, consumer and clock."""

    def __init__(self, ring: Ring, load_ticks: int, consume_ticks: int, store_ticks: int) -> None:
        self.ring, self.stages = ring, ring._stages
        self.load_ticks, self.consume_ticks, self.store_ticks = load_ticks, consume_ticks, store_ticks
        self.events: list[TimelineEvent] = []
        self.tick = 0
        self.produced = self.consumed = 0
        self.flying: list[tuple[int, int, Flight]] = []
        self.busy_until = 0
        self.phase = "wait"

    def note(self, iteration: int, what: str, state: str) -> None:
        """Record an event of a stage, and the new state of the stage."""
        stage = iteration % self.ring.depth
        self.events.append(TimelineEvent(self.tick, stage, iteration, what))
        self.stages[stage].state = state

    def land(self) -> bool:
        """Let the loads that are due at this tick arrive."""
        flying = len(self.flying)
        while self.flying and self.flying[0][0] <= self.tick:
            _, iteration, flight = self.flying.pop(0)
            self.ring.run.land(flight)
            if flight.barrier.phase > flight.phase:
                self.note(iteration, "full", FULL)
        return len(self.flying) < flying

    def produce(self) -> bool:
        """Issue the loads of the next iteration if its stage is empty."""
        i, ring = self.produced, self.ring
        if i >= ring.iterations:
            return False
        stage, parity = self.stages[i % ring.depth], (i // ring.depth) & 1
        if not stage.empty.try_wait(parity ^ 1):
            return False
        stage.full.arrive_expect_tx(ring.expect_bytes)
        for load in ring.loads:
            place, offsets = stage.start + load.offset, load.im2col_offsets
            flight = ring.run.issue(
                load.descriptor, load.coords[i], place, stage.full, mode=load.mode, im2col_offsets=offsets
            )
            self.flying.append((self.tick + self.load_ticks, i, flight))
        self.note(i, "loads issued", LOADING)
        self.produced += 1
        return True

    def work(self) -> bool:
        """Advance the consumer by one step, if it can proceed."""
        i, ring = self.consumed, self.ring
        if i >= ring.iterations or self.tick < self.busy_until:
            return self.tick < self.busy_until
        stage, parity = self.stages[i % ring.depth], (i // ring.depth) & 1
        if self.phase == "wait":
            if not stage.full.try_wait(parity):
                return False
            ring.run.wait(stage.full, parity)
            self.note(i, "consume", CONSUMING)
            if ring.consume is not None:
                self._call(ring.consume, i, stage)
            self.phase, self.busy_until = "consume", self.tick + self.consume_ticks
            return True
        if self.phase == "consume" and ring.store is not None:
            ring.run.store(ring.store.descriptor, ring.store.coords[i], stage.start + ring.store.offset)
            ring.run.commit_group()
            self.note(i, "store issued", STORING)
            self.phase, self.busy_until = "store", self.tick + self.store_ticks
            return True
        ring.run.wait_group_read(0)
        stage.empty.arrive()
        self.note(i, "empty", EMPTY)
        self.phase, self.consumed = "wait", i + 1
        self.work()  # the next stage may be full already
        return True

    def _call(self, consume: Callable[[Bytes, int], object], i: int, stage: _Stage) -> None:
        run, who = self.ring.run, f"consumer of iteration {i}"
        data = run.read(stage.start, self.ring.stage_bytes, who)
        before = data.copy()
        consume(data, i)
        if not np.array_equal(before, data):
            run.write(stage.start, data, who)
            run.fence_proxy_async()

    def run(self) -> Timeline:
        outcome: Outcome | None = None
        while self.consumed < self.ring.iterations and outcome is None:
            try:
                moved = self.land()
                moved = self.produce() or moved
                moved = self.work() or moved
            except TmaTrap as trap:
                outcome = trapped(self.ring.run, trap)
            for stage in self.stages:
                stage.history += stage.state
            self.tick += 1
            if outcome is None and not moved and not self.flying:
                outcome = would_hang(self.ring.run, self.stages[self.consumed % self.ring.depth].full)
        if outcome is None:
            self.ring.run.wait_group(0)
            outcome = completed(self.ring.run)
        states = tuple([stage.history for stage in self.stages])
        return Timeline(self.ring.depth, tuple(self.events), states, outcome)
