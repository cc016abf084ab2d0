"""Define the public names of a package, and keep its former names, which give a warning until the next minor
version."""

from __future__ import annotations

import difflib
import importlib
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType


def export_public(package: str, *others: str) -> list[str]:
    """Set `__all__` to the names that a package has bound so far and `others`, without modules and underscore names.

    `dir` and completion then show these names, and the error for a misspelled name lists the nearest ones.

    A package writes `from module import name as name` for each of its names. Type checkers treat this form as an export
    without an `__all__`, so each name is written only once.

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
    """Make the AttributeError for a name that a module does not have.

    Args:
        module: the module where the name was looked up.
        name: the name.
        names: the names that the module has; the message lists the nearest of them.
        other: a module that users confuse with this one.
        others: the names of `other`. If `name` is among them, the message says so.

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


def renamed(
    module: str, names: Mapping[str, str], ended: Mapping[str, tuple[str, str]] | None = None, *, stacklevel: int = 2
) -> Callable[[str], object]:
    """Make the `__getattr__` of a module with renamed public names.

    `names` maps each former name to its new name, which includes the module if that is another one. A former name works
    until the next minor version; its use gives a DeprecationWarning that names the new one (docs/stability.md).

    Args:
        ended: former name without a new name -> (its dotted path until it is removed, the calls that replace it).
        stacklevel: the stack level of the warning, seen from the returned function: 2, or 3 if the module's own
            `__getattr__` calls the function.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     renamed("cute_py.targets", {"Architecture": "Target"})("Architecture").__name__
    'Target'
    >>> print(caught[0].message)
    cute_py.targets.Architecture was renamed to cute_py.targets.Target; the next minor version removes the old name
    """

    def find(name: str) -> object:
        path, instead = (ended or {}).get(name, (names.get(name, ""), ""))
        if not path:
            raise no_such_name(module, name, getattr(sys.modules.get(module), "__all__", ()))
        home, _, today = path.rpartition(".")
        home = home or module
        text = f"the next minor version removes {module}.{name}; {instead}"
        if not instead:
            text = f"{module}.{name} was renamed to {home}.{today}; the next minor version removes the old name"
        warnings.warn(text, DeprecationWarning, stacklevel=stacklevel)
        return getattr(importlib.import_module(home), today)

    return find
