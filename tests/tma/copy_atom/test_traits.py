"""What every copy through a tensor map has, so that lower layers know no class of an atom."""

from __future__ import annotations

import pytest

import cute_py as cute
from cute_py import Int, Layout, tma
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
