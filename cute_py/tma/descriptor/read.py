r"""Read the bytes of a tensor map from buffers, words, hex text, files, and dumps of a debugger or of printf.

CuTe prints `DESC_TMA512:` with word 7 first; other dumps have word 0 first. If the text does not name the order, the
reader chooses the order that makes more fields of the map valid. In the same way, it decides whether groups of 8 or 16
hex digits are words or bytes, and whether 16 small integers are words of 32 or of 64 bits.

A map has 64 bytes (8 words of 64 bits or 16 of 32 bits) or 128 bytes (16 words of 64 bits or 32 of 32 bits). Missing
words are an error, except in the form of the reference pages: `DESC_TMA512:` with four words, which are words 0 to 3.

The reader accepts these forms of text:

x/16gx, x/32wx, x/128bx of gdb or lldb     0x7ffe0000 <desc>:  0x0000000000001000  0x0000004000006310 ...
p desc, p/x desc                           {opaque = {4096, 274877931280, 0 <repeats 14 times>}}
printf                                     DESC_TMA512: 0x0000000000001000 0x0000004000006310 ...
                                           0000000000001000 0000004000006310 ...
C                                          uint32_t desc[32] = {0x1000, 0, 0x6310, /* ... */ 0x40u, ...};
Python                                     [4096, 274877931280, ...], words or bytes; b'\x00\x10...'
xxd, hexdump -C                            00000000: 0010 0000 0000 0000 1063 0000 4000 0000  .........c..@...
a memory window                            0x00007FFE00000000  00 10 00 00 00 00 00 00 10 63 00 00 40 00 00 00

The reader removes labels, addresses, types, indices and comments. The rest must consist of numbers that all belong to
the map; otherwise the reader raises an error.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from cute_py.argument_checks import expect_choice, has, refuse_mask
from cute_py.errors import (
    FileFormatError,
    InvalidTypeError,
    InvalidValueError,
    ParseError,
    counted,
    given,
    integer_text,
    system_reason,
)
from cute_py.tma.descriptor.fields import MAP_BYTES, MAX_RANK, PAYLOAD_BYTES, RESERVED

if TYPE_CHECKING:
    from typing_extensions import Buffer

MAX_TEXT: Final = 1 << 13
"""Largest number of characters in a text. Every form of a map above is shorter than half of it."""
CUTE_LABEL: Final = "DESC_TMA512"

_SIZES: Final = (PAYLOAD_BYTES, MAP_BYTES)
_REPEATS: Final = re.compile(r"(0x[0-9a-f]{1,16}|[0-9]{1,20})\s*<repeats ([0-9]{1,9}) times>", re.IGNORECASE)
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
_INDEX: Final = re.compile(r"\[[ \t]*(0x[0-9a-fA-F]{1,4}|0|[1-9][0-9]{0,3})[ \t]*\](?=\s*[=:])")
_SUBSCRIPT: Final = re.compile(r"(?<=[\w)])\[[^\]\n]{0,40}\]", re.ASCII)
_CAST: Final = re.compile(r"\([ \t]*[A-Za-z_][\w \t*]{0,40}\)", re.ASCII)
_CALL: Final = re.compile(r"\b[A-Za-z_][\w.]{0,40}\(", re.ASCII)
_PLACE: Final = re.compile(r"^\s*(?:0x)?[0-9a-fA-F]{1,16}\s*+(?:<[^<>]{0,200}>\s*+)?:")
_NAME: Final = re.compile(r"\s*(?:[A-Za-z_$*&.][\w \t$*&.>-]{0,200})?[:=]", re.ASCII)
_NUMBER: Final = re.compile(r"(0[xX])?([0-9a-fA-F]{1,40})(?:_?[ui](?:8|32|64)|[uUlL]{0,3})")
_BLANKS: Final = str.maketrans("'\"()", "    ")
_BRACES: Final = str.maketrans("{}[]", "    ")
_ESCAPE: Final = r"\\(?:x[0-9a-fA-F]{2}|[abfnrtv\\'\"])"
_LITERAL: Final = re.compile(
    rf"(?:bytearray\()?(b(?:'(?:[^'\\\n]|{_ESCAPE})*'|\"(?:[^\"\\\n]|{_ESCAPE})*\"))\)?", re.ASCII
)
_DUMP_LINE: Final = re.compile(r"^\s*(?:0[xX])?[0-9a-fA-F]{4,16}(?::\s|\s\s|\t)\s*((?:[0-9a-fA-F]{2,4}\s{1,2})+)")
_CUTE_PRINT: Final = re.compile(r"DESC_TMA512:\s*0x[0-9a-fA-F]{16}(?:\s+[0-9a-fA-F]{16}){7}\s*")
_TYPES: Final = (
    (8, re.compile(r"u?int64|u64|unsigned long|long long|u?longlong", re.ASCII)),
    (1, re.compile(r"u?int8|u8|unsigned char|uchar", re.ASCII)),
    (4, re.compile(r"u?int32|u32|unsigned int\b|\bunsigned\s+\w+\s*\[", re.ASCII)),
)
"""(bytes of one number, names of types of that width)"""
_OF_WORDS: Final = (CUTE_LABEL, "opaque", "CUtensorMap")
"""Names of objects that hold maps only as 64-bit words."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers that a text contains, in order.

    Attributes:
        values: the numbers; digits: how many hexadecimal digits each number has, 0 for a decimal number.
        unit: bytes of each number, if the text names a type; otherwise None.
        wide: the text names no type, but an object that stores a map as words of 64 bits.
        cute: the text has the label that CuTe prints.
    """

    values: tuple[int, ...]
    digits: tuple[int, ...]
    unit: int | None
    wide: bool
    cute: bool


def is_cute_print(text: str) -> bool:
    """Whether the text is CuTe's printed form of a descriptor.

    This form has eight words, word 7 first, with `0x` only before the first word.
    """
    return _CUTE_PRINT.fullmatch(text.strip()) is not None


def bytes_in(text: str) -> bytes | None:
    """Return the bytes that a text lists one by one without 0x: hex, xxd, hexdump -C, or a Python bytes literal.

    The result is None if the text has another form.

    >>> bytes_in("00" * 64) == bytes(64)
    True
    """
    if literal := _LITERAL.fullmatch(text.strip()):
        return _literal(literal[1])
    groups = text.strip().removeprefix("0x").removeprefix("0X").split()
    compact = "".join(groups)
    whole = len(compact) in (2 * PAYLOAD_BYTES, 2 * MAP_BYTES) and not any(len(group) % 2 for group in groups)
    if whole and _is_hex(compact):
        return bytes.fromhex(compact)
    matches = [_DUMP_LINE.match(line + "  ") for line in text.splitlines() if line.strip()]
    joined = "".join(["".join(match[1].split())[:32] for match in matches if match is not None])
    return bytes.fromhex(joined) if len(joined) in (2 * PAYLOAD_BYTES, 2 * MAP_BYTES) else None


def _is_hex(text: str) -> bool:
    return re.fullmatch(r"[0-9a-fA-F]+", text) is not None


def bare_words(text: str) -> tuple[list[int], int] | None:
    """Return the words in a text of groups of 16 or of 8 hex digits only, and the size of each word in bytes.

    >>> bare_words("0000000000001000 " * 8)
    ([4096, 4096, 4096, 4096, 4096, 4096, 4096, 4096], 8)
    """
    groups = text.split()
    for unit in (8, 4):
        if len(groups) * unit in _SIZES and all(len(group) == 2 * unit and _is_hex(group) for group in groups):
            return [int(group, 16) for group in groups], unit
    return None


def _literal(text: str) -> bytes | None:
    """Return the bytes of a Python literal if they have the size of a map."""
    try:
        found = ast.literal_eval(text)
    except (SyntaxError, ValueError):  # a character beyond ASCII
        return None
    return found if isinstance(found, bytes) and len(found) in _SIZES else None


def numbers_in(text: str) -> Numbers:
    """Return all numbers of a text.

    Raises:
        ParseError: the text has no numbers, it has other text between them, or they may be decimal or hexadecimal.

    >>> numbers_in("desc = {0x1000, 0 <repeats 7 times>}").values
    (4096, 0, 0, 0, 0, 0, 0, 0)
    """
    if text.count(CUTE_LABEL) > 1:
        raise ParseError(f"the text has {text.count(CUTE_LABEL)} maps ({CUTE_LABEL}); must have one", _shown(text))
    if any(line.strip() == "*" for line in text.splitlines()):
        raise ParseError(
            "the line * replaces lines that the dump omitted", _shown(text), "hexdump -v prints every line"
        )
    body, in_list = _body(text)
    tokens = body.replace(",", " ").replace(";", " ").split()
    matches = [_NUMBER.fullmatch(token) for token in tokens]
    if not any(matches):
        raise ParseError("the text has neither the words nor the bytes of a tensor map", _shown(text))
    for token, match in zip(tokens, matches, strict=True):
        if match is None:
            raise ParseError(
                f"{given(token)} in the text of a tensor map is not a number",
                _shown(text),
                "explain reads the arguments of a call" if "cuTensorMapEncode" in text else None,
            )
    parts = [(match[1] is not None, match[2]) for match in matches if match is not None]
    base = _base([digits for prefixed, digits in parts if not prefixed], in_list or "," in body, text)
    values = tuple([int(digits, 16 if prefixed else base) for prefixed, digits in parts])
    widths = tuple([len(digits) if prefixed or base == 16 else 0 for prefixed, digits in parts])
    unit = next((size for size, name in _TYPES if name.search(text)), None)
    return Numbers(values, widths, unit, any(name in text for name in _OF_WORDS), CUTE_LABEL in text)


def _shown(text: str) -> dict[str, str]:
    return {"text": given(text[:80])}


def _base(bare: list[str], source: bool, text: str) -> int:
    """Return the base of the numbers without 0x: 16 if one of them can't be decimal, 10 in source code.

    Numbers with leading zeros are hexadecimal, because dumps pad them. Groups of 16 digits are hexadecimal too.
    """
    if any(re.search("[a-fA-F]", digits) or (digits[0] == "0" and len(digits) > 1) for digits in bare):
        return 16
    if bare and all(len(digits) == 16 for digits in bare):
        return 16
    if not source and any(len(digits) > 1 for digits in bare):
        raise ParseError(
            "numbers without 0x may be decimal or hexadecimal",
            _shown(text),
            "prefix hexadecimal numbers with 0x, or put decimal ones in braces",
        )
    return 10


def _body(text: str) -> tuple[str, bool]:
    """Return the part of a text with the numbers and their separators, and whether it is in braces or brackets."""
    text = _COMMENT.sub(" ", text[text.find(CUTE_LABEL) :] if CUTE_LABEL in text else text)
    text = _REPEATS.sub(lambda match: ", ".join([match[1]] * min(int(match[2]), MAP_BYTES + 1)), text)
    indices = [int(index, 0) for index in _INDEX.findall(text)]
    if len(indices) > 1 and indices != list(range(len(indices))):
        raise ParseError("the indices in this text are not 0, 1, 2 ...", {**_shown(text), "indices": given(indices)})
    text = _CALL.sub(" ", _CAST.sub(" ", _SUBSCRIPT.sub(" ", _INDEX.sub(" ", text))))
    groups = _groups(text.translate(_BLANKS))
    if len(groups) > 1:
        raise ParseError(f"the text has {len(groups)} arrays of numbers; must have one map", _shown(text))
    segments = re.split(r"([,;{}\[\]\n])", groups[0] if groups else text.translate(_BLANKS))
    return "".join([_unlabelled(segment) for segment in segments]).translate(_BRACES), bool(groups)


def _groups(text: str) -> list[str]:
    """Return the contents of the outermost braces or brackets that contain digits."""
    found: list[str] = []
    depth = start = 0
    for match in re.finditer(r"[{}\[\]]", text):
        opens = match[0] in "{["
        if opens and depth == 0:
            start = match.end()
        depth = max(0, depth + (1 if opens else -1))
        if depth == 0 and not opens:
            found.append(text[start : match.start()])
            start = match.end()
    if depth:
        found.append(text[start:])
    return [group for group in found if re.search("[0-9]", group)]


def _unlabelled(segment: str) -> str:
    """Remove the address and the names before the numbers of a segment. A name may end in a number: `word 0:`."""
    segment = _PLACE.sub("", segment, count=1)
    while match := _NAME.match(segment):
        parts = match[0][:-1].split()
        if any(_NUMBER.fullmatch(part) for part in parts[: max(1, len(parts) - 1)]):
            break
        segment = segment[match.end() :]
    return segment


class HoldsWords(Protocol):
    """Interface of an object with the 64-bit words of a map as `opaque`, such as cuda-python's CUtensorMap."""

    @property
    def opaque(self) -> Sequence[int]:
        """The words of a map, the lowest first."""


MapSource: TypeAlias = "Buffer | str | Path | Sequence[int] | HoldsWords"
"""An object or a text that holds a map; `read_map` lists the forms."""

Order = Literal["auto", "low_first", "high_first"]

_COUNTS: Final = "8 or 16 words of 64 bits, 16 or 32 words of 32 bits, or 64 or 128 bytes"


def read_map(source: MapSource, *, order: Order = "auto") -> bytes:
    """Return the 64 or 128 bytes of a tensor map, read from any supported source.

    Args:
        source: bytes or any buffer (numpy, ctypes, bytearray, memoryview); a sequence of 8 or 16 words, or an object
            with such a sequence as `.opaque` (cuda-python's CUtensorMap); text; a `pathlib.Path` to a file with the
            bytes or a text.
        order: the order of the words in a text: word 0 first, word 7 (or 15) first, or the order that makes more fields
            valid.
    Raises:
        InvalidTypeError: the source is not one of these.
        InvalidValueError: the source has a wrong number of bytes or words.
        ParseError: a text lacks words or bytes, or has other text between them.
        FileFormatError: a file can't be read.

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
    listed = source.opaque if has(source, "opaque") else source  # type: ignore[union-attr]
    if isinstance(listed, (list, tuple)):
        if len(listed) not in (8, 16):
            raise InvalidValueError(
                f"the tensor map has {counted(len(listed), 'word')}; must have 8 or 16 words of 64 bits"
            )
        return _from_words([_word(value) for value in listed], 8, "low_first")
    refuse_mask(source, "a tensor map")
    try:
        view = memoryview(source)  # type: ignore[arg-type]
        raw = view.tobytes() if view.nbytes in _SIZES else b""
    except (TypeError, ValueError, BufferError, NotImplementedError):
        raise InvalidTypeError(
            f"a tensor map must be bytes, a buffer, words or text, got {type(source).__name__}",
            hint="atom.descriptor has the bytes of an atom's map" if has(source, "descriptor") else None,
        ) from None
    return _sized(raw, view.nbytes)


def _sized(raw: bytes, count: int | None = None) -> bytes:
    """Return the bytes, after a check that they have the size of a map.

    `count` is the size for the error message if not all bytes were read.
    """
    if len(raw) not in _SIZES:
        raise InvalidValueError(
            f"the tensor map has {len(raw) if count is None else count} bytes; must have {PAYLOAD_BYTES} or {MAP_BYTES}"
        )
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
            raise InvalidTypeError(f"a word of a tensor map must be an integer, got {type(value).__name__}") from None
    if not 0 <= word < 1 << 64:
        raise InvalidValueError(f"a word of the tensor map is {integer_text(word)}; must be 0 to 2**64 - 1")
    return word


def _from_words(numbers: list[int], unit: int, order: Order) -> bytes:
    """Pack words of `unit` bytes each. `order` states whether the first word is the lowest or the highest."""
    low_first = b"".join(word.to_bytes(unit, "little") for word in numbers)
    high_first = b"".join(word.to_bytes(unit, "little") for word in reversed(numbers))
    if order == "auto":
        return high_first if _strangeness(high_first) < _strangeness(low_first) else low_first
    return high_first if order == "high_first" else low_first


def _strangeness(raw: bytes) -> int:
    """Count the set bits that no map of that kind and rank has."""
    bits = int.from_bytes(raw, "little")
    rank = (bits >> 68 & 7) + 1
    if rank > MAX_RANK:
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
        raise FileFormatError(f"can't read {path}: {system_reason(error)}") from None
    if len(raw) > MAX_TEXT:
        raise FileFormatError(f"{path} has more than {MAX_TEXT} bytes, so it is neither a tensor map nor a text of one")
    if len(raw) in _SIZES and not _is_text(raw):
        return raw
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:  # a map contains zero bytes, a text contains none
        raise FileFormatError(
            f"{path} has {len(raw)} bytes; must be text, or have {PAYLOAD_BYTES} or {MAP_BYTES} bytes"
        )
    return _from_text(text, order)


def _is_text(raw: bytes) -> bool:
    """Whether all bytes are characters of hex text.

    The 128 hex digits of a 64-byte map have the size of a 128-byte map, so the size alone does not decide.
    """
    return all(byte in b"0123456789abcdefABCDEFxX \t\r\n:,{}=<>_" for byte in raw)


def _from_text(text: str, order: Order) -> bytes:
    if len(text) > MAX_TEXT:
        raise ParseError(f"the text has {len(text)} characters; must have at most {MAX_TEXT}")
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
    """Pack the numbers of a text as words of 64 or 32 bits, or as bytes."""
    values = list(numbers.values)
    if numbers.cute and len(values) == 4 and max(values) < 1 << 64:
        return _from_words(values, 8, order) + bytes(32)
    unit = numbers.unit or _unit(numbers, order)
    size = len(values) * unit
    what = "byte" if unit == 1 else f"word of {8 * unit} bits"
    if size not in _SIZES:
        goal = next((n for n in _SIZES if n > size), None)
        fewer, more = counted((goal or size) - size, "byte"), counted(size - MAP_BYTES, "byte")
        short = f"{fewer} fewer than {goal}" if goal else f"{more} more than {MAP_BYTES}"
        sized = counted(len(values), "byte" if unit == 1 else "word")
        sized += "" if unit == 1 else f" of {8 * unit} bits ({size} bytes)"
        raise InvalidValueError(f"the tensor map has {sized}; must have {_COUNTS}", {**_read(numbers), "size": short})
    over = next((i for i, value in enumerate(values) if value >> 8 * unit), None)
    if over is not None:
        raise InvalidValueError(
            f"number {over} of {len(values)} is {hex(values[over])}; must fit in a {what}, because a map of "
            f"{len(values)} numbers has such words",
            _read(numbers),
        )
    return bytes(values) if unit == 1 else _from_words(values, unit, order)


def _read(numbers: Numbers) -> dict[str, object]:
    return {"read": given([hex(value) for value in numbers.values])}


def _unit(numbers: Numbers, order: Order) -> int:
    """Find the size in bytes of each number if the text names no type.

    Raises:
        InvalidValueError: 16 numbers are equally plausible as words of 32 bits and of 64 bits.
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
            "16 numbers below 2**32 may be 64 bytes (words of 32 bits) or 128 bytes (words of 64 bits)",
            _read(numbers),
            "write them with 8 or 16 hexadecimal digits, or name their type: uint32_t, uint64_t",
        )
    return 4 if narrow < wide else 8
