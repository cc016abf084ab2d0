"""A request as the 128 bytes that the driver writes for it."""

from __future__ import annotations

from typing import Final

from cute_py.errors import InvalidTypeError
from cute_py.tma.descriptor import fields as f
from cute_py.tma.descriptor.arch import refuse_unknown, unknown_addition
from cute_py.tma.descriptor.formats import FORMATS, TensorMapDataType, TensorMapSwizzle
from cute_py.tma.descriptor.notes import note_box_bytes
from cute_py.tma.descriptor.quirks import clear_mask
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled
from cute_py.tma.descriptor.violations import refuse, violations

_LAST_KNOWN_SWIZZLE: Final = TensorMapSwizzle.B128
_LAST_KNOWN_FORMAT: Final = TensorMapDataType.TFLOAT32_FTZ


_FORMAT_BITS: Final = tuple((row.code or 0) << f.P_FORMAT | row.tf32_round << f.P_TF32 for row in FORMATS)
"""Format code and tf32 bit in place, by the driver's number."""
_STRIDES: Final = tuple(zip(f.P_STRIDE_LOW, f.P_STRIDE_HIGH, strict=True))
_SIZES: Final = f.P_DIM
_STEPS: Final = f.P_ELEMENT_STRIDE
_BOX: Final = f.P_BOX
_RANK: Final = f.P_RANK
_ALIGNMENT_BITS: Final = tuple(f.SMEM_ALIGNMENT[swizzle] << f.P_NOTE_ALIGNMENT for swizzle in range(4))
_NOTE: Final = f.P_NOTE_BYTES


def pack(request: TensorMap) -> int:
    """The fields of a request as one 1024-bit number, bit 0 first; its values must fit their fields.

    No rule is checked here, and no residue is added.
    """
    rank = len(request.global_dim)
    bits = (
        request.global_address
        | (rank - 1) << _RANK
        | request.interleave << f.P_INTERLEAVE
        | request.swizzle << f.P_SWIZZLE
        | request.oob_fill << f.P_OOB
        | request.l2_promotion << f.P_L2
    )
    if request.data_type is not None:
        bits |= _FORMAT_BITS[request.data_type]
    for size, position in zip(request.global_dim, _SIZES, strict=False):
        bits |= size - 1 << position
    for stride, (low, high) in zip(request.global_strides, _STRIDES, strict=False):
        if stride >> 36:
            bits |= stride >> 36 << high
        bits |= (stride >> 4 & 0xFFFFFFFF) << low
    for step, position in zip(request.element_strides, _STEPS, strict=False):
        if step != 1:
            bits |= step - 1 << position
    if isinstance(request, TensorMapTiled):
        for edge, position in zip(request.box_dim, _BOX, strict=False):
            bits |= edge - 1 << position
    else:
        bits |= _im2col_bits(request, rank)
    return bits | note_box_bytes(request) << _NOTE | _ALIGNMENT_BITS[request.swizzle]


def _im2col_bits(request: TensorMapIm2col | TensorMapIm2colWide, rank: int) -> int:
    if isinstance(request, TensorMapIm2col):
        lower, upper = request.pixel_box_lower_corner, request.pixel_box_upper_corner
    else:
        lower, upper = (request.pixel_box_lower_corner_width,), (request.pixel_box_upper_corner_width,)
    width = f.CORNER_WIDTH.get(rank, 0)
    mask = (1 << width) - 1
    low = high = shift = 0
    for value in lower:
        low |= (value & mask) << shift
        shift += width
    shift = 0
    for value in upper:
        high |= (value & mask) << shift
        shift += width
    return (
        1 << f.P_LOAD_MODE
        | request.channels_per_pixel - 1 << f.P_CHANNELS
        | low << f.P_LOWER
        | high << f.P_UPPER
        | request.pixels_per_column - 1 << f.P_PIXELS
    )


def encode(request: TensorMap, *, driver: int | None = None, arch: str = "sm_90a") -> bytes:
    """The 128 bytes of a tensor map, as the driver writes them.

    In memory the map must be aligned to 128 bytes (64 before CUDA 13). A request that was decoded and not changed
    since gives its map back, whatever the rules say of it.

    Args:
        driver: version of the driver that the map is for (13000 is CUDA 13.0): the remedies for its deviations
            (`quirks.QUIRKS`) are applied to bits that a decoded map brought along. None: no such driver.
        arch: the GPU whose limits hold.
    Raises:
        TmaLimitError: the request breaks rules; `.violations` has all of them.
        UnknownFactError: the format or the swizzle has bits that are not known.
        InvalidTypeError: not a request.
    Source:
        measured on NVIDIA H200, driver 580.159.04.

    >>> encode(TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=3))[:16].hex(" ", 8)
    '0010000000000000 1063000040000000'
    """
    try:
        residue = request.residue
    except AttributeError:
        raise InvalidTypeError(f"not a tensor map request: {type(request).__name__}") from None
    if residue is not None and residue.fields == request.field_values():
        bits = pack(request) ^ residue.bits
    else:
        found = violations(request, arch=arch)
        if found:
            refuse(request, found, arch)
        if request.swizzle > _LAST_KNOWN_SWIZZLE or request.data_type > _LAST_KNOWN_FORMAT:  # type: ignore[operator]
            row = unknown_addition(request)
            if row is not None:
                raise refuse_unknown(row)
        bits = pack(request)
        if residue is not None:
            bits |= residue.bits & f.RESERVED[not isinstance(request, TensorMapTiled)][request.rank]
    if driver is not None:
        bits &= ~clear_mask(request, driver)
    return bits.to_bytes(f.MAP_BYTES, "little")


def payload(request: TensorMap, *, driver: int | None = None, arch: str = "sm_90a") -> bytes:
    """The 64 bytes that the hardware reads: the lower half of `encode(request)`.

    Raises:
        As `encode`.

    >>> request = cute.tma.TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=3)
    >>> len(cute.tma.payload(request))
    64
    """
    return encode(request, driver=driver, arch=arch)[: f.PAYLOAD_BYTES]
