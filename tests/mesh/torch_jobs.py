"""Processes of torch.distributed, one for each rank, and what they do in the tests: over gloo, and NCCL on GPUs."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import socket
import time
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("PyTorch without torch.distributed", allow_module_level=True)

from cute_py import ComposedLayout, Layout, Swizzle  # noqa: E402
from cute_py.errors import RankError  # noqa: E402
from cute_py.mesh import Partial, Replicate, Shard, distribute, redistribute  # noqa: E402
from cute_py.mesh.peer import Pushes  # noqa: E402
from cute_py.mesh.torch_transport import TorchTransport  # noqa: E402
from tests.mesh.places import scattered  # noqa: E402
from tests.mesh.rank_jobs import part_of, plan_of, random_pair, small_messages  # noqa: E402
from tests.mesh.shared_memory import stop  # noqa: E402

BOUND = 3.0


def child(job: Any, backend: str, rank: int, ranks: int, port: int, arguments: tuple[Any, ...], answer: Any) -> None:
    faulthandler.dump_traceback_later(40, exit=True)
    torch.set_num_threads(1)
    backend, *memory = backend.split()
    if memory:
        os.environ.update(NCCL_NVLS_ENABLE="0", TORCH_SYMM_MEM_DISABLE_MULTICAST="1")  # no NVLink multicast
        torch.cuda.set_device(rank if memory == ["gpus"] else 0)
        torch.set_default_device("cuda")
    store = torch.distributed.TCPStore("127.0.0.1", port, is_master=False)
    torch.distributed.init_process_group(backend, store=store, rank=rank, world_size=ranks)
    answer.send(job(rank, ranks, *arguments))


def run_torch(
    job: Any, ranks: int, *arguments: Any, backend: str = "gloo", lost: int | None = None, seconds: float = 90.0
) -> list[Any]:
    """What a job returns on each rank. The store is this process's, as torchrun's is its agent's.

    Args:
        backend: "gloo", or with what new tensors of a job are on: "nccl gpus" for a GPU each, "gloo gpu" for one.
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


def data_arrive(rank: int, ranks: int, maps: bool = True) -> tuple[list[str], set[str]]:
    """Seeds whose data are not where they belong, and how data went."""
    wrong, how = [], set()
    for seed in range(12):
        small_messages(64 << seed % 6, ranks)
        source, destination = random_pair(seed, ranks)
        values = np.random.default_rng(seed).integers(0, 1 << 15, source.shape).astype(np.int16)
        parts, goal = scattered(source, values), scattered(destination, values)
        tensors = {d: tensor_of(array) for d, array in part_of(parts, rank).items()}
        goals = {d: tensor_of(np.zeros_like(array)) for d, array in part_of(goal, rank).items()}
        plan = redistribute(source, destination, "int16")
        prepared = plan.prepare(tensors, goals, backend=TorchTransport(maps=maps))
        for _ in range(2):
            prepared.launch()
        how |= {line.partition(" (")[0].partition(",")[0].rpartition(": ")[2] for line in prepared.report().split("\n")}  # type: ignore[attr-defined]
        wrong += [f"{seed}" for d, array in goals.items() if not np.array_equal(array.cpu().numpy(), goal[d])]
    return wrong, how


def expandable(rank: int, ranks: int) -> tuple[bool, str]:
    """Whether the data of one redistribution arrive, and how they go."""
    plan, values = plan_of(ranks)
    goal = tensor_of(np.zeros(plan.destination.local_shape(rank), np.int32))
    prepared = plan.prepare({rank: tensor_of(scattered(plan.source, values)[rank])}, {rank: goal})
    prepared.launch()
    arrived = np.array_equal(goal.cpu().numpy().ravel(), scattered(plan.destination, values)[rank])
    return arrived, prepared.report()  # type: ignore[attr-defined]


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


def failing(rank: int, ranks: int, how: str, lost: int, maps: bool = True) -> dict[str, Any]:
    """What a rank sees of the loss of another one, in the third exchange or, mapped, the second launch."""
    small_messages(8, ranks)
    plan, values = plan_of(ranks)
    tensor = tensor_of(scattered(plan.source, values)[rank])
    goal = torch.full(plan.destination.local_shape(rank), -1, dtype=torch.int32)
    began, calls = 0.0, 0

    def ended_in(kind: Any, name: str, when: int) -> None:
        called = getattr(kind, name)

        def counted(*arguments: Any) -> Any:
            nonlocal began, calls
            calls += 1
            if calls == when:
                began = time.monotonic()
                if rank == lost:
                    stop(how)
            return called(*arguments)

        setattr(kind, name, counted)

    ended_in(TorchTransport, "start", 3)
    ended_in(Pushes, "launch", 2)
    scratch, transport = {rank: torch.zeros_like(goal)}, TorchTransport(maps=maps)
    prepared = plan.prepare({rank: tensor}, {rank: goal}, backend=transport, into=scratch, seconds=BOUND)
    try:
        for _ in range(2):
            goal.fill_(-1)
            prepared.launch()
    except RankError as problem:
        seconds = time.monotonic() - began
        return {"rank": problem.rank, "seconds": seconds, "kept": bool((goal == -1).all()), "text": str(problem)}
    return {"rank": None}
