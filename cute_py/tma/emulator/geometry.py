"""What one descriptor makes an instruction move: rows of bytes, and how they lie in shared memory.

Every tensor instruction moves **rows**: runs of bytes that are contiguous in global memory.

    tile               a row is the innermost mode of the box; the other modes count rows
    tile, interleaved  a row is one channel slice (16 or 32 bytes) at one W
    im2col             a row is the channels of one pixel
    gather4, scatter4  a row is one of the four rows that the instruction names

In shared memory rows follow each other at `pitch` bytes and are swizzled there. So a descriptor and a mode are, for
all that follows, a `Geometry`; the walks (`emulator_box`, `emulator_im2col`) say where each row lies in global memory.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

from cute_py.argument_checks import expect
from cute_py.errors import InvalidTypeError, InvalidValueError, UnknownFactError
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.formats import OobFill, TensorMapDataType, format_row
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled
from cute_py.tma.emulator.swizzle import swizzle_row

MODES: Final = ("tile", "im2col", "im2col::w", "im2col::w::128", "tile::gather4", "tile::scatter4")
"""Load and store modes by their names in PTX."""

_PAYLOAD_WORDS: Final = 8
_QUIRK_BITS: Final = {1: 1 << 21}
"""Bits that some drivers set and that have no known meaning to the copy: word -> mask."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How a packed format spreads from global to shared memory: `packed` bytes fill the first part of `spread`."""

    packed: int
    spread: int


_PACKING: Final[dict[int, Packing]] = {
    TensorMapDataType.PACKED_16U4_ALIGN8B: Packing(8, 8),
    TensorMapDataType.PACKED_16U4_ALIGN16B: Packing(8, 16),
    TensorMapDataType.PACKED_16U6_ALIGN16B: Packing(12, 16),
}
"""Sixteen elements are one group. Source: PTX ISA 9.0, Sub-byte Types. Not measured."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """A descriptor in one mode, as rows. Modes innermost first; bytes unless a name says otherwise."""

    mode: str
    data_type: TensorMapDataType
    bits: int
    """Width of one element in global memory, in bits."""
    rank: int
    address: int
    dims: tuple[int, ...]
    """Elements; interleaved: mode 0 counts channel slices."""
    strides: tuple[int, ...]
    """Bytes, of all modes: strides[0] is the element (0 for packed types, whose elements are no bytes) or the slice."""
    steps: tuple[int, ...]
    """Element strides."""
    slice_bytes: int
    """Bytes of a channel slice; 0 without interleave."""
    counts: tuple[int, ...]
    """Tile: coordinates taken of each mode that counts rows, mode 0 included (1 without interleave)."""
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
    def spatial(self) -> range:
        """im2col: the modes that the bounding box bounds, W first."""
        return range(self.rank - 2) if self.interleaved else range(1, self.rank - 1)

    @property
    def inner_bytes(self) -> int:
        """Bytes of the tensor's innermost mode; a row inside the tensor never reaches past it."""
        return self.slice_bytes or self.dims[0] * self.bits // 8

    @property
    def transaction_bytes(self) -> int:
        """Bytes that a barrier is told of: every row in full, out of bounds or not, without halo pixels."""
        return self.rows * self.row_bytes


def _strides(request: Any, bits: int, slice_bytes: int) -> tuple[int, ...]:
    return (slice_bytes or bits // 8, *request.global_strides)


def _ceil(value: int, by: int) -> int:
    return -(-value // by)


def unknown_bits(request: Any) -> dict[int, int]:
    """Word -> bits of the first 64 bytes that have no known meaning. The upper half is not read by the hardware."""
    if request.residue is None:
        return {}
    words = {word: bits & ~_QUIRK_BITS.get(word, 0) for word, bits in request.residue.unknown_words.items()}
    return {word: bits for word, bits in words.items() if bits and word < _PAYLOAD_WORDS}


def geometry(descriptor: Any, mode: str | None = None) -> Geometry:
    """The rows that `descriptor` describes in `mode`.

    Args:
        descriptor: 64 or 128 bytes, or a buffer of them; or a decoded request, the only way to name what has no
            known bits (the ATOM swizzles and the packed types).
        mode: one of `MODES`; None takes tile or im2col, whichever the descriptor is.
    Raises:
        InvalidTypeError: neither bytes nor a request.
        InvalidValueError: no such mode, the descriptor is of the other kind, or a request that makes no sense.
        UnknownFactError: the first 64 bytes hold bits without a known meaning.
    """
    if mode is not None:
        expect(mode, str, "mode")
    if getattr(type(descriptor), "__hash__", None) is None:  # a bytearray, a numpy array
        try:
            descriptor = memoryview(descriptor).tobytes()
        except TypeError:
            raise InvalidTypeError(
                f"a descriptor must be bytes or a decoded tensor map, not {type(descriptor).__name__}"
            ) from None
    return _geometry(descriptor, mode)


@functools.lru_cache(maxsize=256)
def _geometry(descriptor: Any, mode: str | None) -> Geometry:
    request = decode(descriptor) if isinstance(descriptor, (bytes, memoryview)) else descriptor
    if isinstance(request, TensorMapIm2colWide):
        request = request.as_im2col()
    if not isinstance(request, (TensorMapTiled, TensorMapIm2col)):
        raise InvalidTypeError(f"a descriptor must be bytes or a decoded tensor map, not {type(request).__name__}")
    tiled = isinstance(request, TensorMapTiled)
    mode = mode or ("tile" if tiled else "im2col")
    if mode not in MODES:
        raise InvalidValueError(f"mode {mode!r}; must be one of {', '.join(MODES)}")
    if mode.startswith("tile") != tiled:
        raise InvalidValueError(f"mode {mode!r} on a descriptor of kind {'tiled' if tiled else 'im2col'}")
    _require_shape(request)
    unknown = unknown_bits(request)
    if unknown or request.data_type is None:
        raise UnknownFactError(
            "the descriptor holds bits whose meaning is not known",
            {f"w{word}": f"0x{bits:016x}" for word, bits in unknown.items()} or {"element format": "no known code"},
        )
    return _tile(request, mode) if isinstance(request, TensorMapTiled) else _im2col(request, mode)


def _require_shape(request: TensorMapTiled | TensorMapIm2col) -> None:
    """A request (unlike bytes) may have lists of any length and numbers of any size."""
    least, what = (1, "rank =") if isinstance(request, TensorMapTiled) else (3, "im2col with rank")
    if not least <= request.rank <= 5:
        raise InvalidValueError(f"{what} {request.rank}; must be {least} to 5")
    lengths = {"global_strides": request.rank - 1, "element_strides": request.rank}
    if isinstance(request, TensorMapTiled):
        lengths["box_dim"] = request.rank
    else:
        lengths["pixel_box_lower_corner"] = lengths["pixel_box_upper_corner"] = request.rank - 2
    for name, length in lengths.items():
        if len(getattr(request, name)) != length:
            raise InvalidValueError(f"{name} = {getattr(request, name)}; must have {length} entries")
    counts = [*request.global_dim, *request.element_strides]
    if isinstance(request, TensorMapTiled):
        counts += request.box_dim
    else:
        counts += [request.channels_per_pixel, request.pixels_per_column]
    if min(counts) < 1:
        raise InvalidValueError("sizes, boxes and element strides must be 1 or more", {"request": request})
    corners = () if isinstance(request, TensorMapTiled) else request.pixel_box_lower_corner
    corners += () if isinstance(request, TensorMapTiled) else request.pixel_box_upper_corner
    beyond = (
        max(request.global_dim) > 1 << 32
        or max(counts[request.rank :]) > 1 << 16
        or not all(0 <= stride < 1 << 40 for stride in request.global_strides)
        or not all(-(1 << 15) <= corner < 1 << 15 for corner in corners)
        or not 0 <= request.global_address < 1 << 64
    )
    if beyond:
        raise InvalidValueError("numbers beyond the fields of a tensor map", {"request": request})


def _common(request: Any) -> dict[str, Any]:
    row = format_row(request.data_type)
    slice_bytes = (0, 16, 32)[request.interleave] if 0 <= request.interleave <= 2 else -1
    if slice_bytes < 0:
        raise UnknownFactError(f"interleave = {int(request.interleave)}; not known")
    if slice_bytes and request.rank < 3:
        raise InvalidValueError(f"interleave with rank {request.rank}; must be 3 to 5")
    return {
        "data_type": row.data_type,
        "bits": row.bits,
        "rank": request.rank,
        "address": (request.global_address + 2**63) % 2**64 - 2**63,  # as a signed number, so that sums stay in 64 bits
        "dims": request.global_dim,
        "strides": _strides(request, row.bits, slice_bytes),
        "steps": request.element_strides,
        "slice_bytes": slice_bytes,
        "swizzle": int(request.swizzle),
        "nan_fill": request.oob_fill == OobFill.NAN_REQUEST_ZERO_FMA,
        "tf32": bool(row.tf32_round),
        "packing": _PACKING.get(row.data_type),
    }


def _pitch(row_bytes: int, swizzle: int, packing: Packing | None, slice_bytes: int) -> int:
    if slice_bytes:
        return slice_bytes  # slices follow each other without gaps, whatever the swizzle
    spread = row_bytes if packing is None else row_bytes // packing.packed * packing.spread
    return max(spread, swizzle_row(swizzle).span)


def _tile(request: TensorMapTiled, mode: str) -> Geometry:
    common = _common(request)
    box, steps, rank = request.box_dim, request.element_strides, request.rank
    slice_bytes = common["slice_bytes"]
    counts = [_ceil(b, s) for b, s in zip(box, steps, strict=True)]
    if slice_bytes:
        counts[rank - 2] = 1  # one channel slice, whatever the box says
    else:
        counts[0] = 1  # mode 0 lies inside a row; its element stride has no effect
    row_bytes = slice_bytes or _row_bytes(box[0], common)
    rows = 1
    for count in counts:
        rows *= count
    if mode in ("tile::gather4", "tile::scatter4"):
        if rank != 2 or box[1] != 1 or slice_bytes:
            raise InvalidValueError(
                f"{mode} needs a descriptor of rank 2 with a box of one row and no interleave",
                {"rank": rank, "box": box, "interleave": slice_bytes},
            )
        rows = 4
    return Geometry(
        mode=mode,
        counts=tuple(counts),
        rows=rows,
        row_bytes=row_bytes,
        pitch=_pitch(row_bytes, common["swizzle"], common["packing"], slice_bytes),
        lower=(),
        upper=(),
        **common,
    )


def _im2col(request: TensorMapIm2col, mode: str) -> Geometry:
    common = _common(request)
    row_bytes = common["slice_bytes"] or _row_bytes(request.channels_per_pixel, common)
    if mode != "im2col" and (common["slice_bytes"] or request.swizzle == 0 or request.swizzle == 5):
        raise InvalidValueError(
            f"{mode} needs a swizzle other than none and 128B with 8-byte flip, and no interleave",
            {"swizzle": int(request.swizzle), "interleave": int(request.interleave)},
        )
    return Geometry(
        mode=mode,
        counts=(),
        rows=128 if mode == "im2col::w::128" else request.pixels_per_column,
        row_bytes=row_bytes,
        pitch=_pitch(row_bytes, common["swizzle"], common["packing"], common["slice_bytes"]),
        lower=request.pixel_box_lower_corner,
        upper=request.pixel_box_upper_corner,
        **common,
    )


def _row_bytes(elements: int, common: dict[str, Any]) -> int:
    bits: int = elements * common["bits"]
    group = 8 * (common["packing"].packed if common["packing"] else 1)
    if bits % group:
        raise InvalidValueError(f"a row of {elements} elements x {common['bits']} bits is no whole number of groups")
    return bits // 8
