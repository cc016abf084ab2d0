"""How much work fixed operations are: calls of Python functions, bytes that numpy allocates, modules imported.

The counts are the same on every machine, however busy it is; a time is not. A bound lies a tenth above the count of the
day it was set. Lower it with the count; a change that needs more has to say what for.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import E, Int, Layout, static

ROW = static(Layout((64, 32), (32, 1)))
PLAIN = Layout((64, 32), (32, 1))
NESTED = static(Layout(((2, 4, 8), (2, 4, 8), (2, 4, 8)), ((4096, 8192, 32768), (64, 128, 512), (1, 2, 8))))
EIGHT = static(Layout((2,) * 8, (128, 64, 32, 16, 8, 4, 2, 1)))
TILE = static(Layout((2, 2), (1, 4)))
SWIZZLED = cute.composition(cute.Swizzle(3, 3, 3), static(Layout((8, 64), (64, 1))))
BASIS = Layout((8, 8), (E(0), E(1)))
IDENTITY = cute.make_identity_tensor((64, 64))
INDEX = np.arange(4096) % 32
REQUEST = cute.tma.TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=3)
MAP = cute.tma.encode(REQUEST)
MANY = {
    "data_type": 6,
    "global_address": np.arange(1, 1001) * 4096,
    "global_dim": (512, 1024),
    "global_strides": (1024,),
    "box_dim": (64, 8),
}
HALVES = np.zeros((256, 256), np.float16)
BYTES = np.zeros(512 * 1024, np.uint8)
SMEM = cute.tma.make_smem_layout("K", "128B", "float16", (64, 64))
WINDOW = np.zeros(64 * 128, np.uint8)
EMULATED = cute.tma.encode(cute.tma.TensorMapTiled(6, 0, (256, 256), (512,), (64, 64), swizzle=3))
GMMA = "SM90_64x128x16_F32BF16BF16_SS"
MMA = "SM80_16x8x16_F32F16F16F32_TN"
ENGINE = cute.tma.Emulator()

CALLS: dict[str, tuple[Callable[[], Any], int]] = {
    "Layout(rank 2)": (lambda: Layout((Int(4), Int(8)), (Int(8), Int(1))), 12),
    "Layout(ints)": (lambda: Layout((4, 8), (8, 1)), 4),
    "Layout(compact)": (lambda: Layout((4, 8)), 5),
    "Layout(3x3)": (lambda: Layout(NESTED.shape, NESTED.stride), 9),
    "Layout(8 modes)": (lambda: Layout(EIGHT.shape, EIGHT.stride), 6),
    "Swizzle": (lambda: cute.Swizzle(3, 4, 3), 3),
    "Swizzle, call": (lambda: cute.Swizzle(3, 4, 3)(100), 4),
    "call with a tuple": (lambda: ROW(3, 2), 4),
    "call with an int": (lambda: ROW(37), 4),
    "call with zeros": (lambda: ROW(0, 0), 5),
    "call with Int": (lambda: ROW(Int(3), Int(2)), 8),
    "call, ints": (lambda: PLAIN(3, 2), 4),
    "call, 3x3": (lambda: NESTED((1, 1, 0), (1, 0, 1), (0, 1, 1)), 7),
    "call with an int, 3x3": (lambda: NESTED(37), 14),
    "call, swizzled": (lambda: SWIZZLED(3, 2), 10),
    "call, basis strides": (lambda: BASIS(3, 2), 61),
    "slice": (lambda: ROW(3, None), 19),
    "mode": (lambda: ROW[1], 3),
    "==": (lambda: Layout((4, 8)) == Layout((4, 8)), 7),
    "hash": (lambda: hash(NESTED), 3),
    "str": (lambda: str(NESTED), 11),
    "repr": (lambda: repr(NESTED), 4),
    "size": (lambda: cute.size(NESTED), 7),
    "cosize": (lambda: cute.cosize(NESTED), 12),
    "crd2idx": (lambda: cute.crd2idx((3, 2), (4, 8), (8, 1)), 4),
    "idx2crd": (lambda: cute.idx2crd(37, (64, 32)), 4),
    "coalesce": (lambda: cute.coalesce(NESTED), 14),
    "coalesce, 8 modes": (lambda: cute.coalesce(EIGHT), 6),
    "composition": (lambda: cute.composition(ROW, TILE), 15),
    "composition, ints": (lambda: cute.composition(PLAIN, Layout((2, 2), (1, 4))), 24),
    "composition, 3x3": (lambda: cute.composition(NESTED, TILE), 24),
    "composition, swizzle": (lambda: cute.composition(cute.Swizzle(3, 3, 3), ROW), 6),
    "complement": (lambda: cute.complement(ROW, Int(8192)), 16),
    "complement, 3x3": (lambda: cute.complement(NESTED, Int(1 << 20)), 23),
    "logical_divide": (lambda: cute.logical_divide(ROW, TILE), 33),
    "zipped_divide": (lambda: cute.zipped_divide(ROW, (Int(8), Int(4))), 67),
    "logical_product": (lambda: cute.logical_product(TILE, ROW), 27),
    "blocked_product": (lambda: cute.blocked_product(TILE, TILE), 40),
    "right_inverse": (lambda: cute.right_inverse(ROW), 11),
    "left_inverse": (lambda: cute.left_inverse(ROW), 35),
    "right_inverse, 8 modes": (lambda: cute.right_inverse(EIGHT), 11),
    "recast_layout": (lambda: cute.recast_layout(16, 8, ROW), 35),
    "parse": (lambda: cute.parse("(_4,(_2,_3)):(_6,(_3,_1))"), 393),
    "explain a layout": (lambda: str(cute.explain(ROW)), 426),
    "offsets": (lambda: cute.offsets(ROW), 41),
    "offsets, 3x3": (lambda: cute.offsets(NESTED), 100),
    "offsets, swizzled": (lambda: cute.offsets(SWIZZLED), 66),
    "offsets at coordinates": (lambda: cute.offsets(ROW, (INDEX, INDEX)), 84),
    "offsets, identity": (lambda: cute.offsets(IDENTITY), 115),
    "coordinates": (lambda: cute.coordinates(ROW, INDEX), 83),
    "make_identity_tensor": (lambda: cute.make_identity_tensor((64, 64)), 69),
    "print 64 x 64 coordinates": (lambda: cute.format_tensor(IDENTITY), 675),
    "the same as a stream does": (lambda: cute.format_tensor(IDENTITY, style="ostream"), 698),
    "draw_layout, 16 x 16": (lambda: cute.draw.draw_layout(Layout((16, 16))).svg, 19141),
    "TensorMapTiled": (lambda: cute.tma.TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128)), 6),
    "encode": (lambda: cute.tma.encode(REQUEST), 7),
    "decode": (lambda: cute.tma.decode(MAP), 9),
    "encode_many, 1 map": (lambda: cute.tma.encode_many({**MANY, "global_address": 4096}), 12),
    "encode_many, 1000 maps": (lambda: cute.tma.encode_many(MANY), 189),
    "make_tma_copy": (lambda: cute.tma.make_tma_copy("SM90_TMA_LOAD", HALVES, SMEM), 940),
    "emulated load": (lambda: ENGINE.load(EMULATED, BYTES, (64, 64), WINDOW), 8),
    "emulated reduction": (lambda: ENGINE.reduce("add", EMULATED, BYTES, (64, 64), WINDOW), 125),
    "mma_atom": (lambda: cute.mma_atom(GMMA), 8),
    "a tiled MMA and a partition": (
        lambda: cute.make_tiled_mma(cute.mma_atom(MMA), (2, 2, 1)).get_slice(3).partition_C(IDENTITY),
        614,
    ),
    "a name that cute.tma lacks": (lambda: hasattr(cute.tma, "x"), 823),
}
"""Operation -> what it is, and the most calls of Python functions."""


def calls_of(action: Callable[[], Any]) -> int:
    """Calls of Python functions of one run, after two that fill what is kept."""
    found = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal found
        found += event == "call"

    action()
    action()
    before = sys.getprofile()
    collects = gc.isenabled()
    gc.disable()  # what others registered with the collector would be counted too
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return found


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_python_functions(name: str) -> None:
    action, bound = CALLS[name]
    assert calls_of(action) <= bound


def test_callbacks_of_the_collector_are_not_counted() -> None:
    def watched(_phase: str, _found: dict[str, int]) -> None:
        pass

    gc.callbacks.append(watched)
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        assert calls_of(lambda: [[] for _ in range(1000)]) <= 2
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(watched)
    assert gc.isenabled()


def test_there_are_sixty_and_a_count_can_exceed_its_bound() -> None:
    assert len(CALLS) >= 60
    assert calls_of(lambda: [Layout((4, 8)) for _ in range(100)]) > CALLS["Layout(compact)"][1]


SQUARE = static(Layout((1024, 1024), (1024, 1)))
ALLOCATED: dict[str, tuple[Callable[[], Any], float]] = {
    "offsets": (lambda: cute.offsets(SQUARE), 1.1),
    "offsets, swizzled": (lambda: cute.offsets(cute.composition(cute.Swizzle(3, 3, 3), SQUARE)), 1.1),
    "offsets, identity": (lambda: cute.offsets(cute.make_identity_tensor((1024, 1024))), 3.1),
    "offsets at coordinates": (lambda: cute.offsets(SQUARE, (np.arange(1024)[:, None], np.arange(1024))), 2.1),
}
"""Operation on 2**20 elements -> the most bytes at a time, in arrays of 2**20 numbers of 64 bits."""


@pytest.mark.parametrize("name", ALLOCATED)
def test_bytes_allocated(name: str) -> None:
    action, bound = ALLOCATED[name]
    action()
    tracemalloc.start()
    try:
        action()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak / (8 << 20) <= bound


IMPORTED: dict[str, int] = {
    "--help": 48,
    "print (4,8)": 73,
    "desc --help": 74,
    "doctor --help": 78,
    "reshard --help": 73,
    "tma --help": 87,
    "copy --help": 101,
    "tmem --help": 136,
    "draw --help": 212,
    "explain --help": 226,
}
"""Command -> the most modules of this package that it imports."""
_RUN = """
import contextlib, io, sys
from cute_py.cli.main import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(sys.argv[1:])
print(sum(name.partition(".")[0] == "cute_py" for name in sys.modules), "numpy" in sys.modules)
"""


@pytest.mark.parametrize("command", IMPORTED)
def test_modules_imported(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *command.split()], capture_output=True, text=True, check=True, timeout=60
    )
    count, with_numpy = done.stdout.split()
    assert int(count) <= IMPORTED[command]
    assert command != "--help" or with_numpy == "False"


def test_variants_of_instructions_are_rendered_when_asked_for() -> None:
    text = "import cute_py.ptx.reasons as r; print(r._by_name.cache_info().currsize, len(r.VARIANTS))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "0 209\n"
