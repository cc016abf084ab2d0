"""Prepare copies on the GPU, of whole arrays or of tiles through given tensor maps.

    prepare_copy(a, b)                    arrays; the planner chooses the kernel and the boxes
    prepare_tiles(map, map, walk, ...)    the tiles of a regular walk, by the folded kernels
    prepare_listed(map, map, coords, ..)  any tiles; the device reads a list of their coordinates, unless they form a
                                          regular walk with one instruction per tile

Preparation validates the arguments, and compiles and loads the kernels. `launch` makes one driver call for each kernel
and never synchronises. `check` waits for the stream, and raises an error if a kernel reported a barrier that did not
complete.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from typing import cast as cast_type

from cute_py.argument_checks import expect
from cute_py.copies.boxes import CROSSOVER, Tuning, hint_arguments
from cute_py.copies.modes import NIBBLES
from cute_py.copies.operands import Operand, OperandSide, paired, side
from cute_py.copies.plan import CopyPlan, box_launches, plan_pairing, thread_launches
from cute_py.copies.prepared_copy import Kept, PreparedCopy, Work, addresses, box_work, thread_work
from cute_py.copies.scaled.host import computes, refuse_layout_options
from cute_py.dtypes import DTypeLike
from cute_py.errors import DeviceError, InvalidValueError, counted
from cute_py.formats.scaled_tensor import ScaledTensor
from cute_py.gpu.arrays import require_place
from cute_py.gpu.device import Device, DeviceBuffer, as_device, common_device
from cute_py.gpu.kernels.copy import BARRIER_BYTES, copy_once, stage_bytes
from cute_py.gpu.kernels.listed import copy_listed
from cute_py.gpu.kernels.ring import copy_ring
from cute_py.gpu.kernels.source import KernelSource
from cute_py.gpu.kernels.walk import TileWalk
from cute_py.gpu.launch import Parameters, ParameterValue, PreparedLaunch, WaitRecord, load_kernel
from cute_py.tensor.array_views import StreamLike, stream_handle
from cute_py.tma.emulator.memory import IntegersLike

if TYPE_CHECKING:
    import numpy as np
else:
    from cute_py.optional_packages import numpy as np


def prepare_copy(
    source: Operand | ScaledTensor,
    destination: Operand | ScaledTensor | tuple[ScaledTensor, ...],
    *,
    hints: bool = False,
    tuning: Tuning | None = None,
    device: Device | None = None,
    dtype: DTypeLike | None = None,
    nibbles: tuple[str, str] = NIBBLES,
    rows: Any = None,
    into_rows: Any = None,
    pages: Any = None,
    fill: float | None = None,
    cast: bool = False,
    unique: bool = False,
) -> PreparedCopy:
    """Prepare the copy between two layouts of equal size in device memory, of any order and strides.

    With a `ScaledTensor` on either side, `cast`, or an index of rows, the result is a `PreparedScaledCopy`, which has
    one launch. To write several outputs of one source, pass a tuple of ScaledTensors.

    Args:
        source, destination: an array that `array_view` accepts, a `Tensor` over memory, or a pair (memory, layout).
            Elements correspond by coordinate, or in colexicographic order if the shapes differ.
        hints: use L2 policies that keep read data longer than written data. Large copies with tensor maps are then
            faster, but later kernels find less of their data in L2.
        tuning: the form and tiles of kernels with tensor maps. Default: the values measured to be fastest for the size,
            or kernels without tensor maps.
        dtype, nibbles, rows, into_rows, pages, fill, cast: as in `copy`. The kernel checks an index on the device:
            `check` raises an error that names the first entry that is not a row. If into_rows names a row twice, that
            row receives either of the two source rows. unique: check during preparation that into_rows names each row
            once.
    Raises:
        DeviceError: there is no device, an array is not on it, or the arrays are on two devices.
        InvalidValueError: sizes or dtypes differ, the arrays overlap, the destination is read-only, or a layout exceeds
            its memory. TmaLimitError: tensor maps do not support the tiling that `tuning` requests.
    """
    options = {"rows": rows, "into_rows": into_rows, "pages": pages, "fill": fill, "cast": cast}
    if computes(source, destination, options):
        from cute_py.copies.scaled.prepared import prepare_scaled

        refuse_layout_options(expect(hints, bool, "hints") or None, tuning, dtype)
        return prepare_scaled(source, destination, device, unique=unique, **options)
    pair = cast_type("tuple[Operand, Operand]", (source, destination))
    sides = side(pair[0], "source", dtype), side(pair[1], "destination", dtype)
    return prepare_sides(*sides, hints, tuning, device, nibbles)


def prepare_sides(
    a: OperandSide,
    b: OperandSide,
    hints: bool = False,
    tuning: Tuning | None = None,
    device: Device | None = None,
    nibbles: tuple[str, str] = NIBBLES,
) -> PreparedCopy:
    """Prepare a copy, as `prepare_copy` does, between two `OperandSide` objects."""
    device = as_device(device, common_device({"source": a.view.device, "destination": b.view.device}))
    require_place({"source": a.view, "destination": b.view}, device.ordinal)
    expect(hints, bool, "hints")
    if tuning is not None:
        expect(tuning, Tuning, "tuning")
    return prepare_between(a, b, device, tuning, hints=hints, nibbles=nibbles, overlaps=True)


def prepare_between(
    a: OperandSide,
    b: OperandSide,
    device: Device,
    tuning: Tuning | None = None,
    multiprocessors: int = 0,
    hints: bool = False,
    nibbles: tuple[str, str] = NIBBLES,
    overlaps: bool = False,
    plan: CopyPlan | None = None,
) -> PreparedCopy:
    """Plan, compile and load a copy on a device that reaches both sides.

    Args:
        tuning: the tiling of kernels with tensor maps. If it is given and the copy is affine, these kernels are used.
        multiprocessors: the number of multiprocessors that the kernels may use; 0 for all. hints, nibbles: as in
            `prepare_copy`. overlaps: as in `PreparedCopy`. plan: a plan of this copy, instead of the usual one.
    """
    plan = plan or plan_pairing(paired(a, b, nibbles), (a.alignment, b.alignment))
    kept: Kept = (a.view, b.view)
    refinement = plan.refinement
    if refinement is None:
        return PreparedCopy(device, [], 0, keep=kept, plan=plan)
    if plan.kernel == "boxes" or (tuning is not None and plan.form == "affine"):
        element = plan.bits // 8
        places = [one.view.address + start * element for one, start in zip((a, b), refinement.starts, strict=True)]
        boxes = box_launches(
            refinement,
            element,
            (places[0], places[1]),
            multiprocessors or device.multiprocessors,
            tuning or Tuning(hints=hints),
        )
        work = [box_work(load_kernel(one.kernel, device), one, device.arch) for one in boxes]
        return PreparedCopy(device, work, plan.bytes, boxes, kept, plan, addresses(a, b), overlaps)
    threads = []
    for launch in thread_launches(plan):
        tables = DeviceBuffer(device, len(launch.tables))
        tables.write(launch.tables)
        kept = (*kept, tables)
        threads.append(thread_work(load_kernel(launch.kernel, device), launch, tables.address, a, b))
    return PreparedCopy(device, threads, plan.bytes, (), kept, plan, addresses(a, b), overlaps)


def prepare_tiles(
    load_map: bytes,
    store_map: bytes,
    walk: TileWalk,
    tile_bytes: int,
    *,
    window_bytes: int | None = None,
    form: str | None = None,
    hints: bool = False,
    reduction: str | None = None,
    device: Device | None = None,
    keep: Kept = (),
) -> PreparedCopy:
    """Prepare the copy of a whole tensor through the tiles of two given maps with the same box and swizzle.

    Args:
        load_map, store_map: 128 bytes each; both use the same coordinates.
        walk: the tiles, in elements of the maps.
        tile_bytes: bytes that the barrier counts for a tile. window_bytes: shared memory that a tile covers.
        form: "once" or "ring"; the default depends on the size. reduction: combine with the destination instead of
            storing (only in the one-shot form).
    Raises:
        InvalidValueError: a map does not have 128 bytes, or a reduction uses the ring form.
        DeviceError: there is no device, or the tile does not fit in shared memory.
    """
    device = as_device(device)
    size = walk.tiles * tile_bytes
    form = form or ("ring" if size >= CROSSOVER and not reduction else "once")
    kernel: KernelSource
    if form == "ring":
        if reduction:
            raise InvalidValueError(f'reduction {reduction!r} does not work in a ring; reductions need form="once"')
        stages = min(4, (device.shared_bytes - BARRIER_BYTES) // stage_bytes(window_bytes or tile_bytes))
        if stages < 2:
            raise DeviceError(
                f"the tile has {window_bytes or tile_bytes} bytes; two tiles must fit in {device.shared_bytes} bytes"
            )
        blocks = min(device.multiprocessors, walk.tiles)
        kernel = copy_ring(
            walk, tile_bytes, blocks=blocks, window_bytes=window_bytes, stages=stages, **hint_arguments(hints)
        )
    else:
        blocks = walk.tiles
        kernel = copy_once(walk, tile_bytes, window_bytes=window_bytes, **hint_arguments(hints), reduction=reduction)
    work = Work(load_kernel(kernel, device), (load_map, store_map), blocks)
    return PreparedCopy(device, [work], size, keep=keep)


def packed(coords: IntegersLike, rank: int) -> bytes:
    """Pack coordinates (n, rank) into 32-bit words.

    Raises:
        InvalidValueError: a coordinate does not fit into 32 bits, or the rows are not of this rank.
    """
    table = np.asarray(coords)
    if table.ndim != 2 or table.shape[1] != rank:
        raise InvalidValueError(f"the coordinates have the shape {table.shape}; must be (n, {rank})")
    if table.size and (int(table.min()) < -(2**31) or int(table.max()) >= 2**31):
        raise InvalidValueError("a coordinate does not fit into 32 bits")
    return table.astype("<i4").tobytes()


def regular_walk(coords: IntegersLike, rank: int) -> TileWalk | None:
    """Find the regular walk from the origin that visits these tile coordinates in this order; None if there is none.

    >>> regular_walk([(0, 0), (8, 0), (0, 4), (8, 4), (0, 8), (8, 8)], 2)
    TileWalk(counts=(2, 3), steps=(8, 4), order=(0, 1))
    """
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
    number = np.arange(total)
    for mode in walk.order:
        number, index = np.divmod(number, counts[mode])
        if not np.array_equal(index * steps[mode], table[:, mode]):
            return None
    return walk


def _listed(coords: IntegersLike, rank: int, per_tile: int) -> tuple[bytes, int]:
    """Return the packed coordinates and the number of tiles."""
    content = packed(coords, rank)
    tiles, rest = divmod(len(content) // (4 * rank), per_tile)
    if rest or not tiles:
        raise InvalidValueError(
            f"got {counted(len(content) // (4 * rank), 'coordinate')}; must be a multiple of {per_tile}, the "
            "number per tile"
        )
    return content, tiles


def prepare_listed(
    load_map: bytes,
    store_map: bytes,
    coords: IntegersLike,
    rank: int,
    places: Sequence[int],
    box_bytes: int,
    window_bytes: int,
    *,
    hints: bool = False,
    reduction: str | None = None,
    device: Device | None = None,
    keep: Kept = (),
) -> PreparedCopy:
    """Prepare the copy of tiles at listed coordinates. Instruction i of a tile loads to offset `places[i]` of the
    window, and its store reads from there.

    Args:
        load_map, store_map: 128 bytes each, with the same box and swizzle.
        coords: array (tiles x len(places), rank) of coordinates, innermost mode first, for both maps. They are not
            checked: an unaligned or negative inner coordinate traps.
        places: byte offsets in a tile's window. box_bytes: bytes of one instruction. window_bytes: bytes of a window.
    Raises:
        InvalidValueError: the coordinates, offsets and sizes are inconsistent.
        DeviceError: there is no device, or the window does not fit in shared memory.
    """
    device = as_device(device)
    content, tiles = _listed(coords, rank, len(places))
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
    source = copy_listed(rank, tuple(places), box_bytes, window_bytes, reduction=reduction, **hint_arguments(hints))
    listed = DeviceBuffer(device, len(content))
    listed.write(content)
    others: dict[str, ParameterValue] = {"coordinates": listed.address, "windows": 0, "poison": ctypes.c_uint32(0)}
    work = Work(load_kernel(source, device), (load_map, store_map), tiles, others=others)
    return PreparedCopy(device, [work], tiles * len(places) * box_bytes, keep=(*keep, listed))


def load_windows(
    load_map: bytes,
    coords: IntegersLike,
    rank: int,
    places: Sequence[int],
    box_bytes: int,
    window_bytes: int,
    *,
    poison: int = 0,
    device: Device | None = None,
    stream: StreamLike = None,
) -> list[bytes]:
    """Load tiles, wait for the loads, and return the contents of their shared-memory windows.

    The byte `poison` fills the windows before the loads. For the arguments and errors, see `prepare_listed`. A
    DeviceError may also mean that a barrier did not complete.
    """
    device = as_device(device)
    content, tiles = _listed(coords, rank, len(places))
    kernel = load_kernel(copy_listed(rank, tuple(places), box_bytes, window_bytes, dump=True), device)
    pitch, handle, record = stage_bytes(window_bytes), stream_handle(stream), WaitRecord(device)
    with DeviceBuffer(device, len(content)) as listed, DeviceBuffer(device, pitch * tiles) as windows:
        listed.write(content)
        fill = ctypes.c_uint32(poison * 0x01010101)
        values = (load_map, load_map, listed.address, windows.address, fill, record.address)
        PreparedLaunch(kernel, tiles, Parameters(values), handle).launch()
        record.check(kernel.source.name, handle, [(load_map, kernel.source.loads)])
        shown = bytes(windows.read(stream=handle))
    return [shown[i * pitch : i * pitch + window_bytes] for i in range(tiles)]
