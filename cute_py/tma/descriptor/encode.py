"""Encode a request to the 128 bytes that the driver writes: the bit fields, and two notes in the upper half.

The hardware does not read the notes. Some driver versions write different bits; `QUIRKS` has the name, condition and
source of each deviation. `encode` does not reproduce the deviations. `replace.repaired` applies the known remedies to a
map that such a driver wrote.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from cute_py.argument_checks import expect_having, expect_integer, record
from cute_py.tma.descriptor import fields as f
from cute_py.tma.descriptor.data_types import TensorMapDataType, TensorMapSwizzle
from cute_py.tma.descriptor.expressions import RequestForm, instantiated, legal_form, request_value
from cute_py.tma.descriptor.fixes import refuse_request
from cute_py.tma.descriptor.limits import GPUS, Architecture, architecture, refuse_unknown, unknown_addition
from cute_py.tma.descriptor.request import (
    HasRequest,
    TensorMap,
    TensorMapTiled,
    request_of,
)
from cute_py.tma.descriptor.violations import JUDGED, NO_LEGAL_VALUE, broken_rules, has_legal_rank, is_broken

__all__ = ["QUIRKS", "Quirk", "encode", "note_box_bytes", "payload"]

_LAST_KNOWN_SWIZZLE: Final = int(TensorMapSwizzle.B128)
_LAST_KNOWN_FORMAT: Final = int(TensorMapDataType.TFLOAT32_FTZ)


def note_box_bytes(request: TensorMap) -> int:
    """Return word 8 of a map, where the driver notes the number of bytes of the box.

    The note is the element size times the product of floor(box / element stride) over all modes; for im2col, the
    element size times channels times pixels. With interleave, or if an element stride does not divide the box, the
    hardware delivers another number of bytes (`cute_py.tma.descriptor.transfer`). The note is 0 if the element format
    is not known.

    Returns:
        bytes.
    Source:
        measured on NVIDIA H200, driver 580.159.04.

    >>> note_box_bytes(TensorMapTiled(7, 0, (64, 64), (256,), (16, 9), (1, 2)))    # 4 bytes x 16 x floor(9 / 2)
    256
    """
    expect_having(request, ("KIND", "data_type"), "a request of a tensor map")
    return request_value(request, f.field("note_box_bytes").value)


Packer: TypeAlias = "tuple[Callable[..., tuple[Any, ...]], tuple[int, ...], tuple[int, ...]]"


@functools.lru_cache(maxsize=64)
def packer(form: RequestForm, *, strict: bool, judged: bool = False) -> Packer:
    """Compile the function that packs requests of a form: return (function, positions, widths).

    The function takes a request or columns, and the data type. It returns the integers of a map at these bit positions,
    with these widths of 32 or 64 bits, lowest first; all other bits are 0. For columns, an integer may be an array with
    one value per map. With `judged`, the source must be a request; the function then also takes the bytes of shared
    memory of the GPU, and returns None for a request that breaks a rule.
    """
    rank = form.length["rank"]
    parts: dict[int, list[str]] = {}
    width = {}
    for row in f.live_fields(not form.tiled, rank):
        piece = row.position // 64 * 64 if row.width > 32 else row.position // 32 * 32
        width[piece] = max(row.width, 32)
        for value, shift in _stored(form, row):
            text = instantiated(value)
            parts.setdefault(piece, []).append(f"({text}) << {shift}" if (shift := shift - piece) else f"({text})")
    known = f"is_im2col = {int(not form.tiled)}"
    body = [known, "return (" + ", ".join([" | ".join(values) for values in parts.values()]) + ",)"]
    if judged:
        body.insert(0, f"if {is_broken(form, strict=strict)}: return None")
    numbers = form.function(JUDGED if judged else "data_type", body, strict=strict)
    return numbers, tuple(parts), tuple([width[piece] for piece in parts])


def _stored(form: RequestForm, row: f.BitField) -> Iterator[tuple[str, int]]:
    """Yield (expression, position of its lowest bit) for a field; a field of corners has one pair per corner."""
    if row.value not in ("lower", "upper"):
        yield row.value, row.position
        return
    width = f.CORNER_WIDTH[form.length["rank"]]
    for i in range(form.length[row.value]):  # two's complement, W lowest
        yield f"{row.value}[{i}] & {(1 << width) - 1}", row.position + i * width


Compiled: TypeAlias = "tuple[Callable[..., Any], Callable[..., bytes]]"
_PACKERS: Final[dict[tuple[type[TensorMap], int], Compiled]] = {}
_JUDGED_PACKERS: Final[dict[tuple[type[TensorMap], int], Compiled]] = {}


def _compiled(kind: type[TensorMap], rank: int, *, judged: bool = False) -> Compiled:
    """Return the function of `packer`, and the function that packs its integers into 128 bytes."""
    numbers, positions, widths = packer(legal_form(kind, rank), strict=True, judged=judged)
    text, end = "<", 0
    for position, width in zip(positions, widths, strict=True):
        text += f"{(position - end) // 8}x" + ("Q" if width == 64 else "I")
        end = position + width
    return numbers, struct.Struct(f"{text}{f.MAP_BYTES - end // 8}x").pack


def map_bytes(request: TensorMap) -> bytes:
    """Write the fields of a request as the 128 bytes of a map. The values must fit their fields.

    The function checks no rule and adds no residue.
    """
    key = type(request), len(request.global_dim)
    compiled = _PACKERS.get(key)
    if compiled is None:
        compiled = _PACKERS[key] = _compiled(*key)
    numbers, joined = compiled
    return joined(*numbers(request, -1 if request.data_type is None else request.data_type))


def legal_map(request: TensorMap, gpu: Architecture) -> bytes | None:
    """Return `map_bytes` of a request that keeps the rules, otherwise None. The fields are read only once."""
    if request.residue is not None:
        return None
    key = type(request), len(request.global_dim)
    compiled = _JUDGED_PACKERS.get(key)
    try:
        if compiled is None:
            if not has_legal_rank(*key):
                return None
            compiled = _JUDGED_PACKERS[key] = _compiled(*key, judged=True)
        numbers = compiled[0](request, request.data_type, gpu.shared_memory_bytes)
    except NO_LEGAL_VALUE:
        return None
    return None if numbers is None else compiled[1](*numbers)


def pack(request: TensorMap) -> int:
    """Return `map_bytes` as one little-endian 1024-bit integer."""
    return int.from_bytes(map_bytes(request), "little")


def extent_bytes(request: TensorMap) -> int:
    """Count the bytes from the start of the first element to the end of the last one.

    Strides must not be negative, and may be in any order.

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
    """One deviation of the driver.

    Versions in the range `drivers` may set the bits `mask` of word `word`. The known remedy is to clear these bits.

    >>> [one.name for one in QUIRKS]
    ['bit 85']
    """

    name: str
    word: int
    mask: int
    last_driver: int
    """Newest version (1000 x major + 10 x minor) that needs the remedy."""
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
        "sporadic illegal memory accesses on Blackwell if the allocation is below 128 KiB and not dense",
        "NVIDIA release notes 595.71.05, known issues; CUTLASS copy_traits_sm90_tma.hpp, make_tma_copy_desc. "
        "Never set by driver 580.159.04 on an NVIDIA H200",
    ),
)


def clear_mask(request: TensorMap, driver: int) -> int:
    """Return the 1024-bit mask of the bits that the remedies for this driver clear.

    Args:
        driver: the version that cuDriverGetVersion returns: 13000 is CUDA 13.0.
    Raises:
        InvalidTypeError: the version is not an integer.
    """
    driver, mask = expect_integer(driver, "driver, a version such as 13000,"), 0
    for row in QUIRKS:
        if driver <= row.last_driver and row.applies(request):
            mask |= row.mask << (64 * row.word)
    return mask


def encode(request: TensorMap | HasRequest, *, driver: int | None = None, arch: str = "sm_90a") -> bytes:
    """Encode a request to the 128 bytes of a tensor map, as the driver writes them.

    In memory, the map must be aligned to 128 bytes (64 before CUDA 13). A request that was decoded and not changed
    encodes to the original map, even if the map breaks rules.

    Args:
        request: a request, or an object that holds one (an atom, a descriptor or an operation of the reference pages).
        driver: the version of the driver that the map is for (13000 is CUDA 13.0). The remedies for its deviations
            (`QUIRKS`) are applied to the bits of a decoded map. None: no remedy is applied.
        arch: the GPU whose limits apply.
    Raises:
        TmaLimitError: the request breaks rules; `.violations` lists all of them.
        UnknownFactError: the bits of the format or of the swizzle are unknown.
        InvalidTypeError: the object is not a request.
    Source:
        measured on NVIDIA H200, driver 580.159.04.

    >>> encode(TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=3))[:16].hex(" ", 8)
    '0010000000000000 1063000040000000'
    """
    request = request_of(request)
    gpu = (GPUS.get(arch) if isinstance(arch, str) else None) or architecture(arch)
    if driver is None and (legal := legal_map(request, gpu)) is not None:
        return legal
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
        if request.residue is not None:  # bits that belong to no field; the packed fields are 0 there
            bits |= request.residue.bits & f.RESERVED[not isinstance(request, TensorMapTiled)][request.rank]
    if driver is not None:
        bits &= ~clear_mask(request, driver)
    return bits.to_bytes(f.MAP_BYTES, "little")


def _as_found(request: TensorMap) -> int | None:
    """Return the bits of the map that a request was decoded from; None if it was not decoded, or was changed since."""
    residue = request.residue
    if residue is None or residue.fields != request.field_values():
        return None
    try:
        return pack(request) ^ residue.bits
    except (struct.error, IndexError, ValueError):  # a residue made by hand, with values that no map can hold
        return None


def payload(request: TensorMap | HasRequest, *, driver: int | None = None, arch: str = "sm_90a") -> bytes:
    """Return the 64 bytes that the hardware reads: the lower half of `encode(request)`.

    Args:
        See `encode`.
    Raises:
        See `encode`.

    >>> request = cute.tma.TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=3)
    >>> len(cute.tma.payload(request))
    64
    """
    return encode(request, driver=driver, arch=arch)[: f.PAYLOAD_BYTES]
