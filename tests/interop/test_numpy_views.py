"""Views of numpy arrays: each is read as it lies, and moved by TMA exactly where a tensor map can describe it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import Int, Layout, LayoutRight
from cute_py.errors import CuteError, InvalidValueError, TensorAccessError, TmaLimitError

TILE = Layout((Int(4), Int(8)), LayoutRight)


def aligned(rows: int, columns: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """An array of distinct numbers whose first element is at a multiple of 128 bytes."""
    size = np.dtype(dtype).itemsize
    raw = np.zeros(rows * columns * size + 128, np.uint8)
    start = -raw.ctypes.data % 128
    array = raw[start : start + rows * columns * size].view(dtype).reshape(rows, columns)
    array[...] = np.arange(rows * columns).reshape(rows, columns)
    return array


def slices(size: int) -> st.SearchStrategy[slice]:
    """Slices that keep at least one index, with any step."""
    return st.builds(
        lambda start, step, count: slice(
            start, None if step > 0 else (start + step * count if start + step * count >= 0 else None), step
        ),
        st.integers(0, size // 2),
        st.sampled_from([1, 1, 1, 2, 4, -1]),
        st.integers(1, size),
    )


@given(slices(32), slices(64), st.booleans())
def test_a_view_moves_where_a_map_can_describe_it(rows: slice, columns: slice, turned: bool) -> None:
    base = aligned(32, 64)
    view = base[rows, columns].T if turned else base[rows, columns]
    tensor = cute.make_tensor(view)
    assert tensor(0, 0) == view[0, 0]
    assert tensor(view.shape[0] - 1, view.shape[1] - 1) == view[-1, -1]
    inner, outer = (view.shape[0], view.strides[0]), (view.shape[1], view.strides[1])
    if not turned:
        inner, outer = outer, inner
    tile = Layout((Int(8), Int(4)), (Int(1), Int(8))) if turned else TILE
    moves = view.ctypes.data % 16 == 0 and inner[1] == 4 and outer[1] >= 0 and outer[1] % 16 == 0
    if not moves:
        if inner[0] > 1 and outer[0] > 1:
            with pytest.raises(TmaLimitError):
                cute.tma.make_tma_copy("SM90_TMA_LOAD", view, tile)
        return
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", view, tile)
    result = cute.tma.copy(atom, view)
    assert result.equal
    assert np.array_equal(result.destination, view)


def test_a_copy_of_a_window_leaves_what_is_around_it() -> None:
    x, y = aligned(32, 64), aligned(32, 64)
    y[...] = -1
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x[8:24, 16:48], TILE)
    assert cute.tma.copy(atom, x[8:24, 16:48], y[8:24, 16:48]).equal
    inside = np.zeros((32, 64), bool)
    inside[8:24, 16:48] = True
    assert np.array_equal(y[inside], x[inside])
    assert (y[~inside] == -1).all()


def test_a_broadcast_row_is_every_row() -> None:
    view = np.broadcast_to(aligned(1, 64), (32, 64))
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", view, TILE)
    tile = cute.tma.execute(atom, view, 0).smem.view(np.float32).reshape(4, 8)
    assert (tile == np.arange(8)).all()


def test_a_read_only_array_is_a_source_and_no_destination() -> None:
    x = aligned(32, 64)
    x.flags.writeable = False
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x, TILE)
    assert cute.tma.copy(atom, x).equal
    with pytest.raises(InvalidValueError, match="the destination is read-only"):
        cute.tma.copy(atom, np.array(x), x)
    with pytest.raises(TensorAccessError, match="read-only"):
        cute.make_tensor(x)[0, 0] = 1


def test_an_array_without_modes_or_elements() -> None:
    scalar = np.array(3, np.float32)
    assert str(cute.make_tensor(scalar).layout) == "():()"
    assert cute.make_tensor(scalar)(()) == 3
    for array, tile in ((scalar, Layout(Int(4))), (np.zeros((0, 64), np.float32), TILE)):
        with pytest.raises(CuteError):
            cute.tma.make_tma_copy("SM90_TMA_LOAD", array, tile)


@pytest.mark.parametrize("dtype", [">f4", "O", "U1", "M8[s]"])
def test_elements_that_no_gpu_has(dtype: str) -> None:
    with pytest.raises(InvalidValueError):
        cute.make_tensor(np.zeros(4, dtype))


def test_overlapping_arrays_are_refused() -> None:
    x = aligned(32, 64)
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", x[:16], TILE)
    with pytest.raises(InvalidValueError, match="overlap"):
        cute.tma.copy(atom, x[:16], x[8:24])
