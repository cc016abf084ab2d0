"""Grouped copies: many pairs of tensors in one launch, their maps rebound on the device by tensormap.replace.

All tensors of a group copy have one element type, rank and box; sizes, strides and addresses are their own.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

from benchmarks.kernels.rebind import GROUP, SLOT_BYTES, copy_groups
from cute_py.errors import InvalidValueError, TmaLimitError
from cute_py.gpu.arrays import array_view, require_pair
from cute_py.gpu.device import Device, DeviceBuffer, as_device, common_device
from cute_py.gpu.launch import Parameters, PreparedLaunch, WaitRecord, load_kernel
from cute_py.tensor.array_views import ArrayView, stream_handle
from cute_py.tma.descriptor.data_types import UNSIGNED, L2Promotion
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.fields import MAX_RANK
from cute_py.tma.descriptor.request import TensorMapTiled


def group_row(source: ArrayView, destination: ArrayView) -> tuple[int, ...]:
    """The numbers of one group record: addresses, byte strides, sizes (innermost mode first).

    Raises:
        TmaLimitError: the innermost mode is not contiguous, an address or stride is no multiple of 16 bytes, or the
            destination's rows are not (a store would write over what lies behind them).
    """
    width = source.element_bytes
    problems = []
    for role, view in (("source", source), ("destination", destination)):
        if view.address % 16:
            problems.append(f"{role} address {view.address:#x}; must be a multiple of 16")
        if view.shape[-1] > 1 and view.strides[-1] != 1:
            problems.append(f"{role} innermost stride = {view.strides[-1]} elements; must be 1")
        problems += [
            f"{role} stride = {stride * width} bytes; must be a multiple of 16 and not negative"
            for size, stride in zip(view.shape[:-1], view.strides[:-1], strict=True)
            if size > 1 and (stride < 0 or stride * width % 16)
        ]
    if destination.shape[-1] * width % 16:
        problems.append(f"destination row = {destination.shape[-1] * width} bytes; must be a multiple of 16")
    if problems:
        raise TmaLimitError(problems[0], {f"and {i}": p for i, p in enumerate(problems[1:], 1)}, violations=problems)

    def strides(view: ArrayView) -> list[int]:
        found = [
            stride * width if size > 1 else 16
            for size, stride in zip(reversed(view.shape[:-1]), reversed(view.strides[:-1]), strict=True)
        ]
        return (found + [0] * 4)[:4]

    sizes = (*reversed(source.shape), 1, 1, 1, 1, 1)[:5]
    return (source.address, destination.address, *strides(source), *strides(destination), *sizes, 0)


class PreparedGroups:
    """One launch that copies all pairs; it may be launched again, on one stream at a time."""

    def __init__(
        self, device: Device, pairs: Sequence[tuple[ArrayView, ArrayView]], box: tuple[int, ...], split: int
    ) -> None:
        width, rank = pairs[0][0].element_bytes, len(box)
        rows = [group_row(a, b) for a, b in pairs]
        self.device = device
        self.bytes = sum(a.count * width for a, _ in pairs)
        self._groups = DeviceBuffer(device, GROUP.size * len(rows))
        self._groups.write(b"".join(GROUP.pack(*row) for row in rows))
        tile_bytes = width * math.prod(box)
        self.kernel = load_kernel(copy_groups(box, tile_bytes, split=split), device)
        room = device.multiprocessors * max(self.kernel.blocks_per_multiprocessor(), 1) // split * split
        blocks = max(min(len(rows) * split, room), split)
        self._slots = DeviceBuffer(device, SLOT_BYTES * blocks)
        sizes, steps, promotion = (256,) * rank, (4096,) * (rank - 1), L2Promotion.B128
        first = TensorMapTiled(UNSIGNED[width], pairs[0][0].address, sizes, steps, box, l2_promotion=promotion)
        template = encode(first, arch=device.arch)
        self._record = WaitRecord(device)
        count = ctypes.c_uint32(len(rows))
        self._values = template, template, self._groups.address, count, self._slots.address, self._record.address
        self._blocks = blocks
        self._launches: dict[int, PreparedLaunch] = {}
        self._keep = [(a.owner, b.owner) for a, b in pairs]

    def launch(self, stream: Any = None) -> None:
        """Enqueue the copies. Raises DeviceError if the driver refuses the launch."""
        handle = stream_handle(stream)
        if handle not in self._launches:
            self._launches[handle] = PreparedLaunch(self.kernel, self._blocks, Parameters(self._values), handle)
        self._launches[handle].launch()

    def check(self, stream: Any = None) -> None:
        """Wait for the stream, and raise DeviceError if a barrier did not complete or the kernel trapped."""
        self._record.check(self.kernel.source.name, stream_handle(stream), [(self._values[0], 1)])


def prepare_groups(
    pairs: Sequence[tuple[Any, Any]],
    *,
    box: tuple[int, ...] | None = None,
    split: int = 1,
    device: Device | None = None,
) -> PreparedGroups:
    """Prepare one launch that copies every (source, destination) of `pairs`.

    Args:
        pairs: device arrays of one dtype and rank, 1 to 5; each pair of one shape.
        box: of the tiles, in elements, innermost mode first; by default 256 bytes x 32 rows.
        split: blocks that share one pair.
    Raises:
        DeviceError, InvalidValueError: as `prepare_copy`; dtypes or ranks that differ.
        TmaLimitError: a tensor that no tensor map describes.
    """
    views = [(array_view(a), array_view(b)) for a, b in pairs]
    if not views:
        raise InvalidValueError("no pairs to copy; at least one is needed")
    ordinals = {f"source of pair {number}": a.device for number, (a, _) in enumerate(views)}
    ordinals |= {f"destination of pair {number}": b.device for number, (_, b) in enumerate(views)}
    device = as_device(device, common_device(ordinals))
    width, rank = views[0][0].element_bytes, len(views[0][0].shape)
    if width not in UNSIGNED or not 1 <= rank <= MAX_RANK:
        raise InvalidValueError(
            f"rank {rank}, {width} bytes an element; ranks 1 to 5 and 1, 2, 4 or 8 bytes are possible"
        )
    for number, (a, b) in enumerate(views):
        require_pair(a, b, device.ordinal)
        if a.element_bytes != width or len(a.shape) != rank or 0 in a.shape:
            raise InvalidValueError(
                f"pair {number} has shape {a.shape} and dtype {a.dtype}; all must have one rank and dtype"
            )
    box = box or (256 // width, 32, 1, 1, 1)[:rank]
    if len(box) != rank:
        raise InvalidValueError(f"box {box}; must have {rank} modes")
    return PreparedGroups(device, views, tuple(box), split)
