"""Run a redistribution of numpy arrays in one process."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from cute_py.argument_checks import is_integer, refuse_mask
from cute_py.diagnostics import Diagnostic, refuse
from cute_py.dtypes import DType
from cute_py.errors import InvalidTypeError, InvalidValueError, LayoutError, given
from cute_py.layout import ComposedLayout, Layout, Swizzle, is_injective, offsets
from cute_py.layout.trees import leaves
from cute_py.mesh.sharded_layout import ShardedLayout
from cute_py.mesh.transfer import Plan, Transfer

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy

Array: TypeAlias = "NDArray[Any]"


class Elements(Protocol):
    """The operations on arrays of one library that a redistribution uses."""

    kind: str
    dtype: DType

    def described(self, array: Any, what: str) -> Described:
        """Describe an array. Raises InvalidTypeError for an array of another library."""
        ...

    def flat(self, array: Any) -> Any:
        """Return a flat view of all elements, without a copy."""
        ...

    def strided(self, flat: Any, base: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """Return a view of a flat array; strides are in elements."""
        ...

    def index(self, places: NDArray[numpy.int64], flat: Any) -> Any:
        """Return the index that selects the elements at these offsets from a flat array."""
        ...

    def empty(self, count: int) -> Any:
        """Return new memory for messages."""
        ...

    def zeros(self, shape: tuple[int, ...]) -> Any:
        """Return a new array of zeros for a part."""
        ...

    def wide(self, values: Any) -> Any:
        """Return a copy in the type that sums are computed in."""
        ...

    def settle(self) -> None:
        """Wait until all writes are visible."""
        ...


@dataclass(frozen=True, slots=True)
class Described:
    """The properties of an array that are checked: element type, shape, order, and its addresses from `begin` to
    `end`."""

    dtype: str
    is_dtype: bool
    shape: tuple[int, ...]
    contiguous: bool
    writeable: bool
    begin: int
    end: int


class NumpyElements:
    """Operations on numpy arrays."""

    kind = "a numpy array"

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype
        self._wide = _accumulator(dtype)

    def described(self, array: Any, what: str) -> Described:
        refuse_mask(array, what)
        if not isinstance(array, numpy.ndarray):
            raise InvalidTypeError(f"{what} must be {self.kind}, got {type(array).__name__}")
        span = numpy.lib.array_utils.byte_bounds(array)
        same, flags = array.dtype == self.dtype.numpy, array.flags
        return Described(str(array.dtype), same, array.shape, flags.c_contiguous, flags.writeable, *span)

    def flat(self, array: Any) -> Any:
        return array.reshape(-1)

    def strided(self, flat: Any, base: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        steps = tuple([stride * flat.itemsize for stride in strides])
        return numpy.ndarray(shape, flat.dtype, flat, base * flat.itemsize, steps)  # as_strided does not support '<f1'

    def index(self, places: NDArray[numpy.int64], flat: Any) -> Any:
        return places

    def empty(self, count: int) -> Any:
        return numpy.empty(count, self.dtype.numpy)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return numpy.zeros(shape, self.dtype.numpy)

    def wide(self, values: Any) -> Any:
        return values.astype(self._wide)

    def settle(self) -> None:
        pass


class Part:
    """The elements in a device's memory that one side of a transfer reads or writes."""

    def __init__(
        self, elements: Elements, flat: Any, base: int, modes: list[tuple[int, int]], swizzled: ComposedLayout | None
    ) -> None:
        shape, strides = tuple([n for n, _ in modes]), tuple([stride for _, stride in modes])
        self.shape = shape
        self.count = math.prod(shape)
        self._place: Any = ...
        if swizzled is None and min(strides, default=0) >= 0:
            self._array = elements.strided(flat, base, shape, strides)
        else:  # a swizzle has no strides, and views have no negative ones
            places = base + offsets(Layout(shape, strides)) if modes else numpy.array(base)
            places = places if swizzled is None else offsets(swizzled.layout_a, swizzled.offset + places)
            self._array, self._place = flat, elements.index(numpy.asarray(places, numpy.int64), flat)

    def read(self) -> Any:
        """Return the elements of the part."""
        return self._array[self._place]

    def write(self, values: Any) -> None:
        """Set the elements of the part to values, converted to its type."""
        self._array[self._place] = values


def source_part(elements: Elements, flat: Any, t: Transfer) -> Part:
    """Return the part that a transfer reads."""
    return Part(elements, flat, t.source, [(m.size, m.source) for m in t.modes], t.source_swizzle)


def destination_part(elements: Elements, flat: Any, t: Transfer) -> Part:
    """Return the part that a transfer writes."""
    return Part(elements, flat, t.destination, [(m.size, m.destination) for m in t.modes], t.destination_swizzle)


def write_sum(elements: Elements, goal: Part, summands: Sequence[Any]) -> None:
    """Set a part to the sum of the summands, added from the first to the last."""
    first, *others = summands
    if others:
        first = elements.wide(first)
        for other in others:
            first += elements.wide(other)
    goal.write(first)


class HostRedistribution:
    """A redistribution on the host, with views of both sides of every transfer. A launch copies them in order. With
    scratch memory `into`, it copies to the scratch memory first, and then from there to the destinations."""

    def __init__(
        self,
        groups: Iterable[list[Transfer]],
        dtype: DType,
        sources: Mapping[int, Array],
        destinations: Mapping[int, Array],
        into: Mapping[int, Array] | None = None,
    ) -> None:
        self.destinations = destinations
        self._into = into or {}
        self._elements = NumpyElements(dtype)
        flat = {device: array.reshape(-1) for device, array in sources.items()}
        goal = {device: array.reshape(-1) for device, array in (destinations if into is None else into).items()}
        self._copies = [
            (
                destination_part(self._elements, goal[group[0].destination_device], group[0]),
                [source_part(self._elements, flat[t.source_device], t) for t in group],
            )
            for group in groups
        ]

    def launch(self, stream: Any = None) -> None:
        """Copy on the calling thread; a stream has no effect."""
        for goal, sources in self._copies:
            write_sum(self._elements, goal, [source.read() for source in sources])
        for device in self._into.keys() & self.destinations.keys():  # an empty part may be missing on either side
            self.destinations[device].reshape(-1)[:] = self._into[device].reshape(-1)


def prepare_host(
    plan: Plan, sources: Mapping[int, Any], destinations: Mapping[int, Any] | None, into: Mapping[int, Any] | None
) -> HostRedistribution:
    """Check the arrays and make the views; see `Redistribution.run`."""
    elements = NumpyElements(plan.dtype)
    if destinations is None:
        destinations = new_parts(elements, plan.destination, range(plan.destination.devices))
    found = check_memory(elements, plan, sources, destinations, into)
    refuse(InvalidValueError, found, f"{len(found)} of the arrays can't be used")
    return HostRedistribution(plan.groups(), plan.dtype, sources, destinations, into)


def new_parts(elements: Elements, side: ShardedLayout, devices: Iterable[int]) -> dict[int, Any]:
    """Return new arrays for the parts of these devices."""
    found = {}
    for device in devices:
        shape, wanted = side.local_shape(device), elements_of(side, device)
        found[device] = elements.zeros(shape if math.prod(shape) == wanted else (wanted,))
    return found


def check_memory(
    elements: Elements,
    plan: Plan,
    sources: Mapping[int, Any],
    destinations: Mapping[int, Any],
    into: Mapping[int, Any] | None,
    only: int | None = None,
) -> list[Diagnostic]:
    """Check the arrays of all devices, or of the device `only`, and return the errors."""
    all_sides = [(plan.source, sources, "sources"), (plan.destination, destinations, "destinations")]
    all_sides += [(plan.destination, into, "into")] if into is not None else []
    found, named = [], []
    for side, arrays, what in all_sides:
        if not isinstance(arrays, Mapping):
            raise InvalidTypeError(f"{what} must be a mapping of devices to arrays, got {type(arrays).__name__}")
        known = {
            d: elements.described(array, f"{what}[{d}]")
            for d, array in arrays.items()
            if is_integer(d) and 0 <= d < side.devices
        }
        found += _check_devices(side, arrays, what, only)
        for d, one in known.items():
            found += _check_part(elements, side, d, one, what)
            named.append((f"{what}[{d}]", one))
    return found or _shared_memory(named)


def _check_devices(side: ShardedLayout, arrays: Mapping[int, Any], what: str, only: int | None) -> list[Diagnostic]:
    """Report arrays for devices that do not exist, and devices without an array."""
    found: list[Diagnostic] = []
    for device in arrays:
        if not is_integer(device) or not 0 <= device < side.devices:
            text = f"{what} has an array for device {given(device)}; the mesh has devices 0 to {side.devices - 1}"
            found.append(Diagnostic("mesh-device", what, text=text))
        elif only is not None and device != only:
            text = (
                f"{what} has an array for device {device}, but this process is rank {only}, and must pass only its "
                "own array"
            )
            found.append(Diagnostic("mesh-device", what, text=text))
    for device in range(side.devices) if only is None else [only] if only < side.devices else []:
        if device not in arrays and elements_of(side, device):
            wanted, name = elements_of(side, device), f"{what}[{device}]"
            found.append(Diagnostic("mesh-device", name, text=f"{name} is missing; its part has {wanted} elements"))
    return found


def _check_part(elements: Elements, side: ShardedLayout, device: int, one: Described, what: str) -> list[Diagnostic]:
    """Report a wrong size or element type, gaps between elements, and read-only memory."""
    found, name, wanted = [], f"{what}[{device}]", elements_of(side, device)
    if not one.is_dtype:
        text = f"{name} has elements of type {one.dtype}; must be {elements.dtype.name}"
        found.append(Diagnostic("mesh-dtype", name, text=text))
    if math.prod(one.shape) != wanted:
        shape: dict[str, object] = {"shape": one.shape, "expected": side.local_shape(device)}
        needs = f"be {wanted}, the extent of its local layout"
        found.append(Diagnostic("mesh-size", name, math.prod(one.shape), "elements", needs, facts=shape))
    elif len(one.shape) > 1 and side._local == "row" and _long(one.shape) != _long(side.local_shape(device)):
        text = f"{name} has the shape {one.shape}; must be {side.local_shape(device)}, or one-dimensional"
        found.append(Diagnostic("mesh-shape", name, text=text))
    own = side._local not in ("row", "column")
    if what != "sources" and wanted and own and not is_injective(side.local_layout(device)):
        text = f"the local layout of {name}, {side.local_layout(device)}, maps two elements to one offset"
        found.append(Diagnostic("mesh-injective", name, text=text))
    if not one.contiguous:
        text = f"{name} must be C-contiguous, without gaps"
        found.append(Diagnostic("mesh-contiguous", name, text=text))
    if what != "sources" and not one.writeable:
        found.append(Diagnostic("mesh-writeable", name, text=f"{name} is read-only"))
    return found


def _long(shape: Sequence[int]) -> list[int]:
    return [n for n in shape if n != 1]


def elements_of(side: ShardedLayout, device: int) -> int:
    """Return the number of elements of memory that a device needs for its part, up to its last offset.

    Raises:
        LayoutError: the first offset of the part is negative.
    """
    if not math.prod(side.local_shape(device)):
        return 0
    layout = side.local_layout(device)
    first, last = _reach(layout)
    if first < 0:
        facts = {"layout": str(layout)}
        raise LayoutError(
            f"the part of device {device} begins at offset {first}, before the start of its memory", facts
        )
    return last + 1


def _reach(layout: Layout | ComposedLayout) -> tuple[int, int]:
    """Return the smallest and the largest offset of a layout, or bounds of them."""
    plain, first = (layout.layout_b, int(layout.offset)) if isinstance(layout, ComposedLayout) else (layout, 0)
    steps = [(n - 1) * stride for n, stride in zip(leaves(plain.shape), leaves(plain.stride), strict=True)]
    last = first + int(sum(step for step in steps if step > 0))
    first += int(sum(step for step in steps if step < 0))
    if not isinstance(layout, ComposedLayout) or layout.layout_a == Layout(1, 1):
        return first, last
    swizzle = layout.layout_a
    if isinstance(swizzle, Swizzle) and (last + 1) % (1 << swizzle.bits + swizzle.base + abs(swizzle.shift)) == 0:
        return first, last  # the swizzle permutes whole blocks
    places = offsets(layout)
    return int(places.min()), int(places.max())


def _shared_memory(named: list[tuple[str, Described]]) -> list[Diagnostic]:
    """Report arrays that overlap in memory, if one of them is written."""
    spans = sorted((one.begin, one.end, name) for name, one in named if math.prod(one.shape))
    found, last = [], (0, 0, "")
    for span in spans:
        if span[0] < last[1] and not (span[2].startswith("sources") and last[2].startswith("sources")):
            found.append(Diagnostic("mesh-overlap", span[2], text=f"{last[2]} and {span[2]} share memory"))
        last = max(last, span, key=lambda one: one[1])
    return found


def _accumulator(dtype: DType) -> numpy.dtype[Any]:
    """Return the type that summands are added in: float32 for narrower floats."""
    narrow = dtype.is_float and dtype.bits < 32
    return numpy.dtype(numpy.float32) if narrow else dtype.numpy
