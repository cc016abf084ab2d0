"""A redistribution between the GPUs of one process, against the host's; most need two devices."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from cute_py.errors import InvalidValueError
from cute_py.gpu.device import Device, device_count, open_device
from cute_py.mesh import BlockCyclic, Partial, Replicate, Shard, ShardedLayout, Zigzag, distribute, peer, redistribute
from cute_py.mesh.peer import PeerRedistribution
from tests.mesh.places import random_distribution, random_shape, scattered


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
@pytest.mark.parametrize("shape", [(512, 512), (200, 72), (1024, 4096)])
def test_two_devices(torch: Any, gpus: list[str], shape: Any, source: Any, destination: Any) -> None:
    made = both(torch, gpus, distribute(shape, 2, source), distribute(shape, 2, destination))
    ways = {route.how for route in made.routes if route.source_device != route.destination_device}
    assert ways <= {"pull", "push", "threads"}, made.report()


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
    assert "staged, 2048 bytes (no peer access between devices 1 and 0)" in made.report()
    assert {r.how for r in made.routes} == {"local", "staged"}


def test_multiprocessors_reach_the_ring(torch: Any, gpus: list[str]) -> None:
    rows, columns = distribute((4096, 8192), 2, [Shard(0)]), distribute((4096, 8192), 2, [Shard(1)])
    made = both(torch, gpus, rows, columns, sms=5)
    assert isinstance(made, PeerRedistribution)
    blocks = [n for key, copies in made._copies.items() if key[0] != key[1] for one in copies for n in one.blocks]
    assert blocks == [5, 5]


def test_scratch_memory(torch: Any, gpus: list[str]) -> None:
    scratch = {d: torch.zeros((64, 32), dtype=torch.int16, device=gpus[d]) for d in (0, 1)}
    both(torch, gpus, distribute((64, 64), 2, [Shard(0)]), distribute((64, 64), 2, [Shard(1)]), into=scratch)


@pytest.mark.parametrize("seed", range(20))
def test_random_pairs_on_one_device(torch: Any, device: Device, seed: int) -> None:
    """Many parts on one GPU: all routes but those of two devices."""
    random = Random(seed)
    shape = random_shape(random)
    both(torch, ["cuda:0"], random_distribution(random, shape), random_distribution(random, shape))


def test_a_stream_of_no_device_of_it(torch: Any, gpus: list[str]) -> None:
    made = both(torch, ["cuda:0"], distribute((64, 64), 2, [Shard(0)]), distribute((64, 64), 2, [Shard(1)]))
    with pytest.raises(InvalidValueError, match="the stream is of no device"):
        made.launch(torch.cuda.Stream("cuda:1"))
