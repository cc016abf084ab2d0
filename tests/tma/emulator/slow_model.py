"""A second model of the TMA engine, one element at a time, from the words of the PTX ISA and the measured exceptions.

It shares nothing with the emulator but the request. It is slow and plain on purpose: a reader can check each line.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterator, Sequence

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapTiled

Request = TensorMapTiled | TensorMapIm2col

WIDTH = {0: 1, 1: 2, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 8, 9: 2, 10: 4, 11: 4, 12: 4}
"""CUtensorMapDataType -> bytes of an element."""

# PTX ISA, Swizzling Modes: rows of the repeating pattern; entry j is the 16-byte piece that lies at place j of a line.
PATTERNS = {
    0: ["01234567"],
    1: ["01234567", "10325476"],
    2: ["01234567", "10325476", "23016745", "32107654"],
    3: ["01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210"],
    4: ["01234567", "23016745", "45670123", "67452301"],
    5: ["01234567", "23016745", "45670123", "67452301"],
    6: ["01234567", "45670123"],
}
SPAN = {0: 0, 1: 32, 2: 64, 3: 128, 4: 128, 5: 128, 6: 128}


def physical(address: int, swizzle: int) -> int:
    """Shared-memory address of the byte that would lie at `address` without swizzle."""
    line, inside = divmod(address, 128)
    pattern = PATTERNS[swizzle][line % len(PATTERNS[swizzle])]
    byte = inside % 16
    if swizzle == 5 and line % 2:
        byte ^= 8  # halves of 16 bytes change places on every other line
    return line * 128 + pattern.index(str(inside // 16)) * 16 + byte


def tile_elements(request: TensorMapTiled, coords: Sequence[int]) -> Iterator[tuple[int, list[int], int]]:
    """(row, coordinates, byte of the row) of every element that a box touches; interleaved: every slice."""
    slices = (0, 16, 32)[request.interleave]
    modes = []
    for i in range(request.rank):
        count = math.ceil(request.box_dim[i] / request.element_strides[i])
        if slices and i == request.rank - 2:
            count = 1
        if not slices and i == 0:
            modes.append([coords[0] + k for k in range(request.box_dim[0])])
        else:
            modes.append([coords[i] + k * request.element_strides[i] for k in range(count)])
    if slices:
        for row, place in enumerate(itertools.product(*reversed(modes))):
            yield row, list(reversed(place)), 0
        return
    width = WIDTH[request.data_type]
    for row, place in enumerate(itertools.product(*reversed(modes[1:]))):
        for k, x in enumerate(modes[0]):
            yield row, [x, *reversed(place)], k * width


def im2col_pixels(request: TensorMapIm2col, coords: Sequence[int]) -> Iterator[list[int]]:
    """Base coordinates of the pixels of a column: spatial modes W first, then the image."""
    spatial = list(range(request.rank - 2)) if request.interleave else list(range(1, request.rank - 1))
    base = [coords[mode] for mode in spatial]
    image = coords[-1]
    for _ in range(request.pixels_per_column):
        yield [*base, image]
        for k, mode in enumerate(spatial):
            base[k] += request.element_strides[mode]
            if base[k] <= request.global_dim[mode] - 1 + request.pixel_box_upper_corner[k]:
                break
            base[k] = request.pixel_box_lower_corner[k]
        else:
            image += request.element_strides[-1]  # measured: the image number has a stride too


def im2col_elements(
    request: TensorMapIm2col, coords: Sequence[int], offsets: Sequence[int]
) -> Iterator[tuple[int, list[int], int]]:
    """As `tile_elements`, for a column of pixels."""
    width = WIDTH[request.data_type]
    for row, (*base, image) in enumerate(im2col_pixels(request, coords)):
        pixel = [b + o for b, o in zip(base, offsets, strict=True)]
        if request.interleave:
            yield row, [*pixel, coords[-2], image], 0
            continue
        for k in range(request.channels_per_pixel):
            yield row, [coords[0] + k, *pixel, image], k * width


def elements(request: Request, coords: Sequence[int], offsets: Sequence[int]) -> Iterator[tuple[int, list[int], int]]:
    if isinstance(request, TensorMapTiled):
        return tile_elements(request, coords)
    return im2col_elements(request, coords, offsets or (0,) * (request.rank - 2))


def piece_bytes(request: Request) -> int:
    """Bytes that one entry of `elements` stands for."""
    return (WIDTH[request.data_type], 16, 32)[request.interleave]


def row_pitch(request: Request) -> int:
    if request.interleave:
        return piece_bytes(request)
    inner = request.box_dim[0] if isinstance(request, TensorMapTiled) else request.channels_per_pixel
    return max(inner * WIDTH[request.data_type], SPAN[request.swizzle])


def address_of(request: Request, place: Sequence[int]) -> int:
    strides = (piece_bytes(request), *request.global_strides)
    return request.global_address + sum(c * s for c, s in zip(place, strides, strict=True))


def inside(request: Request, place: Sequence[int]) -> bool:
    return all(0 <= c < size for c, size in zip(place, request.global_dim, strict=True))


def to_tf32(word: bytes) -> bytes:
    """The nearest float32 with 10 bits of fraction; a tie goes to the even one."""
    (bits,) = struct.unpack("<I", word)
    sign, magnitude = bits & 0x80000000, bits & 0x7FFFFFFF
    if magnitude > 0x7F800000:
        return struct.pack("<I", 0x7FFFE000)
    low = magnitude // 8192 * 8192
    up = magnitude - low > 4096 or (magnitude - low == 4096 and low // 8192 % 2 == 1)
    return struct.pack("<I", sign | (low + 8192 * up))


def slow_load(
    request: Request,
    gmem: NDArray[np.uint8],
    base: int,
    coords: Sequence[int],
    smem: NDArray[np.uint8],
    *,
    offset: int = 0,
    offsets: Sequence[int] = (),
) -> int:
    """One load. Returns the bytes that were delivered."""
    size, total = piece_bytes(request), 0
    for row, place, byte in elements(request, coords, offsets):
        if inside(request, place):
            start = address_of(request, place) - base
            data = gmem[start : start + size].tobytes()
            if request.data_type in (11, 12):
                data = b"".join(to_tf32(data[i : i + 4]) for i in range(0, size, 4))
        else:
            data = (b"\xf7\x7f" if request.oob_fill else b"\0\0") * size
        for i in range(size):
            smem[physical(offset + row * row_pitch(request) + byte + i, request.swizzle)] = data[i]
        total += size
    return total


def slow_reduce(op: str, data_type: int, old: bytes, new: bytes) -> bytes:
    """One element of a reduction."""
    kinds = {2: "<I", 3: "<i", 4: "<Q", 5: "<q", 6: "<e", 7: "<f", 8: "<d", 10: "<f", 11: "<f", 12: "<f"}
    bits = 8 * len(old)
    u, v = int.from_bytes(old, "little"), int.from_bytes(new, "little")
    if op in ("and", "or", "xor", "inc", "dec"):
        out = {
            "and": u & v,
            "or": u | v,
            "xor": u ^ v,
            "inc": 0 if u >= v else u + 1,
            "dec": v if u == 0 or u > v else u - 1,
        }[op]
        return out.to_bytes(len(old), "little")
    if data_type == 9:
        a, b = (float(np.frombuffer(x, ml_dtypes.bfloat16)[0]) for x in (old, new))
    else:
        a, b = struct.unpack(kinds[data_type], old)[0], struct.unpack(kinds[data_type], new)[0]
    if data_type in (2, 3, 4, 5):
        out = {"add": u + v, "min": u if a <= b else v, "max": u if a >= b else v}[op]
        return (out % 2**bits).to_bytes(len(old), "little")
    if op in ("min", "max"):
        if a != a or b != b:
            return b"\xff\x7f" if a != a and b != b else (new if a != a else old)
        if a == b:  # zeros of either sign: the negative one is the smaller
            return old if (u >> 15) == (op == "min") else new
        return old if (a < b) == (op == "min") else new
    tiny = 2.0**-126
    if data_type in (10, 12):  # these two flush what goes in and what comes out, keeping the sign
        a, b = (math.copysign(0.0, x) if abs(x) < tiny else x for x in (a, b))
    total = a + b
    if data_type in (10, 12) and abs(total) < tiny:
        total = math.copysign(0.0, total)
    if total != total:
        if data_type == 8:  # a NaN operand comes back as it is, the shared one first
            return new if b != b else (old if a != a else bytes(6) + b"\xf8\xff")
        return {2: b"\xff\x7f", 4: b"\xff\xff\xff\x7f"}[len(old)]
    if data_type == 9:
        with np.errstate(over="ignore"):  # to infinity
            return np.array([total], np.float64).astype(np.float32).astype(ml_dtypes.bfloat16).tobytes()
    try:
        return struct.pack(kinds[data_type], total)
    except OverflowError:
        infinity = {6: 0x7C00, 7: 0x7F800000, 10: 0x7F800000, 11: 0x7F800000, 12: 0x7F800000}[data_type]
        return (infinity | (total < 0) << (bits - 1)).to_bytes(len(old), "little")


def slow_store(
    request: Request,
    smem: NDArray[np.uint8],
    coords: Sequence[int],
    gmem: NDArray[np.uint8],
    base: int,
    *,
    offset: int = 0,
    op: str | None = None,
) -> None:
    """One store or reduction. Rows are written to the end of the 16 bytes in which the tensor's row ends."""
    size = piece_bytes(request)
    for row, place, byte in elements(request, coords, ()):
        if request.interleave:
            written = inside(request, place)
        else:
            begins = place[0] - byte // size
            valid = request.global_dim[0] * size - begins * size
            written = byte < math.ceil(valid / 16) * 16 and inside(request, [0, *place[1:]]) and valid > 0
        if not written:
            continue
        where = address_of(request, place) - base
        spot = [physical(offset + row * row_pitch(request) + byte + i, request.swizzle) for i in range(size)]
        data = bytes(int(smem[s]) for s in spot)
        if op is not None:
            data = slow_reduce(op, int(request.data_type), gmem[where : where + size].tobytes(), data)
        gmem[where : where + size] = np.frombuffer(data, np.uint8)
