"""Laws that are checked on every small case: division, maps over F2, collisions of strides, sizes, recasts."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import trunc

import pytest

import cute_py as cute
from cute_py import E, Int, Layout, LinearLayout, ScaledBasis
from cute_py.errors import InvalidTypeError, InvalidValueError, StaticAssertError
from tests.each import each_of

SIGNED = range(-9, 10)


@each_of("divisor", [n for n in SIGNED if n])
def test_division_rounds_toward_zero(divisor: int) -> None:
    """As C++ divides: (x / y) for every combination of signs, and 0."""
    for value in SIGNED:
        found = ScaledBasis(value, 0).safe_div(divisor)
        assert found.value == trunc(Fraction(value, divisor)), (value, divisor)


@each_of("index", SIGNED)
def test_an_index_is_its_coordinate_again(index: int) -> None:
    """crd2idx inverts idx2crd for every index, also a negative one; each part has the index's sign."""
    coord = cute.idx2crd(index, (3, (2, 5)))
    assert cute.crd2idx(coord, (3, (2, 5))) == index
    assert all(part == 0 or (part > 0) == (index > 0) for part in cute.flatten(coord))  # type: ignore[union-attr]


def test_composition_over_f2_is_that_of_functions() -> None:
    """(f o g)(i) == f(g(i)), for maps whose origins share bits with each other and with the columns."""
    maps = [LinearLayout(4, (a, b), origin) for a, b in ((1, 2), (3, 1), (2, 2)) for origin in range(4)]
    for f, g in itertools.product(maps, maps):
        both = f.compose(g)
        assert [both(i) for i in range(4)] == [f(g(i)) for i in range(4)]


def small_layouts() -> list[Layout]:
    """Every layout of three modes of these sizes and strides."""
    modes = [(s, d) for s in (1, 2, 3) for d in (-2, 0, 1, 2, 3, 4, 6)] + [(4, 2), (4, 3)]
    return [Layout(*map(tuple, zip(*three, strict=True))) for three in itertools.combinations(modes, 3)]


def test_collisions_are_those_of_the_offsets() -> None:
    for layout in small_layouts():
        found = [layout(i) for i in range(int(cute.size(layout)))]
        reached = set(found)
        foot = cute.footprint(layout)
        assert cute.is_injective(layout) == (len(reached) == len(found)), layout
        assert cute.is_bijective(layout) == (sorted(found) == list(range(len(found)))), layout
        assert (foot.lowest, foot.highest, foot.distinct) == (min(found), max(found), len(reached)), layout


def test_overlap_is_that_of_the_offsets() -> None:
    few = small_layouts()[::97]
    for a, b in itertools.combinations(few, 2):
        sets = [{x(i) for i in range(int(cute.size(x)))} for x in (a, b)]
        for shift in range(-3, 9):
            assert cute.overlaps(a, b, shift) == bool(sets[0] & {n + shift for n in sets[1]}), (a, b, shift)


def test_an_access_may_fill_its_tile_and_not_leave_it() -> None:
    tile = Layout((4, 8), (8, 1))
    assert cute.bank_conflicts(tile, 32, access=Layout(32)).vector_bits == 32
    for access in (Layout((2, 1), (32, 1)), Layout(33), Layout(2, -1)):
        with pytest.raises(InvalidValueError, match="the thread-value layout addresses elements outside the tile"):
            cute.bank_conflicts(tile, 32, access=access)


@pytest.mark.parametrize("bad", [-1, Int(-1)])
@pytest.mark.parametrize("form", [lambda n: n, lambda n: (2, n), lambda n: ((2, 3), n), lambda n: (2, ((4, n), 5))])
def test_every_size_is_checked(form, bad: int) -> None:  # type: ignore[no-untyped-def]
    """A size must not be negative and must be an integer, wherever it is: also after a nested mode. 0 is one."""
    with pytest.raises(InvalidValueError, match="the shape has the size -1; must be at least 0"):
        Layout(form(bad))
    with pytest.raises(InvalidTypeError, match=r"a shape must consist of integers, got E\(0\)"):
        Layout(form(E(0)))
    assert cute.size(Layout(form(0))) == 0


def upcast_of(size: int, stride: int, n: int) -> tuple[int, int] | None:
    """The mode in units of n elements, by the law: the offsets in whole units, from the lowest of each unit."""
    if stride == 0:
        return size, 0
    sign, step = (1 if stride > 0 else -1), abs(stride)
    if step % n == 0:
        return size, stride // n
    return (-(-size // (n // step)), sign) if n % step == 0 else None


def test_upcast_of_every_mode() -> None:
    for size, stride, n in itertools.product((1, 2, 3, 8), range(-8, 9), (1, 2, 3, 4, 6)):
        expected = upcast_of(size, stride, n)
        layout = Layout(Int(size), Int(stride))
        if expected is None:
            with pytest.raises(StaticAssertError, match="Divisibility condition"):
                cute.upcast(layout, n)
        else:
            assert cute.upcast(layout, n) == Layout(*map(Int, expected)), (layout, n)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_downcast_is_undone_by_upcast(n: int) -> None:
    """Units n times as small, then n times as large: the layout again. Only the modes of stride 1 or -1 get longer."""
    for shape, stride in [
        ((4, 8), (1, 4)),
        ((4, 8), (8, 1)),
        ((2, (3, 4)), (1, (-2, 0))),
        ((4,), (1,)),
        ((3, 2), (-1, 1)),
    ]:
        layout = cute.static(Layout(shape, stride))
        down = cute.downcast(layout, n)
        assert cute.upcast(down, n) == layout
        runs = sum(d in (1, -1) for d in cute.flatten(stride))  # type: ignore[union-attr]
        assert cute.size(down) == cute.size(layout) * n**runs
    with pytest.raises(StaticAssertError, match="Downcast requires adjacent elements"):
        cute.downcast(cute.static(Layout(4, 2)), n)


@pytest.mark.parametrize(("bits", "offset"), [(16, 0), (16, 64), (8, 24), (4, 8)])
def test_a_flag_keeps_its_place_in_bits(bits: int, offset: int) -> None:
    """bits * offset is the address of the tile; a recast changes neither it nor the width of all elements together."""
    flag = cute.smem_ptr_flag(bits, offset)
    for n in (1, 2, 4):
        up, down = flag.upcast(n), flag.downcast(n)
        assert up.bits * int(up) == down.bits * int(down) == bits * offset
        assert (up.bits, down.bits) == (bits * n, bits // n)
