"""Random operands that are the same everywhere: bits from Python's own generator, so that digests of results are kept.

Styles: `spread`, floats of exponents up to 2**6 apart from 1 and any mantissa; `any`, any bits at all. Integers are any
bits in both.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

STYLES = ("spread", "any")
FIELDS: Mapping[str, tuple[int, int]] = {
    "f16": (10, 5), "bf16": (7, 8), "tf32": (23, 8), "f32": (23, 8), "e4m3": (3, 4), "e5m2": (2, 5), "f64": (52, 11),
}  # fmt: skip
"""Float type as PTX abbreviates it -> bits of mantissa and exponent."""
FAR = 6


def random_words(kind: str, shape: tuple[int, ...], style: str, seed: int) -> Array:
    """Words of a shape: uint32, or uint64 of f64, whose elements are of a type."""
    word = np.uint64 if kind == "f64" else np.uint32
    count = int(np.prod(shape))
    raw = np.frombuffer(random.Random(seed).randbytes(count * np.dtype(word).itemsize), word).reshape(shape)
    if kind not in FIELDS or (style == "any" and kind != "f64"):
        return raw.copy()
    mantissa, exponent = FIELDS[kind]
    bits = 1 + mantissa + exponent
    elements = raw.view(f"uint{bits}")
    kind_of = elements.dtype.type
    mask = kind_of((1 << exponent) - 1)
    drawn = elements >> kind_of(mantissa) & mask
    bias = (1 << exponent - 1) - 1
    near = kind_of(bias - FAR) + drawn % kind_of(2 * FAR + 1)
    kept = elements & ~kind_of(int(mask) << mantissa)
    return (kept | near << kind_of(mantissa)).view(word)


def seed_of(*parts: object) -> int:
    """A seed from a name."""
    return int.from_bytes(hashlib.sha256(" ".join(map(str, parts)).encode()).digest()[:6], "big")


def digest(words: Array, nan: str = "") -> str:
    """A short digest of words; of a float type every NaN counts as one."""
    held = np.ascontiguousarray(words)
    if nan:
        width = {"f16": 16, "f32": 32, "f64": 64}[nan]
        elements = held.view(f"uint{width}").copy()
        elements[np.isnan(elements.view(f"float{width}"))] = (1 << width - 1) - 1
        held = elements
    return hashlib.sha256(held.tobytes()).hexdigest()[:16]
