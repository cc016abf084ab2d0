"""Redistribution between two GPUs of one host, beside memcpyPeer, JAX, DTensor and NCCL's all_to_all, in one run.

    python -m benchmarks.mesh               one process for both: ours, memcpyPeer, and JAX where it is installed
    python -m benchmarks.mesh --ranks       one process for each: DTensor, all_to_all_single with pack, ours over NCCL

A peer that is not installed, or a machine with one GPU, is a row that says 'not run'. Times are medians of --repeat
runs, each from an idle device to an idle device; of short copies also the time of one of many that follow each other,
and what the host takes for one. memcpyPeer moves what crosses, in the same directions at once, and nothing that a
device keeps; it orders one stream, and is measured before and after the devices have access to each other.
"""

from __future__ import annotations

import argparse
import functools
import os
import socket
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

from cute_py.errors import CuteError
from cute_py.gpu.bindings import call, driver
from cute_py.gpu.device import device_count, open_device
from cute_py.mesh import (
    BlockCyclic,
    Placement,
    Replicate,
    SectionedShard,
    Shard,
    StridedShard,
    Zigzag,
    distribute,
    redistribute,
)
from cute_py.mesh.sharded_layout import Local

CASES: dict[str, tuple[Placement, Placement, Local]] = {
    "Shard(0) -> Shard(1)": (Shard(0), Shard(1), "row"),
    "Shard(1) -> Shard(0)": (Shard(1), Shard(0), "row"),
    "Shard(0) -> Shard(1), transposed": (Shard(0), Shard(1), "column"),
    "Shard(0) -> Replicate": (Shard(0), Replicate(), "row"),
    "Shard(1) -> Replicate": (Shard(1), Replicate(), "row"),
    "block-cyclic 256 -> Shard(0)": (BlockCyclic(0, 256), Shard(0), "row"),
    "Shard(0) -> zigzag": (Shard(0), Zigzag(0), "row"),
    "zigzag -> Shard(1)": (Zigzag(0), Shard(1), "row"),
    "fused QKV -> Shard(0)": (SectionedShard(0, (16384, 8192, 8192)), Shard(0), "row"),
    "strided -> Shard(0)": (StridedShard(0, 4), Shard(0), "row"),
}
SHAPE = (32768, 16384)
DTENSOR = {"Shard(0) -> Shard(1)", "Shard(1) -> Shard(0)", "Shard(0) -> Replicate", "Shard(1) -> Replicate"}
SHORT = [1 << n for n in (12, 14, 16, 18, 20)]
BURST = 500
"""Short copies that follow each other."""
GPUS = ("cuda:0", "cuda:1")


@dataclass(frozen=True)
class Alone:
    """All of a dimension on one device."""

    dim: int
    device: int

    def pieces(self, size: int, parts: int, part: int) -> Any:
        return numpy.array([[0, size if part == self.device else 0]])


def median_of(run: Callable[[], object], wait: Callable[[], object], repeat: int) -> float:
    """Seconds."""
    for _ in range(3):
        run()
    wait()
    taken = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        wait()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def row(case: str, who: str, seconds: float | None, moved: int, note: str = "") -> None:
    if seconds is None:
        print(f"{case:34} {who:26} not run: {note}")
    else:
        print(f"{case:34} {who:26} {seconds * 1e3:8.4f} ms {moved / seconds / 1e9:7.1f} GB/s {note}", flush=True)


class Pair:
    """A prepared redistribution between two GPUs of this process, and copies by memcpyPeer of as many bytes."""

    def __init__(
        self, torch: Any, before: Placement, after: Placement, shape: tuple[int, ...], local: Any = "row", sms: int = 16
    ) -> None:
        source, goal = distribute(shape, 2, [before]), distribute(shape, 2, [after], local=local)
        plan = redistribute(source, goal, "bf16")
        self.torch = torch
        self.source, self.goal = [
            {d: torch.zeros(side.local_shape(d), dtype=torch.bfloat16, device=GPUS[d]) for d in (0, 1)}
            for side in (source, goal)
        ]
        self.wait()
        self.launch: Callable[..., None] = lambda *stream: None
        self._plan, self._sms = plan, sms
        self.each = {0: 0, 1: 0}
        """Bytes that leave each device."""
        for t in plan.transfers():
            if t.source_device != t.destination_device:
                self.each[t.source_device] += 2 * t.elements
        contexts = [open_device(d).context for d in (0, 1)]
        self._streams = [torch.cuda.Stream(gpu) for gpu in GPUS]
        self._copies = []
        for d, size in self.each.items():
            ends = (self.goal[1 - d].data_ptr(), contexts[1 - d], self.source[d].data_ptr(), contexts[d])
            most = min(size, self.source[d].nbytes, self.goal[1 - d].nbytes)
            if size:
                self._copies.append((*ends, most, driver().CUstream(self._streams[d].cuda_stream)))

    def prepare(self) -> Pair:
        """The devices have access to each other from here on."""
        self.launch = self._plan.prepare(self.source, self.goal, backend="peer", sms=self._sms).launch
        return self

    def wait(self) -> None:
        self.torch.cuda.synchronize(0)
        self.torch.cuda.synchronize(1)

    def copy(self) -> None:
        for where in self._copies:
            call("memcpyPeer", driver().cuMemcpyPeerAsync, *where)

    def host_time(self, run: Callable[[], object], repeat: int) -> float:
        """Seconds until it returns."""
        taken = []
        for _ in range(repeat):
            self.wait()
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
        self.wait()
        return statistics.median(taken)

    def short(self, case: str, who: str, run: Callable[[], object]) -> None:
        """A row of a short copy."""
        taken = []
        for _ in range(5):
            self.wait()
            start = time.perf_counter()
            for _ in range(BURST):
                run()
            self.wait()
            taken.append((time.perf_counter() - start) / BURST)
        alone = median_of(run, self.wait, 200)
        note = f"idle to idle {alone * 1e6:.1f} us, host {self.host_time(run, 200) * 1e6:.1f} us"
        row(case, who, min(taken), self.each[0], note)


def one_process(torch: Any, repeat: int, sms: int) -> None:
    """Ours and memcpyPeer: the cases, one way, short ones, and what a launch costs the host."""
    short = {size: Pair(torch, Alone(0, 0), Alone(0, 1), (size // 2,)) for size in SHORT}
    for size, pair in short.items():
        pair.short(f"one way, {size} bytes", "memcpyPeer, no access", pair.copy)
    for case, (before, after, local) in CASES.items():
        pair = Pair(torch, before, after, SHAPE, local, sms).prepare()
        most = max(pair.each.values())
        row(
            case,
            "cute_py",
            median_of(pair.launch, pair.wait, repeat),
            most,
            f"host {pair.host_time(pair.launch, 9) * 1e6:.1f} us",
        )
        row(case, "memcpyPeer", median_of(pair.copy, pair.wait, repeat), most)
        del pair
    for n in (16, 132):
        pair = Pair(torch, Alone(0, 0), Alone(0, 1), (1 << 28,), sms=n).prepare()
        row("one way, 512 MiB", f"cute_py, {n} SMs", median_of(pair.launch, pair.wait, repeat), pair.each[0])
    row("one way, 512 MiB", "memcpyPeer", median_of(pair.copy, pair.wait, repeat), pair.each[0])
    for size, pair in short.items():
        pair.prepare()
        streams = dict(enumerate(pair._streams))
        pair.short(f"one way, {size} bytes", "cute_py, default streams", pair.launch)
        pair.short(f"one way, {size} bytes", "cute_py, two streams", functools.partial(pair.launch, streams))
        pair.short(f"one way, {size} bytes", "cute_py, one stream", functools.partial(pair.launch, streams[0]))
        pair.short(f"one way, {size} bytes", "memcpyPeer", pair.copy)
    pair = Pair(torch, Shard(0), Shard(1), (1024, 1024)).prepare()
    for who, run in (
        ("default streams", pair.launch),
        ("two streams", functools.partial(pair.launch, dict(enumerate(pair._streams)))),
    ):
        print(f"{'a launch, 1024 x 1024':34} {who:26} host {pair.host_time(run, 200) * 1e6:8.1f} us")


def jax_rows(repeat: int) -> None:
    case = "Shard(0) -> Shard(1)"
    try:
        import jax
    except ImportError:
        row(case, "JAX jit reshard", None, 0, "jax is not installed")
        return
    if len(jax.devices()) < 2 or jax.default_backend() != "gpu":
        row(case, "JAX jit reshard", None, 0, "jax has no two GPUs")
        return
    mesh = jax.sharding.Mesh(jax.devices()[:2], "x")
    rows, columns = [
        jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*one)) for one in (("x", None), (None, "x"))
    ]
    x = jax.device_put(jax.numpy.zeros(SHAPE, jax.numpy.bfloat16), rows)
    change = jax.jit(lambda x: x, out_shardings=columns)
    seconds = median_of(lambda: change(x).block_until_ready(), lambda: None, repeat)
    row(case, "JAX jit reshard", seconds, x.nbytes // 4)


def one_rank(rank: int, world: int, port: int, repeat: int) -> None:
    """A process for each device: DTensor, all_to_all_single with pack and unpack, and ours over the process group."""
    os.environ.update(NCCL_NVLS_ENABLE="0", TORCH_SYMM_MEM_DISABLE_MULTICAST="1")  # no NVLink multicast
    import torch
    import torch.distributed as dist
    from torch.distributed import tensor as dtensor

    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    mesh = dist.init_device_mesh("cuda", (world,))

    def exchange(part: Any) -> Any:
        packed = part.reshape(-1, world, SHAPE[1] // world).transpose(0, 1).contiguous()
        out = torch.empty_like(packed)
        dist.all_to_all_single(out, packed)
        return out.reshape(-1, SHAPE[1] // world)

    kinds = {Shard(0): dtensor.Shard(0), Shard(1): dtensor.Shard(1), Replicate(): dtensor.Replicate()}

    for case, (before, after, local) in CASES.items():
        source, goal = distribute(SHAPE, world, [before]), distribute(SHAPE, world, [after], local=local)
        plan = redistribute(source, goal, "bf16")
        part = torch.zeros(source.local_shape(rank), dtype=torch.bfloat16, device="cuda")
        runs = {"cute_py over the group": plan.prepare({rank: part}, backend="torch").launch}
        if case in DTENSOR:
            whole = dtensor.DTensor.from_local(part, mesh, [kinds[before]])
            runs["DTensor"] = functools.partial(whole.redistribute, mesh, [kinds[after]])
        if case == "Shard(0) -> Shard(1)":
            runs["all_to_all_single, packed"] = functools.partial(exchange, part)
        for who, run in runs.items():
            seconds = median_of(run, torch.cuda.synchronize, repeat)
            if rank == 0:
                row(case, who, seconds, plan.bytes_moved // world)
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", action="store_true", help="the rows of one process for each GPU")
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--sms", type=int, default=16)
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        row("all", "cute_py", None, 0, "torch is not installed, whose memory is used")
        return
    try:
        count = device_count() if open_device() else 0
    except CuteError as problem:
        row("all", "cute_py", None, 0, problem.headline)
        return
    if count < 2:
        row("all", "cute_py", None, 0, "one GPU")
    elif options.ranks:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        torch.multiprocessing.spawn(one_rank, (2, port, options.repeat), nprocs=2)
    else:
        one_process(torch, options.repeat, options.sms)
        jax_rows(options.repeat)


if __name__ == "__main__":
    main()
