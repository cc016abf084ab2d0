"""A stand-in for numpy that imports it when one of its attributes is used, so that layouts, atoms, plans and pictures
work without numpy.

    from cute_py.optional_packages import numpy as np       does not import numpy
    np.zeros(3)                                              imports numpy, or raises an error that explains how to
                                                             install it

Modules also contain an ordinary `import numpy as np` for type checkers.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from cute_py.errors import imported


class LazyModule(ModuleType):
    """A package that is imported when an attribute is first used.

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
