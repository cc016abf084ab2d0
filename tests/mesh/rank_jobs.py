"""What one rank does in the tests of the protocol; the same on all ranks, each in a process of its own."""

from __future__ import annotations

import json
import time
from random import Random
from typing import Any

import numpy as np

import cute_py.mesh.ranks
from cute_py.errors import CuteError, RankError
from cute_py.mesh import BlockCyclic, Partial, Redistribution, Replicate, Shard, ShardedLayout, distribute, redistribute
from cute_py.mesh.liveness import Watch
from cute_py.mesh.ranks import MeetingPlace
from tests.mesh.places import random_placement, random_shape, scattered
from tests.mesh.shared_memory import SharedMemoryTransport, stop

BOUND = 1.6
"""Seconds within which a lost rank is found here."""


def small_messages(size: int, ranks: int) -> None:
    """Many rounds, though the tests move little: messages of at most so many bytes."""
    cute_py.mesh.ranks.MESSAGES = size * ranks


def random_pair(seed: int, ranks: int) -> tuple[ShardedLayout, ShardedLayout]:
    random = Random(seed)
    shape = random_shape(random)
    sides = []
    for most in (ranks, random.randint(1, ranks)):
        mesh = random.choice([(most,), (2, most // 2)]) if most % 2 == 0 else (most,)
        sides.append(distribute(shape, mesh, [random_placement(random, len(shape)) for _ in mesh]))
    random.shuffle(sides)
    return sides[0], sides[1]


def part_of(parts: dict[int, np.ndarray], rank: int) -> dict[int, np.ndarray]:
    return {rank: parts[rank]} if rank in parts else {}


def data_arrive(transport: SharedMemoryTransport, seeds: range) -> list[int]:
    """Seeds whose data are not where they belong."""
    wrong = []
    for seed in seeds:
        small_messages(8 << seed % 8, transport.ranks)
        source, destination = random_pair(seed, transport.ranks)
        values = np.random.default_rng(seed).integers(0, 1 << 16, source.shape).astype(np.uint16)
        plan = redistribute(source, destination, "uint16")
        goal = scattered(destination, values)
        got = plan.run(part_of(scattered(source, values), transport.rank), backend=transport)
        same = [np.array_equal(array.ravel(), goal[device]) for device, array in got.items()]
        if not all(same) or list(got) != [transport.rank][: len(part_of(goal, transport.rank))]:
            wrong.append(seed)
    return wrong


def sums_are_those_of_one_process(transport: SharedMemoryTransport) -> bool:
    small_messages(64, transport.ranks)
    source = distribute((16, 12), (2, 2), [Partial(), BlockCyclic(0, 3)])
    destination = distribute((16, 12), (2, 2), [Shard(1), Replicate()], local="column")
    random = np.random.default_rng(0)
    parts = {d: random.normal(size=source.local_shape(d)).astype(np.float16) for d in range(4)}
    plan = redistribute(source, destination, "float16")
    wanted = plan.run(parts, backend="host")[transport.rank]
    prepared = plan.prepare(part_of(parts, transport.rank), backend=transport)
    for _ in range(3):
        prepared.launch()
    return np.array_equal(prepared.destinations[transport.rank], wanted)


def an_empty_part_is_left_out(transport: SharedMemoryTransport) -> list[list[int]]:
    """What comes, through scratch memory, where rank 1 holds no element and gives no destination."""
    rows, rank = distribute((1, 4), 2, [Shard(0)]), transport.rank
    sources = {rank: np.arange(4 * (1 - rank), dtype=np.int32)}
    goal = {0: np.zeros(4, np.int32)} if rank == 0 else {}
    plan = redistribute(rows, rows, "int32")
    plan.run(sources, goal, backend=transport, into={rank: np.zeros_like(sources[rank])})
    return [array.tolist() for array in goal.values()]


def plan_of(ranks: int) -> tuple[Redistribution, np.ndarray]:
    rows, columns = distribute((16, 16), ranks, [Shard(0)]), distribute((16, 16), ranks, [Shard(1)])
    return redistribute(rows, columns, "int32"), np.arange(256, dtype=np.int32).reshape(16, 16)


def failing(transport: SharedMemoryTransport, how: str, when: int, lost: int, into: bool) -> dict[str, Any]:
    """What a rank sees of the loss of another one, which happens in the exchange of that number; -1: before all."""
    small_messages(32, transport.ranks)
    plan, values = plan_of(transport.ranks)
    rank, began = transport.rank, 0.0
    sources = part_of(scattered(plan.source, values), rank)
    goal = {rank: np.full(plan.destination.local_shape(rank), -1, np.int32)}
    scratch = {rank: np.zeros_like(goal[rank])} if into else None

    def before_start(number: int) -> None:
        nonlocal began
        if number == when:
            began = time.monotonic()
            if rank == lost:
                stop(how)

    transport.before_start = before_start
    prepared = plan.prepare(sources, goal, backend=transport, into=scratch, seconds=BOUND)
    if when == -1:
        began = time.monotonic()
        if rank == lost:
            stop(how)
    try:
        prepared.launch()
    except (RankError, MemoryError) as problem:
        seen = {"type": type(problem).__name__, "rank": getattr(problem, "rank", None), "text": str(problem)}
        seen |= {
            "seconds": time.monotonic() - began,
            "aborted": transport.aborted,
            "kept": bool((goal[rank] == -1).all()),
        }
        try:
            prepared.launch()
        except RankError as again:
            seen["again"] = again.headline
        return seen
    return {"type": "none"}


def meeting(transport: SharedMemoryTransport, times: int, lost: int | None) -> tuple[list[int], int | None, float]:
    """The counts of all ranks after so many meetings, and which rank was found missing at the last one, and when."""
    watch = Watch(transport, BOUND)
    place = MeetingPlace(watch)
    began = time.monotonic()
    try:
        with watch.together():
            offers = watch.gather(json.dumps(place.offer() if transport.rank == 0 else {}))
            place.open(json.loads(offers[0]))
            watch.gather()
            place.opened()
            for number in range(times):
                if transport.rank == lost and number == times - 1:
                    stop("killed")
                began = time.monotonic()
                place.meet()
    except RankError as problem:
        return list(place._counts), problem.rank, time.monotonic() - began
    return list(place._counts), None, 0.0


def disagreeing(transport: SharedMemoryTransport, what: str) -> tuple[str, str, list[str]]:
    plan, values = plan_of(transport.ranks)
    sources = part_of(scattered(plan.source, values), transport.rank)
    if transport.rank == 1:
        if what == "shape":
            sources = {1: np.zeros(3, np.int32)}
        elif what == "type":
            sources = {1: [1, 2]}  # type: ignore[dict-item]
        elif what == "plan":
            plan = redistribute(plan.source, distribute((16, 16), transport.ranks, [BlockCyclic(1, 1)]), "int32")
        elif what == "rank":
            sources = {0: sources[1]}
    if what == "world":
        plan = plan_of(transport.ranks + 1)[0]
    try:
        plan.run(sources, backend=transport, seconds=BOUND)
    except CuteError as problem:
        return type(problem).__name__, str(problem), [one.rule for one in vars(problem).get("diagnostics", ())]
    return "none", "", []


def late(transport: SharedMemoryTransport) -> str:
    """Rank 2 never comes to prepare."""
    plan, values = plan_of(transport.ranks)
    if transport.rank == 2:
        return "absent"
    try:
        plan.run(part_of(scattered(plan.source, values), transport.rank), backend=transport, seconds=BOUND / 2)
    except RankError as problem:
        return f"{problem.rank}: {problem.headline.partition(' for ')[0]}"
    return "none"
