"""Numbers and bytes of a tensor map in a text: hex, a debugger's or printf's dump, a C initialiser, a hex dump.

x/16gx, x/32wx, x/128bx of gdb or lldb     0x7ffe0000 <desc>:  0x0000000000001000  0x0000004000006310 ...
p desc, p/x desc                           {opaque = {4096, 274877931280, 0 <repeats 14 times>}}
printf                                     DESC_TMA512: 0x0000000000001000 0x0000004000006310 ...
                                           0000000000001000 0000004000006310 ...
C                                          uint32_t desc[32] = {0x1000, 0, 0x6310, /* ... */ 0x40u, ...};
Python                                     [4096, 274877931280, ...] of words or bytes, b'\\x00\\x10...'
xxd, hexdump -C                            00000000: 0010 0000 0000 0000 1063 0000 4000 0000  .........c..@...
a memory window                            0x00007FFE00000000  00 10 00 00 00 00 00 00 10 63 00 00 40 00 00 00

Labels, addresses, types, indices and comments are left out; whatever is left must be numbers, all of which count:
a text of which only a part can be read is refused.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Final

from cute_py.errors import ParseError, given
from cute_py.tma.descriptor.fields import MAP_BYTES, PAYLOAD_BYTES

MAX_TEXT: Final = 1 << 13
"""Characters. Every form of a map above is shorter than half of it."""
CUTE_LABEL: Final = "DESC_TMA512"

_SIZES: Final = (PAYLOAD_BYTES, MAP_BYTES)
_REPEATS: Final = re.compile(r"(0x[0-9a-f]{1,16}|[0-9]{1,20})\s*<repeats ([0-9]{1,9}) times>", re.IGNORECASE)
_COMMENT: Final = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_INDEX: Final = re.compile(r"\[[ \t]*(0x[0-9a-fA-F]{1,4}|0|[1-9][0-9]{0,3})[ \t]*\](?=\s*[=:])")
_SUBSCRIPT: Final = re.compile(r"(?<=[\w)])\[[^\]\n]{0,40}\]", re.ASCII)
_CAST: Final = re.compile(r"\([ \t]*[A-Za-z_][\w \t*]{0,40}\)", re.ASCII)
_CALL: Final = re.compile(r"\b[A-Za-z_][\w.]{0,40}\(", re.ASCII)
_PLACE: Final = re.compile(r"^\s*(?:0x)?[0-9a-fA-F]{1,16}\s*(?:<[^<>]{0,200}>)?\s*:")
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
"""What is said of maps as words of 64 bits alone."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of a text, in its order.

    Attributes:
        values: the numbers; digits: how many hexadecimal digits each is written with, 0 of a decimal one.
        unit: bytes that the text says that each has, by a type's name; None: it does not say.
        wide: the text names something that holds a map as words of 64 bits, if it names no type.
        cute: it has the label of CuTe's print.
    """

    values: tuple[int, ...]
    digits: tuple[int, ...]
    unit: int | None
    wide: bool
    cute: bool


def is_cute_print(text: str) -> bool:
    """Whether this is the text of CuTe's print of a descriptor: eight words, word 7 first, `0x` at the first alone."""
    return _CUTE_PRINT.fullmatch(text.strip()) is not None


def bytes_in(text: str) -> bytes | None:
    """The bytes that a text spells byte by byte without 0x, if it does: plain hex, xxd, hexdump -C, a Python literal.

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
    """The words of a text that is groups of 16 hex digits and nothing else, or of 8, and the bytes of each.

    >>> bare_words("0000000000001000 " * 8)
    ([4096, 4096, 4096, 4096, 4096, 4096, 4096, 4096], 8)
    """
    groups = text.split()
    for unit in (8, 4):
        if len(groups) * unit in _SIZES and all(len(group) == 2 * unit and _is_hex(group) for group in groups):
            return [int(group, 16) for group in groups], unit
    return None


def _literal(text: str) -> bytes | None:
    """The bytes of a Python literal, if it has as many as a map."""
    try:
        found = ast.literal_eval(text)
    except (SyntaxError, ValueError):  # a character beyond ASCII
        return None
    return found if isinstance(found, bytes) and len(found) in _SIZES else None


def numbers_in(text: str) -> Numbers:
    """All numbers of a text.

    Raises:
        ParseError: there are none, something else stands between them, or they can be decimal or hexadecimal.

    >>> numbers_in("desc = {0x1000, 0 <repeats 7 times>}").values
    (4096, 0, 0, 0, 0, 0, 0, 0)
    """
    if text.count(CUTE_LABEL) > 1:
        raise ParseError(f"{text.count(CUTE_LABEL)} maps in this text ({CUTE_LABEL}); must be one", _shown(text))
    if any(line.strip() == "*" for line in text.splitlines()):
        raise ParseError("a line * stands for lines that the dump left out", _shown(text), "hexdump -v writes all")
    body, in_list = _body(text)
    tokens = body.replace(",", " ").replace(";", " ").split()
    matches = [_NUMBER.fullmatch(token) for token in tokens]
    if not any(matches):
        raise ParseError("no words and no bytes of a tensor map in this text", _shown(text))
    for token, match in zip(tokens, matches, strict=True):
        if match is None:
            raise ParseError(f"{given(token)} in the text of a tensor map is no number", _shown(text))
    parts = [(match[1] is not None, match[2]) for match in matches if match is not None]
    base = _base([digits for prefixed, digits in parts if not prefixed], in_list or "," in body, text)
    values = tuple([int(digits, 16 if prefixed else base) for prefixed, digits in parts])
    widths = tuple([len(digits) if prefixed or base == 16 else 0 for prefixed, digits in parts])
    unit = next((size for size, name in _TYPES if name.search(text)), None)
    return Numbers(values, widths, unit, any(name in text for name in _OF_WORDS), CUTE_LABEL in text)


def _shown(text: str) -> dict[str, str]:
    return {"text": given(text[:80])}


def _base(bare: list[str], source: bool, text: str) -> int:
    """The base of the numbers without 0x: 16 where one of them can't be decimal, 10 in source code.

    Numbers with zeros in front are hexadecimal, as dumps pad them; so are groups of 16 digits.
    """
    if any(re.search("[a-fA-F]", digits) or (digits[0] == "0" and len(digits) > 1) for digits in bare):
        return 16
    if bare and all(len(digits) == 16 for digits in bare):
        return 16
    if not source and any(len(digits) > 1 for digits in bare):
        raise ParseError(
            "numbers without 0x can be decimal or hexadecimal", _shown(text), "write 0x, or braces round decimal ones"
        )
    return 10


def _body(text: str) -> tuple[str, bool]:
    """The numbers of a text, with what separates them, and whether they stand in braces or brackets."""
    text = _COMMENT.sub(" ", text[text.find(CUTE_LABEL) :] if CUTE_LABEL in text else text)
    text = _REPEATS.sub(lambda match: ", ".join([match[1]] * min(int(match[2]), MAP_BYTES + 1)), text)
    indices = [int(index, 0) for index in _INDEX.findall(text)]
    if len(indices) > 1 and indices != list(range(len(indices))):
        raise ParseError("the indices of this text are not 0, 1, 2 ...", {**_shown(text), "indices": given(indices)})
    text = _CALL.sub(" ", _CAST.sub(" ", _SUBSCRIPT.sub(" ", _INDEX.sub(" ", text))))
    groups = _groups(text.translate(_BLANKS))
    if len(groups) > 1:
        raise ParseError(f"{len(groups)} arrays of numbers in this text; must be one map", _shown(text))
    segments = re.split(r"([,;{}\[\]\n])", groups[0] if groups else text.translate(_BLANKS))
    return "".join([_unlabelled(segment) for segment in segments]).translate(_BRACES), bool(groups)


def _groups(text: str) -> list[str]:
    """What stands in the outermost braces or brackets, where there are digits in them."""
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
    """A piece of a text without the address and names in front of it (a name may end in a number: `word 0:`)."""
    segment = _PLACE.sub("", segment, count=1)
    while match := _NAME.match(segment):
        parts = match[0][:-1].split()
        if any(_NUMBER.fullmatch(part) for part in parts[: max(1, len(parts) - 1)]):
            break
        segment = segment[match.end() :]
    return segment
