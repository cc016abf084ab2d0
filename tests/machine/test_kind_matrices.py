"""mma.sync with a kind, of sm_120a: products of narrow floats with scale factors, against numpy."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_py as cute
from cute_py.errors import InvalidValueError
from cute_py.machine.instructions.kind_matrices import kind_instruction
from tests.shares import one_in

NAMES = {
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn, "e2m1": ml_dtypes.float4_e2m1fn, "ue8m0": ml_dtypes.float8_e8m0fnu,
    "ue4m3": ml_dtypes.float8_e4m3fn,
}  # fmt: skip
LANE = np.arange(32)
ROWS, COLUMNS = LANE // 4, LANE % 4
FORMS = [
    ("mxf8f6f4", 32, 1, "ue8m0"), ("mxf4", 64, 2, "ue8m0"), ("mxf4nvf4", 64, 2, "ue8m0"),
    ("mxf4nvf4", 64, 4, "ue8m0"), ("mxf4nvf4", 64, 4, "ue4m3"),
]  # fmt: skip

KERNEL = """.version 8.8
.target sm_120a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 s, .param .u64 d) .reqntid 32
{
  .reg .b32 %r<40>; .reg .b64 %rd<16>;
  mov.u32 %r0, %tid.x;
  ld.param.u64 %rd1, [a]; mul.wide.u32 %rd6, %r0, 16; add.s64 %rd1, %rd1, %rd6;
  ld.param.u64 %rd2, [b]; mul.wide.u32 %rd7, %r0, 8; add.s64 %rd2, %rd2, %rd7;
  ld.param.u64 %rd3, [c]; mul.wide.u32 %rd8, %r0, SUMBYTES; add.s64 %rd3, %rd3, %rd8;
  ld.param.u64 %rd4, [s]; add.s64 %rd4, %rd4, %rd7; ld.param.u64 %rd5, [d]; add.s64 %rd5, %rd5, %rd8;
  ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1]; ld.global.v2.b32 {%r5, %r6}, [%rd2];
  LOADSUMS
  ld.global.v2.b32 {%r11, %r12}, [%rd4];
  MMA
  STORESUMS
  ret;
}
"""
SUMS = {
    "f32": ("16", "v4", "{%r20, %r21, %r22, %r23}", "{%r7, %r8, %r9, %r10}"),
    "f16": ("8", "v2", "{%r20, %r21}", "{%r7, %r8}"),
}
"""Type of D -> bytes of a lane's, vector, registers of D and of C."""


def text_of(opcode: str, sums: str = "f32", tail: str = "") -> str:
    """The kernel of one instruction."""
    size, vector, d, c = SUMS[sums]
    load, store = f"ld.global.{vector}.b32 {c}, [%rd3];", f"st.global.{vector}.b32 [%rd5], {d};"
    mma = f"{opcode} {d}, {{%r1, %r2, %r3, %r4}}, {{%r5, %r6}}, {c}{tail};"
    parts = {"SUMBYTES": size, "LOADSUMS": load, "STORESUMS": store, "MMA": mma}
    return re.sub("SUMBYTES|LOADSUMS|STORESUMS|MMA", lambda match: parts[match[0]], KERNEL)


def selectors(a: tuple[int, int] = (0, 0), b: tuple[int, int] = (0, 0)) -> str:
    """The operands of the scale factors."""
    return f", {{%r11}}, {{{a[0]}, {a[1]}}}, %r12, {{{b[0]}, {b[1]}}}"


def numbers(shape: tuple[int, int], element: str, dice: Any) -> tuple[Any, Any]:
    """Small numbers that a type holds, and the bytes that hold them: 4 bits in bits 2 to 5 of a byte."""
    made = dice.integers(-3, 4, shape).astype(np.float32).astype(NAMES[element])
    codes = made.view(np.uint8)
    return made.astype(np.float64), codes


def fragment(codes: Any, rows: int, k: int) -> Any:
    """Words (lane, register) of A (16 rows) or B (8 rows): a lane has 4 bytes of K of a row, and 16 bytes further on.

    Args:
        codes: (rows, K) bytes of elements of 8 bits, or of 4 bits packed by two.
    """
    words = np.ascontiguousarray(codes).view(np.uint32)
    parts = [words[ROWS + 8 * half, COLUMNS + 4 * far] for far in range(2) for half in range(rows // 8)]
    return np.stack(parts, axis=1)


def scale_words(codes: Any, operand: str, byte: int, thread: int, dice: Any) -> Any:
    """Registers (32,) with the factors (rows, factors) where the ISA has them; all other bytes are random."""
    words = dice.integers(0, 256, (32, 4)).astype(np.uint8)
    for row in range(len(codes)):
        lane = 4 * (row % 8) + 2 * thread + row // 8 if operand == "A" else 4 * row + thread
        words[lane, byte : byte + codes.shape[1]] = codes[row]
    return words.view(np.uint32)[:, 0]


def sums_of(words: Any, sums: str) -> Any:
    """(16, 8) of the words (lane, register) of D."""
    found = np.zeros((16, 8))
    values = words.view(np.float32 if sums == "f32" else np.float16).reshape(32, 4)
    for i in range(4):
        found[ROWS + 8 * (i // 2), 2 * COLUMNS + i % 2] = values[:, i]
    return found


def run(text: str, a: Any, b: Any, c: Any, scales: Any) -> tuple[Any, Any]:
    """(run, words of D)."""
    d = np.zeros_like(c)
    arguments = [np.ascontiguousarray(one) for one in (a, b, c, scales)]
    return cute.run_ptx(text, args=[*arguments, d]), d


def assembled(text: str, folder: Path) -> None:
    """ptxas takes the kernel, where there is a ptxas."""
    if shutil.which("ptxas"):
        (folder / "k.ptx").write_text(text)
        command = ["ptxas", "-arch=sm_120a", str(folder / "k.ptx"), "-o", str(folder / "k.cubin")]
        found = subprocess.run(command, capture_output=True, text=True)
        assert not found.returncode, found.stderr


def sums_before(sums: str, dice: Any) -> tuple[Any, Any]:
    """C as a matrix and as words."""
    words = dice.integers(-8, 9, (32, 4)).astype(np.float32 if sums == "f32" else np.float16)
    words = words.view(np.uint32)
    return sums_of(words, sums), words


@pytest.mark.parametrize("sums", ["f32", "f16"])
@pytest.mark.parametrize(("a", "b"), [("e4m3", "e5m2"), ("e2m1", "e3m2"), ("e2m3", "e2m1"), ("e5m2", "e4m3")])
def test_narrow_floats_without_factors(a: str, b: str, sums: str, tmp_path: Path) -> None:
    dice = np.random.default_rng(3)
    (x, first), (y, second) = numbers((16, 32), a, dice), numbers((8, 32), b, dice)
    before, c = sums_before(sums, dice)
    text = text_of(f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.{sums}.{a}.{b}.{sums}", sums)
    if sums == "f32" and a == "e4m3":
        assembled(text, tmp_path)
    bytes_of = [codes << (2 if kind == "e2m1" else 0) for codes, kind in ((first, a), (second, b))]
    found, d = run(text, fragment(bytes_of[0], 16, 32), fragment(bytes_of[1], 8, 32), c, np.zeros((32, 2), np.uint32))
    assert found.ok, found.explain()
    assert np.array_equal(sums_of(d, sums), before + x @ y.T)


@pytest.mark.parametrize(("kind", "k", "factors", "scale"), one_in(2, FORMS))
def test_blocks_with_factors(kind: str, k: int, factors: int, scale: str, tmp_path: Path) -> None:
    dice = np.random.default_rng(4)
    vector = "" if kind == "mxf4" else f".scale_vec::{factors}X"
    for step, element in enumerate(("e2m1",) if k == 64 else ("e4m3", "e2m3", "e2m1")):
        (x, first), (y, second) = numbers((16, k), element, dice), numbers((8, k), element, dice)
        before, c = sums_before("f32", dice)
        values = [np.exp2(dice.integers(-2, 3, (rows, factors))).astype(NAMES[scale]) for rows in (16, 8)]
        places = list(itertools.product(range(0, 4, factors) if factors < 4 else [0], range(2), range(4)))
        for byte, pair, lane in places if not step else places[-1:]:
            tail = selectors((byte, pair), (byte, lane))
            text = text_of(
                f"mma.sync.aligned.m16n8k{k}.row.col.kind::{kind}.block_scale{vector}.f32.{element}.{element}.f32.{scale}",
                tail=tail,
            )
            if not (byte or pair or lane) and (factors, scale) != (4, "ue8m0"):  # which ptxas has from 13.1 on
                assembled(text, tmp_path)
            if k == 64:
                held = [codes[:, ::2] | codes[:, 1::2] << 4 for codes in (first, second)]
            else:
                held = [codes << (2 if element == "e2m1" else 0) for codes in (first, second)]
            words = [
                scale_words(one.view(np.uint8), name, byte, at, dice)
                for one, name, at in zip(values, "AB", (pair, lane), strict=True)
            ]
            found, d = run(text, fragment(held[0], 16, k), fragment(held[1], 8, k), c, np.stack(words, axis=1))
            assert found.ok, found.explain()
            left, right = (
                one * np.repeat(factor.astype(np.float64), k // factors, axis=1)
                for one, factor in zip((x, y), values, strict=True)
            )
            assert np.array_equal(sums_of(d, "f32"), before + left @ right.T)


def test_the_order_of_the_words_of_an_opcode() -> None:
    cute_order = "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3"
    isa_order = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
    assert kind_instruction(cute_order) == kind_instruction(isa_order)


@pytest.mark.parametrize(
    "opcode",
    [
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue4m3",
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::2X.f32.e4m3.e4m3.f32.ue8m0",
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e4m3.e2m1.f32.ue8m0",
        "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f16",
    ],
)
def test_instructions_that_the_isa_does_not_have(opcode: str, tmp_path: Path) -> None:
    text = text_of(opcode, tail=selectors() if "block_scale" in opcode else "")
    with pytest.raises(InvalidValueError) as error:
        cute.run_ptx(text, args=[np.zeros(128, np.uint32)] * 5)
    assert "is not an instruction of the PTX ISA" in str(error.value)
    if shutil.which("ptxas"):
        with pytest.raises(AssertionError):
            assembled(text, tmp_path)


@pytest.mark.parametrize(("a", "b"), [((1, 0), (0, 0)), ((0, 2), (0, 0)), ((0, 0), (0, 4)), ((4, 0), (0, 0))])
def test_selectors_that_the_isa_does_not_have(a: tuple[int, int], b: tuple[int, int]) -> None:
    opcode = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    found, _ = run(text_of(opcode, tail=selectors(a, b)), *(np.zeros((32, n), np.uint32) for n in (4, 2, 4, 2)))
    assert [one.rule for one in found.diagnostics] == ["scale selector"]


def test_another_target() -> None:
    opcode = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32"
    with pytest.raises(InvalidValueError, match="sm_120") as error:
        cute.run_ptx(text_of(opcode).replace("sm_120a", "sm_100a"), args=[np.zeros(128, np.uint32)] * 5)
    assert "an a or f variant of sm_120 or sm_121" in str(error.value)
