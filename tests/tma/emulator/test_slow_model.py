"""The engine against the slow model, byte by byte, over random legal instructions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.violations import violations
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.values import REDUCTIONS
from tests.shares import one_in
from tests.tma.emulator.instructions import BASE, Instruction, columns, tiles
from tests.tma.emulator.slow_model import slow_load, slow_store

REDUCIBLE = [(op, int(kind)) for op, formats in REDUCTIONS.items() for kind in sorted(formats)]


def loads_alike(case: Instruction) -> None:
    assert violations(case.request) == []
    fast, slow = case.smem.copy(), case.smem.copy()
    nbytes = Emulator().load(
        encode(case.request),
        case.gmem,
        case.coords,
        fast,
        smem_offset=case.offset,
        im2col_offsets=case.offsets,
        gmem_base=BASE,
    )
    want = slow_load(case.request, case.gmem, BASE, case.coords, slow, offset=case.offset, offsets=case.offsets)
    assert nbytes == want
    assert np.array_equal(fast, slow)


def stores_alike(case: Instruction, op: str | None = None) -> None:
    assert violations(case.request) == []
    fast, slow = case.gmem.copy(), case.gmem.copy()
    engine, descriptor = Emulator(), encode(case.request)
    if op is None:
        engine.store(descriptor, fast, case.coords, case.smem, smem_offset=case.offset, gmem_base=BASE)
    else:
        engine.reduce(op, descriptor, fast, case.coords, case.smem, smem_offset=case.offset, gmem_base=BASE)
    slow_store(case.request, case.smem, case.coords, slow, BASE, offset=case.offset, op=op)
    assert np.array_equal(fast, slow)


@given(tiles())
def test_tile_loads(case: Instruction) -> None:
    loads_alike(case)


@given(tiles(interleave=True))
def test_interleaved_tile_loads(case: Instruction) -> None:
    loads_alike(case)


@given(columns())
def test_im2col_loads(case: Instruction) -> None:
    loads_alike(case)


@given(columns(interleave=True))
def test_interleaved_im2col_loads(case: Instruction) -> None:
    loads_alike(case)


@given(tiles(store=True))
def test_tile_stores(case: Instruction) -> None:
    stores_alike(case)


@given(tiles(store=True, interleave=True))
def test_interleaved_tile_stores(case: Instruction) -> None:
    stores_alike(case)


@given(columns(store=True))
def test_im2col_stores(case: Instruction) -> None:
    stores_alike(case)


@pytest.mark.parametrize(("op", "data_type"), one_in(4, REDUCIBLE))
@given(data=st.data())
def test_reductions(op: str, data_type: int, data: st.DataObject) -> None:
    stores_alike(data.draw(tiles(store=True, types=[data_type])), op)
