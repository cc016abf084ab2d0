"""Requests as plain data for JSON, and the bits of a map as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from cute_py.argument_checks import expect_fields, expect_having
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.tma.descriptor import fields as f
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.formats import (
    CODE_TO_FORMAT,
    Im2ColWideMode,
    Interleave,
    L2Promotion,
    OobFill,
    TensorMapDataType,
    TensorMapSwizzle,
)
from cute_py.tma.descriptor.read import read_map
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled

KINDS: Final[dict[str, type[TensorMapTiled] | type[TensorMapIm2col] | type[TensorMapIm2colWide]]] = {
    kind.KIND: kind for kind in (TensorMapTiled, TensorMapIm2col, TensorMapIm2colWide)
}
_ENUMS: Final[dict[str, type[IntEnum]]] = {
    "data_type": TensorMapDataType,
    "interleave": Interleave,
    "swizzle": TensorMapSwizzle,
    "l2_promotion": L2Promotion,
    "oob_fill": OobFill,
    "mode": Im2ColWideMode,
}
_OPTIONAL: Final = frozenset(("element_strides", "interleave", "swizzle", "l2_promotion", "oob_fill", "mode"))


def to_json(request: TensorMap) -> dict[str, Any]:
    """A request as a dict that json.dumps takes: names of enum members, lists of integers.

    A request with a residue also holds `map`, the hex of the 128 bytes that it was decoded from.

    >>> to_json(TensorMapTiled(6, 4096, (64,), (), (64,)))["data_type"]
    'FLOAT16'
    """
    expect_having(request, ("KIND", "FIELDS", "field_values"), "a request of a tensor map")
    data: dict[str, Any] = {"kind": request.KIND}
    for name, value in zip(request.FIELDS, request.field_values(), strict=True):
        if isinstance(value, IntEnum):
            value = value.name
        data[name] = list(value) if isinstance(value, tuple) else value
    if request.residue is not None:
        from cute_py.tma.descriptor.encode import pack

        original = type(request).restore(request.residue.fields, None)
        data["map"] = (pack(original) ^ request.residue.bits).to_bytes(f.MAP_BYTES, "little").hex()
    return data


def from_json(data: Mapping[str, Any]) -> TensorMap:
    """The request of a dict as `to_json` gives it; enums by number or name, the kind inferred if it is left out.

    Raises:
        InvalidTypeError: not a mapping, or a value of the wrong type.
        InvalidValueError: an unknown kind, key or name, or a key that is missing.

    >>> from_json({"data_type": "bfloat16", "global_address": 0, "global_dim": [64], "global_strides": [],
    ...            "box_dim": [64]}).data_type
    TensorMapDataType.BFLOAT16
    """
    if not isinstance(data, Mapping):
        raise InvalidTypeError(f"a tensor map request must be a mapping, not {type(data).__name__}")
    kind = KINDS.get(infer_kind(data))
    if kind is None:
        raise InvalidValueError(f"unknown kind {given(data.get('kind'))}", {"known": ", ".join(KINDS)})
    unknown = sorted(set(map(str, data)) - {*kind.FIELDS, "kind", "map"})
    missing = [name for name in kind.FIELDS if name not in data and name not in _OPTIONAL]
    if unknown or missing:
        facts = {"unknown": ", ".join(unknown) or "none", "missing": ", ".join(missing) or "none"}
        raise InvalidValueError(f"keys of a request of kind {kind.KIND!r} do not match", facts)
    values: dict[str, Any] = {name: data[name] for name in kind.FIELDS if name in data}
    for name, members in _ENUMS.items():
        if isinstance(values.get(name), str):
            values[name] = member_named(members, name, values[name])
    request: TensorMap = kind(**values)
    if data.get("map") is not None:
        found: TensorMap = decode(read_map(data["map"]))
        if isinstance(request, TensorMapIm2colWide) and isinstance(found, TensorMapIm2col):
            found = found.as_wide(request.mode)
        if type(found) is type(request):
            request = kind(**values, residue=found.residue)
    return request


def infer_kind(data: Mapping[str, Any]) -> str:
    """The kind that a mapping of fields names, or that its keys belong to."""
    if "kind" in data:
        return data["kind"] if isinstance(data["kind"], str) else given(data["kind"])
    if "pixel_box_lower_corner_width" in data or "pixel_box_upper_corner_width" in data:
        return "im2col_wide"
    return "im2col" if "pixel_box_lower_corner" in data or "channels_per_pixel" in data else "tiled"


def member_named(members: type[IntEnum], name: str, text: str) -> IntEnum:
    """The member of an enum by name, in any case; '128B' finds B128.

    Raises:
        InvalidValueError: no such member.

    >>> member_named(TensorMapSwizzle, "swizzle", "128b").name
    'B128'
    """
    key = text.strip().upper()
    candidates = (key, f"B{key.removesuffix('B')}", f"PACKED_{key}", f"B{key}")
    for candidate in candidates:
        if candidate in members.__members__:
            return members[candidate]
    raise InvalidValueError(f"{name} = {text!r}; no such name", {"known": ", ".join(members.__members__)})


@dataclass(frozen=True, slots=True)
class FieldValue:
    """One row of a map's table: where, what it holds, what that means."""

    label: str
    word: int
    shift: int
    width: int
    raw: int
    value: int
    unit: str
    meaning: str

    def __post_init__(self) -> None:
        expect_fields(self)

    @property
    def where(self) -> str:
        """Word and bits, as 'w1[7:10]'."""
        end = self.shift + self.width - 1
        return f"w{self.word}[{self.shift}]" if self.width == 1 else f"w{self.word}[{self.shift}:{end}]"


def field_table(data: Any) -> list[FieldValue]:
    """The fields of a map as rows, lowest bit first; words with bits that have no field end the table.

    Args:
        data: whatever `read_map` takes.

    >>> [(row.label, row.where, row.value) for row in field_table(bytes(128))][:3]
    [('global_address', 'w0[0:63]', 0), ('load_mode', 'w1[0]', 0), ('rank', 'w1[4:6]', 1)]
    """
    raw = read_map(data)
    bits = int.from_bytes(raw, "little")
    im2col = bool(bits >> f.P_LOAD_MODE & 1)
    rank = min((bits >> f.P_RANK & 7) + 1, f.MAX_RANK)
    rows = []
    for row in f.live_fields(im2col, rank):
        if row.position < 8 * len(raw):
            value = row.read(bits)
            shown, meaning = _meaning(row, value, bits, rank)
            rows.append(FieldValue(row.label, row.word, row.shift, row.width, value, shown, row.unit, meaning))
    left = bits & ~f.field_mask(im2col, rank)
    for word in range(len(raw) // 8):
        rest = left >> (64 * word) & 0xFFFFFFFFFFFFFFFF
        if rest:
            rows.append(FieldValue("unknown", word, 0, 64, rest, rest, "", f"bits without a field: 0x{rest:016x}"))
    return rows


_MEMBERS: Final[dict[str, type[IntEnum]]] = {
    "interleave": Interleave,
    "swizzle": TensorMapSwizzle,
    "oob_fill": OobFill,
    "l2_promotion": L2Promotion,
}


def _meaning(row: f.BitField, raw: int, bits: int, rank: int) -> tuple[int, str]:
    if row.name in _MEMBERS:
        members = _MEMBERS[row.name]
        return raw, members(raw).name if raw in set(members) else "unknown"
    if row.name == "format":
        tf32 = f.field("tf32_round").read(bits)
        found = CODE_TO_FORMAT.get((raw, tf32)) or CODE_TO_FORMAT.get((raw, 0))
        return raw, "unknown" if found is None and raw else (found or TensorMapDataType.UINT8).name
    if row.name == "rank":
        return raw + 1, "" if raw < f.MAX_RANK else "unknown"
    if row.name == "load_mode":
        return raw, "im2col" if raw else "tiled"
    if row.name == "global_stride_low":
        high = f.field("global_stride_high", row.mode).read(bits)
        return raw, f"stride {(raw | high << 32) << 4} bytes"
    if row.name.startswith("pixel_box"):
        width = f.CORNER_WIDTH[rank]
        parts = [raw >> (width * i) & ((1 << width) - 1) for i in range(rank - 2)]
        signed = [part - (1 << width) if part >> (width - 1) else part for part in parts]
        return raw, ", ".join(map(str, signed))
    if row.encoding.endswith(" - 1"):
        return raw + 1, ""
    return raw, ""
