"""Shared-memory descriptors: the 64 bits that describe an operand of wgmma or tcgen05.

    bits     tcgen05 (UMMA)                       wgmma (GMMA)
    0-13     start address / 16                   the same
    16-29    leading-dimension offset / 16, LBO   the same
    32-45    stride-dimension offset / 16, SBO    the same
    46-48    version, 0b001                       -
    49-51    base offset                          the same
    52       leading offset is an address         -
    61-63    swizzle 0, 6, 4, 2 or 1              62-63: 0, 3, 2 or 1

All byte offsets are multiples of 16. Like the fields, this module counts them in 16-byte units. The meaning of LBO and
SBO depends on the major mode and the swizzle. In 16-byte units, the layout of the operand is

    K-major      ((8,n),2)        8 rows, n times, SBO apart; without a swizzle, 16 bytes and the next 16 LBO apart
    MN-major     ((W,n),(8,k))    W units along M|N, n times, LBO apart; 8 of K, k times, SBO apart (4 with atoms of
                                  32 bytes); without a swizzle the two are exchanged

`smem_layouts` makes descriptors from layouts.
Source: PTX ISA, "Shared Memory Descriptor" (tcgen05, Table 40; wgmma, 9.7.15.5.1.2.2) and "Canonical Layouts";
cute/arch/mma_sm90_desc.hpp, mma_sm100_desc.hpp.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from cute_py.argument_checks import NamedEnum, expect, expect_choice, expect_integer, is_integer
from cute_py.diagnostics import Diagnostic
from cute_py.errors import InvalidTypeError, InvalidValueError, TensorAccessError, TmemError, given
from cute_py.targets import architecture

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Place = TypeVar("Place", int, NDArray[numpy.int64])

UNIT_BYTES: Final = 16
"""Bytes of one unit of a descriptor."""
ADDRESS_MASK: Final = 0x3FFFF
"""Shared-memory addresses are read modulo 256 KiB."""
START_MASK: Final = 0x3FFF
_LOW: Final = 0xFFFFFFFF
_HEXADECIMAL: Final = re.compile(r"0[xX][0-9a-fA-F]{1,32}")


def _read_bits(text: str) -> int:
    """Read a descriptor from its text in hexadecimal."""
    if not _HEXADECIMAL.fullmatch(text.strip()):
        hint = "an integer, or a text in hexadecimal such as '0x4000004000010002'"
        raise InvalidValueError(f"a matrix descriptor is {given(text)}; must be a number in hexadecimal", hint=hint)
    return int(text.strip(), 16)


class Major(NamedEnum, StrEnum):
    """The mode of an operand that is contiguous in memory; each member equals its name.

    >>> Major.K == "K", f"{Major.MN}"
    (True, 'MN')
    """

    K = "K"
    MN = "MN"


class DescriptorKind(NamedEnum):
    """The family of instructions that read a descriptor.

    >>> [kind.value for kind in DescriptorKind]
    ['tcgen05', 'wgmma']
    """

    TCGEN05 = "tcgen05"
    WGMMA = "wgmma"

    @property
    def cute(self) -> str:
        """CuTe's name for these descriptors."""
        return "umma" if self is DescriptorKind.TCGEN05 else "gmma"


class SmemSwizzle(NamedEnum, IntEnum):
    """The swizzle of an operand, numbered as in TVM; `SWIZZLE_CODES` has the codes of the hardware.

    >>> SmemSwizzle.B128, int(SmemSwizzle.B128)
    (<SmemSwizzle.B128: 3>, 3)
    """

    NONE = 0
    B32 = 1
    B64 = 2
    B128 = 3
    B128_ATOM32 = 4

    @property
    def row_bytes(self) -> int:
        """Length of a row of the swizzle atom in bytes; 16 without a swizzle."""
        return (16, 32, 64, 128, 128)[self]

    @property
    def cute(self) -> tuple[int, int, int]:
        """The swizzle of byte addresses in CuTe's notation: (bits, base, shift)."""
        return ((0, 4, 3), (1, 4, 3), (2, 4, 3), (3, 4, 3), (2, 5, 2))[self]

    @property
    def period(self) -> int:
        """The period of the pattern, in bytes. A base offset of 0 implies this alignment."""
        return (16, 256, 512, 1024, 1024)[self]

    def of(self, address: int) -> int:
        """Return the byte address that this swizzle maps `address` to.

        >>> SmemSwizzle.B128.of(128)
        144
        """
        return swizzled(expect_integer(address, "address"), self)


def swizzled(address: Place, swizzle: SmemSwizzle) -> Place:
    """Return the byte address that `swizzle` maps `address` to; `address` is an int or an array. The map is its own
    inverse."""
    bits, base, shift = swizzle.cute
    return address ^ ((address >> shift) & (((1 << bits) - 1) << base))


SWIZZLE_CODES: dict[DescriptorKind, dict[SmemSwizzle, int]] = {
    DescriptorKind.TCGEN05: {
        SmemSwizzle.NONE: 0,
        SmemSwizzle.B128_ATOM32: 1,
        SmemSwizzle.B128: 2,
        SmemSwizzle.B64: 4,
        SmemSwizzle.B32: 6,
    },
    DescriptorKind.WGMMA: {SmemSwizzle.NONE: 0, SmemSwizzle.B128: 1, SmemSwizzle.B64: 2, SmemSwizzle.B32: 3},
}


@dataclass(frozen=True, slots=True)
class DescriptorField:
    name: str
    low: int
    width: int
    meaning: str

    @property
    def mask(self) -> int:
        return ((1 << self.width) - 1) << self.low


_OFFSETS = (
    DescriptorField("start", 0, 14, "start address"),
    DescriptorField("leading", 16, 14, "leading-dimension offset"),
    DescriptorField("stride", 32, 14, "stride-dimension offset"),
)
BIT_FIELDS: dict[DescriptorKind, tuple[DescriptorField, ...]] = {
    DescriptorKind.TCGEN05: (
        *_OFFSETS,
        DescriptorField("version", 46, 3, "version, fixed 0b001"),
        DescriptorField("base_offset", 49, 3, "base offset of the swizzle pattern"),
        DescriptorField("leading_is_address", 52, 1, "leading offset is an absolute address"),
        DescriptorField("swizzle", 61, 3, "swizzle"),
    ),
    DescriptorKind.WGMMA: (
        *_OFFSETS,
        DescriptorField("base_offset", 49, 3, "base offset of the swizzle pattern"),
        DescriptorField("swizzle", 62, 2, "swizzle"),
    ),
}


@dataclass(frozen=True, slots=True)
class SmemDescriptor:
    """The fields of a descriptor. `int(descriptor)` is its 64 bits; properties have C++'s names of the fields.

    Args:
        start, leading, stride: in 16-byte units, 14 bits each.
        base_offset: (address of the pattern's start >> 7) & 7; 0 if the pattern starts at a multiple of its period.
        version: 1 for tcgen05; wgmma descriptors have no version, and this field stays 1.
        leading_is_address: `leading` is an address / 16, not an offset (only on sm_103a, with 48 bytes along K).
        residue: bits without a field, which are kept so that encode(decode(x)) is x.
    Raises:
        TmemError: a field does not fit in its bits, or the kind lacks the field; the error lists all such fields.

    >>> hex(SmemDescriptor(start=0, leading=16, stride=8).encode())
    '0x400800100000'
    """

    start: int
    leading: int
    stride: int
    swizzle: SmemSwizzle = SmemSwizzle.NONE
    kind: DescriptorKind = DescriptorKind.TCGEN05
    base_offset: int = 0
    version: int = 1
    leading_is_address: bool = False
    residue: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", as_kind(self.kind))
        for name in ("start", "leading", "stride", "base_offset", "version", "residue"):
            object.__setattr__(self, name, expect_integer(getattr(self, name), name))
        object.__setattr__(self, "swizzle", as_swizzle(self.swizzle))
        expect(self.leading_is_address, bool, "leading_is_address")
        reasons = self.violations()
        if reasons:
            raise TmemError(reasons[0], {f"and {n}": reason for n, reason in enumerate(reasons[1:], 2)})

    def violations(self) -> list[str]:
        """Return a sentence for every field that does not fit in its bits; empty for a valid descriptor."""
        out = []
        for field in BIT_FIELDS[self.kind]:
            value = getattr(self, field.name)
            if field.name == "swizzle":
                if value not in SWIZZLE_CODES[self.kind]:
                    out.append(f"a {self.kind.value} descriptor has no code for the swizzle {value.name}")
            elif not 0 <= value < 1 << field.width:
                unit = " (16-byte units)" if field in _OFFSETS else ""
                out.append(f"{field.name} = {value}{unit}; must be within 0..{(1 << field.width) - 1}")
        if self.kind is DescriptorKind.WGMMA and self.leading_is_address:
            out.append("leading_is_address = True; must be False in a wgmma descriptor")
        if self.residue & (_held(self.kind)) or not 0 <= self.residue < 1 << 64:
            out.append(f"residue = {self.residue:#x}; must not overlap a field")
        return out

    def restrictions(self, arch: str | None = None) -> list[str]:
        """Return the messages of `check` as strings."""
        return [found.text for found in self.check(arch)]

    def check(self, arch: str | None = None) -> list[Diagnostic]:
        """List the rules of the PTX ISA that fields break although they fit. `arch` is a name such as `sm_103a`.

        >>> SmemDescriptor(0, 16, 8, version=0).check()
        [Diagnostic(rule='version', text='version = 0; must be 1')]
        """
        if arch is not None:
            architecture(arch)
        is_address = self.leading_is_address
        rules = (
            ("version", self.version == 1 or self.kind is DescriptorKind.WGMMA, f"version = {self.version}; must be 1"),
            (
                "leading",
                not is_address or (self.swizzle is SmemSwizzle.B128 and not self.base_offset),
                "leading_is_address = True; must be False without the 128-byte swizzle and a base offset of 0",
            ),
            (
                "target",
                not is_address or arch in (None, "sm_103a"),
                f"leading_is_address = True; must be False on {arch}, because only sm_103a has this mode",
            ),
            ("residue", not self.residue, f"residue = {self.residue:#x}; reserved bits must be 0"),
        )
        return [Diagnostic(rule, text=text) for rule, holds, text in rules if not holds]

    @property
    def start_address(self) -> int:
        """C++'s `start_address_`, in 16-byte units like all offsets."""
        return self.start

    @property
    def leading_byte_offset(self) -> int:
        return self.leading

    @property
    def stride_byte_offset(self) -> int:
        return self.stride

    @property
    def layout_type(self) -> int:
        """The swizzle's code in the hardware's encoding."""
        return SWIZZLE_CODES[self.kind][self.swizzle]

    @property
    def lbo_mode(self) -> int:
        """1 if the leading offset is an address, otherwise 0."""
        return int(self.leading_is_address)

    def encode(self) -> int:
        """Return the 64-bit value of the descriptor."""
        value = self.residue
        for field in BIT_FIELDS[self.kind]:
            held = getattr(self, field.name)
            code = SWIZZLE_CODES[self.kind][held] if field.name == "swizzle" else int(held)
            value |= code << field.low
        return value

    __index__ = encode
    __int__ = encode

    @classmethod
    def decode(cls, value: int | str, kind: DescriptorKind = DescriptorKind.TCGEN05) -> SmemDescriptor:
        """Read the fields from a 64-bit value.

        Args:
            value: an integer, or its text in hexadecimal with 0x, as `print` writes a descriptor.
        Raises:
            InvalidTypeError: the value is neither. InvalidValueError: a text is not one number in hexadecimal.
            TmemError: the value has more than 64 bits, or an undefined swizzle code (tcgen05: 3, 5, 7).

        >>> SmemDescriptor.decode("0x4000004000010002").stride
        64
        """
        kind = as_kind(kind)
        value = _read_bits(value) if isinstance(value, str) else expect_integer(value, "a matrix descriptor")
        if not 0 <= value < 1 << 64:
            raise TmemError(f"the matrix descriptor {value:#x} must have 64 bits")
        raw = {field.name: (value & field.mask) >> field.low for field in BIT_FIELDS[kind]}
        code = raw.pop("swizzle")
        names = {number: swizzle for swizzle, number in SWIZZLE_CODES[kind].items()}
        if code not in names:
            raise TmemError(f"the swizzle code is {code}; must be one of {', '.join(map(str, sorted(names)))}")
        is_address = bool(raw.pop("leading_is_address", 0))
        residue = value & ~_held(kind)
        return cls(**raw, swizzle=names[code], kind=kind, leading_is_address=is_address, residue=residue)

    def diff(self, other: SmemDescriptor | int | str, major: Major | str | None = None) -> list[Diagnostic]:
        """List the differences from a kernel's descriptor. The `rule` of each difference is the name of the field.

        Args:
            other: the kernel's descriptor, or its 64 bits; its address is not compared. major: the major mode, which
                decides the meaning of LBO and SBO.

        >>> right = SmemDescriptor(0, 512, 64, SmemSwizzle.B128, "wgmma")
        >>> [str(found) for found in right.diff(right.encode() ^ 513 << 16, "MN")]
        ['leading = 16 bytes; must be 8192 bytes from one swizzle width along M or N to the next']
        """
        if not isinstance(other, SmemDescriptor):
            other = SmemDescriptor.decode(other, self.kind)
        meanings = {} if major is None else offset_meanings(as_major(major), self.swizzle is SmemSwizzle.NONE)
        found = []
        for name in ("leading", "stride"):
            have, want = getattr(other, name) * UNIT_BYTES, getattr(self, name) * UNIT_BYTES
            if have != want:
                found.append(Diagnostic(name, name, have, "bytes", f"be {want} bytes{meanings.get(name, '')}"))
        if other.swizzle is not self.swizzle:
            text = f"the swizzle is {other.swizzle.name}; must be {self.swizzle.name}"
            found.append(Diagnostic("swizzle", text=text))
        if other.base_offset != self.base_offset:
            found.append(Diagnostic("base_offset", "base_offset", other.base_offset, "", f"be {self.base_offset}"))
        return found

    def explain(self, major: Major | str | None = None) -> str:
        """Describe each field in one line: its bits, value and meaning. With a major mode, also describe the distance
        that LBO and SBO step over.

        >>> print("\\n".join(SmemDescriptor(64, 1, 64, SmemSwizzle.B128, "wgmma").explain("K").splitlines()[:4]))
        wgmma matrix descriptor 0x4000004000010040
          bits 0-13  start address                         : 64 x 16 = 1024 bytes
          bits 16-29 leading-dimension offset              : 1 x 16 = 16 bytes, unused: swizzled rows are contiguous
          bits 32-45 stride-dimension offset               : 64 x 16 = 1024 bytes from 8 rows to the next 8 rows
        """
        meanings = {} if major is None else offset_meanings(as_major(major), self.swizzle is SmemSwizzle.NONE)
        lines = [f"{self.kind.value} matrix descriptor {self.encode():#018x}"]
        for field in BIT_FIELDS[self.kind]:
            value = getattr(self, field.name)
            if field.name == "swizzle":
                code = SWIZZLE_CODES[self.kind][value]
                said = f"code {code}: {value.name}, rows of {value.row_bytes} bytes"
            elif field in _OFFSETS:
                said = f"{value} x 16 = {value * UNIT_BYTES} bytes{meanings.get(field.name, '')}"
            else:
                said = str(int(value))
            last = field.low + field.width - 1
            bits = f"bits {field.low}-{last}" if field.width > 1 else f"bit {field.low}"
            lines.append(f"  {bits:<10} {field.meaning:<38}: {said}")
        if self.residue:
            lines.append(f"  {'other bits':<49}: {self.residue:#x}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.encode():#018x}"


def _held(kind: DescriptorKind) -> int:
    return sum(field.mask for field in BIT_FIELDS[kind])


def as_kind(kind: DescriptorKind | str) -> DescriptorKind:
    """Return the kind for a member, its name, or CuTe's name: `umma`, `gmma`.

    >>> as_kind("tcgen05") is as_kind("TCGEN05") is as_kind("umma")
    True
    """
    for one in DescriptorKind:
        if kind is one or (isinstance(kind, str) and kind.lower() in (one.value, one.cute)):
            return one
    raise InvalidTypeError(f"kind must be a DescriptorKind or its value, 'tcgen05' or 'wgmma', got {given(kind)}")


def as_swizzle(value: SmemSwizzle | int | str) -> SmemSwizzle:
    """Return the swizzle for a member, its number, or its name, such as "none", "B128" or "128B".

    >>> as_swizzle("128B") is as_swizzle(3)
    True
    """
    name = value.upper().strip("B") if isinstance(value, str) else None
    for one in SmemSwizzle:
        if name == one.name.strip("B") or (is_integer(value) and value == one):
            return one
    raise TmemError(f"swizzle = {given(value)}; must be 0 (none), 1 (32B), 2 (64B), 3 (128B) or 4 (128B, 32B atom)")


def as_major(major: Major | str) -> Major:
    """Return the major mode for a member or its name.

    >>> as_major("mn") is Major.MN
    True
    """
    if not isinstance(major, str):
        raise InvalidTypeError(f"major must be a Major or its name, 'K' or 'MN', got {given(major)}")
    if major.upper() not in Major.__members__:
        raise InvalidValueError(f"major = {given(major)}; must be 'K' or 'MN'")
    return Major[major.upper()]


def encode_matrix_descriptor(address: int, ldo: int, sdo: int, swizzle: SmemSwizzle | int | str) -> int:
    """Return the tcgen05 descriptor for `address`, as TVM's `T.ptx.tcgen05.encode_matrix_descriptor` does.

    Args:
        address: shared-memory address in bytes, a multiple of 16 (taken modulo 256 KiB).
        ldo, sdo: leading and stride offsets, in 16-byte units.
        swizzle: 0 none, 1 32B, 2 64B, 3 128B, 4 128B with 32-byte atoms.

    >>> f"{encode_matrix_descriptor(0, 16, 8, 0):#018x}"
    '0x0000400800100000'
    """
    address = expect_integer(address, "the address of shared memory", 0)
    if address % UNIT_BYTES:
        raise TmemError(f"the shared-memory address is {address}; must be a multiple of 16 bytes")
    return SmemDescriptor((address & ADDRESS_MASK) // UNIT_BYTES, ldo, sdo, as_swizzle(swizzle)).encode()


def smem_desc_add_16B_offset(descriptor: int, offset: int) -> int:
    """Add `offset` (16-byte units) to the low 32 bits of `descriptor`, modulo 2**32; the upper bits do not change.

    A sum above 16383 units does not fit in the start-address field; the planner never makes such offsets.

    >>> f"{smem_desc_add_16B_offset(0x0000400800100000, 32):#018x}"
    '0x0000400800100020'
    """
    descriptor, offset = expect_integer(descriptor, "a descriptor"), expect_integer(offset, "an offset")
    return (descriptor & ~_LOW) | ((descriptor + offset) & _LOW)


def replace_start_address(descriptor: int, address: int) -> int:
    """Replace the start address of `descriptor` by `address` (bytes); the other bits do not change.

    >>> made = SmemDescriptor(4, 1, 64, SmemSwizzle.B128, "umma")
    >>> SmemDescriptor.decode(replace_start_address(int(made), 0x400), "umma").start_address
    64
    """
    descriptor, address = expect_integer(descriptor, "a descriptor"), expect_integer(address, "an address")
    return (descriptor & ~START_MASK) | ((address >> 4) & START_MASK)


def offset_meanings(major: Major, plain: bool) -> dict[str, str]:
    """Describe `leading` and `stride`: which elements each of these distances separates."""
    if major is Major.K:
        row = " from 16 bytes of K to the next 16" if plain else ", unused: swizzled rows are contiguous"
        return {"leading": row, "stride": " from 8 rows to the next 8 rows"}
    along = f" from {'16 bytes' if plain else 'one swizzle width'} along M or N to the next"
    depth = " from 8 elements of K to the next 8"
    return {"leading": depth, "stride": along} if plain else {"leading": along, "stride": depth}


def offset_text(name: str) -> str:
    """Describe LBO or SBO for each major mode, with and without a swizzle.

    >>> print(offset_text("SBO"))
    SBO, the stride byte offset of a shared-memory descriptor; 14 bits, in units of 16 bytes
      K-major, swizzled   : from 8 rows to the next 8 rows
      K-major, no swizzle : from 8 rows to the next 8 rows
      MN-major, swizzled  : from 8 elements of K to the next 8
      MN-major, no swizzle: from 16 bytes along M or N to the next
    """
    expect_choice(name, ("LBO", "SBO"), "an offset of a descriptor")
    field = "leading" if name == "LBO" else "stride"
    long = f"{field} byte offset"
    rows = [f"{name}, the {long} of a shared-memory descriptor; 14 bits, in units of 16 bytes"]
    for major in Major:
        for plain in (False, True):
            case = f"{major}-major, {'no swizzle' if plain else 'swizzled'}"
            rows.append(f"  {case:20}: {offset_meanings(major, plain)[field].lstrip(', ')}")
    return "\n".join(rows)


@dataclass(frozen=True, slots=True)
class DescriptorIterator:
    """An iterator over descriptors of tiles. `iterator + n` adds n units of 16 bytes to the low 32 bits.

    >>> it = DescriptorIterator(SmemDescriptor(64, 0, 0))
    >>> hex((it + 2).descriptor.encode()), hex(it[4].encode())
    ('0x400000000042', '0x400000000044')
    """

    descriptor: SmemDescriptor

    def __add__(self, offset: int) -> DescriptorIterator:
        step = expect_integer(offset, "a step between descriptors")
        moved = smem_desc_add_16B_offset(self.descriptor.encode(), step)
        return DescriptorIterator(SmemDescriptor.decode(moved & ~(0b11 << 14), self.descriptor.kind))

    def __getitem__(self, offset: int) -> SmemDescriptor:
        return (self + offset).descriptor

    def store(self, offset: int, value: object) -> None:
        raise TensorAccessError("descriptors are read-only", {"offset": given(offset)})

    def __str__(self) -> str:
        return f"{self.descriptor.kind.cute.upper()}::DescriptorIterator"
