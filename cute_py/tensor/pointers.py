"""Pointers: an address, a memory space and an element type. Pointers can be offset and printed, but not read.

    gmem_ptr[16b](0x1000)         global memory, 16-bit elements
    smem_ptr[16b]((nil))          shared memory at address 0
    Sw<3,4,3>_smem_ptr[16b](...)  shared memory whose byte addresses are swizzled
    gmem_subptr[4b](0x1000.3)     elements narrower than a byte: address and index within it
    tmem_[32b](0x0010.0020)       tensor memory: lane and column, 32-bit cells

They print as in C++. cute_py can't read the memory that they point to, because it has no GPU memory. As with `bool*`, a
bool takes one byte, and its pointer prints as `ptr[1b]`. C++'s make_gmem_ptr<bool>(void*) packs eight bools into a
byte; the type for this is `uint1` in cute_py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Never, SupportsIndex

from cute_py.argument_checks import expect, expect_choice, expect_integer
from cute_py.dtypes import DType, DTypeLike, as_dtype
from cute_py.errors import InvalidValueError, TensorAccessError, given
from cute_py.layout.swizzle import Swizzle

__all__ = ["Pointer", "TmemPointer", "make_gmem_ptr", "make_ptr", "make_rmem_ptr", "make_smem_ptr", "make_tmem_ptr"]

SPACES: Final = ("gmem", "smem", "rmem", "generic")
"""Memory spaces of a `Pointer`."""
_MAX_ADDRESS: Final = 2**64 - 1


def _hex(address: int) -> str:
    return hex(address) if address else "(nil)"


def pointer_text(address: int, dtype: DType) -> str:
    """Return the text of a pointer, such as `ptr[16b](0x1000)`. As in C++, the width of a bool is shown as one bit.

    >>> pointer_text(0x1000, as_dtype("half")), pointer_text(0, as_dtype("bool"))
    ('ptr[16b](0x1000)', 'ptr[1b]((nil))')
    """
    return f"ptr[{1 if dtype.kind == 'bool' else dtype.bits}b]({_hex(address)})"


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer to elements of `dtype` in the memory space 'gmem', 'smem', 'rmem' or 'generic'.

    `address` is in bytes. `bit` is the position within the byte, for elements narrower than a byte. In `pointer + n`, n
    counts elements.

    >>> print(make_gmem_ptr(0x1000, "float16") + 4)
    gmem_ptr[16b](0x1008)
    """

    space: str
    address: int
    dtype: DType
    swizzle: Swizzle | None = None
    """Permutes the bytes of shared memory."""
    bit: int = 0
    is_memory: ClassVar[bool] = True
    owner: Any = field(default=None, compare=False, repr=False)
    """Object that keeps the memory alive; None if this library was given an address."""

    def __post_init__(self) -> None:
        expect_choice(self.space, SPACES, "the memory space of a pointer")
        dtype = as_dtype(self.dtype)
        object.__setattr__(self, "dtype", dtype)
        if type(self.address) is not int or not 0 <= self.address <= _MAX_ADDRESS:
            address = expect_integer(self.address, "the address of a pointer", 0, _MAX_ADDRESS, "bytes")
            object.__setattr__(self, "address", address)
        if self.swizzle is not None:
            expect(self.swizzle, Swizzle, "the swizzle of a pointer")
        if type(self.bit) is not int or self.bit:
            most = 7 if dtype.bits % 8 else 0
            bit = expect_integer(self.bit, f"the bit in a byte of a pointer to {dtype}", 0, most)
            object.__setattr__(self, "bit", bit)

    @property
    def element_type(self) -> DType:
        return self.dtype

    def __add__(self, offset: SupportsIndex) -> Pointer:
        step = offset if type(offset) is int else expect_integer(offset, f"a step of {self}")
        total = self.address * 8 + self.bit + step * self.dtype.bits
        return replace(self, address=total // 8 % 2**64, bit=total % 8)

    def recast(self, dtype: DTypeLike) -> Pointer:
        """Return a pointer to the same address with elements of another type.

        Raises:
            InvalidValueError: the pointer points inside a byte, but the new elements begin at whole bytes.
        """
        new = as_dtype(dtype)
        if self.bit and new.bits % 8 == 0:
            raise InvalidValueError(
                f"an element of {new.bits} bits can't start at bit {self.bit} of a byte",
                {"pointer": self, "element type": new},
            )
        return replace(self, dtype=new)

    def __getitem__(self, offset: SupportsIndex) -> Never:
        raise TensorAccessError(
            "the memory of a pointer can't be read, because cute_py has no GPU memory",
            {"pointer": self, "offset": given(offset)},
            "make the tensor from a numpy array, or an object with __dlpack__, to read its elements",
        )

    def __str__(self) -> str:
        prefix = {"gmem": "gmem_", "smem": "smem_"}.get(self.space, "")
        swizzle = f"{self.swizzle}_" if self.swizzle is not None and self.swizzle.bits else ""
        bits = self.dtype.bits
        if bits % 8:
            return f"{swizzle}{prefix}subptr[{bits}b]({_hex(self.address)}.{self.bit})"
        return f"{swizzle}{prefix}{pointer_text(self.address, self.dtype)}"

    def __repr__(self) -> str:
        if self.bit:
            swizzle = f", {self.swizzle!r}" if self.swizzle is not None else ""
            return f"Pointer({self.space!r}, {self.address:#x}, {self.dtype.name!r}{swizzle}, bit={self.bit})"
        maker = "make_ptr" if self.space == "generic" else f"make_{self.space}_ptr"
        extra = f", {self.swizzle!r}" if self.swizzle is not None else ""
        return f"{maker}({self.address:#x}, {self.dtype.name!r}{extra})"


@dataclass(frozen=True, slots=True)
class TmemPointer:
    """A pointer to tensor memory. In its address, bits 16 and up are the lane, and bits 0..15 the column of 32 bits.

    >>> print(make_tmem_ptr(0x100020, "float32"))
    tmem_[32b](0x0010.0020)
    """

    address: int
    dtype: DType

    space = "tmem"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", as_dtype(self.dtype))
        checked = expect_integer(self.address, "a tensor-memory address", 0, 2**32 - 1)
        object.__setattr__(self, "address", checked)

    @property
    def element_type(self) -> DType:
        return self.dtype

    def __add__(self, offset: SupportsIndex) -> TmemPointer:
        """Add an offset in elements. As in C++, the offset is rotated right by log2(32 / bits), so that the position
        within a 32-bit cell is in the unused top bits; for elements wider than a cell, it is rotated left."""
        shift = (5 - (self.dtype.bits.bit_length() - 1)) % 32
        number = offset if type(offset) is int else expect_integer(offset, f"a step of {self}")
        step = number % 2**32
        rotated = ((step >> shift) | (step << (32 - shift))) % 2**32
        return TmemPointer((self.address + rotated) % 2**32, self.dtype)

    def recast(self, dtype: DTypeLike) -> TmemPointer:
        return TmemPointer(self.address, as_dtype(dtype))

    def __getitem__(self, offset: SupportsIndex) -> Never:
        raise TensorAccessError(
            "the memory of a tensor-memory pointer can't be read, because cute_py has no GPU memory",
            {"pointer": self, "offset": given(offset)},
        )

    def __str__(self) -> str:
        return f"tmem_[{self.dtype.bits}b](0x{self.address >> 16:04x}.{self.address & 0xFFFF:04x})"

    def __repr__(self) -> str:
        return f"make_tmem_ptr({self.address:#x}, {self.dtype.name!r})"


def make_gmem_ptr(address: int, dtype: DTypeLike) -> Pointer:
    """Make a pointer to global memory; `address` is in bytes.

    >>> print(make_gmem_ptr(4096, "bfloat16"))
    gmem_ptr[16b](0x1000)
    """
    return Pointer("gmem", address, as_dtype(dtype))


def make_smem_ptr(address: int, dtype: DTypeLike, swizzle: Swizzle | None = None) -> Pointer:
    """Make a pointer to shared memory; `address` is in bytes. A swizzle permutes the byte addresses.

    >>> print(make_smem_ptr(0, "float16", Swizzle(3, 4, 3)))
    Sw<3,4,3>_smem_ptr[16b]((nil))
    """
    return Pointer("smem", address, as_dtype(dtype), swizzle)


def make_rmem_ptr(address: int, dtype: DTypeLike) -> Pointer:
    """Make a pointer to registers, which prints as a plain pointer, as in C++.

    >>> print(make_rmem_ptr(0, 'float32'))
    ptr[32b]((nil))
    """
    return Pointer("rmem", address, as_dtype(dtype))


def make_ptr(address: int, dtype: DTypeLike) -> Pointer:
    """Make a pointer without a memory space.

    >>> print(make_ptr(4096, 'float16') + 4)
    ptr[16b](0x1008)
    """
    return Pointer("generic", address, as_dtype(dtype))


def make_tmem_ptr(address: int, dtype: DTypeLike) -> TmemPointer:
    """Make a pointer to tensor memory; the upper 16 bits of `address` are the lane, the lower 16 bits the column.

    >>> print(make_tmem_ptr(0, "float16") + 3)
    tmem_[16b](0x8000.0001)
    """
    return TmemPointer(address, as_dtype(dtype))
