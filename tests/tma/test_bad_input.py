"""Objects of another kind, numbers that are none and sizes beyond reason end in a typed error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

import cute_py as cute
import cute_py.tma as lower
import cute_py.tma as run
import cute_py.tma as tma
from cute_py import Int, Layout, LayoutRight, targets
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, TmaBuildError
from cute_py.ptx.catalog import form
from cute_py.tma.simulate.diagnosis import Run, diagnose
from cute_py.tma.simulate.pipeline import Ring, RingLoad, RingStore
from tests.each import each_of
from tests.refusals import Refusal, assert_refused, nested, refusals

X = np.zeros((64, 64), np.uint8)
ATOM = tma.make_tma_copy("SM90_TMA_LOAD", X, Layout((Int(32), Int(32)), LayoutRight))
MAP = ATOM.descriptor
SMEM = np.zeros(4096, np.uint8)
CTA = run.SharedMemory(4096)
HOST = run.GlobalMemory()
CTA_RUN = Run(run.Emulator(), X.reshape(-1), run.SharedMemory(4096))
REQUEST = tma.TensorMapTiled(0, 4096, (64, 64), (64,), (32, 32))
LANDED = CTA_RUN.issue(MAP, (0, 0), 0, run.Mbarrier(1), gmem_base=int(ATOM.request.global_address))
CTA_RUN.land(LANDED)
TRACE = run.Trace(MAP, [(0, 0)], [0])
HUGE = tma.TensorMapTiled(0, 4096, (1 << 16, 1 << 16), (1 << 16,), (1 << 16, 1 << 16))
N = sympy.Symbol("N", integer=True, positive=True)


def load(*coords: Any, **options: Any) -> Any:
    base = int(ATOM.request.global_address)
    options = {"gmem_base": base, "gmem": X.reshape(-1)} | options
    return run.Emulator().load(MAP, coords=coords or (0, 0), smem=SMEM, **options)


def fixes(**changed: Any) -> Any:
    layout = Layout((Int(32), Int(32)), LayoutRight)
    arguments = {"op": "SM90_TMA_LOAD", "gtensor": X, "smem_layout": layout, "num_multicast": 1}
    return tma.find_fixes(tma.make_tma_atom, arguments | changed)


def ring() -> Any:
    loads = [RingLoad(tma.TensorMapTiled(2, 4096, (1024,), (), (128,)), [(0,)])]
    return Ring(run.Emulator(), HOST, run.SharedMemory(4096), loads, depth=1)


REFUSED: list[Refusal] = [
    ("tile", lambda: tma.smem_choices("K", "f32", (sympy.Symbol("n"), 32)), InvalidTypeError, "a size of the tile"),
    ("modifier", lambda: form("tcgen05.ld").expected({"num": np.arange(3)}), InvalidTypeError, "a modifier must be"),
    ("format", lambda: tma.tensor_map_format(6), InvalidTypeError, "an element type must be a DType"),
    ("movable", lambda: tma.movable_type(6), InvalidTypeError, "an element type must be a DType"),
    ("row", lambda: tma.format_row(float("inf")), InvalidTypeError, "data_type must be an integer"),
    ("row of an array", lambda: tma.format_row(np.zeros(2)), InvalidTypeError, "data_type must be"),
    ("row beyond", lambda: tma.format_row(99), InvalidValueError, "data_type = 99; must be 0 to"),
    ("reduction", lambda: tma.why_not_reduction(None, "int32"), InvalidTypeError, "a TmaReduceKind"),
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
    ("path", lambda: tma.request_of_npy(6, (1,)), InvalidTypeError, "path must be a text or a path, got int 6"),
    ("view", lambda: tma.describe(MAP, []), InvalidTypeError, "view must be a str"),
    ("basis", lambda: tma.split_basis(0, Layout(4)), InvalidTypeError, "a G-basis must be a Layout"),
    ("plan", lambda: tma.plan_tiled(16, Layout(4), None, None), InvalidTypeError, "the global layout"),
    ("cached", lambda: tma.encode_many(np.array(3)), InvalidTypeError, "fields of tensor maps"),
    ("CTAs", lambda: tma.make_tma_copy("SM90_TMA_LOAD", X, Layout(Int(32)), None, N), InvalidTypeError, "of CTAs"),
    ("span", lambda: tma.make_smem_layout("K", np.zeros(2), "int8", (8, 8)), InvalidValueError, "must be one of 128B"),
    ("dialect", lambda: tma.verify_partition(X, 4, dialect=np.zeros(2)), InvalidValueError, "unknown dialect"),
    ("modes", lambda: tma.create_tma_multicast_mask(Layout(4), N), InvalidTypeError, "the index of a CTA"),
    ("rank", lambda: tma.tma_tensor(5, Int(6), 2**70), InvalidValueError, "must be 1 to 5"),
    ("shapes", lambda: tma.build_tma_descriptor(X, Layout(Int(4)), None), InvalidTypeError, "shapes of a TMA descr"),
    ("fixes", lambda: tma.find_fixes(tma.make_tma_atom, {}), InvalidValueError, "the arguments lack gtensor; must"),
    ("fixes gtensor", lambda: fixes(gtensor=(1, 2)), InvalidTypeError, "a TMA atom needs a tensor in global memory"),
    ("fixes arch", lambda: fixes(check=3), InvalidTypeError, "check must be a bool, got int 3"),
    ("fixes layout", lambda: fixes(smem_layout=None), InvalidTypeError, "smem_layout must be a layout, got NoneType"),
    ("fixes count", lambda: fixes(num_multicast=1.5), InvalidTypeError, "num_multicast, the number of CTAs, must"),
    ("backend", lambda: run.copy(ATOM, X, backend=np.zeros(2)), InvalidTypeError, "backend must be a str"),
    ("no atom", lambda: run.copy(7, X), InvalidTypeError, "expected a TMA atom of tiles"),
    ("poison", lambda: run.execute(ATOM, X, poison=[]), InvalidTypeError, "poison must be an integer"),
    ("tile", lambda: run.execute(ATOM, X, "4"), InvalidTypeError, "the index of a tile must be an integer"),
    ("half a tile", lambda: run.execute(ATOM, X, 1.5), InvalidTypeError, "the index of a tile must"),
    ("difference", lambda: run.first_difference(1, 4), InvalidTypeError, "source must be a ndarray"),
    ("other shape", lambda: run.first_difference(X, X[:3]), InvalidValueError, "different shapes"),
    ("architecture", lambda: run.Emulator(3), InvalidTypeError, "arch must be a str"),
    ("mode", lambda: load(mode=[]), InvalidTypeError, "mode must be a str"),
    ("ragged", lambda: load([1], [2, 3]), InvalidTypeError, "coordinates must be integers, got list [([1], [2, 3])]"),
    ("windows", lambda: load(smem_offset=(0, 128, 256)), InvalidValueError, "must be one offset, or 1"),
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
    ("address", lambda: HOST.add("a", SMEM, 1.9), InvalidTypeError, "the address of range 'a' must be an integer"),
    ("text address", lambda: HOST.add("a", SMEM, "12"), InvalidTypeError, "got str '12'"),
    ("low address", lambda: HOST.add("a", SMEM, -5), InvalidValueError, "the address of range 'a' is -5 bytes"),
    ("high address", lambda: HOST.add("a", SMEM, 2**63), InvalidValueError, "must be 0 to 9223372036854771712"),
    ("range", lambda: HOST.add(3, SMEM, 0), InvalidTypeError, "the name of a range must be a str, got int 3"),
    ("unknown range", lambda: HOST["b"], InvalidValueError, "no range named 'b'"),
    ("two axes", lambda: HOST.allocate("a", [2, 3]), InvalidTypeError, "the size of a range must be an integer"),
    ("no size", lambda: HOST.allocate("a", None), InvalidTypeError, "got NoneType None"),
    ("below", lambda: HOST.allocate("a", -1), InvalidValueError, "the size of a range is -1 bytes; must be 0 to"),
    ("ten terabytes", lambda: HOST.allocate("a", 10**13), InvalidValueError, "must be 0 to 1099511627776"),
    ("alignment", lambda: HOST.allocate("a", 1, alignment=0), InvalidValueError, "alignment of a range is 0 bytes"),
    ("high base", lambda: load(gmem_base=2**63), InvalidValueError, "gmem_base = 9223372036854775808 bytes"),
    ("base of none", lambda: load(gmem=HOST, gmem_base=1.5), InvalidTypeError, "gmem_base must be an integer"),
    ("listed barrier", lambda: load(barrier=[1]), InvalidTypeError, "a barrier must be an Mbarrier, or its offset"),
    ("half a barrier", lambda: load(barrier=1.5), InvalidTypeError, "a barrier must be an Mbarrier, or its offset"),
    ("one coordinate", lambda: load(5), InvalidValueError, "coordinates: 1 given; must be 2"),
    ("group", lambda: load(cta_group=3), InvalidValueError, "cta_group = 3; must be 1 to 2"),
    ("far window", lambda: load(smem_offset=2**200), InvalidValueError, "must each fit in 64 bits"),
    ("sixth CTA", lambda: run.Cluster(2, 128)[5], InvalidValueError, "CTA 5 does not exist; the cluster has 2"),
    ("slice", lambda: run.Cluster(2, 128)[0:1], InvalidTypeError, "the index of a CTA must be an integer"),
    ("rank of a CTA", lambda: run.SharedMemory(16, rank=16), InvalidValueError, "must be 0 to 15"),
    ("bulk size", lambda: run.bulk_load(SMEM, 0, SMEM, 0, -16), InvalidValueError, "size = -16 bytes; must be"),
    ("bulk address", lambda: run.bulk_load(SMEM, 1.5, SMEM, 0, 16), InvalidTypeError, "address must be an integer"),
    ("bulk type", lambda: run.bulk_store(SMEM, 0, SMEM, 0, 16, op="add"), InvalidTypeError, "data_type, the type"),
    ("bulk op", lambda: run.bulk_store(SMEM, 0, SMEM, 0, 16, op=[]), InvalidValueError, "reduction []; must be one"),
    ("landed", lambda: run.Mbarrier(1).complete_tx(-1), InvalidValueError, "bytes that landed = -1; must be"),
    ("parity", lambda: run.Mbarrier(1).try_wait(2), InvalidValueError, "parity = 2; must be 0 to 1"),
    ("numbers", lambda: diagnose(3, 4, 5, 6), InvalidTypeError, "called with a Run, must be a function"),
    ("no emulator", lambda: Run(4, HOST, CTA), InvalidTypeError, "expected an emulator, got int 4"),
    ("no gmem", lambda: Run(run.Emulator(), 5, CTA), InvalidTypeError, "gmem must be a numpy array of uint8"),
    ("array", lambda: Run(run.Emulator(), HOST, SMEM), InvalidTypeError, "smem must be a SharedMemory"),
    ("end of smem", lambda: CTA_RUN.read(4090, 16), InvalidValueError, "shared memory is 16 bytes; must be 0 to 6"),
    ("words", lambda: CTA_RUN.write(0, np.zeros(4)), InvalidTypeError, "data must be a numpy array of uint8"),
    ("again", lambda: CTA_RUN.land(LANDED), InvalidValueError, "load 0 at (0, 0) has landed already"),
    ("ticks", lambda: ring().simulate(load_ticks=2**200), InvalidValueError, "must be 1 to 10000"),
    ("ring", lambda: RingLoad(MAP, 5), InvalidTypeError, "coords of a load must be one row of coordinates"),
    ("ring", lambda: RingLoad(1.5, [(0, 0)]), InvalidTypeError, "a descriptor must be bytes or a decoded tensor"),
    ("ring", lambda: RingStore(..., [(0, 0)]), InvalidTypeError, "a descriptor must be bytes or a decoded tensor"),
    ("progress", lambda: run.copy(ATOM, X, progress=5), InvalidTypeError, "called with two counts, must be a function"),
    ("prepared", lambda: run.PreparedCopy(16, 0, 3), InvalidTypeError, "device must be a Device, got int 16"),
    ("steps", lambda: list(TRACE.steps(1)), InvalidValueError, "instruction 1 does not exist; there are 1"),
    (
        "huge box",
        lambda: run.Trace(HUGE, [(0, 0)], [0]),
        InvalidValueError,
        "the box has 4294967296 bytes; must have at most 4194304",
    ),
    ("fields", lambda: REQUEST.restore(8, {}), InvalidTypeError, "values of fields must be a tuple, got int 8"),
    ("few fields", lambda: REQUEST.restore((), None), InvalidValueError, "the request has 0 field values; must have"),
    ("digits", lambda: tma.TensorMapTiled(0, 10**5000, (1,), (), (1,)), InvalidValueError, "must be at most 2**128"),
    ("entries", lambda: tma.TensorMapTiled(0, 0, (1,) * 65, (), (1,)), InvalidValueError, "must have at most 100"),
    ("field of none", lambda: tma.request_of_array((4,), "int8", (4,), of=1), InvalidValueError, "'of' is not a"),
    ("hint", lambda: ATOM.with_(None, 0, "evict_first"), InvalidTypeError, "the cache hint must be an integer"),
    ("switch", lambda: tma.make_tma_copy("SM90_TMA_LOAD", X, ATOM.tile, check=1), InvalidTypeError, "check must be a"),
    ("sizes", lambda: tma.make_tma_copy("SM90_TMA_LOAD", X, ATOM.tile, None, (-1, -1)), CuteError, "-1"),
    ("text", lambda: lower.examine(6), InvalidTypeError, "the text of an instruction"),
    ("name", lambda: targets.architecture([]), InvalidTypeError, "a name must be a str"),
    ("form", lambda: lower.why_not(2, "sm_90a"), InvalidTypeError, "a form must be a str"),
    (
        "kernel",
        lambda: lower.cuda_kernel(0),
        TmaBuildError,
        "expected an atom, but the argument has no attribute op, request",
    ),
    ("phases", lambda: lower.run_phases(2), InvalidTypeError, "a kernel must be a KernelFunction"),
    ("operand", lambda: lower.mcast_opnum((), 1), InvalidTypeError, "rank must be an integer"),
    ("version", lambda: lower.rebind_ptx(2, version="K"), InvalidTypeError, "a PTX version must be two integers"),
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


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: cute.size(Layout), "expected an integer, got type"),
        (lambda: tma.coverage(ATOM, nested(3000)), "nested deeper than 64 levels"),
        (lambda: tma.ExecutableCopy(nested(3000), 0), "the atom of an execution must be a TileAtom"),
        (lambda: cute.mesh.ShardedLayout(Layout(N), 2), "the size of a dimension"),
    ],
)
def test_what_random_calls_have_found(call: Callable[[], object], text: str) -> None:
    with pytest.raises(CuteError, match=text):
        call()


@each_of(
    ("call", "text"),
    [
        (
            lambda: tma.make_tma_copy("SM90_TMA_LOAD", X, "garbage"),
            "a shared layout must be written as shape:stride, got str 'g",
        ),
        (
            lambda: tma.make_tma_copy("SM90_TMA_LOAD", X, "(_8,_8):(_8,_1)", swizzle="128B"),
            "make_smem_layout('K', '128B', dtype, tile): the shared",
        ),
        (lambda: tma.make_tma_copy("SM90_TMA_LOAD", X, "(_8,_8):(_8,_1)", chek=True), "nearest : check"),
        (lambda: cute.coalesce("(4,8):(8,1)"), "parse(text) reads a layout"),
        (lambda: cute.draw.draw("(4,8):(8,1)"), "parse(text) reads a layout"),
        (lambda: tma.diff(ATOM, ATOM), "atom.descriptor has the bytes"),
        (lambda: tma.Emulator().load(ATOM, X, (0, 0), X), "atom.descriptor has the bytes"),
        (lambda: cute.zipped_divide(X, (8, 8)), "cute_py.make_tensor(array)"),
        (lambda: cute.size(np.zeros((64, 128))), "got ndarray <ndarray of shape (64, 128)>"),
        (lambda: tma.violations(ATOM.descriptor), "decode(bytes) returns the request of a map"),
    ],
)
def test_a_natural_mistake_is_told_what_to_do(call: Callable[[], object], text: str) -> None:
    with pytest.raises(InvalidTypeError) as refused:
        call()
    assert text in str(refused.value)
