"""Words and bytes of a tensor map in a text: hex, a debugger's or printf's dump, a C initialiser, a hex dump.

x/16gx, x/32wx, x/128bx of gdb or lldb     0x7ffe0000 <desc>:  0x0000000000001000  0x0000004000006310 ...
p desc, p/x desc                           {opaque = {4096, 274877931280, 0 <repeats 14 times>}}
printf                                     DESC_TMA512: 0x0000000000001000 0x0000004000006310 ...
                                           0000000000001000 0000004000006310 ...
Python                                     [4096, 274877931280, ...] of words or bytes, b'\\x00\\x10...'
xxd, hexdump -C                            00000000: 0010 0000 0000 0000 1063 0000 4000 0000  .........c..@...
a memory window                            0x00007FFE00000000  00 10 00 00 00 00 00 00 10 63 00 00 40 00 00 00
"""

from __future__ import annotations

import ast
import re
from typing import Final

from cute_py.errors import ParseError
from cute_py.tma.descriptor.fields import MAP_BYTES, PAYLOAD_BYTES

_ADDRESS: Final = re.compile(r"^\s*(?:0x)?[0-9a-fA-F]+\s*(?:<[^>]*>)?\s*:")
_LABEL: Final = re.compile(r"^[^:{=]*?\b[A-Za-z_]\w*\s*[:=]\s*(?=.*[0-9a-fA-F])")
_REPEATS: Final = re.compile(r"(0x[0-9a-fA-F]+|\d+)\s*<repeats (\d+) times>")
_WORD: Final = re.compile(r"\b0[xX]([0-9a-fA-F]{1,16})(?:[uU]?[lL]{0,2}|[lL]{0,2}[uU]?)\b")
_BARE: Final = re.compile(r"\b[0-9a-fA-F]{16}\b")
_BRACES: Final = re.compile(r"[{[]([^{}[\]]*)[\]}]")
_DECIMAL_LIST: Final = re.compile(r"\s*\d{1,20}(\s*,\s*\d{1,20})*\s*,?\s*")
_LITERAL: Final = re.compile(r"(bytearray\()?b(?:'.*'|\".*\")\)?", re.DOTALL)
_DUMP_LINE: Final = re.compile(r"^\s*(?:0[xX])?[0-9a-fA-F]{4,16}(?::\s|\s\s|\t)\s*((?:[0-9a-fA-F]{2,4}\s{1,2})+)")
_CUTE_PRINT: Final = re.compile(r"DESC_TMA512:\s*0x[0-9a-fA-F]{16}(?:\s+[0-9a-fA-F]{16}){7}\s*")


def is_cute_print(text: str) -> bool:
    """Whether this is the text of CuTe's print of a descriptor: eight words, word 7 first, `0x` at the first alone."""
    return _CUTE_PRINT.fullmatch(text.strip()) is not None


def bytes_in(text: str) -> bytes | None:
    """The bytes that a text spells byte by byte, if it does: plain hex, bytes of gdb's x/128bx, xxd, hexdump -C.

    >>> bytes_in("00" * 64) == bytes(64)
    True
    """
    if _LITERAL.fullmatch(text.strip()):
        return _literal(text.strip())
    numbers = _decimals(text)
    if len(numbers) in (PAYLOAD_BYTES, MAP_BYTES) and max(numbers) < 256:
        return bytes(numbers)
    compact = "".join(text.split())
    if compact[:2] in ("0x", "0X"):
        compact = compact[2:]
    if len(compact) in (2 * PAYLOAD_BYTES, 2 * MAP_BYTES) and re.fullmatch(r"[0-9a-fA-F]+", compact):
        return bytes.fromhex(compact)
    lines = [line for line in text.splitlines() if line.strip()]
    matches = [_DUMP_LINE.match(line + "  ") for line in lines]
    digits = ["".join(match[1].split())[:32] for match in matches if match is not None]
    joined = "".join(digits)
    if len(joined) in (2 * PAYLOAD_BYTES, 2 * MAP_BYTES):
        return bytes.fromhex(joined)
    found = _WORD.findall(_body(text))
    if len(found) in (PAYLOAD_BYTES, MAP_BYTES) and all(len(word) <= 2 for word in found):
        return bytes(int(word, 16) for word in found)
    return None


def bare_words(text: str) -> list[int]:
    """The words of a text that is 8 or 16 groups of 16 hex digits and nothing else; [] of another one.

    >>> bare_words("0000000000001000 " * 8)[:2]
    [4096, 4096]
    """
    groups = text.split()
    whole = len(groups) in (PAYLOAD_BYTES // 8, MAP_BYTES // 8) and all(_BARE.fullmatch(group) for group in groups)
    return [int(group, 16) for group in groups] if whole else []


def _literal(text: str) -> bytes | None:
    """The bytes of a Python literal, `b'...'` or `bytearray(b'...')`."""
    try:
        found = ast.literal_eval(text.removeprefix("bytearray(").removesuffix(")") if text[1] == "y" else text)
    except (SyntaxError, ValueError):
        return None
    return found if isinstance(found, bytes) and len(found) in (PAYLOAD_BYTES, MAP_BYTES) else None


def words_in(text: str) -> list[int]:
    """The 64-bit words in a text, in its order; halves of 32 bits are joined, the lower one first.

    Raises:
        ParseError: there are none.

    >>> words_in("desc = {0x1000, 0x0 <repeats 7 times>}")
    [4096, 0, 0, 0, 0, 0, 0, 0]
    """
    body = _body(text)
    found = _WORD.findall(body)
    words = [int(word, 16) for word in found]
    if not words:
        words = _decimals(text)
        if words:
            return words
    bare = [int(word, 16) for word in _BARE.findall(_WORD.sub(" ", body))]
    words += bare
    if not words:
        raise ParseError("no words and no bytes of a tensor map in this text", {"text": repr(text[:80])})
    narrow = not bare and len(found) in (16, 32) and all(len(word) <= 8 for word in found)
    if narrow and (len(found) == 32 or all(len(word) == 8 for word in found)):
        return [low | high << 32 for low, high in zip(words[::2], words[1::2], strict=True)]
    return words


def _body(text: str) -> str:
    """The text without addresses and labels before the words, repetitions written out."""
    expanded = _REPEATS.sub(lambda match: ", ".join([match[1]] * min(int(match[2]), MAP_BYTES)), text)
    return "\n".join(_LABEL.sub("", _ADDRESS.sub("", line)) for line in expanded.splitlines())


def _decimals(text: str) -> list[int]:
    """Decimal words in the innermost braces or brackets, as gdb prints a struct and Python a list."""
    expanded = _REPEATS.sub(lambda match: ", ".join([match[1]] * min(int(match[2]), MAP_BYTES)), text)
    for inside in _BRACES.findall(expanded):
        if _DECIMAL_LIST.fullmatch(inside) and inside.count(",") >= PAYLOAD_BYTES // 8 - 1:
            words = [int(word) for word in inside.split(",") if word.strip()]
            return words if all(word < 1 << 64 for word in words) else []
    return []
