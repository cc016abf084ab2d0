"""Every text of the package cute_py.tmem that a user reads: errors and explanations, word for word."""

from __future__ import annotations

from collections.abc import Callable

import numpy
import pytest

from cute_py.atom import SmemDescriptor, find_smem_operand
from cute_py.errors import CuteError
from cute_py.layout.layout import Layout
from cute_py.tmem import (
    Buffer,
    DescriptorKind,
    Major,
    R,
    S,
    SmemSwizzle,
    TCol,
    TensorMemory,
    TileLayout,
    TLane,
    TmemAllocation,
    check_columns,
    copy_async,
    cp_form,
    demonstrate,
    encode_matrix_descriptor,
    get_copy_s2t_smem_desc,
    mma_shared_layout,
    mnemonic,
    tmem_datapath_layout,
    to_cute,
)
from tests.each import each_of

DEMO = S[(32, 16) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane]
SMEM = Buffer("A_smem", (32, 16), "uint8", "shared", S[(32, 16) : (16, 1)])
WIDE = Buffer("B_smem", (128, 64), "bfloat16", "shared", mma_shared_layout("bfloat16", 2, (128, 64)))
HALF = Buffer("B_smem", (64, 32), "bfloat16", "shared", mma_shared_layout("bfloat16", 2, (64, 32)))


def tmem(layout: TileLayout, shape: tuple[int, ...] = (32, 16), dtype: str = "uint8", n_cols: int = 32) -> Buffer:
    return Buffer("tmem", shape, dtype, "tmem", layout, TmemAllocation(n_cols))


def allocated() -> TensorMemory:
    memory = TensorMemory()
    memory.alloc(32)
    return memory


ERRORS: list[tuple[Callable[[], object], str]] = [
    (
        lambda: demonstrate(n_cols=16),
        """\
n_cols = 16 columns; must be within 32..512
  allowed : 32, 64, 128, 256, 512
  note    : ptxas checks an immediate, but not a number in a register
  hint    : allocate n_cols=32""",
    ),
    (
        lambda: check_columns(48),
        """\
n_cols = 48 columns; must be a power of 2
  allowed : 32, 64, 128, 256, 512
  note    : ptxas checks an immediate, but not a number in a register
  hint    : allocate n_cols=64""",
    ),
    (
        lambda: check_columns(1024),
        """\
n_cols = 1024 columns; must be within 32..512
  allowed : 32, 64, 128, 256, 512
  note    : ptxas checks an immediate, but not a number in a register""",
    ),
    (
        lambda: copy_async(tmem(S[(32, 16) : (1 @ TLane, 1 @ TCol)]).whole(), SMEM.whole()),
        """\
requires R[4:32@TLane] on tmem, got []
  copy      : A_smem[0:32, 0:16] -> tmem[0:32, 0:16]
  variant   : copy_async "smem->tmem", priority 10
  predicate : validate_smem_tmem_copy""",
    ),
    (
        lambda: copy_async(tmem(DEMO).whole(), SMEM.whole(), scope="warp"),
        """\
expected thread exec_scope, got warp
  copy      : A_smem[0:32, 0:16] -> tmem[0:32, 0:16]
  variant   : copy_async "smem->tmem", priority 10
  predicate : exec_scope""",
    ),
    (
        lambda: copy_async(tmem(DEMO).whole(), SMEM.whole(), cta_group=3, compat="newest", decompress="b4x16_p64"),
        """\
compat = 'newest'; must be one of 'reference', 'tvm-0.27'
  copy  : A_smem[0:32, 0:16] -> tmem[0:32, 0:16]
  and 2 : cta_group = 3; must be 1 or 2
  and 3 : copy_async does not plan copies that decompress; issue tcgen05.cp with a format by hand""",
    ),
    (
        lambda: copy_async(tmem(DEMO).whole(), SMEM.whole(), shape="128x256b"),
        """\
compat = 'reference' plans only 32x128b.warpx4; got 128x256b
  other planners : compat="tvm-0.27" plans every form""",
    ),
    (
        lambda: copy_async(tmem(DEMO + 1 @ TLane).whole(), SMEM.whole()),
        """\
the copy writes lanes 1..128; tensor memory has lanes 0..127
  copy : A_smem[0:32, 0:16] -> tmem[0:32, 0:16]
  form : 32x128b.warpx4""",
    ),
    (
        lambda: copy_async(
            tmem(S[(32, 2064) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane], (32, 2064), n_cols=512)[0:32, 2048:2064],
            SMEM.whole(),
        ),
        """\
the copy writes up to column 515; the allocation has columns 0..511
  copy : A_smem[0:32, 0:16] -> tmem[0:32, 2048:2064]""",
    ),
    (
        lambda: copy_async(
            tmem(tmem_datapath_layout("F", 64, 32), (64, 32), "bfloat16").whole(), HALF.whole(), compat="tvm-0.27"
        ),
        """\
no tcgen05.cp form fits the two layouts
  copy                  : B_smem[0:64, 0:32] -> tmem[0:64, 0:32]
  128x256b              : 128x256b writes its rows to lanes [128 : 1 @ TLane]; the layout has \
[4 : 32 @ TLane, 16 : 1 @ TLane, 2 : 16 @ TCol]
  4x256b                : 1024 bytes from row to row; must be 16, 32, 64 or 128
  128x128b              : 128x128b writes its rows to lanes [128 : 1 @ TLane]; the layout has \
[4 : 32 @ TLane, 16 : 1 @ TLane, 2 : 16 @ TCol]
  64x128b.warpx2::02_13 : the tensor-memory layout has replicas []; must be [2 : 64 @ TLane]
  64x128b.warpx2::01_23 : the tensor-memory layout has replicas []; must be [2 : 32 @ TLane]
  32x128b.warpx4        : the tensor-memory layout has replicas []; must be [4 : 32 @ TLane]""",
    ),
    (
        lambda: cp_form("64x128b"),
        "tcgen05.cp shape 64x128b has two multicasts; multicast must be one of 'warpx2::02_13', 'warpx2::01_23'",
    ),
    (
        lambda: mnemonic("tcgen05.cp", cta_group="cta_group::1", shape="32x128b"),
        "tcgen05.cp: no multicast with .32x128b; must be .warpx4",
    ),
    (
        lambda: SmemDescriptor(1 << 14, -1, 0),
        """\
start = 16384 (16-byte units); must be within 0..16383
  and 2 : leading = -1 (16-byte units); must be within 0..16383""",
    ),
    (lambda: SmemDescriptor.decode(3 << 61), "the swizzle code is 3; must be one of 0, 1, 2, 4, 6"),
    (
        lambda: find_smem_operand(Layout((64, 64), (64, 1)), "bfloat16", major=Major.K),
        """\
the tile has no canonical layout, so no matrix descriptor describes it
  K-major : Not a canonical UMMA_K Layout: Expected stride failure.""",
    ),
    (
        lambda: S[(6, 4) : (8, 1)].group((4, 6)),
        """\
the layout can't be grouped by the shape (4, 6)
  layout : S[(6, 4) : (8, 1)]
  reason : iter 1 of extent 4 does not split at a boundary of dimension 0 (extent 4)""",
    ),
    (
        lambda: to_cute(S[(8, 4) : (1 @ TLane, 1 @ TCol)]),
        """\
CuTe layouts have no axis TLane
  layout : S[(8, 4) : (1 @ TLane, 1 @ TCol)]
  hint   : pass dtype= for a tensor-memory layout""",
    ),
    (
        lambda: allocated().cp(30, encode_matrix_descriptor(0, 0, 8, 0), numpy.zeros(512, numpy.uint8)),
        """\
columns 30..33 are not allocated
  allocated : 0..31""",
    ),
    (
        lambda: allocated().ld(0, "32x32b", 1, 2),
        "warp 2 reaches lanes 64..95, but the transfer is on lanes 0..31",
    ),
    (
        lambda: allocated().alloc(512),
        """\
tcgen05.alloc of 512 columns blocks, because no 512 columns are free
  allocated : 0..31""",
    ),
    (
        lambda: allocated().finish(),
        """\
tensor memory is still allocated at the end of the kernel
  at column 0 : 32 columns""",
    ),
    (lambda: SMEM[0:32], "1 slices of A_smem, which has 2 dimensions"),
]


@each_of(("call", "words"), ERRORS)
def test_errors(call: Callable[[], object], words: str) -> None:
    with pytest.raises(CuteError) as caught:
        call()
    assert str(caught.value) == words


@pytest.mark.parametrize("call", [call for call, words in ERRORS if "hint" in words and "n_cols" in words])
def test_the_hint_works(call: Callable[[], object]) -> None:
    with pytest.raises(CuteError) as caught:
        call()
    assert caught.value.hint is not None
    assert check_columns(int(caught.value.hint.split("=")[1]))


def test_a_descriptor_explains_itself() -> None:
    assert SmemDescriptor.decode(0x4000404000010000).explain() == (
        """\
tcgen05 matrix descriptor 0x4000404000010000
  bits 0-13  start address                         : 0 x 16 = 0 bytes
  bits 16-29 leading-dimension offset              : 1 x 16 = 16 bytes
  bits 32-45 stride-dimension offset               : 64 x 16 = 1024 bytes
  bits 46-48 version, fixed 0b001                  : 1
  bits 49-51 base offset of the swizzle pattern    : 0
  bit 52     leading offset is an absolute address : 0
  bits 61-63 swizzle                               : code 2: B128, rows of 128 bytes"""
    )
    assert SmemDescriptor(1, 2, 3, SmemSwizzle.B32, DescriptorKind.WGMMA, residue=1 << 55).explain() == (
        """\
wgmma matrix descriptor 0xc080000300020001
  bits 0-13  start address                         : 1 x 16 = 16 bytes
  bits 16-29 leading-dimension offset              : 2 x 16 = 32 bytes
  bits 32-45 stride-dimension offset               : 3 x 16 = 48 bytes
  bits 49-51 base offset of the swizzle pattern    : 0
  bits 62-63 swizzle                               : code 3: B32, rows of 32 bytes
  other bits                                       : 0x80000000000000"""
    )


def test_a_plan_explains_itself() -> None:
    target = tmem(tmem_datapath_layout("D", 128, 64), (128, 64), "bfloat16", 64)
    copy = copy_async(target.whole(), WIDE.whole(), compat="tvm-0.27")
    assert copy.explain() == (
        """\
B_smem[0:128, 0:64] -> tmem[0:128, 0:64]
tcgen05.cp.cta_group::1.128x256b, 4 instructions
  rows       : 128 of 256 bits = 16 elements of 16 bits
  descriptor : 0x8000402000010000 at address 0 (ldo 1, sdo 32, swizzle 2)
  first      : shared +0 B, taddr +0x0
  loops      : 2 x (+8192 B, taddr +0x10), 2 x (+32 B, taddr +0x8)"""
    )


def test_a_plan_says_what_a_stricter_planner_would() -> None:
    target = tmem(DEMO + 4 @ TCol)
    copy = copy_async(target.whole(), SMEM.whole())
    assert copy.plan.notes == ("first column 1 is not a multiple of 4; apache-tvm 0.27.0 refuses it",)
    assert copy.explain().endswith(f"\n  note       : {copy.plan.notes[0]}")


def test_a_descriptor_view_explains_itself() -> None:
    text = get_copy_s2t_smem_desc(copy_async(tmem(DEMO).whole(), SMEM.whole()), 1024).explain()
    assert text.splitlines()[0] == "tcgen05 matrix descriptor 0x0000400800100040"
    assert text.splitlines()[-1] == "  1 instruction, offsets in 16-byte units: 0"
