"""CuTe layout algebra with TMA tensor support.

`import cute_py as cute` gives the layout algebra and coordinate tensors at once; `cute.tma` and `cute.tmem` are
imported on first use, and numpy and sympy only where an operation needs them. In a notebook its objects show
themselves as pictures.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from cute_py.arith_tuple import *  # noqa: F403
from cute_py.arith_tuple import __all__ as _arith_tuple
from cute_py.errors import CuteError
from cute_py.layout import *  # noqa: F403
from cute_py.layout import __all__ as _layout
from cute_py.notation import *  # noqa: F403
from cute_py.notation import __all__ as _notation
from cute_py.notebook import register as _register
from cute_py.notebook import register_where_running as _register_where_running
from cute_py.notebook import unregister as _unregister
from cute_py.tensor import *  # noqa: F403
from cute_py.tensor import __all__ as _tensor

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from cute_py import draw as draw
    from cute_py import testing as testing
    from cute_py import tma as tma
    from cute_py import tmem as tmem
    from cute_py.explanation import explain as explain

__version__ = "0.1.0"

_ON_FIRST_USE = ("tma", "tmem", "draw", "testing")

__all__ = ["CuteError", "__version__", *_layout, *_arith_tuple, *_tensor, *_notation]

_register_where_running()


def load_ipython_extension(shell: InteractiveShell) -> None:
    """`%load_ext cute_py`: objects show themselves as pictures; an import in a notebook does the same."""
    _register(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """`%unload_ext cute_py`: objects show themselves as text again."""
    _unregister(shell)


if not TYPE_CHECKING:  # where a checker sees the imports, a misspelled name is an error

    def __getattr__(name):
        if name in _ON_FIRST_USE:
            return importlib.import_module(f"cute_py.{name}")
        if name == "explain":
            return importlib.import_module("cute_py.explanation").explain
        raise AttributeError(f"module 'cute_py' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ON_FIRST_USE, "explain", "load_ipython_extension", "unload_ipython_extension"])
