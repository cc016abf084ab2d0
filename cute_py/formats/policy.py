"""A table of the special cases of each cast and each scale rule, in this library and in others.

`POLICY` is a tuple of `PolicyRow`; tests run every `probe` in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One special case of a cast or of a scale rule.

    Attributes:
        subject: a cast ('cast to e4m3') or a rule ('rule floor'). case: ties, overflow, infinity, NaN, zero, subnormal,
            negative zero or another. here: the behaviour of this library. others: pairs of a library and its behaviour;
            empty if all libraries that define the case agree.
        source: how the behaviour is known. probe: (numbers, type, saturate, expected codes) that a test runs; None for
            a rule.
    """

    subject: str
    case: str
    here: str
    others: tuple[tuple[str, str], ...] = ()
    source: str = ""
    probe: tuple[tuple[float, ...], str, bool, tuple[int, ...]] | None = None


_NAN: Final = float("nan")
_INF: Final = float("inf")
_HEADERS: Final = "CUDA 13.0, cuda_fp8.hpp, cuda_fp6.hpp, cuda_fp4.hpp on the host, 1,245,184 float32 numbers"

_SOURCES: Final = {
    "float32": "numpy",
    "bf16": "ml_dtypes 0.6, torch 2.13",
    "f16": "numpy, torch 2.13",
    "ue4m3": "no conversion of PTX; CUTLASS converts to e4m3",
    "int8": "PTX cvt.rni.sat.s8.f32; NaN is 0 there",
    "int4": "as int8",
}
"""Type -> the reference for casts to it, for types that CUDA's headers for narrow types do not cover."""


def _cast(
    name: str,
    case: str,
    here: str,
    numbers: tuple[float, ...],
    want: tuple[int, ...],
    others: tuple[tuple[str, str], ...] = (),
    *,
    saturate: bool = True,
) -> PolicyRow:
    """Make the row of a cast whose probe casts `numbers` to the codes `want`."""
    subject = "cast to ue8m0, up" if name == "ue8m0" else f"cast to {name}"
    return PolicyRow(subject, case, here, others, _SOURCES.get(name, _HEADERS), (numbers, name, saturate, want))


POLICY: Final = (
    _cast("float32", "ties", "to even", (1 + 2.0**-24, 1 + 3 * 2.0**-24), (0x3F800000, 0x3F800002)),
    _cast(
        "float32",
        "overflow, saturating",
        "the largest number",
        (1e39, -1e39),
        (0x7F7FFFFF, 0xFF7FFFFF),
        (("torch, numpy", "infinity"),),
    ),
    _cast(
        "float32",
        "overflow, not saturating",
        "infinity",
        (3.4028235e38, 1e39),
        (0x7F7FFFFF, 0x7F800000),
        saturate=False,
    ),
    _cast(
        "float32",
        "infinity, saturating",
        "the largest number",
        (_INF, -_INF),
        (0x7F7FFFFF, 0xFF7FFFFF),
        (("torch, numpy", "infinity"),),
    ),
    _cast("float32", "infinity, not saturating", "infinity", (_INF, -_INF), (0x7F800000, 0xFF800000), saturate=False),
    _cast("float32", "NaN", "the quiet NaN, with the sign of the source", (_NAN,), (0x7FC00000,)),
    _cast("float32", "zero", "0", (0.0,), (0,)),
    _cast("float32", "negative zero", "keeps its sign", (-0.0,), (0x80000000,)),
    _cast("float32", "subnormal", "kept: multiples of 2^-149", (2.0**-149, 2.0**-150, 3 * 2.0**-150), (1, 0, 2)),
    _cast(
        "bf16",
        "ties",
        "to even",
        (1 + 2.0**-8, 1 + 3 * 2.0**-8),
        (0x3F80, 0x3F82),
        (("torch, ml_dtypes", "round float64 twice: to float32 first"),),
    ),
    _cast(
        "bf16",
        "overflow, saturating",
        "the largest number",
        (3.4e38, -3.4e38),
        (0x7F7F, 0xFF7F),
        (("torch, ml_dtypes", "infinity"),),
    ),
    _cast("bf16", "overflow, not saturating", "infinity", (3.39e38, 3.4e38), (0x7F7F, 0x7F80), saturate=False),
    _cast(
        "bf16",
        "infinity, saturating",
        "the largest number",
        (_INF, -_INF),
        (0x7F7F, 0xFF7F),
        (("torch, ml_dtypes", "infinity"),),
    ),
    _cast("bf16", "infinity, not saturating", "infinity", (_INF, -_INF), (0x7F80, 0xFF80), saturate=False),
    _cast(
        "bf16",
        "NaN",
        "0x7FC0, with the sign of the source",
        (_NAN,),
        (0x7FC0,),
        (("torch", "0xFFFF for both signs, in vectors of a CPU"),),
    ),
    _cast("bf16", "zero", "0", (0.0,), (0,)),
    _cast("bf16", "negative zero", "keeps its sign", (-0.0,), (0x8000,)),
    _cast("bf16", "subnormal", "kept: multiples of 2^-133", (2.0**-133, 2.0**-134, 3 * 2.0**-134), (1, 0, 2)),
    _cast(
        "f16",
        "ties",
        "to even",
        (1 + 2.0**-11, 1 + 3 * 2.0**-11),
        (0x3C00, 0x3C02),
        (("torch", "rounds float64 twice: to float32 first"),),
    ),
    _cast(
        "f16", "overflow, saturating", "65504", (65520.0, -1000000.0), (0x7BFF, 0xFBFF), (("torch, numpy", "infinity"),)
    ),
    _cast(
        "f16", "overflow, not saturating", "infinity from 65520", (65519.0, 65520.0), (0x7BFF, 0x7C00), saturate=False
    ),
    _cast("f16", "infinity, saturating", "65504", (_INF, -_INF), (0x7BFF, 0xFBFF), (("torch, numpy", "infinity"),)),
    _cast("f16", "infinity, not saturating", "infinity", (_INF, -_INF), (0x7C00, 0xFC00), saturate=False),
    _cast(
        "f16",
        "NaN",
        "0x7E00, with the sign of the source",
        (_NAN,),
        (0x7E00,),
        (("torch, numpy", "keep bits of the payload"),),
    ),
    _cast("f16", "zero", "0", (0.0,), (0,)),
    _cast("f16", "negative zero", "keeps its sign", (-0.0, -178405961588245 * 2.0**-147), (0x8000, 0x8000)),
    _cast("f16", "subnormal", "kept: multiples of 2^-24", (2.0**-24, 2.0**-25, 3 * 2.0**-25), (1, 0, 2)),
    _cast(
        "e5m2",
        "ties",
        "to even",
        (1.125, 1.375),
        (0x3C, 0x3E),
        (("torch, ml_dtypes", "round float64 twice: to float32 first"),),
    ),
    _cast("e5m2", "overflow, saturating", "57344", (1e30, -1e30), (0x7B, 0xFB), (("ml_dtypes, torch", "infinity"),)),
    _cast("e5m2", "overflow, not saturating", "infinity from 61440", (61439.0, 61440.0), (0x7B, 0x7C), saturate=False),
    _cast("e5m2", "infinity, saturating", "57344", (_INF, -_INF), (0x7B, 0xFB), (("ml_dtypes, torch", "infinity"),)),
    _cast("e5m2", "infinity, not saturating", "infinity", (_INF, -_INF), (0x7C, 0xFC), saturate=False),
    _cast(
        "e5m2",
        "NaN",
        "0x7F, with the sign of the source",
        (_NAN,),
        (0x7F,),
        (("ml_dtypes", "0x7E with the sign"), ("CUDA headers", "0x7F without the sign")),
    ),
    _cast("e5m2", "zero", "0", (0.0,), (0,)),
    _cast("e5m2", "negative zero", "keeps its sign", (-0.0, -178405961588245 * 2.0**-147), (0x80, 0x80)),
    _cast("e5m2", "subnormal", "kept: multiples of 2^-16", (2.0**-16, 2.0**-17, 3 * 2.0**-17), (1, 0, 2)),
    _cast(
        "e4m3",
        "ties",
        "to even",
        (17.0, 19.0),
        (0x58, 0x5A),
        (("torch, ml_dtypes", "round float64 twice: to float32 first"),),
    ),
    _cast(
        "e4m3",
        "overflow, saturating",
        "448",
        (449.0, 1e30, -1e30),
        (0x7E, 0x7E, 0xFE),
        (("ml_dtypes", "NaN beyond 464"),),
    ),
    _cast(
        "e4m3", "overflow, not saturating", "NaN beyond 464, 448 up to it", (464.0, 465.0), (0x7E, 0x7F), saturate=False
    ),
    _cast("e4m3", "infinity, saturating", "448", (_INF, -_INF), (0x7E, 0xFE), (("ml_dtypes", "NaN"),)),
    _cast("e4m3", "infinity, not saturating", "NaN", (_INF, -_INF), (0x7F, 0xFF), saturate=False),
    _cast(
        "e4m3",
        "NaN",
        "0x7F, with the sign of the source",
        (_NAN,),
        (0x7F,),
        (("CUDA headers", "0x7F without the sign"),),
    ),
    _cast("e4m3", "zero", "0", (0.0,), (0,)),
    _cast("e4m3", "negative zero", "keeps its sign", (-0.0, -178405961588245 * 2.0**-147), (0x80, 0x80)),
    _cast("e4m3", "subnormal", "kept: multiples of 2^-9", (0.001953125, 0.0009765625, 0.0029296875), (1, 0, 2)),
    _cast(
        "e3m2",
        "ties",
        "to even",
        (1.125, 1.375),
        (0x0C, 0x0E),
        (("ml_dtypes", "rounds float64 twice: to float32 first"),),
    ),
    _cast("e3m2", "overflow, saturating", "28", (30.0, -1000000000.0), (0x1F, 0x3F)),
    _cast("e3m2", "overflow, not saturating", "28, always", (30.0, 1000000000.0), (0x1F, 0x1F), saturate=False),
    _cast("e3m2", "infinity, saturating", "28", (_INF, -_INF), (0x1F, 0x3F)),
    _cast("e3m2", "infinity, not saturating", "28, always", (_INF, -_INF), (0x1F, 0x3F), saturate=False),
    _cast(
        "e3m2",
        "NaN",
        "28",
        (_NAN,),
        (0x1F,),
        (("torchao", "a number below 28: its bits are rounded as a number"), ("ml_dtypes", "-0")),
    ),
    _cast("e3m2", "zero", "0", (0.0,), (0,)),
    _cast("e3m2", "negative zero", "keeps its sign", (-0.0, -178405961588245 * 2.0**-147), (0x20, 0x20)),
    _cast("e3m2", "subnormal", "kept: multiples of 2^-4", (0.0625, 0.03125, 0.09375), (1, 0, 2)),
    _cast(
        "e2m3",
        "ties",
        "to even",
        (1.0625, 1.1875),
        (8, 0x0A),
        (("ml_dtypes", "rounds float64 twice: to float32 first"),),
    ),
    _cast("e2m3", "overflow, saturating", "7.5", (8.0, -1000000000.0), (0x1F, 0x3F)),
    _cast("e2m3", "overflow, not saturating", "7.5, always", (8.0, 1000000000.0), (0x1F, 0x1F), saturate=False),
    _cast("e2m3", "infinity, saturating", "7.5", (_INF, -_INF), (0x1F, 0x3F)),
    _cast("e2m3", "infinity, not saturating", "7.5, always", (_INF, -_INF), (0x1F, 0x3F), saturate=False),
    _cast(
        "e2m3",
        "NaN",
        "7.5",
        (_NAN,),
        (0x1F,),
        (("torchao", "1.5: its bits are rounded as a number"), ("ml_dtypes", "-0")),
    ),
    _cast("e2m3", "zero", "0", (0.0,), (0,)),
    _cast("e2m3", "negative zero", "keeps its sign", (-0.0, -178405961588245 * 2.0**-147), (0x20, 0x20)),
    _cast("e2m3", "subnormal", "kept: multiples of 2^-3", (0.125, 0.0625, 0.1875), (1, 0, 2)),
    _cast(
        "e2m1",
        "ties",
        "to even",
        (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0),
        (0, 2, 2, 4, 4, 6, 6),
        (("DeepGEMM", "toward zero: 2.5 is 2, and 3.5 is 3"),),
    ),
    _cast("e2m1", "overflow, saturating", "6", (7.0, -1000000000.0), (7, 0x0F)),
    _cast("e2m1", "overflow, not saturating", "6, always", (7.0, 1000000000.0), (7, 7), saturate=False),
    _cast("e2m1", "infinity, saturating", "6", (_INF, -_INF), (7, 0x0F)),
    _cast("e2m1", "infinity, not saturating", "6, always", (_INF, -_INF), (7, 0x0F), saturate=False),
    _cast(
        "e2m1", "NaN", "6", (_NAN,), (7,), (("torchao", "1.5: its bits are rounded as a number"), ("ml_dtypes", "-0"))
    ),
    _cast("e2m1", "zero", "0", (0.0,), (0,)),
    _cast(
        "e2m1",
        "negative zero",
        "keeps its sign",
        (-0.0, -178405961588245 * 2.0**-147),
        (8, 8),
        (("TransformerEngine's Python reference", "-0 is 0"), ("DeepGEMM", "numbers that round to 0 lose their sign")),
    ),
    _cast("e2m1", "subnormal", "kept: 0.5", (0.5, 0.25, 0.75), (1, 0, 2)),
    _cast("ue4m3", "ties", "to even", (17.0, 19.0), (0x58, 0x5A)),
    _cast("ue4m3", "overflow, saturating", "448", (449.0, 1e30), (0x7E, 0x7E)),
    _cast(
        "ue4m3",
        "overflow, not saturating",
        "NaN beyond 464, 448 up to it",
        (464.0, 465.0),
        (0x7E, 0x7F),
        saturate=False,
    ),
    _cast("ue4m3", "infinity, saturating", "448", (_INF,), (0x7E,)),
    _cast("ue4m3", "infinity, not saturating", "NaN", (_INF,), (0x7F,), saturate=False),
    _cast("ue4m3", "NaN", "0x7F", (_NAN,), (0x7F,)),
    _cast("ue4m3", "zero", "0", (0.0,), (0,)),
    _cast("ue4m3", "negative zero", "0", (-0.0, -178405961588245 * 2.0**-147), (0, 0)),
    _cast("ue4m3", "subnormal", "kept: multiples of 2^-9", (0.001953125, 0.0009765625, 0.0029296875), (1, 0, 2)),
    _cast("ue4m3", "negative", "0; NaN stays NaN", (-1.0, 1.0), (0, 0x38)),
    _cast(
        "ue8m0",
        "ties",
        "the next power: it rounds up",
        (3.0, 1.5, 2.0**-127),
        (0x81, 0x80, 0),
        (("torch, ml_dtypes", "to the nearest power"),),
    ),
    _cast("ue8m0", "overflow, saturating", "2^127", (3e38, -3e38), (0xFE, 0xFE), (("torch, ml_dtypes", "NaN"),)),
    _cast("ue8m0", "overflow, not saturating", "NaN above 2^127", (1.7e38, 3e38), (0xFE, 0xFF), saturate=False),
    _cast("ue8m0", "infinity, saturating", "2^127", (_INF,), (0xFE,), (("torch, ml_dtypes", "NaN"),)),
    _cast("ue8m0", "infinity, not saturating", "NaN", (_INF,), (0xFF,), saturate=False),
    _cast("ue8m0", "NaN", "255", (_NAN,), (0xFF,)),
    _cast("ue8m0", "zero", "2^-127", (0.0,), (0,), (("ml_dtypes", "NaN"),)),
    _cast("ue8m0", "negative zero", "2^-127", (-0.0,), (0,), (("ml_dtypes", "NaN"),)),
    _cast(
        "ue8m0", "subnormal", "2^-127 up to itself, 2^-126 above it", (2.0**-127, 2.0**-140, 3 * 2.0**-128), (0, 0, 1)
    ),
    _cast("ue8m0", "negative", "the power of the magnitude", (-4.0, -3.0), (0x81, 0x81), (("ml_dtypes", "NaN"),)),
    _cast("int8", "ties", "to even", (2.5, 3.5, -2.5), (2, 4, 0xFE), (("torch, numpy", "toward zero: 3.5 is 3"),)),
    _cast(
        "int8",
        "overflow, saturating",
        "127, or -128",
        (200.0, -200.0),
        (0x7F, 0x80),
        (("torch, numpy", "the low 8 bits: 200 is -56"),),
    ),
    _cast("int8", "overflow, not saturating", "127, or -128, always", (128.0, -129.0), (0x7F, 0x80), saturate=False),
    _cast("int8", "infinity, saturating", "127, or -128", (_INF, -_INF), (0x7F, 0x80), (("torch, numpy", "0"),)),
    _cast("int8", "infinity, not saturating", "127, or -128, always", (_INF, -_INF), (0x7F, 0x80), saturate=False),
    _cast("int8", "NaN", "0", (_NAN,), (0,)),
    _cast("int8", "zero", "0", (0.0,), (0,)),
    _cast("int8", "negative zero", "0", (-0.0, -178405961588245 * 2.0**-147), (0, 0)),
    _cast("int8", "subnormal", "0", (0.25, -0.25), (0, 0)),
    _cast("int4", "ties", "to even", (2.5, 3.5, -2.5), (2, 4, 0x0E), (("ml_dtypes", "toward zero: 3.5 is 3"),)),
    _cast(
        "int4", "overflow, saturating", "7, or -8", (8.0, -9.0), (7, 8), (("ml_dtypes", "the low 4 bits: 200 is -8"),)
    ),
    _cast("int4", "overflow, not saturating", "7, or -8, always", (8.0, -9.0), (7, 8), saturate=False),
    _cast("int4", "infinity, saturating", "7, or -8", (_INF, -_INF), (7, 8), (("ml_dtypes", "0"),)),
    _cast("int4", "infinity, not saturating", "7, or -8, always", (_INF, -_INF), (7, 8), saturate=False),
    _cast("int4", "NaN", "0", (_NAN,), (0,)),
    _cast("int4", "zero", "0", (0.0,), (0,)),
    _cast("int4", "negative zero", "0", (-0.0, -178405961588245 * 2.0**-147), (0, 0)),
    _cast("int4", "subnormal", "0", (0.25, -0.25), (0, 0)),
    PolicyRow(
        "cast to ue8m0, toward zero",
        "between powers",
        "the power below; 2^-127 for smaller numbers",
        (("torch, ml_dtypes", "to the nearest power"),),
        _HEADERS,
    ),
    PolicyRow(
        "element x scale",
        "NaN",
        "an element that is NaN keeps its sign; any other element gets the sign of the scale's NaN",
        (("numpy, torch", "if both are NaN, the sign depends on the place of the element and on the processor"),),
        "numpy 2.4 on x86-64; tests/contract, every element with every scale",
    ),
    PolicyRow(
        "element x scale",
        "infinity x 0",
        "a negative NaN",
        (("numpy, torch", "a negative NaN on x86-64, a positive one on Arm"),),
        "Intel 64 SDM, volume 1, 4.8.3.7; Arm ARM, FPCR.DN; tests/contract",
    ),
    PolicyRow("rule floor", "ties", "none: the exponent of the largest magnitude counts", (), "torchao 0.18"),
    PolicyRow("rule ceil", "ties", "none: a power of two keeps its exponent", (), "torchao 0.18"),
    PolicyRow("rule even", "ties", "half of the last bit of the mantissa rounds up", (), "torchao 0.18"),
    PolicyRow("all power rules", "negative zero", "elements keep their sign", (), "torchao 0.18, one million blocks"),
    PolicyRow("rule rceil", "block of zeros", "scale 2^-127, elements 0", (), "torchao 0.18, one million blocks"),
    PolicyRow(
        "rule rceil",
        "subnormal block",
        "scale 2^-127, elements are not scaled: 0",
        (("OCP MX", "divided by 2^-127"),),
        "torchao 0.18",
    ),
    PolicyRow("rule amax", "NaN in a block", "scale and elements NaN", (), "torchao 0.18"),
    PolicyRow(
        "rule amax", "infinity in a block", "scale infinite, its elements NaN and all others 0", (), "torchao 0.18"
    ),
    PolicyRow("rule amax", "negative zero", "elements keep their sign", (), "torchao 0.18"),
    PolicyRow(
        "rule amax",
        "subnormal block",
        "a subnormal float32 scale",
        (("torchao", "scale 1e-12 / 448, elements 0"), ("deepgemm", "scale 1e-4 / 448, elements 0")),
        "depends on `like`",
    ),
    PolicyRow(
        "rule nvfp4",
        "NaN in a block",
        "scale of the block NaN; the tensor scale ignores NaN",
        (("torchao", "the tensor scale is NaN, and so are all scales"),),
        "torchao 0.18",
    ),
    PolicyRow(
        "rule nvfp4",
        "infinity in a block",
        "one level: scale 448; two levels: the tensor scale is infinite, and the numbers are NaN",
        (),
        "torchao 0.18",
    ),
    PolicyRow(
        "rule nvfp4",
        "negative zero",
        "elements keep their sign",
        (("TransformerEngine's Python reference", "-0 is 0"),),
        "torchao 0.18",
    ),
    PolicyRow("rule nvfp4", "overflow", "scales of blocks are at most 448; elements saturate", (), "torchao 0.18"),
    PolicyRow(
        "rules floor, ceil, even", "block of zeros", "scale 2^-127, elements 0", (), "torchao 0.18, one million blocks"
    ),
    PolicyRow(
        "rules floor, ceil, even",
        "scale of 2^-127",
        "elements are divided by 2^-126, half the divisor that the scale implies",
        (("OCP MX", "divided by the scale"),),
        "torchao 0.18",
    ),
    PolicyRow(
        "rules floor, ceil, even",
        "infinity in a block",
        "scale from exponent 128; the infinity saturates",
        (),
        "torchao 0.18, one million blocks",
    ),
    PolicyRow(
        "all power rules",
        "NaN in a block",
        "scale 255, so that every number of the block is NaN",
        (("torchao", "the same scale; the bits of fp4 and fp6 elements differ"),),
        "torchao 0.18",
    ),
    PolicyRow(
        "rule rceil",
        "a / max just above 2^e",
        "2^(e+1), as cvt.rp",
        (("torchao 0.18", "2^e: its float32 logarithm rounds to e"),),
        "CUDA 13.0, cuda_fp8.hpp; one million blocks",
    ),
    PolicyRow(
        "rule rceil", "scale code 0", "elements are not scaled", (("OCP MX", "divided by 2^-127"),), "torchao 0.18"
    ),
    PolicyRow(
        "rule rceil", "infinity in a block", "scale 2^127 (satfinite)", (("torchao after 0.18", "255"),), "torchao 0.18"
    ),
    PolicyRow(
        "rule amax",
        "block of zeros",
        "scale 1",
        (("torchao", "1e-12 / 448"), ("deepgemm", "1e-4 / 448")),
        ("depends on `like`"),
    ),
    PolicyRow("rule nvfp4", "block of zeros", "torchao: scale 2^-6; te, flashinfer: scale 0", (), "depends on `like`"),
    PolicyRow(
        "rule nvfp4", "tensor of zeros", "tensor scale 1", (("torchao", "0 / 0: every scale is NaN"),), "torchao 0.18"
    ),
    PolicyRow(
        "rule nvfp4",
        "small blocks",
        "torchao: scales are at least 2^-6; te, flashinfer: at least 2^-9, then 0",
        (),
        "depends on `like`",
    ),
)
