"""copy_many and memory that source and destination share: refused as by `copy`, and only where bytes are shared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import InvalidValueError
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.memory import GlobalMemory

BASE = 1 << 20
ROWS, PITCH = 16, 64


def numbers() -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(0, 256, ROWS * PITCH, np.uint8)


def tensor(offset: int, columns: int = 16, rows: int = 8, box: tuple[int, int] = (16, 4)) -> TensorMapTiled:
    """`rows` x `columns` bytes with a pitch of 64, `offset` bytes behind the start of the memory."""
    return TensorMapTiled(0, BASE + offset, (columns, rows), (PITCH,), box)


def copied(memory: Any, source: TensorMapTiled, destination: TensorMapTiled, target: Any = None, **more: Any) -> None:
    coords = [(0, 0), (0, 4)]
    Emulator().copy_many(
        source,
        memory,
        coords,
        destination,
        memory if target is None else target,
        coords,
        np.zeros(256, np.uint8),
        smem_offsets=[0],
        **{"source_base": BASE, "destination_base": BASE} | more,
    )


def test_bytes_that_are_read_and_written_are_refused() -> None:
    memory = numbers()
    before = memory.copy()
    with pytest.raises(InvalidValueError) as caught:
        copied(memory, tensor(0), tensor(4 * PITCH))
    assert str(caught.value) == (
        "the source and the destination overlap, but a copy reads some tiles while it writes others\n"
        "  first shared byte of a tile : gmem + 256"
    )
    assert np.array_equal(memory, before)


def test_the_same_tensor_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="the source and the destination overlap"):
        copied(numbers(), tensor(0), tensor(0))


def test_two_views_of_one_array_at_other_addresses_are_refused() -> None:
    memory = numbers()
    ranges = GlobalMemory()
    ranges.add("first", memory[: 8 * PITCH], 1 << 20)
    other = GlobalMemory()
    other.add("second", memory[4 * PITCH :], 1 << 30)
    destination = TensorMapTiled(0, 1 << 30, (16, 8), (PITCH,), (16, 4))
    with pytest.raises(InvalidValueError, match=r"first shared byte of a tile : first \+ 256"):
        copied(ranges, tensor(0), destination, other, source_base=0, destination_base=0)


@pytest.mark.parametrize("offset", [16, 32, 48, 8 * PITCH, 8 * PITCH + 16])
def test_tensors_beside_each_other_in_one_array_are_copied(offset: int) -> None:
    """Columns between columns: the stretches of the two tensors meet, their bytes do not."""
    memory = numbers()
    table = memory.reshape(ROWS, PITCH)
    expected = table.copy()
    row, column = divmod(offset, PITCH)
    expected[row : row + 8, column : column + 16] = expected[:8, :16]
    copied(memory, tensor(0), tensor(offset))
    assert np.array_equal(table, expected)


def test_what_a_store_adds_behind_a_row_counts() -> None:
    """A row of 20 bytes is written as 32: the 12 behind it are the other tensor's."""
    box = (32, 4)
    with pytest.raises(InvalidValueError, match="overlap"):
        copied(numbers(), tensor(24, 16, box=box), tensor(0, 20, box=box))
    copied(numbers(), tensor(24, 16, box=box), tensor(0, 16, box=box))


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 4), st.integers(1, 4))
def test_refused_exactly_where_bytes_are_shared(source: int, destination: int, width: int, height: int) -> None:
    memory = np.arange(4096, dtype=np.uint64).view(np.uint8)[: 16 * 256]
    box = (16 * width, height)
    maps = [TensorMapTiled(0, BASE + 16 * place, box, (256,), box) for place in (source, destination)]
    touched = [
        {16 * place + 256 * row + byte for row in range(height) for byte in range(16 * width)}
        for place in (source, destination)
    ]
    arguments = (maps[0], memory, [(0, 0)], maps[1], memory, [(0, 0)], np.zeros(256, np.uint8))
    options = {"smem_offsets": [0], "source_base": BASE, "destination_base": BASE}
    if touched[0] & touched[1]:
        with pytest.raises(InvalidValueError, match="overlap"):
            Emulator().copy_many(*arguments, **options)
        return
    wanted = [int(memory[byte]) for byte in sorted(touched[0])]
    Emulator().copy_many(*arguments, **options)
    assert [int(memory[byte]) for byte in sorted(touched[1])] == wanted
