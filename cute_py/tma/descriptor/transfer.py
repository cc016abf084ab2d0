"""Compute what one instruction transfers with a map: bytes, rows, and the distance of rows in shared memory.

These functions serve descriptions of maps. The emulator computes the same values independently, and a test compares
them.
"""

from __future__ import annotations

from cute_py.argument_checks import expect_having
from cute_py.errors import InvalidValueError, UnknownFactError
from cute_py.tma.descriptor.data_types import FORMATS
from cute_py.tma.descriptor.limits import SLICE_BYTES, SWIZZLE_SPAN
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2colWide, TensorMapTiled


def measured_width(request: TensorMap) -> int:
    """Return the size of one element in bytes; 0 if the format is not known or was not measured.

    >>> measured_width(TensorMapTiled(9, 0, (8,), (), (8,))), measured_width(TensorMapTiled(99, 0, (8,), (), (8,)))
    (2, 0)
    """
    number = request.data_type
    if number is None or not 0 <= number < len(FORMATS) or FORMATS[number].code is None:
        return 0
    return FORMATS[number].bits >> 3


def is_sound(request: TensorMap) -> bool:
    """Whether the rank, tuple lengths and element strides of a request allow these functions to compute a result.

    The request may still be illegal.
    """
    if not isinstance(request, TensorMapTiled):
        return request.rank > 0
    lengths = len(request.box_dim) == len(request.element_strides) == request.rank > 0
    return lengths and min(request.element_strides) > 0


def element_bytes(request: TensorMap) -> int:
    """Return the size of one element in bytes.

    Raises:
        UnknownFactError: the format is not known, or its elements are not a multiple of 8 bits.
    """
    width = measured_width(request)
    if width == 0:
        raise UnknownFactError(
            f"the bytes of an element of format {request.data_type} in shared memory have not been measured"
        )
    return width


def visited(request: TensorMapTiled) -> tuple[int, ...]:
    """Count the coordinates that a tile visits in each mode: ceil(box / element stride).

    Without interleave, mode 0 ignores its element stride. With interleave, mode R-2 (the channel slice) counts as 1.

    >>> visited(TensorMapTiled(6, 0, (64, 64), (128,), (64, 9), (4, 2)))
    (64, 5)
    """
    counts = [-(-box // step) for box, step in zip(request.box_dim, request.element_strides, strict=True)]
    if request.interleave == 0:
        counts[0] = request.box_dim[0]
    elif len(counts) >= 2:
        counts[-2] = 1
    return tuple(counts)


def transaction_bytes(request: TensorMap) -> int:
    """Count the bytes that one load with this map delivers to the mbarrier of one CTA.

    Elements out of bounds are included.

    The driver's own note in the map (`note_box_bytes`) differs with interleave, and if an element stride does not
    divide the box. Do not use the note as the byte count that a barrier expects.

    Raises:
        UnknownFactError: the map is im2col-wide, so its bytes also depend on the instruction and were not measured; or
            its format was not measured.
    Source:
        measured on NVIDIA H200, driver 580.159.04 (loads of tiles and im2col, with and without interleave).

    >>> transaction_bytes(TensorMapTiled(6, 0, (64, 64), (128,), (64, 9), (1, 2)))      # 2 x 64 x ceil(9 / 2)
    640
    """
    expect_having(request, ("KIND",), "a request of a tensor map")
    if isinstance(request, TensorMapIm2colWide):
        raise UnknownFactError(
            "the transaction bytes of im2col-wide loads have not been measured",
            {"known": "the documentation states channels x pixels x element bytes, without a halo"},
        )
    if not is_sound(request):
        raise InvalidValueError(
            "the lengths or element strides of this request do not form a box, so its bytes are undefined",
            {"request": request},
        )
    size = SLICE_BYTES.get(request.interleave) or element_bytes(request)
    if isinstance(request, TensorMapTiled):
        for count in visited(request):
            size *= count
        return size
    if request.interleave == 0:
        size *= request.channels_per_pixel
    return size * request.pixels_per_column


def shared_row_bytes(request: TensorMap) -> int:
    """Return the bytes of one row in shared memory: the innermost box mode, or one channel slice with interleave.

    Raises:
        UnknownFactError: the format was not measured.
    """
    if request.interleave in SLICE_BYTES:
        return SLICE_BYTES[request.interleave]
    inner = request.box_dim[0] if isinstance(request, TensorMapTiled) else request.channels_per_pixel
    return inner * element_bytes(request)


def row_pitch(request: TensorMap) -> int:
    """Return the bytes from one row to the next in shared memory: the row, or the swizzle's span if that is larger.

    With interleave, rows follow each other without gaps.

    >>> row_pitch(TensorMapTiled(6, 0, (64, 64), (128,), (16, 8), swizzle=3))
    128
    """
    if request.interleave:
        return shared_row_bytes(request)
    return max(shared_row_bytes(request), SWIZZLE_SPAN.get(request.swizzle) or 0)
