"""`std::cout << tensor`: the other text that C++ has for a tensor, the layout and every cell at least nine wide.

A width applies to the first thing that is written, so of a coordinate only the parenthesis is padded; 8-bit integers
are characters; floats have six significant digits. The engine is not shown, and an unset pointer is its offset 0.
Source: print_tensor_os and the operators << of cute; run for every type of the table in `cells`.
"""

from __future__ import annotations

from typing import Any

from cute_py.arith_tuple.arith_tuple import ArithTuple
from cute_py.arith_tuple.cells import c_float, dtype_of, element_text, is_number, known_integer, slabs, text
from cute_py.arith_tuple.iterators import CountingIterator
from cute_py.arith_tuple.ratio import Ratio
from cute_py.arith_tuple.scaled_basis import ScaledBasis
from cute_py.dtypes import DType
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int
from cute_py.layout.trees import check_depth
from cute_py.tensor.pointers import Pointer, TmemPointer

WIDTH = 9


def ostream_text(value: Any) -> str:
    """A layout, basis element, tuple, number, pointer or iterator as `std::cout << x` shows it.

    >>> ostream_text(Layout((4, Int(6)), (ratio(1, 2) * E(0), E(1))))
    '(4,_6):(__1/_2@0,_1@1)'
    """
    if isinstance(value, Layout):
        return f"{ostream_text(value.shape)}:{ostream_text(value.stride)}"
    if isinstance(value, ComposedLayout):
        offset = Int(int(value.offset)) if isinstance(value.offset, Int) else value.offset
        return f"{ostream_text(value.outer)} o {offset} o {ostream_text(value.inner)}"
    if isinstance(value, (tuple, ArithTuple)):
        check_depth(value)
        return "(" + ",".join([ostream_text(v) for v in value]) + ")"
    if isinstance(value, Ratio):
        return f"_{value}"
    if isinstance(value, ScaledBasis):
        return ostream_text(value.value) + "".join([f"@{mode}" for mode in reversed(value.modes)])
    if isinstance(value, int):
        return element_text(value)
    if isinstance(value, (Pointer, TmemPointer)):
        return _pointer(value)
    if isinstance(value, CountingIterator) and value.dtype.kind == "float":
        return f"counting_iter({value.value:g})"
    return text(value)


def _pointer(pointer: Pointer | TmemPointer) -> str:
    """Memory space and width, without the address; of tensor memory the address in decimal."""
    if isinstance(pointer, TmemPointer):
        return f"tmem_[{pointer.dtype.bits}b]({pointer.address})"
    if pointer.space not in ("gmem", "smem"):
        return f"{pointer.address:#x}" if pointer.address else "0"
    swizzle = f"{pointer.swizzle}_" if pointer.swizzle is not None and pointer.swizzle.bits else ""
    return f"{swizzle}{pointer.space}_[{pointer.dtype.bits}b]"


def _cell(value: Any, dtype: DType | None) -> str:
    if dtype is None:
        if isinstance(value, ArithTuple):
            return " " * (WIDTH - 1) + ostream_text(value)
        if isinstance(value, ScaledBasis):
            tail = "".join([f"@{mode}" for mode in reversed(value.modes)])
            return _padded_static(value.value) + tail
        return _padded_static(value)
    if dtype.name in ("int8", "uint8"):
        return f"{chr(known_integer(value, 'an element') & 255):>{WIDTH}}"
    if dtype.kind == "float":
        return f"{c_float(value, 'g'):>{WIDTH}}"
    return f"{element_text(value):>{WIDTH}}"


def _padded_static(value: Any) -> str:
    """A static number is written in two parts, and the width is spent on its underscore."""
    if isinstance(value, Int):
        return f"{'_':>{WIDTH}}{int(value)}"
    if is_number(value):
        return f"{int(value):>{WIDTH}}"
    words = ostream_text(value)
    return f"{words[:1]:>{WIDTH}}{words[1:]}"


def ostream_tensor(tensor: Any, header: bool = True) -> str:
    """The text of `std::cout << tensor`, with or without its line of the layout."""
    dtype = dtype_of(tensor)
    head = ostream_text(tensor.layout) + "\n" if header else ""
    return head + "".join(slabs(tensor, lambda value: _cell(value, dtype), WIDTH))
