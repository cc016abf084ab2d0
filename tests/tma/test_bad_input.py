"""Objects of another kind, numbers that are none and sizes beyond reason end in a typed error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

import cute_py as cute
import cute_py.tma as tma
import cute_py.tma.lower as lower
import cute_py.tma.run as run
from cute_py import Int, Layout, LayoutRight
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError
from tests.refusals import Refusal, assert_refused, nested, refusals

X = np.zeros((64, 64), np.uint8)
ATOM = tma.make_tma_copy("SM90_TMA_LOAD", X, Layout((Int(32), Int(32)), LayoutRight))
MAP = ATOM.descriptor
SMEM = np.zeros(4096, np.uint8)
CTA = run.SharedMemory(4096)
N = sympy.Symbol("N", integer=True, positive=True)


def load(*coords: Any, **options: Any) -> Any:
    base = int(ATOM.request.global_address)
    return run.Emulator().load(MAP, X.reshape(-1), coords or (0, 0), SMEM, **{"gmem_base": base} | options)


REFUSED: list[Refusal] = [
    ("format", lambda: tma.tensor_map_format(6), InvalidTypeError, "an element type must be a DType"),
    ("movable", lambda: tma.movable_type(6), InvalidTypeError, "an element type must be a DType"),
    ("row", lambda: tma.format_row(float("inf")), InvalidTypeError, "data_type must be an integer"),
    ("row of an array", lambda: tma.format_row(np.zeros(2)), InvalidTypeError, "data_type must be"),
    ("row beyond", lambda: tma.format_row(99), InvalidValueError, "data_type = 99; must be 0 to"),
    ("reduction", lambda: tma.why_not_reduction(8, "int32"), InvalidTypeError, "a TmaReduceKind"),
    ("swizzle", lambda: tma.why_not_swizzle(7), InvalidTypeError, "must be a Swizzle, got int 7"),
    ("explain", lambda: tma.explain_atom(7), InvalidTypeError, "expected a TMA atom, got int 7"),
    ("instructions", lambda: tma.instructions(5), InvalidTypeError, "expected a TMA atom of tiles"),
    ("update", lambda: tma.apply_update(None, 4), InvalidTypeError, "an update must be"),
    ("lower", lambda: tma.lower_tma_load(7, None, (0,)), InvalidTypeError, "an executable atom"),
    ("json", lambda: tma.to_json(1), InvalidTypeError, "expected a request of a tensor map"),
    ("note", lambda: tma.note_box_bytes(1), InvalidTypeError, "expected a request"),
    ("transaction", lambda: tma.transaction_bytes(1), InvalidTypeError, "expected a request"),
    ("extents", lambda: tma.rebind_steps(0, 4, ()), InvalidTypeError, "extents must be a sequence of integers"),
    ("field", lambda: tma.replace(MAP, [], 4), InvalidTypeError, "the name of a field"),
    ("slots", lambda: tma.logical_slots(MAP, 1.5), InvalidTypeError, "the rank of the operation"),
    ("path", lambda: tma.request_of_npy(6, (1,)), InvalidTypeError, "a path of a .npy file"),
    ("view", lambda: tma.describe(MAP, []), InvalidTypeError, "view must be a str"),
    ("basis", lambda: tma.split_basis(0, Layout(4)), InvalidTypeError, "a G-basis must be a Layout"),
    ("plan", lambda: tma.plan_tiled(16, Layout(4), None, None), InvalidTypeError, "the global layout"),
    ("cached", lambda: tma.encode_many(np.array(3)), InvalidTypeError, "fields of tensor maps"),
    ("CTAs", lambda: tma.make_tma_copy("SM90_TMA_LOAD", X, Layout(Int(32)), None, N), InvalidTypeError, "of CTAs"),
    ("span", lambda: tma.make_smem_layout("K", np.zeros(2), "int8", (8, 8)), InvalidValueError, "must be one of 128B"),
    ("dialect", lambda: tma.verify_partition(X, 4, dialect=np.zeros(2)), InvalidValueError, "unknown dialect"),
    ("modes", lambda: tma.create_tma_multicast_mask(Layout(4), N), InvalidTypeError, "the number of a CTA"),
    ("rank", lambda: tma.tma_tensor(5, Int(6), 2**70), InvalidValueError, "must be 1 to 5"),
    ("shapes", lambda: tma.build_tma_descriptor(X, Layout(Int(4)), None), InvalidTypeError, "shapes of a TMA descr"),
    ("fixes", lambda: tma.find_fixes(tma.make_tma_atom, {}), InvalidValueError, "arguments without gtensor"),
    ("backend", lambda: run.copy(ATOM, X, backend=np.zeros(2)), InvalidTypeError, "backend must be a str"),
    ("no atom", lambda: run.copy(7, X), InvalidTypeError, "expected a TMA atom of tiles"),
    ("poison", lambda: run.execute(ATOM, X, poison=[]), InvalidTypeError, "poison must be an integer"),
    ("tile", lambda: run.execute(ATOM, X, "4"), InvalidTypeError, "the number of a tile must be an integer"),
    ("half a tile", lambda: run.execute(ATOM, X, 1.5), InvalidTypeError, "the number of a tile must"),
    ("difference", lambda: run.first_difference(1, 4), InvalidTypeError, "source must be a ndarray"),
    ("other shape", lambda: run.first_difference(X, X[:3]), InvalidValueError, "different shapes"),
    ("architecture", lambda: run.Emulator(3), InvalidTypeError, "arch must be a str"),
    ("mode", lambda: load(mode=[]), InvalidTypeError, "mode must be a str"),
    ("ragged", lambda: load([1], [2, 3]), InvalidTypeError, "coordinates must be integers, got list [([1], [2, 3])]"),
    ("windows", lambda: load(smem_offset=(0, 128, 256)), InvalidValueError, "must be one, or 1"),
    ("mask", lambda: load(multicast_mask="all"), InvalidTypeError, "the multicast mask must be an integer"),
    ("gmem_base", lambda: load(gmem_base="0"), InvalidTypeError, "gmem_base must be an integer"),
    ("bytes", lambda: run.SharedMemory(""), InvalidTypeError, "bytes of shared memory must be"),
    ("too many bytes", lambda: run.SharedMemory(2**40), InvalidValueError, "must be 0 to 268435456"),
    ("negative bytes", lambda: run.SharedMemory(-1), InvalidValueError, "must be 0 to 268435456"),
    ("poison of memory", lambda: run.SharedMemory(16, poison=256), InvalidValueError, "poison = 256; must be 0 to 255"),
    ("cluster", lambda: run.Cluster("2", 4096), InvalidTypeError, "CTAs of a cluster must be an integer"),
    ("barrier", lambda: run.init_barrier(CTA, 1.5, 1), InvalidTypeError, "the offset of an mbarrier"),
    ("no memory", lambda: run.init_barrier(8, 0, 1), InvalidTypeError, "the shared memory of a CTA"),
    ("arrivals", lambda: run.Mbarrier(int), InvalidTypeError, "must be an integer"),
    ("to a CTA", lambda: run.bulk_to_cta(b"", 0, CTA, 0, 16, barrier=0), InvalidTypeError, "source must be"),
    ("text", lambda: lower.examine(6), InvalidTypeError, "the text of an instruction"),
    ("name", lambda: lower.architecture([]), InvalidTypeError, "a name must be a str"),
    ("form", lambda: lower.why_not(2, "sm_90a"), InvalidTypeError, "a form must be a str"),
    ("kernel", lambda: lower.cuda_kernel(0), InvalidTypeError, "the shape of a copy must be a CopyShape"),
    ("phases", lambda: lower.run_phases(2), InvalidTypeError, "a kernel must be a KernelFunction"),
    ("tile of a copy", lambda: lower.copy_shape("load", 7, "int8"), InvalidTypeError, "tile = 7; must be a tuple"),
    ("extent", lambda: lower.copy_shape("load", ("a",), "int8"), InvalidTypeError, "an extent of the tile"),
    ("code", lambda: lower.copy_shape("load", (8,), "int8", swizzle=99), InvalidValueError, "swizzle = 99"),
    ("operand", lambda: lower.mcast_opnum((), 1), InvalidTypeError, "rank must be an integer"),
    ("version", lambda: lower.rebind_ptx(2, version="K"), InvalidTypeError, "a PTX version is two integers"),
    ("tile at", lambda: lower.lower(ATOM, (1, None)), InvalidTypeError, "a coordinate of a tile"),
]  # fmt: skip


@refusals(REFUSED)
def test_refused(call: Callable[[], Any], kind: type[CuteError], words: str) -> None:
    assert_refused(call, kind, words)


def test_too_deep() -> None:
    deep = nested(2000)
    calls: tuple[Callable[[Any], Any], ...] = (
        tma.as_op, tma.as_cache_mode, tma.as_load_mode, tma.decode, tma.explain_atom, lower.architecture, run.Mbarrier,
        lambda t: tma.make_cta_v_map((4, 4), t), lambda t: tma.verify_partition(X, t), lambda t: tma.partition(X, t),
        lambda t: tma.create_tma_multicast_mask(Layout(4), t), lambda t: tma.make_smem_layout("K", t, "int8", (8, 8)),
        lambda t: tma.TensorMapTiled(0, 0, t, (), ()), lambda t: run.execute(ATOM, X, t), lambda t: load(t),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(CuteError):
            call(deep)


def test_what_was_taken_is_still_taken() -> None:
    assert (
        load() == 1024
        and load(smem_offset=np.int32(0)) == 1024
        and load(gmem_base=np.int64(ATOM.request.global_address))
    )
    assert cute.tma.execute(ATOM, X, np.int64(1), poison=np.uint8(3)).smem.size == 1024
    assert lower.copy_shape("load", (np.int64(8), 64), "int8", swizzle=tma.TensorMapSwizzle.B64).tile == (8, 64)
