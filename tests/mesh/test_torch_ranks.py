"""torch.distributed over gloo: 2 and 4 processes, one of them ended or stopped in the middle."""

from __future__ import annotations

import faulthandler
import multiprocessing
import socket
import time
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("PyTorch without torch.distributed", allow_module_level=True)

from cute_py import ComposedLayout, Layout, Swizzle  # noqa: E402
from cute_py.errors import CuteError, RankError  # noqa: E402
from cute_py.mesh import Partial, Replicate, Shard, distribute, redistribute  # noqa: E402
from cute_py.mesh.torch_transport import TorchTransport  # noqa: E402
from tests.mesh.places import scattered  # noqa: E402
from tests.mesh.rank_jobs import part_of, plan_of, random_pair, small_messages  # noqa: E402
from tests.mesh.shared_memory import stop  # noqa: E402

BOUND = 3.0


def child(job: Any, rank: int, ranks: int, port: int, arguments: tuple[Any, ...], answer: Any) -> None:
    faulthandler.dump_traceback_later(40, exit=True)
    torch.set_num_threads(1)
    store = torch.distributed.TCPStore("127.0.0.1", port, is_master=False)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
    answer.send(job(rank, ranks, *arguments))


def run_torch(job: Any, ranks: int, *arguments: Any, lost: int | None = None, seconds: float = 90.0) -> list[Any]:
    """What a job returns on each rank. The store is this process's, as torchrun's is its agent's."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = torch.distributed.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe(duplex=False) for _ in range(ranks)]
    children = [
        context.Process(target=child, args=(job, rank, ranks, port, arguments, pipes[rank][1]), daemon=True)
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


def data_arrive(rank: int, ranks: int) -> list[str]:
    wrong = []
    for seed in range(12):
        small_messages(64 << seed % 6, ranks)
        source, destination = random_pair(seed, ranks)
        values = np.random.default_rng(seed).integers(0, 1 << 15, source.shape).astype(np.int16)
        parts, goal = scattered(source, values), scattered(destination, values)
        tensors = {d: torch.from_numpy(array) for d, array in part_of(parts, rank).items()}
        got = redistribute(source, destination, "int16").run(tensors, backend="torch")
        wrong += [f"{seed}" for d, array in got.items() if not np.array_equal(array.numpy().ravel(), goal[d])]
    return wrong


def other_types_and_layouts(rank: int, ranks: int) -> list[bool]:
    """bfloat16 sums bit for bit as on the host, a swizzled part, and a group of some of the processes."""
    random = np.random.default_rng(0)
    source = distribute((16, 12), (2, ranks // 2), [Partial(), Shard(0)])
    plan = redistribute(source, distribute((16, 12), (2, ranks // 2), [Shard(1), Replicate()]), "bf16")
    parts = {d: random.normal(size=source.local_shape(d)).astype(plan.dtype.numpy) for d in range(ranks)}
    wanted = plan.run(parts, backend="host")[rank]
    mine = torch.from_numpy(parts[rank].view(np.int16)).view(torch.bfloat16)
    goal = {rank: torch.zeros(plan.destination.local_shape(rank), dtype=torch.bfloat16)}
    prepared = plan.prepare({rank: mine}, goal)  # "auto"
    prepared.launch()
    prepared.launch()
    same = [np.array_equal(goal[rank].view(torch.int16).numpy(), wanted.view(np.int16))]

    swizzled = ComposedLayout(Swizzle(2, 1, 3), 0, Layout((8, 8), (8, 1)))
    plan = redistribute(
        distribute((8, 8 * ranks), ranks, [Shard(1)], local=swizzled),
        distribute((8, 8 * ranks), ranks, [Shard(1)], local="column"),
        "int32",
    )
    numbers = torch.arange(64, dtype=torch.int32) + 64 * rank
    got = plan.run({rank: numbers}, backend="torch")[rank].numpy()
    same.append(
        np.array_equal(
            got.ravel(), plan.run({d: np.arange(64, dtype=np.int32) + 64 * d for d in range(ranks)})[rank].ravel()
        )
    )

    pair = torch.distributed.new_group([0, ranks - 1])
    if rank in (0, ranks - 1):
        transport = TorchTransport(pair)
        halves, values = plan_of(2)
        part = torch.from_numpy(scattered(halves.source, values)[transport.rank])
        got = halves.run({transport.rank: part}, backend=transport)[transport.rank].numpy()
        same.append(np.array_equal(got.ravel(), scattered(halves.destination, values)[transport.rank]))
    return same


@pytest.mark.parametrize("ranks", [2, 4])
def test_data_arrive(ranks: int) -> None:
    assert run_torch(data_arrive, ranks) == [[]] * ranks


@pytest.mark.parametrize("ranks", [2, 4])
def test_other_types_layouts_and_groups(ranks: int) -> None:
    assert all(all(one) for one in run_torch(other_types_and_layouts, ranks))


def failing(rank: int, ranks: int, how: str, lost: int) -> dict[str, Any]:
    small_messages(8, ranks)
    plan, values = plan_of(ranks)
    tensor = torch.from_numpy(scattered(plan.source, values)[rank])
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


@pytest.mark.parametrize(
    ("ranks", "how", "lost"), [(2, "killed", 1), (4, "killed", 0), (2, "stopped", 0), (4, "stopped", 3)]
)
def test_a_lost_rank_is_found(ranks: int, how: str, lost: int) -> None:
    for rank, one in enumerate(run_torch(failing, ranks, how, lost, lost=lost)):
        if rank != lost:
            assert one["rank"] == lost, one
            assert one["kept"]
            assert one["seconds"] < BOUND + 1


def bad(rank: int, ranks: int) -> list[tuple[str, str]]:
    found = []
    plan, _ = plan_of(ranks)
    shape = plan.source.local_shape(rank)
    whole = torch.zeros(shape, dtype=torch.int32)
    cases = [torch.zeros(shape), whole.t() if rank else whole, np.zeros(shape, np.int32)]
    for tensor in cases:
        try:
            plan.run({rank: tensor}, backend="torch", seconds=BOUND)
        except CuteError as problem:
            found.append((type(problem).__name__, str(problem)))
    return found


def test_bad_tensors_are_refused_on_all_ranks() -> None:
    first, second = run_torch(bad, 2)
    assert first == second
    assert "rank 1: sources[1] has elements of torch.float32; must be int32" in first[0][1]
    assert first[1] == ("InvalidValueError", first[1][1])
    assert first[1][1].startswith("rank 1: sources[1] has gaps or another order")
    assert "rank 0: sources[0] must be a torch tensor, got ndarray" in first[2][1]


def test_without_a_process_group() -> None:
    with pytest.raises(CuteError, match=r"torch\.distributed is not initialised"):
        plan_of(2)[0].run({0: torch.zeros((8, 16), dtype=torch.int32)}, backend="torch")
