"""Shards of a block-scaled tensor: cuts are between blocks, and scales stay with their blocks.

    (M, K) elements          rows and columns of a part begin and end at blocks of the format
    stored elements          for e2m1, two per byte: half as many columns
    grid of scales           one per block, divided like the elements

A shard is a complete ScaledTensor: its scales are in the order of the format, with padding for the shard's size. A cut
inside a block raises an error with the nearest allowed sizes. Data and scales move as two tensors, with every backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy

from cute_py.argument_checks import expect
from cute_py.diagnostics import Diagnostic, refuse
from cute_py.errors import InvalidValueError, LayoutError
from cute_py.formats.format import Format
from cute_py.formats.numbers import codes, of_codes
from cute_py.formats.scaled_tensor import (
    ScaledTensor,
    scale_places,
    scatter_scales,
    stored_elements,
    stored_scales,
    stored_shape,
)
from cute_py.mesh.index_intervals import Column
from cute_py.mesh.placements import BlockCyclic, Partial, Placement, Replicate, SectionedShard
from cute_py.mesh.redistribution import redistribute
from cute_py.mesh.sharded_layout import ShardedLayout, distribute


class ScaledSharding:
    """A distribution of a block-scaled tensor over devices.

    Args:
        layout: the distribution of the (M, K) elements, made by `distribute`. format: the format; its elements must be
            one row-major plane, not transposed.
    Attributes: `layout`, `format`; `data`, the distribution of the stored elements; `scales`, the distribution of the
    grid of scales, one per block.
    Raises:
        LayoutError: a part begins or ends inside a block; the message has the nearest allowed sizes.
        InvalidValueError: the layout was not made by `distribute`, holds summands, or has another rank.

    >>> from cute_py.mesh import Shard
    >>> cut = ScaledSharding(distribute((64, 256), 4, [Shard(1)]), cute.formats.mxfp8())
    >>> cut.layout.local_shape(0), cut.scales.local_shape(0)
    ((64, 64), (64, 2))
    >>> try:
    ...     ScaledSharding(distribute((64, 256), 3, [Shard(1)]), cute.formats.mxfp8())
    ... except LayoutError as error:
    ...     print(error.headline)
    device 0 holds columns 0 to 85; a cut must be a multiple of 32 columns: nearest 64 or 96, not 86
    """

    def __init__(self, layout: ShardedLayout, format: Format) -> None:
        self.layout = expect(layout, ShardedLayout, "the layout")
        self.format = expect(format, Format, "format")
        if len(layout.shape) != 2 or not layout.placements or min(layout.shape) < 1:
            raise InvalidValueError(
                f"the distribution has the shape {layout.shape}; must be (M, K), made by distribute",
                {"placements": layout.placements},
            )
        if format.transposed or format.packing == "dense":
            raise InvalidValueError(
                f"{format} is not supported; the format must be row-major, with its elements in bytes or pairs"
            )
        M, K = layout.shape
        units = format.blocks(M, K)
        self._units = int(units[0]), int(units[1])
        width = 2 if format.packing == "pairs" else 1
        found: list[Diagnostic] = []
        scales = [_in_units(one, self._units, found) for one in layout.placements]
        stored = [_in_units(one, (1, width), found) for one in layout.placements]
        refuse(LayoutError, found)
        self.scales = _like(layout, (-(-M // self._units[0]), -(-K // self._units[1])), scales)
        self.data = _like(layout, (M, -(-K // width)), stored)
        refuse(LayoutError, check_block_cuts(layout, self.scales, self._units)[:1])
        refuse(LayoutError, check_block_cuts(layout, self.data, (1, width))[:1])

    def __repr__(self) -> str:
        return f"ScaledSharding({self.layout!r}, {self.format!r})"

    def split(self, scaled: ScaledTensor) -> dict[int, ScaledTensor]:
        """Split a tensor into the parts of the devices; a device without elements gets no part.

        Raises:
            InvalidValueError: the tensor has another shape or format.
        """
        self._expect(scaled, self.layout.shape)
        data, grid = _plain(scaled)
        found = {}
        for device in range(self.layout.devices):
            shape = self.layout.local_shape(device)
            if min(shape) < 1 or len(shape) != 2:
                continue
            mine, scales = (
                data[numpy.ix_(*held_indices(self.data, device))],
                grid[numpy.ix_(*held_indices(self.scales, device))],
            )
            found[device] = self._made(mine, scales, scaled.tensor_scale, shape)
        return found

    def join(self, parts: dict[int, ScaledTensor]) -> ScaledTensor:
        """Join the parts of the devices into the whole tensor.

        Raises:
            InvalidValueError: a part is missing, or has another shape, format or tensor scale.
        """
        expect(parts, dict, "parts")
        kind = self.format.scale_dtype.numpy
        data = numpy.zeros(self.data.shape, numpy.uint8)
        grid = numpy.zeros(self.scales.shape, f"u{kind.itemsize}")
        total = None
        for device in range(self.layout.devices):
            shape = self.layout.local_shape(device)
            if min(shape) < 1:
                continue
            if device not in parts:
                raise InvalidValueError(f"the part of device {device} is missing; its shape is {shape}")
            self._expect(parts[device], shape)
            total = self._same_total(total, parts[device], device)
            for whole, side, piece in zip((data, grid), (self.data, self.scales), _plain(parts[device]), strict=True):
                whole[numpy.ix_(*held_indices(side, device))] = piece
        return self._made(data, grid, total, self.layout.shape)

    def redistribute(
        self, parts: dict[int, ScaledTensor], destination: ScaledSharding, **options: Any
    ) -> dict[int, ScaledTensor]:
        """Redistribute a tensor with `redistribute(...).run` for data and scales, and return the parts of the new
        distribution.

        Args:
            options: options of `Redistribution.run`, such as backend.
        Raises:
            InvalidValueError: the destination has another format, or a device has another tensor scale.
        """
        expect(parts, dict, "parts")
        expect(destination, ScaledSharding, "destination")
        if destination.format != self.format:
            raise InvalidValueError(
                "the destination has another format", {"source": self.format, "destination": destination.format}
            )
        total = None
        for device, part in parts.items():
            self._expect(part, self.layout.local_shape(device))
            total = self._same_total(total, part, device)
        plain = {device: _plain(part) for device, part in parts.items()}
        kind = f"uint{8 * self.format.scale_dtype.numpy.itemsize}"
        sides = ((self.data, destination.data, "uint8"), (self.scales, destination.scales, kind))
        moved = []
        for i, (ours, theirs, dtype) in enumerate(sides):
            held = {device: numpy.ascontiguousarray(pair[i]) for device, pair in plain.items()}
            moved.append(redistribute(ours, theirs, dtype).run(held, **options))
        found = {}
        for device in moved[0]:
            shape = destination.layout.local_shape(device)
            if min(shape) > 0:
                data, grid = moved[0][device], moved[1][device]
                found[device] = destination._made(
                    data.reshape(destination.data.local_shape(device)),
                    grid.reshape(destination.scales.local_shape(device)),
                    total,
                    shape,
                )
        return found

    def _expect(self, scaled: ScaledTensor, shape: Sequence[int]) -> None:
        expect(scaled, ScaledTensor, "a part")
        names = [one.name for one in fields(Format) if one.name != "scale_rule"]
        alike = all(getattr(scaled.format, name) == getattr(self.format, name) for name in names)
        if scaled.shape != tuple(shape) or not alike:
            raise InvalidValueError(
                f"the tensor has shape {scaled.shape} in {scaled.format}; must have {tuple(shape)} in {self.format}"
            )

    def _same_total(self, total: Any, part: ScaledTensor, device: int) -> Any:
        if total is not None and part.tensor_scale != total:
            raise InvalidValueError(
                f"device {device} has the tensor scale {part.tensor_scale}, but other devices have {total}; "
                "they must be equal"
            )
        return part.tensor_scale

    def _made(self, data: Any, grid: Any, total: Any, shape: tuple[int, ...]) -> ScaledTensor:
        """Make a ScaledTensor from its stored bytes and the grid of its scales, as bits."""
        form = self.format
        stored = numpy.zeros(stored_shape(form, shape), numpy.uint8)
        stored[: data.shape[0], : data.shape[1]] = data
        stored = stored_elements(stored, form)
        scales = scatter_scales(of_codes(numpy.ascontiguousarray(grid), form.scale_dtype), form, shape)
        return ScaledTensor(stored, scales, form, total, shape)


def _plain(scaled: ScaledTensor) -> tuple[Any, Any]:
    """Return the stored bytes without padding, and the grid of the scales as bits."""
    width = 2 if scaled.format.packing == "pairs" else 1
    data = codes(scaled.data)[: scaled.shape[0], : -(-scaled.shape[1] // width)]
    grid = codes(stored_scales(scaled.scales, scaled.format))[scale_places(scaled.format, scaled.shape)]
    return data, grid


def held_indices(side: ShardedLayout, device: int) -> list[Column]:
    """Return the indices of each dimension that a device holds, in the device's order. The device's part must be one
    box."""
    (box,) = side._boxes_of(device)
    return [dimension.runs(part).indices() for dimension, part in zip(side._dimensions, box, strict=True)]


def _like(layout: ShardedLayout, shape: tuple[int, ...], placements: Sequence[Placement]) -> ShardedLayout:
    """Distribute a tensor of another shape in the same way, with row-major parts."""
    options = {name: value for name, value in layout._made.keywords.items() if name != "local"}
    return distribute(shape, layout.mesh_shape, placements, **options)


def _in_units(placement: Placement, units: tuple[int, int], found: list[Diagnostic]) -> Placement:
    """Convert a placement of elements to a placement of units; a unit has several rows or columns."""
    if isinstance(placement, Replicate):
        return placement
    if isinstance(placement, Partial):
        raise InvalidValueError(
            "Partial is not supported, because the devices hold summands, and a block has only one scale, for the sum"
        )
    unit = units[placement.dim % 2]
    if isinstance(placement, BlockCyclic):
        if placement.block % unit:
            found.append(_off("BlockCyclic", placement.block, unit, placement.dim))
        return BlockCyclic(placement.dim, max(1, placement.block // unit))
    if isinstance(placement, SectionedShard):
        found += [_off("a section", size, unit, placement.dim) for size in placement.sections[:-1] if size % unit]
        return SectionedShard(placement.dim, tuple([-(-size // unit) for size in placement.sections]))
    return placement


_NAMES = ("rows", "columns")


def _off(what: str, size: int, unit: int, dim: int) -> Diagnostic:
    text = f"{what} of {size} {_NAMES[dim % 2]}; a cut must be a multiple of {unit}: nearest {_nearest(size, unit)}"
    return Diagnostic("block_cut", text=text)


def _nearest(size: int, unit: int) -> str:
    low = size // unit * unit
    return f"{low} or {low + unit}" if low else f"{unit}"


def check_block_cuts(layout: ShardedLayout, blocks: ShardedLayout, units: tuple[int, int]) -> list[Diagnostic]:
    """Check that the parts of a tensor begin and end at block boundaries.

    Args:
        layout: the distribution of elements. blocks: the distribution of blocks. units: elements of a block, by
            dimension.
    Returns:
        one diagnostic for each device and dimension with a cut inside a block, with the nearest sizes.
    """
    found = []
    for device in range(layout.devices):
        if not layout._boxes_of(device) or not blocks._boxes_of(device):
            continue
        sides = zip(held_indices(layout, device), held_indices(blocks, device), units, layout.shape, strict=True)
        for dim, (held, whole, unit, size) in enumerate(sides):
            wanted = (whole[:, None] * unit + numpy.arange(unit)).ravel()
            wanted = wanted[wanted < size]
            if numpy.array_equal(held, wanted):
                continue
            count = len(held)
            first, last = (int(held[0]), int(held[-1])) if count else (0, -1)
            text = (
                f"device {device} holds {_NAMES[dim]} {first} to {last}; a cut must be a multiple of {unit} "
                f"{_NAMES[dim]}: nearest {_nearest(count, unit)}, not {count}"
            )
            facts: dict[str, object] = {"shape": layout.shape, "mesh": layout.mesh_shape}
            found.append(Diagnostic("block_cut", text=text, facts=facts))
    return found
