"""The entries of the API reference: every public name once, on the page that names the module that defines it.

A page of docs/reference has lines `<!-- entries: layout.composition layout.coalesce -->`. Each is replaced by the
entries of the public names that the modules cute_py.layout.composition and cute_py.layout.coalesce, or modules within
them, define. A public name is one of `dir(cute)`, or of `dir()` of a public package such as `cute.tma`.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGES = (
    "", "atom", "formats", "tma", "tmem", "mesh", "draw", "testing", "watch",
)  # fmt: skip
"""Where users find names: `cute` itself and its public packages, in the order used to look up a name."""
MODULES = ("errors", "dtypes", "targets", "testing.strategies")
"""Modules whose own names are public."""
DIRECTIVE = re.compile(r"^<!-- entries: ([\w. ]+) -->$", re.MULTILINE)

ASSIGNED = re.compile(r"^(\w+(?:, ?\w+)*)(?: =|:) ", re.MULTILINE)
"""Targets at the start of a line. A line of a text may look like it, so what a
module has under the name decides."""


@dataclass(frozen=True)
class PublicName:
    """A public name.

    Attributes:
        typed: as users type it (`cute.tma.encode`). module, name: the definition (`cute_py.tma.descriptor.encode`,
            `encode`). aliases: other names of the same thing, as users type them.
    """

    typed: str
    module: str
    name: str
    aliases: tuple[str, ...] = ()

    @property
    def all_typed(self) -> tuple[str, ...]:
        return self.typed, *self.aliases

    @property
    def short(self) -> str:
        """The name alone, as a heading: what a reader searches for."""
        return self.typed.rpartition(".")[2]


@functools.cache
def _assigned() -> dict[str, tuple[str, ...]]:
    """Name that a module assigns at its top level -> the modules that do."""
    import cute_py

    found: dict[str, list[str]] = {}
    root = Path(str(cute_py.__file__)).parent
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for targets in ASSIGNED.findall(path.read_text(encoding="utf-8")):
            for target in targets.split(","):
                found.setdefault(target.strip(), []).append(module)
    return {name: tuple(modules) for name, modules in found.items()}


def _definition(package: str, name: str, thing: Any) -> tuple[str, str]:
    """The module that defines a thing, and its name there."""
    module, own = (
        getattr(thing, "__module__", None),
        getattr(thing, "__qualname__", None),
    )
    if isinstance(module, str) and isinstance(own, str):
        return module, own
    homes = [
        (module, known)
        for known in dict.fromkeys((name, *_assigned()))
        for module in _assigned().get(known, ())
        if getattr(sys.modules.get(module), known, None) is thing
    ]
    own_name = [home for home in homes if home[1] == name] or homes
    within = [home for home in own_name if home[0].startswith(package)]
    return (within or own_name or [("", name)])[0]


@functools.cache
def public_names() -> tuple[PublicName, ...]:
    """Every public name of the package, in the order of `PACKAGES` and the alphabet."""
    found: dict[tuple[str, str], list[str]] = {}
    for inside in (*PACKAGES, *MODULES):
        package = importlib.import_module(f"cute_py.{inside}".rstrip("."))
        for name in dir(package):
            thing = getattr(package, name)
            if name.startswith("_") or isinstance(thing, ModuleType | bool):
                continue
            home = _definition(package.__name__, name, thing)
            if home[0].startswith(
                package.__name__ if inside in MODULES else "cute_py"
            ):
                found.setdefault(home, []).append(
                    f"cute.{inside}.{name}".replace("..", ".")
                )
    return tuple(
        PublicName(typed[0], *home, tuple(typed[1:]))
        for home, typed in found.items()
    )


def entries(modules: str) -> tuple[PublicName, ...]:
    """The public names that modules define, given as in a directive, in the order of their source."""
    chosen = [
        one
        for prefix in modules.split()
        for one in public_names()
        if f"{one.module}.{one.name}.".startswith(f"cute_py.{prefix}.")
    ]
    return tuple(dict.fromkeys(chosen))


def _several_at_once(one: PublicName) -> bool:
    """Whether one assignment defines several names, which the reader of sources does not see."""
    source = Path(str(sys.modules[one.module].__file__)).read_text(
        encoding="utf-8"
    )
    return any(
        isinstance(target, ast.Tuple)
        and one.name in ast.unparse(target).strip("()").split(", ")
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign)
        for target in node.targets
    )


def entry(one: PublicName) -> str:
    """The Markdown of an entry: its heading is the name, so that a search for the name finds it first."""
    if _several_at_once(one):
        value = getattr(sys.modules[one.module], one.name)
        return f'<span id="{one.typed}"></span>\n\n### {one.short}\n\n`{one.typed}` is `{value!r}`.\n'
    anchors = "".join(f'<span id="{typed}"></span>' for typed in one.all_typed)
    also = (
        f"\n\nAlso {', '.join(f'`{typed}`' for typed in one.aliases)}.\n"
        if one.aliases
        else ""
    )
    return (
        f"{anchors}\n\n::: {one.module}.{one.name}\n"
        "    options:\n"
        "      show_root_heading: true\n"
        "      show_root_full_path: false\n"
        f'      heading: "{one.short}"\n'
        f'      toc_label: "{one.short}"\n'
        f"      heading_level: 3\n{also}"
    )


def expanded(markdown: str) -> str:
    """A page of the reference with its entries in place of the directives."""
    return DIRECTIVE.sub(
        lambda found: "\n\n".join(map(entry, entries(found[1]))), markdown
    )
