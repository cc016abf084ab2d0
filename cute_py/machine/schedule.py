"""The machine: it keeps the resident CTAs, chooses which threads run next, and manages waiting threads.

Threads at the same instruction form a frame. The frame with the lowest program counter runs up to the end of a block;
then frames at the same instruction are merged. So threads that took different sides of a branch join after it, and
warps that run the same code run it in one numpy operation until they diverge. A loop that spins on a lock may keep the
lowest program counter forever. Therefore, after `PATIENCE` backward jumps, the frame that has been runnable for the
longest time runs next, so that the frame that holds the lock makes progress.

A frame that waits (for a barrier, for a phase of an mbarrier, for the other lanes of its warp) is `Waiting`, with a
function that returns the threads that may continue. A polling loop, which reads memory that other threads write and
stores nothing, is parked in the same way until something changes.

When no frame can run, the schedule completes the transfers and matrix products that are in flight, one at a time. If
none are in flight, it advances the clock for loops that read a clock. If still no waiting thread makes progress, the
run ends with a diagnostic that names the waiting threads and what they wait for.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from cute_py.diagnostics import Diagnostic
from cute_py.machine.code import FRAME_ALIGN, Code, Stretch
from cute_py.machine.faults import Fault, finding
from cute_py.machine.judgement.hangs import hang_findings
from cute_py.machine.judgement.observer import Observer
from cute_py.machine.judgement.waits import LoopWait, WaitsOn
from cute_py.machine.memory import GLOBAL_START, LOCAL_WINDOW, RANK_SHIFT, SHARED_WINDOW, Memory
from cute_py.machine.threads import LANES, Array, Frame, Registers, Scattered, Span
from cute_py.tma.emulator.memory import POISON, Range, SharedMemory

MAX_FRAMES: Final = 4096
"""Maximum number of cached frames of neighbouring threads."""

PATIENCE: Final = 4096
"""Maximum number of jumps back of loops while other frames could run."""

LOOK_WEIGHT: Final = PATIENCE // 32
"""Weight of a jump back in a loop that reads memory that others may change: such a loop may spin on a lock."""

CLOCK_LEAP: Final = 1 << 22
"""Cycles that pass in one step when only waiting loops run; the number grows while they wait."""

MAX_LEAPS: Final = 1 << 15
"""Maximum number of such steps while nothing else changes. Loops that only count their rounds are then a hang."""

LEAP_SHARE: Final = 1 / 4
"""Maximum share of the limit of instructions that such loops may execute while nothing else changes."""

MAX_LOCAL: Final = 512 << 20
"""Maximum bytes of local memory of all threads, including the frames of their calls."""

MAX_TRACE: Final = 1 << 20
"""Maximum number of blocks in a trace."""


@dataclass(slots=True)
class Waiting:
    """A frame of threads that wait for a condition.

    pc: the instruction where they continue. ready: returns the threads that may continue, as (pc, frame) pairs, and
    the threads that stay; None if none may continue. what: returns the text of the condition. looks: whether the wait
    is a polling loop, or may time out.
    """

    frame: Frame
    pc: int
    at: int
    ready: Callable[[Waiting], tuple[list[tuple[int, Frame]], Frame | None] | None]
    what: Callable[[], str]
    looks: bool = False
    on: WaitsOn | None = None
    """The condition, in the form that `judgement/hangs.py` reads."""


@dataclass(slots=True)
class Pending:
    """A transfer or a matrix product in flight. what: its name. at: index of its instruction."""

    what: str
    at: int
    complete: Callable[[], None]
    done: bool = False
    waited_for: bool = False
    """Whether it completes only when a thread waits for its group, never by itself."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a launch, each as (x, y, z): CTAs per grid, threads per CTA, CTAs per cluster.

    cooperative: whether all CTAs run together, and the kernel has a workspace for `grid.sync()`.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    dynamic_shared: int = 0
    explicit_cluster: bool = False
    cooperative: bool = False

    def coordinates(self) -> Array:
        """Coordinates (n, 3) of all CTAs in launch order: cluster after cluster, with x fastest among clusters and
        inside each cluster."""
        clusters = [np.arange(g // c) for g, c in zip(self.grid, self.cluster, strict=True)]
        inner = [np.arange(c) for c in self.cluster]
        sheets = np.meshgrid(*reversed(clusters), *reversed(inner), indexing="ij")
        cz, cy, cx, iz, iy, ix = (sheet.reshape(-1) for sheet in sheets)
        size = self.cluster
        return np.stack([cx * size[0] + ix, cy * size[1] + iy, cz * size[2] + iz], axis=1)


@dataclass(slots=True)
class Totals:
    """The counts and findings of a run so far, over all its waves."""

    steps: int = 0
    printed: list[str] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    trace: list[tuple[int, int, Array]] = field(default_factory=list)
    clock: int = 0
    unjudged: dict[str, None] = field(default_factory=dict)
    """Texts that name what the judges left out, each once, in the order of the run."""


class Machine:
    """The machine of one wave: CTAs that run together, with their threads and memories.

    Args:
        numbers: (n, 3) coordinates of each CTA in the grid; clusters are whole, with their CTAs in the order of rank.
        mode: 'eager', 'lazy', or a seed. shared_base: address of the first byte of shared memory.
        observer: receives the events of the run.
    """

    def __init__(
        self,
        code: Code,
        memory: Memory,
        shape: Shape,
        numbers: Array,
        mode: str | int,
        limit: int,
        totals: Totals,
        *,
        shared_base: int = 1024,
        observer: Observer | None = None,
    ) -> None:
        self.observer = Observer() if observer is None else observer
        self.code, self.memory, self.shape, self.limit, self.totals = code, memory, shape, limit, totals
        self.numbers = numbers
        self.ctas = len(numbers)
        self.block_threads = shape.block[0] * shape.block[1] * shape.block[2]
        self.cta_threads = -(-self.block_threads // LANES) * LANES
        self.count = self.ctas * self.cta_threads
        self.cluster_size = shape.cluster[0] * shape.cluster[1] * shape.cluster[2]
        self.eager = mode == "eager"
        self.dice = random.Random(mode) if isinstance(mode, int) else None
        self.registers = Registers(code.counts, self.count)
        self.live = np.ones(self.count, np.bool_)
        self.live.reshape(self.ctas, -1)[:, self.block_threads :] = False
        self.live_ctas = np.ones(self.ctas, np.bool_)
        self.exits = 0
        self.shared_base = shared_base
        self.shared_bytes = code.shared_bytes(shape.dynamic_shared)
        self.shared_stride = -(-max(self.shared_bytes, 1) // 1024) * 1024
        self.shared = np.full(self.ctas * self.shared_stride, POISON, np.uint8)
        self.local_bytes = code.local_bytes
        """Local bytes of a thread: variables at fixed places, then the frames of recursive functions."""
        self.local_stride = -(-max(code.local_bytes, 1) // 16) * 16
        self.local = np.zeros(self.count * self.local_stride if code.local_bytes else 0, np.uint8)
        self.frames = np.zeros(self.count, np.int64)
        """Offset of each thread's present frame from the end of the fixed places, in bytes."""
        rank = np.arange(self.ctas) % self.cluster_size
        self.cta_window = (rank << RANK_SHIFT) + shared_base
        self.windows = self._windows(rank)
        self.spans: dict[tuple[int, int], Frame] = {}
        self.last_range: dict[int, Range] = {}
        self.runnable: dict[int, Frame] = {}
        self.waiting: list[Waiting] = []
        self.agents: list[Pending] = []
        self.version = 0
        """Number of changes so far that a waiting thread may wait for."""
        self.looked = False
        """Whether this turn has read state that others may change, since its last jump back after such a read."""
        self._looked_before = False
        """Whether an earlier turn has read such state since the last jump back. A barrier may end a turn between the
        read and the branch."""
        self._jumps = 0
        """Jumps back since the oldest frame had a turn, weighted by `LOOK_WEIGHT`."""
        self.state: dict[Any, Any] = {}
        """State of the families of instructions: barriers, groups. The run calls the 'endings' at its end."""
        self.wave = 0
        self.asynchronous = False
        """Whether the kernel has issued work that a schedule may complete later."""
        self.depth = np.zeros(self.count, np.int64)
        self._leaps, self._leap_start = 0, 0
        self._rows: dict[str, Array] = {}

    def _windows(self, rank: Array) -> list[SharedMemory]:
        made = []
        for cta in range(self.ctas):
            part = self.shared[cta * self.shared_stride : cta * self.shared_stride + self.shared_bytes]
            made.append(SharedMemory(part, base=self.shared_base, rank=int(rank[cta])))
        for cta in range(self.ctas):
            first = cta - cta % self.cluster_size
            made[cta].peers = tuple(made[first : first + self.cluster_size])
        return made

    # ---- threads -----------------------------------------------------------------------------------------------------

    def frame(self, threads: Array) -> Frame:
        """Return the frame of the threads with these sorted indices."""
        lo, hi = int(threads[0]), int(threads[-1]) + 1
        if hi - lo != len(threads):
            return Scattered(self, threads, lo, hi)
        found = self.spans.get((lo, hi))
        if found is None:
            if len(self.spans) >= MAX_FRAMES:
                self.spans.clear()
            found = self.spans[lo, hi] = Span(self, threads, lo, hi)
        return found

    def span(self, lo: int, hi: int) -> Frame:
        """Return the frame of all threads from index `lo` to `hi` - 1."""
        found = self.spans.get((lo, hi))
        return found if found is not None else self.frame(np.arange(lo, hi))

    def union(self, one: Frame, other: Frame) -> Frame:
        """Return the union of two frames without common threads."""
        if one.hi <= other.lo:
            return self.frame(np.concatenate([one.threads, other.threads]))
        if other.hi <= one.lo:
            return self.frame(np.concatenate([other.threads, one.threads]))
        return self.frame(np.sort(np.concatenate([one.threads, other.threads])))

    def row(self, name: str, made: Callable[[], Array]) -> Array:
        """Return a row with one value per thread, cached by name."""
        found = self._rows.get(name)
        if found is None:
            found = self._rows[name] = made()
        return found

    def shared_window(self, f: Frame) -> Any:
        """Address of the first byte of each thread's shared memory."""
        found = f.cache.get("window")
        if found is None:
            alone = self.cluster_size == 1
            found = f.cache["window"] = np.int64(self.shared_base) if alone else self.cta_window[f.ctas]
        return found

    def shared_row(self, f: Frame) -> Any:
        """Offset of each thread's shared memory in the array of all CTAs."""
        found = f.cache.get("row")
        if found is None:
            found = f.cache["row"] = np.int64(0) if self.ctas == 1 else f.ctas * self.shared_stride
        return found

    def frame_starts(self, f: Frame) -> Array:
        """Local address of each thread's current call frame."""
        first = -(-self.code.local_bytes // FRAME_ALIGN) * FRAME_ALIGN
        found: Array = first + self.frames[f.threads]
        return found

    def grow_local(self, needed: int) -> bool:
        """Grow each thread's local memory to at least `needed` bytes; False if the total would exceed `MAX_LOCAL`."""
        if needed <= self.local_bytes:
            return True
        stride = -(-max(needed, 2 * self.local_stride) // FRAME_ALIGN) * FRAME_ALIGN
        if stride * self.count > MAX_LOCAL:
            return False
        grown = np.zeros((self.count, stride), np.uint8)
        grown[:, : self.local_stride] = self.local.reshape(self.count, -1) if self.local.size else 0
        self.local, self.local_stride, self.local_bytes = grown.reshape(-1), stride, stride
        return True

    # ---- texts -------------------------------------------------------------------------------------------------------

    def thread_text(self, thread: int) -> str:
        """Text of a thread, such as `CTA (1, 0, 0), thread (5, 0, 0)`."""
        cta, number = divmod(int(thread), self.cta_threads)
        x, y, _ = self.shape.block
        inside = (number % x, number // x % y, number // (x * y))
        return f"CTA {_triple(self.numbers[cta])}, thread {_triple(inside)}"

    def threads_text(self, threads: Array) -> str:
        """Text of threads of one or several CTAs."""
        ctas = np.unique(threads // self.cta_threads)
        first = threads[threads // self.cta_threads == ctas[0]] - ctas[0] * self.cta_threads
        if len(first) == 1:
            said = f"thread {int(first[0])}"
        elif int(first[-1]) - int(first[0]) + 1 == len(first):
            said = f"threads {int(first[0])} to {int(first[-1])}"
        else:
            said = f"{len(first)} threads from {int(first[0])} to {int(first[-1])}"
        more = f" and the same in {len(ctas) - 1} more" if len(ctas) > 1 else ""
        return f"CTA {_triple(self.numbers[ctas[0]])}{more}, {said}"

    def address_text(self, address: int) -> str:
        """Text of an address, with the name of its memory or range."""
        if address < SHARED_WINDOW:
            return f"{address:#x}"
        if address < GLOBAL_START:
            return f"{'local' if address >= LOCAL_WINDOW else 'shared'} memory, generic address {address:#x}"
        return self.memory.ranges.name_of(address)

    # ---- waiting -----------------------------------------------------------------------------------------------------

    def wait(self, waiting: Waiting) -> None:
        """Add a frame of waiting threads."""
        self.waiting.append(waiting)

    def changed(self) -> None:
        """Record a change that other threads may wait for."""
        self.version += 1

    def under_way(self, what: str, at: int, complete: Callable[[], None], *, waited_for: bool = False) -> Pending:
        """Start asynchronous work: complete it immediately, or keep it as an agent that completes later."""
        agent = Pending(what, at, complete, waited_for=waited_for)
        self.asynchronous = True
        if self.eager or (self.dice is not None and self.dice.random() < 0.5):
            self.finish(agent)
        else:
            self.agents.append(agent)
        return agent

    def finish(self, agent: Pending) -> None:
        """Complete an agent, unless it is already complete."""
        if not agent.done:
            agent.done = True
            if agent in self.agents:
                self.agents.remove(agent)
            agent.complete()
            self.version += 1

    def exited(self, f: Frame) -> None:
        """Mark the threads of a frame as exited."""
        self.observer.exited(f)
        self.live[f.threads] = False
        self.exits += 1
        self.version += 1
        for cta, _ in f.parts:
            start = cta * self.cta_threads
            self.live_ctas[cta] = bool(self.live[start : start + self.cta_threads].any())

    # ---- running -----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run until all threads have ended.

        Raises:
            Fault: the run can't continue.
        """
        start = self.code.start
        flags = self.live
        self.observer.began(self)
        self.runnable[start] = self.frame(np.flatnonzero(flags))
        with np.errstate(all="ignore"):
            polled = self.version
            while True:
                if self.version != polled:
                    polled = self.version
                    self._leaps = 0
                    self._poll()
                if self.runnable:
                    pc = self._next()
                    self._run_from(pc, self.runnable.pop(pc))
                elif not self._unstick():
                    break
            while self.agents:
                self.finish(self.agents[0])
            for end in self.state.get("endings", ()):
                end()

    def _next(self) -> int:
        if self.dice is not None and len(self.runnable) > 1:
            return self.dice.choice(list(self.runnable))
        if self._jumps >= PATIENCE or len(self.runnable) == 1:
            self._jumps = 0
            return next(iter(self.runnable))  # a dict keeps its order: the first frame has waited for the longest time
        return min(self.runnable)

    def _run_from(self, pc: int, frame: Frame) -> None:
        """Run a frame until it diverges, stops, or another frame has a lower program counter."""
        blocks, totals, runnable = self.code.blocks, self.totals, self.runnable
        version, patience = self.version, PATIENCE
        self._looked_before |= self.looked
        self.looked = False
        trace, wave = totals.trace, self.wave
        while True:
            block = blocks[pc]
            if block is None:
                raise self._fell_off(frame)
            totals.steps += frame.n * block.length
            if totals.steps > self.limit:
                raise self._too_long(block, frame)
            block.threads += frame.n
            block.warps += frame.warp_count
            if len(trace) < MAX_TRACE:
                trace.append((wave, pc, frame.threads))
            totals.clock += block.length
            if block.observed is not None:
                block.observed(frame)
            for run in block.runs:
                run(frame)
            control = block.control
            gone = None if control is None else control(frame)
            if gone is None:
                last, pc = pc, block.after
            elif len(gone) == 1:
                last = pc
                pc, frame = gone[0]
            else:
                for after, part in gone:
                    self.add(after, part)
                return
            if pc <= last:
                self._jumped_back()
                if self.looked and self._park(pc, last, frame):
                    return
                patience -= 1
                if patience <= 0 and runnable:
                    self._rotate(pc, frame)
                    return
            if self.version != version or (runnable and min(runnable) <= pc):
                self.add(pc, frame)
                return

    def _jumped_back(self) -> None:
        """Count a backward jump if other frames could run."""
        if self.runnable:
            self._jumps += LOOK_WEIGHT if self.looked or self._looked_before else 1
            self._looked_before = False

    def add(self, pc: int, frame: Frame) -> None:
        """Make a frame runnable at an instruction, merging it with any frame that is already there."""
        other = self.runnable.get(pc)
        self.runnable[pc] = frame if other is None else self.union(other, frame)

    def _rotate(self, pc: int, frame: Frame) -> None:
        """Make this frame wait until the other frames have run."""
        version = self.version

        def ready(waiting: Waiting) -> tuple[list[tuple[int, Frame]], Frame | None] | None:
            return ([(waiting.pc, waiting.frame)], None) if self.version != version or not self.runnable else None

        self.wait(Waiting(frame, pc, pc, ready, lambda: "its turn", looks=True))

    def _park(self, pc: int, last: int, frame: Frame) -> bool:
        """Park a polling loop until something changes; return False if something has changed since its last round."""
        self.looked = False
        kept = frame.cache.get(("looked", pc))
        frame.cache["looked", pc] = self.version
        if kept != self.version:
            return False
        version = self.version
        at = (self.code.blocks[last] or Stretch(pc, pc + 1)).after - 1

        def ready(waiting: Waiting) -> tuple[list[tuple[int, Frame]], Frame | None] | None:
            return ([(waiting.pc, waiting.frame)], None) if self.version != version else None

        def what() -> str:
            lines = f"lines {self.code.instructions[pc].line} to {self.code.instructions[at].line}"
            return f"run the loop of {lines}, which changes nothing"

        self.wait(Waiting(frame, pc, at, ready, what, looks=True, on=LoopWait(pc, at)))
        return True

    def _snapshot(self, frame: Frame) -> bytes:
        """The bytes of all registers of a frame."""
        parts = [bank[:, frame.threads].tobytes() for bank in self.registers.banks]
        return b"".join(parts)

    def _poll(self) -> None:
        """Resume the waiting threads whose condition holds."""
        kept = []
        before, self.waiting = self.waiting, []
        for one in before:
            answer = one.ready(one)
            if answer is None:
                kept.append(one)
                continue
            gone, rest = answer
            for pc, frame in gone:
                self.add(pc, frame)
            if rest is not None:
                one.frame = rest
                kept.append(one)
        self.waiting = kept + self.waiting

    def _unstick(self) -> bool:
        """When no frame can run, complete asynchronous work, advance the clock, or end the run. Return False if all
        threads have exited.
        """
        if not self.waiting:
            return False
        version = self.version
        self._poll()
        if self.runnable or self.version != version:
            return True
        able = [agent for agent in self.agents if not agent.waited_for] or self.agents
        if able:
            self.finish(able[0] if self.dice is None else self.dice.choice(able))
            return True
        looking = [one for one in self.waiting if one.looks]
        if not looking or not self._time_passes(looking):
            raise self._hang()
        return True

    def _time_passes(self, looking: list[Waiting]) -> bool:
        """Advance the clock and let polling loops run once more; return False if none of them has made progress."""
        if not self._leaps:
            self._leap_start = self.totals.steps
        self._leaps += 1
        if self._leaps > MAX_LEAPS or self.totals.steps - self._leap_start > LEAP_SHARE * self.limit:
            return False
        moved = False
        for one in looking:
            now = self._snapshot(one.frame)
            key = ("stood", one.at, one.frame.threads.tobytes())
            moved |= self.state.get(key) != now
            self.state[key] = now
            one.frame.cache.pop(("looked", one.pc), None)
        if not moved and self._leaps > 2:
            return False
        self.observer.time_passes(self)
        self.totals.clock += CLOCK_LEAP << min(self._leaps // 16, 12)
        self.waiting = [one for one in self.waiting if not one.looks]
        for one in looking:
            self.add(one.pc, one.frame)
        return True

    # ---- ends --------------------------------------------------------------------------------------------------------

    def _fell_off(self, frame: Frame) -> Fault:
        text = f"{frame.text()} ran past the last instruction of a function"
        last = self.code.instructions[-1] if self.code.instructions else None  # a kernel may be empty
        return Fault(finding("no return", text, last, files=self.code.files))

    def _too_long(self, block: Stretch, frame: Frame) -> Fault:
        one = self.code.instructions[block.start]
        inner = max((b for b in self.code.blocks if b is not None), key=lambda b: b.threads)
        lines = f"lines {self.code.instructions[inner.start].line} to {self.code.instructions[inner.after - 1].line}"
        text = f"the run executed {self.limit} instructions, its limit; most often {lines}; now at {frame.text()}"
        facts: dict[str, Any] = {"limit": self.limit, "loop": lines}
        return Fault(finding("limit", text, one, files=self.code.files, facts=facts))

    def _hang(self) -> Fault:
        """Return the fault for a run where all threads wait."""
        self.observer.stuck(self)
        first, *others = hang_findings(self)
        return Fault(first, others)


def _triple(numbers: Any) -> str:
    x, y, z = (int(number) for number in numbers)
    return f"({x}, {y}, {z})"
