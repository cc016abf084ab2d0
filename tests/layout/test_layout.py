"""The classes: construction, comparison, immutability, texts, and what they refuse."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import numpy as np
import pytest
import sympy

import cute_py as cute
from cute_py import ComposedLayout, Int, Layout, Swizzle, Tensor
from cute_py.errors import (
    CoordinateError,
    CuteError,
    InvalidTypeError,
    InvalidValueError,
    LayoutError,
    StaticAssertError,
)

A = Layout((Int(4), Int(8)), (Int(8), Int(1)))


def nested(levels: int, leaf: Any = 4) -> Any:
    for _ in range(levels):
        leaf = (leaf,)
    return leaf


def test_numpy_integers_are_run_time_integers() -> None:
    layout = Layout((np.int64(4), np.uint8(8)), (np.int32(8), np.int16(1)))
    assert str(layout) == "(4,8):(8,1)"
    assert layout(np.int8(3)) == 24
    assert type(layout(np.int8(3))) is int


def test_static_and_run_time_numbers_compare_equal_and_print_apart() -> None:
    plain = Layout((4, 8), (8, 1))
    assert plain == A
    assert hash(plain) == hash(A)
    assert str(plain) != str(A)
    assert cute.static(plain) == A
    assert str(cute.static(plain)) == str(A)
    assert {plain: 1}[A] == 1


@pytest.mark.parametrize(
    "thing",
    [
        A,
        Layout((4, (2, 3))),
        Swizzle(3, 4, 3),
        ComposedLayout(Swizzle(2, 0, 3), 5, A),
        cute.make_identity_layout((4, (2, 3))),
    ],
    ids=str,
)
def test_values_are_immutable_copy_and_pickle(thing: Any) -> None:
    with pytest.raises(AttributeError):
        thing.shape = 3
    with pytest.raises(AttributeError):
        thing.anything = 3
    for again in (copy.copy(thing), copy.deepcopy(thing), pickle.loads(pickle.dumps(thing))):
        assert again == thing
        assert hash(again) == hash(thing)
        assert str(again) == str(thing)


def test_no_length_and_no_iteration() -> None:
    with pytest.raises(TypeError):
        len(A)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        iter(A)  # type: ignore[call-overload]


def test_modes() -> None:
    assert A[0] == Layout(4, 8)
    assert A[-1] == Layout(8, 1)
    assert Layout(4)[0] == Layout(4)


@pytest.mark.parametrize(
    ("shape", "stride"),
    [
        (True, None),
        ((True, 4), None),
        (np.bool_(True), None),
        (4.0, None),
        ((4, 8.0), None),
        (np.float32(4), None),
        (np.array([4, 8]), None),
        ([4, 8], None),
        ("4", None),
        (None, None),
        ({}, None),
        (4, 1.0),
        (4, True),
        ((4, 8), (1, "4")),
        (4 + 0j, None),
    ],
    ids=repr,
)
def test_what_is_no_integer_is_refused(shape: Any, stride: Any) -> None:
    with pytest.raises(InvalidTypeError):
        Layout(shape, stride)


@pytest.mark.parametrize(
    ("shape", "stride"),
    [((4, 8), 1), (4, (1, 2)), ((4, 8), (1, (2, 3))), ((4, (2, 3)), (1, 2)), ((), 1), ((4,), (1, 2))],
    ids=repr,
)
def test_incongruent_strides_are_refused(shape: Any, stride: Any) -> None:
    with pytest.raises(LayoutError, match="congruent"):
        Layout(shape, stride)


@pytest.mark.parametrize("size", [-1, Int(-1), np.int64(-4)], ids=repr)
def test_negative_sizes_are_refused_and_zero_is_not(size: Any) -> None:
    with pytest.raises(InvalidValueError, match="the shape has the size"):
        Layout((4, size))
    assert cute.size(Layout((4, 0))) == 0


def test_sizes_beyond_64_bits_are_exact() -> None:
    big = 10**15
    layout = Layout((Int(big), Int(big)))
    assert cute.size(layout) == big**2
    assert layout(big - 1, big - 1) == big**2 - 1
    assert cute.composition(layout, Layout(Int(big), Int(2)))(big - 1) == 2 * (big - 1)
    assert cute.right_inverse(layout) == Layout(big**2)


DEEP = 5000
DEEP_CALLS: dict[str, Any] = {
    "Layout": lambda t: Layout(t),
    "stride": lambda t: Layout((4, 8), t),
    "call": lambda t: A(t),
    "slice": lambda t: cute.slice_(t, A),
    "dice": lambda t: cute.dice(t, A),
    "composed call": lambda t: ComposedLayout(Swizzle(1, 0, 1), 0, A)(t),
    "composition": lambda t: cute.composition(A, t),
    "logical_divide": lambda t: cute.logical_divide(A, t),
    "zipped_divide": lambda t: cute.zipped_divide(A, t),
    "logical_product": lambda t: cute.logical_product(A, t),
    "coalesce": lambda t: cute.coalesce(A, t),
    "filter": lambda t: cute.filter(A, t),
    "complement": lambda t: cute.complement(A, t),
    "size": lambda t: cute.size(t),
    "congruent": lambda t: cute.congruent(t, 4),
    "flatten": lambda t: cute.flatten(t),
    "unflatten": lambda t: cute.unflatten(A, t),
    "idx2crd": lambda t: cute.idx2crd(3, t),
    "crd2idx": lambda t: cute.crd2idx(t, t),
    "local_tile": lambda t: cute.local_tile(A, t, 0),
    "offsets": lambda t: cute.offsets(A, t),
    "static": lambda t: cute.static(t),
    "make_ordered_layout": lambda t: cute.make_ordered_layout((4, 8), t),
}


@pytest.mark.parametrize("name", DEEP_CALLS)
@pytest.mark.parametrize("leaf", [4, None], ids=["integers", "underscores"])
def test_huge_nesting_is_refused_and_not_recursed(name: str, leaf: Any) -> None:
    with pytest.raises(CuteError):
        DEEP_CALLS[name](nested(DEEP, leaf))


@pytest.mark.parametrize(
    ("coord", "error"),
    [
        (True, InvalidTypeError),
        (1.5, InvalidTypeError),
        ("a", InvalidTypeError),
        ((1, 2, 3), CoordinateError),
        ((1, (2, 3)), CoordinateError),
        ((), CoordinateError),
        ((1.0, 2), InvalidTypeError),
    ],
    ids=repr,
)
def test_coordinates_that_do_not_fit(coord: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        A(coord)


WRONG: dict[str, Any] = {
    "composition": lambda x: cute.composition(A, x),
    "logical_divide": lambda x: cute.logical_divide(A, (x,)),
    "complement": lambda x: cute.complement(A, x),
    "right_inverse": lambda x: cute.right_inverse(x),
    "coalesce": lambda x: cute.coalesce(x),
    "nullspace": lambda x: cute.nullspace(x),
    "size": lambda x: cute.size(x),
    "group_modes": lambda x: cute.group_modes(A, x, 2),
    "take": lambda x: cute.take(A, x, 2),
    "mode": lambda x: A[x],
    "replace": lambda x: cute.replace(A, x, A),
    "tile_to_shape": lambda x: cute.tile_to_shape(A, x),
    "upcast": lambda x: cute.upcast(A, x),
    "swizzle": lambda x: Swizzle(x, 0, 3),
    "swizzled": lambda x: Swizzle(1, 0, 3)(x),
    "offsets": lambda x: cute.offsets(A, x),
    "recast": lambda x: cute.recast_layout(A, x, x),
    "linear": lambda x: cute.linear(x),
    "tensor": lambda x: Tensor(x, A),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("value", [2.5, "text", True], ids=repr)
def test_operations_refuse_what_they_do_not_take(name: str, value: Any) -> None:
    with pytest.raises(CuteError):
        WRONG[name](value)


def test_static_arithmetic_stays_static() -> None:
    assert [str(x) for x in (Int(4) * Int(2), Int(4) * 2, Int(0) * 7, Int(7) % Int(4), -Int(3), 8 // Int(2))] == [
        "_8",
        "8",
        "_0",
        "_3",
        "_-3",
        "4",
    ]
    for bad in (True, 4.0, "4", np.bool_(True), None):
        with pytest.raises(InvalidTypeError):
            Int(bad)


def test_equal_where_shape_and_stride_are() -> None:
    m, n = sympy.symbols("m n", integer=True, positive=True)
    made = [Layout((4, x), (y, 2)) for x in (8, 9, m, n) for y in (1, 3, m)]
    again = [Layout((4, x), (y, 2)) for x in (8, 9, m, n) for y in (1, 3, m)]
    for i, a in enumerate(made):
        assert [a == b for b in again] == [i == j for j in range(len(again))]
    assert set(made) == set(again)
    assert Layout(4, 1) != Layout(8, 1)


def test_an_order_has_the_rank_of_the_shape() -> None:
    with pytest.raises(StaticAssertError, match="Mismatched Ranks"):
        cute.make_ordered_layout((4, 8), (0, 1, 2))
    with pytest.raises(StaticAssertError, match="Mismatched Ranks"):
        cute.make_ordered_layout((4, 8), ((0, 1), 2))


def test_select_takes_modes_one_by_one_or_as_one_sequence() -> None:
    layout = Layout((4, 8, 2))
    assert cute.select(layout, 2, 0) == cute.select(layout, (2, 0)) == cute.select(layout, [2, 0])
    assert cute.select(layout, 1) == cute.select(layout, (1,)) == Layout((8,), (4,))


@pytest.mark.parametrize(
    ("coordinate", "source", "target", "facts"),
    [
        ((1, 2), 8, (4, 8), "coordinate : (1,2)\n  shape      : 8"),
        ((1, 2), (4, 8), (2, 2, 8), "coordinate : (1,2)\n  from       : (4,8)\n  to         : (2,2,8)"),
    ],
)
def test_a_coordinate_goes_over_between_equal_ranks(coordinate: Any, source: Any, target: Any, facts: str) -> None:
    with pytest.raises(LayoutError, match=f"^Mismatched Ranks\n  {re.escape(facts)}$"):
        cute.crd2crd(coordinate, source, target)


@pytest.mark.parametrize(("shape", "size"), [((Int(15), 14), Int(6)), ((15, Int(14)), Int(6)), ((Int(15), Int(14)), 6)])
def test_a_domain_is_distributed_by_static_numbers(shape: Any, size: int) -> None:
    with pytest.raises(StaticAssertError, match="is_static<ShapeB>::value"):
        cute.domain_distribute(shape, size)
    assert str(cute.domain_distribute((Int(15), Int(14)), Int(6))) == "(_3,_2):(_1,_15)"
