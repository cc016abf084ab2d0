"""Descriptors of shared memory: the 64 bits by which wgmma and tcgen05.mma find an operand.

    bits 0-13     start address / 16
    bits 16-29    leading byte offset / 16 (LBO)
    bits 32-45    stride byte offset / 16 (SBO)
    bits 46-47    version: 1 for tcgen05, 0 for wgmma
    bits 49-51    base offset          bit 52  LBO mode (tcgen05)
    bits 61-63    layout type (wgmma uses 62-63)

What LBO and SBO mean depends on major mode and swizzle. Counted in 16-byte units, T elements each, the operand is

    K-major      ((8,n),2)        8 rows, n times, SBO apart; without a swizzle, 16 bytes and the next 16 LBO apart
    MN-major     ((W,n),(8,k))    W units along M|N, n times, LBO apart; 8 of K, k times, SBO apart;
                                  without a swizzle the two change places

A layout of another form has no descriptor, and is refused with C++'s condition.
Source: cute/arch/mma_sm90_desc.hpp, mma_sm100_desc.hpp; cute/atom/mma_traits_sm90_gmma.hpp (make_gmma_desc).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final, Literal

from cute_py.argument_checks import expect_choice, expect_integer
from cute_py.atom.element_types import UINT128
from cute_py.errors import (
    InvalidTypeError,
    InvalidValueError,
    StaticAssertError,
    TensorAccessError,
    format_report,
    given,
)
from cute_py.layout import Int, Layout, Swizzle, congruent, logical_divide, rank, size
from cute_py.tensor import Pointer, Tensor, recast

Kind = Literal["gmma", "umma"]
_FIELD: Final = (1 << 14) - 1

LAYOUT_TYPES: Final[dict[str, dict[int, str]]] = {
    "gmma": {0: "INTERLEAVE", 1: "B128", 2: "B64", 3: "B32"},
    "umma": {0: "SWIZZLE_NONE", 1: "SWIZZLE_128B_BASE32B", 2: "SWIZZLE_128B", 4: "SWIZZLE_64B", 6: "SWIZZLE_32B"},
}
"""Layout type -> C++'s name of it."""
_BY_BITS: Final = {"gmma": {0: 0, 1: 3, 2: 2, 3: 1}, "umma": {0: 0, 1: 6, 2: 4, 3: 2}}
"""Bits of the swizzle -> layout type."""


@dataclass(frozen=True, slots=True)
class SmemDescriptor:
    """A descriptor of shared memory. Offsets and the start address are in units of 16 bytes, 14 bits each.

    >>> d = SmemDescriptor("gmma", start_address=64, leading_byte_offset=1, stride_byte_offset=64, layout_type=1)
    >>> hex(d.encode()), SmemDescriptor.decode(d.encode(), "gmma") == d
    ('0x4000004000010040', True)
    """

    kind: Kind
    start_address: int = 0
    leading_byte_offset: int = 0
    stride_byte_offset: int = 0
    layout_type: int = 0
    base_offset: int = 0
    version: int = 0
    lbo_mode: int = 0

    def __post_init__(self) -> None:
        expect_choice(self.kind, ("gmma", "umma"), "the kind of a descriptor")
        for name, most in (
            ("start_address", _FIELD),
            ("leading_byte_offset", _FIELD),
            ("stride_byte_offset", _FIELD),
            ("base_offset", 7),
            ("version", 3),
            ("lbo_mode", 1),
            ("layout_type", 7),
        ):
            expect_integer(getattr(self, name), name, 0, most)
        if self.layout_type not in LAYOUT_TYPES[self.kind]:
            raise InvalidValueError(
                f"layout_type is {self.layout_type}; must be one of "
                + ", ".join(f"{k} ({v})" for k, v in LAYOUT_TYPES[self.kind].items())
            )

    def encode(self) -> int:
        """The 64 bits."""
        shift = 62 if self.kind == "gmma" else 61
        return (
            self.start_address
            | self.leading_byte_offset << 16
            | self.stride_byte_offset << 32
            | self.version << 46
            | self.base_offset << 49
            | self.lbo_mode << 52
            | self.layout_type << shift
        )

    __index__ = encode
    __int__ = encode

    @classmethod
    def decode(cls, bits: int, kind: Kind) -> SmemDescriptor:
        """The descriptor of 64 bits.

        Raises:
            InvalidValueError: a layout type that the kind has not, or bits that belong to no field.
        """
        expect_choice(kind, ("gmma", "umma"), "the kind of a descriptor")
        bits = expect_integer(bits, "a descriptor", 0, 2**64 - 1)
        shift = 62 if kind == "gmma" else 61
        found = cls(
            kind,
            bits & _FIELD,
            bits >> 16 & _FIELD,
            bits >> 32 & _FIELD,
            bits >> shift,
            bits >> 49 & 7,
            bits >> 46 & 3 if kind == "umma" else 0,
            bits >> 52 & 1 if kind == "umma" else 0,
        )
        if found.encode() != bits:
            raise InvalidValueError(
                f"{bits:#018x} has bits that belong to no field of a {kind} descriptor",
                {"bits": hex(found.encode() ^ bits)},
            )
        return found

    @property
    def swizzle(self) -> str:
        """C++'s name of the layout type."""
        return LAYOUT_TYPES[self.kind][self.layout_type]

    def explain(self, major: Literal["K", "MN"] | None = None) -> str:
        """The fields, and what LBO and SBO mean for a major mode.

        >>> print(SmemDescriptor("gmma", 64, 1, 64, 1).explain("K"))
        GMMA descriptor 0x4000004000010040
          start address : 0x400 (64 units of 16 bytes)
          layout type   : 1, B128
          LBO           : 16 bytes, not used: a swizzled row is contiguous
          SBO           : 1024 bytes from 8 rows to the next 8 rows
          base offset   : 0
        """
        facts: dict[str, object] = {
            "start address": f"{self.start_address * 16:#x} ({self.start_address} units of 16 bytes)",
            "layout type": f"{self.layout_type}, {self.swizzle}",
        }
        meaning = _meanings(major, self.layout_type == 0)
        for name, value in (("LBO", self.leading_byte_offset), ("SBO", self.stride_byte_offset)):
            facts[name] = f"{value * 16} bytes{meaning[name]}"
        facts["base offset"] = self.base_offset
        if self.kind == "umma":
            facts["version"] = self.version
            facts["LBO mode"] = self.lbo_mode
        return format_report(f"{self.kind.upper()} descriptor {self.encode():#018x}", facts)

    def __str__(self) -> str:
        return f"{self.encode():#018x}"


def _meanings(major: str | None, plain: bool) -> dict[str, str]:
    if major is None:
        return {"LBO": "", "SBO": ""}
    expect_choice(major, ("K", "MN"), "the major mode")
    if major == "K":
        row = " from 16 bytes of K to the next 16" if plain else ", not used: a swizzled row is contiguous"
        return {"LBO": row, "SBO": " from 8 rows to the next 8 rows"}
    along = f" from {'16 bytes' if plain else 'one width of the swizzle'} along M|N to the next"
    depth = " from 8 of K to the next 8"
    return {"LBO": depth, "SBO": along} if plain else {"LBO": along, "SBO": depth}


def offset_text(name: str) -> str:
    """What LBO or SBO means for each major mode, with a swizzle and without.

    >>> print(offset_text("SBO"))
    SBO, the stride byte offset of a descriptor of shared memory; 14 bits, in units of 16 bytes
      K-major, swizzled   : from 8 rows to the next 8 rows
      K-major, no swizzle : from 8 rows to the next 8 rows
      MN-major, swizzled  : from 8 of K to the next 8
      MN-major, no swizzle: from 16 bytes along M|N to the next
    """
    expect_choice(name, ("LBO", "SBO"), "an offset of a descriptor")
    long = "leading byte offset" if name == "LBO" else "stride byte offset"
    rows = [f"{name}, the {long} of a descriptor of shared memory; 14 bits, in units of 16 bytes"]
    for major in ("K", "MN"):
        for plain in (False, True):
            case = f"{major}-major, {'no swizzle' if plain else 'swizzled'}"
            rows.append(f"  {case:20}: {_meanings(major, plain)[name].lstrip(', ')}")
    return "\n".join(rows)


@dataclass(frozen=True, slots=True)
class DescriptorIterator:
    """Descriptors of tiles: an offset is in units of 16 bytes, and is added to the lower 32 bits.

    >>> it = DescriptorIterator(SmemDescriptor("gmma", start_address=64))
    >>> hex((it + 2).descriptor.encode()), hex(it[4].encode())
    ('0x42', '0x44')
    """

    descriptor: SmemDescriptor

    def __add__(self, offset: Any) -> DescriptorIterator:
        step = expect_integer(offset, "a step between descriptors")
        bits = self.descriptor.encode()
        low = ((bits & 0xFFFFFFFF) + step) & 0xFFFFFFFF
        moved = SmemDescriptor.decode((bits >> 32 << 32 | low) & ~(0b11 << 14), self.descriptor.kind)
        return DescriptorIterator(moved)

    def __getitem__(self, offset: Any) -> SmemDescriptor:
        moved: SmemDescriptor = (self + offset).descriptor
        return moved

    def store(self, offset: Any, value: Any) -> None:
        raise TensorAccessError("descriptors are read, not written", {"offset": given(offset)})

    def __str__(self) -> str:
        return f"{self.descriptor.kind.upper()}::DescriptorIterator"


def _units(tensor: Any, family: str) -> tuple[Pointer, Swizzle, Layout]:
    """The pointer, its swizzle and the layout in 16-byte units of a tensor in shared memory."""
    if not isinstance(tensor, Tensor):
        raise InvalidTypeError(f"a descriptor is made of a tensor, got {type(tensor).__name__} {given(tensor)}")
    engine = tensor.engine
    if not isinstance(engine, Pointer) or engine.space != "smem":
        raise StaticAssertError(f"{family} Descriptors can only be constructed on smem.", {"tensor": tensor})
    if int(rank(tensor.layout)) != 2:
        raise StaticAssertError(f"{family} Descriptors can only be constructed on rank-2 tensors.", {"tensor": tensor})
    units = recast(tensor, UINT128)
    if not isinstance(units.layout, Layout):
        raise StaticAssertError("Unsupported layout swizzle", {"tensor": tensor})
    return engine, engine.swizzle or Swizzle(0, 4, 3), units.layout


def _canonical(layout: Layout, tiler: tuple[Any, Any], name: str) -> Any:
    """The strides ((a,b),(c,d)) of a layout divided into what an instruction walks through."""
    divided = logical_divide(layout, tiler)
    if not congruent(divided.shape, ((1, 1), (1, 1))):
        raise StaticAssertError(
            f"Not a canonical {name} Layout: Expected profile failure.",
            {"layout in 16-byte units": layout, "divided": divided},
        )
    return divided


def _expect_stride(found: Any, expected: int, name: str, divided: Layout) -> None:
    if not isinstance(found, Int) or int(found) != expected:
        raise StaticAssertError(
            f"Not a canonical {name} Layout: Expected stride failure.",
            {"divided": divided, "stride": found, "expected": expected},
        )


def _field(value: Any) -> int:
    """A stride in 16-byte units, cut to its field."""
    return int(value) & _FIELD


def _offsets(major: str, layout: Layout, width: int, depth: int, plain: bool, name: str) -> tuple[int, int]:
    """(LBO, SBO) of an operand, in 16-byte units."""
    if major == "MN":
        divided = _canonical(layout, (_mode(width), _mode(depth)), name)
        (s00, s01), (s10, s11) = divided.stride
        if not plain:
            _expect_stride(s00, 1, name, divided)
        _expect_stride(s10, width, name, divided)
        return (_field(s11), _field(s01)) if plain else (_field(s01), _field(s11))
    divided = _canonical(layout, (_mode(8), _mode(2)), name)
    (s00, s01), (s10, _) = divided.stride
    _expect_stride(s00, width, name, divided)
    if not plain:
        _expect_stride(s10, 1, name, divided)
    return _field(s10), _field(s01)


@functools.lru_cache(maxsize=16)
def _mode(count: int) -> Layout:
    return Layout(Int(count), Int(1))


def gmma_descriptor(major: Literal["K", "MN"], tensor: Tensor) -> SmemDescriptor:
    """The descriptor that wgmma reads an operand by: see `make_gmma_desc`."""
    expect_choice(major, ("K", "MN"), "the major mode")
    pointer, swizzle, layout = _units(tensor, "GMMA")
    if swizzle.base != 4 or swizzle.shift != 3 or not 0 <= swizzle.bits <= 3:
        raise StaticAssertError("Unsupported layout swizzle", {"swizzle": swizzle})
    bits = tensor.element_type.bits
    if major == "MN":
        allowed = [n // bits for n in (256, 128, 512)]
        if size(layout[1]) not in allowed:
            raise StaticAssertError(
                "Not a canonical GMMA_MN Layout: Expected K-size 256/sizeof_bits<T> for dense or "
                "(128|512)/sizeof_bits<T> for sparse.",
                {"K-size": size(layout[1]), "element": f"{bits} bits"},
            )
    else:
        if size(layout[0]) % 8:
            raise StaticAssertError(
                "Not a canonical GMMA_K Layout: Expected MN-size multiple of 8.", {"MN-size": size(layout[0])}
            )
        if size(layout[1]) not in (2, 4):
            raise StaticAssertError(
                "Not a canonical GMMA_K Layout: Expected K-size 2 for dense or 4 for sparse (in units of uint128_t).",
                {"K-size": size(layout[1])},
            )
    lbo, sbo = _offsets(major, layout, 1 << swizzle.bits, 8, swizzle.bits == 0, f"GMMA_{major}")
    return SmemDescriptor("gmma", pointer.address >> 4 & _FIELD, lbo, sbo, _BY_BITS["gmma"][swizzle.bits])


def umma_descriptor(major: Literal["K", "MN"], tensor: Tensor) -> SmemDescriptor:
    """The descriptor that tcgen05.mma reads an operand by: see `make_umma_desc`."""
    expect_choice(major, ("K", "MN"), "the major mode")
    pointer, swizzle, layout = _units(tensor, "UMMA")
    kind = _umma_layout_type(swizzle)
    base32 = kind == 1
    if major == "K":
        if base32:
            raise StaticAssertError("SWIZZLE_128B_BASE32B is invalid for Major-K", {"swizzle": swizzle})
        if size(layout[0]) % 8:
            raise StaticAssertError(
                "Not a canonical UMMA_K Layout: Expected MN-size multiple of 8.", {"MN-size": size(layout[0])}
            )
    width = 8 if base32 else 1 << swizzle.bits
    lbo, sbo = _offsets(major, layout, width, 4 if base32 else 8, kind == 0, f"UMMA_{major}")
    return SmemDescriptor("umma", pointer.address >> 4 & _FIELD, lbo, sbo, kind, version=1)


def _umma_layout_type(swizzle: Swizzle) -> int:
    facts = {"swizzle": swizzle}
    if swizzle.base == 4:
        if swizzle.shift != 3:
            raise StaticAssertError("Expected S = 3 when M == 4. Unsupported layout swizzle.", facts)
        if swizzle.bits > 3:
            raise StaticAssertError("Expected B = 0,1,2, or 3 when M == 4. Unsupported layout swizzle.", facts)
        return _BY_BITS["umma"][swizzle.bits]
    if swizzle.base != 5:
        raise StaticAssertError("Only 16B and 32B Atoms are supported for UMMA. Unsupported layout swizzle.", facts)
    if swizzle.bits != 2:
        raise StaticAssertError("Expected B = 2 when M == 5. Unsupported layout swizzle.", facts)
    if swizzle.shift != 2:
        raise StaticAssertError("Expected S = 2 when M == 5. Unsupported layout swizzle.", facts)
    return 1


def make_gmma_desc(major: Literal["K", "MN"], tensor: Tensor) -> SmemDescriptor:
    """The 64-bit descriptor of one instruction's operand, for wgmma.

    Args:
        major: 'K' or 'MN': which mode is contiguous.
        tensor: (M|N, K) in shared memory, the tile of one instruction, with the swizzle on its pointer.
    Returns:
        A `SmemDescriptor`: `.encode()` has its bits, `.explain(major)` says what they mean.
    Raises:
        StaticAssertError: not in shared memory, or no canonical layout; the text is C++'s.

    >>> from cute_py.atom.smem_layouts import gmma_layout
    >>> from cute_py.layout import tile_to_shape
    >>> from cute_py.tensor import local_tile, make_smem_ptr, make_tensor
    >>> layout = tile_to_shape(gmma_layout("K_SW128", "half_t"), (Int(64), Int(64)))
    >>> tile = local_tile(make_tensor(make_smem_ptr(1024, "half"), layout), (Int(64), Int(16)), (0, 1))
    >>> print(make_gmma_desc("K", tile))
    0x4000004000010042
    """
    return gmma_descriptor(major, tensor)


def make_umma_desc(major: Literal["K", "MN"], tensor: Tensor) -> SmemDescriptor:
    """The 64-bit descriptor of one instruction's operand, for tcgen05.mma.

    Args, errors: as `make_gmma_desc`; besides, the swizzle of 32-byte atoms.

    >>> from cute_py.atom.smem_layouts import umma_layout
    >>> from cute_py.layout import tile_to_shape
    >>> from cute_py.tensor import make_smem_ptr, make_tensor
    >>> layout = tile_to_shape(umma_layout("K_SW128", "half_t"), (Int(128), Int(64)))
    >>> print(make_umma_desc("K", make_tensor(make_smem_ptr(1024, "half"), layout)))
    0x4000404000010040
    """
    return umma_descriptor(major, tensor)
