"""Tensor maps (CUtensorMap): requests, their rules, and every bit of the 128 bytes.

A request has the arguments of a map, `violations` and `hazards` list what is wrong or harmful in it, `encode` gives
the bytes, `decode` the request back. Modes are innermost first, strides in bytes. Nothing here needs a driver or a GPU.
"""

from cute_py.diagnostics import Diagnostic as Diagnostic
from cute_py.moved import export_public
from cute_py.tma.descriptor.batch import encode_many as encode_many
from cute_py.tma.descriptor.decode import decode as decode
from cute_py.tma.descriptor.describe import SLOTS as SLOTS
from cute_py.tma.descriptor.describe import LogicalSlot as LogicalSlot
from cute_py.tma.descriptor.describe import describe as describe
from cute_py.tma.descriptor.describe import logical_slots as logical_slots
from cute_py.tma.descriptor.describe import seed_fields as seed_fields
from cute_py.tma.descriptor.diff import FieldDifference as FieldDifference
from cute_py.tma.descriptor.diff import FieldValue as FieldValue
from cute_py.tma.descriptor.diff import MapDifference as MapDifference
from cute_py.tma.descriptor.diff import diff as diff
from cute_py.tma.descriptor.diff import field_table as field_table
from cute_py.tma.descriptor.encode import QUIRKS as QUIRKS
from cute_py.tma.descriptor.encode import Quirk as Quirk
from cute_py.tma.descriptor.encode import encode as encode
from cute_py.tma.descriptor.encode import note_box_bytes as note_box_bytes
from cute_py.tma.descriptor.encode import payload as payload
from cute_py.tma.descriptor.fields import FIELDS as FIELDS
from cute_py.tma.descriptor.fields import BitField as BitField
from cute_py.tma.descriptor.formats import FORMATS as FORMATS
from cute_py.tma.descriptor.formats import FormatRow as FormatRow
from cute_py.tma.descriptor.formats import Im2ColWideMode as Im2ColWideMode
from cute_py.tma.descriptor.formats import Interleave as Interleave
from cute_py.tma.descriptor.formats import L2Promotion as L2Promotion
from cute_py.tma.descriptor.formats import OobFill as OobFill
from cute_py.tma.descriptor.formats import TensorMapDataType as TensorMapDataType
from cute_py.tma.descriptor.formats import TensorMapSwizzle as TensorMapSwizzle
from cute_py.tma.descriptor.formats import format_of as format_of
from cute_py.tma.descriptor.formats import format_row as format_row
from cute_py.tma.descriptor.hazards import HAZARDS as HAZARDS
from cute_py.tma.descriptor.hazards import Hazard as Hazard
from cute_py.tma.descriptor.hazards import Warned as Warned
from cute_py.tma.descriptor.hazards import hazards as hazards
from cute_py.tma.descriptor.limits import ADDITIONS as ADDITIONS
from cute_py.tma.descriptor.limits import ARCHITECTURES as ARCHITECTURES
from cute_py.tma.descriptor.limits import RULES as RULES
from cute_py.tma.descriptor.limits import Addition as Addition
from cute_py.tma.descriptor.limits import Architecture as Architecture
from cute_py.tma.descriptor.limits import Rule as Rule
from cute_py.tma.descriptor.limits import architecture as architecture
from cute_py.tma.descriptor.plain_data import from_json as from_json
from cute_py.tma.descriptor.plain_data import request_of_array as request_of_array
from cute_py.tma.descriptor.plain_data import request_of_npy as request_of_npy
from cute_py.tma.descriptor.plain_data import to_json as to_json
from cute_py.tma.descriptor.read import read_map as read_map
from cute_py.tma.descriptor.replace import REPLACE_FIELDS as REPLACE_FIELDS
from cute_py.tma.descriptor.replace import RebindStep as RebindStep
from cute_py.tma.descriptor.replace import ReplaceField as ReplaceField
from cute_py.tma.descriptor.replace import rebind as rebind
from cute_py.tma.descriptor.replace import rebind_steps as rebind_steps
from cute_py.tma.descriptor.replace import repaired as repaired
from cute_py.tma.descriptor.replace import replace as replace
from cute_py.tma.descriptor.replace import update_tma_descriptor as update_tma_descriptor
from cute_py.tma.descriptor.request import Residue as Residue
from cute_py.tma.descriptor.request import TensorMap as TensorMap
from cute_py.tma.descriptor.request import TensorMapIm2col as TensorMapIm2col
from cute_py.tma.descriptor.request import TensorMapIm2colWide as TensorMapIm2colWide
from cute_py.tma.descriptor.request import TensorMapTiled as TensorMapTiled
from cute_py.tma.descriptor.transfer import transaction_bytes as transaction_bytes
from cute_py.tma.descriptor.violations import Violation as Violation
from cute_py.tma.descriptor.violations import violations as violations

export_public(__name__)
