"""CuTe layout algebra with TMA tensor support.

`import cute_py as cute` gives the layout algebra and coordinate tensors at once; `cute.tma` and `cute.tmem` are
imported on first use, and numpy and sympy only where an operation needs them. In a notebook its objects show
themselves as pictures.
"""

from __future__ import annotations

import importlib
from typing import Any

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

__version__ = "0.1.0"

_ON_FIRST_USE = ("tma", "tmem", "draw", "testing", "atom")

_LATER = {
    "cute_py.atom": (
        "COPY_ATOMS MMA_ATOMS CopyAtom MmaAtom SmemDescriptor ThrCopy ThrMma TiledCopy TiledMma compress copy_atom "
        "copy_registers copy_tiled expand find_mma_atoms gemm gmma_layout make_cotiled_copy make_fragment_A "
        "make_fragment_B make_fragment_C make_fragment_like make_gmma_desc make_tensor_like make_tiled_copy "
        "make_tiled_copy_A make_tiled_copy_B make_tiled_copy_C make_tiled_copy_C_atom make_tiled_copy_D "
        "make_tiled_copy_S make_tiled_mma make_tmem_copy make_umma_desc mma_atom recast_ptr rs_smem_selector "
        "sm100_smem_selector ss_smem_selector umma_layout"
    ),
    "cute_py.layout.analysis": "contiguity cycles is_contiguous is_surjective order",
    "cute_py.arith_tuple.tuple_functions": (
        "colex_less compact_order elem_geq elem_gtr elem_leq fold gcd hier_unzip lex_less make_coord_iterator "
        "prefix_product product_like shape_mod suffix_product sum_ tile_unzip transform_layout transform_leaf "
        "tuple_max zip_"
    ),
}
"""Module -> public names of it; the module is imported when one of them is first used."""

_HOME = {name: module for module, names in _LATER.items() for name in names.split()}

__all__ = ["CuteError", "__version__", *_layout, *_arith_tuple, *_tensor, *_notation]

_register_where_running()


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext cute_py`: objects show themselves as pictures; an import in a notebook does the same."""
    _register(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext cute_py`: objects show themselves as text again."""
    _unregister(shell)


def __getattr__(name: str) -> Any:
    if name in _ON_FIRST_USE:
        return importlib.import_module(f"cute_py.{name}")
    if name == "explain":
        return importlib.import_module("cute_py.explanation").explain
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'cute_py' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ON_FIRST_USE, *_HOME, "explain"])
