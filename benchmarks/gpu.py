"""The executor against the memory of the GPU, and against its peers, in one run.

    PYTHONPATH=. python3 -m benchmarks.gpu [--rounds 15] [--tune] [--cute-cpp LIBRARY] [--out DIRECTORY]

Candidates of a task are interleaved, buffers rotate beyond L2, destinations are poisoned and compared bit for bit
before timing, figures are medians of CUDA events; GB/s counts bytes read plus bytes written. Needs PyTorch. Writes
gpu-<device>.json and gpu-<device>.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.gpu_host_cost import first_copies, launches
from benchmarks.gpu_peers import cute_cpp, memcpy, triton_tma, triton_transpose
from benchmarks.gpu_timing import Candidate, document, markdown, table, time_events, time_graphs, verify_all
from benchmarks.kernels.bandwidth_probe import load_only, store_only
from benchmarks.kernels.multicast import load_cluster
from cute_py.copies.boxes import Tuning
from cute_py.copies.prepared import prepare_copy
from cute_py.errors import CuteError
from cute_py.gpu.device import Device, open_device
from cute_py.gpu.kernels.source import KernelSource
from cute_py.gpu.kernels.walk import cover
from cute_py.gpu.launch import Parameters, PreparedLaunch, WaitRecord, load_kernel
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMapTiled

GIB, MIB = 2**30, 2**20
LIMIT = 4800.0
"""GB/s of the H200's memory, by its datasheet."""


class Bench:
    """The device, PyTorch, and the results so far."""

    def __init__(self, rounds: int, tune: bool, library: str = "") -> None:
        import torch

        self.torch: Any = torch
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        self.device: Device = open_device()
        self.rounds, self.tune, self.library = rounds, tune, library
        self.stream = torch.cuda.Stream()
        self.results: list[dict[str, Any]] = []

    def random(self, rows: int, columns: int) -> Any:
        """A bf16 tensor of random bits."""
        torch = self.torch
        words = torch.randint(-(2**63), 2**63 - 1, (rows, columns // 4), device="cuda", dtype=torch.int64)
        return words.view(torch.bfloat16)

    def pairs(self, count: int, rows: int, columns: int) -> list[tuple[Any, Any]]:
        return [
            (self.random(rows, columns), self.torch.empty(rows, columns, device="cuda", dtype=self.torch.bfloat16))
            for _ in range(count)
        ]

    def candidate(
        self, name: str, pairs: list[tuple[Any, Any]], run: Callable[[int], object], note: str = ""
    ) -> Candidate:
        """A candidate whose result on pair i must be pairs[i][1] == pairs[i][0] in every bit."""
        torch = self.torch

        def same(i: int) -> bool:
            source, destination = pairs[i]
            return bool(torch.equal(source.contiguous().view(torch.int16), destination.view(torch.int16)))

        return Candidate(name, run, same, lambda i: pairs[i][1].view(torch.uint8).fill_(0xA5), note=note)

    def ours(self, name: str, pairs: list[tuple[Any, Any]], **options: Any) -> Candidate | None:
        """This library, prepared for every pair; None (and a line) if it refuses."""
        try:
            prepared = [prepare_copy(a, b, device=self.device, **options) for a, b in pairs]
        except CuteError as problem:
            print(f"{name}: {problem}", flush=True)
            return None
        torch = self.torch
        for one in prepared:
            one.prepare(self.stream)

        def run(i: int) -> None:
            prepared[i].launch(torch.cuda.current_stream().cuda_stream)

        first = prepared[0]
        form = first.plans[0].form if first.plans else first.kernels[0].source.name
        note = f"{form}, {first.kernels[0].source.shared_bytes} B shared, {first.blocks[0]} blocks"
        return self.candidate(name, pairs, run, note)

    def peer(
        self, name: str, pairs: list[tuple[Any, Any]], make: Callable[[], Callable[[int], object]]
    ) -> list[Candidate]:
        try:
            run = make()
            run(0)
            self.torch.cuda.synchronize()
        except Exception as problem:
            print(f"{name}: not measured, {type(problem).__name__}: {str(problem).splitlines()[:1]}", flush=True)
            return []
        return [self.candidate(name, pairs, run)]

    def cute_cpp(self, pairs: list[tuple[Any, Any]]) -> list[Candidate]:
        """CuTe C++, where its library was given."""
        if not self.library:
            return []
        return self.peer("CuTe C++ 32x256", pairs, lambda: cute_cpp(pairs, self.library, self.torch))

    def report(self, title: str, candidates: list[Candidate], size: int, reference: str) -> None:
        result = table(title, [one for one in candidates if one.verified is not False], size, reference)
        self.results.append(result)
        print(markdown(result), flush=True)

    def tuned(self, pairs: list[tuple[Any, Any]], tunings: list[Tuning]) -> list[Candidate]:
        made = [self.ours(f"cute_py {described(t)}", pairs, tuning=t) for t in tunings]
        return [one for one in made if one is not None]


def described(t: Tuning) -> str:
    shape = f"{t.form} {t.row_bytes} B x {t.rows}"
    how = f"{t.stages}/{t.stores}/{t.per_multiprocessor}" if t.form == "ring" else f"x{t.per_block}"
    return f"{shape} {how}{' hints' * t.hints}"


def only(*candidates: Candidate | None) -> list[Candidate]:
    return [one for one in candidates if one is not None]


def large_copy(bench: Bench) -> None:
    torch, pairs = bench.torch, bench.pairs(4, 32768, 16384)
    candidates = [bench.candidate("cuMemcpyDtoD", pairs, lambda i: memcpy(pairs[i][1], pairs[i][0], GIB, torch))]
    candidates += only(bench.ours("cute_py", pairs), bench.ours("cute_py hints", pairs, hints=True))
    candidates += bench.peer("torch copy_", pairs, lambda: lambda i: pairs[i][1].copy_(pairs[i][0]))
    candidates += bench.peer("Triton TMA 16x256", pairs, lambda: triton_tma(pairs, 16, 256))
    candidates += bench.cute_cpp(pairs)
    if bench.tune:
        candidates += bench.tuned(
            pairs,
            [
                Tuning("ring", row, size // row, stages, 1, per)
                for row in (256, 512, 1024, 2048)
                for size, stages, per in ((16384, 4, 1), (16384, 3, 2), (32768, 3, 1), (32768, 4, 1), (16384, 5, 1))
            ]
            + [Tuning("once", row, size // row) for row in (512, 2048) for size in (2048, 4096, 8192) if size >= row]
            + [
                Tuning("ring", row, 16384 // row, stages, 1, per, hints=True)
                for row in (512, 2048)
                for stages, per in ((4, 1), (3, 2))
            ],
        )
    verify_all(torch, candidates, 4)
    time_events(torch, [c for c in candidates if c.verified], 4, bench.rounds)
    bench.report("copy of 1 GiB, bf16 [32768, 16384]", candidates, 2 * GIB, "cuMemcpyDtoD")


def small_copies(bench: Bench) -> None:
    torch = bench.torch
    for size, count, copies in ((8 * MIB, 1, 64), (64 * MIB, 16, 32)):
        pairs = bench.pairs(count, size // 8192, 4096)
        candidates = [
            bench.candidate("cuMemcpyDtoD", pairs, lambda i, p=pairs, s=size: memcpy(p[i][1], p[i][0], s, torch))
        ]
        candidates += only(bench.ours("cute_py", pairs), bench.ours("cute_py hints", pairs, hints=True))
        candidates += bench.peer("torch copy_", pairs, lambda p=pairs: lambda i: p[i][1].copy_(p[i][0]))
        candidates += bench.cute_cpp(pairs)
        if bench.tune:
            candidates += bench.tuned(
                pairs,
                [
                    Tuning("once", row, total // row, per_block=per)
                    for row in (256, 512, 2048)
                    for total, per in ((4096, 1), (8192, 1), (16384, 1), (8192, 2), (8192, 4), (4096, 4))
                ],
            )
        verify_all(torch, candidates, count)
        time_graphs(torch, bench.stream, [c for c in candidates if c.verified], count, bench.rounds, copies)
        where = "one pair, in L2" if count == 1 else f"{count} pairs in turn"
        bench.report(
            f"copy of {size // MIB} MiB, graph of {copies} copies, {where}", candidates, 2 * size, "cuMemcpyDtoD"
        )


def transposes(bench: Bench) -> None:
    torch = bench.torch
    bits = [
        (bench.random(32768, 16384), torch.empty(16384, 32768, device="cuda", dtype=torch.bfloat16)) for _ in range(4)
    ]
    flat = [(a.view(-1), b.view(-1)) for a, b in bits]
    turned = [(a.t(), b) for a, b in bits]
    candidates = only(bench.ours("cute_py", turned), bench.ours("cute_py hints", turned, hints=True))
    candidates += bench.peer("Triton pointers, tl.trans 128x128", turned, lambda: triton_transpose(bits))
    candidates += bench.peer("torch copy_(x.t())", turned, lambda: lambda i: turned[i][1].copy_(turned[i][0]))
    reference = bench.candidate("cuMemcpyDtoD", flat, lambda i: memcpy(flat[i][1], flat[i][0], GIB, torch))
    verify_all(torch, [*candidates, reference], 4)
    time_events(torch, [c for c in candidates if c.verified] + [reference], 4, bench.rounds)
    bench.report("transpose, bf16 [32768, 16384] -> [16384, 32768]", [*candidates, reference], 2 * GIB, "cuMemcpyDtoD")
    for dtype, columns in ((torch.int32, 8192), (torch.uint8, 32768), (torch.int64, 4096)):
        wide = [(a.view(dtype), torch.empty(columns, 32768, device="cuda", dtype=dtype)) for a, _ in bits[:2]]
        other = [(a.t(), b) for a, b in wide]
        more = only(bench.ours("cute_py", other))
        reference = bench.candidate("cuMemcpyDtoD", flat, lambda i: memcpy(flat[i][1], flat[i][0], GIB, torch))
        for one in more:
            one.verify = lambda i, o=other: bool(torch.equal(o[i][0], o[i][1]))
        verify_all(torch, more, 2)
        time_events(torch, [c for c in more if c.verified] + [reference], 2, bench.rounds)
        bench.report(
            f"transpose, {str(dtype).split('.')[-1]} [32768, {columns}]", [*more, reference], 2 * GIB, "cuMemcpyDtoD"
        )


def slices(bench: Bench) -> None:
    torch = bench.torch
    pairs = [(a[::2], b[:16384]) for a, b in bench.pairs(4, 32768, 16384)]
    dense = [(a[:16384], b[:16384]) for a, b in bench.pairs(4, 16384, 16384)]
    half = GIB // 2
    candidates = only(bench.ours("cute_py", pairs), bench.ours("cute_py hints", pairs, hints=True))
    candidates += bench.peer("torch copy_", pairs, lambda: lambda i: pairs[i][1].copy_(pairs[i][0]))
    reference = bench.candidate(
        "cuMemcpyDtoD", dense, lambda i: memcpy(dense[i][1], dense[i][0], half, torch), "of a dense tensor of this size"
    )
    if bench.tune:
        candidates += bench.tuned(
            pairs,
            [
                Tuning("once", row, size // row)
                for row in (512, 1024, 2048)
                for size in (2048, 4096, 8192, 16384)
                if size >= row
            ]
            + [Tuning("ring", row, 16384 // row, 4, 1, 1) for row in (512, 1024, 2048)],
        )
    verify_all(torch, [*candidates, reference], 4)
    time_events(torch, [c for c in candidates if c.verified] + [reference], 4, bench.rounds)
    bench.report("every other row of bf16 [32768, 16384]", [*candidates, reference], 2 * half, "cuMemcpyDtoD")


def windows(bench: Bench) -> None:
    torch, side = bench.torch, 4096
    source = bench.random(32768, 16384)
    places = [((2 * i + 1) * 901 % 28000 | 1, (i * 733 % 12000) | 1) for i in range(16)]
    for name, step in (("odd column", 0), ("column a multiple of 64", 64)):
        pairs = []
        for row, column in places:
            left = column if not step else column // step * step
            pairs.append(
                (
                    source[row : row + side, left : left + side],
                    torch.empty(side, side, device="cuda", dtype=torch.bfloat16),
                )
            )
        dense = [(bench.random(side, side), b) for _, b in pairs]
        candidates = only(bench.ours("cute_py", pairs), bench.ours("cute_py hints", pairs, hints=True))
        candidates += bench.peer("torch copy_", pairs, lambda p=pairs: lambda i: p[i][1].copy_(p[i][0]))
        reference = bench.candidate(
            "cuMemcpyDtoD",
            dense,
            lambda i, d=dense: memcpy(d[i][1], d[i][0], 32 * MIB, torch),
            "of a dense tensor of this size",
        )
        if bench.tune and step:
            candidates += bench.tuned(
                pairs,
                [
                    Tuning("once", row, size // row)
                    for row in (256, 512, 1024, 2048)
                    for size in (2048, 4096, 8192, 16384)
                    if size >= row
                ],
            )
        verify_all(torch, [*candidates, reference], 16)
        time_graphs(torch, bench.stream, [c for c in candidates if c.verified] + [reference], 16, bench.rounds, 32)
        bench.report(
            f"window [4096, 4096] of bf16 [32768, 16384], {name}", [*candidates, reference], 64 * MIB, "cuMemcpyDtoD"
        )


def oneway(bench: Bench) -> None:
    torch, sms = bench.torch, bench.device.multiprocessors
    buffers = [bench.random(32768, 16384) for _ in range(4)]
    record = WaitRecord(bench.device)

    def made(name: str, kernel: KernelSource, blocks: int, box: tuple[int, int], extra: tuple[int, ...]) -> Candidate:
        loaded = load_kernel(kernel, bench.device)
        shots = []
        for buffer in buffers:
            tensor_map = encode(TensorMapTiled(1, buffer.data_ptr(), (16384, 32768), (32768,), box, l2_promotion=2))
            shots.append(
                PreparedLaunch(loaded, blocks, Parameters((tensor_map, buffer.data_ptr(), *extra, record.address)))
            )
        return Candidate(name, lambda i: shots[i].launch())

    loads = []
    for box, stages, per in (
        ((256, 32), 4, 2),
        ((256, 64), 6, 1),
        ((256, 32), 6, 2),
        ((256, 32), 8, 1),
        ((128, 64), 4, 2),
        ((256, 16), 8, 2),
    ):
        size = box[0] * box[1] * 2
        kernel = load_only(cover((16384, 32768), box), size, blocks=sms * per, stages=stages)
        loads.append(made(f"load, TMA {box[0]}x{box[1]}, {stages} stages, {per} a SM", kernel, sms * per, box, ()))
    flat = cover((GIB // 16384,), (1,))
    for stages, per in ((8, 1), (6, 2), (12, 1)):
        kernel = load_only(flat, 16384, blocks=sms * per, stages=stages, bulk=True)
        loads.append(made(f"load, bulk 16 KiB, {stages} stages, {per} a SM", kernel, sms * per, (256, 32), ()))
    time_events(torch, loads, 4, bench.rounds)
    record.check("load_only")
    loads.append(Candidate("datasheet", lambda i: None, samples=[GIB / LIMIT / 1000]))
    bench.report("load only, 1 GiB", loads, GIB, "datasheet")
    stores = []
    for box, stages, per in (((256, 32), 4, 1), ((256, 32), 2, 2), ((256, 64), 2, 1)):
        kernel = store_only(cover((16384, 32768), box), box[0] * box[1] * 2, blocks=sms * per, stages=stages)
        stores.append(
            made(f"store, TMA {box[0]}x{box[1]}, {stages} at a time, {per} a SM", kernel, sms * per, box, (0x5A5A,))
        )
    kernel = store_only(flat, 16384, blocks=sms, stages=4, bulk=True)
    stores.append(made("store, bulk 16 KiB, 4 at a time", kernel, sms, (256, 32), (0x5A5A,)))
    for one in stores:  # Words run from 0x5A5A in every tile.
        one.poison = lambda i: buffers[i].view(torch.uint8).fill_(0xA5)

        def covered(i: int) -> bool:
            words = buffers[i].view(torch.int32)
            return bool(((words >= 0x5A5A) & (words < 0x5A5A + 8192)).all())

        one.verify = covered
    verify_all(torch, stores, 1)
    time_events(torch, [c for c in stores if c.verified], 4, bench.rounds)
    stores.append(Candidate("datasheet", lambda i: None, samples=[GIB / LIMIT / 1000]))
    bench.report("store only, 1 GiB", stores, GIB, "datasheet")


def clusters(bench: Bench) -> None:
    """Bytes delivered to shared memory; with multicast a CTA issues one slice of a tile."""
    torch, sms = bench.torch, bench.device.multiprocessors
    record = WaitRecord(bench.device)
    for title, rows, passes in (("in L2, 16 MiB", 512, 60), ("from memory, 1 GiB", 32768, 1)):
        buffer = bench.random(rows, 16384)
        group = []
        for cluster, multicast, stages in (
            (1, False, 6),
            (2, False, 6),
            (2, True, 6),
            (4, False, 6),
            (4, True, 6),
            (4, False, 7),
            (4, True, 7),
        ):
            count = {1: sms, 2: 66, 4: 30}[cluster]
            walk = cover((16384, rows), (256, 64))
            kernel = load_cluster(
                walk,
                32768,
                (0, 64 // cluster),
                cluster=cluster,
                clusters=count,
                stages=stages,
                multicast=multicast,
                passes=passes,
            )
            tensor_map = encode(
                TensorMapTiled(1, buffer.data_ptr(), (16384, rows), (32768,), (256, 64 // cluster), l2_promotion=2)
            )
            shot = PreparedLaunch(
                load_kernel(kernel, bench.device), count * cluster, Parameters((tensor_map, 0, 0, record.address))
            )
            name = f"{cluster} CTAs, {'multicast' if multicast else 'separate'}, {stages} stages"
            group.append((Candidate(name, lambda i, s=shot: s.launch()), cluster))
        time_events(torch, [one for one, _ in group], 1, bench.rounds, 2)
        record.check("load_cluster")
        size = rows * 32768 * passes
        delivered = [
            {
                "what": c.name,
                "us": round(c.microseconds, 2),
                "delivered GB/s": round(size * n / c.microseconds / 1000),
                "spread %": round(100 * c.spread, 2),
            }
            for c, n in group
        ]
        bench.results.append({"task": f"cluster loads of 32 KiB tiles, {title}", "bytes": size, "rows": delivered})
        print(
            f"### cluster loads of 32 KiB tiles, {title}\n", *(str(row) for row in delivered), "", sep="\n", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tune", action="store_true", help="also time the tunings that the defaults were chosen from")
    parser.add_argument("--cute-cpp", type=Path, help="the peer in CuTe C++: cute_cpp_peer.cu as a shared library")
    parser.add_argument("--only", default="", help="names of tasks, separated by commas")
    parser.add_argument("--out", type=Path, default=Path("build"))
    options = parser.parse_args()
    started = time.perf_counter()
    host = first_copies() if "host" in options.only or not options.only else {}
    bench = Bench(options.rounds, options.tune, str(options.cute_cpp.resolve()) if options.cute_cpp else "")
    torch = bench.torch
    tasks = {
        "large": large_copy,
        "small": small_copies,
        "transpose": transposes,
        "slices": slices,
        "windows": windows,
        "oneway": oneway,
        "clusters": clusters,
    }
    for name, task in tasks.items():
        if not options.only or name in options.only.split(","):
            try:
                task(bench)
            except CuteError as problem:
                print(f"{name} FAILED: {problem}", flush=True)
            torch.cuda.empty_cache()
    calls = launches(torch) if host else {}
    print(json.dumps({"first copy, ms": host, "launch, us": calls}, indent=1), flush=True)
    device = bench.device
    data = {
        "device": device.name,
        "driver": device.driver_version,
        "torch": torch.__version__,
        "rounds": options.rounds,
        "seconds": round(time.perf_counter() - started, 1),
        "tasks": bench.results,
        "first copy of a process, ms": host,
        "launch, us a call": calls,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    stem = f"gpu-{device.name.lower().replace(' ', '-').replace('nvidia-', '')}"
    (options.out / f"{stem}.json").write_text(json.dumps(data, indent=1) + "\n")
    (options.out / f"{stem}.md").write_text(document(data))


if __name__ == "__main__":
    main()
