"""Ranks that are threads of this process and exchange messages: what arrives, in which messages, and who is found."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import numpy as np
import pytest

from cute_py.errors import CuteError, InvalidValueError, RankError
from cute_py.mesh import (
    BlockCyclic,
    Partial,
    Redistribution,
    Replicate,
    Shard,
    distribute,
    ranks,
    redistribute,
)
from cute_py.mesh.ranks import RankRedistribution
from cute_py.mesh.transport import Transport
from tests.mesh.places import part_of, scattered
from tests.mesh.rank_jobs import plan_of, random_pair

SECONDS = 20.0


class Store:
    """What the ranks have in common: texts, and messages under way of each pair, in order."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.messages: dict[tuple[int, int], deque[bytes]] = defaultdict(deque)
        self.sizes: list[tuple[int, int, int]] = []


class Threads(Transport):
    """One rank. `broken`: raised by what waits for messages."""

    def __init__(self, store: Store, rank: int, ranks: int) -> None:
        self.store, self.rank, self.ranks, self.aborted = store, rank, ranks, 0
        self.broken: Exception | None = None

    def put(self, key: str, value: str) -> None:
        self.store.texts[key] = value

    def get(self, key: str) -> str | None:
        return self.store.texts.get(key)

    def start(self, sends: Mapping[int, Any], receives: Mapping[int, Any]) -> Callable[[], bool]:
        for peer, one in sends.items():
            self.store.messages[self.rank, peer].append(one.tobytes())
            self.store.sizes.append((self.rank, peer, len(one)))
        left = dict(receives)

        def done() -> bool:
            if self.broken is not None:
                raise self.broken
            for peer in list(left):
                waiting = self.store.messages[peer, self.rank]
                if waiting:
                    left[peer].view(np.uint8)[:] = np.frombuffer(waiting.popleft(), np.uint8)
                    del left[peer]
            return not left

        return done

    def abort(self) -> None:
        self.aborted += 1


def together(count: int, job: Callable[[Threads], Any]) -> tuple[list[Any], Store]:
    """What the job returns on each rank, or the error that it raises."""
    store, ended = Store(), [None] * count

    def run(rank: int) -> None:
        try:
            ended[rank] = job(Threads(store, rank, count))
        except (CuteError, MemoryError) as problem:
            ended[rank] = problem  # type: ignore[call-overload]

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
        assert not one.is_alive()
    return ended, store


def own(parts: Mapping[int, Any], rank: int) -> dict[int, Any]:
    return {rank: parts[rank]} if rank in parts else {}


@pytest.mark.parametrize("seed", range(24))
def test_parts_arrive_in_messages_of_bounded_size(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    count, most = 2 + seed % 3, (4, 7, 32, 1 << 20)[seed % 4]
    monkeypatch.setattr(ranks, "MESSAGES", 2 * most * count)
    source, destination = random_pair(seed, count)
    values = np.random.default_rng(seed).integers(0, 1 << 16, source.shape).astype(np.uint16)
    plan = redistribute(source, destination, "uint16")

    def job(transport: Threads) -> Any:
        held = own(scattered(source, values), transport.rank)
        made: Any = plan.prepare(held, backend=transport, seconds=SECONDS)
        made.launch()
        first = {device: array.copy() for device, array in made.destinations.items()}
        made.launch()
        assert all(np.array_equal(first[device], made.destinations[device]) for device in first)
        return first, made.report()

    ended, store = together(count, job)
    wanted, moved = scattered(destination, values), 0
    for rank, (got, report) in enumerate(ended):
        assert list(got) == [rank][: rank < destination.devices]
        assert all(np.array_equal(array.ravel(), wanted[device]) for device, array in got.items())
        assert report == "messages (rank 0: its memory is host memory)"
    for sender, receiver, size in store.sizes:
        assert sender != receiver and 0 < size <= most
        moved += size
    assert moved == plan.bytes_moved  # elements of 2 bytes, in two launches


@pytest.mark.parametrize("most", [3, 1000])
def test_sums_are_added_in_the_order_of_devices(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "MESSAGES", 2 * most * 4)
    source = distribute((12, 10), (2, 2), [Partial(), BlockCyclic(0, 3)])
    destination = distribute((12, 10), (2, 2), [Shard(1), Replicate()], local="column")
    random = np.random.default_rng(0)
    parts = {d: random.normal(size=source.local_shape(d)).astype(np.float16) for d in range(4)}
    plan = redistribute(source, destination, "float16")
    alone = plan.run(parts, backend="host")
    ended, _ = together(4, lambda t: plan.run(own(parts, t.rank), backend=t, seconds=SECONDS)[t.rank])
    assert all(np.array_equal(ended[rank], alone[rank]) for rank in range(4))


def test_scratch_memory_is_written_before_the_destinations() -> None:
    plan, values = plan_of(2)
    seen: list[int] = []

    goals = {rank: np.full(plan.destination.local_shape(rank), -1, np.int32) for rank in range(2)}
    scratch = {rank: np.zeros_like(goals[rank]) for rank in range(2)}

    def job(transport: Threads) -> None:
        held = own(scattered(plan.source, values), transport.rank)
        mine = {transport.rank: goals[transport.rank]}
        into = {transport.rank: scratch[transport.rank]}
        made = plan.prepare(held, mine, backend=transport, into=into, seconds=SECONDS)
        seen.append(int(goals[transport.rank].max()))
        made.launch()

    together(2, job)
    assert seen == [-1, -1]
    for rank in range(2):
        wanted = part_of(plan.destination, values, rank)
        assert np.array_equal(goals[rank].ravel(), wanted) and np.array_equal(scratch[rank].ravel(), wanted)


@pytest.mark.parametrize("left_out", ["goal", "scratch"])
def test_an_empty_part_may_be_left_out(left_out: str) -> None:
    rows = distribute((1, 4), 2, [Shard(0)])
    plan, goal = redistribute(rows, rows, "int32"), np.zeros(4, np.int32)

    def job(transport: Threads) -> None:
        rank = transport.rank
        sources = {rank: np.arange(4 * (1 - rank), dtype=np.int32)}
        both = [{0: goal}, {0: np.zeros(4, np.int32)}] if rank == 0 else [{}, {1: np.zeros(0, np.int32)}]
        destinations, into = both if left_out == "goal" else both[::-1]
        plan.run(sources, destinations, backend=transport, into=into, seconds=SECONDS)

    assert together(2, job)[0] == [None, None]
    assert left_out == "scratch" or goal.tolist() == [0, 1, 2, 3]


def refused(count: int, change: Callable[[int, Any], Any], devices: int | None = None) -> list[Any]:
    plan, values = plan_of(devices or count)

    def job(transport: Threads) -> Any:
        held = own(scattered(plan.source, values), transport.rank)
        mine, sources = change(transport.rank, (plan, held))
        return mine.run(sources, backend=transport, seconds=SECONDS)

    return together(count, job)[0]


def test_what_any_rank_finds_all_raise() -> None:
    def short(rank: int, both: Any) -> Any:
        plan, held = both
        return plan, {1: np.zeros(3, np.int32)} if rank == 1 else held

    for one in refused(3, short):
        assert isinstance(one, InvalidValueError)
        assert one.headline == "rank 1: sources[1] = 3 elements; must be 96, the extent of its local layout"
        assert [(d.rule, d.argument) for d in one.diagnostics] == [("mesh-size", "rank 1")]

    def listed(rank: int, both: Any) -> Any:
        plan, held = both
        return plan, {rank: [1]} if rank else held

    for one in refused(3, listed):
        assert [d.message for d in one.diagnostics] == [
            f"rank {r}: sources[{r}] must be a numpy array, got list" for r in (1, 2)
        ]
        assert one.headline.startswith("there are 2 problems on 3 ranks, so no data was moved")


def test_a_rank_with_another_plan_is_named_by_all() -> None:
    def other(rank: int, both: Any) -> Any:
        plan, held = both
        if rank != 2:
            return plan, held
        cyclic = distribute((16, 16), 3, [BlockCyclic(1, 1)])
        return redistribute(plan.source, cyclic, "int32"), held

    ended = refused(3, other)
    for one in ended:
        (found,) = one.diagnostics
        assert (found.rule, found.argument) == ("mesh-plan", "rank 2")
        assert found.message == (
            "rank 2 has a different redistribution from rank 0's: 16x16 over 3 devices: Shard(dim=0) -> "
            "16x16 over 3 devices: BlockCyclic(dim=1, block=1), int32"
        )


@pytest.mark.parametrize("devices", [2, 4])
def test_as_many_ranks_as_devices_are_needed(devices: int) -> None:
    for one in refused(3, lambda rank, both: both, devices):
        assert [d.rule for d in one.diagnostics] == ["mesh-ranks"] * 3
        text = f"ranks = 3 processes; must be {devices}, one for each device of the larger mesh"
        assert text in one.diagnostics[2].message


def test_a_smaller_mesh_on_either_side_needs_the_ranks_of_the_larger() -> None:
    values = np.arange(12, dtype=np.int32)
    for ours, theirs in ((3, 2), (2, 3)):
        plan = redistribute(distribute(12, ours, [Shard(0)]), distribute(12, theirs, [Shard(0)]), "int32")
        held = scattered(plan.source, values)
        ended, _ = together(3, lambda t, plan=plan, held=held: plan.run(own(held, t.rank), backend=t, seconds=SECONDS))  # type: ignore[misc]
        for rank, got in enumerate(ended):
            assert list(got) == [rank][: rank < theirs]
            assert all(np.array_equal(got[d], part_of(plan.destination, values, d)) for d in got)


def failing(plan: Redistribution, values: np.ndarray, at: int, into: bool) -> Callable[[Threads], Any]:
    """Rank 1 runs out of memory in its launch, before (0) or behind (1) the meeting of all."""

    def job(transport: Threads) -> Any:
        rank = transport.rank
        goal = np.full(plan.destination.local_shape(rank), -1, np.int32)
        scratch = {rank: np.zeros_like(goal)} if into else None
        held = own(scattered(plan.source, values), rank)
        made: Any = plan.prepare(held, {rank: goal}, backend=transport, into=scratch, seconds=3.0)
        if rank == 1:

            def fail(*arguments: Any) -> Any:
                raise MemoryError("no room\nfor it")

            if at == 0:
                made._watch.gather = fail
            else:
                made._run = fail
        try:
            made.launch()
        except (RankError, MemoryError) as problem:
            with pytest.raises(RankError) as again:
                made.launch()
            return problem, transport.aborted, again.value, bool((goal == -1).all())
        return None

    return job


@pytest.mark.parametrize(("at", "into"), [(0, False), (1, False), (1, True)])
def test_a_rank_that_fails_is_named_by_the_others(at: int, into: bool) -> None:
    plan, values = plan_of(3)
    ended, _ = together(3, failing(plan, values, at, into))
    for rank, (problem, aborted, again, kept) in enumerate(ended):
        assert aborted >= 1
        assert kept or (at == 1 and not into)
        assert again.headline == "the communicator was aborted"
        assert again.rank == 1 and again.hint == "make a new one"
        if rank == 1:
            assert type(problem) is MemoryError
            assert again.facts == {"before": "rank 1 raised MemoryError: no room"}
            continue
        assert problem.headline == "rank 1 raised MemoryError: no room"
        assert problem.rank == 1 and problem.hint == "make a new communicator without this rank"
        undefined = at == 1 and not into
        state = "the contents of the destinations are undefined" if undefined else "the destinations are unchanged"
        assert problem.facts == {"found by": f"rank {rank}", "destinations": state}


def test_messages_of_summands_have_one_division() -> None:
    """Each group of transfers in pieces of at most so many elements; a message is filled before the next begins."""
    for seed in range(12):
        random = Random(seed)
        count = random.choice((2, 4))
        source, destination = random_pair(seed, count)
        plan = redistribute(source, destination, "uint16")
        for device in range(destination.devices):
            most = random.choice((1, 2, 5, 11, 1000))
            groups = list(plan.groups(device))
            placed = list(ranks._placed(iter(groups), most))
            assert sum(p[0].elements for _, _, p in placed) == sum(g[0].elements for g in groups)
            full: dict[int, list[int]] = {}
            for number, place, pieces in placed:
                sender, size = pieces[0].source_device, pieces[0].elements
                assert size <= most
                rounds = full.setdefault(sender, [0])
                assert number in (len(rounds) - 1, len(rounds))
                if number == len(rounds):
                    assert place == 0 and rounds[-1] + size > most
                    rounds.append(0)
                assert place == rounds[-1]
                rounds[-1] += size


def test_the_largest_message_of_each_rank() -> None:
    rounds = [ranks._Round(sent={1: 5, 2: 9}, received={1: 1}), ranks._Round(sent={1: 7, 3: 2}, received={1: 4})]
    assert ranks._largest(rounds, "sent") == {1: 7, 2: 9, 3: 2}
    assert ranks._largest(rounds, "received") == {1: 4}


def test_a_report_names_routes_or_the_reason_for_messages() -> None:
    made: Any = RankRedistribution.__new__(RankRedistribution)
    made._mapped, made._why_messages = None, ""
    assert made.report() == ""
