"""Exports of a copy as code for other programs: CUDA C++, PTX, the driver call, CuTe C++, Triton."""

from cute_py.deprecations import export_public
from cute_py.tma.exports.export import cute_cpp as cute_cpp
from cute_py.tma.exports.export import encode_call as encode_call
from cute_py.tma.exports.export import export as export
from cute_py.tma.exports.export import triton as triton
from cute_py.tma.exports.export import write_export as write_export
from cute_py.tma.exports.single_tile import cuda_kernel as cuda_kernel
from cute_py.tma.exports.single_tile import single_tile_ptx as single_tile_ptx

export_public(__name__)
