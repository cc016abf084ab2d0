"""Which rules of the driver a request breaks: all of them at once, with argument, value, unit and source."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NoReturn, TypeAlias

from cute_py.diagnostics import Diagnostic
from cute_py.errors import TmaLimitError, unless_refused
from cute_py.tma.descriptor import fields as f
from cute_py.tma.descriptor.data_types import FORMATS, TensorMapDataType
from cute_py.tma.descriptor.limits import BY_NAME, CORNER_BOUNDS, GPUS, SWIZZLE_SPAN, Architecture, architecture, bounds
from cute_py.tma.descriptor.request import (
    HasRequest,
    TensorMap,
    TensorMapIm2col,
    TensorMapIm2colWide,
    TensorMapTiled,
    corners_of,
    format_bits,
    request_of,
)

_RANK_MIN, _RANK_MAX = bounds("rank")
_RANK_MIN_IM2COL = bounds("rank_im2col")[0]
# The ranges that start at 0.
_FORMAT_MAX, _INTERLEAVE_MAX, _SWIZZLE_MAX = bounds("data_type")[1], bounds("interleave")[1], bounds("swizzle")[1]
_L2_MAX, _FILL_MAX, _MODE_MAX = bounds("l2_promotion")[1], bounds("oob_fill")[1], bounds("wide_mode")[1]
_ADDRESS_MAX, _STRIDE_MAX = bounds("address_range")[1], bounds("stride_range")[1]
_SIZE_MIN, _SIZE_MAX = bounds("size")
_STEP_MIN, _STEP_MAX = bounds("element_stride")
_BOX_MIN, _BOX_MAX = bounds("box")
_CHANNELS_MIN, _CHANNELS_MAX = bounds("channels")
_PIXELS_MIN, _PIXELS_MAX = bounds("pixels")
_GRAIN = BY_NAME["stride_alignment"].multiple
_GRAIN_32B = BY_NAME["stride_alignment_interleave_32b"].multiple
_ROW_BITS = 8 * BY_NAME["inner_bytes"].multiple


def _beyond(rule: str, grain: int = 1) -> int:
    """Ones on the bits that `number - minimum` must not have: of a rule whose range is a power of two."""
    least, most = bounds(rule)
    return ~(most - least & -grain)


_NO_ADDRESS, _NO_STRIDE = _beyond("address_range", _GRAIN), _beyond("stride_range", _GRAIN)
_NO_SIZE, _NO_STEP, _NO_EDGE = _beyond("size"), _beyond("element_stride"), _beyond("box")
_NO_CHANNEL, _NO_PIXEL = _beyond("channels"), _beyond("pixels")
_NO_PROMOTION, _NO_FILL = _beyond("l2_promotion"), _beyond("oob_fill")
_NO_CORNER = {rank: (-least, ~(most - least)) for rank, (least, most) in CORNER_BOUNDS.items()}
"""Rank -> what is added to a corner, and the bits that the sum must not have."""
_FORMATS: Final = tuple((row.bits, row.is_float) for row in FORMATS)
_SPANS: Final = tuple(SWIZZLE_SPAN[swizzle] for swizzle in range(_SWIZZLE_MAX + 1))
"""By swizzle: an enum's member is an index of a tuple in a fifth of the time that a dict takes to hash it."""

FUNCTIONS: Final = {
    "tiled": "cuTensorMapEncodeTiled",
    "im2col": "cuTensorMapEncodeIm2col",
    "im2col_wide": "cuTensorMapEncodeIm2colWide",
}


Violation = Diagnostic
"""The earlier name."""


def broken_rule(
    name: str, argument: str, value: int, mode: int | None = None, detail: str = "", requirement: str = ""
) -> Diagnostic:
    """A value that breaks the rule of this name; the requirement is the rule's own, if it is not given."""
    rule = BY_NAME[name]
    return Diagnostic(name, argument, int(value), rule.unit, requirement or rule.requirement, rule.source, mode, detail)


def violations(request: TensorMap | HasRequest, *, arch: str = "sm_90a") -> list[Diagnostic]:
    """The rules that a request breaks on a GPU; empty if the driver accepts it.

    Args:
        request: or what holds one.
        arch: the GPU whose limits hold (`arch.ARCHITECTURES`); those of sm_90 are measured, later ones documented.
    Raises:
        InvalidTypeError: not a request.
        InvalidValueError: no such architecture.

    >>> [v.argument for v in violations(TensorMapTiled(6, 4096, (64, 8), (120,), (64, 300)))]
    ['globalStrides[0]', 'boxDim[1]']
    """
    request = request_of(request)
    gpu = (GPUS.get(arch) if isinstance(arch, str) else None) or architecture(arch)
    return [] if breaks_none(request, gpu) else broken_rules(request, gpu)


def breaks_none(request: TensorMap, gpu: Architecture) -> bool:
    """Whether a request breaks no rule, in a third of the time of `broken_rules`: that is what nearly every request is
    asked. False of one that breaks a rule, and of the rare ones (interleaved, im2col-wide, packed, with a residue).

    A range of numbers is a mask here, so that all numbers of a field are judged at once.
    """
    number, swizzle = request.data_type, request.swizzle
    if number is None or request.residue is not None or request.interleave:
        return False
    if not (0 <= number <= _FORMAT_MAX and 0 <= swizzle <= _SWIZZLE_MAX):
        return False
    sizes, strides, steps = request.global_dim, request.global_strides, request.element_strides
    rank = len(sizes)
    if rank > _RANK_MAX or len(strides) != rank - 1 or len(steps) != rank:
        return False
    d0, d1, d2, d3, d4 = sizes + f.ONES[rank]
    s0, s1, s2, s3 = strides + f.ZEROS[rank]
    strided = steps != f.UNIT_STEPS[rank]
    if strided:
        e0, e1, e2, e3, e4 = steps + f.ONES[rank]
        if (e0 - 1 | e1 - 1 | e2 - 1 | e3 - 1 | e4 - 1) & _NO_STEP:
            return False
    bits, is_float = _FORMATS[number]
    fill = request.oob_fill
    if (
        (d0 - 1 | d1 - 1 | d2 - 1 | d3 - 1 | d4 - 1) & _NO_SIZE
        or (s0 | s1 | s2 | s3) & _NO_STRIDE
        or request.global_address & _NO_ADDRESS
        or request.l2_promotion & _NO_PROMOTION
        or fill & _NO_FILL
        or (fill and not is_float)
    ):
        return False
    if isinstance(request, TensorMapTiled):
        if len(request.box_dim) != rank:
            return False
        b0, b1, b2, b3, b4 = request.box_dim + f.ONES[rank]
        if (b0 - 1 | b1 - 1 | b2 - 1 | b3 - 1 | b4 - 1) & _NO_EDGE:
            return False
        row = b0 * bits
        note = bits * b0 * b1 * b2 * b3 * b4
        if strided:
            note = bits * (b0 // e0) * (b1 // e1) * (b2 // e2) * (b3 // e3) * (b4 // e4)
    elif isinstance(request, TensorMapIm2col) and rank >= _RANK_MIN_IM2COL:
        lower, upper = request.pixel_box_lower_corner, request.pixel_box_upper_corner
        if len(lower) != rank - 2 or len(upper) != rank - 2:
            return False
        (n0, n1, n2), (l0, l1, l2), (h0, h1, h2) = (
            sizes[1:-1] + f.ONES[rank],
            lower + f.ZEROS[rank],
            upper + f.ZEROS[rank],
        )
        channels, pixels = request.channels_per_pixel, request.pixels_per_column
        shift, beyond = _NO_CORNER[rank]
        if (
            (l0 + shift | l1 + shift | l2 + shift | h0 + shift | h1 + shift | h2 + shift) & beyond
            or (n0 - 1 + h0 - l0 | n1 - 1 + h1 - l1 | n2 - 1 + h2 - l2) & 0x80000000  # the sign, in 32 bits
            or channels - 1 & _NO_CHANNEL
            or pixels - 1 & _NO_PIXEL
        ):
            return False
        row = channels * bits
        note = row * pixels
    else:
        return False
    span = _SPANS[swizzle]
    return not (row % _ROW_BITS or note > 8 * gpu.shared_memory_bytes or (span is not None and row > 8 * span))


def broken_rules(request: TensorMap, gpu: Architecture) -> list[Diagnostic]:
    """The rules that a request breaks on a GPU, in the order in which they are listed."""
    found: list[Diagnostic] = []
    _check_form(request, gpu, found)
    _check_tensor(request, found)
    size = format_bits(request.data_type)  # 0 where it is not known, which makes the checks that need it vacuous
    if isinstance(request, TensorMapTiled):
        _check_box(request, size, gpu, found)
    else:
        _check_pixels(request, size, gpu, found)
        _check_corners(request, found)
    if gpu.data_types and request.data_type in gpu.data_types:
        _check_packed(request, found)
    return found


def refuse_request(request: TensorMap, found: Sequence[Diagnostic], arch: str) -> NoReturn:
    """Raise one TmaLimitError that lists all of `found`."""
    function = FUNCTIONS[request.KIND]
    works = next((text for text, changed in find_changes(request) if not violations(changed, arch=arch)), None)
    hint = f"this breaks no rule: {works}" if works is not None else None
    if len(found) == 1:
        only = found[0]
        facts: dict[str, object] = {"call": f"{function}, {arch}", "rule": only.rule, "source": only.source}
        if only.mode is not None:
            facts = {"mode": f"TMA mode {only.mode} (0 is innermost)", **facts}
        raise TmaLimitError(only.message, facts, hint, found)
    facts = {str(i + 1): v.message for i, v in enumerate(found)}
    raise TmaLimitError(f"{function}: {len(found)} rules of {arch} are broken", facts, hint, found)


def _check_form(request: TensorMap, gpu: Architecture, found: list[Diagnostic]) -> None:
    """Rank, lengths and enums."""
    rank = len(request.global_dim)
    tiled = isinstance(request, TensorMapTiled)
    if not _RANK_MIN <= rank <= _RANK_MAX:
        found.append(broken_rule("rank", "tensorRank", rank))
    if rank < _RANK_MIN_IM2COL:
        if not tiled:
            found.append(broken_rule("rank_im2col", "tensorRank", rank))
        elif request.interleave in (1, 2) and rank > 0:
            found.append(broken_rule("rank_interleave", "tensorRank", rank))
    if len(request.global_strides) != rank - 1 or len(request.element_strides) != rank:
        _check_length("globalStrides", request.global_strides, rank - 1, found)
        _check_length("elementStrides", request.element_strides, rank, found)
    if isinstance(request, TensorMapTiled):
        if len(request.box_dim) != rank:
            _check_length("boxDim", request.box_dim, rank, found)
    elif isinstance(request, TensorMapIm2col):
        _check_length("pixelBoxLowerCorner", request.pixel_box_lower_corner, rank - 2, found)
        _check_length("pixelBoxUpperCorner", request.pixel_box_upper_corner, rank - 2, found)
    elif not 0 <= request.mode <= _MODE_MAX:
        found.append(broken_rule("wide_mode", "mode", request.mode))
    if request.residue is not None:
        _check_residue(request, found)
    number = request.data_type
    if number is None:
        if request.residue is None:
            found.append(broken_rule("data_type", "tensorDataType", -1, detail="no format"))
    elif not (0 <= number <= _FORMAT_MAX or number in gpu.data_types):
        found.append(broken_rule("data_type", "tensorDataType", number, requirement=gpu.format_requirement))
    elif request.oob_fill == 1 and not FORMATS[number].is_float:
        found.append(broken_rule("nan_fill", "oobFill", 1, detail=f"with {FORMATS[number].data_type.name}"))
    if not 0 <= request.interleave <= _INTERLEAVE_MAX:
        found.append(broken_rule("interleave", "interleave", request.interleave))
    if not 0 <= request.swizzle <= _SWIZZLE_MAX and request.swizzle not in gpu.swizzles:
        found.append(broken_rule("swizzle", "swizzle", request.swizzle, requirement=gpu.swizzle_requirement))
    if not 0 <= request.l2_promotion <= _L2_MAX:
        found.append(broken_rule("l2_promotion", "l2Promotion", request.l2_promotion))
    if not 0 <= request.oob_fill <= _FILL_MAX:
        found.append(broken_rule("oob_fill", "oobFill", request.oob_fill))


def _check_length(argument: str, values: tuple[int, ...], wanted: int, found: list[Diagnostic]) -> None:
    if len(values) != wanted and wanted >= 0:
        must = f"be {wanted} for this rank"
        found.append(broken_rule("length", f"len({argument})", len(values), requirement=must))


def _check_residue(request: TensorMap, found: list[Diagnostic]) -> None:
    """What a decoded map holds where no legal value can be."""
    bits = request.residue.bits if request.residue is not None else 0
    rank_bits = f.field("rank").read(bits)
    if rank_bits:
        found.append(broken_rule("unknown_rank", "rank field", rank_bits ^ request.rank - 1))
    if request.data_type is None:
        found.append(broken_rule("unknown_format", "format field", f.field("format").read(bits)))


def _check_tensor(request: TensorMap, found: list[Diagnostic]) -> None:
    """Address, sizes, strides and element strides."""
    wide = request.interleave == 2
    grain = _GRAIN_32B if wide else _GRAIN
    suffix = "_interleave_32b" if wide else ""
    address = request.global_address
    if address % grain:
        found.append(broken_rule("address_alignment" + suffix, "globalAddress", address))
    if not 0 <= address <= _ADDRESS_MAX:
        found.append(broken_rule("address_range", "globalAddress", address))
    for i, size in enumerate(request.global_dim):
        if not _SIZE_MIN <= size <= _SIZE_MAX:
            found.append(broken_rule("size", f"globalDim[{i}]", size, i))
    for i, stride in enumerate(request.global_strides):
        if stride % grain:
            found.append(broken_rule("stride_alignment" + suffix, f"globalStrides[{i}]", stride, i + 1))
        if not 0 <= stride <= _STRIDE_MAX:
            found.append(broken_rule("stride_range", f"globalStrides[{i}]", stride, i + 1))
    for i, step in enumerate(request.element_strides):
        if not _STEP_MIN <= step <= _STEP_MAX:
            found.append(broken_rule("element_stride", f"elementStrides[{i}]", step, i))


def _check_bytes(
    request: TensorMap, count: int, bits: int, note: int, name: str, gpu: Architecture, found: list[Diagnostic]
) -> None:
    """Bytes of one row in shared memory, `count` elements: a multiple of 16, and within the swizzle's span.

    And those of the box: `note` bits, as the driver counts it (`encode.note_box_bytes`).
    """
    if count > 0 and count * bits % _ROW_BITS:
        found.append(broken_rule("inner_bytes", name, count * bits // 8, 0, f"{count} elements x {bits} bits"))
    if request.interleave == 0:
        # The ATOM swizzles permute larger chunks, within the same 128 bytes.
        known = 0 <= request.swizzle <= _SWIZZLE_MAX
        span = _SPANS[request.swizzle if known else 3] if known or request.swizzle in gpu.swizzles else None
        if span is not None and count * bits > 8 * span:
            must = f"be at most {span} with swizzle {span}B"
            found.append(broken_rule("inner_span", name, count * bits // 8, 0, requirement=must))
    if note > 8 * gpu.shared_memory_bytes:
        # The driver lets a box have what the SM has, and no block can have it: the limit of a block is what helps.
        must = f"be at most {gpu.block_shared_memory_bytes}, the shared memory of a block on {gpu.name}"
        found.append(broken_rule("box_bytes", "bytes of the box", note // 8, requirement=must))


def _check_box(request: TensorMapTiled, bits: int, gpu: Architecture, found: list[Diagnostic]) -> None:
    note = bits
    for i, (edge, step) in enumerate(zip(request.box_dim, request.element_strides, strict=False)):
        if not _BOX_MIN <= edge <= _BOX_MAX:
            found.append(broken_rule("box", f"boxDim[{i}]", edge, i))
        if step > 0:
            note *= edge // step
    count = request.box_dim[0] if request.box_dim else 0
    _check_bytes(request, count, bits, note, "boxDim[0] in bytes", gpu, found)


def _check_pixels(
    request: TensorMapIm2col | TensorMapIm2colWide, bits: int, gpu: Architecture, found: list[Diagnostic]
) -> None:
    channels, pixels = request.channels_per_pixel, request.pixels_per_column
    if not _CHANNELS_MIN <= channels <= _CHANNELS_MAX:
        found.append(broken_rule("channels", "channelsPerPixel", channels))
    if not _PIXELS_MIN <= pixels <= _PIXELS_MAX:
        found.append(broken_rule("pixels", "pixelsPerColumn", pixels))
    _check_bytes(request, channels, bits, channels * pixels * bits, "channelsPerPixel in bytes", gpu, found)


def _int32(value: int) -> int:
    return (value + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def _check_corners(request: TensorMapIm2col | TensorMapIm2colWide, found: list[Diagnostic]) -> None:
    """Corners fit their bits, and the bounding box that they leave is not empty in each spatial mode."""
    rank = len(request.global_dim)
    lower, upper = corners_of(request)
    least, most = CORNER_BOUNDS.get(rank, CORNER_BOUNDS[3])
    for name, corner in (("pixelBoxLowerCorner", lower), ("pixelBoxUpperCorner", upper)):
        for i, value in enumerate(corner):
            if not least <= value <= most:
                must = f"be {least} to {most} at rank {rank}"
                found.append(broken_rule("corner_range", f"{name}[{i}]", value, requirement=must))
    first = 0 if request.interleave in (1, 2) else 1
    sizes = request.global_dim[first : first + rank - 2] if rank > 2 else ()
    for mode, (size, low, high) in enumerate(zip(sizes, lower, upper, strict=False), first):
        room = _int32(size - 1 + high - low)
        if room < 0:
            what = f"pixels of mode {mode} after the first"
            found.append(broken_rule("bounding_box", what, room, mode, f"{size} - 1 + {high} - {low}"))
    for mode in range(first + len(lower), first + len(sizes)):  # a wide request bounds W alone
        room = _int32(request.global_dim[mode] - 1)
        if room < 0:
            found.append(broken_rule("wide_size", f"globalDim[{mode}] - 1", room, mode))


def _check_packed(request: TensorMap, found: list[Diagnostic]) -> None:
    """Rules of the packed 4- and 6-bit formats: documented, not measured."""
    if request.data_type == TensorMapDataType.PACKED_16U4_ALIGN8B:
        if request.global_dim and request.global_dim[0] % 2:
            found.append(broken_rule("packed_size_align8", "globalDim[0]", request.global_dim[0], 0))
        return
    if request.global_address % 32:
        found.append(broken_rule("packed_address", "globalAddress", request.global_address))
    if request.global_dim and request.global_dim[0] % 128:
        found.append(broken_rule("packed_size", "globalDim[0]", request.global_dim[0], 0))
    for i, stride in enumerate(request.global_strides):
        if stride % 32:
            found.append(broken_rule("packed_stride", f"globalStrides[{i}]", stride, i + 1))
    if isinstance(request, TensorMapTiled):
        name, edge = "boxDim[0]", request.box_dim[0] if request.box_dim else 128
    else:
        name, edge = "channelsPerPixel", request.channels_per_pixel
    if edge != 128:
        found.append(broken_rule("packed_box", name, edge, 0))
    six = request.data_type == TensorMapDataType.PACKED_16U6_ALIGN16B
    if six and request.interleave != 0:
        found.append(broken_rule("packed_interleave", "interleave", request.interleave))
    allowed = (0, 3, 4, 6) if six else (0, 3, 4)
    if request.swizzle not in allowed:
        must = f"be one of {', '.join(map(str, allowed))} with {FORMATS[request.data_type or 0].data_type.name}"
        found.append(broken_rule("packed_swizzle", "swizzle", request.swizzle, requirement=must))


# ---- what would be legal -------------------------------------------------------------------------------------------


def _up(number: int, grain: int) -> int:
    return -(-number // grain) * grain


def find_changes(request: TensorMap) -> list[tuple[str, TensorMap]]:
    """(text, request) of changes that were tried: the changed request breaks no rule.

    Each rule has repairs of its own; one repair of every broken rule is applied, the smallest change first.

    >>> find_changes(TensorMapTiled(6, 4096, (1001, 64), (2002,), (64, 64), swizzle=3))[0][0]
    'globalStrides (2002,) -> (2016,) bytes: pad each row to 1008 elements'
    """
    found: list[tuple[str, TensorMap]] = []
    for choice in range(2):
        changed, texts = request, []
        for _ in range(40):  # a repair may uncover a rule that was hidden behind it
            broken = violations(changed)
            if not broken:
                break
            repair = next((r for d in broken if (r := _repair(changed, d, choice)) is not None), None)
            if repair is None:
                break
            texts.append(repair[0])
            changed = repair[1]
        text = "; ".join(texts)
        if texts and not violations(changed) and all(text != other for other, _ in found):
            found.append((text, changed))
    return found


def _replaced(values: tuple[int, ...], index: int, value: int) -> tuple[int, ...]:
    return (*values[:index], value, *values[index + 1 :])


def _index(argument: str) -> int:
    digits = re.search(r"\[([0-9]+)\]", argument)
    return int(digits[1]) if digits else 0


def _repair(request: TensorMap, found: Diagnostic, choice: int) -> tuple[str, TensorMap] | None:
    """A change of the field that breaks a rule, with its text; None where numbers alone don't mend it."""
    fixed = _REPAIRS.get(found.rule)
    return None if fixed is None else unless_refused(fixed, request, found, choice)  # refused: no request holds it


_Repaired: TypeAlias = "tuple[str, TensorMap] | None"


def _pad_strides(request: TensorMap, found: Diagnostic, choice: int) -> _Repaired:
    grain = 32 if request.interleave == 2 or request.data_type in (14, 15) else 16
    bits = format_bits(request.data_type)
    strides, reach = [], 0
    for stride, size in zip(request.global_strides, request.global_dim[1:], strict=False):
        padded = max(_up(stride, grain), reach) if stride else 0
        strides.append(padded)
        reach = padded * size if stride and padded != stride else 0
    changed = [i for i, padded in enumerate(strides) if padded != request.global_strides[i]]
    if not changed or not bits:
        return None
    first = changed[0]
    what = f"round the stride of dimension {first + 1} up" if first else "pad each row"
    elements = strides[first] * 8 // bits
    text = f"globalStrides {request.global_strides} -> {tuple(strides)} bytes: {what} to {elements} elements"
    return text, replace(request, global_strides=tuple(strides), residue=None)


def _align(request: TensorMap, found: Diagnostic, choice: int) -> _Repaired:
    grain = 32 if request.interleave == 2 or request.data_type in (14, 15) else 16
    base = request.global_address // grain * grain
    less = request.global_address - base
    text = (
        f"globalAddress {request.global_address:#x} -> {base:#x}: begin {less} bytes earlier, at a multiple of {grain}"
    )
    return text, replace(request, global_address=base, residue=None)


def _shrink_box(request: TensorMap, found: Diagnostic, choice: int) -> _Repaired:
    if not isinstance(request, TensorMapTiled):
        return None
    index, most = _index(found.argument), bounds("box")[1]
    size = request.box_dim[index]
    part = next((n for n in range(most, 0, -1) if size > 0 and size % n == 0), 1) if size > most else 1
    box = _replaced(request.box_dim, index, part)
    count = f": {size // part} instructions a tile" if size > most else ""
    return f"boxDim {request.box_dim} -> {box}{count}", replace(request, box_dim=box, residue=None)


def _whole_rows(request: TensorMap, found: Diagnostic, choice: int) -> _Repaired:
    bits = format_bits(request.data_type)
    if not isinstance(request, TensorMapTiled) or not bits or not request.box_dim:
        return None
    unit = max(1, 128 // bits)
    span = SWIZZLE_SPAN.get(request.swizzle)
    inner = max(unit, _up(request.box_dim[0], unit))
    if (span and inner * bits > 8 * span) or inner > bounds("box")[1]:
        inner = max(unit, request.box_dim[0] // unit * unit)
    box = _replaced(request.box_dim, 0, inner)
    text = f"boxDim {request.box_dim} -> {box}: rows of {inner * bits // 8} bytes"
    return text, replace(request, box_dim=box, residue=None)


def _fit_span(request: TensorMap, found: Diagnostic, choice: int) -> _Repaired:
    bits = format_bits(request.data_type)
    if not isinstance(request, TensorMapTiled) or not bits or not request.box_dim:
        return None
    wide = request.box_dim[0] * bits // 8
    better = next((s for s, span in SWIZZLE_SPAN.items() if span and span >= wide), 0)
    if choice and (better or request.swizzle):
        name = f"{SWIZZLE_SPAN[better]}B" if better else "none"
        return f"swizzle {int(request.swizzle)} -> {better} ({name})", replace(request, swizzle=better, residue=None)
    span = SWIZZLE_SPAN.get(request.swizzle) or 128
    box = _replaced(request.box_dim, 0, span * 8 // bits)
    parts = -(-wide // span)
    text = f"boxDim {request.box_dim} -> {box}: rows of {span} bytes, {parts} instructions side by side"
    return text, replace(request, box_dim=box, residue=None)


def _fit_shared(request: TensorMap, found: Diagnostic, choice: int) -> _Repaired:
    if not isinstance(request, TensorMapTiled):
        return None
    index = max(range(request.rank), key=lambda i: (i > 0, request.box_dim[i]))
    box = _replaced(request.box_dim, index, max(1, request.box_dim[index] // 2))
    if box == request.box_dim:
        return None
    return f"boxDim {request.box_dim} -> {box}", replace(request, box_dim=box, residue=None)


def _drop_modes(request: TensorMap, found: Diagnostic, choice: int) -> _Repaired:
    """Modes that continue each other become one."""
    if not isinstance(request, TensorMapTiled) or len(request.global_strides) != request.rank - 1:
        return None
    for i in range(1, request.rank - 1):
        if request.global_strides[i] == request.global_strides[i - 1] * request.global_dim[i] and (
            len(request.box_dim) == request.rank
            and request.box_dim[i + 1] == 1
            and len(request.element_strides) > i + 1
        ):
            dims = (
                *request.global_dim[:i],
                request.global_dim[i] * request.global_dim[i + 1],
                *request.global_dim[i + 2 :],
            )
            fewer = replace(
                request,
                global_dim=dims,
                global_strides=(*request.global_strides[:i], *request.global_strides[i + 1 :]),
                box_dim=(*request.box_dim[: i + 1], *request.box_dim[i + 2 :]),
                element_strides=(*request.element_strides[: i + 1], *request.element_strides[i + 2 :]),
                residue=None,
            )
            return f"merge modes {i} and {i + 1}, which continue each other: globalDim {dims}", fewer
    return None


def _setting(name: str, value: int, meaning: str) -> Callable[[TensorMap, Diagnostic, int], _Repaired]:
    def change(request: TensorMap, found: Diagnostic, choice: int) -> _Repaired:
        text = f"{name} {getattr(request, name)!s} -> {value} ({meaning})"
        return text, replace(request, residue=None, **{name: value})  # type: ignore[arg-type]

    return change


def _bounded_steps(request: TensorMap, found: Diagnostic, choice: int) -> _Repaired:
    least, most = bounds("element_stride")
    steps = tuple(min(max(step, least), most) for step in request.element_strides)
    text = f"elementStrides {request.element_strides} -> {steps}"
    return text, replace(request, element_strides=steps, residue=None)


_REPAIRS: Final[dict[str, Callable[[TensorMap, Diagnostic, int], _Repaired]]] = {
    "stride_alignment": _pad_strides,
    "stride_alignment_interleave_32b": _pad_strides,
    "packed_stride": _pad_strides,
    "address_alignment": _align,
    "address_alignment_interleave_32b": _align,
    "packed_address": _align,
    "box": _shrink_box,
    "inner_bytes": _whole_rows,
    "inner_span": _fit_span,
    "box_bytes": _fit_shared,
    "rank": _drop_modes,
    "element_stride": _bounded_steps,
    "interleave": _setting("interleave", 0, "none"),
    "rank_interleave": _setting("interleave", 0, "none"),
    "swizzle": _setting("swizzle", 3, "128B"),
    "l2_promotion": _setting("l2_promotion", 2, "128 bytes"),
    "oob_fill": _setting("oob_fill", 0, "zeros"),
    "nan_fill": _setting("oob_fill", 0, "zeros"),
}
"""Rule -> the change of the numbers that mends it."""
