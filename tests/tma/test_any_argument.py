"""Anything at all as any one argument, the others as they should be: an answer or a typed error, at once.

Each row is a call with arguments that work. Every argument in turn is replaced by each of `ANYTHING`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy

import cute_py as cute
import cute_py.tma as run
import cute_py.tma as tma
from cute_py import Int, Layout, LayoutRight
from cute_py.copies.boxes import LaunchPlan
from cute_py.copies.emulated_copy import CopyResult, TileResult
from cute_py.errors import CuteError
from cute_py.tma.atom.tiles import tile_tensors
from cute_py.tma.simulate.diagnosis import Outcome, Run, diagnose
from cute_py.tma.simulate.pipeline import Ring, RingLoad, RingStore
from tests.each import each_of
from tests.pace import took_more
from tests.shares import in_part

PACES = 200

ANYTHING: dict[str, Any] = {
    "None": None,
    "True": True,
    "-1": -1,
    "0": 0,
    "2**31": 2**31,
    "10**13": 10**13,
    "2**63": 2**63,
    "2**200": 2**200,
    "10**5000": 10**5000,
    "1.5": 1.5,
    "nan": float("nan"),
    "text": "x",
    "bytes": b"",
    "[]": [],
    "[1]": [1],
    "[None]": [None],
    "ragged": [[1], [2, 3]],
    "()": (),
    "(-1, -1)": (-1, -1),
    "(2**200,)": (2**200,),
    "(10**5000, 1)": (10**5000, 1),
    "(None, 1)": (None, 1),
    "(1.5, 1)": (1.5, 1),
    "('x',)": ("x",),
    "{}": {},
    "object": object(),
    "class": float,
    "int64": np.int64(3),
    "uint64": np.uint64(2**64 - 1),
    "float32": np.float32(1.5),
    "array": np.zeros(2),
    "array of no rank": np.array(1),
    "empty array": np.zeros(0, np.uint8),
    "array of objects": np.array([None, 1], object),
    "integer symbol": sympy.Symbol("N", integer=True),
    "symbol": sympy.Symbol("M"),
}

Call = Callable[..., Any]
X = np.zeros((64, 64), np.uint8)
TILE = Layout((Int(32), Int(32)), LayoutRight)
ATOM = tma.make_tma_copy("SM90_TMA_LOAD", X, TILE)
SHARED = tma.make_tma_copy("SM90_TMA_LOAD_MULTICAST", X, TILE, None, 2)
STENSOR, GTENSOR = tile_tensors(SHARED)
MAP, BASE = ATOM.descriptor, int(ATOM.request.global_address)
SMALL = tma.TensorMapTiled(0, 4096, (64, 64), (64,), (32, 8))
FAR = tma.TensorMapTiled(0, 1 << 20, (64, 64), (64,), (32, 8))
WORDS = tma.TensorMapTiled(2, BASE, (16, 64), (64,), (16, 8))
LINE = tma.TensorMapTiled(2, 4096, (1024,), (), (128,))
IM2COL = tma.TensorMapIm2col(0, 4096, (64, 8, 8, 4), (64, 512, 4096), (0, 0), (0, 0), 16, 32)
PICTURES = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), Layout(((8, 8, 2), 64), ((64, 512, 4096), Int(1))))
PATCHES = Layout((Int(8), Int(64)), (Int(64), Int(1)))
COLUMNS = {
    "data_type": 6,
    "global_address": [4096, 8192],
    "global_dim": (64, 8),
    "global_strides": (128,),
    "box_dim": (64, 8),
    "element_strides": (1, 1),
    "interleave": 0,
    "kind": "tiled",
}


def memory() -> run.GlobalMemory:
    made = run.GlobalMemory()
    made.add("A", np.zeros(4096, np.uint8), 4096)
    made.add("B", np.zeros(4096, np.uint8), 1 << 20)
    return made


def shared() -> run.SharedMemory:
    made = run.SharedMemory(4096)
    run.init_barrier(made, 0, 1)
    return made


def cluster() -> run.Cluster:
    made = run.Cluster(2, 4096)
    made.init_barriers(64, 1)
    return made


PAIR = cluster()


def program(**options: Any) -> Run:
    return Run(run.Emulator(), memory(), shared(), **options)


def proxy() -> run.TensormapProxy:
    made = run.TensormapProxy()
    made.place(4096, bytes(128))
    made.write(4096, bytes(128))
    return made


def reading(*arguments: Any) -> None:
    with program().reading(*arguments):
        pass


def ring(*arguments: Any, **options: Any) -> Any:
    return Ring(*arguments, **options).simulate()


def line_loads(**more: Any) -> list[RingLoad]:
    return [RingLoad(**{"descriptor": LINE, "coords": [(0,), (128,), (256,)]} | more)]


def traced(*arguments: Any, **options: Any) -> None:
    made = run.Trace(*arguments, **options)
    made.forward((0, 0))
    made.backward(0)
    list(made.steps(0))


def shown(kind: Call) -> Call:
    """Makes a record and prints it: what can't be printed must not be made."""

    def call(*arguments: Any) -> None:
        made = kind(*arguments)
        assert str(made) and repr(made)

    return call


def used(request: Any) -> None:
    """Everything that takes a request, legal or not, answers or refuses."""
    assert repr(request)
    for question in (tma.violations, tma.encode, tma.hazards, tma.to_json, tma.transaction_bytes, tma.describe):
        try:
            question(request)
        except CuteError as refusal:
            assert str(refusal)


def with_columns(name: str) -> Call:
    return lambda value: tma.encode_many({**COLUMNS, name: value})


def row(call: Call, *arguments: Any, **options: Any) -> tuple[Call, tuple[Any, ...], dict[str, Any]]:
    return call, arguments, options


RUN: dict[str, Callable[[], tuple[Call, tuple[Any, ...], dict[str, Any]]]] = {
    "add": lambda: row(run.GlobalMemory().add, "a", np.zeros(64, np.uint8), 4096),
    "allocate": lambda: row(memory().allocate, "a", 64, alignment=256),
    "range": lambda: row(memory().__getitem__, "A"),
    "find": lambda: row(memory().find, 4096),
    "name of": lambda: row(memory().name_of, 4096),
    "index of": lambda: row(memory().index_of, np.array([4096])),
    "shared memory": lambda: row(run.SharedMemory, 64, base=0, poison=1, rank=0),
    "cluster": lambda: row(run.Cluster, 2, 128, base=0, poison=1),
    "CTA": lambda: row(cluster().__getitem__, 0),
    "mapa": lambda: row(cluster().mapa, 0),
    "barriers": lambda: row(cluster().init_barriers, 0, 1),
    "init_barrier": lambda: row(run.init_barrier, shared(), 8, 1, name="n"),
    "Mbarrier": lambda: row(run.Mbarrier, 1, name="n"),
    "expect_tx": lambda: row(run.Mbarrier(2).expect_tx, 16),
    "complete_tx": lambda: row(run.Mbarrier(2).complete_tx, 16, "s"),
    "arrive": lambda: row(run.Mbarrier(2).arrive, 1),
    "arrive_expect_tx": lambda: row(run.Mbarrier(2).arrive_expect_tx, 16),
    "arrive_drop": lambda: row(run.Mbarrier(2).arrive_drop, 1),
    "try_wait": lambda: row(run.Mbarrier(2).try_wait, 0),
    "bulk_load": lambda: row(run.bulk_load, memory(), 4096, shared(), 0, 16, barrier=0, gmem_base=0),
    "bulk_load of arrays": lambda: row(
        run.bulk_load, np.zeros(64, np.uint8), 4096, np.zeros(64, np.uint8), 0, 16, gmem_base=4096
    ),
    "bulk_store": lambda: row(
        run.bulk_store, shared(), 0, memory(), 4096, 16, op="add", data_type=tma.TensorMapDataType.INT32, gmem_base=0
    ),
    "bulk_to_cta": lambda: row(run.bulk_to_cta, PAIR[0], 0, PAIR[1], 0, 16, barrier=64),
    "Emulator": lambda: row(run.Emulator, "sm_90a", strict=False),
    "load": lambda: row(
        run.Emulator("sm_100a").load,
        MAP,
        X.reshape(-1),
        (0, 0),
        shared(),
        mode="tile",
        smem_offset=128,
        im2col_offsets=(),
        barrier=0,
        multicast_mask=1,
        cta_group=1,
        gmem_base=BASE,
    ),
    "im2col load": lambda: row(
        run.Emulator().load, IM2COL, memory(), (0, 0, 0, 0), shared(), mode="im2col", im2col_offsets=(0, 0)
    ),
    "store": lambda: row(
        run.Emulator().store, MAP, X.reshape(-1), (0, 0), shared(), mode="tile", smem_offset=0, gmem_base=BASE
    ),
    "reduce": lambda: row(
        run.Emulator().reduce,
        "add",
        WORDS,
        X.reshape(-1),
        (0, 0),
        shared(),
        smem_offset=0,
        im2col_offsets=(),
        barrier=None,
        multicast_mask=None,
        gmem_base=BASE,
    ),
    "prefetch": lambda: row(run.Emulator().prefetch, MAP, X.reshape(-1), (0, 0), im2col_offsets=(), gmem_base=BASE),
    "load_many": lambda: row(
        run.Emulator().load_many, MAP, X.reshape(-1), [(0, 0)], shared(), smem_offsets=[0], gmem_base=BASE
    ),
    "store_many": lambda: row(
        run.Emulator().store_many, MAP, X.reshape(-1), [(0, 0)], shared(), smem_offsets=[0], gmem_base=BASE, op=None
    ),
    "copy_many": lambda: row(
        run.Emulator().copy_many,
        SMALL,
        memory(),
        [(0, 0)],
        FAR,
        memory(),
        [(0, 0)],
        shared(),
        smem_offsets=[0],
        im2col_offsets=(),
        source_base=0,
        destination_base=0,
    ),
    "geometry": lambda: row(run.Emulator().geometry, MAP, "tile"),
    "Run": lambda: row(
        Run, run.Emulator(), memory(), shared(), maps=run.TensormapProxy(), agent=run.Agent(), strict=False
    ),
    "barrier of a run": lambda: row(program().barrier, 8, 1, name="x"),
    "wait": lambda: row(program().wait, run.Mbarrier(1), 1),
    "issue": lambda: row(program().issue, SMALL, (0, 0), 0, run.Mbarrier(1), mode=None, im2col_offsets=()),
    "load of a run": lambda: row(
        program(maps=proxy()).load, SMALL, (0, 0), 0, run.Mbarrier(1), multicast_mask=None, cta_group=1, gmem_base=0
    ),
    "land": lambda: row(program().land, program().issue(SMALL, (0, 0), 0, run.Mbarrier(1))),
    "reading": lambda: row(reading, 0, 16, "w"),
    "read": lambda: row(program().read, 0, 16, "w"),
    "write": lambda: row(program().write, 0, np.zeros(16, np.uint8), "w"),
    "store of a run": lambda: row(program().store, SMALL, (0, 0), 0, op=None, mode=None, gmem_base=0),
    "wait_group_read": lambda: row(program().wait_group_read, 0),
    "wait_group": lambda: row(program().wait_group, 0),
    "diagnose": lambda: row(diagnose, lambda r: None, run.Emulator(), memory(), shared(), maps=run.TensormapProxy()),
    "Agent": lambda: row(run.Agent, 0, 0, 0),
    "place": lambda: row(proxy().place, 4096, bytes(128)),
    "write of a map": lambda: row(proxy().write, 4096, bytes(128), agent=run.Agent()),
    "replace in memory": lambda: row(proxy().replace, 4096, "global_address", 4096, 0, agent=run.Agent()),
    "release": lambda: row(proxy().release, "cta", agent=run.Agent()),
    "acquire": lambda: row(proxy().acquire, 4096, "cta", agent=run.Agent()),
    "cp_fenceproxy": lambda: row(proxy().cp_fenceproxy, 4096, bytes(128), "cta", agent=run.Agent()),
    "read of a map": lambda: row(proxy().read, 4096, agent=run.Agent()),
    "Ring": lambda: row(
        ring,
        run.Emulator(),
        memory(),
        shared(),
        line_loads(),
        depth=2,
        store=RingStore(LINE, [(0,), (128,), (256,)]),
        stage_bytes=1024,
        expect_bytes=512,
    ),
    "RingLoad": lambda: row(
        lambda **more: ring(run.Emulator(), memory(), shared(), line_loads(**more), depth=2),
        descriptor=LINE,
        coords=[(0,)],
        offset=0,
        mode=None,
        im2col_offsets=(),
    ),
    "RingStore": lambda: row(
        lambda *store: ring(run.Emulator(), memory(), shared(), line_loads(), depth=2, store=RingStore(*store)),
        LINE,
        [(0,), (128,), (256,)],
        0,
    ),
    "simulate": lambda: row(
        Ring(run.Emulator(), memory(), shared(), line_loads(), depth=2).simulate,
        load_ticks=4,
        consume_ticks=2,
        store_ticks=2,
    ),
    "Trace": lambda: row(
        traced, SMALL, [(0, 0), (0, 8)], [0, 1024], mode=None, im2col_offsets=(), smem=shared(), gmem=memory()
    ),
    "forward": lambda: row(run.Trace(SMALL, [(0, 0)], [0]).forward, (0, 0)),
    "backward": lambda: row(run.Trace(SMALL, [(0, 0)], [0]).backward, 0),
    "from_global": lambda: row(run.Trace(SMALL, [(0, 0)], [0]).from_global, 4096),
    "steps": lambda: row(lambda *which: list(run.Trace(SMALL, [(0, 0)], [0]).steps(*which)), 0),
    "difference of memories": lambda: row(
        run.Trace(SMALL, [(0, 0)], [0]).first_difference,
        np.zeros(16, np.uint8),
        np.ones(16, np.uint8),
        space="shared",
        base=0,
    ),
    "copy": lambda: row(run.copy, ATOM, X, np.zeros_like(X), "emulator"),
    "copy on a device": lambda: row(
        run.copy, None, X, np.zeros_like(X), "cuda", progress=None, tune=False, hints=False, verify=True, stream=0
    ),
    "execute": lambda: row(run.execute, ATOM, X, 0, backend="emulator", poison=0),
    "execute on a device": lambda: row(run.execute, ATOM, X, 0, backend="cuda", poison=0, seconds=1, isolate=False),
    "first_difference": lambda: row(run.first_difference, X, np.ones_like(X)),
    "prepare_copy": lambda: row(run.prepare_copy, X, X, hints=False, tuning=None, device=None),
    "tuned_copy": lambda: row(run.tuned_copy, X, X, hints=False, rounds=7, device=None),
    "copy_array": lambda: row(run.copy_array, X, X, stream=None, hints=False),
    "measure_copy": lambda: row(run.measure_copy, None, rounds=1, launches=1, stream=None),
    "kernel_texts": lambda: row(run.kernel_texts, None),
    "open_device": lambda: row(run.open_device, 0),
    "driver_encode": lambda: row(run.driver_encode, SMALL),
    "PreparedCopy": lambda: row(run.PreparedCopy, None, [], 0, (), None),
    "LaunchPlan": lambda: row(shown(LaunchPlan), "once", None, None, 1, 16, "why", (0, 0, 0)),
    "Outcome": lambda: row(shown(Outcome), "trap", (), "", "", "", 0, 0, 0, 0, ()),
    "CopyReport": lambda: row(shown(run.CopyReport), 1.0, 1, 1.0, 1.0, 1.0, ()),
    "CopyResult": lambda: row(
        lambda *more: shown(CopyResult)(None, *more), True, 1, 1, 1, 1, 1.0, "emulator", (), None
    ),
    "TileResult": lambda: row(shown(TileResult), X, [(0, 0)], [0], 1, "emulator"),
    "Device": lambda: row(shown(run.Device), 0, "n", (9, 0), "sm_90a", 1, 1, 1, 1, None),
}

MAPS: dict[str, Callable[[], tuple[Call, tuple[Any, ...], dict[str, Any]]]] = {
    "mask": lambda: row(tma.create_tma_multicast_mask, Layout((1, 2, 1, 1)), (0, 1, 0, 0), 1),
    "mask of a number": lambda: row(tma.create_tma_multicast_mask, Layout((2, 2)), 1),
    "tma_partition": lambda: row(tma.tma_partition, SHARED, 0, Layout(Int(2)), STENSOR, GTENSOR),
    "tiled copy": lambda: row(SHARED.tiled_copy.get_slice(0).partition_S, SHARED.get_tma_tensor()),
    "bind": lambda: row(SHARED.with_, None, 3, 0),
    "plan_tiled": lambda: row(tma.plan_tiled, ATOM.gtensor.layout, ATOM.gbasis.layout, "uint8", "uint8", 1, 1),
    "make_tma_atom": lambda: row(
        tma.make_tma_atom,
        "SM90_TMA_LOAD",
        X,
        TILE,
        (Int(32), Int(32)),
        1,
        "uint8",
        "sm_90a",
        check=True,
        split_oversize=False,
        suggest=True,
        l2_promotion=0,
        oob_fill=0,
    ),
    "make_im2col_tma_copy": lambda: row(
        tma.make_im2col_tma_copy,
        "SM90_TMA_LOAD_IM2COL",
        PICTURES,
        PATCHES,
        (8, 64),
        1,
        (0, 0),
        (0, 0),
        (0, 0),
        (0, 0),
        (1, 1),
        (0, 0),
        (1, 1),
        "sm_90a",
        check=True,
        l2_promotion=0,
        oob_fill=0,
    ),
    "verify_partition": lambda: row(tma.verify_partition, X, (32, 32), num_multicast=1, arch="sm_90a"),
    "type_text": lambda: row(tma.type_text, TILE, True),
    "smem_choices": lambda: row(tma.smem_choices, "K", "float16", (128, 64)),
    "update": lambda: row(shown(tma.TmaUpdate), "UPDATE_DIM", 0, 64),
    "Instructions": lambda: row(
        lambda *more: shown(tma.Instructions)(*more[:4], (1,), *more[4:]), [(0, 0)], [0], 1, 1, 1, STENSOR, GTENSOR
    ),
    "Violation": lambda: row(shown(tma.Violation), "r", "a", 1, "u", "q", "s", 1, "d"),
    "MapDifference": lambda: row(shown(tma.MapDifference), (), (), 0),
    "LogicalSlot": lambda: row(shown(tma.LogicalSlot), "n", 0, "t", (), True, "s", ""),
    "format_of": lambda: row(tma.format_of, "float16"),
    "format_row": lambda: row(tma.format_row, 6),
    "request_of_array": lambda: row(
        tma.request_of_array, (64, 32), "float16", (8, 8), strides=(64, 2), address=0, swizzle=3, element_strides=(1, 1)
    ),
    "request_of_npy": lambda: row(tma.request_of_npy, "/nowhere.npy", (1,), address=0),
    "replace": lambda: row(tma.replace, MAP, "global_dim", 64, 0),
    "rebind": lambda: row(tma.rebind, MAP, 4096, (64, 64), (64,)),
    "rebind_steps": lambda: row(tma.rebind_steps, 4096, (64, 64), (64,)),
    "update_tma_descriptor": lambda: row(tma.update_tma_descriptor, MAP, "UPDATE_DIM", 0, 64),
    "repaired": lambda: row(tma.repaired, MAP, 13000),
    "encode": lambda: row(tma.encode, SMALL, arch="sm_90a"),
    "encode_many": lambda: row(tma.encode_many, [SMALL, FAR], arch="sm_90a"),
    "tiled": lambda: row(lambda *a: used(tma.TensorMapTiled(*a)), *SMALL.field_values(), None),
    "im2col": lambda: row(lambda *a: used(tma.TensorMapIm2col(*a)), *IM2COL.field_values(), None),
    "wide": lambda: row(lambda *a: used(tma.TensorMapIm2colWide(*a)), *IM2COL.as_wide().field_values(), None),
    "as_wide": lambda: row(IM2COL.as_wide, 0),
    "restore": lambda: row(lambda *a: used(tma.TensorMapTiled.restore(*a)), SMALL.field_values(), None),
    "residue": lambda: row(lambda *a: used(tma.TensorMapTiled(*SMALL.field_values(), tma.Residue(*a))), 0, ()),
    **{f"encode_many, {name}": lambda name=name: row(with_columns(name), COLUMNS[name]) for name in COLUMNS},
}

ROWS = {**RUN, **MAPS}


@in_part(3)
@each_of("name", ROWS)
def test_anything_is_answered_or_refused(name: str, every: int) -> None:
    _, arguments, options = ROWS[name]()
    failed = []
    for number, place in enumerate((*range(len(arguments)), *options)):
        for label, value in list(ANYTHING.items())[number % every :: every]:
            call, given, named = ROWS[name]()
            if isinstance(place, int):
                given = (*given[:place], value, *given[place + 1 :])
            else:
                named = {**named, place: value}
            start = time.process_time()
            try:
                call(*given, **named)
            except CuteError as refusal:
                assert str(refusal)
            except Exception as problem:
                failed.append(f"argument {place} = {label}: {type(problem).__name__}: {str(problem)[:80]}")
            if took_more(time.process_time() - start, PACES):
                failed.append(f"argument {place} = {label}: more than {PACES} paces of the processor")
    assert not failed, "\n".join(failed)


@each_of("name", [n for n in ROWS if n not in ("request_of_npy", "measure_copy", "kernel_texts")])
def test_the_arguments_themselves_work(name: str) -> None:
    """A row whose own arguments are refused would check nothing; calls that need a GPU are refused for that alone."""
    call, arguments, options = ROWS[name]()
    try:
        call(*arguments, **options)
    except CuteError as refusal:
        device = name in (
            "open_device",
            "driver_encode",
            "prepare_copy",
            "tuned_copy",
            "copy_array",
            "PreparedCopy",
        )
        assert device or name.endswith(("on a device", "LaunchPlan")), f"{name}: {refusal}"
