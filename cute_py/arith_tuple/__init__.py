"""Coordinates as values: arithmetic tuples, basis strides, iterators, pointers, and the tensors made of them."""

from cute_py.arith_tuple.arith_tuple import ArithTuple, as_arith_tuple
from cute_py.arith_tuple.arrays import ArrayEngine
from cute_py.arith_tuple.cells import text
from cute_py.arith_tuple.iterators import ArithTupleIterator, CountingIterator, counting_iterator, make_inttuple_iter
from cute_py.arith_tuple.latex import format_latex, format_latex_tv, print_latex, print_latex_tv
from cute_py.arith_tuple.layout_table import format_layout, print_layout
from cute_py.arith_tuple.ostream import ostream_text
from cute_py.arith_tuple.parse import parse
from cute_py.arith_tuple.pointers import (
    Pointer,
    TmemPointer,
    make_gmem_ptr,
    make_ptr,
    make_rmem_ptr,
    make_smem_ptr,
    make_tmem_ptr,
)
from cute_py.arith_tuple.printing import format_tensor, print_tensor
from cute_py.arith_tuple.ratio import Ratio, ratio
from cute_py.arith_tuple.scaled_basis import E, ScaledBasis, basis_get, basis_value, make_basis_like
from cute_py.arith_tuple.tensors import (
    make_coord_tensor,
    make_identity_layout,
    make_identity_tensor,
    make_tensor,
    recast,
)

__all__ = [
    "ArithTuple",
    "ArithTupleIterator",
    "ArrayEngine",
    "CountingIterator",
    "E",
    "Pointer",
    "Ratio",
    "ScaledBasis",
    "TmemPointer",
    "as_arith_tuple",
    "basis_get",
    "basis_value",
    "counting_iterator",
    "format_latex",
    "format_latex_tv",
    "format_layout",
    "format_tensor",
    "make_basis_like",
    "make_coord_tensor",
    "make_gmem_ptr",
    "make_identity_layout",
    "make_identity_tensor",
    "make_inttuple_iter",
    "make_ptr",
    "make_rmem_ptr",
    "make_smem_ptr",
    "make_tensor",
    "make_tmem_ptr",
    "ostream_text",
    "parse",
    "print_latex",
    "print_latex_tv",
    "print_layout",
    "print_tensor",
    "ratio",
    "recast",
    "text",
]
