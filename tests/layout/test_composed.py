"""Composed layouts: equality, slices, and swizzles of arrays of every type."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import ComposedLayout, Int, Layout, Swizzle
from cute_py.errors import InvalidTypeError, StaticAssertError
from cute_py.layout.swizzle import make_swizzle
from cute_py.testing.strategies import layouts, slices_of
from tests.each import each_of

PARTS = [
    (Swizzle(2, 0, 3), Int(0), Layout((8, 8), (8, 1))),
    (Swizzle(2, 0, 2), Int(1), Layout((8, 8), (1, 8))),
]


def test_equal_where_all_three_parts_are() -> None:
    """Of two values of every part: the eight composed layouts differ."""
    made = [ComposedLayout(*parts) for parts in itertools.product(*zip(*PARTS, strict=True))]
    again = [ComposedLayout(*parts) for parts in itertools.product(*zip(*PARTS, strict=True))]
    for i, a in enumerate(made):
        assert [a == b for b in again] == [i == j for j in range(len(again))]
    assert len(set(made)) == len(made)
    assert set(made) == set(again)
    assert made[0] != "Sw<2,0,3> o _0 o (8,8):(8,1)"


@given(layouts(kinds=("compact", "wild")), layouts(kinds=("gaps", "wild")), st.integers(0, 9), st.data())
def test_a_slice_of_a_composition_of_layouts_has_its_elements(
    outer: Layout, inner: Layout, start: int, data: st.DataObject
) -> None:
    if not isinstance(inner.shape, tuple):
        return
    whole = ComposedLayout(outer, start, inner)
    coord = data.draw(slices_of(inner.shape))
    kept, offset = cute.slice_and_offset(coord, whole)
    assert offset == 0
    sizes = tuple(int(cute.size(s)) for s in cute.slice_(coord, inner.shape))
    for k in range(int(cute.size(kept))):
        free = iter(cute.idx2crd(k, sizes))
        there = tuple(int(next(free)) if c is None else c for c in coord)
        assert int(kept(k)) == int(whole(there)) == int(outer(start + int(inner(there))))


@each_of(
    ("text", "coord", "kept", "offset"),
    [  # as C++ prints them, where its slice is the same function
        ("Sw<0,2,1> o _0 o (_4,_1):(_1,_1)", (None, Int(0)), "(_4):(_1)", "_0"),
        ("Sw<0,2,-3> o _3 o (_8,_16):(_1,_8)", (2, None), "(_16):(_8)", "5"),
        ("Sw<0,3,3> o 3 o (2,4):(_1,2)", (None, 1), "(2):(_1)", "5"),
        ("Sw<1,2,3> o _8 o (_16,_16):(_1,_8192)", (None, Int(1)), "(_16):(_1)", "_8200"),
        ("Sw<1,2,3> o _8 o (_64,_16):(_1,_8192)", (None, Int(1)), "Sw<1,2,3> o _8 o (_64):(_1)", "_8192"),
        ("Sw<1,0,4> o _3 o (_4,_8,_8):(_0,_1,_0)", (None, None, 0), "(_4,_8):(_0,_1)", "_3"),
        # as they must be, where the offset carries and C++'s is another one
        ("Sw<2,0,3> o _4 o (_8,_4,_2):(_8,_2,_1)", (1, None, None), "Sw<2,0,3> o 12 o (_4,_2):(_2,_1)", "_0"),
        ("Sw<3,4,-3> o _4 o (_2,_4):(_8,_2)", (None, Int(2)), "Sw<3,4,-3> o _8 o (_2):(_8)", "_0"),
        ("Sw<1,1,3> o _1 o (_8,_8):(_1,_8)", (Int(5), None), "Sw<1,1,3> o _6 o (_8):(_8)", "_0"),
        ("Sw<1,1,3> o _3 o (_16,_8):(_8,_1)", (None, Int(1)), "Sw<1,1,3> o _4 o (_16):(_8)", "_0"),
        # or where a size or a step that is no power of two crosses a field of bits
        ("Sw<3,1,3> o _0 o (_4,6):(_1,_4)", (0, None), "Sw<3,1,3> o 0 o (6):(_4)", "_0"),
        ("Sw<3,0,4> o 0 o (_1,2):(_4,3)", (Int(0), None), "Sw<3,0,4> o 0 o (2):(3)", "_0"),
        ("Sw<3,3,-3> o _0 o (_2,_6):(_2,_6)", (Int(0), None), "Sw<3,3,-3> o _0 o (_6):(_6)", "_0"),
        ("Sw<1,3,1> o _0 o (_8,_3,_3):(_6,_32,_3)", (Int(2), None, Int(2)), "Sw<1,3,1> o _18 o (_3):(_32)", "_0"),
        ("Sw<1,2,1> o _0 o (_8,3):(_3,32)", (4, None), "Sw<1,2,1> o 12 o (3):(32)", "_0"),
    ],
)
def test_a_swizzle_is_dropped_or_split_where_no_sum_carries(text: str, coord: Any, kept: str, offset: str) -> None:
    layout: Any = cute.parse(text)
    found = cute.slice_and_offset(coord, layout)
    assert [str(part) for part in found] == [kept, offset]
    sizes = [int(cute.size(s)) for s in cute.slice_(coord, layout.shape)]
    for place in itertools.product(*map(range, sizes)):
        free = iter(place)
        there = tuple(next(free) if c is None else int(c) for c in coord)
        assert int(found[0](place)) + int(found[1]) == int(layout(there))


@pytest.mark.parametrize("product", [cute.blocked_product, cute.raked_product, cute.zipped_product, cute.flat_product])
def test_products_that_rearrange_modes_refuse_a_swizzled_tiler(product: Any) -> None:
    block, tiler = Layout((Int(4), Int(4))), cute.composition(Swizzle(1, 0, 2), Int(0), Layout((Int(4), Int(4))))
    assert str(cute.logical_product(block, tiler)) == "Sw<1,4,2> o _0 o ((_4,_4),(_4,_4)):((_1,_4),(_16,_64))"
    for one in (block, cute.composition(Swizzle(1, 0, 2), Int(0), block)):
        with pytest.raises(InvalidTypeError, match="use logical_product"):
            product(one, tiler)
    with pytest.raises(InvalidTypeError):
        product(block, object())


def test_a_coordinate_of_underscores_reshapes_the_domain() -> None:
    layout: Any = cute.parse("Sw<2,0,3> o 3 o ((_8,_4),(_2,_2)):((_1,_8),(_32,_64))")
    assert str(layout((None, None), None)) == "Sw<2,0,3> o 3 o (_8,_4,(_2,_2)):(_1,_8,(_32,_64))"
    assert layout(None, None) is layout


@pytest.mark.parametrize("offset", [Int(1), Int(-1), 0, 1])
def test_only_a_static_offset_of_zero_goes_behind_a_layout(offset: int) -> None:
    left, swizzle, inner = Layout((Int(8), Int(8))), Swizzle(2, 0, 3), Layout(Int(32))
    assert str(cute.composition(left, ComposedLayout(swizzle, Int(0), inner))) == "Sw<2,0,3> o _0 o _32:_1"
    with pytest.raises(StaticAssertError, match="Require offset == 0"):
        cute.composition(left, ComposedLayout(swizzle, offset, inner))


@pytest.mark.parametrize(
    ("offset", "text"),
    [
        (Int(0), "Sw<2,0,3> o _0 o _32:_1"),
        (Int(2), "_32:_1 o _-2 o Sw<2,0,3>"),
        (0, "_32:_1 o 0 o Sw<2,0,3>"),
    ],
)
def test_a_right_inverse_keeps_an_offset_between(offset: int, text: str) -> None:
    whole = ComposedLayout(Swizzle(2, 0, 3), offset, Layout((Int(8), Int(4)), (Int(1), Int(8))))
    inverse = cute.right_inverse(whole)
    for i in range(int(offset), 32):
        assert whole(int(inverse(whole(i)))) == whole(i)
    assert str(inverse) == text


def test_through_another_outer_function_no_run_is_known() -> None:
    rows = ComposedLayout(Layout((Int(8), Int(8)), (Int(8), Int(1))), Int(0), Layout(Int(64)))
    assert str(cute.max_common_layout(rows, Layout(Int(64)))) == "_1:_1"
    assert cute.max_common_vector(rows, Layout(Int(64))) == 1


TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def corners(dtype: str) -> list[int]:
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    numbers = {low, low + 1, low // 3, -1, 0, 1, high // 3, high // 2, high // 2 + 1, high}
    return sorted(n for n in numbers if low <= n <= high)


@pytest.mark.parametrize("dtype", TYPES)
def test_arrays_of_every_type_are_swizzled_as_integers_are(dtype: str) -> None:
    """Swizzles whose bits lie below, across and beyond the ends of the type; values at its ends."""
    width = np.iinfo(dtype).bits
    values = corners(dtype)
    array = np.array(values, dtype)
    for low, bits, gap, down in itertools.product(
        (0, 1, width - 4, width - 3, width - 2, width - 1, width, width + 1), (0, 1, 2), (0, 1, 2), (True, False)
    ):
        shift = (bits + gap) * (1 if down else -1)
        swizzle = Swizzle(bits, low, shift)
        swizzled = swizzle(array)
        assert swizzled.tolist() == [swizzle(v) for v in values], swizzle
        if all(v >= 0 for v in values) and swizzle.zzz_mask <= np.iinfo(dtype).max:
            assert swizzled.dtype == array.dtype, swizzle
    assert array.tolist() == values


@each_of("swizzle", [Swizzle(1, 20, 50), Swizzle(2, 62, 2), Swizzle(2, 61, -3), Swizzle(1, 62, -2)])
@each_of("dtype", ["uint8", "int64", "uint64", object])
def test_bits_beyond_64_are_swizzled_exactly(swizzle: Swizzle, dtype: Any) -> None:
    values = [0, 1, 127] if dtype == "uint8" else [0, 1, 1 << 20, 1 << 61, 3 << 61, (1 << 63) - 1]
    assert swizzle(np.array(values, dtype)).tolist() == [swizzle(v) for v in values]


def test_the_type_of_a_swizzled_array() -> None:
    """It stays where the changed bits have room; otherwise 64 bits, otherwise Python integers."""
    array = np.array([1, 2], "int8")
    assert Swizzle(1, 6, 1)(array).dtype == "int8"
    assert Swizzle(1, 7, 1)(array).dtype == "int64"
    assert Swizzle(1, 61, 1)(array).dtype == "int64"
    assert Swizzle(1, 62, 1)(array).dtype == object
    assert Swizzle(1, 7, 1)(array.astype("uint8")).dtype == "uint8"
    assert Swizzle(1, 8, 1)(array.astype("uint8")).dtype == "int64"


@given(st.integers(1, 6), st.integers(0, 40), st.integers(0, 9), st.booleans())
def test_a_swizzle_comes_back_from_its_bits(bits: int, base: int, gap: int, down: bool) -> None:
    swizzle = Swizzle(bits, base, (bits + gap) * (1 if down else -1))
    assert make_swizzle(swizzle.yyy_mask, swizzle.zzz_mask) == swizzle


WITHOUT_BITS = ComposedLayout(Swizzle(0, 0, 0), Int(0), Layout((Int(8), Int(8))))


@each_of(
    ("made", "text"),
    [
        (lambda a: cute.coalesce(a), "_64:_1"),
        (lambda a: cute.flatten(a), "(_8,_8):(_1,_8)"),
        (lambda a: cute.take(a, 0, 1), "(_8):(_1)"),
        (lambda a: a[0], "_8:_1"),
        (lambda a: a(None, None), "(_8,_8):(_1,_8)"),
        (lambda a: cute.composition(a, Int(4)), "_4:_1"),
        (lambda a: cute.zipped_divide(a, Int(4)), "(_4,_16):(_1,_4)"),
        (lambda a: cute.zip_(a), "((_8,_8)):((_1,_8))"),
        (lambda a: cute.upcast(a, 2), "Sw<0,0,0> o _0 o (_4,_8):(_1,_4)"),
        (lambda a: cute.downcast(a, 2), "Sw<0,1,0> o _0 o (_16,_8):(_1,_16)"),
        (lambda a: cute.domain_offset((Int(0), Int(0)), a)[0], "Sw<0,0,0> o _0 o (_8,_8):(_1,_8)"),
    ],
)
def test_operations_leave_a_swizzle_without_bits_away(made: Any, text: str) -> None:
    """Printed by CuTe C++ of make_composed_layout(Swizzle<0,0,0>{}, Int<0>{}, layout)."""
    assert str(made(WITHOUT_BITS)) == text


@pytest.mark.parametrize("offset", [0, Int(8), cute.smem_ptr_flag(16)])
def test_a_swizzle_without_bits_stays_over_another_offset(offset: int) -> None:
    kept = cute.coalesce(ComposedLayout(Swizzle(0, 4, 3), offset, Layout((Int(8), Int(8)))))
    assert str(kept) == f"Sw<0,4,3> o {offset} o _64:_1"


def test_a_swizzle_without_bits_stays_over_a_composed_layout() -> None:
    twice = ComposedLayout(Layout((Int(8), Int(8))), Int(0), Layout((Int(8), Int(8))))
    text = "Sw<0,0,0> o _0 o (_8,_8):(_1,_8) o _0 o (_8,_8):(_1,_8)"
    assert str(cute.composition(Swizzle(0, 0, 0), Int(0), twice)) == text


def test_only_a_swizzle_has_a_rest_under_it() -> None:
    plain, swizzled = Layout((Int(8), Int(8))), cute.composition(Swizzle(2, 0, 3), Layout(Int(64)))
    assert cute.get_nonswizzle_portion(ComposedLayout(Swizzle(1, 0, 1), Int(0), swizzled)) == swizzled
    for outer in (plain, swizzled):  # C++: no matching function for call to ‘get_nonswizzle_portion’
        for portion in (cute.get_nonswizzle_portion, cute.get_swizzle_portion):
            with pytest.raises(InvalidTypeError, match="the outer function must be a swizzle"):
                portion(ComposedLayout(outer, Int(4), plain))
