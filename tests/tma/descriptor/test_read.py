"""Maps from buffers, words, texts, files and dumps."""

from __future__ import annotations

import array
import contextlib
import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import CuteError, FileFormatError, InvalidTypeError, InvalidValueError, ParseError
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.read import read_map
from cute_py.tma.descriptor.request import TensorMap
from tests.each import each_of
from tests.tma.descriptor.requests import TILED, legal

MAP = encode(TILED)
WORDS = [int.from_bytes(MAP[i : i + 8], "little") for i in range(0, 128, 8)]
HALF = MAP[:64]


def gdb_giants(words: list[int], base: int = 0x7FFFFFFFE000) -> str:
    lines = [
        f"0x{base + 8 * i:x} <desc+{8 * i}>:\t0x{words[i]:016x}\t0x{words[i + 1]:016x}" for i in range(0, len(words), 2)
    ]
    return "\n".join(lines)


def gdb_words(words: list[int]) -> str:
    halves = [half for word in words for half in (word & 0xFFFFFFFF, word >> 32)]
    return "\n".join(
        f"0x7ffe{4 * i:04x}:\t" + "\t".join(f"0x{half:08x}" for half in halves[i : i + 4])
        for i in range(0, len(halves), 4)
    )


def cute_print(words: list[int]) -> str:
    """CuTe prints word 7 first, four words a line."""
    high = " ".join(f"{word:016x}" for word in words[7:3:-1])
    low = " ".join(f"{word:016x}" for word in words[3::-1])
    return f"DESC_TMA512: 0x{high}\n               {low}\n"


def xxd(raw: bytes) -> str:
    lines = []
    for start in range(0, len(raw), 16):
        row = raw[start : start + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{start:08x}: {row.hex(' ', 2)}  {shown}")
    return "\n".join(lines)


def hexdump(raw: bytes) -> str:
    """As hexdump -C, without the lines of asterisks (option -v)."""
    lines = []
    for start in range(0, len(raw), 16):
        row = raw[start : start + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{start:08x}  {row[:8].hex(' ')}  {row[8:].hex(' ')}  |{shown}|")
    return "\n".join([*lines, f"{len(raw):08x}"])


def gdb_bytes(raw: bytes) -> str:
    rows = range(0, len(raw), 8)
    return "\n".join(f"0x7ffe{i:04x}:\t" + "\t".join(f"0x{byte:02x}" for byte in raw[i : i + 8]) for i in rows)


def memory_window(raw: bytes) -> str:
    """As the memory window of Visual Studio: an address without a colon, bytes, characters."""
    rows = range(0, len(raw), 16)
    return "\n".join(f"0x00007FFE0000{i:04X}  {raw[i : i + 16].hex(' ')}  ................" for i in rows)


TEXTS = {
    "hex": MAP.hex(),
    "hex with spaces": MAP.hex(" "),
    "hex in words": MAP.hex(" ", 8),
    "hex in capitals": MAP.hex().upper(),
    "hex with 0x": "0x" + MAP.hex(),
    "gdb x/16gx": gdb_giants(WORDS),
    "gdb x/32wx": gdb_words(WORDS),
    "gdb print": "$1 = {opaque = {" + ", ".join(hex(word) for word in WORDS[:10]) + ", 0x0 <repeats 6 times>}}",
    "gdb print in decimal": "$2 = {opaque = {" + ", ".join(map(str, WORDS[:10])) + ", 0 <repeats 6 times>}}",
    "gdb x/128bx": gdb_bytes(MAP),
    "xxd": xxd(MAP),
    "hexdump -C": hexdump(MAP),
    "memory window": memory_window(MAP),
    "printf without 0x": " ".join(f"{word:016x}" for word in WORDS),
    "C": "uint64_t desc[16] = {" + ", ".join(f"0x{word:X}ULL" for word in WORDS) + "};",
    "printf": "DESC_TMA512: " + " ".join(f"0x{word:016x}" for word in WORDS),
    "Python list of words": str(WORDS),
    "Python list of bytes": str(list(MAP)),
    "Python bytes": repr(MAP),
    "Python bytearray": repr(bytearray(MAP)),
    "C in decimal": "uint64_t desc[16] = {" + ", ".join(map(str, WORDS)) + ",};",
    "high first": " ".join(f"0x{word:016x}" for word in reversed(WORDS)),
}


@each_of("name", TEXTS)
def test_texts(name: str) -> None:
    assert read_map(TEXTS[name]) == MAP


def test_cute_prints_word_7_first() -> None:
    assert read_map(cute_print(WORDS)) == HALF


@given(legal)
def test_every_map_survives_each_text(request: TensorMap) -> None:
    raw = encode(request)
    words = [int.from_bytes(raw[i : i + 8], "little") for i in range(0, 128, 8)]
    assert read_map(gdb_giants(words)) == raw
    assert read_map(gdb_words(words)) == raw
    assert read_map(gdb_bytes(raw)) == read_map(xxd(raw)) == read_map(hexdump(raw)) == raw
    assert read_map("{opaque = {" + ", ".join(map(str, words)) + "}}") == raw
    assert read_map(repr(raw)) == read_map(str(list(raw))) == read_map(str(words)) == raw
    assert read_map(gdb_giants(words[:8])) == raw[:64]
    assert read_map(cute_print(words)) == raw[:64]
    assert read_map(" ".join(map(hex, reversed(words))), order="high_first") == raw
    assert read_map(" ".join(map(hex, words)), order="low_first") == raw
    assert read_map(raw.hex(" ")) == read_map(raw.hex(" ", 8)) == read_map(memory_window(raw)) == raw
    assert read_map(" ".join(f"{word:016x}" for word in words), order="low_first") == raw


def test_four_words_are_the_lower_half() -> None:
    line = "DESC_TMA512: " + " ".join(f"0x{word:016x}" for word in WORDS[:4])
    assert read_map(line) == HALF[:32] + bytes(32)
    assert read_map(line, order="high_first")[:8] == HALF[24:32]
    backwards = "DESC_TMA512: " + " ".join(f"0x{word:016x}" for word in WORDS[3::-1])
    assert read_map(backwards) == HALF[:32] + bytes(32)
    for alone in (line.removeprefix("DESC_TMA512: "), WORDS[:4]):
        with pytest.raises(InvalidValueError, match=r"must have 8 or 16 words of 64 bits"):
            read_map(alone)


def halves(raw: bytes) -> list[int]:
    return [int.from_bytes(raw[i : i + 4], "little") for i in range(0, len(raw), 4)]


SEPARATORS = (", ", " ", "\n", ",\n  ", "; ", "\t", " , // a word\n", " /* { */ ")


@given(legal, st.sampled_from(SEPARATORS), st.sampled_from(["%d", "0x%x", "%#x", "0x%X%s", "%dULL"]), st.data())
def test_c_arrays_of_any_words(request: TensorMap, separator: str, form: str, data: st.DataObject) -> None:
    raw = encode(request)[: data.draw(st.sampled_from([64, 128]))]
    words = [int.from_bytes(raw[i : i + 8], "little") for i in range(0, len(raw), 8)]
    for type_, values in (("uint64_t", words), ("unsigned int", halves(raw)), ("unsigned char", list(raw))):
        numbers = [f"{n:#x}u" if form.endswith("s") else form % n if n else "0" for n in values]
        declared = f"{type_} desc[{len(values)}] = {{{separator.join(numbers)}}};"
        assert read_map(declared, order="low_first") == raw
        if form != "%d" or separator.startswith(","):
            bare = separator.join(numbers)
            assert read_map(f"{{{bare}}}") == read_map(f"[{bare}]", order="low_first") == raw
        with pytest.raises(CuteError):  # a number left out is no map, and neither is one too many
            read_map(declared.replace(separator, " ", 1) if len(values) < 2 else f"{{{separator.join(numbers[1:])}}}")
        with pytest.raises(CuteError):
            read_map(f"{{{separator.join(['0', *numbers])}}}")


BARE = "00007f0000000000 0000004000046310 0 0 000000c7000000ff 0 3f00000000000000 3f"
ARRAY = "{0x7f0000000000, 0x4000046310, 0, 0, 0xc7000000ff, 0, 0x3f00000000000000, 0x3f}"
SMALL = [0x7F0000000000, 0x4000046310, 0, 0, 0xC7000000FF, 0, 0x3F00000000000000, 0x3F]


@each_of(
    "text",
    [
        BARE,
        ARRAY,
        ARRAY.strip("{}"),
        ARRAY.replace(",", ""),
        ARRAY.replace(", ", ";\n"),
        "{" + ", ".join(f"[{i}] = {word:#x}" for i, word in enumerate(SMALL)) + "}",
        "\n".join(f"desc[{i}] = {word:#x};" for i, word in enumerate(SMALL)),
        "\n".join(f"word {i}: {word:#x}" for i, word in enumerate(SMALL)),
        ", ".join(f"w{i}={word:#x}" for i, word in enumerate(SMALL)),
        "array([" + ", ".join(map(str, SMALL)) + "], dtype=uint64)",
        "[" + ", ".join(f"np.uint64({word})" for word in SMALL) + "]",
        "{" + ", ".join(f"UINT64_C({word:#x})" for word in SMALL) + "}",
        "{" + ", ".join(f"(uint64_t){word:#x}" for word in SMALL) + "}",
        '["' + '", "'.join(map(hex, SMALL)) + '"]',
        "(unsigned long[8]) $0 = (" + ", ".join(f"[{i}] = {word:#x}" for i, word in enumerate(SMALL)) + ")",
        "static const uint32_t desc[] = {"
        + ", ".join(map(str, [h for w in SMALL for h in (w & 2**32 - 1, w >> 32)]))
        + "};",
        " ".join(f"{h:08x}" for w in SMALL for h in (w & 2**32 - 1, w >> 32)),
        " ".join(f"0x{h:08x}" for w in SMALL for h in (w & 2**32 - 1, w >> 32)),
    ],
)
def test_zeros_count(text: str) -> None:
    assert read_map(text) == b"".join(word.to_bytes(8, "little") for word in SMALL)


@each_of(
    ("text", "error", "message", "fact"),
    [
        (
            BARE.replace(" 0 0 ", " "),
            InvalidValueError,
            "must have 8 or 16 words of 64 bits",
            "16 bytes fewer than 64",
        ),
        (
            " ".join(["0x00000001"] * 8),
            InvalidValueError,
            "8 words of 32 bits (32 bytes)",
            "32 bytes fewer than 64",
        ),
        (
            "{" + "0, " * 16 + "}",
            InvalidValueError,
            "16 numbers below 2**32 may be 64 bytes (words of 32 bits)",
            "uint32_t",
        ),
        (
            "uint8_t d[8] = {1, 2, 3, 4, 5, 6, 7, 8}",
            InvalidValueError,
            "must have 8 or 16 words of 64 bits",
            "56 bytes fewer than 64",
        ),
        (
            "uint32_t d[16] = {" + "0x100000000, " * 16 + "}",
            InvalidValueError,
            "because a map of 16 numbers has such words",
            "0x100000000",
        ),
        ("0x1 " * 15 + "0x" + "1" * 17, InvalidValueError, "number 15 of 16", "0x1111"),
        ("0x1 " * 15 + "0x" + "1" * 99, ParseError, "is not a number", ""),
        ("DESC: 0x1 0x2 and 0x3 0x4 0x5 0x6 0x7 0x8", ParseError, "'and' in the text", ""),
        ("low: 0x1 0x2 0x3 0x4 high: 0x5 0x6 0x7 0x8", ParseError, "'high:' in the text", ""),
        (
            "4096 10 0 0 0 0 0 0",
            ParseError,
            "numbers without 0x may be decimal or hexadecimal",
            "numbers with 0x, or put decimal ones in",
        ),
        (ARRAY + " " + ARRAY, ParseError, "2 arrays of numbers", ""),
        (cute_print(WORDS) * 2, ParseError, "); must have one", ""),
        ("{[1] = 0x1, [0] = 0x2, 0, 0, 0, 0, 0, 0}", ParseError, "the indices in this text are not 0, 1, 2", "[1, 0]"),
        (
            "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n*\n",
            ParseError,
            "the line * replaces lines that the dump omitted",
            "-v",
        ),
        ("{0 <repeats 500 times>}", InvalidValueError, "must have 8 or 16 words of 64 bits", "more than 128"),
        ("{0 <repeats " + "9" * 5000 + " times>}", ParseError, "is not a number", ""),
        ("[" + "\u0661, " * 16 + "]", ParseError, "the text has neither the words nor the bytes of a tensor map", ""),
        ("0x1 " * 10_000, ParseError, "characters; must have at most", ""),
    ],
)
def test_what_is_missing_is_said(text: str, error: type[CuteError], message: str, fact: str) -> None:
    with pytest.raises(error) as refused:
        read_map(text)
    assert message in refused.value.headline
    assert fact in str(refused.value)


def test_orders_and_huge_words() -> None:
    with pytest.raises(InvalidValueError, match="order = 'x'"):
        read_map(MAP, order="x")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="bits"):
        read_map([1 << 20_000] * 8)


@each_of(
    "source",
    [
        MAP,
        bytearray(MAP),
        memoryview(MAP),
        numpy.frombuffer(MAP, numpy.uint8),
        numpy.array(WORDS, numpy.uint64),
        numpy.frombuffer(MAP, numpy.uint8).reshape(8, 16),
        numpy.frombuffer(bytes(b for byte in MAP for b in (byte, 0)), numpy.uint8)[::2],
        (ctypes.c_uint8 * 128).from_buffer_copy(MAP),
        (ctypes.c_uint64 * 16)(*WORDS),
        array.array("Q", WORDS),
        WORDS,
        tuple(numpy.array(WORDS, numpy.uint64)),
        SimpleNamespace(opaque=WORDS),
    ],
    ids=lambda source: type(source).__name__,
)
def test_buffers_and_words(source: Any) -> None:
    assert read_map(source) == MAP
    assert decode(source) == TILED


def test_words_that_are_only_convertible() -> None:
    class Word:
        def __init__(self, value: int) -> None:
            self.value = value

        def __int__(self) -> int:
            return self.value

    assert read_map(SimpleNamespace(opaque=[Word(word) for word in WORDS])) == MAP


def test_files(tmp_path: Path) -> None:
    binary, text, bad, hexfile = (tmp_path / name for name in ("map.bin", "map.txt", "bad.bin", "half.hex"))
    binary.write_bytes(MAP)
    text.write_text(gdb_giants(WORDS))
    bad.write_bytes(b"\xff" * 77)
    hexfile.write_text(HALF.hex())
    assert read_map(binary) == read_map(text) == MAP
    assert read_map(hexfile) == HALF
    with pytest.raises(FileFormatError, match="bytes; must be text, or have 64 or 128 bytes"):
        read_map(bad)
    with pytest.raises(FileFormatError, match="No such file"):
        read_map(tmp_path / "none")
    with pytest.raises(FileFormatError, match="Is a directory"):
        read_map(tmp_path)
    with pytest.raises(FileFormatError, match="null byte"):
        read_map(Path("a\0b"))
    with pytest.raises(FileFormatError, match="more than 8192 bytes"):
        read_map(Path("/dev/zero"))


@each_of(
    ("source", "error", "message"),
    [
        ("", ParseError, "the text has neither the words nor the bytes of a tensor map"),
        ("hello", ParseError, "the text has neither the words nor the bytes of a tensor map"),
        ("0x1 0x2 0x3", InvalidValueError, "must have 8 or 16 words of 64 bits"),
        (" ".join(["0x1"] * 17), InvalidValueError, "must have 8 or 16 words of 64 bits"),
        ([1] * 7, InvalidValueError, "the tensor map has 7 words; must have 8 or 16 words of 64 bits"),
        ([-1] * 8, InvalidValueError, r"a word of the tensor map is -1; must be 0 to 2\*\*64 - 1"),
        ([1 << 64] * 8, InvalidValueError, "must be 0 to 2\\*\\*64 - 1"),
        ([1, "x", 3, 4, 5, 6, 7, 8], InvalidTypeError, "a word of a tensor map must be an integer, got str"),
        ([1.0] * 8, InvalidTypeError, "a word of a tensor map must be an integer, got"),
        ([float("nan")] * 8, InvalidTypeError, "a word of a tensor map must be an integer, got"),
        (None, InvalidTypeError, "a tensor map must be bytes, a buffer, words or text, got NoneType"),
        (5, InvalidTypeError, "a tensor map must be bytes, a buffer, words or text, got int"),
        (numpy.zeros(5), InvalidValueError, "the tensor map has 40 bytes; must have 64 or 128"),
    ],
)
def test_what_holds_no_map(source: Any, error: type[CuteError], message: str) -> None:
    with pytest.raises(error, match=message):
        read_map(source)


@given(st.text())
def test_any_text_gives_a_map_or_the_librarys_error(text: str) -> None:
    with contextlib.suppress(CuteError):
        assert len(read_map(text)) in (64, 128)


@pytest.mark.parametrize("size", (1, 63, 65, 127, 129))
def test_a_file_of_bytes_that_is_no_map_says_its_size(tmp_path: Path, size: int) -> None:
    file = tmp_path / "map.bin"
    file.write_bytes(bytes(size))
    with pytest.raises(FileFormatError, match=f"map.bin has {size} bytes; must be text, or have 64 or 128 bytes"):
        read_map(file)
