"""wmma: C++'s warp matrices, by nvcc's PTX of them; numbers against numpy, and what the ISA lets a program do."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_py as cute
from tests.each import each_of
from tests.oracle.records import DATA

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
SHAPES = {"m16n16k16": (16, 16, 16), "m8n32k16": (8, 32, 16), "m32n8k16": (32, 8, 16)}
DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32, "f64": np.float64,
    "s8": np.int8, "u8": np.uint8, "s32": np.int32,
}  # fmt: skip


def registers(kind: str, part: str, shape: tuple[int, int, int]) -> int:
    """Of a fragment, as the ISA's tables list them."""
    m, n, k = shape
    count = {"a": m * k, "b": n * k}.get(part, m * n)
    if kind == "f16" and part in "ab":
        return 8
    size = np.dtype(DTYPES[kind]).itemsize
    return max(count * size // max(size, 4) // 32, 1)


def text(shape: str, kinds: tuple[str, str, str], orders: tuple[str, str, str], space: str) -> str:
    """D = A * B + C, then D is doubled in registers; A, B and C through global or shared memory."""
    (d, a, b), extents = kinds, SHAPES.get(shape) or {"m16n16k8": (16, 16, 8), "m8n8k4": (8, 8, 4)}[shape]
    counts = {x: registers(k, x, extents) for x, k in (("a", a), ("b", b), ("c", d))}
    word = "b64" if d == "f64" else "b32"
    lists = {x: "{" + ", ".join(f"%{x}{i}" for i in range(n)) + "}" for x, n in counts.items()}
    types = f"{d}.{d}" if a == "f16" else f"{d}.{a}.{b}.{d}"
    add = {"f16": "add.f16x2", "f32": "add.f32", "s32": "add.s32", "f64": "add.f64"}[d]
    doubled = "".join(f"{add} %c{i}, %c{i}, %c{i};" for i in range(counts["c"]))
    m, n, k = extents
    pitches = [
        {"row": columns, "col": rows}[order] + 8
        for order, (rows, columns) in zip(orders, ((m, k), (k, n), (m, n)), strict=True)
    ]
    copies = ""
    if space == "shared":
        copies = """mov.u32 %at, room; mov.u32 %n, %tid.x; mul.wide.u32 %x, %n, 4; add.u64 %x, %x, %pa;
        shl.b32 %n, %n, 2; add.u32 %at, %at, %n; mov.u32 %n, 0;
        COPY: ld.global.u32 %v, [%x]; st.shared.u32 [%at], %v; add.u64 %x, %x, 128; add.u32 %at, %at, 128;
        add.u32 %n, %n, 1; setp.lt.u32 %p, %n, 40; @%p bra COPY; bar.sync 0; mov.u32 %at, room;"""
    source = "%at" if space == "shared" else "%pa"
    return f"""{HEAD}.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) .reqntid 32 {{
    .shared .align 16 .b8 room[5120]; .reg .pred %p; .reg .b32 %at, %n, %v; .reg .b64 %pa, %pb, %pc, %pd, %x;
    .reg .{"b64" if a == "f64" else "b32"} %a<8>, %b<8>; .reg .{word} %c<8>;
    ld.param.u64 %pa, [a]; ld.param.u64 %pb, [b]; ld.param.u64 %pc, [c]; ld.param.u64 %pd, [d]; {copies}
    wmma.load.a.sync.aligned.{orders[0]}.{shape}.{space}.{a} {lists["a"]}, [{source}], {pitches[0]};
    wmma.load.b.sync.aligned.{orders[1]}.{shape}.global.{b} {lists["b"]}, [%pb], {pitches[1]};
    wmma.load.c.sync.aligned.{orders[2]}.{shape}.{d} {lists["c"]}, [%pc], {pitches[2]};
    wmma.mma.sync.aligned.{orders[0]}.{orders[1]}.{shape}.{types}{".rn" if d == "f64" else ""}
        {lists["c"]}, {lists["a"]}, {lists["b"]}, {lists["c"]};
    {doubled}
    wmma.store.d.sync.aligned.{orders[2]}.{shape}.global.{d} [%pd], {lists["c"]}, {pitches[2]}; ret; }}"""


def laid(matrix: Any, order: str, rows: int = 0) -> Any:
    """A matrix in memory with 8 more elements in each line; at least 5,120 bytes."""
    lines = matrix if order == "row" else matrix.T
    held = np.zeros((max(len(lines), rows), lines.shape[1] + 8), matrix.dtype)
    held[: len(lines), : lines.shape[1]] = lines
    return held


FORMS = [
    *[(shape, (d, "f16", "f16")) for shape in SHAPES for d in ("f16", "f32")],
    *[(shape, ("f32", "bf16", "bf16")) for shape in SHAPES],
    *[(shape, ("s32", a, b)) for shape in SHAPES for a, b in (("s8", "s8"), ("u8", "u8"))],
    ("m16n16k8", ("f32", "tf32", "tf32")),
    ("m8n8k4", ("f64", "f64", "f64")),
]


@each_of(("orders", "space"), [(("row", "col", "row"), "global"), (("col", "row", "col"), "shared")])
@each_of(("shape", "kinds"), FORMS)
def test_a_product_of_fragments(shape: str, kinds: tuple[str, str, str], orders: Any, space: str) -> None:
    d, a, b = kinds
    m, n, k = SHAPES.get(shape) or {"m16n16k8": (16, 16, 8), "m8n8k4": (8, 8, 4)}[shape]
    dice = np.random.default_rng(3)
    low = 0 if a == "u8" else -5
    x, y, z = (dice.integers(low, 6, extents) for extents in ((m, k), (k, n), (m, n)))
    first = laid(x.astype(DTYPES[a]), orders[0], 5120)
    rest = [
        laid(held.astype(DTYPES[kind]), order)
        for held, kind, order in ((y, b, orders[1]), (z, d, orders[2]), (0 * z, d, orders[2]))
    ]
    run = cute.run_ptx(text(shape, kinds, orders, space), args=[first, *rest])
    assert run.ok, run.explain()
    expected = laid((2 * (x @ y + z)).astype(DTYPES[d]), orders[2])
    assert np.array_equal(rest[2], expected)


def random_operands(shape: str, kinds: tuple[str, str, str]) -> list[Any]:
    """A, B, C and D of a form, row by row: random numbers of any size, or bytes."""
    d, a, b = kinds
    m, n, k = SHAPES.get(shape) or {"m16n16k8": (16, 16, 8), "m8n8k4": (8, 8, 4)}[shape]
    dice, made = np.random.default_rng(m + n + k), []
    for kind, extents in ((a, (m, k)), (b, (k, n)), (d, (m, n)), (d, (m, n))):
        numbers = dice.standard_normal(extents) * 2.0 ** dice.integers(-6, 7, extents)
        made.append(laid((numbers if kind[0] in "fbt" else 100 * numbers).astype(DTYPES[kind]), "row"))
    return made


@each_of(("shape", "kinds"), FORMS)
def test_random_products_are_those_of_an_h200(shape: str, kinds: tuple[str, str, str]) -> None:
    """Recorded with `python -m benchmarks.machine.on_device cutlass`, driver 580.159.04."""
    arrays = random_operands(shape, kinds)
    cute.run_ptx(text(shape, kinds, ("row", "row", "row"), "global"), args=arrays)
    with np.load(DATA / "h200_wmma.npz") as recorded:
        assert np.array_equal(arrays[3].view(np.uint8), recorded[f"{shape} {' '.join(kinds)}"])


def test_what_is_no_fragment_is_refused() -> None:
    wrong = text("m16n16k16", ("f32", "f16", "f16"), ("row", "col", "row"), "global").replace("{%a0, ", "{%a0, %a0, ")
    with pytest.raises(cute.CuteError, match="does not have 9 registers"):
        cute.run_ptx(wrong, args=[np.zeros(2048, np.uint8)] * 4)
