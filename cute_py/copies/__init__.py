"""Copies of whole tensors: through an atom or between arrays, in the emulator or on a GPU.

Modules that need a GPU are imported at their first use: loading the kernels and the instruction table takes longer than
a small emulated copy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from cute_py.copies.compare_tile import TileComparison, compare_tile
from cute_py.copies.copy import copy, execute
from cute_py.copies.emulated_copy import CopyResult, TileResult, first_difference
from cute_py.deprecations import no_such_name

if TYPE_CHECKING:
    from cute_py.copies.device_copy import copy_array
    from cute_py.copies.machine_copy import run_on_machine
    from cute_py.copies.prepared import prepare_copy
    from cute_py.copies.prepared_copy import PreparedCopy
    from cute_py.copies.report import CopyReport, kernel_texts, measure_copy
    from cute_py.copies.tune import tuned_copy

__all__ = [
    "CopyReport",
    "CopyResult",
    "PreparedCopy",
    "TileComparison",
    "TileResult",
    "compare_tile",
    "copy",
    "copy_array",
    "execute",
    "first_difference",
    "kernel_texts",
    "measure_copy",
    "prepare_copy",
    "run_on_machine",
    "tuned_copy",
]

_ON_FIRST_USE = {
    **dict.fromkeys(("CopyReport", "kernel_texts", "measure_copy"), "report"),
    "PreparedCopy": "prepared_copy",
    "prepare_copy": "prepared",
    "copy_array": "device_copy",
    "run_on_machine": "machine_copy",
    "tuned_copy": "tune",
}
"""Public name -> its module in this package."""

if not TYPE_CHECKING:  # type checkers see the imports, so that they report a misspelled name

    def __getattr__(name):
        if name not in _ON_FIRST_USE:
            raise no_such_name(__name__, name, __all__)
        return getattr(importlib.import_module(f"{__name__}.{_ON_FIRST_USE[name]}"), name)
