"""A redistribution of numpy arrays in one process."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from cute_py.argument_checks import is_integer
from cute_py.diagnostics import Diagnostic, refuse
from cute_py.dtypes import DType
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.layout import ComposedLayout, Layout, cosize, offsets
from cute_py.mesh.sharded_layout import ShardedLayout
from cute_py.mesh.transfer import Transfer

Array = NDArray[Any]


class HostRedistribution:
    """Both sides of every transfer as views; a launch copies them in order."""

    def __init__(
        self,
        groups: Iterable[list[Transfer]],
        dtype: DType,
        sources: Mapping[int, Array],
        written: Mapping[int, Array],
    ) -> None:
        self.destinations = written
        self._accumulator = _accumulator(dtype)
        self._copies = []
        flat = {device: array.reshape(-1) for device, array in sources.items()}
        goal = {device: array.reshape(-1) for device, array in written.items()}
        for group in groups:
            views = [
                _view(flat[t.source_device], t.source, [(m.size, m.source) for m in t.modes], t.source_swizzle)
                for t in group
            ]
            t = group[0]
            places = [(m.size, m.destination) for m in t.modes]
            goal_view = _view(goal[t.destination_device], t.destination, places, t.destination_swizzle)
            self._copies.append((goal_view, views))

    def launch(self, stream: Any = None) -> None:
        """Copy, on the calling thread; a stream has no meaning here."""
        for (array, place), sources in self._copies:
            first, *others = [values[where] for values, where in sources]
            if others:
                first = first.astype(self._accumulator)
                for other in others:
                    first += other.astype(self._accumulator)
            array[place] = first.astype(array.dtype)


class IntoScratch:
    """A redistribution into scratch memory, and from there to the destinations when all of it has come."""

    def __init__(self, inner: HostRedistribution, destinations: Mapping[int, Array]) -> None:
        self._inner = inner
        self.destinations = destinations

    def launch(self, stream: Any = None) -> None:
        """Fill the scratch memory, then the destinations."""
        self._inner.launch(stream)
        for device, array in self.destinations.items():
            array.reshape(-1)[:] = self._inner.destinations[device].reshape(-1)


def prepare(
    source: ShardedLayout,
    destination: ShardedLayout,
    dtype: DType,
    groups: Iterable[list[Transfer]],
    sources: Mapping[int, Array],
    destinations: Mapping[int, Array] | None,
    into: Mapping[int, Array] | None,
) -> HostRedistribution | IntoScratch:
    """Check the memory and make the views; see `Redistribution.run`."""
    if destinations is None:
        destinations = {device: _new(destination, dtype, device) for device in range(destination.devices)}
    found = [
        *check_parts(dtype, source, sources, "sources"),
        *check_parts(dtype, destination, destinations, "destinations", written=True),
        *(check_parts(dtype, destination, into, "into", written=True) if into is not None else ()),
    ]
    refuse(InvalidValueError, found, f"{len(found)} of the arrays can't be used")
    sides = [sources, destinations, *([into] if into is not None else [])]
    named = [
        (f"{n}[{d}]", a) for n, s in zip(("sources", "destinations", "into"), sides, strict=False) for d, a in s.items()
    ]
    refuse(InvalidValueError, _shared_memory(named), "arrays share memory")
    if into is None:
        return HostRedistribution(groups, dtype, sources, destinations)
    return IntoScratch(HostRedistribution(groups, dtype, sources, into), destinations)


def check_parts(
    dtype: DType, side: ShardedLayout, arrays: Mapping[int, Array], what: str, written: bool = False
) -> list[Diagnostic]:
    """What is wrong with the memory of a side: a device without it, another size or element type, read-only."""
    if not isinstance(arrays, Mapping):
        raise InvalidTypeError(f"{what} must be a mapping of devices to arrays, got {type(arrays).__name__}")
    found: list[Diagnostic] = []
    for device in arrays:
        if not is_integer(device) or not 0 <= device < side.devices:
            text = f"{what} has an array of device {device!r}; the mesh has 0 to {side.devices - 1}"
            found.append(Diagnostic("mesh-device", what, text=text))
    for device in range(side.devices):
        name, wanted = f"{what}[{device}]", elements_of(side, device)
        if device not in arrays:
            if wanted:
                found.append(Diagnostic("mesh-device", name, text=f"{name} is missing; its part has {wanted} elements"))
            continue
        array = arrays[device]
        if not isinstance(array, numpy.ndarray):
            raise InvalidTypeError(f"{name} must be a numpy array, got {type(array).__name__}")
        if array.dtype != dtype.numpy:
            text = f"{name} has elements of {array.dtype}; must be {dtype.numpy}"
            found.append(Diagnostic("mesh-dtype", name, text=text))
        if array.size != wanted:
            shape: dict[str, object] = {"shape": array.shape, "expected": side.local_shape(device)}
            needs = f"be {wanted}, the reach of its local layout"
            found.append(Diagnostic("mesh-size", name, array.size, "elements", needs, facts=shape))
        if not array.flags.c_contiguous:
            found.append(
                Diagnostic("mesh-contiguous", name, text=f"{name} has gaps or another order; must be C-contiguous")
            )
        if written and not array.flags.writeable:
            found.append(Diagnostic("mesh-writeable", name, text=f"{name} is read-only"))
    return found


def elements_of(side: ShardedLayout, device: int) -> int:
    """Elements of memory that a device needs for its part."""
    return int(cosize(side.local_layout(device))) if math.prod(side.local_shape(device)) else 0


def _new(side: ShardedLayout, dtype: DType, device: int) -> Array:
    shape, wanted = side.local_shape(device), elements_of(side, device)
    return numpy.zeros(shape if math.prod(shape) == wanted else wanted, dtype.numpy)


def _shared_memory(named: list[tuple[str, Array]]) -> list[Diagnostic]:
    """Neighbours in memory that overlap, one of which is written."""
    spans = sorted((*numpy.lib.array_utils.byte_bounds(array), name) for name, array in named if array.size)
    found, last = [], (0, 0, "")
    for span in spans:
        if span[0] < last[1] and not (span[2].startswith("sources") and last[2].startswith("sources")):
            found.append(Diagnostic("mesh-overlap", span[2], text=f"{last[2]} and {span[2]} share memory"))
        last = max(last, span, key=lambda one: one[1])
    return found


def _view(flat: Array, base: int, modes: list[tuple[int, int]], swizzled: ComposedLayout | None) -> tuple[Array, Any]:
    """(array, index) of what these modes reach: a strided view, or the offsets themselves behind a swizzle."""
    shape, strides = tuple([n for n, _ in modes]), tuple([stride for _, stride in modes])
    if swizzled is None and min(strides, default=0) >= 0:
        steps = tuple([stride * flat.itemsize for stride in strides])
        return as_strided(flat[base:], shape, steps, writeable=flat.flags.writeable), ...
    places = base + offsets(Layout(shape, strides)) if modes else numpy.array(base)
    return flat, places if swizzled is None else offsets(swizzled.layout_a, swizzled.offset + places)


def _accumulator(dtype: DType) -> numpy.dtype[Any]:
    """The type that summands are added in: float32 for narrower floats."""
    narrow = dtype.is_float and dtype.bits < 32
    return numpy.dtype(numpy.float32) if narrow else dtype.numpy
