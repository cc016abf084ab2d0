"""One copy of a redistribution: an offset on each side, and the modes that both sides have in common."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from cute_py.argument_checks import expect, expect_integer, expect_integers, expect_items
from cute_py.copies.modes import CopyMode, merged
from cute_py.dtypes import DType
from cute_py.layout import ComposedLayout, Layout
from cute_py.mesh.index_intervals import Segment
from cute_py.mesh.sharded_layout import ShardedLayout, at_offset

MOST = 2**63 - 1
"""The largest magnitude of a number in a transfer, because addresses have 64 bits."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """One copy from the memory of one device to the memory of another, or within one device.

    Args:
        source_device, destination_device: numbers of devices.
        elements: the number of elements.
        source, destination: offsets of the first element, before a swizzle.
        modes: the size of each mode and its strides on both sides, in elements; the modes with the longest runs come
            first.
        source_swizzle, destination_swizzle: the swizzled layout of a device's part, or None.
        adds: whether to add the elements to the values at the destination, instead of overwriting them.

    >>> from cute_py.mesh import Shard, distribute, redistribute
    >>> rows, columns = (distribute((8, 8), 2, [Shard(dim)]) for dim in (0, 1))
    >>> one = next(iter(redistribute(rows, columns, "float32").transfers(0)))
    >>> one.source_device, one.destination_device, one.elements
    (0, 0, 16)
    """

    source_device: int
    destination_device: int
    elements: int
    source: int
    destination: int
    modes: tuple[CopyMode, ...]
    source_swizzle: ComposedLayout | None = None
    destination_swizzle: ComposedLayout | None = None
    adds: bool = False

    def __post_init__(self) -> None:
        for name in ("source_device", "destination_device", "elements", "source", "destination"):
            number = getattr(self, name)
            if type(number) is not int or not -MOST <= number <= MOST:  # a plan makes many transfers with plain numbers
                object.__setattr__(self, name, int(expect_integer(number, name, -MOST, MOST)))
        if type(self.modes) is not tuple or any(type(mode) is not CopyMode for mode in self.modes):
            modes = [expect_integers(mode, "a mode", count=3) for mode in expect_items(self.modes, "modes")]
            object.__setattr__(self, "modes", tuple([CopyMode(*mode) for mode in modes]))
        expect(self.adds, bool, "adds")
        for swizzle in (self.source_swizzle, self.destination_swizzle):
            if swizzle is not None:
                expect(swizzle, ComposedLayout, "a swizzled layout")

    @property
    def source_layout(self) -> Layout | ComposedLayout:
        """The layout of offsets in the memory of the source, in elements."""
        return _placed([(mode.size, mode.source) for mode in self.modes], self.source, self.source_swizzle)

    @property
    def destination_layout(self) -> Layout | ComposedLayout:
        """The layout of offsets in the memory of the destination, in elements; a coordinate refers to the same element
        as in `source_layout`."""
        return _placed([(m.size, m.destination) for m in self.modes], self.destination, self.destination_swizzle)

    def pieces(self, small: Callable[[Transfer], bool]) -> Iterator[Transfer]:
        """Split the transfer into parts that `small` accepts, by repeatedly halving its last mode."""
        if self.elements <= 1 or small(self):
            yield self
            return
        *before, last = self.modes
        half = last.size // 2
        for start, size in ((0, half), (half, last.size - half)):
            modes = (*before, dataclasses.replace(last, size=size)) if size > 1 else tuple(before)
            yield from dataclasses.replace(
                self,
                elements=self.elements // last.size * size,
                source=self.source + start * last.source,
                destination=self.destination + start * last.destination,
                modes=modes,
            ).pieces(small)

    def __str__(self) -> str:
        arrow = "+>" if self.adds else "->"
        return (
            f"{self.source_device} {arrow} {self.destination_device}: {self.elements} elements,"
            f" {self.source_layout} to {self.destination_layout}"
        )


def _placed(modes: list[tuple[int, int]], base: int, swizzled: ComposedLayout | None) -> Layout | ComposedLayout:
    plain = Layout(*(tuple([mode[i] for mode in modes]) for i in (0, 1))) if modes else Layout(1, 0)
    if swizzled is not None:
        return ComposedLayout(swizzled.layout_a, swizzled.offset + base, plain)
    return at_offset(plain, base)


def transfer_of(
    source: int,
    destination: int,
    chosen: tuple[Segment, ...],
    ends: tuple[ComposedLayout | None, ComposedLayout | None],
    adds: bool,
) -> Transfer:
    """Make the transfer for one segment of each dimension; `ends` contains the swizzled layout of each side, or
    None."""
    modes = merged([mode for segment in chosen for mode in segment.modes])
    return Transfer(
        source,
        destination,
        math.prod(mode.size for mode in modes),
        sum(segment.source for segment in chosen),
        sum(segment.destination for segment in chosen),
        modes,
        *ends,
        adds,
    )


class Plan(Protocol):
    """The interface of a redistribution that its backends use."""

    source: ShardedLayout
    destination: ShardedLayout
    dtype: DType

    def groups(self, device: int | None = None, source: int | None = None) -> Iterator[list[Transfer]]:
        """Iterate over the copies to a device, or to all devices, in groups.

        The copies of summands that are added form a group, in the order of devices. With `source`, it yields only the
        groups that include this device.
        """
        ...

    def digest(self) -> str:
        """A string that identifies the redistribution, the same in every process."""
        ...
