"""The public names of this library: under which name an object is found, and what a constant is.

A constant (a number, a text, a table) has no docstring of its own in Python; its words are the text that stands below
it in the source, and the rows that it has.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import sys
from collections.abc import Iterator
from typing import Any

from cute_py.explanation.wording import MOST, is_ours, one_line, shortened

PACKAGES = (
    "cute_py",
    "cute_py.tma",
    "cute_py.targets",
    "cute_py.tmem",
    "cute_py.atom",
    "cute_py.draw",
    "cute_py.testing",
    "cute_py.errors",
    "cute_py.dtypes",
)
"""Where public names are looked for, in this order."""
KNOWN = {"__version__": "The version of this library, as a release has it; docs/changes tells what each brought."}
"""Words for names that have none in the source."""


def names_of(package: str) -> list[str]:
    """The public names of a package; of a module without a list, what it defines itself."""
    module = importlib.import_module(package)
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [*listed, *getattr(module, "_STRATEGIES", ()), *getattr(module, "_HOME", ())]
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == package]
    return [name for name in own if not name.startswith("_")]


def public_objects() -> Iterator[tuple[str, Any]]:
    """(dotted name, object) of everything public; names of optional packages that are not installed are left out."""
    for package in PACKAGES:
        try:
            names = names_of(package)
        except ImportError:
            continue
        module = importlib.import_module(package)
        short = package.removeprefix("cute_py").lstrip(".")
        for name in names:
            try:
                value = getattr(module, name)
            except ImportError:
                continue
            yield (f"{short}.{name}" if short else name), value


@functools.cache
def public_names() -> dict[int, str]:
    """Identity of an object -> `cute_py.` and the name under which it is found; objects of modules live for ever."""
    found: dict[int, str] = {}
    for name, value in public_objects():
        if not isinstance(value, (int, str)) or is_ours(type(value)):
            found.setdefault(id(value), f"cute_py.{name}")
    return found


def found_by_name(text: str) -> tuple[str, Any] | None:
    """(name, object) of a public name with its place, such as "tma.RULES" or "cute.composition", or None."""
    if "." not in text or not all(part.isidentifier() for part in text.split(".")):
        return None
    wanted = text.removeprefix("cute_py.").removeprefix("cute.")
    wanted = wanted.replace("tma.run.", "tma.").replace("tma.lower.", "tma.")
    for name, value in public_objects():
        if name == wanted:
            return name, value
    return None


def is_constant(thing: Any) -> bool:
    """A table, a union of types, or a plain value that a public name stands for."""
    if isinstance(thing, (tuple, dict)) or type(thing).__name__ == "UnionType":
        return id(thing) in public_names() or _is_rows(thing)
    if isinstance(thing, (int, str)) and not is_ours(type(thing)) and not isinstance(thing, bool):
        return any(type(value) is type(thing) and value == thing for _, value in public_objects())
    return False


def _is_rows(thing: Any) -> bool:
    """A tuple of rows of this library, all of one kind."""
    kinds = {type(entry) for entry in thing} if isinstance(thing, tuple) and thing else set()
    return len(kinds) == 1 and is_ours(kind := kinds.pop()) and hasattr(kind, "__dataclass_fields__")


def constant_words(name: str | None, value: Any) -> str:
    """The names under which it is found, what the source says of it, and its rows."""
    names = [name] if name else [n for n, other in public_objects() if _same(other, value)]
    title = " = ".join([f"cute_py.{n}" for n in names] or [f"{len(value)} rows"])
    parts = [f"{title} = {value!r}" if isinstance(value, (int, str)) else title]
    parts += [text for n in names if (text := KNOWN.get(n) or source_words(n.rpartition(".")[2], value))]
    if isinstance(value, dict):
        rows = [f"  {one_line(key)} : {shortened(one_line(row))}" for key, row in list(value.items())[:MOST]]
        parts.append("\n".join([f"{len(value)} entries", *rows, *_rest(len(value))]))
    elif isinstance(value, tuple):
        parts += _tuple_parts(value)
    elif not isinstance(value, (int, str)):
        parts.append("\n".join(["Any of", *(f"  {one_line(kind.__name__)}" for kind in value.__args__)]))
    return "\n\n".join(dict.fromkeys(parts))


def _same(one: Any, other: Any) -> bool:
    return one is other or (isinstance(other, (int, str)) and type(one) is type(other) and one == other)


def _tuple_parts(value: tuple[Any, ...]) -> list[str]:
    kind = type(value[0]) if value else tuple
    rows = [f"  {_row_name(row)}" for row in value[:MOST]]
    head = f"{len(value)} entries"
    parts = []
    if is_ours(kind) and _is_rows(value):
        parts.append(f"Each is a {kind.__name__}: {inspect.getdoc(kind) or ''}".rstrip(": "))
        head = f"{len(value)} rows; explain of one of them tells all of it"
    return [*parts, "\n".join([head, *rows, *_rest(len(value))])]


def _rest(count: int) -> list[str]:
    return [f"  ... and {count - MOST} more"] if count > MOST else []


def _row_name(row: Any) -> str:
    """What tells a row from the others, and the start of the rest."""
    names = list(getattr(row, "__dataclass_fields__", {}))
    if not names or not is_ours(type(row)):
        return shortened(one_line(row))
    shown = [f"{n} = {one_line(getattr(row, n))}" for n in names if n != "source" and not callable(getattr(row, n))]
    return shortened(", ".join(shown))


def source_words(name: str, value: Any) -> str:
    """The text below the assignment of a name in the source, else the first paragraph of the module that has it."""
    for module in [m for n, m in sorted(sys.modules.items()) if n.startswith("cute_py.")]:
        if vars(module).get(name, _NOTHING) is not value or hasattr(module, "__path__"):
            continue
        found, words = _below(module.__name__, name)
        if found:
            return words or " ".join((module.__doc__ or "").split("\n\n")[0].split())
    return ""


_NOTHING = object()


@functools.cache
def _below(module: str, name: str) -> tuple[bool, str]:
    """(is the name assigned at the top of this module?, the text below)."""
    try:
        body = ast.parse(inspect.getsource(sys.modules[module])).body
    except (OSError, TypeError):
        return False, ""
    for statement, after in zip(body, [*body[1:], None], strict=True):
        targets: list[Any] = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
        if not any(isinstance(target, ast.Name) and target.id == name for target in targets):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            return True, inspect.cleandoc(after.value.value)
        return True, ""
    return False, ""
