"""The flags word of a partition record: what the verifier learned about a tile, 16 bits.

Bits 0 and 4 come from the load mode, 1 to 3 from the store mode, 5 from a metadata operand, 6 to 11 from the steps of
the walk, 12 from a descriptor view for tensor memory, 13 from the global tensor. Bits 14 and 15 are reserved and 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from typing import Final


class TmaFlags(IntFlag):
    """The bits, under the names of the TMA Atoms reference page.

    >>> (TmaFlags.MULTICAST | TmaFlags.STATIC_SMEM).value
    65
    """

    MULTICAST = 1 << 0
    IM2COL = 1 << 1
    IM2COL_W = 1 << 2
    IM2COL_W128 = 1 << 3
    TWO_CTA = 1 << 4
    SPARSE = 1 << 5
    STATIC_SMEM = 1 << 6
    STATIC_VMAP = 1 << 7
    GMEM_INT_STRIDE = 1 << 8
    SMEM_INT_STRIDE = 1 << 9
    SHAPE_EQUIV = 1 << 10
    G_BASIS_OK = 1 << 11
    S2T_DESCRIPTOR = 1 << 12
    PREFETCH_ELIGIBLE = 1 << 13

    def describe(self) -> str:
        """One line per bit that is set: bit, name, meaning, and what set it.

        >>> print(TmaFlags.TWO_CTA.describe())
        bit  4  two_cta            two CTAs load together [the load mode]
        >>> print(TmaFlags(0).describe())
        no flag is set
        """
        lines = [
            f"bit {row.bit:2}  {row.name:<17}  {row.meaning} [{row.set_by}]"
            for row in FLAG_ROWS
            if int(self) >> row.bit & 1
        ]
        return "\n".join(lines) or "no flag is set"


@dataclass(frozen=True, slots=True)
class FlagRow:
    """One bit: number, name on the reference page, meaning, what sets it."""

    bit: int
    name: str
    meaning: str
    set_by: str


FLAG_ROWS: Final[tuple[FlagRow, ...]] = (
    FlagRow(0, "multicast", "a multicast load, W or W128", "the load mode"),
    FlagRow(1, "im2col", "an im2col-flavoured tile", "the store mode"),
    FlagRow(2, "im2col_w", "im2col with offsets along W", "the store mode"),
    FlagRow(3, "im2col_w128", "im2col with offsets along W, 128 wide", "the store mode"),
    FlagRow(4, "two_cta", "two CTAs load together", "the load mode"),
    FlagRow(5, "sparse", "a metadata operand is there", "the metadata operand"),
    FlagRow(6, "static_smem", "the shared layout is static", "step 6"),
    FlagRow(7, "static_vmap", "the CTA V-map is static", "step 6"),
    FlagRow(8, "gmem_int_stride", "the global layout has integer strides", "step 4"),
    FlagRow(9, "smem_int_stride", "the shared layout has integer strides", "step 4"),
    FlagRow(10, "shape_equiv", "shared layout and CTA V-map have the same top-level shape", "step 7"),
    FlagRow(11, "g_basis_ok", "the G-basis was computed", "step 8"),
    FlagRow(12, "s2t_descriptor", "the result wraps a shared-to-tensor-memory descriptor view", "the s2t operand"),
    FlagRow(13, "prefetch_eligible", "sizes and strides are static, so a prefetched descriptor stays valid", "gmem"),
)
"""Source: the TMA Atoms reference page, Flags Word. It says that bits 6 to 13 mirror steps 4 to 7 and 11; bit 11 can
only come from step 8, and 12 and 13 mirror no step, so what sets them here is a choice."""

RESERVED_BITS: Final = 0b11 << 14
"""Bits 14 and 15."""
