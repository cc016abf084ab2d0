"""Multicast masks: bit i is set where CTA i shares the load."""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import Int, Layout
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.tma.atom.partition import create_tma_multicast_mask, expect_cta
from cute_py.tma.atom.tiles import tile_tensors
from tests.each import each_of

CLUSTER = Layout((Int(2), Int(2), Int(4), Int(1)), (Int(1), Int(2), Int(4), Int(0)))


@st.composite
def clusters(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """(sizes, strides, coordinate, modes) of at most 16 CTAs in any order; modes of one CTA may have stride 0."""
    sizes = draw(st.sampled_from([(2, 2, 4, 1), (1, 2, 2, 2), (2, 4, 2, 1), (1, 4, 4, 1), (1, 1, 1, 1), (2, 8, 1, 1)]))
    order = draw(st.permutations(range(4)))
    strides, step = [0] * 4, 1
    for mode in order:
        strides[mode] = step if sizes[mode] > 1 or draw(st.booleans()) else 0
        step *= sizes[mode]
    coord = tuple(draw(st.integers(0, n - 1)) for n in sizes)
    modes = draw(st.lists(st.integers(0, 3), unique=True, max_size=4))
    return sizes, tuple(strides), coord, tuple(modes)


@given(clusters(), st.booleans())
def test_the_mask_names_the_ctas_along_the_modes(cluster: Any, static: bool) -> None:
    sizes, strides, coord, modes = cluster
    layout = Layout(sizes, strides)
    if static:
        layout = cute.static(layout)
    ranges = [range(n) if i in modes else [c] for i, (n, c) in enumerate(zip(sizes, coord, strict=True))]
    ctas = {sum(c * d for c, d in zip(at, strides, strict=True)) for at in itertools.product(*ranges)}
    assert create_tma_multicast_mask(layout, coord, *modes) == sum(1 << n for n in ctas)
    assert create_tma_multicast_mask(layout, tuple(None if i in modes else c for i, c in enumerate(coord))) == sum(
        1 << n for n in ctas
    )


def test_a_mode_of_stride_0_names_no_further_cta() -> None:
    assert create_tma_multicast_mask(Layout((1 << 40, 2), (0, 1)), (None, 1)) == 2


@each_of(
    ("layout", "coord", "modes", "error", "words"),
    [
        (
            Layout((2, 16), (16, 1)),
            (1, 0),
            (1,),
            InvalidValueError,
            "the multicast mask has no bit for CTA 16; must be 0 to 15",
        ),
        (
            Layout((1 << 40, 2), (1, 1)),
            (0, 0),
            (0,),
            InvalidValueError,
            "the multicast mask has no bit for CTA 16; must be 0 to 15",
        ),
        (
            Layout((4, 2), (-1, 1)),
            (1, 0),
            (),
            InvalidValueError,
            "the multicast mask has no bit for CTA -1; must be 0 to 15",
        ),
        (CLUSTER, (0, 0, 0, 0), (4,), InvalidValueError, "mode 4 does not exist in a coordinate of rank 4"),
        (CLUSTER, (0, 0, 0, 0), ("m",), InvalidTypeError, "a mode must be an integer, got str 'm'"),
        (CLUSTER, (0, 0, 0, 0), (None,), InvalidTypeError, "a mode must be an integer, got NoneType None"),
        (Layout((1, 2, 1, 1)), (1, 1, 0, 0), (1,), InvalidValueError, "a CTA is (1, 1, 0, 0); must be in (1,2,1,1)"),
        (CLUSTER, (0, 0, -1, 0), (1,), InvalidValueError, "a CTA is (0, 0, -1, 0); must be in (_2,_2,_4,_1)"),
        (CLUSTER, (0, 2, 0, 0), (1,), InvalidValueError, "a CTA is (0, 2, 0, 0); must be in"),
        (CLUSTER, (0, None, 4, 0), (), InvalidValueError, "a CTA is (0, None, 4, 0); must be in"),
        (Layout(((2, 2), 4)), ((1, 2), 0), (1,), InvalidValueError, "a CTA is ((1, 2), 0); must be in ((2,2),4)"),
        (Layout(((2, 2), 4)), (4, 0), (1,), InvalidValueError, "a CTA is (4, 0); must be in ((2,2),4)"),
        (Layout(4), 4, (), InvalidValueError, "a CTA is 4; must be in 4:_1"),
        (
            (2, 2),
            (0, 0),
            (),
            InvalidTypeError,
            "cluster_layout_vmnk must be a layout that numbers the CTAs of a cluster, got (2, 2)",
        ),
    ],
)
def test_refused(layout: Any, coord: Any, modes: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error) as refusal:
        create_tma_multicast_mask(layout, coord, *modes)
    assert words in str(refusal.value)


@given(st.data())
def test_no_mask_names_a_cta_that_is_not_there(data: Any) -> None:
    """With a compact layout every coordinate gives CTAs of the cluster, or is refused."""
    sizes = data.draw(st.sampled_from([(1, 2, 1, 1), (2, 2, 2, 1), (1, 4, 2, 2), (2, 1, 1, 1)]))
    coord = tuple(data.draw(st.integers(-1, 4)) for _ in sizes)
    try:
        mask = create_tma_multicast_mask(Layout(sizes), coord, *data.draw(st.sets(st.integers(0, 3))))
    except InvalidValueError:
        assert any(not 0 <= c < n for c, n in zip(coord, sizes, strict=True))
    else:
        assert 0 < mask < 1 << numpy.prod(sizes)


def test_a_partition_is_of_a_cta_that_is_there() -> None:
    array = numpy.zeros((64, 64), numpy.uint8)
    tile = Layout((Int(32), Int(32)), cute.LayoutRight)
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD_MULTICAST", array, tile, None, 2)
    smem, tiles = tile_tensors(atom)
    for cta in (-1, 2, 5):
        with pytest.raises(InvalidValueError, match=f"a CTA is {cta}; must be in _2:_1"):
            cute.tma.tma_partition(atom, cta, Layout(Int(2)), smem, tiles)
        with pytest.raises(InvalidValueError, match=f"thread {cta} does not exist|a thread index is {cta}; must"):
            atom.tiled_copy.get_slice(cta)
    assert [str(cute.tma.tma_partition(atom, cta, Layout(Int(2)), smem, tiles)[0].engine) for cta in (0, 1)] == [
        "ArithTuple(0,0)",
        "ArithTuple(0,16)",
    ]


def test_coordinates_as_lists_and_modes_of_numpy() -> None:
    layout = Layout((Int(2), Int(2), Int(4), Int(1)), (Int(1), Int(2), Int(4), Int(0)))
    assert create_tma_multicast_mask(layout, [0, 0, 1, 0], numpy.int64(1)) == 80  # type: ignore[arg-type]


@each_of(
    ("coord", "shape", "inside"),
    [
        (0, 4, True),
        (3, 4, True),
        (4, 4, False),
        (-1, 4, False),
        (3, (2, 2), True),
        (4, (2, 2), False),
        ((1, 0), (2, 2), True),
        ((0, 2), (2, 2), False),
        ((-1, 0), (2, 2), False),
        (((1, 2), 0), ((2, 3), 1), True),
        (((1, 3), 0), ((2, 3), 1), False),
        ((5, 0), ((2, 3), 1), True),
        ((6, 0), ((2, 3), 1), False),
        ((None, 1), (2, 2), True),
        ((cute._, 2), (2, 2), False),
        (None, 4, True),
        ((0, 0, 9), (2, 2), True),
        ((9, 9), 4, True),
        (numpy.int64(3), 4, True),
        (numpy.int64(4), 4, False),
    ],
    ids=str,
)
def test_a_cta_lies_in_the_layout_that_numbers_it(coord: Any, shape: Any, inside: bool) -> None:
    """Free modes are inside; a coordinate that is not congruent is left to the layout, which refuses it."""
    layout = Layout(shape)
    if inside:
        expect_cta(coord, layout)
        return
    with pytest.raises(InvalidValueError, match=r"the number is .*; must be in "):
        expect_cta(coord, layout, "the number")
