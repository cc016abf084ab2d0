"""The words for what this library defines: functions, classes, enums, modules. They come from the docstrings, which say
shapes, units, errors and source; what a docstring leaves to the code (signature, fields, members) is added."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from cute_py.explanation.public_names import public_names
from cute_py.explanation.wording import first_sentence, listed

WIDTH = 110
"""Characters of a signature on one line."""


def is_function(thing: Any) -> bool:
    """A function of this library, or something that wraps one (a cached function, a strategy of the tests)."""
    inner = getattr(thing, "__wrapped__", thing)
    if not inspect.isroutine(inner):
        return False
    return (getattr(inner, "__module__", "") or "").split(".")[0] == "cute_py" or id(thing) in public_names()


def function_words(function: Any) -> str:
    """Signature, where it is found, and what its docstring says."""
    return "\n\n".join([_signature(function, function.__name__), _place(function), *_doc(function)])


def class_words(kind: type) -> str:
    """Signature or members, where it is found, what its docstring says, and what an instance can be asked."""
    parts = [
        kind.__name__ if issubclass(kind, enum.Enum) else _signature(kind, kind.__name__),
        _place(kind),
        *_doc(kind),
    ]
    if issubclass(kind, enum.Enum):
        rows = [(member.name, str(member.value)) for member in kind]
        parts.append(listed("Members", rows))
    elif is_dataclass(kind):
        parts.append(listed("Fields", [(f.name, _type_text(f.type)) for f in fields(kind)]))
    asked = [(name, first_sentence(value)) for name, value in _public_members(kind)]
    if asked and not issubclass(kind, enum.Enum):
        parts.append(listed("To be asked", asked))
    return "\n\n".join(part for part in parts if part)


def module_words(module: Any) -> str:
    """The module's docstring, and a line for each public name."""
    doc = inspect.cleandoc(module.__doc__ or "")
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    rows = []
    for name in sorted(names):
        value = getattr(module, name)
        is_known = inspect.isclass(value) or is_function(value)
        rows.append(
            (name, first_sentence(value) if is_known else f"{type(value).__name__}, explain({_short(module, name)!r})")
        )
    return "\n\n".join([module.__name__, doc, listed("Public names", rows)])


def _short(module: Any, name: str) -> str:
    return f"{module.__name__}.{name}".removeprefix("cute_py.").replace("cute_py.", "cute.")


def _doc(thing: Any) -> list[str]:
    doc = inspect.getdoc(thing) or ""
    return [doc] if doc else []


def _place(thing: Any) -> str:
    inner = getattr(thing, "__wrapped__", thing)
    public = public_names().get(id(thing))
    module = getattr(inner, "__module__", "")
    return f"{public}, defined in {module}" if public else f"defined in {module}"


def _signature(thing: Any, name: str) -> str:
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return f"{name}(...)"
    shown: list[str] = []
    starred = False
    for p in parameters:
        default = "" if p.default is p.empty else f"={_default(p.default)}"
        if p.kind is p.VAR_POSITIONAL:
            shown, starred = [*shown, f"*{p.name}"], True
        elif p.kind is p.VAR_KEYWORD:
            shown.append(f"**{p.name}")
        else:
            if p.kind is p.KEYWORD_ONLY and not starred:
                shown, starred = [*shown, "*"], True
            shown.append(p.name + default)
    line = f"{name}({', '.join(shown)})"
    return line if len(line) <= WIDTH else f"{name}(\n    " + ",\n    ".join(shown) + ",\n)"


def _default(value: Any) -> str:
    text = str(value) if isinstance(value, enum.Enum) else repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _type_text(kind: Any) -> str:
    return kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))


def _public_members(kind: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(kind).items():
        if name.startswith("_") or not (inspect.getdoc(value) or "").strip():
            continue
        if (
            inspect.isroutine(value)
            or isinstance(value, (property, classmethod, staticmethod))
            or (hasattr(value, "func") and hasattr(value, "attrname"))
        ):
            yield name, value
