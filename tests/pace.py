"""Processor time in paces: how often a fixed loop runs in it. A bound in paces is a ratio, on a slow machine too.

    with within(200): ...              fails if the block took more than 200 paces of this process and its children
    took_more(seconds, 200)            the same for processor time that was measured before

The loop takes about 10 ms on a quiet machine of today. It is timed once, and again whenever a block takes longer than
the first timing allows, so that a machine that has become slower is measured as it is then.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator

ADDITIONS = 1 << 18


def processor_seconds() -> float:
    """Of this process and of the children that it waited for."""
    return sum(os.times()[:4])


def _loop() -> float:
    import time

    begin, total = time.process_time(), 0
    for i in range(ADDITIONS):
        total += i
    return time.process_time() - begin


@functools.cache
def _first() -> float:
    return min(_loop() for _ in range(3))


def took_more(seconds: float, paces: float) -> bool:
    """Whether processor time is more than so many paces, by the first timing of the loop and by one of now."""
    return seconds > paces * _first() and seconds > paces * max(_loop() for _ in range(3))


@contextlib.contextmanager
def within(paces: float) -> Iterator[None]:
    """A block that may take so many paces of processor time."""
    begin = processor_seconds()
    yield
    seconds = processor_seconds() - begin
    assert not took_more(seconds, paces), f"{seconds:.2f} s of processor time; the bound is {paces:g} paces"
