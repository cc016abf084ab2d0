"""For every partition that the verifier accepts: the boxes of all instructions of all CTAs cover each element of the
tile once, and put it where the shared layout says."""

from __future__ import annotations

import itertools
from typing import Any

import numpy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import cute_py as cute
from cute_py import ComposedLayout, E, Int, Layout, Swizzle, make_ordered_layout
from cute_py.arith_tuple.arith_tuple import as_arith_tuple
from cute_py.errors import CuteError
from cute_py.tma.dialect.verifier import partition, verify_partition
from tests.tma.dialect.partition_operands import NOT_A_SWIZZLE, SMEM, SWIZZLED, TILE, gmem, ints


@st.composite
def partitions(draw: st.DrawFn) -> dict[str, Any]:
    """A row- or column-major tensor of rank 2 or 3, a tile, and a shared layout of its modes in some order, padded or
    not, with an atom in the first mode or not."""
    rank = draw(st.integers(2, 3))
    tile = tuple(draw(st.sampled_from((4, 8, 16) if rank == 2 else (4, 8))) for _ in range(rank))
    major = draw(st.integers(0, rank - 1))
    strides: list[Any] = [0] * rank
    step = 64
    for i in draw(st.permutations(range(rank))):
        strides[i] = step
        step *= 64
    strides[major] = Int(1)
    order = tuple(draw(st.permutations(range(rank))))
    shape: list[Any] = list(ints(*tile))
    if draw(st.booleans()):
        inner = draw(st.sampled_from((2, 4)))
        shape[0] = (Int(inner), Int(tile[0] // inner))
    smem = make_ordered_layout(ints(*tile), ints(*order))
    if isinstance(shape[0], tuple):
        step0 = smem.stride[0]
        smem = Layout(tuple(shape), ((step0, step0 * shape[0][0]), *smem.stride[1:]))
    if draw(st.booleans()):
        last = order.index(rank - 1)
        padded = [d if i != last or type(d) is tuple else d + Int(8) for i, d in enumerate(smem.stride)]
        smem = Layout(smem.shape, tuple(padded))
    return {
        "smem_layout": smem,
        "gtensor": gmem((64,) * rank, tuple(strides)),
        "partitioner": tile,
        "num_multicast": draw(st.sampled_from((1, 1, 2, 4))),
    }


@settings(max_examples=40, deadline=None)
@given(partitions())
def test_every_element_once_and_in_its_place(case: dict[str, Any]) -> None:
    walk = verify_partition(load_mode="W_MULTICAST", **case)
    assume(walk.failed is None)
    atom = walk.results[0].body
    smem = case["smem_layout"]
    expected = {}
    for i in range(atom.tile_elements):
        coord = as_arith_tuple(atom.cta_v_map(i)).as_tuple()
        expected[atom.tma_coord(coord)] = int(smem(i))
    found: dict[tuple[int, ...], int] = {}
    count = 0
    for cta, index in itertools.product(range(atom.num_multicast), range(atom.instructions)):
        part = atom.instruction(index, cta)
        for j, corner in enumerate(itertools.product(*[range(n) for n in reversed(atom.box)])):
            place = tuple(c + d for c, d in zip(part.coord, reversed(corner), strict=True))
            found[place] = part.smem_offset + j
            count += 1
    assert found == expected
    assert count == atom.tile_elements
    assert walk.results[0].tile_element_count == count * atom.num_multicast
    assert atom.transaction_bytes == count * atom.element_bits // 8


@settings(max_examples=60, deadline=None)
@given(partitions(), st.integers(0, 1))
def test_the_walk_is_a_function_of_its_operands(case: dict[str, Any], dsl: int) -> None:
    dialect = ("seed", "dsl")[dsl]
    first = verify_partition(load_mode="W_MULTICAST", dialect=dialect, **case)
    second = verify_partition(load_mode="W_MULTICAST", dialect=dialect, **case)
    assert first == second
    assert (first.failed is None) == bool(first.results) == (first.text == "")


SMEMS = [
    *(SMEM, SWIZZLED, NOT_A_SWIZZLE, None, 3, "x", ints(4), Swizzle(3, 4, 3), object(), Layout(()), Layout(Int(8))),
    ComposedLayout(Swizzle(1, 4, 3), 3, SMEM),
    ComposedLayout(Swizzle(3, 4, 3), Int(0), ComposedLayout(Swizzle(3, 4, 3), Int(0), Layout(Int(8)))),
    Layout(ints(0, 8)),
    Layout(ints(128, 64), ints(-64, 1)),
    Layout(ints(128, 64), ints(1, 0)),
    Layout(ints(128, 64), ints(0, 1)),
    cute.make_identity_tensor((4, 4)),
    cute.make_tensor(cute.make_smem_ptr(0, "float16", Swizzle(3, 4, 3)), SMEM),
]
GMEMS = [
    *(gmem(), gmem((), ()), gmem(8, 1), gmem(Int(8), Int(1)), gmem((0, 512)), gmem((1024, 512), (0, Int(1)))),
    gmem((1024, 512), (-512, Int(1))),
    gmem((1024, 512), (E(0), E(1))),
    gmem(((32, 32), 512), ((512, 16384), Int(1))),
    *(gmem(dtype="float4_e2m1fn"), gmem(dtype="bool"), gmem((2,) * 7, (Int(1),) * 7)),
    *(numpy.zeros((256, 128), numpy.float16), numpy.zeros((256, 128), numpy.complex64)),
    *(numpy.zeros((), numpy.float32), numpy.zeros((0, 8), numpy.float32), numpy.zeros((8, 8), dtype=object)),
    numpy.zeros((256, 128), numpy.int16)[::2],
    *(None, "g", 5, Layout((8, 8)), [1, 2], cute.make_identity_tensor((4, 4))),
    cute.make_tensor(cute.counting_iterator(0), Layout((4, 4))),
    cute.make_tensor(cute.make_tmem_ptr(0, "float32"), Layout((4, 4))),
]
TILES = [
    *(None, TILE, ints(128, 64), 128, (128,), (128, 64, 2), "t", (0, 64), (-1, 64), ((8, 16), 64), (), 3.5, (True, 2)),
    *((None, None), (1, "a"), object(), Layout(ints(128, 64), ints(1, 1024)), Layout(ints(4, 4), (E(0), E(1)))),
]
MAPS = [
    *(None, None, None, "v", 3, Layout(ints(128, 64)), Layout(ints(128, 64), (Int(1), E(1)))),
    Layout(ints(128, 64), (E(0), E(1))),
    Layout(ints(128, 64), (E(1), E(0))),
    Layout(ints(128, 64), (E(0, 0), E(1))),
    Layout(ints(128, 64), (E(5), E(1))),
    Layout(ints(128, 64), (2 * E(0), E(1))),
    ComposedLayout(Swizzle(1, 0, 1), Int(0), Layout(Int(8))),
]


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(SMEMS),
    st.sampled_from(GMEMS),
    st.sampled_from(TILES),
    st.sampled_from(MAPS),
    st.sampled_from((0, 2, 3)),
    st.sampled_from((None, 0, 1, 2, 7)),
    st.sampled_from(("seed", "dsl")),
)
def test_only_typed_errors(
    smem: Any, tensor: Any, tile: Any, v_map: Any, mode: int, count: int | None, dialect: str
) -> None:
    try:
        [record] = partition(smem, tensor, tile, v_map, load_mode=mode, num_multicast=count, dialect=dialect)
    except CuteError:
        return
    assert record.body.instruction(0, record.body.num_multicast - 1).smem_offset >= 0
