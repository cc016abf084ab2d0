"""The geometry of a transfer: the rows of bytes that an instruction moves, and their positions in shared memory.

Every tensor instruction moves **rows**: runs of bytes that are contiguous in global memory.

    tile               a row is the innermost mode of the box; the other modes count rows
    tile, interleaved  a row is one channel slice (16 or 32 bytes) at one W
    im2col             a row is the channels of one pixel
    gather4, scatter4  a row is one of the four rows that the instruction names

A `Geometry` has all values that follow from a descriptor and a mode; `walk` finds each row in global memory.

In shared memory, rows are `pitch` bytes apart, and a swizzle permutes their bytes. A swizzle takes the lowest `bits`
bits of the number of the 128-byte line, which start at address bit 7. It XORs them into the address bits that number
the units of `2**base` bytes in a line:

    a -> a ^ (((a >> 7) & (2**bits - 1)) << base)

The swizzle acts on the shared-memory address, not on the offset in a tile. The swizzle of a tile that does not start
where the pattern repeats therefore depends on its address. In the swizzle mode with an 8-byte flip, the lowest bit of
the line number is also XORed into bit 3.

Pitch, packing and swizzle together give one table of positions, an `Image`. A row is divided into units, the largest
pieces that stay contiguous, and `positions` has the start of each unit of each row, in bytes from the start of the
window. The table depends on the address of the window only through its offset in the repeating swizzle pattern (the
phase), so that a few tables serve a whole copy.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

from cute_py.argument_checks import expect, has
from cute_py.errors import InvalidTypeError, InvalidValueError, UnknownFactError
from cute_py.tma.descriptor.data_types import OobFill, TensorMapDataType, TensorMapSwizzle, format_row
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled
from cute_py.tma.emulator.memory import Bytes, Integers

if TYPE_CHECKING:
    import numpy as np
else:
    from cute_py.optional_packages import numpy as np

Address = TypeVar("Address", int, "Integers")
"""One byte address, or an array of them."""
Descriptor: TypeAlias = "bytes | bytearray | memoryview | Bytes | TensorMap"
"""A tensor map as an operand: 64 or 128 bytes, a buffer of them, or a decoded request."""

MODES: Final = ("tile", "im2col", "im2col::w", "im2col::w::128", "tile::gather4", "tile::scatter4")
"""Load and store modes by their names in PTX."""

W128_ROWS: Final = 128
"""Pixels of im2col::w::128, for any descriptor. Source: PTX ISA 9.0, im2col::w::128 mode."""

W128_GROUP: Final = 32
"""Number of pixels of im2col::w::128 before each group of halo pixels. Source: PTX ISA 9.0, wHalo."""

_SLICE_BYTES: Final = {0: 0, 1: 16, 2: 32}
"""Interleave -> bytes of a channel slice."""

_PAYLOAD_WORDS: Final = 8
_QUIRK_BITS: Final = {1: 1 << 21}
"""word -> mask of the bits that some drivers set and that do not affect a copy."""

MEASURED: Final = "measured"
DOCUMENTED: Final = "documented"
"""Evidence for an instruction's behaviour: a device, or only the PTX ISA."""


# ---- swizzles --------------------------------------------------------------------------------------------------------

LINE_SHIFT: Final = 7
"""log2 of the bytes of a line of 32 banks."""


@dataclass(frozen=True, slots=True)
class SwizzlePattern:
    """One swizzle: its span in bytes, its address bits, and the evidence for it."""

    kind: TensorMapSwizzle
    span: int
    """Minimum bytes of a row in shared memory; the XOR never leaves a block of this size."""
    bits: int
    base: int
    """log2 of the number of bytes that stay together."""
    evidence: str
    source: str
    flip: bool = False
    """Whether the two halves of each 16 bytes are swapped on every other line."""

    @property
    def repeat(self) -> int:
        """The period of the pattern, in bytes.

        >>> swizzle_pattern(TensorMapSwizzle.B128).repeat
        1024
        """
        return 1 << (LINE_SHIFT + self.bits) if self.bits else 1


_H200: Final = (MEASURED, "measured on NVIDIA H200, driver 580.159.04")
_PTX: Final = (DOCUMENTED, "PTX ISA 9.0, Swizzling Modes")

SWIZZLES: Final[tuple[SwizzlePattern, ...]] = (
    SwizzlePattern(TensorMapSwizzle.NONE, 0, 0, 4, *_H200),
    SwizzlePattern(TensorMapSwizzle.B32, 32, 1, 4, *_H200),
    SwizzlePattern(TensorMapSwizzle.B64, 64, 2, 4, *_H200),
    SwizzlePattern(TensorMapSwizzle.B128, 128, 3, 4, *_H200),
    SwizzlePattern(TensorMapSwizzle.B128_ATOM_32B, 128, 2, 5, *_PTX),
    SwizzlePattern(TensorMapSwizzle.B128_ATOM_32B_FLIP_8B, 128, 2, 5, *_PTX, flip=True),
    SwizzlePattern(TensorMapSwizzle.B128_ATOM_64B, 128, 1, 6, *_PTX),
)
"""The swizzles, indexed by the driver's number."""


def swizzle_pattern(swizzle: int) -> SwizzlePattern:
    """Return the pattern of a swizzle, from the enum member or its number.

    Raises:
        InvalidValueError: the swizzle does not exist.
    """
    if 0 <= swizzle < len(SWIZZLES):
        return SWIZZLES[swizzle]
    raise InvalidValueError.of_value("swizzle", int(swizzle), f"be 0 to {len(SWIZZLES) - 1}")


def swizzled_address(address: Address, swizzle: int) -> Address:
    """Apply a swizzle to shared-memory addresses, elementwise.

    Args:
        address: byte addresses in shared memory (not offsets in a tile): an array of any shape, or an integer.
    Source:
        NONE, B32, B64, B128: measured on NVIDIA H200, driver 580.159.04. The ATOM kinds: PTX ISA 9.0, Swizzling Modes.

    >>> swizzled_address(np.array([0, 128, 144, 896]), TensorMapSwizzle.B128).tolist()
    [0, 144, 128, 1008]
    """
    row = swizzle_pattern(swizzle)
    if not row.bits:
        return address
    line = address >> LINE_SHIFT
    out = address ^ ((line & ((1 << row.bits) - 1)) << row.base)
    return out ^ ((line & 1) << 3) if row.flip else out


# ---- rows of a descriptor --------------------------------------------------------------------------------------------


class Packing(NamedTuple):
    """The expansion of a packed format in shared memory: `packed` bytes occupy the first part of `spread` bytes."""

    packed: int
    spread: int


_PACKING: Final[dict[int, Packing]] = {
    TensorMapDataType.PACKED_16U4_ALIGN8B: Packing(8, 8),
    TensorMapDataType.PACKED_16U4_ALIGN16B: Packing(8, 16),
    TensorMapDataType.PACKED_16U6_ALIGN16B: Packing(12, 16),
}
"""Sixteen elements are one group. Source: PTX ISA 9.0, Sub-byte Types. Not measured."""


@dataclass(frozen=True, slots=True, eq=False)  # caches by geometry need not hash twenty fields
class Geometry:
    """The rows that a descriptor defines in one mode.

    Modes are innermost first; sizes are in bytes unless the name has a unit.
    """

    mode: str
    data_type: TensorMapDataType
    bits: int
    """Width of one element in global memory, in bits."""
    rank: int
    address: int
    dims: tuple[int, ...]
    """Sizes in elements; with interleave, mode 0 counts channel slices."""
    strides: tuple[int, ...]
    """Bytes of all modes. strides[0] is the element (0 for packed types of less than a byte) or the slice."""
    steps: tuple[int, ...]
    """Element strides."""
    slice_bytes: int
    """Bytes of a channel slice; 0 without interleave."""
    counts: tuple[int, ...]
    """For a tile: coordinates in each mode that counts rows, including mode 0 (1 without interleave)."""
    rows: int
    """Rows of one instruction, without halo pixels."""
    row_bytes: int
    pitch: int
    swizzle: int
    nan_fill: bool
    tf32: bool
    packing: Packing | None
    lower: tuple[int, ...]
    upper: tuple[int, ...]

    @property
    def interleaved(self) -> bool:
        return self.slice_bytes > 0

    @property
    def im2col(self) -> bool:
        """Whether the rows are pixels, in any of the three im2col modes."""
        return self.mode.startswith("im2col")

    @property
    def wide(self) -> bool:
        """Whether the mode is im2col along W only, with halo pixels."""
        return self.mode.startswith("im2col::w")

    @property
    def four_rows(self) -> bool:
        """Whether the instruction has one coordinate per row (gather4 and scatter4)."""
        return self.mode in ("tile::gather4", "tile::scatter4")

    @property
    def spatial(self) -> range:
        """The modes of the im2col bounding box, W first."""
        return range(self.rank - 2) if self.interleaved else range(1, self.rank - 1)

    @property
    def inner_bits(self) -> int:
        """Bits per coordinate of mode 0: the width of a channel slice, or of an element."""
        return self.slice_bytes * 8 or self.bits

    @property
    def transaction_bytes(self) -> int:
        """Bytes that a barrier counts: all rows, including out-of-bounds bytes, but without halo pixels."""
        return self.rows * self.row_bytes

    def row_count(self, offsets: Sequence[int] | Integers = ()) -> int:
        """Return the number of rows of one instruction, including halo pixels.

        Args:
            offsets: im2col offsets of the instruction; the first is wHalo in the w modes.
        """
        if not self.wide or not len(offsets):
            return self.rows
        return self.rows + self.rows // self.group * int(offsets[0])

    @property
    def group(self) -> int:
        """The number of pixels before each group of halo pixels in the w modes."""
        return W128_GROUP if self.mode == "im2col::w::128" else self.rows


def geometry(descriptor: Descriptor, mode: str | None = None) -> Geometry:
    """Return the rows that `descriptor` defines in `mode`.

    Args:
        descriptor: 64 or 128 bytes, a buffer of them, or a decoded request. Only a request can have values without
            known bits (the ATOM swizzles and the packed types).
        mode: one of `MODES`; None: tile or im2col, depending on the kind of descriptor.
    Raises:
        InvalidTypeError: the descriptor is neither bytes nor a request.
        InvalidValueError: the mode does not exist or does not fit the kind of descriptor, or the request is
            inconsistent.
        UnknownFactError: the first 64 bytes have set bits without a known meaning.
    """
    if mode is not None:
        expect(mode, str, "mode")
    return _geometry(bytes_or_map(descriptor), mode)


_MOST_BYTES: Final = 1 << 16
"""Largest buffer, in bytes, that is read as a descriptor; the decoder judges its length."""


def bytes_or_map(descriptor: Descriptor) -> bytes | TensorMap:
    """Return a decoded request unchanged, or a buffer as bytes.

    Raises:
        InvalidTypeError: the descriptor is neither bytes nor a request.
    """
    if isinstance(descriptor, (bytes, TensorMapTiled, TensorMapIm2col, TensorMapIm2colWide)):
        return descriptor
    what = f"a descriptor must be bytes or a decoded tensor map, not {type(descriptor).__name__}"
    if has(descriptor, "descriptor"):
        raise InvalidTypeError(what, hint="atom.descriptor has the bytes of an atom's map")
    if getattr(descriptor, "ndim", 1) == 0:  # a number of numpy is also a buffer
        raise InvalidTypeError(what)
    try:
        view = memoryview(descriptor)  # type: ignore[arg-type]  # typed as buffers from 3.12 on
        if view.nbytes > _MOST_BYTES:
            raise InvalidValueError(f"a descriptor of {view.nbytes} bytes; must be 64 or 128")
        return view.tobytes()
    except (TypeError, ValueError, BufferError, NotImplementedError):  # an array of times has no buffer
        raise InvalidTypeError(what) from None


@functools.lru_cache(maxsize=256)
def _geometry(descriptor: bytes | TensorMap, mode: str | None) -> Geometry:
    request = decode(descriptor) if isinstance(descriptor, bytes) else descriptor
    if isinstance(request, TensorMapIm2colWide):
        request = request.as_im2col()
    kind = "tiled" if isinstance(request, TensorMapTiled) else "im2col"
    mode = mode or ("tile" if kind == "tiled" else "im2col")
    if mode not in MODES:
        raise InvalidValueError(f"mode {mode!r}; must be one of {', '.join(MODES)}")
    if mode.startswith("tile") != (kind == "tiled"):
        raise InvalidValueError(f"mode {mode!r} does not fit a descriptor of kind {kind}")
    _require_shape(request)
    row = format_row(_known_format(request))
    slice_bytes = _SLICE_BYTES.get(request.interleave)
    if slice_bytes is None:
        raise UnknownFactError(f"interleave = {int(request.interleave)} is not known")
    if slice_bytes and request.rank < 3:
        raise InvalidValueError(f"a map with interleave has rank {request.rank}; must be 3 to 5")
    counts: tuple[int, ...] = ()
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    if isinstance(request, TensorMapTiled):
        elements, counts = request.box_dim[0], _counts(request, mode, slice_bytes)
        rows = math.prod(counts) if mode == "tile" else 4
    else:
        elements, lower, upper = (
            request.channels_per_pixel,
            request.pixel_box_lower_corner,
            request.pixel_box_upper_corner,
        )
        rows = W128_ROWS if mode == "im2col::w::128" else request.pixels_per_column
        if mode != "im2col" and (slice_bytes or request.swizzle in (0, 5)):
            raise InvalidValueError(
                f"{mode} needs a swizzle other than none and 128B with 8-byte flip, and no interleave",
                {"swizzle": int(request.swizzle), "interleave": int(request.interleave)},
            )
    packing = _PACKING.get(row.data_type)
    if not slice_bytes and elements * row.bits % (8 * (packing.packed if packing else 1)):
        raise InvalidValueError(f"a row of {elements} elements x {row.bits} bits is not a multiple of a group")
    row_bytes = slice_bytes or elements * row.bits // 8
    spread = row_bytes if packing is None else row_bytes // packing.packed * packing.spread
    return Geometry(
        mode=mode,
        data_type=row.data_type,
        bits=row.bits,
        rank=request.rank,
        address=(request.global_address + 2**63) % 2**64 - 2**63,  # as a signed number, so that sums stay in 64 bits
        dims=request.global_dim,
        strides=(slice_bytes or row.bits // 8, *request.global_strides),
        steps=request.element_strides,
        slice_bytes=slice_bytes,
        counts=counts,
        rows=rows,
        row_bytes=row_bytes,
        # Slices follow each other without gaps, with any swizzle.
        pitch=slice_bytes or max(spread, swizzle_pattern(request.swizzle).span),
        swizzle=int(request.swizzle),
        nan_fill=request.oob_fill == OobFill.NAN_REQUEST_ZERO_FMA,
        tf32=bool(row.tf32_round),
        packing=packing,
        lower=lower,
        upper=upper,
    )


def _require_shape(request: TensorMapTiled | TensorMapIm2col) -> None:
    """Check the lengths and values of a request, which are not limited as they are in the bytes of a map."""
    rank = request.rank
    lengths = {"global_strides": rank - 1, "element_strides": rank}
    boxes: tuple[int, ...]
    corners: tuple[int, ...] = ()
    if isinstance(request, TensorMapTiled):
        least, what, boxes = 1, "rank =", request.box_dim
        lengths["box_dim"] = rank
    else:
        least, what, boxes = 3, "im2col with rank", (request.channels_per_pixel, request.pixels_per_column)
        lengths["pixel_box_lower_corner"] = lengths["pixel_box_upper_corner"] = rank - 2
        corners = (*request.pixel_box_lower_corner, *request.pixel_box_upper_corner)
    if not least <= rank <= 5:
        raise InvalidValueError(f"{what} {rank}; must be {least} to 5")
    for name, length in lengths.items():
        if len(getattr(request, name)) != length:
            raise InvalidValueError(f"{name} = {getattr(request, name)}; must have {length} entries")
    if min(*request.global_dim, *request.element_strides, *boxes) < 1:
        raise InvalidValueError("sizes, boxes and element strides must be 1 or more", {"request": request})
    beyond = (
        max(request.global_dim) > 1 << 32
        or max(*request.element_strides, *boxes) > 1 << 16
        or not all(0 <= stride < 1 << 40 for stride in request.global_strides)
        or not all(-(1 << 15) <= corner < 1 << 15 for corner in corners)
        or not 0 <= request.global_address < 1 << 64
    )
    if beyond:
        raise InvalidValueError("a number of the request does not fit its field of the map", {"request": request})


def _known_format(request: TensorMapTiled | TensorMapIm2col) -> int:
    """Return the element format, and refuse unknown bits in the lower half, which the hardware reads."""
    left = {} if request.residue is None else request.residue.unknown_words
    read = {word: bits & ~_QUIRK_BITS.get(word, 0) for word, bits in left.items() if word < _PAYLOAD_WORDS}
    unknown = {f"w{word}": f"0x{bits:016x}" for word, bits in read.items() if bits}
    if unknown or request.data_type is None:
        raise UnknownFactError(
            "the descriptor has bits whose meaning is unknown", unknown or {"element format": "no known code"}
        )
    return request.data_type


def _counts(request: TensorMapTiled, mode: str, slice_bytes: int) -> tuple[int, ...]:
    """Return the number of coordinates of each mode that counts rows."""
    box, rank = request.box_dim, request.rank
    if mode != "tile" and (rank != 2 or box[1] != 1 or slice_bytes):
        raise InvalidValueError(
            f"{mode} needs a descriptor of rank 2 with a box of one row and no interleave",
            {"rank": rank, "box": box, "interleave": slice_bytes},
        )
    counts = [-(-extent // step) for extent, step in zip(box, request.element_strides, strict=True)]
    # With interleave, a box has one channel slice. Without interleave, mode 0 lies inside a row, and its element stride
    # has no effect.
    counts[rank - 2 if slice_bytes else 0] = 1
    return tuple(counts)


# ---- rows in shared memory -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """The shared-memory positions of the units of all rows of one instruction."""

    unit: int
    """Bytes of a unit: a power of two, at most 16."""
    positions: Integers
    """(rows * units per row,) bytes from the start of the window."""
    extent: int
    """Bytes from the start of the window to the end of the last unit."""
    identity: bool
    """Whether rows follow each other without a gap or swizzle."""
    units: Integers
    """Positions in units, if the image has no gap."""
    order: Integers | None
    """Index of the unit at each position, if the image has no gap; None if it has gaps."""


def row_image(geometry: Geometry, rows: int, address: int) -> Image:
    """Return the image of `rows` rows in a window that starts at the shared-memory address `address`.

    Args:
        rows: rows of the instruction, including halo pixels.
        address: bytes; a multiple of 128.
    """
    phase = address % swizzle_pattern(geometry.swizzle).repeat
    return _image(rows, geometry.row_bytes, geometry.pitch, geometry.packing, geometry.swizzle, phase)


@functools.lru_cache(maxsize=128)
def _image(rows: int, row_bytes: int, pitch: int, packing: Packing | None, swizzle: int, phase: int) -> Image:
    # The largest power of two that divides every piece: a flip moves halves of 16 bytes.
    unit = math.gcd(8 if swizzle_pattern(swizzle).flip else 16, row_bytes, pitch, *(packing or ()))
    along = np.arange(0, row_bytes, unit, dtype=np.int64)
    if packing is not None:
        along = along // packing.packed * packing.spread + along % packing.packed
    linear = (np.arange(rows, dtype=np.int64)[:, None] * pitch + along).reshape(-1)
    positions = swizzled_address(linear + phase, swizzle) - phase
    positions.setflags(write=False)
    extent = int(positions.max()) + unit if len(positions) else 0
    order = None
    if extent == rows * row_bytes and positions.min() >= 0:
        order = np.empty(len(positions), np.int64)
        order[positions // unit] = np.arange(len(positions))
        order.setflags(write=False)
    identity = order is not None and bool((positions == linear).all())
    return Image(unit, positions, extent, identity, positions // unit, order)
