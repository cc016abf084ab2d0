"""Where a composition, complement or product refuses, and the last case that it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import cute_py as cute
from cute_py import Int, Layout, make_identity_layout, make_identity_tensor, parse
from cute_py.errors import CompositionMismatchError, LayoutError, StaticAssertError

K, M, N = sympy.symbols("K M N", integer=True, positive=True)


@pytest.mark.parametrize("left", ["(4,8):(1,4)", "(_4,8):(_1,_4)"])
def test_a_run_time_step_of_zero_divides_by_zero(left: str) -> None:
    with pytest.raises(LayoutError, match="division by zero"):
        cute.composition(parse(left), Layout(2, 0))


@pytest.mark.parametrize("step", [1, -1, 0])
def test_a_mode_of_size_zero_is_not_stepped_over(step: int) -> None:
    with pytest.raises(LayoutError, match="composition divides by the size of a left mode, and this size is 0"):
        cute.composition(Layout((0, 8)), Layout(2, step))


def test_nothing_is_taken_of_a_mode_by_a_run_time_size_of_zero() -> None:
    with pytest.raises(StaticAssertError, match="Shape Divisibility Condition"):
        cute.composition(Layout((4, 8)), Layout(0, 1))


STATIC_STEPS = [(1, True), (2, True), (3, True), (4, True), (5, False), (6, False), (8, True), (12, True)]


@pytest.mark.parametrize(("step", "taken"), STATIC_STEPS)
@pytest.mark.parametrize("size", [K, 8])
def test_a_static_step_below_the_mode_or_a_multiple_of_it(size: Any, step: int, taken: bool) -> None:
    """Known before the sizes are: the same condition beside a symbol and beside numbers."""
    left, right = Layout((Int(4), M if size is K else 64)), Layout(size, Int(step))
    if taken:
        cute.composition(left, right)
    else:
        with pytest.raises(StaticAssertError, match="Stride Divisibility Condition"):
            cute.composition(left, right)


def test_the_condition_is_only_known_of_two_static_numbers() -> None:
    assert str(cute.composition(Layout((4, M)), Layout(K, Int(6)))) == "(1,K):(_6,8)"
    assert str(cute.composition(Layout((Int(4), M)), Layout(K, 6))) == "(1,K):(6,8)"


def test_a_static_mode_of_size_zero_beside_a_symbol() -> None:
    with pytest.raises(LayoutError, match="division by zero"):
        cute.composition(Layout((Int(0), M)), Layout(K, Int(3)))


@pytest.mark.parametrize(("size", "result"), [(1, "(1,K):(N,N)"), (Int(1), "K:N"), (0, None), (Int(0), None)])
def test_a_symbolic_step_over_modes_of_size_one_and_zero(size: int, result: str | None) -> None:
    layout = Layout((size, M))
    if result is None:
        with pytest.raises(LayoutError, match="division by zero"):
            cute.composition(layout, Layout(K, N))
    else:
        assert str(cute.composition(layout, Layout(K, N))) == result


@pytest.mark.parametrize("tiler", [Int(4), 4, Int(8), 8, (2, 6, 3), (None, 3)])
def test_strict_takes_sizes_that_compose(tiler: Any) -> None:
    layout = Layout((4, 6, 8), (2, 3, 5))
    assert cute.composition(layout, tiler, strict=True) == cute.composition(layout, tiler)


@pytest.mark.parametrize("tiler", [6, 9])
def test_strict_refuses_a_size_that_drops_its_rest(tiler: int) -> None:
    with pytest.raises(CompositionMismatchError):
        cute.composition(Layout((4, 6, 8), (2, 3, 5)), tiler, strict=True)


@pytest.mark.parametrize("layout", ["(4,2):(2,1)", "(4,2):(_2,1)", "(4,2,2):(2,_1,_16)"])
def test_a_complement_of_several_modes_needs_static_strides(layout: str) -> None:
    with pytest.raises(StaticAssertError, match="Dynamic-stride complement only for rank-1 layouts"):
        cute.complement(parse(layout), 24)


SHAPES = [16, Int(16), np.int64(16), (16,), Layout(16, 77), make_identity_tensor((16,))]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_target_is_a_shape_or_what_has_one(shape: Any) -> None:
    tiled = cute.tile_to_shape(Layout(Int(8)), shape)
    assert cute.size(tiled) == 16
    assert tiled.shape in (((8, 2),), ((8, (2,)),))
    assert cute.size(cute.complement(Layout(Int(4)), shape)) == 4
    assert cute.size(cute.ceil_div(shape, 8)) == 2


AXES = [
    # two coordinate layouts, and per axis the run that both walk
    ("(_4,_8):(_1@0,_1@1)", "(_4,_8):(_1@0,_1@1)", "(_4,_8):(_1,_4)"),
    ("(_4,_8):(_1@0,_1@1)", "(_4,_8):(_1@1,_1@0)", "(_1,_1):(_0,_0)"),
    ("(_4,_8):(_1@0,_2@1)", "(_4,_8):(_1@0,_1@1)", "(_4,_1):(_1,_0)"),
    ("(_4,_8):(_2@0,_1@1)", "(_4,_8):(_1@0,_1@1)", "(_1,_8):(_0,_4)"),
]


@pytest.mark.parametrize(("a", "b", "result"), AXES)
def test_max_common_layout_axis_by_axis(a: str, b: str, result: str) -> None:
    """As far as mode i of the result goes, both layouts go through 0, 1, 2, ... of axis i."""
    x, y = parse(a), parse(b)
    common = cute.max_common_layout(x, y)
    assert str(common) == result
    for axis in (0, 1):
        mode = common[axis]
        for k in range(int(cute.size(mode))):
            there = (k, 0) if axis == 0 else (0, k)
            assert x(int(mode(k))) == y(int(mode(k))) == make_identity_layout((4, 8))(there)
