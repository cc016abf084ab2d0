"""Types and conditions of CuTe C++ that stand alone in a text, without the output of a compiler around them.

A debugger, `c++filt` and a compiler's notes print types:

    cute::Layout<cute::tuple<cute::C<128>, int>, cute::tuple<int, cute::C<1>>>      (_128,n0):(n1,_1)
"""

from __future__ import annotations

import re
from typing import Final

from cute_py.diagnostics import Diagnostic
from cute_py.errors import shortened, unless_refused
from cute_py.explanation.compiler_pastes import MOST_TYPES, type_text
from cute_py.explanation.layout_pastes import facts_of, with_symbols
from cute_py.explanation.readings import Reading, condition_reason, some
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout
from cute_py.layout.swizzle import Swizzle
from cute_py.notation.parse import parse

MOST_ALONE: Final = 1 << 16
_LINE: Final = re.compile(r"[^\n]{12,300}")
_TYPE: Final = re.compile(r"\b(?:cute::)?(?:Composed)?(?:Layout|Swizzle)\s?<")


def read_alone(text: str) -> list[Reading]:
    """The types of a text, else the messages of static assertions; at most `MOST_ALONE` characters are read."""
    return read_types(text[:MOST_ALONE]) or read_conditions(text[:MOST_ALONE])


def read_types(text: str) -> list[Reading]:
    """Every layout and swizzle that is written as a type.

    >>> read_types("cute::Layout<cute::tuple<cute::C<8>, int>, cute::tuple<int, cute::_1> >")[0].kind
    'A type of CuTe C++: (_8,n0):(n1,_1)'
    """
    found: list[Reading] = []
    read_to = 0
    for match in some(_TYPE.finditer(text)):
        if match.start() < read_to:
            continue
        end = _end(text, match.end())
        if end is None:
            cut = "the type is cut off: its arguments do not end"
            found.append(Reading("A type of CuTe C++", match.start(), match.end(), (cut,), missing=("the whole type",)))
            break
        read_to = end
        spelled = with_symbols(type_text(text[match.start() : end]))
        thing = unless_refused(parse, spelled)
        if isinstance(thing, (Layout, ComposedLayout, Swizzle)):
            lines = [line.strip() for line in facts_of(thing)]
            unknown = ["each n is a number that is known at run time only"] if "n0" in spelled else []
            found.append(Reading(f"A type of CuTe C++: {shortened(spelled, 160)}", match.start(), end, lines + unknown))
    return found


def read_conditions(text: str) -> list[Reading]:
    """Every line that is a message of a static assertion, without the words of a compiler before it.

    >>> [reading.kind for reading in read_conditions("Could not find a common tile-gmem vectorization.")]
    ['A static assertion of CuTe, by its message']
    """
    found: list[Reading] = []
    for match in some(_LINE.finditer(text), 20):
        condition = match[0].strip(" \t\"'`")
        if condition_reason(condition) is None:
            continue
        broken = Diagnostic(condition, text=condition, source="CuTe C++")
        missing = ("the output of the compiler around it, which has the types",)
        head = "A static assertion of CuTe, by its message"
        found.append(Reading(head, match.start(), match.end(), broken=(broken,), missing=missing))
    return found


def _end(text: str, begin: int) -> int | None:
    """Behind the `>` that closes the template arguments which begin here."""
    depth = 1
    for i in range(begin, min(len(text), begin + MOST_TYPES)):
        depth += (text[i] == "<") - (text[i] == ">" and text[i - 1] != "-")
        if depth == 0:
            return i + 1
    return None
