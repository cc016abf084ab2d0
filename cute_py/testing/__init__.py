"""Tools to test code that uses layouts: hypothesis strategies, and comparisons that report the first difference.

The strategies need hypothesis (extra `test`). Nothing is registered with pytest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from cute_py.deprecations import no_such_name
from cute_py.errors import MissingPackageError
from cute_py.testing.compare import assert_same_bytes as assert_same_bytes
from cute_py.testing.compare import assert_same_function as assert_same_function

if TYPE_CHECKING:
    from cute_py.testing.strategies import coordinates_of as coordinates_of
    from cute_py.testing.strategies import injective_layouts as injective_layouts
    from cute_py.testing.strategies import layouts as layouts
    from cute_py.testing.strategies import shapes as shapes
    from cute_py.testing.strategies import slices_of as slices_of
    from cute_py.testing.strategies import strides_for as strides_for
    from cute_py.testing.strategies import swizzled_layouts as swizzled_layouts
    from cute_py.testing.strategies import swizzles as swizzles

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


if not TYPE_CHECKING:  # type checkers then report misspelled names

    def __getattr__(name):
        """Look up a strategy; the first use imports hypothesis."""
        if name in _STRATEGIES:
            try:
                return getattr(importlib.import_module("cute_py.testing.strategies"), name)
            except ModuleNotFoundError:
                text = f"cute_py.testing.{name} needs the package hypothesis"
                raise MissingPackageError(text, hint="pip install 'cute-py[test]'") from None
        raise no_such_name("cute_py.testing", name, __dir__())


def __dir__() -> list[str]:
    return sorted([*__all__, *_STRATEGIES])
