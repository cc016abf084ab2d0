"""A copy as text for another program: CUDA C++, PTX, the driver call, CuTe C++, Triton."""

from __future__ import annotations

from cute_py.tma.exports.export import cute_cpp, encode_call, export, triton, write_export
from cute_py.tma.exports.single_tile import cuda_kernel, single_tile_ptx

__all__ = [
    "cuda_kernel",
    "cute_cpp",
    "encode_call",
    "export",
    "single_tile_ptx",
    "triton",
    "write_export",
]
