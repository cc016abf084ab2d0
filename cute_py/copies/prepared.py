"""Whole tensors on the GPU: prepared copies of arrays, and of tiles through given tensor maps.

    prepare_copy(a, b)                    arrays; the planner chooses the kernel and the boxes
    prepare_tiles(map, map, walk, ...)    the tiles of a regular walk: the folded kernels
    prepare_listed(map, map, coords, ..)  any tiles: unless they are a regular walk of single instructions, the
                                          coordinates go to the device in a list

Preparing validates, compiles and loads; `launch` is one driver call for each kernel and never synchronises. `check`
waits for the stream and raises if a kernel reported a barrier that did not complete.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cute_py.argument_checks import expect, expect_integer, expect_items
from cute_py.copies.boxes import CROSSOVER, LaunchPlan, Tuning, hint_arguments
from cute_py.copies.modes import NIBBLE, NIBBLES
from cute_py.copies.operands import Operand, OperandSide, paired, side
from cute_py.copies.plan import CopyPlan, box_launches, plan_pairing, thread_launches
from cute_py.copies.shared_layout import WIDEST
from cute_py.copies.thread_kernels import ThreadLaunch
from cute_py.dtypes import DTypeLike
from cute_py.errors import DeviceError, InvalidTypeError, InvalidValueError, counted, given
from cute_py.gpu.arrays import require_place
from cute_py.gpu.device import Device, DeviceBuffer, as_device, common_device
from cute_py.gpu.kernels.copy import BARRIER_BYTES, copy_once, stage_bytes
from cute_py.gpu.kernels.listed import copy_listed
from cute_py.gpu.kernels.ring import COUNTER_BYTES, copy_ring
from cute_py.gpu.kernels.source import KernelSource
from cute_py.gpu.kernels.walk import TileWalk
from cute_py.gpu.launch import LoadedKernel, Parameters, ParameterValue, PreparedLaunch, WaitRecord, load_kernel
from cute_py.machine.launch import MachineLaunch
from cute_py.tensor.array_views import ArrayView, StreamLike, stream_handle
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.emulator.memory import IntegersLike

if TYPE_CHECKING:
    import numpy as np
else:
    from cute_py.optional_packages import numpy as np

Kept: TypeAlias = tuple[ArrayView | DeviceBuffer | None, ...]
"""Objects that must outlive the launches of a copy."""


@dataclass(frozen=True, slots=True)
class Work:
    """One kernel of a copy: the maps of source and destination as 128 bytes each (none if threads move all bytes),
    blocks, the tail that threads move one by one (source address, destination address, bytes), and the values of
    parameters that only its kernel has. threads: if threads move all bytes, the launch from which it is made, and the
    address of its tables."""

    kernel: LoadedKernel
    maps: tuple[bytes, ...]
    blocks: int
    tail: tuple[int, int, int] = (0, 0, 0)
    others: Mapping[str, ParameterValue] = field(default_factory=dict)
    threads: tuple[ThreadLaunch, int] | None = None


SPARE_STREAMS: Final = 16
"""Number of streams on which a prepared ring can be launched without an allocation."""


class PreparedCopy:
    """A copy that can be launched many times, on any stream of its device, also while a graph is captured.

    With `overlaps` its kernels are launched while the previous kernel in the stream ends, and access memory only after
    that; edges to them in a captured graph are programmatic.

    `bytes` counts the copied elements; `plan` is the plan for arrays (None: given tiles), `places` the addresses of
    their offsets 0. `keep` holds objects that must outlive the launches. Each stream gets its own parameters and tile
    counter at the first launch on it. Counters for `SPARE_STREAMS` streams are made at once, since a stream that is
    being captured can't allocate; `prepare` makes more.
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
        self.bytes = expect_integer(size, "size, of what is copied,", 0, unit="bytes")
        self.plans = tuple(expect(plan, LaunchPlan, "a plan") for plan in expect(plans, tuple, "plans"))
        self.plan = plan
        self._places = places
        self._overlaps = overlaps
        self._keep = keep
        if not isinstance(work, (list, tuple)):
            raise InvalidTypeError(f"work must be a list of Work, got {type(work).__name__} {given(work)}")
        self._work = tuple(expect(one, Work, "work of a copy") for one in work)
        self._memory: list[DeviceBuffer] = []
        self._records = [WaitRecord(device) for _ in self._work]
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
        """Blocks of each kernel."""
        return tuple(work.blocks for work in self._work)

    def _more_counters(self) -> list[int]:
        """Addresses of counters at zero, each for one stream."""
        size = COUNTER_BYTES * SPARE_STREAMS
        block = DeviceBuffer(self.device, size)
        block.write(bytes(size))
        self._memory.append(block)
        return [block.address + at for at in range(0, size, COUNTER_BYTES)]

    def machine_launches(self, args: Sequence[Any]) -> tuple[MachineLaunch, ...]:
        """Its launches on the emulated multiprocessor: `run_ptx(prepared, args=(source, destination))`.

        Args:
            args: two arrays in host memory, laid out as those that the copy was prepared for.
        Raises:
            InvalidValueError: other arguments, or a copy of tiles through given maps.
        """
        from cute_py.copies.machine_copy import machine_launches

        arrays = expect_items(args, "args")
        if self.plan is None or len(arrays) != 2:
            text = "a copy of tiles through given maps" if self.plan is None else counted(len(arrays), "argument")
            raise InvalidValueError(f"{text}; the machine runs copies of arrays, and takes source and destination")
        return machine_launches(arrays[0], arrays[1], tuning=Tuning() if self.plans else None)

    def prepare(self, stream: StreamLike) -> None:
        """Make parameters and counters for a stream before its first launch."""
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
                "record": record.address,
            }
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
        """Return this copy for other memory, without planning, compiling or loading again.

        Args:
            source, destination: of this copy's layouts, element type and device, at addresses that lie a multiple of 16
                bytes from those it was prepared for.
        Raises:
            InvalidValueError: another layout, element type or alignment, or a copy of given tiles; what `prepare_copy`
            raises of its memory.
        """
        if self.plan is None or self._places is None:
            raise InvalidValueError("a copy of given tiles stays where its maps point")
        given_type = self.plan.dtype if self.plan.dtype.bits == NIBBLE else None
        a, b = side(source, "source", given_type), side(destination, "destination", given_type)
        require_place({"source": a.view, "destination": b.view}, self.device.ordinal)
        for one, layout, place in zip((a, b), (self.plan.source, self.plan.destination), self._places, strict=True):
            if one.layout != layout or one.view.dtype != self.plan.dtype or (one.view.address - place) % WIDEST:
                raise InvalidValueError(
                    f"the {one.role} is not like the one that was prepared",
                    {
                        "prepared": f"{self.plan.dtype} {layout}, {place % WIDEST} bytes beyond a multiple of {WIDEST}",
                        "given": f"{one.view.dtype} {one.layout}, {one.view.address % WIDEST} bytes beyond it",
                    },
                )
        paired(a, b, self.plan.nibbles)
        by = a.view.address - self._places[0], b.view.address - self._places[1]
        plans = tuple(_moved_plan(plan, by) for plan in self.plans)
        if plans:
            work = [_box_work(one.kernel, plan, self.device.arch) for one, plan in zip(self._work, plans, strict=True)]
        else:
            work = [_thread_work(one.kernel, *one.threads, a, b) for one in self._work if one.threads is not None]
        tables = tuple(one for one in self._keep if isinstance(one, DeviceBuffer))
        return PreparedCopy(
            self.device, work, self.bytes, plans, (a.view, b.view, *tables), self.plan, _addresses(a, b), self._overlaps
        )

    def update_graph(self, graph: int, nodes: Sequence[int]) -> None:
        """Replace nodes of an instantiated graph by the kernels of this copy; they run at the graph's next launch.

        Args:
            graph: CUgraphExec as a number. nodes: CUgraphNode of the kernels, in the order of `kernels`, in the graph
                that it was instantiated from; those that a launch of a copy left there while it was captured.
        Raises:
            InvalidValueError: as many nodes as there are kernels are needed. DeviceError: the driver refuses one.
        """
        if len(nodes) != len(self._default):
            raise InvalidValueError(f"{counted(len(nodes), 'node')} for {counted(len(self._default), 'kernel')}")
        for one, node in zip(self._default, nodes, strict=True):
            one.update_node(graph, node)

    def check(self, stream: StreamLike = None) -> None:
        """Wait for the stream, and raise DeviceError if a barrier of this copy did not complete or a kernel trapped."""
        handle = stream_handle(stream)
        for work, record in zip(self._work, self._records, strict=True):
            loads = [(one, work.kernel.source.loads) for one in work.maps[:1]]
            record.check(work.kernel.source.name, handle, loads)


def prepare_copy(
    source: Operand,
    destination: Operand,
    *,
    hints: bool = False,
    tuning: Tuning | None = None,
    device: Device | None = None,
    dtype: DTypeLike | None = None,
    nibbles: tuple[str, str] = NIBBLES,
) -> PreparedCopy:
    """Prepare the copy between two layouts of equal size in device memory, of any order and strides.

    Args:
        source, destination: anything `array_view` takes, a `Tensor` over memory, or (memory, layout). Elements
            correspond by coordinate, in colexicographic order where the shapes differ.
        hints: keep read data longer in L2 than written data; faster for large copies by tensor maps, at the
            cost of the kernels that follow.
        tuning: fixes form and tiles of tensor maps; by default those measured best for the size, or threads.
        dtype, nibbles: as of `copy`.
    Raises:
        DeviceError: no device, an array that is not on it, or arrays of two devices.
        InvalidValueError: sizes or dtypes differ, the arrays overlap, the destination is read-only, a layout leaves its
            memory. TmaLimitError: tensor maps can't do what `tuning` asks for.
    """
    sides = side(source, "source", dtype), side(destination, "destination", dtype)
    return prepare_sides(*sides, hints, tuning, device, nibbles)


def prepare_sides(
    a: OperandSide,
    b: OperandSide,
    hints: bool = False,
    tuning: Tuning | None = None,
    device: Device | None = None,
    nibbles: tuple[str, str] = NIBBLES,
) -> PreparedCopy:
    """`prepare_copy` of sides."""
    device = as_device(device, common_device({"source": a.view.device, "destination": b.view.device}))
    require_place({"source": a.view, "destination": b.view}, device.ordinal)
    expect(hints, bool, "hints")
    if tuning is not None:
        expect(tuning, Tuning, "tuning")
    return prepare_between(a, b, device, tuning, hints=hints, nibbles=nibbles, overlaps=True)


def prepare_between(
    a: OperandSide,
    b: OperandSide,
    device: Device,
    tuning: Tuning | None = None,
    multiprocessors: int = 0,
    hints: bool = False,
    nibbles: tuple[str, str] = NIBBLES,
    overlaps: bool = False,
) -> PreparedCopy:
    """Plan, compile and load a copy that runs on a device that reaches both sides.

    Args:
        tuning: of kernels by tensor maps, which it asks for where the layouts are affine.
        multiprocessors: that they may use; 0: all. hints, nibbles: as of `prepare_copy`. overlaps: of `PreparedCopy`.
    """
    plan = plan_pairing(paired(a, b, nibbles), (a.alignment, b.alignment))
    kept: Kept = (a.view, b.view)
    refinement = plan.refinement
    if refinement is None:
        return PreparedCopy(device, [], 0, keep=kept, plan=plan)
    if plan.kernel == "boxes" or (tuning is not None and plan.form == "affine"):
        element = plan.bits // 8
        places = [one.view.address + start * element for one, start in zip((a, b), refinement.starts, strict=True)]
        boxes = box_launches(
            refinement,
            element,
            (places[0], places[1]),
            multiprocessors or device.multiprocessors,
            tuning or Tuning(hints=hints),
        )
        work = [_box_work(load_kernel(one.kernel, device), one, device.arch) for one in boxes]
        return PreparedCopy(device, work, plan.bytes, boxes, kept, plan, _addresses(a, b), overlaps)
    threads = []
    for launch in thread_launches(plan):
        tables = DeviceBuffer(device, len(launch.tables))
        tables.write(launch.tables)
        kept = (*kept, tables)
        threads.append(_thread_work(load_kernel(launch.kernel, device), launch, tables.address, a, b))
    return PreparedCopy(device, threads, plan.bytes, (), kept, plan, _addresses(a, b), overlaps)


def _addresses(a: OperandSide, b: OperandSide) -> tuple[int, int]:
    return a.view.address, b.view.address


def _box_work(kernel: LoadedKernel, plan: LaunchPlan, arch: str) -> Work:
    return Work(kernel, tuple(encode(m, arch=arch) for m in plan.maps or ()), plan.blocks, plan.tail)


def _moved_plan(plan: LaunchPlan, by: tuple[int, int]) -> LaunchPlan:
    """The launch with both sides moved by these byte distances."""
    source, destination, size = plan.tail
    tail = (source + by[0], destination + by[1], size) if size else plan.tail
    if plan.maps is None:
        return replace(plan, tail=tail)
    first, second = (replace(m, global_address=m.global_address + d) for m, d in zip(plan.maps, by, strict=True))
    return replace(plan, maps=(first, second), tail=tail)


def _thread_work(kernel: LoadedKernel, launch: ThreadLaunch, tables: int, a: OperandSide, b: OperandSide) -> Work:
    content = launch.parameters(*_addresses(a, b), tables)
    block = (ctypes.c_char * len(content)).from_buffer_copy(content)
    return Work(kernel, (), launch.blocks, others={"plan": block}, threads=(launch, tables))


def prepare_tiles(
    load_map: bytes,
    store_map: bytes,
    walk: TileWalk,
    tile_bytes: int,
    *,
    window_bytes: int | None = None,
    form: str | None = None,
    hints: bool = False,
    reduction: str | None = None,
    device: Device | None = None,
    keep: Kept = (),
) -> PreparedCopy:
    """Prepare the copy of a whole tensor through the tiles of two given maps with the same box and swizzle.

    Args:
        load_map, store_map: 128 bytes each; coordinates are the same in both.
        walk: the tiles, in elements of the maps.
        tile_bytes: bytes that the barrier counts for a tile. window_bytes: shared memory that a tile covers.
        form: "once" or "ring"; by default by size. reduction: combine instead of storing (one-shot form only).
    Raises:
        InvalidValueError: a map is not 128 bytes, or a reduction in the ring form.
        DeviceError: no device, or the tile does not fit into shared memory.
    """
    device = as_device(device)
    size = walk.tiles * tile_bytes
    form = form or ("ring" if size >= CROSSOVER and not reduction else "once")
    kernel: KernelSource
    if form == "ring":
        if reduction:
            raise InvalidValueError(f"reduction {reduction!r} in a ring; reductions use the one-shot form")
        stages = min(4, (device.shared_bytes - BARRIER_BYTES) // stage_bytes(window_bytes or tile_bytes))
        if stages < 2:
            raise DeviceError(f"tile = {window_bytes or tile_bytes} bytes; two must fit in {device.shared_bytes} bytes")
        blocks = min(device.multiprocessors, walk.tiles)
        kernel = copy_ring(
            walk, tile_bytes, blocks=blocks, window_bytes=window_bytes, stages=stages, **hint_arguments(hints)
        )
    else:
        blocks = walk.tiles
        kernel = copy_once(walk, tile_bytes, window_bytes=window_bytes, **hint_arguments(hints), reduction=reduction)
    work = Work(load_kernel(kernel, device), (load_map, store_map), blocks)
    return PreparedCopy(device, [work], size, keep=keep)


def packed(coords: IntegersLike, rank: int) -> bytes:
    """Coordinates, (n, rank), as 32-bit words.

    Raises:
        InvalidValueError: a coordinate does not fit in 32 bits, or the rows are not of this rank.
    """
    table = np.asarray(coords)
    if table.ndim != 2 or table.shape[1] != rank:
        raise InvalidValueError(f"coordinates of shape {table.shape}; must be (n, {rank})")
    if table.size and (int(table.min()) < -(2**31) or int(table.max()) >= 2**31):
        raise InvalidValueError("a coordinate does not fit in 32 bits")
    return table.astype("<i4").tobytes()


def regular_walk(coords: IntegersLike, rank: int) -> TileWalk | None:
    """The walk that visits the tiles at these coordinates in this order from the origin, or None.

    >>> regular_walk([(0, 0), (8, 0), (0, 4), (8, 4), (0, 8), (8, 8)], 2)
    TileWalk(counts=(2, 3), steps=(8, 4), order=(0, 1))
    """
    table = np.asarray(coords, np.int64)
    counts, steps, before = [1] * rank, [1] * rank, 1
    order: list[int] = []
    total = len(table)
    if not total or table[0].any():
        return None
    while before < total:
        moved = np.flatnonzero(table[before])
        if len(moved) != 1 or moved[0] in order:
            return None
        mode = int(moved[0])
        step = int(table[before, mode])
        column = table[::before, mode]
        ends = np.flatnonzero(column == 0)
        count = int(ends[1]) if len(ends) > 1 else len(column)
        if step <= 0 or total % (before * count):
            return None
        counts[mode], steps[mode] = count, step
        order.append(mode)
        before *= count
    walk = TileWalk(tuple(counts), tuple(steps), (*order, *(m for m in range(rank) if m not in order)))
    number = np.arange(total)
    for mode in walk.order:
        number, index = np.divmod(number, counts[mode])
        if not np.array_equal(index * steps[mode], table[:, mode]):
            return None
    return walk


def _listed(coords: IntegersLike, rank: int, per_tile: int) -> tuple[bytes, int]:
    """Coordinates as bytes, and their number of tiles."""
    content = packed(coords, rank)
    tiles, rest = divmod(len(content) // (4 * rank), per_tile)
    if rest or not tiles:
        raise InvalidValueError(
            f"{counted(len(content) // (4 * rank), 'coordinate')}; must be a multiple of {per_tile} a tile"
        )
    return content, tiles


def prepare_listed(
    load_map: bytes,
    store_map: bytes,
    coords: IntegersLike,
    rank: int,
    places: Sequence[int],
    box_bytes: int,
    window_bytes: int,
    *,
    hints: bool = False,
    reduction: str | None = None,
    device: Device | None = None,
    keep: Kept = (),
) -> PreparedCopy:
    """Prepare the copy of tiles: instruction i of a tile loads to `places[i]`, and is stored from there.

    Args:
        load_map, store_map: 128 bytes each, with the same box and swizzle.
        coords: (tiles x len(places), rank), innermost mode first; the same in both maps. Unchecked: an unaligned inner
            coordinate or a negative one traps.
        places: byte offsets in a tile's window. box_bytes: bytes of one instruction. window_bytes: of a window.
    Raises:
        InvalidValueError: coordinates, places or sizes that do not fit together.
        DeviceError: no device, or the window does not fit into shared memory.
    """
    device = as_device(device)
    content, tiles = _listed(coords, rank, len(places))
    if len(places) == 1 and not places[0]:
        walk = regular_walk(coords, rank)
        if walk is not None:
            return prepare_tiles(
                load_map,
                store_map,
                walk,
                box_bytes,
                window_bytes=window_bytes,
                hints=hints,
                reduction=reduction,
                device=device,
                keep=keep,
            )
    source = copy_listed(rank, tuple(places), box_bytes, window_bytes, reduction=reduction, **hint_arguments(hints))
    listed = DeviceBuffer(device, len(content))
    listed.write(content)
    others: dict[str, ParameterValue] = {"coordinates": listed.address, "windows": 0, "poison": ctypes.c_uint32(0)}
    work = Work(load_kernel(source, device), (load_map, store_map), tiles, others=others)
    return PreparedCopy(device, [work], tiles * len(places) * box_bytes, keep=(*keep, listed))


def load_windows(
    load_map: bytes,
    coords: IntegersLike,
    rank: int,
    places: Sequence[int],
    box_bytes: int,
    window_bytes: int,
    *,
    poison: int = 0,
    device: Device | None = None,
    stream: StreamLike = None,
) -> list[bytes]:
    """The shared-memory windows of tiles after their loads, filled with the byte `poison` before. Waits for the loads.

    Arguments and errors as `prepare_listed`; DeviceError also if a barrier did not complete.
    """
    device = as_device(device)
    content, tiles = _listed(coords, rank, len(places))
    kernel = load_kernel(copy_listed(rank, tuple(places), box_bytes, window_bytes, dump=True), device)
    pitch, handle, record = stage_bytes(window_bytes), stream_handle(stream), WaitRecord(device)
    with DeviceBuffer(device, len(content)) as listed, DeviceBuffer(device, pitch * tiles) as windows:
        listed.write(content)
        fill = ctypes.c_uint32(poison * 0x01010101)
        values = (load_map, load_map, listed.address, windows.address, fill, record.address)
        PreparedLaunch(kernel, tiles, Parameters(values), handle).launch()
        record.check(kernel.source.name, handle, [(load_map, kernel.source.loads)])
        shown = bytes(windows.read(stream=handle))
    return [shown[i * pitch : i * pitch + window_bytes] for i in range(tiles)]
