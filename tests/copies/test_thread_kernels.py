"""Plans carried out by the interpreter of the kernels: every element lands once, nothing else is touched."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterable, Iterator

import numpy as np
import pytest

import cute_py as cute
from cute_py import Layout
from cute_py.copies import plan as plan_module
from cute_py.copies import tile as tile_module
from cute_py.copies import tile_shape as tile_shape_module
from cute_py.copies.modes import refine
from cute_py.copies.plan import CopyPlan, _limits, _planned, box_launches, thread_launches, with_other_tiles
from cute_py.copies.thread_kernels import ThreadLaunch
from cute_py.copies.tile import best_tile, copy_cost, least_cost, placings
from cute_py.errors import MissingPackageError
from cute_py.gpu.kernels.edges import copy_edges
from cute_py.gpu.kernels.listed import copy_listed
from cute_py.gpu.kernels.relayout import (
    CLASS,
    DIGIT,
    MAX_CLASSES,
    MAX_DIGITS,
    MAX_THREADS,
    ROW_SHIFT,
    TILE,
    magic,
    row_magic,
)
from cute_py.gpu.kernels.runs import RUNS
from cute_py.gpu.kernels.source import KernelSource
from cute_py.gpu.nvrtc import compile_kernel
from tests.copies.interpreter import Memory, divided, run
from tests.copies.pairs import DTYPES, Pair, permuted, random_pair
from tests.copies.tile_cases import CASES, TileCase, launches_in_form, small_tiles
from tests.shares import one_in

SOURCE, DESTINATION = 1 << 40, 1 << 44
LARGE = 1 << 40, 1
"""Of `tile.QUICK`: tiles as copies have them that no cache holds."""


@pytest.fixture
def vectors(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Without the rule that small copies take single elements."""
    monkeypatch.setattr(plan_module, "FEW", 0)
    _planned.cache_clear()
    yield
    _planned.cache_clear()


@pytest.fixture
def pitched(vectors: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitches are compiled into the kernels, as for large copies."""
    monkeypatch.setattr(tile_module, "FOLDED", 0)


@pytest.fixture
def large(vectors: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles as large copies have them."""
    monkeypatch.setattr(tile_shape_module, "BLOCKS", 1)
    monkeypatch.setattr(tile_shape_module, "QUICK", LARGE)


@pytest.fixture
def by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without tensor maps."""
    monkeypatch.setattr(plan_module, "_boxes", lambda *_: None)


def carried_out(pair: Pair) -> CopyPlan:
    """Plan a pair and let the interpreter copy it."""
    plan = cute.plan_copy(pair.source, pair.destination, DTYPES[pair.element], alignment=pair.alignment())
    if plan.kernel not in ("boxes", "none"):
        copy_as_planned(plan, pair)
    return plan


def copy_as_planned(plan: CopyPlan, pair: Pair) -> None:
    """Let the interpreter copy a pair, and compare every byte."""
    copy_by_launches(thread_launches(plan), pair)


def copy_by_launches(launches: Iterable[ThreadLaunch], pair: Pair) -> None:
    first, second = pair.offsets()
    bytes_of = [(int(o.min()), int(o.max()) + pair.element) for o in (first, second)]
    content = np.random.default_rng(1).integers(0, 256, bytes_of[0][1] - bytes_of[0][0], dtype=np.uint8)
    before = np.full(bytes_of[1][1] - bytes_of[1][0], 0x55, np.uint8)
    at = SOURCE + pair.shifts[0], DESTINATION + pair.shifts[1]
    source = Memory(at[0] + bytes_of[0][0], content)
    destination = Memory(at[1] + bytes_of[1][0], before.copy())
    for launch in launches:
        run(launch, source, destination, at)
    inside = np.arange(pair.element)
    before[(second - bytes_of[1][0])[:, None] + inside] = content[(first - bytes_of[0][0])[:, None] + inside]
    assert np.array_equal(destination.content, before)
    assert destination.written.max(initial=0) <= 1


@pytest.mark.parametrize("begin", one_in(2, range(0, 160, 20)))
def test_random_pairs_arrive(begin: int) -> None:
    for seed in range(begin, begin + 20):
        carried_out(random_pair(seed))


@pytest.mark.parametrize("begin", one_in(12, range(1000, 1240, 20)))
@pytest.mark.usefixtures("pitched")
def test_random_pairs_arrive_in_vectors(begin: int) -> None:
    for seed in range(begin, begin + 20):
        carried_out(random_pair(seed))


@pytest.mark.parametrize(
    ("shape", "order", "element", "shifts"),
    one_in(
        3,
        [
            ((3, 257, 131), (0, 2, 1), 1, (0, 0)),
            ((301, 263), (1, 0), 1, (3, 1)),
            ((301, 263), (1, 0), 2, (2, 6)),
            ((2, 3, 4099), (0, 2, 1), 1, (0, 0)),
            ((2, 4099, 3), (0, 2, 1), 1, (0, 5)),
            ((4096, 4), (1, 0), 2, (0, 0)),
            ((129, 131), (1, 0), 4, (4, 8)),
            ((5, 7, 9, 11, 13), (4, 2, 0, 3, 1), 2, (0, 0)),
            ((8, 8, 8, 8, 8, 8), (5, 3, 1, 4, 2, 0), 1, (0, 0)),
            ((2, 3, 8, 16, 8, 16), (0, 2, 4, 1, 3, 5), 2, (0, 0)),
            ((70, 90), (1, 0), 16, (0, 0)),
            ((33000,), (0,), 1, (1, 2)),
            ((40, 1000), (0, 1), 1, (7, 0)),
        ],
    ),
)
def test_permutations_arrive(
    shape: tuple[int, ...], order: tuple[int, ...], element: int, shifts: tuple[int, int]
) -> None:
    assert carried_out(permuted(shape, order, element, shifts)).form == "affine"


@pytest.mark.parametrize("begin", one_in(3, range(0, 60, 10)))
@pytest.mark.usefixtures("pitched")
def test_odd_sizes_arrive_at_any_address(begin: int) -> None:
    for seed in range(begin, begin + 10):
        dice = random.Random(seed)
        element, rank = dice.choice((1, 1, 2)), dice.randint(1, 4)
        shape = tuple(dice.randint(1, (70000, 300, 48, 17)[rank - 1]) for _ in range(rank))
        shifts = dice.randrange(0, 16, element), dice.randrange(0, 16, element)
        carried_out(permuted(shape, tuple(dice.sample(range(rank), rank)), element, shifts))


ROWS_TOGETHER = [
    ((300, 5, 25), (2, 1, 0), 1, 0),
    ((7, 75, 16), (2, 0, 1), 1, 0),
    ((151, 16, 31), (2, 1, 0), 1, 0),
    ((13, 7, 16, 25), (3, 2, 0, 1), 1, 2),
    ((57, 5, 128), (2, 1, 0), 1, 2),
    ((33, 9, 2, 3, 19), (4, 3, 0, 2, 1), 1, 3),
    ((9, 57, 64), (2, 1, 0), 1, 3),
    ((9, 57, 16), (2, 0, 1), 2, 0),
    ((151, 16, 25), (2, 1, 0), 2, 0),
    ((75, 16, 33), (2, 1, 0), 2, 2),
    ((5, 25, 33, 19), (3, 2, 1, 0), 2, 3),
]
"""Permutations whose threads write several rows together: shape, order, bytes of an element, listed runs per vector."""


@pytest.mark.parametrize(("shape", "order", "element", "runs"), one_in(3, ROWS_TOGETHER))
@pytest.mark.usefixtures("pitched", "large", "by_threads")
def test_rows_written_together_arrive(shape: tuple[int, ...], order: tuple[int, ...], element: int, runs: int) -> None:
    plan = carried_out(permuted(shape, order, element))
    facts = thread_launches(plan)[0].kernel.facts
    assert (facts["TOGETHER"], facts["RUNS_PER_VECTOR"]) == (4, runs)


@pytest.mark.parametrize(
    ("shape", "order", "element", "runs", "step", "vector"),
    [
        ((7, 57, 9, 16), (3, 0, 1, 2), 1, 0, 1, 8),
        ((9, 75, 32), (2, 1, 0), 1, 2, 4, 8),
        ((57, 33, 31), (2, 1, 0), 2, 2, 1, 16),
    ],
)
@pytest.mark.usefixtures("pitched", "large", "by_threads")
def test_eight_rows_written_together_arrive(
    shape: tuple[int, ...], order: tuple[int, ...], element: int, runs: int, step: int, vector: int
) -> None:
    """Threads compute where these rows are; step: columns between two of them."""
    facts = thread_launches(carried_out(permuted(shape, order, element)))[0].kernel.facts
    assert (facts["TOGETHER"], facts["RUNS_PER_VECTOR"], facts["AFFINE"]) == (8, runs, 1)
    assert (facts["STEP"], facts["DESTINATION_BYTES"]) == (step, vector)


@pytest.mark.parametrize(
    ("shape", "order", "element", "following", "compact", "together"),
    [
        ((13, 13, 121), (2, 1, 0), 2, False, True, 1),
        ((33, 27, 40), (2, 1, 0), 2, False, False, 4),
        ((21, 14, 75), (2, 1, 0), 4, False, True, 1),
        ((10, 20, 10, 26), (2, 0, 3, 1), 1, True, False, 1),
        ((21, 4, 31, 19), (3, 1, 0, 2), 1, True, True, 4),
    ],
)
@pytest.mark.usefixtures("pitched", "large", "by_threads")
def test_tiles_that_read_a_part_of_the_next_tile_arrive(
    shape: tuple[int, ...], order: tuple[int, ...], element: int, following: bool, compact: bool, together: int
) -> None:
    """following: whether the next tile is in the next run of the destination's rows. compact: whether shared memory has
    the modes in another order than the source, so that rows that are not read take no memory."""
    tile = carried_out(permuted(shape, order, element)).threads_tile
    assert tile is not None
    form, borrowed = tile.shape, tile.shape.borrowed_rows(0)
    assert borrowed.modes
    rows = form.orders[0][form.runs[0] :]
    assert form.rows(0, 0) <= math.prod(form.held[m] for m in rows)
    assert (form.extents[form.run_mode] == 1) == following
    assert (sorted(rows, key=lambda m: tile.pitches[m]) != list(rows)) == compact
    assert form.together == together


@pytest.mark.parametrize(("shape", "element"), [((301, 129), 1), ((301, 63), 2), ((129, 63), 4)])
@pytest.mark.usefixtures("pitched", "large", "by_threads")
def test_large_tiles_of_regular_rows_have_many_threads(shape: tuple[int, int], element: int) -> None:
    plan = carried_out(permuted(shape, (1, 0), element))
    (launch,) = thread_launches(plan)
    assert plan.threads_tile is not None and plan.threads_tile.shape.threads == 256
    assert (launch.kernel.threads, launch.kernel.facts["AFFINE"]) == (512, 1)


@pytest.mark.parametrize("case", CASES)
def test_every_form_of_the_kernel_arrives(case: TileCase, monkeypatch: pytest.MonkeyPatch) -> None:
    small_tiles(monkeypatch)
    pair = permuted(case.shape, case.order, case.element, case.shifts)
    found = launches_in_form(pair, case.form)
    assert found
    for launch in found:
        copy_by_launches([launch], pair)


@pytest.mark.parametrize(
    ("shape", "order", "element", "runs"),
    [
        ((5, 400, 2), (1, 0, 2), 4, (8, 0)),  # each run is one unit of 8 bytes: a list has each unit
        ((3, 40, 9, 2), (2, 1, 0, 3), 4, (8, 0)),
        ((5, 400, 12), (1, 0, 2), 1, (4, 3)),
        ((5, 400, 6), (1, 0, 2), 2, (4, 3)),
    ],
)
@pytest.mark.usefixtures("pitched", "large", "by_threads")
def test_runs_of_units_wider_than_an_element_arrive(
    shape: tuple[int, ...], order: tuple[int, ...], element: int, runs: tuple[int, int]
) -> None:
    """Vectors of several runs that both sides share; runs: bytes of a unit, and units in a run of the table."""
    tile = carried_out(permuted(shape, order, element)).threads_tile
    assert tile is not None and tile.listed
    assert (tile.unit, tile.run_size) == runs


@pytest.mark.parametrize(
    ("shape", "element", "fact"),
    one_in(
        3,
        [
            ((264, 144), 1, "COLUMNS"),
            ((256, 384), 1, "COLUMNS"),
            ((256, 280), 1, "COLUMNS"),
            ((264, 144), 2, "COLUMNS"),
            ((128, 96), 4, "COLUMNS"),
            ((132, 100), 4, "COLUMNS"),
            ((66, 130), 8, "COLUMNS"),
            ((901, 304), 1, "SKEW"),
            ((1151, 1144), 1, "SKEW"),
        ],
    ),
)
@pytest.mark.usefixtures("pitched", "large", "by_threads")
def test_blocks_of_columns_and_skewed_rows_arrive(shape: tuple[int, int], element: int, fact: str) -> None:
    plan = carried_out(permuted(shape, (1, 0), element))
    assert plan.kernel == "tile"
    assert int(str(thread_launches(plan)[0].kernel.facts[fact])) > 1


@pytest.mark.parametrize(
    ("shape", "element", "columns", "swizzled", "skew"),
    [
        ((4, 592, 8), 1, 4, True, False),
        ((3, 301, 32), 1, 1, True, False),
        ((3, 75, 256), 2, 1, True, False),
        ((2, 119, 512), 1, 1, False, True),
        ((3, 333, 48), 1, 1, False, True),
        ((4, 100, 8), 2, 4, False, False),
    ],
)
@pytest.mark.usefixtures("pitched", "large", "by_threads")
def test_transposed_blocks_that_are_contiguous_on_both_sides_arrive(
    shape: tuple[int, ...], element: int, columns: int, swizzled: bool, skew: bool
) -> None:
    """Blocks of an odd number of rows: their columns are transposed in registers, or their places have a swizzle or a
    skew."""
    tile = carried_out(permuted(shape, (0, 2, 1), element)).threads_tile
    assert tile is not None
    assert (tile.shape.columns, tile.swizzle.bits > 0, tile.skew > 0) == (columns, swizzled, skew)


@pytest.mark.parametrize(
    ("shape", "order", "shifted", "run"),
    [
        ((2, 8, 2, 22, 8, 2, 46), (4, 2, 5, 0, 6, 1, 3), (True, False), 184),
        ((2, 736, 16, 25), (0, 3, 2, 1), (True, False), 200),
        ((2, 736, 16, 9), (0, 3, 2, 1), (False, False), 144),
    ],
)
@pytest.mark.usefixtures("pitched", "large", "by_threads")
def test_rows_of_a_run_are_set_apart(
    shape: tuple[int, ...], order: tuple[int, ...], shifted: tuple[bool, bool], run: int
) -> None:
    """Columns of bytes that would be in few banks have a skew; run: bytes of a source row, which may be cut."""
    tile = carried_out(permuted(shape, order, 1)).threads_tile
    assert tile is not None
    assert (tile.skew, tile.shape.shifts, tile.shape.run(0, 0)) == (16, shifted, run)


@pytest.mark.parametrize("seed", one_in(4, range(40)))
@pytest.mark.usefixtures("pitched", "large", "by_threads")
def test_each_tile_of_a_search_copies_the_same(seed: int) -> None:
    dice = random.Random(seed)
    element, rank = dice.choice((1, 1, 2, 2, 4, 8)), dice.randint(2, 5)
    shape = tuple(dice.randint(2, (0, 0, 300, 60, 24, 12)[rank]) for _ in range(rank))
    shifts = (0, 0) if dice.random() < 0.5 else (dice.randrange(0, 16, element), dice.randrange(0, 16, element))
    pair = permuted(shape, tuple(dice.sample(range(rank), rank)), element, shifts)
    plan = cute.plan_copy(pair.source, pair.destination, DTYPES[element], alignment=pair.alignment())
    plans = with_other_tiles(plan, pair.alignment(), 6)
    assert plans[0] == plan
    assert len(plans) == len({one.threads_tile for one in plans})
    for one in plans if plan.kernel == "tile" else ():
        copy_as_planned(one, pair)


@pytest.mark.usefixtures("pitched", "large", "by_threads")
def test_each_tile_of_a_broadcast_copies_the_same() -> None:
    """The destination's first mode has a stride of 0 in the source, so no skew sets its elements apart."""
    pair = Pair(Layout((64, 45, 20), (45, 1, 0)), Layout((64, 45, 20), (900, 20, 1)), 1, 64 * 45 * 20, (0, 0))
    plan = cute.plan_copy(pair.source, pair.destination, "uint8", alignment=pair.alignment())
    plans = with_other_tiles(plan, pair.alignment(), 12)
    assert len(plans) > 1
    for one in plans:
        copy_as_planned(one, pair)


@pytest.mark.usefixtures("pitched", "large", "by_threads")
@pytest.mark.parametrize("seed", one_in(4, range(24)))
def test_tiles_with_other_extents_arrive(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of large copies whose extents are those of `OTHER_LINES`, also where they cost more than the usual ones."""
    dice = random.Random(seed)
    rank, element = dice.randint(2, 4), dice.choice((1, 1, 2, 4))
    shape = tuple(dice.randint(2, (0, 0, 300, 60, 24)[rank]) for _ in range(rank))
    order = tuple(dice.sample(range(rank), rank))
    monkeypatch.setattr(tile_module, "STREAMED", 0)
    monkeypatch.setattr(tile_module, "GAIN", 1e9)
    for lines in tile_shape_module.OTHER_LINES:
        with monkeypatch.context() as patch:
            patch.setattr(tile_shape_module, "OTHER_LINES", (lines,))
            carried_out(permuted(shape, order, element))
        _planned.cache_clear()


@pytest.mark.parametrize(
    ("shape", "element", "affine", "steady"),
    [
        ((4096, 4), 2, True, False),
        ((4099, 4), 2, True, False),
        ((6144, 3), 1, True, False),
        ((2000, 5), 4, True, False),
        ((1000, 12), 1, False, False),  # words of 8 bytes, rows of 336
        ((648, 684), 1, False, True),  # 512 threads
    ],
)
@pytest.mark.usefixtures("large")
def test_rows_in_steps_are_looked_up_where_that_is_faster(
    shape: tuple[int, int], element: int, affine: bool, steady: bool
) -> None:
    tile = carried_out(permuted(shape, (1, 0), element)).threads_tile
    assert tile is not None and tile.shape.in_steps
    assert (tile.affine, tile.steady) == (affine, steady)


@pytest.mark.parametrize(("element", "filled"), [(1, 8192), (2, 4096), (4, 4096), (8, 4096), (16, 8192)])
@pytest.mark.usefixtures("large")
def test_tiles_of_whole_words_are_halved(element: int, filled: int) -> None:
    tile = carried_out(permuted((4096, 4), (1, 0), element)).threads_tile
    assert tile is not None
    assert tile.shape.elements * element == filled


@pytest.mark.parametrize(
    ("shape", "axes", "element"),
    [((300, 1491, 300), (2, 1, 0), 2), ((4, 32, 16, 13, 32, 19, 32), (5, 0, 6, 1, 2, 4, 3), 1)],
)
def test_tiles_that_share_sectors_have_long_rows(shape: tuple[int, ...], axes: tuple[int, ...], element: int) -> None:
    """Rows of the destination that start at words of 8 bytes have at least 256 bytes."""
    pair = permuted(shape, axes, element)
    tile = cute.plan_copy(pair.source, pair.destination, DTYPES[element]).threads_tile
    assert tile is not None
    assert tile.shape.run(0, 1) * element >= 256


@pytest.mark.parametrize(
    ("source", "destination", "element"),
    [
        (Layout((2, 128), (128, 0)), Layout((16, 8, 2), (2, 33, 1)), 2),
        pytest.param(
            Layout((1536, 2), (1, 1536)),
            Layout((4, 16, 3, 2, 2, 2, 2), (16, 211, 65, 1, 4, 8, 2)),
            1,
            marks=pytest.mark.slow,
        ),
        (Layout((3840, 2), (0, 3848)), Layout((10, 384, 2), (1, -20, 10)), 1),
    ],
)
@pytest.mark.usefixtures("vectors")
def test_places_whose_ends_do_not_tell_what_lies_between(source: Layout, destination: Layout, element: int) -> None:
    """A vector's first and last place may be as far apart as evenly spaced ones are, and those between be others."""
    told = set()
    for shift in range(0, 64, element):
        plan = carried_out(Pair(source, destination, element, int(cute.size(source)), (element, shift)))
        told.add(plan.threads_tile is not None and plan.threads_tile.run_size > 0)
    assert True in told


@pytest.mark.parametrize("pairs", [300, pytest.param(2000, marks=pytest.mark.slow)])
def test_one_kernel_serves_many_pairs(pairs: int) -> None:
    """2,000 pairs are at most 60 texts; their sizes and strides are parameters."""
    found = set()
    for seed in range(pairs):
        pair = random_pair(seed)
        plan = cute.plan_copy(pair.source, pair.destination, DTYPES[pair.element], alignment=pair.alignment())
        if plan.kernel in ("tile", "runs"):
            found |= {launch.kernel.digest for launch in thread_launches(plan)}
    assert len(found) <= 60


@pytest.mark.parametrize(
    ("run", "kernel"), [(256, "runs"), (272, "runs"), (288, "boxes"), (4096, "boxes"), (4100, "runs")]
)
def test_shared_runs_of_whole_lines_are_boxes_from_a_length_on(run: int, kernel: str) -> None:
    """Of 4 bytes: up to 1 KiB threads move them, and longer ones that are no multiple of 128 bytes."""
    pair = permuted(((16 << 20) // (4 * 16 * run) + 1, 16, run), (1, 0, 2), 4)
    assert cute.plan_copy(pair.source, pair.destination, DTYPES[4]).kernel == kernel


@pytest.mark.parametrize(
    ("rows", "columns", "kernel"), [(2048, 1032, "boxes"), (2048, 1028, "tile"), (2052, 1032, "tile")]
)
def test_boxes_transpose_rows_of_whole_sectors(rows: int, columns: int, kernel: str) -> None:
    """Threads move 4-byte elements if the rows of a side are multiples of 16 bytes, but not of 32."""
    pair = permuted((rows, columns), (1, 0), 4)
    assert cute.plan_copy(pair.source, pair.destination, DTYPES[4]).kernel == kernel


@pytest.mark.parametrize("element", DTYPES)
def test_every_transposition_has_runs_of_whole_sectors(element: int) -> None:
    """Matrices whose rows and columns are sectors or more: turned in tiles, or gathered where they are small."""
    dice = random.Random(element)
    for _ in range(60):
        pair = permuted(tuple(dice.randint(32 // element, 1 << dice.randint(6, 13)) for _ in range(2)), (1, 0), element)
        plan = cute.plan_copy(pair.source, pair.destination, DTYPES[element])
        assert plan.kernel in ("boxes", "tile") or plan.why.startswith("few vectors")


def test_divisions_by_multiplication() -> None:
    numbers = np.array([0, 1, 2, 3, 6, 7, 8, 1000, 2**16, 2**30, 2**31 - 2, 2**31 - 1], np.int64).tolist()
    for size in (1, 2, 3, 5, 7, 8, 641, 65537, 2**20 + 1, 2**31 - 1):
        assert [divided(n, *magic(size)) for n in numbers] == [n // size for n in numbers]
    threads = np.arange(MAX_THREADS)
    for run_length in (*range(1, 2050), 4095, 65535, 2**22, 2**31):
        products = threads * row_magic(run_length)
        assert products[-1] < 2**32
        assert (products >> ROW_SHIFT == threads // run_length).all(), run_length


def test_parameters_lie_as_the_kernel_has_them() -> None:
    """Offsets of the structures in C: eight-byte members at multiples of eight, nothing behind them."""
    assert (DIGIT.size, CLASS.size % 8, TILE.size % 8, RUNS.size % 8) == (32, 0, 0, 0)
    assert TILE.size + MAX_DIGITS * DIGIT.size + MAX_CLASSES * CLASS.size <= 4096
    assert RUNS.size + 2 * MAX_DIGITS * DIGIT.size <= 4096


@pytest.mark.parametrize(
    "pair",
    [
        permuted((300, 301), (1, 0), 1),
        permuted((64, 3, 4096), (0, 2, 1), 1),
        permuted((300, 301), (1, 0), 4),
        permuted((16, 16, 16, 16, 32), (3, 1, 0, 4, 2), 2),
        permuted((3, 5, 7, 63), (2, 0, 1, 3), 4),
        random_pair(3),
    ],
)
def test_kernels_compile(pair: Pair) -> None:
    plan = cute.plan_copy(pair.source, pair.destination, DTYPES[pair.element], alignment=pair.alignment())
    assert plan.kernel in ("tile", "runs")
    try:
        compiled = compile_kernel(thread_launches(plan)[0].kernel, "sm_90a")
    except MissingPackageError as missing:
        pytest.skip(str(missing))
    assert compiled.cubin[:4] == b"\x7fELF"


def test_a_kernel_that_may_begin_early_awaits_the_one_before_it() -> None:
    """The launch asks for it only where the text has it."""
    rows, turned = Layout((64, 4096), (4096, 1)), Layout((64, 4096))
    plans = [
        cute.plan_copy(*pair, "float32") for pair in ((rows, rows), (rows, turned), (Layout(2**28), Layout(2**28)))
    ]
    kernels = [kernel for plan in plans for kernel in launched(plan)]
    kernels += [copy_edges(((4, 1, 1),)), copy_listed(2, (0,), 1024, 1024)]
    kernels += [
        launch.kernel for launch in thread_launches(cute.plan_copy(Layout((8, 8)), Layout((8, 8), (8, 1)), "uint8"))
    ]
    assert {kernel.name for kernel in kernels} == {
        "copy_ring",
        "copy_once",
        "copy_tile",
        "copy_runs",
        "copy_edges",
        "copy_listed",
    }
    for kernel in kernels:
        assert kernel.awaits == (kernel.text.count("await_previous()") > 1)


def launched(plan: CopyPlan) -> list[KernelSource]:
    if plan.kernel != "boxes" or plan.refinement is None:
        return [launch.kernel for launch in thread_launches(plan)]
    return [one.kernel for one in box_launches(plan.refinement, plan.bits // 8, (SOURCE, DESTINATION), 132)]


@pytest.mark.parametrize("size", [265, 280, 1029, 1053, 1055])
def test_the_last_tile_holds_what_the_one_before_it_borrows(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every tile that is considered, also of those with rows inside a run of the source."""
    monkeypatch.setattr(tile_shape_module, "QUICK", LARGE)
    pair = permuted((64, size, 32), (0, 2, 1), 1)
    refinement = refine(pair.source, pair.destination)
    assert refinement is not None
    borrowing = refused = 0
    shapes = {
        tile.shape
        for whole, grain in tile_shape_module.tile_shapes(refinement, 1, (16, 16), 8192)
        for _, tiles in placings(whole, grain)
        for tile in tiles
        if tile.shape.fits
    }
    for shape in shapes:
        at = shape.run_mode
        if at >= 0 and shape.counts[at] > 1:
            borrowing += 1
            length = shape.modes[at].size
            assert (length - 1) % shape.extents[at] + 1 >= shape.halo
            for extent in range(shape.halo, shape.extents[at] + 1):
                extents = tuple([extent if i == at else t for i, t in enumerate(shape.extents)])
                if (length - 1) % extent + 1 < shape.halo:
                    assert not dataclasses.replace(shape, extents=extents).fits
                    refused += 1
    assert borrowing and refused


@pytest.mark.parametrize(
    ("shape", "order"),
    [((10, 7, 2, 2, 18), (3, 1, 2, 0, 4)), ((14, 66, 12, 18), (2, 1, 0, 3)), ((7, 100, 12, 6), (2, 1, 0, 3))],
)
@pytest.mark.parametrize("element", [1, 2])
def test_threads_access_shared_memory_in_few_widths(
    shape: tuple[int, ...], order: tuple[int, ...], element: int
) -> None:
    """Also where rows of both sides share a run of 2 bytes, but of no word."""
    pair = permuted(shape, order, element)
    refinement = refine(pair.source, pair.destination)
    assert refinement is not None
    found = {
        (tile.piece, tile.unit)
        for alignment in ((16, 16), (16, 4))
        for whole, grain in tile_shape_module.tile_shapes(
            refinement, element, _limits(refinement, element, alignment), 1024
        )
        for _, tiles in placings(whole, grain)
        for tile in tiles
    }
    widths = {16, 8, 4, element}
    assert found and all(piece in widths and unit in widths for piece, unit in found)


@pytest.mark.parametrize("seed", one_in(2, range(40)))
def test_the_best_tile_costs_least_of_all(seed: int) -> None:
    """Of every shape a bound is known before it has places, and what is not counted by that bound is no better."""
    dice = random.Random(seed)
    rank, element = dice.randint(2, 5), dice.choice((1, 2, 4, 8, 16))
    sizes = tuple(dice.choice((3, 5, 8, 16, 17, 30, 64, 100, 129)) for _ in range(rank))
    pair = permuted(sizes, tuple(dice.sample(range(rank), rank)), element)
    refinement = refine(pair.source, pair.destination)
    assert refinement is not None
    limits = _limits(refinement, element, dice.choice(((16, 16), (16, 4), (1, 16))))
    costs = []
    for whole, grain in tile_shape_module.tile_shapes(refinement, element, limits, 1024):
        for shape, tiles in placings(whole, grain):
            for tile in tiles:
                costs.append(copy_cost(tile))
                assert least_cost(shape) <= costs[-1] * (1 + 1e-12)
                costs[-1:] = costs[-1:] if tile.shape.fits and tile.shared_bytes <= tile_module.MAX_SHARED else []
    best = best_tile(refinement, element, limits)
    if costs:
        assert best is not None and copy_cost(best) == min(costs)
