"""Small permutations and the tiles that together run each branch of the kernel of tiles."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pytest

from cute_py.copies import plan as plan_module
from cute_py.copies import tile as tile_module
from cute_py.copies import tile_shape as tile_shape_module
from cute_py.copies.modes import refine
from cute_py.copies.plan import WIDEST, _limits
from cute_py.copies.thread_kernels import ThreadLaunch, tile_launch
from cute_py.copies.tile import candidate_tiles
from tests.copies.pairs import Pair

FLAGS: Final = (
    "STAGED", "LISTED", "SWIZZLED", "SKEW", "AFFINE", "STEADY", "COLUMNS", "DESTINATION_SHIFT", "SOURCE_SHIFT",
    "TOGETHER",
)  # fmt: skip


class TileCase(NamedTuple):
    """A permutation of a small array, and the form of a kernel that copies it."""

    shape: tuple[int, ...]
    order: tuple[int, ...]
    element: int
    """Bytes of an element."""
    shifts: tuple[int, int]
    """Offsets of both addresses from multiples of 16 bytes."""
    form: str


CASES: Final = [
    TileCase((7, 12, 6, 3), (0, 2, 3, 1), 1, (0, 0), "STAGED LISTED AFFINE DESTINATION_SHIFT SOURCE_SHIFT RUNS3"),
    TileCase((12, 2, 40), (0, 2, 1), 2, (0, 0), "STEADY COLUMNS"),
    TileCase((57, 32), (1, 0), 1, (0, 0), "STAGED LISTED SKEW RUNS2"),
    TileCase((3, 25, 16), (2, 0, 1), 2, (6, 0), "STAGED SKEW STEADY DESTINATION_SHIFT SOURCE_SHIFT TOGETHER"),
    TileCase((48, 2, 16), (2, 0, 1), 1, (0, 0), "STAGED SWIZZLED AFFINE COLUMNS"),
    TileCase((33, 9, 6), (1, 0, 2), 1, (0, 0), "LISTED AFFINE STEADY DESTINATION_SHIFT SOURCE_SHIFT RUNS4"),
    TileCase((5, 32, 4, 8), (2, 3, 1, 0), 1, (0, 0), "LISTED SWIZZLED AFFINE RUNS2"),
    TileCase((3, 31, 32), (2, 1, 0), 1, (0, 11), "LISTED SKEW DESTINATION_SHIFT RUNS4"),
    TileCase((6, 16, 8, 8), (2, 3, 1, 0), 1, (0, 0), "STAGED LISTED SWIZZLED STEADY COLUMNS"),
    TileCase((4, 7, 13, 5), (1, 0, 2, 3), 1, (0, 15),
             "STAGED LISTED AFFINE STEADY DESTINATION_SHIFT SOURCE_SHIFT RUNS2"),
    TileCase((8, 13, 4, 4, 4), (4, 3, 1, 2, 0), 1, (0, 6), "STAGED LISTED SKEW STEADY DESTINATION_SHIFT RUNS3"),
    TileCase((96, 12), (1, 0), 2, (0, 4), "AFFINE DESTINATION_SHIFT TOGETHER"),
    TileCase((4, 63, 6), (0, 2, 1), 1, (13, 0), "STAGED LISTED AFFINE SOURCE_SHIFT RUNS2"),
    TileCase((6, 6, 6, 7), (1, 3, 0, 2), 1, (1, 7), "LISTED AFFINE DESTINATION_SHIFT SOURCE_SHIFT RUNS3"),
    TileCase((6, 3, 13, 3, 3), (3, 2, 0, 1, 4), 1, (0, 0),
             "STAGED LISTED AFFINE STEADY DESTINATION_SHIFT SOURCE_SHIFT RUNS4"),
    TileCase((25, 16, 2, 5, 19), (2, 4, 1, 0, 3), 1, (0, 0), "STAGED LISTED DESTINATION_SHIFT TOGETHER RUNS4"),
    TileCase((19, 19, 2, 2, 25), (4, 3, 1, 0, 2), 1, (0, 0),
             "STAGED LISTED STEADY DESTINATION_SHIFT SOURCE_SHIFT TOGETHER RUNS4"),
    TileCase((13, 7, 5, 3, 13), (4, 2, 1, 0, 3), 2, (0, 0),
             "STAGED LISTED DESTINATION_SHIFT SOURCE_SHIFT TOGETHER RUNS4"),
]  # fmt: skip
"""Chosen from 2,100 random permutations: each pair of values of two facts is in a row, if a plan can have it. Other
destination rows that are written together and consist of runs are in `ROWS_TOGETHER` of the tests of the
interpreter."""


def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give small copies the tiles of large ones, of about 2 KiB, and no tensor maps."""
    for module, name, value in (
        (plan_module, "FEW", 0), (plan_module, "_boxes", lambda *_: None), (tile_shape_module, "BLOCKS", 1),
        (tile_shape_module, "QUICK", (1 << 40, 1)), (tile_shape_module, "FILLED", 2048),
        (tile_module, "LEAST", (512, 1024)), (tile_module, "FOLDED", 0),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


def form_of(launch: ThreadLaunch) -> str:
    """The facts of a kernel of tiles that are not 0 or 1, and the runs per vector, up to 4."""
    facts: dict[str, Any] = {name: int(str(value)) for name, value in launch.kernel.facts.items()}
    found = [name for name in FLAGS if facts[name] > (name in ("COLUMNS", "TOGETHER"))]
    runs = min(facts["RUNS_PER_VECTOR"], 4)
    return " ".join([*found, f"RUNS{runs}"] if runs else found)


def launches_in_form(pair: Pair, form: str) -> list[ThreadLaunch]:
    """The launches of a pair, one for each possible tile, whose kernel has this form; the cheapest first."""
    refinement, alignment = refine(pair.source, pair.destination), pair.alignment()
    assert refinement is not None
    limits = _limits(refinement, pair.element, (min(alignment[0], WIDEST), min(alignment[1], WIDEST)))
    tiles = candidate_tiles(refinement, pair.element, limits, 1 << 20)
    return [launch for launch in (tile_launch(refinement, tile) for tile in tiles) if form_of(launch) == form]
