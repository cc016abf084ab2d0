"""The words for single objects that have none of their own: rows of tables, members of enums, and whatever else this
library makes. They say what such a thing is (its class), then its values, each with its name."""

from __future__ import annotations

import enum
import inspect
from dataclasses import fields, is_dataclass
from typing import Any

from cute_py.explanation.public_names import public_names
from cute_py.explanation.wording import filled, first_sentence, listed, one_line, shortened


def instance_words(thing: Any) -> str:
    """What the object prints, what its class is, and its values."""
    kind = type(thing)
    doc = inspect.getdoc(kind) or ""
    printed = str(thing)
    nameless = f"{kind.__name__} object at 0x" in printed
    parts = [
        public_names().get(id(thing), kind.__name__) if nameless else shortened(printed),
        f"{kind.__name__}: {doc}" if doc else kind.__name__,
    ]
    rows = [("value", str(int(thing)))] if isinstance(thing, int) else values_of(thing)
    if rows:
        parts.append(listed("Here", rows))
    return "\n\n".join(parts)


def member_words(member: enum.Enum) -> str:
    """A member of an enum: its value, what the enum is, and the row of the table that describes the member."""
    kind = type(member)
    parts = [f"{kind.__name__}.{member.name} = {member.value!r}", inspect.getdoc(kind) or ""]
    row = row_of(member)
    if row is not None:
        parts.append(listed(f"Its row: {first_sentence(type(row))}", values_of(row)))
    others = [other.name for other in kind if other is not member]
    if others:
        parts.append(filled("", f"The others: {', '.join(others)}"))
    return "\n\n".join(part for part in parts if part)


def row_of(member: enum.Enum) -> Any:
    """The row that describes a member: its own `row`, or that of a public table which holds it."""
    own = getattr(member, "row", None)
    if is_dataclass(own):
        return own
    from cute_py.tma.atom.op import SWIZZLE_MODES
    from cute_py.tma.descriptor.formats import FORMATS, TensorMapDataType, TensorMapSwizzle

    if isinstance(member, TensorMapDataType):
        return next((row for row in FORMATS if row.data_type == member), None)
    if isinstance(member, TensorMapSwizzle):
        return next((row for row in SWIZZLE_MODES if row.code == member), None)
    return None


def picture_words(picture: Any) -> str:
    """A picture: its title, how much is drawn, what the colours say, then its text twin."""
    legends = [legend for table in picture.tables for legend in table.used_legends]
    said = [
        f"  {e.text}{': ' if e.text and e.swatches else ''}{', '.join(name for _, name in e.swatches)}" for e in legends
    ]
    count = f"A picture of {len(picture.tables)} table(s), {picture.count} cells; in a notebook it shows itself."
    drawn = ["In the SVG", *dict.fromkeys(said)] if said else []
    return "\n\n".join(part for part in [picture.title, count, "\n".join(drawn), picture.text] if part)


def values_of(thing: Any) -> list[tuple[str, str]]:
    """(name, text) of what an object holds and of its properties that are numbers, texts or tuples of them."""
    names = [f.name for f in fields(thing)] if is_dataclass(thing) else []
    names += [n for n in getattr(type(thing), "__slots__", ()) if n not in names and not n.startswith("_")]
    names += [n for n in getattr(thing, "__dict__", {}) if n not in names and not n.startswith("_")]
    names += [n for n, value in vars(type(thing)).items() if isinstance(value, property) and n not in names]
    out = []
    for name in names:
        if name.startswith("_"):
            continue
        try:
            value = getattr(thing, name)
        except Exception:
            continue
        if not callable(value) and value is not None and not (isinstance(value, str) and not value):
            out.append((name, shortened(one_line(value))))
        elif inspect.isfunction(value):
            out.append((name, f"{value.__name__}: {first_sentence(value)}"))
    return out
