"""A griffe extension: doctests become fenced blocks, which the site shows as code; packages show their exports."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import griffe

PLUMBING = {"export_public", "forward", "renamed", "annotations"}
"""What a package imports for itself, from `cute_py.deprecations`."""


def listed(file: Path) -> set[str]:
    """The names that a module lists in `__all__`."""
    for node in ast.parse(file.read_text()).body if file.exists() else []:
        if (
            isinstance(node, ast.Assign)
            and ast.unparse(node.targets[0]) == "__all__"
        ):
            return set(ast.literal_eval(node.value))
    return set()


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

    def on_module_members(self, *, mod: griffe.Module, **_: Any) -> None:
        """Called for every module: a package gives what it imports under its own name, or with a star."""
        if mod.is_init_module and mod.exports is None:
            found = {
                name
                for name, path in mod.imports.items()
                if path.endswith(f".{name}")
            }
            found = (found & set(mod.members)) - PLUMBING
            for path in mod.imports.values():
                if path.startswith(f"{mod.path}.") and path.endswith(".*"):
                    found |= listed(
                        Path(str(mod.filepath)).parent
                        / f"{path.split('.')[-2]}.py"
                    )
            mod.exports = sorted(found)
