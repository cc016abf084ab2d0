"""Explain the definitions of this library: functions, classes, enums, modules, constants, and objects without a
docstring (rows of tables, members of enums).

An explanation consists of the docstring, with shapes, units, errors and source; the signature, fields, members and
values from the code; and the public name. A constant (a number, a string, a table) has no docstring in Python, so its
explanation is the string below its assignment in the source, and its rows.
"""

from __future__ import annotations

import ast
import contextlib
import enum
import functools
import importlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import Field, fields, is_dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cute_py.errors import counted

if TYPE_CHECKING:
    from cute_py.draw.picture import Picture

Thing: TypeAlias = Any
"""Any Python object. For an object of another library, `explain` reports that it has no explanation."""
LONGEST: Final = 160
"""Maximum number of characters that are shown of a value."""
WIDTH: Final = 110
"""Maximum number of characters in a line of text, and in a signature on one line."""
MOST: Final = 24
"""Maximum number of table entries that are shown."""
PACKAGES: Final = (
    "cute_py",
    "cute_py.tma",
    "cute_py.targets",
    "cute_py.tmem",
    "cute_py.atom",
    "cute_py.draw",
    "cute_py.testing",
    "cute_py.errors",
    "cute_py.dtypes",
    "cute_py.formats",
)
"""The packages to search for public names, in order."""
TEXTS: Final = ("__version__",)
"""Names of the top package that are strings; no other package has such names."""
KNOWN: Final = {"__version__": "The version of this library; CHANGELOG.md lists the changes of each release."}
"""Text for names without a docstring in the source."""


# ---- how a text is laid out -----------------------------------------------------------------------------------------


def is_ours(thing: Thing) -> bool:
    """Whether an object is a class or function of this library."""
    return (getattr(thing, "__module__", "") or "").split(".")[0] == "cute_py"


def first_sentence(thing: Thing) -> str:
    """The first paragraph of the docstring, on one line.

    >>> first_sentence(first_sentence)
    'The first paragraph of the docstring, on one line.'
    """
    line = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    end = line.find(". ")
    return line if end < 0 else line[: end + 1]


def one_line(value: Thing) -> str:
    """A value as one line; a sequence is printed entry by entry."""
    if isinstance(value, dict):
        return ", ".join(f"{k}: {v}" for k, v in list(value.items())[:MOST])
    if isinstance(value, (tuple, list, frozenset, set)) and not hasattr(value, "_fields"):
        return ", ".join(" ".join(str(v).split()) for v in list(value)[:MOST]) or "none"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"an array of {value.dtype}, {tuple(value.shape)}"
    return " ".join(str(value).split())


def first_part(text: str) -> str:
    """A string shortened to at most LONGEST characters.

    >>> len(first_part("x" * 1000))
    160
    """
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def listed(title: str, rows: list[tuple[str, str]]) -> str:
    """A title with `name : text` lines below it; an empty string if there are no rows."""
    if not rows:
        return ""
    width = max(len(name) for name, _ in rows)
    return "\n".join([title, *(f"  {name:<{width}} : {text}".rstrip(" :") for name, text in rows)])


def filled(label: str, text: str) -> str:
    """A label followed by `text`, in lines of at most WIDTH characters; later lines are aligned with the first word of
    `text`.

    >>> print(filled("  why : ", "word " * 24))
      why : word word word word word word word word word word word word word word word word word word word word
            word word word word
    """
    return textwrap.fill(text, WIDTH, initial_indent=label, subsequent_indent=" " * len(label), break_long_words=False)


def _paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


# ---- public names --------------------------------------------------------------------------------------------------


def names_of(package: str) -> list[str]:
    """The public names of a package; for a module without `__all__`, the names that it defines."""
    module = importlib.import_module(package)
    public = getattr(module, "__all__", None)
    if public is not None:
        return [*public, *getattr(module, "_STRATEGIES", ()), *getattr(module, "_HOME", ())]
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == package]
    return [name for name in own if not name.startswith("_")]


def dotted_names() -> Iterator[tuple[str, str, str]]:
    """Yield (dotted name, package, name) for each public name. A package is imported when its first name is needed."""
    for package in PACKAGES:
        try:
            names = names_of(package)
        except ImportError:
            continue
        prefix = f"{package}.".removeprefix("cute_py.")
        yield from ((prefix + name, package, name) for name in names)


def public_objects(*wanted: str) -> Iterator[tuple[str, Thing]]:
    """(dotted name, object) of all public objects, except objects that need an optional package that is not installed.

    wanted: the last parts of the wanted names. The default is all names, which imports the whole library.
    """
    for dotted, package, name in dotted_names():
        if not wanted or name in wanted:
            with contextlib.suppress(ImportError):
                yield dotted, getattr(sys.modules[package], name)


@functools.cache
def public_names() -> dict[int, str]:
    """The id of each public object -> its public name, with the prefix `cute_py.`. The ids stay valid, because the
    objects of modules are never freed."""
    found: dict[int, str] = {}
    for name, value in public_objects():
        if not isinstance(value, (int, str)) or is_ours(type(value)):
            found.setdefault(id(value), f"cute_py.{name}")
    return found


def public_name(thing: Thing) -> str | None:
    """The public name of an object, with the prefix `cute_py.`. An object with a `__name__` is looked up by that
    name."""
    named = getattr(thing, "__name__", None)
    for name, value in public_objects(named) if isinstance(named, str) and "." not in named else ():
        if value is thing:
            return f"cute_py.{name}"
    return public_names().get(id(thing))


def found_by_name(text: str) -> tuple[str, Thing] | None:
    """(name, object) for a public name, with or without its package ("tma.RULES", "composition"); None for any other
    string."""
    if not all(part.isidentifier() for part in text.split(".")):
        return None
    wanted = text.removeprefix("cute_py.").removeprefix("cute.")
    wanted = wanted.replace("tma.run.", "tma.").replace("tma.lower.", "tma.")
    first = None
    for row in public_objects(wanted.rpartition(".")[2]):
        if row[0] == wanted:
            return row
        if first is None and row[0].rpartition(".")[2] == wanted:
            first = row
    return first


# ---- functions, classes, modules -----------------------------------------------------------------------------------


def is_function(thing: Thing) -> bool:
    """Whether an object is a function of this library, or a wrapper of one (a cached function, a hypothesis
    strategy)."""
    inner = getattr(thing, "__wrapped__", thing)
    return inspect.isroutine(inner) and (is_ours(inner) or id(thing) in public_names())


def function_text(function: Callable[..., object]) -> str:
    """The signature, the public name, and the docstring of a function."""
    return _paragraphs(_signature(function), _place(function), inspect.getdoc(function) or "")


def class_text(kind: type) -> str:
    """The signature or members, the public name, the docstring, and the members of an instance."""
    if issubclass(kind, enum.Enum):
        members = [(member.name, str(member.value)) for member in kind]
        return _paragraphs(kind.__name__, _place(kind), inspect.getdoc(kind) or "", listed("Members", members))
    held = [(f.name, f.type if isinstance(f.type, str) else str(f.type)) for f in _fields(kind)]
    asked = [(name, first_sentence(value)) for name, value in _public_members(kind)]
    return _paragraphs(function_text(kind), listed("Fields", held), listed("Members", asked))


def module_text(module: ModuleType) -> str:
    """The module's docstring, and a line for each public name."""
    rows = []
    for name in sorted(getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]):
        value = getattr(module, name)
        short = f"{module.__name__}.{name}".removeprefix("cute_py.").replace("cute_py.", "cute.")
        is_known = inspect.isclass(value) or is_function(value)
        rows.append((name, first_sentence(value) if is_known else f"{type(value).__name__}, explain({short!r})"))
    doc = inspect.cleandoc(module.__doc__ or "")
    return "\n\n".join([module.__name__, doc, listed("Public names", rows)])


def _fields(kind: type) -> tuple[Field[object], ...]:
    return fields(kind) if is_dataclass(kind) else ()


def _place(thing: Thing) -> str:
    public = public_name(thing)
    module = getattr(getattr(thing, "__wrapped__", thing), "__module__", "")
    return f"{public}, defined in {module}" if public else f"defined in {module}"


def _signature(thing: Callable[..., object]) -> str:
    """Name and parameters with their defaults; types are omitted, because the docstring gives them with their units."""
    try:
        parameters = list(inspect.signature(thing).parameters.values())
    except (TypeError, ValueError):
        return f"{thing.__name__}(...)"
    stars: dict[inspect._ParameterKind, str] = {
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
    }
    shown = [stars.get(p.kind, "") + p.name + _default(p.default) for p in parameters]
    kinds = [p.kind for p in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        shown.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    line = f"{thing.__name__}({', '.join(shown)})"
    return line if len(line) <= WIDTH else f"{thing.__name__}(\n    " + ",\n    ".join(shown) + ",\n)"


def _default(value: Thing) -> str:
    if value is inspect.Parameter.empty:
        return ""
    text = str(value) if isinstance(value, enum.Enum) else repr(value)
    return f"={text}" if len(text) <= 40 else f"={text[:37]}..."


def _public_members(kind: type) -> Iterator[tuple[str, Thing]]:
    for name, value in vars(kind).items():
        is_method = inspect.isroutine(value) or isinstance(value, (property, classmethod, staticmethod))
        is_member = is_method or isinstance(value, functools.cached_property)
        if is_member and not name.startswith("_") and (inspect.getdoc(value) or "").strip():
            yield name, value


# ---- single objects ------------------------------------------------------------------------------------------------


def instance_text(thing: Thing) -> str:
    """Explain an instance: its str, the docstring of its class, and its values."""
    kind, doc, printed = type(thing).__name__, inspect.getdoc(type(thing)), str(thing)
    nameless = f"{kind} object at 0x" in printed
    rows = [("value", str(int(thing)))] if isinstance(thing, int) else values_of(thing)
    return "\n\n".join(
        [
            public_names().get(id(thing), kind) if nameless else first_part(printed),
            f"{kind}: {doc}" if doc else kind,
            *([listed("Here", rows)] if rows else []),
        ]
    )


def member_text(member: enum.Enum) -> str:
    """Explain a member of an enum: its value, its enum, and the table row that describes the member."""
    kind, row = type(member), row_of(member)
    others = [other.name for other in kind if other is not member]
    return _paragraphs(
        f"{kind.__name__}.{member.name} = {member.value!r}",
        inspect.getdoc(kind) or "",
        "" if row is None else listed(f"Its row: {first_sentence(type(row))}", values_of(row)),
        filled("", f"The others: {', '.join(others)}") if others else "",
    )


def row_of(member: enum.Enum) -> Thing:
    """The table row that describes a member: its `row` attribute, or the row of a public table with this member."""
    own = getattr(member, "row", None)
    if is_dataclass(own):
        return own
    from cute_py.tma.atom.op import SWIZZLE_MODES
    from cute_py.tma.descriptor.data_types import FORMATS, TensorMapDataType, TensorMapSwizzle

    if isinstance(member, TensorMapDataType):
        return next((row for row in FORMATS if row.data_type == member), None)
    if isinstance(member, TensorMapSwizzle):
        return next((row for row in SWIZZLE_MODES if row.code == member), None)
    return None


def picture_text(picture: Picture) -> str:
    """Explain a picture: its title, the number of cells, the meaning of the colours, and its text form."""
    legends = [legend for table in picture.tables for legend in table.used_legends]
    said = [
        f"  {e.text}{': ' if e.text and e.swatches else ''}{', '.join(name for _, name in e.swatches)}" for e in legends
    ]
    size = f"{counted(len(picture.tables), 'table')}, {counted(picture.count, 'cell')}"
    count = f"A picture of {size}; a notebook shows it."
    drawn = ["In the SVG", *dict.fromkeys(said)] if said else []
    return _paragraphs(picture.title, count, "\n".join(drawn), picture.text)


def values_of(thing: Thing) -> list[tuple[str, str]]:
    """(name, text) of an object's attributes, and of its properties that are numbers, strings or tuples of these."""
    names = [f.name for f in _fields(thing)]
    names += [*getattr(type(thing), "__slots__", ()), *getattr(thing, "__dict__", {})]
    names += [name for name, value in vars(type(thing)).items() if isinstance(value, property)]
    out = []
    for name in dict.fromkeys(names):
        if name.startswith("_"):
            continue
        try:
            value = getattr(thing, name)
        except Exception:
            continue
        if not callable(value) and value is not None and not (isinstance(value, str) and not value):
            out.append((name, first_part(one_line(value))))
        elif inspect.isfunction(value):
            out.append((name, f"{value.__name__}: {first_sentence(value)}"))
    return out


# ---- constants -----------------------------------------------------------------------------------------------------


def is_constant(thing: Thing) -> bool:
    """Whether an object is a public constant: a table, a union of types, or a plain value with a public name."""
    if isinstance(thing, (tuple, dict)) or type(thing).__name__ == "UnionType":
        return id(thing) in public_names() or _is_rows(thing)
    if isinstance(thing, (int, str)) and not is_ours(type(thing)) and not isinstance(thing, bool):
        if isinstance(thing, str):
            return any(_same(getattr(sys.modules["cute_py"], name), thing) for name in TEXTS)
        return any(_same(value, thing) for _, value in public_objects())
    return False


def _same(one: Thing, other: Thing) -> bool:
    return one is other or (isinstance(other, (int, str)) and type(one) is type(other) and bool(one == other))


def _is_rows(thing: Thing) -> bool:
    """Whether an object is a table: a tuple of rows of this library, all of one class."""
    kinds = {type(entry) for entry in thing} if isinstance(thing, tuple) and thing else set()
    return len(kinds) == 1 and is_ours(kind := kinds.pop()) and is_dataclass(kind)


def constant_text(name: str | None, value: Thing) -> str:
    """Explain a constant: its public names, its docstring in the source, and its rows."""
    names = [name] if name else [n for n, other in public_objects() if _same(other, value)]
    title = " = ".join([f"cute_py.{n}" for n in names] or [f"{len(value)} rows"])
    parts = [f"{title} = {value!r}" if isinstance(value, (int, str)) else title]
    parts += [text for n in names if (text := KNOWN.get(n) or source_text(n.rpartition(".")[2], value))]
    if isinstance(value, dict):
        rows = [f"  {one_line(key)} : {first_part(one_line(row))}" for key, row in list(value.items())[:MOST]]
        parts.append("\n".join([f"{len(value)} entries", *rows, *_rest(len(value))]))
    elif isinstance(value, tuple):
        head = f"{len(value)} entries"
        if _is_rows(value):
            kind = type(value[0])
            parts.append(f"Each is a {kind.__name__}: {inspect.getdoc(kind) or ''}".rstrip(": "))
            head = f"{len(value)} rows; explain a row to see it in full"
        parts.append("\n".join([head, *(f"  {_row_name(row)}" for row in value[:MOST]), *_rest(len(value))]))
    elif not isinstance(value, (int, str)):
        parts.append("\n".join(["Any of", *(f"  {one_line(kind.__name__)}" for kind in value.__args__)]))
    return "\n\n".join(dict.fromkeys(parts))


def _rest(count: int) -> list[str]:
    return [f"  ... and {count - MOST} more"] if count > MOST else []


def _row_name(row: Thing) -> str:
    """A row on one line: its fields without the source, shortened."""
    if not is_dataclass(row) or not is_ours(type(row)):
        return first_part(one_line(row))
    held = [(f.name, getattr(row, f.name)) for f in fields(row) if f.name != "source"]
    return first_part(", ".join(f"{name} = {one_line(value)}" for name, value in held if not callable(value)))


def source_text(name: str, value: Thing) -> str:
    """The string below the assignment of a name in the source; without one, the first paragraph of the docstring of the
    module that defines the name."""
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
    """(whether the name is assigned at the top level of this module, the string below the assignment)."""
    try:
        body = ast.parse(inspect.getsource(sys.modules[module])).body
    except (OSError, TypeError):
        return False, ""
    for statement, after in zip(body, [*body[1:], None], strict=True):
        targets: list[ast.expr | None] = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
        if not any(isinstance(target, ast.Name) and target.id == name for target in targets):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            return True, inspect.cleandoc(after.value.value)
        return True, ""
    return False, ""
