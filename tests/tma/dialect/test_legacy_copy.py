"""The copies without TMA, run instruction by instruction: the bytes in shared memory are those of the TMA copy."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cute_py.errors import EmissionError
from cute_py.ptx.module import assemble_module, find_ptxas
from cute_py.tma.dialect.legacy_copy import THREADS, check_legacy, granule_bytes, legacy_ptx
from cute_py.tma.dialect.traced_copy import trace_copy
from tests.calls.objects import im2col_atom
from tests.shares import one_in
from tests.tma.dialect.atoms import tile_atom
from tests.tma.dialect.images import tile_image
from tests.tma.dialect.ptx_interpreter import Machine

ATOMS = (
    tile_atom("load", (16, 128), "bf16", swizzle=3),
    tile_atom("load", (8, 64), "f16", swizzle=2),
    tile_atom("load", (8, 8), "f32", swizzle=1),
    tile_atom("load", (2, 3, 32), "f16"),
    tile_atom("load", (2, 2, 2, 2, 8), "uint8"),
    tile_atom("load", (64,), "int32"),
    tile_atom("load", (8, 16), "f16", swizzle=3),
)


def execute(
    atom: Any, arch: str, sizes: tuple[int, ...], origin: tuple[int, ...], extent: int = 0
) -> tuple[Machine, bytes, bytes]:
    """Run one copy on a tensor of `sizes`; (machine, image that the program left, image expected).

    `extent` is the size of the innermost mode that the copy is told, below the allocated one.
    """
    shape = trace_copy(atom)
    numbers = numpy.arange(1, math.prod(sizes) + 1, dtype=numpy.int64) * 2654435761
    tensor = numbers.astype(f"uint{shape.dtype.bits}").reshape(sizes)
    data = tensor.tobytes()
    pad = -len(data) % 16
    spill = len(data) + pad
    machine = Machine(bytearray(data) + bytearray(pad + shape.smem_bytes), bytearray(shape.smem_bytes), {})
    strides = [math.prod(sizes[i + 1 :]) * tensor.itemsize for i in range(len(sizes))][::-1]
    parameters = {"p_base": machine.global_base, "p_image": machine.global_base + spill}
    for mode, (size, coord) in enumerate(zip(reversed(sizes), reversed(origin), strict=True)):
        parameters |= {f"p_size{mode}": size, f"p_coord{mode}": coord}
        if mode:
            parameters[f"p_stride{mode}"] = strides[mode]
    parameters["p_size0"] = extent or sizes[-1]
    machine.parameters = parameters
    if shape.direction == "store":
        image = bytes((7 * i + 1) & 0xFF for i in range(shape.smem_bytes))
        machine.globals[spill:] = image
    machine.run(legacy_ptx(atom, arch), THREADS)
    return machine, bytes(machine.globals[spill:]), tile_image(atom, tensor[..., : parameters["p_size0"]], origin)


@pytest.mark.parametrize("arch", ("sm_75", "sm_80"))
@pytest.mark.parametrize("atom", one_in(4, ATOMS), ids=str)
def test_the_image_is_that_of_the_tma_copy(atom: Any, arch: str) -> None:
    shape = trace_copy(atom)
    sizes = (*tuple(extent + 1 for extent in shape.tile[:-1]), 2 * shape.tile[-1])
    _, image, expected = execute(atom, arch, sizes, (0,) * shape.rank)
    assert image == expected


@pytest.mark.parametrize("arch", ("sm_75", "sm_80"))
@given(data=st.data())
@settings(max_examples=10)
def test_tiles_across_every_border(arch: str, data: st.DataObject) -> None:
    """Coordinates before, across and beyond the border give zeros there; ends that cut a granule included."""
    shape = tile_atom("load", (4, 32), "f16", swizzle=2)
    # A row of 16-byte multiples, as TMA needs too; the extent may end inside of a granule.
    row = data.draw(st.integers(-6, 6))
    column = data.draw(st.integers(-6, 10)) * 8
    extent = data.draw(st.integers(1, 40))
    _, image, expected = execute(shape, arch, (5, 40), (row, column), extent)
    assert image == expected


def test_which_instruction_moves_the_bytes() -> None:
    shape = ATOMS[0]
    assert "cp.async.ca.shared.global [%r_at], [%rd_g], 4, %r_n;" in legacy_ptx(shape, "sm_80")
    assert "ld.global.nc.v4.b32" in legacy_ptx(shape, "sm_75")
    assert "ld.global.nc.v4.b32" in legacy_ptx(shape, "sm_90", "ldg")
    assert granule_bytes(trace_copy(tile_atom("load", (8, 4), "f16")), "ldg") == 4


def test_a_store_writes_only_what_is_inside() -> None:
    shape = tile_atom("store", (4, 32), "f16", swizzle=2)
    sizes, origin = (6, 40), (3, 16)
    machine, _, _ = execute(shape, "sm_80", sizes, origin)
    written = numpy.frombuffer(bytes(machine.globals[: 2 * 6 * 40]), "u2").reshape(sizes)
    before = (numpy.arange(1, 241, dtype=numpy.int64) * 2654435761).astype("u2").reshape(sizes)
    changed = written != before
    assert not changed[:3].any() and not changed[:, :16].any()
    assert tile_image(shape, written, origin)[:64] != tile_image(shape, before, origin)[:64]
    # What was stored comes back as the same image, where it is inside.
    stored = bytes((7 * i + 1) & 0xFF for i in range(trace_copy(shape).smem_bytes))
    back = tile_image(shape, written, origin)
    inside = tile_image(shape, numpy.full(sizes, 0xFFFF, "u2"), origin)
    assert bytes(b for b, m in zip(back, inside, strict=True) if m) == bytes(
        b for b, m in zip(stored, inside, strict=True) if m
    )


@pytest.mark.skipif(find_ptxas() is None, reason="no ptxas on PATH or in an nvidia-cuda-nvcc wheel")
@pytest.mark.parametrize("arch", one_in(3, ("sm_75", "sm_80", "sm_89")))
def test_every_module_assembles(arch: str) -> None:
    stores = (tile_atom("store", (128, 128), "bf16", swizzle=3), tile_atom("store", (4, 4), "uint8"))
    for shape in (*ATOMS, *stores):
        accepted, messages, _ = assemble_module(legacy_ptx(shape, arch), arch)
        assert accepted, messages


@pytest.mark.parametrize(
    ("atom", "reason"),
    [
        (tile_atom("reduce", (8, 64), "f16"), "a reduction in global memory has no bulk form before sm_90"),
        (im2col_atom(), "mode im2col is not emitted"),
        (tile_atom("load", (8, 64), "float4_e2m1fn"), "elements of less than a byte"),
        (tile_atom("load", (8, 64), "f16", swizzle=4), "swizzle B128_ATOM_32B"),
        (tile_atom("load", (8, 3), "uint8"), "rows of the box must be a multiple of 4 bytes"),
    ],
)
def test_what_has_no_code_says_why(atom: Any, reason: str) -> None:
    assert reason in check_legacy(trace_copy(atom))[0].text
    with pytest.raises(EmissionError):
        legacy_ptx(atom, "sm_80")


def test_cp_async_is_for_loads_from_sm_80() -> None:
    with pytest.raises(EmissionError, match="got a load for sm_75"):
        legacy_ptx(ATOMS[0], "sm_75", "cp.async")
    with pytest.raises(EmissionError, match="got a store for sm_80"):
        legacy_ptx(tile_atom("store", (8, 64), "f16"), "sm_80", "cp.async")
