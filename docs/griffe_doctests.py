"""A griffe extension: doctests become fenced blocks, which the site shows as code; packages show their exports."""

from __future__ import annotations

import ast
import re
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


SECTION = re.compile(
    r"^( *)(Args|Attributes):\n((?:\1 +\S.*\n?|[ \t]*\n)+)", re.M
)


def one_row_each(text: str, names: set[str]) -> str:
    """Each parameter of Args and attribute of Attributes on a line of its own, where several share a text or a line.

    `rows, scales: a tile` becomes two lines, and so does `rows: of a tile. scales: of a row of it`.
    """
    known = "|".join(map(re.escape, sorted(names)))
    if not known:
        return text
    joined = re.compile(rf"(?<=[.;]) (?=(?:{known})(?:, (?:{known}))*: )")
    several = re.compile(
        rf"^( +)((?:{known})(?:, (?:{known}))+): (.*(?:\n\1 +.*)*)", re.M
    )

    def split(found: re.Match[str]) -> str:
        indent, title, body = found.groups()
        own = re.match(r" *", body)[0]  # type: ignore[index]
        body = joined.sub(f"\n{own}", re.sub(rf"\n{own} +", " ", body))
        body = several.sub(
            lambda m: "\n".join(
                f"{m[1]}{name}: {m[3]}" for name in m[2].split(", ")
            ),
            body,
        )
        return f"{indent}{title}:\n{body}"

    return SECTION.sub(split, text)


RAISES = re.compile(r"^( *)Raises:\n((?:\1 +\S.*(?:\n|$))+)", re.M)
ERROR = re.compile(r"\w+(?:, \w+)*: ")


def errors_in_rows(text: str) -> str:
    """Put each error of Raises on a line of its own, after a blank line: without it, griffe sees no section.

    A section with other lines stays text.
    """

    def split(found: re.Match[str]) -> str:
        indent, body = found.groups()
        own = re.match(r" *", body)[0]  # type: ignore[index]
        rows = []
        for row in re.sub(rf"\n{own} +", " ", body).splitlines():
            rows += re.split(
                r"(?<=[.;]) (?=\w+(?:Error|Trap)(?:, \w+)*: )", row.strip()
            )
        if not all(map(ERROR.match, rows)):
            return found[0]
        lines = "".join(f"{own}{row.rstrip(';')}\n" for row in rows)
        return f"\n{indent}Raises:\n{lines}"

    return RAISES.sub(split, text)


class FenceDoctests(griffe.Extension):
    """Rewrites the docstring of every object."""

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        """Called for every function: its parameters get a row each."""
        if func.docstring is not None:
            names = {parameter.name for parameter in func.parameters}
            func.docstring.value = one_row_each(func.docstring.value, names)

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Called for every class, when its members are known: its attributes get a row each, and its parameters the
        types and defaults of `__new__`, where it has no `__init__`."""
        if "__new__" in cls.members:
            cls.members.setdefault("__init__", cls.members["__new__"])
        if cls.docstring is not None:
            cls.docstring.value = one_row_each(
                cls.docstring.value, set(cls.members)
            )

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(errors_in_rows(obj.docstring.value))

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
