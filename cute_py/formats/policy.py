"""Table of the special cases of each cast and each rule, here and in other libraries.

A row is (subject, case, here, others). `POLICY` is data; tests run every `probe`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One special case.

    Attributes:
        subject: a cast ('cast to e4m3') or a rule ('rule floor'). case: ties, overflow, infinity, NaN, zero, subnormal,
            negative zero or another. here: the behaviour of this library. others: library -> its behaviour; empty if
            all libraries that define the case agree.
        source: how it is known. probe: (numbers, type, saturate, codes) that a test runs; None for a rule.
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

POLICY: Final = (
    PolicyRow("cast to e4m3", "ties", "to even", (), _HEADERS, ((17.0, 19.0), "e4m3", True, (0x58, 0x5A))),
    PolicyRow(
        "cast to e4m3",
        "overflow, saturating",
        "448",
        (("ml_dtypes", "NaN beyond 464"),),
        _HEADERS,
        ((449.0, 1e30, -1e30), "e4m3", True, (0x7E, 0x7E, 0xFE)),
    ),
    PolicyRow(
        "cast to e4m3",
        "overflow, not saturating",
        "NaN beyond 464, 448 up to it",
        (),
        "ml_dtypes 0.6; CUDA 13.0",
        ((464.0, 465.0), "e4m3", False, (0x7E, 0x7F)),
    ),
    PolicyRow(
        "cast to e4m3",
        "infinity, saturating",
        "448",
        (("ml_dtypes", "NaN"),),
        _HEADERS,
        ((_INF, -_INF), "e4m3", True, (0x7E, 0xFE)),
    ),
    PolicyRow(
        "cast to e4m3",
        "NaN",
        "0x7F, with the sign of the source",
        (("CUDA headers", "0x7F without the sign"),),
        "torch 2.13 and ml_dtypes keep the sign",
        ((_NAN,), "e4m3", True, (0x7F,)),
    ),
    PolicyRow(
        "cast to e4m3",
        "subnormal",
        "kept: multiples of 2^-9",
        (),
        _HEADERS,
        ((2.0**-9, 2.0**-10, 3 * 2.0**-10), "e4m3", True, (0x01, 0x00, 0x02)),
    ),
    PolicyRow(
        "cast to e4m3", "negative zero", "keeps its sign", (), _HEADERS, ((-0.0, -1e-30), "e4m3", True, (0x80, 0x80))
    ),
    PolicyRow(
        "cast to e5m2",
        "overflow, saturating",
        "57344",
        (("ml_dtypes, torch", "infinity"),),
        _HEADERS,
        ((1e30, _INF), "e5m2", True, (0x7B, 0x7B)),
    ),
    PolicyRow(
        "cast to e5m2",
        "overflow, not saturating",
        "infinity from 61440",
        (),
        _HEADERS,
        ((61439.0, 61440.0, _INF), "e5m2", False, (0x7B, 0x7C, 0x7C)),
    ),
    PolicyRow(
        "cast to e2m1",
        "ties",
        "to even",
        (("DeepGEMM", "toward zero: 2.5 is 2, and 3.5 is 3"),),
        _HEADERS,
        ((0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0), "e2m1", True, (0, 2, 2, 4, 4, 6, 6)),
    ),
    PolicyRow(
        "cast to e2m1", "overflow, infinity", "6, always", (), _HEADERS, ((7.0, _INF, -_INF), "e2m1", False, (7, 7, 15))
    ),
    PolicyRow(
        "cast to e2m1",
        "NaN",
        "6",
        (("torchao", "1.5: its bits are rounded as a number"), ("ml_dtypes", "-0")),
        _HEADERS,
        ((_NAN,), "e2m1", True, (7,)),
    ),
    PolicyRow(
        "cast to e2m1",
        "negative zero",
        "keeps its sign",
        (("TransformerEngine's Python reference", "-0 is 0"), ("DeepGEMM", "numbers that round to 0 lose their sign")),
        _HEADERS,
        ((-0.0, -0.2), "e2m1", True, (8, 8)),
    ),
    PolicyRow(
        "cast to e2m3",
        "overflow, NaN",
        "7.5, always",
        (("torchao", "NaN is 1.5"),),
        _HEADERS,
        ((8.0, _NAN), "e2m3", False, (0x1F, 0x1F)),
    ),
    PolicyRow(
        "cast to e3m2",
        "overflow, NaN",
        "28, always",
        (("torchao", "NaN is a finite number below"),),
        _HEADERS,
        ((30.0, _NAN), "e3m2", False, (0x1F, 0x1F)),
    ),
    PolicyRow(
        "cast to ue8m0, up",
        "between powers",
        "the next power; 2^-127 up to itself",
        (("torch", "to the nearest"),),
        _HEADERS,
        ((3.0, 2.0**-127, 2.0**-140), "ue8m0", True, (129, 0, 0)),
    ),
    PolicyRow(
        "cast to ue8m0, up",
        "overflow, infinity",
        "2^127 saturating; otherwise NaN",
        (),
        _HEADERS,
        ((_INF, 3.0e38), "ue8m0", True, (254, 254)),
    ),
    PolicyRow(
        "cast to ue8m0",
        "zero",
        "2^-127",
        (("ml_dtypes", "NaN"),),
        _HEADERS,
        ((0.0,), "ue8m0", True, (0,)),
    ),
    PolicyRow(
        "cast to ue8m0",
        "negative",
        "the power of the magnitude",
        (("ml_dtypes", "NaN"),),
        _HEADERS,
        ((-4.0,), "ue8m0", True, (129,)),
    ),
    PolicyRow("cast to ue8m0", "NaN", "255", (), _HEADERS, ((_NAN,), "ue8m0", True, (255,))),
    PolicyRow(
        "cast to ue4m3",
        "negative",
        "0; NaN stays NaN",
        (),
        "no conversion of PTX; CUTLASS converts to e4m3",
        ((-1.0, 1.0), "ue4m3", True, (0, 0x38)),
    ),
    PolicyRow(
        "cast to int8",
        "ties, overflow, NaN",
        "to even; saturated; 0",
        (),
        "PTX cvt.rni.sat.s8.f32; NaN is 0 there",
        ((2.5, 3.5, 200.0, -200.0, _NAN), "int8", True, (2, 4, 127, 128, 0)),
    ),
    PolicyRow(
        "cast to bf16", "overflow, not saturating", "infinity", (), "torch 2.13", ((3.4e38,), "bf16", False, (0x7F80,))
    ),
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
