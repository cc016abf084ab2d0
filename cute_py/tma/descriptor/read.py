"""A tensor map's bytes, from whatever holds them: buffers, words, hex text, files, dumps of a debugger or of printf.

What a text may look like is said in `dump_text`. CuTe prints `DESC_TMA512:` with word 7 first; other dumps have word 0
first. Where a text does not say, the order is taken in which more of the map makes sense; so it is decided whether
groups of 8 or 16 hex digits are words or bytes, and whether 16 small numbers are words of 32 or of 64 bits.

A map is 64 bytes (8 words of 64 bits, 16 of 32) or 128 (16 of 64 bits, 32 of 32). Nothing is filled in for what a text
lacks, but for the form of the reference pages: `DESC_TMA512:` with four words, which are words 0 to 3.
"""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any, Final, Literal

from cute_py.argument_checks import expect_choice
from cute_py.errors import (
    FileFormatError,
    InvalidTypeError,
    InvalidValueError,
    ParseError,
    counted,
    given,
    integer_text,
)
from cute_py.tma.descriptor.dump_text import MAX_TEXT, Numbers, bare_words, bytes_in, is_cute_print, numbers_in
from cute_py.tma.descriptor.fields import MAP_BYTES, PAYLOAD_BYTES, RESERVED

Order = Literal["auto", "low_first", "high_first"]

_SIZES: Final = (PAYLOAD_BYTES, MAP_BYTES)
_COUNTS: Final = "8 or 16 words of 64 bits, 16 or 32 words of 32 bits, or 64 or 128 bytes"


def read_map(source: Any, *, order: Order = "auto") -> bytes:
    """The 64 or 128 bytes of a map.

    Args:
        source: bytes or any buffer (numpy, ctypes, bytearray, memoryview); a sequence of 8 or 16 words, or an object
            with such a sequence as `.opaque` (cuda-python's CUtensorMap); text; a `pathlib.Path` to a file that
            holds the bytes or a text.
        order: for texts of 64-bit words: word 0 first, word 7 (15) first, or whichever makes more sense.
    Raises:
        InvalidTypeError: nothing of these.
        InvalidValueError: another number of bytes or words.
        ParseError: a text without words or bytes in it, or with something else between them.
        FileFormatError: a file that can't be read.

    >>> read_map("DESC_TMA512: 0x0000000000001000 0x0000004000006310 0x0 0x0")[:8].hex()
    '0010000000000000'
    """
    expect_choice(order, ("auto", "low_first", "high_first"), "order")
    if isinstance(source, bytes):
        return _sized(source)
    if isinstance(source, str):
        return _from_text(source, order)
    if isinstance(source, Path):
        return _from_file(source, order)
    words = getattr(source, "opaque", source)
    if isinstance(words, (list, tuple)):
        if len(words) not in (8, 16):
            raise InvalidValueError(f"tensor map of {counted(len(words), 'word')}; must be 8 or 16 words of 64 bits")
        return _from_words([_word(word) for word in words], 8, "low_first")
    try:
        raw = memoryview(source).tobytes()
    except (TypeError, ValueError, BufferError, NotImplementedError):
        raise InvalidTypeError(
            f"a tensor map must be bytes, a buffer, words or text, not {type(source).__name__}"
        ) from None
    return _sized(raw)


def _sized(raw: bytes) -> bytes:
    if len(raw) not in _SIZES:
        raise InvalidValueError(f"tensor map of {len(raw)} bytes; must be {PAYLOAD_BYTES} or {MAP_BYTES}")
    return raw


def _word(value: Any) -> int:
    try:
        word = operator.index(value)
    except TypeError:
        try:
            if isinstance(value, (float, str)):
                raise TypeError
            word = int(value)  # cuda-python wraps each word in an object of its own
        except (TypeError, ValueError, OverflowError):
            raise InvalidTypeError(f"a word of a tensor map must be an integer, not {type(value).__name__}") from None
    if not 0 <= word < 1 << 64:
        raise InvalidValueError(f"word {integer_text(word)} of a tensor map; must be 0 to 2**64 - 1")
    return word


def _from_words(words: list[int], unit: int, order: Order) -> bytes:
    """The words as bytes, `unit` of each, the first word lowest or highest."""
    low_first = b"".join(word.to_bytes(unit, "little") for word in words)
    high_first = b"".join(word.to_bytes(unit, "little") for word in reversed(words))
    if order == "auto":
        return high_first if _strangeness(high_first) < _strangeness(low_first) else low_first
    return high_first if order == "high_first" else low_first


def _strangeness(raw: bytes) -> int:
    """How many bits are set that no map of that kind and rank has."""
    bits = int.from_bytes(raw, "little")
    rank = (bits >> 68 & 7) + 1
    if rank > 5:
        return MAP_BYTES * 8
    upper = bits >> 512
    notes = (1 << 128) - 1
    return (
        (bits & RESERVED[bits >> 64 & 1][rank]).bit_count()
        + (upper & ~notes).bit_count()
        + 64 * (bits >> 57 & 127 != 0)
    )


def _from_file(path: Path, order: Order) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_TEXT + 1)
    except (OSError, ValueError) as error:
        raise FileFormatError(f"can't read {path}: {getattr(error, 'strerror', None) or error}") from None
    if len(raw) > MAX_TEXT:
        raise FileFormatError(f"{path} is larger than {MAX_TEXT} bytes; a tensor map or its text is not")
    if len(raw) in _SIZES and not _is_text(raw):
        return raw
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise FileFormatError(
            f"{path} holds {len(raw)} bytes; a tensor map has {PAYLOAD_BYTES} or {MAP_BYTES}, or is a text"
        ) from None
    return _from_text(text, order)


def _is_text(raw: bytes) -> bool:
    """Whether the bytes can only be hex text (a map of 128 hex digits is a file of 128 bytes)."""
    return all(byte in b"0123456789abcdefABCDEFxX \t\r\n:,{}=<>_" for byte in raw)


def _from_text(text: str, order: Order) -> bytes:
    if len(text) > MAX_TEXT:
        raise ParseError(f"a text of {len(text)} characters; the text of a tensor map has at most {MAX_TEXT}")
    if order == "auto" and is_cute_print(text):
        order = "high_first"
    raw = bytes_in(text)
    if raw is None:
        return _from_numbers(numbers_in(text), order)
    if bare := bare_words(text):  # bytes in groups, or words without 0x
        swapped = _from_words(*bare, order)
        return swapped if order != "auto" or _strangeness(swapped) < _strangeness(raw) else raw
    return raw


def _from_numbers(numbers: Numbers, order: Order) -> bytes:
    """The numbers of a text, as words of 64 or 32 bits or as bytes."""
    values = list(numbers.values)
    if numbers.cute and len(values) == 4 and max(values) < 1 << 64:
        return _from_words(values, 8, order) + bytes(32)
    unit = numbers.unit or _unit(numbers, order)
    size = len(values) * unit
    what = "byte" if unit == 1 else f"word of {8 * unit} bits"
    if size not in _SIZES:
        goal = next((n for n in _SIZES if n > size), None)
        short = (
            f"{goal - size} bytes are missing to {goal}" if goal else f"{size - MAP_BYTES} bytes more than {MAP_BYTES}"
        )
        sized = counted(len(values), "byte" if unit == 1 else "word")
        sized += "" if unit == 1 else f" of {8 * unit} bits ({size} bytes)"
        raise InvalidValueError(f"tensor map of {sized}; must be {_COUNTS}", {**_read(numbers), "size": short})
    over = next((i for i, value in enumerate(values) if value >> 8 * unit), None)
    if over is not None:
        raise InvalidValueError(
            f"number {over} of {len(values)} = {hex(values[over])}; must fit a {what}, as that many numbers are a map",
            _read(numbers),
        )
    return bytes(values) if unit == 1 else _from_words(values, unit, order)


def _read(numbers: Numbers) -> dict[str, object]:
    return {"read": given([hex(value) for value in numbers.values])}


def _unit(numbers: Numbers, order: Order) -> int:
    """How many bytes each number has, where no type says it.

    Raises:
        InvalidValueError: 16 numbers that make as much sense in 32 bits as in 64.
    """
    values, digits, count = list(numbers.values), numbers.digits, len(numbers.values)
    most = max(values)
    if most < 256 and (count in _SIZES or set(digits) == {2}):
        return 1
    if most >= 1 << 32 or max(digits) > 8:
        return 8
    if count == 32 or set(digits) == {8}:
        return 4
    if count != 16 or numbers.wide:
        return 8
    narrow, wide = (_strangeness(_from_words(values, unit, order)) for unit in (4, 8))
    if narrow == wide:
        raise InvalidValueError(
            "16 numbers below 2**32 can be 64 bytes (words of 32 bits) or 128 (words of 64 bits)",
            _read(numbers),
            "write them with 8 or 16 hexadecimal digits, or name their type: uint32_t, uint64_t",
        )
    return 4 if narrow < wide else 8
