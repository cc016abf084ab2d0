"""Reading texts: what C++, CuTe DSL, Python and this library print, as objects."""

from __future__ import annotations

from cute_py.notation.parse import parse

__all__ = [
    "parse",
]
