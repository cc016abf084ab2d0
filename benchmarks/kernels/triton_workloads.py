"""Record what Triton's kernels leave on a GPU: their PTX, launch, arguments, and the bytes after.

    python tests/oracle/record_triton.py OUT.jsonl.xz [name ...]

Needs PyTorch, Triton 3.6 and a GPU of compute capability 9.0. Each row has `ptx`, `grid`, `warps`, `shared` (bytes),
`args` (arrays with shape, dtype and bytes before; descriptors with their block; numbers), `outputs` (argument -> bytes
after), `approximate` (whether results pass through approximate functions or sums whose order the compiler chose) and
`triton`. Arguments that are constants of the compilation are not listed. Two unused pointers follow the last argument.
"""

from __future__ import annotations

import base64
import json
import lzma
import sys
import traceback

import numpy as np
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor

ROWS = []
WANTED = set(sys.argv[2:])


def packed(tensor):
    array = tensor.contiguous().view(torch.uint8).cpu().numpy()
    return {"b64": base64.b64encode(array.tobytes()).decode()}


def described(x):
    if isinstance(x, TensorDescriptor):
        return {
            "desc": True,
            "block": list(x.block_shape),
            "shape": list(x.shape),
            "strides": list(x.strides),
            "dtype": str(x.base.dtype),
            "bytes": packed(x.base),
            "base": x.base.data_ptr(),
        }
    if isinstance(x, torch.Tensor):
        return {"ptr": x.data_ptr(), "shape": list(x.shape), "dtype": str(x.dtype), "bytes": packed(x)}
    return {"value": x}


def record(name, kernel, grid, args, outputs, approximate=False, warps=4, **constants):
    if WANTED and name not in WANTED:
        return
    try:
        before = [described(a) for a in args]
        compiled = kernel[grid](*args, num_warps=warps, **constants)
        torch.cuda.synchronize()
        after = {}
        for i in outputs:
            x = args[i].base if isinstance(args[i], TensorDescriptor) else args[i]
            after[str(i)] = packed(x)
        meta = compiled.metadata
        ROWS.append(
            {
                "name": name,
                "ptx": compiled.asm["ptx"],
                "grid": list(grid),
                "warps": meta.num_warps,
                "shared": meta.shared,
                "args": before,
                "outputs": after,
                "approximate": approximate,
                "triton": triton.__version__,
                "tensordesc_meta": [
                    dict(one.items()) if isinstance(one, dict) else str(one)
                    for one in (getattr(meta, "tensordesc_meta", None) or [])
                ],
            }
        )
        print("recorded", name, len(compiled.asm["ptx"]), "characters of PTX", flush=True)
    except Exception:
        print("FAILED", name, flush=True)
        traceback.print_exc()


GENERATOR = torch.Generator(device="cuda")
GENERATOR.manual_seed(2028)


def normal(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda", generator=GENERATOR).to(dtype)


def integers(low, high, *shape, dtype=torch.int32):
    return torch.randint(low, high, shape, device="cuda", generator=GENERATOR, dtype=dtype)


def empty(*shape, dtype=torch.float32):
    return torch.zeros(*shape, device="cuda", dtype=dtype)


@triton.jit
def add_halves(x, y, z, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    inside = at < n
    tl.store(z + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)


@triton.jit
def softmax_rows(x, y, rows, columns, B: tl.constexpr):
    at = tl.arange(0, B)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        v = tl.load(x + row * columns + at, at < columns, -float("inf")).to(tl.float32)
        e = tl.exp(v - tl.max(v, 0))
        tl.store(y + row * columns + at, (e / tl.sum(e, 0)).to(y.dtype.element_ty), at < columns)


@triton.jit
def layer_norm(x, y, w, b, mean, rstd, columns, eps, B: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([B], tl.float32)
    for start in range(0, columns, B):
        at = start + tl.arange(0, B)
        total += tl.load(x + row * columns + at, at < columns, 0.0).to(tl.float32)
    m = tl.sum(total, 0) / columns
    square = tl.zeros([B], tl.float32)
    for start in range(0, columns, B):
        at = start + tl.arange(0, B)
        v = tl.load(x + row * columns + at, at < columns, 0.0).to(tl.float32)
        d = tl.where(at < columns, v - m, 0.0)
        square += d * d
    r = 1 / tl.sqrt(tl.sum(square, 0) / columns + eps)
    tl.store(mean + row, m)
    tl.store(rstd + row, r)
    for start in range(0, columns, B):
        at = start + tl.arange(0, B)
        v = tl.load(x + row * columns + at, at < columns, 0.0).to(tl.float32)
        out = (v - m) * r * tl.load(w + at, at < columns) + tl.load(b + at, at < columns)
        tl.store(y + row * columns + at, out, at < columns)


@triton.jit
def rms_norm(x, y, w, columns, eps, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    v = tl.load(x + row * columns + at, at < columns, 0.0).to(tl.float32)
    r = tl.rsqrt(tl.sum(v * v, 0) / columns + eps)
    tl.store(y + row * columns + at, (v * r * tl.load(w + at, at < columns, 0.0)).to(y.dtype.element_ty), at < columns)


@triton.jit
def seeded_dropout(x, y, n, p, seed, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    kept = tl.rand(seed, at) > p
    v = tl.load(x + at, at < n)
    tl.store(y + at, tl.where(kept, v / (1 - p), 0.0), at < n)


@triton.jit
def random_integers(y, seed, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.randint(seed, at))


@triton.jit
def matmul_grouped(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr, LEAKY: tl.constexpr
):
    pid = tl.program_id(0)
    across, down = tl.cdiv(N, BN), tl.cdiv(M, BM)
    group = pid // (G * across)
    first = group * G
    size = min(down - first, G)
    i = first + (pid % (G * across)) % size
    j = (pid % (G * across)) // size
    m = (i * BM + tl.arange(0, BM)) % M
    n = (j * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    pa = a + m[:, None] * K + k[None, :]
    pb = b + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for step in range(tl.cdiv(K, BK)):
        x = tl.load(pa, k[None, :] < K - step * BK, 0.0)
        y = tl.load(pb, k[:, None] < K - step * BK, 0.0)
        acc = tl.dot(x, y, acc)
        pa += BK
        pb += BK * N
    if LEAKY:
        acc = tl.where(acc >= 0, acc, 0.01 * acc)
    mm = i * BM + tl.arange(0, BM)
    nn = j * BN + tl.arange(0, BN)
    tl.store(c + mm[:, None] * N + nn[None, :], acc.to(c.dtype.element_ty), (mm[:, None] < M) & (nn[None, :] < N))


@triton.jit
def matmul_integers(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.int32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :], k[None, :] < K, 0)
        y = tl.load(b + n[None, :] * K + k[:, None], k[:, None] < K, 0)
        acc = tl.dot(x, y, acc, out_dtype=tl.int32)
    tl.store(c + m[:, None] * N + n[None, :], acc)


@triton.jit
def matmul_descriptors(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    across = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * across
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        i, j = tile // across, tile % across
        acc = tl.zeros((BM, BN), tl.float32)
        for step in range(tl.cdiv(K, BK)):
            x = a.load([i * BM, step * BK])
            y = b.load([j * BN, step * BK])
            acc = tl.dot(x, y.T, acc)
        c.store([i * BM, j * BN], acc.to(tl.float16))


@triton.jit
def attention(q, k, v, o, length, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    head = tl.program_id(1)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    base = head * length * D
    x = tl.load(q + base + m[:, None] * D + d[None, :])
    top = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for start in range(0, length, BN):
        n = start + tl.arange(0, BN)
        y = tl.load(k + base + n[None, :] * D + d[:, None])
        s = tl.dot(x, y) * scale
        if CAUSAL:
            s = tl.where(m[:, None] >= n[None, :], s, -1.0e6)
        new = tl.maximum(top, tl.max(s, 1))
        e = tl.math.exp2(s - new[:, None])
        fade = tl.math.exp2(top - new)
        total = total * fade + tl.sum(e, 1)
        z = tl.load(v + base + n[:, None] * D + d[None, :])
        acc = acc * fade[:, None]
        acc = tl.dot(e.to(tl.float16), z, acc)
        top = new
    tl.store(o + base + m[:, None] * D + d[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def transpose(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    v = tl.load(x + m[:, None] * N + n[None, :], (m[:, None] < M) & (n[None, :] < N))
    tl.store(y + n[:, None] * M + m[None, :], tl.trans(v), (n[:, None] < N) & (m[None, :] < M))


@triton.jit
def histogram(x, y, B: tl.constexpr, BINS: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    h = tl.histogram(tl.load(x + at), BINS)
    tl.atomic_add(y + tl.arange(0, BINS), h)


@triton.jit
def sort_rows(x, y, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.sort(tl.load(x + at)))


@triton.jit
def arguments_of_extremes(x, y, z, columns, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    v = tl.load(x + row * columns + at, at < columns, -float("inf"))
    tl.store(y + row, tl.argmax(v, 0))
    tl.store(z + row, tl.argmin(tl.where(at < columns, v, float("inf")), 0))


@triton.jit
def gelu(x, y, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, at < n)
    tl.store(y + at, 0.5 * v * (1 + libdevice.tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))), at < n)


@triton.jit
def arc_sine(x, y, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, libdevice.asin(tl.load(x + at, at < n)), at < n)


@triton.jit
def rotary(x, y, length, base, D: tl.constexpr):
    row = tl.program_id(0)
    half = tl.arange(0, D // 2)
    angle = (row % length) * tl.exp2(-half * (2.0 / D) * base)
    c, s = tl.cos(angle), tl.sin(angle)
    u = tl.load(x + row * D + half).to(tl.float32)
    v = tl.load(x + row * D + D // 2 + half).to(tl.float32)
    tl.store(y + row * D + half, (u * c - v * s).to(tl.bfloat16))
    tl.store(y + row * D + D // 2 + half, (v * c + u * s).to(tl.bfloat16))


@triton.jit
def quantise_rows(x, y, scales, columns, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    v = tl.load(x + row * columns + at, at < columns, 0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(v), 0), 1e-12) / 448.0
    tl.store(scales + row, scale)
    tl.store(y + row * columns + at, (v / scale).to(tl.float8e4nv), at < columns)


@triton.jit
def locked_sum(x, lock, total, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.sum(tl.load(x + at), 0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + v)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def collatz(x, y, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at)
    steps = tl.zeros([B], tl.int32)
    while tl.max(v, 0) > 1:
        steps += tl.where(v > 1, 1, 0)
        v = tl.where(v > 1, tl.where(v % 2 == 0, v // 2, 3 * v + 1), v)
    tl.store(y + at, steps)


@triton.jit
def _recurrence(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def linear_recurrence(a, b, y, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    _, h = tl.associative_scan((tl.load(a + at), tl.load(b + at)), 0, _recurrence)
    tl.store(y + at, h)


@triton.jit
def cross_entropy(logits, labels, loss, columns, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    v = tl.load(logits + row * columns + at, at < columns, -float("inf")).to(tl.float32)
    top = tl.max(v, 0)
    label = tl.load(labels + row)
    tl.store(
        loss + row, tl.log(tl.sum(tl.exp(v - top), 0)) + top - tl.load(logits + row * columns + label).to(tl.float32)
    )


@triton.jit
def swiglu(x, y, columns, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * B + tl.arange(0, B)
    gate = tl.load(x + row * 2 * columns + at, at < columns).to(tl.float32)
    up = tl.load(x + row * 2 * columns + columns + at, at < columns).to(tl.float32)
    tl.store(y + row * columns + at, (gate * tl.sigmoid(gate) * up).to(tl.float16), at < columns)


@triton.jit
def embedding_gradient(g, index, w, W: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, W)
    tl.atomic_add(w + tl.load(index + row) * W + at, tl.load(g + row * W + at))


@triton.jit
def integer_mix(x, y, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at)
    u = tl.umulhi(v.to(tl.uint32), 0x9E3779B9)
    w = (v.to(tl.int64) * 6364136223846793005 + 1442695040888963407) >> 17
    out = (u.to(tl.int64) ^ w) % 1000003 + (v // 7) + (v % 13) + tl.where(v > 0, v << 3, v >> 2)
    tl.store(y + at, out)


@triton.jit
def block_sums(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.arange(0, BN)
    v = tl.load(x + m[:, None] * N + n[None, :], (m[:, None] < M) & (n[None, :] < N), 0)
    tl.store(y + m, tl.sum(v, 1), m < M)


def main():
    n = 1000
    for dtype, name in ((torch.bfloat16, "add_bf16"), (torch.float16, "add_f16"), (torch.float64, "add_f64")):
        x, y, z = normal(n, dtype=dtype), normal(n, dtype=dtype), empty(n, dtype=dtype)
        record(name, add_halves, (4,), [x, y, z, n], [2], B=256)
    x, y = normal(10, 300, dtype=torch.bfloat16), empty(10, 300, dtype=torch.bfloat16)
    record("softmax_rows", softmax_rows, (3,), [x, y, 10, 300], [1], True, B=512)
    x, y, w, b = normal(6, 700), empty(6, 700), normal(700), normal(700)
    record("layer_norm", layer_norm, (6,), [x, y, w, b, empty(6), empty(6), 700, 1e-5], [1, 4, 5], True, B=256)
    x, y, w = normal(5, 500, dtype=torch.float16), empty(5, 500, dtype=torch.float16), normal(500)
    record("rms_norm", rms_norm, (5,), [x, y, w, 500, 1e-6], [1], True, warps=8, B=512)
    record("seeded_dropout", seeded_dropout, (4,), [normal(n), empty(n), n, 0.3, 123], [1], True, B=256)
    record("random_integers", random_integers, (2,), [empty(512, dtype=torch.int32), 77], [0], B=256)
    a, b = normal(100, 96, dtype=torch.float16), normal(96, 144, dtype=torch.float16)
    record(
        "matmul_f16_grouped",
        matmul_grouped,
        (6,),
        [a, b, empty(100, 144, dtype=torch.float16), 100, 144, 96],
        [2],
        True,
        BM=64,
        BN=64,
        BK=32,
        G=2,
        LEAKY=True,
    )
    a, b = normal(64, 64), normal(64, 64)
    record(
        "matmul_tf32",
        matmul_grouped,
        (1,),
        [a, b, empty(64, 64), 64, 64, 64],
        [2],
        True,
        BM=64,
        BN=64,
        BK=32,
        G=2,
        LEAKY=False,
    )
    a, b = normal(128, 128).to(torch.float8_e4m3fn), normal(128, 128).to(torch.float8_e4m3fn)
    record(
        "matmul_e4m3",
        matmul_grouped,
        (2,),
        [a, b, empty(128, 128), 128, 128, 128],
        [2],
        True,
        BM=64,
        BN=128,
        BK=64,
        G=2,
        LEAKY=False,
    )
    a, b = normal(32, 32, dtype=torch.float16), normal(32, 32, dtype=torch.float16)
    record(
        "matmul_small",
        matmul_grouped,
        (1,),
        [a, b, empty(32, 32), 32, 32, 32],
        [2],
        True,
        BM=32,
        BN=32,
        BK=32,
        G=2,
        LEAKY=False,
    )
    a, b = integers(-128, 128, 64, 96, dtype=torch.int8), integers(-128, 128, 64, 96, dtype=torch.int8)
    record(
        "matmul_int8",
        matmul_integers,
        (1, 1),
        [a, b, empty(64, 64, dtype=torch.int32), 64, 64, 96],
        [2],
        BM=64,
        BN=64,
        BK=32,
    )
    a, b, c = (
        normal(128, 128, dtype=torch.float16),
        normal(128, 128, dtype=torch.float16),
        empty(128, 128, dtype=torch.float16),
    )
    d = [
        TensorDescriptor.from_tensor(a, [64, 64]),
        TensorDescriptor.from_tensor(b, [64, 64]),
        TensorDescriptor.from_tensor(c, [64, 64]),
    ]
    record("matmul_descriptors", matmul_descriptors, (3,), [*d, 128, 128, 128], [2], True, BM=64, BN=64, BK=64)
    q, k, v = (normal(2, 128, 64, dtype=torch.float16) for _ in range(3))
    record(
        "attention",
        attention,
        (2, 2),
        [q, k, v, empty(2, 128, 64, dtype=torch.float16), 128, 0.18],
        [3],
        True,
        D=64,
        BM=64,
        BN=32,
        CAUSAL=True,
    )
    x = normal(70, 90)
    record("transpose", transpose, (3, 3), [x, empty(90, 70), 70, 90], [1], BM=32, BN=32)
    record("histogram", histogram, (2,), [integers(0, 64, 512), empty(64, dtype=torch.int32)], [1], B=256, BINS=64)
    record("sort_rows", sort_rows, (2,), [integers(-1000, 1000, 256), empty(256, dtype=torch.int32)], [1], B=128)
    record(
        "arguments_of_extremes",
        arguments_of_extremes,
        (5,),
        [normal(5, 200), empty(5, dtype=torch.int32), empty(5, dtype=torch.int32), 200],
        [1, 2],
        B=256,
    )
    record("gelu", gelu, (4,), [normal(n), empty(n), n], [1], True, B=256)
    record(
        "arc_sine",
        arc_sine,
        (4,),
        [torch.rand(n, device="cuda", generator=GENERATOR) * 2 - 1, empty(n), n],
        [1],
        True,
        B=256,
    )
    record(
        "rotary",
        rotary,
        (6,),
        [normal(6, 128, dtype=torch.bfloat16), empty(6, 128, dtype=torch.bfloat16), 100, 13.2877],
        [1],
        True,
        warps=2,
        D=128,
    )
    record(
        "quantise_rows",
        quantise_rows,
        (4,),
        [normal(4, 300, dtype=torch.bfloat16), empty(4, 300).to(torch.float8_e4m3fn), empty(4), 300],
        [1, 2],
        True,
        B=512,
    )
    record(
        "locked_sum",
        locked_sum,
        (6,),
        [integers(-50, 50, 768), empty(1, dtype=torch.int32), empty(1, dtype=torch.int32)],
        [1, 2],
        B=128,
    )
    record("collatz", collatz, (2,), [integers(2, 60, 256), empty(256, dtype=torch.int32)], [1], B=128)
    record(
        "linear_recurrence",
        linear_recurrence,
        (2,),
        [torch.rand(512, device="cuda", generator=GENERATOR), normal(512), empty(512)],
        [2],
        True,
        B=256,
    )
    record(
        "cross_entropy",
        cross_entropy,
        (5,),
        [normal(5, 200, dtype=torch.bfloat16), integers(0, 200, 5), empty(5), 200],
        [2],
        True,
        B=256,
    )
    record(
        "swiglu",
        swiglu,
        (3, 2),
        [normal(3, 400, dtype=torch.float16), empty(3, 200, dtype=torch.float16), 200],
        [1],
        True,
        B=128,
    )
    g = integers(-8, 8, 12, 64).to(torch.float32)
    record("embedding_gradient", embedding_gradient, (12,), [g, integers(0, 5, 12), empty(5, 64)], [2], warps=2, W=64)
    record(
        "integer_mix",
        integer_mix,
        (2,),
        [integers(-(2**31), 2**31 - 1, 512), empty(512, dtype=torch.int64)],
        [1],
        B=256,
    )
    record(
        "block_sums",
        block_sums,
        (3,),
        [integers(-99, 99, 70, 100), empty(70, dtype=torch.int32), 70, 100],
        [1],
        BM=32,
        BN=128,
    )
    with lzma.open(sys.argv[1], "wt", preset=9) as file:
        for row in ROWS:
            file.write(json.dumps(row) + "\n")
    print(len(ROWS), "rows", np.__version__)


if __name__ == "__main__":
    main()
