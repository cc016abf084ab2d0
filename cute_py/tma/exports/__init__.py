"""A copy as text for another program: CUDA C++, PTX, the driver call, CuTe C++, Triton."""

from __future__ import annotations

from cute_py.tma.exports.cuda import cuda_kernel, encode_call
from cute_py.tma.exports.export import export, write_export
from cute_py.tma.exports.frameworks import cute_cpp, triton
from cute_py.tma.exports.rebind import RebindSequence, birth_sequence, rebind_ptx, rebind_sequence
from cute_py.tma.exports.single_tile import single_tile_ptx

__all__ = [
    "RebindSequence",
    "birth_sequence",
    "cuda_kernel",
    "cute_cpp",
    "encode_call",
    "export",
    "rebind_ptx",
    "rebind_sequence",
    "single_tile_ptx",
    "triton",
    "write_export",
]
