"""Coordinates as values: arithmetic tuples, basis strides, iterators, pointers, and the tensors made of them."""

from cute_py.arith_tuple.arith_tuple import ArithTuple as ArithTuple
from cute_py.arith_tuple.arith_tuple import E as E
from cute_py.arith_tuple.arith_tuple import ScaledBasis as ScaledBasis
from cute_py.arith_tuple.arith_tuple import as_arith_tuple as as_arith_tuple
from cute_py.arith_tuple.arith_tuple import basis_get as basis_get
from cute_py.arith_tuple.arith_tuple import basis_value as basis_value
from cute_py.arith_tuple.arith_tuple import make_basis_like as make_basis_like
from cute_py.arith_tuple.cells import text as text
from cute_py.arith_tuple.iterators import ArithTupleIterator as ArithTupleIterator
from cute_py.arith_tuple.iterators import CountingIterator as CountingIterator
from cute_py.arith_tuple.iterators import counting_iterator as counting_iterator
from cute_py.arith_tuple.iterators import make_inttuple_iter as make_inttuple_iter
from cute_py.arith_tuple.ratio import Ratio as Ratio
from cute_py.arith_tuple.ratio import ratio as ratio
from cute_py.moved import export_public, forward

__getattr__ = forward(__name__, "cute_py")

export_public(__name__)
