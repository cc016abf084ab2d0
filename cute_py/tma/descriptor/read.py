"""A tensor map's bytes, from whatever holds them: buffers, words, hex text, files, dumps of a debugger or of printf.

What a text may look like is said in `dump_text`. CuTe prints `DESC_TMA512:` with word 7 first; other dumps have word 0
first. Where a text does not say, the order is taken in which more of the map makes sense; so it is decided whether
groups of 16 hex digits are words or bytes. Four words alone are taken for words 0 to 3.
"""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any, Final, Literal

from cute_py.errors import FileFormatError, InvalidTypeError, InvalidValueError, counted
from cute_py.tma.descriptor.dump_text import bare_words, bytes_in, is_cute_print, words_in
from cute_py.tma.descriptor.fields import MAP_BYTES, PAYLOAD_BYTES, RESERVED

Order = Literal["auto", "low_first", "high_first"]

_SIZES: Final = (PAYLOAD_BYTES, MAP_BYTES)


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
        ParseError: a text without words or bytes in it.
        FileFormatError: a file that can't be read.

    >>> read_map("DESC_TMA512: 0x0000000000001000 0x0000004000006310 0x0 0x0")[:8].hex()
    '0010000000000000'
    """
    if isinstance(source, bytes):
        return _sized(source)
    if isinstance(source, str):
        return _from_text(source, order)
    if isinstance(source, Path):
        return _from_file(source, order)
    words = getattr(source, "opaque", source)
    if isinstance(words, (list, tuple)):
        return _from_words([_word(word) for word in words], "low_first")
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
        raise InvalidValueError(f"word {word} of a tensor map; must be 0 to 2**64 - 1")
    return word


def _from_words(words: list[int], order: Order) -> bytes:
    """Eight or sixteen words; four are words 0 to 3, and the others are taken to be 0."""
    if len(words) not in (4, 8, 16):
        raise InvalidValueError(f"tensor map of {counted(len(words), 'word')}; must be 8 or 16 words of 64 bits")
    missing = bytes(32 if len(words) == 4 else 0)
    low_first = b"".join(word.to_bytes(8, "little") for word in words) + missing
    high_first = b"".join(word.to_bytes(8, "little") for word in reversed(words)) + missing
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
        raw = path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"can't read {path}: {error.strerror}") from None
    if len(raw) in _SIZES and not _is_text(raw):
        return raw
    try:
        text = raw.decode("ascii")
    except UnicodeDecodeError:
        raise FileFormatError(
            f"{path} holds {len(raw)} bytes; a tensor map has {PAYLOAD_BYTES} or {MAP_BYTES}, or is a text"
        ) from None
    return _from_text(text, order)


def _is_text(raw: bytes) -> bool:
    """Whether the bytes can only be hex text (a map of 128 hex digits is a file of 128 bytes)."""
    return all(byte in b"0123456789abcdefABCDEFxX \t\r\n:,{}=<>_" for byte in raw)


def _from_text(text: str, order: Order) -> bytes:
    raw = bytes_in(text)
    if order == "auto" and is_cute_print(text):
        order = "high_first"
    if raw is None:
        return _from_words(words_in(text), order)
    if bare := bare_words(text):  # bytes in groups of eight, or words without 0x
        swapped = _from_words(bare, order)
        return swapped if order != "auto" or _strangeness(swapped) < _strangeness(raw) else raw
    return raw
