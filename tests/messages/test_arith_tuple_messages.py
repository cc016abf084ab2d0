"""Every error of coordinate tensors, and every text of explain, word for word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

from cute_py import (
    ArithTuple,
    ComposedLayout,
    E,
    Int,
    Layout,
    ScaledBasis,
    Swizzle,
    coprofile,
    cosize,
    counting_iterator,
    format_latex,
    format_latex_tv,
    format_layout,
    format_tensor,
    local_tile,
    make_gmem_ptr,
    make_identity_tensor,
    make_inttuple_iter,
    make_smem_ptr,
    make_tensor,
    make_tmem_ptr,
    ratio,
    recast,
    smem_ptr_flag,
)
from cute_py.errors import CuteError
from cute_py.explanation import explain
from tests.each import each_of

FLAGGED = ComposedLayout(Swizzle(3, 4, 3), smem_ptr_flag(16), Layout((Int(8), Int(64)), (Int(64), Int(1))))


class Cai:
    """An object with `__cuda_array_interface__`."""

    def __init__(self, **entries: Any) -> None:
        whole = {"shape": (3, 4), "typestr": "<f4", "data": (4096, False), "version": 3}
        self.__cuda_array_interface__ = {**whole, **entries}


ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "static integer on a tuple": (
        lambda: ArithTuple(1, 2) + Int(3),
        """\
StaticAssertError: Arithmetic tuple op+ error!
  tuple   : (1,2)
  integer : _3
  rule    : a static 0, the zero of all modes, is the only number that can be added to a basis element""",
    ),
    "run-time integer on a tuple": (
        lambda: ArithTuple(1, 2) - 3,
        """\
LayoutError: Arithmetic tuple op- error!
  tuple   : (1,2)
  integer : 3
  rule    : a static 0, the zero of all modes, is the only number that can be added to a basis element""",
    ),
    "text on a tuple": (
        lambda: ArithTuple(1, 2) + "x",
        """\
InvalidTypeError: only coordinates can be added to an arithmetic tuple, got str 'x'
  tuple : (1,2)""",
    ),
    "the coordinates have different profiles": (
        lambda: ArithTuple(1, (2, 3)) + ArithTuple(4, 5),
        """\
LayoutError: the coordinates have different profiles
  left  : (1,(2,3))
  right : (4,5)
  mode  : 1
  there : (2,3) in left, 5 in right
  rule  : an integer and a tuple can't be added, except for a static 0""",
    ),
    "nested differently, static": (
        lambda: ArithTuple(1, (2, (3, 4))) - ArithTuple(4, (5, Int(6))),
        """\
StaticAssertError: Arithmetic tuple op+ error!
  left  : (1,(2,(3,4)))
  right : (4,(5,_6))
  mode  : 1.1
  there : (3,4) in left, _6 in right
  rule  : an integer and a tuple can't be added, except for a static 0""",
    ),
    "float in a tuple": (
        lambda: ArithTuple(1.5, 2),
        """\
InvalidTypeError: an arithmetic tuple must hold integers and tuples, got float 1.5""",
    ),
    "float times a tuple": (
        lambda: ArithTuple(1, 2) * 1.5,
        """\
InvalidTypeError: (1,2) can be scaled only by integers, got float 1.5""",
    ),
    "static integer on a basis": (
        lambda: E(1, 0) + Int(3),
        """\
StaticAssertError: ScaledBasis op+ error!
  basis   : _1@0@1
  integer : _3
  rule    : a static 0, the zero of all modes, is the only number that can be added to a basis element""",
    ),
    "run-time integer on a basis": (
        lambda: 5 - E(1),
        """\
LayoutError: ScaledBasis op- error!
  basis   : _1@1
  integer : 5
  rule    : a static 0, the zero of all modes, is the only number that can be added to a basis element""",
    ),
    "bases of different depth": (
        lambda: E(1) + E(1, 1),
        """\
StaticAssertError: Arithmetic tuple op+ error!
  left  : (_0,_1)
  right : (_0,(_0,_1))
  mode  : 1
  there : _1 in left, (_0,_1) in right
  rule  : an integer and a tuple can't be added, except for a static 0""",
    ),
    "float times a basis": (
        lambda: 0.5 * E(1),
        """\
InvalidTypeError: _1@1 can be scaled only by integers, got float 0.5""",
    ),
    "basis times a basis": (
        lambda: E(0) * E(1),
        """\
InvalidTypeError: _1@0 can be scaled only by integers, got ScaledBasis _1@1""",
    ),
    "negative mode": (
        lambda: E(0, -1),
        """\
InvalidValueError: item 1 of the basis element's modes is -1; must be 0 to 4095""",
    ),
    "mode that is no integer": (
        lambda: E(1.5),
        """\
InvalidTypeError: item 0 of the basis element's modes must be an integer, got float 1.5""",
    ),
    "coordinate as a value": (
        lambda: ScaledBasis(ArithTuple(1, 2), 0),
        """\
InvalidTypeError: the scale of a basis element must be an integer, got the coordinate (1,2)""",
    ),
    "uneven division": (
        lambda: (Int(65) * E(1)).safe_div(Int(16)),
        """\
StaticAssertError: Static safe_div requires t % u == 0
  basis   : _65@1
  divisor : _16""",
    ),
    "ratio over zero": (
        lambda: ratio(3, 0),
        """\
InvalidValueError: the denominator of 3/0 must not be 0""",
    ),
    "ratio of floats": (
        lambda: ratio(1.5, 2),
        """\
InvalidTypeError: the numerator of a ratio must be an integer, got float 1.5""",
    ),
    "strides of different depth": (
        lambda: coprofile(Layout((4, 5), (E(1), E(1, 0)))),
        """\
LayoutError: the strides belong to coordinates of different profiles
  strides : (_1@1,_1@0@1)""",
    ),
    "counting by a tuple": (
        lambda: counting_iterator(42) + (1, 2),  # noqa: RUF005
        """\
InvalidTypeError: a step of counting_iter(42) must be an integer, got tuple (1, 2)""",
    ),
    "counting in booleans": (
        lambda: counting_iterator(0, "bool"),
        """\
InvalidTypeError: a counting iterator needs an integer or float type, got bool""",
    ),
    "iterator without a coordinate": (
        lambda: make_inttuple_iter(),
        """\
InvalidTypeError: make_inttuple_iter takes one coordinate, or one argument for each mode""",
    ),
    "offset nested differently": (
        lambda: make_inttuple_iter(0, (1, 2)) + (1, 2),  # noqa: RUF005
        """\
LayoutError: the coordinates have different profiles
  left  : (0,(1,2))
  right : (1,2)
  mode  : 1
  there : (1,2) in left, 2 in right
  rule  : an integer and a tuple can't be added, except for a static 0""",
    ),
    "pointer moved by a float": (
        lambda: make_gmem_ptr(4096, "half") + 1.5,
        """\
InvalidTypeError: a step of gmem_ptr[16b](0x1000) must be an integer, got float 1.5""",
    ),
    "pointer read": (
        lambda: make_tensor(make_gmem_ptr(4096, "half"), (4, 5))(1, 2),
        """\
TensorAccessError: the memory of a pointer can't be read, because cute_py has no GPU memory
  pointer : gmem_ptr[16b](0x1000)
  offset  : 9
  hint    : make the tensor from a numpy array, or an object with __dlpack__, to read its elements""",
    ),
    "pointer written": (
        lambda: make_tensor(make_gmem_ptr(4096, "half"), (4, 5)).__setitem__((1, 2), 3),
        """\
TensorAccessError: this tensor is read-only
  engine : gmem_ptr[16b](0x1000)
  rule   : only tensors of arrays hold elements""",
    ),
    "tensor memory read": (
        lambda: make_tensor(make_tmem_ptr(32, "half"), (4, 5))(1, 2),
        """\
TensorAccessError: the memory of a tensor-memory pointer can't be read, because cute_py has no GPU memory
  pointer : tmem_[16b](0x0000.0020)
  offset  : 9""",
    ),
    "negative address": (
        lambda: make_gmem_ptr(-16, "half"),
        """\
InvalidValueError: the address of a pointer is -16 bytes; must be 0 to 18446744073709551615""",
    ),
    "wide tensor-memory address": (
        lambda: make_tmem_ptr(2**32, "half"),
        """\
InvalidValueError: a tensor-memory address is 4294967296; must be 0 to 4294967295""",
    ),
    "pointer inside a byte": (
        lambda: (make_gmem_ptr(4096, "uint4") + 1).recast("uint8"),
        """\
InvalidValueError: an element of 8 bits can't start at bit 4 of a byte
  pointer      : gmem_subptr[4b](0x1000.4)
  element type : uint8""",
    ),
    "flag of no width": (
        lambda: smem_ptr_flag(0),
        """\
InvalidValueError: the width of an unset pointer's elements is 0 bits; must be at least 1""",
    ),
    "flagged layout in global memory": (
        lambda: make_tensor(make_gmem_ptr(0, "half"), FLAGGED),
        """\
InvalidTypeError: Expected smem.
  pointer : gmem_ptr[16b]((nil))
  layout  : Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)""",
    ),
    "flagged layout of another width": (
        lambda: make_tensor(make_smem_ptr(0, "float32"), FLAGGED),
        """\
InvalidValueError: Expected a 16-bit pointer type.
  pointer : smem_ptr[32b]((nil))
  layout  : Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)""",
    ),
    "no engine": (
        lambda: make_tensor("data", (4, 5)),
        """\
InvalidTypeError: expected an engine or an array, got str 'data'
  engines : iterators, pointers, numpy arrays, and objects with __dlpack__ or __cuda_array_interface__""",
    ),
    "no layout": (
        lambda: make_tensor(counting_iterator(0)),
        """\
InvalidTypeError: make_tensor needs a layout or a shape for this engine
  engine : counting_iter(0)""",
    ),
    "layout and stride": (
        lambda: make_tensor(counting_iterator(0), Layout(4), 1),
        """\
InvalidTypeError: make_tensor takes a layout, or a shape and a stride
  layout : 4:_1
  stride : 1""",
    ),
    "dtype of an iterator": (
        lambda: make_tensor(counting_iterator(0), 4, dtype="half"),
        """\
InvalidTypeError: make_tensor takes dtype only together with an array
  engine : counting_iter(0)
  dtype  : half""",
    ),
    "dtype of another size": (
        lambda: make_tensor(np.zeros(4, np.int16), dtype="float32"),
        """\
InvalidTypeError: an array of int16 (2 bytes) can't hold float32
  stored as : float32 (4 bytes)""",
    ),
    "slice out of rank": (
        lambda: make_identity_tensor((4, 5))(1, 2, None),
        """\
CoordinateError: Mismatched Ranks
  coordinate         : (1,2,_)
  rank of coordinate : 3
  addresses          : (4,5)""",
    ),
    "coordinate out of rank": (
        lambda: make_identity_tensor((4, 5))(1, 2, 3),
        """\
CoordinateError: Mismatched Ranks
  coordinate : (1,2,3)
  shape      : (4,5)""",
    ),
    "many elements at once": (
        lambda: make_tensor(np.zeros((2, 2))).__setitem__((1, None), 2),
        """\
TensorAccessError: assign one element at a time
  coordinate : (1, None)""",
    ),
    "implicit elements written": (
        lambda: make_identity_tensor((4, 5)).__setitem__((1, 2), 3),
        """\
TensorAccessError: this tensor is read-only
  engine : ArithTuple(_0,_0)
  rule   : only tensors of arrays hold elements""",
    ),
    "strides of part elements": (
        lambda: make_tensor(Cai(strides=(17, 4))),
        """\
InvalidValueError: axis 0 has a stride of 17 bytes; must be a multiple of the element's 4 bytes
  shape   : (3, 4)
  strides : (17, 4)
  typestr : <f4""",
    ),
    "masked array": (
        lambda: make_tensor(Cai(mask=1)),
        """\
InvalidTypeError: a masked array can't be described by a layout
  object : Cai""",
    ),
    "recast of implicit elements": (
        lambda: recast(make_identity_tensor((4, 5)), "half"),
        """\
InvalidTypeError: recast needs a tensor in memory, but this engine computes its elements
  tensor   : ArithTuple(_0,_0) o (4,5):(_1@0,_1@1)
  new type : half""",
    ),
    "recast below a byte": (
        lambda: recast(make_tensor(np.zeros(8, np.uint8), (Int(8),)), "int4"),
        """\
InvalidTypeError: numpy can't recast an array from uint8 to int4: int4 has 4 bits
  rule : numpy stores each such element in a byte of its own, so its bytes differ from the GPU's""",
    ),
    "table of coordinates": (
        lambda: format_layout(Layout((4, 5), (E(0), E(1)))),
        """\
InvalidTypeError: print_layout needs integer offsets, but the offsets of this layout are coordinates
  layout : (4,5):(_1@0,_1@1)
  stride : _1@0
  hint   : use print_tensor(make_coord_tensor(layout))""",
    ),
    "table of rank 3": (
        lambda: format_layout(Layout((2, 3, 4))),
        """\
StaticAssertError: rank(layout) == Int<2>{}
  layout : (2,3,4):(_1,2,6)
  rank   : 3""",
    ),
    "picture of rank 3": (
        lambda: format_latex(Layout((2, 3, 4))),
        """\
StaticAssertError: rank(layout_a) <= Int<2>{}
  layout : (2,3,4):(_1,2,6)
  rank   : 3""",
    ),
    "thread picture of triples": (
        lambda: format_latex_tv(Layout((2, 3), (E(0), E(2))), (2, 3)),
        """\
InvalidTypeError: the picture needs coordinates (m,n) or indices; value 0 of thread 0 is at (0,_0,0)
  layout_tv : (2,3):(_1@0,_1@2)""",
    ),
    "thread picture outside the tile": (
        lambda: format_latex_tv(Layout((2, 3), (E(0), E(1))), (1, 3)),
        """\
InvalidValueError: value 0 of thread 1 is at (1,0); must be inside the tile
  layout_tv : (2,3):(_1@0,_1@1)
  tile      : (1,3)""",
    ),
    "no tensor": (
        lambda: format_tensor(Layout((2, 3))),
        """\
InvalidTypeError: print_tensor takes a tensor, got Layout (2,3):(_1,2)""",
    ),
    "unknown style": (
        lambda: format_tensor(make_identity_tensor((2, 3)), style="numpy"),
        """\
InvalidValueError: unknown style 'numpy'
  known : cute, ostream, python""",
    ),
    "symbolic tensor": (
        lambda: format_tensor(make_identity_tensor((sympy.Symbol("n", integer=True, positive=True), 3))),
        """\
InvalidTypeError: print_tensor needs known sizes, got the symbol n
  tensor : ArithTuple(_0,_0) o (n,3):(_1@0,_1@1)
  hint   : print(tensor) shows it without its elements; layout.subs({...}) replaces symbols by numbers""",
    ),
    "no words": (
        lambda: explain("()"),
        """\
InvalidTypeError: no explanation of str '()'
  takes : layouts, swizzles, tensors, atoms, tensor maps, errors of this library, objects with explain(), \
names of this library, terms, texts that `parse` reads, and what programs print""",
    ),
    "module without an order": (
        lambda: cosize(Layout((Int(2), Int(2)), (ArithTuple(1, 2), ArithTuple(2, 1)))),
        """\
LayoutError: the layout has no cosize, because strides such as (1,2) have no order
  shape  : (_2,_2)
  stride : ((1,2),(2,1))""",
    ),
}


@each_of("name", ERRORS)
def test_error(name: str) -> None:
    action, words = ERRORS[name]
    with pytest.raises(CuteError) as caught:
        action()
    assert f"{type(caught.value).__name__}: {caught.value}" == words


EXPLAINED: dict[str, tuple[Any, str]] = {
    "the tensor of a TMA copy": (
        make_tensor(
            make_inttuple_iter((0, Int(0), Int(0), Int(0))),
            Layout(((Int(128), Int(64)), 2, 3, 1), ((E(0), E(1)), Int(64) * E(1), E(2), E(3))),
        ),
        """\
ArithTuple(0,_0,_0,_0) o ((_128,_64),2,3,1):((_1@0,_1@1),_64@1,_1@2,_1@3)

A tensor of coordinates of 4 modes. No element is stored; each is computed from its coordinate.
A TMA instruction takes an element as the position of its box; mode 0 is the contiguous one.

The iterator ArithTuple(0,_0,_0,_0)
  starts at (0,0,0,0); an element is this plus the value of the layout at its coordinate.
  Numbers with an underscore are known at compile time, the others at run time.

The strides ((_1@0,_1@1),_64@1,_1@2,_1@3)
  mode 0.0 : size 128, stride _1@0: a step adds 1 to coordinate mode 0
  mode 0.1 : size 64, stride _1@1: a step adds 1 to coordinate mode 1
  mode 1   : size 2, stride _64@1: a step adds 64 to coordinate mode 1
             mode 0.1 (64 x _1@1) covers 64 there, so a step goes to the next block of 64
  mode 2   : size 3, stride _1@2: a step adds 1 to coordinate mode 2
  mode 3   : size 1, stride _1@3: a single index, so it never moves

Logical coordinate -> element
  first                : ((0,0),0,0,0)    -> (0,0,0,0)
  one step in mode 0.0 : ((1,0),0,0,0)    -> (1,0,0,0)
  one step in mode 0.1 : ((0,1),0,0,0)    -> (0,1,0,0)
  one step in mode 1   : ((0,0),1,0,0)    -> (0,64,0,0)
  one step in mode 2   : ((0,0),0,1,0)    -> (0,0,1,0)
  last                 : ((127,63),1,2,0) -> (127,127,2,0)

With cI the index in mode I
  coordinate mode 0 = c0.0
  coordinate mode 1 = c0.1 + 64 * c1
  coordinate mode 2 = c2
  coordinate mode 3 = 0""",
    ),
    "a tile of a nested shape": (
        local_tile(make_identity_tensor((100, (60, 7))), (Int(16), Int(8)), (2, None)),
        """\
ArithTuple(32,(_0,_0)) o (_16,(8,1),(8,7)):(_1@0,(_1@0@1,1@1@1),(_8@0@1,1@1@1))

A tensor of coordinates of 3 modes. No element is stored; each is computed from its coordinate.
A TMA instruction takes an element as the position of its box; mode 0 is the contiguous one.

The iterator ArithTuple(32,(_0,_0))
  starts at (32,(0,0)); an element is this plus the value of the layout at its coordinate.
  It is not the origin: the tensor is a slice or a tile of a larger one.
  Numbers with an underscore are known at compile time, the others at run time.

The strides (_1@0,(_1@0@1,1@1@1),(_8@0@1,1@1@1))
  mode 0   : size 16, stride _1@0: a step adds 1 to coordinate mode 0
  mode 1.0 : size 8, stride _1@0@1: a step adds 1 to coordinate mode 1.0
  mode 1.1 : size 1, stride 1@1@1: a single index, so it never moves
  mode 2.0 : size 8, stride _8@0@1: a step adds 8 to coordinate mode 1.0
             mode 1.0 (8 x _1@0@1) covers 8 there, so a step goes to the next block of 8
  mode 2.1 : size 7, stride 1@1@1: a step adds 1 to coordinate mode 1.1

Logical coordinate -> element
  first                : (0,(0,0),(0,0))  -> (32,(0,0))
  one step in mode 0   : (1,(0,0),(0,0))  -> (33,(0,0))
  one step in mode 1.0 : (0,(1,0),(0,0))  -> (32,(1,0))
  one step in mode 2.0 : (0,(0,0),(1,0))  -> (32,(8,0))
  one step in mode 2.1 : (0,(0,0),(0,1))  -> (32,(0,1))
  last                 : (15,(7,0),(7,6)) -> (47,(63,6))

With cI the index in mode I
  coordinate mode 0 = 32 + c0
  coordinate mode 1.0 = c1.0 + 8 * c2.0
  coordinate mode 1.1 = c2.1""",
    ),
    "implicit integers": (
        make_tensor(counting_iterator(42), (4, 5)),
        """\
counting_iter(42) o (4,5):(_1,4)

A tensor of implicit integers. No element is stored; each is computed from its coordinate.

The iterator counting_iter(42)
  counts from 42 on, in int32.

The strides (_1,4)
  mode 0 : size 4, stride _1: a step adds 1 to the integer
  mode 1 : size 5, stride 4: a step adds 4 to the integer
           mode 0 (4 x _1) covers 4 there, so a step goes to the next block of 4

Logical coordinate -> element
  first              : (0,0) -> 42
  one step in mode 0 : (1,0) -> 43
  one step in mode 1 : (0,1) -> 46
  last               : (3,4) -> 61""",
    ),
    "a layout with a broadcast mode": (
        Layout((4, 5), (3 * E(1), Int(0))),
        """\
(4,5):(3@1,_0)

A layout whose values are coordinates: its strides are basis elements, `value@mode`.

The strides (3@1,_0)
  mode 0 : size 4, stride 3@1: a step adds 3 to coordinate mode 1
           only one position in 3 is reached
  mode 1 : size 5, stride _0: a step moves nowhere: every index gives the same element

Logical coordinate -> value
  first              : (0,0) -> 0@1
  one step in mode 0 : (1,0) -> 3@1
  one step in mode 1 : (0,1) -> 0@1
  last               : (3,4) -> 9@1""",
    ),
    "one axis": (
        make_identity_tensor(5),
        """\
ArithTuple_0 o 5:_1

A tensor of implicit integers. No element is stored; each is computed from its coordinate.

The iterator ArithTuple_0
  starts at 0; an element is this plus the value of the layout at its coordinate.
  Numbers with an underscore are known at compile time, the others at run time.

The strides _1
  mode 0 : size 5, stride _1: a step adds 1 to the integer

Logical coordinate -> element
  first              : 0 -> 0
  one step in mode 0 : 1 -> 1
  last               : 4 -> 4""",
    ),
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_explained(name: str) -> None:
    thing, words = EXPLAINED[name]
    assert explain(thing) == words
