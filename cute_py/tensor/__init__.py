"""Tensors: engines (pointers, arrays, iterators) over layouts, their tiles, and how they print."""

from __future__ import annotations

from cute_py.tensor.arrays import ArrayEngine
from cute_py.tensor.latex import format_latex, format_latex_tv, format_layout, print_latex, print_latex_tv, print_layout
from cute_py.tensor.partition import (
    inner_partition,
    local_partition,
    local_tile,
    make_layout_tv,
    outer_partition,
)
from cute_py.tensor.pointers import (
    Pointer,
    TmemPointer,
    make_gmem_ptr,
    make_ptr,
    make_rmem_ptr,
    make_smem_ptr,
    make_tmem_ptr,
)
from cute_py.tensor.printing import format_tensor, ostream_text, print_tensor
from cute_py.tensor.tensor import (
    Tensor,
    make_coord_tensor,
    make_identity_layout,
    make_identity_tensor,
    make_tensor,
    recast,
)

__all__ = [
    "ArrayEngine",
    "Pointer",
    "Tensor",
    "TmemPointer",
    "format_latex",
    "format_latex_tv",
    "format_layout",
    "format_tensor",
    "inner_partition",
    "local_partition",
    "local_tile",
    "make_coord_tensor",
    "make_gmem_ptr",
    "make_identity_layout",
    "make_identity_tensor",
    "make_layout_tv",
    "make_ptr",
    "make_rmem_ptr",
    "make_smem_ptr",
    "make_tensor",
    "make_tmem_ptr",
    "ostream_text",
    "outer_partition",
    "print_latex",
    "print_latex_tv",
    "print_layout",
    "print_tensor",
    "recast",
]
