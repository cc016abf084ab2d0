"""Whole tensors on the GPU: prepared copies of arrays, of tiles through given tensor maps, and of groups.

Preparing validates, compiles and loads; `launch` is one driver call for each kernel and never synchronises. `check`
waits for the stream and raises if a kernel reported a barrier that did not complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from cute_py.argument_checks import expect, expect_integer
from cute_py.copies.plan import CROSSOVER, HINTS, CopyPlan, Tuning, plan_copy
from cute_py.errors import DeviceError, InvalidTypeError, InvalidValueError, given
from cute_py.gpu.arrays import array_view, require_pair, stream_handle
from cute_py.gpu.device import Device, DeviceBuffer, as_device, common_device
from cute_py.gpu.kernels.copy import BARRIER_BYTES, copy_once, stage_bytes
from cute_py.gpu.kernels.ring import COUNTER_BYTES, copy_ring
from cute_py.gpu.kernels.source import KernelSource
from cute_py.gpu.kernels.walk import TileWalk
from cute_py.gpu.launch import LoadedKernel, Parameters, PreparedLaunch, WaitRecord, load_kernel
from cute_py.tma.descriptor.encode import encode


@dataclass(frozen=True, slots=True)
class Work:
    """One kernel of a copy: the maps of source and destination as 128 bytes each (none where threads move all of it),
    blocks, and the tail that threads move one by one (source address, destination address, bytes)."""

    kernel: LoadedKernel
    maps: tuple[bytes, ...]
    blocks: int
    tail: tuple[int, int, int] = (0, 0, 0)


SPARE_STREAMS: Final = 16
"""Streams that a prepared ring can be launched on without an allocation."""


class PreparedCopy:
    """A copy that can be launched many times, on any stream of its device, also while a graph is captured.

    `bytes` are those of the elements copied. `keep` holds what must outlive the launches. A stream that a copy is
    launched on gets parameters and a tile counter of its own at its first launch. Counters for `SPARE_STREAMS` streams
    are made at once, since a stream that is being captured can't allocate; `prepare` makes more.
    """

    def __init__(
        self, device: Device, work: Sequence[Work], size: int, plans: tuple[CopyPlan, ...] = (), keep: object = None
    ) -> None:
        self.device = expect(device, Device, "device")
        self.bytes = expect_integer(size, "size, of what is copied,", 0, unit="bytes")
        self.plans = tuple(expect(plan, CopyPlan, "a plan") for plan in expect(plans, tuple, "plans"))
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

    def prepare(self, stream: Any) -> None:
        """Make parameters and counters for a stream before its first launch."""
        handle = stream_handle(stream)
        if handle not in self._launches:
            self._prepare(handle)

    def _prepare(self, handle: int) -> tuple[PreparedLaunch, ...]:
        made = []
        for work, record, counters in zip(self._work, self._records, self._counters, strict=True):
            values: dict[str, int | bytes] = {
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
            made.append(PreparedLaunch(work.kernel, work.blocks, Parameters([values[name] for name in names]), handle))
        self._launches[handle] = tuple(made)
        return self._launches[handle]

    def launch(self, stream: Any = None) -> None:
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

    def check(self, stream: Any = None) -> None:
        """Wait for the stream, and raise DeviceError if a barrier of this copy did not complete or a kernel trapped."""
        handle = stream_handle(stream)
        for work, record in zip(self._work, self._records, strict=True):
            load_map = work.maps[0] if work.maps else None
            record.check(work.kernel.source.name, handle, load_map, work.kernel.source.loads)


def prepare_copy(
    source: Any,
    destination: Any,
    *,
    hints: bool = False,
    tuning: Tuning | None = None,
    device: Device | None = None,
) -> PreparedCopy:
    """Prepare the copy of a device array into another of the same shape and dtype, of any order and strides.

    Args:
        source, destination: anything `array_view` takes, on the device.
        hints: keep what is read and drop what is written in L2 first; faster for large copies, at the cost of the
            kernels that follow.
        tuning: fixes form and tiles; by default those measured best for the size.
    Raises:
        DeviceError: no device, an array that is not on it, or arrays of two devices.
        InvalidValueError: shapes or dtypes differ, the arrays overlap, the destination is read-only.
        TmaLimitError: no TMA box moves these arrays.
    """
    a, b = array_view(source), array_view(destination)
    device = as_device(device, common_device({"source": a.device, "destination": b.device}))
    require_pair(a, b, device.ordinal)
    expect(hints, bool, "hints")
    chosen = Tuning(hints=hints) if tuning is None else expect(tuning, Tuning, "tuning")
    plans = plan_copy(a, b, multiprocessors=device.multiprocessors, tuning=chosen)
    work = [
        Work(
            load_kernel(plan.kernel, device),
            tuple(encode(one, arch=device.arch) for one in plan.maps or ()),
            plan.blocks,
            plan.tail,
        )
        for plan in plans
    ]
    return PreparedCopy(device, work, sum(plan.bytes for plan in plans), plans, (a.owner, b.owner))


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
    keep: object = None,
) -> PreparedCopy:
    """Prepare the copy of a whole tensor through the tiles of two given maps with the same box and swizzle.

    Args:
        load_map, store_map: 128 bytes each; coordinates are the same in both.
        walk: the tiles, in elements of the maps.
        tile_bytes: bytes that the barrier counts for a tile. window_bytes: shared memory that a tile covers.
        form: "once" or "ring"; by default by size. reduction: combine instead of storing (one-shot form only).
    Raises:
        InvalidValueError: a map is not 128 bytes, or a reduction is asked of the ring.
        DeviceError: no device, or the tile does not fit into shared memory.
    """
    device = as_device(device)
    size = walk.tiles * tile_bytes
    form = form or ("ring" if size >= CROSSOVER and not reduction else "once")
    load, store = HINTS if hints else (None, None)
    kernel: KernelSource
    if form == "ring":
        if reduction:
            raise InvalidValueError(f"reduction {reduction!r} in a ring; reductions use the one-shot form")
        stages = min(4, (device.shared_bytes - BARRIER_BYTES) // stage_bytes(window_bytes or tile_bytes))
        if stages < 2:
            raise DeviceError(f"tile = {window_bytes or tile_bytes} bytes; two must fit in {device.shared_bytes} bytes")
        blocks = min(device.multiprocessors, walk.tiles)
        kernel = copy_ring(
            walk,
            tile_bytes,
            blocks=blocks,
            window_bytes=window_bytes,
            stages=stages,
            load_hint=load,
            store_hint=store,
        )
    else:
        blocks = walk.tiles
        kernel = copy_once(
            walk, tile_bytes, window_bytes=window_bytes, load_hint=load, store_hint=store, reduction=reduction
        )
    work = Work(load_kernel(kernel, device), (load_map, store_map), blocks, (0, 0, 0))
    return PreparedCopy(device, [work], size, keep=keep)
