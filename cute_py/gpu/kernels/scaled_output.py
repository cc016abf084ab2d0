"""Compile-time constants of the kernels of copies that compute: outputs, scales with their digits, and the parameter
block."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cute_py.gpu.kernels.numbers import KINDS, RULES
from cute_py.targets import WARP

TILE: Final = 128
"""Rows and columns of a tile."""
PIECE: Final = 8
"""Elements of a piece, which `Eight` holds."""
ROW_ELEMENTS: Final = 2 * PIECE
"""Elements of a vector of `scaled_rows`, except if it dequantises: then a vector is a piece."""
LANES: Final = 8
"""Number of lanes that share a row in `scaled_rows`, except if it dequantises: then a warp has one row."""
WHOLE_PIECES: Final = 8
"""Maximum number of pieces of 8 elements per thread of `scaled_whole`."""

HEAD: Final = struct.Struct("<5Qq8If3I")
"""Format of source, its scales, rows, into_rows, record; pitch; m, k, rows of the source, rows of the destination,
tiles across, magic, shift, masked element; total; tiles down; steps of the last digits of the source's scales."""
OUTPUT: Final = struct.Struct("<2Qq8I6f")
"""Format of data, scales, pitch; lines, along, rows and columns of scales, fill, steps of the last digits, spare;
totals."""


@dataclass(frozen=True, slots=True)
class Digits:
    """Map from (row, column) to the index of a scale, as (size, step) of each digit; the last digit is unbounded.

    The steps of the last digits depend on the matrix, so they are parameters of a kernel. The other digits are
    compile-time constants.
    """

    rows: tuple[tuple[int, int], ...] = ()
    columns: tuple[tuple[int, int], ...] = ()

    @property
    def steps(self) -> tuple[int, int]:
        """Steps of the last digit of a row and of a column; 0 if there is no digit."""
        row, column = (one[-1][1] if one else 0 for one in (self.rows, self.columns))
        return row, column


@dataclass(frozen=True, slots=True)
class Cover:
    """How the vectors and the grid of a kernel cover the matrix and its outputs.

    ends: whether a vector may extend past the end of a line. rows, columns: whether the rows and columns of the grid
    are those of the matrix, of each output and of its scales, without padding and without an index; the kernel then
    does not compare them with a limit.
    """

    ends: bool = True
    rows: bool = False
    columns: bool = False


ANY: Final = Cover()
"""No assumption about sizes."""


@dataclass(frozen=True, slots=True)
class RowsTile:
    """The rows of a CTA of `scaled_rows`, and the vectors of its lanes.

    threads: threads of a CTA. lanes: lanes that share a row. vector: elements of a vector. across: warps side by side
    along a row. columns, down: vectors of a lane along a row, and rows of a lane. split: whether rows that are 32 apart
    are in one warp.
    """

    threads: int
    lanes: int
    vector: int
    across: int
    columns: int
    down: int
    split: bool

    @property
    def wide(self) -> int:
        """Columns of a CTA."""
        return self.lanes * self.vector * self.across * self.columns

    @property
    def tall(self) -> int:
        """Rows of a CTA."""
        return self.threads // WARP // self.across * (WARP // self.lanes) * self.down


@dataclass(frozen=True, slots=True)
class OutputKind:
    """Compile-time constants of an output, or of a source with scales.

    kind: kind of its elements. block: rows and columns of a block; 0 for all. rule: a key of `RULES`. scale_bytes:
    bytes of a stored scale. power: whether a scale is a ue8m0. words: whether the scales of four adjacent blocks along
    the block's axis are four adjacent bytes. split: whether lines that are 32 apart have adjacent scales. vector:
    whether lines begin at multiples of 16 bytes. digits: the map to the index of a scale; the kernel's text contains
    all its steps but those of the last digits.
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
    digits: Digits = Digits()

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
            f"  static __device__ __forceinline__ u32 row(u32 x, u32 step) {{ return {_index(self.digits.rows)}; }}\n"
            f"  static __device__ __forceinline__ u32 column(u32 x, u32 step) "
            f"{{ return {_index(self.digits.columns)}; }}\n}};\n"
        )


def _index(digits: Sequence[tuple[int, int]]) -> str:
    """Return a C expression for the sum of the digits of x times their steps. `step`: the step of the last digit."""
    terms, below = [], 1
    for size, step in digits[:-1]:
        if step:
            terms.append(f"x / {below}u % {size}u * {step}u")
        below *= size
    return " + ".join([*terms, f"x / {below}u * step"])
