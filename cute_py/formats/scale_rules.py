"""Compute the scale of a block from its largest magnitude `a`, and the factor for its elements.

    rule     scale                                       of e4m3 (largest 448 = 1.75 * 2^8), a = 500
    floor    2^(floor(log2 a) - 8)                       1
    ceil     2^(ceil(log2 a) - 8)                        2
    even     floor, of a rounded to e4m3's mantissa      1
    rceil    2^ceil(log2(a / 448))                       2
    amax     a / 448, in float32                         1.116
    nvfp4    (a / 6) / tensor scale, in e4m3             -

floor, ceil, even and rceil give powers of two, which ue8m0 stores as exponents. In the table, 8 is the exponent of the
largest power of two that e4m3 represents. The special cases follow torchao 0.18; `LIKE` and `policy` list the special
cases of other libraries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cute_py.formats.numbers import Number, cast, codes, number, of_codes, to_float32

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

POWER_RULES: Final = ("floor", "ceil", "even", "rceil")
RULES: Final = (*POWER_RULES, "amax", "nvfp4")

Floats: TypeAlias = "NDArray[np.float32]"


@dataclass(frozen=True, slots=True)
class LikeRow:
    """A variant of a scale rule, with the arithmetic of one library.

    Attributes:
        rule: the rule that this is a variant of. name: the value of `like=` that selects it.
        smallest: the lower bound applied to the largest magnitude of a block (rule amax) or to a scale (rule nvfp4).
        text: the arithmetic, in float32 unless the text states another type. source: where it is defined.
    """

    rule: str
    name: str
    smallest: float
    text: str
    source: str


LIKE: Final = (
    LikeRow("amax", "cute", 0.0, "s = a / max, 1 where a is 0; element = x / s", "the definition here"),
    LikeRow(
        "amax",
        "torchao",
        1e-12,
        "r = max / max(a, 1e-12) in float64, rounded to float32; element = x * r; s = 1 / r",
        "torchao 0.18, prototype/blockwise_fp8_training/kernels.py, torch_blockwise_scale_act_quant_lhs",
    ),
    LikeRow(
        "amax",
        "deepgemm",
        1e-4,
        "s = max(a, 1e-4) / max; element = x * (1 / s)",
        "DeepGEMM, deep_gemm/utils/math.py, per_token_cast_to_fp8",
    ),
    LikeRow(
        "nvfp4",
        "torchao",
        2.0**-6,
        "t = A / 2688; s = e4m3(clamp((a / 6) / t, 2^-6, 448)); element = x * ((1 / t) / s)",
        "torchao 0.18, prototype/mx_formats/nvfp4_tensor.py, nvfp4_quantize",
    ),
    LikeRow(
        "nvfp4",
        "te",
        0.0,
        "g = min(2688 / A, float32 max), 1 where A is 0; s = e4m3(a * (g * (1/6))); "
        "element = x * min(1 / (s * (1 / g)), float32 max), 0 where s is 0; t = 1 / g",
        "TransformerEngine, tests/cpp/operator/test_cast_nvfp4_transpose.cu, quantize_nvfp4_1d",
    ),
    LikeRow(
        "nvfp4",
        "flashinfer",
        0.0,
        "g = 2688 / A; s = e4m3(g * (a * (1/6))); element = x * (1 / (s * (1 / g))), 0 where s is 0; t = 1 / g",
        "FlashInfer, tests/test_helpers/utils_fp4.py, ref_fp4_quant",
    ),
)
"""Rows of the rules. A is the largest magnitude of the tensor, and a is the largest magnitude of the block; s is the
stored scale, and t is the tensor scale."""


def variants(rule: str) -> tuple[str, ...]:
    """List the values of `like=` that a rule accepts.

    >>> variants("nvfp4")
    ('torchao', 'te', 'flashinfer')
    """
    return tuple(row.name for row in LIKE if row.rule == rule) or ("torchao",)


def power_scales(amax: Floats, rule: str, element: Number) -> tuple[NDArray[np.uint8], Floats]:
    """Compute the ue8m0 code of each block's scale, and the factor for the block's elements.

    Args:
        amax: the largest magnitude of each block, or NaN if an element is NaN. rule: one of `POWER_RULES`.
    Source:
        torchao 0.18, prototype/mx_formats/mx_tensor.py, to_mx. rceil converts the float32 quotient exactly, as cvt.rp
        does; torchao uses a float32 logarithm, which is wrong just above a power of two. OCP MX 1.0, section 6.3, for
        floor; arXiv 2506.08027 for rceil.

    >>> power_scales(np.float32([500.0, 0.0]), "rceil", number("e4m3"))
    (array([128,   0], dtype=uint8), array([0.5, 1. ], dtype=float32))
    """
    if rule == "rceil":
        with np.errstate(over="ignore", invalid="ignore"):
            quotient = amax / np.float32(element.largest)
        exponent = codes(cast(quotient, "ue8m0", rounding="up")).astype(np.int64)
        factor = _power(127 - exponent)
        factor[exponent == 0] = 1.0  # torchao and TransformerEngine do not scale such blocks
        factor[exponent == 255] = np.nan
        return exponent.astype(np.uint8), factor
    bits = amax.view(np.uint32).astype(np.int64)
    nan = np.isnan(amax)
    if rule == "even":
        bits = (bits + (1 << 22 - element.mantissa)) & ~0x7FFFFF
    exponent = (bits >> 23 & 0xFF) - 127
    if rule == "ceil":
        exponent += (bits & 0x7FFFFF) > 0
    biased = np.clip(exponent - element.max_power, -127, 128) + 127
    biased[nan] = 255
    factor = _power(127 - np.maximum(biased, 1))  # a scale of 2^-127 divides as 2^-126, as in torchao
    factor[biased == 255] = 0.0
    return biased.astype(np.uint8), factor


def _power(exponent: NDArray[np.int64]) -> Floats:
    """2^exponent for -128 <= exponent <= 127."""
    return np.ldexp(np.float32(1), exponent.astype(np.int32)).astype(np.float32)


def amax_scales(amax: Floats, element: Number, like: str) -> tuple[Floats, Floats]:
    """Compute float32 scales, and the numbers that elements are divided by (`like='cute'`) or multiplied by (all
    others)."""
    largest = np.float32(element.largest)
    with np.errstate(all="ignore"):
        if like == "torchao":
            wide = np.fmax(amax.astype(np.float64), 1e-12)
            wide[np.isnan(amax)] = np.nan
            factor: Floats = (np.float64(largest) / wide).astype(np.float32)
            inverse: Floats = (np.float32(1) / factor).astype(np.float32)
            return inverse, factor
        if like == "deepgemm":
            least: Floats = (np.maximum(amax, np.float32(1e-4)) / largest).astype(np.float32)
            upside: Floats = (np.float32(1) / least).astype(np.float32)
            return least, upside
        scale: Floats = (amax / largest).astype(np.float32)
    scale[scale == 0] = 1.0
    return scale, scale


def tensor_scale(amax: float, like: str) -> tuple[np.float32, np.float32]:
    """Compute the tensor scale of two-level NVFP4 from the largest magnitude of a tensor, and its reciprocal as the
    variant `like` computes it.

    Both are 1 if the magnitude is 0.

    >>> [float(x) for x in tensor_scale(2688.0, "torchao")], [float(x) for x in tensor_scale(0.0, "te")]
    ([1.0, 1.0], [1.0, 1.0])
    """
    one, largest, product = np.float32(1), np.float32(amax), np.float32(448.0 * 6.0)
    if largest == 0:
        return one, one
    with np.errstate(all="ignore"):
        if like == "torchao":
            found = np.float32(largest / product)
            return (found, np.float32(one / found)) if found != 0 else (one, one)
        gain = np.float32(np.minimum(product / largest, np.finfo(np.float32).max))
        return (np.float32(one / gain), gain) if gain != 0 else (one, one)


def nvfp4_scales(
    amax: Floats, total: np.float32 | None, gain: np.float32, like: str
) -> tuple[NDArray[np.uint8], Floats]:
    """Compute the e4m3 code of each block's scale, and the factor for the block's elements.

    Args:
        total: the tensor scale, or None for scales of one level. gain: the reciprocal of the tensor scale, as the
            variant computes it.
    """
    one, six = np.float32(1), np.float32(6)
    with np.errstate(all="ignore"):
        if like == "torchao":
            wanted = amax / six if total is None else (amax / six) / total
            stored = cast(np.clip(wanted, np.float32(2.0**-6), np.float32(448)), "e4m3")
            scale = to_float32(stored)
            return codes(stored).astype(np.uint8), (one if total is None else one / total) / scale
        sixth = one / six
        wanted = amax * (gain * sixth) if like == "te" else gain * (amax * sixth)
        stored = cast(np.minimum(wanted, np.float32(448)), "e4m3")
        scale = to_float32(stored)
        factor = one / (scale * (one / gain))
        if like == "te":
            factor = np.minimum(factor, np.finfo(np.float32).max)
        factor[scale == 0] = 0.0
        return codes(stored).astype(np.uint8), factor


def scale_values(stored: NDArray[Any], dtype: str) -> Floats:
    """Convert stored scales to float32. The ue8m0 code 0 becomes 2^-127, and the code 255 becomes NaN.

    >>> scale_values(np.array([127, 128], np.uint8), "ue8m0").tolist()
    [1.0, 2.0]
    """
    row = number(dtype)
    return to_float32(of_codes(stored, row) if stored.dtype.kind == "u" and row.bits == 8 else stored)
