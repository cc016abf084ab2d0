"""The way of an element, forward and back, agrees with what the engine moves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import InvalidValueError
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.memory import GlobalMemory, SharedMemory
from cute_py.tma.emulator.trace import Trace
from tests.tma.emulator.instructions import BASE, Instruction, columns, tiles
from tests.tma.emulator.slow_model import WIDTH

ANY = st.one_of(tiles(), tiles(interleave=True), columns(), columns(interleave=True))


@given(ANY)
def test_every_shared_byte_holds_what_the_trace_says(case: Instruction) -> None:
    smem = case.smem.copy()
    Emulator().load(
        case.request, case.gmem, case.coords, smem, smem_offset=case.offset, im2col_offsets=case.offsets, gmem_base=BASE
    )
    way = Trace(case.request, [case.coords], [case.offset], im2col_offsets=case.offsets)
    touched = np.zeros(len(smem), bool)
    for step in way.steps():
        size = 1 if case.request.interleave else WIDTH[int(case.request.data_type)]
        here = slice(step.shared_offset, step.shared_offset + size)
        touched[here] = True
        if step.inside and case.request.data_type not in (11, 12):
            source = case.gmem[step.global_address - BASE :][:size]
            assert smem[here].tolist() == source.tolist()
    if not case.request.interleave:
        assert np.array_equal(smem[~touched], case.smem[~touched])


@given(ANY, st.data())
def test_forward_and_backward_agree(case: Instruction, data: st.DataObject) -> None:
    way = Trace(case.request, [case.coords], [case.offset], im2col_offsets=case.offsets)
    steps = list(way.steps())
    step = steps[data.draw(st.integers(0, len(steps) - 1))]
    assert way.backward(step.shared_offset) == step
    assert any(found.shared_offset == step.shared_offset for found in way.forward(step.tma_coord))
    if step.inside:
        assert any(found.shared_offset == step.shared_offset for found in way.from_global(step.global_address))


def test_a_whole_tensor() -> None:
    memory, smem = GlobalMemory(), SharedMemory(4096, base=1024)
    memory.add("A", np.arange(2048, dtype=np.uint32).astype(np.uint8), 4096)
    tile = TensorMapTiled(6, 4096, (64, 16), (128,), (64, 8), swizzle=3)
    coords = [(0, 0), (0, 8)]
    way = Trace(tile, coords, [0, 1024], smem=smem, gmem=memory, logical=lambda c: (c[1], c[0]))
    assert str(way.forward((9, 10))[0]) == (
        "logical (10, 9) -> TMA (9, 10) -> A + 1298 -> instruction 1 at (0, 8) -> shared byte 1330 -> bank 12"
    )
    assert way.forward((9, 16)) == []
    assert way.backward(2048) is None
    Emulator().load_many(tile, memory, coords, smem, smem_offsets=[0, 1024])
    wrong = smem.array.copy()
    assert way.first_difference(wrong, smem.array) is None
    wrong[1330] ^= 0xFF
    wrong[3000] ^= 1
    found = way.first_difference(wrong, smem.array)
    assert found is not None
    assert str(found) == (
        "byte 1330: 0xed, expected 0x12 (2 differ); logical (10, 9) -> TMA (9, 10) -> A + 1298 -> "
        "instruction 1 at (0, 8) -> shared byte 1330 -> bank 12"
    )
    other = memory["A"].array.copy()
    other[1298] ^= 1
    there = way.first_difference(other, memory["A"].array, space="global", base=4096)
    assert there is not None and there.step == found.step
    untouched = way.first_difference(np.r_[smem.array[:-1], 1].astype(np.uint8), smem.array)
    assert untouched is not None and str(untouched).endswith("no instruction touches it")


def test_a_filled_element_says_so() -> None:
    way = Trace(TensorMapTiled(6, 4096, (64, 16), (128,), (64, 8)), [(32, 12)], [0])
    step = way.forward((64, 12))[0]
    assert not step.inside and "outside the tensor (filled)" in str(step)


def test_bad_input() -> None:
    way = Trace(TensorMapTiled(6, 4096, (64, 16), (128,), (64, 8)), [(0, 0)], [0])
    with pytest.raises(InvalidValueError, match="TMA coordinate has 3 entries; must have 2"):
        way.forward((1, 2, 3))
    with pytest.raises(InvalidValueError, match="space = 'tensor'; must be one of"):
        way.first_difference(np.zeros(1, np.uint8), np.zeros(1, np.uint8), space="tensor")
