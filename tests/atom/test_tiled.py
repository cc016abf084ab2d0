"""Tiled operations: every element in one place, partitions of any layout, what is refused, speed."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout, Swizzle, elem_less, make_identity_tensor, make_tensor, size, static
from cute_py.atom import (
    MMA_ATOMS,
    copy_atom,
    make_cotiled_copy,
    make_fragment_like,
    make_tiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_C,
    make_tiled_copy_S,
    make_tiled_mma,
    mma_atom,
)
from cute_py.errors import InvalidTypeError, InvalidValueError, StaticAssertError
from tests.each import each_of
from tests.shares import one_in

MMA = "SM80_16x8x16_F32F16F16F32_TN"
VECTOR = copy_atom("UniversalCopy<uint128_t>", "half")


def coordinates(tensor: Any) -> list[tuple[int, ...]]:
    """Of a tensor of coordinates with two modes."""
    steps = cute.offsets(tensor.layout)
    steps = steps.reshape(-1, steps.shape[-1], order="F")
    return [tuple(c) for c in (steps + [int(x) for x in tensor(0)]).tolist()]


def random_tiled_mma(rng: random.Random) -> Any:
    """A few atoms over M, N, K in any order, tiles of whole atoms, now and then permuted."""
    atom = MMA_ATOMS[rng.choice([name for name, row in MMA_ATOMS.items() if row.family in ("sm75", "sm80", "sm90")])]
    extents = [rng.choice((1, 1, 2, 3, 4)) for _ in range(3)]
    strides, product = [0, 0, 0], 1
    for mode in rng.sample(range(3), 3):
        strides[mode] = product
        product *= extents[mode]
    layout = cute.static(Layout(tuple(extents), tuple(strides)))
    permutation = []
    for atoms, extent in zip(extents, atom.shape_mnk, strict=True):
        tile = atoms * int(extent) * 2
        halves = cute.static(Layout((tile // 2, 2), (2, 1)))
        permutation.append(rng.choice((None, Int(tile), halves)))
    return make_tiled_mma(atom, layout, tuple(permutation))


@pytest.mark.parametrize("seed", one_in(4, range(8)))
def test_threads_share_out_every_operand(seed: int) -> None:
    """Over M and N each element of C is in one thread, for each thread along K; A and B for each along the other."""
    mma = random_tiled_mma(random.Random(seed))
    tile = [int(e) for e in mma.tile_shape()]
    atoms = [int(e) for e in cute.shape(mma.thr_layout_vmnk)[1:]]
    for operand, (row, column, other) in {"A": (0, 2, 1), "B": (1, 2, 0), "C": (0, 1, 2)}.items():
        whole = make_identity_tensor((tile[row], tile[column]))
        held = [
            where for t in range(int(mma.size())) for where in coordinates(mma.get_slice(t).partition(operand, whole))
        ]
        spread = np.bincount(np.ravel_multi_index(np.array(held).T, (tile[row], tile[column])))
        once = int(cute.size(mma.atom.layouts[operand])) // int(cute.cosize(mma.atom.layouts[operand]))
        assert set(spread.tolist()) == {atoms[other] * once}


def test_a_partition_of_data_holds_what_its_coordinates_say() -> None:
    mma = make_tiled_mma(
        MMA, (2, 2, 1), (Int(32), Layout((Int(8), Int(2), Int(2)), (Int(1), Int(16), Int(8))), Int(16))
    )
    swizzled = cute.composition(Swizzle(3, 3, 3), Layout((64, 64), (64, 1)))
    data = np.arange(64 * 64, dtype=np.int32)
    stored = make_tensor(data, swizzled)
    at = make_identity_tensor((64, 64))
    for thread in (0, 5, 77, 127):
        part = mma.get_slice(thread).partition_A(stored)
        where = coordinates(mma.get_slice(thread).partition_A(at))
        assert [int(part(i)) for i in range(len(where))] == [int(data[swizzled(c)]) for c in where]


def test_a_tail_is_predicated_by_coordinates() -> None:
    """13 x 50 elements by tiles of 16 x 64: each element is copied by one thread, what lies outside by none."""
    copy = make_tiled_copy(VECTOR, Layout((Int(16), Int(8)), (Int(8), Int(1))), Layout((Int(1), Int(8))))
    inside = []
    for thread in range(128):
        part = copy.get_slice(thread).partition_S(make_identity_tensor((16, 64)))
        inside += [c for c in coordinates(part) if elem_less(c, (13, 50))]
    assert sorted(inside) == list(itertools.product(range(13), range(50)))


def test_tiles_that_do_not_divide_cover_the_extent() -> None:
    """Partitions round up, as C++: coordinates past the end are for the predicate."""
    mma = make_tiled_mma(MMA)
    part = mma.get_slice(0).partition_C(make_identity_tensor((17, 8)))
    assert str(part) == "ArithTuple(0,0) o ((_2,_2),2,1):((_1@1,_8@0),_16@0,_8@1)"
    assert mma.get_slice(0).partition_shape_C((17, 8)) == mma.partition_shape_C((17, 8)) == cute.shape(part.layout)
    assert coordinates(part)[4:] == [(16, 0), (16, 1), (24, 0), (24, 1)]


def test_retile_is_the_same_registers_for_the_copy() -> None:
    mma = make_tiled_mma(MMA, (2, 2, 1), (Int(32), Int(32), Int(16)))
    copy = make_tiled_copy_A(copy_atom("SM75_U32x4_LDSM_N", "half"), mma)
    thread = mma.get_slice(3)
    fragment = make_fragment_like(thread.partition_A(make_identity_tensor((32, 16))), "half")
    again = copy.get_slice(3).retile_D(fragment)
    assert str(fragment.layout) == "((_2,_2,_2),1,1):((_1,_2,_4),_8,8)"
    assert str(again.layout) == "((_8,_1),1,1):((_1,_0),_8,8)"


def test_a_copy_of_c_gives_each_thread_its_accumulators() -> None:
    mma = make_tiled_mma(MMA, (2, 2, 1), (Int(32), Int(32), Int(16)))
    copy = make_tiled_copy_C(copy_atom("UniversalCopy<float>", "float"), mma)
    at = make_identity_tensor((64, 64))
    for thread in (0, 31, 100):
        of_copy = coordinates(copy.get_slice(thread).partition_D(at))
        assert sorted(of_copy) == sorted(coordinates(mma.get_slice(thread).partition_C(at)))


def test_a_cotiled_copy_takes_what_is_contiguous() -> None:
    copy = make_cotiled_copy(VECTOR, Layout((Int(16), Int(8)), (Int(8), Int(1))), Layout((Int(8), Int(16))))
    assert str(copy.get_layoutS_TV()) == "(_16,(_8,_1)):(_8,(_1,_0))"
    same = make_tiled_copy_S(VECTOR, copy)
    assert (str(same.get_layoutS_TV()), same.tiler_mn) == (str(copy.get_layoutS_TV()), copy.tiler_mn)


@each_of(
    ("call", "error", "said"),
    [
        (lambda: make_tiled_mma(MMA, (2, 2, 1, 1)), StaticAssertError, "TiledMMA requires rank-3 AtomLayoutMNK"),
        (lambda: make_tiled_mma(MMA, None, (1, 2, 3, 4)), StaticAssertError, "TiledMMA requires rank-3 PermutationMNK"),
        (
            lambda: make_tiled_mma(MMA, None, Layout(4)),
            StaticAssertError,
            "TiledMMA requires independent permutations of MNK.",
        ),
        (
            lambda: make_tiled_mma(MMA, None, ("a",)),
            InvalidTypeError,
            "a permutation must be None, an extent or a layout, got",
        ),
        (lambda: make_tiled_mma("SM80_16x8x17"), InvalidValueError, "CuTe has no MMA operation named"),
        (
            lambda: make_tiled_mma(MMA).get_slice(32),
            InvalidValueError,
            "thread 32 does not exist; this tiled MMA has threads 0 to 31",
        ),
        (lambda: make_tiled_mma(MMA).get_slice(-1), InvalidValueError, "a thread index is -1; must be at least 0"),
        (lambda: make_tiled_mma(MMA).get_slice("a"), InvalidTypeError, "a thread index must be an integer"),
        (lambda: make_tiled_mma(MMA).partition_shape_C((16,)), StaticAssertError, "rank(tensor) >= Int<2>"),
        (
            lambda: make_tiled_copy(VECTOR, Layout((Int(16), Int(8))), Layout((Int(1), Int(4)))),
            StaticAssertError,
            "TiledCopy uses too few vals for selected CopyAtom\n  operation                : UniversalCopy<uint128_t>",
        ),
        (
            lambda: make_tiled_copy(VECTOR, Layout((Int(16), Int(8))), Layout((Int(1), Int(8)))).get_slice(128),
            InvalidValueError,
            "thread 128 does not exist; this tiled copy has threads 0 to 127",
        ),
        (
            lambda: make_tiled_copy("UniversalCopy<uint128_t>", Layout(Int(16)), Layout(Int(8))),
            InvalidTypeError,
            "a tiled copy needs an element type",
        ),
    ],
)
def test_what_cannot_be_tiled_is_refused(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert said in str(caught.value)


@pytest.mark.parametrize("seed", one_in(8, range(40)))
def test_even_shapes_by_the_direct_route(seed: int) -> None:
    """thrfrg of extents that everything divides, against the composition that C++ writes."""
    rng = random.Random(seed)
    direct = 0
    for _ in range(20):
        mma = random_tiled_mma(rng)
        for operand, modes in (("A", (0, 2)), ("B", (1, 2)), ("C", (0, 1))):
            extents = tuple(Int(int(mma.tile_size(mode)) * rng.choice((1, 2, 3))) for mode in modes)
            strides = rng.choice(((Int(1), Int(0)), (cute.E(0), cute.E(1)), (Int(7), 3 * cute.E(1)), (Int(64), Int(1))))
            layout = Layout(extents, strides)
            found = mma._thrfrg_of_even(operand, layout)
            direct += found is not None
            assert found is None or str(found) == str(mma._thrfrg_of_any(operand, layout))
            assert str(mma.thrfrg(operand, layout)) == str(mma._thrfrg_of_any(operand, layout))
    assert direct


def test_a_fragment_like_a_layout_of_no_mode_has_none() -> None:
    """CuTe C++ prints `():()` for `make_fragment_like(make_layout(make_shape()))`."""
    assert str(cute.make_fragment_like(cute.Layout(()))) == "():()"


@pytest.mark.parametrize("operand", ["A", "B", "C"])
@pytest.mark.parametrize("atoms", [(Int(2), Int(2), Int(1)), (2, 1, 2), (Int(1), Int(4), Int(1))])
def test_holders_are_the_inverse_of_the_layout_of_threads(operand: Any, atoms: Any) -> None:
    mma = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", atoms)
    known = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", static(atoms))
    layout = known.get_layout_TV(operand)
    first, second = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}[operand]
    rows, columns = int(known.tile_size(first)), int(known.tile_size(second))
    threads, values = int(size(layout[0])), int(size(layout[1]))
    want: dict[int, list[tuple[int, int]]] = {}
    for thread, value in itertools.product(range(threads), range(values)):
        want.setdefault(int(layout(thread, value)), []).append((thread, value))
    for row, column in ((0, 0), (rows - 1, columns - 1), (3, 5), (rows // 2, 1)):
        assert mma.holders(operand, row, column) == tuple(want[row + rows * column])
    with pytest.raises(InvalidValueError, match=f"row = {rows}"):
        mma.holders(operand, rows, 0)


def test_holders_of_no_operand() -> None:
    for one in (mma_atom("SM80_16x8x16_F32F16F16F32_TN"), make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")):
        with pytest.raises(InvalidValueError, match=r"^operand = 'D'; must be one of 'A', 'B', 'C'$"):
            one.holders("D", 0, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("atoms", [0, (0,), (1, 0), (2, (1, 0)), Layout((Int(0), Int(2)))])
def test_a_mode_has_at_least_one_atom(atoms: Any) -> None:
    with pytest.raises(InvalidValueError, match="the number of atoms along a mode is 0; must be at least 1"):
        make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", atoms)


@pytest.mark.parametrize(("permutation", "got"), [((0,), 0), ((-1, 2), -1), ((32, (8, 0)), 0)])
def test_a_permutation_has_elements(permutation: Any, got: int) -> None:
    with pytest.raises(InvalidValueError, match=f"an extent of a permutation is {got} elements; must be at least 1"):
        make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", (2, 2), permutation)


@pytest.mark.parametrize(("permutation", "multiple"), [((24,), 32), ((None, 8), 16), ((1, 1, 1), 32)])
def test_holders_need_a_tile_that_is_a_multiple_of_the_atoms(permutation: Any, multiple: int) -> None:
    """Otherwise a part of an atom is outside the tile, and its values would name other elements."""
    mma = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", (2, 2), permutation)
    with pytest.raises(InvalidValueError, match=f"must be a multiple of {multiple}, the elements of all atoms along"):
        mma.holders("C", 0, 0)
    assert make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", (2, 2), (64, 32, 16)).holders("C", 0, 0) == ((0, 0),)


@each_of(
    ("threads", "values", "tiler", "layout"),
    [
        (Layout((4, 8), (1, 0)), (1, 8), "(_4,_64)", "(_32,_8):(_1,_32)"),
        (Layout((16, 8), (0, 0)), (1, 8), "(_16,_64)", "(_128,_8):(_16,_2048)"),
        (4, Layout((1, 8), (0, 0)), "(_4,_8)", "(_4,_8):(_1,_4)"),
    ],
)
def test_threads_with_one_number_make_the_layout_of_cpp(threads: Any, values: Any, tiler: str, layout: str) -> None:
    """Printed by C++, which does not check that the numbers differ."""
    lines = str(make_tiled_copy(copy_atom("UniversalCopy<uint16_t>", "half_t"), threads, values)).splitlines()
    assert [line.split()[-1] for line in lines[1:3]] == [tiler, layout]


@each_of(
    ("threads", "values", "words"),
    [
        (0, (1, 8), "the layout of threads is _0:_1, which is empty; must have at least 1 element"),
        ((0, 4), (1, 8), "the layout of threads is (_0,_4):"),
        (4, 0, "the layout of values is _0:_1, which is empty"),
    ],
)
def test_a_tiled_copy_has_threads_and_values(threads: Any, values: Any, words: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        make_tiled_copy(VECTOR, threads, values)
    assert words in caught.value.headline


def test_no_thread_holds_an_operand_in_shared_memory() -> None:
    mma = make_tiled_mma("SM90_64x64x16_F32BF16BF16_SS", (Int(2), Int(1), Int(1)))
    with pytest.raises(InvalidValueError, match="A of SM90_64x64x16_F32BF16BF16_SS is in shared memory"):
        mma.holders("A", 0, 0)
    assert mma.holders("C", 64, 0) == ((128, 0),)


@pytest.mark.parametrize("underscore", [None, cute._])
def test_underscores_within_a_permutation(underscore: Any) -> None:
    """C++ takes them at any depth; the texts are C++'s."""
    mma = make_tiled_mma(MMA, Layout((Int(2), Int(2))), ((underscore, Int(2)), underscore))
    assert "PermutationMNK: ((_,_2),_,_)\n" in str(mma)
    assert str(cute.parse(str(mma))) == str(mma)
    layout = Layout(((Int(32), Int(4)), Int(32)))
    assert str(mma.thrfrg_A(layout)) == (
        "(((_4,_8),(_2,_1)),((_2,_2,_2),(_4,_2))):(((_256,_1),(_16,_0)),((_128,_8,_1024),(_32,_2048)))"
    )


@pytest.mark.parametrize(
    ("tiler", "said"),
    [
        ((None, Int(8)), "(_,_8)"),
        ((cute._, 8), "(_,_8)"),
        ((Int(8), (cute._, Layout(Int(2), Int(2)))), "(_8,(_,_2:_2))"),
    ],
)
def test_underscores_within_the_tiler_of_a_copy(tiler: Any, said: str) -> None:
    copy = cute.TiledCopy(copy_atom("UniversalCopy<float>", "float"), Layout((Int(4), Int(8))), tiler)
    assert f"  Tiler_MN:       {said}\n" in str(copy)
    assert str(cute.parse(str(copy))) == str(copy)


def test_an_underscore_keeps_a_mode_of_the_copied_tensor() -> None:
    copy = cute.TiledCopy(copy_atom("UniversalCopy<float>", "float"), Layout((Int(4), Int(8))), (cute._, Int(8)))
    found = copy.tidfrg_S(Layout(((Int(2), Int(4)), Int(16))))
    assert str(found) == "((_2,_2),(_1,_8),(_4,_2)):((_1,_8),(_0,_16),(_2,_64))"
