"""An im2col atom has what a tiled atom has."""

from __future__ import annotations

from dataclasses import replace

import numpy
import pytest
import sympy

import cute_py as cute
from cute_py import Int, Layout
from cute_py.errors import InvalidTypeError, InvalidValueError, StaticAssertError, TmaLimitError

GMEM = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), Layout(((16, 16, 2), 64), ((64, 1024, 16384), Int(1))))
SMEM = cute.tma.make_smem_layout("K", "128B", "float16", (128, 64))


def atom(op: str = "SM90_TMA_LOAD_IM2COL", count: int = 1) -> cute.tma.Im2colAtom:
    return cute.tma.make_im2col_tma_copy(op, GMEM, SMEM, (Int(128), Int(64)), count, (-1, -1), (-1, -1), (1, 1), (1, 1))


def test_the_basis_and_its_stages() -> None:
    made = atom()
    assert str(made.gbasis.layout) == "(_64,_128):(_1@1,_1@0)"
    assert [name for name, _, _ in made.gbasis.trace.steps()] == [
        "cta_v_map",
        "inv_smem_layout",
        "sidx2gmode_full",
        "tma_gbasis",
    ]
    assert str(made.gbasis.trace.cta_v_map) == "(_128,_64):(_1@0,_1@1)"
    assert cute.congruent(made.g_stride, made.get_tma_tensor().layout.outer.layout.shape)


def test_binding() -> None:
    made = atom("SM90_TMA_LOAD_IM2COL_MULTICAST", 2)
    assert made.num_multicast == 2
    bound = made.with_(0, numpy.uint16(3), cache_hint=5)
    assert (bound.atom, bound.multicast_mask, bound.cache_hint) == (made, 3, 5)
    with pytest.raises(InvalidValueError, match="does not multicast"):
        atom().with_(0, 3)
    with pytest.raises(InvalidTypeError, match="the multicast mask must be an integer"):
        made.with_(0, "3")


def test_a_window_of_lists() -> None:
    corners: list[list[int]] = [[-1, -1], [-1, -1], [1, 1], [1, 1]]
    made = cute.tma.make_im2col_tma_copy("SM90_TMA_LOAD_IM2COL", GMEM, SMEM, (Int(128), Int(64)), 1, *corners)
    assert made.request == atom().request


def test_words() -> None:
    told = atom().explain()
    for words in (
        "SM90_TMA_LOAD_IM2COL: load of a tile of patches, sm_90a",
        "lower_corner   (-1, -1)",
        "mode 3: 2 elements, 32768 bytes apart, traversal stride 1",
        "one instruction: 64 channels of 128 pixels",
        "a CTA's barrier expects 16384 bytes per tile",
    ):
        assert words in told, words
    assert atom().why_not() is None


def test_lowering_names_the_offsets() -> None:
    text = cute.tma.lower(atom()).ptx
    assert "cp.async.bulk.tensor.4d.shared::cluster.global.im2col" in text
    assert "{%h_off_w, %h_off_h}; // im2col offsets" in text


def test_reprs_are_one_line() -> None:
    made = atom()
    assert repr(made) == f"<{made}>"
    assert str(made).endswith("box (64, 128) of float16, 1 instruction, 16384 bytes per tile")
    assert repr(made.plan) == "<im2col plan: 64 channels of 128 pixels of a tensor (64, 16, 16, 2)>"
    assert repr(made.gbasis) == "Im2colBasis(layout=Layout((Int(64), Int(128)), (E(1), E(0))))"
    coordinates = made.get_tma_tensor().layout.outer
    assert repr(coordinates) == f"<GEMM coordinates {coordinates}>"
    assert str(coordinates) == str(coordinates.layout)


def test_the_coordinates_are_a_function_of_arithmetic_tuples_too() -> None:
    coordinates = atom().get_tma_tensor().layout.outer
    assert coordinates(cute.ArithTuple(1, 2)) == coordinates.layout((1, 2)) == coordinates((1, 2))


def test_the_check_can_be_left_out() -> None:
    """A broken rule is refused, or the atom is made all the same."""
    gmem = cute.make_tensor(cute.make_gmem_ptr(8, "float16"), GMEM.layout)
    operands = ("SM90_TMA_LOAD_IM2COL", gmem, SMEM, (Int(128), Int(64)))
    with pytest.raises(TmaLimitError, match="globalAddress = 0x8; must be a multiple of 16"):
        cute.tma.make_im2col_tma_copy(*operands)
    made = cute.tma.make_im2col_tma_copy(*operands, check=False)
    assert [found.rule for found in cute.tma.violations(made.request)] == ["address_alignment"]
    assert made.request.global_address == 8
    with pytest.raises(InvalidTypeError, match="check must be a bool, got int 0"):
        cute.tma.make_im2col_tma_copy(*operands, check=0)  # type: ignore[arg-type]


def test_several_broken_rules_are_listed_together() -> None:
    gmem = cute.make_tensor(cute.make_gmem_ptr(8, "float16"), Layout(((16, 16, 2), 64), ((68, 1088, 17408), Int(1))))
    with pytest.raises(TmaLimitError) as caught:
        cute.tma.make_im2col_tma_copy("SM90_TMA_LOAD_IM2COL", gmem, SMEM, (Int(128), Int(64)))
    rules = [found.rule for found in caught.value.violations]
    assert rules == ["address_alignment", "stride_alignment"]
    assert str(caught.value).splitlines()[0] == "the im2col tensor map breaks 2 rules"


@pytest.mark.parametrize(
    ("low", "high", "traps"), (((0, 0), (0, 0), False), ((-1, 0), (0, 0), True), ((0, 0), (0, 1), True))
)
def test_a_store_says_which_windows_trap(low: tuple[int, int], high: tuple[int, int], traps: bool) -> None:
    window = {"lower_corner_whd": low, "upper_corner_whd": high}
    load = cute.tma.make_im2col_tma_copy("SM90_TMA_LOAD_IM2COL", GMEM, SMEM, (Int(128), Int(64)), 1, **window)
    store = cute.tma.make_im2col_tma_copy("SM90_TMA_STORE_IM2COL", GMEM, SMEM, (Int(128), Int(64)), 1, **window)
    text = "an im2col store traps with a lower corner below 0 or an upper corner above 0"
    assert (load.check(), [str(found) for found in store.check()]) == ([], [text] if traps else [])


def test_the_instructions_of_a_tile_of_unknown_size_are_refused() -> None:
    unknown = replace(atom(), smem_layout=Layout(sympy.Symbol("M", integer=True, positive=True)))
    with pytest.raises(StaticAssertError, match="must be a number"):
        _ = unknown.instructions
