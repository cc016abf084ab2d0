"""Records what CuTe DSL prints of random layouts, swizzled layouts and tiled operations: `dsl_prints.jsonl.xz`.

    python tests/oracle/record/dsl_prints.py OUT.jsonl.xz

Runs in any Python that has CuTe DSL (no device is needed), and needs nothing of this package. `cpp` is the same object
as CuTe C++ prints it where it is a layout; a tiled operation has the arguments that made it.
"""

from __future__ import annotations

import json
import lzma
import random
import sys
from typing import Any

import cutlass
from cutlass import cute
from cutlass.cute.nvgpu import warp

ROWS: list[dict[str, Any]] = []
RANDOM = random.Random(20261122)


def _tree(depth: int) -> Any:
    if depth == 0 or RANDOM.random() < 0.5:
        return RANDOM.randint(2, 9)
    return tuple(_tree(depth - 1) for _ in range(RANDOM.randint(1, 3)))


def _strides(shape: Any) -> Any:
    if isinstance(shape, tuple):
        return tuple(_strides(part) for part in shape)
    return RANDOM.choice([0, 1, 2, 4, 8, 16, 3, 40, 512])


def _cpp(tree: Any) -> str:
    return "(" + ",".join(map(_cpp, tree)) + ")" if isinstance(tree, tuple) else f"_{tree}"


def _note(kind: str, thing: Any, **more: Any) -> None:
    ROWS.append(
        {"id": f"dsl_{len(ROWS)}", "cutlass_dsl": cutlass.__version__, "kind": kind, "text": str(thing), **more}
    )


@cute.jit
def record() -> None:
    for _ in range(cutlass.const_expr(100)):
        shape = _tree(3)
        stride = _strides(shape)
        _note("layout", cute.make_layout(shape, stride=stride), cpp=f"{_cpp(shape)}:{_cpp(stride)}")
    for _ in range(cutlass.const_expr(40)):
        bits, base, shift = RANDOM.randint(1, 3), RANDOM.randint(0, 4), RANDOM.randint(3, 4)
        rows, columns = 1 << RANDOM.randint(2, 6), 1 << RANDOM.randint(2, 7)
        layout = cute.make_layout((rows, columns), stride=(columns, 1))
        cpp = f"Sw<{bits},{base},{shift}> o _0 o (_{rows},_{columns}):(_{columns},_1)"
        _note("composed", cute.make_composed_layout(cute.make_swizzle(bits, base, shift), 0, layout), cpp=cpp)
    for _ in range(cutlass.const_expr(40)):
        element = RANDOM.choice([cutlass.Float16, cutlass.BFloat16, cutlass.Float32])
        bits = RANDOM.choice([32, 64, 128])
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), element, num_bits_per_copy=bits)
        threads = (RANDOM.choice([4, 8, 16]), RANDOM.choice([4, 8]))
        order = RANDOM.choice([(0, 1), (1, 0)])
        values = (RANDOM.choice([1, 2, 4]), 128 // element.width)
        thr = cute.make_ordered_layout(threads, order=order)
        val = cute.make_ordered_layout(values, order=(1, 0))
        _note(
            "tiled_copy",
            cute.make_tiled_copy_tv(atom, thr, val),
            atom=f"UniversalCopy<uint{bits}_t>",
            dtype=element.__name__.lower(),
            threads=[threads, order],
            values=[values, (1, 0)],
        )
    for element, k in ((cutlass.Float16, 16), (cutlass.BFloat16, 16), (cutlass.Float16, 8), (cutlass.BFloat16, 8)):
        op = warp.MmaF16BF16Op(element, cutlass.Float32, (16, 8, k))
        _note("mma_atom", cute.make_mma_atom(op))
        for atoms in ((1, 1, 1), (2, 2, 1), (4, 1, 1), (1, 2, 2)):
            for permuted in (False, True):
                tile = (16 * atoms[0], 16 * atoms[1], k * atoms[2]) if permuted else None
                mma = cute.make_tiled_mma(op, cute.make_layout(atoms), permutation_mnk=tile)
                _note("tiled_mma", mma, atoms=atoms, permutation=tile, k=k, dtype=element.__name__.lower())
                for matrices in (1, 2, 4):
                    load = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(RANDOM.random() < 0.5, matrices), element)
                    if cutlass.const_expr(atoms == (1, 1, 1)):
                        _note("copy_atom", load)
                    if cutlass.const_expr(k // 4 >= matrices):
                        _note("tiled_copy_A", cute.make_tiled_copy_A(load, mma))


record()
with lzma.open(sys.argv[1], "wt", preset=9) as file:
    file.writelines(json.dumps(row) + "\n" for row in ROWS)
print(len(ROWS), "rows")
