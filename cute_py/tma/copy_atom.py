"""The former package of this name; its public names are those of `cute_py.tma`."""

from __future__ import annotations

from cute_py.deprecations import forward

__getattr__ = forward(__name__, "cute_py.tma")
