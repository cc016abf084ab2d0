"""Offsets, F2 views, one-to-one tests, bank conflicts: the edges, and sizes that no array could hold."""

from __future__ import annotations

import importlib
import itertools
import re
from typing import Any

import numpy as np
import pytest
import sympy

import cute_py as cute
from cute_py import ComposedLayout, E, Int, Layout, Swizzle
from cute_py.errors import CoordinateError, InvalidTypeError, InvalidValueError, LayoutError
from cute_py.layout.offsets import BLOCK, MAX_ELEMENTS
from tests.each import each_of

HUGE = Layout((2**40, 2**30), (2**30, 1))


@pytest.mark.parametrize(
    ("layout", "shape"),
    [
        (Layout(8), (8,)),
        (Layout((4, (2, 3))), (4, 6)),
        (Layout(()), ()),
        (Layout((4, 0)), (4, 0)),
        (Layout(1), (1,)),
        (cute.make_identity_layout((4, (2, 3))), (4, 6, 3)),
        (Layout((4, 8), (E(0), E(2))), (4, 8, 3)),
        (cute.make_identity_tensor((4, 5)), (4, 5, 2)),
    ],
    ids=str,
)
def test_shape_of_offsets(layout: Any, shape: tuple[int, ...]) -> None:
    assert cute.offsets(layout).shape == shape


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint64", "int64", object])
def test_dtype_of_offsets(dtype: Any) -> None:
    got = cute.offsets(cute.composition(Swizzle(2, 0, 2), Layout((4, 8), (8, 1))), dtype=dtype)
    assert got.dtype == np.dtype(dtype)
    assert got.tolist() == cute.offsets(cute.composition(Swizzle(2, 0, 2), Layout((4, 8), (8, 1)))).tolist()


def test_an_offset_that_the_type_cannot_hold_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="does not fit into"):
        cute.offsets(Layout(129), dtype="int8")
    assert cute.offsets(Layout(128), dtype="int8")[-1] == 127
    with pytest.raises(InvalidValueError, match="the offset -1 does not fit into uint8"):
        cute.offsets(Layout(2, -1), dtype="uint8")
    assert cute.offsets(Layout(2, 2**70), dtype=object).tolist() == [0, 2**70]


def test_too_many_elements_are_refused_at_once() -> None:
    with pytest.raises(InvalidValueError, match=f"at most {MAX_ELEMENTS}"):
        cute.offsets(HUGE)
    assert cute.offsets(HUGE, ([0, 2**20], 5)).tolist() == [5, 2**50 + 5]


def test_coordinates_whose_offset_does_not_fit_are_refused_and_exact_as_objects() -> None:
    with pytest.raises(InvalidValueError, match="does not fit into"):
        cute.offsets(HUGE, ([0, 2**40 - 1], 5))
    assert cute.offsets(HUGE, ([0, 2**40 - 1], 5), dtype=object).tolist() == [5, (2**40 - 1) * 2**30 + 5]
    assert cute.offsets(HUGE, [2**68], dtype=object).tolist() == [HUGE(2**68)]


def test_coordinates_beyond_the_shape_go_on_as_in_a_call() -> None:
    a = Layout((4, 8), (8, 1))
    assert cute.offsets(a, [100, -1, 31]).tolist() == [a(100), a(-1), a(31)]
    assert cute.offsets(a, (np.array([9]), np.array([9]))).tolist() == [81]


@pytest.mark.parametrize(
    ("coords", "error"),
    [
        (np.zeros(3), InvalidTypeError),
        (np.zeros(3, bool), InvalidTypeError),
        ((1, 2, 3), CoordinateError),
        ((np.arange(3), np.arange(4)), CoordinateError),
        ((None, 1), InvalidTypeError),
        ("abc", InvalidTypeError),
    ],
    ids=repr,
)
def test_wrong_coordinates(coords: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        cute.offsets(Layout((4, 8)), coords)


def test_huge_layouts_are_decided_by_their_strides() -> None:
    assert cute.is_injective(HUGE)
    assert cute.is_bijective(HUGE)
    assert not cute.is_injective(Layout((2**40, 2**30), (2**29, 1)))
    assert cute.footprint(HUGE).distinct == 2**70
    assert cute.same_function(HUGE, Layout((2**20, 2**20, 2**30), (2**30, 2**50, 1)))
    square = (3**30, 3**30)
    assert cute.same_function(cute.make_identity_layout(square), Layout(square, (E(0), E(1))))
    assert not cute.same_function(cute.make_identity_layout(square), Layout(square, (E(1), E(0))))
    sw, odd = Swizzle(3, 4, 3), Layout((3**30, 5))
    assert cute.same_function(ComposedLayout(sw, 7, odd), ComposedLayout(sw, 7, cute.coalesce(odd)))
    assert not cute.same_function(ComposedLayout(sw, 7, odd), ComposedLayout(sw, 7, Layout((3**30, 5), (5, 1))))
    assert not cute.same_function(ComposedLayout(sw, 7, odd), ComposedLayout(sw, 8, odd))
    assert not cute.same_function(ComposedLayout(sw, 0, odd), odd)


def test_what_only_arrays_can_tell_is_compared_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("cute_py.layout.linear")
    monkeypatch.setattr(module, "MAX_ELEMENTS", 4)
    monkeypatch.setattr(module, "PIECE", 2)
    without_effect = ComposedLayout(Swizzle(1, 0, 3), 0, Layout(12))
    with pytest.raises(InvalidValueError, match="the first 4 of 12 offsets are equal; at most 4 are compared"):
        cute.same_function(without_effect, Layout(12))
    assert not cute.same_function(ComposedLayout(Swizzle(1, 0, 1), 0, Layout(12)), Layout(12))
    assert not cute.overlaps(HUGE, HUGE, shift=2**70)
    assert not cute.overlaps(Layout(2**40, 4), Layout(2**40, 6), shift=1)
    assert cute.coordinates(HUGE, [2**30 + 7]).tolist() == [[1, 7]]


def test_what_theory_does_not_decide_is_refused_when_too_large_to_count() -> None:
    with pytest.raises(
        LayoutError, match="the strides of this layout don't decide the answer, and it has 1152921504606846976"
    ):
        cute.is_injective(Layout((2**20, 2**20, 2**20), (2**30 + 1, 2**30 + 3, 2**29 + 1)))


def test_coordinates_of_what_is_not_reached_are_refused() -> None:
    with pytest.raises(LayoutError, match="no coordinate of the layout has the offset"):
        cute.coordinates(Layout((4, 8), (1, 5)), [0, 4])
    with pytest.raises(LayoutError, match="not injective"):
        cute.coordinates(Layout((4, 8), (1, 1)), [0])


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        (Layout((3, 4)), "the size 3 is not a power of 2"),
        (Layout((2, 4), (1, -2)), "the stride -2 is negative"),
        (Layout((2, 2), (1, 1)), "two strides of (2,2):(1,1) share a bit, so their sum carries"),
        (
            ComposedLayout(Swizzle(1, 0, 1), 1, Layout(2)),
            "the offset 1 shares a bit with a stride, so their sum carries",
        ),
    ],
    ids=str,
)
def test_why_not_linear(layout: Any, reason: str) -> None:
    with pytest.raises(LayoutError, match=re.escape(f"this function has no F2 view, because {reason}")):
        cute.linear(layout)


def test_a_map_that_is_no_layout_behind_one_swizzle_is_refused() -> None:
    with pytest.raises(LayoutError, match="no layout, with or without a swizzle"):
        cute.LinearLayout(16, (1, 3, 5, 15)).to_layout()


@each_of(
    ("layout", "dtype", "wavefronts"),
    [
        (Layout(32), "float32", (1,)),
        (Layout(32, 2), "float32", (2,)),
        (Layout(32, 32), "float32", (32,)),
        (Layout(32, 33), "float32", (1,)),
        (Layout(32, 0), "float32", (1,)),  # one word, served to everybody
        (Layout(32), "float64", (1, 1)),
        (Layout((32, 4), (4, 1)), "float32", (1, 1, 1, 1)),
        (Layout((8, 8), (64, 1)), "float16", (8,)),
        (cute.composition(Swizzle(3, 3, 3), Layout((8, 8), (64, 1))), "float16", (1,)),
        (Layout((32, 16), (16, 1)), "uint8", (1, 1, 1, 1)),
        (Layout((32, 2), (2, 1)), "float16", (1,)),
        (Layout(32), "uint8", (1,)),
    ],
    ids=str,
)
def test_bank_conflicts(layout: Any, dtype: str, wavefronts: tuple[int, ...]) -> None:
    assert cute.bank_conflicts(layout, dtype).wavefronts == wavefronts


def test_bank_conflicts_refuse_accesses_that_no_instruction_does() -> None:
    with pytest.raises(LayoutError, match="not contiguous"):
        cute.bank_conflicts(Layout((32, 4), (8, 2)), "float32")
    with pytest.raises(LayoutError, match="bytes does not start at a multiple of"):
        cute.bank_conflicts(Layout((32, 4), (4, 1)), "float32", base=4)
    with pytest.raises(
        InvalidValueError, match="accesses of 64 bits can't cover the 3 elements of 32 bits of a thread exactly"
    ):
        cute.bank_conflicts(Layout((32, 3), (3, 1)), "float32", vector_bits=64)
    with pytest.raises(InvalidTypeError, match="3 modes"):
        cute.bank_conflicts(Layout((4, 8, 2)), "float32")


ROWS = Layout((Int(64), Int(64)), (Int(64), Int(1)))
SWIZZLED = cute.composition(Swizzle(3, 3, 3), ROWS)


def test_more_threads_are_more_warps() -> None:
    assert cute.bank_conflicts(Layout(64, 32), "float32").wavefronts == (32, 32)
    assert cute.coalescing(Layout((64, 2), (0, 1)), "float32").sectors == 2  # both warps read it


@pytest.mark.parametrize(
    ("tile", "access", "ways", "width"),
    [
        (ROWS, "row", 1, 128),
        (ROWS, "column", 32, 16),
        (ROWS, "ldmatrix", 8, 128),
        (Layout((64, 64), (1, 64)), "ldmatrix", 8, 128),
        (SWIZZLED, "row", 1, 128),
        (SWIZZLED, "column", 4, 16),
        (SWIZZLED, "ldmatrix", 1, 128),
        (ROWS, Layout((32, 1)), 32, 16),  # elements of a tile go down its columns
        (Layout((64, 64)), Layout((32, 8), (8, 1)), 1, 128),
    ],
    ids=str,
)
def test_bank_conflicts_of_a_tile(tile: Any, access: Any, ways: int, width: int) -> None:
    found = cute.bank_conflicts(tile, "float16", access=access)
    assert (found.ways, found.vector_bits) == (ways, width)


def test_two_bytes_of_a_thread_are_one_access() -> None:
    bytes_ = Layout((32, 2), (2, 1))
    assert repr(cute.bank_conflicts(bytes_, "uint8")) == repr(cute.bank_conflicts(bytes_, "uint8", vector_bits=16))
    assert cute.bank_conflicts(Layout((32, 6), (6, 1)), "int8").vector_bits == 16
    assert cute.bank_conflicts(Layout((6, 6), (6, 1)), "int8", access="row").vector_bits == 32
    assert cute.bank_conflicts(Layout((3, 6), (6, 1)), "int8", access="row").vector_bits == 16


def test_an_access_of_a_tile_is_a_known_one() -> None:
    with pytest.raises(InvalidValueError, match="diagonal"):
        cute.bank_conflicts(ROWS, "float16", access="diagonal")
    with pytest.raises(InvalidValueError, match="8 rows of 8 contiguous"):
        cute.bank_conflicts(Layout((4, 8), (8, 1)), "float16", access="ldmatrix")
    with pytest.raises(InvalidValueError, match="the thread-value layout addresses elements outside the tile"):
        cute.bank_conflicts(Layout((4, 8), (8, 1)), "float16", access=Layout(64))
    with pytest.raises(InvalidTypeError, match="the tile has 1 modes; must have 2, rows and columns"):
        cute.coalescing(Layout(64), "float16", access="row")


def test_coalescing_of_a_tile() -> None:
    assert cute.coalescing(ROWS, "float16", access="row").efficiency == 1
    assert cute.coalescing(ROWS, "float16", access="column").efficiency == 1 / 16


@pytest.mark.parametrize(
    ("layout", "dtype", "sectors", "efficiency"),
    [
        (Layout(32), "float32", 4, 1.0),
        (Layout(32, 2), "float32", 8, 0.5),
        (Layout(32, 0), "float32", 1, 0.125),
        (Layout((32, 4), (4, 1)), "float32", 16, 1.0),
        (Layout(32), "float4_e2m1fn", 1, 0.5),
    ],
    ids=str,
)
def test_coalescing(layout: Any, dtype: str, sectors: int, efficiency: float) -> None:
    got = cute.coalescing(layout, dtype)
    assert (got.sectors, got.efficiency) == (sectors, efficiency)


def test_make_layout_tv_is_the_one_of_make_tiled_copy() -> None:
    tile, tv = cute.make_layout_tv(Layout((Int(32), Int(8))), Layout((Int(4), Int(1))))
    assert tile == (128, 8)
    assert str(tv) == "(_256,_4):(_4,_1)"


@pytest.mark.parametrize("coords", [[(0, 0), (1, 2, 3)], [(0, 0), (1,)], [(0, 0), 5], [(0, (0, 1)), (0, 1)]])
def test_a_list_of_coordinates_has_one_profile(coords: list[object]) -> None:
    with pytest.raises(CoordinateError, match=r"all coordinates of a list must have the same profile"):
        cute.offsets(Layout((4, (2, 4))), coords)
    assert cute.offsets(Layout((4, (2, 4))), [(0, (0, 1)), (3, (1, 2))]).tolist() == [8, 23]


AXES = [Layout(8), Layout((2, 4)), cute.make_identity_layout((8,)), cute.make_identity_layout((2, 4)), Layout(9)]


def test_same_function_of_every_codomain() -> None:
    """Of integers, of one axis and of two axes."""
    same = [[cute.same_function(a, b) for b in AXES] for a in AXES]
    wanted = [[i == j or {i, j} == {0, 1} for j in range(len(AXES))] for i in range(len(AXES))]
    assert same == wanted


def test_overlaps_of_coordinates_and_of_swizzles() -> None:
    square = cute.make_identity_layout((4, 4))
    swizzled = cute.composition(Swizzle(2, 0, 2), Layout(16))
    for shift in range(-20, 21):
        assert cute.overlaps(square, square, shift=shift) == (abs(shift) < 4)
        assert cute.overlaps(swizzled, Layout(4), shift=shift) == (-4 < shift < 16)
    assert not cute.overlaps(Layout(0), Layout(4))
    assert not cute.overlaps(Layout(4), Layout((4, 0)))


@pytest.mark.parametrize(
    "layout",
    [
        Layout((4, 8), (E(1), E(0))),
        Layout((4, 8), (E(0), 4 * E(0))),
        Layout((3, 2), (2 * E(0), 3 * E(0))),
        Layout(8, E(0)),
    ],
)
def test_coordinates_of_points(layout: Layout) -> None:
    points = cute.offsets(layout)
    found = cute.coordinates(layout, points).reshape(-1, int(cute.rank(layout)))
    sizes = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    assert sorted(map(tuple, found.tolist())) == sorted(itertools.product(*map(range, sizes)))


def test_points_have_an_entry_for_each_axis() -> None:
    for layout, axes in ((Layout((4, 8), (E(1), E(0))), 2), (Layout((3, 2), (2 * E(0), 3 * E(0))), 1)):
        with pytest.raises(InvalidValueError, match=f"the last axis of the offsets must have {axes} entries"):
            cute.coordinates(layout, np.zeros((4, 3), int))


def test_the_f2_view_through_a_layout_ends_at_its_domain() -> None:
    rows = Layout((4, 8), (8, 1))
    for start, inner in ((0, Layout(32)), (16, Layout(16))):
        whole = ComposedLayout(rows, start, inner)
        view = cute.linear(whole)
        assert [view(i) for i in range(int(cute.size(inner)))] == [whole(i) for i in range(int(cute.size(inner)))]
    for start, inner in ((0, Layout(64)), (32, Layout(16))):
        with pytest.raises(LayoutError, match="the inner layout has values outside the domain of the outer"):
            cute.linear(ComposedLayout(rows, start, inner))


@pytest.mark.parametrize("coordinate", [(1, 2), (np.arange(2), np.arange(2)), (np.arange(2), 1, 2)])
def test_coordinates_of_another_rank_are_refused(coordinate: Any) -> None:
    with pytest.raises(CoordinateError, match="Mismatched Ranks"):
        cute.offsets(Layout(8) if len(coordinate) == 2 else Layout((4, 8)), coordinate)


@pytest.mark.parametrize("offset", [sympy.Symbol("n", integer=True), E(0)], ids=str)
def test_offsets_need_a_known_integer_between(offset: Any) -> None:
    with pytest.raises(InvalidTypeError, match=r"offsets\(\) can't add the offset"):
        cute.offsets(ComposedLayout(Swizzle(2, 0, 2), offset, Layout(16)))


@pytest.mark.parametrize(
    ("record", "plain"),
    [
        (lambda: cute.Coalescing(np.uint8(4), np.uint8(1), np.uint8(128)), cute.Coalescing(4, 1, 128)),
        (lambda: cute.BankConflicts(np.uint8(128), np.array([200, 100])), cute.BankConflicts(128, (200, 100))),
        (lambda: cute.LinearLayout((np.uint8(2), Int(4)), (4, 1, 2)), cute.LinearLayout((2, Int(4)), (4, 1, 2))),
    ],
)
def test_records_hold_plain_integers(record: Any, plain: Any) -> None:
    made = record()
    assert made == plain and repr(made) == repr(plain)
    assert eval(repr(made), dict(vars(cute))) == plain


def test_the_width_of_an_access_may_be_numpys() -> None:
    rows = Layout((8, 64), (64, 1))
    for bits in (16, 128):
        found = cute.bank_conflicts(rows, "float16", vector_bits=np.uint8(bits))
        assert repr(found) == repr(cute.bank_conflicts(rows, "float16", vector_bits=bits))


def test_a_linear_layout_has_sizes_above_zero() -> None:
    with pytest.raises(InvalidValueError, match="a size is 0; must be at least 1"):
        cute.LinearLayout(0, ())


@pytest.mark.parametrize("empty", [Layout((4, 0), (3, 3)), ComposedLayout(Swizzle(2, 0, 2), Int(0), Layout((4, 0)))])
def test_nothing_is_one_to_one_and_has_no_offsets(empty: Any) -> None:
    assert cute.is_injective(empty)
    assert cute.footprint(empty).distinct == cute.footprint(empty).span == 0
    assert not cute.overlaps(empty)


@each_of("low", [0, -3, 1 << 21, (1 << 50) + 1])
@each_of("layout", [Layout((4, 5), (5, 1)), Layout(((2, 3), (5, 7)), ((1, 70), (2, 10))), Layout((4, 5), (-7, 0))])
def test_many_coordinates_have_the_offsets_of_few(layout: Layout, low: int) -> None:
    """In blocks, with a negative, a large or a far too large coordinate in the last of them: as one by one."""
    count = 2 * BLOCK + 5
    i, j = np.arange(count) % 4, np.arange(count) % 5
    i[-2:] = low
    found = cute.offsets(layout, (i, j))
    assert found.dtype == np.int64 and found.shape == (count,)
    for few in (slice(0, 40), slice(BLOCK - 3, BLOCK + 3), slice(count - 5, count)):
        assert found[few].tolist() == [layout(int(a), int(b)) for a, b in zip(i[few], j[few], strict=True)]
    square = cute.offsets(layout, (i[: 4 * (count // 4)].reshape(4, -1), j[: 4 * (count // 4)].reshape(4, -1)))
    assert square.shape == (4, count // 4) and square.ravel().tolist() == found[: square.size].tolist()


def test_an_offset_beyond_64_bits_is_refused_among_many() -> None:
    i = np.zeros(2 * BLOCK, np.int64)
    i[-1] = 1 << 60
    with pytest.raises(InvalidValueError, match="does not fit into"):
        cute.offsets(Layout((4, 4), (1 << 8, 1)), (i, i))


@pytest.mark.parametrize("kind", ["int8", "uint8", "int64", "uint64", "object"])
def test_runs_reach_the_ends_of_their_type(kind: str) -> None:
    most = 1 << 100 if kind == "object" else int(np.iinfo(kind).max)
    for size in (2, 4, 6):
        step = most // (size - 1)
        assert cute.offsets(Layout((size,), (step,)), dtype=kind).tolist() == [step * k for k in range(size)]


def test_one_coordinate_beyond_64_bits() -> None:
    layout = Layout((6, 6), (9, 25))
    with pytest.raises(InvalidValueError, match="does not fit into"):
        cute.offsets(layout, 10**5000, dtype="int32")
    for number in (2**64 + 3, 2**63 + 1, -(2**64)):
        assert int(cute.offsets(layout, number, dtype=object)) == layout(number)
