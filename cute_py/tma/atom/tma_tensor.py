"""The TMA tensor: the global tensor with coordinates in place of elements.

Its strides move along the modes of the tensor map, so that tiling and slicing it gives the coordinates that the
instruction takes. They start at a static zero of the map's rank.
Source: cute/atom/copy_traits_sm90_tma.hpp, get_tma_tensor. Differs: C++ makes the zero as long as the highest mode that
a stride names; where the last modes never move, its coordinate is shorter than the map's rank. Here it is padded.
"""

from __future__ import annotations

from typing import Any

from cute_py.argument_checks import expect_integer
from cute_py.arith_tuple.arith_tuple import ArithTuple
from cute_py.arith_tuple.iterators import ArithTupleIterator
from cute_py.errors import InvalidValueError, StaticAssertError
from cute_py.layout.int_tuple import congruent
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int, Tree
from cute_py.tensor.tensor import Tensor


def tma_tensor(shape: Any, g_stride: Tree, rank: int) -> Tensor:
    """The coordinate tensor of a shape congruent with the global tensor's.

    Raises:
        StaticAssertError: the shapes are not congruent.

    >>> print(tma_tensor((1024, 512), (E(1), E(0)), 2))
    ArithTuple(_0,_0) o (1024,512):(_1@1,_1@0)
    """
    rank = expect_integer(rank, "the rank of a tensor map")
    if not 0 <= rank <= 5:
        raise InvalidValueError(f"rank {rank} of a tensor map; must be 1 to 5")
    if hasattr(shape, "shape") and not isinstance(shape, (int, tuple)):
        shape = shape.shape
    if not congruent(shape, g_stride):
        raise StaticAssertError(
            "is_congruent<decltype(g_shape), decltype(aux_params_.g_stride_)>::value",
            {"shape": shape, "strides of the TMA tensor": g_stride, "rule": "the shape must be congruent with gmem's"},
        )
    return Tensor(ArithTupleIterator(ArithTuple(*[Int(0)] * rank)), Layout(shape, g_stride))
