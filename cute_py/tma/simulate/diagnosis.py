"""Run a program of copies, barriers and fences, and check it for hangs, traps and races.

The next minor version removes `Run`, `diagnose` and `Outcome`; use `cute_py.run_ptx`, which runs and checks kernels.

On a GPU, a barrier that expects the wrong number of bytes never completes and gives no reason. A tile that is read too
early is wrong only sometimes. `diagnose(program, ...)` runs a Python function that makes the calls of the kernel on a
`Run`. It returns an `Outcome` (completed, trap, or would hang) with all races that it found.

A load is in flight from its issue until a wait on its barrier phase has returned. The program may neither read nor
write the bytes that a load in flight writes. A store reads its source until the program has waited for its group.

Stores and reductions do not signal a barrier; they complete bulk async-groups. A thread commits its issued stores as a
group, and waits until at most N of the newest groups are pending. `wait_group_read` waits only for the reads of shared
memory, `wait_group` also for the writes.

Source: PTX ISA 9.0, cp.async.bulk.commit_group, cp.async.bulk.wait_group.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypedDict, Unpack

from cute_py.argument_checks import expect, expect_function, expect_having, expect_integer, expect_integers, record
from cute_py.diagnostics import Diagnostic, Scope, refuse
from cute_py.errors import InvalidTypeError, InvalidValueError, RaceError, TmaTrap, WouldHangError, counted
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.geometry import Descriptor, row_image
from cute_py.tma.emulator.mbarrier import Contribution, Mbarrier, init_barrier
from cute_py.tma.emulator.memory import SHARED_LIMIT, Bytes, GlobalMemory, SharedMemory, as_bytes, as_global
from cute_py.tma.emulator.operands import checked, reduction
from cute_py.tma.emulator.tensormap_proxy import Agent, TensormapProxy

MOST_NAMED: Final = 8
"""Largest number of barriers that a scope names."""


@dataclass(slots=True)
class Access:
    """The bytes [start, stop) of shared memory that an instruction reads or writes."""

    name: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Race:
    """Two unordered accesses to the same bytes of shared memory, or to one tensor map.

    `start` and `stop` are bytes of shared memory; they are equal for a tensor map.
    """

    rule: str
    start: int
    stop: int
    first: str
    second: str

    def __str__(self) -> str:
        where = f" at shared bytes {self.start} to {self.stop - 1}" if self.stop > self.start else ""
        return f"{self.rule}: {self.second} meets {self.first}{where}"

    @property
    def diagnostic(self) -> Diagnostic:
        """The race as a broken rule, with the two accesses and the bytes as facts."""
        facts: dict[str, object] = {"first": self.first, "second": self.second}
        if self.stop == self.start:
            return Diagnostic("tensor map is", text=self.rule, facts=facts)  # the rule has the reason
        facts["shared bytes"] = f"{self.start} to {self.stop - 1}"
        return Diagnostic(self.rule, text=self.rule, facts=facts)


@record
class Outcome:
    """The outcome of a program. `status` is 'completed', 'trap' or 'would hang'.

    `scope` counts the events that the run checked, and lists the properties that it did not check. A program that
    completes without a race is correct within this scope.

    >>> from cute_py.tma.emulator import Emulator, GlobalMemory, SharedMemory
    >>> found = diagnose(lambda run: run.wait(run.barrier(0), 0), Emulator(), GlobalMemory(), SharedMemory(64))
    >>> found.status, found.pending
    ('would hang', 1)
    """

    status: str
    races: tuple[Race, ...] = ()
    cause: str = ""
    cuda_error: str = ""
    barrier: str = ""
    phase: int = 0
    expected: int = 0
    arrived: int = 0
    pending: int = 0
    contributions: tuple[Contribution, ...] = ()
    arrive_count: int = 0
    scope: Scope = field(default_factory=Scope, repr=False, compare=False)

    @property
    def summary(self) -> str:
        """How the program ended, and its races, as a string without the scope."""
        lines = [self.status]
        if self.status == "trap":
            lines = [f"trap: {self.cuda_error}: {self.cause}"]
        elif self.status == "would hang":
            lines = [
                f"would hang: {self.barrier} never completes phase {self.phase}",
                f"  expected : {self.expected} bytes",
                f"  arrived  : {self.arrived} bytes",
                f"  pending  : {self.pending} of {counted(self.arrive_count, 'arrival')}",
                *(f"  load     : {c.nbytes} bytes from {c.source}" for c in self.contributions),
            ]
        return "\n".join([*lines, *(f"race: {race}" for race in self.races)])

    def __str__(self) -> str:
        return f"{self.summary}\n{self.scope}"


@dataclass(slots=True)
class Flight(Access):
    """A load in flight: the shared bytes that it writes, and the barrier phase that it will signal."""

    barrier: Mbarrier
    phase: int
    land: Callable[[], int]
    landed: bool = False


class LoadOperands(TypedDict, total=False):
    """The operands of a load as in `Emulator.load`, except tensor map, coordinates, position and barrier."""

    mode: str | None
    im2col_offsets: Sequence[int]
    multicast_mask: int | None
    cta_group: int
    gmem_base: int


class Run:
    """The run of a program on one CTA. The program calls the methods, one per instruction, in program order.

    Args:
        engine: the TMA engine.
        gmem, smem: global and shared memory.
        maps: tensor maps in memory. If given, loads and stores accept the address of a map instead of its bytes.
        agent: the position of the thread that issues the copies.
        strict: raise `RaceError` at the first race, instead of recording it.

    >>> from cute_py.tma.emulator import Emulator, GlobalMemory, SharedMemory
    >>> run = Run(Emulator(), GlobalMemory(), SharedMemory(64))
    >>> print(run.barrier(0))
    phase 0: 1 of 1 arrival pending, 0 of 0 bytes arrived
    """

    def __init__(
        self,
        engine: Emulator,
        gmem: GlobalMemory,
        smem: SharedMemory,
        *,
        maps: TensormapProxy | None = None,
        agent: Agent | None = None,
        strict: bool = False,
    ) -> None:
        expect_having(engine, ("geometry", "load", "store"), "an emulator")
        as_global(gmem, 0, writable=False)
        self.engine, self.gmem, self.smem = engine, gmem, expect(smem, SharedMemory, "smem")
        self.strict = expect(strict, bool, "strict")
        self.maps = None if maps is None else expect(maps, TensormapProxy, "maps")
        self.agent = Agent() if agent is None else expect(agent, Agent, "agent")
        self.races: list[Race] = []
        self.groups: list[list[Access]] = [[]]
        """Reads of stores that no wait covers, by bulk group, oldest first; the last group is not committed."""
        self.flights: list[Flight] = []
        self._reading: list[Access] = []
        self._ordinary: list[Access] = []
        self._count = 0
        self._judged: Counter[str] = Counter()
        self._barriers: list[Mbarrier] = []
        self.stuck_at: Mbarrier | None = None
        """The barrier whose phase was not complete at the last wait."""

    def __repr__(self) -> str:
        return f"<run on {self.smem!r}: {counted(self._count, 'instruction')}, {counted(len(self.races), 'race')}>"

    # ---- barriers ----------------------------------------------------------------------------------------------

    def barrier(self, offset: int, arrive_count: int = 1, *, name: str | None = None) -> Mbarrier:
        """Initialise a barrier at a shared-memory offset (mbarrier.init)."""
        made = init_barrier(self.smem, offset, arrive_count, name=name)
        self._barriers.append(made)
        return made

    def wait(self, barrier: Mbarrier, parity: int) -> None:
        """Wait until the phase of this parity has completed. The bytes of its loads are then visible to this thread.

        Raises:
            WouldHangError: no issued copy completes the phase.
        """
        self._judged["wait"] += 1
        if not expect(barrier, Mbarrier, "barrier").try_wait(parity):
            self.stuck_at = barrier
            raise WouldHangError(
                f"{barrier.name} never completes phase {barrier.phase} (parity {parity})",
                {
                    "expected": f"{barrier.expected} bytes",
                    "arrived": f"{barrier.arrived_bytes} bytes",
                    "pending": f"{barrier.pending} of {barrier.arrive_count} arrivals",
                },
            ).of_rule("never completes phase")
        self.flights = [f for f in self.flights if not (f.landed and f.barrier is barrier and f.phase < barrier.phase)]

    # ---- loads -------------------------------------------------------------------------------------------------

    def issue(
        self,
        descriptor: Descriptor | int,
        coords: Sequence[int],
        offset: int,
        barrier: Mbarrier,
        *,
        mode: str | None = None,
        im2col_offsets: Sequence[int] = (),
        multicast_mask: int | None = None,
        cta_group: int = 1,
        gmem_base: int = 0,
    ) -> Flight:
        """Issue a load whose bytes arrive when `land` is called. For the operands, see `Emulator.load`."""
        coords, offset = expect_integers(coords, "coordinates"), _offset(offset)
        expect(barrier, Mbarrier, "barrier")
        name = f"load {self._next()} at {coords}"
        self._judged["load"] += 1
        data, this = self._operands(name, descriptor, coords, offset, mode, im2col_offsets)
        self._check_conflict("two loads into the same bytes", self.flights, this)
        self._check_conflict("overwrites a stage that is still being read", self._reading, this)
        self._check_conflict("overwrites the source of a store before its group was read", self._unread(), this)
        more: LoadOperands = {"mode": mode, "im2col_offsets": im2col_offsets, "multicast_mask": multicast_mask}
        more |= {"cta_group": cta_group, "gmem_base": gmem_base}

        def land() -> int:
            nbytes = self.engine.load(data, self.gmem, coords, self.smem, smem_offset=offset, **more)
            barrier.complete_tx(nbytes, name)
            return nbytes

        flight = Flight(name, this.start, this.stop, barrier, barrier.phase, land)
        self.flights.append(flight)
        return flight

    def land(self, flight: Flight) -> int:
        """Make the bytes of an issued load arrive, and count them at its barrier.

        Raises:
            TmaTrap: the load traps.
            InvalidValueError: the load has landed before.
        """
        if expect(flight, Flight, "flight").landed:
            raise InvalidValueError(f"{flight.name} has landed already")
        flight.landed = True
        return flight.land()

    def load(
        self,
        descriptor: Descriptor | int,
        coords: Sequence[int],
        offset: int,
        barrier: Mbarrier,
        **operands: Unpack[LoadOperands],
    ) -> int:
        """Issue a load. Its bytes arrive immediately, but the program may rely on them only after a wait."""
        return self.land(self.issue(descriptor, coords, offset, barrier, **operands))

    # ---- ordinary accesses -------------------------------------------------------------------------------------

    @contextmanager
    def reading(self, offset: int, nbytes: int, who: str = "a reader") -> Iterator[Bytes]:
        """Return a context manager that yields the bytes of a stage. Inside its block, they count as being read."""
        span = self._access(offset, nbytes, who)
        self._check_conflict("read before its barrier completed", self.flights, span)
        self._reading.append(span)
        try:
            yield self.smem.array[span.start : span.stop]
        finally:
            self._reading.remove(span)

    def read(self, offset: int, nbytes: int, who: str = "an ordinary read") -> Bytes:
        """Read bytes of shared memory with ordinary loads, and return a copy."""
        with self.reading(offset, nbytes, who) as view:
            return view.copy()

    def write(self, offset: int, data: Bytes, who: str = "an ordinary write") -> None:
        """Write bytes of shared memory with ordinary stores."""
        data = as_bytes(data, "data", writable=False)
        span = self._access(offset, len(data), who)
        self._check_conflict("written while a load is in flight", self.flights, span)
        self._check_conflict("changes the source of a store before its group was read", self._unread(), span)
        self.smem.array[span.start : span.stop] = data
        self._ordinary.append(span)

    def fence_proxy_async(self) -> None:
        """Make earlier ordinary writes visible to bulk copies (fence.proxy.async)."""
        self._ordinary = []

    # ---- stores ------------------------------------------------------------------------------------------------

    def store(
        self,
        descriptor: Descriptor | int,
        coords: Sequence[int],
        offset: int,
        *,
        op: str | Enum | None = None,
        mode: str | None = None,
        gmem_base: int = 0,
    ) -> int:
        """Issue a store, or the reduction `op`. It joins the open bulk group."""
        coords, offset = expect_integers(coords, "coordinates"), _offset(offset)
        kind = None if op is None else reduction(op)
        name = f"{kind or 'store'} {self._next()} at {coords}"
        self._judged["store" if kind is None else "reduction"] += 1
        data, this = self._operands(name, descriptor, coords, offset, mode)
        self._check_conflict("store without fence.proxy.async after ordinary writes", self._ordinary, this)
        self._check_conflict("store before the load of its source was waited for", self.flights, this)
        self.groups[-1].append(this)
        one = data, self.gmem, coords, self.smem
        if kind is None:
            return self.engine.store(*one, mode=mode, smem_offset=offset, gmem_base=gmem_base)
        return self.engine.reduce(kind, *one, mode=mode, smem_offset=offset, gmem_base=gmem_base)

    def commit_group(self) -> None:
        """Commit the open bulk group, which may be empty (cp.async.bulk.commit_group)."""
        self.groups.append([])

    def wait_group_read(self, newest: int = 0) -> None:
        """Wait until all committed groups but the `newest` have read their source (cp.async.bulk.wait_group.read)."""
        kept = len(self.groups) - 1 - expect_integer(newest, "wait_group", 0, unit="groups")
        del self.groups[: max(kept, 0)]

    def wait_group(self, newest: int = 0) -> None:
        """Wait until all committed groups but the `newest` are complete (cp.async.bulk.wait_group).

        For races in shared memory, this is `wait_group_read`, because the emulator writes global memory immediately.
        """
        self.wait_group_read(newest)

    def exit(self) -> None:
        """End the CTA.

        This releases its shared memory, so all stores must have read it and all loads must have landed.
        """
        unread = [Race("exit before the group was read", op.start, op.stop, op.name, "exit") for op in self._unread()]
        flying = [Race("exit before the load was waited for", f.start, f.stop, f.name, "exit") for f in self.flights]
        for race in unread + flying:
            if race not in self.races:  # a program may have ended before `diagnose` ends it
                self._note(race)

    def _unread(self) -> list[Access]:
        """Return the shared-memory accesses of stores that may still read their source."""
        return list(itertools.chain(*self.groups))

    # ---- how it ends -------------------------------------------------------------------------------------------

    def _scope(self, left: str = "", stuck: Mbarrier | None = None) -> Scope:
        """Return the scope of the run so far: events that were checked, and properties that were not."""
        judged = [counted(count, noun) for noun, count in sorted(self._judged.items())]
        open_ = [b for b in self._barriers if b is not stuck and (b.tx_count or b.pending != b.arrive_count)]
        not_judged = [left] if left else []
        if open_:
            names = ", ".join(b.name for b in open_[:MOST_NAMED]) + ("" if len(open_) <= MOST_NAMED else ", ...")
            not_judged.append(f"{counted(len(open_), 'barrier')}: no thread waited for the current phase: {names}")
        if self._judged["load"]:
            not_judged.append("order of landing: bytes landed in the order of the program; no other order was tried")
        not_judged.append("threads: one order of the calls was run; other orders, and other CTAs, were not")
        return Scope(tuple(judged), tuple(not_judged))

    # ---- common ------------------------------------------------------------------------------------------------

    def _next(self) -> int:
        self._count += 1
        return self._count - 1

    def _operands(
        self,
        name: str,
        descriptor: Descriptor | int,
        coords: Sequence[int],
        offset: int,
        mode: str | None,
        offsets: Sequence[int] = (),
    ) -> tuple[Descriptor, Access]:
        """Return the tensor map that the engine sees, and the access of a copy to shared memory."""
        if isinstance(descriptor, int):
            if self.maps is None:
                raise InvalidTypeError(
                    f"{name} gives its map as an address, {descriptor:#x}; without `maps` it must be bytes or a request"
                )
            address = descriptor
            descriptor, ordering = self.maps.read(address, agent=self.agent)
            if not ordering.ordered:
                self._note(Race(f"tensor map is {ordering}", 0, 0, f"the write of the map at 0x{address:x}", name))
        shape = self.engine.geometry(descriptor, mode)
        *_, rows = checked(shape, [coords], offsets)
        return descriptor, Access(name, offset, offset + row_image(shape, rows, self.smem.base + offset).extent)

    def _access(self, offset: int, nbytes: int, who: str) -> Access:
        """Return the shared-memory access of an ordinary load or store."""
        size = len(self.smem)
        start = expect_integer(offset, "the offset in shared memory", 0, size, "bytes")
        count = expect_integer(nbytes, "the size of an access to shared memory", 0, size - start, "bytes")
        return Access(expect(who, str, "who"), start, start + count)

    def _check_conflict(self, rule: str, others: Sequence[Access], this: Access) -> None:
        """Record a race for each other access that shares bytes with this access."""
        for other in others:
            low, high = max(this.start, other.start), min(this.stop, other.stop)
            if low < high:
                self._note(Race(rule, low, high, other.name, this.name))

    def _note(self, race: Race) -> None:
        self.races.append(race)
        if self.strict:
            refuse(RaceError, [race.diagnostic])


def _offset(value: int) -> int:
    return expect_integer(value, "the offset in shared memory", 0, SHARED_LIMIT - 1, "bytes")


def completed(run: Run) -> Outcome:
    """Return the outcome of a program that reached its end."""
    return Outcome("completed", tuple(run.races), scope=run._scope())


def trapped(run: Run, trap: TmaTrap) -> Outcome:
    """Return the outcome of a program that ended because a copy trapped."""
    left = "the rest of the program, which the trap ended"
    return Outcome("trap", tuple(run.races), trap.cause, trap.cuda_error, scope=run._scope(left))


def would_hang(run: Run, barrier: Mbarrier) -> Outcome:
    """Return the outcome of a program that waits for a phase that never completes."""
    return Outcome(
        "would hang",
        tuple(run.races),
        barrier=barrier.name,
        phase=barrier.phase,
        expected=barrier.expected,
        arrived=barrier.arrived_bytes,
        pending=barrier.pending,
        contributions=tuple(barrier.contributions),
        arrive_count=barrier.arrive_count,
        scope=run._scope("the rest of the program, because the wait never ends", barrier),
    )


def diagnose(
    program: Callable[[Run], object],
    engine: Emulator,
    gmem: GlobalMemory,
    smem: SharedMemory,
    *,
    maps: TensormapProxy | None = None,
) -> Outcome:
    """Run `program` and return how it ends.

    Args:
        program: a function that takes a `Run` and calls its methods.
        maps: tensor maps in memory, if the program passes them by address.

    >>> from cute_py.tma.emulator.emulator import Emulator
    >>> from cute_py.tma.emulator.memory import GlobalMemory, SharedMemory
    >>> print(diagnose(lambda run: run.wait(run.barrier(0), 0), Emulator(), GlobalMemory(), SharedMemory(64)))
    would hang: mbarrier[CTA 0, 0] never completes phase 0
      expected : 0 bytes
      arrived  : 0 bytes
      pending  : 1 of 1 arrival
    judged: 1 wait
    not judged: the rest of the program, because the wait never ends
    not judged: threads: one order of the calls was run; other orders, and other CTAs, were not
    """
    expect_function(program, "a program, called with a Run,")
    run = Run(engine, gmem, smem, maps=maps)
    try:
        program(run)
    except TmaTrap as trap:
        return trapped(run, trap)
    except WouldHangError:
        barrier = run.stuck_at
        if barrier is None:
            raise
        return would_hang(run, barrier)
    run.exit()
    return completed(run)
