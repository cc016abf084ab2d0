"""Operands as types of an MLIR dump."""

from __future__ import annotations

from typing import Any

import pytest

import cute_py as cute
from cute_py import ComposedLayout, E, Int, Layout, Swizzle
from cute_py.tma.dialect.mlir_text import layout_text, tile_text, type_text
from tests.each import each_of
from tests.tma.dialect.partition_operands import COMPOSED_GMEM, NOT_A_SWIZZLE, SMEM, gmem, ints

TEXTS: list[tuple[Any, str, str]] = [
    (SMEM, '!cute.layout<"(128,64):(64,1)">', '!cute.layout<"(128,64):(64,1)">'),
    (Layout((64, Int(32)), (Int(32), Int(1))), '!cute.layout<"(64,32):(32,1)">', '!cute.layout<"(?,32):(32,1)">'),
    (Layout(Int(8), 2), '!cute.layout<"8:2">', '!cute.layout<"8:?">'),
    (Layout(((4, 2), 8), ((1, 4), 8)), '!cute.layout<"((4,2),8):((1,4),8)">', '!cute.layout<"((?,?),?):((?,?),?)">'),
    (Layout(ints(4, 2), (E(0, 1), 3 * E(1))), '!cute.layout<"(4,2):(1@1@0,3@1)">', '!cute.layout<"(4,2):(1@1@0,?@1)">'),
    (COMPOSED_GMEM, '!cute.composed_layout<"S<3,4,3> o 0 o (1024,512):(512,1)">', ""),
    (NOT_A_SWIZZLE, '!cute.composed_layout<"(8192):(1) o 0 o (128,64):(64,1)">', ""),
    (Swizzle(2, 4, 3), '!cute.swizzle<"S<2,4,3>">', ""),
    (gmem(), '!cute.layout<"(1024,512):(512,1)">', '!cute.layout<"(?,?):(?,1)">'),
    (
        cute.make_identity_tensor(ints(1024, 256)),
        '!cute.coord_tensor<"(0,0)", "(1024,256):(1@0,1@1)">',
        '!cute.coord_tensor<"(0,0)", "(1024,256):(1@0,1@1)">',
    ),
    (ints(128, 64), '!cute.shape<"(128,64)">', '!cute.shape<"(128,64)">'),
    (Int(8), '!cute.shape<"8">', ""),
    (cute.make_smem_ptr(0, "float16"), "!cute.ptr<float16, smem>", ""),
    (None, "None", ""),
    ("text", "'text'", ""),
    (object(), "a Python object", ""),
]


@each_of(("value", "known", "unknown"), TEXTS, ids=[t[1] for t in TEXTS])
def test_types(value: Any, known: str, unknown: str) -> None:
    """In quotes as CuTe DSL prints them; the reference page has none, and a comma between shape and stride."""
    assert type_text(value, quoted=True) == known
    if unknown:
        assert type_text(value, known=False, quoted=True) == unknown


PAGE = [
    (SMEM, "!cute.layout<(128,64),(64,1)>"),
    (Layout(((4, 2), 8), ((1, 4), 8)), "!cute.layout<((4,2),8),((1,4),8)>"),
    (COMPOSED_GMEM, "!cute.composed_layout<S<3,4,3> o 0 o (1024,512):(512,1)>"),
    (Swizzle(2, 4, 3), "!cute.swizzle<S<2,4,3>>"),
    (gmem(), "!cute.layout<(1024,512),(512,1)>"),
    (cute.make_identity_tensor(ints(1024, 256)), "!cute.coord_tensor<(0,0),(1024,256),(1@0,1@1)>"),
    (ints(128, 64), "!cute.shape<(128,64)>"),
    (cute.make_smem_ptr(0, "float16"), "!cute.ptr<float16, smem>"),
]


@pytest.mark.parametrize(("value", "text"), PAGE, ids=[text for _, text in PAGE])
def test_types_of_the_reference_page(value: Any, text: str) -> None:
    assert type_text(value) == text


def test_symbols_are_not_known() -> None:
    sympy = pytest.importorskip("sympy")
    m = sympy.Symbol("m", integer=True, positive=True)
    assert type_text(Layout((m, 8), (8, 1))) == "!cute.layout<(?,8),(8,1)>"


def test_tiles() -> None:
    assert tile_text(ints(128, 64)) == "!cute.tile<[128:1;64:1]>"
    assert tile_text((Int(128), Layout(Int(4), Int(2)))) == "!cute.tile<[128:1;4:2]>"
    assert tile_text(Int(8), quoted=True) == '!cute.tile<"[8:1]">'
    assert type_text((Layout(Int(4), Int(2)),)) == "!cute.tile<[4:2]>"


def test_flagged_offsets() -> None:
    flagged = ComposedLayout(Swizzle(3, 4, 3), cute.smem_ptr_flag(16), SMEM)
    assert layout_text(flagged) == "S<3,4,3> o 0 o (128,64):(64,1)"
