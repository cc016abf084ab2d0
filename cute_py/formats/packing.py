"""Pack elements narrower than a byte along the last axis.

    pairs    4 bits: byte j = element 2j in the low half, element 2j+1 in the high half
    dense    6 bits: 4 elements in 3 bytes, element i in bits 6i to 6i+5, the lowest bits first
    bytes    one element per byte, in its low bits

The last byte of a row is padded with zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cute_py.argument_checks import expect, expect_choice, expect_integer
from cute_py.dtypes import DTypeLike
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.formats.numbers import Number, codes, expect_array, number, of_codes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

PACKINGS: Final = ("bytes", "pairs", "dense")
"""'pairs': torch.float4_e2m1fn_x2, PTX .e2m1x2, cutlass::float_e2m1_t in memory. 'dense': 16U6_ALIGN16B of a tensor map
reads 16 elements in 12 bytes. 'bytes': how torchao stores fp6."""


def packings(row: Number) -> tuple[str, ...]:
    """The packings that a type supports, the narrowest last.

    >>> packings(number("e2m1")), packings(number("e2m3")), packings(number("e4m3"))
    (('bytes', 'pairs'), ('bytes', 'dense'), ('bytes',))
    """
    return {4: ("bytes", "pairs"), 6: ("bytes", "dense")}.get(row.bits, ("bytes",))


def expect_packing(packing: str, row: Number) -> str:
    """Return the packing if the type supports it."""
    expect_choice(expect(packing, str, "packing"), PACKINGS, "packing")
    if packing not in packings(row):
        allowed = " or ".join(map(repr, packings(row)))
        raise InvalidValueError(f"packing = {packing!r} for {row.name}, which has {row.bits} bits; must be {allowed}")
    return packing


def packed_width(count: int, packing: str, row: Number) -> int:
    """The number of bytes of a row of `count` elements.

    >>> packed_width(5, "pairs", number("e2m1")), packed_width(8, "dense", number("e2m3"))
    (3, 6)
    """
    return {"pairs": (count + 1) // 2, "dense": (count * 3 + 3) // 4}.get(packing, count * -(-row.bits // 8))


def pack_elements(
    values: NDArray[Any], packing: str | None = None, dtype: DTypeLike | Number | None = None
) -> NDArray[Any]:
    """Pack elements of 4 or 6 bits into bytes along the last axis.

    Args:
        values: (..., K) elements, one per byte; with `dtype`, their codes.
        packing: one of `PACKINGS`; default the type's narrowest.
    Returns:
        uint8 (..., bytes); packing 'bytes' returns the elements unchanged.

    >>> pack_elements(np.array([[1, 2, 3, 4]], np.uint8), dtype="e2m1")
    array([[33, 67]], dtype=uint8)
    >>> pack_elements(np.array([1, 2, 3, 4], np.uint8), "dense", "e2m3").tolist()
    [129, 48, 16]
    """
    expect_array(values)
    row = number(values.dtype if dtype is None else dtype)
    packing = expect_packing(packings(row)[-1] if packing is None else packing, row)
    if packing == "bytes":
        return values
    if not values.ndim:
        raise InvalidTypeError("pack needs an array with at least one axis")
    bits = codes(np.ascontiguousarray(values))
    if bits.dtype.itemsize != 1:
        raise InvalidTypeError(f"pack needs elements of one byte each, got {values.dtype}")
    group = 2 if packing == "pairs" else 4
    short = -bits.shape[-1] % group
    if short:
        bits = np.concatenate([bits, np.zeros((*bits.shape[:-1], short), np.uint8)], axis=-1)
    if packing == "pairs":
        words = np.bitwise_and(bits, np.uint8(15)).view("<u2")
        pairs: NDArray[np.uint8] = (words | (words >> np.uint16(4))).astype(np.uint8)
        return pairs
    words32 = np.bitwise_and(bits, np.uint8(63)).view("<u4")
    packed = words32 & np.uint32(63)
    for i in (1, 2, 3):
        packed |= (words32 >> np.uint32(2 * i)) & np.uint32(63 << 6 * i)
    made = np.ascontiguousarray(packed[..., None].view(np.uint8)[..., :3]).reshape(*bits.shape[:-1], -1)
    return made[..., : packed_width(values.shape[-1], packing, row)]


def unpack_elements(memory: NDArray[Any], count: int, packing: str, dtype: DTypeLike | Number) -> NDArray[Any]:
    """Unpack bytes to elements, one per byte: the inverse of `pack_elements`.

    Args:
        memory: uint8 (..., bytes), or the elements themselves for packing 'bytes'. count: the number of elements in a
            row.
    Raises:
        InvalidValueError: a row has fewer bytes than the elements need.

    >>> unpack_elements(np.array([33, 67], np.uint8), 4, "pairs", "e2m1").astype(float).tolist()
    [0.5, 1.0, 1.5, 2.0]
    """
    if not isinstance(memory, np.ndarray) or not memory.ndim:
        raise InvalidTypeError(f"unpack needs a numpy array with at least one axis, got {given(memory)}")
    row = number(dtype)
    expect_packing(packing, row)
    count = expect_integer(count, "count", 0, unit="elements")
    expect_array(memory, "the memory")
    if packing != "bytes" and memory.dtype.itemsize != 1:
        raise InvalidTypeError(f"packed elements must be bytes, got {memory.dtype}")
    need = count if packing == "bytes" else packed_width(count, packing, row)
    bits = codes(np.ascontiguousarray(memory[..., :need]))
    if packing == "bytes":
        return of_codes(bits, row)
    if bits.shape[-1] < need:
        raise InvalidValueError(
            f"a row has {bits.shape[-1]} bytes; must be at least {need} for {count} elements of {row.bits} bits"
        )
    if packing == "pairs":
        made = np.empty((*bits.shape, 2), np.uint8)
        np.bitwise_and(bits, np.uint8(15), out=made[..., 0])
        np.right_shift(bits, np.uint8(4), out=made[..., 1])
        return of_codes(made.reshape(*bits.shape[:-1], -1)[..., :count], row)
    short = -need % 3
    if short:
        bits = np.concatenate([bits, np.zeros((*bits.shape[:-1], short), np.uint8)], axis=-1)
    triples = bits.reshape(*bits.shape[:-1], -1, 3).astype(np.uint32)
    words = triples[..., 0] | triples[..., 1] << np.uint32(8) | triples[..., 2] << np.uint32(16)
    made = np.stack([(words >> np.uint32(6 * i) & np.uint32(63)).astype(np.uint8) for i in range(4)], axis=-1)
    return of_codes(np.ascontiguousarray(made.reshape(*bits.shape[:-1], -1)[..., :count]), row)
