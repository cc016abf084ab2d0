"""The types that instructions name, each with its width, the code that views a register row as this type, and the numpy
dtype.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cute_py.machine.threads import BOOL, F16, F32, F64, S16, S32, S64, U16, U32, U64


@dataclass(frozen=True, slots=True)
class Kind:
    """A type that instructions name: its bits, letter (b, u, s, f or p), the code that views a register row as this
    type, and the dtype of its values.
    """

    name: str
    bits: int
    letter: str
    code: int
    dtype: Any


def _kinds() -> dict[str, Kind]:
    found = {"pred": Kind("pred", 1, "p", BOOL, np.dtype(np.bool_))}
    for bits, unsigned, signed in ((8, U16, S16), (16, U16, S16), (32, U32, S32), (64, U64, S64)):
        for letter in "bus":
            dtype = np.dtype(f"{'int' if letter == 's' else 'uint'}{bits}")
            found[f"{letter}{bits}"] = Kind(
                f"{letter}{bits}", bits, letter, signed if letter == "s" else unsigned, dtype
            )
    rows = (("f16", 16, F16, np.float16), ("f32", 32, F32, np.float32), ("f64", 64, F64, np.float64))
    for name, bits, code, number in rows:
        found[name] = Kind(name, bits, "f", code, np.dtype(number))
    packed = {16: ("bf16", "e4m3x2", "e5m2x2", "ue8m0x2", "e2m1x4"), 32: ("f16x2", "bf16x2", "tf32", "u16x2", "s16x2",
              "e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4", "u8x4", "s8x4"), 64: ("f32x2",)}  # fmt: skip
    for bits, names in packed.items():
        code = {16: U16, 32: U32, 64: U64}[bits]
        for name in names:
            found[name] = Kind(name, bits, "b", code, np.dtype(f"uint{bits}"))
    found["b128"] = Kind("b128", 128, "b", U64, np.dtype(np.uint64))
    found["e2m1x2"] = Kind("e2m1x2", 8, "b", U16, np.dtype(np.uint8))
    for name in ("e2m3x2", "e3m2x2"):
        found[name] = Kind(name, 16, "b", U16, np.dtype(np.uint16))
    return found


KINDS: Final = _kinds()
