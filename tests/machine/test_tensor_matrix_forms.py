"""Forms of tcgen05.mma and tcgen05.shift beside numpy: shifts, masks of zero columns, collectors, sparse kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_py.atom import SmemSwizzle
from cute_py.atom.smem_descriptor import Major
from cute_py.machine.tensor_memory.products import zero_columns
from tests.machine.tensor_kernels import image_of, kernel, load_descriptors, run, stored
from tests.machine.test_tensor_matrices import (
    BITS,
    FORMATS,
    descriptor,
    multiply,
    of_words,
    operands,
    packed,
    scale_words,
    small,
)

# ---- shifts ----------------------------------------------------------------------------------------------------------


def shifted(rows: Any) -> Any:
    """Rows of groups of 32, each from the next; the last of a group stays."""
    groups = rows.reshape(-1, 32, rows.shape[-1])
    return np.concatenate([groups[:, 1:], groups[:, -1:]], axis=1).reshape(rows.shape)


@pytest.mark.parametrize("lane", [0, 64])
def test_a_shift_moves_32_bytes_of_31_rows(lane: int) -> None:
    cells = np.random.default_rng(3).integers(0, 1 << 32, (128, 512), np.uint32)
    body = f"add.u32 %r50, %r8, {lane << 16 | 16}; tcgen05.shift.cta_group::1.down [%r50];"
    found, words = run(kernel(body), None, cells)
    assert not found.diagnostics, found.explain()
    expected = cells[:, :64].copy()
    expected[lane : lane + 32, 16:24] = shifted(expected[lane : lane + 32, 16:24])
    assert np.array_equal(words[0, :, :64], expected)


def test_a_shift_from_another_lane() -> None:
    body = "add.u32 %r50, %r8, 0x100000; tcgen05.shift.cta_group::1.down [%r50];"
    found, _ = run(kernel(body), schedule="eager")
    assert "from lane 16; must be lane 0, 32, 64 or 96" in found.diagnostics[0].message


def a_in_columns_48(m: int = 128) -> tuple[Any, Any, Any, Any, str]:
    """A (M, 16) and B (32, 16) of float16, tensor memory with A, the buffer with B, and what loads its descriptor."""
    x, codes = small((m, 16), "f16", 3)
    _, y, image, loads = operands("f16", "f16", m, 32, 16)
    tmem = np.zeros((128, 512), np.uint32)
    tmem[:, 48:56] = np.ascontiguousarray(codes).view(np.uint32)
    return x, y, tmem, image, loads + "add.u32 %r50, %r8, 48;\n  "


def test_a_product_that_shifts_a() -> None:
    """The first product reads A as it was, and the second what the first has shifted."""
    x, y, tmem, image, loads = a_in_columns_48()
    plain = multiply(descriptor("f16", "f16", 128, 32), "f16").replace("%rd11, %rd12", "[%r50], %rd12")
    body = f"{loads}{plain.replace('kind::f16', 'kind::f16.ashift')}\n  add.u32 %r51, %r8, 64;\n  "
    body += plain.replace("[%r8]", "[%r51]")
    found, words = run(kernel(body, shown=96), image, tmem)
    assert not found.diagnostics, found.explain()
    assert np.array_equal(of_words(words[0, :, :32]), x @ y.T)
    assert np.array_equal(of_words(words[0, :, 64:96]), shifted(x) @ y.T)
    assert np.array_equal(words[0, :, 48:56], shifted(tmem[:, 48:56]))


def test_a_shift_of_a_with_other_rows() -> None:
    _, _, tmem, image, loads = a_in_columns_48()
    body = loads + multiply(descriptor("f16", "f16", 64, 32), "f16").replace("%rd11, %rd12", "[%r50], %rd12")
    found, _ = run(kernel(body.replace("kind::f16", "kind::f16.ashift")), image, tmem, schedule="eager")
    assert ".ashift with M = 64; must be 128" in found.diagnostics[0].message


# ---- masks of zero columns -------------------------------------------------------------------------------------------


def mask(starts: tuple[int, ...], firsts: tuple[int, ...], skip: int, use: int, shift: int = 0) -> int:
    """A mask descriptor; the fields of part 0 first."""
    words = 1 << 39 | skip << 40 | use << 48 | shift << 56
    for part, (start, first) in enumerate(zip(starts, firsts, strict=True)):
        words |= start << 8 * part | first << 32 + part
    return words


EXAMPLES = [
    (128, mask((0,), (0,), 2, 3), ["11100001110000"]),
    (64, mask((0, 0), (1, 0), 2, 3), ["11100001110000111", "00001110000111 0000".replace(" ", "")]),
    (32, mask((0, 1, 2, 1), (1, 1, 0, 0), 2, 3), ["00001110000111", "0000111000011", "111000011100", "1110000111000"]),
]
"""M, a descriptor, and the masks of its parts as the ISA prints them: the first column last."""


@pytest.mark.parametrize(("m", "words", "expected"), EXAMPLES)
def test_the_masks_of_the_documents(m: int, words: int, expected: list[str]) -> None:
    parts = zero_columns(words, m, 128).reshape(128 // m, m)
    for part, digits in zip(parts, expected, strict=True):
        assert "".join("01"[int(one)] for one in part[: len(digits)][::-1]) == digits


def test_no_mask() -> None:
    assert not zero_columns(mask((0,), (0,), 2, 3) & ~(1 << 39), 128, 64).any()


@pytest.mark.parametrize("m", [32, 64, 128])
def test_products_with_zero_columns(m: int) -> None:
    n = 128
    x, y, image, loads = operands("f16", "f16", m, n, 16)
    words = mask((0, 1, 2, 1), (1, 1, 0, 0), 2, 3)
    text = multiply(descriptor("f16", "f16", m, n), "f16", tail=", %rd13").replace("mma.cta", "mma.ws.cta")
    found, cells = run(kernel(f"{loads}mov.b64 %rd13, {words:#x};\n  {text}", shown=128), image, schedule="lazy")
    assert not found.diagnostics, found.explain()
    parts = 128 // m
    held = of_words(cells[0, :, : n // parts]).reshape(parts, m, n // parts)
    zeros = zero_columns(words, m, n)
    assert zeros.any() and not zeros.all()
    assert np.array_equal(np.concatenate(list(held), axis=1), np.where(zeros, 0, x @ y.T))


def test_a_column_shift_ends_the_run() -> None:
    _, _, image, loads = operands("f16", "f16", 128, 64, 16)
    text = multiply(descriptor("f16", "f16", 128, 64), "f16", tail=", %rd13").replace("mma.cta", "mma.ws.cta")
    body = f"{loads}mov.b64 %rd13, {mask((0,), (0,), 2, 3, shift=2):#x};\n  {text}"
    found, _ = run(kernel(body), image, schedule="eager")
    assert [one.rule for one in found.diagnostics] == ["not emulated"]


# ---- collectors ------------------------------------------------------------------------------------------------------


def collected(*uses: str, weights: bool = False) -> Any:
    """The run of one product after another with these uses of the collector."""
    _, _, image, loads = operands("f16", "f16", 128, 64, 16)
    text = multiply(descriptor("f16", "f16", 128, 64), "f16")
    if weights:
        text = text.replace("mma.cta", "mma.ws.cta")
    body = "\n  ".join(text.replace("kind::f16", f"kind::f16{use and '.collector::' + use}") for use in uses)
    return run(kernel(loads + body), image, schedule="eager")[0]


@pytest.mark.parametrize(
    ("uses", "weights", "words"),
    [
        (("a::fill", "a::use", "a::lastuse"), False, ""),
        (("b2::fill", "b2::use", "b1::fill", "b2::lastuse"), True, ""),
        (("a::use",), False, ".collector::a::use of A"),
        (("a::fill", "a::lastuse", "a::use"), False, "the buffer holds nothing"),
        (("a::fill", "", "a::use"), False, "the buffer holds nothing"),
        (("b0::fill", "b1::use"), True, ".collector::b1::use of B"),
    ],
)
def test_collectors(uses: tuple[str, ...], weights: bool, words: str) -> None:
    found = collected(*uses, weights=weights)
    assert [one.rule for one in found.diagnostics] == (["collector buffer not filled"] if words else [])
    assert all(words in one.message for one in found.diagnostics)


# ---- sparse kinds ----------------------------------------------------------------------------------------------------


def metadata(kind: str, indices: Any, k: int) -> Any:
    """(128, 512) words with the 4 bits (128, groups) of each group of K, from column 48 on."""
    tmem = np.zeros((128, 512), np.uint32)
    for (row, group), bits in np.ndenumerate(indices):
        if kind == "tf32":  # rows 0 to 7 and 8 to 15 share lanes, halves of K have lanes of their own
            lane = row % 8 + 8 * (group // 4) + 16 * (row // 16)
            tmem[lane, 48] |= np.uint32(int(bits) << 4 * (group % 4) + 16 * (row // 8 % 2))
        else:
            tmem[row, 48 + group // 8] |= np.uint32(int(bits) << 4 * (group % 8))
    return tmem


def test_one_of_two() -> None:
    """kind::tf32: one of two neighbours, 0b0100 or 0b1110."""
    m, n, k = 128, 32, 16
    (x, a), (y, b) = small((m, k // 2), "tf32", 5), small((n, k), "tf32", 6)
    second = np.random.default_rng(9).integers(0, 2, (m, k // 2))
    whole = np.zeros((m, k), np.float32)
    np.put_along_axis(whole, 2 * np.arange(k // 2) + second, x, axis=1)
    tmem = metadata("tf32", np.where(second, 0b1110, 0b0100), k)
    raw, start = stored(a, Major.K, SmemSwizzle.B32, 32, 0)
    other, end = stored(b, Major.K, SmemSwizzle.B64, 32, 16384)
    text = load_descriptors(start[0], end[0]) + "add.u32 %r50, %r8, 48;\n  "
    text += multiply(descriptor("tf32", "tf32", m, n, more=4), "tf32")
    text = text.replace("mma.cta", "mma.sp.cta").replace("%rd12, %r40", "%rd12, [%r50], %r40")
    found, words = run(kernel(text), image_of((0, raw), (16384, other)), tmem)
    assert not found.diagnostics, found.explain()
    assert np.array_equal(of_words(words[0, :, :n]), whole @ y.T)


PAIRS = np.array([(i, j) for i in range(4) for j in range(i + 1, 4)])


@pytest.mark.parametrize(
    ("kind", "element", "factors", "scale"),
    [("mxf8f6f4", "e4m3", 1, ""), ("mxf4", "e2m1", 2, ".scale_vec::2X"), ("mxf4nvf4", "e2m1", 4, ".block16")],
)
def test_sparse_kinds_with_scales(kind: str, element: str, factors: int, scale: str) -> None:
    """Two of four elements; of four bits, two of four pairs."""
    m, n = 128, 32
    k, step = (64, 1) if kind == "mxf8f6f4" else (128, 2)
    dice = np.random.default_rng(9)
    (x, a), (y, b) = small((m, k // 2), element, 5), small((n, k), element, 6)
    chosen = PAIRS[dice.integers(0, 6, (m, k // (4 * step)))]
    whole = np.zeros((m, k), np.float32)
    for group in range(k // (4 * step)):
        for number in range(2):
            for part in range(step):
                at = 4 * step * group + step * chosen[:, group, number] + part
                whole[np.arange(m), at] = x[:, 2 * step * group + step * number + part]
    tmem = metadata(kind, chosen[..., 0] | chosen[..., 1] << 2, k)
    codes = [dice.integers(125, 130, (rows, factors)).astype(np.uint8) for rows in (m, n)]
    tmem[:, 128:132], tmem[:, 140:141] = scale_words(codes[0], 0), scale_words(codes[1], 0)
    scales = [np.repeat(np.exp2(one.astype(np.float64) - 127), k // factors, axis=1) for one in codes]
    raws = [packed(a, element), packed(b, element)]
    if step == 2:
        raws = [np.ascontiguousarray(one[:, ::2] | one[:, 1::2] << 4) for one in (a, b)]
    raw, start = stored(raws[0], Major.K, SmemSwizzle.B32, BITS.get(element, 8), 0)
    other, end = stored(raws[1], Major.K, SmemSwizzle.B64, BITS.get(element, 8), 16384)
    code = 1 if step == 2 else FORMATS[element]
    idesc = 4 | code << 7 | code << 10 | n // 8 << 17 | m // 16 << 24 | 1 << 23
    text = load_descriptors(start[0], end[0]) + f"mov.b32 %r40, {idesc:#x}; setp.ne.u32 %p7, 0, 0;\n  "
    text += "add.u32 %r50, %r8, 48; add.u32 %r51, %r8, 128; add.u32 %r52, %r8, 140;\n  "
    text += (
        f"tcgen05.mma.sp.cta_group::1.kind::{kind}.block_scale{scale} [%r8], %rd11, %rd12, [%r50], %r40, [%r51], "
        "[%r52], %p7;"
    )
    found, words = run(kernel(text, shown=144), image_of((0, raw), (16384, other)), tmem)
    assert not found.diagnostics, found.explain()
    expected = (whole * scales[0]) @ (y * scales[1]).T
    assert np.array_equal(of_words(words[0, :, :n]).astype(np.float64), expected)


def test_a_larger_allocation_after_a_smaller_one() -> None:
    """The warp reads the second address right behind the allocation, as in the example of the ISA."""
    permit = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
    free = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r8, 128;"
    for second, rules in ((64, []), (256, ["larger allocation than before"])):
        more = f"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [buffer+60000], {second}; "
        more += f"ld.shared.b32 %r99, [buffer+60000];\n  {permit}"
        text = kernel("", columns=128).replace(permit, more)
        text = text.replace(free, f"{free} tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r99, {second};")
        found, _ = run(text, schedule="eager")
        assert [one.rule for one in found.diagnostics] == rules, found.explain()
