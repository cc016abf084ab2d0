"""The plans of many copies as rows of text, so that a change of a choice is seen: `python -m tests.copies.recorded`.

The choices were tuned by measurement, and bytes arrive whatever tile is chosen. `--record` writes the rows anew; the
difference is part of a review.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import cute_py as cute
from benchmarks.silicon.conversions import random_pairs
from cute_py import Layout, formats
from cute_py.copies.boxes import LaunchPlan, Tuning
from cute_py.copies.plan import CopyPlan, box_launches, thread_launches
from cute_py.copies.scaled.plan import MatrixSide, RowIndex, ScaledLaunch, plan_largest, plan_scaled
from cute_py.copies.thread_kernels import ThreadLaunch
from cute_py.copies.tile import BlockTile, copy_cost
from cute_py.dtypes import as_dtype
from cute_py.errors import InvalidValueError, TmaLimitError
from cute_py.formats import Format
from tests.copies.pairs import DTYPES, random_pair

DATA = Path(__file__).parents[1] / "oracle" / "data" / "copy_choices.json.xz"

Row = dict[str, Any]


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def facts(kernel: Any) -> Row:
    """The facts of a kernel; its text may change without them."""
    return {"name": kernel.name, **{name: str(value) for name, value in sorted(kernel.facts.items())}}


def tile_row(tile: BlockTile) -> Row:
    shape = tile.shape
    return {
        "extents": shape.extents,
        "runs": shape.runs,
        "vectors": shape.vectors,
        "shifts": shape.shifts,
        "columns": shape.columns,
        "lending": (shape.run_mode, shape.halo),
        "pitches": tile.pitches,
        "access": (tile.piece, tile.unit, tile.skew, tile.listed, str(tile.swizzle)),
        "block": (tile.threads, tile.shared_bytes, tile.steady, tile.affine),
        "pitch": (tile.folded_pitch, tile.run_size),
        "wavefronts": tile.wavefronts,
        "cost": f"{copy_cost(tile):.9g}",
    }


def thread_row(launch: ThreadLaunch) -> Row:
    block = launch.parameters(1 << 40, 1 << 44, 1 << 45)
    return {
        "blocks": launch.blocks,
        "facts": facts(launch.kernel),
        "head": launch.head,
        "reach": launch.reach,
        "block": digest(block),
        "tables": digest(launch.tables),
    }


def box_row(plan: LaunchPlan) -> Row:
    maps = [
        (f"{m.global_address:#x}", m.global_dim, m.global_strides, m.box_dim, str(m.swizzle), str(m.data_type))
        for m in plan.maps or ()
    ]
    return {
        "form": plan.form,
        "blocks": plan.blocks,
        "bytes": plan.bytes,
        "why": plan.why,
        "tail": plan.tail,
        "maps": maps,
        "facts": facts(plan.kernel),
    }


def plan_row(plan: CopyPlan) -> Row:
    found: Row = {"text": str(plan), "expected": f"{plan.expected:.9g}", "orders": [str(o) for o in plan.orders]}
    if plan.threads_tile is not None:
        found["tile"] = tile_row(plan.threads_tile)
    if plan.kernel in ("tile", "runs"):
        found["launches"] = [thread_row(one) for one in thread_launches(plan)]
    if plan.kernel == "boxes" and plan.refinement is not None:
        addresses = 1 << 40, 1 << 44
        found["launches"] = [box_row(one) for one in box_launches(plan.refinement, plan.bits // 8, addresses, 132)]
    return found


def permuted(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[Layout, Layout]:
    """A row-major array of `shape`, its modes in this order, and a row-major array."""

    def rows(sizes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(int(np.prod(sizes[i + 1 :], dtype=object)) for i in range(len(sizes)))

    there = tuple(shape[i] for i in order)
    strides = rows(shape)
    return Layout(there, tuple(strides[i] for i in order)), Layout(there, rows(there))


TURNED = (
    *((4096, 4096), (4096, 4), (4, 4096), (6144, 3), (2000, 5), (1000, 12), (648, 685), (8192, 8200), (20000, 1000)),
    *((301, 263), (1151, 1144), (33, 70000), (129, 131), (256, 280), (264, 1440), (16384, 32), (12345, 677)),
)
MORE = (
    ((64, 265, 32), (0, 2, 1)),
    ((64, 1029, 32), (0, 2, 1)),
    ((3, 257, 131), (0, 2, 1)),
    ((2, 4099, 3), (0, 2, 1)),
    ((8, 512, 16, 128), (0, 2, 1, 3)),
    ((8, 1000, 16, 72), (2, 0, 3, 1)),
    ((5, 7, 9, 11, 13), (4, 2, 0, 3, 1)),
    ((16, 16, 16, 16, 32), (3, 1, 0, 4, 2)),
    ((64, 224, 224, 3), (0, 3, 1, 2)),
    ((64, 3, 224, 225), (0, 2, 3, 1)),
)


def tiles() -> Iterator[tuple[str, Callable[[], Row]]]:
    """Copies by threads: transpositions of all widths, addresses between two words, sizes that no power divides."""
    elements = 1, 2, 4, 8, 16
    cases: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [
        (shape, (1, 0), elements[(i + j) % 5]) for i, shape in enumerate(TURNED) for j in range(3)
    ]
    cases += [(shape, order, elements[(i + j) % 3]) for i, (shape, order) in enumerate(MORE) for j in range(2)]
    for i, (shape, order, element) in enumerate(cases):
        aligned = ((16, 16), (16, 16), (element, 16), (16, element), (element, element))[i % 5]
        source, destination = permuted(shape, order)
        name = f"{shape} {order} of {element} bytes, addresses {aligned}"

        def made(pair: Any = (source, destination), element: int = element, aligned: Any = aligned) -> Row:
            return plan_row(cute.plan_copy(*pair, DTYPES[element], alignment=aligned, arch="sm_80"))

        yield name, made
    for seed in range(3000, 3090):
        pair = random_pair(seed)
        dtype, aligned = DTYPES[pair.element], pair.alignment()

        def random_one(pair: Any = pair, dtype: str = dtype, aligned: Any = aligned) -> Row:
            return plan_row(cute.plan_copy(pair.source, pair.destination, dtype, alignment=aligned))

        yield f"random pair {seed}", random_one
    for source, destination in ((Layout(64), Layout(64)), permuted((64, 30), (1, 0)), permuted((63, 31), (1, 0))):
        for nibbles in (("low", "low"), ("high", "low")):

            def of_nibbles(pair: Any = (source, destination), nibbles: Any = nibbles) -> Row:
                return plan_row(cute.plan_copy(*pair, "int4", nibbles=nibbles))

            yield f"4 bits: {source} to {destination}, {nibbles}", of_nibbles


def boxes() -> Iterator[tuple[str, Callable[[], Row]]]:
    """Copies by tensor maps: contiguous, pitched, realigned and turned ones, around every limit of size; tunings."""
    mib = 1 << 20
    cases: list[tuple[str, Layout, Layout, str, tuple[int, int], Tuning | None]] = []
    for size in (
        15,
        16,
        511,
        512,
        1000,
        16 * mib,
        16 * mib + 8,
        16 * mib + 16,
        128 * mib - 1,
        128 * mib,
        129 * mib + 5,
    ):
        for shift in (0, 1, 8):
            cases.append((f"{size} bytes", Layout(size), Layout(size), "uint8", (shift, 0), None))
    for rows, run, pitch in ((4, 4096, 4352), (300, 200, 256), (7, 64, 64), (1000, 1000, 1008), (40000, 512, 1024)):
        for kind in ("uint8", "float32"):
            sides = Layout((rows, run), (pitch, 1)), Layout((rows, run), (run + -run % 16, 1))
            for shift in (0, 4):
                cases.append((f"{rows} rows", *sides, kind, (shift, 0), None))
    for shape in ((128, 128), (4096, 4096), (1000, 1008), (130, 260), (3, 256, 512), (5, 1008, 2000)):
        order = (1, 0) if len(shape) == 2 else (0, 2, 1)
        for kind in ("uint8", "float16", "float32", "float64"):
            cases.append((f"{shape} turned", *permuted(shape, order), kind, (0, 0), None))
    plain = Layout((70, 1000), (2000, 1)), Layout((70, 1000), (1000, 1))
    turned = permuted((512, 2048), (1, 0))
    tunings = (
        *(Tuning("ring"), Tuning("once", 1024, 16), Tuning("ring", 256, 8, 4, 2, 2), Tuning("once", per_block=3)),
        *(Tuning("once", hints=True, pad_shared=1024), Tuning("ring", hints=True, early=False), Tuning(paired=False)),
        *(Tuning("ring", pitch=0), Tuning("ring", pitch=1 << 20)),
    )
    for tuning in tunings:
        for sides in (plain, turned, (Layout(1 << 22), Layout(1 << 22))):
            cases.append((f"{tuning}", *sides, "float32", (0, 0), tuning))
    for name, source, destination, kind, shifts, tuning in cases:

        def made(
            pair: Any = (source, destination), kind: str = kind, shifts: Any = shifts, tuning: Tuning | None = tuning
        ) -> Row:
            refinement = cute.plan_copy(*pair, kind).refinement
            width = as_dtype(kind).bits // 8
            addresses = (1 << 40) + shifts[0], (1 << 44) + shifts[1]
            try:
                found = box_launches(refinement, width, addresses, 132, tuning)  # type: ignore[arg-type]
            except TmaLimitError as refused:
                return {"refused": str(refused)}
            return {"launches": [box_row(one) for one in found]}

        yield f"{name}: {source} to {destination} of {kind}, shifted {shifts}", made


FORMATS: tuple[Format, ...] = (
    *(formats.mxfp8(), formats.mxfp8(axis=0), formats.mxfp8(transposed=True), formats.mxfp8(axis=0, transposed=True)),
    *(formats.mxfp8(scales="linear"), formats.mxfp8(scales="8x4", rule="ceil"), formats.mxfp8(element="e5m2")),
    *(formats.mxfp8(scales="mn_major"), formats.mxfp8(scales="triton_hopper(2)"), formats.mxfp4(scales="rocm_32_8")),
    *(formats.nvfp4(), formats.nvfp4(like="te", block=(16, 16)), formats.nvfp4(like="flashinfer", scales="linear")),
    *(formats.fp8((1, 128)), formats.fp8((128, 128)), formats.fp8("row"), formats.fp8("tensor"), formats.fp8("column")),
    *(formats.fp8((1, 128), rule="rceil", scales="deepgemm_sm100"), formats.mxfp4()),
)


def form_side(form: Format, shape: tuple[int, int], pad: int = 0, fill: int = 0) -> MatrixSide:
    lines, along = form.data_shape(*shape)
    width = -(-along * {"pairs": 4}.get(form.packing, 8) // 8) + pad
    total = 0.5 if form.tensor_scale else None
    return MatrixSide(form.element, lines, along, width, form.transposed, 16, 16, form, shape, total, None, fill)


def array_side(
    kind: str, shape: tuple[int, int], bits: int, by_columns: bool = False, alignment: int = 16
) -> MatrixSide:
    lines, along = shape[::-1] if by_columns else shape
    return MatrixSide(kind, lines, along, along * bits // 8, by_columns, alignment)


def launch_row(launch: ScaledLaunch) -> Row:
    names = ("source", "scales", "rows", "into_rows", "record")
    block = launch.parameters(dict(zip(names, (1 << 40, 1 << 41, 1 << 42, 1 << 43, 1 << 44), strict=True)), [
        ((i + 1) << 45, (i + 1) << 46) for i in range(len(launch.outputs))
    ])  # fmt: skip
    return {
        "launch": (launch.name, launch.blocks, launch.moved, launch.why),
        "facts": facts(launch.kernel),
        "head": launch.head,
        "outputs": launch.outputs,
        "pointers": launch.pointers(),
        "block": digest(block),
    }


def scaled() -> Iterator[tuple[str, Callable[[], Row]]]:
    """Copies that compute: every format from rows and from columns, back, in other orders, by an index, and casts."""

    def launched(*arguments: Any) -> Callable[[], Row]:
        def made() -> Row:
            try:
                return launch_row(plan_scaled(*arguments))
            except InvalidValueError as refused:
                return {"refused": str(refused)}

        return made

    sizes = (256, 512), (100, 300), (8192, 8192), (1, 40), (3000, 130)
    for i, form in enumerate(FORMATS):
        for j, columns in enumerate((False, True)):
            shape = sizes[(i + 2 * j) % 5]
            kind, bits = (("bf16", 16), ("float32", 32), ("f16", 16))[(i + j) % 3]
            source = array_side(kind, shape, bits, columns, (16, 16, 8, 2)[i % 4])
            name = f"{form!r} of {shape} {kind}"
            yield f"to {name}, by columns: {columns}", launched(source, [form_side(form, shape, fill=i)], shape)
            output = array_side(kind, shape, bits, columns)
            yield f"from {name}, by columns: {columns}", launched(form_side(form, shape), [output], shape)
        rows = RowIndex(rows=True, into=i % 2 == 0, width=(4, 8)[i % 2], masked=i)
        source = array_side("bf16", (500, 256), 16)
        yield f"rows to {form!r}", launched(source, [form_side(form, (64, 256))], (64, 256), rows)
        yield f"rows of {form!r}", launched(form_side(form, (500, 256)), [form_side(form, (64, 256))], (64, 256), rows)
        other = form.with_(scales="linear")
        sides = form_side(form, (300, 256)), [form_side(other, (300, 256), 16)]
        yield f"{form!r} in another order", launched(*sides, (300, 256))
        both = [form_side(one, (256, 256)) for one in (form, FORMATS[(i + 3) % len(FORMATS)])]
        yield f"{form!r} and another", launched(array_side("bf16", (256, 256), 16), both, (256, 256))
    kinds = ("float32", 32), ("bf16", 16), ("f16", 16), ("e4m3", 8), ("e5m2", 8), ("raw", 8)
    for i, (one, width) in enumerate(kinds):
        for j, (other, bits) in enumerate(kinds):
            shape = sizes[(i + j) % 5]
            for columns in (False, True):
                sides = array_side(one, shape, width), [array_side(other, shape, bits, columns, (16, 1)[i % 2])]
                yield f"cast {one} to {other}, columns: {columns}", launched(*sides, shape)
        index = RowIndex(rows=i % 2 == 0, into=i % 2 == 1, width=4, masked=7 * i)
        sides = array_side(one, (700, 96), width), [array_side(one, (50, 96), width)]
        yield f"rows of {one}", launched(*sides, (50, 96), index)
        yield (
            f"largest of {one}",
            lambda one=one, width=width: launch_row(  # type: ignore[misc]
                plan_largest(array_side(one, (3000, 96), width, False, (16, 4)[width % 3 % 2]))
            ),
        )
    wide = array_side("bf16", (8, 1 << 20), 16)
    yield "a row of 2**20", launched(wide, [form_side(formats.fp8("row"), (8, 1 << 20))], (8, 1 << 20))
    for height, width in ((200_000, 256), (200_000, 300), (70_000, 1024), (40_000, 4096), (140_000, 200)):
        for kind, bits, other, wide in (
            ("bf16", 16, "e4m3", 8),
            ("e4m3", 8, "float32", 32),
            ("float32", 32, "f16", 16),
        ):
            sides = array_side(kind, (height, width), bits), [array_side(other, (height, width), wide)]
            yield f"{height} x {width} of {kind}", launched(*sides, (height, width))
    for form in (formats.nvfp4(block=(16, 16), scales="mn_major"), formats.nvfp4(block=(16, 16), scales="linear")):
        yield f"{form!r}", launched(array_side("bf16", (256, 256), 16), [form_side(form, (256, 256))], (256, 256))
    yield "quantised e4m3", launched(array_side("e4m3", (256, 256), 8), [form_side(FORMATS[0], (256, 256))], (256, 256))
    for K in (500, 512, 2048, 2056, 4096, 8192, 16384, 16392, 40000, 65536, 65544):
        yield f"rows of {K}", launched(array_side("bf16", (9, K), 16), [form_side(formats.fp8("row"), (9, K))], (9, K))
        yield f"blocks of {K}", launched(array_side("bf16", (9, K), 16), [form_side(formats.mxfp8(), (9, K))], (9, K))


def conversions() -> Iterator[tuple[str, Callable[[], Row]]]:
    """Conversions of registers: steps, costs, texts."""

    def made(source: Any, destination: Any, dtype: str, by: str | None = None) -> Row:
        found = cute.convert_layout_tv(source, destination, dtype, by=by)
        return {"text": str(found), "ptx": digest(found.ptx.encode()), "cuda": digest(found.cuda("f").encode())}

    for number, (source, destination, dtype) in enumerate(random_pairs(90, 4711)):
        pair: Any = source, destination, dtype
        yield f"conversion {number}: {source} to {destination} of {dtype}", lambda pair=pair: made(*pair)  # type: ignore[misc]
    dice = random.Random(12)
    for number in range(40):
        places = list(range(8))
        sides = []
        for _ in range(2):
            dice.shuffle(places)
            steps = [1 << p for p in places]
            sides.append(Layout(((2,) * 5, (2,) * 3), (tuple(steps[:5]), tuple(steps[5:]))))
        dtype = ("uint8", "float16", "float32", "float64")[number % 4]
        way: Any = *sides, dtype, ("shuffles", "shared memory")[number % 2]
        yield f"{way}", lambda way=way: made(*way)  # type: ignore[misc]


FAMILIES: Mapping[str, Callable[[], Iterator[tuple[str, Callable[[], Row]]]]] = {
    "tiles": tiles,
    "boxes": boxes,
    "scaled": scaled,
    "conversions": conversions,
}


def found(family: str) -> dict[str, Row]:
    """Name of a copy -> its row, as JSON has it."""
    rows = {name: make() for name, make in FAMILIES[family]()}
    return json.loads(json.dumps(rows))  # type: ignore[no-any-return]


def recorded() -> dict[str, dict[str, Row]]:
    with lzma.open(DATA, "rt") as file:
        return json.load(file)  # type: ignore[no-any-return]


def main() -> int:
    if "--record" in sys.argv[1:]:
        with lzma.open(DATA, "wt", preset=9) as file:
            json.dump({family: found(family) for family in FAMILIES}, file, sort_keys=True)
        return 0
    known, differing = recorded(), 0
    for family in FAMILIES:
        rows = found(family)
        for name in rows.keys() | known[family].keys():
            if rows.get(name) != known[family].get(name):
                differing += 1
                print(f"{family}, {name}:\n  was {known[family].get(name)}\n  is  {rows.get(name)}")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
