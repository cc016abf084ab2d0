"""Pictures of tensor maps: every bit of a descriptor, with the names of the fields.

Each 64-bit word takes two rows: field names above, bits below, with bit 63 on the left. A field that is too narrow for
its name gets a letter, which the list below the picture explains. The tables in `fields` define the positions and
meanings of the fields.
"""

from __future__ import annotations

from cute_py.draw.picture import Picture
from cute_py.draw.render_svg import CHARACTER
from cute_py.draw.table import TONES, Cell, Legend, Table, hatch_legend
from cute_py.tma.descriptor.data_types import CODE_TO_FORMAT
from cute_py.tma.descriptor.decode import signed_corners
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.fields import CORNER_WIDTH, MAX_RANK, PAYLOAD_BYTES, BitField, field, live_fields
from cute_py.tma.descriptor.read import MapSource, read_map
from cute_py.tma.descriptor.request import TensorMap

WORD = 64
SHOWN_WORDS = 10
"""The hardware reads words 0 to 7; words 8 and 9 are notes of the driver; the rest is 0."""
BIT_WIDTH = 16.0
"""Pixels of a drawn bit."""


def draw_descriptor(what: TensorMap | MapSource) -> Picture:
    """Draw the bit map of a tensor map.

    Args:
        what: the 64 or 128 bytes of a tensor map, any other argument of `read_map`, or a request such as
            `TensorMapTiled`.
    Raises:
        The errors of `read_map`, and for a request that breaks a rule the errors of `encode`.

    >>> request = cute.tma.TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=3)
    >>> [line for line in draw_descriptor(request).text.splitlines() if "box_dim" in line][0]
    ' p  word 6  bits 63-56  box_dim[0] = 63  size - 1, elements, so 64'
    """
    raw = encode(what) if isinstance(what, TensorMap) else read_map(what)
    bits = int.from_bytes(raw, "little")
    im2col, rank = bool(field("load_mode").read(bits)), field("rank").read(bits) + 1
    words = min(SHOWN_WORDS, len(raw) // 8)
    rows = [row for row in live_fields(im2col, min(rank, MAX_RANK)) if row.word < words]
    keys = {row: _key(i) for i, row in enumerate(rows)}
    legend = [_line(row, keys[row], bits) for row in rows]
    cells: list[tuple[Cell | None, ...]] = []
    names: list[str] = []
    for word in range(words):
        here = sorted((row for row in rows if row.word == word), key=lambda row: -row.shift)
        cells += [_names(here, keys, bits), _bits(here, keys, word, bits)]
        names += ["", f"word {word}"]
    table = Table(
        "",
        tuple(cells),
        tuple(names),
        tuple(str(bit) for bit in range(WORD - 1, -1, -1)),
        column_axis="bits",
        notes=tuple(legend),
        legends=(Legend("colour: bits that are 1, by field"), hatch_legend("a 1 outside the known fields")),
        plain_text="\n".join([*legend, "", *(_word(word, bits) for word in range(words))]),
        cell_width=BIT_WIDTH,
        cell_height=18.0,
    )
    kind = "im2col" if im2col else "tiled"
    return Picture(f"tensor map, {kind}, rank {rank}, {len(raw)} bytes", (table,), _stray(rows, bits, words))


def _word(word: int, bits: int) -> str:
    return f"word {word} = 0x{bits >> (WORD * word) & ((1 << WORD) - 1):016x}"


def _key(index: int) -> str:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return letters[index] if index < len(letters) else letters[index // len(letters) - 1] + letters[index % 26]


def _said(row: BitField, bits: int) -> tuple[str, str]:
    """Return ('label = value', encoding and meaning of the value) of a field."""
    value, unit = row.read(bits), f", {row.unit}" if row.unit else ""
    shown = f"0x{value:x}" if row.width > 32 else str(value)
    return f"{row.label} = {shown}", f"{row.encoding}{unit}{_meaning(row, bits)}"


def _line(row: BitField, key: str, bits: int) -> str:
    high, low = row.shift + row.width - 1, row.shift
    span = f"bits {high:>2}-{low:<2}" if row.width > 1 else f"bit  {low:<5}"
    return f"{key:>2}  word {row.word}  {span}  {'  '.join(_said(row, bits))}"


def _meaning(row: BitField, bits: int) -> str:
    """Meaning of a field's raw value; empty if the raw value needs no interpretation."""
    value, rank = row.read(bits), field("rank").read(bits) + 1
    if row.encoding.endswith(" - 1"):
        return f", so {value + 1}"
    if row.name == "global_stride_low" and row.mode is not None:
        return f", so {(value | field('global_stride_high', row.mode).read(bits) << 32) << 4} bytes"
    if row.name == "format":
        found = CODE_TO_FORMAT.get((value, field("tf32_round").read(bits)))
        return "" if found is None else f": {found.name}"
    if row.name.startswith("pixel_box") and rank in CORNER_WIDTH:
        return f": ({', '.join(map(str, signed_corners(value, rank)))}), W first"
    return ""


def _story(row: BitField, bits: int) -> str:
    value, means = _said(row, bits)
    return f"{value} ({means}); word {row.word}, bits {row.shift + row.width - 1} to {row.shift}"


def _names(fields: list[BitField], keys: dict[BitField, str], bits: int) -> tuple[Cell, ...]:
    """The cells with the field names of one word, high bits first."""
    out, position = [], WORD
    for row in fields:
        end = row.shift + row.width
        if end < position:
            out.append(Cell("", "no field", span=position - end))
        room = (row.width * BIT_WIDTH - 6) / CHARACTER
        long = f"{keys[row]}: {_said(row, bits)[0]}"
        text = next((t for t in (long, f"{keys[row]}: {row.label}") if len(t) <= room), keys[row])
        out.append(Cell(text, _story(row, bits), _tone(keys[row]), span=row.width))
        position = row.shift
    if position:
        out.append(Cell("", "no field", span=position))
    return tuple(out)


def _tone(key: str) -> int:
    return ord(key[-1]) % TONES


def _bits(fields: list[BitField], keys: dict[BitField, str], word: int, bits: int) -> tuple[Cell, ...]:
    """The cells with the bits of one word, high bits first."""
    out = []
    for bit in range(WORD - 1, -1, -1):
        row = next((row for row in fields if row.shift <= bit < row.shift + row.width), None)
        name = "no field" if row is None else f"{row.label} bit {bit - row.shift} of {row.width}"
        value = bits >> (WORD * word + bit) & 1
        tone = _tone(keys[row]) if row is not None and value else None
        stray = (0.0, 1.0) if row is None and value else (1.0, 1.0)
        out.append(Cell(str(value), f"word {word}, bit {bit}: {name}", tone, stray))
    return tuple(out)


def _stray(rows: list[BitField], bits: int, words: int) -> tuple[str, ...]:
    """Notes on the bits that are set outside of all fields, and on the last two words."""
    mask = 0
    for row in rows:
        mask |= row.mask
    notes = []
    for word in range(words):
        extra = (bits & ~mask) >> (WORD * word) & ((1 << WORD) - 1)
        if extra:
            notes.append(f"word {word}: 0x{extra:x} is set outside the known fields")
    if words > PAYLOAD_BYTES // 8:
        notes.append("words 8 and 9 are notes of the driver; the hardware reads words 0 to 7")
    return tuple(notes)
