"""List the bit fields of a map, and compare two maps field by field and bit by bit."""

from __future__ import annotations

from collections.abc import Sequence

from cute_py.argument_checks import record
from cute_py.tma.descriptor import fields as f
from cute_py.tma.descriptor.data_types import CODE_TO_FORMAT
from cute_py.tma.descriptor.decode import signed_corners
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.read import MapSource, read_map
from cute_py.tma.descriptor.request import ENUM_OF, TensorMap

__all__ = ["FieldDifference", "FieldValue", "MapDifference", "diff", "field_table"]


@record
class FieldValue:
    """One bit field of a map: its position, value and meaning.

    >>> from cute_py.tma.descriptor import TensorMapTiled, encode
    >>> data = encode(TensorMapTiled("float16", 4096, (64, 16), (128,), (64, 8)))
    >>> [(one.label, one.value) for one in field_table(data)][:2]
    [('global_address', 4096), ('load_mode', 0)]
    """

    label: str
    word: int
    shift: int
    width: int
    raw: int
    value: int
    unit: str
    meaning: str

    @property
    def where(self) -> str:
        """The word and bits of the field, as 'w1[7:10]'."""
        end = self.shift + self.width - 1
        return f"w{self.word}[{self.shift}]" if self.width == 1 else f"w{self.word}[{self.shift}:{end}]"


def field_table(data: MapSource) -> list[FieldValue]:
    """List the bit fields of a map, lowest bit first. Words with set bits outside all fields come last.

    Args:
        data: any source that `read_map` accepts.

    >>> [(row.label, row.where, row.value) for row in field_table(bytes(128))][:3]
    [('global_address', 'w0[0:63]', 0), ('load_mode', 'w1[0]', 0), ('rank', 'w1[4:6]', 1)]
    """
    raw = read_map(data)
    bits = int.from_bytes(raw, "little")
    im2col = bool(bits >> f.P_LOAD_MODE & 1)
    rank = min((bits >> f.P_RANK & 7) + 1, f.MAX_RANK)
    rows = []
    for row in f.live_fields(im2col, rank):
        if row.position < 8 * len(raw):
            value = row.read(bits)
            shown, meaning = _meaning(row, value, bits, rank)
            rows.append(FieldValue(row.label, row.word, row.shift, row.width, value, shown, row.unit, meaning))
    left = bits & ~f.field_mask(im2col, rank)
    for word in range(len(raw) // 8):
        rest = left >> (64 * word) & 0xFFFFFFFFFFFFFFFF
        if rest:
            rows.append(FieldValue("unknown", word, 0, 64, rest, rest, "", f"bits outside every field: 0x{rest:016x}"))
    return rows


def _meaning(row: f.BitField, raw: int, bits: int, rank: int) -> tuple[int, str]:
    if row.name in ENUM_OF:
        return raw, next((m.name for m in ENUM_OF[row.name] if m == raw), "unknown")
    if row.name == "format":
        found = CODE_TO_FORMAT.get((raw, f.field("tf32_round").read(bits)), CODE_TO_FORMAT.get((raw, 0)))
        return raw, "unknown" if found is None else found.name
    if row.name == "rank":
        return raw + 1, "" if raw < f.MAX_RANK else "unknown"
    if row.name == "load_mode":
        return raw, "im2col" if raw else "tiled"
    if row.name == "global_stride_low":
        high = f.field("global_stride_high", row.mode).read(bits)
        return raw, f"stride {(raw | high << 32) << 4} bytes"
    if row.name.startswith("pixel_box"):
        return raw, ", ".join(map(str, signed_corners(raw, rank)))
    if row.encoding.endswith(" - 1"):
        return raw + 1, ""
    return raw, ""


@record
class FieldDifference:
    """One field that differs between two maps. A value is None if its map has no such field.

    >>> from cute_py.tma.descriptor import TensorMapTiled, diff, encode
    >>> one, other = (encode(TensorMapTiled("float16", 4096, (64, 16), (128,), (64, rows))) for rows in (8, 16))
    >>> found = diff(one, other).fields[0]
    >>> found.label, found.first, found.second
    ('box_dim[1]', 8, 16)
    """

    label: str
    where: str
    first: int | None
    second: int | None
    unit: str
    meaning: str = ""

    def __str__(self) -> str:
        values = ["-" if value is None else str(value) for value in (self.first, self.second)]
        unit = f" {self.unit}" if self.unit else ""
        meaning = f" ({self.meaning})" if self.meaning else ""
        return f"{self.label} {self.where}: {values[0]} -> {values[1]}{unit}{meaning}"


@record
class MapDifference:
    """The differences between two maps. The object is true if there are any.

    `bits` has the (word, bit) of each differing bit, lowest first. `compared` is the number of bytes that were
    compared.

    >>> from cute_py.tma.descriptor import TensorMapTiled, diff, encode
    >>> one, other = (encode(TensorMapTiled("float16", 4096, (64, 16), (128,), (64, rows))) for rows in (8, 16))
    >>> print(diff(one, other))
    3 bits differ in 128 bytes
      box_dim[1] w7[0:7]: 8 -> 16 elements
      note_box_bytes w8[0:63]: 1024 -> 2048 bytes
      word 7 bit 3
      word 8 bits 10, 11
    """

    fields: tuple[FieldDifference, ...]
    bits: tuple[tuple[int, int], ...]
    compared: int

    def __bool__(self) -> bool:
        return bool(self.bits)

    @property
    def same_copies(self) -> bool:
        """Whether the hardware treats both maps alike, because they differ only in bits that it does not read."""
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
    """Format ascending integers as a string; three or more consecutive integers become a range.

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


def diff(a: MapSource, b: MapSource) -> MapDifference:
    """Compare two maps. If one of them has only 64 bytes, compare 64 bytes.

    Args:
        a, b: requests, or any sources that `read_map` accepts.
    Raises:
        See `read_map`, and for requests `encode`.

    >>> from cute_py.tma.descriptor.replace import replace
    >>> print(diff(bytes(64), replace(bytes(64), "global_dim", 9, 0)))
    1 bit differs in 64 bytes
      global_dim[0] w4[0:31]: 1 -> 9 elements
      word 4 bit 3
    """
    raws = [encode(what) if isinstance(what, TensorMap) else read_map(what) for what in (a, b)]
    size = min(map(len, raws))
    first, second = raws[0][:size], raws[1][:size]
    changed = int.from_bytes(first, "little") ^ int.from_bytes(second, "little")
    bits = tuple((p // 64, p % 64) for p in range(8 * size) if changed >> p & 1)
    return MapDifference(tuple(_field_differences(first, second, changed)), bits, size)


def _field_differences(first: bytes, second: bytes, changed: int) -> list[FieldDifference]:
    if not changed:
        return []
    tables = [{(row.label, row.where): row for row in field_table(raw)} for raw in (first, second)]
    places = {key: (row.word, row.shift, row.label) for table in tables[::-1] for key, row in table.items()}
    found = []
    for key in sorted(places, key=lambda key: places[key]):
        rows = [table.get(key) for table in tables]
        raws = [None if row is None else row.raw for row in rows]
        if raws[0] == raws[1]:
            continue
        values = [None if row is None else row.value for row in rows]
        unit = next(row.unit for row in rows if row is not None)
        meanings = [(row and row.meaning) or "-" for row in rows]
        meaning = " -> ".join(meanings) if set(meanings) != {"-"} else ""
        found.append(FieldDifference(*key, values[0], values[1], unit, meaning))
    return found
