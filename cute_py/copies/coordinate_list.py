"""Tiles of any partition on the GPU: coordinates are given one by one, with the maps as bytes.

Where the coordinates are those of a regular walk and a tile is one instruction, the copy goes to the folded kernels;
else the coordinates travel to the device in a list.
"""

from __future__ import annotations

import array
import ctypes
from collections.abc import Sequence
from typing import Any

from cute_py.copies.plan import HINTS
from cute_py.copies.prepared import PreparedCopy, Work, prepare_tiles
from cute_py.errors import InvalidValueError
from cute_py.gpu.arrays import stream_handle
from cute_py.gpu.device import Device, DeviceBuffer, as_device
from cute_py.gpu.kernels.copy import stage_bytes
from cute_py.gpu.kernels.listed import copy_listed
from cute_py.gpu.kernels.walk import TileWalk
from cute_py.gpu.launch import Parameters, PreparedLaunch, WaitRecord, load_kernel

Coordinates = Sequence[Sequence[int]]


def packed(coords: Any, rank: int) -> bytes:
    """Coordinates, (n, rank), as 32-bit words. A numpy array is converted at once.

    Raises:
        InvalidValueError: a coordinate does not fit in 32 bits, or a row is not of this rank.
    """
    if hasattr(coords, "astype"):
        if coords.ndim != 2 or coords.shape[1] != rank:
            raise InvalidValueError(f"coordinates of shape {coords.shape}; must be (n, {rank})")
        if coords.size and (int(coords.min()) < -(2**31) or int(coords.max()) >= 2**31):
            raise InvalidValueError("a coordinate does not fit in 32 bits")
        content: bytes = coords.astype("<i4").tobytes()
        return content
    if any(len(row) != rank for row in coords):
        raise InvalidValueError(f"coordinates must have {rank} modes")
    try:
        return array.array("i", [int(c) for row in coords for c in row]).tobytes()
    except OverflowError:
        raise InvalidValueError("a coordinate does not fit in 32 bits") from None


def regular_walk(coords: Any, rank: int) -> TileWalk | None:
    """The walk whose tiles these coordinates are, in this order and starting at the origin, or None.

    >>> regular_walk([(0, 0), (8, 0), (0, 4), (8, 4), (0, 8), (8, 8)], 2)
    TileWalk(counts=(2, 3), steps=(8, 4), order=(0, 1))
    """
    import numpy as np

    table = np.asarray(coords, np.int64)
    counts, steps, before = [1] * rank, [1] * rank, 1
    order: list[int] = []
    total = len(table)
    if not total or table[0].any():
        return None
    while before < total:
        moved = np.flatnonzero(table[before])
        if len(moved) != 1 or moved[0] in order:
            return None
        mode = int(moved[0])
        step = int(table[before, mode])
        column = table[::before, mode]
        ends = np.flatnonzero(column == 0)
        count = int(ends[1]) if len(ends) > 1 else len(column)
        if step <= 0 or total % (before * count):
            return None
        counts[mode], steps[mode] = count, step
        order.append(mode)
        before *= count
    walk = TileWalk(tuple(counts), tuple(steps), (*order, *(m for m in range(rank) if m not in order)))
    number, wanted = np.arange(total), np.zeros_like(table)
    for mode in walk.order:
        wanted[:, mode] = number % counts[mode] * steps[mode]
        number = number // counts[mode]
    return walk if np.array_equal(wanted, table) else None


class _Listed(PreparedCopy):
    """A prepared copy whose kernel also takes a list of coordinates."""

    def __init__(self, device: Device, work: Work, size: int, coordinates: DeviceBuffer, keep: object) -> None:
        self._coordinates = coordinates
        super().__init__(device, [work], size, keep=(keep, coordinates))

    def _prepare(self, handle: int) -> tuple[PreparedLaunch, ...]:
        (work,) = self._work
        (record,) = self._records
        values = (work.maps[0], work.maps[1], self._coordinates.address, 0, ctypes.c_uint32(0), record.address)
        launch = PreparedLaunch(work.kernel, work.blocks, Parameters(values), handle)
        self._launches[handle] = (launch,)
        return self._launches[handle]


def prepare_listed(
    load_map: bytes,
    store_map: bytes,
    coords: Any,
    rank: int,
    places: Sequence[int],
    box_bytes: int,
    window_bytes: int,
    *,
    hints: bool = False,
    reduction: str | None = None,
    device: Device | None = None,
    keep: object = None,
) -> PreparedCopy:
    """Prepare the copy of tiles: instruction i of a tile loads to `places[i]`, and is stored from there.

    Args:
        load_map, store_map: 128 bytes each, with the same box and swizzle.
        coords: (tiles x len(places), rank), innermost mode first; the same in both maps. Unchecked: an unaligned inner
            coordinate or a negative one traps.
        places: byte offsets in a tile's window. box_bytes: bytes of one instruction. window_bytes: of a window.
    Raises:
        InvalidValueError: coordinates, places or sizes that do not fit together.
        DeviceError: no device, or the window does not fit into shared memory.
    """
    device = as_device(device)
    content = packed(coords, rank)
    tiles, rest = divmod(len(content) // (4 * rank), len(places))
    if rest or not tiles:
        raise InvalidValueError(f"{len(content) // (4 * rank)} coordinates; must be a multiple of {len(places)} a tile")
    if len(places) == 1 and not places[0]:
        walk = regular_walk(coords, rank)
        if walk is not None:
            return prepare_tiles(
                load_map,
                store_map,
                walk,
                box_bytes,
                window_bytes=window_bytes,
                hints=hints,
                reduction=reduction,
                device=device,
                keep=keep,
            )
    load, store = HINTS if hints else (None, None)
    source = copy_listed(
        rank, tuple(places), box_bytes, window_bytes, reduction=reduction, load_hint=load, store_hint=store
    )
    listed = DeviceBuffer(device, len(content))
    listed.write(content)
    work = Work(load_kernel(source, device), (load_map, store_map), tiles)
    return _Listed(device, work, tiles * len(places) * box_bytes, listed, keep)


def load_windows(
    load_map: bytes,
    coords: Any,
    rank: int,
    places: Sequence[int],
    box_bytes: int,
    window_bytes: int,
    *,
    poison: int = 0,
    device: Device | None = None,
    stream: Any = None,
) -> list[bytes]:
    """The shared-memory windows of tiles after their loads, filled with the byte `poison` before. Waits for them.

    Arguments and errors as `prepare_listed`; DeviceError also if a barrier did not complete.
    """
    device = as_device(device)
    content = packed(coords, rank)
    tiles, rest = divmod(len(content) // (4 * rank), len(places))
    if rest or not tiles:
        raise InvalidValueError(f"{len(content) // (4 * rank)} coordinates; must be a multiple of {len(places)} a tile")
    kernel = load_kernel(copy_listed(rank, tuple(places), box_bytes, window_bytes, dump=True), device)
    pitch, handle, record = stage_bytes(window_bytes), stream_handle(stream), WaitRecord(device)
    with DeviceBuffer(device, len(content)) as listed, DeviceBuffer(device, pitch * tiles) as windows:
        listed.write(content)
        fill = ctypes.c_uint32(poison * 0x01010101)
        values = (load_map, load_map, listed.address, windows.address, fill, record.address)
        PreparedLaunch(kernel, tiles, Parameters(values), handle).launch()
        record.check(kernel.source.name, handle, load_map, kernel.source.loads)
        shown = bytes(windows.read(stream=handle))
    return [shown[i * pitch : i * pitch + window_bytes] for i in range(tiles)]
