"""Results at the corners of the algebra, as CuTe C++ (CUTLASS 4.2) prints them."""

from __future__ import annotations

import pytest

import cute_py as cute
from cute_py import Int, Layout, Swizzle, parse
from cute_py.layout.swizzle import make_swizzle
from tests.each import each_of

COMPOSITIONS = [
    # a step back walks the modes as a step forward does
    ("(_4,_8):(_1,_4)", "_2:_-2", "_2:_-2"),
    ("(_4,_8):(_1,_4)", "_4:_-8", "_4:_-8"),
    ("(4,8):(1,4)", "4:-2", "(2,2):(-2,-4)"),
    ("(4,8):(1,4)", "6:-1", "(4,1):(-1,-4)"),
    # a run-time size that does not divide drops its rest; a static one is refused
    ("(4,8):(1,4)", "6:1", "(4,1):(1,4)"),
    ("(4,8):(_1,4)", "_6:_1", "(4,1):(_1,4)"),
    ("(_4,8):(_1,_4)", "12:_1", "(4,3):(_1,_4)"),
    ("(4,6,8):(2,3,5)", "6:_1", "(4,1,1):(2,3,5)"),
    # what is static stays so as far as every number before it is
    ("(_4,6,_8):(2,3,5)", "_8:3", "(2,4,1):(6,3,5)"),
    ("(_4,8):(_1,_4)", "8:_2", "(2,4):(_2,_4)"),
    ("(_4,8,3):(_1,_4,32)", "8:_8", "(4,2):(_8,32)"),
    ("(_4,_8):(_8,_1)", "_8:_2", "(_2,_4):(_16,_1)"),
    ("(_4,_8,_2):(_8,_1,_32)", "_4:_8", "_4:_2"),
    ("(_4,_8,_2):(_8,_1,_32)", "_2:_16", "_2:_4"),
    ("(_0,_8):(_1,_0)", "_2:_0", "_2:_0"),
]


@each_of(("left", "right", "result"), COMPOSITIONS)
def test_composition(left: str, right: str, result: str) -> None:
    assert str(cute.composition(parse(left), parse(right))) == result


LEFT_INVERSES = [
    ("_2:_2", "(_2,_2):(_0,_1)"),
    ("_1:_0", "_1:_0"),
    ("(_2,_2):(_1,_0)", "_2:_1"),
    ("(_4,_3):(_3,_0)", "(_3,_4):(_0,_1)"),
    ("(_3,2):(_1,_3)", "(_3,2):(_1,_3)"),
    ("(_4,_2):(_1,_2)", "(_2,_2):(_1,_4)"),
    ("(_4,_4):(_1,_2)", "(_2,_4):(_1,_4)"),
    # of layouts that are not one-to-one: no inverse, but C++ refuses only some of them
    ("(_2,_2):(_1,_1)", "_2:_2"),
    ("(_2,_2):(_2,_2)", "(_2,_2):(_0,_2)"),
    ("(_2,_3):(_1,_1)", "_3:_2"),
    ("(_5,_3,_6,_1):(_11,_11,_11,_1)", "(_11,_6):(_0,_15)"),
]


@each_of(("layout", "result"), LEFT_INVERSES)
def test_left_inverse(layout: str, result: str) -> None:
    assert str(cute.left_inverse(parse(layout))) == result


COMPLEMENTS = [
    # one mode may have a run-time stride
    ("4:2", 24, "(2,3):(_1,8)"),
    ("_4:2", 24, "(2,3):(_1,8)"),
    ("4:_2", Int(24), "(_2,3):(_1,8)"),
    ("(_2,_2):(_1,_8)", 32, "(_4,2):(_2,_16)"),
    ("(_2,4):(_1,_2)", 32, "4:8"),
    ("(2,4):(_1,_2)", 32, "(1,4):(2,8)"),
]


@pytest.mark.parametrize(("layout", "target", "result"), COMPLEMENTS)
def test_complement(layout: str, target: int, result: str) -> None:
    assert str(cute.complement(parse(layout), target)) == result


COMMON_LAYOUTS = [
    ("(_4,_8):(_8,_1)", "(_4,_8):(_8,_1)", "(_8,_4):(_4,_1)"),
    ("(_4,_8):(_1,_4)", "(_4,_8):(_8,_1)", "_1:_0"),
    # a swizzle leaves runs of 2**base elements
    ("Sw<3,2,3> o _0 o _64:_1", "_64:_1", "_4:_1"),
    ("Sw<3,2,3> o _0 o _4:_1", "_4:_1", "_4:_1"),
    ("Sw<3,0,3> o _0 o _64:_1", "_64:_1", "_1:_1"),
    ("Sw<3,6,3> o _0 o _64:_1", "_64:_1", "_64:_1"),
    ("Sw<3,2,3> o _0 o (_2,_4):(_1,_2)", "(_2,_4):(_1,_2)", "_4:_1"),
    ("Sw<3,2,3> o _0 o 8:_1", "8:_1", "_1:_0"),
]


@pytest.mark.parametrize(("a", "b", "result"), COMMON_LAYOUTS)
def test_max_common_layout(a: str, b: str, result: str) -> None:
    assert str(cute.max_common_layout(parse(a), parse(b))) == result
    assert str(cute.max_common_layout(parse(b), parse(a))) == result


def test_nullspace_of_a_composed_layout_is_not_looked_for() -> None:
    assert str(cute.nullspace(parse("Sw<3,2,3> o _0 o (_64,_8):(_1,_0)"))) == "_1:_0"


SWIZZLES_OF_BITS = [
    (0, 0, "Sw<0,0,0>"),
    (0b11000000, 0b00000110, "Sw<2,1,5>"),
    (0b00000110, 0b11000000, "Sw<2,1,-5>"),
    (0b1, 0b10, "Sw<1,0,-1>"),
]


@pytest.mark.parametrize(("y", "z", "result"), SWIZZLES_OF_BITS)
def test_make_swizzle(y: int, z: int, result: str) -> None:
    assert str(make_swizzle(y, z)) == result


def test_swizzles_that_cancel_are_the_identity() -> None:
    assert str(cute.composition(Swizzle(2, 0, 3), Swizzle(2, 0, 3))) == "Sw<0,0,0>"
    assert str(cute.composition(Swizzle(1, 0, 3), Swizzle(1, 1, 3))) == "Sw<2,0,3>"


@pytest.mark.parametrize(("offset", "result"), [(4, "8"), (Int(4), "_8"), (0, "0")])
def test_downcast_of_an_offset(offset: int, result: str) -> None:
    assert str(cute.downcast(offset, 2)) == result


def test_downcast_of_a_vector() -> None:
    assert str(cute.downcast(Layout(Int(8), Int(1)), 4)) == "_32:_1"


@pytest.mark.parametrize(("a", "b", "result"), [(7, 2, 4), (8, 2, 4), (0, 3, 0), (-4, 3, 0), (-5, 3, -1), (-7, 3, -1)])
def test_ceil_div_truncates_below_zero(a: int, b: int, result: int) -> None:
    """(a + b - 1) / b, as C++ divides; static or not."""
    assert cute.ceil_div(a, b) == cute.ceil_div(Int(a), Int(b)) == result


COORDINATES = [
    # what is static: 0 whatever it is divided by, and everything modulo a static 1
    (5, "(_1,8)", "(_0,5)"),
    (5, "(1,8)", "(0,5)"),
    (Int(5), "(_1,8)", "(_0,_5)"),
    (Int(0), "(4,8)", "(_0,_0)"),
    (Int(1), "(4,8)", "(1,0)"),
    (Int(5), "(_4,8)", "(_1,_1)"),
    (5, "(_4,(_1,8))", "(1,(_0,1))"),
]


@pytest.mark.parametrize(("index", "shape", "result"), COORDINATES)
def test_idx2crd(index: int, shape: str, result: str) -> None:
    assert repr(cute.idx2crd(index, parse(shape))) == repr(parse(result))
