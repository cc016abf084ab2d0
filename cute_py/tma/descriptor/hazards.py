"""What is legal in a tensor map and likely to hurt: one table, queried by `hazards`.

The driver accepts all of it. Each row says when it applies, what happens then, and who says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from cute_py.argument_checks import expect_fields
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.formats import CUDA_H, FORMATS, MEASURED
from cute_py.tma.descriptor.limits import STORE_UNIT
from cute_py.tma.descriptor.notes import note_box_bytes
from cute_py.tma.descriptor.quirks import QUIRKS
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled
from cute_py.tma.descriptor.transfer import (
    SLICE_BYTES,
    SPAN_BYTES,
    is_sound,
    measured_width,
    row_bytes,
    transaction_bytes,
)


@dataclass(frozen=True, slots=True)
class Hazard:
    """One row: `finds(request)` gives the values that make it apply, as text, or None."""

    name: str
    effect: str
    source: str
    finds: Callable[[TensorMap], str | None]

    def __post_init__(self) -> None:
        expect_fields(self)


@dataclass(frozen=True, slots=True)
class Warned:
    """A hazard that applies to a map."""

    name: str
    values: str
    effect: str
    source: str

    def __post_init__(self) -> None:
        expect_fields(self)

    def __str__(self) -> str:
        return f"{self.name}: {self.values}; {self.effect}"


def _null_address(request: TensorMap) -> str | None:
    return "globalAddress = 0" if request.global_address == 0 else None


def _ragged_rows(request: TensorMap) -> str | None:
    if request.interleave or not request.global_dim or not measured_width(request):
        return None
    size = request.global_dim[0] * measured_width(request)
    return f"rows of {size} bytes" if size % STORE_UNIT else None


def _box_beyond(request: TensorMap) -> str | None:
    if not isinstance(request, TensorMapTiled):
        return None
    inner = SLICE_BYTES.get(request.interleave)
    pairs = enumerate(zip(request.box_dim, request.global_dim, strict=False))
    skip = request.rank - 2 if inner else None
    return ", ".join(f"boxDim[{i}] = {box} > {size}" for i, (box, size) in pairs if box > size and i != skip) or None


def _zero_stride(request: TensorMap) -> str | None:
    pairs = enumerate(zip(request.global_strides, request.global_dim[1:], strict=False))
    return ", ".join(f"globalStrides[{i}] = 0" for i, (stride, size) in pairs if stride == 0 and size > 1) or None


def _overlap(request: TensorMap) -> str | None:
    if not request.global_dim or not measured_width(request):
        return None
    inner = SLICE_BYTES.get(request.interleave) or measured_width(request)
    found: list[str] = []
    reach = request.global_dim[0] * inner
    modes = sorted(
        (stride, i)
        for i, stride in enumerate(request.global_strides)
        if stride and request.global_dim[i + 1 : i + 2] > (1,)
    )
    for stride, i in modes:
        if stride < reach:
            found.append(f"globalStrides[{i}] = {stride} < {reach} bytes")
        reach += (request.global_dim[i + 1] - 1) * stride
    return ", ".join(found) or None


def _tf32(request: TensorMap) -> str | None:
    number = request.data_type
    if number is None or not measured_width(request) or not FORMATS[number].tf32_round:
        return None
    return FORMATS[number].data_type.name


def _ftz(request: TensorMap) -> str | None:
    return "FLOAT32_FTZ" if request.data_type == 10 else None


def _stale_note(request: TensorMap) -> str | None:
    if isinstance(request, TensorMapIm2colWide) or not measured_width(request):
        return None
    if not is_sound(request):
        return None
    note, real = note_box_bytes(request), transaction_bytes(request)
    return f"note {note} bytes, delivered {real} bytes" if note != real else None


def _ignored_step(request: TensorMap) -> str | None:
    steps = request.element_strides
    return f"elementStrides[0] = {steps[0]}" if steps and steps[0] != 1 and request.interleave == 0 else None


def _swizzle_interleave(request: TensorMap) -> str | None:
    return f"swizzle {int(request.swizzle)}" if request.interleave == 2 and request.swizzle != 1 else None


def _channel_slice(request: TensorMap) -> str | None:
    piece = SLICE_BYTES.get(request.interleave)
    if piece is None or not measured_width(request):
        return None
    if isinstance(request, TensorMapTiled):
        if 2 <= request.rank == len(request.box_dim) and request.box_dim[-2] > 1:
            return f"boxDim[{request.rank - 2}] = {request.box_dim[-2]}"
        return None
    size = request.channels_per_pixel * measured_width(request)
    return f"{size} channel bytes, slice of {piece}" if size > piece else None


def _row_gap(request: TensorMap) -> str | None:
    span = SPAN_BYTES.get(request.swizzle)
    if span is None or request.interleave or not measured_width(request):
        return None
    if isinstance(request, TensorMapTiled) and not request.box_dim:
        return None
    size = row_bytes(request)
    return f"rows of {size} bytes, {span} apart" if size < span else None


def _store_corner(request: TensorMap) -> str | None:
    if not isinstance(request, TensorMapIm2col):
        return None
    if min(request.pixel_box_lower_corner, default=0) < 0 or max(request.pixel_box_upper_corner, default=0) > 0:
        return f"corners {request.pixel_box_lower_corner} to {request.pixel_box_upper_corner}"
    return None


def _wide_swizzle(request: TensorMap) -> str | None:
    return (
        f"swizzle {int(request.swizzle)}" if isinstance(request, TensorMapIm2colWide) and request.swizzle < 2 else None
    )


def _beyond_coordinates(request: TensorMap) -> str | None:
    sizes = enumerate(request.global_dim)
    return ", ".join(f"globalDim[{i}] = {size}" for i, size in sizes if size > 1 << 31) or None


def _unread_bits(request: TensorMap) -> str | None:
    if request.residue is None:
        return None
    words = {word: bits for word, bits in request.residue.unknown_words.items() if word < 8}
    return ", ".join(f"word {word} has 0x{bits:x}" for word, bits in words.items()) or None


def _old_notes(request: TensorMap) -> str | None:
    if request.residue is None:
        return None
    words = [word for word in request.residue.unknown_words if word >= 8]
    return "words " + ", ".join(map(str, words)) if words else None


def _quirks(request: TensorMap) -> str | None:
    if request.residue is None:
        return None
    words = request.residue.unknown_words
    found = [row.name for row in QUIRKS if words.get(row.word, 0) & row.mask and row.applies(request)]
    return ", ".join(found) or None


_H: Final = MEASURED

HAZARDS: Final[tuple[Hazard, ...]] = (
    Hazard("null address", "the driver accepts it, a copy through it faults", _H, _null_address),
    Hazard("ragged rows", "a store at the end of a row overwrites up to the next 16 bytes", _H, _ragged_rows),
    Hazard(
        "box beyond tensor", "the rest is filled on loads, and still counts in the transaction bytes", _H, _box_beyond
    ),
    Hazard(
        "stride 0", "all coordinates of the mode are the same bytes; stores and reductions collide", _H, _zero_stride
    ),
    Hazard("overlap", "modes share bytes; stores write them more than once, in no order", _H, _overlap),
    Hazard("tf32 rounding", "loads round each element to tf32; what arrives is not what was stored", _H, _tf32),
    Hazard("ftz", "loads do not flush denormals, whatever the name says", _H, _ftz),
    Hazard("driver's note", "a barrier must expect what is delivered, not word 8 of the map", _H, _stale_note),
    Hazard("element stride of mode 0", "it is ignored without interleave", _H, _ignored_step),
    Hazard(
        "interleave 32B",
        "documented to need swizzle 32B; the driver does not insist",
        f"{CUDA_H}; {_H}",
        _swizzle_interleave,
    ),
    Hazard("channel slice", "a load moves one slice; the rest is not delivered", _H, _channel_slice),
    Hazard("row gap", "bytes between the rows in shared memory keep their old values", _H, _row_gap),
    Hazard("store corners", "an im2col store through this map traps", _H, _store_corner),
    Hazard(
        "wide swizzle",
        "documented to need swizzle 64B or 128B; the driver does not insist",
        f"{CUDA_H}; {_H}",
        _wide_swizzle,
    ),
    Hazard(
        "coordinates",
        "coordinates are signed 32-bit numbers; elements from 2**31 on can't be addressed",
        "PTX ISA, cp.async.bulk.tensor",
        _beyond_coordinates,
    ),
    Hazard("unknown bits", "they have no known meaning, and no driver that was measured sets them", _H, _unread_bits),
    Hazard(
        "old notes", "the upper half does not belong to the lower one; the hardware does not read it", _H, _old_notes
    ),
    Hazard("driver bug", QUIRKS[0].effect, QUIRKS[0].source, _quirks),
)
"""Every row of the table, in the order in which they are told."""


def hazards(what: Any) -> list[Warned]:
    """The rows of `HAZARDS` that apply to a request or a map, in the table's order.

    Args:
        what: a request, or whatever `read_map` takes.

    >>> [w.name for w in hazards(decode(bytes(64)))]
    ['null address', 'ragged rows']
    """
    request: TensorMap = (
        what if isinstance(what, (TensorMapTiled, TensorMapIm2col, TensorMapIm2colWide)) else decode(what)
    )
    found = ((row, row.finds(request)) for row in HAZARDS)
    return [Warned(row.name, values, row.effect, row.source) for row, values in found if values is not None]
