"""The twelve texts of the partition verifier, byte for byte, the worked rejections, and the dialect's other texts."""

from __future__ import annotations

from typing import Any

import pytest

import cute_py as cute
from cute_py import ComposedLayout, E, Int, Layout, LayoutRight, Swizzle, tmem
from cute_py.errors import TmaBuildError, TmaVerifyError
from cute_py.tma.dialect.descriptor_update import TmaUpdate, apply_update
from cute_py.tma.dialect.diagnostics import TEXTS
from cute_py.tma.dialect.exec_atom import non_exec_tiled_tma_load, tma_descriptor_tiled
from cute_py.tma.dialect.record import TmaFlags, TmaPartitionResult
from cute_py.tma.dialect.verifier import STEPS, partition
from cute_py.tma.dialect.verifier_operands import COMPANION_TEXT
from tests.each import each_of
from tests.tma.dialect.partition_operands import (
    COMPOSED_GMEM,
    NOT_A_SWIZZLE,
    SIX,
    SIX_STRIDES,
    SMEM,
    TILE,
    Operands,
    gmem,
    ints,
)

TWELVE = [
    "invalid operand types, got ",
    "invalid smem layout type, expected LayoutType or ComposedLayoutType, got ",
    "unsupported layout for the GMEM tensor, got ",
    "expected the GMEM and SMEM layouts to have integer stride elements, but got ",
    "expected the SMEM layout to be a swizzle layout, but got ",
    "expected the SMEM layout and the CTA V-map to be static, but got ",
    "expected top-level shape equivalence between the SMEM layout and the CTA V-map, but got ",
    "failed to compute the TMA G-basis, got ",
    "Computed TMA layout is invalid, got ",
    "Failed to construct the TMA tensor type",
    "missing or invalid num_multicast for a multicast TMA load",
    "got num_multicast of ",
]


def test_the_twelve_texts() -> None:
    assert [*(step.text for step in STEPS), COMPANION_TEXT] == TWELVE


def text_of(operands: Operands, **options: Any) -> tuple[int, str]:
    with pytest.raises(TmaVerifyError) as refusal:
        operands.partition(**options)
    return refusal.value.step, refusal.value.headline


V_MAP = "!cute.layout<(128,64),(1@0,1@1)>"
SMEM_TYPE = "!cute.layout<(128,64),(64,1)>"
GMEM_TYPE = "!cute.layout<(1024,512),(512,1)>"
TURNED = Layout(ints(64, 128), LayoutRight)

WHOLE: list[tuple[int, Operands, str]] = [
    (
        1,
        Operands(gmem=cute.make_identity_tensor((1024, 512))),
        f"{TWELVE[0]}{SMEM_TYPE}, !cute.coord_tensor<(0,0),(1024,512),(1@0,1@1)>, and {V_MAP}",
    ),
    (1, Operands(gmem=None), f"{TWELVE[0]}{SMEM_TYPE}, None, and !cute.tile<[128:1;64:1]>"),
    (2, Operands(smem=ints(128, 64)), TWELVE[1] + "!cute.shape<(128,64)>"),
    (2, Operands(smem=Swizzle(3, 4, 3)), TWELVE[1] + "!cute.swizzle<S<3,4,3>>"),
    (
        3,
        Operands(gmem=cute.make_tensor(cute.make_gmem_ptr(0, "float16"), COMPOSED_GMEM)),
        TWELVE[2] + "!cute.composed_layout<S<3,4,3> o 0 o (1024,512):(512,1)>",
    ),
    (
        4,
        Operands(smem=Layout(ints(128, 64), (E(0), E(1)))),
        f"{TWELVE[3]}{GMEM_TYPE}, and !cute.layout<(128,64),(1@0,1@1)>",
    ),
    (5, Operands(smem=NOT_A_SWIZZLE), TWELVE[4] + "!cute.composed_layout<(8192):(1) o 0 o (128,64):(64,1)>"),
    (
        5,
        Operands(smem=ComposedLayout(Swizzle(3, 5, 3), Int(0), SMEM)),
        TWELVE[4] + "!cute.composed_layout<S<3,5,3> o 0 o (128,64):(64,1)>",
    ),
    (6, Operands(smem=Layout((128, Int(64)), (Int(64), Int(1)))), f"{TWELVE[5]}{SMEM_TYPE}, and {V_MAP}"),
    (7, Operands(smem=TURNED), f"{TWELVE[6]}!cute.layout<(64,128),(128,1)>, and {V_MAP}"),
    (
        8,
        Operands(smem=Layout(ints(128, 64), ints(128, 2))),
        f"{TWELVE[7]}!cute.layout<(128,64),(128,2)>, {GMEM_TYPE}, and {V_MAP}",
    ),
    (
        9,
        Operands(smem=Layout(ints(8, 512), LayoutRight), tile=(8, 512)),
        TWELVE[8] + "!cute.layout<(512,8),(1@1,1@0)>",
    ),
    (
        9,
        Operands(options={"load_mode": "W_MULTICAST", "num_multicast": 3}),
        TWELVE[8] + "!cute.layout<(64,128),(1@1,1@0)>",
    ),
    (11, Operands(options={"load_mode": "W_MULTICAST", "num_multicast": 0}), TWELVE[10]),
    (11, Operands(options={"load_mode": "W128_MULTICAST", "num_multicast": None}), TWELVE[10]),
    (11, Operands(options={"num_multicast": 2}), "got num_multicast of 2"),
    (11, Operands(options={"load_mode": "TWO_CTA", "num_multicast": 4}), "got num_multicast of 4"),
]


@each_of(("step", "operands", "text"), WHOLE)
def test_whole_texts(step: int, operands: Operands, text: str) -> None:
    assert text_of(operands) == (step, text)


def test_the_rank_6_rejection() -> None:
    """All three operands, shared layout first."""
    tile = (8, 2, 2, 2, 2, 2)
    assert text_of(Operands(smem=Layout(ints(*tile)), gmem=gmem(SIX, SIX_STRIDES), tile=tile)) == (
        1,
        "invalid operand types, got !cute.layout<(8,2,2,2,2,2),(1,8,16,32,64,128)>, "
        "!cute.layout<(64,32,16,8,4,2),(1,64,2048,32768,262144,1048576)>, "
        "and !cute.layout<(8,2,2,2,2,2),(1@0,1@1,1@2,1@3,1@4,1@5)>",
    )


def test_the_stride_rejection() -> None:
    """A row of 1028 bytes: the global layout first, then the shared one."""
    assert text_of(Operands(gmem=gmem((1024, 512), (514, Int(1))))) == (
        4,
        "expected the GMEM and SMEM layouts to have integer stride elements, but got "
        "!cute.layout<(1024,512),(514,1)>, and !cute.layout<(128,64),(64,1)>",
    )


SMALL = Layout(ints(64, 32), LayoutRight)
STATIC = gmem(ints(1024, 256), ints(256, 1))
KNOWN = gmem((1024, 256), (256, 1))

DSL_TEXTS: list[tuple[int, Operands, dict[str, Any], str]] = [
    (
        1,
        Operands(smem=SMALL, gmem=cute.make_identity_tensor(ints(1024, 256)), tile=(64, 32)),
        {},
        'invalid operand types, got \'!cute.coord_tensor<"(0,0)", "(1024,256):(1@0,1@1)">\', '
        "'!cute.layout<\"(64,32):(32,1)\">', and '!cute.layout<\"(64,32):(1@0,1@1)\">'",
    ),
    (
        3,
        Operands(
            smem=SMALL,
            gmem=cute.make_tensor(
                cute.make_gmem_ptr(0, "float16"), ComposedLayout(Swizzle(3, 4, 3), Int(0), STATIC.layout)
            ),
            tile=(64, 32),
        ),
        {},
        "unsupported layout for the GMEM tensor, got '!cute.composed_layout<\"S<3,4,3> o 0 o (1024,256):(256,1)\">'",
    ),
    (
        4,
        Operands(smem=Layout(ints(64, 32), (E(0), E(1))), gmem=KNOWN, tile=(64, 32)),
        {},
        "expected the GMEM and SMEM layouts to have integer stride elements, but got "
        "'!cute.layout<\"(1024,256):(256,1)\">' and '!cute.layout<\"(64,32):(1@0,1@1)\">'",
    ),
    (
        5,
        Operands(smem=ComposedLayout(Layout(ints(2048), ints(1)), Int(0), SMALL), gmem=STATIC, tile=(64, 32)),
        {},
        "expected the SMEM layout to be a swizzle layout, but got "
        "'!cute.composed_layout<\"(2048):(1) o 0 o (64,32):(32,1)\">'",
    ),
    (
        6,
        Operands(smem=Layout((64, Int(32)), ints(32, 1)), gmem=STATIC, tile=(64, 32)),
        {},
        "expected the SMEM layout and the CTA V-map to be static, but got "
        "'!cute.layout<\"(?,32):(32,1)\">' and '!cute.layout<\"(64,32):(1@0,1@1)\">'",
    ),
    (
        7,
        Operands(smem=Layout(ints(32, 64), LayoutRight), gmem=STATIC, tile=(64, 32)),
        {},
        "expected top-level shape equivalence between the SMEM layout and the CTA V-map, but got "
        "'!cute.layout<\"(32,64):(64,1)\">' and '!cute.layout<\"(64,32):(1@0,1@1)\">'",
    ),
    (
        11,
        Operands(smem=SMALL, gmem=STATIC, tile=(64, 32)),
        {"load_mode": "W_MULTICAST", "num_multicast": 0},
        "missing or invalid num_multicast for a multicast TMA load",
    ),
    (
        11,
        Operands(smem=SMALL, gmem=STATIC, tile=(64, 32)),
        {"num_multicast": 2},
        "expects a return TMA load type with multicast for num_multicast of 2 but got a return TMA load type "
        "does not support multicast",
    ),
]


@pytest.mark.parametrize(("step", "operands", "options", "text"), DSL_TEXTS)
def test_the_texts_of_dsl(step: int, operands: Operands, options: dict[str, Any], text: str) -> None:
    assert text_of(operands, dialect="dsl", **options) == (step, text)


def test_the_texts_of_the_builder() -> None:
    assert list(TEXTS.values())[:8] == [
        "expected tma descriptor pointer to have alignment at least 128",
        "tma boxDims[0] * elemTypeBitWidth is not a multiple of 16 bytes",
        "smem layout is not TMA compatible",
        "TmaLoad only support zero padding now",
        "expect a tma_load atom type",
        "tmaBoxDim and atomBoxDim length mismatch",
        "mcast is not supported for TMA load with less than 128bytes per atom",
        "TMA descriptor field is not device-mutable",
    ]


def test_a_builder_tells_everything_at_once() -> None:
    with pytest.raises(TmaBuildError) as refusal:
        tma_descriptor_tiled(
            gmem((1024, 250), (250, Int(1))), Layout(ints(8, 4), LayoutRight), paddings=(1.5,), alignment=64
        )
    assert str(refusal.value) == (
        "expected tma descriptor pointer to have alignment at least 128\n"
        "  found  : 64 bytes\n"
        "  also 2 : tma boxDims[0] * elemTypeBitWidth is not a multiple of 16 bytes (boxDim[0] in bytes = 8 bytes "
        "(4 elements x 16 bits); must be a multiple of 16)\n"
        "  also 3 : globalStrides[0] = 500 bytes; must be a multiple of 16\n"
        "  also 4 : TmaLoad only support zero padding now (paddings(1.5))"
    )


VIEW = tmem.get_copy_s2t_smem_desc(tmem.demonstration_copy(32, 1), 1024)


def test_the_rules_stand_below_the_page_s_text() -> None:
    """A descriptor of another box and swizzle, on an address that no map has: all is said at once."""
    box = Layout(ints(64, 64), LayoutRight)
    descriptor = apply_update(
        tma_descriptor_tiled(gmem(), box, swizzle=Swizzle(3, 4, 3), num_multicast=2),
        TmaUpdate("UPDATE_DIM", 1, 2048),
    )
    with pytest.raises(TmaVerifyError) as refusal:
        non_exec_tiled_tma_load(descriptor, SMEM, TILE, load_mode="W_MULTICAST")
    assert str(refusal.value) == (
        "Computed TMA layout is invalid, got !cute.layout<(64,128),(1@1,1@0)>\n"
        "  1 : the descriptor is for 2 CTAs, but the operation has num_multicast = 1\n"
        "  2 : the descriptor's box_dim = (64, 32); the tile makes (64, 128)\n"
        "  3 : the descriptor's swizzle = 3; the tile makes 0"
    )


def test_flags_in_words() -> None:
    [record] = partition(Layout(ints(32, 8), LayoutRight), STATIC, (32, 8), load_mode=2, num_multicast=4, s2t=VIEW)
    assert record.flags.describe() == (
        "bit  0  multicast          a multicast load, W or W128 [the load mode]\n"
        "bit  6  static_smem        the shared layout is static [step 6]\n"
        "bit  7  static_vmap        the CTA V-map is static [step 6]\n"
        "bit  8  gmem_int_stride    the global layout has integer strides [step 4]\n"
        "bit  9  smem_int_stride    the shared layout has integer strides [step 4]\n"
        "bit 10  shape_equiv        shared layout and CTA V-map have the same top-level shape [step 7]\n"
        "bit 11  g_basis_ok         the G-basis was computed [step 8]\n"
        "bit 12  s2t_descriptor     the result wraps a shared-to-tensor-memory descriptor view [the s2t operand]\n"
        "bit 13  prefetch_eligible  sizes and strides are static, so a prefetched descriptor stays valid [gmem]"
    )


def test_a_record_in_words() -> None:
    record = TmaPartitionResult(0x1000, 8192, TmaFlags(0xFC0), 2, 2, 0x2000)
    assert str(record) == ("tile of 8192 elements, rank 2, swizzle_mode 2, flags 0x0fc0, type 0x1000, body 0x2000")
