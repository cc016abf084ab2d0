"""Find layouts that a composition contains where `parse` cannot read the functions before or after them.

    Sw<3,4,3> o smem_ptr[16b](0x400) o (8,64):(64,1)
    (32,(2,4)):(2,(1,64)) o 3

The other functions change the offsets, so the layout alone would be a wrong answer. The reading evaluates the
composition, or gives the reason why `parse` refuses it, and the forms that CuTe prints. `lost_swizzles` finds printed
tensors that lost the swizzle of their buffer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from cute_py.diagnostics import Diagnostic
from cute_py.errors import CuteError, shortened, unless_refused
from cute_py.explanation.compositions import spelled_composition
from cute_py.explanation.readings import Reading
from cute_py.layout.composed import ComposedLayout
from cute_py.notation.parse import Parsed, parse
from cute_py.tensor.pointers import Pointer
from cute_py.tensor.tensor import Tensor

Print: TypeAlias = tuple[int, int, Parsed, str]
"""A printed object: its position in the text, the object and its label."""

_FUNCTION: Final = re.compile(r"Sw<|(?<![A-Za-z])S<|\bSW_[0-9]|Swizzle<|\(unset\)")
"""Matches the beginning of a swizzle, or a pointer without an address."""
_FORMS: Final = (
    "CuTe prints a swizzled tensor in shared memory as Sw<3,4,3>_smem_ptr[16b](0x400) o (8,64):(64,1)",
    "CuTe prints a swizzled layout as Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1), or with a number as its offset",
)
_OPERAND: Final = re.compile(r"\s{1,9}o\s{1,9}\S")
"""Matches the beginning of a right operand of a composition."""
_COMMENT: Final = re.compile(r"\s{2}|//|#|;")
LONGEST: Final = 200
"""Longest text before a layout, in characters, that is searched for a swizzle."""


def lost_function(line: str, start: int) -> int | None:
    """Where the composition begins whose swizzle a reading from a position would lose; None if it would lose none.

    >>> lost_function("sA: Sw<3,4,3> o ptr o (8,64):(64,1)", 22), lost_function("sA: (8,64):(64,1)", 4)
    (4, None)
    """
    before = line[max(0, start - LONGEST) : start]
    if not before.endswith((" o ", "_", "]")):
        return None
    found = _FUNCTION.search(before)
    if found is None:
        return None
    return start - len(before) + before.rfind(" ", 0, found.start()) + 1


def lost_reading(line: str, begin: int, at: int) -> Reading:
    """The reading of a composition that `parse` refuses. begin: where it starts in the line. at: the position of the
    line in the text."""
    text = line[begin:].strip()
    why = "this composition has no form that CuTe prints"
    try:
        parse(text)
    except CuteError as error:
        why = error.headline
    missing = (f"not read: {shortened(text)}", why, *_FORMS)
    return Reading("A composition with a swizzle", at + begin, at + len(line), missing=missing)


def has_operand(line: str, end: int) -> bool:
    """Whether the layout that ends at a position is the left operand of a composition.

    >>> has_operand("L: (4,8):(8,1) o 3", 14), has_operand("(4,8):(8,1) of A", 11)
    (True, False)
    """
    return _OPERAND.match(line, end) is not None


def operand_reading(line: str, begin: int, at: int) -> Reading:
    """The reading of a composition whose first operand is a layout. begin: where it starts in the line. at: the
    position of the line in the text."""
    text, _, stated = _COMMENT.split(line[begin:], maxsplit=1)[0].strip().partition(" = ")
    span = at + begin, at + len(line)
    if (shown := spelled_composition(text)) is not None:
        head, *lines = shown.split("\n")
        if (claim := unless_refused(parse, stated)) is not None:
            made = next((one for one in reversed(lines) if one.startswith("result: ")), "").rpartition(" = ")[2]
            same = made.replace("_", "") == str(claim).replace("_", "")
            lines.append(f"the text states {claim}, {'which is' if same else 'not'} the result")
        return Reading(head, *span, lines)
    missing = (f"not read: {shortened(text)}", "an operand after `o` is not a layout, a size or a tiler")
    return Reading("A composition of a layout", *span, missing=missing)


def lost_swizzles(prints: Sequence[Print]) -> Iterator[Reading]:
    """Find tensors at the same shared-memory address if some of them are swizzled and others are not."""
    at: dict[int, list[tuple[bool, Print]]] = {}
    for row in prints:
        thing = row[2]
        if isinstance(thing, Tensor) and isinstance(thing.engine, Pointer) and thing.engine.space == "smem":
            swizzled = getattr(thing.engine, "swizzle", None) is not None or isinstance(thing.layout, ComposedLayout)
            at.setdefault(thing.engine.address, []).append((swizzled, row))
    for address, rows in at.items():
        if address and len({swizzled for swizzled, _ in rows}) == 2:
            plain = next(row for swizzled, row in rows if not swizzled)
            whole = next(row for swizzled, row in rows if swizzled)
            text = (
                f"two tensors at shared address {address:#x}, one swizzled ({whole[2]}), one not ({plain[2]}): the "
                "second lost the swizzle and reads the wrong elements"
            )
            advice = (
                f"make the second from the first: local_tile, a slice or composition of {whole[2]} keeps its swizzle"
            )
            yield Reading(
                "One buffer, two layouts",
                plain[0],
                plain[0],
                broken=(Diagnostic("lost swizzle", text=text),),
                advice=(advice,),
            )
