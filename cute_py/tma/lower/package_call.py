"""Makes a package callable: `cute.tma.lower` is a package, and the function of the same name.

Python binds a subpackage to its parent's attribute when it is first imported, so the name can't be the function alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class CallableModule(ModuleType):
    """A module that calls the function of its own last name: `tma.lower(...)` is `tma.lower.lower(...)`."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        function: Callable[..., Any] = getattr(self, self.__name__.rsplit(".", 1)[-1])
        return function(*arguments, **keywords)


def make_callable(name: str) -> None:
    """Let the imported module `name` be called."""
    sys.modules[name].__class__ = CallableModule
