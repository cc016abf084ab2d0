"""Atoms of `make_tma_copy`, lowered: their own instructions, their own numbers."""

from __future__ import annotations

import inspect
import types

import pytest

import cute_py as cute
from cute_py.errors import TmaBuildError
from cute_py.ptx.module import assemble_module, find_ptxas
from cute_py.tma.atom.op import Op
from cute_py.tma.atom.tiles import instructions
from cute_py.tma.dialect.legacy_copy import check_legacy
from cute_py.tma.dialect.lowering import module_of
from cute_py.tma.dialect.traced_copy import trace_copy

tma = cute.tma


def make(op: Op, tile: tuple[int, int], multicast: int = 1, swizzle: str = "128B", dtype: str = "bfloat16") -> object:
    tensor = cute.make_tensor(cute.make_gmem_ptr(0x10000, dtype), cute.make_layout((1024, 1024), (1024, cute.Int(1))))
    return tma.make_tma_copy(op, tensor, tma.make_smem_layout("K", swizzle, dtype, tile), tile, multicast)


CASES = (
    (Op.SM90_TMA_LOAD, (128, 128), 1),
    (Op.SM90_TMA_LOAD, (128, 64), 1),
    (Op.SM90_TMA_STORE, (128, 128), 1),
    (Op.SM90_TMA_REDUCE_ADD, (64, 128), 1),
    (Op.SM90_TMA_LOAD_MULTICAST, (128, 128), 2),
    (Op.SM90_TMA_LOAD_MULTICAST, (128, 64), 4),
)


@pytest.mark.parametrize(("op", "tile", "multicast"), CASES)
def test_the_instructions_are_the_atoms(op: Op, tile: tuple[int, int], multicast: int) -> None:
    atom = make(op, tile, multicast)
    shape = trace_copy(atom)
    assert shape.tile == tile
    assert shape.transaction_bytes == atom.transaction_bytes  # type: ignore[attr-defined]
    assert shape.num_boxes == atom.instructions  # type: ignore[attr-defined]
    assert tuple(reversed(shape.box)) == atom.request.box_dim  # type: ignore[attr-defined]
    listed = instructions(atom)  # type: ignore[arg-type]
    for box in range(shape.num_boxes):
        assert shape.instruction_origin(box) == tuple(int(x) for x in listed.coords[box] - listed.coords[0])
        assert shape.offsets[box] == listed.smem_offsets[box] - listed.smem_offsets[0]


@pytest.mark.parametrize(("op", "tile", "multicast"), CASES)
@pytest.mark.skipif(find_ptxas() is None, reason="no ptxas on PATH or in an nvidia-cuda-nvcc wheel")
def test_the_text_assembles(op: Op, tile: tuple[int, int], multicast: int) -> None:
    trace = tma.lower(make(op, tile, multicast), arch="sm_90a")
    accepted, messages, _ = assemble_module(module_of(trace.ptx, "sm_90a"), "sm_90a")
    assert accepted, messages
    if trace.copy.direction == "load":
        assert f", {trace.copy.transaction_bytes};" in trace.ptx


def test_an_atom_and_its_stand_in_lower_alike() -> None:
    """The text of the walkthrough's example needs no more of an atom than operation, request and bytes."""
    atom = make(Op.SM90_TMA_LOAD, (128, 128))
    said = {name: getattr(atom, name) for name in ("op", "request", "transaction_bytes")}
    for made, plain in ((tma.lower(atom), tma.lower(types.SimpleNamespace(**said))),):
        assert made.ptx == plain.ptx
        assert [made.stage(n).text for n in "45"] == [plain.stage(n).text for n in "45"]
    assert tma.lower(atom, (3, 5), "sm_90a").element_coords == (640, 384)


def test_a_slice_of_a_multicast_is_said() -> None:
    trace = tma.lower(make(Op.SM90_TMA_LOAD_MULTICAST, (128, 128), 2))
    assert trace.copy.offsets == (0, 16384) and trace.copy.box_bytes == 8192
    assert "the boxes are the slice of the first of 2 CTAs; each receives the whole tile" in trace.stage("3").notes
    assert check_legacy(trace.copy)[0].text == "the boxes of this atom have a special order in shared memory"


def test_the_same_atom_on_ampere() -> None:
    trace = tma.lower(make(Op.SM90_TMA_LOAD, (128, 128)), arch="sm_80")
    assert trace.witness == "sm80_cp_async_4_bf16"
    assert "cp.async.ca.shared.global [%r_at], [%rd_g], 4, %r_n;" in trace.ptx


def test_a_prefetch_is_no_tile_copy() -> None:
    stand_in = types.SimpleNamespace(op="SM90_TMA_PREFETCH", request=make(Op.SM90_TMA_LOAD, (128, 64)).request)  # type: ignore[attr-defined]
    with pytest.raises(TmaBuildError, match="has no tile in shared memory"):
        trace_copy(stand_in)


def test_names_of_instructions_are_those_of_tma() -> None:
    assert inspect.isfunction(tma.lower)
    assert tma.ptx("store", dim=1).startswith("cp.async.bulk.tensor.1d.global")
    assert tma.why_not("load", "sm_80", dim=1) is not None
    assert tma.CAPABILITIES["store tile"]["sm_90a"].accepted_from == (8, 0)
    assert tma.lower(make(Op.SM90_TMA_LOAD, (128, 64))).witness.startswith("sm90_tma_load")
