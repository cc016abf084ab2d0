"""Moving rows: global memory to an array of rows and back, an array of rows to shared memory and back.

No element is visited one by one. Rows move as items of their own length (a numpy void type of that many bytes), units
of shared memory as items of 16 bytes or less. Boxes that lie inside the tensor move as strided blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cute_py.errors import InvalidTypeError, TmaTrap
from cute_py.tma.emulator.formats import fill_rows, round_to_tf32

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cute_py.tma.emulator.box import Rows
    from cute_py.tma.emulator.geometry import Geometry
    from cute_py.tma.emulator.image import Image
    from cute_py.tma.emulator.memory import GlobalMemory, Range

ILLEGAL_ADDRESS = "CUDA_ERROR_ILLEGAL_ADDRESS"


def _items(array: NDArray[np.uint8], size: int) -> NDArray[Any]:
    """Every `size` bytes of `array` that start at any byte, as one item each; a view."""
    count = max(len(array) - size + 1, 0)
    return np.ndarray((count,), np.dtype(f"V{size}"), array, 0, (1,))


def _spread(memory: GlobalMemory, address: NDArray[np.int64]) -> list[tuple[int, Any]]:
    """(range index, which addresses) for the ranges that hold the addresses; one entry and a slice if one does."""
    if not len(address):
        return []
    if len(memory.ranges) == 1 and int(address.min()) >= memory.ranges[0].address:
        return [(0, slice(None))]
    index = memory.index_of(address)
    if (index == index[0]).all():
        return [(int(index[0]), slice(None))]
    return [(int(which), np.flatnonzero(index == which)) for which in np.unique(index)]


def require_rows(memory: GlobalMemory, address: NDArray[np.int64], size: int) -> None:
    """Every byte of the rows at `address` lies in some range.

    Raises:
        TmaTrap: CUDA_ERROR_ILLEGAL_ADDRESS, naming the first byte outside.
    """
    if not size or not len(address):
        return
    for which, chosen in _spread(memory, address):
        part = address[chosen]
        end = memory.ranges[which].end if which >= 0 else 0
        bad = np.flatnonzero(part > end - size) if which >= 0 else np.zeros(1, np.int64)
        if len(bad):
            start = int(part[bad[0]])
            first = start if which < 0 else max(start, end)
            raise TmaTrap(
                ILLEGAL_ADDRESS,
                "the box reads or writes bytes of the tensor that no memory range holds",
                {"address": f"0x{first % 2**64:x}", "ranges": _range_list(memory)},
            )


def _range_list(memory: GlobalMemory) -> str:
    return "; ".join(f"{r.name} 0x{r.address:x} to 0x{r.end:x}" for r in memory.ranges)


def read_rows(memory: GlobalMemory, address: NDArray[np.int64], size: int) -> NDArray[np.uint8]:
    """(m, size) bytes at (m,) addresses that are known to be held by the ranges."""
    parts = _spread(memory, address)
    if len(parts) == 1 and isinstance(parts[0][1], slice):
        entry = memory.ranges[parts[0][0]]
        return _items(entry.array, size)[address - entry.address].view(np.uint8).reshape(-1, size)
    out = np.empty((len(address), size), np.uint8)
    for which, chosen in parts:
        entry = memory.ranges[which]
        taken = _items(entry.array, size)[address[chosen] - entry.address]
        out[chosen] = taken.view(np.uint8).reshape(-1, size)
    return out


def write_rows(memory: GlobalMemory, address: NDArray[np.int64], rows: NDArray[np.uint8]) -> None:
    """Write (m, size) bytes at (m,) addresses, in order.

    What reaches past the end of a range is dropped: a row that a store rounds up to 16 bytes may end in memory that
    is not modelled.
    """
    size = rows.shape[1]
    for which, chosen in _spread(memory, address):
        entry = memory.ranges[which]
        start = address[chosen] - entry.address
        part = np.ascontiguousarray(rows[chosen])
        fits = start + size <= len(entry.array)
        if fits.all():
            _items(entry.array, size)[start] = part.view(f"V{size}").reshape(-1)
            continue
        _items(entry.array, size)[start[fits]] = part[fits].view(f"V{size}").reshape(-1)
        for left in np.unique(len(entry.array) - start[~fits]):  # at most one length for each distance to the end
            here = ~fits & (start == len(entry.array) - left)
            _items(entry.array, int(left))[start[here]] = np.ascontiguousarray(part[here][:, :left]).view(f"V{left}")[
                :, 0
            ]


def read_rows_padded(memory: GlobalMemory, address: NDArray[np.int64], size: int) -> NDArray[np.uint8]:
    """As `read_rows`, but a row may reach past the end of its range; bytes there read as 0."""
    out = np.zeros((len(address), size), np.uint8)
    for which, chosen in _spread(memory, address):
        entry = memory.ranges[which]
        length = np.minimum(entry.end - address[chosen], size)
        for held in np.unique(length):
            same = np.arange(len(address))[chosen][length == held]
            start = address[same] - entry.address
            out[same, :held] = _items(entry.array, int(held))[start].view(np.uint8).reshape(-1, int(held))
    return out


def groups(first: NDArray[np.int64], last: NDArray[np.int64]) -> list[tuple[int, int, NDArray[np.bool_]]]:
    """(first, last, which instructions) for each range of row bytes that has any byte."""
    found = []
    for low, high in sorted(set(zip(first.tolist(), last.tolist(), strict=True))):
        if high > low:
            found.append((low, high, (first == low) & (last == high)))
    return found


def require_writable(entry: Range, writing: bool) -> None:
    """A range that is written must be writable.

    Raises:
        InvalidTypeError: its array is read-only.
    """
    if writing and not entry.array.flags.writeable:
        raise InvalidTypeError(f"range {entry.name!r} must be a writable array")


def require_inside(memory: GlobalMemory, rows: Rows, *, writing: bool) -> None:
    """The parts of the rows that are inside the tensor are held by memory ranges, writable ones if they are written."""
    for low, high, which in groups(rows.first, rows.last):
        address = rows.address[which][rows.inside[which]]
        require_rows(memory, address + low, high - low)
        if writing:
            for index, _ in _spread(memory, address):
                require_writable(memory.ranges[index], writing)


def load_rows(memory: GlobalMemory, geometry: Geometry, rows: Rows) -> NDArray[np.uint8]:
    """(n * R, row_bytes): what a load delivers, filled and rounded."""
    size = geometry.row_bytes
    parts = groups(rows.first, rows.last)
    if len(parts) == 1 and parts[0][:2] == (0, size) and rows.whole and len(rows.first) == parts[0][2].sum():
        out = read_rows(memory, rows.address.reshape(-1), size)
        if geometry.tf32:
            round_to_tf32(out)
        return out
    out = np.empty((rows.address.size, size), np.uint8)
    fill_rows(out, geometry.nan_fill)
    for low, high, which in parts:
        chosen = np.flatnonzero((rows.inside & which[:, None]).reshape(-1))
        taken = read_rows(memory, rows.address.reshape(-1)[chosen] + low, high - low)
        if geometry.tf32:
            round_to_tf32(taken)
        out[chosen, low:high] = taken
    return out


def block(array: NDArray[np.uint8], start: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> NDArray[np.uint8]:
    """A strided view of bytes: `shape` items at `strides` bytes from byte `start`."""
    return np.ndarray(shape, np.uint8, array, start, strides)


def windows(array: NDArray[np.uint8], offsets: NDArray[np.int64], nbytes: int) -> NDArray[np.uint8] | None:
    """(n, nbytes) view of windows that follow each other without a gap; None if they do not."""
    n = len(offsets)
    if n == 1 or (np.diff(offsets) == nbytes).all():
        start = int(offsets[0])
        return array[start : start + n * nbytes].reshape(n, nbytes)
    return None


def permute(source: NDArray[np.uint8], order: NDArray[np.int64], out: NDArray[np.uint8], unit: int) -> None:
    """out unit i = source unit order[i], over contiguous bytes of any shape; order runs over all units of `out`."""
    kind = f"V{unit}"
    np.take(source.reshape(-1).view(kind), order.reshape(-1), out=out.reshape(-1).view(kind), mode="clip")


def put_images(array: NDArray[np.uint8], offsets: NDArray[np.int64], rows: NDArray[np.uint8], image: Image) -> None:
    """Write the rows of n instructions to their windows in shared memory.

    Args:
        array: shared memory.
        offsets: (n,) window starts, all at the same place of the swizzle's pattern.
        rows: (n * R, row_bytes), contiguous.
    """
    n = len(offsets)
    units = rows.reshape(-1).view(f"V{image.unit}").reshape(n, -1)
    ready = windows(array, offsets, image.extent) if image.order is not None else None
    if ready is not None and image.identity:
        ready[...] = rows.reshape(n, -1)
    elif ready is not None and image.order is not None:
        np.take(units, image.order, axis=1, out=ready.view(f"V{image.unit}"), mode="clip")
    else:
        _items(array, image.unit)[offsets[:, None] + image.positions] = units


def get_images(
    array: NDArray[np.uint8], offsets: NDArray[np.int64], image: Image, out: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """The rows that n windows in shared memory hold; the other way of `put_images`.

    Args:
        out: contiguous bytes of the n instructions' rows, used where the rows do not lie ready.
    Returns:
        `out`, or a view of shared memory; of the shape of `out`.
    """
    ready = windows(array, offsets, image.extent) if image.order is not None else None
    if ready is not None and image.identity:
        return ready.reshape(out.shape)
    units = out.reshape(-1).view(f"V{image.unit}").reshape(len(offsets), -1)
    if ready is not None:
        np.take(ready.view(f"V{image.unit}"), image.units, axis=1, out=units, mode="clip")
    else:
        units[...] = _items(array, image.unit)[offsets[:, None] + image.positions]
    return out
