"""Copies that compute, on a GPU: quantise, cast, dequantise, gather and scatter, beside a memcpy of as many bytes.

    PYTHONPATH=. python3 -m benchmarks.formats [--rounds 15] [--seconds 200] [--shapes 16384x16384,...] [--jobs 2000]
                                               [--peers] [--small] [--traffic] [--prepare] [--out DIRECTORY]

Percent of memory speed: a memcpy of as many bytes as are read and written once, in the same run, over the time
measured. Medians of CUDA events; buffers rotate, so that no input is in a cache; each result is compared with the
host's on its first 128 rows before it is timed. --jobs: so many random small jobs are compared with the host as a whole
first. --peers: PyTorch and torchao's Triton kernels in turn with ours. --small: graphs of small matrices beside graphs
of memcpy nodes. --traffic: kernels of the same bytes without arithmetic. --prepare: plan, compilation and cubin from
disk, in new processes. Needs PyTorch. Writes formats.json and formats.md.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np

import cute_py as cute
from benchmarks.preparation import preparation
from cute_py import formats
from cute_py.copies.prepared import prepare_copy
from cute_py.copies.scaled.plan import ScaledLaunch
from cute_py.copies.scaled.prepared import prepare_scaled
from cute_py.errors import CuteError
from cute_py.formats import Format, ScaledTensor
from cute_py.formats.scaled_tensor import scale_places, stored_shape
from cute_py.gpu.device import open_device

SHAPES: Final = ("16384x16384", "8192x7168", "32768x2880")
FORMATS: Final[tuple[tuple[str, tuple[Format, ...]], ...]] = (
    ("MXFP8 rows, floor, 32_4_4", (formats.mxfp8(rule="floor"),)),
    ("MXFP8 rows, rceil, 32_4_4", (formats.mxfp8(),)),
    ("MXFP8 rows, rceil, linear", (formats.mxfp8(scales="linear"),)),
    ("MXFP4 rows, 32_4_4", (formats.mxfp4(),)),
    ("NVFP4 rows, 32_4_4", (formats.nvfp4(),)),
    ("a scale a row", (formats.fp8("row"),)),
    ("1 x 128", (formats.fp8((1, 128)),)),
    ("1 x 128, transposed", (formats.fp8((1, 128), transposed=True),)),
    ("128 x 1", (formats.fp8((128, 1)),)),
    ("128 x 1, transposed", (formats.fp8((128, 1), transposed=True),)),
    ("128 x 128", (formats.fp8((128, 128)),)),
    ("128 x 128, transposed", (formats.fp8((128, 128), transposed=True),)),
    ("MXFP8 columns, floor, transposed", (formats.mxfp8(axis=0, rule="floor", transposed=True),)),
    ("MXFP8 columns", (formats.mxfp8(axis=0),)),
    ("MXFP8 rows, and columns transposed", (formats.mxfp8(), formats.mxfp8(axis=0, transposed=True))),
)
OTHERS: Final = (
    formats.mxfp8(element="e5m2", rule="even", scales="8x4"),
    formats.nvfp4(like="te", scales="linear"),
    formats.nvfp4(like="flashinfer", axis=0, transposed=True),
    formats.mxfp8(rule="ceil", scales="mn_major"),
    formats.fp8((1, 128), like="torchao", scales="deepgemm_sm90"),
    formats.fp8((1, 128), like="deepgemm", scales="mn_major"),
    formats.fp8((1, 128), rule="rceil", scales="deepgemm_sm100"),
    formats.mxfp4(axis=0, transposed=True),
    formats.mxfp6(),
    formats.mxfp6(element="e3m2", rule="floor", axis=0, transposed=True),
    formats.nvfp4(block=(16, 16), scales="linear"),
)
"""More formats of the random jobs."""
WORKERS: Final = 10
WIDTHS: Final = (128, 256, 512, 1024, 4096, 14336)
"""Bytes of a gathered row."""
SAMPLE: Final = 128
"""Rows that are compared with the host."""


@dataclass
class Row:
    """One job: its bytes, and who does it."""

    name: str
    bytes: int
    works: dict[str, list[Callable[[], object]]]
    memcpy: list[Callable[[], object]] = field(default_factory=list)


class Bench:
    """The device, and what it has been seen to do."""

    def __init__(self, rounds: int) -> None:
        import torch

        self.torch: Any = torch
        torch.zeros(1, device="cuda")
        self.rounds = rounds
        self.pool = torch.randint(-(2**31), 2**31 - 1, (5 << 28,), device="cuda", dtype=torch.int32).view(torch.uint8)
        self.results: list[dict[str, Any]] = []

    def copies(self, size: int) -> list[Callable[[], object]]:
        """Memcpys of so many bytes, read and written together."""
        half = size // 2 // 256 * 256
        count = max(1, min(4, self.pool.numel() // (2 * half)))
        parts = [self.pool[2 * i * half : 2 * (i + 1) * half].view(2, half) for i in range(count)]
        return [lambda part=part: part[1].copy_(part[0]) for part in parts]

    def time(self, row: Row) -> dict[str, Any]:
        """Medians of each, in turn."""
        torch = self.torch
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        every = {"memcpy": self.copies(row.bytes), **row.works}
        taken: dict[str, list[float]] = {name: [] for name in every}
        for works in every.values():
            for work in works:
                work()
        torch.cuda.synchronize()
        for number in range(self.rounds):
            for name in list(every) if number % 2 else list(every)[::-1]:
                start.record()
                for work in every[name]:
                    work()
                end.record()
                end.synchronize()
                taken[name].append(float(start.elapsed_time(end)) * 1000 / len(every[name]))
        medians = {name: statistics.median(times) for name, times in taken.items()}
        found = {"row": row.name, "bytes": row.bytes, **{f"{name} us": round(us, 1) for name, us in medians.items()}}
        found |= {
            f"{name} %": round(100 * medians["memcpy"] / us, 1) for name, us in medians.items() if name != "memcpy"
        }
        self.results.append(found)
        print(found, flush=True)
        return found

    def numbers(self, M: int, K: int, dtype: str = "bfloat16") -> Any:
        torch = self.torch
        x = torch.randn(M, K, device="cuda", dtype=torch.float32)
        return (x * torch.exp2(torch.randint(-6, 6, (M, K), device="cuda").float())).to(getattr(torch, dtype))

    def empty(self, form: Format, shape: tuple[int, int], total: float | None) -> ScaledTensor:
        torch = self.torch
        data = torch.full(stored_shape(form, shape), 0xAA, device="cuda", dtype=torch.uint8)
        kind = torch.float32 if form.scale == "float32" else torch.uint8
        scales = torch.full((int(form.scale_size(*shape)),), 77, device="cuda", dtype=kind)
        return ScaledTensor(data, scales, form, total, shape)


def host_of(x: Any) -> Any:
    """The numpy array of a tensor of bfloat16, or of another type."""
    if str(x.dtype) == "torch.bfloat16":
        import torch

        return x.cpu().view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return x.cpu().numpy()


def agrees(x: Any, made: ScaledTensor) -> bool:
    """Whether the first rows of a quantised matrix are those of the host."""
    form, (M, K) = made.format, made.shape
    rows = min(SAMPLE, M)
    want = unset(form, (rows, K), made.tensor_scale)
    cute.copy(host_of(x[:rows]), want)
    data = made.data[:rows]
    if form.transposed:
        data = made.data[:, : rows // 2 if form.element == "e2m1" else rows]
    if not np.array_equal(np.ascontiguousarray(data.cpu().numpy()), want.data.view(np.uint8)):
        return False
    block = form.blocks(M, K)
    here = form.scale_index(M, K)(np.arange(0, rows, block[0])[:, None], np.arange(0, K, block[1]))
    there = scale_places(form, (rows, K))
    flat, other = made.scales.cpu().numpy().reshape(-1), want.scales.reshape(-1)
    kind = f"u{other.dtype.itemsize}"
    return bool(np.array_equal(flat.view(kind)[here], other.view(kind)[there]))


def unset(form: Format, shape: tuple[int, int], total: Any) -> ScaledTensor:
    """A scaled tensor of the host whose bytes are 1."""
    data = np.ones(stored_shape(form, shape), np.uint8)
    size = int(form.scale_size(*shape)) * form.scale_dtype.numpy.itemsize
    scales = np.ones(size, np.uint8).view(form.scale_dtype.numpy)
    kind = np.dtype(np.uint8) if form.packing == "pairs" else form.dtype.numpy
    return ScaledTensor(data.view(kind), scales, form, total, shape)


def quantised_rows(bench: Bench, M: int, K: int, peers: bool) -> None:
    """Quantise, cast and dequantise a matrix."""
    torch = bench.torch
    xs = [bench.numbers(M, K) for _ in range(2 if M * K > 1 << 27 else 4)]
    total = float(np.float32(float(xs[0].abs().max()) / 2688.0))
    for name, forms in FORMATS:
        try:
            outs = [tuple(bench.empty(f, (M, K), total if f.tensor_scale else None) for f in forms) for _ in xs]
            ours = [prepare_copy(x, out if len(out) > 1 else out[0]) for x, out in zip(xs, outs, strict=True)]
            ours[0].launch()
            ours[0].check()
            right = all(agrees(xs[0], one) for one in outs[0])
            row = Row(f"{name} {M}x{K}", ours[0].bytes, {"ours": [one.launch for one in ours]})
            if peers:
                row.works |= peer_works(name, xs) | compiled_works(name, xs)
            bench.time(row)["equal"] = right
            if not right:
                print("WRONG", name, flush=True)
        except CuteError as problem:
            print("refused", name, problem, flush=True)
    casts = {
        "cast to e4m3": lambda x: (x, torch.empty(M, K, device="cuda", dtype=torch.float8_e4m3fn)),
        "cast to e4m3, transposed": lambda x: (x, torch.empty(K, M, device="cuda", dtype=torch.float8_e4m3fn).T),
    }
    for name, make in casts.items():
        pairs = [make(x) for x in xs]
        ours = [prepare_copy(*pair, cast=True) for pair in pairs]
        ours[0].launch()
        ours[0].check()
        want = formats.cast(host_of(xs[0][:SAMPLE]), "e4m3").view(np.uint8)
        got = pairs[0][1][:SAMPLE].contiguous().view(torch.uint8).cpu().numpy()
        row = Row(f"{name} {M}x{K}", ours[0].bytes, {"ours": [one.launch for one in ours]})
        if name == "cast to e4m3":
            row.works["torch"] = [lambda a=a, b=b: b.copy_(a) for a, b in pairs]
        if peers:
            row.works |= compiled_works(name, xs)
        bench.time(row)["equal"] = bool(np.array_equal(want, got))
    for name, form in (("dequantise MXFP8", formats.mxfp8()), ("dequantise NVFP4", formats.nvfp4())):
        outs = [bench.empty(form, (M, K), total if form.tensor_scale else None) for _ in xs]
        backs = [torch.empty_like(x) for x in xs]
        for x, out in zip(xs, outs, strict=True):
            prepare_copy(x, out).launch()
        ours = [prepare_copy(out, back) for out, back in zip(outs, backs, strict=True)]
        ours[0].launch()
        ours[0].check()
        row = Row(f"{name} {M}x{K}", ours[0].bytes, {"ours": [one.launch for one in ours]})
        rows = min(SAMPLE, M)
        sample, back = unset(form, (rows, K), outs[0].tensor_scale), np.zeros((rows, K), ml_dtypes.bfloat16)
        cute.copy(host_of(xs[0][:rows]), sample)
        cute.copy(sample, back)
        right = np.array_equal(back.view(np.uint16), host_of(backs[0][:rows]).view(np.uint16))
        bench.time(row)["equal"] = bool(right)


TRAFFIC: Final = {
    "2 bytes to 1": (16, 8),
    "2 bytes to half a byte": (16, 4),
    "1 byte to 2": (8, 16),
    "half a byte to 2": (4, 16),
}
"""Bytes that a thread reads and writes at once: kernels without arithmetic, which bound those that compute."""
TRAFFIC_BODY: Final = r"""
typedef u32 Words1; typedef uint2 Words2; typedef uint4 Words4;
__device__ __forceinline__ u32 first(u32 x) { return x; }
__device__ __forceinline__ u32 first(uint2 x) { return x.x ^ x.y; }
__device__ __forceinline__ u32 first(uint4 x) { return x.x ^ x.y ^ x.z ^ x.w; }
__device__ __forceinline__ void set(u32& y, u32 x) { y = x; }
__device__ __forceinline__ void set(uint2& y, u32 x) { y = make_uint2(x, x); }
__device__ __forceinline__ void set(uint4& y, u32 x) { y = make_uint4(x, x, x, x); }
extern "C" __global__ void __launch_bounds__(THREADS) traffic(const @READ@* source, @WRITE@* destination) {
  const u64 at = (u64)blockIdx.x * (THREADS * EACH) + threadIdx.x;
  @READ@ x[EACH];
#pragma unroll
  for (u32 i = 0; i < EACH; ++i) x[i] = __ldg(source + at + i * THREADS);
#pragma unroll
  for (u32 i = 0; i < EACH; ++i) set(destination[at + i * THREADS], first(x[i]));
}
"""


def traffic_rows(bench: Bench, count: int = 1 << 28) -> None:
    """Kernels that read and write as many bytes as casts of 2^28 elements, without arithmetic."""
    from cute_py.gpu.kernels.source import TYPES, make_kernel
    from cute_py.gpu.launch import Parameters, PreparedLaunch, load_kernel

    device = open_device()
    for name, (read, write) in TRAFFIC.items():
        elements = read * 8 // (4 if name.startswith("half") else 8 if name.startswith("1") else 16)
        body = TRAFFIC_BODY.replace("@READ@", f"Words{read // 4}").replace("@WRITE@", f"Words{write // 4}")
        for each in (1, 2, 4):
            constants = {"THREADS": 256, "EACH": each}
            kernel = make_kernel("traffic", body, constants, 0, ("source", "destination"), prelude=TYPES)
            loaded, blocks = load_kernel(kernel, device), count // elements // (256 * each)
            sizes = count // elements * read, count // elements * write
            half = bench.pool.numel() // 2
            works = []
            for i in range(2):
                places = bench.pool[i * half :].data_ptr(), bench.pool[i * half + sizes[0] :].data_ptr()
                works.append(PreparedLaunch(loaded, blocks, Parameters(places)).launch)
            bench.time(Row(f"{name}, no arithmetic, {each} a thread", sum(sizes), {"ours": works}))


ORDERS: Final = (("linear", "32_4_4"), ("32_4_4", "linear"), ("32_4_4", "8x4"))


def other_orders(bench: Bench, M: int, K: int) -> None:
    """MXFP8 whose scales change their order, data and scales in one launch."""
    x = bench.numbers(M, K)
    for before, after in ORDERS:
        first, second = (formats.mxfp8(scales=order) for order in (before, after))
        sources, outs = ([bench.empty(form, (M, K), None) for _ in range(2)] for form in (first, second))
        for one in sources:
            prepare_copy(x, one).launch()
        ours = [prepare_copy(one, out) for one, out in zip(sources, outs, strict=True)]
        ours[0].launch()
        ours[0].check()
        row = Row(f"scales {before} to {after} {M}x{K}", ours[0].bytes, {"ours": [one.launch for one in ours]})
        bench.time(row)["equal"] = agrees(x, outs[0])


CACHE: Final = {"L": 32, "B": 512, "H": 8, "N": 16, "C": 128}
"""A KV cache of 512 MiB in bfloat16."""


def cache_orders(bench: Bench) -> None:
    """KV caches between the orders of their modes, and pages by a table; beside PyTorch's copy and index_select."""
    torch = bench.torch
    sizes = tuple(CACHE[letter] for letter in "LBHNC")
    count = int(np.prod(sizes))
    for before, after in (("LBHNC", "LBNHC"), ("LBNHC", "BLHNC"), ("BHLNC", "LBNHC")):
        layouts = [formats.kv_cache_layout(order, CACHE) for order in (before, after)]
        sources, outs = ([torch.randn(count, device="cuda").bfloat16() for _ in range(2)] for _ in range(2))
        ours = [
            prepare_copy((a, layouts[0]), (b, layouts[1]), dtype="bfloat16") for a, b in zip(sources, outs, strict=True)
        ]
        ours[0].launch()
        ours[0].check()
        steps = [tuple(int(d) for d in one.stride) for one in layouts]
        views = [
            [one.as_strided(sizes, step) for one in group] for group, step in zip((sources, outs), steps, strict=True)
        ]
        row = Row(f"KV cache {before} to {after}", 4 * count, {"ours": [one.launch for one in ours]})
        right = bool(torch.equal(views[0][0], views[1][0]))
        row.works["torch"] = [lambda a=a, b=b: b.copy_(a) for a, b in zip(*views, strict=True)]
        bench.time(row)["equal"] = right
    pages, width = CACHE["B"], count // CACHE["B"]
    cache = torch.randn(pages, width, device="cuda").bfloat16()
    outs = [torch.empty(pages, width, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
    table = torch.randperm(pages, device="cuda")
    ours = [prepare_copy(cache, out, pages=table) for out in outs]
    ours[0].launch()
    ours[0].check()
    row = Row(f"KV pages of {2 * width} B by a table", 4 * count, {"ours": [one.launch for one in ours]})
    right = bool(torch.equal(outs[0], cache[table]))
    row.works["torch"] = [lambda out=out: torch.index_select(cache, 0, table, out=out) for out in outs]
    bench.time(row)["equal"] = right


def peer_works(name: str, xs: list[Any]) -> dict[str, list[Callable[[], object]]]:
    """torchao's Triton kernels of the same job, where they are installed and run."""
    found: dict[str, list[Callable[[], object]]] = {}
    try:
        import torchao.utils

        torchao.utils.is_sm_at_least_100 = lambda: True  # kernels of rule floor assemble on sm_90 too
        if name == "MXFP8 rows, floor, 32_4_4":
            from torchao.prototype.mx_formats.kernels import triton_to_mxfp8_dim0

            found["torchao"] = [
                lambda x=x: triton_to_mxfp8_dim0(x, inner_block_size=32, scaling_mode="floor") for x in xs
            ]
        elif name == "MXFP8 columns, floor, transposed":
            from torchao.prototype.mx_formats.kernels import triton_to_mxfp8_dim1

            found["torchao"] = [
                lambda x=x: triton_to_mxfp8_dim1(x, inner_block_size=32, scaling_mode="floor") for x in xs
            ]
        elif name in ("1 x 128", "128 x 1", "128 x 128, transposed", "1 x 128, transposed"):
            from torchao.prototype.blockwise_fp8_training import kernels as blockwise

            call = {
                "1 x 128": blockwise.triton_fp8_blockwise_act_quant_lhs,
                "128 x 1": blockwise.triton_fp8_blockwise_act_quant_rhs,
                "1 x 128, transposed": blockwise.triton_fp8_blockwise_act_quant_transposed_lhs,
                "128 x 128, transposed": blockwise.triton_fp8_blockwise_weight_quant_transposed_rhs,
            }[name]
            found["torchao"] = [lambda x=x: call(x, 128) for x in xs]
        for works in found.values():
            works[0]()
    except Exception as problem:  # a peer that is missing, or does not run here
        print("no peer for", name, repr(problem)[:200], flush=True)
        return {}
    return found


def compiled_works(name: str, xs: list[Any]) -> dict[str, list[Callable[[], object]]]:
    """torch.compile of the same job written in PyTorch, or of torchao's reference of it."""
    import torch

    def of_blocks(x: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[Any, Any]:
        wide = x.view(shape).float()
        scale = wide.abs().amax(axes, keepdim=True) / 448.0
        return (wide / scale).to(torch.float8_e4m3fn).view(x.shape), scale

    M, K = xs[0].shape
    try:
        from torchao.prototype.mx_formats.mx_tensor import ScaleCalculationMode, to_mx
        from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize

        modes, e4m3 = ScaleCalculationMode, torch.float8_e4m3fn
        total = torch.ones((), device="cuda")
        jobs: dict[str, Callable[[Any], Any]] = {
            "cast to e4m3": lambda x: x.to(e4m3),
            "cast to e4m3, transposed": lambda x: x.t().contiguous().to(e4m3),
            "MXFP8 rows, floor, 32_4_4": lambda x: to_mx(x, e4m3, 32, modes.FLOOR, True),
            "MXFP8 rows, rceil, linear": lambda x: to_mx(x, e4m3, 32, modes.RCEIL),
            "MXFP8 columns, floor, transposed": lambda x: to_mx(x.t().contiguous(), e4m3, 32, modes.FLOOR, True),
            "MXFP4 rows, 32_4_4": lambda x: to_mx(x, torch.float4_e2m1fn_x2, 32, modes.RCEIL, True),
            "NVFP4 rows, 32_4_4": lambda x: nvfp4_quantize(x, 16, total),
            "a scale a row": lambda x: of_blocks(x, (M, K), (1,)),
            "1 x 128": lambda x: of_blocks(x, (M, K // 128, 128), (2,)),
            "128 x 1": lambda x: of_blocks(x, (M // 128, 128, K), (1,)),
            "128 x 128": lambda x: of_blocks(x, (M // 128, 128, K // 128, 128), (1, 3)),
        }
        if name not in jobs:
            return {}
        run = torch.compile(jobs[name], dynamic=False)
        run(xs[0])
    except Exception as problem:  # a peer that is missing, or does not compile here
        print("not compiled:", name, repr(problem)[:200], flush=True)
        return {}
    return {"torch.compile": [lambda x=x: run(x) for x in xs]}


def indexed_rows(bench: Bench) -> None:
    """Rows gathered and scattered by a random index: 512 MiB of 1 GiB."""
    torch = bench.torch
    for width in WIDTHS:
        rows, count = (1 << 30) // width, (1 << 29) // width
        source = bench.pool[: rows * width].view(rows, width)
        outs = [torch.empty(count, width, device="cuda", dtype=torch.uint8) for _ in range(2)]
        index = [torch.randint(0, rows, (count,), device="cuda") for _ in outs]
        ours = [prepare_copy(source, out, rows=one) for out, one in zip(outs, index, strict=True)]
        ours[0].launch()
        ours[0].check()
        right = bool((outs[0] == source[index[0]]).all())
        wide = source.view(torch.int64) if width % 8 == 0 else source
        row = Row(f"gather rows of {width} B", 2 * count * width, {"ours": [one.launch for one in ours]})
        row.works["torch"] = [lambda one=one, wide=wide: torch.index_select(wide, 0, one) for one in index]
        bench.time(row)["equal"] = right
        target = torch.zeros(rows, width, device="cuda", dtype=torch.uint8)
        perms = [torch.randperm(rows, device="cuda")[:count] for _ in outs]
        sources = [source[:count], source[count : 2 * count]]
        ours = [prepare_copy(a, target, into_rows=one) for a, one in zip(sources, perms, strict=True)]
        ours[0].launch()
        ours[0].check()
        right = bool((target[perms[0]] == sources[0]).all())
        bench.time(Row(f"scatter rows of {width} B", 2 * count * width, {"ours": [one.launch for one in ours]}))[
            "equal"
        ] = right
        del target, outs


def random_jobs(jobs: int, seconds: float, seed: int) -> dict[str, Any]:
    """Random small jobs whose bytes are compared with the host's."""
    dice, begin, wrong, done = random.Random(seed), time.monotonic(), list[str](), 0
    rng = np.random.default_rng(seed)
    kinds = {"float32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}
    forms = [form for _, group in FORMATS for form in group] + list(OTHERS)
    while done < jobs and time.monotonic() - begin < seconds:
        form, kind = dice.choice(forms), dice.choice(("bf16", "bf16", "f16", "float32"))
        M, K = dice.choice((1, 7, 64, 130, 256)), dice.choice((16, 96, 256, 300, 512, 1000))
        with np.errstate(all="ignore"):
            spread = np.exp2(rng.integers(-30, 30, (M, K)) * dice.random())
            x = (rng.standard_normal((M, K)) * spread).astype(kinds[kind])
        x[rng.random((M, K)) < 0.02] = 0
        if form.tensor_scale:
            x[np.isinf(x)] = 1  # float16 overflows, and a tensor scale is finite
        if dice.random() < 0.2 and form.scale_rule != "nvfp4":
            x[dice.randrange(M), dice.randrange(K)] = dice.choice((np.nan, np.inf, -np.inf))
        index = rng.integers(-1, M, dice.choice((1, 33, 200))) if dice.random() < 0.15 else None
        if form.transposed or form.block[1] is None or form.block[0] != 1:
            index = None
        try:
            if not one_job(x, form, index, dice.random() < 0.3 and not form.transposed):
                wrong.append(f"{form} {kind} {x.shape} index {index is not None}")
        except CuteError as problem:
            wrong.append(f"{form} {kind} {x.shape} {problem}")
        done += 1
    return {"jobs": done, "wrong": len(wrong), "first": wrong[:20], "seconds": round(time.monotonic() - begin, 1)}


def one_job(x: Any, form: Format, index: Any, back: bool) -> bool:
    """Whether a quantised matrix, and the numbers that it gives back, are the host's."""
    with np.errstate(all="ignore"):
        want = cute.copy(x, form, rows=index)
        got = unset(form, (want.shape[0], want.shape[1]), want.tensor_scale)
        if form.tensor_scale:  # its reciprocal is another one where the scale is given
            want = unset(form, (want.shape[0], want.shape[1]), want.tensor_scale)
            cute.copy(x, want, rows=index)
        cute.copy(x, got, rows=index, backend="cuda")
        same = np.array_equal(want.data.view(np.uint8), got.data.view(np.uint8))
        same = same and np.array_equal(want.scales.reshape(-1).view(np.uint8), got.scales.view(np.uint8))
        if same and back:
            here, there = (np.zeros(want.shape, x.dtype) for _ in range(2))
            cute.copy(want, here)
            cute.copy(got, there, backend="cuda")
            same = np.array_equal(here.view(np.uint8), there.view(np.uint8))
    return bool(same)


def jobs_in_parallel(jobs: int, seconds: float) -> dict[str, Any]:
    """The random jobs in processes of their own, each with its own context."""
    each = -(-jobs // WORKERS)
    command = [sys.executable, "-m", "benchmarks.formats", "--jobs", str(each), "--seconds", str(seconds), "--worker"]
    workers = [subprocess.Popen([*command, str(41 + i)], stdout=subprocess.PIPE, text=True) for i in range(WORKERS)]
    total: dict[str, Any] = {"jobs": 0, "wrong": 0, "first": [], "seconds": 0.0}
    for worker in workers:
        try:
            text = worker.communicate(timeout=seconds + 60)[0].strip().splitlines()[-1]
            found = json.loads(text)
        except (subprocess.TimeoutExpired, IndexError, ValueError) as problem:
            worker.kill()
            found = {"jobs": 0, "wrong": 0, "first": [f"a worker failed: {problem!r}"], "seconds": 0.0}
        for name in ("jobs", "wrong", "first"):
            total[name] += found[name]
        total["seconds"] = max(total["seconds"], found["seconds"])
    print(total, flush=True)
    return total


def small_graphs(bench: Bench) -> None:
    """Nodes of a graph of 32 small copies, beside memcpy nodes of as many bytes."""
    torch = bench.torch
    stream = torch.cuda.Stream()
    for M in (1, 4, 16, 64, 128, 192, 256, 384, 512, 768, 1024):
        for name, form in (("MXFP8", formats.mxfp8()), ("NVFP4", formats.nvfp4())):
            x = bench.numbers(M, 7168)
            out = bench.empty(form, (M, 7168), 1.0 if form.tensor_scale else None)
            ours = prepare_scaled(x, out)
            half = ours.bytes // 2 // 16 * 16
            parts = bench.pool[: 2 * half].view(2, half)
            memcpy = graph_time(torch, stream, partial(parts[1].copy_, parts[0]))
            us = graph_time(torch, stream, partial(ours.launch, stream.cuda_stream))
            found = {"row": f"{name} {M}x7168 in a graph", "bytes": ours.bytes, "ours us": us, "memcpy us": memcpy}
            found["times of memcpy"] = round(us / memcpy, 2)
            found["idle us"] = graph_time(torch, stream, idle_launch(ours.work.launch, stream.cuda_stream))
            bench.results.append(found)
            print(found, flush=True)


IDLE_BODY: Final = """
extern "C" __global__ void __launch_bounds__(THREADS) idle(u64* out) {
  await_previous();
  allow_next();
  if (!out) *out = 0;
}
"""


def idle_launch(like: ScaledLaunch, stream: int) -> Callable[[], object]:
    """A kernel with the grid of another one that does nothing: the least time of a node."""
    from cute_py.gpu.kernels.source import AWAIT, TYPES, make_kernel
    from cute_py.gpu.launch import Parameters, PreparedLaunch, load_kernel

    constants = {"THREADS": like.kernel.threads}
    kernel = make_kernel("idle", IDLE_BODY, constants, 0, ("out",), prelude=TYPES + AWAIT, awaits=True)
    loaded = load_kernel(kernel, open_device())
    return PreparedLaunch(loaded, like.blocks, Parameters([1]), stream, overlaps=True).launch


def graph_time(torch: Any, stream: Any, work: Callable[[], object]) -> float:
    """Microseconds of a node of a graph of 32."""
    with torch.cuda.stream(stream):
        work()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(32):
                work()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        samples = []
        for _ in range(20):
            start.record(stream)
            graph.replay()
            end.record(stream)
            end.synchronize()
            samples.append(float(start.elapsed_time(end)) * 1000 / 32)
    return round(statistics.median(samples), 2)


PREPARED: Final = {
    "scaled_rows, MXFP8 along rows": "formats.mxfp8()",
    "scaled_rows, NVFP4 along rows": "formats.nvfp4()",
    "scaled_whole, a scale per row": "formats.fp8('row')",
    "scaled_tile, MXFP8 along columns, transposed": "formats.mxfp8(axis=0, transposed=True)",
    "scaled_tile, MXFP8 rows, and columns transposed": "(formats.mxfp8(), formats.mxfp8(axis=0, transposed=True))",
}
"""Kernels that `--prepare` plans and compiles."""
PLANNER: Final = "from cute_py import Layout, formats\nfrom cute_py.copies.scaled.format_plan import plan_formats"


def prepare_times(bench: Bench) -> None:
    """Milliseconds of plans, compilations and cubins from disk, in new processes."""
    for name, form in PREPARED.items():
        source = "Layout((512, 1024), (1024, 1))"
        taken = preparation(PLANNER, f"plan_formats({source}, {form}, 'bfloat16', None, None, None)[0].kernel")
        bench.results.append({"row": f"prepare {name}", "ms": str(taken)})
        print(name, taken, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--worker", type=int)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--traffic", action="store_true")
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()
    if options.worker is not None:
        print(json.dumps(random_jobs(options.jobs, options.seconds, options.worker)))
        return
    jobs = jobs_in_parallel(options.jobs, options.seconds / 4) if options.jobs else {}
    begin, bench = time.monotonic(), Bench(options.rounds)
    content: dict[str, Any] = {"device": open_device().name, "random jobs": jobs}
    parts: list[Callable[[], None]] = []
    for shape in options.shapes.split(",") if options.shapes else []:
        M, K = map(int, shape.split("x"))
        parts.append(lambda M=M, K=K, first=not parts: quantised_rows(bench, M, K, options.peers and first))
    if options.rows:
        parts[:0] = [
            lambda: indexed_rows(bench),
            lambda: other_orders(bench, 16384, 16384),
            lambda: cache_orders(bench),
        ]
    parts[:0] = [lambda: small_graphs(bench)] if options.small else []
    parts[:0] = [lambda: traffic_rows(bench)] if options.traffic else []
    parts[:0] = [lambda: prepare_times(bench)] if options.prepare else []
    for part in parts:
        if time.monotonic() - begin < options.seconds:
            try:
                part()
            except Exception as problem:  # the other parts are still worth their numbers
                print("FAILED", repr(problem)[:1500], flush=True)
                content.setdefault("failed", []).append(repr(problem)[:1500])
        content["rows"] = bench.results
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "formats.json").write_text(json.dumps(content, indent=1))
    names = [
        "row",
        "bytes",
        "memcpy us",
        "ours us",
        "ours %",
        "torch %",
        "torch.compile %",
        "torchao %",
        "equal",
        "times of memcpy",
        "idle us",
    ]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(str(one.get(name, "")) for name in names) + " |" for one in bench.results]
    (options.out / "formats.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
