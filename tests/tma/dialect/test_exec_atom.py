"""Binding an atom to its run-time state, lowering it, and the family of operations around it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy
import pytest

import cute_py as cute
from cute_py import Layout, LayoutRight
from cute_py.errors import (
    CoordinateError,
    CuteError,
    InvalidTypeError,
    InvalidValueError,
    TmaBuildError,
    TmaVerifyError,
)
from cute_py.tma.dialect import exec_atom
from cute_py.tma.dialect.atoms import BulkTensorCopy, ExpectTx, PrefetchDescriptor
from cute_py.tma.dialect.descriptors import build_tma_descriptor
from cute_py.tma.dialect.exec_atom import (
    ATOM_FAMILY,
    lower_tma_load,
    lower_tma_store,
    make_exec_tma,
    non_exec_tiled_tma_load,
    non_exec_tiled_tma_reduce,
    non_exec_tiled_tma_store,
    prefetch_tma_desc,
    tma_descriptor_tiled,
    tma_load,
    tma_reduce,
    tma_store,
)
from cute_py.tma.dialect.modes import CacheMode, TmaReduceKind
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.mbarrier import Mbarrier
from tests.each import each_of
from tests.tma.dialect.partition_operands import SIX, SIX_STRIDES, SMEM, SWIZZLED, TILE, Operands, gmem, ints

TILE_IN_SMEM = cute.make_tensor(cute.make_smem_ptr(0, "float16"), SMEM)


class Barrier:
    """A barrier that counts what it is told to expect."""

    def __init__(self, memory_space: str | None = None) -> None:
        self.expected = 0
        if memory_space is not None:
            self.memory_space = memory_space

    def expect_tx(self, nbytes: int) -> None:
        self.expected += nbytes


LOAD = Operands().partition()[0].body
SHARED_BY_4 = Operands(smem=SWIZZLED).partition(load_mode="W_MULTICAST", num_multicast=4)[0].body
STORE = Operands().partition(store_mode=0)[0].body
REDUCE = Operands().partition(reduce_kind="MAX")[0].body
WIDE = (
    Operands(smem=Layout(((ints(8, 16)), ints(64, 2)), (ints(64, 512), ints(1, 8192))), tile=(128, 128))
    .partition()[0]
    .body
)


def headline(action: Any) -> str:
    with pytest.raises(TmaBuildError) as refusal:
        action()
    return refusal.value.headline


def test_binding() -> None:
    barrier = Barrier()
    bound = make_exec_tma(LOAD, barrier, "#cute_nvgpu.load_cache_mode<cg>")
    assert (bound.atom, bound.barrier, bound.cache_mode, bound.multicast) == (LOAD, barrier, CacheMode.CG, None)
    assert bound.cache_hint is None
    assert make_exec_tma(Operands().partition()[0], barrier).atom == LOAD
    assert barrier.expected == 0


NOT_VERIFIED = "an executable TMA atom needs a non-exec atom that the partition verifier accepted"
NOT_SHARED = "the barrier of an executable TMA atom must be in shared memory"


@each_of(
    ("atom", "barrier", "options", "text"),
    [
        (replace(LOAD, verified=False), Barrier(), {}, NOT_VERIFIED),
        ("an atom", Barrier(), {}, NOT_VERIFIED),
        *((atom, None, {}, "an executable TMA atom needs a barrier") for atom in (LOAD, STORE, REDUCE)),
        (LOAD, Barrier("gmem"), {}, NOT_SHARED),
        (LOAD, cute.make_gmem_ptr(0, "uint64"), {}, NOT_SHARED),
        (STORE, cute.make_gmem_ptr(0, "uint64"), {}, NOT_SHARED),
        (LOAD, object(), {}, NOT_SHARED),
        (LOAD, Barrier(), {"cache_mode": "wb"}, "load does not support cache mode wb"),
        (STORE, Barrier(), {"cache_mode": "ca"}, "store does not support cache mode ca"),
        (SHARED_BY_4, Barrier(), {}, "a load shared by 4 CTAs needs a multicast mask"),
        (LOAD, Barrier(), {"multicast": 1}, "multicast mask 0x0001; a load of mode NO_MULTICAST takes none"),
        (STORE, Barrier(), {"multicast": 3}, "multicast mask 0x0003; a store takes none"),
        (
            SHARED_BY_4,
            Barrier(),
            {"multicast": 7},
            "multicast mask 0x0007 of 3 CTAs; must name the 4 CTAs that share the load",
        ),
        (SHARED_BY_4, Barrier(), {"multicast": 0}, "multicast mask 0; must be 1 to 65535"),
        (SHARED_BY_4, Barrier(), {"multicast": 1 << 16}, "multicast mask 65536; must be 1 to 65535"),
    ],
)
def test_what_can_not_be_bound(atom: Any, barrier: Any, options: dict[str, Any], text: str) -> None:
    assert headline(lambda: make_exec_tma(atom, barrier, **options)) == text


@pytest.mark.parametrize("barrier", [Barrier("smem"), Barrier("shared"), Barrier(), cute.make_smem_ptr(0, "uint64")])
def test_barriers_in_shared_memory(barrier: Any) -> None:
    assert make_exec_tma(LOAD, barrier).barrier is barrier


def test_a_load_raises_its_barrier_by_its_bytes() -> None:
    barrier = Barrier()
    bound = make_exec_tma(LOAD, barrier, "cs")
    operations = lower_tma_load(bound, TILE_IN_SMEM, (64, 128))
    assert barrier.expected == 128 * 64 * 2
    assert operations == (ExpectTx(16384), BulkTensorCopy(bound, (64, 128), 0))
    [copy] = operations[1:]
    assert isinstance(copy, BulkTensorCopy)
    assert (copy.kind, copy.nbytes, copy.cache_hint, copy.barrier) == ("load", 16384, 0x12F0000000000000, barrier)
    lower_tma_load(bound, TILE_IN_SMEM, (0, 0))
    assert barrier.expected == 2 * 16384


def test_the_emulator_runs_what_a_load_is_lowered_to() -> None:
    """The barrier completes with the last box, and shared memory is that of CuTe's atom at the same tile."""
    array = numpy.arange(256 * 256, dtype=numpy.uint16).reshape(256, 256)
    smem = Layout(((ints(8, 16)), ints(64, 2)), (ints(64, 512), ints(1, 8192)))
    barrier, window = Mbarrier(1), numpy.zeros(1 << 15, numpy.uint8)
    atom = non_exec_tiled_tma_load(array, smem, (128, 128))
    operation = tma_load(make_exec_tma(atom, barrier), cute.make_smem_ptr(0, "uint16"), (128, 128))
    barrier.arrive()
    for copy in operation.copies:
        assert not barrier.try_wait(0)
        copy.run(Emulator(), array.view(numpy.uint8).reshape(-1), window, gmem_base=array.ctypes.data)
    assert barrier.try_wait(0)
    for same in (cute.tma.execute(atom.traits, array, (1, 1)), cute.tma.execute(operation, array)):
        assert (same.smem == window).all()
    assert cute.tma.copy(make_exec_tma(atom, barrier), array).equal


def test_a_coordinate_of_more_modes_than_the_tensor_is_refused() -> None:
    atom = non_exec_tiled_tma_load(build_tma_descriptor(gmem(), SMEM), SMEM, TILE)
    assert atom.tma_coord((64,)) == atom.tma_coord((64, 0))
    with pytest.raises(CoordinateError, match="Mismatched Ranks"):
        atom.tma_coord((64, 128, 64))


def test_prefetch_comes_first_if_requested() -> None:
    atom = non_exec_tiled_tma_load(build_tma_descriptor(gmem(), SMEM), SMEM, TILE)
    operations = lower_tma_load(make_exec_tma(atom, Barrier()), TILE_IN_SMEM, (0, 0), prefetch=True)
    assert [type(o) for o in operations] == [PrefetchDescriptor, ExpectTx, BulkTensorCopy]
    assert operations[0] == prefetch_tma_desc(atom.descriptor)


def test_a_tile_of_two_instructions() -> None:
    barrier = Barrier()
    bound = make_exec_tma(WIDE, barrier)
    operations = lower_tma_load(bound, TILE_IN_SMEM, (128, 256))
    first, second = BulkTensorCopy(bound, (128, 256), 0), BulkTensorCopy(bound, (192, 256), 8192)
    assert operations == (ExpectTx(32768), first, second)
    assert (first.nbytes, second.nbytes, second.smem_bytes) == (16384, 16384, 16384)
    assert barrier.expected == 32768


def test_each_cta_of_a_multicast_issues_its_part_and_expects_all() -> None:
    places = []
    for cta in range(4):
        barrier = Barrier()
        bound = make_exec_tma(SHARED_BY_4, barrier, multicast=0b1111)
        expect, copy = lower_tma_load(bound, TILE_IN_SMEM, (0, 0), cta=cta)
        assert barrier.expected == expect.nbytes == 16384  # type: ignore[union-attr]
        assert (copy.nbytes, copy.multicast) == (4096, 0b1111)  # type: ignore[union-attr]
        places.append((copy.coord, copy.smem_offset))  # type: ignore[union-attr]
    assert places == [((0, 32 * cta), 2048 * cta) for cta in range(4)]
    with pytest.raises(InvalidValueError, match="cta = 4; must be 0 to 3"):
        lower_tma_load(make_exec_tma(SHARED_BY_4, Barrier(), multicast=15), TILE_IN_SMEM, (0, 0), cta=4)


def test_stores_and_reductions_raise_no_barrier() -> None:
    barrier = Barrier()
    bound = make_exec_tma(STORE, barrier)
    [store] = lower_tma_store(bound, TILE_IN_SMEM, (0, 0))
    assert store == BulkTensorCopy(bound, (0, 0), 0)
    assert (store.kind, store.barrier) == ("store", None)  # type: ignore[union-attr]
    [operation] = lower_tma_store(make_exec_tma(REDUCE, Barrier()), TILE_IN_SMEM, (0, 0))
    assert isinstance(operation, BulkTensorCopy)
    assert operation.reduce_kind is TmaReduceKind.MAX
    assert barrier.expected == 0


BOUND = make_exec_tma(LOAD, Barrier())


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (lambda: lower_tma_load(make_exec_tma(STORE, Barrier()), TILE_IN_SMEM, (0, 0)), "expect a tma_load atom type"),
        (lambda: lower_tma_store(BOUND, TILE_IN_SMEM, (0, 0)), "expect a tma_store or tma_reduce atom type"),
        (lambda: lower_tma_load(BOUND, gmem(), (0, 0)), "the tile of a TMA copy must be in shared memory"),
        (lambda: lower_tma_load(BOUND, object(), (0, 0)), "the tile of a TMA copy must be in shared memory"),
        (
            lambda: lower_tma_load(BOUND, TILE_IN_SMEM, (0,)),
            "the coordinate has 1 numbers; must have 2, the descriptor's rank",
        ),
        (
            lambda: lower_tma_store(make_exec_tma(STORE, Barrier()), TILE_IN_SMEM, (0, 0, 0)),
            "the coordinate has 3 numbers; must have 2, the descriptor's rank",
        ),
    ],
)
def test_what_can_not_be_lowered(action: Any, text: str) -> None:
    assert headline(action) == text


def test_a_refused_load_leaves_its_barrier_alone() -> None:
    barrier = Barrier()
    bound = make_exec_tma(LOAD, barrier)
    for action in (
        lambda: lower_tma_load(bound, TILE_IN_SMEM, (0,)),
        lambda: tma_load(bound, TILE_IN_SMEM, (0,)),
        lambda: tma_load(bound, gmem(), (0, 0)),
        lambda: tma_load(bound, TILE_IN_SMEM, (0, 0), allow_tma=False),
        lambda: lower_tma_load(bound, TILE_IN_SMEM, (0, 0), cta=1),
    ):
        with pytest.raises(CuteError):
            action()
    assert barrier.expected == 0


def test_small_boxes_are_not_shared() -> None:
    """The walkthrough's rule: at least 128 bytes per atom."""
    for rows, passes in ((16, True), (8, False)):
        smem = Layout(ints(rows, 8), LayoutRight)
        atom = Operands(smem=smem, tile=(rows, 8)).partition(load_mode="W_MULTICAST", num_multicast=2)[0].body
        bound = make_exec_tma(atom, Barrier(), multicast=3)
        assert atom.bytes_per_instruction == rows * 8
        if passes:
            assert tma_load(bound, TILE_IN_SMEM, (0, 0))
        else:
            text = "mcast is not supported for TMA load with less than 128bytes per atom"
            assert headline(lambda bound=bound: tma_load(bound, TILE_IN_SMEM, (0, 0))) == text


PADDED_ROWS = Operands(smem=Layout(ints(8, 8), ints(16, 1)), tile=(8, 8))


def test_an_instruction_between_two_multiples_of_128_bytes_traps_and_is_refused() -> None:
    """The steps take rows 32 bytes apart, which are an instruction each; no instruction may write there."""
    text = "an instruction writes shared memory at byte 32; must be a multiple of 128"
    [load], [store] = PADDED_ROWS.partition(), PADDED_ROWS.partition(store_mode=0)
    assert load.body.instructions == 8
    assert headline(lambda: tma_load(make_exec_tma(load.body, Barrier()), TILE_IN_SMEM, (0, 0))) == text
    assert headline(lambda: tma_store(make_exec_tma(store.body, Barrier()), TILE_IN_SMEM, (0, 0))) == text
    with pytest.raises(InvalidValueError, match=text):
        cute.tma.lower(load.body)
    swizzled = make_exec_tma(Operands(smem=SWIZZLED).partition()[0].body, Barrier())
    for address, refused in ((1024, False), (128, True), (16, True)):
        place = cute.make_smem_ptr(address, "float16")
        if refused:
            text = (
                f"shared-memory address = {address} bytes; must be a multiple of 1024, where the 128B swizzle repeats"
            )
            assert headline(lambda place=place: tma_load(swizzled, place, (0, 0))) == text
        else:
            assert tma_load(swizzled, place, (0, 0)).copies[0].smem == address


def test_the_family_has_ten_members() -> None:
    assert len(ATOM_FAMILY) == 10
    for row in ATOM_FAMILY:
        assert callable(getattr(exec_atom, row.function))
        assert row.name.split(".")[-1] == row.function


def test_the_worked_example() -> None:
    barrier = Barrier()
    desc = tma_descriptor_tiled(gmem(), SMEM, paddings=(), mode="#cute_nvgpu.tma_load_mode<tiled>", elementBitWidth=16)
    atom = non_exec_tiled_tma_load(desc, SMEM, TILE, num_multicast=1)
    bound = make_exec_tma(atom, barrier, cache_mode="#cute_nvgpu.load_cache_mode<cg>")
    operation = tma_load(bound, TILE_IN_SMEM, (64, 128), allow_tma=True, inBounds=True, prefetch=True)
    assert str(operation) == "cute_nvgpu.atom.tma_load %exec, %tile, %coord {allow_tma = true, inBounds = true}"
    assert operation.attributes == {"allow_tma": True, "inBounds": True}
    assert [str(o) for o in operation.operations] == [
        "prefetch_tma_desc",
        "expect_tx 16384 bytes",
        "cp.async.bulk.tensor load (64, 128), element 0, 16384 bytes",
    ]
    assert barrier.expected == 16384


def test_rank_6_lands_on_step_1() -> None:
    tile = (8, 2, 2, 2, 2, 2)
    with pytest.raises(TmaVerifyError) as refusal:
        non_exec_tiled_tma_load(gmem(SIX, SIX_STRIDES), Layout(ints(*tile)), tile)
    assert refusal.value.step == 1


def test_stores_and_reductions_of_the_family() -> None:
    store = make_exec_tma(non_exec_tiled_tma_store(gmem(), SMEM, TILE), Barrier())
    assert [str(o) for o in tma_store(store, TILE_IN_SMEM, (0, 0)).operations] == [
        "cp.async.bulk.tensor store (0, 0), element 0, 16384 bytes"
    ]
    words = gmem(dtype="uint32")
    for kind in TmaReduceKind:
        bound = make_exec_tma(non_exec_tiled_tma_reduce(words, SMEM, TILE, kind=kind), Barrier())
        [operation] = tma_reduce(bound, TILE_IN_SMEM, (0, 0)).operations
        assert isinstance(operation, BulkTensorCopy)
        assert operation.reduce_kind is kind
        assert f"reduce.{kind.ptx} (0, 0)" in str(operation)
    assert headline(lambda: tma_store(bound, TILE_IN_SMEM, (0, 0))) == "expect a tma_store atom type"
    assert headline(lambda: tma_load(store, TILE_IN_SMEM, (0, 0))) == "expect a tma_load atom type"


REDUCTIONS = {
    "uint32": "ADD MIN MAX INC DEC AND OR XOR",
    "int32": "ADD MIN MAX AND OR XOR",
    "uint64": "ADD MIN MAX AND OR XOR",
    "int64": "MIN MAX",
    "float16": "ADD MIN MAX",
    "bfloat16": "ADD MIN MAX",
    "float32": "ADD",
    "float64": "ADD",
    "tfloat32": "ADD",
    "uint8": "",
    "int16": "",
}


@each_of("dtype", REDUCTIONS)
def test_reductions_are_those_that_execute(dtype: str) -> None:
    executed = []
    for kind in TmaReduceKind:
        bound = make_exec_tma(non_exec_tiled_tma_reduce(gmem(dtype=dtype), SMEM, TILE, kind=kind), Barrier())
        try:
            tma_reduce(bound, TILE_IN_SMEM, (0, 0))
        except TmaBuildError as refusal:
            assert refusal.headline.startswith(f"reduction {kind.name} of {dtype}; the hardware supports it for uint32")
        else:
            executed.append(kind.name)
    assert executed == REDUCTIONS[dtype].split()


def test_attributes_are_checked() -> None:
    atom = non_exec_tiled_tma_load(build_tma_descriptor(gmem(), SMEM), SMEM, TILE)
    bound = make_exec_tma(atom, Barrier())
    text = "allow_tma = false; this operation is a TMA copy"
    assert headline(lambda: tma_load(bound, TILE_IN_SMEM, (0, 0), allow_tma=False)) == text
    assert tma_load(bound, TILE_IN_SMEM, (448, 896), inBounds=True)
    assert tma_load(bound, TILE_IN_SMEM, (449, 0), inBounds=False)
    text = "inBounds = true; axis 0 reaches elements 449 to 512 of 512"
    assert headline(lambda: tma_load(bound, TILE_IN_SMEM, (449, 0), inBounds=True)) == text
    text = "inBounds = true; axis 1 reaches elements -1 to 126 of 1024"
    assert headline(lambda: tma_load(bound, TILE_IN_SMEM, (0, -1), inBounds=True)) == text
    with pytest.raises(InvalidTypeError, match="takes the result of make_exec_tma"):
        tma_load(LOAD, TILE_IN_SMEM, (0, 0))
    with pytest.raises(InvalidTypeError, match="takes a TMA descriptor"):
        prefetch_tma_desc(LOAD)


def test_a_v_map_or_a_tile() -> None:
    v_map = cute.tma.make_cta_v_map((1024, 512), ints(*TILE))
    assert non_exec_tiled_tma_load(gmem(), SMEM, v_map) == non_exec_tiled_tma_load(gmem(), SMEM, TILE)


def test_run_time_coordinates_stay_symbols() -> None:
    sympy = pytest.importorskip("sympy")
    m = sympy.Symbol("m", integer=True)
    operations = lower_tma_load(make_exec_tma(WIDE, Barrier()), TILE_IN_SMEM, (m, 0))
    assert [o.coord for o in operations if isinstance(o, BulkTensorCopy)] == [(m, 0), (m + 64, 0)]
