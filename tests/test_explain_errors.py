"""explain of errors: the rule, why there is such a rule, its source, what to do; for every class and every rule."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int, Layout, Swizzle, errors, make_tensor
from cute_py.explanation.reasons import (
    CLASS_REASONS,
    CONDITION_REASONS,
    MAP_REASONS,
    REASONS,
    STEP_REASONS,
    TRAP_REASONS,
)
from cute_py.tma.simulate.diagnosis import Run
from tests.each import each_of


def test_every_class_of_errors_has_a_reason_and_what_to_do() -> None:
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.CuteError)]
    assert {c.__name__ for c in classes} == set(CLASS_REASONS)
    for kind in classes:
        words = cute.explain(kind)
        assert words.startswith(kind.__name__ + "\n")
        assert "  why    : " in words
        assert "  to do  : " in words
        assert f"About {kind.__name__}: " in words


def test_every_rule_of_a_map_and_every_step_has_a_reason() -> None:
    assert list(MAP_REASONS) == [rule.name for rule in cute.tma.RULES]
    assert list(STEP_REASONS) == [str(step.number) for step in cute.tma.STEPS]
    for row in [row for table in (MAP_REASONS, STEP_REASONS, REASONS, CLASS_REASONS) for row in table.values()]:
        assert row.why.endswith(".")
        assert row.fix.endswith(".")
        assert row.why != row.fix


BROKEN: dict[str, tuple[Any, ...]] = {
    "address_alignment": (6, 8, (64,), (), (64,)),
    "stride_alignment": (6, 4096, (64, 8), (120,), (64, 8)),
    "box": (6, 4096, (64, 512), (128,), (64, 300)),
    "inner_bytes": (6, 4096, (64, 8), (128,), (4, 8)),
    "inner_span": (6, 4096, (128, 8), (256,), (128, 8), (1, 1), 0, 3),
    "box_bytes": (7, 4096, (1024, 1024), (4096,), (256, 256)),
    "rank": (6, 4096, (8,) * 6, (16,) * 5, (8,) * 6),
    "size": (6, 4096, (0,), (), (8,)),
    "element_stride": (6, 4096, (64, 8), (128,), (8, 8), (1, 9)),
    "nan_fill": (0, 4096, (64,), (), (64,), (1,), 0, 0, 0, 1),
    "data_type": (13, 4096, (64,), (), (64,)),
}


@each_of("rule", BROKEN)
def test_a_broken_rule_is_told_with_reason_source_and_remedy(rule: str) -> None:
    with pytest.raises(cute.tma.TmaLimitError) as caught:
        cute.tma.encode(cute.tma.TensorMapTiled(*BROKEN[rule]))
    words = " ".join(cute.explain(caught.value).split())
    row = MAP_REASONS[rule]
    source = next(r.source for r in cute.tma.RULES if r.name == rule)
    for part in (f"why : {row.why}", f"to do : {row.fix}", f"source : {source}", str(caught.value.headline)):
        assert part in words


def test_a_trap_tells_its_rule() -> None:
    tile = cute.tma.encode(cute.tma.TensorMapTiled(6, 4096, (64, 8), (128,), (8, 8)))
    with pytest.raises(cute.tma.TmaTrap) as caught:
        cute.tma.Emulator().load(tile, np.zeros(1024, np.uint8), (3, 0), np.zeros(128, np.uint8), gmem_base=4096)
    words = cute.explain(caught.value)
    assert "The rule: inner coordinate = 6 bytes; must be a multiple of 16" in words
    assert "  why    : TMA moves units of 16 bytes" in words


TILE = cute.tma.encode(cute.tma.TensorMapTiled(6, 4096, (64, 8), (128,), (8, 8)))
WINDOW = cute.tma.encode(cute.tma.TensorMapIm2col(0, 4096, (16, 4, 3, 1), (16, 64, 192), (-1, -1), (-1, -1), 16, 6))
EMULATOR = cute.tma.Emulator()


def issued(method: str, *first: Any, tile: bytes = TILE, at: tuple[int, ...] = (0, 0), **more: Any) -> Any:
    gmem, smem = np.zeros(more.pop("gmem", 1024), np.uint8), np.zeros(more.pop("smem", 1024), np.uint8)
    return getattr(EMULATOR, method)(*first, tile, gmem, at, smem, gmem_base=4096, **more)


TRAPS: dict[str, Callable[[], Any]] = {
    "inner coordinate": lambda: issued("load", at=(3, 0)),
    "base coordinate": lambda: issued("load", tile=WINDOW, at=(0, 5, 0, 0), mode="im2col", im2col_offsets=(0, 0)),
    "negative coordinate": lambda: issued("store", at=(-8, 0)),
    "im2col store": lambda: issued("store", tile=WINDOW, at=(0, 0, 0, 0), mode="im2col"),
    "reduction": lambda: issued("reduce", "xor"),
    "the box overruns shared memory": lambda: issued("load", smem=64),
    "the copy overruns shared memory": lambda: cute.tma.bulk_load(
        np.zeros(64, np.uint8), 4096, np.zeros(16, np.uint8), 0, 64, gmem_base=4096
    ),
    "the copy reads or writes bytes outside all memory ranges": lambda: cute.tma.bulk_load(
        np.zeros(16, np.uint8), 4096, np.zeros(64, np.uint8), 0, 64, gmem_base=4096
    ),
    "the box reads or writes bytes of the tensor outside all memory ranges": lambda: issued("load", gmem=64),
    "shared-memory address": lambda: issued("load", smem_offset=16),
}


def test_every_cause_of_a_trap_has_a_reason() -> None:
    assert list(TRAPS) == list(TRAP_REASONS)


@each_of("rule", TRAPS)
def test_a_trap_names_its_rule(rule: str) -> None:
    with pytest.raises(cute.tma.TmaTrap) as caught:
        TRAPS[rule]()
    assert caught.value.rule == rule
    assert f"why : {TRAP_REASONS[rule].why}" in " ".join(cute.explain(caught.value).split())


def test_every_race_has_a_reason() -> None:
    folder = Path(cute.__file__).parent / "tma"
    sources = "".join(path.read_text() for path in sorted(folder.glob("simulate/*.py")))
    races = re.findall(r"\b(?:_check_conflict|Race)\(\"([^\"{]+)", sources)
    assert len(races) >= 10
    assert [race for race in races if race not in REASONS] == []


def test_a_map_without_a_fence_is_a_race_with_a_reason() -> None:
    maps = cute.tma.TensormapProxy()
    maps.place(0x8000, TILE)
    run = Run(EMULATOR, cute.tma.GlobalMemory(), cute.tma.SharedMemory(2048), strict=True, maps=maps)
    maps.replace(0x8000, "global_address", 4096 + 64)
    with pytest.raises(cute.tma.RaceError) as caught:
        run.load(0x8000, (0, 0), 0, run.barrier(1024))
    assert caught.value.rule == "tensor map is"
    assert "Execute fence.proxy.tensormap::generic with .release" in " ".join(cute.explain(caught.value).split())


def test_races_and_hangs_tell_what_to_do() -> None:
    run = Run(cute.tma.Emulator(), cute.tma.GlobalMemory(), cute.tma.SharedMemory(4096), strict=True)
    with pytest.raises(cute.tma.WouldHangError) as hang:
        run.wait(run.barrier(0), 0)
    assert "Announce atom.transaction_bytes for each tile" in " ".join(cute.explain(hang.value).split())
    words = cute.explain(cute.tma.RaceError("read before its barrier completed"))
    assert "  to do  : Wait on the barrier with the parity of this phase before reading." in words


STATIC = Layout((Int(8), Int(4)), (Int(4), Int(1)))
REFUSED: dict[str, Callable[[], Any]] = {
    "Shape Divisibility Condition": lambda: cute.composition(STATIC, Layout(Int(12), Int(1))),
    "Stride Divisibility Condition": lambda: cute.composition(STATIC, Layout(Int(2), Int(12))),
    "Dynamic-stride complement": lambda: cute.complement(Layout((2, 2), (2, 1)), 8),
    "abs(SShift) must be more than BBits": lambda: Swizzle(3, 4, 2),
    "logical_divide: Too many modes": lambda: cute.logical_divide(Layout(4), (2, 2)),
    "Divisibility condition": lambda: cute.upcast(Layout((Int(4), Int(4)), (Int(1), Int(3))), 2),
    "Downcast requires adjacent elements": lambda: cute.downcast(Layout((4, 8), (8, 2)), 2),
}


@pytest.mark.parametrize("condition", REFUSED)
def test_a_condition_of_the_algebra_is_told(condition: str) -> None:
    with pytest.raises(errors.StaticAssertError) as caught:
        REFUSED[condition]()
    row = next(row for rule, row in CONDITION_REASONS.items() if condition in (rule, row.name))
    words = " ".join(cute.explain(caught.value).split())
    assert f"why : {row.why}" in words
    assert f"to do : {row.fix}" in words
    assert f"source : {row.source}" in words


def test_what_the_reasons_of_the_algebra_advise_works() -> None:
    for size in (6, 8, 16, 24):
        assert int(cute.size(cute.composition(STATIC, Layout(Int(size), Int(1))))) == size
    for stride in (1, 3, 7, 8, 16):
        assert cute.composition(STATIC, Layout(Int(2), Int(stride))) is not None
    layout = Layout((Int(4), Int(4)), (Int(1), Int(6)))
    assert cute.upcast(layout, int(cute.max_alignment(layout))) is not None
    with pytest.raises(errors.StaticAssertError):
        cute.upcast(layout, 2 * int(cute.max_alignment(layout)))


def test_a_refused_partition_tells_the_step() -> None:
    for step in cute.tma.STEPS:
        words = cute.explain(cute.tma.TmaVerifyError(step.number, step.text))
        assert f"The rule: step {step.number}, {step.name}" in words
        assert words.startswith(f"TmaVerifyError: {step.text}".rstrip())


def test_a_tile_without_a_box_tells_why() -> None:
    gmem = make_tensor(cute.make_gmem_ptr(4096, "float16"), Layout((64, 64), (64, Int(1))))
    with pytest.raises(cute.tma.GBasisError) as caught:
        cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, Layout((Int(8), Int(32)), (Int(32), Int(1))), (Int(8), Int(64)))
    words = " ".join(cute.explain(caught.value).split())
    assert "to do : Give the tiler and the shared layout equal static sizes" in words


def test_arguments_in_a_sentence_are_judged_with_their_type_and_units() -> None:
    text = (
        "cuTensorMapEncodeTiled returned CUDA_ERROR_INVALID_VALUE with rank 2, float16, globalDim (500, 1000), "
        "globalStrides (1000 bytes), boxDim (64,64), swizzle 128B"
    )
    answer = str(cute.explain(text))
    assert "tiled tensor map, FLOAT16, rank 2" in answer
    assert "globalStrides[0] = 1000 bytes; must be a multiple of 16" in answer
    assert "globalStrides (1000,) -> (1008,) bytes" in answer
    without = str(cute.explain(text.replace("float16, ", "").replace("(1000 bytes)", "(ptr 0x7ffe10)")))
    assert "not judged: the rules of sizes, strides and boxes" in without
    assert "format" not in without
    assert "were checked" not in without
