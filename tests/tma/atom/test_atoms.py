"""Atoms at their edges: pairs of CTAs, tensors of any size, tiles that hang over, wrong operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py.errors import GBasisError, InvalidTypeError, InvalidValueError, StaticAssertError, TmaLimitError
from tests.oracle import gbasis_rows


def atom(
    gmem: str,
    smem: str,
    tile: str,
    dtype: str = "half_t",
    internal: str | None = None,
    op: str = "SM90_TMA_LOAD",
    multicast: int = 1,
    **options: Any,
) -> Any:
    tensor = cute.make_tensor(cute.make_gmem_ptr(4096, dtype), gbasis_rows.layout(gmem))
    arch = "sm_100a" if op.startswith("SM100") else "sm_90a"
    shared, tiler = gbasis_rows.layout(smem), gbasis_rows.tiler(tile)
    return cute.tma.make_tma_atom(op, tensor, shared, tiler, multicast, internal, arch, **options)


PAIR = (
    "(1024,512):(512,_1)",
    "Sw<3,4,3> o smem_ptr[16b](unset) o ((_8,_16),(_64,_1)):((_64,_512),(_1,_0))",
    "(_128,_64)",
)


def test_tiled_copy_of_a_pair_of_ctas() -> None:
    """Texts as CuTe C++ prints them for SM100_TMA_2SM_LOAD_MULTICAST and 4 CTAs."""
    pair = atom(*PAIR, op="SM100_TMA_2SM_LOAD_MULTICAST", multicast=4)
    copy = pair.tiled_copy
    assert str(copy.layout_TV) == "(_4,(((_64,_128),_1))):(_32,(((_128,_1),_0)))"
    tile = cute.local_tile(pair.get_tma_tensor(), (Int(128), Int(64)), (Int(0), Int(0)))
    for cta, start in enumerate(("0", "32", "64", "96")):
        want = f"ArithTuple(_0,{start}) o (((_64,_128),_1),_1,_1):(((_1@0,_1@1),_0),_0,_0)"
        assert str(copy.get_slice(cta).partition_S(tile)) == want


def test_a_pair_of_ctas_must_share_the_tile() -> None:
    with pytest.raises(StaticAssertError, match="TiledCopy uses too few thrs for selected CopyAtom"):
        _ = atom(*PAIR, op="SM100_TMA_2SM_LOAD").tiled_copy


def test_explain_walks_no_tiles() -> None:
    """Half a billion tiles: the text takes no longer, and tells the last instruction."""
    text = atom("(4294967296,64):(64,_1)", "(_8,_64):(_64,_1)", "(_8,_64)", check=False).explain()
    assert "1 per tile and CTA, 536870912 tiles, 536870912 in all" in text
    assert "first at (0, 0), last at (0, 4294967288) (innermost first)" in text


def test_a_slot_between_two_elements() -> None:
    operands = ("(_128,256,128):(256,_1,32768)", "(_4,_8,_16):(_8,_1,_32)", "(_4,_8,_16)", "int2", "uint8")
    odd = atom(*operands, "SM90_TMA_LOAD_MULTICAST", 3, check=False)
    with pytest.raises(InvalidValueError, match="would start at coordinate _1/_2; must be a whole number of elements"):
        cute.tma.instructions(odd)
    assert "must be a whole number of elements" in odd.explain()


@pytest.mark.parametrize(("gmem", "tile"), [("(48,32):(_1,48)", "(_2,_1)"), ("(48):(_1)", "(_2)")])
def test_a_tile_of_one_element_of_the_internal_type(gmem: str, tile: str) -> None:
    smem = tile + (":(_1,_0)" if "," in tile else ":(_1)")
    with pytest.raises(
        GBasisError,
        match="the tile is a single element of the internal type, so its box moves along no mode of the tensor",
    ):
        atom(gmem, smem, tile, "half_t", "uint32_t")


def test_overhang_of_merged_modes() -> None:
    """Two modes of the tensor in one mode of the map: their ends are not both tested."""
    merged = atom("(_2,128,1,_2):(_128,_1,384,_384)", "(_3,_128,_1,_2):(_128,_1,_384,_384)", "(_3,_128,_1,_2)", "uint8")
    assert str(merged.gbasis) == "(_128,(_3,_2),_1):(_1@1,(_1@0,_1@3),_1@2)"
    reason = "a tile reaches 3 elements along layout mode 0 of 2, which shares TMA mode 1 with other modes"
    assert merged.why_not().startswith(reason)
    assert reason in merged.explain()
    whole = atom("(_3,128,1,_2):(_128,_1,384,_384)", "(_3,_128,_1,_2):(_128,_1,_384,_384)", "(_3,_128,_1,_2)", "uint8")
    assert whole.why_not() is None


def test_overhang_of_a_static_mode_of_size_1() -> None:
    operands = ("(_128,_2):(_1,_128)", "(_128,_2)", "uint8", None, "SM90_TMA_LOAD_MULTICAST", 2)
    assert atom("(128,_1):(_1,256)", *operands).why_not() == (
        "a tile reaches 2 elements along layout mode 1, which has the static size 1: coordinates never move "
        "along it, so instructions beyond its end read the first row again"
    )
    assert atom("(128,1):(_1,256)", *operands).why_not() is None
    assert atom("(128,_1):(_1,256)", *operands[:3]).why_not() is None


SIX = "(64,32,16,8,4,4):(_1,64,2048,32768,262144,1048576)"


def copied(load: Any, shape: tuple[int, ...], strides: tuple[int, ...], tile: tuple[int, ...], number: int) -> bool:
    """Does the tile arrive as the tensor has it?"""
    memory = np.random.default_rng(number).integers(0, 1 << 16, shape[-1] * strides[-1], np.uint16)
    array = np.lib.stride_tricks.as_strided(memory, shape, [2 * d for d in strides])
    image = cute.tma.execute(load, array, number).smem.view(np.uint16)
    corner = cute.idx2crd(number, tuple(n // t for n, t in zip(shape, tile, strict=True)))
    part = array[tuple(slice(int(c) * t, int(c) * t + t) for c, t in zip(corner, tile, strict=True))]
    places = np.array([int(load.tile(tuple(at))) for at in np.ndindex(*tile)])
    return bool((image[places] == part.reshape(-1)).all())


def test_a_box_over_collapsed_modes() -> None:
    """Modes 4 and 5 of the tensor share mode 4 of the map: a part of both is no run of steps along it."""
    shape, strides = (64, 32, 16, 8, 4, 4), (1, 64, 2048, 32768, 262144, 1048576)
    tile = (64, 2, 2, 2, 2, 2)
    operands = (SIX, "(_64,_2,_2,_2,_2,_2):(_1,_64,_128,_256,_512,_1024)", "(_64,_2,_2,_2,_2,_2)", "uint16")
    with pytest.raises(TmaLimitError) as refusal:
        atom(*operands)
    assert str(refusal.value).splitlines()[0] == (
        "boxDim[4] = 4 steps of 262144 elements; must be the tile's (2,2) elements with strides "
        "(262144,1048576), which do not form such a run"
    )
    assert "split_oversize=True" in str(refusal.value)
    assert atom(*operands, check=False).plan.box == (64, 2, 2, 2, 4)
    split = atom(*operands, split_oversize=True)
    assert (split.plan.box, split.instructions) == ((64, 2, 2, 2, 2), 2)
    assert copied(split, shape, strides, tile, 33)


def test_a_whole_collapsed_mode_is_a_run() -> None:
    shape, strides = (64, 32, 16, 8, 4, 4), (1, 64, 2048, 32768, 262144, 1048576)
    tile = (64, 2, 1, 1, 4, 2)
    smem = "(_64,_2,_1,_1,_4,_2):(_1,_64,_0,_0,_128,_512)"
    assert copied(atom(SIX, smem, "(_64,_2,_1,_1,_4,_2)", "uint16"), shape, strides, tile, 33)
    tall, place = "(_64,_2,_2,_2,_4,_2)", "(_1,_64,_128,_256,_512,_2048)"
    whole = atom(SIX, f"{tall}:{place}", tall, "uint16")
    assert str(whole.gbasis) == "(_64,_2,_2,_2,(_4,_2)):(_1@0,_1@1,_1@2,_1@3,(_1@4,_1@5))"
    assert copied(whole, shape, strides, (64, 2, 2, 2, 4, 2), 9)


@pytest.mark.parametrize(
    ("mask", "error", "words"),
    [
        (1 << 16, InvalidValueError, "the multicast mask is 65536; must be 0 to 65535"),
        (-1, InvalidValueError, "the multicast mask is -1; must be 0 to 65535"),
        (2.5, InvalidTypeError, "the multicast mask must be an integer, got float 2.5"),
        ("3", InvalidTypeError, "the multicast mask must be an integer, got str '3'"),
    ],
)
def test_masks_refused(mask: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        atom(*PAIR, op="SM90_TMA_LOAD_MULTICAST", multicast=2).with_(0, mask)


def test_partition_operands_refused() -> None:
    load = atom(*PAIR)
    tiles = cute.zipped_divide(load.get_tma_tensor(), (Int(128), Int(64)))
    shared = cute.make_tensor(cute.make_smem_ptr(0, "half_t"), Layout((Int(128), Int(64)), LayoutRight))
    one = Layout(Int(1))
    with pytest.raises(
        InvalidTypeError, match="cta_layout must be a layout that numbers the CTAs of a multicast, got None"
    ):
        cute.tma.tma_partition(load, 0, None, shared, tiles)
    with pytest.raises(InvalidTypeError, match="the coordinate of one CTA can't contain `_`, got None"):
        cute.tma.tma_partition(load, None, one, shared, tiles)
    with pytest.raises(InvalidTypeError, match="tma_partition takes tensors, but gtensor is a Layout"):
        cute.tma.tma_partition(load, 0, one, shared, one)
    with pytest.raises(StaticAssertError, match="size<0>"):
        cute.tma.tma_partition(load, 0, one, shared, tiles)
    shared = cute.group_modes(shared, 0, 2)
    cute.tma.tma_partition(load, 0, one, shared, tiles)
    # C++: ‘value’ is not a member of ‘bool’, of CUTE_STATIC_ASSERT_V(size<0>(stensor) == size<0>(gtensor))
    run_time = cute.zipped_divide(load.get_tma_tensor(), (128, Int(64)))
    with pytest.raises(StaticAssertError, match=r"(?s)size<0>\(stensor\) == size<0>\(gtensor\).*sizes must be static"):
        cute.tma.tma_partition(load, 0, one, shared, run_time)
