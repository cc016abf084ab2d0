"""A transport between processes of one host, over shared memory, and what runs one job on each rank.

The store is a folder with a file for each key. Of each ordered pair of ranks there is a mailbox, a mapped file: two
counts of bytes, written and read, each set by one side alone, and a ring that messages of any length stream through.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cute_py.mesh.transport import Transport

RING = 4096
"""Bytes: short, so that messages go around it often."""


class Mailbox:
    def __init__(self, path: Path) -> None:
        mapped = np.memmap(path, np.uint8, "r+", shape=(16 + RING,))
        self.counts, self.ring = mapped[:16].view(np.int64), mapped[16:]

    def move(self, content: np.ndarray, done: int, write: bool) -> int:
        """Bytes of the message that are done, after as many more as fit."""
        written, read = self.counts.tolist()
        at = written if write else read
        room = RING - (written - read) if write else written - read
        n = min(room, len(content) - done, RING - at % RING)
        ring = self.ring[at % RING : at % RING + n]
        if write:
            ring[:] = content[done : done + n]
        else:
            content[done : done + n] = ring
        self.counts[0 if write else 1] = at + n
        return done + n


class SharedMemoryTransport(Transport):
    """`before_start` is called with the number of the exchange, from 0: where tests end, stop or delay a rank."""

    def __init__(self, folder: Path, rank: int, ranks: int) -> None:
        self.folder, self.rank, self.ranks, self.aborted = folder, rank, ranks, False
        self.before_start: Callable[[int], None] = lambda number: None
        self.exchanges = 0
        self._boxes: dict[tuple[int, int], Mailbox] = {}

    def put(self, key: str, value: str) -> None:
        beside = self.folder / f".{self.rank}"
        beside.write_text(value)
        beside.replace(self.folder / key.replace("/", "-"))

    def get(self, key: str) -> str | None:
        try:
            return (self.folder / key.replace("/", "-")).read_text()
        except FileNotFoundError:
            return None

    def _box(self, sender: int, receiver: int) -> Mailbox:
        if (sender, receiver) not in self._boxes:
            self._boxes[sender, receiver] = Mailbox(self.folder / f"from-{sender}-to-{receiver}")
        return self._boxes[sender, receiver]

    def start(self, sends: Mapping[int, Any], receives: Mapping[int, Any]) -> Callable[[], bool]:
        self.before_start(self.exchanges)
        self.exchanges += 1
        under_way = [(self._box(self.rank, peer), one.view(np.uint8), True) for peer, one in sends.items()]
        under_way += [(self._box(peer, self.rank), one.view(np.uint8), False) for peer, one in receives.items()]
        places = [0] * len(under_way)

        def done() -> bool:
            for i, (box, content, write) in enumerate(under_way):
                places[i] = box.move(content, places[i], write)
            return all(place == len(content) for place, (_, content, _) in zip(places, under_way, strict=True))

        return done

    def abort(self) -> None:
        self.aborted = True


Job = Callable[..., Any]


def _child(job: Job, folder: Path, rank: int, ranks: int, arguments: tuple[Any, ...], answer: Any) -> None:
    answer.send(job(SharedMemoryTransport(folder, rank, ranks), *arguments))


def run_ranks(job: Job, folder: Path, ranks: int, *arguments: Any, seconds: float = 30.0) -> list[Any]:
    """What a job returns on each rank; None for one that was killed or stopped. All processes have ended then."""
    for sender, receiver in itertools.permutations(range(ranks), 2):
        (folder / f"from-{sender}-to-{receiver}").write_bytes(bytes(16 + RING))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.mesh.rank_jobs"])
    pipes = [context.Pipe(duplex=False) for _ in range(ranks)]
    children = [
        context.Process(target=_child, args=(job, folder, rank, ranks, arguments, pipes[rank][1]), daemon=True)
        for rank in range(ranks)
    ]
    for child, (_, sender) in zip(children, pipes, strict=True):
        child.start()
        sender.close()
    answers: list[Any] = [None] * ranks
    waiting, end = set(range(ranks)), time.monotonic() + seconds
    while waiting and time.monotonic() < end:
        for rank in list(waiting):
            if pipes[rank][0].poll(0.01):
                with contextlib.suppress(EOFError):
                    answers[rank] = pipes[rank][0].recv()
                waiting.discard(rank)
            elif children[rank].pid is not None and _is_stopped(children[rank].pid) and len(waiting) == 1:
                waiting.discard(rank)
    for child in children:
        child.kill()
        child.join(10)
    assert not waiting, f"ranks {sorted(waiting)} hang"
    return answers


def _is_stopped(pid: int | None) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


def stop(how: str) -> None:
    """End or stop this process, or keep its main thread busy, while its heart beats on."""
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif how == "busy":
        time.sleep(3)
    else:
        raise MemoryError("no room")
