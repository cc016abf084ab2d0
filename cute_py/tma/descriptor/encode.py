"""A request as the 128 bytes that the driver writes for it: its fields, and two notes in the upper half.

The hardware does not read the notes. Some driver versions deviate from these bits (`QUIRKS`, by name, condition and
source); `encode` writes none of them, and `replace.repaired` applies what is known against them to a map that such a
driver wrote.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from cute_py.argument_checks import expect_having, expect_integer, record
from cute_py.tma.descriptor import fields as f
from cute_py.tma.descriptor.data_types import FORMATS, TensorMapDataType, TensorMapSwizzle
from cute_py.tma.descriptor.limits import GPUS, architecture, refuse_unknown, unknown_addition
from cute_py.tma.descriptor.request import (
    HasRequest,
    TensorMap,
    TensorMapTiled,
    corners_of,
    format_bits,
    request_of,
)
from cute_py.tma.descriptor.violations import breaks_none, broken_rules, refuse_request

__all__ = ["QUIRKS", "Quirk", "encode", "note_box_bytes", "payload"]

_LAST_KNOWN_SWIZZLE: Final = int(TensorMapSwizzle.B128)
_LAST_KNOWN_FORMAT: Final = int(TensorMapDataType.TFLOAT32_FTZ)

_FORMAT_BITS: Final = tuple(
    ((row.code or 0) << f.P_FORMAT % 64 | row.tf32_round << f.P_TF32 % 64, row.bits >> 3) for row in FORMATS
)
"""(format code and tf32 bit in place in word 1, bytes of an element), by the driver's number."""
_WORDS: Final = struct.Struct("<Q14I2Q48x")


def note_box_bytes(request: TensorMap) -> int:
    """Word 8: the driver's note of the bytes of the box.

    Element bytes times floor(box / element stride) over all modes; im2col: times channels and pixels. It is not what
    the hardware delivers where an element stride does not divide the box, nor with interleave
    (`cute_py.tma.descriptor.transfer`). 0 where the element format is not known.

    Returns:
        bytes.
    Source:
        measured on NVIDIA H200, driver 580.159.04.

    >>> note_box_bytes(TensorMapTiled(7, 0, (64, 64), (256,), (16, 9), (1, 2)))    # 4 bytes x 16 x floor(9 / 2)
    256
    """
    expect_having(request, ("KIND", "data_type"), "a request of a tensor map")
    size = format_bits(request.data_type) >> 3
    if isinstance(request, TensorMapTiled):
        for box, step in zip(request.box_dim, request.element_strides, strict=False):
            size *= box // step
        return size
    return size * request.channels_per_pixel * request.pixels_per_column


def map_bytes(request: TensorMap) -> bytes:
    """The fields of a request as the 128 bytes of a map; its values must fit their fields.

    No rule is checked here, and no residue is added.
    """
    # The rows of fields.FIELDS, written out by words of 32 bits for speed; a test holds the two together.
    rank = len(request.global_dim)
    d0, d1, d2, d3, d4 = request.global_dim + f.ONES[rank]
    s0, s1, s2, s3 = request.global_strides + f.ZEROS[rank]
    kinds = (
        rank - 1 << 4
        | request.interleave << 11
        | request.swizzle << 13
        | request.oob_fill << 15
        | request.l2_promotion << 17
    )
    size = 0
    if request.data_type is not None:
        bits, size = _FORMAT_BITS[request.data_type]
        kinds |= bits
    steps = 0
    if request.element_strides != f.UNIT_STEPS[rank]:
        e0, e1, e2, e3, e4 = request.element_strides + f.ONES[rank]
        steps = e0 - 1 | e1 - 1 << 3 | e2 - 1 << 6 | e3 - 1 << 9 | e4 - 1 << 12
    if isinstance(request, TensorMapTiled):
        b0, b1, b2, b3, b4 = request.box_dim + f.ONES[rank]
        inner, box, pixels = b0, b1 - 1 | b2 - 1 << 8 | b3 - 1 << 16 | b4 - 1 << 24, 1
        note = size * b0 * b1 * b2 * b3 * b4
        if steps:
            note = size * (b0 // e0) * (b1 // e1) * (b2 // e2) * (b3 // e3) * (b4 // e4)
    else:
        kinds |= 1
        inner, pixels = request.channels_per_pixel, request.pixels_per_column
        width = f.CORNER_WIDTH.get(rank, 0)
        mask = (1 << width) - 1
        lower, upper = corners_of(request)
        low = high = 0
        for corner in reversed(lower):  # two's complement, W lowest
            low = low << width | corner & mask
        for corner in reversed(upper):
            high = high << width | corner & mask
        box = low | high << 16
        note = size * inner * pixels
    return _WORDS.pack(
        request.global_address,
        kinds,
        s0 >> 4 & 0xFFFFFFFF,
        s1 >> 4 & 0xFFFFFFFF,
        s2 >> 4 & 0xFFFFFFFF,
        s3 >> 4 & 0xFFFFFFFF,
        s0 >> 36 | s1 >> 36 << 4 | s2 >> 36 << 8 | s3 >> 36 << 12,
        d0 - 1,
        d1 - 1,
        d2 - 1,
        d3 - 1,
        d4 - 1,
        steps | inner - 1 << 24,
        box,
        pixels - 1,
        note,
        f.SMEM_ALIGNMENT[request.swizzle],
    )


def pack(request: TensorMap) -> int:
    """`map_bytes` as one 1024-bit number, bit 0 first."""
    return int.from_bytes(map_bytes(request), "little")


def extent_bytes(request: TensorMap) -> int:
    """Bytes from the first element to just past the last one, strides included (not negative, in any order).

    >>> extent_bytes(TensorMapTiled(6, 0, (8, 4), (32,), (8, 4)))
    112
    """
    inner = request.global_dim[0] if request.global_dim else 1
    bits = 8 if request.data_type is None else request.element_bits
    last = (inner - 1) * bits // 8 + -(-bits // 8)
    return last + sum(
        (size - 1) * step for size, step in zip(request.global_dim[1:], request.global_strides, strict=False)
    )


@record
class Quirk:
    """One deviation: drivers that `drivers` describes may set `mask` in `word`; clearing it is the known remedy."""

    name: str
    word: int
    mask: int
    last_driver: int
    """Newest version (1000 x major + 10 x minor) for which the remedy is applied."""
    applies: Callable[[TensorMap], bool]
    """The condition on the tensor."""
    condition: str
    effect: str
    source: str


SMALL_TENSOR_BYTES: Final = 131_072

QUIRKS: Final[tuple[Quirk, ...]] = (
    Quirk(
        "bit 85",
        1,
        1 << 21,
        13030,
        lambda request: extent_bytes(request) < SMALL_TENSOR_BYTES,
        "driver up to 13030 (CuTe: up to 13010), tensor below 131072 bytes",
        "sporadic illegal memory accesses on Blackwell where the allocation is below 128 KiB and not dense",
        "NVIDIA release notes 595.71.05, known issues; CUTLASS copy_traits_sm90_tma.hpp, make_tma_copy_desc. "
        "Never set by driver 580.159.04 on an NVIDIA H200",
    ),
)


def clear_mask(request: TensorMap, driver: int) -> int:
    """Ones on the bits, in the whole map, that the remedies for this driver clear.

    Args:
        driver: version as cuDriverGetVersion gives it: 13000 is CUDA 13.0.
    Raises:
        InvalidTypeError: not an integer.
    """
    driver, mask = expect_integer(driver, "driver, a version such as 13000,"), 0
    for row in QUIRKS:
        if driver <= row.last_driver and row.applies(request):
            mask |= row.mask << (64 * row.word)
    return mask


def encode(request: TensorMap | HasRequest, *, driver: int | None = None, arch: str = "sm_90a") -> bytes:
    """The 128 bytes of a tensor map, as the driver writes them.

    In memory the map must be aligned to 128 bytes (64 before CUDA 13). A request that was decoded and not changed
    since gives its map back, whatever the rules say of it.

    Args:
        request: or what holds one: an atom, a descriptor or an operation of the reference pages.
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
    request = request_of(request)
    gpu = (GPUS.get(arch) if isinstance(arch, str) else None) or architecture(arch)
    if driver is None and breaks_none(request, gpu):
        return map_bytes(request)
    bits = _as_found(request)
    if bits is None:
        found = broken_rules(request, gpu)
        if found:
            refuse_request(request, found, arch)
        if request.swizzle > _LAST_KNOWN_SWIZZLE or request.data_type > _LAST_KNOWN_FORMAT:  # type: ignore[operator]
            row = unknown_addition(request)
            if row is not None:
                raise refuse_unknown(row)
        bits = pack(request)
        if request.residue is not None:  # bits that no field has: those that are packed are 0 there
            bits |= request.residue.bits & f.RESERVED[not isinstance(request, TensorMapTiled)][request.rank]
    if driver is not None:
        bits &= ~clear_mask(request, driver)
    return bits.to_bytes(f.MAP_BYTES, "little")


def _as_found(request: TensorMap) -> int | None:
    """The bits of the map that a request was decoded from; None if it was not, or has been changed since."""
    residue = request.residue
    if residue is None or residue.fields != request.field_values():
        return None
    try:
        return pack(request) ^ residue.bits
    except (struct.error, IndexError, ValueError):  # a residue made by hand, for values that no map holds
        return None


def payload(request: TensorMap | HasRequest, *, driver: int | None = None, arch: str = "sm_90a") -> bytes:
    """The 64 bytes that the hardware reads: the lower half of `encode(request)`.

    Raises:
        As `encode`.

    >>> request = cute.tma.TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=3)
    >>> len(cute.tma.payload(request))
    64
    """
    return encode(request, driver=driver, arch=arch)[: f.PAYLOAD_BYTES]
