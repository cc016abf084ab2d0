"""The G-basis: laws of coalesce_256, worked stages, refusals."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import E, Int, Layout, LayoutLeft, LayoutRight
from cute_py.errors import GBasisError, InvalidTypeError, StaticAssertError
from cute_py.tma.atom.gbasis import coalesce_256, construct_tma_gbasis, make_cta_v_map, split_basis
from tests.oracle import gbasis_rows


@st.composite
def static_layouts(draw: st.DrawFn) -> Layout:
    """Modes of which about half continue the one before."""
    shape, stride, step = [], [], 1
    for _ in range(draw(st.integers(1, 5))):
        n = draw(st.sampled_from([1, 2, 3, 4, 8, 16, 64, 256, 512]))
        d = step if draw(st.booleans()) else draw(st.integers(0, 600))
        shape.append(Int(n))
        stride.append(Int(d))
        step = n * d
    return Layout(tuple(shape), tuple(stride))


def pairs(layout: Layout) -> list[tuple[int, int]]:
    flat = cute.flatten(layout)
    if not isinstance(flat.shape, tuple):
        return [(int(flat.shape), int(flat.stride))]
    return [(int(n), int(d)) for n, d in zip(flat.shape, flat.stride, strict=True)]


@given(static_layouts())
def test_coalesce_256_is_the_same_function(layout: Layout) -> None:
    """At the start and the end of every mode, and in between."""
    merged = coalesce_256(layout)
    size = int(cute.size(layout))
    assert int(cute.size(merged)) == size
    starts = [math.prod(n for n, _ in pairs(layout)[:k]) for k in range(6)]
    points = {0, 1, size // 3, size // 2, size - 1, *starts, *(start - 1 for start in starts)}
    for i in points:
        if i < size:
            assert int(merged(i)) == int(layout(i))


@given(static_layouts())
def test_coalesce_256_leaves_nothing_to_merge(layout: Layout) -> None:
    """No size-1 mode beside others; neighbours that continue each other would pass 256; nothing is split."""
    got, given_sizes = pairs(coalesce_256(layout)), {n for n, _ in pairs(layout)}
    if len(got) > 1:
        assert all(n != 1 for n, _ in got[1:])
    for (n, d), (m, e) in itertools.pairwise(got):
        assert n == 1 or n * d != e or n * m > 256
    assert all(n <= 256 or n in given_sizes for n, _ in got)


@pytest.mark.parametrize(
    ("layout", "want"),
    [
        ("(_1,_1):(_0,_7)", "_1:_0"),
        ("(_16,_16):(_1,_16)", "_256:_1"),
        ("(_16,_32):(_1,_16)", "(_16,_32):(_1,_16)"),
        ("(_2,4):(_1,_2)", "(_2,4):(_1,_2)"),
        ("(_1,_4,1,_8):(_0,_1,_4,_4)", "(_4,1,_8):(_1,_4,_4)"),
    ],
)
def test_coalesce_256_edges(layout: str, want: str) -> None:
    assert str(coalesce_256(gbasis_rows.layout(layout))) == want


def test_split_oversize_cuts_to_a_divisor() -> None:
    gmem = Layout((64, 1200), (1200, Int(1)))
    v_map = make_cta_v_map(gmem.shape, (Int(4), Int(600)))
    smem = Layout((Int(4), Int(600)), LayoutRight)
    assert str(construct_tma_gbasis(gmem, smem, v_map).layout) == "(_600,_4):(_1@1,_1@0)"
    cut = construct_tma_gbasis(gmem, smem, v_map, split_oversize=True)
    assert str(cut.layout) == "(_200,_1):(_1@1,_1@0)"
    assert cut.trace.notes == ("box mode 0 of 600 elements is cut to 200, so a tile takes several instructions",)


@pytest.mark.parametrize(
    ("smem", "tile", "error", "words"),
    [
        (Layout((Int(64), Int(16)), LayoutRight), (Int(64), Int(32)), GBasisError, "top-level size equivalence"),
        (Layout((64, Int(32)), (Int(32), Int(1))), (Int(64), Int(32)), GBasisError, "both sizes static and equal"),
        (
            Layout((Int(64), Int(32)), (Int(64), Int(2))),
            (Int(64), Int(32)),
            GBasisError,
            "common tile-gmem vectorization",
        ),
        (Layout((Int(64), Int(32)), LayoutLeft), (Int(64), Int(32), Int(1)), StaticAssertError, "rank"),
        (
            Layout((Int(64), Int(32)), LayoutLeft),
            (Int(64), "32"),
            InvalidTypeError,
            "a tiler must consist of sizes and plain layouts, got",
        ),
    ],
)
def test_refused(smem: Any, tile: Any, error: type[Exception], words: str) -> None:
    gmem = Layout((1024, 256), (256, Int(1)))
    with pytest.raises(error) as refusal:
        construct_tma_gbasis(gmem, smem, make_cta_v_map(gmem.shape, tile))
    assert words in str(refusal.value)


def test_a_tile_is_no_swizzled_layout() -> None:
    swizzled = cute.ComposedLayout(cute.Swizzle(3, 4, 3), Int(0), Layout((Int(8), Int(64)), LayoutRight))
    with pytest.raises(InvalidTypeError, match="a tiler must consist of sizes and plain layouts, got"):
        make_cta_v_map((64, 64), swizzled)
    assert make_cta_v_map((64, 64), (numpy.int64(8), 64)) == make_cta_v_map((64, 64), (8, 64))
    with pytest.raises(InvalidTypeError, match="coalesce_256 takes a layout, got int"):
        coalesce_256(4)  # type: ignore[arg-type]


def test_a_bare_layout_counts_elements_of_the_internal_type() -> None:
    gmem = Layout((64, 64), (64, Int(1)))
    smem = Layout((Int(8), Int(64)), LayoutRight)
    v_map = make_cta_v_map(gmem.shape, (Int(8), Int(64)))
    assert str(construct_tma_gbasis(gmem, smem, v_map, internal_dtype="uint32")) == "(_64,_8):(_1@1,_1@0)"
    assert str(construct_tma_gbasis(gmem, smem, v_map)) == "(_64,_8):(_1@1,_1@0)"
    assert str(construct_tma_gbasis(gmem, smem, v_map, "uint32", dtype="float16")) == "(_32,_8):(_1@1,_1@0)"


def test_the_trace_tells_each_stage_with_its_reason() -> None:
    gmem = Layout((Int(16), Int(16)), (Int(16), Int(1)))
    smem = Layout((Int(16), Int(16)), LayoutRight)
    basis = construct_tma_gbasis(gmem, smem, make_cta_v_map(gmem.shape, gmem.shape))
    assert str(basis) == "((_16,_16)):((_1@1,_1@0))"
    names = [name for name, _, _ in basis.trace.steps()]
    assert names[0] == "cta_v_map" and names[-1] == "tma_gbasis" and len(names) == 10
    assert basis.trace.notes == ("(_16,_16):(_1,_16) is contiguous in global memory too and was merged to _256:_1",)
    assert basis.trace.cta_v_map == Layout((Int(16), Int(16)), (E(0), E(1)))


def test_a_tile_is_static_however_it_is_written() -> None:
    x = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.Layout((1024, 512), (512, cute.Int(1))))
    smem = cute.Layout((cute.Int(128), cute.Int(64)), cute.LayoutRight)
    for tile in ((128, 64), "128x64", "(_128,_64)", "(128, 64)", cute.static((128, 64))):
        atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, smem, tile)
        assert atom.cta_tiler == cute.static((128, 64))
        assert atom.transaction_bytes == 16384
    assert cute.tma.make_tma_atom("SM90_TMA_LOAD", x, smem, "128x64").transaction_bytes == 16384
    with pytest.raises(GBasisError) as error:
        cute.tma.make_tma_atom("SM90_TMA_LOAD", x, smem, (128, 64))  # run-time sizes, which C++ refuses
    assert error.value.hint == (
        "cute.static makes sizes static: the CTA V-map becomes (_128,_64):(_1@0,_1@1), size _8192"
    )


N = sympy.Symbol("N", integer=True, positive=True)
SHARED = "the shared layout becomes (_128,_64):(_64,_1), size _8192"
V_MAP = "the CTA V-map becomes (_128,_64):(_1@0,_1@1), size _8192"


@pytest.mark.parametrize(
    ("tile", "smem", "hinted"),
    [
        ((128, 64), (Int(128), Int(64)), (V_MAP,)),
        ((Int(128), Int(64)), (128, 64), (SHARED,)),
        ((128, 64), (128, 64), (SHARED, V_MAP)),
        ((128, 64), (Int(128), Int(32)), ()),
        ((Int(128), Int(64)), (Int(128), Int(32)), ()),
        ((N, Int(64)), (Int(128), Int(64)), ()),
        ((Int(128), Int(64)), (N, Int(64)), ()),
    ],
)
def test_static_sizes_are_advised_where_only_they_are_missing(tile: Any, smem: Any, hinted: tuple[str, ...]) -> None:
    gmem = Layout((1024, 512), (512, Int(1)))
    with pytest.raises(GBasisError, match="top-level size equivalence") as refusal:
        construct_tma_gbasis(gmem, Layout(smem, LayoutRight), Layout(tile, (E(0), E(1))))
    assert refusal.value.hint == (f"cute.static makes sizes static: {'; '.join(hinted)}" if hinted else None)


@pytest.mark.parametrize(
    ("outer_stride", "shape"),
    [
        (128, "((_2,_2),_8,_256)"),  # the two steps of mode 0 continue each other: only mode 2 is cut
        (256, "((_2,_1),_1,_1)"),  # they don't: modes after the part that does are cut to 1
    ],
)
def test_what_follows_a_cut_mode_is_cut_to_one(outer_stride: int, shape: str) -> None:
    gmem = Layout((64, 512, 8, 2), (64, 1, 4096, outer_stride))
    gbasis = Layout(((Int(2), Int(2)), Int(8), Int(512)), ((E(0), E(3)), E(2), E(1)))
    cut, notes = split_basis(gbasis, gmem)
    assert str(cut).startswith(shape)
    assert len(notes) == 1
