"""Redistribution between the GPUs of one host, beside DTensor, JAX, NCCL's all_to_all and memcpyPeer, in one run.

    python -m benchmarks.mesh                                  ours, memcpyPeer, and JAX where it is installed
    torchrun --nproc-per-node 2 -m benchmarks.mesh --ranks     DTensor, all_to_all_single with pack, ours over NCCL

A peer that is not installed, or a machine with one GPU, is a row that says 'not run'. Times are medians of --repeat
runs, each from an idle device to an idle device.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

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

CASES: dict[str, tuple[Placement, Placement, str]] = {
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
        print(f"{case:36} {who:28} not run: {note}")
    else:
        print(f"{case:36} {who:28} {seconds * 1e3:8.3f} ms {moved / seconds / 1e9:8.1f} GB/s {note}")


def ours(torch: Any, case: str, repeat: int, sms: int) -> None:
    """In one process: a prepared redistribution, and the same bytes by memcpyPeer."""
    before, after, local = CASES[case]
    source, goal = distribute(SHAPE, 2, [before]), distribute(SHAPE, 2, [after], local=local)
    plan = redistribute(source, goal, "bf16")
    gpus = [f"cuda:{d}" for d in (0, 1)]
    a, b = [
        {d: torch.zeros(side.local_shape(d), dtype=torch.bfloat16, device=gpus[d]) for d in (0, 1)}
        for side in (source, goal)
    ]

    def wait() -> None:
        torch.cuda.synchronize(0)
        torch.cuda.synchronize(1)

    wait()
    prepared = plan.prepare(a, b, backend="peer", sms=sms)
    each_way = plan.bytes_moved // 2
    row(case, "cute_py", median_of(prepared.launch, wait, repeat), each_way)
    begin = time.perf_counter()
    prepared.launch()
    print(f"{'':36} {'host time of a launch':28} {(time.perf_counter() - begin) * 1e6:8.1f} us")
    wait()
    if not each_way:
        return
    api = driver()
    contexts = [open_device(d).context for d in (0, 1)]
    streams = [torch.cuda.Stream(gpu) for gpu in gpus]
    size = min(each_way, a[0].nbytes, b[1].nbytes)

    def copies() -> None:
        for d in (0, 1):
            where = (b[1 - d].data_ptr(), contexts[1 - d], a[d].data_ptr(), contexts[d])
            call("memcpyPeer", api.cuMemcpyPeerAsync, *where, size, streams[d].cuda_stream)

    row(case, "memcpyPeer, both ways", median_of(copies, wait, repeat), size)


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


def ranks(torch: Any, case: str, repeat: int) -> None:
    """Under torchrun: DTensor, all_to_all_single with pack and unpack, and ours over the process group."""
    import torch.distributed as dist
    from torch.distributed import tensor as dtensor

    rank, world = dist.get_rank(), dist.get_world_size()
    before, after, local = CASES[case]
    source, goal = distribute(SHAPE, world, [before]), distribute(SHAPE, world, [after], local=local)
    plan = redistribute(source, goal, "bf16")
    part = torch.zeros(source.local_shape(rank), dtype=torch.bfloat16, device="cuda")
    each_way = plan.bytes_moved // world

    def show(who: str, run: Callable[[], object]) -> None:
        seconds = median_of(run, torch.cuda.synchronize, repeat)
        if rank == 0:
            row(case, who, seconds, each_way)

    show("cute_py over the group", plan.prepare({rank: part}, backend="torch").launch)
    if case in DTENSOR:
        kinds = {Shard(0): dtensor.Shard(0), Shard(1): dtensor.Shard(1), Replicate(): dtensor.Replicate()}
        mesh = dist.init_device_mesh("cuda", (world,))
        whole = dtensor.DTensor.from_local(part, mesh, [kinds[before]])
        show("DTensor.redistribute", lambda: whole.redistribute(mesh, [kinds[after]]))
    if case == "Shard(0) -> Shard(1)":
        columns = SHAPE[1] // world

        def exchange() -> Any:
            packed = part.reshape(-1, world, columns).transpose(0, 1).contiguous()
            out = torch.empty_like(packed)
            dist.all_to_all_single(out, packed)
            return out.reshape(-1, columns)

        show("all_to_all_single with pack", exchange)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", action="store_true", help="under torchrun: the rows of one process for each GPU")
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--sms", type=int, default=16)
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        row("all", "cute_py", None, 0, "torch is not installed, whose memory is used")
        return
    if options.ranks:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        torch.distributed.init_process_group("nccl")
        for case in CASES:
            ranks(torch, case, options.repeat)
        torch.distributed.destroy_process_group()
        return
    try:
        count = device_count() if open_device() else 0
    except CuteError as problem:
        row("all", "cute_py", None, 0, problem.headline)
        return
    if count < 2:
        row("all", "cute_py", None, 0, "one GPU")
        return
    for case in CASES:
        ours(torch, case, options.repeat, options.sms)
    jax_rows(options.repeat)


if __name__ == "__main__":
    main()
