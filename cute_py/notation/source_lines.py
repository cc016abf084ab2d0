"""Read the source lines that a compiler writes into PTX with `-lineinfo`: the directives `.loc` and `.file`.

    .loc 1 21 5                                              line 21 of file 1
    .loc 2 151 3, function_name $L, inlined_at 1 3 76        line 151 of file 2, inlined at line 3 of file 1

If line 3 is itself in an inlined function, an earlier `.loc` for 1 3 76 names the line where that function was inlined,
and so on up to the kernel.

Source: PTX ISA 9.0, debugging directives: .loc, .file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

Location: TypeAlias = tuple[int, ...]
"""(file, line), and for an inlined function also the (file, line) of the outermost call."""

_LOC = re.compile(r"\s*(\d{1,9})\s+(\d{1,9})(?:\s+(\d{1,9}))?")
_INLINED = re.compile(r"\binlined_at\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})")
_MOST_CALLS: Final = 32
"""Maximum number of calls that are followed from an inlined function to the kernel."""


class Locations:
    """Reads the `.loc` directives of a PTX text in their order, and resolves inlined lines.

    >>> locations = Locations()
    >>> locations.read(" 1 21 5")
    (1, 21)
    >>> locations.read(" 1 3 76, function_name $L__info_string0, inlined_at 1 18 16")
    (1, 3, 1, 18)
    >>> locations.read(" 2 151 3, function_name $L__info_string1, inlined_at 1 3 76")
    (2, 151, 1, 18)
    """

    def __init__(self) -> None:
        self._calls: dict[Location, Location] = {}

    def read(self, rest: str) -> Location | None:
        """Return the location of a `.loc` with the operands `rest`: (file, line), followed by (file, line) of the call
        in the kernel if the line was inlined. None if `rest` has another form."""
        found = _LOC.match(rest)
        if found is None:
            return None
        here = tuple([int(part or 0) for part in found.groups()])
        at = _INLINED.search(rest)
        self._calls.pop(here, None)
        if at is None:
            return here[:2]
        self._calls[here] = call = tuple([int(part) for part in at.groups()])
        for _ in range(_MOST_CALLS):
            outer = self._calls.get(call, (0, 0))
            if not outer[1]:
                break
            call = outer
        return here[:2] + (call[:2] if call[1] else ())


def source_file(number: int, files: Mapping[int, str]) -> str:
    """Return the name of a source file, without its folders."""
    return files.get(number, f"file {number}").rsplit("/", 1)[-1]


def location_text(location: Location | None, files: Mapping[int, str]) -> str:
    """Return a location as a string; empty if the compiler gave no line.

    >>> location_text((1, 21), {1: "/home/ring.cu"}), location_text((1, 0), {})
    ('ring.cu:21', '')
    >>> location_text((2, 151, 1, 21), {1: "ring.cu", 2: "/usr/include/barrier.h"})
    'barrier.h:151, inlined at ring.cu:21'
    """
    places = [(location[at], location[at + 1]) for at in range(0, len(location), 2)] if location else []
    texts = [f"{source_file(file, files)}:{line}" for file, line in places if line]
    return ", inlined at ".join(dict.fromkeys(texts))


def line_text(line: int, source: str) -> str:
    """Return the text for a line of PTX, with the source line that it was compiled from.

    >>> line_text(108, "ring.cu:21"), line_text(7, "")
    ('line 108 (ring.cu:21)', 'line 7')
    """
    return f"line {line} ({source})" if source else f"line {line}"
