"""Where a swizzled byte of shared memory goes: one XOR of address bits, and a table of which bits.

A swizzle takes `bits` address bits that count 128-byte lines, starting at bit 7, and XORs them into the bits that
count units of `2**base` bytes inside a line:

    a -> a ^ (((a >> 7) & (2**bits - 1)) << base)

It acts on the shared-memory address, not on the offset in a tile, so that a tile that starts off the repeating
pattern is swizzled by where it lies. The 8-byte flip of one sub-mode XORs bit 3 with the lowest line bit as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cute_py.errors import InvalidValueError
from cute_py.tma.descriptor.formats import TensorMapSwizzle

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

LINE_SHIFT: Final = 7
"""log2 of the bytes of a line of 32 banks."""


@dataclass(frozen=True, slots=True)
class SwizzleRow:
    """One swizzle: span in bytes, address bits, and what is known about it."""

    kind: TensorMapSwizzle
    span: int
    """Bytes that a row takes at least; the XOR never leaves a block of this size."""
    bits: int
    base: int
    """log2 of the bytes that stay together."""
    flip: bool
    """Halves of 16 bytes change places on every other line."""
    evidence: str
    source: str

    @property
    def repeat(self) -> int:
        """Bytes after which the pattern repeats.

        >>> swizzle_row(TensorMapSwizzle.B128).repeat
        1024
        """
        return 1 << (LINE_SHIFT + self.bits) if self.bits else 1


_MEASURED: Final = "measured on NVIDIA H200, driver 580.159.04"
_PTX: Final = "PTX ISA 9.0, Swizzling Modes"
_S = TensorMapSwizzle

SWIZZLES: Final[tuple[SwizzleRow, ...]] = (
    SwizzleRow(_S.NONE, 0, 0, 4, False, "measured", _MEASURED),
    SwizzleRow(_S.B32, 32, 1, 4, False, "measured", _MEASURED),
    SwizzleRow(_S.B64, 64, 2, 4, False, "measured", _MEASURED),
    SwizzleRow(_S.B128, 128, 3, 4, False, "measured", _MEASURED),
    SwizzleRow(_S.B128_ATOM_32B, 128, 2, 5, False, "documented", _PTX),
    SwizzleRow(_S.B128_ATOM_32B_FLIP_8B, 128, 2, 5, True, "documented", _PTX),
    SwizzleRow(_S.B128_ATOM_64B, 128, 1, 6, False, "documented", _PTX),
)
"""Indexed by the driver's number."""


def swizzle_row(swizzle: int) -> SwizzleRow:
    """The row of a swizzle, from the enum or its number.

    Raises:
        InvalidValueError: no such swizzle.
    """
    if 0 <= swizzle < len(SWIZZLES):
        return SWIZZLES[swizzle]
    raise InvalidValueError(f"swizzle = {int(swizzle)}; must be 0 to {len(SWIZZLES) - 1}")


def swizzled(address: NDArray[numpy.int64], swizzle: int) -> NDArray[numpy.int64]:
    """Shared-memory addresses after the swizzle, elementwise.

    Args:
        address: byte addresses in shared memory (not offsets in a tile), any shape.
    Source:
        NONE, B32, B64, B128: measured on NVIDIA H200, driver 580.159.04. The ATOM kinds: PTX ISA 9.0, Swizzling Modes.

    >>> import numpy
    >>> swizzled(numpy.array([0, 128, 144, 896]), TensorMapSwizzle.B128).tolist()
    [0, 144, 128, 1008]
    """
    row = swizzle_row(swizzle)
    if not row.bits:
        return address
    out = address ^ (((address >> LINE_SHIFT) & ((1 << row.bits) - 1)) << row.base)
    if row.flip:
        out = out ^ (((address >> LINE_SHIFT) & 1) << 3)
    return out
