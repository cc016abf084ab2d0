"""Edges of counting, of searching for offsets, and of linear layouts: the bound, one more, and nothing at all."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import ComposedLayout, E, Int, Layout, Swizzle
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, LayoutError, StaticAssertError
from cute_py.layout.analysis import Footprint, footprint, is_injective, overlaps
from cute_py.layout.linear import LinearLayout

ATOM = Layout((8, 64), (64, 1))


def test_a_composed_layout_is_injective_where_both_parts_are() -> None:
    assert is_injective(ComposedLayout(Swizzle(3, 4, 3), 0, Layout(4, 0))) is False
    assert is_injective(ComposedLayout(Layout((2, 2), (0, 1)), 0, Layout(4, 1))) is False
    assert is_injective(ComposedLayout(Layout((2, 2), (2, 1)), 0, Layout(4, 1))) is True


def test_a_shift_of_2_to_the_62_is_refused() -> None:
    swizzled = ComposedLayout(Swizzle(3, 3, 3), 0, ATOM)
    assert overlaps(swizzled, ATOM, shift=2**62 - 1) is False
    with pytest.raises(InvalidValueError, match=r"must be less than 2\*\*62 in magnitude"):
        overlaps(swizzled, ATOM, shift=2**62)


def test_nothing_has_an_empty_footprint() -> None:
    assert footprint(Layout((4, 0), (1, 4))) == Footprint(0, -1, 0)
    assert footprint(ComposedLayout(Swizzle(3, 3, 3), 0, Layout((4, 0), (1, 4)))) == Footprint(0, -1, 0)


def test_bank_conflicts_of_accesses_of_one_byte() -> None:
    with pytest.raises(InvalidTypeError, match="vector_bits"):
        cute.bank_conflicts(ATOM, "float16", vector_bits="x")  # type: ignore[arg-type]
    one = cute.make_tiled_copy(cute.copy_atom("UniversalCopy<uint8_t>", "uint8"), Layout((8, 4), (4, 1)), Layout(1))
    assert cute.bank_conflicts(Layout((8, 4), (4, 1)), "uint8", access=one).wavefronts


def test_the_common_vector_of_one_swizzled_layout_with_itself() -> None:
    line = ComposedLayout(Swizzle(3, 4, 3), Int(0), Layout(Int(64), Int(1)))
    other = ComposedLayout(Swizzle(2, 3, 3), Int(0), Layout(Int(64), Int(1)))
    assert int(cute.max_common_vector(line, line)) == 64
    assert int(cute.max_common_vector(line, other)) == 8


def test_three_numbers_are_no_layout() -> None:
    with pytest.raises(InvalidTypeError, match="make_layout takes a shape, a shape and a stride, or layouts"):
        cute.make_layout(4, 8, 2)


@pytest.mark.parametrize("columns", [c for c in itertools.permutations(range(1, 8), 3) if c[0] ^ c[1] ^ c[2]])
def test_the_inverse_of_a_linear_layout(columns: tuple[int, int, int]) -> None:
    layout = LinearLayout((2, 2, 2), columns)
    places = [(columns[0] * a) ^ (columns[1] * b) ^ (columns[2] * c) for c in (0, 1) for b in (0, 1) for a in (0, 1)]
    if sorted(places) != list(range(8)):
        with pytest.raises(LayoutError):
            layout.inverse()
        return
    back = layout.inverse().columns
    for number, place in enumerate(places):
        bits = [place >> k & 1 for k in range(3)]
        assert (back[0] * bits[0]) ^ (back[1] * bits[1]) ^ (back[2] * bits[2]) == number


def test_coordinates_of_offsets_that_begin_below_zero() -> None:
    """Basis strides of both signs whose modes lie between each other: the offset is looked up among all."""
    layout = Layout((2, 2, 3), (-2 * E(0), 3 * E(0), -1 * E(1)))
    table = cute.offsets(layout)
    for coord in itertools.product(range(2), range(2), range(3)):
        assert table[coord].tolist() == [3 * coord[1] - 2 * coord[0], -coord[2]]
        assert tuple(cute.coordinates(layout, table[coord]).tolist()) == coord
    for wrong in ((2, 0), (-1, 0), (3, 1), (4, 0), (-3, 0), (0, -3), (-2, 1)):
        with pytest.raises(CuteError):
            cute.coordinates(layout, np.array(wrong))


def test_the_negative_of_an_offset_with_element_bits() -> None:
    zero = cute.smem_ptr_flag(16)
    assert -zero is zero
    assert -Int(8) == -8


def test_a_swizzle_of_all_bits_of_bytes_keeps_their_type() -> None:
    found = Swizzle(8, 0, 8)(np.arange(4, dtype=np.uint8))
    assert found.dtype == np.uint8
    assert found.tolist() == [0, 1, 2, 3]


def test_bits_of_a_swizzle_that_overlap() -> None:
    with pytest.raises(StaticAssertError, match="abs\\(SShift\\) must be more than BBits"):
        cute.make_swizzle(0b1110000, 0b111000)
    assert cute.make_swizzle(0b111000000, 0b111000) == Swizzle(3, 3, 3)


def rules(operation: Any, *texts: str) -> list[str]:
    return [step.rule for step in cute.steps(operation, *map(cute.parse, texts))]


def test_rules_of_steps() -> None:
    """A mode of one element is passed, what is taken ends, and what has no stride of its own has no steps."""
    left = "(_4,_2,_8):(_1,_8,_32)"
    assert rules(cute.composition, left, "_4:_4") == ["coalesce", "mode", "step over", "walk", "rest", "result"]
    assert rules(cute.composition, left, "_2:_1") == ["coalesce", "mode", "walk", "done", "result"]
    assert rules(cute.right_inverse, "(_4,_8):(_1,_8)") == ["coalesce", "follow", "skip", "result"]
    assert rules(cute.left_inverse, "(_4,_8):(_1,_8)") == ["coalesce", "follow", "follow", "result"]
    assert rules(cute.left_inverse, "(_4,_8):(_1@0,_1@1)") == ["coalesce", "result"]
    assert rules(cute.right_inverse, "(_4,_8):(_1,_4)") == ["coalesce", "follow", "result"]


def _counted_contiguity(layout: cute.Layout | cute.ComposedLayout) -> int:
    table = cute.offsets(layout).reshape(-1, order="F")
    steps = np.flatnonzero(np.diff(table) != 1)
    return int(steps[0]) + 1 if len(steps) else len(table)


def test_contiguity_is_what_offsets_count() -> None:
    source = random.Random(7)
    for _ in range(300):
        shape = tuple(source.choice((1, 1, 2, 3, 4, 5)) for _ in range(source.randint(0, 4)))
        compact = cute.Layout(shape)
        stride = tuple(source.choice((0, 1, 2, 4, 6, 12)) for _ in shape)
        for layout in (compact, cute.Layout(shape, stride)):
            swizzle = cute.Swizzle(source.randint(0, 2), source.randint(0, 3), 3)
            swizzled = cute.ComposedLayout(swizzle, source.choice((0, 1, 8)), layout)
            assert cute.contiguity(layout) == _counted_contiguity(layout)
            assert cute.contiguity(swizzled) == _counted_contiguity(swizzled)


def test_contiguity_of_many_elements_takes_no_table() -> None:
    huge = 10**9
    assert cute.contiguity(cute.Layout((huge, huge), (1, huge))) == huge * huge
    assert cute.contiguity(cute.Layout((huge, huge), (1, huge + 1))) == huge
    assert cute.contiguity(cute.make_tensor(cute.counting_iterator(3), cute.Layout(huge))) == huge
    assert cute.contiguity(cute.ComposedLayout(cute.Swizzle(3, 3, 3), 0, cute.Layout(huge))) == 64
    assert cute.contiguity(cute.Layout((0, huge), (1, 2))) == 0
    with pytest.raises(LayoutError, match="offsets are contiguous; at most"):
        cute.contiguity(cute.ComposedLayout(cute.Swizzle(0, 4, 3), 0, cute.Layout(huge)))
    with pytest.raises(LayoutError, match="the layout has 1000000000 elements; at most 67108864 are counted"):
        cute.order(cute.Layout(huge))
    with pytest.raises(InvalidTypeError, match="integer strides"):
        cute.contiguity(cute.make_identity_layout((3, 4)))
