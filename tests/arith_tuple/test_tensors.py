"""Tensors over coordinates and memory: slicing, tiling, grouping, offsets, identity tensors, round trips."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import (
    ComposedLayout,
    E,
    Int,
    Layout,
    Swizzle,
    counting_iterator,
    domain_offset,
    group_modes,
    local_partition,
    local_tile,
    make_gmem_ptr,
    make_identity_layout,
    make_identity_tensor,
    make_inttuple_iter,
    make_smem_ptr,
    make_tensor,
    make_tmem_ptr,
    smem_ptr_flag,
    text,
    zipped_divide,
)
from cute_py.dtypes import DTYPES
from cute_py.errors import CoordinateError, InvalidTypeError, InvalidValueError
from cute_py.notation.parse import parse
from cute_py.tensor.tensor import swizzle_of
from tests.arith_tuple.strategies import bases, basis_layouts, coordinates, coordinates_in


@st.composite
def slice_of(draw: Any, shape: Any, inside: Any) -> tuple[Any, tuple[Any, ...]]:
    """(coordinate with some `_`, what is left of `inside` to address in the slice)."""
    if type(shape) is tuple and draw(st.booleans()):
        parts = [draw(slice_of(s, c)) for s, c in zip(shape, inside, strict=True)]
        return tuple(p[0] for p in parts), tuple(x for p in parts for x in p[1])
    return (None, (inside,)) if draw(st.booleans()) else (inside, ())


@given(st.data())
def test_slicing_then_reading_is_reading_then_slicing(data: Any) -> None:
    layout = data.draw(basis_layouts())
    start = data.draw(coordinates)
    tensor = make_tensor(make_inttuple_iter(start), layout)
    inside = data.draw(coordinates_in(layout.shape))
    coordinate, rest = data.draw(slice_of(layout.shape, inside))
    part = tensor(coordinate)
    here = part(rest) if cute.layout.trees.has_underscore(coordinate) and type(coordinate) is tuple else part
    if coordinate is None:
        here = part(inside)
    assert here == tensor(inside)


@given(st.data())
def test_tiles_hold_what_the_tensor_holds(data: Any) -> None:
    m, n = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 12))
    tm, tn = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    tensor = make_identity_tensor((m, n))
    i, j = data.draw(st.integers(0, m - 1)), data.draw(st.integers(0, n - 1))
    tile = local_tile(tensor, (Int(tm), Int(tn)), (i // tm, j // tn))
    assert tile(i % tm, j % tn) == (i, j)
    assert zipped_divide(tensor, (Int(tm), Int(tn)))((i % tm, j % tn), (i // tm, j // tn)) == (i, j)
    assert group_modes(tile, 0, 2)(((i % tm, j % tn),)) == (i, j)


@given(st.integers(0, 15), st.integers(0, 7))
def test_every_element_belongs_to_one_thread(i: int, j: int) -> None:
    tensor = make_identity_tensor((Int(16), Int(8)))
    threads = Layout((Int(4), Int(2)))
    owners = []
    for thread in range(8):
        mine = local_partition(tensor, threads, thread)
        owners += [thread for a in range(4) for b in range(4) if mine(a, b) == (i, j)]
    assert owners == [i % 4 + 4 * (j % 2)]


@given(st.data())
def test_domain_offset_shifts_the_domain(data: Any) -> None:
    layout = data.draw(basis_layouts())
    tensor = make_tensor(make_inttuple_iter(data.draw(coordinates)), layout)
    here, there = data.draw(coordinates_in(layout.shape)), data.draw(coordinates_in(layout.shape))

    def plus(x: Any, y: Any) -> Any:
        return tuple(plus(p, q) for p, q in zip(x, y, strict=True)) if type(x) is tuple else x + y

    assert domain_offset(here, tensor)(there) == tensor(plus(here, there))


@given(st.data())
def test_an_identity_tensor_holds_its_coordinates(data: Any) -> None:
    shape = data.draw(st.sampled_from([(4,), (4, 5), ((2, 3), 4), (2, (3, (2, 2)))]))
    inside = data.draw(coordinates_in(shape))
    assert make_identity_tensor(shape)(inside) == inside
    assert make_identity_tensor(Layout(shape)).layout == make_identity_layout(shape)


engines = st.one_of(
    coordinates.map(make_inttuple_iter),
    st.integers(-5, 5).map(make_inttuple_iter),
    st.integers(-99, 99).map(counting_iterator),
    st.builds(make_gmem_ptr, st.integers(0, 2**48), st.sampled_from([d for d in DTYPES if d.kind == "uint"])),
    st.builds(
        make_smem_ptr,
        st.integers(0, 2**18),
        st.just("uint16"),
        st.sampled_from([None, Swizzle(3, 4, 3), Swizzle(1, 4, 3)]),
    ),
    st.builds(make_tmem_ptr, st.integers(0, 2**32 - 1), st.sampled_from(["uint16", "uint32"])),
)


@given(engines, basis_layouts())
def test_what_is_printed_can_be_read_back(engine: Any, layout: Layout) -> None:
    tensor = make_tensor(engine, layout)
    assert parse(str(tensor)) == tensor
    assert parse(str(engine)) == engine


@given(bases())
def test_a_basis_can_be_read_back(basis: Any) -> None:
    assert parse(str(basis)) == basis


@given(coordinates)
def test_a_coordinate_can_be_read_back(coordinate: Any) -> None:
    read = parse(str(cute.ArithTuple(*coordinate)))
    assert text(read) == str(cute.ArithTuple(*coordinate))


def test_a_flagged_layout_meets_its_pointer() -> None:
    flagged = ComposedLayout(Swizzle(3, 4, 3), smem_ptr_flag(16), Layout((Int(8), Int(64)), (Int(64), Int(1))))
    tensor = make_tensor(make_smem_ptr(0x400, "half"), flagged)
    assert str(tensor) == "Sw<3,4,3>_smem_ptr[16b](0x400) o (_8,_64):(_64,_1)"
    assert swizzle_of(tensor) == Swizzle(3, 4, 3)
    assert cute.get_nonswizzle_portion(tensor.layout) == flagged.inner
    with pytest.raises(InvalidTypeError, match=r"Expected smem\."):
        make_tensor(make_gmem_ptr(0x400, "half"), flagged)
    with pytest.raises(InvalidValueError, match="Expected a 16-bit pointer type"):
        make_tensor(make_smem_ptr(0x400, "float32"), flagged)


@pytest.mark.parametrize("coordinate", [(1, 2, 3), (1,), ((1, 2), 3), (None, 1, 2), ((1, None), 2), (1, (2, 3))])
def test_coordinates_out_of_rank(coordinate: Any) -> None:
    tensor = make_identity_tensor((4, 5))
    with pytest.raises(CoordinateError) as caught:
        tensor(coordinate)
    assert len(caught.value.facts) >= 2


def test_what_makes_no_tensor() -> None:
    with pytest.raises(InvalidTypeError, match="needs a layout"):
        make_tensor(counting_iterator(0))
    with pytest.raises(InvalidTypeError, match="a layout, or a shape and a stride"):
        make_tensor(counting_iterator(0), Layout(4), 1)
    with pytest.raises(InvalidTypeError, match="make_tensor takes dtype only together with an array"):
        make_tensor(counting_iterator(0), 4, dtype="half")
    with pytest.raises(InvalidTypeError, match="is not an engine; an engine can be offset and read"):
        cute.Tensor(object(), Layout(4))
    with pytest.raises(InvalidTypeError, match="engine and a layout"):
        cute.Tensor(counting_iterator(0), (4, 5))


def test_a_tensor_of_a_tensor_shares_its_engine() -> None:
    tensor = make_identity_tensor((4, 5))
    assert make_tensor(tensor, Layout(4, E(1))).engine is tensor.engine


def test_tensors_compare_and_hash() -> None:
    assert make_identity_tensor((4, 5)) == make_identity_tensor((4, 5))
    assert make_identity_tensor((4, 5)) != make_identity_tensor((4, 6))
    assert len({make_identity_tensor((4, 5)), make_identity_tensor((4, 5))}) == 1


SQUARE = Layout((Int(8), Int(64)))


@pytest.mark.parametrize(
    ("tensor", "bits"),
    [  # as C++ prints them
        (make_tensor(make_gmem_ptr(4096, "float64"), SQUARE), "_32768"),
        (make_tensor(make_gmem_ptr(4096, "uint4"), SQUARE), "_2048"),
        (make_tensor(make_smem_ptr(4096, "float16"), Layout((Int(8), Int(5)), (Int(0), Int(0)))), "_16"),
        (make_tensor(make_smem_ptr(4096, "float16", swizzle=Swizzle(3, 4, 3)), SQUARE), "_128"),
        (make_tensor(make_smem_ptr(4096, "float16"), ComposedLayout(Swizzle(3, 2, 3), Int(0), SQUARE)), "_64"),
        (
            make_tensor(make_smem_ptr(4096, "float16"), ComposedLayout(Swizzle(3, 4, 3), smem_ptr_flag(16), SQUARE)),
            "_128",
        ),
    ],
)
def test_a_tensor_is_aligned_in_bits(tensor: Any, bits: str) -> None:
    assert text(cute.max_alignment(tensor)) == bits


@pytest.mark.parametrize("tensor", [make_identity_tensor((4, 5)), make_tensor(make_tmem_ptr(0, "float32"), SQUARE)])
def test_what_has_no_address_is_not_aligned(tensor: Any) -> None:
    with pytest.raises(InvalidTypeError, match="max_alignment needs a tensor in addressable memory"):
        cute.max_alignment(tensor)
