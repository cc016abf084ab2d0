"""Buffers and regions, and that values survive a copy."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from cute_py.errors import CoordinateError, InvalidTypeError, InvalidValueError, TmemError
from cute_py.tmem import Buffer, R, S, TCol, TLane, TmemAllocation, copy_async, emit_kernel, mma_shared_layout
from tests.architecture.test_layers import PACKAGE, imports, modules

DEMO = S[(32, 16) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane] + 4 @ TCol


def test_regions() -> None:
    buffer = Buffer("A", (32, 16), "uint8", "shared", S[32, 16])
    assert buffer[0:32, 0:16] == buffer[:, :] == buffer.whole()
    assert buffer[8:16, :].region == ((8, 16), (0, 16))
    assert repr(buffer[8:16, :]) == "A[8:16, 0:16]"
    for key in ((slice(0, 32),), (3, slice(0, 16)), (slice(0, 32, 2), slice(0, 16))):
        with pytest.raises((CoordinateError, InvalidTypeError)):
            buffer[key]  # type: ignore[index]


def test_what_is_no_buffer() -> None:
    with pytest.raises(InvalidValueError, match="identifier"):
        Buffer("A smem", (32, 16), "uint8", "shared")
    for align in (8, 48):
        with pytest.raises(InvalidValueError, match=f"align = {align} bytes"):
            Buffer("A", (32, 16), "uint8", "shared", align=align)
    with pytest.raises(InvalidTypeError, match="TileLayout or a ComposeLayout"):
        Buffer("A", (32, 16), "uint8", "shared", "row-major")  # type: ignore[arg-type]
    with pytest.raises(TmemError, match="n_cols = 16"):
        TmemAllocation(16)


def test_a_kernel_needs_the_alignment_of_its_swizzle() -> None:
    tile = mma_shared_layout("uint8", 3, (32, 128))
    tmem = Buffer(
        "t", (32, 16), "uint8", "tmem", S[(32, 16) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane], TmemAllocation(32)
    )
    for align, fits in ((512, False), (1024, True)):
        smem = Buffer("A", (32, 128), "uint8", "shared", tile, align=align)
        planned = copy_async(tmem.whole(), smem[0:32, 0:16])
        if fits:
            assert "1023u" in emit_kernel(planned)
        else:
            with pytest.raises(TmemError, match="align = 512 bytes"):
                emit_kernel(planned)


def test_values_survive_pickling_and_copying() -> None:
    swizzled = mma_shared_layout("bfloat16", 3, (64, 128))
    buffer = Buffer("A", (32, 16), "uint8", "shared", S[32, 16])
    for value in (DEMO, swizzled, buffer, 4 @ TCol):
        assert pickle.loads(pickle.dumps(value)) == value
        assert copy.deepcopy(value) == value


def test_the_emulator_knows_no_plans_and_no_layouts() -> None:
    """It is what plans and layouts are checked with."""
    names = modules(PACKAGE)
    used = imports(Path(names["cute_py.machine.tensor_memory.memory"]), set(names))
    forbidden = {f"cute_py.tmem.{name}" for name in ("planner", "tile_layout", "swizzled_layout")}
    assert not used & forbidden
    assert "cute_py.atom.smem_descriptor" in used
