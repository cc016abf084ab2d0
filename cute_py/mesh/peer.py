"""Run a redistribution between the GPUs of one process.

    push      a kernel on the sending device writes to the memory of the receiving device
    engine    the copy engine of the sending device moves large amounts of long rows
    local     elements that stay on a device are copied by just enough multiprocessors to take as long as the links
    threads   layouts that no TMA box can move are copied by threads, in tiles or vectors
    staged    transfers without peer access, sums and swizzled parts go through host memory

The kernels come from `copies`. A device pushes, because writes to a peer's memory are faster than reads: 364 GB/s
instead of 333 GB/s in each direction with both directions busy, and 369 GB/s instead of 238 GB/s if rows are not
multiples of 128 bytes (two NVIDIA H200, driver 580.159.04). Local copies and transfers run concurrently, so that links
and memory are busy at the same time.

The work of each device is one CUDA graph, so that a launch needs few driver calls. The work begins after the work in
the devices' default streams, or in the given streams, and these streams wait for its end. The host does not wait,
unless a transfer is staged. Events order the start of the graphs, because a stream may contain work of any length. The
graphs end with a barrier across devices: a kernel at the end of each graph waits, up to a time limit, until all devices
have arrived. On two NVIDIA H200 (driver 580.159.04), the driver calls of a launch then take 9 us of host time. They
would take 13 us with events at both ends, 16 us with a single graph for both devices, and 23 us with events as nodes of
the graphs.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_py.copies.boxes import Tuning
from cute_py.copies.operands import side
from cute_py.copies.prepared import prepare_between
from cute_py.copies.prepared_copy import PreparedCopy
from cute_py.diagnostics import refuse
from cute_py.errors import DeviceError, InvalidTypeError, InvalidValueError, TmaLimitError
from cute_py.gpu.arrays import array_view, device_of_array
from cute_py.gpu.bindings import call, driver, driver_failure
from cute_py.gpu.device import DEFAULT_STREAMS, Device, DeviceBuffer, open_device, read_memory
from cute_py.gpu.launch import Parameters, PreparedLaunch, WaitRecord, load_kernel
from cute_py.mesh.host import Described, HostRedistribution, NumpyElements, check_memory, elements_of
from cute_py.mesh.transfer import Plan, Transfer
from cute_py.tensor.array_views import ArrayView, StreamLike, row_major, stream_handle

if TYPE_CHECKING:
    import numpy
else:
    from cute_py.optional_packages import numpy

RING_FROM = 4 << 20
"""From this many bytes on, a copy runs on a share of the multiprocessors; a smaller copy has one block per tile."""


ENGINE_FROM = 1 << 25
"""From this many bytes on, the copy engine moves rows of `ENGINE_ROW` or longer between devices. It reaches 372 GB/s
each way, kernels 351, and it uses no multiprocessor. At 16 MiB a kernel is as fast. Two NVIDIA H200, driver
580.159.04."""

ENGINE_ROW = 512
"""The shortest row in bytes that the copy engine moves as fast as longer rows, measured on the same devices."""

ENGINE_COPIES = 8
"""Maximum number of 2-D copies per transfer."""

CYCLES = 2_000_000_000
"""An upper bound of clock cycles per second: an H200 runs at no more than 1.98 GHz."""

MOST_PITCH = (1 << 31) - 1
"""The largest distance in bytes between two rows. CUDA driver API, CU_DEVICE_ATTRIBUTE_MAX_PITCH of an H200."""


def on_device(array: Any) -> bool:
    """Whether an object is an array in GPU memory. The test does not export the array's memory."""
    device = getattr(array, "__dlpack_device__", None)
    with contextlib.suppress(Exception):  # the library may raise any exception
        if device is not None:
            return int(device()[0]) in (2, 13)
    return hasattr(array, "__cuda_array_interface__")


class GpuElements(NumpyElements):
    """Operations on arrays in GPU memory; staged data is in numpy arrays."""

    kind = "an array on a GPU"

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.dtype)
        self.views: dict[str, ArrayView] = {}

    def described(self, array: Any, what: str) -> Described:
        if not isinstance(array, ArrayView) and not on_device(array):
            raise InvalidTypeError(f"{what} must be {self.kind}, got {type(array).__name__}")
        view = array_view(array)
        if view.device is None:
            raise InvalidTypeError(f"{what} must be {self.kind}, but it is in host memory")
        self.views[what] = view
        steps = zip(view.shape, view.strides, row_major(view.shape), strict=True)
        compact = not view.count or all(n == 1 or a == b for n, a, b in steps)
        same = view.dtype == self.dtype
        return Described(view.dtype.name, same, view.shape, compact, not view.readonly, *view.extent())


@dataclass(frozen=True, slots=True)
class Route:
    """The route of one transfer: "push", "engine", "local", "threads" or "staged"; the last two with a reason."""

    source_device: int
    destination_device: int
    how: str
    bytes: int
    why: str = ""

    def __str__(self) -> str:
        why = f" ({self.why})" if self.why else ""
        return f"{self.source_device} -> {self.destination_device}: {self.how}, {self.bytes} bytes{why}"


class Push(NamedTuple):
    """A transfer with the memory on both sides, the device that runs it, and the index of the device that it writes
    to."""

    transfer: Transfer
    source: ArrayView
    destination: ArrayView
    device: Device
    to: int


def why_no_kernel(group: list[Transfer]) -> str:
    """Return the reason why no kernel can do these transfers; empty if a kernel can."""
    t = group[0]
    if len(group) > 1:
        return "a sum of several devices"
    if t.source_swizzle or t.destination_swizzle:
        return "a swizzled part"
    return "a negative stride" if min((min(m.source, m.destination) for m in t.modes), default=0) < 0 else ""


Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function of the driver, and its arguments."""


class EngineCopy:
    """A 2-D copy by the copy engine, which uses no multiprocessors."""

    def __init__(self, source: ArrayView, destination: ArrayView) -> None:
        api, width, self._calls = driver(), source.element_bytes, list[Call]()
        run, *rows = source.shape
        if not rows:
            self._calls.append((api.cuMemcpyAsync, (destination.address, source.address, run * width)))
        for index in itertools.product(*map(range, rows[1:])) if rows else ():
            flat = api.CUDA_MEMCPY2D()
            flat.dstMemoryType = flat.srcMemoryType = api.CUmemorytype.CU_MEMORYTYPE_UNIFIED
            for end, one in (("src", source), ("dst", destination)):
                steps = sum(i * step for i, step in zip(index, one.strides[2:], strict=True))
                setattr(flat, f"{end}Device", one.address + steps * width)
                setattr(flat, f"{end}Pitch", one.strides[1] * width)
            flat.WidthInBytes, flat.Height = run * width, rows[0]
            self._calls.append((api.cuMemcpy2DAsync, (flat,)))

    @staticmethod
    def serves(source: ArrayView, destination: ArrayView) -> bool:
        """Whether the copy engine is faster than a kernel for this copy."""
        width, (run, *rows) = source.element_bytes, source.shape or (1,)
        pitches = [pitch * width for one in (source, destination) for pitch in one.strides[1:2]]
        long = run * width >= ENGINE_ROW and run * width <= min(pitches, default=run * width)
        together = source.strides[:1] == destination.strides[:1] == (1,) and max(pitches, default=0) <= MOST_PITCH
        return long and together and math.prod(rows[1:]) <= ENGINE_COPIES and source.count * width >= ENGINE_FROM

    def prepare(self, stream: int) -> None:
        """Do nothing, because a copy by the copy engine has no objects for each stream."""

    def launch(self, stream: int) -> None:
        """Enqueue the copy; the device's context must be current."""
        for function, arguments in self._calls:
            call("copying between devices", function, *arguments, stream)

    def check(self, stream: int) -> None:
        """Do nothing, because a copy by the copy engine has no barrier that could fail."""


def _make(calls: list[Call]) -> None:
    for function, arguments in calls:
        code = function(*arguments)[0]
        if code:
            raise driver_failure(code, "launching a redistribution")


class Meeting:
    """A barrier at the end of the work of several devices: each device continues when all have arrived
    (`gpu.kernels.device_barrier`).

    Args:
        streams: the stream of each device that its kernel is launched on for capture. seconds: the time limit of the
            wait.
    """

    def __init__(self, devices: Mapping[int, Device], streams: Mapping[int, int], seconds: float) -> None:
        from cute_py.gpu.kernels.device_barrier import device_barrier  # Only copies over several devices need it.

        self._numbers = [*streams]
        source, counts = device_barrier(len(streams)), 8 * len(streams)
        memory = [DeviceBuffer(devices[n], 2 * counts) for n in streams]
        table = numpy.array([one.address for one in memory], numpy.uint64).tobytes()
        self._keep = memory
        self._records, self._launches = dict[int, WaitRecord](), dict[int, PreparedLaunch]()
        for me, (n, stream) in enumerate(streams.items()):
            memory[me].write(bytes(counts) + table)
            self._records[n] = WaitRecord(devices[n])
            here = memory[me].address
            values = [here, here + counts, me, int(seconds * CYCLES), self._records[n].address]
            self._launches[n] = PreparedLaunch(load_kernel(source, devices[n]), 1, Parameters(values), stream)

    def launch(self, n: int) -> None:
        """Enqueue the barrier kernel of a device."""
        self._launches[n].launch()

    def check(self) -> None:
        """Wait for the default streams. Raises DeviceError if a device did not arrive in time."""
        late = [(n, one) for n, record in self._records.items() for one in record.read() if one is not None]
        for n, one in late[:1]:
            what = f"the copies of device {self._numbers[one.thread]} had not ended after {one.cycles} clock cycles"
            raise DeviceError(f"device {n}: {what}", {"contents": "of the destinations are undefined"})


class Pushes:
    """Transfers by kernels on the sending devices, ready to launch.

    Args:
        pushes: the transfers. devices: the devices that run kernels, and the devices whose streams wait for the
            kernels.
        sms: multiprocessors that the transfers of a device may use.
        seconds: the time limit for a device's wait for the copies of another device.

    Attributes: `routes`, the method of each transfer, with the reason.
    """

    _one_launch = threading.Lock()
    """Global lock: launches that reach two devices in opposite orders would deadlock."""

    def __init__(self, pushes: Sequence[Push], devices: Mapping[int, Device], sms: int, seconds: float = 60.0) -> None:
        self.routes: list[Route] = []
        self._keep = pushes
        self._devices = devices
        self._copies: dict[tuple[int, int], list[PreparedCopy | EngineCopy]] = {}
        sent, kept = dict.fromkeys(devices, 0), dict.fromkeys(devices, 0)
        for one in pushes:
            (kept if one.to == one.device.ordinal else sent)[one.device.ordinal] += one.transfer.elements
        for one in pushes:
            share, n = sms, one.device.ordinal
            if one.to == n:  # long enough to take as long as the links, or all multiprocessors
                share = -(-sms * kept[n] // (sent[n] or 1))
            self._prepare(one, min(share, one.device.multiprocessors))
        self._streams = {key: self._new_stream(key[0]) for key in self._copies}
        for key, copies in self._copies.items():
            for copy in copies:
                copy.prepare(self._streams[key])
        self._runs: dict[int, int] = {}
        """Device that runs copies -> its first stream."""
        for (n, _), handle in self._streams.items():
            self._runs.setdefault(n, handle)
        self._begun, self._forked, self._ended = [{n: self._new_event(n) for n in self._devices} for _ in range(3)]
        self._done = {key: self._new_event(key[0]) for key in self._copies}
        self._default = dict.fromkeys(self._devices, 0)
        self._owners = {int(device.context): n for n, device in self._devices.items()}
        self._meeting = Meeting(devices, self._runs, seconds) if self._can_meet() else None
        self._apart = self._meeting is None and len(self._runs) > 1
        """Whether the barrier is needed but impossible; then copies are enqueued one by one."""
        self._graphs = {n: self._captured(n, stream) for n, stream in self._runs.items()}
        self._calls: dict[tuple[int, tuple[tuple[int, int], ...], bool], list[Call]] = {}
        self._failed = False

    def _prepare(self, one: Push, sms: int) -> None:
        t, device, width = one.transfer, one.device, one.source.element_bytes
        shape = tuple([mode.size for mode in t.modes])
        a = _moved(one.source, shape, tuple([mode.source for mode in t.modes]), t.source * width)
        b = _moved(one.destination, shape, tuple([mode.destination for mode in t.modes]), t.destination * width)
        how, why, size = "local" if one.to == device.ordinal else "push", "", t.elements * width
        key = device.ordinal, one.to
        if how == "push" and EngineCopy.serves(a, b):
            self._copies.setdefault(key, []).append(EngineCopy(a, b))
            self.routes.append(Route(t.source_device, t.destination_device, "engine", size))
            return
        ends, tuning = (side(a, "source"), side(b, "destination")), Tuning("ring" if size >= RING_FROM else "once")
        try:
            prepared = prepare_between(*ends, device, tuning, sms)
        except TmaLimitError as problem:
            prepared, how, why = prepare_between(*ends, device), "threads", problem.headline
        if prepared.plan is not None and prepared.plan.form != "affine":
            how, why = "threads", prepared.plan.why
        self._copies.setdefault(key, []).append(prepared)
        self.routes.append(Route(t.source_device, t.destination_device, how, size, why))

    def _new_stream(self, ordinal: int) -> int:
        with self._devices[ordinal].current():
            return int(call("making a stream", driver().cuStreamCreate, 1))  # CU_STREAM_NON_BLOCKING

    def _new_event(self, ordinal: int) -> Any:
        with self._devices[ordinal].current():
            return call("making an event", driver().cuEventCreate, 2)  # CU_EVENT_DISABLE_TIMING

    def _can_meet(self) -> bool:
        """Whether several devices run copies, and each of them can access the memory of all others."""
        ends = itertools.permutations([self._devices[n] for n in self._runs], 2)
        blocks = os.environ.get("CUDA_LAUNCH_BLOCKING", "0") != "0"
        return len(self._runs) > 1 and not blocks and all(has_peer_access(*pair) for pair in ends)

    def _captured(self, n: int, handle: int) -> Any:
        """Capture the work of a device as one graph, so that the cost of a launch does not depend on the number of
        copies."""
        api, doing = driver(), "making a graph"
        stream = api.CUstream(handle)
        with self._devices[n].current():
            call(doing, api.cuStreamBeginCapture, stream, api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
            try:
                self._enqueue(n, handle)
                if self._meeting is not None:
                    self._meeting.launch(n)
            except BaseException:
                api.cuStreamEndCapture(stream)
                raise
            graph = call(doing, api.cuStreamEndCapture, stream)
            try:
                made = call(doing, api.cuGraphInstantiate, graph, 0)
            finally:
                api.cuGraphDestroy(graph)
            call(doing, api.cuGraphUpload, made, stream)
        return made

    def _enqueue(self, n: int, stream: int) -> tuple[int]:
        """Enqueue a device's copies after the current work in its stream, and before later work. Return the driver's
        code of success."""
        api = driver()
        beside = [key for key in self._copies if key[0] == n and self._streams[key] != stream]
        with self._devices[n].current():
            call("recording an event", api.cuEventRecord, self._forked[n], stream)
            for key in beside:
                call("ordering streams", api.cuStreamWaitEvent, self._streams[key], self._forked[n], 0)
            for key, copies in self._copies.items():
                for one in copies if key[0] == n else ():
                    one.launch(self._streams[key])
            for key in beside:
                call("recording an event", api.cuEventRecord, self._done[key], self._streams[key])
                call("ordering streams", api.cuStreamWaitEvent, stream, self._done[key], 0)
        return (0,)

    def launch(self, stream: StreamLike | Mapping[int, StreamLike] = None) -> None:
        """Enqueue all copies, and return.

        Args:
            stream: the copies start after the work in this stream, and the stream waits for all of them. It is a stream
                of one device, or a mapping from device numbers to streams. Default: the default streams of all devices.
                The copies are not ordered against work on devices that `stream` does not list. If a stream is being
                captured, the copies become nodes of its graph.
        Raises:
            DeviceError: the driver refuses a call; if several devices run copies, all later launches fail too.
        """
        if not self._copies:
            return
        api, nodes = driver(), self._apart
        key: tuple[tuple[int, int], ...] = ()
        if stream is not None:
            given = self.handles(stream)
            key = tuple(given.items())
            for handle in given.values():
                if handle not in DEFAULT_STREAMS:  # if the stream is in capture, all devices are
                    nodes = nodes or bool(api.cuStreamIsCapturing(handle)[1])
                    break
        with self._one_launch:
            if self._failed:
                raise DeviceError(
                    "an earlier launch failed, so the devices are out of step", hint="prepare the redistribution again"
                )
            _, context = api.cuCtxGetCurrent()
            try:
                _make(self._calls.get((int(context), key, nodes)) or self._ordered(int(context), key, nodes))
            except BaseException:
                self._failed = self._meeting is not None and not nodes
                api.cuCtxSetCurrent(context)
                raise

    def _ordered(self, context: int, key: tuple[tuple[int, int], ...], nodes: bool) -> list[Call]:
        """List the driver calls of a launch between these streams, for a current context, so that a launch only makes
        the calls.

        One of the copying devices leads: its stream waits for the given streams, and the streams of the other copying
        devices wait for its stream. At the end, the copying devices have passed a barrier, and the given streams wait
        for the leading device. With `nodes`, the copies are enqueued one by one, so the given streams wait for all
        copying devices.
        """
        api = driver()
        given = dict(key) or self._default
        handles = {**self._runs, **given}
        streams = {n: api.CUstream(handle) for n, handle in handles.items()}
        away = {n: int(self._devices[n].context) != context for n in self._runs}  # the current device begins and ends
        lead = max(self._runs, key=lambda n: (n in given, away[n], n))
        others, current, calls = [n for n in self._runs if n != lead], context, list[Call]()

        def on(n: int, function: Callable[..., Any], *arguments: Any) -> None:
            """Add a call that uses a device's stream; default streams refer to the current device."""
            nonlocal current
            there = int(self._devices[n].context)
            if there != current and (not current or handles[n] in DEFAULT_STREAMS):
                calls.append((api.cuCtxSetCurrent, (self._devices[n].context,)))
                current = there
            calls.append((function, arguments))

        def gather(devices: list[int], events: Mapping[int, Any]) -> None:
            for n in devices:
                on(n, api.cuEventRecord, events[n], streams[n])
            for n in devices:
                on(lead, api.cuStreamWaitEvent, streams[lead], events[n], 0)

        def run(n: int) -> None:
            if nodes:
                on(n, self._enqueue, n, handles[n])
            else:
                on(n, api.cuGraphLaunch, self._graphs[n], streams[n])

        gather([n for n in given if n != lead], self._begun)
        if others:
            on(lead, api.cuEventRecord, self._begun[lead], streams[lead])
        run(lead)
        for n in others:
            on(n, api.cuStreamWaitEvent, streams[n], self._begun[lead], 0)
            run(n)
        if nodes:
            gather(others, self._ended)
        waiting = [n for n in given if n != lead and (nodes or n not in self._runs)]
        if waiting:
            on(lead, api.cuEventRecord, self._ended[lead], streams[lead])
        for n in waiting:
            on(n, api.cuStreamWaitEvent, streams[n], self._ended[lead], 0)
        if context and current != context:
            calls.append((api.cuCtxSetCurrent, (api.CUcontext(context),)))
        self._calls[context, key, nodes] = calls
        return calls

    def handles(self, stream: StreamLike | Mapping[int, StreamLike]) -> dict[int, int]:
        """Return the stream handle of each device that has a stream. Raises InvalidValueError if a stream belongs to
        another device."""
        if isinstance(stream, Mapping):
            found = {n: stream[n] for n in self._default if n in stream}
            return {n: one if type(one) is int else stream_handle(one) for n, one in found.items()}
        handle = stream_handle(stream)
        if handle in DEFAULT_STREAMS:
            return dict.fromkeys(self._default, handle)
        context = call("querying the device of a stream", driver().cuStreamGetCtx, handle)
        owner = self._owners.get(int(context))
        if owner is None:
            raise InvalidValueError(
                "the stream belongs to no device of this redistribution", {"devices": [*self._default]}
            )
        return {owner: handle}

    def check(self, stream: int | None = None) -> None:
        """Wait for all devices, or only for the given stream of the launch. Raises DeviceError if a kernel failed or a
        barrier did not complete."""
        for device in self._devices.values():
            if stream is None:
                device.synchronize()
        for key, copies in self._copies.items():
            for one in copies:
                one.check(self._streams[key] if stream is None else stream)
        if stream is not None:  # the copy engine writes no error records, and reading records waits
            call("waiting for copies", driver().cuStreamSynchronize, stream)
        if self._meeting is not None:
            self._meeting.check()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at interpreter exit the bindings may be gone
            api = driver()
            for graph in self._graphs.values():
                api.cuGraphExecDestroy(graph)
            for one in self._streams.values():
                api.cuStreamDestroy(one)
            events = self._begun, self._forked, self._ended, self._done
            for event in itertools.chain.from_iterable(one.values() for one in events):
                api.cuEventDestroy(event)


def _moved(view: ArrayView, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> ArrayView:
    return ArrayView(view.address + offset, shape, strides, view.dtype, view.device, view.readonly, view.owner)


def has_peer_access(device: Device, other: Device) -> bool:
    """Whether kernels on a device can access the memory of another device. If so, this function enables the access."""
    if device.ordinal == other.ordinal:
        return True
    api = driver()
    handles = [call("opening a device", api.cuDeviceGet, one.ordinal) for one in (device, other)]
    if not int(call("querying peer access", api.cuDeviceCanAccessPeer, *handles)):
        return False
    with device.current():
        (code,) = api.cuCtxEnablePeerAccess(other.context, 0)
    return code.name in ("CUDA_SUCCESS", "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED")


class PeerRedistribution:
    """A redistribution between GPUs: kernels for the transfers, in a graph for each device; staged transfers go through
    host memory.

    Attributes: `destinations`; `routes`, the method of each transfer, with the reason.
    """

    def __init__(
        self,
        plan: Plan,
        sources: Mapping[int, ArrayView],
        written: Mapping[int, ArrayView],
        destinations: Mapping[int, Any],
        sms: int,
        seconds: float,
    ) -> None:
        self.destinations = destinations
        views = (*sources.values(), *written.values())
        self._devices = {n: open_device(n) for n in sorted({v.device for v in views if v.device is not None})}
        self._access: dict[tuple[int, int], bool] = {}
        staged: list[list[Transfer]] = []
        pushes: list[Push] = []
        routes: list[Route] = []
        for group in plan.groups():
            t = group[0]
            a, b = sources[t.source_device], written[t.destination_device]
            here, there = int(a.device or 0), int(b.device or 0)
            why = why_no_kernel(group) or self._why_no_access(here, there)
            if why:
                staged.append(group)
                size = sum(t.elements for t in group) * a.element_bytes
                routes += [Route(t.source_device, t.destination_device, "staged", size, why) for t in group]
            else:
                pushes.append(Push(t, a, b, self._devices[here], there))
        self.pushes = Pushes(pushes, self._devices, sms, seconds)
        self.routes = [*routes, *self.pushes.routes]
        self._staged = _Staged(plan, staged, sources, written, self._devices) if staged else None

    def _why_no_access(self, here: int, there: int) -> str:
        if (here, there) not in self._access:
            self._access[here, there] = has_peer_access(self._devices[here], self._devices[there])
        return "" if self._access[here, there] else f"devices {here} and {there} have no peer access to each other"

    def launch(self, stream: StreamLike | Mapping[int, StreamLike] = None) -> None:
        """Enqueue all copies and return; if some copies are staged, wait for them. `stream` is as in
        `Pushes.launch`."""
        self.pushes.launch(stream)
        if self._staged is not None:
            self._staged.launch(dict.fromkeys(self._devices, 0) | self.pushes.handles(stream))

    def check(self) -> None:
        """Wait for the devices. Raises DeviceError if a kernel failed or a barrier did not complete."""
        self.pushes.check()

    def report(self) -> str:
        """Return the route of each transfer, one per line."""
        return "\n".join(map(str, self.routes))


class _Staged:
    """Transfers through host memory."""

    def __init__(
        self,
        plan: Plan,
        groups: list[list[Transfer]],
        sources: Mapping[int, ArrayView],
        written: Mapping[int, ArrayView],
        devices: Mapping[int, Device],
    ) -> None:
        self._devices = devices
        read = {t.source_device for group in groups for t in group}
        wrote = {group[0].destination_device for group in groups}
        self._sources = {d: (sources[d], numpy.empty(sources[d].count, plan.dtype.numpy)) for d in sorted(read)}
        self._written = {d: (written[d], numpy.empty(written[d].count, plan.dtype.numpy)) for d in sorted(wrote)}
        arrays = [{d: array for d, (_, array) in side.items()} for side in (self._sources, self._written)]
        self._host = HostRedistribution(groups, plan.dtype, *arrays)

    def launch(self, handles: Mapping[int, int]) -> None:
        for view, array in (*self._sources.values(), *self._written.values()):
            ordinal = int(view.device or 0)
            content = read_memory(self._devices[ordinal], view.address, array.nbytes, handles[ordinal])
            array.view(numpy.uint8)[:] = numpy.frombuffer(content, numpy.uint8)
        self._host.launch()
        api = driver()
        for view, array in self._written.values():
            ordinal = int(view.device or 0)
            with self._devices[ordinal].current():
                to, size = view.address, array.nbytes
                call("copying to the device", api.cuMemcpyHtoDAsync, to, array.ctypes.data, size, handles[ordinal])
                call("copying to the device", api.cuStreamSynchronize, handles[ordinal])


class _IntoScratch:
    """A redistribution that writes to scratch memory, and copies it to the destinations after all data has arrived."""

    def __init__(
        self, inner: PeerRedistribution, scratch: Mapping[int, ArrayView], goal: Mapping[int, ArrayView]
    ) -> None:
        self._inner = inner
        self._pairs = [(scratch[d], goal[d]) for d in sorted(goal) if goal[d].count]
        self.destinations = inner.destinations

    def launch(self, stream: StreamLike | Mapping[int, StreamLike] = None) -> None:
        """Fill the scratch memory, wait for all data, and fill the destinations."""
        self._inner.launch(stream)
        self._inner.check()
        for one, other in self._pairs:
            with open_device(other.device).current():
                size = one.count * one.element_bytes
                call("copying from scratch memory", driver().cuMemcpyDtoD, other.address, one.address, size)


def prepare_peer(
    plan: Plan,
    sources: Mapping[int, Any],
    destinations: Mapping[int, Any] | None,
    into: Mapping[int, Any] | None,
    sms: int,
    seconds: float,
) -> PeerRedistribution | _IntoScratch:
    """Check the arrays, and compile and load the kernels; see `Redistribution.run`.

    Raises:
        DeviceError: there is no GPU. InvalidTypeError, InvalidValueError: the host backend would raise the same error.
    """
    elements = GpuElements(plan)
    if destinations is None:
        destinations = {d: _new_part(plan, sources, d) for d in range(plan.destination.devices)}
    found = check_memory(elements, plan, sources, destinations, into)
    refuse(InvalidValueError, found, f"{len(found)} of the arrays can't be used")
    views = [
        {d: elements.views[f"{what}[{d}]"] for d in arrays}
        for what, arrays in (("sources", sources), ("destinations", destinations), ("into", into or {}))
    ]
    made = PeerRedistribution(plan, views[0], views[1] if into is None else views[2], destinations, sms, seconds)
    return made if into is None else _IntoScratch(made, views[2], views[1])


def _new_part(plan: Plan, sources: Mapping[int, Any], device: int) -> Any:
    """Make a new array for a device's part, with the library and on the GPU of its source."""
    like = sources.get(device) if isinstance(sources, Mapping) else None
    shape, wanted = plan.destination.local_shape(device), elements_of(plan.destination, device)
    extents = shape if math.prod(shape) == wanted else (wanted,)
    library = type(like).__module__.partition(".")[0]
    if like is None or library not in ("torch", "cupy"):
        raise InvalidValueError(
            f"destinations[{device}] is missing, and cute_py can't allocate a {type(like).__name__}",
            hint="pass destinations, each on the GPU of its device",
        )
    with device_of_array(like, array_view(like).device):
        return like.new_zeros(extents) if library == "torch" else sys.modules[library].zeros(extents, like.dtype)
