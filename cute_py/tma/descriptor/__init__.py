"""Tensor maps (CUtensorMap): requests, their rules, and every bit of the 128 bytes.

A request has the arguments of a map, `violations` and `hazards` list what is wrong or harmful in it, `encode` gives
the bytes, `decode` the request back. Modes are innermost first, strides in bytes. Nothing here needs a driver or a GPU.
"""

from cute_py.diagnostics import Diagnostic
from cute_py.tma.descriptor.batch import encode_many
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.describe import SLOTS, LogicalSlot, describe, logical_slots, seed_fields
from cute_py.tma.descriptor.diff import FieldDifference, FieldValue, MapDifference, diff, field_table
from cute_py.tma.descriptor.encode import QUIRKS, Quirk, encode, note_box_bytes, payload
from cute_py.tma.descriptor.fields import FIELDS, BitField
from cute_py.tma.descriptor.formats import (
    FORMATS,
    FormatRow,
    Im2ColWideMode,
    Interleave,
    L2Promotion,
    OobFill,
    TensorMapDataType,
    TensorMapSwizzle,
    format_of,
    format_row,
)
from cute_py.tma.descriptor.hazards import HAZARDS, Hazard, Warned, hazards
from cute_py.tma.descriptor.limits import ADDITIONS, ARCHITECTURES, RULES, Addition, Architecture, Rule, architecture
from cute_py.tma.descriptor.plain_data import from_json, request_of_array, request_of_npy, to_json
from cute_py.tma.descriptor.read import read_map
from cute_py.tma.descriptor.replace import (
    REPLACE_FIELDS,
    RebindStep,
    ReplaceField,
    rebind,
    rebind_steps,
    repaired,
    replace,
    update_tma_descriptor,
)
from cute_py.tma.descriptor.request import (
    Residue,
    TensorMap,
    TensorMapIm2col,
    TensorMapIm2colWide,
    TensorMapTiled,
)
from cute_py.tma.descriptor.transfer import transaction_bytes
from cute_py.tma.descriptor.violations import Violation, violations

__all__ = [
    "ADDITIONS",
    "ARCHITECTURES",
    "FIELDS",
    "FORMATS",
    "HAZARDS",
    "QUIRKS",
    "REPLACE_FIELDS",
    "RULES",
    "SLOTS",
    "Addition",
    "Architecture",
    "BitField",
    "FieldDifference",
    "FieldValue",
    "FormatRow",
    "Hazard",
    "Im2ColWideMode",
    "Interleave",
    "L2Promotion",
    "LogicalSlot",
    "MapDifference",
    "OobFill",
    "Quirk",
    "RebindStep",
    "ReplaceField",
    "Residue",
    "Rule",
    "TensorMap",
    "TensorMapDataType",
    "TensorMapIm2col",
    "TensorMapIm2colWide",
    "TensorMapSwizzle",
    "TensorMapTiled",
    "Diagnostic",
    "Violation",
    "Warned",
    "architecture",
    "decode",
    "describe",
    "diff",
    "encode",
    "encode_many",
    "field_table",
    "format_of",
    "format_row",
    "from_json",
    "hazards",
    "logical_slots",
    "note_box_bytes",
    "payload",
    "read_map",
    "rebind",
    "rebind_steps",
    "repaired",
    "replace",
    "request_of_array",
    "request_of_npy",
    "seed_fields",
    "to_json",
    "transaction_bytes",
    "update_tma_descriptor",
    "violations",
]
