"""Hazards: properties of a tensor map that are legal, but harmful or likely to be harmful.

The driver accepts all of them. Each row of the table `HAZARDS` has a condition, an effect and a source.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cute_py.argument_checks import has, record
from cute_py.diagnostics import Diagnostic
from cute_py.tma.descriptor.data_types import CUDA_H, FORMATS, MEASURED
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.encode import QUIRKS, note_box_bytes
from cute_py.tma.descriptor.fields import PAYLOAD_BYTES
from cute_py.tma.descriptor.limits import SLICE_BYTES, STORE_UNIT, SWIZZLE_SPAN
from cute_py.tma.descriptor.read import MapSource
from cute_py.tma.descriptor.request import (
    HasRequest,
    TensorMap,
    TensorMapIm2col,
    TensorMapIm2colWide,
    TensorMapTiled,
    request_of,
)
from cute_py.tma.descriptor.transfer import is_sound, measured_width, shared_row_bytes, transaction_bytes

__all__ = ["HAZARDS", "Hazard", "Warned", "hazards"]


@record
class Hazard:
    """One row of `HAZARDS`.

    `finds(request)` returns the values that make the row apply as a string, or None if it does not apply.

    >>> [one.name for one in HAZARDS][:2]
    ['null address', 'ragged rows']
    """

    name: str
    effect: str
    source: str
    finds: Callable[[TensorMap], str | None]


Warned = Diagnostic
"""Former name of the type of a warning."""

_ROWS: Final[list[Hazard]] = []

_Finds = Callable[[TensorMap], str | None]


def _hazard(name: str, effect: str, source: str = MEASURED) -> Callable[[_Finds], _Finds]:
    """Make a row of the table from the function that detects it."""

    def add(finds: _Finds) -> _Finds:
        _ROWS.append(Hazard(name, effect, source, finds))
        return finds

    return add


@_hazard("null address", "the driver accepts it, but copies fault")
def _null_address(request: TensorMap) -> str | None:
    return "globalAddress = 0" if request.global_address == 0 else None


@_hazard("ragged rows", "a store at the end of a row overwrites up to the next 16-byte boundary")
def _ragged_rows(request: TensorMap) -> str | None:
    size = 0 if request.interleave or not request.global_dim else request.global_dim[0] * measured_width(request)
    return f"rows of {size} bytes" if size % STORE_UNIT else None


@_hazard("box beyond tensor", "loads fill the rest of the box and still count it in the transaction bytes")
def _box_beyond(request: TensorMap) -> str | None:
    if not isinstance(request, TensorMapTiled):
        return None
    skip = request.rank - 2 if request.interleave in SLICE_BYTES else None  # the mode of a channel slice
    pairs = enumerate(zip(request.box_dim, request.global_dim, strict=False))
    return ", ".join(f"boxDim[{i}] = {box} > {size}" for i, (box, size) in pairs if box > size and i != skip) or None


@_hazard("stride 0", "all coordinates of the mode address the same bytes; stores and reductions collide")
def _zero_stride(request: TensorMap) -> str | None:
    pairs = enumerate(zip(request.global_strides, request.global_dim[1:], strict=False))
    return ", ".join(f"globalStrides[{i}] = 0" for i, (stride, size) in pairs if stride == 0 and size > 1) or None


@_hazard("overlap", "modes overlap; stores write the shared bytes more than once, in undefined order")
def _overlap(request: TensorMap) -> str | None:
    if not request.global_dim or not measured_width(request):
        return None
    found: list[str] = []
    reach = request.global_dim[0] * (SLICE_BYTES.get(request.interleave) or measured_width(request))
    pairs = enumerate(zip(request.global_strides, request.global_dim[1:], strict=False))
    for stride, i, size in sorted((stride, i, size) for i, (stride, size) in pairs if stride and size > 1):
        if stride < reach:
            found.append(f"globalStrides[{i}] = {stride} < {reach} bytes")
        reach += (size - 1) * stride
    return ", ".join(found) or None


@_hazard("tf32 rounding", "loads round each element to tf32; the copied values differ from the stored ones")
def _tf32(request: TensorMap) -> str | None:
    row = FORMATS[request.data_type or 0] if measured_width(request) else FORMATS[0]
    return row.data_type.name if row.tf32_round else None


@_hazard("ftz", "loads do not flush denormals, although the name suggests it")
def _ftz(request: TensorMap) -> str | None:
    return "FLOAT32_FTZ" if request.data_type == 10 else None


@_hazard("driver's note", "a barrier must expect the delivered bytes, not word 8 of the map")
def _stale_note(request: TensorMap) -> str | None:
    if isinstance(request, TensorMapIm2colWide) or not measured_width(request) or not is_sound(request):
        return None
    note, real = note_box_bytes(request), transaction_bytes(request)
    return f"note {note} bytes, delivered {real} bytes" if note != real else None


@_hazard("element stride of mode 0", "the hardware ignores it without interleave")
def _ignored_step(request: TensorMap) -> str | None:
    steps = request.element_strides
    return f"elementStrides[0] = {steps[0]}" if steps and steps[0] != 1 and request.interleave == 0 else None


@_hazard(
    "interleave 32B",
    "the documentation requires swizzle 32B; the driver accepts other swizzles",
    f"{CUDA_H}; {MEASURED}",
)
def _swizzle_interleave(request: TensorMap) -> str | None:
    return f"swizzle {int(request.swizzle)}" if request.interleave == 2 and request.swizzle != 1 else None


@_hazard("channel slice", "a load moves one slice and does not deliver the rest")
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


@_hazard("row gap", "the bytes between the rows in shared memory keep their old values")
def _row_gap(request: TensorMap) -> str | None:
    span = SWIZZLE_SPAN.get(request.swizzle)
    if span is None or request.interleave or not measured_width(request):
        return None
    if isinstance(request, TensorMapTiled) and not request.box_dim:
        return None
    size = shared_row_bytes(request)
    return f"rows of {size} bytes, {span} apart" if size < span else None


@_hazard("store corners", "an im2col store through this map traps")
def _store_corner(request: TensorMap) -> str | None:
    if not isinstance(request, TensorMapIm2col):
        return None
    lower, upper = request.pixel_box_lower_corner, request.pixel_box_upper_corner
    return f"corners {lower} to {upper}" if min(lower, default=0) < 0 or max(upper, default=0) > 0 else None


@_hazard(
    "wide swizzle",
    "the documentation requires swizzle 64B or 128B; the driver accepts other swizzles",
    f"{CUDA_H}; {MEASURED}",
)
def _wide_swizzle(request: TensorMap) -> str | None:
    wide = isinstance(request, TensorMapIm2colWide)
    return f"swizzle {int(request.swizzle)}" if wide and request.swizzle < 2 else None


@_hazard(
    "coordinates",
    "coordinates are signed 32-bit numbers, so elements from 2**31 on can't be addressed",
    "PTX ISA, cp.async.bulk.tensor",
)
def _beyond_coordinates(request: TensorMap) -> str | None:
    return ", ".join(f"globalDim[{i}] = {size}" for i, size in enumerate(request.global_dim) if size > 1 << 31) or None


@_hazard("unknown bits", "their meaning is unknown, and no measured driver sets them")
def _unread_bits(request: TensorMap) -> str | None:
    if request.residue is None:
        return None
    left = request.residue.unknown_words.items()
    return ", ".join(f"word {word} has 0x{bits:x}" for word, bits in left if word < PAYLOAD_BYTES // 8) or None


@_hazard("old notes", "the upper half does not match the lower half; the hardware does not read it")
def _old_notes(request: TensorMap) -> str | None:
    if request.residue is None:
        return None
    words = [str(word) for word in request.residue.unknown_words if word >= PAYLOAD_BYTES // 8]
    return f"words {', '.join(words)}" if words else None


@_hazard("driver bug", QUIRKS[0].effect, QUIRKS[0].source)
def _quirks(request: TensorMap) -> str | None:
    if request.residue is None:
        return None
    words = request.residue.unknown_words
    return ", ".join(row.name for row in QUIRKS if words.get(row.word, 0) & row.mask and row.applies(request)) or None


HAZARDS: Final[tuple[Hazard, ...]] = tuple(_ROWS)
"""Every row of the table, in the order of the output."""


def hazards(what: TensorMap | HasRequest | MapSource) -> list[Diagnostic]:
    """Return the rows of `HAZARDS` that apply to a request or a map, in the table's order.

    Each result is a warning: its `rule` is the name of the row, and its `detail` has the values that make the row
    apply.

    Args:
        what: a request, an object that holds one, such as a TmaAtom, or any source that `read_map` accepts.

    >>> [w.rule for w in hazards(decode(bytes(64)))]
    ['null address', 'ragged rows']
    """
    if isinstance(what, TensorMap):
        request = what
    elif has(what, "request"):
        request = request_of(what)  # type: ignore[arg-type]
    else:
        request = decode(what)  # type: ignore[arg-type]
    found = []
    for row in HAZARDS:
        if (values := row.finds(request)) is not None:
            text = f"{row.name}: {values}; {row.effect}"
            facts: dict[str, object] = {"effect": row.effect}
            found.append(
                Diagnostic(row.name, source=row.source, detail=values, text=text, severity="warning", facts=facts)
            )
    return found
