"""Strides of modules that are not the library's own: bits under XOR, and polynomials.

The library sees only `n * stride`, `stride + stride`, `==`, `hash` and `str`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py import (
    Int,
    IntegerModule,
    Layout,
    Swizzle,
    Tensor,
    coalesce,
    complement,
    composition,
    cosize,
    downcast,
    flat_divide,
    flatten,
    group_modes,
    local_partition,
    local_tile,
    logical_divide,
    offsets,
    size,
    slice_and_offset,
    tiled_divide,
    upcast,
    zipped_divide,
)
from cute_py.errors import CuteError, LayoutError


class Bits:
    """A vector over F2: + is XOR, and 2 * x = 0."""

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def __rmul__(self, n: Any) -> Bits:
        return Bits(self.bits if n % 2 else 0)

    def __add__(self, other: Any) -> Bits:
        if isinstance(other, Bits):
            return Bits(self.bits ^ other.bits)
        return self if isinstance(other, int) and other == 0 else NotImplemented

    __radd__ = __add__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bits) and self.bits == other.bits

    def __hash__(self) -> int:
        return hash(self.bits)

    def __str__(self) -> str:
        return f"0b{self.bits:b}"


class Poly:
    """A polynomial with integer coefficients, lowest first."""

    def __init__(self, *coefficients: int) -> None:
        last = len(coefficients)
        while last and coefficients[last - 1] == 0:
            last -= 1
        self.coefficients = coefficients[:last]

    def __rmul__(self, n: Any) -> Poly:
        return Poly(*[int(n) * c for c in self.coefficients])

    def __add__(self, other: Any) -> Poly:
        if not isinstance(other, Poly):
            return self if isinstance(other, int) and other == 0 else NotImplemented
        long, short = sorted((self.coefficients, other.coefficients), key=len, reverse=True)
        return Poly(*[a + b for a, b in zip(long, (*short, *(0,) * (len(long) - len(short))), strict=True)])

    __radd__ = __add__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self.coefficients == other.coefficients

    def __hash__(self) -> int:
        return hash(self.coefficients)

    def __call__(self, x: int) -> int:
        return sum(c * x**i for i, c in enumerate(self.coefficients))

    def __str__(self) -> str:
        return " + ".join(f"{c}x^{i}" for i, c in enumerate(self.coefficients) if c) or "0"


STRIDES = {
    "bits": st.integers(0, 31).map(Bits),
    "poly": st.lists(st.integers(-3, 3), max_size=3).map(lambda c: Poly(*c)),
}
MODULES = sorted(STRIDES)
sizes = st.sampled_from([Int(1), Int(2), Int(4), 2, 3])


@st.composite
def module_layouts(draw: Any, kind: str) -> Layout:
    stride = STRIDES[kind]
    shape = draw(st.tuples(sizes, st.tuples(sizes, sizes)))
    return Layout(shape, (draw(stride), (draw(stride), draw(stride))))


def values(layout: Any) -> list[Any]:
    return [layout(i) for i in range(int(size(layout)))]


def same(a: list[Any], b: list[Any]) -> bool:
    """Equal as elements of the module; a static integer 0 (a layout of one element) is its zero."""
    zero = next((type(x) for x in (*a, *b) if isinstance(x, (Bits, Poly))), Poly)(0)
    return [zero + x for x in a] == [zero + x for x in b]


@pytest.mark.parametrize("kind", MODULES)
def test_they_follow_the_protocol(kind: str) -> None:
    assert isinstance(Bits(1) if kind == "bits" else Poly(1), IntegerModule)


@given(st.data())
@pytest.mark.parametrize("kind", MODULES)
def test_evaluation_is_the_inner_product(kind: str, data: Any) -> None:
    layout = data.draw(module_layouts(kind))
    a, (b, c) = layout.stride
    for i in range(4):
        for j in range(3):
            assert layout(i, (j, 1)) == i * a + (j * b + 1 * c)


@given(st.data())
@pytest.mark.parametrize("kind", MODULES)
def test_operations_on_the_profile_keep_the_function(kind: str, data: Any) -> None:
    layout = data.draw(module_layouts(kind))
    assert same(values(coalesce(layout)), values(layout))
    assert same(values(flatten(layout)), values(layout))
    assert same(values(group_modes(layout, 0, 2)), values(layout))


@given(st.data())
@pytest.mark.parametrize("kind", MODULES)
def test_composition_reads_through(kind: str, data: Any) -> None:
    layout = data.draw(module_layouts(kind))
    inner = data.draw(
        st.sampled_from([Layout(Int(2), Int(2)), Layout((Int(2), Int(2)), (Int(2), Int(1))), Layout(2, 1)])
    )
    try:
        result = composition(layout, inner)
    except CuteError:
        return  # does not divide: refused for integer strides too
    ints = Layout(layout.shape, (1009, (10007, 100003)))  # nothing coalesces
    if values(composition(ints, inner)) == [ints(v) for v in values(inner)]:
        assert same(values(result), [layout(v) for v in values(inner)])


@given(st.data())
@pytest.mark.parametrize("kind", MODULES)
def test_divides_keep_every_element(kind: str, data: Any) -> None:
    stride = STRIDES[kind]
    layout = Layout((Int(8), Int(6)), (data.draw(stride), data.draw(stride)))
    tiler = (Int(4), Int(3))
    zipped = zipped_divide(layout, tiler)
    logical, tiled, flat = (f(layout, tiler) for f in (logical_divide, tiled_divide, flat_divide))
    for i in range(8):
        for j in range(6):
            inside, which = (i % 4, j % 3), (i // 4, j // 3)
            want = layout(i, j)
            assert zipped(inside, which) == want
            assert logical((i % 4, i // 4), (j % 3, j // 3)) == want
            assert tiled(inside, *which) == want
            assert flat(*inside, *which) == want


@pytest.mark.parametrize("kind", MODULES)
def test_partitions_and_slices(kind: str) -> None:
    one, two = (Bits(1), Bits(6)) if kind == "bits" else (Poly(1), Poly(0, 2))
    layout = Layout((Int(8), Int(6)), (one, two))
    assert local_tile(layout, (Int(4), Int(3)), (1, 0)).shape == (4, 3)
    assert local_partition(layout, Layout((Int(2), Int(3))), 4)(1, 1) == 2 * one + 3 * two
    kept, offset = slice_and_offset((3, None), layout)
    assert all(offset + kept(j) == layout(3, j) for j in range(6))


@given(st.data())
@pytest.mark.parametrize("kind", MODULES)
def test_offsets_are_an_array_of_objects(kind: str, data: Any) -> None:
    layout = data.draw(module_layouts(kind))
    table = offsets(layout)
    assert table.dtype == object
    assert table.shape == (int(size(layout, 0)), int(size(layout, 1)))
    assert all(table[i, j] == layout(i, j) for i, j in np.ndindex(table.shape))
    assert offsets(layout, [(0, 0), 1])[1] == layout(1)
    single = Layout(4, Bits(5))
    assert [v.bits for v in offsets(single)] == [0, 5, 0, 5]


def test_a_swizzle_is_a_layout_with_strides_of_bits() -> None:
    """Sw<2,0,2> of a 4 x 4 tile: bit i of the column also flips bit i of the row."""
    layout = Layout(((2, 2), (2, 2)), ((Bits(1), Bits(2)), (Bits(0b0101), Bits(0b1010))))
    swizzle = Swizzle(2, 0, 2)
    assert [layout(i).bits for i in range(16)] == [swizzle(i) for i in range(16)]


def test_polynomials_are_the_sizes_of_a_symbolic_tensor() -> None:
    """Row-major (3, n, n): the strides are n^2, n, 1; evaluating the polynomial at n gives the number."""
    layout = Layout((3, 7, 7), (Poly(0, 0, 1), Poly(0, 1), Poly(1)))
    numbers = Layout((3, 7, 7), (49, 7, 1))
    assert all(layout(i)(7) == numbers(i) for i in range(3 * 7 * 7))
    assert str(layout) == "(3,7,7):(1x^2,1x^1,1x^0)"


def test_a_zero_stride_is_the_zero_of_the_module() -> None:
    layout = Layout((Int(4), Int(2)), (Int(0), Bits(3)))
    assert layout(3, 1) == Bits(3)
    assert coalesce(Layout((Int(2), Int(2)), (Bits(1), Bits(0)))) == Layout(Int(4), Bits(1))
    assert Layout(Int(4), Bits(1))(2) == Bits(0)


def test_a_tensor_with_an_engine_of_the_module() -> None:
    class At:
        """An iterator over a module."""

        def __init__(self, value: Any) -> None:
            self.value = value

        def __add__(self, offset: Any) -> At:
            return At(self.value + offset)

        def __getitem__(self, offset: Any) -> Any:
            return (self + offset).value

        def __str__(self) -> str:
            return f"at({self.value})"

    tensor = Tensor(At(Poly(5)), Layout((2, 3), (Poly(1), Poly(0, 1))))
    assert tensor(1, 2) == Poly(6, 2)
    assert str(tensor(None, 2)) == "at(5x^0 + 2x^1) o (2):(1x^0)"


@pytest.mark.parametrize("operation", [cosize, complement])
def test_what_needs_an_order_is_refused(operation: Any) -> None:
    with pytest.raises(LayoutError, match="no order"):
        operation(Layout((Int(2), Int(2)), (Bits(1), Bits(2))))


@pytest.mark.parametrize("operation", [lambda x: upcast(x, 2), lambda x: downcast(x, 2)])
def test_what_needs_a_unit_is_refused(operation: Any) -> None:
    with pytest.raises(CuteError):
        operation(Layout((Int(2), Int(2)), (Bits(1), Bits(2))))
    with pytest.raises(CuteError, match="composition needs integer strides or basis strides"):
        composition(Layout((4, 4)), Layout(Int(2), Bits(1)))
