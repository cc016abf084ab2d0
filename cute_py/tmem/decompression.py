"""Decompression of tcgen05.cp: sixteen 4- or 6-bit elements in 16 bytes become sixteen bytes.

    b4x16_p64    8 bytes of elements, 8 bytes of padding
    b6x16_p32   12 bytes of elements, 4 bytes of padding

Element e of a unit goes to byte e of the same unit in tensor memory.

UNVERIFIED. The sizes and the padding are documented (PTX ISA, tcgen05.cp, optional decompression). The position of the
bits inside the byte is in figures of that document only; here 4-bit elements are put to bits 5:2 and 6-bit elements to
bits 5:0, as the text on kind::f8f6f4 operands has it. No Blackwell GPU was at hand to measure it.
"""

from __future__ import annotations

import numpy
from numpy.typing import NDArray

from cute_py.argument_checks import expect
from cute_py.errors import TmemError, given
from cute_py.tmem.cp_forms import DECOMPRESSIONS, UNIT_BYTES

STATUS = "documented, bit position unverified"
"""What is known of the result."""

BYTE_SHIFT: dict[str, int] = {"b6x16_p32": 0, "b4x16_p64": 2}
"""Lowest bit of an element in its byte; inferred, not measured."""


def decompress(units: NDArray[numpy.uint8], source_format: str) -> NDArray[numpy.uint8]:
    """Units of 16 bytes, decompressed.

    Args:
        units: (..., 16) uint8; the padding is not read.
        source_format: "b4x16_p64" or "b6x16_p32".
    Returns:
        (..., 16) uint8, one element in each byte.

    >>> unit = numpy.zeros(16, numpy.uint8)
    >>> unit[0] = 0x21                       # elements 1 and 2
    >>> decompress(unit, "b4x16_p64")[:3]
    array([4, 8, 0], dtype=uint8)
    """
    expect(source_format, str, "source_format")
    if source_format not in DECOMPRESSIONS:
        raise TmemError(f"source format {given(source_format)}; must be one of {', '.join(DECOMPRESSIONS)}")
    if expect(units, numpy.ndarray, "units").dtype != numpy.uint8:
        raise TmemError(f"units of {units.dtype}; must be uint8")
    if units.shape[-1:] != (UNIT_BYTES,):
        raise TmemError(f"units of shape {units.shape}; the last extent must be {UNIT_BYTES} bytes")
    width, used = DECOMPRESSIONS[source_format]
    bits = numpy.unpackbits(units[..., :used], axis=-1, bitorder="little")
    elements = bits.reshape(*units.shape[:-1], UNIT_BYTES, width)
    weights = (1 << numpy.arange(width, dtype=numpy.uint8)).astype(numpy.uint8)
    values = (elements * weights).sum(axis=-1, dtype=numpy.uint8)
    placed: NDArray[numpy.uint8] = numpy.left_shift(values, BYTE_SHIFT[source_format]).astype(numpy.uint8)
    return placed


def source_byte(source_format: str) -> NDArray[numpy.int64]:
    """The byte of a unit in which each of its sixteen elements begins: int64 of shape (16,)."""
    return numpy.arange(UNIT_BYTES, dtype=numpy.int64) * DECOMPRESSIONS[source_format][0] // 8
