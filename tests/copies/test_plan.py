"""Plans of copies, carried out by the emulator and by numpy in the kernels' place: each byte lands where it belongs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cute_py.copies import boxes as boxes_module
from cute_py.copies.boxes import BAND, BANDED_ROWS, CROSSOVER, LaunchPlan, Tuning
from cute_py.copies.modes import CopyMode, refine
from cute_py.copies.plan import box_launches
from cute_py.dtypes import as_dtype
from cute_py.errors import TmaLimitError
from cute_py.gpu.kernels.walk import TileWalk
from cute_py.layout.layout import Layout
from cute_py.tensor.array_views import ArrayView, row_major
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.emulator.emulator import Emulator
from tests.each import each_of

SOURCE, DESTINATION = 0x7F00_0000_0000, 0x7F80_0000_0000
GUARD = 512


def view(
    dtype: str, shape: tuple[int, ...], strides: tuple[int, ...] | None = None, address: int = SOURCE
) -> ArrayView:
    return ArrayView(address, shape, strides or row_major(shape), as_dtype(dtype), 0)


def swizzled(tile: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The permutation of the 128B swizzle on a window of rows of 128 bytes (it is its own inverse)."""
    at = np.arange(tile.size)
    return tile[at ^ (((at >> 7) & 7) << 4)]


def turned(window: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """What the threads of the transposing kernel make of a tile of several boxes."""
    boxes = [swizzled(part).reshape(height, 128) for part in np.split(window, window.size // (height * 128))]
    tile = np.ascontiguousarray(np.concatenate(boxes, axis=1)).view(f"u{width}")
    out = np.ascontiguousarray(tile.T).view(np.uint8)
    parts = np.split(out, out.shape[1] // 128, axis=1)
    return np.concatenate([swizzled(np.ascontiguousarray(part).reshape(-1)) for part in parts])


def planned(a: ArrayView, b: ArrayView, tuning: Tuning | None = None) -> tuple[LaunchPlan, ...]:
    """The launches by tensor maps of a copy between two arrays."""
    refinement = refine(Layout(a.shape, a.strides), Layout(b.shape, b.strides))
    assert refinement is not None
    starts = [start * a.element_bytes for start in refinement.starts]
    return box_launches(refinement, a.element_bytes, (a.address + starts[0], b.address + starts[1]), 132, tuning)


def carry_out(plan: LaunchPlan, source: NDArray[np.uint8], destination: NDArray[np.uint8]) -> None:
    """Do what the plan's kernel does, tile by tile."""
    if plan.maps is None:
        sizes, steps, places = zip(*plan.kernel.facts["modes"], strict=True)  # type: ignore[call-overload]
        a, b = plan.tail[0] - SOURCE + GUARD, plan.tail[1] - DESTINATION + GUARD
        strided = np.lib.stride_tricks.as_strided
        strided(destination[b:], sizes, places)[...] = strided(source[a:], sizes, steps)
        return
    emulator = Emulator()
    load_map, store_map = encode(plan.maps[0]), encode(plan.maps[1])
    facts = plan.kernel.facts
    gmem = {"gmem_base": SOURCE - GUARD}
    there = {"gmem_base": DESTINATION - GUARD}
    if plan.form == "transposed":
        names = ("TILE_HEIGHT", "TILE_WIDTH", "BOX_ELEMENTS", "PER_CHUNK", "TILE_ROWS", "TILE_COLUMNS", "BAND")
        height, across, box, chunk, down, tiles_across, band = (int(str(facts[name])) for name in names)
        width = 16 // chunk
        for block in range(plan.blocks):
            tile = block % (down * tiles_across)
            first = tile // (down * band) * band
            inside, wide = tile % (down * band), min(band, tiles_across - first)
            row, column = inside // wide * height, (first + inside % wide) * across
            batch = (block // (down * tiles_across),) * (int(str(facts["batches"])) > 1)
            window = np.zeros(height * across * width, np.uint8)
            if facts["PAIRED"]:
                emulator.load(load_map, source, (0, column // box, row, *batch), window, **gmem)
                tile_of = swizzled(window).reshape(height, across * width).view(f"u{width}")
                window = swizzled(np.ascontiguousarray(tile_of.T).view(np.uint8).reshape(-1))
                emulator.store(store_map, destination, (0, row // box, column, *batch), window, **there)
                continue
            for b in range(across // box):
                place = (column + b * box, row, *batch)
                emulator.load(load_map, source, place, window, smem_offset=b * height * 128, **gmem)
            window = turned(window, height, width)
            for b in range(height // box):
                if b == 0 or row + b * box < plan.maps[1].global_dim[0]:
                    place = (row + b * box, column, *batch)
                    emulator.store(store_map, destination, place, window, smem_offset=b * across * 128, **there)
        return
    walk = facts["walk"]
    assert isinstance(walk, TileWalk)
    counted = int(str(facts.get("TILE_BYTES", facts.get("LOAD_BYTES"))))
    for number in range(walk.tiles):
        coords = walk.coordinates(number)
        window = np.zeros(-(-counted // 128) * 128, np.uint8)
        assert emulator.load(load_map, source, coords, window, **gmem) == counted
        if plan.form == "realigned":
            row, shift = int(str(facts["ROW_BYTES"])), int(str(facts["SHIFT"]))
            window = np.ascontiguousarray(window.reshape(-1, row + 16)[:, shift : shift + row]).reshape(-1)
        emulator.store(store_map, destination, coords, window, **there)
    first, second, size = plan.tail
    if size:
        a, b = first - SOURCE + GUARD, second - DESTINATION + GUARD
        destination[b : b + size] = source[a : a + size]


def check(a: ArrayView, b: ArrayView, **options: Any) -> tuple[LaunchPlan, ...]:
    plans = planned(a, b, **options)
    rng = np.random.default_rng(7)
    source = rng.integers(0, 256, a.extent()[1] - SOURCE + 2 * GUARD, dtype=np.uint8)
    destination = rng.integers(0, 256, b.extent()[1] - DESTINATION + 2 * GUARD, dtype=np.uint8)
    wanted = destination.copy()
    width = a.element_bytes

    def elements(buffer: NDArray[np.uint8], at: ArrayView, base: int) -> NDArray[Any]:
        start = at.address - base + GUARD
        return np.ndarray(at.shape, f"V{width}", buffer.data, start, tuple(s * width for s in at.strides))

    elements(wanted, b, DESTINATION)[...] = elements(source, a, SOURCE)
    for plan in plans:
        carry_out(plan, source, destination)
    assert np.array_equal(destination, wanted)
    return plans


SIZES = st.integers(1, 40)


@given(st.lists(st.integers(1, 9), max_size=4), st.integers(1, 30), st.sampled_from([1, 2, 4, 8]), st.data())
def test_slices_arrive(outer: list[int], inner: int, width: int, data: st.DataObject) -> None:
    """Any steps over the modes of the source and of the destination, rows of whole 16 bytes."""
    count = inner * 16 // width
    shape = (*outer, count)
    strides = []
    for _ in range(2):
        step, found = count, [1]
        for size in reversed(outer):
            step += 16 // width * data.draw(st.integers(0, 3))
            found.insert(0, step)
            step *= size
        strides.append(tuple(found))
    dtype = f"uint{8 * width}"
    plans = check(view(dtype, shape, strides[0]), view(dtype, shape, strides[1], DESTINATION))
    assert [plan.form for plan in plans] == ["once"]


@given(st.integers(1, 6000), st.integers(0, 15))
def test_contiguous_runs_arrive(size: int, shift: int) -> None:
    plans = check(view("uint8", (size,), address=SOURCE + shift), view("uint8", (size,), address=DESTINATION))
    forms = [plan.form for plan in plans]
    if size < 16:
        assert forms == ["edges"]
    elif not shift:
        assert forms == ["once"]
    else:
        assert forms == ["realigned", "edges"][: 1 + bool(size % (256 if size >= 256 else 16))]


@given(st.integers(2, 40), st.integers(0, 3), st.integers(1, 300), st.sampled_from([1, 2, 4, 8]), st.integers(0, 15))
def test_ragged_rows_arrive(rows: int, planes: int, columns: int, width: int, shift: int) -> None:
    """Whole 16 bytes by the copy engine, the rest by threads; bytes behind each row stay."""
    assume(columns * width >= 16 and columns * width % 16)
    shape = (planes, rows, columns) if planes else (rows, columns)
    pitch = -(-columns * width // 16) * 16 // width
    strides = (rows * (pitch + 16), pitch + 16, 1)[-len(shape) :], (rows * pitch, pitch, 1)[-len(shape) :]
    dtype = f"uint{8 * width}"
    plans = check(
        view(dtype, shape, strides[0], SOURCE + shift // width * width),
        view(dtype, shape, strides[1], DESTINATION),
    )
    assert [plan.form for plan in plans] == ["realigned" if shift // width else "once", "edges"]
    assert plans[1].bytes == rows * max(planes, 1) * (columns * width % 16)


@given(st.integers(2, 70), st.integers(2, 70), st.sampled_from([1, 2, 4, 8]))
def test_turned_arrays_of_ragged_rows_arrive(rows: int, columns: int, width: int) -> None:
    assume(rows * width >= 16 and rows * width % 16)
    pitches = [-(-size * width // 16) * 16 // width for size in (columns, rows)]
    dtype = f"uint{8 * width}"
    plans = check(
        view(dtype, (columns, rows), (1, pitches[0])), view(dtype, (columns, rows), (pitches[1], 1), DESTINATION)
    )
    assert [plan.form for plan in plans] == ["transposed", "edges"]


@given(st.integers(1, 15), st.integers(1, 40), st.integers(1, 40))
def test_windows_between_boundaries_arrive(shift: int, rows: int, chunks: int) -> None:
    assume(rows > 1)
    plans = check(
        view("uint8", (rows, 16 * chunks), (1024, 1), SOURCE + shift),
        view("uint8", (rows, 16 * chunks), address=DESTINATION),
    )
    assert [plan.form for plan in plans] == ["realigned"]


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 3), st.sampled_from([1, 2, 4, 8]))
def test_turned_arrays_arrive(rows: int, columns: int, batches: int, width: int) -> None:
    r, c = rows * 16 // width, columns * 16 // width
    assume(r > 1 and c > 1)
    source = view(f"uint{8 * width}", (batches, c, r), (r * c, 1, c))
    plans = check(source, view(f"uint{8 * width}", (batches, c, r), address=DESTINATION))
    assert [plan.form for plan in plans] == ["transposed"]
    line = 128 // width
    assert plans[0].kernel.facts["PAIRED"] == int(r % line == 0 and c % line == 0)


def turned_rows(rows: int, columns: int, pitch: int) -> tuple[ArrayView, ArrayView]:
    """A source of so many rows of 4-byte elements, `pitch` elements apart, and its transposed destination."""
    source = view("uint32", (columns, rows), (1, pitch))
    return source, view("uint32", (columns, rows), address=DESTINATION)


@each_of(
    ("rows", "pitch", "band"),
    [(64 * BANDED_ROWS - 64, 132, 1), (64 * BANDED_ROWS - 60, 132, BAND), (64 * BANDED_ROWS - 60, 160, 1)],
)
def test_boxes_that_share_lines_run_together_if_they_are_far_apart(rows: int, pitch: int, band: int) -> None:
    """Bounds: the number of tiles between neighbours, and a pitch that is a multiple of 128 bytes."""
    (plan,) = planned(*turned_rows(rows, 132, pitch))
    assert plan.kernel.facts["BAND"] == min(band, 3)


def test_turned_arrays_in_bands_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A band of 8 tiles, and a last one of 3."""
    monkeypatch.setattr(boxes_module, "BANDED_ROWS", 2)
    (plan,) = check(*turned_rows(136, 644, 644))
    assert (plan.kernel.facts["TILE_COLUMNS"], plan.kernel.facts["BAND"]) == (11, 8)


@each_of("width", [1, 2, 4, 8])
@each_of(("rows", "columns", "batches"), [(1, 1, 1), (3, 2, 1), (2, 5, 2)])
@each_of("paired", [False, True])
def test_turned_arrays_of_whole_lines_arrive(width: int, rows: int, columns: int, batches: int, paired: bool) -> None:
    r, c = 128 // width * rows, 128 // width * columns
    source = view(f"uint{8 * width}", (batches, c, r), (r * c, 1, c))
    (plan,) = check(
        source, view(f"uint{8 * width}", (batches, c, r), address=DESTINATION), tuning=Tuning(paired=paired)
    )
    assert plan.kernel.facts["PAIRED"] == int(paired)


@pytest.mark.parametrize("form", ["once", "ring"])
@pytest.mark.parametrize("row_bytes", [256, 512, 1024, 2048])
def test_tunings_arrive(form: str, row_bytes: int) -> None:
    shape = (70, 1000)
    (plan,) = check(
        view("float32", shape, (2000, 1)),
        view("float32", shape, address=DESTINATION),
        tuning=Tuning(form=form, row_bytes=row_bytes, rows=16),
    )
    assert plan.form == form


def test_more_modes_than_a_map_has_are_refused() -> None:
    shape = (2, 3, 2, 2, 2, 3, 16)
    strides: list[int] = [1]
    step = 32
    for size in reversed(shape[:-1]):
        strides.insert(0, step)
        step = step * size + 16
    with pytest.raises(TmaLimitError) as caught:
        planned(view("uint8", shape, tuple(strides)), view("uint8", shape, address=DESTINATION))
    (found,) = caught.value.violations
    assert (found.rule, found.value) == ("rank", 7)


def test_modes_merge_where_both_sides_allow_it() -> None:
    rows = Layout((4, 6, 8), (48, 8, 1))
    for source, modes in (
        (rows, (CopyMode(192, 1, 1),)),
        (Layout((4, 6, 8), (96, 8, 1)), (CopyMode(48, 1, 1), CopyMode(4, 96, 48))),
    ):
        refinement = refine(source, rows)
        assert refinement is not None
        assert refinement.modes == modes


def test_the_crossover_itself_takes_the_ring() -> None:
    for size, form in ((CROSSOVER - 512, "once"), (CROSSOVER, "ring")):
        (plan,) = planned(view("uint8", (size,)), view("uint8", (size,), address=2 * DESTINATION))
        assert plan.form == form
    assert plan.blocks == 132


ROW = (32, 64)
REFUSED: list[tuple[str, ArrayView, ArrayView, str]] = [
    (
        "stepped innermost mode",
        view("float32", ROW, (256, 2)),
        view("float32", ROW, address=DESTINATION),
        """\
no mode of the source is contiguous; the innermost mode of a tensor map must have a stride of one element
  strides : 8, 1024 bytes
  element : 4 bytes""",
    ),
    (
        "misaligned destination",
        view("float32", ROW),
        view("float32", ROW, address=DESTINATION + 4),
        """\
the destination address 0x7f8000000004 is 4 bytes past a multiple of 16
  source : CUDA driver API, cuTensorMapEncodeTiled
  hint   : make the destination start at a multiple of 16 bytes""",
    ),
    (
        "ragged rows without a gap",
        view("float16", (8, 61), (128, 1)),
        view("float16", (8, 61), (61, 1), DESTINATION),
        """\
destination stride = 122 bytes; must be a multiple of 16
  source : CUDA driver API, cuTensorMapEncodeTiled
  hint   : pad the rows of the destination: 122 bytes to 128""",
    ),
    (
        "narrow rows",
        view("float16", (8, 7), (128, 1)),
        view("float16", (8, 7), (64, 1), DESTINATION),
        """\
row = 14 bytes (7 elements x 2 bytes); must be at least 16
  source : a store writes units of 16 bytes, so it would overwrite the bytes after each row""",
    ),
    (
        "source rows between boundaries",
        view("float16", (8, 64), (65, 1)),
        view("float16", (8, 64), address=DESTINATION),
        """\
source stride = 130 bytes; must be a multiple of 16
  source : CUDA driver API, cuTensorMapEncodeTiled
  hint   : pad the rows of the source: 130 bytes to 144""",
    ),
    (
        "negative stride",
        view("float32", ROW, (-64, 1)),
        view("float32", ROW, address=DESTINATION),
        """\
source stride = -256 bytes; must not be negative
  source : CUDA driver API, cuTensorMapEncodeTiled""",
    ),
    (
        "wide elements turned",
        view("complex128", (16, 16), (1, 16)),
        view("complex128", (16, 16), address=DESTINATION),
        "element = 16 bytes; must be one of 1, 2, 4, 8 in a transposing copy",
    ),
]


@pytest.mark.parametrize(("name", "a", "b", "text"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refusals_in_words(name: str, a: ArrayView, b: ArrayView, text: str) -> None:
    with pytest.raises(TmaLimitError) as caught:
        planned(a, b)
    assert str(caught.value) == text
