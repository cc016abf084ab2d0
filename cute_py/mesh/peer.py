"""A redistribution between the GPUs of one process, over peer access.

    push      the kernel runs on the sending device and writes the other's memory
    local     what a device keeps, on as many multiprocessors as take as long as the links
    threads   layouts that no TMA box moves: threads copy tiles or vectors
    staged    no peer access, sums or swizzled parts: through host memory

A launch begins after what the devices' default streams hold, or the given streams, and these wait for its end: nothing
waits on the host, except where a transfer is staged.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy

from cute_py.diagnostics import refuse
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.gpu.arrays import ArrayView, StreamLike, array_view, device_of_array
from cute_py.gpu.bindings import call, driver
from cute_py.gpu.device import Device, open_device, read_memory
from cute_py.mesh.host import Described, HostRedistribution, NumpyElements, check_memory, elements_of
from cute_py.mesh.pushes import Push, Pushes, Route, why_no_kernel
from cute_py.mesh.transfer import Plan, Transfer
from cute_py.tensor.arrays import row_major


def on_device(array: Any) -> bool:
    """Is it an array in the memory of a GPU? Its memory is not asked for."""
    device = getattr(array, "__dlpack_device__", None)
    with contextlib.suppress(Exception):  # a library may raise anything
        if device is not None:
            return int(device()[0]) in (2, 13)
    return hasattr(array, "__cuda_array_interface__")


class GpuElements(NumpyElements):
    """Arrays in the memory of GPUs; what is staged is in numpy's."""

    kind = "an array on a GPU"

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.dtype)
        self.views: dict[str, ArrayView] = {}

    def described(self, array: Any, what: str) -> Described:
        if not isinstance(array, ArrayView) and not on_device(array):
            raise InvalidTypeError(f"{what} must be {self.kind}, got {type(array).__name__}")
        view = array_view(array)
        if view.device is None:
            raise InvalidTypeError(f"{what} must be {self.kind}; it is in host memory")
        self.views[what] = view
        steps = zip(view.shape, view.strides, row_major(view.shape), strict=True)
        compact = not view.count or all(n == 1 or a == b for n, a, b in steps)
        same = view.dtype == self.dtype
        return Described(view.dtype.name, same, view.shape, compact, not view.readonly, *view.extent())


def has_peer_access(device: Device, other: Device) -> bool:
    """Can kernels on a device reach the memory of another? It is then enabled."""
    if device.ordinal == other.ordinal:
        return True
    api = driver()
    handles = [call("opening a device", api.cuDeviceGet, one.ordinal) for one in (device, other)]
    if not int(call("asking for peer access", api.cuDeviceCanAccessPeer, *handles)):
        return False
    with device.current():
        (code,) = api.cuCtxEnablePeerAccess(other.context, 0)
    return code.name in ("CUDA_SUCCESS", "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED")


class PeerRedistribution:
    """Kernels for each transfer, in one graph over all devices; what is staged goes through host memory.

    Attributes: `destinations`; `routes`, how each transfer runs and why.
    """

    def __init__(
        self,
        plan: Plan,
        sources: Mapping[int, ArrayView],
        written: Mapping[int, ArrayView],
        destinations: Mapping[int, Any],
        sms: int,
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
        self.pushes = Pushes(pushes, self._devices, sms)
        self.routes = [*routes, *self.pushes.routes]
        self._staged = _Staged(plan, staged, sources, written, self._devices) if staged else None

    def _why_no_access(self, here: int, there: int) -> str:
        if (here, there) not in self._access:
            self._access[here, there] = has_peer_access(self._devices[here], self._devices[there])
        return "" if self._access[here, there] else f"no peer access between devices {here} and {there}"

    def launch(self, stream: StreamLike | Mapping[int, StreamLike] = None) -> None:
        """Enqueue all copies, and return; with staged ones wait for them. The streams are those of `Pushes.launch`."""
        self.pushes.launch(stream)
        if self._staged is not None:
            self._staged.launch(self.pushes.handles(stream))

    def check(self) -> None:
        """Wait for the devices; DeviceError if a kernel failed or a barrier did not complete."""
        self.pushes.check()

    def report(self) -> str:
        """How each transfer runs, one a line."""
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
    """Scratch memory first; from there to the destinations when all of it is there."""

    def __init__(
        self, inner: PeerRedistribution, scratch: Mapping[int, ArrayView], goal: Mapping[int, ArrayView]
    ) -> None:
        self._inner = inner
        self._pairs = [(scratch[d], goal[d]) for d in sorted(goal) if goal[d].count]
        self.destinations = inner.destinations

    def launch(self, stream: StreamLike | Mapping[int, StreamLike] = None) -> None:
        """Fill the scratch memory, wait for it, and fill the destinations."""
        self._inner.launch(stream)
        self._inner.check()
        for one, other in self._pairs:
            with open_device(other.device).current():
                size = one.count * one.element_bytes
                call("copying from scratch memory", driver().cuMemcpyDtoD, other.address, one.address, size)


def prepare(
    plan: Plan,
    sources: Mapping[int, Any],
    destinations: Mapping[int, Any] | None,
    into: Mapping[int, Any] | None,
    sms: int,
) -> PeerRedistribution | _IntoScratch:
    """Check the memory, compile and load the kernels; see `Redistribution.run`.

    Raises:
        DeviceError: no GPU. InvalidTypeError, InvalidValueError: as on the host.
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
    made = PeerRedistribution(plan, views[0], views[1] if into is None else views[2], destinations, sms)
    return made if into is None else _IntoScratch(made, views[2], views[1])


def _new_part(plan: Plan, sources: Mapping[int, Any], device: int) -> Any:
    """A part of the library, and on the GPU, of the source of that number."""
    like = sources.get(device) if isinstance(sources, Mapping) else None
    shape, wanted = plan.destination.local_shape(device), elements_of(plan.destination, device)
    extents = shape if math.prod(shape) == wanted else (wanted,)
    library = type(like).__module__.partition(".")[0]
    if like is None or library not in ("torch", "cupy"):
        raise InvalidValueError(
            f"destinations[{device}] is missing, and none can be made like {type(like).__name__}",
            hint="give destinations, on the GPU that each of them belongs to",
        )
    with device_of_array(like, array_view(like).device):
        return like.new_zeros(extents) if library == "torch" else sys.modules[library].zeros(extents, like.dtype)
