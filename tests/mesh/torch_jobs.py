"""Processes of torch.distributed, one for each rank, and what they do in the tests: over gloo, and NCCL on GPUs."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import socket
import time
from typing import Any

import numpy as np
import torch

from cute_py import ComposedLayout, Layout, Swizzle
from cute_py.errors import RankError
from cute_py.mesh import Partial, Replicate, Shard, distribute, redistribute
from cute_py.mesh.torch_transport import TorchTransport
from tests.mesh.places import scattered
from tests.mesh.rank_jobs import part_of, plan_of, random_pair, small_messages
from tests.mesh.shared_memory import stop

BOUND = 3.0


def child(job: Any, backend: str, rank: int, ranks: int, port: int, arguments: tuple[Any, ...], answer: Any) -> None:
    faulthandler.dump_traceback_later(40, exit=True)
    torch.set_num_threads(1)
    if backend == "nccl":
        os.environ.update(NCCL_NVLS_ENABLE="0", TORCH_SYMM_MEM_DISABLE_MULTICAST="1")  # no NVLink multicast
        torch.cuda.set_device(rank)
        torch.set_default_device("cuda")
    store = torch.distributed.TCPStore("127.0.0.1", port, is_master=False)
    torch.distributed.init_process_group(backend, store=store, rank=rank, world_size=ranks)
    answer.send(job(rank, ranks, *arguments))


def run_torch(
    job: Any, ranks: int, *arguments: Any, backend: str = "gloo", lost: int | None = None, seconds: float = 90.0
) -> list[Any]:
    """What a job returns on each rank. The store is this process's, as torchrun's is its agent's.

    With "nccl" new tensors of a job are on its rank's GPU.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = torch.distributed.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe(duplex=False) for _ in range(ranks)]
    children = [
        context.Process(target=child, args=(job, backend, rank, ranks, port, arguments, pipes[rank][1]), daemon=True)
        for rank in range(ranks)
    ]
    for one in children:
        one.start()
    answers: list[Any] = [None] * ranks
    ended = []
    try:
        end = time.monotonic() + seconds
        for rank in range(ranks):
            if rank != lost:
                assert pipes[rank][0].poll(max(0.0, end - time.monotonic())), f"rank {rank} hangs"
                answers[rank] = pipes[rank][0].recv()
        for rank, one in enumerate(children):
            if rank != lost:
                one.join(20)
                ended.append(one.exitcode)
    finally:
        for one in children:
            one.kill()
            one.join(10)
        del store
    assert None not in ended, "a rank that raised does not end"
    return answers


def tensor_of(array: np.ndarray) -> Any:
    return torch.from_numpy(array).to(torch.get_default_device())


def data_arrive(rank: int, ranks: int) -> list[str]:
    wrong = []
    for seed in range(12):
        small_messages(64 << seed % 6, ranks)
        source, destination = random_pair(seed, ranks)
        values = np.random.default_rng(seed).integers(0, 1 << 15, source.shape).astype(np.int16)
        parts, goal = scattered(source, values), scattered(destination, values)
        tensors = {d: tensor_of(array) for d, array in part_of(parts, rank).items()}
        got = redistribute(source, destination, "int16").run(tensors, backend="torch")
        wrong += [f"{seed}" for d, array in got.items() if not np.array_equal(array.cpu().numpy().ravel(), goal[d])]
    return wrong


def other_types_and_layouts(rank: int, ranks: int) -> list[bool]:
    """bfloat16 sums bit for bit as on the host, a swizzled part, and a group of some of the processes."""
    random = np.random.default_rng(0)
    source = distribute((16, 12), (2, ranks // 2), [Partial(), Shard(0)])
    plan = redistribute(source, distribute((16, 12), (2, ranks // 2), [Shard(1), Replicate()]), "bf16")
    parts = {d: random.normal(size=source.local_shape(d)).astype(plan.dtype.numpy) for d in range(ranks)}
    wanted = plan.run(parts, backend="host")[rank]
    mine = tensor_of(parts[rank].view(np.int16)).view(torch.bfloat16)
    goal = {rank: torch.zeros(plan.destination.local_shape(rank), dtype=torch.bfloat16)}
    prepared = plan.prepare({rank: mine}, goal)  # "auto"
    prepared.launch()
    prepared.launch()
    same = [np.array_equal(goal[rank].view(torch.int16).cpu().numpy(), wanted.view(np.int16))]

    swizzled = ComposedLayout(Swizzle(2, 1, 3), 0, Layout((8, 8), (8, 1)))
    plan = redistribute(
        distribute((8, 8 * ranks), ranks, [Shard(1)], local=swizzled),
        distribute((8, 8 * ranks), ranks, [Shard(1)], local="column"),
        "int32",
    )
    numbers = torch.arange(64, dtype=torch.int32) + 64 * rank
    got = plan.run({rank: numbers}, backend="torch")[rank].cpu().numpy()
    same.append(
        np.array_equal(
            got.ravel(), plan.run({d: np.arange(64, dtype=np.int32) + 64 * d for d in range(ranks)})[rank].ravel()
        )
    )

    pair = torch.distributed.new_group([0, ranks - 1])
    if rank in (0, ranks - 1):
        transport = TorchTransport(pair)
        halves, values = plan_of(2)
        part = tensor_of(scattered(halves.source, values)[transport.rank])
        got = halves.run({transport.rank: part}, backend=transport)[transport.rank].cpu().numpy()
        same.append(np.array_equal(got.ravel(), scattered(halves.destination, values)[transport.rank]))
    return same


def failing(rank: int, ranks: int, how: str, lost: int) -> dict[str, Any]:
    small_messages(8, ranks)
    plan, values = plan_of(ranks)
    tensor = tensor_of(scattered(plan.source, values)[rank])
    goal = torch.full(plan.destination.local_shape(rank), -1, dtype=torch.int32)
    began, calls, start = 0.0, 0, TorchTransport.start

    def counted(self: TorchTransport, *arguments: Any) -> Any:
        nonlocal began, calls
        calls += 1
        if calls == 3:
            began = time.monotonic()
            if rank == lost:
                stop(how)
        return start(self, *arguments)

    TorchTransport.start = counted  # type: ignore[method-assign]
    try:
        plan.run({rank: tensor}, {rank: goal}, backend="torch", into={rank: torch.zeros_like(goal)}, seconds=BOUND)
    except RankError as problem:
        seconds = time.monotonic() - began
        return {"rank": problem.rank, "seconds": seconds, "kept": bool((goal == -1).all()), "text": str(problem)}
    return {"rank": None}
