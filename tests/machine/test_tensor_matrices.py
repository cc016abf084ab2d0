"""tcgen05.mma in small kernels: every kind, place and layout of operands, against products that numpy makes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_py.atom import SmemSwizzle
from cute_py.atom.smem_descriptor import Major
from tests.machine.tensor_kernels import BUFFER, image_of, kernel, load_descriptors, run, stored
from tests.shares import one_in

NAMES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn, "e2m1": ml_dtypes.float4_e2m1fn,
    "tf32": np.float32, "u8": np.uint8, "s8": np.int8,
}  # fmt: skip
BITS = {"f16": 16, "bf16": 16, "tf32": 32}
FORMATS = {"f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5, "u8": 0, "s8": 1}
SUMS = {"f16": 0, "f32": 1, "s32": 2}
HALF_LANES = 32 * (np.arange(64) // 16) + np.arange(64) % 16


def descriptor(
    a: str,
    b: str,
    m: int,
    n: int,
    *,
    d: str = "f32",
    majors: str = "KK",
    negate: tuple[int, int] = (0, 0),
    more: int = 0,
) -> int:
    """The bits of an instruction descriptor, as the ISA's table has them."""
    bits = SUMS[d] << 4 | FORMATS[a] << 7 | FORMATS[b] << 10 | negate[0] << 13 | negate[1] << 14
    return bits | (majors[0] == "M") << 15 | (majors[1] == "M") << 16 | n // 8 << 17 | m // 16 << 24 | more


def small(shape: tuple[int, int], kind: str, seed: int) -> Any:
    """Numbers that a type holds, and their codes."""
    dice = np.random.default_rng(seed)
    low = 0 if kind == "u8" else -3
    values = dice.integers(low, 4, shape).astype(np.float32)
    made = values.astype(NAMES[kind])
    return values, made.view(f"uint{8 * made.dtype.itemsize}")


def packed(codes: Any, kind: str) -> Any:
    """Codes of a narrow type as shared memory has them for kind::f8f6f4: 16 of them packed in each 16 bytes."""
    width = {"e2m1": 4, "e2m3": 6, "e3m2": 6}.get(kind, 8)
    if width == 8:
        return codes
    rows, k = codes.shape
    bits = np.unpackbits(codes[..., None], axis=-1, bitorder="little")[..., :width].reshape(rows, k // 16, 16 * width)
    bits = np.pad(bits, ((0, 0), (0, 0), (0, 128 - 16 * width)))
    return np.packbits(bits, axis=-1, bitorder="little").reshape(rows, k)


def multiply(idesc: int, kind: str, *, enable: str = "0", tail: str = "") -> str:
    """The instruction that multiplies the operands of %rd11 and %rd12."""
    return (
        f"mov.b32 %r40, {idesc:#x}; setp.ne.u32 %p7, {enable}, 0;\n  "
        f"tcgen05.mma.cta_group::1.kind::{kind} [%r8], %rd11, %rd12, %r40, %p7{tail};"
    )


def of_words(words: Any, kind: str = "f32") -> Any:
    """Words of tensor memory as numbers."""
    if kind == "f16":
        return (words & 0xFFFF).astype(np.uint16).view(np.float16).astype(np.float32)
    return words.view(np.int32 if kind == "s32" else np.float32)


LAYOUTS = [
    (Major.K, SmemSwizzle.NONE), (Major.K, SmemSwizzle.B32), (Major.K, SmemSwizzle.B64), (Major.K, SmemSwizzle.B128),
    (Major.MN, SmemSwizzle.NONE), (Major.MN, SmemSwizzle.B32), (Major.MN, SmemSwizzle.B64),
    (Major.MN, SmemSwizzle.B128),
]  # fmt: skip


@pytest.mark.parametrize(("major", "swizzle"), one_in(3, LAYOUTS))
def test_layouts_of_operands(major: Major, swizzle: SmemSwizzle) -> None:
    """Two steps of K in one layout: each has a descriptor of its own."""
    m, n, k = 128, 64, 32
    k = max(k, swizzle.row_bytes // 2) if major is Major.K else k
    (x, a), (y, b) = small((m, k), "f16", 1), small((n, k), "f16", 2)
    first, starts = stored(a, major, swizzle, 16, 0)
    second, others = stored(b, major, swizzle, 16, 16384)
    letter = "M" if major is Major.MN else "K"
    idesc = descriptor("f16", "f16", m, n, majors=letter * 2)
    body = ""
    for number, (one, other) in enumerate(zip(starts, others, strict=True)):
        body += load_descriptors(one, other) + multiply(idesc, "f16", enable=str(number)) + "\n  "
    found, words = run(kernel(body), image_of((0, first), (16384, second)))
    assert found.ok, found.explain()
    assert np.array_equal(of_words(words[0, :, :n]), x @ y.T)


def operands(a: str, b: str, m: int, n: int, k: int) -> tuple[Any, Any, Any, str]:
    """Numbers of A and B, the buffer, and what loads its descriptors; K-major, 32 bytes of K."""
    (x, first), (y, second) = small((m, k), a, 3), small((n, k), b, 4)
    raw, starts = stored(packed(first, a), Major.K, SmemSwizzle.B32, BITS.get(a, 8), 0)
    other, ends = stored(packed(second, b), Major.K, SmemSwizzle.B32, BITS.get(b, 8), 16384)
    return x, y, image_of((0, raw), (16384, other)), load_descriptors(starts[0], ends[0])


KINDS = [
    ("f16", "f16", "f16", "f32", 16), ("f16", "bf16", "bf16", "f32", 16), ("f16", "f16", "f16", "f16", 16),
    ("tf32", "tf32", "tf32", "f32", 8), ("f8f6f4", "e4m3", "e5m2", "f32", 32), ("f8f6f4", "e2m1", "e4m3", "f16", 32),
    ("f8f6f4", "e2m3", "e2m1", "f32", 32), ("f8f6f4", "e5m2", "e3m2", "f32", 32), ("i8", "s8", "s8", "s32", 32),
    ("i8", "u8", "s8", "s32", 32),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "a", "b", "d", "k"), one_in(2, KINDS))
@pytest.mark.parametrize("m", [64, 128])
def test_kinds(kind: str, a: str, b: str, d: str, k: int, m: int) -> None:
    n = 32
    x, y, image, loads = operands(a, b, m, n, k)
    found, words = run(kernel(loads + multiply(descriptor(a, b, m, n, d=d), kind)), image, schedule="lazy")
    assert found.ok, found.explain()
    lanes = np.arange(128) if m == 128 else HALF_LANES
    assert np.array_equal(of_words(words[0][lanes, :n], d), x @ y.T)
    if m == 64:
        assert not words[0][HALF_LANES + 16, :n].any()


@pytest.mark.parametrize(("operand", "start"), [("A", 0), ("B", 16384)])
def test_an_operand_beyond_shared_memory_is_named_with_its_offsets(operand: str, start: int) -> None:
    """A stride byte offset of 256 KiB - 16 between groups of 8 rows reaches beyond shared memory."""
    _, _, image, loads = operands("f16", "f16", 128, 32, 16)
    stride = (
        f"mov.b64 %rd20, {0x3FFF << 32:#x}; or.b64 %rd{11 + (operand == 'B')}, %rd{11 + (operand == 'B')}, %rd20;\n"
    )
    body = loads + stride + multiply(descriptor("f16", "f16", 128, 32), "f16")
    found, _ = run(kernel(body), image, schedule="eager")
    (fault,) = found.diagnostics
    assert f"operand {operand} of tcgen05.mma reads shared address 0x" in fault.message, fault.message
    assert f"its descriptor has the start address {0x400 + start:#x}" in fault.message, fault.message
    assert fault.message.endswith("and the stride byte offset 262128"), fault.message


def test_the_second_half_of_the_lanes() -> None:
    x, y, image, loads = operands("f16", "f16", 64, 32, 16)
    body = f"{loads}add.u32 %r8, %r8, 0x100000;\n  {multiply(descriptor('f16', 'f16', 64, 32), 'f16')}"
    found, words = run(kernel(body), image, schedule="eager")
    # the address in %r8 is also what is freed
    assert [one.rule for one in found.diagnostics] == ["tensor memory"]
    body = body.replace("add.u32 %r8, %r8, 0x100000;", "add.u32 %r50, %r8, 0x100000;").replace("[%r8]", "[%r50]")
    found, words = run(kernel(body), image)
    assert found.ok, found.explain()
    assert np.array_equal(of_words(words[0][HALF_LANES + 16, :32]), x @ y.T)


def test_signs_sums_and_scaled_sums() -> None:
    m, n = 128, 32
    x, y, image, loads = operands("f16", "f16", m, n, 16)
    before = np.arange(128 * 512, dtype=np.float32).reshape(128, 512) % 97 * 4
    for negate, tail, expected in (
        ((1, 0), "", before[:, :n] - x @ y.T),
        ((1, 1), "", before[:, :n] + x @ y.T),
        ((0, 1), ", 2", before[:, :n] / 4 - x @ y.T),
    ):
        idesc = descriptor("f16", "f16", m, n, negate=negate)
        text = kernel(loads + multiply(idesc, "f16", enable="1", tail=tail))
        found, words = run(text, image, before.view(np.uint32), schedule="eager")
        assert found.ok, found.explain()
        assert np.array_equal(of_words(words[0, :, :n]), expected)


def test_disabled_lanes() -> None:
    m, n = 128, 32
    x, y, image, loads = operands("f16", "f16", m, n, 16)
    mask = 0xF0000001_80000000_00000000_00000006
    names = ", ".join(f"{mask >> 32 * i & 0xFFFFFFFF:#x}" for i in range(4))
    loads += "".join(f"mov.b32 %r{60 + i}, {name};" for i, name in enumerate(names.split(", ")))
    text = loads + multiply(descriptor("f16", "f16", m, n), "f16").replace("%p7;", "{%r60, %r61, %r62, %r63}, %p7;")
    assert "{%r60" in text
    found, words = run(kernel(text), image, np.uint32(7), schedule="eager")
    assert found.ok, found.explain()
    off = np.array([mask >> lane & 1 for lane in range(128)], bool)
    assert off.sum() == 8
    assert (words[0][off, :n] == 7).all()
    assert np.array_equal(of_words(words[0][~off, :n]), (x @ y.T)[~off])


def test_integers_saturate() -> None:
    m, n = 128, 32
    x, y, image, loads = operands("s8", "s8", m, n, 32)
    top = np.full((128, 512), 0x7FFFFFFF, np.uint32)
    for saturate in (0, 8):
        idesc = descriptor("s8", "s8", m, n, d="s32", more=saturate)
        text = kernel(loads + multiply(idesc, "i8", enable="1")).replace("sm_103a", "sm_100a")
        found, words = run(text, image, top, schedule="eager")
        assert found.ok, found.explain()
        product = (x @ y.T).astype(np.int64)
        whole = 0x7FFFFFFF + product
        wanted = np.minimum(whole, 0x7FFFFFFF) if saturate else (whole + 2**31) % 2**32 - 2**31
        assert np.array_equal(of_words(words[0, :, :n], "s32"), wanted)


@pytest.mark.parametrize(("a", "kind", "k"), [("f16", "f16", 16), ("tf32", "tf32", 8), ("e4m3", "f8f6f4", 32),
                                              ("e2m1", "f8f6f4", 32), ("e3m2", "f8f6f4", 32)])  # fmt: skip
@pytest.mark.parametrize("m", [64, 128])
def test_a_in_tensor_memory(a: str, kind: str, k: int, m: int) -> None:
    """A in columns 48 and up, in the lanes of D."""
    n = 32
    other = a if kind != "f8f6f4" else "e4m3"
    x, codes = small((m, k), a, 3)
    _, y, image, loads = operands(other, other, m, n, k)
    lanes = np.arange(128) if m == 128 else HALF_LANES
    held = codes << 2 if a == "e2m1" else codes
    tmem = np.zeros((128, 512), np.uint32)
    tmem[lanes, 48:56] = np.ascontiguousarray(held).view(np.uint32)
    text = loads + "add.u32 %r50, %r8, 48;\n  " + multiply(descriptor(a, other, m, n), kind)
    found, words = run(kernel(text.replace("%rd11, %rd12, %r40", "[%r50], %rd12, %r40")), image, tmem)
    assert found.ok, found.explain()
    assert np.array_equal(of_words(words[0][lanes, :n]), x @ y.T)


@pytest.mark.parametrize("m", [32, 64, 128])
def test_weight_stationary_products(m: int) -> None:
    n = 128
    x, y, image, loads = operands("f16", "f16", m, n, 16)
    text = loads + multiply(descriptor("f16", "f16", m, n), "f16").replace("mma.cta", "mma.ws.cta")
    found, words = run(kernel(text, shown=128), image, schedule="lazy")
    assert found.ok, found.explain()
    parts = 128 // m
    held = of_words(words[0, :, : n // parts]).reshape(parts, m, n // parts)
    assert np.array_equal(np.concatenate(list(held), axis=1), x @ y.T)


# ---- scale factors ---------------------------------------------------------------------------------------------------


def scale_words(codes: Any, first: int) -> Any:
    """(128, columns) words of the scales (rows, factors) in bytes `first` and up, the same in four groups of lanes."""
    rows, count = codes.shape
    columns = -(-rows // 32)
    raw = np.zeros((32, columns, 4), np.uint8)
    for row in range(rows):
        raw[row % 32, row // 32, first : first + count] = codes[row]
    return np.tile(raw.reshape(32, -1).view(np.uint32), (4, 1))


SCALED = [
    ("mxf8f6f4", "", "e4m3", "ue8m0", 1, 32, 2), ("mxf8f6f4", ".scale_vec::1X", "e2m1", "ue8m0", 1, 32, 0),
    ("mxf4", ".scale_vec::2X", "e2m1", "ue8m0", 2, 64, 2), ("mxf4nvf4", ".scale_vec::4X", "e2m1", "ue4m3", 4, 64, 0),
    ("mxf4nvf4", ".block16", "e2m1", "ue8m0", 4, 64, 0), ("mxf4nvf4", ".scale_vec::2X", "e2m1", "ue8m0", 2, 64, 0),
]  # fmt: skip


def scaled_case(kind: str, element: str, scale: str, count: int, k: int, first: int) -> tuple[Any, Any, Any, str]:
    """The product, the buffer, tensor memory with the scales, and the body without its instruction's name."""
    m, n = 128, 96
    dice = np.random.default_rng(8)
    (x, a), (y, b) = small((m, k), element, 5), small((n, k), element, 6)
    if k == 64:
        raws = [np.ascontiguousarray(c[:, ::2] | c[:, 1::2] << 4) for c in (a, b)]
        code = 1
    else:
        raws, code = [packed(a, element), packed(b, element)], FORMATS[element]
    image_a, start_a = stored(raws[0], Major.K, SmemSwizzle.B32, 8, 0)
    image_b, start_b = stored(raws[1], Major.K, SmemSwizzle.B32, 8, 16384)
    if scale == "ue8m0":
        codes = [dice.integers(124, 131, (rows, count)).astype(np.uint8) for rows in (m, n)]
        factors = [np.exp2(c.astype(np.float32) - 127) for c in codes]
    else:
        factors = [dice.integers(1, 9, (rows, count)).astype(np.float32) for rows in (m, n)]
        codes = [f.astype(ml_dtypes.float8_e4m3fn).view(np.uint8) for f in factors]
    tmem = np.zeros((128, 512), np.uint32)
    tmem[:, 128:132], tmem[:, 140:143] = scale_words(codes[0], first), scale_words(codes[1], first)
    idesc = code << 7 | code << 10 | n // 8 << 17 | m // 16 << 24 | (scale == "ue8m0") << 23 | first << 4 | first << 29
    wide = [np.repeat(f, k // count, axis=1) for f in factors]
    expected = (x * wide[0]).astype(np.float64) @ (y * wide[1]).T.astype(np.float64)
    body = load_descriptors(start_a[0], start_b[0]) + (
        f"mov.b32 %r40, {idesc:#x}; add.u32 %r50, %r8, 128; add.u32 %r51, %r8, 140; setp.ne.u32 %p7, 0, 0;\n  "
    )
    return expected, image_of((0, image_a), (16384, image_b)), tmem, body


@pytest.mark.parametrize(("kind", "modifier", "element", "scale", "count", "k", "first"), one_in(2, SCALED))
def test_scale_factors(kind: str, modifier: str, element: str, scale: str, count: int, k: int, first: int) -> None:
    expected, image, tmem, body = scaled_case(kind, element, scale, count, k, first)
    opcode = f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale{modifier}"
    text = kernel(f"{body}{opcode} [%r8], %rd11, %rd12, %r40, [%r50], [%r51], %p7;", shown=144)
    found, words = run(text, image, tmem)
    assert found.ok, found.explain()
    assert np.array_equal(of_words(words[0, :, :96]).astype(np.float64), expected)


def test_scales_that_are_not_in_every_group_of_lanes() -> None:
    _, image, tmem, body = scaled_case("mxf4", "e2m1", "ue8m0", 2, 64, 0)
    tmem[40, 129] ^= 1
    opcode = "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X"
    text = kernel(f"{body}{opcode} [%r8], %rd11, %rd12, %r40, [%r50], [%r51], %p7;", shown=144)
    found, _ = run(text, image, tmem, schedule="eager")
    assert "the scales of A differ between groups of 32 lanes; they must be equal" in found.diagnostics[0].message


# ---- sparse A --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "element", "k"), [("f16", "f16", 32), ("f8f6f4", "e4m3", 64), ("i8", "s8", 64)])
def test_two_of_four(kind: str, element: str, k: int) -> None:
    m, n = 128, 32
    dice = np.random.default_rng(9)
    (x, a), (y, b) = small((m, k // 2), element, 5), small((n, k), element, 6)
    pairs = np.array([(i, j) for i in range(4) for j in range(i + 1, 4)])
    chosen = pairs[dice.integers(0, 6, (m, k // 4))]
    whole = np.zeros((m, k), np.float32)
    groups = 4 * np.arange(k // 4)[:, None] + chosen
    np.put_along_axis(whole, groups.reshape(m, -1), x, axis=1)
    bits = (chosen[..., 0] | chosen[..., 1] << 2).astype(np.uint32)
    tmem = np.zeros((128, 512), np.uint32)
    for row in range(m):
        for group in range(k // 4):
            if k == 32:  # rows 0 to 7 and 8 to 15 share lanes, halves of K have lanes of their own
                lane = row % 8 + 8 * (group // 4) + 16 * (row // 16)
                tmem[lane, 48] |= bits[row, group] << np.uint32(4 * (group % 4) + 16 * (row // 8 % 2))
            else:
                tmem[row, 48 + group // 8] |= bits[row, group] << np.uint32(4 * (group % 8))
    raw, start = stored(a, Major.K, SmemSwizzle.B32, BITS.get(element, 8), 0)
    other, end = stored(b, Major.K, SmemSwizzle.B64, BITS.get(element, 8), 16384)
    d = "s32" if kind == "i8" else "f32"
    text = load_descriptors(start[0], end[0]) + "add.u32 %r50, %r8, 48;\n  "
    text += multiply(descriptor(element, element, m, n, d=d, more=4), kind)
    text = text.replace("mma.cta", "mma.sp.cta").replace("%rd12, %r40", "%rd12, [%r50], %r40")
    found, words = run(kernel(text), image_of((0, raw), (16384, other)), tmem)
    assert found.ok, found.explain()
    assert np.array_equal(of_words(words[0, :, :n], d), whole @ y.T)


# ---- two CTAs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [128, 256])
def test_pairs_of_ctas(m: int) -> None:
    """Each CTA has half of the rows of A, B and D."""
    n, k = 64, 16
    (x, a), (y, b) = small((m, k), "f16", 3), small((n, k), "f16", 4)
    image = np.zeros((2, BUFFER), np.uint8)
    for cta in range(2):
        raw, starts = stored(a[cta * m // 2 : (cta + 1) * m // 2], Major.K, SmemSwizzle.B32, 16, 0)
        other, ends = stored(b[cta * n // 2 : (cta + 1) * n // 2], Major.K, SmemSwizzle.B32, 16, 16384)
        image[cta] = image_of((0, raw), (16384, other))
    body = load_descriptors(starts[0], ends[0]) + multiply(descriptor("f16", "f16", m, n), "f16")
    found, words = run(kernel(body.replace("cta_group::1", "cta_group::2"), group=2), image, ctas=2)
    assert found.ok, found.explain()
    expected = x @ y.T
    if m == 256:
        assert np.array_equal(of_words(words[:, :, :n]).reshape(256, n), expected)
        return
    for cta in range(2):
        held = of_words(words[cta, :, : n // 2]).reshape(2, 64, n // 2)
        assert np.array_equal(np.concatenate(list(held), axis=1), expected[64 * cta : 64 * cta + 64])
