"""TMA: from layouts to boxes, atoms, tensor maps, instructions and copies.

`gbasis` finds the box, `atom` the numbers, `descriptor` the bytes, `copy_atom` holds them together, `lower` gives the
words for the assembler, `run` executes them: emulated, or on a GPU.
"""

from __future__ import annotations

import importlib
from typing import Any

from cute_py.errors import (
    EmissionError,
    GBasisError,
    RaceError,
    TmaBuildError,
    TmaError,
    TmaLimitError,
    TmaTrap,
    TmaVerifyError,
    UnknownFactError,
    WouldHangError,
)
from cute_py.tma.atom import *  # noqa: F403
from cute_py.tma.atom import __all__ as _atom
from cute_py.tma.copy_atom import *  # noqa: F403
from cute_py.tma.copy_atom import __all__ as _copy_atom
from cute_py.tma.descriptor import *  # noqa: F403
from cute_py.tma.descriptor import __all__ as _descriptor
from cute_py.tma.gbasis import *  # noqa: F403
from cute_py.tma.gbasis import __all__ as _gbasis

_PACKAGES_ON_FIRST_USE = ("cute_py.tma.run", "cute_py.tma.lower")

__all__ = [
    "EmissionError",
    "GBasisError",
    "RaceError",
    "TmaBuildError",
    "TmaError",
    "TmaLimitError",
    "TmaTrap",
    "TmaVerifyError",
    "UnknownFactError",
    "WouldHangError",
    *_atom,
    *_copy_atom,
    *_descriptor,
    *_gbasis,
]


def __getattr__(name: str) -> Any:
    """Names of the packages that run and lower copies, imported when first asked for."""
    if not name.startswith("__"):
        for package in _PACKAGES_ON_FIRST_USE:
            module = importlib.import_module(package)
            if name in getattr(module, "__all__", ()):
                return getattr(module, name)
    raise AttributeError(f"module 'cute_py.tma' has no attribute {name!r}")
