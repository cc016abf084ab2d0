"""A griffe extension: the doctests of a docstring become fenced blocks, so that the site shows them as code."""

from __future__ import annotations

from typing import Any

import griffe


def fenced(text: str) -> str:
    """Each run of `>>>` lines with its output, up to a blank line, in a fence of its indentation."""
    out: list[str] = []
    indent: str | None = None
    for line in text.splitlines():
        starts = line.lstrip().startswith(">>>")
        if starts and indent is None:
            indent = line[: len(line) - len(line.lstrip())]
            out += ["", f"{indent}```pycon"]
        elif indent is not None and not line.strip():
            out.append(f"{indent}```")
            indent = None
        out.append(line)
    if indent is not None:
        out.append(f"{indent}```")
    return "\n".join(out)


class FenceDoctests(griffe.Extension):
    """Rewrites the docstring of every object."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
