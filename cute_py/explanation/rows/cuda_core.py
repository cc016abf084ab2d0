"""Read the calls of cuda.core that make a tensor map from an array: `view.as_tensor_map(box_dim=(64, 64))`.

The box has the order of the shape, outermost first, as the shape of the array. The text must define the array with
numbers, by a function of cupy, numpy or torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cute_py.diagnostics import Diagnostic
from cute_py.errors import CuteError, unless_refused
from cute_py.explanation.map_pastes import map_reading
from cute_py.explanation.readings import Reading, some
from cute_py.explanation.rows.source_constants import SourceConstants, Used
from cute_py.notation.argument_lists import matching_bracket, split_operands
from cute_py.notation.source_numbers import read_value
from cute_py.tma.descriptor.data_types import format_of
from cute_py.tma.descriptor.plain_data import request_of_array

_CALL: Final = re.compile(
    r"TensorMapDescriptor\._?from_tiled\s?\(|(?:from_\w{1,40}\(\s?(?P<array>\w{1,60})[^()\n]{0,80}\)|\b(?P<view>[A-Za-z_]\w{0,60}+))"
    r"\.as_tensor_map\s?\("
)
_KEYWORD: Final = re.compile(r"(?P<name>[A-Za-z_]\w{0,40}+)\s?=(?!=)\s?(?P<value>[^=].{0,200})", re.DOTALL)
_MADE: Final = r"\s?=\s?(?P<library>cp|cupy|np|numpy|torch|jnp)\.(?:zeros|empty|ones|full|randn|rand)\("
_VIEWED: Final = r"\s?=\s?[\w.]{1,80}from_\w{1,40}\(\s?(?P<array>\w{1,60})"
_SETTINGS: Final = ("swizzle", "interleave", "l2_promotion", "oob_fill")
_CODES: Final = {
    "NONE": 0, "INTERLEAVE_16B": 1, "INTERLEAVE_32B": 2, "SWIZZLE_32B": 1, "SWIZZLE_64B": 2, "SWIZZLE_128B": 3,
    "L2_64B": 1, "L2_128B": 2, "L2_256B": 3, "NAN_REQUEST_ZERO_FMA": 1,
}  # fmt: skip
"""Members of the enums of cuda.core -> the codes of the driver."""
_UNKNOWN: Final = (
    "the shape and the type of {0}: add its definition, such as {0} = cupy.empty((1024, 512), cupy.float16)"
)
_NO_ADDRESS: Final = "the text does not contain the address; the rules were checked with an aligned address"
_ORDER: Final = "box_dim has the order of the shape of the array, outermost first"


@dataclass(frozen=True, slots=True)
class _Array:
    """The shape and the element type of an array that a text defines."""

    shape: tuple[int, ...]
    dtype: str


def read_tensor_maps(text: str) -> list[Reading]:
    """Read each call that makes a tensor map from an array."""
    constants = SourceConstants(text) if _CALL.search(text) else SourceConstants("")
    return [reading for call in some(_CALL.finditer(text), 16) for reading in _call_reading(call, text, constants)]


def _call_reading(call: re.Match[str], text: str, constants: SourceConstants) -> Iterator[Reading]:
    end = matching_bracket(text, call.end())
    placed, named = _arguments(text[call.end() : end])
    name = call["array"] or call["view"] or (placed.pop(0) if placed else "a")
    viewed = re.search(rf"\b{re.escape(name)}" + _VIEWED, text)
    name = viewed["array"] if viewed is not None else name
    box = _numbers(named.get("box_dim", placed[0] if placed else ""), constants)
    kind, span = "A tensor map of cuda.core", (call.start(), end + 1)
    array = _array(name, text, constants)
    if array is not None and "data_type" in named:
        dtype = named.pop("data_type").split(".")[-1].strip("\"'").lower()
        array = _Array(array.shape, dtype) if unless_refused(format_of, dtype) is not None else None
    missing = [] if array is not None else [_UNKNOWN.format(name)]
    missing += [] if box else ["box_dim, as numbers"]
    settings, unread = _settings(named)
    missing += [f"not read: {one}" for one in unread]
    if array is None or not box or unread:
        yield Reading(kind, *span, [_ORDER, "not judged: the rules of tensor maps"], missing=missing)
        return
    steps = _numbers(named.get("element_strides", ""), constants)
    options: dict[str, Any] = {**settings, **({"element_strides": steps[::-1]} if steps else {})}
    try:
        request = request_of_array(array.shape, array.dtype, box, address=1 << 20, **options)
    except CuteError as error:
        yield Reading(kind, *span, [_ORDER], (Diagnostic("argument", text=error.headline),), missing=missing)
        return
    yield map_reading(kind, span, request, [_ORDER, _NO_ADDRESS], missing=missing)


def _arguments(written: str) -> tuple[list[str], dict[str, str]]:
    """The arguments of a call without and with a keyword."""
    parts = [part for part in split_operands(written) if part]
    named = {one["name"]: one["value"] for part in parts if (one := _KEYWORD.fullmatch(part))}
    return [part for part in parts if not _KEYWORD.fullmatch(part)], named


def _numbers(written: str, constants: SourceConstants) -> tuple[int, ...]:
    """The numbers of a list; () if it is not a list of constants."""
    value = read_value(constants.evaluate(written, Used()), lambda name: 0) if written else ()
    return value if isinstance(value, tuple) and all(isinstance(n, int) for n in value) else ()


def _settings(named: Mapping[str, str]) -> tuple[dict[str, int], list[str]]:
    """The codes of the settings of a call, and the arguments that are not read."""
    found: dict[str, int] = {}
    unread = []
    for name, value in named.items():
        member = value.strip().split(".")[-1]
        if name in _SETTINGS and member in _CODES:
            found[name] = _CODES[member]
        elif name not in ("box_dim", "element_strides") and value != "None":
            unread.append(f"{name}={value}")
    return found, unread


def _array(name: str, text: str, constants: SourceConstants) -> _Array | None:
    """The array that a text gives a name; None if the text does not have its shape or its type."""
    made = re.search(rf"(?<![\w.]){re.escape(name)}" + _MADE, text)
    if made is None or len(some(re.finditer(rf"(?<![\w.]){re.escape(name)}\s?=(?!=)", text), 2)) > 1:
        return None
    end = matching_bracket(text, made.end())
    placed, named = _arguments(text[made.end() : end])
    if named.keys() - {"shape", "dtype", "device"} or text[end + 1 : end + 2] in (".", "["):  # other strides
        return None
    shaped = named.get("shape", placed[0] if placed else "")
    first = shaped if shaped[:1] in ("(", "[") else f"({', '.join(placed)})"
    default = "float32" if made["library"] in ("torch", "jnp") else "float64"
    dtype = named.get("dtype", placed[1] if len(placed) > 1 and shaped[:1] in ("(", "[") else default)
    dtype = dtype.split(".")[-1].strip("\"'")
    shape = _numbers(first, constants)
    return _Array(shape, dtype) if shape and unless_refused(format_of, dtype) is not None else None
