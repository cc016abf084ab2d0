"""Compile-time constants of the kernels of copies that compute: outputs, scales with their digits, and the parameter
block."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cute_py.gpu.kernels.numbers import KINDS, RULES

TILE: Final = 128
"""Rows and columns of a tile."""
PIECE: Final = 8
"""Elements of a piece, which `Eight` holds."""
ROW_ELEMENTS: Final = 2 * PIECE
"""Elements of a row in a lane of `scaled_rows`."""
LANES: Final = 8
"""Number of lanes that share a row."""
WHOLE_PIECES: Final = 8
"""Maximum number of pieces of 8 elements per thread of `scaled_whole`."""
STEPS: Final = 8
"""Maximum number of digits in the index of a row, and of a column, in an order of scales."""

HEAD: Final = struct.Struct("<5Qqq8If3I")
"""Format of source, its scales, rows, into_rows, record; pitch, spare; m, k, rows of the source, rows of the
destination, tiles across, magic, shift, masked element; total; tiles down; spare."""
OUTPUT: Final = struct.Struct(f"<2Qq6I{2 * STEPS}I6f2I")
"""Format of data, scales, pitch; lines, along, rows and columns of scales, fill, spare; steps; totals."""
INPUT_STEPS: Final = struct.Struct(f"<{2 * STEPS}I")


@dataclass(frozen=True, slots=True)
class Digits:
    """Map from (row, column) to the index of a scale, as (size, step) of each digit; the last digit is unbounded."""

    rows: tuple[tuple[int, int], ...]
    columns: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class OutputKind:
    """Compile-time constants of an output, or of a source with scales.

    kind: kind of its elements. block: rows and columns of a block; 0 for all. rule: a key of `RULES`. scale_bytes:
    bytes of a stored scale. power: whether a scale is a ue8m0. words: whether the scales of four adjacent blocks along
    the block's axis are four adjacent bytes. split: whether lines that are 32 apart have adjacent scales. vector:
    whether lines begin at multiples of 16 bytes. rows, columns: sizes of the digits of a row and of a column; the
    kernel computes the index of a scale from them.
    """

    kind: str
    block: tuple[int, int] = (1, 1)
    rule: str = "none"
    scale_bytes: int = 1
    power: bool = False
    words: bool = False
    split: bool = False
    vector: bool = True
    transposed: bool = False
    levels: int = 1
    mantissa: int = 0
    max_power: int = 0
    largest: float = 1.0
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()

    def text(self, name: str) -> str:
        """Return the C++ structure with these constants."""
        constants = {
            "KIND": KINDS[self.kind], "RULE": RULES[self.rule], "BR": self.block[0], "BC": self.block[1],
            "SCALE_BYTES": self.scale_bytes, "POWER": int(self.power), "WORDS": int(self.words),
            "SPLIT": int(self.split), "VECTOR": int(self.vector), "TRANSPOSED": int(self.transposed),
            "LEVELS": self.levels, "MANTISSA": self.mantissa, "MAX_POWER": self.max_power,
        }  # fmt: skip
        inside = ", ".join(f"{key} = {value}u" for key, value in constants.items())
        return (
            f"struct {name} {{\n  enum : u32 {{ {inside} }};\n"
            f"  static __device__ __forceinline__ float largest() {{ return {self.largest!r}f; }}\n"
            f"  static __device__ __forceinline__ u32 row(u32 x, const u32* s) {{ return {_index(self.rows, 0)}; }}\n"
            f"  static __device__ __forceinline__ u32 column(u32 x, const u32* s) "
            f"{{ return {_index(self.columns, STEPS)}; }}\n}};\n"
        )


def _index(sizes: Sequence[int], first: int) -> str:
    """Return a C expression for the sum of the digits of x times their steps."""
    terms, below = [], 1
    for i, size in enumerate(sizes):
        digit = f"x / {below}u" if below > 1 else "x"
        digit += f" % {size}u" if i < len(sizes) - 1 else ""
        terms.append(f"({digit}) * s[{first + i}]")
        below *= size
    return " + ".join(terms) or "0u"
