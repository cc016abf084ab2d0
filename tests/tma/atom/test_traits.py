"""What every copy through a tensor map has, so that lower layers know no class of an atom."""

from __future__ import annotations

import pytest

import cute_py as cute
from cute_py import Int, Layout, tma
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.tma.descriptor.request import KINDS, OpRow, TmaCopyTraits


def tiled() -> TmaCopyTraits:
    x = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), Layout((1024, 512), (512, Int(1))))
    return tma.make_tma_copy("SM90_TMA_STORE", x, tma.make_smem_layout("K", "128B", "float16", (128, 64)))


def im2col() -> TmaCopyTraits:
    layout = Layout(((16, 16, 16, 4), 64), ((64, 1024, 16384, 262144), Int(1)))
    x = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), layout)
    return tma.make_im2col_tma_copy("SM90_TMA_LOAD_IM2COL", x, tma.make_smem_layout("K", "128B", "float16", (64, 64)))


@pytest.mark.parametrize(("make", "mode"), [(tiled, "tile"), (im2col, "im2col")])
def test_an_atom_has_request_descriptor_and_instruction(make: object, mode: str) -> None:
    assert callable(make)
    copy = make()
    assert type(copy.request) in KINDS.values()
    assert copy.descriptor == tma.encode(copy.request)
    assert isinstance(copy.instruction, OpRow) and copy.instruction.mode == mode


def test_the_edges_of_a_binding() -> None:
    """A cache hint has 64 bits, a mask of a multicast 16, and both begin at 0."""
    x = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), Layout((64, 64), (64, Int(1))))
    tile = Layout((Int(32), Int(32)), cute.LayoutRight)
    shared = tma.make_tma_copy("SM90_TMA_LOAD_MULTICAST", x, tile, num_multicast=2)
    for hint in (None, 0, (1 << 64) - 1):
        assert shared.with_(0, 3, hint).cache_hint == hint
    for hint in (-1, 1 << 64):
        with pytest.raises(InvalidValueError, match=r"the cache hint is .*; must be 0 to 18446744073709551615"):
            shared.with_(0, 3, hint)
    for mask in (0, (1 << 16) - 1):
        assert shared.with_(0, mask).multicast_mask == mask
    for mask in (-1, 1 << 16):
        with pytest.raises(InvalidValueError, match=r"the multicast mask is .*; must be 0 to 65535"):
            shared.with_(0, mask)
    with pytest.raises(InvalidTypeError, match="the cache hint must be an integer"):
        shared.with_(0, 3, "hot")  # type: ignore[arg-type]
    alone = tma.make_tma_copy("SM90_TMA_LOAD", x, tile)
    assert alone.with_(7).barrier == 7
    with pytest.raises(InvalidValueError, match="SM90_TMA_LOAD does not multicast, so it takes no mask, got 0x1"):
        alone.with_(7, 1)
