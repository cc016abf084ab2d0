"""Share an array's elements among threads. numpy does not hold the interpreter's lock while it computes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

BATCH: Final = 1 << 18
"""Elements per batch of several operations. Each numpy call has an overhead of 0.4 us. It then acquires the
interpreter's lock, and other threads may be waiting for the lock too. Smaller batches fit in the second-level cache,
but lose more time to these costs."""
MOST_THREADS: Final = 4
"""Threads that share the operations of one cast."""


def thread_count(size: int, least: int, most: int | None = None) -> int:
    """The number of threads for `size` elements: at least `least` elements for each thread, and at most `most` threads,
    by default `MOST_THREADS`.

    >>> thread_count(1000, 1000)
    1
    """
    wanted = min(MOST_THREADS if most is None else most, size // least)
    return min(wanted, os.cpu_count() or 1) if wanted > 1 else 1  # the count of processors is a system call


def in_threads(works: Sequence[Callable[[slice], None]], size: int) -> None:
    """Call each function with one contiguous part of `size` items: the first function in this thread, and each of the
    others in a thread of its own.

    >>> found = []
    >>> in_threads([found.append, found.append], 5)
    >>> sorted(found, key=lambda part: part.start)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    if len(works) == 1:
        works[0](slice(0, size))
        return
    ends = [size * i // len(works) for i in range(len(works) + 1)]
    parts = [slice(*pair) for pair in itertools.pairwise(ends)]
    with ThreadPoolExecutor(len(works) - 1) as pool:
        others = [pool.submit(work, part) for work, part in zip(works[1:], parts[1:], strict=True)]
        works[0](parts[0])
    for other in others:
        other.result()
