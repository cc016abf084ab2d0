"""Find changes that repair a refused request, and check each change before it is suggested.

This module changes the arguments of a tensor map. `tma.atom.make` finds changes of the arguments of an atom.

`REPAIRS` has a repair for each rule of `limits.RULES` that other values of the fields can satisfy.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, NoReturn, TypeAlias, TypeVar

from cute_py.diagnostics import Diagnostic
from cute_py.errors import TmaLimitError, counted, unless_refused
from cute_py.tma.descriptor.limits import BY_NAME, SWIZZLE_SPAN, bounds
from cute_py.tma.descriptor.request import FUNCTIONS, TensorMap, TensorMapTiled, format_bits
from cute_py.tma.descriptor.violations import violations

_T = TypeVar("_T")


def first_that_work(candidates: Iterable[_T], works: Callable[[_T], bool], most: int) -> list[_T]:
    """Return the first `most` candidates that `works` accepts. Candidates are made and tried one by one."""
    return list(itertools.islice(filter(works, candidates), most))


def refuse_request(request: TensorMap, found: Sequence[Diagnostic], arch: str) -> NoReturn:
    """Raise one TmaLimitError that lists all broken rules in `found`, with a change that repairs them if possible."""
    function = FUNCTIONS[request.KIND]
    works = next((text for text, changed in find_changes(request) if not violations(changed, arch=arch)), None)
    hint = f"this change makes the request legal: {works}" if works is not None else None
    if len(found) == 1:
        only = found[0]
        facts: dict[str, object] = {"call": f"{function}, {arch}", "rule": only.rule, "source": only.source}
        if only.mode is not None:
            facts = {"mode": f"TMA mode {only.mode} (0 is innermost)", **facts}
        raise TmaLimitError(only.message, facts, hint, found)
    facts = {str(i + 1): v.message for i, v in enumerate(found)}
    raise TmaLimitError(f"{function}: the request breaks {len(found)} rules of {arch}", facts, hint, found)


def _up(number: int, grain: int) -> int:
    return -(-number // grain) * grain


def find_changes(request: TensorMap) -> list[tuple[str, TensorMap]]:
    """List changes that make a request legal, as (description, changed request).

    Each changed request was checked and breaks no rule.

    Each rule has its own repairs. A change applies one repair per broken rule, and the smallest change comes first.

    >>> find_changes(TensorMapTiled(6, 4096, (1001, 64), (2002,), (64, 64), swizzle=3))[0][0]
    'globalStrides (2002,) -> (2016,) bytes: pad each row to 1008 elements'
    """
    tried = [_mended(request, choice) for choice in range(2)]
    found = first_that_work(tried, lambda fix: bool(fix[0]) and not violations(fix[1]), len(tried))
    return [fix for at, fix in enumerate(found) if fix[0] not in [text for text, _ in found[:at]]]


def _mended(request: TensorMap, choice: int) -> tuple[str, TensorMap]:
    """Apply repairs until no broken rule has one, and return their descriptions and the changed request."""
    texts = []
    for _ in range(40):  # a repair may uncover another broken rule
        repair = next((r for d in violations(request) if (r := _repair(request, d, choice)) is not None), None)
        if repair is None:
            break
        texts.append(repair[0])
        request = repair[1]
    return "; ".join(texts), request


def _replaced(values: tuple[int, ...], index: int, value: int) -> tuple[int, ...]:
    return (*values[:index], value, *values[index + 1 :])


def _repair(request: TensorMap, found: Diagnostic, choice: int) -> tuple[str, TensorMap] | None:
    """Return the repair of one broken rule: its description and the changed request; None if there is no repair."""
    fixed = REPAIRS.get(found.rule)
    return None if fixed is None else unless_refused(fixed, request, found, choice)  # None if no request can hold it


def _grain(request: TensorMap) -> int:
    """Return the required alignment of strides and address in bytes, regardless of other broken rules."""
    rules = {"stride_alignment": True, "stride_alignment_interleave_32b": request.interleave == 2}
    rules["packed_stride"] = request.data_type in (14, 15)
    return max(BY_NAME[rule].multiple for rule, applies in rules.items() if applies)


_Repaired: TypeAlias = "tuple[str, TensorMap] | None"


def _pad_strides(request: TensorMap, found: Diagnostic, choice: int) -> _Repaired:
    grain = _grain(request)
    bits = format_bits(request.data_type)
    strides: list[int] = []
    unused: list[int] = []
    reach = 0
    for index, (stride, size) in enumerate(zip(request.global_strides, request.global_dim[1:], strict=False)):
        padded = max(_up(stride, grain), reach) if stride else 0
        if size == 1 and (padded != stride or found.mode == index + 1):  # no copy steps along a single element
            padded = _next_stride(request, strides, bits, grain)
            unused.append(index + 1)
        elif padded != stride:
            reach = padded * size
        else:
            reach = 0
        strides.append(padded)
    changed = [i for i, padded in enumerate(strides) if padded != request.global_strides[i]]
    if not changed or not bits:
        return None
    first = next((i for i in changed if i + 1 not in unused), None)
    elements = 0 if first is None else strides[first] * 8 // bits
    rounded = f"round the stride of dimension {first + 1} up" if first else "pad each row"
    what = [] if first is None else [f"{rounded} to {elements} elements"]
    what += [f"dimension {i} has one element, so no copy uses its stride" for i in unused]
    text = f"globalStrides {request.global_strides} -> {tuple(strides)} bytes: {'; '.join(what)}"
    return text, replace(request, global_strides=tuple(strides), residue=None)


def _unused_strides(request: TensorMap, found: Diagnostic, choice: int) -> _Repaired:
    """Replace a stride out of range if its dimension has one element."""
    mode = found.mode
    held = mode is not None and mode < len(request.global_dim) and request.global_dim[mode] == 1
    return _pad_strides(request, found, choice) if held else None


def _next_stride(request: TensorMap, strides: Sequence[int], bits: int, grain: int) -> int:
    """The stride of a dimension that continues the dimensions before it, at least one unit."""
    size = request.global_dim[len(strides)]
    step = strides[-1] * size if strides else -(-size * bits // 8)
    return min(max(_up(step, grain), grain), bounds("stride_range")[1] // grain * grain)


def _align(request: TensorMap, found: Diagnostic, choice: int) -> _Repaired:
    grain = _grain(request)
    base = request.global_address // grain * grain
    less = counted(request.global_address - base, "byte")
    text = f"globalAddress {request.global_address:#x} -> {base:#x}: start {less} earlier, at a multiple of {grain}"
    return text, replace(request, global_address=base, residue=None)


def _shrink_box(request: TensorMap, found: Diagnostic, choice: int) -> _Repaired:
    if not isinstance(request, TensorMapTiled):
        return None
    index, most = found.mode or 0, bounds("box")[1]
    size = request.box_dim[index]
    part = next((n for n in range(most, 0, -1) if size > 0 and size % n == 0), 1) if size > most else 1
    box = _replaced(request.box_dim, index, part)
    count = f": {size // part} instructions per tile" if size > most else ""
    return f"boxDim {request.box_dim} -> {box}{count}", replace(request, box_dim=box, residue=None)


def _whole_rows(request: TensorMap, found: Diagnostic, choice: int) -> _Repaired:
    bits = format_bits(request.data_type)
    if not isinstance(request, TensorMapTiled) or not bits or not request.box_dim:
        return None
    unit = max(1, 8 * BY_NAME["inner_bytes"].multiple // bits)
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
    index = max(range(len(request.box_dim)), key=lambda i: (i > 0, request.box_dim[i]))
    box = _replaced(request.box_dim, index, max(1, request.box_dim[index] // 2))
    if box == request.box_dim:
        return None
    return f"boxDim {request.box_dim} -> {box}", replace(request, box_dim=box, residue=None)


def _drop_modes(request: TensorMap, found: Diagnostic, choice: int) -> _Repaired:
    """Merge two contiguous modes into one, to lower the rank."""
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
            return f"merge the contiguous modes {i} and {i + 1}: globalDim {dims}", fewer
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


REPAIRS: Final[dict[str, Callable[[TensorMap, Diagnostic, int], _Repaired]]] = {
    "stride_alignment": _pad_strides,
    "stride_alignment_interleave_32b": _pad_strides,
    "packed_stride": _pad_strides,
    "stride_range": _unused_strides,
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
"""Rule -> the change of the numbers that repairs it."""
