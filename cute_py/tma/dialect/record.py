"""The record that a verified partition returns: its bytes, its flags, and the objects that its handles identify.

A record has 24 bytes, little-endian:

    +0x00  u64  tma_tensor_type      handle of the TMA tensor type
    +0x08  u32  tile_element_count   elements of the shared tile x num_multicast
    +0x0C  u16  flags                see `TmaFlags`
    +0x0E  u8   swizzle_mode         0 none, 2 128 bytes, 3 32 or 64 bytes
    +0x0F  u8   rank                 rank of the descriptor, 1 to 5
    +0x10  u64  non_exec_atom_body   handle of the atom without its run-time state

Source: the TMA Atoms reference page, Partition Result ABI.

The flags are 16 bits for the properties of a tile that the verifier found. The load mode sets bits 0 and 4, the store
mode or an im2col descriptor sets bit 1, and the store mode sets bits 2 and 3. The verifier's steps set bits 6 to 11, a
descriptor for tensor memory sets bit 12, and the global tensor sets bit 13. Bit 5 is never set, because the verifier
refuses sparse tiles. Bits 14 and 15 are reserved and 0.

A handle is a 64-bit number that identifies an interned object. Equal objects have the same handle, as a compiler's
interned types have one address. The number is computed from the object's text, so that the same partition packs to the
same bytes in every process. It is a multiple of 8, like an address, and never 0.
"""

from __future__ import annotations

import functools
import hashlib
import struct
import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from cute_py.argument_checks import NamedFlag, expect, expect_integer, is_integer
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.tma.dialect.atoms import NonExecTmaAtom, TmaTensorType

__all__ = ["FLAG_ROWS", "TmaFlags", "TmaPartitionResult"]


class TmaFlags(NamedFlag):
    """The flag bits, with the names of the TMA Atoms reference page.

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
        """Return one line per set bit: bit, name, meaning, and the operand that sets it.

        >>> print(TmaFlags.TWO_CTA.describe())
        bit  4  two_cta            two CTAs load together [the load mode]
        >>> print(TmaFlags(0).describe())
        no flag is set
        """
        rows = [row for row in FLAG_ROWS if int(self) >> row.bit & 1]
        lines = [f"bit {row.bit:2}  {row.name:<17}  {row.meaning} [{row.set_by}]" for row in rows]
        return "\n".join(lines) or "no flag is set"


@dataclass(frozen=True, slots=True)
class FlagRow:
    """One flag bit: its number, its name on the reference page, its meaning, and the operand or step that sets it."""

    bit: int
    name: str
    meaning: str
    set_by: str


FLAG_ROWS: Final[tuple[FlagRow, ...]] = (
    FlagRow(0, "multicast", "a multicast load, W or W128", "the load mode"),
    FlagRow(1, "im2col", "an im2col-flavoured tile", "the store mode, or a load's descriptor"),
    FlagRow(2, "im2col_w", "im2col with offsets along W", "the store mode"),
    FlagRow(3, "im2col_w128", "im2col with offsets along W, 128 wide", "the store mode"),
    FlagRow(4, "two_cta", "two CTAs load together", "the load mode"),
    FlagRow(5, "sparse", "a metadata operand is present", "nothing: the verifier refuses it"),
    FlagRow(6, "static_smem", "the shared layout is static", "step 6"),
    FlagRow(7, "static_vmap", "the CTA V-map is static", "step 6"),
    FlagRow(8, "gmem_int_stride", "the global layout has integer strides", "step 4"),
    FlagRow(9, "smem_int_stride", "the shared layout has integer strides", "step 4"),
    FlagRow(10, "shape_equiv", "shared layout and CTA V-map have the same top-level shape", "step 7"),
    FlagRow(11, "g_basis_ok", "the G-basis was computed", "step 8"),
    FlagRow(12, "s2t_descriptor", "the result wraps a shared-to-tensor-memory descriptor view", "the s2t operand"),
    FlagRow(13, "prefetch_eligible", "sizes and strides are static, so a prefetched descriptor stays valid", "gmem"),
)
"""Source: the TMA Atoms reference page, Flags Word. There, bits 6 to 13 mirror steps 4 to 7 and 11. Bit 11 can only
come from step 8, and bits 12 and 13 mirror no step, so this library chose their sources."""

RESERVED_BITS: Final = 0b11 << 14
"""Bits 14 and 15."""


_STEP = 8
"""Alignment of handles in bytes; handles look like addresses of aligned objects."""


class InternTable:
    """A table from handles to objects. It keeps its objects alive as long as it exists.

    >>> table = InternTable()
    >>> handle = table.intern(("a", 1))
    >>> table.intern(("a", 1)) == handle, table.resolve(handle), handle % 8
    (True, ('a', 1), 0)
    """

    def __init__(self) -> None:
        self._objects: dict[int, Hashable] = {}
        self._lock = threading.Lock()

    def intern(self, value: Hashable) -> int:
        """Add a hashable object to the table if it is new, and return its handle."""
        digest = hashlib.blake2b(repr(value).encode(), digest_size=8).digest()
        handle = int.from_bytes(digest, "little") & ~(_STEP - 1) or _STEP
        with self._lock:
            while handle in self._objects and self._objects[handle] != value:
                handle = (handle + _STEP) % 2**64 or _STEP
            self._objects.setdefault(handle, value)
        return handle

    def resolve(self, handle: int) -> Hashable:
        """Return the object that a handle identifies.

        Raises:
            InvalidValueError: no object of this process has this handle.
        """
        if expect_integer(handle, "a handle") not in self._objects:
            raise InvalidValueError(
                f"no object has the handle {handle:#x}",
                {"rule": "a handle is valid only in the process whose partition made it"},
            )
        return self._objects[handle]


@functools.cache
def interned_objects() -> InternTable:
    """Return the table of this process."""
    return InternTable()


RECORD_BYTES: Final = 24

SWIZZLE_MODE_OF: Final[dict[int, int]] = {0: 0, 1: 3, 2: 3, 3: 2, 4: 2, 6: 2}
"""The driver's swizzle code -> the record's number: 32 and 64 bytes share one number, the spans of 128 bytes another.

The reference page's numbers differ from the numbers of the driver and of the matrix descriptor. `.cu_swizzle` is the
driver's number."""

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
    """The record of one verified tile. `tensor_type` and `body` are the objects of the two handles.

    Raises:
        InvalidValueError: a field is out of its range, or a reserved flag bit is set.

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
            text = f"swizzle_mode = {given(self.swizzle_mode)}; must be 0 (none), 2 (128 bytes) or 3 (32 or 64 bytes)"
            raise InvalidValueError(text)
        object.__setattr__(self, "swizzle_mode", int(self.swizzle_mode))
        if int(self.flags) & RESERVED_BITS:
            raise InvalidValueError(f"flags = {int(self.flags):#06x}; bits 14 and 15 are reserved and must be 0")
        object.__setattr__(self, "flags", TmaFlags(int(self.flags)))

    def pack(self) -> bytes:
        """Return the 24 bytes of the record."""
        head = (self.tma_tensor_type, self.tile_element_count, self.flags)
        return _FORMAT.pack(*head, self.swizzle_mode, self.rank, self.non_exec_atom_body)

    @classmethod
    def unpack(cls, data: bytes | bytearray | memoryview) -> TmaPartitionResult:
        """Read the record from 24 bytes.

        Raises:
            InvalidTypeError: the data is not bytes.
            InvalidValueError: the data has another length, or a field is out of its range.
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise InvalidTypeError(f"a record must be {RECORD_BYTES} bytes, got {type(data).__name__}")
        raw = bytes(data)
        if len(raw) != RECORD_BYTES:
            raise InvalidValueError(f"the record has {len(raw)} bytes; must have {RECORD_BYTES}")
        return cls(*_FORMAT.unpack(raw))

    @property
    def tensor_type(self) -> TmaTensorType:
        """The TMA tensor type that the first handle identifies.

        Raises:
            InvalidValueError: the handle belongs to another process.
            InvalidTypeError: the handle identifies an object of another type.
        """
        return expect(interned_objects().resolve(self.tma_tensor_type), TmaTensorType, "the object of tma_tensor_type")

    @property
    def body(self) -> NonExecTmaAtom:
        """The non-exec atom that the second handle identifies. Errors as for `tensor_type`."""
        return expect(interned_objects().resolve(self.non_exec_atom_body), NonExecTmaAtom, "the object of the body")

    @property
    def cu_swizzle(self) -> int:
        """The driver's swizzle code, which also distinguishes spans of 32 and 64 bytes. Errors as for `body`."""
        return self.body.cu_swizzle

    def __str__(self) -> str:
        return (
            f"tile of {self.tile_element_count} elements, rank {self.rank}, swizzle_mode {self.swizzle_mode}, "
            f"flags {int(self.flags):#06x}, type {self.tma_tensor_type:#x}, body {self.non_exec_atom_body:#x}"
        )
