"""The eleven steps: which refuses what, in which order, and what each leaves uncomputed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy
import pytest

import cute_py as cute
from cute_py import ComposedLayout, Int, Layout, LayoutRight, Swizzle, tmem
from cute_py.errors import InvalidTypeError, InvalidValueError, TmaVerifyError
from cute_py.tma.dialect import verifier_operands
from cute_py.tma.dialect.modes import TmaLoadMode, TmaReduceKind, TmaStoreMode
from cute_py.tma.dialect.record import TmaFlags
from cute_py.tma.dialect.verifier import STEPS, partition, verify_partition
from cute_py.tma.dialect.verifier_operands import DSL, SEED
from tests.tma.dialect.partition_operands import FAILING, PATCHES, SMEM, SWIZZLED, TILE, Operands, gmem, ints

CASES = [(step, i) for step, cases in FAILING.items() for i in range(len(cases))]


def test_the_table_is_in_order() -> None:
    assert [step.number for step in STEPS] == list(range(1, 12))
    assert SEED.order == tuple(range(1, 12))
    assert DSL.order == (11, *range(1, 11))
    assert len({step.text for step in STEPS}) == 11


@pytest.mark.parametrize(("step", "index"), CASES)
def test_each_step_refuses(step: int, index: int) -> None:
    operands = FAILING[step][index]
    with pytest.raises(TmaVerifyError) as refusal:
        operands.partition()
    assert refusal.value.step == step
    walk = operands.walk()
    assert (walk.failed, walk.text, walk.results) == (step, refusal.value.headline, ())
    assert list(refusal.value.facts.values()) == [d.message for d in walk.broken]


@pytest.mark.parametrize(("step", "index"), [case for case in CASES if case[0] <= 7])
def test_nothing_dear_is_computed_before_step_8(step: int, index: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any, **options: Any) -> Any:
        raise AssertionError("the G-basis was computed")

    monkeypatch.setattr(verifier_operands, "construct_tma_gbasis", never)
    with pytest.raises(TmaVerifyError) as refusal:
        FAILING[step][index].partition()
    assert refusal.value.step == step
    with pytest.raises(AssertionError, match="was computed"):
        Operands().partition()


TWO_WRONGS = [
    (1, 4, Operands(gmem=cute.make_identity_tensor((1024, 512)), smem=FAILING[4][1].smem)),
    (1, 2, Operands(gmem=None, smem=None)),
    (2, 3, Operands(gmem=FAILING[3][0].gmem, smem=Swizzle(3, 4, 3))),
    (3, 5, Operands(gmem=FAILING[3][0].gmem, smem=FAILING[5][0].smem)),
    (4, 5, Operands(gmem=FAILING[4][0].gmem, smem=FAILING[5][0].smem)),
    (4, 6, Operands(gmem=FAILING[4][0].gmem, smem=FAILING[6][0].smem)),
    (5, 6, Operands(smem=ComposedLayout(Layout(ints(8192), ints(1)), Int(0), FAILING[6][0].smem))),
    (6, 7, Operands(smem=Layout((64, Int(128)), (Int(128), Int(1))))),
    (7, 8, Operands(smem=Layout(ints(64, 128), ints(256, 2)))),
    (8, 11, replace(FAILING[8][0], options={"num_multicast": 2})),
    (9, 11, replace(FAILING[9][0], options={"num_multicast": 2})),
]


@pytest.mark.parametrize(("first", "second", "operands"), TWO_WRONGS)
def test_the_earlier_step_speaks(first: int, second: int, operands: Operands) -> None:
    assert first < second
    assert operands.walk().failed == first


def test_the_multicast_check_is_first_in_dsl() -> None:
    for step in (1, 3, 5, 6, 7):
        operands = replace(FAILING[step][0], options={"num_multicast": 2})
        assert operands.walk(dialect="dsl").failed == 11
        assert FAILING[step][0].walk(dialect="dsl").failed == step


def test_dsl_has_no_gate_on_descriptor_limits() -> None:
    assert FAILING[1][1].walk(dialect="dsl").failed is None  # rank 6 collapses
    assert FAILING[4][0].walk(dialect="dsl").failed is None  # a stride of 500 bytes
    assert FAILING[5][1].walk(dialect="dsl").failed is None  # Sw<3,5,3>
    for operands in FAILING[9]:
        assert operands.walk(dialect="dsl").failed is None
    [record] = FAILING[9][0].partition(dialect="dsl")
    assert record.body.box == (256, 1)
    assert record.body.instructions == 16


STRIDES = [
    (8, "float16", True),
    (7, "float16", False),
    (4, "float32", True),
    (16, "uint8", True),
    (15, "uint8", False),
    (2, "float64", True),
    (3, "float64", False),
    (32, "float4_e2m1fn", True),
    (33, "float4_e2m1fn", False),
    (0, "float16", True),
    (1, "float16", False),
    (-8, "float16", True),
    (-7, "float16", False),
]
"""Strides of a mode beside the contiguous one; a second mode of stride 1 steps by one element in bytes."""


@pytest.mark.parametrize(("stride", "dtype", "passes"), STRIDES)
def test_strides_are_multiples_of_16_bytes(stride: int, dtype: str, passes: bool) -> None:
    walk = Operands(gmem=gmem((1024, 512, 7), (512, Int(1), stride), dtype)).walk()
    assert (walk.failed != 4) == passes


@pytest.mark.parametrize("box", [248, 255, 256, 257, 264, 512])
def test_a_box_has_at_most_256_elements_a_mode_in_rows_of_16_bytes(box: int) -> None:
    operands = Operands(smem=Layout(ints(8, box), LayoutRight), tile=(8, box))
    assert operands.walk().failed == (None if box in (248, 256) else 9)


@pytest.mark.parametrize(
    ("count", "box"),
    [
        (1, (64, 128)),
        (2, (64, 64)),
        (128, (64, 1)),
        (256, (32, 1)),
        (1024, (8, 1)),
        (2048, None),
        (8192, None),
        (16384, None),
        (3, None),
        (96, None),
    ],
)
def test_a_multicast_divides_the_box(count: int, box: tuple[int, ...] | None) -> None:
    operands = Operands(options={"load_mode": TmaLoadMode.W_MULTICAST, "num_multicast": count})
    walk = operands.walk()
    assert walk.failed == (9 if box is None else None)
    if box is not None:
        [record] = walk.results
        assert record.body.box == box
        assert record.tile_element_count == 8192 * count


def test_a_cluster_has_at_most_16_ctas() -> None:
    assert Operands().partition(load_mode="W_MULTICAST", num_multicast=16)
    with pytest.raises(InvalidValueError, match="num_multicast = 32 CTAs; must be at most 16, the largest cluster"):
        Operands().partition(load_mode="W_MULTICAST", num_multicast=32)


@pytest.mark.parametrize(
    ("mode", "count", "passes"),
    [
        ("NO_MULTICAST", 1, True),
        ("NO_MULTICAST", None, True),
        ("NO_MULTICAST", 2, False),
        ("NO_MULTICAST", 0, False),
        ("TWO_CTA", 1, True),
        ("TWO_CTA", 2, False),
        ("W_MULTICAST", 1, True),
        ("W_MULTICAST", 2, True),
        ("W_MULTICAST", 0, False),
        ("W_MULTICAST", -1, False),
        ("W_MULTICAST", None, False),
        ("W128_MULTICAST", 4, True),
        ("W128_MULTICAST", 0, False),
    ],
)
def test_multicast_counts(mode: str, count: int | None, passes: bool) -> None:
    walk = Operands(options={"load_mode": mode, "num_multicast": count}).walk()
    assert walk.failed == (None if passes else 11)


def test_stores_and_reductions_have_no_multicast_operand() -> None:
    for options in ({"store_mode": 0}, {"reduce_kind": 0}):
        for count in (0, 3, None):
            [record] = Operands(options={**options, "num_multicast": count}).partition()
            assert record.tile_element_count == 8192
            assert record.body.num_multicast == 1


def test_shapes_are_compared_by_top_level_mode() -> None:
    atoms = Layout((ints(8, 16), ints(64, 1)), (ints(64, 512), ints(1, 0)))
    assert Operands(smem=atoms).walk().failed is None
    assert Operands(smem=Layout(ints(8192), ints(1))).walk().failed == 7


def test_plain_and_swizzled_layouts_pass() -> None:
    codes = {}
    for bits in range(4):
        rows = Layout(ints(128, 8 << bits), LayoutRight)  # as long as the swizzle's span
        smem = ComposedLayout(Swizzle(bits, 4, 3), cute.smem_ptr_flag(16), rows)
        [record] = Operands(smem=smem, tile=(128, 8 << bits)).partition()
        codes[record.cu_swizzle] = record.swizzle_mode
    assert codes == {0: 0, 1: 3, 2: 3, 3: 2}
    [plain] = Operands().partition()
    assert (plain.cu_swizzle, plain.swizzle_mode) == (0, 0)
    chunked = ComposedLayout(Swizzle(2, 5, 2), cute.smem_ptr_flag(16), SMEM)
    assert Operands(smem=chunked).walk(arch="sm_90a").failed == 5
    [record] = Operands(smem=chunked).partition(arch="sm_100a")
    assert (record.cu_swizzle, record.swizzle_mode) == (4, 2)


def test_a_swizzled_pointer_is_a_swizzled_layout() -> None:
    tensor = cute.make_tensor(cute.make_smem_ptr(0, "float16", Swizzle(3, 4, 3)), SMEM)
    assert Operands(smem=tensor).partition() == Operands(smem=SWIZZLED).partition()


def test_arrays_are_global_tensors() -> None:
    array = numpy.zeros((1024, 512), numpy.float16)
    [record] = partition(SMEM, array, TILE)
    assert record.rank == 2
    assert record.body.element_bits == 16


def test_the_tile_defaults_to_the_shared_shape_and_ints_are_static() -> None:
    [given], [default] = Operands(tile=ints(128, 64)).partition(), Operands(tile=None).partition()
    assert given.body == default.body == Operands().partition()[0].body


GATES = [
    ("NO_MULTICAST", "sm_90", None),
    ("NO_MULTICAST", "sm_89", "SM90_TMA_LOAD needs sm_90 or newer, not sm_89"),
    ("W_MULTICAST", "sm_90a", None),
    ("W_MULTICAST", "sm_80", "SM90_TMA_LOAD_MULTICAST needs sm_90 or newer, not sm_80"),
    ("W128_MULTICAST", "sm_80", "SM90_TMA_LOAD_MULTICAST needs sm_90 or newer, not sm_80"),
    ("TWO_CTA", "sm_90a", "SM100_TMA_2SM_LOAD needs sm_100 or newer, not sm_90a"),
    ("TWO_CTA", "sm_100a", None),
    ("TWO_CTA", "sm_103f", None),
    ("TWO_CTA", "sm_120a", "SM100_TMA_2SM_LOAD pairs two CTAs, which sm_120a does not support"),
]


@pytest.mark.parametrize(("mode", "arch", "reason"), GATES)
def test_architecture_gates(mode: str, arch: str, reason: str | None) -> None:
    if reason is None:
        assert Operands().partition(load_mode=mode, arch=arch)
        return
    with pytest.raises(InvalidValueError) as refusal:
        Operands().partition(load_mode=mode, arch=arch)
    assert refusal.value.headline == reason


@pytest.mark.parametrize("store_mode", list(TmaStoreMode))
def test_im2col_needs_sm_90(store_mode: TmaStoreMode) -> None:
    operands = PATCHES if store_mode else Operands()
    assert operands.partition(store_mode=store_mode, arch="sm_90a")
    name = "SM90_TMA_STORE_IM2COL" if store_mode else "SM90_TMA_STORE"
    with pytest.raises(InvalidValueError, match=f"{name} needs sm_90"):
        operands.partition(store_mode=store_mode, arch="sm_86")


WALKED = TmaFlags(0b111111 << 6)
READABLE = Operands(smem=Layout(ints(32, 8), LayoutRight), tile=(32, 8))
"""A tile of 32 rows of 16 bytes, which the view reads."""
VIEW = tmem.get_copy_s2t_smem_desc(tmem.demonstration_copy(32, 1), 1024)

FLAGS = [
    ({}, TmaFlags(0)),
    ({"load_mode": 2, "num_multicast": 4}, TmaFlags.MULTICAST),
    ({"load_mode": 3, "num_multicast": 4}, TmaFlags.MULTICAST),
    ({"load_mode": 1, "arch": "sm_100a"}, TmaFlags.TWO_CTA),
    ({"store_mode": 0}, TmaFlags(0)),
    ({"store_mode": 1}, TmaFlags.IM2COL),
    ({"store_mode": 2}, TmaFlags.IM2COL | TmaFlags.IM2COL_W),
    ({"store_mode": 3}, TmaFlags.IM2COL | TmaFlags.IM2COL_W128),
    ({"reduce_kind": 4}, TmaFlags(0)),
    ({"s2t": VIEW}, TmaFlags.S2T_DESCRIPTOR),
]


@pytest.mark.parametrize(("options", "extra"), FLAGS)
def test_flags(options: dict[str, Any], extra: TmaFlags) -> None:
    walks = bool(options.get("store_mode"))
    made = PATCHES if walks else READABLE if "s2t" in options else Operands()
    [record] = made.partition(**options)
    assert record.flags == WALKED | extra
    still = gmem(ints(64, 16, 8, 2), ints(1, 64, 1024, 8192)) if walks else gmem(ints(1024, 512), ints(512, 1))
    [static_record] = replace(made, gmem=still).partition(**options)
    assert static_record.flags == WALKED | extra | TmaFlags.PREFETCH_ELIGIBLE
    assert int(static_record.flags) < 1 << 14


LEARNED = [
    (1, 0, TmaFlags(0)),
    (4, 0, TmaFlags.SMEM_INT_STRIDE),
    (4, 1, TmaFlags.GMEM_INT_STRIDE),
    (6, 0, TmaFlags.GMEM_INT_STRIDE | TmaFlags.SMEM_INT_STRIDE | TmaFlags.STATIC_VMAP),
    (6, 2, TmaFlags.GMEM_INT_STRIDE | TmaFlags.SMEM_INT_STRIDE | TmaFlags.STATIC_SMEM),
    (7, 0, WALKED ^ TmaFlags.SHAPE_EQUIV ^ TmaFlags.G_BASIS_OK),
    (8, 0, WALKED ^ TmaFlags.G_BASIS_OK),
    (9, 0, WALKED),
]


@pytest.mark.parametrize(("step", "index", "flags"), LEARNED)
def test_a_walk_that_fails_keeps_what_it_learned(step: int, index: int, flags: TmaFlags) -> None:
    assert FAILING[step][index].walk().flags == flags


def test_one_direction() -> None:
    with pytest.raises(InvalidValueError, match="one direction"):
        Operands().partition(load_mode=0, store_mode=0)
    with pytest.raises(InvalidValueError, match="one direction"):
        Operands().partition(load_mode=2, reduce_kind=0)
    [record] = PATCHES.partition(store_mode=1, reduce_kind="xor")
    assert (record.body.kind, record.body.store_mode, record.body.reduce_kind) == (
        "reduce",
        TmaStoreMode.IM2COL,
        TmaReduceKind.XOR,
    )


@pytest.mark.parametrize("count", [True, 1.0, "2"])
def test_counts_are_integers(count: Any) -> None:
    with pytest.raises(InvalidTypeError, match="num_multicast, the number of CTAs, must be an integer"):
        Operands().partition(num_multicast=count)


def test_unknown_names() -> None:
    with pytest.raises(InvalidValueError, match="unknown dialect"):
        Operands().partition(dialect="mlir")
    with pytest.raises(InvalidValueError, match="unknown load mode 9"):
        Operands().partition(load_mode=9)


@pytest.mark.parametrize("tile", ["_1@0", {}, ...])
def test_a_tile_that_is_none_beside_a_v_map(tile: object) -> None:
    v_map = cute.tma.make_cta_v_map((1024, 512), (Int(128), Int(64)))
    with pytest.raises(TmaVerifyError, match="invalid operand types"):
        partition(Layout(ints(128, 64), LayoutRight), gmem((1024, 512), (512, Int(1))), tile, v_map)  # type: ignore[arg-type]


def test_step_10_in_dsl_with_collapsed_modes_of_unknown_stride() -> None:
    sympy = pytest.importorskip("sympy")
    a, b = sympy.symbols("a b", integer=True, positive=True)
    tensor = gmem((64, 64, 8, 8, 8, 8), (Int(1), 64, 4096, 32768, a, b))
    walk = verify_partition(Layout(ints(32, 8)), tensor, (32, 8), dialect="dsl")
    assert walk.failed == 10


def test_symbols_are_integers() -> None:
    sympy = pytest.importorskip("sympy")
    m, k = sympy.symbols("m k", integer=True, positive=True)
    [record] = Operands(gmem=gmem((m, k), (k, Int(1)))).partition()
    assert str(record.tensor_type) == "!cute.coord_tensor<(0,0),(?,?),(1@1,1@0)>"


def test_the_same_partition_gives_the_same_bytes() -> None:
    first, second = Operands().partition(), Operands().partition()
    assert [r.pack() for r in first] == [r.pack() for r in second]
    assert Operands(smem=SWIZZLED).partition()[0].non_exec_atom_body != first[0].non_exec_atom_body
    assert Operands(smem=SWIZZLED).partition()[0].tma_tensor_type == first[0].tma_tensor_type
