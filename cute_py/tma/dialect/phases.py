"""LowerTMALoadStoreToAsync: the pass that rewrites a kernel body between stages 3a and 3, in eight phases.

    1 KernelSpec gate              5 async op materialization
    2 TMA-eligibility scan         6 mbarrier emission
    3 tmaIdx assignment            7 wait sinking
    4 descriptor bind              8 diagnostic finalization

A body has copies and other operations in program order. The loads before the first operation that reads one of their
tiles form a pipeline stage. A pipeline stage has one barrier, which expects one arrival and the bytes of all its loads.
Phase 6 puts the wait directly after the last load; phase 7 moves it down to the first operation that reads a tile. With
depth D, a pipeline stage has D slots, and iteration i uses slot i mod D at parity (i / D) & 1.

The pass leaves a function without a kernel spec unchanged, and returns a diagnostic. Phase 2 skips a copy whose witness
(the copy atom chosen for the architecture) is not a TMA atom.

A kernel has two groups of tensor maps, made on the host and made on the device, each with its own counter. Both are in
a block of parameters that is appended to the kernel's own. Device slots come before host slots, so that a kernel finds
its working buffer at a fixed offset. A host map is passed by value and marked `cute_nvgpu.grid_constant`, which later
becomes `nvvm.grid_constant`. The marked parameter is 128-byte aligned in .param.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TypeAlias

from cute_py.argument_checks import expect, expect_integer, record
from cute_py.diagnostics import Diagnostic
from cute_py.errors import counted
from cute_py.tma.atom.tile_atom import ExecutableCopy, TileAtom
from cute_py.tma.dialect.atoms import ExecTmaAtom, NonExecTmaAtom
from cute_py.tma.dialect.diagnostics import DESCRIPTOR_BYTES, broken, short_repr
from cute_py.tma.dialect.exec_atom import TmaOperation
from cute_py.tma.dialect.stages import check_stages, rebind_lines, rebind_of, value_names, witness_of
from cute_py.tma.dialect.traced_copy import TracedCopy, trace_copy

__all__ = ["KernelFunction", "KernelOperation", "PhaseTrace", "run_phases"]

BARRIER_BYTES = 8
TILE_ALIGNMENT = 1024
"""Alignment in bytes of a tile in the kernel's shared memory, for any swizzle."""


def check_counters(host: Sequence[int], device: Sequence[int], num_host: int, num_device: int) -> list[Diagnostic]:
    """Check that the counters of host and device maps agree with the indices in use.

    >>> print(*check_counters([0, 1], [], num_host=1, num_device=0))
    tmaIdx exceed tmaHostNum.
    """
    return broken(
        (any(not 0 <= index < num_host for index in host), "counters.host", ""),
        (any(not 0 <= index < num_device for index in device), "counters.device", ""),
    )


MISSING_SPEC = "LowerTMALoadStoreToAsync: missing or invalid KernelSpecAttr on function"
PHASES = (
    "KernelSpec gate",
    "TMA-eligibility scan",
    "tmaIdx assignment",
    "descriptor bind",
    "async op materialization",
    "mbarrier emission",
    "wait sinking",
    "diagnostic finalization",
)
"""The names of the phases, in order."""


@record
class KernelOperation:
    """An operation of the body that is not a copy: its text, and the names of the tensors whose tiles it reads.

    >>> KernelOperation("gemm(A, B)", ("A", "B")).reads
    ('A', 'B')
    """

    text: str
    reads: tuple[str, ...] = ()


KernelCopy: TypeAlias = TracedCopy | TileAtom | ExecutableCopy | NonExecTmaAtom | ExecTmaAtom | TmaOperation


@record
class KernelFunction:
    """The kernel function that the pass rewrites.

    Attributes:
        arch: the architecture of the kernel spec; None if the function has no kernel spec.
        copies: the body in program order: copies (atoms are named A, B, ... in order) and other operations.
        num_host_tmas, num_device_tmas: the function's counters of tensor maps; None if phase 3 sets them.
        depth: number of slots of a pipeline stage.
        device: names of the tensors whose maps are made on the device.

    >>> KernelFunction("sm_90a", ()).depth
    1
    """

    arch: str | None
    copies: tuple[KernelCopy | KernelOperation, ...]
    num_host_tmas: int | None = None
    num_device_tmas: int | None = None
    allow_tma: bool = True
    depth: int = 1
    device: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"kernel of {counted(len(self.copies), 'operation')} for {self.arch}"

    __repr__ = short_repr


@dataclass(frozen=True, slots=True)
class Phase:
    """The result of one phase: its number, its name, and one line per copy or decision.

    From phase 3 on, it also has the body after the phase. Only phases 4 to 7 change the body.
    """

    number: int
    name: str
    lines: tuple[str, ...]
    body: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BoundCopy:
    """A copy that became asynchronous, with the index of its tensor map and whether the device makes the map."""

    copy: TracedCopy
    tma_index: int

    @property
    def origin(self) -> str:
        return "device" if self.copy.device else "host"

    @property
    def name(self) -> str:
        """Name of the tensor in the traces, such as `a`."""
        return value_names(self.copy).small

    @property
    def synchronous(self) -> str:
        """The operation before the rewrite, as one line."""
        tile = f"%{self.name}_tile, " if self.copy.direction == "store" else ""
        return f"%tok_{self.name} = nv_tileas.tiled_{self.copy.direction} {tile}%off_{self.name}, %tok0"

    @property
    def descriptor(self) -> tuple[str, ...]:
        """The operations that bind the descriptor in phase 4.

        The first makes the descriptor; for a descriptor that the device makes, the replacements follow.
        """
        n, box = value_names(self.copy), ", ".join(map(str, self.copy.box))
        made = f"%desc_{n.small} = nv_tileas.make_tiled_tma_desc %{n.small}_ref, box = [{box}]"
        return (f"{made}, tmaIdx = {self.tma_index} : i32", *rebind_lines(self.copy))

    @property
    def text(self) -> str:
        """The asynchronous operation as one line, without its barrier."""
        n, verb = value_names(self.copy), self.copy.direction
        places = [f"%desc_{n.small}", f"%{n.small}_smem{n.outer_list}"]
        count = f"tx_count = {self.copy.transaction_bytes} : i32, " if verb == "load" else ""
        operands = ", ".join(places if verb == "load" else places[::-1])
        return (
            f"%tok_{n.small} = nv_tileas.async.tiled_tma_{verb} {operands} {{ {count}tmaIdx = {self.tma_index} : i32 }}"
        )


@dataclass(frozen=True, slots=True)
class PipelineBarrier:
    """The barrier of one pipeline stage.

    The fields are the loads, the bytes and arrivals that a barrier phase expects, and the shared-memory position of the
    first slot in bytes. The slots are 8 bytes apart.
    """

    name: str
    loads: tuple[str, ...]
    expected_tx: int
    offset: int
    slots: int = 1
    count: int = 1


@record
class PhaseTrace:
    """The result of the pass: its phases in order, rewritten copies, counters, diagnostics, barriers and body.

    If the function has no kernel spec, `rewritten` is empty and there is one diagnostic.

    >>> run_phases(KernelFunction("sm_90a", ())).num_host_tmas
    0
    """

    phases: tuple[Phase, ...]
    rewritten: tuple[BoundCopy, ...]
    num_host_tmas: int
    num_device_tmas: int
    diagnostics: tuple[str, ...]
    barriers: tuple[PipelineBarrier, ...] = ()

    @property
    def body(self) -> tuple[str, ...]:
        """The body after the last phase that changes it."""
        return next((phase.body for phase in reversed(self.phases) if phase.body), ())

    def __str__(self) -> str:
        lines = []
        for phase in self.phases:
            lines.append(f"phase {phase.number}: {phase.name}")
            lines += [f"  {line}" for line in phase.lines]
        lines += ["body", *[f"  {line}" for line in self.body]] if self.body else []
        return "\n".join(lines + [f"diagnostic: {text}" for text in self.diagnostics])

    __repr__ = short_repr


@dataclass(frozen=True, slots=True)
class _Statement:
    """One line of the body, with the names of the tensors whose tiles it reads."""

    text: str
    reads: frozenset[str] = frozenset()


def _stages(body: Sequence[BoundCopy | KernelOperation]) -> list[list[BoundCopy]]:
    """Group the loads into pipeline stages. A stage ends before the first operation that reads one of its tiles."""
    found: list[list[BoundCopy]] = []
    is_open = False
    for item in body:
        if isinstance(item, BoundCopy) and item.copy.direction == "load":
            found += [] if is_open else [[]]
            found[-1].append(item)
            is_open = True
        elif found and _reads(item) & {load.name for load in found[-1]}:
            is_open = False
    return found


def _reads(item: BoundCopy | KernelOperation) -> frozenset[str]:
    """Return the names of the tensors whose tiles an operation reads. A store reads the tile of its own tensor."""
    if isinstance(item, KernelOperation):
        return frozenset([name.lower() for name in item.reads])
    return frozenset([] if item.copy.direction == "load" else [item.name])


def _barriers(
    stages: Sequence[Sequence[BoundCopy]], copies: Sequence[BoundCopy], depth: int
) -> tuple[PipelineBarrier, ...]:
    """Make one barrier for each pipeline stage.

    Its slots follow the tiles in shared memory; each slot has its own tiles.
    """
    tiles = sum([-(-made.copy.smem_bytes // TILE_ALIGNMENT) * TILE_ALIGNMENT for made in copies]) * depth
    found = []
    for number, loads in enumerate(stages):
        names, expected = tuple([load.name for load in loads]), sum([load.copy.transaction_bytes for load in loads])
        place = tiles + number * depth * BARRIER_BYTES
        found.append(PipelineBarrier(f"%mbar{number}", names, expected, place, depth))
    return tuple(found)


def _emitted(
    body: Sequence[BoundCopy | KernelOperation], barriers: Sequence[PipelineBarrier], depth: int
) -> Iterator[_Statement]:
    """Write the body with its descriptors and its barriers.

    The barriers are reserved at the start of the body. Each barrier expects its bytes before its first load, and its
    wait follows its last load.
    """
    for item in body:
        yield from map(_Statement, item.descriptor if isinstance(item, BoundCopy) else ())
    for barrier in barriers:
        slots = f", slots = {depth} : i32" if depth > 1 else ""
        yield _Statement(f"{barrier.name} = nv_tileas.alloc_mbarrier {{ count = {barrier.count} : i32{slots} }}")
    left = list(barriers)
    waiting: list[str] = []
    for item in body:
        if isinstance(item, KernelOperation) or item.copy.direction != "load":
            yield _Statement(item.text, _reads(item))
            continue
        if not waiting:
            waiting = list(left[0].loads)
            yield _Statement(f"nvvm.mbarrier.arrive.expect_tx {left[0].name}, {left[0].expected_tx}")
        places, attributes = item.text.split(" { ")
        yield _Statement(f"{places}, {left[0].name} {{ {attributes}")
        waiting.remove(item.name)
        if not waiting:
            yield _Statement(_wait(left.pop(0), depth))


def _wait(barrier: PipelineBarrier, depth: int) -> str:
    return f"nv_tileas.async.pipeline.consumer_wait {barrier.name}, (%i / {depth}) & 1"


def sink_waits(
    body: Sequence[_Statement], barriers: Sequence[PipelineBarrier], depth: int
) -> tuple[list[_Statement], list[str]]:
    """Phase 7: move each wait down to the first operation that reads a tile of its loads, and describe each move."""
    moved, lines = list(body), []
    for barrier in reversed(barriers):  # last first, so that no wait blocks an earlier one
        at = next(i for i, statement in enumerate(moved) if statement.text == _wait(barrier, depth))
        wait, tiles = moved.pop(at), set(barrier.loads)
        to = next((i for i, later in enumerate(moved[at:], at) if later.reads & tiles), len(moved))
        before = f"before {moved[to].text}" if to < len(moved) else "to the end; nothing reads the tiles"
        moved.insert(to, wait)
        lines.append(f"{barrier.name}: wait sunk past {counted(to - at, 'operation')}, {before}")
    return moved, lines[::-1]


def run_phases(function: KernelFunction) -> PhaseTrace:
    """Run the pass LowerTMALoadStoreToAsync on a kernel function.

    >>> import cute_py as cute
    >>> print(run_phases(KernelFunction(None, ())).diagnostics[0])
    LowerTMALoadStoreToAsync: missing or invalid KernelSpecAttr on function
    >>> x = cute.make_tensor(cute.make_gmem_ptr(4096, "bfloat16"), cute.Layout((512, 512), (512, cute.Int(1))))
    >>> load = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, cute.make_layout((cute.Int(64),) * 2, cute.LayoutRight))
    >>> use = KernelOperation("%acc = nv_tileas.mma %a_tile, %b_tile, %acc0", ("A", "B"))
    >>> trace = run_phases(KernelFunction("sm_90a", (load, load, KernelOperation("%j = arith.addi %i, %c1"), use)))
    >>> [(barrier.loads, barrier.expected_tx) for barrier in trace.barriers]
    [(('a', 'b'), 16384)]
    >>> print(*trace.body[-3:], sep=chr(10))
    %j = arith.addi %i, %c1
    nv_tileas.async.pipeline.consumer_wait %mbar0, (%i / 1) & 1
    %acc = nv_tileas.mma %a_tile, %b_tile, %acc0

    Raises:
        InvalidValueError: the architecture is unknown, the depth is below 1, or a counter is negative.
        TmaBuildError: a copy is not an atom.
    """
    expect(function, KernelFunction, "a kernel")
    depth = expect_integer(function.depth, "depth", 1, 1 << 10)
    for name in ("num_host_tmas", "num_device_tmas"):
        if (count := getattr(function, name)) is not None:
            expect_integer(count, name, 0, unit="descriptors")
    if function.arch is None:
        return PhaseTrace((Phase(1, PHASES[0], (MISSING_SPEC,)),), (), 0, 0, (MISSING_SPEC,))
    letters = iter(ascii_uppercase * (1 + len(function.copies)))
    counts = {"host": 0, "device": 0}
    bound: list[BoundCopy] = []
    scanned: list[str] = []
    body: list[BoundCopy | KernelOperation] = []
    for item in function.copies:
        if isinstance(item, KernelOperation):
            body.append(item)
            continue
        name = item.tensor if isinstance(item, TracedCopy) else next(letters)
        copy = trace_copy(item, tensor=name, device_descriptor=name in function.device)
        witness, _ = witness_of(copy, function.arch, function.allow_tma)
        is_tma = witness.startswith("sm90_")
        scanned.append(f"{witness}: {'TMA' if is_tma else 'skipped, not a TMA atom'}")
        if not is_tma:
            n = value_names(copy)
            body.append(KernelOperation(f"nv_tileas.tiled_{copy.direction} %off_{n.small}, %tok0"))
            continue
        origin = "device" if copy.device else "host"  # phase 3 counts each population from zero, in program order
        bound.append(BoundCopy(copy, counts[origin]))
        body.append(bound[-1])
        counts[origin] += 1
    num_host = counts["host"] if function.num_host_tmas is None else function.num_host_tmas
    num_device = counts["device"] if function.num_device_tmas is None else function.num_device_tmas
    diagnostics = [d.text for d in check_counters(range(counts["host"]), range(counts["device"]), num_host, num_device)]
    for made in bound:
        diagnostics += [
            f"stage {stage}: {text}"
            for stage, found in check_stages(made.copy, function.arch).items()
            for text in found
        ]
    barriers = _barriers(_stages(body), bound, depth)
    emitted = list(_emitted(body, barriers, depth))
    sunk, moves = sink_waits(emitted, barriers, depth)
    descriptors = [text for made in bound for text in made.descriptor]
    before = [item.synchronous if isinstance(item, BoundCopy) else item.text for item in body]
    numbered = [f"%{made.name}: tmaIdx = {made.tma_index} ({made.origin})" for made in bound]
    numbered += [f"nv_tileas.num-host-tmas = {num_host}", f"nv_tileas.num-device-tmas = {num_device}"]
    lines: tuple[tuple[Sequence[str], Sequence[str]], ...] = (
        ([f"nv_tileaa.kernel_spec is present: {function.arch}"], ()),
        (scanned, ()),
        (numbered, before),
        ([_bound_line(made, counts["device"]) for made in bound], [*descriptors, *before]),
        ([made.text for made in bound], [*descriptors, *[item.text for item in body]]),
        ([_barrier_line(barrier, bound) for barrier in barriers], [statement.text for statement in emitted]),
        (moves, [statement.text for statement in sunk]),
        ([counted(len(diagnostics), "diagnostic")], ()),
    )
    did = enumerate(zip(PHASES, lines, strict=True), 1)
    phases = tuple([Phase(number, name, tuple(said), tuple(text)) for number, (name, (said, text)) in did])
    return PhaseTrace(phases, tuple(bound), num_host, num_device, tuple(diagnostics), barriers)


def _bound_line(made: BoundCopy, num_device: int) -> str:
    """Describe the slot of a descriptor in the parameter block, and the operation that makes the descriptor."""
    slot, mark = made.tma_index + num_device, "cute_nvgpu.grid_constant"
    if made.copy.device:
        replaced = sum([bool(step.step.field) for step in rebind_of(made.copy)])
        slot, mark = made.tma_index, f"{replaced} replacements"
    return f"%desc_{made.name}: {made.origin} descriptor, byte {slot * DESCRIPTOR_BYTES} of the block, {mark}"


def _barrier_line(barrier: PipelineBarrier, bound: Sequence[BoundCopy]) -> str:
    """Describe the byte count of a pipeline stage, load by load."""
    counts = {made.name: made.copy.transaction_bytes for made in bound}
    sums = " + ".join([f"%{name} {counts[name]}" for name in barrier.loads])
    slots = "one slot" if barrier.slots == 1 else f"{barrier.slots} slots"
    place = f"byte {barrier.offset} of shared memory"
    return f"{barrier.name}: {slots} at {place}, count = {barrier.count}, expects {barrier.expected_tx} bytes = {sums}"
