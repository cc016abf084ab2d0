"""Prepared copies: loaded kernels with their parameters, which can be launched on any stream."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from cute_py.argument_checks import expect, expect_integer, expect_items
from cute_py.copies.boxes import LaunchPlan, Tuning
from cute_py.copies.modes import NIBBLE
from cute_py.copies.operands import Operand, OperandSide, paired, side
from cute_py.copies.plan import CopyPlan
from cute_py.copies.shared_layout import WIDEST
from cute_py.copies.thread_kernels import ThreadLaunch
from cute_py.errors import InvalidTypeError, InvalidValueError, counted, given
from cute_py.gpu.arrays import require_place
from cute_py.gpu.device import Device, DeviceBuffer
from cute_py.gpu.kernels.ring import COUNTER_BYTES
from cute_py.gpu.launch import LoadedKernel, Parameters, ParameterValue, PreparedLaunch, WaitRecord
from cute_py.machine.launch import MachineLaunch
from cute_py.tensor.array_views import ArrayView, StreamLike, stream_handle
from cute_py.tma.descriptor.encode import encode

Kept: TypeAlias = tuple[ArrayView | DeviceBuffer | None, ...]
"""Objects that must outlive the launches of a copy."""
Owned: TypeAlias = LoadedKernel | DeviceBuffer | WaitRecord
"""Kernels and device memory that belong to a copy."""


@dataclass(frozen=True, slots=True)
class Work:
    """One kernel of a copy.

    It contains the tensor maps of source and destination as 128 bytes each (none if threads move all bytes), the number
    of blocks, the tail (source address, destination address, bytes) that threads move byte by byte, and the values of
    parameters that only this kernel has. threads: if threads move all bytes, the launch of the kernel and the address
    of its tables.
    """

    kernel: LoadedKernel
    maps: tuple[bytes, ...]
    blocks: int
    tail: tuple[int, int, int] = (0, 0, 0)
    others: Mapping[str, ParameterValue] = field(default_factory=dict)
    threads: tuple[ThreadLaunch, int] | None = None


SPARE_STREAMS: Final = 16
"""A prepared ring can be launched on this many streams without an allocation."""


class PreparedCopy:
    """A copy that can be launched many times on any stream of its device, including during graph capture.

    With `overlaps`, its kernels may start before the previous kernel in the stream has ended, but access memory only
    after that kernel has ended (programmatic dependent launch). In a captured graph, the edges to these kernels are
    programmatic.

    `bytes` counts the bytes of the copied elements. `plan` is the plan for arrays (None for given tiles), and `places`
    contains the addresses of offset 0 of both arrays. `keep` holds references to objects that must outlive the
    launches. At its first launch, a stream gets its own parameters and tile counter. Counters for `SPARE_STREAMS`
    streams are allocated in advance, because a stream can't allocate during capture; `prepare` allocates more.
    """

    def __init__(
        self,
        device: Device,
        work: Sequence[Work],
        size: int,
        plans: tuple[LaunchPlan, ...] = (),
        keep: Kept = (),
        plan: CopyPlan | None = None,
        places: tuple[int, int] | None = None,
        overlaps: bool = False,
    ) -> None:
        self.device = expect(device, Device, "device")
        self.bytes = expect_integer(size, "size, the number of bytes,", 0, unit="bytes")
        self.plans = tuple(expect(plan, LaunchPlan, "a plan") for plan in expect(plans, tuple, "plans"))
        self.plan = plan
        self._places = places
        self._overlaps = overlaps
        self._keep = keep
        if not isinstance(work, (list, tuple)):
            raise InvalidTypeError(f"work must be a list of Work, got {type(work).__name__} {given(work)}")
        self._work = tuple(expect(one, Work, "work of a copy") for one in work)
        self._memory: list[DeviceBuffer] = []
        self._records = [WaitRecord(device) if "record" in one.kernel.source.parameters else None for one in self._work]
        self._counters = [
            self._more_counters() if "counter" in one.kernel.source.parameters else [] for one in self._work
        ]
        self._launches: dict[int, tuple[PreparedLaunch, ...]] = {}
        self._default = self._prepare(0)
        self._single = self._default[0].launch if len(self._default) == 1 else None

    def __repr__(self) -> str:
        names = ", ".join(kernel.source.name for kernel in self.kernels)
        return f"<prepared copy of {self.bytes} bytes on {self.device.name}: {names}>"

    @property
    def kernels(self) -> tuple[LoadedKernel, ...]:
        """The kernels that a launch enqueues, in order."""
        return tuple(work.kernel for work in self._work)

    @property
    def blocks(self) -> tuple[int, ...]:
        """The number of blocks of each kernel."""
        return tuple(work.blocks for work in self._work)

    def owned(self) -> tuple[Owned, ...]:
        """The kernels and the device memory that this copy owns, without the arrays; they must outlive a captured
        graph."""
        buffers = [one for one in self._keep if isinstance(one, DeviceBuffer)]
        records = [one for one in self._records if one is not None]
        return (*self.kernels, *buffers, *self._memory, *records)

    def _more_counters(self) -> list[int]:
        """Allocate counters with the value zero, one for each stream, and return their addresses."""
        size = COUNTER_BYTES * SPARE_STREAMS
        block = DeviceBuffer(self.device, size)
        block.write(bytes(size))
        self._memory.append(block)
        return [block.address + at for at in range(0, size, COUNTER_BYTES)]

    def machine_launches(self, args: Sequence[Any]) -> tuple[MachineLaunch, ...]:
        """Return the launches of this copy on the emulated multiprocessor, for `run_ptx(prepared, args=(source,
        destination))`.

        Args:
            args: two arrays in host memory with the layouts that the copy was prepared for.
        Raises:
            InvalidValueError: the arguments do not match, or the copy moves tiles through given tensor maps.
        """
        from cute_py.copies.machine_copy import machine_launches

        arrays = expect_items(args, "args")
        if self.plan is None or len(arrays) != 2:
            text = (
                "a copy of tiles through given tensor maps" if self.plan is None else counted(len(arrays), "argument")
            )
            raise InvalidValueError(
                f"{text} does not run on the machine, which runs only copies of arrays from a source to a destination"
            )
        return machine_launches(arrays[0], arrays[1], tuning=Tuning() if self.plans else None)

    def prepare(self, stream: StreamLike) -> None:
        """Create the parameters and counters for a stream before its first launch."""
        handle = stream_handle(stream)
        if handle not in self._launches:
            self._prepare(handle)

    def _prepare(self, handle: int) -> tuple[PreparedLaunch, ...]:
        made = []
        for work, record, counters in zip(self._work, self._records, self._counters, strict=True):
            values: dict[str, ParameterValue] = {
                **work.others,
                **dict(zip(("source", "destination"), work.maps, strict=False)),
                "tail_source": work.tail[0],
                "tail_destination": work.tail[1],
            }
            if record is not None:
                values["record"] = record.address
            names = work.kernel.source.parameters
            if "counter" in names:
                if not counters:
                    counters += self._more_counters()
                values["counter"] = counters.pop()
            parameters = Parameters([values[name] for name in names])
            made.append(PreparedLaunch(work.kernel, work.blocks, parameters, handle, overlaps=self._overlaps))
        self._launches[handle] = tuple(made)
        return self._launches[handle]

    def launch(self, stream: StreamLike = None) -> None:
        """Enqueue the copy. Raises DeviceError if the driver refuses the launch."""
        if stream is None:
            if self._single is not None:
                self._single()
                return
            launches = self._default
        else:
            handle = stream if type(stream) is int else stream_handle(stream)
            launches = self._launches.get(handle) or self._prepare(handle)
        for one in launches:
            one.launch()

    def moved(self, source: Operand, destination: Operand) -> PreparedCopy:
        """Return the same copy for other memory, without planning, compiling or loading again.

        Args:
            source, destination: memory with this copy's layouts, element type and device. Its addresses must differ
                from the prepared ones by multiples of 16 bytes.
        Raises:
            InvalidValueError: a layout, element type or alignment differs, or the copy moves given tiles. For errors
                about memory, see `prepare_copy`.
        """
        if self.plan is None or self._places is None:
            raise InvalidValueError("a copy of given tiles always uses the memory of its maps")
        given_type = self.plan.dtype if self.plan.dtype.bits == NIBBLE else None
        a, b = side(source, "source", given_type), side(destination, "destination", given_type)
        require_place({"source": a.view, "destination": b.view}, self.device.ordinal)
        for one, layout, place in zip((a, b), (self.plan.source, self.plan.destination), self._places, strict=True):
            if one.layout != layout or one.view.dtype != self.plan.dtype or (one.view.address - place) % WIDEST:
                raise InvalidValueError(
                    f"the {one.role} differs from the one that was prepared",
                    {
                        "prepared": f"{self.plan.dtype} {layout}, {place % WIDEST} bytes beyond a multiple of {WIDEST}",
                        "given": f"{one.view.dtype} {one.layout}, {one.view.address % WIDEST} bytes beyond it",
                    },
                )
        paired(a, b, self.plan.nibbles)
        by = a.view.address - self._places[0], b.view.address - self._places[1]
        plans = tuple(moved_plan(plan, by) for plan in self.plans)
        if plans:
            work = [box_work(one.kernel, plan, self.device.arch) for one, plan in zip(self._work, plans, strict=True)]
        else:
            work = [thread_work(one.kernel, *one.threads, a, b) for one in self._work if one.threads is not None]
        tables = tuple(one for one in self._keep if isinstance(one, DeviceBuffer))
        return PreparedCopy(
            self.device, work, self.bytes, plans, (a.view, b.view, *tables), self.plan, addresses(a, b), self._overlaps
        )

    def update_graph(self, graph: int, nodes: Sequence[int]) -> None:
        """Update kernel nodes of an instantiated graph with the kernels of this copy, starting with the graph's next
        launch.

        Args:
            graph: the CUgraphExec as an integer. nodes: for each kernel, in the order of `kernels`, the CUgraphNode
                that a launch of a copy added during capture.
        Raises:
            InvalidValueError: the numbers of nodes and kernels differ. DeviceError: the driver refuses an update.
        """
        if len(nodes) != len(self._default):
            raise InvalidValueError(
                f"got {counted(len(nodes), 'node')} for {counted(len(self._default), 'kernel')}; must be equal"
            )
        for one, node in zip(self._default, nodes, strict=True):
            one.update_node(graph, node)

    def check(self, stream: StreamLike = None) -> None:
        """Wait for the stream, and raise DeviceError if a barrier of this copy did not complete or a kernel trapped."""
        handle = stream_handle(stream)
        for work, record in zip(self._work, self._records, strict=True):
            if record is None:
                self.device.wait_for(handle)
                continue
            loads = [(one, work.kernel.source.loads) for one in work.maps[:1]]
            record.check(work.kernel.source.name, handle, loads)


def addresses(a: OperandSide, b: OperandSide) -> tuple[int, int]:
    return a.view.address, b.view.address


def box_work(kernel: LoadedKernel, plan: LaunchPlan, arch: str) -> Work:
    return Work(kernel, tuple(encode(m, arch=arch) for m in plan.maps or ()), plan.blocks, plan.tail)


def moved_plan(plan: LaunchPlan, by: tuple[int, int]) -> LaunchPlan:
    """Return the launch for memory that begins this number of bytes later, for (source, destination)."""
    source, destination, size = plan.tail
    tail = (source + by[0], destination + by[1], size) if size else plan.tail
    if plan.maps is None:
        return replace(plan, tail=tail)
    first, second = (replace(m, global_address=m.global_address + d) for m, d in zip(plan.maps, by, strict=True))
    return replace(plan, maps=(first, second), tail=tail)


def thread_work(kernel: LoadedKernel, launch: ThreadLaunch, tables: int, a: OperandSide, b: OperandSide) -> Work:
    content = launch.parameters(*addresses(a, b), tables)
    block = (ctypes.c_char * len(content)).from_buffer_copy(content)
    return Work(kernel, (), launch.blocks, others={"plan": block}, threads=(launch, tables))
