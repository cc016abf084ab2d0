"""numpy, imported when an attribute of it is asked for: layouts, atoms, plans and pictures run where it is not there.

    from cute_py.optional_packages import numpy as np       costs nothing
    np.zeros(3)                                              imports numpy, or says what is missing

A type checker reads `import numpy as np` beside it.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from cute_py.errors import imported


class LazyModule(ModuleType):
    """A package that is imported at the first attribute.

    >>> LazyModule("no_such", "an array").zeros
    Traceback (most recent call last):
    cute_py.errors.MissingPackageError: an array needs the package no_such
      hint : pip install no_such
    """

    def __init__(self, name: str, feature: str) -> None:
        super().__init__(name)
        self._feature = feature

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by tools that look for modules; this one is not loaded for them
            raise AttributeError(name)
        package = imported(self.__name__, self._feature, self.__name__, f"pip install {self.__name__}")
        value = getattr(package, name)
        setattr(self, name, value)  # later uses are plain attributes
        return value


numpy = LazyModule("numpy", "an operation on arrays")
