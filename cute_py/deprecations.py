"""The names that a package gives: its public ones, and those of earlier versions, which warn for one release."""

from __future__ import annotations

import difflib
import importlib
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType


def export_public(package: str, *others: str) -> list[str]:
    """List in `__all__` what a package has bound so far, but modules and names with an underscore; and `others`.

    `dir` and completion show the same names, and a misspelled one lists the nearest.

    A package writes `from module import name as name` for each of its names: this is the form that type checkers take
    as an export without an `__all__`, so that every name is written once.

    >>> import cute_py.tma.emulator
    >>> cute_py.tma.emulator.__all__
    ['Emulator', 'GlobalMemory', 'Mbarrier', 'SharedMemory', 'init_barrier']
    """
    bound = vars(sys.modules[package])
    names = {
        name
        for name, value in bound.items()
        if not (name.startswith("_") or isinstance(value, ModuleType) or getattr(value, "__module__", "") == __name__)
    }
    bound["__all__"] = listed = sorted(names.union(others))
    bound.setdefault("__dir__", listed.copy)
    bound.setdefault("__getattr__", renamed(package, {}))
    return listed


def no_such_name(module: str, name: str, names: Iterable[str]) -> AttributeError:
    """Make the AttributeError of a module that does not have a name.

    >>> print(no_such_name("cute_py", "Layuot", ["Layout", "parse"]))
    module 'cute_py' has no attribute 'Layuot'; did you mean Layout?
    """
    near = difflib.get_close_matches(name, names, 3) if not name.startswith("_") else []
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{meant}")


def forward(old: str, public: str) -> Callable[[str], object]:
    """The `__getattr__` of the module `old`, whose public names are found in the module `public` now.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     forward("cute_py.tma.run", "cute_py.tma")("Emulator").__name__
    'Emulator'
    >>> print(caught[0].message)
    cute_py.tma.run.Emulator is cute_py.tma.Emulator; the old path ends with the next release
    """

    def find(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        try:
            value = getattr(importlib.import_module(public), name)
        except AttributeError:
            raise AttributeError(f"module {old!r} has no attribute {name!r}") from None
        text = f"{old}.{name} is {public}.{name}; the old path ends with the next release"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return value

    return find


def renamed(module: str, names: Mapping[str, str], stacklevel: int = 2) -> Callable[[str], object]:
    """The `__getattr__` of a module whose names got other ones: earlier name -> name today, with its module if another.

    A module that has more in its own `__getattr__` calls this one from there, with a `stacklevel` of 3.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     renamed("cute_py.targets", {"Architecture": "Target"})("Architecture").__name__
    'Target'
    >>> print(caught[0].message)
    cute_py.targets.Architecture is cute_py.targets.Target; the old name ends with the next release
    """

    def find(name: str) -> object:
        if name not in names:
            raise no_such_name(module, name, getattr(sys.modules.get(module), "__all__", ()))
        home, _, today = names[name].rpartition(".")
        home = home or module
        text = f"{module}.{name} is {home}.{today}; the old name ends with the next release"
        warnings.warn(text, DeprecationWarning, stacklevel)
        return getattr(importlib.import_module(home), today)

    return find
