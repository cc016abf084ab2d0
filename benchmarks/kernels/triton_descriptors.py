"""Kernels of Triton that make their tensor maps on the device, compiled without one.

    python benchmarks/kernels/triton_descriptors.py OUT.jsonl.xz

Needs Triton 3.6. Each row has `name`, `ptx`, `shared` (bytes) and `scratch` (bytes of global memory for each CTA, for
the maps); the pointers to the scratch memory and to that of a profiler follow the last argument.
"""

from __future__ import annotations

import json
import lzma
import re
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def persistent_matmul(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BK])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    columns = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * columns, PROGRAMS, flatten=True):
        m = tile // columns * BM
        n = tile % columns * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(tl.cdiv(K, BK)):
            acc = tl.dot(a.load([m, k * BK]), b.load([n, k * BK]).T, acc)
        c.store([m, n], acc.to(tl.float16))


@triton.jit
def summed_blocks(x_ptr, y_ptr, n, B: tl.constexpr):
    y = tl.make_tensor_descriptor(y_ptr, [n], [1], [B])
    y.atomic_add([0], tl.load(x_ptr + tl.program_id(0) * B + tl.arange(0, B)))


MATMUL = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16", "M": "i32", "N": "i32", "K": "i32"}
JOBS = (
    (persistent_matmul, MATMUL, {"BM": 128, "BN": 128, "BK": 64, "PROGRAMS": 2}, 8),
    (summed_blocks, {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}, {"B": 256}, 4),
)


def main():
    with lzma.open(sys.argv[1], "wt", preset=9) as out:
        for kernel, signature, constants, warps in JOBS:
            types = {**signature, **dict.fromkeys(constants, "constexpr")}
            source = ASTSource(fn=kernel, signature=types, constexprs=constants)
            made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps})
            held = made.metadata
            text = re.sub(r'(\.file\s+\d+ ")[^"]*/', r"\1", made.asm["ptx"].split("\t.section")[0])
            row = {"name": kernel.__name__, "ptx": text, "shared": held.shared}
            row["scratch"] = held.global_scratch_size
            out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
