"""Distributions of a tensor over devices: the layout from its coordinates to (device, offset), and each device's
part."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from cute_py.argument_checks import expect, expect_choice, expect_integer, expect_integers, expect_items, is_integer
from cute_py.arith_tuple import ArithTuple, E, as_arith_tuple
from cute_py.errors import InvalidTypeError, InvalidValueError, LayoutError, given, shortened
from cute_py.layout import ComposedLayout, Layout, LayoutLeft, LayoutRight, composition, offsets, rank, size
from cute_py.layout.trees import unwrap
from cute_py.mesh.index_intervals import Column, Runs, runs_of, segments
from cute_py.mesh.placements import Divides, Partial, Placement, Replicate, SectionedShard, Shard, pieces_of
from cute_py.tensor.array_views import row_major

if TYPE_CHECKING:
    import numpy
else:
    from cute_py.optional_packages import numpy

Local = Literal["row", "column"] | Layout | ComposedLayout | Callable[[tuple[int, ...]], Layout | ComposedLayout]
"""The memory layout of a part: row-major, column-major, one layout for all, or a function of the local shape."""

MOST_DEVICES = 1 << 16

SHOWN = 12
"""Maximum number of devices that an explanation lists."""


@dataclass(frozen=True, slots=True, eq=False)
class Dimension:
    """One dimension: what each of its parts adds to the device index, and the indices in each part."""

    size: int
    devices: Column
    runs: Callable[[int], Runs]

    def first(self, part: int) -> int:
        """Return the first index of a part, or the size of the dimension if the part is empty."""
        runs = self.runs(part)
        return int(runs.start[0]) if len(runs.start) else self.size


class Division(NamedTuple):
    """One step of the division of a dimension: a placement, and the number of parts."""

    placement: Divides
    parts: int


class ShardedLayout:
    """A distribution of a tensor over devices, given by a layout coordinate -> ArithTuple(device, offset). See also
    `distribute`.

    Args:
        layout: its strides are n@0, which count devices, and n@1, which count elements in the memory of a device.
            Custom strides that give such tuples are also allowed.
        mesh_shape: number of devices along each mode of the mesh; devices are numbered in row-major order.
        replicas: layout (shape:stride) of the devices that hold the same elements, relative to the first of them.

    Attributes: `shape`; `mesh_shape`; `placements`, empty if the object was made from a layout; `replicas`.

    Raises:
        LayoutError: the layout maps a coordinate to a device that the mesh does not have, or a device is a replica of
            itself.

    >>> rows = ShardedLayout(Layout(((256, 4), 256), ((E(1) * 256, E(0)), E(1))), 4)
    >>> rows.local_shape(2), rows.local_offset(2), str(rows.local_layout(2))
    ((256, 256), (512, 0), '(256,256):(256,1)')
    """

    placements: tuple[Placement, ...] = ()
    partial_devices: tuple[int, ...] = (0,)
    """Offsets from an element's first device to the devices that hold its summands."""

    def __init__(self, layout: Layout, mesh_shape: int | Sequence[int], replicas: Layout | None = None) -> None:
        self.mesh_shape = _mesh(mesh_shape)
        self._steps: list[list[tuple[Division, int]]] = []
        self._given: Layout | None = expect(layout, Layout, "the layout")
        self.replicas = Layout(1, 0) if replicas is None else expect(replicas, Layout, "replicas")
        self._dimensions = tuple([_dimension_of(layout[i]) for i in range(rank(layout))])
        self._local: Local | None = None
        self._made = functools.partial(ShardedLayout, layout, self.mesh_shape, self.replicas)
        self.shape = tuple([dimension.size for dimension in self._dimensions])
        devices = sorted(self._boxes)
        if devices[0] < 0 or devices[-1] >= self.devices:
            raise LayoutError(
                f"the coordinates are on devices {devices[0]} to {devices[-1]}; a mesh of {self.devices} has "
                f"devices 0 to {self.devices - 1}",
                {"layout": str(layout), "mesh_shape": self.mesh_shape},
            )
        for device, boxes in self._boxes.items():
            if len(set(boxes)) < len(boxes):
                facts = {"layout": str(layout), "replicas": str(self.replicas)}
                raise LayoutError(
                    f"device {device} is a replica of itself; a device must hold each element once", facts
                )

    @property
    def devices(self) -> int:
        """Number of devices in the mesh."""
        return math.prod(self.mesh_shape)

    @property
    def layout(self) -> Layout | None:
        """The layout coordinate -> ArithTuple(device, offset) for the first replica; None if no layout expresses the
        distribution."""
        return self._single[0]

    @property
    def why_no_layout(self) -> str:
        """The reason why `layout` is None, or an empty string."""
        return self._single[1]

    @functools.cached_property
    def _single(self) -> tuple[Layout | None, str]:
        return (self._given, "") if self._given is not None else _single_layout(self, self._steps)

    def local_shape(self, device: int) -> tuple[int, ...]:
        """Return the extents of a device's part, or only its number of elements if the part is not a product over the
        dimensions."""
        boxes = self._boxes_of(device)
        if len(boxes) == 1:
            return tuple([d.runs(part).size for d, part in zip(self._dimensions, boxes[0], strict=True)])
        return (sum(math.prod(d.runs(p).size for d, p in zip(self._dimensions, box, strict=True)) for box in boxes),)

    def local_offset(self, device: int) -> tuple[int, ...]:
        """Return the coordinate in the whole tensor of the first element that a device holds.

        >>> distribute((10, 4), 4, [Shard(0)]).local_offset(2)
        (6, 0)
        """
        boxes = self._boxes_of(device)
        if not boxes:
            return self.shape
        return tuple([d.first(part) for d, part in zip(self._dimensions, boxes[0], strict=True)])

    def local_layout(self, device: int) -> Layout | ComposedLayout:
        """Return the layout from the local coordinate to the offset in the device's memory, in elements.

        Raises:
            LayoutError: a user-defined layout places the device's elements in an irregular order.

        >>> str(distribute((10, 4), 4, [Shard(0)]).local_layout(2))
        '(3,4):(4,_1)'
        """
        if self._local is not None:
            return _local_layout(self._local, self.local_shape(device))
        boxes = self._boxes_of(device)
        dimensions, base = [], 0
        for dimension, part in zip(self._dimensions, boxes[0] if len(boxes) == 1 else (), strict=False):
            found = segments(dimension.runs(part), dimension.runs(part))
            if len(found) == 1:
                dimensions.append(tuple([(mode.size, mode.source) for mode in found[0].modes]) or ((1, 0),))
                base += found[0].source
        if len(dimensions) != len(self.shape):
            raise LayoutError(
                f"the part of device {device} has no single layout", {"layout": str(self.layout), "boxes": len(boxes)}
            )
        plain = Layout(*(tuple([unwrap([mode[i] for mode in modes]) for modes in dimensions]) for i in (0, 1)))
        return at_offset(plain, base)

    def holders(self, coordinate: Sequence[int]) -> tuple[int, ...]:
        """Return the devices that hold the element at a coordinate.

        Raises:
            InvalidValueError: the coordinate is outside the tensor.

        >>> distribute((8, 4), (2, 2), [Shard(0), Replicate()]).holders((5, 0))
        (2, 3)
        """
        wanted = expect_integers(coordinate, "the coordinate", 0, count=len(self.shape))
        for i, (index, extent) in enumerate(zip(wanted, self.shape, strict=True)):
            if index >= extent:
                raise InvalidValueError.of_value(
                    f"coordinate[{i}]", index, f"be below {extent}", "", {"shape": self.shape}
                )
        parts = [
            [dimension.devices[part] for part in range(len(dimension.devices)) if dimension.runs(part).holds(index)]
            for dimension, index in zip(self._dimensions, wanted, strict=True)
        ]
        first = functools.reduce(numpy.add.outer, map(numpy.array, parts), numpy.zeros((), numpy.int64))
        return tuple(sorted((first[..., None, None] + self._others).ravel().tolist()))

    def to_placements(self) -> tuple[Placement, ...]:
        """Return one placement for each mesh mode, as DTensor has them.

        Raises:
            LayoutError: the object was made from a layout.
        """
        if not self.placements:
            raise LayoutError(
                "this tensor was made from a layout, so it has no placements", {"layout": str(self.layout)}
            )
        return self.placements

    def digest(self) -> str:
        """A string that identifies the distribution, the same in every process."""
        found = [f"{self.shape} {self.mesh_shape} {self.partial_devices} {self._replica_devices.tolist()}"]
        for dimension in self._dimensions:
            found.append(f"{dimension.devices.tolist()}")
            for part in range(len(dimension.devices)):
                runs = dimension.runs(part)
                columns = (
                    (runs.start, runs.length) if self._local else (runs.start, runs.length, runs.offset, runs.step)
                )
                found.append(" ".join(str(column.tolist()) for column in columns))
        if callable(self._local):
            shapes = dict.fromkeys(self.local_shape(device) for device in sorted(self._boxes))
            found += [str(_local_layout(self._local, shape)) for shape in shapes]
        else:
            found.append(str(self._local))
        return hashlib.sha256("\n".join(found).encode()).hexdigest()

    def explain(self) -> str:
        """Describe the part of each of the first 12 devices."""
        lines = [str(self)]
        for device in range(min(self.devices, SHOWN)):
            lines.append(f"  device {device}: {self.local_shape(device)} from {self.local_offset(device)}")
        if self.devices > SHOWN:
            lines.append(f"  and {self.devices - SHOWN} more")
        if self.layout is None:
            lines.append(f"  no single layout: {self.why_no_layout}")
        else:
            lines.append(f"  (device, offset) = {self.layout}")
        if size(self.replicas) > 1:
            lines.append(f"  replicas {self.replicas}")
        return "\n".join(lines)

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        how = ", ".join(map(str, self.placements)) or str(self.layout)
        return f"{shape} over {'x'.join(map(str, self.mesh_shape))} devices: {how}"

    def __repr__(self) -> str:
        options = [f"{name}={value!r}" for name, value in self._made.keywords.items()]
        return shortened(f"{self._made.func.__name__}({', '.join([*map(repr, self._made.args), *options])})", 300)

    def __eq__(self, other: object) -> bool:
        """Whether both distributions were made with equal arguments."""
        return self._arguments == other._arguments if isinstance(other, ShardedLayout) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._arguments)

    @property
    def _arguments(self) -> Hashable:
        return self._made.func, self._made.args, tuple(self._made.keywords.items())

    def __reduce__(self) -> tuple[Callable[[], ShardedLayout], tuple[()]]:
        return self._made, ()  # the parts are local functions, which pickle can't find by name

    # ---- what a redistribution reads

    @functools.cached_property
    def _replica_devices(self) -> Column:
        """Device offsets from the first device to its replicas, in increasing order."""
        return numpy.sort(_column(offsets(self.replicas)))

    @property
    def _others(self) -> Column:
        """Device offsets from the first device to each replica and each summand."""
        return _column(self._replica_devices)[:, None] + numpy.array(self.partial_devices, numpy.int64)

    @functools.cached_property
    def _part_devices(self) -> Column:
        """Array with the first device that holds each box; its axes count the parts of each dimension."""
        devices = numpy.zeros((), numpy.int64)
        for dimension in self._dimensions:
            devices = devices[..., None] + dimension.devices
        return devices

    @functools.cached_property
    def _boxes(self) -> dict[int, list[tuple[int, ...]]]:
        """Mapping from each device to its boxes, each given by the index of the part in each dimension."""
        devices = self._part_devices[..., None] + self._others.ravel()
        if devices.size > MOST_DEVICES:
            raise LayoutError(
                f"the layout covers {devices.size} parts over devices; must cover at most {MOST_DEVICES}",
                {"shape": self.shape},
            )
        found: dict[int, list[tuple[int, ...]]] = {}
        indices = numpy.stack(numpy.unravel_index(numpy.arange(devices.size), devices.shape), axis=1)
        for device, parts in zip(devices.ravel().tolist(), indices[:, :-1].tolist(), strict=True):
            found.setdefault(device, []).append(tuple(parts))
        return found

    def _boxes_of(self, device: int) -> list[tuple[int, ...]]:
        return self._boxes.get(expect_integer(device, "the device", 0, self.devices - 1), [])

    def _memory(self, box: tuple[int, ...]) -> tuple[list[Runs], ComposedLayout | None]:
        """Return a box's indices in each dimension with their offsets and steps in memory, and the swizzled layout that
        is applied to these offsets, or None."""
        held = [dimension.runs(part) for dimension, part in zip(self._dimensions, box, strict=True)]
        if self._local is None:
            return held, None
        shape = tuple([runs.size for runs in held])
        if self._local == "row":  # the common case; without a Layout it takes a third of the time
            return [runs.scaled(step) for runs, step in zip(held, row_major(shape), strict=True)], None
        layout = _local_layout(self._local, shape)
        swizzled = layout if isinstance(layout, ComposedLayout) else None
        plain = layout.layout_b if isinstance(layout, ComposedLayout) else layout
        found = []
        for i, runs in enumerate(held):
            stride = plain[i].stride
            if isinstance(stride, int):
                found.append(runs.scaled(int(stride)))
            else:
                found.append(runs.through(_column(offsets(plain[i], numpy.arange(runs.size)))))
        return found, swizzled


def distribute(
    shape: int | Sequence[int],
    mesh_shape: int | Sequence[int],
    placements: Sequence[Placement],
    *,
    order: str = "row",
    uneven: str = "dtensor",
    local: Local = "row",
    first: Sequence[int] | None = None,
) -> ShardedLayout:
    """Divide a tensor by one placement for each mode of a mesh; the first divides first.

    Args:
        shape: extents of the whole tensor.
        mesh_shape: number of devices along each mode of the mesh.
        placements: `Shard`, `BlockCyclic`, `StridedShard`, `Zigzag`, `SectionedShard`, `Replicate`, `Partial`, or an
            object with `dim` and `pieces`.
        order: the order of device numbers in the mesh: "row" (the last mode is the fastest) or "column".
        uneven: the rule if several modes divide one dimension: "dtensor" divides the parts of the previous mode again,
            and "jax" divides once, by the product of the modes' sizes.
        local: the layout of a device's part in its memory.
        first: the modes of the mesh in the order of division; by default, the order of the mesh.
    Raises:
        InvalidValueError: a placement names a missing dimension, there is not one placement for each mode, or sections
            do not add up to the dimension.

    >>> print(distribute((1024, 256), 4, [Shard(0)]).layout)
    ((256,4),256):((256@1,1@0),1@1)
    >>> uneven = distribute(10, 4, [Shard(0)])
    >>> [uneven.local_shape(d) for d in range(4)], uneven.why_no_layout
    ([(3,), (3,), (3,), (1,)], 'Shard(dim=0) over 4 does not divide dimension 0 of 10 evenly')
    """
    extents = _extents(shape, "shape")
    mesh = _mesh(mesh_shape)
    each = expect_items(placements, "placements")
    if len(each) != len(mesh):
        raise InvalidValueError(
            f"placements has {len(each)} entries; must have {len(mesh)}, one for each mode of the mesh",
            {"mesh_shape": mesh},
        )
    for i, placement in enumerate(each):
        _check_placement(placement, f"placements[{i}]", len(extents))
    expect_choice(order, ("row", "column"), "order")
    expect_choice(uneven, ("dtensor", "jax"), "uneven")
    if not callable(local) and not isinstance(local, (Layout, ComposedLayout)):
        expect_choice(local, ("row", "column"), "local")
    strides = row_major(mesh) if order == "row" else row_major(mesh[::-1])[::-1]
    made = ShardedLayout.__new__(ShardedLayout)
    made.mesh_shape, made.shape, made.placements, made._local = mesh, extents, each, local
    steps: list[list[tuple[Division, int]]] = [[] for _ in extents]
    sequence = range(len(mesh)) if first is None else expect_integers(first, "first", 0, len(mesh) - 1, count=len(mesh))
    if len(set(sequence)) != len(mesh):
        raise InvalidValueError(f"first = {tuple(sequence)}; must list each mode of the mesh once")
    for mode in sequence:
        placement, parts, stride = each[mode], mesh[mode], strides[mode]
        if not isinstance(placement, (Replicate, Partial)):
            steps[placement.dim].append((Division(placement, parts), stride))
    for extent, found in zip(extents, steps, strict=True):
        if found and isinstance(placement := found[0][0].placement, SectionedShard):
            placement.pieces(extent, 1, 0)  # the sections are those of the dimension
    made._dimensions = tuple([_divided(n, found, uneven) for n, found in zip(extents, steps, strict=True)])
    made.partial_devices = _spread(
        [(n, s) for n, s, p in zip(mesh, strides, each, strict=True) if isinstance(p, Partial)]
    )
    others = [(n, s) for n, s, p in zip(mesh, strides, each, strict=True) if isinstance(p, Replicate)]
    made.replicas = Layout(tuple([n for n, _ in others]), tuple([s for _, s in others])) if others else Layout(1, 0)
    made._given, made._steps = None, steps
    options = {"order": order, "uneven": uneven, "local": local, "first": tuple(sequence)}
    usual = {"order": "row", "uneven": "dtensor", "local": "row", "first": tuple(range(len(mesh)))}
    unusual = {name: value for name, value in options.items() if value != usual[name]}
    made._made = functools.partial(distribute, extents, mesh, each, **unusual)  # type: ignore[arg-type]
    return made


def at_offset(plain: Layout, base: int) -> Layout | ComposedLayout:
    """Return the layout with an offset added."""
    return plain if base == 0 else ComposedLayout(Layout(1, 1), base, plain)


def _check_placement(placement: Any, what: str, dimensions: int) -> None:
    if isinstance(placement, Replicate):
        return
    if isinstance(placement, Partial):
        expect_choice(placement.reduction, ("sum",), f"{what}.reduction")
        return
    if not hasattr(placement, "pieces") or isinstance(placement, type):
        raise InvalidTypeError(
            f"{what} must be a placement, got {type(placement).__name__} {given(placement)}",
            hint="Shard(0), Replicate(), BlockCyclic(0, 64), Partial()",
        )
    expect_integer(placement.dim, f"{what}.dim", 0, dimensions - 1)
    for name in ("block", "split_factor"):
        if hasattr(placement, name):
            expect_integer(getattr(placement, name), f"{what}.{name}", 1)


def _divided(n: int, steps: list[tuple[Division, int]], uneven: str) -> Dimension:
    devices = numpy.zeros(1, numpy.int64)
    for division, stride in steps:
        devices = (devices[:, None] + stride * numpy.arange(division.parts)).ravel()
    joined = _joined([division for division, _ in steps]) if uneven == "jax" else [division for division, _ in steps]

    @functools.cache
    def runs(part: int) -> Runs:
        found, left = Runs.whole(n), math.prod(division.parts for division in joined)
        for placement, parts in joined:
            left //= parts
            found = found.within(pieces_of(placement, found.size, parts, part // left % parts))
        return found

    return Dimension(n, devices, runs)


def _joined(steps: list[Division]) -> list[Division]:
    found: list[Division] = []
    for step in steps:
        if found and isinstance(step.placement, Shard) and isinstance(found[-1].placement, Shard):
            found[-1] = Division(step.placement, found[-1].parts * step.parts)
        else:
            found.append(step)
    return found


MOST_INDICES = 1 << 24
"""Maximum number of indices of a dimension that are looked up one by one."""


def _dimension_of(mode: Layout) -> Dimension:
    """Return the dimension of a mode that maps to (device, offset), with the indices of each device."""
    n = expect_integer(size(mode), "the size of a dimension")
    if n > MOST_INDICES:
        raise InvalidValueError(
            f"the dimension has {n} elements in arbitrary order; must have at most {MOST_INDICES} for a lookup"
        )
    table = numpy.asarray(offsets(mode, numpy.arange(n)))
    if table.dtype == object:  # strides other than n@i: sums of them, or a user's class
        table = numpy.array([_pair(value, mode) for value in table.tolist()], numpy.int64).reshape(n, 2)
    if (table.ndim == 1 and table.any()) or (table.ndim == 2 and table.shape[1] > 2):
        raise _no_pair(mode)
    table = numpy.zeros((n, 2), numpy.int64) if table.ndim == 1 else numpy.pad(table, ((0, 0), (0, 2 - table.shape[1])))
    devices, part = numpy.unique(table[:, 0], return_inverse=True)

    @functools.cache
    def runs(number: int) -> Runs:
        indices = numpy.flatnonzero(part == number)
        return runs_of(indices, table[indices, 1])

    return Dimension(n, devices, runs)


def _pair(value: Any, mode: Layout) -> tuple[int, int]:
    given = as_arith_tuple(value)
    if not isinstance(given, ArithTuple) or len(given) > 2 or not all(map(is_integer, given)):
        raise _no_pair(mode)
    device, offset, *_ = (*[expect_integer(one, "a stride's value") for one in given], 0, 0)
    return device, offset


def _no_pair(mode: Layout) -> InvalidTypeError:
    facts = {"mode": str(mode)}
    return InvalidTypeError(
        "a layout over devices must give (device, offset)", facts, hint="use strides n@0 and n@1: E(0) * n"
    )


def _single_layout(made: ShardedLayout, steps: list[list[tuple[Division, int]]]) -> tuple[Layout | None, str]:
    """Return the layout coordinate -> (device, offset), or None and the reason why there is none."""
    local_shape = tuple([n // math.prod(d.parts for d, _ in found) for n, found in zip(made.shape, steps, strict=True)])
    shapes: list[Any] = []
    strides: list[Any] = []
    for i, (n, found) in enumerate(zip(made.shape, steps, strict=True)):
        modes, why = _modes_of(n, found, i)
        if why:
            return None, why
        layout = _local_layout(made._local or "row", local_shape)
        if isinstance(layout, ComposedLayout):
            return None, "the part of each device is swizzled"
        shape: list[Any] = []
        stride: list[Any] = []
        for extent, device, local in modes:
            inner = composition(layout[i], Layout(extent, local)) if device == 0 else Layout(extent, 0)
            step = inner.stride if isinstance(inner.stride, tuple) else (inner.stride,)
            shape += list(inner.shape) if isinstance(inner.shape, tuple) else [inner.shape]
            stride += [E(0) * device] if device else [E(1) * one for one in step]
        shapes.append(unwrap(shape))
        strides.append(unwrap(stride))
    return Layout(tuple(shapes), tuple(strides)), ""


def _modes_of(n: int, steps: list[tuple[Division, int]], dim: int) -> tuple[list[tuple[int, int, int]], str]:
    """Return modes (extent, device stride or 0, stride in local indices) of a dimension, the fastest first, or the
    reason why there are none."""
    modes = [(n, 0, 1)] if n != 1 or not steps else []
    for (placement, parts), stride in steps:
        held = math.prod(extent for extent, device, _ in modes if not device)
        pieces = pieces_of(placement, held, parts, 0)
        lengths = pieces[:, 1]
        block, blocks = int(lengths[0]) if len(lengths) else 0, len(lengths)
        whole = 0 < block * blocks * parts == held and (lengths == block).all()
        dealt = numpy.arange(blocks) * block * parts
        if parts == 1:
            continue
        if not whole or any(
            (pieces_of(placement, held, parts, part)[:, 0] != dealt + part * block).any() for part in range(parts)
        ):
            return [], f"{placement} over {parts} does not divide dimension {dim} of {n} evenly"
        modes = _split(modes, block, parts, stride)
        if not modes:
            return [], f"dimension {dim} of {n}: {placement} over {parts} cuts a block of the placement before it"
    return modes or [(1, 0, 1)], ""


def _split(modes: list[tuple[int, int, int]], block: int, parts: int, stride: int) -> list[tuple[int, int, int]]:
    """Split local modes after `block` local indices and again after block * parts; the modes in between become device
    modes."""
    found: list[tuple[int, int, int]] = []
    at = 1  # local indices so far, before this cut
    inside = 1  # those that stay local
    for extent, device, _ in modes:
        if device:
            found.append((extent, device, 0))
            continue
        left = extent
        for edge, goes in ((block, 0), (block * parts, stride), (0, 0)):
            if left == 1:
                break
            take = left if edge == 0 else min(left, max(1, edge // at))
            if edge and (at < edge) and (edge % at or left % take):
                return []
            if edge and at >= edge:
                continue
            if take > 1:
                found.append((take, goes * at // block, 0) if goes else (take, 0, inside))
                at *= take
                inside *= 1 if goes else take
            left //= take
    return found


def _local_layout(local: Local, shape: tuple[int, ...]) -> Layout | ComposedLayout:
    if local == "row":
        return Layout(shape, LayoutRight)
    if local == "column":
        return Layout(shape, LayoutLeft)
    found = local if isinstance(local, (Layout, ComposedLayout)) else local(shape)
    if not isinstance(found, (Layout, ComposedLayout)):
        raise InvalidTypeError(f"a local layout must be a Layout, got {type(found).__name__} {given(found)}")
    plain = found.layout_b if isinstance(found, ComposedLayout) else found
    extents = tuple([int(size(plain[i])) for i in range(rank(plain))])
    if extents != shape:
        raise LayoutError(
            f"a local layout has the extents {extents}; must be {shape}, the extents of the device's part",
            {"layout": str(found)},
        )
    return found


def _extents(shape: int | Sequence[int], what: str) -> tuple[int, ...]:
    return expect_integers((shape,) if is_integer(shape) else shape, what, 0, 1 << 62)


def _mesh(mesh_shape: int | Sequence[int]) -> tuple[int, ...]:
    mesh = expect_integers((mesh_shape,) if is_integer(mesh_shape) else mesh_shape, "mesh_shape", 1)
    if not mesh:
        raise InvalidValueError("mesh_shape = (); must have at least 1 mode")
    if math.prod(mesh) > MOST_DEVICES:
        raise InvalidValueError(
            f"the mesh has {math.prod(mesh)} devices in {len(mesh)} modes; must have 1 to {MOST_DEVICES}"
        )
    return mesh


def _spread(modes: list[tuple[int, int]]) -> tuple[int, ...]:
    found = [0]
    for n, stride in modes:
        found = [one + i * stride for one in found for i in range(n)]
    return tuple(found)


def _column(table: Any) -> Column:
    return numpy.asarray(table, numpy.int64).ravel()
