"""Copies of whole tensors: through an atom or between arrays, emulated or on a GPU."""

from cute_py.copies.compare_tile import TileComparison as TileComparison
from cute_py.copies.compare_tile import compare_tile as compare_tile
from cute_py.copies.copy import copy as copy
from cute_py.copies.copy import execute as execute
from cute_py.copies.device_copy import copy_array as copy_array
from cute_py.copies.emulated_copy import CopyResult as CopyResult
from cute_py.copies.emulated_copy import TileResult as TileResult
from cute_py.copies.emulated_copy import first_difference as first_difference
from cute_py.copies.prepared import PreparedCopy as PreparedCopy
from cute_py.copies.prepared import prepare_copy as prepare_copy
from cute_py.copies.report import CopyReport as CopyReport
from cute_py.copies.report import kernel_texts as kernel_texts
from cute_py.copies.report import measure_copy as measure_copy
from cute_py.copies.tune import tuned_copy as tuned_copy
from cute_py.moved import export_public

export_public(__name__)
