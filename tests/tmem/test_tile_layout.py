"""Tile layouts: the laws of the algebra, its edges, and how layouts are written."""

from __future__ import annotations

import itertools

import numpy
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from cute_py.errors import CoordinateError, InvalidTypeError, LayoutError
from cute_py.tmem import Iter, R, S, TCol, TileLayout, TLane
from tests.tmem.layouts import AXES, regions, rows, shapes_of, tile_layouts

NAMES = {"S": S, "R": R, "TLane": TLane, "TCol": TCol, "TileLayout": TileLayout}


def everywhere(layout: TileLayout) -> list[list[int]]:
    return [layout.positions(axis).tolist() for axis in AXES]


def test_the_layout_of_the_reference_page_as_written() -> None:
    layout = S[(32, 16) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane]
    assert isinstance(layout, TileLayout)
    assert TileLayout(layout) == layout
    assert layout.shard == (Iter(32, 1, "TLane"), Iter(16, 1, "TCol"))
    assert layout.replica == (Iter(4, 32, "TLane"),)
    assert repr(layout) == "S[(32, 16) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane]"
    assert layout.apply((6, 2), (32, 16)) == {"TLane": 6, "TCol": 2}
    assert layout.places(("TLane", "TCol"))[17].tolist() == [[1, 1], [33, 1], [65, 1], [97, 1]]


def test_the_forms_of_apply_and_of_an_axis() -> None:
    layout = S[(32, 16) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane]
    place = {"TLane": 6, "TCol": 2}
    assert layout.apply(6, 2) == layout.apply((6, 2)) == layout.apply(98) == place
    assert layout.apply((6, 2), (32, 16)) == layout.apply((6, 2), shape=(32, 16)) == place
    assert layout.apply(3, 0, 2, shape=(16, 2, 16)) == place
    assert layout.span(TLane) == layout.span("TLane") == 128
    assert layout.positions(TCol).tolist() == layout.positions("TCol").tolist()
    assert layout.permute([1, 0]) == layout.permute_dims([1, 0])
    with pytest.raises(CoordinateError):
        layout.apply(6, 2, 0)
    with pytest.raises(InvalidTypeError):
        layout.apply(6, 2.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError):
        layout.span(3)  # type: ignore[arg-type]


@given(tile_layouts())
def test_text_evaluates_back(layout: TileLayout) -> None:
    assert eval(repr(layout), dict(NAMES)) == layout
    assert hash(eval(repr(layout), dict(NAMES))) == hash(layout)


@given(tile_layouts())
def test_positions_are_apply(layout: TileLayout) -> None:
    for index in range(0, layout.size(), max(1, layout.size() // 7)):
        place = layout.apply(index)
        for axis in AXES:
            assert layout.positions(axis)[index] == place.get(axis, 0)


@given(tile_layouts())
def test_canonicalize_keeps_the_function(layout: TileLayout) -> None:
    canonical = layout.canonicalize()
    assert everywhere(canonical) == everywhere(layout)
    assert canonical.canonicalize() == canonical
    assert len(canonical.shard) <= len(layout.shard)


@given(st.data())
def test_group_splits_and_keeps_the_function(data: st.DataObject) -> None:
    layout = data.draw(tile_layouts())
    shape = data.draw(shapes_of(layout.size()))
    try:
        grouped, seps = layout.group(shape)
    except LayoutError:
        reject()
    assert everywhere(grouped) == everywhere(layout)
    sizes = [TileLayout(grouped.shard[a:b] or [Iter(1, 1, "m")]).size() for a, b in itertools.pairwise(seps)]
    assert sizes == list(shape)


@given(st.data())
def test_a_slice_is_the_layout_on_the_region(data: st.DataObject) -> None:
    layout = data.draw(tile_layouts())
    shape = data.draw(shapes_of(layout.size()))
    region = data.draw(regions(shape))
    try:
        part = layout.slice(shape, region)
    except LayoutError:
        reject()
    assume(part is not None)
    assert part is not None
    window = tuple(slice(begin, end) for begin, end in region)
    for axis in AXES:
        assert (part.positions(axis) == layout.positions(axis).reshape(shape)[window].reshape(-1)).all()
    assert part.replica == layout.canonicalize().replica or set(part.replica) == set(layout.replica)


@given(st.data())
def test_permuting_permutes_the_axes_of_the_array(data: st.DataObject) -> None:
    layout = data.draw(tile_layouts())
    perm = data.draw(st.permutations(range(len(layout.shard))))
    permuted = layout.permute_dims(perm)
    for axis in AXES:
        array = layout.positions(axis).reshape(layout.extents).transpose(perm)
        assert (permuted.positions(axis) == array.reshape(-1)).all()


@given(st.data())
def test_tile_and_outer_of_are_inverse(data: st.DataObject) -> None:
    inner = data.draw(tile_layouts(limit=64))
    outer = data.draw(tile_layouts(limit=16))
    rank = data.draw(st.integers(1, 2))
    inner_shape = data.draw(shapes_of(inner.size(), rank).filter(lambda s: len(s) == rank))
    outer_shape = data.draw(shapes_of(outer.size(), rank).filter(lambda s: len(s) == rank))
    try:
        tiled = inner.tile(outer, outer_shape, inner_shape)
    except LayoutError:
        return
    both = tuple(o * i for o, i in zip(outer_shape, inner_shape, strict=True))
    found = inner.outer_of(tiled, both, inner_shape)
    if found is not None:
        assert inner.tile(found, outer_shape, inner_shape) == tiled


def test_a_layout_without_span_is_no_inner_part() -> None:
    """2 : -1 has a span of 1 - 1: the outer strides count tiles of nothing."""
    inner, outer = S[2:-1], S[3:4]
    assert inner.outer_of(inner.tile(outer, (3,), (2,)), (6,), (2,)) is None


def test_tile_counts_whole_inner_tiles() -> None:
    tiled = S[(8, 8) : (8, 1)].tile(S[(4, 2) : (2, 1)], (4, 2), (8, 8))
    assert tiled == S[(4, 8, 2, 8) : (128, 8, 64, 1)]
    assert S[(8, 8) : (8, 1)].direct_sum(S[(4, 2) : (2, 1)], (4, 2), (8, 8)) == S[(4, 8, 2, 8) : (2, 8, 1, 1)]


@given(rows(("m",)), st.sampled_from([2, 4]))
def test_pack_undoes_unpack(row: tuple[Iter, ...], count: int) -> None:
    layout = TileLayout(row)
    unpacked = layout.unpack(count)
    wide = numpy.repeat(layout.positions("m") * count, count).reshape(-1, count) + numpy.arange(count)
    assert (unpacked.positions("m") == wide.reshape(-1)).all()
    assert (unpacked.pack(count).positions("m") == layout.positions("m")).all()


def test_adding_parts() -> None:
    base = S[8, 4]
    assert base == S[(8, 4) : (4, 1)]
    assert (base + 5 + 3 @ TLane + (4 @ TCol + 1)).offset.as_dict() == {"m": 6, "TLane": 3, "TCol": 4}
    assert (base + R[2:3] + R[4:5]).replica == (Iter(4, 5, "m"),)
    assert base + 0 == base
    assert base + R[(2, 4) : (3, 1)] == base + R[(4, 2) : (1, 3)]
    assert base != S[(8, 4) : (1, 8)]


@pytest.mark.parametrize(
    ("region", "words"),
    [
        ([(0, 32), (0, 17)], r"region\[1\] = 0:17; must be within 0:16"),
        ([(-1, 32), (0, 16)], r"region\[0\] = -1:32"),
        ([(4, 4), (0, 16)], "not empty"),
        ([(0, 32)], "1 ranges, but the shape has 2 dimensions"),
    ],
)
def test_regions_stay_inside(region: list[tuple[int, int]], words: str) -> None:
    with pytest.raises(CoordinateError, match=words):
        S[32, 16].slice((32, 16), region)


def test_an_uneven_region_is_no_layout() -> None:
    assert S[(8, 8, 2, 16) : (128, 16, 1024, 1)].slice((64, 32), [(24, 56), (6, 30)]) is None
    assert S[(8, 8, 2, 16) : (128, 16, 1024, 1)].slice((64, 32), [(24, 56), (8, 24)]) is not None


def test_two_halves_of_a_shard_that_carries_further_are_no_layout() -> None:
    """The second half would begin where the next outer shard steps, not this one."""
    layout = S[(2, 2, 6) : (16, 64, 128)]
    assert layout.slice((24,), [(8, 16)]) is None
    half = layout.slice((24,), [(4, 8)])
    assert half is not None
    assert half.positions("m").tolist() == layout.positions("m")[4:8].tolist()


def test_what_is_no_layout() -> None:
    with pytest.raises(LayoutError, match="extent 0"):
        S[0:1]
    with pytest.raises(LayoutError, match="2 extents and 1 strides"):
        S[(2, 3) : (1,)]
    with pytest.raises(InvalidTypeError):
        S[2.5]
    with pytest.raises(InvalidTypeError, match="with one colon"):
        S[2:1:1]
    with pytest.raises(InvalidTypeError, match="a shard must be an Iter"):
        TileLayout([(2, 1, "m")])  # type: ignore[list-item]
    with pytest.raises(LayoutError, match="can't be grouped"):
        S[(6, 4) : (8, 1)].group((4, 6))
    with pytest.raises(LayoutError, match="must have the same size"):
        S[32, 16].group_many([(32, 16), (3, 5)])
    with pytest.raises(LayoutError, match="permutation"):
        S[32, 16].permute_dims([0, 0])
    with pytest.raises(AttributeError):
        S[32].shard = ()


def test_group_many_refines_each_shape() -> None:
    layout, seps = S[(32, 16) : (16, 1)].group_many([(32, 16), (512,), (2, 256)])
    assert layout == S[(2, 16, 16) : (256, 16, 1)]
    assert seps == ((0, 2, 3), (0, 3), (0, 1, 3))


def test_trivial() -> None:
    assert S[4, 8].is_trivial()
    assert not S[12:3].is_trivial()
    assert not (S[12:1] + 1).is_trivial()
    assert not S[12 : 1 @ TCol].is_trivial()
