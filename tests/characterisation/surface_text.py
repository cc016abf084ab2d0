"""The public surface as text: names, signatures, defaults, members, enumerators, and the help of every command."""

from __future__ import annotations

import contextlib
import enum
import inspect
import io
import os
import re
from typing import Any

from tests.calls import surface
from tests.calls.described import described, normalised

_FUNCTION = re.compile(r"<function (\w+) at 0x[0-9a-f]+>")


def signature(value: Any) -> str:
    """Its parameters and result, with defaults as text."""
    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    try:
        return normalised(_FUNCTION.sub(r"\1", str(inspect.signature(function))))
    except (TypeError, ValueError):
        return ""


def _line(name: str, value: Any) -> str:
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        rows = (f"{k}={v.value!r}" for k, v in value.__members__.items())
        return normalised(f"enum {name}: {', '.join(rows)}")
    if inspect.isclass(value):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        return f"class {name}({bases}){signature(value)}"
    if callable(value):
        return f"def {name}{signature(value)}"
    return f"{name} = {described(value)[:300]}"


def _member(name: str, value: Any) -> str:
    if isinstance(value, classmethod | staticmethod):
        return f"    {type(value).__name__} {name}{signature(value)}"
    if callable(value):
        return f"    def {name}{signature(value)}"
    if isinstance(value, property):
        return f"    {name} (property)"
    return f"    {name}"


def names_text() -> str:
    """One line a name, and one a member."""
    lines = []
    members = surface.members()
    for name, value in sorted(surface.exported().items()):
        lines.append(_line(name, value))
        of = [key for key in members if key.startswith(name + ".") and key.rsplit(".", 1)[0] == name]
        lines += [_member(key.rsplit(".", 1)[1], members[key]) for key in of]
    return "\n".join(lines) + "\n"


def _helps(parser: Any, title: str) -> list[str]:
    import argparse

    found = [f"== {title}", parser.format_help()]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                found += _helps(child, f"{title} {name}")
    return found


def help_text() -> str:
    """--help of every command and of every action of it, 80 columns wide."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return "\n".join(_helps(surface.command_parser(), "cute-py"))
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def text() -> str:
    return names_text() + "\n" + help_text()
