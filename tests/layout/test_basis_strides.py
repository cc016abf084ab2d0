"""Inverses, complements, products and common layouts of basis strides: one codomain axis at a time.

CuTe C++ does not compile these; the rule is that of arXiv 2603.02298, and the checks are its post-conditions.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import E, Int, Layout
from cute_py.errors import LayoutError


def coordinate(value: Any, axes: int) -> tuple[int, ...]:
    flat = [int(x) for x in value.as_tuple()] if hasattr(value, "as_tuple") else []
    if hasattr(value, "as_arith_tuple"):
        flat = [int(x) for x in value.as_arith_tuple().as_tuple()]
    return tuple(flat + [0] * (axes - len(flat)))


@st.composite
def two_axis_layouts(draw: Any) -> Layout:
    sizes = draw(st.lists(st.sampled_from([2, 3, 4]), min_size=2, max_size=4))
    ends = [1, 1]
    steps = []
    for s in sizes:
        axis = draw(st.integers(0, 1))
        steps.append(Int(ends[axis]) * E(axis))
        ends[axis] *= s
    order = draw(st.permutations(range(len(sizes))))
    return Layout(tuple(Int(sizes[i]) for i in order), tuple(steps[i] for i in order))


@given(two_axis_layouts())
def test_right_inverse_gives_the_coordinate_back(a: Layout) -> None:
    inverse = cute.right_inverse(a)
    profile = cute.coprofile(a)
    for axis in range(len(profile)):
        mode = inverse[axis]
        for i in range(int(cute.size(mode))):
            want = tuple(i if k == axis else 0 for k in range(len(profile)))
            assert coordinate(a(int(mode(i))), len(profile)) == want


@given(two_axis_layouts())
def test_left_inverse_gives_the_index_back(a: Layout) -> None:
    inverse = cute.left_inverse(a)
    axes = len(cute.coprofile(a))
    for i in range(int(cute.size(a))):
        at = coordinate(a(i), axes)
        assert sum(int(inverse[k](c)) for k, c in enumerate(at)) == i


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (lambda: cute.right_inverse(Layout((Int(4), Int(8)), (E(1), E(0)))), "(_8,_4):(_4,_1)"),
        (lambda: cute.complement(Layout(Int(4), Int(2) * E(0)), (Int(24),)), "((_2,_3)):((_1@0,_8@0))"),
    ],
)
def test_texts(expression: Any, text: str) -> None:
    assert str(expression()) == text


@given(two_axis_layouts(), st.integers(2, 6))
def test_products_repeat_the_block_without_overlap(a: Layout, copies: int) -> None:
    result = cute.logical_product(a, Layout(Int(copies)))
    assert result[0] == a
    axes = len(cute.coprofile(a))
    points = [coordinate(result(i), axes) for i in range(int(cute.size(result)))]
    assert len(set(points)) == len(points) == copies * int(cute.size(a))


@given(two_axis_layouts())
def test_a_layout_and_its_complement_fill_the_box(a: Layout) -> None:
    box = tuple(Int(24) for _ in cute.coprofile(a))
    rest = cute.complement(a, box)
    axes = len(box)
    whole = cute.make_layout(a, rest)
    points = {coordinate(whole(i), axes) for i in range(int(cute.size(whole)))}
    assert points >= {coordinate(a(i), axes) for i in range(int(cute.size(a)))}
    assert len(points) == int(cute.size(a)) * int(cute.size(rest))


def test_a_slice_needs_no_offset_of_strides_that_do_not_add() -> None:
    layout = Layout((Int(4), Int(3), Int(2)), (E(2, 0), E(2), E(1)))
    assert str(cute.slice_((2, 1, None), layout)) == "(_2):(_1@1)"
    with pytest.raises(LayoutError):
        cute.slice_and_offset((2, 1, None), layout)


def test_the_number_of_a_mode_has_a_bound() -> None:
    """A coordinate is written out with all its modes."""
    assert len(cute.coprofile(cute.parse("8:_1@4095"))) == 4096
    with pytest.raises(cute.errors.InvalidValueError, match="must be 0 to 4095"):
        E(4096)
