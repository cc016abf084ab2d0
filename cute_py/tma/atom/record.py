"""The record that a verified partition returns: 24 bytes, little-endian.

    +0x00  u64  tma_tensor_type      handle of the TMA tensor type
    +0x08  u32  tile_element_count   elements: per-CTA slice x num_multicast
    +0x0C  u16  flags                see `TmaFlags`
    +0x0E  u8   swizzle_mode         0 none, 2 128 bytes, 3 32 or 64 bytes
    +0x0F  u8   rank                 of the descriptor, 1 to 5
    +0x10  u64  non_exec_atom_body   handle of the atom without its run-time state

Source: the TMA Atoms reference page, Partition Result ABI.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

from cute_py.argument_checks import expect_integer, is_integer
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.tma.atom.flags import RESERVED_BITS, TmaFlags
from cute_py.tma.atom.interned import interned_objects

RECORD_BYTES: Final = 24

SWIZZLE_MODE_OF: Final[dict[int, int]] = {0: 0, 1: 3, 2: 3, 3: 2, 4: 2, 6: 2}
"""The driver's swizzle code -> the record's: 32 and 64 bytes share one number, the spans of 128 bytes another.

The reference page's numbers are neither the driver's nor the matrix descriptor's; `.cu_swizzle` is the driver's."""

_FORMAT: Final = struct.Struct("<QIHBBQ")
_LIMITS: Final = (
    ("tma_tensor_type", 0, 2**64 - 1),
    ("tile_element_count", 0, 2**32 - 1),
    ("flags", 0, 2**16 - 1),
    ("rank", 1, 5),
    ("non_exec_atom_body", 0, 2**64 - 1),
)


@dataclass(frozen=True, slots=True)
class TmaPartitionResult:
    """One verified tile. `tensor_type` and `body` are the objects behind the two handles.

    Raises:
        InvalidValueError: a field out of its range, or a reserved flag bit.

    >>> record = TmaPartitionResult(0x1000, 8192, TmaFlags.STATIC_SMEM, 2, 2, 0x2000)
    >>> record.pack().hex()
    '001000000000000000200000400002020020000000000000'
    >>> TmaPartitionResult.unpack(record.pack()) == record
    True
    """

    tma_tensor_type: int
    tile_element_count: int
    flags: TmaFlags
    swizzle_mode: int
    rank: int
    non_exec_atom_body: int

    def __post_init__(self) -> None:
        for name, low, high in _LIMITS:
            object.__setattr__(self, name, expect_integer(getattr(self, name), name, low, high))
        if not is_integer(self.swizzle_mode) or self.swizzle_mode not in (0, 2, 3):
            raise InvalidValueError(
                f"swizzle_mode = {given(self.swizzle_mode)}; must be 0 (none), 2 (128 bytes) or 3 (32 or 64 bytes)"
            )
        if int(self.flags) & RESERVED_BITS:
            raise InvalidValueError(f"flags = {int(self.flags):#06x}; bits 14 and 15 are reserved and must be 0")
        object.__setattr__(self, "flags", TmaFlags(int(self.flags)))

    def pack(self) -> bytes:
        """The 24 bytes."""
        return _FORMAT.pack(
            self.tma_tensor_type,
            self.tile_element_count,
            int(self.flags),
            self.swizzle_mode,
            self.rank,
            self.non_exec_atom_body,
        )

    @classmethod
    def unpack(cls, data: Any) -> TmaPartitionResult:
        """The record of 24 bytes.

        Raises:
            InvalidTypeError: no bytes. InvalidValueError: another length, or a field out of its range.
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise InvalidTypeError(f"a record is {RECORD_BYTES} bytes, got {type(data).__name__}")
        raw = bytes(data)
        if len(raw) != RECORD_BYTES:
            raise InvalidValueError(f"a record of {len(raw)} bytes; must be {RECORD_BYTES}")
        kind, count, flags, swizzle, rank, body = _FORMAT.unpack(raw)
        return cls(kind, count, TmaFlags(flags), swizzle, rank, body)

    @property
    def tensor_type(self) -> Any:
        """The TMA tensor type behind the first handle.

        Raises:
            InvalidValueError: the handle is of another process.
        """
        return interned_objects().resolve(self.tma_tensor_type)

    @property
    def body(self) -> Any:
        """The non-exec atom behind the second handle.

        Raises:
            InvalidValueError: the handle is of another process.
        """
        return interned_objects().resolve(self.non_exec_atom_body)

    @property
    def cu_swizzle(self) -> int:
        """The driver's swizzle code, which the record's own byte does not tell for 32 and 64 bytes.

        Raises:
            InvalidValueError: the body's handle is of another process.
        """
        return int(self.body.cu_swizzle)

    def __str__(self) -> str:
        return (
            f"tile of {self.tile_element_count} elements, rank {self.rank}, swizzle_mode {self.swizzle_mode}, "
            f"flags {int(self.flags):#06x}, type {self.tma_tensor_type:#x}, body {self.non_exec_atom_body:#x}"
        )
