"""A GEMM kernel without a GPU: what its plan reads off its objects, what it refuses, which bytes it addresses."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from benchmarks.gemm import CHECKS, CLUSTERED, Case, kernel_of
from cute_py import Int, Layout, offsets
from cute_py.errors import InvalidTypeError, InvalidValueError
from cute_py.gpu.launch import WaitTimeout
from cute_py.tma import check_gemm, compare_tile
from cute_py.tma.gemm.kernel import cause_of
from cute_py.tma.gemm.source import gemm_constants
from tests.shares import one_in
from tests.tma.gemm.problem import arrays, product

SQUARE = Case(512, 768, 512)


def objects(case: Case = SQUARE) -> dict[str, Any]:
    plan = kernel_of(case).plan
    return {"tiled_mma": plan.tiled_mma, **{f"tma_{name.lower()}": atom for name, atom in plan.atoms.items()}}


@pytest.mark.parametrize("case", [*one_in(3, CHECKS), *one_in(3, CLUSTERED)], ids=str)
def test_the_text_is_short_and_every_stage_holds_the_tiles_of_its_arrays(case: Case) -> None:
    kernel = kernel_of(case)
    assert len(kernel.source.splitlines()) < 250
    assert "@" not in kernel.source.partition("WAIT_CYCLES")[2]
    for atom in kernel.plan.atoms.values():
        assert f"{atom.gtensor}" in kernel.source and f"{atom.smem_layout}" in kernel.source
    a, b = arrays(case)
    tiles = kernel.plan.tiles
    last = -(-case.m // kernel.plan.tile[0]) - 1, -(-case.n // kernel.plan.tile[1]) - 1
    for at in ((0, 0), last):
        stage = kernel.stage(a, b, at, tiles[2] - 1)
        for i, (name, array) in enumerate((("A", a), ("B", b))):
            assert compare_tile(kernel.plan.atoms[name], array, (at[i], tiles[2] - 1), stage[name]).equal


def of_many_boxes(
    majors: tuple[str, str], span: str, depth: int, columns: int = 64, ctas: int = 1
) -> cute.tma.GemmKernel:
    """Stages in the order that `make_smem_layout` takes by itself: MN-major ones need a box for every 8 of K."""

    def operand(rows: int, major: str, tile: int, shared: bool) -> cute.tma.TmaAtom:
        strides = (512, Int(1)) if major == "K" else (Int(1), rows)
        x = cute.make_tensor(cute.make_gmem_ptr(4096, "bfloat16"), Layout((rows, 512), strides))
        smem = cute.tma.make_smem_layout(major, span, "bfloat16", (tile, depth))
        op = "SM90_TMA_LOAD_MULTICAST" if shared else "SM90_TMA_LOAD"
        return cute.tma.make_tma_copy(op, x, smem, num_multicast=2 if shared else 1)

    x = cute.make_tensor(cute.make_gmem_ptr(4096, "bfloat16"), Layout((1024, 2048), (2048, Int(1))))
    c = cute.tma.make_smem_layout("K", "128B", "bfloat16", (64, columns))
    mma = cute.make_tiled_mma(f"SM90_64x256x16_F32BF16BF16_SS<{majors[0]},{majors[1]}>", (2, 1, 1))
    a, b = operand(1024, majors[0], 128, False), operand(2048, majors[1], 256, ctas > 1)
    return cute.tma.gemm_kernel(mma, a, b, cute.tma.make_tma_copy("SM90_TMA_STORE", x, c))


@pytest.mark.parametrize(
    "kernel",
    [
        lambda: of_many_boxes(("MN", "MN"), "128B", 64),
        lambda: of_many_boxes(("MN", "MN"), "64B", 64, columns=128),
        lambda: of_many_boxes(("MN", "MN"), "128B", 64, columns=256, ctas=2),
        lambda: of_many_boxes(("K", "MN"), "128B", 64, ctas=2),
        lambda: kernel_of(replace(SQUARE, majors="MM", tile=(256, 128), c_columns=128)),
    ],
)
def test_the_text_names_every_box_and_is_short_where_there_are_many(kernel: Any) -> None:
    made = kernel()
    lines = made.source.splitlines()
    assert len(lines) < 250
    for name in "ABC":
        walk = made.plan.walks[name]
        after = made.plan.walks["A"].bytes if name == "B" else 0
        found = []
        for number, line in enumerate(lines):
            call = re.search(rf"(?:load|store)\w*\(at([^,]*), &map_{name.lower()},(?: barrier,)? (.*)\);", line)
            if call is None:
                continue
            loop = re.search(r"for \(int i = 0; i < (\d+); \+\+i\)$", lines[number - 1])
            for i in range(int(loop[1]) if loop else 1):
                here = dict.fromkeys(("m", "n", "k", "rank", "rows", "columns"), 0) | {"i": i}
                numbers = eval(f"(0{call[1]}, {call[2]})".replace("/", "//"), {}, here)
                found.append(numbers[: 1 + len(walk.boxes[0].coords)])
        assert found == [(after + box.place, *box.coords) for box in walk.boxes]


def test_a_tile_of_c_may_be_of_any_integers_one_by_one() -> None:
    kernel, (a, b) = kernel_of(SQUARE), arrays(SQUARE)
    expected = kernel.stage(a, b, (1, 1), 2)
    found = kernel.stage(a, b, iter(np.ones(2, np.int8)), np.int8(2))  # type: ignore[arg-type]
    assert all(np.array_equal(found[name], expected[name]) for name in "AB")


@pytest.mark.parametrize("case", [SQUARE, replace(SQUARE, majors="MM"), replace(SQUARE, tile=(256, 128))], ids=str)
def test_a_tile_of_c_from_stages_by_the_layouts_alone(case: Case) -> None:
    """The stages, read by their shared layouts and multiplied through the registers of the tiled MMA, are C's tile."""
    kernel = kernel_of(case)
    a, b = arrays(case)
    plan, at = kernel.plan, (1, 1)
    total = np.zeros(plan.tile[:2], np.float32)
    for k in range(plan.tiles[2]):
        stage = kernel.stage(a, b, at, k)
        parts = []
        for name in "AB":
            memory = stage[name].view(a.dtype)
            parts.append(memory[offsets(plan.atoms[name].smem_layout).reshape(-1, plan.tile[2], order="F")])
        total += cute.gemm(plan.tiled_mma, *parts).astype(np.float32)
    rows, columns = plan.tile[0], plan.tile[1]
    assert np.array_equal(total, product(case, a, b).astype(np.float32)[rows : 2 * rows, columns : 2 * columns])


@pytest.mark.parametrize("columns", (32, 64, 128))
def test_stmatrix_puts_each_sum_where_the_layout_of_c_has_it(columns: int) -> None:
    """The addresses of the kernel's text, and what stmatrix does with them, against the thread-value layout of C."""
    plan = kernel_of(replace(SQUARE, c_columns=columns)).plan
    at, n = gemm_constants(plan), plan.tile[1]
    held = np.asarray(offsets(plan.tiled_mma.atom.layoutC_TV)).reshape(128, -1, order="F")  # (thread, value) -> m + 64n
    memory = np.full(plan.walks["C"].bytes // 2, -1, np.int64)
    layout = np.asarray(offsets(plan.atoms["C"].smem_layout)).reshape(64, columns, order="F")
    for chunk in range(n // columns):
        for j in range(columns // 16):
            for warp in range(4):
                lanes = np.arange(32)
                thread = warp * 32 + lanes
                place = (warp * 16 + lanes % 16) * at["SPAN"] + lanes // 16 * 16
                flip = (place >> 7 & at["FLIP"]) << 4
                address = j // at["SPAN_STEPS"] * 64 * at["SPAN"] + ((place + j % at["SPAN_STEPS"] * 32) ^ flip)
                first = chunk * columns // 2 + 8 * j
                for matrix in range(4):
                    for row in range(8):
                        start = address[matrix * 8 + row] // 2  # of 8 elements, two in each of 4 lanes
                        for column in range(8):
                            holder = thread[row * 4 + column // 2]
                            memory[start + column] = held[holder, first + 2 * matrix + column % 2]
        m, columns_of = np.divmod(memory[layout], 64)[::-1]
        assert np.array_equal(m, np.broadcast_to(np.arange(64)[:, None], m.shape))
        assert np.array_equal(columns_of, np.broadcast_to(chunk * columns + np.arange(columns), m.shape))


def refused(**changed: Any) -> list[str]:
    return [found.rule for found in check_gemm(**{**objects(), **changed})]


def global_tensor(rows: int, columns: int, dtype: str = "bfloat16") -> Any:
    return cute.make_tensor(cute.make_gmem_ptr(1 << 40, dtype), Layout((rows, columns), (columns, Int(1))))


def load(rows: int, depth: int, tile: int, dtype: str = "bfloat16", swizzle: str = "128B", **options: Any) -> Any:
    smem = cute.tma.make_smem_layout("K", swizzle, dtype, (tile, 64))
    return cute.tma.make_tma_copy("SM90_TMA_LOAD", global_tensor(rows, depth, dtype), smem, **options)


def test_the_right_objects_break_no_rule() -> None:
    assert refused() == []


def test_what_is_broken_is_a_diagnostic_before_anything_is_compiled() -> None:
    a = objects()["tma_a"]
    plain = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN", (2, 1, 1))
    assert "mma" in refused(tiled_mma=plain)
    assert refused(tiled_mma=cute.make_tiled_mma("SM90_64x256x16_F16F16F16_SS", (2, 1, 1)))[0] == "mma"
    assert "mma" in refused(tiled_mma=cute.make_tiled_mma("SM90_64x256x16_F32BF16BF16_RS", (2, 1, 1)))
    assert "warpgroups" in refused(tiled_mma=cute.make_tiled_mma("SM90_64x256x16_F32BF16BF16_SS", (1, 2, 1)))
    assert refused(tma_a=load(512, 512, 128, "float16")) == ["operand_type"]
    assert "direction" in refused(tma_a=objects()["tma_c"])
    assert refused(tma_a=load(512, 576, 128)) == ["extents"]
    assert refused(tma_a=load(576, 512, 128)) == ["extents"]
    assert refused(tma_a=load(512, 512, 64)) == ["tile"]
    assert refused(tma_b=load(768, 512, 128)) == ["tile"]
    for columns, rules in ((192, []), (200, ["tile"])):  # as many sums of each thread; 192 have registers
        mma = cute.make_tiled_mma(f"SM90_64x{columns}x16_F32BF16BF16_SS", (2, 1, 1))
        assert refused(tiled_mma=mma, tma_a=load(512, 512, 256), tma_b=load(768, 512, columns)) == rules
    bare = cute.tma.make_tma_copy("SM90_TMA_LOAD", a.gtensor, Layout((Int(128), Int(64)), (Int(64), Int(1))))
    assert refused(tma_a=bare) == ["no_descriptor"]
    assert refused(stages=5) == ["stages"]
    assert refused(stages=2) == []
    assert refused(tma_c=objects(replace(SQUARE, c_columns=128))["tma_c"], staging=8) == ["stages"]
    wide = cute.tma.make_smem_layout("K", "128B", "bfloat16", (128, 64))
    assert refused(tma_c=cute.tma.make_tma_copy("SM90_TMA_STORE", global_tensor(512, 768), wide)) == ["staging_tile"]
    both = {
        f"tma_{x.lower()}": kernel_of(replace(SQUARE, cluster=y)).plan.atoms[x] for x, y in (("A", "N"), ("B", "M"))
    }
    assert refused(**both) == ["multicast"]


def test_refusals_are_errors_of_gemm_kernel() -> None:
    given = objects()
    with pytest.raises(InvalidValueError, match="stages = 5; must be at most 4"):
        cute.tma.gemm_kernel(**given, stages=5)
    with pytest.raises(InvalidTypeError):
        cute.tma.gemm_kernel(**{**given, "tma_a": 3})
    with pytest.raises(InvalidValueError, match="must be an expression"):
        cute.tma.gemm_kernel(**given, epilogue="x; trap()")
    for wrong in ({"stages": 1}, {"stages": 17}, {"staging": 0}, {"group": 0}, {"wait_cycles": 0}):
        with pytest.raises(InvalidValueError):
            cute.tma.gemm_kernel(**given, **wrong)


def test_other_arrays_than_the_atoms_are_refused() -> None:
    kernel = kernel_of(SQUARE)
    a, b = arrays(SQUARE)
    with pytest.raises(InvalidValueError, match="is not the tensor of this atom"):
        kernel.stage(b, b)
    with pytest.raises(InvalidTypeError, match="A has elements of float16, its atom of bfloat16"):
        kernel.stage(a.astype(np.float16), b)
    with pytest.raises(InvalidValueError, match="tile M"):
        kernel.stage(a, b, (4, 0))


def test_arrays_of_float32_are_operands_of_tfloat32() -> None:
    a = np.arange(128 * 64, dtype=np.float32).reshape(128, 64) % 100
    loads = []
    for rows in (128, 64):
        tensor = cute.make_tensor(cute.make_gmem_ptr(1 << 40, "tfloat32"), Layout((rows, 64), (64, Int(1))))
        smem = cute.tma.make_smem_layout("K", "128B", "tfloat32", (rows, 32))
        loads.append(cute.tma.make_tma_copy("SM90_TMA_LOAD", tensor, smem))
    smem = cute.tma.make_smem_layout("K", "128B", "bfloat16", (64, 64))
    store = cute.tma.make_tma_copy("SM90_TMA_STORE", global_tensor(128, 64), smem)
    mma = cute.make_tiled_mma("SM90_64x64x8_F32TF32TF32_SS_TN", (2, 1, 1))
    kernel = cute.tma.gemm_kernel(mma, *loads, store)
    stage = kernel.stage(a, a[:64], k=1)
    for atom, array, name in zip(loads, (a, a[:64]), "AB", strict=True):
        found = stage[name].view(np.float32)[offsets(atom.smem_layout)].reshape(-1, 32, order="F")
        assert np.array_equal(found, array[:, 32:])
    with pytest.raises(InvalidTypeError, match="A has elements of int32, its atom of tfloat32"):
        kernel.stage(a.astype(np.int32), a[:64])


def test_the_explanation_has_the_numbers_of_the_plan() -> None:
    text = kernel_of(replace(SQUARE, cluster="M", majors="MM")).explain()
    for part in (
        "128 x 256 of C per CTA",
        "2 CTAs along M share B",
        "4 x 49152: A 16384, B 32768",
        "leading-dimension",
    ):
        assert part in text


def timeout(stage: int, phase: int = 0, expected: int = 49152) -> WaitTimeout:
    return WaitTimeout(230_400, phase, expected, (0, 0), 128, stage, 1000)


def test_the_cause_of_a_wait_that_does_not_end() -> None:
    """The producer's first waits are on new barriers; later ones follow from the waits of the warpgroups."""
    plan, shared = kernel_of(SQUARE).plan, kernel_of(replace(SQUARE, cluster="M")).plan
    later = timeout(plan.stages, 1, 0)
    assert cause_of(plan, timeout(0), timeout(0, 0, 0)).startswith("flipped parity")
    assert cause_of(plan, None, later).startswith("missing arrivals: an empty barrier needs 2 arrivals")
    assert cause_of(plan, timeout(0, 0, 32768), later) == (
        "wrong expect_tx: a full barrier expects 32768 bytes, but the loads deliver 49152"
    )
    assert cause_of(shared, timeout(0), later).endswith("each CTA's part must go to all 2, mask 0x3")
    assert cause_of(plan, timeout(0), later).startswith("the loads complete on another barrier")


@pytest.mark.parametrize(
    ("case", "split"),
    [
        (SQUARE, ()),
        (replace(SQUARE, k=504), ("A", "B")),
        (replace(SQUARE, k=496), ()),
        (replace(SQUARE, m=504, majors="MK"), ("A",)),
        (replace(SQUARE, k=496, dtype="float8_e4m3fn"), ("A", "B")),
    ],
    ids=str,
)
def test_rows_that_begin_within_a_sector_are_told(case: Case, split: tuple[str, ...]) -> None:
    """What a row of a box touches, counted: 128 bytes are 4 sectors, or 5 where a row begins in the middle of one."""
    kernel = kernel_of(case)
    for name, rows, major in zip("AB", (case.m, case.n), case.majors, strict=True):
        inner = case.k if major == "K" else rows
        pitch = -(-inner * kernel.plan.atoms[name].dtype.bits // 128) * 16
        first, last = (np.arange(16) * pitch + byte for byte in (0, 127))
        assert ((last // 32 - first // 32 + 1).max() == 5) == (name in split)
    assert kernel.plan.split_rows == split
    shared = kernel_of(replace(case, cluster="M"))
    assert ["split sectors" in one.explain() for one in (kernel, shared)] == [bool(split)] * 2
    assert ["num_multicast=2" in one.explain() for one in (kernel, shared)] == [bool(split), False]


@pytest.mark.parametrize("missing", ["atoms", "operands", "walks"])
def test_a_plan_without_a_tile_is_refused(missing: str) -> None:
    plan = kernel_of(SQUARE).plan
    left = {name: value for name, value in getattr(plan, missing).items() if name != "A"}
    with pytest.raises(InvalidValueError, match=rf"GemmPlan\.{missing} has \['B'.*; must have A, B"):
        replace(plan, **{missing: left})
