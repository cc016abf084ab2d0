"""Bank conflicts and sectors of a tiled copy: the swizzle is why ldmatrix has none."""

from __future__ import annotations

from typing import Any

import pytest

import cute_py as cute
from cute_py import Int, Layout, Swizzle
from cute_py.atom import copy_atom, make_tiled_copy, make_tiled_copy_A, make_tiled_mma

PLAIN = Layout((Int(64), Int(64)), (Int(64), Int(1)))
SWIZZLED = cute.composition(Swizzle(3, 3, 3), PLAIN)


@pytest.mark.parametrize(("tile", "ways"), [(PLAIN, 8), (SWIZZLED, 1)], ids=str)
def test_ldmatrix_of_a_tiled_mma(tile: Any, ways: int) -> None:
    mma = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", (2, 2, 1), (Int(32), Int(32), Int(16)))
    copy = make_tiled_copy_A(copy_atom("SM75_U32x4_LDSM_N", "half"), mma)
    found = cute.bank_conflicts(tile, "half", access=copy)
    assert (found.ways, found.vector_bits) == (ways, 128)
    assert len(found.wavefronts) == 2 * 64 * 64 * 2 // (8 * 16)  # two rows of atoms along N read all of A


def test_a_tiled_copy_of_rows() -> None:
    copy = make_tiled_copy(
        copy_atom("UniversalCopy<uint128_t>", "half"),
        Layout((Int(16), Int(8)), (Int(8), Int(1))),
        Layout((Int(1), Int(8))),
    )
    assert cute.coalescing(PLAIN, "half", access=copy).efficiency == 1
    assert cute.bank_conflicts(PLAIN, "half", access=copy).ways == 1
    turned = Layout((Int(64), Int(64)), (Int(1), Int(64)))
    assert cute.coalescing(turned, "half", access=copy).efficiency < 0.6
