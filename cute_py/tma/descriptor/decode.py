"""Decode the bytes of a tensor map to a request, without loss of information."""

from __future__ import annotations

import struct
from math import prod
from operator import floordiv
from typing import Any, Final

from cute_py.tma.descriptor import fields as f
from cute_py.tma.descriptor.data_types import (
    CODE_TO_FORMAT,
    FORMATS,
    Interleave,
    L2Promotion,
    OobFill,
    TensorMapDataType,
    TensorMapSwizzle,
)
from cute_py.tma.descriptor.limits import architecture
from cute_py.tma.descriptor.read import MapSource, read_map
from cute_py.tma.descriptor.request import Residue, TensorMapIm2col, TensorMapTiled, normal_request
from cute_py.tma.descriptor.violations import keeps_rules, listed_violations

_WORDS: Final = struct.Struct("<Q14I")
_INTERLEAVE: Final = (*Interleave, 3)
_SWIZZLE: Final = tuple(TensorMapSwizzle)
_L2: Final = tuple(L2Promotion)
_OOB: Final = tuple(OobFill)


def _format_of(code: int, tf32: int) -> tuple[TensorMapDataType | None, int, int]:
    """Return the format of a code and tf32 bit, its bytes per element, and the bits that belong to no format."""
    found = CODE_TO_FORMAT.get((code, tf32))
    if found is not None:
        return found, FORMATS[found].bits >> 3, 0
    if tf32:
        found, size, left = _format_of(code, 0)
        return found, size, left | 1 << f.P_TF32
    return None, 0, code << f.P_FORMAT


_FORMAT_OF: Final = tuple(_format_of(index & 15, index >> 4) for index in range(32))
"""Index: the four bits of the format, plus 16 with the tf32 bit."""
_GPU: Final = architecture("sm_90a")


def signed_corners(bits: int, rank: int) -> tuple[int, ...]:
    """Decode the corners of a map of this rank from 16 bits: two's complement integers, W in the lowest bits.

    >>> signed_corners(0xFEFF, 4)
    (-1, -2)
    """
    if rank == f.MAX_RANK:
        return (bits & 31 ^ 16) - 16, (bits >> 5 & 31 ^ 16) - 16, (bits >> 10 & 31 ^ 16) - 16
    if rank == 4:
        return (bits & 255 ^ 128) - 128, (bits >> 8 & 255 ^ 128) - 128
    return ((bits & 65535 ^ 32768) - 32768,) if rank == 3 else ()


def decode(data: MapSource) -> TensorMapTiled | TensorMapIm2col:
    """Decode a tensor map to the request that it was encoded from.

    The one exception is an im2col-wide map. No bit distinguishes it from an im2col map, so it decodes as im2col, and
    `.as_wide(mode)` converts it. `.residue` records bits without a field, unknown values of fields, and that the map
    breaks rules, so that `encode` returns the same 128 bytes in each case. If only 64 bytes are given, `decode` assumes
    the upper half that the driver would write.

    A rank above 5 is decoded as 5, and an unknown element format as `data_type=None`. Both are recorded in the residue,
    and `violations` reports them.

    Args:
        data: 64 or 128 bytes, or any other source that `read_map` accepts.
    Raises:
        See `read_map`.
    Source:
        measured on NVIDIA H200, driver 580.159.04.

    >>> decode(bytes(128)).residue is None, decode(bytes(128)).box_dim
    (False, (1,))
    """
    raw = read_map(data)
    # These are the rows of fields.FIELDS, written out by 32-bit words for speed; a test compares the two.
    address, kinds, s0, s1, s2, s3, high, d0, d1, d2, d3, d4, steps, box, pixels = _WORDS.unpack_from(raw)
    rank = (kinds >> 4 & 7) + 1
    left = 0
    if rank > f.MAX_RANK:
        left = (rank - 1 ^ f.MAX_RANK - 1) << f.P_RANK
        rank = f.MAX_RANK
    data_type, size, unread = _FORMAT_OF[kinds >> 12 & 16 | kinds >> 7 & 15]
    left |= unread
    interleave, swizzle = _INTERLEAVE[kinds >> 11 & 3], _SWIZZLE[kinds >> 13 & 3]
    oob_fill, l2_promotion = _OOB[kinds >> 15 & 1], _L2[kinds >> 17 & 3]
    sizes = (d0 + 1, d1 + 1, d2 + 1, d3 + 1, d4 + 1)[:rank]
    strides = (
        s0 << 4 | (high & 0xF) << 36,
        s1 << 4 | (high & 0xF0) << 32,
        s2 << 4 | (high & 0xF00) << 28,
        s3 << 4 | (high & 0xF000) << 24,
    )[: rank - 1]
    every = (
        (steps & 7) + 1,
        (steps >> 3 & 7) + 1,
        (steps >> 6 & 7) + 1,
        (steps >> 9 & 7) + 1,
        (steps >> 12 & 7) + 1,
    )[:rank]
    inner = (steps >> 24) + 1
    values: tuple[Any, ...]
    kind: Any
    if im2col := kinds & 1:
        count = (pixels & 0x3FF) + 1
        lower, upper = signed_corners(box, rank), signed_corners(box >> 16, rank)
        note = size * inner * count
        kind = TensorMapIm2col
        values = (
            *(data_type, address, sizes, strides, lower, upper, inner, count),
            *(every, interleave, swizzle, l2_promotion, oob_fill),
        )
    else:
        edges = (inner, (box & 255) + 1, (box >> 8 & 255) + 1, (box >> 16 & 255) + 1, (box >> 24) + 1)[:rank]
        note = size * prod(map(floordiv, edges, every))
        kind = TensorMapTiled
        values = (data_type, address, sizes, strides, edges, every, interleave, swizzle, l2_promotion, oob_fill)
    bits = int.from_bytes(raw, "little")
    left |= bits & f.RESERVED[im2col][rank]
    if len(raw) == f.MAP_BYTES:
        upper_half = bits >> 512
        as_written = note | f.SMEM_ALIGNMENT[swizzle] << 64
        if upper_half != as_written:
            left |= (upper_half ^ as_written) << 512
    request: TensorMapTiled | TensorMapIm2col = normal_request(kind, *values)
    if left or (not keeps_rules(request, _GPU) and listed_violations(request)):
        request = normal_request(kind, *values, Residue(left, values))
    return request
