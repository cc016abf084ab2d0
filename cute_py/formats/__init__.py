"""Block-scaled numbers as layouts: formats, orders of scales, and casts.

A format defines how a logical (M, K) tensor of numbers is stored: elements, blocks, scales, packing and padding. The
order of its scales in memory is a CuTe layout. `cute.copy(array, format)` quantises, `cute.copy(scaled, array)`
dequantises.
"""

from cute_py.formats.buffers import check
from cute_py.formats.format import Format, fp8, mxfp4, mxfp6, mxfp8, nvfp4, parse_format
from cute_py.formats.known_orders import identify
from cute_py.formats.kv_cache import kv_cache_layout
from cute_py.formats.numbers import NUMBERS, cast, codes, number, of_codes, to_float32
from cute_py.formats.packing import pack_elements, unpack_elements
from cute_py.formats.policy import POLICY
from cute_py.formats.scale_orders import ORDERS, scale_order, sf_atom
from cute_py.formats.scale_rules import LIKE
from cute_py.formats.scaled_tensor import ScaledTensor

__all__ = [
    "LIKE",
    "NUMBERS",
    "ORDERS",
    "POLICY",
    "Format",
    "ScaledTensor",
    "cast",
    "check",
    "codes",
    "fp8",
    "identify",
    "kv_cache_layout",
    "mxfp4",
    "mxfp6",
    "mxfp8",
    "number",
    "nvfp4",
    "of_codes",
    "pack_elements",
    "parse_format",
    "scale_order",
    "sf_atom",
    "to_float32",
    "unpack_elements",
]
