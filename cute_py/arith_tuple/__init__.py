"""Coordinates as values: arithmetic tuples, basis strides, iterators, pointers, and the tensors made of them."""

from __future__ import annotations

from cute_py.arith_tuple.arith_tuple import (
    ArithTuple,
    E,
    ScaledBasis,
    as_arith_tuple,
    basis_get,
    basis_value,
    make_basis_like,
)
from cute_py.arith_tuple.cells import text
from cute_py.arith_tuple.iterators import ArithTupleIterator, CountingIterator, counting_iterator, make_inttuple_iter
from cute_py.arith_tuple.ratio import Ratio, ratio
from cute_py.moved import forward

__getattr__ = forward(__name__, "cute_py")

__all__ = [
    "ArithTuple",
    "ArithTupleIterator",
    "CountingIterator",
    "E",
    "Ratio",
    "ScaledBasis",
    "as_arith_tuple",
    "basis_get",
    "basis_value",
    "counting_iterator",
    "make_basis_like",
    "make_inttuple_iter",
    "ratio",
    "text",
]
