"""The words of atoms that cannot be: rule, value, unit, layout mode, CuTe's condition, and a fix where one is sure."""

from __future__ import annotations

from typing import Any

import pytest

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py.errors import CuteError, GBasisError, StaticAssertError, TmaLimitError


def gmem(shape: Any, stride: Any, dtype: str = "float16", address: int = 4096) -> Any:
    return cute.make_tensor(cute.make_gmem_ptr(address, dtype), Layout(shape, stride))


def refusal(*arguments: Any, **options: Any) -> CuteError:
    with pytest.raises(CuteError) as caught:
        cute.tma.make_tma_atom("SM90_TMA_LOAD", *arguments, **options)
    return caught.value


TILE = (Int(64), Int(32))


def test_stride_that_is_no_multiple_of_16_bytes() -> None:
    error = refusal(gmem((1024, 12), (12, Int(1))), Layout((Int(64), Int(8)), LayoutRight), (Int(64), Int(8)))
    assert isinstance(error, TmaLimitError)
    assert str(error).splitlines()[0] == "globalStrides[0] = 24 bytes; must be a multiple of 16"
    assert "  mode         : TMA mode 1 (layout mode 0: 1024 elements, stride 12)" in str(error)
    assert str(error.hint).startswith("pad the row to 16 elements")


def test_majorness() -> None:
    error = refusal(gmem((1024, 256), (256, 2)), Layout(TILE, LayoutRight), TILE)
    assert str(error).startswith(
        "Majorness of smem doesn't match majorness of gmem: TMA mode 0 has stride 2 elements; must be 1"
    )


def test_several_rules_are_told_together() -> None:
    error = refusal(gmem((1024, 500), (500, Int(1)), address=8), Layout((Int(2), Int(512)), LayoutRight))
    assert isinstance(error, TmaLimitError)
    assert "the tensor map breaks" in error.headline
    text = str(error)
    for words in ("globalAddress = 0x8;", "globalStrides[0] = 1000 bytes", "boxDim[0] = 512 elements"):
        assert words in text
    assert len(error.violations) >= 3


def test_multicast_beyond_the_box_is_refused_where_cpp_crashes() -> None:
    error = refusal(gmem((64,), (Int(1),), "uint32"), Layout((Int(4),)), (Int(4),), num_multicast=8)
    assert "num_multicast = 8 CTAs; must be at most the 4 elements of the box" in str(error)


def test_sizes_differ() -> None:
    error = refusal(gmem((1024, 256), (256, Int(1))), Layout((Int(64), Int(16)), LayoutRight), TILE)
    assert isinstance(error, GBasisError)
    assert error.condition == "TMA requires CTA_Tile and SLayout top-level size equivalence."
    assert "shared layout : (_64,_16):(_16,_1), size _1024" in str(error)


def test_no_common_vectorization() -> None:
    error = refusal(gmem((1024, 256), (256, Int(1))), Layout(TILE, (Int(64), Int(2))), TILE)
    assert isinstance(error, GBasisError)
    assert error.headline.startswith("Could not find a common tile-gmem vectorization.")


def test_unknown_format_says_what_moves_the_same_bits() -> None:
    error = refusal(gmem((1024, 256), (256, Int(1)), "int16"), Layout(TILE, LayoutRight), TILE)
    assert isinstance(error, StaticAssertError)
    assert error.condition == "Unknown TMA Format!"
    assert error.hint == "internal_dtype='uint16' moves the same bits"


def test_swizzle_that_tma_has_not() -> None:
    smem = cute.ComposedLayout(cute.Swizzle(3, 3, 3), cute.smem_ptr_flag(16), Layout(TILE, LayoutRight))
    error = refusal(gmem((1024, 256), (256, Int(1))), smem, TILE)
    assert error.headline == "Unsupported layout swizzle."


def test_shared_memory_and_coordinates_are_no_global_tensors() -> None:
    shared = cute.make_tensor(cute.make_smem_ptr(0, "float16"), Layout((1024, 256)))
    assert "global memory" in str(refusal(shared, Layout(TILE), TILE))
    assert "global memory" in str(refusal(cute.make_identity_tensor((64, 32)), Layout(TILE), TILE))


def test_operation_not_on_this_architecture() -> None:
    with pytest.raises(CuteError, match="SM100_TMA_2SM_LOAD needs sm_100 or newer, not sm_90a"):
        tensor, tile = gmem((1024, 256), (256, Int(1))), Layout(TILE, LayoutRight)
        cute.tma.make_tma_atom("SM100_TMA_2SM_LOAD", tensor, tile, TILE, arch="sm_90a")
    with pytest.raises(CuteError, match="unknown TMA operation 'SM90_TMA_TELEPORT'"):
        cute.tma.make_tma_atom("SM90_TMA_TELEPORT", gmem((1024, 256), (256, Int(1))), Layout(TILE), TILE)


def test_check_false_gives_the_atom() -> None:
    atom = cute.tma.make_tma_atom(
        "SM90_TMA_LOAD", gmem((1024, 12), (12, Int(1))), Layout((Int(64), Int(8)), LayoutRight), check=False
    )
    assert str(atom.gbasis) == "(_8,_64):(_1@1,_1@0)"
    with pytest.raises(TmaLimitError):
        _ = atom.descriptor


def test_element_swizzle_says_its_byte_equivalent() -> None:
    smem = cute.composition(cute.Swizzle(3, 4, 3), Layout((Int(64), Int(64)), LayoutRight))
    atom = cute.tma.make_tma_atom("SM90_TMA_LOAD", gmem((1024, 256), (256, Int(1))), smem)
    assert int(atom.request.swizzle) == 3
    assert "Sw<3,4,3> on bytes is Sw<3,3,3> on elements" in str(atom.why_not())
