"""A tensor map's bytes as a request, with nothing lost."""

from __future__ import annotations

import struct
from typing import Any, Final

from cute_py.tma.descriptor import fields as f
from cute_py.tma.descriptor.formats import CODE_TO_FORMAT, FORMATS, Interleave, L2Promotion, OobFill, TensorMapSwizzle
from cute_py.tma.descriptor.read import MapSource, read_map
from cute_py.tma.descriptor.request import Residue, TensorMapIm2col, TensorMapTiled, normal_request
from cute_py.tma.descriptor.violations import violations

_WORDS: Final = struct.Struct("<8Q")
_INTERLEAVE: Final = (*Interleave, 3)
_SWIZZLE: Final = tuple(TensorMapSwizzle)
_L2: Final = tuple(L2Promotion)
_OOB: Final = tuple(OobFill)


def signed_corners(bits: int, rank: int) -> tuple[int, ...]:
    """The corners of a map of this rank, as its low 16 bits hold them: two's complement, W lowest.

    >>> signed_corners(0xFEFF, 4)
    (-1, -2)
    """
    if rank == f.MAX_RANK:
        return (bits & 31 ^ 16) - 16, (bits >> 5 & 31 ^ 16) - 16, (bits >> 10 & 31 ^ 16) - 16
    if rank == 4:
        return (bits & 255 ^ 128) - 128, (bits >> 8 & 255 ^ 128) - 128
    return ((bits & 65535 ^ 32768) - 32768,) if rank == 3 else ()


def decode(data: MapSource) -> TensorMapTiled | TensorMapIm2col:
    """The request that a map holds.

    Every map that a driver wrote comes back as the request that it was encoded from, except that an im2col-wide map
    leaves no bit of its own: it decodes as im2col, and `.as_wide(mode)` converts. Bits without a field, and values
    that no field knows, are kept in `.residue`; so is the fact that the rules refuse the map. `encode` gives the
    same 128 bytes back in each case. From 64 bytes, the upper half is taken to be as the driver writes it.

    A rank above 5 is read as 5, an unknown element format as `data_type=None`; both are in the residue, and
    `violations` names them.

    Args:
        data: 64 or 128 bytes, or anything else that `read_map` takes.
    Raises:
        As `read_map`.
    Source:
        measured on NVIDIA H200, driver 580.159.04.

    >>> decode(bytes(128)).residue is None, decode(bytes(128)).box_dim
    (False, (1,))
    """
    raw = read_map(data)
    # The rows of fields.FIELDS, written out word by word for speed; a test holds the two together.
    w0, w1, w2, w3, w4, w5, w6, w7 = _WORDS.unpack_from(raw)
    rank = (w1 >> 4 & 7) + 1
    left = 0
    if rank > f.MAX_RANK:
        left = (rank - 1 ^ f.MAX_RANK - 1) << f.P_RANK
        rank = f.MAX_RANK
    code, tf32 = w1 >> 7 & 15, w1 >> 16 & 1
    data_type = CODE_TO_FORMAT.get((code, tf32))
    if data_type is None:
        data_type = CODE_TO_FORMAT.get((code, 0))
        left |= tf32 << f.P_TF32
        if data_type is None:
            left |= code << f.P_FORMAT
    interleave, swizzle = _INTERLEAVE[w1 >> 11 & 3], _SWIZZLE[w1 >> 13 & 3]
    oob_fill, l2_promotion = _OOB[w1 >> 15 & 1], _L2[w1 >> 17 & 3]
    dims = (
        (w4 & 0xFFFFFFFF) + 1,
        (w4 >> 32) + 1,
        (w5 & 0xFFFFFFFF) + 1,
        (w5 >> 32) + 1,
        (w6 & 0xFFFFFFFF) + 1,
    )[:rank]
    strides = (
        ((w1 >> 32) | (w3 >> 32 & 15) << 32) << 4,
        ((w2 & 0xFFFFFFFF) | (w3 >> 36 & 15) << 32) << 4,
        ((w2 >> 32) | (w3 >> 40 & 15) << 32) << 4,
        ((w3 & 0xFFFFFFFF) | (w3 >> 44 & 15) << 32) << 4,
    )[: rank - 1]
    steps = (
        (w6 >> 32 & 7) + 1,
        (w6 >> 35 & 7) + 1,
        (w6 >> 38 & 7) + 1,
        (w6 >> 41 & 7) + 1,
        (w6 >> 44 & 7) + 1,
    )[:rank]
    inner = (w6 >> 56) + 1
    size = 0 if data_type is None else FORMATS[data_type].bits >> 3
    values: tuple[Any, ...]
    kind: Any
    if w1 & 1:
        pixels = (w7 >> 32 & 0x3FF) + 1
        lower = signed_corners(w7, rank)
        upper = signed_corners(w7 >> 16, rank)
        note = size * inner * pixels
        kind = TensorMapIm2col
        values = (
            *(data_type, w0, dims, strides, lower, upper, inner, pixels),
            *(steps, interleave, swizzle, l2_promotion, oob_fill),
        )
    else:
        box = (inner, (w7 & 255) + 1, (w7 >> 8 & 255) + 1, (w7 >> 16 & 255) + 1, (w7 >> 24 & 255) + 1)[:rank]
        note = size
        for edge, step in zip(box, steps, strict=True):
            note *= edge // step
        kind = TensorMapTiled
        values = (data_type, w0, dims, strides, box, steps, interleave, swizzle, l2_promotion, oob_fill)
    left |= int.from_bytes(raw[:64], "little") & f.RESERVED[w1 & 1][rank]
    if len(raw) == f.MAP_BYTES:
        upper_half = int.from_bytes(raw[64:], "little")
        as_written = note | f.SMEM_ALIGNMENT[swizzle] << 64
        if upper_half != as_written:
            left |= (upper_half ^ as_written) << 512
    request: TensorMapTiled | TensorMapIm2col = normal_request(kind, values, None)
    if left or violations(request):
        request = normal_request(kind, values, Residue(left, values))
    return request
