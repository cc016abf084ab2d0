"""Tensor maps (CUtensorMap): requests, their rules, and every bit of the 128 bytes.

A request has the arguments that a tensor map is encoded from. `violations` lists the driver's rules that a request
breaks, and `hazards` lists its legal but harmful properties. `encode` converts a request to bytes, and `decode`
converts bytes to a request. Modes are innermost first, and strides are in bytes. This package needs no driver and no
GPU.
"""

from cute_py.deprecations import export_public
from cute_py.diagnostics import Diagnostic as Diagnostic
from cute_py.tma.descriptor.batch import encode_many as encode_many
from cute_py.tma.descriptor.data_types import FORMATS as FORMATS
from cute_py.tma.descriptor.data_types import FormatRow as FormatRow
from cute_py.tma.descriptor.data_types import Im2ColWideMode as Im2ColWideMode
from cute_py.tma.descriptor.data_types import Interleave as Interleave
from cute_py.tma.descriptor.data_types import L2Promotion as L2Promotion
from cute_py.tma.descriptor.data_types import OobFill as OobFill
from cute_py.tma.descriptor.data_types import TensorMapDataType as TensorMapDataType
from cute_py.tma.descriptor.data_types import TensorMapSwizzle as TensorMapSwizzle
from cute_py.tma.descriptor.data_types import format_of as format_of
from cute_py.tma.descriptor.data_types import format_row as format_row
from cute_py.tma.descriptor.decode import decode as decode
from cute_py.tma.descriptor.describe import *
from cute_py.tma.descriptor.diff import *
from cute_py.tma.descriptor.encode import *
from cute_py.tma.descriptor.fields import FIELDS as FIELDS
from cute_py.tma.descriptor.fields import BitField as BitField
from cute_py.tma.descriptor.hazards import *
from cute_py.tma.descriptor.limits import *
from cute_py.tma.descriptor.plain_data import *
from cute_py.tma.descriptor.read import read_map as read_map
from cute_py.tma.descriptor.replace import REPLACE_FIELDS as REPLACE_FIELDS
from cute_py.tma.descriptor.replace import RebindStep as RebindStep
from cute_py.tma.descriptor.replace import ReplaceField as ReplaceField
from cute_py.tma.descriptor.replace import rebind as rebind
from cute_py.tma.descriptor.replace import rebind_steps as rebind_steps
from cute_py.tma.descriptor.replace import repaired as repaired
from cute_py.tma.descriptor.replace import replace as replace
from cute_py.tma.descriptor.replace import update_tma_descriptor as update_tma_descriptor
from cute_py.tma.descriptor.request import *
from cute_py.tma.descriptor.transfer import transaction_bytes as transaction_bytes
from cute_py.tma.descriptor.violations import Violation as Violation
from cute_py.tma.descriptor.violations import violations as violations

export_public(__name__)
