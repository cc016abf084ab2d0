"""A redistribution between the GPUs of one process, against the host's; most need two devices."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from cute_py.errors import DeviceError, InvalidValueError
from cute_py.gpu.device import Device, device_count, open_device
from cute_py.mesh import (
    BlockCyclic,
    Partial,
    Replicate,
    SectionedShard,
    Shard,
    ShardedLayout,
    StridedShard,
    Zigzag,
    distribute,
    peer,
    redistribute,
)
from cute_py.mesh.peer import PeerRedistribution
from tests.mesh.places import Alone, random_distribution, random_shape, scattered

MOST_TRANSFERS = 10


@pytest.fixture
def gpus(device: Device) -> list[str]:
    if device_count() < 2:
        pytest.skip("needs two GPUs")
    open_device(1)
    return ["cuda:0", "cuda:1"]


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def moved(torch: Any, parts: dict[int, np.ndarray], gpus: list[str]) -> dict[int, Any]:
    return {d: torch.from_numpy(array).to(gpus[d % len(gpus)]) for d, array in parts.items()}


def both(torch: Any, gpus: list[str], source: ShardedLayout, destination: ShardedLayout, **how: Any) -> Any:
    """Run on the GPUs, compare with the host, and give back what was prepared."""
    values = np.random.default_rng(0).integers(-100, 100, source.shape).astype(np.int16)
    plan = redistribute(source, destination, "int16")
    parts = scattered(source, values)
    goal = moved(torch, {d: np.full_like(x, -1) for d, x in scattered(destination, values).items()}, gpus)
    on_gpus = moved(torch, parts, gpus)
    for gpu in gpus:
        torch.cuda.synchronize(gpu)
    prepared = plan.prepare(on_gpus, goal, backend="peer", **how)
    prepared.launch()
    for gpu in gpus:
        torch.cuda.synchronize(gpu)
    wanted = plan.run(parts, backend="host")
    for d, array in goal.items():
        assert np.array_equal(array.cpu().numpy().ravel(), wanted[d].ravel()), (d, getattr(prepared, "routes", None))
    return prepared


CASES = [
    ([Shard(0)], [Shard(1)]),
    ([Shard(1)], [Shard(0)]),
    ([Shard(0)], [Replicate()]),
    ([BlockCyclic(0, 16)], [Shard(0)]),
    ([Zigzag(0)], [Shard(1)]),
]


@pytest.mark.parametrize(("source", "destination"), CASES)
@pytest.mark.parametrize("shape", [(512, 512), (200, 72), (1024, 1024)])
def test_two_devices(torch: Any, gpus: list[str], shape: Any, source: Any, destination: Any) -> None:
    made = both(torch, gpus, distribute(shape, 2, source), distribute(shape, 2, destination))
    ways = {route.how for route in made.routes if route.source_device != route.destination_device}
    assert ways <= {"push", "threads"} if shape[0] == 200 else ways == {"push"}, made.report()


@pytest.mark.parametrize("local", ["row", "column"])
def test_any_local_layout(torch: Any, gpus: list[str], local: Any) -> None:
    both(torch, gpus, distribute((512, 256), 2, [Shard(0)]), distribute((512, 256), 2, [Shard(1)], local=local))


def test_a_source_that_is_not_aligned_is_pushed(torch: Any, gpus: list[str]) -> None:
    rows = distribute((256, 48), 2, [Shard(0)])
    made = both(torch, gpus, rows, distribute((256, 48), 2, [Shard(1)]))
    assert "push" in {route.how for route in made.routes}


def test_sums_go_through_the_host(torch: Any, gpus: list[str]) -> None:
    made = both(torch, gpus, distribute((64, 64), 2, [Partial()]), distribute((64, 64), 2, [Shard(0)]))
    assert {route.why for route in made.routes} == {"a sum of several devices"}


def test_without_peer_access(torch: Any, gpus: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "has_peer_access", lambda device, other: device.ordinal == other.ordinal)
    made = both(torch, gpus, distribute((64, 64), 2, [Shard(0)]), distribute((64, 64), 2, [Shard(1)]))
    assert "staged, 2048 bytes (devices 1 and 0 have no peer access to each other)" in made.report()
    assert {r.how for r in made.routes} == {"local", "staged"}


def test_multiprocessors_reach_the_ring(torch: Any, gpus: list[str]) -> None:
    rows, columns = distribute((4096, 8192), 2, [Shard(0)]), distribute((4096, 8192), 2, [Shard(1)])
    made = both(torch, gpus, rows, columns, sms=5)
    assert isinstance(made, PeerRedistribution)
    blocks = [n for copies in made.pushes._copies.values() for one in copies for n in one.blocks]
    assert blocks == [5, 5, 5, 5]


def test_scratch_memory(torch: Any, gpus: list[str]) -> None:
    scratch = {d: torch.zeros((64, 32), dtype=torch.int16, device=gpus[d]) for d in (0, 1)}
    both(torch, gpus, distribute((64, 64), 2, [Shard(0)]), distribute((64, 64), 2, [Shard(1)]), into=scratch)


@pytest.mark.parametrize("seed", range(20))
def test_random_pairs_on_one_device(torch: Any, device: Device, seed: int) -> None:
    """Several parts on one GPU: all routes but those of two devices. Each transfer is a kernel to compile: few."""
    random = Random(seed)
    while True:
        shape = random_shape(random)
        sides = random_distribution(random, shape), random_distribution(random, shape)
        if len(list(redistribute(*sides, "int16").transfers())) <= MOST_TRANSFERS:
            break
    both(torch, ["cuda:0"], *sides)


def test_launched_many_times_and_on_streams(torch: Any, gpus: list[str]) -> None:
    """One after the other without a wait, on default streams and on others, each after what its streams hold."""
    source, destination = distribute((512, 512), 2, [Shard(0)]), distribute((512, 512), 2, [Shard(1)])
    x = torch.arange(512 * 512, dtype=torch.int32).reshape(512, 512)
    parts = {d: torch.zeros((256, 512), dtype=torch.int32, device=gpus[d]) for d in (0, 1)}
    prepared = redistribute(source, destination, "int32").prepare(parts, backend="peer")
    streams = {d: torch.cuda.Stream(gpus[d]) for d in (0, 1)}
    for number in range(40):
        chosen = streams if number % 2 else {d: torch.cuda.default_stream(gpus[d]) for d in (0, 1)}
        seen = []
        for d in (0, 1):
            with torch.cuda.device(gpus[d]), torch.cuda.stream(chosen[d]):
                parts[d].copy_(x[256 * d : 256 * d + 256] + number)
        prepared.launch(chosen if number % 2 else None)
        for d in (0, 1):
            with torch.cuda.device(gpus[d]), torch.cuda.stream(chosen[d]):
                seen.append(prepared.destinations[d].cpu())
        assert torch.equal(torch.cat(seen, 1), x + number), number
    prepared.check()  # type: ignore[attr-defined]


@pytest.mark.parametrize("streams", ["default", "own", "one"])
@pytest.mark.parametrize(
    ("source", "destination", "engine"),
    [
        (Shard(0), Shard(1), False),
        (Shard(0), Shard(1), True),
        (Shard(0), Alone(1), False),
        (Alone(0), Alone(1), False),
        (Alone(1), Alone(0), True),
    ],
)
def test_streams_wait_for_the_slower_one(
    torch: Any,
    gpus: list[str],
    streams: str,
    source: Any,
    destination: Any,
    engine: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What they held before is read, and what they get afterwards may write to all of the memory."""
    monkeypatch.setattr(peer, "ENGINE_FROM", 1 if engine else peer.ENGINE_FROM)
    plan = redistribute(distribute((256, 256), 2, [source]), distribute((256, 256), 2, [destination]), "int32")
    parts = {d: torch.zeros(plan.source.local_shape(d), dtype=torch.int32, device=gpus[d]) for d in (0, 1)}
    goal = {d: torch.zeros(plan.destination.local_shape(d), dtype=torch.int32, device=gpus[d]) for d in (0, 1)}
    made = plan.prepare(parts, goal, backend="peer")
    assert isinstance(made, PeerRedistribution)
    assert ("engine" in {route.how for route in made.routes}) is engine
    here = {
        d: torch.cuda.default_stream(gpus[d]) if streams == "default" else torch.cuda.Stream(gpus[d]) for d in (0, 1)
    }
    x = torch.arange(256 * 256, dtype=torch.int32, device="cpu").reshape(256, 256)
    content = {
        number: [
            {d: torch.from_numpy(one).to(gpus[d]) for d, one in scattered(side, (x + number).numpy()).items()}
            for side in (plan.source, plan.destination)
        ]
        for number in range(6)
    }
    for number, (before, wanted) in content.items():
        torch.cuda.synchronize(0)
        torch.cuda.synchronize(1)
        seen = {}
        ordered = (0, 1) if streams != "one" else (number % 2,)
        for d in (0, 1):
            with torch.cuda.device(gpus[d]), torch.cuda.stream(here[d]):
                if number % 2 == d:
                    torch.cuda._sleep(4_000_000)
                parts[d].copy_(before[d].reshape(parts[d].shape))
            if d not in ordered:
                torch.cuda.synchronize(d)
        made.launch(None if streams == "default" else {d: here[d] for d in ordered})
        for d in ordered:
            with torch.cuda.device(gpus[d]), torch.cuda.stream(here[d]):
                seen[d] = goal[d].clone()
                parts[d].fill_(-1)
                goal[d].fill_(-2)
        for d in ordered:
            torch.cuda.synchronize(d)
            assert torch.equal(seen[d].ravel(), wanted[d]), (number, d)
    made.check()


def test_a_device_that_does_not_come_is_reported(torch: Any, gpus: list[str]) -> None:
    plan = redistribute(distribute((64, 64), 2, [Shard(0)]), distribute((64, 64), 2, [Shard(1)]), "int32")
    parts = {d: torch.zeros((32, 64), dtype=torch.int32, device=gpus[d]) for d in (0, 1)}
    made = plan.prepare(parts, backend="peer", seconds=0.1)
    assert isinstance(made, PeerRedistribution)
    assert made.pushes._meeting is not None
    made.launch()
    made.check()
    made.pushes._meeting.launch(0)
    with pytest.raises(DeviceError, match="device 0: the copies of device 1 had not ended after"):
        made.check()


def test_nodes_of_a_graph_over_both_devices(torch: Any, gpus: list[str]) -> None:
    source, destination = distribute((512, 512), 2, [Shard(0)]), distribute((512, 512), 2, [Shard(1)])
    parts = {d: torch.zeros((256, 512), dtype=torch.int32, device=gpus[d]) for d in (0, 1)}
    prepared = redistribute(source, destination, "int32").prepare(parts, backend="peer")
    first, second = [torch.cuda.Stream(gpu) for gpu in gpus]
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(0), torch.cuda.graph(graph, stream=first):
        second.wait_stream(first)
        prepared.launch({0: first, 1: second})
        first.wait_stream(second)
    for value in (3, 4):
        for part in parts.values():
            part.fill_(value)
        torch.cuda.synchronize(1)
        with torch.cuda.device(0):
            graph.replay()
        torch.cuda.synchronize(0)
        assert all(bool((one == value).all()) for one in prepared.destinations.values())


@pytest.mark.parametrize("source", [SectionedShard(0, (2048, 1024, 1024)), StridedShard(0, 4)])
@pytest.mark.parametrize("columns", [1024, 1000])
def test_few_long_rows(torch: Any, gpus: list[str], source: Any, columns: int) -> None:
    """Runs of megabytes, a few of them: cut into rows that a tile has many of."""
    shape = (4096, columns)
    made = both(torch, gpus, distribute(shape, 2, [source]), distribute(shape, 2, [Shard(0)]))
    tiles = [one.kernels[0].source.facts["TILE_BYTES"] for copies in made.pushes._copies.values() for one in copies]
    assert min(map(int, tiles)) >= 2048, made.report()


def test_the_copy_engine(torch: Any, gpus: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs, rows, and several of rows, with bounds so low that it moves small ones."""
    monkeypatch.setattr(peer, "ENGINE_FROM", 1)
    monkeypatch.setattr(peer, "ENGINE_ROW", 16)
    for source, destination in ((Shard(0), Shard(1)), (Shard(0), Zigzag(0)), (Zigzag(0), Shard(1))):
        made = both(torch, gpus, distribute((512, 256), 2, [source]), distribute((512, 256), 2, [destination]))
        assert {route.how for route in made.routes} == {"local", "engine"}, made.report()


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_transposed_by_blocks_that_stay(
    torch: Any, gpus: list[str], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every width, so large that blocks move several tiles, at edges that no tile fits."""
    monkeypatch.setattr(peer, "RING_FROM", 1)
    shape = (2080, 4128)
    source, destination = distribute(shape, 2, [Shard(0)]), distribute(shape, 2, [Shard(1)], local="column")
    kind = getattr(torch, dtype)
    x = torch.randint(-100, 100, shape, dtype=kind, device="cpu")
    parts = {d: x[1040 * d : 1040 * d + 1040].to(gpus[d]) for d in (0, 1)}
    goal = {d: torch.zeros(2064 * 2080, dtype=kind, device=gpus[d]) for d in (0, 1)}
    made = redistribute(source, destination, dtype).prepare(parts, goal, backend="peer", sms=1)
    assert isinstance(made, PeerRedistribution)
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)
    made.launch()
    made.check()
    for d in (0, 1):
        assert torch.equal(goal[d].cpu().reshape(2064, 2080), x[:, 2064 * d : 2064 * d + 2064].t()), made.report()


def test_a_stream_of_no_device_of_it(torch: Any, gpus: list[str]) -> None:
    made = both(torch, ["cuda:0"], distribute((64, 64), 2, [Shard(0)]), distribute((64, 64), 2, [Shard(1)]))
    with pytest.raises(InvalidValueError, match="the stream belongs to no device of this redistribution"):
        made.launch(torch.cuda.Stream("cuda:1"))
