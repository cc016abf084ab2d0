"""Six kernels of Triton in its interpreter, on the CPU: times on request.

    TRITON_INTERPRET=1 python benchmarks/kernels/triton_interpreted.py ROWS.jsonl.xz

ROWS is tests/oracle/data/triton_kernels.jsonl.xz, whose PTX was compiled from these kernels. Reads names of rows from
standard input; for each it runs the kernel once on the row's arguments, and writes a line of JSON: `seconds`, and
`equal`, whether all outputs have the recorded bytes. Needs Triton 3.6, PyTorch (CPU) and numpy below 2.4.
"""

from __future__ import annotations

import base64
import json
import lzma
import sys
import time

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def vadd(x, y, z, n, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    mask = offsets < n
    tl.store(z + offsets, tl.load(x + offsets, mask) + tl.load(y + offsets, mask), mask)


@triton.jit
def softmax(x, y, cols, B: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, B)
    mask = offsets < cols
    value = tl.load(x + row * cols + offsets, mask, -float("inf"))
    value = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * cols + offsets, value / tl.sum(value, 0), mask)


@triton.jit
def cumsum(x, y, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + offsets, tl.cumsum(tl.load(x + offsets), 0))


@triton.jit
def gather(table, index, y, W: tl.constexpr, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    chosen = tl.load(index + rows)
    columns = tl.arange(0, W)
    value = tl.load(table + chosen[:, None] * W + columns[None, :])
    tl.store(y + rows[:, None] * W + columns[None, :], value)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, T: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        kk = k + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + kk[None, :], (m[:, None] < M) & (kk[None, :] < K), 0.0)
        y = tl.load(b + kk[:, None] * N + n[None, :], (kk[:, None] < K) & (n[None, :] < N), 0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc.to(T), (m[:, None] < M) & (n[None, :] < N))


@triton.jit
def tma_copy(a, b, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0)
    j = tl.program_id(1)
    b.store([i * BM, j * BN], a.load([i * BM, j * BN]))


def tensor(held):
    raw = torch.frombuffer(bytearray(base64.b64decode(held["bytes"]["b64"])), dtype=torch.uint8)
    return raw.view(getattr(torch, held["dtype"].removeprefix("torch."))).reshape(held["shape"])


def argument(held):
    if not isinstance(held, dict):
        return held
    made = tensor(held)
    return TensorDescriptor(made, held["shape"], held["strides"], held["block"]) if held.get("desc") else made


def run(row):
    kernels = {"matmul_bf16": matmul}
    kernel = kernels.get(row["name"]) or globals()[row["name"]]
    args = [argument(held) for held in row["args"]]
    constants = {name: tl.bfloat16 if name == "T" else value for name, value in row["constants"].items()}
    start = time.perf_counter()
    kernel[tuple(row["grid"])](*args, **constants)
    seconds = time.perf_counter() - start
    equal = True
    for number, held in row["outputs"].items():
        left = args[int(number)]
        left = left.base if isinstance(left, TensorDescriptor) else left
        equal &= left.contiguous().view(torch.uint8).numpy().tobytes() == base64.b64decode(held["b64"])
    return {"seconds": seconds, "equal": equal}


def main():
    torch.set_num_threads(1)
    with lzma.open(sys.argv[1], "rt") as lines:
        rows = {row["name"]: row for row in map(json.loads, lines)}
    for name in sys.stdin:
        print(json.dumps(run(rows[name.strip()])), flush=True)


if __name__ == "__main__":
    main()
