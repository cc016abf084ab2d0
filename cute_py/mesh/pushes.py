"""The kernels of transfers between the GPUs that a process reaches, in one graph.

A device pushes: its kernel writes the other's memory, since reading a peer's memory is slower where both directions are
busy (333 GB/s each way, pushed 364) or a row is no multiple of 128 bytes (238, pushed 369; two NVIDIA H200, driver
580.159.04). What a device keeps and what it sends run beside each other, each on its share of the multiprocessors, so
that links and memory are busy at once.

All of it is one graph over all devices, so that a launch is one call of the driver and few to order streams.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cute_py.copies.boxes import Tuning
from cute_py.copies.operands import side
from cute_py.copies.prepared import PreparedCopy, prepare_between
from cute_py.errors import InvalidValueError, TmaLimitError
from cute_py.gpu.arrays import ArrayView, StreamLike, stream_handle
from cute_py.gpu.bindings import call, driver, driver_failure
from cute_py.gpu.device import DEFAULT_STREAMS, Device
from cute_py.mesh.transfer import Transfer

RING_FROM = 4 << 20
"""Bytes from which a copy runs on a share of the multiprocessors; below, it has a block a tile."""


ENGINE_FROM = 1 << 27
"""Bytes from which the copy engine moves what is contiguous, or rows of `ENGINE_ROW`, between devices: 383 to 392 GB/s
where kernels get 355 to 368; below, a kernel starts sooner. Measured on two NVIDIA H200, driver 580.159.04."""

ENGINE_ROW = 4096
"""Bytes."""

ENGINE_COPIES = 16
"""Of two modes each, that a transfer of more modes is at most."""


@dataclass(frozen=True, slots=True)
class Route:
    """How one transfer runs: "push", "engine", "local", "threads" or "staged", and why, of the last two."""

    source_device: int
    destination_device: int
    how: str
    bytes: int
    why: str = ""

    def __str__(self) -> str:
        why = f" ({self.why})" if self.why else ""
        return f"{self.source_device} -> {self.destination_device}: {self.how}, {self.bytes} bytes{why}"


class Push(NamedTuple):
    """A transfer, the memory on both sides, the device that runs it, and the number of the one that it writes to."""

    transfer: Transfer
    source: ArrayView
    destination: ArrayView
    device: Device
    to: int


def why_no_kernel(group: list[Transfer]) -> str:
    """Why no kernel moves these, whose elements are added; empty where one does."""
    t = group[0]
    if len(group) > 1:
        return "a sum of several devices"
    if t.source_swizzle or t.destination_swizzle:
        return "a swizzled part"
    return "a negative stride" if min((min(m.source, m.destination) for m in t.modes), default=0) < 0 else ""


Call = tuple[Any, ...]
"""A function of the driver, and its arguments."""


class EngineCopy:
    """Rows of one length, moved by the copy engine, which takes no multiprocessor."""

    def __init__(self, source: ArrayView, destination: ArrayView) -> None:
        api, width = driver(), source.element_bytes
        (run, rows, *others), self._calls = (*source.shape, 1, 1)[: max(2, len(source.shape))], list[Call]()
        for index in itertools.product(*map(range, others)):
            flat = api.CUDA_MEMCPY2D()
            flat.dstMemoryType = flat.srcMemoryType = api.CUmemorytype.CU_MEMORYTYPE_UNIFIED
            for end, one in (("src", source), ("dst", destination)):
                steps = sum(i * step for i, step in zip(index, one.strides[2:], strict=True))
                setattr(flat, f"{end}Device", one.address + steps * width)
                setattr(flat, f"{end}Pitch", (*one.strides, run, run)[1] * width)
            flat.WidthInBytes, flat.Height = run * width, rows
            self._calls.append((api.cuMemcpy2DAsync, flat))

    @staticmethod
    def serves(source: ArrayView, destination: ArrayView) -> bool:
        """Is it faster than a kernel?"""
        width, (run, *rows) = source.element_bytes, source.shape or (1,)
        pitches = [pitch * width for one in (source, destination) for pitch in one.strides[1:2]]
        long = run * width >= ENGINE_ROW and run * width <= min(pitches, default=run * width)
        together = source.strides[:1] == destination.strides[:1] == (1,) and max(pitches, default=0) < 1 << 31
        return long and together and math.prod(rows[1:]) <= ENGINE_COPIES and source.count * width >= ENGINE_FROM

    def prepare(self, stream: int) -> None:
        """Nothing is made for a stream."""

    def launch(self, stream: int) -> None:
        """Enqueue it; the device's context is current."""
        for copy in self._calls:
            call("copying between devices", *copy, stream)

    def check(self, stream: int) -> None:
        """It has no barriers that could fail."""


class _Order(NamedTuple):
    """A launch as the driver's calls, between streams of the devices: nothing is left to decide when it is made."""

    lead: int
    stream: int
    before: list[Call]
    launch: list[Call]
    after: list[Call]


def _make(calls: list[Call]) -> None:
    for function, *arguments in calls:
        (code,) = function(*arguments)
        if code:
            raise driver_failure(code, "launching a redistribution")


class Pushes:
    """Transfers as kernels of the devices that send, ready to launch.

    Args:
        pushes: what to move. devices: those that run kernels, and those whose streams wait for them.
        sms: multiprocessors that what a device sends may use.

    Attributes: `routes`, how each transfer runs and why.
    """

    def __init__(self, pushes: Sequence[Push], devices: Mapping[int, Device], sms: int) -> None:
        self.routes: list[Route] = []
        self._keep = pushes
        self._devices = devices
        self._copies: dict[tuple[int, int], list[PreparedCopy | EngineCopy]] = {}
        sent, kept = dict.fromkeys(devices, 0), dict.fromkeys(devices, 0)
        for one in pushes:
            (kept if one.to == one.device.ordinal else sent)[one.device.ordinal] += one.transfer.elements
        for one in pushes:
            share, n = sms, one.device.ordinal
            if one.to == n:  # for as long as the links are busy, or all there are
                share = -(-sms * kept[n] // (sent[n] or 1))
            self._prepare(one, min(share, one.device.multiprocessors))
        self._streams = {key: self._new_stream(key[0]) for key in self._copies}
        for key, copies in self._copies.items():
            for copy in copies:
                copy.prepare(self._streams[key])
        self._begun, self._forked, self._joined = [{n: self._new_event(n) for n in self._devices} for _ in range(3)]
        self._ended = {key: self._new_event(key[0]) for key in self._copies}
        self._graph = self._captured() if self._copies else None
        self._default = dict.fromkeys(self._devices, 0)
        self._orders: dict[tuple[int, ...], _Order] = {}

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

    def _captured(self) -> Any:
        """All copies as one graph: what is left for a launch does not grow with their number."""
        api = driver()
        doing = "making a graph"
        ((ordinal, _), lead), *_ = self._streams.items()
        stream = api.CUstream(lead)
        with self._devices[ordinal].current():
            call(doing, api.cuStreamBeginCapture, stream, api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
            try:
                self._enqueue(ordinal, lead)
            except BaseException:
                api.cuStreamEndCapture(stream)
                raise
            graph = call(doing, api.cuStreamEndCapture, stream)
            try:
                return call(doing, api.cuGraphInstantiate, graph, 0)
            finally:
                api.cuGraphDestroy(graph)

    def _enqueue(self, ordinal: int, lead: int) -> None:
        """All copies after what the stream `lead` of a device holds, and before what it gets next."""
        api = driver()
        with self._devices[ordinal].current():
            call("recording an event", api.cuEventRecord, self._forked[ordinal], lead)
        for key, copies in self._copies.items():
            stream = self._streams[key]
            with self._devices[key[0]].current():
                if stream != lead:
                    call("ordering streams", api.cuStreamWaitEvent, stream, self._forked[ordinal], 0)
                for one in copies:
                    one.launch(stream)
                call("recording an event", api.cuEventRecord, self._ended[key], stream)
        with self._devices[ordinal].current():
            for key, stream in self._streams.items():
                if stream != lead:
                    call("ordering streams", api.cuStreamWaitEvent, lead, self._ended[key], 0)

    def launch(self, stream: StreamLike | Mapping[int, StreamLike] = None) -> None:
        """Enqueue all copies, and return.

        Args:
            stream: after which data are read and written, and which waits for all of it: of one device, or number of
                the device -> stream. Of other devices it is the default stream. Streams that are being captured into
                a graph get the copies as nodes of it.
        """
        if self._graph is None:
            return
        api = driver()
        key = () if stream is None else tuple(self.handles(stream).values())
        _, context = api.cuCtxGetCurrent()
        order = self._orders.get((int(context), *key)) or self._ordered(int(context), key)
        try:
            _make(order.before)
            if order.stream not in DEFAULT_STREAMS and api.cuStreamIsCapturing(order.stream)[1]:
                self._enqueue(order.lead, order.stream)
            else:
                _make(order.launch)
            _make(order.after)
        except BaseException:
            api.cuCtxSetCurrent(context)
            raise

    def _ordered(self, context: int, key: tuple[int, ...]) -> _Order:
        """The driver's calls of a launch between these streams, while a context is current: the lead's stream waits for
        the others', and they for it."""
        api = driver()
        handles = dict(zip(self._devices, key, strict=True)) if key else self._default
        streams = {n: api.CUstream(handle) for n, handle in handles.items()}
        lead = next((n for n, handle in handles.items() if handle not in DEFAULT_STREAMS), max(handles))
        others = [n for n in handles if n != lead]
        current = context

        def on(n: int, *calls: Call) -> list[Call]:
            """Calls with a device's stream; the default streams are those of the current device."""
            nonlocal current
            there = int(self._devices[n].context)
            if there == current or (current and handles[n] not in DEFAULT_STREAMS):
                return [*calls]
            current = there
            return [(api.cuCtxSetCurrent, self._devices[n].context), *calls]

        before = [one for n in others for one in on(n, (api.cuEventRecord, self._begun[n], streams[n]))]
        before += on(lead, *[(api.cuStreamWaitEvent, streams[lead], self._begun[n], 0) for n in others])
        after: list[Call] = [(api.cuEventRecord, self._joined[lead], streams[lead])]
        for n in reversed(others):
            after += on(n, (api.cuStreamWaitEvent, streams[n], self._joined[lead], 0))
        if context and current != context:
            after.append((api.cuCtxSetCurrent, api.CUcontext(context)))
        order = _Order(lead, handles[lead], before, [(api.cuGraphLaunch, self._graph, streams[lead])], after)
        self._orders[context, *key] = order
        return order

    def handles(self, stream: StreamLike | Mapping[int, StreamLike]) -> dict[int, int]:
        """The stream of each device. InvalidValueError: one of another device."""
        if isinstance(stream, Mapping):
            return self._default | {n: stream_handle(one) for n, one in stream.items() if n in self._default}
        handle = stream_handle(stream)
        if handle in DEFAULT_STREAMS:
            return dict.fromkeys(self._default, handle)
        context = call("asking for the device of a stream", driver().cuStreamGetCtx, handle)
        owners = [n for n, device in self._devices.items() if int(device.context) == int(context)]
        if not owners:
            raise InvalidValueError("the stream is of no device of this redistribution", {"devices": [*self._default]})
        return self._default | {owners[0]: handle}

    def is_done(self) -> bool:
        """Has the last launch on default streams ended? Returns at once; DeviceError if a kernel failed."""
        if self._graph is None:
            return True
        (code,) = driver().cuEventQuery(self._joined[max(self._devices)])
        if code and code.name != "CUDA_ERROR_NOT_READY":
            raise driver_failure(code, "moving data between devices")
        return not code

    def check(self) -> None:
        """Wait for the devices; DeviceError if a kernel failed or a barrier did not complete."""
        for device in self._devices.values():
            device.synchronize()
        for key, copies in self._copies.items():
            for one in copies:
                one.check(self._streams[key])

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at interpreter exit the bindings may be gone
            api = driver()
            if self._graph is not None:
                api.cuGraphExecDestroy(self._graph)
            for one in self._streams.values():
                api.cuStreamDestroy(one)
            for event in (*self._begun.values(), *self._joined.values(), *self._forked.values(), *self._ended.values()):
                api.cuEventDestroy(event)


def _moved(view: ArrayView, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> ArrayView:
    return ArrayView(view.address + offset, shape, strides, view.dtype, view.device, view.readonly, view.owner)
