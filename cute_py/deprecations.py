"""The names that a package gives: its public ones, and renamed ones, which warn until the next minor version."""

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


def no_such_name(
    module: str, name: str, names: Iterable[str], other: str = "", others: Iterable[str] = ()
) -> AttributeError:
    """Make the AttributeError of a module that does not have a name.

    Args:
        module: the module that was asked for the name.
        name: the name.
        names: the names that the module has; the nearest are listed.
        other: a module in which users expect the names of this one, and the other way round.
        others: the names of `other`. If it has the name, the text says so.

    >>> print(no_such_name("cute_py", "Layuot", ["Layout", "parse"]))
    module 'cute_py' has no attribute 'Layuot'; did you mean Layout?
    >>> print(no_such_name("cute_py", "make_tma_copy", ["make_tiled_copy"], "cute_py.tma", ["make_tma_copy"]))
    module 'cute_py' has no attribute 'make_tma_copy'; did you mean cute_py.tma.make_tma_copy?
    """
    near = difflib.get_close_matches(name, names, 3) if not name.startswith("_") else []
    if name in others:
        near = [f"{other}.{name}"]
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{meant}")


def renamed(module: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """Make the `__getattr__` of a module whose public names were renamed: former name -> name today.

    The name today has its module in front if it is defined elsewhere. A former name works, with a DeprecationWarning
    that names the new one, until the next minor version (docs/stability.md).

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     renamed("cute_py.targets", {"Architecture": "Target"})("Architecture").__name__
    'Target'
    >>> print(caught[0].message)
    cute_py.targets.Architecture is cute_py.targets.Target; the old name ends with the next minor version
    """

    def find(name: str) -> object:
        if name not in names:
            raise no_such_name(module, name, getattr(sys.modules.get(module), "__all__", ()))
        home, _, today = names[name].rpartition(".")
        home = home or module
        text = f"{module}.{name} is {home}.{today}; the old name ends with the next minor version"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(home), today)

    return find
