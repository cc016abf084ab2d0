"""The difference of two maps, field by field and bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cute_py.argument_checks import expect_fields
from cute_py.errors import InvalidValueError
from cute_py.tma.descriptor import fields as f
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.json_form import FieldValue, field_table
from cute_py.tma.descriptor.read import read_map
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field that two maps hold differently; None where a map of that kind and rank has no such field."""

    label: str
    where: str
    first: int | None
    second: int | None
    unit: str
    meaning: str = ""

    def __post_init__(self) -> None:
        expect_fields(self)

    def __str__(self) -> str:
        values = ["-" if value is None else str(value) for value in (self.first, self.second)]
        unit = f" {self.unit}" if self.unit else ""
        meaning = f" ({self.meaning})" if self.meaning else ""
        return f"{self.label} {self.where}: {values[0]} -> {values[1]}{unit}{meaning}"


@dataclass(frozen=True, slots=True)
class MapDifference:
    """What differs. It is true if anything does.

    `bits` are (word, bit) of each differing bit, lowest first. `compared` is the number of bytes that both have.
    """

    fields: tuple[FieldDifference, ...]
    bits: tuple[tuple[int, int], ...]
    compared: int

    def __post_init__(self) -> None:
        expect_fields(self)

    def __bool__(self) -> bool:
        return bool(self.bits)

    @property
    def same_copies(self) -> bool:
        """Whether the hardware would do the same with both: only bits that it does not read differ."""
        return all(word >= f.PAYLOAD_BYTES // 8 for word, _ in self.bits)

    def __str__(self) -> str:
        if not self.bits:
            return f"equal in all {self.compared} bytes"
        count = len(self.bits)
        lines = [f"{count} {'bit differs' if count == 1 else 'bits differ'} in {self.compared} bytes"]
        lines += [f"  {difference}" for difference in self.fields]
        for word in sorted({word for word, _ in self.bits}):
            inside = [bit for of, bit in self.bits if of == word]
            lines.append(f"  word {word} {'bit' if len(inside) == 1 else 'bits'} {ranges(inside)}")
        if self.same_copies:
            lines.append("  the hardware reads none of these bits")
        return "\n".join(lines)


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers as text, three neighbours or more joined.

    >>> ranges([3, 5, 6, 8, 9, 10, 63])
    '3, 5, 6, 8-10, 63'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def _bytes_of(what: Any) -> bytes:
    if isinstance(what, (TensorMapTiled, TensorMapIm2col, TensorMapIm2colWide)):
        return encode(what)
    return read_map(what)


def diff(a: Any, b: Any) -> MapDifference:
    """The difference of two maps; over 64 bytes if one of them has no more.

    Args:
        a, b: requests, or whatever `read_map` takes.
    Raises:
        As `read_map`, and as `encode` for requests.

    >>> from cute_py.tma.descriptor.replace import replace
    >>> print(diff(bytes(64), replace(bytes(64), "global_dim", 9, 0)))
    1 bit differs in 64 bytes
      global_dim[0] w4[0:31]: 1 -> 9 elements
      word 4 bit 3
    """
    first, second = _bytes_of(a), _bytes_of(b)
    size = min(len(first), len(second))
    first, second = first[:size], second[:size]
    if size not in (f.PAYLOAD_BYTES, f.MAP_BYTES):
        raise InvalidValueError(f"tensor map of {size} bytes; must be {f.PAYLOAD_BYTES} or {f.MAP_BYTES}")
    changed = int.from_bytes(first, "little") ^ int.from_bytes(second, "little")
    bits = tuple((p // 64, p % 64) for p in range(8 * size) if changed >> p & 1)
    return MapDifference(tuple(_field_differences(first, second, changed)), bits, size)


def _field_differences(first: bytes, second: bytes, changed: int) -> list[FieldDifference]:
    if not changed:
        return []
    tables = [{(row.label, row.where): row for row in field_table(raw)} for raw in (first, second)]
    keys = sorted({*tables[0], *tables[1]}, key=lambda key: _place(tables, key))
    found = []
    for key in keys:
        rows: list[FieldValue | None] = [table.get(key) for table in tables]
        raws = [None if row is None else row.raw for row in rows]
        if raws[0] == raws[1]:
            continue
        shown = next(row for row in rows if row is not None)
        values = [None if row is None else row.value for row in rows]
        meanings = [row.meaning if row is not None and row.meaning else "-" for row in rows]
        meaning = f"{meanings[0]} -> {meanings[1]}" if any(text != "-" for text in meanings) else ""
        found.append(FieldDifference(*key, values[0], values[1], shown.unit, meaning))
    return found


def _place(tables: list[dict[tuple[str, str], FieldValue]], key: tuple[str, str]) -> tuple[int, int, str]:
    row = tables[0].get(key) or tables[1][key]
    return row.word, row.shift, row.label
