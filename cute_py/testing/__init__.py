"""For tests of code that uses layouts: hypothesis strategies, and comparisons that name the first difference.

Needs hypothesis (extra `test`) for the strategies. Nothing is registered with pytest.
"""

from __future__ import annotations

import importlib
from typing import Any

from cute_py.errors import MissingPackageError
from cute_py.testing.compare import assert_same_bytes, assert_same_function

_STRATEGIES = (
    "coordinates_of",
    "injective_layouts",
    "layouts",
    "shapes",
    "slices_of",
    "strides_for",
    "swizzled_layouts",
    "swizzles",
)

__all__ = ["assert_same_bytes", "assert_same_function"]


def __getattr__(name: str) -> Any:
    """The strategies, imported with hypothesis at first use."""
    if name in _STRATEGIES:
        try:
            return getattr(importlib.import_module("cute_py.testing.strategies"), name)
        except ModuleNotFoundError:
            text = f"cute_py.testing.{name} needs the package hypothesis"
            raise MissingPackageError(text, hint="pip install 'cute-py[test]'") from None
    raise AttributeError(f"module 'cute_py.testing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_STRATEGIES])
