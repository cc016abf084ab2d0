"""Copies of whole tensors: through an atom or between arrays, emulated or on a GPU."""

from __future__ import annotations

from cute_py.copies.compare_tile import TileComparison, compare_tile
from cute_py.copies.copy import copy, execute
from cute_py.copies.device_copy import copy_array
from cute_py.copies.emulated_copy import CopyResult, TileResult, first_difference
from cute_py.copies.prepared import PreparedCopy, prepare_copy
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
    "tuned_copy",
]
