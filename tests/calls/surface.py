"""The public names: what the packages export, and the members of every public class.

A name is written as the texts of calls write it: `coalesce`, `Layout.subs`, `tma.TmaAtom.with_`, `cute-py print`.
"""

from __future__ import annotations
import __future__

import enum
import functools
import importlib
import inspect
import sys
import types
from typing import Any

PACKAGES = {
    "": "cute_py",
    "tma.": "cute_py.tma",
    "tmem.": "cute_py.tmem",
    "draw.": "cute_py.draw",
    "mesh.": "cute_py.mesh",
    "formats.": "cute_py.formats",
    "testing.": "cute_py.testing",
}
"""Prefix in the texts of calls -> package. A package that is added here needs its calls in the registry."""

ON_FIRST_USE = ("explain", "copy", "find_smem_layout", "plan_copy", "prepare_copy")
"""Names of `cute_py` outside its `__all__`, imported when they are first used."""

OWN_OF_PYTHON = {
    "__class_getitem__",
    "__delattr__",
    "__getstate__",
    "__init__",
    "__new__",
    "__post_init__",
    "__replace__",
    "__setattr__",
    "__setstate__",
    "__subclasshook__",
    "__init_subclass__",
}
"""Members that a class statement makes, and construction itself, which is the entry of the class."""

BY_EVERY_RESULT = {"__repr__", "__str__", "__hash__", "__eq__", "__bool__", "__len__", "__iter__", "__reduce__"}
"""Members that every result is asked for, whatever call made it (see `outcome.touch`)."""


@functools.cache
def exported() -> dict[str, Any]:
    """Public name -> object, of all packages."""
    found: dict[str, Any] = {}
    for prefix, package in PACKAGES.items():
        module = importlib.import_module(package)
        names = list(module.__all__)
        if package == "cute_py":
            names += ON_FIRST_USE
        if package == "cute_py.testing":
            names += [name for name in dir(module) if not name.startswith("_")]
            names = [name for name in names if not _is_plumbing(getattr(module, name))]
        for name in names:
            found[prefix + name] = getattr(module, name)
    targets = importlib.import_module("cute_py.targets")
    for name in ("Target", "architecture"):  # of ptxas; `tma` has those of tensor maps
        found[f"targets.{name}"] = getattr(targets, name)
    return found


def _is_plumbing(value: Any) -> bool:
    return (
        isinstance(value, types.ModuleType)
        or value is Any
        or isinstance(value, __future__._Feature)
        or (inspect.isclass(value) and issubclass(value, Exception))
    )


@functools.cache
def members() -> dict[str, Any]:
    """`Class.member` -> the descriptor or function, of every public class."""
    found: dict[str, Any] = {}
    for name, kind in exported().items():
        if inspect.isclass(kind) and not issubclass(kind, Exception):
            for member in sorted(_members_of(kind)):
                found[f"{name}.{member}"] = inspect.getattr_static(kind, member)
    return found


def _members_of(kind: type) -> set[str]:
    found: set[str] = set()
    for base in kind.__mro__:
        if base.__module__.split(".")[0] != "cute_py":
            continue
        for name, value in vars(base).items():
            public = not name.startswith("_")
            operator = name.startswith("__") and callable(value) and name not in OWN_OF_PYTHON | BY_EVERY_RESULT
            if public or operator:
                found.add(name)
    if issubclass(kind, enum.Enum):  # its members are values, and what Python's enum adds is Python's
        found -= set(kind.__members__)
        found = {n for n in found if not n.startswith("__")}
    return {name for name in found if not isinstance(inspect.getattr_static(kind, name), type)}


def command_parser() -> Any:
    """The argument parser of all commands."""
    import cute_py.cli

    return sys.modules[cute_py.cli.main.__module__].parser()  # type: ignore[attr-defined]


@functools.cache
def commands() -> tuple[str, ...]:
    """The commands of the command line, as `cute-py --help` lists them."""
    import argparse

    for action in command_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return tuple(f"cute-py {name}" for name in action.choices)
    return ()


def public_names() -> list[str]:
    """All of it."""
    return [*exported(), *members(), *commands()]


def is_attribute(member: Any) -> bool:
    """Read without a call: a field, a property, a class constant."""
    return not callable(member) or isinstance(member, property | functools.cached_property)
