"""Warps run PTX: scalar instructions, shared memory, predicates, matrix instructions, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout
from cute_py.atom import SmemDescriptor
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, ParseError
from cute_py.machine.arithmetic import Order, sum_floats
from tests.each import each_of

LANE = np.arange(32, dtype=np.uint32)


def names(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"%{prefix}{n}" for n in range(count)) + "}"


@each_of(
    ("text", "expected"),
    [
        ("add.u32 %d0, %s0, 5;", LANE + 5),
        ("sub.s32 %d0, %s0, 5;", (LANE - 5).astype(np.uint32)),
        ("mul.lo.u32 %d0, %s0, 0x10001;", LANE * 0x10001),
        ("mad.lo.u32 %d0, %s0, 3, %s0;", LANE * 4),
        ("and.b32 %d0, %s0, 6;", LANE & 6),
        ("xor.b32 %d0, %s0, 0xffffffff;", ~LANE),
        ("not.b32 %d0, %s0;", ~LANE),
        ("shl.b32 %d0, %s0, 31;", LANE << 31),
        ("shl.b32 %d0, %s0, 32;", LANE * 0),
        ("shr.u32 %d0, %s0, 2;", LANE >> 2),
        ("popc.b32 %d0, %s0;", np.bitwise_count(LANE).astype(np.uint32)),
        ("rem.u32 %d0, %s0, 7; div.u32 %t0, %s0, 7; mad.lo.u32 %d0, %t0, 100, %d0;", LANE % 7 + LANE // 7 * 100),
        ("setp.lt.u32 %p0, %s0, 4; selp.b32 %d0, 1, 2, %p0;", np.where(LANE < 4, 1, 2)),
        ("mov.u32 %d0, 9; setp.eq.u32 %p0, %s0, 3; @%p0 mov.u32 %d0, 1;", np.where(LANE == 3, 1, 9)),
        ("mov.u32 %d0, 9; setp.eq.u32 %p0, %s0, 3; @!%p0 mov.u32 %d0, 1;", np.where(LANE == 3, 9, 1)),
        ("mov.u32 %d0, %laneid; // comment", LANE),
        ("prmt.b32 %d0, %s0, 0x44332211, 0x7650;", LANE | 0x44332200),
        ("{ .reg .b32 %t0; mov.b32 %t0, %s0; add.u32 %d0, %t0, 1; }", LANE + 1),
    ],
)
def test_scalars(text: str, expected: np.ndarray) -> None:
    warps = cute.Warps(1)
    warps.write("%s", LANE)
    warps.run(text)
    assert warps.read("%d", 1)[:, 0].tolist() == expected.tolist()


def test_shared_memory() -> None:
    warps = cute.Warps(2, shared=1024)
    warps.write("%s", np.stack([np.arange(64), np.arange(64) + 100], axis=1).astype(np.uint32))
    warps.run(
        "mov.u32 %t0, %tid.x; shl.b32 %t0, %t0, 3; st.shared.v2.b32 [%t0], {%s0, %s1}; bar.sync 0;"
        "xor.b32 %t1, %t0, 8; ld.shared.v2.b32 {%d0, %d1}, [%t1]; ld.shared.u16 %d2, [%t0+4];"
    )
    found = warps.read("%d", 3)
    assert (found[:, 0] == (np.arange(64) ^ 1)).all()
    assert (found[:, 2] == np.arange(64) + 100).all()
    assert warps.shared[8:16].tolist() == [1, 0, 0, 0, 101, 0, 0, 0]


def test_what_a_warp_loads_by_ldmatrix_is_the_a_of_its_mma() -> None:
    """A 16 x 16 tile through ldmatrix, B through its transpose, and the product through C's layout."""
    dice = np.random.default_rng(3)
    a, b = (dice.integers(-8, 9, shape).astype(np.float16) for shape in ((16, 16), (8, 16)))
    warps = cute.Warps(1, shared=np.concatenate([a.view(np.uint8).ravel(), b.view(np.uint8).ravel()]))
    warps.write("%at", (LANE % 16 * 32 + LANE // 16 * 16).astype(np.uint32))
    warps.write("%bt", (512 + LANE % 8 * 32 + LANE // 8 % 2 * 16).astype(np.uint32))
    warps.write("%c", np.zeros((32, 4), np.float32))
    warps.run(
        f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {names('a', 4)}, [%at0];"
        f"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {names('b', 2)}, [%bt0];"
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        f"{names('d', 4)}, {names('a', 4)}, {names('b', 2)}, {names('c', 4)};"
    )
    layout = cute.mma_atom("SM80_16x8x16_F32F16F16F32_TN").layoutC_TV
    d = np.empty(128, np.float32)
    d[np.asarray(cute.offsets(layout)).reshape(32, 4, order="F")] = warps.read("%d", 4).view(np.float32)
    assert (d.reshape(16, 8, order="F") == a.astype(np.float32) @ b.astype(np.float32).T).all()


def test_stmatrix_is_the_reverse_of_ldmatrix() -> None:
    words = np.random.default_rng(4).integers(0, 1 << 32, (32, 4), dtype=np.uint32)
    for modifier in ("", ".trans"):
        warps = cute.Warps(1, shared=512)
        warps.write("%s", words)
        warps.write("%at", LANE * 16)
        form = f"matrix.sync.aligned.m8n8.x4{modifier}.shared.b16"
        warps.run(f"st{form} [%at0], {names('s', 4)}; ld{form} {names('d', 4)}, [%at0];")
        assert (warps.read("%d", 4) == words).all()


@pytest.mark.parametrize("major", ["K", "MN"])
@pytest.mark.parametrize("swizzle", ["INTER", "SW32", "SW64", "SW128"])
def test_wgmma_through_the_descriptors_of_a_tile(major: str, swizzle: str) -> None:
    """Every instruction's part of a tile of 128 x 128: make_gmma_desc and the emulated hardware agree."""
    dice = np.random.default_rng(5)
    a, b = (dice.integers(-4, 5, (128, 128)).astype(np.float16) for _ in range(2))
    layout = cute.tile_to_shape(cute.gmma_layout(f"{major}_{swizzle}", "half_t"), (Int(128), Int(128)))
    index = np.asarray(cute.offsets(layout)).reshape(128, 128, order="F")
    memory = np.zeros((2, 128 * 128), np.float16)
    memory[0, index], memory[1, index] = a, b
    warps = cute.Warps(4, shared=memory.view(np.uint8).ravel())
    tensors = [cute.make_tensor(cute.make_smem_ptr(start, "half"), layout) for start in (0, 1 << 15)]
    row, column, depth = 1, 1, 3
    parts = [cute.local_tile(x, (Int(64), Int(16)), (r, depth)) for x, r in zip(tensors, (row, column), strict=True)]
    for name, part in zip(("%x", "%y"), parts, strict=True):
        warps.write(name, np.full(128, cute.make_gmma_desc(major, part).encode(), np.uint64))
    transposed = int(major == "MN")
    warps.write("%d", np.zeros((128, 32), np.float32))
    warps.run(
        f"wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {names('d', 32)}, "
        f"%x0, %y0, 0, 1, 1, {transposed}, {transposed}; wgmma.commit_group.sync.aligned;"
    )
    found = np.empty(64 * 64, np.float32)
    atom = cute.mma_atom("SM90_64x64x16_F32F16F16_SS")
    found[np.asarray(cute.offsets(atom.layoutC_TV)).reshape(128, -1, order="F")] = warps.read("%d", 32).view(np.float32)
    x, y = (m[64 * r : 64 * r + 64, 48:64].astype(np.float32) for m, r in ((a, row), (b, column)))
    assert (found.reshape(64, 64, order="F") == x @ y.T).all()


def test_terms_are_cut_at_the_largest() -> None:
    """One and a term 25 bits below it: the sum of both and -1 is the term; 26 bits below, nothing."""
    for below, expected in ((25, 2.0**-25), (26, 0.0)):
        a, b = np.array([[1.0, 2.0 ** -(below // 2)]]), np.array([[1.0, 2.0 ** -(below - below // 2)]])
        assert sum_floats(a, b, np.array([[-1.0]]), Order(25), False)[0, 0] == expected


@each_of(
    ("text", "error", "said"),
    [
        ("tex.1d.v4.f32.s32 {%d0, %d0, %d0, %d0}, [%s0, {%s0}];", InvalidValueError, "not emulated"),
        ("bra LOOP;", ParseError, "but the function has no such label"),
        ("add.u32 %d0, %s9, 1;", InvalidValueError, "the register %s9 was never written"),
        ("ld.shared.b32 %d0, [%s9];", InvalidValueError, "the register %s9 was never written"),
        ("@%p9 mov.u32 %d0, 1;", InvalidValueError, "the register %p9 was never written"),
        ("foo.bar %r1, %r2;", InvalidValueError, "line 1: foo.bar is not emulated"),
        ("add.u32 %d0, %s9, 1;\nfoo.bar;", InvalidValueError, "line 2: foo.bar is not emulated"),
        ("add.foo %d0, %s9, 1;", InvalidValueError, "line 1: add.foo"),
        ("ld.global.b32 %d0, [%s0];", InvalidValueError, "multiple of 4"),
        ("ld.shared.b32 %d0, [%s0];", InvalidValueError, "multiple of 4"),
        ("mul.lo.u32 %t0, %s0, 64; ld.shared.b32 %d0, [%t0];", InvalidValueError, "1024 bytes"),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%s0}, {%s0}, {%s0}, {%s0};",
            InvalidValueError,
            "operand D has 1 registers; must be 4",
        ),
        (
            "mma.sync.aligned.m16n8k99.row.col.f32.f16.f16.f32 {%s0}, {%s0}, {%s0}, {%s0};",
            InvalidValueError,
            "is not an emulated matrix instruction",
        ),
        ("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%d0}, [%s0];", InvalidValueError, "must have 2"),
        ("???;", ParseError, "is not an instruction"),
        ("add.u32 %d0, %s0;", InvalidValueError, "2 operands"),
        ("add.zz.f32 %d0, %s0, %s0;", InvalidValueError, r"modifier \.zz"),
        ("mul.u32 %d0, %s0, %s0;", InvalidValueError, "does not name a part of the product"),
        ("shfl.sync.odd.b32 %d0, %s0, 1, 31, 0xffffffff;", InvalidValueError, r"modifier \.odd"),
        ("shfl.sync.bfly.b32 %d0, %s0;", InvalidValueError, "2 operands"),
        ("ld.shared.v2.b32 %d0, [%s0];", InvalidValueError, "loads 2 registers, but names 1"),
        ("setp.zz.u32 %p0, %s0, 1;", InvalidValueError, "this comparison of"),
        (
            "setp.eq.u32 %p0, %s0, 0; @%p0 movmatrix.sync.aligned.m8n8.trans.b16 %d0, %s0;",
            InvalidValueError,
            "all threads of a warp must",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%s0, %s0}, %w0, %w0, 1, 1, 1, 0, 0;",
            InvalidValueError,
            "a warpgroup of 4 warps",
        ),
    ],
)
def test_refused(text: str, error: type[CuteError], said: str) -> None:
    warps = cute.Warps(1, shared=1024)
    warps.write("%s", LANE)
    warps.write("%w", LANE.astype(np.uint64))
    with pytest.raises(error, match=said):
        warps.run(text)


def test_operands_that_are_no_registers() -> None:
    warps = cute.Warps(1)
    with pytest.raises(InvalidTypeError, match="32 threads"):
        warps.write("%s", np.zeros(31))
    with pytest.raises(InvalidValueError, match="never written"):
        warps.read("%s", 1)
    with pytest.raises(InvalidTypeError, match="shared memory"):
        cute.Warps(1, shared=np.zeros(4))
    with pytest.raises(InvalidValueError):
        cute.Warps(33)


def test_a_repr_says_what_is_there() -> None:
    warps = cute.Warps(2, shared=64)
    warps.write("%s", np.arange(64))
    assert repr(warps) == "<2 warps, 64 bytes of shared memory, registers %s0>"
    assert repr(cute.Warps(1, shared=1)) == "<1 warp, 1 byte of shared memory, registers >"


def test_a_base_offset_is_refused() -> None:
    warps = cute.Warps(4, shared=4096)
    for name, value in (("%x", SmemDescriptor(0, 1, 16, "B128", "wgmma", base_offset=1).encode()), ("%y", 0)):
        warps.write(name, np.full(128, value, np.uint64))
    warps.write("%d", np.zeros((128, 4), np.uint32))
    with pytest.raises(InvalidValueError, match="base offset"):
        warps.run(f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {names('d', 4)}, %x0, %y0, 0, 1, 1, 0, 0;")


def test_layouts_of_threads_are_those_of_cute() -> None:
    """A copy's destination and what ldmatrix gives are one function."""
    row = cute.COPY_ATOMS["SM75_U32x4_LDSM_N"]
    assert isinstance(row.dst_layout, Layout)
    content = np.arange(256, dtype=np.uint16)
    warps = cute.Warps(1, shared=content.view(np.uint8))
    warps.write("%at", LANE * 16)
    warps.run(f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {names('d', 4)}, [%at0];")
    atom = cute.copy_atom("SM75_U32x4_LDSM_N", "half")
    expected = np.asarray(cute.offsets(atom.layout_dst_TV)).reshape(32, 8, order="F")
    assert (warps.read("%d", 4).view(np.uint16).reshape(32, 8) == expected).all()
