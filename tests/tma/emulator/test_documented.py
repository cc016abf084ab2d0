"""Forms that were not measured: they follow the PTX ISA's words, say so, and strict mode refuses them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import EmissionError, InvalidValueError, TmaTrap, UnknownFactError
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapTiled
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.operands import check_form
from tests.each import each_of
from tests.tma.emulator.slow_model import physical

NEW = Emulator("sm_100a")
ROWS = TensorMapTiled(6, 0, (64, 40), (128,), (32, 1), swizzle=2)


def gmem(n: int = 1 << 16) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).integers(0, 256, n, np.uint8)


@given(st.lists(st.integers(-2, 45), min_size=4, max_size=4), st.integers(-1, 8))
def test_gather4_is_four_rows(rows: list[int], column: int) -> None:
    memory, gathered, single = gmem(), np.full(512, 0xCD, np.uint8), np.full(512, 0xCD, np.uint8)
    nbytes = NEW.load(encode(ROWS), memory, (8 * column, *rows), gathered, mode="tile::gather4")
    for i, row in enumerate(rows):  # a row alone, put where the swizzle of row i of the four puts it
        line = np.zeros(64, np.uint8)
        plain = TensorMapTiled(6, 0, (64, 40), (128,), (32, 1))
        NEW.load(plain, memory, (8 * column, row), line_window := np.zeros(128, np.uint8))
        line[:] = line_window[:64]
        for byte in range(64):
            single[physical(64 * i + byte, 2)] = line[byte]
    assert (nbytes, nbytes.evidence) == (256, "documented")
    assert np.array_equal(gathered, single)


def test_scatter4_writes_what_gather4_reads() -> None:
    smem, memory = gmem(512), np.zeros(1 << 16, np.uint8)
    NEW.store(encode(ROWS), memory, (8, 3, 0, 39, 7), smem, mode="tile::scatter4")
    back = np.zeros(512, np.uint8)
    NEW.load(encode(ROWS), memory, (8, 3, 0, 39, 7), back, mode="tile::gather4")
    assert np.array_equal(back[:256], smem[:256])
    assert np.count_nonzero(memory) == np.count_nonzero(smem[:256])
    with pytest.raises(TmaTrap, match="at least 0"):
        NEW.store(encode(ROWS), memory, (8, 3, -1, 39, 7), smem, mode="tile::scatter4")


@pytest.mark.parametrize("swizzle", [4, 5, 6])
@pytest.mark.parametrize("offset", [0, 128, 384])
def test_atom_swizzles_follow_the_printed_tables(swizzle: int, offset: int) -> None:
    request = TensorMapTiled(0, 0, (128, 64), (128,), (128, 20), swizzle=swizzle)
    memory, smem = gmem(), np.full(4096, 0xCD, np.uint8)
    assert NEW.load(request, memory, (0, 3), smem, smem_offset=offset).evidence == "documented"
    want = np.full(4096, 0xCD, np.uint8)
    for byte in range(20 * 128):
        want[physical(offset + byte, swizzle)] = memory[3 * 128 + byte]
    assert np.array_equal(smem, want)


@pytest.mark.parametrize(("data_type", "packed", "spread"), [(13, 8, 8), (14, 8, 16), (15, 12, 16)])
def test_packed_formats_spread_groups_of_sixteen(data_type: int, packed: int, spread: int) -> None:
    groups = 8  # 128 elements: 64 or 96 bytes
    request = TensorMapTiled(data_type, 0, (256, 10), (2 * groups * packed,), (128, 3))
    memory, smem = gmem(), np.full(1024, 0xCD, np.uint8)
    nbytes = NEW.load(request, memory, (128, 2), smem)
    want = np.full(1024, 0xCD, np.uint8)
    for row in range(3):
        for group in range(groups):
            source = (2 + row) * 2 * groups * packed + groups * packed + group * packed
            target = (row * groups + group) * spread
            want[target : target + packed] = memory[source : source + packed]
    assert nbytes == 3 * groups * packed
    assert np.array_equal(smem, want)


def slow_wide(request: TensorMapIm2col, coords: tuple[int, ...], halo: int, offset: int, w128: bool) -> list[Any]:
    """(w, image) of every pixel, by the words: W only, past its end the next image; halo goes on along W."""
    low = request.pixel_box_lower_corner[0]
    high = request.global_dim[1] - 1 + request.pixel_box_upper_corner[0]
    step = request.element_strides[1]
    w, image, out = coords[1], coords[-1], []
    count = 128 if w128 else request.pixels_per_column
    for pixel in range(count):
        out.append((w + offset, image))
        if pixel + 1 == count or (w128 and pixel % 32 == 31):
            out += [(w + offset + step * (k + 1), image) for k in range(halo)]
        w += step
        if w > high:
            w, image = low, image + 1
    return out


@given(st.integers(-3, 6), st.integers(0, 3), st.integers(0, 4), st.integers(1, 2), st.booleans(), st.integers(0, 6))
def test_im2col_w(w: int, halo: int, offset: int, step: int, w128: bool, h: int) -> None:
    request = TensorMapIm2col(
        0, 0, (32, 7, 5, 40), (32, 224, 1120), (-1, 0), (0, 0), 32, 20, (1, step, 1, 1), swizzle=1
    )
    memory, smem = gmem(1120 * 40), np.full(8192, 0xCD, np.uint8)
    mode = "im2col::w::128" if w128 else "im2col::w"
    nbytes = NEW.load(request, memory, (0, w, h, 2), smem, mode=mode, im2col_offsets=(halo, offset))
    pixels = slow_wide(request, (0, w, h, 2), halo, offset, w128)
    want = np.full(8192, 0xCD, np.uint8)
    for row, (x, image) in enumerate(pixels):
        inside = 0 <= x < 7 and 0 <= h < 5 and 0 <= image < 40
        for byte in range(32):
            value = memory[byte + 32 * x + 224 * h + 1120 * image] if inside else 0
            want[physical(32 * row + byte, 1)] = value
    assert (nbytes, nbytes.evidence) == (32 * len(pixels), "documented")
    assert np.array_equal(smem, want)


def test_im2col_w_may_start_left_of_the_box_but_not_right() -> None:
    request = TensorMapIm2col(0, 0, (32, 7, 4), (32, 224), (0,), (0,), 32, 8, swizzle=1)
    smem = np.zeros(1024, np.uint8)
    NEW.load(request, gmem(), (0, -2, 0), smem, mode="im2col::w")
    with pytest.raises(TmaTrap, match="bounding box"):
        NEW.load(request, gmem(), (0, 7, 0), smem, mode="im2col::w")


IM2COL = TensorMapIm2col(0, 0, (32, 7, 4), (32, 224), (0,), (0,), 32, 8, swizzle=1)
INTERLEAVED = TensorMapIm2col(6, 0, (7, 2, 4), (112, 224), (0,), (0,), 8, 8, (1, 1, 1), 1)
PACKED = TensorMapTiled(13, 0, (256, 4), (128,), (128, 2))
ATOM = TensorMapTiled(0, 0, (128, 8), (128,), (128, 2), swizzle=4)


@pytest.mark.parametrize(
    ("request_", "mode", "coords", "why"),
    [
        (ROWS, "tile::gather4", (0, 1, 2, 3, 4), "mode tile::gather4"),
        (IM2COL, "im2col::w", (0, 0, 0), "mode im2col::w"),
        (IM2COL, "im2col::w::128", (0, 0, 0), "mode im2col::w::128"),
        (PACKED, "tile", (0, 0), "element format PACKED_16U4_ALIGN8B"),
        (ATOM, "tile", (0, 0), "swizzle B128_ATOM_32B"),
    ],
)
def test_strict_refuses(request_: Any, mode: str, coords: tuple[int, ...], why: str) -> None:
    smem = np.zeros(8192, np.uint8)
    assert Emulator("sm_100a").load(request_, gmem(), coords, smem, mode=mode).why == why
    with pytest.raises(UnknownFactError, match="not measured: " + why):
        Emulator("sm_100a", strict=True).load(request_, gmem(), coords, smem, mode=mode)


def test_strict_refuses_what_was_not_measured_of_stores() -> None:
    smem, memory = np.zeros(8192, np.uint8), gmem()
    assert Emulator().store(INTERLEAVED, memory, (0, 0, 0), smem).evidence == "documented"
    reduction = TensorMapIm2col(2, 0, (32, 7, 4), (128, 896), (0,), (0,), 8, 8)
    assert Emulator(strict=True).reduce("add", reduction, memory, (0, 0, 0), smem).evidence == "measured"
    with pytest.raises(UnknownFactError):
        Emulator(strict=True).store(INTERLEAVED, memory, (0, 0, 0), smem)
    assert Emulator(strict=True).store(encode(ROWS), memory, (0, 0), smem).evidence == "measured"


@each_of(
    ("arch", "form", "instruction", "fits"),
    [
        ("sm_80", "tile", "load", False),
        ("sm_90", "tile", "load", True),
        ("sm_90a", "tile::gather4", "load", False),
        ("sm_100", "tile::gather4", "load", True),
        ("sm_120a", "tile::gather4", "load", True),
        ("sm_120a", "tile::scatter4", "store", False),
        ("sm_100", "tile::scatter4", "store", False),
        ("sm_100f", "tile::scatter4", "store", True),
        ("sm_103a", "cta_group::2", "load", True),
        ("sm_120a", "cta_group::2", "load", False),
        ("sm_90a", "im2col::w", "load", False),
        ("sm_110a", "im2col::w::128", "load", True),
    ],
)
def test_forms_by_architecture(arch: str, form: str, instruction: str, fits: bool) -> None:
    assert (not check_form(arch, form, instruction)) is fits


def test_the_engine_refuses_what_its_architecture_lacks() -> None:
    with pytest.raises(EmissionError):
        Emulator("sm_86")
    with pytest.raises(EmissionError, match="gather4 needs sm_100"):
        Emulator().load(ROWS, gmem(), (0, 1, 2, 3, 4), np.zeros(512, np.uint8), mode="tile::gather4")
    with pytest.raises(InvalidValueError, match="architecture"):
        Emulator("hopper")
    with pytest.raises(InvalidValueError, match="load has no mode 'tile::scatter4'"):
        NEW.load(ROWS, gmem(), (0, 1, 2, 3, 4), np.zeros(512, np.uint8), mode="tile::scatter4")


@pytest.mark.parametrize("mode", ["im2col::w", "im2col::w::128"])
def test_stores_and_reductions_have_no_w_modes(mode: str) -> None:
    smem = np.zeros(1024, np.uint8)
    with pytest.raises(InvalidValueError, match="store has no mode"):
        NEW.store(IM2COL, gmem(), (0, 0, 0), smem, mode=mode)
    with pytest.raises(InvalidValueError, match="reduce has no mode"):
        NEW.reduce("add", IM2COL, gmem(), (0, 0, 0), smem, mode=mode)


def test_prefetch_changes_nothing_and_traps_as_a_load() -> None:
    memory = gmem()
    before = memory.copy()
    assert Emulator().prefetch(encode(ROWS), memory, (8, 3)) == 0
    assert np.array_equal(before, memory)
    with pytest.raises(TmaTrap, match="inner coordinate"):
        Emulator().prefetch(encode(ROWS), memory, (3, 3))
    with pytest.raises(TmaTrap, match="ILLEGAL_ADDRESS"):
        Emulator().prefetch(encode(ROWS), memory[:100], (8, 3))
