"""Read shared memory for matrix instructions: rows at given addresses, and operands that a descriptor describes.

A descriptor of wgmma or tcgen05 has a start address, two offsets (LBO and SBO) and a swizzle. With W the width of the
swizzle in bytes (16 without a swizzle) and U = W / 16, the byte offsets from the start address are:

    K-major    row r, byte b of K         (r % 8) * W + (r / 8) * SBO + b % W + (b / W) * LBO
    MN-major   unit u of 16 bytes, k      (k % 8) * W + (u % U) * 16 + (u / U) * LBO + (k / 8) * SBO

Without a swizzle, LBO and SBO of an MN-major operand are exchanged. Swizzle atoms of 32 bytes (tcgen05) have 4 elements
of K instead of 8. `operand_layout` returns this table as a CuTe layout. The swizzle then acts on the bits of the
address: it XORs bits 7 to 9 into bits 4 to 6, or for a narrower swizzle, only the lower one or two of them.
Source: PTX ISA, "Shared Memory Matrix Layout" of wgmma; each of these cases was measured (docs/measurements).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeAlias

from cute_py.atom.smem_descriptor import UNIT_BYTES, DescriptorKind, Major, SmemDescriptor, SmemSwizzle, swizzled
from cute_py.errors import InvalidValueError, TmemError
from cute_py.layout import Layout, offsets, static

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]
else:
    from cute_py.optional_packages import numpy as np


def bytes_at(memory: Array, addresses: Array, width: int, what: str) -> Array:
    """Read `width` bytes at each address: uint8 (*addresses.shape, width).

    Raises:
        InvalidValueError: an address is not a multiple of the width, or is outside the memory.
    """
    _check(memory, addresses, width, what)
    found: Array = memory[addresses[..., None] + np.arange(width)]
    return found


def put_bytes(memory: Array, addresses: Array, content: Array, what: str) -> None:
    """Write bytes at each address; the inverse of `bytes_at`. If two rows have the same address, the later row wins
    here; a device guarantees no order.
    """
    _check(memory, addresses, content.shape[-1], what)
    memory[addresses[..., None] + np.arange(content.shape[-1])] = content


def _check(memory: Array, addresses: Array, width: int, what: str) -> None:
    if not addresses.size:
        return
    low, high = int(addresses.min()), int(addresses.max())
    if low < 0 or high + width > len(memory):
        wrong = low if low < 0 else high
        facts = {"bytes of the access": width}
        raise InvalidValueError(f"{what} is at shared address {wrong}; must be within {len(memory)} bytes", facts)
    if width & width - 1 == 0 and (addresses % width).any():
        wrong = int(addresses[addresses % width != 0].flat[0])
        raise InvalidValueError(f"{what} is at shared address {wrong}; must be a multiple of {width} bytes")


@functools.lru_cache(maxsize=1024)
def operand_layout(
    swizzle: SmemSwizzle, leading: int, stride: int, major: Major, extent: int, depth: int, bits: int
) -> Layout:
    """Return the layout (rows, K) -> offset of an element from the descriptor's start, in elements, before the swizzle.

    Args:
        leading, stride: the offsets of the descriptor, in bytes. extent: rows, M or N. depth: elements of K.
        bits: width of one element, 4, 8, 16 or 32.

    The rows of an MN-major operand are rounded up to whole swizzle widths.

    >>> print(operand_layout(SmemSwizzle.B128, 16, 1024, Major.K, 128, 16, 16))
    ((_8,_16),(_16,_1)):((_64,_512),(_1,_8))
    >>> print(operand_layout(SmemSwizzle.B128, 8192, 1024, Major.MN, 128, 16, 16))
    ((_64,_2),(_8,_2)):((_1,_4096),(_64,_512))
    """
    width, leading, stride = (8 * one // bits for one in (swizzle.row_bytes, leading, stride))
    if major is Major.K:
        inner = min(width, depth)
        shape = ((8, -(-extent // 8)), (inner, -(-depth // inner)))
        steps = ((width, stride), (1, leading))
    else:
        far, deep = (leading, stride) if swizzle else (stride, leading)
        rows = 4 if swizzle is SmemSwizzle.B128_ATOM32 else 8
        inner = min(width, extent)
        shape = ((inner, -(-extent // inner)), (rows, -(-depth // rows)))
        steps = ((1, far), (width, deep))
    return static(Layout(shape, steps))


def expect_fixed_bits(descriptor: SmemDescriptor) -> None:
    """Check that the version and the reserved bits of a descriptor have the values that the PTX ISA defines.

    Raises:
        TmemError: a field has another value.
    """
    broken = [found.text for found in descriptor.check() if found.rule != "leading"]
    if broken:
        facts = {f"and {n}": text for n, text in enumerate(broken[1:], 2)}
        raise TmemError(f"matrix descriptor {descriptor.encode():#018x}: {broken[0]}", facts)


@functools.lru_cache(maxsize=4096)
def operand_places(
    descriptor: int, major: Major, extent: int, depth: int, bits: int, kind: DescriptorKind
) -> tuple[Array, int, int]:
    """Return the address of each element (extent, depth) in units of the element size, and the lowest and the highest
    address.

    Raises:
        TmemError, InvalidValueError: a field has a value that is invalid or not emulated.
    """
    fields = SmemDescriptor.decode(descriptor, kind)
    if kind is DescriptorKind.TCGEN05:
        expect_fixed_bits(fields)
    if fields.base_offset:
        raise InvalidValueError(f"the descriptor has the base offset {fields.base_offset}; only 0 is emulated")
    if fields.leading_is_address:
        raise InvalidValueError("the leading offset of the descriptor is an address; only an offset is emulated")
    size = bits // 8
    layout = operand_layout(
        fields.swizzle, fields.leading * UNIT_BYTES, fields.stride * UNIT_BYTES, major, extent, depth, bits
    )
    at = np.asarray(offsets(layout))[:extent, :depth].astype(np.int64) * size
    moved = swizzled(at + fields.start * UNIT_BYTES, fields.swizzle)
    return moved // size, int(moved.min()), int(moved.max())


def operand_bytes(
    memory: Array,
    descriptor: int,
    major: Major,
    extent: int,
    depth: int,
    bits: int,
    base: int = 0,
    kind: DescriptorKind = DescriptorKind.WGMMA,
    *,
    operand: str,
) -> Array:
    """Read the elements of an operand of wgmma or tcgen05.mma as unsigned integers of shape (extent, depth).

    Args:
        descriptor: the 64 bits of the matrix descriptor. extent: rows, M or N. depth: elements of K. bits: width of an
            element, 8, 16 or 32.
        base: address of the first byte of `memory`, a multiple of 16. operand: name of the operand, 'A' or 'B'.
    Raises:
        InvalidValueError: the operand extends past the memory, or has a base offset, which is not emulated.
    """
    places, low, high = operand_places(descriptor, major, extent, depth, bits, kind)
    size = bits // 8
    if low < base or high + size > base + len(memory):
        wrong = low if low < base else high
        name = "wgmma" if kind is DescriptorKind.WGMMA else "tcgen05.mma"
        fields = SmemDescriptor.decode(descriptor, kind)
        raise InvalidValueError(
            f"operand {operand} of {name} reads shared address {wrong:#x}; must be within {base:#x} to "
            f"{base + len(memory):#x}, the {len(memory)} bytes of shared memory; its descriptor has the start address "
            f"{fields.start * UNIT_BYTES:#x}, the leading byte offset {fields.leading * UNIT_BYTES} and the stride "
            f"byte offset {fields.stride * UNIT_BYTES}"
        )
    view = memory[: len(memory) // size * size].view(f"uint{bits}")
    found: Array = view[places - base // size] if base else view[places]
    return found


@functools.lru_cache(maxsize=4096)
def operand_units(
    descriptor: int, major: Major, extent: int, depth: int, bits: int, kind: DescriptorKind = DescriptorKind.WGMMA
) -> Array:
    """Sorted addresses of the 16-byte units that hold an operand of wgmma or tcgen05.mma."""
    places, _, _ = operand_places(descriptor, major, extent, depth, bits, kind)
    found: Array = np.unique(places * (bits // 8) // UNIT_BYTES) * UNIT_BYTES
    return found


def row_units(descriptor: int, major: Major, extent: int, depth: int, bits: int) -> Array:
    """Addresses of the 16-byte units of an operand of wgmma, with axes (group, line, unit along the line).

    A line is a row of a K-major operand, or an index k of an MN-major operand. A group is 8 lines within one swizzle
    width.
    """
    places, _, _ = operand_places(descriptor, major, extent, depth, bits, DescriptorKind.WGMMA)
    lines = (places if major is Major.K else places.T) * (bits // 8)
    units = lines[:, :: UNIT_BYTES * 8 // bits]
    width = SmemDescriptor.decode(descriptor, DescriptorKind.WGMMA).swizzle.row_bytes // UNIT_BYTES
    units = units[:, : max(width, 1)] if major is Major.MN else units
    found: Array = units.reshape(-1, 8, units.shape[1])
    return found
